#include "conf_load.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/num.h"
#include "cli.h"
#include "core/plan.h"
#include "trust.h"

/* Root through sudo acts for somebody. */
static uid_t sudo_caller(void)
{
	const char *text = getenv("SUDO_UID");
	uint64_t uid = 0;

	if (geteuid() != 0 || !text || sb_num_u64(text, 1, INT32_MAX, &uid) < 0)
		return 0;
	return (uid_t)uid;
}

/*
 * A project file that was found, and what it extends, is taken only when its bytes are those that
 * the user accepted: nothing has parsed them yet.
 */
struct gate {
	const struct cli_dirs *dirs;
	bool ask;
	struct sb_err *err;
};

static int admit(void *arg, const struct cfg_admit *file)
{
	const struct gate *g = arg;
	const bool wanted[] = { true };
	struct cfg_loaded_file f = { .layer = file->layer };
	const struct cfg_loaded one = { .files = &f, .n_files = 1 };
	int r;

	if (file->layer != CFG_PROJECT && file->layer != CFG_ORG && file->layer != CFG_AGENT)
		return 0;
	f.path = strdup(file->path);
	if (!f.path)
		return -ENOMEM;
	memcpy(f.sha256, file->sha256, sizeof(f.sha256));
	r = trust_check(&g->dirs->d, &one, wanted, g->err);
	if (r == TRUST_NO)
		r = trust_ask_file(&g->dirs->d, &one, file, g->ask, g->err);
	free(f.path);
	return r == -EBADMSG ? -EACCES : r; /* a damaged record, told in the text */
}

static int load(const struct cli_dirs *dirs, const struct run_options *o, struct gate *gate,
		struct conf *ret, struct sb_err *err)
{
	struct cfg_files in = { .config_dir = dirs->config,
				.home = cli_home("/"),
				.project_dir = o->project,
				.file = o->config,
				.no_project = o->no_config,
				.sudo_uid = sudo_caller(),
				.admit = gate ? admit : NULL,
				.admit_arg = gate };
	struct agent_layer global = { 0 };
	char *data_dir = NULL; /* dirs has it already */
	int r;

	*ret = (struct conf){ 0 };
	r = cfg_options_make(o, &ret->line, err);
	if (r < 0)
		return r;
	in.agent_list = o->agent_layer;
	in.n_agent = o->n_agent_layer;
	r = global_load(dirs->config, in.home, &global, &data_dir, &ret->problems);
	if (r < 0)
		return r == -EBADMSG ? r : sb_err_set(err, r, "configuration: %s", strerror(-r));
	free(data_dir);
	in.user_list = global.v;
	in.n_user = global.n;
	in.options = ret->line.text;
	in.options_len = ret->line.len;
	r = cfg_load(&in, &ret->loaded, &ret->problems);
	agent_layer_done(&global);
	cfg_options_blame(&ret->line, &ret->problems);
	if (r < 0 && r != -EBADMSG)
		return sb_err_set(err, r, "configuration: %s", strerror(-r));
	return r;
}

int conf_load(const struct cli_dirs *dirs, const struct run_options *o, struct conf *ret,
	      struct sb_err *err)
{
	return load(dirs, o, NULL, ret, err);
}

int conf_load_trusted(const struct cli_dirs *dirs, const struct run_options *o, bool ask,
		      struct conf *ret, struct sb_err *err)
{
	struct gate gate = { dirs, ask, err };
	/* a file that is named on the command line is the user's choice, not the project's */
	bool all = o->trust_config || o->config;
	int r = load(dirs, o, all ? NULL : &gate, ret, err);

	return r == 0 ? conf_trusted(dirs, o, ret, ask, err) : r;
}

void conf_done(struct conf *c)
{
	cfg_loaded_done(&c->loaded);
	problems_done(&c->problems);
	cfg_options_done(&c->line);
}

void conf_problem_text(const struct problems *p, char *out, size_t cap)
{
	const struct problem *q = p->v;
	char more[48] = "";

	if (p->n == 0) {
		(void)snprintf(out, cap, "the configuration cannot be used");
		return;
	}
	if (p->n + p->dropped > 1)
		(void)snprintf(more, sizeof(more), " (and %zu more problems)",
			       p->n + p->dropped - 1);
	if (q->line > 0)
		(void)snprintf(out, cap, "%s:%u:%u: %s%s", q->file, q->line, q->col, q->message,
			       more);
	else
		(void)snprintf(out, cap, "%s: %s%s", q->file, q->message, more);
}

/* ---- trust ---- */

/* Whether @file lies in a folder that a session with this configuration can write. */
static bool in_writable(const struct plan_input *in, const char *file)
{
	const struct cfg_value *project = conf_set(in, "project_path");
	const char *found = in->conf->project_file;
	const struct cfg_value *v;
	sb_autofree char *path = NULL;
	char real[PATH_MAX];

	if (project && conf_path(project, conf_text(in, project), &path) < 0)
		return true;
	if (!path && found && strcmp(found + strlen(found) - strlen(CONF_PROJECT_FILE),
				     CONF_PROJECT_FILE) == 0)
		path = strndup(found, strlen(found) - strlen(CONF_PROJECT_FILE));
	if (realpath(path && *path ? path : ".", real) && sb_path_within(file, real))
		return true;
	for (size_t i = 0; (v = cfg_item(in->conf->cfg, "mounts", i)); i++) {
		const struct cfg_value *host = conf_member(v, "host");
		const struct cfg_value *mode = conf_member(v, "mode");

		if (host && mode && strcmp(mode->text, "rw") == 0 && realpath(host->text, real) &&
		    sb_path_within(file, real))
			return true;
	}
	return false;
}

int conf_trusted(const struct cli_dirs *dirs, const struct run_options *o, const struct conf *c,
		 bool ask, struct sb_err *err)
{
	const struct plan_input in = { .opt = o, .conf = &c->loaded, .line = &c->line };
	const struct cfg_loaded *l = &c->loaded;
	bool wanted[64] = { false };
	size_t n = 0;
	int r;

	if (l->n_files > SB_ARRAY_LEN(wanted))
		return sb_err_set(err, -E2BIG, "more than %zu files of configuration",
				  SB_ARRAY_LEN(wanted));
	for (size_t i = 0; i < l->n_files; i++) {
		const struct cfg_loaded_file *f = &l->files[i];
		bool project = f->layer == CFG_PROJECT || f->layer == CFG_ORG ||
			       f->layer == CFG_AGENT;

		/* what the project file says by itself is in its power, wherever extends: leads */
		wanted[i] = (project && !o->config) || in_writable(&in, f->path);
		n += wanted[i];
	}
	if (n == 0 || o->trust_config)
		return 0;
	r = trust_check(&dirs->d, l, wanted, err);
	if (r != TRUST_NO)
		return r;
	return trust_ask(&dirs->d, l, wanted, ask, err);
}
