#include "host_end.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conn/boot.h"
#include "conn/plan_env.h"
#include "crypto/crypto.h"
#include "exec/serve.h"
#include "os/rmtree.h"

#define KEEP (1U << 20)
#define DEADLINE_NS 10000000000ULL

uint64_t he_sum(uint64_t sum, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sum = (sum ^ p[i]) * 1099511628211ULL;
	return sum;
}

void he_pattern(uint8_t *p, size_t from, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		size_t at = from + i;

		p[i] = (uint8_t)(at * 31 + (at >> 8) * 7 + (at >> 16));
	}
}

/* --- streams --- */

static size_t sink_data(struct sb_stream *s, const uint8_t *p, size_t len)
{
	struct he_sink *k = sb_stream_owner(s);

	if (k->stop)
		return 0;
	if (!k->data)
		k->data = calloc(1, KEEP + 1);
	if (k->data && k->keep < KEEP) {
		size_t n = SB_MIN(len, KEEP - k->keep);

		memcpy(k->data + k->keep, p, n);
		k->keep += n;
	}
	k->sum = he_sum(k->len == 0 ? HE_SUM_INIT : k->sum, p, len);
	k->len += len;
	return len;
}
static void sink_eof(struct sb_stream *s)
{
	struct he_sink *k = sb_stream_owner(s);

	k->eof = true;
}
static void sink_reset(struct sb_stream *s)
{
	struct he_sink *k = sb_stream_owner(s);

	k->s = NULL;
}
static void nothing(struct sb_stream *s)
{
	(void)s;
}
static const struct sb_stream_ops sink_ops = { sink_data, sink_eof, sink_reset, nothing };

static void pump(struct he_source *in)
{
	uint8_t chunk[8192];

	while (in->s && in->sent < in->len) {
		size_t n = SB_MIN(in->len - in->sent, sizeof(chunk));
		const uint8_t *p = in->data ? in->data + in->sent : chunk;
		size_t w;

		if (!in->data)
			he_pattern(chunk, in->sent, n);
		w = sb_stream_write(in->s, p, n);
		in->sent += w;
		if (w < n) {
			(void)sb_stream_space(in->s); /* asks for writable() */
			return;
		}
	}
	if (in->s && in->eof_after && in->sent == in->len) {
		in->eof_after = false;
		sb_stream_send_eof(in->s);
	}
}
static size_t in_data(struct sb_stream *s, const uint8_t *p, size_t len)
{
	(void)s;
	(void)p;
	return len;
}
static void in_reset(struct sb_stream *s)
{
	struct he_source *in = sb_stream_owner(s);

	in->s = NULL;
}
static void in_writable(struct sb_stream *s)
{
	pump(sb_stream_owner(s));
}
static const struct sb_stream_ops in_ops = { in_data, nothing, in_reset, in_writable };

static size_t term_data(struct sb_stream *s, const uint8_t *p, size_t len);
static void term_eof(struct sb_stream *s)
{
	struct he_cmd *c = sb_stream_owner(s);

	c->out.eof = true;
}
static void term_reset(struct sb_stream *s)
{
	struct he_cmd *c = sb_stream_owner(s);

	c->in.s = NULL;
	c->out.s = NULL;
}
static void term_writable(struct sb_stream *s)
{
	struct he_cmd *c = sb_stream_owner(s);

	pump(&c->in);
}
static const struct sb_stream_ops term_ops = { term_data, term_eof, term_reset, term_writable };
static size_t term_data(struct sb_stream *s, const uint8_t *p, size_t len)
{
	struct he_cmd *c = sb_stream_owner(s);
	size_t n;

	/* the same sink, reached from another owner */
	s = c->out.s;
	if (c->out.stop)
		return 0;
	if (!c->out.data)
		c->out.data = calloc(1, KEEP + 1);
	n = SB_MIN(len, KEEP - c->out.keep);
	if (c->out.data && n > 0) {
		memcpy(c->out.data + c->out.keep, p, n);
		c->out.keep += n;
	}
	c->out.sum = he_sum(c->out.len == 0 ? HE_SUM_INIT : c->out.sum, p, len);
	c->out.len += len;
	return len;
}

/* --- channel --- */

