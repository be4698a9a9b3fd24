#ifndef SB_HOST_SNAPSHOT_HELPER_H
#define SB_HOST_SNAPSHOT_HELPER_H
/*
 * Between sendbox and sendbox-snapshot.
 *
 *   sendbox-snapshot VERB [--OPTION VALUE]...
 *
 *   fd 1, 2   results and errors, of all verbs but serve
 *   fd 3      the store's folder
 *   fd 4      serve: a SEQPACKET socket; one request at a time
 *   fd 5...   the trees, in the order of --path
 *
 * serve lasts as long as a session: it ends when the socket does.
 */
#include "base/mem.h"

#define SNAP_STORE_FD 3
#define SNAP_SOCK_FD 4
#define SNAP_TREE_FD 5
#define SNAP_TREES_MAX 64

enum snap_op { SNAP_OP_NONE = 0, SNAP_OP_BEFORE = 1, SNAP_OP_AFTER = 2 };
struct snap_request {
	uint32_t op;
	uint32_t tree;
	char label[64]; /* NUL-terminated */
};

enum snap_msg_type { SNAP_MSG_NONE = 0, SNAP_MSG_GUARDED = 1, SNAP_MSG_DONE = 2, SNAP_MSG_PLAN = 3,
		     SNAP_MSG_END = 4 };
struct snap_msg_guarded { /* any number before DONE of an AFTER */
	uint32_t type;
	uint32_t status;   /* enum snap_status */
	char what[40];     /* why it is guarded */
	char path[1024];   /* printable, cut */
};
struct snap_msg_done {
	uint32_t type;
	int32_t code; /* 0 or a negative errno */
	uint8_t id[32];
	uint8_t same; /* AFTER: nothing is different */
	uint8_t staged; /* AFTER: compared, but no snapshot could be written; text: why */
	uint8_t pad[6];
	uint64_t files;
	uint64_t bytes;
	uint64_t read_files;
	uint64_t added; /* AFTER */
	uint64_t deleted;
	uint64_t modified;
	uint64_t guarded;
	uint64_t unreadable;
	char text[512];
};

/* restore --ask: what would be done; the answer is a uint32_t, 1 = do it. Not sent when nothing would. */
struct snap_msg_plan {
	uint32_t type;
	uint32_t pad;
	uint8_t saved[32]; /* snapshot of what is there */
	uint64_t restore; /* of what is in closed folders nothing is known yet */
	uint64_t remove;
	uint64_t conflicts;
	uint64_t yours;
};
struct snap_msg_end { /* after a plan, when it could be carried out */
	uint32_t type;
	uint32_t pad;
	uint64_t restored;
	uint64_t removed;
	uint64_t conflicts;
	uint64_t yours;
	uint64_t lost; /* cannot be given back */
	uint64_t failed;
};

#endif
