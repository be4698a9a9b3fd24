/* Documents: what is read, what is refused, and where. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "cfgt.h"
#include "config/doc_yaml.h"

struct bad {
	const char *text;
	const char *told;    /* "LINE:COL code" of each problem */
	const char *message; /* part of the first one's */
};

static void check_bad(const struct bad *b, enum doc_format f)
{
	struct problems p = { 0 };
	struct doc *d = NULL;
	int r = load_text(b->text, f, &d, &p);

	if (r != -EBADMSG)
		t_fail(__FILE__, __LINE__, "accepted: %s", b->text);
	CHECK_STR(told(&p), b->told);
	if (p.n > 0 && !strstr(p.v[0].message, b->message))
		t_fail(__FILE__, __LINE__, "\"%s\": message \"%s\" lacks \"%s\"", b->text,
		       p.v[0].message, b->message);
	d = doc_free(d);
	problems_done(&p);
}

TEST(yaml_refused)
{
	static const struct bad bad[] = {
		{ "a: 1\nb: 2\na: 3\n", "3:1 duplicate_key a", "the first is on line 1" },
		{ "a: 1\n\"a\": 3\n'a': 4\n", "2:1 duplicate_key a\n3:1 duplicate_key a", "line 1" },
		{ "x: {b: 1,\n    b: 2}\n", "2:5 duplicate_key b", "second time" },
		{ "a: &x 1\n", "1:4 syntax", "anchors" },
		{ "a: &x [1]\nb: [*x, *x]\n", "1:4 syntax\n2:5 syntax\n2:9 syntax", "anchors" },
		{ "a: !!str 1\n", "1:4 syntax", "tags" },
		{ "a: !x {b: c}\n", "1:4 syntax", "tags" },
		{ "a:\n\tb: 1\n", "2:1 syntax", "tab" },
		{ "a: 1\n\tb: 1\n", "1:4 syntax", "line 2 is indented with a tab" },
		{ "a: [1\n", "2:1 syntax", "" },
		{ "a: \"x\n", "1:5 syntax", "without closing quote" },
		{ "a: b: c\n", "1:5 syntax", "" },
		{ "---\na: 1\n---\nb: 2\n", "3:1 syntax", "second document" },
		{ "%YAML 1.1\n---\na: 1\n", "2:1 syntax", "%YAML 1.1" },
		{ "%TAG ! tag:x,2000:\n---\na: 1\n", "2:1 syntax", "%TAG" },
		{ "1: x\n", "1:1 syntax", "put it in quotes" },
		{ "true: x\nnull: y\n", "1:1 syntax\n2:1 syntax", "in quotes" },
		{ "? [a]\n: b\n", "1:3 syntax", "a list" },
		{ "? {a: b}\n: b\n", "1:3 syntax", "a map" },
		{ "a: \"\\0\"\n", "1:4 syntax", "NUL" },
		{ "? 5:\t?", "1:6 syntax", "a tab before a question mark" },
		{ "a: \x01\n", "1:4 syntax", "U+0001" },
		{ "\xc3\xa9: \xff\n", "1:4 syntax", "byte 0xff is not UTF-8" },
		{ "a: \xed\xa0\x80\n", "1:4 syntax", "not UTF-8" },
		{ "a: \xc0\xaf\n", "1:4 syntax", "not UTF-8" },
		{ "a: \xf4\x90\x80\x80\n", "1:4 syntax", "not UTF-8" },
		{ "a: \xc2\x80\n", "1:4 syntax", "U+0080" },
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(bad); i++)
		check_bad(&bad[i], DOC_YAML);
}

