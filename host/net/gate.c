/*
 * Theory of operation. gate_open() runs outside of the jail: it verifies the plan and opens
 * whatever needs a file or an unusual socket. gate_serve() runs inside: from there on two sockets
 * speak to us. The monitor's (descriptor 3) is trusted; its end is our end. The front socket is
 * held by the guest's side (PID 1 of the sandbox, or sendbox-channel for a micro-VM): each message
 * and each descriptor is checked before use, one that does not fit ends the session. A namespace
 * sends its listening sockets once; a micro-VM sends one stream for each connection, and the end
 * of its front socket is the end of the session.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/num.h"
#include "conn/plan_fd.h"
#include "crypto/crypto.h"
#include "net/conn.h"

#define ACCEPTS 64 /* connections of one listener in one turn */
#define MESSAGES 64
#define PAUSE_NS 50000000U /* after the descriptors or the memory ran out */

void gate_fail(struct gate *g, const char *fmt, ...)
{
	struct sb_ipc_failed f = { .fail = SB_FAIL_INTERNAL };
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(f.text, sizeof(f.text), fmt, ap);
	va_end(ap);
	sb_log("%s", f.text);
	if (sb_ipc_send(g->ipc, SB_IPC_FAILED, &f, sizeof(f), NULL, 0) < 0)
		sb_debug("the monitor was not told");
	sb_loop_stop(g->loop, 1);
}

/* --- start --- */

static int take_plan(struct gate *g, const struct sb_ipc_net_start *start, int fd,
		     struct sb_err *err)
{
	const struct sb_plan_expect x = { .signature = start->signature,
					  .public_key = start->public_key };
	int r = sb_plan_from_fd(fd, &x, &g->plan, NULL, NULL, err);

	if (r < 0)
		return r;
	if (g->plan->net.mode == SB_NET_NONE)
		return sb_err_set(err, -EINVAL, "the plan has no network");
	memcpy(g->public_key, start->public_key, sizeof(g->public_key));
	sb_hex_write(g->plan->session, sizeof(g->plan->session), g->session);
	return sb_netpol_new(&g->plan->net, &g->pol, err);
}

uint32_t gate_descriptors(const struct gate *g)
{
	/* a connection: one socket and up to eight attempts, or two sockets and four ends of pipes;
	 * those whose destination is not known yet, DNS, lookups, spare pipes, viewers */
	return 320 + 9 * g->plan->net.max_connections;
}

int gate_open(struct gate *g, const struct sb_ipc_net_start *start, int *front, int plan_fd,
	      struct sb_err *err)
{
	int r;

	g->front = -1;
	g->route = -1;
	g->listeners[0] = -1;
	g->listeners[1] = -1;
	r = take_plan(g, start, plan_fd, err);
	if (r < 0)
		return r;
	r = sb_loop_new(&g->loop);
	if (r == 0)
		r = sb_fd_set_nonblock(g->ipc, true);
	if (r == 0)
		r = sb_fd_set_nonblock(*front, true);
	if (r == 0)
		r = route_open(&g->route);
	if (r == 0)
		r = names_new(&g->names);
	if (r < 0)
		return sb_err_set(err, r, "start: errno %d", -r);
	r = resolver_new(g, &g->resolver, err);
	if (r < 0)
		return r;
	r = dns_new(g, &g->dns);
	if (r == 0)
		r = conns_new(g);
	if (r < 0)
		return sb_err_set(err, r, "start: errno %d", -r);
	g->front = sb_fd_take(front);
	return 0;
}

static void listener_close(struct gate *g, int i)
{
	sb_timer_del(&g->pause);
	sb_io_del(&g->listen_io[i]);
	sb_fd_close(&g->listeners[i]);
}

