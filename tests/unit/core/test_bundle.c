/* The manifest: one encoding, every rule, and bytes that Python's json module and OpenSSL made. */
#include "core/bundle.h"

#include <stdlib.h>

#include "t.h"

#define EMPTY_SHA "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
/* json.dumps(sort_keys=True, separators=(",", ":")); the digests are sha256sum's */
#define HEAD "{\"architecture\":\"x86_64\",\"artifacts\":["
#define GUEST                                                                                      \
	"{\"kind\":\"guest\",\"mode\":365,\"path\":\"bin/sendbox-guest\",\"sha256\":"               \
	"\"f824bba2ea9d44799fe08b26e8b119ad3d2218fb4083c9e3b3595137baeb8f07\",\"size\":13}"
#define BASE                                                                                       \
	"{\"kind\":\"initramfs\",\"mode\":292,\"path\":\"boot/initramfs.cpio\",\"sha256\":"         \
	"\"cae662172fd450bb0cd710a769079c05bfc5d8e35efa6576edc7d0377afdd4a2\",\"size\":4}"
#define MODULES                                                                                    \
	"{\"kind\":\"modules\",\"mode\":292,\"path\":\"boot/modules\",\"sha256\":"                  \
	"\"b3cc344cf1564067f6525b758e86e17fa82e0a644f9fd56a4a7daa4062e1a1b2\",\"size\":37}"
#define TEXT(kind, path)                                                                           \
	"{\"kind\":\"" kind "\",\"mode\":292,\"path\":\"" path "\",\"sha256\":\"" EMPTY_SHA         \
	"\",\"size\":2}"
#define TEXTS                                                                                      \
	TEXT("inventory", "share/inventory.json")                                                  \
	"," TEXT("cyclonedx", "share/sbom.cdx.json") "," TEXT("spdx", "share/sbom.spdx.json")
#define TAIL                                                                                       \
	"],\"format\":\"sendbox-bundle\",\"minimum_sequence\":5,\"plan_version\":2,"                \
	"\"release\":\"1.0\",\"sequence\":7,\"version\":1}"
static const char golden[] = HEAD GUEST "," BASE "," MODULES "," TEXTS TAIL;
/* openssl pkeyutl -sign -rawin with the seed 00 01 .. 1f over the domain, NUL and these bytes */
static const char golden_sig[] =
	"sendbox-bundle-signature 1 "
	"03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8 "
	"20bce18e6c6eeb5bdada2f5aa4e86949a56540e5d53164fd9c9d0b5dc7e908e3"
	"45e6b056b7cdc69708aa8ef9afa953a40b4ef3327c9016805c65332c00d22105\n";

static int parse(const char *text, struct sb_err *err)
{
	struct sb_bundle_manifest m = { 0 };
	int r = sb_bundle_manifest_parse(text, strlen(text), &m, err);

	sb_bundle_manifest_done(&m);
	return r;
}

TEST(golden_vector)
{
	struct sb_bundle_manifest m = { 0 };
	char *again = NULL;
	size_t len = 0;

	REQUIRE(sb_bundle_manifest_parse(golden, strlen(golden), &m, NULL) == 0);
	CHECK_STR(m.release, "1.0");
	CHECK_STR(m.architecture, "x86_64");
	CHECK_EQ(m.sequence, 7);
	CHECK_EQ(m.minimum_sequence, 5);
	CHECK_EQ(m.plan_version, 2);
	REQUIRE(m.n_artifacts == 6);
	CHECK_STR(sb_bundle_find(&m, SB_BUNDLE_GUEST)->path, "bin/sendbox-guest");
	CHECK_EQ(sb_bundle_find(&m, SB_BUNDLE_GUEST)->mode, 0555);
	CHECK_EQ(sb_bundle_find(&m, SB_BUNDLE_MODULES)->size, 37);
	CHECK_EQ(sb_bundle_find(&m, SB_BUNDLE_SPDX)->sha256[0], 0x44);
	CHECK(!sb_bundle_find(&m, SB_BUNDLE_NONE));
	REQUIRE(sb_bundle_manifest_write(&m, &again, &len, NULL) == 0);
	CHECK_EQ(len, strlen(golden));
	CHECK_STR(again, golden);
	free(again);
	sb_bundle_manifest_done(&m);
}

