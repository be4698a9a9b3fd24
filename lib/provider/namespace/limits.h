#ifndef SB_PROVIDER_NAMESPACE_LIMITS_H
#define SB_PROVIDER_NAMESPACE_LIMITS_H
/*
 * Limits of a session by control groups, version 2 or 1, whichever hierarchy of this host has the
 * controller. One group for each hierarchy that is needed, named after the session; their paths
 * are written to `cgroups` in the session directory before they exist, so that gc finds them.
 */
#include "provider/provider.h"

#define SB_NS_GROUPS 3 /* memory, pids, cpu */

struct sb_ns_groups {
	char *dirs[SB_NS_GROUPS]; /* owned absolute paths */
	size_t n;
};

/* What a plan asks for; 0 = not asked. */
struct sb_ns_limits {
	uint64_t memory_bytes;
	uint32_t pids;
	uint32_t cpus;
};

/*
 * sb_ns_limits_set - make the groups, set the limits, put process @pid into them
 * @session_dir: for the record; @name: of the groups, one component
 * Nothing is made when nothing is asked. Return: 0; -errno with cause and remedy in @err, nothing
 * left behind.
 */
SB_MUST_CHECK int sb_ns_limits_set(const struct sb_ns_limits *l, int session_dir, const char *name,
				   pid_t pid, struct sb_ns_groups *ret, struct sb_err *err);
/* Remove the groups; their processes are dead or dying. Return: 0; -errno (text appended). */
SB_MUST_CHECK int sb_ns_groups_remove(struct sb_ns_groups *g, struct sb_err *err);
/* Kill what is left in the groups recorded in @session_dir and remove them. */
SB_MUST_CHECK int sb_ns_groups_gc(int session_dir, struct sb_err *err);

/* Which of memory, pids, cpu can be limited here, as text for people; true = all three. */
bool sb_ns_limits_probe(char *ret, size_t cap);

/*
 * sb_ns_cgroup_find - where a group for @controller can be made
 * @mountinfo, @self: text of /proc/self/mountinfo and /proc/self/cgroup
 * @ret: path, absolute; @ret_v2: which version
 * Return: 0; -ENOENT.
 */
SB_MUST_CHECK int sb_ns_cgroup_find(const char *mountinfo, const char *self, const char *controller,
				    bool root, char *ret, size_t cap, bool *ret_v2);

#endif