TEST(json_refused)
{
	static const struct bad bad[] = {
		{ "", "1:1 syntax", "too early" },
		{ "{\"a\": 1,\n \"a\": 2}", "2:2 duplicate_key a", "line 1" },
		{ "{\"a\": 1,}", "1:9 syntax", "key in double quotes" },
		{ "[1,]", "1:4 syntax", "value is expected" },
		{ "[1 2]", "1:4 syntax", "comma" },
		{ "{\"a\" 1}", "1:6 syntax", "colon" },
		{ "[01]", "1:2 syntax", "neither a number" },
		{ "[1.]", "1:2 syntax", "neither a number" },
		{ "[-]", "1:2 syntax", "neither a number" },
		{ "[.5]", "1:2 syntax", "neither a number" },
		{ "[+1]", "1:2 syntax", "neither a number" },
		{ "[NaN]", "1:2 syntax", "neither a number" },
		{ "[tru]", "1:2 syntax", "neither a number" },
		{ "['a']", "1:2 syntax", "value is expected" },
		{ "[\"a\tb\"]", "1:4 syntax", "backslash" },
		{ "[\"\\x\"]", "1:3 syntax", "unknown escape" },
		{ "[\"\\u12g4\"]", "1:3 syntax", "four hexadecimal" },
		{ "[\"\\ud800\"]", "1:3 syntax", "surrogate" },
		{ "[\"\\udc00\\ud800\"]", "1:3 syntax", "surrogate" },
		{ "[\"\\u0000\"]", "1:3 syntax", "NUL" },
		{ "[\"abc", "1:2 syntax", "no closing quote" },
		{ "{} x", "1:4 syntax", "follows after" },
		{ "// c\n{}", "1:1 syntax", "value is expected" },
		{ "\xef\xbb\xbf{}", "1:1 syntax", "value is expected" },
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(bad); i++)
		check_bad(&bad[i], DOC_JSON);
}

/* All of them in one file, each at its own place. */
TEST(several_at_once)
{
	static const struct bad b = {
		"a: 1\n"
		"a: &x 2\n"
		"b: !t\n"
		"  - *x\n"
		"  - 1: 2\n"
		"  - {\xc3\xa9\xc3\xa9: 1, c: 2, c: 3}\n",
		"2:4 syntax\n3:4 syntax\n4:5 syntax\n5:5 syntax\n6:19 duplicate_key c\n"
		"2:1 duplicate_key a",
		"anchors",
	};

	check_bad(&b, DOC_YAML);
}

static void fill(char *p, size_t n, const char *unit)
{
	size_t k = strlen(unit);

	for (size_t i = 0; i < n; i++)
		memcpy(p + i * k, unit, k);
	p[n * k] = '\0';
}

static void limit(const char *what, const char *head, const char *unit, size_t n, const char *tail,
		  enum doc_format f, bool good, const char *message)
{
	size_t len = strlen(head) + n * strlen(unit) + strlen(tail);
	char *text = malloc(len + 1);
	struct problems p = { 0 };
	struct doc *d = NULL;
	int r;

	REQUIRE(text);
	memcpy(text, head, strlen(head));
	fill(text + strlen(head), n, unit);
	memcpy(text + len - strlen(tail), tail, strlen(tail) + 1);
	r = doc_load(text, len, f, "f", &d, &p);
	if ((r == 0) != good)
		t_fail(__FILE__, __LINE__, "%s: %d %s", what, r, p.n ? p.v[0].message : "");
	if (!good) {
		CHECK_EQ(p.n, 1);
		CHECK_STR(P(0)->code, "limit");
		if (!strstr(P(0)->message, message))
			t_fail(__FILE__, __LINE__, "%s: %s", what, P(0)->message);
	}
	d = doc_free(d);
	problems_done(&p);
	free(text);
}

TEST(limits)
{
	for (int f = DOC_YAML; f <= DOC_JSON; f++) {
		enum doc_format format = (enum doc_format)f;

		limit("scalar", "[\"", "a", DOC_MAX_SCALAR, "\"]", format, true, "");
		limit("scalar + 1", "[\"", "a", DOC_MAX_SCALAR + 1, "\"]", format, false, "bytes");
		limit("nodes", "[0", ",0", DOC_MAX_NODES - 2, "]", format, true, "");
		limit("nodes + 1", "[0", ",0", DOC_MAX_NODES - 1, "]", format, false, "values");
		limit("depth + 1", "", "[", DOC_MAX_DEPTH + 1, "", format, false, "levels");
		limit("depth, far", "", "[", 1000000, "", format, false, "levels");
		limit("maps", "", "{\"a\":", 100000, "", format, false, "levels");
	}
	limit("bytes + 1", "[1]", " ", DOC_MAX_BYTES - 2, "", DOC_JSON, false, "MiB");
	limit("bytes", "[1]", " ", DOC_MAX_BYTES - 3, "", DOC_JSON, true, "");
	limit("bytes + 1", "[1] ", "#", DOC_MAX_BYTES - 3, "", DOC_YAML, false, "MiB");
	limit("bytes", "[1] ", "#", DOC_MAX_BYTES - 4, "", DOC_YAML, true, "");
	limit("blanks", "[1]", " ", DOC_MAX_BLANKS, "", DOC_YAML, true, "");
	limit("blanks + 1", "[1]", " ", DOC_MAX_BLANKS + 1, "", DOC_YAML, false, "in a row");
	limit("empty lines", "a: b", "\n", DOC_MAX_BLANKS - 1, " c", DOC_YAML, true, "");
	limit("empty lines + 1", "a: b", "\n", DOC_MAX_BLANKS, " c", DOC_YAML, false, "in a row");
	limit("directive", "%", "x", DOC_MAX_BLANKS, "\n---\na\n", DOC_YAML, false, "begins with %");
	limit("depth", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "]", DOC_MAX_DEPTH, "", DOC_JSON, true, "");
	limit("block depth", "", "- ", DOC_MAX_DEPTH + 1, "x", DOC_YAML, false, "levels");
	limit("block depth, far", "", "- ", 100000, "x", DOC_YAML, false, "levels");
	limit("block maps", "a", ": {b", 200, "", DOC_YAML, false, "levels");
}