TEST(signature_file)
{
	char out[SB_BUNDLE_SIGNATURE_LEN + 1];
	char bad[SB_BUNDLE_SIGNATURE_LEN + 1];
	uint8_t key[32];
	uint8_t sig[64];

	CHECK_EQ(strlen(golden_sig), SB_BUNDLE_SIGNATURE_LEN);
	REQUIRE(sb_bundle_signature_parse(golden_sig, key, sig) == 0);
	CHECK_EQ(key[0], 0x03);
	CHECK_EQ(key[31], 0xb8);
	CHECK_EQ(sig[0], 0x20);
	CHECK_EQ(sig[63], 0x05);
	sb_bundle_signature_write(key, sig, out);
	CHECK_STR(out, golden_sig);
	/* each bit matters: what still parses says another key or signature */
	for (size_t i = 0; i < 8 * (size_t)SB_BUNDLE_SIGNATURE_LEN; i++) {
		memcpy(bad, golden_sig, sizeof(bad));
		bad[i / 8] = (char)(bad[i / 8] ^ (1 << i % 8));
		if (sb_bundle_signature_parse(bad, key, sig) == 0) {
			sb_bundle_signature_write(key, sig, out);
			CHECK(memcmp(out, bad, SB_BUNDLE_SIGNATURE_LEN) == 0);
		}
	}
}

TEST(each_flipped_bit_is_another_manifest)
{
	size_t parsed = 0;

	for (size_t i = 0; i < 8 * strlen(golden); i++) {
		char text[sizeof(golden)];
		struct sb_bundle_manifest m = { 0 };
		char *again = NULL;
		size_t len;

		memcpy(text, golden, sizeof(golden));
		text[i / 8] = (char)(text[i / 8] ^ (1 << i % 8));
		if (sb_bundle_manifest_parse(text, strlen(golden), &m, NULL) < 0)
			continue;
		parsed++; /* a digit of a digest, say: but written again it is what was read */
		REQUIRE(sb_bundle_manifest_write(&m, &again, &len, NULL) == 0);
		CHECK(len == strlen(golden) && memcmp(again, text, len) == 0);
		CHECK(memcmp(again, golden, len) != 0);
		free(again);
		sb_bundle_manifest_done(&m);
	}
	CHECK(parsed > 0);
}

TEST(only_canonical)
{
	static const char *const bad[] = {
		"",
		"{}",
		"[]",
		"null",
		golden + 1,
		/* another order of keys */
		"{\"artifacts\":[" GUEST "," BASE "," MODULES "," TEXTS
		"],\"architecture\":\"x86_64\",\"format\":\"sendbox-bundle\",\"minimum_sequence\":5,"
		"\"plan_version\":2,\"release\":\"1.0\",\"sequence\":7,\"version\":1}",
		/* a key twice, a key too many, a key too few */
		"{\"architecture\":\"x86_64\",\"architecture\":\"x86_64\",\"artifacts\":[" GUEST
		"," BASE "," MODULES "," TEXTS TAIL,
		"{\"aaa\":1,\"architecture\":\"x86_64\",\"artifacts\":[" GUEST "," BASE "," MODULES
		"," TEXTS TAIL,
		"{\"artifacts\":[" GUEST "," BASE "," MODULES "," TEXTS TAIL,
		/* bytes behind, blanks, another spelling */
		HEAD GUEST "," BASE "," MODULES "," TEXTS TAIL "\n",
		HEAD GUEST "," BASE "," MODULES "," TEXTS TAIL "x",
		HEAD " " GUEST "," BASE "," MODULES "," TEXTS TAIL,
		"{\"architecture\":\"x86\\u005f64\",\"artifacts\":[" GUEST "," BASE "," MODULES
		"," TEXTS TAIL,
		"{\"architecture\":{\"b64\":\"eDg2XzY0\"},\"artifacts\":[" GUEST "," BASE
		"," MODULES "," TEXTS TAIL,
	};

	CHECK_EQ(parse(golden, NULL), 0);
	for (size_t i = 0; i < SB_ARRAY_LEN(bad); i++)
		if (parse(bad[i], NULL) != -EBADMSG)
			t_fail(__FILE__, __LINE__, "case %zu is accepted", i);
}

struct rule {
	const char *text;
	const char *says;
};

