#include "core/net_addr.h"
#include "t.h"

static enum sb_addr_class class_of(const char *text)
{
	struct sb_addr a;

	if (sb_addr_parse(text, strlen(text), &a) < 0) {
		t_fail(__FILE__, __LINE__, "%s does not parse", text);
		return SB_ADDR_NONE;
	}
	return sb_addr_classify(&a);
}

struct class_case {
	const char *addr;
	enum sb_addr_class want;
};

static void classes(const struct class_case *c, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		enum sb_addr_class got = class_of(c[i].addr);

		if (got != c[i].want)
			t_fail(__FILE__, __LINE__, "%s: got %s, want %s", c[i].addr,
			       sb_addr_class_name(got), sb_addr_class_name(c[i].want));
	}
}
#define CLASSES(v) classes(v, sizeof(v) / sizeof((v)[0]))

/* IANA IPv4 Special-Purpose Address Registry: first and last address of each row, and what
 * stands beside it. Also 224/4, which has a registry of its own. */
TEST(N10_ipv4_registry)
{
	static const struct class_case v[] = {
		{ "0.0.0.0", SB_ADDR_UNSPECIFIED },
		{ "0.255.255.255", SB_ADDR_UNSPECIFIED },
		{ "1.0.0.0", SB_ADDR_PUBLIC },
		{ "9.255.255.255", SB_ADDR_PUBLIC },
		{ "10.0.0.0", SB_ADDR_PRIVATE },
		{ "10.255.255.255", SB_ADDR_PRIVATE },
		{ "11.0.0.0", SB_ADDR_PUBLIC },
		{ "100.63.255.255", SB_ADDR_PUBLIC },
		{ "100.64.0.0", SB_ADDR_SHARED },
		{ "100.127.255.255", SB_ADDR_SHARED },
		{ "100.128.0.0", SB_ADDR_PUBLIC },
		{ "126.255.255.255", SB_ADDR_PUBLIC },
		{ "127.0.0.0", SB_ADDR_LOOPBACK },
		{ "127.0.0.1", SB_ADDR_LOOPBACK },
		{ "127.255.255.255", SB_ADDR_LOOPBACK },
		{ "128.0.0.0", SB_ADDR_PUBLIC },
		{ "169.253.255.255", SB_ADDR_PUBLIC },
		{ "169.254.0.0", SB_ADDR_LINK_LOCAL },
		{ "169.254.169.253", SB_ADDR_LINK_LOCAL },
		{ "169.254.255.255", SB_ADDR_LINK_LOCAL },
		{ "169.255.0.0", SB_ADDR_PUBLIC },
		{ "172.15.255.255", SB_ADDR_PUBLIC },
		{ "172.16.0.0", SB_ADDR_PRIVATE },
		{ "172.31.255.255", SB_ADDR_PRIVATE },
		{ "172.32.0.0", SB_ADDR_PUBLIC },
		{ "191.255.255.255", SB_ADDR_PUBLIC },
		{ "192.0.0.0", SB_ADDR_SPECIAL },
		{ "192.0.0.8", SB_ADDR_SPECIAL },
		{ "192.0.0.9", SB_ADDR_SPECIAL },
		{ "192.0.0.170", SB_ADDR_SPECIAL },
		{ "192.0.0.255", SB_ADDR_SPECIAL },
		{ "192.0.1.0", SB_ADDR_PUBLIC },
		{ "192.0.2.0", SB_ADDR_SPECIAL },
		{ "192.0.2.255", SB_ADDR_SPECIAL },
		{ "192.0.3.0", SB_ADDR_PUBLIC },
		{ "192.31.195.255", SB_ADDR_PUBLIC },
		{ "192.31.196.0", SB_ADDR_SPECIAL },
		{ "192.31.196.255", SB_ADDR_SPECIAL },
		{ "192.31.197.0", SB_ADDR_PUBLIC },
		{ "192.52.192.255", SB_ADDR_PUBLIC },
		{ "192.52.193.0", SB_ADDR_SPECIAL },
		{ "192.52.193.255", SB_ADDR_SPECIAL },
		{ "192.52.194.0", SB_ADDR_PUBLIC },
		{ "192.88.98.255", SB_ADDR_PUBLIC },
		{ "192.88.99.0", SB_ADDR_SPECIAL },
		{ "192.88.99.255", SB_ADDR_SPECIAL },
		{ "192.88.100.0", SB_ADDR_PUBLIC },
		{ "192.167.255.255", SB_ADDR_PUBLIC },
		{ "192.168.0.0", SB_ADDR_PRIVATE },
		{ "192.168.255.255", SB_ADDR_PRIVATE },
		{ "192.169.0.0", SB_ADDR_PUBLIC },
		{ "192.175.47.255", SB_ADDR_PUBLIC },
		{ "192.175.48.0", SB_ADDR_SPECIAL },
		{ "192.175.48.255", SB_ADDR_SPECIAL },
		{ "192.175.49.0", SB_ADDR_PUBLIC },
		{ "198.17.255.255", SB_ADDR_PUBLIC },
		{ "198.18.0.0", SB_ADDR_SPECIAL },
		{ "198.19.255.255", SB_ADDR_SPECIAL },
		{ "198.20.0.0", SB_ADDR_PUBLIC },
		{ "198.51.99.255", SB_ADDR_PUBLIC },
		{ "198.51.100.0", SB_ADDR_SPECIAL },
		{ "198.51.100.255", SB_ADDR_SPECIAL },
		{ "198.51.101.0", SB_ADDR_PUBLIC },
		{ "203.0.112.255", SB_ADDR_PUBLIC },
		{ "203.0.113.0", SB_ADDR_SPECIAL },
		{ "203.0.113.255", SB_ADDR_SPECIAL },
		{ "203.0.114.0", SB_ADDR_PUBLIC },
		{ "223.255.255.255", SB_ADDR_PUBLIC },
		{ "224.0.0.0", SB_ADDR_MULTICAST },
		{ "239.255.255.255", SB_ADDR_MULTICAST },
		{ "240.0.0.0", SB_ADDR_SPECIAL },
		{ "255.255.255.254", SB_ADDR_SPECIAL },
		{ "255.255.255.255", SB_ADDR_MULTICAST },
	};

	CLASSES(v);
}

