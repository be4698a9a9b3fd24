#include "base/near.h"

#include <string.h>

#include "t.h"

TEST(distances) /* kitten and sitting are the textbook's */
{
	CHECK_EQ(sb_near("kitten", "sitting", 5), 3);
	CHECK_EQ(sb_near("kitten", "sitting", 3), 3);
	CHECK_EQ(sb_near("kitten", "sitting", 2), 3); /* more than asked for */
	CHECK_EQ(sb_near("", "ab", 2), 2);
	CHECK_EQ(sb_near("same", "same", 0), 0);
	CHECK_EQ(sb_near("a", "abcdef", 2), 3);
}

TEST(long_words)
{
	char a[66];
	char b[66];

	memset(a, 'a', 65);
	memset(b, 'a', 65);
	a[64] = b[64] = '\0';
	b[0] = 'b';
	CHECK_EQ(sb_near(a, b, 4), 1);
	a[64] = b[64] = 'a';
	a[65] = b[65] = '\0';
	CHECK_EQ(sb_near(a, b, 4), 5);
}

TEST(helps)
{
	CHECK_EQ(sb_near_max("cp"), 1);
	CHECK_EQ(sb_near_max("attach"), 2);
}
