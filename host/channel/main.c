/* sendbox-channel: see channel.h. No arguments; descriptor 3 is the socket to the monitor. */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "channel.h"
#include "channel_syscalls.h"
#include "conn/plan_env.h"
#include "conn/plan_fd.h"
#include "os/jail.h"

#define MAX_DESCRIPTORS 256 /* three a command, and a few; without the network's */

/* --- messages of the monitor --- */

static int on_run(struct session *ses, struct sb_ipc_msg *msg)
{
	const struct sb_ipc_run *run = sb_ipc_get(msg, sizeof(*run), 3);
	int fds[3];
	int r;

	if (!run || ses->state != SES_READY)
		return run && ses->state == SES_OVER ? 0 : -EBADMSG;
	for (int i = 0; i < 3; i++)
		fds[i] = sb_fd_take(&msg->fds[i]);
	r = command_start(ses, run, fds);
	for (int i = 0; i < 3; i++)
		sb_fd_close(&fds[i]);
	if (r < 0)
		session_fail(ses, SB_FAIL_INTERNAL, "cannot start command %u: errno %d", run->cmd,
			     -r);
	return 0;
}

/* One more command: what is wrong with it is told as its end, and the session goes on. */
static int on_exec(struct session *ses, struct sb_ipc_msg *msg)
{
	const struct sb_ipc_run *run = sb_ipc_get(msg, sizeof(*run), 4);
	int fds[3];
	int r;

	if (!run || run->cmd == 0)
		return -EBADMSG;
	for (int i = 0; i < 3; i++)
		fds[i] = sb_fd_take(&msg->fds[i]);
	r = ses->state == SES_READY ? command_exec(ses, run, fds, msg->fds[3]) : -ESHUTDOWN;
	for (int i = 0; i < 3; i++)
		sb_fd_close(&fds[i]);
	if (r < 0) {
		const struct sb_ipc_exited x = { .cmd = run->cmd,
						 .kind = SB_EXIT_SETUP,
						 .value = (uint32_t)-r };

		session_tell(ses, SB_IPC_EXITED, &x, sizeof(x));
	}
	return 0;
}

static int on_relayed(struct session *ses, const struct sb_ipc_msg *msg)
{
	const struct sb_ipc_resize *size = sb_ipc_get(msg, sizeof(*size), 0);
	const struct sb_ipc_signal *sig = sb_ipc_get(msg, sizeof(*sig), 0);
	struct sb_ctl m = { 0 };
	int r;

	_Static_assert(sizeof(*size) == sizeof(*sig), "one length check for both");
	if (!size || !sig)
		return -EBADMSG;
	switch (msg->type) {
	case SB_IPC_RESIZE:
		m = (struct sb_ctl){ .type = SB_CTL_RESIZE, .cmd = size->cmd, .rows = size->rows,
				     .cols = size->cols };
		break;
	case SB_IPC_SIGNAL:
		m = (struct sb_ctl){ .type = SB_CTL_SIGNAL, .cmd = sig->cmd, .value = sig->signo };
		if (sig->signo < 1 || sig->signo > 64)
			return -EBADMSG;
		break;
	default:
		m = (struct sb_ctl){ .type = SB_CTL_KILL, .cmd = sig->cmd };
		break;
	}
	if (ses->state != SES_READY || !command_find(ses, m.cmd))
		return 0; /* it ended in the meantime */
	r = session_control(ses, &m);
	if (r < 0)
		sb_debug("control message %u was lost: errno %d", m.type, -r);
	return 0;
}

/* All commands, whoever started them: they may share the terminal. */
static int on_hold(struct session *ses, const struct sb_ipc_hold *m)
{
	if (!m || m->on > 1)
		return -EBADMSG;
	ses->held = m->on == 1;
	for (size_t i = 0; i < MAX_COMMANDS; i++)
		if (ses->commands[i].ses)
			relay_hold(&ses->commands[i], ses->held);
	session_tell(ses, SB_IPC_HELD, m, sizeof(*m));
	return 0;
}

static int on_message(struct session *ses, struct sb_ipc_msg *msg)
{
	switch (msg->type) {
	case SB_IPC_HOLD:
		return on_hold(ses, sb_ipc_get(msg, sizeof(struct sb_ipc_hold), 0));
	case SB_IPC_CHAN_RUN:
		return on_run(ses, msg);
	case SB_IPC_CHAN_EXEC:
		return on_exec(ses, msg);
	case SB_IPC_RESIZE:
	case SB_IPC_SIGNAL:
	case SB_IPC_CHAN_KILL:
		return on_relayed(ses, msg);
	case SB_IPC_CHAN_CLOSE:
		if (!sb_ipc_get(msg, 0, 0))
			return -EBADMSG;
		session_close(ses);
		return 0;
	default:
		return -EBADMSG;
	}
}

static void on_ipc(struct sb_io *io, uint32_t events)
{
	struct session *ses = io->owner;
	sb_automsg struct sb_ipc_msg msg;
	int r;

	(void)events;
	msg.n_fds = 0;
	r = sb_ipc_recv(ses->ipc, &msg);
	if (r == -EAGAIN)
		return;
	if (r == 0)
		r = on_message(ses, &msg);
	if (r == 0)
		return;
	if (r < 0)
		sb_log("message of the monitor: errno %d", -r);
	sb_loop_stop(ses->loop, r == SB_IPC_EOF ? 0 : 1);
}

/* --- start --- */