/* IANA IPv6 Special-Purpose Address Registry and the unicast, multicast and retired ranges. */
TEST(N10_ipv6_registry)
{
	static const struct class_case v[] = {
		{ "::", SB_ADDR_UNSPECIFIED },
		{ "::1", SB_ADDR_LOOPBACK },
		{ "64:ff9b:1::", SB_ADDR_SPECIAL },
		{ "64:ff9b:2::1", SB_ADDR_SPECIAL },
		{ "100::", SB_ADDR_SPECIAL },
		{ "100::ffff:ffff:ffff:ffff", SB_ADDR_SPECIAL },
		{ "100:0:0:1::1", SB_ADDR_SPECIAL },
		{ "1fff:ffff::1", SB_ADDR_SPECIAL },
		{ "2001:1::1", SB_ADDR_SPECIAL },
		{ "2001:1::2", SB_ADDR_SPECIAL },
		{ "2001:1::3", SB_ADDR_SPECIAL },
		{ "2001:2::1", SB_ADDR_SPECIAL },
		{ "2001:3::1", SB_ADDR_SPECIAL },
		{ "2001:4:112::1", SB_ADDR_SPECIAL },
		{ "2001:10::1", SB_ADDR_SPECIAL },
		{ "2001:20::1", SB_ADDR_SPECIAL },
		{ "2001:2f:ffff::1", SB_ADDR_SPECIAL },
		{ "2001:30::1", SB_ADDR_SPECIAL },
		{ "2001:1ff:ffff::1", SB_ADDR_SPECIAL },
		{ "2001:200::1", SB_ADDR_PUBLIC },
		{ "2001:db7:ffff::1", SB_ADDR_PUBLIC },
		{ "2001:db8::", SB_ADDR_SPECIAL },
		{ "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", SB_ADDR_SPECIAL },
		{ "2001:db9::1", SB_ADDR_PUBLIC },
		{ "2002:800:1::", SB_ADDR_SPECIAL },
		{ "2003::1", SB_ADDR_PUBLIC },
		{ "2606:4700:4700::1111", SB_ADDR_PUBLIC },
		{ "2620:4f:7fff::1", SB_ADDR_PUBLIC },
		{ "2620:4f:8000::1", SB_ADDR_SPECIAL },
		{ "2620:4f:8001::1", SB_ADDR_PUBLIC },
		{ "3fff::1", SB_ADDR_SPECIAL },
		{ "3fff:fff:ffff::1", SB_ADDR_SPECIAL },
		{ "3fff:1000::1", SB_ADDR_PUBLIC },
		{ "4000::1", SB_ADDR_SPECIAL },
		{ "5f00::1", SB_ADDR_SPECIAL },
		{ "fbff::1", SB_ADDR_SPECIAL },
		{ "fc00::", SB_ADDR_PRIVATE },
		{ "fd73:656e:6462:6f78::1", SB_ADDR_PRIVATE },
		{ "fdff:ffff::1", SB_ADDR_PRIVATE },
		{ "fe00::1", SB_ADDR_SPECIAL },
		{ "fe80::1", SB_ADDR_LINK_LOCAL },
		{ "febf:ffff::1", SB_ADDR_LINK_LOCAL },
		{ "fec0::1", SB_ADDR_PRIVATE },
		{ "feff::1", SB_ADDR_PRIVATE },
		{ "ff00::", SB_ADDR_MULTICAST },
		{ "ff02::1", SB_ADDR_MULTICAST },
		{ "ff05::2", SB_ADDR_MULTICAST },
		{ "ff0e::1", SB_ADDR_MULTICAST },
	};

	CLASSES(v);
}

