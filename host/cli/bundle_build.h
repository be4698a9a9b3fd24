#ifndef SB_HOST_CLI_BUNDLE_BUILD_H
#define SB_HOST_CLI_BUNDLE_BUILD_H
/* From the installed guest parts (sendbox-guest, guest-components.json) to an unsigned bundle. */
#include <time.h>

#include "base/err.h"

struct bundle_build {
	const char *release;
	uint64_t sequence;
	uint64_t minimum_sequence;
	time_t created; /* in the bills of materials, and the time of all files */
};

/* SOURCE_DATE_EPOCH, or 0 (1970) without it. Return: 0; -EINVAL with @err. */
SB_MUST_CHECK int bundle_build_time(time_t *ret, struct sb_err *err);

/*
 * bundle_build - fill the empty folder @out
 * @from: folder with the parts
 * Return: 0; -ENOENT: no parts there; -ENOEXEC: the guest program is for no machine that is known;
 * -EBADMSG; -errno.
 */
SB_MUST_CHECK int bundle_build(int from, int out, const struct bundle_build *b, struct sb_err *err);

#endif
