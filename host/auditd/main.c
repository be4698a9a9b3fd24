/* sendbox-auditd: see auditd.h. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auditd.h"
#include "auditd_syscalls.h"
#include "base/fd.h"
#include "base/log.h"
#include "crypto/crypto.h"
#include "os/jail.h"

#define DIR_FD 4
#define KEY_FD 5
#define DESCRIPTORS 24

static int take_key(uint8_t sec[64], struct sb_err *err)
{
	sb_autofd int fd = KEY_FD;
	ssize_t n = sb_fd_read_at(fd, sec, 64, 0);

	return n == 64 ? 0 : sb_err_set(err, n < 0 ? (int)n : -EBADMSG, "the audit key cannot be read");
}

static int run(struct auditd *a, struct sb_err *err)
{
	const struct sb_jail jail = { .syscalls = auditd_syscalls,
				      .n_syscalls = SB_ARRAY_LEN(auditd_syscalls),
				      .nofile = DESCRIPTORS,
				      .root_fd = DIR_FD,
				      .root_writable = true };
	uint8_t sec[64];
	int r = take_key(sec, err);

	if (r == 0 && sb_fd_set_nonblock(a->ipc, true) < 0)
		r = sb_err_set(err, -EIO, "the socket cannot be used");
	if (r == 0)
		r = sb_jail_enter(&jail, err);
	if (r == 0)
		r = sb_audit_log_open(DIR_FD, sec, &a->log, err);
	sb_wipe(sec, sizeof(sec));
	return r;
}

int main(void)
{
	static struct auditd a = { .ipc = SB_IPC_SOCK_FD };
	struct sb_err err = { 0 };
	int r;

	sb_log_init("sendbox-auditd");
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	(void)umask(077);
	r = sb_crypto_init() < 0 ? sb_err_set(&err, -EIO, "the crypto library does not work")
				 : run(&a, &err);
	if (r < 0) {
		struct sb_ipc_audit_done d = { .fail = (uint32_t)-r };

		(void)snprintf(d.text, sizeof(d.text), "%.390s", err.text);
		if (sb_ipc_send(a.ipc, SB_IPC_AUDIT_DONE, &d, sizeof(d), NULL, 0) < 0)
			sb_debug("nobody was told");
		sb_log("%s", err.text);
		return 1;
	}
	r = auditd_serve(&a);
	a.log = sb_audit_log_free(a.log);
	return r < 0 ? 1 : 0;
}
