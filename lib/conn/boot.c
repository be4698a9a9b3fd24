/*
 * Boot record: "SBBOOT1\0", u32 LE length of the plan, signature, session key, plan bytes. The
 * reader takes not one byte more than the record, because the handshake follows on the same
 * carrier. The plan is parsed only after its signature was found good.
 */
#include "conn/boot.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "os/loop.h"

#define MAGIC "SBBOOT1" /* with its NUL */
#define MAGIC_LEN 8
#define HEAD_LEN (MAGIC_LEN + 4 + SB_SIGN_LEN + SB_PSK_LEN)
#define CHR_RETRY_MS 10

int sb_boot_write(const char *plan, size_t plan_len, const uint8_t sig[SB_SIGN_LEN],
		  const uint8_t psk[SB_PSK_LEN], uint8_t **ret, size_t *ret_len)
{
	struct sb_buf b;
	uint8_t *p;

	if (plan_len == 0 || plan_len > SB_PLAN_MAX_BYTES)
		return -EINVAL;
	/* one allocation of the right size: a key must not stay behind in a freed smaller one */
	p = malloc(HEAD_LEN + plan_len);
	if (!p)
		return -ENOMEM;
	sb_buf_init(&b, HEAD_LEN + plan_len);
	b.data = p;
	b.room = HEAD_LEN + plan_len;
	sb_buf_add(&b, MAGIC, MAGIC_LEN);
	sb_buf_add_le32(&b, (uint32_t)plan_len);
	sb_buf_add(&b, sig, SB_SIGN_LEN);
	sb_buf_add(&b, psk, SB_PSK_LEN);
	sb_buf_add(&b, plan, plan_len);
	sb_assert(!sb_buf_error(&b) && b.data == p && b.len == HEAD_LEN + plan_len);
	*ret = p;
	*ret_len = b.len;
	return 0;
}

static uint64_t now_ms(void)
{
	return sb_now_ns() / 1000000U;
}

/* Wait until @fd is readable or @until passed (0 = for ever). Return: 0; -EAGAIN: look again;
 * -ETIMEDOUT; -errno. */
static int wait_readable(int fd, uint64_t until, bool no_peer)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t now = now_ms();
	int left = -1;
	int r;

	if (until > 0) {
		if (now >= until)
			return -ETIMEDOUT;
		left = (int)SB_MIN(until - now, (uint64_t)3600000);
	}
	if (no_peer) { /* such a port polls as hung up: sleep instead */
		r = poll(NULL, 0, left < 0 ? CHR_RETRY_MS : SB_MIN(left, CHR_RETRY_MS));
		return r < 0 && errno != EINTR ? -errno : 0;
	}
	r = poll(&p, 1, left);
	if (r < 0 && errno != EINTR)
		return -errno;
	return r > 0 ? 0 : -EAGAIN; /* the descriptor may be a blocking one */
}

static int read_exact(int fd, bool chr, uint8_t *p, size_t len, uint64_t until)
{
	bool no_peer = false;

	while (len > 0) {
		int r = wait_readable(fd, until, no_peer);
		ssize_t n;

		if (r == -EAGAIN)
			continue;
		if (r < 0)
			return r;
		n = read(fd, p, len);
		no_peer = n == 0 && chr;
		if (n == 0 && !chr)
			return -EBADMSG;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (n > 0) {
			p += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

static int verify(struct sb_boot *b, const uint8_t sig[SB_SIGN_LEN], const char *plan, size_t len,
		  const uint8_t pub[SB_SIGN_PUBLIC_LEN], uint64_t now_unix_s, struct sb_err *err)
{
	int r;

	if (!sb_sign_verify(plan, len, sig, pub))
		return sb_err_set(err, -EKEYREJECTED, "the plan's signature is not valid");
	r = sb_plan_parse(plan, len, &b->plan, err);
	if (r < 0)
		return r;
	if (now_unix_s != 0 && now_unix_s > b->plan->expires_unix_s)
		return sb_err_set(err, -EKEYEXPIRED, "the plan has expired");
	sb_sha256(plan, len, b->plan_sha256);
	memcpy(b->session, b->plan->session, sizeof(b->session));
	return 0;
}

int sb_boot_read(int fd, const uint8_t pub[SB_SIGN_PUBLIC_LEN], uint64_t now_unix_s,
		 int timeout_ms, struct sb_boot *ret, struct sb_err *err)
{
	uint64_t until = timeout_ms > 0 ? now_ms() + (uint64_t)timeout_ms : 0;
	sb_autofree char *plan = NULL;
	uint8_t head[HEAD_LEN];
	struct sb_rd rd = { .p = head, .len = sizeof(head) };
	struct sb_boot b = { 0 };
	const uint8_t *magic;
	const uint8_t *sig;
	const uint8_t *psk;
	struct stat st;
	uint32_t len;
	int r;

	if (fstat(fd, &st) < 0)
		return sb_err_set(err, -errno, "carrier: fstat: errno %d", errno);
	r = read_exact(fd, S_ISCHR(st.st_mode), head, sizeof(head), until);
	if (r < 0)
		return sb_err_set(err, r, "boot record: errno %d", -r);
	magic = sb_rd_bytes(&rd, MAGIC_LEN);
	len = sb_rd_le32(&rd);
	sig = sb_rd_bytes(&rd, SB_SIGN_LEN);
	psk = sb_rd_bytes(&rd, SB_PSK_LEN);
	if (!magic || !sig || !psk || memcmp(magic, MAGIC, MAGIC_LEN) != 0 || len == 0 ||
	    len > SB_PLAN_MAX_BYTES)
		return sb_err_set(err, -EBADMSG, "boot record: malformed");
	plan = malloc(len);
	if (!plan)
		return sb_err_set(err, -ENOMEM, "boot record: no memory");
	r = read_exact(fd, S_ISCHR(st.st_mode), (uint8_t *)plan, len, until);
	if (r < 0)
		r = sb_err_set(err, r, "boot record: errno %d", -r);
	else
		r = verify(&b, sig, plan, len, pub, now_unix_s, err);
	if (r == 0) {
		memcpy(b.psk, psk, SB_PSK_LEN);
		*ret = b;
	} else {
		b.plan = sb_plan_free(b.plan);
	}
	sb_wipe(&b, sizeof(b));
	sb_wipe(head, sizeof(head));
	return r;
}

void sb_boot_done(struct sb_boot *b)
{
	b->plan = sb_plan_free(b->plan);
	sb_wipe(b, sizeof(*b));
}

void sb_boot_prologue(const uint8_t session[16], const uint8_t plan_sha256[SB_SHA256_LEN],
		      uint8_t out[SB_PROLOGUE_LEN])
{
	static const char name[] = "sendbox-channel-1";

	_Static_assert(sizeof(name) - 1 + 16 + SB_SHA256_LEN == SB_PROLOGUE_LEN, "prologue");
	memcpy(out, name, sizeof(name) - 1);
	memcpy(out + sizeof(name) - 1, session, 16);
	memcpy(out + sizeof(name) - 1 + 16, plan_sha256, SB_SHA256_LEN);
}
