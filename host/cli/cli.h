#ifndef SB_HOST_CLI_CLI_H
#define SB_HOST_CLI_CLI_H
/* What the parts of the command line program share. One thread; nothing here is re-entrant. */
#include "base/err.h"
#include "wire/ipc.h"

/* Exit statuses of sendbox itself; documented in sendbox(1). */
enum sb_exit {
	SB_EXIT_OK = 0,
	SB_EXIT_NO = 1, /* an answer: denied, a test that failed, a part that is not ready */
	SB_EXIT_USAGE = 2,
	SB_EXIT_WRITE = 4,
	SB_EXIT_OUTPUT = 4, /* the result cannot be written, or is there already */
	SB_EXIT_REVIEW = 119, /* guarded paths were not compared, or not put back */
	SB_EXIT_PLAN_REFUSED = 120,
	SB_EXIT_PROVIDER = 121,
	SB_EXIT_TIMEOUT = 122,
	SB_EXIT_GUEST = 123,
	SB_EXIT_INTERNAL = 124,
	SB_EXIT_AUDIT = 125, /* what has to be recorded could not be */
	SB_EXIT_CANNOT_EXEC = 126,
	SB_EXIT_NO_PROGRAM = 127,
	SB_EXIT_CANCELLED = 130,
};

int cmd_run(int argc, char **argv);
int cmd_ls(int argc, char **argv);
int cmd_rm(int argc, char **argv);
int cmd_rename(int argc, char **argv);
int cmd_prune(int argc, char **argv);
int cmd_attach(int argc, char **argv);
int cmd_audit(int argc, char **argv);
int cmd_stop(int argc, char **argv);
int cmd_logs(int argc, char **argv);
int cmd_exec(int argc, char **argv);
int cmd_cp(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_gc(int argc, char **argv);
int cmd_image(int argc, char **argv);
int cmd_bundle(int argc, char **argv);
int cmd_net(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_key(int argc, char **argv);
int cmd_init(int argc, char **argv);
int cmd_config(int argc, char **argv);
int cmd_policy(int argc, char **argv);
int cmd_edit(int argc, char **argv);
int cmd_cache(int argc, char **argv);
int cmd_session(int argc, char **argv);
int cmd_sign(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_du(int argc, char **argv);
int cmd_settings(int argc, char **argv);
int cmd_snapshot(int argc, char **argv);
int cmd_undo(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_approvals(int argc, char **argv);
int cmd_approve(int argc, char **argv);
int cmd_deny(int argc, char **argv);
int cmd_grants(int argc, char **argv);
int cmd_completions(int argc, char **argv);
/* Print every command, one a line. */
void cli_commands(void);
/* One command by its name. Return: exit status; -ENOENT: there is none of that name. */
int cli_command_run(const char *name, int argc, char **argv);

/* Print "sendbox: TEXT" on stderr with control characters escaped. */
void cli_error(const char *fmt, ...) SB_PRINTF(1, 2);
/* enum sb_fail to exit status and to the short code used in JSON. */
int cli_exit_of(uint32_t fail);
const char *cli_code_of(int status);

#endif
