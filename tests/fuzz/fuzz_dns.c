/*
 * DNS messages. A query that parses has a name that, written again, is the one on the wire; our
 * answer to any query is an answer that our reader takes and that names what was asked. An
 * upstream answer gives addresses and hops within their bounds only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/dns.h"

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void answered(const struct sb_dns_query *q, enum sb_dns_rcode rcode)
{
	static const uint8_t addr[16] = { 198, 18, 0, 16 };
	struct sb_dns_answer a = { .rcode = rcode,
				   .ttl = 60,
				   .addr = addr,
				   .ede = SB_EDE_BLOCKED,
				   .ede_text = "example.com is not allowed: \xc3\xa4" };
	uint8_t out[512];
	struct sb_dns_reply r;
	size_t len = sb_dns_answer_write(q, &a, out, sizeof(out));

	must(len >= 12 && len <= sizeof(out));
	if (q->name[0] && q->klass == 1 && (q->type == SB_DNS_A || q->type == SB_DNS_AAAA)) {
		must(sb_dns_reply_parse(out, len, q->name, q->type, &r) == 0);
		must(r.id == q->id && r.rcode == rcode && r.n_hops == 0);
		must(r.n_addrs == (rcode == SB_DNS_NOERROR));
	}
	must(sb_dns_truncate(out, len) == 12 + (q->name_len ? q->name_len + 4U : 0));
}

static void query(const uint8_t *data, size_t size)
{
	struct sb_dns_query q = { 0 };
	enum sb_dns_rcode rcode = SB_DNS_NOERROR;
	uint8_t again[512];
	int r = sb_dns_query_parse(data, size, &q, &rcode);

	if (r == -ENODATA)
		return;
	must((r == 0) == (rcode == SB_DNS_NOERROR));
	must(q.name_len <= 255 && strlen(q.name) <= 253);
	answered(&q, rcode);
	if (r < 0 || q.name[0] == '\0' || strchr(q.name, '\\'))
		return;
	must(sb_dns_query_write(q.id, q.name, q.type, again) == 12 + q.name_len + 4U);
	must(memcmp(again + 12, q.wire_name, q.name_len) == 0);
	must(memcmp(again + 12, data + 12, q.name_len + 4U) == 0);
}

static void reply(const uint8_t *data, size_t size)
{
	static const uint16_t types[] = { SB_DNS_A,	SB_DNS_AAAA, SB_DNS_TXT,
					  SB_DNS_MX,	SB_DNS_SRV,  SB_DNS_HTTPS,
					  SB_DNS_NAPTR, SB_DNS_CAA,  SB_DNS_CNAME };
	struct sb_dns_reply r = { 0 };

	for (size_t i = 0; i < SB_ARRAY_LEN(types); i++) {
		(void)!sb_dns_reply_check(data, size, "www.example.com", types[i]);
		if (sb_dns_reply_parse(data, size, "www.example.com", types[i], &r) != 0)
			continue;
		must(r.n_hops <= SB_DNS_MAX_HOPS && r.n_addrs <= SB_ARRAY_LEN(r.addrs));
		must(r.n_addrs == 0 || (r.rcode == SB_DNS_NOERROR && !r.truncated));
		must(r.ttl <= INT32_MAX);
		for (size_t h = 0; h < r.n_hops; h++)
			must(r.hops[h][0] && strlen(r.hops[h]) <= 253);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	query(data, size);
	reply(data, size);
	return 0;
}
