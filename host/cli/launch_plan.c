/* From options to a signed plan. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bundle_local.h"
#include "cli.h"
#include "cmd_judge.h"
#include "crypto/crypto.h"
#include "dirs.h"
#include "launch_i.h"
#include "plan_again.h"
#include "plan_make.h"
#include "plan_store.h"

/* The signed plan as it is printed and kept. */
static int make_file(struct run *r, struct sb_err *err)
{
	struct sb_plan_file f = { .plan = r->plan_bytes, .plan_len = r->plan_len };
	int k;

	memcpy(f.key, r->pub, sizeof(f.key));
	memcpy(f.signature, r->sig, sizeof(f.signature));
	k = sb_plan_file_write(&f, &r->file, &r->file_len);
	return k < 0 ? sb_err_set(err, k, "the signed plan: %s", strerror(-k)) : 0;
}

struct plan_input launch_input(const struct run *r)
{
	return (struct plan_input){ .opt = r->opt,
				    .conf = &r->conf.loaded,
				    .line = &r->conf.line,
				    .target = r->l->target,
				    .io = r->stdio };
}

int launch_plan(struct run *r, struct sb_err *err)
{
	uint8_t sec[64];
	uint32_t why = SB_FAIL_INTERNAL;
	const struct plan_input in = launch_input(r);
	int k = cli_host_key(&r->dirs.d, r->pub, sec, err);

	if (k == 0) {
		why = SB_FAIL_PROVIDER;
		k = cli_bundle_open(&r->dirs.d, r->pub, sec, &r->bundle, err);
	}
	if (k == 0 && r->opt->plan)
		k = plan_again(r->opt, &r->dirs.d, r->bundle, r->pub, &r->plan, &why, err);
	else if (k == 0)
		k = plan_make(&in, &r->dirs.d, r->bundle, r->pub, &r->plan, &why, err);
	if (k == 0 && !r->opt->dry_run) {
		why = SB_FAIL_PLAN;
		k = cmd_judge_start(&r->dirs.d, r->plan, r->conf.loaded.cfg, !r->json && !r->l->quiet, -1,
				    r->opt->env, r->opt->n_env, err);
	}
	if (k == 0) {
		why = SB_FAIL_PLAN;
		(void)snprintf(r->program, sizeof(r->program), "%.200s", r->plan->argv[0]);
		k = sb_plan_write(r->plan, &r->plan_bytes, &r->plan_len, err);
	}
	if (k == 0)
		sb_sign(r->plan_bytes, r->plan_len, sec, r->sig);
	if (k == 0)
		k = make_file(r, err);
	sb_wipe(sec, sizeof(sec));
	return k < 0 ? launch_fail(r, why, err, k) : 0;
}

/* The configuration, accepted. */
int launch_load(struct run *r, struct sb_err *err)
{
	char text[SB_ERR_TEXT_MAX];
	int k = conf_load_trusted(&r->dirs, r->opt, !r->json && !r->l->quiet, &r->conf, err);

	if (k == -EBADMSG) {
		conf_problem_text(&r->conf.problems, text, sizeof(text));
		if (r->json && problems_json(&r->conf.problems, SB_EXIT_USAGE, &r->problems) < 0)
			r->problems = NULL;
		if (!r->json && !r->l->quiet) {
			problems_print(&r->conf.problems);
			(void)snprintf(text, sizeof(text), "nothing was started");
		}
		(void)sb_err_set(err, k, "%s", text);
	}
	return k < 0 ? launch_fail(r, SB_FAIL_USAGE, err, k) : 0;
}
