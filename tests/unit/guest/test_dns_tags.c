#include "relay/dns_tags.h"
#include "t.h"

static struct sb_dns_tags t;

static struct sb_dns_asker client(uint16_t port)
{
	struct sb_dns_asker who = { .asked = { 8, 8, 8, 8 } };

	who.client.v4.sin_family = AF_INET;
	who.client.v4.sin_port = port;
	return who;
}

TEST(each_tag_once)
{
	struct sb_dns_asker a = client(1);
	struct sb_dns_asker b = client(2);
	struct sb_dns_asker got = { 0 };
	uint16_t ta = 0;
	uint16_t tb = 0;

	t = (struct sb_dns_tags){ 0 };
	CHECK_EQ(sb_dns_tags_put(&t, 100, &a, &ta), 0);
	CHECK_EQ(sb_dns_tags_put(&t, 100, &b, &tb), 0);
	CHECK(ta != tb);
	CHECK_EQ(sb_dns_tags_take(&t, 200, tb, &got), 0);
	CHECK_EQ(got.client.v4.sin_port, 2);
	CHECK_MEM(got.asked, "\x08\x08\x08\x08\0", 5);
	CHECK_EQ(sb_dns_tags_take(&t, 200, tb, &got), -ENOENT);
	CHECK_EQ(sb_dns_tags_take(&t, 200, ta, &got), 0);
	CHECK_EQ(got.client.v4.sin_port, 1);
}

TEST(unknown_tags)
{
	struct sb_dns_asker got = client(7);

	t = (struct sb_dns_tags){ 0 };
	for (uint32_t tag = 0; tag <= 65535; tag++)
		CHECK_EQ(sb_dns_tags_take(&t, 1, (uint16_t)tag, &got), -ENOENT);
	CHECK_EQ(got.client.v4.sin_port, 7);
}

TEST(ten_seconds)
{
	struct sb_dns_asker a = client(1);
	uint16_t tag = 0;

	t = (struct sb_dns_tags){ 0 };
	CHECK_EQ(sb_dns_tags_put(&t, 5, &a, &tag), 0);
	CHECK_EQ(sb_dns_tags_take(&t, 10000000005ULL, tag, &a), -ENOENT);
	CHECK_EQ(sb_dns_tags_put(&t, 5, &a, &tag), 0);
	CHECK_EQ(sb_dns_tags_take(&t, 10000000004ULL, tag, &a), 0);
}

TEST(full_and_free_again)
{
	static uint8_t seen[65536];
	struct sb_dns_asker a = client(1);
	uint16_t tag = 9;

	t = (struct sb_dns_tags){ 0 };
	for (int i = 0; i < 1024; i++) {
		CHECK_EQ(sb_dns_tags_put(&t, 1, &a, &tag), 0);
		CHECK_EQ(seen[tag]++, 0);
	}
	tag = 9;
	CHECK_EQ(sb_dns_tags_put(&t, 2, &a, &tag), -ENOBUFS);
	CHECK_EQ(tag, 9);
	/* all of them expired: the same slots, other tags */
	for (int i = 0; i < 1024; i++) {
		CHECK_EQ(sb_dns_tags_put(&t, 20000000000ULL, &a, &tag), 0);
		CHECK_EQ(seen[tag]++, 0);
	}
	sb_dns_tags_clear(&t);
	CHECK_EQ(sb_dns_tags_take(&t, 20000000001ULL, tag, &a), -ENOENT);
	CHECK_EQ(sb_dns_tags_put(&t, 20000000001ULL, &a, &tag), 0);
	CHECK_EQ(seen[tag], 0);
}

/* An answer that comes after its question was forgotten must not reach another one. */
TEST(a_late_answer_fits_nobody)
{
	struct sb_dns_asker a = client(1);
	struct sb_dns_asker got = { 0 };
	uint16_t old = 0;
	uint16_t tag = 0;

	t = (struct sb_dns_tags){ 0 };
	CHECK_EQ(sb_dns_tags_put(&t, 1, &a, &old), 0);
	for (int i = 0; i < 1024; i++)
		CHECK_EQ(sb_dns_tags_put(&t, 20000000000ULL, &a, &tag), 0);
	CHECK_EQ(old % 1024, tag % 1024);
	CHECK_EQ(sb_dns_tags_take(&t, 20000000001ULL, old, &got), -ENOENT);
	CHECK_EQ(sb_dns_tags_take(&t, 20000000001ULL, tag, &got), 0);
}
