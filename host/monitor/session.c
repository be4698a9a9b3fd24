/*
 * Theory of operation. States: IDLE -> STARTING -> RUNNING -> CLOSING -> REAPING -> GONE.
 * The first outcome wins (settle); whatever happens later is only clean-up. Every state but
 * RUNNING is bounded by `timer`; RUNNING is bounded by it only when the plan has a time-out. That
 * one counts from the guest's word that the command runs; a guest that does not give its word gains
 * no more than SILENCE_GRACE.
 *
 *   STARTING  processes started; READY moves on, the guest's end or FAILED ends it
 *   RUNNING   the command runs; EXITED is the normal outcome
 *   CLOSING   the guest is asked to sync and leave (CHAN_CLOSE); at most CLOSE_GRACE
 *   REAPING   guest killed, then all helpers (the net gate after GATE_GRACE: it may hold events to
 *             tell); when the last one is reaped: destroy, remove, DONE
 *
 * A cancel or time-out in RUNNING settles the outcome at once, passes the signal on, and gives the
 * command until `grace` before SIGKILL and again before CLOSING is skipped.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "audit.h"
#include "base/num.h"
#include "conn/plan_fd.h"
#include "crypto/crypto.h"
#include "monitor.h"
#include "os/rmtree.h"

#define S_NS 1000000000ULL
#define CLOSE_GRACE (5 * S_NS)   /* sync of the guest's dirty pages included */
#define DISK_GRACE (120 * S_NS)  /* the same, when they go to a disk that outlives the session */
#define CONSOLE_BYTES (1 << 20)
#define CANCEL_GRACE (5 * S_NS)  /* from the signal to SIGKILL */
#define KILL_GRACE (3 * S_NS)    /* from SIGKILL inside the guest to the end of the guest */
#define SUSPICION_GRACE S_NS     /* from an echo of the guest's end to believing it */
#define SILENCE_GRACE (20 * S_NS) /* for the guest to say that the command runs */
#define GATE_GRACE (30 * S_NS)   /* for the net gate to tell what it holds, once the guest is gone */
#define START_SLACK (3 * S_NS)   /* the channel's own deadline fires first */

static void begin_reaping(struct monitor *m);

static void settle(struct monitor *m, uint32_t fail, const char *fmt, ...) SB_PRINTF(3, 4);
static void settle(struct monitor *m, uint32_t fail, const char *fmt, ...)
{
	va_list ap;

	if (m->have_outcome)
		return;
	m->have_outcome = true;
	m->done.fail = fail;
	va_start(ap, fmt);
	(void)vsnprintf(m->done.text, sizeof(m->done.text), fmt, ap);
	va_end(ap);
}

static void to_chan(struct monitor *m, uint16_t type, const void *p, size_t len)
{
	if (m->chan >= 0 && sb_ipc_send(m->chan, type, p, len, NULL, 0) < 0)
		sb_debug("message %u to the channel was lost", type);
}

/* STARTED and DONE wait for a slow reader; the many events do not. */
void mon_to_cli(struct monitor *m, uint16_t type, const void *p, size_t len)
{
	struct pollfd pfd = { .fd = m->cli, .events = POLLOUT };
	int r = -EAGAIN;

	while (!m->cli_gone && r == -EAGAIN) {
		r = sb_ipc_send(m->cli, type, p, len, NULL, 0);
		if (r == -EAGAIN && poll(&pfd, 1, -1) < 0 && errno != EINTR)
			r = -errno;
	}
	if (r < 0)
		sb_debug("message %u to the command line was lost", type);
}

void mon_fail_late(struct monitor *m, uint32_t fail, const char *text)
{
	if (m->have_outcome && m->done.fail != SB_FAIL_NONE)
		return;
	m->have_outcome = false;
	settle(m, fail, "%s", text);
}

void mon_end(struct monitor *m, uint32_t fail, const char *text)
{
	settle(m, fail, "%s", text);
	begin_reaping(m);
}

