/*
 * Changes made on the host while the guest has things cached: one inotify watch for each directory
 * that the guest looked into. Its own changes come back as events too and are told apart: contents
 * and attributes by comparing with what it was last told, names by a list of expected events.
 *
 * Only over the port: on /dev/fuse itself a notification waits for locks that a request under way
 * holds, and this one thread would have to answer that request. There, time-outs of a second do.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "fs/fs.h"

#define MASK                                                                                       \
	(IN_MODIFY | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |             \
	 IN_EXCL_UNLINK | IN_ONLYDIR)
#define NAMES (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO)
#define MAX_EXPECT 4096U /* power of two */
#define MAX_TOLD 256U
#define PERIOD_NS 10000000ULL /* between two batches */
#define READS 4 /* of events in a row */
#define MAX_WATCHES 65536U

struct fs_expect {
	int wd;
	uint32_t hash;
};

static uint32_t name_hash(const char *s)
{
	uint32_t h = 2166136261U;

	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 16777619U;
	return h;
}

static uint32_t watch_limit(void)
{
	sb_autofree char *text = NULL;
	size_t len;
	uint64_t v;

	if (sb_fd_read_file(AT_FDCWD, "/proc/sys/fs/inotify/max_user_watches", 64, &text, &len) < 0)
		return 1024;
	text[strcspn(text, "\n")] = '\0';
	if (sb_num_u64(text, 0, UINT32_MAX, &v) < 0)
		return 1024;
	/* the user's editors want some as well */
	return (uint32_t)SB_MIN(v / 4, MAX_WATCHES);
}

int fs_notify_init(struct fs *fs)
{
	struct fs_notify *y = &fs->notify;

	y->fd = -1;
	if (fs->conf->cache == FS_CACHE_LONG || fs->io.chardev)
		return 0;
	y->max_watches = watch_limit();
	y->cap_wd = 1024;
	y->by_wd = calloc(y->cap_wd, sizeof(struct fs_node *));
	y->expect = calloc(MAX_EXPECT, sizeof(*y->expect));
	y->told = calloc(MAX_TOLD, sizeof(*y->told));
	if (!y->by_wd || !y->expect || !y->told)
		return -ENOMEM;
	y->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	return 0; /* none left for this user: short time-outs instead */
}

void fs_notify_done(struct fs *fs)
{
	sb_fd_close(&fs->notify.fd);
	free(fs->notify.by_wd);
	free(fs->notify.expect);
	free(fs->notify.told);
	fs->notify.by_wd = NULL;
	fs->notify.expect = NULL;
	fs->notify.told = NULL;
}

/* ---- wd -> node: open addressing, linear ---- */

static uint32_t wd_slot(const struct fs_notify *y, int wd)
{
	uint32_t i = ((uint32_t)wd * 2654435761U) & (y->cap_wd - 1);

	while (y->by_wd[i] && y->by_wd[i]->wd != wd)
		i = (i + 1) & (y->cap_wd - 1);
	return i;
}

static int wd_grow(struct fs_notify *y)
{
	uint32_t old_cap = y->cap_wd;
	struct fs_node **old = y->by_wd;
	struct fs_node **bigger;

	if ((y->n_watches + 1) * 2 <= old_cap)
		return 0;
	bigger = calloc((size_t)old_cap * 2, sizeof(struct fs_node *));
	if (!bigger)
		return -ENOMEM;
	y->by_wd = bigger;
	y->cap_wd = old_cap * 2;
	for (uint32_t i = 0; i < old_cap; i++)
		if (old[i])
			bigger[wd_slot(y, old[i]->wd)] = old[i];
	free(old);
	return 0;
}

static void wd_remove(struct fs_notify *y, int wd)
{
	uint32_t i = wd_slot(y, wd);

	if (!y->by_wd[i])
		return;
	y->by_wd[i] = NULL;
	y->n_watches--;
	for (uint32_t j = (i + 1) & (y->cap_wd - 1); y->by_wd[j]; j = (j + 1) & (y->cap_wd - 1)) {
		struct fs_node *n = y->by_wd[j];

		y->by_wd[j] = NULL;
		y->by_wd[wd_slot(y, n->wd)] = n;
	}
}

void fs_notify_watch(struct fs *fs, struct fs_node *dir)
{
	struct fs_notify *y = &fs->notify;
	char path[16];
	uint32_t slot;
	int fd;
	int wd;

	if (y->fd < 0 || dir->wd != -1 || dir->virtual)
		return;
	dir->wd = -2;
	if (y->n_watches >= y->max_watches || wd_grow(y) < 0)
		return;
	fd = fs_node_fd(fs, dir);
	if (fd < 0)
		return;
	fs_fd_name(fd, path);
	wd = inotify_add_watch(y->fd, path, MASK);
	if (wd < 0)
		return;
	slot = wd_slot(y, wd);
	if (y->by_wd[slot]) /* another node of the same directory has it */
		return;
	dir->wd = wd;
	y->by_wd[slot] = dir;
	y->n_watches++;
}

void fs_notify_unwatch(struct fs *fs, struct fs_node *dir)
{
	if (dir->wd < 0)
		return;
	wd_remove(&fs->notify, dir->wd);
	(void)inotify_rm_watch(fs->notify.fd, dir->wd);
	dir->wd = -1;
}