static void on_ready(struct sb_chan *c)
{
	(void)c;
}
static int on_control(struct sb_chan *c, const uint8_t *msg, size_t len)
{
	struct he *h = sb_chan_owner(c);
	struct sb_ctl m;
	int r = sb_ctl_parse(msg, len, &m);

	if (r < 0)
		return r;
	switch (m.type) {
	case SB_CTL_READY:
		h->ready = true;
		if (m.text_len < sizeof(h->report))
			memcpy(h->report, m.text, m.text_len);
		return 0;
	case SB_CTL_STARTED:
		if (m.cmd < HE_CMDS)
			h->cmd[m.cmd].started = true;
		return 0;
	case SB_CTL_EXITED:
		if (m.cmd < HE_CMDS) {
			h->cmd[m.cmd].exited = true;
			h->cmd[m.cmd].result = m;
		}
		return 0;
	case SB_CTL_FAILED:
		memcpy(h->failed, m.text, SB_MIN(m.text_len, sizeof(h->failed) - 1));
		return 0;
	case SB_CTL_BYE:
		h->bye = true;
		return 0;
	default:
		return -EPROTO;
	}
}
static void on_closed(struct sb_chan *c, int err, const char *why)
{
	struct he *h = sb_chan_owner(c);

	if (err < 0 && !h->bye)
		printf("# channel closed: %d %s\n", err, why ? why : "");
	h->closed = true;
}
static const struct sb_chan_ops chan_ops = { .ready = on_ready,
					     .control = on_control,
					     .closed = on_closed };

/* --- session --- */

static int guest_main(const struct sb_boot *boot, int carrier)
{
	struct sb_guest_env env = { .boot = boot, .carrier = carrier, .ready_text = "kernel=test\nuser_namespaces=closed\n" };

	return sb_guest_serve(&env) == 0 ? 0 : 1;
}

bool he_start(struct he *h, char **argv, bool tty, bool separate_stderr,
	      void (*plan_edit)(struct sb_plan *))
{
	struct sb_plan plan = {
		.provider = SB_PROVIDER_NAMESPACE,
		.argv = argv,
		.tty = tty,
		.separate_stderr = separate_stderr,
		.term = tty ? (char *)(uintptr_t) "xterm" : NULL,
		.uid = HE_UID,
		.gid = HE_UID,
		.user = (char *)(uintptr_t) "agent",
		.pids_max = 256,
		.nofile = 1024,
		.profile = SB_PROFILE_DEFAULT,
		.rlimits = { SB_PLAN_NO_LIMIT, SB_PLAN_NO_LIMIT, SB_PLAN_NO_LIMIT,
			     SB_PLAN_NO_LIMIT, SB_PLAN_NO_LIMIT, SB_PLAN_NO_LIMIT },
	};
	struct sb_boot boot = { .plan = &plan };
	struct sb_chan_config cfg = { .role = SB_CHAN_HOST, .ops = &chan_ops, .owner = h };
	uint8_t prologue[SB_PROLOGUE_LEN];
	int sv[2];

	*h = (struct he){ .carrier = -1 };
	(void)snprintf(h->home, sizeof(h->home), "/tmp/t-exec-XXXXXX");
	if (!mkdtemp(h->home) || chown(h->home, HE_UID, HE_UID) < 0)
		return false;
	plan.home = h->home;
	plan.cwd = h->home;
	if (sb_crypto_init() < 0 || sb_plan_env_set(&plan, "PATH", 4, "/usr/bin:/bin") < 0)
		return false;
	if (plan_edit)
		plan_edit(&plan);
	memset(boot.psk, 7, sizeof(boot.psk));
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sv) < 0)
		return false;
	(void)fflush(NULL);
	h->guest = fork();
	if (h->guest < 0)
		return false;
	if (h->guest == 0) {
		(void)close(sv[0]);
		_exit(guest_main(&boot, sv[1]));
	}
	(void)close(sv[1]);
	sb_plan_env_wipe(&plan);
	free(plan.env[0].name);
	free(plan.env);
	h->carrier = sv[0];
	if (sb_loop_new(&h->loop) < 0)
		return false;
	cfg.loop = h->loop;
	cfg.fd_in = cfg.fd_out = h->carrier;
	memset(cfg.psk, 7, sizeof(cfg.psk));
	sb_boot_prologue(boot.session, boot.plan_sha256, prologue);
	cfg.prologue = prologue;
	cfg.prologue_len = sizeof(prologue);
	return sb_chan_new(&cfg, &h->chan) == 0 && he_until_ready(h);
}

void he_turn(struct he *h, int ms)
{
	(void)!sb_loop_turn(h->loop, ms);
}

#define UNTIL(h, cond)                                                                             \
	do {                                                                                       \
		uint64_t dl_ = sb_now_ns() + DEADLINE_NS;                                          \
		while (!(cond) && !(h)->closed && sb_now_ns() < dl_)                               \
			he_turn((h), 100);                                                         \
	} while (0)

bool he_until_ready(struct he *h)
{
	UNTIL(h, h->ready || h->failed[0]);
	return h->ready;
}

bool he_until_exited(struct he *h, uint32_t cmd)
{
	struct he_cmd *c = &h->cmd[cmd];

	UNTIL(h, c->exited && (!c->out.s || c->out.eof) && (!c->err.s || c->err.eof));
	return c->exited && (!c->out.s || c->out.eof) && (!c->err.s || c->err.eof);
}

