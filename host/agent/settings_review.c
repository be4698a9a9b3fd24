/*
 * What a session changed in its copies, and merging it. Everything in the copies is hostile: names,
 * links, sizes, and that it changes while it is read.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "settings_i.h"

struct looking {
	const json_t *m; /* one mount of the manifest */
	const char **exclude;
	size_t n_exclude;
	bool bytes;
	int (*fn)(void *arg, const struct settings_file *f);
	void *arg;
	json_t *seen; /* names that are there */
	bool moved;   /* the manifest's digests have changed */
};

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

/* "~/.claude" + "settings.json"; a single file is the mount itself. */
static void shown_of(const struct looking *l, const char *rel, char *out, size_t cap)
{
	const json_t *was = json_object_get(json_object_get(l->m, "files"), rel);
	bool single = json_is_string(json_object_get(l->m, "single"));

	if (was && text_of(was, "path")[0]) { /* a file that lies in the folder of others */
		(void)snprintf(out, cap, "%s", text_of(was, "path"));
		return;
	}
	(void)snprintf(out, cap, "%s%s%s", text_of(l->m, "path"), single ? "" : "/",
		       single ? "" : rel);
}

static int tell(struct looking *l, const char *rel, enum settings_change change, const char *bytes,
		size_t len, const char *base)
{
	struct settings_file f = { .change = change, .bytes = bytes, .len = len, .base = base };
	json_t *files = json_object_get(l->m, "files");
	char shown[2 * PATH_MAX];
	char sha[65];
	int r;

	shown_of(l, rel, shown, sizeof(shown));
	f.shown = shown;
	f.path = shown + 2 + strspn(shown + 2, "/");
	r = l->fn(l->arg, &f);
	if (r != SETTINGS_TAKEN)
		return r;
	l->moved = true;
	if (change == SETTINGS_REMOVED) {
		(void)json_object_del(files, rel);
		return 0;
	}
	settings_hex(bytes, len, sha);
	(void)json_object_set_new(files, rel, json_pack("{s:s,s:s}", "sha256", sha, "path", shown));
	return 0;
}

static bool skip_look(void *arg, const char *rel)
{
	const struct looking *l = arg;
	const json_t *v;
	size_t i;

	json_array_foreach(json_object_get(l->m, "oneway"), i, v)
		if (strcmp(json_string_value(v), rel) == 0)
			return true;
	return settings_excluded(rel, l->exclude, l->n_exclude);
}

static int look_one(void *arg, int dir, const char *name, const char *rel, const struct stat *st)
{
	struct looking *l = arg;
	const json_t *was = json_object_get(json_object_get(l->m, "files"), rel);
	const char *base = text_of(was, "sha256");
	sb_autofree char *bytes = NULL;
	char sha[65];
	size_t len = 0;
	int r;

	(void)json_object_set_new(l->seen, rel, json_true());
	if (!S_ISREG(st->st_mode))
		return tell(l, rel, SETTINGS_ODD, NULL, 0, base);
	r = settings_read(dir, name, &bytes, &len, NULL);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		return tell(l, rel, SETTINGS_ODD, NULL, 0, base);
	settings_hex(bytes, len, sha);
	if (strcmp(sha, base) == 0)
		return 0;
	return tell(l, rel, was ? SETTINGS_CHANGED : SETTINGS_ADDED, l->bytes ? bytes : NULL, len,
		    base);
}

static int removed(struct looking *l)
{
	const char *rel;
	json_t *v;
	void *next;
	int r = 0;

	json_object_foreach_safe(json_object_get(l->m, "files"), next, rel, v) {
		if (r == 0 && !json_object_get(l->seen, rel))
			r = tell(l, rel, SETTINGS_REMOVED, NULL, 0, text_of(v, "sha256"));
	}
	return r;
}

static int look(const char *dir, struct looking *l, struct sb_err *err)
{
	sb_autofree struct settings_walking *w = calloc(1, sizeof(*w));
	sb_autofd int fd = -1;
	char path[PATH_MAX];
	int r;

	(void)snprintf(path, sizeof(path), "%s/copy/%s", dir, text_of(l->m, "copy"));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	l->seen = json_object();
	if (fd < 0 || !w || !l->seen)
		return sb_err_set(err, fd < 0 ? -errno : -ENOMEM, "%.300s: %s", path,
				  fd < 0 ? strerror(errno) : "out of memory");
	*w = (struct settings_walking){ .fn = look_one, .skip = skip_look, .arg = l };
	r = settings_walk(fd, w);
	if (r == -E2BIG)
		return sb_err_set(err, r, "%.300s: the session left more than %u files or too deep a "
				  "tree; it can only be dropped", text_of(l->m, "path"),
				  SETTINGS_MAX_FILES);
	return r == 0 ? removed(l) : r;
}

