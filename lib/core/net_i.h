#ifndef SB_CORE_NET_I_H
#define SB_CORE_NET_I_H
/* Shared by net_rule.c, net_policy.c and net_amend.c. */
#include "core/net_policy.h"

enum sb_net_host_kind {
	SB_NET_HOST_NAME_EXACT = 1,
	SB_NET_HOST_SUFFIX, /* *.suffix */
	SB_NET_HOST_ANY,    /* * */
	SB_NET_HOST_CIDR,   /* address or network */
};
struct sb_net_host {
	enum sb_net_host_kind kind;
	char text[SB_NAME_MAX + 3]; /* canonical */
	struct sb_cidr cidr;        /* SB_NET_HOST_CIDR */
};
/* The host of a rule, without brackets. Return: 0; -EINVAL. */
SB_MUST_CHECK int sb_net_host_parse(const char *s, size_t len, struct sb_net_host *ret);

/*
 * What to write in place of @text, which is no rule: a sentence without an end. @out is set when it
 * is true; @deny: of a deny rule.
 */
bool sb_net_rule_hint(const char *text, size_t len, bool deny, char *out, size_t cap);

/* One rule: canonical and in range. Return: 0; -EINVAL with text. */
SB_MUST_CHECK int sb_net_rule_check(const struct sb_net_rule *r, struct sb_err *err);
/* Same host, ports and sense; @proto: and protocol. */
bool sb_net_rule_same(const struct sb_net_rule *a, const struct sb_net_rule *b, bool proto);
/* Copy into a zeroed slot. Return: 0; -ENOMEM. */
SB_MUST_CHECK int sb_net_rule_copy(const struct sb_net_rule *from, struct sb_net_rule *to);
void sb_net_rule_done(struct sb_net_rule *r);

#endif
