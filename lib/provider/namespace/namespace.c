/* The namespace provider: the host's own kernel, seen through namespaces. */
#include "provider/namespace/namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "crypto/crypto.h"
#include "os/cgroup.h"

static void probe(const struct sb_dirs *dirs, enum sb_accel accel, const char *kernel,
		  struct sb_probe *ret)
{
	(void)accel;
	(void)kernel;
	sb_ns_probe(ret);
	if (dirs && dirs->libexec) {
		sb_autofree char *path = NULL;

		if (asprintf(&path, "%s/sendbox-guest", dirs->libexec) < 0)
			path = NULL;
		if (path && access(path, X_OK) == 0)
			sb_probe_add(ret, "sendbox-guest", SB_CHECK_OK, "", "%.180s", path);
		else
			sb_probe_add(ret, "sendbox-guest", SB_CHECK_FAIL, "make install",
				     "%.150s is missing", path ? path : "sendbox-guest");
	}
	ret->ready = true;
	for (size_t i = 0; i < ret->n_checks; i++)
		if (ret->checks[i].state == SB_CHECK_FAIL)
			ret->ready = false;
}

static int prepare(const struct sb_dirs *dirs, const char *kernel, const struct sb_bundle *bundle,
		   const uint8_t pub[32], struct sb_plan *plan, struct sb_err *err)
{
	(void)dirs;
	(void)pub;
	if (kernel)
		return sb_err_set(err, -EINVAL, "--kernel has no meaning for --runtime namespace: "
				  "it shares the host's kernel");
	memcpy(plan->guest_sha256, sb_bundle_find(&bundle->m, SB_BUNDLE_GUEST)->sha256,
	       sizeof(plan->guest_sha256));
	return 0;
}

static void stop(struct sb_guest *g)
{
	if (g->pidfd >= 0)
		(void)syscall(SYS_pidfd_send_signal, g->pidfd, SIGKILL, NULL, 0);
}

static bool oom(const struct sb_guest *g)
{
	return g->priv && sb_cgroup_oom(g->priv);
}

static int destroy(struct sb_guest *g, struct sb_err *err)
{
	struct sb_cgroup *groups = g->priv;
	int e = groups ? sb_cgroup_remove(groups) : 0;

	if (e < 0)
		(void)sb_err_add(err, e, "cannot remove the control groups: %s", strerror(-e));
	g->priv = sb_cgroup_free(groups);
	sb_fd_close(&g->pidfd);
	g->pid = 0;
	return e;
}

static int gc(const struct sb_dirs *dirs, int session_dir, struct sb_err *err)
{
	sb_autofree char *record = NULL;
	size_t len;
	int e = sb_fd_read_file(session_dir, SB_NS_GROUPS, 65536, &record, &len);

	(void)dirs;
	if (e == -ENOENT) /* namespaces end with their last process: nothing else is left */
		return 0;
	if (e == 0)
		e = sb_cgroup_gc(record);
	return e < 0 ? sb_err_add(err, e, "cannot clear the control groups: %s", strerror(-e)) : 0;
}

const struct sb_provider sb_provider_namespace = {
	.name = "namespace",
	.id = SB_PROVIDER_NAMESPACE,
	.is_vm = false,
	.probe = probe,
	.prepare = prepare,
	.start = sb_ns_start,
	.stop = stop,
	.oom = oom,
	.destroy = destroy,
	.gc = gc,
};
