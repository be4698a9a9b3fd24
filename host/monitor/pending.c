/*
 * Theory of operation. A gate that is about to do something that has to be on record first says what
 * it is (GATE_PENDING), does nothing, and goes on when it is answered:
 *
 *	ASKED (verdict ask) -> somebody decides -> RECORDING -> the record is durable -> ANSWERED
 *	                                      \-> refused: recorded, ANSWERED
 *
 * Several wait at once and are answered in any order. A record that cannot be written ends the
 * session, and nobody is answered. How many may wait is bounded: beyond that a gate is answered with a
 * refusal.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "audit.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/num.h"
#include "core/net_policy.h"
#include "core/ssh_policy.h"
#include "wire/exec_req.h"

#define PENDING_MAX 4096
#define GATE_WAIT_MS 1000
#define ALLOW 1
#define ASK 2

enum source { FROM_NET = 1, FROM_SSH, FROM_CLI };

struct pending {
	enum source source;
	uint64_t id; /* the gate's */
	struct sb_ipc_net_event net;
	struct sb_ipc_ssh_event ssh;
	struct sb_ipc_run run;
	int fds[4]; /* owned; FROM_CLI */
};

static struct pending *pending_free(struct pending *p)
{
	if (p)
		for (size_t i = 0; i < SB_ARRAY_LEN(p->fds); i++)
			sb_fd_close(&p->fds[i]);
	free(p);
	return NULL;
}

static struct pending *pending_new(struct monitor *m, enum source source, uint64_t id)
{
	struct pending *p = m->n_pending < PENDING_MAX ? calloc(1, sizeof(*p)) : NULL;

	if (!p)
		return NULL;
	m->n_pending++;
	p->source = source;
	p->id = id;
	for (size_t i = 0; i < SB_ARRAY_LEN(p->fds); i++)
		p->fds[i] = -1;
	return p;
}

static void answer_gate(const struct monitor *m, enum source source, uint64_t id, bool allow,
			uint16_t reason)
{
	struct sb_ipc_gate_answer a = { .id = id, .allow = allow, .reason = reason };
	int sock = source == FROM_NET ? m->gate : m->ssh;
	struct pollfd p = { .fd = sock, .events = POLLOUT };
	int r = sock < 0 ? 0 : sb_ipc_send(sock, SB_IPC_GATE_ANSWER, &a, sizeof(a), NULL, 0);

	if (r == -EAGAIN && poll(&p, 1, GATE_WAIT_MS) > 0)
		r = sb_ipc_send(sock, SB_IPC_GATE_ANSWER, &a, sizeof(a), NULL, 0);
	if (r < 0)
		sb_debug("an answer to a gate was lost"); /* it has its time-out */
}

static void run_command(struct monitor *m, struct pending *p, bool allow)
{
	struct sb_ipc_exited x = { .cmd = p->run.cmd, .kind = SB_EXIT_SETUP, .value = EPERM };
	int r = -EPERM;

	if (allow)
		r = m->state == MON_RUNNING && m->chan >= 0
			    ? sb_ipc_send(m->chan, SB_IPC_CHAN_EXEC, &p->run, sizeof(p->run), p->fds, 4)
			    : -ESHUTDOWN;
	x.value = (uint32_t)-r;
	if (r < 0)
		mon_to_cli(m, SB_IPC_EXITED, &x, sizeof(x));
}

/* Decided, and on record. */
static void finish(struct monitor *m, struct pending *p, bool allow, uint16_t reason)
{
	m->n_pending--;
	if (p->source == FROM_CLI)
		run_command(m, p, allow);
	else
		answer_gate(m, p->source, p->id, allow, reason);
	(void)pending_free(p);
}

static void on_recorded(struct monitor *m, void *arg, bool ok)
{
	struct pending *p = arg;

	if (ok) {
		finish(m, p, true, 0);
		return;
	}
	m->n_pending--; /* the session is ending: nothing is answered */
	(void)pending_free(p);
}

static void record(struct monitor *m, struct pending *p, const struct sb_audit_event *e)
{
	if (mon_audit_wait(m, e, SB_IPC_AUDIT_WAIT, on_recorded, p) < 0)
		on_recorded(m, p, false);
}

/* ---- the net gate ---- */

static void record_net(struct monitor *m, struct pending *p)
{
	const struct sb_ipc_net_event *ev = &p->net;
	struct sb_audit_event e = { .time_ns = ev->time_ns, .kind = SB_AUDIT_NETWORK,
				    .action = "connect", .verdict = SB_AUDIT_ALLOW,
				    .rule = ev->rule };
	char subject[sizeof(ev->name) + 8];

	(void)snprintf(subject, sizeof(subject), "%s:%u", ev->name, ev->port);
	e.subject = subject;
	sb_audit_put_num(&e, "id", ev->id);
	record(m, p, &e);
}