/* 10 levels of 10 aliases: nothing is ever copied. */
TEST(alias_bomb)
{
	static char text[4000];
	FILE *f = fmemopen(text, sizeof(text), "w");
	struct problems p = { 0 };
	struct doc *d = NULL;

	REQUIRE(f);
	(void)fprintf(f, "a0: &a0 [x]\n");
	for (int i = 1; i < 10; i++) {
		(void)fprintf(f, "a%d: &a%d [", i, i);
		for (int k = 0; k < 9; k++)
			(void)fprintf(f, "%s*a%d", k > 0 ? "," : "", i - 1);
		(void)fprintf(f, "]\n");
	}
	(void)fclose(f);
	CHECK_EQ(load_text(text, DOC_YAML, &d, &p), -EBADMSG);
	CHECK_EQ(p.n, 91);
	problems_done(&p);
}

TEST(problems_are_bounded)
{
	size_t n = 5000;
	char *text = malloc(n * 8);
	struct problems p = { 0 };
	struct doc *d = NULL;

	REQUIRE(text);
	fill(text, n, "a: 1\n");
	CHECK_EQ(load_text(text, DOC_YAML, &d, &p), -EBADMSG);
	CHECK_EQ(p.n, PROBLEMS_MAX);
	CHECK_EQ(p.n + p.dropped, n - 1);
	problems_done(&p);
	free(text);
}

TEST(scalars)
{
	static const struct {
		const char *text;
		enum doc_kind kind;
		int64_t integer;
	} want[] = {
		{ "", DOC_NULL, 0 },	   { "~", DOC_NULL, 0 },	 { "null", DOC_NULL, 0 },
		{ "Null", DOC_NULL, 0 },   { "nUll", DOC_STR, 0 },	 { "true", DOC_BOOL, 1 },
		{ "FALSE", DOC_BOOL, 0 },  { "yes", DOC_STR, 0 },	 { "on", DOC_STR, 0 },
		{ "0", DOC_INT, 0 },	   { "-0", DOC_INT, 0 },	 { "+12", DOC_INT, 12 },
		{ "-12", DOC_INT, -12 },   { "0x1F", DOC_INT, 31 },	 { "0o17", DOC_INT, 15 },
		{ "017", DOC_STR, 0 },	   { "0443", DOC_STR, 0 },	 { "08", DOC_STR, 0 },
		{ "1_000", DOC_STR, 0 },   { "0x", DOC_STR, 0 },	 { "0xg", DOC_STR, 0 },
		{ "1.5", DOC_FLOAT, 0 },   { "1e3", DOC_FLOAT, 0 },	 { ".5", DOC_FLOAT, 0 },
		{ "1.", DOC_FLOAT, 0 },	   { "-.inf", DOC_FLOAT, 0 },	 { ".nan", DOC_FLOAT, 0 },
		{ ".", DOC_STR, 0 },	   { "1.2.3", DOC_STR, 0 },	 { "1e", DOC_STR, 0 },
		{ "12:30", DOC_STR, 0 },   { "'1'", DOC_STR, 0 },	 { "\"true\"", DOC_STR, 0 },
		{ "2001-01-01", DOC_STR, 0 }, { "9223372036854775807", DOC_INT, INT64_MAX },
		{ "9223372036854775808", DOC_FLOAT, 0 }, { "-9223372036854775808", DOC_INT, INT64_MIN },
		{ "-9223372036854775809", DOC_FLOAT, 0 }, { "0xffffffffffffffff", DOC_FLOAT, 0 },
		{ "99999999999999999999999999999999", DOC_FLOAT, 0 }, { "=", DOC_STR, 0 },
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(want); i++) {
		struct problems p = { 0 };
		struct doc *d = NULL;
		const struct doc_node *n;
		char text[100];

		(void)snprintf(text, sizeof(text), "a: %s\n", want[i].text);
		CHECK_EQ(load_text(text, DOC_YAML, &d, &p), 0);
		n = d ? doc_get(doc_root(d), "a") : NULL;
		if (!n || n->kind != want[i].kind ||
		    (n->kind == DOC_INT && n->integer != want[i].integer) ||
		    (n->kind == DOC_BOOL && n->boolean != (want[i].integer == 1)))
			t_fail(__FILE__, __LINE__, "\"%s\": kind %d", want[i].text, n ? (int)n->kind : -1);
		d = doc_free(d);
		problems_done(&p);
	}
}