void gate_done(struct gate *g)
{
	for (int i = 0; i < 2; i++)
		listener_close(g, i);
	conns_done(g);
	sb_timer_del(&g->pending_retry);
	if (g->front >= 0)
		sb_io_del(&g->front_io);
	sb_fd_close(&g->front);
	g->dns = dns_free(g->dns);
	g->resolver = resolver_free(g->resolver);
	events_done(g);
	viewers_done(g); /* they have the last events too */
	sb_io_del(&g->ipc_io);
	g->names = names_free(g->names);
	sb_fd_close(&g->route);
	g->pol = sb_netpol_free(g->pol);
	g->plan = sb_plan_free(g->plan);
	g->loop = sb_loop_free(g->loop);
}

/* --- the sandbox's listening sockets --- */

static void on_pause(struct sb_timer *t)
{
	struct gate *g = t->owner;

	for (int i = 0; i < 2; i++)
		if (g->listeners[i] >= 0 && sb_io_want(&g->listen_io[i], EPOLLIN) < 0)
			gate_fail(g, "the listening socket cannot be watched");
}

static void on_listener(struct sb_io *io, uint32_t events)
{
	struct gate *g = io->owner;

	(void)events;
	for (int i = 0; i < ACCEPTS; i++) {
		sb_autofd int fd = accept4(io->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			conn_accepted(g, &fd);
			continue;
		}
		if (errno == EAGAIN)
			return;
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			/* it stays readable: let others end first */
			for (int k = 0; k < 2; k++)
				if (g->listeners[k] >= 0 && sb_io_want(&g->listen_io[k], 0) < 0)
					gate_fail(g, "the listening socket cannot be watched");
			sb_timer_set(g->loop, &g->pause, PAUSE_NS, on_pause, g);
			return;
		}
		if (errno == EINVAL || errno == EBADF || errno == EOPNOTSUPP) {
			gate_fail(g, "accept: errno %d", errno);
			return;
		}
		/* ECONNABORTED, EPROTO, ...: that connection only */
	}
}

static int sock_int(int fd, int what)
{
	socklen_t len = sizeof(int);
	int v = -1;

	return getsockopt(fd, SOL_SOCKET, what, &v, &len) == 0 ? v : -1;
}

static bool is_socket(int fd, int domain, int type, int protocol, bool listening)
{
	return sock_int(fd, SO_DOMAIN) == domain && sock_int(fd, SO_TYPE) == type &&
	       sock_int(fd, SO_PROTOCOL) == protocol &&
	       sock_int(fd, SO_ACCEPTCONN) == (listening ? 1 : 0);
}

/* tcp4, tcp6, udp4, udp6; tcp4, udp4 where the sandbox has no IPv6. */
static int take_listeners(struct gate *g, struct sb_ipc_msg *msg)
{
	static const int domain[2] = { AF_INET, AF_INET6 };
	int n = msg->n_fds == 4 ? 2 : 1;
	int r = 0;

	if (msg->len != 0 || (msg->n_fds != 4 && msg->n_fds != 2))
		return -EBADMSG;
	for (int i = 0; i < n; i++) {
		if (!is_socket(msg->fds[i], domain[i], SOCK_STREAM, IPPROTO_TCP, true) ||
		    !is_socket(msg->fds[n + i], domain[i], SOCK_DGRAM, IPPROTO_UDP, false))
			return -EBADMSG;
	}
	for (int i = 0; i < n && r == 0; i++) {
		r = sb_fd_set_nonblock(msg->fds[i], true);
		if (r == 0)
			r = sb_fd_set_nonblock(msg->fds[n + i], true);
		if (r == 0)
			r = dns_add_udp(g->dns, &msg->fds[n + i]);
		if (r == 0)
			r = sb_io_set(g->loop, &g->listen_io[i], msg->fds[i], EPOLLIN, on_listener,
				      g);
		if (r == 0)
			g->listeners[i] = sb_fd_take(&msg->fds[i]);
	}
	return r;
}

/* --- the front socket --- */

