#include "image/oci.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/num.h"

static void json_freep(json_t **j)
{
	json_decref(*j);
}
#define auto_json SB_CLEANUP(json_freep)

static int bad(struct sb_err *err, const char *what)
{
	return sb_err_set(err, -EBADMSG, "%s", what);
}

static int load(const char *p, size_t len, json_t **ret, struct sb_err *err)
{
	json_error_t e;

	if (len > OCI_MAX_DOCUMENT)
		return bad(err, "a document of more than 4 MiB");
	*ret = json_loadb(p, len, JSON_REJECT_DUPLICATES, &e);
	if (!*ret)
		return sb_err_set(err, -EBADMSG, "no valid JSON: line %d: %.100s", e.line, e.text);
	return json_is_object(*ret) ? 0 : bad(err, "a document that is no object");
}

static const char *text_of(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

static bool one_of(const char *s, const char *const *list)
{
	for (; s && *list; list++)
		if (strcmp(s, *list) == 0)
			return true;
	return false;
}

static int blob(const json_t *o, struct oci_blob *ret, struct sb_err *err)
{
	const char *digest = text_of(o, "digest");
	const json_t *size = json_object_get(o, "size");
	uint8_t bin[32];

	if (!digest || strlen(digest) != 71 || strncmp(digest, "sha256:", 7) != 0 ||
	    sb_hex_parse(digest + 7, bin, sizeof(bin)) < 0)
		return bad(err, "a digest that is not sha256: and 64 lower-case digits");
	if (!json_is_integer(size) || json_integer_value(size) < 0)
		return bad(err, "a size that is no number");
	memcpy(ret->digest, digest, 72);
	ret->size = (uint64_t)json_integer_value(size);
	return 0;
}

int oci_kind(const char *p, size_t len, enum oci_kind *ret, struct sb_err *err)
{
	auto_json json_t *j = NULL;
	int r = load(p, len, &j, err);
	bool list;
	bool layers;

	if (r < 0)
		return r;
	list = json_object_get(j, "manifests") != NULL;
	layers = json_object_get(j, "layers") != NULL;
	/* a document that could be read as either is refused */
	if (list == layers || json_object_get(j, "fsLayers"))
		return bad(err, "neither an image index nor an image manifest of a known kind");
	*ret = list ? OCI_INDEX : OCI_MANIFEST;
	return 0;
}

static bool for_us(const json_t *m, const char *arch)
{
	const json_t *platform = json_object_get(m, "platform");
	const char *os = text_of(platform, "os");
	const char *a = text_of(platform, "architecture");

	return platform == NULL || (os && strcmp(os, "linux") == 0 && a && strcmp(a, arch) == 0);
}

int oci_index_pick(const char *p, size_t len, const char *tag, const char *arch,
		   struct oci_blob *ret, struct sb_err *err)
{
	static const char *const types[] = {
		"application/vnd.oci.image.manifest.v1+json",
		"application/vnd.oci.image.index.v1+json",
		"application/vnd.docker.distribution.manifest.v2+json",
		"application/vnd.docker.distribution.manifest.list.v2+json", NULL
	};
	auto_json json_t *j = NULL;
	const json_t *list;
	const json_t *found = NULL;
	size_t n;
	int r = load(p, len, &j, err);

	if (r < 0)
		return r;
	list = json_object_get(j, "manifests");
	n = json_array_size(list);
	if (n == 0 || n > OCI_MAX_ENTRIES)
		return bad(err, "an index with no manifest, or with more than 256");
	for (size_t i = 0; i < n; i++) {
		const json_t *m = json_array_get(list, i);
		const char *name = text_of(json_object_get(m, "annotations"),
					   "org.opencontainers.image.ref.name");

		if ((tag && (!name || strcmp(name, tag) != 0)) || !for_us(m, arch) ||
		    !one_of(text_of(m, "mediaType"), types))
			continue;
		if (found && (tag || !json_object_get(found, "platform")))
			return sb_err_set(err, -ENOENT,
					  "more than one image is there: say which by its tag");
		if (!found)
			found = m;
	}
	if (!found)
		return tag ? sb_err_set(err, -ENOENT, "there is no image with the tag \"%.128s\" for "
						      "linux/%s", tag, arch) :
			     sb_err_set(err, -ENOENT, "there is no image for linux/%s", arch);
	return blob(found, ret, err);
}

int oci_manifest_parse(const char *p, size_t len, struct oci_manifest *ret, struct sb_err *err)
{
	static const char *const layer_types[] = {
		"application/vnd.oci.image.layer.v1.tar",
		"application/vnd.oci.image.layer.v1.tar+gzip",
		"application/vnd.oci.image.layer.v1.tar+zstd",
		"application/vnd.docker.image.rootfs.diff.tar",
		"application/vnd.docker.image.rootfs.diff.tar.gzip",
		"application/vnd.docker.image.rootfs.diff.tar.zstd", NULL
	};
	auto_json json_t *j = NULL;
	struct oci_manifest m = { 0 };
	const json_t *layers;
	int r = load(p, len, &j, err);

	if (r == 0 && json_integer_value(json_object_get(j, "schemaVersion")) != 2)
		r = bad(err, "a manifest of an unknown schema");
	if (r == 0)
		r = blob(json_object_get(j, "config"), &m.config, err);
	if (r < 0)
		return r;
	if (m.config.size > OCI_MAX_DOCUMENT)
		return bad(err, "a config of more than 4 MiB");
	layers = json_object_get(j, "layers");
	m.n_layers = json_array_size(layers);
	if (m.n_layers == 0 || m.n_layers > OCI_MAX_LAYERS)
		return bad(err, "a manifest with no layer, or with more than 127");
	for (size_t i = 0; r == 0 && i < m.n_layers; i++) {
		const json_t *l = json_array_get(layers, i);
		const char *type = text_of(l, "mediaType");

		if (!one_of(type, layer_types))
			return sb_err_set(err, -EBADMSG, "layer %zu has the type \"%.100s\", which is "
							 "not taken", i + 1, type ? type : "");
		r = blob(l, &m.layers[i], err);
		if (r == 0 && __builtin_add_overflow(m.total, m.layers[i].size, &m.total))
			r = bad(err, "layers of more bytes than can be counted");
	}
	if (r == 0)
		*ret = m;
	return r;
}

void oci_config_done(struct oci_config *c)
{
	sb_free_list(&c->env);
	free(c->user);
	free(c->workdir);
	*c = (struct oci_config){ 0 };
}

static bool env_ok(const char *s)
{
	const char *eq = s ? strchr(s, '=') : NULL;

	return eq && eq != s && strlen(s) < 32768;
}

static int take_env(const json_t *list, char ***ret, struct sb_err *err)
{
	size_t n = json_array_size(list);
	char **env;

	if (list && !json_is_array(list) && !json_is_null(list))
		return bad(err, "an environment that is no list");
	if (n > OCI_MAX_ENV)
		return bad(err, "more than 256 variables in the environment");
	env = calloc(n + 1, sizeof(char *));
	if (!env)
		return -ENOMEM;
	*ret = env;
	for (size_t i = 0; i < n; i++) {
		const char *s = json_string_value(json_array_get(list, i));

		if (!env_ok(s))
			return bad(err, "a variable that is not NAME=VALUE");
		env[i] = strdup(s);
		if (!env[i])
			return -ENOMEM;
	}
	return 0;
}

static int take_text(const json_t *o, const char *key, char **ret)
{
	const char *s = text_of(o, key);

	if (!s || *s == '\0' || strlen(s) > 4095)
		return 0;
	*ret = strdup(s);
	return *ret ? 0 : -ENOMEM;
}

int oci_config_parse(const char *p, size_t len, const char *arch, size_t n_layers,
		     struct oci_config *ret, struct sb_err *err)
{
	auto_json json_t *j = NULL;
	struct oci_config c = { 0 };
	const json_t *config;
	const char *a;
	const char *os;
	int r = load(p, len, &j, err);

	if (r < 0)
		return r;
	a = text_of(j, "architecture");
	os = text_of(j, "os");
	if (!a || !os || strcmp(a, arch) != 0 || strcmp(os, "linux") != 0)
		return sb_err_set(err, -ENOENT, "the image is for %.20s/%.20s, this machine is linux/%s",
				  os ? os : "?", a ? a : "?", arch);
	if (json_array_size(json_object_get(json_object_get(j, "rootfs"), "diff_ids")) != n_layers)
		return bad(err, "config and manifest name different numbers of layers");
	config = json_object_get(j, "config");
	r = take_env(json_object_get(config, "Env"), &c.env, err);
	if (r == 0)
		r = take_text(config, "User", &c.user);
	if (r == 0)
		r = take_text(config, "WorkingDir", &c.workdir);
	if (r < 0) {
		oci_config_done(&c);
		return r;
	}
	*ret = c;
	return 0;
}
