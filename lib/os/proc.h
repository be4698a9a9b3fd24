#ifndef SB_OS_PROC_H
#define SB_OS_PROC_H
/* What /proc tells about a process. */
#include <sys/types.h>

#include "base/mem.h"

/* The start time of @pid in clock ticks since boot, which with the pid names one process of a boot;
 * 0 when there is no such process. Source: proc(5), /proc/PID/stat field 22. */
uint64_t sb_proc_start_time(pid_t pid);

#define SB_BOOT_ID_ROOM 37 /* a UUID and its NUL */
/* Which boot of the kernel this is; "-" when it does not tell. */
void sb_proc_boot_id(char out[SB_BOOT_ID_ROOM]);

#endif
