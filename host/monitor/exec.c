/*
 * Judged executions on their way to the command line. One that it does not take at once is counted,
 * and the count is told with the next one or at the end: nothing is kept, nothing waits.
 */
#include <errno.h>
#include <string.h>

#include "audit.h"
#include "base/log.h"
#include "monitor.h"

void mon_exec_lost(struct monitor *m, bool wait)
{
	for (size_t i = 0; i < SB_ARRAY_LEN(m->exec_lost); i++) {
		struct sb_ipc_exec_event ev = { .time_ns = sb_real_ns(),
						.count = m->exec_lost[i],
						.rule = UINT32_MAX,
						.action = i == 0 ? SB_CMD_DENY : SB_CMD_LOG,
						.why = "lost" };

		if (ev.count == 0 || m->cli_gone)
			continue;
		if (wait)
			mon_to_cli(m, SB_IPC_EXEC_EVENT, &ev, sizeof(ev));
		else if (sb_ipc_send(m->cli, SB_IPC_EXEC_EVENT, &ev, sizeof(ev), NULL, 0) < 0)
			return;
		m->exec_lost[i] = 0;
	}
}

int mon_exec_event(struct monitor *m, const struct sb_ipc_msg *msg)
{
	const struct sb_ipc_exec_event *ev = sb_ipc_get_exec_event(msg);

	if (!ev || (m->plan->commands.scope != SB_CMD_SCOPE_TREE && !m->plan->log_blocked) ||
	    ev->action > SB_CMD_LOG ||
	    (ev->rule != UINT32_MAX && ev->rule >= m->plan->commands.n_rules))
		return -EBADMSG;
	mon_audit_exec(m, ev);
	if (m->cli_gone)
		return 0;
	mon_exec_lost(m, false);
	if (sb_ipc_send(m->cli, SB_IPC_EXEC_EVENT, ev, sizeof(*ev), NULL, 0) < 0)
		m->exec_lost[ev->action != SB_CMD_DENY] += ev->count;
	return 0;
}
