#include "run_snaps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/num.h"
#include "cli.h"
#include "run_snaps_i.h"
#include "snaps.h"
#include "state/session_record.h"

#define LINES_MAX 200
#define LINE_PATH 400 /* of a path; from the middle of longer ones something is left out */

/* A folder of the user's that the session may write to; files and our own folders are not. */
static bool is_subject(const struct run *r, const struct sb_plan_mount *m)
{
	const char *const own[] = { r->dirs.d.config, r->dirs.d.state, r->dirs.d.cache, r->dirs.d.run };

	if (m->mode != SB_MOUNT_RW || m->file)
		return false;
	for (size_t i = 0; i < SB_ARRAY_LEN(own); i++)
		if (sb_path_within(own[i], m->host) || sb_path_within(m->host, own[i]))
			return false;
	return true;
}

/* Whether a value of that layer is from a file of the project, or one that it extends. */
static bool is_inner(enum cfg_layer layer)
{
	return layer == CFG_ORG || layer == CFG_PROJECT || layer == CFG_AGENT;
}

const char *run_snaps_changed(const struct run *r)
{
	const struct plan_input in = launch_input(r);

	return r->opt->plan ? "keep" : conf_str(&in, "guarded_paths.changed", "keep");
}

/* Whether guarded paths that the session changes are put back, or asked for. */
static bool reviews(const struct run *r)
{
	return strcmp(run_snaps_changed(r), "keep") != 0;
}

static bool is_command(const struct run *r)
{
	return !r->plan->builder && r->plan->task == SB_TASK_COMMAND;
}

static bool enabled(const struct run *r)
{
	const struct plan_input in = launch_input(r);
	const struct cfg_value *v;

	if (r->opt->no_snapshot || !is_command(r))
		return false;
	if (r->opt->plan || conf_bool(&in, "snapshots.enabled", true))
		return true;
	/* a project's file does not turn off what the review of guarded paths needs */
	v = cfg_get(in.conf->cfg, "snapshots.enabled");
	return v && is_inner(v->origin.layer) && reviews(r);
}

static size_t subjects(const struct run *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->plan->n_mounts; i++)
		n += is_subject(r, &r->plan->mounts[i]);
	return n;
}

bool run_snaps_wanted(const struct run *r)
{
	return enabled(r) && subjects(r) > 0;
}

int run_snaps_check(const struct run *r, struct sb_err *err)
{
	const struct plan_input in = launch_input(r);
	char place[300];
	char off[300] = "--no-snapshot";

	if (!is_command(r) || !reviews(r) || enabled(r) || subjects(r) == 0)
		return 0;
	if (!r->opt->no_snapshot) {
		conf_where(&in, conf_set(&in, "snapshots.enabled"), place, sizeof(place));
		(void)snprintf(off, sizeof(off), "snapshots.enabled: false (%.260s)", place);
	}
	conf_where(&in, conf_set(&in, "guarded_paths.changed"), place, sizeof(place));
	return sb_err_set(err, -EINVAL, "%s and guarded_paths.changed: %s (%.200s) exclude each other: without snapshots nobody "
			  "knows which guarded paths the session changes; nothing was run. Take snapshots, or say "
			  "guarded_paths.changed: keep", off, run_snaps_changed(r), place);
}

/* With "keep" the user may leave guarded paths out: that they are not looked at is said before, not found out later. */
static void tell_unseen(struct run *r)
{
	const struct plan_input in = launch_input(r);
	const struct cfg_value *v = NULL;
	bool left_out = false;

	if (!is_command(r) || subjects(r) == 0)
		return;
	if (!enabled(r)) {
		launch_say(r, "without snapshots the guarded paths that the session changes are not looked at");
		return;
	}
	for (size_t i = 0; !r->opt->plan && !reviews(r) && (v = cfg_item(in.conf->cfg, "snapshots.exclude", i)); i++)
		left_out = left_out || !is_inner(v->origin.layer);
	if (left_out)
		launch_say(r, "what snapshots.exclude of your configuration leaves out is not looked at for guarded paths");
}

