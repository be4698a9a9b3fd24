#include "core/json_i.h"

#include <errno.h>
#include <string.h>

#include "base/base64.h"
#include "base/num.h"

void sb_json_strings_free(char **v)
{
	for (size_t i = 0; v && v[i]; i++)
		free(v[i]);
	free(v);
}

/* ---- writing ---- */

static json_t *bytes_json(const char *s)
{
	size_t len = strlen(s);
	json_t *j = json_stringn(s, len); /* NULL when not valid UTF-8 */
	char *b64;

	if (j)
		return j;
	b64 = malloc(SB_BASE64_LEN(len) + 1);
	if (!b64)
		return NULL;
	sb_base64_write(s, len, b64);
	j = json_pack("{s:s}", "b64", b64);
	free(b64);
	return j;
}

static json_t *u64_json(uint64_t v)
{
	char text[24];
	size_t at = sizeof(text) - 1;

	if (v <= INT64_MAX)
		return json_integer((json_int_t)v);
	text[at] = '\0'; /* inode numbers of some file systems use the top bit */
	for (; v > 0; v /= 10)
		text[--at] = (char)('0' + v % 10);
	return json_string(text + at);
}

static json_t *hex_json(const uint8_t *p, size_t len)
{
	char text[2 * 64 + 1];

	sb_assert(len <= 64);
	sb_hex_write(p, len, text);
	return json_string(text);
}

static json_t *field_json(const struct sb_json_field *f, const void *base)
{
	const char *at = (const char *)base + f->offset;
	const char *s;
	uint16_t u16;
	uint32_t u32;
	uint64_t u64;
	bool b;

	switch (f->kind) {
	case K_U16:
		memcpy(&u16, at, sizeof(u16));
		return json_integer(u16);
	case K_U32:
		memcpy(&u32, at, sizeof(u32));
		return json_integer(u32);
	case K_U64:
		memcpy(&u64, at, sizeof(u64));
		return u64_json(u64);
	case K_BOOL:
		memcpy(&b, at, sizeof(b));
		return json_boolean(b);
	case K_ENUM:
		memcpy(&u32, at, sizeof(u32));
		return u32 < f->n_names && f->names[u32] ? json_string(f->names[u32]) : NULL;
	case K_STR:
	case K_STR_OR_NULL:
		memcpy(&s, at, sizeof(s));
		if (!s)
			return f->kind == K_STR_OR_NULL ? json_null() : NULL;
		return bytes_json(s);
	case K_HEX:
		return hex_json((const uint8_t *)at, f->len);
	default:
		return NULL;
	}
}

int sb_json_add(json_t *o, const struct sb_json_field *fields, size_t n, const void *base)
{
	for (size_t i = 0; i < n; i++)
		if (json_object_set_new(o, fields[i].key, field_json(&fields[i], base)) < 0)
			return -ENOMEM;
	return 0;
}

json_t *sb_json_strings(char *const *v)
{
	json_t *a = json_array();

	for (size_t i = 0; a && v && v[i]; i++) {
		if (json_array_append_new(a, bytes_json(v[i])) < 0) {
			json_decref(a);
			return NULL;
		}
	}
	return a;
}

json_t *sb_json_list(const void *v, size_t n, size_t size, const struct sb_json_field *fields,
		     size_t n_fields)
{
	json_t *a = json_array();

	for (size_t i = 0; a && i < n; i++) {
		json_t *o = json_object();

		if (!o || sb_json_add(o, fields, n_fields, (const char *)v + i * size) < 0 ||
		    json_array_append(a, o) < 0) {
			json_decref(o);
			json_decref(a);
			return NULL;
		}
		json_decref(o);
	}
	return a;
}

char *sb_json_text(json_t *o)
{
	char *text = o ? json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

	json_decref(o);
	return text;
}

/* ---- parsing ---- */

int sb_json_bad(struct sb_err *err, const char *key, const char *what)
{
	return sb_err_set(err, -EBADMSG, "plan: \"%s\" %s", key, what);
}

/* A string or {"b64": ...}, without NUL; malloc'd. */
static int bytes_parse(const json_t *j, char **ret)
{
	const json_t *b64;
	uint8_t *out;
	size_t len;

	if (json_is_string(j)) {
		if (strlen(json_string_value(j)) != json_string_length(j))
			return -EBADMSG;
		*ret = strdup(json_string_value(j));
		return *ret ? 0 : -ENOMEM;
	}
	b64 = json_object_get(j, "b64");
	if (!json_is_string(b64))
		return -EBADMSG;
	len = json_string_length(b64);
	out = malloc(len / 4 * 3 + 1);
	if (!out)
		return -ENOMEM;
	if (sb_base64_parse(json_string_value(b64), len, out, &len) < 0 || memchr(out, 0, len)) {
		free(out);
		return -EBADMSG;
	}
	out[len] = '\0';
	*ret = (char *)out;
	return 0;
}

static int u64_parse(const json_t *j, uint64_t *ret)
{
	if (json_is_integer(j)) {
		if (json_integer_value(j) < 0)
			return -EBADMSG;
		*ret = (uint64_t)json_integer_value(j);
		return 0;
	}
	if (!json_is_string(j) || strlen(json_string_value(j)) != json_string_length(j))
		return -EBADMSG;
	return sb_num_u64(json_string_value(j), 0, UINT64_MAX, ret) < 0 ? -EBADMSG : 0;
}

