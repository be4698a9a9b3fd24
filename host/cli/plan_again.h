#ifndef SB_HOST_CLI_PLAN_AGAIN_H
#define SB_HOST_CLI_PLAN_AGAIN_H
/* `run --plan`: a reviewed plan is run as it is, or refused. */
#include "core/plan.h"
#include "options.h"
#include "provider/bundle_open.h"
#include "provider/provider.h"

/*
 * plan_again - make the plan of @o->plan anew for this host and this moment
 * @ret: the decisions of the reviewed plan with a new session, new times, and the identities that
 * its folders have here; it carries the reviewed plan's digest
 * @ret_fail: enum sb_fail of a failure
 *
 * Order: form, key and its time, signature, rules, time, floor. Then everything that this host
 * decides (kernel, programs, guest, owner of the files, mechanisms) is made anew and compared;
 * what differs is told and refused. Values of the environment are not in a plan: each is taken
 * from --env, from what the plan implies, or from the caller, and must have the plan's digest.
 * Return: 0; -errno with text in @err.
 */
SB_MUST_CHECK int plan_again(const struct run_options *o, const struct sb_dirs *dirs,
			     const struct sb_bundle *bundle, const uint8_t pub[32],
			     struct sb_plan **ret, uint32_t *ret_fail, struct sb_err *err);

#endif
