#include "ssh_vectors.h"
#include "t.h"
#include "wire/ssh_agent.h"

#include <stdlib.h>

#define STR(a) { (a), sizeof(a) }

static int request(const void *p, size_t len, struct sb_ssh_request *ret)
{
	const struct sb_ssh_str s = { p, len };

	return sb_ssh_request(&s, ret);
}

TEST(frames)
{
	static const uint8_t list[] = { 0, 0, 0, 1, 11 };
	static const uint8_t two[] = { 0, 0, 0, 2, 11, 12, 0 };
	static const uint8_t empty[] = { 0, 0, 0, 0, 11 };
	static const uint8_t huge[] = { 0xff, 0xff, 0xff, 0xff, 13 };
	struct sb_ssh_str body = { 0 };

	for (size_t n = 0; n < sizeof(list); n++)
		CHECK_EQ(sb_ssh_frame(list, n, 10, &body), SB_SSH_MORE);
	REQUIRE(sb_ssh_frame(list, sizeof(list), 10, &body) == 0);
	CHECK_EQ(body.len, 1);
	CHECK(body.p == list + 4);
	REQUIRE(sb_ssh_frame(two, sizeof(two), 2, &body) == 0); /* what follows is the next one */
	CHECK_EQ(body.len, 2);
	CHECK_EQ(sb_ssh_frame(two, sizeof(two), 1, &body), -EBADMSG);
	CHECK_EQ(sb_ssh_frame(empty, sizeof(empty), 10, &body), -EBADMSG);
	CHECK_EQ(sb_ssh_frame(huge, 4, SB_SSH_REQUEST_MAX, &body), -EBADMSG);
}

TEST(list_and_others)
{
	static const uint8_t types[] = { 1, 17, 18, 19, 20, 21, 22, 23, 25, 26, 255 };
	static const uint8_t query[] = { 27, 0, 0, 0, 5, 'q', 'u', 'e', 'r', 'y' };
	static const uint8_t cut[] = { 27, 0, 0, 0, 6, 'q', 'u', 'e', 'r', 'y' };
	struct sb_ssh_request q;

	CHECK_EQ(request("\x0b", 1, &q), 0);
	CHECK_EQ(q.kind, SB_SSH_LIST);
	CHECK_EQ(request("\x0b\x00", 2, &q), -EBADMSG);
	CHECK_EQ(request("", 0, &q), -EBADMSG);
	for (size_t i = 0; i < sizeof(types); i++) {
		CHECK_EQ(request(&types[i], 1, &q), 0);
		CHECK_EQ(q.kind, SB_SSH_OTHER);
		CHECK_EQ(q.type, types[i]);
	}
	CHECK_EQ(request(query, sizeof(query), &q), 0);
	CHECK_EQ(q.kind, SB_SSH_OTHER);
	CHECK_EQ(request(cut, sizeof(cut), &q), -EBADMSG);
}

/* Every message that is cut or has a byte too much is malformed. */
static void whole_or_not(const uint8_t *p, size_t len)
{
	struct sb_ssh_request q;
	uint8_t *more = malloc(len + 1);

	REQUIRE(more);
	memcpy(more, p, len);
	more[len] = 0;
	CHECK_EQ(request(more, len + 1, &q), -EBADMSG);
	for (size_t n = 1; n < len; n++) {
		if (p[0] == SB_SSH_EXTENSION && n > 29) /* its name is there */
			CHECK_EQ(request(p, n, &q), -EBADMSG);
		else if (p[0] == SB_SSH_SIGN_REQUEST)
			CHECK_EQ(request(p, n, &q), -EBADMSG);
	}
	free(more);
}

