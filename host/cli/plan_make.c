#include "plan_make.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "crypto/crypto.h"
#include "os/kernfs.h"
#include "plan_net.h"
#include "wire/ipc.h"

#define START_DEADLINE_S 300
#define DEFAULT_PIDS 4096
#define PROXY "127.0.0.1:3128" /* SB_NET_PROXY_PORT */
#define NO_PROXY "localhost,127.0.0.1,::1"
#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static int oom(struct sb_err *err)
{
	return sb_err_set(err, -ENOMEM, "out of memory");
}

/* Canonical path and identity of an existing directory or regular file. */
static int locate(const char *what, const char *path, char **ret, struct stat *st,
		  struct sb_err *err)
{
	char real[PATH_MAX];
	sb_autofd int fd = -1;
	char *copy;

	if (!realpath(path, real))
		return sb_err_set(err, -errno, "%s \"%.300s\": %s", what, path, strerror(errno));
	for (const char *c = real; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return sb_err_set(err, -EINVAL,
					  "%s \"%.300s\": its path holds control characters", what,
					  path);
	fd = open(real, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, st) < 0)
		return sb_err_set(err, -errno, "%s \"%.300s\": %s", what, real, strerror(errno));
	if (!S_ISDIR(st->st_mode) && !S_ISREG(st->st_mode))
		return sb_err_set(err, -EINVAL,
				  "%s \"%.300s\": neither a directory nor a regular file", what,
				  real);
	if (sb_kernfs_check(fd) < 0)
		return sb_err_set(err, -EACCES,
				  "%s \"%.300s\": a file system of the kernel (like /proc and /sys) "
				  "cannot be shared", what, real);
	if (faccessat(AT_FDCWD, real, S_ISDIR(st->st_mode) ? R_OK | X_OK : R_OK, AT_EACCESS) < 0)
		return sb_err_set(err, -errno, "%s \"%.300s\": you may not read it: %s", what,
				  real, strerror(errno));
	copy = strdup(real);
	if (!copy)
		return oom(err);
	*ret = copy;
	return 0;
}

/* Our own directories may not be inside a mount, nor a mount inside them. */
static int check_state_dirs(const char *path, const struct sb_dirs *d, struct sb_err *err)
{
	const char *const own[] = { d->config, d->state, d->cache, d->run };

	if (strcmp(path, "/") == 0)
		return sb_err_set(err, -EINVAL,
				  "the whole file system cannot be shared: choose a folder");
	for (size_t i = 0; i < SB_ARRAY_LEN(own); i++) {
		if (sb_path_within(own[i], path) || sb_path_within(path, own[i]))
			return sb_err_set(err, -EINVAL,
					  "\"%.200s\" cannot be shared: it holds or lies in sendbox's "
					  "own state (%.200s); share a subfolder, or set SENDBOX_HOME "
					  "elsewhere",
					  path, own[i]);
	}
	return 0;
}

/* The namespace runtime shares a folder with all that is mounted in it; the file server of a
 * micro-VM refuses such a place by itself. */
static int check_beneath(const struct sb_plan *p, const char *real, struct sb_err *err)
{
	char at[512];
	int r;

	if (p->provider != SB_PROVIDER_NAMESPACE)
		return 0;
	r = sb_kernfs_below(real, at, sizeof(at));
	if (r < 0)
		return sb_err_set(err, r, "cannot read /proc/self/mountinfo: %s", strerror(-r));
	if (r > 0)
		return sb_err_set(err, -EACCES,
				  "\"%.200s\" cannot be shared: a file system of the kernel is "
				  "mounted at %.300s; unmount it, share a subfolder, or use "
				  "--runtime microvm", real, at);
	return 0;
}

static int add_mount(struct sb_plan *p, const char *what, const char *host, const char *guest,
		     enum sb_mount_mode mode, const struct sb_dirs *d, struct stat *ret_st,
		     struct sb_err *err)
{
	struct sb_plan_mount *m;
	char norm[SB_PLAN_MAX_PATH + 1];
	struct stat st;
	char *real = NULL;
	int r = locate(what, host, &real, &st, err);

