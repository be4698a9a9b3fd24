#ifndef SB_WIRE_IPC_H
#define SB_WIRE_IPC_H
/*
 * Messages between the host programs of one session: SOCK_SEQPACKET, one message per packet,
 * little-endian header {u16 type, u16 n_fds, u32 len} and then len bytes of a fixed structure for
 * that type. At most 4 KiB and 8 descriptors. Everything larger goes by sealed memory file.
 *
 * cli <-> monitor and monitor <-> channel use the same framing; types are unique across both.
 */
#include <sys/types.h>

#include "base/mem.h"

#define SB_IPC_MAX_LEN 4096
#define SB_IPC_MAX_FDS 8
#define SB_IPC_SOCK_FD 3 /* every helper program finds its ipc socket there */

enum sb_ipc_type {
	SB_IPC_NONE = 0,
	/* cli -> monitor */
	SB_IPC_START = 1,   /* struct sb_ipc_start; fds: plan memfd, memfd with the values of its
			     * environment, stdin, stdout, stderr, guest program of the
			     * verified bundle, and with an SSH relay: the socket of the user's
			     * agent (O_PATH) */
	SB_IPC_CANCEL = 2,  /* struct sb_ipc_signal: pass signo on and end the session as
			     * cancelled; the second one kills at once */
	SB_IPC_RESIZE = 3,  /* struct sb_ipc_resize; both hops */
	SB_IPC_SIGNAL = 4,  /* struct sb_ipc_signal; both hops */
	SB_IPC_EXEC = 6,    /* struct sb_ipc_run with cmd > 0, chosen by the sender, each once; fds: stdin,
			     * stdout, stderr, sealed memory file with wire/exec_req.h: one more
			     * command of a session that runs; STARTED and EXITED answer */
	SB_IPC_GO = 7,      /* empty: after a START that says hold: the command may run */
	/* monitor -> channel */
	SB_IPC_CHAN_START = 16, /* struct sb_ipc_chan_start; fds: carrier, plan memfd, memfd with the
				 * values of its environment, and for a micro-VM: the front socket
				 * of the net gate if the plan has a network, that of the SSH
				 * relay if the plan has one */
	SB_IPC_CHAN_RUN = 17,   /* struct sb_ipc_run; fds: stdin, stdout, stderr; runs the plan's
				 * command */
	SB_IPC_CHAN_KILL = 18,  /* struct sb_ipc_signal with cmd: SIGKILL to the whole command */
	SB_IPC_CHAN_CLOSE = 19, /* empty: orderly end of the channel */
	SB_IPC_CHAN_EXEC = 20,  /* as EXEC */
	/* channel -> monitor -> cli */
	SB_IPC_READY = 32,   /* empty: handshake done and guest reports ready */
	SB_IPC_STARTED = 33, /* struct sb_ipc_started */
	SB_IPC_EXITED = 34,  /* struct sb_ipc_exited: all output of the command was delivered */
	SB_IPC_FAILED = 35,  /* struct sb_ipc_failed: the session cannot go on */
	SB_IPC_CLOSED = 36,  /* empty: the guest acknowledged the close */
	SB_IPC_EXEC_EVENT = 37, /* struct sb_ipc_exec_event: an execve was judged */
	/* monitor -> cli */
	SB_IPC_DONE = 48, /* struct sb_ipc_done: everything is cleaned up; last message */
	/* monitor -> net gate */
	SB_IPC_NET_START = 64,  /* struct sb_ipc_net_start; fds: front socket, plan memfd */
	SB_IPC_NET_CLIENT = 65, /* empty; fd: socket of a viewer (sendbox net), same framing */
	/* net gate -> monitor (-> cli, except NET_UP) */
	SB_IPC_NET_UP = 72,    /* empty: jailed and serving */
	SB_IPC_NET_EVENT = 73, /* 1 to SB_IPC_NET_EVENTS struct sb_ipc_net_event */
	/* front socket -> net gate */
	SB_IPC_NET_LISTEN = 80, /* namespace, once: empty; fds: tcp4, tcp6, udp4, udp6, or tcp4,
				 * udp4 where there is no IPv6: listening and bound inside the
				 * sandbox, for every address; guest/init/net.h says how */
	SB_IPC_NET_STREAM = 81, /* micro-VM: empty; fd: one end of a stream socket pair, on which
				 * struct sb_net_hello comes first (wire/net_hello.h) */
	/* viewer <-> net gate */
	SB_IPC_NET_WATCH = 96,  /* struct sb_ipc_net_watch */
	SB_IPC_NET_AMEND = 97,  /* struct sb_ipc_net_amend and then the amendment's bytes */
	SB_IPC_NET_FLOW = 98,   /* gate: struct sb_ipc_net_flow, one a connection */
	SB_IPC_NET_END = 99,    /* gate: struct sb_ipc_net_end; after the list, or an amendment */
	/* monitor <-> SSH relay (-> cli, SSH_EVENT) */
	SB_IPC_SSH_START = 144, /* monitor: struct sb_ipc_net_start; fds: front socket, plan memfd */
	SB_IPC_SSH_NEED = 145,  /* relay, empty: a connection to the user's agent, please */
	SB_IPC_SSH_AGENT = 146, /* monitor: empty; fd: that connection; none = there is no agent */
	SB_IPC_SSH_EVENT = 147, /* relay: struct sb_ipc_ssh_event */
	/* front socket -> SSH relay */
	SB_IPC_SSH_LISTEN = 148, /* namespace, once: empty; fd: listening socket of the sandbox */
	SB_IPC_SSH_STREAM = 149, /* micro-VM: empty; fd: one end of a stream socket pair */
	/* cli -> monitor, before START, once */
	SB_IPC_AUDIT = 160, /* empty; fds: directory of the audit log, its key */
	/* monitor, cli -> sendbox-auditd; its answers */
	SB_IPC_AUDIT_APPEND = 161, /* struct sb_ipc_audit_append, then an event (store/audit.h) */
	SB_IPC_AUDIT_DONE = 162,   /* struct sb_ipc_audit_done: for each that waits, for the end
				    * of the input, and for a failure, after which it ends */
	/* net gate, SSH relay <-> monitor: what needs a record first */
	SB_IPC_GATE_PENDING = 170, /* gate: struct sb_ipc_gate_pending, then its event
				    * (sb_ipc_net_event, sb_ipc_ssh_event) */
	SB_IPC_GATE_ANSWER = 171,  /* monitor: struct sb_ipc_gate_answer; in any order */
	/* approvals: monitor <-> cli */
	SB_IPC_APPR_ASK = 180,    /* monitor: struct sb_ipc_appr_ask */
	SB_IPC_APPR_ANSWER = 181, /* cli: struct sb_ipc_appr_answer */
	/* cli -> monitor -> channel, and back when it is so */
	SB_IPC_HOLD = 182,        /* struct sb_ipc_hold: no output to the user, no input from him */
	SB_IPC_HELD = 183,        /* struct sb_ipc_hold */
	/* on approvals.sock, and between a holder and its client */
	SB_IPC_APPR_WATCH = 184,    /* client: struct sb_ipc_appr_watch */
	SB_IPC_APPR_DECIDE = 185,   /* client: struct sb_ipc_appr_decide */
	SB_IPC_APPR_QUESTION = 186, /* struct sb_ipc_appr_question, one that is open */
	SB_IPC_APPR_CLOSED = 187,   /* struct sb_ipc_appr_closed: it is decided */
	SB_IPC_APPR_END = 188,      /* struct sb_ipc_failed: after the list, or a decision */
	SB_IPC_APPR_NEW = 189,      /* client: struct sb_ipc_appr_ask: a command that it will run */
};

