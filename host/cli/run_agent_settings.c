/* An agent's settings around one launch, and its banner. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "os/rmtree.h"
#include "base/fd.h"
#include "plan_make.h"
#include "run_agent_i.h"
#include "state/state.h"
#include "term.h"

int run_agent_settings_dir(const struct sb_dirs *d, const char *instance, char out[PATH_MAX])
{
	int n = snprintf(out, PATH_MAX, "%s/settings/%s", d->state, instance);

	return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

/* Return: INSTANCE_*; -ENOENT; -errno. */
static int status_in(struct state *s, const char *instance)
{
	struct instance i = { 0 };
	struct sb_err err = { 0 };
	int k = instance_get(s, instance, &i, &err);

	if (k == 0)
		k = (int)i.status;
	instance_done(&i);
	return k;
}

static int status_of(const struct sb_dirs *d, const char *instance)
{
	sb_autostate struct state *s = NULL;
	struct sb_err err = { 0 };
	int k = state_open(d, &s, &err);

	return k < 0 ? k : status_in(s, instance);
}

bool run_agent_settings_used(const struct sb_dirs *d, const char *instance)
{
	int k = status_of(d, instance);

	return k == INSTANCE_RUNNING || k == INSTANCE_STARTING || (k < 0 && k != -ENOENT);
}

