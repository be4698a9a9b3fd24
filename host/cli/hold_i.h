#ifndef SB_HOST_CLI_HOLD_I_H
#define SB_HOST_CLI_HOLD_I_H
/* What the parts of the holder share. */
#include "approvals.h"
#include "base/buf.h"
#include "hold.h"
#include "launch_i.h"
#include "wire/attach.h"

#define HOLD_CLIENTS 16

struct hold;
struct hold_client {
	struct hold *h; /* NULL = free entry */
	int sock;       /* owned */
	struct sb_io io;
	bool hello;
	bool foreground;
	bool output;
	bool events;
	bool asks;           /* questions may be asked at its terminal */
	bool shows;          /* and one is */
	uint32_t window[2];  /* bytes that it may be sent */
	uint64_t skipped;
	uint32_t cmd;        /* of its EXEC; 0 = none */
	struct sb_buf in;    /* input not yet written */
	bool eof;            /* after it */
};

struct hold {
	struct run *r;
	const struct hold_conf *conf;
	struct hold_client clients[HOLD_CLIENTS];
	int listen; /* owned */
	struct sb_io listen_io;
	int in;     /* owned; to the program; -1 = closed */
	struct sb_io in_io;
	int out[2]; /* owned; from the program; -1 = ended */
	struct sb_io out_io[2];
	struct hold_log log;
	uint8_t kept[SB_ATTACH_DATA]; /* output that the foreground client had no room for */
	size_t n_kept;
	int kept_from;
	char **env; /* owned: "K=V" of the session, for further commands */
	size_t env_len;
	uint32_t next_cmd;
	bool over;  /* the monitor is done */
	struct approvals *approvals; /* owned; NULL: the plan never asks */
};

/* hold_client.c */
SB_MUST_CHECK int hold_client_add(struct hold *h, int *sock);
void hold_client_drop(struct hold_client *c);
void hold_clients_tell(struct hold *h, uint16_t type, const void *p, size_t len, bool events);
struct hold_client *hold_foreground(struct hold *h);
struct hold_client *hold_client_of(struct hold *h, uint32_t cmd);
/* hold_stream.c */
SB_MUST_CHECK int hold_streams_open(struct hold *h, struct sb_err *err);
void hold_input(struct hold *h);       /* write what clients gave */
void hold_output_resume(struct hold *h); /* a client may take more */
void hold_output_close(struct hold *h, int i);
void hold_replay(struct hold_client *c);
/* hold_ask.c */
SB_MUST_CHECK int hold_ask_open(struct hold *h, struct sb_err *err);
void hold_ask_close(struct hold *h);
/* A message of the monitor. Return: whether it was about approvals. */
bool hold_ask_message(struct hold *h, const struct sb_ipc_msg *msg);
void hold_ask_decide(struct hold_client *c, const struct sb_ipc_appr_decide *m);
void hold_ask_clients(struct hold *h, bool shown_gone); /* one came, or (shown_gone) that showed went */
/* hold_exec.c */
SB_MUST_CHECK int hold_exec(struct hold_client *c, struct sb_ipc_msg *msg);
/* hold.c */
void hold_maybe_end(struct hold *h);
void hold_to_monitor(struct hold *h, uint16_t type, const void *p, size_t len);

#endif
