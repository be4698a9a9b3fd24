#ifndef SB_HOST_MONITOR_MONITOR_H
#define SB_HOST_MONITOR_MONITOR_H
/*
 * The parent of one session. It starts all other processes, wires them with socket pairs, owns
 * life and clean-up, and parses nothing that comes from the guest except the fixed-size messages
 * of sendbox-channel.
 */
#include "core/audit_budget.h"
#include "core/plan.h"
#include "os/loop.h"
#include "provider/provider.h"
#include "store/audit.h"
#include "wire/ipc.h"

enum mon_state {
	MON_IDLE = 0,  /* waiting for START */
	MON_STARTING,  /* processes are up, guest not ready yet */
	MON_RUNNING,   /* the plan's command runs (or is about to) */
	MON_CLOSING,   /* outcome known; orderly close under way, bounded by a timer */
	MON_REAPING,   /* everything was told to end; waiting for the last process */
	MON_GONE,
};

struct monitor;

struct mon_child {
	struct monitor *m;
	const char *role; /* static text for messages */
	pid_t pid;        /* 0 = not running */
	int pidfd;
	struct sb_io io;
};

#define MON_LISTENERS 4
#define MON_MAX_FS (SB_PLAN_MAX_MOUNTS + 1)

/* audit.c: the writer of records */
struct mon_audit {
	struct mon_child child;
	int sock; /* owned; -1 = none */
	int dir;  /* owned, until the writer has them */
	int key;
	struct sb_io io;
	struct sb_timer late;
	uint64_t next_id;
	struct waiter *waiters;
	struct sb_audit_budget budget;
	uint64_t lost[SB_AUDIT_KINDS]; /* that were counted instead of recorded */
	uint64_t lost_deny; /* refusals among them */
	uint64_t busy;      /* and such that the writer did not take */
	struct sb_timer tell; /* when that is recorded */
	bool losing;
	bool ready;   /* the plan's record is durable: the command may start */
	bool broken;  /* the session is ending for it */
	bool closing;
	uint32_t told_fail; /* the outcome that is recorded */
	bool told;
};

struct monitor {
	struct sb_loop *loop;
	bool go;       /* the command may run */
	bool waiting;  /* the guest is ready, the command line is not */
	struct sb_dirs dirs;
	const char *session_path;
	int session_dir; /* owned */
	int lock;        /* owned; released with the process */
	enum mon_state state;
	struct sb_plan *plan;
	int plan_memfd;
	int env_memfd; /* values of the plan's environment; closed once the channel has it */
	struct sb_ipc_start start; /* wiped once the channel has it */
	bool keep;

	int cli;     /* ipc */
	int chan;    /* ipc; -1 = not started */
	struct sb_io cli_io;
	struct sb_io chan_io;
	int gate;    /* ipc to the net gate; -1 = not started */
	int front;   /* the gate's end of its front socket until it is started; -1 = no network */
	int listeners[MON_LISTENERS]; /* namespace: what the gate will accept from */
	size_t n_listeners;
	struct sb_io front_io;
	struct sb_io listener_io[MON_LISTENERS];
	int viewers; /* owned; listening socket "net.sock" of the session's directory */
	struct sb_io gate_io;
	struct sb_io viewers_io;
	struct sb_ipc_net_event held[SB_IPC_NET_EVENTS]; /* not yet taken by the command line */
	size_t n_held; /* > 0: the gate waits */
	int ssh;          /* ipc to the SSH relay; -1 = not started */
	int ssh_agent;    /* owned; O_PATH of the user's agent's socket; -1 = none */
	int ssh_front;    /* owned; as front, of the SSH relay */
	int ssh_listener; /* owned; namespace */
	struct sb_io ssh_io;
	struct sb_io ssh_front_io;
	struct sb_io ssh_listener_io;
	uint64_t ssh_lost[2]; /* its events that the command line did not take: refusals, others */
	uint64_t exec_lost[2]; /* judged executions that the command line did not take: refused, others */
	bool gate_up; /* the gate said that it serves */
	int guest_exe; /* the guest program, until the guest is started; -1 = none */
	int std[3]; /* the user's descriptors until the channel has them */
	int console;
	int pids;
	bool tty_saved;
	void *termios; /* struct termios of std[0] at start */
	int tty;

