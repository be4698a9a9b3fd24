#ifndef SB_GUEST_EXEC_COMMAND_I_H
#define SB_GUEST_EXEC_COMMAND_I_H
/* Shared by command.c and ports.c only; see the theory of operation in command.c. */
#include "exec/command.h"
#include "exec/kin.h"
#include "os/loop.h"

enum state { NEW = 0, STARTING, RUNNING, ENDED };

struct input { /* stdin pipe, or the terminal's keyboard side */
	struct sb_command *cmd;
	struct sb_stream *stream; /* NULL when the host let go of it, or never had it */
	int fd;                   /* owned; -1 = what comes is thrown away */
	struct sb_io io;          /* active only while the sink is full */
	bool eof;                 /* the host sent EOF */
	uint8_t last;             /* last byte given to the terminal */
};

struct output {
	struct sb_command *cmd;
	struct sb_stream *stream;
	int fd; /* owned; -1 = ended */
	struct sb_io io;
	bool blocked; /* out of the loop until the stream is writable */
};

struct sb_command {
	struct sb_commands *set;
	struct sb_command *next;
	uint32_t id;
	enum state state;
	bool tty;
	bool drained; /* an empty pipe counts as ended */
	pid_t pid;    /* 0 = reaped or never there */
	int report;
	struct sb_io report_io;
	struct input in;
	struct output out[2]; /* stdout or terminal; stderr */
	int leaf;             /* directory, -1 = none */
	struct sb_kin kin;
	struct sb_timer timer;
	struct sb_ctl result;
};

struct leaving { /* a leaf whose last process is still dying */
	struct leaving *next;
	uint32_t id;
	int tries;
};

struct sb_commands {
	struct sb_commands_config cfg;
	struct sb_command *list;
	size_t n;
	struct leaving *leaving;
	struct sb_timer remove_timer;
};

/* ports.c: the ends of a command's streams */
int port_attach(struct sb_command *c, struct sb_stream *s, enum sb_stream_kind kind);
bool port_is_terminal(const struct sb_command *c);
void port_close_input(struct input *in);
void port_close_output(struct output *o);
void port_close_streams(struct sb_command *c);
void port_input_finish(struct input *in); /* EOF came and all bytes are through */
int port_output_listen(struct output *o);
void port_output_pump(struct output *o); /* may free the command */

/* command.c */
void command_maybe_done(struct sb_command *c); /* may free the command */
/* The host thought better of it before the start. Return: true when the command is gone. */
bool command_forget_idle(struct sb_command *c);

#endif
