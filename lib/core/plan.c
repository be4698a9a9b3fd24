/*
 * Theory of operation. Scalar fields are rows of a table {key, kind, offset}; the writer and the
 * parser walk the same table. The parser is lenient about what it does not know: it writes the
 * plan again and compares the bytes with its input, so an unknown key, a missing key with a
 * default, another order, another spelling of a number or a string all end as "not canonical".
 */
#include "core/plan.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/base64.h"
#include "base/num.h"

#define FORMAT "sendbox-plan"

enum kind { K_U32, K_U64, K_BOOL, K_ENUM, K_STR, K_STR_OR_NULL, K_HEX };

struct field {
	const char *key;
	enum kind kind;
	size_t offset;
	size_t len;                /* K_HEX: bytes */
	const char *const *names;  /* K_ENUM: index = value, [0] = not allowed unless named */
	size_t n_names;
};

static const char *const provider_names[] = { NULL, "microvm", "namespace" };
static const char *const accel_names[] = { "none", "kvm", "tcg" };
static const char *const image_names[] = { NULL, "host", "dir" };
static const char *const mode_names[] = { NULL, "ro", "rw" };

#define F(key, kind, member) { key, kind, offsetof(struct sb_plan, member), 0, NULL, 0 }
#define FHEX(key, member)                                                                          \
	{                                                                                          \
		key, K_HEX, offsetof(struct sb_plan, member), sizeof(((struct sb_plan *)0)->member),\
			NULL, 0                                                                    \
	}
#define FENUM(key, member, names)                                                                  \
	{                                                                                          \
		key, K_ENUM, offsetof(struct sb_plan, member), 0, names, SB_ARRAY_LEN(names)       \
	}

static const struct field plan_fields[] = {
	FHEX("session", session),
	F("created", K_U64, created_unix_s),
	F("expires", K_U64, expires_unix_s),
	FENUM("provider", provider, provider_names),
	FENUM("accel", accel, accel_names),
	F("provider_reason", K_STR, provider_reason),
	FENUM("image", image, image_names),
	F("image_path", K_STR_OR_NULL, image_path),
	F("image_dev", K_U64, image_dev),
	F("image_ino", K_U64, image_ino),
	F("kernel_release", K_STR_OR_NULL, kernel_release),
	FHEX("kernel_sha256", kernel_sha256),
	FHEX("initramfs_sha256", initramfs_sha256),
	FHEX("guest_sha256", guest_sha256),
	F("cwd", K_STR, cwd),
	F("tty", K_BOOL, tty),
	F("separate_stderr", K_BOOL, separate_stderr),
	F("term", K_STR_OR_NULL, term),
	F("uid", K_U32, uid),
	F("gid", K_U32, gid),
	F("user", K_STR, user),
	F("home", K_STR, home),
	F("owner_uid", K_U32, owner_uid),
	F("owner_gid", K_U32, owner_gid),
	F("hostname", K_STR, hostname),
	F("test_root", K_BOOL, test_root),
	F("cpus", K_U32, cpus),
	F("memory", K_U64, memory_bytes),
	F("disk", K_U64, disk_bytes),
	F("pids_max", K_U32, pids_max),
	F("nofile", K_U64, nofile),
	F("timeout_ms", K_U64, timeout_ms),
	F("cpus_asked", K_BOOL, cpus_asked),
	F("memory_asked", K_BOOL, memory_asked),
	F("pids_asked", K_BOOL, pids_asked),
};

#define MF(key, kind, member) { key, kind, offsetof(struct sb_plan_mount, member), 0, NULL, 0 }
static const struct field mount_fields[] = {
	MF("host", K_STR, host),
	MF("guest", K_STR, guest),
	{ "mode", K_ENUM, offsetof(struct sb_plan_mount, mode), 0, mode_names,
	  SB_ARRAY_LEN(mode_names) },
	MF("file", K_BOOL, file),
	MF("dev", K_U64, dev),
	MF("ino", K_U64, ino),
	MF("quota_bytes", K_U64, quota_bytes),
	MF("quota_inodes", K_U64, quota_inodes),
};

static void strings_free(char **v)
{
	for (size_t i = 0; v && v[i]; i++)
		free(v[i]);
	free(v);
}

