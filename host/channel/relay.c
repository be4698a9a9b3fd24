/*
 * The user's descriptors. Nothing here may block: sockets are used with MSG_DONTWAIT, everything
 * else as it is when O_NONBLOCK is set, and otherwise only after poll said so and in small
 * pieces. Regular files are always ready. A descriptor is watched only while something is wanted
 * of it, because a hang-up is reported always and would spin.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "channel.h"

#define BLOCKING_PIECE 4096 /* a pipe that polls writable takes PIPE_BUF */

/* Return: 0; -errno. */
static int look_at(int fd, bool *blocking, bool *sock)
{
	struct stat st;
	int fl;

	if (fstat(fd, &st) < 0)
		return -errno;
	fl = fcntl(fd, F_GETFL);
	if (fl < 0)
		return -errno;
	*sock = S_ISSOCK(st.st_mode);
	*blocking = !(fl & O_NONBLOCK) && !*sock && !S_ISREG(st.st_mode);
	return 0;
}

static bool ready_for(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, 0) > 0;
}

/* --- source --- */

static void on_source(struct sb_io *io, uint32_t events)
{
	(void)events;
	source_pump(io->owner);
}

int source_init(struct source *src, struct command *cmd, int *fd)
{
	int r;

	*src = (struct source){ .cmd = cmd, .fd = -1 };
	r = look_at(*fd, &src->blocking, &src->sock);
	if (r < 0)
		return r;
	src->fd = sb_fd_take(fd);
	return 0;
}

static ssize_t source_read(const struct source *src, void *p, size_t len)
{
	ssize_t n;

	if (src->sock)
		n = recv(src->fd, p, len, MSG_DONTWAIT);
	else if (src->blocking && !ready_for(src->fd, POLLIN))
		return -EAGAIN;
	else
		n = read(src->fd, p, len);
	return n < 0 ? -errno : n;
}

void source_done(struct source *src)
{
	src->s = NULL;
	sb_io_del(&src->io);
	if (src->fd >= 0)
		sb_fd_close(&src->fd);
}

/* One read at most: the loop comes back for more. */
void source_pump(struct source *src)
{
	void *to;
	size_t room;
	ssize_t n;

	if (!src->s || src->fd < 0)
		return;
	if (src->cmd->ses->held) { /* what is typed now is not for the program */
		sb_io_del(&src->io);
		return;
	}
	room = sb_stream_reserve(src->s, &to);
	if (room == 0) {
		sb_io_del(&src->io); /* writable() brings us back */
		return;
	}
	n = source_read(src, to, room);
	sb_stream_commit(src->s, n > 0 ? (size_t)n : 0);
	if (n == -EINTR || n == -EAGAIN || n > 0) {
		if (sb_io_set(src->cmd->ses->loop, &src->io, src->fd, EPOLLIN, on_source, src) < 0)
			session_fail(src->cmd->ses, SB_FAIL_INTERNAL, "cannot watch the input");
		return;
	}
	/* the end; an error (a terminal that hung up) is one too */
	sb_stream_send_eof(src->s);
	sb_io_del(&src->io);
	sb_fd_close(&src->fd);
}

/* --- sink --- */

static void on_sink(struct sb_io *io, uint32_t events);

int sink_init(struct sink *k, struct command *cmd, int *fd, bool terminal)
{
	int r;

	*k = (struct sink){ .cmd = cmd, .fd = -1, .used = true };
	r = look_at(*fd, &k->blocking, &k->sock);
	if (r < 0)
		return r;
	if (terminal || isatty(*fd)) {
		k->filter = calloc(1, sizeof(*k->filter));
		k->pending = malloc(SB_TERMFILTER_ROOM(FILTER_CHUNK));
		if (!k->filter || !k->pending)
			return -ENOMEM; /* sink_done frees them */
	}
	k->fd = sb_fd_take(fd);
	return 0;
}

void sink_done(struct sink *k)
{
	sb_io_del(&k->io);
	if (k->fd >= 0)
		sb_fd_close(&k->fd);
	free(k->filter);
	k->filter = NULL;
	free(k->pending);
	k->pending = NULL;
	k->pending_len = 0;
	k->done = true;
}

/*
 * Everything was written, or nobody reads any more: then the close of the stream gives the program
 * in the guest its SIGPIPE or EIO.
 */
static void sink_over(struct sink *k)
{
	struct sb_stream *s = k->s;
	struct command *cmd = k->cmd;

	k->s = NULL;
	if (k == &cmd->out && cmd->in.s == s)
		source_done(&cmd->in); /* both ways of a terminal */
	sink_done(k);
	if (s)
		sb_stream_close(s);
	command_check(cmd); /* may free the command, and the sink with it */
}

