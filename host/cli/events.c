#include "events.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/num.h"
#include "cli.h"
#include "commands.h"
#include "net_text.h"
#include "ssh_text.h"

#define CHUNK 32768

struct source {
	struct cli_events *e;
	const char *name;
	int fd;
	struct sb_io io;
};

struct cli_events {
	struct source out;
	struct source err;
	uint8_t data[CHUNK];
	char text[SB_BASE64_LEN(CHUNK) + 1];
};

static void print(json_t *o)
{
	char *s = o ? json_dumps(o, JSON_COMPACT) : NULL;

	if (s)
		(void)puts(s);
	(void)fflush(stdout);
	free(s);
	json_decref(o);
}

/* Return: whether there may be more. */
static bool relay(struct source *s)
{
	ssize_t n = read(s->fd, s->e->data, CHUNK);

	if (n < 0)
		return errno == EINTR;
	/* nobody reads the events: neither does anybody read the output, and the program learns it */
	if (n == 0 || ferror(stdout)) {
		sb_io_del(&s->io);
		sb_fd_close(&s->fd);
		return false;
	}
	sb_base64_write(s->e->data, (size_t)n, s->e->text);
	print(json_pack("{s:s,s:s,s:s,s:I,s:s}", "event", "output", "stream", s->name, "encoding",
			"base64", "bytes", (json_int_t)n, "data", s->e->text));
	return true;
}

static void on_readable(struct sb_io *io, uint32_t events)
{
	(void)events;
	(void)relay(io->owner);
}

static int open_source(struct sb_loop *loop, struct cli_events *e, struct source *s,
		       const char *name, int *ret)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	*s = (struct source){ .e = e, .name = name, .fd = p[0] };
	*ret = p[1];
	return sb_io_set(loop, &s->io, s->fd, EPOLLIN, on_readable, s);
}

int cli_events_new(struct sb_loop *loop, struct cli_events **ret, int ret_fds[2],
		   struct sb_err *err)
{
	struct cli_events *e = calloc(1, sizeof(*e));
	int fds[2] = { -1, -1 };
	int r;

	if (!e)
		return sb_err_set(err, -ENOMEM, "out of memory");
	e->out.fd = e->err.fd = -1;
	r = open_source(loop, e, &e->out, "stdout", &fds[0]);
	if (r == 0)
		r = open_source(loop, e, &e->err, "stderr", &fds[1]);
	if (r < 0) {
		sb_fd_close(&fds[0]);
		sb_fd_close(&fds[1]);
		(void)cli_events_free(e);
		return sb_err_set(err, r, "cannot make a pipe: %s", strerror(-r));
	}
	ret_fds[0] = fds[0];
	ret_fds[1] = fds[1];
	*ret = e;
	return 0;
}

struct cli_events *cli_events_free(struct cli_events *e)
{
	if (e) {
		sb_io_del(&e->out.io);
		sb_io_del(&e->err.io);
		sb_fd_close(&e->out.fd);
		sb_fd_close(&e->err.fd);
		free(e);
	}
	return NULL;
}

void cli_events_drain(struct cli_events *e)
{
	while (e->out.fd >= 0 && relay(&e->out))
		continue;
	while (e->err.fd >= 0 && relay(&e->err))
		continue;
}

void cli_event_output(const char *stream, const void *p, size_t len)
{
	sb_autofree char *text = malloc(SB_BASE64_LEN(len) + 1);

	if (!text)
		return;
	sb_base64_write(p, len, text);
	print(json_pack("{s:s,s:s,s:s,s:I,s:s}", "event", "output", "stream", stream, "encoding",
			"base64", "bytes", (json_int_t)len, "data", text));
}

void cli_event_started(const uint8_t session[16], const char *provider)
{
	char hex[33];

	sb_hex_write(session, 16, hex);
	print(json_pack("{s:s,s:s,s:s}", "event", "started", "session", hex, "provider", provider));
}

void cli_event_network(const struct sb_ipc_net_event *ev)
{
	print(net_text_json(ev));
}

void cli_event_command(const struct sb_plan *plan, const struct sb_ipc_exec_event *ev)
{
	print(commands_json(plan, ev));
}

void cli_event_ssh(const struct sb_plan *plan, const struct sb_ipc_ssh_event *ev)
{
	print(ssh_text_json(plan, ev));
}

void cli_event_exit(int status, const struct sb_ipc_exited *x)
{
	const char *kind = x->kind == SB_EXIT_SIGNAL ? "signal" : "exit";

	print(json_pack("{s:s,s:b,s:i,s:s,s:I,s:b,s:I,s:I,s:I}", "event", "result", "ok",
			status == 0, "exit_code", status, "kind", kind, "value",
			(json_int_t)x->value, "oom", x->oom != 0, "user_us",
			(json_int_t)x->user_us, "system_us", (json_int_t)x->sys_us,
			"max_rss_bytes", (json_int_t)x->max_rss));
}

void cli_event_error(int status, const char *message, const char *problems)
{
	json_t *text = json_string(message);
	json_t *all = problems ? json_loads(problems, 0, NULL) : NULL;
	json_t *o;

	if (!text)
		text = json_string("(text is not valid UTF-8)");
	o = json_pack("{s:s,s:b,s:i,s:s,s:o}", "event", "error", "ok", 0, "exit_code", status,
		      "code", cli_code_of(status), "message", text);
	if (o && all) {
		(void)json_object_set(o, "diagnostics", json_object_get(all, "diagnostics"));
		(void)json_object_set(o, "more", json_object_get(all, "more"));
	}
	json_decref(all);
	print(o);
}
