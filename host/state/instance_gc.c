/* Directories of <state>/instances that no row names. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "os/rmtree.h"
#include "state_i.h"

/* Return: 1: a row names it; 0; -errno. */
static int is_named(struct state *s, uint64_t id, struct sb_err *err)
{
	sb_autostmt sqlite3_stmt *st = NULL;
	int r = state_prepare(s, "SELECT 1 FROM instances WHERE id = ?1", &st, err);
	int rc;

	if (r < 0)
		return r;
	(void)sqlite3_bind_int64(st, 1, (int64_t)id);
	rc = sqlite3_step(st);
	return rc == SQLITE_ROW ? 1 : rc == SQLITE_DONE ? 0 : state_fail(s, "read", err);
}

/* Under the database's lock: a start makes its row and its directory in one transaction. */
static int sweep(struct state *s, DIR *list, size_t *n, struct sb_err *err)
{
	const struct dirent *e;
	int r = 0;

	while (r == 0 && (e = readdir(list)) != NULL) {
		sb_autofd int lock = -1;
		uint64_t id;

		if (sb_num_u64(e->d_name, 1, INT64_MAX, &id) < 0)
			continue;
		r = is_named(s, id, err);
		if (r != 0) {
			r = r > 0 ? 0 : r;
			continue;
		}
		if (state_lock(s, (int64_t)id, &lock) == -EBUSY) /* of one that was removed while it ran */
			continue;
		r = sb_rmtree(s->instances, e->d_name);
		if (r < 0)
			return sb_err_set(err, r, "%.200s/instances/%s cannot be removed: %s", s->dir, e->d_name,
					  strerror(-r));
		(*n)++;
	}
	return r;
}

int instance_gc(struct state *s, size_t *n, struct sb_err *err)
{
	int fd = openat(s->instances, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	int r;

	if (!list) {
		r = sb_err_set(err, -errno, "%.200s/instances: %s", s->dir, strerror(errno));
		sb_fd_close(&fd);
		return r;
	}
	r = state_begin(s, err);
	if (r == 0) {
		r = sweep(s, list, n, err);
		state_rollback(s); /* nothing was written */
	}
	(void)closedir(list);
	return r;
}
