#include "conn/cmd_image.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "crypto/crypto.h"
#include "t.h"

static char top[] = "/tmp/sb-image-XXXXXX";
static int root = -1;

static void file(const char *path, const char *text, mode_t mode)
{
	int fd = openat(root, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	CHECK(fchmod(fd, mode) == 0);
	(void)close(fd);
}

/* usr-merged image: /bin -> usr/bin; python3 -> python3.11; editor goes through /etc. */
static bool image(void)
{
	static const char *const dirs[] = { "usr",  "usr/bin", "usr/sbin", "usr/local", "usr/local/bin",
					    "etc", "home" };

	if (root >= 0)
		return true;
	if (sb_crypto_init() < 0 || !mkdtemp(top))
		return false;
	root = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < SB_ARRAY_LEN(dirs); i++)
		CHECK(mkdirat(root, dirs[i], 0755) == 0);
	CHECK(symlinkat("usr/bin", root, "bin") == 0);
	CHECK(symlinkat("/usr/sbin", root, "sbin") == 0);
	file("usr/bin/python3.11", "python", 0755);
	CHECK(symlinkat("python3.11", root, "usr/bin/python3") == 0);
	file("usr/bin/git", "git", 0755);
	file("usr/local/bin/git", "git too", 0755);
	file("usr/bin/readme", "text", 0644);
	file("usr/bin/vim", "#!/bin/sh -e\n", 0755);
	CHECK(symlinkat("/usr/bin/vim", root, "etc/editor") == 0);
	CHECK(symlinkat("/etc/editor", root, "usr/bin/editor") == 0);
	CHECK(symlinkat("/../../../../../etc/passwd", root, "usr/bin/out") == 0);
	CHECK(symlinkat("loop", root, "usr/bin/loop") == 0);
	file("home/git", "git", 0755);
	return root >= 0;
}

__attribute__((__destructor__)) static void remove_image(void)
{
	char cmd[64];

	(void)snprintf(cmd, sizeof(cmd), "rm -rf %s", top);
	if (root >= 0 && system(cmd) != 0)
		(void)fprintf(stderr, "# %s stays\n", top);
}

static struct sb_cmd_file of(const char *path)
{
	struct stat st = { 0 };

	CHECK(fstatat(root, path, &st, AT_EMPTY_PATH) == 0);
	return (struct sb_cmd_file){ st.st_dev, st.st_ino, (uint64_t)st.st_size };
}

static bool same(struct sb_cmd_file a, struct sb_cmd_file b)
{
	return a.dev == b.dev && a.ino == b.ino && a.size == b.size;
}

static void find_is(int line, const char *name, unsigned int nth, const char *want)
{
	struct sb_cmd_image i;
	struct sb_cmd_file f;
	char path[SB_CMD_PATH_MAX] = "";
	int r = sb_cmd_image_init(&i, root);

	if (r == 0)
		r = i.files.find(i.files.arg, name, nth, path, sizeof(path), &f);
	if (want ? r != 0 || strcmp(path, want) != 0 : r != -ENOENT)
		t_fail(__FILE__, line, "%s %u: %d %s", name, nth, r, path);
	else if (want && !same(f, of(want + 1)))
		t_fail(__FILE__, line, "%s: another identity", name);
}
#define FIND(name, nth, want) find_is(__LINE__, name, nth, want)

TEST(X01_names_are_of_the_program_folders)
{
	struct sb_cmd_image i;

	REQUIRE(image());
	REQUIRE(sb_cmd_image_init(&i, root) == 0);
	CHECK_EQ(i.n_folders, 3); /* sbin and bin are the same again */
	FIND("git", 0, "/usr/local/bin/git");
	FIND("git", 1, "/usr/bin/git");
	FIND("git", 2, NULL);
	FIND("python3", 0, "/usr/bin/python3.11");
	FIND("editor", 0, "/usr/bin/vim");
	FIND("readme", 0, NULL);
	FIND("loop", 0, NULL);
	FIND("out", 0, NULL);
	FIND("none", 0, NULL);
	FIND("/bin/python3", 0, "/usr/bin/python3.11");
	FIND("/bin", 0, "/usr/bin");
	FIND("/", 0, "/");
	FIND("/../usr", 0, "/usr");
	FIND("/bin/python3", 1, NULL);
	FIND("/nowhere/x", 0, NULL);
}

TEST(find_goes_on_or_starts_again)
{
	struct sb_cmd_image i;
	struct sb_cmd_file f;
	char path[SB_CMD_PATH_MAX];
	static const struct {
		const char *name;
		unsigned int nth;
		const char *want;
	} t[] = {
		{ "git", 0, "/usr/local/bin/git" },
		{ "git", 1, "/usr/bin/git" },
		{ "git", 2, NULL },
		{ "git", 1, "/usr/bin/git" },
		{ "python3", 0, "/usr/bin/python3.11" },
		{ "git", 1, "/usr/bin/git" },
		{ "git", 0, "/usr/local/bin/git" },
		{ "python3", 1, NULL },
	};

	REQUIRE(image());
	REQUIRE(sb_cmd_image_init(&i, root) == 0);
	for (size_t k = 0; k < SB_ARRAY_LEN(t); k++) {
		int r = i.files.find(i.files.arg, t[k].name, t[k].nth, path, sizeof(path), &f);

		CHECK_EQ(r, t[k].want ? 0 : -ENOENT);
		if (t[k].want)
			CHECK_STR(path, t[k].want);
	}
}

