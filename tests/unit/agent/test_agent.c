/* Definitions: read, laid over each other, refused with their place, as a layer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "t.h"

static const char old[] = /* a file of the earlier tool */
	"{\n"
	"  \"displayName\": \"My Agent\",\n"
	"  \"baseImage\": \"docker.io/library/node:22\",\n"
	"  \"installCommands\": [\"npm install -g x\"],\n"
	"  \"launchCommand\": [\"x\", \"--yes\"],\n"
	"  \"environmentVariables\": [\n"
	"    \"API_KEY\",\n"
	"    \"MODE=fast\"\n"
	"  ],\n"
	"  \"mounts\": [\n"
	"    {\"hostPath\": \"~/.x\", \"containerPath\": \"/root/.x\"},\n"
	"    {\"hostPath\": \"/srv\", \"containerPath\": \"/data\", \"readOnly\": true}\n"
	"  ],\n"
	"  \"allowedHosts\": [\"api.example.com\",\n"
	"    \"*.example.org\"]\n"
	"}\n";

static struct agent *parse(const char *text, struct problems *p)
{
	struct agent *a = calloc(1, sizeof(*a));

	if (agent_parse(text, strlen(text), "x.json", a, p) == 0)
		return a;
	return agent_free(a);
}

static const char *caller_env(const char *name)
{
	return strcmp(name, "API_KEY") == 0 ? "k" : NULL;
}

static bool not_srv(void *arg, const char *path)
{
	(void)arg;
	return strcmp(path, "/srv") != 0;
}

static void count(void *arg, const struct agent_mount *m, const char *host)
{
	(void)m;
	(void)host;
	++*(int *)arg;
}

TEST(earlier_file)
{
	struct problems p = { 0 };
	struct agent *a = parse(old, &p);

	CHECK(a);
	if (!a)
		return;
	CHECK_STR(a->display.text, "My Agent");
	CHECK_STR(a->image.text, "docker.io/library/node:22");
	CHECK_EQ(a->install.n, 1);
	CHECK_EQ(a->launch.n, 2);
	CHECK_EQ(a->env.v[1].line, 8);
	CHECK_EQ(a->n_mounts, 2);
	CHECK(!a->mounts[0].read_only && a->mounts[1].read_only);
	CHECK_EQ(a->hosts.v[1].line, 15);
	CHECK_EQ(agent_complete(a, "x.json", &p), 0);
	(void)agent_free(a);
	problems_done(&p);
}

TEST(packages)
{
	const char mine[] = "{\"installCommands\":[\"true\"]}";
	const char both[] = "{\"systemPackages\":[\"g++\"],\"installCommands\":[\"true\"]}";
	const struct agent_builtin *b = agent_builtin_find("claude");
	struct problems p = { 0 };
	struct agent *a = parse(b->json, &p);

	CHECK(a && a->packages.n > 0);
	if (!a)
		return;
	CHECK_EQ(agent_parse(mine, strlen(mine), "mine", a, &p), 0);
	CHECK_EQ(a->packages.n, 0); /* commands of one's own know what they need */
	CHECK_EQ(agent_parse(both, strlen(both), "both", a, &p), 0);
	CHECK_EQ(a->packages.n, 1);
	CHECK_STR(a->packages.v[0].text, "g++");
	(void)agent_free(a);
	problems_done(&p);
}