TEST(N10_ipv4_inside_ipv6)
{
	static const struct class_case v[] = {
		{ "::ffff:8.8.8.8", SB_ADDR_PUBLIC }, /* mapped is IPv4 itself */
		{ "::ffff:127.0.0.1", SB_ADDR_LOOPBACK },
		{ "::ffff:10.0.0.1", SB_ADDR_PRIVATE },
		{ "::ffff:a9fe:a9fe", SB_ADDR_METADATA },
		{ "::8.8.8.8", SB_ADDR_SPECIAL }, /* compatible */
		{ "::127.0.0.1", SB_ADDR_LOOPBACK },
		{ "::2", SB_ADDR_UNSPECIFIED },
		{ "::169.254.169.254", SB_ADDR_METADATA },
		{ "::ffff:0:8.8.8.8", SB_ADDR_SPECIAL }, /* translated (SIIT) */
		{ "::ffff:0:127.0.0.1", SB_ADDR_LOOPBACK },
		{ "64:ff9b::8.8.8.8", SB_ADDR_SPECIAL }, /* NAT64 */
		{ "64:ff9b::10.0.0.1", SB_ADDR_SPECIAL },
		{ "64:ff9b::127.0.0.1", SB_ADDR_LOOPBACK },
		{ "64:ff9b::169.254.169.254", SB_ADDR_METADATA },
		{ "64:ff9b:1::8.8.8.8", SB_ADDR_SPECIAL }, /* local NAT64, /96 */
		{ "64:ff9b:1::127.0.0.1", SB_ADDR_LOOPBACK },
		{ "64:ff9b:1:a9fe:a9:fe00::", SB_ADDR_METADATA }, /* /48 */
		{ "64:ff9b:1:0a9:fe:a9fe::", SB_ADDR_METADATA }, /* /56: u octet between */
		{ "64:ff9b:1:0:a9:fea9:fe00:0", SB_ADDR_METADATA }, /* /64 */
		{ "2002:808:808::1", SB_ADDR_SPECIAL }, /* 6to4 */
		{ "2002:7f00:1::1", SB_ADDR_LOOPBACK },
		{ "2002:a9fe:a9fe::1", SB_ADDR_METADATA },
		{ "2002:e000:1::1", SB_ADDR_MULTICAST },
		{ "2001:0:808:808::f7f7:f7f7", SB_ADDR_SPECIAL }, /* Teredo: 8.8.8.8 inverted */
		{ "2001:0:808:808::5601:5601", SB_ADDR_METADATA },
		{ "2001:0:7f00:1::f7f7:f7f7", SB_ADDR_LOOPBACK },
		{ "2606:4700::5efe:8.8.8.8", SB_ADDR_SPECIAL }, /* ISATAP */
		{ "2606:4700::200:5efe:127.0.0.1", SB_ADDR_LOOPBACK },
		{ "fe80::5efe:169.254.169.254", SB_ADDR_METADATA },
		{ "2606:4700::5eff:127.0.0.1", SB_ADDR_PUBLIC },
	};

	CLASSES(v);
}

