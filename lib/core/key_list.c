#include "core/key_list.h"

#include <errno.h>
#include <string.h>

#include "core/json_i.h"

#define FORMAT "sendbox-keys"
#define VERSION 1

static const struct sb_json_field key_fields[] = {
	SB_JSON_HEX(struct sb_key, "key", key),
	SB_JSON_F(struct sb_key, "from", K_U64, from),
	SB_JSON_F(struct sb_key, "until", K_U64, until),
	SB_JSON_F(struct sb_key, "revoked", K_U64, revoked),
	SB_JSON_F(struct sb_key, "own", K_BOOL, own),
	SB_JSON_F(struct sb_key, "name", K_STR, name),
};
static const struct sb_json_field list_fields[] = {
	SB_JSON_F(struct sb_key_list, "floor", K_U64, floor),
};

void sb_key_list_done(struct sb_key_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->keys[i].name);
	free(l->keys);
	*l = (struct sb_key_list){ 0 };
}

static bool sane(const struct sb_key_list *l)
{
	if (l->n > SB_KEYS_MAX)
		return false;
	for (size_t i = 0; i < l->n; i++) {
		const struct sb_key *k = &l->keys[i];

		if (!k->name || strlen(k->name) > SB_KEY_NAME_MAX)
			return false;
		for (const char *c = k->name; *c; c++)
			if ((unsigned char)*c < 0x20 || *c == 0x7f)
				return false;
		if (i > 0 && memcmp(l->keys[i - 1].key, k->key, sizeof(k->key)) >= 0)
			return false;
	}
	return true;
}

int sb_key_list_write(const struct sb_key_list *l, char **ret, size_t *ret_len)
{
	json_t *o;
	char *text = NULL;

	if (!sane(l))
		return -EINVAL;
	o = json_object();
	if (o && json_object_set_new(o, "format", json_string(FORMAT)) == 0 &&
	    json_object_set_new(o, "version", json_integer(VERSION)) == 0 &&
	    sb_json_add(o, list_fields, SB_ARRAY_LEN(list_fields), l) == 0 &&
	    json_object_set_new(o, "keys",
				sb_json_list(l->keys, l->n, sizeof(*l->keys), key_fields,
					     SB_ARRAY_LEN(key_fields))) == 0)
		text = sb_json_text(sb_take(&o));
	json_decref(o);
	if (!text)
		return -ENOMEM;
	*ret = text;
	*ret_len = strlen(text);
	return 0;
}

int sb_key_list_parse(const char *bytes, size_t len, struct sb_key_list *ret, struct sb_err *err)
{
	sb_autokeys struct sb_key_list l = { 0 };
	sb_autofree char *again = NULL;
	size_t again_len = 0;
	const json_t *format;
	void *keys = NULL;
	json_t *o;
	int r;

	r = sb_json_load("key list", bytes, len, SB_KEYS_MAX_BYTES, 0, &o, err);
	if (r < 0)
		return r;
	format = json_object_get(o, "format");
	if (!json_is_string(format) || strcmp(json_string_value(format), FORMAT) != 0)
		r = sb_json_bad(err, "format", "is not " FORMAT);
	else
		r = sb_json_get(o, list_fields, SB_ARRAY_LEN(list_fields), &l, err);
	if (r == 0)
		r = sb_json_get_list(o, "keys", SB_KEYS_MAX, sizeof(*l.keys), key_fields,
				     SB_ARRAY_LEN(key_fields), &keys, &l.n, err);
	l.keys = keys;
	json_decref(o);
	if (r == 0)
		r = sb_key_list_write(&l, &again, &again_len);
	if (r == -EINVAL)
		r = -EBADMSG;
	if (r < 0)
		return sb_err_set(err, r, "key list: cannot be read");
	r = sb_json_same("key list", bytes, len, again, again_len, err);
	if (r < 0)
		return r;
	*ret = l;
	l = (struct sb_key_list){ 0 };
	return 0;
}

struct sb_key *sb_key_list_find(const struct sb_key_list *l, const uint8_t key[32])
{
	for (size_t i = 0; i < l->n; i++)
		if (memcmp(l->keys[i].key, key, 32) == 0)
			return &l->keys[i];
	return NULL;
}

struct sb_key *sb_key_list_add(struct sb_key_list *l, const uint8_t key[32])
{
	struct sb_key *k = sb_key_list_find(l, key);
	size_t at = 0;
	char *name;

	if (k)
		return k;
	if (l->n == SB_KEYS_MAX)
		return NULL;
	k = realloc(l->keys, (l->n + 1) * sizeof(*k));
	if (!k)
		return NULL;
	l->keys = k;
	name = calloc(1, 1);
	if (!name)
		return NULL;
	while (at < l->n && memcmp(k[at].key, key, 32) < 0)
		at++;
	memmove(k + at + 1, k + at, (l->n - at) * sizeof(*k));
	k[at] = (struct sb_key){ .name = name };
	memcpy(k[at].key, key, 32);
	l->n++;
	return &k[at];
}

int sb_key_check(const struct sb_key *k, bool current, uint64_t created, struct sb_err *err)
{
	if (k && k->revoked)
		return sb_err_set(err, -EKEYREVOKED, "the plan's key was revoked");
	if (current)
		return 0;
	if (!k)
		return sb_err_set(err, -EKEYREJECTED, "the plan's key is not trusted here");
	if (created < k->from)
		return sb_err_set(err, -EKEYREJECTED,
				  "the plan was made before its key was to be trusted");
	if (k->until && created > k->until)
		return sb_err_set(err, -EKEYEXPIRED, "the plan was made after its key had ended");
	return 0;
}
