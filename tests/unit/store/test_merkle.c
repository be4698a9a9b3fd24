/* The tree: roots as in the test data of Certificate Transparency, proofs both ways. */
#include "base/num.h"
#include "crypto/crypto.h"
#include "store/merkle.h"
#include "t.h"

#define N 8
static const struct {
	const char *data;
	size_t len;
} inputs[N] = {
	{ "", 0 }, { "\x00", 1 }, { "\x10", 1 }, { "\x20\x21", 2 }, { "\x30\x31", 2 },
	{ "\x40\x41\x42\x43", 4 }, { "\x50\x51\x52\x53\x54\x55\x56\x57", 8 },
	{ "\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f", 16 },
};
static const char *const roots[N + 1] = {
	"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
	"6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
	"fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
	"aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
	"d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
	"4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
	"76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
	"ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
	"5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
};

static void root_is(const struct sb_merkle *t, const char *want)
{
	uint8_t root[32];
	char hex[65];

	sb_merkle_root(t, root);
	sb_hex_write(root, 32, hex);
	CHECK_STR(hex, want);
}

TEST(grows_as_published)
{
	struct sb_merkle t = { 0 };

	REQUIRE(sb_crypto_init() == 0);
	root_is(&t, roots[0]);
	for (size_t i = 0; i < N; i++) {
		uint8_t leaf[32];

		sb_merkle_leaf(inputs[i].data, inputs[i].len, leaf);
		sb_merkle_add(&t, leaf);
		root_is(&t, roots[i + 1]);
	}
}

#define MANY 70
static uint8_t leaves[MANY][32];

static void make_leaves(void)
{
	for (size_t i = 0; i < MANY; i++) {
		uint8_t b = (uint8_t)i;

		sb_merkle_leaf(&b, 1, leaves[i]);
	}
}

static void root_of(uint64_t from, uint64_t to, uint8_t out[32])
{
	struct sb_merkle t = { 0 };

	for (uint64_t i = from; i < to; i++)
		sb_merkle_add(&t, leaves[i]);
	sb_merkle_root(&t, out);
}

static size_t make(const struct sb_merkle_range *r, size_t n, uint8_t (*out)[32])
{
	for (size_t i = 0; i < n; i++)
		root_of(r[i].from, r[i].to, out[i]);
	return n;
}

/* Each proof is good; none is with a bit changed, an element more or less, another place or size. */
TEST(inclusion)
{
	make_leaves();
	for (uint64_t n = 1; n <= MANY; n++) {
		uint8_t root[32];

		root_of(0, n, root);
		for (uint64_t m = 0; m < n; m++) {
			struct sb_merkle_range r[SB_MERKLE_PEAKS];
			uint8_t p[SB_MERKLE_PEAKS][32];
			size_t k = make(r, sb_merkle_path(m, n, r), p);
			const uint8_t(*proof)[32] = (const uint8_t(*)[32])p;

			CHECK(sb_merkle_has(leaves[m], m, n, root, proof, k));
			CHECK(!sb_merkle_has(leaves[(m + 1) % MANY], m, n, root, proof, k));
			CHECK(!sb_merkle_has(leaves[m], m, n, leaves[(m + 2) % MANY], proof, k) || n == 1);
			CHECK(k == 0 || !sb_merkle_has(leaves[m], m, n, root, proof, k - 1));
			memset(p[k], 7, 32);
			CHECK(!sb_merkle_has(leaves[m], m, n, root, proof, k + 1));
			CHECK(!sb_merkle_has(leaves[m], n, n, root, proof, k));
			for (size_t i = 0; i < k; i++) {
				p[i][i % 32] ^= 1;
				CHECK(!sb_merkle_has(leaves[m], m, n, root, proof, k));
				p[i][i % 32] ^= 1;
			}
		}
	}
}

TEST(consistency)
{
	make_leaves();
	for (uint64_t n = 1; n <= MANY; n++) {
		uint8_t root[32];

		root_of(0, n, root);
		for (uint64_t m = 1; m <= n; m++) {
			struct sb_merkle_range r[SB_MERKLE_PEAKS];
			uint8_t p[SB_MERKLE_PEAKS][32];
			uint8_t old[32];
			size_t k = make(r, sb_merkle_growth(m, n, r), p);
			const uint8_t(*proof)[32] = (const uint8_t(*)[32])p;

			root_of(0, m, old);
			CHECK(sb_merkle_grew(m, old, n, root, proof, k));
			CHECK(!sb_merkle_grew(0, old, n, root, proof, k));
			CHECK(!sb_merkle_grew(n + 1, old, n, root, proof, k));
			CHECK(k == 0 || !sb_merkle_grew(m, old, n, root, proof, k - 1));
			old[3] ^= 1;
			CHECK(!sb_merkle_grew(m, old, n, root, proof, k));
			old[3] ^= 1;
			for (size_t i = 0; i < k; i++) {
				p[i][i % 32] ^= 1;
				CHECK(!sb_merkle_grew(m, old, n, root, proof, k));
				p[i][i % 32] ^= 1;
			}
		}
	}
}
