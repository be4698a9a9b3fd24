#include "image/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/fd.h"
#include "image/cache.h"

#define LOCK_MAX (1U << 20)

static void json_freep(json_t **j)
{
	json_decref(*j);
}
#define auto_json SB_CLEANUP(json_freep)

/* The folder, and the name in it. */
static int split(const char *path, int *ret_dir, const char **ret_name, struct sb_err *err)
{
	char dir[PATH_MAX];
	const char *slash = strrchr(path, '/');

	if (!slash || slash[1] == '\0' || (size_t)(slash - path) >= sizeof(dir) - 1)
		return sb_err_set(err, -EINVAL, "lock file \"%.200s\": not an absolute path", path);
	memcpy(dir, path, (size_t)(slash - path));
	dir[slash - path] = '\0';
	*ret_dir = open(dir[0] ? dir : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*ret_dir < 0)
		return sb_err_set(err, -errno, "lock file \"%.200s\": %s", path, strerror(errno));
	*ret_name = slash + 1;
	return 0;
}

static bool check(const json_t *j)
{
	const json_t *images = json_object_get(j, "images");
	const char *name;
	json_t *v;

	if (json_integer_value(json_object_get(j, "version")) != 1 || !json_is_object(images))
		return false;
	json_object_foreach((json_t *)(uintptr_t)images, name, v)
		if (!image_digest_ok(json_string_value(v)))
			return false;
	return true;
}

static int load(int dir, const char *name, const char *path, json_t **ret, struct sb_err *err)
{
	sb_autofree char *text = NULL;
	json_error_t e = { 0 };
	size_t len = 0;
	int r = sb_fd_read_file(dir, name, LOCK_MAX, &text, &len);

	if (r == -ENOENT)
		return r;
	if (r < 0)
		return sb_err_set(err, r, "lock file \"%.200s\": %s", path, strerror(-r));
	*ret = json_loadb(text, len, JSON_REJECT_DUPLICATES, &e);
	if (!*ret || !check(*ret))
		return sb_err_set(err, -EBADMSG,
				  "lock file \"%.200s\" is damaged (line %d: %.80s): repair or remove "
				  "it", path, e.line, e.text[0] ? e.text : "not of version 1");
	return 0;
}

int image_lock_get(const char *path, const char *name, char ret[72], struct sb_err *err)
{
	auto_json json_t *j = NULL;
	sb_autofd int dir = -1;
	const char *file;
	const char *digest;
	int r = split(path, &dir, &file, err);

	if (r == 0)
		r = load(dir, file, path, &j, err);
	if (r < 0)
		return r;
	digest = json_string_value(json_object_get(json_object_get(j, "images"), name));
	if (!digest)
		return -ENOENT;
	memcpy(ret, digest, 72);
	return 0;
}

int image_lock_set(const char *path, const char *name, const char *digest, struct sb_err *err)
{
	auto_json json_t *j = NULL;
	sb_autofree char *text = NULL;
	sb_autofd int dir = -1;
	const char *file;
	int r = split(path, &dir, &file, err);

	if (r < 0)
		return r;
	if (flock(dir, LOCK_EX) < 0)
		return sb_err_set(err, -errno, "lock file \"%.200s\": %s", path, strerror(errno));
	r = load(dir, file, path, &j, err);
	if (r == -ENOENT) {
		j = json_pack("{s:i,s:{}}", "version", 1, "images");
		r = j ? 0 : -ENOMEM;
	}
	if (r < 0)
		return r;
	if (json_object_set_new(json_object_get(j, "images"), name, json_string(digest)) < 0)
		return sb_err_set(err, -ENOMEM, "out of memory");
	text = json_dumps(j, JSON_INDENT(2) | JSON_SORT_KEYS);
	if (!text)
		return sb_err_set(err, -ENOMEM, "out of memory");
	r = sb_fd_write_file(dir, file, text, strlen(text), 0644);
	return r < 0 ? sb_err_set(err, r, "cannot write \"%.200s\": %s", path, strerror(-r)) : 0;
}
