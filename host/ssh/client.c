/*
 * Theory of operation. A client asks, waits for the answer, asks again: one message at a time is
 * read, decided and answered, and nothing is read meanwhile.
 *
 *   READING   a message is not whole yet
 *   APPROVING allowed by the plan, which says that somebody is asked first
 *   RECORDING a signature is allowed; the monitor was asked to put it on record
 *   NEEDING   allowed; the monitor was asked for a connection to the user's agent
 *   ASKING    the agent has the request, or a part of it; its answer is not whole yet
 *   WRITING   the answer goes to the client
 *
 * Each client has its own connection to the agent, because a session-bind counts for a connection:
 * a bind that we accepted is passed on, so that keys which the user's agent itself restricts to hosts
 * (ssh-add -h) work and stay restricted. Of the guest's bytes the agent sees only requests that were
 * parsed whole and allowed. What is malformed, from either side, ends the client. Memory: one request
 * and one answer each, for SB_SSH_MAX_CONNS clients.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "core/approval.h"
#include "crypto/crypto.h"
#include "ssh.h"

#define CHUNK 16384
#define STALL_NS 30000000000ULL  /* for the rest of a message, and for taking an answer */
#define AGENT_NS 120000000000ULL /* the agent may ask its user (ssh-add -c) */

#define APPROVE_NS 3700000000000ULL /* longer than any answer may take */

enum state { READING = 0, APPROVING, RECORDING, NEEDING, ASKING, WRITING };

struct client {
	struct relay *r;
	struct client *next;
	struct client *prev;
	enum state state;
	int fd;    /* owned */
	int agent; /* owned; -1 = not yet */
	struct sb_io io;
	struct sb_io agent_io;
	struct sb_timer stall;
	uint64_t question;  /* APPROVING: its id; else 0 */
	struct sb_buf waits; /* the request that is asked for */
	uint64_t need;      /* which need of the relay's this is, NEEDING */
	uint64_t pending;   /* number of the question to the monitor, RECORDING */
	struct sb_buf held; /* the request, RECORDING */
	enum sb_ssh_kind asked;
	struct sb_ipc_ssh_event ev; /* of the request that is being served */
	bool data;        /* SIGN: not a login */
	bool shown_whole; /* SIGN: the event's texts are all of user or namespace */
	struct sb_ssh_binds binds;
	struct sb_buf in;   /* from the client */
	struct sb_buf out;  /* to the client */
	struct sb_buf ask;  /* to the agent */
	struct sb_buf told; /* from the agent */
};

static void question_gone(struct client *c)
{
	struct sb_ipc_appr_ask q = { .id = c->question };

	if (c->question != 0 && sb_ipc_send(c->r->ipc, SB_IPC_APPR_ASK, &q, sizeof(q), NULL, 0) < 0)
		sb_debug("a question stays open");
	c->question = 0;
}

static void end(struct client *c)
{
	struct relay *r = c->r;

	question_gone(c);
	sb_buf_done(&c->waits);

	sb_io_del(&c->io);
	sb_io_del(&c->agent_io);
	sb_timer_del(&c->stall);
	sb_fd_close(&c->fd);
	sb_fd_close(&c->agent);
	sb_buf_done(&c->in);
	sb_buf_done(&c->out);
	sb_buf_done(&c->ask);
	sb_buf_done(&c->told);
	sb_buf_done(&c->held);
	if (c->prev)
		c->prev->next = c->next;
	else
		r->clients = c->next;
	if (c->next)
		c->next->prev = c->prev;
	r->n_clients--;
	free(c);
}

static void on_stall(struct sb_timer *t)
{
	sb_debug("a connection stood still for too long");
	end(t->owner);
}

static void refuse(struct client *c, enum sb_ssh_reason why)
{
	c->ev.allow = 0;
	c->ev.reason = (uint16_t)why;
	(void)event_send(c->r, &c->ev);
}

/* --- answers --- */

static void on_client(struct sb_io *io, uint32_t events);