TEST(places)
{
	static const char text[] = "\xef\xbb\xbf# c\r\n"
				   "\xc3\xa9: {b: [1, \"x\", 'y'],\r\n"
				   "  c: |\r\n"
				   "    \r\n";
	static const char good[] = "\xef\xbb\xbf# c\r\n"
				   "\xc3\xa9: {b: [1, \"x\", 'y'],\r\n"
				   "  c: z}\r\n"
				   "d:\r"
				   "  - e\n";
	struct problems p = { 0 };
	struct doc *d = NULL;
	const struct doc_node *n;

	CHECK_EQ(load_text(text, DOC_YAML, &d, &p), -EBADMSG);
	problems_done(&p);
	CHECK_EQ(load_text(good, DOC_YAML, &d, &p), 0);
	REQUIRE(d);
	n = doc_get(doc_root(d), "\xc3\xa9");
	REQUIRE(n && n->n == 2);
	CHECK_EQ(n->line, 2);
	CHECK_EQ(n->col, 4);
	CHECK_EQ(n->items[0].items[1].line, 2);
	CHECK_EQ(n->items[0].items[1].col, 12);
	CHECK_EQ(n->items[0].items[2].col, 17);
	CHECK_EQ(n->keys[1].line, 3);
	CHECK_EQ(n->keys[1].col, 3);
	n = doc_get(doc_root(d), "d");
	REQUIRE(n && n->n == 1);
	CHECK_EQ(n->items[0].line, 5);
	CHECK_EQ(n->items[0].col, 5);
	CHECK_STR(n->items[0].file, "f");
	d = doc_free(d);
}

TEST(nothing_is_shown_raw)
{
	struct problems p = { 0 };
	struct doc *d = NULL;
	char *json = NULL;

	/* an escape sequence, a line break and a character that turns the direction */
	CHECK_EQ(load_text("[\"\\u001b[31m\\n\\u202e\", {\"\\u001b]0;x\\u0007\": 1, "
			   "\"\\u001b]0;x\\u0007\": 2}]", DOC_JSON, &d, &p), -EBADMSG);
	REQUIRE(p.n == 1);
	CHECK_STR(P(0)->key, "\\x1b]0;x\\x07");
	CHECK(!strchr(P(0)->message, 0x1b));
	CHECK(!strchr(P(0)->excerpt, 0x1b));
	CHECK_EQ(problems_json(&p, 2, &json), 0);
	CHECK_STR(json, "{\"schema_version\":1,\"ok\":false,\"exit_code\":2,\"diagnostics\":[{"
			"\"code\":\"duplicate_key\",\"path\":\"\\\\x1b]0;x\\\\x07\",\"message\":\""
			"\\\"\\\\x1b]0;x\\\\x07\\\" is here a second time; the first is on line 1\","
			"\"file\":\"f\",\"excerpt\":\"[\\\"\\\\u001b[31m\\\\n\\\\u202e\\\", "
			"{\\\"\\\\u001b]0;x\\\\u0007\\\": 1, \\\"\\\\u001b]0;x\\\\u0007\\\": 2}]\","
			"\"line\":1,\"column\":48}],\"more\":0}");
	free(json);
	problems_done(&p);
}

