#ifndef SB_HOST_AUDITD_AUDITD_H
#define SB_HOST_AUDITD_AUDITD_H
/*
 * sendbox-auditd: the one that writes records. One a session, a child of the monitor, or of the
 * command line for what happens outside of sessions. Descriptor 3 = socket, 4 = directory of the log,
 * 5 = its key (64 bytes). Jailed: that directory, no network, no program. It ends with its input.
 */
#include "store/audit_log.h"
#include "wire/ipc.h"

struct auditd {
	int ipc;
	struct sb_audit_log *log;
	uint64_t first; /* number of the first record written */
	bool any;
	uint64_t sign_at; /* CLOCK_MONOTONIC; 0 = nothing waits for a head */
};

/* Serve until the input ends. Return: 0; -errno, told to the other side. */
SB_MUST_CHECK int auditd_serve(struct auditd *a);

#endif
