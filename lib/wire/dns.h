#ifndef SB_WIRE_DNS_H
#define SB_WIRE_DNS_H
/*
 * DNS messages (RFC 1035, 6891, 8914): a strict reader of queries, a writer of our own answers and
 * a reader of upstream answers. Pure; nothing is allocated.
 */
#include "base/mem.h"

#define SB_DNS_NAME 256 /* room for a name as text with its NUL */
#define SB_DNS_MAX_RECORDS 128
#define SB_DNS_MAX_HOPS 16

enum sb_dns_type {
	SB_DNS_A = 1, SB_DNS_NS = 2, SB_DNS_CNAME = 5, SB_DNS_SOA = 6, SB_DNS_PTR = 12,
	SB_DNS_MX = 15, SB_DNS_TXT = 16, SB_DNS_AAAA = 28, SB_DNS_SRV = 33, SB_DNS_NAPTR = 35,
	SB_DNS_OPT = 41, SB_DNS_SVCB = 64, SB_DNS_HTTPS = 65, SB_DNS_CAA = 257,
};
/* The number of a type that a plan may name ("TXT", "MX", "SRV", ...). Return: 0 = unknown. */
uint16_t sb_dns_type_of(const char *name);
const char *sb_dns_type_name(uint16_t type); /* NULL = unknown */

enum sb_dns_rcode {
	SB_DNS_NOERROR = 0, SB_DNS_FORMERR = 1, SB_DNS_SERVFAIL = 2, SB_DNS_NXDOMAIN = 3,
	SB_DNS_NOTIMP = 4, SB_DNS_REFUSED = 5,
};
/* RFC 8914 */
enum sb_dns_ede {
	SB_EDE_NONE = -1, SB_EDE_OTHER = 0, SB_EDE_BLOCKED = 15, SB_EDE_PROHIBITED = 18,
	SB_EDE_NO_REACHABLE = 22, SB_EDE_NETWORK = 23,
};

struct sb_dns_query {
	uint16_t id;
	bool rd;
	bool cd;
	uint16_t type;
	uint16_t klass;
	bool edns;
	uint16_t udp_size;       /* EDNS payload size, at least 512; 512 without EDNS */
	char name[SB_DNS_NAME];  /* as sent, dotted, without the trailing dot; bytes that are not
				  * printable ASCII, and dots inside a label, make it malformed */
	uint16_t name_len;       /* of the name in the message, for the answer's question */
	uint8_t wire_name[255];  /* the question's name as it was sent (case kept) */
};
/*
 * sb_dns_query_parse
 * @ret: id and flags are set whenever the header is whole, so that an error can be answered
 * Return: 0; -EBADMSG with @rcode (FORMERR, NOTIMP, REFUSED) for an answer; -ENODATA: not worth
 * an answer (no header, or itself an answer).
 * Structure: one question, class IN (other classes: REFUSED), opcode QUERY (others: NOTIMP), no
 * compression in the question, at most one OPT and nothing else in the additional section, no
 * trailing bytes.
 */
SB_MUST_CHECK int sb_dns_query_parse(const uint8_t *p, size_t len, struct sb_dns_query *ret,
				     enum sb_dns_rcode *rcode);

struct sb_dns_answer {
	enum sb_dns_rcode rcode;
	uint32_t ttl;
	const uint8_t *addr;  /* A: 4 bytes, AAAA: 16 bytes; NULL = none (NODATA or an error) */
	int ede;              /* enum sb_dns_ede; only when the query had EDNS */
	const char *ede_text; /* or NULL */
};
/* Return: length; 0 when @cap is too small (at least 512 is always enough without text; with too
 * little room the text is shortened). Answers have RA set, AA clear. */
size_t sb_dns_answer_write(const struct sb_dns_query *q, const struct sb_dns_answer *a,
			   uint8_t *out, size_t cap);
/* Set TC and cut to the question (for UDP answers that do not fit). Return: new length. */
size_t sb_dns_truncate(uint8_t *msg, size_t len);

/* A query of ours. Return: length; 0 for a name that is not one. @out: 512 bytes */
size_t sb_dns_query_write(uint16_t id, const char *name, uint16_t type, uint8_t *out);

struct sb_dns_reply {
	uint16_t id;
	enum sb_dns_rcode rcode;
	bool truncated;
	uint32_t ttl;                 /* smallest of the records used; for negative ones the SOA's */
	size_t n_hops;
	char hops[SB_DNS_MAX_HOPS][SB_DNS_NAME]; /* CNAME targets in order, lower case */
	size_t n_addrs;
	uint8_t addrs[64][16];        /* as struct sb_addr */
};
/*
 * sb_dns_reply_parse - an upstream answer to a question for @name and @type (A or AAAA)
 * Follows the CNAME chain from @name inside the answer section only; records that do not belong to
 * it are ignored; a loop or more than SB_DNS_MAX_HOPS is malformed.
 * Return: 0; -EBADMSG (also when the question is another one).
 */
SB_MUST_CHECK int sb_dns_reply_parse(const uint8_t *p, size_t len, const char *name, uint16_t type,
				     struct sb_dns_reply *ret);

/*
 * sb_dns_reply_check - whether an upstream answer of any other type is well-formed and belongs to
 * the question, to be handed on as it is (with @id replaced by the caller: first two bytes).
 * Return: 0; -EBADMSG.
 */
SB_MUST_CHECK int sb_dns_reply_check(const uint8_t *p, size_t len, const char *name, uint16_t type);

#endif
