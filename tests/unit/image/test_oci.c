#include "image/oci.h"
#include "image/ref.h"
#include "t.h"

#define D1 "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define D2 "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define MT "application/vnd.oci.image.manifest.v1+json"

static struct image_ref ref;

static void is_ref(const char *text, enum image_source source, const char *name, const char *tag,
		   const char *digest, bool loopback)
{
	struct sb_err err = { 0 };

	if (image_ref_parse(text, &ref, &err) != 0)
		t_fail(__FILE__, __LINE__, "%s: %s", text, err.text);
	CHECK_EQ(ref.source, source);
	CHECK_STR(ref.name, name);
	CHECK_STR(ref.tag, tag);
	CHECK_STR(ref.digest, digest);
	CHECK_EQ(ref.loopback, loopback);
}

TEST(references)
{
	static const char *const bad[] = {
		"", "-x", "a b", "a//b", "../x", "x:", "x:-t", "x@sha256:abc", "x@md5:aa", "oci:", "dir:",
		"x/", "x:ta g", "docker-archive:", "x@" D1 "0", "a\tb", "https://x/y", "docker://x",
	};

	is_ref("host", IMAGE_SOURCE_HOST, "", "", "", false);
	is_ref("/a/b:c", IMAGE_SOURCE_DIR, "/a/b:c", "", "", false);
	is_ref("dir:rel", IMAGE_SOURCE_DIR, "rel", "", "", false);
	is_ref("node:22", IMAGE_SOURCE_REGISTRY, "node", "22", "", false);
	is_ref("node", IMAGE_SOURCE_REGISTRY, "node", "", "", false);
	is_ref("r.example:5000/a/b", IMAGE_SOURCE_REGISTRY, "r.example:5000/a/b", "", "", false);
	is_ref("r.example/a:t@" D1, IMAGE_SOURCE_REGISTRY, "r.example/a", "t", D1, false);
	is_ref("127.0.0.1:5000/x:t", IMAGE_SOURCE_REGISTRY, "127.0.0.1:5000/x", "t", "", true);
	is_ref("localhost/x", IMAGE_SOURCE_REGISTRY, "localhost/x", "", "", true);
	is_ref("[::1]:5000/x", IMAGE_SOURCE_REGISTRY, "[::1]:5000/x", "", "", true);
	/* looks like this machine, is not */
	is_ref("127.0.0.1.example/x", IMAGE_SOURCE_REGISTRY, "127.0.0.1.example/x", "", "", false);
	is_ref("localhost.example/x", IMAGE_SOURCE_REGISTRY, "localhost.example/x", "", "", false);
	is_ref("oci:/d/e:t", IMAGE_SOURCE_OCI, "/d/e", "t", "", false);
	is_ref("oci:/d:x/e", IMAGE_SOURCE_OCI, "/d:x/e", "", "", false);
	is_ref("oci-archive:f.tar", IMAGE_SOURCE_OCI_ARCHIVE, "f.tar", "", "", false);
	for (size_t i = 0; i < SB_ARRAY_LEN(bad); i++)
		if (image_ref_parse(bad[i], &ref, NULL) != -EINVAL)
			t_fail(__FILE__, __LINE__, "\"%s\" was taken", bad[i]);
}

static int pick(const char *text, const char *tag, struct oci_blob *b)
{
	return oci_index_pick(text, strlen(text), tag, "amd64", b, NULL);
}

TEST(lists)
{
	static const char list[] =
		"{\"manifests\":[{\"mediaType\":\"" MT "\",\"digest\":\"" D1 "\",\"size\":7,"
		"\"platform\":{\"os\":\"linux\",\"architecture\":\"arm64\"}},"
		"{\"mediaType\":\"" MT "\",\"digest\":\"" D2 "\",\"size\":8,"
		"\"platform\":{\"os\":\"linux\",\"architecture\":\"amd64\"}}]}";
	static const char two[] =
		"{\"manifests\":[{\"mediaType\":\"" MT "\",\"digest\":\"" D1 "\",\"size\":7,"
		"\"annotations\":{\"org.opencontainers.image.ref.name\":\"a\"}},"
		"{\"mediaType\":\"" MT "\",\"digest\":\"" D2 "\",\"size\":8,"
		"\"annotations\":{\"org.opencontainers.image.ref.name\":\"b\"}}]}";
	struct oci_blob b;

	CHECK_EQ(pick(list, NULL, &b), 0);
	CHECK_STR(b.digest, D2);
	CHECK_EQ(b.size, 8);
	CHECK_EQ(pick(list, "x", &b), -ENOENT);
	CHECK_EQ(pick(two, NULL, &b), -ENOENT);
	CHECK_EQ(pick(two, "a", &b), 0);
	CHECK_STR(b.digest, D1);
	CHECK_EQ(pick("{\"manifests\":[]}", NULL, &b), -EBADMSG);
	CHECK_EQ(pick("[]", NULL, &b), -EBADMSG);
}