/*
 * A reader that left or a terminal that hung up wants no more, and the program learns it. A full
 * disk is another matter: the program may have ended well already, and the caller must be told.
 */
static void note_loss(struct sink *k, int error)
{
	if (!k->filter && error != EPIPE && error != ECONNRESET && k->cmd->lost == 0)
		k->cmd->lost = error;
}

/* Return: bytes written, 0 = not now; -errno. */
static ssize_t sink_write(const struct sink *k, const uint8_t *p, size_t len)
{
	ssize_t n;

	if (k->sock) {
		n = send(k->fd, p, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	} else if (k->blocking) {
		if (!ready_for(k->fd, POLLOUT))
			return 0;
		n = write(k->fd, p, SB_MIN(len, (size_t)BLOCKING_PIECE));
	} else {
		n = write(k->fd, p, len);
	}
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	return n;
}

static void sink_wait(struct sink *k)
{
	if (sb_io_set(k->cmd->ses->loop, &k->io, k->fd, EPOLLOUT, on_sink, k) < 0)
		session_fail(k->cmd->ses, SB_FAIL_INTERNAL, "cannot watch the output");
}

/* Write straight through. Return: bytes taken; -errno. */
static ssize_t take_plain(struct sink *k, const uint8_t *p, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = sink_write(k, p + done, len - done);

		if (n < 0)
			return n;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

/* Return: 1 = all gone, 0 = not now; -errno. */
static int write_pending(struct sink *k)
{
	while (k->pending_len > 0) {
		ssize_t n = sink_write(k, k->pending + k->pending_at, k->pending_len);

		if (n <= 0)
			return (int)n;
		k->pending_at += (size_t)n;
		k->pending_len -= (size_t)n;
	}
	return 1;
}

static ssize_t take_filtered(struct sink *k, const uint8_t *p, size_t len)
{
	size_t done = 0;
	int r = write_pending(k);

	while (r > 0 && done < len) {
		size_t n = SB_MIN(len - done, (size_t)FILTER_CHUNK);

		k->pending_at = 0;
		k->pending_len = sb_termfilter_run(k->filter, p + done, n, k->pending);
		done += n;
		r = write_pending(k);
	}
	return r < 0 ? r : (ssize_t)done;
}

size_t sink_data(struct sink *k, const uint8_t *p, size_t len)
{
	ssize_t n;

	if (k->done)
		return len;
	if (k->cmd->ses->held)
		return 0; /* sink_hold brings us back */
	n = k->filter ? take_filtered(k, p, len) : take_plain(k, p, len);
	if (n < 0) {
		note_loss(k, (int)-n);
		sink_over(k);
		return len;
	}
	if ((size_t)n < len || k->pending_len > 0)
		sink_wait(k);
	return (size_t)n;
}

void sink_eof(struct sink *k)
{
	int r = 1;

	if (k->done)
		return;
	k->eof = true;
	if (k->cmd->ses->held)
		return;
	if (k->filter) {
		r = write_pending(k);
		if (r > 0) {
			k->pending_at = 0;
			k->pending_len = sb_termfilter_end(k->filter, k->pending);
			r = write_pending(k);
		}
	}
	if (r == 0)
		sink_wait(k);
	else
		sink_over(k); /* an error now loses what nobody reads */
}

static void on_sink(struct sb_io *io, uint32_t events)
{
	struct sink *k = io->owner;
	int r;

	(void)events;
	sb_io_del(io); /* set again by whoever finds it full */
	r = write_pending(k);
	if (r == 0) {
		sink_wait(k);
	} else if (r < 0) {
		sink_over(k);
	} else if (k->eof) {
		sink_eof(k);
	} else if (k->s) {
		sb_stream_resume(k->s);
	}
}

void relay_hold(struct command *cmd, bool on)
{
	struct session *ses = cmd->ses;
	uint32_t id = cmd->id;
	struct sink *sinks[] = { &cmd->out, &cmd->err };

	if (on) {
		sb_io_del(&cmd->in.io);
		sb_io_del(&cmd->out.io);
		sb_io_del(&cmd->err.io);
		return;
	}
	source_pump(&cmd->in);
	for (size_t i = 0; i < SB_ARRAY_LEN(sinks); i++) {
		if (sinks[i]->used && !sinks[i]->done) {
			sinks[i]->io.owner = sinks[i];
			on_sink(&sinks[i]->io, 0);
		}
		if (command_find(ses, id) != cmd) /* that was its end */
			return;
	}
}
