#ifndef SB_PROVIDER_BUNDLE_OPEN_H
#define SB_PROVIDER_BUNDLE_OPEN_H
/*
 * Open a guest bundle: what comes out has been verified, and is used by descriptor alone.
 *
 * Order: the signature file (one fixed length) → its key is a trusted one → the manifest's bytes
 * (bounded) → the signature over them → only now the manifest is parsed → architecture, plan
 * version, floor → the folders hold what the manifest names and nothing else → every artifact.
 * Each file is opened once, relative to the folder's descriptor, beneath it, without following any
 * link; it must be a regular file with one name, of its planned mode and size, that belongs to the
 * caller or to root. The digest is computed from that descriptor, and that descriptor is what is
 * handed on: no path is used a second time. So whoever swaps a file, a folder or the whole bundle
 * after the check changes nothing. What is left is writing into an opened file, which takes its
 * owner, the caller or root; sb_bundle_read therefore hashes the very bytes that it returns, and
 * the namespace runtime hashes the descriptor again in the process that executes it.
 *
 * Nothing is remembered between two starts: a whole verification takes about as long as the digest
 * of the guest program, which each start has to make anyway; the rest of it is a quarter of a
 * millisecond.
 */
#include "core/bundle.h"
#include "core/plan.h"

#define SB_BUNDLE_MAX_KEYS 64

struct sb_bundle_trust {
	const uint8_t *keys;       /* @n_keys of 32 bytes each; borrowed */
	size_t n_keys;             /* none: every bundle is refused */
	uint64_t floor;            /* lowest sequence that is accepted; 0 = any */
	const char *architecture;  /* NULL: not compared */
	uint32_t plan_version;     /* 0: not compared */
};

struct sb_bundle {
	struct sb_bundle_manifest m;
	uint8_t manifest_sha256[32];
	uint8_t key[32];          /* that signed it */
	char *manifest;           /* the verified bytes */
	size_t manifest_len;
	int fds[SB_BUNDLE_KINDS]; /* owned, read-only; by kind */
};
struct sb_bundle *sb_bundle_free(struct sb_bundle *b);
static inline void sb_bundle_freep(struct sb_bundle **b)
{
	(void)sb_bundle_free(*b);
}
#define sb_autobundle SB_CLEANUP(sb_bundle_freep)

/*
 * sb_bundle_open - verify the bundle in the folder @dirfd
 *
 * Return: 0; -ENOENT: a file is missing; -EBADMSG: not what was signed; -EKEYREJECTED: signed by
 * no trusted key; -ESTALE: older than the floor; -EPERM: a file or folder that others may change
 * (owner, mode, links, kind); -ENOEXEC: for another machine or another version; -errno. @err says
 * which file and what to do.
 */
SB_MUST_CHECK int sb_bundle_open(int dirfd, const struct sb_bundle_trust *trust,
				 struct sb_bundle **ret, struct sb_err *err);

/*
 * sb_bundle_peek - the manifest and its signature, for people: nothing is verified but that the
 * signature, if there is one, was made by the key that it names
 * @ret_key: zero when there is no signature; @ret_good: whether it is valid
 * Return: 0; -errno.
 */
SB_MUST_CHECK int sb_bundle_peek(int dirfd, struct sb_bundle_manifest *ret, uint8_t ret_key[32],
				 uint8_t ret_sha256[32], bool *ret_good, struct sb_err *err);

/*
 * sb_bundle_sign - write manifest.sig for the manifest that is there, after checking it and every
 * artifact as sb_bundle_open does
 * @sec: Ed25519 secret key (seed and public key). Return: 0; as sb_bundle_open.
 */
SB_MUST_CHECK int sb_bundle_sign(int dirfd, const uint8_t sec[64], struct sb_err *err);

/*
 * sb_bundle_read - the whole of an artifact, hashed again as it was read
 * @ret: malloc'd, NUL-terminated; caller frees. Return: 0; -EBADMSG: changed since; -ENOMEM.
 */
SB_MUST_CHECK int sb_bundle_read(const struct sb_bundle *b, enum sb_bundle_kind kind, char **ret,
				 size_t *ret_len, struct sb_err *err);

#endif
