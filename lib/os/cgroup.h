#ifndef SB_OS_CGROUP_H
#define SB_OS_CGROUP_H
/*
 * Limits by control groups on the host, for a session that shares its kernel.
 *
 * Works with version 2 (as root, or beneath a subtree that systemd delegated to the caller), with
 * version 1 mounts, and with a mixture: each limit is placed in the hierarchy that has its
 * controller. Directories are called "sendbox-<name>" and made beneath the caller's own group (or
 * its nearest ancestor that can pass the controller on). A limit that cannot be enforced is an
 * error; nothing is left out silently.
 *
 * Single-threaded; nothing global.
 */
#include <sys/types.h>

#include "base/err.h"

struct sb_cgroup;

enum sb_cgroup_controller {
	SB_CGROUP_CPU = 0,
	SB_CGROUP_MEMORY = 1,
	SB_CGROUP_PIDS = 2,
	SB_CGROUP_N = 3,
};

struct sb_cgroup_limits { /* 0 = no limit asked */
	uint32_t cpus;         /* whole processors */
	uint64_t memory_bytes; /* without swap */
	uint32_t pids_max;
};

struct sb_cgroup_probe {
	struct {
		bool usable;
		const char *name; /* static: "cpu", "memory", "pids" */
		char where[200];  /* directory in which groups would be made; "" when not usable */
		char remedy[200]; /* what to do; "" when usable */
	} controller[SB_CGROUP_N];
};

/* Look; changes nothing except that a version 2 controller may be switched on for children. */
void sb_cgroup_probe(struct sb_cgroup_probe *ret);

/*
 * sb_cgroup_new - make the groups and set the limits
 * @name: [A-Za-z0-9-], 1 to 64 bytes
 * @ret:  caller frees with sb_cgroup_free (which removes nothing)
 * No limit at all makes an object without directories, for which everything below is a no-op.
 * Return: 0; -EOPNOTSUPP with the remedy as text; -EEXIST; -EINVAL; -ENOMEM; -errno.
 */
SB_MUST_CHECK int sb_cgroup_new(const char *name, const struct sb_cgroup_limits *limits,
				struct sb_cgroup **ret, struct sb_err *err);
struct sb_cgroup *sb_cgroup_free(struct sb_cgroup *cg);

/* Move process @pid (all its threads) in; its later children are born there. Return: 0; -errno. */
SB_MUST_CHECK int sb_cgroup_add(const struct sb_cgroup *cg, pid_t pid);
/* SIGKILL to all in it until nobody is left. Blocks: up to 5 s. Return: 0; -EBUSY; -errno. */
SB_MUST_CHECK int sb_cgroup_kill(const struct sb_cgroup *cg);
/* Remove the directories. Blocks: up to 5 s for the dying. Return: 0; -EBUSY; -errno. */
SB_MUST_CHECK int sb_cgroup_remove(const struct sb_cgroup *cg);
/* Whether the OOM killer killed in it. */
bool sb_cgroup_oom(const struct sb_cgroup *cg);

/*
 * sb_cgroup_describe - one directory a line, for a record that survives this process
 * @ret: malloc'd, NUL-terminated, may be ""; caller frees
 * Return: 0; -ENOMEM.
 */
SB_MUST_CHECK int sb_cgroup_describe(const struct sb_cgroup *cg, char **ret);
/*
 * sb_cgroup_gc - kill and remove what such a record names
 * A line that does not name a "sendbox-" directory on a cgroup file system is refused; what is
 * gone already is fine. Return: 0; -EINVAL; -EBUSY; -errno of the first failure, after the rest.
 */
SB_MUST_CHECK int sb_cgroup_gc(const char *text);

#endif
