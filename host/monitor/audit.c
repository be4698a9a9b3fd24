/*
 * The monitor's side of the audit log. Every event of the session passes here on its way to the
 * command line, so this is where it is recorded, with the word of who said it. The writer is started
 * with the session, beside everything else; the command is not started before the plan's record is
 * durable. Whatever the writer cannot do ends the session: SB_FAIL_AUDIT.
 *
 * Events that nobody waits for go as fast as the writer takes them, up to a budget of each minute. When it does
 * not take them, this process waits for it for a moment, then counts. One record "lost" for each minute says how many
 * of which kind were only counted; it is sent until it is taken, and a session that cannot leave it fails.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "audit.h"
#include "base/fd.h"
#include "base/log.h"

#define LOST_WAIT_MS 200
#define WAIT_MS 10000
#define AGAIN_NS 100000000ULL
#define CLOSE_NS (20 * 1000000000ULL) /* for the last sync */

struct waiter {
	struct waiter *next;
	uint64_t id;
	mon_audit_fn *fn;
	void *arg;
};

static void fail(struct monitor *m, const char *why)
{
	char text[480];

	(void)snprintf(text, sizeof(text), "nothing can be recorded, so nothing goes on: %s", why);
	if (m->audit.broken)
		return;
	m->audit.broken = true;
	if (m->state < MON_REAPING)
		mon_end(m, SB_FAIL_AUDIT, text);
	else
		mon_fail_late(m, SB_FAIL_AUDIT, text);
}

static void drop_waiters(struct monitor *m)
{
	while (m->audit.waiters) {
		struct waiter *w = m->audit.waiters;

		m->audit.waiters = w->next;
		w->fn(m, w->arg, false);
		free(w);
	}
}

/* ---- the writer's answers ---- */

static void on_done(struct monitor *m, const struct sb_ipc_audit_done *d)
{
	struct waiter **at = &m->audit.waiters;
	char text[sizeof(d->text) + 1];

	if (d->fail != 0) {
		memcpy(text, d->text, sizeof(d->text));
		text[sizeof(d->text)] = '\0';
		fail(m, text[0] ? text : strerror((int)d->fail));
		return;
	}
	if (d->head_n > 0) {
		m->done.head_n = d->head_n;
		memcpy(m->done.head_root, d->head_root, sizeof(m->done.head_root));
		if (m->audit.closing) /* everything of ours is in it */
			m->done.audit_end = SB_MAX(m->done.audit_end, d->head_n);
	}
	while (*at && (*at)->id != d->id)
		at = &(*at)->next;
	if (*at) {
		struct waiter *w = *at;

		*at = w->next;
		m->done.audit_first = d->first;
		m->done.audit_end = SB_MAX(m->done.audit_end, d->seq + 1);
		w->fn(m, w->arg, true);
		free(w);
	}
}

/* Return: whether there may be more. */
static bool receive(struct monitor *m)
{
	sb_automsg struct sb_ipc_msg msg = { 0 };
	const struct sb_ipc_audit_done *d;
	int r = sb_ipc_recv(m->audit.sock, &msg);

	if (r == -EAGAIN)
		return false;
	d = r == 0 && msg.type == SB_IPC_AUDIT_DONE ? sb_ipc_get(&msg, sizeof(*d), 0) : NULL;
	if (d) {
		on_done(m, d);
		return true;
	}
	sb_io_del(&m->audit.io);
	if (r != SB_IPC_EOF)
		fail(m, "the audit writer sent a malformed message");
	return false;
}

static void on_writer(struct sb_io *io, uint32_t events)
{
	(void)events;
	(void)receive(io->owner);
}

/* ---- sending ---- */

static int send_one(struct monitor *m, const struct sb_audit_event *e, uint8_t wait, int ms,
		    uint64_t *ret_id)
{
	struct sb_audit_event mine = *e;
	struct sb_ipc_audit_append head = { .id = m->audit.next_id + 1, .wait = wait };
	struct pollfd p = { .fd = m->audit.sock, .events = POLLOUT };
	uint8_t msg[sizeof(head) + SB_AUDIT_PACK_MAX];
	int n;
	int r;

	_Static_assert(sizeof(msg) <= SB_IPC_MAX_LEN, "an event fits in a message");
	if (m->audit.sock < 0 || m->audit.broken)
		return -EPIPE;
	memcpy(mine.session, m->plan->session, sizeof(mine.session));
	if (mine.time_ns == 0)
		mine.time_ns = sb_real_ns();
	memcpy(msg, &head, sizeof(head));
	n = sb_audit_pack(&mine, msg + sizeof(head));
	if (n < 0)
		return n;
	for (;;) {
		r = sb_ipc_send(m->audit.sock, SB_IPC_AUDIT_APPEND, msg, sizeof(head) + (size_t)n, NULL,
				0);
		if (r != -EAGAIN)
			break;
		if (ms == 0 || poll(&p, 1, ms) <= 0)
			return -EAGAIN;
		ms = 0;
	}
	if (r == 0)
		*ret_id = ++m->audit.next_id;
	return r;
}

