/*
 * In the place of sendbox-channel: what the monitor hears when the guest lies about the start of
 * the command. Says READY, and after RUN nothing (called as it is) or STARTED twice a second (when
 * its own name ends in "again").
 */
#include <string.h>
#include <unistd.h>

#include "wire/ipc.h"

int main(void)
{
	static struct sb_ipc_msg msg;
	static struct sb_ipc_msg keep; /* its carrier stays open */
	const struct sb_ipc_started started = { 0 };
	char self[4096] = { 0 };
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 5 || sb_ipc_recv(SB_IPC_SOCK_FD, &keep) != 0 ||
	    sb_ipc_send(SB_IPC_SOCK_FD, SB_IPC_READY, NULL, 0, NULL, 0) < 0 ||
	    sb_ipc_recv(SB_IPC_SOCK_FD, &msg) != 0)
		return 1;
	for (int i = 0; i < 120; i++) {
		if (strcmp(self + n - 5, "again") == 0 &&
		    sb_ipc_send(SB_IPC_SOCK_FD, SB_IPC_STARTED, &started, sizeof(started), NULL, 0) < 0)
			return 1;
		(void)usleep(500000);
	}
	return 0;
}
