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
#include "plan_cmd.h"
#include "plan_features.h"
#include "plan_net.h"
#include "provider/executable.h"
#include "ssh_plan.h"
#include "state/upper.h"
#include "wire/ipc.h"

#define DEFAULT_PIDS 4096

static int oom(struct sb_err *err)
{
	return sb_err_set(err, -ENOMEM, "out of memory");
}

/* What a value of bytes asks for; 0 = nothing. */
static uint64_t asked(const struct plan_input *in, const char *path)
{
	const struct cfg_value *v = conf_set(in, path);

	return v ? (uint64_t)conf_int(in, path, 0) : 0;
}

static void set_limits(struct sb_plan *p, const struct plan_input *in)
{
	bool vm = p->provider == SB_PROVIDER_MICROVM;
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	struct rlimit nofile = { 1024, 1024 };
	uint64_t memory = asked(in, "resources.memory_mb");
	uint64_t disk = asked(in, "resources.disk_size_mb");
	uint64_t cpus = asked(in, "resources.cpus");
	uint64_t pids = asked(in, "resources.pids");
	uint64_t files = asked(in, "resources.rlimits.nofile");
	struct sysinfo si;
	uint64_t ram = 4ULL << 30;

	if (sysinfo(&si) == 0)
		ram = (uint64_t)si.totalram * si.mem_unit;
	p->cpus_asked = cpus != 0;
	p->memory_asked = memory != 0;
	p->pids_asked = pids != 0;
	/* under emulation a second virtual CPU slows the first one down, and each GiB of memory
	 * costs tens of milliseconds of boot */
	p->cpus = cpus ? (uint32_t)cpus
		       : p->accel == SB_ACCEL_TCG ? 1 : (uint32_t)SB_MIN(SB_MAX(online, 1), 4);
	p->memory_bytes = memory ? memory
			  : vm	 ? SB_MIN(p->accel == SB_ACCEL_TCG ? 1ULL << 30 : 2ULL << 30,
					  ram / 2) &
					   ~((1ULL << 20) - 1)
				 : 0;
	p->disk_bytes = disk ? disk : p->upper.kind == SB_UPPER_DISK ? UPPER_DISK_BYTES : vm ? p->memory_bytes / 2 : SB_MIN(4ULL << 30, ram / 4);
	p->pids_max = pids ? (uint32_t)pids : DEFAULT_PIDS;
	(void)getrlimit(RLIMIT_NOFILE, &nofile);
	p->nofile = vm ? 65536 : SB_MIN(SB_MAX(nofile.rlim_max, (rlim_t)16), (rlim_t)65536);
	if (files)
		p->nofile = files;
	p->timeout_ms = (uint64_t)conf_int(in, "timeout", 0);
	if (vm)
		plan_set_quotas(p, in);
}

#define VM_MEMORY_MIN (128ULL << 20)

/* What the ranges of the keys cannot say, told with its place. */
static int check_limits(const struct sb_plan *p, const struct plan_input *in, struct sb_err *err)
{
	const struct cfg_value *uid = conf_set(in, "uid");
	const struct cfg_value *memory = conf_set(in, "resources.memory_mb");
	const struct cfg_value *disk = conf_set(in, "resources.disk_size_mb");
	char name[PATH_MAX];

	if (uid && p->uid == 65534) {
		conf_name(in, uid, "--uid", "uid", name, sizeof(name));
		return sb_err_set(err, -EINVAL, "%.300s: 65534 is nobody, who stands for owners that do not "
				  "exist inside: choose another", name);
	}
	if (p->provider != SB_PROVIDER_MICROVM)
		return 0;
	if (memory && p->memory_bytes < VM_MEMORY_MIN) {
		conf_name(in, memory, "--memory", "resources.memory_mb", name, sizeof(name));
		return sb_err_set(err, -EINVAL, "%.300s: a micro-VM needs at least 128 MiB", name);
	}
	/* whose default depends on the accelerator: while that is not known, it is the greater one */
	if (disk && p->upper.kind == SB_UPPER_TMPFS && p->disk_bytes > p->memory_bytes) {
		conf_name(in, disk, "--disk", "resources.disk_size_mb", name, sizeof(name));
		return sb_err_set(err, -EINVAL, "%.300s: the writable layer of a micro-VM lives in its memory, "
				  "which has %llu MiB: give more memory or less disk", name,
				  (unsigned long long)(p->memory_bytes >> 20));
	}
	return 0;
}

