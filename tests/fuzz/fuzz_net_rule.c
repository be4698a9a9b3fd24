/*
 * Texts of people and programs: rules, names, addresses, networks. Whatever is accepted has one
 * canonical spelling that is accepted again, and what a rule stands for may stand in a plan.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/net_policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int same(void *arg, const struct sb_net_rule *r)
{
	const struct sb_net_rule *want = arg;

	if (strcmp(r->host, want->host) != 0 || r->port_lo != want->port_lo ||
	    r->port_hi != want->port_hi || r->proto != want->proto || r->deny != want->deny)
		abort();
	return 0;
}

static int each(void *arg, const struct sb_net_rule *r)
{
	struct sb_plan_net n = { .mode = SB_NET_FILTER, .max_connections = 1, .n_rules = 1 };
	struct sb_net_rule copy = *r;
	char text[SB_NET_RULE_TEXT];
	const char *again = text;

	(void)arg;
	n.rules = &copy;
	if (sb_plan_net_check(&n, NULL) < 0)
		abort();
	sb_net_rule_text(r, text, sizeof(text));
	if (r->deny)
		again += strlen("deny ");
	if (strlen(text) + 1 >= sizeof(text) ||
	    sb_net_rule_parse(again, strlen(again), r->deny, "", same, &copy, NULL) < 0)
		abort();
	return 0;
}

static void name(const char *s, size_t len)
{
	char out[SB_NAME_MAX + 1];
	char again[SB_NAME_MAX + 1];
	struct sb_addr a;

	if (sb_name_normalise(s, len, out) < 0)
		return;
	if (sb_name_normalise(out, strlen(out), again) < 0 || strcmp(out, again) != 0)
		abort();
	if (sb_addr_parse(out, strlen(out), &a) == 0) /* nothing is both */
		abort();
}

static void address(const char *s, size_t len)
{
	char text[SB_CIDR_TEXT];
	struct sb_addr a;
	struct sb_addr b;
	struct sb_cidr c;
	struct sb_cidr d;

	if (sb_addr_parse(s, len, &a) == 0) {
		sb_addr_format(&a, text);
		if (sb_addr_parse(text, strlen(text), &b) < 0 || memcmp(&a, &b, sizeof(a)) != 0 ||
		    sb_addr_classify(&a) == SB_ADDR_NONE)
			abort();
	}
	if (sb_cidr_parse(s, len, &c) == 0) {
		sb_cidr_format(&c, text);
		if (sb_cidr_parse(text, strlen(text), &d) < 0 || d.bits != c.bits ||
		    memcmp(&c.addr, &d.addr, sizeof(c.addr)) != 0 ||
		    (c.bits >= 96 && !sb_cidr_has(&c, &c.addr)))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *s = (const char *)data;
	struct sb_addr raw;
	struct sb_err err = { 0 };

	if (sb_net_rule_parse(s, size, false, "", each, NULL, &err) < 0 && !err.text[0])
		abort();
	err = (struct sb_err){ 0 };
	if (sb_net_rule_parse(s, size, true, "", each, NULL, &err) < 0 && !err.text[0])
		abort();
	name(s, size);
	address(s, size);
	if (size >= sizeof(raw.b)) {
		char text[SB_ADDR_TEXT];

		memcpy(raw.b, data, sizeof(raw.b));
		sb_addr_format(&raw, text);
		address(text, strlen(text));
		if (strcmp(sb_addr_class_name(sb_addr_classify(&raw)), "none") == 0)
			abort();
	}
	return 0;
}
