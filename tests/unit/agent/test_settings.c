/* Copies of settings: made, changed as a session would, looked at, merged. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/settings.h"
#include "t.h"

static char top[] = "/tmp/sb-settings-XXXXXX";
static struct agent *agent;

static const char *at(const char *name)
{
	static char path[4][400];
	static unsigned int i;

	i = (i + 1) % 4;
	(void)snprintf(path[i], sizeof(path[i]), "%s/%s", top, name);
	return path[i];
}

static void put(const char *name, const char *text)
{
	FILE *f = fopen(at(name), "we");

	CHECK(f);
	if (f) {
		(void)fputs(text, f);
		(void)fclose(f);
	}
}

static const char *get(const char *name)
{
	static char text[200];
	FILE *f = fopen(at(name), "re");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

	text[n] = '\0';
	if (f)
		(void)fclose(f);
	return f ? text : "(none)";
}

static void fresh(const char *json)
{
	struct problems p = { 0 };
	char command[500];

	if (strstr(top, "XXXXXX"))
		CHECK(mkdtemp(top));
	(void)snprintf(command, sizeof(command), "rm -rf %s/*", top);
	CHECK_EQ(system(command), 0);
	(void)mkdir(at("home"), 0755);
	(void)mkdir(at("home/.t"), 0755);
	(void)mkdir(at("home/.t/sub"), 0755);
	(void)mkdir(at("i"), 0700);
	put("home/.t/a", "one\n");
	put("home/.t/sub/b", "two\n");
	agent = agent_free(agent);
	agent = calloc(1, sizeof(*agent));
	agent->name = "t";
	CHECK_EQ(agent_parse(json, strlen(json), "t.json", agent, &p), 0);
	problems_done(&p);
}

static int prepare(struct settings *s)
{
	char dir[400];
	char home[400];
	const struct settings_where w = { .dir = dir, .home = home, .guest_home = "/home/user",
					  .uid = geteuid(), .gid = getegid() };
	struct sb_err err = { 0 };

	(void)snprintf(dir, sizeof(dir), "%s/i", top);
	(void)snprintf(home, sizeof(home), "%s/home", top);
	return settings_prepare(agent, &w, s, &err);
}

static int note(void *arg, const struct settings_file *f)
{
	static const char marks[] = "=+~-?";
	char *text = arg;
	size_t n = strlen(text);

	(void)snprintf(text + n, 400 - n, "%c%s ", marks[f->change], f->shown);
	return 0;
}

static const char *changes(void)
{
	static char text[400];
	struct sb_err err = { 0 };

	text[0] = '\0';
	CHECK_EQ(settings_each(at("i"), false, note, text, &err), 0);
	return text;
}

static int merge(void *arg, const struct settings_file *f)
{
	struct sb_err err = { 0 };
	int r = settings_apply(at("home"), f, &err);

	*(int *)arg = r;
	return r == SETTINGS_DONE ? SETTINGS_TAKEN : 0;
}

TEST(copied)
{
	struct settings s = { 0 };
	struct stat st;

	fresh("{\"settings\":[\"~/.t\", \"~/.none\"]}");
	put("home/.t/auth.json", "secret");
	CHECK_EQ(symlink("a", at("home/.t/link")), 0);
	CHECK_EQ(mkfifo(at("home/.t/fifo"), 0600), 0);
	CHECK_EQ(prepare(&s), 0);
	CHECK_EQ(s.n, 1);
	CHECK_EQ(s.files, 2);
	CHECK_EQ(s.held, 1);
	CHECK_EQ(s.odd, 2);
	CHECK_STR(s.mounts[0].guest, "/home/user/.t");
	CHECK_STR(get("i/copy/0/sub/b"), "two\n");
	CHECK_EQ(stat(at("i/copy/0/a"), &st), 0);
	CHECK_EQ(st.st_mode & 0777, 0600);
	CHECK_STR(changes(), "");
	settings_done(&s);
	CHECK_EQ(prepare(&s), 0); /* the next session of the instance */
	CHECK(s.again && s.n == 1 && s.files == 0);
	settings_done(&s);
}