	if (r == 0)
		r = check_state_dirs(real, d, err);
	if (r == 0 && sb_path_normalise(guest ? guest : real, norm) < 0)
		r = sb_err_set(err, -EINVAL,
			       "mount target \"%.300s\": must be an absolute path without \"..\"",
			       guest);
	if (r == 0)
		r = check_beneath(p, real, err);
	if (r == 0 && p->n_mounts == SB_PLAN_MAX_MOUNTS)
		r = sb_err_set(err, -EINVAL, "too many mounts: at most %d", SB_PLAN_MAX_MOUNTS);
	if (r < 0) {
		free(real);
		return r;
	}
	m = &p->mounts[p->n_mounts];
	*m = (struct sb_plan_mount){ .host = real,
				     .guest = strdup(norm),
				     .mode = mode,
				     .file = S_ISREG(st.st_mode),
				     .dev = st.st_dev,
				     .ino = st.st_ino };
	if (!m->guest) {
		free(real);
		return oom(err);
	}
	p->n_mounts++;
	if (ret_st)
		*ret_st = st;
	return 0;
}

/* HOST:GUEST[:ro|rw], where HOST itself may not hold a colon. */
static int parse_mount(struct sb_plan *p, const char *spec, const struct sb_dirs *d,
		       struct sb_err *err)
{
	sb_autofree char *copy = strdup(spec);
	enum sb_mount_mode mode = SB_MOUNT_RO;
	char *guest;
	char *word;

	if (!copy)
		return oom(err);
	guest = strchr(copy, ':');
	if (guest) {
		*guest++ = '\0';
		word = strchr(guest, ':');
		if (word) {
			*word++ = '\0';
			if (strcmp(word, "rw") == 0)
				mode = SB_MOUNT_RW;
			else if (strcmp(word, "ro") != 0)
				guest = NULL;
		}
	}
	if (!guest || !copy[0] || !guest[0])
		return sb_err_set(err, -EINVAL,
				  "--mount \"%.300s\": must be HOST:GUEST, HOST:GUEST:ro or "
				  "HOST:GUEST:rw",
				  spec);
	return add_mount(p, "mount source", copy, guest, mode, d, NULL, err);
}

static int by_guest(const void *a, const void *b)
{
	return strcmp(((const struct sb_plan_mount *)a)->guest,
		      ((const struct sb_plan_mount *)b)->guest);
}

static int set_mounts(struct sb_plan *p, const struct run_options *o, const struct sb_dirs *d,
		      struct stat *project, struct sb_err *err)
{
	int r;

	p->mounts = calloc(SB_PLAN_MAX_MOUNTS, sizeof(*p->mounts));
	if (!p->mounts)
		return oom(err);
	r = add_mount(p, o->project ? "--project" : "the current folder",
		      o->project ? o->project : ".", NULL, SB_MOUNT_RW, d, project, err);
	if (r < 0)
		return r;
	if (!S_ISDIR(project->st_mode))
		return sb_err_set(err, -ENOTDIR, "--project \"%.300s\": not a directory",
				  o->project);
	p->cwd = strdup(p->mounts[0].guest);
	if (!p->cwd)
		return oom(err);
	for (size_t i = 0; i < o->n_mounts; i++) {
		r = parse_mount(p, o->mounts[i], d, err);
		if (r < 0)
			return r;
	}
	qsort(p->mounts, p->n_mounts, sizeof(*p->mounts), by_guest);
	return 0;
}

static bool plain_name(const char *s)
{
	return s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")] ==
		       '\0' &&
	       s[0] != '\0' && s[0] != '-' && s[0] != '.' && strlen(s) <= 32;
}

