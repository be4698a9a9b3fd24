#ifndef SB_PROVIDER_BUNDLE_MAKE_H
#define SB_PROVIDER_BUNDLE_MAKE_H
/* Write a bundle: artifacts and manifest, without signature. Same input, same bytes and modes. */
#include <time.h>

#include "core/bundle.h"

struct sb_bundle_make {
	const char *release;
	const char *architecture;
	uint64_t sequence;
	uint64_t minimum_sequence;
	uint32_t plan_version;
	struct {
		const void *data;
		size_t len;
	} parts[SB_BUNDLE_KINDS]; /* borrowed; [SB_BUNDLE_NONE] is not used */
	time_t mtime; /* of all files and folders */
};

/*
 * sb_bundle_make - fill the empty folder @dirfd, durably
 * Return: 0; -EEXIST: something is there; -EINVAL: against a rule of the manifest; -errno. On
 * failure what was written stays; the caller removes the folder.
 */
SB_MUST_CHECK int sb_bundle_make(int dirfd, const struct sb_bundle_make *in, struct sb_err *err);

#endif
