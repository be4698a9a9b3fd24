/*
 * What an execve is about to run, found as the kernel will find it: by the caller's memory, working
 * directory and descriptors, with the workload's rights over files (the judge's file system
 * identity is the workload's). The answer is a forecast: everything read here can change before the
 * kernel reads it. So nothing here has to be proof against races; the window compares afterwards.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "exec/judge_i.h"

#ifndef AT_EXECVE_CHECK
#define AT_EXECVE_CHECK 0x10000
#endif
#define MAX_LINKS 40
#define PROC_ROOT_INO 1

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#define MACHINE_32 EM_386
#else
#define MACHINE EM_AARCH64
#define MACHINE_32 EM_ARM
#endif

/* --- files ------------------------------------------------------------------------------ */

int look_open(struct judge *j, const char *path, int flags)
{
	int fd = openat(j->proc, path, flags | O_CLOEXEC);

	/* the folder of a process that is not dumpable belongs to root */
	if (fd < 0 && errno == EACCES && judge_rights(true)) {
		int e;

		fd = openat(j->proc, path, flags | O_CLOEXEC);
		e = errno;
		(void)judge_rights(false);
		errno = e;
	}
	return fd < 0 ? -errno : fd;
}

static int open_at(const struct judge *j, int dir, const char *path, int extra)
{
	struct open_how how = { .flags = (uint64_t)(unsigned int)(O_PATH | O_CLOEXEC | extra),
				.resolve = RESOLVE_NO_MAGICLINKS };

	(void)j;
	return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

/*
 * Slow way, for paths through the magic links of /proc, where "self" must be the caller: component
 * by component. @cur: taken. Return: fd; -errno.
 */
struct walk {
	struct judge *j;
	const struct call *c;
	int cur; /* owned */
	char rest[2 * PATH_MAX]; /* what is left to do */
	unsigned int links;
	bool loose; /* a folder on the way can be changed by the workload, or is one of /proc */
};

static bool is_proc_root(const struct judge *j, int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == j->proc_dev && st.st_ino == PROC_ROOT_INO;
}

/* Whether the workload may write there, or make itself able to. */
static bool changeable(int fd, const struct stat *st)
{
	struct statfs fs;

	if (syscall(SYS_faccessat2, fd, "", W_OK, AT_EMPTY_PATH | AT_EACCESS) == 0)
		return true;
	return st->st_uid == (uid_t)setfsuid((uid_t)-1) &&
	       (fstatfs(fd, &fs) < 0 || !(fs.f_flags & ST_RDONLY));
}

static void walk_note(struct walk *w)
{
	struct stat st;

	if (!w->loose)
		w->loose = fstat(w->cur, &st) < 0 || st.st_dev == w->j->proc_dev ||
			   changeable(w->cur, &st);
}

static int walk_move(struct walk *w, int fd)
{
	if (fd < 0)
		return -errno;
	(void)close(w->cur);
	w->cur = fd;
	return 0;
}

/* Put the text of a link before the rest. */
static int walk_link(struct walk *w, const char *text)
{
	size_t len = strlen(text);
	size_t rest = strlen(w->rest);

	if (++w->links > MAX_LINKS)
		return -ELOOP;
	if (len + rest + 2 > sizeof(w->rest))
		return -ENAMETOOLONG;
	memmove(w->rest + len + 1, w->rest, rest + 1);
	memcpy(w->rest, text, len);
	w->rest[len] = '/';
	return text[0] == '/' ? walk_move(w, open("/", O_PATH | O_CLOEXEC)) : 0;
}

/* One component. @last: the final one. */
static int walk_step(struct walk *w, const char *name, bool follow)
{
	char text[PATH_MAX];
	struct stat st;
	sb_autofd int fd = -1;
	ssize_t n;

	if (is_proc_root(w->j, w->cur)) {
		if (strcmp(name, "self") == 0) {
			(void)snprintf(text, sizeof(text), "%d", w->c->tgid);
			return walk_link(w, text);
		}
		if (strcmp(name, "thread-self") == 0) {
			(void)snprintf(text, sizeof(text), "%d/task/%d", w->c->tgid, w->c->tid);
			return walk_link(w, text);
		}
	}
	fd = openat(w->cur, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == EACCES && judge_rights(true)) {
		fd = openat(w->cur, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		(void)judge_rights(false);
		if (fd < 0 || fstat(fd, &st) < 0 || st.st_dev != w->j->proc_dev)
			return -EACCES;
	}
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISLNK(st.st_mode) || !follow)
		return walk_move(w, sb_fd_take(&fd));
	n = readlinkat(fd, "", text, sizeof(text) - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	if (st.st_dev == w->j->proc_dev) { /* a magic one leads elsewhere than it says */
		int there = open_at(w->j, w->cur, name, 0);

		if (there < 0 && errno == ELOOP) {
			if (++w->links > MAX_LINKS)
				return -ELOOP;
			there = openat(w->cur, name, O_PATH | O_CLOEXEC);
			return walk_move(w, there);
		}
		if (there >= 0)
			(void)close(there);
	}
	return walk_link(w, text);
}

/* @ret_loose: may be NULL; whether the name can lead elsewhere later. */
static int walk_slowly(struct judge *j, const struct call *c, int dir, const char *path,
		       bool follow, bool *ret_loose)
{
	struct walk w = { .j = j, .c = c, .loose = !ret_loose };
	int r = 0;

	w.cur = path[0] == '/' ? open("/", O_PATH | O_CLOEXEC) : fcntl(dir, F_DUPFD_CLOEXEC, 3);
	if (w.cur < 0)
		return -errno;
	(void)snprintf(w.rest, sizeof(w.rest), "%s", path);
	while (r == 0) {
		char name[NAME_MAX + 1];
		char *p = w.rest + strspn(w.rest, "/");
		size_t len = strcspn(p, "/");
		bool last = p[len + strspn(p + len, "/")] == '\0';

		if (len == 0) {
			if (ret_loose)
				*ret_loose = w.loose;
			return w.cur;
		}
		walk_note(&w);
		if (len > NAME_MAX) {
			r = -ENAMETOOLONG;
			break;
		}
		memcpy(name, p, len);
		name[len] = '\0';
		memmove(w.rest, p + len, strlen(p + len) + 1);
		r = walk_step(&w, name, follow || !last || w.rest[0] == '/');
	}
	(void)close(w.cur);
	return r;
}

/* Where a relative path begins. Return: fd, owned by the caller; -errno. */
static int open_start(struct judge *j, const struct call *c, int dirfd)
{
	char path[64];

	if (dirfd == AT_FDCWD)
		(void)snprintf(path, sizeof(path), "%d/cwd", c->tid);
	else
		(void)snprintf(path, sizeof(path), "%d/fd/%d", c->tid, dirfd);
	return look_open(j, path, O_PATH);
}

/* Return: O_PATH descriptor; -errno. */
static int find(struct judge *j, const struct call *c, int dirfd, const char *path, bool follow)
{
	sb_autofd int dir = -1;
	int fd;

	if (path[0] != '/') {
		dir = open_start(j, c, dirfd);
		if (dir < 0)
			return dir == -ENOENT && dirfd != AT_FDCWD ? -EBADF : dir;
	}
	fd = open_at(j, dir, path, follow ? 0 : O_NOFOLLOW);
	if (fd < 0 && errno == ELOOP)
		return walk_slowly(j, c, dir, path, follow, NULL);
	return fd < 0 ? -errno : fd;
}

bool look_path_of(struct judge *j, int fd, const struct stat *st, char *out, size_t cap)
{
	static const char gone[] = " (deleted)";
	char link[48];
	struct stat there;
	ssize_t n;

	out[0] = '\0';
	if (st->st_nlink == 0)
		return false;
	(void)snprintf(link, sizeof(link), "self/fd/%d", fd);
	n = readlinkat(j->proc, link, out, cap - 1);
	if (n <= 0 || (size_t)n >= cap - 1 || out[0] != '/') {
		out[0] = '\0';
		return false;
	}
	out[n] = '\0';
	if ((size_t)n < sizeof(gone) || strcmp(out + n - (sizeof(gone) - 1), gone) != 0)
		return true;
	/* a name of that end, or a name that is gone while others of the file are not */
	if (stat(out, &there) == 0 && there.st_dev == st->st_dev && there.st_ino == st->st_ino)
		return true;
	out[0] = '\0';
	return false;
}

enum format { NATIVE, SCRIPT, FOREIGN };

static enum format format_of(const uint8_t *head, size_t len)
{
	uint16_t machine;

	if (len >= 2 && head[0] == '#' && head[1] == '!')
		return SCRIPT;
	if (len < 20 || memcmp(head, ELFMAG, SELFMAG) != 0)
		return FOREIGN;
	memcpy(&machine, head + 18, sizeof(machine));
	return machine == MACHINE || machine == MACHINE_32 ? NATIVE : FOREIGN;
}

/* Its first bytes, with all rights: the kernel needs none to read what it executes. */
static ssize_t read_head(struct judge *j, int fd, uint8_t head[SB_CMD_HEAD])
{
	char path[48];
	sb_autofd int file = -1;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "self/fd/%d", fd);
	file = look_open(j, path, O_RDONLY | O_NONBLOCK); /* a lease must not hold us up */
	if (file < 0)
		return -1;
	n = pread(file, head, SB_CMD_HEAD, 0);
	return n;
}

/*
 * Files that were native programs when they were last read. One that is not any more, and has the
 * times of before, is taken for what it was: then what runs is another file, and the window sees it.
 */
static struct known *known_slot(struct judge *j, const struct stat *st)
{
	return &j->known[(st->st_ino ^ st->st_ino >> 8) % KNOWN];
}
static struct known known_as(const struct stat *st)
{
	return (struct known){ .dev = st->st_dev,
			       .ino = st->st_ino,
			       .size = (uint64_t)st->st_size,
			       .changed = st->st_ctim };
}
static bool is_known(struct judge *j, const struct stat *st)
{
	struct known now = known_as(st);

	return memcmp(known_slot(j, st), &now, sizeof(now)) == 0;
}

/* What level @n runs. Return: 1 when by an interpreter, whose name is in line[n]; 0; as look_at. */
static int look_level(struct judge *j, struct look *k, size_t n)
{
	struct sb_cmd_request *q = &k->level[n];
	uint8_t head[SB_CMD_HEAD];
	struct stat st;
	ssize_t got;

	if (fstat(k->fd[n], &st) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode))
		return -ELOOP;
	if (!S_ISREG(st.st_mode))
		return -EACCES;
	/* of the usual modes the kernel's answer is known, but for a mount without execution, which
	 * it tells by itself */
	if ((st.st_mode & 0111) != 0111 &&
	    syscall(SYS_faccessat2, k->fd[n], "", X_OK, AT_EMPTY_PATH | AT_EACCESS) < 0)
		return -errno;
	(void)look_path_of(j, k->fd[n], &st, k->path[n], PATH_MAX);
	q->path = k->path[n];
	q->file = (struct sb_cmd_file){ .dev = st.st_dev,
					.ino = st.st_ino,
					.size = (uint64_t)st.st_size };
	q->fd = k->fd[n];
	q->project = NULL;
	q->loose = false;
	if (is_known(j, &st))
		return 0;
	got = read_head(j, k->fd[n], head);
	if (got < 0)
		return LOOK_UNSEEN;
	switch (format_of(head, (size_t)got)) {
	case SCRIPT:
		return sb_cmd_shebang(head, (size_t)got, &k->line[n]);
	case FOREIGN:
		k->foreign = true;
		return 0;
	case NATIVE:
	default:
		*known_slot(j, &st) = known_as(&st);
		return 0;
	}
}

