/* `sendbox run`: options, one launch, its result for the shell or as the last event. */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "events.h"
#include "instance_run.h"
#include "launch.h"

static int report(const struct run_options *opt, const struct launch_result *r)
{
	if (!opt->json || (opt->dry_run && r->status == SB_EXIT_OK)) {
		if (r->text[0] != '\0')
			cli_error("%s", r->text);
		return r->status;
	}
	if (r->fail == SB_FAIL_NONE && r->exit.lost == 0 &&
	    (r->exit.kind == SB_EXIT_CODE || r->exit.kind == SB_EXIT_SIGNAL))
		cli_event_exit(r->status, &r->exit);
	else
		cli_event_error(r->status, r->text, r->problems);
	if (ferror(stdout)) { /* nobody got that line: this is the only other way to tell */
		cli_error("cannot write the events to standard output");
		return SB_EXIT_INTERNAL;
	}
	return r->status;
}

int cmd_run(int argc, char **argv)
{
	struct run_options opt = { 0 };
	struct launch l = { .opt = &opt, .io = { -1, -1, -1 } };
	struct launch_result r = { 0 };
	struct sb_err err = { 0 };

	if (run_options_parse(argc, argv, &opt, &err) < 0) {
		/* --json may stand anywhere before the error: look again */
		for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
			opt.json |= strcmp(argv[i], "--json") == 0;
		r.fail = SB_FAIL_USAGE;
		r.status = cli_exit_of(r.fail);
		(void)snprintf(r.text, sizeof(r.text), "%.499s", err.text);
	} else if (opt.help) {
		run_options_help();
		return fflush(stdout) == 0 ? SB_EXIT_OK : SB_EXIT_INTERNAL;
	} else if ((opt.name || opt.agent ? run_instance(argc, argv, &opt, &r, &err)
					  : launch(&l, &r, &err)) < 0 &&
		   r.text[0] == '\0') {
		(void)snprintf(r.text, sizeof(r.text), "%.499s", err.text);
	}
	{
		int status = report(&opt, &r);

		free(r.problems);
		return status;
	}
}
