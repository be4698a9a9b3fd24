#ifndef SB_HOST_SNAPSHOT_SNAPSHOT_H
#define SB_HOST_SNAPSHOT_SNAPSHOT_H
/* What the parts of sendbox-snapshot share. */
#include <jansson.h>
#include <stdio.h>

#include "store/snap_store.h"

#define SNAP_KEY 33 /* of a folder's path: hex and NUL */

struct snap_tree { /* a folder on this machine */
	int fd;
	const char *path; /* absolute */
	char key[SNAP_KEY];
};
void snap_tree_init(struct snap_tree *t, int fd, const char *path);

struct snap_rules { /* what is left out */
	const char *patterns[SB_SNAP_EXCLUDES_MAX];
	uint32_t n;
};
/* Rules that begin so are of a project's file: they never hold for guarded names, also in folders that match. */
#define SNAP_RULE_INNER "//"
enum snap_left { SNAP_IN = 0, SNAP_OUT, SNAP_OUT_INNER };
/* @path: relative; @name: its last part. A pattern without a slash is for names at any depth. */
enum snap_left snap_excluded(const struct snap_rules *r, const char *path, const char *name);

/* --- capture.c --- */
struct snap_capture {
	struct sb_snap_store *store;
	const struct snap_tree *tree;
	const struct snap_rules *rules;
	const char *label;
	enum sb_snap_role role;
	const char *leftover; /* names that begin so are removed instead: of a restore; NULL = none */
	bool sync;
	bool no_cache; /* read everything */
	/* Nothing that changed since then is believed from the cache (ns since 1970, 0: no such time): what a session
	 * maps it may write without another change of times. */
	uint64_t since_ns;
	uint32_t max_extents; /* of one sparse file; 0: SB_SNAP_EXTENTS_MAX */
	uint32_t max_tree; /* bytes of one folder's list; 0: SB_SNAP_TREE_CAP */
	uint32_t max_groups; /* bytes of names of linked files; 0: half a manifest */
	bool stage;    /* nothing is written: folders in memory, contents as hashes; for a comparison */
};
struct snap_captured {
	uint8_t id[SB_SNAP_HASH];
	uint8_t root[SB_SNAP_HASH];
	struct sb_snap_counts counts;
	uint64_t new_bytes;
	uint64_t new_objects;
	uint64_t time_ns; /* of its beginning */
	uint64_t read_files;  /* those that the cache did not spare */
	uint64_t unreadable;  /* entries that are listed only, because they or what is in them cannot be read; and
			      * names of one file that are kept as files of their own, because there are too many */
	uint64_t changed; /* while they were read, several times over */
};
SB_MUST_CHECK int snap_capture(const struct snap_capture *c, struct snap_captured *ret,
			       struct sb_err *err);

/* --- common.c --- */
/* A snapshot by the beginning of its id, at least 4 digits. Return: 0; -errno with the text. */
SB_MUST_CHECK int snap_find(struct sb_snap_store *s, const char *prefix, uint8_t id[SB_SNAP_HASH],
			    struct sb_err *err);
/* A path as it is; when it is no UTF-8, escaped, and as KEY_base64. Return: 0; -ENOMEM. */
SB_MUST_CHECK int snap_json_path(json_t *o, const char *key, const char *path);
/* One object as a line, with the folder that it is about. A failure shows when the stream is flushed, too. */
int snap_put_json(FILE *out, json_t *o, const char *source);
/* Whether @path is there, through no link: 0; -ENOENT; -errno. */
SB_MUST_CHECK int snap_there(int root, const char *path);
struct snap_loaded {
	uint8_t id[SB_SNAP_HASH];
	struct sb_snap_manifest m; /* borrows from bytes */
	uint8_t *bytes;
};
SB_MUST_CHECK int snap_load(struct sb_snap_store *s, const uint8_t *id, struct snap_loaded *ret,
			    struct sb_err *err);
