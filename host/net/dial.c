/*
 * Theory of operation (RFC 8305, section 5). Addresses are put in order, families alternating,
 * IPv6 first where there is one. Each attempt starts when the one before has failed or 250 ms
 * after it; the first that connects wins, the others are closed. An address is judged right before
 * its connect(2), by the policy of that moment, so that nothing comes between the decision and
 * the act. An attempt that fails at once for want of a route does not count.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "net/gate.h"

#define MAX_ADDRS 64
#define MAX_ATTEMPTS 8
#define STAGGER_NS 250000000U
#define TOTAL_NS 30000000000U

struct attempt {
	int fd;
	struct sb_io io;
	struct sb_addr addr;
	struct dial *d;
};

struct dial {
	struct gate *g;
	dial_fn *fn;
	void *owner;
	struct sb_addr *addrs; /* in order of attempts */
	size_t n;
	size_t next;
	uint16_t port;
	bool judged;
	bool host; /* the host's own port: loopback is meant */
	struct attempt at[MAX_ATTEMPTS];
	size_t n_at;
	size_t n_open;
	int error;                   /* of the last attempt; 0 = none was made */
	enum sb_net_reason refusal;  /* of the first address that was refused */
	struct sb_addr refused;
	struct sb_addr last;
	struct sb_timer stagger;
	struct sb_timer total;
	bool telling;
};

static void attempt_close(struct attempt *a)
{
	if (a->fd < 0)
		return;
	sb_io_del(&a->io);
	sb_fd_close(&a->fd);
	a->d->n_open--;
}

static void dial_free(struct dial *d)
{
	for (size_t i = 0; i < d->n_at; i++)
		attempt_close(&d->at[i]);
	sb_timer_del(&d->stagger);
	sb_timer_del(&d->total);
	free(d->addrs);
	free(d);
}

static void tell(struct dial *d, struct dial_result *res)
{
	d->telling = true;
	d->fn(d, res);
	dial_free(d);
}

static void won(struct attempt *a)
{
	struct dial *d = a->d;
	struct dial_result res = { .fd = -1, .reason = SB_NET_OK, .addr = a->addr };

	if (a->io.active)
		sb_io_del(&a->io);
	res.fd = sb_fd_take(&a->fd);
	d->n_open--;
	tell(d, &res);
}

/* The rule of a refusal, looked up again: the policy may have been replaced in the meantime. */
static const struct sb_net_rule *rule_of(const struct dial *d)
{
	struct sb_net_verdict v = { 0 };

	if (d->refusal == SB_NET_ADDR_HOST)
		return NULL;
	sb_netpol_resolved(d->g->pol, &d->refused, d->port, &v);
	return v.allow ? NULL : v.rule;
}

static void lost(struct dial *d)
{
	struct dial_result res = { .fd = -1, .reason = SB_NET_CONNECT_FAILED, .addr = d->last };

	if (d->error == 0 && d->refusal != SB_NET_OK) {
		res.reason = d->refusal;
		res.addr = d->refused;
		res.rule = rule_of(d);
	} else {
		res.error = d->error ? d->error : EHOSTUNREACH;
	}
	tell(d, &res);
}

/* A connection to oneself: the kernel took the asked port for our end, nothing listens there. */
static bool to_itself(int fd, uint16_t port)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	uint16_t own;

	if (getsockname(fd, (struct sockaddr *)&sa, &len) < 0)
		return true;
	own = sa.ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)&sa)->sin6_port
				       : ((const struct sockaddr_in *)&sa)->sin_port;
	return ntohs(own) == port;
}

static enum sb_net_reason judge(const struct dial *d, const struct sb_addr *a)
{
	struct sb_net_verdict v = { 0 };

	if (d->host)
		return SB_NET_OK;
	if (!d->judged) {
		sb_netpol_resolved(d->g->pol, a, d->port, &v);
		if (!v.allow)
			return v.reason != SB_NET_OK ? v.reason : SB_NET_ADDR_NOT_ALLOWED;
	}
	return route_is_local(d->g->route, a) == 0 ? SB_NET_OK : SB_NET_ADDR_HOST;
}

static void go_on(struct dial *d);

