/*
 * Shape of FUSE requests. libfuse believes what the kernel of its own machine sends: it looks for
 * the NUL of a name and takes the size of a write from the header. Here the sender is hostile, so
 * every message is checked before libfuse sees it. Protocol 7.31 and later only.
 */
#include <errno.h>
#include <linux/fuse.h>
#include <string.h>

#include "fs/fs.h"

#define MIN_MINOR 31U

struct shape {
	uint16_t fixed;  /* bytes of the fixed part */
	uint8_t names;   /* NUL-terminated strings that follow it */
	bool rest;       /* a counted rest follows */
	uint8_t route;
};

static const struct shape shapes[] = {
	[FUSE_LOOKUP] = { 0, 1, false, FS_REQ_LIBFUSE },
	[FUSE_FORGET] = { sizeof(struct fuse_forget_in), 0, false, FS_REQ_LIBFUSE },
	[FUSE_GETATTR] = { sizeof(struct fuse_getattr_in), 0, false, FS_REQ_LIBFUSE },
	[FUSE_SETATTR] = { sizeof(struct fuse_setattr_in), 0, false, FS_REQ_LIBFUSE },
	[FUSE_READLINK] = { 0, 0, false, FS_REQ_LIBFUSE },
	[FUSE_SYMLINK] = { 0, 2, false, FS_REQ_LIBFUSE },
	[FUSE_MKNOD] = { sizeof(struct fuse_mknod_in), 1, false, FS_REQ_LIBFUSE },
	[FUSE_MKDIR] = { sizeof(struct fuse_mkdir_in), 1, false, FS_REQ_LIBFUSE },
	[FUSE_UNLINK] = { 0, 1, false, FS_REQ_LIBFUSE },
	[FUSE_RMDIR] = { 0, 1, false, FS_REQ_LIBFUSE },
	[FUSE_RENAME] = { sizeof(struct fuse_rename_in), 2, false, FS_REQ_LIBFUSE },
	[FUSE_LINK] = { sizeof(struct fuse_link_in), 1, false, FS_REQ_LIBFUSE },
	[FUSE_READ] = { sizeof(struct fuse_read_in), 0, false, FS_REQ_LIBFUSE },
	[FUSE_WRITE] = { sizeof(struct fuse_write_in), 0, true, FS_REQ_LIBFUSE },
	[FUSE_STATFS] = { 0, 0, false, FS_REQ_LIBFUSE },
	[FUSE_FSYNC] = { sizeof(struct fuse_fsync_in), 0, false, FS_REQ_LIBFUSE },
	[FUSE_SETXATTR] = { FUSE_COMPAT_SETXATTR_IN_SIZE, 1, true, FS_REQ_LIBFUSE },
	[FUSE_GETXATTR] = { sizeof(struct fuse_getxattr_in), 1, false, FS_REQ_LIBFUSE },
	[FUSE_LISTXATTR] = { sizeof(struct fuse_getxattr_in), 0, false, FS_REQ_LIBFUSE },
	[FUSE_REMOVEXATTR] = { 0, 1, false, FS_REQ_LIBFUSE },
	[FUSE_INIT] = { 16, 0, false, FS_REQ_LIBFUSE },
	[FUSE_READDIR] = { sizeof(struct fuse_read_in), 0, false, FS_REQ_LIBFUSE },
	[FUSE_READDIRPLUS] = { sizeof(struct fuse_read_in), 0, false, FS_REQ_LIBFUSE },
	[FUSE_FSYNCDIR] = { sizeof(struct fuse_fsync_in), 0, false, FS_REQ_LIBFUSE },
	[FUSE_INTERRUPT] = { sizeof(struct fuse_interrupt_in), 0, false, FS_REQ_DROP },
	[FUSE_DESTROY] = { 0, 0, false, FS_REQ_LIBFUSE },
	[FUSE_BATCH_FORGET] = { sizeof(struct fuse_batch_forget_in), 0, true, FS_REQ_LIBFUSE },
	[FUSE_FALLOCATE] = { sizeof(struct fuse_fallocate_in), 0, false, FS_REQ_LIBFUSE },
	[FUSE_RENAME2] = { sizeof(struct fuse_rename2_in), 2, false, FS_REQ_LIBFUSE },
	[FUSE_LSEEK] = { sizeof(struct fuse_lseek_in), 0, false, FS_REQ_LIBFUSE },
	[FUSE_COPY_FILE_RANGE] = { sizeof(struct fuse_copy_file_range_in), 0, false,
				   FS_REQ_LIBFUSE },
	[FUSE_TMPFILE] = { sizeof(struct fuse_create_in), 0, false, FS_REQ_TMPFILE },
};

