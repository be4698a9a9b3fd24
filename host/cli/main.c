#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/log.h"
#include "base/near.h"
#include "cli.h"
#include "dirs.h"
#include "options.h"
#include "run_agent.h"

void cli_error(const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	sb_log("%s", text);
}

int cli_exit_of(uint32_t fail)
{
	switch (fail) {
	case SB_FAIL_NONE:
		return SB_EXIT_OK;
	case SB_FAIL_USAGE:
		return SB_EXIT_USAGE;
	case SB_FAIL_PLAN:
		return SB_EXIT_PLAN_REFUSED;
	case SB_FAIL_PROVIDER:
		return SB_EXIT_PROVIDER;
	case SB_FAIL_GUEST:
		return SB_EXIT_GUEST;
	case SB_FAIL_TIMEOUT:
		return SB_EXIT_TIMEOUT;
	case SB_FAIL_CANCELLED:
		return SB_EXIT_CANCELLED;
	case SB_FAIL_AUDIT:
		return SB_EXIT_AUDIT;
	default:
		return SB_EXIT_INTERNAL;
	}
}

const char *cli_code_of(int status)
{
	switch (status) {
	case SB_EXIT_USAGE:
		return "usage";
	case SB_EXIT_OUTPUT:
		return "output";
	case SB_EXIT_PLAN_REFUSED:
		return "plan_refused";
	case SB_EXIT_PROVIDER:
		return "provider_unavailable";
	case SB_EXIT_TIMEOUT:
		return "timeout";
	case SB_EXIT_GUEST:
		return "guest_failure";
	case SB_EXIT_CANCELLED:
		return "cancelled";
	case SB_EXIT_AUDIT:
		return "audit";
	case SB_EXIT_CANNOT_EXEC:
		return "not_executable";
	case SB_EXIT_NO_PROGRAM:
		return "not_found";
	default:
		return "internal";
	}
}

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
};

static const struct command commands[] = {
	{ "run", cmd_run, "run a program in a sandbox" },
	{ "ls", cmd_ls, "list instances" },
	{ "list", cmd_ls, "the same" },
	{ "attach", cmd_attach, "join the session of a running instance" },
	{ "exec", cmd_exec, "run one more program in a running instance" },
	{ "logs", cmd_logs, "print what an instance printed" },
	{ "stop", cmd_stop, "end the sessions of instances" },
	{ "rm", cmd_rm, "remove instances" },
	{ "rename", cmd_rename, "give an instance another name" },
	{ "cp", cmd_cp, "copy files out of a running instance, or into it" },
	{ "export", cmd_export, "write an instance to an archive" },
	{ "import", cmd_import, "make an instance of such an archive" },
	{ "prune", cmd_prune, "remove instances that were not used for a while" },
	{ "diff", cmd_diff, "what a session added, changed and deleted" },
	{ "undo", cmd_undo, "put back what a session changed" },
	{ "snapshot", cmd_snapshot, "take, list, compare, restore and remove snapshots" },
	{ "init", cmd_init, "write a .sendbox.yaml for this folder" },
	{ "config", cmd_config, "check and explain the configuration, accept a project's file" },
	{ "edit", cmd_edit, "a root shell in an agent's environment, saved on exit" },
	{ "cache", cmd_cache, "show what is cached, remove it, check it" },
	{ "policy", cmd_policy, "show the rules, or ask what they say to a command or connection" },
	{ "net", cmd_net, "show what a running session reaches, or change it" },
	{ "approvals", cmd_approvals, "show the open questions of running sessions" },
	{ "approve", cmd_approve, "say yes to one" },
	{ "deny", cmd_deny, "say no to one" },
	{ "grants", cmd_grants, "show what was approved or denied for ever, or revoke it" },
	{ "plan", cmd_plan, "show, compare and verify signed plans" },
	{ "key", cmd_key, "keys that plans are signed with" },
	{ "report", cmd_report, "tell what a session did" },
	{ "session", cmd_session, "list and show the sessions that were" },
	{ "sign", cmd_sign, "sign a file with this host's key" },
	{ "verify", cmd_verify, "tell whether those have signed a file who should have" },
	{ "audit", cmd_audit, "show and verify what was recorded" },
	{ "settings", cmd_settings, "what sessions changed in their copies of an agent's settings" },
	{ "image", cmd_image, "fetch images, and show or remove those that are here" },
	{ "doctor", cmd_doctor, "tell what this machine can do and what is missing" },
	{ "bundle", cmd_bundle, "make, sign and verify what the guest is made of" },
	{ "completions", cmd_completions, "print the completions for a shell" },
	{ "du", cmd_du, "tell what records, instances and caches take on the disk" },
	{ "gc", cmd_gc, "clear the remains of sessions that ended badly" },
};

void cli_commands(void)
{
	for (size_t i = 0; i < SB_ARRAY_LEN(commands); i++)
		printf("%s\n", commands[i].name);
}

int cli_command_run(const char *name, int argc, char **argv)
{
	for (size_t i = 0; i < SB_ARRAY_LEN(commands); i++)
		if (strcmp(name, commands[i].name) == 0)
			return commands[i].run(argc, argv);
	return -ENOENT;
}

static void help(FILE *to)
{
	(void)fprintf(to, "usage: sendbox COMMAND [options]\n       sendbox AGENT [arguments]\n\n");
	for (size_t i = 0; i < SB_ARRAY_LEN(commands); i++)
		(void)fprintf(to, "  %-11s %s\n", commands[i].name, commands[i].help);
	(void)fprintf(to, "\nsendbox COMMAND --help tells the options; sendbox --version the "
			  "version.\n");
}

static int unknown(const char *word)
{
	unsigned int best = sb_near_max(word) + 1;
	const char *near = NULL;
	struct cli_dirs dirs;
	struct sb_err err = { 0 };
	char list[1024];
	char agent[65] = "";

	for (size_t i = 0; i < SB_ARRAY_LEN(commands); i++) {
		unsigned int d = sb_near(word, commands[i].name, best);

		if (d < best) {
			best = d;
			near = commands[i].name;
		}
	}
	if (!near && cli_dirs_init(&dirs, &err) == 0) {
		agent_names(dirs.config, word, list, sizeof(list), agent);
		near = agent;
	}
	if (near && near[0])
		cli_error("unknown command \"%.60s\"; did you mean \"%s\"?", word, near);
	else
		cli_error("unknown command \"%.60s\"; sendbox --help lists them", word);
	return SB_EXIT_USAGE;
}

int main(int argc, char **argv)
{
	int status;

	/* a caller may have closed 0, 1 or 2: no descriptor of ours may take their place */
	sb_log_init("sendbox");
	(void)signal(SIGPIPE, SIG_IGN);
	if (argc < 2) {
		help(stderr);
		return SB_EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0) {
		help(stdout);
		return fflush(stdout) == 0 ? SB_EXIT_OK : SB_EXIT_INTERNAL;
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0 ||
	    strcmp(argv[1], "version") == 0) {
		printf("sendbox %s\n", SB_VERSION);
		return fflush(stdout) == 0 ? SB_EXIT_OK : SB_EXIT_INTERNAL;
	}
	status = cli_command_run(argv[1], argc - 2, argv + 2);
	if (status >= 0)
		return status;
	if (run_agent_known(argv[1])) /* sendbox AGENT ... */
		return cmd_run(argc - 1, argv + 1);
	return unknown(argv[1]);
}
