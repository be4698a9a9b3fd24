/*
 * Every call that can fail is made to fail once, in making a layer, in getting an image and in the
 * lock file: an error with a text, no descriptor, no process and nothing unfinished left, and the
 * next one that wants the same gets it.
 */
#include <jansson.h>

#include "cache_place.h"
#include "image/cache.h"
#include "image/lock.h"
#include "image/source.h"
#include "tar_make.h"

static struct tar_make t;

static void archive(void)
{
	memset(&t, 0, sizeof(t));
	tar_dir(&t, "opt");
	tar_file(&t, "opt/made", "by hand\n");
	tar_close(&t);
}

/* What holds after each failure. */
static void check_failed(const struct cache_place *p, int r, const struct sb_err *err, int fds)
{
	CHECK(r < 0 && err->code == r && err->text[0]);
	CHECK_EQ(t_open_fds(), fds);
	CHECK(cache_place_childless());
	CHECK_EQ(cache_place_count(p, "layers", "tmp"), 0);
	CHECK_EQ(cache_place_count(p, "images", "tmp"), 0);
}

TEST(layer)
{
	unsigned int failed = 0;

	archive();
	T_EVERY_FAULT(n)
	{
		struct cache_place p;
		struct sb_plan_layer l = { 0 };
		struct sb_err err = { 0 };
		sb_autofd int fd = cache_place_file(t.p, t.len);
		int fds = t_open_fds();
		bool fired;
		int r;

		cache_place_make(&p);
		t_fault_arm(n);
		r = image_layer_from_tar(&p.d, fd, 0, &l, &err);
		fired = t_fault_fired();
		t_fault_disarm();
		if (r < 0) {
			check_failed(&p, r, &err, fds);
			CHECK(!l.path);
			CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
			CHECK_EQ(image_layer_from_tar(&p.d, fd, 0, &l, &err), 0);
			failed++;
		}
		CHECK_EQ(cache_place_count(&p, "layers", ".erofs"), 1);
		CHECK_EQ(cache_place_count(&p, "layers", ""), 2);
		image_layer_done(&l);
		cache_place_done(&p);
		if (!fired && r == 0)
			break;
	}
	CHECK(failed > 15);
}

/* ---- an image of a layout ---- */

static void put(const struct cache_place *p, const char *name, const void *bytes, size_t len)
{
	char path[200];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/lay/%s", p->top, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, bytes, len) != (ssize_t)len || close(fd) < 0)
		abort();
}

static void blob(const struct cache_place *p, const void *bytes, size_t len, char digest[72])
{
	char name[100];

	image_digest(bytes, len, digest);
	(void)snprintf(name, sizeof(name), "blobs/sha256/%s", digest + 7);
	put(p, name, bytes, len);
}

static void layout(const struct cache_place *p)
{
	static const char *const dirs[] = { "lay", "lay/blobs", "lay/blobs/sha256" };
	char layer[72];
	char config[72];
	char top[72];
	char text[1024];
	int n;

	for (size_t i = 0; i < SB_ARRAY_LEN(dirs); i++) {
		char path[160];

		(void)snprintf(path, sizeof(path), "%s/%s", p->top, dirs[i]);
		if (mkdir(path, 0700) < 0)
			abort();
	}
	blob(p, t.p, t.len, layer);
	n = snprintf(text, sizeof(text),
		     "{\"architecture\":\"%s\",\"os\":\"linux\",\"config\":{\"Env\":[\"A=1\",\"B=2\"],"
		     "\"User\":\"u\",\"WorkingDir\":\"/w\"},\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"%s\"]}}",
		     image_arch(), layer);
	blob(p, text, (size_t)n, config);
	n = snprintf(text, sizeof(text),
		     "{\"schemaVersion\":2,\"config\":{\"mediaType\":\"application/vnd.oci.image.config.v1+json\","
		     "\"digest\":\"%s\",\"size\":%d},\"layers\":[{\"mediaType\":"
		     "\"application/vnd.oci.image.layer.v1.tar\",\"digest\":\"%s\",\"size\":%zu}]}",
		     config, n, layer, t.len);
	blob(p, text, (size_t)n, top);
	n = snprintf(text, sizeof(text),
		     "{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":"
		     "\"application/vnd.oci.image.manifest.v1+json\",\"digest\":\"%s\",\"size\":%d,"
		     "\"annotations\":{\"org.opencontainers.image.ref.name\":\"t\"}}]}", top, n);
	put(p, "index.json", text, (size_t)n);
}

static int get(const struct cache_place *p, struct image *i, struct sb_err *err)
{
	char ref[100];
	const struct image_want w = { .reference = ref };

	(void)snprintf(ref, sizeof(ref), "oci:%s/lay:t", p->top);
	return image_get(&p->d, &w, i, err);
}

static void check_image(struct image *i)
{
	CHECK_EQ(i->form, IMAGE_FORM_EROFS);
	CHECK(i->layer.path && i->env && i->env[0] && i->env[1] && !i->env[2]);
	CHECK_STR(i->env[1], "B=2");
	CHECK_STR(i->user, "u");
	CHECK_STR(i->workdir, "/w");
	image_done(i);
}

