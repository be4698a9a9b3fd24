#include "t.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/landlock.h"

static char dir[] = "/tmp/t-landlock-XXXXXX";

static int try_create(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return errno;
	(void)close(fd);
	return 0;
}

/* Each step has its own number, which is the child's exit status when it fails. */
static int inside(int rs)
{
	if (chdir(dir) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return 1;
	if (try_create("ro/before") != 0) /* positive control */
		return 2;
	if (sb_landlock_enter(rs) < 0)
		return 3;
	if (try_create("ro/x") != EACCES || try_create("/tmp/t-landlock-x") != EACCES)
		return 4;
	if (unlink("ro/before") == 0 || errno != EACCES)
		return 5;
	if (try_create("rw/x") != 0 || mkdir("rw/d", 0700) < 0)
		return 6;
	if (rename("rw/x", "rw/d/y") < 0 || link("rw/d/y", "rw/z") < 0)
		return 7;
	if (rename("rw/z", "rw2/z") < 0) /* between two places with all rights */
		return 8;
	if (rename("rw2/z", "ro/z") == 0 || rename("ro/before", "rw/b") == 0)
		return 9;
	if (mkfifo("rw/fifo", 0600) < 0 || symlink("x", "rw/sym") < 0)
		return 10;
	if (mknod("rw/dev", S_IFCHR | 0600, 0x103) == 0 || errno != EACCES)
		return 11;
	if (access("ro/before", R_OK) < 0 || open("ro/before", O_RDONLY | O_CLOEXEC) < 0)
		return 12;
	if (open("/dev/null", O_WRONLY | O_CLOEXEC) < 0)
		return 13;
	if (open("/dev/zero", O_WRONLY | O_CLOEXEC) >= 0)
		return 14;
	return 0;
}

/* The scope of signals and a ruleset for files, as a session has them. */
static int inside_scoped(int rs)
{
	if (chdir(dir) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return 1;
	if (sb_landlock_scope_signals() < 0)
		return 2;
	if (try_create("rw/a") != 0 || rename("rw/a", "rw2/a") < 0)
		return 3;
	if (sb_landlock_enter(rs) < 0)
		return 4;
	if (rename("rw2/a", "rw/b") < 0 || rename("rw/b", "rw2/c") < 0)
		return 5;
	if (kill(getppid(), 0) == 0 || errno != EPERM)
		return 6;
	return 0;
}

TEST(the_scope_of_signals_leaves_files_alone)
{
	static char own[] = "/tmp/t-landlock-XXXXXX";
	char path[64];
	int rs = -1;
	int status;
	pid_t pid;

	if (sb_landlock_abi() < SB_LANDLOCK_ABI_SCOPE) {
		CHECK(sb_landlock_scope_signals() < 0);
		return;
	}
	REQUIRE(mkdtemp(own));
	REQUIRE(chdir(own) == 0);
	memcpy(dir, own, sizeof(own));
	CHECK(mkdir("rw", 0700) == 0 && mkdir("rw2", 0700) == 0);
	CHECK_EQ(sb_landlock_new(&rs), 0);
	CHECK_EQ(sb_landlock_allow(rs, own, SB_LANDLOCK_FULL), 0);
	(void)fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(inside_scoped(rs));
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_EQ(WEXITSTATUS(status), 0);
	(void)close(rs);
	(void)!chdir("/");
	(void)snprintf(path, sizeof(path), "rm -rf %s", own);
	CHECK_EQ(system(path), 0);
	memcpy(dir, "/tmp/t-landlock-XXXXXX", sizeof(dir));
}

TEST(rights_of_each_class)
{
	char path[64];
	int rs = -1;
	int status;
	pid_t pid;

	if (sb_landlock_abi() < 2 || geteuid() != 0) {
		t_skip("needs Landlock and root");
		return;
	}
	REQUIRE(mkdtemp(dir));
	REQUIRE(chdir(dir) == 0);
	CHECK(mkdir("ro", 0700) == 0 && mkdir("rw", 0700) == 0 && mkdir("rw2", 0700) == 0);
	CHECK_EQ(sb_landlock_new(&rs), 0);
	CHECK(fcntl(rs, F_GETFD) & FD_CLOEXEC);
	CHECK_EQ(sb_landlock_allow(rs, "/", SB_LANDLOCK_READ), 0);
	CHECK_EQ(sb_landlock_allow(rs, "/dev/null", SB_LANDLOCK_DEVICE), 0);
	(void)snprintf(path, sizeof(path), "%s/rw", dir);
	CHECK_EQ(sb_landlock_allow(rs, path, SB_LANDLOCK_FULL), 0);
	(void)snprintf(path, sizeof(path), "%s/rw2", dir);
	CHECK_EQ(sb_landlock_allow(rs, path, SB_LANDLOCK_FULL), 0);
	CHECK_EQ(sb_landlock_allow(rs, "/no/such/place", SB_LANDLOCK_FULL), -ENOENT);
	CHECK_EQ(sb_landlock_allow(rs, path, SB_LANDLOCK_NONE), -EINVAL);
	(void)fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(inside(rs));
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_EQ(WEXITSTATUS(status), 0);
	(void)close(rs);
	(void)!chdir("/");
	(void)snprintf(path, sizeof(path), "rm -rf %s", dir);
	CHECK_EQ(system(path), 0);
}
