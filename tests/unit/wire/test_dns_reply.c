/* Answers of resolvers, spelled out after RFC 1035 4 and RFC 2308. */
#include "wire/dns.h"

#include <stdlib.h>

#include "t.h"

#define HEAD(flags, an, ns, ar) "\x12\x34" flags "\0\1\0" an "\0" ns "\0" ar
#define OK "\x81\x80"
#define WWW "\3www\7example\3com\0" /* at 12; example.com at 16, com at 24 */
#define ASK_A WWW "\0\1\0\1"
#define ASK_AAAA WWW "\0\x1c\0\1"
#define A "\0\1\0\1"
#define CNAME "\0\5\0\1"
#define SOA "\xc0\x10\0\6\0\1\0\0\2\x58\0\x1c\1m\xc0\x10\1h\xc0\x10\0\0\0\1\0\0\0\2\0\0\0\3" \
	"\0\0\0\4\0\0\0\x1e"

static int parse(const char *p, size_t len, const char *name, uint16_t type,
		 struct sb_dns_reply *ret)
{
	uint8_t *c = calloc(1, len + (len == 0));
	int r;

	if (!c)
		abort();
	memcpy(c, p, len);
	r = ret ? sb_dns_reply_parse(c, len, name, type, ret) :
		  sb_dns_reply_check(c, len, name, type);
	free(c);
	return r;
}
#define PARSE(lit) parse(lit, sizeof(lit) - 1, "www.example.com", SB_DNS_A, &r)
#define CHECKED(lit, type) parse(lit, sizeof(lit) - 1, "www.example.com", type, NULL)

TEST(addresses)
{
	struct sb_dns_reply r;

	CHECK_EQ(PARSE(HEAD(OK, "\2", "\0", "\0") "\3wWw\7Example\3COM\0\0\1\0\1"
		       "\xc0\x0c" A "\0\0\0\x3c\0\4\xc0\0\2\1" "\xc0\x0c" A "\0\0\0\x1e\0\4\xc0\0\2\2"),
		 0);
	CHECK_EQ(r.id, 0x1234);
	CHECK_EQ(r.rcode, SB_DNS_NOERROR);
	CHECK(!r.truncated);
	CHECK_EQ(r.ttl, 30);
	CHECK_EQ(r.n_hops, 0);
	REQUIRE(r.n_addrs == 2);
	CHECK_MEM(r.addrs[0], "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\2\1", 16);
	CHECK_MEM(r.addrs[1], "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\2\2", 16);
}

TEST(addresses_v6)
{
	static const char m[] = HEAD(OK, "\1", "\0", "\1") ASK_AAAA
		"\xc0\x0c\0\x1c\0\1\0\0\0\x3c\0\x10\x20\1\r\xb8" "123456789abc"
		"\0\0\x29\4\xd0\0\0\0\0\0\0";
	struct sb_dns_reply r;

	CHECK_EQ(parse(m, sizeof(m) - 1, "www.example.com", SB_DNS_AAAA, &r), 0);
	REQUIRE(r.n_addrs == 1);
	CHECK_MEM(r.addrs[0], "\x20\1\r\xb8" "123456789abc", 16);
	/* the same is no answer to another question */
	CHECK_EQ(parse(m, sizeof(m) - 1, "www.example.com", SB_DNS_A, &r), -EBADMSG);
	CHECK_EQ(parse(m, sizeof(m) - 1, "www.example.org", SB_DNS_AAAA, &r), -EBADMSG);
	CHECK_EQ(parse(m, sizeof(m) - 1, "example.com", SB_DNS_AAAA, &r), -EBADMSG);
}

TEST(aliases)
{
	struct sb_dns_reply r;

	/* www -> CDN.example.com -> e.net, in the wrong order, with strangers among them */
	CHECK_EQ(PARSE(HEAD(OK, "\5", "\0", "\0") ASK_A
		       "\1e\3net\0" A "\0\0\0\x3c\0\4\xc0\0\2\1"
		       "\3CDN\xc0\x10" CNAME "\0\0\0\x0a\0\7\1E\3net\0"
		       "\xc0\x0c" CNAME "\0\0\0\x14\0\6\3CDN\xc0\x10"
		       "\4evil\3com\0" A "\0\0\0\1\0\4\x0a\0\0\1"
		       "\xc0\x10" A "\0\0\0\1\0\4\x0a\0\0\2"), 0);
	CHECK_EQ(r.ttl, 10);
	REQUIRE(r.n_hops == 2 && r.n_addrs == 1);
	CHECK_STR(r.hops[0], "cdn.example.com");
	CHECK_STR(r.hops[1], "e.net");
	CHECK_MEM(r.addrs[0] + 12, "\xc0\0\2\1", 4);
	/* addresses beside an alias are not the alias's */
	CHECK_EQ(PARSE(HEAD(OK, "\2", "\0", "\0") ASK_A
		       "\xc0\x0c" A "\0\0\0\x3c\0\4\xc0\0\2\1"
		       "\xc0\x0c" CNAME "\0\0\0\x0a\0\7\1E\3net\0"), 0);
	CHECK_EQ(r.n_hops, 1);
	CHECK_EQ(r.n_addrs, 0);
}

