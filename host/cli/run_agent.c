/*
 * Order: the configuration without the definition (it may name the agent, and its project file must
 * be accepted before anything is done on its word), the definition, its layer, the environment, the
 * copies of the settings, folders of package managers, one launch, what the session changed.
 */
#include "run_agent_i.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "crypto/crypto.h"
#include "instance_run.h"
#include "plan_make.h"
#include "state/state.h"

static int oom(struct sb_err *err)
{
	return sb_err_set(err, -ENOMEM, "out of memory");
}

bool run_agent_known(const char *word)
{
	struct cli_dirs dirs;
	struct sb_err err = { 0 };

	if (!agent_name_ok(word))
		return false;
	if (agent_builtin_find(word))
		return true;
	return cli_dirs_init(&dirs, &err) == 0 && agent_exists(dirs.config, word);
}

/* ---- which agent ---- */

static int bad_files(struct run_agent *r, const struct problems *p, struct sb_err *err)
{
	char text[SB_ERR_TEXT_MAX];

	conf_problem_text(p, text, sizeof(text));
	if (!r->opt.json) {
		problems_print(p);
		(void)snprintf(text, sizeof(text), "nothing was started");
	}
	return sb_err_set(err, -EBADMSG, "%s", text);
}

static int outer_configuration(struct run_agent *r, struct sb_err *err)
{
	int k = conf_load_trusted(&r->dirs, &r->opt, !r->opt.json, &r->conf, err);

	if (k == -EBADMSG)
		return bad_files(r, &r->conf.problems, err);
	return k;
}

static int no_such_agent(const struct run_agent *r, const char *name, struct sb_err *err)
{
	char list[400];
	char near[65];

	agent_names(r->dirs.config, name, list, sizeof(list), near);
	return sb_err_set(err, -ENOENT,
			  "there is no agent \"%.60s\"%s%s%s; there are %.300s; to run a program "
			  "write: sendbox run -- %.60s", name, near[0] ? ", did you mean \"" : "",
			  near, near[0] ? "\"?" : "", list, name);
}

static int definition(struct run_agent *r, struct sb_err *err)
{
	const char *name = r->opt.agent;
	int k;

	if (!name[0])
		name = cfg_str(r->conf.loaded.cfg, "agent", "");
	if (!name[0])
		return sb_err_set(err, -EINVAL,
				  "no program to run; write: sendbox run [options] -- PROGRAM [ARG...], "
				  "or name an agent");
	k = agent_load(r->dirs.config, name, &r->agent, &r->problems);
	if (k == -ENOENT)
		return no_such_agent(r, name, err);
	if (k == -EBADMSG)
		return bad_files(r, &r->problems, err);
	if (k < 0)
		return oom(err);
	if (r->agent->n_secrets > 0)
		return sb_err_set(err, -EINVAL, "%.300s:%u: secrets: not available yet",
				  r->agent->secrets_at.file, r->agent->secrets_at.line);
	return 0;
}

/* ---- the definition as configuration and command ---- */

static bool is_there(void *arg, const char *path)
{
	struct stat st;

	(void)arg;
	return stat(path, &st) == 0;
}

static const char *from_caller(const char *name)
{
	return getenv(name);
}

static void note_mount(struct run_agent *r, const char *shown, const char *guest, const char *note,
		       bool read_only, bool loud)
{
	if (r->n_mounts < RUN_AGENT_MOUNTS)
		r->mounts[r->n_mounts++] = (struct banner_mount){ shown, guest, note, read_only, loud };
}

static void skipped(void *arg, const struct agent_mount *m, const char *host)
{
	(void)host;
	note_mount(arg, m->host, m->guest, "not there: left out", m->read_only, false);
}

/* A live folder of the home is where the host's own programs read what they do. */
static void note_live(struct run_agent *r)
{
	for (size_t i = 0; i < r->agent->n_mounts && !r->opt.no_agent_mounts; i++) {
		const struct agent_mount *m = &r->agent->mounts[i];
		const char *host = agent_path(&r->arena, m->host, cli_home("/"), false);
		const char *guest = agent_path(&r->arena, m->guest, r->guest_home, true);
		bool home = m->host[0] == '~' && !m->read_only;

		if (!host || !guest || !is_there(NULL, host))
			continue;
		note_mount(r, m->host, guest,
			   home ? "LIVE: what is changed inside is changed for you" : "",
			   m->read_only, home);
	}
}

int run_agent_layer(const struct agent *a, struct agent_layer *ret)
{
	char home[64];
	const struct agent_use use = { .home = cli_home("/"), .guest_home = home,
				       .variable = from_caller, .exists = is_there };
	int r = plan_guest_home(home, sizeof(home));

	return r < 0 ? r : agent_layer_make(a, &use, ret);
}

static int make_layer(struct run_agent *r, struct sb_err *err)
{
	const struct agent_use use = { .home = cli_home("/"),
				       .guest_home = r->guest_home,
				       .no_mounts = r->opt.no_agent_mounts,
				       .variable = from_caller,
				       .exists = is_there,
				       .skipped = skipped,
				       .arg = r };

	if (agent_layer_make(r->agent, &use, &r->layer) < 0)
		return oom(err);
	r->opt.agent_layer = r->layer.v;
	r->opt.n_agent_layer = r->layer.n;
	note_live(r);
	return 0;
}

