#ifndef SB_HOST_CLI_SUMMARY_H
#define SB_HOST_CLI_SUMMARY_H
/*
 * What the net gate refused or cut, told at the end of a run: one line for each name, port and
 * reason; DNS questions go with the connection of the same name and reason. The guest chooses the
 * names: the table is bounded, the rest is counted.
 */
#include "core/net_policy.h"
#include "wire/ipc.h"

#define SUMMARY_MAX 1024
#define SUMMARY_LINES 20

struct summary;
SB_MUST_CHECK int summary_new(struct summary **ret);
struct summary *summary_free(struct summary *s);
/* @ev: as it came; its texts need no NUL */
void summary_add(struct summary *s, const struct sb_ipc_net_event *ev);
/* Whether the program ever asked for the host by its name. */
bool summary_saw_host(const struct summary *s);
/*
 * Call @line for each line, at most SUMMARY_LINES, without the program's name in front.
 * @own: whether an address is one of this machine's
 * @builder: of a session that installs: what it may reach is the definition's, not an option's
 */
void summary_tell(const struct summary *s, bool (*own)(const struct sb_addr *a), bool builder,
		  void (*line)(void *arg, const char *text), void *arg);

/* What would allow the refused @ev: name, port, reason, dns_type and address of it; "" when there is no
 * short word for it. */
void summary_way(const struct sb_ipc_net_event *ev, bool (*own)(const struct sb_addr *a), char *out,
		 size_t cap);

#endif
