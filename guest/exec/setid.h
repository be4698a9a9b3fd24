#ifndef SB_GUEST_EXEC_SETID_H
#define SB_GUEST_EXEC_SETID_H
/*
 * No set-user-id and set-group-id bits from a workload that writes to the host's own file systems
 * (namespaces with bind mounts): a program made so would run as the owner of the project for
 * whoever starts it on the host, and that owner may be root. The file server refuses the bits by
 * itself, so a micro-VM does not need this.
 *
 * And no change of the core limit, whose value 1 keeps the host's crash handler (core_pattern with a
 * pipe: it runs as root, outside) from being started by a crash in the session; 0 would not.
 */
#include <linux/filter.h>

#include "base/mem.h"

/* The filter: EPERM for the bits, ENOSYS for openat2, whose mode cannot be seen; a change of the core
 * limit is ignored. Static. */
struct sock_fprog sb_setid_filter(void);

#endif
