#include "instance_run.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli.h"
#include "dirs.h"
#include "hold.h"
#include "instance_base.h"
#include "launch_i.h"

static char *argv_json(char *const *argv)
{
	json_t *a = json_array();
	char *s;

	for (; a && argv && *argv; argv++) {
		json_t *one = json_string(*argv);

		if (!one || json_array_append_new(a, one) < 0) { /* no UTF-8: it must be given again */
			json_decref(a);
			return NULL;
		}
	}
	s = a ? json_dumps(a, JSON_COMPACT) : NULL;
	json_decref(a);
	return s;
}

static int failed(struct launch_result *ret, uint32_t why, int k, const struct sb_err *err)
{
	ret->fail = why;
	ret->status = cli_exit_of(why);
	(void)snprintf(ret->text, sizeof(ret->text), "%.499s", err->text);
	return k;
}

/* ---- what it is made of ---- */

static const char *runtime_of(const struct sb_plan *p)
{
	const struct sb_provider *v = sb_provider_get(p->provider);

	return v ? v->name : "";
}

static int other_base(const struct run *r, const struct instance *was, struct sb_err *err)
{
	SB_CLEANUP(instance_base_done) struct instance_base b = { 0 };

	if (instance_base_get(&r->dirs.d, was, &b, err) == -ESTALE)
		return -ESTALE;
	return sb_err_set(err, -ESTALE, "instance \"%s\" was made from other layers than it would have "
					"now (its image or environment has changed): copy out what you "
					"need, sendbox rm %s, or take another --name", was->name, was->name);
}

/* A resumed one stays what it was made from: its upper layer means nothing over other layers. */
static int same_base(const struct run *r, const struct instance *was, const char *layers,
		     const char *image, struct sb_err *err)
{
	SB_CLEANUP(instance_base_done) struct instance_base b = { 0 };
	const struct sb_plan *p = r->plan;

	if (was->runtime && was->runtime[0] && strcmp(was->runtime, runtime_of(p)) != 0)
		return sb_err_set(err, -ESTALE, "instance \"%s\" was made with runtime %s and cannot be resumed "
						"with %s: say --runtime %s, or take another --name",
				  was->name, was->runtime, runtime_of(p), was->runtime);
	if (was->layers && strcmp(was->layers, layers) != 0)
		return other_base(r, was, err);
	if (was->image && image && strcmp(was->image, image) != 0)
		return sb_err_set(err, -ESTALE, "instance \"%s\" was made from image %.100s, not %.100s: take "
						"another --name", was->name, was->image, image);
	if (instance_base_parse(was->base, &b) == 0 &&
	    (b.image != p->image || (b.path && strcmp(b.path, p->image_path) != 0)))
		return other_base(r, was, err);
	return 0;
}

int hold_check(struct run *r, const struct hold_conf *c, struct sb_err *err)
{
	sb_autostate struct state *s = NULL;
	sb_autofree char *layers = NULL;
	sb_autofree char *base = NULL;
	struct instance full = { .runtime = (char *)(uintptr_t)runtime_of(r->plan),
				 .upper = r->plan->upper.path,
				 .image = (char *)(uintptr_t)c->image,
				 .workspace = r->plan->n_mounts ? r->plan->mounts[0].host : NULL,
				 .cpus = r->plan->cpus,
				 .memory_bytes = r->plan->memory_bytes };
	int k = instance_layers_text(r->plan->layers, r->plan->n_layers, &layers);

	if (k == 0 && !(c->was && c->was->base)) /* it stays as it was recorded first */
		k = instance_base_text(&r->dirs.d, r->plan, &base);
	if (k < 0)
		return sb_err_set(err, k, "out of memory");
	if (c->was)
		k = same_base(r, c->was, layers, c->image, err);
	if (k < 0)
		return k;
	full.layers = layers;
	if (c->was && !c->was->options)
		full.options = (char *)(uintptr_t)c->options;
	full.base = c->was && c->was->base ? c->was->base : base;
	memcpy(full.config_sha256, r->plan->config_sha256, sizeof(full.config_sha256));
	if (c->was && c->was->image && !full.image)
		full.image = c->was->image;
	if (c->was && c->was->workspace)
		full.workspace = c->was->workspace;
	else if (c->workspace)
		full.workspace = (char *)(uintptr_t)c->workspace;
	k = state_open(&r->dirs.d, &s, err);
	return k < 0 ? k : instance_made(s, c->id, &full, err);
}

/* ---- start ---- */

/* No holder came about: a new one was never there, another one is as it was. */
static void give_back(struct state *s, const struct instance *i, bool resumed)
{
	struct sb_err err = { 0 };
	int k = resumed ? instance_stopped(s, i->id, i->exit_code, &err)
			: instance_forget(s, i->id, &err);

	if (k < 0)
		cli_error("%s", err.text);
}

static int start(const struct launch *l, const struct instance_start *st, struct cli_dirs *dirs,
		 struct launch_result *ret, struct sb_err *err)
{
	sb_autostate struct state *s = NULL;
	sb_autofree char *argv = argv_json(l->opt->argv);
	char cwd[4096];
	const struct instance want = { .name = (char *)(uintptr_t)st->name,
				       .agent = (char *)(uintptr_t)st->agent,
				       .argv = argv,
				       .options = (char *)(uintptr_t)st->options };
	struct launch_target target = l->target ? *l->target : (struct launch_target){ 0 };
	struct launch mine = *l;
	struct instance row = { 0 };
	sb_autofd int dir = -1;
	sb_autofd int lock = -1;
	char path[4096];
	struct hold_conf hold = { .name = st->name, .dir = path, .lock = &lock, .rm = st->rm,
				  .detach = st->detach, .keys = st->detach_keys, .image = st->image, .agent = st->agent,
				  .options = st->options };
	bool resumed = false;
	int k = state_open(&dirs->d, &s, err);

	if (k == 0)
		k = instance_claim(s, &want, &resumed, &row, &lock, err);
	if (k < 0)
		return failed(ret, k == -EBUSY || k == -EINVAL ? SB_FAIL_USAGE : SB_FAIL_INTERNAL, k, err);
	hold.id = row.id;
	hold.was = resumed ? &row : NULL;
	hold.workspace = l->opt->project ? l->opt->project : getcwd(cwd, sizeof(cwd));
	target.instance = st->name;
	target.upper_dir = path;
	mine.target = &target;
	k = instance_dir(s, row.id, path, sizeof(path), &dir, err);
	/* no database is open across the holder's fork */
	s = state_close(s);
	k = k < 0 ? failed(ret, SB_FAIL_INTERNAL, k, err) : launch_held(&mine, &hold, ret, err);
	if (lock >= 0) {
		struct sb_err e = { 0 };

		if (state_open(&dirs->d, &s, &e) == 0)
			give_back(s, &row, resumed);
	}
	instance_done(&row);
	return k;
}

int launch_instance(const struct launch *l, const struct instance_start *s,
		    struct launch_result *ret, struct sb_err *err)
{
	struct cli_dirs *dirs = calloc(1, sizeof(*dirs));
	int k = dirs ? cli_dirs_init(dirs, err) : sb_err_set(err, -ENOMEM, "out of memory");

	*ret = (struct launch_result){ 0 };
	if (k == 0 && l->opt->plan)
		k = sb_err_set(err, -EINVAL, "--plan runs a plan as it is, which names its own instance: it "
					     "cannot be used with --name");
	k = k < 0 ? failed(ret, k == -EINVAL ? SB_FAIL_USAGE : SB_FAIL_INTERNAL, k, err)
		  : start(l, s, dirs, ret, err);
	free(dirs);
	return k;
}
