#include "core/bundle.h"

#include <errno.h>
#include <string.h>

#include "base/num.h"
#include "core/json_i.h"

#define FORMAT "sendbox-bundle"
#define SIGNATURE_HEAD "sendbox-bundle-signature 1 "

static const char *const kind_names[SB_BUNDLE_KINDS] = {
	NULL, "guest", "modules", "initramfs", "inventory", "spdx", "cyclonedx",
};
static const char *const kind_paths[SB_BUNDLE_KINDS] = {
	NULL,
	"bin/sendbox-guest",
	"boot/modules",
	"boot/initramfs.cpio",
	"share/inventory.json",
	"share/sbom.spdx.json",
	"share/sbom.cdx.json",
};

const char *sb_bundle_kind_name(enum sb_bundle_kind k)
{
	return (unsigned int)k < SB_BUNDLE_KINDS ? kind_names[k] : NULL;
}

const char *sb_bundle_kind_path(enum sb_bundle_kind k)
{
	return (unsigned int)k < SB_BUNDLE_KINDS ? kind_paths[k] : NULL;
}

uint32_t sb_bundle_kind_mode(enum sb_bundle_kind k)
{
	return k == SB_BUNDLE_GUEST ? 0555 : 0444;
}

#define F(key, kind, member) SB_JSON_F(struct sb_bundle_manifest, key, kind, member)
static const struct sb_json_field manifest_fields[] = {
	F("release", K_STR, release),
	F("architecture", K_STR, architecture),
	F("sequence", K_U64, sequence),
	F("minimum_sequence", K_U64, minimum_sequence),
	F("plan_version", K_U32, plan_version),
};
#define AF(key, kind, member) SB_JSON_F(struct sb_bundle_artifact, key, kind, member)
static const struct sb_json_field artifact_fields[] = {
	AF("path", K_STR, path),
	SB_JSON_ENUM(struct sb_bundle_artifact, "kind", kind, kind_names),
	AF("mode", K_U32, mode),
	AF("size", K_U64, size),
	SB_JSON_HEX(struct sb_bundle_artifact, "sha256", sha256),
};

void sb_bundle_manifest_done(struct sb_bundle_manifest *m)
{
	for (size_t i = 0; i < m->n_artifacts; i++)
		free(m->artifacts[i].path);
	free(m->artifacts);
	free(m->release);
	free(m->architecture);
	memset(m, 0, sizeof(*m));
}

const struct sb_bundle_artifact *sb_bundle_find(const struct sb_bundle_manifest *m,
						enum sb_bundle_kind kind)
{
	for (size_t i = 0; i < m->n_artifacts; i++)
		if (m->artifacts[i].kind == kind)
			return &m->artifacts[i];
	return NULL;
}

/* ---- rules ---- */

#define PLAIN "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+-"

static int refuse(struct sb_err *err, const char *what, const char *value, const char *rule)
{
	return sb_err_set(err, -EINVAL, "bundle manifest: %s \"%.130s\" %s", what,
			  value ? value : "", rule);
}

static bool word_ok(const char *s, const char *set)
{
	return s && *s && *s != '-' && *s != '.' && strlen(s) <= SB_BUNDLE_WORD_MAX &&
	       s[strspn(s, set)] == '\0';
}

static bool path_ok(const char *p)
{
	if (!p || !*p || strlen(p) > SB_BUNDLE_PATH_MAX || p[strspn(p, PLAIN "/")] != '\0')
		return false;
	for (size_t i = 0; p[i]; i++) {
		bool start = i == 0 || p[i - 1] == '/';

		if (start && (p[i] == '/' || p[i] == '.' || p[i] == '-'))
			return false;
	}
	return p[strlen(p) - 1] != '/';
}

/* Whether @a, a file, is also a directory of the path @b. */
static bool is_parent(const char *a, const char *b)
{
	size_t n = strlen(a);

	return strncmp(a, b, n) == 0 && b[n] == '/';
}

