/* The boot record: whole, in pieces, wrong in every byte; and every call that can fail. */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "conn/boot.h"
#include "plan_text.h"
#include "t.h"

static const char plan[] = PLAN_WHOLE;

static const uint8_t env[2] = "1"; /* of A, with its NUL */
static const uint8_t session[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
#define HEAD (8 + 4 + 4 + 16 + SB_SIGN_LEN + SB_PSK_LEN)

struct fix {
	uint8_t pub[SB_SIGN_PUBLIC_LEN];
	uint8_t *rec;
	size_t len;
};

static bool make(struct fix *f)
{
	static const uint8_t psk[SB_PSK_LEN] = { 1, 2, 3 };
	uint8_t sec[SB_SIGN_SECRET_LEN];
	uint8_t sig[SB_SIGN_LEN];

	if (sb_crypto_init() < 0)
		return false;
	sb_sign_keypair(f->pub, sec);
	sb_sign(plan, sizeof(plan) - 1, sec, sig);
	return sb_boot_write(&(struct sb_boot_parts){ plan, sizeof(plan) - 1, env, sizeof(env),
						      session, sig, psk },
			     &f->rec, &f->len) == 0;
}

static int feed(const struct fix *f, const uint8_t *p, size_t len, uint64_t now, struct sb_boot *b,
		size_t *left)
{
	int sv[2];
	char rest[16];
	int r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sv) < 0)
		return -errno;
	(void)!write(sv[0], p, len);
	(void)shutdown(sv[0], SHUT_WR);
	r = sb_boot_read(sv[1], f->pub, now, 1000, b, NULL);
	if (left) {
		ssize_t n = read(sv[1], rest, sizeof(rest));

		*left = n < 0 ? 0 : (size_t)n;
	}
	(void)close(sv[0]);
	(void)close(sv[1]);
	return r;
}

TEST(round_trip_takes_no_byte_more)
{
	struct fix f;
	struct sb_boot b;
	uint8_t *more;
	size_t left = 0;
	uint8_t digest[SB_SHA256_LEN];
	uint8_t prologue[SB_PROLOGUE_LEN];

	REQUIRE(make(&f));
	more = malloc(f.len + 3);
	REQUIRE(more);
	memcpy(more, f.rec, f.len);
	memcpy(more + f.len, "xyz", 3);
	REQUIRE(feed(&f, more, f.len + 3, 1500, &b, &left) == 0);
	CHECK_EQ(left, 3);
	CHECK_EQ(b.psk[2], 3);
	CHECK_EQ(b.session[15], 15);
	CHECK_EQ(b.plan->cpus, 2);
	REQUIRE(b.plan->n_env == 1 && b.plan->env[0].value);
	CHECK_STR(b.plan->env[0].value, "1");
	sb_sha256(plan, sizeof(plan) - 1, digest);
	CHECK_MEM(b.plan_sha256, digest, sizeof(digest));
	sb_boot_prologue(b.session, b.plan_sha256, prologue);
	CHECK_MEM(prologue, "sendbox-channel-1\0\1\2", 20);
	sb_boot_done(&b);
	free(more);
	free(f.rec);
}

TEST(expiry_and_ends)
{
	struct fix f;
	struct sb_boot b;

	REQUIRE(make(&f));
	CHECK_EQ(feed(&f, f.rec, f.len, 2001, &b, NULL), -EKEYEXPIRED);
	CHECK_EQ(feed(&f, f.rec, f.len, 699, &b, NULL), -EKEYREJECTED); /* made in the future */
	CHECK_EQ(feed(&f, f.rec, f.len, 700, &b, NULL), 0);
	sb_boot_done(&b);
	CHECK_EQ(feed(&f, f.rec, f.len, 0, &b, NULL), 0);
	sb_boot_done(&b);
	for (size_t n = 0; n < f.len; n += 13)
		CHECK_EQ(feed(&f, f.rec, n, 1500, &b, NULL), -EBADMSG);
	free(f.rec);
}

TEST(no_writer_times_out)
{
	struct fix f;
	struct sb_boot b;
	int sv[2];

	REQUIRE(make(&f));
	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, sv) == 0);
	CHECK_EQ(sb_boot_read(sv[1], f.pub, 0, 30, &b, NULL), -ETIMEDOUT);
	CHECK_EQ(write(sv[0], f.rec, 50), 50);
	CHECK_EQ(sb_boot_read(sv[1], f.pub, 0, 30, &b, NULL), -ETIMEDOUT);
	(void)close(sv[0]);
	(void)close(sv[1]);
	free(f.rec);
}

TEST(every_byte_counts)
{
	struct fix f;
	struct sb_boot b;

	REQUIRE(make(&f));
	for (size_t i = 0; i < f.len; i++) {
		int r;

		if (i >= HEAD - SB_PSK_LEN && i < HEAD)
			continue; /* the key is proved by the handshake */
		f.rec[i] ^= 0x20;
		r = feed(&f, f.rec, f.len, 1500, &b, NULL);
		CHECK(r == -EBADMSG || r == -EKEYREJECTED);
		f.rec[i] ^= 0x20;
	}
	/* a length that no plan has is refused before a byte of it is awaited */
	memset(f.rec + 8, 0xff, 4);
	CHECK_EQ(feed(&f, f.rec, HEAD, 1500, &b, NULL), -EBADMSG);
	free(f.rec);
}

TEST(failure_at_every_call)
{
	uint8_t sig[SB_SIGN_LEN] = { 0 };
	uint8_t psk[SB_PSK_LEN] = { 0 };
	struct fix f;
	int fds = t_open_fds();

	REQUIRE(make(&f));
	T_EVERY_FAULT(n)
	{
		uint8_t *rec = NULL;
		struct sb_boot b = { 0 };
		size_t len = 0;
		int sv[2];
		int w;
		int r;
		bool fired;

		REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, sv) == 0);
		REQUIRE(sb_fd_write_all(sv[0], f.rec, f.len) == 0);
		t_fault_arm(n);
		w = sb_boot_write(&(struct sb_boot_parts){ plan, sizeof(plan) - 1, env, sizeof(env),
							   session, sig, psk }, &rec, &len);
		r = sb_boot_read(sv[1], f.pub, 1500, 1000, &b, NULL);
		fired = t_fault_fired();
		CHECK((w == 0) == (rec != NULL));
		CHECK((r == 0) == (b.plan != NULL));
		CHECK(fired == (w < 0 || r < 0));
		if (r == 0)
			sb_boot_done(&b);
		free(rec);
		(void)close(sv[0]);
		(void)close(sv[1]);
		CHECK_EQ(t_open_fds(), fds);
		if (!fired)
			break;
	}
	free(f.rec);
}