static void wait_for(struct client *c, uint32_t events, uint64_t ns)
{
	if (ns > 0)
		sb_timer_set(c->r->loop, &c->stall, ns, on_stall, c);
	else
		sb_timer_del(&c->stall);
	if (sb_io_set(c->r->loop, &c->io, c->fd, events, on_client, c) < 0)
		end(c);
}

/* Return: what was written of @b; -errno. */
static ssize_t put(int fd, struct sb_buf *b)
{
	ssize_t n = send(fd, b->data, b->len, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	sb_buf_drop(b, (size_t)n);
	return n;
}

static void write_out(struct client *c)
{
	if (sb_buf_error(&c->out) < 0 || put(c->fd, &c->out) < 0) {
		end(c);
		return;
	}
	if (c->out.len > 0) {
		wait_for(c, EPOLLOUT, STALL_NS);
		return;
	}
	c->state = READING;
	/* what waits in `in` is served from the loop: a client that sends many requests at once does
	 * not choose how deep the stack gets */
	if (c->in.len > 0)
		wait_for(c, EPOLLIN | EPOLLOUT, STALL_NS);
	else
		wait_for(c, EPOLLIN, 0);
}

static void answer(struct client *c, const void *body, size_t len)
{
	c->state = WRITING;
	sb_ssh_put_frame(&c->out, body, len);
	write_out(c);
}

static void answer_byte(struct client *c, uint8_t type)
{
	answer(c, &type, 1);
}

/* --- what the agent said --- */

static bool offered(const struct client *c, const struct sb_ssh_str *key)
{
	uint8_t sha256[SB_SHA256_LEN];

	sb_sha256(key->p, key->len, sha256);
	return sb_plan_ssh_key(&c->r->plan->ssh, sha256) != NULL;
}

/* The keys of the plan alone. Return: 0; -EBADMSG. */
static int filter(const struct client *c, const struct sb_ssh_str *body, struct sb_buf *to)
{
	sb_autobuf struct sb_buf keys;
	struct sb_ssh_ids ids;
	struct sb_ssh_str key;
	struct sb_ssh_str comment;
	uint32_t n = 0;
	int k = sb_ssh_ids(body, &ids);

	sb_buf_init(&keys, SB_SSH_ANSWER_MAX);
	if (k < 0)
		return k;
	while ((k = sb_ssh_ids_next(&ids, &key, &comment)) > 0) {
		if (!offered(c, &key))
			continue;
		sb_ssh_put_str(&keys, key.p, key.len);
		sb_ssh_put_str(&keys, comment.p, comment.len);
		n++;
	}
	if (k < 0)
		return k;
	sb_buf_add_u8(to, SB_SSH_IDENTITIES_ANSWER);
	sb_ssh_put_u32(to, n);
	sb_buf_add(to, keys.data, keys.len);
	k = sb_buf_error(&keys);
	return k < 0 ? k : sb_buf_error(to);
}

static void on_list(struct client *c, const struct sb_ssh_str *body)
{
	sb_autobuf struct sb_buf b;

	sb_buf_init(&b, SB_SSH_ANSWER_MAX);
	if (filter(c, body, &b) < 0) {
		refuse(c, SB_SSH_AGENT);
		answer_byte(c, SB_SSH_FAILURE);
		return;
	}
	answer(c, b.data, b.len);
}

static void on_signature(struct client *c, const struct sb_ssh_str *body)
{
	struct sb_ssh_str sig;

	if (sb_ssh_signed(body, &sig) < 0) {
		refuse(c, SB_SSH_AGENT);
		answer_byte(c, SB_SSH_FAILURE);
		return;
	}
	c->ev.allow = 1;
	c->ev.reason = SB_SSH_OK;
	if (!event_send(c->r, &c->ev)) { /* nobody would know of it */
		sb_log("a signature was withheld: it could not be told");
		answer_byte(c, SB_SSH_FAILURE);
		return;
	}
	answer(c, body->p, body->len);
}

/* @body: NULL: there is no agent. */
static void agent_said(struct client *c, const struct sb_ssh_str *body)
{
	if (c->asked == SB_SSH_BIND) { /* an older agent does not know it; the bind is ours to keep */
		answer_byte(c, SB_SSH_SUCCESS);
	} else if (!body) {
		refuse(c, SB_SSH_AGENT);
		answer_byte(c, SB_SSH_FAILURE);
	} else if (c->asked == SB_SSH_LIST) {
		on_list(c, body);
	} else {
		on_signature(c, body);
	}
}

static void on_agent(struct sb_io *io, uint32_t events);

static void agent_lost(struct client *c)
{
	refuse(c, SB_SSH_AGENT);
	end(c); /* its binds went with the agent's connection */
}

static void ask_agent(struct client *c)
{
	uint32_t want = c->ask.len > 0 ? (uint32_t)EPOLLOUT : (uint32_t)EPOLLIN;

	if (sb_io_set(c->r->loop, &c->agent_io, c->agent, want, on_agent, c) < 0)
		agent_lost(c);
}

/* Return: whether there may be a whole answer now. */
static bool read_agent(struct client *c)
{
	uint8_t chunk[CHUNK];
	ssize_t n = recv(c->agent, chunk, sizeof(chunk), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n > 0)
		sb_buf_add(&c->told, chunk, (size_t)n);
	if (n <= 0 || sb_buf_error(&c->told) < 0) {
		agent_lost(c);
		return false;
	}
	return true;
}

static void on_agent(struct sb_io *io, uint32_t events)
{
	struct client *c = io->owner;
	sb_autobuf struct sb_buf whole;
	struct sb_ssh_str body;
	int k;

	sb_buf_init(&whole, SB_SSH_HEAD + SB_SSH_ANSWER_MAX);
	if (c->ask.len > 0 && (events & EPOLLOUT)) {
		if (put(c->agent, &c->ask) < 0)
			agent_lost(c);
		else
			ask_agent(c);
		return;
	}
	if (c->state != ASKING) { /* it speaks without having been asked, or left */
		end(c);
		return;
	}
	if (!read_agent(c))
		return;
	k = sb_ssh_frame(c->told.data, c->told.len, SB_SSH_ANSWER_MAX, &body);
	if (k == SB_SSH_MORE)
		return;
	if (k < 0 || body.len + SB_SSH_HEAD != c->told.len) {
		agent_lost(c);
		return;
	}
	whole = c->told; /* the client may go while it is answered */
	sb_buf_init(&c->told, SB_SSH_HEAD + SB_SSH_ANSWER_MAX);
	agent_said(c, &body);
}

void client_agent(struct relay *r, int *fd)
{
	struct client *first = NULL;

	for (struct client *c = r->clients; c; c = c->next)
		if (c->state == NEEDING && (!first || c->need < first->need))
			first = c;
	if (!first) {
		sb_fd_close(fd);
		return;
	}
	if (*fd < 0) {
		agent_said(first, NULL);
		return;
	}
	first->agent = sb_fd_take(fd);
	first->state = ASKING;
	ask_agent(first);
}

/* --- requests --- */

/* Pass @body on and wait for the answer. */
static void pass_on(struct client *c, enum sb_ssh_kind kind, const struct sb_ssh_str *body)
{
	c->asked = kind;
	sb_ssh_put_frame(&c->ask, body->p, body->len);
	if (sb_buf_error(&c->ask) < 0) {
		end(c);
		return;
	}
	c->state = c->agent >= 0 ? ASKING : NEEDING;
	sb_timer_set(c->r->loop, &c->stall, AGENT_NS, on_stall, c);
	sb_io_del(&c->io); /* nothing is read; that it left is seen when it is answered */
	if (c->agent >= 0) {
		ask_agent(c);
		return;
	}
	c->need = c->r->needs++;
	if (sb_ipc_send(c->r->ipc, SB_IPC_SSH_NEED, NULL, 0, NULL, 0) < 0)
		agent_lost(c);
}

/* A signature: nothing is asked of the agent before it is on record. */
static void record_first(struct client *c, const struct sb_ssh_str *body)
{
	struct {
		struct sb_ipc_gate_pending head;
		struct sb_ipc_ssh_event ev;
	} m = { .head = { .id = ++c->r->pendings, .verdict = 1 }, .ev = c->ev };

	_Static_assert(sizeof(m) == sizeof(m.head) + sizeof(m.ev), "one message");
	m.ev.time_ns = sb_real_ns();
	m.ev.count = 1;
	m.ev.allow = 1;
	sb_buf_add(&c->held, body->p, body->len);
	if (sb_buf_error(&c->held) < 0 ||
	    sb_ipc_send(c->r->ipc, SB_IPC_GATE_PENDING, &m, sizeof(m), NULL, 0) < 0) {
		refuse(c, SB_SSH_NOT_RECORDED);
		answer_byte(c, SB_SSH_FAILURE);
		return;
	}
	c->pending = m.head.id;
	c->state = RECORDING;
	sb_timer_set(c->r->loop, &c->stall, AGENT_NS, on_stall, c);
	sb_io_del(&c->io);
}

void client_recorded(struct relay *r, uint64_t id, bool allow, enum sb_ssh_reason why)
{
	struct client *c = r->clients;
	sb_autobuf struct sb_buf whole;
	struct sb_ssh_str body;

	sb_buf_init(&whole, SB_SSH_REQUEST_MAX);
	while (c && (c->state != RECORDING || c->pending != id))
		c = c->next;
	if (!c) /* it left */
		return;
	whole = c->held; /* the client may go meanwhile */
	sb_buf_init(&c->held, SB_SSH_REQUEST_MAX);
	body = (struct sb_ssh_str){ whole.data, whole.len };
	if (allow) {
		pass_on(c, SB_SSH_SIGN, &body);
		return;
	}
	refuse(c, why == SB_SSH_OK ? SB_SSH_NOT_RECORDED : why);
	answer_byte(c, SB_SSH_FAILURE);
}

static void set_host(struct client *c, const uint8_t host_key[SB_SSH_DIGEST])
{
	const char *name = sb_plan_ssh_host(&c->r->plan->ssh, host_key);

	if (name) {
		struct sb_ssh_str s = { (const uint8_t *)name, strlen(name) };

		event_text(c->ev.host, sizeof(c->ev.host), &s);
	} else {
		sb_ssh_fingerprint(host_key, c->ev.host);
	}
}

static enum sb_ssh_reason judge_bind(struct client *c, const struct sb_ssh_request *q)
{
	uint8_t digest[SB_SHA256_LEN];

	c->ev.kind = SB_SSH_EV_BIND;
	if (!bind_verified(q))
		return SB_SSH_BAD_BIND;
	sb_sha256(q->host_key.p, q->host_key.len, digest);
	set_host(c, digest);
	return sb_ssh_judge_bind(&c->r->plan->ssh, &c->binds, q, digest);
}

/* Whether the text says all of it, so that no other one looks the same. */
static bool is_shown(const char *text, const struct sb_ssh_str *s)
{
	return s->len > 0 && strlen(text) == s->len && memcmp(text, s->p, s->len) == 0;
}

static enum sb_ssh_reason judge_sign(struct client *c, const struct sb_ssh_request *q)
{
	struct sb_ssh_ask ask = { .key = q->key, .flags = q->flags };
	struct sb_ssh_userauth login;
	struct sb_ssh_sshsig data;
	enum sb_ssh_reason why;

	c->data = false;
	c->shown_whole = true;
	c->ev.kind = SB_SSH_EV_SIGN;
	c->ev.has_key = 1;
	sb_sha256(q->key.p, q->key.len, ask.sha256);
	memcpy(c->ev.key, ask.sha256, sizeof(c->ev.key));
	if (c->binds.n > 0)
		set_host(c, c->binds.b[c->binds.n - 1].host_key);
	if (sb_ssh_userauth(&q->data, &login) == 0) {
		ask.login = &login;
		event_text(c->ev.user, sizeof(c->ev.user), &login.user);
		c->shown_whole = is_shown(c->ev.user, &login.user);
		if (login.host_key.p)
			sb_sha256(login.host_key.p, login.host_key.len, ask.login_host);
	} else if (sb_ssh_sshsig(&q->data, &data) == 0) {
		ask.data = &data;
		c->data = true;
		memcpy(c->ev.user, "namespace ", 10);
		event_text(c->ev.user + 10, sizeof(c->ev.user) - 10, &data.namespace);
		c->shown_whole = is_shown(c->ev.user + 10, &data.namespace);
	}
	why = sb_ssh_judge_sign(&c->r->plan->ssh, &c->binds, &ask);
	/* whose login it is, nobody knows who stands before a host that passes it on */
	if (why == SB_SSH_OK && (c->data || (c->binds.n > 0 && c->binds.b[c->binds.n - 1].forwarding)))
		c->ev.host[0] = '\0';
	return why;
}

/* Ask first. The host's name comes before what the guest chose. */
static void approve(struct client *c, const struct sb_ssh_str *body)
{
	struct sb_ipc_appr_ask q = { .id = ++c->r->questions, .kind = SB_APPR_SSH };
	char key[SB_SSH_FINGERPRINT];

	if (!c->shown_whole) { /* what is asked for must be what is signed */
		refuse(c, SB_SSH_NOT_APPROVED);
		answer_byte(c, SB_SSH_FAILURE);
		return;
	}
	sb_ssh_fingerprint(c->ev.key, key);
	if (c->data)
		(void)snprintf(q.subject, sizeof(q.subject), "%s data %s", key, c->ev.user);
	else
		(void)snprintf(q.subject, sizeof(q.subject), "%s login host=%s user=%s", key,
			       c->ev.host[0] ? c->ev.host : "?", c->ev.user[0] ? c->ev.user : "?");
	(void)snprintf(q.rule, sizeof(q.rule), "ssh_agent.ask");
	sb_buf_drop(&c->waits, c->waits.len);
	sb_buf_add(&c->waits, body->p, body->len);
	if (sb_buf_error(&c->waits) < 0 ||
	    sb_ipc_send(c->r->ipc, SB_IPC_APPR_ASK, &q, sizeof(q), NULL, 0) < 0) {
		refuse(c, SB_SSH_NOT_APPROVED);
		answer_byte(c, SB_SSH_FAILURE);
		return;
	}
	c->question = q.id;
	c->state = APPROVING;
	/* that it leaves shows, and what it sends further waits */
	wait_for(c, 0, APPROVE_NS);
}

void client_answer(struct relay *r, const struct sb_ipc_appr_answer *a)
{
	struct client *c = r->clients;
	sb_autobuf struct sb_buf one;
	struct sb_ssh_str body;

	while (c && (c->state != APPROVING || c->question != a->id))
		c = c->next;
	if (!c || a->id == 0)
		return;
	c->question = 0;
	one = c->waits;
	sb_buf_init(&c->waits, SB_SSH_REQUEST_MAX);
	if (a->allow != 1) {
		refuse(c, SB_SSH_NOT_APPROVED);
		answer_byte(c, SB_SSH_FAILURE);
		return;
	}
	body = (struct sb_ssh_str){ one.data, one.len };
	record_first(c, &body);
}

static void serve(struct client *c, const struct sb_ssh_str *body)
{
	struct sb_ssh_request q;
	enum sb_ssh_reason why = SB_SSH_OK;

	c->ev = (struct sb_ipc_ssh_event){ .kind = SB_SSH_EV_REQUEST };
	if (sb_ssh_request(body, &q) < 0) {
		refuse(c, SB_SSH_MALFORMED);
		end(c);
		return;
	}
	c->ev.type = q.type;
	switch (q.kind) {
	case SB_SSH_LIST:
		break;
	case SB_SSH_SIGN:
		why = judge_sign(c, &q);
		break;
	case SB_SSH_BIND:
		why = judge_bind(c, &q);
		break;
	case SB_SSH_OTHER:
	default:
		why = SB_SSH_REQUEST;
		break;
	}
	if (why == SB_SSH_OK && q.kind == SB_SSH_SIGN && c->r->plan->ssh.ask) {
		approve(c, body);
		return;
	}
	if (why == SB_SSH_OK && q.kind == SB_SSH_SIGN) {
		record_first(c, body);
		return;
	}
	if (why == SB_SSH_OK) {
		pass_on(c, q.kind, body);
		return;
	}
	refuse(c, why);
	answer_byte(c, SB_SSH_FAILURE);
}

/* A message may be there: serve it, or wait for the rest of it. */
static void proceed(struct client *c)
{
	sb_autobuf struct sb_buf one;
	struct sb_ssh_str body = { 0 };
	int k = sb_ssh_frame(c->in.data, c->in.len, SB_SSH_REQUEST_MAX, &body);

	sb_buf_init(&one, SB_SSH_REQUEST_MAX);
	if (k == SB_SSH_MORE) {
		wait_for(c, EPOLLIN, c->in.len > 0 ? STALL_NS : 0);
		return;
	}
	if (k == 0) { /* a copy: the client may go while it is served */
		sb_buf_add(&one, body.p, body.len);
		k = sb_buf_error(&one);
	}
	if (k < 0) {
		c->ev = (struct sb_ipc_ssh_event){ .kind = SB_SSH_EV_REQUEST };
		refuse(c, SB_SSH_MALFORMED);
		end(c);
		return;
	}
	sb_buf_drop(&c->in, SB_SSH_HEAD + body.len);
	body.p = one.data;
	serve(c, &body);
}

static void on_client(struct sb_io *io, uint32_t events)
{
	struct client *c = io->owner;
	uint8_t chunk[CHUNK];
	size_t room = SB_SSH_HEAD + SB_SSH_REQUEST_MAX - c->in.len;
	ssize_t n;

	if (c->state == WRITING) {
		write_out(c);
		return;
	}
	if (c->state == APPROVING) { /* it left */
		end(c);
		return;
	}
	if (c->in.len > 0 && (events & EPOLLOUT)) {
		proceed(c);
		return;
	}
	n = recv(c->fd, chunk, SB_MIN(sizeof(chunk), room), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		sb_buf_add(&c->in, chunk, (size_t)n);
	if (n <= 0 || sb_buf_error(&c->in) < 0)
		end(c);
	else
		proceed(c);
}

/* --- life --- */

void client_new(struct relay *r, int *fd)
{
	struct sb_ipc_ssh_event ev = { .kind = SB_SSH_EV_REQUEST, .reason = SB_SSH_TOO_MANY };
	struct client *c = r->n_clients < SB_SSH_MAX_CONNS ? calloc(1, sizeof(*c)) : NULL;

	if (!c) {
		sb_fd_close(fd);
		(void)event_send(r, &ev);
		return;
	}
	c->r = r;
	c->fd = sb_fd_take(fd);
	c->agent = -1;
	sb_buf_init(&c->waits, SB_SSH_REQUEST_MAX);
	sb_buf_init(&c->in, SB_SSH_HEAD + SB_SSH_REQUEST_MAX);
	sb_buf_init(&c->out, SB_SSH_HEAD + SB_SSH_ANSWER_MAX);
	sb_buf_init(&c->ask, SB_SSH_HEAD + SB_SSH_REQUEST_MAX);
	sb_buf_init(&c->told, SB_SSH_HEAD + SB_SSH_ANSWER_MAX);
	sb_buf_init(&c->held, SB_SSH_REQUEST_MAX);
	c->next = r->clients;
	if (c->next)
		c->next->prev = c;
	r->clients = c;
	r->n_clients++;
	wait_for(c, EPOLLIN, 0);
}

void clients_done(struct relay *r)
{
	while (r->clients)
		end(r->clients);
}
