/* Values beside the plan: order, digests, drift, wiping. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conn/plan_env.h"
#include "t.h"

/* printf %s VALUE | sha256sum */
#define SHA_EMPTY "\xe3\xb0\xc4\x42\x98\xfc\x1c\x14\x9a\xfb\xf4\xc8\x99\x6f\xb9\x24" \
		  "\x27\xae\x41\xe4\x64\x9b\x93\x4c\xa4\x95\x99\x1b\x78\x52\xb8\x55"
#define SHA_ABC "\xba\x78\x16\xbf\x8f\x01\xcf\xea\x41\x41\x40\xde\x5d\xae\x22\x23" \
		"\xb0\x03\x61\xa3\x96\x17\x7a\x9c\xb4\x10\xff\x61\xf2\x00\x15\xad"

static struct sb_plan *three(void)
{
	struct sb_plan *p = calloc(1, sizeof(*p));

	if (!p || sb_crypto_init() < 0 || sb_plan_env_set(p, "B", 1, "old") < 0 ||
	    sb_plan_env_set(p, "AB=x", 2, "") < 0 || sb_plan_env_set(p, "A", 1, "abc") < 0 ||
	    sb_plan_env_set(p, "B", 1, "b b") < 0)
		abort();
	return p;
}

TEST(sorted_with_digests)
{
	struct sb_plan *p = three();
	char **v = NULL;
	size_t len = 0;

	REQUIRE(p->n_env == 3);
	CHECK_STR(p->env[0].name, "A");
	CHECK_STR(p->env[1].name, "AB");
	CHECK_STR(p->env[2].name, "B");
	CHECK_STR(p->env[2].value, "b b");
	CHECK_MEM(p->env[0].sha256, SHA_ABC, 32);
	CHECK_MEM(p->env[1].sha256, SHA_EMPTY, 32);
	REQUIRE(sb_plan_env_vector(p, &v, &len) == 0);
	CHECK_STR(v[0], "A=abc");
	CHECK_STR(v[1], "AB=");
	CHECK_STR(v[2], "B=b b");
	CHECK(!v[3]);
	free(v);
	(void)sb_plan_free(p);
}

TEST(block_and_back)
{
	struct sb_plan *p = three();
	uint8_t *block = NULL;
	size_t len = 0;

	REQUIRE(sb_plan_env_pack(p, &block, &len) == 0);
	CHECK_EQ(len, 9);
	CHECK_MEM(block, "abc\0\0b b\0", 9);
	sb_plan_env_wipe(p);
	CHECK(!p->env[0].value && p->env[0].sha256[0] == 0xba);
	free(block);
	CHECK_EQ(sb_plan_env_pack(p, &block, &len), -EINVAL);
	CHECK_EQ(sb_plan_env_fill(p, (const uint8_t *)"abc\0\0b b", 9, NULL), 0);
	CHECK_STR(p->env[2].value, "b b");
	(void)sb_plan_free(p);
}

static void refuse(const char *block, size_t len, int code)
{
	struct sb_plan *p = three();

	sb_plan_env_wipe(p);
	CHECK_EQ(sb_plan_env_fill(p, (const uint8_t *)block, len, NULL), code);
	for (size_t i = 0; i < p->n_env; i++)
		CHECK(!p->env[i].value);
	(void)sb_plan_free(p);
}

TEST(drift)
{
	refuse("abd\0\0b b", 9, -EKEYREJECTED);
	refuse("abc\0x\0b b", 10, -EKEYREJECTED);
	refuse("b b\0\0abc", 9, -EKEYREJECTED);
	refuse("abc\0\0b b", 8, -EBADMSG); /* no NUL at the end */
	refuse("abc\0\0b b\0", 10, -EBADMSG);
	refuse("abc\0", 4, -EBADMSG);
	refuse("", 0, -EBADMSG);
}

TEST(bounds)
{
	struct sb_plan *p = three();
	char *big = malloc(SB_PLAN_MAX_ARG_BYTES + 1);
	uint8_t *block = NULL;
	size_t len = 0;
	char name[16];

	REQUIRE(big);
	memset(big, 'x', SB_PLAN_MAX_ARG_BYTES);
	big[SB_PLAN_MAX_ARG_BYTES] = '\0';
	CHECK_EQ(sb_plan_env_set(p, "C", 1, big), 0);
	CHECK_EQ(sb_plan_env_pack(p, &block, &len), -E2BIG);
	CHECK(sb_plan_check(p, NULL) < 0);
	CHECK_EQ(sb_plan_env_set(p, "C", 1, ""), 0);
	for (size_t i = p->n_env; i < SB_PLAN_MAX_ARGS; i++) {
		(void)snprintf(name, sizeof(name), "V%04zu", i);
		CHECK_EQ(sb_plan_env_set(p, name, strlen(name), "1"), 0);
	}
	CHECK_EQ(sb_plan_env_set(p, "ONE_MORE", 8, "1"), -E2BIG);
	CHECK_EQ(sb_plan_env_set(p, "C", 1, "2"), 0);
	free(big);
	(void)sb_plan_free(p);
}

TEST(failure_at_every_call)
{
	T_EVERY_FAULT(n)
	{
		struct sb_plan *p = three();
		uint8_t *block = NULL;
		char **v = NULL;
		size_t len = 0;
		size_t vlen;
		bool fired;
		int r;

		t_fault_arm(n);
		r = sb_plan_env_set(p, "NEW", 3, "1");
		if (r == 0)
			r = sb_plan_env_pack(p, &block, &len);
		if (r == 0)
			r = sb_plan_env_fill(p, block, len, NULL);
		if (r == 0)
			r = sb_plan_env_vector(p, &v, &vlen);
		fired = t_fault_fired();
		CHECK(fired == (r == -ENOMEM));
		free(block);
		free(v);
		(void)sb_plan_free(p);
		if (!fired)
			break;
	}
}
