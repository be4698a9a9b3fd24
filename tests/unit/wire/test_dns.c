/* Messages are spelled out after RFC 1035 4, RFC 6891 6.1 and RFC 8914 2. */
#include "wire/dns.h"

#include <stdlib.h>

#include "t.h"

#define HEAD(flags, qd, an, ns, ar) "\x12\x34" flags "\0" qd "\0" an "\0" ns "\0" ar
#define EXAMPLE "\7example\3com\0"
#define IN_A "\0\1\0\1"
#define OPT "\0\0\x29\x10\0\0\0\0\0\0\0"

/* Exactly as many bytes as there are, so that the sanitizer sees a read behind them. */
static uint8_t *copy(const char *p, size_t len)
{
	uint8_t *c = calloc(1, len + (len == 0));

	if (!c)
		abort();
	memcpy(c, p, len);
	return c;
}

static int query(const char *p, size_t len, struct sb_dns_query *q, enum sb_dns_rcode *rcode)
{
	sb_autofree uint8_t *c = copy(p, len);

	return sb_dns_query_parse(c, len, q, rcode);
}
#define QUERY(lit) query(lit, sizeof(lit) - 1, &q, &rcode)

TEST(query_plain)
{
	struct sb_dns_query q;
	enum sb_dns_rcode rcode = 99;

	CHECK_EQ(QUERY(HEAD("\1\0", "\1", "\0", "\0", "\0") "\7eXample\3com\0" IN_A), 0);
	CHECK_EQ(rcode, 99);
	CHECK_EQ(q.id, 0x1234);
	CHECK(q.rd && !q.cd && !q.edns);
	CHECK_EQ(q.type, SB_DNS_A);
	CHECK_EQ(q.klass, 1);
	CHECK_EQ(q.udp_size, 512);
	CHECK_STR(q.name, "eXample.com");
	CHECK_EQ(q.name_len, 13);
	CHECK_MEM(q.wire_name, "\7eXample\3com", 13);
}

TEST(query_edns)
{
	struct sb_dns_query q;
	enum sb_dns_rcode rcode;

	/* AD and CD set, payload 4096, a cookie of eight bytes */
	CHECK_EQ(QUERY(HEAD("\1\x30", "\1", "\0", "\0", "\1") EXAMPLE "\0\x1c\0\1"
		       "\0\0\x29\x10\0\0\0\x80\0\0\x0c\0\x0a\0\x08" "abcdefgh"), 0);
	CHECK(q.edns && q.cd);
	CHECK_EQ(q.udp_size, 4096);
	CHECK_EQ(q.type, SB_DNS_AAAA);
	/* a size below 512 is 512 (RFC 6891 6.2.3) */
	CHECK_EQ(QUERY(HEAD("\1\0", "\1", "\0", "\0", "\1") EXAMPLE IN_A
		       "\0\0\x29\0\1\0\0\0\0\0\0"), 0);
	CHECK_EQ(q.udp_size, 512);
}

TEST(query_options)
{
	struct sb_dns_query q;
	enum sb_dns_rcode rcode;

	/* two, the last of them empty and at the very end */
	CHECK_EQ(QUERY(HEAD("\1\0", "\1", "\0", "\0", "\1") EXAMPLE IN_A
		       "\0\0\x29\x10\0\0\0\0\0\0\x0a\0\x0a\0\2xy\0\x0c\0\0"), 0);
	CHECK(q.edns);
}

TEST(query_root)
{
	struct sb_dns_query q;
	enum sb_dns_rcode rcode;

	CHECK_EQ(QUERY(HEAD("\0\0", "\1", "\0", "\0", "\0") "\0\0\2\0\1"), 0);
	CHECK_STR(q.name, "");
	CHECK_EQ(q.name_len, 1);
	CHECK(!q.rd);
}

