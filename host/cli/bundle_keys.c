#include "bundle_keys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "crypto/crypto.h"

#define FLOOR "floor"

static int read_key(int dirfd, const char *path, bool secret, char buf[65], size_t *ret_len,
		    struct sb_err *err)
{
	sb_autofd int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK |
						       O_NOCTTY);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return sb_err_set(err, -errno, "cannot open the key %.200s: %s", path,
				  strerror(errno));
	if (!S_ISREG(st.st_mode) || (st.st_uid != 0 && st.st_uid != geteuid()) ||
	    (st.st_mode & (secret ? 077 : 022)) != 0)
		return sb_err_set(err, -EPERM, "the key %.200s must be a regular file of the caller "
				  "or of root that no other user can %s", path,
				  secret ? "read (mode 0600)" : "write");
	if (st.st_size < 32 || st.st_size > 65)
		return sb_err_set(err, -EBADMSG, "%.200s is no Ed25519 key", path);
	r = sb_fd_read_all(fd, buf, (size_t)st.st_size);
	if (r < 0)
		return sb_err_set(err, r, "cannot read %.200s: %s", path, strerror(-r));
	*ret_len = (size_t)st.st_size;
	return 0;
}

int bundle_key_public(int dirfd, const char *path, uint8_t ret[32], struct sb_err *err)
{
	char buf[66] = { 0 };
	uint8_t key[32];
	size_t len;
	int r = read_key(dirfd, path, false, buf, &len, err);

	if (r < 0)
		return r;
	if (len == 32) {
		memcpy(ret, buf, 32);
		return 0;
	}
	if (len == 65 && buf[64] == '\n')
		buf[64] = '\0';
	if (sb_hex_parse(buf, key, sizeof(key)) < 0)
		return sb_err_set(err, -EBADMSG, "%.200s is no public key: want 64 lower-case hex "
				  "digits, or 32 bytes", path);
	memcpy(ret, key, sizeof(key));
	return 0;
}

int bundle_key_secret(const char *path, uint8_t ret[64], struct sb_err *err)
{
	char buf[66] = { 0 };
	uint8_t pub[32];
	size_t len;
	int r = read_key(AT_FDCWD, path, true, buf, &len, err);

	if (r < 0)
		return r;
	if (len == 64)
		sb_sign_public((const uint8_t *)buf, pub);
	if (len != 64 || !sb_equal_ct(buf + 32, pub, 32))
		r = sb_err_set(err, -EBADMSG, "%.200s is no signing key: want 64 bytes, the seed and "
			       "the public key that belongs to it", path);
	else
		memcpy(ret, buf, 64);
	sb_wipe(buf, sizeof(buf));
	return r;
}

static bool ends_in_pub(const char *s)
{
	size_t n = strlen(s);

	return n > 4 && s[0] != '.' && strcmp(s + n - 4, ".pub") == 0;
}

int bundle_keys_trusted(const struct sb_dirs *d, const uint8_t pub[32],
			uint8_t ret[SB_BUNDLE_MAX_KEYS][32], struct sb_err *err)
{
	char path[4200];
	const struct dirent *e;
	int n = 1;
	int r = 0;
	DIR *dir;
	int fd;

	memcpy(ret[0], pub, 32);
	(void)snprintf(path, sizeof(path), "%s/keys", d->config);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT ? n
				       : sb_err_set(err, -errno, "cannot open %.300s: %s", path,
						    strerror(errno));
	dir = fdopendir(fd);
	if (!dir) {
		r = -errno;
		sb_fd_close(&fd);
		return sb_err_set(err, r, "cannot read %.300s: %s", path, strerror(-r));
	}
	while (r == 0 && (e = readdir(dir))) {
		if (!ends_in_pub(e->d_name))
			continue;
		if (n == SB_BUNDLE_MAX_KEYS)
			r = sb_err_set(err, -E2BIG, "more than %d keys in %.300s",
				       SB_BUNDLE_MAX_KEYS - 1, path);
		else
			r = bundle_key_public(fd, e->d_name, ret[n++], err);
	}
	(void)closedir(dir);
	return r < 0 ? r : n;
}

/* ---- floor ---- */

static int open_state(const struct sb_dirs *d, struct sb_err *err)
{
	int fd = open(d->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	return fd < 0 ? sb_err_set(err, -errno, "cannot open %.300s: %s", d->state, strerror(errno))
		      : fd;
}

static int floor_read(int dir, const struct sb_dirs *d, uint64_t *ret, struct sb_err *err)
{
	sb_autofree char *text = NULL;
	uint64_t v = 0;
	size_t len;
	int r = sb_fd_read_own(dir, FLOOR, 32, &text, &len);

	if (r == -ENOENT) {
		*ret = 0;
		return 0;
	}
	if (r < 0 && r != -EFBIG)
		return sb_err_set(err, r, "cannot read %.300s/" FLOOR ": %s", d->state,
				  r == -EPERM ? SB_FD_NOT_OWN : strerror(-r));
	if (r == 0 && len > 1 && text[len - 1] == '\n')
		text[len - 1] = '\0';
	if (r < 0 || strlen(text) + 1 != len || sb_num_u64(text, 0, SB_BUNDLE_SEQUENCE_MAX, &v) < 0)
		return sb_err_set(err, -EBADMSG, "%.300s/" FLOOR " is damaged: it must hold the lowest "
				  "release sequence that this host accepts, in decimal", d->state);
	*ret = v;
	return 0;
}

int bundle_floor_get(const struct sb_dirs *d, uint64_t *ret, struct sb_err *err)
{
	sb_autofd int dir = open_state(d, err);

	return dir < 0 ? dir : floor_read(dir, d, ret, err);
}

int bundle_floor_raise(const struct sb_dirs *d, uint64_t to, struct sb_err *err)
{
	sb_autofd int dir = open_state(d, err);
	uint64_t now;
	char text[32];
	int r;

	if (dir < 0)
		return dir;
	if (flock(dir, LOCK_EX) < 0) /* two starts at once: none may lower what the other wrote */
		return sb_err_set(err, -errno, "cannot lock %.300s: %s", d->state, strerror(errno));
	r = floor_read(dir, d, &now, err);
	if (r < 0 || now >= to)
		return r;
	(void)snprintf(text, sizeof(text), "%llu\n", (unsigned long long)to);
	r = sb_fd_write_file(dir, FLOOR, text, strlen(text), 0600);
	return r < 0 ? sb_err_set(err, r, "cannot write %.300s/" FLOOR ": %s", d->state,
				  strerror(-r))
		     : 0;
}
