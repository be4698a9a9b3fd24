#ifndef SB_HOST_CLI_PLAN_NET_H
#define SB_HOST_CLI_PLAN_NET_H
/* The network part of a plan: rules and groups, the host's resolvers, its hosts file. */
#include "core/plan.h"
#include "plan_conf.h"

/* What the configuration makes of the network; none is the strictest. */
enum sb_net_mode plan_net_mode(const struct plan_input *in);

/* Return: 0; -EINVAL and others with text in @err. @p: its mounts are there already. */
SB_MUST_CHECK int plan_net_make(const struct plan_input *in, struct sb_plan *p,
				struct sb_err *err);

/* What the rules of one list share. */
struct plan_net_env {
	const struct cfg_value *groups; /* of the configuration; NULL = none */
	const struct plan_input *in;    /* for messages about them; NULL without groups */
	const char *project;            /* the shared folder, for groups; NULL = none */
	const char *const *writable;    /* NULL-terminated: what the session can write */
	const char *ports; /* of rules that name none: "443+8443"; NULL = as the rules say */
	bool lenient; /* a group of the machine that cannot be resolved is told, and allows nothing */
};
/* Append what one rule or group stands for. @from: for people, "--allow-hosts" or "FILE:LINE" */
SB_MUST_CHECK int plan_net_rule(const char *item, size_t len, bool deny, const char *from,
				const struct plan_net_env *env, struct sb_plan_net *n,
				struct sb_err *err);
/* The same for a comma list, without a configuration. */
SB_MUST_CHECK int plan_net_rules(const char *list, bool deny, const char *from,
				 const char *project, const char *const *writable,
				 struct sb_plan_net *n, struct sb_err *err);
/* Resolvers and hosts file of this machine; without @names none. The rules are there already. */
SB_MUST_CHECK int plan_net_resolve(struct sb_plan_net *n, bool names, struct sb_err *err);

/* Whether a group stands for something on this machine; the project's own files do not count. */
bool plan_net_group_here(const char *word, const char *project);

/* The caller's mirror in place of the default of "npm" or "pypi", see groups_mirror. What cannot be
 * understood is none: the group itself is refused for it. @ret: malloc'd, or NULL. */
SB_MUST_CHECK int plan_net_mirror(const char *word, char **ret);

/* Whether an interface of this machine has the address. */
bool plan_net_is_own(const struct sb_addr *a);

#endif