void snap_loaded_done(struct snap_loaded *l);
/* All snapshots, the oldest first; damaged ones are left out and told to @bad. */
SB_MUST_CHECK int snap_load_all(struct sb_snap_store *s, struct snap_loaded **ret, size_t *ret_n,
				sb_snap_damage_fn *bad, void *arg, struct sb_err *err);
void snap_loaded_free(struct snap_loaded *v, size_t n);
/* A name for a terminal or a line: control characters, and bytes that are no UTF-8, as \\ooo. */
void snap_text(const uint8_t *p, size_t len, char *out, size_t cap);

/* --- walk.c --- */
struct side;
#define SNAP_WALK 3
struct snap_at {
	const char *path; /* relative, NUL-terminated; "" for the root */
	size_t len;
	const struct sb_snap_entry *v[SNAP_WALK]; /* NULL: not there */
	const struct side *in; /* the folders that they are in; NULL for the root */
	bool unknown; /* whether the third one has it: a folder above is damaged there */
};
/* The entry @name of the folder that @at is in. Return: false: there is none. */
bool snap_walk_beside(const struct snap_at *at, size_t side, const char *name, struct sb_snap_entry *ret);
/* Return: 0: go on; 1: not into this folder; -errno: end. */
typedef int snap_walk_fn(void *arg, const struct snap_at *at);
/* Step through up to three folders side by side, in the order of names, folders before what is in
 * them, leaving out what is the same, to the last bit, in the first two. Damage of the third one ends nothing.
 * @roots: NULL: not there. Return: 0; -ENAMETOOLONG; -errno with the text. */
SB_MUST_CHECK int snap_walk(struct sb_snap_store *s, const struct sb_snap_entry *const roots[SNAP_WALK],
			    snap_walk_fn *fn, void *arg, struct sb_err *err);

/* One entry by its path. @ret: without name and target. Return: 0; -ENOENT; -errno. */
SB_MUST_CHECK int snap_lookup(struct sb_snap_store *s, const struct sb_snap_manifest *m, const char *path,
			      struct sb_snap_entry *ret);

/* --- diff.c --- */
enum snap_status { SNAP_SAME = 0, SNAP_ADDED = 'A', SNAP_DELETED = 'D', SNAP_MODIFIED = 'M',
		   SNAP_TYPE = 'T', SNAP_META = 'P' };
/* Of one path; SNAP_SAME when times alone differ, or entries that are left out by rules. */
enum snap_status snap_status(const struct sb_snap_entry *a, const struct sb_snap_entry *b);
struct snap_diff_conf {
	struct sb_snap_store *store;
	FILE *out;
	const char *const *paths; /* these and what is in them; NULL-terminated; NULL = all */
	bool json;
	bool stat;
	bool names;   /* names with status alone */
	bool guarded; /* only those */
	bool escape;  /* the output is a terminal */
	bool heads;   /* several folders are told: this one's name first */
	const char *quarantined; /* what is shown was put back, and is in that snapshot alone; NULL = it is there */
	const char *source; /* set by snap_diff() */
};
struct snap_diff_counts {
	uint64_t added;
	uint64_t deleted;
	uint64_t modified; /* of content, kind, mode, owner or attributes */
	uint64_t guarded;
};
/* @out NULL: counts alone. Return: 0; -errno with the text. */
SB_MUST_CHECK int snap_diff(const struct snap_diff_conf *c, const struct sb_snap_manifest *a,
			    const struct sb_snap_manifest *b, struct snap_diff_counts *ret,
			    struct sb_err *err);
bool snap_wanted(const char *const *paths, const char *path);
/* Guarded changes between two snapshots, each once; those of git, editors, agents and shells first. */
typedef int snap_guarded_fn(void *arg, enum snap_status st, const char *path, const char *what);
SB_MUST_CHECK int snap_guarded(struct sb_snap_store *s, const struct sb_snap_manifest *a,
			       const struct sb_snap_manifest *b, snap_guarded_fn *fn, void *arg,
			       struct snap_diff_counts *ret, struct sb_err *err);