TEST(query_without_answer)
{
	struct sb_dns_query q = { .id = 7 };
	enum sb_dns_rcode rcode = 99;

	CHECK_EQ(QUERY(""), -ENODATA);
	CHECK_EQ(QUERY("\x12\x34\1\0\0\1\0\0\0\0\0"), -ENODATA);
	CHECK_EQ(QUERY(HEAD("\x81\0", "\1", "\0", "\0", "\0") EXAMPLE IN_A), -ENODATA);
	CHECK_EQ(q.id, 7);
	CHECK_EQ(rcode, 99);
}

struct bad {
	const char *what;
	const char *p;
	size_t len;
	enum sb_dns_rcode rcode;
};
#define BAD(what, lit, rcode) { what, lit, sizeof(lit) - 1, rcode }
#define L63 "\x3f" "123456789012345678901234567890123456789012345678901234567890123"
#define L61 "\x3d" "1234567890123456789012345678901234567890123456789012345678901"
#define L62 "\x3e" "12345678901234567890123456789012345678901234567890123456789012"

static const struct bad bad_queries[] = {
	BAD("no question", HEAD("\1\0", "\0", "\0", "\0", "\0"), SB_DNS_FORMERR),
	BAD("two questions", HEAD("\1\0", "\2", "\0", "\0", "\0") EXAMPLE IN_A EXAMPLE IN_A,
	    SB_DNS_FORMERR),
	BAD("256 questions", "\x12\x34\1\0\1\0\0\0\0\0\0\0" EXAMPLE IN_A, SB_DNS_FORMERR),
	BAD("second question hidden behind", HEAD("\1\0", "\1", "\0", "\0", "\0") EXAMPLE IN_A
	    EXAMPLE IN_A, SB_DNS_FORMERR),
	BAD("one byte behind", HEAD("\1\0", "\1", "\0", "\0", "\0") EXAMPLE IN_A "x",
	    SB_DNS_FORMERR),
	BAD("an answer", HEAD("\1\0", "\1", "\1", "\0", "\0") EXAMPLE IN_A
	    "\xc0\x0c" IN_A "\0\0\0\0\0\4\1\2\3\4", SB_DNS_FORMERR),
	BAD("an authority", HEAD("\1\0", "\1", "\0", "\1", "\0") EXAMPLE IN_A OPT, SB_DNS_FORMERR),
	BAD("additional is no OPT", HEAD("\1\0", "\1", "\0", "\0", "\1") EXAMPLE IN_A
	    "\0" IN_A "\0\0\0\0\0\4\1\2\3\4", SB_DNS_FORMERR),
	BAD("two OPT", HEAD("\1\0", "\1", "\0", "\0", "\2") EXAMPLE IN_A OPT OPT, SB_DNS_FORMERR),
	BAD("OPT with a name", HEAD("\1\0", "\1", "\0", "\0", "\1") EXAMPLE IN_A
	    "\1a\0\0\x29\x10\0\0\0\0\0\0\0", SB_DNS_FORMERR),
	BAD("OPT beneath a name", HEAD("\1\0", "\1", "\0", "\0", "\1") EXAMPLE IN_A
	    "\1\0\x29\x10\0\0\0\0\0\0\0", SB_DNS_FORMERR),
	BAD("second option cut", HEAD("\1\0", "\1", "\0", "\0", "\1") EXAMPLE IN_A
	    "\0\0\x29\x10\0\0\0\0\0\0\x0b\0\x0a\0\2xy\0\x0a\0\2x", SB_DNS_FORMERR),
	BAD("byte behind the options", HEAD("\1\0", "\1", "\0", "\0", "\1") EXAMPLE IN_A
	    "\0\0\x29\x10\0\0\0\0\0\0\7\0\x0a\0\2xy\0", SB_DNS_FORMERR),
	BAD("OPT of version 1", HEAD("\1\0", "\1", "\0", "\0", "\1") EXAMPLE IN_A
	    "\0\0\x29\x10\0\0\1\0\0\0\0", SB_DNS_FORMERR),
	BAD("OPT longer than the message", HEAD("\1\0", "\1", "\0", "\0", "\1") EXAMPLE IN_A
	    "\0\0\x29\x10\0\0\0\0\0\0\1", SB_DNS_FORMERR),
	BAD("OPT shorter than the message", HEAD("\1\0", "\1", "\0", "\0", "\1") EXAMPLE IN_A
	    OPT "data in the slack", SB_DNS_FORMERR),
	BAD("option cut", HEAD("\1\0", "\1", "\0", "\0", "\1") EXAMPLE IN_A
	    "\0\0\x29\x10\0\0\0\0\0\0\5\0\x0a\0\2x", SB_DNS_FORMERR),
	BAD("half an option", HEAD("\1\0", "\1", "\0", "\0", "\1") EXAMPLE IN_A
	    "\0\0\x29\x10\0\0\0\0\0\0\3\0\x0a\0", SB_DNS_FORMERR),
	BAD("OPT cut", HEAD("\1\0", "\1", "\0", "\0", "\1") EXAMPLE IN_A "\0\0\x29\x10",
	    SB_DNS_FORMERR),
	BAD("pointer to itself", HEAD("\1\0", "\1", "\0", "\0", "\0") "\xc0\x0c" IN_A,
	    SB_DNS_FORMERR),
	BAD("pointer into the header", HEAD("\1\0", "\1", "\0", "\0", "\0") "\1a\xc0\x04" IN_A,
	    SB_DNS_FORMERR),
	BAD("label of type 01", HEAD("\1\0", "\1", "\0", "\0", "\0") "\x41" "a\0" IN_A,
	    SB_DNS_FORMERR),
	BAD("label of type 10", HEAD("\1\0", "\1", "\0", "\0", "\0") "\x80" "a\0" IN_A,
	    SB_DNS_FORMERR),
	BAD("name without end", HEAD("\1\0", "\1", "\0", "\0", "\0") "\7example", SB_DNS_FORMERR),
	BAD("label beyond the end", HEAD("\1\0", "\1", "\0", "\0", "\0") "\7exam", SB_DNS_FORMERR),
	BAD("no type", HEAD("\1\0", "\1", "\0", "\0", "\0") EXAMPLE "\0\1\0", SB_DNS_FORMERR),
	BAD("256 bytes of name", HEAD("\1\0", "\1", "\0", "\0", "\0") L63 L63 L63 L62 "\0" IN_A,
	    SB_DNS_FORMERR),
	BAD("a dot inside a label", HEAD("\1\0", "\1", "\0", "\0", "\0") "\x0b" "example.com\0" IN_A,
	    SB_DNS_FORMERR),
	BAD("NUL in a label", HEAD("\1\0", "\1", "\0", "\0", "\0") "\7exam\0le\3com\0" IN_A,
	    SB_DNS_FORMERR),
	BAD("space in a label", HEAD("\1\0", "\1", "\0", "\0", "\0") "\7exam le\3com\0" IN_A,
	    SB_DNS_FORMERR),
	BAD("DEL in a label", HEAD("\1\0", "\1", "\0", "\0", "\0") "\7exam\x7fle\3com\0" IN_A,
	    SB_DNS_FORMERR),
	BAD("a byte beyond ASCII", HEAD("\1\0", "\1", "\0", "\0", "\0") "\7ex\xc3\xa4mpl\3com\0" IN_A,
	    SB_DNS_FORMERR),
	BAD("truncated", HEAD("\3\0", "\1", "\0", "\0", "\0") EXAMPLE IN_A, SB_DNS_FORMERR),
	BAD("a code in a query", HEAD("\1\3", "\1", "\0", "\0", "\0") EXAMPLE IN_A, SB_DNS_FORMERR),
	BAD("opcode STATUS", HEAD("\x11\0", "\1", "\0", "\0", "\0") EXAMPLE IN_A, SB_DNS_NOTIMP),
	BAD("opcode UPDATE", HEAD("\x29\0", "\1", "\0", "\0", "\0") EXAMPLE "\0\6\0\1",
	    SB_DNS_NOTIMP),
	BAD("class CH", HEAD("\1\0", "\1", "\0", "\0", "\0") EXAMPLE "\0\x10\0\3", SB_DNS_REFUSED),
	BAD("class ANY", HEAD("\1\0", "\1", "\0", "\0", "\0") EXAMPLE "\0\1\0\xff", SB_DNS_REFUSED),
};

