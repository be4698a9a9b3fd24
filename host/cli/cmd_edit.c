/* sendbox edit: a root shell in an agent's environment, saved on exit. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "base/num.h"
#include "cli.h"
#include "crypto/crypto.h"
#include "dirs.h"
#include "environment/of_agent.h"
#include "options.h"

enum { OPT_RUNTIME = 1, OPT_ACCEL, OPT_KERNEL, OPT_IMAGE, OPT_CPUS, OPT_MEMORY, OPT_REINSTALL,
       OPT_VERBOSE, OPT_QUIET, OPT_HELP };
static const struct cli_option options[] = {
	{ "runtime", 0, "NAME", "auto, microvm or namespace", OPT_RUNTIME },
	{ "accel", 0, "NAME", "micro-VM: auto, kvm or tcg", OPT_ACCEL },
	{ "kernel", 'k', "PATH", "micro-VM: this kernel", OPT_KERNEL },
	{ "image", 0, "REF", "another base image than the definition's", OPT_IMAGE },
	{ "cpus", 0, "N", "processors of the builder", OPT_CPUS },
	{ "memory", 0, "SIZE", "memory of the builder", OPT_MEMORY },
	{ "reinstall", 0, NULL, "install the environment anew first", OPT_REINSTALL },
	{ "verbose", 'v', NULL, "show what the install commands say", OPT_VERBOSE },
	{ "quiet", 'q', NULL, "no lines of progress", OPT_QUIET },
	{ "help", 'h', NULL, "show this", OPT_HELP },
};

struct edit {
	struct environment_what with; /* how the builder runs */
	const char *image;
	bool help;
};

static int take(struct edit *e, int id, const char *v, struct sb_err *err)
{
	uint64_t n = 0;

	switch (id) {
	case OPT_RUNTIME:
		e->with.runtime = v;
		return strcmp(v, "auto") == 0 || strcmp(v, "microvm") == 0 ||
				       strcmp(v, "namespace") == 0
			       ? 0 : sb_err_set(err, -EINVAL, "--runtime %.60s: must be auto, microvm "
							      "or namespace", v);
	case OPT_ACCEL:
		e->with.accel = v;
		return 0;
	case OPT_KERNEL:
		e->with.kernel = v;
		return 0;
	case OPT_IMAGE:
		e->image = v;
		return 0;
	case OPT_CPUS:
		if (sb_num_u64(v, 1, 256, &n) < 0)
			return sb_err_set(err, -EINVAL, "--cpus %.60s: must be 1 to 256", v);
		e->with.cpus = (uint32_t)n;
		return 0;
	case OPT_MEMORY:
		return sb_num_size(v, &e->with.memory_bytes) < 0
			       ? sb_err_set(err, -EINVAL, "--memory %.60s: is no size", v) : 0;
	case OPT_REINSTALL:
		e->with.reinstall = true;
		return 0;
	case OPT_VERBOSE:
		e->with.verbose = true;
		return 0;
	case OPT_QUIET:
		e->with.quiet = true;
		return 0;
	default:
		e->help = true;
		return 0;
	}
}

static int usage(FILE *to, int status)
{
	(void)fprintf(to, "usage: sendbox edit [options] AGENT [-- COMMAND...]\n\n");
	cli_options_help(options, SB_ARRAY_LEN(options));
	return status;
}

static int no_agent(const struct cli_dirs *d, const char *name, struct sb_err *err)
{
	char list[1024];
	char near[65];

	agent_names(d->d.config, name, list, sizeof(list), near);
	return sb_err_set(err, -EINVAL, "no agent \"%.60s\"%s%s%s; there are: %.700s", name,
			  near[0] ? "; did you mean " : "", near, near[0] ? "?" : "", list);
}

static int load(const struct cli_dirs *d, const char *name, struct agent **ret, struct sb_err *err)
{
	struct problems p = { 0 };
	int r = agent_name_ok(name) ? agent_load(d->d.config, name, ret, &p) : -ENOENT;

	if (r == -EBADMSG)
		r = sb_err_set(err, -EINVAL, "the definition of %.60s is refused; sendbox config list "
					 "--agent %.60s says why", name, name);
	problems_done(&p);
	return r == -ENOENT ? no_agent(d, name, err) : r;
}

static int edit(const struct edit *e, const char *name, char *const *argv, struct sb_err *err)
{
	static struct environment_of of;
	struct environment_ready ready = { 0 };
	sb_autoagent struct agent *a = NULL;
	struct environment_what what;
	struct cli_dirs d;
	int r = sb_crypto_init();

	if (r == 0)
		r = cli_dirs_init(&d, err);
	if (r == 0)
		r = load(&d, name, &a, err);
	if (r == 0)
		r = environment_of_agent(&d.d, a, e->image, false, &of, err);
	if (r < 0)
		return r;
	what = e->with;
	what.agent = of.what.agent;
	what.base = of.what.base;
	what.commands = of.what.commands;
	what.health = of.what.health;
	what.env = of.what.env;
	what.groups = of.what.groups;
	what.shell_on_failure = true;
	r = environment_edit(&d.d, &what, argv, &ready, err);
	if (r == 0 && ready.unchanged)
		(void)fprintf(stderr, "unchanged: the environment of %s\n", name);
	else if (r == 0)
		(void)fprintf(stderr, "saved: the environment of %s\n", name);
	else if (r > 0)
		(void)fprintf(stderr, "discarded: the environment of %s is as it was\n", name);
	environment_ready_done(&ready);
	environment_of_done(&of);
	return r;
}

int cmd_edit(int argc, char **argv)
{
	struct edit e = { .with = { .agent = "" } };
	struct sb_err err = { 0 };
	char *const *command = NULL;
	const char *value;
	const char *name;
	bool dashes = false;
	int at = 0;
	int id;
	int r = 0;

	cli_options_first(options, SB_ARRAY_LEN(options), argc, argv);
	while (r == 0 && (id = cli_options_next(options, SB_ARRAY_LEN(options), argc, argv, &at, &value,
						&dashes, &err)) != 0)
		r = id < 0 ? id : take(&e, id, value, &err);
	if (e.help)
		return usage(stdout, SB_EXIT_OK);
	if (r == 0 && (at >= argc || dashes))
		return usage(stderr, SB_EXIT_USAGE);
	name = r == 0 ? argv[at++] : "";
	if (r == 0 && at < argc && strcmp(argv[at], "--") == 0)
		at++;
	if (r == 0 && at < argc)
		command = argv + at;
	if (r == 0)
		r = edit(&e, name, command, &err);
	if (r >= 0)
		return r == 0 ? SB_EXIT_OK : SB_EXIT_NO;
	cli_error("%s", err.text[0] ? err.text : strerror(-r));
	return r == -EINVAL ? SB_EXIT_USAGE : r == -EINTR ? SB_EXIT_CANCELLED : SB_EXIT_PROVIDER;
}