/* The content of a file as it was. @ret: malloc'd. Return: 0; -EFBIG: more than @cap; -errno. */
SB_MUST_CHECK int snap_content(struct sb_snap_store *s, const struct sb_snap_entry *e, size_t cap,
			       uint8_t **ret, size_t *ret_len);

/* --- diff_text.c --- */
struct snap_lines {
	uint64_t added;
	uint64_t removed;
	bool binary;
};
/* Unified, three lines around; @out NULL: count alone. */
SB_MUST_CHECK int snap_diff_text(FILE *out, bool escape, const uint8_t *a, size_t a_len, const uint8_t *b,
				 size_t b_len, struct snap_lines *ret);

/* --- restore.c --- */
enum snap_going_on { SNAP_GO_START = 0, SNAP_GO_FINISH, SNAP_GO_BACK };
struct snap_restore {
	struct sb_snap_store *store;
	const struct snap_tree *tree;
	const uint8_t *target;  /* id */
	const uint8_t *expect;  /* id of what should be there now; NULL: whatever is */
	const struct snap_rules *rules; /* for the capture of what is there now */
	const char *const *paths;
	bool force;
	bool dry;
	bool guarded; /* guarded paths alone */
	bool json;
	enum snap_going_on going_on; /* with an interrupted one */
	int ask; /* before anything is changed: struct snap_msg_plan, and 1 is the answer; -1 = nobody */
	FILE *out;
};
struct snap_restored {
	uint8_t saved[SB_SNAP_HASH]; /* id of what was there; zeroes: nothing was done */
	uint64_t restored; /* paths that were put back */
	uint64_t removed;
	uint64_t conflicts; /* left alone: changed by both */
	uint64_t theirs;    /* left alone: changed by the user alone, afterwards */
	uint64_t lost;      /* FIFOs, sockets, devices, what could not be read: never kept */
	uint64_t failed;
};
SB_MUST_CHECK int snap_restore(const struct snap_restore *c, struct snap_restored *ret,
			       struct sb_err *err);

bool snap_is_set(const uint8_t id[SB_SNAP_HASH]);

/* --- verify.c, gc.c, show.c --- */
/* Everything, or what @only needs. Findings go to @out, one a line. Return: their number; -errno. */
SB_MUST_CHECK int64_t snap_verify(struct sb_snap_store *s, const uint8_t *only, FILE *out, bool json,
				  struct sb_err *err);
struct snap_gone {
	uint64_t packs;
	uint64_t bytes;
	uint64_t files; /* unfinished ones */
};
/* Remove what no snapshot needs; the store is open exclusively. */
SB_MUST_CHECK int snap_gc(struct sb_snap_store *s, struct snap_gone *ret, struct sb_err *err);
SB_MUST_CHECK int snap_remove(struct sb_snap_store *s, const uint8_t *id, struct sb_err *err);
/* Whether an interrupted restore of its folder names it. */
bool snap_needed(struct sb_snap_store *s, const uint8_t *id);
SB_MUST_CHECK int snap_ls(struct sb_snap_store *s, const char *path, FILE *out, bool json,
			  struct sb_err *err);
/* The before and after of a session (by a prefix, or NULL: the last one) of @path (NULL: any).
 * @after: all zero when there is none. Return: 0; -ENOENT with the text; -errno. */
SB_MUST_CHECK int snap_session(struct sb_snap_store *s, const char *session, const char *path,
			       uint8_t before[SB_SNAP_HASH], uint8_t after[SB_SNAP_HASH],
			       struct sb_err *err);
/* serve.c */
SB_MUST_CHECK int snap_serve(struct sb_snap_store *s, struct snap_tree *trees, size_t n,
			     const struct snap_rules *rules, int sock, struct sb_err *err);

#endif
