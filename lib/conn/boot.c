/*
 * Boot record: "SBBOOT2\0", u32 LE length of the plan, u32 LE length of the environment's values,
 * session, signature, session key, plan bytes, values. The reader takes not one byte more than the
 * record, because the handshake follows on the same carrier. The plan is parsed only after its
 * signature was found good, and each value is compared with its digest in the plan.
 */
#include "conn/boot.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "conn/plan_env.h"
#include "conn/plan_fd.h"
#include "os/loop.h"

#define MAGIC "SBBOOT2" /* with its NUL */
#define MAGIC_LEN 8
#define HEAD_LEN (MAGIC_LEN + 4 + 4 + 16 + SB_SIGN_LEN + SB_PSK_LEN)
#define CHR_RETRY_MS 10

int sb_boot_write(const struct sb_boot_parts *in, uint8_t **ret, size_t *ret_len)
{
	size_t len = HEAD_LEN + in->plan_len + in->env_len;
	struct sb_buf b;
	uint8_t *p;

	if (in->plan_len == 0 || in->plan_len > SB_PLAN_MAX_BYTES ||
	    in->env_len > SB_PLAN_MAX_ARG_BYTES)
		return -EINVAL;
	/* one allocation of the right size: a key must not stay behind in a freed smaller one */
	p = malloc(len);
	if (!p)
		return -ENOMEM;
	sb_buf_init(&b, len);
	b.data = p;
	b.room = len;
	sb_buf_add(&b, MAGIC, MAGIC_LEN);
	sb_buf_add_le32(&b, (uint32_t)in->plan_len);
	sb_buf_add_le32(&b, (uint32_t)in->env_len);
	sb_buf_add(&b, in->session, 16);
	sb_buf_add(&b, in->signature, SB_SIGN_LEN);
	sb_buf_add(&b, in->psk, SB_PSK_LEN);
	sb_buf_add(&b, in->plan, in->plan_len);
	sb_buf_add(&b, in->env, in->env_len);
	sb_assert(!sb_buf_error(&b) && b.data == p && b.len == len);
	*ret = p;
	*ret_len = len;
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

struct head {
	uint32_t plan_len;
	uint32_t env_len;
	const uint8_t *session;
	const uint8_t *signature;
	const uint8_t *psk;
};

/* The lengths are checked before memory is taken for them. */
static int parse_head(const uint8_t bytes[HEAD_LEN], struct head *ret)
{
	struct sb_rd rd = { .p = bytes, .len = HEAD_LEN };
	const uint8_t *magic = sb_rd_bytes(&rd, MAGIC_LEN);

	ret->plan_len = sb_rd_le32(&rd);
	ret->env_len = sb_rd_le32(&rd);
	ret->session = sb_rd_bytes(&rd, 16);
	ret->signature = sb_rd_bytes(&rd, SB_SIGN_LEN);
	ret->psk = sb_rd_bytes(&rd, SB_PSK_LEN);
	if (sb_rd_end(&rd) < 0 || memcmp(magic, MAGIC, MAGIC_LEN) != 0 || ret->plan_len == 0 ||
	    ret->plan_len > SB_PLAN_MAX_BYTES || ret->env_len > SB_PLAN_MAX_ARG_BYTES)
		return -EBADMSG;
	return 0;
}

static int verify(const struct head *h, const uint8_t *body, const uint8_t *pub,
		  uint64_t now_unix_s, struct sb_boot *ret, struct sb_err *err)
{
	const struct sb_plan_expect x = { .signature = h->signature, .public_key = pub,
					  .session = h->session, .now_unix_s = now_unix_s };
	struct sb_plan *plan = NULL;
	int r = sb_plan_verify((const char *)body, h->plan_len, &x, &plan, err);

	if (r == 0)
		r = sb_plan_env_fill(plan, body + h->plan_len, h->env_len, err);
	if (r < 0) {
		(void)sb_plan_free(plan);
		return r;
	}
	*ret = (struct sb_boot){ .plan = plan };
	sb_sha256(body, h->plan_len, ret->plan_sha256);
	memcpy(ret->session, plan->session, sizeof(ret->session));
	memcpy(ret->psk, h->psk, SB_PSK_LEN);
	return 0;
}

int sb_boot_read(int fd, const uint8_t pub[SB_SIGN_PUBLIC_LEN], uint64_t now_unix_s,
		 int timeout_ms, struct sb_boot *ret, struct sb_err *err)
{
	uint64_t until = timeout_ms > 0 ? now_ms() + (uint64_t)timeout_ms : 0;
	uint8_t head[HEAD_LEN];
	struct head h = { 0 };
	uint8_t *body;
	struct stat st;
	size_t len;
	int r;

	if (fstat(fd, &st) < 0)
		return sb_err_set(err, -errno, "carrier: fstat: errno %d", errno);
	r = read_exact(fd, S_ISCHR(st.st_mode), head, sizeof(head), until);
	if (r < 0)
		return sb_err_set(err, r, "boot record: errno %d", -r);
	if (parse_head(head, &h) < 0)
		return sb_err_set(err, -EBADMSG, "boot record: malformed");
	len = (size_t)h.plan_len + h.env_len;
	body = malloc(len);
	if (!body)
		return sb_err_set(err, -ENOMEM, "boot record: no memory");
	r = read_exact(fd, S_ISCHR(st.st_mode), body, len, until);
	if (r < 0)
		r = sb_err_set(err, r, "boot record: errno %d", -r);
	else
		r = verify(&h, body, pub, now_unix_s, ret, err);
	sb_wipe(body, len);
	free(body);
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
