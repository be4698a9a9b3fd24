#include "rig.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "crypto/crypto.h"
#include "wire/net_hello.h"

static int ns_host = -1;
static int ns_guest = -1;
static int ns_internet = -1;
void (*rig_before)(void);
static int made; /* 0 = not tried, 1 = there, -1 = cannot be had */

static int ns_new(void)
{
	if (unshare(CLONE_NEWNET) < 0)
		return -1;
	return fcntl(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), F_DUPFD, 100);
}

static bool write_file(const char *path, const char *s)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, s, strlen(s)) == (ssize_t)strlen(s);

	if (fd >= 0)
		(void)close(fd);
	return ok;
}

static bool make(void)
{
	char cmd[256];
	char map[64];
	uid_t uid = getuid();

	if (uid != 0) {
		if (unshare(CLONE_NEWUSER) < 0)
			return false;
		(void)snprintf(map, sizeof(map), "0 %u 1", (unsigned int)uid);
		if (!write_file("/proc/self/setgroups", "deny") ||
		    !write_file("/proc/self/uid_map", map))
			return false;
	}
	ns_internet = ns_new();
	if (ns_internet < 0 || system("ip link set lo up"))
		return false;
	ns_guest = ns_new();
	if (ns_guest < 0 ||
	    system("ip link set lo up && ip addr add 198.18.0.1/32 dev lo && "
		   "ip route add local 0.0.0.0/0 dev lo src 198.18.0.1"))
		return false;
	ns_host = ns_new();
	(void)snprintf(cmd, sizeof(cmd),
		       "ip link set lo up && ip link add v0 type veth peer name v1 && "
		       "ip link set v1 netns /proc/self/fd/%d && ip addr add 192.0.2.1/24 dev v0 && "
		       "ip link set v0 up",
		       ns_internet);
	if (ns_host < 0 || system(cmd))
		return false;
	if (setns(ns_internet, CLONE_NEWNET) < 0 ||
	    system("ip addr add 192.0.2.2/24 dev v1 && ip link set v1 up && "
		   "ip addr add " WEB "/32 dev lo && ip addr add " OTHER "/32 dev lo && "
		   "ip addr add " LAN "/32 dev lo"))
		return false;
	return setns(ns_host, CLONE_NEWNET) == 0 &&
	       system("ip route add default via 192.0.2.2") == 0;
}

bool rig_usable(void)
{
	if (made == 0) {
		(void)signal(SIGPIPE, SIG_IGN);
		made = sb_crypto_init() == 0 && make() ? 1 : -1;
	}
	if (made < 0)
		t_skip("no network namespaces");
	return made > 0;
}

/* Sockets are made in the namespace in which the thread is. */
static void within(int ns)
{
	if (setns(ns, CLONE_NEWNET) < 0)
		abort();
}

/* --- plan and start --- */

static char *text(const char *s)
{
	char *p = strdup(s);

	if (!p)
		abort();
	return p;
}

bool rig_init(struct rig *r, enum sb_provider_id provider)
{
	struct sb_plan *p = calloc(1, sizeof(*p));

	if (!rig_usable())
		return false;
	memset(r, 0, sizeof(*r));
	r->fds_before = t_open_fds();
	for (uint8_t i = 0; i < 16; i++)
		p->session[i] = i;
	p->created_unix_s = 1000;
	p->expires_unix_s = 2000;
	p->provider = provider;
	p->accel = provider == SB_PROVIDER_MICROVM ? SB_ACCEL_TCG : SB_ACCEL_NONE;
	p->provider_reason = text("asked for");
	p->provider_asked = text(provider == SB_PROVIDER_MICROVM ? "microvm" : "namespace");
	p->host_version = text("0.4");
	p->bundle.origin = text("local build");
	p->bundle.sequence = 1;
	p->profile = SB_PROFILE_DEFAULT;
	p->commands.fallback = SB_CMD_ALLOW;
	memset(&p->rlimits, 0xff, sizeof(p->rlimits)); /* SB_PLAN_NO_LIMIT */
	p->image = SB_IMAGE_HOST;
	p->upper.kind = SB_UPPER_TMPFS;
	p->task = SB_TASK_COMMAND;
	if (provider == SB_PROVIDER_MICROVM) {
		p->kernel_release = text("6.1.0");
		memset(p->kernel_sha256, 1, 32);
		memset(p->initramfs_sha256, 1, 32);
	}
	memset(p->guest_sha256, 1, 32);
	p->argv = calloc(2, sizeof(char *));
	p->argv[0] = text("/bin/true");
	p->cwd = text("/");
	p->uid = p->gid = p->owner_uid = p->owner_gid = 1000;
	p->user = text("user");
	p->home = text("/home/user");
	p->hostname = text("sendbox");
	p->cpus = 1;
	p->memory_bytes = provider == SB_PROVIDER_MICROVM ? 256U << 20 : 0;
	p->disk_bytes = 64U << 20;
	p->pids_max = 512;
	p->nofile = 1024;
	p->net.mode = SB_NET_FILTER;
	p->net.resolvers = calloc(1, sizeof(char *));
	p->net.dns_types = calloc(1, sizeof(char *));
	p->net.max_connections = 64;
	p->net.dns_queries = 3000;
	p->net.dns_new_names = 100;
	r->plan = p;
	return true;
}