struct sb_plan *sb_plan_free(struct sb_plan *p)
{
	if (!p)
		return NULL;
	for (size_t i = 0; i < p->n_mounts; i++) {
		free(p->mounts[i].host);
		free(p->mounts[i].guest);
	}
	free(p->mounts);
	free(p->provider_reason);
	free(p->image_path);
	free(p->kernel_release);
	free(p->cwd);
	free(p->term);
	free(p->user);
	free(p->home);
	free(p->hostname);
	strings_free(p->argv);
	strings_free(p->env);
	free(p);
	return NULL;
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

static json_t *field_json(const struct field *f, const void *base)
{
	const char *at = (const char *)base + f->offset;
	const char *s;
	uint32_t u32;
	uint64_t u64;
	bool b;

	switch (f->kind) {
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

static int object_add(json_t *o, const struct field *fields, size_t n, const void *base)
{
	for (size_t i = 0; i < n; i++)
		if (json_object_set_new(o, fields[i].key, field_json(&fields[i], base)) < 0)
			return -ENOMEM;
	return 0;
}

static json_t *strings_json(char *const *v)
{
	json_t *a = json_array();

	for (size_t i = 0; a && v[i]; i++) {
		if (json_array_append_new(a, bytes_json(v[i])) < 0) {
			json_decref(a);
			return NULL;
		}
	}
	return a;
}

static json_t *mounts_json(const struct sb_plan *p)
{
	json_t *a = json_array();

	for (size_t i = 0; a && i < p->n_mounts; i++) {
		json_t *o = json_object();

		if (!o ||
		    object_add(o, mount_fields, SB_ARRAY_LEN(mount_fields), &p->mounts[i]) < 0 ||
		    json_array_append(a, o) < 0) {
			json_decref(o);
			json_decref(a);
			return NULL;
		}
		json_decref(o);
	}
	return a;
}

static int write_unchecked(const struct sb_plan *p, char **ret, size_t *ret_len)
{
	json_t *o = json_object();
	char *text = NULL;

	if (o && json_object_set_new(o, "format", json_string(FORMAT)) == 0 &&
	    json_object_set_new(o, "version", json_integer(SB_PLAN_VERSION)) == 0 &&
	    object_add(o, plan_fields, SB_ARRAY_LEN(plan_fields), p) == 0 &&
	    json_object_set_new(o, "argv", strings_json(p->argv)) == 0 &&
	    json_object_set_new(o, "env", strings_json(p->env)) == 0 &&
	    json_object_set_new(o, "mounts", mounts_json(p)) == 0)
		text = json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS);
	json_decref(o);
	if (!text)
		return -ENOMEM;
	*ret = text;
	*ret_len = strlen(text);
	return 0;
}

int sb_plan_write(const struct sb_plan *p, char **ret, size_t *ret_len, struct sb_err *err)
{
	int r = sb_plan_check(p, err);

	if (r < 0)
		return r;
	r = write_unchecked(p, ret, ret_len);
	return r < 0 ? sb_err_set(err, r, "plan: out of memory") : 0;
}

/* ---- parsing ---- */

static int bad(struct sb_err *err, const char *key, const char *what)
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

static int enum_parse(const struct field *f, const json_t *j, uint32_t *ret)
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

static int field_parse(const struct field *f, const json_t *j, void *base)
{
	char *at = (char *)base + f->offset;
	uint64_t u64 = 0;
	uint32_t u32 = 0;
	char *s = NULL;
	bool b;
	int r;

	if (!j)
		return -EBADMSG;
	switch (f->kind) {
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

static int object_parse(const json_t *o, const struct field *fields, size_t n, void *base,
			struct sb_err *err)
{
	for (size_t i = 0; i < n; i++) {
		int r = field_parse(&fields[i], json_object_get(o, fields[i].key), base);

		if (r == -ENOMEM)
			return r;
		if (r < 0)
			return bad(err, fields[i].key, "is missing or malformed");
	}
	return 0;
}

static int strings_parse(const json_t *o, const char *key, char ***ret, struct sb_err *err)
{
	const json_t *a = json_object_get(o, key);
	size_t n = json_array_size(a);
	char **v;
	int r = 0;

	if (!json_is_array(a) || n > SB_PLAN_MAX_ARGS)
		return bad(err, key, "is no list or is too long");
	v = calloc(n + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < n && r == 0; i++)
		r = bytes_parse(json_array_get(a, i), &v[i]);
	if (r < 0) {
		strings_free(v);
		return r == -ENOMEM ? r : bad(err, key, "has a malformed entry");
	}
	*ret = v;
	return 0;
}

static int mounts_parse(const json_t *o, struct sb_plan *p, struct sb_err *err)
{
	const json_t *a = json_object_get(o, "mounts");
	size_t n = json_array_size(a);

	if (!json_is_array(a) || n > SB_PLAN_MAX_MOUNTS)
		return bad(err, "mounts", "is no list or is too long");
	p->mounts = calloc(n + 1, sizeof(*p->mounts));
	if (!p->mounts)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		int r;

		p->n_mounts = i + 1;
		r = object_parse(json_array_get(a, i), mount_fields, SB_ARRAY_LEN(mount_fields),
				 &p->mounts[i], err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int parse_object(const json_t *o, struct sb_plan *p, struct sb_err *err)
{
	const json_t *format = json_object_get(o, "format");
	const json_t *version = json_object_get(o, "version");
	int r;

	if (!json_is_string(format) || strcmp(json_string_value(format), FORMAT) != 0)
		return bad(err, "format", "is not " FORMAT);
	if (json_integer_value(version) != SB_PLAN_VERSION)
		return bad(err, "version", "is not one that this program knows");
	r = object_parse(o, plan_fields, SB_ARRAY_LEN(plan_fields), p, err);
	if (r == 0)
		r = strings_parse(o, "argv", &p->argv, err);
	if (r == 0)
		r = strings_parse(o, "env", &p->env, err);
	if (r == 0)
		r = mounts_parse(o, p, err);
	return r;
}

int sb_plan_parse(const char *bytes, size_t len, struct sb_plan **ret, struct sb_err *err)
{
	sb_autoplan struct sb_plan *p = calloc(1, sizeof(*p));
	sb_autofree char *again = NULL;
	size_t again_len = 0;
	json_error_t je;
	json_t *o;
	int r;

	if (!p)
		return -ENOMEM;
	if (len > SB_PLAN_MAX_BYTES)
		return sb_err_set(err, -EBADMSG, "plan: larger than %u bytes", SB_PLAN_MAX_BYTES);
	o = json_loadb(bytes, len, JSON_REJECT_DUPLICATES, &je);
	if (!o)
		return sb_err_set(err, -EBADMSG, "plan: %s", je.text);
	r = parse_object(o, p, err);
	json_decref(o);
	if (r == 0)
		r = write_unchecked(p, &again, &again_len);
	if (r < 0)
		return sb_err_set(err, r, "plan: cannot be read");
	if (again_len != len || memcmp(again, bytes, len) != 0)
		return sb_err_set(err, -EBADMSG, "plan: not in canonical form");
	if (sb_plan_check(p, err) < 0)
		return -EBADMSG;
	*ret = sb_take(&p);
	return 0;
}
