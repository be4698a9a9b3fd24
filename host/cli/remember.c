#include "remember.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "crypto/crypto.h"
#include "hold.h"
#include "launch_i.h"
#include "plan_make.h"
#include "publish.h"
#include "retention.h"
#include "state/session_record.h"

/* The words that there is room for; of a longer list the last one says how many are missing. */
static char *argv_text(char *const *argv)
{
	json_t *a = json_array();
	size_t room = SESSION_ARGV_MAX - 64;
	size_t left = 0;
	char more[40];
	char *s;

	for (; a && *argv; argv++) {
		size_t len = 6 * strlen(*argv) + 3; /* at most, as JSON */

		if (left == 0 && len <= room) {
			room -= len;
			(void)json_array_append_new(a, commands_text(*argv));
		} else {
			left++;
		}
	}
	if (a && left > 0) {
		(void)snprintf(more, sizeof(more), "... and %zu more", left);
		(void)json_array_append_new(a, json_string(more));
	}
	s = a ? json_dumps(a, JSON_COMPACT) : NULL;
	json_decref(a);
	return s;
}

int remember_begin(struct run *r, struct sb_err *err)
{
	sb_autostate struct state *s = NULL;
	sb_autofree char *argv = argv_text(r->plan->argv);
	const struct sb_provider *provider = sb_provider_get(r->plan->provider);
	struct session_record rec = {
		.kind = r->plan->task == SB_TASK_EXPORT ? SESSION_EXPORT
			: r->plan->builder		? SESSION_BUILD
							: SESSION_COMMAND,
		.project = (char *)(uintptr_t)plan_project_host(r->plan),
		.agent = r->hold ? (char *)(uintptr_t)r->hold->agent : NULL,
		.instance = r->plan->instance,
		.provider = provider ? (char *)(uintptr_t)provider->name : NULL,
		.argv = argv,
		.started_ns = sb_real_ns(),
	};
	int k;

	if (!argv)
		return sb_err_set(err, -ENOMEM, "out of memory");
	memcpy(rec.id, r->plan->session, sizeof(rec.id));
	sb_sha256(r->plan_bytes, r->plan_len, rec.plan_sha256);
	k = state_open(&r->dirs.d, &s, err);
	if (k == 0)
		k = session_record_begin(s, &rec, err);
	if (k == 0)
		r->memory = sb_take(&s); /* to open it takes longer than the row */
	return k;
}

static enum session_outcome outcome_of(const struct run *r)
{
	if (!r->done)
		return SESSION_FAILED;
	switch (r->result.fail) {
	case SB_FAIL_NONE:
		return SESSION_ENDED;
	case SB_FAIL_TIMEOUT:
		return SESSION_TIMEOUT;
	case SB_FAIL_CANCELLED:
		return SESSION_CANCELLED;
	default:
		return SESSION_FAILED;
	}
}

/* Old sessions, when there are too many; never waited for. */
static void clear_up(struct run *r, struct state *s)
{
	struct retention limits;
	const char *ignored = NULL;
	char text[200];

	retention_of(r->conf.loaded.cfg, r->opt->config != NULL, &limits, &ignored);
	if (ignored) {
		(void)snprintf(text, sizeof(text), "%s of a project's file is not used: it counts in your own "
			       "configuration alone", ignored);
		launch_say(r, text);
	}
	retention_after(&r->dirs, s, &limits);
}

void remember_end(struct run *r)
{
	sb_autostate struct state *s = sb_take(&r->memory);
	struct sb_err err = { 0 };
	char text[SB_ERR_TEXT_MAX + 64];
	int status = r->done || r->result.fail != SB_FAIL_NONE ? launch_status(r) : SB_EXIT_INTERNAL;
	int k;

	if (!s)
		return;
	k = 0;
	if (r->done && r->result.audit_end > r->result.audit_first)
		k = session_record_audit(s, r->plan->session, (int64_t)r->result.audit_first,
					 (int64_t)r->result.audit_end - 1, &err);
	if (k == 0)
		k = session_record_end(s, r->plan->session, outcome_of(r), status, sb_real_ns(), &err);
	if (k == 0) {
		clear_up(r, s);
	} else {
		(void)snprintf(text, sizeof(text), "how the session ended is not remembered: %s", err.text);
		launch_say(r, text);
	}
	publish_head(&r->dirs.d, r->conf.loaded.cfg, r->plan->session, launch_say, r);
}
