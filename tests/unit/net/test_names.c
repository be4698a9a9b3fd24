#include "net/gate.h"
#include "t.h"

#include "base/fd.h"
#include "crypto/crypto.h"

static struct names *fresh(void)
{
	struct names *n = NULL;

	sb_assert(sb_crypto_init() == 0);
	sb_assert(names_new(&n) == 0);
	return n;
}

static struct sb_addr addr(const char *text)
{
	struct sb_addr a = { { 0 } };

	sb_assert(sb_addr_parse(text, strlen(text), &a) == 0);
	return a;
}

static void check_addr(struct names *n, const char *name, bool v6, const char *want)
{
	struct sb_addr a = { { 0 } };
	char text[SB_ADDR_TEXT];

	CHECK_EQ(names_addr(n, name, v6, &a), 0);
	sb_addr_format(&a, text);
	CHECK_STR(text, want);
	CHECK(names_synthetic(&a));
	CHECK_STR(names_of(n, &a), name);
}

TEST(stable_and_one_number_for_both_families)
{
	struct names *n = fresh();

	check_addr(n, "a.example", false, "198.18.0.16");
	check_addr(n, "b.example", true, "fd73:656e:6462:6f78::11");
	check_addr(n, "a.example", true, "fd73:656e:6462:6f78::10");
	check_addr(n, "b.example", false, "198.18.0.17");
	check_addr(n, "a.example", false, "198.18.0.16");
	CHECK(names_known(n, "a.example"));
	CHECK(!names_known(n, "c.example"));
	CHECK(!names_free(n));
}

TEST(addresses_that_stand_for_nothing)
{
	static const struct {
		const char *text;
		bool inside;
	} cases[] = {
		{ "198.18.0.1", true }, /* the guest's own */
		{ "198.18.0.15", true },
		{ "198.18.0.17", true }, /* not given yet */
		{ "198.19.255.255", true },
		{ "198.17.0.16", false },
		{ "198.20.0.16", false },
		{ "198.18.0.0", true },
		{ "10.18.0.16", false },
		{ "fd73:656e:6462:6f78::1", true },
		{ "fd73:656e:6462:6f78::11", true },
		{ "fd73:656e:6462:6f78:1::10", true },
		{ "fd73:656e:6462:6f78:ffff:ffff:ffff:ffff", true },
		{ "fd73:656e:6462:6f79::10", false },
		{ "::198.18.0.16", false }, /* compatible, not mapped */
		{ "64:ff9b::c612:10", false },
	};
	struct names *n = fresh();

	check_addr(n, "a.example", false, "198.18.0.16");
	for (size_t i = 0; i < SB_ARRAY_LEN(cases); i++) {
		struct sb_addr a = addr(cases[i].text);

		if (names_of(n, &a))
			t_fail(__FILE__, __LINE__, "%s stands for something", cases[i].text);
		if (names_synthetic(&a) != cases[i].inside)
			t_fail(__FILE__, __LINE__, "%s: pool", cases[i].text);
	}
	CHECK(!names_free(n));
}

TEST(many_then_full)
{
	struct names *n = fresh();
	struct sb_addr a = { { 0 } };
	struct sb_addr untouched = { { 7 } };
	char name[32];

	for (unsigned int i = 0; i < NAMES_MAX; i++) {
		(void)snprintf(name, sizeof(name), "n%u.example", i);
		REQUIRE(names_addr(n, name, false, &a) == 0);
		REQUIRE(strcmp(names_of(n, &a), name) == 0);
	}
	CHECK_EQ(names_addr(n, "one.more", false, &untouched), -ENOSPC);
	CHECK_EQ(untouched.b[0], 7);
	check_addr(n, "n0.example", false, "198.18.0.16");
	check_addr(n, "n239.example", false, "198.18.0.255");
	check_addr(n, "n240.example", false, "198.18.1.0");
	check_addr(n, "n65519.example", false, "198.18.255.255");
	check_addr(n, "n65520.example", false, "198.19.0.0");
	check_addr(n, "n65535.example", false, "198.19.0.15");
	check_addr(n, "n65535.example", true, "fd73:656e:6462:6f78::1:f");
	CHECK(!names_known(n, "one.more"));
	CHECK(!names_free(n));
}

TEST(no_memory)
{
	sb_assert(sb_crypto_init() == 0);
	T_EVERY_FAULT(nth) {
		struct names *n = NULL;
		struct sb_addr a = { { 0 } };
		bool made;

		t_fault_arm(nth);
		made = names_new(&n) == 0;
		for (unsigned int i = 0; made && i < 40; i++) {
			char name[32];

			(void)snprintf(name, sizeof(name), "n%u.example", i);
			if (names_addr(n, name, false, &a) < 0)
				break;
			CHECK_STR(names_of(n, &a), name);
		}
		CHECK_EQ(made, n != NULL);
		t_fault_disarm();
		if (made) {
			CHECK_EQ(names_addr(n, "n0.example", false, &a), 0);
			CHECK_STR(names_of(n, &a), "n0.example");
		}
		CHECK(!names_free(n));
		if (!t_fault_fired())
			break;
	}
}

TEST(routes_of_this_host)
{
	static const struct {
		const char *text;
		int want;
	} cases[] = {
		{ "127.0.0.1", 1 },	  { "127.3.2.1", 1 }, { "::1", 1 },
		{ "224.0.0.1", 1 },	  { "255.255.255.255", 1 },
	};
	int before = t_open_fds();
	sb_autofd int fd = -1;

	CHECK_EQ(route_open(&fd), 0);
	for (size_t i = 0; i < SB_ARRAY_LEN(cases); i++) {
		struct sb_addr a = addr(cases[i].text);
		int got = route_is_local(fd, &a);

		/* without the family or any route (a bare namespace) the answer may be "no route" */
		if (got != cases[i].want && !(got == 0 && i >= 2))
			t_fail(__FILE__, __LINE__, "%s: %d", cases[i].text, got);
	}
	CHECK(route_is_local(-1, &(struct sb_addr){ { 0 } }) < 0);
	sb_fd_close(&fd);
	CHECK_EQ(t_open_fds(), before);
}