TEST(negative)
{
	struct sb_dns_reply r;

	CHECK_EQ(PARSE(HEAD("\x81\x83", "\0", "\1", "\0") ASK_A SOA), 0);
	CHECK_EQ(r.rcode, SB_DNS_NXDOMAIN);
	CHECK_EQ(r.ttl, 30);
	CHECK_EQ(PARSE(HEAD(OK, "\0", "\0", "\0") ASK_A), 0);
	CHECK_EQ(r.rcode, SB_DNS_NOERROR);
	CHECK_EQ(r.ttl, 0);
	CHECK_EQ(r.n_addrs, 0);
	/* an alias that leads nowhere */
	CHECK_EQ(PARSE(HEAD("\x81\x83", "\1", "\1", "\0") ASK_A
		       "\xc0\x0c" CNAME "\0\0\0\x14\0\4\1x\xc0\x10" SOA), 0);
	CHECK_EQ(r.rcode, SB_DNS_NXDOMAIN);
	CHECK_EQ(r.n_hops, 1);
	CHECK_EQ(r.ttl, 20);
	/* the zone's servers before it */
	CHECK_EQ(PARSE(HEAD("\x81\x83", "\0", "\2", "\0") ASK_A
		       "\xc0\x10\0\2\0\1\0\0\2\x58\0\4\1n\xc0\x10" SOA), 0);
	CHECK_EQ(r.ttl, 30);
	/* no addresses out of a failure */
	CHECK_EQ(PARSE(HEAD("\x81\x82", "\1", "\0", "\0") ASK_A "\xc0\x0c" A
		       "\0\0\0\x3c\0\4\xc0\0\2\1"), 0);
	CHECK_EQ(r.rcode, SB_DNS_SERVFAIL);
	CHECK_EQ(r.n_addrs, 0);
	/* the upper bits of the code: BADVERS */
	CHECK_EQ(PARSE(HEAD(OK, "\0", "\0", "\1") ASK_A "\0\0\x29\4\xd0\1\0\0\0\0\0"), 0);
	CHECK_EQ(r.rcode, SB_DNS_SERVFAIL);
	/* a TTL with its highest bit set is 0 (RFC 2181 8) */
	CHECK_EQ(PARSE(HEAD(OK, "\1", "\0", "\0") ASK_A "\xc0\x0c" A
		       "\x80\0\0\x3c\0\4\xc0\0\2\1"), 0);
	CHECK_EQ(r.ttl, 0);
}

TEST(truncated)
{
	struct sb_dns_reply r;

	CHECK_EQ(PARSE(HEAD("\x83\x80", "\1", "\0", "\0") ASK_A "\xc0\x0c" A "\0\0"), 0);
	CHECK(r.truncated);
	CHECK_EQ(r.n_addrs, 0);
}

