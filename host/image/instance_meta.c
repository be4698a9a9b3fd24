#include "image/instance_meta.h"

#include <errno.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define PREFIX "io.sendbox.instance."
#define VERSION "1"

static const struct {
	const char *key;
	size_t at;
} fields[] = {
	{ "name", offsetof(struct instance_meta, name) },
	{ "base", offsetof(struct instance_meta, base) },
	{ "agent", offsetof(struct instance_meta, agent) },
	{ "image", offsetof(struct instance_meta, image) },
	{ "host", offsetof(struct instance_meta, host) },
	{ "runtime", offsetof(struct instance_meta, runtime) },
	{ "workspace", offsetof(struct instance_meta, workspace) },
	{ "options", offsetof(struct instance_meta, options) },
	{ "cpus", offsetof(struct instance_meta, cpus) },
	{ "memory", offsetof(struct instance_meta, memory) },
};

static char **field(const struct instance_meta *m, size_t k)
{
	return (char **)(uintptr_t)((const char *)m + fields[k].at);
}

void instance_meta_done(struct instance_meta *m)
{
	for (size_t k = 0; k < SB_ARRAY_LEN(fields); k++)
		free(*field(m, k));
	*m = (struct instance_meta){ 0 };
}

static bool shown_ok(const char *s, size_t len)
{
	if (len == 0 || len > INSTANCE_META_MAX)
		return false;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f ||
		    (s[i] == '\xc2' && (unsigned char)s[i + 1] < 0xa0)) /* C1, in UTF-8 */
			return false;
	return true;
}

static int take(const json_t *notes, size_t k, struct instance_meta *m, struct sb_err *err)
{
	char key[64];
	const json_t *v;

	(void)snprintf(key, sizeof(key), PREFIX "%s", fields[k].key);
	v = json_object_get(notes, key);
	if (!v)
		return 0;
	/* jansson takes no NUL in texts */
	if (!json_is_string(v) || !shown_ok(json_string_value(v), json_string_length(v)))
		return sb_err_set(err, -EBADMSG, "annotation %s: not a text of 1 to %u bytes without control "
						 "characters", key, INSTANCE_META_MAX);
	*field(m, k) = strdup(json_string_value(v));
	return *field(m, k) ? 0 : sb_err_set(err, -ENOMEM, "out of memory");
}

static int check(const struct instance_meta *m, struct sb_err *err)
{
	if (!m->name || !m->base || (strcmp(m->base, "layers") != 0 && strcmp(m->base, "host") != 0))
		return sb_err_set(err, -EBADMSG, "annotations " PREFIX "name and base: one is missing or wrong");
	return 0;
}

static void free_json(json_t **j)
{
	json_decref(*j);
}

int instance_meta_parse(const char *p, size_t len, struct instance_meta *ret, struct sb_err *err)
{
	SB_CLEANUP(instance_meta_done) struct instance_meta m = { 0 };
	SB_CLEANUP(free_json) json_t *j = len <= OCI_MAX_DOCUMENT
					    ? json_loadb(p, len, JSON_REJECT_DUPLICATES, NULL) : NULL;
	const json_t *notes = json_object_get(j, "annotations");
	const char *version = json_string_value(json_object_get(notes, PREFIX "version"));
	int r = 0;

	if (!j)
		return sb_err_set(err, -EBADMSG, "the manifest is no valid JSON");
	if (!version)
		return sb_err_set(err, -ENOENT, "it is no export of an instance, but an image");
	if (strcmp(version, VERSION) != 0)
		return sb_err_set(err, -EPROTO, "it was exported by a newer sendbox");
	for (size_t k = 0; r == 0 && k < SB_ARRAY_LEN(fields); k++)
		r = take(notes, k, &m, err);
	if (r == 0)
		r = check(&m, err);
	if (r < 0)
		return r;
	*ret = m;
	m = (struct instance_meta){ 0 };
	return 0;
}

/* ---- writing ---- */

static int dump(json_t *j, char **ret)
{
	*ret = j ? json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	json_decref(j);
	return *ret ? 0 : -ENOMEM;
}

int instance_image_config(const struct instance_image *i, char **ret)
{
	json_t *env = json_array();
	json_t *ids = json_array();

	for (char *const *e = i->env; e && *e; e++)
		(void)json_array_append_new(env, json_string(*e));
	for (size_t k = 0; k < i->n_layers; k++) /* not packed: the blob is the content */
		(void)json_array_append_new(ids, json_string(i->layers[k].digest));
	return dump(json_pack("{s:s, s:s, s:{s:o}, s:{s:s, s:o}}", "architecture", i->arch, "os", "linux",
			      "config", "Env", env, "rootfs", "type", "layers", "diff_ids", ids), ret);
}

static json_t *descriptor(const char *type, const struct oci_blob *b)
{
	return json_pack("{s:s, s:s, s:I}", "mediaType", type, "digest", b->digest, "size",
			 (json_int_t)b->size);
}

static json_t *annotations(const struct instance_meta *m)
{
	json_t *notes = json_pack("{s:s}", PREFIX "version", VERSION);

	for (size_t k = 0; notes && k < SB_ARRAY_LEN(fields); k++) {
		const char *s = *field(m, k);
		char key[64];

		(void)snprintf(key, sizeof(key), PREFIX "%s", fields[k].key);
		if (s && shown_ok(s, strlen(s)))
			(void)json_object_set_new(notes, key, json_string(s)); /* no UTF-8: left out */
	}
	return notes;
}

int instance_image_manifest(const struct instance_image *i, const struct oci_blob *config, char **ret)
{
	json_t *layers = json_array();

	for (size_t k = 0; k < i->n_layers; k++)
		(void)json_array_append_new(
			layers, descriptor("application/vnd.oci.image.layer.v1.tar", &i->layers[k]));
	return dump(json_pack("{s:i, s:s, s:o, s:o, s:o}", "schemaVersion", 2, "mediaType",
			      "application/vnd.oci.image.manifest.v1+json", "config",
			      descriptor("application/vnd.oci.image.config.v1+json", config), "layers", layers,
			      "annotations", annotations(i->meta)), ret);
}

int instance_image_index(const struct instance_image *i, const struct oci_blob *manifest, char **ret)
{
	json_t *m = descriptor("application/vnd.oci.image.manifest.v1+json", manifest);

	(void)json_object_set_new(m, "platform", json_pack("{s:s, s:s}", "architecture", i->arch, "os",
							   "linux"));
	(void)json_object_set_new(m, "annotations",
				  json_pack("{s:s}", "org.opencontainers.image.ref.name", i->meta->name));
	return dump(json_pack("{s:i, s:s, s:[o]}", "schemaVersion", 2, "mediaType",
			      "application/vnd.oci.image.index.v1+json", "manifests", m), ret);
}