struct sb_ipc_start {
	uint8_t psk[32];       /* session key for the channel; wipe after use */
	uint8_t signature[64]; /* Ed25519 over the plan bytes */
	uint8_t public_key[32];
	uint8_t keep;          /* leave the session directory for post-mortem */
	uint8_t terminals;     /* bit n: the caller's descriptor n is a terminal, even where a
				* copying process stands between it and the channel */
	uint8_t hold;          /* once the guest is ready the command waits for GO */
};
struct sb_ipc_net_start {
	uint8_t signature[64]; /* over the plan */
	uint8_t public_key[32]; /* also verifies amendments */
};
#define SB_IPC_NET_EVENTS 6 /* in one message */
enum sb_net_event_kind {
	SB_NET_EV_NONE = 0,
	SB_NET_EV_CONNECT = 1, /* a connection was decided (and, allowed, is established) */
	SB_NET_EV_CLOSED = 2,  /* an allowed connection ended; up and down are final */
	SB_NET_EV_DNS = 3,     /* a question was decided */
	SB_NET_EV_AMEND = 4,   /* the policy was changed: seq in count, rule text in rule */
	SB_NET_EV_LOST = 5,    /* count events were not kept, all of them like this one in allow */
	SB_NET_EV_REQUEST = 6, /* a further HTTP request on a checked connection was refused */
};
enum sb_net_via {
	SB_NET_VIA_NONE = 0,
	SB_NET_VIA_DIRECT = 1,  /* transparent */
	SB_NET_VIA_CONNECT = 2, /* HTTP CONNECT */
	SB_NET_VIA_HTTP = 3,    /* absolute-form HTTP */
	SB_NET_VIA_SOCKS = 4,
};
struct sb_ipc_net_event {
	uint64_t time_ns; /* CLOCK_REALTIME */
	uint64_t id;      /* connection number from 1; 0 = none */
	uint8_t kind;     /* enum sb_net_event_kind */
	uint8_t allow;
	uint8_t via;      /* enum sb_net_via */
	uint8_t proto;    /* enum sb_net_proto */
	uint16_t reason;  /* enum sb_net_reason */
	uint16_t port;
	uint16_t dns_type;
	uint8_t has_addr;
	uint8_t reserved[5];
	uint8_t addr[16]; /* as struct sb_addr: what was dialled */
	uint64_t up;      /* bytes from the guest */
	uint64_t down;
	uint64_t count;   /* how many equal events this one stands for, at least 1 */
	char name[256];   /* normalised name, or address text of a direct destination */
	char rule[320];   /* text of the rule that decided, or "" */
};
struct sb_ipc_net_watch {
	uint8_t follow; /* events (NET_EVENT) after the list, until the socket closes */
	uint8_t reserved[7];
};
struct sb_ipc_net_amend {
	uint8_t signature[64]; /* over the bytes that follow */
};
struct sb_ipc_net_flow {
	struct sb_ipc_net_event ev; /* CONNECT with the bytes so far */
	uint64_t opened_ns;         /* CLOCK_REALTIME */
	uint8_t open;
	uint8_t reserved[7];
};
struct sb_ipc_net_end {
	uint32_t fail;  /* 0 = listed, amended; else an errno: ESTALE = sequence number of an
			 * amendment is not seq + 1, ENOENT = a rule to remove is not there */
	uint32_t reserved;
	uint64_t seq;   /* of the last amendment, 0 = none yet */
	char text[496]; /* NUL-terminated; why it failed */
};
struct sb_ipc_resize {
	uint32_t cmd; /* command id; 0 = the plan's command */
	uint16_t rows;
	uint16_t cols;
};
struct sb_ipc_signal {
	uint32_t cmd;
	uint32_t signo;
};
struct sb_ipc_chan_start {
	uint8_t psk[32];
	uint8_t signature[64];
	uint8_t public_key[32];
	uint8_t session[16];       /* that the plan must be for */
	uint32_t ready_timeout_ms; /* from now to READY */
};
struct sb_ipc_run {
	uint32_t cmd; /* id chosen by the monitor, > 0 for later commands, 0 = the plan's */
	uint16_t rows;
	uint16_t cols;
	uint32_t terminals; /* as in sb_ipc_start: such output passes the terminal filter */
};
struct sb_ipc_started {
	uint32_t cmd;
	uint32_t reserved;
};
enum sb_exit_kind {
	SB_EXIT_UNKNOWN = 0,
	SB_EXIT_CODE = 1,      /* value = exit status 0..255 */
	SB_EXIT_SIGNAL = 2,    /* value = signal number */
	SB_EXIT_NOT_FOUND = 3, /* program not found: shell convention 127 */
	SB_EXIT_NOT_EXEC = 4,  /* found, could not be executed: 126; value = errno */
	SB_EXIT_SETUP = 5,     /* guest could not set the command up; value = errno */
};
struct sb_ipc_exited {
	uint32_t cmd;
	uint32_t kind;    /* enum sb_exit_kind */
	uint32_t value;
	uint32_t oom;     /* non-zero when the kernel killed the command for memory */
	uint64_t user_us; /* CPU time */
	uint64_t sys_us;
	uint64_t max_rss; /* bytes */
	uint32_t lost;    /* errno of a write to the caller's file or device; 0 = all was written */
	uint32_t reserved;
};
enum sb_fail {
	SB_FAIL_NONE = 0,
	SB_FAIL_USAGE = 1,     /* options or request are wrong */
	SB_FAIL_PLAN = 2,      /* plan refused (by host or guest) */
	SB_FAIL_PROVIDER = 3,  /* provider unavailable or failed to start */
	SB_FAIL_GUEST = 4,     /* guest failed, panicked, left, or broke the protocol */
	SB_FAIL_TIMEOUT = 5,   /* --timeout or a start time-out */
	SB_FAIL_CANCELLED = 6,
	SB_FAIL_INTERNAL = 7,  /* a process of ours died or a system call failed */
	SB_FAIL_AUDIT = 8,     /* what has to be recorded could not be */
};
struct sb_ipc_failed {
	uint32_t fail; /* enum sb_fail */
	char text[500]; /* NUL-terminated; from the guest only after escaping */
};
/* What the guest says of an execve. The texts are bytes of the workload, never shown as they are. */
struct sb_ipc_exec_event {
	uint64_t time_ns; /* CLOCK_REALTIME of the host */
	uint64_t count;   /* how many equal events this one stands for, at least 1 */
	uint32_t cmd;
	uint32_t pid;     /* in the guest */
	uint32_t rule;    /* index in the plan's rules, or UINT32_MAX */
	uint8_t action;   /* enum sb_cmd_action */
	uint8_t top_level;
	uint8_t killed;   /* what ran was not what was judged */
	uint8_t cut;      /* path or argv are not whole */
	uint16_t n_argv;
	uint16_t argv_len;
	uint32_t reserved;
	char why[32];     /* NUL-terminated; "lost": count events that were not kept */
	char path[512];   /* NUL-terminated; "" = none */
	char argv[1024];  /* n_argv words, each with its NUL */
};
enum sb_ssh_event_kind {
	SB_SSH_EV_NONE = 0,
	SB_SSH_EV_SIGN = 1,    /* a signature was made or refused */
	SB_SSH_EV_BIND = 2,    /* a refused session-bind */
	SB_SSH_EV_REQUEST = 3, /* any other refusal */
	SB_SSH_EV_LOST = 4,    /* count events were not told, all of them like this one in allow */
};
/* What the SSH relay decided. The texts hold no control characters. */
struct sb_ipc_ssh_event {
	uint64_t time_ns; /* CLOCK_REALTIME */
	uint64_t count;   /* how many equal events this one stands for, at least 1 */
	uint8_t kind;     /* enum sb_ssh_event_kind */
	uint8_t allow;
	uint8_t has_key;
	uint8_t type;     /* of the request, SB_SSH_EV_REQUEST */
	uint16_t reason;  /* enum sb_ssh_reason */
	uint16_t reserved;
	uint8_t key[32];  /* SHA-256 of the key's blob */
	char host[256];   /* NUL-terminated: name of the plan, or fingerprint of the host key, or "" */
	char user[64];    /* NUL-terminated: that logs in, or "namespace NAME"; the guest's word */
};
#define SB_IPC_APPR_SUBJECT 2001
#define SB_IPC_APPR_RULE 501
/* The texts are NUL-terminated printable ASCII: escaped by who sends them, checked by who gets them. */
struct sb_ipc_appr_ask {
	uint64_t id;     /* of the source; grows */
	uint32_t source; /* 1 net gate, 2 SSH relay, 3 command */
	uint32_t kind;   /* enum sb_appr_kind; 0: who asked does not wait any more */
	char subject[SB_IPC_APPR_SUBJECT];
	char rule[SB_IPC_APPR_RULE];
	char reserved[2];
};
struct sb_ipc_appr_answer {
	uint64_t id;
	uint32_t source;
	uint32_t allow;
	uint32_t reason; /* enum sb_appr_reason */
	uint32_t reserved;
	int64_t grant;   /* that decided; 0 = none */
};
struct sb_ipc_hold {
	uint32_t on;
	uint32_t nonce; /* comes back */
};
struct sb_ipc_appr_watch {
	uint32_t follow; /* questions as they come, until the socket closes */
	uint32_t reserved;
};
struct sb_ipc_appr_decide {
	uint64_t number;
	uint32_t answer; /* enum sb_appr_answer */
	char pattern[513]; /* "" = none */
	char reserved[3];
};
struct sb_ipc_appr_question {
	uint64_t number;
	uint64_t left_ms; /* until it is refused */
	uint32_t kind;
	uint32_t may;     /* bit n: enum sb_appr_answer n is possible */
	char subject[SB_IPC_APPR_SUBJECT];
	char rule[SB_IPC_APPR_RULE];
	char reserved[2];
};
struct sb_ipc_appr_closed {
	uint64_t number;  /* 0: of an APPR_NEW that opened no question */
	uint32_t allow;
	uint32_t reason;
	int64_t grant;
};
struct sb_ipc_done {
	uint32_t fail; /* SB_FAIL_NONE = the command ended; see exit */
	uint32_t reserved;
	struct sb_ipc_exited exit;
	char text[500];
	uint32_t reserved2;
	uint64_t audit_first; /* records of the session are from here ... */
	uint64_t audit_end;   /* ... to before this one; others' may be between; 0 = none */
	uint64_t head_n;      /* signed head of the log at the end; 0 = none */
	uint8_t head_root[32];
};
enum sb_ipc_audit_wait {
	SB_IPC_AUDIT_GO_ON = 0, /* written with the next batch, not answered */
	SB_IPC_AUDIT_WAIT = 1,  /* answered when it is durable */
	SB_IPC_AUDIT_SIGN = 2,  /* and a head covers it */
};
struct sb_ipc_audit_append {
	uint64_t id;  /* chosen by the sender, not 0; comes back */
	uint8_t wait; /* enum sb_ipc_audit_wait */
	uint8_t reserved[7];
};
struct sb_ipc_audit_done {
	uint64_t id;     /* 0: the end, or a failure of what nobody waits for */
	uint64_t seq;    /* number of the record */
	uint64_t first;  /* of the first record that this writer has written */
	uint32_t fail;   /* 0, or an errno: nothing more will be written */
	uint32_t reserved;
	uint64_t head_n; /* at the end and with SIGN: what the last head covers */
	uint8_t head_root[32];
	char text[400];  /* NUL-terminated; why it failed */
};
struct sb_ipc_gate_pending {
	uint64_t id;     /* chosen by the gate, not 0; comes back */
	uint8_t verdict; /* 1 = allow, 2 = ask somebody first */
	uint8_t reserved[7];
};
struct sb_ipc_gate_answer {
	uint64_t id;
	uint8_t allow;
	uint8_t reserved;
	uint16_t reason; /* of a refusal: enum sb_net_reason, enum sb_ssh_reason */
	uint32_t reserved2;
};

