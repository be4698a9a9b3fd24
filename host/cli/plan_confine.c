/* Confinement, guarded paths and the record of the configuration's files. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "crypto/crypto.h"
#include "plan_make_i.h"

static int oom(struct sb_err *err)
{
	return sb_err_set(err, -ENOMEM, "out of memory");
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* ---- confinement ---- */

static int deny_syscalls(struct sb_plan *p, const struct plan_input *in, struct sb_err *err)
{
	static const char path[] = "policy.boundaries.syscalls.additional_denylist";
	const struct cfg_value *v;
	size_t n = 0;
	size_t k = 0;

	p->deny_syscalls = calloc(SB_PLAN_MAX_SYSCALLS + 1, sizeof(*p->deny_syscalls));
	if (!p->deny_syscalls)
		return oom(err);
	for (; (v = cfg_item(in->conf->cfg, path, n)); n++) {
		if (n == SB_PLAN_MAX_SYSCALLS)
			return sb_err_set(err, -E2BIG, "additional_denylist: more than %d system calls",
					  SB_PLAN_MAX_SYSCALLS);
		p->deny_syscalls[n] = strdup(v->text);
		if (!p->deny_syscalls[n])
			return oom(err);
	}
	qsort(p->deny_syscalls, n, sizeof(*p->deny_syscalls), by_text);
	for (size_t i = 0; i < n; i++) {
		if (k > 0 && strcmp(p->deny_syscalls[k - 1], p->deny_syscalls[i]) == 0)
			free(p->deny_syscalls[i]);
		else
			p->deny_syscalls[k++] = p->deny_syscalls[i];
	}
	for (size_t i = k; i < n; i++)
		p->deny_syscalls[i] = NULL;
	return 0;
}

int plan_set_confinement(struct sb_plan *p, const struct plan_input *in, struct sb_err *err)
{
	const char *profile = conf_str(in, "policy.profile", "default");
	const struct cfg_value *log_blocked = conf_set(in, "policy.boundaries.syscalls.log_blocked");
	const struct {
		const char *path;
		uint64_t *limit;
	} limits[] = {
		{ "resources.rlimits.fsize_mb", &p->rlimits.fsize },
		{ "resources.rlimits.as_mb", &p->rlimits.as },
		{ "resources.rlimits.data_mb", &p->rlimits.data },
		{ "resources.rlimits.stack_mb", &p->rlimits.stack },
		{ "resources.rlimits.cpu_secs", &p->rlimits.cpu },
		{ "resources.rlimits.memlock_mb", &p->rlimits.memlock },
	};

	p->profile = strcmp(profile, "strict") == 0  ? SB_PROFILE_STRICT
		     : strcmp(profile, "build") == 0 ? SB_PROFILE_BUILD
						     : SB_PROFILE_DEFAULT;
	p->log_blocked = log_blocked && log_blocked->boolean;
	for (size_t i = 0; i < SB_ARRAY_LEN(limits); i++)
		*limits[i].limit = conf_set(in, limits[i].path)
					   ? (uint64_t)conf_int(in, limits[i].path, 0)
					   : SB_PLAN_NO_LIMIT;
	return deny_syscalls(p, in, err);
}

/* ---- guards ---- */

static bool writable(const struct sb_plan *p, const char *guest)
{
	const struct sb_plan_mount *in = NULL;

	for (size_t i = 0; i < p->n_mounts; i++) /* sorted: the innermost comes last */
		if (sb_path_within(guest, p->mounts[i].guest))
			in = &p->mounts[i];
	return in && in->mode == SB_MOUNT_RW;
}

/* The stricter one of two for one path stays. */
static int add_guard(struct sb_plan *p, const char *path, enum sb_guard_mode mode,
		     struct sb_err *err)
{
	for (size_t i = 0; i < p->n_guards; i++) {
		if (strcmp(p->guards[i].path, path) == 0) {
			p->guards[i].mode = SB_MAX(p->guards[i].mode, mode);
			return 0;
		}
	}
	if (p->n_guards == SB_PLAN_MAX_GUARDS)
		return sb_err_set(err, -E2BIG, "guarded_paths: more than %d", SB_PLAN_MAX_GUARDS);
	p->guards[p->n_guards] = (struct sb_plan_guard){ .path = strdup(path), .mode = mode };
	return p->guards[p->n_guards++].path ? 0 : oom(err);
}

static int guard_list(struct sb_plan *p, const struct plan_input *in, const char *list,
		      enum sb_guard_mode mode, struct sb_err *err)
{
	const struct cfg_value *v;
	int r = 0;

