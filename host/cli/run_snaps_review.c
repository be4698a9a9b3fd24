/*
 * Guarded paths that the session made or changed. Quarantine: they are put back as they were before,
 * by the same code as an undo; what the session made of them stays in the snapshot after it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "audit_note.h"
#include "base/fd.h"
#include "base/num.h"
#include "cli.h"
#include "core/approval.h"
#include "prompt.h"
#include "run_snaps_i.h"
#include "snaps.h"

#define SHOWN 20
#define REVIEW_MS 600000 /* nobody answers: quarantine */

static void show(struct run *r)
{
	const struct run_snaps *s = r->snaps;
	char text[1200];

	(void)snprintf(text, sizeof(text), "this session made, changed or removed %llu path%s that programs outside "
		       "run or believe; look at %s first:", (unsigned long long)s->guarded, s->guarded == 1 ? "" : "s",
		       s->guarded == 1 ? "it" : "them");
	launch_say(r, text);
	for (size_t i = 0; i < s->n_lines && i < SHOWN; i++) {
		(void)snprintf(text, sizeof(text), "  %.1100s", s->lines[i]);
		launch_say(r, text);
	}
	if (s->guarded > SHOWN) {
		(void)snprintf(text, sizeof(text), "  and %llu more: sendbox diff --guarded",
			       (unsigned long long)(s->guarded - SHOWN));
		launch_say(r, text);
	}
}

/* Whether somebody may be there to answer. */
static bool at_terminal(const struct run *r)
{
	return !r->hold && !r->json && !r->l->quiet && isatty(r->stdio[0]) && isatty(STDERR_FILENO);
}

/* Of those whose names are not at hand: they were too many. */
static uint64_t more_paths(const struct run_snap *v)
{
	return v->guarded - SB_MIN(v->guarded, (uint64_t)v->n_paths);
}

static int put_back(struct run *r, const struct run_snap *v, const char *session, char saved[65], struct sb_err *err)
{
	const struct snaps_act act = { .action = "quarantine", .subject = v->mount->host, .snapshot = v->before,
				       .session = session, .in = r->plan->session, .paths = v->paths,
				       .n_paths = v->n_paths, .saved = saved,
				       .more_paths = more_paths(v) };
	sb_autofd int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct snaps_call c;
	int k;

	snaps_call_init(&c, "restore");
	k = snaps_pair(&c, "--path", v->mount->host);
	if (k == 0)
		k = snaps_pair(&c, "--from", v->before);
	if (k == 0 && v->after[0]) /* else what is there is what it left */
		k = snaps_pair(&c, "--to", v->after);
	if (k == 0)
		k = snaps_word(&c, "--guarded");
	if (k < 0)
		return k;
	c.trees = &v->fd;
	c.n_trees = 1;
	c.out = null;
	c.deaf = true;
	return snaps_restore(&r->dirs, &c, &act, err);
}

/* A quarantine that did not do all is in the exit status, and on record. */
static void not_done(struct run *r, const struct run_snap *v)
{
	struct sb_audit_event e = { .kind = SB_AUDIT_SNAPSHOT, .action = "review", .subject = v->mount->host,
				    .verdict = SB_AUDIT_ERROR,
				    .reason = v->unknown ? "not compared" : "not put back" };
	struct sb_err err = { 0 };

	r->unreviewed = true;
	memcpy(e.session, r->plan->session, sizeof(e.session));
	sb_audit_put(&e, "snapshot", v->before);
	sb_audit_put_num(&e, "guarded", v->guarded);
	sb_audit_put_bool(&e, "unknown", v->unknown);
	if (audit_note(&r->dirs.d, &e, 1, &err) < 0)
		launch_say(r, err.text);
}

