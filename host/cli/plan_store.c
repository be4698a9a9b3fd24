#include "plan_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "conn/plan_fd.h"
#include "crypto/crypto.h"

#define SUFFIX ".plan"
#define NAME_LEN (32 + sizeof(SUFFIX) - 1)
#define SLACK 64 /* more than PLAN_STORE_KEEP by so many: time to clear up */
#define ID_MIN 4
#define REMAINS_S 3600

static int open_store(const struct sb_dirs *d, bool make, int *ret, struct sb_err *err)
{
	sb_autofd int state = open(d->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (state < 0 || (make && mkdirat(state, "plans", 0700) < 0 && errno != EEXIST))
		return sb_err_set(err, -errno, "cannot use %s/plans: %s", d->state,
				  strerror(errno));
	*ret = openat(state, "plans", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (*ret < 0)
		return sb_err_set(err, -errno, "cannot open %s/plans: %s", d->state,
				  strerror(errno));
	return 0;
}

static bool is_stored(const char *name)
{
	return strlen(name) == NAME_LEN && strspn(name, "0123456789abcdef") == 32 &&
	       strcmp(name + 32, SUFFIX) == 0;
}

/* ---- keeping the newest ---- */

struct aged {
	char name[NAME_LEN + 1];
	struct timespec at;
};

static int oldest_first(const void *a, const void *b)
{
	const struct aged *x = a;
	const struct aged *y = b;

	if (x->at.tv_sec != y->at.tv_sec)
		return x->at.tv_sec < y->at.tv_sec ? -1 : 1;
	return (x->at.tv_nsec > y->at.tv_nsec) - (x->at.tv_nsec < y->at.tv_nsec);
}

static DIR *list(int store)
{
	int fd = openat(store, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		(void)close(fd);
	return dir;
}

/* Best effort: too many files are no harm. */
static void prune(int store)
{
	sb_autofree struct aged *v = NULL;
	DIR *dir = list(store);
	struct dirent *e;
	struct stat st;
	size_t n = 0;
	size_t k = 0;

	while (dir && (e = readdir(dir))) {
		n += is_stored(e->d_name);
		/* what a killed writer left behind */
		if (e->d_name[0] == '.' && strstr(e->d_name, ".tmp") &&
		    fstatat(store, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    time(NULL) - st.st_mtime > REMAINS_S)
			(void)unlinkat(store, e->d_name, 0);
	}
	if (dir && n > PLAN_STORE_KEEP + SLACK)
		v = calloc(n, sizeof(*v));
	if (v)
		rewinddir(dir);
	while (v && k < n && (e = readdir(dir))) {
		if (!is_stored(e->d_name) || fstatat(store, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		memcpy(v[k].name, e->d_name, NAME_LEN + 1);
		v[k++].at = st.st_mtim;
	}
	if (dir)
		(void)closedir(dir);
	if (v)
		qsort(v, k, sizeof(*v), oldest_first);
	for (size_t i = 0; v && i + PLAN_STORE_KEEP < k; i++)
		(void)unlinkat(store, v[i].name, 0);
}

int plan_store_put(const struct sb_dirs *d, const uint8_t session[16], const char *bytes, size_t len,
		   struct sb_err *err)
{
	sb_autofd int store = -1;
	char name[NAME_LEN + 1];
	int r = open_store(d, true, &store, err);

	if (r < 0)
		return r;
	sb_hex_write(session, 16, name);
	memcpy(name + 32, SUFFIX, sizeof(SUFFIX));
	r = sb_fd_write_file(store, name, bytes, len, 0600);
	if (r < 0)
		return sb_err_set(err, r, "cannot keep the plan in %s/plans: %s", d->state,
				  strerror(-r));
	prune(store);
	return 0;
}

/* ---- reading ---- */

void plan_loaded_done(struct plan_loaded *l)
{
	sb_plan_file_done(&l->file);
	l->plan = sb_plan_free(l->plan);
}

bool plan_names_file(const char *what)
{
	return strpbrk(what, "/.") != NULL || access(what, F_OK) == 0;
}

static int read_stored(const struct sb_dirs *d, const char *id, char **ret, size_t *ret_len,
		       struct sb_err *err)
{
	sb_autofd int store = -1;
	char name[NAME_LEN + 1] = "";
	struct dirent *e;
	size_t n = 0;
	DIR *dir;
	int r;

	if (strlen(id) < ID_MIN || strlen(id) > 32 || id[strspn(id, "0123456789abcdef")] != '\0')
		return sb_err_set(err, -ENOENT,
				  "\"%.100s\" is neither a file nor the first digits (at least %d) of a "
				  "session's id", id, ID_MIN);
	r = open_store(d, true, &store, err);
	if (r < 0)
		return r;
	dir = list(store);
	while (dir && (e = readdir(dir))) {
		if (!is_stored(e->d_name) || strncmp(e->d_name, id, strlen(id)) != 0)
			continue;
		memcpy(name, e->d_name, sizeof(name));
		n++;
	}
	if (dir)
		(void)closedir(dir);
	if (n != 1)
		return sb_err_set(err, n ? -ENOTUNIQ : -ENOENT,
				  "%s session's id begins with %.40s (the plans of the last %d are in "
				  "%.200s/plans)", n ? "more than one" : "no", id, PLAN_STORE_KEEP,
				  d->state);
	r = sb_fd_read_file(store, name, SB_PLAN_FILE_MAX, ret, ret_len);
	return r < 0 ? sb_err_set(err, r, "cannot read %s: %s", name, strerror(-r)) : 0;
}

/* A user's file may be reached by a link; it is read once. */
static int read_given(const char *path, char **ret, size_t *ret_len, struct sb_err *err)
{
	sb_autofd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	sb_autofree char *p = NULL;
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return sb_err_set(err, -errno, "cannot read %.300s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > (off_t)SB_PLAN_FILE_MAX)
		return sb_err_set(err, -EBADMSG, "%.300s is no plan: not a file of 1 byte to %u MiB",
				  path, SB_PLAN_FILE_MAX >> 20);
	p = malloc((size_t)st.st_size + 1);
	if (!p)
		return sb_err_set(err, -ENOMEM, "out of memory");
	r = sb_fd_read_all(fd, p, (size_t)st.st_size);
	if (r < 0)
		return sb_err_set(err, r, "cannot read %.300s: %s", path, strerror(-r));
	p[st.st_size] = '\0';
	*ret_len = (size_t)st.st_size;
	*ret = sb_take(&p);
	return 0;
}

int plan_load(const char *what, const struct sb_dirs *d, const uint8_t *key,
	      struct plan_loaded *ret, struct sb_err *err)
{
	autoloaded struct plan_loaded l = { .plan = NULL };
	sb_autofree char *bytes = NULL;
	struct sb_plan_expect x = { .signature = l.file.signature };
	char id[CLI_KEY_ID_ROOM];
	size_t len = 0;
	int r;

	if (!d || plan_names_file(what))
		r = read_given(what, &bytes, &len, err);
	else
		r = read_stored(d, what, &bytes, &len, err);
	if (r == 0)
		r = sb_plan_file_parse(bytes, len, &l.file, err);
	if (r < 0)
		return r;
	if (key && memcmp(key, l.file.key, sizeof(l.file.key)) != 0) {
		cli_key_id(l.file.key, id);
		return sb_err_set(err, -EKEYREJECTED, "the plan is signed with another key (%s)", id);
	}
	x.public_key = key ? key : l.file.key;
	r = sb_plan_verify(l.file.plan, l.file.plan_len, &x, &l.plan, err);
	if (r < 0)
		return r;
	sb_sha256(l.file.plan, l.file.plan_len, l.sha256);
	*ret = l;
	l = (struct plan_loaded){ .plan = NULL };
	return 0;
}
