/*
 * fs_cases DIR: carries out a fixed list of file system operations in DIR and prints one line with
 * the outcome of each. Run on the mount and on a plain directory, the two outputs must be equal.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <unistd.h>

static char long255[256];
static char long256[257];

static void say(const char *what, long r)
{
	(void)printf("%-44s %s\n", what, r < 0 ? strerrorname_np(errno) : "ok");
}

static void val(const char *what, long long v)
{
	(void)printf("%-44s %lld\n", what, v);
}

#define DO(e) say(#e, (long)(e))
#define VAL(e) val(#e, (long long)(e))

static int put(const char *name, int flags, mode_t mode, const char *text)
{
	int fd = open(name, flags, mode);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = write(fd, text, strlen(text));
	return close(fd) < 0 || n < 0 ? -1 : (int)n;
}

static long size_of(const char *name)
{
	struct stat st;

	return lstat(name, &st) < 0 ? -1 : (long)st.st_size;
}

static long mode_of(const char *name)
{
	struct stat st;

	return lstat(name, &st) < 0 ? -1 : (long)st.st_mode;
}

static long links_of(const char *name)
{
	struct stat st;

	return lstat(name, &st) < 0 ? -1 : (long)st.st_nlink;
}

static long entries(const char *name)
{
	DIR *d = opendir(name);
	long n = 0;

	if (!d)
		return -1;
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n;
}

static void names(void)
{
	DO(open("none", O_RDONLY));
	DO(put("f", O_CREAT | O_EXCL | O_WRONLY, 0644, "hello"));
	DO(put("f", O_CREAT | O_EXCL | O_WRONLY, 0644, "hello"));
	VAL(size_of("f"));
	VAL(mode_of("f"));
	DO(put("f", O_WRONLY | O_TRUNC, 0, "x"));
	VAL(size_of("f"));
	DO(put("f", O_WRONLY | O_APPEND, 0, "yz"));
	VAL(size_of("f"));
	DO(put(long255, O_CREAT | O_WRONLY, 0600, "l"));
	DO(put(long256, O_CREAT | O_WRONLY, 0600, "l"));
	DO(mkdir(long256, 0700));
	DO(unlink(long255));
	DO(put("\xff\xfe\x01 \n", O_CREAT | O_WRONLY, 0600, "raw"));
	DO(put("Case", O_CREAT | O_WRONLY, 0600, "a"));
	DO(put("case", O_CREAT | O_WRONLY, 0600, "bb"));
	VAL(size_of("Case"));
	VAL(size_of("case"));
	VAL(entries("."));
	DO(mkdir("d", 0755));
	DO(mkdir("d", 0755));
	DO(mkdir("f/x", 0755));
	DO(mkdir("none/x", 0755));
	DO(rmdir("f"));
	DO(unlink("d"));
	DO(rmdir("none"));
	DO(put("d/in", O_CREAT | O_WRONLY, 0644, "in"));
	DO(rmdir("d"));
	DO(open("d", O_WRONLY));
	DO(open("f", O_RDONLY | O_DIRECTORY));
	DO(rmdir("d/."));
	DO(unlink(""));
	VAL(links_of("d"));
	VAL(links_of("."));
}

static void links(void)
{
	char buf[5000];
	char target[5000];

	DO(symlink("f", "s"));
	DO(symlink("../../../../etc/passwd", "out"));
	DO(symlink("loop", "loop"));
	DO(open("loop", O_RDONLY));
	DO(open("s", O_RDONLY | O_NOFOLLOW));
	VAL(readlink("out", buf, sizeof(buf)));
	VAL(size_of("out"));
	DO(symlink("", "empty"));
	(void)memset(target, 'a', 4095);
	target[4095] = '\0';
	DO(symlink(target, "longlink"));
	VAL(readlink("longlink", buf, sizeof(buf)));
	target[4095] = 'a';
	target[4096] = '\0';
	DO(symlink(target, "longerlink"));
	DO(readlink("f", buf, sizeof(buf)));
	DO(link("f", "h"));
	VAL(links_of("f"));
	DO(link("f", "h"));
	DO(link("d", "hd"));
	DO(link("none", "hn"));
	DO(link("s", "hs"));
	VAL(mode_of("hs"));
	DO(unlink("h"));
	VAL(links_of("f"));
	DO(unlink("s"));
	VAL(size_of("f"));
}

static void renames(void)
{
	DO(put("r1", O_CREAT | O_WRONLY, 0644, "1"));
	DO(put("r2", O_CREAT | O_WRONLY, 0644, "22"));
	DO(rename("r1", "r2"));
	VAL(size_of("r2"));
	DO(rename("r1", "r3"));
	DO(mkdir("rd", 0755));
	DO(rename("r2", "rd"));
	DO(rename("rd", "r2"));
	DO(rename("r2", "rd/r2"));
	VAL(size_of("rd/r2"));
	DO(mkdir("rd/sub", 0755));
	DO(rename("rd", "rd/sub/x"));
	DO(put("r4", O_CREAT | O_WRONLY, 0644, "4444"));
	DO(renameat2(AT_FDCWD, "r4", AT_FDCWD, "rd/r2", RENAME_NOREPLACE));
	DO(renameat2(AT_FDCWD, "r4", AT_FDCWD, "rd/r2", RENAME_EXCHANGE));
	VAL(size_of("r4"));
	VAL(size_of("rd/r2"));
	DO(renameat2(AT_FDCWD, "r4", AT_FDCWD, "none", RENAME_EXCHANGE));
	DO(renameat2(AT_FDCWD, "rd", AT_FDCWD, "r4", RENAME_EXCHANGE));
	VAL(mode_of("r4"));
	DO(renameat2(AT_FDCWD, "rd", AT_FDCWD, "r4", RENAME_EXCHANGE));
	DO(link("r4", "r5"));
	DO(rename("r4", "r5"));
	VAL(links_of("r4"));
	DO(mkdir("e1", 0755));
	DO(rename("e1", "rd"));
	DO(rename("rd", "e1"));
	VAL(entries("e1"));
	DO(rename("e1/r2", "case"));
	VAL(size_of("case"));
	DO(rename("case", "CASE"));
	VAL(size_of("CASE"));
	VAL(size_of("case"));
}

static void modes(void)
{
	struct timespec t[2] = { { 1000, 123456789 }, { 2000, 987654321 } };
	struct stat st;
	int fd;

	DO(put("m", O_CREAT | O_WRONLY, 0444, "readonly"));
	VAL(size_of("m"));
	VAL(mode_of("m"));
	DO(open("m", O_WRONLY));
	DO(chmod("m", 0600));
	fd = open("m", O_RDWR);
	DO(fchmod(fd, 0));
	DO(pwrite(fd, "zz", 2, 0));
	DO(open("m", O_RDONLY));
	DO(close(fd));
	DO(chmod("m", 0640));
	VAL(mode_of("m"));
	DO(access("m", R_OK | W_OK));
	DO(access("m", X_OK));
	DO(utimensat(AT_FDCWD, "m", t, 0));
	DO(stat("m", &st));
	VAL(st.st_mtim.tv_sec);
	VAL(st.st_mtim.tv_nsec);
	VAL(st.st_atim.tv_nsec);
	DO(utimensat(AT_FDCWD, "out", t, AT_SYMLINK_NOFOLLOW));
	DO(mkdir("noexec", 0600));
	DO(open("noexec/x", O_CREAT | O_WRONLY, 0600));
	DO(mkdir("nowrite", 0500));
	DO(open("nowrite/x", O_CREAT | O_WRONLY, 0600));
	DO(mkdir("sticky", 01777));
	VAL(mode_of("sticky"));
	DO(chown("m", getuid(), getgid()));
	DO(chown("m", 12345, (gid_t)-1));
	DO(truncate("m", 100));
	VAL(size_of("m"));
	DO(truncate("m", -1));
	DO(truncate("e1", 1));
	(void)umask(077);
	DO(put("um", O_CREAT | O_WRONLY, 0666, "u"));
	VAL(mode_of("um"));
	(void)umask(022);
}

static void holes(void)
{
	char buf[32];
	int fd = open("hole", O_CREAT | O_RDWR, 0644);
	int to = open("copy", O_CREAT | O_RDWR, 0644);

	DO(pwrite(fd, "data", 4, 1 << 20));
	VAL(lseek(fd, 0, SEEK_DATA));
	VAL(lseek(fd, 1 << 20, SEEK_HOLE));
	DO(lseek(fd, 2 << 20, SEEK_DATA));
	DO(fallocate(fd, 0, 0, 1 << 16));
	DO(fallocate(fd, FALLOC_FL_KEEP_SIZE, 2 << 20, 4096));
	VAL(size_of("hole"));
	DO(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1 << 20, 4096));
	DO(pread(fd, buf, 4, 1 << 20));
	VAL(buf[0]);
	DO(fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, 4096));
	DO(posix_fallocate(fd, 0, 10));
	DO(pwrite(fd, "0123456789", 10, 0));
	VAL(copy_file_range(fd, &(off_t){ 2 }, to, &(off_t){ 1 }, 5, 0));
	DO(pread(to, buf, 6, 0));
	VAL(buf[1]);
	VAL(buf[5]);
	DO(ftruncate(fd, 1LL << 40));
	VAL(size_of("hole"));
	DO(ftruncate(fd, 0));
	DO(fsync(fd));
	DO(fdatasync(fd));
	DO(syncfs(fd));
	DO(close(fd));
	DO(close(to));
	fd = open(".", O_RDONLY | O_DIRECTORY);
	DO(fsync(fd));
	DO(read(fd, buf, 1));
	DO(close(fd));
}

static void open_files(void)
{
	char buf[16] = { 0 };
	int fd = open("gone", O_CREAT | O_RDWR, 0644);
	int other;
	char *m;

	DO(write(fd, "still", 5));
	DO(unlink("gone"));
	DO(pread(fd, buf, 5, 0));
	VAL(buf[4]);
	DO(pwrite(fd, "more", 4, 5));
	DO(ftruncate(fd, 6));
	DO(close(fd));
	fd = open("over", O_CREAT | O_RDWR, 0644);
	DO(write(fd, "old", 3));
	DO(put("new", O_CREAT | O_WRONLY, 0644, "new!"));
	DO(rename("new", "over"));
	DO(pread(fd, buf, 3, 0));
	VAL(buf[0]);
	DO(close(fd));
	fd = open(".", O_TMPFILE | O_RDWR, 0600);
	DO(write(fd, "tmp", 3));
	(void)snprintf(buf, sizeof(buf), "%d", fd);
	other = open("/proc/self/fd", O_RDONLY | O_DIRECTORY);
	DO(linkat(other, buf, AT_FDCWD, "tmp", AT_SYMLINK_FOLLOW));
	VAL(size_of("tmp"));
	DO(close(other));
	DO(close(fd));
	fd = open("lock", O_CREAT | O_RDWR, 0600);
	other = open("lock", O_RDWR);
	DO(flock(fd, LOCK_EX | LOCK_NB));
	DO(flock(other, LOCK_EX | LOCK_NB));
	DO(lockf(fd, F_TLOCK, 10));
	DO(ftruncate(fd, 8192));
	m = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	m[5000] = 'M';
	DO(msync(m, 8192, MS_SYNC));
	DO(pread(other, buf, 1, 5000));
	VAL(buf[0]);
	DO(munmap(m, 8192));
	DO(close(fd));
	DO(close(other));
}

static void xattrs(void)
{
	char buf[256];

	DO(setxattr("f", "user.a", "12345", 5, 0));
	DO(setxattr("f", "user.a", "1", 1, XATTR_CREATE));
	DO(setxattr("f", "user.b", "1", 1, XATTR_REPLACE));
	VAL(getxattr("f", "user.a", buf, sizeof(buf)));
	VAL(getxattr("f", "user.a", NULL, 0));
	DO(getxattr("f", "user.a", buf, 2));
	DO(getxattr("f", "user.none", buf, 2));
	VAL(listxattr("f", buf, sizeof(buf)));
	VAL(listxattr("f", NULL, 0));
	DO(listxattr("f", buf, 2));
	DO(removexattr("f", "user.a"));
	DO(removexattr("f", "user.a"));
	DO(setxattr("d", "user.dir", "", 0, 0));
	DO(lsetxattr("out", "user.x", "1", 1, 0));
	DO(setxattr("f", "trusted.a", "1", 1, 0));
}

static void many(void)
{
	char name[32];
	long seen;

	DO(mkdir("many", 0755));
	for (int i = 0; i < 2000; i++) {
		(void)snprintf(name, sizeof(name), "many/file-%d", i);
		if (put(name, O_CREAT | O_WRONLY, 0644, "x") < 0)
			say(name, -1);
	}
	VAL(entries("many"));
	for (int i = 0; i < 2000; i += 2) {
		(void)snprintf(name, sizeof(name), "many/file-%d", i);
		if (unlink(name) < 0)
			say(name, -1);
	}
	VAL(entries("many"));
	do { /* delete while listing */
		DIR *d = opendir("many");
		const struct dirent *e;

		seen = 0;
		while (d && (e = readdir(d))) {
			if (e->d_name[0] == '.')
				continue;
			seen++;
			if (unlinkat(dirfd(d), e->d_name, 0) < 0)
				say(e->d_name, -1);
		}
		(void)closedir(d);
	} while (seen > 0);
	DO(rmdir("many"));
}

static void deep(void)
{
	int depth = 0;

	for (; depth < 300; depth++)
		if (mkdir("deep", 0755) < 0 || chdir("deep") < 0)
			break;
	VAL(depth);
	DO(put("bottom", O_CREAT | O_WRONLY, 0644, "x"));
	DO(unlink("bottom"));
	for (; depth > 0; depth--)
		if (chdir("..") < 0 || rmdir("deep") < 0)
			break;
	VAL(depth);
}

int main(int argc, char **argv)
{
	if (argc != 2 || chdir(argv[1]) < 0)
		return 2;
	(void)umask(022);
	(void)memset(long255, 'n', 255);
	(void)memset(long256, 'n', 256);
	names();
	links();
	renames();
	modes();
	holes();
	open_files();
	xattrs();
	many();
	deep();
	return 0;
}
