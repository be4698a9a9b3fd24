#include "core/ssh_policy.h"
#include "ssh_vectors.h"
#include "t.h"

#include <stdlib.h>

#define STR(a) { (a), sizeof(a) }

/* Digests stand for keys: the judge compares them and computes none. */
static const uint8_t mine[32] = { 1 };
static const uint8_t other[32] = { 2 };
static const uint8_t git[32] = { 3 };
static const uint8_t evil[32] = { 4 };

static struct sb_plan_ssh_key keys[1];
static struct sb_plan_ssh_host hosts[1];

static struct sb_plan_ssh plan(bool with_host)
{
	static char name[] = "git.example";
	static char comment[] = "work";

	keys[0].comment = comment;
	memcpy(keys[0].sha256, mine, 32);
	hosts[0].name = name;
	memcpy(hosts[0].sha256, git, 32);
	return (struct sb_plan_ssh){ .keys = keys, .n_keys = 1, .hosts = hosts,
				     .n_hosts = with_host };
}

struct rig {
	struct sb_ssh_request bind;
	struct sb_ssh_request sign;
	struct sb_ssh_userauth login;
	struct sb_ssh_ask ask;
	struct sb_ssh_binds binds;
};

/* A login that OpenSSH made, and the bind that it sent before. */
static void set_up(struct rig *r)
{
	const struct sb_ssh_str b = STR(ed25519_bind);
	const struct sb_ssh_str s = STR(ed25519_sign);

	*r = (struct rig){ 0 };
	REQUIRE(sb_ssh_request(&b, &r->bind) == 0);
	REQUIRE(sb_ssh_request(&s, &r->sign) == 0);
	REQUIRE(sb_ssh_userauth(&r->sign.data, &r->login) == 0);
	r->ask = (struct sb_ssh_ask){ .key = r->sign.key, .flags = r->sign.flags,
				      .login = &r->login };
	memcpy(r->ask.sha256, mine, 32);
	memcpy(r->ask.login_host, git, 32);
}

TEST(bound_login)
{
	const struct sb_plan_ssh p = plan(true);
	struct rig r;

	set_up(&r);
	CHECK_EQ(sb_ssh_judge_sign(&p, &r.binds, &r.ask), SB_SSH_NOT_BOUND);
	CHECK_EQ(sb_ssh_judge_bind(&p, &r.binds, &r.bind, evil), SB_SSH_HOST);
	CHECK_EQ(r.binds.n, 0);
	CHECK_EQ(sb_ssh_judge_sign(&p, &r.binds, &r.ask), SB_SSH_NOT_BOUND);
	CHECK_EQ(sb_ssh_judge_bind(&p, &r.binds, &r.bind, git), SB_SSH_OK);
	CHECK_EQ(r.binds.n, 1);
	CHECK_EQ(sb_ssh_judge_sign(&p, &r.binds, &r.ask), SB_SSH_OK);
	memcpy(r.ask.login_host, evil, 32);
	CHECK_EQ(sb_ssh_judge_sign(&p, &r.binds, &r.ask), SB_SSH_OTHER_HOST_KEY);
	r.login.host_key = (struct sb_ssh_str){ 0 }; /* plain publickey */
	CHECK_EQ(sb_ssh_judge_sign(&p, &r.binds, &r.ask), SB_SSH_OK);
	memcpy(r.ask.sha256, other, 32);
	CHECK_EQ(sb_ssh_judge_sign(&p, &r.binds, &r.ask), SB_SSH_NOT_OFFERED);
}

TEST(another_session)
{
	const struct sb_plan_ssh with = plan(true);
	const struct sb_plan_ssh without = plan(false);
	uint8_t session[64];
	struct rig r;

	set_up(&r);
	REQUIRE(r.login.session.len <= sizeof(session));
	memcpy(session, r.login.session.p, r.login.session.len);
	session[0] ^= 1;
	CHECK_EQ(sb_ssh_judge_bind(&with, &r.binds, &r.bind, git), SB_SSH_OK);
	r.login.session.p = session;
	CHECK_EQ(sb_ssh_judge_sign(&with, &r.binds, &r.ask), SB_SSH_OTHER_SESSION);
	CHECK_EQ(sb_ssh_judge_sign(&without, &r.binds, &r.ask), SB_SSH_OTHER_SESSION);
	r.login.session.p = r.bind.session.p;
	r.login.session.len--;
	CHECK_EQ(sb_ssh_judge_sign(&with, &r.binds, &r.ask), SB_SSH_OTHER_SESSION);
	r.binds.n = 0; /* no hosts, no bind: any session */
	CHECK_EQ(sb_ssh_judge_sign(&without, &r.binds, &r.ask), SB_SSH_OK);
}

