/* The command that `run` is about to start: there is no session yet. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "asking.h"
#include "crypto/crypto.h"
#include "prompt.h"
#include "term.h"

struct one {
	struct sb_loop *loop;
	struct approvals *a;
	struct prompt *prompt;
	bool terminal;
	bool done;
	struct sb_appr_result res;
};

static bool present(void *arg)
{
	const struct one *o = arg;

	return o->terminal && cli_term_can_ask();
}

static void on_answer(void *arg, uint64_t number, enum sb_appr_answer answer, const char *pattern)
{
	struct one *o = arg;
	char text[SB_APPR_PATTERN_MAX + 1];
	struct sb_err err = { 0 };

	(void)snprintf(text, sizeof(text), "%s", pattern ? pattern : "");
	if (approvals_answer(o->a, number, answer, pattern ? text : NULL, "terminal", &err) < 0)
		approvals_terminal(o->a, false);
}

static void on_lost(void *arg, uint64_t number)
{
	struct one *o = arg;

	(void)number;
	o->prompt = prompt_free(o->prompt, NULL);
	approvals_terminal(o->a, false);
}

static int show(void *arg, const struct sb_ipc_appr_question *q)
{
	struct one *o = arg;
	const struct prompt_conf c = { .loop = o->loop, .answer = on_answer, .lost = on_lost, .arg = o };

	return prompt_show(&c, q, &o->prompt);
}

static void hide(void *arg, uint64_t number)
{
	struct one *o = arg;

	(void)number;
	o->prompt = prompt_free(o->prompt, NULL);
}

static void decided(void *arg, uint32_t source, uint64_t id, const struct sb_appr_result *res)
{
	struct one *o = arg;

	(void)source, (void)id;
	o->res = *res;
	o->done = true;
	sb_loop_stop(o->loop, 0);
}

/* There is no session that could be watched, or wait. */
static const char *remedy_of(const struct sb_appr_result *res, bool hook)
{
	if (res->reason != SB_APPR_NOBODY)
		return NULL;
	return hook ? "run it at a terminal; approvals.hook leaves it to people" : "run it at a terminal, or set approvals.hook";
}

int asking_command(const struct sb_dirs *d, const struct sb_plan *plan, const struct cfg *cfg,
		   const char *rule, bool terminal, const char *const *env, size_t n_env, struct sb_err *err)
{
	struct approvals_conf c = { 0 };
	struct one o = { .terminal = terminal };
	const struct approvals_ui ui = { present, show, hide, decided, &o };
	char *subject = malloc(SB_APPR_SUBJECT_MAX + 1);
	char text[SB_APPR_RULE_MAX + 1];
	bool hook;
	uint8_t none[32] = { 1 }; /* there is no session that a grant could be for */
	int r = subject ? 0 : sb_err_set(err, -ENOMEM, "out of memory");

	if (r == 0 && approvals_words((const char *const *)plan->argv, env, n_env, subject) < 0)
		r = sb_err_set(err, -EACCES, ASKING_TOO_LONG);
	if (r == 0)
		r = sb_loop_new(&o.loop);
	if (r == 0)
		r = approvals_conf_read(cfg, &c, err);
	hook = c.hook[0] != NULL;
	/* nobody knows of it but this terminal and the hook */
	c.appr.session_grants = c.appr.pattern_grants = false;
	if (c.appr.mode == SB_APPR_MODE_WAIT)
		c.appr.mode = SB_APPR_MODE_AUTO;
	if (r == 0)
		r = approvals_new(o.loop, d, plan, none, -1, &c, &ui, &o.a, err);
	if (r == 0) {
		approvals_escape(rule, text, sizeof(text));
		approvals_ask(o.a, APPROVALS_FROM_COMMAND, 1, SB_APPR_COMMAND, subject, text);
		r = o.done ? 0 : sb_loop_run(o.loop);
		if (r == 0 && o.res.verdict != SB_APPR_ALLOWED)
			r = approvals_refused(&o.res, subject, text, remedy_of(&o.res, hook), err);
	}
	(void)approvals_free(o.a);
	(void)prompt_free(o.prompt, NULL);
	approvals_conf_done(&c);
	(void)sb_loop_free(o.loop);
	free(subject);
	return r;
}
