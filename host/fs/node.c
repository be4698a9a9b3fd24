/*
 * The table of nodes: what the guest's node numbers stand for.
 *
 * A number is {generation, slot} and is looked up, never followed. Every node of the host has an
 * O_PATH descriptor that is closed when there are too many and opened again as name in parent,
 * with the identity compared; a node whose name is gone keeps its descriptor.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "fs/fs.h"
#include "os/kernfs.h"

#define ROOT_SLOT 0U
#define MAX_DEPTH 4096

#define NODE_OF(l, member) SB_CONTAINER_OF(l, struct fs_node, member)

static void ring_init(struct fs_link *l)
{
	l->prev = l->next = l;
}

static void ring_del(struct fs_link *l)
{
	l->prev->next = l->next;
	l->next->prev = l->prev;
	ring_init(l);
}

static void ring_add(struct fs_link *head, struct fs_link *l) /* as the newest */
{
	l->prev = head->prev;
	l->next = head;
	head->prev->next = l;
	head->prev = l;
}

static bool ring_in(const struct fs_link *l)
{
	return l->next != l;
}

void fs_fd_name(int fd, char out[16])
{
	(void)snprintf(out, 16, "%d", fd);
}

int fs_open_path(int dirfd, const char *name, int *ret)
{
	struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS |
					   RESOLVE_NO_SYMLINKS };
	int fd;

	for (int tries = 0;; tries++) {
		fd = (int)syscall(SYS_openat2, dirfd, name, &how, sizeof(how));
		if (fd >= 0)
			break;
		if (errno == EINTR || (errno == EAGAIN && tries < 16))
			continue;
		return -errno;
	}
	*ret = fd;
	return 0;
}

int fs_statx(int fd, struct statx *ret)
{
	return statx(fd, "", AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
		     STATX_BASIC_STATS | STATX_BTIME, ret) < 0 ?
		       -errno :
		       0;
}

int fs_statx_at(int dirfd, const char *name, struct statx *ret)
{
	return statx(dirfd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
		     STATX_BASIC_STATS | STATX_BTIME, ret) < 0 ?
		       -errno :
		       0;
}

static int64_t ns_of(const struct statx_timestamp *t)
{
	return (int64_t)((uint64_t)t->tv_sec * 1000000000ULL + t->tv_nsec);
}

void fs_ident_of(const struct statx *stx, struct fs_ident *ret)
{
	*ret = (struct fs_ident){
		.dev = (dev_t)stx->stx_dev_major << 32 | stx->stx_dev_minor,
		.ino = stx->stx_ino,
		.btime_ns = stx->stx_mask & STATX_BTIME ? ns_of(&stx->stx_btime) : 0,
		.type = stx->stx_mode & S_IFMT,
	};
}

static bool ident_eq(const struct fs_ident *a, const struct fs_ident *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->btime_ns == b->btime_ns &&
	       a->type == b->type;
}

/* ---- identity hash ---- */

static uint32_t hash_of(const struct fs *fs, dev_t dev, ino_t ino)
{
	uint64_t h = ((uint64_t)ino ^ (uint64_t)dev * 0x9E3779B97F4A7C15ULL) *
		     0xBF58476D1CE4E5B9ULL;

	return (uint32_t)(h >> 32) & (fs->cap_hash - 1);
}

struct fs_node *fs_node_find(struct fs *fs, const struct fs_ident *id)
{
	struct fs_node *n = fs->hash[hash_of(fs, id->dev, id->ino)];

	while (n && !ident_eq(&n->id, id))
		n = n->hash_next;
	return n;
}

static void hash_add(struct fs *fs, struct fs_node *n)
{
	struct fs_node **slot = &fs->hash[hash_of(fs, n->id.dev, n->id.ino)];

	n->hash_next = *slot;
	*slot = n;
}

static void hash_del(struct fs *fs, struct fs_node *n)
{
	struct fs_node **p = &fs->hash[hash_of(fs, n->id.dev, n->id.ino)];

	while (*p && *p != n)
		p = &(*p)->hash_next;
	if (*p)
		*p = n->hash_next;
}

static void hash_grow(struct fs *fs)
{
	uint32_t old_cap = fs->cap_hash;
	struct fs_node **old = fs->hash;
	struct fs_node **bigger;

	if (fs->n_nodes < old_cap || old_cap >= FS_MAX_NODES)
		return;
	bigger = calloc((size_t)old_cap * 2, sizeof(struct fs_node *));
	if (!bigger)
		return; /* longer chains, no harm */
	fs->hash = bigger;
	fs->cap_hash = old_cap * 2;
	for (uint32_t i = 0; i < old_cap; i++) {
		struct fs_node *n = old[i];

		while (n) {
			struct fs_node *next = n->hash_next;

			hash_add(fs, n);
			n = next;
		}
	}
	free(old);
}

