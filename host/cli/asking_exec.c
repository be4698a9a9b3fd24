/*
 * One more command of a running session: the session's own state machine decides, with its settings, its
 * grants, its hook and those who watch. On one connection the command is asked for; where there is a terminal a
 * second one watches, so that the question shows here, too.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "approvals_client.h"
#include "asking.h"
#include "base/fd.h"
#include "base/log.h"
#include "cli.h"
#include "prompt.h"
#include "term.h"

#define SLOW_NS 300000000ULL /* a hook or a grant is faster */

struct joined {
	struct sb_loop *loop;
	int ask;   /* owned */
	int watch; /* owned; -1 = nobody sits here, or not any more */
	struct sb_io ask_io;
	struct sb_io watch_io;
	struct prompt *prompt;
	uint64_t shown;      /* number of its question */
	struct sb_ipc_appr_question open; /* the same, as the session lists it; number 0 = none */
	struct sb_timer slow;
	char session[9];     /* first digits of its id */
	const char *subject; /* borrowed */
	const char *rule;    /* borrowed */
	bool done;
	struct sb_appr_result res;
};

/* Nobody sits here any more. */
static void leave(struct joined *o)
{
	sb_io_del(&o->watch_io);
	sb_fd_close(&o->watch);
	o->prompt = prompt_free(o->prompt, NULL);
}

static void on_lost(void *arg, uint64_t number)
{
	(void)number;
	leave(arg);
}

static void on_answer(void *arg, uint64_t number, enum sb_appr_answer answer, const char *pattern)
{
	struct joined *o = arg;
	char text[SB_APPR_PATTERN_MAX + 1];
	struct sb_err err = { 0 };
	int r;

	(void)snprintf(text, sizeof(text), "%s", pattern ? pattern : ""); /* the prompt goes meanwhile */
	o->prompt = prompt_free(o->prompt, NULL);
	r = approvals_decide(o->watch, number, answer, text[0] ? text : NULL, NULL, &err);
	if (r == 0 || r == -ESTALE) /* somebody else was faster: that counts */
		return;
	cli_error("%s", err.text);
	leave(o);
}

static bool is_ours(const struct joined *o, const struct sb_ipc_appr_question *q)
{
	return q && q->kind == SB_APPR_COMMAND && memchr(q->subject, 0, sizeof(q->subject)) &&
	       memchr(q->rule, 0, sizeof(q->rule)) && strcmp(q->subject, o->subject) == 0 &&
	       strcmp(q->rule, o->rule) == 0;
}

/* Return: 0; 1: the list is complete; -errno. */
static int take(struct joined *o, const struct sb_ipc_msg *msg)
{
	const struct prompt_conf c = { .loop = o->loop, .answer = on_answer, .lost = on_lost, .arg = o };
	const struct sb_ipc_appr_question *q;
	const struct sb_ipc_appr_closed *end;

	switch (msg->type) {
	case SB_IPC_APPR_QUESTION:
		q = sb_ipc_get(msg, sizeof(*q), 0);
		if (!is_ours(o, q) || o->prompt)
			return q ? 0 : -EBADMSG;
		o->shown = q->number;
		return prompt_show(&c, q, &o->prompt);
	case SB_IPC_APPR_CLOSED:
		end = sb_ipc_get(msg, sizeof(*end), 0);
		if (end && end->number == o->shown)
			o->prompt = prompt_free(o->prompt, "sendbox: decided elsewhere, or too late");
		return end ? 0 : -EBADMSG;
	case SB_IPC_APPR_END:
		return 1;
	default:
		return -EBADMSG;
	}
}

static int next(struct joined *o)
{
	sb_automsg struct sb_ipc_msg msg = { 0 };
	int r = sb_ipc_recv(o->watch, &msg);

	return r == 0 ? take(o, &msg) : r < 0 ? r : -EPIPE;
}

static void on_watch(struct sb_io *io, uint32_t events)
{
	struct joined *o = io->owner;

	(void)events;
	if (next(o) < 0)
		leave(o);
}

static void on_slow(struct sb_timer *t)
{
	const struct joined *o = t->owner;

	if (o->prompt) /* it shows here */
		return;
	cli_error("waits until somebody answers: sendbox approve %s:%llu (or deny), within %llu s", o->session,
		  (unsigned long long)o->open.number, (unsigned long long)(o->open.left_ms + 999) / 1000);
}

