/* What the session is laid on: layers, the upper one, task and builder, as the caller names them. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "crypto/crypto.h"
#include "launch.h"
#include "plan_make_i.h"
#include "state/upper.h"

static int oom(struct sb_err *err)
{
	return sb_err_set(err, -ENOMEM, "out of memory");
}

static char *copy(const char *s)
{
	return s ? strdup(s) : NULL;
}

/* ---- layers ---- */

static int open_layer(const char *path, int *ret, struct stat *st, struct sb_err *err)
{
	sb_autofd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 || fstat(fd, st) < 0)
		return sb_err_set(err, -errno, "layer \"%.300s\": %s", path, strerror(errno));
	if (!S_ISREG(st->st_mode))
		return sb_err_set(err, -EINVAL, "layer \"%.300s\": not a regular file", path);
	*ret = sb_fd_take(&fd);
	return 0;
}

static void identify(struct sb_plan_layer *l, const struct stat *st)
{
	l->dev = st->st_dev;
	l->ino = st->st_ino;
	l->size = (uint64_t)st->st_size;
	l->ctime_ns = (uint64_t)st->st_ctim.tv_sec * 1000000000U + (uint64_t)st->st_ctim.tv_nsec;
}

static bool same_file(const struct sb_plan_layer *a, const struct sb_plan_layer *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       a->ctime_ns == b->ctime_ns;
}

static int changed(const char *path, struct sb_err *err)
{
	return sb_err_set(err, -ESTALE,
			  "layer \"%.300s\": it is not the file that its digest was taken of; remove "
			  "it, so that it is made again", path);
}

static int add_layer(struct sb_plan *p, const struct sb_plan_layer *from, struct sb_err *err)
{
	struct sb_plan_layer *l = &p->layers[p->n_layers];
	sb_autofd int fd = -1;
	struct stat st;
	int r = open_layer(from->path, &fd, &st, err);

	if (r < 0)
		return r;
	*l = *from;
	identify(l, &st);
	l->path = strdup(from->path);
	p->n_layers++;
	if (!l->path)
		return oom(err);
	return same_file(l, from) ? 0 : changed(from->path, err);
}

/* ---- upper ---- */

/* The instance's own: nobody else may have been able to write it. */
static int set_upper(struct sb_plan_upper *u, struct sb_err *err)
{
	bool disk = u->kind == SB_UPPER_DISK;
	struct stat st;

	if (u->kind == SB_UPPER_TMPFS)
		return 0;
	if (lstat(u->path, &st) < 0)
		return sb_err_set(err, -errno, "upper layer \"%.300s\": %s", u->path,
				  strerror(errno));
	if (disk ? !S_ISREG(st.st_mode) || st.st_nlink != 1 : !S_ISDIR(st.st_mode))
		return sb_err_set(err, -EINVAL, "upper layer \"%.300s\": not %s", u->path,
				  disk ? "a regular file with one name" : "a directory");
	if (st.st_uid != geteuid() || (st.st_mode & 077) != 0)
		return sb_err_set(err, -EPERM,
				  "upper layer \"%.300s\": must be yours and closed to everybody "
				  "else (chmod go=)", u->path);
	u->dev = st.st_dev;
	u->ino = st.st_ino;
	return 0;
}

/* Of an instance: its directory holds the one that its runtime needs. */
static int own_upper(struct sb_plan *p, const struct plan_input *in, const struct launch_target *t,
		     struct sb_err *err)
{
	char path[SB_PLAN_MAX_PATH + 1];
	int64_t disk = conf_int(in, "resources.disk_size_mb", 0);
	int r = upper_make(t->upper_dir, p->provider, (uint64_t)disk, path, &p->upper.kind, NULL, err);

	if (r < 0)
		return r;
	p->upper.path = strdup(path);
	return p->upper.path ? set_upper(&p->upper, err) : oom(err);
}

static int set_target(struct sb_plan *p, const struct plan_input *in, const struct launch_target *t,
		      struct sb_err *err)
{
	int r = 0;

	p->builder = t->builder;
	if (t->task != SB_TASK_NONE)
		p->task = t->task;
	p->instance = copy(t->instance);
	if (t->instance && !p->instance)
		return oom(err);
	if (t->n_layers > SB_PLAN_MAX_LAYERS)
		return sb_err_set(err, -E2BIG, "%zu layers, at most %d are possible", t->n_layers,
				  SB_PLAN_MAX_LAYERS);
	p->layers = calloc(SB_PLAN_MAX_LAYERS, sizeof(*p->layers));
	if (!p->layers)
		return oom(err);
	for (size_t i = 0; r == 0 && i < t->n_layers; i++)
		r = add_layer(p, &t->layers[i], err);
	if (r == 0 && t->upper_dir)
		return own_upper(p, in, t, err);
	if (r < 0 || t->upper == SB_UPPER_NONE || t->upper == SB_UPPER_TMPFS)
		return r;
	p->upper.kind = t->upper;
	p->upper.path = copy(t->upper_path);
	if (!p->upper.path)
		return t->upper_path ? oom(err)
				     : sb_err_set(err, -EINVAL, "upper layer: it has no path");
	return set_upper(&p->upper, err);
}

int plan_set_root(struct sb_plan *p, const struct plan_input *in, struct sb_err *err)
{
	p->upper.kind = SB_UPPER_TMPFS;
	p->task = SB_TASK_COMMAND;
	return in->target ? set_target(p, in, in->target, err) : 0;
}

/* ---- of a plan made earlier or elsewhere ---- */

/* Here it may be another file: then the content counts. */
static int renew_layer(struct sb_plan_layer *l, struct sb_err *err)
{
	struct sb_plan_layer here = { .path = l->path };
	uint8_t sha[SB_SHA256_LEN];
	sb_autofd int fd = -1;
	struct stat st;
	struct stat after;
	uint64_t len = 0;
	int r = open_layer(l->path, &fd, &st, err);

	if (r < 0)
		return r;
	identify(&here, &st);
	if (same_file(&here, l))
		return 0;
	r = sb_sha256_fd(fd, sha, &len);
	if (r == 0 && fstat(fd, &after) < 0)
		r = -errno;
	if (r < 0)
		return sb_err_set(err, r, "layer \"%.300s\": %s", l->path, strerror(-r));
	if (memcmp(sha, l->sha256, sizeof(sha)) != 0)
		return sb_err_set(err, -ESTALE,
				  "plan refused: layer \"%.300s\" has other content here", l->path);
	identify(l, &after);
	return same_file(l, &here) ? 0 : changed(l->path, err);
}

int plan_renew_root(struct sb_plan *p, struct sb_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->n_layers; i++)
		r = renew_layer(&p->layers[i], err);
	return r < 0 ? r : set_upper(&p->upper, err);
}
