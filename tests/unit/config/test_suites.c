/*
 * The public test suites of YAML and JSON against doc_load: nothing invalid is accepted, and every
 * accepted value is the reference's. What our limits refuse is counted by reason, and the counts
 * are written down here.
 */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "base/base64.h"
#include "cfgt.h"

/* ---- comparing with the reference ---- */

static bool same(const struct doc_node *n, const json_t *j);

static bool same_map(const struct doc_node *n, const json_t *j)
{
	if (n->kind != DOC_MAP || n->n != json_object_size(j))
		return false;
	for (size_t i = 0; i < n->n; i++)
		if (!same(&n->items[i], json_object_get(j, n->keys[i].text)))
			return false;
	return true;
}

static bool same(const struct doc_node *n, const json_t *j)
{
	switch (json_typeof(j)) {
	case JSON_OBJECT:
		return same_map(n, j);
	case JSON_ARRAY:
		if (n->kind != DOC_SEQ || n->n != json_array_size(j))
			return false;
		for (size_t i = 0; i < n->n; i++)
			if (!same(&n->items[i], json_array_get(j, i)))
				return false;
		return true;
	case JSON_STRING:
		return n->kind == DOC_STR && n->len == json_string_length(j) &&
		       memcmp(n->text, json_string_value(j), n->len) == 0;
	case JSON_INTEGER:
		return n->kind == DOC_INT && n->integer == json_integer_value(j);
	case JSON_REAL:
		return (n->kind == DOC_FLOAT || n->kind == DOC_INT) &&
		       fabs(n->number - json_real_value(j)) <= fabs(n->number) * 1e-12;
	case JSON_TRUE:
	case JSON_FALSE:
		return n->kind == DOC_BOOL && n->boolean == (json_typeof(j) == JSON_TRUE);
	case JSON_NULL:
	default:
		return n->kind == DOC_NULL;
	}
}

/* ---- reasons ---- */

struct reason {
	const char *part; /* of the message */
	unsigned int want;
	unsigned int got;
};

static bool count(struct reason *v, size_t n, const struct problems *p)
{
	for (size_t i = 0; i < n; i++) {
		if (!strstr(p->v[0].message, v[i].part))
			continue;
		v[i].got++;
		return true;
	}
	return false;
}

static void check_counts(const struct reason *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].got != v[i].want)
			t_fail(__FILE__, __LINE__, "refused for \"%s\": %u, want %u", v[i].part, v[i].got,
			       v[i].want);
}

static json_t *cases(const char *suite)
{
	char path[1024];
	json_error_t e;

	(void)snprintf(path, sizeof(path), "%s/%s/cases.json", TEST_DATA, suite);
	return json_load_file(path, 0, &e);
}

TEST(yaml_suite)
{
	/* valid YAML that is refused here by design; the first problem counts */
	static struct reason reasons[] = {
		{ "anchors (", 28, 0 },
		{ "tags (", 25, 0 },
		{ "second document", 13, 0 },
		{ "a key must be a name", 22, 0 },
		{ "%TAG", 7, 0 },
		{ "%YAML", 4, 0 },
	};
	json_t *all = cases("yaml-test-suite");
	unsigned int invalid = 0;
	unsigned int compared = 0;
	unsigned int events_only = 0;
	size_t i;
	json_t *c;

	REQUIRE(all);
	json_array_foreach(all, i, c)
	{
		const char *id = json_string_value(json_object_get(c, "id"));
		const char *text = json_string_value(json_object_get(c, "yaml"));
		const json_t *want = json_object_get(c, "json");
		struct problems p = { 0 };
		struct doc *d = NULL;
		int r = load_text(text, DOC_YAML, &d, &p);

		if (r == -EBADMSG && (p.n == 0 || p.v[0].line == 0))
			t_fail(__FILE__, __LINE__, "%s: refused without a place", id);
		if (json_is_true(json_object_get(c, "error"))) {
			invalid++;
			if (r != -EBADMSG)
				t_fail(__FILE__, __LINE__, "%s: accepted, is invalid", id);
		} else if (r == -EBADMSG) {
			if (!count(reasons, SB_ARRAY_LEN(reasons), &p))
				t_fail(__FILE__, __LINE__, "%s: refused: %u:%u %s", id, p.v[0].line,
				       p.v[0].col, p.v[0].message);
		} else if (want) {
			json_t *j = json_loads(json_string_value(want), JSON_DECODE_ANY, NULL);

			compared++;
			if (!j && *json_string_value(want))
				t_fail(__FILE__, __LINE__, "%s: the reference cannot be read", id);
			else if (j ? !doc_root(d) || !same(doc_root(d), j) : doc_root(d) != NULL)
				t_fail(__FILE__, __LINE__, "%s: differs from the reference", id);
			json_decref(j);
		} else {
			events_only++;
		}
		d = doc_free(d);
		problems_done(&p);
	}
	json_decref(all);
	check_counts(reasons, SB_ARRAY_LEN(reasons));
	CHECK_EQ(invalid, 94);
	CHECK_EQ(compared, 208);
	CHECK_EQ(events_only, 1);
}

