/*
 * A signed plan, changed in every way: refused by the host (memory file, plan file) and by the
 * guest (boot record) alike. What is signed again with the right key but is not canonical, for
 * another session, out of its time or of another version is refused, too.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "conn/boot.h"
#include "conn/plan_fd.h"
#include "core/plan_file.h"
#include "plan_text.h"
#include "t.h"

#define NOW 1500

static const char plan[] = PLAN_WHOLE;

static const uint8_t session[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
static uint8_t pub[SB_SIGN_PUBLIC_LEN];
static uint8_t sec[SB_SIGN_SECRET_LEN];

static bool keys(void)
{
	if (sb_crypto_init() < 0)
		return false;
	sb_sign_keypair(pub, sec);
	return true;
}

/* The three who take a plan. Return: 0 = took it. */
static int by_host(const char *p, size_t len, const uint8_t *sig, uint64_t now)
{
	const struct sb_plan_expect x = { sig, pub, session, now };
	struct sb_plan *got = NULL;
	int fd = memfd_create("plan", MFD_CLOEXEC);
	int r;

	if (fd < 0 || sb_fd_write_all(fd, p, len) < 0)
		abort();
	r = sb_plan_from_fd(fd, &x, &got, NULL, NULL, NULL);
	CHECK((r == 0) == (got != NULL));
	(void)sb_plan_free(got);
	(void)close(fd);
	return r;
}

static int by_guest(const char *p, size_t len, const uint8_t *sig, uint64_t now)
{
	static const uint8_t psk[SB_PSK_LEN] = { 1 };
	const struct sb_boot_parts in = { p, len, (const uint8_t *)"1", 2, session, sig, psk };
	struct sb_boot b = { .plan = NULL };
	uint8_t *rec;
	size_t n;
	int sv[2];
	int r;

	if (len == 0)
		return -EBADMSG; /* such a record cannot be written */
	if (sb_boot_write(&in, &rec, &n) < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, sv) < 0 ||
	    sb_fd_write_all(sv[0], rec, n) < 0)
		abort();
	r = sb_boot_read(sv[1], pub, now, 1000, &b, NULL);
	if (r == 0)
		sb_boot_done(&b);
	free(rec);
	(void)close(sv[0]);
	(void)close(sv[1]);
	return r;
}

static int both(const char *p, size_t len, const uint8_t *sig, uint64_t now)
{
	int host = by_host(p, len, sig, now);
	int guest = by_guest(p, len, sig, now);

	if ((host == 0) != (guest == 0))
		t_fail(__FILE__, __LINE__, "host %d, guest %d", host, guest);
	return host;
}

TEST(as_it_is)
{
	uint8_t sig[SB_SIGN_LEN];

	REQUIRE(keys());
	sb_sign(plan, sizeof(plan) - 1, sec, sig);
	CHECK_EQ(both(plan, sizeof(plan) - 1, sig, NOW), 0);
}

TEST(every_bit_of_plan_and_signature)
{
	uint8_t sig[SB_SIGN_LEN];
	char p[sizeof(plan)];
	size_t bad = 0;

	REQUIRE(keys());
	sb_sign(plan, sizeof(plan) - 1, sec, sig);
	memcpy(p, plan, sizeof(p));
	for (size_t bit = 0; bit < 8 * (sizeof(plan) - 1); bit++) {
		p[bit / 8] = (char)(p[bit / 8] ^ 1 << bit % 8);
		bad += both(p, sizeof(plan) - 1, sig, NOW) == 0;
		p[bit / 8] = (char)(p[bit / 8] ^ 1 << bit % 8);
	}
	for (size_t bit = 0; bit < 8 * sizeof(sig); bit++) {
		sig[bit / 8] = (uint8_t)(sig[bit / 8] ^ 1 << bit % 8);
		bad += both(plan, sizeof(plan) - 1, sig, NOW) == 0;
		sig[bit / 8] = (uint8_t)(sig[bit / 8] ^ 1 << bit % 8);
	}
	for (size_t len = 0; len < sizeof(plan) - 1; len++)
		bad += both(plan, len, sig, NOW) == 0;
	CHECK_EQ(bad, 0);
	CHECK_EQ(both(plan, sizeof(plan) - 1, sig, NOW), 0); /* nothing else was the reason */
}

