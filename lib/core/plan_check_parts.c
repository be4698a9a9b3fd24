#include <errno.h>
#include <string.h>

#include "core/plan_i.h"
#include "core/syscalls.h"

#define refuse sb_plan_refuse

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"

static const char bad_text[] = "must be 1 to 512 bytes without control characters";

static bool made_of(const char *s, const char *set, size_t max)
{
	return s && *s && strlen(s) <= max && s[strspn(s, set)] == '\0';
}

static bool text_ok(const char *s, size_t max)
{
	if (!s || !*s || strlen(s) > max)
		return false;
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return false;
	return true;
}

static bool is_zero(const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (p[i])
			return false;
	return true;
}

/* ---- where it comes from ---- */

static int check_parts(const struct sb_plan *p, struct sb_err *err)
{
	if (p->n_parts > SB_PLAN_MAX_PARTS)
		return sb_err_set(err, -EINVAL, "plan refused: more than %d parts",
				  SB_PLAN_MAX_PARTS);
	for (size_t i = 0; i < p->n_parts; i++) {
		const struct sb_plan_part *e = &p->parts[i];
		int r;

		if (!made_of(e->role, LOWER DIGITS ":._/+-", 128))
			return refuse(err, "part", e->role,
				      "its role must be 1 to 128 of a-z 0-9 : . _ / + -");
		if (i > 0 && strcmp(p->parts[i - 1].role, e->role) >= 0)
			return refuse(err, "part", e->role,
				      "is there twice or not in sorted order");
		r = sb_plan_check_path("path of a part", e->path, err);
		if (r < 0)
			return r;
		if (is_zero(e->sha256, sizeof(e->sha256)))
			return refuse(err, "part", e->role, "has no digest");
	}
	return 0;
}

static int check_origin(const struct sb_plan *p, struct sb_err *err)
{
	static const char *const asked[] = { "auto", "microvm", "namespace" };
	size_t i;

	for (i = 0; i < SB_ARRAY_LEN(asked); i++)
		if (p->provider_asked && strcmp(p->provider_asked, asked[i]) == 0)
			break;
	if (i == SB_ARRAY_LEN(asked))
		return refuse(err, "runtime that was asked for", p->provider_asked,
			      "must be auto, microvm or namespace");
	if (i > 0 && i != (size_t)p->provider)
		return refuse(err, "runtime that was asked for", p->provider_asked,
			      "is not the one of the plan");
	if (i == 0 && p->provider == SB_PROVIDER_NAMESPACE)
		return refuse(err, "runtime that was asked for", p->provider_asked,
			      "never means namespace");
	for (i = 0; p->rejected && p->rejected[i]; i++)
		if (i == SB_PLAN_MAX_REJECTED || !text_ok(p->rejected[i], 512))
			return refuse(err, "reason against a runtime", p->rejected[i],
				      bad_text);
	if (!text_ok(p->host_version, 64))
		return refuse(err, "version of the host", p->host_version,
			      "must be 1 to 64 bytes without control characters");
	if (!text_ok(p->bundle.origin, 128))
		return refuse(err, "origin of the guest's bundle", p->bundle.origin,
			      "must be 1 to 128 bytes without control characters");
	if (p->bundle.sequence < 1)
		return sb_err_set(err, -EINVAL, "plan refused: the guest's bundle has no release "
						"sequence");
	if (p->secrets && p->secrets[0])
		return refuse(err, "secret", p->secrets[0],
			      "secrets are not available yet");
	return 0;
}

/* ---- features ---- */

static int check_features(const struct sb_plan *p, struct sb_err *err)
{
	if (p->n_features > SB_PLAN_MAX_FEATURES)
		return sb_err_set(err, -EINVAL, "plan refused: more than %d features",
				  SB_PLAN_MAX_FEATURES);
	for (size_t i = 0; i < p->n_features; i++) {
		const struct sb_plan_feature *f = &p->features[i];

		if (!made_of(f->name, LOWER DIGITS "_", 64))
			return refuse(err, "feature", f->name,
				      "must be 1 to 64 of a-z 0-9 _");
		if (i > 0 && strcmp(p->features[i - 1].name, f->name) >= 0)
			return refuse(err, "feature", f->name,
				      "is there twice or not in sorted order");
		if (f->decision != SB_DECISION_NOT_ASKED && !text_ok(f->mechanism, 512))
			return refuse(err, "mechanism of the feature", f->name, bad_text);
		if (f->decision == SB_DECISION_NOT_ASKED && (!f->mechanism || f->mechanism[0]))
			return refuse(err, "feature", f->name,
				      "is not asked for and yet has a mechanism");
	}
	return 0;
}

