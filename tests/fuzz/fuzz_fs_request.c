/*
 * Requests of a hostile kernel, carried out by the session in this process on a directory of its
 * own. Input: a flag byte (options), then requests of the form {opcode u8, node u8, length u16 le,
 * that many bytes}; an opcode of 255 passes the bytes on as they are. What lies beside the served
 * directory must not change.
 */
#include <fcntl.h>
#include <ftw.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "fs/fs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static char base[64];
static uint8_t msg[FS_MSG_MAX];

static void put(const char *name, const char *text)
{
	char path[128];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", base, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	sb_assert(fd >= 0 && sb_fd_write_all(fd, text, strlen(text)) == 0);
	(void)close(fd);
}

static void check_outside(void)
{
	char path[128];
	char buf[16] = { 0 };
	struct stat st;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/out/secret", base);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	sb_assert(fd >= 0 && read(fd, buf, sizeof(buf)) == 6 && memcmp(buf, "secret", 6) == 0);
	(void)close(fd);
	sb_assert(lstat(path, &st) == 0 && (st.st_mode & 07777) == 0644 && st.st_nlink == 1);
	(void)snprintf(path, sizeof(path), "%s/out", base);
	sb_assert(lstat(path, &st) == 0 && st.st_nlink == 2);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
	(void)st;
	(void)flag;
	if (at->level > 0)
		(void)remove(path);
	return 0;
}

static void clean_up(void)
{
	if (base[0]) {
		(void)nftw(base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
		(void)rmdir(base);
	}
}

static void prepare(void)
{
	const struct rlimit most = { 1 << 20, 1 << 20 };
	char path[128];

	if (!base[0]) {
		(void)strncpy(base, "/tmp/fuzz-fs.XXXXXX", sizeof(base) - 1);
		sb_assert(mkdtemp(base));
		(void)atexit(clean_up);
		(void)umask(0);
		(void)snprintf(path, sizeof(path), "%s/out", base);
		sb_assert(mkdir(path, 0755) == 0);
		put("out/secret", "secret");
		sb_assert(chdir("/proc/self/fd") == 0);
		/* a request may ask for as much as the disk has */
		sb_assert(signal(SIGXFSZ, SIG_IGN) != SIG_ERR && setrlimit(RLIMIT_FSIZE, &most) == 0);
	}
	(void)snprintf(path, sizeof(path), "%s/share", base);
	(void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	(void)mkdir(path, 0755);
	put("share/a", "inside");
	(void)snprintf(path, sizeof(path), "%s/share/d", base);
	(void)mkdir(path, 0755);
	put("share/d/b", "b");
	(void)snprintf(path, sizeof(path), "%s/share/l", base);
	sb_assert(symlink("../out/secret", path) == 0);
	(void)snprintf(path, sizeof(path), "%s/share/ld", base);
	sb_assert(symlink("../out", path) == 0);
}

static int process(struct fs *fs, uint32_t op, uint64_t node, const void *p, size_t len)
{
	struct fuse_in_header h = { .len = (uint32_t)(sizeof(h) + len),
				    .opcode = op,
				    .unique = 77,
				    .nodeid = node };

	memcpy(msg, &h, sizeof(h));
	if (len > 0)
		memcpy(msg + sizeof(h), p, len);
	return fs_io_process(fs, msg, h.len);
}

static void serve(struct fs *fs, const uint8_t *p, size_t len)
{
	struct fuse_init_in in = { .major = 7, .minor = 37, .flags = 0x33fffffbU };

	if (process(fs, FUSE_INIT, 0, &in, sizeof(in)) < 0)
		return;
	while (len >= 4) {
		size_t n = (size_t)p[2] | (size_t)p[3] << 8;
		int r;

		n = SB_MIN(n, len - 4);
		if (p[0] == 255) {
			memcpy(msg, p + 4, n);
			r = fs_io_process(fs, msg, n);
		} else {
			r = process(fs, p[0], p[1], p + 4, n);
		}
		if (r < 0)
			return;
		p += 4 + n;
		len -= 4 + n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fs_conf conf;
	struct fs *fs = NULL;
	char path[128];
	int conn;

	if (len < 1)
		return 0;
	prepare();
	fs_conf_init(&conf);
	(void)snprintf(path, sizeof(path), "%s/share", base);
	conf.kind = FS_ROOT_DIR;
	conf.root_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	conf.map_set = true;
	conf.map = (struct fs_map){ geteuid(), getegid(), 1000, 1000 };
	conf.ro = (data[0] & 1) != 0;
	conf.quota_bytes = data[0] & 2 ? 100000 : 0;
	conf.quota_inodes = data[0] & 2 ? 5 : 0;
	conf.cache = data[0] & 4 ? FS_CACHE_LONG : FS_CACHE_SHORT;
	if (data[0] & 8)
		sb_assert(fs_conf_rule(&conf, "d/b", FS_RULE_HIDE) == 0 &&
			  fs_conf_rule(&conf, "a", FS_RULE_PROTECT) == 0);
	conn = open("/dev/null", O_RDWR | O_CLOEXEC); /* a device: an answer is one write */
	sb_assert(conf.root_fd >= 0 && conn >= 0);
	sb_assert(fs_new(&conf, &conn, &fs, NULL) == 0);
	serve(fs, data + 1, len - 1);
	(void)fs_free(fs);
	(void)close(conf.root_fd);
	fs_conf_done(&conf);
	check_outside();
	return 0;
}
