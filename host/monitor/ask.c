/*
 * A gate asks before it acts; the command line's process knows who may answer. Stamped with who asked,
 * whatever the message says, and the answer goes back there alone. Nobody there: the answer is no.
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "monitor.h"

static int socket_of(const struct monitor *m, uint32_t source)
{
	return source == 1 ? m->gate : source == 2 ? m->ssh : -1;
}

int mon_ask(struct monitor *m, uint32_t source, const struct sb_ipc_msg *msg)
{
	const struct sb_ipc_appr_ask *q = sb_ipc_get(msg, sizeof(*q), 0);
	struct sb_ipc_appr_answer no = { .source = source };
	struct sb_ipc_appr_ask a;

	if (!q || !memchr(q->subject, 0, sizeof(q->subject)) || !memchr(q->rule, 0, sizeof(q->rule)))
		return -EBADMSG;
	a = *q;
	a.source = source;
	no.id = a.id;
	no.reason = UINT32_MAX;
	if (!m->cli_gone && m->state == MON_RUNNING &&
	    sb_ipc_send(m->cli, SB_IPC_APPR_ASK, &a, sizeof(a), NULL, 0) == 0)
		return 0;
	if (a.kind != 0)
		mon_answer(m, &no);
	return 0;
}

void mon_answer(struct monitor *m, const struct sb_ipc_appr_answer *a)
{
	int sock = socket_of(m, a->source);

	if (sock >= 0 && sb_ipc_send(sock, SB_IPC_APPR_ANSWER, a, sizeof(*a), NULL, 0) < 0)
		sb_debug("an answer did not reach who asked");
}