struct bad {
	const char *what;
	const char *p;
	size_t len;
};
#define BAD(what, lit) { what, lit, sizeof(lit) - 1 }
static const struct bad bad_replies[] = {
	BAD("nothing", ""),
	BAD("half a header", "\x12\x34\x81\x80\0\1"),
	BAD("a query", HEAD("\1\0", "\0", "\0", "\0") ASK_A),
	BAD("another opcode", HEAD("\x91\x80", "\0", "\0", "\0") ASK_A),
	BAD("no question", "\x12\x34\x81\x80\0\0\0\0\0\0\0\0"),
	BAD("two questions", "\x12\x34\x81\x80\0\2\0\0\0\0\0\0" ASK_A ASK_A),
	BAD("question for another type", HEAD(OK, "\0", "\0", "\0") WWW "\0\x10\0\1"),
	BAD("question of another class", HEAD(OK, "\0", "\0", "\0") WWW "\0\1\0\3"),
	BAD("question for another name", HEAD(OK, "\0", "\0", "\0") "\3www\7exbmple\3com\0\0\1\0\1"),
	BAD("the name with a dot in a label",
	    HEAD(OK, "\0", "\0", "\0") "\x0bwww.example\3com\0\0\1\0\1"),
	BAD("bytes behind", HEAD(OK, "\0", "\0", "\0") ASK_A "x"),
	BAD("record missing", HEAD(OK, "\1", "\0", "\0") ASK_A),
	BAD("record cut", HEAD(OK, "\1", "\0", "\0") ASK_A "\xc0\x0c" A "\0\0\0\x3c\0\4\xc0\0\2"),
	BAD("address of 3 bytes", HEAD(OK, "\1", "\0", "\0") ASK_A "\xc0\x0c" A
	    "\0\0\0\x3c\0\3\xc0\0\2"),
	BAD("address of 5 bytes", HEAD(OK, "\1", "\0", "\0") ASK_A "\xc0\x0c" A
	    "\0\0\0\x3c\0\5\xc0\0\2\1\1"),
	BAD("pointer to itself", HEAD(OK, "\1", "\0", "\0") ASK_A "\xc0\x21" A
	    "\0\0\0\x3c\0\4\xc0\0\2\1"),
	BAD("pointer forward", HEAD(OK, "\1", "\0", "\0") ASK_A "\xc0\x2d" A
	    "\0\0\0\x3c\0\4\1a\0\1"),
	BAD("pointer into the header", HEAD(OK, "\1", "\0", "\0") ASK_A "\xc0\x04" A
	    "\0\0\0\x3c\0\4\xc0\0\2\1"),
	BAD("label and pointer in a circle", HEAD(OK, "\1", "\0", "\0") ASK_A "\1a\xc0\x21" A
	    "\0\0\0\x3c\0\4\xc0\0\2\1"),
	BAD("half a pointer", HEAD(OK, "\1", "\0", "\0") ASK_A "\xc0"),
	BAD("alias to itself", HEAD(OK, "\1", "\0", "\0") ASK_A "\xc0\x0c" CNAME
	    "\0\0\0\x3c\0\2\xc0\x0c"),
	BAD("aliases in a circle", HEAD(OK, "\2", "\0", "\0") ASK_A
	    "\xc0\x0c" CNAME "\0\0\0\x3c\0\4\1a\xc0\x10" "\1a\xc0\x10" CNAME "\0\0\0\x3c\0\2\xc0\x0c"),
	BAD("a circle off the start", HEAD(OK, "\3", "\0", "\0") ASK_A
	    "\xc0\x0c" CNAME "\0\0\0\x3c\0\4\1a\xc0\x10" "\1a\xc0\x10" CNAME "\0\0\0\x3c\0\4\1b\xc0\x10"
	    "\1b\xc0\x10" CNAME "\0\0\0\x3c\0\4\1a\xc0\x10"),
	BAD("two aliases", HEAD(OK, "\2", "\0", "\0") ASK_A
	    "\xc0\x0c" CNAME "\0\0\0\x3c\0\4\1a\xc0\x10" "\xc0\x0c" CNAME "\0\0\0\x3c\0\4\1b\xc0\x10"),
	BAD("alias to the root", HEAD(OK, "\1", "\0", "\0") ASK_A "\xc0\x0c" CNAME
	    "\0\0\0\x3c\0\1\0"),
	BAD("alias that is not text", HEAD(OK, "\1", "\0", "\0") ASK_A "\xc0\x0c" CNAME
	    "\0\0\0\x3c\0\5\2a.\xc0\x10"),
	BAD("alias longer than its record", HEAD(OK, "\1", "\0", "\0") ASK_A "\xc0\x0c" CNAME
	    "\0\0\0\x3c\0\3\1a\xc0\x10"),
	BAD("alias shorter than its record", HEAD(OK, "\1", "\0", "\0") ASK_A "\xc0\x0c" CNAME
	    "\0\0\0\x3c\0\5\1a\xc0\x10\0"),
	BAD("OPT as an answer", HEAD(OK, "\1", "\0", "\0") ASK_A "\0\0\x29\4\xd0\0\0\0\0\0\0"),
	BAD("two OPT", HEAD(OK, "\0", "\0", "\2") ASK_A "\0\0\x29\4\xd0\0\0\0\0\0\0"
	    "\0\0\x29\4\xd0\0\0\0\0\0\0"),
	BAD("129 records", "\x12\x34\x81\x80\0\1\0\x81\0\0\0\0" ASK_A),
	BAD("65535 records each", "\x12\x34\x81\x80\0\1\xff\xff\xff\xff\xff\xff" ASK_A),
};

