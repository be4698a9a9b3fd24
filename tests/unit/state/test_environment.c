#include "dirs.h"

static int count(void *arg, const struct environment *e)
{
	(void)e;
	(*(int *)arg)++;
	return 0;
}

TEST(environments)
{
	struct place p;
	struct state *s = NULL;
	struct sb_err err = { 0 };
	struct environment e = { .key = { 1 }, .agent = (char *)(uintptr_t)"claude",
				 .base = (char *)(uintptr_t)"node:22", .layers = { { 7 }, { 8 } },
				 .n_layers = 2, .bytes = 12345, .built_s = 100, .used_s = 200 };
	struct environment got = { 0 };
	static const uint8_t other[32] = { 2 };
	int n = 0;

	place_make(&p);
	CHECK_EQ(state_open(&p.d, &s, &err), 0);
	CHECK_EQ(environment_get(s, e.key, &got, &err), -ENOENT);
	err.code = 0;
	CHECK_EQ(environment_put(s, &e, &err), 0);
	e.used_s = 300;
	CHECK_EQ(environment_put(s, &e, &err), 0); /* replaced, not doubled */
	CHECK_EQ(environment_get(s, e.key, &got, &err), 0);
	CHECK_STR(got.agent, "claude");
	CHECK_STR(got.base, "node:22");
	CHECK_EQ(got.n_layers, 2);
	CHECK_EQ(got.layers[1][0], 8);
	CHECK_EQ(got.bytes, 12345);
	CHECK_EQ(got.used_s, 300);
	environment_done(&got);
	CHECK_EQ(environment_get(s, other, &got, &err), -ENOENT);
	err.code = 0;
	CHECK_EQ(environment_each(s, count, &n, &err), 0);
	CHECK_EQ(n, 1);
	e.n_layers = 9;
	CHECK_EQ(environment_put(s, &e, &err), -E2BIG);
	err.code = 0;
	CHECK_EQ(environment_remove(s, e.key, &err), 0);
	CHECK_EQ(environment_get(s, e.key, &got, &err), -ENOENT);
	(void)state_close(s);
	place_done(&p);
}
