#include "audit_key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "crypto/crypto.h"
#include "dirs.h"

static int open_beneath(const char *state, const char *name, bool create, int *ret,
			struct sb_err *err)
{
	char path[4200];
	struct stat st;
	sb_autofd int fd = -1;

	(void)snprintf(path, sizeof(path), "%s/%s", state, name);
	if (create && mkdir(path, 0700) < 0 && errno != EEXIST)
		return sb_err_set(err, -errno, "cannot create %s: %s", path, strerror(errno));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0)
		return sb_err_set(err, -errno, "cannot open %s: %s", path, strerror(errno));
	if (st.st_uid != geteuid() || (st.st_mode & 022) != 0)
		return sb_err_set(err, -EPERM, "%s must belong to the caller and be written by nobody "
					       "else: run chmod 700 on it", path);
	*ret = sb_fd_take(&fd);
	return 0;
}

static int open_key(int keys, int *ret, uint8_t sec[64], struct sb_err *err)
{
	sb_autofd int fd = openat(keys, AUDIT_KEY_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	ssize_t n;

	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0 || fstat(fd, &st) < 0)
		return sb_err_set(err, -errno, "cannot open keys/" AUDIT_KEY_NAME ": %s",
				  strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0 ||
	    st.st_size != 64)
		return sb_err_set(err, -EPERM, "keys/" AUDIT_KEY_NAME " must be a file of 64 bytes, mode "
					       "0600, owned by the caller; restore it, or move it and "
					       "the audit log away to begin new ones");
	n = sb_fd_read_at(fd, sec, 64, 0);
	if (n != 64)
		return sb_err_set(err, n < 0 ? (int)n : -EBADMSG, "cannot read keys/" AUDIT_KEY_NAME);
	*ret = sb_fd_take(&fd);
	return 0;
}

static int make_key(int keys, struct sb_err *err)
{
	uint8_t pub[32];
	uint8_t sec[64];
	char tmp[64];
	int r;

	sb_sign_keypair(pub, sec);
	(void)snprintf(tmp, sizeof(tmp), "." AUDIT_KEY_NAME ".%ld", (long)getpid());
	r = sb_fd_write_file(keys, tmp, sec, sizeof(sec), 0600);
	sb_wipe(sec, sizeof(sec));
	/* two first runs at once: one key, whoever's it is */
	if (r == 0 && linkat(keys, tmp, keys, AUDIT_KEY_NAME, 0) < 0 && errno != EEXIST)
		r = -errno;
	(void)unlinkat(keys, tmp, 0);
	return r < 0 ? sb_err_set(err, r, "cannot write keys/" AUDIT_KEY_NAME ": %s", strerror(-r)) : 0;
}

int audit_open(const struct sb_dirs *d, int *ret_dir, int *ret_key, uint8_t ret_pub[32],
	       struct sb_err *err)
{
	sb_autofd int keys = -1;
	sb_autofd int dir = -1;
	sb_autofd int key = -1;
	uint8_t sec[64];
	int r = open_beneath(d->state, "keys", true, &keys, err);

	if (r == 0)
		r = open_beneath(d->state, "audit", true, &dir, err);
	if (r == 0)
		r = open_key(keys, &key, sec, err);
	if (r == -ENOENT && key < 0 && keys >= 0 && dir >= 0) {
		r = make_key(keys, err);
		if (r == 0)
			r = open_key(keys, &key, sec, err);
	}
	if (r == 0) {
		if (ret_pub)
			sb_sign_public(sec, ret_pub);
		*ret_dir = sb_fd_take(&dir);
		*ret_key = sb_fd_take(&key);
	}
	sb_wipe(sec, sizeof(sec));
	return r;
}

int audit_public(const struct sb_dirs *d, uint8_t ret[32], struct sb_err *err)
{
	sb_autofd int keys = -1;
	sb_autofd int key = -1;
	uint8_t sec[64];
	int r = open_beneath(d->state, "keys", false, &keys, err);

	if (r == 0)
		r = open_key(keys, &key, sec, err);
	if (r == -ENOENT) {
		if (err)
			*err = (struct sb_err){ 0 };
		return sb_err_set(err, r, "this host has no audit key yet: it comes with the first "
					  "session");
	}
	if (r == 0)
		sb_sign_public(sec, ret);
	sb_wipe(sec, sizeof(sec));
	return r;
}