TEST(metadata)
{
	static const struct class_case v[] = {
		{ "169.254.169.254", SB_ADDR_METADATA }, { "169.254.170.2", SB_ADDR_METADATA },
		{ "169.254.170.23", SB_ADDR_METADATA },  { "100.100.100.200", SB_ADDR_METADATA },
		{ "192.0.0.192", SB_ADDR_METADATA },     { "168.63.129.16", SB_ADDR_METADATA },
		{ "169.254.0.23", SB_ADDR_METADATA },    { "169.254.42.42", SB_ADDR_METADATA },
		{ "fd00:ec2::254", SB_ADDR_METADATA },   { "fd20:ce::254", SB_ADDR_METADATA },
		{ "fd00:ec2::23", SB_ADDR_METADATA },    { "fd00:42::42", SB_ADDR_METADATA },
		{ "fe80::a9fe:a9fe", SB_ADDR_METADATA }, { "fd00:ec2::253", SB_ADDR_PRIVATE },
		{ "168.63.129.17", SB_ADDR_PUBLIC },     { "100.100.100.201", SB_ADDR_SHARED },
	};

	CLASSES(v);
}

/* N06: text has one reading or none. */
TEST(N06_text_is_strict)
{
	static const char *const no[] = {
		"", " ", "1", "2130706433", "0177.0.0.1", "0x7f.0.0.1", "0x7f000001", "127.1", "127.0.1",
		"1.2.3", "1.2.3.4.5", "1.2.3.256", "1.2.3.04", "01.2.3.4", "1.2.3.4 ", " 1.2.3.4",
		"1.2.3.4.", "1..3.4", "1.2.3.-4", "+1.2.3.4", "1.2.3.4/32", "1.2.3.4:80", "[::1]",
		"::1%lo", "fe80::1%1", "::1 ", ":::", "::1::", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9",
		"1::2:3:4:5:6:7:8", "12345::", "g::", ":1", "1:", "::1.2.3", "::01.2.3.4", "::1.2.3.4:5",
		"1:2:3:4:5:6:7:1.2.3.4", "0000000000000000000000000000000000000000000001::",
		"1.2.3.4\n", "\xef\xbc\x91.2.3.4",
	};
	struct sb_addr a = { { 7 } };

	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		if (sb_addr_parse(no[i], strlen(no[i]), &a) != -EINVAL)
			t_fail(__FILE__, __LINE__, "accepted \"%s\"", no[i]);
	CHECK_EQ(sb_addr_parse("1.2.3.4\0", 8, &a), -EINVAL);
	CHECK_EQ(sb_addr_parse("::1\0", 4, &a), -EINVAL);
	CHECK_EQ(a.b[0], 7); /* untouched */
}

static void text(const char *in, const char *want)
{
	char out[SB_ADDR_TEXT];
	struct sb_addr a;

	if (sb_addr_parse(in, strlen(in), &a) < 0) {
		t_fail(__FILE__, __LINE__, "%s does not parse", in);
		return;
	}
	sb_addr_format(&a, out);
	CHECK_STR(out, want);
}

