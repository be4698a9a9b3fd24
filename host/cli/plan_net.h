#ifndef SB_HOST_CLI_PLAN_NET_H
#define SB_HOST_CLI_PLAN_NET_H
/* The network part of a plan: rules from options and groups, the host's resolvers, its hosts file. */
#include "core/plan.h"
#include "options.h"

/* Return: 0; -EINVAL and others with text in @err. @p: its mounts are there already. */
SB_MUST_CHECK int plan_net_make(const struct run_options *o, struct sb_plan *p,
				struct sb_err *err);

/*
 * plan_net_rules - rules of one list: LIST as in --allow-hosts, groups included
 * @from: for people, "--allow-hosts"
 * @project: the shared folder, for groups; NULL = none
 */
SB_MUST_CHECK int plan_net_rules(const char *list, bool deny, const char *from,
				 const char *project, const char *const *writable,
				 struct sb_plan_net *n, struct sb_err *err);

/* Whether an interface of this machine has the address. */
bool plan_net_is_own(const struct sb_addr *a);

#endif
