#include "conn/plan_fd.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_bytes(int fd, char **ret, size_t *ret_len)
{
	sb_autofree char *buf = NULL;
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size <= 0 || st.st_size > (off_t)SB_PLAN_MAX_BYTES)
		return -EFBIG;
	buf = malloc((size_t)st.st_size);
	if (!buf)
		return -ENOMEM;
	n = pread(fd, buf, (size_t)st.st_size, 0);
	if (n != st.st_size)
		return n < 0 ? -errno : -EIO;
	*ret_len = (size_t)n;
	*ret = sb_take(&buf);
	return 0;
}

int sb_plan_from_fd(int fd, const uint8_t signature[SB_SIGN_LEN],
		    const uint8_t public_key[SB_SIGN_PUBLIC_LEN], struct sb_plan **ret,
		    char **ret_bytes, size_t *ret_len, struct sb_err *err)
{
	sb_autofree char *bytes = NULL;
	size_t len;
	int r = read_bytes(fd, &bytes, &len);

	if (r < 0)
		return sb_err_set(err, r, "the plan cannot be read: %s", strerror(-r));
	if (!sb_sign_verify(bytes, len, signature, public_key))
		return sb_err_set(err, -EKEYREJECTED, "the plan's signature is not valid");
	r = sb_plan_parse(bytes, len, ret, err);
	if (r == 0 && ret_bytes) {
		*ret_bytes = sb_take(&bytes);
		*ret_len = len;
	}
	return r;
}