static int make_argv(struct run_agent *r, struct sb_err *err)
{
	const struct agent_list *l = &r->agent->launch;
	size_t n = 0;
	size_t at = 0;

	while (r->opt.argv && r->opt.argv[n])
		n++;
	r->argv = calloc(l->n + n + 1, sizeof(*r->argv));
	if (!r->argv)
		return oom(err);
	for (size_t i = 0; i < l->n; i++)
		r->argv[at++] = l->v[i].text;
	for (size_t i = 0; i < n; i++)
		r->argv[at++] = r->opt.argv[i];
	r->opt.argv = (char **)(uintptr_t)r->argv;
	return 0;
}

static int name_instance(struct run_agent *r, struct sb_err *err)
{
	time_t now = time(NULL);
	struct tm tm;
	char stamp[32];
	uint16_t apart = 0; /* two may start in one second */

	if (r->opt.name) {
		if (!agent_name_ok(r->opt.name))
			return sb_err_set(err, -EINVAL,
					  "--name \"%.60s\": must be 1 to 64 letters, digits, \".\", \"_\" or "
					  "\"-\", a letter or digit first", r->opt.name);
		(void)snprintf(r->instance, sizeof(r->instance), "%s", r->opt.name);
		return 0;
	}
	if (!localtime_r(&now, &tm) || strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &tm) == 0)
		return sb_err_set(err, -EINVAL, "the clock tells no time");
	sb_random(&apart, sizeof(apart));
	(void)snprintf(r->instance, sizeof(r->instance), "%.40s-%s-%04x", r->agent->name, stamp, apart);
	return 0;
}

static int prepare(struct run_agent *r, uint32_t *why, struct sb_err *err)
{
	int k = sb_crypto_init();

	*why = SB_FAIL_INTERNAL;
	if (k == 0)
		k = cli_dirs_init(&r->dirs, err);
	if (k < 0)
		return k;
	*why = SB_FAIL_USAGE;
	k = outer_configuration(r, err);
	if (k == 0)
		k = definition(r, err);
	if (k == 0)
		k = plan_guest_home(r->guest_home, sizeof(r->guest_home));
	if (k == 0)
		k = name_instance(r, err);
	if (k == 0)
		k = make_layer(r, err);
	if (k == 0)
		k = make_argv(r, err);
	if (k == 0) {
		k = run_agent_environment(r, err);
		if (k < 0 && k != -EINVAL)
			*why = k == -EINTR ? SB_FAIL_CANCELLED : SB_FAIL_PROVIDER;
	}
	if (k == 0)
		k = run_agent_settings(r, err);
	if (k == 0)
		k = run_agent_caches(r, err);
	return k;
}

/* A name that nobody gave would be known to nobody. */
static void tell_kept(const struct run_agent *r)
{
	sb_autostate struct state *s = NULL;
	struct instance i = { 0 };
	struct sb_err err = { 0 };

	if (r->opt.name || r->opt.rm || r->opt.quiet || r->opt.json)
		return;
	if (state_open(&r->dirs.d, &s, &err) == 0 && instance_get(s, r->instance, &i, &err) == 0)
		cli_error("kept as instance %s: sendbox run --name %s %s resumes it, sendbox rm %s removes it; "
			  "run with --rm to keep none", r->instance, r->instance, r->agent->name, r->instance);
	instance_done(&i);
}

static void done(struct run_agent *r)
{
	run_agent_environment_done(r);
	settings_done(&r->settings);
	agent_layer_done(&r->layer);
	(void)agent_free(r->agent);
	problems_done(&r->problems);
	conf_done(&r->conf);
	free(r->argv);
	arena_done(&r->arena);
	free(r);
}

int run_agent(const struct run_options *o, const char *kept, const struct instance *was,
	      struct launch_result *ret, struct sb_err *err)
{
	struct run_agent *r = calloc(1, sizeof(*r));
	uint32_t why = SB_FAIL_INTERNAL;
	int k;

	*ret = (struct launch_result){ 0 };
	if (!r)
		return oom(err);
	r->opt = *o;
	r->was = was;
	k = prepare(r, &why, err);
	if (k < 0) {
		ret->fail = why;
		ret->status = cli_exit_of(why);
		(void)snprintf(ret->text, sizeof(ret->text), "%.499s",
			       err->code ? err->text : strerror(-k));
	} else {
		const struct launch l = { .opt = &r->opt,
					  .target = &r->target,
					  .io = { -1, -1, -1 },
					  .planned = run_agent_banner,
					  .arg = r };

		const struct instance_start s = { .name = r->instance,
						  .agent = r->agent->name,
						  .image = was ? NULL : r->of.image.reference,
						  .options = kept,
						  .rm = o->rm,
						  .detach = o->detach,
						  .detach_keys = o->detach_keys };

		k = o->dry_run ? launch(&l, ret, err) : launch_instance(&l, &s, ret, err);
	}
	if (!o->dry_run && !ret->detached)
		run_agent_review(r);
	if (k == 0 && !o->dry_run && !ret->detached)
		tell_kept(r);
	done(r);
	return k;
}