/* argv of an interpreter: itself, its argument, the script's name, the rest. */
static void next_argv(struct look *k, size_t n, const char *script)
{
	const struct sb_cmd_request *was = &k->level[n - 1];
	const struct sb_cmd_shebang *line = &k->line[n - 1];
	const char **v = k->argv[n];
	size_t at = 0;

	v[at++] = line->interp;
	if (line->arg[0])
		v[at++] = line->arg;
	v[at++] = script;
	if (was->argc > 1)
		memcpy(v + at, was->argv + 1, (was->argc - 1) * sizeof(*v));
	at += was->argc - 1;
	v[at] = NULL;
	k->level[n].argv = v;
	k->level[n].argc = at;
}

/* How the kernel calls the file for an interpreter. */
static void script_name(const struct call *c, struct look *k)
{
	char start[32];
	size_t len = strlen(k->name);
	size_t n;

	if (c->dirfd == AT_FDCWD || k->name[0] == '/')
		return;
	n = (size_t)snprintf(start, sizeof(start), "/dev/fd/%d%s", c->dirfd, len ? "/" : "");
	if (n + len >= sizeof(k->name))
		return; /* the window will see another one */
	memmove(k->name + n, k->name, len + 1);
	memcpy(k->name, start, n);
}

int look_at(struct judge *j, const struct call *c, struct look *k)
{
	const char *script = k->name;
	size_t name_got;
	size_t pointers_got;
	int r;

	k->n = 0;
	k->foreign = false;
	if (c->flags & ~(unsigned int)(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_EXECVE_CHECK))
		return -EINVAL;
	pointers_got = peek_both(c, k, &name_got);
	r = peek_name(c, k, name_got);
	if (r != 0)
		return r;
	k->fd[0] = k->name[0] ? find(j, c, c->dirfd, k->name, !(c->flags & AT_SYMLINK_NOFOLLOW))
			      : open_start(j, c, c->dirfd);
	if (k->fd[0] < 0)
		return k->name[0] == '\0' && k->fd[0] == -ENOENT ? -EBADF : k->fd[0];
	k->n = 1;
	r = peek_argv(c, k, pointers_got);
	if (r == 0)
		r = look_level(j, k, 0);
	if (r == 1)
		script_name(c, k);
	while (r == 1) {
		size_t n = k->n;

		if (n == LEVELS)
			return -ELOOP;
		k->fd[n] = find(j, c, AT_FDCWD, k->line[n - 1].interp, true);
		if (k->fd[n] < 0)
			return k->fd[n];
		k->n++;
		next_argv(k, n, script);
		script = k->line[n - 1].interp;
		r = look_level(j, k, n);
	}
	return r;
}

