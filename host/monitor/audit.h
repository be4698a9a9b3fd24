#ifndef SB_HOST_MONITOR_AUDIT_H
#define SB_HOST_MONITOR_AUDIT_H
/* What is recorded of a session: audit.c sends, audit_events.c words, pending.c waits. */
#include "monitor.h"
#include "store/audit.h"

/* Record without waiting. What cannot be taken is counted and told. */
void mon_audit(struct monitor *m, const struct sb_audit_event *e);
/*
 * Record, and call @fn when it is durable (@ok) or will never be: then the session is ending.
 * @wait: enum sb_ipc_audit_wait, not GO_ON. Return: 0; -errno, and @fn is not called.
 */
typedef void mon_audit_fn(struct monitor *m, void *arg, bool ok);
SB_MUST_CHECK int mon_audit_wait(struct monitor *m, const struct sb_audit_event *e, uint8_t wait,
				 mon_audit_fn *fn, void *arg);

SB_MUST_CHECK int mon_audit_open(struct monitor *m, struct sb_err *err);
/* No more records: let the writer sign and leave. Return: true: it is gone already. */
bool mon_audit_close(struct monitor *m);
void mon_audit_ended(struct monitor *m, const char *what);
void mon_audit_done(struct monitor *m);

/* audit_events.c */
/* How many events one record stands for: its "count". */
uint64_t mon_audit_count(const struct sb_audit_event *e);
/* The first records of a session; @fn is called when all are durable. */
SB_MUST_CHECK int mon_audit_plan(struct monitor *m, mon_audit_fn *fn, struct sb_err *err);
void mon_audit_net(struct monitor *m, const struct sb_ipc_net_event *ev);
void mon_audit_ssh(struct monitor *m, const struct sb_ipc_ssh_event *ev);
void mon_audit_exec(struct monitor *m, const struct sb_ipc_exec_event *ev);
/* The outcome, once; again when it has become another one. */
void mon_audit_outcome(struct monitor *m);
void mon_audit_exit(struct monitor *m, const struct sb_ipc_exited *x);

/* pending.c: what a gate may do only when it is recorded */
SB_MUST_CHECK int mon_pending_net(struct monitor *m, const struct sb_ipc_msg *msg);
SB_MUST_CHECK int mon_pending_ssh(struct monitor *m, const struct sb_ipc_msg *msg);
/* One more command: passed to the channel when it is recorded. @msg: its descriptors are taken.
 * Return: 0; -errno. */
SB_MUST_CHECK int mon_pending_exec(struct monitor *m, const struct sb_ipc_run *run,
				   struct sb_ipc_msg *msg);

#endif