TEST(malformed)
{
	for (size_t i = 0; i < SB_ARRAY_LEN(bad_replies); i++) {
		struct sb_dns_reply r = { .id = 7 };
		int k = parse(bad_replies[i].p, bad_replies[i].len, "www.example.com", SB_DNS_A, &r);

		if (k != -EBADMSG || r.id != 7)
			t_fail(__FILE__, __LINE__, "%s: %d", bad_replies[i].what, k);
	}
}

/* www.example.com -> a -> b -> ... : 16 aliases are followed, 17 are too many */
TEST(long_chain)
{
	for (unsigned int n = 16; n <= 17; n++) {
		uint8_t m[1024];
		size_t len = 0;
		struct sb_dns_reply r;

		memcpy(m, HEAD(OK, "\0", "\0", "\0") ASK_A, 12 + 21);
		m[7] = (uint8_t)n;
		len = 12 + 21;
		for (unsigned int i = 0; i < n; i++) {
			if (i == 0) {
				memcpy(m + len, "\xc0\x0c", 2);
				len += 2;
			} else {
				memcpy(m + len, "\1?\xc0\x10", 4);
				m[len + 1] = (uint8_t)('a' + i - 1);
				len += 4;
			}
			memcpy(m + len, CNAME "\0\0\0\x3c\0\4\1?\xc0\x10", 14);
			m[len + 11] = (uint8_t)('a' + i);
			len += 14;
		}
		CHECK_EQ(parse((char *)m, len, "www.example.com", SB_DNS_A, &r),
			 n == 16 ? 0 : -EBADMSG);
		if (n == 16)
			CHECK_EQ(r.n_hops, 16);
	}
}

TEST(check)
{
	CHECK_EQ(CHECKED(HEAD(OK, "\1", "\0", "\0") WWW "\0\x10\0\1"
			 "\xc0\x0c\0\x10\0\1\0\0\0\x3c\0\6\2hi\2yo", SB_DNS_TXT), 0);
	CHECK_EQ(CHECKED(HEAD(OK, "\2", "\0", "\1") WWW "\0\x0f\0\1"
			 "\xc0\x0c" CNAME "\0\0\0\x14\0\4\1x\xc0\x10"
			 "\1x\xc0\x10\0\x0f\0\1\0\0\0\x3c\0\6\0\x0a\1m\xc0\x10"
			 "\1m\xc0\x10" A "\0\0\0\x3c\0\4\xc0\0\2\1", SB_DNS_MX), 0);
	CHECK_EQ(CHECKED(HEAD(OK, "\1", "\0", "\0") WWW "\0\x21\0\1"
			 "\xc0\x0c\0\x21\0\1\0\0\0\x3c\0\x08\0\0\0\0\0\x50\xc0\x0c", SB_DNS_SRV), 0);
	CHECK_EQ(CHECKED(HEAD(OK, "\1", "\0", "\0") WWW "\0\x41\0\1"
			 "\xc0\x0c\0\x41\0\1\0\0\0\x3c\0\x0a\0\1\0\0\1\0\3\2h2", SB_DNS_HTTPS), 0);
	CHECK_EQ(CHECKED(HEAD("\x81\x83", "\0", "\1", "\0") WWW "\0\x10\0\1" SOA, SB_DNS_TXT), 0);
}

