/* JSON Schema (2020-12) of the file format, from the key table. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "cfg_i.h"

#define SCHEMA_MAX (1U << 20)

static void add_text(struct sb_buf *b, const char *s)
{
	sb_buf_add_u8(b, '"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			sb_buf_add_u8(b, '\\');
		sb_buf_add_u8(b, (uint8_t)*s);
	}
	sb_buf_add_u8(b, '"');
}

static void add_words(struct sb_buf *b, const char *words)
{
	bool first = true;

	sb_buf_add_str(b, "\"enum\":[");
	for (size_t n; *words; words += n + (words[n] == '|')) {
		n = strcspn(words, "|");
		if (*words == '!')
			continue;
		sb_buf_addf(b, "%s\"%.*s\"", first ? "" : ",", (int)n, words);
		first = false;
	}
	sb_buf_add_u8(b, ']');
}

/* A bare word of the table as JSON. */
static void add_constant(struct sb_buf *b, const struct cfg_key *row, const char *text)
{
	if (row->type == CFG_T_STR || row->type == CFG_T_PATH || row->type == CFG_T_ENUM)
		add_text(b, text);
	else
		sb_buf_add_str(b, text);
}

static void add_place(struct sb_buf *b, size_t place);

static void add_properties(struct sb_buf *b, size_t place)
{
	size_t wild = TABLE_NONE;
	bool first = true;
	bool required = false;

	sb_buf_add_str(b, "\"type\":\"object\",\"properties\":{");
	for (size_t i = table_next(place, TABLE_NONE); i != TABLE_NONE; i = table_next(place, i)) {
		if (strcmp(table_name(i), "*") == 0) {
			wild = i;
			continue;
		}
		sb_buf_addf(b, "%s\"%s\":", first ? "" : ",", table_name(i));
		add_place(b, i);
		first = false;
	}
	sb_buf_add_str(b, "},\"additionalProperties\":");
	if (wild == TABLE_NONE)
		sb_buf_add_str(b, "false");
	else
		add_place(b, wild);
	for (size_t i = table_next(place, TABLE_NONE); i != TABLE_NONE; i = table_next(place, i)) {
		if (!cfg_keys[i].required)
			continue;
		sb_buf_addf(b, "%s\"%s\"", required ? "," : ",\"required\":[", table_name(i));
		required = true;
	}
	if (required)
		sb_buf_add_u8(b, ']');
}

static const char *pattern_of(const struct cfg_key *row)
{
	switch (row->text) {
	case CFG_X_MOUNT:
		return "^[^:]+:/[^:]*(:(ro|rw))?$";
	case CFG_X_GUEST_PATH:
		return "^/";
	case CFG_X_IMAGE:
		/* about what image_ref_parse takes, see host/image/ref.c */
		return "^(host|/.*|(dir|oci|oci-archive|docker-archive):.+|"
		       "[A-Za-z0-9_.\\[][A-Za-z0-9._/:\\[\\]-]*(@sha256:[0-9a-f]{64})?)$";
	case CFG_X_ANY:
	case CFG_X_NAME:
	case CFG_X_EXTENDS:
	case CFG_X_ENV_VALUE:
	case CFG_X_HOST_PATH:
	case CFG_X_GUARD:
	case CFG_X_COMMAND:
	case CFG_X_NET_ALLOW:
	case CFG_X_NET_DENY:
	case CFG_X_NETWORK:
	case CFG_X_GROUP_RULE:
	case CFG_X_DNS_TYPE:
	case CFG_X_SYSCALL:
	case CFG_X_CONNECT:
	case CFG_X_SECRET:
	case CFG_X_URL:
	default:
		return row->min > 0 ? "[^ \\t\\r\\n]" : NULL;
	}
}

static void add_string(struct sb_buf *b, const struct cfg_key *row)
{
	const char *pattern = pattern_of(row);

	/* lengths here are characters, in the table bytes: the checker is the stricter one */
	sb_buf_addf(b, "\"type\":\"string\",\"maxLength\":%lld", (long long)row->max);
	if (row->min > 0)
		sb_buf_add_str(b, ",\"minLength\":1");
	if (pattern) {
		sb_buf_add_str(b, ",\"pattern\":");
		add_text(b, pattern);
	}
}

