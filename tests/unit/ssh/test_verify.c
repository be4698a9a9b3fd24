/* Host signatures that OpenSSH's sshd made, of each kind, and what is made of them. */
#include "crypto/crypto.h"
#include "crypto/pk.h"
#include "ssh/ssh.h"
#include "ssh_vectors.h"
#include "t.h"

#define STR(a) { (a), sizeof(a) }

TEST(known_answers)
{
	CHECK_EQ(sb_crypto_init(), 0);
	CHECK_EQ(sb_pk_init(), 0);
}

TEST(host_signatures)
{
	static const struct sb_ssh_str m[] = { STR(ed25519_bind), STR(ecdsa_bind), STR(rsa_bind) };

	for (size_t i = 0; i < 3; i++) {
		struct sb_ssh_request q = { 0 };
		struct sb_ssh_request forged;
		uint8_t copy[2048];

		REQUIRE(m[i].len <= sizeof(copy));
		REQUIRE(sb_ssh_request(&m[i], &q) == 0);
		CHECK(bind_verified(&q));
		/* every single bit of key, session and signature counts */
		for (size_t at = (size_t)(q.host_key.p - m[i].p); at + 1 < m[i].len; at += 7) {
			const struct sb_ssh_str s = { copy, m[i].len };

			memcpy(copy, m[i].p, m[i].len);
			copy[at] ^= 1;
			if (sb_ssh_request(&s, &forged) == 0 && forged.kind == SB_SSH_BIND)
				CHECK(!bind_verified(&forged));
		}
	}
}

TEST(of_another_host)
{
	const struct sb_ssh_str a = STR(ed25519_bind);
	const struct sb_ssh_str b = STR(ecdsa_bind);
	struct sb_ssh_request one = { 0 };
	struct sb_ssh_request two = { 0 };

	REQUIRE(sb_ssh_request(&a, &one) == 0 && sb_ssh_request(&b, &two) == 0);
	two.session = one.session; /* signed by one, said to be of two */
	CHECK(!bind_verified(&two));
	two.signature = one.signature;
	CHECK(!bind_verified(&two));
}