struct bad_check {
	const char *what;
	const char *p;
	size_t len;
	uint16_t type;
};
#define BADC(what, lit, type) { what, lit, sizeof(lit) - 1, type }
static const struct bad_check bad_checks[] = {
	BADC("owner off the chain", HEAD(OK, "\1", "\0", "\0") WWW "\0\x10\0\1"
	     "\xc0\x10\0\x10\0\1\0\0\0\x3c\0\3\2hi", SB_DNS_TXT),
	BADC("another type", HEAD(OK, "\1", "\0", "\0") WWW "\0\x10\0\1"
	     "\xc0\x0c" A "\0\0\0\x3c\0\4\xc0\0\2\1", SB_DNS_TXT),
	BADC("another class", HEAD(OK, "\1", "\0", "\0") WWW "\0\x10\0\1"
	     "\xc0\x0c\0\x10\0\3\0\0\0\x3c\0\3\2hi", SB_DNS_TXT),
	BADC("text beyond its record", HEAD(OK, "\1", "\0", "\0") WWW "\0\x10\0\1"
	     "\xc0\x0c\0\x10\0\1\0\0\0\x3c\0\3\3hi", SB_DNS_TXT),
	BADC("empty text", HEAD(OK, "\1", "\0", "\0") WWW "\0\x10\0\1"
	     "\xc0\x0c\0\x10\0\1\0\0\0\x3c\0\0", SB_DNS_TXT),
	BADC("MX without a name", HEAD(OK, "\1", "\0", "\0") WWW "\0\x0f\0\1"
	     "\xc0\x0c\0\x0f\0\1\0\0\0\x3c\0\2\0\x0a", SB_DNS_MX),
	BADC("SRV cut", HEAD(OK, "\1", "\0", "\0") WWW "\0\x21\0\1"
	     "\xc0\x0c\0\x21\0\1\0\0\0\x3c\0\4\0\0\0\0", SB_DNS_SRV),
	BADC("HTTPS keys out of order", HEAD(OK, "\1", "\0", "\0") WWW "\0\x41\0\1"
	     "\xc0\x0c\0\x41\0\1\0\0\0\x3c\0\x0b\0\1\0\0\2\0\0\0\1\0\0", SB_DNS_HTTPS),
	BADC("HTTPS value cut", HEAD(OK, "\1", "\0", "\0") WWW "\0\x41\0\1"
	     "\xc0\x0c\0\x41\0\1\0\0\0\x3c\0\x08\0\1\0\0\1\0\3h", SB_DNS_HTTPS),
	BADC("NAPTR cut", HEAD(OK, "\1", "\0", "\0") WWW "\0\x23\0\1"
	     "\xc0\x0c\0\x23\0\1\0\0\0\x3c\0\x08\0\1\0\1\1S\0\0", SB_DNS_NAPTR),
	BADC("CAA with a tag too long", HEAD(OK, "\1", "\0", "\0") WWW "\1\1\0\1"
	     "\xc0\x0c\1\1\0\1\0\0\0\x3c\0\4\0\3ab", SB_DNS_CAA),
	BADC("alias of somebody else", HEAD(OK, "\1", "\0", "\0") WWW "\0\x10\0\1"
	     "\xc0\x10" CNAME "\0\0\0\x14\0\4\1x\xc0\x10", SB_DNS_TXT),
};

TEST(check_malformed)
{
	for (size_t i = 0; i < SB_ARRAY_LEN(bad_checks); i++) {
		const struct bad_check *b = &bad_checks[i];
		int k = parse(b->p, b->len, "www.example.com", b->type, NULL);

		if (k != -EBADMSG)
			t_fail(__FILE__, __LINE__, "%s: %d", b->what, k);
	}
}

/* --- the data of every kind that is looked into --- */