static int enum_parse(const struct sb_json_field *f, const json_t *j, uint32_t *ret)
{
	if (!json_is_string(j))
		return -EBADMSG;
	for (uint32_t i = 0; i < f->n_names; i++) {
		if (f->names[i] && strcmp(f->names[i], json_string_value(j)) == 0) {
			*ret = i;
			return 0;
		}
	}
	return -EBADMSG;
}

static int field_parse(const struct sb_json_field *f, const json_t *j, void *base)
{
	char *at = (char *)base + f->offset;
	uint64_t u64 = 0;
	uint32_t u32 = 0;
	uint16_t u16;
	char *s = NULL;
	bool b;
	int r;

	if (!j)
		return -EBADMSG;
	switch (f->kind) {
	case K_U16:
		r = u64_parse(j, &u64);
		if (r < 0 || u64 > UINT16_MAX)
			return -EBADMSG;
		u16 = (uint16_t)u64;
		memcpy(at, &u16, sizeof(u16));
		return 0;
	case K_U32:
		r = u64_parse(j, &u64);
		if (r < 0 || u64 > UINT32_MAX)
			return -EBADMSG;
		u32 = (uint32_t)u64;
		memcpy(at, &u32, sizeof(u32));
		return 0;
	case K_U64:
		r = u64_parse(j, &u64);
		if (r == 0)
			memcpy(at, &u64, sizeof(u64));
		return r;
	case K_BOOL:
		if (!json_is_boolean(j))
			return -EBADMSG;
		b = json_is_true(j);
		memcpy(at, &b, sizeof(b));
		return 0;
	case K_ENUM:
		r = enum_parse(f, j, &u32);
		if (r == 0)
			memcpy(at, &u32, sizeof(u32));
		return r;
	case K_STR:
	case K_STR_OR_NULL:
		if (f->kind == K_STR_OR_NULL && json_is_null(j))
			return 0;
		r = bytes_parse(j, &s);
		if (r == 0)
			memcpy(at, &s, sizeof(s));
		return r;
	case K_HEX:
		if (!json_is_string(j))
			return -EBADMSG;
		return sb_hex_parse(json_string_value(j), (uint8_t *)at, f->len) < 0 ? -EBADMSG : 0;
	default:
		return -EBADMSG;
	}
}

int sb_json_get(const json_t *o, const struct sb_json_field *fields, size_t n, void *base,
		struct sb_err *err)
{
	for (size_t i = 0; i < n; i++) {
		int r = field_parse(&fields[i], json_object_get(o, fields[i].key), base);

		if (r == -ENOMEM)
			return r;
		if (r < 0)
			return sb_json_bad(err, fields[i].key, "is missing or malformed");
	}
	return 0;
}

int sb_json_get_strings(const json_t *o, const char *key, size_t max, char ***ret,
			struct sb_err *err)
{
	const json_t *a = json_object_get(o, key);
	size_t n = json_array_size(a);
	char **v;
	int r = 0;

	if (!json_is_array(a) || n > max)
		return sb_json_bad(err, key, "is no list or is too long");
	v = calloc(n + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < n && r == 0; i++)
		r = bytes_parse(json_array_get(a, i), &v[i]);
	if (r < 0) {
		sb_json_strings_free(v);
		return r == -ENOMEM ? r : sb_json_bad(err, key, "has a malformed entry");
	}
	*ret = v;
	return 0;
}

int sb_json_get_list(const json_t *o, const char *key, size_t max, size_t size,
		     const struct sb_json_field *fields, size_t n_fields, void **ret, size_t *ret_n,
		     struct sb_err *err)
{
	const json_t *a = json_object_get(o, key);
	size_t n = json_array_size(a);

	if (!json_is_array(a) || n > max)
		return sb_json_bad(err, key, "is no list or is too long");
	*ret = calloc(n + 1, size);
	if (!*ret)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		int r;

		*ret_n = i + 1;
		r = sb_json_get(json_array_get(a, i), fields, n_fields, (char *)*ret + i * size,
				err);
		if (r < 0)
			return r;
	}
	return 0;
}

int sb_json_load(const char *what, const char *bytes, size_t len, size_t max, size_t flags,
		 json_t **ret, struct sb_err *err)
{
	json_error_t je;
	json_t *o;

	if (len > max)
		return sb_err_set(err, -EBADMSG, "%s: larger than %zu bytes", what, max);
	o = json_loadb(bytes, len, JSON_REJECT_DUPLICATES | flags, &je);
	if (!o)
		return sb_err_set(err, -EBADMSG, "%s: %.150s", what, je.text);
	*ret = o;
	return 0;
}

int sb_json_same(const char *what, const char *bytes, size_t len, const char *again,
		 size_t again_len, struct sb_err *err)
{
	if (again_len != len || memcmp(again, bytes, len) != 0)
		return sb_err_set(err, -EBADMSG, "%s: not in canonical form", what);
	return 0;
}
