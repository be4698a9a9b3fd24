#include "core/provenance.h"

#include <errno.h>
#include <string.h>

#include "core/json_i.h"

#define FORMAT "sendbox-provenance"

static const char *const kinds[SB_PROV_KINDS] = { NULL, "content", "configuration", "artifact",
						  "report" };
static const struct sb_json_field sig_fields[] = {
	SB_JSON_HEX(struct sb_prov_sig, "signature_id", id),
	SB_JSON_HEX(struct sb_prov_sig, "signer", signer),
	SB_JSON_F(struct sb_prov_sig, "signed_at", K_U64, signed_at),
	SB_JSON_F(struct sb_prov_sig, "expires_at", K_U64, expires_at),
};
static const struct sb_json_field subject_fields[] = {
	SB_JSON_ENUM(struct sb_prov_sig, "kind", kind, kinds),
	SB_JSON_F(struct sb_prov_sig, "name", K_STR, name),
	SB_JSON_HEX(struct sb_prov_sig, "sha256", sha256),
};
static const struct sb_json_field signature_field[] = {
	SB_JSON_HEX(struct sb_prov_sig, "signature", signature),
};

const char *sb_prov_kind_name(enum sb_prov_kind k)
{
	return k > SB_PROV_NONE && k < SB_PROV_KINDS ? kinds[k] : "none";
}

enum sb_prov_kind sb_prov_kind_of(const char *name)
{
	for (int k = SB_PROV_NONE + 1; k < SB_PROV_KINDS; k++)
		if (strcmp(kinds[k], name) == 0)
			return (enum sb_prov_kind)k;
	return SB_PROV_NONE;
}

void sb_prov_sig_done(struct sb_prov_sig *s)
{
	for (size_t i = 0; i < s->n_meta; i++) {
		free(s->meta[i].key);
		free(s->meta[i].value);
	}
	free(s->meta);
	free(s->name);
	*s = (struct sb_prov_sig){ 0 };
}

void sb_prov_file_done(struct sb_prov_file *f)
{
	for (size_t i = 0; i < f->n; i++)
		sb_prov_sig_done(&f->sigs[i]);
	free(f->sigs);
	*f = (struct sb_prov_file){ 0 };
}

