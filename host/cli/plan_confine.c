/* Confinement, guarded paths and the record of the configuration's files. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "conn/plan_env.h"
#include "crypto/crypto.h"
#include "plan_guards.h"
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
	p->log_blocked = conf_bool(in, "policy.boundaries.syscalls.log_blocked", false);
	for (size_t i = 0; i < SB_ARRAY_LEN(limits); i++)
		*limits[i].limit = conf_set(in, limits[i].path)
					   ? (uint64_t)conf_int(in, limits[i].path, 0)
					   : SB_PLAN_NO_LIMIT;
	return deny_syscalls(p, in, err);
}

/* ---- guards ---- */

static int guard_list(const struct plan_input *in, const char *list, enum sb_guard_mode mode,
		      struct guard_entry *v, size_t *n, struct sb_err *err)
{
	const struct cfg_value *item;

	for (size_t i = 0; (item = cfg_item(in->conf->cfg, list, i)); i++) {
		char where[PATH_MAX];

		if (*n == SB_PLAN_MAX_GUARDS)
			return sb_err_set(err, -E2BIG, "guarded_paths: more than %d",
					  SB_PLAN_MAX_GUARDS);
		conf_where(in, item, where, sizeof(where));
		v[*n] = (struct guard_entry){ .text = item->text, .mode = mode,
					      .where = strdup(where) };
		if (!v[*n].where)
			return oom(err);
		(*n)++;
	}
	return 0;
}

/* git init copies sample hooks: where no hook can be made it must not try, and it needs none. */
static int git_env(struct sb_plan *p, struct sb_err *err)
{
	int r = 0;

	for (size_t i = 0; i < p->n_guards; i++)
		if (p->guards[i].mode == SB_GUARD_GIT && !plan_env_get(p, PLAN_GIT_TEMPLATE))
			r = sb_plan_env_set(p, PLAN_GIT_TEMPLATE, strlen(PLAN_GIT_TEMPLATE), "");
	return r < 0 ? sb_err_set(err, r, "environment: %s", strerror(-r)) : 0;
}

int plan_set_guards(struct sb_plan *p, const struct plan_input *in, struct sb_err *err)
{
	struct guard_entry *v = calloc(SB_PLAN_MAX_GUARDS, sizeof(*v));
	sb_autofree const char **files = calloc(in->conf->n_files + 1, sizeof(*files));
	struct guard_lists l = { .v = v, .files = files, .project = plan_project(p),
				 .home = getenv("HOME") };
	int r = v && files ? 0 : oom(err);

	for (size_t i = 0; r == 0 && i < in->conf->n_files; i++)
		files[i] = in->conf->files[i].path;
	if (r == 0)
		r = guard_list(in, "guarded_paths.readonly", SB_GUARD_READONLY, v, &l.n, err);
	if (r == 0)
		r = guard_list(in, "guarded_paths.hidden", SB_GUARD_HIDDEN, v, &l.n, err);
	if (r == 0)
		r = plan_guards(p, &l, err);
	if (r == 0)
		r = git_env(p, err);
	for (size_t i = 0; i < l.n; i++)
		free(v[i].where);
	free(v);
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