TEST(query_malformed)
{
	for (size_t i = 0; i < SB_ARRAY_LEN(bad_queries); i++) {
		const struct bad *b = &bad_queries[i];
		struct sb_dns_query q = { 0 };
		enum sb_dns_rcode rcode = 99;
		int r = query(b->p, b->len, &q, &rcode);

		if (r != -EBADMSG || rcode != b->rcode || q.id != 0x1234)
			t_fail(__FILE__, __LINE__, "%s: %d, code %d", b->what, r, (int)rcode);
	}
}

TEST(query_longest_name)
{
	static const char full[] = HEAD("\1\0", "\1", "\0", "\0", "\0") L63 L63 L63 L61 "\0" IN_A;
	struct sb_dns_query q;
	enum sb_dns_rcode rcode;

	CHECK_EQ(query(full, sizeof(full) - 1, &q, &rcode), 0);
	CHECK_EQ(q.name_len, 255);
	CHECK_EQ(strlen(q.name), 253);
	for (size_t cut = 12; cut < sizeof(full) - 1; cut++)
		if (query(full, cut, &q, &rcode) != -EBADMSG)
			t_fail(__FILE__, __LINE__, "%zu bytes of it are taken", cut);
}

/* --- answers --- */

static const struct sb_dns_query asked = {
	.id = 0x1234, .rd = true, .type = SB_DNS_A, .klass = 1, .udp_size = 512,
	.name = "eXample.com", .name_len = 13, .wire_name = "\7eXample\3com",
};

