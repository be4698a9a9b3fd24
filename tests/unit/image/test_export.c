/* Exports of instances: the documents, the closed list of names, a layer written out as an archive. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "image/instance_meta.h"
#include "image/oci_archive.h"
#include "t.h"
#include "tar_make.h"

#define HEX "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static char *word(const char *s)
{
	return (char *)(uintptr_t)s;
}

TEST(documents)
{
	char *env[] = { word("A=b"), NULL };
	const struct instance_meta m = { .name = word("n"), .base = word("layers"), .agent = word("claude"),
					 .workspace = word("/w\n") };
	const struct oci_blob b = { .digest = "sha256:" HEX, .size = 7 };
	const struct instance_image i = { .meta = &m, .arch = "amd64", .env = env, .layers = &b, .n_layers = 1 };
	struct instance_meta got = { 0 };
	struct oci_manifest om;
	struct oci_config oc = { 0 };
	struct oci_blob picked;
	char *config = NULL;
	char *manifest = NULL;
	char *index = NULL;

	CHECK_EQ(instance_image_config(&i, &config), 0);
	CHECK_STR(config, "{\"architecture\":\"amd64\",\"config\":{\"Env\":[\"A=b\"]},\"os\":\"linux\","
			  "\"rootfs\":{\"diff_ids\":[\"sha256:" HEX "\"],\"type\":\"layers\"}}");
	CHECK_EQ(oci_config_parse(config, strlen(config), "amd64", 1, &oc, NULL), 0);
	oci_config_done(&oc);
	CHECK_EQ(instance_image_manifest(&i, &b, &manifest), 0);
	CHECK_EQ(oci_manifest_parse(manifest, strlen(manifest), &om, NULL), 0);
	CHECK_EQ(om.n_layers, 1);
	CHECK_EQ(instance_meta_parse(manifest, strlen(manifest), &got, NULL), 0);
	CHECK_STR(got.name, "n");
	CHECK_STR(got.agent, "claude");
	CHECK(got.workspace == NULL); /* a line break is not written */
	instance_meta_done(&got);
	CHECK_EQ(instance_image_index(&i, &b, &index), 0);
	CHECK_EQ(oci_index_pick(index, strlen(index), "n", "amd64", &picked, NULL), 0);
	CHECK_EQ(oci_index_pick(index, strlen(index), NULL, "arm64", &picked, NULL), -ENOENT);
	free(config);
	free(manifest);
	free(index);
}

static int meta(const char *notes)
{
	struct instance_meta m = { 0 };
	char text[8192];
	int r;

	(void)snprintf(text, sizeof(text), "{\"schemaVersion\":2,\"annotations\":{%s}}", notes);
	r = instance_meta_parse(text, strlen(text), &m, NULL);
	if (r < 0)
		CHECK(m.name == NULL && m.base == NULL);
	instance_meta_done(&m);
	return r;
}

#define NOTE(k, v) "\"io.sendbox.instance." k "\":" v

TEST(annotations)
{
	static char longest[4300];
	size_t n;

	CHECK_EQ(meta(NOTE("version", "\"1\"") "," NOTE("name", "\"x\"") "," NOTE("base", "\"host\"")), 0);
	CHECK_EQ(meta(""), -ENOENT);
	CHECK_EQ(meta(NOTE("version", "\"2\"")), -EPROTO);
	CHECK_EQ(meta(NOTE("version", "1")), -ENOENT);
	CHECK_EQ(meta(NOTE("version", "\"1\"") "," NOTE("name", "\"x\"")), -EBADMSG);
	CHECK_EQ(meta(NOTE("version", "\"1\"") "," NOTE("name", "\"x\"") "," NOTE("base", "\"dir\"")), -EBADMSG);
	CHECK_EQ(meta(NOTE("version", "\"1\"") "," NOTE("name", "\"\\u001b[2J\"") "," NOTE("base", "\"host\"")),
		 -EBADMSG);
	CHECK_EQ(meta(NOTE("version", "\"1\"") "," NOTE("name", "\"\\u009b2J\"") "," NOTE("base", "\"host\"")),
		 -EBADMSG);
	CHECK_EQ(meta(NOTE("version", "\"1\"") "," NOTE("name", "\"\\u00e9\"") "," NOTE("base", "\"host\"")), 0);
	CHECK_EQ(meta(NOTE("version", "\"1\"") "," NOTE("name", "[]") "," NOTE("base", "\"host\"")), -EBADMSG);
	CHECK_EQ(meta(NOTE("version", "\"1\"") "," NOTE("version", "\"1\"")), -EBADMSG);
	(void)snprintf(longest, sizeof(longest), "%s", NOTE("version", "\"1\"") "," NOTE("base", "\"host\"") ","
		       NOTE("name", "\""));
	n = strlen(longest);
	memset(longest + n, 'a', 4097);
	memcpy(longest + n + 4097, "\"", 2);
	CHECK_EQ(meta(longest), -EBADMSG);
}

static void file(struct tar_make *t, const char *name, const char *text)
{
	tar_seal(tar_head(t, '0', name, NULL, 0644, strlen(text)));
	tar_data(t, text, strlen(text));
}

static int scan(struct tar_make *t, struct image_archive *a, struct sb_err *err)
{
	memset(t->p + t->len, 0, 1024);
	return image_archive_scan(t->p, t->len + 1024, a, err);
}

TEST(names)
{
	static const char *const bad[] = { "../index.json", "/index.json", "blobs/sha256/../../x", "x",
					   "blobs/sha256/" HEX "0", "blobs/sha512/" HEX, "index.json/x",
					   "blobs/sha256/AAAA", ".//index.json" };
	static struct image_archive a;
	struct sb_err err = { 0 };

	for (size_t i = 0; i < SB_ARRAY_LEN(bad); i++) {
		static struct tar_make t;

		t.len = 0;
		file(&t, bad[i], "x");
		err = (struct sb_err){ 0 };
		CHECK_EQ(scan(&t, &a, &err), -EBADMSG);
		CHECK(strstr(err.text, "entry \"") != NULL);
	}
}

TEST(places)
{
	static const char types[] = { '1', '2', '3', '4', '6' };
	static struct image_archive a;
	static struct tar_make t;
	struct sb_err err = { 0 };

	t.len = 0;
	file(&t, "oci-layout", "{}");
	file(&t, "./index.json", "twelve bytes");
	tar_seal(tar_head(&t, '5', "blobs/", NULL, 0755, 0));
	file(&t, "blobs/sha256/" HEX, "");
	CHECK_EQ(scan(&t, &a, &err), 0);
	CHECK_EQ(a.n, 3);
	CHECK_STR(a.v[1].name, "index.json");
	CHECK_EQ(a.v[1].at, 3 * 512);
	CHECK_EQ(a.v[1].size, 12);
	CHECK(memcmp(t.p + a.v[1].at, "twelve bytes", 12) == 0);
	file(&t, "index.json", "again");
	CHECK_EQ(scan(&t, &a, &err), -EBADMSG);
	for (size_t i = 0; i < sizeof(types); i++) {
		t.len = 0;
		tar_seal(tar_head(&t, types[i], "index.json", "x", 0644, 0));
		CHECK_EQ(scan(&t, &a, &err), -EBADMSG);
	}
	t.len = 0;
	file(&t, "index.json", "x");
	CHECK_EQ(image_archive_scan(t.p, t.len, &a, &err), -EBADMSG); /* no end */
}
