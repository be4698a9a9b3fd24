/* A restore, and somebody who changes the tree between the look at it and the first step. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/rmtree.h"
#include "snapshot/helper.h"
#include "snapshot/snapshot.h"
#include "t.h"

struct world {
	char dir[64];
	int store_fd;
	struct sb_snap_store *store;
	struct snap_tree tree;
	struct snap_captured before, after;
};

static int put(int dir, const char *name, const char *text, mode_t mode)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int r = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && fchmod(fd, mode) == 0;

	sb_fd_close(&fd);
	return r ? 0 : -1;
}

static int capture(struct world *w, enum sb_snap_role role, struct snap_captured *ret)
{
	static const struct snap_rules none;
	struct sb_err err = { 0 };
	const struct snap_capture c = { .store = w->store, .tree = &w->tree, .rules = &none, .label = "",
					.role = role, .no_cache = true };

	return snap_capture(&c, ret, &err);
}

static int begin(struct world *w)
{
	struct sb_err err = { 0 };
	int top;
	int r;

	*w = (struct world){ .dir = "/tmp/snap-test.XXXXXX" };
	if (!mkdtemp(w->dir) || (top = open(w->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return -1;
	r = mkdirat(top, "store", 0700) | mkdirat(top, "tree", 0755);
	w->store_fd = openat(top, "store", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snap_tree_init(&w->tree, openat(top, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "/tree");
	sb_fd_close(&top);
	if (r == 0)
		r = sb_snap_store_open(w->store_fd, false, &w->store, &err);
	if (r == 0)
		r = put(w->tree.fd, "f", "content", 0644) | put(w->tree.fd, "other", "another one", 0604);
	return r;
}

static void end(struct world *w)
{
	int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)sb_snap_store_free(w->store);
	sb_fd_close(&w->store_fd);
	sb_fd_close(&w->tree.fd);
	CHECK_EQ(sb_rmtree(tmp, w->dir + 5), 0);
	sb_fd_close(&tmp);
}

/* In a child, which asks; @swap: between its question and the answer another file gets the name. Return: its
 * restored + 16 * failed. */
static int restore(struct world *w, bool swap)
{
	static const struct snap_rules none;
	struct snap_restore c = { .store = w->store, .tree = &w->tree, .target = w->before.id,
				  .expect = w->after.id, .rules = &none };
	const uint32_t go = 1;
	struct snap_msg_plan m;
	int status = -1;
	int sv[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		struct snap_restored res;
		struct sb_err err = { 0 };

		c.ask = sv[1];
		_exit(snap_restore(&c, &res, &err) < 0 ? 255 : (int)(res.restored + 16 * res.failed));
	}
	sb_fd_close(&sv[1]);
	CHECK(recv(sv[0], &m, sizeof(m), 0) == (ssize_t)sizeof(m));
	if (swap)
		CHECK(renameat(w->tree.fd, "other", w->tree.fd, "f") == 0);
	CHECK(send(sv[0], &go, sizeof(go), MSG_NOSIGNAL) == (ssize_t)sizeof(go));
	sb_fd_close(&sv[0]);
	CHECK(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static mode_t mode_of(const struct world *w, const char *name)
{
	struct stat st;

	return fstatat(w->tree.fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_mode & 07777 : 0;
}

/* Packs that are not among the @n first ones of @was; removed with @gone. Return: how many there are. */
static size_t packs(const struct world *w, char was[16][SB_PACK_NAME], size_t n, bool gone)
{
	const int at = sb_snap_store_dir(w->store, SB_SNAP_PACKS);
	DIR *d = fdopendir(openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	size_t more = n;
	struct dirent *e;

	while (d && (e = readdir(d))) {
		bool known = e->d_name[0] == '.';

		for (size_t i = 0; i < n; i++)
			known = known || strcmp(was[i], e->d_name) == 0;
		if (!known && gone)
			CHECK_EQ(unlinkat(at, e->d_name, 0), 0);
		if (!known && more < 16)
			(void)snprintf(was[more++], SB_PACK_NAME, "%.64s", e->d_name);
	}
	(void)closedir(d);
	return more;
}

/* The third side is damaged: a restore goes on without it. */
TEST(without_the_snapshot_after)
{
	char was[16][SB_PACK_NAME];
	struct sb_err err = { 0 };
	struct world w;
	sb_autofd int d = -1;
	sb_autofd int back = -1;
	char text[16] = "";
	size_t n;

	REQUIRE(begin(&w) == 0 && mkdirat(w.tree.fd, "d", 0755) == 0);
	d = openat(w.tree.fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	REQUIRE(put(d, "f", "mine", 0644) == 0);
	REQUIRE(capture(&w, SB_SNAP_ROLE_BEFORE, &w.before) == 0);
	n = packs(&w, was, 0, false);
	REQUIRE(put(d, "f", "agent's", 0644) == 0);
	REQUIRE(capture(&w, SB_SNAP_ROLE_AFTER, &w.after) == 0);
	CHECK_EQ(packs(&w, was, n, true), n + 1);
	(void)sb_snap_store_free(w.store);
	REQUIRE(sb_snap_store_open(w.store_fd, false, &w.store, &err) == 0);
	CHECK_EQ(restore(&w, false), 1);
	back = openat(d, "f", O_RDONLY | O_CLOEXEC);
	CHECK(back >= 0 && read(back, text, sizeof(text) - 1) == 4);
	CHECK_STR(text, "mine");
	end(&w);
}

static void change_mode(struct world *w)
{
	REQUIRE(begin(w) == 0);
	REQUIRE(capture(w, SB_SNAP_ROLE_BEFORE, &w->before) == 0);
	REQUIRE(fchmodat(w->tree.fd, "f", 0666, 0) == 0);
	REQUIRE(capture(w, SB_SNAP_ROLE_AFTER, &w->after) == 0);
}

TEST(a_mode_is_put_back)
{
	struct world w;

	change_mode(&w);
	CHECK_EQ(restore(&w, false), 1);
	CHECK_EQ(mode_of(&w, "f"), 0644);
	end(&w);
}

TEST(another_file_of_that_name_does_not_get_it)
{
	struct world w;

	change_mode(&w);
	CHECK_EQ(restore(&w, true), 16);
	CHECK_EQ(mode_of(&w, "f"), 0604);
	end(&w);
}