/* @again: it is in the cache already. */
static unsigned int each_get(bool again)
{
	unsigned int failed = 0;

	T_EVERY_FAULT(n)
	{
		struct cache_place p;
		struct image i = { 0 };
		struct sb_err err = { 0 };
		int fds = t_open_fds();
		bool fired;
		int r;

		cache_place_make(&p);
		layout(&p);
		if (again) {
			CHECK_EQ(get(&p, &i, &err), 0);
			image_done(&i);
		}
		t_fault_arm(n);
		r = get(&p, &i, &err);
		fired = t_fault_fired();
		t_fault_disarm();
		if (r < 0) {
			check_failed(&p, r, &err, fds);
			CHECK(!i.reference && !i.layer.path && !i.env);
			CHECK_EQ(get(&p, &i, &err), 0);
			failed++;
		}
		check_image(&i);
		CHECK_EQ(t_open_fds(), fds);
		CHECK_EQ(cache_place_count(&p, "layers", ".erofs"), 1);
		CHECK_EQ(cache_place_count(&p, "layers", ""), 2);
		CHECK_EQ(cache_place_count(&p, "images", ".json"), 1);
		CHECK_EQ(cache_place_count(&p, "images", ""), 2); /* and its lock */
		cache_place_done(&p);
		if (!fired && r == 0)
			break;
	}
	return failed;
}

TEST(image_made)
{
	archive();
	CHECK(each_get(false) > 20);
}
TEST(image_found)
{
	archive();
	CHECK(each_get(true) > 5);
}

/* A layer that was changed, replaced or lost after it was hashed. */
TEST(layers_that_changed)
{
	struct cache_place p;
	struct image i = { 0 };
	struct sb_err err = { 0 };
	char path[200];
	char record[200];
	char *end;

	archive();
	cache_place_make(&p);
	layout(&p);
	REQUIRE(get(&p, &i, &err) == 0);
	(void)snprintf(path, sizeof(path), "%s", i.layer.path);
	(void)snprintf(record, sizeof(record), "%s", i.layer.path);
	end = strstr(record, ".erofs");
	REQUIRE(end);
	memcpy(end, ".is", 4);
	image_done(&i);
	/* the record is lost: the content decides, and it is kept */
	CHECK_EQ(unlink(record), 0);
	CHECK_EQ(get(&p, &i, &err), 0);
	image_done(&i);
	/* changed: refused, and the text says what to do */
	CHECK_EQ(chmod(path, 0600), 0);
	CHECK_EQ(truncate(path, 8192), 0);
	CHECK_EQ(get(&p, &i, &err), -ESTALE);
	CHECK(strstr(err.text, "remove it") != NULL);
	/* changed, and nothing tells of what was hashed: it is not believed, and made again */
	CHECK_EQ(unlink(record), 0);
	CHECK_EQ(get(&p, &i, &err), 0);
	check_image(&i);
	/* a link in its place is not followed */
	CHECK_EQ(unlink(path), 0);
	CHECK_EQ(symlink("/etc/passwd", path), 0);
	CHECK(get(&p, &i, &err) < 0);
	CHECK_EQ(unlink(path), 0);
	CHECK_EQ(get(&p, &i, &err), 0);
	check_image(&i);
	cache_place_done(&p);
}

/* ---- the lock file ---- */

TEST(lock_file)
{
	static const char old[] = "sha256:1111111111111111111111111111111111111111111111111111111111111111";
	static const char new[] = "sha256:2222222222222222222222222222222222222222222222222222222222222222";
	struct cache_place p;
	char path[160];

	cache_place_make(&p);
	(void)snprintf(path, sizeof(path), "%s/images.lock", p.state);
	CHECK_EQ(image_lock_set(path, "a:1", old, NULL), 0);
	T_EVERY_FAULT(n)
	{
		struct sb_err err = { 0 };
		char got[72] = "";
		int fds = t_open_fds();
		bool fired;
		int r;

		t_fault_arm(n);
		r = image_lock_set(path, "a:1", new, &err);
		fired = t_fault_fired();
		t_fault_disarm();
		CHECK_EQ(t_open_fds(), fds);
		CHECK_EQ(cache_place_count(&p, "state", ""), 1);
		CHECK_EQ(image_lock_get(path, "a:1", got, &err), 0);
		CHECK_STR(got, r == 0 ? new : old);
		CHECK_EQ(image_lock_set(path, "a:1", old, &err), 0);
		if (!fired && r == 0)
			break;
	}
	cache_place_done(&p);
}

TEST(lock_file_damaged)
{
	static const char *const bad[] = {
		"", "{", "[]", "{\"version\":2,\"images\":{}}", "{\"version\":1}",
		"{\"version\":1,\"images\":{\"a:1\":\"sha256:12\"}}",
		"{\"version\":1,\"images\":{\"a:1\":7}}",
		"{\"version\":1,\"images\":{},\"images\":{}}",
	};
	struct cache_place p;
	sb_autofd int dir = -1;
	char path[160];

	cache_place_make(&p);
	dir = open(p.state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)snprintf(path, sizeof(path), "%s/images.lock", p.state);
	for (size_t i = 0; i < SB_ARRAY_LEN(bad); i++) {
		struct sb_err err = { 0 };
		char got[72] = "";
		char *text = NULL;
		size_t len = 0;

		CHECK_EQ(sb_fd_write_file(dir, "images.lock", bad[i], strlen(bad[i]), 0600), 0);
		CHECK_EQ(image_lock_get(path, "a:1", got, &err), -EBADMSG);
		CHECK(strstr(err.text, "damaged") != NULL);
		CHECK_EQ(image_lock_set(path, "a:1", "sha256:x", &err), -EBADMSG);
		/* what cannot be read is not written over */
		CHECK_EQ(sb_fd_read_file(dir, "images.lock", 4096, &text, &len), 0);
		CHECK_EQ(len, strlen(bad[i]));
		free(text);
	}
	cache_place_done(&p);
}
