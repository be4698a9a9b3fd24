#include "cfg_options.h"
#include "presets.h"
#include "t.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The options as a layer, compiled: what the table of keys makes of them. */
static int make(const char *const *argv, struct run_options *o, struct cfg_options *line,
		struct cfg **cfg, struct problems *p)
{
	struct sb_err err = { 0 };
	struct cfg_source src = { .layer = CFG_COMMAND_LINE, .file = CFG_OPTIONS_FILE };
	int n = 0;
	int r;

	while (argv[n])
		n++;
	r = run_options_parse(n, (char **)(uintptr_t)argv, o, &err);
	if (r == 0)
		r = cfg_options_make(o, line, &err);
	if (r < 0)
		return r;
	src.bytes = line->text;
	src.len = line->len;
	r = cfg_compile(&src, 1, cfg, p);
	cfg_options_blame(line, p);
	return r;
}

TEST(every_option_becomes_a_value)
{
	static const char *const argv[] = {
		"--project", "/p", "-m", "/a:/b:rw", "-e", "A=x y", "-e", "B", "-e", "A=z\"\\",
		"--runtime", "microvm", "--accel", "tcg", "--image", "dir:/i", "-k", "/k", "--cpus", "3",
		"--memory", "1.5g", "--disk", "64m", "--pids", "77", "--quota", "1000b",
		"--quota-files", "9", "--timeout", "1.5s", "--allow-hosts", "a.test, *.b.test:8443",
		"--deny-hosts", "c.test", "--allow-host-port", "5432", "--proxy-env", "--strict-cname",
		"--allow-ech", "--dns-types", "txt,MX", "--dns-queries", "0", "--dns-new-names", "5",
		"--net-connections", "6", "--net-idle", "0", "--net-bytes", "7b", "--net-host-bytes", "2m",
		"--profile", "strict", "--", "prog", NULL,
	};
	struct run_options o;
	struct cfg_options line = { 0 };
	struct problems p = { 0 };
	struct cfg *c = NULL;
	char where[100];

	CHECK_EQ(make(argv, &o, &line, &c, &p), 0);
	CHECK_EQ(p.n, 0);
	CHECK_STR(cfg_str(c, "project_path", ""), "/p");
	CHECK_STR(cfg_str(c, "runtime.provider", ""), "microvm");
	CHECK_STR(cfg_str(c, "runtime.accel", ""), "tcg");
	CHECK_STR(cfg_str(c, "runtime.image", ""), "dir:/i");
	CHECK_STR(cfg_str(c, "runtime.kernel", ""), "/k");
	CHECK_EQ(cfg_int(c, "resources.cpus", 0), 3);
	CHECK_EQ(cfg_int(c, "resources.memory_mb", 0), 1610612736);
	CHECK_EQ(cfg_int(c, "resources.disk_size_mb", 0), 67108864);
	CHECK_EQ(cfg_int(c, "resources.pids", 0), 77);
	CHECK_EQ(cfg_int(c, "resources.quota_mb", 0), 1000);
	CHECK_EQ(cfg_int(c, "resources.quota_files", 0), 9);
	CHECK_EQ(cfg_int(c, "timeout", 0), 1500);
	CHECK_STR(cfg_item(c, "policy.network.allowed_domains", 0)->text, "a.test");
	CHECK_STR(cfg_item(c, "policy.network.allowed_domains", 1)->text, "*.b.test:8443");
	CHECK_STR(cfg_item(c, "policy.network.blocked_domains", 0)->text, "c.test");
	CHECK_EQ(cfg_item(c, "policy.network.host_ports", 0)->integer, 5432);
	CHECK(cfg_bool(c, "policy.network.proxy_env", false));
	CHECK(cfg_bool(c, "policy.network.strict_cname", false));
	CHECK(cfg_bool(c, "policy.network.allow_ech", false));
	CHECK_STR(cfg_item(c, "policy.network.dns.allowed_record_types", 2)->text, "TXT");
	CHECK_EQ(cfg_int(c, "policy.network.dns.queries_per_minute", 1), 0);
	CHECK_EQ(cfg_int(c, "policy.network.dns.new_names_per_minute", 1), 5);
	CHECK_EQ(cfg_int(c, "policy.network.max_connections", 1), 6);
	CHECK_EQ(cfg_int(c, "policy.network.idle_timeout", 1), 0);
	CHECK_EQ(cfg_int(c, "policy.network.session_mb", 1), 7);
	CHECK_EQ(cfg_int(c, "policy.network.host_mb", 1), 2097152);
	CHECK_STR(cfg_str(c, "policy.profile", ""), "strict");
	CHECK_STR(cfg_member(cfg_get(c, "env"), "A")->text, "z\"\\"); /* the last one counts */
	CHECK_EQ(cfg_member(cfg_get(c, "env"), "B")->kind, DOC_NULL);
	cfg_options_where(&line, cfg_get(c, "resources.memory_mb"), where, sizeof(where));
	CHECK_STR(where, "--memory");
	cfg_options_where(&line, cfg_item(c, "policy.network.allowed_domains", 1), where,
			  sizeof(where));
	CHECK_STR(where, "--allow-hosts");
	CHECK_STR(cfg_options_raw(&line, cfg_item(c, "mounts", 0)), "/a:/b:rw");
	(void)cfg_free(c);
	cfg_options_done(&line);
	problems_done(&p);
}

