#include "channel_rig.h"

#include "plan_text.h"

static const char zeros[] = "0000000000000000000000000000000000000000000000000000000000000000";

/* --- the guest --- */

void flood(struct guest *g)
{
	while (g->out && g->flood > 0) {
		void *to;
		size_t n = sb_stream_reserve(g->out, &to);

		if (n == 0)
			return;
		n = SB_MIN(n, g->flood);
		memset(to, 'x', n);
		sb_stream_commit(g->out, n);
		g->flood -= n;
	}
}

static size_t g_data(struct sb_stream *s, const uint8_t *p, size_t len)
{
	struct guest *g = sb_stream_owner(s);

	if (g->hold_input)
		return 0;
	for (size_t i = 0; i < len && g->got + i < sizeof(g->text) - 1; i++)
		g->text[g->got + i] = (char)p[i];
	g->got += len;
	return len;
}

static void g_eof(struct sb_stream *s)
{
	struct guest *g = sb_stream_owner(s);

	g->in_eof = true;
}

static void g_reset(struct sb_stream *s)
{
	struct guest *g = sb_stream_owner(s);

	if (s == g->out) {
		g->out_reset = true;
		g->out = NULL;
	}
	if (s == g->in)
		g->in = NULL;
	if (s == g->err)
		g->err = NULL;
}

static void g_writable(struct sb_stream *s)
{
	flood(sb_stream_owner(s));
}

const struct sb_stream_ops g_stream = { g_data, g_eof, g_reset, g_writable };

static int g_control(struct sb_chan *c, const uint8_t *msg, size_t len)
{
	struct guest *g = sb_chan_owner(c);

	struct sb_ctl m;
	int r = sb_ctl_parse(msg, len, &m);

	if (r < 0)
		return r;
	if (m.type == SB_CTL_TIME) { /* comes between the others, at its own pace */
		g->time_ns = m.time_ns;
		return 0;
	}
	if (g->n_ctl == SB_ARRAY_LEN(g->ctl))
		return -ENOBUFS;
	g->ctl[g->n_ctl++] = m;
	return 0;
}

static int g_opened(struct sb_chan *c, struct sb_stream *s, enum sb_stream_kind kind, uint32_t cmd)
{
	struct guest *g = sb_chan_owner(c);

	(void)cmd;
	sb_stream_attach(s, &g_stream, g);
	if (kind == SB_STREAM_STDIN || kind == SB_STREAM_TERMINAL)
		g->in = s;
	if (kind == SB_STREAM_STDOUT || kind == SB_STREAM_TERMINAL)
		g->out = s;
	if (kind == SB_STREAM_STDERR)
		g->err = s;
	return 0;
}

static void g_closed(struct sb_chan *c, int err, const char *why)
{
	struct guest *g = sb_chan_owner(c);

	(void)err;
	(void)why;
	g->closed = true;
	g->in = g->out = g->err = NULL;
}

static const struct sb_chan_ops g_chan = { .control = g_control,
					   .opened = g_opened,
					   .closed = g_closed };

int say(struct guest *g, const struct sb_ctl *m)
{
	sb_autobuf struct sb_buf b;

	sb_buf_init(&b, SB_CTL_MAX);
	sb_ctl_write(&b, m);
	return sb_chan_control(g->c, b.data, b.len);
}

void say_exited(struct guest *g, uint32_t code)
{
	struct sb_ctl m = { .type = SB_CTL_EXITED,
			    .exit = { .kind = SB_EXIT_CODE, .value = code } };

	CHECK_EQ(say(g, &m), 0);
}

/* --- the rig --- */