/* A value that the chosen runtime cannot use is refused, unless whoever chose the runtime stands
 * further in: then it was meant for the other one. */
static int only_vm(const struct plan_input *in, const char *path, const char *option,
		   const char *why, struct sb_err *err)
{
	const struct cfg_value *chosen = conf_set(in, "runtime.provider");
	const struct cfg_value *v = conf_set(in, path);
	char name[PATH_MAX];

	if (!v || (chosen && v->origin.layer < chosen->origin.layer))
		return 0;
	conf_name(in, v, option, path, name, sizeof(name));
	return sb_err_set(err, -EINVAL, "%s: for the microvm runtime only: %s", name, why);
}

static int check_namespace(const struct plan_input *in, struct sb_err *err)
{
	static const char kernel[] = "the namespace runtime uses the host's kernel";
	static const char quota[] = "the namespace runtime binds folders and cannot count what is "
				    "written";
	int r = only_vm(in, "runtime.accel", "--accel", kernel, err);

	if (r == 0)
		r = only_vm(in, "runtime.kernel", "--kernel", kernel, err);
	if (r == 0)
		r = only_vm(in, "resources.quota_mb", "--quota", quota, err);
	return r < 0 ? r : only_vm(in, "resources.quota_files", "--quota-files", quota, err);
}