/* UTF-8 without control characters. */
static bool clean(const char *s, size_t max)
{
	json_t *j;

	if (strlen(s) > max)
		return false;
	for (const char *c = s; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return false;
	j = json_string(s);
	json_decref(j);
	return j != NULL;
}

static bool sane(const struct sb_prov_sig *s)
{
	size_t bytes = 0;

	if (s->kind == SB_PROV_NONE || s->kind >= SB_PROV_KINDS || !s->name || s->name[0] == '\0' ||
	    !clean(s->name, SB_PROV_NAME_MAX) || s->n_meta > SB_PROV_META_MAX ||
	    s->signed_at > INT64_MAX || s->expires_at > INT64_MAX)
		return false;
	for (size_t i = 0; i < s->n_meta; i++) {
		const struct sb_prov_meta *m = &s->meta[i];

		if (m->key[0] == '\0' || !clean(m->key, SB_PROV_META_KEY) ||
		    !clean(m->value, SB_PROV_META_VALUE) ||
		    (i > 0 && strcmp(s->meta[i - 1].key, m->key) >= 0))
			return false;
		bytes += strlen(m->key) + strlen(m->value);
	}
	return bytes <= SB_PROV_META_BYTES;
}

int sb_prov_add_meta(struct sb_prov_sig *s, const char *key, const char *value)
{
	struct sb_prov_meta one = { NULL, NULL };
	struct sb_prov_meta *v;
	size_t at = 0;

	if (key[0] == '\0' || !clean(key, SB_PROV_META_KEY) || !clean(value, SB_PROV_META_VALUE))
		return -EINVAL;
	if (s->n_meta == SB_PROV_META_MAX)
		return -E2BIG;
	while (at < s->n_meta && strcmp(s->meta[at].key, key) < 0)
		at++;
	if (at < s->n_meta && strcmp(s->meta[at].key, key) == 0)
		return -EEXIST;
	v = realloc(s->meta, (s->n_meta + 1) * sizeof(*v));
	if (!v)
		return -ENOMEM;
	s->meta = v;
	one.key = strdup(key);
	one.value = strdup(value);
	if (!one.key || !one.value) {
		free(one.key);
		free(one.value);
		return -ENOMEM;
	}
	memmove(v + at + 1, v + at, (s->n_meta - at) * sizeof(*v));
	v[at] = one;
	s->n_meta++;
	return 0;
}

/* ---- one signature ---- */

static json_t *meta_json(const struct sb_prov_sig *s)
{
	json_t *o = json_object();

	for (size_t i = 0; o && i < s->n_meta; i++)
		if (json_object_set_new(o, s->meta[i].key, json_string(s->meta[i].value)) < 0) {
			json_decref(o);
			return NULL;
		}
	return o;
}

static char *text_of(const struct sb_prov_sig *s, bool with_signature)
{
	json_t *o = json_object();
	json_t *subject = json_object();
	bool ok = o && subject &&
		  sb_json_add(subject, subject_fields, SB_ARRAY_LEN(subject_fields), s) == 0 &&
		  sb_json_add(o, sig_fields, SB_ARRAY_LEN(sig_fields), s) == 0 &&
		  json_object_set_new(o, "format", json_string(FORMAT)) == 0 &&
		  json_object_set_new(o, "version", json_integer(SB_PROV_VERSION)) == 0 &&
		  json_object_set_new(o, "metadata", meta_json(s)) == 0 &&
		  json_object_set(o, "subject", subject) == 0 &&
		  (!with_signature || sb_json_add(o, signature_field, 1, s) == 0);

	json_decref(subject);
	if (ok)
		return sb_json_text(o);
	json_decref(o);
	return NULL;
}

int sb_prov_payload(const struct sb_prov_sig *s, uint8_t **ret, size_t *ret_len)
{
	sb_autofree char *text = NULL;
	size_t len;
	uint8_t *p;

	if (!sane(s))
		return -EINVAL;
	text = text_of(s, false);
	if (!text)
		return -ENOMEM;
	len = strlen(text);
	p = malloc(sizeof(SB_PROV_DOMAIN) + len);
	if (!p)
		return -ENOMEM;
	memcpy(p, SB_PROV_DOMAIN, sizeof(SB_PROV_DOMAIN));
	memcpy(p + sizeof(SB_PROV_DOMAIN), text, len);
	*ret = p;
	*ret_len = sizeof(SB_PROV_DOMAIN) + len;
	return 0;
}

int sb_prov_line(const struct sb_prov_sig *s, char **ret, size_t *ret_len)
{
	sb_autofree char *text = NULL;
	size_t len;
	char *p;

	if (!sane(s))
		return -EINVAL;
	text = text_of(s, true);
	if (!text)
		return -ENOMEM;
	len = strlen(text);
	p = realloc(text, len + 2);
	if (!p)
		return -ENOMEM;
	text = NULL;
	p[len] = '\n';
	p[len + 1] = '\0';
	*ret = p;
	*ret_len = len + 1;
	return 0;
}

static int get_meta(const json_t *o, struct sb_prov_sig *s)
{
	json_t *m = json_object_get(o, "metadata");
	const char *key;
	json_t *value;

	if (!json_is_object(m))
		return -EBADMSG;
	json_object_foreach(m, key, value) {
		int r = json_is_string(value) ? sb_prov_add_meta(s, key, json_string_value(value))
					      : -EBADMSG;

		if (r < 0)
			return r == -ENOMEM ? r : -EBADMSG;
	}
	return 0;
}

static int get_sig(const json_t *o, struct sb_prov_sig *s, struct sb_err *err)
{
	const char *format = json_string_value(json_object_get(o, "format"));
	const json_t *version = json_object_get(o, "version");
	const json_t *subject = json_object_get(o, "subject");
	int r;

	if (!format || strcmp(format, FORMAT) != 0)
		return sb_json_bad(err, "format", "is not " FORMAT);
	if (!json_is_integer(version) || json_integer_value(version) != SB_PROV_VERSION)
		return sb_json_bad(err, "version", "is one that this sendbox does not know");
	if (!json_is_object(subject))
		return sb_json_bad(err, "subject", "is missing");
	r = sb_json_get(o, sig_fields, SB_ARRAY_LEN(sig_fields), s, err);
	if (r == 0)
		r = sb_json_get(subject, subject_fields, SB_ARRAY_LEN(subject_fields), s, err);
	if (r == 0)
		r = sb_json_get(o, signature_field, 1, s, err);
	if (r == 0)
		r = get_meta(o, s);
	return r;
}

/* @len: with the newline */
static int parse_line(const char *line, size_t len, struct sb_prov_sig *ret, struct sb_err *err)
{
	struct sb_prov_sig s = { 0 };
	sb_autofree char *again = NULL;
	size_t again_len = 0;
	json_t *o;
	int r = sb_json_load("signature", line, len, SB_PROV_LINE_MAX, 0, &o, err);

	if (r < 0)
		return r;
	r = get_sig(o, &s, err);
	json_decref(o);
	if (r == 0)
		r = sb_prov_line(&s, &again, &again_len);
	if (r == 0)
		r = sb_json_same("signature", line, len, again, again_len, err);
	if (r < 0) {
		sb_prov_sig_done(&s);
		r = r == -EINVAL ? -EBADMSG : r;
		return sb_err_set(err, r, "cannot be read as a signature");
	}
	*ret = s;
	return 0;
}

static bool seen(const struct sb_prov_file *f, const uint8_t id[16])
{
	for (size_t i = 0; i + 1 < f->n; i++)
		if (memcmp(f->sigs[i].id, id, 16) == 0)
			return true;
	return false;
}

int sb_prov_parse(const char *bytes, size_t len, struct sb_prov_file *ret, struct sb_err *err)
{
	sb_autoprov struct sb_prov_file f = { .n = 0 };
	struct sb_err why = { 0 };

	if (len == 0 || len > SB_PROV_FILE_MAX)
		return sb_err_set(err, -EBADMSG, "no signatures: %zu bytes", len);
	while (len > 0) {
		const char *end = memchr(bytes, '\n', SB_MIN(len, (size_t)SB_PROV_LINE_MAX));
		struct sb_prov_sig *v;
		size_t n;
		int r;

		if (!end || f.n == SB_PROV_MAX)
			return sb_err_set(err, -EBADMSG, "line %zu: %s", f.n + 1,
					  end ? "more than 256 signatures" : "without its end, or too long");
		n = (size_t)(end - bytes) + 1;
		v = realloc(f.sigs, (f.n + 1) * sizeof(*v));
		if (!v)
			return sb_err_set(err, -ENOMEM, "out of memory");
		f.sigs = v;
		r = parse_line(bytes, n, &v[f.n], &why);
		if (r < 0)
			return sb_err_set(err, r, "line %zu: %.300s", f.n + 1, why.text);
		f.n++;
		if (seen(&f, v[f.n - 1].id))
			return sb_err_set(err, -EBADMSG, "line %zu: a signature id for the second time", f.n);
		bytes += n;
		len -= n;
	}
	*ret = f;
	f = (struct sb_prov_file){ .n = 0 };
	return 0;
}