int settings_each(const char *dir, bool bytes, int (*fn)(void *arg, const struct settings_file *f),
		  void *arg, struct sb_err *err)
{
	json_t *manifest = NULL;
	int r = settings_manifest(dir, &manifest, err);
	bool moved = false;
	json_t *m;
	size_t i;

	if (r < 0)
		return r;
	json_array_foreach(json_object_get(manifest, "mounts"), i, m) {
		const json_t *list = json_object_get(m, "exclude");
		struct looking l = { .m = m, .bytes = bytes, .fn = fn, .arg = arg };

		l.exclude = calloc(json_array_size(list) + 1, sizeof(*l.exclude));
		for (size_t k = 0; l.exclude && k < json_array_size(list); k++)
			l.exclude[l.n_exclude++] = json_string_value(json_array_get(list, k));
		r = l.exclude ? look(dir, &l, err) : -ENOMEM;
		json_decref(l.seen);
		free(l.exclude);
		moved |= l.moved;
		if (r != 0)
			break;
	}
	if (moved) {
		int k = settings_manifest_put(dir, manifest, err);

		r = r == 0 ? k : r;
	}
	json_decref(manifest);
	return r;
}

/* ---- merging ---- */

/* The folder that @path lies in, beneath @home, made when it is not there; no link on the way. */
static int open_parent(const char *home, const char *path, bool make, int *ret, const char **name)
{
	sb_autofd int at = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const char *p = path;

	if (at < 0)
		return -errno;
	for (;;) {
		size_t n = strcspn(p, "/");
		char part[256];
		int next;

		if (p[n] == '\0') {
			*name = p;
			*ret = sb_fd_take(&at);
			return n > 0 && n < sizeof(part) ? 0 : -EINVAL;
		}
		if (n == 0 || n >= sizeof(part))
			return -EINVAL;
		memcpy(part, p, n);
		part[n] = '\0';
		if (strcmp(part, ".") == 0 || strcmp(part, "..") == 0)
			return -EINVAL;
		if (make && mkdirat(at, part, 0700) < 0 && errno != EEXIST)
			return -errno;
		next = openat(at, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return -errno;
		sb_fd_close(&at);
		at = next;
		p += n + 1;
	}
}

/* Whether the user's file is still what was copied. Return: 1; 0; -errno. */
static int unchanged(int dir, const char *name, const char *base, mode_t *mode)
{
	sb_autofree char *bytes = NULL;
	char sha[65];
	size_t len = 0;
	int r = settings_read(dir, name, &bytes, &len, mode);

	if (r == -ENOENT)
		return base[0] == '\0';
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	settings_hex(bytes, len, sha);
	return strcmp(sha, base) == 0;
}

int settings_apply(const char *home, const struct settings_file *f, struct sb_err *err)
{
	sb_autofd int dir = -1;
	const char *name = NULL;
	mode_t mode = 0600;
	int r;

	if (f->change == SETTINGS_ODD || (f->change != SETTINGS_REMOVED && !f->bytes))
		return SETTINGS_SKIPPED;
	r = open_parent(home, f->path, f->change != SETTINGS_REMOVED, &dir, &name);
	if (r == -ELOOP || r == -ENOTDIR)
		return SETTINGS_CONFLICT;
	if (r == 0)
		r = unchanged(dir, name, f->base, &mode);
	if (r == 0)
		return SETTINGS_CONFLICT;
	if (r == 1 && f->change == SETTINGS_REMOVED)
		r = unlinkat(dir, name, 0) < 0 && errno != ENOENT ? -errno : 1;
	else if (r == 1) /* a program that the session made is not made executable here */
		r = sb_fd_write_file(dir, name, f->bytes, f->len,
				     f->base[0] ? mode & 0777 : (mode_t)0600);
	return r < 0 ? sb_err_set(err, r, "%.300s: %s", f->shown, strerror(-r)) : SETTINGS_DONE;
}
