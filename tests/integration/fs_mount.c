/*
 * fs_mount [-r] [-f] [-d] SERVER TARGET [--open PATH]... [SERVER OPTION]... -- COMMAND...
 *
 * Mounts what SERVER (sendbox-fs) serves on TARGET in a mount namespace of its own (and a user
 * namespace without root) through the guest's pump and a socket pair, runs COMMAND, and exits
 * with its status. --open PATH opens it as descriptor 4, 5, ... of the server. -r read-only mount,
 * -f single file, -d the server speaks on /dev/fuse itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "relay/fuse_pump.h"

SB_NORETURN static void die(const char *what)
{
	(void)fprintf(stderr, "fs_mount: %s: %s\n", what, strerror(errno));
	_exit(99);
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || sb_fd_write_all(fd, text, strlen(text)) < 0)
		die(path);
	(void)close(fd);
}

static void own_namespaces(void)
{
	char map[64];
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (unshare(uid == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) < 0)
		die("unshare");
	if (uid != 0) {
		put("/proc/self/setgroups", "deny");
		(void)snprintf(map, sizeof(map), "%u %u 1", uid, uid);
		put("/proc/self/uid_map", map);
		(void)snprintf(map, sizeof(map), "%u %u 1", gid, gid);
		put("/proc/self/gid_map", map);
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		die("private mounts");
}

static pid_t start_server(const char *path, char **args, size_t n, int conn)
{
	char *argv[512];
	size_t out = 0;
	int next = 4;
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (conn == 3)
		(void)fcntl(3, F_SETFD, 0);
	else if (dup2(conn, 3) < 0)
		die("dup2");
	argv[out++] = (char *)(uintptr_t)path;
	for (size_t i = 0; i < n && out + 1 < SB_ARRAY_LEN(argv); i++) {
		int fd;

		if (strcmp(args[i], "--open") != 0 || i + 1 >= n) {
			argv[out++] = args[i];
			continue;
		}
		fd = open(args[++i], O_PATH | O_CLOEXEC);
		if (fd < 0)
			die(args[i]);
		if (fd == next)
			(void)fcntl(fd, F_SETFD, 0);
		else if (dup2(fd, next) < 0)
			die("dup2");
		next++;
	}
	argv[out] = NULL;
	if (close_range((unsigned int)next, ~0U, 0) < 0)
		die("close_range");
	(void)execv(path, argv);
	die(path);
}

static int run(char **cmd)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		(void)execvp(cmd[0], cmd);
		die(cmd[0]);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		die("command");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	struct sb_err err = { 0 };
	uint32_t flags = 0;
	bool direct = false;
	int sv[2] = { -1, -1 };
	int fuse_fd;
	pid_t server;
	pid_t pump = -1;
	const char *path;
	const char *target;
	size_t n = 0;
	int c;
	int r;

	while ((c = getopt(argc, argv, "+rfd")) != -1) {
		if (c == 'r')
			flags |= SB_FUSE_RO;
		else if (c == 'f')
			flags |= SB_FUSE_FILE;
		else if (c == 'd')
			direct = true;
		else
			return 2;
	}
	argv += optind;
	while (argv[n] && strcmp(argv[n], "--") != 0)
		n++;
	if (n < 2 || !argv[n] || !argv[n + 1])
		return 2;
	path = argv[0];
	target = argv[1];
	if (!direct) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
			die("socketpair");
		server = start_server(path, argv + 2, n - 2, sv[0]);
		(void)close(sv[0]);
		own_namespaces();
		r = sb_fuse_mount(target, flags, &fuse_fd, &err);
		if (r == 0)
			r = sb_fuse_pump_start(&fuse_fd, &sv[1], &pump);
	} else {
		own_namespaces();
		r = sb_fuse_mount(target, flags, &fuse_fd, &err);
		server = r == 0 ? start_server(path, argv + 2, n - 2, fuse_fd) : -1;
		if (r == 0)
			(void)close(fuse_fd);
	}
	if (r < 0) {
		(void)fprintf(stderr, "fs_mount: %s\n", err.text);
		return 99;
	}
	if (sb_fuse_readahead("/sys", target, 1024) < 0 && geteuid() == 0)
		(void)fprintf(stderr, "fs_mount: no read-ahead\n");
	r = run(argv + n + 1);
	if (umount2(target, MNT_DETACH) < 0)
		die("umount");
	if (pump > 0)
		(void)kill(pump, SIGKILL);
	if (waitpid(server, &c, 0) == server && c != 0)
		(void)fprintf(stderr, "fs_mount: server ended with %#x\n", (unsigned int)c);
	return r;
}