struct data {
	uint16_t type;
	bool ok;
	const char *p;
	size_t len;
};
#define GOOD(type, lit) { type, true, lit, sizeof(lit) - 1 }
#define WRONG(type, lit) { type, false, lit, sizeof(lit) - 1 }
#define SOA_REST "\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\5"
static const struct data data_cases[] = {
	WRONG(SB_DNS_A, ""), WRONG(SB_DNS_AAAA, "123456789abcdef"), GOOD(SB_DNS_AAAA, "123456789abcdef0"),
	WRONG(SB_DNS_AAAA, "1234"),
	GOOD(SB_DNS_NS, "\1a\xc0\x10"), WRONG(SB_DNS_NS, "\1a\xc0\x10\0"), WRONG(SB_DNS_NS, "\1a"),
	WRONG(SB_DNS_NS, ""), GOOD(SB_DNS_PTR, "\1a\1b\0"), WRONG(SB_DNS_PTR, "\1a\1b"),
	GOOD(SB_DNS_SOA, "\xc0\x10\xc0\x10" SOA_REST), WRONG(SB_DNS_SOA, "\xc0\x10" SOA_REST),
	WRONG(SB_DNS_SOA, "\xc0\x10\xc0\x10" SOA_REST "\0"), WRONG(SB_DNS_SOA, "\xc0\x10\xc0\x10"),
	WRONG(SB_DNS_SOA, "\xc0\x10\xc0\x10" "\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0"),
	WRONG(SB_DNS_SOA, "\xc0\x10"), WRONG(SB_DNS_SOA, "\0"), WRONG(SB_DNS_SOA, ""),
	GOOD(SB_DNS_MX, "\0\x0a\0"), GOOD(SB_DNS_MX, "\0\x0a\xc0\x10"), WRONG(SB_DNS_MX, "\0\x0a"),
	WRONG(SB_DNS_MX, "\0\x0a\0\0"), WRONG(SB_DNS_MX, "\0\x0a\1a"), WRONG(SB_DNS_MX, "\0"),
	GOOD(SB_DNS_SRV, "\0\1\0\2\0\x50\0"), GOOD(SB_DNS_SRV, "\0\1\0\2\0\x50\1a\xc0\x10"),
	WRONG(SB_DNS_SRV, "\0\1\0\2\0\x50"), WRONG(SB_DNS_SRV, "\0\1\0\2\0\x50\0\0"),
	WRONG(SB_DNS_SRV, "\0\1\0\2\0\x50\1a"), WRONG(SB_DNS_SRV, "\0\1\0\2\0"),
	GOOD(SB_DNS_TXT, "\0"), GOOD(SB_DNS_TXT, "\1a\0\2bc"), WRONG(SB_DNS_TXT, "\2a"),
	WRONG(SB_DNS_TXT, "\1a\1"), WRONG(SB_DNS_TXT, "\1a\2b"),
	GOOD(SB_DNS_NAPTR, "\0\1\0\2\1S\7SIP+D2U\2!!\xc0\x10"), GOOD(SB_DNS_NAPTR, "\0\1\0\2\0\0\0\0"),
	WRONG(SB_DNS_NAPTR, "\0\1\0\2\0\0\0"), WRONG(SB_DNS_NAPTR, "\0\1\0\2\0\0"),
	WRONG(SB_DNS_NAPTR, "\0\1\0\2\0"), WRONG(SB_DNS_NAPTR, "\0\1\0\2"), WRONG(SB_DNS_NAPTR, "\0\1\0"),
	WRONG(SB_DNS_NAPTR, "\0\1\0\2\0\0\0\0\0"), WRONG(SB_DNS_NAPTR, "\0\1\0\2\4S\0\0\0"),
	WRONG(SB_DNS_NAPTR, "\0\1\0\2\1S\0\2!\0"), WRONG(SB_DNS_NAPTR, "\0\1\0\2\0\0\0\1a"),
	GOOD(SB_DNS_SVCB, "\0\0\0"), GOOD(SB_DNS_HTTPS, "\0\1\1a\0"),
	GOOD(SB_DNS_HTTPS, "\0\1\0" "\0\0\0\2\0\1" "\0\1\0\3\2h2" "\0\2\0\0" "\0\4\0\4\1\2\3\4"),
	GOOD(SB_DNS_HTTPS, "\0\1\0" "\0\0\0\0"), WRONG(SB_DNS_HTTPS, "\0\1"), WRONG(SB_DNS_HTTPS, "\0"),
	WRONG(SB_DNS_HTTPS, "\0\1\1a"), WRONG(SB_DNS_HTTPS, "\0\1\xc0\x10"),
	WRONG(SB_DNS_HTTPS, "\0\1\0" "\0\2\0\0" "\0\2\0\0"),
	WRONG(SB_DNS_HTTPS, "\0\1\0" "\0\2\0\0" "\0\1\0\0"),
	WRONG(SB_DNS_HTTPS, "\0\1\0" "\0\1\0\3h2"), WRONG(SB_DNS_HTTPS, "\0\1\0" "\0\1\0"),
	WRONG(SB_DNS_HTTPS, "\0\1\0" "\0\1\0\1xy"), WRONG(SB_DNS_HTTPS, "\0\1\0" "\0\1\0\1x\0\2\0\1"),
	GOOD(SB_DNS_CAA, "\0\5issueca"), GOOD(SB_DNS_CAA, "\x80\1a"), WRONG(SB_DNS_CAA, "\0\2a"),
	WRONG(SB_DNS_CAA, "\0\0issue"), WRONG(SB_DNS_CAA, "\0\1"), WRONG(SB_DNS_CAA, "\1"),
	GOOD(99, ""), GOOD(99, "any\0thing"),
};

