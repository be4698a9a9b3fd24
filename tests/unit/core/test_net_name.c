#include "core/net_name.h"
#include "t.h"

static void same(const char *in, const char *want)
{
	char out[SB_NAME_MAX + 1] = "";

	if (sb_name_normalise(in, strlen(in), out) < 0)
		t_fail(__FILE__, __LINE__, "refused \"%s\"", in);
	CHECK_STR(out, want);
}

static void no(const char *in, size_t len)
{
	char out[SB_NAME_MAX + 1] = "x";

	if (sb_name_normalise(in, len, out) != -EINVAL)
		t_fail(__FILE__, __LINE__, "accepted \"%s\"", in);
	CHECK_STR(out, "x"); /* untouched */
}

TEST(N15_one_spelling)
{
	same("example.com", "example.com");
	same("EXAMPLE.Com", "example.com");
	same("example.com.", "example.com");
	same("Host.SendBox.Internal.", SB_HOST_NAME);
	same("a", "a");
	same("_dmarc.x-y.example", "_dmarc.x-y.example");
	same("xn--bcher-kva.example", "xn--bcher-kva.example");
	same("1.2.3.example", "1.2.3.example");
	same("3com.com", "3com.com");
	same("1.2.3.4a", "1.2.3.4a");
	same("0xzz", "0xzz");
}

TEST(N20_malformed)
{
	static const char *const v[] = {
		"", ".", "..", ".a", "a..", "a..b", "-a", "a-", "a.-b", "a-.b", " a", "a ", "a b", "a\tb",
		"a\rb", "a\nb", "a;b", "a#b", "a'b", "a\"b", "a\\b", "a/b", "a?b", "a@b", "a:b", "a%62",
		"[::1]", "::1", "*", "*.a", "a*", "a,b", "a+b", "a=b", "a&b", "a|b", "a$b", "a`b", "a(b",
		"a<b", "a~b", "a!b", "a^b", "a{b", "\x7f", "\x01",
		"b\xc3\xbc" "cher.example", "a\xe3\x80\x82" "b", "exampl\xc5\xbf.com", "\xe2\x84\xaa",
	};

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
		no(v[i], strlen(v[i]));
	no("a\0b", 3);
	no("evil\0.allowed.com", 17);
	no("a\0", 2);
}

TEST(N22_no_authority_forms)
{
	no("user@host", 9);
	no("allowed:x@evil", 14);
	no("allowed#@evil", 13);
	no("allowed:443", 11);
}

TEST(N06_no_number_is_a_name)
{
	static const char *const v[] = {
		"2130706433", "0177.1", "0x7f.1", "127.1", "127.0.0.1", "127.0.0.1.", "0x7f000001", "0",
		"0x", "a.1", "a.0X7F", "1.2.3.4.5", "017700000001",
	};

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
		no(v[i], strlen(v[i]));
}

TEST(lengths)
{
	char s[300];
	char want[SB_NAME_MAX + 1];
	char out[SB_NAME_MAX + 1];

	memset(s, 'a', sizeof(s));
	CHECK_EQ(sb_name_normalise(s, 63, out), 0);
	CHECK_EQ(sb_name_normalise(s, 64, out), -EINVAL);
	for (size_t i = 63; i < sizeof(s); i += 64)
		s[i] = '.';
	memcpy(want, s, 253);
	want[253] = '\0';
	CHECK_EQ(sb_name_normalise(s, 253, out), 0);
	CHECK_STR(out, want);
	CHECK_EQ(sb_name_normalise(s, 254, out), -EINVAL);
	s[253] = '.';
	CHECK_EQ(sb_name_normalise(s, 254, out), 0); /* the dot at the end does not count */
	CHECK_STR(out, want);
	CHECK_EQ(sb_name_normalise(s, 255, out), -EINVAL);
}
