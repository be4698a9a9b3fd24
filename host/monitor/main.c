#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "crypto/crypto.h"
#include "monitor.h"

/* usage: sendbox-monitor LIBEXEC CACHE SESSION; 3 = ipc, 4 = session directory, 5 = its lock */
int main(int argc, char **argv)
{
	static struct monitor m;
	static struct termios termios;
	const char *debug = getenv("SENDBOX_DEBUG");

	sb_log_init("sendbox-monitor");
	sb_log_set_debug(debug && strcmp(debug, "1") == 0);
	if (argc != 4) {
		sb_log("started by sendbox, not by hand");
		return 2;
	}
	(void)signal(SIGPIPE, SIG_IGN);
	/* what a helper leaves behind when it dies becomes ours to reap */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 || sb_crypto_init() < 0)
		return 1;
	m = (struct monitor){ .dirs = { .libexec = argv[1], .cache = argv[2] },
			      .session_path = argv[3],
			      .session_dir = 4,
			      .lock = 5,
			      .cli = SB_IPC_SOCK_FD,
			      .chan = -1,
			      .gate = -1,
			      .front = -1,
			      .viewers = -1,
			      .ssh = -1,
			      .ssh_agent = -1,
			      .ssh_front = -1,
			      .ssh_listener = -1,
			      .std = { -1, -1, -1 },
			      .console = -1,
			      .pids = -1,
			      .plan_memfd = -1,
			      .env_memfd = -1,
			      .guest_exe = -1,
			      .tty = -1,
			      .termios = &termios,
			      .audit = { .sock = -1, .dir = -1, .key = -1, .child = { .pidfd = -1 } },
			      .guest = { .pidfd = -1 } };
	m.guest_child.pidfd = m.chan_child.pidfd = m.gate_child.pidfd = m.ssh_child.pidfd = -1;
	for (size_t i = 0; i < MON_MAX_FS; i++)
		m.fs[i].pidfd = -1;
	for (int fd = 3; fd <= 5; fd++)
		if (sb_fd_set_cloexec(fd, true) < 0)
			return 1;
	if (sb_fd_set_nonblock(m.cli, true) < 0 || sb_loop_new(&m.loop) < 0 ||
	    sb_io_set(m.loop, &m.cli_io, m.cli, EPOLLIN, mon_on_cli, &m) < 0)
		return 1;
	return sb_loop_run(m.loop) < 0 ? 1 : 0;
}