TEST(data)
{
	for (size_t i = 0; i < SB_ARRAY_LEN(data_cases); i++) {
		const struct data *d = &data_cases[i];
		uint8_t m[256] = HEAD(OK, "\1", "\0", "\0") WWW;
		size_t at = 12 + sizeof(WWW) - 1;
		int want = d->ok ? 0 : -EBADMSG;
		int k;

		memcpy(m + at, "\0?\0\1\xc0\x0c\0?\0\1\0\0\0\x3c\0", 15);
		m[at] = m[at + 6] = (uint8_t)(d->type >> 8);
		m[at + 1] = m[at + 7] = (uint8_t)d->type;
		m[at + 15] = (uint8_t)d->len;
		memcpy(m + at + 16, d->p, d->len);
		at += 16 + d->len;
		k = parse((char *)m, at, "www.example.com", d->type, NULL);
		if (k != want)
			t_fail(__FILE__, __LINE__, "%zu of type %u: %d", i, d->type, k);
		m[at] = 0; /* a byte that belongs to nobody, which the record must not eat */
		if (parse((char *)m, at + 1, "www.example.com", d->type, NULL) != -EBADMSG)
			t_fail(__FILE__, __LINE__, "%zu of type %u: a byte behind", i, d->type);
		if (d->len > 0 &&
		    parse((char *)m, at - 1, "www.example.com", d->type, NULL) != -EBADMSG)
			t_fail(__FILE__, __LINE__, "%zu of type %u: a byte less", i, d->type);
	}
}

TEST(no_prefix_is_a_reply)
{
	static const char m[] = HEAD(OK, "\2", "\1", "\1") ASK_A
		"\xc0\x0c" CNAME "\0\0\0\x14\0\6\3cdn\xc0\x10"
		"\3cdn\xc0\x10" A "\0\0\0\x3c\0\4\xc0\0\2\1" SOA "\0\0\x29\4\xd0\0\0\0\0\0\0";
	struct sb_dns_reply r;

	for (size_t n = 0; n < sizeof(m) - 1; n++) {
		CHECK_EQ(parse(m, n, "www.example.com", SB_DNS_A, &r), -EBADMSG);
		CHECK_EQ(parse(m, n, "www.example.com", SB_DNS_A, NULL), -EBADMSG);
	}
	CHECK_EQ(parse(m, sizeof(m) - 1, "www.example.com", SB_DNS_A, &r), 0);
	CHECK_EQ(parse(m, sizeof(m) - 1, "www.example.com", SB_DNS_A, NULL), 0);
	/* a question for an address gives no other type */
	CHECK_EQ(parse(m, sizeof(m) - 1, "www.example.com", SB_DNS_TXT, &r), -EBADMSG);
}

TEST(other_sections)
{
	struct sb_dns_reply r;

	/* neither alias nor address counts outside the answer section */
	CHECK_EQ(PARSE(HEAD(OK, "\0", "\1", "\1") ASK_A
		       "\xc0\x0c" CNAME "\0\0\0\x14\0\4\1x\xc0\x10"
		       "\xc0\x0c" A "\0\0\0\x3c\0\4\xc0\0\2\1"), 0);
	CHECK_EQ(r.n_hops, 0);
	CHECK_EQ(r.n_addrs, 0);
	CHECK_EQ(PARSE(HEAD(OK, "\0", "\1", "\0") ASK_A "\xc0\x0c" A "\0\0\0\x3c\0\4\xc0\0\2\1"), 0);
	CHECK_EQ(r.n_addrs, 0);
	/* of another class */
	CHECK_EQ(PARSE(HEAD(OK, "\1", "\0", "\0") ASK_A "\xc0\x0c\0\1\0\3\0\0\0\x3c\0\4\xc0\0\2\1"), 0);
	CHECK_EQ(r.n_addrs, 0);
	/* the wrong kind of address */
	CHECK_EQ(PARSE(HEAD(OK, "\1", "\0", "\0") ASK_A "\xc0\x0c\0\x1c\0\1\0\0\0\x3c\0\x10"
		       "123456789abcdef0"), 0);
	CHECK_EQ(r.n_addrs, 0);
	CHECK_EQ(PARSE(HEAD(OK, "\0", "\1", "\0") ASK_A "\0\0\x29\4\xd0\0\0\0\0\0\0"), -EBADMSG);
	CHECK_EQ(PARSE(HEAD(OK, "\1", "\0", "\0") ASK_A "\xc0\x0c" CNAME
		       "\0\0\0\x3c\0\x05\2AZ\xc0\x10"), 0);
	CHECK_STR(r.hops[0], "az.example.com");
	CHECK_EQ(PARSE(HEAD(OK, "\1", "\0", "\0") ASK_A "\xc0\x0c" CNAME
		       "\0\0\0\x3c\0\3\1a\0"), 0);
	CHECK_STR(r.hops[0], "a");
	CHECK_EQ(r.ttl, 0);
	CHECK_EQ(PARSE(HEAD(OK, "\1", "\0", "\0") ASK_A "\xc0\x0c" A
		       "\x7f\xff\xff\xff\0\4\xc0\0\2\1"), 0);
	CHECK_EQ(r.ttl, 0x7fffffff);
}

