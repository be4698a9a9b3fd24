/* <cache>/images/HEX.json, and what killed makers left. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "image/cache.h"
#include "image/oci.h"
#include "os/rmtree.h"

#define RECORD_MAX (1U << 20)
#define TMP_AGE_S 10 /* younger ones may be about to be locked by their maker */

static void json_freep(json_t **j)
{
	json_decref(*j);
}
#define auto_json SB_CLEANUP(json_freep)

void image_done(struct image *i)
{
	sb_free_list(&i->env);
	free(i->reference);
	free(i->digest);
	free(i->path);
	free(i->user);
	free(i->workdir);
	free(i->moved_from);
	image_layer_done(&i->layer);
	*i = (struct image){ 0 };
}

int image_copy_text(const json_t *j, const char *key, char **ret)
{
	const char *s = json_string_value(json_object_get(j, key));

	if (!s)
		return 0;
	*ret = strdup(s);
	return *ret ? 0 : -ENOMEM;
}

int image_copy_env(const json_t *list, char ***ret)
{
	size_t n = json_array_size(list);
	char **env = n > OCI_MAX_ENV ? NULL : calloc(n + 1, sizeof(char *));

	if (!env)
		return n > OCI_MAX_ENV ? -EBADMSG : -ENOMEM;
	*ret = env;
	for (size_t i = 0; i < n; i++) {
		const char *s = json_string_value(json_array_get(list, i));

		if (!s)
			return -EBADMSG;
		env[i] = strdup(s);
		if (!env[i])
			return -ENOMEM;
	}
	return 0;
}

static int from_json(const json_t *j, struct image *i, uint8_t sha[32])
{
	const char *layer = json_string_value(json_object_get(j, "layer"));
	int r;

	if (json_integer_value(json_object_get(j, "version")) != 1 || !layer ||
	    sb_hex_parse(layer, sha, 32) < 0)
		return -EBADMSG;
	r = image_copy_text(j, "reference", &i->reference);
	if (r == 0)
		r = image_copy_text(j, "user", &i->user);
	if (r == 0)
		r = image_copy_text(j, "workdir", &i->workdir);
	if (r == 0)
		r = image_copy_env(json_object_get(j, "env"), &i->env);
	return r;
}

static void record_name(const char *digest, char out[80])
{
	(void)snprintf(out, 80, "%.64s.json", digest + 7);
}

int image_record_load(const struct sb_dirs *d, const char *digest, struct image *ret,
		      struct sb_err *err)
{
	SB_CLEANUP(image_done) struct image i = { .form = IMAGE_FORM_EROFS };
	sb_autofree char *text = NULL;
	auto_json json_t *j = NULL;
	sb_autofd int dir = -1;
	uint8_t sha[32];
	char name[80];
	size_t len = 0;
	int r = image_dir_open(d, "images", &dir, err);

	if (r < 0)
		return r;
	record_name(digest, name);
	r = sb_fd_read_file(dir, name, RECORD_MAX, &text, &len);
	if (r == -ENOENT)
		return r;
	if (r == 0) {
		j = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
		r = j ? from_json(j, &i, sha) : -EBADMSG;
	}
	if (r < 0)
		return sb_err_set(err, r, "%s/images/%s: %s; remove it, it is made again", d->cache,
				  name, r == -EBADMSG ? "damaged" : strerror(-r));
	i.digest = strdup(digest);
	if (!i.digest)
		return -ENOMEM;
	r = image_layer_find(d, sha, &i.layer, err);
	if (r < 0)
		return r;
	*ret = i;
	i = (struct image){ 0 };
	return 0;
}

int image_each(const struct sb_dirs *d, int (*fn)(void *arg, const struct image *i),
	       void (*broken)(void *arg, const char *text), void *arg, struct sb_err *err)
{
	sb_autofd int dir = -1;
	const struct dirent *e;
	DIR *list;
	int r = image_dir_open(d, "images", &dir, err);

	if (r < 0)
		return r;
	list = fdopendir(dir);
	if (!list)
		return sb_err_set(err, -errno, "%s/images: %s", d->cache, strerror(errno));
	(void)sb_fd_take(&dir);
	while (r == 0 && (e = readdir(list)) != NULL) {
		SB_CLEANUP(image_done) struct image i = { 0 };
		struct sb_err why = { 0 };
		char digest[72];

		if (strlen(e->d_name) != 69 || strcmp(e->d_name + 64, ".json") != 0)
			continue;
		(void)snprintf(digest, sizeof(digest), "sha256:%.64s", e->d_name);
		if (!image_digest_ok(digest))
			continue;
		if (image_record_load(d, digest, &i, &why) == 0)
			r = fn(arg, &i);
		else if (why.code && broken)
			broken(arg, why.text);
	}
	(void)closedir(list);
	return r;
}

