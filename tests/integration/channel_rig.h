#ifndef T_CHANNEL_RIG_H
#define T_CHANNEL_RIG_H
/* sendbox-channel as a process; monitor and guest are played by the test. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "conn/boot.h"
#include "conn/chan.h"
#include "os/spawn.h"
#include "t.h"
#include "wire/ctl.h"
#include "wire/ipc.h"

struct guest {
	uint64_t time_ns;
	struct sb_chan *c;
	struct sb_stream *in;
	struct sb_stream *out;
	struct sb_stream *err;
	struct sb_ctl ctl[32]; /* text not kept */
	size_t n_ctl;
	size_t got;
	char text[256];
	uint64_t flood; /* bytes still to send on stdout */
	bool in_eof;
	bool out_reset;
	bool closed;
	bool hold_input;
};

struct rig {
	struct sb_loop *loop;
	struct guest g;
	pid_t pid;
	int ipc;
	int carrier;
	uint32_t guest_max; /* what the guest keeps to */
	int front; /* with a network: the net gate's end of the front socket; else -1 */
	uint8_t pub[SB_SIGN_PUBLIC_LEN];
	struct sb_boot boot;
	uint8_t prologue[SB_PROLOGUE_LEN];
	struct sb_ipc_msg msg;
};

/* As many NET streams as the plan allows. */
#define RIG_MAX_NET (512 + 8)

/* READY's text of a guest in which everything that the rig's plan asks for is in force. */
#define RIG_REPORT                                                                                 \
	"kernel=6.1\nmodules=closed\nuser_namespaces=closed\nprofile=default\nuid=1000\ngid=1000\n" \
	"capabilities=none\nno_new_privs=1\nseccomp=filter\nlandlock=in force\nrlimit.core=1\n"    \
	"rlimit.nofile=1024\npids=512\nrefused=mount,unshare,setns,bpf,keyctl,perf_event_open,"      \
	"io_uring_setup,clone3,packet-socket,tiocsti,ptrace,process_vm_readv\n"
/* Start with another report. Return: whether the session was refused (r->msg says why). */
bool rig_reports(struct rig *r, const char *report);

extern const struct sb_stream_ops g_stream;
void flood(struct guest *g);
int say(struct guest *g, const struct sb_ctl *m);
void say_exited(struct guest *g, uint32_t code);
bool rig_spawn(struct rig *r, bool tty, uint32_t timeout_ms, bool bad_sig);
/* The plan has a network (or not), the start message is that of the other case. */
bool rig_spawn_mismatch(struct rig *r, bool net);
/* With a value that is not the plan's, or for another session. */
bool rig_spawn_drifted(struct rig *r, bool env);
bool rig_boot(struct rig *r);
/* Let the guest's loop run until the monitor gets a message. Return: its type; 0 = EOF; -1. */
int rig_message(struct rig *r, int ms);
bool rig_turn_until(struct rig *r, const bool *flag, int ms);
bool rig_ready(struct rig *r, bool tty);
bool rig_ready_net(struct rig *r, uint32_t guest_max);
bool rig_run(struct rig *r, int in, int out, int err);
/* Ends the process by closing its ipc socket. Return: its wait status. */
int rig_stop(struct rig *r);
void check_resident(const struct rig *r, long limit_kib);

#define FAILED_WITH(r, want)                                                                       \
	do {                                                                                       \
		CHECK_EQ(rig_message(r, 3000), SB_IPC_FAILED);                                     \
		CHECK_EQ(((struct sb_ipc_failed *)(void *)(r)->msg.data)->fail, want);             \
	} while (0)

#endif