/* ---- confinement ---- */

static int check_profile(const struct sb_plan *p, struct sb_err *err)
{
	if (!sb_plan_profile_name(p->profile))
		return sb_err_set(err, -EINVAL, "plan refused: no profile (strict, default, "
						"build)");
	for (size_t i = 0; p->deny_syscalls && p->deny_syscalls[i]; i++) {
		const char *name = p->deny_syscalls[i];

		if (i == SB_PLAN_MAX_SYSCALLS)
			return sb_err_set(err, -EINVAL,
					  "plan refused: more than %d system calls to deny",
					  SB_PLAN_MAX_SYSCALLS);
		if (!made_of(name, LOWER DIGITS "_", 64))
			return refuse(err, "system call", name,
				      "must be 1 to 64 of a-z 0-9 _");
		if (sb_syscall_may_deny(name, err) < 0)
			return -EINVAL;
		if (i > 0 && strcmp(p->deny_syscalls[i - 1], name) >= 0)
			return refuse(err, "system call", name,
				      "is there twice or not in sorted order");
	}
	return 0;
}

static int check_rlimits(const struct sb_plan *p, struct sb_err *err)
{
	const struct sb_plan_rlimits *l = &p->rlimits;
	const struct {
		const char *name;
		uint64_t value;
		uint64_t min;
		uint64_t max;
	} limits[] = {
		{ "fsize", l->fsize, 4096, 1ULL << 50 },
		{ "as", l->as, 16ULL << 20, 1ULL << 50 },
		{ "data", l->data, 1ULL << 20, 1ULL << 50 },
		{ "stack", l->stack, 64ULL << 10, 1ULL << 40 },
		{ "cpu", l->cpu, 1, 1000000000 },
		{ "memlock", l->memlock, 0, 1ULL << 50 },
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(limits); i++)
		if (limits[i].value != SB_PLAN_NO_LIMIT &&
		    (limits[i].value < limits[i].min || limits[i].value > limits[i].max))
			return sb_err_set(err, -EINVAL,
					  "plan refused: limit %s must be %llu to %llu or none",
					  limits[i].name, (unsigned long long)limits[i].min,
					  (unsigned long long)limits[i].max);
	return 0;
}

/* ---- guards ---- */

static int check_guard(const struct sb_plan *p, size_t i, struct sb_err *err)
{
	const struct sb_plan_guard *g = &p->guards[i];
	const struct sb_plan_mount *m;
	int r = sb_plan_check_path("guarded path", g->path, err);

	if (r < 0)
		return r;
	if (!sb_plan_guard_name(g->mode))
		return refuse(err, "guarded path", g->path,
			      "has no mode (readonly or hidden)");
	if (i > 0 && strcmp(p->guards[i - 1].path, g->path) >= 0)
		return refuse(err, "guarded path", g->path,
			      "is there twice or not in sorted order");
	m = sb_plan_holder(p, g->path);
	if (!m || m->mode != SB_MOUNT_RW || m->file || strcmp(m->guest, g->path) == 0)
		return refuse(err, "guarded path", g->path,
			      "is not inside a folder that is shared read-write");
	for (size_t k = 0; k < p->n_mounts; k++)
		if (sb_path_within(p->mounts[k].guest, g->path))
			return refuse(err, "guarded path", g->path,
				      "holds the target of another mount");
	for (size_t k = 0; k < i; k++)
		if (p->guards[k].mode == SB_GUARD_HIDDEN &&
		    sb_path_within(g->path, p->guards[k].path))
			return refuse(err, "guarded path", g->path,
				      "lies in one that is hidden");
	return 0;
}

int sb_plan_parts_check(const struct sb_plan *p, struct sb_err *err)
{
	int r = check_parts(p, err);

	if (r == 0)
		r = check_origin(p, err);
	return r < 0 ? r : check_features(p, err);
}

int sb_plan_confinement_check(const struct sb_plan *p, struct sb_err *err)
{
	int r = check_profile(p, err);

	if (r == 0)
		r = check_rlimits(p, err);
	if (r == 0 && p->n_guards > SB_PLAN_MAX_GUARDS)
		r = sb_err_set(err, -EINVAL, "plan refused: more than %d guarded paths",
			       SB_PLAN_MAX_GUARDS);
	for (size_t i = 0; r == 0 && i < p->n_guards; i++)
		r = check_guard(p, i, err);
	if (r == 0)
		r = sb_plan_commands_check(&p->commands, err);
	return r;
}
