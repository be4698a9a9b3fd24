/* Whatever parses is canonical, and what it does leaves a plan that passes its check, or nothing. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/net_policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int add(void *arg, const struct sb_net_rule *r)
{
	return sb_net_rule_add(arg, r);
}

static void apply(const struct sb_net_amend *a)
{
	static const char *const rules[] = { "a.example", "*.b.example:22", "10.0.0.0/8" };
	struct sb_plan_net n = { .mode = SB_NET_FILTER, .max_connections = 1 };
	size_t before;
	int r;

	for (size_t i = 0; i < SB_ARRAY_LEN(rules); i++)
		if (sb_net_rule_parse(rules[i], strlen(rules[i]), false, "", add, &n, NULL) < 0)
			abort();
	before = n.n_rules;
	r = sb_net_amend_apply(a, &n, NULL);
	if (sb_plan_net_check(&n, NULL) < 0 || (r < 0 && n.n_rules != before) ||
	    (r == 0 && n.n_rules > before + a->n_allow))
		abort();
	for (size_t i = 0; r == 0 && i < a->n_allow; i++) {
		before = n.n_rules;
		if (sb_net_rule_add(&n, &a->allow[i]) < 0 || n.n_rules != before)
			abort(); /* it is there already */
	}
	sb_plan_net_done(&n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sb_net_amend a = { .seq = 1234 };
	struct sb_err err = { 0 };
	char *again = NULL;
	size_t len = 0;

	if (sb_net_amend_parse((const char *)data, size, &a, &err) < 0) {
		if (a.seq != 1234 || a.allow || a.remove)
			abort();
		return 0;
	}
	if (sb_net_amend_write(&a, &again, &len) < 0 || len != size ||
	    memcmp(again, data, size) != 0)
		abort();
	free(again);
	apply(&a);
	sb_net_amend_done(&a);
	return 0;
}
