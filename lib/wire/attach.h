#ifndef SB_WIRE_ATTACH_H
#define SB_WIRE_ATTACH_H
/*
 * Messages on the socket of an instance's session, "attach.sock" in the session's directory: the
 * framing is that of wire/ipc.h (one message a packet, fixed header, at most 4 KiB), the types are
 * unique beside its own. docs/protocol/attach.md has the table.
 *
 * Whoever connects is a process of the same user, which still may be broken or hostile: every
 * message is checked by sb_attach_check before anything looks at it, and a peer whose message
 * fails is cut off.
 */
#include "wire/ipc.h"

#define SB_ATTACH_VERSION 1
#define SB_ATTACH_DATA SB_IPC_MAX_LEN /* bytes of data in one message */
#define SB_ATTACH_WINDOW 65536U       /* bytes of a stream under way without a CREDIT */

enum sb_attach_type {
	/* client -> holder */
	SB_ATT_HELLO = 112,  /* struct sb_attach_hello; first and once */
	SB_ATT_INPUT = 113,  /* 1.. bytes for the program's input */
	SB_ATT_EOF = 114,    /* empty: the input ends */
	SB_ATT_DETACH = 115, /* empty: the client leaves, the session stays */
	SB_ATT_EXEC = 116,   /* struct sb_ipc_run, cmd 0; fds: stdin, stdout, stderr, and a sealed memory
			      * file as wire/exec_req.h says */
	SB_ATT_CLOSE = 117,  /* struct sb_attach_stream: nobody reads this output any more */
	/* both ways */
	SB_ATT_CREDIT = 120, /* struct sb_attach_credit: that many bytes were taken */
	/* holder -> client */
	SB_ATT_WELCOME = 124, /* struct sb_attach_welcome; first and once */
	SB_ATT_STDOUT = 125,  /* 1.. bytes */
	SB_ATT_STDERR = 126,  /* 1.. bytes */
	SB_ATT_SKIPPED = 127, /* struct sb_attach_skipped: output that this client was too slow for */
	SB_ATT_REFUSED = 128, /* struct sb_ipc_failed: a request was not carried out */
	SB_ATT_NOTE = 129,    /* 1.. bytes of text for people, one line */
};
/* Also, as wire/ipc.h has them: client -> holder RESIZE, SIGNAL, CANCEL (cmd 0 = what the client is
 * for: the session's command, or the one that it started); holder -> client STARTED, EXITED,
 * NET_EVENT, EXEC_EVENT, SSH_EVENT, DONE; about approvals: client -> holder APPR_DECIDE, holder ->
 * client APPR_QUESTION (shown at once, the output held back meanwhile), APPR_CLOSED, APPR_END. */

#define SB_ATTACH_FOREGROUND 1U /* output waits for this client; the first one alone */
#define SB_ATTACH_OUTPUT 2U     /* wants the output */
#define SB_ATTACH_REPLAY 4U     /* and what came last before */
#define SB_ATTACH_EVENTS 8U     /* wants NET_EVENT, EXEC_EVENT, SSH_EVENT */
#define SB_ATTACH_ASK 16U        /* has a terminal at which questions may be asked */
#define SB_ATTACH_FLAGS 31U
struct sb_attach_hello {
	uint32_t version;
	uint32_t flags;
	uint16_t rows; /* of the client's terminal; 0 = none */
	uint16_t cols;
	uint32_t reserved;
};
struct sb_attach_welcome {
	uint32_t version;
	uint8_t tty;     /* one terminal for the program's streams */
	uint8_t started; /* the command runs */
	uint8_t reserved[2];
	uint8_t session[16];
};
struct sb_attach_credit {
	uint32_t stream; /* 0 = input, 1, 2 = output */
	uint32_t bytes;  /* 1 .. SB_ATTACH_WINDOW */
};
struct sb_attach_stream {
	uint32_t stream; /* 1, 2 */
	uint32_t reserved;
};
struct sb_attach_skipped {
	uint64_t bytes;
};

enum sb_attach_side { SB_ATTACH_FROM_CLIENT = 1, SB_ATTACH_FROM_HOLDER = 2 };
/* Whether @msg is well formed: type of that side, length, descriptors, ranges.
 * Return: 0; -EBADMSG. */
SB_MUST_CHECK int sb_attach_check(const struct sb_ipc_msg *msg, enum sb_attach_side from);

#endif
