#include "session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "os/proc.h"
#include "os/rmtree.h"

static int open_sessions(const struct sb_dirs *d, int *ret, struct sb_err *err)
{
	sb_autofd int run = open(d->run, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (run < 0)
		return sb_err_set(err, -errno, "cannot open %s: %s", d->run, strerror(errno));
	if (mkdirat(run, "sessions", 0700) < 0 && errno != EEXIST)
		return sb_err_set(err, -errno, "cannot create %s/sessions: %s", d->run,
				  strerror(errno));
	*ret = openat(run, "sessions", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (*ret < 0)
		return sb_err_set(err, -errno, "cannot open %s/sessions: %s", d->run,
				  strerror(errno));
	return 0;
}

/* Create the directory under a name that gc does not look at, lock it, then rename it. */
int cli_session_new(const struct sb_dirs *d, const uint8_t id[16], struct cli_session *ret,
		    struct sb_err *err)
{
	struct cli_session s = { .dir = -1, .lock = -1 };
	sb_autofd int sessions = -1;
	char hex[33];
	char tmp[48];
	int r = open_sessions(d, &sessions, err);

	if (r < 0)
		return r;
	sb_hex_write(id, 16, hex);
	(void)snprintf(tmp, sizeof(tmp), ".new-%s", hex);
	r = snprintf(s.path, sizeof(s.path), "%s/sessions/%s", d->run, hex);
	if (r < 0 || (size_t)r >= sizeof(s.path))
		return sb_err_set(err, -ENAMETOOLONG, "path too long: %s", d->run);
	if (mkdirat(sessions, tmp, 0700) < 0)
		return sb_err_set(err, -errno, "cannot create %s: %s", s.path, strerror(errno));
	s.dir = openat(sessions, tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (s.dir >= 0)
		s.lock = openat(s.dir, "lock", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (s.lock < 0 || flock(s.lock, LOCK_EX | LOCK_NB) < 0 ||
	    renameat(sessions, tmp, sessions, hex) < 0) {
		r = sb_err_set(err, -errno, "cannot set up %s: %s", s.path, strerror(errno));
		if (sb_rmtree(sessions, tmp) < 0)
			(void)sb_err_add(err, r, "%s could not be removed", tmp);
		cli_session_done(&s);
		return r;
	}
	*ret = s;
	return 0;
}

void cli_session_done(struct cli_session *s)
{
	sb_fd_close(&s->lock);
	sb_fd_close(&s->dir);
}

/* ---- running ones ---- */

/* Return: 1 = running; 0; -errno. */
static int open_running(int sessions, const char *name, int *ret_dir, struct sb_plan **ret_plan)
{
	sb_autofd int dir = -1;
	sb_autofd int lock = -1;
	sb_autofree char *bytes = NULL;
	uint8_t id[16];
	size_t len = 0;

	if (sb_hex_parse(name, id, sizeof(id)) < 0)
		return 0;
	dir = openat(sessions, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	lock = dir < 0 ? -1 : openat(dir, "lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (lock < 0)
		return errno == ENOENT ? 0 : -errno;
	if (flock(lock, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK)
		return 0; /* nobody owns it */
	if (sb_fd_read_file(dir, "plan.json", SB_PLAN_MAX_BYTES, &bytes, &len) < 0 ||
	    sb_plan_parse(bytes, len, ret_plan, NULL) < 0)
		return 0; /* just begun, or of another version */
	*ret_dir = sb_fd_take(&dir);
	return 1;
}

int cli_session_each(const struct sb_dirs *d,
		     void (*fn)(void *arg, int dir, const struct sb_plan *plan), void *arg,
		     struct sb_err *err)
{
	sb_autofd int sessions = -1;
	struct dirent *e;
	DIR *dir;
	int r = open_sessions(d, &sessions, err);

	if (r < 0)
		return r;
	dir = fdopendir(dup(sessions));
	if (!dir)
		return sb_err_set(err, -errno, "cannot list %s/sessions: %s", d->run,
				  strerror(errno));
	while ((e = readdir(dir))) {
		sb_autoplan struct sb_plan *plan = NULL;
		sb_autofd int one = -1;

		if (open_running(sessions, e->d_name, &one, &plan) == 1)
			fn(arg, one, plan);
	}
	(void)closedir(dir);
	return 0;
}

struct finding {
	const char *prefix;
	uint8_t id[16];
	size_t n;
};

static void on_candidate(void *arg, int dir, const struct sb_plan *plan)
{
	struct finding *f = arg;
	char hex[33];

	(void)dir;
	sb_hex_write(plan->session, sizeof(plan->session), hex);
	if (f->prefix && strncmp(hex, f->prefix, strlen(f->prefix)) != 0 &&
	    !(plan->instance && strcmp(plan->instance, f->prefix) == 0))
		return;
	memcpy(f->id, plan->session, sizeof(f->id));
	f->n++;
}

int cli_session_find(const struct sb_dirs *d, const char *prefix, int *ret_dir,
		     struct sb_plan **ret_plan, struct sb_err *err)
{
	struct finding f = { .prefix = prefix };
	sb_autofd int sessions = -1;
	char hex[33];
	int r = cli_session_each(d, on_candidate, &f, err);

	if (r < 0)
		return r;
	if (f.n != 1)
		return f.n == 0 ? CLI_SESSION_NONE : CLI_SESSION_MANY;
	r = open_sessions(d, &sessions, err);
	if (r < 0)
		return r;
	sb_hex_write(f.id, sizeof(f.id), hex);
	r = open_running(sessions, hex, ret_dir, ret_plan);
	return r == 1 ? 0 : CLI_SESSION_NONE;
}

/* ---- clearing ---- */

/* "PID STARTTIME BOOT" lines of the monitor: kill what still is that very process. After a reboot
 * none is, though another one may have got the same two numbers. */
static void kill_recorded(int dir)
{
	sb_autofree char *text = NULL;
	size_t len = 0;
	char *line;
	char *save = NULL;
	char boot[SB_BOOT_ID_ROOM];

	sb_proc_boot_id(boot);
	if (sb_fd_read_file(dir, "pids", 65536, &text, &len) < 0)
		return;
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		unsigned long long start = 0;
		char then[SB_BOOT_ID_ROOM];
		long pid = 0;
		sb_autofd int pidfd = -1;

		if (sscanf(line, "%ld %llu %36s", &pid, &start, then) != 3 || pid <= 1 ||
		    strcmp(then, boot) != 0)
			continue;
		pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
		/* the descriptor first: then the number cannot pass to another process unseen */
		if (pidfd >= 0 && start != 0 && sb_proc_start_time((pid_t)pid) == start)
			(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	}
}

static int gc_one(const struct sb_dirs *d, int sessions, const char *name, bool all, size_t *n,
		  struct sb_err *err)
{
	sb_autofd int dir = openat(sessions, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	sb_autofd int lock = -1;
	int first = 0;
	int r;

	if (dir < 0)
		return errno == ENOENT ? 0 : -errno;
	lock = openat(dir, "lock", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (lock < 0 && errno != ENOENT)
		return -errno;
	if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) < 0)
		return 0; /* alive */
	if (lock < 0 && name[0] == '.') {
		struct stat st;

		/* another process may be between mkdir and lock: leave young ones alone */
		if (fstat(dir, &st) == 0 && time(NULL) - st.st_mtime < 60)
			return 0;
	}
	kill_recorded(dir);
	if (!all && faccessat(dir, "keep", F_OK, 0) == 0)
		return 0;
	for (int id = SB_PROVIDER_MICROVM; id <= SB_PROVIDER_NAMESPACE; id++) {
		const struct sb_provider *p = sb_provider_get((enum sb_provider_id)id);

		r = p && p->gc ? p->gc(d, dir, err) : 0;
		if (r < 0 && first == 0)
			first = r;
	}
	if (first < 0)
		return first;
	r = sb_rmtree(sessions, name);
	if (r < 0)
		return sb_err_add(err, r, "cannot remove session %s: %s", name, strerror(-r));
	(*n)++;
	return 0;
}

int cli_gc(const struct sb_dirs *d, bool all, size_t *ret_n, struct sb_err *err)
{
	sb_autofd int sessions = -1;
	struct dirent *e;
	size_t n = 0;
	DIR *dir;
	int first = 0;
	int r = open_sessions(d, &sessions, err);

	if (r < 0)
		return r;
	dir = fdopendir(dup(sessions));
	if (!dir)
		return sb_err_set(err, -errno, "cannot list %s/sessions: %s", d->run,
				  strerror(errno));
	while ((e = readdir(dir))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		r = gc_one(d, sessions, e->d_name, all, &n, err);
		if (r < 0 && first == 0)
			first = sb_err_add(err, r, "session %.40s: %s", e->d_name, strerror(-r));
	}
	(void)closedir(dir);
	*ret_n = n;
	return first;
}
