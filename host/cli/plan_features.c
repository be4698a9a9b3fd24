/*
 * What of the plan is enforced, and by what: read off the plan itself, so that the list cannot say
 * more than the plan holds.
 */
#include "plan_features.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static int say(struct sb_plan *p, const char *name, bool asked, const char *fmt, ...)
	SB_PRINTF(4, 5);
static int say(struct sb_plan *p, const char *name, bool asked, const char *fmt, ...)
{
	char text[512] = "";
	va_list ap;

	if (asked) {
		va_start(ap, fmt);
		(void)vsnprintf(text, sizeof(text), fmt, ap);
		va_end(ap);
	}
	return sb_plan_add_feature(p, name,
				   asked ? SB_DECISION_ENFORCED : SB_DECISION_NOT_ASKED, text);
}

static int say_network(struct sb_plan *p)
{
	static const char *const how[] = {
		"no network card and no route: nothing leaves",
		"no network card: sendbox-net on the host decides each connection and each name",
		"no network card: sendbox-net on the host lets public addresses through and keeps "
		"metadata services and the host out of reach",
	};
	bool budget = p->net.session_bytes > 0 || p->net.host_bytes > 0;
	int r = say(p, "network", true, "%s", how[p->net.mode <= SB_NET_OPEN ? p->net.mode : 0]);

	if (r == 0)
		r = say(p, "network_budget", budget, "counted and cut by sendbox-net");
	return r;
}

static int say_files(struct sb_plan *p)
{
	bool vm = p->provider == SB_PROVIDER_MICROVM;
	bool quota = false;
	bool ro = false;

	for (size_t i = 0; i < p->n_mounts; i++) {
		quota |= p->mounts[i].quota_bytes > 0 || p->mounts[i].quota_inodes > 0;
		ro |= p->mounts[i].mode == SB_MOUNT_RO;
	}
	if (say(p, "files", true, "%s",
		vm ? "sendbox-fs serves the mounts of the plan from the host and nothing else"
		   : "mount namespace with the mounts of the plan, and Landlock") < 0 ||
	    say(p, "readonly_mounts", ro, "%s",
		vm ? "sendbox-fs opens nothing for writing there"
		   : "read-only mounts, and Landlock") < 0 ||
	    say(p, "quota", quota, "counted by sendbox-fs") < 0)
		return -ENOMEM;
	return say(p, "guarded_paths", p->n_guards > 0, "%s",
		   "sendbox-fs protects and hides them on the host");
}

static int say_limits(struct sb_plan *p)
{
	bool vm = p->provider == SB_PROVIDER_MICROVM;
	static const char *const how[] = { "", "size of the writable layer in memory",
					   "size of the instance's disk", "" };
	const char *group = "cgroup of the session on the host";

	if (say(p, "limit_cpus", vm || p->cpus_asked, "%s", vm ? "virtual CPUs" : group) < 0 ||
	    say(p, "limit_memory", vm || p->memory_asked, "%s", vm ? "memory of the machine"
								   : group) < 0 ||
	    say(p, "limit_pids", vm || p->pids_asked, "%s",
		vm ? "cgroup in the guest" : group) < 0 ||
	    say(p, "limit_disk", p->upper.kind != SB_UPPER_DIR, "%s",
		how[p->upper.kind <= SB_UPPER_DIR ? p->upper.kind : 0]) < 0)
		return -ENOMEM;
	return say(p, "timeout", p->timeout_ms > 0, "sendbox-monitor ends the session");
}

int plan_features(struct sb_plan *p)
{
	bool vm = p->provider == SB_PROVIDER_MICROVM;
	const char *tree = "system call filter with notification, and ptrace of the exec window";
	int r = say(p, "isolation", true, "%s",
		    vm ? p->accel == SB_ACCEL_KVM ? "virtual machine (KVM), QEMU in a jail"
						  : "virtual machine (emulated), QEMU in a jail"
		       : "Linux namespaces; shares the host's kernel");

	if (r == 0)
		r = say(p, "channel", true, "Noise NNpsk0; the plan's digest is in the handshake");
	if (r == 0)
		r = say_network(p);
	if (r == 0)
		r = say(p, "ssh_agent", p->ssh.n_keys > 0, "sendbox-ssh on the host signs %s with the plan's "
			"keys, %s", p->ssh.sign_data ? "logins and data" : "logins",
			p->ssh.n_hosts > 0 ? "for sessions that the plan's hosts have signed"
					   : "for any host");
	if (r == 0)
		r = say_files(p);
	if (r == 0)
		r = say_limits(p);
	if (r == 0)
		r = say(p, "command_policy", p->commands.scope != SB_CMD_SCOPE_NONE, "%s",
			p->commands.scope == SB_CMD_SCOPE_TREE ? tree
							       : "before the command is started");
	if (r == 0)
		r = say(p, "confinement", true, "profile %s: seccomp, Landlock, no new privileges",
			sb_plan_profile_name(p->profile));
	return r == 0 || r == -ENOMEM ? r : -EINVAL;
}
