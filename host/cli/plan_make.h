#ifndef SB_HOST_CLI_PLAN_MAKE_H
#define SB_HOST_CLI_PLAN_MAKE_H
/* From the configuration and the caller's surroundings to a plan. */
#include "core/plan.h"
#include "plan_conf.h"
#include "provider/provider.h"

#define PLAN_START_S 300 /* a session must be up so soon after its plan was made */

/*
 * plan_make - fill a plan, the provider's parts included (its prepare runs)
 * @bundle: verified; the guest is made of it
 * @pub: the host's public key
 * @ret_fail: enum sb_fail of a failure
 *
 * Return: 0; -errno with text in @err.
 */
SB_MUST_CHECK int plan_make(const struct plan_input *in, const struct sb_dirs *dirs,
			    const struct sb_bundle *bundle, const uint8_t pub[32],
			    struct sb_plan **ret, uint32_t *ret_fail, struct sb_err *err);

/* The host's folder of the project; NULL: the working directory is the guest's own. */
const char *plan_project_host(const struct sb_plan *p);

/* The home folder inside, as long as the caller is who he is. Return: 0; -errno. */
SB_MUST_CHECK int plan_guest_home(char *out, size_t cap);

/*
 * plan_policy_make - what the configuration decides, without a runtime, a bundle or a terminal: not
 * complete, so not to be run; for looking at and asking
 */
SB_MUST_CHECK int plan_policy_make(const struct plan_input *in, const struct sb_dirs *dirs,
				   struct sb_plan **ret, struct sb_err *err);

#endif