TEST(binds)
{
	static const struct {
		struct sb_ssh_str m;
		enum sb_ssh_alg alg;
		const char *type;
		enum sb_ssh_hash hash;
	} v[] = {
		{ STR(ed25519_bind), SB_SSH_ED25519, "ssh-ed25519", SB_SSH_HASH_NONE },
		{ STR(ecdsa_bind), SB_SSH_P256, "ecdsa-sha2-nistp256", SB_SSH_SHA256 },
		{ STR(rsa_bind), SB_SSH_RSA, "ssh-rsa", SB_SSH_SHA512 },
	};

	for (size_t i = 0; i < 3; i++) {
		struct sb_ssh_request q = { 0 };
		struct sb_ssh_key k = { 0 };
		struct sb_ssh_sig s = { 0 };

		REQUIRE(sb_ssh_request(&v[i].m, &q) == 0);
		CHECK_EQ(q.kind, SB_SSH_BIND);
		CHECK(!q.forwarding);
		CHECK(q.session.len == 32 || q.session.len == 64);
		REQUIRE(sb_ssh_key(&q.host_key, &k) == 0);
		CHECK_EQ(k.alg, v[i].alg);
		CHECK(sb_ssh_is(&k.type, v[i].type));
		REQUIRE(sb_ssh_sig(&q.signature, &k, &s) == 0);
		CHECK_EQ(s.hash, v[i].hash);
		whole_or_not(v[i].m.p, v[i].m.len);
		/* a signature of one kind does not belong to a key of another */
		k.alg = k.alg == SB_SSH_RSA ? SB_SSH_ED25519 : SB_SSH_RSA;
		CHECK_EQ(sb_ssh_sig(&q.signature, &k, &s), -EBADMSG);
	}
}

TEST(a_flag_is_0_or_1)
{
	uint8_t m[sizeof(ed25519_bind)];
	struct sb_ssh_request q;

	memcpy(m, ed25519_bind, sizeof(m));
	m[sizeof(m) - 1] = 1;
	REQUIRE(request(m, sizeof(m), &q) == 0);
	CHECK(q.forwarding);
	m[sizeof(m) - 1] = 2;
	CHECK_EQ(request(m, sizeof(m), &q), -EBADMSG);
}

TEST(logins)
{
	static const struct sb_ssh_str m[] = { STR(ed25519_sign), STR(ecdsa_sign), STR(rsa_sign) };
	static const char *const algorithms[] = { "ssh-ed25519", "ecdsa-sha2-nistp256",
						  "rsa-sha2-512" };

	for (size_t i = 0; i < 3; i++) {
		struct sb_ssh_request q = { 0 };
		struct sb_ssh_userauth u = { 0 };
		struct sb_ssh_sshsig d;
		struct sb_ssh_str cut;

		REQUIRE(sb_ssh_request(&m[i], &q) == 0);
		CHECK_EQ(q.kind, SB_SSH_SIGN);
		CHECK_EQ(q.flags, i == 2 ? 4 : 0);
		REQUIRE(sb_ssh_userauth(&q.data, &u) == 0);
		CHECK(sb_ssh_is(&u.user, "root"));
		CHECK(sb_ssh_is(&u.algorithm, algorithms[i]));
		CHECK_EQ(u.key.len, q.key.len);
		CHECK_MEM(u.key.p, q.key.p, q.key.len);
		CHECK(u.host_key.len > 0);
		CHECK_EQ(sb_ssh_sshsig(&q.data, &d), -EBADMSG);
		whole_or_not(m[i].p, m[i].len);
		cut = q.data;
		while (cut.len > 0) {
			cut.len--;
			CHECK_EQ(sb_ssh_userauth(&cut, &u), -EBADMSG);
		}
	}
}

TEST(other_data_is_no_login)
{
	const struct sb_ssh_str m = STR(ed25519_sign);
	struct sb_ssh_request q = { 0 };
	struct sb_ssh_userauth u;
	uint8_t copy[1024];

	REQUIRE(sb_ssh_request(&m, &q) == 0);
	REQUIRE(q.data.len <= sizeof(copy));
	for (size_t i = 0; i < q.data.len; i++) {
		struct sb_ssh_str s = { copy, q.data.len };
		bool free_bytes;

		memcpy(copy, q.data.p, q.data.len);
		copy[i] ^= 0x80;
		free_bytes = sb_ssh_userauth(&s, &u) == 0;
		/* only what the lengths count is free: session, user, algorithm, key, host key */
		if (i < 4 || (i >= 4 + u.session.len && i < 4 + u.session.len + 5))
			CHECK(!free_bytes);
	}
}

