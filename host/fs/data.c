/* Contents and extended attributes. */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "fs/fs.h"

#define XATTR_MAX (64U << 10)
#define COPY_MAX (64U << 20) /* one request; the guest goes on with the rest */

void fs_op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct fs *fs = fs_of(req);
	struct fs_node *n = fs_node_get(fs, ino);
	int fd = n ? fs_node_data(fs, n, false) : -ESTALE;
	ssize_t len;

	(void)fi;
	if (fd < 0) {
		(void)fuse_reply_err(req, -fd);
		return;
	}
	len = pread(fd, fs->data_buf, SB_MIN(size, FS_MAX_IO), off);
	if (len < 0) /* EBADF: only writing is allowed */
		(void)fuse_reply_err(req, errno == EBADF ? EACCES : errno);
	else
		(void)fuse_reply_buf(req, fs->data_buf, (size_t)len);
}

void fs_op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
		 struct fuse_file_info *fi)
{
	struct fs *fs = fs_of(req);
	struct fs_node *n = fs_node_get(fs, ino);
	int fd = n ? fs_node_data(fs, n, true) : -ESTALE;
	struct fs_charge charge;
	size_t done = 0;
	int r = SB_MIN(fd, 0);

	(void)fi;
	if (r == 0 && off < 0)
		r = -EINVAL;
	if (r == 0)
		r = fs_quota_begin(fs, fd, (uint64_t)off, size, &charge);
	if (r < 0) {
		(void)fuse_reply_err(req, -r);
		return;
	}
	while (done < size) {
		ssize_t w = pwrite(fd, buf + done, size - done, off + (off_t)done);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0) {
			r = w < 0 ? -errno : -EIO;
			break;
		}
		done += (size_t)w;
	}
	fs_quota_end(fs, fd, &charge);
	fs_attr_refresh_known(fs, n);
	if (done == 0 && r < 0)
		(void)fuse_reply_err(req, -r);
	else
		(void)fuse_reply_write(req, done);
}

void fs_op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	struct fs *fs = fs_of(req);
	struct fs_node *n = fs_node_get(fs, ino);
	int fd = n ? fs_node_data(fs, n, false) : -ESTALE;

	(void)fi;
	if (fd >= 0)
		fd = (datasync ? fdatasync(fd) : fsync(fd)) < 0 ? -errno : 0;
	(void)fuse_reply_err(req, -fd);
}

void fs_op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	struct fs *fs = fs_of(req);
	struct fs_node *n = fs_node_get(fs, ino);
	sb_autofd int fd = -1;
	int r = -ESTALE;

	(void)fi;
	if (n && n->virtual)
		r = 0;
	else if (n)
		r = S_ISDIR(n->id.type) ? fs_node_fd(fs, n) : -ENOTDIR;
	if (n && !n->virtual && r >= 0) {
		fd = openat(r, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		r = fd < 0 || (datasync ? fdatasync(fd) : fsync(fd)) < 0 ? -errno : 0;
	}
	(void)fuse_reply_err(req, -r);
}

void fs_op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t len,
		     struct fuse_file_info *fi)
{
	struct fs *fs = fs_of(req);
	struct fs_node *n = fs_node_get(fs, ino);
	struct fs_charge charge;
	int fd = -ESTALE;
	int r;

	(void)fi;
	if (mode & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
		fd = -EOPNOTSUPP;
	else if (off < 0 || len <= 0)
		fd = -EINVAL;
	else if (n)
		fd = fs_node_data(fs, n, true);
	r = SB_MIN(fd, 0);
	if (r == 0)
		r = fs_quota_begin(fs, fd, (uint64_t)off,
				   mode & FALLOC_FL_PUNCH_HOLE ? 0 : (uint64_t)len, &charge);
	if (r == 0) {
		r = fallocate(fd, mode, off, len) < 0 ? -errno : 0;
		fs_quota_end(fs, fd, &charge);
		fs_attr_refresh_known(fs, n);
	}
	(void)fuse_reply_err(req, -r);
}

void fs_op_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence, struct fuse_file_info *fi)
{
	struct fs *fs = fs_of(req);
	struct fs_node *n = fs_node_get(fs, ino);
	int fd = n ? fs_node_data(fs, n, false) : -ESTALE;
	off_t at;

	(void)fi;
	if (fd >= 0 && whence != SEEK_DATA && whence != SEEK_HOLE)
		fd = -EINVAL;
	if (fd < 0) {
		(void)fuse_reply_err(req, -fd);
		return;
	}
	at = lseek(fd, off, whence);
	if (at < 0)
		(void)fuse_reply_err(req, errno);
	else
		(void)fuse_reply_lseek(req, at);
}

