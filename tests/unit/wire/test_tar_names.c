#include "wire/tar_names.h"

#include <stdio.h>
#include <string.h>

#include "t.h"

TEST(first_names)
{
	struct sb_tar_names t = { 0 };
	const char *first = "x";

	CHECK_EQ(sb_tar_names_first(&t, 0, "a", &first), 0); /* 0 is an id as any other */
	CHECK(first == NULL);
	CHECK_EQ(sb_tar_names_first(&t, 7, "b", &first), 0);
	CHECK(first == NULL);
	CHECK_EQ(sb_tar_names_first(&t, 0, "c", &first), 0);
	CHECK_STR(first, "a");
	CHECK_EQ(sb_tar_names_first(&t, 7, "d", &first), 0);
	CHECK_STR(first, "b");
	sb_tar_names_done(&t);
	CHECK_EQ(t.room, 0);
}

TEST(many)
{
	struct sb_tar_names t = { 0 };
	const char *first;
	char name[16];

	for (uint64_t i = 0; i < 5000; i++) {
		(void)snprintf(name, sizeof(name), "n%u", (unsigned int)i);
		REQUIRE(sb_tar_names_first(&t, i << 40, name, &first) == 0);
		REQUIRE(first == NULL);
	}
	for (uint64_t i = 0; i < 5000; i++) {
		(void)snprintf(name, sizeof(name), "n%u", (unsigned int)i);
		REQUIRE(sb_tar_names_first(&t, i << 40, "other", &first) == 0);
		CHECK_STR(first, name);
	}
	sb_tar_names_done(&t);
}
