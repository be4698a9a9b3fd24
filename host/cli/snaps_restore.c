/*
 * A restore on record: sendbox-snapshot says what it would do and waits; the record is written; it may go
 * on. Without the record nothing is changed. What came of it is a second record.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "audit_note.h"
#include "base/fd.h"
#include "base/num.h"
#include "cli.h"
#include "snaps.h"
#include "snapshot/helper.h"

#define PATHS_MAX 4096 /* bytes of them on record */

struct acting {
	const struct cli_dirs *d;
	const struct snaps_act *a;
	char saved[65];
	char words[PATHS_MAX];
	size_t words_len;
	bool allowed; /* it is on record, and may have changed something */
	struct sb_err *err;
};

static void note_paths(struct acting *x)
{
	for (size_t i = 0; i < x->a->n_paths; i++) {
		size_t n = strlen(x->a->paths[i]) + 1;

		if (n > sizeof(x->words) - x->words_len)
			return;
		memcpy(x->words + x->words_len, x->a->paths[i], n);
		x->words_len += n;
	}
}

static struct sb_audit_event event_of(const struct acting *x, const char *action)
{
	struct sb_audit_event e = { .kind = SB_AUDIT_SNAPSHOT, .action = action, .subject = x->a->subject };

	if (x->a->in)
		memcpy(e.session, x->a->in, sizeof(e.session));
	sb_audit_put(&e, "snapshot", x->a->snapshot);
	sb_audit_put(&e, "of_session", x->a->session);
	sb_audit_put(&e, "saved", x->saved);
	return e;
}

static int on_plan(struct acting *x, const struct snap_msg_plan *m, int sock)
{
	const uint32_t go = 1;
	struct sb_audit_event e;
	int r;

	x->saved[0] = '\0';
	for (size_t i = 0; i < sizeof(m->saved); i++)
		if (m->saved[i] != 0) /* else what is there could not be kept */
			sb_hex_write(m->saved, sizeof(m->saved), x->saved);
	e = event_of(x, x->a->action);
	sb_audit_put_bool(&e, "force", x->a->force);
	sb_audit_put_num(&e, "restore", m->restore);
	sb_audit_put_num(&e, "remove", m->remove);
	if (x->words_len > 0) {
		sb_audit_put_list(&e, "paths", x->words, x->words_len);
		sb_audit_put_num(&e, "paths_count", x->a->n_paths + x->a->more_paths);
	}
	r = audit_note(&x->d->d, &e, 1, x->err);
	if (r < 0)
		return r;
	if (x->a->saved)
		memcpy(x->a->saved, x->saved, sizeof(x->saved));
	x->allowed = true;
	return send(sock, &go, sizeof(go), MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* @m: NULL: it ended without an account. */
static int on_end(struct acting *x, const struct snap_msg_end *m)
{
	struct sb_audit_event e = event_of(x, "restored");

	if (m) {
		sb_audit_put_num(&e, "restored", m->restored);
		sb_audit_put_num(&e, "removed", m->removed);
		sb_audit_put_num(&e, "conflicts", m->conflicts);
		sb_audit_put_num(&e, "yours", m->yours);
		sb_audit_put_num(&e, "lost", m->lost);
		sb_audit_put_num(&e, "failed", m->failed);
	}
	if (!m || m->failed > 0)
		e.verdict = SB_AUDIT_ERROR;
	return audit_note(&x->d->d, &e, 1, x->err);
}

static int listen_to(struct acting *x, int sock)
{
	union {
		uint32_t type;
		struct snap_msg_plan plan;
		struct snap_msg_end end;
	} m;
	int r = 0;

	for (;;) {
		ssize_t n = recv(sock, &m, sizeof(m), 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return r;
		if (n == (ssize_t)sizeof(m.plan) && m.type == SNAP_MSG_PLAN && !x->allowed)
			r = on_plan(x, &m.plan, sock);
		else if (n == (ssize_t)sizeof(m.end) && m.type == SNAP_MSG_END)
			return x->allowed ? on_end(x, &m.end) < 0 ? -EIO : 1 : 1;
		else
			r = sb_err_set(x->err, -EBADMSG, "sendbox-snapshot: no answer that is known");
		if (r < 0)
			return r;
	}
}

/* @killed: whether it was. */
static int wait_for(pid_t pid, bool *killed, struct sb_err *err)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return sb_err_set(err, -errno, "waitpid: %s", strerror(errno));
	*killed = !WIFEXITED(status);
	return WIFEXITED(status) ? WEXITSTATUS(status)
				 : sb_err_set(err, -EIO, "sendbox-snapshot was killed by signal %d",
					      WTERMSIG(status));
}

static int once(struct acting *x, struct snaps_call *c, bool *killed)
{
	struct sb_err later = { 0 };
	pid_t pid = -1;
	int sv[2];
	int status;
	int r;

	x->allowed = false;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		return sb_err_set(x->err, -errno, "socketpair: %s", strerror(errno));
	c->sock = sv[1];
	r = snaps_run(x->d, c, &pid, x->err);
	sb_fd_close(&sv[1]);
	if (r == 0)
		r = listen_to(x, sv[0]);
	sb_fd_close(&sv[0]); /* who waits for an answer sees that, and changes nothing */
	if (pid <= 0)
		return r;
	status = wait_for(pid, killed, r < 0 ? &later : x->err);
	if (r == 0 && x->allowed && on_end(x, NULL) < 0)
		r = -EIO;
	return r < 0 ? r : status;
}

int snaps_restore(const struct cli_dirs *d, struct snaps_call *c, const struct snaps_act *a, struct sb_err *err)
{
	struct acting x = { .d = d, .a = a, .err = err };
	bool killed = false;
	int r = snaps_word(c, "--ask");

	if (r < 0)
		return sb_err_set(err, r, "too many words");
	note_paths(&x);
	c->lasts = true;
	r = once(&x, c, &killed);
	if (!killed || !c->deaf)
		return r;
	*err = (struct sb_err){ 0 };
	return once(&x, c, &killed); /* it goes on where the journal says */
}