/* ---- slots ---- */

uint64_t fs_node_id(const struct fs *fs, const struct fs_node *n)
{
	if (n == fs->root)
		return FUSE_ROOT_ID;
	return (uint64_t)n->gen << 32 | ((uint64_t)n->slot + 1);
}

struct fs_node *fs_node_get(struct fs *fs, uint64_t id)
{
	uint32_t low = (uint32_t)id;
	struct fs_node *n;

	if (id == FUSE_ROOT_ID)
		return fs->root;
	if (low < 2 || low - 1 >= fs->n_slots) /* slot 0 is the root */
		return NULL;
	n = fs->slots[low - 1];
	return n && n->gen == (uint32_t)(id >> 32) ? n : NULL;
}

static int grow_slots(struct fs *fs)
{
	uint32_t cap = fs->cap_slots ? fs->cap_slots * 2 : 1024;
	void *p;

	if (cap > FS_MAX_NODES)
		return -ENFILE;
	p = reallocarray(fs->slots, cap, sizeof(struct fs_node *));
	if (!p)
		return -ENOMEM;
	fs->slots = p;
	p = reallocarray(fs->free_slots, cap, sizeof(*fs->free_slots));
	if (!p)
		return -ENOMEM;
	fs->free_slots = p;
	p = reallocarray(fs->slot_gen, cap, sizeof(*fs->slot_gen));
	if (!p)
		return -ENOMEM;
	fs->slot_gen = p;
	fs->cap_slots = cap;
	return 0;
}

static int node_new(struct fs *fs, struct fs_node **ret)
{
	struct fs_node *n;
	int r;

	if (fs->n_free == 0 && fs->n_slots == fs->cap_slots) {
		r = grow_slots(fs);
		if (r < 0)
			return r;
	}
	n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	if (fs->n_free > 0) {
		n->slot = fs->free_slots[--fs->n_free];
	} else {
		n->slot = fs->n_slots++;
		fs->slot_gen[n->slot] = 0;
	}
	n->gen = fs->slot_gen[n->slot];
	n->fd = n->data = n->wd = -1;
	ring_init(&n->fd_lru);
	ring_init(&n->data_lru);
	fs->slots[n->slot] = n;
	fs->n_nodes++;
	*ret = n;
	return 0;
}

/* ---- descriptors ---- */

static void drop_fd(struct fs *fs, struct fs_node *n)
{
	if (n->fd < 0)
		return;
	sb_fd_close(&n->fd);
	ring_del(&n->fd_lru);
	fs->n_fds--;
}

static void drop_data(struct fs *fs, struct fs_node *n)
{
	if (n->data < 0)
		return;
	sb_fd_close(&n->data);
	if (n->data_kept)
		fs->n_kept--;
	else
		fs->n_data--;
	n->data_kept = false;
	n->data_rw = false;
	ring_del(&n->data_lru);
}

static void evict_fds(struct fs *fs)
{
	while (fs->n_fds > fs->max_fds && fs->fd_lru.next != &fs->fd_lru)
		drop_fd(fs, NODE_OF(fs->fd_lru.next, fd_lru));
}

static void keep_fd(struct fs *fs, struct fs_node *n, int fd)
{
	n->fd = fd;
	fs->n_fds++;
	if (!n->pinned)
		ring_add(&fs->fd_lru, &n->fd_lru);
	evict_fds(fs);
}

/* Open @n beneath its parent, which has a descriptor. */
static int reopen(struct fs *fs, struct fs_node *n)
{
	sb_autofd int fd = -1;
	struct fs_ident id;
	struct statx stx;
	int r;

	if (!n->name || n->parent->fd < 0)
		return -ESTALE;
	r = fs_open_path(n->parent->fd, n->name, &fd);
	if (r == 0)
		r = fs_statx(fd, &stx);
	if (r < 0)
		return r == -ENOENT || r == -ENOTDIR || r == -ELOOP ? -ESTALE : r;
	fs_ident_of(&stx, &id);
	if (!ident_eq(&id, &n->id))
		return -ESTALE;
	keep_fd(fs, n, sb_fd_take(&fd));
	return 0;
}

