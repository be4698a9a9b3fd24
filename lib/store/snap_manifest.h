#ifndef SB_STORE_SNAP_MANIFEST_H
#define SB_STORE_SNAP_MANIFEST_H
/*
 * The head of one snapshot: of what, when, why, the root folder, what is linked to what. Its id is
 * the SHA-256 of its bytes, which are made in one way only. Pure. Bytes: docs/protocol/snapshot.md.
 */
#include "store/snap_tree.h"

#define SB_SNAP_VERSION 1
#define SB_SNAP_MANIFEST_MAX (256U << 20) /* a million links of long names */
#define SB_SNAP_PATH_MAX 4095
#define SB_SNAP_EXCLUDES_MAX 256
#define SB_SNAP_LABEL_MAX 64

enum sb_snap_role {
	SB_SNAP_ROLE_NONE = 0,
	SB_SNAP_ROLE_MANUAL = 1,
	SB_SNAP_ROLE_BEFORE = 2, /* a session; label: its id */
	SB_SNAP_ROLE_AFTER = 3,
	SB_SNAP_ROLE_UNDO = 4,   /* what was there when something was restored */
};

struct sb_snap_bytes {
	const uint8_t *p; /* borrowed */
	size_t len;
};

struct sb_snap_counts {
	uint64_t files;
	uint64_t dirs;
	uint64_t links;
	uint64_t others;   /* listed only */
	uint64_t excluded; /* of them: by rules */
	uint64_t bytes;    /* sizes of files, holes included */
};

struct sb_snap_manifest {
	uint64_t time_ns; /* when the capture began, CLOCK_REALTIME */
	uint8_t role;
	struct sb_snap_bytes path;  /* absolute, of the folder */
	struct sb_snap_bytes label;
	struct sb_snap_entry root;  /* DIR; name empty */
	struct sb_snap_counts counts;
	struct sb_snap_bytes excludes[SB_SNAP_EXCLUDES_MAX];
	uint32_t n_excludes;
	uint32_t n_groups;          /* of hard links; see sb_snap_group_next */
	struct sb_snap_bytes groups;
};

/* One group of paths that are one file, in ascending order, at least two; groups ascend by their first. */
struct sb_snap_group {
	struct sb_rd rd;   /* its paths */
	uint32_t n;
};

/* @m: groups are the bytes that sb_snap_group_add() wrote. */
void sb_snap_manifest_write(struct sb_buf *to, const struct sb_snap_manifest *m);
/* @ret: borrows from @p. Return: 0; -EBADMSG; -EPROTONOSUPPORT: a later version. */
SB_MUST_CHECK int sb_snap_manifest_parse(const void *p, size_t len, struct sb_snap_manifest *ret);

void sb_snap_group_add(struct sb_buf *to, const struct sb_snap_bytes *paths, uint32_t n);
/* Step through @m's groups; @at: {0} at first. Return: 1; 0 at the end. Parsed ones cannot fail. */
int sb_snap_group_next(const struct sb_snap_manifest *m, struct sb_rd *at, struct sb_snap_group *ret);
struct sb_snap_bytes sb_snap_group_path(struct sb_snap_group *g);
/* Relative, normal, below SB_SNAP_PATH_MAX. */
bool sb_snap_path_ok(const uint8_t *p, size_t len);

#endif
