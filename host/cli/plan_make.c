#include "plan_make_i.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include "bundle_local.h"
#include "crypto/crypto.h"
#include "plan_features.h"
#include "plan_net.h"
#include "provider/executable.h"
#include "wire/ipc.h"

#define START_DEADLINE_S 300
#define DEFAULT_PIDS 4096

static int oom(struct sb_err *err)
{
	return sb_err_set(err, -ENOMEM, "out of memory");
}

static void set_limits(struct sb_plan *p, const struct run_options *o)
{
	bool vm = p->provider == SB_PROVIDER_MICROVM;
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	struct rlimit nofile = { 1024, 1024 };
	struct sysinfo si;
	uint64_t ram = 4ULL << 30;

	if (sysinfo(&si) == 0)
		ram = (uint64_t)si.totalram * si.mem_unit;
	p->cpus_asked = o->cpus != 0;
	p->memory_asked = o->memory_bytes != 0;
	p->pids_asked = o->pids != 0;
	/* under emulation a second virtual CPU slows the first one down, and each GiB of memory
	 * costs tens of milliseconds of boot */
	p->cpus = o->cpus ? o->cpus
			  : p->accel == SB_ACCEL_TCG ? 1
						     : (uint32_t)SB_MIN(SB_MAX(online, 1), 4);
	p->memory_bytes = o->memory_bytes ? o->memory_bytes
			  : vm		  ? SB_MIN(p->accel == SB_ACCEL_TCG ? 1ULL << 30 : 2ULL << 30,
						   ram / 2) &
						    ~((1ULL << 20) - 1)
					  : 0;
	p->disk_bytes = o->disk_bytes ? o->disk_bytes
			: vm	      ? p->memory_bytes / 2
				      : SB_MIN(4ULL << 30, ram / 4);
	p->pids_max = o->pids ? o->pids : DEFAULT_PIDS;
	(void)getrlimit(RLIMIT_NOFILE, &nofile);
	p->nofile = vm ? 65536 : SB_MIN(SB_MAX(nofile.rlim_max, (rlim_t)16), (rlim_t)65536);
	p->timeout_ms = o->timeout_ms;
	if (vm)
		plan_set_quotas(p, o);
}

/* The runtime and accelerator words, SENDBOX_ACCEL included. */
static int set_provider(struct sb_plan *p, const struct run_options *o, struct sb_err *err)
{
	const char *accel = o->accel ? o->accel : getenv("SENDBOX_ACCEL");
	const char *why = "the first virtual machine of this host (auto)";

	p->provider = SB_PROVIDER_MICROVM;
	if (o->runtime && strcmp(o->runtime, "namespace") == 0) {
		p->provider = SB_PROVIDER_NAMESPACE;
		why = "asked for";
	} else if (o->runtime && strcmp(o->runtime, "microvm") == 0) {
		why = "asked for";
	}
	p->provider_reason = strdup(why);
	if (!p->provider_reason)
		return oom(err);
	if (p->provider == SB_PROVIDER_NAMESPACE || !accel || strcmp(accel, "auto") == 0)
		return 0;
	if (strcmp(accel, "tcg") == 0)
		p->accel = SB_ACCEL_TCG;
	else if (strcmp(accel, "kvm") == 0)
		p->accel = SB_ACCEL_KVM;
	else
		return sb_err_set(err, -EINVAL, "SENDBOX_ACCEL=\"%.60s\": must be auto, kvm or tcg",
				  accel);
	return 0;
}

/* What nobody asked for differently. */
static int set_defaults(struct sb_plan *p, const struct run_options *o, struct sb_err *err)
{
	p->provider_asked = strdup(o->runtime ? o->runtime : "auto");
	p->host_version = strdup(SB_VERSION);
	p->profile = SB_PROFILE_DEFAULT;
	p->commands.fallback = SB_CMD_ALLOW;
	p->rlimits = (struct sb_plan_rlimits){ SB_PLAN_NO_LIMIT, SB_PLAN_NO_LIMIT, SB_PLAN_NO_LIMIT,
					       SB_PLAN_NO_LIMIT, SB_PLAN_NO_LIMIT,
					       SB_PLAN_NO_LIMIT };
	return p->provider_asked && p->host_version ? 0 : oom(err);
}

