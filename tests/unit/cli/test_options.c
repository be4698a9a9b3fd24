#include "options.h"
#include "t.h"

#include <stdlib.h>

/* The options point into @argv, which outlives neither a check nor the next call: into a copy. */
static int parse(struct run_options *o, struct sb_err *e, const char *const *argv)
{
	static const char *kept[64];
	int n = 0;

	for (; argv[n] && n < 63; n++)
		kept[n] = argv[n];
	kept[n] = NULL;
	*e = (struct sb_err){ 0 };
	return run_options_parse(n, (char **)(uintptr_t)kept, o, e);
}
#define ARGV(...) ((const char *const[]){ __VA_ARGS__, NULL })

TEST(all_options)
{
	struct run_options o;
	struct sb_err e;
	static const char *const argv[] = {
		"--project", "/p", "-m", "/a:/b", "--mount=/c:/d:rw", "-eA=1", "-e", "B",
		"--runtime", "microvm", "--accel=tcg", "--image", "host", "-k", "/k", "--cpus", "2",
		"--memory", "512m", "--disk=64m", "--pids", "100", "--timeout", "1.5s", "--keep",
		"--dry-run", "--", "prog", "-x", "--", "y", NULL,
	};

	CHECK_EQ(parse(&o, &e, argv), 0);
	CHECK_STR(o.project, "/p");
	CHECK_EQ(o.n_mounts, 2);
	CHECK_STR(o.mounts[1], "/c:/d:rw");
	CHECK_EQ(o.n_env, 2);
	CHECK_STR(o.env[0], "A=1");
	CHECK_EQ(o.cpus, 2);
	CHECK_EQ(o.memory_bytes, 536870912);
	CHECK_EQ(o.timeout_ms, 1500);
	CHECK(o.keep && o.dry_run && !o.json);
	CHECK_STR(o.argv[0], "prog");
	CHECK_STR(o.argv[2], "--");
	CHECK_STR(o.argv[3], "y");
}

/* The ids of @table below: x = 120, y = 121, v = 118, taken from a word each. */
TEST(letters_in_one_word)
{
	static const struct cli_option table[] = {
		{ "xx", 'x', NULL, "", 120 }, { "yy", 'y', NULL, "", 121 }, { "value", 'v', "V", "", 118 },
	};
	static const struct {
		const char *word;
		int ids[4]; /* -1: refused */
		const char *value;
	} cases[] = {
		{ "-xy", { 120, 121, 0 }, NULL },
		{ "-xyv1", { 120, 121, 118, 0 }, "1" },
		{ "-xyv", { 120, 121, 118, 0 }, "next" },
		{ "-vxy", { 118, 0 }, "xy" },
		{ "-xq", { 120, -1 }, NULL },
		{ "-qx", { -1 }, NULL },
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(cases); i++) {
		const char *argv[] = { cases[i].word, "next", NULL };
		struct sb_err e = { 0 };
		const char *value = NULL;
		const char *last = NULL;
		bool dashes;
		int at = 0;

		for (size_t k = 0; k < 4; k++) {
			int id = cli_options_next(table, SB_ARRAY_LEN(table), 2, (char **)(uintptr_t)argv, &at,
						  &value, &dashes, &e);

			CHECK_EQ(id < 0 ? -1 : id, cases[i].ids[k]);
			if (value)
				last = value;
			if (id <= 0)
				break;
		}
		if (cases[i].value)
			CHECK_STR(last, cases[i].value);
	}
}

TEST(options_behind_operands)
{
	static const struct cli_option table[] = {
		{ "xx", 'x', NULL, "", 120 }, { "value", 'v', "V", "", 118 }, { "opt", 'o', "[=V]", "", 111 },
	};
	static const char *const cases[][2][8] = {
		{ { "a", "-x", "b" }, { "-x", "a", "b" } },
		{ { "a", "--value", "1", "b", "-x" }, { "--value", "1", "-x", "a", "b" } },
		{ { "a", "--value=1", "b", "-v2", "c" }, { "--value=1", "-v2", "a", "b", "c" } },
		{ { "a", "-xv", "1", "--opt", "b" }, { "-xv", "1", "--opt", "a", "b" } },
		{ { "a", "-x", "--", "-v", "b" }, { "-x", "a", "--", "-v", "b" } },
		{ { "a", "-v" }, { "-v", "a" } }, /* the value is missing: the parser's to say, or what follows */
		{ { "-", "-x" }, { "-x", "-" } },
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(cases); i++) {
		char *argv[8] = { NULL };
		int n = 0;

		for (; cases[i][0][n]; n++)
			argv[n] = (char *)(uintptr_t)cases[i][0][n];
		cli_options_first(table, SB_ARRAY_LEN(table), n, argv);
		for (int k = 0; k < n; k++)
			CHECK_STR(argv[k], cases[i][1][k]);
	}
}

