/*
 * Transport: whole requests from a byte stream (the chardev of a virtio-serial port) or from
 * /dev/fuse itself, and whole answers back.
 */
#include <errno.h>
#include <linux/fuse.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "fs/fs.h"

#define RECV_ROOM (FS_MSG_MAX + (256U << 10))
#define SMALL (64U << 10) /* copied to the aligned buffer; larger ones are moved in place */
#define NOTIFY_EVERY 32   /* requests between two looks at inotify when more are waiting */

int fs_io_init(struct fs *fs, int fd)
{
	int sndbuf = 4 << 20;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	fs->io.fd = fd;
	fs->io.chardev = S_ISCHR(st.st_mode);
	fs->io.room = RECV_ROOM;
	fs->io.buf = aligned_alloc(4096, RECV_ROOM + (4096 - RECV_ROOM % 4096) % 4096);
	fs->io.msg = aligned_alloc(4096, SMALL);
	if (!fs->io.buf || !fs->io.msg)
		return -ENOMEM;
	if (!fs->io.chardev)
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &sndbuf, sizeof(sndbuf));
	return 0;
}

void fs_io_done(struct fs *fs)
{
	free(fs->io.buf);
	free(fs->io.msg);
	fs->io.buf = NULL;
	fs->io.msg = NULL;
}

/* libfuse wants one; our own loop reads. */
ssize_t fs_io_read(int fd, void *buf, size_t len, void *arg)
{
	(void)fd;
	(void)buf;
	(void)len;
	(void)arg;
	errno = ENODEV;
	return -1;
}

/*
 * Two flags of the INIT answer that libfuse 3.14 does not set. Without HANDLE_KILLPRIV_V2 the
 * guest's kernel asks for security.capability before every write; the host's kernel strips such
 * privileges by itself on a write, a truncation and a change of owner, which is what the flag
 * promises. PARALLEL_DIROPS lets several processes look names up in one directory.
 */
static void patch_init(struct fs *fs, const struct iovec *iov, int n, struct fuse_init_out *out)
{
	struct fuse_out_header h;

	if (n != 2 || iov[0].iov_len != sizeof(h) || iov[1].iov_len < 24 ||
	    iov[1].iov_len > sizeof(*out))
		return;
	memcpy(&h, iov[0].iov_base, sizeof(h));
	if (h.unique != fs->io.init_unique || h.error != 0)
		return;
	memcpy(out, iov[1].iov_base, iov[1].iov_len);
	out->flags |= fs->io.peer_flags & (FUSE_HANDLE_KILLPRIV_V2 | FUSE_PARALLEL_DIROPS);
}

static ssize_t write_stream(struct fs *fs, struct iovec *iov, int n)
{
	ssize_t total = 0;

	while (n > 0) {
		struct msghdr mh = { .msg_iov = iov, .msg_iovlen = (size_t)n };
		ssize_t r = sendmsg(fs->io.fd, &mh, MSG_NOSIGNAL);

		if (r < 0) {
			if (errno == EINTR)
				continue;
			fs->io.dead = true;
			errno = ENODEV;
			return -1;
		}
		total += r;
		while (n > 0 && (size_t)r >= iov->iov_len) {
			r -= (ssize_t)iov->iov_len;
			iov++;
			n--;
		}
		if (n > 0) {
			iov->iov_base = (char *)iov->iov_base + r;
			iov->iov_len -= (size_t)r;
		}
	}
	return total;
}

ssize_t fs_io_writev(int fd, struct iovec *iov, int n, void *arg)
{
	struct fs *fs = arg;
	struct fuse_init_out init = { 0 };
	struct iovec own[8];

	(void)fd;
	if (n < 1 || (size_t)n > SB_ARRAY_LEN(own)) {
		errno = EINVAL;
		return -1;
	}
	memcpy(own, iov, sizeof(*iov) * (size_t)n);
	if (fs->io.init_unique != 0) {
		patch_init(fs, iov, n, &init);
		if (init.major != 0)
			own[1].iov_base = &init;
		fs->io.init_unique = 0;
	}
	if (!fs->io.chardev)
		return write_stream(fs, own, n);
	for (;;) {
		ssize_t r = writev(fs->io.fd, own, n);

		if (r >= 0 || errno != EINTR) {
			if (r < 0 && errno == ENODEV)
				fs->io.dead = true;
			return r;
		}
	}
}

void fs_io_reply_raw(struct fs *fs, uint64_t unique, int error, const void *p, size_t len)
{
	struct fuse_out_header h = { .len = (uint32_t)(sizeof(h) + len),
				     .error = error,
				     .unique = unique };
	struct iovec iov[2] = { { &h, sizeof(h) }, { (void *)(uintptr_t)p, len } };

	(void)fs_io_writev(fs->io.fd, iov, len > 0 ? 2 : 1, fs);
}

static void see_init(struct fs *fs, const struct fuse_in_header *h, const uint8_t *msg, size_t len)
{
	struct fuse_init_in in = { 0 };

	memcpy(&in, msg + sizeof(*h), SB_MIN(len - sizeof(*h), sizeof(in)));
	fs->io.got_init = true;
	fs->io.init_unique = h->unique;
	fs->io.peer_flags = in.flags;
}

