/* Layers: what an inner file can and cannot change. */
#include <stdlib.h>

#include "cfgt.h"

/* Two layers, user and project. */
static struct cfg *two(const char *outer, const char *inner, struct problems *p)
{
	const struct cfg_source s[] = {
		{ CFG_USER, "/u/config.yaml", outer, strlen(outer) },
		{ CFG_PROJECT, "/p/.sendbox.yaml", inner, strlen(inner) },
	};
	struct cfg *c = NULL;
	int r = cfg_compile(s, 2, &c, p);

	CHECK(r == 0 || (r == -EBADMSG && p->n > 0));
	return c;
}

/* The effective value as JSON. */
static const char *json_of(const struct cfg *c, const char *path)
{
	static char *text;
	const struct cfg_value *v = cfg_get(c, path);

	free(text);
	text = NULL;
	return v && cfg_value_json(v, &text) == 0 ? text : NULL;
}

struct merging {
	const char *outer;
	const char *inner;
	const char *path;
	const char *want; /* JSON, or NULL: refused */
	const char *told; /* when refused */
};

static void check(const struct merging *m)
{
	struct problems p = { 0 };
	struct cfg *c = two(m->outer, m->inner, &p);

	if (m->want) {
		CHECK_STR(told(&p), "");
		if (c)
			CHECK_STR(json_of(c, m->path), m->want);
	} else {
		CHECK(!c);
		CHECK_STR(told(&p), m->told);
	}
	c = cfg_free(c);
	problems_done(&p);
}

#define NET(x) "policy: {network: {" x "}}\n"
#define CMD(x) "policy: {commands: {" x "}}\n"
#define DENY(x) "{\"action\":\"deny\",\"any_order\":false,\"run\":\"" x "\"}"
#define ALLOW(x) "{\"action\":\"allow\",\"any_order\":false,\"run\":\"" x "\"}"
#define LOCK "locked: true\n"

TEST(deny_lists_only_grow)
{
	static const struct merging all[] = {
		{ NET("blocked_domains: [a.com]"), NET("blocked_domains: [b.com]"),
		  "policy.network.blocked_domains", "[\"a.com\",\"b.com\"]", NULL },
		{ NET("blocked_domains: [a.com]"), NET("blocked_domains: []"),
		  "policy.network.blocked_domains", "[\"a.com\"]", NULL },
		{ LOCK NET("blocked_domains: [a.com]"), NET("blocked_domains: [b.com, a.com]"),
		  "policy.network.blocked_domains", "[\"a.com\",\"b.com\"]", NULL },
		{ NET("blocked_networks: [10.0.0.0/8]"), NET("blocked_networks: [fd00::/8]"),
		  "policy.network.blocked_networks", "[\"10.0.0.0/8\",\"fd00::/8\"]", NULL },
		{ CMD("denylist: [sudo **]"), CMD("denylist: [su]"), "policy.commands.denylist",
		  "[" DENY("sudo **") "," DENY("su") "]", NULL },
		{ CMD("denylist: [sudo **]"), CMD("denylist: []"), "policy.commands.denylist",
		  "[" DENY("sudo **") "]", NULL },
		{ "policy: {boundaries: {syscalls: {additional_denylist: [ptrace]}}}\n",
		  "policy: {boundaries: {syscalls: {additional_denylist: [bpf]}}}\n",
		  "policy.boundaries.syscalls.additional_denylist", "[\"ptrace\",\"bpf\"]", NULL },
		{ "guarded_paths: {hidden: [.env]}\n", "guarded_paths: {hidden: []}\n",
		  "guarded_paths.hidden", "[\".env\"]", NULL },
		{ "guarded_paths: {readonly: [.git/hooks/]}\n", "guarded_paths: {readonly: [./a//b]}\n",
		  "guarded_paths.readonly", "[\".git/hooks\",\"a/b\"]", NULL },
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(all); i++)
		check(&all[i]);
}

