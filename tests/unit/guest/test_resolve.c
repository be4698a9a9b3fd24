#include "t.h"

#include <stdlib.h>

#include "exec/resolve.h"

#define S(x) ((char *)(uintptr_t)(x))

static void is(const char *name, const char *path, const char *want)
{
	char **v = NULL;
	char got[512] = "";

	REQUIRE(sb_resolve_program(name, path, &v) == 0);
	for (char **p = v; *p; p++) {
		(void)strncat(got, *p, sizeof(got) - strlen(got) - 1);
		(void)strncat(got, " ", sizeof(got) - strlen(got) - 1);
	}
	CHECK_STR(got, want);
	free(v);
}

TEST(candidates)
{
	char **v = NULL;

	is("ls", "/usr/bin:/bin", "/usr/bin/ls /bin/ls ");
	is("ls", "/bin", "/bin/ls ");
	is("ls", "", "./ls ");
	is("ls", ":/bin:", "./ls /bin/ls ./ls ");
	is("ls", NULL, "/usr/local/bin/ls /usr/bin/ls /bin/ls ");
	is("./ls", "/bin", "./ls ");
	is("/x/ls", NULL, "/x/ls ");
	is("a/b", "/bin", "a/b ");
	CHECK_EQ(sb_resolve_program("", "/bin", &v), -ENOENT);
	CHECK(v == NULL);
}

TEST(environment_is_completed)
{
	struct sb_plan plan = { .home = S("/home/u"), .user = S("u"), .term = S("xterm") };
	char *env[] = { S("A=1"), S("PATH=/x"), S("HOMER=2"), S("LANG="), NULL };
	char **v = NULL;

	CHECK_EQ(sb_resolve_env(&plan, env, "/w", false, &v), 0);
	CHECK_STR(sb_resolve_getenv(v, "A"), "1");
	CHECK_STR(sb_resolve_getenv(v, "PATH"), "/x");
	CHECK_STR(sb_resolve_getenv(v, "HOME"), "/home/u");
	CHECK_STR(sb_resolve_getenv(v, "USER"), "u");
	CHECK_STR(sb_resolve_getenv(v, "LOGNAME"), "u");
	CHECK_STR(sb_resolve_getenv(v, "TMPDIR"), "/tmp");
	CHECK_STR(sb_resolve_getenv(v, "LANG"), "");
	CHECK_STR(sb_resolve_getenv(v, "PWD"), "/w");
	CHECK(sb_resolve_getenv(v, "TERM") == NULL);
	free(v);
	CHECK_EQ(sb_resolve_env(&plan, env + 4, "/w", true, &v), 0);
	CHECK_STR(sb_resolve_getenv(v, "TERM"), "xterm");
	CHECK_STR(sb_resolve_getenv(v, "PATH"), "/usr/local/bin:/usr/bin:/bin");
	free(v);
}
