/*
 * Time of one decision with 10,000 rules, and of the class of an address. One JSON line a figure:
 * medians of ROUNDS rounds over a few thousand different questions in random order, so that the
 * tables do not sit in the nearest cache by luck of repetition. Bars: 300 ns a name, 50 ns a class.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "core/net_policy.h"

#define ROUNDS 21
#define RULES 10000
#define ASKED 4096

static char names[ASKED][64];
static struct sb_addr addrs[ASKED];
static int add(void *arg, const struct sb_net_rule *r)
{
	return sb_net_rule_add(arg, r);
}

/* Half exact names, half wildcards, one in ten of each denied, and a few networks. */
static struct sb_netpol *policy(void)
{
	struct sb_plan_net n = { .mode = SB_NET_FILTER, .max_connections = 1 };
	struct sb_netpol *p = NULL;
	struct sb_err e = { 0 };
	char text[80];

	for (unsigned int i = 0; i < RULES; i++) {
		(void)snprintf(text, sizeof(text), "%spackage%u.registry%u.example.com:443",
			       i % 2 ? "*." : "", i, i % 97);
		if (sb_net_rule_parse(text, strlen(text), i % 20 > 17, "bench", add, &n, &e) < 0)
			abort();
	}
	for (unsigned int i = 0; i < 16; i++) {
		(void)snprintf(text, sizeof(text), "10.%u.0.0/%u", 16 * i, 12 + i % 4);
		if (sb_net_rule_parse(text, strlen(text), false, "bench", add, &n, &e) < 0)
			abort();
	}
	if (sb_netpol_new(&n, &p, &e) < 0)
		abort();
	sb_plan_net_done(&n);
	return p;
}

/* @odd: 1 = beneath a wildcard, 0 = exact; @salt: makes a name that no rule has. */
static void fill(unsigned int odd, const char *prefix, const char *salt)
{
	for (unsigned int i = 0; i < ASKED; i++) {
		unsigned int k = bench_rnd(RULES / 2) * 2 + odd;

		(void)snprintf(names[i], sizeof(names[i]), "%spackage%u%s.registry%u.example.com",
			       prefix, k, salt, k % 97);
	}
}

static void name_bench(const struct sb_netpol *p, const char *label, uint16_t port)
{
	double v[ROUNDS];
	size_t allowed = 0;

	for (size_t r = 0; r < ROUNDS; r++) {
		double from = bench_now_ns();

		for (size_t i = 0; i < ASKED; i++) {
			struct sb_net_verdict verdict;

			sb_netpol_name(p, names[i], port, &verdict);
			allowed += verdict.allow;
		}
		v[r] = (bench_now_ns() - from) / ASKED;
	}
	if (allowed > (size_t)ROUNDS * ASKED)
		abort();
	bench_report(label, "ns", 1, v, ROUNDS);
}

static void addr_bench(const struct sb_netpol *p)
{
	double class[ROUNDS];
	double whole[ROUNDS];
	size_t sum = 0;

	for (size_t i = 0; i < ASKED; i++) {
		for (size_t k = 0; k < 16; k++)
			addrs[i].b[k] = (uint8_t)bench_rnd(256);
		if (i % 4) { /* most are IPv4 */
			uint8_t v4[4];

			memcpy(v4, addrs[i].b, sizeof(v4));
			sb_addr_from_v4(v4, &addrs[i]);
		} else {
			addrs[i].b[0] = 0x20 | (addrs[i].b[0] & 0x0f);
		}
	}
	for (size_t r = 0; r < ROUNDS; r++) {
		double from = bench_now_ns();

		for (size_t i = 0; i < ASKED; i++)
			sum += (size_t)sb_addr_classify(&addrs[i]);
		class[r] = (bench_now_ns() - from) / ASKED;
		from = bench_now_ns();
		for (size_t i = 0; i < ASKED; i++) {
			struct sb_net_verdict verdict;

			sb_netpol_resolved(p, &addrs[i], 443, &verdict);
			sum += verdict.allow;
		}
		whole[r] = (bench_now_ns() - from) / ASKED;
	}
	if (sum == 0)
		abort();
	bench_report("address_class", "ns", 1, class, ROUNDS);
	bench_report("policy_address", "ns", 1, whole, ROUNDS);
}

int main(void)
{
	struct sb_netpol *p = policy();

	fill(0, "", "");
	name_bench(p, "policy_name_exact", 443);
	fill(1, "cdn.eu.", "");
	name_bench(p, "policy_name_wildcard", 443);
	fill(0, "", "x");
	name_bench(p, "policy_name_miss", 443);
	fill(0, "", "");
	name_bench(p, "policy_name_any_port", 0);
	addr_bench(p);
	(void)sb_netpol_free(p);
	return 0;
}
