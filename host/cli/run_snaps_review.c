/*
 * Guarded paths that the session made or changed. Quarantine: they are put back as they were before,
 * by the same code as an undo; what the session made of them stays in the snapshot after it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "cli.h"
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

static int put_back(struct run *r, const struct run_snap *v, const char *session, struct sb_err *err)
{
	const struct snaps_act act = { .action = "quarantine", .subject = v->mount->host, .snapshot = v->before,
				       .session = session };
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

static void quarantine_one(struct run *r, size_t i, const char *session)
{
	const struct run_snap *v = &r->snaps->v[i];
	struct sb_err err = { 0 };
	char made[sizeof(v->after)];
	char text[700];
	int k;

	memcpy(made, v->after, sizeof(made));
	k = put_back(r, v, session, &err);
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

void run_snaps_review(struct run *r)
{
	const struct plan_input in = launch_input(r);
	const char *what = r->opt->plan ? "keep" : conf_str(&in, "guarded_paths.changed", "keep");
	bool ask = strcmp(what, "ask") == 0 && at_terminal(r);
	bool unknown = false;

	for (size_t i = 0; i < r->snaps->n; i++)
		unknown = unknown || r->snaps->v[i].unknown;
	if (r->snaps->guarded == 0 && !unknown)
		return;
	if (ask)
		prompt_clean();
	if (r->snaps->guarded > 0)
		show(r);
	if (unknown && strcmp(what, "keep") != 0)
		launch_say(r, "which guarded paths the session changed is not known; they are put back as they were before "
			      "it, unless you keep what is there");
	if (ask && prompt_yes("sendbox: keep them? [y/N] ", REVIEW_MS))
		return;
	if (strcmp(what, "keep") != 0)
		quarantine(r);
}