TEST(text_is_canonical)
{
	text("1.2.3.4", "1.2.3.4");
	text("::ffff:1.2.3.4", "1.2.3.4");
	text("::FFFF:102:304", "1.2.3.4");
	text("2001:0DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"); /* RFC 5952 4.2.3 */
	text("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"); /* 4.2.2 */
	text("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
	text("0:0:0:0:0:0:0:1", "::1");
	text("::", "::");
}

TEST(from_v4)
{
	static const uint8_t v4[4] = { 192, 0, 2, 1 };
	static const uint8_t want[16] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1 };
	struct sb_addr a;

	sb_addr_from_v4(v4, &a);
	CHECK_MEM(a.b, want, 16);
	CHECK(sb_addr_is_v4(&a));
	CHECK_EQ(sb_addr_parse("::1", 3, &a), 0);
	CHECK(!sb_addr_is_v4(&a));
}

static bool has(const char *net, const char *addr)
{
	struct sb_cidr c;
	struct sb_addr a;

	if (sb_cidr_parse(net, strlen(net), &c) < 0 || sb_addr_parse(addr, strlen(addr), &a) < 0) {
		t_fail(__FILE__, __LINE__, "%s or %s does not parse", net, addr);
		return false;
	}
	return sb_cidr_has(&c, &a);
}

TEST(networks)
{
	CHECK(has("10.0.0.0/8", "10.255.0.1"));
	CHECK(has("10.0.0.0/8", "::ffff:10.0.0.1"));
	CHECK(!has("10.0.0.0/8", "11.0.0.0"));
	CHECK(!has("10.0.0.0/8", "::10.0.0.1"));
	CHECK(has("10.1.2.128/25", "10.1.2.255"));
	CHECK(!has("10.1.2.128/25", "10.1.2.127"));
	CHECK(has("0.0.0.0/0", "255.255.255.255"));
	CHECK(!has("0.0.0.0/0", "::1"));
	CHECK(has("::/0", "ff02::1"));
	CHECK(!has("::/0", "1.2.3.4"));
	CHECK(has("::ffff:0.0.0.0/96", "1.2.3.4"));
	CHECK(has("fd00::/8", "fdff::1"));
	CHECK(has("fc00::/7", "fdff::1"));
	CHECK(!has("fc00::/7", "fe00::1"));
	CHECK(has("1.2.3.4", "1.2.3.4"));
	CHECK(!has("1.2.3.4", "1.2.3.5"));
	CHECK(has("::1/128", "::1"));
}

TEST(networks_malformed)
{
	static const char *const no[] = {
		"10.0.0.1/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/08", "10.0.0.0/-1", "10.0.0.0/ 8",
		"10.0.0.0/8 ", "10.0.0.0/8/8", "/8", "10/8", "::/129", "::1/127", "fd00::/7", "::/1e1",
		"10.0.0.0/255.0.0.0", "fd00::/0008", "1.2.3.4/31/",
	};
	struct sb_cidr c;

	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		if (sb_cidr_parse(no[i], strlen(no[i]), &c) != -EINVAL)
			t_fail(__FILE__, __LINE__, "accepted \"%s\"", no[i]);
}

static void net_text(const char *in, const char *want)
{
	char out[SB_CIDR_TEXT];
	struct sb_cidr c;

	if (sb_cidr_parse(in, strlen(in), &c) < 0) {
		t_fail(__FILE__, __LINE__, "%s does not parse", in);
		return;
	}
	sb_cidr_format(&c, out);
	CHECK_STR(out, want);
}

TEST(network_text)
{
	net_text("10.0.0.0/8", "10.0.0.0/8");
	net_text("::ffff:10.0.0.0/104", "10.0.0.0/8");
	net_text("0.0.0.0/0", "0.0.0.0/0");
	net_text("1.2.3.4/32", "1.2.3.4");
	net_text("FD00::/8", "fd00::/8");
	net_text("::1/128", "::1");
	net_text("::/0", "::/0");
	net_text("2001:db8::/127", "2001:db8::/127");
	net_text("2001:db8::/100", "2001:db8::/100");
	net_text("2001:db8::/64", "2001:db8::/64");
}