/* The runtime and accelerator words, SENDBOX_ACCEL included. */
static int set_provider(struct sb_plan *p, const struct plan_input *in, struct sb_err *err)
{
	const struct cfg_value *v = conf_set(in, "runtime.accel");
	const struct cfg_value *chosen = conf_set(in, "runtime.provider");
	const char *accel = v ? v->text : getenv("SENDBOX_ACCEL");
	const char *runtime = chosen ? chosen->text : "auto";
	const char *why = "the first virtual machine of this host (auto)";
	char where[PATH_MAX];
	char text[PATH_MAX + 32];

	p->provider = SB_PROVIDER_MICROVM;
	if (strcmp(runtime, "namespace") == 0)
		p->provider = SB_PROVIDER_NAMESPACE;
	if (strcmp(runtime, "auto") != 0 && chosen->origin.layer == CFG_COMMAND_LINE) {
		why = "asked for";
	} else if (strcmp(runtime, "auto") != 0) {
		conf_where(in, chosen, where, sizeof(where));
		(void)snprintf(text, sizeof(text), "asked for by %.200s", where);
		why = text;
	}
	p->provider_reason = strdup(why);
	if (!p->provider_reason)
		return oom(err);
	if (p->provider == SB_PROVIDER_NAMESPACE)
		return check_namespace(in, err);
	if (!accel || strcmp(accel, "auto") == 0)
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
static int set_defaults(struct sb_plan *p, const struct plan_input *in, struct sb_err *err)
{
	p->provider_asked = strdup(conf_str(in, "runtime.provider", "auto"));
	p->host_version = strdup(SB_VERSION);
	return p->provider_asked && p->host_version ? 0 : oom(err);
}

int plan_set_executables(struct sb_plan *p, const struct sb_dirs *dirs, struct sb_err *err)
{
	bool vm = p->provider == SB_PROVIDER_MICROVM;
	const struct {
		const char *name;
		bool wanted;
	} ours[] = {
		{ "auditd", true },
		{ "monitor", true },
		{ "channel", true },
		{ "net", p->net.mode != SB_NET_NONE },
		{ "ssh", p->ssh.n_keys > 0 },
		{ "fs", vm || p->n_guards > 0 },
		{ "imgfs", !vm && p->n_layers > 0 },
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
int plan_set_bundle(struct sb_plan *p, const struct sb_bundle *b, const uint8_t pub[32],
		    struct sb_err *err)
{
	bool local = memcmp(b->key, pub, sizeof(b->key)) == 0;

	p->bundle.origin = strdup(local ? BUNDLE_LOCAL : b->m.release);
	p->bundle.sequence = b->m.sequence;
	memcpy(p->bundle.manifest_sha256, b->manifest_sha256, sizeof(b->manifest_sha256));
	memcpy(p->bundle.key, b->key, sizeof(b->key));
	return p->bundle.origin ? 0 : oom(err);
}

static int kernel_path(const struct plan_input *in, char **ret, struct sb_err *err)
{
	const struct cfg_value *v = conf_set(in, "runtime.kernel");
	int r = v ? conf_path(v, conf_text(in, v), ret) : 0;

	return r < 0 ? sb_err_set(err, r, "runtime.kernel: %s", strerror(-r)) : 0;
}

/* What the configuration says: all of it that needs neither the bundle nor the provider. */
static int set_policy(struct sb_plan *p, const struct plan_input *in, const struct sb_dirs *dirs,
		      struct sb_err *err)
{
	char word[] = "export"; /* for people: nothing is run */
	char *export[] = { word, NULL };
	struct stat project;
	int r = set_provider(p, in, err);

	if (r == 0)
		r = plan_set_root(p, in, err);
	if (r == 0)
		r = plan_set_mounts(p, in, dirs, &project, err);
	if (r == 0)
		r = plan_set_identity(p, in, &project, err);
	if (r == 0)
		r = plan_set_terminal(p, in, err);
	if (r == 0)
		r = plan_set_env(p, in, err);
	if (r == 0)
		r = plan_set_argv(p, p->task == SB_TASK_EXPORT ? export : in->opt->argv, err);
	if (r == 0)
		r = plan_set_image(p, in, dirs, err);
	if (r == 0)
		r = plan_set_confinement(p, in, err);
	if (r == 0 && !plan_alone(p))
		r = plan_set_guards(p, in, err);
	if (r == 0)
		r = plan_net_make(in, p, err);
	if (r == 0 && p->task == SB_TASK_EXPORT)
		p->commands.fallback = SB_CMD_ALLOW; /* nothing runs */
	else if (r == 0)
		r = plan_commands_make(in, plan_project(p), &p->commands, err);
	return r;
}

/* A disk that somebody wants alone is compared when the accelerator and its default are known. */
static int check_whole(struct sb_plan *p, const struct plan_input *in, struct sb_err *err)
{
	uint64_t disk = p->disk_bytes;
	int r;

	if (p->provider == SB_PROVIDER_MICROVM && !conf_set(in, "resources.memory_mb"))
		p->disk_bytes = SB_MIN(disk, p->memory_bytes);
	r = sb_plan_check_policy(p, err);
	p->disk_bytes = disk;
	return r;
}

int plan_policy_make(const struct plan_input *in, const struct sb_dirs *dirs,
		     struct sb_plan **ret, struct sb_err *err)
{
	sb_autoplan struct sb_plan *p = calloc(1, sizeof(*p));
	int r = p ? set_policy(p, in, dirs, err) : oom(err);

	if (r == 0) {
		set_limits(p, in);
		r = check_limits(p, in, err);
	}
	if (r == 0)
		r = check_whole(p, in, err);
	if (r < 0)
		return r;
	*ret = sb_take(&p);
	return 0;
}

int plan_make(const struct plan_input *in, const struct sb_dirs *dirs,
	      const struct sb_bundle *bundle, const uint8_t pub[32], struct sb_plan **ret,
	      uint32_t *ret_fail, struct sb_err *err)
{
	sb_autoplan struct sb_plan *p = calloc(1, sizeof(*p));
	const struct sb_provider *provider;
	sb_autofree char *kernel = NULL;
	int r;

	*ret_fail = SB_FAIL_USAGE;
	if (!p)
		return oom(err);
	sb_random(p->session, sizeof(p->session));
	p->created_unix_s = (uint64_t)time(NULL);
	p->expires_unix_s = p->created_unix_s + (in->opt->valid_s ? in->opt->valid_s : PLAN_START_S);
	r = set_policy(p, in, dirs, err);
	if (r == 0)
		r = plan_set_ssh(p, in, err);
	if (r == 0)
		r = set_defaults(p, in, err);
	if (r == 0)
		r = plan_set_bundle(p, bundle, pub, err);
	if (r == 0)
		r = plan_set_parts(p, in, err);
	if (r == 0 && p->provider == SB_PROVIDER_MICROVM)
		r = kernel_path(in, &kernel, err);
	if (r < 0)
		return r;
	*ret_fail = SB_FAIL_PROVIDER;
	provider = sb_provider_get(p->provider);
	if (!provider)
		return sb_err_set(err, -ENOSYS, "this build has no such runtime");
	r = provider->prepare(dirs, kernel, bundle, pub, p, err);
	if (r < 0)
		return r;
	r = plan_set_executables(p, dirs, err);
	if (r < 0)
		return r;
	set_limits(p, in);
	*ret_fail = SB_FAIL_USAGE;
	r = check_limits(p, in, err);
	if (r < 0)
		return r;
	*ret_fail = SB_FAIL_PROVIDER;
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
