#include "conf_cmd.h"

#include <errno.h>
#include <string.h>

#include "cli.h"
#include "crypto/crypto.h"
#include "plan_make.h"
#include "run_agent.h"

/* Return: 0; else an exit status, told. */
static int agent_layer(struct conf_cmd *c, struct agent_layer *ret)
{
	struct problems p = { 0 };
	struct agent *a = NULL;
	char list[400];
	char near[65];
	int status = 0;
	int r = agent_load(c->dirs.config, c->agent, &a, &p);

	if (r == 0)
		r = run_agent_layer(a, ret);
	if (r == -EBADMSG) {
		status = conf_fail_problems(c->json, SB_EXIT_USAGE, &p);
	} else if (r == -ENOENT) {
		agent_names(c->dirs.config, c->agent, list, sizeof(list), near);
		status = conf_fail(c->json, SB_EXIT_USAGE, "not_found", c->agent,
				   "there is no agent \"%.60s\"; there are %s", c->agent, list);
	} else if (r < 0) {
		status = conf_fail(c->json, SB_EXIT_INTERNAL, "io", "", "%s", strerror(-r));
	}
	(void)agent_free(a);
	problems_done(&p);
	return status;
}

int conf_cmd_load(struct conf_cmd *c)
{
	struct agent_layer layer = { 0 };
	struct sb_err err = { 0 };
	int r = sb_crypto_init();
	int status;

	if (r == 0)
		r = cli_dirs_init(&c->dirs, &err);
	if (r < 0)
		return conf_fail(c->json, SB_EXIT_INTERNAL, "io", "", "%s",
				 err.code ? err.text : strerror(-r));
	status = c->agent ? agent_layer(c, &layer) : 0;
	if (status != 0)
		return status;
	c->opt.agent_layer = layer.v;
	c->opt.n_agent_layer = layer.n;
	r = conf_load(&c->dirs, &c->opt, &c->conf, &err);
	agent_layer_done(&layer);
	c->opt.agent_layer = NULL;
	c->opt.n_agent_layer = 0;
	if (r == -EBADMSG)
		return conf_fail_problems(c->json, SB_EXIT_USAGE, &c->conf.problems);
	if (r < 0)
		return conf_fail(c->json, SB_EXIT_USAGE, "io", "", "%s",
				 err.code ? err.text : strerror(-r));
	return 0;
}

int conf_cmd_plan(struct conf_cmd *c)
{
	static char program[] = "true"; /* the policy does not depend on it */
	static char *argv[] = { program, NULL };
	const struct plan_input in = { .opt = &c->opt, .conf = &c->conf.loaded, .line = &c->conf.line };
	struct sb_err err = { 0 };
	int r;

	c->opt.argv = argv;
	r = plan_policy_make(&in, &c->dirs.d, &c->plan, &err);
	if (r < 0)
		return conf_fail(c->json, SB_EXIT_USAGE, "invalid_value", conf_cmd_file(c), "%s",
				 err.code ? err.text : strerror(-r));
	return 0;
}

void conf_cmd_done(struct conf_cmd *c)
{
	c->plan = sb_plan_free(c->plan);
	conf_done(&c->conf);
}

const char *conf_cmd_file(const struct conf_cmd *c)
{
	if (c->conf.loaded.project_file)
		return c->conf.loaded.project_file;
	return c->opt.config ? c->opt.config : "";
}