TEST(data)
{
	const struct sb_ssh_str m = STR(data_sign);
	struct sb_ssh_request q = { 0 };
	struct sb_ssh_userauth u;
	struct sb_ssh_sshsig d = { 0 };
	struct sb_ssh_str cut;

	REQUIRE(sb_ssh_request(&m, &q) == 0);
	CHECK_EQ(sb_ssh_userauth(&q.data, &u), -EBADMSG);
	REQUIRE(sb_ssh_sshsig(&q.data, &d) == 0);
	CHECK(sb_ssh_is(&d.namespace, "git"));
	CHECK(sb_ssh_is(&d.hash, "sha512"));
	cut = q.data;
	while (cut.len > 0) {
		cut.len--;
		CHECK_EQ(sb_ssh_sshsig(&cut, &d), -EBADMSG);
	}
}

TEST(answers)
{
	const struct sb_ssh_str ids_m = STR(ed25519_ids);
	const struct sb_ssh_str signed_m = STR(ed25519_signed);
	static const uint8_t failure[] = { 5 };
	static const uint8_t many[] = { 12, 0xff, 0xff, 0xff, 0xff };
	const struct sb_ssh_str failure_m = STR(failure);
	const struct sb_ssh_str many_m = STR(many);
	struct sb_ssh_str cut = ids_m;
	struct sb_ssh_str key = { 0 };
	struct sb_ssh_str text = { 0 };
	struct sb_ssh_ids ids;

	REQUIRE(sb_ssh_ids(&ids_m, &ids) == 0);
	REQUIRE(sb_ssh_ids_next(&ids, &key, &text) == 1);
	CHECK_EQ(key.len, 51);
	CHECK(sb_ssh_is(&text, "me-ed25519"));
	CHECK_EQ(sb_ssh_ids_next(&ids, &key, &text), 0);
	while (--cut.len > 0) {
		int r = sb_ssh_ids(&cut, &ids);

		while (r == 0 && (r = sb_ssh_ids_next(&ids, &key, &text)) == 1)
			r = 0;
		CHECK_EQ(r, -EBADMSG);
	}
	CHECK_EQ(sb_ssh_ids(&many_m, &ids), -EBADMSG);
	CHECK_EQ(sb_ssh_ids(&failure_m, &ids), -EBADMSG);
	REQUIRE(sb_ssh_signed(&signed_m, &text) == 0);
	CHECK_EQ(text.len, 83);
	CHECK_EQ(sb_ssh_signed(&failure_m, &text), -EBADMSG);
	CHECK_EQ(sb_ssh_signed(&ids_m, &text), -EBADMSG);
}

static bool fits(const char *type, const char *algorithm, uint32_t flags)
{
	const struct sb_ssh_str t = { (const uint8_t *)type, strlen(type) };
	const struct sb_ssh_str a = { (const uint8_t *)algorithm, strlen(algorithm) };

	return sb_ssh_fits(&t, &a, flags);
}

TEST(algorithms)
{
	CHECK(fits("ssh-ed25519", "ssh-ed25519", 0));
	CHECK(!fits("ssh-ed25519", "ssh-ed25519", 2));
	CHECK(!fits("ssh-ed25519", "ssh-rsa", 0));
	CHECK(fits("ssh-rsa", "rsa-sha2-256", 2));
	CHECK(fits("ssh-rsa", "rsa-sha2-512", 4));
	CHECK(!fits("ssh-rsa", "rsa-sha2-512", 2));
	CHECK(!fits("ssh-rsa", "rsa-sha2-512", 6));
	CHECK(!fits("ssh-rsa", "ssh-rsa", 0)); /* SHA-1 */
	CHECK(!fits("ssh-rsa", "ssh-rsa", 2));
	CHECK(fits("ssh-rsa-cert-v01@openssh.com", "rsa-sha2-512-cert-v01@openssh.com", 4));
	CHECK(!fits("ssh-rsa-cert-v01@openssh.com", "rsa-sha2-512", 4));
	CHECK(fits("ssh-ed25519-cert-v01@openssh.com", "ssh-ed25519-cert-v01@openssh.com", 0));
}
