/*
 * sendbox cp: a file or folder out of a running instance, or into it. Inside, the instance's own tar works as
 * one more command of it (exec), with the session's rights and judged by its command policy; a process of its
 * own reads what that says (copy_unpack.c), or gives it what it reads (copy_pack.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "cmd_instance.h"
#include "copy.h"
#include "crypto/crypto.h"
#include "os/rmtree.h"

struct cp {
	struct instances *in;
	char name[65];   /* of the instance */
	char dir[4096];  /* in it */
	char base[256];
	const char *local;
	struct sb_err *err;
};

struct report { /* of the process that works beside */
	int code;
	struct copy_counts n;
	char text[SB_ERR_TEXT_MAX];
};

/* ---- names ---- */

/* "NAME:PATH"? A path with a colon is written ./a:b. */
static bool is_inside(const char *word)
{
	const char *colon = strchr(word, ':');
	char name[65];

	if (!colon || colon == word || (size_t)(colon - word) >= sizeof(name))
		return false;
	copy_text(name, sizeof(name), word, (size_t)(colon - word));
	return instance_name_ok(name);
}

static int take_inside(struct cp *c, const char *word)
{
	const char *path = strchr(word, ':') + 1;
	size_t len = strlen(path);
	const char *slash;
	const char *base;
	size_t n;

	copy_text(c->name, sizeof(c->name), word, (size_t)(path - 1 - word));
	while (len > 1 && path[len - 1] == '/')
		len--;
	slash = len ? memrchr(path, '/', len) : NULL;
	base = slash ? slash + 1 : path;
	n = (size_t)(path + len - base);
	if (len == 0 || len >= sizeof(c->dir) || n >= sizeof(c->base))
		return sb_err_set(c->err, -EINVAL, "\"%.200s\": NAME:PATH, with a path of the sandbox", word);
	copy_text(c->dir, sizeof(c->dir), slash ? path : ".", slash > path ? (size_t)(slash - path) : 1);
	copy_text(c->base, sizeof(c->base), base, n);
	if (!c->base[0] || strcmp(c->base, ".") == 0 || strcmp(c->base, "..") == 0)
		return sb_err_set(c->err, -EINVAL, "\"%.200s\": give the name of a file or folder", word);
	return 0;
}

/* ---- the process beside ---- */

struct beside {
	pid_t pid;
	int result;
	int pipe; /* our end */
};

/* @work runs in a process with the other end of a pipe. @out: it reads, we write. */
static int beside_start(struct beside *b, bool out, void (*work)(void *arg, int fd, struct report *r), void *arg,
			struct sb_err *err)
{
	int data[2];
	int res[2];

	if (pipe2(data, O_CLOEXEC) < 0 || pipe2(res, O_CLOEXEC) < 0)
		return sb_err_set(err, -errno, "pipe: %s", strerror(errno));
	(void)fflush(NULL);
	b->pid = fork();
	if (b->pid == 0) {
		struct report r = { 0 };

		(void)close(data[out ? 1 : 0]);
		(void)signal(SIGINT, SIG_IGN); /* it ends with the stream */
		work(arg, data[out ? 0 : 1], &r);
		_exit(sb_fd_write_all(res[1], &r, sizeof(r)) < 0 ? 1 : 0);
	}
	(void)close(data[out ? 0 : 1]);
	(void)close(res[1]);
	b->pipe = data[out ? 1 : 0];
	b->result = res[0];
	if (b->pid > 0)
		return 0;
	sb_fd_close(&b->pipe);
	sb_fd_close(&b->result);
	return sb_err_set(err, -EAGAIN, "cannot start a process");
}

