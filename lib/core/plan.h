#ifndef SB_CORE_PLAN_H
#define SB_CORE_PLAN_H
/*
 * The plan: the immutable, signed statement of what one session may do.
 *
 * Compiled once by the command line, signed with the host's Ed25519 key, and verified again by
 * every process that acts on it, the guest included. Canonical form: compact JSON, keys sorted,
 * no unknown and no missing key; parsing writes the result again and compares the bytes.
 * Strings that are not valid UTF-8 (argv, environment, paths) are {"b64": "..."} objects.
 *
 * struct sb_plan owns everything it points to; sb_plan_free releases it.
 */
#include "base/err.h"
#include "core/cmd_policy.h"
#include "core/net_policy.h"
#include "core/ssh_policy.h"

#define SB_PLAN_VERSION 3
#define SB_PLAN_MAX_BYTES (4U << 20)
#define SB_PLAN_MAX_ARGS 4096
#define SB_PLAN_MAX_ARG_BYTES (1U << 20) /* argv and environment together */
#define SB_PLAN_MAX_MOUNTS 24            /* one virtio-serial port each; a bus has 31 */
#define SB_PLAN_MAX_PATH 4095

enum sb_provider_id {
	SB_PROVIDER_NONE = 0,
	SB_PROVIDER_MICROVM = 1,
	SB_PROVIDER_NAMESPACE = 2,
};
enum sb_accel {
	SB_ACCEL_NONE = 0, /* not a virtual machine */
	SB_ACCEL_KVM = 1,
	SB_ACCEL_TCG = 2,
};
enum sb_image_kind {
	SB_IMAGE_NONE = 0,
	SB_IMAGE_HOST = 1, /* the host's /usr read-only with a synthetic /etc */
	SB_IMAGE_DIR = 2,  /* a directory that holds a root filesystem, read-only, + upper */
	SB_IMAGE_LAYERS = 3, /* nothing but the plan's layers */
};
enum sb_upper_kind { /* where the workload's changes to the root file system go */
	SB_UPPER_NONE = 0,
	SB_UPPER_TMPFS = 1, /* guest memory (namespace: host memory), gone with the session */
	SB_UPPER_DISK = 2,  /* microvm: a raw file with ext4, made empty by the host and never
			     * read by it again */
	SB_UPPER_DIR = 3,   /* namespace: a directory that belongs to this instance alone */
};
enum sb_task {
	SB_TASK_NONE = 0,
	SB_TASK_COMMAND = 1, /* run argv */
	SB_TASK_EXPORT = 2,  /* write the upper layer to stdout as a tar with OCI whiteouts, by the
			      * guest's own code; nothing of the upper layer runs */
};
enum sb_mount_mode {
	SB_MOUNT_NONE = 0,
	SB_MOUNT_RO = 1,
	SB_MOUNT_RW = 2,
};

enum sb_profile {
	SB_PROFILE_NONE = 0,
	SB_PROFILE_STRICT = 1,  /* for programs that only read and compute */
	SB_PROFILE_DEFAULT = 2, /* for agents and their tools */
	SB_PROFILE_BUILD = 3,   /* for compilers, test runners, debuggers */
};
enum sb_guard_mode {
	SB_GUARD_NONE = 0,
	SB_GUARD_READONLY = 1, /* may be read; not written, made, renamed or removed */
	SB_GUARD_HIDDEN = 2,   /* is not there, and cannot be made */
	SB_GUARD_GIT = 3,      /* git's configuration: may be replaced by itself and harmless additions */
};
enum sb_decision {
	SB_DECISION_NOT_ASKED = 0,
	SB_DECISION_ENFORCED = 1,
	SB_DECISION_REJECTED = 2,
};

#define SB_PLAN_MAX_PARTS 64
#define SB_PLAN_MAX_GUARDS 256
#define SB_PLAN_MAX_FEATURES 64
#define SB_PLAN_MAX_SYSCALLS 128
#define SB_PLAN_MAX_REJECTED 16
#define SB_PLAN_MAX_SECRETS 64
#define SB_PLAN_NO_LIMIT UINT64_MAX

struct sb_plan_part { /* a file of the host that decides something, by content */
	char *role;   /* unique: "config:project", "executable:monitor", "bundle:manifest", ... */
	char *path;   /* absolute */
	uint8_t sha256[32];
};
struct sb_plan_env {
	char *name;
	uint8_t sha256[32]; /* of the value's bytes */
	char *value; /* not part of the plan's bytes: travels beside it; NULL until filled in */
};
struct sb_plan_guard {
	char *path; /* absolute in the guest, inside a read-write mount; need not exist */
	enum sb_guard_mode mode;
};
struct sb_plan_rlimits { /* SB_PLAN_NO_LIMIT = as the profile has it */
	uint64_t fsize;  /* bytes */
	uint64_t as;     /* bytes */
	uint64_t data;   /* bytes */
	uint64_t stack;  /* bytes */
	uint64_t cpu;    /* seconds */
	uint64_t memlock; /* bytes */
};
struct sb_plan_feature {
	char *name;
	enum sb_decision decision;
	char *mechanism; /* for people; "" when not asked for */
};
struct sb_plan_bundle { /* what the guest is made of */
	char *origin;               /* "local build" or the release's name */
	uint64_t sequence;          /* release sequence, > 0 */
	uint8_t manifest_sha256[32];
	uint8_t key[32];            /* public key that signed it */
};

