/* Names and numbers of system calls, against the C library's headers. */
#include "t.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "core/syscalls.h"

TEST(numbers_are_the_kernels)
{
	CHECK_EQ(sb_syscall_number("read"), SYS_read);
	CHECK_EQ(sb_syscall_number("execveat"), SYS_execveat);
	CHECK_EQ(sb_syscall_number("clone3"), 435);
	CHECK_EQ(sb_syscall_number("mseal"), 462);
	CHECK_EQ(sb_syscall_number("removexattrat"), 466);
	CHECK_EQ(sb_syscall_number("no_such_call"), -ENOENT);
	CHECK_EQ(sb_syscall_number(""), -ENOENT);
	CHECK_EQ(sb_syscall_number("READ"), -ENOENT);
#ifdef __x86_64__
	CHECK_EQ(sb_syscall_number("open"), 2);
#else
	CHECK_EQ(sb_syscall_number("open"), SB_SYSCALL_ABSENT);
#endif
	CHECK_STR(sb_syscall_name(SYS_mount), "mount");
	CHECK(sb_syscall_name(-1) == NULL);
	CHECK(sb_syscall_name(9999) == NULL);
}

static void refused(const char *name, const char *text)
{
	struct sb_err err = { 0 };

	CHECK_EQ(sb_syscall_may_deny(name, &err), -EINVAL);
	if (!strstr(err.text, text))
		t_fail(__FILE__, __LINE__, "%s: \"%s\" is not in \"%s\"", name, text, err.text);
}

TEST(what_may_be_denied)
{
	char big[3000];

	CHECK_EQ(sb_syscall_may_deny("chmod", NULL), 0);
	CHECK_EQ(sb_syscall_may_deny("open", NULL), 0); /* on every machine */
	refused("execve", "no program can run");
	refused("exit", "no program can run");
	refused("exit_group", "no program can run");
	refused("rt_sigreturn", "no program can run");
	refused("ptraec", "did you mean \"ptrace\"?");
	refused("open_file_now", "there is no system call \"open_file_now\"");
	refused("", "there is no system call");
	memset(big, 'x', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	refused(big, "there is no system call");
}