static int beside_end(struct beside *b, struct report *r, struct sb_err *err)
{
	int k;

	sb_fd_close(&b->pipe);
	k = sb_fd_read_all(b->result, r, sizeof(*r));
	sb_fd_close(&b->result);
	while (waitpid(b->pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	if (k < 0)
		return sb_err_set(err, -EIO, "the copy was cut off");
	r->text[sizeof(r->text) - 1] = '\0';
	return r->code < 0 ? sb_err_set(err, r->code, "%s", r->text) : 0;
}

static void keep_error(struct report *r, int code, const struct sb_err *err)
{
	r->code = code;
	(void)snprintf(r->text, sizeof(r->text), "%s", err->text);
}

/* A command of ours in the instance. Return: 0 with its status; -errno with text. */
static int inside(struct cp *c, char *const *argv, int in, int out, int *status)
{
	const struct exec_want w = { .name = c->name, .argv = argv, .tty = 0, .io = { in, out, -1 } };
	int k = instance_exec(c->in, &w, status, c->err);

	if (k == 0 && *status == SB_EXIT_NO_PROGRAM)
		return sb_err_set(c->err, -ENOENT, "instance \"%s\" has no %s, which cp needs inside", c->name, argv[0]);
	return k;
}

/* ---- out ---- */

struct target {
	int dir;
	const char *name;
	int stage;
	char stage_name[40];
	const char *top;
};

/* An existing folder gets the copy in it; otherwise the path is its name. */
static int find_target(struct cp *c, struct target *t)
{
	struct stat st;
	int r = 0;

	t->name = c->base;
	t->dir = copy_open_dir(c->local);
	if (t->dir == -ENOENT || t->dir == -ENOTDIR)
		r = copy_place(c->local, &t->dir, &t->name, c->err);
	else if (t->dir < 0)
		return sb_err_set(c->err, t->dir, "%.200s: %s", c->local, t->dir == -ELOOP
				  ? "it is, or leads through, a symbolic link, which a session may have made: give the "
				    "path that it stands for (realpath)" : strerror(-t->dir));
	if (r == 0 && fstatat(t->dir, t->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(st.st_mode))
		return sb_err_set(c->err, -EEXIST, "%.200s: \"%.200s\" is there already, and no file", c->local, t->name);
	return r;
}

static int make_stage(struct cp *c, struct target *t)
{
	uint8_t random[8];
	char hex[17];

	sb_random(random, sizeof(random));
	sb_hex_write(random, sizeof(random), hex);
	(void)snprintf(t->stage_name, sizeof(t->stage_name), ".sendbox-cp-%s", hex);
	if (mkdirat(t->dir, t->stage_name, 0700) < 0)
		return sb_err_set(c->err, -errno, "%.200s: %s", c->local, strerror(errno));
	t->stage = openat(t->dir, t->stage_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return t->stage < 0 ? sb_err_set(c->err, -errno, "%.200s: %s", c->local, strerror(errno)) : 0;
}

static void unpack(void *arg, int fd, struct report *r)
{
	const struct target *t = arg;
	struct sb_err err = { 0 };
	int k = copy_unpack(fd, t->stage, t->top, &r->n, &err);

	keep_error(r, k, &err);
}

static int receive(struct cp *c, struct target *t, struct report *rep)
{
	char words[3][16] = { "tar", "-cf", "-" };
	char chdir_to[8] = "-C";
	char member[300];
	char *argv[] = { words[0], words[1], words[2], chdir_to, c->dir, member, NULL };
	struct beside b = { 0 };
	int status = 0;
	int r = beside_start(&b, true, unpack, t, c->err);
	struct sb_err first = { 0 };
	int k;

	if (r < 0)
		return r;
	(void)snprintf(member, sizeof(member), "./%s", c->base);
	r = sb_fd_set_nonblock(b.pipe, true); /* see host/channel/relay.c */
	if (r == 0)
		r = inside(c, argv, -1, b.pipe, &status);
	k = beside_end(&b, rep, &first);
	if (r < 0)
		return r;
	if (status != 0 && (k == 0 || rep->n.entries == 0) && status != 128 + SIGPIPE)
		return sb_err_set(c->err, -EIO, "%s:%s/%s: tar ended with status %d in the instance", c->name, c->dir,
				  c->base, status);
	return k < 0 ? sb_err_set(c->err, k, "what the instance sent is refused: %s", first.text) : 0;
}

static int place(struct cp *c, struct target *t)
{
	struct stat st;

	if (fstatat(t->stage, t->top, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return sb_err_set(c->err, -errno, "%s: %s", t->top, strerror(errno));
	/* a file takes the place of a file; nothing else takes any */
	if ((S_ISREG(st.st_mode) ? renameat(t->stage, t->top, t->dir, t->name)
				 : renameat2(t->stage, t->top, t->dir, t->name, RENAME_NOREPLACE)) < 0)
		return sb_err_set(c->err, -errno, "%.200s: %s", t->name, strerror(errno));
	return 0;
}

/* What is in it by descriptor: a session that can write to the target can put another folder in its place. */
static int remove_stage(const struct target *t)
{
	int r = t->stage >= 0 ? sb_rmtree(t->stage, t->top) : 0;

	if (unlinkat(t->dir, t->stage_name, AT_REMOVEDIR) < 0 && errno != ENOENT && r == 0)
		r = -errno;
	return r;
}

static int copy_out(struct cp *c)
{
	struct target t = { .dir = -1, .stage = -1, .top = c->base };
	struct report rep = { 0 };
	int r = find_target(c, &t);
	int k;

	if (r == 0)
		r = make_stage(c, &t);
	if (r == 0)
		r = receive(c, &t, &rep);
	if (r == 0)
		r = place(c, &t);
	if (t.stage_name[0]) {
		k = remove_stage(&t);
		if (k < 0 && r == 0)
			r = sb_err_set(c->err, k, "%s cannot be removed: %s", t.stage_name, strerror(-k));
	}
	sb_fd_close(&t.stage);
	sb_fd_close(&t.dir);
	if (r == 0 && rep.n.left_out > 0)
		cli_error("left out: %llu symbolic link%s that lead%s out of what was copied",
			  (unsigned long long)rep.n.left_out, rep.n.left_out == 1 ? "" : "s",
			  rep.n.left_out == 1 ? "s" : "");
	return r;
}

/* ---- in ---- */

struct source {
	int dir;
	const char *name;
	const char *as;
};

static void pack(void *arg, int fd, struct report *r)
{
	const struct source *s = arg;
	struct sb_err err = { 0 };

	(void)signal(SIGPIPE, SIG_IGN);
	keep_error(r, copy_pack(s->dir, s->name, s->as, fd, &err), &err);
}

/* Whether the path inside is a folder, which then gets the copy in it. */
static int is_folder(struct cp *c, char *whole, size_t cap, bool *ret)
{
	char words[2][8] = { "test", "-d" };
	char *argv[] = { words[0], words[1], whole, NULL };
	int status = 0;
	int r;

	if (snprintf(whole, cap, "%s/%s", strcmp(c->dir, "/") == 0 ? "" : c->dir, c->base) >= (int)cap)
		return sb_err_set(c->err, -ENAMETOOLONG, "the path is too long");
	r = inside(c, argv, -1, -1, &status);
	*ret = status == 0;
	return r;
}

static int copy_in(struct cp *c)
{
	char words[3][16] = { "tar", "-xpf", "-" };
	char chdir_to[8] = "-C";
	char whole[4400];
	char local[4096];
	bool folder = false;
	struct source s = { .dir = -1 };
	struct beside b = { 0 };
	struct report rep = { 0 };
	struct sb_err first = { 0 };
	size_t len = strlen(c->local);
	int status = 0;
	int k;
	int r;

	if (len >= sizeof(local))
		return sb_err_set(c->err, -ENAMETOOLONG, "the path is too long");
	while (len > 1 && c->local[len - 1] == '/')
		len--;
	copy_text(local, sizeof(local), c->local, len);
	r = copy_place(local, &s.dir, &s.name, c->err);
	if (r == 0)
		r = is_folder(c, whole, sizeof(whole), &folder);
	if (r == 0) {
		char *argv[] = { words[0], words[1], words[2], chdir_to, folder ? whole : c->dir, NULL };

		s.as = folder ? s.name : c->base;
		r = beside_start(&b, false, pack, &s, c->err);
		if (r == 0) {
			r = inside(c, argv, b.pipe, -1, &status);
			k = beside_end(&b, &rep, &first);
			if (r == 0 && k < 0 && k != -EPIPE)
				r = sb_err_set(c->err, k, "%s", first.text);
			else if (r == 0 && (status != 0 || k < 0))
				r = sb_err_set(c->err, -EIO, "%s:%s: tar ended with status %d in the instance", c->name,
					       whole, status);
		}
	}
	sb_fd_close(&s.dir);
	return r;
}

int cmd_cp(int argc, char **argv)
{
	static const struct cli_option table[] = {
		{ "help", 'h', NULL, "this text", VERB_HELP },
	};
	static const struct verb v = { "sendbox cp NAME:PATH LOCAL\n       sendbox cp LOCAL NAME:PATH",
				       "Copy a file or folder out of a running instance, or into it.", table,
				       SB_ARRAY_LEN(table), NULL };
	static struct cp c;
	struct sb_err err = { 0 };
	bool from;
	int at = 0;
	int k = verb_options(&v, NULL, argc, argv, &at);

	if (k != 0)
		return k == VERB_DONE ? SB_EXIT_OK : SB_EXIT_USAGE;
	from = argc - at == 2 && is_inside(argv[at]);
	if (argc - at != 2 || from == is_inside(argv[at + 1])) {
		cli_error("write: %s", v.usage);
		return SB_EXIT_USAGE;
	}
	c.err = &err;
	c.local = argv[at + (from ? 1 : 0)];
	k = take_inside(&c, argv[at + (from ? 0 : 1)]);
	if (k == 0 && instances_open(&c.in) < 0)
		return SB_EXIT_INTERNAL;
	if (k == 0)
		k = from ? copy_out(&c) : copy_in(&c);
	if (k < 0)
		cli_error("%s", err.code ? err.text : strerror(-k));
	return k == 0 ? SB_EXIT_OK : k == -EINVAL ? SB_EXIT_USAGE : k == -EACCES ? SB_EXIT_PLAN_REFUSED : SB_EXIT_NO;
}
