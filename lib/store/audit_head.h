#ifndef SB_STORE_AUDIT_HEAD_H
#define SB_STORE_AUDIT_HEAD_H
/*
 * A signed head: size and root of the log at one moment, as a C2SP checkpoint, which is a signed note
 * (Go's golang.org/x/mod/sumdb/note verifies it). The origin and the name of the signer are both
 * "sendbox-audit-" and the first 16 digits of the public key.
 *
 *	sendbox-audit-0123456789abcdef
 *	1234
 *	<root, base64>
 *
 *	— sendbox-audit-0123456789abcdef <base64 of key id, 4 bytes, and Ed25519 signature, 64 bytes>
 */
#include "base/err.h"

#define SB_AUDIT_HEAD_MAX 1024 /* bytes; further signatures of others are passed over */
#define SB_AUDIT_NAME_LEN 30
#define SB_AUDIT_VKEY_ROOM 96

struct sb_audit_head {
	uint64_t n;
	uint8_t root[32];
};
/* Return: bytes at @out, NUL-terminated. */
size_t sb_audit_head_sign(const struct sb_audit_head *h, const uint8_t pub[32],
			  const uint8_t sec[64], char out[SB_AUDIT_HEAD_MAX]);
/*
 * sb_audit_head_open - take a note apart and verify it
 * @next: bytes of the note with its last newline; NULL: the text must end there
 * Return: 0; -EBADMSG: no head; -EKEYREJECTED: not signed with @pub.
 */
SB_MUST_CHECK int sb_audit_head_open(const char *text, size_t len, const uint8_t pub[32],
				     struct sb_audit_head *ret, size_t *next);
/* The public key as Go's note package wants it: name+id+base64. */
void sb_audit_vkey(const uint8_t pub[32], char out[SB_AUDIT_VKEY_ROOM]);
/* From that form, or 64 hexadecimal digits. Return: 0; -EINVAL. */
SB_MUST_CHECK int sb_audit_vkey_parse(const char *text, uint8_t ret[32]);

#endif