struct names {
	unsigned int n;
	bool python;
	int end;
};
static int each(void *arg, const char *name)
{
	struct names *n = arg;

	n->n++;
	n->python |= strcmp(name, "python3") == 0;
	return n->end;
}

TEST(lists_names)
{
	struct names n = { 0 };
	struct sb_cmd_image i;

	REQUIRE(image());
	REQUIRE(sb_cmd_image_init(&i, root) == 0);
	CHECK_EQ(i.files.list(i.files.arg, each, &n), 0);
	CHECK(n.python);
	CHECK_EQ(n.n, 9);
	n = (struct names){ .end = -ENOMEM };
	CHECK_EQ(i.files.list(i.files.arg, each, &n), -ENOMEM);
	CHECK_EQ(n.n, 1);
}

TEST(digests)
{
	uint8_t want[32];
	uint8_t got[32];
	struct sb_cmd_image i;
	int fd;

	REQUIRE(image());
	REQUIRE(sb_cmd_image_init(&i, root) == 0);
	sb_sha256("git", 3, want);
	CHECK_EQ(i.files.digest(i.files.arg, "/usr/bin/git", -1, got), 0);
	CHECK_MEM(got, want, 32);
	fd = openat(root, "home/git", O_PATH | O_CLOEXEC);
	memset(got, 0, sizeof(got));
	CHECK_EQ(i.files.digest(i.files.arg, "", fd, got), 0);
	CHECK_MEM(got, want, 32);
	(void)close(fd);
	CHECK_EQ(i.files.digest(i.files.arg, "/usr/bin/none", -1, got), -ENOENT);
}

static int resolve(const char *cwd, const char *name, char path[SB_CMD_PATH_MAX])
{
	struct sb_cmd_file f = { 0 };

	path[0] = '\0';
	return sb_cmd_resolve(root, cwd, name, path, SB_CMD_PATH_MAX, &f, NULL);
}

TEST(resolves_as_execve_does)
{
	char path[SB_CMD_PATH_MAX];
	char head[SB_CMD_HEAD];
	struct sb_cmd_file f;
	int open_before;
	int fd = -1;

	REQUIRE(image());
	open_before = t_open_fds();
	CHECK_EQ(resolve("/home", "git", path), 0);
	CHECK_STR(path, "/home/git");
	CHECK_EQ(resolve("/home", "../bin/python3", path), 0);
	CHECK_STR(path, "/usr/bin/python3.11");
	CHECK_EQ(resolve("/home", "./../../../..//home/./git", path), 0);
	CHECK_STR(path, "/home/git");
	CHECK_EQ(resolve("/", "/home", path), -EACCES);
	CHECK_EQ(resolve("/", "/usr/bin/readme", path), -EACCES);
	CHECK_EQ(resolve("/", "/usr/bin/none", path), -ENOENT);
	CHECK_EQ(resolve("/", "/usr/bin/git/x", path), -ENOTDIR);
	CHECK_EQ(resolve("/", "/usr/bin/loop", path), -ELOOP);
	CHECK_EQ(resolve("/", "", path), -ENOENT);
	CHECK_EQ(sb_cmd_resolve(root, "/", "bin/vim", path, sizeof(path), &f, &fd), 0);
	CHECK(same(f, of("usr/bin/vim")));
	CHECK_EQ(sb_cmd_read_head(fd, head), 13);
	CHECK_MEM(head, "#!/bin/sh -e\n", 13);
	sb_fd_close(&fd);
	CHECK_EQ(t_open_fds(), open_before);
}

TEST(X01_links_that_are_no_paths)
{
	char path[SB_CMD_PATH_MAX];
	struct sb_cmd_file f;
	int slash = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = sb_cmd_resolve(slash, "/", "/proc/self/exe", path, sizeof(path), &f, NULL);

	CHECK(r == -ELOOP || r == -EXDEV);
	CHECK_EQ(sb_cmd_resolve(slash, "/tmp", "/bin/sh", path, sizeof(path), &f, NULL), 0);
	CHECK(strncmp(path, "/usr/bin/", 9) == 0 || strncmp(path, "/bin/", 5) == 0);
	(void)close(slash);
}

TEST(removed_files_have_no_path)
{
	char path[SB_CMD_PATH_MAX];
	int fd;

	REQUIRE(image());
	file("home/gone", "x", 0755);
	fd = openat(root, "home/gone", O_PATH | O_CLOEXEC);
	CHECK_EQ(sb_cmd_fd_path(root, fd, path, sizeof(path)), 0);
	CHECK_STR(path, "/home/gone");
	CHECK_EQ(sb_cmd_fd_path(root, fd, path, 10), -ENAMETOOLONG);
	CHECK_EQ(unlinkat(root, "home/gone", 0), 0);
	file("home/gone (deleted)", "other", 0755);
	CHECK_EQ(sb_cmd_fd_path(root, fd, path, sizeof(path)), -ENOENT);
	(void)close(fd);
	fd = open("/usr", O_PATH | O_CLOEXEC);
	CHECK_EQ(sb_cmd_fd_path(root, fd, path, sizeof(path)), -ENOENT);
	(void)close(fd);
}
