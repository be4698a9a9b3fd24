#include "core/cmd_shebang.h"
#include "t.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void is(int line, const char *head, size_t len, int want, const char *interp,
	       const char *arg)
{
	struct sb_cmd_shebang s = { .interp = "untouched" };
	int r = sb_cmd_shebang(head, len, &s);

	if (r != want)
		t_fail(__FILE__, line, "got %d, want %d", r, want);
	if (want == 1 && r == 1 && (strcmp(s.interp, interp) != 0 || strcmp(s.arg, arg) != 0))
		t_fail(__FILE__, line, "got [%s] [%s], want [%s] [%s]", s.interp, s.arg, interp,
		       arg);
}
#define SCRIPT(text, interp, arg) is(__LINE__, text, sizeof(text) - 1, 1, interp, arg)
#define NOT(text, want) is(__LINE__, text, sizeof(text) - 1, want, "", "")

TEST(plain_lines)
{
	SCRIPT("#!/bin/sh\necho\n", "/bin/sh", "");
	SCRIPT("#! \t/bin/sh \t\n", "/bin/sh", "");
	SCRIPT("#!/bin/sh", "/bin/sh", "");
	SCRIPT("#!/usr/bin/env python3\n", "/usr/bin/env", "python3");
	SCRIPT("#!/usr/bin/env -S  python3  -u \t\n", "/usr/bin/env", "-S  python3  -u");
	SCRIPT("#!sh -e\n", "sh", "-e");
	SCRIPT("#!/bin/sh\r\n", "/bin/sh\r", "");
	SCRIPT("#!/bin/sh\0 -e\n", "/bin/sh", "");
	SCRIPT("#!/bin/sh -a\0b\n", "/bin/sh", "-a");
}

TEST(an_argument_may_be_empty)
{
	struct sb_cmd_shebang s = { 0 };

	CHECK(sb_cmd_shebang("#!/bin/sh ", 10, &s) == 1 && s.has_arg);
	CHECK(sb_cmd_shebang("#!/bin/sh \n", 11, &s) == 1 && !s.has_arg);
}

TEST(no_script)
{
	NOT("", 0);
	NOT("#", 0);
	NOT(" #!/bin/sh\n", 0);
	NOT("\177ELF", 0);
	NOT("#!", -ENOEXEC);
	NOT("#!\n", -ENOEXEC);
	NOT("#! \t\n/bin/sh\n", -ENOEXEC);
}

TEST(only_the_first_256_bytes_count)
{
	char b[600];

	memset(b, 'x', sizeof(b));
	memcpy(b, "#!/", 3);
	is(__LINE__, b, sizeof(b), -ENOEXEC, "", ""); /* the name is cut */
	b[254] = ' ';
	CHECK(sb_cmd_shebang(b, sizeof(b), &(struct sb_cmd_shebang){ 0 }) == 1);
	b[255] = '\n';
	CHECK(sb_cmd_shebang(b, sizeof(b), &(struct sb_cmd_shebang){ 0 }) == 1);
	memset(b + 2, ' ', sizeof(b) - 2);
	is(__LINE__, b, sizeof(b), -ENOEXEC, "", "");
}

/* What the kernel makes of the same bytes: the program prints its own words. */
static int by_kernel(const char *text, size_t len, char out[8192])
{
	char path[] = "/tmp/sb-shebang-XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC);
	size_t have = 0;
	int status = 0;
	int p[2];
	pid_t pid;

	if (fd < 0 || pipe2(p, O_CLOEXEC) < 0)
		return -1;
	if (write(fd, text, len) != (ssize_t)len || fchmod(fd, 0700) < 0)
		return -1;
	(void)close(fd);
	pid = fork();
	if (pid == 0) {
		(void)dup2(p[1], 1);
		(void)execl(path, path, "tail", (char *)NULL);
		_exit(errno == ENOEXEC ? 101 : 102);
	}
	(void)close(p[1]);
	while (have + 1 < 8192) {
		ssize_t n = read(p[0], out + have, 8191 - have);

		if (n <= 0)
			break;
		have += (size_t)n;
	}
	out[have] = '\0';
	(void)close(p[0]);
	(void)waitpid(pid, &status, 0);
	(void)unlink(path);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Lines in which the interpreter is printf or echo; ours and the kernel's reading agree. */
TEST(the_kernel_agrees)
{
	static const char *const heads[] = { "#!", "#! ", "#!\t ", "# !", "#!\n", "!#", "#!\v" };
	static const char *const names[] = { "/bin/echo", "/bin/echo\t", "/bin/echo  ", "", " " };
	static const char *const args[] = { "", " a", " a b", "\ta \t", "  -n  x", "\r", " \\" };
	static const char *const ends[] = { "\n", "", "\nmore\n", " \n" };
	unsigned int scripts = 0;

	for (unsigned int i = 0; i < 7 * 5 * 7 * 4; i++) {
		struct sb_cmd_shebang s = { 0 };
		char text[256];
		char got[8192];
		char want[8192];
		int n = snprintf(text, sizeof(text), "%s%s%s%s", heads[i % 7], names[i / 7 % 5],
				 args[i / 35 % 7], ends[i / 245]);
		int kernel = by_kernel(text, (size_t)n, got);
		int r = sb_cmd_shebang(text, (size_t)n, &s);

		if (r == 1 && strcmp(s.interp, "/bin/echo") == 0) {
			/* echo [ARG] PATH tail */
			scripts++;
			CHECK_EQ(kernel, 0);
			(void)snprintf(want, sizeof(want), "%s%s/tmp/sb-shebang-", s.arg,
				       s.has_arg ? " " : "");
			if (strncmp(got, want, strlen(want)) != 0)
				t_fail(__FILE__, __LINE__, "%u: [%s] against [%s]", i, got, want);
		} else {
			CHECK(kernel != 0);
		}
	}
	CHECK(scripts > 100);
}

/* Interpreters in a row that this kernel allows: no more than the limit. */
TEST(levels)
{
	char dir[] = "/tmp/sb-levels-XXXXXX";
	char path[SB_CMD_LEVELS + 3][64];
	int ok = 0;

	REQUIRE(mkdtemp(dir));
	for (int i = 0; i < SB_CMD_LEVELS + 2; i++) {
		int status = 0;
		FILE *f;
		pid_t pid;

		(void)snprintf(path[i], sizeof(path[i]), "%s/%d", dir, i);
		f = fopen(path[i], "we");
		REQUIRE(f);
		(void)fprintf(f, "#!%s\n", i == 0 ? "/bin/true" : path[i - 1]);
		(void)fclose(f);
		(void)chmod(path[i], 0700);
		pid = fork();
		if (pid == 0) {
			(void)execl(path[i], path[i], (char *)NULL);
			_exit(errno == ELOOP ? 40 : 1);
		}
		(void)waitpid(pid, &status, 0);
		CHECK(WIFEXITED(status) &&
		      (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 40));
		ok += WIFEXITED(status) && WEXITSTATUS(status) == 0;
	}
	CHECK_EQ(ok, SB_CMD_LEVELS);
	for (int i = 0; i < SB_CMD_LEVELS + 2; i++)
		(void)unlink(path[i]);
	(void)rmdir(dir);
}