TEST(layer)
{
	struct problems p = { 0 };
	struct agent *a = parse(old, &p);
	int skipped = 0;
	const struct agent_use use = { .home = "/home/h", .guest_home = "/home/user",
				       .variable = caller_env, .exists = not_srv,
				       .skipped = count, .arg = &skipped };
	struct agent_use bare = use;
	struct agent_layer l = { 0 };
	struct cfg *c = NULL;
	const struct cfg_value *v;
	char where[64];

	CHECK_EQ(agent_layer_make(a, &use, &l), 0);
	CHECK_EQ(cfg_compile(l.v, l.n, &c, &p), 0);
	CHECK_EQ(skipped, 1);
	v = cfg_get(c, "env.MODE");
	CHECK(v);
	if (v) {
		CHECK_STR(v->text, "fast");
		cfg_where(v, where, sizeof(where));
		CHECK_STR(where, "x.json:8");
		CHECK_EQ(v->origin.layer, CFG_AGENT);
	}
	v = cfg_get(c, "env.API_KEY");
	CHECK(v && v->kind == DOC_NULL);
	CHECK(!cfg_item(c, "mounts", 1));
	v = cfg_member(cfg_item(c, "mounts", 0), "guest");
	CHECK(v && strcmp(v->text, "/home/user/.x") == 0); /* /root was the home folder there */
	v = cfg_member(cfg_item(c, "mounts", 0), "host");
	CHECK(v && strcmp(v->text, "/home/h/.x") == 0);
	v = cfg_item(c, "policy.network.allowed_domains", 1);
	CHECK(v && v->origin.line == 15 && strcmp(v->text, "*.example.org") == 0);
	c = cfg_free(c);
	agent_layer_done(&l);

	bare.no_mounts = true;
	CHECK_EQ(agent_layer_make(a, &bare, &l), 0);
	CHECK_EQ(cfg_compile(l.v, l.n, &c, &p), 0);
	CHECK(!cfg_item(c, "mounts", 0));
	c = cfg_free(c);
	agent_layer_done(&l);
	(void)agent_free(a);
	problems_done(&p);
}

TEST(home_of_guest)
{
	struct problems p = { 0 };
	struct agent *a = parse("{\"environmentVariables\":[\"A=$HOME/.c\",\"B=x$HOME/y\"]}", &p);
	const struct agent_use use = { .home = "/home/h", .guest_home = "/home/user",
				       .variable = caller_env, .exists = not_srv };
	struct agent_layer l = { 0 };
	struct cfg *c = NULL;

	CHECK_EQ(agent_layer_make(a, &use, &l), 0);
	CHECK_EQ(cfg_compile(l.v, l.n, &c, &p), 0);
	CHECK_STR(cfg_get(c, "env.A")->text, "/home/user/.c");
	CHECK_STR(cfg_get(c, "env.B")->text, "x$HOME/y");
	c = cfg_free(c);
	agent_layer_done(&l);
	(void)agent_free(a);
}

