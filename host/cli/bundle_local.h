#ifndef SB_HOST_CLI_BUNDLE_LOCAL_H
#define SB_HOST_CLI_BUNDLE_LOCAL_H
/*
 * The bundle that a session starts from.
 *
 * An installation with <libexec>/bundle is a release: the bundle must be signed with a key that the
 * user trusts and be no older than the host's floor. Without it the installation was made from
 * source: the bundle is made from the installed guest parts on first use, kept as
 * <cache>/bundles/DIGEST, where the digest is of the parts and of the host's key, and signed with
 * that key; the plan says "local build". A local bundle is verified at each start like any other:
 * the cache only saves making it. One that is incomplete is made again; one that was changed is
 * refused.
 */
#include "provider/bundle_open.h"
#include "provider/provider.h"

#define BUNDLE_LOCAL "local build" /* origin in the plan; no release can be called that */
#define BUNDLE_INSTALLED "bundle"  /* beneath libexec */

/*
 * cli_bundle_open - find or make it, verify it
 * @pub, @sec: the host's key
 * Return: 0; -errno with @err.
 */
SB_MUST_CHECK int cli_bundle_open(const struct sb_dirs *d, const uint8_t pub[32],
				  const uint8_t sec[64], struct sb_bundle **ret,
				  struct sb_err *err);

/* Architecture of this machine as uname -m has it. @ret: 65 bytes. */
void cli_machine(char ret[65]);

#endif
