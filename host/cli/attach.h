#ifndef SB_HOST_CLI_ATTACH_H
#define SB_HOST_CLI_ATTACH_H
/*
 * The client's end of a holder's socket: the caller's input and output, the detach keys. Messages that
 * are not about the streams are the caller's own affair.
 */
#include "base/err.h"
#include "os/loop.h"
#include "wire/attach.h"

struct attach;
struct attach_conf {
	struct sb_loop *loop;
	int sock;          /* borrowed; non-blocking */
	const int *stdio;  /* three, borrowed */
	uint32_t flags;    /* SB_ATTACH_*; input is sent in any case but for @no_input */
	bool no_input;
	bool json;         /* output as events */
	const char *keys;  /* "ctrl-p,ctrl-q", "" = none; they count on a terminal alone */
	void (*detached)(void *arg); /* the keys were pressed, DETACH was sent */
	void (*note)(void *arg, const char *text);
	void *arg;
};
#define ATTACH_KEYS_MAX 8
/* @ret: the bytes. Return: their number; -EINVAL with text. */
SB_MUST_CHECK int attach_keys(const char *text, uint8_t ret[ATTACH_KEYS_MAX], struct sb_err *err);

/* Say hello. Return: 0; -errno with text. */
SB_MUST_CHECK int attach_new(const struct attach_conf *c, struct attach **ret, struct sb_err *err);
/* Return: 1: was about the streams; 0: it is the caller's; -EBADMSG. */
SB_MUST_CHECK int attach_message(struct attach *a, const struct sb_ipc_msg *msg);
/* Whether the program's streams are one terminal, as the holder said. */
bool attach_tty(const struct attach *a);
/* Tell the holder that this client leaves. */
void attach_leave(struct attach *a);
/* Write what is left; waits for the readers. */
void attach_drain(struct attach *a);
/* errno of the write by which output was lost; 0. */
int attach_lost(const struct attach *a);
struct attach *attach_free(struct attach *a);

#endif
