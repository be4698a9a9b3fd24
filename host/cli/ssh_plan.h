#ifndef SB_HOST_CLI_SSH_PLAN_H
#define SB_HOST_CLI_SSH_PLAN_H
/* The plan's "ssh": which keys of the caller's agent, for which hosts. */
#include "core/plan.h"
#include "plan_conf.h"

/* Nothing unless it is asked for. Return: 0; -errno with text. */
SB_MUST_CHECK int plan_set_ssh(struct sb_plan *p, const struct plan_input *in, struct sb_err *err);
/* The socket of the caller's agent (O_PATH). @ret: owned. Return: 0; -errno with text. */
SB_MUST_CHECK int ssh_agent_open(int *ret, struct sb_err *err);

/* ssh_known.c: add every key that known_hosts has of @host ("NAME" or "NAME:PORT"). */
SB_MUST_CHECK int ssh_known_host(const char *host, struct sb_plan_ssh *p, struct sb_err *err);
/* Where it belongs; a key that is there already is none the less 0. */
SB_MUST_CHECK int ssh_plan_add_host(struct sb_plan_ssh *p, const char *name,
				    const uint8_t sha256[32], struct sb_err *err);

#endif