static void on_connected(struct sb_io *io, uint32_t events)
{
	struct attempt *a = io->owner;
	struct dial *d = a->d;
	int error = 0;
	socklen_t len = sizeof(error);

	(void)events;
	if (getsockopt(a->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	if (error == 0 && d->host && to_itself(a->fd, d->port))
		error = ECONNREFUSED;
	if (error == 0) {
		won(a);
		return;
	}
	d->error = error;
	d->last = a->addr;
	attempt_close(a);
	go_on(d);
}

static int connect_to(int fd, const struct sb_addr *a, uint16_t port)
{
	struct sockaddr_in s4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 s6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int r;

	if (sb_addr_is_v4(a)) {
		memcpy(&s4.sin_addr, a->b + 12, 4);
		r = connect(fd, (const struct sockaddr *)&s4, sizeof(s4));
	} else {
		memcpy(&s6.sin6_addr, a->b, 16);
		r = connect(fd, (const struct sockaddr *)&s6, sizeof(s6));
	}
	return r < 0 ? -errno : 0;
}

/* Return: 0 = under way (also when it is there already: the loop will say so); -errno. */
static int attempt_start(struct dial *d, const struct sb_addr *addr)
{
	sb_autofd int fd = -1;
	struct attempt *a = &d->at[d->n_at];
	int r;

	fd = socket(sb_addr_is_v4(addr) ? AF_INET : AF_INET6,
		    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
	if (fd < 0)
		return -errno;
	r = connect_to(fd, addr, d->port);
	if (r < 0 && r != -EINPROGRESS)
		return r;
	*a = (struct attempt){ .fd = -1, .addr = *addr, .d = d };
	r = sb_io_set(d->g->loop, &a->io, fd, EPOLLOUT, on_connected, a);
	if (r < 0)
		return r;
	a->fd = sb_fd_take(&fd);
	d->n_at++;
	d->n_open++;
	return 0;
}

static void on_stagger(struct sb_timer *t)
{
	go_on(t->owner);
}

static void on_total(struct sb_timer *t)
{
	struct dial *d = t->owner;

	d->error = ETIMEDOUT;
	lost(d);
}

/* Start the next attempt, or tell that there is none left. */
static void go_on(struct dial *d)
{
	sb_timer_del(&d->stagger);
	while (d->next < d->n && d->n_at < MAX_ATTEMPTS) {
		const struct sb_addr *addr = &d->addrs[d->next++];
		enum sb_net_reason why = judge(d, addr);
		int r;

		if (why != SB_NET_OK) {
			if (d->refusal == SB_NET_OK) {
				d->refusal = why;
				d->refused = *addr;
			}
			continue;
		}
		r = attempt_start(d, addr);
		if (r == 0) {
			if (d->next < d->n)
				sb_timer_set(d->g->loop, &d->stagger, STAGGER_NS, on_stagger, d);
			return;
		}
		d->error = -r;
		d->last = *addr;
	}
	if (d->n_open == 0)
		lost(d);
}

/* Alternate the families; the resolver's order holds within each. */
static void interleave(struct dial *d, const struct sb_addr *addrs, size_t n)
{
	size_t i6 = 0;
	size_t i4 = 0;
	bool want6 = true;

	while (d->n < n) {
		while (i6 < n && sb_addr_is_v4(&addrs[i6]))
			i6++;
		while (i4 < n && !sb_addr_is_v4(&addrs[i4]))
			i4++;
		if ((want6 && i6 < n) || i4 >= n)
			d->addrs[d->n++] = addrs[i6++];
		else
			d->addrs[d->n++] = addrs[i4++];
		want6 = !want6;
	}
}

static int dial_new(struct gate *g, const struct sb_addr *addrs, size_t n, uint16_t port,
		    struct dial **ret)
{
	sb_autofree struct dial *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	n = SB_MIN(n, (size_t)MAX_ADDRS);
	d->addrs = calloc(n ? n : 1, sizeof(*d->addrs));
	if (!d->addrs)
		return -ENOMEM;
	d->g = g;
	d->port = port;
	interleave(d, addrs, n);
	*ret = sb_take(&d);
	return 0;
}

static void dial_go(struct dial *d, dial_fn *fn, void *owner)
{
	d->fn = fn;
	d->owner = owner;
	sb_timer_set(d->g->loop, &d->total, TOTAL_NS, on_total, d);
	sb_timer_set(d->g->loop, &d->stagger, 0, on_stagger, d); /* never from inside the call */
}

int dial_start(struct gate *g, const struct sb_addr *addrs, size_t n, uint16_t port, bool judged,
	       dial_fn *fn, void *owner, struct dial **ret)
{
	struct dial *d;
	int r = dial_new(g, addrs, n, port, &d);

	if (r < 0)
		return r;
	d->judged = judged;
	dial_go(d, fn, owner);
	*ret = d;
	return 0;
}

int dial_host(struct gate *g, uint16_t port, dial_fn *fn, void *owner, struct dial **ret)
{
	static const uint8_t lo4[4] = { 127, 0, 0, 1 };
	struct sb_addr addrs[2] = { { { 0 } }, { .b = { [15] = 1 } } };
	struct dial *d;
	int r;

	sb_addr_from_v4(lo4, &addrs[0]);
	r = dial_new(g, addrs, 2, port, &d);
	if (r < 0)
		return r;
	d->addrs[0] = addrs[0]; /* 127.0.0.1 first, whatever the usual order is */
	d->addrs[1] = addrs[1];
	d->host = true;
	dial_go(d, fn, owner);
	*ret = d;
	return 0;
}

void dial_cancel(struct dial *d)
{
	if (d && !d->telling)
		dial_free(d);
}

void *dial_owner(const struct dial *d)
{
	return d->owner;
}
