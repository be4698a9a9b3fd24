#ifndef SB_HOST_CLI_PROVENANCE_H
#define SB_HOST_CLI_PROVENANCE_H
/* Signing and verifying files: core/provenance.h with digests, keys and files. */
#include "core/provenance.h"
#include "provider/provider.h"

/* Fill id, signer, signed_at and signature of @s, whose other parts are set, with the host's key.
 * Return: 0; -errno with text. */
SB_MUST_CHECK int provenance_sign(const struct sb_dirs *d, struct sb_prov_sig *s, struct sb_err *err);
/* Into the audit log, before the signature leaves this program. Return: 0; -errno with text. */
SB_MUST_CHECK int provenance_note(const struct sb_dirs *d, const struct sb_prov_sig *s,
				  struct sb_err *err);
/* SHA-256 of a regular file, which may be reached by a link. */
SB_MUST_CHECK int provenance_digest(const char *path, uint8_t ret[32], struct sb_err *err);
/* A signature file. Return: 0; -ENOENT without a text; -errno with text. */
SB_MUST_CHECK int provenance_read(const char *path, struct sb_prov_file *ret, struct sb_err *err);
/* Whether @s may be added to @path. Return: 0; 1: the same is there already; -EEXIST: there are some of other
 * content, with which it does not verify; -errno with text. */
SB_MUST_CHECK int provenance_room(const char *path, const struct sb_prov_sig *s, struct sb_err *err);
/* Append the line of @s to @path, whose lines must be whole. @replace: those of other content go.
 * Return: 0; -errno with text. */
SB_MUST_CHECK int provenance_append(const char *path, const struct sb_prov_sig *s, bool replace,
				    struct sb_err *err);

/* The keys of `sendbox key list`, one good signature of any of which is enough. */
SB_MUST_CHECK int provenance_own_signers(const struct sb_dirs *d, struct sb_signers *ret,
					 struct sb_err *err);
/* A signers file. */
SB_MUST_CHECK int provenance_signers_read(const char *path, struct sb_signers *ret,
					  struct sb_err *err);
/* One more, who counts without an end. */
SB_MUST_CHECK int provenance_signers_key(const char *key, struct sb_signers *s, struct sb_err *err);

/*
 * provenance_verify - judge every signature of @f over a content of digest @sha256
 * @verdicts: room for f->n
 * Return: 0 = it passes; -EKEYREJECTED with the reason.
 */
SB_MUST_CHECK int provenance_verify(const struct sb_prov_file *f, const uint8_t sha256[32],
				    const struct sb_signers *s, enum sb_prov_verdict *verdicts,
				    struct sb_err *err);

#endif