/* Each with the line, the field and the code that must be told. */
TEST(refused)
{
	static const struct {
		const char *text;
		const char *key;
		const char *code;
		uint32_t line;
	} rows[] = {
		{ "{", "", "syntax", 1 },
		{ "", "", "syntax", 1 },
		{ "[]", "", "wrong_type", 1 },
		{ "null", "", "wrong_type", 1 },
		{ "{\"displayName\":\"a\",\n\"displayName\":\"b\"}", "displayName", "duplicate_key", 2 },
		{ "{\n\"allowedHost\":[]}", "", "unknown_key", 2 },
		{ "{\"displayName\":1}", "displayName", "wrong_type", 1 },
		{ "{\"displayName\":\"\"}", "displayName", "bad_value", 1 },
		{ "{\"displayName\":\"a\\u001b[2J\"}", "displayName", "bad_value", 1 },
		{ "{\"displayName\":null}", "displayName", "wrong_type", 1 },
		{ "{\"baseImage\":\"a b\"}", "baseImage", "bad_value", 1 },
		{ "{\"installCommands\":\"apt\"}", "installCommands", "wrong_type", 1 },
		{ "{\"installCommands\":[1]}", "installCommands", "wrong_type", 1 },
		{ "{\"launchCommand\":[]}", "launchCommand", "bad_value", 1 },
		{ "{\"launchCommand\":[\"\"]}", "launchCommand", "bad_value", 1 },
		{ "{\"environmentVariables\":[\"=x\"]}", "environmentVariables", "bad_value", 1 },
		{ "{\"environmentVariables\":[\"A\\nB=x\"]}", "environmentVariables", "bad_value", 1 },
		{ "{\"environmentVariables\":[\"A B=x\"]}", "environmentVariables", "bad_value", 1 },
		{ "{\"environmentVariables\":[\"1A=x\"]}", "environmentVariables", "bad_value", 1 },
		{ "{\"environmentVariables\":[\"\\u001bA\"]}", "environmentVariables", "bad_value", 1 },
		{ "{\"environmentVariables\":[\"A=1\",\n\"A\"]}", "environmentVariables", "bad_value", 2 },
		{ "{\"mounts\":[{}]}", "mounts", "missing_key", 1 },
		{ "{\"mounts\":[{\"hostPath\":\"../x\",\"containerPath\":\"/x\"}]}", "mounts.hostPath",
		  "bad_value", 1 },
		{ "{\"mounts\":[{\"hostPath\":\"~/x\",\"containerPath\":\"/a/../etc\"}]}",
		  "mounts.containerPath", "bad_value", 1 },
		{ "{\"mounts\":[{\"hostPath\":\"~x\",\"containerPath\":\"/x\"}]}", "mounts.hostPath",
		  "bad_value", 1 },
		{ "{\"mounts\":[{\"hostPath\":\"/x\",\"containerPath\":\"/x\",\"readonly\":true}]}",
		  "mounts", "unknown_key", 1 },
		{ "{\"mounts\":[{\"hostPath\":\"/x\",\"containerPath\":\"/x\",\"readOnly\":\"yes\"}]}",
		  "mounts.readOnly", "wrong_type", 1 },
		{ "{\"allowedHosts\":[\"a b\"]}", "allowedHosts", "bad_value", 1 },
		{ "{\"allowedHosts\":[\"https://x.example\"]}", "allowedHosts", "bad_value", 1 },
		{ "{\"settings\":[\"/etc\"]}", "settings", "bad_value", 1 },
		{ "{\"settings\":[\"~/\"]}", "settings", "bad_value", 1 },
		{ "{\"settings\":[\"~/.\"]}", "settings", "bad_value", 1 },
		{ "{\"settings\":[\"~/../x\"]}", "settings", "bad_value", 1 },
		{ "{\"settings\":[{\"path\":\"~/x\",\"mode\":\"link\"}]}", "settings.mode", "bad_value", 1 },
		{ "{\"settings\":[{\"path\":\"~/x\",\"exclude\":[\"../y\"]}]}", "settings.exclude",
		  "bad_value", 1 },
		{ "{\"settings\":[{\"path\":\"~/x\",\"mode\":\"mount\",\"exclude\":[\"y\"]}]}", "settings",
		  "bad_value", 1 },
		{ "{\"secrets\":[{\"name\":\"A\",\"hosts\":[]}]}", "secrets.hosts", "bad_value", 1 },
		{ "{\"secrets\":[{\"name\":\"A=B\",\"hosts\":[\"a.example\"]}]}", "secrets.name",
		  "bad_value", 1 },
		{ "{\"caches\":[\"/var\"]}", "caches", "bad_value", 1 },
		{ "{\"packageGroups\":[\"a b\"]}", "packageGroups", "bad_value", 1 },
		{ "{\"systemPackages\":[\"a;b\"]}", "systemPackages", "bad_value", 1 },
		{ "{\"systemPackages\":[\"-o=x\"]}", "systemPackages", "bad_value", 1 },
		{ "{\"healthCheck\":{}}", "healthCheck", "wrong_type", 1 },
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(rows); i++) {
		struct problems p = { 0 };
		struct agent *a = parse(rows[i].text, &p);
		bool told = false;

		CHECK(!a);
		for (size_t k = 0; k < p.n; k++)
			told |= strcmp(p.v[k].key, rows[i].key) == 0 &&
				strcmp(p.v[k].code, rows[i].code) == 0 && p.v[k].line == rows[i].line;
		CHECK(told);
		if (!told)
			printf("# %s: %s/%s line %u: %s\n", rows[i].text, p.n ? p.v[0].key : "-",
			       p.n ? p.v[0].code : "-", p.n ? p.v[0].line : 0,
			       p.n ? p.v[0].message : "-");
		(void)agent_free(a);
		problems_done(&p);
	}
}

TEST(limits)
{
	char *big = malloc(AGENT_MAX_BYTES + 16);
	struct problems p = { 0 };
	struct agent *a = calloc(1, sizeof(*a));
	char *list = malloc(65536);
	size_t n;

	memset(big, ' ', AGENT_MAX_BYTES + 16);
	memcpy(big, "{}", 2);
	CHECK_EQ(agent_parse(big, AGENT_MAX_BYTES, "x.json", a, &p), 0);
	CHECK_EQ(agent_parse(big, AGENT_MAX_BYTES + 1, "x.json", a, &p), -EBADMSG);
	n = (size_t)snprintf(list, 65536, "{\"installCommands\":[\"x\"");
	for (int i = 0; i < 64; i++)
		n += (size_t)snprintf(list + n, 65536 - n, ",\"x\"");
	(void)snprintf(list + n, 65536 - n, "]}");
	CHECK_EQ(agent_parse(list, strlen(list), "x.json", a, &p), -EBADMSG);
	CHECK_STR(p.v[p.n - 1].code, "limit");
	problems_done(&p);
	(void)agent_free(a);
	free(list);
	free(big);
}