/* Every program of ours that the host will start, by content; prepare() adds the others. */
static int set_executables(struct sb_plan *p, const struct sb_dirs *dirs, struct sb_err *err)
{
	bool vm = p->provider == SB_PROVIDER_MICROVM;
	const struct {
		const char *name;
		bool wanted;
	} ours[] = {
		{ "monitor", true },
		{ "channel", true },
		{ "net", p->net.mode != SB_NET_NONE },
		{ "fs", vm },
	};
	char path[PATH_MAX];
	int r = 0;

	for (size_t i = 0; r == 0 && i < SB_ARRAY_LEN(ours); i++) {
		if (!ours[i].wanted)
			continue;
		(void)snprintf(path, sizeof(path), "%s/sendbox-%s", dirs->libexec, ours[i].name);
		r = sb_exe_add(p, dirs->cache, ours[i].name, path, err);
	}
	return r;
}

/* Which guest this is, for the reader of the plan. */
static int set_bundle(struct sb_plan *p, const struct sb_bundle *b, const uint8_t pub[32],
		      struct sb_err *err)
{
	bool local = memcmp(b->key, pub, sizeof(b->key)) == 0;

	p->bundle.origin = strdup(local ? BUNDLE_LOCAL : b->m.release);
	p->bundle.sequence = b->m.sequence;
	memcpy(p->bundle.manifest_sha256, b->manifest_sha256, sizeof(b->manifest_sha256));
	memcpy(p->bundle.key, b->key, sizeof(b->key));
	return p->bundle.origin ? 0 : oom(err);
}

int plan_make(const struct run_options *o, const struct sb_dirs *dirs,
	      const struct sb_bundle *bundle, const uint8_t pub[32], struct sb_plan **ret,
	      uint32_t *ret_fail, struct sb_err *err)
{
	sb_autoplan struct sb_plan *p = calloc(1, sizeof(*p));
	const struct sb_provider *provider;
	struct stat project;
	int r;

	*ret_fail = SB_FAIL_USAGE;
	if (!p)
		return oom(err);
	sb_random(p->session, sizeof(p->session));
	p->created_unix_s = (uint64_t)time(NULL);
	p->expires_unix_s = p->created_unix_s + START_DEADLINE_S;
	r = set_provider(p, o, err);
	if (r == 0)
		r = set_defaults(p, o, err);
	if (r == 0)
		r = set_bundle(p, bundle, pub, err);
	if (r == 0)
		r = plan_set_mounts(p, o, dirs, &project, err);
	if (r == 0)
		r = plan_set_identity(p, &project, err);
	if (r == 0)
		r = plan_set_terminal(p, o, err);
	if (r == 0)
		r = plan_set_env(p, o, err);
	if (r == 0)
		r = plan_set_argv(p, o->argv, err);
	if (r == 0)
		r = plan_set_image(p, o, dirs, err);
	if (r == 0)
		r = plan_net_make(o, p, err);
	if (r < 0)
		return r;
	*ret_fail = SB_FAIL_PROVIDER;
	provider = sb_provider_get(p->provider);
	if (!provider)
		return sb_err_set(err, -ENOSYS, "this build has no such runtime");
	r = provider->prepare(dirs, o->kernel, bundle, pub, p, err);
	if (r < 0)
		return r;
	r = set_executables(p, dirs, err);
	if (r < 0)
		return r;
	set_limits(p, o);
	r = plan_features(p);
	if (r < 0)
		return sb_err_set(err, r, "features of the plan: %s", strerror(-r));
	*ret_fail = SB_FAIL_PLAN;
	r = sb_plan_check(p, err);
	if (r < 0)
		return r;
	*ret = sb_take(&p);
	*ret_fail = SB_FAIL_NONE;
	return 0;
}