static int add_rule(void *arg, const struct sb_net_rule *rule)
{
	return sb_net_rule_add(arg, rule);
}

static bool rule_into(struct sb_plan_net *n, const char *rule)
{
	struct sb_err err = { 0 };
	bool deny = strncmp(rule, "deny ", 5) == 0;

	rule += deny ? 5 : 0;
	if (sb_net_rule_parse(rule, strlen(rule), deny, "test", add_rule, n, &err) == 0)
		return true;
	t_fail(__FILE__, __LINE__, "rule %s: %s", rule, err.text);
	return false;
}

bool rig_rule(struct rig *r, const char *rule)
{
	return rule_into(&r->plan->net, rule);
}

bool rig_pin(struct rig *r, const char *name, const char *addr)
{
	struct sb_plan_net *n = &r->plan->net;

	n->pins = realloc(n->pins, (n->n_pins + 1) * sizeof(*n->pins));
	n->pins[n->n_pins++] = (struct sb_net_pin){ .name = text(name), .addr = text(addr) };
	return true;
}

bool rig_start(struct rig *r)
{
	struct sb_ipc_net_start start;
	struct sb_err err = { 0 };
	char *bytes = NULL;
	size_t len = 0;
	int front[2];
	int ipc[2];
	int fd = memfd_create("plan", MFD_CLOEXEC);
	bool ok;

	sb_sign_keypair(start.public_key, r->secret);
	if (sb_plan_write(r->plan, &bytes, &len, &err) < 0) {
		t_fail(__FILE__, __LINE__, "plan: %s", err.text);
		return false;
	}
	r->plan = sb_plan_free(r->plan);
	sb_sign(bytes, len, r->secret, start.signature);
	if (fd < 0 || sb_fd_write_all(fd, bytes, len) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, front) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ipc) < 0)
		abort();
	free(bytes);
	r->monitor = ipc[0];
	r->front = front[0];
	r->g.ipc = ipc[1];
	ok = gate_open(&r->g, &start, &front[1], fd, &err) == 0 && gate_serve(&r->g) == 0;
	if (!ok)
		t_fail(__FILE__, __LINE__, "start: %s", err.text);
	sb_fd_close(&front[1]);
	sb_fd_close(&fd);
	return ok;
}

void rig_done(struct rig *r)
{
	if (r->plan) {
		r->plan = sb_plan_free(r->plan);
		return;
	}
	gate_done(&r->g);
	sb_fd_close(&r->g.ipc);
	sb_fd_close(&r->monitor);
	sb_fd_close(&r->front);
	CHECK_EQ(t_open_fds(), r->fds_before);
}

/* --- waiting --- */

/* As the monitor does, once it is on record. */
static void answer(struct rig *r, const struct sb_ipc_msg *msg)
{
	const struct sb_ipc_gate_pending *p = (const void *)msg->data;
	struct sb_ipc_gate_answer a = { .id = p->id, .allow = !r->refuse_pending,
					.reason = r->refuse_pending };

	r->n_pending++;
	if (!r->hold_pending && sb_ipc_send(r->monitor, SB_IPC_GATE_ANSWER, &a, sizeof(a), NULL, 0) < 0)
		t_fail(__FILE__, __LINE__, "answer");
}