TEST(changed_and_merged)
{
	struct settings s = { 0 };
	struct sb_err err = { 0 };
	int last = 0;

	fresh("{\"settings\":[\"~/.t\"]}");
	CHECK_EQ(prepare(&s), 0);
	settings_done(&s);
	put("i/copy/0/a", "three\n");
	CHECK_STR(changes(), "~~/.t/a ");
	CHECK_EQ(settings_each(at("i"), true, merge, &last, &err), 0);
	CHECK_EQ(last, SETTINGS_DONE);
	CHECK_STR(get("home/.t/a"), "three\n");
	CHECK_STR(changes(), ""); /* no change any more */

	put("i/copy/0/new", "n\n"); /* a new one is not taken for a removed one afterwards */
	CHECK_EQ(settings_each(at("i"), true, merge, &last, &err), 0);
	CHECK_STR(get("home/.t/new"), "n\n");
	CHECK_STR(changes(), "");

	CHECK_EQ(unlink(at("i/copy/0/sub/b")), 0);
	CHECK_STR(changes(), "-~/.t/sub/b ");
	CHECK_EQ(settings_each(at("i"), true, merge, &last, &err), 0);
	CHECK_STR(get("home/.t/sub/b"), "(none)");
	CHECK_STR(changes(), "");
}

TEST(conflicts)
{
	struct settings s = { 0 };
	struct sb_err err = { 0 };
	int last = 0;

	fresh("{\"settings\":[\"~/.t\"]}");
	CHECK_EQ(prepare(&s), 0);
	settings_done(&s);
	put("i/copy/0/a", "theirs\n");
	put("home/.t/a", "mine\n");
	CHECK_EQ(settings_each(at("i"), true, merge, &last, &err), 0);
	CHECK_EQ(last, SETTINGS_CONFLICT);
	CHECK_STR(get("home/.t/a"), "mine\n");
	put("home/.t/a", "one\n"); /* as it was */
	CHECK_EQ(unlink(at("home/.t/a")), 0);
	CHECK_EQ(symlink("/etc/passwd", at("home/.t/a")), 0);
	CHECK_EQ(settings_each(at("i"), true, merge, &last, &err), 0);
	CHECK_EQ(last, SETTINGS_CONFLICT);
	CHECK_STR(changes(), "~~/.t/a ");
}

TEST(hostile_copies)
{
	struct settings s = { 0 };
	struct sb_err err = { 0 };
	int last = 0;

	fresh("{\"settings\":[\"~/.t\"]}");
	CHECK_EQ(prepare(&s), 0);
	settings_done(&s);
	CHECK_EQ(unlink(at("i/copy/0/a")), 0);
	CHECK_EQ(symlink("/etc/passwd", at("i/copy/0/a")), 0);
	CHECK_STR(changes(), "?~/.t/a ");
	CHECK_EQ(settings_each(at("i"), true, merge, &last, &err), 0);
	CHECK_EQ(last, SETTINGS_SKIPPED);
	CHECK_STR(get("home/.t/a"), "one\n");
	for (int i = 0; i < SETTINGS_MAX_DEPTH + 2; i++) { /* deeper than anybody needs */
		char path[400] = "i/copy/0";

		for (int k = 0; k <= i; k++)
			(void)strcat(path, "/d");
		CHECK_EQ(mkdir(at(path), 0700), 0);
	}
	{
		char text[400] = "";

		CHECK_EQ(settings_each(at("i"), false, note, text, &err), -E2BIG);
	}
}

TEST(single_files)
{
	struct settings s = { 0 };

	fresh("{\"settings\":[\"~/.t\",{\"path\":\"~/.t.json\",\"to\":\"~/.t/.t.json\",\"jsonKeys\":[\"theme\"]},"
	      "\"~/.one\"]}");
	put("home/.t.json", "{\"theme\":\"dark\",\"key\":\"secret\",\"theme2\":1}");
	put("home/.one", "1");
	CHECK_EQ(prepare(&s), 0);
	CHECK_EQ(s.n, 2);
	CHECK(strstr(get("i/copy/0/.t.json"), "dark") && !strstr(get("i/copy/0/.t.json"), "secret"));
	CHECK_STR(s.mounts[1].guest, "/home/user/.one");
	put("i/copy/0/.t.json", "{}"); /* nothing comes back of it */
	CHECK_STR(changes(), "");
	put("i/copy/1/.one", "2");
	CHECK_STR(changes(), "~~/.one ");
	settings_done(&s);
}

TEST(credentials)
{
	CHECK(settings_is_credential(".credentials.json"));
	CHECK(settings_is_credential("AUTH.JSON"));
	CHECK(settings_is_credential("x.pem"));
	CHECK(settings_is_credential(".env.local"));
	CHECK(!settings_is_credential("settings.json"));
	CHECK(!settings_is_credential(".pem"));
}
