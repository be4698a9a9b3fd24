#ifndef SB_HOST_CLI_HOLD_H
#define SB_HOST_CLI_HOLD_H
/*
 * The holder: the process that drives the session of an instance. It is forked from the command line
 * once the plan is signed, in a session of its own; for the monitor it is the command line. It owns
 * the program's input and output, keeps the log, and serves "attach.sock" in the session's directory.
 */
#include "base/err.h"
#include "os/loop.h"

struct run;
struct instance;

struct hold_conf {
	int64_t id;         /* of the instance, claimed */
	const char *name;
	const char *dir;    /* <state>/instances/<id> */
	int *lock;          /* of the claim; taken by the holder */
	const struct instance *was; /* resumed: as it was; NULL = new */
	const char *image;  /* for people, or NULL */
	const char *agent;  /* its name, or NULL */
	const char *workspace;
	const char *options; /* to be kept, where none are yet; or NULL */
	bool rm;            /* the instance goes with the session */
	bool detach;        /* the caller leaves as soon as the command runs */
	const char *keys;   /* --detach-keys; NULL = HOLD_KEYS */
};
#define HOLD_KEYS "ctrl-p,ctrl-q"

/*
 * hold_start - fork the holder for @r, whose plan is signed
 * @ret: socket of its first client, owned by the caller
 * Return: 0; -errno with text. Never returns in the child.
 */
SB_MUST_CHECK int hold_start(struct run *r, const struct hold_conf *conf, int *ret,
			     struct sb_err *err);

/* instance_run.c: may @r's plan be run in that instance? Records what it is made of.
 * Return: 0; -ESTALE; -errno with text. */
SB_MUST_CHECK int hold_check(struct run *r, const struct hold_conf *c, struct sb_err *err);

/* ---- its log ---- */

#define HOLD_LOG_MAX (8U << 20) /* console.log; then it becomes console.log.1 */
#define HOLD_RING 32768U        /* what a new client is shown */
struct hold_log {
	int dir; /* owned; -1 = no log */
	int fd;  /* owned */
	uint64_t len;
	size_t at;   /* next byte of the ring */
	size_t have;
	char ring[HOLD_RING];
};
SB_MUST_CHECK int hold_log_open(struct hold_log *l, const char *dir, struct sb_err *err);
void hold_log_add(struct hold_log *l, const void *p, size_t len);
/* The ring's bytes in order. @to: HOLD_RING bytes. Return: how many. */
size_t hold_log_ring(const struct hold_log *l, char *to);
void hold_log_close(struct hold_log *l);

#endif
