/*
 * A hostile guest kernel against the real sendbox-fs: FUSE messages of every bad kind on the
 * socket. Each case has its positive control, so that a server which refuses everything fails.
 * Cases F01-F05, F08, F10-F13 of the attack list.
 */
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "t.h"

#ifndef FS_EXE
#error "FS_EXE: path of sendbox-fs"
#endif
#define OWNER 54322U

static char base[64];
static int conn = -1;
static pid_t server = -1;
static uint64_t unique;
static uint8_t answer[(1 << 20) + 8192];
static size_t answer_len;

/* ---- fixture: base/share is served, base/out is outside ---- */

static char *path(const char *rest)
{
	static char p[8][256];
	static int i;

	i = (i + 1) % 8;
	(void)snprintf(p[i], sizeof(p[i]), "%s/%s", base, rest);
	return p[i];
}

static void put(const char *rest, const char *text)
{
	int fd = open(path(rest), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (fd < 0 || sb_fd_write_all(fd, text, strlen(text)) < 0)
		perror(rest);
	(void)close(fd);
	(void)chmod(path(rest), 0666);
}

static bool holds(const char *rest, const char *text)
{
	char buf[64] = { 0 };
	int fd = open(path(rest), O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, buf, sizeof(buf) - 1);

	(void)close(fd);
	return n == (ssize_t)strlen(text) && strcmp(buf, text) == 0;
}

static bool exists(const char *rest)
{
	struct stat st;

	return lstat(path(rest), &st) == 0;
}

static void tree(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int s;

	(void)umask(0);
	(void)strncpy(base, "/tmp/fs-hostile.XXXXXX", sizeof(base) - 1);
	if (!mkdtemp(base))
		perror("mkdtemp");
	(void)chmod(base, 0777);
	(void)mkdir(path("share"), 0777);
	(void)mkdir(path("share/dir"), 0777);
	(void)mkdir(path("share/guard"), 0777);
	(void)mkdir(path("out"), 0777);
	put("out/secret", "secret");
	put("share/file", "inside");
	put("share/guard/key", "key");
	put("share/dir/f", "f");
	if (symlink("../out/secret", path("share/link")) < 0 ||
	    symlink("../out", path("share/linkdir")) < 0 ||
	    symlink(path("out/secret"), path("share/abs")) < 0 ||
	    mkfifo(path("share/fifo"), 0666) < 0)
		perror("tree");
	s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path("share/sock"));
	if (bind(s, (void *)&sa, sizeof(sa)) < 0)
		perror("bind");
	(void)close(s);
	if (geteuid() == 0) {
		static const char *const all[] = { "share", "share/dir", "share/guard", "share/file",
						   "share/guard/key", "share/dir/f" };

		for (size_t i = 0; i < SB_ARRAY_LEN(all); i++)
			if (chown(path(all[i]), OWNER, OWNER) < 0)
				perror("chown");
	}
}

static void untree(void)
{
	char cmd[4][64] = { "rm", "-rf", "--" };
	char *argv[] = { cmd[0], cmd[1], cmd[2], base, NULL };
	pid_t pid = fork();

	if (pid == 0) {
		(void)execvp("rm", argv);
		_exit(127);
	}
	(void)waitpid(pid, NULL, 0);
}