static void add_amount(struct sb_buf *b, const struct cfg_key *row)
{
	bool size = row->type == CFG_T_SIZE;
	long long unit = size ? 1 << 20 : 1000;

	sb_buf_addf(b, "\"anyOf\":[{\"type\":\"integer\",\"minimum\":%lld,\"maximum\":%lld},"
		       "{\"type\":\"string\",\"pattern\":\"%s\"}]",
		    ((long long)row->min + unit - 1) / unit, (long long)row->max / unit,
		    size ? "^[0-9]+([.][0-9]{1,9})?([bB]|[kKmMgGtT][bB]?)?$"
			 : "^[0-9]+([.][0-9]{1,9})?([mM][sS]|[sSmMhHdD])?$");
}

static void add_row(struct sb_buf *b, size_t place, const struct cfg_key *row)
{
	if (row->state == CFG_NOT_YET && (!row->neutral || (strcmp(row->neutral, "*") != 0 &&
							     row->type != CFG_T_LIST &&
							     row->type != CFG_T_TABLE))) {
		if (row->neutral) {
			sb_buf_add_str(b, "\"const\":");
			add_constant(b, row, row->neutral);
		} else {
			sb_buf_add_str(b, "\"not\":{}");
		}
		return;
	}
	switch (row->type) {
	case CFG_T_BOOL:
		sb_buf_add_str(b, "\"type\":\"boolean\"");
		break;
	case CFG_T_INT:
		sb_buf_addf(b, "\"type\":\"integer\",\"minimum\":%lld,\"maximum\":%lld",
			    (long long)row->min, (long long)row->max);
		break;
	case CFG_T_ENUM:
		add_words(b, row->words);
		break;
	case CFG_T_STR:
	case CFG_T_PATH:
		add_string(b, row);
		break;
	case CFG_T_SIZE:
	case CFG_T_DURATION:
		add_amount(b, row);
		break;
	case CFG_T_LIST:
		sb_buf_addf(b, "\"type\":\"array\",\"minItems\":%lld,\"maxItems\":%lld,\"items\":",
			    (long long)row->min,
			    row->state == CFG_NOT_YET && strcmp(row->neutral, "*") != 0
				    ? 0LL
				    : (long long)row->max);
		add_place(b, table_child(place, "[]"));
		break;
	case CFG_T_MAP:
	case CFG_T_TABLE:
		add_properties(b, place);
		if (row->type == CFG_T_TABLE)
			sb_buf_addf(b, ",\"maxProperties\":%lld",
				    row->state == CFG_NOT_YET && strcmp(row->neutral, "*") != 0
					    ? 0LL
					    : (long long)row->max);
		if (strcmp(row->path, "env") == 0)
			sb_buf_add_str(b, ",\"propertyNames\":{\"pattern\":\"^[A-Za-z_][A-Za-z0-9_]*$\","
					  "\"maxLength\":255}");
		if (strcmp(row->path, "groups") == 0)
			sb_buf_add_str(b, ",\"propertyNames\":{\"pattern\":\"^[a-z][a-z0-9_-]{0,63}$\"}");
		break;
	case CFG_T_NULL:
		sb_buf_add_str(b, "\"type\":\"null\"");
		break;
	case CFG_T_ANY:
	default:
		sb_buf_add_str(b, "\"$comment\":\"anything\"");
		break;
	}
}

static void add_place(struct sb_buf *b, size_t place)
{
	size_t n = table_rows(place);
	const struct cfg_key *row = &cfg_keys[place];

	sb_buf_add_u8(b, '{');
	if (row->help && row->help[0]) {
		sb_buf_add_str(b, "\"description\":");
		add_text(b, row->help);
		sb_buf_add_u8(b, ',');
	}
	if (row->fallback) {
		sb_buf_add_str(b, "\"default\":");
		add_constant(b, row, row->fallback);
		sb_buf_add_u8(b, ',');
	}
	if (n == 1) {
		add_row(b, place, row);
		sb_buf_add_u8(b, '}');
		return;
	}
	sb_buf_add_str(b, "\"anyOf\":[");
	for (size_t i = 0; i < n; i++) {
		sb_buf_add_str(b, i > 0 ? ",{" : "{");
		add_row(b, place, &cfg_keys[place + i]);
		sb_buf_add_u8(b, '}');
	}
	sb_buf_add_str(b, "]}");
}

int cfg_schema(char **ret, size_t *ret_len)
{
	struct sb_buf b;
	int r;

	sb_buf_init(&b, SCHEMA_MAX);
	sb_buf_add_str(&b, "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\","
			   "\"title\":\".sendbox.yaml\",");
	add_properties(&b, TABLE_ROOT);
	sb_buf_add_str(&b, "}");
	sb_buf_add_u8(&b, '\0');
	r = sb_buf_error(&b);
	if (r < 0) {
		sb_buf_done(&b);
		return r;
	}
	*ret = (char *)b.data;
	*ret_len = b.len - 1;
	return 0;
}
