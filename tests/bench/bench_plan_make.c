/*
 * From a file of 1,000 rules (500 commands, 500 names) to a signed plan, by the functions that
 * sendbox itself calls: read and hash the file, parse, check and merge it, compile its policy into a
 * plan, check and write that, sign it. Not in it: the bundle, the kernel and the digests of
 * programs, which do not depend on the rules. One JSON line a figure. Bar: 5 ms.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "cli/cli.h"
#include "cli/conf_load.h"
#include "cli/plan_make.h"
#include "crypto/crypto.h"

#define ROUNDS 41
#define RULES 500

/* What main.c has, for the functions that are linked and not called. */
void cli_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fputc('\n', stderr);
}

void cli_commands(void)
{
}

const char *cli_code_of(int status)
{
	(void)status;
	return "";
}

int cli_command_run(const char *name, int argc, char **argv)
{
	(void)name;
	(void)argc;
	(void)argv;
	return 0;
}

int cli_exit_of(uint32_t fail)
{
	return (int)fail;
}

static void write_file(const char *path)
{
	FILE *f = fopen(path, "we");

	if (!f)
		abort();
	(void)fprintf(f, "runtime: {provider: namespace}\npolicy:\n  commands:\n    default_action: deny\n"
			 "    allowlist:\n");
	for (int i = 0; i < RULES; i++)
		(void)fprintf(f, "      - git subcommand%d --option=* **\n", i);
	(void)fprintf(f, "  network:\n    default_action: deny\n    allowed_domains:\n");
	for (int i = 0; i < RULES; i++)
		(void)fprintf(f, "      - \"*.host%d.example.com:443\"\n", i);
	if (fclose(f) != 0)
		abort();
}

static void stop(const char *what, const struct sb_err *err)
{
	(void)fprintf(stderr, "%s: %s\n", what, err->text);
	exit(1);
}

/* What the bundle and the provider would have said. */
static void complete(struct sb_plan *p)
{
	p->created_unix_s = 1000;
	p->expires_unix_s = 2000;
	p->provider_asked = strdup("namespace");
	p->host_version = strdup("0");
	p->bundle.origin = strdup("local build");
	p->bundle.sequence = 1;
}

static void once(const struct cli_dirs *dirs, const struct run_options *opt, const uint8_t sec[64],
		 double v[3])
{
	struct conf conf = { 0 };
	const struct plan_input in = { .opt = opt, .conf = &conf.loaded, .line = &conf.line };
	struct sb_plan *p = NULL;
	struct sb_err err = { 0 };
	uint8_t sig[64];
	char *bytes = NULL;
	size_t len = 0;
	double t[3] = { bench_now_ns(), 0, 0 };

	if (conf_load(dirs, opt, &conf, &err) < 0)
		stop("load", &err);
	t[1] = bench_now_ns();
	if (plan_policy_make(&in, &dirs->d, &p, &err) < 0)
		stop("compile", &err);
	t[2] = bench_now_ns();
	complete(p);
	if (sb_plan_write(p, &bytes, &len, &err) < 0)
		stop("write", &err);
	sb_sign(bytes, len, sec, sig);
	v[2] = (bench_now_ns() - t[2]) / 1e6;
	v[1] = (t[2] - t[1]) / 1e6;
	v[0] = (t[1] - t[0]) / 1e6;
	free(bytes);
	(void)sb_plan_free(p);
	conf_done(&conf);
}

int main(void)
{
	static const char *const names[] = { "make_load_check", "make_compile", "make_write_sign" };
	static const char none[] = "/nonexistent"; /* sendbox's own folders: not looked at */
	char top[] = "/tmp/sb-bench-XXXXXX";
	char path[64];
	char program[] = "true";
	char *argv[] = { program, NULL };
	struct run_options opt = { .argv = argv, .trust_config = true };
	struct cli_dirs dirs = { .d = { none, none, none, none, none } };
	struct sb_err err = { 0 };
	uint8_t pub[32];
	uint8_t sec[64];
	double v[4][ROUNDS];

	if (!mkdtemp(top) || chdir(top) < 0)
		abort();
	(void)snprintf(path, sizeof(path), "%s/f.yaml", top);
	write_file(path);
	opt.config = path;
	if (sb_crypto_init() < 0)
		stop("start", &err);
	sb_sign_keypair(pub, sec);
	for (size_t i = 0; i < ROUNDS; i++) {
		double one[3];

		once(&dirs, &opt, sec, one);
		v[3][i] = 0;
		for (size_t k = 0; k < 3; k++)
			v[3][i] += v[k][i] = one[k];
	}
	for (size_t k = 0; k < 3; k++)
		bench_report(names[k], "ms", 3, v[k], ROUNDS);
	bench_report("make_1000_rules", "ms", 3, v[3], ROUNDS);
	(void)fflush(stdout);
	(void)execlp("rm", "rm", "-rf", top, (char *)NULL);
	return 1;
}
