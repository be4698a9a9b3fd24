#ifndef SB_GUEST_EXEC_EXPORT_H
#define SB_GUEST_EXEC_EXPORT_H
/*
 * Task EXPORT: what a session left in its upper layer, as a tar with OCI whiteouts. Nothing of the layer
 * is run, and no link in it is followed.
 */
#include "core/plan.h"

/*
 * sb_export_run - write the archive
 * @plan: its image tells which files of /etc are sendbox's own
 * @upper: folder that holds `over` and `usr` (see guest/rootfs/overlay.c)
 * @out: gets the archive; a pipe or a file, blocking
 * Return: 0; -errno with a line for people in @err.
 */
SB_MUST_CHECK int sb_export_run(const struct sb_plan *plan, int upper, int out, struct sb_err *err);

#endif
