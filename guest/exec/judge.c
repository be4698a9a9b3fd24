/*
 * Theory of operation. Each command's child installs a small filter (judge_enter.c) that makes the
 * kernel hold every execve and execveat of it and of all its descendants until this process has
 * answered. For each such call:
 *
 *   LOOK    What would run, and with which words: read from the caller's memory and /proc, scripts
 *           followed to their last interpreter (judge_look.c). An error that the kernel would give
 *           is the answer, and no program can start by it. The policy decides.
 *   REFUSE  EACCES, a line on the caller's standard error, an event.
 *   WINDOW  The caller is seized, then told to go on. All that was read can be other by now (a
 *           thread that writes path and words, a file that is renamed); so the new program is
 *           stopped before its first instruction, and identity and words are compared with what
 *           was judged. Equal: it is let go and this process is out of its way. Else SIGKILL
 *           (judge_window.c).
 *
 * Order makes it sound: seized before the answer, so no execve that was let go escapes the window;
 * the kernel takes the answer after the seizing, so the caller was there all the time and it was the
 * caller that was seized, not somebody who got its number. The notification waits for fatal signals only (WAIT_KILLABLE_RECV),
 * so storms of signals do not make a call start again.
 *
 * One process of the workload, one window: execve of several threads of a process are answered one
 * after the other. PTRACE_SEIZE takes the lock that execve holds; with a thread of the same process
 * in a window it could wait for that execve, and that execve for this process to reap a seized
 * thread. So this process never waits for a process of the workload; what takes long (a slow file
 * system) takes long for its own process.
 *
 * The workload controls memory, files, signals, deaths at any moment, and how many calls there are
 * at once. Bounds: per waiting thread a struct call, per process a struct window of at most a few
 * KiB (longer words are kept as SHA-256), one scratch area for all; events as judge_tell.c says.
 *
 * The end of this process ends the session: what waits gets ENOSYS, what is in a window is killed
 * (EXITKILL), PID 1 says FAILED. It cannot be reached: another uid than the workload's, or (rootless)
 * no capabilities there against capabilities here, not dumpable, no descriptor shared, no memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "core/syscalls.h"
#include "exec/filter.h"
#include "exec/judge_i.h"

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif
#ifndef AT_EXECVE_CHECK
#define AT_EXECVE_CHECK 0x10000
#endif
#define MAX_LISTENERS 64 /* commands at a time; the host has fewer */

/* --- answers ---------------------------------------------------------------------------- */

/* @error: what execve shall return; 0 = go on. Return: whether the caller still waited. */
static bool answer(struct judge *j, const struct call *c, int error)
{
	memset(j->resp, 0, j->resp_size);
	j->resp->id = c->id;
	j->resp->error = error;
	if (error == 0)
		j->resp->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	return ioctl(c->l->fd, SECCOMP_IOCTL_NOTIF_SEND, j->resp) == 0;
}

static bool still_waits(const struct call *c)
{
	return ioctl(c->l->fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &c->id) == 0;
}

static void refuse(struct judge *j, const struct call *c, const struct sb_cmd_request *q,
		   const struct sb_cmd_verdict *v)
{
	struct sb_judge_event ev;

	if (!still_waits(c)) /* who knows whose memory that was */
		return;
	if (j->plan->commands.log_blocked) {
		tell_fill(j, c, q, v, &ev);
		tell(j, &ev);
		tell_caller(j, c, q, v);
	}
	(void)answer(j, c, -EACCES);
}

static void let_run(struct judge *j, const struct call *c, const struct look *k,
		    const struct sb_cmd_verdict *v)
{
	const struct sb_cmd_request *q = &k->level[0];
	struct sb_cmd_verdict unseen = { .action = SB_CMD_DENY, .why = WHY_UNSEEN };
	struct sb_judge_event ev;
	int r;

	tell_fill(j, c, q, v, &ev);
	if (c->flags & AT_EXECVE_CHECK) { /* nothing will run */
		(void)answer(j, c, 0);
		return;
	}
	r = window_open(j, c, k, &ev);
	if (r == -ESRCH)
		return;
	if (r < 0) {
		refuse(j, c, q, &unseen);
		return;
	}
	if (!answer(j, c, 0)) /* it is gone, and somebody else may have been seized */
		window_drop(j, c->tgid);
	else if (v->action == SB_CMD_LOG)
		tell(j, &ev);
}

/* --- one call --------------------------------------------------------------------------- */