#define SB_PLAN_MAX_LAYERS 8
#define SB_PLAN_MAX_INSTANCE 64
struct sb_plan_layer { /* a read-only erofs file that sendbox made, by content */
	char *path; /* absolute, in the cache; never written again */
	uint8_t sha256[32]; /* of the file, taken when it was made */
	/* What it was when the digest was taken; whoever opens it compares these four and refuses
	 * the session otherwise, which takes no time; `sendbox cache verify` hashes again. */
	uint64_t dev;
	uint64_t ino;
	uint64_t size;
	uint64_t ctime_ns;
};
struct sb_plan_upper {
	enum sb_upper_kind kind;
	char *path; /* DISK, DIR: absolute on the host; else NULL */
	uint64_t dev;
	uint64_t ino;
};

struct sb_plan_mount {
	char *host;  /* canonical absolute path on the host */
	char *guest; /* absolute, normalised, no symlink meaning */
	enum sb_mount_mode mode;
	bool file; /* a single file, not a directory */
	uint64_t dev; /* identity of the host object when the plan was made */
	uint64_t ino;
	uint64_t quota_bytes;  /* 0 = none */
	uint64_t quota_inodes; /* 0 = none */
};

struct sb_plan {
	uint8_t session[16];
	uint64_t created_unix_s;
	uint64_t expires_unix_s; /* the guest must be ready before; a running command may go on */

	enum sb_provider_id provider;
	enum sb_accel accel;
	char *provider_reason; /* why this provider, for people */
	char *provider_asked;  /* "auto", "microvm", "namespace" */
	char **rejected;       /* NULL-terminated "NAME: why": providers that were passed over */
	char *host_version;    /* of sendbox */

	/* what the plan was compiled from */
	struct sb_plan_part *parts; /* sorted by role */
	size_t n_parts;
	struct sb_plan_bundle bundle;
	uint8_t config_sha256[32];   /* of the effective configuration's canonical JSON */
	uint8_t reviewed_sha256[32]; /* of the plan given by --plan; zero = none */

	enum sb_image_kind image;
	char *image_path;           /* SB_IMAGE_DIR only, else NULL */
	uint64_t image_dev;
	uint64_t image_ino;
	/* Over the image, or alone with IMAGE_LAYERS (then at least one): [0] is the lowest. */
	struct sb_plan_layer *layers;
	size_t n_layers;
	struct sb_plan_upper upper;
	char *instance; /* name of the instance, or NULL */
	enum sb_task task;

	char *kernel_release;       /* microvm only, else NULL */
	uint8_t kernel_sha256[32];  /* of the ELF that is booted; zero for namespace */
	uint8_t initramfs_sha256[32];
	uint8_t guest_sha256[32];   /* of the sendbox-guest binary */

	char **argv; /* NULL-terminated, at least one */
	struct sb_plan_env *env; /* sorted by name; complete: the guest adds nothing but what is
				  * missing of HOME USER LOGNAME TMPDIR PATH LANG PWD (and TERM
				  * with tty) */
	size_t n_env;
	char **secrets; /* NULL-terminated names, never values */
	char *cwd;
	bool tty;             /* one terminal for stdin, stdout (and stderr) */
	bool separate_stderr; /* with tty: stderr is a stream of its own */
	char *term;           /* TERM with tty, else NULL */

	uint32_t uid; /* of the workload inside the guest; never 0 unless builder or test_root */
	uint32_t gid;
	char *user;   /* login name inside */
	char *home;   /* created in the guest if no mount provides it */
	uint32_t owner_uid; /* host owner that guest uid stands for in mounts */
	uint32_t owner_gid;
	char *hostname;
	bool builder; /* makes an environment: uid 0 with the capabilities that package managers need
		       * (see guest/exec/confine.c), over an upper of its own, and no folder of the
		       * user: mounts must be read-only */
	bool test_root; /* tests only: workload is root in the guest with all capabilities;
			 * microvm only; the product never sets it */

	struct sb_plan_mount *mounts; /* sorted so that a parent comes before what is in it */
	size_t n_mounts;

	struct sb_plan_net net;
	struct sb_plan_commands commands;
	struct sb_plan_ssh ssh;

