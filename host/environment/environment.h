#ifndef SB_HOST_ENVIRONMENT_ENVIRONMENT_H
#define SB_HOST_ENVIRONMENT_ENVIRONMENT_H
/*
 * Environments: what install commands make of a base image, as read-only layers, built once and
 * found by the digest of everything that decides them (the base's digest or the host's identity,
 * the commands, their environment, the groups of registries, the version of this format).
 *
 * A builder is a session of its own: root of its guest, an upper layer of its own, no folder of the
 * user, and no network but the package groups. Its upper layer comes back as a tar stream written
 * by the guest's own code, which the jailed sendbox-image turns into one erofs layer.
 */
#include "image/image.h"
#include "state/state.h"

struct environment_what {
	const char *agent; /* short name, for people and for the record */
	const struct image *base; /* from image_get; borrowed */
	const char *const *commands; /* NULL-terminated; each one /bin/sh -c. May be empty: then the
				      * layers are the base's alone and nothing is built */
	const char *const *health; /* argv that must succeed at the end, NULL-terminated; or NULL */
	const char *const *env; /* NULL-terminated "K=V" for the commands, or NULL. No secrets: they
				 * are part of the key and of the layer's record */
	const char *const *groups; /* NULL-terminated words of cli/groups.h or hosts that the builder
				    * may reach; NULL = all package groups */
	/* How the builder runs; NULL and 0 = as `run` has it. Not part of the key. */
	const char *runtime; /* "microvm", "namespace", "auto" */
	const char *accel;
	const char *kernel;
	uint32_t cpus;
	uint64_t memory_bytes;
	uint64_t disk_bytes; /* of the builder's upper layer; 0 = 16 GiB, sparse */
	bool reinstall; /* build it again and forget the old one */
	bool verbose;   /* show the commands' output as it comes, not only after a failure */
	bool quiet;     /* no lines of progress; failures are told all the same */
	bool offline;   /* never build: -ENOENT when it is not there */
	/* After a failed step and on a terminal: a root shell in what is there so far; leaving it
	 * with status 0 goes on with the step again, any other status gives up. */
	bool shell_on_failure;
};

struct environment_ready { /* owned */
	uint8_t key[32];
	struct sb_plan_layer layers[SB_PLAN_MAX_LAYERS]; /* lowest first; [0] = an erofs base */
	size_t n_layers;
	bool built;      /* this call built it */
	bool unchanged;  /* environment_edit: there was nothing to save */
	int64_t built_s; /* 0 = there was nothing to install */
	uint64_t bytes;  /* of its own layers, without the base */
};
void environment_ready_done(struct environment_ready *e);

/* environment_key - the key alone. Return: 0; -errno with the text. */
SB_MUST_CHECK int environment_key(const struct environment_what *w, uint8_t ret[32],
				  struct sb_err *err);

/*
 * environment_ready - find the environment, or build it
 * Of two that want the same at once one builds and the other waits for it and uses it. Progress goes
 * to stderr; nothing is drawn over when that is no terminal. A failure, SIGINT or SIGTERM leaves
 * nothing behind. Blocks for as long as the build takes.
 * Return: 0; -EIO: a step failed (its command, code and last lines were shown; @err is one line);
 * -EINTR; -ENOSPC; -ENOENT (offline); -errno.
 */
SB_MUST_CHECK int environment_ready(const struct sb_dirs *d, const struct environment_what *w,
				    struct environment_ready *ret, struct sb_err *err);

/*
 * environment_look - as environment_ready with offline, for banners: never builds, never waits
 * Return: 0; -ENOENT; -errno.
 */
SB_MUST_CHECK int environment_look(const struct sb_dirs *d, const struct environment_what *w,
				   struct environment_ready *ret, struct sb_err *err);

/*
 * environment_edit - a root shell in the environment with the builder's network; what it changed
 * is saved as one more layer when the shell ends with 0, and discarded otherwise
 * @argv: what to run instead of a shell, NULL-terminated, or NULL
 * Return: 0 saved, or nothing was changed; 1 discarded; -errno.
 */
SB_MUST_CHECK int environment_edit(const struct sb_dirs *d, const struct environment_what *w,
				   char *const *argv, struct environment_ready *ret,
				   struct sb_err *err);

/* Remove what builds that were killed left behind. @n: counted up. Return: 0; -errno with text. */
SB_MUST_CHECK int environment_gc(const struct sb_dirs *d, size_t *n, struct sb_err *err);

#endif