TEST(refusals)
{
	static const char *const bad[][6] = {
		{ "--memroy", "1", "--", "x" },
		{ "--cpus", "0", "--", "x" },
		{ "--cpus", "1x", "--", "x" },
		{ "--cpus", "-1", "--", "x" },
		{ "--memory", "lots", "--", "x" },
		{ "--timeout", "0", "--", "x" },
		{ "--keep=yes", "--", "x" },
		{ "--project" },
		{ "--runtime", "docker", "--", "x" },
		{ "--runtime", "kata", "--", "x" },
		{ "--accel", "xen", "--", "x" },
		{ "--runtime=namespace", "--accel=tcg", "--", "x" },
		{ "--runtime=namespace", "--quota=1g", "--", "x" },
		{ "--quota", "none", "--", "x" },
		{ "--json", "-i", "--", "x" },
		{ "--no-network", "--allow-hosts=a.test", "--", "x" },
		{ "--proxy-env", "--no-network", "--", "x" },
		{ "--no-network", "--no-network-filter", "--", "x" },
		{ "--no-network", "--net-idle=0", "--", "x" },
		{ "--allow-host-port", "0", "--", "x" },
		{ "--allow-host-port", "65536", "--", "x" },
		{ "--net-connections", "0", "--", "x" },
		{ "--net-connections", "4097", "--", "x" },
		{ "--net-idle", "never", "--", "x" },
		{ "--net-bytes", "0", "--", "x" },
		{ "--" },
		{ "--", "" },
		{ "--reinstall", "--", "x" },
		{ "--no-agent-mounts", "--", "x" },
		{ "--proj", "/x", "--", "x" }, /* no abbreviations */
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct run_options o = { .cpus = 77 };
		struct sb_err e;

		CHECK_EQ(parse(&o, &e, bad[i]), -EINVAL);
		CHECK(e.text[0] != '\0');
		CHECK_EQ(o.cpus, 77); /* untouched */
	}
}

TEST(network)
{
	struct run_options o;
	struct sb_err e;
	static const char *const argv[] = {
		"-a", "a.test,b.test:8080", "--allow-hosts=npm", "--deny-hosts", "c.test",
		"--allow-host-port", "5432", "--net-idle", "0", "--net-bytes", "1g", "--dns-types",
		"TXT,MX", "--dns-queries", "0", "--proxy-env", "--", "x", NULL,
	};

	CHECK_EQ(parse(&o, &e, ARGV("--", "x")), 0);
	CHECK_EQ(o.net_connections, 512);
	CHECK_EQ(o.net_idle_ms, 1800000);
	CHECK_EQ(o.dns_queries, 3000);
	CHECK_EQ(o.dns_new_names, 100);
	CHECK(!o.net_option);
	CHECK_EQ(parse(&o, &e, argv), 0);
	CHECK_EQ(o.n_allow, 2);
	CHECK_STR(o.allow[0], "a.test,b.test:8080");
	CHECK_STR(o.deny[0], "c.test");
	CHECK_EQ(o.host_ports[0], 5432);
	CHECK_EQ(o.net_idle_ms, 0);
	CHECK_EQ(o.net_bytes, 1073741824);
	CHECK_EQ(o.dns_queries, 0);
	CHECK(o.proxy_env && !o.no_network && !o.no_filter);
	CHECK_EQ(parse(&o, &e, ARGV("--deny-hosts=a", "--no-network", "--", "x")), -EINVAL);
	CHECK_STR(e.text, "--no-network and --deny-hosts exclude each other");
}

TEST(hints)
{
	struct run_options o;
	struct sb_err e;

	CHECK_EQ(parse(&o, &e, ARGV("--memroy", "1", "--", "x")), -EINVAL);
	CHECK_STR(e.text, "unknown option --memroy; did you mean --memory?");
	CHECK_EQ(parse(&o, &e, ARGV("--allow-hosts", "--", "x")), -EINVAL);
	CHECK_STR(e.text, "option --allow-hosts needs a value: LIST");
	CHECK_EQ(parse(&o, &e, ARGV("--allow-host-port", "localhost:5432", "--", "x")), -EINVAL);
	CHECK_STR(e.text, "--allow-host-port \"localhost:5432\": must be the number of one port, as "
			  "5432; give the option again for another");
}

TEST(ssh_agent)
{
	struct run_options o;
	struct sb_err e;

	/* the value follows "=": the next word is none */
	REQUIRE(parse(&o, &e, ARGV("--ssh-agent", "--", "x")) == 0);
	CHECK(run_options_given(&o, "ssh-agent"));
	CHECK_EQ(o.n_ssh_keys, 0);
	CHECK_STR(o.argv[0], "x");
	REQUIRE(parse(&o, &e, ARGV("--ssh-agent=work", "--ssh-agent=two", "--", "x")) == 0);
	REQUIRE(o.n_ssh_keys == 2);
	CHECK_STR(o.ssh_keys[0], "work");
	CHECK_STR(o.ssh_keys[1], "two");
	REQUIRE(parse(&o, &e, ARGV("--", "x")) == 0);
	CHECK(!run_options_given(&o, "ssh-agent"));
}

TEST(agents)
{
	struct run_options o;
	struct sb_err e;

	CHECK_EQ(parse(&o, &e, ARGV("--rm", "-w", "/x", "claude", "-p", "--rm", "--", "hi")), 0);
	CHECK_STR(o.agent, "claude");
	CHECK_STR(o.project, "/x");
	CHECK(run_options_given(&o, "project"));
	CHECK(o.rm);
	CHECK_STR(o.argv[0], "-p"); /* everything behind the name is the agent's */
	CHECK_STR(o.argv[1], "--rm");
	CHECK_STR(o.argv[2], "--");
	CHECK_EQ(parse(&o, &e, ARGV("claude", "--", "-p", "--")), 0);
	CHECK_STR(o.argv[0], "-p"); /* but for a "--" right behind it */
	CHECK_STR(o.argv[1], "--");
	CHECK_EQ(parse(&o, &e, ARGV("--", "claude")), 0);
	CHECK(!o.agent); /* a program of that name */
	CHECK_STR(o.argv[0], "claude");
	CHECK_EQ(parse(&o, &e, ARGV("--rm")), 0);
	CHECK_STR(o.agent, ""); /* the configured one */
}