static int take_stream(struct gate *g, struct sb_ipc_msg *msg)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	int r;

	if (msg->len != 0 || msg->n_fds != 1 ||
	    !is_socket(msg->fds[0], AF_UNIX, SOCK_STREAM, 0, false))
		return -EBADMSG;
	if (getpeername(msg->fds[0], (struct sockaddr *)&ss, &len) < 0)
		return errno == ENOTCONN ? 0 : -EBADMSG; /* it has been closed already */
	r = sb_fd_set_nonblock(msg->fds[0], true);
	if (r < 0)
		return r;
	conn_stream(g, &msg->fds[0]);
	return 0;
}

static void front_over(struct gate *g, bool microvm)
{
	sb_io_del(&g->front_io);
	sb_fd_close(&g->front);
	if (microvm)
		sb_loop_stop(g->loop, 0);
}

/* Return: 1 = go on; 0 = no more for now */
static int on_front_message(struct gate *g)
{
	bool microvm = g->plan->provider == SB_PROVIDER_MICROVM;
	sb_automsg struct sb_ipc_msg msg;
	int r;

	msg.n_fds = 0;
	r = sb_ipc_recv(g->front, &msg);
	if (r == -EAGAIN)
		return 0;
	if (r == -EMFILE && microvm)
		return 1; /* that stream is lost: its other end sees a reset */
	if (r == SB_IPC_EOF) {
		if (!microvm)
			gate_fail(g, "the sandbox has sent no listening sockets");
		else
			front_over(g, true);
		return 0;
	}
	if (r == 0 && msg.type == SB_IPC_NET_LISTEN && !microvm) {
		r = take_listeners(g, &msg);
		if (r == 0) {
			front_over(g, false);
			return 0;
		}
	} else if (r == 0 && msg.type == SB_IPC_NET_STREAM && microvm) {
		r = take_stream(g, &msg);
	} else if (r == 0) {
		r = -EBADMSG;
	}
	if (r < 0) {
		gate_fail(g, "message of the sandbox on the front socket: errno %d", -r);
		return 0;
	}
	return 1;
}

static void on_front(struct sb_io *io, uint32_t events)
{
	struct gate *g = io->owner;

	(void)events;
	for (int i = 0; i < MESSAGES && on_front_message(g) > 0; i++)
		;
}

/* --- the monitor --- */

static void on_ipc(struct sb_io *io, uint32_t events)
{
	struct gate *g = io->owner;
	sb_automsg struct sb_ipc_msg msg;
	int r;

	(void)events;
	msg.n_fds = 0;
	r = sb_ipc_recv(g->ipc, &msg);
	if (r == -EAGAIN || r == -EMFILE) /* of a viewer */
		return;
	if (r == 0 && msg.type == SB_IPC_NET_CLIENT && sb_ipc_get(&msg, 0, 1)) {
		r = viewer_new(g, &msg.fds[0]);
		if (r < 0)
			sb_debug("a viewer was turned away: errno %d", -r);
		return;
	}
	if (r == 0 && msg.type == SB_IPC_GATE_ANSWER && pending_answer(g, &msg) == 0)
		return;
	if (r == 0 && msg.type == SB_IPC_APPR_ANSWER &&
	    sb_ipc_get(&msg, sizeof(struct sb_ipc_appr_answer), 0)) {
		conn_answer(g, (const void *)msg.data);
		return;
	}
	if (r != SB_IPC_EOF)
		sb_log("message of the monitor: errno %d", r < 0 ? -r : EBADMSG);
	sb_loop_stop(g->loop, r == SB_IPC_EOF ? 0 : 1);
}

int gate_serve(struct gate *g)
{
	int r = sb_io_set(g->loop, &g->ipc_io, g->ipc, EPOLLIN, on_ipc, g);

	if (r == 0)
		r = sb_io_set(g->loop, &g->front_io, g->front, EPOLLIN, on_front, g);
	if (r == 0)
		r = sb_ipc_send(g->ipc, SB_IPC_NET_UP, NULL, 0, NULL, 0);
	return r;
}