TEST(bytes_that_no_file_can_hold_are_kept)
{
	static const char *const argv[] = { "-e", "A=\xff\x01\xc2\x80\xef\xbb\xbf", "--project", "/p\xfe",
					    "--", "x", NULL };
	struct run_options o;
	struct cfg_options line = { 0 };
	struct problems p = { 0 };
	struct cfg *c = NULL;

	CHECK_EQ(make(argv, &o, &line, &c, &p), 0);
	CHECK_STR(cfg_options_raw(&line, cfg_member(cfg_get(c, "env"), "A")),
		  "\xff\x01\xc2\x80\xef\xbb\xbf");
	CHECK_STR(cfg_options_raw(&line, cfg_get(c, "project_path")), "/p\xfe");
	(void)cfg_free(c);
	cfg_options_done(&line);
	problems_done(&p);
}

TEST(problems_name_the_option)
{
	static const char *const argv[] = { "--mount", "nowhere", "--", "x", NULL };
	static const char *const empty[] = { "--allow-hosts", "a.test,,b.test", "--", "x", NULL };
	struct run_options o;
	struct cfg_options line = { 0 };
	struct problems p = { 0 };
	struct cfg *c = NULL;

	CHECK_EQ(make(argv, &o, &line, &c, &p), -EBADMSG);
	CHECK_EQ(p.n, 1);
	CHECK_STR(p.v[0].file, "--mount");
	CHECK_EQ(p.v[0].line, 0);
	cfg_options_done(&line);
	CHECK_EQ(make(empty, &o, &line, &c, &p), -EINVAL);
	problems_done(&p);
}

TEST(nothing_given_is_nothing_said)
{
	static const char *const argv[] = { "--", "x", NULL };
	struct run_options o;
	struct cfg_options line = { 0 };
	struct problems p = { 0 };
	struct cfg *c = NULL;

	CHECK_EQ(make(argv, &o, &line, &c, &p), 0);
	CHECK_EQ(cfg_get(c, "policy.network.max_connections")->origin.layer, CFG_DEFAULT);
	CHECK(!cfg_get(c, "project_path"));
	(void)cfg_free(c);
	cfg_options_done(&line);
	problems_done(&p);
}

/* ---- presets ---- */

static bool none(void *arg, const char *group)
{
	(void)arg;
	return strcmp(group, "github") == 0;
}

TEST(presets_load)
{
	static const char *const policies[] = { "default", "permissive", "strict" };
	static const char *const names[] = { "plain", "with \"quotes\" and \\", "\xc3\xa4 \x01" };

	for (size_t i = 0; i < 3; i++) {
		for (size_t k = 0; k < 3; k++) {
			struct problems p = { 0 };
			struct cfg_source src = { .layer = CFG_PROJECT, .file = "/p/.sendbox.yaml" };
			char *text = NULL;
			struct cfg *c = NULL;
			size_t len = 0;

			CHECK_EQ(preset_write(policies[i], names[k], "namespace", k == 1 ? none : NULL,
					      NULL, &text, &len), 0);
			src.bytes = text;
			src.len = len;
			CHECK_EQ(cfg_compile(&src, 1, &c, &p), 0);
			CHECK_EQ(p.n, 0);
			CHECK_STR(cfg_str(c, "runtime.provider", ""), "namespace");
			CHECK(cfg_item(c, "policy_tests", 0) != NULL);
			CHECK_STR(cfg_str(c, "policy.network.default_action", ""),
				  i == 1 ? "allow" : "deny");
			(void)cfg_free(c);
			problems_done(&p);
			free(text);
		}
	}
	{
		char *text = NULL;
		size_t len = 0;

		CHECK_EQ(preset_write("lenient", "x", NULL, NULL, NULL, &text, &len), -ENOENT);
	}
}