TEST(what_only_gets_stricter)
{
#define CHANGED(x) "guarded_paths: {changed: " x "}\n"
#define SNAPS(x) "snapshots: {enabled: " x "}\n"
	static const struct merging all[] = {
		{ "name: x\n", CHANGED("quarantine"), "guarded_paths.changed", "\"quarantine\"", NULL },
		{ CHANGED("keep"), CHANGED("ask"), "guarded_paths.changed", "\"ask\"", NULL },
		{ CHANGED("ask"), CHANGED("ask"), "guarded_paths.changed", "\"ask\"", NULL },
		{ CHANGED("ask"), CHANGED("keep"), NULL, NULL, "1:26 locked guarded_paths.changed" },
		{ CHANGED("quarantine"), CHANGED("ask"), NULL, NULL, "1:26 locked guarded_paths.changed" },
		{ SNAPS("false"), SNAPS("true"), "snapshots.enabled", "true", NULL },
		{ "name: x\n", SNAPS("false"), "snapshots.enabled", "false", NULL },
		{ SNAPS("true"), SNAPS("false"), NULL, NULL, "1:22 locked snapshots.enabled" },
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(all); i++)
		check(&all[i]);
}

TEST(allow_lists)
{
	static const struct merging all[] = {
		{ NET("allowed_domains: [a.com]"), NET("allowed_domains: [b.com]"),
		  "policy.network.allowed_domains", "[\"b.com\",\"a.com\"]", NULL },
		/* a lock leaves a choice */
		{ LOCK NET("allowed_domains: [a.com, b.com]"), NET("allowed_domains: [b.com]"),
		  "policy.network.allowed_domains", "[\"b.com\"]", NULL },
		{ LOCK NET("allowed_domains: [a.com]"), NET("allowed_domains: []"),
		  "policy.network.allowed_domains", "[]", NULL },
		{ LOCK NET("allowed_domains: [a.com]"), "name: x\n", "policy.network.allowed_domains",
		  "[\"a.com\"]", NULL },
		{ LOCK NET("allowed_domains: [a.com]"), NET("allowed_domains: [a.com, c.com]"), NULL, NULL,
		  "1:45 locked policy.network.allowed_domains" },
		/* not around the corner either */
		{ LOCK NET("allowed_domains: [a.com]"), NET("allowed_networks: [8.8.8.8]"), NULL, NULL,
		  "1:39 locked policy.network.allowed_networks" },
		{ LOCK NET("allowed_domains: [a.com]"), NET("host_ports: [5432]"), NULL, NULL,
		  "1:33 locked policy.network.host_ports" },
		{ LOCK NET("allowed_networks: [8.8.8.8]"), NET("allowed_domains: [a.com]"), NULL, NULL,
		  "1:38 locked policy.network.allowed_domains" },
		{ LOCK NET("default_action: deny"), NET("default_action: allow"), NULL, NULL,
		  "1:36 locked policy.network.default_action" },
		{ LOCK NET("default_action: deny"), NET("mode: open"), NULL, NULL,
		  "1:26 locked policy.network.mode" },
		{ LOCK NET("mode: filter"), NET("default_action: allow"), NULL, NULL,
		  "1:36 locked policy.network.default_action" },
		{ LOCK NET("allowed_ports: [{port: 443}]"), NET("allowed_ports: []"), NULL, NULL,
		  "1:35 locked policy.network.allowed_ports" },
		{ LOCK CMD("allowlist: [git **]"), CMD("allowlist: [git **, sh **]"), NULL, NULL,
		  "1:41 locked policy.commands.allowlist" },
		{ LOCK CMD("allowlist: [git **]"), CMD("rules: [{run: sh **, action: allow}]"), NULL, NULL,
		  "1:29 locked policy.commands.rules" },
		{ LOCK CMD("rules: [{run: a, action: deny}, {run: b, action: allow}]"),
		  CMD("rules: [{run: c, action: deny}]"), "policy.commands.rules",
		  "[" DENY("c") "," DENY("a") "]", NULL },
		{ LOCK CMD("rules: [{run: b, action: allow}]"), CMD("allowlist: [b]"),
		  "policy.commands.allowlist", "[" ALLOW("b") "]", NULL },
		{ LOCK "mounts: [/a:/b]\n", "mounts: [/a:/b:rw]\n", NULL, NULL, "1:10 locked mounts" },
		{ LOCK "groups: {g: [a.com]}\n", "groups: {g: [b.com]}\n", NULL, NULL,
		  "1:13 locked groups.g" },
		{ LOCK "groups: {g: [a.com]}\n", "groups: {h: [b.com]}\n", "groups.h", "[\"b.com\"]", NULL },
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(all); i++)
		check(&all[i]);
}

