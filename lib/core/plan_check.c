#include <errno.h>
#include <string.h>

#include "core/plan_i.h"

#define refuse sb_plan_refuse
#define check_path sb_plan_check_path

int sb_plan_refuse(struct sb_err *err, const char *what, const char *value, const char *rule)
{
	return sb_err_set(err, -EINVAL, "plan refused: %s \"%.200s\": %s", what, value ? value : "",
			  rule);
}

int sb_plan_check_path(const char *what, const char *path, struct sb_err *err)
{
	char norm[SB_PLAN_MAX_PATH + 1];

	if (!path || path[0] != '/')
		return refuse(err, what, path, "must be an absolute path");
	if (strlen(path) > SB_PLAN_MAX_PATH)
		return refuse(err, what, path, "is longer than 4095 bytes");
	if (sb_path_normalise(path, norm) < 0 || strcmp(norm, path) != 0)
		return refuse(err, what, path,
			      "must be normalised (no \"..\", \".\", \"//\" or trailing \"/\")");
	for (const char *c = path; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return refuse(err, what, path, "must not hold control characters");
	return 0;
}

/* Places that the guest makes itself; a mount there would replace a part of the wall. */
static bool reserved(const char *guest)
{
	static const char *const trees[] = { "/proc", "/sys", "/dev", "/run/sendbox",
					     "/run/host" };
	static const char *const exact[] = { "/",     "/usr", "/etc", "/bin",  "/sbin", "/lib",
					     "/lib64", "/run", "/var", "/lib32", "/libx32" };

	for (size_t i = 0; i < SB_ARRAY_LEN(trees); i++)
		if (sb_path_within(guest, trees[i]))
			return true;
	for (size_t i = 0; i < SB_ARRAY_LEN(exact); i++)
		if (strcmp(guest, exact[i]) == 0)
			return true;
	return false;
}

static int check_mounts(const struct sb_plan *p, struct sb_err *err)
{
	if (p->n_mounts > SB_PLAN_MAX_MOUNTS)
		return sb_err_set(err, -EINVAL, "plan refused: %zu mounts, at most %d are possible",
				  p->n_mounts, SB_PLAN_MAX_MOUNTS);
	for (size_t i = 0; i < p->n_mounts; i++) {
		const struct sb_plan_mount *m = &p->mounts[i];
		int r = check_path("mount source", m->host, err);

		if (r == 0)
			r = check_path("mount target", m->guest, err);
		if (r < 0)
			return r;
		if (m->mode != SB_MOUNT_RO && m->mode != SB_MOUNT_RW)
			return refuse(err, "mount target", m->guest, "has no mode (ro or rw)");
		if (p->provider != SB_PROVIDER_MICROVM && (m->quota_bytes || m->quota_inodes))
			return refuse(err, "mount", m->guest,
				      "has a quota, which this runtime cannot enforce");
		if (reserved(m->guest))
			return refuse(err, "mount target", m->guest,
				      "is a place that the sandbox makes itself; choose another");
		if (i > 0 && strcmp(p->mounts[i - 1].guest, m->guest) == 0)
			return refuse(err, "mount target", m->guest, "is used twice");
		if (i > 0 && strcmp(p->mounts[i - 1].guest, m->guest) > 0)
			return refuse(err, "mount target", m->guest, "is not in sorted order");
	}
	return 0;
}

static int check_strings(char *const *v, const char *what, size_t *bytes, struct sb_err *err)
{
	size_t n = 0;

	for (; v && v[n]; n++) {
		if (n == SB_PLAN_MAX_ARGS)
			return sb_err_set(err, -EINVAL, "plan refused: more than %d %s",
					  SB_PLAN_MAX_ARGS, what);
		*bytes += strlen(v[n]) + 1;
		if (*bytes > SB_PLAN_MAX_ARG_BYTES)
			return sb_err_set(err, -EINVAL,
					  "plan refused: arguments and environment are larger than "
					  "%u bytes together",
					  SB_PLAN_MAX_ARG_BYTES);
	}
	return 0;
}

static int check_env(const struct sb_plan *p, size_t *bytes, struct sb_err *err)
{
	if (p->n_env > SB_PLAN_MAX_ARGS)
		return sb_err_set(err, -EINVAL, "plan refused: more than %d environment entries",
				  SB_PLAN_MAX_ARGS);
	for (size_t i = 0; i < p->n_env; i++) {
		const char *name = p->env[i].name;

		if (!name || !*name || strchr(name, '='))
			return refuse(err, "environment name", name, "is empty or holds \"=\"");
		for (const char *c = name; *c; c++)
			if ((unsigned char)*c < 0x20 || *c == 0x7f)
				return refuse(err, "environment name", name,
					      "must not hold control characters");
		if (i > 0 && strcmp(p->env[i - 1].name, name) >= 0)
			return refuse(err, "environment name", name,
				      "is there twice or not in sorted order");
		*bytes += strlen(name) + 2;
		if (p->env[i].value)
			*bytes += strlen(p->env[i].value);
	}
	return *bytes <= SB_PLAN_MAX_ARG_BYTES
		       ? 0
		       : sb_err_set(err, -EINVAL,
				    "plan refused: arguments and environment are larger than "
				    "%u bytes together", SB_PLAN_MAX_ARG_BYTES);
}

static bool valid_name(const char *s, size_t max)
{
	static const char ok[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				 "-_.";

	return s && *s && strlen(s) <= max && s[strspn(s, ok)] == '\0' && *s != '-' && *s != '.';
}

static int check_identity(const struct sb_plan *p, struct sb_err *err)
{
	if (p->test_root && p->provider != SB_PROVIDER_MICROVM)
		return sb_err_set(err, -EINVAL,
				  "plan refused: a root workload needs a virtual machine");
	if ((p->uid == 0 || p->gid == 0) && !p->test_root && !p->builder)
		return sb_err_set(err, -EINVAL, "plan refused: the workload may not be root");
	if (p->uid > 0x7fffffff || p->gid > 0x7fffffff || p->uid == 65534)
		return sb_err_set(err, -EINVAL, "plan refused: user id out of range");
	if (!valid_name(p->user, 32))
		return refuse(err, "user name", p->user, "has characters outside A-Z a-z 0-9 - _ .");
	if (!valid_name(p->hostname, 63))
		return refuse(err, "host name", p->hostname,
			      "has characters outside A-Z a-z 0-9 - _ .");
	if (p->tty && !valid_name(p->term, 64))
		return refuse(err, "TERM", p->term, "is missing or malformed");
	if (!p->tty && p->term)
		return refuse(err, "TERM", p->term, "is for interactive sessions only");
	return 0;
}

static int check_limits(const struct sb_plan *p, struct sb_err *err)
{
	if (p->cpus < 1 || p->cpus > 256)
		return sb_err_set(err, -EINVAL, "plan refused: cpus must be 1 to 256");
	if (p->memory_bytes != 0 && p->memory_bytes < (16ULL << 20))
		return sb_err_set(err, -EINVAL, "plan refused: memory must be at least 16 MiB");
	if (p->provider == SB_PROVIDER_MICROVM &&
	    (p->memory_bytes < (128ULL << 20) || p->memory_bytes > (1ULL << 42)))
		return sb_err_set(err, -EINVAL,
				  "plan refused: a micro-VM needs 128 MiB to 4 TiB of memory");
	if (p->disk_bytes < (1ULL << 20) || p->disk_bytes > (1ULL << 42))
		return sb_err_set(err, -EINVAL, "plan refused: disk must be 1 MiB to 4 TiB");
	if (p->provider == SB_PROVIDER_MICROVM && p->upper.kind == SB_UPPER_TMPFS &&
	    p->disk_bytes > p->memory_bytes)
		return sb_err_set(err, -EINVAL,
				  "plan refused: the writable layer (disk, %llu MiB) lives in the "
				  "guest's memory (%llu MiB): give more --memory or less --disk",
				  (unsigned long long)(p->disk_bytes >> 20),
				  (unsigned long long)(p->memory_bytes >> 20));
	if (p->pids_max < 4 || p->pids_max > 4194304)
		return sb_err_set(err, -EINVAL, "plan refused: pids must be 4 to 4194304");
	if (p->nofile < 16 || p->nofile > 1048576)
		return sb_err_set(err, -EINVAL, "plan refused: nofile must be 16 to 1048576");
	return 0;
}

int sb_plan_check_policy(const struct sb_plan *p, struct sb_err *err)
{
	size_t bytes = 0;
	int r = check_strings(p->argv, "arguments", &bytes, err);

	if (r == 0)
		r = check_env(p, &bytes, err);
	if (r == 0)
		r = check_path("working directory", p->cwd, err);
	if (r == 0)
		r = check_path("home", p->home, err);
	if (r == 0)
		r = check_identity(p, err);
	if (r == 0)
		r = check_limits(p, err);
	if (r == 0)
		r = check_mounts(p, err);
	if (r == 0)
		r = sb_plan_root_check(p, err);
	if (r == 0)
		r = sb_plan_net_check(&p->net, err);
	return r < 0 ? r : sb_plan_confinement_check(p, err);
}

int sb_plan_check(const struct sb_plan *p, struct sb_err *err)
{
	int r;

	if (p->provider != SB_PROVIDER_MICROVM && p->provider != SB_PROVIDER_NAMESPACE)
		return sb_err_set(err, -EINVAL, "plan refused: no provider");
	if ((p->provider == SB_PROVIDER_MICROVM) != (p->accel != SB_ACCEL_NONE))
		return sb_err_set(err, -EINVAL, "plan refused: accelerator and provider disagree");
	if (p->image == SB_IMAGE_NONE || (p->image == SB_IMAGE_DIR) != (p->image_path != NULL))
		return sb_err_set(err, -EINVAL, "plan refused: no image, or image without a path");
	if (p->image_path && (r = check_path("image", p->image_path, err)) < 0)
		return r;
	if (!p->argv || !p->argv[0] || !p->argv[0][0])
		return sb_err_set(err, -EINVAL, "plan refused: no program to run");
	if (p->expires_unix_s <= p->created_unix_s)
		return sb_err_set(err, -EINVAL, "plan refused: expires before it is made");
	r = sb_plan_check_policy(p, err);
	if (r == 0)
		r = sb_plan_ssh_check(&p->ssh, err);
	return r < 0 ? r : sb_plan_parts_check(p, err);
}

int sb_plan_check_time(const struct sb_plan *p, uint64_t now_unix_s, struct sb_err *err)
{
	if (now_unix_s > p->expires_unix_s)
		return sb_err_set(err, -EKEYEXPIRED, "the plan has expired %llu s ago",
				  (unsigned long long)(now_unix_s - p->expires_unix_s));
	if (p->created_unix_s > now_unix_s && p->created_unix_s - now_unix_s > SB_PLAN_SKEW_S)
		return sb_err_set(err, -EKEYREJECTED,
				  "the plan was made %llu s in the future: one of the clocks is wrong",
				  (unsigned long long)(p->created_unix_s - now_unix_s));
	return 0;
}
