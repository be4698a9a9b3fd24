/*
 * sendbox-imgfs - the read-only layers of one session, for the namespace runtime; or one layer as an archive
 *
 * fd 3: a stream socket on which the guest's first process hands over /dev/fuse of the mount it
 * made, in one message. --layer FD (lowest first), --owner UID:GID. The jail is entered before the
 * first byte of a layer is read. --tar MAX_BYTES: see image/helper.h.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/num.h"
#include "imgfs.h"
#include "imgfs.syscalls.h"
#include "layer_out.h"
#include "os/jail.h"

#define CONN_FD 3
#define FUSE_MAJOR 10U
#define FUSE_MINOR 229U

struct conf {
	int layers[IMGFS_MAX_LAYERS];
	size_t n;
	bool one_owner;
	uint32_t uid;
	uint32_t gid;
};

static int parse_owner(const char *s, struct conf *c)
{
	const char *colon = strchr(s, ':');
	char uid[16];
	uint64_t u;
	uint64_t g;

	if (!colon || (size_t)(colon - s) >= sizeof(uid))
		return -EINVAL;
	memcpy(uid, s, (size_t)(colon - s));
	uid[colon - s] = '\0';
	if (sb_num_u64(uid, 0, UINT32_MAX - 1, &u) < 0 ||
	    sb_num_u64(colon + 1, 0, UINT32_MAX - 1, &g) < 0)
		return -EINVAL;
	c->uid = (uint32_t)u;
	c->gid = (uint32_t)g;
	c->one_owner = true;
	return 0;
}

static int parse(int argc, char **argv, struct conf *c, struct sb_err *err)
{
	for (int i = 1; i < argc; i += 2) {
		const char *v = i + 1 < argc ? argv[i + 1] : NULL;
		uint64_t fd;

		if (v && strcmp(argv[i], "--layer") == 0 && c->n < IMGFS_MAX_LAYERS &&
		    sb_num_u64(v, CONN_FD + 1, INT_MAX, &fd) == 0)
			c->layers[c->n++] = (int)fd;
		else if (!v || strcmp(argv[i], "--owner") != 0 || parse_owner(v, c) < 0)
			return sb_err_set(err, -EINVAL, "unknown option or bad value: %s", argv[i]);
	}
	return c->n > 0 ? 0 : sb_err_set(err, -EINVAL, "--layer is needed");
}

/* One message with one descriptor, which is /dev/fuse. */
static int take_fuse(int *ret, struct sb_err *err)
{
	char room[CMSG_SPACE(sizeof(int))] = { 0 };
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = room,
			    .msg_controllen = sizeof(room) };
	const struct cmsghdr *c;
	sb_autofd int fd = -1;
	struct stat st;
	ssize_t n;

	do
		n = recvmsg(CONN_FD, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	c = n == 1 ? CMSG_FIRSTHDR(&m) : NULL;
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
	    c->cmsg_len != CMSG_LEN(sizeof(int)))
		return sb_err_set(err, -EPROTO, "the guest handed over no descriptor");
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	if (fstat(fd, &st) < 0 || !S_ISCHR(st.st_mode) ||
	    st.st_rdev != makedev(FUSE_MAJOR, FUSE_MINOR))
		return sb_err_set(err, -EPROTO, "what the guest handed over is not /dev/fuse");
	*ret = sb_fd_take(&fd);
	return 0;
}

static ssize_t io_read(int fd, void *buf, size_t len, void *arg)
{
	(void)arg;
	return read(fd, buf, len);
}

static ssize_t io_writev(int fd, struct iovec *iov, int n, void *arg)
{
	(void)arg;
	return writev(fd, iov, n);
}

static int serve(struct imgfs *fs, struct sb_err *err)
{
	static const struct fuse_custom_io io = { .read = io_read, .writev = io_writev };
	static char name[] = "sendbox-imgfs";
	char *argv[] = { name, NULL };
	struct fuse_args args = FUSE_ARGS_INIT(1, argv);
	struct fuse_session *se = fuse_session_new(&args, &imgfs_ops, sizeof(imgfs_ops), fs);
	sb_autofd int fuse = -1;
	int r;

	fuse_opt_free_args(&args);
	if (!se)
		return sb_err_set(err, -ENOMEM, "cannot make a FUSE session");
	r = take_fuse(&fuse, err);
	if (r == 0) {
		r = fuse_session_custom_io(se, &io, fuse);
		if (r < 0)
			(void)sb_err_set(err, r, "cannot use the connection: %s", strerror(-r));
	}
	if (r == 0) {
		(void)sb_fd_take(&fuse); /* libfuse closes it */
		r = fuse_session_loop(se);
		if (r < 0)
			(void)sb_err_set(err, r, "session ended: %s", strerror(-r));
	}
	fuse_session_destroy(se);
	return r < 0 ? r : 0;
}

static int run(const struct conf *c, struct sb_err *err)
{
	struct imgfs fs = { .one_owner = c->one_owner, .uid = c->uid, .gid = c->gid };
	const struct sb_jail jail = { .syscalls = imgfs_syscalls,
				      .n_syscalls = SB_ARRAY_LEN(imgfs_syscalls),
				      .root_fd = -1 };
	int r = sb_jail_enter(&jail, err);

	for (size_t i = 0; r == 0 && i < c->n; i++)
		r = imgfs_add(&fs, c->layers[i], err);
	if (r == 0)
		r = serve(&fs, err);
	imgfs_done(&fs);
	return r;
}

int main(int argc, char **argv)
{
	struct sb_err err = { 0 };
	struct conf c = { .n = 0 };
	int r;

	sb_log_init("sendbox-imgfs");
	if (argc == 3 && strcmp(argv[1], "--tar") == 0)
		return imgfs_tar(argv[2]);
	r = parse(argc, argv, &c, &err);
	if (r == 0) {
		r = signal(SIGPIPE, SIG_IGN) == SIG_ERR ? -errno : run(&c, &err);
		if (r < 0)
			sb_log("%s", err.text);
		return r < 0 ? 1 : 0;
	}
	sb_log("%s", err.text);
	return 2;
}
