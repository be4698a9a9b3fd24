/*
 * Theory of operation. A question comes from the monitor; the state machine opens it and wants it on
 * the terminal. Then the channel process is told to hold the session's descriptors (HOLD) and says
 * when it does (HELD): from then on no byte of the program reaches the terminal, and none that is
 * typed reaches the program. Only then the prompt is drawn. After the answer the hold ends.
 */
#include "asking.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli.h"
#include "crypto/crypto.h"
#include "launch_i.h"
#include "prompt.h"
#include "term.h"

#define HELD_NS 3000000000ULL /* for the channel process to say that it holds */

struct asking {
	struct run *r;
	struct approvals *a;
	struct prompt *prompt;
	struct sb_ipc_appr_question q; /* that is to be shown; number 0 = none */
	uint32_t nonce;
	bool answering;
	struct sb_timer late;
};

void asking_answer(int sock, uint32_t source, uint64_t id, const struct sb_appr_result *res)
{
	const struct sb_ipc_appr_answer m = { .id = id,
					      .source = source,
					      .allow = res->verdict == SB_APPR_ALLOWED,
					      .reason = (uint32_t)res->reason,
					      .grant = res->grant };

	if (sock >= 0 && sb_ipc_send(sock, SB_IPC_APPR_ANSWER, &m, sizeof(m), NULL, 0) < 0)
		sb_debug("an answer was lost");
}

static void hold(struct asking *k, bool on)
{
	struct sb_ipc_hold m = { .on = on, .nonce = ++k->nonce };

	if (k->r->sock >= 0 && sb_ipc_send(k->r->sock, SB_IPC_HOLD, &m, sizeof(m), NULL, 0) < 0)
		sb_debug("hold was not sent");
}

/* A program that draws the whole screen does so again when its size changes. */
static void redraw(struct asking *k)
{
	struct sb_ipc_resize m = { 0 };

	if (!k->r->plan->tty || k->r->sock < 0)
		return;
	cli_term_size(k->r->stdio[1], &m.rows, &m.cols);
	m.cols = (uint16_t)(m.cols > 1 ? m.cols - 1 : m.cols + 1);
	for (int i = 0; i < 2; i++) {
		if (sb_ipc_send(k->r->sock, SB_IPC_RESIZE, &m, sizeof(m), NULL, 0) < 0)
			return;
		cli_term_size(k->r->stdio[1], &m.rows, &m.cols);
	}
}

static bool present(void *arg)
{
	const struct asking *k = arg;

	return k->r->started && !k->r->json && !k->r->l->quiet && cli_term_can_ask();
}

static void over(struct asking *k, const char *why)
{
	sb_timer_del(&k->late);
	if (k->q.number == 0)
		return;
	k->prompt = prompt_free(k->prompt, why);
	k->q.number = 0;
	hold(k, false);
	redraw(k);
}

static void on_answer(void *arg, uint64_t number, enum sb_appr_answer answer, const char *pattern)
{
	struct asking *k = arg;
	struct sb_err err = { 0 };
	char text[SB_APPR_PATTERN_MAX + 1];

	(void)snprintf(text, sizeof(text), "%s", pattern ? pattern : ""); /* the prompt goes meanwhile */
	k->answering = true;
	if (approvals_answer(k->a, number, answer, pattern ? text : NULL, "terminal", &err) < 0) {
		over(k, NULL);
		cli_error("%s", err.text);
		approvals_terminal(k->a, false); /* refused, unless somebody else can answer */
	}
	k->answering = false;
}

static void on_lost(void *arg, uint64_t number)
{
	struct asking *k = arg;

	(void)number;
	over(k, NULL);
	approvals_terminal(k->a, false);
}

static void on_late(struct sb_timer *t)
{
	on_lost(t->owner, 0);
}

static int show(void *arg, const struct sb_ipc_appr_question *q)
{
	struct asking *k = arg;

	if (!present(k))
		return -ENOTTY;
	k->q = *q;
	hold(k, true);
	sb_timer_set(k->r->loop, &k->late, HELD_NS, on_late, k);
	return 0;
}

static void hide(void *arg, uint64_t number)
{
	struct asking *k = arg;

	if (k->q.number == number)
		over(k, k->prompt && !k->answering ? "sendbox: decided elsewhere, or too late" : NULL);
}

static void decided(void *arg, uint32_t source, uint64_t id, const struct sb_appr_result *res)
{
	const struct asking *k = arg;

	asking_answer(k->r->sock, source, id, res);
}

static void on_held(struct asking *k, const struct sb_ipc_hold *m)
{
	const struct prompt_conf c = { .loop = k->r->loop, .answer = on_answer, .lost = on_lost, .arg = k };

	if (!m || m->on != 1 || m->nonce != k->nonce || k->q.number == 0 || k->prompt)
		return;
	sb_timer_del(&k->late);
	if (prompt_show(&c, &k->q, &k->prompt) < 0)
		on_lost(k, 0);
}

bool asking_message(struct asking *k, const struct sb_ipc_msg *msg)
{
	if (msg->type != SB_IPC_APPR_ASK && msg->type != SB_IPC_HELD)
		return false;
	if (!k) /* the monitor does not ask for a plan that never asks */
		return true;
	if (msg->type == SB_IPC_APPR_ASK)
		approvals_message(k->a, msg);
	else
		on_held(k, sb_ipc_get(msg, sizeof(struct sb_ipc_hold), 0));
	return true;
}

int asking_new(struct run *r, struct asking **ret, struct sb_err *err)
{
	struct approvals_conf c = { 0 };
	struct asking *k;
	struct approvals_ui ui = { present, show, hide, decided, NULL };
	uint8_t digest[32];
	int n;

	*ret = NULL;
	if (!approvals_wanted(r->plan))
		return 0;
	k = calloc(1, sizeof(*k));
	if (!k)
		return sb_err_set(err, -ENOMEM, "out of memory");
	k->r = r;
	ui.arg = k;
	sb_sha256(r->plan_bytes, r->plan_len, digest);
	n = approvals_conf_read(r->conf.loaded.cfg, &c, err);
	if (n == 0)
		n = approvals_new(r->loop, &r->dirs.d, r->plan, digest, r->session.dir, &c, &ui, &k->a,
				  err);
	approvals_conf_done(&c);
	if (n < 0) {
		free(k);
		return n;
	}
	*ret = k;
	return 0;
}

struct asking *asking_free(struct asking *k)
{
	if (!k)
		return NULL;
	over(k, NULL);
	k->r->started = false; /* nobody is asked any more */
	k->a = approvals_free(k->a);
	free(k);
	return NULL;
}