int fs_node_fd(struct fs *fs, struct fs_node *n)
{
	if (n->virtual)
		return -EISDIR;
	if (n->fd >= 0) {
		if (ring_in(&n->fd_lru)) {
			ring_del(&n->fd_lru);
			ring_add(&fs->fd_lru, &n->fd_lru);
		}
		return n->fd;
	}
	for (int step = 0; n->fd < 0; step++) {
		struct fs_node *at = n;
		int r;

		if (step > MAX_DEPTH)
			return -ESTALE;
		while (at->parent && !at->parent->virtual && at->parent->fd < 0)
			at = at->parent;
		if (!at->parent || at->parent->virtual)
			return -ESTALE; /* roots are pinned: not reached */
		r = reopen(fs, at);
		if (r < 0)
			return r;
	}
	return n->fd;
}

int fs_node_pin(struct fs *fs, struct fs_node *n)
{
	int fd;

	if (n->pinned)
		return 0;
	if (fs->n_pinned >= fs->max_pinned)
		return -ENFILE;
	fd = fs_node_fd(fs, n);
	if (fd < 0)
		return fd;
	n->pinned = true;
	fs->n_pinned++;
	if (ring_in(&n->fd_lru))
		ring_del(&n->fd_lru);
	return 0;
}

void fs_node_give_data(struct fs *fs, struct fs_node *n, int *fd, bool rw, bool keep)
{
	struct fs_link *head = keep ? &fs->kept_lru : &fs->data_lru;
	uint32_t *count = keep ? &fs->n_kept : &fs->n_data;
	uint32_t max = keep ? fs->max_kept : FS_MAX_DATA;

	drop_data(fs, n);
	n->data = sb_fd_take(fd);
	n->data_rw = rw;
	n->data_kept = keep;
	(*count)++;
	ring_add(head, &n->data_lru);
	while (*count > max && head->next != &n->data_lru)
		drop_data(fs, NODE_OF(head->next, data_lru));
}

/*
 * An image shows what everybody on the host may read. The server may be able to read more, because
 * it runs as the caller: that is not the guest's.
 */
bool fs_public(const struct fs *fs, int fd, mode_t need)
{
	struct stat st;

	if (!fs->conf->root_is_root)
		return true;
	return fstat(fd, &st) == 0 && (st.st_mode & need) == need;
}

