/* Loading, checking and reading a configuration. */
#include "cfgt.h"

TEST(nothing_asks_for_nothing)
{
	struct problems p = { 0 };
	struct cfg *c = one("", &p);

	REQUIRE(c);
	CHECK_STR(cfg_str(c, "policy.network.default_action", NULL), "deny");
	CHECK(cfg_item(c, "policy.network.allowed_domains", 0) == NULL);
	CHECK(cfg_get(c, "policy.commands.default_action") == NULL);
	CHECK_STR(cfg_str(c, "policy.profile", NULL), "default");
	CHECK(cfg_get(c, "github") == NULL);
	CHECK_EQ(cfg_int(c, "policy.network.idle_timeout", 0), 1800000);
	c = cfg_free(c);
}

TEST(values_and_units)
{
	struct problems p = { 0 };
	struct cfg *c = one("schema_version: 1\n"
			    "project_path: src\n"
			    "resources: {cpus: 3, memory_mb: 512, disk_size_mb: 1.5g, quota_mb: 10b}\n"
			    "timeout: 90\n"
			    "policy: {network: {idle_timeout: 0, session_mb: 2m}}\n"
			    "mounts: [../a:/b//c/:rw, {host: /x, guest: /y}]\n"
			    "env: {A: '1', B: null}\n",
			    &p);
	const struct cfg_value *v;
	char where[100];

	REQUIRE(c);
	CHECK_STR(cfg_str(c, "project_path", NULL), "/p/src");
	CHECK_EQ(cfg_int(c, "resources.cpus", 0), 3);
	CHECK_EQ(cfg_int(c, "resources.memory_mb", 0), 536870912);
	CHECK_EQ(cfg_int(c, "resources.disk_size_mb", 0), 1610612736);
	CHECK_EQ(cfg_int(c, "resources.quota_mb", 0), 10);
	CHECK_EQ(cfg_int(c, "timeout", 0), 90000);
	CHECK_EQ(cfg_int(c, "policy.network.idle_timeout", -1), 0);
	CHECK_EQ(cfg_int(c, "policy.network.session_mb", 0), 2097152);
	CHECK_STR(cfg_str(c, "mounts[0].host", NULL), "/p/../a");
	CHECK_STR(cfg_str(c, "mounts[0].guest", NULL), "/b/c");
	CHECK_STR(cfg_str(c, "mounts[0].mode", NULL), "rw");
	CHECK_STR(cfg_str(c, "mounts[1].mode", NULL), "ro");
	CHECK_STR(cfg_str(c, "env.A", NULL), "1");
	v = cfg_get(c, "env.B");
	CHECK(v && v->kind == DOC_NULL);
	v = cfg_get(c, "mounts[1]");
	REQUIRE(v);
	cfg_where(v, where, sizeof(where));
	CHECK_STR(where, "/p/.sendbox.yaml:6");
	c = cfg_free(c);
}

TEST(commands_are_maps)
{
	struct problems p = { 0 };
	struct cfg *c = one("policy:\n"
			    "  commands:\n"
			    "    default_action: deny\n"
			    "    allowlist: [git **, {run: make, any_order: true, action: log}]\n"
			    "    denylist: [sudo **]\n"
			    "    rules:\n"
			    "    - {run: npm publish **, action: deny, reason: not from here}\n",
			    &p);

	REQUIRE(c);
	CHECK_STR(cfg_str(c, "policy.commands.allowlist[0].run", NULL), "git **");
	CHECK_STR(cfg_str(c, "policy.commands.allowlist[0].action", NULL), "allow");
	CHECK(!cfg_bool(c, "policy.commands.allowlist[0].any_order", true));
	CHECK_STR(cfg_str(c, "policy.commands.allowlist[1].action", NULL), "log");
	CHECK(cfg_bool(c, "policy.commands.allowlist[1].any_order", false));
	CHECK_STR(cfg_str(c, "policy.commands.denylist[0].action", NULL), "deny");
	CHECK_STR(cfg_str(c, "policy.commands.rules[0].reason", NULL), "not from here");
	c = cfg_free(c);
}

