#ifndef SB_HOST_CHANNEL_H
#define SB_HOST_CHANNEL_H
/*
 * sendbox-channel: host end of the channel of one session. The only program that parses what the
 * guest sends over it; jailed before the first such byte.
 */
#include "conn/boot.h"
#include "conn/chan.h"
#include "core/controls.h"
#include "os/loop.h"
#include "wire/ctl.h"
#include "wire/ipc.h"
#include "wire/termfilter.h"

#define MAX_COMMANDS 16
#define UNSENT_MAX 256 /* streams that wait for their gate to take their descriptors */

struct session;
struct command;
struct bridge;
struct exec_events;

/* From a descriptor of the user's into a stream. */
struct source {
	struct command *cmd;
	struct sb_stream *s; /* NULL = no more */
	int fd;              /* owned; -1 = closed */
	bool blocking;       /* not O_NONBLOCK: ask poll before each read */
	bool sock;
	struct sb_io io;
};

#define FILTER_CHUNK 4096 /* bytes filtered at a time */

/* From a stream to a descriptor of the user's. */
struct sink {
	struct command *cmd;
	struct sb_stream *s; /* NULL = closed, or reset by the guest */
	int fd;              /* owned; -1 = closed */
	bool blocking;
	bool sock;
	bool used;           /* this command has such a stream */
	bool eof;            /* everything came; pending is the rest */
	bool done;           /* everything was written, or nobody reads */
	struct sb_io io;
	struct sb_termfilter *filter; /* owned; NULL unless it goes to a terminal */
	uint8_t *pending;             /* owned; filtered, not yet written */
	size_t pending_at;
	size_t pending_len;
};

struct command {
	struct session *ses; /* NULL = free entry */
	uint32_t id;
	struct source in;
	struct sink out;
	struct sink err;
	bool tty;
	bool separate_stderr; /* with tty */
	bool started;
	bool exited;
	int lost; /* errno of the first write that failed though somebody wants the output; or 0 */
	struct sb_ipc_exited exit;
};

/* Where streams of one kind go. */
struct front {
	struct session *ses;
	const char *name; /* of who is behind it, for messages */
	uint16_t type;    /* of the message that brings a stream */
	int fd;           /* owned; -1 = the plan has no such thing */
	struct sb_io io;
	struct bridge *unsent[UNSENT_MAX]; /* ring; borrowed; NULL = ended while it waited */
	uint32_t head;
	uint32_t n_unsent;
};

enum session_state {
	SES_NONE = 0,
	SES_BOOT,    /* the boot record is being written */
	SES_GREET,   /* handshake; READY is awaited */
	SES_READY,
	SES_CLOSING, /* SHUTDOWN sent, BYE is awaited */
	SES_OVER,    /* nothing but the end of the ipc socket is awaited */
};

struct session {
	struct sb_loop *loop;
	enum session_state state;
	int ipc;     /* owned */
	int carrier; /* owned */
	struct sb_io ipc_io;
	struct sb_io carrier_io; /* boot record only; then the channel has its own */
	struct sb_timer deadline;
	struct sb_timer clock; /* the next TIME */
	struct sb_controls controls; /* what READY must report */
	uint32_t ready_timeout_ms;
	bool tty;
	bool separate_stderr;
	bool held; /* the user is being asked: nothing goes to his descriptors or comes from them */
	uint8_t psk[SB_PSK_LEN];
	uint8_t prologue[SB_PROLOGUE_LEN];
	uint8_t *boot; /* owned; holds the key */
	size_t boot_len;
	size_t boot_at;
	struct sb_chan *chan;
	struct command commands[MAX_COMMANDS];
	struct front net;
	struct front ssh;
	uint32_t max_net;                  /* streams of the guest alive at a time */
	bool judges;                       /* the guest may tell of executions or refused calls */
	size_t n_rules;                    /* of it */
	struct exec_events *exec_events;   /* owned; NULL until the first */
	struct bridge *bridges;            /* owned */
};

/* session.c */
SB_MUST_CHECK int session_start(struct session *ses); /* begins with the boot record */
void session_done(struct session *ses);
void session_fail(struct session *ses, enum sb_fail fail, const char *fmt, ...) SB_PRINTF(3, 4);
void session_tell(struct session *ses, uint16_t type, const void *p, size_t len);
int session_control(struct session *ses, const struct sb_ctl *m);
void session_close(struct session *ses);

/* command.c */
struct command *command_find(struct session *ses, uint32_t id);
/* @fds: stdin, stdout, stderr; taken, also on failure. Return: 0; -errno */
SB_MUST_CHECK int command_start(struct session *ses, const struct sb_ipc_run *run, int fds[3]);
/* One more command. @req: memory file with its words, borrowed; read from its offset. */
SB_MUST_CHECK int command_exec(struct session *ses, const struct sb_ipc_run *run, int fds[3],
			       int req);
void command_exited(struct command *cmd, const struct sb_ctl *m);
void command_check(struct command *cmd); /* tells EXITED when all is done; may free @cmd */
void command_free(struct command *cmd);

/* event.c: judged executions. Return: 0; -EBADMSG: there can be no such; -ENOMEM. */
SB_MUST_CHECK int exec_event(struct session *ses, const struct sb_ctl *m);
void exec_events_flush(struct session *ses); /* before the end of a command or of the guest */
void exec_events_done(struct session *ses);

/* relay.c */
SB_MUST_CHECK int source_init(struct source *src, struct command *cmd, int *fd);
void source_pump(struct source *src);
void source_done(struct source *src);
SB_MUST_CHECK int sink_init(struct sink *k, struct command *cmd, int *fd, bool terminal);
size_t sink_data(struct sink *k, const uint8_t *p, size_t len);
void sink_eof(struct sink *k);
void sink_done(struct sink *k);
/* After ses->held was changed. May free @cmd. */
void relay_hold(struct command *cmd, bool on);

/* bridge.c: streams of the guest towards the net gate and the SSH relay */
int bridge_opened(struct sb_chan *c, struct sb_stream *s, enum sb_stream_kind kind, uint32_t cmd);
SB_MUST_CHECK int bridge_start(struct session *ses); /* watch the front sockets that there are */
void bridge_stop(struct session *ses);

#endif