static int set_identity(struct sb_plan *p, const struct stat *project, struct sb_err *err)
{
	const struct passwd *pw;
	char home[64];

	p->test_root = getenv("SENDBOX_TEST_GUEST_ROOT") != NULL;
	if (geteuid() == 0) {
		p->uid = p->gid = p->test_root ? 0 : 1000;
		p->owner_uid = project->st_uid;
		p->owner_gid = project->st_gid;
		p->user = strdup(p->test_root ? "root" : "user");
	} else {
		p->uid = p->owner_uid = geteuid();
		p->gid = p->owner_gid = getegid();
		if (p->test_root)
			p->uid = p->gid = 0;
		pw = getpwuid(geteuid());
		p->user = strdup(pw && plain_name(pw->pw_name) ? pw->pw_name : "user");
	}
	if (!p->user)
		return oom(err);
	(void)snprintf(home, sizeof(home), p->test_root ? "/root" : "/home/%s", p->user);
	p->home = strdup(home);
	p->hostname = strdup("sendbox");
	return p->home && p->hostname ? 0 : oom(err);
}

struct env_list {
	char **v;
	size_t n;
	size_t cap;
};

static char **env_slot(struct env_list *l, const char *name, size_t len)
{
	for (size_t i = 0; i < l->n; i++)
		if (strncmp(l->v[i], name, len) == 0 && l->v[i][len] == '=')
			return &l->v[i];
	return l->n + 1 < l->cap ? &l->v[l->n] : NULL;
}

static int env_set(struct env_list *l, const char *name, size_t name_len, const char *value)
{
	char **slot = env_slot(l, name, name_len);
	size_t len = name_len + 1 + strlen(value) + 1;
	char *s = malloc(len);

	if (!slot || !s) {
		free(s);
		return -ENOMEM;
	}
	memcpy(s, name, name_len);
	s[name_len] = '=';
	memcpy(s + name_len + 1, value, strlen(value) + 1);
	if (slot == &l->v[l->n])
		l->n++;
	else
		free(*slot);
	*slot = s;
	return 0;
}

static int set_env(struct sb_plan *p, const struct run_options *o, struct sb_err *err)
{
	struct env_list l = { .cap = o->n_env + 24 };
	const struct {
		const char *name;
		const char *value;
	} base[] = {
		{ "PATH", DEFAULT_PATH }, { "HOME", p->home },	     { "USER", p->user },
		{ "LOGNAME", p->user },	  { "SHELL", "/bin/bash" },  { "TMPDIR", "/tmp" },
		{ "LANG", "C.UTF-8" },	  { "PWD", p->cwd },	     { "TERM", p->term },
	};
	static const char *const proxied[] = { "HTTP_PROXY", "HTTPS_PROXY", "http_proxy",
					       "https_proxy" };

	l.v = p->env = calloc(l.cap, sizeof(*l.v));
	if (!l.v)
		return oom(err);
	for (size_t i = 0; i < SB_ARRAY_LEN(base); i++)
		if (base[i].value &&
		    env_set(&l, base[i].name, strlen(base[i].name), base[i].value) < 0)
			return oom(err);
	for (size_t i = 0; o->proxy_env && i < SB_ARRAY_LEN(proxied); i++)
		if (env_set(&l, proxied[i], strlen(proxied[i]), "http://" PROXY) < 0)
			return oom(err);
	if (o->proxy_env && (env_set(&l, "ALL_PROXY", 9, "socks5h://" PROXY) < 0 ||
			     env_set(&l, "all_proxy", 9, "socks5h://" PROXY) < 0 ||
			     env_set(&l, "NO_PROXY", 8, NO_PROXY) < 0 ||
			     env_set(&l, "no_proxy", 8, NO_PROXY) < 0))
		return oom(err);
	for (size_t i = 0; i < o->n_env; i++) {
		const char *e = o->env[i];
		size_t n = strcspn(e, "=");
		const char *value;

		if (n == 0)
			return sb_err_set(err, -EINVAL, "--env \"%.100s\": must be NAME=VALUE or "
							"NAME", e);
		if (e[n] == '=') {
			value = e + n + 1;
		} else {
			value = getenv(e);
			if (!value)
				return sb_err_set(err, -EINVAL,
						  "--env %.100s: the caller has no such variable", e);
		}
		if (env_set(&l, e, n, value) < 0)
			return oom(err);
	}
	return 0;
}

