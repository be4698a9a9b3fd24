/*
 * Theory of operation: one build is one directory in <cache>/builds with the upper layer that the
 * steps share, the log of what they said and, at the end, the upper layer as an archive. Each step is
 * a whole session of its own over the same upper layer, so nothing of one step (a daemon, a mount)
 * lives in the next. Signals that ask to stop are blocked while a build is under way: a session takes
 * them from there and ends, and between sessions they are looked for, so every way out passes
 * env_build_end.
 */
#include "environment/build.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/cli.h"
#include "cli/launch.h"
#include "os/rmtree.h"
#include "state/upper.h"

#define LOG "log"
#define MAX_LAYER_BYTES (64ULL << 30)

bool env_stopped(void)
{
	sigset_t s;

	return sigpending(&s) == 0 && (sigismember(&s, SIGINT) || sigismember(&s, SIGTERM) ||
				       sigismember(&s, SIGHUP) || sigismember(&s, SIGQUIT));
}

/* ---- the directory ---- */

static bool is_namespace(const struct environment_what *w)
{
	return w->runtime && strcmp(w->runtime, "namespace") == 0;
}

static int make_upper(struct env_build *b, struct sb_err *err)
{
	uint64_t bytes = b->w->disk_bytes ? b->w->disk_bytes : UPPER_DISK_BYTES;

	return upper_make(b->path, is_namespace(b->w) ? SB_PROVIDER_NAMESPACE : SB_PROVIDER_MICROVM,
			  bytes, b->upper, &b->kind, NULL, err);
}