static int check_artifact(const struct sb_bundle_artifact *a, struct sb_err *err)
{
	bool guest = a->kind == SB_BUNDLE_GUEST;

	if (!path_ok(a->path))
		return refuse(err, "path", a->path,
			      "must be relative, of plain names, none with a dot in front");
	if (strcmp(a->path, SB_BUNDLE_MANIFEST) == 0 || strcmp(a->path, SB_BUNDLE_SIGNATURE) == 0)
		return refuse(err, "path", a->path, "is not one of an artifact");
	if (!sb_bundle_kind_name(a->kind))
		return refuse(err, "artifact", a->path, "has no kind");
	if (a->mode != sb_bundle_kind_mode(a->kind))
		return refuse(err, "artifact", a->path,
			      guest ? "must have mode 0555" : "must have mode 0444");
	if (a->size == 0 || a->size > (guest ? SB_BUNDLE_GUEST_MAX : SB_BUNDLE_TEXT_MAX))
		return refuse(err, "artifact", a->path,
			      guest ? "must have 1 byte to 64 MiB" : "must have 1 byte to 1 MiB");
	return 0;
}

static int check_artifacts(const struct sb_bundle_manifest *m, struct sb_err *err)
{
	unsigned int seen = 0;

	if (m->n_artifacts > SB_BUNDLE_MAX_ARTIFACTS)
		return sb_err_set(err, -EINVAL, "bundle manifest: more than %d artifacts",
				  SB_BUNDLE_MAX_ARTIFACTS);
	for (size_t i = 0; i < m->n_artifacts; i++) {
		const struct sb_bundle_artifact *a = &m->artifacts[i];
		int r = check_artifact(a, err);

		if (r < 0)
			return r;
		if (i > 0 && strcmp(m->artifacts[i - 1].path, a->path) >= 0)
			return refuse(err, "path", a->path, "is not in sorted order, or there twice");
		for (size_t k = 0; k < i; k++)
			if (is_parent(m->artifacts[k].path, a->path))
				return refuse(err, "path", a->path, "lies beneath a file");
		if (seen & 1U << a->kind)
			return refuse(err, "artifact", a->path, "is the second one of its kind");
		seen |= 1U << a->kind;
	}
	for (unsigned int k = SB_BUNDLE_GUEST; k < SB_BUNDLE_KINDS; k++)
		if (!(seen & 1U << k))
			return refuse(err, "kind", kind_names[k], "is missing");
	return 0;
}

int sb_bundle_manifest_check(const struct sb_bundle_manifest *m, struct sb_err *err)
{
	if (!word_ok(m->release, PLAIN "~"))
		return refuse(err, "release", m->release,
			      "must be 1 to 64 characters of A-Z a-z 0-9 . _ + ~ -");
	if (!word_ok(m->architecture, PLAIN))
		return refuse(err, "architecture", m->architecture,
			      "must be 1 to 64 characters of A-Z a-z 0-9 . _ + -");
	if (m->sequence == 0 || m->sequence > SB_BUNDLE_SEQUENCE_MAX)
		return sb_err_set(err, -EINVAL, "bundle manifest: the sequence must be 1 to 2^53 - 1");
	if (m->minimum_sequence == 0 || m->minimum_sequence > m->sequence)
		return sb_err_set(err, -EINVAL, "bundle manifest: the minimum sequence must be 1 to "
				  "the sequence itself (%llu)", (unsigned long long)m->sequence);
	if (m->plan_version == 0)
		return sb_err_set(err, -EINVAL, "bundle manifest: no plan version");
	return check_artifacts(m, err);
}

/* ---- bytes ---- */

static int write_unchecked(const struct sb_bundle_manifest *m, char **ret, size_t *ret_len)
{
	json_t *o = json_object();
	char *text = NULL;

	if (o && json_object_set_new(o, "format", json_string(FORMAT)) == 0 &&
	    json_object_set_new(o, "version", json_integer(SB_BUNDLE_VERSION)) == 0 &&
	    sb_json_add(o, manifest_fields, SB_ARRAY_LEN(manifest_fields), m) == 0 &&
	    json_object_set_new(o, "artifacts",
				sb_json_list(m->artifacts, m->n_artifacts, sizeof(*m->artifacts),
					     artifact_fields, SB_ARRAY_LEN(artifact_fields))) == 0)
		text = sb_json_text(sb_take(&o));
	json_decref(o);
	if (!text)
		return -ENOMEM;
	*ret = text;
	*ret_len = strlen(text);
	return 0;
}