TEST(answer)
{
	static const char want[] = "\x12\x34\x81\x80\0\1\0\1\0\0\0\0" "\7eXample\3com\0" IN_A
		"\xc0\x0c" IN_A "\0\0\0\x3c\0\4\xc6\x12\0\x10";
	struct sb_dns_answer a = { .ttl = 60, .addr = (const uint8_t *)"\xc6\x12\0\x10",
				   .ede = SB_EDE_NONE };
	uint8_t out[512];

	CHECK_EQ(sb_dns_answer_write(&asked, &a, out, sizeof(out)), sizeof(want) - 1);
	CHECK_MEM(out, want, sizeof(want) - 1);
	CHECK_EQ(sb_dns_answer_write(&asked, &a, out, sizeof(want) - 1), sizeof(want) - 1);
	CHECK_EQ(sb_dns_answer_write(&asked, &a, out, sizeof(want) - 2), 0);
	/* without EDNS no explanation */
	a.ede = SB_EDE_BLOCKED;
	a.ede_text = "no";
	CHECK_EQ(sb_dns_answer_write(&asked, &a, out, sizeof(out)), sizeof(want) - 1);
	CHECK_MEM(out, want, sizeof(want) - 1);
}

TEST(answer_v6)
{
	static const char want[] = "\x12\x34\x80\x90\0\1\0\1\0\0\0\1" "\7eXample\3com\0" "\0\x1c\0\1"
		"\xc0\x0c\0\x1c\0\1\0\0\1\x2c\0\x10\xfdsendbox12345678" "\0\0\x29\4\xd0\0\0\0\0\0\0";
	struct sb_dns_query q = asked;
	struct sb_dns_answer a = { .ttl = 300, .addr = (const uint8_t *)"\xfdsendbox12345678",
				   .ede = SB_EDE_NONE };
	uint8_t out[512];

	q.rd = false;
	q.cd = true;
	q.edns = true;
	q.type = SB_DNS_AAAA;
	CHECK_EQ(sb_dns_answer_write(&q, &a, out, sizeof(out)), sizeof(want) - 1);
	CHECK_MEM(out, want, sizeof(want) - 1);
}

