#ifndef SB_GUEST_EXEC_JUDGE_I_H
#define SB_GUEST_EXEC_JUDGE_I_H
/* Shared by judge*.c only; see the theory of operation in judge.c. */
#include <linux/seccomp.h>
#include <sys/stat.h>

#include "conn/cmd_image.h"
#include "exec/judge.h"
#include "os/loop.h"

/* why, besides those of struct sb_cmd_verdict */
#define WHY_CHANGED "changed"     /* what ran was not what was judged */
#define WHY_UNSEEN "cannot-watch" /* traced by somebody else, or not readable: no second look */
#define WHY_CALL "system-call"    /* refused by the profile or the plan; argv holds its name */
#define WHY_LOST "lost"           /* count events that had no place */

/* First packet of a child; its listener comes along. */
struct enter {
	uint32_t magic;
	uint32_t cmd;
	uint64_t err_dev; /* identity of its standard error: told by the host, not by us */
	uint64_t err_ino;
};
#define ENTER_MAGIC 0x6a756467U
#define FLUSH_MAGIC 0x666c7573U

struct listener { /* one a command */
	struct judge *j;
	struct listener *next;
	int fd;
	uint32_t cmd;
	uint64_t err_dev;
	uint64_t err_ino;
	bool ran; /* the command's own program is in place */
};

struct call { /* an execve that waits for its answer */
	struct listener *l;
	uint64_t id;
	pid_t tid;
	pid_t tgid;
	int dirfd;
	unsigned int flags; /* of execveat */
	uint64_t path;      /* addresses in the caller's memory */
	uint64_t argv;
	struct call *next; /* in a queue */
};

#define LEVELS (SB_CMD_LEVELS + 1)
#define MAX_WORD (128U << 10) /* the kernel's own bound of one word */
#define WORDS_ROOM (SB_CMD_MAX_ARGV_BYTES + MAX_WORD)
#define KEEP_ARGV 4096 /* longer ones are kept as their SHA-256 */

struct look { /* what a call is about to run; scratch, one at a time */
	char name[4096];         /* as called */
	char *words;             /* argv's strings */
	uint64_t *pointers;      /* of the caller */
	char *spare;             /* to read the new stack into */
	const char **argv[LEVELS];
	char *path[LEVELS];
	struct sb_cmd_shebang line[LEVELS];
	struct sb_cmd_request level[LEVELS]; /* [0] as called, the last one runs */
	int fd[LEVELS];          /* O_PATH; owned until look_done */
	size_t n;
	bool foreign; /* neither a native program nor a script: only the kernel knows who runs it */
};

struct window { /* an execve that was let go and is watched */
	struct window *next; /* same bucket */
	pid_t tid;
	pid_t tgid;
	struct listener *l; /* NULL when it is gone */
	uint64_t since_ns;
	bool interrupted;
	bool foreign;
	bool top_level;
	uint64_t dev;
	uint64_t ino;
	size_t len;          /* of the new argv */
	uint8_t *bytes;      /* owned; NULL: sum */
	size_t room;
	uint8_t sum[32];
	struct sb_judge_event ev; /* to be told when it does not hold */
	struct call *waiting;     /* of other threads of the same process */
};

struct known { /* a file that begins as a native program does */
	uint64_t dev;
	uint64_t ino;
	uint64_t size;
	struct timespec changed;
};

#define KNOWN 256
#define BUCKETS 256
#define SLOTS 128

struct slot {
	struct sb_judge_event ev; /* count: not told yet */
	bool used;
};

struct judge {
	const struct sb_plan *plan;
	const struct sock_fprog *plain; /* by which refused calls are answered; NULL = none come */
	struct sb_cmdpol *policy;
	struct sb_cmd_image image;
	int root; /* O_PATH */
	int sock;
	bool over; /* PID 1 is gone */
	int proc; /* O_PATH */
	uint64_t proc_dev;
	struct listener *listeners;
	size_t n_listeners;
	struct window *buckets[BUCKETS];
	size_t n_windows;
	size_t n_traced;      /* threads whose stops and end come to this process */
	struct window *spare; /* one to use again */
	uint64_t late_ns;     /* when to look at windows that are open for long; 0 = never */
	struct seccomp_notif *req;
	size_t req_size;
	struct seccomp_notif_resp *resp;
	size_t resp_size;
	struct look look;
	struct slot slots[SLOTS];
	size_t n_slots;
	uint64_t lost[2]; /* refused, others */
	uint64_t merge_ns; /* when to tell what is counted; 0 = never */
	struct known known[KNOWN];
	bool patient; /* PID 1 reads now: a full socket is waited for */
};

/* judge_peek.c: the caller's memory */
/* What mostly is all of path and pointers, in one call. Return: pointers; @ret_name: bytes. */
size_t peek_both(const struct call *c, struct look *k, size_t *ret_name);
/* The rest of either. Return: 0; -errno of execve; LOOK_TOO_LONG. */
int peek_name(const struct call *c, struct look *k, size_t got);
int peek_argv(const struct call *c, struct look *k, size_t got);

/* judge_look.c: what would run, in the caller's view */
int look_new(struct look *k);
/*
 * Return: 0 with @k filled; -errno: what the kernel would answer; LOOK_TOO_LONG; LOOK_UNSEEN.
 * Whatever it is holds only if the caller still waits when it is looked at afterwards.
 */
#define LOOK_TOO_LONG 1
#define LOOK_UNSEEN 2
int look_at(struct judge *j, const struct call *c, struct look *k);
/*
 * Mark the scripts among @k that their interpreter may not find again, because the workload can change
 * where the name leads; but for scripts that it can change anyway.
 */
void look_names(struct judge *j, const struct call *c, struct look *k);
void look_done(struct look *k);
/* Open a file of /proc of the caller with the workload's rights, or with all. Return: fd; -errno. */
int look_open(struct judge *j, const char *path, int flags);
bool look_path_of(struct judge *j, int fd, const struct stat *st, char *out, size_t cap);

/* judge_window.c: the time from the answer until the new program is in place */
/* Return: 0: let it go; -errno: nothing is attached. */
int window_open(struct judge *j, const struct call *c, const struct look *k,
		const struct sb_judge_event *ev);
void window_drop(struct judge *j, pid_t tgid); /* it was not let go after all */
struct window *window_of(struct judge *j, pid_t tgid);
void window_hurry(struct judge *j, struct window *w);
void window_children(struct judge *j); /* SIGCHLD */
void window_late(struct judge *j);     /* late_ns has come */

/* judge_start.c */
/* Lift the file rights of root over those of the workload, or lay them down. Return: done? */
bool judge_rights(bool all);

/* judge.c */
SB_MUST_CHECK int judge_loop(struct judge *j); /* until PID 1 is gone */
void judge_call(struct judge *j, struct call *c);
void judge_release(struct judge *j, struct call *waiting); /* frees them */

/* judge_tell.c */
void tell_fill(struct judge *j, const struct call *c, const struct sb_cmd_request *q,
	       const struct sb_cmd_verdict *v, struct sb_judge_event *ev);
void tell(struct judge *j, const struct sb_judge_event *ev);
void tell_merged(struct judge *j); /* merge_ns has come */
void tell_all(struct judge *j); /* what is counted; waits for PID 1 to read it */
/* One line on the caller's own standard error. */
void tell_caller(struct judge *j, const struct call *c, const struct sb_cmd_request *q,
		 const struct sb_cmd_verdict *v);

#endif
