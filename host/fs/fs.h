#ifndef SB_FS_FS_H
#define SB_FS_FS_H
/*
 * sendbox-fs: one directory (or file, or virtual read-only tree) of the host served as FUSE
 * messages on one descriptor. The peer is a hostile guest kernel.
 *
 * One thread, one request at a time. The program's private header: structures and the functions
 * of each file. Functions return 0 or -errno unless they say otherwise; everything is borrowed.
 */
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include "base/err.h"
#include "fs/conf.h"

#define FS_MAX_IO (1U << 20)           /* one READ or WRITE */
#define FS_MSG_MAX (FS_MAX_IO + 4096U) /* one whole request */
#define FS_NAME_MAX 255
#define FS_MAX_NODES (1U << 21) /* about half a GiB when full */
#define FS_MAX_DATA 512 /* cached data descriptors that may be evicted */
#define FS_MAX_STREAMS 32
#define FS_DIRBUF (32U << 10)

#define FS_TIMEOUT_LONG 3600.0
#define FS_TIMEOUT_WATCHED 10.0 /* while inotify tells of host changes */
#define FS_TIMEOUT_SHORT 1.0

struct fs;
struct fs_node;

struct fs_link { /* of an intrusive ring */
	struct fs_link *prev;
	struct fs_link *next;
};

/* What the guest was last told; any difference means that the host changed it. */
struct fs_known {
	int64_t mtime_ns;
	int64_t ctime_ns;
	int64_t size;
};

struct fs_ident { /* which object: survives eviction of the descriptor */
	dev_t dev;
	ino_t ino;
	int64_t btime_ns; /* 0 = the file system does not tell */
	mode_t type;
};

struct fs_vent { /* entry of a virtual directory */
	char *name;
	struct fs_node *node;
};

struct fs_node {
	uint32_t slot;
	uint32_t gen;
	bool virtual; /* directory that exists only here */
	bool pinned;  /* descriptor cannot be had again by name */
	bool data_rw;
	bool data_kept; /* its mode would not let us open it again */
	bool prot;        /* beneath a protected path */
	bool queued;      /* in fs->reap */
	bool orphan;      /* no name (any more); what it holds is charged until it is dropped */
	int fd;   /* O_PATH, or -1 while evicted */
	int data; /* or -1 */
	int wd;   /* inotify watch, -1 = none yet, -2 = cannot have one */
	uint32_t kids;
	uint64_t nlookup; /* references of the guest */
	struct fs_ident id;
	struct fs_known known;
	struct fs_node *parent; /* counted in parent->kids; NULL: a root */
	char *name;             /* in parent */
	struct fs_node *hash_next;
	struct fs_node *reap_next;
	struct fs_link fd_lru;
	struct fs_link data_lru;
	const struct fs_rule *rule; /* where in the rule tree this directory is; NULL = nowhere */
	struct fs_vent *vents;
	size_t n_vents;
};

struct fs_stream { /* position in a directory */
	uint64_t nodeid;
	int fd;
	uint64_t next; /* offset of the entry at pos */
	size_t pos;
	size_t len;
	uint64_t used; /* clock of the last use */
	char *buf;
};

struct fs_quota {
	uint64_t bytes_used;
	uint64_t inodes_used;
};

struct fs_io {
	int fd;
	bool chardev;
	bool dead;
	bool got_init;
	uint32_t peer_flags; /* FUSE_* that the peer offers in INIT */
	uint64_t init_unique;
	uint8_t *buf; /* received bytes */
	size_t head;
	size_t tail;
	size_t room;
	uint8_t *msg; /* one aligned request */
};

struct fs_expect; /* notify.c */

struct fs_notify {
	int fd; /* inotify, or -1 */
	bool broken;
	uint32_t n_watches;
	uint32_t max_watches;
	struct fs_node **by_wd; /* open hash, power of two */
	uint32_t cap_wd;
	struct fs_expect *expect; /* ring of events that the guest's own requests cause */
	uint32_t expect_head;
	uint32_t expect_tail;
	struct fs_expect *told; /* names of this batch */
	uint64_t due_ns;        /* CLOCK_MONOTONIC: not before */
};