static void judge_one(struct judge *j, const struct call *c)
{
	struct look *k = &j->look;
	struct sb_cmd_verdict too_long = { .action = SB_CMD_DENY, .why = "too-long" };
	struct sb_cmd_verdict unseen = { .action = SB_CMD_DENY, .why = WHY_UNSEEN };
	struct sb_cmd_verdict v;
	int r = look_at(j, c, k);

	if (r < 0) {
		(void)answer(j, c, r);
		return;
	}
	for (size_t i = 0; i < k->n; i++) {
		k->level[i].top_level = !c->l->ran;
		k->level[i].project = j->plan->cwd;
	}
	if (r == 0)
		v = sb_cmdpol_decide_chain(j->policy, k->level, k->n);
	if (r == 0 && k->n > 1 && v.rule && v.action != SB_CMD_DENY) {
		look_names(j, c, k);
		v = sb_cmdpol_decide_chain(j->policy, k->level, k->n);
	} else if (r != 0)
		v = r == LOOK_TOO_LONG ? too_long : unseen;
	if (v.action == SB_CMD_ALLOW || v.action == SB_CMD_LOG)
		let_run(j, c, k, &v);
	else
		refuse(j, c, &k->level[0], &v);
}

/* Return: process of thread @tid; -errno. */
static pid_t process_of(struct judge *j, pid_t tid)
{
	char path[32];
	char text[1024];
	sb_autofd int fd = -1;
	const char *at;
	ssize_t n;

	if (syscall(SYS_tgkill, tid, tid, 0) == 0)
		return tid; /* its own leader, as most are */
	(void)snprintf(path, sizeof(path), "%d/status", tid);
	fd = openat(j->proc, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	at = strstr(text, "\nTgid:");
	return at ? (pid_t)strtol(at + 6, NULL, 10) : -ESRCH;
}

void judge_call(struct judge *j, struct call *c)
{
	struct window *w = window_of(j, c->tgid);

	if (w && w->tid != c->tid) {
		struct call *copy = malloc(sizeof(*copy));

		if (!copy) {
			(void)answer(j, c, -ENOMEM);
			return;
		}
		*copy = *c;
		copy->next = w->waiting;
		w->waiting = copy;
		window_hurry(j, w);
		return;
	}
	judge_one(j, c);
	look_done(&j->look);
}

void judge_release(struct judge *j, struct call *waiting)
{
	while (waiting) {
		struct call *c = waiting;

		waiting = c->next;
		c->next = NULL;
		if (c->l && still_waits(c))
			judge_call(j, c);
		free(c);
	}
}

/* --- listeners -------------------------------------------------------------------------- */

static void listener_free(struct listener *l)
{
	struct judge *j = l->j;
	struct listener **at = &j->listeners;

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	for (size_t i = 0; i < BUCKETS; i++) {
		for (struct window *w = j->buckets[i]; w; w = w->next) {
			if (w->l == l)
				w->l = NULL;
			for (struct call *c = w->waiting; c; c = c->next)
				if (c->l == l)
					c->l = NULL;
		}
	}
	sb_fd_close(&l->fd);
	free(l);
	j->n_listeners--;
}

/*
 * A call that the filter refuses (log_blocked): it gets the errno of the plain filter, and is
 * counted. Return: false: the plain filter lets it through, so it is an execve.
 */
static bool refused_call(struct judge *j, const struct call *c)
{
	uint32_t action = sb_filter_eval(j->plain, &j->req->data);
	const char *name = sb_syscall_name(j->req->data.nr);
	struct sb_judge_event ev = { .cmd = c->l->cmd, .pid = (uint32_t)c->tid, .count = 1,
				     .rule = SB_JUDGE_NO_RULE, .action = SB_CMD_DENY,
				     .why = WHY_CALL, .n_argv = 1 };
	char exe[32];
	ssize_t n;

	if ((action & SECCOMP_RET_ACTION_FULL) != SECCOMP_RET_ERRNO)
		return false;
	if (c->l->cmd != SB_JUDGE_PROBE) {
		(void)snprintf(exe, sizeof(exe), "%d/exe", c->tid);
		n = readlinkat(j->proc, exe, ev.path, sizeof(ev.path) - 1);
		ev.path[n < 0 ? 0 : n] = '\0';
		(void)snprintf(ev.argv, sizeof(ev.argv), "%s", name ? name : "unknown");
		ev.argv_len = (uint16_t)(strlen(ev.argv) + 1);
		if (still_waits(c))
			tell(j, &ev);
	}
	(void)answer(j, c, -(int)(action & SECCOMP_RET_DATA));
	return true;
}

static void on_call(struct listener *l, short events)
{
	struct judge *j = l->j;
	const struct seccomp_notif *n = j->req;
	struct call c = { .l = l, .dirfd = AT_FDCWD };

	if (!(events & POLLIN)) {
		if (events & POLLHUP) /* nobody is left who could ask */
			listener_free(l);
		return;
	}
	memset(j->req, 0, j->req_size);
	if (ioctl(l->fd, SECCOMP_IOCTL_NOTIF_RECV, j->req) < 0)
		return; /* killed while it waited */
	c.id = n->id;
	c.tid = (pid_t)n->pid;
	if (j->plain && refused_call(j, &c))
		return;
	if (!j->policy) { /* nothing else is asked about */
		(void)answer(j, &c, -EPERM);
		return;
	}
	if (n->data.nr == SYS_execve) {
		c.path = n->data.args[0];
		c.argv = n->data.args[1];
	} else {
		c.dirfd = (int)n->data.args[0];
		c.path = n->data.args[1];
		c.argv = n->data.args[2];
		c.flags = (unsigned int)n->data.args[4];
	}
	c.tgid = process_of(j, c.tid);
	if (c.tid <= 0 || c.tgid <= 0) /* gone, or out of sight */
		(void)answer(j, &c, -EACCES);
	else
		judge_call(j, &c);
}

static void add_listener(struct judge *j, const struct enter *e, int *fd)
{
	struct listener *l = j->n_listeners < MAX_LISTENERS ? calloc(1, sizeof(*l)) : NULL;

	if (!l)
		return; /* its execve fails: nobody listens */
	*l = (struct listener){ .j = j, .cmd = e->cmd, .err_dev = e->err_dev,
				.err_ino = e->err_ino, .fd = sb_fd_take(fd) };
	/* a kernel that knows it passes the processor on with the message */
	(void)ioctl(l->fd, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
	l->next = j->listeners;
	j->listeners = l;
	j->n_listeners++;
}

/* --- PID 1 ------------------------------------------------------------------------------ */

static ssize_t take_packet(int sock, struct enter *e, int *ret_fd)
{
	struct iovec iov = { .iov_base = e, .iov_len = sizeof(*e) };
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} ctl;
	struct msghdr mh = { .msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = ctl.space,
			     .msg_controllen = sizeof(ctl.space) };
	ssize_t n = recvmsg(sock, &mh, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	struct cmsghdr *h = n > 0 ? CMSG_FIRSTHDR(&mh) : NULL;

	if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS &&
	    h->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_fd, CMSG_DATA(h), sizeof(*ret_fd));
	return n;
}

static void on_packet(struct judge *j)
{
	struct sb_judge_event done = { 0 }; /* stands for none */
	struct enter e = { 0 };
	sb_autofd int fd = -1;
	ssize_t n = take_packet(j->sock, &e, &fd);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		j->over = true;
		return;
	}
	if (n == (ssize_t)sizeof(e) && e.magic == ENTER_MAGIC && fd >= 0)
		add_listener(j, &e, &fd);
	if (n == (ssize_t)sizeof(e) && e.magic == FLUSH_MAGIC) {
		tell_all(j); /* PID 1 reads: this may wait for it */
		(void)send(j->sock, &done, sizeof(done), MSG_NOSIGNAL);
	}
}