/* Enter the folder above all of them. Return: descriptor; -errno. */
static int enter(const struct sb_dirs *d)
{
	char above[PATH_MAX];
	int n = snprintf(above, sizeof(above), "%s/settings", d->state);
	int fd = n < 0 || n >= PATH_MAX ? -1 : open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int run_agent_settings_remove(const struct sb_dirs *d, const char *instance)
{
	sb_autofd int fd = enter(d);

	return fd == -ENOENT ? 0 : fd < 0 ? fd : sb_rmtree(fd, instance);
}

int run_agent_settings_rename(const struct sb_dirs *d, const char *from, const char *to)
{
	sb_autofd int fd = enter(d);
	int k;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	k = sb_rmtree(fd, to); /* of one that was removed */
	if (k < 0)
		return k;
	return renameat(fd, from, fd, to) < 0 && errno != ENOENT ? -errno : 0;
}

/* Copies are made before their instance gets its row. */
#define GC_AGE_S 3600

int run_agent_settings_gc(const struct sb_dirs *d, struct state *s, size_t *ret, struct sb_err *err)
{
	sb_autofd int fd = enter(d);
	int own = fd < 0 ? -1 : openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = own < 0 ? NULL : fdopendir(own);
	int r = 0;

	if (!dir) {
		sb_fd_close(&own);
		return fd == -ENOENT ? 0 : sb_err_set(err, fd < 0 ? fd : -errno, "%s/settings cannot be read",
						      d->state);
	}
	for (const struct dirent *e = readdir(dir); r == 0 && e; e = readdir(dir)) {
		struct stat st;

		if (e->d_name[0] == '.' || fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    st.st_mtime + GC_AGE_S > time(NULL) || status_in(s, e->d_name) != -ENOENT)
			continue;
		r = sb_rmtree(fd, e->d_name);
		if (r < 0)
			(void)sb_err_set(err, r, "%s/settings/%s: %s", d->state, e->d_name, strerror(-r));
		*ret += r == 0;
	}
	(void)closedir(dir);
	return r;
}

/* The folder above all of them; an instance without a name of its own gets one that is free. */
static int make_dir(struct run_agent *r, struct sb_err *err)
{
	size_t n = strlen(r->instance);
	char above[PATH_MAX];

	/* what stands here without an instance is of one whose removal was cut short */
	if (r->opt.name && status_of(&r->dirs.d, r->instance) == -ENOENT &&
	    run_agent_settings_remove(&r->dirs.d, r->instance) < 0)
		return sb_err_set(err, -EIO, "cannot remove the settings that %.100s left in %.300s/settings",
				  r->instance, r->dirs.d.state);
	(void)snprintf(above, sizeof(above), "%s/settings", r->dirs.d.state);
	if (mkdir(above, 0711) < 0 && errno != EEXIST)
		return sb_err_set(err, -errno, "cannot create %.300s: %s", above, strerror(errno));
	for (unsigned int i = 2;; i++) {
		if (run_agent_settings_dir(&r->dirs.d, r->instance, r->settings_dir) < 0)
			return sb_err_set(err, -ENAMETOOLONG, "settings: the path is too long");
		if (mkdir(r->settings_dir, 0711) == 0 || (errno == EEXIST && r->opt.name))
			return 0;
		if (errno != EEXIST || i > 99)
			return sb_err_set(err, -errno, "cannot create %.300s: %s", r->settings_dir,
					  strerror(errno));
		(void)snprintf(r->instance + n, sizeof(r->instance) - n, "-%u", i);
	}
}

void run_agent_owner(const struct run_agent *r, struct settings_where *w)
{
	struct stat st;

	w->uid = geteuid();
	w->gid = getegid();
	if (geteuid() == 0 && stat(r->opt.project ? r->opt.project : ".", &st) == 0) {
		w->uid = st.st_uid;
		w->gid = st.st_gid;
	}
}

static void tell(const struct run_agent *r)
{
	const struct settings *s = &r->settings;

	for (size_t i = 0; i < s->n; i++)
		if (s->mounts[i].live && !r->opt.json)
			cli_error("%s is shared as it is: what the agent changes there, hooks and "
				  "programs among it, your own programs will use", s->mounts[i].shown);
	if (s->held > 0 && !r->opt.json && !r->opt.quiet)
		cli_error("settings: %zu file%s left outside: credentials by their names", s->held,
			  s->held == 1 ? "" : "s");
	if (s->odd > 0 && !r->opt.json && !r->opt.quiet)
		cli_error("settings: %zu entr%s left out: links, sockets, devices or more than %u MiB",
			  s->odd, s->odd == 1 ? "y" : "ies", SETTINGS_MAX_FILE >> 20);
}

int run_agent_settings(struct run_agent *r, struct sb_err *err)
{
	struct settings_where w = { .dir = r->settings_dir, .home = cli_home("/"),
				    .guest_home = r->guest_home };
	int k;

	if (r->agent->n_settings == 0 || r->opt.no_agent_mounts)
		return 0;
	if (r->opt.dry_run) {
		if (!r->opt.json)
			cli_error("the plan has no copies of the agent's settings: they are made for a "
				  "session");
		return 0;
	}
	k = make_dir(r, err);
	run_agent_owner(r, &w);
	if (k == 0)
		k = settings_prepare(r->agent, &w, &r->settings, err);
	if (k < 0)
		return k;
	for (size_t i = 0; i < r->settings.n && r->opt.n_own < RUN_AGENT_MOUNTS; i++) {
		const struct settings_mount *m = &r->settings.mounts[i];

		r->own[r->opt.n_own++] = (struct own_mount){ m->host, m->guest };
		if (r->n_mounts < RUN_AGENT_MOUNTS)
			r->mounts[r->n_mounts++] = (struct banner_mount){
				m->shown, m->guest,
				m->live ? "LIVE: what is changed inside is changed for you" : "a copy",
				false, m->live
			};
	}
	r->opt.own = r->own;
	tell(r);
	return 0;
}

/* ---- afterwards ---- */

static int count(void *arg, const struct settings_file *f)
{
	(void)f;
	++*(size_t *)arg;
	return 0;
}

static void drop(const struct run_agent *r)
{
	int k = run_agent_settings_remove(&r->dirs.d, r->instance);

	if (k < 0)
		cli_error("cannot remove %s: %s", r->settings_dir, strerror(-k));
}

void run_agent_review(struct run_agent *r)
{
	struct sb_err err = { 0 };
	size_t n = 0;
	int k;

	/* used: this start was refused because another one runs, whose copies these are */
	if (!r->settings_dir[0] || run_agent_settings_used(&r->dirs.d, r->instance))
		return;
	k = settings_each(r->settings_dir, false, count, &n, &err);
	if (k < 0 && k != -ENOENT && !r->opt.json)
		cli_error("settings: %s", err.code ? err.text : strerror(-k));
	if (r->opt.rm || k == -ENOENT) {
		drop(r);
		if (n > 0 && !r->opt.json)
			cli_error("settings: %zu changed file%s went with the session (--rm)", n,
				  n == 1 ? "" : "s");
		return;
	}
	if (n > 0 && !r->opt.json)
		cli_error("settings: %zu file%s changed; review with: sendbox settings diff %s", n,
			  n == 1 ? "" : "s", r->instance);
	if (n == 0 && k == 0 && !r->opt.name)
		drop(r);
}

/* For those who are there when a session ends that was left before. */
void run_agent_settings_tell(const struct sb_dirs *d, const char *instance)
{
	struct sb_err err = { 0 };
	char dir[PATH_MAX];
	size_t n = 0;

	if (run_agent_settings_dir(d, instance, dir) == 0 && settings_each(dir, false, count, &n, &err) == 0 &&
	    n > 0)
		cli_error("settings: %zu file%s changed; review with: sendbox settings diff %s", n,
			  n == 1 ? "" : "s", instance);
}

/* ---- the banner ---- */

void run_agent_banner(void *arg, const struct sb_plan *plan)
{
	struct run_agent *r = arg;
	const char *no_colour = getenv("NO_COLOR");
	const char *term = getenv("TERM");
	struct banner b = { .agent = r->agent, .instance = r->instance,
			    .environment = r->environment, .plan = plan,
			    .mounts = r->mounts, .n_mounts = r->n_mounts };
	struct sb_buf out;
	uint16_t rows;
	uint16_t cols;

	if (r->opt.json)
		return;
	if (r->opt.quiet || !isatty(STDERR_FILENO)) { /* what can do harm is told all the same */
		for (size_t i = 0; i < r->n_mounts; i++)
			if (r->mounts[i].loud)
				cli_error("%s is shared as %s: %s", r->mounts[i].shown, r->mounts[i].guest,
					  r->mounts[i].note);
		return;
	}
	cli_term_size(STDERR_FILENO, &rows, &cols);
	b.width = cols;
	b.colour = !(no_colour && *no_colour) && !(term && strcmp(term, "dumb") == 0);
	sb_buf_init(&out, 1U << 20);
	banner_write(&b, &out);
	if (sb_buf_error(&out) == 0)
		(void)fwrite(out.data, 1, out.len, stderr);
	sb_buf_done(&out);
}