bool he_until_text(struct he *h, uint32_t cmd, const char *text)
{
	UNTIL(h, strstr(he_text(h, cmd), text));
	if (strstr(he_text(h, cmd), text))
		return true;
	printf("# no \"%s\"; sent %zu of %zu; got:\n", text, h->cmd[cmd].in.sent,
	       h->cmd[cmd].in.len);
	for (const char *p = he_text(h, cmd); *p; p++)
		(void)putchar(*p >= ' ' && *p < 127 ? *p : '.');
	printf("\n");
	return false;
}

const char *he_text(struct he *h, uint32_t cmd)
{
	const uint8_t *p = h->cmd[cmd].out.data;

	return p ? (const char *)p : "";
}

bool he_open(struct he *h, uint32_t cmd, const char *streams)
{
	struct he_cmd *c = &h->cmd[cmd];

	for (; *streams; streams++) {
		int r = -EINVAL;

		if (*streams == 'i')
			r = sb_stream_open(h->chan, SB_STREAM_STDIN, cmd, &in_ops, &c->in,
					   &c->in.s);
		else if (*streams == 'o')
			r = sb_stream_open(h->chan, SB_STREAM_STDOUT, cmd, &sink_ops, &c->out,
					   &c->out.s);
		else if (*streams == 'e')
			r = sb_stream_open(h->chan, SB_STREAM_STDERR, cmd, &sink_ops, &c->err,
					   &c->err.s);
		else if (*streams == 't')
			r = sb_stream_open(h->chan, SB_STREAM_TERMINAL, cmd, &term_ops, c,
					   &c->out.s);
		if (r < 0)
			return false;
		if (*streams == 't')
			c->in.s = c->out.s;
	}
	return true;
}

static bool send_ctl(struct he *h, const struct sb_ctl *m)
{
	struct sb_buf b;
	int r;

	sb_buf_init(&b, SB_CTL_MAX);
	sb_ctl_write(&b, m);
	r = sb_buf_error(&b) ? -1 : sb_chan_control(h->chan, b.data, b.len);
	sb_buf_done(&b);
	return r == 0;
}

bool he_run(struct he *h, uint16_t rows, uint16_t cols)
{
	struct sb_ctl m = { .type = SB_CTL_RUN, .rows = rows, .cols = cols };

	return send_ctl(h, &m);
}

bool he_exec(struct he *h, uint32_t cmd, char **argv, const char *cwd, uint32_t flags)
{
	static const char env[] = "PATH=/usr/bin:/bin\0A=b";
	struct sb_ctl m = { .type = SB_CTL_EXEC,
			    .cmd = cmd,
			    .flags = flags,
			    .text = cwd,
			    .text_len = cwd ? strlen(cwd) : 0,
			    .env = env,
			    .env_len = sizeof(env),
			    .n_env = 2 };
	struct sb_buf b;
	bool ok;

	sb_buf_init(&b, SB_CTL_MAX);
	for (; *argv; argv++, m.n_argv++)
		sb_buf_add(&b, *argv, strlen(*argv) + 1);
	m.argv = (const char *)b.data;
	m.argv_len = b.len;
	ok = send_ctl(h, &m);
	sb_buf_done(&b);
	return ok;
}

void he_feed(struct he *h, uint32_t cmd, const void *data, size_t len, bool eof)
{
	struct he_source *in = &h->cmd[cmd].in;

	in->data = data;
	in->len = len;
	in->sent = 0;
	in->eof_after = eof;
	pump(in);
}

void he_ctl(struct he *h, uint8_t type, uint32_t cmd, uint32_t value, uint16_t rows,
	    uint16_t cols)
{
	struct sb_ctl m = {
		.type = type, .cmd = cmd, .value = value, .rows = rows, .cols = cols
	};

	(void)send_ctl(h, &m);
}

static bool guest_gone(struct he *h, int *ret)
{
	int status;

	if (h->guest <= 0)
		return true;
	if (waitpid(h->guest, &status, WNOHANG) != h->guest)
		return false;
	h->guest = 0;
	*ret = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	return true;
}

int he_stop(struct he *h)
{
	int status = -1;
	bool gone;

	if (h->chan && !h->closed)
		he_ctl(h, SB_CTL_SHUTDOWN, 0, 0, 0, 0);
	if (h->loop) {
		uint64_t dl = sb_now_ns() + DEADLINE_NS;

		while (!(gone = guest_gone(h, &status)) && sb_now_ns() < dl)
			he_turn(h, 10);
		while (gone && !h->closed && sb_now_ns() < dl)
			he_turn(h, 10); /* what is still on the way */
	}
	if (h->guest > 0) {
		(void)kill(h->guest, SIGKILL);
		(void)waitpid(h->guest, NULL, 0);
	}
	h->chan = sb_chan_free(h->chan);
	h->loop = sb_loop_free(h->loop);
	if (h->carrier >= 0)
		(void)close(h->carrier);
	for (int i = 0; i < HE_CMDS; i++) {
		free(h->cmd[i].out.data);
		free(h->cmd[i].err.data);
	}
	(void)!sb_rmtree(AT_FDCWD, h->home);
	return status;
}
