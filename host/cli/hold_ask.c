/* Questions of a held session: shown at the terminal of one client that says it has one, which holds
 * the output back itself meanwhile and sends no input. */
#include "asking.h"
#include "crypto/crypto.h"
#include "hold_i.h"

static struct hold_client *one_that(struct hold *h, bool shows)
{
	for (size_t i = 0; i < HOLD_CLIENTS; i++) {
		struct hold_client *c = &h->clients[i];

		if (c->h && c->hello && c->asks && (!shows || c->shows))
			return c;
	}
	return NULL;
}

static bool present(void *arg)
{
	struct hold *h = arg;

	return h->r->started && one_that(h, false) != NULL;
}

static int show(void *arg, const struct sb_ipc_appr_question *q)
{
	struct hold_client *c = one_that(arg, false);

	if (!c)
		return -1;
	if (sb_ipc_send(c->sock, SB_IPC_APPR_QUESTION, q, sizeof(*q), NULL, 0) < 0)
		return -1;
	c->shows = true;
	return 0;
}

static void hide(void *arg, uint64_t number)
{
	const struct sb_ipc_appr_closed m = { .number = number };
	struct hold_client *c = one_that(arg, true);

	if (!c)
		return;
	c->shows = false;
	if (sb_ipc_send(c->sock, SB_IPC_APPR_CLOSED, &m, sizeof(m), NULL, 0) < 0)
		hold_client_drop(c);
}

static void decided(void *arg, uint32_t source, uint64_t id, const struct sb_appr_result *res)
{
	const struct hold *h = arg;

	asking_answer(h->r->sock, source, id, res);
}

bool hold_ask_message(struct hold *h, const struct sb_ipc_msg *msg)
{
	if (h->approvals)
		approvals_message(h->approvals, msg);
	return true;
}

void hold_ask_decide(struct hold_client *c, const struct sb_ipc_appr_decide *m)
{
	struct hold *h = c->h;
	struct sb_ipc_failed end = { 0 };
	struct sb_err err = { 0 };

	/* who does not show the question has not seen it */
	if (!h->approvals || !c->shows || m->answer >= SB_APPR_N_ANSWERS)
		return;
	if (approvals_answer(h->approvals, m->number, (enum sb_appr_answer)m->answer,
			     m->pattern[0] ? m->pattern : NULL, "terminal", &err) == 0)
		return;
	end.fail = SB_FAIL_USAGE;
	if (sb_ipc_send(c->sock, SB_IPC_APPR_END, &end, sizeof(end), NULL, 0) < 0)
		hold_client_drop(c);
	approvals_terminal(h->approvals, false);
}

void hold_ask_clients(struct hold *h, bool shown_gone)
{
	if (!h->approvals)
		return;
	if (shown_gone || !one_that(h, false))
		approvals_terminal(h->approvals, false);
	if (one_that(h, false))
		approvals_terminal(h->approvals, true);
}

int hold_ask_open(struct hold *h, struct sb_err *err)
{
	struct run *r = h->r;
	const struct approvals_ui ui = { present, show, hide, decided, h };
	struct approvals_conf c = { 0 };
	uint8_t digest[32];
	int k;

	if (!approvals_wanted(r->plan))
		return 0;
	sb_sha256(r->plan_bytes, r->plan_len, digest);
	k = approvals_conf_read(r->conf.loaded.cfg, &c, err);
	if (k == 0)
		k = approvals_new(r->loop, &r->dirs.d, r->plan, digest, r->session.dir, &c, &ui,
				  &h->approvals, err);
	approvals_conf_done(&c);
	return k;
}

void hold_ask_close(struct hold *h)
{
	h->approvals = approvals_free(h->approvals);
}