/* ---- what is only counted ---- */

static void on_tell(struct sb_timer *t);

/* One record of all that was counted. Return: whether there is nothing more to tell. */
static bool tell_lost(struct monitor *m, int ms)
{
	struct mon_audit *a = &m->audit;
	struct sb_audit_event e = { .kind = SB_AUDIT_SESSION, .action = "lost",
				    .verdict = a->lost_deny > 0 ? SB_AUDIT_DENY : SB_AUDIT_NONE,
				    .reason = a->busy > 0 ? "the audit writer was busy"
							  : "more than is recorded in a minute" };
	uint64_t sum = 0;
	uint64_t id;

	for (int k = 0; k < SB_AUDIT_KINDS; k++) {
		if (a->lost[k] > 0)
			sb_audit_put_num(&e, sb_audit_kind_name((enum sb_audit_kind)k), a->lost[k]);
		sum += a->lost[k];
	}
	if (sum == 0)
		return true;
	sb_audit_put_num(&e, "count", sum);
	sb_audit_put_num(&e, "deny", a->lost_deny);
	if (send_one(m, &e, SB_IPC_AUDIT_GO_ON, ms, &id) < 0)
		return false;
	sb_timer_del(&a->tell);
	memset(a->lost, 0, sizeof(a->lost));
	a->lost_deny = a->busy = 0;
	a->losing = false;
	return true;
}

static void on_tell(struct sb_timer *t)
{
	struct monitor *m = t->owner;

	if (!m->audit.broken && !tell_lost(m, 0))
		sb_timer_set(m->loop, &m->audit.tell, AGAIN_NS, on_tell, m);
}

/* Counted instead. @busy: told as soon as the writer takes it; else at the end of the minute. */
static void lose(struct monitor *m, const struct sb_audit_event *e, bool busy)
{
	struct mon_audit *a = &m->audit;
	uint64_t n = mon_audit_count(e);
	uint64_t due = busy ? AGAIN_NS : a->budget.began_ns + SB_AUDIT_MINUTE_NS - sb_now_ns();

	a->lost[e->kind] += n;
	a->lost_deny += e->verdict == SB_AUDIT_DENY ? n : 0;
	a->busy += busy ? n : 0;
	if (busy || !a->tell.active)
		sb_timer_set(m->loop, &a->tell, SB_MIN(due, SB_AUDIT_MINUTE_NS), on_tell, m);
}

static enum sb_audit_class class_of(const struct sb_audit_event *e)
{
	switch (e->kind) {
	case SB_AUDIT_NETWORK:
		return strcmp(e->action, "resolve") == 0 ? SB_AUDIT_CLASS_RESOLVE : SB_AUDIT_CLASS_NETWORK;
	case SB_AUDIT_SSH:
		return SB_AUDIT_CLASS_SSH;
	case SB_AUDIT_COMMAND:
		return SB_AUDIT_CLASS_COMMAND;
	case SB_AUDIT_KIND_NONE:
	case SB_AUDIT_SESSION:
	case SB_AUDIT_PLAN:
	case SB_AUDIT_FILE:
	case SB_AUDIT_SECRET:
	case SB_AUDIT_APPROVAL:
	case SB_AUDIT_POLICY:
	case SB_AUDIT_SNAPSHOT:
	case SB_AUDIT_PROVENANCE:
	case SB_AUDIT_KEY:
	case SB_AUDIT_KINDS:
	default: /* a few each, of the host */
		return SB_AUDIT_CLASS_FREE;
	}
}

static bool in_budget(struct monitor *m, const struct sb_audit_event *e)
{
	const char *const by[] = { sb_audit_kind_name(e->kind), e->action, e->rule, e->reason };
	uint8_t packed[SB_AUDIT_PACK_MAX];
	int n = sb_audit_pack(e, packed);

	return sb_audit_budget_take(&m->audit.budget, class_of(e), n > 0 ? (size_t)n : sizeof(packed),
				    e->verdict == SB_AUDIT_DENY ? sb_audit_budget_mark(by, SB_ARRAY_LEN(by)) : 0,
				    sb_now_ns());
}