void look_names(struct judge *j, const struct call *c, struct look *k)
{
	for (size_t n = 0; n + 1 < k->n; n++) {
		const char *name = n == 0 ? k->name : k->line[n - 1].interp;
		bool loose = true;
		struct stat st;
		int fd;

		if (fstat(k->fd[n], &st) == 0 && changeable(k->fd[n], &st))
			continue;
		fd = name[0] == '/' ? walk_slowly(j, c, -1, name, true, &loose) : -1;
		sb_fd_close(&fd);
		k->level[n].loose = loose;
	}
}

void look_done(struct look *k)
{
	for (size_t i = 0; i < k->n; i++)
		sb_fd_close(&k->fd[i]);
	k->n = 0;
}

/* Scratch is mapped and touched when it is needed; it lives as long as the judge. */
static void *scratch(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

int look_new(struct look *k)
{
	const size_t pointers = SB_CMD_MAX_ARGV + 2U * LEVELS + 2U;

	k->words = scratch(WORDS_ROOM);
	k->spare = scratch(WORDS_ROOM);
	k->pointers = scratch(pointers * sizeof(uint64_t));
	if (!k->words || !k->spare || !k->pointers)
		return -ENOMEM;
	for (size_t i = 0; i < LEVELS; i++) {
		k->argv[i] = scratch(pointers * sizeof(*k->argv[i]));
		k->path[i] = malloc(PATH_MAX);
		k->fd[i] = -1;
		if (!k->argv[i] || !k->path[i])
			return -ENOMEM;
	}
	return 0;
}
