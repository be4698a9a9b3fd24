#ifndef SB_HOST_CLI_APPROVALS_I_H
#define SB_HOST_CLI_APPROVALS_I_H
/* What the parts of approvals share. */
#include <sys/stat.h>

#include "approvals.h"

#define APPROVALS_CLIENTS 16
#define HOOK_OUT 600

struct hook { /* one that runs */
	struct approvals *a; /* NULL = free entry */
	uint64_t number;
	pid_t pid;
	int pidfd; /* owned */
	int out;   /* owned */
	struct sb_io pid_io;
	struct sb_io out_io;
	struct sb_timer late;
	char text[HOOK_OUT];
	size_t len;
	bool ended;
	int status;
};
struct watcher {
	struct approvals *a; /* NULL = free entry */
	int sock;            /* owned */
	struct sb_io io;
	bool follows;
	uint64_t asked;      /* id of its APPR_NEW; 0 = none */
	uint64_t decides;    /* number that it is just deciding; 0 = none */
};

#define APPROVALS_NOTED 256
#define APPROVALS_ASKED 80
struct asked { /* a request that is not decided yet */
	uint64_t serial; /* of ours; 0 = free entry */
	uint32_t source;
	uint64_t id;
	bool waits;      /* behind an open question about the same */
	enum sb_appr_kind kind;
	char *subject;   /* owned */
	char *rule;      /* owned */
};

struct approvals {
	struct sb_loop *loop;
	const struct sb_dirs *d;
	struct approvals_conf conf;
	struct approvals_ui ui;
	uint8_t session[16];
	uint8_t plan[32];
	uint8_t policy[32];
	struct sb_appr *appr;
	struct sb_timer late;
	uint64_t shown;    /* question on the terminal; 0 = none */
	uint64_t next_own; /* ids of what clients ask for */
	uint64_t seen[4];  /* highest id of each source */
	uint64_t serial;
	struct asked asked[APPROVALS_ASKED];
	int listen;        /* owned; -1 = no socket */
	struct sb_io listen_io;
	int dir;           /* owned; of the socket */
	uint64_t noted[APPROVALS_NOTED]; /* what of the store decided about whom, and is on record */
	size_t n_noted;
	bool looked;       /* the grants were loaded, when their head was this file */
	struct stat head;
	struct hook hooks[SB_APPR_MAX_OPEN];
	struct watcher watchers[APPROVALS_CLIENTS];
};

struct sb_appr_now approvals_now(void);
uint32_t approvals_routes(struct approvals *a);
void approvals_present(struct approvals *a); /* the next question on the terminal, if it is free */
/* A question is decided: tell everybody. @o: as it was. */
void approvals_close(struct approvals *a, const struct sb_appr_question *o,
		     const struct sb_appr_result *res, const char *by);
/* Decided without a question: on record, or refused. */
void approvals_known(struct approvals *a, const struct asked *who, struct sb_appr_result *res);
void approvals_lost(struct approvals *a, uint64_t number, uint32_t route);
void approvals_fill(const struct approvals *a, const struct sb_appr_question *o,
		    struct sb_ipc_appr_question *ret);

/* approvals_hook.c */
SB_MUST_CHECK int hook_start(struct approvals *a, const struct sb_appr_question *o);
void hook_stop(struct approvals *a, uint64_t number);
bool hook_runs(const struct approvals *a, uint64_t number);
/* approvals_serve.c */
SB_MUST_CHECK int serve_open(struct approvals *a, int session_dir, struct sb_err *err);
void serve_close(struct approvals *a);
bool serve_watched(const struct approvals *a);
void serve_question(struct approvals *a, const struct sb_appr_question *o);
void serve_closed(struct approvals *a, uint64_t number, const struct sb_appr_result *res);
/* Return: whether it was a client's. */
bool serve_decided(struct approvals *a, uint64_t id, uint64_t number, const struct sb_appr_result *res);

#endif
