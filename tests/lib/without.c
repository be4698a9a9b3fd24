/*
 * without NAME[,NAME...] PROGRAM [ARG...]: run PROGRAM on a kernel that seems to lack the named
 * system calls (ENOSYS), or, with "userns", the right to make user namespaces (EPERM).
 */
#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);

	if (argc < 3 || !f)
		return 125;
	for (char *n = strtok(argv[1], ","); n; n = strtok(NULL, ",")) {
		int r;

		if (strcmp(n, "userns") == 0) {
			r = seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(unshare), 1,
					     SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_NEWUSER, CLONE_NEWUSER));
			if (r == 0)
				r = seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
						     SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_NEWUSER,
							     CLONE_NEWUSER));
			if (r == 0) /* its flags are behind a pointer: glibc must use clone */
				r = seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone3), 0);
		} else {
			int nr = seccomp_syscall_resolve_name(n);

			r = nr == __NR_SCMP_ERROR
				    ? -1
				    : seccomp_rule_add(f, SCMP_ACT_ERRNO(ENOSYS), nr, 0);
		}
		if (r != 0) {
			(void)fprintf(stderr, "without: %s\n", n);
			return 125;
		}
	}
	if (seccomp_load(f) != 0)
		return 125;
	(void)execv(argv[2], argv + 2);
	return 126;
}