enum fs_req_route fs_req_route(uint32_t opcode)
{
	if (opcode >= SB_ARRAY_LEN(shapes))
		return FS_REQ_REFUSE;
	return (enum fs_req_route)shapes[opcode].route;
}

static int check_init(const uint8_t *arg, size_t len)
{
	struct fuse_init_in in = { 0 };

	memcpy(&in, arg, SB_MIN(len, sizeof(in)));
	if (in.major != FUSE_KERNEL_VERSION || in.minor < MIN_MINOR)
		return -EBADMSG;
	if ((in.flags & FUSE_INIT_EXT) && len < sizeof(in))
		return -EBADMSG;
	return 0;
}

static int check_rest(uint32_t opcode, const uint8_t *fixed, size_t left)
{
	if (opcode == FUSE_WRITE) {
		struct fuse_write_in in;

		memcpy(&in, fixed, sizeof(in));
		return in.size <= FS_MAX_IO && in.size <= left ? 0 : -EBADMSG;
	}
	if (opcode == FUSE_SETXATTR) {
		uint32_t size;

		memcpy(&size, fixed, sizeof(size));
		return size <= left ? 0 : -EBADMSG;
	}
	if (opcode == FUSE_BATCH_FORGET) {
		struct fuse_batch_forget_in in;

		memcpy(&in, fixed, sizeof(in));
		return in.count <= left / sizeof(struct fuse_forget_one) ? 0 : -EBADMSG;
	}
	return -EBADMSG;
}

int fs_req_check(const uint8_t *msg, size_t len, bool first)
{
	struct fuse_in_header h;
	const struct shape *s;
	const uint8_t *p;
	size_t left;

	if (len < sizeof(h))
		return -EBADMSG;
	memcpy(&h, msg, sizeof(h));
	if (h.len != len || len > FS_MSG_MAX)
		return -EBADMSG;
	if (first != (h.opcode == FUSE_INIT))
		return -EBADMSG;
	if (fs_req_route(h.opcode) == FS_REQ_REFUSE)
		return h.opcode == FUSE_NOTIFY_REPLY ? -EBADMSG : 0;
	s = &shapes[h.opcode];
	p = msg + sizeof(h);
	left = len - sizeof(h);
	if (left < s->fixed)
		return -EBADMSG;
	if (h.opcode == FUSE_INIT)
		return check_init(p, left);
	p += s->fixed;
	left -= s->fixed;
	for (int i = 0; i < s->names; i++) {
		const uint8_t *nul = left > 0 ? memchr(p, 0, left) : NULL;

		if (!nul)
			return -EBADMSG;
		left -= (size_t)(nul - p) + 1;
		p = nul + 1;
	}
	if (s->rest)
		return check_rest(h.opcode, msg + sizeof(h), left);
	return 0;
}

int fs_name_check(const char *name)
{
	size_t len = strlen(name);

	if (len == 0 || strchr(name, '/'))
		return -EINVAL;
	if (name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.')))
		return -EINVAL;
	return len > FS_NAME_MAX ? -ENAMETOOLONG : 0;
}
