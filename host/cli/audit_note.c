#include "audit_note.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "audit_key.h"
#include "base/fd.h"
#include "os/spawn.h"
#include "wire/ipc.h"

static int start(const struct sb_dirs *d, pid_t *ret_pid, int *ret_sock, struct sb_err *err)
{
	sb_autofd int dir = -1;
	sb_autofd int key = -1;
	sb_autofd int ours = -1;
	sb_autofd int theirs = -1;
	char path[4200];
	const char *argv[] = { "sendbox-auditd", NULL };
	struct sb_spawn_fd fds[4];
	int sv[2];
	int r = audit_open(d, &dir, &key, NULL, err);

	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		return sb_err_set(err, -errno, "socketpair: %s", strerror(errno));
	ours = sv[0];
	theirs = sv[1];
	(void)snprintf(path, sizeof(path), "%s/sendbox-auditd", d->libexec);
	fds[0] = (struct sb_spawn_fd){ theirs, SB_IPC_SOCK_FD };
	fds[1] = (struct sb_spawn_fd){ dir, 4 };
	fds[2] = (struct sb_spawn_fd){ key, 5 };
	fds[3] = (struct sb_spawn_fd){ STDERR_FILENO, STDERR_FILENO };
	r = sb_spawn_start(&(struct sb_spawn){ .path = path, .argv = argv, .fds = fds,
					       .n_fds = SB_ARRAY_LEN(fds) - 1 },
			   ret_pid, NULL, err);
	if (r == 0)
		*ret_sock = sb_fd_take(&ours);
	return r;
}

static int send_one(int sock, const struct sb_audit_event *e, uint64_t id, bool last)
{
	struct sb_ipc_audit_append head = { .id = id,
					    .wait = last ? SB_IPC_AUDIT_SIGN : SB_IPC_AUDIT_GO_ON };
	uint8_t msg[sizeof(head) + SB_AUDIT_PACK_MAX];
	int n;

	memcpy(msg, &head, sizeof(head));
	n = sb_audit_pack(e, msg + sizeof(head));
	return n < 0 ? n : sb_ipc_send(sock, SB_IPC_AUDIT_APPEND, msg, sizeof(head) + (size_t)n, NULL, 0);
}

/* Until the last of them is durable. */
static int await(int sock, uint64_t id, struct sb_err *err)
{
	for (;;) {
		sb_automsg struct sb_ipc_msg msg = { 0 };
		const struct sb_ipc_audit_done *a;
		int r = sb_ipc_recv(sock, &msg);

		if (r != 0)
			return sb_err_set(err, r < 0 ? r : -EPIPE, "the audit writer ended");
		a = msg.type == SB_IPC_AUDIT_DONE ? sb_ipc_get(&msg, sizeof(*a), 0) : NULL;
		if (!a)
			return sb_err_set(err, -EBADMSG, "the audit writer sent a malformed message");
		if (a->fail != 0)
			return sb_err_set(err, -(int)SB_MIN(a->fail, 4095U), "%.399s", a->text);
		if (a->id == id)
			return 0;
	}
}

int audit_note(const struct sb_dirs *d, const struct sb_audit_event *e, size_t n,
	       struct sb_err *err)
{
	struct sb_err why = { 0 };
	sb_autofd int sock = -1;
	pid_t pid = 0;
	int r = start(d, &pid, &sock, &why);

	if (r == 0)
		for (size_t i = 0; i < n && r == 0; i++)
			r = send_one(sock, &e[i], i + 1, i + 1 == n);
	if (r < 0)
		(void)sb_err_set(&why, r, "%s", strerror(-r));
	else if (n > 0)
		r = await(sock, n, &why);
	sb_fd_close(&sock);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	return r < 0 ? sb_err_set(err, r, AUDIT_NOTE_REFUSED "%.400s", why.text) : 0;
}
