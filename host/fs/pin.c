/*
 * Guarded files that have other names (hard links). What guards a file is its node, once its guarded
 * name was looked up; so every such file is looked up before the guest can ask for it by another name,
 * and is never forgotten. Of hidden ones their identity is kept instead: no name leads to them.
 *
 * Only what is there at the start; a link that the guest makes later is refused as it is made.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "fs/fs.h"

#define MAX_LOOKED 5000U /* entries of guarded folders */

struct pins {
	struct fs *fs;
	unsigned int left;
	unsigned int depth;
};

static void pin_rules(struct pins *p, struct fs_node *dir, const struct fs_rule *rules);
static int pin_all(struct pins *p, struct fs_node *dir);

static int pin_hidden(struct pins *p, struct fs_node *dir, const char *name)
{
	struct fs *fs = p->fs;
	sb_autofd int fd = -1;
	struct fs_ident *more;
	struct statx stx;
	int r = fs_node_fd(fs, dir);

	if (r >= 0)
		r = fs_open_path(r, name, &fd);
	if (r == 0)
		r = fs_statx(fd, &stx);
	if (r < 0 || !S_ISREG(stx.stx_mode) || stx.stx_nlink < 2)
		return 0;
	more = realloc(fs->hidden, (fs->n_hidden + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	fs->hidden = more;
	fs_ident_of(&stx, &fs->hidden[fs->n_hidden++]);
	return 0;
}

/* @rule: NULL when the folder is guarded as a whole. */
static int pin_name(struct pins *p, struct fs_node *dir, const char *name, const struct fs_rule *rule)
{
	struct fuse_entry_param e;
	struct fs_node *n;
	int r = 0;

	if (rule && rule->hide)
		return pin_hidden(p, dir, name);
	if (p->left == 0)
		return -E2BIG;
	p->left--;
	if (fs_lookup(p->fs, dir, name, &e) < 0)
		return 0;
	n = fs_node_get(p->fs, e.ino);
	if (n && S_ISDIR(e.attr.st_mode) && p->depth < 64) {
		p->depth++;
		if (n->prot)
			r = pin_all(p, n);
		else if (rule)
			pin_rules(p, n, rule);
		p->depth--;
	}
	if (!n || !n->prot || !S_ISREG(e.attr.st_mode) || e.attr.st_nlink < 2)
		fs_node_forget(p->fs, e.ino, 1);
	return r;
}

static int pin_all(struct pins *p, struct fs_node *dir)
{
	int at = fs_node_fd(p->fs, dir);
	int fd = at < 0 ? -1 : openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	int r = 0;

	if (!d) {
		sb_fd_close(&fd);
		return 0;
	}
	while (r == 0 && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = pin_name(p, dir, e->d_name, NULL);
	(void)closedir(d);
	return r;
}

static void pin_rules(struct pins *p, struct fs_node *dir, const struct fs_rule *rules)
{
	for (const struct fs_rule *r = rules->sub; r; r = r->next)
		if (pin_name(p, dir, r->name, r) < 0)
			sb_log("guarded folder %s has too many files: those with hard links elsewhere are "
			       "not all looked for", r->name);
}

void fs_pin_guarded(struct fs *fs)
{
	struct pins p = { .fs = fs, .left = MAX_LOOKED };

	if (fs->conf->n_rules > 0 && fs->conf->kind == FS_ROOT_DIR)
		pin_rules(&p, fs->root, &fs->conf->rules);
}

bool fs_pin_hides(const struct fs *fs, const struct statx *stx)
{
	struct fs_ident id;

	if (fs->n_hidden == 0)
		return false;
	fs_ident_of(stx, &id);
	for (size_t i = 0; i < fs->n_hidden; i++)
		if (fs->hidden[i].dev == id.dev && fs->hidden[i].ino == id.ino)
			return true;
	return false;
}
