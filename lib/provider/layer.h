#ifndef SB_PROVIDER_LAYER_H
#define SB_PROVIDER_LAYER_H
/* The files that a plan's root file system is laid on, opened by whoever hands them on: a file that
 * is not the one of the plan is refused. */
#include "core/plan.h"

/*
 * sb_layer_open - the layer's file, read-only
 * Compares device, inode, size and change time with the plan; the content was hashed when these
 * were taken (`sendbox cache verify` does it again).
 * Return: 0 with a descriptor; -ESTALE: another file, or changed since; -errno. Text in @err.
 */
SB_MUST_CHECK int sb_layer_open(const struct sb_plan_layer *l, int *ret, struct sb_err *err);

/*
 * sb_upper_open - what the plan's upper layer lies in: SB_UPPER_DISK the file, read-write,
 * SB_UPPER_DIR the directory
 * Return: 0; -ESTALE: another one; -errno. Text in @err.
 */
SB_MUST_CHECK int sb_upper_open(const struct sb_plan_upper *u, int *ret, struct sb_err *err);

#endif
