/* What an agent's session is laid on: its base image, its environment. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "run_agent_i.h"

static const char *word(const struct run_agent *r, const char *given, const char *key)
{
	const char *v = given ? given : cfg_str(r->conf.loaded.cfg, key, "");

	return v[0] ? v : NULL;
}

/* Age for people: the largest unit that fits. */
static void tell_age(struct run_agent *r, const char *image)
{
	int64_t s = (int64_t)time(NULL) - r->ready.built_s;
	const char *unit = s < 3600 ? "m" : s < 86400 ? "h" : "d";
	int64_t n = s < 3600 ? s / 60 : s < 86400 ? s / 3600 : s / 86400;

	if (r->ready.built_s == 0)
		(void)snprintf(r->environment, sizeof(r->environment), "%.150s", image);
	else if (r->ready.built || s < 60)
		(void)snprintf(r->environment, sizeof(r->environment), "%.130s, new", image);
	else
		(void)snprintf(r->environment, sizeof(r->environment), "%.130s, %lld%s old", image,
			       (long long)n, unit);
}

static int get_environment(struct run_agent *r, const char *image, struct sb_err *err)
{
	struct environment_what *w = &r->of.what;
	int k;

	w->runtime = word(r, r->opt.runtime, "runtime.provider");
	w->accel = word(r, r->opt.accel, "runtime.accel");
	w->kernel = r->opt.kernel;
	w->reinstall = r->opt.reinstall;
	w->quiet = r->opt.quiet || r->opt.json;
	if (!r->opt.dry_run)
		return environment_ready(&r->dirs.d, w, &r->ready, err);
	k = environment_look(&r->dirs.d, w, &r->ready, err);
	return k == -ENOENT ? sb_err_set(err, k, "the environment of %.64s (%.200s and its install "
					 "commands) is not installed yet, and a dry run does not",
					 r->agent->name, image) : k;
}

/* What the definition gives now, as far as it can be told without fetching or building anything. */
static void tell_other(struct run_agent *r, const char *image)
{
	struct sb_err err = { 0 };

	if (r->opt.json || r->opt.quiet)
		return;
	if (environment_of_agent(&r->dirs.d, r->agent, image, true, &r->of, &err) < 0)
		return;
	if (environment_look(&r->dirs.d, &r->of.what, &r->ready, &err) == 0)
		instance_base_tell(r->instance, &r->base, "its agent's definition", r->ready.layers,
				   r->ready.n_layers);
	else if (err.code == 0 || err.code == -ENOENT)
		cli_error("instance %s stays on what it was made from; its agent's definition has changed "
			  "since: take another --name for that", r->instance);
}

/* A resumed instance keeps its layers, whatever the definition says by now. Return: 0; -ENOENT: it does
 * not say what they are; -errno. */
static int resumed_environment(struct run_agent *r, const char *image, struct sb_err *err)
{
	int k = instance_base_get(&r->dirs.d, r->was, &r->base, err);

	if (k < 0)
		return k;
	if (r->opt.reinstall)
		return sb_err_set(err, -EINVAL, "--reinstall: instance \"%s\" stays on the environment that it was "
				  "made from; take another --name for a new one", r->was->name);
	if (r->opt.image && r->was->image && strcmp(r->opt.image, r->was->image) != 0)
		return sb_err_set(err, -EINVAL, "instance \"%s\" was made from image %.100s, not %.100s: take "
				  "another --name", r->was->name, r->was->image, r->opt.image);
	tell_other(r, image);
	instance_base_target(&r->base, &r->target);
	r->target.was = &r->base;
	(void)snprintf(r->environment, sizeof(r->environment), "%.150s",
		       r->was->image ? r->was->image : image);
	r->opt.image = NULL;
	return 0;
}

int run_agent_environment(struct run_agent *r, struct sb_err *err)
{
	const char *image = r->opt.image ? r->opt.image : r->agent->image.text;
	int k = r->was ? resumed_environment(r, image, err) : -ENOENT;

	if (k != -ENOENT)
		return k;
	k = environment_of_agent(&r->dirs.d, r->agent, image, r->opt.dry_run, &r->of, err);
	if (k < 0 && !r->opt.image)
		(void)sb_err_add(err, k, "to use this machine's own programs instead: --image host");
	if (k == 0)
		k = get_environment(r, image, err);
	if (k < 0)
		return k;
	r->target.layers = r->ready.layers;
	r->target.n_layers = r->ready.n_layers;
	r->target.image = r->of.image.form == IMAGE_FORM_HOST  ? SB_IMAGE_HOST
			  : r->of.image.form == IMAGE_FORM_DIR ? SB_IMAGE_DIR : SB_IMAGE_LAYERS;
	r->target.image_path = r->of.image.path;
	r->target.env = (const char *const *)r->of.image.env;
	r->opt.image = NULL; /* it is the target's now */
	tell_age(r, image);
	return 0;
}

void run_agent_environment_done(struct run_agent *r)
{
	environment_ready_done(&r->ready);
	environment_of_done(&r->of);
	instance_base_done(&r->base);
}
