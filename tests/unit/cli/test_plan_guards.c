/* Lists of guarded paths become the guards of a plan. */
#include "t.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plan_guards.h"

#define S(x) ((char *)(uintptr_t)(x))

/* The lists of a test, as they would stand in a file. */
struct lists {
	char *const *readonly;
	char *const *hidden;
	const char *project;
	const char *home;
	const char *config;
};
#define LIST(...) ((char *[]){ __VA_ARGS__, NULL })

static char top[PATH_MAX];
static char host[8][PATH_MAX];

static char *on_host(int i, const char *name)
{
	(void)snprintf(host[i], sizeof(host[i]), "%.100s/%.100s", top, name);
	return host[i];
}

static void set_up(void)
{
	(void)snprintf(top, sizeof(top), "/tmp/sb-guards-XXXXXX");
	if (!mkdtemp(top))
		abort();
	(void)mkdir(on_host(0, "p"), 0755);
	(void)mkdir(on_host(0, "p/sub"), 0755);
	(void)mkdir(on_host(0, "p/real"), 0755);
	(void)close(open(on_host(0, "p/real/conf"), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	(void)!symlink("real", on_host(0, "p/link"));
	(void)mkdir(on_host(0, "q"), 0755);
}
static void tear_down(void)
{
	char cmd[PATH_MAX + 20];

	(void)snprintf(cmd, sizeof(cmd), "rm -rf %s", top);
	CHECK_EQ(system(cmd), 0);
}

/* "path:r path:h ..." of what came out, or the error's text. */
static const char *made(struct sb_plan *p, const struct lists *t)
{
	static char text[8192];
	struct guard_entry v[2 * SB_PLAN_MAX_GUARDS];
	const char *files[] = { t->config, NULL };
	struct guard_lists l = { .v = v, .files = files, .project = t->project, .home = t->home };
	struct sb_err err = { 0 };
	int n = 0;

	for (char *const *e = t->readonly; e && *e; e++)
		v[l.n++] = (struct guard_entry){ *e, S("f.yaml:7"), SB_GUARD_READONLY };
	for (char *const *e = t->hidden; e && *e; e++)
		v[l.n++] = (struct guard_entry){ *e, S("f.yaml:9"), SB_GUARD_HIDDEN };
	text[0] = '\0';
	if (plan_guards(p, &l, &err) < 0)
		return memcpy(text, err.text, sizeof(err.text));
	for (size_t i = 0; i < p->n_guards; i++) {
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%s:%c", i ? " " : "",
			      p->guards[i].path, p->guards[i].mode == SB_GUARD_HIDDEN ? 'h'
			      : p->guards[i].mode == SB_GUARD_GIT  ? 'g'
								   : 'r');
		if (i > 0)
			CHECK(strcmp(p->guards[i - 1].path, p->guards[i].path) < 0);
	}
	return text;
}

static void drop(struct sb_plan *p)
{
	for (size_t i = 0; i < p->n_guards; i++)
		free(p->guards[i].path);
	free(p->guards);
	p->guards = NULL;
	p->n_guards = 0;
}

TEST(relative_and_absolute)
{
	struct sb_plan_mount m[] = {
		{ .host = NULL, .guest = S("/w"), .mode = SB_MOUNT_RW },
		{ .host = NULL, .guest = S("/w/ro"), .mode = SB_MOUNT_RO },
	};
	struct sb_plan p = { .provider = SB_PROVIDER_MICROVM, .mounts = m, .n_mounts = 2 };
	struct lists l = { .project = "/w" };

	set_up();
	m[0].host = on_host(1, "p");
	m[1].host = on_host(2, "q");
	CHECK_STR(made(&p, &l), "");
	l.readonly = LIST(S("b/c/"), S("/w/a"), S("./b/c"), S("secret/x"));
	l.hidden = LIST(S("secret"), S("z"));
	CHECK_STR(made(&p, &l), "/w/a:r /w/b/c:r /w/secret:h /w/z:h");
	l.hidden = LIST(S("a"));
	CHECK_STR(made(&p, &l), "/w/a:h /w/b/c:r /w/secret/x:r");
	l.hidden = NULL;
	l.readonly = LIST(S("../x"));
	CHECK(strstr(made(&p, &l), "without \"..\"") != NULL);
	l.readonly = LIST(S("*.key"));
	CHECK(strstr(made(&p, &l), "f.yaml:7: guarded path \"*.key\": wildcards") != NULL);
	l.readonly = LIST(S(""));
	CHECK(strstr(made(&p, &l), "wildcards") != NULL);
	l.readonly = LIST(S("/etc/passwd"));
	CHECK(strstr(made(&p, &l), "shared read-write") != NULL);
	l.readonly = LIST(S("ro/x"));
	CHECK(strstr(made(&p, &l), "shared read-write") != NULL);
	l.readonly = LIST(S("."));
	CHECK(strstr(made(&p, &l), "shared read-write") != NULL);
	l.readonly = LIST(S("ro"));
	CHECK(strstr(made(&p, &l), "shared read-write") != NULL);
	drop(&p);
	tear_down();
}

TEST(git_may_add_to_its_configuration_where_one_server_sees_it)
{
	struct sb_plan_mount m[] = {
		{ .guest = S("/again"), .mode = SB_MOUNT_RW },
		{ .guest = S("/w"), .mode = SB_MOUNT_RW },
	};
	struct sb_plan p = { .provider = SB_PROVIDER_MICROVM, .mounts = m + 1, .n_mounts = 1 };
	struct lists l = { .project = "/w", .readonly = LIST(S("default")) };

	set_up();
	m[0].host = m[1].host = on_host(1, "p");
	CHECK(strstr(made(&p, &l), "/w/.git/config:g ") != NULL);
	CHECK(strstr(made(&p, &l), "/w/.git/hooks:r ") != NULL);
	l.readonly = LIST(S("default"), S(".git/config"));
	CHECK(strstr(made(&p, &l), "/w/.git/config:r ") != NULL);
	l.readonly = LIST(S(".git/config"), S("default"));
	CHECK(strstr(made(&p, &l), "/w/.git/config:r ") != NULL);
	l.readonly = LIST(S("default"));
	l.hidden = LIST(S(".git/config"));
	CHECK(strstr(made(&p, &l), "/w/.git/config:h ") != NULL);
	l.hidden = NULL;
	p.mounts = m; /* two servers of one folder */
	p.n_mounts = 2;
	CHECK(strstr(made(&p, &l), "/w/.git/config:r ") != NULL);
	CHECK(strstr(made(&p, &l), "/again/.git/config:r ") != NULL);
	drop(&p);
	tear_down();
}

TEST(every_way_to_the_file)
{
	struct sb_plan_mount m[] = {
		{ .guest = S("/again"), .mode = SB_MOUNT_RW },
		{ .guest = S("/part"), .mode = SB_MOUNT_RW },
		{ .guest = S("/w"), .mode = SB_MOUNT_RW },
	};
	struct sb_plan p = { .provider = SB_PROVIDER_MICROVM, .mounts = m, .n_mounts = 3 };
	struct lists l = { .project = "/w" };

	set_up();
	m[0].host = on_host(1, "p");
	m[1].host = on_host(2, "p/sub");
	m[2].host = on_host(3, "p");
	l.readonly = LIST(S("sub/f"), S("g"));
	CHECK_STR(made(&p, &l), "/again/g:r /again/sub/f:r /part/f:r /w/g:r /w/sub/f:r");
	l.readonly = LIST(S("link/conf")); /* through a link, and what it leads to */
	CHECK_STR(made(&p, &l),
		  "/again/link/conf:r /again/real/conf:r /w/link/conf:r /w/real/conf:r");
	l.readonly = LIST(S("sub"));
	CHECK(strstr(made(&p, &l), "take one of the two away") != NULL);
	m[1].mode = SB_MOUNT_RO;
	CHECK_STR(made(&p, &l), "/again/sub:r /w/sub:r");
	l.hidden = LIST(S("sub/f"));
	CHECK(strstr(made(&p, &l), "can be read through the mount at /part") != NULL);
	drop(&p);
	tear_down();
}

TEST(built_in)
{
	struct sb_plan_mount m[] = { { .guest = S("/w"), .mode = SB_MOUNT_RW } };
	struct sb_plan p = { .provider = SB_PROVIDER_NAMESPACE, .mounts = m, .n_mounts = 1 };
	struct lists l = { .project = "/w" };
	const char *text;

	set_up();
	m[0].host = on_host(1, "p");
	l.readonly = LIST(S("default"));
	l.hidden = LIST(S("default"));
	l.home = "/nowhere";
	text = made(&p, &l);
	CHECK(strstr(text, "/w/.git/hooks:r") != NULL);
	CHECK(strstr(text, "/w/.git/commondir:r") != NULL);
	CHECK(strstr(text, "/w/.git/remotes:r") != NULL);
	CHECK(strstr(text, "/w/.git/branches:r") != NULL);
	CHECK(strstr(text, "/w/.vscode:r") != NULL);
	CHECK(strstr(text, "/w/.claude:r") != NULL);
	CHECK(strstr(text, "/w/.mcp.json:r") != NULL);
	CHECK(strstr(text, "/w/.envrc:r") != NULL);
	CHECK(strstr(text, ":h") == NULL);
	/* the home lies in the share */
	l.home = on_host(2, "p/sub");
	text = made(&p, &l);
	CHECK(strstr(text, "/w/sub/.ssh:h") != NULL);
	CHECK(strstr(text, "/w/sub/.docker/config.json:h") != NULL);
	/* a worktree's .git is a file */
	(void)close(open(on_host(3, "p/.git"), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	l.hidden = NULL;
	text = made(&p, &l);
	CHECK(strstr(text, "/w/.git:r") != NULL);
	CHECK(strstr(text, "/w/.git/") == NULL);
	/* with the target of another mount in it, it has no place: left out */
	m[0].mode = SB_MOUNT_RO;
	CHECK_STR(made(&p, &l), "");
	drop(&p);
	tear_down();
}

TEST(the_configuration_file)
{
	struct sb_plan_mount m[] = { { .guest = S("/w"), .mode = SB_MOUNT_RW } };
	struct sb_plan p = { .provider = SB_PROVIDER_MICROVM, .mounts = m, .n_mounts = 1 };
	struct lists l = { .project = "/w" };

	set_up();
	m[0].host = on_host(1, "p");
	l.config = on_host(2, "p/real/conf");
	CHECK_STR(made(&p, &l), "/w/real/conf:r");
	p.provider = SB_PROVIDER_NAMESPACE; /* no server for it alone */
	CHECK_STR(made(&p, &l), "");
	l.readonly = LIST(S("x"));
	CHECK_STR(made(&p, &l), "/w/real/conf:r /w/x:r");
	l.config = "/elsewhere/.sendbox.yaml";
	CHECK_STR(made(&p, &l), "/w/x:r");
	drop(&p);
	tear_down();
}

TEST(at_most_so_many)
{
	struct sb_plan_mount m[] = { { .guest = S("/w"), .host = S("/no"), .mode = SB_MOUNT_RW } };
	struct sb_plan p = { .provider = SB_PROVIDER_MICROVM, .mounts = m, .n_mounts = 1 };
	struct lists l = { .project = "/w" };
	static char names[SB_PLAN_MAX_GUARDS + 1][8];
	char *list[SB_PLAN_MAX_GUARDS + 2] = { NULL };

	for (size_t i = 0; i <= SB_PLAN_MAX_GUARDS; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "f%zu", i);
		list[i] = names[i];
	}
	l.readonly = list;
	CHECK(strstr(made(&p, &l), "more than 256") != NULL);
	list[SB_PLAN_MAX_GUARDS] = NULL;
	CHECK(strstr(made(&p, &l), "more than") == NULL);
	CHECK_EQ(p.n_guards, (size_t)SB_PLAN_MAX_GUARDS);
	drop(&p);
}