static int set_argv(struct sb_plan *p, char **argv, struct sb_err *err)
{
	size_t n = 0;

	while (argv[n])
		n++;
	p->argv = calloc(n + 1, sizeof(*p->argv));
	if (!p->argv)
		return oom(err);
	for (size_t i = 0; i < n; i++) {
		p->argv[i] = strdup(argv[i]);
		if (!p->argv[i])
			return oom(err);
	}
	return 0;
}

static int set_terminal(struct sb_plan *p, const struct run_options *o, struct sb_err *err)
{
	bool terminals = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	const char *term = getenv("TERM");

	if (o->interactive && !terminals)
		return sb_err_set(err, -EINVAL,
				  "--interactive needs a terminal on standard input and output");
	p->tty = terminals && !o->json;
	p->separate_stderr = o->separate_stderr;
	if (o->separate_stderr && !p->tty)
		return sb_err_set(err, -EINVAL, "--separate-stderr is for interactive sessions; "
						"without a terminal stderr is always separate");
	/* a terminal shows both: stderr goes its own way only when it is redirected or asked */
	if (p->tty && !isatty(STDERR_FILENO))
		p->separate_stderr = true;
	if (p->tty) {
		bool ok = term && *term && strlen(term) <= 64 &&
			  term[strspn(term, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					    "0123456789-_.+")] == '\0' &&
			  *term != '-' && *term != '.';

		p->term = strdup(ok ? term : "xterm-256color");
		if (!p->term)
			return oom(err);
	}
	return 0;
}

static int set_image(struct sb_plan *p, const struct run_options *o, const struct sb_dirs *d,
		     struct sb_err *err)
{
	struct stat st;
	int r;

	if (!o->image || strcmp(o->image, "host") == 0) {
		p->image = SB_IMAGE_HOST;
		return 0;
	}
	p->image = SB_IMAGE_DIR;
	r = locate("image", o->image + 4, &p->image_path, &st, err);
	if (r == 0)
		r = check_state_dirs(p->image_path, d, err);
	if (r < 0)
		return r;
	if (!S_ISDIR(st.st_mode))
		return sb_err_set(err, -ENOTDIR, "image \"%.300s\": not a directory",
				  p->image_path);
	p->image_dev = st.st_dev;
	p->image_ino = st.st_ino;
	return 0;
}

/*
 * A guest must not be able to fill the host's disk: unless told otherwise, what a session may add
 * to a shared folder is half of what is free when the plan is made.
 */
static void set_quotas(struct sb_plan *p, const struct run_options *o)
{
	for (size_t i = 0; i < p->n_mounts; i++) {
		struct sb_plan_mount *m = &p->mounts[i];
		struct statvfs v;

		if (m->mode != SB_MOUNT_RW)
			continue;
		m->quota_bytes = o->quota_bytes;
		m->quota_inodes = o->quota_files;
		if (statvfs(m->host, &v) < 0)
			continue;
		if (m->quota_bytes == 0)
			m->quota_bytes = SB_MAX((uint64_t)v.f_bavail * v.f_frsize / 2, 1U);
		if (m->quota_inodes == 0 && v.f_files > 0) /* some file systems have no limit */
			m->quota_inodes = SB_MAX((uint64_t)v.f_favail / 2, 1U);
	}
}

