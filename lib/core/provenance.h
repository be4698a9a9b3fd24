#ifndef SB_CORE_PROVENANCE_H
#define SB_CORE_PROVENANCE_H
/*
 * Detached signatures of files, and whom one believes: the formats and the decisions. Pure: digests and
 * Ed25519 are the caller's. docs/protocol/provenance.md is the description; version 1 never changes.
 *
 * A signature file holds one signature a line, each canonical JSON with its newline, so that further
 * signers append theirs. A signers file is written by people: any spacing, every key known.
 */
#include "base/err.h"

#define SB_PROV_VERSION 1
#define SB_PROV_DOMAIN "sendbox-provenance-signature-v1" /* its NUL is signed, too */
#define SB_PROV_LINE_MAX (64U << 10)
#define SB_PROV_MAX 256             /* signatures of one file */
#define SB_PROV_FILE_MAX (4U << 20)
#define SB_PROV_NAME_MAX 1024
#define SB_PROV_META_MAX 64
#define SB_PROV_META_KEY 128
#define SB_PROV_META_VALUE 4096
#define SB_PROV_META_BYTES (32U << 10)
#define SB_PROV_SKEW_S 300          /* by so much a signer's clock may be ahead */

enum sb_prov_kind {
	SB_PROV_NONE = 0,
	SB_PROV_CONTENT,
	SB_PROV_CONFIGURATION,
	SB_PROV_ARTIFACT,
	SB_PROV_REPORT, /* of a session, by sendbox report --sign */
	SB_PROV_KINDS
};
const char *sb_prov_kind_name(enum sb_prov_kind k);
enum sb_prov_kind sb_prov_kind_of(const char *name); /* 0 = none */

struct sb_prov_meta {
	char *key;
	char *value;
};
struct sb_prov_sig { /* owned strings */
	uint8_t id[16]; /* random */
	uint32_t kind;  /* enum sb_prov_kind */
	char *name;
	uint8_t sha256[32];
	uint8_t signer[32]; /* SHA-256 of the public key */
	uint64_t signed_at; /* seconds since 1970 */
	uint64_t expires_at; /* 0 = never */
	struct sb_prov_meta *meta; /* sorted by key */
	size_t n_meta;
	uint8_t signature[64];
};
struct sb_prov_file {
	struct sb_prov_sig *sigs;
	size_t n;
};
void sb_prov_sig_done(struct sb_prov_sig *s);
void sb_prov_file_done(struct sb_prov_file *f);
#define sb_autoprov SB_CLEANUP(sb_prov_file_done)

/* Copies. Return: 0; -EINVAL: too long, control characters, no UTF-8; -EEXIST; -E2BIG; -ENOMEM. */
SB_MUST_CHECK int sb_prov_add_meta(struct sb_prov_sig *s, const char *key, const char *value);
/* What is signed: the domain with its NUL, then the canonical object without "signature".
 * @ret: malloc'd. Return: 0; -EINVAL; -ENOMEM. */
SB_MUST_CHECK int sb_prov_payload(const struct sb_prov_sig *s, uint8_t **ret, size_t *ret_len);
/* The line of a signature file, with its newline. */
SB_MUST_CHECK int sb_prov_line(const struct sb_prov_sig *s, char **ret, size_t *ret_len);
/* All lines of a file; two with one id are an error. Return: 0; -EBADMSG with the line; -ENOMEM. */
SB_MUST_CHECK int sb_prov_parse(const char *bytes, size_t len, struct sb_prov_file *ret,
				struct sb_err *err);

/* ---- whom one believes ---- */

#define SB_SIGNERS_MAX 1024
#define SB_SIGNERS_FILE_MAX (1U << 20)
struct sb_signer { /* owned strings, never NULL */
	uint8_t key[32];
	uint8_t fingerprint[32]; /* SHA-256 of the key: the caller's to fill in */
	char *name;
	char *email;
	uint64_t valid_from; /* signatures made earlier do not count; 0 = always */
	uint64_t valid_until; /* nor made later; 0 = no end */
	uint64_t expires; /* from then on none counts; 0 = never */
	uint64_t revoked; /* when: none counts; 0 = not */
	bool required;
};
struct sb_signers {
	struct sb_signer *v;
	size_t n;
	uint64_t threshold; /* so many different ones must have signed; 0 = the required ones */
	bool allow_unsigned; /* a file without signatures passes; only without threshold and required */
};
void sb_signers_done(struct sb_signers *s);
#define sb_autosigners SB_CLEANUP(sb_signers_done)
/* Return: 0; -EBADMSG with text; -ENOMEM. */
SB_MUST_CHECK int sb_signers_parse(const char *bytes, size_t len, struct sb_signers *ret,
				   struct sb_err *err);
/* Copies strings; keys and names once. Return: 0; -EEXIST; -E2BIG; -ENOMEM. */
SB_MUST_CHECK int sb_signers_add(struct sb_signers *s, const struct sb_signer *one);

enum sb_prov_verdict {
	SB_PROV_BAD = 0,  /* the signature is not valid: nothing of the file counts */
	SB_PROV_COUNTS,
	SB_PROV_OTHER_FILE, /* signed something else: nothing of the file counts */
	SB_PROV_UNKNOWN,  /* of nobody who is believed */
	SB_PROV_REVOKED,
	SB_PROV_EARLY,    /* made before the signer counted, or in the future */
	SB_PROV_LATE,     /* made after the signer's time */
	SB_PROV_SIGNER_EXPIRED,
	SB_PROV_EXPIRED,
	SB_PROV_VERDICTS
};
const char *sb_prov_verdict_text(enum sb_prov_verdict v);
/*
 * sb_prov_judge - what one signature is worth
 * @signer: whose fingerprint it names; NULL = none has it
 * @valid: Ed25519 says so of @signer's key
 */
enum sb_prov_verdict sb_prov_judge(const struct sb_prov_sig *s, const uint8_t sha256[32],
				   const struct sb_signer *signer, bool valid, uint64_t now);
struct sb_signer *sb_signers_find(const struct sb_signers *s, const uint8_t fingerprint[32]);
/*
 * sb_prov_decide - whether a file passes
 * @verdicts: one for each signature
 * Return: 0; -EKEYREJECTED with the reason.
 */
SB_MUST_CHECK int sb_prov_decide(const struct sb_prov_file *f, const enum sb_prov_verdict *verdicts,
				 const struct sb_signers *s, struct sb_err *err);

#endif