struct fs {
	struct fs_conf *conf;
	struct fs_ident *hidden; /* pin.c: hidden files that have other names */
	size_t n_hidden;
	struct fuse_session *se;
	struct fs_io io;
	struct fs_node *root;
	struct fs_node **slots;
	uint32_t n_slots;
	uint32_t cap_slots;
	uint32_t *free_slots;
	uint32_t n_free;
	uint32_t *slot_gen;
	struct fs_node **hash;
	uint32_t cap_hash;
	uint32_t n_nodes;
	struct fs_node *reap; /* to be freed at the end of the request, if still unused */
	struct fs_link fd_lru; /* head.next = oldest */
	struct fs_link data_lru;
	struct fs_link kept_lru;
	uint32_t n_fds;
	uint32_t max_fds;
	uint32_t n_data;
	uint32_t n_kept;
	uint32_t max_kept;
	uint32_t n_pinned;
	uint32_t max_pinned;
	struct fs_stream streams[FS_MAX_STREAMS];
	uint64_t clock;
	struct fs_quota quota;
	struct fs_notify notify;
	char *data_buf; /* FS_MAX_IO */
	dev_t root_dev;
};

/* ---- req.c: is one message well formed? (pure) ---- */
/* Return: 0; -EBADMSG. @first: only INIT is allowed. */
SB_MUST_CHECK int fs_req_check(const uint8_t *msg, size_t len, bool first);
/* Whether libfuse may see it; else it is answered with -ENOSYS, or dropped (INTERRUPT). */
enum fs_req_route { FS_REQ_REFUSE = 0, FS_REQ_DROP, FS_REQ_LIBFUSE, FS_REQ_TMPFILE };
enum fs_req_route fs_req_route(uint32_t opcode);
/* Return: 0; -EINVAL ("", ".", "..", '/'); -ENAMETOOLONG. */
SB_MUST_CHECK int fs_name_check(const char *name);

/* ---- io.c ---- */
SB_MUST_CHECK int fs_io_init(struct fs *fs, int fd);
void fs_io_done(struct fs *fs);
/* Serve until the peer is gone. Return: 0 at its end; -errno. */
SB_MUST_CHECK int fs_io_run(struct fs *fs);
/* Check and carry out one message. Return: 0; -EBADMSG when the session must end. */
SB_MUST_CHECK int fs_io_process(struct fs *fs, uint8_t *msg, size_t len);
ssize_t fs_io_writev(int fd, struct iovec *iov, int n, void *arg);
ssize_t fs_io_read(int fd, void *buf, size_t len, void *arg);
void fs_io_reply_raw(struct fs *fs, uint64_t unique, int error, const void *p, size_t len);

/* ---- session.c ---- */
/* Make the session on @fd (taken on success). conf is borrowed for the life of @ret. */
SB_MUST_CHECK int fs_new(struct fs_conf *conf, int *fd, struct fs **ret, struct sb_err *err);
struct fs *fs_free(struct fs *fs);

/* Whether an image may show the open @fd: all bits of @need are set. Always true for a mount. */
bool fs_public(const struct fs *fs, int fd, mode_t need);

/* ---- node.c ---- */
SB_MUST_CHECK int fs_node_setup(struct fs *fs, struct sb_err *err);
void fs_node_teardown(struct fs *fs);
struct fs_node *fs_node_get(struct fs *fs, uint64_t id); /* NULL: no such node */
uint64_t fs_node_id(const struct fs *fs, const struct fs_node *n);
/* The O_PATH descriptor, borrowed until the next call into node.c. Return: >= 0; -errno. */
SB_MUST_CHECK int fs_node_fd(struct fs *fs, struct fs_node *n);
/* A data descriptor of a regular file, borrowed likewise. Return: >= 0; -errno. */
SB_MUST_CHECK int fs_node_data(struct fs *fs, struct fs_node *n, bool write);
/* Give the node a data descriptor that exists already. @keep: prefer it to others. */
void fs_node_give_data(struct fs *fs, struct fs_node *n, int *fd, bool rw, bool keep);
/* Make a node (or find it) for an O_PATH descriptor just opened as @name in @parent and add one
 * reference. @fd is taken on success. */
SB_MUST_CHECK int fs_node_enter(struct fs *fs, struct fs_node *parent, const char *name, int *fd,
				const struct statx *stx, struct fs_node **ret);
struct fs_node *fs_node_find(struct fs *fs, const struct fs_ident *id);
void fs_node_forget(struct fs *fs, uint64_t id, uint64_t n);
/* Before the first request: guarded files that have other names. */
void fs_pin_guarded(struct fs *fs);
bool fs_pin_hides(const struct fs *fs, const struct statx *stx);
/* At the end of each request: free what became unused in it. */
void fs_node_sweep(struct fs *fs);
void fs_node_moved(struct fs *fs, struct fs_node *n, struct fs_node *parent, const char *name);
/* Keep the descriptor open for good: the name is about to go. */
SB_MUST_CHECK int fs_node_pin(struct fs *fs, struct fs_node *n);
SB_MUST_CHECK int fs_open_path(int dirfd, const char *name, int *ret);
SB_MUST_CHECK int fs_statx(int fd, struct statx *ret);
SB_MUST_CHECK int fs_statx_at(int dirfd, const char *name, struct statx *ret);
void fs_ident_of(const struct statx *stx, struct fs_ident *ret);
void fs_fd_name(int fd, char out[16]); /* "N", relative to /proc/self/fd, the working directory */