static bool is_xattr(uint32_t op)
{
	return op == FUSE_SETXATTR || op == FUSE_GETXATTR || op == FUSE_LISTXATTR ||
	       op == FUSE_REMOVEXATTR;
}

int fs_io_process(struct fs *fs, uint8_t *msg, size_t len)
{
	struct fuse_buf buf = { .size = len, .mem = msg };
	struct fuse_in_header h;
	struct fuse_create_in tmp;
	int r = fs_req_check(msg, len, !fs->io.got_init);

	if (r < 0)
		return r;
	memcpy(&h, msg, sizeof(h));
	if (h.opcode == FUSE_INIT)
		see_init(fs, &h, msg, len);
	if (fs->conf->no_xattr && is_xattr(h.opcode)) {
		fs_io_reply_raw(fs, h.unique, -ENOSYS, NULL, 0);
		return 0;
	}
	switch (fs_req_route(h.opcode)) {
	case FS_REQ_LIBFUSE:
		fuse_session_process_buf(fs->se, &buf);
		break;
	case FS_REQ_TMPFILE:
		memcpy(&tmp, msg + sizeof(h), sizeof(tmp));
		fs_op_tmpfile(fs, h.unique, h.nodeid, tmp.mode);
		break;
	case FS_REQ_DROP:
		break;
	case FS_REQ_REFUSE:
	default:
		fs_io_reply_raw(fs, h.unique, -ENOSYS, NULL, 0);
		break;
	}
	fs_node_sweep(fs);
	return 0;
}

/* Return: length of the whole message at the head; 0 = more bytes are needed; -EBADMSG. */
static ssize_t frame(const struct fs_io *io)
{
	uint32_t len;

	if (io->tail - io->head < sizeof(struct fuse_in_header))
		return 0;
	memcpy(&len, io->buf + io->head, sizeof(len));
	if (len < sizeof(struct fuse_in_header) || len > FS_MSG_MAX)
		return -EBADMSG;
	return io->tail - io->head >= len ? (ssize_t)len : 0;
}

/* Return: 0 processed one; 1 = none is complete; -EBADMSG. */
static int one_message(struct fs *fs)
{
	struct fs_io *io = &fs->io;
	ssize_t len = frame(io);
	uint8_t *msg = io->msg;

	if (len <= 0)
		return len < 0 ? (int)len : 1;
	if ((size_t)len <= SMALL) {
		memcpy(msg, io->buf + io->head, (size_t)len);
	} else if (io->head % 8 == 0) {
		msg = io->buf + io->head;
	} else {
		memmove(io->buf, io->buf + io->head, io->tail - io->head);
		io->tail -= io->head;
		io->head = 0;
		msg = io->buf;
	}
	io->head += (size_t)len;
	return fs_io_process(fs, msg, (size_t)len);
}

/* Return: 0; 1 = end of the stream; -errno. */
static int receive(struct fs *fs)
{
	struct fs_io *io = &fs->io;
	ssize_t r;

	if (io->head == io->tail) {
		io->head = io->tail = 0;
	} else if (io->room - io->tail < FS_MSG_MAX && io->head > 0) {
		memmove(io->buf, io->buf + io->head, io->tail - io->head);
		io->tail -= io->head;
		io->head = 0;
	}
	r = read(io->fd, io->buf + io->tail, io->room - io->tail);
	if (r < 0) {
		/* /dev/fuse: ENOENT = the request was interrupted, ENODEV = unmounted */
		if (errno == EINTR || errno == EAGAIN || (io->chardev && errno == ENOENT))
			return 0;
		return errno == ENODEV || errno == ECONNRESET ? 1 : -errno;
	}
	if (r == 0)
		return 1;
	io->tail += (size_t)r;
	return 0;
}

/* Wait until the peer sent something; host changes are passed on meanwhile. */
static int wait_input(struct fs *fs)
{
	struct pollfd p[2] = { { .fd = fs->io.fd, .events = POLLIN },
			       { .fd = fs->notify.fd, .events = POLLIN } };

	for (;;) {
		int wait = fs->notify.fd >= 0 ? fs_notify_wait_ms(fs) : 0;
		int r = poll(p, fs->notify.fd >= 0 && wait == 0 ? 2 : 1, wait > 0 ? wait : -1);

		if (r < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (r > 0 && wait == 0 && fs->notify.fd >= 0 && p[1].revents)
			fs_notify_read(fs);
		if (r > 0 && p[0].revents)
			return 0;
	}
}

int fs_io_run(struct fs *fs)
{
	unsigned int turn = 0;
	int r;

	for (;;) {
		while ((r = one_message(fs)) == 0) {
			if (fs->io.dead || fuse_session_exited(fs->se))
				return 0;
			if (++turn % NOTIFY_EVERY == 0 && fs->notify.fd >= 0 &&
			    fs_notify_wait_ms(fs) == 0)
				fs_notify_read(fs);
		}
		if (r < 0) {
			sb_log("the guest sent a malformed request");
			return r;
		}
		if (fs->notify.fd >= 0 || !fs->io.chardev) {
			r = wait_input(fs);
			if (r < 0)
				return r;
		}
		r = receive(fs);
		if (r != 0)
			return r > 0 ? 0 : r;
	}
}
