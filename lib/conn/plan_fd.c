#include "conn/plan_fd.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conn/plan_env.h"

static int read_bytes(int fd, off_t min, size_t max, char **ret, size_t *ret_len)
{
	sb_autofree char *buf = NULL;
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size < min || st.st_size > (off_t)max)
		return -EFBIG;
	buf = malloc((size_t)st.st_size + 1);
	if (!buf)
		return -ENOMEM;
	n = pread(fd, buf, (size_t)st.st_size, 0);
	if (n != st.st_size)
		return n < 0 ? -errno : -EIO;
	*ret_len = (size_t)n;
	*ret = sb_take(&buf);
	return 0;
}

int sb_plan_verify(const char *bytes, size_t len, const struct sb_plan_expect *x,
		   struct sb_plan **ret, struct sb_err *err)
{
	sb_autoplan struct sb_plan *p = NULL;
	int r;

	if (!sb_sign_verify(bytes, len, x->signature, x->public_key))
		return sb_err_set(err, -EKEYREJECTED, "the plan's signature is not valid");
	r = sb_plan_parse(bytes, len, &p, err);
	if (r < 0)
		return r;
	if (x->session && memcmp(x->session, p->session, sizeof(p->session)) != 0)
		return sb_err_set(err, -EKEYREJECTED, "the plan is of another session");
	if (x->now_unix_s != 0)
		r = sb_plan_check_time(p, x->now_unix_s, err);
	if (r == 0)
		*ret = sb_take(&p);
	return r;
}

int sb_plan_from_fd(int fd, const struct sb_plan_expect *x, struct sb_plan **ret,
		    char **ret_bytes, size_t *ret_len, struct sb_err *err)
{
	sb_autofree char *bytes = NULL;
	size_t len;
	int r = read_bytes(fd, 1, SB_PLAN_MAX_BYTES, &bytes, &len);

	if (r < 0)
		return sb_err_set(err, r, "the plan cannot be read: %s", strerror(-r));
	r = sb_plan_verify(bytes, len, x, ret, err);
	if (r == 0 && ret_bytes) {
		*ret_bytes = sb_take(&bytes);
		*ret_len = len;
	}
	return r;
}

int sb_plan_env_from_fd(int fd, struct sb_plan *p, struct sb_err *err)
{
	char *block = NULL;
	size_t len = 0;
	int r = read_bytes(fd, 0, SB_PLAN_MAX_ARG_BYTES, &block, &len);

	if (r < 0)
		return sb_err_set(err, r, "the environment cannot be read: %s", strerror(-r));
	r = sb_plan_env_fill(p, (const uint8_t *)block, len, err);
	sb_wipe(block, len);
	free(block);
	return r;
}