/* How long absence holds is said by the zone of the name. */
TEST(negative_zone)
{
	static const struct {
		const char *owner;
		size_t len;
		uint32_t ttl;
	} cases[] = {
		{ "\xc0\x0c", 2, 30 }, { "\xc0\x10", 2, 30 }, { "\xc0\x18", 2, 30 }, { "\0", 1, 30 },
		{ "\4mple\3com", 10, 0 }, { "\7example\3org", 13, 0 }, { "\1a\xc0\x0c", 4, 0 },
		{ "\3foo\7example\3com", 17, 0 }, { "\3w.w\xc0\x10", 6, 0 }, { "\2xw\xc0\x10", 5, 0 },
		{ "\2ww\xc0\x10", 5, 0 },
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(cases); i++) {
		uint8_t m[256] = HEAD("\x81\x83", "\0", "\1", "\0") ASK_A;
		size_t at = 12 + sizeof(ASK_A) - 1;
		struct sb_dns_reply r = { 0 };

		memcpy(m + at, cases[i].owner, cases[i].len);
		at += cases[i].len;
		memcpy(m + at, "\0\6\0\1\0\0\2\x58\0\x16\0\0\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\x1e",
		       32);
		CHECK_EQ(parse((char *)m, at + 32, "www.example.com", SB_DNS_A, &r), 0);
		if (r.ttl != cases[i].ttl)
			t_fail(__FILE__, __LINE__, "zone %zu: %u", i, r.ttl);
	}
}

TEST(many_records)
{
	static uint8_t m[4096] = "\x12\x34\x81\x80\0\1\0\x80\0\0\0\0" ASK_A;
	size_t at = 12 + sizeof(ASK_A) - 1;
	struct sb_dns_reply r;

	for (unsigned int i = 0; i < 128; i++, at += 16) {
		memcpy(m + at, "\xc0\x0c" A "\0\0\0\x3c\0\4\xc0\0\2", 15);
		m[at + 15] = (uint8_t)i;
	}
	CHECK_EQ(parse((char *)m, at, "www.example.com", SB_DNS_A, &r), 0);
	CHECK_EQ(r.n_addrs, 64);
	CHECK_EQ(r.addrs[63][15], 63);
}

TEST(check_chain)
{
	/* a circle of aliases */
	CHECK_EQ(CHECKED(HEAD(OK, "\1", "\0", "\0") WWW "\0\x10\0\1" "\xc0\x0c" CNAME
			 "\0\0\0\x14\0\2\xc0\x0c", SB_DNS_TXT), -EBADMSG);
	/* the alias itself was asked for */
	CHECK_EQ(CHECKED(HEAD(OK, "\1", "\0", "\0") WWW "\0\5\0\1" "\xc0\x0c" CNAME
			 "\0\0\0\x14\0\4\1x\xc0\x10", SB_DNS_CNAME), 0);
	/* a DNAME above the name, the alias made of it, and one of somebody else */
	CHECK_EQ(CHECKED(HEAD(OK, "\3", "\0", "\0") WWW "\0\x10\0\1"
			 "\xc0\x10\0\x27\0\1\0\0\0\x14\0\5\3net\0"
			 "\xc0\x0c" CNAME "\0\0\0\x14\0\x09\3www\3net\0"
			 "\3www\3net\0\0\x10\0\1\0\0\0\x3c\0\3\2hi", SB_DNS_TXT), 0);
	CHECK_EQ(CHECKED(HEAD(OK, "\1", "\0", "\0") WWW "\0\x10\0\1"
			 "\1x\xc0\x10\0\x27\0\1\0\0\0\x14\0\5\3net\0", SB_DNS_TXT), -EBADMSG);
}
