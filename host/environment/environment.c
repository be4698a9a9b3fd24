/*
 * Theory of operation. The table of the state's database says which layers an environment has; the
 * layers are files in the cache, named by content. What the table says counts only while all of them
 * are there and unchanged: a cache that was cleared means that it is built again. Who builds holds
 * the lock <cache>/builds/KEY.lock, so that of two that want the same one builds; the other looks
 * again when it has the lock, and finds it. Lock files stay: removing one would let two hold it.
 */
#include "environment/environment.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "cli/cli.h"
#include "environment/build.h"

void environment_ready_done(struct environment_ready *e)
{
	for (size_t i = 0; i < e->n_layers; i++)
		image_layer_done(&e->layers[i]);
	e->n_layers = 0;
}

/* ---- what is there ---- */

static int add_base(const struct environment_what *w, struct environment_ready *e)
{
	struct sb_plan_layer *l = &e->layers[0];

	if (w->base->form != IMAGE_FORM_EROFS)
		return 0;
	*l = w->base->layer;
	l->path = strdup(w->base->layer.path);
	if (!l->path)
		return -ENOMEM;
	e->n_layers = 1;
	return 0;
}

/* Return: 0; -ENOENT: not there, or a part of it is gone; -errno. */
static int find(const struct sb_dirs *d, struct state *s, const struct environment_what *w,
		const uint8_t key[32], struct environment_ready *ret, struct sb_err *err)
{
	struct environment e = { 0 };
	struct sb_err none = { 0 };
	int r = environment_get(s, key, &e, &none);

	if (r == -ENOENT)
		return r;
	if (r < 0)
		return sb_err_set(err, r, "%s", none.text);
	memcpy(ret->key, key, sizeof(ret->key));
	r = add_base(w, ret);
	for (size_t i = 0; r == 0 && i < e.n_layers; i++) {
		if (ret->n_layers == SB_PLAN_MAX_LAYERS)
			r = -E2BIG;
		else
			r = image_layer_find(d, e.layers[i], &ret->layers[ret->n_layers], &none);
		if (r == 0)
			ret->n_layers++;
	}
	ret->built_s = e.built_s;
	ret->bytes = e.bytes;
	environment_done(&e);
	if (r == 0)
		return 0;
	environment_ready_done(ret);
	return r == -ENOENT ? r : sb_err_set(err, r, "environment of %s: %s", w->agent,
					     none.text[0] ? none.text : strerror(-r));
}

static bool is_bare(const struct environment_what *w)
{
	return !w->commands || !w->commands[0];
}

static int only_base(const struct environment_what *w, struct environment_ready *ret,
		     struct sb_err *err)
{
	int r = add_base(w, ret);

	return r < 0 ? sb_err_set(err, r, "out of memory") : 0;
}

int environment_look(const struct sb_dirs *d, const struct environment_what *w,
		     struct environment_ready *ret, struct sb_err *err)
{
	sb_autostate struct state *s = NULL;
	uint8_t key[32];
	int r;

	*ret = (struct environment_ready){ 0 };
	r = environment_key(w, key, err);
	if (r == 0)
		r = state_open(d, &s, err);
	if (r == 0)
		r = find(d, s, w, key, ret, err);
	if (r == -ENOENT && is_bare(w))
		r = only_base(w, ret, err);
	return r;
}

/* ---- one at a time ---- */

struct lock {
	int fd;
	char name[2 * 32 + 8]; /* of the build's directory */
	sigset_t old;
	bool blocked;
};

static int open_lock(const struct sb_dirs *d, const char *name, int *ret, struct sb_err *err)
{
	sb_autofree char *top = NULL;
	sb_autofree char *path = NULL;

	if (asprintf(&top, "%s/builds", d->cache) < 0 ||
	    asprintf(&path, "%s/%s.lock", top, name) < 0)
		return sb_err_set(err, -ENOMEM, "out of memory");
	if (mkdir(top, 0700) < 0 && errno != EEXIST)
		return sb_err_set(err, -errno, "%s: %s", top, strerror(errno));
	*ret = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return *ret < 0 ? sb_err_set(err, -errno, "%s: %s", path, strerror(errno)) : 0;
}

