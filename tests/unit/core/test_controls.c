/* The comparison of what a plan asks for with what a guest reports. */
#include "t.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/controls.h"

#define S(x) ((char *)(uintptr_t)(x))

static const char good[] =
	"kernel=6.1\nmodules=closed\nuser_namespaces=closed\npids=512\nprofile=strict\nuid=1000\n"
	"gid=1001\ncapabilities=none\nno_new_privs=1\nseccomp=filter\nlandlock=in force\n"
	"rlimit.core=0\nrlimit.nofile=1024\nrlimit.fsize=4096\nrlimit.as=18446744073709551615\n"
	"rlimit.data=1\nrlimit.stack=8388608\nrlimit.cpu=10\nrlimit.memlock=65536\n"
	"refused=mount,unshare,setns,bpf,keyctl,perf_event_open,io_uring_setup,clone3,packet-socket,"
	"tiocsti,ptrace,process_vm_readv,memfd_create,execveat,netlink-socket\ndenied=chmod,sync\n"
	"log_blocked=in force\n";

static int check(const char *text, struct sb_err *err)
{
	char *denied[] = { S("chmod"), S("sync"), NULL };
	struct sb_plan plan = { .provider = SB_PROVIDER_MICROVM,
				.profile = SB_PROFILE_STRICT,
				.uid = 1000,
				.gid = 1001,
				.pids_max = 512,
				.nofile = 1024,
				.deny_syscalls = denied,
				.log_blocked = true,
				.rlimits = { 4096, SB_PLAN_NO_LIMIT, 4096, SB_PLAN_NO_LIMIT, 10,
					     65536 } };
	struct sb_controls c;
	int r;

	*err = (struct sb_err){ 0 };
	CHECK(sb_controls_of(&plan, &c) == 0);
	r = sb_controls_check(&c, text, strlen(text), err);
	sb_controls_done(&c);
	return r;
}

TEST(all_in_force)
{
	struct sb_err err;

	CHECK_EQ(check(good, &err), 0);
}

/* Replace the first @from by @to. */
static int changed(const char *from, const char *to, struct sb_err *err)
{
	char text[2048];
	const char *at = strstr(good, from);

	CHECK(at != NULL);
	(void)snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - good), good, to,
		       at + strlen(from));
	return check(text, err);
}

TEST(one_that_is_missing_or_different_is_named)
{
	static const char *const lines[][3] = {
		/* line, what is put there, what the text must name */
		{ "profile=strict\n", "profile=default\n", "control profile" },
		{ "uid=1000\n", "uid=0\n", "control uid" },
		{ "gid=1001\n", "gid=mixed\n", "control gid" },
		{ "capabilities=none\n", "capabilities=CapEff\n", "control capabilities" },
		{ "no_new_privs=1\n", "no_new_privs=0\n", "control no_new_privs" },
		{ "seccomp=filter\n", "seccomp=0\n", "control seccomp" },
		{ "landlock=in force\n", "landlock=not in force\n", "control landlock" },
		{ "modules=closed\n", "modules=open\n", "control modules" },
		{ "user_namespaces=closed\n", "user_namespaces=open\n", "control user_namespaces" },
		{ "rlimit.core=0\n", "rlimit.core=2\n", "control rlimit.core" },
		{ "rlimit.nofile=1024\n", "rlimit.nofile=1025\n", "control rlimit.nofile" },
		{ "rlimit.fsize=4096\n", "rlimit.fsize=18446744073709551615\n",
		  "control rlimit.fsize" },
		{ "rlimit.cpu=10\n", "rlimit.cpu=x\n", "control rlimit.cpu" },
		{ "rlimit.memlock=65536\n", "rlimit.memlock=-1\n", "control rlimit.memlock" },
		{ "pids=512\n", "pids=max\n", "control pids" },
		{ "log_blocked=in force\n", "log_blocked=no\n", "control log_blocked" },
	};
	struct sb_err err;

	for (size_t i = 0; i < SB_ARRAY_LEN(lines); i++) {
		for (int missing = 0; missing < 2; missing++) {
			int r = changed(lines[i][0], missing ? "" : lines[i][1], &err);

			if (r != -ENOTSUP || !strstr(err.text, lines[i][2]))
				t_fail(__FILE__, __LINE__, "%s: %d %s", lines[i][2], r, err.text);
		}
		/* said twice is as good as not said */
		char twice[200];

		(void)snprintf(twice, sizeof(twice), "%s%s", lines[i][0], lines[i][0]);
		CHECK_EQ(changed(lines[i][0], twice, &err), -ENOTSUP);
	}
	CHECK_EQ(changed("data=1", "data=4096", &err), 0); /* at most */
	CHECK_EQ(changed(",ptrace", "", &err), -ENOTSUP);
	CHECK(strstr(err.text, "ptrace is not refused") != NULL);
	CHECK_EQ(changed("denied=chmod,", "denied=", &err), -ENOTSUP);
	CHECK(strstr(err.text, "chmod is not refused") != NULL);
	CHECK_EQ(changed("=chmod,sync", "=chmod,syncfs", &err), -ENOTSUP);
	CHECK_EQ(changed("=mount,", "=umount,", &err), -ENOTSUP);
}

TEST(malformed_reports)
{
	static const char *const bad[] = { "", "x", "x\n", "=x\n", "a=b", "a=b\n\n", "a=\x01\n",
					   "a=\xff\n", "a=b\nrest" };
	struct sb_controls c = { .test_root = true };
	struct sb_err err;
	size_t big = SB_CONTROLS_MAX_TEXT + 1;
	char *text = malloc(big);

	for (size_t i = 0; i < SB_ARRAY_LEN(bad); i++)
		CHECK_EQ(check(bad[i], &err), -EBADMSG);
	REQUIRE(text != NULL);
	memset(text, 'a', big);
	text[1] = '=';
	text[big - 1] = '\n';
	CHECK_EQ(sb_controls_check(&c, text, big, NULL), -EBADMSG);
	text[big - 2] = '\n';
	CHECK_EQ(sb_controls_check(&c, text, big - 1, NULL), 0);
	free(text);
}

TEST(without_confinement_nothing_is_compared)
{
	struct sb_plan plan = { .test_root = true };
	struct sb_controls c;

	REQUIRE(sb_controls_of(&plan, &c) == 0);
	CHECK_STR(c.denied, "");
	CHECK_EQ(sb_controls_check(&c, "kernel=6.1\n", 11, NULL), 0);
	sb_controls_done(&c);
}
