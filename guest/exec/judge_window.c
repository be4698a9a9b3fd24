/*
 * The window: from the answer CONTINUE until the new program is in place. The calling thread is
 * seized before it is let go, so that it stops at PTRACE_EVENT_EXEC: memory and descriptors are the
 * new program's, every other thread is gone, nothing of it has run, and nobody else can write the
 * memory. What is in place then is compared with what was judged.
 *
 * A seized thread that does not get there (ENOEXEC and the like, after the judge's look) runs on as
 * it did; it is let go at its first stop: one that the judge asks for after LATE_NS, or the
 * delivery of a signal, which is passed on. No stop before the return to user mode exists but
 * PTRACE_EVENT_EXEC, so whatever else stops says that the execve is over; one that the kernel
 * restarts asks again.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "crypto/crypto.h"
#include "exec/judge_i.h"

#define LATE_NS 20000000U
#define OPTIONS ((unsigned long)(PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL))

/* ptrace takes pid, address and data as it likes them. */
static int trace(int request, pid_t tid, unsigned long data)
{
	return ptrace((enum __ptrace_request)request, tid, NULL, (void *)data) < 0 ? -errno : 0;
}

/* Let go of a thread that is stopped. One that is being killed is reaped instead. */
static void let_go(struct judge *j, pid_t pid, int signo)
{
	if (trace(PTRACE_DETACH, pid, (unsigned long)signo) == 0)
		j->n_traced--;
}

static struct window **bucket(struct judge *j, pid_t tgid)
{
	return &j->buckets[(unsigned int)tgid % BUCKETS];
}

struct window *window_of(struct judge *j, pid_t tgid)
{
	for (struct window *w = *bucket(j, tgid); w; w = w->next)
		if (w->tgid == tgid)
			return w;
	return NULL;
}

/* Of a thread that stopped or died: mostly the only one of its process. */
static struct window *window_by_tid(struct judge *j, pid_t tid)
{
	struct window *w = window_of(j, tid);

	if (w && w->tid == tid)
		return w;
	for (size_t i = 0; i < BUCKETS; i++)
		for (w = j->buckets[i]; w; w = w->next)
			if (w->tid == tid)
				return w;
	return NULL;
}

/* Forget it, and let what waited for it come. */
static void done(struct judge *j, struct window *w)
{
	struct window **at = bucket(j, w->tgid);
	struct call *waiting = w->waiting;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	w->waiting = NULL;
	if (--j->n_windows == 0)
		j->late_ns = 0;
	if (j->spare) {
		free(w->bytes);
		free(w);
	} else {
		j->spare = w;
	}
	judge_release(j, waiting);
}

/* --- what was judged -------------------------------------------------------------------- */

static int keep_argv(struct window *w, const struct look *k)
{
	const struct sb_cmd_request *q = &k->level[k->n - 1];
	size_t len = 0;
	char *at;

	for (size_t i = 0; i < q->argc; i++)
		len += strlen(q->argv[i]) + 1;
	w->len = len;
	/* the words of the last level lie in several places; the spare room takes them in a row */
	at = k->spare;
	for (size_t i = 0; i < q->argc; i++) {
		size_t one = strlen(q->argv[i]) + 1;

		memcpy(at, q->argv[i], one);
		at += one;
	}
	if (len > KEEP_ARGV) {
		sb_sha256(k->spare, len, w->sum);
		return 0;
	}
	if (len > w->room) {
		free(w->bytes);
		w->room = 0;
		w->bytes = malloc(KEEP_ARGV);
		if (!w->bytes)
			return -ENOMEM;
		w->room = KEEP_ARGV;
	}
	memcpy(w->bytes, k->spare, len);
	return 0;
}

static struct window *take(struct judge *j)
{
	struct window *w = j->spare ? sb_take(&j->spare) : calloc(1, sizeof(*w));
	uint8_t *bytes;
	size_t room;

	if (!w)
		return NULL;
	bytes = w->bytes;
	room = w->room;
	memset(w, 0, offsetof(struct window, ev));
	w->bytes = bytes;
	w->room = room;
	w->waiting = NULL;
	return w;
}

void window_late(struct judge *j)
{
	uint64_t now = sb_now_ns();

	for (size_t i = 0; i < BUCKETS; i++)
		for (struct window *w = j->buckets[i]; w; w = w->next)
			if (now - w->since_ns >= LATE_NS)
				window_hurry(j, w);
	j->late_ns = now + LATE_NS;
}

void window_hurry(struct judge *j, struct window *w)
{
	(void)j;
	if (w->interrupted)
		return;
	w->interrupted = true;
	(void)trace(PTRACE_INTERRUPT, w->tid, 0);
}

int window_open(struct judge *j, const struct call *c, const struct look *k,
		const struct sb_judge_event *ev)
{
	const struct sb_cmd_request *q = &k->level[k->n - 1];
	struct window *w = window_of(j, c->tgid);
	bool attached = w != NULL;
	int r;

	sb_assert(!w || w->tid == c->tid);
	if (!w)
		w = take(j);
	if (!w)
		return -ENOMEM;
	w->tid = c->tid;
	w->tgid = c->tgid;
	w->l = c->l;
	w->interrupted = false;
	w->foreign = k->foreign;
	w->top_level = !c->l->ran;
	w->dev = q->file.dev;
	w->ino = q->file.ino;
	w->ev = *ev;
	r = keep_argv(w, k);
	if (r == 0 && !attached)
		r = trace(PTRACE_SEIZE, c->tid, OPTIONS);
	w->since_ns = sb_now_ns();
	if (attached)
		return r;
	if (r < 0) {
		free(w->bytes);
		free(w);
		return r;
	}
	w->next = *bucket(j, c->tgid);
	*bucket(j, c->tgid) = w;
	j->n_windows++;
	j->n_traced++;
	if (j->late_ns == 0)
		j->late_ns = w->since_ns + LATE_NS;
	return 0;
}