/* ---- the end ---- */

/* When the command line is gone nobody else puts the user's terminal back. */
static void restore_terminal(struct monitor *m)
{
	if (m->tty < 0 || !m->tty_saved || !m->cli_gone)
		return;
	(void)tcsetattr(m->tty, TCSANOW, m->termios);
	m->tty_saved = false;
}

static void remove_session_dir(struct monitor *m, struct sb_err *err)
{
	sb_autofree char *copy = strdup(m->session_path);
	sb_autofd int parent = -1;
	char *slash = copy ? strrchr(copy, '/') : NULL;
	int r;

	if (m->keep || !slash)
		return;
	*slash = '\0';
	parent = open(copy, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = parent < 0 ? -errno : sb_rmtree(parent, slash + 1);
	if (r < 0)
		(void)sb_err_add(err, r, "cannot remove %s: %s", m->session_path, strerror(-r));
}

static void finish(struct monitor *m)
{
	struct sb_err err = { 0 };

	m->state = MON_GONE;
	sb_timer_del(&m->timer);
	sb_timer_del(&m->grace);
	mon_audit_done(m);
	if (m->have_guest && m->provider->destroy(&m->guest, &err) < 0)
		sb_debug("destroy: %s", err.text);
	m->have_guest = false;
	remove_session_dir(m, &err);
	restore_terminal(m);
	if (err.code != 0) {
		size_t n = strnlen(m->done.text, sizeof(m->done.text));

		(void)snprintf(m->done.text + n, sizeof(m->done.text) - n, "%sclean-up: %.200s",
			       n > 0 ? "; " : "", err.text);
		settle(m, SB_FAIL_INTERNAL, "%s", m->done.text);
	}
	if (!m->have_outcome)
		settle(m, SB_FAIL_INTERNAL, "the session ended without a result");
	mon_exec_lost(m, true);
	mon_to_cli(m, SB_IPC_DONE, &m->done, sizeof(m->done));
	sb_loop_stop(m->loop, 0);
}

/* Everybody else is gone: what they said last is recorded, then the log is closed. */
static void finish_records(struct monitor *m)
{
	mon_gate_drain(m);
	mon_ssh_drain(m);
	mon_audit_outcome(m);
	if (mon_audit_close(m))
		finish(m);
}

static bool all_reaped(const struct monitor *m)
{
	if (m->guest_child.pid > 0 || m->chan_child.pid > 0 || m->gate_child.pid > 0 ||
	    m->ssh_child.pid > 0)
		return false;
	for (size_t i = 0; i < m->n_fs; i++)
		if (m->fs[i].pid > 0)
			return false;
	return true;
}

static void on_gate_late(struct sb_timer *t)
{
	struct monitor *m = t->owner;

	if (m->done.fail == SB_FAIL_NONE) {
		m->done.fail = SB_FAIL_AUDIT;
		(void)snprintf(m->done.text, sizeof(m->done.text),
			       "the net gate or the SSH relay did not leave in time: what it held of the last "
			       "requests is not on record");
	}
	mon_kill(&m->gate_child);
	mon_kill(&m->ssh_child);
}

/* A command that succeeded, and changes that may not be on the disk: that is no success. */
static void check_written(struct monitor *m)
{
	if (m->state != MON_CLOSING || m->closed || m->plan->upper.kind == SB_UPPER_TMPFS ||
	    m->done.fail != SB_FAIL_NONE)
		return;
	m->done.fail = SB_FAIL_GUEST;
	(void)snprintf(m->done.text, sizeof(m->done.text),
		       "the guest did not say that its changes are on the disk; the last ones may "
		       "be lost");
}

static void begin_reaping(struct monitor *m)
{
	if (m->state >= MON_REAPING)
		return;
	check_written(m);
	m->state = MON_REAPING;
	mon_audit_outcome(m);
	sb_timer_del(&m->timer);
	sb_timer_del(&m->grace);
	if (m->have_guest)
		m->provider->stop(&m->guest);
	mon_kill(&m->guest_child);
	mon_kill(&m->chan_child);
	for (size_t i = 0; i < m->n_fs; i++)
		mon_kill(&m->fs[i]);
	if (m->gate_child.pid > 0 || m->ssh_child.pid > 0) {
		mon_gate_leave(m);
		mon_ssh_leave(m);
		sb_timer_set(m->loop, &m->grace, GATE_GRACE, on_gate_late, m);
	}
	if (all_reaped(m))
		finish_records(m);
}

static void on_close_late(struct sb_timer *t)
{
	begin_reaping(t->owner);
}

/* Ask the guest to leave in order; whatever happens, reaping follows soon. */
static void begin_closing(struct monitor *m)
{
	if (m->state == MON_STARTING || m->state == MON_IDLE) {
		begin_reaping(m);
		return;
	}
	if (m->state != MON_RUNNING)
		return;
	m->state = MON_CLOSING;
	mon_audit_outcome(m); /* its sync runs while the guest leaves */
	sb_timer_del(&m->grace);
	to_chan(m, SB_IPC_CHAN_CLOSE, NULL, 0);
	sb_timer_set(m->loop, &m->timer,
		     m->plan->upper.kind == SB_UPPER_TMPFS ? CLOSE_GRACE : DISK_GRACE, on_close_late,
		     m);
}

static void on_kill_late(struct sb_timer *t)
{
	begin_reaping(t->owner);
}

static void kill_command(struct monitor *m)
{
	struct sb_ipc_signal s = { .cmd = 0, .signo = SIGKILL };

	to_chan(m, SB_IPC_CHAN_KILL, &s, sizeof(s));
	sb_timer_set(m->loop, &m->grace, KILL_GRACE, on_kill_late, m);
}

static void on_suspicion(struct sb_timer *t)
{
	struct monitor *m = t->owner;

	settle(m, m->suspicion.fail, "%s", m->suspicion.text);
	begin_reaping(m);
}

/*
 * A failure that may be only the echo of the guest's own end. The guest's process tells the cause
 * better; if it does not end soon, this is the outcome.
 */
static void suspect(struct monitor *m, uint32_t fail, const char *text)
{
	if (m->have_outcome || m->suspicion.fail != SB_FAIL_NONE)
		return;
	m->suspicion.fail = fail;
	(void)snprintf(m->suspicion.text, sizeof(m->suspicion.text), "%s", text);
	sb_timer_set(m->loop, &m->grace, SUSPICION_GRACE, on_suspicion, m);
}

static void on_cancel_late(struct sb_timer *t)
{
	kill_command(t->owner);
}

static void on_timeout(struct sb_timer *t)
{
	struct monitor *m = t->owner;

	if (m->state == MON_STARTING) {
		settle(m, SB_FAIL_TIMEOUT, "the guest was not ready in time");
		begin_reaping(m);
		return;
	}
	settle(m, SB_FAIL_TIMEOUT, "the command ran longer than its time-out of %llu.%03llu s",
	       (unsigned long long)m->plan->timeout_ms / 1000,
	       (unsigned long long)m->plan->timeout_ms % 1000);
	kill_command(m);
}

/* The plan's time-out, counted from now. */
static void arm_timeout(struct monitor *m, uint64_t grace)
{
	sb_timer_del(&m->timer);
	if (m->plan->timeout_ms > 0)
		sb_timer_set(m->loop, &m->timer, m->plan->timeout_ms * 1000000ULL + grace,
			     on_timeout, m);
}

static void cancel(struct monitor *m, uint32_t signo)
{
	struct sb_ipc_signal s = { .cmd = 0, .signo = signo };

	settle(m, SB_FAIL_CANCELLED, "cancelled");
	if (m->cancelling || m->state != MON_RUNNING) {
		begin_reaping(m);
		return;
	}
	m->cancelling = true;
	to_chan(m, SB_IPC_SIGNAL, &s, sizeof(s));
	sb_timer_set(m->loop, &m->grace, CANCEL_GRACE, on_cancel_late, m);
}

/* ---- processes ---- */

/* The last word of sendbox-guest on the console; of the kernel when it said nothing. */
static char *last_word(char *buf)
{
	static const char mark[] = "sendbox-guest: ";
	char *found = NULL;
	char *line;

	for (char *p = strstr(buf, mark); p; p = strstr(p + 1, mark))
		found = p;
	if (found) {
		found[strcspn(found, "\r\n")] = '\0';
		return found;
	}
	line = strrchr(buf, '\n');
	return line ? line + 1 : buf;
}

/*
 * What QEMU may write is bounded by a file size limit. With a disk that limit is the disk's size, so
 * there the console is memory that cannot grow.
 */
static int open_console(const struct monitor *m)
{
	sb_autofd int fd = -1;

	if (m->plan->upper.kind != SB_UPPER_DISK)
		return openat(m->session_dir, "console.log",
			      O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	fd = memfd_create("sendbox-console", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, CONSOLE_BYTES) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return -1;
	return sb_fd_take(&fd);
}

static off_t console_end(const struct monitor *m)
{
	struct stat st;

	if (m->console < 0)
		return 0;
	if (m->plan->upper.kind == SB_UPPER_DISK) /* the offset is shared with the writer */
		return lseek(m->console, 0, SEEK_CUR);
	return fstat(m->console, &st) == 0 ? st.st_size : 0;
}

static void console_tail(struct monitor *m, char *out, size_t cap)
{
	char buf[1024];
	off_t end = console_end(m);
	ssize_t n = -1;

	out[0] = '\0';
	if (end > 0)
		n = pread(m->console, buf, sizeof(buf) - 1,
			  SB_MAX(end - (off_t)sizeof(buf) + 1, (off_t)0));
	if (n <= 0)
		return;
	while (n > 0 && (buf[n - 1] == '\n' || buf[n - 1] == '\r'))
		n--;
	buf[n] = '\0';
	for (ssize_t i = 0; i < n; i++) /* the guest's bytes; also JSON would let C1 controls through */
		if (buf[i] != '\n' && (buf[i] < 0x20 || buf[i] > 0x7e))
			buf[i] = buf[i] == '\r' || buf[i] == '\0' ? '\n' : '?';
	(void)snprintf(out, cap, ": %.300s", last_word(buf));
}

static void describe_end(const struct mon_child *c, int status, char *out, size_t cap)
{
	if (WIFSIGNALED(status))
		(void)snprintf(out, cap, "the %s was killed by signal %d", c->role,
			       WTERMSIG(status));
	else
		(void)snprintf(out, cap, "the %s ended with status %d", c->role,
			       WEXITSTATUS(status));
}

void mon_child_ended(struct mon_child *c)
{
	struct monitor *m = c->m;
	char what[96];
	char tail[400];
	int status = 0;

	if (waitpid(c->pid, &status, WNOHANG) == 0)
		return;
	sb_io_del(&c->io);
	sb_fd_close(&c->pidfd);
	c->pid = 0;
	describe_end(c, status, what, sizeof(what));
	sb_debug("%s", what);
	if (c == &m->audit.child)
		mon_audit_ended(m, what);
	if (m->state == MON_REAPING) {
		if (all_reaped(m))
			finish_records(m);
		return;
	}
	if (c == &m->audit.child)
		return; /* the session is ending for it */
	if (m->state == MON_CLOSING && c == &m->guest_child) {
		begin_reaping(m);
		return;
	}
	if (c == &m->guest_child) {
		console_tail(m, tail, sizeof(tail));
		settle(m, SB_FAIL_GUEST, "%s%s%s", what,
		       m->state == MON_STARTING ? " before it was ready" : "", tail);
		begin_reaping(m);
		return;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		/* its socket was closed at the other end: the guest is ending */
		suspect(m, SB_FAIL_INTERNAL, what);
		return;
	}
	settle(m, SB_FAIL_INTERNAL, "%s", what);
	begin_reaping(m);
}

static void on_guest(struct sb_io *io, uint32_t events)
{
	(void)events;
	mon_child_ended(io->owner);
}

/* ---- messages of the channel process ---- */

/* The guest is ready, and its plan is on record: the command may start. */
void mon_recorded(struct monitor *m)
{
	struct sb_ipc_run run = {
		.cmd = 0, .rows = m->rows, .cols = m->cols, .terminals = m->start.terminals
	};
	int r;

	if (m->state != MON_STARTING || !m->guest_ready || !m->audit.ready)
		return;
	if (m->start.hold && !m->go) { /* the user waits, and may cancel: no bound of ours */
		m->waiting = true;
		sb_timer_del(&m->timer);
		return;
	}
	m->state = MON_RUNNING;
	arm_timeout(m, SILENCE_GRACE);
	r = sb_ipc_send(m->chan, SB_IPC_CHAN_RUN, &run, sizeof(run), m->std, 3);
	for (int i = 0; i < 3; i++)
		sb_fd_close(&m->std[i]);
	if (r < 0) {
		settle(m, SB_FAIL_INTERNAL, "cannot reach the channel process: %s", strerror(-r));
		begin_reaping(m);
	}
}

static void on_ready(struct monitor *m)
{
	if (m->state != MON_STARTING)
		return;
	m->guest_ready = true;
	mon_recorded(m);
}

static void on_exited(struct monitor *m, const struct sb_ipc_exited *x)
{
	mon_audit_exit(m, x);
	if (x->cmd != 0) { /* one more command: the session goes on */
		mon_to_cli(m, SB_IPC_EXITED, x, sizeof(*x));
		return;
	}
	if (!m->have_outcome) {
		m->have_outcome = true;
		m->done.fail = SB_FAIL_NONE;
		m->done.exit = *x;
		if (x->kind == SB_EXIT_SIGNAL && x->value == SIGKILL && m->provider->oom &&
		    m->provider->oom(&m->guest))
			m->done.exit.oom = 1;
	}
	begin_closing(m);
}

static int on_chan_message(struct monitor *m, const struct sb_ipc_msg *msg)
{
	const void *p;

	sb_debug("message %u after %llu ms", msg->type,
		 (unsigned long long)((sb_now_ns() - m->started_ns) / 1000000));
	switch (msg->type) {
	case SB_IPC_READY:
		if (!sb_ipc_get(msg, 0, 0))
			return -EBADMSG;
		on_ready(m);
		return 0;
	case SB_IPC_STARTED:
		p = sb_ipc_get(msg, sizeof(struct sb_ipc_started), 0);
		if (!p || m->state != MON_RUNNING)
			return p ? 0 : -EBADMSG;
		if (((const struct sb_ipc_started *)p)->cmd != 0) {
			mon_to_cli(m, SB_IPC_STARTED, p, sizeof(struct sb_ipc_started));
			return 0;
		}
		if (m->started) /* the guest's word must not wind the clock up again */
			return -EBADMSG;
		m->started = true;
		arm_timeout(m, 0);
		mon_to_cli(m, SB_IPC_STARTED, p, sizeof(struct sb_ipc_started));
		return 0;
	case SB_IPC_EXEC_EVENT:
		return mon_exec_event(m, msg);
	case SB_IPC_HELD:
		p = sb_ipc_get(msg, sizeof(struct sb_ipc_hold), 0);
		if (!p)
			return -EBADMSG;
		mon_to_cli(m, SB_IPC_HELD, p, sizeof(struct sb_ipc_hold));
		return 0;
	case SB_IPC_EXITED:
		p = sb_ipc_get(msg, sizeof(struct sb_ipc_exited), 0);
		if (!p)
			return -EBADMSG;
		on_exited(m, p);
		return 0;
	case SB_IPC_FAILED: {
		struct sb_ipc_failed f;

		p = sb_ipc_get(msg, sizeof(f), 0);
		if (!p)
			return -EBADMSG;
		memcpy(&f, p, sizeof(f));
		f.text[sizeof(f.text) - 1] = '\0';
		if (m->state == MON_CLOSING) { /* the command's result is known already */
			begin_reaping(m);
			return 0;
		}
		if (f.fail < SB_FAIL_PLAN || f.fail > SB_FAIL_INTERNAL)
			f.fail = SB_FAIL_GUEST;
		if (f.fail == SB_FAIL_GUEST) {
			suspect(m, f.fail, f.text);
			return 0;
		}
		settle(m, f.fail, "%.499s", f.text);
		begin_reaping(m);
		return 0;
	}
	case SB_IPC_CLOSED:
		m->closed = m->state == MON_CLOSING;
		if (m->state == MON_CLOSING)
			begin_reaping(m);
		return 0;
	default:
		return -EBADMSG;
	}
}

static void on_chan(struct sb_io *io, uint32_t events)
{
	struct monitor *m = io->owner;
	sb_automsg struct sb_ipc_msg msg = { 0 };
	int r = sb_ipc_recv(m->chan, &msg);

	(void)events;
	if (r == -EAGAIN)
		return;
	if (r == 0)
		r = on_chan_message(m, &msg);
	if (r == 0)
		return;
	sb_io_del(&m->chan_io);
	sb_fd_close(&m->chan);
	if (m->state >= MON_REAPING)
		return;
	if (r == SB_IPC_EOF && m->chan_child.pid > 0)
		return; /* its end is told by its descriptor, with the reason */
	settle(m, SB_FAIL_INTERNAL, "the channel process sent a malformed message");
	begin_reaping(m);
}

/* ---- start ---- */

/* The session's directory is named after the session, and the plan must be for it. */
static int load_plan(struct monitor *m, struct sb_err *err)
{
	const char *slash = strrchr(m->session_path, '/');
	uint8_t session[16];
	struct sb_plan_expect x = { .signature = m->start.signature,
				    .public_key = m->start.public_key,
				    .session = session,
				    .now_unix_s = (uint64_t)time(NULL) };
	int seals = fcntl(m->plan_memfd, F_GET_SEALS);
	const int need = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK;

	if (seals < 0 || (seals & need) != need)
		return sb_err_set(err, -EPERM, "the plan is not sealed");
	if (!slash || sb_hex_parse(slash + 1, session, sizeof(session)) < 0)
		return sb_err_set(err, -EINVAL, "the session's directory has no session's name");
	return sb_plan_from_fd(m->plan_memfd, &x, &m->plan, NULL, NULL, err);
}

static int start_guest(struct monitor *m, int guest_end, int front, int ssh_front,
		       struct sb_err *err)
{
	int ends[MON_MAX_FS];
	struct sb_start s = { .plan = m->plan,
			      .dirs = &m->dirs,
			      .session_dir = m->session_dir,
			      .session_path = m->session_path,
			      .carrier = guest_end,
			      .net_front = m->provider->is_vm ? -1 : front,
			      .ssh_front = m->provider->is_vm ? -1 : ssh_front,
			      .fs_socks = ends,
			      .public_key = m->start.public_key,
			      .guest_exe = m->guest_exe,
			      .console = m->console };
	int r;

	for (size_t i = 0; i < MON_MAX_FS; i++)
		ends[i] = -1;
	r = mon_start_fs(m, ends, err);
	s.n_fs_socks = m->plan->n_mounts + 1;
	if (r == 0)
		r = m->provider->start(&s, &m->guest, err);
	for (size_t i = 0; i < MON_MAX_FS; i++)
		sb_fd_close(&ends[i]);
	sb_fd_close(&m->guest_exe);
	if (r < 0)
		return r;
	m->have_guest = true;
	{
		int pidfd = fcntl(m->guest.pidfd, F_DUPFD_CLOEXEC, 3);

		if (pidfd < 0)
			return sb_err_set(err, -errno, "pidfd: %s", strerror(errno));
		r = mon_watch(m, &m->guest_child, "guest", m->guest.pid, &pidfd, on_guest);
	}
	return r < 0 ? sb_err_set(err, r, "cannot watch the guest: %s", strerror(-r)) : 0;
}

static int start_session(struct monitor *m, struct sb_err *err)
{
	sb_autofd int guest_end = -1;
	sb_autofd int front = -1;
	sb_autofd int ssh_front = -1;
	int r = load_plan(m, err);

	if (r < 0) {
		settle(m, SB_FAIL_PLAN, "plan refused: %.400s", err->text);
		return r;
	}
	m->provider = sb_provider_get(m->plan->provider);
	if (!m->provider)
		return sb_err_set(err, -ENOSYS, "this build has no such runtime");
	m->console = open_console(m);
	m->pids = openat(m->session_dir, "pids",
			 O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (m->console < 0 || m->pids < 0)
		return sb_err_set(err, -errno, "cannot write to %s: %s", m->session_path,
				  strerror(errno));
	r = mon_audit_open(m, err);
	if (r < 0) {
		settle(m, SB_FAIL_AUDIT, "nothing can be recorded: %.400s", err->text);
		return r;
	}
	if (m->plan->net.mode != SB_NET_NONE)
		r = mon_open_gate(m, &front, err);
	if (r == 0 && m->plan->ssh.n_keys > 0)
		r = mon_open_ssh(m, &ssh_front, err);
	if (r == 0)
		r = mon_start_channel(m, m->provider->is_vm ? front : -1,
				      m->provider->is_vm ? ssh_front : -1, &guest_end, err);
	if (r == 0)
		r = sb_io_set(m->loop, &m->chan_io, m->chan, EPOLLIN, on_chan, m);
	if (r == 0)
		r = start_guest(m, guest_end, front, ssh_front, err);
	return r;
}

static void on_start(struct monitor *m, struct sb_ipc_msg *msg)
{
	const void *p = sb_ipc_get(msg, sizeof(struct sb_ipc_start), msg->n_fds == 7 ? 7 : 6);
	struct sb_err err = { 0 };
	int r;

	if (!p || m->state != MON_IDLE) {
		settle(m, SB_FAIL_INTERNAL, "malformed start message");
		begin_reaping(m);
		return;
	}
	memcpy(&m->start, p, sizeof(m->start));
	m->keep = m->start.keep != 0;
	m->plan_memfd = sb_fd_take(&msg->fds[0]);
	m->env_memfd = sb_fd_take(&msg->fds[1]);
	for (int i = 0; i < 3; i++)
		m->std[i] = sb_fd_take(&msg->fds[i + 2]);
	m->guest_exe = sb_fd_take(&msg->fds[5]);
	if (msg->n_fds == 7)
		m->ssh_agent = sb_fd_take(&msg->fds[6]);
	m->tty = fcntl(m->std[0], F_DUPFD_CLOEXEC, 3);
	m->tty_saved = m->tty >= 0 && tcgetattr(m->tty, m->termios) == 0;
	if (!m->tty_saved)
		sb_fd_close(&m->tty);
	m->state = MON_STARTING;
	m->started_ns = sb_now_ns();
	r = start_session(m, &err);
	if (r < 0) {
		settle(m, SB_FAIL_PROVIDER, "%s", err.code ? err.text : strerror(-r));
		begin_reaping(m);
		return;
	}
	sb_timer_set(m->loop, &m->timer,
		     (m->plan->accel == SB_ACCEL_TCG ? 120 * S_NS : 30 * S_NS) + START_SLACK,
		     on_timeout, m);
}

/* ---- messages of the command line ---- */

/* One more command. Whoever asked learns by EXITED that it never began. */
static void on_exec(struct monitor *m, struct sb_ipc_msg *msg)
{
	const struct sb_ipc_run *run = sb_ipc_get(msg, sizeof(*run), 4);
	int r = -EBADMSG;

	if (run && run->cmd != 0)
		r = m->state == MON_RUNNING && m->started && m->chan >= 0
			    ? mon_pending_exec(m, run, msg)
			    : -ESHUTDOWN;
	if (r < 0 && run) {
		const struct sb_ipc_exited x = { .cmd = run->cmd,
						 .kind = SB_EXIT_SETUP,
						 .value = (uint32_t)-r };

		mon_to_cli(m, SB_IPC_EXITED, &x, sizeof(x));
	}
}

void mon_on_cli(struct sb_io *io, uint32_t events)
{
	struct monitor *m = io->owner;
	sb_automsg struct sb_ipc_msg msg = { 0 };
	const void *p;
	int r;

	if ((events & EPOLLOUT) != 0)
		mon_gate_resume(m);
	r = sb_ipc_recv(m->cli, &msg);
	if (r == -EAGAIN)
		return;
	if (r != 0) { /* the command line died or misbehaves: nobody waits for a result */
		sb_io_del(&m->cli_io);
		m->cli_gone = true;
		mon_gate_resume(m);
		settle(m, SB_FAIL_CANCELLED, "the command line program is gone");
		if (m->state == MON_RUNNING)
			kill_command(m); /* then EXITED leads to an orderly close */
		else
			begin_closing(m);
		return;
	}
	switch (msg.type) {
	case SB_IPC_START:
		on_start(m, &msg);
		break;
	case SB_IPC_CANCEL:
		p = sb_ipc_get(&msg, sizeof(struct sb_ipc_signal), 0);
		cancel(m, p ? ((const struct sb_ipc_signal *)p)->signo : SIGTERM);
		break;
	case SB_IPC_GO:
		m->go = true;
		if (m->waiting)
			mon_recorded(m);
		break;
	case SB_IPC_EXEC:
		on_exec(m, &msg);
		break;
	case SB_IPC_AUDIT:
		if (m->state == MON_IDLE && m->audit.dir < 0 && sb_ipc_get(&msg, 0, 2)) {
			m->audit.dir = sb_fd_take(&msg.fds[0]);
			m->audit.key = sb_fd_take(&msg.fds[1]);
		}
		break;
	case SB_IPC_APPR_ANSWER:
		p = sb_ipc_get(&msg, sizeof(struct sb_ipc_appr_answer), 0);
		if (p)
			mon_answer(m, p);
		break;
	case SB_IPC_HOLD:
		p = sb_ipc_get(&msg, sizeof(struct sb_ipc_hold), 0);
		if (p)
			to_chan(m, SB_IPC_HOLD, p, sizeof(struct sb_ipc_hold));
		break;
	case SB_IPC_RESIZE:
		p = sb_ipc_get(&msg, sizeof(struct sb_ipc_resize), 0);
		if (p && ((const struct sb_ipc_resize *)p)->cmd != 0) {
			if (m->state == MON_RUNNING)
				to_chan(m, SB_IPC_RESIZE, p, sizeof(struct sb_ipc_resize));
		} else if (p) {
			m->rows = ((const struct sb_ipc_resize *)p)->rows;
			m->cols = ((const struct sb_ipc_resize *)p)->cols;
			if (m->state == MON_RUNNING)
				to_chan(m, SB_IPC_RESIZE, p, sizeof(struct sb_ipc_resize));
		}
		break;
	case SB_IPC_SIGNAL:
		p = sb_ipc_get(&msg, sizeof(struct sb_ipc_signal), 0);
		if (p && m->state == MON_RUNNING)
			to_chan(m, SB_IPC_SIGNAL, p, sizeof(struct sb_ipc_signal));
		break;
	default:
		sb_debug("message %u ignored", msg.type);
	}
}
