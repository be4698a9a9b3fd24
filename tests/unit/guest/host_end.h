#ifndef T_HOST_END_H
#define T_HOST_END_H
/*
 * The host's end for tests of the guest: forks a process that runs sb_guest_serve over a socket
 * pair, and drives it through a real channel. Not PID 1, so everything must work by subreaper.
 */
#include "conn/chan.h"
#include "core/plan.h"
#include "os/loop.h"
#include "wire/ctl.h"

#define HE_CMDS 8

struct he_sink { /* what came from one output stream */
	struct sb_stream *s;
	uint8_t *data; /* owned; the first `keep` bytes */
	size_t len;    /* all bytes seen */
	size_t keep;
	uint64_t sum;  /* FNV-1a over all bytes */
	bool eof;
	bool stop; /* take nothing */
};
struct he_source { /* what goes to an input stream */
	struct sb_stream *s;
	const uint8_t *data; /* borrowed; NULL = a pattern */
	size_t len;
	size_t sent;
	bool eof_after;
};
struct he_cmd {
	struct he_source in;
	struct he_sink out;
	struct he_sink err;
	bool started;
	bool exited;
	struct sb_ctl result;
};
struct he {
	struct sb_loop *loop;
	struct sb_chan *chan;
	pid_t guest;
	int carrier;
	char home[64];
	bool ready;
	char report[8192]; /* READY's text */
	bool closed;
	bool bye;
	char failed[200];
	struct he_cmd cmd[HE_CMDS];
};

#define HE_UID 51234

/* Start; @plan_edit may change the plan (argv, limits). False on failure. */
bool he_start(struct he *h, char **argv, bool tty, bool separate_stderr,
	      void (*plan_edit)(struct sb_plan *));
/* Streams: "i" stdin, "o" stdout, "e" stderr, "t" terminal, in any order. */
bool he_open(struct he *h, uint32_t cmd, const char *streams);
bool he_run(struct he *h, uint16_t rows, uint16_t cols);
bool he_exec(struct he *h, uint32_t cmd, char **argv, const char *cwd, uint32_t flags);
void he_feed(struct he *h, uint32_t cmd, const void *data, size_t len, bool eof);
void he_ctl(struct he *h, uint8_t type, uint32_t cmd, uint32_t value, uint16_t rows,
	    uint16_t cols);
/* Turn the loop until the condition or 20 s. */
bool he_until_ready(struct he *h);
bool he_until_exited(struct he *h, uint32_t cmd);
bool he_until_text(struct he *h, uint32_t cmd, const char *text);
void he_turn(struct he *h, int ms);
/* SHUTDOWN, BYE, reap. Return: the guest process's exit status, -1 when it had to be killed. */
int he_stop(struct he *h);
/* Text of stdout or the terminal so far, NUL-terminated. */
const char *he_text(struct he *h, uint32_t cmd);
uint64_t he_sum(uint64_t sum, const uint8_t *p, size_t len);
#define HE_SUM_INIT 14695981039346656037ULL
void he_pattern(uint8_t *p, size_t from, size_t len);

#endif