TEST(answer_refusal)
{
	static const char want[] = "\x12\x34\x81\x83\0\1\0\0\0\0\0\1" "\7eXample\3com\0" IN_A
		"\0\0\x29\4\xd0\0\0\0\0\0\x0c\0\x0f\0\x08\0\x0f" "denied";
	struct sb_dns_query q = asked;
	struct sb_dns_answer a = { .rcode = SB_DNS_NXDOMAIN, .addr = (const uint8_t *)"\1\2\3\4",
				   .ede = SB_EDE_BLOCKED, .ede_text = "denied" };
	uint8_t out[512];
	size_t bare = sizeof(want) - 1 - 6;

	q.edns = true;
	CHECK_EQ(sb_dns_answer_write(&q, &a, out, sizeof(out)), sizeof(want) - 1);
	CHECK_MEM(out, want, sizeof(want) - 1);
	CHECK_EQ(sb_dns_answer_write(&q, &a, out, bare + 2), bare + 2);
	CHECK_MEM(out + bare - 8, "\0\x08\0\x0f\0\4\0\x0f" "de", 10);
	CHECK_EQ(sb_dns_answer_write(&q, &a, out, bare), bare);
	CHECK_EQ(sb_dns_answer_write(&q, &a, out, bare - 1), 0);
	a.ede_text = "d\xc3\xa4"; /* no half of a character */
	CHECK_EQ(sb_dns_answer_write(&q, &a, out, bare + 2), bare + 1);
	CHECK_EQ(sb_dns_answer_write(&q, &a, out, bare + 3), bare + 3);
}

TEST(answer_explains_anything)
{
	struct sb_dns_query q = asked;
	struct sb_dns_answer a = { .rcode = SB_DNS_SERVFAIL, .ede = SB_EDE_OTHER, .ede_text = "x" };
	uint8_t out[512];
	size_t len;

	q.edns = true;
	len = sb_dns_answer_write(&q, &a, out, sizeof(out));
	CHECK_EQ(len, 12 + 13 + 4 + 11 + 7);
	CHECK_MEM(out + len - 9, "\0\7\0\x0f\0\3\0\0x", 9);
	a.ede_text = NULL;
	CHECK_EQ(sb_dns_answer_write(&q, &a, out, sizeof(out)), len - 1);
	a.ede = SB_EDE_NONE;
	CHECK_EQ(sb_dns_answer_write(&q, &a, out, sizeof(out)), len - 7);
}

/* Addresses are for questions that ask for one, and root is a question too. */
TEST(answer_without_data)
{
	static const char want[] = "\x12\x34\x81\x80\0\1\0\0\0\0\0\0\0\0\2\0\1";
	struct sb_dns_query q = { .id = 0x1234, .rd = true, .type = SB_DNS_NS, .klass = 1,
				  .name_len = 1 };
	struct sb_dns_answer a = { .ttl = 60, .addr = (const uint8_t *)"\xfdsendbox12345678",
				   .ede = SB_EDE_NONE };
	uint8_t out[512];

	CHECK_EQ(sb_dns_answer_write(&q, &a, out, sizeof(out)), sizeof(want) - 1);
	CHECK_MEM(out, want, sizeof(want) - 1);
	q.type = SB_DNS_A;
	CHECK_EQ(sb_dns_answer_write(&q, &a, out, sizeof(out)), sizeof(want) - 1 + 16);
	a.addr = NULL;
	CHECK_EQ(sb_dns_answer_write(&q, &a, out, sizeof(out)), sizeof(want) - 1);
}

TEST(answer_without_question)
{
	struct sb_dns_query q = { .id = 0x1234 };
	struct sb_dns_answer a = { .rcode = SB_DNS_FORMERR, .ede = SB_EDE_NONE };
	uint8_t out[512];

	CHECK_EQ(sb_dns_answer_write(&q, &a, out, sizeof(out)), 12);
	CHECK_MEM(out, "\x12\x34\x80\x81\0\0\0\0\0\0\0\0", 12);
}