TEST(scalars)
{
	static const struct merging all[] = {
		{ "timeout: 60\n", "timeout: 2m\n", "timeout", "120", NULL },
		{ LOCK "timeout: 60\n", "timeout: 1m\n", "timeout", "60", NULL },
		{ LOCK "timeout: 60\n", "timeout: 61\n", NULL, NULL, "1:10 locked timeout" },
		{ LOCK "timeout: 60\n", "uid: 7\n", "uid", "7", NULL },
		{ LOCK "env: {A: x}\n", "env: {A: y, B: z}\n", NULL, NULL, "1:10 locked env.A" },
		{ LOCK "env: {A: x}\n", "env: {A: null}\n", NULL, NULL, "1:10 locked env.A" },
		{ LOCK "env: {A: x}\n", "env: {B: z}\n", "env", "{\"A\":\"x\",\"B\":\"z\"}", NULL },
		{ LOCK "policy: {profile: strict}\n", "policy: {profile: build}\n", NULL, NULL,
		  "1:19 locked policy.profile" },
		/* two words for one thing: the inner file's counts */
		{ NET("default_action: deny"), NET("mode: open"), "policy.network.default_action",
		  "\"allow\"", NULL },
		{ NET("mode: open"), NET("default_action: deny"), "policy.network.mode", "\"filter\"",
		  NULL },
		{ NET("default_action: allow"), NET("mode: none"), "policy.network.mode", "\"none\"", NULL },
		{ "name: x\n", NET("mode: open, default_action: deny"), NULL, NULL,
		  "1:48 bad_value policy.network.mode" },
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(all); i++)
		check(&all[i]);
}

/* A05, A06: a file in the workspace cannot weaken what an outer file has locked, in any key. */
TEST(a_locked_file_stands)
{
	static const char outer[] =
		LOCK "runtime: {provider: microvm}\nresources: {cpus: 1, memory_mb: 512, pids: 100}\n"
		     "timeout: 60\nuid: 1000\nmounts: []\nenv: {A: x}\n"
		     "guarded_paths: {readonly: [.git], hidden: [.env]}\n"
		     "policy:\n  profile: strict\n"
		     "  commands: {default_action: deny, scope: tree, allowlist: [git **], denylist: [su]}\n"
		     "  network: {default_action: deny, allowed_domains: [a.com], max_connections: 5,\n"
		     "    allowed_ports: [{port: 443}], host_ports: [], proxy_env: false}\n";
	static const char *const tries[] = {
		"runtime: {provider: namespace}\n", "resources: {cpus: 2}\n", "resources: {memory_mb: 4g}\n",
		"resources: {pids: 5000}\n", "timeout: 0\n", "uid: 1\n", "mounts: [/:/host:rw]\n",
		"env: {A: y}\n", "policy: {profile: build}\n", CMD("default_action: allow"),
		CMD("scope: top_level"), CMD("allowlist: ['*']"), CMD("rules: [{run: '*', action: allow}]"),
		CMD("rules: [{run: '*', action: log}]"), NET("default_action: allow"), NET("mode: open"),
		NET("allowed_domains: ['*']"), NET("allowed_networks: [0.0.0.0/0]"),
		NET("max_connections: 6"), NET("allowed_ports: []"), NET("allowed_ports: [{port: 22}]"),
		NET("host_ports: [22]"), NET("proxy_env: true"),
	};
	static const char *const idle[] = { /* refused by nobody, and without effect */
		"locked: false\n", CMD("denylist: []"), "guarded_paths: {readonly: [], hidden: []}\n",
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(tries); i++) {
		struct problems p = { 0 };
		struct cfg *c = two(outer, tries[i], &p);

		if (c || p.n != 1 || strcmp(p.v[0].code, "locked") != 0)
			t_fail(__FILE__, __LINE__, "%s: %s", tries[i], told(&p));
		c = cfg_free(c);
		problems_done(&p);
	}
	for (size_t i = 0; i < SB_ARRAY_LEN(idle); i++) {
		struct problems p = { 0 };
		struct cfg *c = two(outer, idle[i], &p);

		CHECK_STR(told(&p), "");
		if (c) {
			CHECK_STR(json_of(c, "policy.commands.denylist"), "[" DENY("su") "]");
			CHECK_STR(json_of(c, "guarded_paths"),
				  "{\"changed\":\"keep\",\"hidden\":[\".env\"],\"readonly\":[\".git\"]}");
		}
		c = cfg_free(c);
	}
}

