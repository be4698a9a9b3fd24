#ifndef SB_PROVIDER_PROVIDER_H
#define SB_PROVIDER_PROVIDER_H
/*
 * What starts a guest. A provider is a const table; a plan that needs something a provider lacks
 * is refused before anything starts, and nothing falls back to another provider.
 *
 * probe and prepare run in the command line program, before the plan is signed; start, stop and
 * destroy run in the monitor, which knows the plan alone.
 */
#include <sys/types.h>

#include "core/plan.h"
#include "provider/bundle_open.h"

/* Directories, absolute, borrowed, made by the caller with mode 0700. */
struct sb_dirs {
	const char *config;
	const char *state;
	const char *cache;
	const char *run;
	const char *libexec; /* helper programs: sendbox-monitor, sendbox-channel, ... */
};

/* One line of `sendbox doctor`. */
enum sb_check_state { SB_CHECK_FAIL = 0, SB_CHECK_WARN = 1, SB_CHECK_OK = 2 };
struct sb_check {
	const char *name;        /* static */
	enum sb_check_state state;
	char found[200];         /* what is there */
	char remedy[300];        /* the exact command or step that makes it ready; "" when OK */
};
#define SB_CHECKS_MAX 32
struct sb_probe {
	bool ready;
	struct sb_check checks[SB_CHECKS_MAX];
	size_t n_checks;
};
void sb_probe_add(struct sb_probe *p, const char *name, enum sb_check_state state,
		  const char *remedy, const char *fmt, ...) SB_PRINTF(5, 6);
/* Landlock is a wall of every runtime: of the workload, and of the host's helpers. */
void sb_probe_landlock(struct sb_probe *p);
/* Whether this kernel can hold a command policy for the whole process tree; a warning if not. */
void sb_probe_exec_policy(struct sb_probe *p);

struct sb_start {
	const struct sb_plan *plan;
	const struct sb_dirs *dirs;
	int session_dir;          /* open directory of this session, mode 0700 */
	const char *session_path; /* its absolute path */
	int carrier;              /* guest's end of the channel (a socket); borrowed */
	int net_front;            /* namespace: front socket of the net gate; -1 = no network; borrowed */
	int ssh_front;            /* namespace: the same of the SSH relay; -1 = none */
	/* guest's ends of the file servers: [0] the image (namespace: the layers), [i + 1] mounts[i];
	 * -1 = not served (see
	 * sb_plan_served); borrowed */
	const int *fs_socks;
	size_t n_fs_socks;
	const uint8_t *public_key; /* 32 bytes; namespace: told to the guest by descriptor */
	int guest_exe;            /* namespace: sendbox-guest of the verified bundle; borrowed */
	int console;              /* for the guest's own messages (append); borrowed */
};
struct sb_guest {
	pid_t pid; /* the process whose end is the guest's end */
	int pidfd; /* owned */
	void *priv;
};

struct sb_provider {
	const char *name;
	enum sb_provider_id id;
	bool is_vm;
	/* Everything this host needs to run it. @opts: the half-filled plan (accel, kernel...) */
	void (*probe)(const struct sb_dirs *dirs, enum sb_accel accel, const char *kernel,
		      struct sb_probe *ret);
	/* Build or find cached parts and put their identity into the plan.
	 * @kernel: path given by the user or NULL. @bundle: verified; what the guest is made of,
	 * read by its descriptors. @pub: host key to be built into the guest. */
	int (*prepare)(const struct sb_dirs *dirs, const char *kernel,
		       const struct sb_bundle *bundle, const uint8_t pub[32],
		       struct sb_plan *plan, struct sb_err *err);
	int (*start)(const struct sb_start *in, struct sb_guest *ret, struct sb_err *err);
	/* Whether the host's kernel killed a process of the guest for memory. May be NULL. */
	bool (*oom)(const struct sb_guest *g);
	/* Kill at once; then wait() on the pid is the caller's. */
	void (*stop)(struct sb_guest *g);
	/* After the guest is reaped: remove what start made (cgroups, files). Appends to @err. */
	int (*destroy)(struct sb_guest *g, struct sb_err *err);
	/* Clear what a dead monitor left behind for the session in @session_dir (gc). */
	int (*gc)(const struct sb_dirs *dirs, int session_dir, struct sb_err *err);
};

extern const struct sb_provider sb_provider_microvm;
extern const struct sb_provider sb_provider_namespace;
const struct sb_provider *sb_provider_get(enum sb_provider_id id);

#endif
