/* sendbox-net: see gate.h. No arguments; descriptor 3 is the socket to the monitor. */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "crypto/crypto.h"
#include "net/conn.h"
#include "net_syscalls.h"
#include "os/jail.h"

static int take_start(struct gate *g, struct sb_err *err)
{
	sb_automsg struct sb_ipc_msg msg;
	const struct sb_ipc_net_start *start;
	int r;

	msg.n_fds = 0;
	r = sb_ipc_recv(g->ipc, &msg);
	if (r != 0)
		return sb_err_set(err, r < 0 ? r : -ENODATA, "no start message");
	start = sb_ipc_get(&msg, sizeof(*start), 2);
	if (msg.type != SB_IPC_NET_START || !start)
		return sb_err_set(err, -EBADMSG, "the first message is not the start");
	return gate_open(g, start, &msg.fds[0], msg.fds[1], err);
}

static int run(struct gate *g, struct sb_err *err)
{
	struct sb_jail jail = { .syscalls = net_syscalls,
				.n_syscalls = SB_ARRAY_LEN(net_syscalls),
				.flags = SB_JAIL_INET,
				.root_fd = -1 };
	int r = take_start(g, err);

	if (r < 0)
		return sb_err_set(err, r, "start: errno %d", -r);
	(void)malloc_trim(0); /* the parser's tree is gone */
	jail.nofile = gate_descriptors(g);
	r = sb_jail_enter(&jail, err);
	if (r < 0)
		return r;
	r = gate_serve(g);
	if (r < 0)
		return sb_err_set(err, r, "serve: errno %d", -r);
	return sb_loop_run(g->loop);
}

int main(void)
{
	static struct gate g = { .ipc = SB_IPC_SOCK_FD,
				 .front = -1,
				 .route = -1,
				 .listeners = { -1, -1 } };
	struct sb_err err = { 0 };
	int r;

	sb_log_init("sendbox-net");
	(void)signal(SIGPIPE, SIG_IGN);
	if (sb_crypto_init() < 0) {
		sb_log("no crypto library");
		return 1;
	}
	r = run(&g, &err);
	if (r < 0) {
		struct sb_ipc_failed f = { .fail = SB_FAIL_INTERNAL };

		(void)snprintf(f.text, sizeof(f.text), "net gate: %.480s", err.text);
		if (sb_ipc_send(g.ipc, SB_IPC_FAILED, &f, sizeof(f), NULL, 0) < 0)
			sb_debug("the monitor was not told");
		sb_log("%s", err.text);
	}
	gate_done(&g);
	return r == 0 ? 0 : 1;
}
