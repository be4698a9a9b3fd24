#include "init/ssh.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "wire/ipc.h"

int sb_init_ssh(const struct sb_plan *p, int *ret, struct sb_err *err)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	sb_autofd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t mask = umask(0177);
	int e = 0;

	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), SB_PLAN_SSH_SOCKET, p->uid);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0 ||
	    lchown(sa.sun_path, p->uid, p->gid) < 0 || listen(fd, SB_SSH_MAX_CONNS) < 0)
		e = -errno;
	(void)umask(mask);
	if (e < 0)
		return sb_err_set(err, e, "cannot make %s: %s", sa.sun_path, strerror(-e));
	*ret = sb_fd_take(&fd);
	return 0;
}

int sb_init_ssh_give(int sock, int front, struct sb_err *err)
{
	int e = sb_ipc_send(front, SB_IPC_SSH_LISTEN, NULL, 0, &sock, 1);

	return e < 0 ? sb_err_set(err, e, "cannot reach the SSH relay: %s", strerror(-e)) : 0;
}
