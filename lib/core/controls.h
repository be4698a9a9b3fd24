#ifndef SB_CORE_CONTROLS_H
#define SB_CORE_CONTROLS_H
/*
 * The controls that a plan asks for and the guest reports in READY: what must be in force before a
 * command starts. The report is text, one "name=value" a line; docs/protocol/channel.md lists the
 * names. Pure: the guest writes what it read back, the host compares.
 */
#include "core/plan.h"

#define SB_CONTROLS_MAX_TEXT 16384U /* of a report */

/* What the comparison needs of a plan, so that the host's end can let go of the plan. */
/*
 * What a builder has, as bits of its permitted, effective and bounding sets: to own, to give away and to
 * become (chown 0, dac_override 1, fowner 3, fsetid 4, kill 5, setgid 6, setuid 7, net_bind_service 10,
 * audit_write 29, setfcap 31). Nothing of devices, mounts, raw sockets, tracing, or the kernel.
 */
#define SB_BUILDER_CAPS                                                                            \
	((UINT64_C(1) << 0) | (UINT64_C(1) << 1) | (UINT64_C(1) << 3) | (UINT64_C(1) << 4) |       \
	 (UINT64_C(1) << 5) | (UINT64_C(1) << 6) | (UINT64_C(1) << 7) | (UINT64_C(1) << 10) |      \
	 (UINT64_C(1) << 29) | (UINT64_C(1) << 31))

struct sb_controls {
	enum sb_profile profile;
	bool vm;
	bool builder;
	bool test_root;  /* nothing is confined and nothing compared */
	bool log_blocked;
	uint32_t uid;
	uint32_t gid;
	uint32_t pids_max;
	uint64_t nofile;
	struct sb_plan_rlimits rlimits;
	size_t n_guards;
	char *denied; /* "name,name", owned; "" when nothing is denied beyond the profile */
};

/* @ret: release with sb_controls_done. Return: 0; -ENOMEM. */
SB_MUST_CHECK int sb_controls_of(const struct sb_plan *plan, struct sb_controls *ret);
void sb_controls_done(struct sb_controls *c);

/*
 * sb_controls_check - compare a report with what was asked for
 * @text: @len bytes of the guest, hostile
 * Names that are not compared are ignored; a name may come once.
 * Return: 0; -EBADMSG (no report at all: malformed); -ENOTSUP: a control is missing or different,
 * named in @err with what was asked and what is in force.
 */
SB_MUST_CHECK int sb_controls_check(const struct sb_controls *want, const char *text, size_t len,
				    struct sb_err *err);

/* Calls that every session of @profile must refuse when the guest tries them; static, "a,b,c". */
const char *sb_controls_refused(enum sb_profile profile);

#endif