static void start(const char *const *more)
{
	const char *argv[32] = { "sendbox-fs", "--root", "4", "--map" };
	char map[64];
	char as[32];
	int sv[2];
	size_t n = 4;
	int root;
	uid_t uid = geteuid() == 0 ? OWNER : geteuid();

	tree();
	(void)snprintf(map, sizeof(map), "%u:%u:1000:1000", uid, uid);
	(void)snprintf(as, sizeof(as), "%u:%u", uid, uid);
	argv[n++] = map;
	if (geteuid() == 0) {
		argv[n++] = "--as";
		argv[n++] = as;
	}
	for (; more && *more; more++)
		argv[n++] = *more;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
		perror("socketpair");
	root = open(path("share"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	server = fork();
	if (server < 0) { /* -1 would be everybody */
		perror("fork");
		exit(1);
	}
	if (server == 0) {
		int a = fcntl(sv[1], F_DUPFD_CLOEXEC, 20);
		int b = fcntl(root, F_DUPFD_CLOEXEC, 20);

		(void)dup2(a, 3);
		(void)dup2(b, 4);
		(void)execv(FS_EXE, (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	(void)close(sv[1]);
	(void)close(root);
	conn = sv[0];
	unique = 0;
}

/* Return: how the server ended: exit status, or 1000 + signal; -1 = it had to be killed. */
static int stop(void)
{
	int status = 0;
	int r = -1;

	(void)shutdown(conn, SHUT_RDWR);
	sb_fd_close(&conn);
	for (int i = 0; i < 500; i++) {
		if (waitpid(server, &status, WNOHANG) == server) {
			r = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
			break;
		}
		(void)usleep(10000);
	}
	if (r < 0) {
		(void)kill(server, SIGKILL);
		(void)waitpid(server, NULL, 0);
	}
	untree();
	return r;
}

/* ---- messages ---- */

static int send_raw(const void *p, size_t len)
{
	const char *c = p;

	while (len > 0) {
		ssize_t n = send(conn, c, len, MSG_NOSIGNAL);

		if (n <= 0)
			return -1;
		c += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Return: 0 or the negative error of the answer; 1 = the server closed; 2 = no answer in 5 s. */
static int get_answer(void)
{
	struct fuse_out_header h;
	size_t have = 0;
	size_t want = sizeof(h);

	for (;;) {
		struct pollfd p = { .fd = conn, .events = POLLIN };
		ssize_t n;

		if (poll(&p, 1, 5000) <= 0)
			return 2;
		n = recv(conn, answer + have, want - have, 0);
		if (n <= 0)
			return 1;
		have += (size_t)n;
		if (have < want)
			continue;
		memcpy(&h, answer, sizeof(h));
		want = h.len;
		if (have < want)
			continue;
		if (h.unique == unique)
			break;
		have = 0; /* a notification */
		want = sizeof(h);
	}
	answer_len = have - sizeof(h);
	memmove(answer, answer + sizeof(h), answer_len);
	return h.error;
}

static int request(uint32_t op, uint64_t node, const void *a, size_t a_len, const void *b,
		   size_t b_len)
{
	static uint8_t msg[(1 << 20) + 8192];
	struct fuse_in_header h = { .len = (uint32_t)(sizeof(h) + a_len + b_len),
				    .opcode = op,
				    .unique = ++unique,
				    .nodeid = node,
				    .uid = 1000,
				    .gid = 1000 };

	memcpy(msg, &h, sizeof(h));
	if (a_len > 0)
		memcpy(msg + sizeof(h), a, a_len);
	if (b_len > 0)
		memcpy(msg + sizeof(h) + a_len, b, b_len);
	if (send_raw(msg, h.len) < 0)
		return 1;
	return get_answer();
}

static int init(void)
{
	struct fuse_init_in in = { .major = 7, .minor = 37, .max_readahead = 1 << 17,
				   .flags = 0x73fffffb & ~(uint32_t)FUSE_INIT_EXT };

	return request(FUSE_INIT, 0, &in, sizeof(in), NULL, 0);
}

static int look(uint64_t dir, const char *name, uint64_t *ret, uint32_t *mode)
{
	struct fuse_entry_out e;
	int r = request(FUSE_LOOKUP, dir, name, strlen(name) + 1, NULL, 0);

	if (r != 0)
		return r;
	memcpy(&e, answer, sizeof(e));
	if (e.nodeid == 0)
		return -ENOENT;
	*ret = e.nodeid;
	if (mode)
		*mode = e.attr.mode;
	return 0;
}

static int rd(uint64_t node, uint64_t off, uint32_t size)
{
	struct fuse_read_in in = { .offset = off, .size = size };

	return request(FUSE_READ, node, &in, sizeof(in), NULL, 0);
}

static int wr(uint64_t node, uint64_t off, const char *text, size_t len)
{
	struct fuse_write_in in = { .offset = off, .size = (uint32_t)len };

	return request(FUSE_WRITE, node, &in, sizeof(in), text, len);
}

static int mknode(uint64_t dir, const char *name, uint32_t mode)
{
	struct fuse_mknod_in in = { .mode = mode, .rdev = 0x103 };

	return request(FUSE_MKNOD, dir, &in, sizeof(in), name, strlen(name) + 1);
}

static int mkd(uint64_t dir, const char *name, uint32_t mode)
{
	struct fuse_mkdir_in in = { .mode = mode };

	return request(FUSE_MKDIR, dir, &in, sizeof(in), name, strlen(name) + 1);
}

static int two(uint32_t op, uint64_t dir, const void *in, size_t in_len, const char *x,
	       const char *y)
{
	char names[8192];
	size_t lx = strlen(x) + 1;
	size_t ly = strlen(y) + 1;

	memcpy(names, x, lx);
	memcpy(names + lx, y, ly);
	return request(op, dir, in, in_len, names, lx + ly);
}

static int ren(uint64_t from, const char *x, uint64_t to, const char *y, uint32_t flags)
{
	struct fuse_rename2_in in = { .newdir = to, .flags = flags };

	return two(FUSE_RENAME2, from, &in, sizeof(in), x, y);
}

static int lnk(uint64_t node, uint64_t dir, const char *name)
{
	struct fuse_link_in in = { .oldnodeid = node };

	return request(FUSE_LINK, dir, &in, sizeof(in), name, strlen(name) + 1);
}

static int set(uint64_t node, uint32_t valid, uint32_t mode, uint64_t size, uint32_t uid)
{
	struct fuse_setattr_in in = { .valid = valid, .mode = mode, .size = size, .uid = uid };

	return request(FUSE_SETATTR, node, &in, sizeof(in), NULL, 0);
}

static int xset(uint64_t node, const char *name, const char *value)
{
	uint32_t in[2] = { (uint32_t)strlen(value), 0 };
	char rest[256];
	size_t ln = strlen(name) + 1;

	memcpy(rest, name, ln);
	memcpy(rest + ln, value, in[0]);
	return request(FUSE_SETXATTR, node, in, sizeof(in), rest, ln + in[0]);
}

static int drop(uint32_t op, uint64_t dir, const char *name)
{
	return request(op, dir, name, strlen(name) + 1, NULL, 0);
}

static void forget(uint64_t node, uint64_t n)
{
	struct {
		struct fuse_in_header h;
		struct fuse_forget_in in;
	} m = { .h = { .len = sizeof(m), .opcode = FUSE_FORGET, .unique = ++unique, .nodeid = node },
		.in = { .nlookup = n } };

	(void)send_raw(&m, sizeof(m));
}

/* ---- cases ---- */

TEST(f01_names_cannot_leave)
{
	static const char *const bad[] = { "..", ".", "", "../out", "/etc/passwd", "dir/f", "dir/..",
					   "../../../etc/passwd", "./file" };
	uint64_t n;

	start(NULL);
	CHECK_EQ(init(), 0);
	CHECK_EQ(look(1, "file", &n, NULL), 0); /* control */
	CHECK_EQ(rd(n, 0, 100), 0);
	CHECK(answer_len == 6 && memcmp(answer, "inside", 6) == 0);
	for (size_t i = 0; i < SB_ARRAY_LEN(bad); i++) {
		CHECK_EQ(look(1, bad[i], &n, NULL), -EINVAL);
		CHECK_EQ(mknode(1, bad[i], S_IFREG | 0644), -EINVAL);
		CHECK_EQ(mkd(1, bad[i], 0755), -EINVAL);
		CHECK_EQ(drop(FUSE_UNLINK, 1, bad[i]), -EINVAL);
		CHECK_EQ(drop(FUSE_RMDIR, 1, bad[i]), -EINVAL);
		CHECK_EQ(two(FUSE_SYMLINK, 1, NULL, 0, bad[i], "x"), -EINVAL);
		CHECK_EQ(ren(1, "file", 1, bad[i], 0), -EINVAL);
		CHECK_EQ(ren(1, bad[i], 1, "x", 0), -EINVAL);
		CHECK_EQ(lnk(n, 1, bad[i]), -EINVAL);
	}
	CHECK(holds("out/secret", "secret"));
	CHECK_EQ(stop(), 0);
}

TEST(f02_f03_links_are_never_followed)
{
	static const char *const links[] = { "link", "linkdir", "abs", "dangling", "chain" };
	uint64_t n;
	uint64_t x;
	uint32_t mode = 0;

	start(NULL);
	CHECK_EQ(init(), 0);
	CHECK_EQ(two(FUSE_SYMLINK, 1, NULL, 0, "dangling", "../out/new"), 0);
	CHECK_EQ(two(FUSE_SYMLINK, 1, NULL, 0, "chain", "linkdir/secret"), 0);
	for (size_t i = 0; i < SB_ARRAY_LEN(links); i++) {
		CHECK_EQ(look(1, links[i], &n, &mode), 0); /* control: shown as a link */
		CHECK(S_ISLNK(mode));
		CHECK_EQ(rd(n, 0, 100), -EINVAL);
		CHECK_EQ(wr(n, 0, "owned", 5), -EINVAL);
		CHECK_EQ(set(n, FATTR_SIZE, 0, 0, 0), -EINVAL);
		CHECK_EQ(set(n, FATTR_MODE, 0777, 0, 0), -EOPNOTSUPP);
		CHECK_EQ(look(n, "secret", &x, NULL), -ENOTDIR);
		CHECK_EQ(mknode(n, "new", S_IFREG | 0644), -ENOTDIR);
		CHECK_EQ(mkd(n, "newdir", 0755), -ENOTDIR);
		CHECK_EQ(drop(FUSE_UNLINK, n, "secret"), -ENOTDIR);
		CHECK_EQ(ren(1, "file", n, "file", 0), -ENOTDIR);
		CHECK_EQ(xset(n, "user.a", "1"), -EPERM);
	}
	/* creating at a dangling link must not create its target */
	CHECK_EQ(mknode(1, "dangling", S_IFREG | 0644), -EEXIST);
	CHECK(!exists("out/new"));
	CHECK(holds("out/secret", "secret"));
	CHECK_EQ(stop(), 0);
}

static atomic_bool racing;

static void *exchange(void *arg)
{
	(void)arg;
	while (atomic_load(&racing))
		(void)renameat2(AT_FDCWD, path("share/dir"), AT_FDCWD, path("share/linkdir"),
				RENAME_EXCHANGE);
	return NULL;
}

TEST(f05_exchange_race)
{
	pthread_t t;
	int created = 0;

	start(NULL);
	put("out/f", "outside");
	CHECK_EQ(init(), 0);
	atomic_store(&racing, true);
	CHECK_EQ(pthread_create(&t, NULL, exchange, NULL), 0);
	for (int i = 0; i < 4000; i++) {
		uint64_t d;
		uint64_t f;
		uint32_t mode;

		if (look(1, "dir", &d, &mode) != 0)
			continue;
		if (mknode(d, "made", S_IFREG | 0644) == 0)
			created++;
		if (look(d, "f", &f, NULL) == 0)
			(void)wr(f, 0, "owned!!", 7);
		(void)drop(FUSE_UNLINK, d, "made");
	}
	atomic_store(&racing, false);
	(void)pthread_join(t, NULL);
	CHECK(created > 0); /* control */
	CHECK(holds("out/f", "outside"));
	CHECK(holds("out/secret", "secret"));
	CHECK(!exists("out/made"));
	CHECK_EQ(stop(), 0);
}

static void writes(int want, uint64_t dir, uint64_t n)
{
	struct fuse_fallocate_in fa = { .length = 4096 };
	struct fuse_copy_file_range_in cp = { .nodeid_out = n, .off_out = 10, .len = 3 };
	struct fuse_create_in tmp = { .mode = S_IFREG | 0600 };

	CHECK_EQ(wr(n, 0, "x", 1), want);
	CHECK_EQ(set(n, FATTR_MODE, 0600, 0, 0), want);
	CHECK_EQ(set(n, FATTR_SIZE, 0, 20, 0), want);
	CHECK_EQ(set(n, FATTR_MTIME | FATTR_ATIME, 0, 0, 0), want);
	CHECK_EQ(xset(n, "user.a", "1"), want);
	CHECK_EQ(drop(FUSE_REMOVEXATTR, n, "user.a"), want);
	CHECK_EQ(request(FUSE_FALLOCATE, n, &fa, sizeof(fa), NULL, 0), want);
	CHECK_EQ(request(FUSE_COPY_FILE_RANGE, n, &cp, sizeof(cp), NULL, 0), want);
	CHECK_EQ(request(FUSE_TMPFILE, dir, &tmp, sizeof(tmp), "/", 2), want);
	CHECK_EQ(mknode(dir, "n1", S_IFREG | 0644), want);
	CHECK_EQ(mkd(dir, "n2", 0755), want);
	CHECK_EQ(two(FUSE_SYMLINK, dir, NULL, 0, "n3", "x"), want);
	CHECK_EQ(lnk(n, dir, "n4"), want);
	CHECK_EQ(ren(dir, "file", dir, "n5", 0), want);
	CHECK_EQ(ren(dir, "n5", dir, "file", 0), want);
	CHECK_EQ(drop(FUSE_RMDIR, dir, "n2"), want);
	CHECK_EQ(drop(FUSE_UNLINK, dir, "n1"), want);
}

TEST(f08_read_only_is_the_servers)
{
	static const char *const ro[] = { "--ro", NULL };
	uint64_t n;

	start(NULL);
	CHECK_EQ(init(), 0);
	CHECK_EQ(look(1, "file", &n, NULL), 0);
	writes(0, 1, n); /* control */
	CHECK_EQ(stop(), 0);
	start(ro);
	CHECK_EQ(init(), 0);
	CHECK_EQ(look(1, "file", &n, NULL), 0);
	CHECK_EQ(rd(n, 0, 10), 0);
	writes(-EROFS, 1, n);
	CHECK(holds("share/file", "inside"));
	CHECK_EQ(stop(), 0);
}

TEST(f10_f13_nothing_special_is_made_or_opened)
{
	static const uint32_t kinds[] = { S_IFCHR, S_IFBLK, S_IFIFO, S_IFSOCK, S_IFDIR, S_IFLNK, 0 };
	struct stat st;
	uint64_t n;
	uint32_t mode;

	start(NULL);
	CHECK_EQ(init(), 0);
	for (size_t i = 0; i < SB_ARRAY_LEN(kinds); i++)
		CHECK_EQ(mknode(1, "special", kinds[i] | 0666), -EPERM);
	CHECK(!exists("share/special"));
	CHECK_EQ(mknode(1, "suid", S_IFREG | 07777), 0); /* control: made, without the bits */
	CHECK(lstat(path("share/suid"), &st) == 0 && (st.st_mode & 07777) == 0777);
	CHECK_EQ(look(1, "suid", &n, NULL), 0);
	CHECK_EQ(set(n, FATTR_MODE, 06755, 0, 0), 0);
	CHECK(lstat(path("share/suid"), &st) == 0 && (st.st_mode & 07777) == 0755);
	CHECK_EQ(mkd(1, "sgid", 07777), 0);
	CHECK(lstat(path("share/sgid"), &st) == 0 && (st.st_mode & 06000) == 0);
	CHECK_EQ(xset(n, "user.a", "1"), 0); /* control */
	CHECK_EQ(xset(n, "security.capability", "\1\1\1\1"), -EPERM);
	CHECK_EQ(xset(n, "trusted.overlay.opaque", "y"), -EPERM);
	CHECK_EQ(xset(n, "system.posix_acl_access", "x"), -EOPNOTSUPP);
	CHECK_EQ(set(n, FATTR_UID, 0, 0, 0), -EPERM);
	CHECK_EQ(set(n, FATTR_UID, 0, 0, 4242), -EPERM);
	CHECK_EQ(set(n, FATTR_UID, 0, 0, 1000), 0); /* control: the guest's own */
	/* what the host has there is shown, and is no way in */
	CHECK_EQ(look(1, "sock", &n, &mode), 0);
	CHECK(S_ISSOCK(mode));
	CHECK_EQ(rd(n, 0, 10), -EINVAL);
	CHECK_EQ(wr(n, 0, "x", 1), -EINVAL);
	CHECK_EQ(look(1, "fifo", &n, &mode), 0);
	CHECK(S_ISFIFO(mode));
	CHECK_EQ(rd(n, 0, 10), -EINVAL); /* and does not wait for a writer */
	CHECK_EQ(wr(n, 0, "x", 1), -EINVAL);
	CHECK_EQ(stop(), 0);
}

TEST(f04_rules_hold_by_every_name)
{
	static const char *const rules[] = { "--protect", "guard", "--hide",  "dir/f",
					     "--protect", "new/one", "--hide", "new/two", NULL };
	uint64_t g;
	uint64_t k;
	uint64_t d;
	uint64_t n;

	start(rules);
	CHECK_EQ(init(), 0);
	CHECK_EQ(look(1, "guard", &g, NULL), 0);
	CHECK_EQ(look(g, "key", &k, NULL), 0);
	CHECK_EQ(rd(k, 0, 10), 0); /* control: readable */
	CHECK_EQ(wr(k, 0, "x", 1), -EROFS);
	CHECK_EQ(set(k, FATTR_SIZE, 0, 0, 0), -EROFS);
	CHECK_EQ(mknode(g, "x", S_IFREG | 0644), -EROFS);
	CHECK_EQ(drop(FUSE_UNLINK, g, "key"), -EROFS);
	CHECK_EQ(lnk(k, 1, "alias"), -EROFS);
	CHECK_EQ(ren(g, "key", 1, "alias", 0), -EROFS);
	CHECK_EQ(ren(1, "guard", 1, "alias", 0), -EACCES);
	CHECK_EQ(ren(1, "guard", 1, "dir", RENAME_EXCHANGE), -EACCES);
	CHECK_EQ(ren(1, "file", g, "key", 0), -EROFS);
	/* hidden, and cannot be uncovered by moving the directory above */
	CHECK_EQ(look(1, "dir", &d, NULL), 0);
	CHECK_EQ(look(d, "f", &n, NULL), -ENOENT);
	CHECK_EQ(mknode(d, "f", S_IFREG | 0644), -EACCES);
	CHECK_EQ(drop(FUSE_UNLINK, d, "f"), -EACCES);
	CHECK_EQ(ren(d, "f", 1, "f", 0), -EACCES);
	CHECK_EQ(ren(1, "dir", 1, "dir2", 0), -EACCES);
	CHECK_EQ(mknode(d, "g", S_IFREG | 0644), 0); /* control */
	/* what does not exist yet */
	CHECK_EQ(two(FUSE_SYMLINK, 1, NULL, 0, "new", "dir"), -EACCES);
	CHECK_EQ(ren(1, "sgid", 1, "new", 0), -EACCES);
	CHECK_EQ(mknode(1, "new", S_IFREG | 0644), -EACCES);
	CHECK_EQ(mkd(1, "new", 0755), 0); /* control: the way there may be made */
	CHECK_EQ(look(1, "new", &n, NULL), 0);
	CHECK_EQ(mknode(n, "one", S_IFREG | 0644), -EACCES);
	CHECK_EQ(mkd(n, "one", 0755), -EACCES);
	CHECK_EQ(mknode(n, "two", S_IFREG | 0644), -EACCES);
	CHECK_EQ(mknode(n, "three", S_IFREG | 0644), 0); /* control */
	CHECK(holds("share/guard/key", "key"));
	CHECK(holds("share/dir/f", "f"));
	CHECK_EQ(stop(), 0);
}

TEST(f11_names)
{
	char name[320];
	uint64_t n;

	start(NULL);
	CHECK_EQ(init(), 0);
	(void)memset(name, 'n', sizeof(name));
	name[256] = '\0';
	CHECK_EQ(mknode(1, name, S_IFREG | 0644), -ENAMETOOLONG);
	name[300] = '\0';
	CHECK_EQ(look(1, name, &n, NULL), -ENAMETOOLONG);
	name[255] = '\0';
	CHECK_EQ(mknode(1, name, S_IFREG | 0644), 0); /* control */
	CHECK_EQ(mknode(1, "\xff\x80\n\x1b[2J", S_IFREG | 0644), 0);
	CHECK_EQ(look(1, "\xff\x80\n\x1b[2J", &n, NULL), 0);
	CHECK_EQ(stop(), 0);
}

TEST(f12_quota)
{
	static const char *const quota[] = { "--quota-bytes", "1048576", "--quota-inodes", "5", NULL };
	static char block[65536];
	uint64_t n;
	int r = 0;
	int i;

	(void)memset(block, 'q', sizeof(block));
	start(quota);
	CHECK_EQ(init(), 0);
	CHECK_EQ(mknode(1, "big", S_IFREG | 0644), 0);
	CHECK_EQ(look(1, "big", &n, NULL), 0);
	CHECK_EQ(set(n, FATTR_SIZE, 0, 1ULL << 40, 0), 0); /* sparse: nothing is stored */
	CHECK_EQ(set(n, FATTR_SIZE, 0, 0, 0), 0);
	for (i = 0; i < 64 && r == 0; i++)
		r = wr(n, (uint64_t)i * sizeof(block), block, sizeof(block));
	CHECK_EQ(r, -EDQUOT);
	CHECK(i > 8 && i <= 17);
	CHECK_EQ(set(n, FATTR_SIZE, 0, 0, 0), 0); /* control: freed room is room again */
	CHECK_EQ(wr(n, 0, block, sizeof(block)), 0);
	for (i = 0; i < 10; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "i%d", i);
		r = mknode(1, name, S_IFREG | 0644);
		if (r < 0)
			break;
	}
	CHECK_EQ(r, -EDQUOT);
	CHECK_EQ(i, 4);
	CHECK_EQ(drop(FUSE_UNLINK, 1, "i0"), 0);
	CHECK_EQ(request(FUSE_STATFS, 1, NULL, 0, NULL, 0), 0);
	CHECK_EQ(stop(), 0);
}

/* Blocks that are no contents: one way to fill the disk each. Return: how many before EDQUOT. */
static int fill(const char *what, uint64_t file)
{
	static char target[4000];
	static char value[3000];
	char name[256];
	uint64_t n;
	int r = 0;
	int i;

	(void)memset(target, 't', sizeof(target) - 1);
	(void)memset(value, 'v', sizeof(value));
	for (i = 0; i < 9000 && r == 0; i++) {
		uint32_t in[2] = { sizeof(value), 0 };
		char rest[16 + sizeof(value)] = "user.x";

		(void)snprintf(name, sizeof(name), "%0200d", i);
		if (strcmp(what, "directories") == 0) {
			r = mkd(1, name, 0755);
		} else if (strcmp(what, "links") == 0) {
			r = two(FUSE_SYMLINK, 1, NULL, 0, name, target);
		} else if (strcmp(what, "names") == 0) {
			r = lnk(file, 1, name);
		} else {
			memcpy(rest + 7, value, sizeof(value));
			r = mknode(1, name, S_IFREG | 0644);
			if (r == 0)
				r = look(1, name, &n, NULL);
			if (r == 0)
				r = request(FUSE_SETXATTR, n, in, sizeof(in), rest, 7 + sizeof(value));
		}
	}
	if (r != -EDQUOT)
		t_fail(__FILE__, __LINE__, "%s: %d after %d", what, r, i);
	return i;
}

TEST(f12_quota_of_names_and_attributes)
{
	static const char *const quota[] = { "--quota-bytes", "1048576", NULL };
	static const char *const ways[] = { "directories", "links", "names", "attributes" };
	struct stat st;
	uint64_t n;

	for (size_t i = 0; i < SB_ARRAY_LEN(ways); i++) {
		start(quota);
		if (stat(path("share/dir"), &st) == 0 && st.st_blocks == 0) {
			(void)stop(); /* names cost nothing here (tmpfs, btrfs) */
			break;
		}
		CHECK_EQ(init(), 0);
		CHECK_EQ(look(1, "file", &n, NULL), 0);
		CHECK(fill(ways[i], n) > 100);
		CHECK_EQ(mkd(1, "one", 0755), -EDQUOT);
		CHECK_EQ(ren(1, "file", n, "file", 0), -ENOTDIR);
		CHECK_EQ(ren(1, "file", 1, "name", 0), 0); /* control: no longer, in its place */
		CHECK_EQ(ren(1, "name", 1, "longer", 0), -EDQUOT);
		CHECK_EQ(stop(), 0);
	}
}

TEST(node_numbers_are_looked_up)
{
	static const uint64_t bad[] = { 0, 2, 1000, UINT64_MAX, 1ULL << 63, 0xffffffffULL,
					0x100000002ULL, 0x7fff00000000ULL };
	struct fuse_getattr_in in = { 0 };
	uint64_t n;
	uint64_t again;

	start(NULL);
	CHECK_EQ(init(), 0);
	for (size_t i = 0; i < SB_ARRAY_LEN(bad); i++) {
		CHECK_EQ(request(FUSE_GETATTR, bad[i], &in, sizeof(in), NULL, 0), -ESTALE);
		CHECK_EQ(rd(bad[i], 0, 10), -ESTALE);
		CHECK_EQ(look(bad[i], "file", &n, NULL), -ESTALE);
		CHECK_EQ(lnk(bad[i], 1, "x"), -ESTALE);
		forget(bad[i], UINT64_MAX);
	}
	CHECK_EQ(look(1, "file", &n, NULL), 0);
	forget(n, UINT64_MAX);
	CHECK_EQ(rd(n, 0, 10), -ESTALE); /* the old number is no other file */
	CHECK_EQ(look(1, "dir", &again, NULL), 0);
	CHECK(again != n);
	CHECK_EQ(rd(n, 0, 10), -ESTALE);
	forget(1, UINT64_MAX); /* the root stays */
	CHECK_EQ(look(1, "file", &n, NULL), 0);
	CHECK_EQ(stop(), 0);
}

/*
 * A directory that the guest forgot lives on as long as a child of it is remembered. A request that
 * moves the child away ends it, in the middle of that request. (The sanitizers see what goes wrong.)
 */
TEST(forgotten_directories)
{
	struct fuse_getattr_in in = { 0 };
	uint64_t a;
	uint64_t b;
	uint64_t x;
	uint64_t y;

	start(NULL);
	CHECK_EQ(init(), 0);
	for (uint32_t flags = 0; flags <= RENAME_EXCHANGE; flags += RENAME_EXCHANGE) {
		CHECK_EQ(mkd(1, "a", 0755), 0);
		CHECK_EQ(mkd(1, "b", 0755), 0);
		CHECK_EQ(look(1, "a", &a, NULL), 0);
		CHECK_EQ(look(1, "b", &b, NULL), 0);
		CHECK_EQ(mknode(a, "x", S_IFREG | 0644), 0);
		CHECK_EQ(mknode(b, "y", S_IFREG | 0644), 0);
		CHECK_EQ(look(a, "x", &x, NULL), 0);
		CHECK_EQ(look(b, "y", &y, NULL), 0);
		forget(a, 1000);
		CHECK_EQ(ren(a, "x", b, "y", flags), 0);
		CHECK_EQ(request(FUSE_GETATTR, x, &in, sizeof(in), NULL, 0), 0);
		CHECK_EQ(request(FUSE_GETATTR, y, &in, sizeof(in), NULL, 0), 0);
		CHECK_EQ(look(1, "a", &a, NULL), 0);
		CHECK_EQ(look(a, "x", &x, NULL), flags ? 0 : -ENOENT);
		CHECK_EQ(drop(FUSE_UNLINK, b, "y"), 0);
		(void)drop(FUSE_UNLINK, a, "x");
		CHECK_EQ(drop(FUSE_RMDIR, 1, "a"), 0);
		CHECK_EQ(drop(FUSE_RMDIR, 1, "b"), 0);
	}
	CHECK_EQ(stop(), 0);
}

static uint32_t dice(uint32_t n)
{
	static uint32_t state = 20261129;

	state = state * 1664525U + 1013904223U;
	return (state >> 8) % n;
}

/* One request of a kernel that has lost its mind, on @dir, @other and the names a..d in them. */
static int any_request(uint64_t dir, uint64_t other)
{
	static const char *const names[] = { "a", "b", "c", "d" };
	struct fuse_create_in tmp = { .mode = S_IFREG | 0600 };
	struct fuse_read_in list = { .size = 4096 };
	const char *x = names[dice(4)];
	const char *y = names[dice(4)];

	switch (dice(14)) {
	case 0:
	case 1:
		return mkd(dir, x, 0755);
	case 2:
	case 3:
		return mknode(dir, x, S_IFREG | 0644);
	case 4:
		return ren(dir, x, other, y, 0);
	case 5:
		return ren(dir, x, other, y, RENAME_EXCHANGE);
	case 6:
		return lnk(other, dir, x);
	case 7:
		return drop(FUSE_UNLINK, dir, x);
	case 8:
		return drop(FUSE_RMDIR, dir, x);
	case 9:
		return request(FUSE_READDIRPLUS, dir, &list, sizeof(list), NULL, 0);
	case 10:
		return request(FUSE_TMPFILE, dir, &tmp, sizeof(tmp), "/", 2);
	case 11:
		return wr(dir, dice(9000), "text", 4);
	case 12:
		return two(FUSE_SYMLINK, dir, NULL, 0, x, "b");
	default:
		return rd(dir, 0, 100);
	}
}

TEST(requests_without_sense)
{
	uint64_t known[16] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
	int good = 0;

	start(NULL);
	CHECK_EQ(init(), 0);
	for (int i = 0; i < 20000; i++) {
		uint64_t dir = known[dice(16)];
		uint64_t n;
		int r;

		if (dice(3) == 0)
			forget(dir, dice(2) ? 1 : 1000);
		if (look(known[dice(16)], (const char *[]){ "a", "b", "c", "d" }[dice(4)], &n, NULL) == 0)
			known[dice(16)] = n;
		if (dice(50) == 0)
			known[dice(16)] = 1;
		r = any_request(dir, known[dice(16)]);
		REQUIRE(r <= 0);
		good += r == 0;
	}
	CHECK(good > 2000); /* control */
	CHECK_EQ(stop(), 0);
}

TEST(odd_numbers)
{
	struct fuse_read_in dirpos = { .offset = UINT64_MAX, .size = UINT32_MAX };
	struct fuse_lseek_in seek = { .offset = UINT64_MAX, .whence = 77 };
	uint64_t n;

	start(NULL);
	CHECK_EQ(init(), 0);
	CHECK_EQ(look(1, "file", &n, NULL), 0);
	CHECK_EQ(rd(n, 0, UINT32_MAX), 0); /* clamped */
	CHECK_EQ(answer_len, 6);
	CHECK(rd(n, UINT64_MAX, 10) < 0);
	CHECK(wr(n, UINT64_MAX - 5, "x", 1) < 0);
	CHECK(wr(n, INT64_MAX, "x", 1) < 0);
	CHECK(set(n, FATTR_SIZE, 0, UINT64_MAX, 0) < 0);
	CHECK_EQ(request(FUSE_READDIRPLUS, 1, &dirpos, sizeof(dirpos), NULL, 0), -EINVAL);
	CHECK_EQ(request(FUSE_READDIR, n, &dirpos, sizeof(dirpos), NULL, 0), -ENOTDIR);
	CHECK_EQ(request(FUSE_LSEEK, n, &seek, sizeof(seek), NULL, 0), -EINVAL);
	dirpos.offset = 0;
	CHECK_EQ(request(FUSE_READDIRPLUS, 1, &dirpos, sizeof(dirpos), NULL, 0), 0);
	for (uint32_t op = 0; op < 80; op++) /* every operation without any argument */
		if (op == 14 || op == 27 || op == 34 || op == 35 || op == 39 || op == 40 || op > 51)
			CHECK_EQ(request(op, 1, NULL, 0, NULL, 0), -ENOSYS);
	CHECK_EQ(look(1, "file", &n, NULL), 0);
	CHECK_EQ(stop(), 0);
}

/* The bytes end the session: closed without an answer, status 1, no crash. */
static void dies(const char *what, const void *p, size_t len, bool with_init)
{
	int r;

	start(NULL);
	if (with_init)
		CHECK_EQ(init(), 0);
	unique++;
	(void)send_raw(p, len);
	r = get_answer();
	if (r != 1)
		t_fail(__FILE__, __LINE__, "%s: answer %d instead of the end", what, r);
	r = stop();
	if (r != 1)
		t_fail(__FILE__, __LINE__, "%s: server ended with %d", what, r);
}

TEST(malformed_ends_the_session)
{
	struct {
		struct fuse_in_header h;
		union {
			char name[8];
			struct fuse_write_in w;
			struct fuse_batch_forget_in bf;
			uint32_t u[16];
		} u;
	} m = { .h = { .len = sizeof(m.h) + 8, .opcode = FUSE_LOOKUP, .unique = 9, .nodeid = 1 } };

	memcpy(m.u.name, "12345678", 8);
	dies("name without an end", &m, m.h.len, true);
	dies("request before INIT", &m, m.h.len, false);
	m.h.opcode = FUSE_RENAME2;
	dies("short fixed part", &m, m.h.len, true);
	m.h.opcode = FUSE_LOOKUP;
	m.h.len = 39;
	dies("length below the header", &m, sizeof(m), true);
	m.h.len = 0;
	dies("length zero", &m, sizeof(m), true);
	m.h.len = UINT32_MAX;
	dies("length huge", &m, sizeof(m), true);
	m.h.len = sizeof(m.h) + sizeof(m.u.w);
	m.h.opcode = FUSE_WRITE;
	m.u.w = (struct fuse_write_in){ .size = 65536 };
	dies("write beyond its bytes", &m, m.h.len, true);
	m.h.opcode = FUSE_BATCH_FORGET;
	m.h.len = sizeof(m.h) + sizeof(m.u.bf);
	m.u.bf = (struct fuse_batch_forget_in){ .count = UINT32_MAX };
	dies("forget count", &m, m.h.len, true);
	m.h.opcode = FUSE_SETXATTR;
	m.h.len = sizeof(m.h) + 10;
	m.u.u[0] = 1000;
	m.u.u[1] = 0;
	memcpy(&m.u.u[2], "a", 2);
	dies("xattr value", &m, m.h.len, true);
	m.h.opcode = FUSE_INIT;
	m.h.len = sizeof(m.h) + 64;
	m.u.u[0] = 7;
	m.u.u[1] = 37;
	dies("a second INIT", &m, m.h.len, true);
	m.u.u[1] = 8;
	dies("an old protocol", &m, m.h.len, false);
	m.u.u[1] = 37;
	m.u.u[3] = FUSE_INIT_EXT;
	m.h.len = sizeof(m.h) + 16;
	dies("INIT without its extension", &m, m.h.len, false);
	m.h.opcode = FUSE_NOTIFY_REPLY;
	m.h.len = sizeof(m.h) + 64;
	dies("an answer to nothing", &m, m.h.len, true);
}
