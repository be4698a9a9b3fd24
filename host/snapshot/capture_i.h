#ifndef SB_HOST_SNAPSHOT_CAPTURE_I_H
#define SB_HOST_SNAPSHOT_CAPTURE_I_H
/* Between capture.c (folders), capture_file.c (one file's data) and capture_out.c (what is written). */
#include <pthread.h>
#include <sys/stat.h>

#include "snapshot.h"
#include "store/snap_cache.h"

#define CAP_WORKERS 8

struct cap_entry {
	char *name; /* in the folder's arena */
	struct cap_dir *child;
	uint8_t *xattrs; /* their object's hash, malloc'd; NULL = none */
	uint64_t ino;
	uint64_t size;
	uint64_t child_at; /* of its record in the cache being written */
	int64_t mtime_s;
	int64_t ctime_ns;
	uint64_t old_child; /* of its record in the cache; 0 = none */
	uint32_t mtime_ns;
	uint32_t mode;
	uint32_t uid;
	uint32_t gid;
	uint32_t links;
	uint8_t name_len;
	uint8_t kind;
	uint8_t why;
	bool rest;  /* a folder of which all but guarded names are left out */
	bool sparse;
	bool again; /* looked different while it was read: never believed from the cache */
	bool old;   /* the last capture listed it, too */
	bool known; /* the hash is from the cache */
	bool same;  /* as it is in the cache, to the last bit */
	uint8_t hash[SB_SNAP_HASH];
};

struct cap_dir {
	struct cap_dir *parent; /* NULL: the root */
	uint32_t at;            /* in parent->v */
	bool rest;
	uint32_t depth;
	uint32_t len;           /* of its path */
	int fd;
	struct cap_entry *v;
	uint32_t n;
	char *arena;
	uint32_t pending; /* tasks that are not done; under the lock */
	uint32_t old_n;   /* entries of the cache's record */
	const uint8_t *old_hash; /* NULL: no record */
};

struct cap_task {
	struct cap_dir *dir;
	uint32_t from; /* files [from, to) of v; from == to: list the folder itself */
	uint32_t to;
};

struct cap_link {
	uint64_t ino;
	char *path;
};

struct cap;
struct cap_worker {
	struct cap *cap;
	struct sb_digest *digest;
	struct sb_pack_block block;
	struct sb_buf tree;   /* a folder as bytes */
	struct sb_buf record; /* the same for the cache */
	uint8_t *data;        /* CAP_DATA bytes: of files, and names of folders */
	struct sb_snap_counts counts;
	uint64_t read_files;
	uint64_t unreadable;
	uint64_t changed;
	uint64_t big; /* objects with packs of their own */
	size_t unchecked; /* bytes that may be written before the disk's room is looked at */
	struct cap_link *links;
	size_t n_links;
	size_t links_room;
	pthread_t thread;
};
#define CAP_DATA (SB_PACK_BIG + 65536)

struct cap {
	const struct snap_capture *conf;
	struct sb_snap_store *store;
	struct sb_snap_cache *old;
	struct sb_snap_cachew *cachew;
	struct sb_packer *packer;
	dev_t dev;
	struct cap_entry root;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct cap_task *stack;
	size_t n_stack;
	size_t stack_room;
	size_t link_bytes; /* of names of files that have several */
	size_t running; /* tasks taken and not ended */
	bool over;
	int error;
	char text[512];
	struct cap_worker w[CAP_WORKERS];
	size_t n_workers; /* started */
	size_t max_workers;
};

/* Note the first failure, with where it was. Return: @code. */
int cap_fail(struct cap *c, const struct cap_dir *d, const char *name, int code);
/* @d's path and @name, relative to the root; NUL-terminated, cut at @cap. Return: its length; 0: cut. */
size_t cap_path(const struct cap_dir *d, const char *name, char *out, size_t cap);
void cap_stat(struct cap_entry *e, const struct stat *st);

/* @e cannot be looked at: it is listed, with the reason, and the capture goes on. */
void cap_opaque(struct cap_worker *w, struct cap_entry *e, uint8_t why);

/* Store an object that is in memory. Return: 0; -errno. */
SB_MUST_CHECK int cap_put(struct cap_worker *w, const void *p, size_t len, uint8_t hash[SB_SNAP_HASH]);
/* Attributes of @fd into @e->xattrs. Return: 0; -errno. */
SB_MUST_CHECK int cap_xattrs(struct cap_worker *w, int fd, struct cap_entry *e);
/* Read one file. Its kind may change: it may be gone, or closed. Return: 0; -errno. */
SB_MUST_CHECK int cap_file(struct cap_worker *w, struct cap_dir *d, struct cap_entry *e);
/* All of @d's entries are known: its hash, its record. @e: its own entry. Return: 0; -errno. */
SB_MUST_CHECK int cap_folder(struct cap_worker *w, struct cap_dir *d, struct cap_entry *e);
/* The manifest and the cache. */
SB_MUST_CHECK int cap_end(struct cap *c, struct snap_captured *ret, uint64_t time_ns);

#endif