void window_drop(struct judge *j, pid_t tgid)
{
	struct window *w = window_of(j, tgid);

	if (w)
		window_hurry(j, w);
}

/* --- what is in place ------------------------------------------------------------------- */

/* The words of the new stack, into the spare room. Return: bytes; -errno. */
static ssize_t read_stack(struct judge *j, pid_t pid, size_t cap)
{
	char path[32];
	sb_autofd int fd = -1;
	size_t len = 0;

	(void)snprintf(path, sizeof(path), "%d/cmdline", pid);
	fd = openat(j->proc, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (len < cap) {
		ssize_t n = read(fd, j->look.spare + len, cap - len);

		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	return (ssize_t)len;
}

static bool same_argv(struct judge *j, pid_t pid, const struct window *w)
{
	uint8_t sum[32];

	/* one byte more than there must be */
	if (read_stack(j, pid, w->len + 1) != (ssize_t)w->len)
		return false;
	if (w->len <= KEEP_ARGV)
		return memcmp(j->look.spare, w->bytes, w->len) == 0;
	sb_sha256(j->look.spare, w->len, sum);
	return memcmp(sum, w->sum, sizeof(sum)) == 0;
}

/* A program that only the kernel knew who runs (binfmt_misc): judged now, by what runs. */
static bool allowed_as_it_is(struct judge *j, pid_t pid, const struct window *w,
			     const struct stat *st)
{
	char link[32];
	char path[PATH_MAX];
	struct look *k = &j->look;
	struct sb_cmd_request q = {
		.path = path, .fd = -1, .argv = k->argv[0], .project = j->plan->cwd,
		.top_level = w->top_level,
		.file = { .dev = st->st_dev, .ino = st->st_ino, .size = (uint64_t)st->st_size },
	};
	struct sb_cmd_verdict v;
	ssize_t n;

	(void)snprintf(link, sizeof(link), "%d/exe", pid);
	n = readlinkat(j->proc, link, path, sizeof(path) - 1);
	if (n < 0)
		return false;
	path[n] = '\0';
	if (st->st_nlink == 0)
		path[0] = '\0';
	n = read_stack(j, pid, SB_CMD_MAX_ARGV_BYTES);
	if (n <= 0 || (size_t)n == SB_CMD_MAX_ARGV_BYTES || k->spare[n - 1] != '\0')
		return false;
	for (const char *at = k->spare; at < k->spare + n; at += strlen(at) + 1) {
		if (q.argc == SB_CMD_MAX_ARGV)
			return false;
		k->argv[0][q.argc++] = at;
	}
	k->argv[0][q.argc] = NULL;
	v = sb_cmdpol_decide(j->policy, &q);
	return v.action == SB_CMD_ALLOW || v.action == SB_CMD_LOG;
}

static bool holds(struct judge *j, pid_t pid, const struct window *w)
{
	char path[32];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%d/exe", pid);
	if (fstatat(j->proc, path, &st, 0) < 0)
		return false;
	if (w->foreign && (st.st_dev != w->dev || st.st_ino != w->ino))
		return allowed_as_it_is(j, pid, w, &st);
	return st.st_dev == w->dev && st.st_ino == w->ino && same_argv(j, pid, w);
}

/* The process @pid is stopped at its new program. */
static void in_place(struct judge *j, pid_t pid, struct window *w)
{
	if (w && holds(j, pid, w)) {
		if (w->l)
			w->l->ran = true;
		let_go(j, pid, 0);
		done(j, w);
		return;
	}
	(void)kill(pid, SIGKILL); /* not one instruction of it has run */
	if (!w)
		return;
	w->ev.killed = 1;
	w->ev.action = SB_CMD_DENY;
	(void)snprintf(w->ev.why, sizeof(w->ev.why), "%s", WHY_CHANGED);
	if (j->plan->commands.log_blocked)
		tell(j, &w->ev);
	done(j, w);
}

static void stopped(struct judge *j, pid_t pid, int status)
{
	int signo = WSTOPSIG(status);
	struct window *w;

	if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8)) {
		/* whichever thread it was, it has the number of its process now */
		in_place(j, pid, window_of(j, pid));
		return;
	}
	/* the execve failed: let it go, with its signal if that is why it stopped */
	if (status >> 16)
		signo = 0;
	let_go(j, pid, signo);
	w = window_by_tid(j, pid);
	if (w)
		done(j, w);
}

void window_children(struct judge *j)
{
	while (j->n_traced > 0) {
		int status;
		pid_t pid = waitpid(-1, &status, __WALL | WNOHANG);
		struct window *w;

		if (pid <= 0)
			return;
		if (WIFSTOPPED(status)) {
			stopped(j, pid, status);
			continue;
		}
		j->n_traced--;
		w = window_by_tid(j, pid);
		if (w)
			done(j, w);
	}
}