	enum sb_profile profile;
	char **deny_syscalls; /* NULL-terminated names, sorted, refused beyond the profile */
	bool log_blocked;     /* refused system calls are counted and told */
	struct sb_plan_rlimits rlimits;
	struct sb_plan_guard *guards; /* sorted by path */
	size_t n_guards;
	struct sb_plan_feature *features; /* sorted by name */
	size_t n_features;

	uint32_t cpus;         /* virtual CPUs, or CPU quota in whole CPUs */
	uint64_t memory_bytes; /* microvm: guest memory; namespace: limit, 0 = none asked */
	uint64_t disk_bytes;   /* size of the writable upper layer */
	uint32_t pids_max;
	uint64_t nofile;
	uint64_t timeout_ms;   /* from the start of the command; 0 = none */
	bool cpus_asked;       /* given by the user, so it must be enforced or refused */
	bool memory_asked;
	bool pids_asked;
};

/* Where the guest's SSH agent is, with the workload's uid, when the plan has ssh.keys; the plan's
 * environment says so in SSH_AUTH_SOCK. */
#define SB_PLAN_SSH_SOCKET "/run/user/%u/ssh-agent.sock"

struct sb_plan *sb_plan_free(struct sb_plan *p);
static inline void sb_plan_freep(struct sb_plan **p)
{
	(void)sb_plan_free(*p);
}
#define sb_autoplan SB_CLEANUP(sb_plan_freep)

/*
 * sb_plan_check - every rule that needs no file system: ranges, paths absolute and normalised,
 * mounts sorted and not duplicated, strings bounded and without NUL, never root
 * Return: 0; -EINVAL with the text in @err.
 */
SB_MUST_CHECK int sb_plan_check(const struct sb_plan *p, struct sb_err *err);

/* The part of it that the configuration alone decides: before there is a bundle, a kernel, a signer. */
SB_MUST_CHECK int sb_plan_check_policy(const struct sb_plan *p, struct sb_err *err);

/* Canonical bytes. @ret: malloc'd, caller frees. Return: 0; -EINVAL (check fails); -ENOMEM. */
SB_MUST_CHECK int sb_plan_write(const struct sb_plan *p, char **ret, size_t *ret_len,
				struct sb_err *err);

/*
 * sb_plan_parse - strict inverse of sb_plan_write
 * Return: 0; -EBADMSG when malformed, not canonical or against a rule; -ENOMEM.
 */
SB_MUST_CHECK int sb_plan_parse(const char *bytes, size_t len, struct sb_plan **ret,
				struct sb_err *err);

/*
 * sb_plan_add_part, sb_plan_add_feature - insert where it belongs in sorted order; copies
 * Return: 0; -EEXIST: that role or name is there; -E2BIG: no room; -ENOMEM.
 */
SB_MUST_CHECK int sb_plan_add_part(struct sb_plan *p, const char *role, const char *path,
				   const uint8_t sha256[32]);
SB_MUST_CHECK int sb_plan_add_feature(struct sb_plan *p, const char *name,
				      enum sb_decision decision, const char *mechanism);
/* NULL when the plan has no such part. */
const struct sb_plan_part *sb_plan_find_part(const struct sb_plan *p, const char *role);
/* The innermost mount that holds @path (normalised); NULL: none does. */
const struct sb_plan_mount *sb_plan_holder(const struct sb_plan *p, const char *path);
/* Whether the host's file server brings mounts[@i] into the guest: all of a micro-VM; in a
 * namespace those that hold guarded paths, which a bind mount cannot guard before they exist. */
bool sb_plan_served(const struct sb_plan *p, size_t i);
/* The words of the JSON; NULL for NONE. */
const char *sb_plan_profile_name(enum sb_profile p);
const char *sb_plan_decision_name(enum sb_decision d);
const char *sb_plan_guard_name(enum sb_guard_mode m);
const char *sb_plan_upper_name(enum sb_upper_kind k);
/* 1..64 bytes of A-Z a-z 0-9 . _ -, first a letter or digit. */
bool sb_plan_instance_ok(const char *name);

/*
 * sb_plan_check_time - is @now within the plan's time? The clock may be SB_PLAN_SKEW_S behind.
 * Return: 0; -EKEYEXPIRED; -EKEYREJECTED: made in the future.
 */
#define SB_PLAN_SKEW_S 300
SB_MUST_CHECK int sb_plan_check_time(const struct sb_plan *p, uint64_t now_unix_s,
				     struct sb_err *err);

/* Normalise an absolute path by text alone: no "//", ".", trailing "/"; ".." is refused.
 * @out holds SB_PLAN_MAX_PATH + 1 bytes. Return: 0; -EINVAL; -ENAMETOOLONG. */
SB_MUST_CHECK int sb_path_normalise(const char *path, char *out);
/* Whether @path equals @dir or lies beneath it; both normalised. */
bool sb_path_within(const char *path, const char *dir);

#endif