int fs_node_data(struct fs *fs, struct fs_node *n, bool write)
{
	sb_autofd int fd = -1;
	char path[16];
	bool rw = !fs->conf->ro && !n->prot;
	int at;

	if (n->virtual || S_ISDIR(n->id.type))
		return -EISDIR;
	if (!S_ISREG(n->id.type)) /* a FIFO or a device is never opened */
		return -EINVAL;
	if (write && !rw)
		return -EROFS;
	if (n->data >= 0 && (n->data_rw || !write)) {
		ring_del(&n->data_lru);
		ring_add(n->data_kept ? &fs->kept_lru : &fs->data_lru, &n->data_lru);
		return n->data;
	}
	at = fs_node_fd(fs, n);
	if (at < 0)
		return at;
	/* The very object behind the O_PATH descriptor, whatever became of its name. */
	fs_fd_name(at, path);
	fd = open(path, (rw ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 && rw && !write) {
		rw = false;
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	}
	if (fd < 0 && rw && errno == EACCES)
		fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (!fs_public(fs, fd, S_IROTH))
		return -EACCES;
	at = fd;
	fs_node_give_data(fs, n, &fd, rw, false);
	return at;
}

/* ---- life ---- */

static void node_free(struct fs *fs, struct fs_node *n)
{
	struct statx stx;

	fs_dir_drop(fs, fs_node_id(fs, n));
	fs_notify_unwatch(fs, n);
	if (n->orphan && n->fd >= 0 && fs_statx(n->fd, &stx) == 0 &&
	    (stx.stx_nlink == 0 || S_ISDIR(n->id.type)))
		fs_quota_gone(fs, stx.stx_blocks);
	drop_data(fs, n);
	if (n->pinned && n->nlookup != UINT64_MAX)
		fs->n_pinned--;
	drop_fd(fs, n);
	hash_del(fs, n);
	for (size_t i = 0; i < n->n_vents; i++)
		free(n->vents[i].name);
	free(n->vents);
	free(n->name);
	fs->slots[n->slot] = NULL;
	fs->slot_gen[n->slot]++;
	fs->free_slots[fs->n_free++] = n->slot;
	fs->n_nodes--;
	free(n);
}

static bool unused(const struct fs *fs, const struct fs_node *n)
{
	return n != fs->root && n->nlookup == 0 && n->kids == 0;
}

/*
 * A node that nobody needs is freed when the request in hand is over: until then its functions may
 * hold a pointer to it, whatever the guest forgot before.
 */
static void node_reap(struct fs *fs, struct fs_node *n)
{
	if (!unused(fs, n) || n->queued)
		return;
	n->queued = true;
	n->reap_next = fs->reap;
	fs->reap = n;
}

void fs_node_sweep(struct fs *fs)
{
	struct fs_node *n;

	while ((n = fs->reap)) {
		struct fs_node *parent = n->parent;

		fs->reap = n->reap_next;
		n->queued = false;
		if (!unused(fs, n)) /* found again meanwhile */
			continue;
		node_free(fs, n);
		if (parent) {
			parent->kids--;
			node_reap(fs, parent);
		}
	}
}

void fs_node_forget(struct fs *fs, uint64_t id, uint64_t count)
{
	struct fs_node *n = fs_node_get(fs, id);

	if (!n || n == fs->root || n->nlookup == UINT64_MAX) /* the last: fixed nodes */
		return;
	n->nlookup -= SB_MIN(count, n->nlookup);
	node_reap(fs, n);
}

/* Whether @n is @at or above it. */
static bool is_above(const struct fs_node *n, const struct fs_node *at)
{
	for (; at; at = at->parent)
		if (at == n)
			return true;
	return false;
}

static void place_rules(struct fs *fs, struct fs_node *n)
{
	const struct fs_node *p = n->parent;
	const struct fs_rule *at = p == fs->root ? &fs->conf->rules : p->rule;
	const struct fs_rule *r = fs->conf->n_rules > 0 ? fs_rule_sub(at, n->name) : NULL;
	bool prot = p->prot || (r && r->protect);

	/* another name of a protected file stays protected */
	n->prot = S_ISDIR(n->id.type) ? prot : n->prot || prot;
	n->rule = r;
}

void fs_node_moved(struct fs *fs, struct fs_node *n, struct fs_node *parent, const char *name)
{
	struct fs_node *old = n->parent;
	char *copy;

	if (old == parent && n->name && strcmp(n->name, name) == 0)
		return;
	if (n == fs->root || n->nlookup == UINT64_MAX)
		return;
	/* the host may have moved directories so that our picture would become a ring */
	if (S_ISDIR(n->id.type) && is_above(n, parent))
		return;
	copy = strdup(name);
	if (!copy)
		return; /* the old name stays: at worst ESTALE later */
	free(n->name);
	n->name = copy;
	n->parent = parent;
	parent->kids++;
	place_rules(fs, n);
	if (old) {
		old->kids--;
		node_reap(fs, old);
	}
}

int fs_node_enter(struct fs *fs, struct fs_node *parent, const char *name, int *fd,
		  const struct statx *stx, struct fs_node **ret)
{
	struct fs_ident id;
	struct fs_node *n;
	int r;

	fs_ident_of(stx, &id);
	n = fs_node_find(fs, &id);
	if (n) {
		if (n->nlookup < UINT64_MAX - 1)
			n->nlookup++;
		fs_node_moved(fs, n, parent, name);
		if (n->fd < 0 && !n->virtual)
			keep_fd(fs, n, sb_fd_take(fd));
		else
			sb_fd_close(fd);
		*ret = n;
		return 0;
	}
	if (id.dev != parent->id.dev) {
		r = sb_kernfs_check(*fd);
		if (r < 0)
			return r;
	}
	r = node_new(fs, &n);
	if (r < 0)
		return r;
	n->name = strdup(name);
	if (!n->name) {
		node_free(fs, n);
		return -ENOMEM;
	}
	n->id = id;
	n->nlookup = 1;
	n->parent = parent;
	parent->kids++;
	place_rules(fs, n);
	hash_add(fs, n);
	hash_grow(fs);
	keep_fd(fs, n, sb_fd_take(fd));
	*ret = n;
	return 0;
}

/* ---- roots ---- */

static int add_fixed(struct fs *fs, struct fs_node *parent, const char *name, size_t len,
		     struct fs_node **ret)
{
	struct fs_vent *v;
	struct fs_node *n;
	int r = node_new(fs, &n);

	if (r < 0)
		return r;
	n->pinned = true;
	n->nlookup = UINT64_MAX; /* never forgotten */
	if (!parent) {
		fs->root = n;
		*ret = n;
		return 0;
	}
	n->parent = parent;
	parent->kids++;
	v = reallocarray(parent->vents, parent->n_vents + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	parent->vents = v;
	v[parent->n_vents].name = strndup(name, len);
	v[parent->n_vents].node = n;
	if (!v[parent->n_vents].name)
		return -ENOMEM;
	parent->n_vents++;
	*ret = n;
	return 0;
}

/* Let @n stand for the object behind @fd, which the process keeps open. */
static int attach(struct fs *fs, struct fs_node *n, int fd)
{
	sb_autofd int own = -1;
	struct statx stx;
	int r = sb_kernfs_check(fd);

	if (r < 0)
		return r;
	/* whatever mode the descriptor was opened with, ours is O_PATH and no other program's */
	own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (own < 0)
		return -errno;
	r = fs_statx(own, &stx);
	if (r < 0)
		return r;
	fs_ident_of(&stx, &n->id);
	if (!S_ISDIR(n->id.type) && !S_ISREG(n->id.type))
		return -ENOTSUP;
	n->fd = sb_fd_take(&own);
	fs->n_fds++;
	hash_add(fs, n);
	return 0;
}

static void make_virtual(struct fs_node *n)
{
	n->virtual = true;
	n->id = (struct fs_ident){ .dev = 0, .ino = n->slot + 1U, .type = S_IFDIR };
}

static int add_leaf(struct fs *fs, const struct fs_leaf *leaf)
{
	struct fs_node *at = fs->root;
	const char *p = leaf->path;

	for (;;) {
		size_t len = strcspn(p, "/");
		struct fs_node *next = NULL;
		int r;

		for (size_t i = 0; i < at->n_vents; i++)
			if (strlen(at->vents[i].name) == len &&
			    memcmp(at->vents[i].name, p, len) == 0)
				next = at->vents[i].node;
		if (!next) {
			r = add_fixed(fs, at, p, len, &next);
			if (r < 0)
				return r;
			if (p[len] == '/') {
				make_virtual(next);
				hash_add(fs, next);
			}
		}
		if (p[len] == '\0')
			return attach(fs, next, leaf->fd);
		at = next;
		p += len + 1;
	}
}

static void set_limits(struct fs *fs)
{
	struct rlimit rl = { 1024, 1024 };
	uint32_t n;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_cur < rl.rlim_max) {
		rl.rlim_cur = rl.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &rl);
		(void)getrlimit(RLIMIT_NOFILE, &rl);
	}
	n = rl.rlim_cur > 262144 ? 262144 : (uint32_t)rl.rlim_cur;
	/* data, streams, fixed roots and the standard ones come off the top */
	n = n > FS_MAX_DATA + 400 ? n - FS_MAX_DATA - 300 : 100;
	fs->max_pinned = n / 4;
	fs->max_kept = n / 4;
	fs->max_fds = n - fs->max_pinned - fs->max_kept;
}