/* --- the parser's own process --- */

/* As many records as fit, written to a pipe; then what is made of them. */
static int records(const uint32_t *words, size_t n, struct problems *p)
{
	struct doc *d = calloc(1, sizeof(*d));
	struct doc_build *b = calloc(1, sizeof(*b));
	int fds[2];
	int r;

	CHECK(d && b && pipe(fds) == 0);
	d->file = "/p/x.yaml";
	*b = (struct doc_build){ .d = d, .p = p };
	CHECK_EQ(write(fds[1], words, n * sizeof(*words)), (ssize_t)(n * sizeof(*words)));
	CHECK_EQ(close(fds[1]), 0);
	r = yaml_records(b, fds[0]);
	if (r == 0 && b->n > 0)
		r = (int)b->n;
	CHECK_EQ(close(fds[0]), 0);
	free(b->stack);
	free(b);
	(void)doc_free(d);
	return r;
}
#define RECORDS(...) \
	records((const uint32_t[]){ __VA_ARGS__ }, \
		sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t), &p)

TEST(records_of_a_parser_that_was_taken_over)
{
	struct problems p = { 0 };

	CHECK_EQ(RECORDS(1, 1, 1, 4, 0x61616161, 255, 0, 0, 0), 1); /* "aaaa" */
	CHECK_EQ(RECORDS(255, 0, 0, 0), 0);
	CHECK_EQ(RECORDS(4, 1, 1, 0, 6, 1, 1, 0, 255, 0, 0, 0), 1);
	CHECK_EQ(RECORDS(255, 0, 0, 2), -ENOMEM);
	CHECK_EQ(RECORDS(255, 0, 0, 1), -EBADMSG);
	CHECK_EQ(RECORDS(255, 0, 0, 77), -EBADMSG);
	CHECK_EQ(RECORDS(1, 1, 1, 4, 0x61616161), -EPIPE);
	CHECK_EQ(RECORDS(1, 1, 1, 5, 0x61616161), -EPIPE);
	CHECK_EQ(RECORDS(1, 1), -EPIPE);
	CHECK_EQ(RECORDS(1, 1, 1, DOC_MAX_BYTES + 1), -EPIPE);
	CHECK_EQ(RECORDS(1, 1, 1, 0xffffffff), -EPIPE);
	CHECK_EQ(RECORDS(8, 1, 1, 0), -EPIPE);
	CHECK_EQ(RECORDS(0, 1, 1, 0), -EBADMSG);
	CHECK_EQ(RECORDS(6, 1, 1, 0), -EBADMSG); /* closes what is not open */
	CHECK_EQ(p.n, 0);
	CHECK_EQ(RECORDS(2, 1, 1, 4, 0x61006161, 255, 0, 0, 0), 1); /* NUL in a text */
	CHECK_EQ(p.n, 1);
	problems_done(&p);
	p = (struct problems){ 0 };
	CHECK_EQ(RECORDS(7, 3, 9, 4, 0x1b1b1b1b, 255, 0, 0, 1), -EBADMSG);
	CHECK_EQ(p.n, 1);
	CHECK_EQ(p.v[0].line, 3);
	CHECK(!strchr(p.v[0].message, 0x1b));
	problems_done(&p);
}

/* What libfyaml dies of is told, and this process lives; what else it dies of is told as well. */
TEST(the_parser_dies_alone)
{
	static const char *const bad[] = { "? 5:\t:", "? 5:\t?", "? a\t: b\n?\t:" };

	for (size_t i = 0; i < SB_ARRAY_LEN(bad); i++) {
		struct problems p = { 0 };
		struct doc *d = NULL;

		CHECK_EQ(doc_load(bad[i], strlen(bad[i]), DOC_YAML, "/p/x.yaml", &d, &p), -EBADMSG);
		CHECK(p.n > 0);
		problems_done(&p);
	}
	{
		struct problems p = { 0 };
		struct doc d = { .file = "/p/x.yaml" };
		struct doc_build b = { .d = &d, .p = &p };

		CHECK_EQ(yaml_jailed(&b, bad[0], strlen(bad[0])), -EBADMSG); /* past the check of tabs */
		CHECK(p.n == 1);
		CHECK(strstr(p.v[0].message, "no end"));
		problems_done(&p);
		free(b.stack);
		arena_done(&d.arena);
	}
}
