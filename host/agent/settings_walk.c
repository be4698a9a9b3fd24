/* Going through a tree that may be hostile; reading one file of it; the manifest. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "crypto/crypto.h"
#include "settings_i.h"

#define MANIFEST "manifest.json"
#define MANIFEST_MAX (16U << 20)

void settings_hex(const void *p, size_t len, char out[65])
{
	uint8_t sha[32];

	sb_sha256(p, len, sha);
	sb_hex_write(sha, sizeof(sha), out);
}

bool settings_excluded(const char *rel, const char *const *exclude, size_t n)
{
	const char *slash = strrchr(rel, '/');
	const char *name = slash ? slash + 1 : rel;

	for (size_t i = 0; i < n; i++) {
		const char *e = exclude[i];
		size_t len = strlen(e);

		if (e[0] == '*' && len > 1) {
			if (strlen(name) >= len - 1 &&
			    strcmp(name + strlen(name) - (len - 1), e + 1) == 0)
				return true;
		} else if (strncmp(rel, e, len) == 0 && (rel[len] == '\0' || rel[len] == '/')) {
			return true;
		}
	}
	return false;
}

int settings_read(int dir, const char *name, char **ret, size_t *ret_len, mode_t *ret_mode)
{
	sb_autofd int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	sb_autofree char *bytes = NULL;
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ELOOP;
	if (st.st_size > (off_t)SETTINGS_MAX_FILE)
		return -EFBIG;
	bytes = malloc((size_t)st.st_size + 2);
	if (!bytes)
		return -ENOMEM;
	n = sb_fd_read_most(fd, bytes, (size_t)st.st_size + 1); /* one byte more than it had: it grows */
	if (n < 0)
		return (int)n;
	if (n > st.st_size)
		return -EAGAIN;
	bytes[n] = '\0';
	*ret = sb_take(&bytes);
	*ret_len = (size_t)n;
	if (ret_mode)
		*ret_mode = st.st_mode;
	return 0;
}

static int walk(int fd, struct settings_walking *w, unsigned int depth);

static int one(int dir, const char *name, struct settings_walking *w, unsigned int depth)
{
	size_t was = w->len;
	size_t n = strlen(name);
	struct stat st;
	int fd;
	int r;

	if (was + n + 2 > sizeof(w->rel) || depth >= SETTINGS_MAX_DEPTH ||
	    ++w->seen > SETTINGS_MAX_FILES)
		return -E2BIG;
	memcpy(w->rel + was, name, n + 1);
	w->len = was + n;
	if (w->skip && w->skip(w->arg, w->rel)) {
		r = 0;
	} else if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		r = errno == ENOENT ? 0 : -errno;
	} else if (!S_ISDIR(st.st_mode)) {
		r = w->fn(w->arg, dir, name, w->rel, &st);
	} else {
		w->rel[w->len++] = '/';
		w->rel[w->len] = '\0';
		fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = fd < 0 ? -errno : walk(fd, w, depth + 1);
	}
	w->len = was;
	w->rel[was] = '\0';
	return r;
}

/* Takes @fd. */
static int walk(int fd, struct settings_walking *w, unsigned int depth)
{
	DIR *d = fdopendir(fd);
	struct dirent *e;
	int r = 0;

	if (!d) {
		r = -errno;
		(void)close(fd);
		return r;
	}
	while (r == 0 && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = one(dirfd(d), e->d_name, w, depth);
	(void)closedir(d);
	return r;
}

int settings_walk(int root, struct settings_walking *w)
{
	int fd = openat(root, ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	w->seen = 0;
	w->len = 0;
	w->rel[0] = '\0';
	return fd < 0 ? -errno : walk(fd, w, 0);
}

int settings_manifest(const char *dir, json_t **ret, struct sb_err *err)
{
	sb_autofd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	sb_autofree char *text = NULL;
	size_t len = 0;
	json_t *m;
	int r;

	if (fd < 0)
		return errno == ENOENT ? -ENOENT : sb_err_set(err, -errno, "%.300s: %s", dir,
							      strerror(errno));
	r = sb_fd_read_file(fd, MANIFEST, MANIFEST_MAX, &text, &len);
	if (r < 0)
		return r == -ENOENT ? r : sb_err_set(err, r, "%.300s/" MANIFEST ": %s", dir,
						     strerror(-r));
	m = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
	if (!m || json_integer_value(json_object_get(m, "version")) != 1 ||
	    !json_is_array(json_object_get(m, "mounts"))) {
		json_decref(m);
		return sb_err_set(err, -EBADMSG, "%.300s/" MANIFEST ": not one of this version; "
				  "remove the folder", dir);
	}
	*ret = m;
	return 0;
}

int settings_manifest_put(const char *dir, const json_t *m, struct sb_err *err)
{
	sb_autofd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	sb_autofree char *text = json_dumps(m, JSON_COMPACT | JSON_SORT_KEYS);
	int r = fd < 0 ? -errno : 0;

	if (!text)
		r = -ENOMEM;
	if (r == 0)
		r = sb_fd_write_file(fd, MANIFEST, text, strlen(text), 0600);
	return r < 0 ? sb_err_set(err, r, "%.300s/" MANIFEST ": %s", dir, strerror(-r)) : 0;
}