static void quarantine_one(struct run *r, size_t i, const char *session)
{
	struct run_snap *v = &r->snaps->v[i];
	struct sb_err err = { 0 };
	char made[sizeof(v->after)];
	char saved[65] = "";
	char text[700];
	int k;

	memcpy(made, v->after, sizeof(made));
	k = put_back(r, v, session, saved, &err);
	if (k >= 0) /* of one that could not be written, the one before anything was put back has it */
		memcpy(v->made, made[0] ? made : saved, sizeof(v->made));
	if (k == 0 && made[0])
		(void)snprintf(text, sizeof(text), "they are in quarantine: the folder has them as they were before; "
			       "sendbox snapshot restore %.12s PATH brings back what the session made", made);
	else if (k == 0)
		(void)snprintf(text, sizeof(text), "guarded paths of %.300s are as they were before; what the session made "
			       "of them is in the newest snapshot of sendbox snapshot ls, if that could be written",
			       v->mount->host);
	else
		(void)snprintf(text, sizeof(text), "quarantine: not all of them could be put back (%.300s); see sendbox "
			       "diff --guarded", err.text[0] ? err.text : "see above");
	launch_say(r, text);
	if (k != 0)
		not_done(r, v);
	if (k >= 0)
		run_snaps_again(r, i);
}

static void quarantine(struct run *r)
{
	const struct run_snaps *s = r->snaps;
	char hex[33];

	sb_hex_write(r->plan->session, sizeof(r->plan->session), hex);
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].guarded > 0 || s->v[i].unknown)
			quarantine_one(r, i, hex);
}

/* --- the question --- */

/* What was said about the guarded paths of @v. */
static int note_one(struct run *r, const struct run_snap *v, const char *by, enum sb_appr_reason why, struct sb_err *err)
{
	struct sb_audit_event e = { .kind = SB_AUDIT_APPROVAL, .action = "answer", .subject = v->mount->host,
				    .verdict = why == SB_APPR_ANSWER_YES ? SB_AUDIT_ALLOW : SB_AUDIT_DENY,
				    .rule = "guarded_paths.changed: ask", .reason = sb_appr_reason_name(why) };
	char words[4096];
	size_t len = 0;

	memcpy(e.session, r->plan->session, sizeof(e.session));
	for (size_t i = 0; i < v->n_paths && strlen(v->paths[i]) < sizeof(words) - len; i++) {
		memcpy(words + len, v->paths[i], strlen(v->paths[i]) + 1);
		len += strlen(v->paths[i]) + 1;
	}
	sb_audit_put(&e, "kind", "guarded-paths");
	sb_audit_put(&e, "by", by);
	if (len > 0) {
		sb_audit_put_list(&e, "paths", words, len);
		sb_audit_put_num(&e, "paths_count", v->n_paths + more_paths(v));
	}
	return audit_note(&r->dirs.d, &e, 1, err);
}

/* The answer is on record before it counts. Return: whether it is. */
static bool note_answer(struct run *r, const char *by, enum sb_appr_reason why)
{
	struct sb_err err = { 0 };
	char text[SB_ERR_TEXT_MAX + 80];

	for (size_t i = 0; i < r->snaps->n; i++) {
		const struct run_snap *v = &r->snaps->v[i];

		if ((v->guarded == 0 && !v->unknown) || note_one(r, v, by, why, &err) == 0)
			continue;
		(void)snprintf(text, sizeof(text), "the answer about guarded paths cannot be recorded: %s", err.text);
		launch_say(r, text);
		return false;
	}
	return true;
}

/* Return: whether they stay. */
static bool asked(struct run *r)
{
	bool yes;

	if (!at_terminal(r)) {
		(void)note_answer(r, "nobody", SB_APPR_NOBODY);
		launch_say(r, "guarded_paths.changed is ask, and nobody was there to be asked (no terminal): that is no");
		return false;
	}
	yes = prompt_yes("sendbox: keep them? [y/N] ", REVIEW_MS);
	/* a yes that is on no record is none */
	return note_answer(r, "terminal", yes ? SB_APPR_ANSWER_YES : SB_APPR_ANSWER_NO) && yes;
}

void run_snaps_review(struct run *r)
{
	const char *what = run_snaps_changed(r);
	const bool ask = strcmp(what, "ask") == 0;
	bool unknown = false;

	for (size_t i = 0; i < r->snaps->n; i++)
		unknown = unknown || r->snaps->v[i].unknown;
	if (r->snaps->guarded == 0 && !unknown)
		return;
	if (ask && at_terminal(r))
		prompt_clean();
	if (r->snaps->guarded > 0)
		show(r);
	if (unknown && strcmp(what, "keep") != 0)
		launch_say(r, "which guarded paths the session changed is not known; they are put back as they were before "
			      "it, unless you keep what is there");
	if (ask && asked(r))
		return;
	if (strcmp(what, "keep") != 0)
		quarantine(r);
}
