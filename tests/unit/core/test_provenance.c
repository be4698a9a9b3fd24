#include <errno.h>
#include <string.h>

#include "core/provenance.h"
#include "t.h"

/* made by Python and openssl: tests/data/provenance */
static const char line[] =
	"{\"expires_at\":0,\"format\":\"sendbox-provenance\",\"metadata\":{\"by\":\"anoth"
	"er\",\"\303\274\":\"\303\251\"},\"signature\":\"43dbff1508224a844ee2f94f06a55930"
	"6caf3987b788bd5f5fb391ddbb7093a2bcaf89c403ac216f52c0460a56ad14479ee4a37b5854d112"
	"5a6d4a61f85fd60a\",\"signature_id\":\"000102030405060708090a0b0c0d0e0f\",\"signe"
	"d_at\":1700000000,\"signer\":\"21fe31dfa154a261626bf854046fd2271b7bed4b6abe45aa5"
	"8877ef47f9721b9\",\"subject\":{\"kind\":\"artifact\",\"name\":\"v1.txt\",\"sha25"
	"6\":\"95ad22835915d5500897e50a86acbe4f81a8d8361b7f123beaa21dde5e6b120a\"},\"vers"
	"ion\":1}"
	"\n";

static int parse(const char *text, struct sb_prov_file *f)
{
	return sb_prov_parse(text, strlen(text), f, NULL);
}

/* @line with the first @from as @to; both of any length. */
static int parse_with(const char *from, const char *to)
{
	struct sb_prov_file f = { .n = 0 };
	char text[4096];
	const char *at = strstr(line, from);
	int r;

	CHECK(at != NULL);
	(void)snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - line), line, to, at + strlen(from));
	r = parse(text, &f);
	sb_prov_file_done(&f);
	return r;
}

TEST(reads)
{
	struct sb_prov_file f = { .n = 0 };
	uint8_t *payload = NULL;
	char *again = NULL;
	size_t len = 0;

	CHECK_EQ(parse(line, &f), 0);
	CHECK_EQ(f.n, 1);
	CHECK_EQ(f.sigs[0].kind, SB_PROV_ARTIFACT);
	CHECK_STR(f.sigs[0].name, "v1.txt");
	CHECK_EQ(f.sigs[0].id[15], 0x0f);
	CHECK_EQ(f.sigs[0].signer[0], 0x21);
	CHECK_EQ(f.sigs[0].signed_at, 1700000000);
	CHECK_EQ(f.sigs[0].expires_at, 0);
	CHECK_EQ(f.sigs[0].n_meta, 2);
	CHECK_STR(f.sigs[0].meta[0].key, "by");
	CHECK_STR(f.sigs[0].meta[0].value, "another");
	CHECK_STR(f.sigs[0].meta[1].value, "\303\251");
	CHECK_EQ(sb_prov_line(&f.sigs[0], &again, &len), 0);
	CHECK_STR(again, line);
	CHECK_EQ(sb_prov_payload(&f.sigs[0], &payload, &len), 0);
	CHECK_STR((const char *)payload, "sendbox-provenance-signature-v1");
	CHECK(strncmp((const char *)payload + 32, "{\"expires_at\":0,", 16) == 0);
	/* the line but for ,"signature":"...128..." and the newline */
	CHECK_EQ(len, 32 + strlen(line) - 1 - 143);
	free(again);
	free(payload);
	sb_prov_file_done(&f);
}