int image_record_save(const struct sb_dirs *d, const struct image *i, struct sb_err *err)
{
	auto_json json_t *j = NULL;
	auto_json json_t *env = json_array();
	sb_autofree char *text = NULL;
	sb_autofd int dir = -1;
	char name[80];
	char hex[65];
	int r = image_dir_open(d, "images", &dir, err);

	if (r < 0)
		return r;
	sb_hex_write(i->layer.sha256, 32, hex);
	for (char **e = i->env; e && *e; e++)
		(void)json_array_append_new(env, json_string(*e)); /* not UTF-8: left out */
	j = json_pack("{s:i, s:s?, s:s, s:s?, s:s?, s:O, s:I, s:I}", "version", 1, "reference",
		      i->reference, "layer", hex, "user", i->user, "workdir", i->workdir, "env", env,
		      "size", (json_int_t)i->layer.size, "made_s", (json_int_t)time(NULL));
	text = j ? json_dumps(j, JSON_INDENT(2) | JSON_SORT_KEYS) : NULL;
	if (!text)
		return sb_err_set(err, -ENOMEM, "out of memory");
	record_name(i->digest, name);
	r = sb_fd_write_file(dir, name, text, strlen(text), 0600);
	return r < 0 ? sb_err_set(err, r, "cannot write %s/images/%s: %s", d->cache, name,
				  strerror(-r)) : 0;
}

int image_record_remove(const struct sb_dirs *d, const struct image *i, bool layer,
			struct sb_err *err)
{
	sb_autofd int images = -1;
	sb_autofd int layers = -1;
	char name[80];
	char hex[65];
	int r = image_dir_open(d, "images", &images, err);

	if (r == 0)
		r = image_dir_open(d, "layers", &layers, err);
	if (r < 0)
		return r;
	record_name(i->digest, name);
	if (unlinkat(images, name, 0) < 0 && errno != ENOENT)
		return sb_err_set(err, -errno, "%s/images/%s: %s", d->cache, name, strerror(errno));
	if (!layer)
		return 0;
	sb_hex_write(i->layer.sha256, 32, hex);
	(void)snprintf(name, sizeof(name), "%s.is", hex);
	if (unlinkat(layers, name, 0) < 0 && errno != ENOENT)
		return sb_err_set(err, -errno, "%s/layers/%s: %s", d->cache, name, strerror(errno));
	(void)snprintf(name, sizeof(name), "%s.erofs", hex);
	if (unlinkat(layers, name, 0) < 0 && errno != ENOENT)
		return sb_err_set(err, -errno, "%s/layers/%s: %s", d->cache, name, strerror(errno));
	return 0;
}

static bool abandoned(int dir, const char *name)
{
	sb_autofd int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && time(NULL) - st.st_mtime >= TMP_AGE_S &&
	       flock(fd, LOCK_EX | LOCK_NB) == 0;
}

static int gc_dir(const struct sb_dirs *d, const char *name, size_t *n, struct sb_err *err)
{
	sb_autofd int dir = -1;
	const struct dirent *e;
	DIR *list;
	int again;
	int r = image_dir_open(d, name, &dir, err);

	if (r < 0)
		return r;
	again = fcntl(dir, F_DUPFD_CLOEXEC, 3);
	list = again >= 0 ? fdopendir(again) : NULL;
	if (!list) {
		sb_fd_close(&again);
		return sb_err_set(err, -errno, "%s/%s: %s", d->cache, name, strerror(errno));
	}
	while ((e = readdir(list)) != NULL) {
		if (strncmp(e->d_name, "tmp-", 4) != 0 || !abandoned(dir, e->d_name))
			continue;
		if (sb_rmtree(dir, e->d_name) == 0)
			(*n)++;
	}
	(void)closedir(list);
	return 0;
}

int image_gc(const struct sb_dirs *d, size_t *n, struct sb_err *err)
{
	int r = gc_dir(d, "layers", n, err);

	return r < 0 ? r : gc_dir(d, "images", n, err);
}
