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
#include "core/net_policy.h"

#define SB_PLAN_VERSION 1
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
};
enum sb_mount_mode {
	SB_MOUNT_NONE = 0,
	SB_MOUNT_RO = 1,
	SB_MOUNT_RW = 2,
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

	enum sb_image_kind image;
	char *image_path;           /* SB_IMAGE_DIR only, else NULL */
	uint64_t image_dev;
	uint64_t image_ino;

	char *kernel_release;       /* microvm only, else NULL */
	uint8_t kernel_sha256[32];  /* of the ELF that is booted; zero for namespace */
	uint8_t initramfs_sha256[32];
	uint8_t guest_sha256[32];   /* of the sendbox-guest binary */

	char **argv; /* NULL-terminated, at least one */
	char **env;  /* NULL-terminated "NAME=value"; complete: the guest adds nothing but what
		      * is missing of HOME USER LOGNAME TMPDIR PATH LANG PWD (and TERM with tty) */
	char *cwd;
	bool tty;             /* one terminal for stdin, stdout (and stderr) */
	bool separate_stderr; /* with tty: stderr is a stream of its own */
	char *term;           /* TERM with tty, else NULL */

	uint32_t uid; /* of the workload inside the guest; never 0 unless test_root */
	uint32_t gid;
	char *user;   /* login name inside */
	char *home;   /* created in the guest if no mount provides it */
	uint32_t owner_uid; /* host owner that guest uid stands for in mounts */
	uint32_t owner_gid;
	char *hostname;
	bool test_root; /* tests only: workload is root in the guest with all capabilities;
			 * microvm only; the product never sets it */

	struct sb_plan_mount *mounts; /* sorted so that a parent comes before what is in it */
	size_t n_mounts;

	struct sb_plan_net net;

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

/* Canonical bytes. @ret: malloc'd, caller frees. Return: 0; -EINVAL (check fails); -ENOMEM. */
SB_MUST_CHECK int sb_plan_write(const struct sb_plan *p, char **ret, size_t *ret_len,
				struct sb_err *err);

/*
 * sb_plan_parse - strict inverse of sb_plan_write
 * Return: 0; -EBADMSG when malformed, not canonical or against a rule; -ENOMEM.
 */
SB_MUST_CHECK int sb_plan_parse(const char *bytes, size_t len, struct sb_plan **ret,
				struct sb_err *err);

/* Normalise an absolute path by text alone: no "//", ".", trailing "/"; ".." is refused.
 * @out holds SB_PLAN_MAX_PATH + 1 bytes. Return: 0; -EINVAL; -ENAMETOOLONG. */
SB_MUST_CHECK int sb_path_normalise(const char *path, char *out);
/* Whether @path equals @dir or lies beneath it; both normalised. */
bool sb_path_within(const char *path, const char *dir);

#endif
