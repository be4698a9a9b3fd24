#ifndef SB_HOST_SNAPSHOT_RESTORE_I_H
#define SB_HOST_SNAPSHOT_RESTORE_I_H
/* Between restore.c (order, journal), plan.c (what is to be done) and restore_file.c (one path). */
#include "snapshot.h"

enum op_kind {
	OP_NONE = 0,
	OP_REMOVE, /* a file, a link, a FIFO; or a folder, empty by then */
	OP_DIR,    /* make it, or open it for its owner */
	OP_FILE,
	OP_LINK,
	OP_META,   /* mode, owner, times, attributes of what is there */
	OP_DIR_META, /* the same of a folder, when everything in it is done */
	OP_HARD,   /* one more name of a file that is there */
	OP_LEFT,   /* nothing; what is there stays, and so do the folders that it is in */
};

struct op {
	enum op_kind kind;
	char *path;
	char *target;  /* LINK; HARD: the other name */
	bool was_dir;  /* REMOVE */
	bool silent;   /* nobody would call it a change */
	bool instead;  /* NONE: something else is in the folder's place, and goes when it comes back */
	bool theirs;   /* NONE: the user put something in the folder's place */
	uint8_t now_kind; /* what was there when it was looked at; NONE: nothing, or not known */
	int64_t now_s;
	uint32_t now_ns;
	uint64_t now_size;
	uint32_t now_mode;
	uint32_t now_uid;
	uint32_t now_gid;
	struct sb_snap_entry e; /* as it shall be; name NULL */
};

struct plan {
	const struct snap_restore *c;
	bool resume;   /* half of it was done before */
	bool with_expect;
	bool told_unknown;
	char blind[SB_SNAP_PATH_MAX + 1]; /* a folder that could not be looked into after the session */
	char whole[SB_SNAP_PATH_MAX + 1]; /* guarded: a folder that comes back with all that was in it */
	struct snap_guard *guard;
	struct op *v;
	size_t n;
	size_t room;
	struct snap_restored *res;
	int error;
};
void snap_plan_done(struct plan *p);
/* What the session left cannot be read, from @path on: told, once. */
void snap_tell_unknown(struct plan *p, const char *path);
SB_MUST_CHECK struct op *snap_plan_add(struct plan *p, enum op_kind k, const char *path,
				       const struct sb_snap_entry *e);
/* @now, @target, @expect (may be NULL): whole snapshots. Return: 0; -errno with the text. */
SB_MUST_CHECK int snap_plan_make(struct plan *p, const struct sb_snap_manifest *now,
				 const struct sb_snap_manifest *target,
				 const struct sb_snap_manifest *expect, struct sb_err *err);
/* Whether anything is to be done that somebody would call a change. */
bool snap_plan_any(const struct plan *p);
/* A line about @path for people, or an object. */
void snap_tell(const struct snap_restore *c, const char *what, const char *path, const char *why);

struct apply {
	const struct snap_restore *c;
	char tmp[48];      /* the name of what is being written */
	int dir;           /* of the path at hand; -1 */
	char dir_path[SB_SNAP_PATH_MAX + 1];
	struct sb_digest *digest;
	bool root;         /* may give files away */
};
/* Beneath the tree, through no link. Return: descriptor, -errno. */
SB_MUST_CHECK int snap_open_beneath(int root, const char *path, int flags);
/* A file that is larger than what shall be there: putting it back makes room. */
bool snap_shrinks(const struct op *o);
/* Return: 0; -errno. */
SB_MUST_CHECK int snap_apply(struct apply *a, const struct op *o);

#endif
