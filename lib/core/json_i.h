#ifndef SB_CORE_JSON_I_H
#define SB_CORE_JSON_I_H
/*
 * Canonical JSON of plans and amendments. Scalar fields are rows of a table {key, kind, offset};
 * the writer and the parser walk the same table. The parser is lenient about what it does not
 * know: who parses writes the result again and compares the bytes with its input, so an unknown
 * key, a missing key with a default, another order, another spelling of a number or a string all
 * end as "not canonical".
 */
#include <jansson.h>

#include "core/net_policy.h"

enum sb_json_kind { K_U16, K_U32, K_U64, K_BOOL, K_ENUM, K_STR, K_STR_OR_NULL, K_HEX };

struct sb_json_field {
	const char *key;
	enum sb_json_kind kind;
	size_t offset;
	size_t len;                /* K_HEX: bytes */
	const char *const *names;  /* K_ENUM: index = value, NULL = not allowed */
	size_t n_names;
};
#define SB_JSON_F(type, key, kind, member) { key, kind, offsetof(type, member), 0, NULL, 0 }
#define SB_JSON_HEX(type, key, member)                                                             \
	{                                                                                          \
		key, K_HEX, offsetof(type, member), sizeof(((type *)0)->member), NULL, 0           \
	}
#define SB_JSON_ENUM(type, key, member, names)                                                     \
	{                                                                                          \
		key, K_ENUM, offsetof(type, member), 0, names, SB_ARRAY_LEN(names)                 \
	}

/* Set each field of @base in @o. Return: 0; -ENOMEM (also for a value that cannot be written). */
SB_MUST_CHECK int sb_json_add(json_t *o, const struct sb_json_field *fields, size_t n,
			      const void *base);
/* Fill the zeroed @base. Strings are malloc'd; on failure those that were read remain in it.
 * Return: 0; -EBADMSG; -ENOMEM. */
SB_MUST_CHECK int sb_json_get(const json_t *o, const struct sb_json_field *fields, size_t n,
			      void *base, struct sb_err *err);
/* A list of strings; NULL is an empty list. Return: NULL when out of memory. */
json_t *sb_json_strings(char *const *v);
SB_MUST_CHECK int sb_json_get_strings(const json_t *o, const char *key, size_t max, char ***ret,
				      struct sb_err *err);
void sb_json_strings_free(char **v);
/* A list of objects of @size bytes each. */
json_t *sb_json_list(const void *v, size_t n, size_t size, const struct sb_json_field *fields,
		     size_t n_fields);
/* *@ret and *@ret_n grow as elements are read, so that the caller can free what is there. */
SB_MUST_CHECK int sb_json_get_list(const json_t *o, const char *key, size_t max, size_t size,
				   const struct sb_json_field *fields, size_t n_fields, void **ret,
				   size_t *ret_n, struct sb_err *err);
/* Compact, keys sorted; takes @o. Return: NULL when out of memory. */
char *sb_json_text(json_t *o);
int sb_json_bad(struct sb_err *err, const char *key, const char *what);

/*
 * The two ends of every parser here. @what: "plan", for messages.
 * sb_json_load: at most @max bytes, no key twice; @flags: further ones of jansson.
 * Return: 0 with a new reference in @ret; -EBADMSG.
 */
SB_MUST_CHECK int sb_json_load(const char *what, const char *bytes, size_t len, size_t max,
			       size_t flags, json_t **ret, struct sb_err *err);
/* What was read, written @again, must be what came. Return: 0; -EBADMSG. */
SB_MUST_CHECK int sb_json_same(const char *what, const char *bytes, size_t len, const char *again,
			       size_t again_len, struct sb_err *err);

/* net_json.c: the plan's "net" object, and lists of rules. */
json_t *sb_net_json(const struct sb_plan_net *n);
SB_MUST_CHECK int sb_net_json_get(const json_t *o, const char *key, struct sb_plan_net *ret,
				  struct sb_err *err);
json_t *sb_net_json_rules(const struct sb_net_rule *r, size_t n);
SB_MUST_CHECK int sb_net_json_get_rules(const json_t *o, const char *key, struct sb_net_rule **ret,
					size_t *ret_n, struct sb_err *err);

#endif