/* Which question it is that the command waits for. */
static void on_question(struct joined *o, const struct sb_ipc_appr_question *q)
{
	if (!is_ours(o, q) || o->open.number != 0)
		return;
	o->open = *q;
	sb_timer_set(o->loop, &o->slow, SLOW_NS, on_slow, o);
}

static void on_decided(struct sb_io *io, uint32_t events)
{
	struct joined *o = io->owner;
	sb_automsg struct sb_ipc_msg msg = { 0 };
	const struct sb_ipc_appr_closed *m = NULL;

	(void)events;
	if (sb_ipc_recv(o->ask, &msg) == 0) {
		if (msg.type == SB_IPC_APPR_QUESTION || msg.type == SB_IPC_APPR_END) {
			on_question(o, msg.type == SB_IPC_APPR_QUESTION ? sb_ipc_get(&msg, sizeof(o->open), 0) : NULL);
			return;
		}
		if (msg.type == SB_IPC_APPR_CLOSED)
			m = sb_ipc_get(&msg, sizeof(*m), 0);
	}
	o->res = (struct sb_appr_result){ .reason = SB_APPR_ENDED };
	if (m)
		o->res = (struct sb_appr_result){ .verdict = m->allow == 1 ? SB_APPR_ALLOWED : SB_APPR_REFUSED,
						  .reason = (enum sb_appr_reason)m->reason,
						  .grant = m->grant };
	o->done = true;
	sb_loop_stop(o->loop, 0);
}

/* Before it is asked for, so that somebody is there. */
static int sit_down(struct joined *o, int session_dir)
{
	const struct sb_ipc_appr_watch m = { .follow = 1 };
	int r = approvals_connect(session_dir, &o->watch);

	if (r == 0)
		r = sb_ipc_send(o->watch, SB_IPC_APPR_WATCH, &m, sizeof(m), NULL, 0);
	while (r == 0)
		r = next(o);
	return r < 0 ? r : sb_io_set(o->loop, &o->watch_io, o->watch, EPOLLIN, on_watch, o);
}

static int ask(struct joined *o, int session_dir)
{
	const struct sb_ipc_appr_watch list = { .follow = 0 };
	struct sb_ipc_appr_ask m = { .kind = SB_APPR_COMMAND };
	int r = approvals_connect(session_dir, &o->ask);

	(void)snprintf(m.subject, sizeof(m.subject), "%s", o->subject);
	(void)snprintf(m.rule, sizeof(m.rule), "%s", o->rule);
	if (r == 0)
		r = sb_io_set(o->loop, &o->ask_io, o->ask, EPOLLIN, on_decided, o);
	if (r == 0)
		r = sb_ipc_send(o->ask, SB_IPC_APPR_NEW, &m, sizeof(m), NULL, 0);
	/* and what is open then, to say what it waits for */
	if (r == 0 && sb_ipc_send(o->ask, SB_IPC_APPR_WATCH, &list, sizeof(list), NULL, 0) < 0)
		sb_debug("the question is not shown"); /* decided or not, the answer to the first comes all the same */
	return r;
}

int asking_exec(int session_dir, const struct sb_plan *plan, const char *rule, bool terminal,
		const char *const *env, size_t n_env, struct sb_err *err)
{
	char text[SB_APPR_RULE_MAX + 1];
	sb_autofree char *subject = malloc(SB_APPR_SUBJECT_MAX + 1);
	struct joined o = { .ask = -1, .watch = -1, .subject = subject, .rule = text };
	int r;

	if (!subject)
		return sb_err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < 4; i++)
		(void)snprintf(o.session + 2 * i, 3, "%02x", plan->session[i]);
	approvals_escape(rule, text, sizeof(text));
	if (approvals_words((const char *const *)plan->argv, env, n_env, subject) < 0)
		return sb_err_set(err, -EACCES, ASKING_TOO_LONG);
	r = sb_loop_new(&o.loop);
	if (r == 0 && terminal && cli_term_can_ask() && sit_down(&o, session_dir) < 0)
		leave(&o);
	if (r == 0)
		r = ask(&o, session_dir);
	if (r == 0 && !o.done)
		r = sb_loop_run(o.loop);
	leave(&o);
	sb_timer_del(&o.slow);
	sb_io_del(&o.ask_io);
	sb_fd_close(&o.ask);
	o.loop = sb_loop_free(o.loop);
	if (r < 0)
		return sb_err_set(err, -EACCES, "command refused: a rule asks first, and the session takes no "
						"questions: %s", strerror(-r));
	if (o.res.verdict == SB_APPR_ALLOWED)
		return 0;
	return approvals_refused(&o.res, subject, text, NULL, err);
}