struct sb_ipc_msg {
	uint16_t type;
	uint16_t n_fds;
	uint32_t len;
	int fds[SB_IPC_MAX_FDS]; /* owned by the receiver until taken */
	_Alignas(8) uint8_t data[SB_IPC_MAX_LEN];
};

/* Send one message. Return: 0; -EAGAIN on a full non-blocking socket; -errno. */
SB_MUST_CHECK int sb_ipc_send(int sock, uint16_t type, const void *data, size_t len,
			      const int *fds, size_t n_fds);

#define SB_IPC_EOF 1
/*
 * Receive one message.
 * @msg: filled on 0 only; release with sb_ipc_msg_done
 * Return: 0; SB_IPC_EOF when the peer is gone; -EAGAIN; -EMFILE: no room for its descriptors, the
 * packet is lost; -EBADMSG for a malformed packet (its descriptors are closed); -errno.
 */
SB_MUST_CHECK int sb_ipc_recv(int sock, struct sb_ipc_msg *msg);
void sb_ipc_msg_done(struct sb_ipc_msg *msg); /* closes descriptors not taken, wipes data */
#define sb_automsg SB_CLEANUP(sb_ipc_msg_done)

/* The events of a NET_EVENT message. Return: how many; 0 when it is none or malformed. */
size_t sb_ipc_get_events(const struct sb_ipc_msg *msg, const struct sb_ipc_net_event **ret);

/* The event of an EXEC_EVENT message. Return: NULL when it is none or malformed. */
const struct sb_ipc_exec_event *sb_ipc_get_exec_event(const struct sb_ipc_msg *msg);

/* The event of an SSH_EVENT message. Return: NULL when it is none or malformed. */
const struct sb_ipc_ssh_event *sb_ipc_get_ssh_event(const struct sb_ipc_msg *msg);

/* The payload if it has exactly this size and this many descriptors came along; else NULL. */
const void *sb_ipc_get(const struct sb_ipc_msg *msg, size_t len, size_t n_fds);

#endif
