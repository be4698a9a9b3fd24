#ifndef SB_HOST_SSH_SSH_H
#define SB_HOST_SSH_SSH_H
/*
 * sendbox-ssh: what stands between the guest and the user's SSH agent. One thread, one loop, jailed
 * before the first byte of the guest: no file, no network, no way to reach the agent but a
 * connection that the monitor hands over. Descriptor 3 is the socket to the monitor; its end ends
 * this process, and the end of this process ends the session.
 *
 *   relay.c    start, messages of the monitor, the front socket, new connections
 *   client.c   one connection of the guest: read, decide, ask the agent, answer
 *   verify.c   a host's signature of its session
 *   event.c    what is told to the monitor
 */
#include "base/buf.h"
#include "core/plan.h"
#include "core/ssh_policy.h"
#include "os/loop.h"
#include "wire/ipc.h"

struct client;

struct events {
	struct sb_ipc_ssh_event last; /* a refusal that was told; count = equal ones since */
	struct sb_timer merge;
	struct sb_timer retry;
	uint64_t lost[2]; /* refusals, others */
	uint64_t second;  /* in which `told` counts */
	uint32_t told;
};

struct relay {
	struct sb_loop *loop;
	struct sb_plan *plan; /* owned */
	int ipc;      /* owned */
	int front;    /* owned; -1 once the namespace's listening socket has come */
	int listener; /* owned; namespace */
	struct sb_io ipc_io;
	struct sb_io front_io;
	struct sb_io listen_io;
	struct sb_timer pause;
	struct client *clients;
	size_t n_clients;
	uint64_t questions; /* that were asked */
	uint64_t needs; /* connections to the agent that were asked for */
	uint64_t pendings; /* signatures that were asked to be recorded */
	struct events events;
};

/* relay.c */
/* Verify the plan and keep the descriptors; outside of the jail. @front: taken on success. */
SB_MUST_CHECK int relay_open(struct relay *r, const struct sb_ipc_net_start *start, int *front,
			     int plan_fd, struct sb_err *err);
SB_MUST_CHECK int relay_serve(struct relay *r);
void relay_done(struct relay *r);
/* The session cannot go on: tell and stop. */
void relay_fail(struct relay *r, const char *fmt, ...) SB_PRINTF(2, 3);

/* client.c */
void client_new(struct relay *r, int *fd);
/* The monitor's answer to the oldest need. @fd: taken; -1: there is no agent. */
void client_agent(struct relay *r, int *fd);
/* The monitor's answer to signature @id: it is on record, or it must not be made. */
void client_recorded(struct relay *r, uint64_t id, bool allow, enum sb_ssh_reason why);
/* The answer to a question about a signature. */
void client_answer(struct relay *r, const struct sb_ipc_appr_answer *a);
void clients_done(struct relay *r);

/* verify.c: whether the host key of a session-bind has signed its session. */
bool bind_verified(const struct sb_ssh_request *q);

/* event.c */
/* Time and count are filled in. Return: false: it could not be told; for a signature that means
 * that there will be none. Refusals are merged and counted instead. */
bool event_send(struct relay *r, const struct sb_ipc_ssh_event *ev);
void event_text(char *out, size_t cap, const struct sb_ssh_str *s); /* printable ASCII of it */
void events_done(struct relay *r);

#endif
