/* Records: what is written, what is read, what is refused. */
#include "store/audit.h"
#include "t.h"

static const uint8_t none[SB_AUDIT_HASH];

static struct sb_audit_event connect_event(void)
{
	struct sb_audit_event e = { .time_ns = 1700000000123456789ULL,
				    .session = { 0xab, 0xcd, [15] = 1 },
				    .kind = SB_AUDIT_NETWORK,
				    .verdict = SB_AUDIT_ALLOW,
				    .action = "connect",
				    .subject = "example.org:443",
				    .rule = "example.org",
				    .reason = NULL };

	sb_audit_put_num(&e, "id", 7);
	sb_audit_put(&e, "via", "direct");
	sb_audit_put_list(&e, "argv", "a\0b c\0", 6);
	sb_audit_put_bool(&e, "first", true);
	return e;
}

static const char connect_line[] =
	"{\"v\":1,\"seq\":0,\"time_ns\":1700000000123456789,\"prev\":"
	"\"0000000000000000000000000000000000000000000000000000000000000000\","
	"\"session\":\"abcd0000000000000000000000000001\",\"kind\":\"network\","
	"\"action\":\"connect\",\"verdict\":\"allow\",\"subject\":\"example.org:443\","
	"\"rule\":\"example.org\",\"reason\":\"\","
	"\"data\":{\"argv\":[\"a\",\"b c\"],\"first\":true,\"id\":7,\"via\":\"direct\"}}\n";

TEST(writes_one_form)
{
	struct sb_audit_event e = connect_event();
	char out[SB_AUDIT_LINE_MAX];
	int n = sb_audit_encode(&e, 0, none, out);

	CHECK_EQ(n, sizeof(connect_line) - 1);
	CHECK_MEM(out, connect_line, sizeof(connect_line) - 1);
}

TEST(reads_it)
{
	struct sb_audit_record r;
	struct sb_audit_value v;
	struct sb_audit_str w;
	size_t at = 0;
	char text[64];

	REQUIRE(sb_audit_parse(connect_line, sizeof(connect_line) - 2, &r, NULL) == 0);
	CHECK_EQ(r.seq, 0);
	CHECK_EQ(r.time_ns, 1700000000123456789ULL);
	CHECK_EQ(r.session[1], 0xcd);
	CHECK_EQ(r.kind, SB_AUDIT_NETWORK);
	CHECK_EQ(r.verdict, SB_AUDIT_ALLOW);
	(void)sb_audit_text(&r.subject, text, sizeof(text));
	CHECK_STR(text, "example.org:443");
	CHECK_EQ(sb_audit_get_num(&r, "id"), 7);
	CHECK_EQ(sb_audit_get_num(&r, "first"), 1);
	CHECK_EQ(sb_audit_get_num(&r, "other"), 0);
	REQUIRE(sb_audit_get(&r, "argv", &v) && v.type == SB_AUDIT_LIST);
	CHECK(sb_audit_word(&v, &at, &w) && w.len == 1 && w.p[0] == 'a');
	CHECK(sb_audit_word(&v, &at, &w) && w.len == 3);
	CHECK(!sb_audit_word(&v, &at, &w));
}

/* What a terminal, a line reader or a JSON reader could be made to do with a text. */
static const struct {
	const char *bytes;
	const char *text;
} texts[] = {
	{ "plain text, 100 %", "plain text, 100 %" },
	{ "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80" },
	{ "a\nb\r\tc", "a\\x0ab\\x0d\\x09c" },
	{ "\x1b[2J\x7f", "\\x1b[2J\\x7f" },
	{ "\xc2\x9b" "31m", "\\xc2\\x9b31m" }, /* C1 */
	{ "\xe2\x80\xae" "fdp.exe", "\\xe2\\x80\\xaefdp.exe" }, /* right to left */
	{ "\xe2\x80\xa8\xef\xbb\xbf", "\\xe2\\x80\\xa8\\xef\\xbb\\xbf" },
	{ "\xf3\xa0\x81\x81", "\\xf3\\xa0\\x81\\x81" }, /* tag */
	{ "\xff\xfe\xc3(", "\\xff\\xfe\\xc3(" },
	{ "\xed\xa0\x80\xc0\xaf", "\\xed\\xa0\\x80\\xc0\\xaf" }, /* surrogate, overlong */
	{ "back\\slash \\x41 \"quoted\"", "back\\\\slash \\\\x41 \"quoted\"" },
};

TEST(neutralises_text)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct sb_audit_event e = { .kind = SB_AUDIT_COMMAND, .action = "exec",
					    .subject = texts[i].bytes };
		char out[SB_AUDIT_LINE_MAX];
		struct sb_audit_record r;
		char text[256];
		char bytes[256];
		size_t len;
		int n = sb_audit_encode(&e, 3, none, out);

		REQUIRE(n > 0);
		for (int k = 0; k < n - 1; k++)
			CHECK((unsigned char)out[k] >= 0x20 && out[k] != 0x7f);
		REQUIRE(sb_audit_parse(out, (size_t)n - 1, &r, NULL) == 0);
		(void)sb_audit_text(&r.subject, text, sizeof(text));
		CHECK_STR(text, texts[i].text);
		len = sb_audit_bytes(text, bytes, sizeof(bytes));
		CHECK_EQ(len, strlen(texts[i].bytes));
		CHECK_MEM(bytes, texts[i].bytes, len);
	}
}

