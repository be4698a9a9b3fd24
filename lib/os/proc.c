#include "os/proc.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"

uint64_t sb_proc_start_time(pid_t pid)
{
	sb_autofree char *text = NULL;
	unsigned long long t = 0;
	char path[64];
	size_t len;
	const char *p;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (sb_fd_read_file(AT_FDCWD, path, 4096, &text, &len) < 0)
		return 0;
	p = strrchr(text, ')'); /* the name before it may hold anything */
	if (!p || sscanf(p + 1,
			 " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
			 "%*d %*d %llu",
			 &t) != 1)
		return 0;
	return t;
}

void sb_proc_boot_id(char out[SB_BOOT_ID_ROOM])
{
	sb_autofree char *text = NULL;
	size_t len;

	if (sb_fd_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 64, &text, &len) < 0)
		text = NULL;
	(void)snprintf(out, SB_BOOT_ID_ROOM, "%.36s", text && len >= 36 ? text : "-");
}