void fs_op_copy(fuse_req_t req, fuse_ino_t from, off_t from_off, struct fuse_file_info *fi_from,
		fuse_ino_t to, off_t to_off, struct fuse_file_info *fi_to, size_t len, int flags)
{
	struct fs *fs = fs_of(req);
	struct fs_node *a = fs_node_get(fs, from);
	struct fs_node *b = fs_node_get(fs, to);
	struct fs_charge charge;
	ssize_t done = 0;
	int in = a && b ? fs_node_data(fs, a, a == b) : -ESTALE;
	int out = in < 0 ? in : fs_node_data(fs, b, true);
	int r = SB_MIN(out, 0);

	(void)fi_from;
	(void)fi_to;
	len = SB_MIN(len, COPY_MAX);
	if (r == 0 && (flags != 0 || from_off < 0 || to_off < 0 || a->data < 0))
		r = -EINVAL;
	if (r == 0)
		r = fs_quota_begin(fs, out, (uint64_t)to_off, len, &charge);
	if (r == 0) {
		done = copy_file_range(a->data, &from_off, out, &to_off, len, 0);
		r = done < 0 ? -errno : 0;
		fs_quota_end(fs, out, &charge);
		fs_attr_refresh_known(fs, b);
	}
	if (r < 0)
		(void)fuse_reply_err(req, -r);
	else
		(void)fuse_reply_write(req, (size_t)done);
}

/* ---- extended attributes: the user's own only ---- */

static bool xattr_ours(const char *name)
{
	return strncmp(name, "user.", 5) == 0 && name[5] != '\0' && strlen(name) <= 255;
}

/* The path of the node for the *xattr calls. Return: 0; -errno. */
static int xattr_begin(struct fs *fs, uint64_t ino, bool write, struct fs_node **ret, char path[16])
{
	struct fs_node *n = fs_node_get(fs, ino);
	int r;

	if (!n)
		return -ESTALE;
	if (write) {
		r = fs_writable(fs, n);
		if (r < 0)
			return r;
	}
	if (n->virtual)
		return -ENODATA;
	if (!S_ISREG(n->id.type) && !S_ISDIR(n->id.type))
		return write ? -EPERM : -ENODATA;
	r = fs_node_fd(fs, n);
	if (r < 0)
		return r;
	fs_fd_name(r, path);
	*ret = n;
	return 0;
}

void fs_op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
		    size_t size, int flags)
{
	struct fs *fs = fs_of(req);
	struct fs_charge charge;
	struct fs_node *n;
	char path[16];
	int r = xattr_begin(fs, ino, true, &n, path);

	if (r == 0 && !xattr_ours(name))
		r = strncmp(name, "security.", 9) == 0 || strncmp(name, "trusted.", 8) == 0 ?
			    -EPERM :
			    -EOPNOTSUPP;
	if (r == 0 && (flags & ~(XATTR_CREATE | XATTR_REPLACE)))
		r = -EINVAL;
	if (r == 0) /* beyond every content: nothing of it is allocated yet */
		r = fs_quota_begin(fs, n->fd, INT64_MAX, SB_MAX(size, 1U), &charge);
	if (r == 0) {
		r = setxattr(path, name, value, size, flags) < 0 ? -errno : 0;
		fs_quota_end(fs, n->fd, &charge);
	}
	if (r == 0)
		fs_attr_refresh_known(fs, n);
	(void)fuse_reply_err(req, -r);
}

void fs_op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	struct fs *fs = fs_of(req);
	struct fs_node *n;
	char path[16];
	ssize_t len;
	int r = xattr_begin(fs, ino, false, &n, path);

	if (r == 0 && !xattr_ours(name))
		r = -ENODATA;
	if (r < 0) {
		(void)fuse_reply_err(req, -r);
		return;
	}
	size = SB_MIN(size, XATTR_MAX);
	len = getxattr(path, name, size > 0 ? fs->data_buf : NULL, size);
	if (len < 0)
		(void)fuse_reply_err(req, errno);
	else if (size == 0)
		(void)fuse_reply_xattr(req, (size_t)len);
	else
		(void)fuse_reply_buf(req, fs->data_buf, (size_t)len);
}

void fs_op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	struct fs *fs = fs_of(req);
	struct fs_node *n;
	char path[16];
	ssize_t len = 0;
	size_t out = 0;
	int r = xattr_begin(fs, ino, false, &n, path);

	if (r == 0) {
		len = listxattr(path, fs->data_buf, XATTR_MAX);
		r = len < 0 ? -errno : 0;
	}
	if (r == -ENODATA || r == -EOPNOTSUPP)
		r = 0;
	if (r < 0) {
		(void)fuse_reply_err(req, -r);
		return;
	}
	for (ssize_t at = 0; at < len;) { /* drop what is not the user's, in place */
		char *name = fs->data_buf + at;
		size_t n_len = strnlen(name, (size_t)(len - at)) + 1;

		at += (ssize_t)n_len;
		if (xattr_ours(name)) {
			memmove(fs->data_buf + out, name, n_len);
			out += n_len;
		}
	}
	if (size == 0)
		(void)fuse_reply_xattr(req, out);
	else if (out > size)
		(void)fuse_reply_err(req, ERANGE);
	else
		(void)fuse_reply_buf(req, fs->data_buf, out);
}

void fs_op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	struct fs *fs = fs_of(req);
	struct fs_charge charge;
	struct fs_node *n;
	char path[16];
	int r = xattr_begin(fs, ino, true, &n, path);

	if (r == 0 && !xattr_ours(name))
		r = -ENODATA;
	if (r == 0)
		r = fs_quota_begin(fs, n->fd, 0, 0, &charge);
	if (r == 0) {
		r = removexattr(path, name) < 0 ? -errno : 0;
		fs_quota_end(fs, n->fd, &charge);
	}
	if (r == 0)
		fs_attr_refresh_known(fs, n);
	(void)fuse_reply_err(req, -r);
}
