#include "core/grant_head.h"

#include <stdlib.h>

#include "t.h"

#define A64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B64 "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define C64 "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
#define FIRST "sendbox-grants-head-v1\n"
#define KEY "key " C64 "\n"
#define SIG "sig " C64 A64 "\n"

static const char one[] = FIRST "7 " A64 "\n" KEY SIG;
static const char two[] = FIRST "7 " A64 "\n8 " B64 "\n" KEY SIG;

static int parse(const char *s, struct sb_grant_head *h)
{
	return sb_grant_head_parse(s, strlen(s), h);
}

TEST(both_forms)
{
	struct sb_grant_head h = { 0 };
	struct sb_grant_state s = { .generation = 7 };
	char out[SB_GRANT_HEAD_MAX];

	memset(s.sha256, 0xaa, 32);
	CHECK_EQ(parse(one, &h), 0);
	CHECK(!h.changing && h.now.generation == 7 && h.sig[63] == 0xaa && h.key[0] == 0xcc);
	CHECK_EQ(h.signed_len, sizeof(one) - sizeof(SIG));
	CHECK_EQ(sb_grant_head_write(&h, out), sizeof(one) - 1);
	CHECK_STR(out, one);
	CHECK(sb_grant_head_covers(&h, &s));
	s.generation = 6;
	CHECK(!sb_grant_head_covers(&h, &s));
	s.generation = 8;
	CHECK(!sb_grant_head_covers(&h, &s));
	CHECK_EQ(parse(two, &h), 0);
	CHECK(h.changing && h.next.generation == 8);
	CHECK(!sb_grant_head_covers(&h, &s)); /* of that generation, with the other's digest */
	memset(s.sha256, 0xbb, 32);
	CHECK(sb_grant_head_covers(&h, &s));
}

TEST(nothing_else)
{
	static const char *const bad[] = {
		"", FIRST, FIRST "7 " A64 "\n" KEY, one + 1,
		FIRST "07 " A64 "\n" KEY SIG, FIRST "-7 " A64 "\n" KEY SIG, FIRST "7 " A64 " \n" KEY SIG,
		FIRST "7 " A64 "\n9 " B64 "\n" KEY SIG, FIRST "7 " A64 "\n7 " B64 "\n" KEY SIG,
		FIRST "7 " A64 "\n8 " B64 "\n9 " B64 "\n" KEY SIG, FIRST "7 " A64 "\n" KEY SIG "\n",
		FIRST "7 " A64 "\n" KEY "sig " C64 "\n", FIRST "7 a\n" KEY SIG, FIRST "7 " A64 "\r\n" KEY SIG,
		FIRST "18446744073709551615 " A64 "\n" KEY SIG,
	};
	struct sb_grant_head h = { .now.generation = 99 };
	char text[sizeof(two)];

	for (size_t i = 0; i < SB_ARRAY_LEN(bad); i++)
		if (parse(bad[i], &h) != -EBADMSG)
			t_fail(__FILE__, __LINE__, "%s", bad[i]);
	for (size_t i = 0; i < sizeof(two) - 1; i++) { /* cut anywhere, and no byte may be zero */
		memcpy(text, two, sizeof(two));
		CHECK_EQ(sb_grant_head_parse(text, i, &h), -EBADMSG);
		text[i] = '\0';
		CHECK_EQ(sb_grant_head_parse(text, sizeof(two) - 1, &h), -EBADMSG);
	}
	CHECK_EQ(h.now.generation, 99);
}

TEST(every_field_of_a_row_counts)
{
	struct sb_appr_grant g = { .id = 1, .kind = SB_APPR_NETWORK, .subject = "a b", .rule = "c",
				   .created_s = 2, .expires_s = 3, .uses = 4 };
	struct sb_appr_grant x;
	char a[SB_GRANT_LINE_MAX];
	char b[SB_GRANT_LINE_MAX];

	(void)sb_grant_line(&g, a);
#define DIFFERS(change) do { x = g; change; (void)sb_grant_line(&x, b); CHECK(strcmp(a, b) != 0); } while (0)
	DIFFERS(x.id = 2);
	DIFFERS(x.deny = true);
	DIFFERS(x.pattern = true);
	DIFFERS(x.kind = SB_APPR_SSH);
	DIFFERS(x.subject[2] = 'c');
	DIFFERS(x.rule[0] = 'd');
	DIFFERS(x.created_s = 9);
	DIFFERS(x.expires_s = 9);
	DIFFERS(x.uses = 9);
	DIFFERS(x.bound[31] = 1);
	/* where the subject ends */
	DIFFERS((memcpy(x.subject, "a", 2), memcpy(x.rule, "b c", 4)));
}
