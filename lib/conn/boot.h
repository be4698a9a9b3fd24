#ifndef SB_CONN_BOOT_H
#define SB_CONN_BOOT_H
/*
 * The boot record: the first bytes on the carrier, host to guest, before the handshake. It brings
 * the signed plan, the values of its environment, and the session key. Whoever reads it verifies the signature against a public
 * key that it knows already (built into the initramfs; given by descriptor in a namespace).
 */
#include "core/plan.h"
#include "crypto/crypto.h"

struct sb_boot {
	struct sb_plan *plan; /* owned; parsed and checked, with the values of its environment */
	uint8_t plan_sha256[SB_SHA256_LEN];
	uint8_t psk[SB_PSK_LEN];
	uint8_t session[16];
};

struct sb_boot_parts { /* all borrowed */
	const char *plan;
	size_t plan_len;
	const uint8_t *env; /* values: sb_plan_env_pack */
	size_t env_len;
	const uint8_t *session;   /* 16 bytes */
	const uint8_t *signature; /* SB_SIGN_LEN */
	const uint8_t *psk;       /* SB_PSK_LEN */
};
/* Serialise. @ret: malloc'd, caller wipes (it holds the key) and frees. */
SB_MUST_CHECK int sb_boot_write(const struct sb_boot_parts *in, uint8_t **ret, size_t *ret_len);
/*
 * sb_boot_read - read exactly one boot record from @fd (blocking or not; polls), verify, parse
 * @now_unix_s: for the plan's time; 0 = do not check (no clock yet)
 * Return: 0; -EBADMSG malformed; -EKEYREJECTED: signature, session, a value of the environment, or
 * made in the future; -EKEYEXPIRED; -ETIMEDOUT; -errno. @ret is set on success only.
 */
SB_MUST_CHECK int sb_boot_read(int fd, const uint8_t pub[SB_SIGN_PUBLIC_LEN], uint64_t now_unix_s,
			       int timeout_ms, struct sb_boot *ret, struct sb_err *err);
void sb_boot_done(struct sb_boot *b); /* frees and wipes */

/* The handshake prologue: "sendbox-channel-1" || session id || SHA-256 of the plan bytes. */
#define SB_PROLOGUE_LEN (17 + 16 + SB_SHA256_LEN)
void sb_boot_prologue(const uint8_t session[16], const uint8_t plan_sha256[SB_SHA256_LEN],
		      uint8_t out[SB_PROLOGUE_LEN]);

#endif
