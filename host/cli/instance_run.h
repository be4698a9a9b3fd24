#ifndef SB_HOST_CLI_INSTANCE_RUN_H
#define SB_HOST_CLI_INSTANCE_RUN_H
/*
 * `run --name`: an instance is made or resumed and its session is driven by a holder (hold.h).
 */
#include "launch.h"
#include "state/state.h"

struct instance_start {
	const char *name;
	const char *agent;   /* or NULL */
	const char *image;   /* for people; a resumed one must have been made from the same; or NULL */
	const char *options; /* JSON, kept of the first start; or NULL */
	bool rm;             /* it goes with the session */
	bool detach;         /* leave as soon as the command runs */
	const char *detach_keys; /* NULL = ctrl-p,ctrl-q */
};
/*
 * launch_instance - as launch(), in the instance @s->name
 * @l: target may name the layers; instance and upper are set here. A resumed instance keeps the
 * layers, image and runtime that it was made from: others are refused, with what to do about it.
 * Return: 0; -EBUSY: it runs; -errno. The text is in @ret->text too.
 */
SB_MUST_CHECK int launch_instance(const struct launch *l, const struct instance_start *s,
				  struct launch_result *ret, struct sb_err *err);

/*
 * run_instance - `run` with a name, or with an agent
 * @opt: parsed from @argv; NAME may stand for what it was made with: its options, its agent, its command
 * Stored options are used again, option by option, unless they are given now.
 */
SB_MUST_CHECK int run_instance(int argc, char **argv, struct run_options *opt,
			       struct launch_result *ret, struct sb_err *err);

#endif