static void take_events(struct rig *r)
{
	for (;;) {
		sb_automsg struct sb_ipc_msg msg;
		const struct sb_ipc_net_event *ev;
		size_t n;

		msg.n_fds = 0;
		if (sb_ipc_recv(r->monitor, &msg) != 0)
			return;
		if (msg.type == SB_IPC_FAILED)
			r->stopped = true;
		if (msg.type == SB_IPC_GATE_PENDING)
			answer(r, &msg);
		n = sb_ipc_get_events(&msg, &ev);
		for (size_t i = 0; i < n; i++) {
			if (ev[i].kind < 8)
				r->told[ev[i].kind][ev[i].allow != 0] += ev[i].count;
			if (r->n_ev < RIG_EVENTS && ev[i].kind != SB_NET_EV_DNS)
				r->ev[r->n_ev++] = ev[i];
		}
	}
}

static void turn(struct rig *r, int ms)
{
	if (sb_loop_turn(r->g.loop, ms) < 0)
		t_fail(__FILE__, __LINE__, "loop");
	take_events(r);
}

bool rig_ready(struct rig *r, int fd, short events, int ms)
{
	struct pollfd p = { .fd = fd, .events = events };
	uint64_t end = sb_now_ns() + (uint64_t)ms * 1000000U;

	for (;;) {
		if (poll(&p, 1, 0) > 0)
			return true;
		if (sb_now_ns() >= end)
			return false;
		turn(r, 1);
	}
}

void rig_spin(struct rig *r, int ms)
{
	uint64_t end = sb_now_ns() + (uint64_t)ms * 1000000U;

	do
		turn(r, 1);
	while (sb_now_ns() < end);
}

/* --- sockets --- */

static struct sockaddr_in to_sin(const char *addr, uint16_t port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(port) };

	if (inet_pton(AF_INET, addr, &sin.sin_addr) != 1)
		abort();
	return sin;
}

static int listen_in(int ns, const char *addr, uint16_t port)
{
	struct sockaddr_in sin = to_sin(addr, port);
	int one = 1;
	int fd;

	within(ns);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    bind(fd, (const struct sockaddr *)&sin, sizeof(sin)) < 0 || listen(fd, 64) < 0)
		t_fail(__FILE__, __LINE__, "listen on %s:%u: errno %d", addr, port, errno);
	within(ns_host);
	return fd;
}

int rig_serve(const char *addr, uint16_t port)
{
	return listen_in(ns_internet, addr, port);
}

int rig_accept(struct rig *r, int listener)
{
	if (!rig_ready(r, listener, POLLIN, 1000))
		return -1;
	return accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

/* The address for @to: itself, or what stands for the name. */
static void address_of(struct rig *r, const char *to, struct sb_addr *a)
{
	if (sb_addr_parse(to, strlen(to), a) < 0 && names_addr(r->g.names, to, false, a) < 0)
		abort();
}

int rig_dial(struct rig *r, const char *to, uint16_t port)
{
	int listener = rig_guest_socket(SOCK_STREAM, port);
	char to_text[SB_ADDR_TEXT];
	struct sb_addr a;
	int fd;
	int s;

	address_of(r, to, &a);
	sb_addr_format(&a, to_text);
	fd = rig_guest_connect(to_text, port);
	s = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (s < 0)
		t_fail(__FILE__, __LINE__, "accept: errno %d", errno);
	sb_fd_close(&listener);
	if (rig_before)
		rig_before();
	conn_accepted(&r->g, &s);
	return fd;
}

int rig_guest_socket(int type, uint16_t port)
{
	struct sockaddr_in sin = to_sin("0.0.0.0", port);
	int one = 1;
	int fd;

	within(ns_guest);
	fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    bind(fd, (const struct sockaddr *)&sin, sizeof(sin)) < 0 ||
	    (type == SOCK_STREAM && listen(fd, 64) < 0))
		t_fail(__FILE__, __LINE__, "socket: errno %d", errno);
	within(ns_host);
	return fd;
}

