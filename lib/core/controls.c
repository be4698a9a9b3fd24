#include "core/controls.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

#define ALWAYS "mount,unshare,setns,bpf,keyctl,perf_event_open,io_uring_setup,clone3,packet-socket,tiocsti"

const char *sb_controls_refused(enum sb_profile profile)
{
	switch (profile) {
	case SB_PROFILE_STRICT:
		return ALWAYS ",ptrace,process_vm_readv,memfd_create,execveat,netlink-socket";
	case SB_PROFILE_DEFAULT:
		return ALWAYS ",ptrace,process_vm_readv";
	case SB_PROFILE_BUILD:
	case SB_PROFILE_NONE:
	default:
		return ALWAYS;
	}
}

int sb_controls_of(const struct sb_plan *plan, struct sb_controls *ret)
{
	struct sb_controls c = { .profile = plan->profile,
				 .vm = plan->provider == SB_PROVIDER_MICROVM,
				 .builder = plan->builder,
				 .test_root = plan->test_root,
				 .log_blocked = plan->log_blocked,
				 .uid = plan->uid,
				 .gid = plan->gid,
				 .pids_max = plan->pids_max,
				 .nofile = plan->nofile,
				 .rlimits = plan->rlimits,
				 .n_guards = plan->n_guards };
	size_t len = 1;

	for (char *const *d = plan->deny_syscalls; d && *d; d++)
		len += strlen(*d) + 1;
	c.denied = calloc(1, len);
	if (!c.denied)
		return -ENOMEM;
	for (char *const *d = plan->deny_syscalls; d && *d; d++) {
		if (d != plan->deny_syscalls)
			(void)strncat(c.denied, ",", 2);
		(void)strncat(c.denied, *d, len);
	}
	*ret = c;
	return 0;
}

void sb_controls_done(struct sb_controls *c)
{
	free(c->denied);
	c->denied = NULL;
}

/* --- the report --- */

struct report {
	const char *text;
	size_t len;
};

#define VALUE_MAX 4096

/* Every line is name=value of printable characters. */
static bool well_formed(const struct report *r)
{
	bool name = true;
	size_t n = 0;

	if (r->len == 0 || r->len > SB_CONTROLS_MAX_TEXT || r->text[r->len - 1] != '\n')
		return false;
	for (size_t i = 0; i < r->len; i++) {
		char c = r->text[i];

		if (c == '\n') {
			if (name)
				return false;
			name = true;
			n = 0;
			continue;
		}
		if (c < 0x20 || c > 0x7e || (name && n == 0 && c == '='))
			return false;
		if (c == '=')
			name = false;
		n++;
	}
	return true;
}

/* The value of @name. Return: 0; -ENOENT; -EEXIST when it comes twice. */
static int find(const struct report *r, const char *name, char ret[VALUE_MAX])
{
	size_t len = strlen(name);
	const char *end = r->text + r->len;
	int found = -ENOENT;

	for (const char *at = r->text; at < end;) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		size_t line = (size_t)(nl - at);

		if (line > len && memcmp(at, name, len) == 0 && at[len] == '=') {
			size_t n = line - len - 1;

			if (found == 0 || n >= VALUE_MAX)
				return -EEXIST;
			memcpy(ret, at + len + 1, n);
			ret[n] = '\0';
			found = 0;
		}
		at = nl + 1;
	}
	return found;
}

static int differs(struct sb_err *err, const char *name, const char *asked, int found,
		   const char *value)
{
	return sb_err_set(err, -ENOTSUP,
			  "control %s is not in force as asked (asked: %.120s; in force: %.120s); "
			  "nothing was started", name, asked,
			  found == -ENOENT ? "not reported" : found < 0 ? "reported twice" : value);
}

static int exactly(const struct report *r, const char *name, const char *want, struct sb_err *err)
{
	char value[VALUE_MAX];
	int found = find(r, name, value);

	return found < 0 || strcmp(value, want) != 0 ? differs(err, name, want, found, value) : 0;
}