/* Waiting ends with a signal as anything does. */
static int take_lock(const struct sb_dirs *d, const struct environment_what *w,
		     const uint8_t key[32], struct lock *l, struct sb_err *err)
{
	int r;

	sb_hex_write(key, 32, l->name);
	r = open_lock(d, l->name, &l->fd, err);
	if (r < 0)
		return r;
	if (flock(l->fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (!w->quiet)
		cli_error("the environment of %s is being built by another sendbox: waiting for it",
			  w->agent);
	while (flock(l->fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return sb_err_set(err, -errno, "lock: %s", strerror(errno));
	return 0;
}

static void block_signals(struct lock *l)
{
	sigset_t s;

	(void)sigemptyset(&s);
	(void)sigaddset(&s, SIGINT);
	(void)sigaddset(&s, SIGTERM);
	(void)sigaddset(&s, SIGHUP);
	(void)sigaddset(&s, SIGQUIT);
	l->blocked = sigprocmask(SIG_BLOCK, &s, &l->old) == 0;
}

/* What came meanwhile was taken by the build, which ended for it: its caller says so. */
static void drop_lock(struct lock *l)
{
	if (l->blocked) {
		const struct timespec now = { 0 };
		sigset_t s;

		(void)sigemptyset(&s);
		(void)sigaddset(&s, SIGINT);
		while (env_stopped() && sigtimedwait(&s, NULL, &now) > 0)
			continue;
		(void)sigprocmask(SIG_SETMASK, &l->old, NULL);
	}
	sb_fd_close(&l->fd);
}

/* ---- building ---- */

static int put(const struct sb_dirs *d, const struct environment_what *w,
	       struct environment_ready *e, struct sb_err *err)
{
	size_t base = w->base->form == IMAGE_FORM_EROFS ? 1 : 0;
	sb_autofree char *agent = strdup(w->agent);
	sb_autofree char *name = NULL;
	sb_autostate struct state *s = NULL;
	struct environment rec = { .agent = agent, .n_layers = e->n_layers - base };
	int r;

	if (asprintf(&name, "%s%s%s", w->base->reference ? w->base->reference : "",
		     w->base->digest ? " " : "", w->base->digest ? w->base->digest : "") < 0 ||
	    !agent)
		return sb_err_set(err, -ENOMEM, "out of memory");
	rec.base = name;
	rec.built_s = rec.used_s = (int64_t)time(NULL);
	memcpy(rec.key, e->key, sizeof(rec.key));
	for (size_t i = 0; i < rec.n_layers; i++) {
		memcpy(rec.layers[i], e->layers[base + i].sha256, sizeof(rec.layers[i]));
		rec.bytes += e->layers[base + i].size;
	}
	r = state_open(d, &s, err);
	if (r == 0)
		r = environment_put(s, &rec, err);
	e->built_s = rec.built_s;
	e->bytes = rec.bytes;
	return r;
}

typedef int work_fn(struct env_build *b, void *arg, struct sb_err *err);

/* Whether the layer behind the last one is one of them: a plan has no layer twice. */
static bool is_there_already(const struct environment_ready *e)
{
	for (size_t i = 0; i < e->n_layers; i++)
		if (memcmp(e->layers[i].sha256, e->layers[e->n_layers].sha256, 32) == 0)
			return true;
	return false;
}

/* Run @work over the layers of @e and add what it made as one more. Return: 0; > 0 as @work; -errno. */
static int build(const struct sb_dirs *d, const struct environment_what *w, const char *name,
		 struct environment_ready *e, work_fn *work, void *arg, struct sb_err *err)
{
	struct env_build b = { .d = d, .w = w, .layers = e->layers, .n_layers = e->n_layers,
			       .dir = -1, .parent = -1, .log = -1 };
	int r;

	e->unchanged = false;
	if (e->n_layers == SB_PLAN_MAX_LAYERS)
		return sb_err_set(err, -E2BIG, "environment of %s: it has %d layers, more are not "
				  "possible; build it again with --reinstall", w->agent,
				  SB_PLAN_MAX_LAYERS);
	r = env_build_begin(&b, name, err);
	if (r == 0)
		r = work(&b, arg, err);
	if (r == 0)
		r = env_build_layer(&b, &e->layers[e->n_layers], err);
	if (r == 0 && is_there_already(e)) {
		image_layer_done(&e->layers[e->n_layers]);
		e->unchanged = true;
	} else if (r == 0) {
		e->n_layers++;
	}
	env_build_end(&b);
	return r == 0 && !e->unchanged ? put(d, w, e, err) : r;
}

static int steps(struct env_build *b, void *arg, struct sb_err *err)
{
	int r = env_build_steps(b, err);

	(void)arg;
	return r < 0 ? r : env_build_health(b, err);
}

static int install(const struct sb_dirs *d, const struct environment_what *w, struct lock *l,
		   struct environment_ready *ret, struct sb_err *err)
{
	struct sb_err none = { 0 };
	int r;

	block_signals(l);
	r = add_base(w, ret);
	if (r < 0)
		return sb_err_set(err, r, "out of memory");
	if (!w->quiet)
		(void)fprintf(stderr, "==> installing %s\n", w->agent);
	r = build(d, w, l->name, ret, steps, NULL, err);
	if (r == -EINTR)
		(void)sb_err_set(err, r, "environment of %s: stopped; nothing was kept", w->agent);
	if (r < 0 && err && err->code == 0)
		(void)sb_err_set(&none, r, "%s", strerror(-r));
	ret->built = r == 0;
	return r;
}

int environment_ready(const struct sb_dirs *d, const struct environment_what *w,
		      struct environment_ready *ret, struct sb_err *err)
{
	sb_autostate struct state *s = NULL;
	struct lock l = { .fd = -1 };
	uint8_t key[32];
	int r;

	*ret = (struct environment_ready){ 0 };
	if (!w->reinstall) {
		r = environment_look(d, w, ret, err);
		if (r != -ENOENT)
			return r;
	} else if (is_bare(w)) {
		return only_base(w, ret, err);
	}
	if (w->offline)
		return sb_err_set(err, -ENOENT, "environment of %s: not there, and offline", w->agent);
	r = environment_key(w, key, err);
	if (r == 0)
		r = take_lock(d, w, key, &l, err);
	if (r == 0)
		r = state_open(d, &s, err);
	if (r == 0 && !w->reinstall) { /* somebody may have built it meanwhile */
		r = find(d, s, w, key, ret, err);
		if (r != -ENOENT) {
			drop_lock(&l);
			return r;
		}
		r = 0;
	}
	s = state_close(s);
	memcpy(ret->key, key, sizeof(key));
	if (r == 0)
		r = install(d, w, &l, ret, err);
	drop_lock(&l);
	if (r < 0)
		environment_ready_done(ret);
	return r;
}

/* ---- edit ---- */

static int shell(struct env_build *b, void *arg, struct sb_err *err)
{
	char *const *argv = arg;
	int r = env_build_run(b, (char **)(uintptr_t)argv, true, err);

	return r > 0 ? 1 : r;
}

int environment_edit(const struct sb_dirs *d, const struct environment_what *w, char *const *argv,
		     struct environment_ready *ret, struct sb_err *err)
{
	char bash[] = "/bin/bash";
	char *own[] = { bash, NULL };
	struct lock l = { .fd = -1 };
	int r = environment_ready(d, w, ret, err);

	if (r < 0)
		return r;
	r = environment_key(w, ret->key, err);
	if (r == 0)
		r = take_lock(d, w, ret->key, &l, err);
	if (r == 0) {
		block_signals(&l);
		r = build(d, w, l.name, ret, shell, (void *)(uintptr_t)(argv ? argv : own), err);
	}
	drop_lock(&l);
	if (r == -EINTR)
		(void)sb_err_set(err, r, "stopped; the environment of %s is as it was", w->agent);
	if (r < 0)
		environment_ready_done(ret);
	return r;
}