int rig_guest_connect(const char *addr, uint16_t port)
{
	struct sockaddr_in sin = to_sin(addr, port);
	int fd;

	within(ns_guest);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&sin, sizeof(sin)) < 0 ||
	    sb_fd_set_nonblock(fd, true) < 0)
		t_fail(__FILE__, __LINE__, "connect to %s: errno %d", addr, errno);
	within(ns_host);
	return fd;
}

int rig_front_stream(struct rig *r)
{
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sv) < 0 ||
	    sb_ipc_send(r->front, SB_IPC_NET_STREAM, NULL, 0, &sv[1], 1) < 0)
		t_fail(__FILE__, __LINE__, "stream: errno %d", errno);
	sb_fd_close(&sv[1]);
	if (rig_before)
		rig_before();
	turn(r, 1);
	return sv[0];
}

int rig_stream(struct rig *r, const char *to, uint16_t port)
{
	struct sb_net_hello h = { .kind = SB_NET_HELLO_TCP, .port = port };
	uint8_t bytes[SB_NET_HELLO_LEN];
	struct sb_addr a;
	int fd;

	address_of(r, to, &a);
	memcpy(h.addr, a.b, sizeof(h.addr));
	sb_net_hello_write(&h, bytes);
	fd = rig_front_stream(r);
	if (rig_before)
		(void)send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL);
	else
		rig_send(r, fd, bytes, sizeof(bytes));
	turn(r, 1);
	return fd;
}

/* --- bytes --- */

void rig_send(struct rig *r, int fd, const void *p, size_t len)
{
	const uint8_t *at = p;

	while (len > 0) {
		ssize_t n = send(fd, at, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN && rig_ready(r, fd, POLLOUT, 1000))
			continue;
		if (n < 0) {
			t_fail(__FILE__, __LINE__, "send: errno %d", errno);
			return;
		}
		at += n;
		len -= (size_t)n;
	}
}

void rig_say(struct rig *r, int fd, const char *s)
{
	rig_send(r, fd, s, strlen(s));
}

static size_t read_some(struct rig *r, int fd, uint8_t *buf, size_t len, int *error)
{
	size_t done = 0;

	*error = 0;
	while (done < len) {
		ssize_t n;

		if (!rig_ready(r, fd, POLLIN, 1500)) {
			*error = -ETIMEDOUT;
			break;
		}
		n = recv(fd, buf + done, len - done, 0);
		if (n == 0)
			break;
		if (n < 0) {
			*error = -errno;
			break;
		}
		done += (size_t)n;
	}
	return done;
}

size_t rig_read(struct rig *r, int fd, void *buf, size_t len)
{
	int error;

	return read_some(r, fd, buf, len, &error);
}

bool rig_expect(struct rig *r, int fd, const char *want)
{
	char buf[4096];
	size_t len = strlen(want);
	size_t n = rig_read(r, fd, buf, SB_MIN(len, sizeof(buf) - 1));

	buf[n] = '\0';
	if (n == len && memcmp(buf, want, len) == 0)
		return true;
	t_fail(__FILE__, __LINE__, "got \"%s\", want \"%s\"", buf, want);
	return false;
}

int rig_rest(struct rig *r, int fd, char *buf, size_t cap)
{
	int error;
	size_t n = read_some(r, fd, (uint8_t *)buf, cap - 1, &error);

	buf[n] = '\0';
	return error;
}

bool rig_is_reset(struct rig *r, int fd)
{
	char buf[256];
	int e = rig_rest(r, fd, buf, sizeof(buf));

	if (e == -ECONNRESET && buf[0] == '\0')
		return true;
	t_fail(__FILE__, __LINE__, "no reset: %d, \"%s\"", e, buf);
	return false;
}

bool rig_quiet(struct rig *r, int fd, int ms)
{
	return !rig_ready(r, fd, POLLIN, ms);
}

/* --- events --- */