/* ---- attr.c ---- */
void fs_attr_fill(struct fs *fs, struct fs_node *n, const struct statx *stx, struct stat *ret);
void fs_attr_known(struct fs_node *n, const struct statx *stx);
void fs_attr_refresh_known(struct fs *fs, struct fs_node *n);
uint64_t fs_attr_ino(const struct fs *fs, dev_t dev, uint64_t ino);
double fs_attr_timeout(const struct fs *fs, const struct fs_node *n, uint32_t nlink);
double fs_entry_timeout(const struct fs *fs, const struct fs_node *parent);
/* Return: 0 with a new reference in @e; -errno (-ENOENT included). */
SB_MUST_CHECK int fs_lookup(struct fs *fs, struct fs_node *parent, const char *name,
			    struct fuse_entry_param *e);
/* Whether @n may be changed. Return: 0; -EROFS. */
SB_MUST_CHECK int fs_writable(const struct fs *fs, const struct fs_node *n);

/* ---- quota.c ---- */
struct fs_charge {
	bool on;
	int64_t blocks;
};
/* Before growing @fd by a write of @len at @off. Return: 0; -EDQUOT. */
SB_MUST_CHECK int fs_quota_begin(struct fs *fs, int fd, uint64_t off, uint64_t len,
				 struct fs_charge *ret);
void fs_quota_end(struct fs *fs, int fd, const struct fs_charge *c);
/* Is there any room for a new name, whose size nobody knows? Return: 0; -EDQUOT. */
SB_MUST_CHECK int fs_quota_room(const struct fs *fs);
SB_MUST_CHECK int fs_quota_inode(const struct fs *fs);
void fs_quota_inode_added(struct fs *fs, uint64_t blocks512); /* the blocks it came with */
void fs_quota_gone(struct fs *fs, uint64_t blocks512);
void fs_quota_statfs(const struct fs *fs, struct statvfs *v);

/* ---- notify.c ---- */
SB_MUST_CHECK int fs_notify_init(struct fs *fs);
void fs_notify_done(struct fs *fs);
void fs_notify_watch(struct fs *fs, struct fs_node *dir);
void fs_notify_unwatch(struct fs *fs, struct fs_node *dir);
/* The request in hand is going to change @name in @dir itself. */
void fs_notify_expect(struct fs *fs, struct fs_node *dir, const char *name);
int fs_notify_wait_ms(const struct fs *fs); /* until the next batch may be read; 0 = now */
void fs_notify_read(struct fs *fs); /* take what is there, without waiting */

/* ---- operations ---- */
extern const struct fuse_lowlevel_ops fs_ops;
void fs_op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void fs_op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t n);
void fs_op_forget_multi(fuse_req_t req, size_t n, struct fuse_forget_data *f);
void fs_op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void fs_op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *a, int valid,
		   struct fuse_file_info *fi);
void fs_op_readlink(fuse_req_t req, fuse_ino_t ino);
void fs_op_statfs(fuse_req_t req, fuse_ino_t ino);
void fs_op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev);
void fs_op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void fs_op_symlink(fuse_req_t req, const char *to, fuse_ino_t parent, const char *name);
void fs_op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name);
void fs_op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void fs_op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void fs_op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t newparent,
		  const char *newname, unsigned int flags);
/* The raw answer to FUSE_TMPFILE, which libfuse 3.14 does not know. */
void fs_op_tmpfile(struct fs *fs, uint64_t unique, uint64_t parent, uint32_t mode);
void fs_op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		   struct fuse_file_info *fi);
void fs_op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		       struct fuse_file_info *fi);
void fs_dir_drop(struct fs *fs, uint64_t nodeid); /* its streams */
void fs_op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void fs_op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
		 struct fuse_file_info *fi);
void fs_op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);
void fs_op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);
void fs_op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t len,
		     struct fuse_file_info *fi);
void fs_op_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence, struct fuse_file_info *fi);
void fs_op_copy(fuse_req_t req, fuse_ino_t from, off_t from_off, struct fuse_file_info *fi_from,
		fuse_ino_t to, off_t to_off, struct fuse_file_info *fi_to, size_t len, int flags);
void fs_op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
		    size_t size, int flags);
void fs_op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size);
void fs_op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size);
void fs_op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name);

static inline struct fs *fs_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

#endif