/* A file that is shared by itself has no folder to be captured: what undo cannot do is said before, not after. */
static void tell_files(struct run *r)
{
	char text[700];

	for (size_t i = 0; enabled(r) && i < r->plan->n_mounts; i++) {
		const struct sb_plan_mount *m = &r->plan->mounts[i];

		if (m->mode != SB_MOUNT_RW || !m->file)
			continue;
		(void)snprintf(text, sizeof(text), "\"%.300s\" is shared read-write by itself, and has no snapshot: diff, "
			       "report and undo do not know it. Share its folder for that, or keep a copy", m->host);
		launch_say(r, text);
	}
}

static void drop(char **v, size_t n)
{
	while (n > 0)
		free(v[--n]);
	free(v);
}

static void done(struct run *r)
{
	struct run_snaps *s = r->snaps;

	sb_io_del(&s->io);
	sb_fd_close(&s->sock); /* it sees that and ends */
	while (s->pid > 0 && waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	for (size_t i = 0; i < s->n; i++) {
		sb_fd_close(&s->v[i].fd);
		drop(s->v[i].paths, s->v[i].n_paths);
	}
	drop(s->lines, s->n_lines);
	free(s);
	r->snaps = NULL;
}

static int ask(struct run *r, enum snap_op op, size_t tree)
{
	struct snap_request q = { .op = op, .tree = (uint32_t)tree };
	char hex[33];
	ssize_t n;

	sb_hex_write(r->plan->session, sizeof(r->plan->session), hex);
	(void)snprintf(q.label, sizeof(q.label), "%s", hex);
	do
		n = send(r->snaps->sock, &q, sizeof(q), MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

/* @text: taken. */
static void append(char ***v, size_t *n, char *text)
{
	void *more = text ? realloc(*v, (*n + 1) * sizeof(char *)) : NULL;

	if (!more) {
		free(text);
		return;
	}
	*v = more;
	(*v)[(*n)++] = text;
}

static void note_guarded(struct run_snaps *s, const struct snap_msg_guarded *m)
{
	struct run_snap *v = &s->v[s->at];
	char *line = NULL;
	const size_t len = strlen(m->path);
	const bool cut = len > LINE_PATH;

	if (v->n_paths < LINES_MAX)
		append(&v->paths, &v->n_paths, strdup(m->path));
	if (s->n_lines >= LINES_MAX ||
	    asprintf(&line, "%c %.*s%s%s (%.39s)", (char)m->status, cut ? LINE_PATH / 2 : LINE_PATH, m->path, cut ? "..." : "",
		     cut ? m->path + len - LINE_PATH / 2 : "", m->what) < 0)
		return;
	append(&s->lines, &s->n_lines, line);
}

/* Return: 1: a DONE, in @m; 0: something else, or nothing yet; -errno. */
static int answer(struct run_snaps *s, int flags, struct snap_msg_done *m)
{
	static union {
		uint32_t type;
		struct snap_msg_done done;
		struct snap_msg_guarded guarded;
	} msg;
	ssize_t n = recv(s->sock, &msg, sizeof(msg), flags);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -ECONNRESET;
	if (n == (ssize_t)sizeof(msg.guarded) && msg.type == SNAP_MSG_GUARDED) {
		msg.guarded.what[sizeof(msg.guarded.what) - 1] = '\0';
		msg.guarded.path[sizeof(msg.guarded.path) - 1] = '\0';
		note_guarded(s, &msg.guarded);
		return 0;
	}
	if (n != (ssize_t)sizeof(msg.done) || msg.type != SNAP_MSG_DONE)
		return -EBADMSG;
	msg.done.text[sizeof(msg.done.text) - 1] = '\0';
	*m = msg.done;
	return 1;
}

static void give_up(struct run *r, int code, const char *text)
{
	struct sb_err err = { 0 };

	(void)sb_err_set(&err, code, "%.350s; nothing was run. Make it possible, leave places out with "
			 "snapshots.exclude, or run with --no-snapshot: then there is no undo",
			 text[0] ? text : "the snapshot before the session: sendbox-snapshot ended");
	(void)launch_fail(r, SB_FAIL_INTERNAL, &err, code);
	sb_io_del(&r->snaps->io);
	sb_loop_stop(r->loop, code);
}

static void remember(struct run *r)
{
	const struct run_snaps *s = r->snaps;
	struct sb_err err = { 0 };

	for (size_t i = 0; r->memory && i < s->n; i++) {
		const struct run_snap *v = &s->v[i];
		int k = 0;

		if (v->before[0])
			k = session_record_snapshot(r->memory, r->plan->session, v->mount->host, v->before, v->after, &err);
		if (k == 0 && v->before[0] && v->made[0])
			k = session_record_quarantine(r->memory, r->plan->session, v->mount->host, v->made, &err);
		if (k < 0) {
			launch_say(r, err.text);
			return;
		}
	}
}

static void on_answer(struct sb_io *io, uint32_t events)
{
	struct run *r = io->owner;
	struct run_snaps *s = r->snaps;
	struct snap_msg_done m;
	int k = answer(s, MSG_DONTWAIT, &m);

	(void)events;
	if (k == 0)
		return;
	if (k < 0 || m.code < 0) {
		give_up(r, k < 0 ? k : m.code, k < 0 ? "" : m.text);
		return;
	}
	sb_hex_write(m.id, sizeof(m.id), s->v[s->answered].before);
	if (++s->answered < s->n)
		return;
	sb_io_del(&s->io);
	remember(r); /* it may be killed, and can be undone then */
	if (sb_ipc_send(r->sock, SB_IPC_GO, NULL, 0, NULL, 0) < 0)
		sb_debug("the monitor is gone");
}

static int open_trees(struct run *r, struct sb_err *err)
{
	struct run_snaps *s = r->snaps;

	for (size_t i = 0; i < r->plan->n_mounts; i++) {
		const struct sb_plan_mount *m = &r->plan->mounts[i];
		struct run_snap *v = &s->v[s->n];
		struct stat st;

		if (!is_subject(r, m) || s->n >= SNAP_TREES_MAX)
			continue;
		v->mount = m;
		v->fd = open(m->host, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (v->fd < 0 || fstat(v->fd, &st) < 0)
			return sb_err_set(err, -errno, "snapshot: \"%.300s\": %s", m->host, strerror(errno));
		s->n++;
		if (st.st_dev != m->dev || st.st_ino != m->ino)
			return sb_err_set(err, -ESTALE, "snapshot: \"%.300s\" is another folder than it was a "
					  "moment ago", m->host);
	}
	return 0;
}

static int add_rules(const struct run *r, struct snaps_call *c)
{
	const struct plan_input in = launch_input(r);
	const bool all = reviews(r);
	const struct cfg_value *v;
	int k = 0;

	for (size_t i = 0; k == 0 && !r->opt->plan && (v = cfg_item(in.conf->cfg, "snapshots.exclude", i)); i++)
		/* what a project leaves out the review sees all the same; and what anybody does when it is to act */
		k = snaps_pair(c, all || is_inner(v->origin.layer) ? "--exclude-inner" : "--exclude", conf_text(&in, v));
	return k;
}

static int start(struct run *r, struct sb_err *err)
{
	struct run_snaps *s = r->snaps;
	struct snaps_call c;
	int trees[SNAP_TREES_MAX];
	int sv[2];
	int k = 0;

	snaps_call_init(&c, "serve");
	for (size_t i = 0; k == 0 && i < s->n; i++) {
		trees[i] = s->v[i].fd;
		k = snaps_pair(&c, "--path", s->v[i].mount->host);
	}
	if (k == 0)
		k = add_rules(r, &c);
	if (k < 0)
		return sb_err_set(err, k, "snapshots: too many rules");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		return sb_err_set(err, -errno, "socketpair: %s", strerror(errno));
	s->sock = sv[0];
	c.sock = sv[1];
	c.trees = trees;
	c.n_trees = s->n;
	c.lasts = true;
	c.deaf = true; /* it ends when the socket does */
	k = snaps_run(&r->dirs, &c, &s->pid, err);
	sb_fd_close(&sv[1]);
	return k;
}

int run_snaps_begin(struct run *r, struct sb_err *err)
{
	int k;

	tell_files(r);
	tell_unseen(r);
	if (!run_snaps_wanted(r))
		return 0;
	r->snaps = calloc(1, sizeof(*r->snaps));
	if (!r->snaps)
		return sb_err_set(err, -ENOMEM, "out of memory");
	r->snaps->sock = -1;
	k = open_trees(r, err);
	if (k == 0)
		k = start(r, err);
	for (size_t i = 0; k == 0 && i < r->snaps->n; i++) {
		k = ask(r, SNAP_OP_BEFORE, i);
		if (k < 0)
			(void)sb_err_set(err, k, "sendbox-snapshot: %s", strerror(-k));
	}
	if (k == 0)
		k = sb_io_set(r->loop, &r->snaps->io, r->snaps->sock, EPOLLIN, on_answer, r);
	return k;
}

/* --- afterwards --- */

/* Return: 0; -errno: it ended, or could not take it; *@m has the text. */
static int after_one(struct run *r, size_t i, struct snap_msg_done *m)
{
	int k = ask(r, SNAP_OP_AFTER, i);

	r->snaps->at = i;
	while (k == 0)
		k = answer(r->snaps, 0, m);
	if (k < 0)
		return k;
	if (m->code == 0 && !m->staged)
		sb_hex_write(m->id, sizeof(m->id), r->snaps->v[i].after);
	return 0;
}

/* Nothing could be compared: of @v nothing is known. */
static void unknown(struct run *r, struct run_snap *v, const char *why)
{
	char text[1000];

	v->unknown = true;
	(void)snprintf(text, sizeof(text), "no snapshot of %.200s after the session: %.400s. What it changed is not known, of "
		       "guarded paths neither; diff and undo compare with what is there when they run, and fail while "
		       "this lasts", v->mount->host, why);
	launch_say(r, text);
}

static void count(struct run_snaps *s, struct run_snap *v, const struct snap_msg_done *m)
{
	v->guarded = m->guarded;
	s->guarded += m->guarded;
	s->added += m->added;
	s->deleted += m->deleted;
	s->modified += m->modified;
}

static void after(struct run *r)
{
	struct run_snaps *s = r->snaps;
	int k = 0;

	for (size_t i = 0; i < s->n; i++) {
		struct snap_msg_done m = { 0 };
		char text[1000];

		if (k == 0)
			k = after_one(r, i, &m);
		if (k < 0 || m.code < 0) {
			unknown(r, &s->v[i], k < 0 ? "sendbox-snapshot ended" : m.text);
			continue;
		}
		count(s, &s->v[i], &m);
		if (!m.staged)
			continue;
		(void)snprintf(text, sizeof(text), "the snapshot after the session could not be written: %.400s. Guarded paths "
			       "were compared all the same; diff and undo compare with what is there when they run, and "
			       "fail while this lasts", m.text);
		launch_say(r, text);
	}
}

void run_snaps_again(struct run *r, size_t i)
{
	struct snap_msg_done m = { 0 };

	if (after_one(r, i, &m) < 0 || m.code < 0 || m.staged)
		launch_say(r, r->snaps->v[i].after[0]
				      ? "no snapshot after the quarantine: diff and report show what is in it, too"
				      : "no snapshot after the quarantine either");
	remember(r);
}

void run_snaps_end(struct run *r)
{
	struct run_snaps *s = r->snaps;

	if (!s)
		return;
	sb_io_del(&s->io);
	if (s->answered == s->n && s->sock >= 0) { /* else nothing was run */
		after(r);
		remember(r);
		run_snaps_review(r);
	}
	done(r);
}
