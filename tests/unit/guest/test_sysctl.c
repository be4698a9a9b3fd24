/* Kernel hardening against a folder that plays /proc. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/init.h"
#include "t.h"

static int fake_proc(void)
{
	char dir[] = "/tmp/sb-sysctl-XXXXXX";

	if (!mkdtemp(dir))
		return -1;
	return open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void put(int proc, const char *dir, const char *name, const char *text)
{
	char path[200];
	sb_autofd int fd = -1;

	(void)mkdirat(proc, "sys", 0755);
	(void)snprintf(path, sizeof(path), "sys/%s", dir);
	(void)mkdirat(proc, path, 0755);
	(void)snprintf(path, sizeof(path), "sys/%s/%s", dir, name);
	fd = openat(proc, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	CHECK(fd >= 0);
	CHECK_EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static const char *get(int proc, const char *path)
{
	static char text[200];
	sb_autofd int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	text[n < 0 ? 0 : n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return text;
}

TEST(sets_what_exists_and_names_what_does_not)
{
	sb_autofd int proc = fake_proc();
	const char *told = NULL;
	struct sb_err err = { 0 };

	REQUIRE(proc >= 0);
	put(proc, "kernel", "kptr_restrict", "0\n");
	put(proc, "kernel", "dmesg_restrict", "0\n");
	CHECK_EQ(sb_init_sysctl(proc, SB_PROFILE_DEFAULT, &told, &err), 0);
	REQUIRE(told != NULL);
	CHECK(strstr(told, "sysctl.kernel/kptr_restrict=2") != NULL);
	CHECK(strstr(told, "sysctl.kernel/dmesg_restrict=1") != NULL);
	CHECK(strstr(told, "sysctl.fs/suid_dumpable=absent") != NULL);
	CHECK(get(proc, "sys/kernel/kptr_restrict")[0] == '2');
}

TEST(a_stricter_value_stays)
{
	sb_autofd int proc = fake_proc();
	const char *told = NULL;

	REQUIRE(proc >= 0);
	put(proc, "kernel", "perf_event_paranoid", "4\n");
	put(proc, "kernel", "unprivileged_bpf_disabled", "2\n");
	CHECK_EQ(sb_init_sysctl(proc, SB_PROFILE_DEFAULT, &told, NULL), 0);
	CHECK_STR(get(proc, "sys/kernel/perf_event_paranoid"), "4");
	CHECK_STR(get(proc, "sys/kernel/unprivileged_bpf_disabled"), "2");
}

TEST(a_setting_that_does_not_take_is_an_error)
{
	sb_autofd int proc = fake_proc();
	const char *told = "untouched";
	struct sb_err err = { 0 };

	REQUIRE(proc >= 0);
	/* what is written over it reads back as "2rest" */
	put(proc, "kernel", "kptr_restrict", "0rest\n");
	CHECK(sb_init_sysctl(proc, SB_PROFILE_DEFAULT, &told, &err) < 0);
	CHECK_STR(told, "untouched");
	CHECK(strstr(err.text, "kernel/kptr_restrict=2") != NULL);
}

TEST(module_loading_is_closed)
{
	sb_autofd int proc = fake_proc();

	REQUIRE(proc >= 0);
	CHECK_EQ(sb_init_no_more_modules(proc, NULL), 0); /* no modules at all */
	put(proc, "kernel", "modules_disabled", "0\n");
	CHECK_EQ(sb_init_no_more_modules(proc, NULL), 0);
	CHECK(get(proc, "sys/kernel/modules_disabled")[0] == '1');
}
