/*
 * bench_audit AUDITD [FOLDER]: the audit log in records a second.
 *   append    into the page cache, in batches of 256, as the writer does
 *   durable   by sendbox-auditd, 64 writers of which each waits for its record before the next
 *   verify    all of it, with its head
 */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "log_place.h"
#include "os/spawn.h"
#include "wire/ipc.h"

#define ROUNDS 5
#define APPEND 300032U
#define DURABLE 20000U
#define WRITERS 64

static struct sb_audit_event event(unsigned int i)
{
	struct sb_audit_event e = { .time_ns = 1700000000000000000ULL + i,
				    .session = { 1, 2, 3, 4 },
				    .kind = SB_AUDIT_NETWORK,
				    .verdict = SB_AUDIT_ALLOW,
				    .action = "connect",
				    .subject = "registry.example.org:443",
				    .rule = "*.example.org" };

	sb_audit_put_num(&e, "id", i);
	sb_audit_put(&e, "via", "direct");
	return e;
}

static double append(const struct place *p)
{
	sb_autolog struct sb_audit_log *l = NULL;
	double from = bench_now_ns();

	if (sb_audit_log_open(p->dir, p->sec, &l, NULL) < 0)
		abort();
	for (unsigned int i = 0; i < APPEND;) {
		if (sb_audit_log_begin(l, NULL) < 0)
			abort();
		for (unsigned int k = 0; k < 256; k++, i++) {
			struct sb_audit_event e = event(i);
			uint64_t seq;

			if (sb_audit_log_put(l, &e, &seq) < 0)
				abort();
		}
		if (sb_audit_log_end(l, NULL) < 0)
			abort();
	}
	from = bench_now_ns() - from;
	if (sb_audit_log_sign(l, NULL, NULL) < 0)
		abort();
	return APPEND / (from / 1e9);
}

static double verify(const struct place *p)
{
	struct sb_audit_report rep;
	double from = bench_now_ns();

	if (place_verify(p, &rep) < 0 || !rep.good)
		abort();
	return (double)rep.n / ((bench_now_ns() - from) / 1e9);
}

static void send_one(int sock, uint64_t id)
{
	struct sb_ipc_audit_append head = { .id = id, .wait = SB_IPC_AUDIT_WAIT };
	struct sb_audit_event e = event((unsigned int)id);
	uint8_t msg[sizeof(head) + SB_AUDIT_PACK_MAX];
	int n;

	memcpy(msg, &head, sizeof(head));
	n = sb_audit_pack(&e, msg + sizeof(head));
	if (n < 0 || sb_ipc_send(sock, SB_IPC_AUDIT_APPEND, msg, sizeof(head) + (size_t)n, NULL, 0) < 0)
		abort();
}

static double durable(const struct place *p, const char *auditd)
{
	const char *argv[] = { "sendbox-auditd", NULL };
	char path[] = "/tmp/sb-key-XXXXXX";
	sb_autofd int key = mkstemp(path);
	struct sb_spawn_fd fds[4];
	struct sb_err err = { 0 };
	uint64_t sent = 0;
	uint64_t got = 0;
	double from;
	pid_t pid;
	int sv[2];

	if (key < 0 || unlink(path) < 0 || sb_fd_write_all(key, p->sec, 64) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		abort();
	fds[0] = (struct sb_spawn_fd){ sv[1], 3 };
	fds[1] = (struct sb_spawn_fd){ p->dir, 4 };
	fds[2] = (struct sb_spawn_fd){ key, 5 };
	fds[3] = (struct sb_spawn_fd){ 2, 2 };
	if (sb_spawn_start(&(struct sb_spawn){ .path = auditd, .argv = argv, .fds = fds, .n_fds = 4 }, &pid,
			   NULL, &err) < 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		abort();
	}
	sb_fd_close(&sv[1]);
	from = bench_now_ns();
	while (sent < WRITERS)
		send_one(sv[0], ++sent);
	while (got < DURABLE) {
		sb_automsg struct sb_ipc_msg msg = { 0 };
		const struct sb_ipc_audit_done *d;

		if (sb_ipc_recv(sv[0], &msg) != 0)
			abort();
		d = sb_ipc_get(&msg, sizeof(*d), 0);
		if (!d || d->fail != 0)
			abort();
		got++;
		if (sent < DURABLE)
			send_one(sv[0], ++sent);
	}
	from = bench_now_ns() - from;
	sb_fd_close(&sv[0]);
	if (waitpid(pid, NULL, 0) != pid)
		abort();
	return DURABLE / (from / 1e9);
}

int main(int argc, char **argv)
{
	double a[ROUNDS];
	double d[ROUNDS];
	double v[ROUNDS];

	if (argc < 2)
		return 2;
	for (int i = 0; i < ROUNDS; i++) {
		struct place p;

		place_make(&p);
		d[i] = durable(&p, argv[1]);
		a[i] = append(&p);
		v[i] = verify(&p);
		place_done(&p);
	}
	bench_report("audit_append", "records/s", 0, a, ROUNDS);
	bench_report("audit_durable_64", "records/s", 0, d, ROUNDS);
	bench_report("audit_verify", "records/s", 0, v, ROUNDS);
	return 0;
}
