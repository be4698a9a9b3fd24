/*
 * A plan with 1,000 network rules: writing and signing it (the host, once), and verifying and
 * parsing it (host and guest, at each start). One JSON line a figure, medians of ROUNDS.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "conn/plan_fd.h"
#include "core/net_policy.h"

#define ROUNDS 101
#define RULES 1000

static double now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static char *text(const char *s)
{
	char *p = strdup(s);

	if (!p)
		abort();
	return p;
}

static struct sb_plan *plan(size_t rules)
{
	struct sb_plan *p = calloc(1, sizeof(*p));
	char host[64];

	if (!p)
		abort();
	p->created_unix_s = 1000;
	p->expires_unix_s = 2000;
	p->provider = SB_PROVIDER_NAMESPACE;
	p->provider_reason = text("asked for");
	p->provider_asked = text("namespace");
	p->host_version = text("0.4");
	p->bundle.origin = text("local build");
	p->bundle.sequence = 1;
	p->profile = SB_PROFILE_DEFAULT;
	p->commands.fallback = SB_CMD_ALLOW;
	memset(&p->rlimits, 0xff, sizeof(p->rlimits)); /* SB_PLAN_NO_LIMIT */
	p->image = SB_IMAGE_HOST;
	p->upper.kind = SB_UPPER_TMPFS;
	p->task = SB_TASK_COMMAND;
	p->argv = calloc(2, sizeof(char *));
	if (!p->argv)
		abort();
	p->argv[0] = text("/bin/true");
	p->cwd = text("/");
	p->uid = p->gid = p->owner_uid = p->owner_gid = 1000;
	p->user = text("user");
	p->home = text("/home/user");
	p->hostname = text("sendbox");
	p->cpus = 1;
	p->disk_bytes = 64U << 20;
	p->pids_max = 512;
	p->nofile = 1024;
	p->net.mode = SB_NET_FILTER;
	p->net.max_connections = 64;
	for (size_t i = 0; i < rules; i++) {
		struct sb_net_rule r = { false, host, 443, 443, SB_PROTO_HTTPS,
					 (char *)(uintptr_t) "/p/.sendbox.yaml:12" };

		(void)snprintf(host, sizeof(host), "package%zu.example.com", i);
		if (sb_net_rule_add(&p->net, &r) < 0)
			abort();
	}
	return p;
}

static void measure(size_t rules, const char *write_name, const char *verify_name)
{
	struct sb_plan *p = plan(rules);
	struct sb_err err = { 0 };
	double write[ROUNDS];
	double verify[ROUNDS];
	uint8_t pub[SB_SIGN_PUBLIC_LEN];
	uint8_t sec[SB_SIGN_SECRET_LEN];
	uint8_t sig[SB_SIGN_LEN];

	sb_sign_keypair(pub, sec);
	for (int i = 0; i < ROUNDS; i++) {
		const struct sb_plan_expect x = { sig, pub, p->session, 1500 };
		struct sb_plan *got = NULL;
		char *bytes = NULL;
		size_t len = 0;
		double from = now_us();

		if (sb_plan_write(p, &bytes, &len, &err) < 0) {
			(void)fprintf(stderr, "%s\n", err.text);
			exit(1);
		}
		sb_sign(bytes, len, sec, sig);
		write[i] = now_us() - from;
		from = now_us();
		if (sb_plan_verify(bytes, len, &x, &got, &err) < 0) {
			(void)fprintf(stderr, "%s\n", err.text);
			exit(1);
		}
		verify[i] = now_us() - from;
		(void)sb_plan_free(got);
		free(bytes);
	}
	bench_report(write_name, "us", 1, write, ROUNDS);
	bench_report(verify_name, "us", 1, verify, ROUNDS);
	(void)sb_plan_free(p);
}

int main(void)
{
	if (sb_crypto_init() < 0)
		return 1;
	measure(0, "plan_write_sign", "plan_verify_parse");
	measure(RULES, "plan_write_sign_1000", "plan_verify_parse_1000");
	return 0;
}
