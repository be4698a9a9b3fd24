/*
 * sendbox-fs - file server of one mount
 *
 * fd 3: FUSE messages (a stream socket, or /dev/fuse). Directory and file descriptors are named by
 * the options. Runs as the owner of the files, with no privilege, in a jail.
 */
#include <errno.h>
#include <grp.h>
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "fs.syscalls.h"
#include "fs/fs.h"
#include "os/jail.h"

#define CONN_FD 3

static int become(const struct fs_conf *c, struct sb_err *err)
{
	pid_t parent = getppid();

	if (!c->as_set)
		return 0;
	if (geteuid() != 0) {
		if (geteuid() == c->as_uid)
			return 0;
		return sb_err_set(err, -EPERM, "--as needs root");
	}
	if (setgroups(0, NULL) < 0 || setresgid(c->as_gid, c->as_gid, c->as_gid) < 0 ||
	    setresuid(c->as_uid, c->as_uid, c->as_uid) < 0)
		return sb_err_set(err, -errno, "cannot become %u:%u: %s", c->as_uid, c->as_gid,
				  strerror(errno));
	/* a change of identity drops the parent-death signal */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
		return sb_err_set(err, -ESRCH, "the parent is gone");
	return 0;
}

static int jail_me(const struct fs_conf *c, struct sb_err *err)
{
	int beneath[FS_MAX_TREE];
	size_t n = 0;
	struct sb_jail j = { .syscalls = fs_syscalls,
			     .n_syscalls = SB_ARRAY_LEN(fs_syscalls),
			     .root_fd = -1,
			     .root_writable = !c->ro };

	if (c->kind == FS_ROOT_TREE) {
		for (size_t i = 0; i < c->n_leaves; i++)
			beneath[n++] = c->leaves[i].fd;
	} else {
		beneath[n++] = c->root_fd;
	}
	j.root_fds = beneath;
	j.n_root_fds = n;
	return sb_jail_enter(&j, err);
}

static int run(struct fs_conf *c, struct sb_err *err)
{
	int conn = CONN_FD;
	struct fs *fs = NULL;
	int r = become(c, err);

	if (r < 0)
		return r;
	(void)umask(0); /* the guest applied its own */
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || signal(SIGXFSZ, SIG_IGN) == SIG_ERR ||
	    chdir("/proc/self/fd") < 0)
		return sb_err_set(err, -errno, "/proc/self/fd: %s", strerror(errno));
	r = fs_new(c, &conn, &fs, err);
	if (r < 0)
		return r;
	r = jail_me(c, err);
	if (r == 0) {
		r = fs_io_run(fs);
		if (r < 0)
			(void)sb_err_set(err, r, "%s",
					 r == -EBADMSG ? "session ended" : strerror(-r));
	}
	(void)fs_free(fs);
	return r;
}

int main(int argc, char **argv)
{
	struct sb_err err = { 0 };
	struct fs_conf conf;
	int r;

	sb_log_init("sendbox-fs");
	fs_conf_init(&conf);
	r = fs_conf_parse(&conf, argc, argv, &err);
	if (r < 0) {
		sb_log("%s", err.text);
		fs_conf_done(&conf);
		return 2;
	}
	r = run(&conf, &err);
	if (r < 0)
		sb_log("%s", err.text);
	fs_conf_done(&conf);
	return r < 0 ? 1 : 0;
}