int sb_bundle_manifest_write(const struct sb_bundle_manifest *m, char **ret, size_t *ret_len,
			     struct sb_err *err)
{
	int r = sb_bundle_manifest_check(m, err);

	if (r == 0 && write_unchecked(m, ret, ret_len) < 0)
		r = sb_err_set(err, -ENOMEM, "out of memory");
	return r;
}

static int parse_object(const json_t *o, struct sb_bundle_manifest *m)
{
	const json_t *format = json_object_get(o, "format");
	void *list = NULL;
	int r;

	if (!json_is_string(format) || strcmp(json_string_value(format), FORMAT) != 0 ||
	    json_integer_value(json_object_get(o, "version")) != SB_BUNDLE_VERSION)
		return -EBADMSG;
	r = sb_json_get(o, manifest_fields, SB_ARRAY_LEN(manifest_fields), m, NULL);
	if (r < 0)
		return r;
	r = sb_json_get_list(o, "artifacts", SB_BUNDLE_MAX_ARTIFACTS, sizeof(*m->artifacts),
			     artifact_fields, SB_ARRAY_LEN(artifact_fields), &list,
			     &m->n_artifacts, NULL);
	m->artifacts = list;
	return r;
}

int sb_bundle_manifest_parse(const char *bytes, size_t len, struct sb_bundle_manifest *ret,
			     struct sb_err *err)
{
	sb_automanifest struct sb_bundle_manifest m = { 0 };
	sb_autofree char *again = NULL;
	size_t again_len = 0;
	json_t *o;
	int r;

	r = sb_json_load("bundle manifest", bytes, len, SB_BUNDLE_MANIFEST_MAX, 0, &o, err);
	if (r < 0)
		return r;
	r = parse_object(o, &m);
	json_decref(o);
	if (r == 0)
		r = write_unchecked(&m, &again, &again_len);
	if (r < 0)
		return sb_err_set(err, r, "bundle manifest: %s",
				  r == -ENOMEM ? "out of memory"
					       : "not of a format that this program knows");
	r = sb_json_same("bundle manifest", bytes, len, again, again_len, err);
	if (r < 0)
		return r;
	if (sb_bundle_manifest_check(&m, err) < 0)
		return -EBADMSG;
	*ret = m;
	memset(&m, 0, sizeof(m));
	return 0;
}

void sb_bundle_signature_write(const uint8_t key[32], const uint8_t sig[64],
			       char ret[SB_BUNDLE_SIGNATURE_LEN + 1])
{
	const size_t head = sizeof(SIGNATURE_HEAD) - 1;

	memcpy(ret, SIGNATURE_HEAD, head);
	sb_hex_write(key, 32, ret + head);
	ret[head + 64] = ' ';
	sb_hex_write(sig, 64, ret + head + 65);
	memcpy(ret + head + 193, "\n", 2);
}

int sb_bundle_signature_parse(const char *text, uint8_t key[32], uint8_t sig[64])
{
	const size_t head = sizeof(SIGNATURE_HEAD) - 1;
	char hex[129] = { 0 };
	uint8_t k[32];
	uint8_t s[64];

	if (memcmp(text, SIGNATURE_HEAD, head) != 0 || text[head + 64] != ' ' ||
	    text[SB_BUNDLE_SIGNATURE_LEN - 1] != '\n')
		return -EBADMSG;
	memcpy(hex, text + head, 64);
	if (sb_hex_parse(hex, k, sizeof(k)) < 0)
		return -EBADMSG;
	memcpy(hex, text + head + 65, 128);
	if (sb_hex_parse(hex, s, sizeof(s)) < 0)
		return -EBADMSG;
	memcpy(key, k, sizeof(k));
	memcpy(sig, s, sizeof(s));
	return 0;
}