TEST(every_problem_is_told)
{
	struct problems p = { 0 };
	struct agent *a = parse("{\"displayName\":1,\n\"baseImage\":2,\n\"nope\":3}", &p);

	CHECK(!a);
	CHECK_EQ(p.n, 3);
	problems_done(&p);
	a = parse("{\"displayName\":1,\n\"baseImage\":2,\n\"mounts\":3}", &p);
	CHECK(!a);
	CHECK_EQ(p.n, 3);
	problems_done(&p);
}

TEST(builtins)
{
	static const char *const names[] = { "aider", "amp", "claude", "codex", "copilot",
					     "cursor-agent", "gemini", "goose", "opencode", "qwen",
					     "shell" };
	struct problems p = { 0 };

	CHECK_EQ(agent_n_builtins, SB_ARRAY_LEN(names));
	for (size_t i = 0; i < SB_ARRAY_LEN(names); i++) {
		struct agent *a = NULL;
		char *json = NULL;

		CHECK_EQ(agent_load("/nonexistent", names[i], &a, &p), 0);
		CHECK(a && a->builtin && !a->custom && a->health.n > 0 && a->groups.n > 0);
		if (a)
			CHECK_EQ(agent_json(a, &json), 0);
		free(json);
		(void)agent_free(a);
	}
	problems_done(&p);
}

/* ---- the user's folder ---- */

static char top[] = "/tmp/sb-agent-XXXXXX";

static const char *put(const char *name, mode_t mode, const char *text)
{
	static char path[300];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/agents/%s", top, name);
	(void)unlink(path);
	f = fopen(path, "we");
	CHECK(f);
	if (f) {
		(void)fputs(text, f);
		(void)fclose(f);
	}
	CHECK_EQ(chmod(path, mode), 0);
	return path;
}

static void setup(void)
{
	char dir[300];

	if (strstr(top, "XXXXXX"))
		CHECK(mkdtemp(top));
	(void)snprintf(dir, sizeof(dir), "%s/agents", top);
	(void)mkdir(dir, 0700);
}

TEST(over_a_builtin)
{
	struct problems p = { 0 };
	struct agent *a = NULL;

	setup();
	(void)put("claude.json", 0600, "{\n\"allowedHosts\": [\"one.example\"]}");
	CHECK_EQ(agent_load(top, "claude", &a, &p), 0);
	if (a) {
		CHECK(a->builtin && a->custom);
		CHECK_EQ(a->hosts.n, 1); /* whole lists */
		CHECK_STR(a->hosts.v[0].text, "one.example");
		CHECK(strstr(a->hosts.at.file, "/agents/claude.json"));
		CHECK_STR(a->display.text, "Claude Code");
		CHECK_STR(a->display.at.file, "built-in agent claude.json");
		CHECK_STR(a->launch.v[0].text, "claude");
	}
	a = agent_free(a);
	(void)put("claude.json", 0600, "{\"allowedHosts\": 1}");
	CHECK_EQ(agent_load(top, "claude", &a, &p), -EBADMSG);
	CHECK_EQ(p.n, 1);
	CHECK_STR(p.v[0].key, "allowedHosts");
	problems_done(&p);
}

TEST(a_new_one)
{
	struct problems p = { 0 };
	struct agent *a = NULL;

	setup();
	(void)put("mine.json", 0600, old);
	CHECK_EQ(agent_load(top, "mine", &a, &p), 0);
	a = agent_free(a);
	(void)put("mine.json", 0600, "{\"displayName\":\"x\"}");
	CHECK_EQ(agent_load(top, "mine", &a, &p), -EBADMSG);
	CHECK_EQ(p.n, 3); /* baseImage, installCommands, launchCommand */
	CHECK_STR(p.v[0].key, "baseImage");
	CHECK(strstr(p.v[0].file, "/agents/mine.json"));
	problems_done(&p);
	CHECK_EQ(agent_load(top, "nobody", &a, &p), -ENOENT);
	CHECK_EQ(agent_load(top, "../mine", &a, &p), -ENOENT);
	CHECK_EQ(p.n, 0);
}