/* Head and event of a message. Return: 0; -EBADMSG. */
static int take(const struct sb_ipc_msg *msg, struct sb_ipc_gate_pending *head, void *event, size_t len)
{
	if (msg->n_fds != 0 || msg->len != sizeof(*head) + len)
		return -EBADMSG;
	memcpy(head, msg->data, sizeof(*head));
	memcpy(event, msg->data + sizeof(*head), len);
	return head->id != 0 && (head->verdict == ALLOW || head->verdict == ASK) ? 0 : -EBADMSG;
}

int mon_pending_net(struct monitor *m, const struct sb_ipc_msg *msg)
{
	struct sb_ipc_gate_pending head;
	struct sb_ipc_net_event ev;
	struct pending *p;
	int r = take(msg, &head, &ev, sizeof(ev));

	if (r < 0)
		return r;
	ev.name[sizeof(ev.name) - 1] = '\0';
	ev.rule[sizeof(ev.rule) - 1] = '\0';
	p = head.verdict == ALLOW ? pending_new(m, FROM_NET, head.id) : NULL;
	if (!p) { /* nobody can be asked; too many wait */
		answer_gate(m, FROM_NET, head.id, false, SB_NET_NOT_RECORDED);
		return 0;
	}
	p->net = ev;
	record_net(m, p);
	return 0;
}

/* ---- the SSH relay ---- */

static void record_ssh(struct monitor *m, struct pending *p)
{
	const struct sb_ipc_ssh_event *ev = &p->ssh;
	struct sb_audit_event e = { .time_ns = ev->time_ns, .kind = SB_AUDIT_SSH, .action = "sign",
				    .verdict = SB_AUDIT_ALLOW, .subject = ev->host };
	char key[65];

	sb_hex_write(ev->key, sizeof(ev->key), key);
	sb_audit_put(&e, "key", key);
	if (ev->user[0])
		sb_audit_put(&e, "user", ev->user);
	record(m, p, &e);
}

int mon_pending_ssh(struct monitor *m, const struct sb_ipc_msg *msg)
{
	struct sb_ipc_gate_pending head;
	struct sb_ipc_ssh_event ev;
	struct pending *p;
	int r = take(msg, &head, &ev, sizeof(ev));

	if (r < 0)
		return r;
	ev.host[sizeof(ev.host) - 1] = '\0';
	ev.user[sizeof(ev.user) - 1] = '\0';
	p = head.verdict == ALLOW ? pending_new(m, FROM_SSH, head.id) : NULL;
	if (!p) {
		answer_gate(m, FROM_SSH, head.id, false, SB_SSH_NOT_RECORDED);
		return 0;
	}
	p->ssh = ev;
	record_ssh(m, p);
	return 0;
}

/* ---- one more command ---- */

/* The words of the request, which is the command line's own. Return: NULL when it has none. */
static char *words_of(int fd, size_t *ret_len)
{
	sb_autofree uint8_t *buf = malloc(SB_EXEC_REQ_MAX + 1);
	ssize_t n = buf ? sb_fd_read_at(fd, buf, SB_EXEC_REQ_MAX + 1, 0) : -1;
	struct sb_exec_req req;
	char *words;

	if (n <= 0 || n > SB_EXEC_REQ_MAX || sb_exec_req_parse(buf, (size_t)n, &req) < 0)
		return NULL;
	words = malloc(req.argv_len);
	if (words) {
		memcpy(words, req.argv, req.argv_len);
		*ret_len = req.argv_len;
	}
	return words;
}

int mon_pending_exec(struct monitor *m, const struct sb_ipc_run *run, struct sb_ipc_msg *msg)
{
	struct sb_audit_event e = { .kind = SB_AUDIT_COMMAND, .action = "start",
				    .verdict = SB_AUDIT_ALLOW };
	size_t len = 0;
	sb_autofree char *words = words_of(msg->fds[3], &len);
	struct pending *p = words ? pending_new(m, FROM_CLI, run->cmd) : NULL;

	if (!p)
		return words ? -EBUSY : -EBADMSG;
	p->run = *run;
	for (size_t i = 0; i < SB_ARRAY_LEN(p->fds); i++)
		p->fds[i] = sb_fd_take(&msg->fds[i]);
	e.subject = words;
	sb_audit_put_num(&e, "command", run->cmd);
	sb_audit_put_list(&e, "argv", words, len);
	record(m, p, &e);
	return 0;
}
