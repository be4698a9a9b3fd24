#ifndef SB_HOST_CLI_KEYS_H
#define SB_HOST_CLI_KEYS_H
/*
 * Keys that plans are signed with: <state>/keys/host.ed25519 is the host's own of today,
 * <state>/keys/trusted.json what else counts and the floor (core/key_list.h). Changes are made
 * under a lock, and each file is replaced as a whole: a crash leaves the old or the new state.
 */
#include "core/key_list.h"
#include "provider/provider.h"

struct cli_keys {
	struct sb_key_list list;
	uint8_t current[32];
};
void cli_keys_done(struct cli_keys *k);
#define cli_autokeys SB_CLEANUP(cli_keys_done)

/* Makes the host's key on first use. Return: 0; -errno with text. */
SB_MUST_CHECK int cli_keys_load(const struct sb_dirs *d, struct cli_keys *ret, struct sb_err *err);
/* Whether @key counts for a plan made at @created. Return: as sb_key_check. */
SB_MUST_CHECK int cli_keys_check(const struct cli_keys *k, const uint8_t key[32], uint64_t created,
				 struct sb_err *err);

/*
 * What follows is recorded in the audit log first, or refused.
 *
 * cli_keys_rotate - a new key of this host
 * @floor: plans made before now are not run again. @ret: the new key
 * @resign: called when the new key is known and the old one still in use, to sign anew what has to be this
 *          host's; or NULL. Return: 0; -errno with text: the old key stays in use
 */
SB_MUST_CHECK int cli_keys_rotate(const struct sb_dirs *d, bool floor,
				  int (*resign)(void *arg, const uint8_t key[32], const uint8_t sec[64],
						struct sb_err *err),
				  void *arg, uint8_t ret[32], struct sb_err *err);
/* @k: copied; its name, from and until replace what is there. -EEXIST: own, or revoked */
SB_MUST_CHECK int cli_keys_trust(const struct sb_dirs *d, const struct sb_key *k,
				 struct sb_err *err);
/* @id: the beginning of the key's hex digits. Also moves the floor. */
SB_MUST_CHECK int cli_keys_revoke(const struct sb_dirs *d, const char *id, uint8_t ret[32],
				  struct sb_err *err);
/* @id: as above; NULL = the current one. -ENOENT: none; -ENOTUNIQ: several */
SB_MUST_CHECK int cli_keys_find(const struct cli_keys *k, const char *id, uint8_t ret[32],
				struct sb_err *err);
/* A public key: the file @path of 32 bytes, or of 64 hex digits and perhaps a newline; or, when there
 * is no such file, those digits themselves. */
SB_MUST_CHECK int cli_key_read(const char *path, uint8_t ret[32], struct sb_err *err);

#define CLI_KEY_ID_ROOM 17
void cli_key_id(const uint8_t key[32], char out[CLI_KEY_ID_ROOM]); /* its first 16 digits */

#endif