TEST(files_that_are_none)
{
	struct problems p = { 0 };
	struct agent *a = NULL;
	char path[300];

	setup();
	(void)put("w.json", 0666, old);
	CHECK_EQ(agent_load(top, "w", &a, &p), -EBADMSG);
	CHECK_STR(p.v[0].code, "untrusted");
	problems_done(&p);
	(void)snprintf(path, sizeof(path), "%s/agents/l.json", top);
	(void)unlink(path);
	CHECK_EQ(symlink("mine.json", path), 0);
	CHECK_EQ(agent_load(top, "l", &a, &p), -EBADMSG);
	CHECK_STR(p.v[0].code, "untrusted");
	problems_done(&p);
	(void)snprintf(path, sizeof(path), "%s/agents/f.json", top);
	(void)unlink(path);
	CHECK_EQ(mkfifo(path, 0600), 0);
	CHECK_EQ(agent_load(top, "f", &a, &p), -EBADMSG);
	problems_done(&p);
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/agents/d.json", top);
	(void)mkdir(path, 0700);
	CHECK_EQ(agent_load(top, "d", &a, &p), -EBADMSG);
	problems_done(&p);
	(void)rmdir(path);
}

static int see(void *arg, const char *name, bool ok)
{
	char *text = arg;
	size_t n = strlen(text);

	(void)snprintf(text + n, 1000 - n, "%s%s ", ok ? "" : "!", name);
	return 0;
}

TEST(global_file)
{
	struct problems p = { 0 };
	struct agent_layer l = { 0 };
	struct cfg *c = NULL;
	char *dir = NULL;
	static const char text[] = "{\"dataDir\": \"~/data\",\n\"kernel\": \"/boot/k\",\n"
				   "\"defaultCPUs\": 3,\n\"defaultMemory\": \"5g\",\n"
				   "\"initfsReference\": \"x/y:1\"}\n";
	static const char *const bad[] = {
		"[]", "{\"kernel\": 1}", "{\"kernel\": \"k\"}", "{\"kernel\": \"/a\\\"b\"}",
		"{\"defaultCPUs\": \"4\"}", "{\"defaultMemory\": 4}", "{\"nope\": 1}", "{",
		"{\"dataDir\": \"../x\"}",
	};

	CHECK_EQ(global_parse(text, strlen(text), "/c/config.json", "/home/h", &l, &dir, &p), 0);
	CHECK_STR(dir, "/home/h/data");
	CHECK_EQ(cfg_compile(l.v, l.n, &c, &p), 0);
	CHECK_EQ(cfg_int(c, "resources.cpus", 0), 3);
	CHECK_EQ(cfg_int(c, "resources.memory_mb", 0), 5LL << 30);
	CHECK_STR(cfg_str(c, "runtime.kernel", ""), "/boot/k");
	CHECK_EQ(cfg_get(c, "resources.cpus")->origin.line, 3);
	CHECK_EQ(cfg_get(c, "resources.cpus")->origin.layer, CFG_USER);
	c = cfg_free(c);
	agent_layer_done(&l);
	free(dir);
	for (size_t i = 0; i < SB_ARRAY_LEN(bad); i++) {
		dir = NULL;
		CHECK_EQ(global_parse(bad[i], strlen(bad[i]), "/c/config.json", "/h", &l, &dir, &p),
			 -EBADMSG);
		CHECK(p.n > 0);
		problems_done(&p);
	}
}

TEST(names)
{
	char text[1000] = "";
	char list[600];
	char near[65];

	setup();
	(void)put("mine.json", 0600, old);
	(void)put("a b.json", 0600, old);
	CHECK_EQ(agent_each(top, see, text), 0);
	CHECK(strstr(text, "!a b aider amp claude "));
	CHECK(strstr(text, " mine opencode "));
	agent_names(top, "cluade", list, sizeof(list), near);
	CHECK_STR(near, "claude");
	CHECK(strstr(list, "aider, amp, claude, codex"));
	agent_names(top, "xyzxyz", list, sizeof(list), near);
	CHECK_STR(near, "");
	CHECK(agent_exists(top, "mine") && agent_exists(top, "claude") && !agent_exists(top, "no"));
	CHECK(agent_name_ok("cursor-agent") && agent_name_ok("a") && !agent_name_ok("") &&
	      !agent_name_ok(".a") && !agent_name_ok("-a") && !agent_name_ok("a/b") &&
	      !agent_name_ok("a\n"));
}