TEST(rules)
{
#define WITH(guest, tail) HEAD guest "," BASE "," MODULES "," TEXTS tail
#define TAIL_OF(min, plan, release, seq)                                                           \
	"],\"format\":\"sendbox-bundle\",\"minimum_sequence\":" min ",\"plan_version\":" plan       \
	",\"release\":\"" release "\",\"sequence\":" seq ",\"version\":1}"
#define GUEST_OF(mode, path, size)                                                                 \
	"{\"kind\":\"guest\",\"mode\":" mode ",\"path\":\"" path "\",\"sha256\":\"" EMPTY_SHA       \
	"\",\"size\":" size "}"
	static const struct rule bad[] = {
		{ WITH(GUEST, TAIL_OF("8", "2", "1.0", "7")), "minimum sequence" },
		{ WITH(GUEST, TAIL_OF("0", "2", "1.0", "7")), "minimum sequence" },
		{ WITH(GUEST, TAIL_OF("0", "2", "1.0", "0")), "sequence must be" },
		{ WITH(GUEST, TAIL_OF("1", "2", "1.0", "9007199254740992")), "2^53" },
		{ WITH(GUEST, TAIL_OF("5", "0", "1.0", "7")), "plan version" },
		{ WITH(GUEST, TAIL_OF("5", "2", "", "7")), "release" },
		{ WITH(GUEST, TAIL_OF("5", "2", "local build", "7")), "release" },
		{ WITH(GUEST, TAIL_OF("5", "2", "-1", "7")), "release" },
		{ WITH(GUEST_OF("493", "bin/sendbox-guest", "13"), TAIL), "mode 0555" },
		{ WITH(GUEST_OF("2413", "bin/sendbox-guest", "13"), TAIL), "mode 0555" },
		{ WITH(GUEST_OF("365", "bin/sendbox-guest", "0"), TAIL), "64 MiB" },
		{ WITH(GUEST_OF("365", "bin/sendbox-guest", "67108865"), TAIL), "64 MiB" },
		{ WITH(GUEST_OF("365", "/bin/sendbox-guest", "13"), TAIL), "path" },
		{ WITH(GUEST_OF("365", "bin/../sendbox-guest", "13"), TAIL), "path" },
		{ WITH(GUEST_OF("365", "bin//sendbox-guest", "13"), TAIL), "path" },
		{ WITH(GUEST_OF("365", "bin/.guest", "13"), TAIL), "path" },
		{ WITH(GUEST_OF("365", "bin/", "13"), TAIL), "path" },
		{ WITH(GUEST_OF("365", "", "13"), TAIL), "path" },
		{ WITH(GUEST_OF("365", "bin/sendbox guest", "13"), TAIL), "path" },
		{ WITH(GUEST_OF("365", "boot/modules", "13"), TAIL), "sorted" },
		{ WITH(GUEST_OF("365", "zoo", "13"), TAIL), "sorted" },
		{ WITH(GUEST_OF("365", "boot", "13"), TAIL), "beneath a file" },
		{ HEAD MODULES "," TEXTS TAIL, "missing" },
		{ HEAD GUEST "," BASE "," MODULES "," TEXTS
		  "," TEXT("spdx", "share/aaa.json") TAIL, "sorted" },
		{ HEAD GUEST "," BASE "," MODULES "," TEXTS
		  "," TEXT("spdx", "share/zzz.json") TAIL, "second one" },
		{ HEAD TAIL, "missing" },
		{ HEAD GUEST "," BASE "," MODULES "," TEXT("inventory", "manifest.json")
		  "," TEXT("cyclonedx", "share/sbom.cdx.json")
		  "," TEXT("spdx", "share/sbom.spdx.json") TAIL, "not one of an artifact" },
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(bad); i++) {
		struct sb_err err = { 0 };

		if (parse(bad[i].text, &err) != -EBADMSG || !strstr(err.text, bad[i].says))
			t_fail(__FILE__, __LINE__, "case %zu: \"%s\"", i, err.text);
	}
}

TEST(bounds)
{
	size_t len = SB_BUNDLE_MANIFEST_MAX + 1;
	char *big = malloc(len + 1);
	struct sb_bundle_manifest m = { 0 };
	struct sb_err err = { 0 };

	REQUIRE(big);
	memset(big, '[', len);
	big[len] = '\0';
	CHECK_EQ(sb_bundle_manifest_parse(big, len, &m, &err), -EBADMSG);
	CHECK(strstr(err.text, "larger than 65536"));
	CHECK_EQ(sb_bundle_manifest_parse(big, len - 1, &m, NULL), -EBADMSG);
	CHECK(!m.artifacts);
	free(big);
}
