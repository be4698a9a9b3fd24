/*
 * libfyaml in a child of its own: it has the bytes, a pipe to write records to, memory, and nothing
 * else. Records: four native words (what, line, column, length), then the text. The last one has a
 * what of END and the result as its length.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "doc_yaml.h"

#define END 255U
#define END_DONE 0U
#define END_BAD 1U
#define END_NO_MEMORY 2U

struct record {
	uint32_t what;
	uint32_t line;
	uint32_t col;
	uint32_t len;
};

/* ---- the child ---- */

struct out {
	int fd;
	size_t depth;
	size_t nodes;
	size_t n;
	char room[32U << 10];
};

static int flush(struct out *o)
{
	int r = sb_fd_write_all(o->fd, o->room, o->n);

	o->n = 0;
	return r;
}

static int put(struct out *o, const void *data, size_t len)
{
	int r = 0;

	if (len > sizeof(o->room) - o->n)
		r = flush(o);
	if (r == 0 && len > sizeof(o->room))
		return sb_fd_write_all(o->fd, data, len);
	if (r == 0 && len > 0) {
		memcpy(o->room + o->n, data, len);
		o->n += len;
	}
	return r;
}

/* Past a limit that the other side has there is nothing more to send; it tells what it was. */
static bool is_past(struct out *o, enum yaml_what what)
{
	if (what == YAML_CLOSE)
		o->depth--;
	else if (what != YAML_PROBLEM && ++o->nodes > DOC_MAX_NODES + DOC_MAX_DEPTH)
		return true;
	return (what == YAML_SEQ || what == YAML_MAP) && ++o->depth > DOC_MAX_DEPTH;
}

static int send_event(void *arg, const struct yaml_event *e)
{
	const struct record h = { (uint32_t)e->what, e->line, e->col, (uint32_t)e->len };
	struct out *o = arg;
	int r;

	if (e->len > DOC_MAX_BYTES)
		return -EBADMSG;
	r = put(o, &h, sizeof(h));
	if (r == 0)
		r = put(o, e->text, e->len);
	return r == 0 && is_past(o, e->what) ? -EBADMSG : r;
}

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif
#define LOAD(off) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(off))
#define RET(v) BPF_STMT(BPF_RET | BPF_K, (v))
#define ALLOW(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(nr), 0, 1), RET(SECCOMP_RET_ALLOW)

static int close_others(unsigned int fd)
{
	if (fd > 0 && syscall(SYS_close_range, 0, fd - 1, 0) < 0)
		return -1;
	return syscall(SYS_close_range, fd + 1, ~0U, 0) < 0 ? -1 : 0;
}

/* Memory, this one pipe, the end. Anything else fails. */
static int enter(int fd)
{
	struct sock_filter code[] = {
		LOAD(offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
		RET(SECCOMP_RET_KILL_PROCESS),
		LOAD(offsetof(struct seccomp_data, nr)),
		ALLOW(SYS_brk), ALLOW(SYS_mmap), ALLOW(SYS_munmap), ALLOW(SYS_mremap),
		ALLOW(SYS_madvise), ALLOW(SYS_futex), ALLOW(SYS_getrandom), ALLOW(SYS_exit_group),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 0, 3),
		LOAD(offsetof(struct seccomp_data, args)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)fd, 0, 1),
		RET(SECCOMP_RET_ALLOW),
		RET(SECCOMP_RET_ERRNO | EPERM),
	};
	const struct sock_fprog prog = { SB_ARRAY_LEN(code), code };
	const struct rlimit cpu = { YAML_CPU_S, YAML_CPU_S };

	if (setrlimit(RLIMIT_CPU, &cpu) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    close_others((unsigned int)fd) < 0 || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
		return -errno;
	return 0;
}

SB_NORETURN static void child(int fd, const char *bytes, size_t len)
{
	static struct out o;
	struct record end = { .what = END, .len = END_NO_MEMORY };
	int r;

	o.fd = fd;
	if (enter(fd) < 0)
		_exit(1);
	r = yaml_parse(bytes, len, send_event, &o);
	if (r != -ENOMEM)
		end.len = r == 0 ? END_DONE : END_BAD;
	if (put(&o, &end, sizeof(end)) < 0 || flush(&o) < 0)
		_exit(1);
	_exit(0);
}

/* ---- this process ---- */

struct in {
	int fd;
	size_t at;
	size_t n;
	char room[32U << 10];
	char *text; /* owned */
	size_t cap;
};

/* Return: 0; -EPIPE at an end; -errno. */
static int get(struct in *i, void *out, size_t len)
{
	char *to = out;

	while (len > 0) {
		size_t one;

		if (i->at == i->n) {
			ssize_t n = read(i->fd, i->room, sizeof(i->room));

			if (n < 0 && errno == EINTR)
				continue;
			if (n <= 0)
				return n < 0 ? -errno : -EPIPE;
			i->at = 0;
			i->n = (size_t)n;
		}
		one = SB_MIN(len, i->n - i->at);
		memcpy(to, i->room + i->at, one);
		i->at += one;
		to += one;
		len -= one;
	}
	return 0;
}

static int get_text(struct in *i, size_t len)
{
	if (len > i->cap) {
		char *more = realloc(i->text, len);

		if (!more)
			return -ENOMEM;
		i->text = more;
		i->cap = len;
	}
	return get(i, i->text, len);
}

static int next(struct in *i, struct doc_build *b, bool *ret_end)
{
	struct record h;
	struct yaml_event e;
	int r = get(i, &h, sizeof(h));

	if (r < 0)
		return r;
	if (h.what == END) {
		*ret_end = true;
		return h.len == END_DONE ? 0 : h.len == END_NO_MEMORY ? -ENOMEM : -EBADMSG;
	}
	if (h.what > YAML_PROBLEM || h.len > DOC_MAX_BYTES)
		return -EPIPE;
	r = get_text(i, h.len);
	if (r < 0)
		return r;
	e = (struct yaml_event){ .what = (enum yaml_what)h.what, .line = h.line, .col = h.col,
				 .text = i->text ? i->text : "", .len = h.len };
	return yaml_build(b, &e);
}

int yaml_records(struct doc_build *b, int fd)
{
	struct in *i = calloc(1, sizeof(*i));
	bool end = false;
	int r = i ? 0 : -ENOMEM;

	if (i)
		i->fd = fd;
	while (r == 0 && !end)
		r = next(i, b, &end);
	if (i)
		free(i->text);
	free(i);
	return r;
}

int yaml_jailed(struct doc_build *b, const char *bytes, size_t len)
{
	const struct doc_node whole = { .file = b->d->file };
	size_t before = b->p->n + b->p->dropped;
	sb_autofd int rd = -1;
	sb_autofd int wr = -1;
	int p[2];
	pid_t pid;
	int r;

	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	rd = p[0];
	wr = p[1];
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		child(wr, bytes, len);
	sb_fd_close(&wr);
	r = yaml_records(b, rd);
	sb_fd_close(&rd); /* it ends when it writes on */
	(void)kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	if (r == -EPIPE || (r == -EBADMSG && b->p->n + b->p->dropped == before)) {
		problems_add(b->p, &whole, "", "syntax",
			     "cannot be read as YAML: the parser came to no end with it");
		r = -EBADMSG;
	}
	return r;
}