static int plan_memfd(bool tty, bool net, uint8_t sha_sig[SB_SIGN_LEN],
		      uint8_t pub[SB_SIGN_PUBLIC_LEN])
{
	uint8_t sec[SB_SIGN_SECRET_LEN];
	char text[4096];
	int n = snprintf(
		text, sizeof(text),
		"{\"accel\":\"%s\",\"argv\":[\"/bin/true\"]," PLAN_BUNDLE
		"\"cpus\":2,\"cpus_asked\":false,"
		"\"created\":1000,\"cwd\":\"/w\"," PLAN_DENY "\"disk\":67108864," PLAN_ENV_A_1
		"\"expires\":2000," PLAN_FEATURES "\"format\":\"sendbox-plan\",\"gid\":1000,"
		PLAN_GUARDS "\"guest_sha256\":\"%s\","
		"\"home\":\"/home/user\"," PLAN_HOST_VERSION "\"hostname\":\"sendbox\",\"image\":\"host\","
		"\"image_dev\":0,\"image_ino\":0,\"image_path\":null,"
		"\"initramfs_sha256\":\"%s\",\"instance\":null,\"kernel_release\":%s,\"kernel_sha256\":\"%s\","
		PLAN_LOG_BLOCKED "\"memory\":%s,\"memory_asked\":false,\"mounts\":[],"
		"\"net\":{\"cname_strict\":false,\"dns_new_names\":0,\"dns_queries\":0,"
		"\"dns_types\":[],\"ech_outer\":false,\"host_bytes\":0,\"idle_ms\":0,"
		"\"max_connections\":%s,\"mode\":\"%s\",\"pins\":[],\"proxy_env\":false,"
		"\"resolvers\":[],\"rules\":[],\"session_bytes\":0},\"nofile\":1024,"
		"\"owner_gid\":1000,\"owner_uid\":1000," PLAN_PARTS "\"pids_asked\":false,"
		"\"pids_max\":512," PLAN_PROFILE "\"provider\":\"%s\",\"provider_asked\":\"%s\","
		"\"provider_reason\":\"asked for\"," PLAN_LIMITS
		"\"separate_stderr\":false,\"session\":\"000102030405060708090a0b0c0d0e0f\","
		PLAN_SSH "\"task\":\"command\",\"term\":%s,\"test_root\":false,\"timeout_ms\":0,\"tty\":%s,\"uid\":1000,"
		PLAN_UPPER "\"user\":\"user\",\"version\":3}",
		net ? "tcg" : "none", zeros, zeros, net ? "\"6.1.0\"" : "null", zeros,
		net ? "268435456" : "0", net ? "512" : "0", net ? "filter" : "none",
		net ? "microvm" : "namespace", net ? "microvm" : "namespace",
		tty ? "\"xterm\"" : "null", tty ? "true" : "false");
	int fd = memfd_create("plan", MFD_CLOEXEC);

	if (fd < 0 || write(fd, text, (size_t)n) != n)
		return -1;
	sb_sign_keypair(pub, sec);
	sb_sign(text, (size_t)n, sec, sha_sig);
	return fd;
}

struct wish {
	bool tty;
	bool bad_sig;
	bool bad_env;
	bool bad_session;
	bool net;
	const char *report; /* instead of one that is as it should be; NULL = RIG_REPORT */
	bool mismatch; /* the descriptor of the other kind of plan */
	uint32_t timeout_ms;
	uint32_t guest_max;
};