static char *bytes_of(const json_t *c, size_t *len)
{
	const char *b64 = json_string_value(json_object_get(c, "base64"));
	char *out;

	if (b64) {
		size_t n = strlen(b64);

		out = malloc(n + 1);
		if (!out || sb_base64_parse(b64, n, (uint8_t *)out, len) < 0) {
			free(out);
			return NULL;
		}
		return out;
	}
	{
		const char *unit = json_string_value(json_object_get(c, "unit"));
		const char *tail = json_string_value(json_object_get(c, "tail"));
		size_t n = strlen(unit);
		size_t k = (size_t)json_integer_value(json_object_get(c, "count"));

		out = malloc(n * k + strlen(tail) + 1);
		for (size_t i = 0; out && i < k; i++)
			memcpy(out + i * n, unit, n);
		if (out)
			memcpy(out + n * k, tail, strlen(tail) + 1);
		*len = n * k + strlen(tail);
	}
	return out;
}

TEST(json_suite)
{
	/* valid JSON that is refused here by design */
	static struct reason reasons[] = {
		{ "character NUL", 2, 0 },
		{ "second time", 2, 0 },
	};
	json_t *all = cases("json-test-suite");
	unsigned int valid = 0;
	unsigned int invalid = 0;
	unsigned int free_choice = 0;
	size_t i;
	json_t *c;

	REQUIRE(all);
	json_array_foreach(all, i, c)
	{
		const char *id = json_string_value(json_object_get(c, "id"));
		struct problems p = { 0 };
		struct doc *d = NULL;
		size_t len = 0;
		char *text = bytes_of(c, &len);
		int r;

		REQUIRE(text);
		r = doc_load(text, len, DOC_JSON, id, &d, &p);
		if (r == -EBADMSG && (p.n == 0 || p.v[0].line == 0))
			t_fail(__FILE__, __LINE__, "%s: refused without a place", id);
		if (id[0] == 'n') {
			invalid++;
			if (r != -EBADMSG)
				t_fail(__FILE__, __LINE__, "%s: accepted, is invalid", id);
		} else if (id[0] == 'y' && r == -EBADMSG) {
			if (!count(reasons, SB_ARRAY_LEN(reasons), &p))
				t_fail(__FILE__, __LINE__, "%s: refused: %s", id, p.v[0].message);
		} else if (r == 0) {
			json_t *j = json_loadb(text, len, JSON_DECODE_ANY, NULL);

			valid += id[0] == 'y';
			/* numbers that jansson has no room for are its own limit */
			if (j && !same(doc_root(d), j))
				t_fail(__FILE__, __LINE__, "%s: differs from the reference", id);
			json_decref(j);
		}
		free_choice += id[0] == 'i';
		d = doc_free(d);
		problems_done(&p);
		free(text);
	}
	json_decref(all);
	check_counts(reasons, SB_ARRAY_LEN(reasons));
	CHECK_EQ(valid, 91);
	CHECK_EQ(invalid, 188);
	CHECK_EQ(free_choice, 35);
}
