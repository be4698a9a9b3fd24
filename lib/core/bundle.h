#ifndef SB_CORE_BUNDLE_H
#define SB_CORE_BUNDLE_H
/*
 * The guest bundle's manifest: what the guest is made of, file by file, signed as one. Pure: bytes
 * in, a checked structure out; provider/bundle_open.h does the reading and the signature.
 *
 * A bundle is a directory that holds the manifest, its signature, the artifacts that the manifest
 * names, and nothing else (docs/protocol/bundle.md). The manifest is compact JSON with sorted keys;
 * parsing writes the result again and compares the bytes, so each content has one encoding. It
 * carries no time and no path of the machine that made it.
 */
#include "base/err.h"

#define SB_BUNDLE_MANIFEST "manifest.json"
#define SB_BUNDLE_SIGNATURE "manifest.sig"
#define SB_BUNDLE_VERSION 1
#define SB_BUNDLE_MANIFEST_MAX (64U << 10) /* bytes */
#define SB_BUNDLE_MAX_ARTIFACTS 32
#define SB_BUNDLE_PATH_MAX 120    /* bytes */
#define SB_BUNDLE_WORD_MAX 64     /* bytes of release and architecture */
#define SB_BUNDLE_GUEST_MAX (64U << 20) /* bytes of the guest program */
#define SB_BUNDLE_TEXT_MAX (1U << 20)   /* bytes of every other artifact */
#define SB_BUNDLE_SEQUENCE_MAX 0x1fffffffffffffULL /* 2^53 - 1: every JSON reader has it exactly */

/* What is signed: these bytes with their NUL, then the manifest's bytes. */
#define SB_BUNDLE_DOMAIN "sendbox-bundle-manifest-v1"

/* One of each in every bundle. */
enum sb_bundle_kind {
	SB_BUNDLE_NONE = 0,
	SB_BUNDLE_GUEST = 1,     /* sendbox-guest: static, mode 0555; all others 0444 */
	SB_BUNDLE_MODULES = 2,   /* modules wanted of a kernel: provider/microvm/modules.h */
	SB_BUNDLE_INITRAMFS = 3, /* cpio: what of the initramfs depends on no kernel and no key */
	SB_BUNDLE_INVENTORY = 4, /* what the guest program was made from */
	SB_BUNDLE_SPDX = 5,
	SB_BUNDLE_CYCLONEDX = 6,
	SB_BUNDLE_KINDS = 7,
};
const char *sb_bundle_kind_name(enum sb_bundle_kind k); /* "guest", ...; NULL: no such kind */
const char *sb_bundle_kind_path(enum sb_bundle_kind k); /* where `sendbox bundle build` puts it */
uint32_t sb_bundle_kind_mode(enum sb_bundle_kind k);    /* the one mode that it may have */

struct sb_bundle_artifact {
	char *path; /* relative, components of A-Z a-z 0-9 . _ + -, none begins with a dot */
	enum sb_bundle_kind kind;
	uint32_t mode;
	uint64_t size;
	uint8_t sha256[32];
};

struct sb_bundle_manifest {
	char *release;             /* version of the release, for people: A-Z a-z 0-9 . _ + ~ - */
	char *architecture;        /* as uname -m has it */
	uint64_t sequence;         /* 1..; newer releases have higher ones */
	uint64_t minimum_sequence; /* 1..sequence: a host that took this one takes none below */
	uint32_t plan_version;     /* of the plans that this guest reads */
	struct sb_bundle_artifact *artifacts; /* sorted by path */
	size_t n_artifacts;
};

/* Release what @m owns; @m itself is the caller's and zeroed. */
void sb_bundle_manifest_done(struct sb_bundle_manifest *m);
#define sb_automanifest SB_CLEANUP(sb_bundle_manifest_done)

/*
 * sb_bundle_manifest_check - every rule of the structure above, each kind exactly once
 * Return: 0; -EINVAL with the text in @err.
 */
SB_MUST_CHECK int sb_bundle_manifest_check(const struct sb_bundle_manifest *m, struct sb_err *err);

/* Canonical bytes. @ret: malloc'd, NUL-terminated. Return: 0; -EINVAL (check fails); -ENOMEM. */
SB_MUST_CHECK int sb_bundle_manifest_write(const struct sb_bundle_manifest *m, char **ret,
					   size_t *ret_len, struct sb_err *err);

/*
 * sb_bundle_manifest_parse - strict inverse of sb_bundle_manifest_write
 * @ret: set on success only; release with sb_bundle_manifest_done
 * Return: 0; -EBADMSG: malformed, not canonical, or against a rule; -ENOMEM.
 */
SB_MUST_CHECK int sb_bundle_manifest_parse(const char *bytes, size_t len,
					   struct sb_bundle_manifest *ret, struct sb_err *err);

/* Borrowed. Return: NULL when there is none. */
const struct sb_bundle_artifact *sb_bundle_find(const struct sb_bundle_manifest *m,
						enum sb_bundle_kind kind);

/*
 * The signature file, of one fixed length so that there is nothing to parse before the signature
 * is known to be good: "sendbox-bundle-signature 1 KEY SIGNATURE\n", both in lower-case hex.
 */
#define SB_BUNDLE_SIGNATURE_LEN (27U + 64U + 1U + 128U + 1U)
void sb_bundle_signature_write(const uint8_t key[32], const uint8_t sig[64],
			       char ret[SB_BUNDLE_SIGNATURE_LEN + 1]);
/* @text: SB_BUNDLE_SIGNATURE_LEN bytes. Return: 0; -EBADMSG. */
SB_MUST_CHECK int sb_bundle_signature_parse(const char *text, uint8_t key[32], uint8_t sig[64]);

#endif
