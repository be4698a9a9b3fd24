/* The libfuse session and the server's state. */
#include <errno.h>
#include <string.h>

#include "base/fd.h"
#include "fs/fs.h"

static void on_init(void *arg, struct fuse_conn_info *c)
{
	struct fs *fs = arg;
	unsigned int want = FUSE_CAP_ASYNC_READ | FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_READDIRPLUS |
			    FUSE_CAP_CACHE_SYMLINKS | FUSE_CAP_NO_OPEN_SUPPORT |
			    FUSE_CAP_NO_OPENDIR_SUPPORT;

	c->max_write = FS_MAX_IO;
	c->max_read = 0;
	c->max_readahead = FS_MAX_IO;
	c->max_background = 64;
	c->congestion_threshold = 48;
	c->time_gran = 1;
	if (fs->conf->cache == FS_CACHE_SHORT)
		want |= FUSE_CAP_AUTO_INVAL_DATA;
	c->want = c->capable & want;
}

/* No open, opendir, create, flush, access: io.c answers those with ENOSYS, and the guest's kernel
 * does without (locks are its own too). */
const struct fuse_lowlevel_ops fs_ops = {
	.init = on_init,
	.lookup = fs_op_lookup,
	.forget = fs_op_forget,
	.forget_multi = fs_op_forget_multi,
	.getattr = fs_op_getattr,
	.setattr = fs_op_setattr,
	.readlink = fs_op_readlink,
	.mknod = fs_op_mknod,
	.mkdir = fs_op_mkdir,
	.symlink = fs_op_symlink,
	.link = fs_op_link,
	.unlink = fs_op_unlink,
	.rmdir = fs_op_rmdir,
	.rename = fs_op_rename,
	.read = fs_op_read,
	.write = fs_op_write,
	.fsync = fs_op_fsync,
	.fsyncdir = fs_op_fsyncdir,
	.readdir = fs_op_readdir,
	.readdirplus = fs_op_readdirplus,
	.statfs = fs_op_statfs,
	.fallocate = fs_op_fallocate,
	.lseek = fs_op_lseek,
	.copy_file_range = fs_op_copy,
	.setxattr = fs_op_setxattr,
	.getxattr = fs_op_getxattr,
	.listxattr = fs_op_listxattr,
	.removexattr = fs_op_removexattr,
};

static int start_session(struct fs *fs, int *fd, struct sb_err *err)
{
	static char name[] = "sendbox-fs";
	char *argv[] = { name, NULL };
	struct fuse_args args = FUSE_ARGS_INIT(1, argv);
	static const struct fuse_custom_io io = { .writev = fs_io_writev, .read = fs_io_read };
	int r;

	r = fs_io_init(fs, *fd);
	if (r < 0)
		return sb_err_set(err, r, "cannot use the connection: %s", strerror(-r));
	fs->se = fuse_session_new(&args, &fs_ops, sizeof(fs_ops), fs);
	fuse_opt_free_args(&args); /* it made a copy of them */
	if (!fs->se)
		return sb_err_set(err, -ENOMEM, "cannot make a FUSE session");
	if (fuse_session_custom_io(fs->se, &io, *fd) < 0)
		return sb_err_set(err, -EINVAL, "cannot use the connection for FUSE");
	(void)sb_fd_take(fd); /* libfuse closes it */
	return 0;
}

int fs_new(struct fs_conf *conf, int *fd, struct fs **ret, struct sb_err *err)
{
	struct fs *fs = calloc(1, sizeof(*fs));
	int r;

	if (!fs)
		return sb_err_set(err, -ENOMEM, "no memory");
	fs->conf = conf;
	fs->notify.fd = -1;
	for (size_t i = 0; i < FS_MAX_STREAMS; i++)
		fs->streams[i].fd = -1;
	fs->data_buf = malloc(FS_MAX_IO);
	r = fs->data_buf ? fs_node_setup(fs, err) : sb_err_set(err, -ENOMEM, "no memory");
	if (r == 0)
		r = start_session(fs, fd, err);
	if (r == 0) {
		r = fs_notify_init(fs);
		if (r < 0)
			(void)sb_err_set(err, r, "no memory");
	}
	if (r < 0) {
		(void)fs_free(fs);
		return r;
	}
	fs_pin_guarded(fs);
	*ret = fs;
	return 0;
}

struct fs *fs_free(struct fs *fs)
{
	if (!fs)
		return NULL;
	if (fs->slots)
		fs_node_teardown(fs);
	for (size_t i = 0; i < FS_MAX_STREAMS; i++) {
		sb_fd_close(&fs->streams[i].fd);
		free(fs->streams[i].buf);
	}
	fs_notify_done(fs);
	if (fs->se)
		fuse_session_destroy(fs->se);
	fs_io_done(fs);
	free(fs->data_buf);
	free(fs->hidden);
	free(fs);
	return NULL;
}