TEST(binds_of_a_connection)
{
	const struct sb_plan_ssh p = plan(true);
	const struct sb_plan_ssh any = plan(false);
	uint8_t session[64] = { 0 };
	struct rig r;

	set_up(&r);
	r.bind.forwarding = true;
	CHECK_EQ(sb_ssh_judge_bind(&p, &r.binds, &r.bind, git), SB_SSH_OK);
	CHECK_EQ(sb_ssh_judge_bind(&p, &r.binds, &r.bind, git), SB_SSH_OK); /* said again */
	CHECK_EQ(r.binds.n, 1);
	CHECK_EQ(sb_ssh_judge_bind(&any, &r.binds, &r.bind, evil), SB_SSH_BIND_AGAIN);
	CHECK_EQ(sb_ssh_judge_sign(&p, &r.binds, &r.ask), SB_SSH_FORWARDED);
	CHECK_EQ(sb_ssh_judge_sign(&any, &r.binds, &r.ask), SB_SSH_OK);
	r.bind.forwarding = false;
	CHECK_EQ(sb_ssh_judge_bind(&p, &r.binds, &r.bind, git), SB_SSH_BIND_AGAIN);
	r.bind.session = (struct sb_ssh_str){ session, 32 };
	CHECK_EQ(sb_ssh_judge_bind(&p, &r.binds, &r.bind, git), SB_SSH_OK);
	session[1] = 1; /* bound for a login: no more of it */
	CHECK_EQ(sb_ssh_judge_bind(&p, &r.binds, &r.bind, git), SB_SSH_BIND_AGAIN);
	set_up(&r);
	r.bind.forwarding = true;
	r.bind.session = (struct sb_ssh_str){ session, 32 };
	for (size_t i = 0; i < SB_SSH_MAX_BINDS; i++) {
		session[0] = (uint8_t)i;
		CHECK_EQ(sb_ssh_judge_bind(&p, &r.binds, &r.bind, git), SB_SSH_OK);
	}
	session[0] = 99;
	CHECK_EQ(sb_ssh_judge_bind(&p, &r.binds, &r.bind, git), SB_SSH_TOO_MANY);
}

TEST(what_is_signed)
{
	const struct sb_ssh_str m = STR(data_sign);
	struct sb_plan_ssh p = plan(false);
	struct sb_ssh_request q = { 0 };
	struct sb_ssh_sshsig d = { 0 };
	struct rig r;
	uint8_t key[64];

	set_up(&r);
	CHECK_EQ(sb_ssh_judge_sign(&p, &r.binds, &r.ask), SB_SSH_OK);
	r.ask.flags = 2;
	CHECK_EQ(sb_ssh_judge_sign(&p, &r.binds, &r.ask), SB_SSH_WEAK);
	r.ask.flags = 0;
	REQUIRE(r.login.key.len <= sizeof(key));
	memcpy(key, r.login.key.p, r.login.key.len);
	key[r.login.key.len - 1] ^= 1; /* a login with another key than is asked to sign */
	r.login.key.p = key;
	CHECK_EQ(sb_ssh_judge_sign(&p, &r.binds, &r.ask), SB_SSH_NOT_A_LOGIN);
	r.ask.login = NULL;
	CHECK_EQ(sb_ssh_judge_sign(&p, &r.binds, &r.ask), SB_SSH_NOT_A_LOGIN);
	p.sign_data = true; /* still nothing but a signature over data in its form */
	CHECK_EQ(sb_ssh_judge_sign(&p, &r.binds, &r.ask), SB_SSH_NOT_A_LOGIN);
	REQUIRE(sb_ssh_request(&m, &q) == 0);
	REQUIRE(sb_ssh_sshsig(&q.data, &d) == 0);
	r.ask.data = &d;
	CHECK_EQ(sb_ssh_judge_sign(&p, &r.binds, &r.ask), SB_SSH_OK);
	r.ask.flags = 4;
	CHECK_EQ(sb_ssh_judge_sign(&p, &r.binds, &r.ask), SB_SSH_WEAK);
	r.ask.flags = 0;
	p.sign_data = false;
	CHECK_EQ(sb_ssh_judge_sign(&p, &r.binds, &r.ask), SB_SSH_NO_DATA);
}

TEST(names)
{
	char text[SB_SSH_FINGERPRINT];
	const uint8_t zero[32] = { 0 };

	sb_ssh_fingerprint(zero, text);
	CHECK_STR(text, "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
	for (int i = 0; i < SB_SSH_N_REASONS; i++) {
		CHECK(sb_ssh_reason_name((enum sb_ssh_reason)i) != NULL);
		for (int k = 0; k < i; k++)
			CHECK(strcmp(sb_ssh_reason_name((enum sb_ssh_reason)i),
				     sb_ssh_reason_name((enum sb_ssh_reason)k)) != 0);
	}
	CHECK(!sb_ssh_reason_name(SB_SSH_N_REASONS));
}