int fs_node_setup(struct fs *fs, struct sb_err *err)
{
	struct fs_node *n;
	int r;

	ring_init(&fs->fd_lru);
	ring_init(&fs->data_lru);
	ring_init(&fs->kept_lru);
	set_limits(fs);
	fs->cap_hash = 1024;
	fs->hash = calloc(fs->cap_hash, sizeof(struct fs_node *));
	r = fs->hash ? add_fixed(fs, NULL, NULL, 0, &n) : -ENOMEM;
	if (r < 0)
		return sb_err_set(err, r, "no memory");
	if (fs->conf->kind == FS_ROOT_TREE) {
		make_virtual(n);
		hash_add(fs, n);
		for (size_t i = 0; i < fs->conf->n_leaves; i++) {
			r = add_leaf(fs, &fs->conf->leaves[i]);
			if (r < 0)
				return sb_err_set(err, r, "cannot serve %s: %s",
						  fs->conf->leaves[i].path, strerror(-r));
		}
		return 0;
	}
	r = attach(fs, n, fs->conf->root_fd);
	if (r == 0 && S_ISDIR(n->id.type) != (fs->conf->kind == FS_ROOT_DIR))
		r = -ENOTDIR;
	if (r < 0)
		return sb_err_set(err, r, "cannot serve the root: %s", strerror(-r));
	fs->root_dev = n->id.dev;
	return 0;
}

void fs_node_teardown(struct fs *fs)
{
	for (uint32_t i = 0; i < fs->n_slots; i++)
		if (fs->slots[i])
			node_free(fs, fs->slots[i]);
	free(fs->slots);
	free(fs->free_slots);
	free(fs->slot_gen);
	free(fs->hash);
	fs->root = NULL;
}
