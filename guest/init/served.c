#include "init/served.h"

#include <errno.h>

int sb_served_mount(const struct sb_plan *p, struct sb_served *ret, struct sb_rootfs *r,
		    struct sb_err *err)
{
	(void)p;
	(void)ret;
	(void)r;
	return sb_err_set(err, -ENOSYS, "file servers are not built in");
}