/* --- amendments --- */

static void rules_free(struct sb_net_rule *rules, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(rules[i].host);
		free(rules[i].from);
	}
	free(rules);
}

static int rules_copy(const struct sb_plan_net *n, struct sb_net_rule **ret)
{
	struct sb_net_rule *rules = calloc(n->n_rules + 1, sizeof(*rules));

	if (!rules)
		return -ENOMEM;
	for (size_t i = 0; i < n->n_rules; i++) {
		const struct sb_net_rule *r = &n->rules[i];

		rules[i] = *r;
		rules[i].host = strdup(r->host);
		rules[i].from = r->from ? strdup(r->from) : NULL;
		if (!rules[i].host || (r->from && !rules[i].from)) {
			rules_free(rules, i + 1);
			return -ENOMEM;
		}
	}
	*ret = rules;
	return 0;
}

static void record(struct gate *g, const struct sb_net_rule *rules, size_t n, bool allow)
{
	for (size_t i = 0; i < n; i++) {
		struct sb_ipc_net_event ev = { .kind = SB_NET_EV_AMEND,
					       .allow = allow,
					       .proto = (uint8_t)rules[i].proto,
					       .port = rules[i].port_lo,
					       .count = g->amended };

		(void)snprintf(ev.name, sizeof(ev.name), "%s", rules[i].host);
		sb_net_rule_text(&rules[i], ev.rule, sizeof(ev.rule));
		event_send(g, &ev);
	}
}

/* Build the new rules and the new policy, then put both in place of the old ones. */
static int amend(struct gate *g, const struct sb_net_amend *a, struct sb_err *err)
{
	struct sb_plan_net copy = g->plan->net; /* all but the rules is shared */
	struct sb_netpol *pol = NULL;
	int r = rules_copy(&g->plan->net, &copy.rules);

	if (r < 0)
		return sb_err_set(err, r, "no memory");
	r = sb_net_amend_apply(a, &copy, err);
	if (r == 0)
		r = sb_plan_net_check(&copy, err);
	if (r == 0)
		r = sb_netpol_new(&copy, &pol, err);
	if (r < 0) {
		rules_free(copy.rules, copy.n_rules);
		return sb_err_set(err, r, "the amendment cannot be applied: errno %d", -r);
	}
	(void)sb_netpol_free(g->pol);
	g->pol = pol;
	rules_free(g->plan->net.rules, g->plan->net.n_rules);
	g->plan->net.rules = copy.rules;
	g->plan->net.n_rules = copy.n_rules;
	g->amended = a->seq;
	return 0;
}

int gate_amend(struct gate *g, const uint8_t signature[64], const char *bytes, size_t len,
	       struct sb_err *err)
{
	struct sb_net_amend a = { 0 };
	size_t cut;
	int r;

	if (len == 0 || len > SB_NET_AMEND_MAX)
		return sb_err_set(err, -EMSGSIZE, "an amendment has at most %d bytes",
				  SB_NET_AMEND_MAX);
	if (!sb_sign_verify(bytes, len, signature, g->public_key))
		return sb_err_set(err, -EKEYREJECTED, "the amendment's signature is not valid");
	r = sb_net_amend_parse(bytes, len, &a, err);
	if (r < 0)
		return r;
	if (memcmp(a.session, g->plan->session, sizeof(a.session)) != 0)
		r = sb_err_set(err, -EKEYREJECTED, "the amendment is for another session");
	else if (a.seq != g->amended + 1)
		r = sb_err_set(err, -ESTALE, "amendment %llu is next", (unsigned long long)g->amended + 1);
	else
		r = amend(g, &a, err);
	if (r == 0) {
		record(g, a.remove, a.n_remove, false);
		record(g, a.allow, a.n_allow, true);
		cut = conns_recheck(g);
		sb_debug("amendment %llu: %zu connections cut", (unsigned long long)a.seq, cut);
	}
	sb_net_amend_done(&a);
	return r;
}
