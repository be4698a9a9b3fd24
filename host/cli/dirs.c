#include "dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/fd.h"
#include "crypto/crypto.h"

static int join(char *out, size_t cap, const char *a, const char *b, struct sb_err *err)
{
	int n = snprintf(out, cap, "%s%s", a, b);

	if (n < 0 || (size_t)n >= cap || (size_t)n >= PATH_MAX)
		return sb_err_set(err, -ENAMETOOLONG, "path too long: %.200s%s", a, b);
	return 0;
}

/* mkdir -p with mode 0700, then check what is there now. */
static int make_private(const char *path, struct sb_err *err)
{
	char part[PATH_MAX];
	struct stat st;
	size_t n = strlen(path);

	memcpy(part, path, n + 1);
	for (size_t i = 1; i <= n; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		part[i] = '\0';
		if (mkdir(part, 0700) < 0 && errno != EEXIST)
			return sb_err_set(err, -errno, "cannot create %s: %s", part,
					  strerror(errno));
		part[i] = path[i];
	}
	if (lstat(path, &st) < 0)
		return sb_err_set(err, -errno, "cannot use %s: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return sb_err_set(err, -ENOTDIR, "cannot use %s: not a directory", path);
	if (st.st_uid != geteuid())
		return sb_err_set(err, -EPERM,
				  "cannot use %s: it belongs to user %u, not to the caller; remove "
				  "it or set SENDBOX_HOME",
				  path, st.st_uid);
	if ((st.st_mode & 022) != 0)
		return sb_err_set(err, -EPERM,
				  "cannot use %s: others may write to it; run: chmod go-w %s", path,
				  path);
	return 0;
}

static int resolve(char *path, struct sb_err *err)
{
	char real[PATH_MAX];

	if (!realpath(path, real))
		return sb_err_set(err, -errno, "cannot resolve %s: %s", path, strerror(errno));
	memcpy(path, real, strlen(real) + 1);
	return 0;
}

static int pick(char *out, const char *var, const char *home, const char *fallback,
		struct sb_err *err)
{
	const char *v = getenv(var);

	if (v && v[0] == '/')
		return join(out, PATH_MAX, v, "/sendbox", err);
	return join(out, PATH_MAX, home, fallback, err);
}

/* Helper programs: beside an installed sendbox in ../libexec/sendbox, or in the build folder. */
static int find_libexec(char *out, struct sb_err *err)
{
	static const char *const places[] = { "/../libexec/sendbox", "/../libexec" };
	char exe[PATH_MAX];
	char probe[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	char *slash;

	if (n < 0)
		return sb_err_set(err, -errno, "cannot read /proc/self/exe: %s", strerror(errno));
	exe[n] = '\0';
	slash = strrchr(exe, '/');
	if (!slash)
		return sb_err_set(err, -ENOENT, "cannot tell where sendbox is installed");
	*slash = '\0';
	for (size_t i = 0; i < SB_ARRAY_LEN(places); i++) {
		(void)snprintf(probe, sizeof(probe), "%s%s/sendbox-monitor", exe, places[i]);
		if (access(probe, X_OK) == 0) {
			int r = join(out, PATH_MAX, exe, places[i], err);

			return r < 0 ? r : resolve(out, err);
		}
	}
	return sb_err_set(err, -ENOENT,
			  "sendbox-monitor is not beside %s (looked in ../libexec/sendbox): "
			  "install sendbox again",
			  exe);
}

const char *cli_home(const char *or)
{
	const char *home = getenv("HOME");
	const struct passwd *pw;

	if (home && home[0] == '/')
		return home;
	pw = getpwuid(geteuid());
	return pw && pw->pw_dir[0] == '/' ? pw->pw_dir : or;
}

/* config.json may say where the large things lie. */
static int data_dir(struct cli_dirs *ret, const char *home, struct sb_err *err)
{
	struct agent_layer ignored = { 0 };
	struct problems p = { 0 };
	sb_autofree char *dir = NULL;
	int r = global_load(ret->config, home, &ignored, &dir, &p);

	agent_layer_done(&ignored);
	if (r == -EBADMSG && p.n > 0)
		(void)sb_err_set(err, r, "%.200s:%u: %.100s: %.150s", p.v[0].file, p.v[0].line,
				 p.v[0].key, p.v[0].message);
	problems_done(&p);
	if (r < 0 || !dir)
		return r;
	r = join(ret->state, PATH_MAX, dir, "/state", err);
	return r < 0 ? r : join(ret->cache, PATH_MAX, dir, "/cache", err);
}

int cli_dirs_init(struct cli_dirs *ret, struct sb_err *err)
{
	const char *base = getenv("SENDBOX_HOME");
	const char *run = getenv("XDG_RUNTIME_DIR");
	char *const made[] = { ret->config, ret->state, ret->cache, ret->run };
	int r = 0;

	if (base && *base) {
		if (base[0] != '/')
			return sb_err_set(err, -EINVAL, "SENDBOX_HOME must be an absolute path");
		r = join(ret->config, PATH_MAX, base, "/config", err);
		if (r == 0)
			r = join(ret->state, PATH_MAX, base, "/state", err);
		if (r == 0)
			r = join(ret->cache, PATH_MAX, base, "/cache", err);
		if (r == 0)
			r = join(ret->run, PATH_MAX, base, "/run", err);
	} else {
		const char *home = cli_home(NULL);

		if (!home)
			return sb_err_set(err, -ENOENT, "no home directory: set HOME or "
							"SENDBOX_HOME");
		r = pick(ret->config, "XDG_CONFIG_HOME", home, "/.config/sendbox", err);
		if (r == 0)
			r = pick(ret->state, "XDG_STATE_HOME", home, "/.local/state/sendbox", err);
		if (r == 0)
			r = pick(ret->cache, "XDG_CACHE_HOME", home, "/.cache/sendbox", err);
		if (r == 0)
			r = data_dir(ret, home, err);
		if (r == 0 && run && run[0] == '/')
			r = join(ret->run, PATH_MAX, run, "/sendbox", err);
		else if (r == 0)
			r = join(ret->run, PATH_MAX, ret->state, "/run", err);
	}
	for (size_t i = 0; r == 0 && i < SB_ARRAY_LEN(made); i++) {
		r = make_private(made[i], err);
		if (r == 0)
			r = resolve(made[i], err);
	}
	if (r == 0)
		r = find_libexec(ret->libexec, err);
	if (r < 0)
		return r;
	ret->d = (struct sb_dirs){ .config = ret->config,
				   .state = ret->state,
				   .cache = ret->cache,
				   .run = ret->run,
				   .libexec = ret->libexec };
	return 0;
}

static int load_key(int dir, uint8_t sec[64], struct sb_err *err)
{
	sb_autofd int fd = openat(dir, CLI_KEY_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	int r;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0 ||
	    st.st_size != 64)
		return sb_err_set(err, -EPERM,
				  "the signing key keys/" CLI_KEY_NAME " must be a file of 64 bytes, "
				  "mode 0600, owned by the caller; move it away to make a new one");
	r = sb_fd_read_all(fd, sec, 64);
	return r < 0 ? sb_err_set(err, r, "cannot read keys/" CLI_KEY_NAME ": %s", strerror(-r)) : 0;
}

int cli_host_key(const struct sb_dirs *d, uint8_t pub[32], uint8_t sec[64], struct sb_err *err)
{
	char path[PATH_MAX];
	sb_autofd int dir = -1;
	uint8_t check[32];
	int r = join(path, sizeof(path), d->state, "/keys", err);

	if (r == 0)
		r = make_private(path, err);
	if (r < 0)
		return r;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dir < 0)
		return sb_err_set(err, -errno, "cannot open %s: %s", path, strerror(errno));
	r = load_key(dir, sec, err);
	if (r == -ENOENT) {
		sb_sign_keypair(pub, sec);
		r = sb_fd_write_file(dir, CLI_KEY_NAME, sec, 64, 0600);
		if (r < 0)
			return sb_err_set(err, r, "cannot write %s/" CLI_KEY_NAME ": %s", path,
					  strerror(-r));
		/* two first runs at once: both use what is on disk now */
		r = load_key(dir, sec, err);
	}
	if (r < 0)
		return sb_err_set(err, r, "cannot load the signing key: %s", strerror(-r));
	sb_sign_public(sec, pub);
	memcpy(check, sec + 32, 32); /* libsodium's form: seed, then the public key */
	if (!sb_equal_ct(check, pub, 32))
		return sb_err_set(err, -EPERM, "the signing key %s/" CLI_KEY_NAME " is damaged", path);
	return 0;
}
