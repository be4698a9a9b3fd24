/*
 * Theory of operation. Whatever has come by now is one batch: written in one piece, and when somebody
 * waits for one of its records synced once for all of them. While the disk syncs, the next batch
 * gathers in the socket; so the more wait, the more share a sync. What nobody waits for is in the
 * file at once and gets a head within SIGN_NS. Any failure ends the program: the other side is told,
 * and whoever waits is not answered.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "auditd.h"
#include "base/fd.h"
#include "base/log.h"
#include "os/loop.h"

#define BATCH 256 /* records */
#define SIGN_NS 250000000ULL

struct waiter {
	uint64_t id;
	uint64_t seq;
};

struct batch {
	struct waiter waiting[BATCH];
	size_t n_waiting;
	size_t n;
	bool sync;
	bool sign;
	bool end; /* of the input */
};

static int tell(const struct auditd *a, const struct sb_ipc_audit_done *d)
{
	struct pollfd p = { .fd = a->ipc, .events = POLLOUT };
	int r;

	while ((r = sb_ipc_send(a->ipc, SB_IPC_AUDIT_DONE, d, sizeof(*d), NULL, 0)) == -EAGAIN)
		if (poll(&p, 1, -1) < 0 && errno != EINTR)
			return -errno;
	return r == -EPIPE || r == -ECONNRESET ? 0 : r; /* nobody is left to be told */
}

/* One message. Return: 0; -ENOBUFS: the batch is full, @msg was not used; -EBADMSG; -errno. */
static int take(struct auditd *a, struct batch *b, const struct sb_ipc_msg *msg)
{
	const struct sb_ipc_audit_append *head = (const void *)msg->data;
	struct sb_audit_event e;
	uint64_t seq = 0;
	int r;

	if (msg->type != SB_IPC_AUDIT_APPEND || msg->n_fds != 0 || msg->len < sizeof(*head) ||
	    head->id == 0 || head->wait > SB_IPC_AUDIT_SIGN)
		return -EBADMSG;
	r = sb_audit_unpack(msg->data + sizeof(*head), msg->len - sizeof(*head), &e);
	if (r < 0)
		return r;
	if (e.time_ns == 0)
		e.time_ns = sb_real_ns();
	r = sb_audit_log_put(a->log, &e, &seq);
	if (r < 0)
		return r == -EINVAL ? -EBADMSG : r;
	b->n++;
	if (!a->any)
		a->first = seq;
	a->any = true;
	if (head->wait != SB_IPC_AUDIT_GO_ON)
		b->waiting[b->n_waiting++] = (struct waiter){ head->id, seq };
	b->sync |= head->wait != SB_IPC_AUDIT_GO_ON;
	b->sign |= head->wait == SB_IPC_AUDIT_SIGN;
	return 0;
}

/* What has come, up to a batch. @msg: a message already received. */
static int gather(struct auditd *a, struct batch *b, struct sb_ipc_msg *msg, struct sb_err *err)
{
	int r = sb_audit_log_begin(a->log, err);

	if (r < 0)
		return r;
	for (;;) {
		r = take(a, b, msg);
		sb_ipc_msg_done(msg);
		if (r < 0 || b->n == BATCH)
			break;
		if (sb_audit_log_full(a->log))
			break;
		r = sb_ipc_recv(a->ipc, msg);
		if (r != 0) {
			b->end = r == SB_IPC_EOF;
			r = r == -EAGAIN || r == SB_IPC_EOF ? 0 : r;
			break;
		}
	}
	if (r < 0) {
		sb_audit_log_abort(a->log);
		return sb_err_set(err, r, "a malformed message to the audit log");
	}
	return sb_audit_log_end(a->log, err);
}

static int sign(struct auditd *a, struct sb_audit_head *h, struct sb_err *err)
{
	a->sign_at = 0;
	return sb_audit_log_sign(a->log, h, err);
}

static int batch(struct auditd *a, struct sb_ipc_msg *first, bool *end, struct sb_err *err)
{
	struct batch b = { 0 };
	struct sb_audit_head h = { 0 };
	int r = gather(a, &b, first, err);

	if (r == 0 && b.sign)
		r = sign(a, &h, err);
	else if (r == 0 && b.sync)
		r = sb_audit_log_sync(a->log, err);
	for (size_t i = 0; r == 0 && i < b.n_waiting; i++) {
		struct sb_ipc_audit_done d = { .id = b.waiting[i].id, .seq = b.waiting[i].seq,
					       .first = a->first, .head_n = h.n };

		memcpy(d.head_root, h.root, sizeof(d.head_root));
		r = tell(a, &d);
	}
	if (r == 0 && a->sign_at == 0 && sb_audit_log_unsigned(a->log))
		a->sign_at = sb_now_ns() + SIGN_NS;
	*end = b.end;
	return r;
}

/* Return: 1: readable; 0: it is time for a head; -errno. */
static int wait(const struct auditd *a)
{
	struct pollfd p = { .fd = a->ipc, .events = POLLIN };
	int ms = -1;
	int r;

	if (a->sign_at > 0) {
		uint64_t now = sb_now_ns();

		if (now >= a->sign_at)
			return 0;
		ms = (int)((a->sign_at - now) / 1000000 + 1);
	}
	r = poll(&p, 1, ms);
	return r < 0 && errno != EINTR ? -errno : r > 0;
}

static int serve(struct auditd *a, struct sb_err *err)
{
	struct sb_ipc_audit_done last = { 0 };
	struct sb_audit_head h = { 0 };
	bool end = false;
	int r = 0;

	while (r == 0 && !end) {
		struct sb_ipc_msg msg;
		int k = wait(a);

		if (k <= 0) {
			r = k < 0 ? sb_err_set(err, k, "poll: errno %d", -k)
			    : a->sign_at > 0 && sb_now_ns() >= a->sign_at ? sign(a, NULL, err)
									  : 0;
			continue;
		}
		msg.n_fds = 0;
		k = sb_ipc_recv(a->ipc, &msg);
		if (k == -EAGAIN)
			continue;
		if (k == SB_IPC_EOF)
			break;
		if (k < 0)
			return sb_err_set(err, k, "a malformed message to the audit log");
		r = batch(a, &msg, &end, err);
	}
	if (r == 0)
		r = sign(a, &h, err);
	if (r < 0)
		return r;
	last.head_n = h.n;
	memcpy(last.head_root, h.root, sizeof(last.head_root));
	return tell(a, &last);
}

int auditd_serve(struct auditd *a)
{
	struct sb_err err = { 0 };
	int r = serve(a, &err);

	if (r < 0) {
		struct sb_ipc_audit_done d = { .fail = (uint32_t)-r };

		(void)snprintf(d.text, sizeof(d.text), "%.390s", err.code ? err.text : strerror(-r));
		sb_log("%s", d.text);
		if (tell(a, &d) < 0)
			sb_debug("nobody was told");
	}
	return r;
}
