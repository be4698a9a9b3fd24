#ifndef SB_WIRE_CTL_H
#define SB_WIRE_CTL_H
/*
 * Control messages inside the channel (stream 0), host <-> guest. Pure parser and writer.
 * One message is at most SB_CTL_MAX bytes. Byte tables: docs/protocol/channel.md.
 */
#include "base/buf.h"
#include "wire/ipc.h" /* enum sb_exit_kind */

#define SB_CTL_MAX (256U << 10)
#define SB_CTL_MAX_STRINGS 4096

enum sb_ctl_type {
	SB_CTL_NONE = 0,
	/* host -> guest */
	SB_CTL_RUN = 1,      /* start the plan's command as command 0; streams are open already */
	SB_CTL_EXEC = 2,     /* start a further command */
	SB_CTL_SIGNAL = 3,   /* signo to the command's main process (tty: foreground group) */
	SB_CTL_KILL = 4,     /* SIGKILL to every process of the command */
	SB_CTL_RESIZE = 5,   /* rows, cols */
	SB_CTL_SHUTDOWN = 6, /* end every command, unmount, say BYE, power off */
	SB_CTL_TIME = 7,     /* time_ns: the host's clock; a virtual machine sets its own */
	/* guest -> host */
	SB_CTL_READY = 32,   /* text = kernel release; once, before everything else */
	SB_CTL_STARTED = 33, /* cmd */
	SB_CTL_EXITED = 34,  /* cmd, exit; sent after EOF on each output stream of the command */
	SB_CTL_FAILED = 35,  /* value = errno, text: the session cannot go on */
	SB_CTL_BYE = 36,
	SB_CTL_EXEC_EVENT = 37, /* cmd, event, text = path, argv: an execve was judged */
};

#define SB_CTL_MAX_WHY 31
#define SB_CTL_MAX_EVENT_PATH 511
#define SB_CTL_MAX_EVENT_ARGV 1024
#define SB_CTL_NO_RULE UINT32_MAX

#define SB_CTL_F_TTY 1U
#define SB_CTL_F_SEPARATE_STDERR 2U

struct sb_ctl {
	uint8_t type; /* enum sb_ctl_type */
	uint32_t cmd;
	uint32_t flags; /* RUN, EXEC */
	uint32_t value; /* SIGNAL: signo; FAILED: errno */
	uint16_t rows;
	uint16_t cols;
	uint64_t time_ns; /* TIME: CLOCK_REALTIME, 1 .. INT64_MAX */
	struct {
		uint8_t kind; /* enum sb_exit_kind */
		uint32_t value;
		bool oom;
		uint64_t user_us;
		uint64_t sys_us;
		uint64_t max_rss;
	} exit;
	struct {
		uint32_t pid;
		uint32_t rule;  /* index in the plan's rules; SB_CTL_NO_RULE */
		uint32_t count; /* >= 1 */
		uint8_t action; /* enum sb_cmd_action: deny, allow or log */
		bool top_level;
		bool killed;
		bool cut;         /* path or argv are not whole */
		const char *why;  /* lower case letters, digits and "-"; borrowed */
		size_t why_len;   /* 1 .. SB_CTL_MAX_WHY */
	} event;
	/* READY, FAILED, EXEC (cwd), EXEC_EVENT (path): borrowed from the input when parsed; not NUL-terminated */
	const char *text;
	size_t text_len;
	/* EXEC, EXEC_EVENT (no env): NUL-terminated strings, back to back; borrowed */
	const char *argv;
	size_t argv_len;
	uint32_t n_argv; /* >= 1 for EXEC */
	const char *env;
	size_t env_len;
	uint32_t n_env;
};

/* Append one message. Errors show in sb_buf_error(). */
void sb_ctl_write(struct sb_buf *b, const struct sb_ctl *m);
/* Return: 0; -EBADMSG for anything that sb_ctl_write could not have written. */
SB_MUST_CHECK int sb_ctl_parse(const uint8_t *p, size_t len, struct sb_ctl *ret);

#endif