static void set_limits(struct sb_plan *p, const struct run_options *o)
{
	bool vm = p->provider == SB_PROVIDER_MICROVM;
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	struct rlimit nofile = { 1024, 1024 };
	struct sysinfo si;
	uint64_t ram = 4ULL << 30;

	if (sysinfo(&si) == 0)
		ram = (uint64_t)si.totalram * si.mem_unit;
	p->cpus_asked = o->cpus != 0;
	p->memory_asked = o->memory_bytes != 0;
	p->pids_asked = o->pids != 0;
	/* under emulation a second virtual CPU slows the first one down, and each GiB of memory
	 * costs tens of milliseconds of boot */
	p->cpus = o->cpus ? o->cpus
			  : p->accel == SB_ACCEL_TCG ? 1
						     : (uint32_t)SB_MIN(SB_MAX(online, 1), 4);
	p->memory_bytes = o->memory_bytes ? o->memory_bytes
			  : vm		  ? SB_MIN(p->accel == SB_ACCEL_TCG ? 1ULL << 30 : 2ULL << 30,
						   ram / 2) &
						    ~((1ULL << 20) - 1)
					  : 0;
	p->disk_bytes = o->disk_bytes ? o->disk_bytes
			: vm	      ? p->memory_bytes / 2
				      : SB_MIN(4ULL << 30, ram / 4);
	p->pids_max = o->pids ? o->pids : DEFAULT_PIDS;
	(void)getrlimit(RLIMIT_NOFILE, &nofile);
	p->nofile = vm ? 65536 : SB_MIN(SB_MAX(nofile.rlim_max, (rlim_t)16), (rlim_t)65536);
	p->timeout_ms = o->timeout_ms;
	if (vm)
		set_quotas(p, o);
}

/* The runtime and accelerator words, SENDBOX_ACCEL included. */
static int set_provider(struct sb_plan *p, const struct run_options *o, struct sb_err *err)
{
	const char *accel = o->accel ? o->accel : getenv("SENDBOX_ACCEL");
	const char *why = "the first virtual machine of this host (auto)";

	p->provider = SB_PROVIDER_MICROVM;
	if (o->runtime && strcmp(o->runtime, "namespace") == 0) {
		p->provider = SB_PROVIDER_NAMESPACE;
		why = "asked for";
	} else if (o->runtime && strcmp(o->runtime, "microvm") == 0) {
		why = "asked for";
	}
	p->provider_reason = strdup(why);
	if (!p->provider_reason)
		return oom(err);
	if (p->provider == SB_PROVIDER_NAMESPACE || !accel || strcmp(accel, "auto") == 0)
		return 0;
	if (strcmp(accel, "tcg") == 0)
		p->accel = SB_ACCEL_TCG;
	else if (strcmp(accel, "kvm") == 0)
		p->accel = SB_ACCEL_KVM;
	else
		return sb_err_set(err, -EINVAL, "SENDBOX_ACCEL=\"%.60s\": must be auto, kvm or tcg",
				  accel);
	return 0;
}

int plan_make(const struct run_options *o, const struct sb_dirs *dirs, const uint8_t pub[32],
	      struct sb_plan **ret, uint32_t *ret_fail, struct sb_err *err)
{
	sb_autoplan struct sb_plan *p = calloc(1, sizeof(*p));
	const struct sb_provider *provider;
	struct stat project;
	int r;

	*ret_fail = SB_FAIL_USAGE;
	if (!p)
		return oom(err);
	sb_random(p->session, sizeof(p->session));
	p->created_unix_s = (uint64_t)time(NULL);
	p->expires_unix_s = p->created_unix_s + START_DEADLINE_S;
	r = set_provider(p, o, err);
	if (r == 0)
		r = set_mounts(p, o, dirs, &project, err);
	if (r == 0)
		r = set_identity(p, &project, err);
	if (r == 0)
		r = set_terminal(p, o, err);
	if (r == 0)
		r = set_env(p, o, err);
	if (r == 0)
		r = set_argv(p, o->argv, err);
	if (r == 0)
		r = set_image(p, o, dirs, err);
	if (r == 0)
		r = plan_net_make(o, p, err);
	if (r < 0)
		return r;
	*ret_fail = SB_FAIL_PROVIDER;
	provider = sb_provider_get(p->provider);
	if (!provider)
		return sb_err_set(err, -ENOSYS, "this build has no such runtime");
	r = provider->prepare(dirs, o->kernel, pub, p, err);
	if (r < 0)
		return r;
	set_limits(p, o);
	*ret_fail = SB_FAIL_PLAN;
	r = sb_plan_check(p, err);
	if (r < 0)
		return r;
	*ret = sb_take(&p);
	*ret_fail = SB_FAIL_NONE;
	return 0;
}