TEST(refuses)
{
	struct sb_prov_file f = { .n = 0 };

	CHECK_EQ(parse("", &f), -EBADMSG);
	CHECK_EQ(parse("\n", &f), -EBADMSG);
	CHECK_EQ(parse_with("}\n", "}"), -EBADMSG); /* no end */
	CHECK_EQ(parse_with("\"version\":1", "\"version\":2"), -EBADMSG);
	CHECK_EQ(parse_with("\"version\":1", "\"version\":1.0"), -EBADMSG);
	CHECK_EQ(parse_with("\"version\":1", "\"version\":1,\"x\":1"), -EBADMSG);
	CHECK_EQ(parse_with("sendbox-provenance", "sendbox-plan"), -EBADMSG);
	CHECK_EQ(parse_with("artifact", "none"), -EBADMSG);
	CHECK_EQ(parse_with("v1.txt", ""), -EBADMSG);
	CHECK_EQ(parse_with("v1.txt", "a\\u0000b"), -EBADMSG);
	CHECK_EQ(parse_with("v1.txt", "a\\nb"), -EBADMSG);
	CHECK_EQ(parse_with("v1.txt", "\\u0061"), -EBADMSG); /* not canonical */
	CHECK_EQ(parse_with("v1.txt", "a"), 0); /* of these, canonical: a changed name parses */
	CHECK_EQ(parse_with("1700000000", "-1"), -EBADMSG);
	CHECK_EQ(parse_with("1700000000", "99999999999999999999"), -EBADMSG);
	CHECK_EQ(parse_with("\"another\"", "7"), -EBADMSG);
	CHECK_EQ(parse_with("\"by\":\"another\",", "\"by\":\"another\",\"by\":\"another\","), -EBADMSG);
	CHECK_EQ(parse_with("000102", "00010"), -EBADMSG);
	CHECK_EQ(parse_with("{\"expires", "[{\"expires"), -EBADMSG);
	CHECK(f.sigs == NULL);
}

TEST(many)
{
	struct sb_prov_file f = { .n = 0 };
	size_t n = strlen(line);
	char *text = malloc(257 * n + 1);
	char *id;

	CHECK(text != NULL);
	for (size_t i = 0; i < 257; i++) {
		memcpy(text + i * n, line, n + 1);
		id = strstr(text + i * n, "000102030405");
		CHECK(id != NULL);
		(void)snprintf(id, 7, "%06zx", i);
		id[6] = '3';
	}
	CHECK_EQ(sb_prov_parse(text, 256 * n, &f, NULL), 0);
	CHECK_EQ(f.n, 256);
	sb_prov_file_done(&f);
	CHECK_EQ(sb_prov_parse(text, 257 * n, &f, NULL), -EBADMSG);
	memcpy(text + n, text, n); /* one id twice */
	CHECK_EQ(sb_prov_parse(text, 2 * n, &f, NULL), -EBADMSG);
	free(text);
}

TEST(metadata)
{
	struct sb_prov_sig s = { .n_meta = 0 };
	char key[130];
	char value[4098];
	size_t n = 0;

	memset(key, 'k', sizeof(key));
	memset(value, 'v', sizeof(value));
	key[129] = value[4097] = '\0';
	CHECK_EQ(sb_prov_add_meta(&s, key, "x"), -EINVAL);
	key[128] = '\0';
	CHECK_EQ(sb_prov_add_meta(&s, key, "x"), 0);
	CHECK_EQ(sb_prov_add_meta(&s, key, "x"), -EEXIST);
	CHECK_EQ(sb_prov_add_meta(&s, "", "x"), -EINVAL);
	CHECK_EQ(sb_prov_add_meta(&s, "a", "\xff"), -EINVAL);
	CHECK_EQ(sb_prov_add_meta(&s, "a", "\033[0m"), -EINVAL);
	CHECK_EQ(sb_prov_add_meta(&s, "a", value), -EINVAL);
	value[4096] = '\0';
	CHECK_EQ(sb_prov_add_meta(&s, "a", value), 0);
	CHECK_STR(s.meta[0].key, "a");
	while (s.n_meta < SB_PROV_META_MAX) {
		(void)snprintf(key, sizeof(key), "m%zu", n++);
		CHECK_EQ(sb_prov_add_meta(&s, key, ""), 0);
	}
	CHECK_EQ(sb_prov_add_meta(&s, "z", ""), -E2BIG);
	sb_prov_sig_done(&s);
}