static bool spawn(struct rig *r, const struct wish *w)
{
	static const char *const argv[] = { "sendbox-channel", NULL };
	struct sb_ipc_chan_start start = { .psk = { 7 }, .ready_timeout_ms = w->timeout_ms };
	struct sb_spawn_fd map[2] = { { .to = 3 }, { .from = 2, .to = 2 } };
	struct sb_spawn sp = { .path = CHANNEL_EXE, .argv = argv, .fds = map, .n_fds = 2 };
	int ipc[2];
	int carrier[2];
	int front[2] = { -1, -1 };
	const int small = 8192;
	int fds[4];
	bool front_too = w->net != w->mismatch;
	struct sb_err err = { 0 };

	memset(r, 0, sizeof(*r));
	if (sb_crypto_init() < 0 || sb_loop_new(&r->loop) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ipc) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, carrier) < 0 ||
	    (front_too && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, front) < 0))
		return false;
	map[0].from = ipc[1];
	r->ipc = ipc[0];
	r->carrier = carrier[1];
	r->front = front[1];
	r->guest_max = w->guest_max;
	if (front_too) /* few messages fit, so that the others wait */
		(void)setsockopt(front[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	if (sb_spawn_start(&sp, &r->pid, NULL, &err) < 0) {
		t_fail(__FILE__, __LINE__, "%s", err.text);
		return false;
	}
	(void)close(ipc[1]);
	fds[0] = carrier[0];
	fds[1] = plan_memfd(w->tty, w->net, start.signature, start.public_key);
	memcpy(r->pub, start.public_key, sizeof(r->pub));
	fds[2] = memfd_create("env", MFD_CLOEXEC);
	fds[3] = front[0];
	for (uint8_t i = 0; i < sizeof(start.session); i++)
		start.session[i] = i;
	if (fds[2] < 0 || write(fds[2], w->bad_env ? "2" : "1", 2) != 2)
		return false;
	if (w->bad_session)
		start.session[15] ^= 1;
	if (w->bad_sig)
		start.signature[3] ^= 1;
	if (fds[1] < 0 ||
	    sb_ipc_send(r->ipc, SB_IPC_CHAN_START, &start, sizeof(start), fds, front_too ? 4 : 3) < 0)
		return false;
	(void)close(fds[0]);
	(void)close(fds[1]);
	(void)close(fds[2]);
	if (front_too)
		(void)close(front[0]);
	return true;
}

bool rig_spawn(struct rig *r, bool tty, uint32_t timeout_ms, bool bad_sig)
{
	return spawn(r, &(struct wish){ .tty = tty,
					.bad_sig = bad_sig,
					.timeout_ms = timeout_ms,
					.guest_max = SB_CHAN_MAX_NET });
}

bool rig_spawn_drifted(struct rig *r, bool env)
{
	return spawn(r, &(struct wish){ .bad_env = env, .bad_session = !env, .timeout_ms = 5000 });
}

bool rig_spawn_mismatch(struct rig *r, bool net)
{
	return spawn(r, &(struct wish){ .net = net, .mismatch = true, .timeout_ms = 5000 });
}

bool rig_boot(struct rig *r)
{
	struct sb_chan_config cfg = { .loop = r->loop,
				      .role = SB_CHAN_GUEST,
				      .fd_in = r->carrier,
				      .fd_out = r->carrier,
				      .prologue = r->prologue,
				      .prologue_len = sizeof(r->prologue),
				      .max_net = r->guest_max,
				      .ops = &g_chan,
				      .owner = &r->g };
	struct sb_err err = { 0 };

	if (sb_boot_read(r->carrier, r->pub, 1500, 3000, &r->boot, &err) < 0) {
		t_fail(__FILE__, __LINE__, "%s", err.text);
		return false;
	}
	sb_boot_prologue(r->boot.session, r->boot.plan_sha256, r->prologue);
	memcpy(cfg.psk, r->boot.psk, sizeof(cfg.psk));
	return sb_chan_new(&cfg, &r->g.c) == 0;
}

int rig_message(struct rig *r, int ms)
{
	uint64_t end = sb_now_ns() + (uint64_t)ms * 1000000U;

	while (sb_now_ns() < end) {
		struct pollfd p = { .fd = r->ipc, .events = POLLIN };

		if (sb_loop_turn(r->loop, 5) < 0)
			return -1;
		if (poll(&p, 1, 0) > 0) {
			int q = sb_ipc_recv(r->ipc, &r->msg);

			return q == 0 ? r->msg.type : q == SB_IPC_EOF ? 0 : -1;
		}
	}
	return -1;
}

bool rig_turn_until(struct rig *r, const bool *flag, int ms)
{
	uint64_t end = sb_now_ns() + (uint64_t)ms * 1000000U;

	while (!*flag && sb_now_ns() < end)
		if (sb_loop_turn(r->loop, 5) < 0)
			return false;
	return *flag;
}

static bool ready(struct rig *r, const struct wish *w)
{
	struct sb_ctl m = { .type = SB_CTL_READY, .text = RIG_REPORT,
			    .text_len = sizeof(RIG_REPORT) - 1 };

	if (w->report) {
		m.text = w->report;
		m.text_len = strlen(w->report);
	}

	if (!spawn(r, w) || !rig_boot(r))
		return false;
	for (int i = 0; i < 1000 && say(&r->g, &m) == -ENOTCONN; i++)
		if (sb_loop_turn(r->loop, 5) < 0)
			return false;
	return rig_message(r, 3000) == (w->report ? SB_IPC_FAILED : SB_IPC_READY);
}

bool rig_reports(struct rig *r, const char *report)
{
	return ready(r, &(struct wish){
				.timeout_ms = 5000, .guest_max = SB_CHAN_MAX_NET, .report = report });
}

bool rig_ready(struct rig *r, bool tty)
{
	return ready(r, &(struct wish){
				.tty = tty, .timeout_ms = 5000, .guest_max = SB_CHAN_MAX_NET });
}

bool rig_ready_net(struct rig *r, uint32_t guest_max)
{
	return ready(r, &(struct wish){ .net = true, .timeout_ms = 5000, .guest_max = guest_max });
}

bool rig_run(struct rig *r, int in, int out, int err)
{
	struct sb_ipc_run run = { .cmd = 0, .rows = 24, .cols = 80 };
	int fds[3] = { in, out, err };

	if (sb_ipc_send(r->ipc, SB_IPC_CHAN_RUN, &run, sizeof(run), fds, 3) < 0)
		return false;
	for (int i = 0; i < 1000 && r->g.n_ctl == 0; i++)
		if (sb_loop_turn(r->loop, 5) < 0)
			return false;
	/* the guest knows the time before its first command: 2020 to 2100 */
	return r->g.n_ctl == 1 && r->g.ctl[0].type == SB_CTL_RUN &&
	       r->g.time_ns > 1577836800000000000U && r->g.time_ns < 4102444800000000000U;
}

int rig_stop(struct rig *r)
{
	int st = -1;

	(void)close(r->ipc);
	(void)waitpid(r->pid, &st, 0);
	r->g.c = sb_chan_free(r->g.c);
	(void)close(r->carrier);
	if (r->front >= 0)
		(void)close(r->front);
	sb_boot_done(&r->boot);
	r->loop = sb_loop_free(r->loop);
	return st;
}
void check_resident(const struct rig *r, long limit_kib)
{
	char path[64];
	char line[256];
	long kib = -1;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)r->pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "VmRSS:", 6) == 0)
			kib = atol(line + 6);
	if (f)
		(void)fclose(f);
	printf("# resident: %ld KiB\n", kib);
	CHECK(kib > 0);
#ifndef SB_JAIL_RELAXED
	CHECK(kib <= limit_kib);
#else
	(void)limit_kib;
#endif
}