TEST(every_bit_of_a_plan_file)
{
	struct sb_plan_file f = { .plan = (char *)(uintptr_t)plan, .plan_len = sizeof(plan) - 1 };
	struct sb_plan_expect x = { .session = session, .now_unix_s = NOW };
	char *text = NULL;
	size_t len = 0;
	size_t bad = 0;

	REQUIRE(keys());
	memcpy(f.key, pub, sizeof(f.key));
	sb_sign(plan, sizeof(plan) - 1, sec, f.signature);
	REQUIRE(sb_plan_file_write(&f, &text, &len) == 0);
	for (size_t bit = 0; bit <= 8 * len; bit++) {
		struct sb_plan_file got = { .plan = NULL };
		struct sb_plan *p = NULL;
		bool ok;

		if (bit < 8 * len) /* the last round is the file as it is */
			text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
		x.signature = got.signature;
		x.public_key = pub; /* trusted; the one in the file must be it */
		ok = sb_plan_file_parse(text, len, &got, NULL) == 0 &&
		     memcmp(got.key, pub, sizeof(pub)) == 0 &&
		     sb_plan_verify(got.plan, got.plan_len, &x, &p, NULL) == 0;
		bad += ok != (bit == 8 * len);
		(void)sb_plan_free(p);
		sb_plan_file_done(&got);
		if (bit < 8 * len)
			text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
	}
	CHECK_EQ(bad, 0);
	free(text);
}

/* @from becomes @to, and the result is signed with the right key. */
static int resigned(const char *from, const char *to, uint64_t now)
{
	const char *at = strstr(plan, from);
	uint8_t sig[SB_SIGN_LEN];
	char p[sizeof(plan) + 200];
	int n;

	if (!at)
		abort();
	n = snprintf(p, sizeof(p), "%.*s%s%s", (int)(at - plan), plan, to, at + strlen(from));
	sb_sign(p, (size_t)n, sec, sig);
	return both(p, (size_t)n, sig, now);
}

TEST(signed_and_yet_refused)
{
	uint8_t other_pub[SB_SIGN_PUBLIC_LEN];
	uint8_t other[SB_SIGN_SECRET_LEN];
	uint8_t sig[SB_SIGN_LEN];

	REQUIRE(keys());
	CHECK_EQ(resigned("\"cpus\":2", "\"cpus\":3", NOW), 0); /* positive control */
	CHECK_EQ(resigned(PLAN_SESSION, "100102030405060708090a0b0c0d0e0f", NOW), -EKEYREJECTED);
	CHECK_EQ(resigned("\"cpus\":2", "\"cpus\":2", 2001), -EKEYEXPIRED);
	CHECK_EQ(resigned("\"cpus\":2", "\"cpus\":2", 2000), 0);
	CHECK_EQ(resigned("\"cpus\":2", "\"cpus\":2", 699), -EKEYREJECTED); /* from the future */
	CHECK_EQ(resigned("\"cpus\":2", "\"cpus\":2", 700), 0);
	CHECK_EQ(resigned("\"version\":3}", "\"version\":2}", NOW), -EBADMSG);
	CHECK_EQ(resigned("\"version\":3}", "\"version\":4}", NOW), -EBADMSG);
	CHECK_EQ(resigned("\"version\":3}", "\"version\":3} ", NOW), -EBADMSG);
	CHECK_EQ(resigned("\"version\":3}", "\"version\":3}{}", NOW), -EBADMSG);
	CHECK_EQ(resigned("\"user\":\"user\",\"version\":3}", "\"version\":3,\"user\":\"user\"}", NOW),
		 -EBADMSG);
	CHECK_EQ(resigned("\"cpus\":2", "\"cpus\":2,\"cpus\":2", NOW), -EBADMSG);
	CHECK_EQ(resigned("\"cpus\":2", "\"cpus\":2,\"cpus\":3", NOW), -EBADMSG);
	CHECK_EQ(resigned("\"uid\":1000", "\"uid\":0", NOW), -EBADMSG);
	CHECK_EQ(resigned("\"cpus\":2,", "\"cpus\":2,\"zzz\":1,", NOW), -EBADMSG);
	sb_sign_keypair(other_pub, other);
	sb_sign(plan, sizeof(plan) - 1, other, sig);
	CHECK_EQ(both(plan, sizeof(plan) - 1, sig, NOW), -EKEYREJECTED);
}
