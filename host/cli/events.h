#ifndef SB_HOST_CLI_EVENTS_H
#define SB_HOST_CLI_EVENTS_H
/*
 * `--json`: one compact JSON object a line on standard output. The program's output passes
 * through pipes: {"event":"output","stream":"stdout","encoding":"base64","bytes":N,"data":...}.
 */
#include "base/err.h"
#include "core/plan.h"
#include "os/loop.h"
#include "wire/ipc.h"

struct cli_events;

/* @ret_fds: write ends for the channel process, owned by the caller. */
SB_MUST_CHECK int cli_events_new(struct sb_loop *loop, struct cli_events **ret, int ret_fds[2],
				 struct sb_err *err);
struct cli_events *cli_events_free(struct cli_events *e);
/* Read what is still in the pipes; call when their writers are gone. */
void cli_events_drain(struct cli_events *e);

void cli_event_output(const char *stream, const void *p, size_t len);
void cli_event_started(const uint8_t session[16], const char *provider);
void cli_event_command(const struct sb_plan *plan, const struct sb_ipc_exec_event *ev);
void cli_event_ssh(const struct sb_plan *plan, const struct sb_ipc_ssh_event *ev);
void cli_event_exit(int status, const struct sb_ipc_exited *x);
void cli_event_network(const struct sb_ipc_net_event *ev);
/* @problems: an object of problems_json, whose diagnostics go into the event; NULL = none */
void cli_event_error(int status, const char *message, const char *problems);

#endif
