#include "snaps.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "audit_note.h"
#include "audit_text.h"
#include "base/num.h"
#include "cli.h"
#include "core/plan.h"
#include "os/spawn.h"
#include "session_text.h"
#include "snapshot/helper.h"
#include "state/session_record.h"

void snaps_call_init(struct snaps_call *c, const char *verb)
{
	*c = (struct snaps_call){ .sock = -1, .out = -1 };
	c->argv[c->n++] = "sendbox-snapshot";
	c->argv[c->n++] = verb;
}

int snaps_word(struct snaps_call *c, const char *word)
{
	if (c->n + 1 >= SNAPS_ARGS)
		return -E2BIG;
	c->argv[c->n++] = word;
	return 0;
}

int snaps_pair(struct snaps_call *c, const char *option, const char *value)
{
	int r = snaps_word(c, option);

	return r < 0 ? r : snaps_word(c, value);
}

bool snaps_to_terminal(void)
{
	return isatty(STDOUT_FILENO) == 1;
}

static int open_store(const struct cli_dirs *d, struct sb_err *err)
{
	sb_autofd int state = open(d->d.state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd;

	if (state < 0)
		return sb_err_set(err, -errno, "cannot open %s: %s", d->d.state, strerror(errno));
	fd = openat(state, "snapshots", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno == ENOENT && (mkdirat(state, "snapshots", 0700) == 0 || errno == EEXIST))
		fd = openat(state, "snapshots", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? sb_err_set(err, -errno, "cannot open %s/snapshots: %s", d->d.state, strerror(errno))
		      : fd;
}

static int status_of(pid_t pid, struct sb_err *err)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return sb_err_set(err, -errno, "waitpid: %s", strerror(errno));
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	return sb_err_set(err, -EIO, "sendbox-snapshot was killed by signal %d", WTERMSIG(status));
}

int snaps_run(const struct cli_dirs *d, const struct snaps_call *c, pid_t *ret_pid, struct sb_err *err)
{
	struct sb_spawn_fd fds[SNAP_TREES_MAX + 4];
	sb_autofd int store = open_store(d, err);
	const char *tz = getenv("TZ");
	char zone[300];
	char path[4200];
	const char *env[] = { NULL, NULL };
	size_t n = 0;
	pid_t pid = -1;
	int r;

	if (store < 0)
		return store;
	if (tz && strlen(tz) < sizeof(zone) - 4) {
		(void)snprintf(zone, sizeof(zone), "TZ=%s", tz);
		env[0] = zone;
	}
	r = snprintf(path, sizeof(path), "%s/sendbox-snapshot", d->d.libexec);
	if (r < 0 || (size_t)r >= sizeof(path) || c->n_trees > SNAP_TREES_MAX)
		return sb_err_set(err, -ENAMETOOLONG, "path too long: %s", d->d.libexec);
	fds[n++] = (struct sb_spawn_fd){ store, SNAP_STORE_FD };
	if (c->out >= 0 || fcntl(STDOUT_FILENO, F_GETFD) >= 0)
		fds[n++] = (struct sb_spawn_fd){ c->out >= 0 ? c->out : STDOUT_FILENO, STDOUT_FILENO };
	if (fcntl(STDERR_FILENO, F_GETFD) >= 0)
		fds[n++] = (struct sb_spawn_fd){ STDERR_FILENO, STDERR_FILENO };
	if (c->sock >= 0)
		fds[n++] = (struct sb_spawn_fd){ c->sock, SNAP_SOCK_FD };
	for (size_t i = 0; i < c->n_trees; i++)
		fds[n++] = (struct sb_spawn_fd){ c->trees[i], SNAP_TREE_FD + (int)i };
	(void)fflush(stdout);
	r = sb_spawn_start(&(struct sb_spawn){ .path = path, .argv = c->argv, .env = env, .fds = fds, .n_fds = n,
					       .deaf = c->deaf },
			   &pid, NULL, err);
	if (r < 0)
		return r;
	if (c->lasts) {
		*ret_pid = pid;
		return 0;
	}
	return status_of(pid, err);
}

/* @real has no links; a session that shares a folder above may put one there in this moment. */
static int open_real(const char *real, int flags)
{
	const struct open_how how = { .flags = (unsigned int)(flags | O_DIRECTORY | O_CLOEXEC), .resolve = RESOLVE_NO_SYMLINKS };

	return (int)syscall(SYS_openat2, AT_FDCWD, real, &how, sizeof(how));
}

/* A folder of the caller's that a session closed is opened: that is what the snapshots are for. */
static int open_tree(const char *real)
{
	int fd = open_real(real, O_RDONLY);
	sb_autofd int closed = fd < 0 && errno == EACCES ? open_real(real, O_PATH) : -1;
	char path[40];
	struct stat st;

	if (closed < 0)
		return fd;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", closed);
	if (fstat(closed, &st) < 0 || chmod(path, (st.st_mode & 07777) | 0700) < 0) {
		errno = EACCES;
		return -1;
	}
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int snaps_tree(const struct cli_dirs *d, const char *path, char *real, struct sb_err *err)
{
	const char *const own[] = { d->d.config, d->d.state, d->d.cache, d->d.run };
	int fd;

	if (!realpath(path, real))
		return sb_err_set(err, -errno, "\"%.300s\": %s", path, strerror(errno));
	for (size_t i = 0; i < SB_ARRAY_LEN(own); i++)
		if (sb_path_within(own[i], real) || sb_path_within(real, own[i]))
			return sb_err_set(err, -EINVAL, "\"%.200s\" holds or lies in sendbox's own state (%.200s): "
					  "take a subfolder", real, own[i]);
	fd = open_tree(real);
	return fd < 0 ? sb_err_set(err, -errno, "\"%.300s\": %s", real, strerror(errno)) : fd;
}

int snaps_note(const struct cli_dirs *d, const char *action, const char *subject, const char *id,
	       const char *session, struct sb_err *err)
{
	struct sb_audit_event e = { .kind = SB_AUDIT_SNAPSHOT, .action = action, .subject = subject };

	sb_audit_put(&e, "snapshot", id);
	sb_audit_put(&e, "of_session", session);
	return audit_note(&d->d, &e, 1, err);
}

/* --- sessions --- */

void snaps_of_done(struct snaps_of *s)
{
	free(s->path);
	s->path = NULL;
}

static bool has_before(const struct session_record *r)
{
	for (size_t i = 0; i < r->n_snapshots; i++)
		if (r->snapshots[i].before[0])
			return true;
	return false;
}

struct earlier {
	const struct session_record *than;
	size_t later; /* that have none */
	uint64_t started_ns;
	char id[33];
};

static int on_session(void *arg, const struct session_record *r)
{
	struct earlier *e = arg;

	if (r->kind != SESSION_COMMAND || !r->project || !e->than->project || strcmp(r->project, e->than->project) != 0)
		return 0;
	if (!has_before(r)) {
		e->later++;
		return 0;
	}
	e->started_ns = r->started_ns;
	sb_hex_write(r->id, sizeof(r->id), e->id);
	return 1;
}

/* The last session of a folder took no snapshots, or never began: the last one that has some, by name. */
static int take_earlier(struct state *s, struct session_record *rec, struct sb_err *err)
{
	struct earlier e = { .than = rec };
	char when[32];
	int r = session_record_each(s, on_session, &e, err);

	if (r != 1)
		return r;
	session_record_done(rec);
	*rec = (struct session_record){ 0 };
	audit_time(e.started_ns, when);
	cli_error("session %.12s, from %s: %zu later one%s of this folder ha%s no snapshots", e.id, when, e.later,
		  e.later == 1 ? "" : "s", e.later == 1 ? "s" : "ve");
	return session_record_get(s, e.id, NULL, rec, err);
}

int snaps_session(const struct cli_dirs *d, const char *session, const char *path, struct snaps_of **ret,
		  size_t *ret_n, struct sb_err *err)
{
	sb_autostate struct state *s = NULL;
	sb_autosession struct session_record rec = { 0 };
	struct snaps_of *v;
	size_t n = 0;
	int r = state_open(&d->d, &s, err);

	if (r == 0)
		r = session_text_find(s, session, path, &rec, err);
	if (r == 0 && !session && !has_before(&rec))
		r = take_earlier(s, &rec, err);
	if (r < 0)
		return r;
	v = calloc(rec.n_snapshots + 1, sizeof(*v));
	if (!v)
		return sb_err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < rec.n_snapshots; i++) {
		const struct session_snapshot *x = &rec.snapshots[i];

		if (!x->before[0])
			continue;
		(void)snprintf(v[n].before, sizeof(v[n].before), "%s", x->before);
		(void)snprintf(v[n].after, sizeof(v[n].after), "%s", x->after);
		(void)snprintf(v[n].quarantined, sizeof(v[n].quarantined), "%s", x->quarantined);
		sb_hex_write(rec.id, sizeof(rec.id), v[n].session);
		v[n].running = rec.outcome == SESSION_RUNNING;
		v[n].path = strdup(x->source);
		if (v[n].path)
			n++;
	}
	if (n == 0) {
		char hex[33];

		free(v);
		sb_hex_write(rec.id, sizeof(rec.id), hex);
		return sb_err_set(err, -ENODATA, "there are no snapshots of session %.12s: it shared nothing "
				  "read-write, or they were turned off", hex);
	}
	*ret = v;
	*ret_n = n;
	return 0;
}
