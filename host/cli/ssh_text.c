#include "ssh_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/ssh_policy.h"

struct ssh_summary {
	struct sb_ipc_ssh_event list[SSH_SUMMARY_MAX]; /* in the order of their coming */
	size_t n;
	uint64_t beyond[2]; /* refusals, signatures that had no place, here or on the way */
};

static enum sb_ssh_reason reason_of(const struct sb_ipc_ssh_event *ev)
{
	return ev->reason < SB_SSH_N_REASONS ? (enum sb_ssh_reason)ev->reason : SB_SSH_REQUEST;
}

static const char *kind_of(const struct sb_ipc_ssh_event *ev)
{
	static const char *const names[] = { "", "sign", "bind", "request", "lost" };

	return names[ev->kind <= SB_SSH_EV_LOST ? ev->kind : 0];
}

/* Of the requests that a relay refuses. */
static const char *request_name(uint8_t type)
{
	switch (type) {
	case 17:
	case 25:
	case 20:
	case 26:
		return "add a key";
	case 9: /* the SSH 1 form, which ssh-add -D still sends */
	case 18:
	case 19:
	case 21:
		return "remove keys";
	case 22:
		return "lock the agent";
	case 23:
		return "unlock the agent";
	case 27:
		return "an extension";
	default:
		return "another request";
	}
}

static const char *comment_of(const struct sb_plan *plan, const struct sb_ipc_ssh_event *ev)
{
	const struct sb_plan_ssh_key *k = ev->has_key ? sb_plan_ssh_key(&plan->ssh, ev->key) : NULL;

	return k && k->comment[0] ? k->comment : NULL;
}

json_t *ssh_text_json(const struct sb_plan *plan, const struct sb_ipc_ssh_event *ev)
{
	char fp[SB_SSH_FINGERPRINT] = "";

	if (ev->has_key)
		sb_ssh_fingerprint(ev->key, fp);
	return json_pack("{s:s,s:s,s:I,s:b,s:s,s:I,s:s?,s:s?,s:s?,s:s?,s:i}", "event", "ssh", "kind",
			 kind_of(ev), "time_ns", (json_int_t)ev->time_ns, "allow", ev->allow != 0,
			 "reason", sb_ssh_reason_name(reason_of(ev)), "count",
			 (json_int_t)ev->count, "key", fp[0] ? fp : NULL, "comment",
			 comment_of(plan, ev), "host", ev->host[0] ? ev->host : NULL, "user",
			 ev->user[0] ? ev->user : NULL, "type", (int)ev->type);
}

int ssh_summary_new(struct ssh_summary **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

struct ssh_summary *ssh_summary_free(struct ssh_summary *s)
{
	free(s);
	return NULL;
}

static bool equal(const struct sb_ipc_ssh_event *a, const struct sb_ipc_ssh_event *b)
{
	return a->kind == b->kind && a->allow == b->allow && a->reason == b->reason &&
	       a->has_key == b->has_key && memcmp(a->key, b->key, sizeof(a->key)) == 0 &&
	       (a->kind != SB_SSH_EV_REQUEST || a->type == b->type) &&
	       strcmp(a->host, b->host) == 0 && strcmp(a->user, b->user) == 0;
}

void ssh_summary_add(struct ssh_summary *s, const struct sb_ipc_ssh_event *ev)
{
	for (size_t i = 0; i < s->n && ev->kind != SB_SSH_EV_LOST; i++) {
		if (equal(&s->list[i], ev)) {
			s->list[i].count += ev->count;
			return;
		}
	}
	if (ev->kind == SB_SSH_EV_LOST || s->n == SSH_SUMMARY_MAX)
		s->beyond[ev->allow != 0] += ev->count;
	else
		s->list[s->n++] = *ev;
}

static void what(const struct sb_plan *plan, const struct sb_ipc_ssh_event *ev, char *out, size_t cap)
{
	char fp[SB_SSH_FINGERPRINT] = "";
	const char *comment = comment_of(plan, ev);
	const char *name = comment ? comment : fp;

	if (ev->has_key)
		sb_ssh_fingerprint(ev->key, fp);
	if (ev->kind == SB_SSH_EV_REQUEST)
		(void)snprintf(out, cap, "%s", reason_of(ev) == SB_SSH_REQUEST ? request_name(ev->type)
									       : "a connection");
	else if (ev->kind == SB_SSH_EV_BIND)
		(void)snprintf(out, cap, "a session with %s", ev->host[0] ? ev->host : "a host");
	else if (strncmp(ev->user, "namespace ", 10) == 0)
		(void)snprintf(out, cap, "data for %s with %s", ev->user, name);
	else if (ev->user[0])
		(void)snprintf(out, cap, "a login as %s%s%s with %s", ev->user,
			       ev->host[0] ? " at " : "", ev->host, name);
	else
		(void)snprintf(out, cap, "a signature with %s", name);
}

void ssh_summary_tell(const struct ssh_summary *s, const struct sb_plan *plan,
		      void (*line)(void *arg, const char *text), void *arg)
{
	char text[900];
	char of[600];

	for (size_t i = 0; i < s->n; i++) {
		const struct sb_ipc_ssh_event *ev = &s->list[i];
		char times[32] = "once";

		if (ev->count > 1)
			(void)snprintf(times, sizeof(times), "%llu times",
				       (unsigned long long)ev->count);
		what(plan, ev, of, sizeof(of));
		if (ev->allow)
			(void)snprintf(text, sizeof(text), "ssh agent: signed %s: %s", times, of);
		else
			(void)snprintf(text, sizeof(text), "ssh agent: refused %s: %s (%s)", times, of,
				       sb_ssh_reason_text(reason_of(ev)));
		line(arg, text);
	}
	for (size_t i = 0; i < 2; i++) {
		if (s->beyond[i] == 0)
			continue;
		(void)snprintf(text, sizeof(text), "ssh agent: and %llu more %s",
			       (unsigned long long)s->beyond[i], i ? "signatures" : "refusals");
		line(arg, text);
	}
}
