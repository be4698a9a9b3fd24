#ifndef SB_HOST_CLI_PLAN_FEATURES_H
#define SB_HOST_CLI_PLAN_FEATURES_H
#include "core/plan.h"

/*
 * plan_features - fill p->features from the rest of the plan, which must be complete
 * Return: 0; -ENOMEM; -EINVAL: there were some already.
 */
SB_MUST_CHECK int plan_features(struct sb_plan *p);

#endif
