#include "options.h"
#include "t.h"

#include <stdlib.h>

static int parse(struct run_options *o, struct sb_err *e, const char *const *argv)
{
	int n = 0;

	while (argv[n])
		n++;
	*e = (struct sb_err){ 0 };
	return run_options_parse(n, (char **)(uintptr_t)argv, o, e);
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
		{ "--image", "ubuntu", "--", "x" },
		{ "--runtime=namespace", "--accel=tcg", "--", "x" },
		{ "--runtime=namespace", "--quota=1g", "--", "x" },
		{ "--quota", "none", "--", "x" },
		{ "--json", "-i", "--", "x" },
		{ "--" },
		{ "--", "" },
		{ "claude" },
		{ "--proj", "/x", "--", "x" }, /* no abbreviations */
		{ NULL },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct run_options o = { .cpus = 77 };
		struct sb_err e;

		CHECK_EQ(parse(&o, &e, bad[i]), -EINVAL);
		CHECK(e.text[0] != '\0');
		CHECK_EQ(o.cpus, 77); /* untouched */
	}
}

TEST(hints)
{
	struct run_options o;
	struct sb_err e;

	CHECK_EQ(parse(&o, &e, ARGV("--memroy", "1", "--", "x")), -EINVAL);
	CHECK_STR(e.text, "unknown option --memroy; did you mean --memory?");
	CHECK_EQ(parse(&o, &e, ARGV("claude")), -EINVAL);
	CHECK(strstr(e.text, "not available yet"));
}