int env_build_begin(struct env_build *b, const char *name, struct sb_err *err)
{
	sb_autofree char *top = NULL;
	int r;

	if (asprintf(&top, "%s/builds", b->d->cache) < 0 ||
	    asprintf(&b->path, "%s/%s", top, name) < 0)
		return sb_err_set(err, -ENOMEM, "out of memory");
	b->parent = open(top, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (b->parent < 0)
		return sb_err_set(err, -errno, "%s: %s", top, strerror(errno));
	r = sb_rmtree(b->parent, name); /* of one that was killed */
	if (r < 0)
		return sb_err_set(err, r, "cannot remove what is left in %s: %s", b->path,
				  strerror(-r));
	if (mkdirat(b->parent, name, 0700) < 0)
		return sb_err_set(err, -errno, "%s: %s", b->path, strerror(errno));
	b->name = name;
	b->dir = openat(b->parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (b->dir >= 0)
		b->log = openat(b->dir, LOG, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
	if (b->dir < 0 || b->log < 0)
		return sb_err_set(err, -errno, "%s: %s", b->path, strerror(errno));
	r = env_hosts(b->w, &b->hosts);
	if (r < 0)
		return sb_err_set(err, r, "cannot list the build's hosts: %s", strerror(-r));
	r = env_variables(b->w, &b->env);
	if (r < 0)
		return sb_err_set(err, r, "out of memory");
	return make_upper(b, err);
}

void env_build_end(struct env_build *b)
{
	sb_fd_close(&b->log);
	sb_fd_close(&b->dir);
	if (b->name) {
		int r = sb_rmtree(b->parent, b->name);

		if (r < 0)
			cli_error("cannot remove %s: %s", b->path, strerror(-r));
	}
	sb_fd_close(&b->parent);
	free(b->hosts);
	sb_free_list(&b->env);
	free(b->path);
	b->hosts = NULL;
	b->path = NULL;
	b->name = NULL;
}

/* ---- sessions ---- */

static void set_options(const struct env_build *b, char **argv, struct run_options *o)
{
	const struct environment_what *w = b->w;

	*o = (struct run_options){ .runtime = w->runtime, .cpus = w->cpus,
				   .memory_bytes = w->memory_bytes, .profile = "build",
				   .no_config = true, .argv = argv };
	if (is_namespace(w))
		return;
	o->accel = w->accel;
	o->kernel = w->kernel;
}

static void set_target(const struct env_build *b, struct launch_target *t)
{
	const struct image *i = b->w->base;

	*t = (struct launch_target){ .layers = b->layers, .n_layers = b->n_layers,
				     .upper = b->kind, .upper_path = b->upper,
				     .env = (const char *const *)b->env };
	t->image = i->form == IMAGE_FORM_HOST  ? SB_IMAGE_HOST
		   : i->form == IMAGE_FORM_DIR ? SB_IMAGE_DIR : SB_IMAGE_LAYERS;
	t->image_path = i->form == IMAGE_FORM_DIR ? i->path : NULL;
}

static void note_refused(void *arg, const char *text)
{
	struct env_build *b = arg;
	size_t n = strlen(b->refused);

	(void)snprintf(b->refused + n, sizeof(b->refused) - n, "%s\n", text);
}

/* A package manager tells a refusal as a server that does not answer. */
static void tell_refused(const struct env_build *b)
{
	for (const char *p = b->refused; *p;) {
		size_t n = strcspn(p, "\n");

		cli_error("%.*s", (int)n, p);
		p += n + (p[n] == '\n');
	}
}

/* Return: status; -EINTR; -errno. */
static int session(struct env_build *b, const struct run_options *o, const struct launch_target *t,
		   const int io[3], struct sb_err *err)
{
	b->refused[0] = '\0';
	return env_session(o, t, io, note_refused, b, err);
}

int env_build_run(struct env_build *b, char **argv, bool own_io, struct sb_err *err)
{
	sb_autofd int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
	const int own[3] = { -1, -1, -1 };
	struct env_pour log = { .in = -1 };
	struct launch_target t;
	struct run_options o;
	int r;

	if (nothing < 0)
		return sb_err_set(err, -errno, "/dev/null: %s", strerror(errno));
	set_options(b, argv, &o);
	set_target(b, &t);
	t.builder = true;
	o.interactive = own_io && isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
	if (b->hosts[0]) {
		o.allow[o.n_allow++] = b->hosts;
		o.net_option = "allow-hosts";
	} else {
		o.no_network = true;
	}
	if (own_io) {
		r = session(b, &o, &t, own, err);
		tell_refused(b);
		return r;
	}
	r = env_pour_start(&log, b->log, ENV_MAX_LOG_BYTES, true, err);
	if (r == 0) {
		const int logged[3] = { nothing, log.in, log.in };

		r = session(b, &o, &t, logged, err);
		(void)env_pour_end(&log); /* a log that is cut fails nothing */
	}
	return r;
}

/* ---- steps ---- */

static void tell_failure(const struct env_build *b, const char *title, int status, off_t from)
{
	(void)fflush(stderr);
	cli_error("%s: failed with status %d", title, status);
	if (!b->w->verbose)
		env_show_tail(b->log, from);
	tell_refused(b);
}

/* Return: 1 = try the step again; 0 = give up; -errno. */
static int offer_shell(struct env_build *b, struct sb_err *err)
{
	char shell[] = "/bin/bash";
	char *argv[] = { shell, NULL };
	int r;

	if (!b->w->shell_on_failure || isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1)
		return 0;
	cli_error("a shell in what is there so far: leave it with \"exit\" to try the step again, "
		  "with \"exit 1\" to give up");
	r = env_build_run(b, argv, true, err);
	return r < 0 ? r : r == 0;
}

static int one_step(struct env_build *b, size_t i, size_t n, struct sb_err *err)
{
	char shell[] = "/bin/sh";
	char option[] = "-c";
	sb_autofree char *command = strdup(b->w->commands[i]);
	char *argv[] = { shell, option, command, NULL };
	struct env_watch watch;
	char title[4200];
	struct stat st;
	int r;

	if (!command || fstat(b->log, &st) < 0)
		return sb_err_set(err, -ENOMEM, "out of memory");
	(void)snprintf(title, sizeof(title), "[%zu/%zu] %.4000s", i + 1, n, command);
	env_watch_start(&watch, title, b->log, b->w->verbose, b->w->quiet);
	r = env_build_run(b, argv, false, err);
	env_watch_end(&watch);
	if (r > 0) {
		char line[160];

		env_one_line(title, line, sizeof(line));
		tell_failure(b, line, r, st.st_size);
		(void)sb_err_set(err, -EIO, "environment of %s: step %zu of %zu failed with status %d; "
				 "nothing was kept", b->w->agent, i + 1, n, r);
		return -EIO;
	}
	if (r == 0 && !b->w->quiet && !b->w->verbose && isatty(STDERR_FILENO) == 1) {
		char line[79];

		env_one_line(title, line, sizeof(line));
		(void)fprintf(stderr, "\u2714 %s\n", line);
	}
	return r;
}

int env_build_steps(struct env_build *b, struct sb_err *err)
{
	size_t n = 0;
	int r = 0;

	while (b->w->commands[n])
		n++;
	for (size_t i = 0; r == 0 && i < n;) {
		r = env_stopped() ? -EINTR : one_step(b, i, n, err);
		if (r == -EIO && b->w->shell_on_failure) {
			struct sb_err other = { 0 };
			int again = offer_shell(b, &other);

			if (again > 0) {
				*err = (struct sb_err){ 0 };
				r = 0;
				continue;
			}
			if (again == -EINTR)
				r = again;
		}
		i++;
	}
	return r;
}

int env_build_health(struct env_build *b, struct sb_err *err)
{
	struct env_watch watch;
	struct stat st;
	int r;

	if (!b->w->health || !b->w->health[0])
		return 0;
	if (fstat(b->log, &st) < 0)
		return sb_err_set(err, -errno, "%s: %s", b->path, strerror(errno));
	env_watch_start(&watch, "checking that it runs", b->log, b->w->verbose, b->w->quiet);
	r = env_build_run(b, (char **)(uintptr_t)b->w->health, false, err);
	env_watch_end(&watch);
	if (r <= 0)
		return r;
	tell_failure(b, "health check", r, st.st_size);
	return sb_err_set(err, -EIO, "environment of %s: its health check (%.200s) failed with status "
			  "%d; nothing was kept", b->w->agent, b->w->health[0], r);
}

/* ---- the result ---- */

static int export_upper(struct env_build *b, int out, struct sb_err *err)
{
	/* a sparse file takes no room of the disk, but of an archive */
	uint64_t max = 2 * (b->w->disk_bytes ? b->w->disk_bytes : UPPER_DISK_BYTES);
	struct launch_target t;
	struct run_options o;

	set_options(b, NULL, &o);
	set_target(b, &t);
	return env_export(&o, &t, out, b->log, max, "the builder", err);
}

int env_build_layer(struct env_build *b, struct sb_plan_layer *ret, struct sb_err *err)
{
	sb_autofd int tar = openat(b->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	struct env_watch watch;
	int r;

	if (tar < 0)
		return sb_err_set(err, -errno, "%s: %s", b->path, strerror(errno));
	env_watch_start(&watch, "saving", b->log, false, b->w->quiet);
	r = export_upper(b, tar, err);
	if (r == 0 && lseek(tar, 0, SEEK_SET) < 0)
		r = sb_err_set(err, -errno, "%s: %s", b->path, strerror(errno));
	if (r == 0)
		r = image_layer_from_tar(b->d, tar, MAX_LAYER_BYTES, ret, err);
	env_watch_end(&watch);
	return r;
}