/* N33: a list that is empty, or missing, or has become empty, allows nothing. */
TEST(nothing_listed_is_nothing_allowed)
{
	static const char *const texts[] = { "", "policy: {network: {}}\n", NET("allowed_domains: []"),
					     NET("default_action: deny"), "policy: {}\n" };
	struct problems p = { 0 };
	struct cfg *c;

	for (size_t i = 0; i < SB_ARRAY_LEN(texts); i++) {
		c = one(texts[i], &p);
		REQUIRE(c);
		CHECK_STR(cfg_str(c, "policy.network.default_action", NULL), "deny");
		CHECK_STR(json_of(c, "policy.network.allowed_domains"), "[]");
		CHECK_STR(json_of(c, "policy.network.allowed_networks"), "[]");
		CHECK_STR(json_of(c, "policy.network.host_ports"), "[]");
		c = cfg_free(c);
	}
	/* a list whose entries were all taken out is nothing at all: it must say what it means */
	c = one("policy:\n  network:\n    allowed_domains:\n    # - a.com\n", &p);
	CHECK(!c);
	CHECK_STR(told(&p), "3:5 wrong_type policy.network.allowed_domains");
	problems_done(&p);
}

/* N19, N20, N24: hosts and ports that could be read in two ways. */
TEST(host_texts)
{
	static const char *const bad[] = {
		"a b.com",	"a.com;b.com", "a.com#x",     "\\\"a.com",   "a\\\\b.com", "a.com\\t",
		"\\u00a0a.com", "a\\r\\nb.com", "u@a.com",     "a.com:0",    "a.com:65536", "a.com:0443",
		"a.com: 443",	"a.com:443-1", "a.com:4e2",   "a.com:443/tls", "https://a.com/", "a..com",
		"-a.com",	"*a.com",      "a.*.com",     "**.com",	    "1.2.3",	  "0x7f.1",
		"010.0.0.1",	"2130706433",  "1.2.3.4/33",  "10.0.0.1/8", "fe80::1%eth0", "[::1",
		"localhost",	"127.0.0.1",   "169.254.169.254", "0.0.0.0", "224.0.0.1", ".", "",
	};
	static const char *const good[] = {
		"a.com", "*.a.com", "A.COM", "a.com:443", "a.com:443+8443", "a.com:80/http", "10.0.0.0/8",
		"[fd00::/8]", "[2606:4700::1]:443", "*", "npm", "a.com:1-65535", "m\\u00fcller.de", "a.com.",
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(bad) + SB_ARRAY_LEN(good); i++) {
		bool want = i >= SB_ARRAY_LEN(bad);
		const char *host = want ? good[i - SB_ARRAY_LEN(bad)] : bad[i];
		struct problems p = { 0 };
		struct cfg *c;
		char text[200];

		(void)snprintf(text, sizeof(text),
			       "policy:\n  network:\n    allowed_domains:\n      - \"%s\"\n", host);
		c = one(text, &p);
		if ((c != NULL) != want)
			t_fail(__FILE__, __LINE__, "\"%s\": %s", host, p.n ? p.v[0].message : "accepted");
		if (!want)
			CHECK_STR(told(&p), "4:9 bad_value policy.network.allowed_domains[0]");
		c = cfg_free(c);
		problems_done(&p);
	}
}