/* A line in which one byte differs is none, or says something else. */
TEST(every_byte_counts)
{
	char line[sizeof(connect_line)];
	size_t len = sizeof(connect_line) - 2;
	struct sb_audit_record r;

	for (size_t i = 0; i < len; i++) {
		for (int b = 0; b < 256; b++) {
			memcpy(line, connect_line, sizeof(line));
			if (line[i] == (char)b)
				continue;
			line[i] = (char)b;
			if (sb_audit_parse(line, len, &r, NULL) == 0) {
				/* in a text or a number: the frame of the record is rigid */
				CHECK(r.seq != 0 || strchr("\"{}:,", connect_line[i]) == NULL ||
				      memchr("example.org:443", connect_line[i], 16));
				CHECK((unsigned char)line[i] >= 0x20);
			}
		}
	}
	for (size_t i = 0; i < len; i++)
		CHECK_EQ(sb_audit_parse(connect_line, i, &r, NULL), -EBADMSG);
	CHECK_EQ(sb_audit_parse(connect_line, len + 1, &r, NULL), -EBADMSG);
}

static char *repeat(const char *what, size_t n)
{
	size_t len = strlen(what);
	char *s = malloc(n * len + 1);

	for (size_t i = 0; s && i < n; i++)
		memcpy(s + i * len, what, len);
	if (s)
		s[n * len] = '\0';
	return s;
}

/* The worst texts there are, at their bounds and beyond: cut, marked, and still records. */
TEST(bounds)
{
	static const char *const unit[] = { "x", "\"", "\\", "\x1b", "\xe2\x82\xac" };

	for (size_t i = 0; i < sizeof(unit) / sizeof(unit[0]); i++) {
		sb_autofree char *s = repeat(unit[i], 5000);
		struct sb_audit_event e = { .time_ns = UINT64_MAX, .kind = SB_AUDIT_SNAPSHOT,
					    .action = "capture", .subject = s, .rule = s,
					    .reason = s };
		static const char *const keys[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i", "j",
						    "k", "l", "m", "n", "o", "p", "q", "r", "s" };
		char out[SB_AUDIT_LINE_MAX];
		uint8_t pack[SB_AUDIT_PACK_MAX];
		struct sb_audit_event again;
		struct sb_audit_record r;
		int n;

		REQUIRE(s);
		for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
			sb_audit_put(&e, keys[k], s);
		n = sb_audit_encode(&e, UINT64_MAX, none, out);
		REQUIRE(n > 0);
		REQUIRE(sb_audit_parse(out, (size_t)n - 1, &r, NULL) == 0);
		CHECK_EQ(sb_audit_get_num(&r, "cut"), 1);
		n = sb_audit_pack(&e, pack);
		REQUIRE(n > 0 && n <= SB_AUDIT_PACK_MAX);
		REQUIRE(sb_audit_unpack(pack, (size_t)n, &again) == 0);
		n = sb_audit_encode(&again, 1, none, out);
		REQUIRE(n > 0);
		REQUIRE(sb_audit_parse(out, (size_t)n - 1, &r, NULL) == 0);
		CHECK_EQ(sb_audit_get_num(&r, "cut"), 1);
	}
}

TEST(list_of_too_many_words)
{
	char words[8000];
	struct sb_audit_event e = { .kind = SB_AUDIT_SESSION, .action = "start" };
	char out[SB_AUDIT_LINE_MAX];
	struct sb_audit_record r;
	struct sb_audit_value v;
	struct sb_audit_str w;
	size_t at = 0;
	size_t n_words = 0;
	int n;

	memset(words, 0, sizeof(words)); /* 8000 empty ones */
	sb_audit_put_list(&e, "argv", words, sizeof(words));
	n = sb_audit_encode(&e, 1, none, out);
	REQUIRE(n > 0);
	REQUIRE(sb_audit_parse(out, (size_t)n - 1, &r, NULL) == 0);
	CHECK_EQ(sb_audit_get_num(&r, "cut"), 1);
	REQUIRE(sb_audit_get(&r, "argv", &v));
	while (sb_audit_word(&v, &at, &w))
		n_words++;
	CHECK(n_words > 1000 && n_words < 8000);
}

TEST(messages)
{
	struct sb_audit_event e = connect_event();
	struct sb_audit_event got;
	uint8_t p[SB_AUDIT_PACK_MAX];
	char out[SB_AUDIT_LINE_MAX];
	int n = sb_audit_pack(&e, p);

	REQUIRE(n > 0);
	REQUIRE(sb_audit_unpack(p, (size_t)n, &got) == 0);
	CHECK_EQ(sb_audit_encode(&got, 0, none, out), sizeof(connect_line) - 1);
	CHECK_MEM(out, connect_line, sizeof(connect_line) - 1);
	for (int i = 0; i < n; i++)
		CHECK_EQ(sb_audit_unpack(p, (size_t)i, &got), -EBADMSG);
	p[n] = 0;
	CHECK_EQ(sb_audit_unpack(p, (size_t)n + 1, &got), -EBADMSG);
}

TEST(refuses_what_is_no_event)
{
	struct sb_audit_event e = connect_event();
	char out[SB_AUDIT_LINE_MAX];

	e.kind = SB_AUDIT_KIND_NONE;
	CHECK_EQ(sb_audit_encode(&e, 0, none, out), -EINVAL);
	e = connect_event();
	e.verdict = SB_AUDIT_VERDICTS;
	CHECK_EQ(sb_audit_encode(&e, 0, none, out), -EINVAL);
	e = connect_event();
	e.action = "Connect";
	CHECK_EQ(sb_audit_encode(&e, 0, none, out), -EINVAL);
	e = connect_event();
	sb_audit_put_num(&e, "id", 8); /* twice */
	CHECK_EQ(sb_audit_encode(&e, 0, none, out), -EINVAL);
	CHECK_EQ(sb_audit_kind_of("none"), 0);
	CHECK_EQ(sb_audit_kind_of("network"), SB_AUDIT_NETWORK);
	CHECK_EQ(sb_audit_verdict_of("maybe"), SB_AUDIT_VERDICTS);
}