TEST(manifest)
{
#define LAYER "{\"mediaType\":\"application/vnd.oci.image.layer.v1.tar+gzip\",\"digest\":\"" D2 "\",\"size\":9}"
#define HEAD "{\"schemaVersion\":2,\"config\":{\"digest\":\"" D1 "\",\"size\":3},\"layers\":["
	static const char *const bad[] = {
		HEAD "]}",
		HEAD LAYER "],\"layers\":[" LAYER "]}",
		"{\"schemaVersion\":1,\"config\":{\"digest\":\"" D1 "\",\"size\":3},\"layers\":[" LAYER "]}",
		HEAD "{\"mediaType\":\"application/vnd.oci.image.layer.v1.tar+gzip\",\"digest\":\"" D2
		"\",\"size\":-1}]}",
		HEAD "{\"mediaType\":\"x\",\"digest\":\"" D2 "\",\"size\":1}]}",
		HEAD "{\"mediaType\":\"application/vnd.oci.image.layer.v1.tar\",\"digest\":\"sha256:../x\","
		"\"size\":1}]}",
		HEAD LAYER "]} x",
	};
	struct oci_manifest m;
	enum oci_kind kind;
	const char *good = HEAD LAYER "," LAYER "]}";

	CHECK_EQ(oci_manifest_parse(good, strlen(good), &m, NULL), 0);
	CHECK_EQ(m.n_layers, 2);
	CHECK_EQ(m.total, 18);
	CHECK_STR(m.layers[1].digest, D2);
	CHECK_EQ(oci_kind(good, strlen(good), &kind, NULL), 0);
	CHECK_EQ(kind, OCI_MANIFEST);
	for (size_t i = 0; i < SB_ARRAY_LEN(bad); i++)
		if (oci_manifest_parse(bad[i], strlen(bad[i]), &m, NULL) != -EBADMSG)
			t_fail(__FILE__, __LINE__, "case %zu was taken", i);
	good = "{\"layers\":[],\"manifests\":[]}"; /* read as one by some, as the other by others */
	CHECK_EQ(oci_kind(good, strlen(good), &kind, NULL), -EBADMSG);
}

TEST(config)
{
	const char *text = "{\"architecture\":\"amd64\",\"os\":\"linux\",\"config\":{\"Env\":[\"A=b\",\"C=\"],"
			   "\"User\":\"7\"},\"rootfs\":{\"diff_ids\":[\"x\"]}}";
	struct oci_config c = { 0 };

	CHECK_EQ(oci_config_parse(text, strlen(text), "amd64", 1, &c, NULL), 0);
	CHECK_STR(c.env[0], "A=b");
	CHECK_STR(c.env[1], "C=");
	CHECK(c.env[2] == NULL && c.workdir == NULL);
	CHECK_STR(c.user, "7");
	oci_config_done(&c);
	CHECK_EQ(oci_config_parse(text, strlen(text), "arm64", 1, &c, NULL), -ENOENT);
	CHECK_EQ(oci_config_parse(text, strlen(text), "amd64", 2, &c, NULL), -EBADMSG);
	text = "{\"architecture\":\"amd64\",\"os\":\"linux\",\"config\":{\"Env\":[\"A\"]},"
	       "\"rootfs\":{\"diff_ids\":[\"x\"]}}";
	CHECK_EQ(oci_config_parse(text, strlen(text), "amd64", 1, &c, NULL), -EBADMSG);
}