	const struct sb_provider *provider;
	struct sb_guest guest;
	bool have_guest;
	struct mon_audit audit;
	bool guest_ready; /* and the plan's record is awaited */
	size_t n_pending; /* pending.c */
	struct mon_child guest_child;
	struct mon_child chan_child;
	struct mon_child gate_child;
	struct mon_child ssh_child;
	struct mon_child fs[MON_MAX_FS];
	size_t n_fs;

	uint64_t started_ns;     /* for debugging output */
	struct sb_timer timer;   /* start deadline, then --timeout, then the closing grace */
	struct sb_timer grace;   /* after a cancel or a time-out: until SIGKILL, then the end */
	uint16_t rows;
	uint16_t cols;
	bool started; /* the guest said that the command runs; believed once */
	bool cancelling;
	bool cli_gone;
	struct sb_ipc_failed suspicion; /* told unless the guest's own end explains it */
	struct sb_ipc_done done;        /* the first outcome */
	bool closed; /* the guest has said that everything is written */
	bool have_outcome;
};

/* children.c */
/* @front, @ssh_front: sockets for the streams to net gate and SSH relay, or -1; borrowed */
SB_MUST_CHECK int mon_start_channel(struct monitor *m, int front, int ssh_front, int *ret_guest_end,
				    struct sb_err *err);
/* Spawn the plan's program executable:NAME, argv[0] = "sendbox-NAME", with its socket as descriptor 3 and @extra as 4, 5, ... */
SB_MUST_CHECK int mon_spawn(struct monitor *m, struct mon_child *c, const char *role,
			    const char *const *argv, int sock, const int *extra, size_t n_extra,
			    struct sb_err *err);
SB_MUST_CHECK int mon_start_fs(struct monitor *m, int guest_ends[MON_MAX_FS], struct sb_err *err);
/* layers.c: namespace runtime, a plan with layers */
SB_MUST_CHECK int mon_start_layers(struct monitor *m, int *guest_end, struct sb_err *err);
SB_MUST_CHECK int mon_watch(struct monitor *m, struct mon_child *c, const char *role, pid_t pid,
			    int *pidfd, sb_io_fn *fn);
void mon_record_pid(struct monitor *m, pid_t pid);
void mon_kill(struct mon_child *c);

/* net.c: the net gate and who looks at it */
/* Everything but the gate itself, which is started at the first connection, question or viewer.
 * @ret_front: the other end of the gate's front socket, owned by the caller */
SB_MUST_CHECK int mon_open_gate(struct monitor *m, int *ret_front, struct sb_err *err);
/* The command line may take more: pass the held events on and read the gate again. */
void mon_gate_resume(struct monitor *m);
/* The guest is gone: let the gate tell what it holds and leave. */
void mon_gate_leave(struct monitor *m);
/* After the gate's end: pass on what it said last. */
void mon_gate_drain(struct monitor *m);

/* ssh.c: the SSH relay; as the net gate's */
SB_MUST_CHECK int mon_open_ssh(struct monitor *m, int *ret_front, struct sb_err *err);
void mon_ssh_leave(struct monitor *m);
void mon_ssh_drain(struct monitor *m);

/* exec.c: judged executions, from the channel process to the command line */
/* Return: 0; -EBADMSG. */
SB_MUST_CHECK int mon_exec_event(struct monitor *m, const struct sb_ipc_msg *msg);
void mon_exec_lost(struct monitor *m, bool wait); /* tell what was not taken */

/* ask.c: questions of net gate and SSH relay to the command line, and its answers */
/* @source: 1 net gate, 2 SSH relay. Return: 0; -EBADMSG. */
SB_MUST_CHECK int mon_ask(struct monitor *m, uint32_t source, const struct sb_ipc_msg *msg);
void mon_answer(struct monitor *m, const struct sb_ipc_appr_answer *a);

/* session.c: the state machine */
/* A message that waits for a slow reader. */
void mon_to_cli(struct monitor *m, uint16_t type, const void *p, size_t len);
void mon_on_cli(struct sb_io *io, uint32_t events);
void mon_child_ended(struct mon_child *c);
/* The session cannot go on: its outcome, unless there is one, and the end of everything. */
void mon_end(struct monitor *m, uint32_t fail, const char *text);
/* The session is over, and something failed that makes a success none. */
void mon_fail_late(struct monitor *m, uint32_t fail, const char *text);
/* The plan's record is durable. */
void mon_recorded(struct monitor *m);

#endif
