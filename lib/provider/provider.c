#include "provider/provider.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/landlock.h"

#define WAIT_KILLABLE_RECV (1U << 5) /* SECCOMP_FILTER_FLAG_, Linux 5.19 */
#define LANDLOCK_NEEDED 2 /* renames between folders */

void sb_probe_add(struct sb_probe *p, const char *name, enum sb_check_state state,
		  const char *remedy, const char *fmt, ...)
{
	struct sb_check *c;
	va_list ap;

	sb_assert(p->n_checks < SB_CHECKS_MAX);
	c = &p->checks[p->n_checks++];
	c->name = name;
	c->state = state;
	(void)snprintf(c->remedy, sizeof(c->remedy), "%s",
		       state == SB_CHECK_OK || !remedy ? "" : remedy);
	va_start(ap, fmt);
	(void)vsnprintf(c->found, sizeof(c->found), fmt, ap);
	va_end(ap);
	if (state == SB_CHECK_FAIL)
		p->ready = false;
}

void sb_probe_landlock(struct sb_probe *p)
{
	int abi = sb_landlock_abi();

	if (abi >= LANDLOCK_NEEDED)
		sb_probe_add(p, "landlock", SB_CHECK_OK, "", "ABI %d", abi);
	else
		sb_probe_add(p, "landlock", SB_CHECK_FAIL,
			     "boot with landlock in the lsm= list (kernel 5.19 or later), for "
			     "example lsm=landlock,lockdown,yama,integrity,apparmor",
			     "%s", abi < 0 ? strerror(-abi) : "too old");
}

void sb_probe_exec_policy(struct sb_probe *p)
{
	/* the flags are looked at before the filter, which is none */
	const unsigned int flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | WAIT_KILLABLE_RECV;

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, NULL) < 0 && errno == EFAULT)
		sb_probe_add(p, "command policy", SB_CHECK_OK, "", "for the whole process tree");
	else
		sb_probe_add(p, "command policy", SB_CHECK_WARN,
			     "use Linux 5.19 or later, --runtime microvm, or policy.commands.scope: "
			     "top_level",
			     "this kernel cannot hold one for the process tree");
}

const struct sb_provider *sb_provider_get(enum sb_provider_id id)
{
	switch (id) {
	case SB_PROVIDER_MICROVM:
		return &sb_provider_microvm;
	case SB_PROVIDER_NAMESPACE:
#ifdef SB_HAVE_PROVIDER_NAMESPACE
		return &sb_provider_namespace;
#else
		return NULL;
#endif
	case SB_PROVIDER_NONE:
		break;
	}
	return NULL;
}