static int exact_number(const struct report *r, const char *name, uint64_t want, struct sb_err *err)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, want);
	return exactly(r, name, text, err);
}

static int at_most(const struct report *r, const char *name, uint64_t want, struct sb_err *err)
{
	char value[VALUE_MAX];
	char text[40];
	uint64_t have;
	int found;

	if (want == SB_PLAN_NO_LIMIT)
		return 0;
	found = find(r, name, value);
	(void)snprintf(text, sizeof(text), "at most %" PRIu64, want);
	if (found < 0 || sb_num_u64(value, 0, UINT64_MAX, &have) < 0 || have > want)
		return differs(err, name, text, found, value);
	return 0;
}

static bool has_word(const char *list, const char *word, size_t len)
{
	while (*list) {
		size_t n = strcspn(list, ",");

		if (n == len && memcmp(list, word, len) == 0)
			return true;
		list += n + (list[n] == ',');
	}
	return false;
}

/* Each word of @want is in the list. */
static int all_of(const struct report *r, const char *name, const char *want, struct sb_err *err)
{
	char value[VALUE_MAX];
	int found;

	if (!*want)
		return 0;
	found = find(r, name, value);
	if (found < 0)
		return differs(err, name, want, found, value);
	while (*want) {
		size_t n = strcspn(want, ",");

		if (!has_word(value, want, n))
			return sb_err_set(err, -ENOTSUP,
					  "control %s is not in force as asked (%.*s is not refused); "
					  "nothing was started", name, (int)SB_MIN(n, (size_t)60),
					  want);
		want += n + (want[n] == ',');
	}
	return 0;
}

static int check_limits(const struct sb_controls *w, const struct report *r, struct sb_err *err)
{
	const struct {
		const char *name;
		uint64_t want;
	} limits[] = {
		{ "rlimit.core", 1 },
		{ "rlimit.nofile", w->nofile ? w->nofile : SB_PLAN_NO_LIMIT },
		{ "rlimit.fsize", w->rlimits.fsize },
		{ "rlimit.as", w->rlimits.as },
		{ "rlimit.data", w->rlimits.data },
		{ "rlimit.stack", w->rlimits.stack },
		{ "rlimit.cpu", w->rlimits.cpu },
		{ "rlimit.memlock", w->rlimits.memlock },
		{ "pids", w->pids_max ? w->pids_max : SB_PLAN_NO_LIMIT },
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(limits); i++) {
		int e = at_most(r, limits[i].name, limits[i].want, err);

		if (e < 0)
			return e;
	}
	return 0;
}

int sb_controls_check(const struct sb_controls *want, const char *text, size_t len,
		      struct sb_err *err)
{
	const char *profile = sb_plan_profile_name(want->profile);
	const struct report r = { text, len };
	int e;

	if (!well_formed(&r))
		return sb_err_set(err, -EBADMSG, "the guest's report of its controls is malformed");
	if (want->test_root)
		return 0;
	e = exactly(&r, "profile", profile ? profile : "none", err);
	if (e == 0)
		e = exact_number(&r, "uid", want->uid, err);
	if (e == 0)
		e = exact_number(&r, "gid", want->gid, err);
	if (e == 0)
		e = exactly(&r, "capabilities", want->builder ? "builder" : "none", err);
	if (e == 0)
		e = exactly(&r, "no_new_privs", "1", err);
	if (e == 0)
		e = exactly(&r, "seccomp", "filter", err);
	if (e == 0)
		e = exactly(&r, "landlock", "in force", err);
	if (e == 0 && want->vm)
		e = exactly(&r, "modules", "closed", err);
	if (e == 0)
		e = exactly(&r, "user_namespaces", "closed", err);
	if (e == 0)
		e = check_limits(want, &r, err);
	if (e == 0)
		e = all_of(&r, "refused", sb_controls_refused(want->profile), err);
	if (e == 0)
		e = all_of(&r, "denied", want->denied, err);
	if (e == 0 && want->log_blocked)
		e = exactly(&r, "log_blocked", "in force", err);
	return e;
}