	for (size_t i = 0; r == 0 && (v = cfg_item(in->conf->cfg, list, i)); i++) {
		char path[SB_PLAN_MAX_PATH + 1];
		sb_autofree char *full = NULL;
		char where[PATH_MAX];

		conf_where(in, v, where, sizeof(where));
		if (v->text[0] == '/')
			full = strdup(v->text);
		else if (asprintf(&full, "%s/%s", plan_project(p), v->text) < 0)
			full = NULL;
		if (!full)
			return oom(err);
		if (sb_path_normalise(full, path) < 0)
			return sb_err_set(err, -EINVAL, "%.200s: guarded path \"%.200s\": must be a path "
					  "without \"..\"", where, v->text);
		if (!writable(p, path))
			return sb_err_set(err, -EINVAL, "%.200s: guarded path \"%.200s\": it is in no "
					  "folder that is shared read-write, so there is nothing to guard",
					  where, path);
		for (size_t k = 0; k < p->n_mounts; k++)
			if (strcmp(p->mounts[k].guest, path) == 0)
				return sb_err_set(err, -EINVAL, "%.200s: guarded path \"%.200s\": it is a "
						  "shared folder itself: share it read-only or not at all",
						  where, path);
		r = add_guard(p, path, mode, err);
	}
	return r;
}

/* A file of the configuration that the session could change is read-only for it. */
static int guard_files(struct sb_plan *p, const struct plan_input *in, struct sb_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < in->conf->n_files; i++) {
		const char *file = in->conf->files[i].path;

		for (size_t k = 0; r == 0 && k < p->n_mounts; k++) {
			const struct sb_plan_mount *m = &p->mounts[k];
			sb_autofree char *path = NULL;

			if (m->mode != SB_MOUNT_RW || m->file || !sb_path_within(file, m->host))
				continue;
			if (asprintf(&path, "%s%s", m->guest, file + strlen(m->host)) < 0)
				return oom(err);
			if (writable(p, path))
				r = add_guard(p, path, SB_GUARD_READONLY, err);
		}
	}
	return r;
}

/* What is hidden needs no other guard within. */
static void drop_within_hidden(struct sb_plan *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n_guards; i++) {
		bool hidden = false;

		for (size_t k = 0; k < n; k++)
			hidden |= p->guards[k].mode == SB_GUARD_HIDDEN &&
				  sb_path_within(p->guards[i].path, p->guards[k].path);
		if (hidden)
			free(p->guards[i].path);
		else
			p->guards[n++] = p->guards[i];
	}
	p->n_guards = n;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct sb_plan_guard *)a)->path,
		      ((const struct sb_plan_guard *)b)->path);
}

int plan_set_guards(struct sb_plan *p, const struct plan_input *in, struct sb_err *err)
{
	int r;

	p->guards = calloc(SB_PLAN_MAX_GUARDS, sizeof(*p->guards));
	if (!p->guards)
		return oom(err);
	r = guard_list(p, in, "guarded_paths.readonly", SB_GUARD_READONLY, err);
	if (r == 0)
		r = guard_list(p, in, "guarded_paths.hidden", SB_GUARD_HIDDEN, err);
	if (r == 0)
		r = guard_files(p, in, err);
	qsort(p->guards, p->n_guards, sizeof(*p->guards), by_path);
	drop_within_hidden(p);
	return r;
}

/* ---- what the plan was made from ---- */

int plan_set_parts(struct sb_plan *p, const struct plan_input *in, struct sb_err *err)
{
	const struct cfg_loaded *l = in->conf;
	sb_autofree char *json = NULL;
	size_t len = 0;
	int r = cfg_json(l->cfg, &json, &len);

	if (r < 0)
		return sb_err_set(err, r, "configuration: %s", strerror(-r));
	sb_sha256(json, len, p->config_sha256);
	for (size_t i = 0; i < l->n_files; i++) {
		char role[64];
		size_t same = 0; /* files of that layer so far */

		for (size_t k = 0; k < i; k++)
			same += l->files[k].layer == l->files[i].layer;
		if (same == 0)
			(void)snprintf(role, sizeof(role), "config:%s",
				       cfg_layer_name(l->files[i].layer));
		else
			(void)snprintf(role, sizeof(role), "config:%s:%zu",
				       cfg_layer_name(l->files[i].layer), same + 1);
		r = sb_plan_add_part(p, role, l->files[i].path, l->files[i].sha256);
		if (r < 0)
			return sb_err_set(err, r, "%.300s: cannot be recorded in the plan: %s",
					  l->files[i].path, strerror(-r));
	}
	return 0;
}