/* ---- signers ---- */

#define KEY_A "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
#define KEY_B "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
#define HEAD "{\"format\":\"sendbox-signers\",\"version\":1,"
#define ID_A "{\"name\":\"a\",\"key\":\"" KEY_A "\"}"
#define ID_B "{\"name\":\"b\",\"key\":\"" KEY_B "\"}"

static int signers(const char *text, struct sb_signers *ret)
{
	return sb_signers_parse(text, strlen(text), ret, NULL);
}

TEST(signers_files)
{
	static const char *const bad[] = {
		"", "{}", "[]", HEAD "\"identities\":{}}",
		HEAD "\"identities\":[],\"more\":1}",
		"{\"format\":\"sendbox-signers\",\"version\":2,\"identities\":[]}",
		"{\"format\":\"x\",\"version\":1,\"identities\":[]}",
		HEAD "\"identities\":[1]}",
		HEAD "\"identities\":[{\"name\":\"a\"}]}",
		HEAD "\"identities\":[{\"name\":\"\",\"key\":\"" KEY_A "\"}]}",
		HEAD "\"identities\":[{\"name\":\"a\",\"key\":\"abcd\"}]}",
		HEAD "\"identities\":[{\"name\":\"a\",\"key\":\"" KEY_A "\",\"expires\":-1}]}",
		HEAD "\"identities\":[{\"name\":\"a\",\"key\":\"" KEY_A "\",\"revokd\":1}]}",
		HEAD "\"identities\":[" ID_A "," ID_A "]}",
		HEAD "\"identities\":[" ID_A ",{\"name\":\"a\",\"key\":\"" KEY_B "\"}]}",
		HEAD "\"identities\":[" ID_A "],\"policy\":{\"threshold\":2}}",
		HEAD "\"identities\":[" ID_A "],\"policy\":{\"threshold\":-1}}",
		HEAD "\"identities\":[" ID_A "],\"policy\":{\"required\":\"a\"}}",
		HEAD "\"identities\":[" ID_A "],\"policy\":{\"required\":[\"b\"]}}",
		HEAD "\"identities\":[" ID_A "],\"policy\":{\"required\":[1]}}",
		HEAD "\"identities\":[" ID_A "],\"policy\":{\"required\":[\"a\"],\"allow_unsigned\":true}}",
		HEAD "\"identities\":[" ID_A "],\"policy\":{\"threshold\":1,\"allow_unsigned\":true}}",
		HEAD "\"identities\":[" ID_A "],\"policy\":{\"allow_unsigned\":1}}",
	};
	struct sb_signers s = { .n = 0 };

	for (size_t i = 0; i < SB_ARRAY_LEN(bad); i++)
		CHECK_EQ(signers(bad[i], &s), -EBADMSG);
	CHECK(s.v == NULL);
	CHECK_EQ(signers(HEAD "\"identities\":[" ID_A "," ID_B "],\"policy\":{\"required\":[\"" KEY_B "\"]}}",
			 &s), 0);
	CHECK_EQ(s.n, 2);
	CHECK(!s.v[0].required && s.v[1].required && !s.allow_unsigned);
	CHECK_EQ(s.v[0].key[0], 0xd7);
	sb_signers_done(&s);
}

