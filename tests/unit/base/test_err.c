#include "base/err.h"
#include "t.h"

TEST(first_error_wins)
{
	struct sb_err e = { 0 };

	CHECK_EQ(sb_err_set(&e, -EINVAL, "bad %s", "size"), -EINVAL);
	CHECK_EQ(sb_err_set(&e, -EIO, "later"), -EIO);
	CHECK_EQ(e.code, -EINVAL);
	CHECK_STR(e.text, "bad size");
	(void)sb_err_add(&e, -EIO, "clean-up: %d", 5);
	CHECK_STR(e.text, "bad size; clean-up: 5");
	CHECK_EQ(e.code, -EINVAL);
	CHECK_EQ(sb_err_set(NULL, -EPERM, "x"), -EPERM);
}

TEST(long_text_is_cut)
{
	struct sb_err e = { 0 };

	for (int i = 0; i < 100; i++)
		(void)sb_err_add(&e, -EIO, "0123456789");
	CHECK_EQ(strlen(e.text), SB_ERR_TEXT_MAX - 1);
}