void mon_audit(struct monitor *m, const struct sb_audit_event *e)
{
	uint64_t id;
	int r;

	if (m->audit.broken)
		return;
	if (!in_budget(m, e)) {
		lose(m, e, false);
		return;
	}
	r = send_one(m, e, SB_IPC_AUDIT_GO_ON, m->audit.losing ? 0 : LOST_WAIT_MS, &id);
	if (r == -EAGAIN) {
		lose(m, e, true);
		m->audit.losing = true;
	} else if (r < 0) {
		fail(m, r == -EPIPE ? "the audit writer is gone" : strerror(-r));
	} else {
		m->audit.losing = false;
	}
}

int mon_audit_wait(struct monitor *m, const struct sb_audit_event *e, uint8_t wait,
		   mon_audit_fn *fn, void *arg)
{
	struct waiter **at = &m->audit.waiters;
	struct waiter *w = calloc(1, sizeof(*w));
	int r = w ? 0 : -ENOMEM;

	if (r == 0 && m->audit.broken)
		r = -EPIPE;
	if (r == 0)
		r = send_one(m, e, wait, WAIT_MS, &w->id);
	if (r < 0) {
		free(w);
		fail(m, r == -EPIPE ? "the audit writer is gone"
		     : r == -EAGAIN ? "the audit writer does not answer"
						       : strerror(-r));
		return r;
	}
	w->fn = fn;
	w->arg = arg;
	while (*at)
		at = &(*at)->next;
	*at = w;
	return 0;
}

/* ---- life ---- */

static void on_plan_recorded(struct monitor *m, void *arg, bool ok)
{
	(void)arg;
	if (!ok)
		return;
	m->audit.ready = true;
	mon_recorded(m);
}

int mon_audit_open(struct monitor *m, struct sb_err *err)
{
	static const char *const argv[] = { "sendbox-auditd", NULL };
	const int fds[2] = { m->audit.dir, m->audit.key };
	sb_autofd int theirs = -1;
	int sv[2];
	int r;

	if (m->audit.dir < 0)
		return sb_err_set(err, -EINVAL, "no audit log was handed over");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		return sb_err_set(err, -errno, "socketpair: %s", strerror(errno));
	m->audit.sock = sv[0];
	theirs = sv[1];
	r = sb_fd_set_nonblock(m->audit.sock, true);
	if (r == 0)
		r = sb_io_set(m->loop, &m->audit.io, m->audit.sock, EPOLLIN, on_writer, m);
	if (r < 0)
		return sb_err_set(err, r, "the audit writer's socket: %s", strerror(-r));
	r = mon_spawn(m, &m->audit.child, "audit writer", argv, theirs, fds, 2, err);
	sb_fd_close(&m->audit.dir);
	sb_fd_close(&m->audit.key);
	if (r < 0)
		return r;
	return mon_audit_plan(m, on_plan_recorded, err);
}

void mon_audit_ended(struct monitor *m, const char *what)
{
	while (m->audit.sock >= 0 && receive(m))
		continue;
	sb_io_del(&m->audit.io);
	if (!m->audit.closing)
		fail(m, what);
	drop_waiters(m);
}

static void on_late(struct sb_timer *t)
{
	struct monitor *m = t->owner;

	fail(m, "the disk took too long");
	mon_kill(&m->audit.child);
}

bool mon_audit_close(struct monitor *m)
{
	if (m->audit.child.pid <= 0)
		return true;
	if (m->audit.closing)
		return false;
	sb_timer_del(&m->audit.tell);
	if (!m->audit.broken && !tell_lost(m, WAIT_MS))
		fail(m, "the audit writer does not answer");
	m->audit.closing = true;
	if (shutdown(m->audit.sock, SHUT_WR) < 0)
		mon_kill(&m->audit.child);
	sb_timer_set(m->loop, &m->audit.late, CLOSE_NS, on_late, m);
	return false;
}

void mon_audit_done(struct monitor *m)
{
	sb_timer_del(&m->audit.late);
	sb_timer_del(&m->audit.tell);
	sb_io_del(&m->audit.io);
	drop_waiters(m);
	sb_fd_close(&m->audit.sock);
	sb_fd_close(&m->audit.dir);
	sb_fd_close(&m->audit.key);
}
