#ifndef SB_HOST_CLI_BUNDLE_KEYS_H
#define SB_HOST_CLI_BUNDLE_KEYS_H
/* Keys that bundles are signed with, and the floor of release sequences that this host remembers. */
#include "provider/bundle_open.h"
#include "provider/provider.h"

/* A public key file: 64 hex digits and an optional newline, or 32 bytes. Return: 0; -errno. */
SB_MUST_CHECK int bundle_key_public(int dirfd, const char *path, uint8_t ret[32],
				    struct sb_err *err);
/* A secret key file as host.ed25519 (64 bytes, mode 0600, the caller's). Return: 0; -errno. */
SB_MUST_CHECK int bundle_key_secret(const char *path, uint8_t ret[64], struct sb_err *err);

/*
 * bundle_keys_trusted - @pub, the host's own key, and every <config>/keys/NAME.pub
 * Return: number of keys in @ret; -errno: a file there that is no key, or more than fit.
 */
SB_MUST_CHECK int bundle_keys_trusted(const struct sb_dirs *d, const uint8_t pub[32],
				      uint8_t ret[SB_BUNDLE_MAX_KEYS][32], struct sb_err *err);

/* <state>/floor: the lowest release sequence that is accepted; 0 when there is none yet.
 * Return: 0; -EBADMSG: damaged, which refuses every release; -errno. */
SB_MUST_CHECK int bundle_floor_get(const struct sb_dirs *d, uint64_t *ret, struct sb_err *err);
/* Raise it, durably; never lowers. Return: 0; -errno. */
SB_MUST_CHECK int bundle_floor_raise(const struct sb_dirs *d, uint64_t to, struct sb_err *err);

#endif