void fs_notify_expect(struct fs *fs, struct fs_node *dir, const char *name)
{
	struct fs_notify *y = &fs->notify;

	if (y->fd < 0 || dir->wd < 0)
		return;
	if (y->expect_tail - y->expect_head == MAX_EXPECT)
		y->expect_head++; /* at worst an invalidation too many */
	y->expect[y->expect_tail++ & (MAX_EXPECT - 1)] =
		(struct fs_expect){ dir->wd, name_hash(name) };
}

static bool expected(const struct fs_notify *y, int wd, const char *name)
{
	uint32_t h = name_hash(name);

	for (uint32_t i = y->expect_head; i != y->expect_tail; i++) {
		const struct fs_expect *e = &y->expect[i & (MAX_EXPECT - 1)];

		if (e->wd == wd && e->hash == h)
			return true;
	}
	return false;
}

/* ---- events ---- */

/* The same name again in one batch needs no telling: a program on the host may rename in a loop. */
static bool told_already(struct fs_notify *y, int wd, const char *name)
{
	struct fs_expect now = { wd, name_hash(name) };
	struct fs_expect *e = &y->told[(now.hash ^ (uint32_t)wd) % MAX_TOLD];

	if (e->wd == now.wd && e->hash == now.hash)
		return true;
	*e = now;
	return false;
}

static void inval(struct fs *fs, const struct fs_node *n)
{
	/* attributes only (a negative offset): the guest's kernel fetches them again and drops its
	 * pages when size or time differ, and nothing here waits for a page under way */
	(void)fuse_lowlevel_notify_inval_inode(fs->se, fs_node_id(fs, n), -1, 0);
}

static void compare(struct fs *fs, struct fs_node *n, const struct statx *stx)
{
	struct fs_known was = n->known;

	fs_attr_known(n, stx);
	if (memcmp(&was, &n->known, sizeof(was)) != 0)
		inval(fs, n);
}

static void on_event(struct fs *fs, struct fs_node *dir, uint32_t mask, const char *name)
{
	struct fs_ident id;
	struct fs_node *n;
	struct statx stx;
	int fd;

	fd = fs_node_fd(fs, dir);
	if (fd < 0)
		return;
	if (!name) {
		if (fs_statx(fd, &stx) == 0)
			compare(fs, dir, &stx);
		return;
	}
	if (mask & NAMES) {
		if (expected(&fs->notify, dir->wd, name))
			return;
		if (told_already(&fs->notify, dir->wd, name))
			return;
		inval(fs, dir);
		(void)fuse_lowlevel_notify_inval_entry(fs->se, fs_node_id(fs, dir), name,
						       strlen(name));
		return;
	}
	if (fs_statx_at(fd, name, &stx) < 0)
		return;
	fs_ident_of(&stx, &id);
	n = fs_node_find(fs, &id);
	if (n && n->nlookup > 0)
		compare(fs, n, &stx);
}

/* Events were lost: from here on short time-outs only, and everything is told to be stale. */
static void overflow(struct fs *fs)
{
	fs->notify.broken = true;
	for (uint32_t i = 0; i < fs->n_slots; i++) {
		struct fs_node *n = fs->slots[i];

		if (!n || n->virtual || n->nlookup == 0)
			continue;
		inval(fs, n);
		if (n->parent && n->name && n->name[0] != '/')
			(void)fuse_lowlevel_notify_inval_entry(fs->se, fs_node_id(fs, n->parent),
							       n->name, strlen(n->name));
	}
}

static uint64_t now_ns(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_MONOTONIC, &t) < 0)
		return 0;
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

int fs_notify_wait_ms(const struct fs *fs)
{
	uint64_t now = now_ns();

	if (fs->notify.due_ns <= now)
		return 0;
	return (int)((fs->notify.due_ns - now + 999999) / 1000000);
}

void fs_notify_read(struct fs *fs)
{
	struct fs_notify *y = &fs->notify;
	_Alignas(struct inotify_event) char buf[16384];
	ssize_t len = 0;

	y->due_ns = now_ns() + PERIOD_NS;
	memset(y->told, 0, MAX_TOLD * sizeof(*y->told));
	/* bounded, so that a busy host does not keep the guest waiting */
	for (int i = 0; i < READS && !fs->io.dead; i++) {
		len = read(y->fd, buf, sizeof(buf));
		if (len <= 0)
			break;
		for (ssize_t at = 0; at < len;) {
			const struct inotify_event *e = (const void *)(buf + at);
			struct fs_node *dir;

			at += (ssize_t)(sizeof(*e) + e->len);
			if (e->mask & IN_Q_OVERFLOW) {
				overflow(fs);
				continue;
			}
			dir = y->by_wd[wd_slot(y, e->wd)];
			if (!dir)
				continue;
			if (e->mask & IN_IGNORED) { /* the directory is gone */
				wd_remove(y, e->wd);
				dir->wd = -2;
				continue;
			}
			on_event(fs, dir, e->mask, e->len > 0 ? e->name : NULL);
		}
	}
	/* once the queue is empty, the events of all finished requests have come */
	if (len < 0 && errno == EAGAIN)
		y->expect_head = y->expect_tail;
}
