#ifndef SB_HOST_CLI_BUNDLE_SBOM_H
#define SB_HOST_CLI_BUNDLE_SBOM_H
/*
 * The bundle's inventory and its two bills of materials (SPDX 2.3, CycloneDX 1.5), from the list of
 * components that was made with the guest program (build-aux/gen-components). Pure: the same input
 * gives the same bytes; identifiers that have to be unique come from the guest program's digest.
 */
#include "base/err.h"

#define BUNDLE_COMPONENTS "guest-components.json" /* beside sendbox-guest */
#define BUNDLE_COMPONENTS_MAX (256U << 10)        /* bytes */
#define BUNDLE_MAX_COMPONENTS 64

struct bundle_sbom_in {
	const char *components; /* text of BUNDLE_COMPONENTS */
	size_t components_len;
	const char *release;
	const char *architecture;
	const char *created; /* YYYY-MM-DDThh:mm:ssZ */
	uint8_t guest_sha256[32];
};
struct bundle_sbom {
	char *inventory; /* malloc'd texts, NUL-terminated */
	char *spdx;
	char *cyclonedx;
};
void bundle_sbom_done(struct bundle_sbom *s);
#define autosbom SB_CLEANUP(bundle_sbom_done)

/* Return: 0; -EBADMSG: malformed components; -ENOMEM. */
SB_MUST_CHECK int bundle_sbom_make(const struct bundle_sbom_in *in, struct bundle_sbom *ret,
				   struct sb_err *err);

#endif