const struct sb_ipc_net_event *rig_event(struct rig *r, uint8_t kind, size_t n)
{
	uint64_t end = sb_now_ns() + 1000000000U;

	do {
		size_t k = 0;

		for (size_t i = 0; i < r->n_ev; i++)
			if (r->ev[i].kind == kind && k++ == n)
				return &r->ev[i];
		turn(r, 1);
	} while (sb_now_ns() < end);
	return NULL;
}

size_t rig_count(struct rig *r, uint8_t kind)
{
	size_t k = 0;

	rig_spin(r, 30);
	for (size_t i = 0; i < r->n_ev; i++)
		if (r->ev[i].kind == kind)
			k++;
	return k;
}

bool rig_refused(struct rig *r, enum sb_net_reason reason)
{
	const struct sb_ipc_net_event *ev = rig_event(r, SB_NET_EV_CONNECT, 0);

	if (ev && !ev->allow && ev->reason == reason && rig_count(r, SB_NET_EV_CONNECT) == 1 &&
	    rig_count(r, SB_NET_EV_CLOSED) == 0)
		return true;
	t_fail(__FILE__, __LINE__, "event: allow %d, %s, %zu in all; want %s", ev ? ev->allow : -1,
	       ev ? sb_net_reason_name((enum sb_net_reason)ev->reason) : "none",
	       rig_count(r, SB_NET_EV_CONNECT), sb_net_reason_name(reason));
	return false;
}

int rig_amend(struct rig *r, uint64_t seq, const char *allow, const char *remove)
{
	struct sb_plan_net add = { .mode = SB_NET_FILTER };
	struct sb_plan_net sub = { .mode = SB_NET_FILTER };
	struct sb_net_amend a = { .seq = seq };
	struct sb_err err = { 0 };
	uint8_t sig[64];
	char *bytes = NULL;
	size_t len = 0;
	int res;

	memcpy(a.session, r->g.plan->session, sizeof(a.session));
	if ((allow && !rule_into(&add, allow)) || (remove && !rule_into(&sub, remove)))
		return -EINVAL;
	a.allow = add.rules;
	a.n_allow = add.n_rules;
	a.remove = sub.rules;
	a.n_remove = sub.n_rules;
	res = sb_net_amend_write(&a, &bytes, &len);
	if (res == 0) {
		sb_sign(bytes, len, r->secret, sig);
		res = gate_amend(&r->g, sig, bytes, len, &err);
	}
	if (res < 0)
		printf("# amendment: %d %s\n", res, err.text);
	free(bytes);
	sb_plan_net_done(&add);
	sb_plan_net_done(&sub);
	return res;
}

/* --- TLS --- */

static size_t put16(uint8_t *p, size_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
	return 2;
}

size_t rig_hello(const char *sni, bool ech, uint8_t *out, size_t cap)
{
	uint8_t ext[512];
	size_t n = 0;
	size_t at = 0;

	if (sni) {
		size_t len = strlen(sni);

		n += put16(ext + n, 0);
		n += put16(ext + n, len + 5);
		n += put16(ext + n, len + 3);
		ext[n++] = 0;
		n += put16(ext + n, len);
		memcpy(ext + n, sni, len);
		n += len;
	}
	if (ech) {
		n += put16(ext + n, 0xfe0d);
		n += put16(ext + n, 1);
		ext[n++] = 0;
	}
	n += put16(ext + n, 43); /* supported_versions: 1.3 */
	n += put16(ext + n, 3);
	ext[n++] = 2;
	n += put16(ext + n, 0x0304);
	if (cap < n + 64)
		abort();
	out[at++] = 0x16;
	at += put16(out + at, 0x0301);
	at += put16(out + at, 4 + 2 + 32 + 1 + 4 + 2 + 2 + n);
	out[at++] = 1;
	out[at++] = 0;
	at += put16(out + at, 2 + 32 + 1 + 4 + 2 + 2 + n);
	at += put16(out + at, 0x0303);
	memset(out + at, 7, 32);
	at += 32;
	out[at++] = 0; /* session id */
	at += put16(out + at, 2);
	at += put16(out + at, 0x1301);
	out[at++] = 1;
	out[at++] = 0; /* compression: none */
	at += put16(out + at, n);
	memcpy(out + at, ext, n);
	return at + n;
}
