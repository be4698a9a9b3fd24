#include "conf_cmd.h"

#include <errno.h>
#include <string.h>

#include "cli.h"
#include "crypto/crypto.h"
#include "plan_make.h"

int conf_cmd_load(struct conf_cmd *c)
{
	struct sb_err err = { 0 };
	int r = sb_crypto_init();

	if (r == 0)
		r = cli_dirs_init(&c->dirs, &err);
	if (r < 0)
		return conf_fail(c->json, SB_EXIT_INTERNAL, "io", "", "%s",
				 err.code ? err.text : strerror(-r));
	r = conf_load(&c->dirs, &c->opt, &c->conf, &err);
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