TEST(all_problems_at_once)
{
	struct problems p = { 0 };
	struct cfg *c = one("nmae: x\n"
			    "resources:\n"
			    "  cpus: 0\n"
			    "  memory_mb: [1]\n"
			    "  cpus: 3\n"
			    "policy:\n"
			    "  commands:\n"
			    "    default_action: denny\n"
			    "    rules: [{action: allow}]\n"
			    "  network:\n"
			    "    allow_dns: yes\n"
			    "    allowed_domains: ['exa mple.com', &x 127.0.0.1]\n"
			    "github: {forward_auth: true}\n"
			    "allowed_domains: []\n",
			    &p);

	CHECK(!c);
	CHECK_STR(told(&p), "1:1 unknown_key nmae\n"
			    "3:9 bad_value resources.cpus\n"
			    "4:14 wrong_type resources.memory_mb\n"
			    "5:3 duplicate_key cpus\n"
			    "8:21 bad_value policy.commands.default_action\n"
			    "9:13 missing_key policy.commands.rules[0]\n"
			    "11:16 wrong_type policy.network.allow_dns\n"
			    "12:23 bad_value policy.network.allowed_domains[0]\n"
			    "12:39 syntax\n"
			    "12:42 bad_value policy.network.allowed_domains[1]\n"
			    "13:24 not_available github.forward_auth\n"
			    "14:1 unknown_key allowed_domains");
	CHECK_STR(P(0)->near, "name");
	CHECK_STR(P(0)->excerpt, "nmae: x");
	CHECK_STR(P(4)->near, "deny");
	CHECK_STR(P(11)->near, "policy.network.allowed_domains");
	problems_done(&p);
}

TEST(layers)
{
	static const char user[] = "policy: {network: {default_action: deny, blocked_domains: [a.com]}}\n"
				   "timeout: 60\nenv: {A: x, B: y}\n";
	static const char project[] = "policy:\n  network:\n    allowed_domains: [b.com]\n"
				      "    blocked_domains: [c.com]\nenv: {B: z}\n";
	static const char option[] = "{\"timeout\": \"5m\"}";
	const struct cfg_source s[] = { { CFG_USER, "/u/config.yaml", user, sizeof(user) - 1 },
					{ CFG_PROJECT, "/p/.sendbox.yaml", project, sizeof(project) - 1 },
					{ CFG_COMMAND_LINE, "--timeout", option, sizeof(option) - 1 } };
	static const struct {
		const char *path;
		const char *where;
	} want[] = {
		{ "timeout", "--timeout" },
		{ "policy.network.default_action", "/u/config.yaml:1" },
		{ "policy.network.blocked_domains[0]", "/u/config.yaml:1" },
		{ "policy.network.blocked_domains[1]", "/p/.sendbox.yaml:4" },
		{ "policy.network.allowed_domains[0]", "/p/.sendbox.yaml:3" },
		{ "env.A", "/u/config.yaml:3" },
		{ "env.B", "/p/.sendbox.yaml:5" },
		{ "policy.profile", "default" },
	};
	struct problems p = { 0 };
	struct cfg *c = NULL;
	char where[100];

	CHECK_EQ(cfg_compile(s, 3, &c, &p), 0);
	CHECK_STR(told(&p), "");
	REQUIRE(c);
	CHECK_EQ(cfg_int(c, "timeout", 0), 300000);
	for (size_t i = 0; i < SB_ARRAY_LEN(want); i++) {
		const struct cfg_value *v = cfg_get(c, want[i].path);

		CHECK(v);
		if (!v)
			continue;
		cfg_where(v, where, sizeof(where));
		CHECK_STR(where, want[i].where);
	}
	c = cfg_free(c);
}