/* --- loop ------------------------------------------------------------------------------- */

static void nothing(int signo)
{
	(void)signo;
}

/* Until the next thing that is due; -1 = for ever. */
static struct timespec *wait_time(const struct judge *j, struct timespec *t)
{
	uint64_t due = j->late_ns;
	uint64_t now;

	if (j->merge_ns && (due == 0 || j->merge_ns < due))
		due = j->merge_ns;
	if (due == 0)
		return NULL;
	now = sb_now_ns();
	due = due > now ? due - now : 0;
	*t = (struct timespec){ .tv_sec = (time_t)(due / 1000000000U),
				.tv_nsec = (long)(due % 1000000000U) };
	return t;
}

static void do_due(struct judge *j)
{
	uint64_t now;

	if (j->late_ns == 0 && j->merge_ns == 0)
		return;
	now = sb_now_ns();
	if (j->late_ns && j->late_ns <= now)
		window_late(j);
	if (j->merge_ns && j->merge_ns <= now)
		tell_merged(j);
}

/*
 * Not the loop of lib/os: a listener wakes a poll(2) on the processor of its caller, but not an
 * epoll, and half of what an execve costs here is processors that wake each other. SIGCHLD is let in
 * while it waits and not otherwise.
 */
int judge_loop(struct judge *j)
{
	static struct pollfd fds[1 + MAX_LISTENERS];
	static struct listener *of[1 + MAX_LISTENERS];
	struct sigaction sa = { .sa_handler = nothing };
	unsigned int calls = 0;
	sigset_t mask;

	(void)sigfillset(&mask);
	(void)sigdelset(&mask, SIGCHLD);
	if (sigaction(SIGCHLD, &sa, NULL) < 0)
		return -errno;
	while (!j->over) {
		struct timespec t;
		nfds_t n = 0;
		int r;

		fds[n++] = (struct pollfd){ .fd = j->sock, .events = POLLIN };
		for (struct listener *l = j->listeners; l; l = l->next) {
			of[n] = l;
			fds[n++] = (struct pollfd){ .fd = l->fd, .events = POLLIN };
		}
		r = ppoll(fds, n, wait_time(j, &t), &mask);
		if (r < 0 && errno != EINTR)
			return -errno;
		for (nfds_t i = 1; r > 0 && i < n; i++)
			if (fds[i].revents)
				on_call(of[i], fds[i].revents);
		if (r > 0 && fds[0].revents)
			on_packet(j);
		/* calls that keep coming keep the signal out */
		if (r < 0 || ++calls % 8 == 0)
			window_children(j);
		do_due(j);
	}
	return 0;
}