TEST(truncated)
{
	static const char want[] = "\x12\x34\x83\x80\0\1\0\0\0\0\0\0" "\7eXample\3com\0" IN_A;
	struct sb_dns_answer a = { .addr = (const uint8_t *)"\1\2\3\4" };
	struct sb_dns_query q = asked;
	uint8_t out[512];

	q.edns = true;
	CHECK_EQ(sb_dns_truncate(out, sb_dns_answer_write(&q, &a, out, sizeof(out))),
		 sizeof(want) - 1);
	CHECK_MEM(out, want, sizeof(want) - 1);
	CHECK_EQ(sb_dns_truncate(out, sizeof(want) - 1), sizeof(want) - 1);
	memcpy(out + 6, "\1\2\3\4\5\6", 6);
	CHECK_EQ(sb_dns_truncate(out, sizeof(want) - 2), 12);
	CHECK_MEM(out, "\x12\x34\x83\x80\0\0\0\0\0\0\0\0", 12);
	memcpy(out + 4, "\1\1\0\0\0\0\0\0\7eXample\3com\0" IN_A, 25);
	CHECK_EQ(sb_dns_truncate(out, 29), 12);
	CHECK_MEM(out + 12, "\7eXample", 8);
	out[5] = 1;
	CHECK_EQ(sb_dns_truncate(out, 20), 12);
	CHECK_MEM(out, "\x12\x34\x83\x80\0\0\0\0\0\0\0\0", 12);
	CHECK_EQ(sb_dns_truncate(out, 11), 0);
}

TEST(query_write)
{
	static const char want[] = "\xab\xcd\1\0\0\1\0\0\0\0\0\0" "\4_sip\4_tcp\7example\3com\0"
		"\0\x21\0\1";
	char name[256];
	uint8_t out[512];

	CHECK_EQ(sb_dns_query_write(0xabcd, "_sip._tcp.example.com", SB_DNS_SRV, out),
		 sizeof(want) - 1);
	CHECK_MEM(out, want, sizeof(want) - 1);
	CHECK_EQ(sb_dns_query_write(1, "a.b", SB_DNS_A, out), 12 + 5 + 4);
	CHECK_MEM(out, "\0\1\1\0\0\1\0\0\0\0\0\0\1a\1b\0\0\1\0\1", 21);
	CHECK_EQ(sb_dns_query_write(1, "a", SB_DNS_A, out), 12 + 3 + 4);
	CHECK_EQ(sb_dns_query_write(1, "", SB_DNS_A, out), 0);
	CHECK_EQ(sb_dns_query_write(1, "a\x7f", SB_DNS_A, out), 0);
	CHECK_EQ(sb_dns_query_write(1, "\xc3\xa4", SB_DNS_A, out), 0);
	CHECK_EQ(sb_dns_query_write(1, ".", SB_DNS_A, out), 0);
	CHECK_EQ(sb_dns_query_write(1, ".a", SB_DNS_A, out), 0);
	CHECK_EQ(sb_dns_query_write(1, "a.", SB_DNS_A, out), 0);
	CHECK_EQ(sb_dns_query_write(1, "a..b", SB_DNS_A, out), 0);
	CHECK_EQ(sb_dns_query_write(1, "a b", SB_DNS_A, out), 0);
	CHECK_EQ(sb_dns_query_write(1, "a\\.b", SB_DNS_A, out), 0);
	memset(name, 'a', sizeof(name));
	name[63] = name[127] = name[191] = '.';
	name[253] = '\0';
	CHECK_EQ(sb_dns_query_write(1, name, SB_DNS_A, out), 12 + 255 + 4);
	name[253] = 'a';
	name[254] = '\0';
	CHECK_EQ(sb_dns_query_write(1, name, SB_DNS_A, out), 0);
	name[64] = '\0';
	name[63] = 'a';
	CHECK_EQ(sb_dns_query_write(1, name, SB_DNS_A, out), 0);
}

TEST(types)
{
	CHECK_EQ(sb_dns_type_of("TXT"), 16);
	CHECK_EQ(sb_dns_type_of("https"), 65);
	CHECK_EQ(sb_dns_type_of("CAA"), 257);
	CHECK_EQ(sb_dns_type_of("OPT"), 0);
	CHECK_EQ(sb_dns_type_of("ANY"), 0);
	CHECK_EQ(sb_dns_type_of(""), 0);
	CHECK_STR(sb_dns_type_name(33), "SRV");
	CHECK(!sb_dns_type_name(255));
}
