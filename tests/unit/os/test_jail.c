/* The jail: what is listed works, everything else ends the process; files are out of reach. */
#include <fcntl.h>
#include <netinet/in.h>
#include <seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/jail.h"
#include "os/landlock.h"
#include "t.h"

#ifdef SB_JAIL_RELAXED
static const bool relaxed = true;
#else
static const bool relaxed = false;
#endif

static const int listed[] = {
	SCMP_SYS(exit_group), SCMP_SYS(openat), SCMP_SYS(mmap),	 SCMP_SYS(mprotect),
	SCMP_SYS(munmap),     SCMP_SYS(prctl),	SCMP_SYS(prlimit64), SCMP_SYS(capget),
	SCMP_SYS(close),      SCMP_SYS(socketpair), SCMP_SYS(setsockopt),
	SCMP_SYS(socket),     SCMP_SYS(connect),
};

/* Run @fn in a jailed child. Return: exit status; 1000 + signal. */
static int in_jail(int (*fn)(int root), int root)
{
	struct sb_jail j = { .syscalls = listed,
			     .n_syscalls = SB_ARRAY_LEN(listed),
			     .flags = SB_JAIL_SOCKET_PAIRS | SB_JAIL_INET,
			     .nofile = 32,
			     .root_fd = root };
	int st;
	pid_t pid = fork();

	if (pid == 0) {
		if (sb_jail_enter(&j, NULL) < 0)
			_exit(99);
		_exit(fn(root));
	}
	if (pid < 0 || waitpid(pid, &st, 0) != pid)
		return -1;
	return WIFSIGNALED(st) ? 1000 + WTERMSIG(st) : WEXITSTATUS(st);
}

static int do_nothing(int root)
{
	(void)root;
	return 7;
}

static int do_socket(int root)
{
	(void)root;
	return socket(AF_UNIX, SOCK_STREAM, 0) >= 0 ? 1 : 2;
}

/* Nothing listens on port 1: a connect that is allowed is refused by the kernel. */
static int do_inet(int root)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(1) };
	int s6 = socket(AF_INET6, SOCK_DGRAM, 0);
	int s = socket(AF_INET, SOCK_STREAM, 0);

	(void)root;
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (s < 0 || (s6 < 0 && errno != EAFNOSUPPORT))
		return 1;
	return connect(s, (const struct sockaddr *)&to, sizeof(to)) < 0 &&
			       (errno == ECONNREFUSED || errno == ENETUNREACH)
		       ? 0
		       : 2;
}

static int do_pair(int root)
{
	const int size = 65536;
	int sv[2];

	(void)root;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
		return 1;
	return setsockopt(sv[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) < 0 ? 2 : 0;
}

static int do_other_pair(int root)
{
	int sv[2];

	(void)root;
	return socketpair(AF_TIPC, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0 ? 1 : 2;
}

static int do_other_option(int root)
{
	const int on = 1;

	return setsockopt(root, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ? 1 : 2;
}

static int do_open_outside(int root)
{
	(void)root;
	return open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0 ? 1 : errno == EACCES ? 0 : 2;
}

static int do_open_beneath(int root)
{
	if (openat(root, "file", O_RDONLY | O_CLOEXEC) < 0)
		return 1;
	if (openat(root, "file", O_RDWR | O_CLOEXEC) >= 0 || errno != EACCES)
		return 2;
	return openat(root, "../../etc/passwd", O_RDONLY | O_CLOEXEC) >= 0 ? 3 : 0;
}

static int do_exec_map(int root)
{
	(void)root;
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
			       MAP_FAILED
		       ? 1
		       : 2;
}

static int do_plain_map(int root)
{
	(void)root;
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
			       MAP_FAILED
		       ? 1
		       : 0;
}

static int do_state(int root)
{
	struct rlimit rl;

	(void)root;
	if (prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0)
		return 1;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return 2;
	if (getrlimit(RLIMIT_NOFILE, &rl) < 0 || rl.rlim_max != 32)
		return 3;
	if (getrlimit(RLIMIT_NPROC, &rl) < 0 || rl.rlim_max != 0)
		return 4;
	return 0;
}

TEST(listed_calls_work)
{
	CHECK_EQ(in_jail(do_nothing, -1), 7);
	CHECK_EQ(in_jail(do_state, -1), 0);
	CHECK_EQ(in_jail(do_plain_map, -1), 0);
	CHECK_EQ(in_jail(do_pair, -1), 0);
	CHECK_EQ(in_jail(do_inet, -1), 0);
}

TEST(other_calls_kill)
{
	if (relaxed) {
		t_skip("relaxed build");
		return;
	}
	CHECK_EQ(in_jail(do_socket, -1), 1000 + SIGSYS);
	CHECK_EQ(in_jail(do_exec_map, -1), 1000 + SIGSYS);
	CHECK_EQ(in_jail(do_other_pair, -1), 1000 + SIGSYS);
	CHECK_EQ(in_jail(do_other_option, -1), 1000 + SIGSYS);
}

TEST(files_out_of_reach)
{
	char dir[] = "/tmp/sb-jail-XXXXXX";
	int fd;
	int root;

	if (relaxed || sb_landlock_abi() <= 0) {
		t_skip(relaxed ? "relaxed build" : "no Landlock");
		return;
	}
	REQUIRE(mkdtemp(dir));
	root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	REQUIRE(root >= 0);
	fd = openat(root, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	REQUIRE(fd >= 0);
	(void)close(fd);
	CHECK_EQ(in_jail(do_open_outside, -1), 0);
	CHECK_EQ(in_jail(do_open_outside, root), 0);
	CHECK_EQ(in_jail(do_open_beneath, root), 0);
	(void)unlinkat(root, "file", 0);
	(void)close(root);
	(void)rmdir(dir);
}