/* @ret_net, @ret_ssh: whether there must be a front socket of the net gate, of the SSH relay */
static int take_plan(struct session *ses, const struct sb_ipc_chan_start *start, int fd, int env_fd,
		     bool *ret_net, bool *ret_ssh, struct sb_err *err)
{
	const struct sb_plan_expect x = { .signature = start->signature,
					  .public_key = start->public_key,
					  .session = start->session };
	struct sb_boot_parts boot = { .session = start->session, .signature = start->signature,
				      .psk = start->psk };
	sb_autofree char *bytes = NULL;
	sb_autoplan struct sb_plan *plan = NULL;
	uint8_t digest[SB_SHA256_LEN];
	uint8_t *env = NULL;
	size_t len;
	int r = sb_plan_from_fd(fd, &x, &plan, &bytes, &len, err);

	if (r == 0)
		r = sb_plan_env_from_fd(env_fd, plan, err);
	if (r == 0)
		r = sb_plan_env_pack(plan, &env, &boot.env_len);
	if (r < 0)
		return r;
	if (plan->provider == SB_PROVIDER_MICROVM) {
		ses->max_net = SB_CHAN_NET_ROOM(plan);
		*ret_net = plan->net.mode != SB_NET_NONE;
		*ret_ssh = plan->ssh.n_keys > 0;
	}
	r = sb_controls_of(plan, &ses->controls);
	if (r < 0)
		return r;
	ses->judges = plan->commands.scope == SB_CMD_SCOPE_TREE || plan->log_blocked;
	ses->n_rules = plan->commands.n_rules;
	ses->tty = plan->tty;
	ses->separate_stderr = plan->separate_stderr;
	sb_sha256(bytes, len, digest);
	sb_boot_prologue(plan->session, digest, ses->prologue);
	memcpy(ses->psk, start->psk, sizeof(ses->psk));
	boot.plan = bytes;
	boot.plan_len = len;
	boot.env = env;
	r = sb_boot_write(&boot, &ses->boot, &ses->boot_len);
	sb_wipe(env, boot.env_len);
	free(env);
	return r;
}

static int take_fd(struct sb_ipc_msg *msg, size_t at, int *ret)
{
	*ret = sb_fd_take(&msg->fds[at]);
	return sb_fd_set_nonblock(*ret, true);
}

static int take_start(struct session *ses, struct sb_err *err)
{
	sb_automsg struct sb_ipc_msg msg;
	const struct sb_ipc_chan_start *start;
	bool net = false;
	bool ssh = false;
	size_t n = 3;
	int r;

	msg.n_fds = 0;
	r = sb_ipc_recv(ses->ipc, &msg);
	if (r != 0)
		return sb_err_set(err, r < 0 ? r : -ENODATA, "no start message");
	start = msg.n_fds >= 3 && msg.n_fds <= 5 ? sb_ipc_get(&msg, sizeof(*start), msg.n_fds) : NULL;
	if (msg.type != SB_IPC_CHAN_START || !start)
		return sb_err_set(err, -EBADMSG, "the first message is not the start");
	ses->ready_timeout_ms = start->ready_timeout_ms;
	r = take_plan(ses, start, msg.fds[1], msg.fds[2], &net, &ssh, err);
	if (r < 0)
		return r;
	if (msg.n_fds != 3U + net + ssh)
		return sb_err_set(err, -EBADMSG, "the plan and the front sockets do not agree");
	r = take_fd(&msg, 0, &ses->carrier);
	if (r == 0 && net)
		r = take_fd(&msg, n++, &ses->net.fd);
	if (r == 0 && ssh)
		r = take_fd(&msg, n, &ses->ssh.fd);
	if (r == 0)
		r = sb_fd_set_nonblock(ses->ipc, true);
	return r < 0 ? sb_err_set(err, r, "descriptors: errno %d", -r) : 0;
}

static int run(struct session *ses, struct sb_err *err)
{
	struct sb_jail jail = { .syscalls = channel_syscalls,
				.n_syscalls = SB_ARRAY_LEN(channel_syscalls),
				.flags = SB_JAIL_IOCTL_ISATTY | SB_JAIL_SOCKET_PAIRS,
				.nofile = MAX_DESCRIPTORS,
				.root_fd = -1 };
	int r = sb_loop_new(&ses->loop);

	if (r == 0)
		r = take_start(ses, err);
	if (r == 0)
		r = sb_io_set(ses->loop, &ses->ipc_io, ses->ipc, EPOLLIN, on_ipc, ses);
	if (r < 0)
		return sb_err_set(err, r, "start: errno %d", -r);
	if (ses->max_net > 0)
		jail.nofile += ses->max_net + 2 * UNSENT_MAX;
	(void)malloc_trim(0); /* the plan and the parser's tree are gone */
	r = sb_jail_enter(&jail, err);
	if (r < 0)
		return r;
	r = session_start(ses);
	if (r < 0)
		return sb_err_set(err, r, "carrier: errno %d", -r);
	return sb_loop_run(ses->loop);
}

int main(void)
{
	static struct session ses = { .ipc = SB_IPC_SOCK_FD, .carrier = -1, .net = { .fd = -1 },
				      .ssh = { .fd = -1 } };
	struct sb_err err = { 0 };
	int r;

	sb_log_init("sendbox-channel");
	(void)signal(SIGPIPE, SIG_IGN);
	if (sb_crypto_init() < 0) {
		sb_log("no crypto library");
		return 1;
	}
	r = run(&ses, &err);
	if (r < 0) {
		struct sb_ipc_failed f = { .fail = SB_FAIL_INTERNAL };

		(void)snprintf(f.text, sizeof(f.text), "channel: %.480s", err.text);
		session_tell(&ses, SB_IPC_FAILED, &f, sizeof(f));
		sb_log("%s", err.text);
	}
	session_done(&ses);
	ses.loop = sb_loop_free(ses.loop);
	return r == 0 ? 0 : 1;
}