TEST(judged)
{
	const uint64_t now = 1000000;
	struct sb_signer who = { .valid_from = 100, .valid_until = 900000, .expires = 2000000 };
	struct sb_prov_sig s = { .signed_at = 5000 };
	uint8_t digest[32] = { 0 };

	CHECK_EQ(sb_prov_judge(&s, digest, &who, true, now), SB_PROV_COUNTS);
	CHECK_EQ(sb_prov_judge(&s, digest, &who, false, now), SB_PROV_BAD);
	CHECK_EQ(sb_prov_judge(&s, digest, NULL, true, now), SB_PROV_UNKNOWN);
	CHECK_EQ(sb_prov_judge(&s, digest, NULL, false, now), SB_PROV_UNKNOWN);
	s.signed_at = 99;
	CHECK_EQ(sb_prov_judge(&s, digest, &who, true, now), SB_PROV_EARLY);
	s.signed_at = 900000;
	CHECK_EQ(sb_prov_judge(&s, digest, &who, true, now), SB_PROV_COUNTS);
	s.signed_at = 900001;
	CHECK_EQ(sb_prov_judge(&s, digest, &who, true, now), SB_PROV_LATE);
	who.valid_until = 0;
	s.signed_at = now + 300;
	CHECK_EQ(sb_prov_judge(&s, digest, &who, true, now), SB_PROV_COUNTS);
	s.signed_at = now + 301;
	CHECK_EQ(sb_prov_judge(&s, digest, &who, true, now), SB_PROV_EARLY);
	s.signed_at = 5000;
	s.expires_at = now + 1;
	CHECK_EQ(sb_prov_judge(&s, digest, &who, true, now), SB_PROV_COUNTS);
	s.expires_at = now;
	CHECK_EQ(sb_prov_judge(&s, digest, &who, true, now), SB_PROV_EXPIRED);
	s.expires_at = 0;
	who.expires = now;
	CHECK_EQ(sb_prov_judge(&s, digest, &who, true, now), SB_PROV_SIGNER_EXPIRED);
	who.expires = 0;
	who.revoked = now + 500;
	CHECK_EQ(sb_prov_judge(&s, digest, &who, true, now), SB_PROV_REVOKED);
	digest[0] = 1;
	CHECK_EQ(sb_prov_judge(&s, digest, &who, true, now), SB_PROV_OTHER_FILE);
}

TEST(decided)
{
	struct sb_signer v[2] = { { .fingerprint = { 1 }, .name = (char *)(uintptr_t)"a" },
				  { .fingerprint = { 2 }, .name = (char *)(uintptr_t)"b" } };
	struct sb_prov_sig sigs[3] = { { .signer = { 1 } }, { .signer = { 1 } }, { .signer = { 2 } } };
	struct sb_prov_file f = { sigs, 2 };
	struct sb_signers s = { .v = v, .n = 2 };
	enum sb_prov_verdict all[3] = { SB_PROV_COUNTS, SB_PROV_COUNTS, SB_PROV_COUNTS };

	CHECK_EQ(sb_prov_decide(&f, all, &s, NULL), 0);
	s.threshold = 2; /* twice one signer */
	CHECK_EQ(sb_prov_decide(&f, all, &s, NULL), -EKEYREJECTED);
	f.n = 3;
	CHECK_EQ(sb_prov_decide(&f, all, &s, NULL), 0);
	all[2] = SB_PROV_EXPIRED;
	CHECK_EQ(sb_prov_decide(&f, all, &s, NULL), -EKEYREJECTED);
	s.threshold = 0;
	CHECK_EQ(sb_prov_decide(&f, all, &s, NULL), 0);
	v[1].required = true;
	CHECK_EQ(sb_prov_decide(&f, all, &s, NULL), -EKEYREJECTED);
	v[1].required = false;
	all[2] = SB_PROV_UNKNOWN; /* somebody else's does no harm */
	CHECK_EQ(sb_prov_decide(&f, all, &s, NULL), 0);
	all[2] = SB_PROV_BAD; /* a false one does */
	CHECK_EQ(sb_prov_decide(&f, all, &s, NULL), -EKEYREJECTED);
	all[2] = SB_PROV_OTHER_FILE;
	CHECK_EQ(sb_prov_decide(&f, all, &s, NULL), -EKEYREJECTED);
	f.n = 0;
	CHECK_EQ(sb_prov_decide(&f, all, &s, NULL), -EKEYREJECTED);
	s.allow_unsigned = true;
	CHECK_EQ(sb_prov_decide(&f, all, &s, NULL), 0);
}
