/* sendbox-ssh: see ssh.h. No arguments; descriptor 3 is the socket to the monitor. */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "crypto/crypto.h"
#include "crypto/pk.h"
#include "os/jail.h"
#include "ssh.h"
#include "ssh_syscalls.h"

/* two a connection, and those that are on their way */
#define DESCRIPTORS (64 + 2 * SB_SSH_MAX_CONNS)

static int take_start(struct relay *r, struct sb_err *err)
{
	sb_automsg struct sb_ipc_msg msg;
	const struct sb_ipc_net_start *start;
	int k;

	msg.n_fds = 0;
	k = sb_ipc_recv(r->ipc, &msg);
	if (k != 0)
		return sb_err_set(err, k < 0 ? k : -ENODATA, "no start message");
	start = sb_ipc_get(&msg, sizeof(*start), 2);
	if (msg.type != SB_IPC_SSH_START || !start)
		return sb_err_set(err, -EBADMSG, "the first message is not the start");
	return relay_open(r, start, &msg.fds[0], msg.fds[1], err);
}

static int run(struct relay *r, struct sb_err *err)
{
	const struct sb_jail jail = { .syscalls = ssh_syscalls,
				      .n_syscalls = SB_ARRAY_LEN(ssh_syscalls),
				      .nofile = DESCRIPTORS,
				      .root_fd = -1 };
	int k = take_start(r, err);

	if (k < 0)
		return sb_err_set(err, k, "start: errno %d", -k);
	(void)malloc_trim(0); /* the parser's tree is gone */
	k = sb_jail_enter(&jail, err);
	if (k < 0)
		return k;
	k = relay_serve(r);
	if (k < 0)
		return sb_err_set(err, k, "serve: errno %d", -k);
	return sb_loop_run(r->loop);
}

int main(void)
{
	static struct relay r = { .ipc = SB_IPC_SOCK_FD, .front = -1, .listener = -1 };
	struct sb_err err = { 0 };
	int k;

	sb_log_init("sendbox-ssh");
	(void)signal(SIGPIPE, SIG_IGN);
	if (sb_crypto_init() < 0 || sb_pk_init() < 0) {
		sb_log("the crypto library does not work");
		return 1;
	}
	k = run(&r, &err);
	if (k < 0) {
		struct sb_ipc_failed f = { .fail = SB_FAIL_INTERNAL };

		(void)snprintf(f.text, sizeof(f.text), "SSH relay: %.480s", err.text);
		if (sb_ipc_send(r.ipc, SB_IPC_FAILED, &f, sizeof(f), NULL, 0) < 0)
			sb_debug("the monitor was not told");
		sb_log("%s", err.text);
	}
	relay_done(&r);
	return k == 0 ? 0 : 1;
}
