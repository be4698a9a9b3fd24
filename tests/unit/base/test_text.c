#include <string.h>

#include "base/text.h"
#include "t.h"

TEST(adds_and_cuts)
{
	char out[8] = "";
	struct sb_text t = { .p = out, .cap = sizeof(out) };

	sb_text_add(&t, "%s-%d", "ab", 1);
	CHECK(strcmp(out, "ab-1") == 0);
	CHECK_EQ(t.len, 4);
	sb_text_add(&t, "%s", "cdefgh");
	CHECK(strcmp(out, "ab-1cde") == 0);
	CHECK_EQ(t.len, 7);
	sb_text_add(&t, "x");
	CHECK(strcmp(out, "ab-1cde") == 0);
}

TEST(room_for_the_end_alone)
{
	char out[2] = { '\0', 'k' };
	struct sb_text t = { .p = out, .cap = 1 };

	sb_text_add(&t, "x");
	CHECK_EQ(out[0], 0);
	CHECK_EQ(out[1], 'k');
	CHECK_EQ(t.len, 0);
}
