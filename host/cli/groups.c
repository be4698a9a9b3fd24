#include "groups.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "conf_text.h"
#include "core/plan.h"

#define FILE_MAX (1U << 20) /* bytes of a configuration file */
#define GRANTED_MAX 128     /* destinations of one group */
#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

const char groups_words[] = "npm, pypi, debian, crates, go, github";

struct group {
	const struct groups_env *env;
	const char *word;
	bool deny;
	groups_add_fn *add;
	void *arg;
	struct sb_err *err;
	/* the file being read */
	const char *shown; /* as people know it */
	bool project;      /* the sandbox can write it */
	/* so far */
	char *granted[GRANTED_MAX];
	size_t n_granted;
	bool base;        /* something stands for the tool's default */
	bool want_mirror; /* of what is configured the URL is wanted, the default is not */
	char *mirror;
	unsigned int places;    /* files and variables that were read */
	unsigned int mirror_at; /* the one of them that named the mirror */
	char looked[300]; /* places that were read or missing */
};

static void warn(const struct group *g, const char *fmt, ...) SB_PRINTF(2, 3);
static void warn(const struct group *g, const char *fmt, ...)
{
	char text[700];
	va_list ap;
	int n = snprintf(text, sizeof(text), "group %s: ", g->word);

	va_start(ap, fmt);
	(void)vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, ap);
	va_end(ap);
	g->env->warn(g->env->arg, text);
}

static void looked(struct group *g, const char *place)
{
	size_t n = strlen(g->looked);

	(void)snprintf(g->looked + n, sizeof(g->looked) - n, "%s%s", n > 0 ? ", " : "", place);
}

static bool granted(const struct group *g, const char *rule)
{
	for (size_t i = 0; i < g->n_granted; i++)
		if (strcmp(g->granted[i], rule) == 0)
			return true;
	return false;
}

static int grant(struct group *g, const char *rule)
{
	char from[160];
	int r;

	if (granted(g, rule))
		return 0;
	if (g->project && !g->deny) {
		warn(g, "%s names %s; the sandbox can write that file, so it is not allowed by it: "
			"to allow it add --allow-hosts %s", g->shown, rule, rule);
		return 0;
	}
	if (g->n_granted == GRANTED_MAX)
		return sb_err_set(g->err, -E2BIG, "group %s: more than %d destinations", g->word,
				  GRANTED_MAX);
	(void)snprintf(from, sizeof(from), "group %s (%.120s)", g->word, g->shown);
	r = g->add(g->arg, rule, from, g->err);
	if (r < 0)
		return r;
	g->granted[g->n_granted] = strdup(rule);
	if (!g->granted[g->n_granted])
		return sb_err_set(g->err, -ENOMEM, "out of memory");
	g->n_granted++;
	return 0;
}

static bool this_machine(const char *host)
{
	return strcasecmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
	       strcmp(host, "[::1]") == 0;
}

/* @proto: "https", "http" or "any" */
static int grant_host(struct group *g, const char *host, uint16_t port, const char *proto)
{
	char rule[300];

	if (this_machine(host)) {
		warn(g, "%s names a server of this machine, %s:%u: to allow it add "
			"--allow-host-port %u and let the tool use host.sendbox.internal:%u",
		     g->shown, host, port, port, port);
		return 0;
	}
	if (g->deny)
		(void)snprintf(rule, sizeof(rule), "%s", host);
	else
		(void)snprintf(rule, sizeof(rule), "%s:%u/%s", host, port, proto);
	return grant(g, rule);
}

/* ssh://[user@]host[:port]/path, [user@]host:path, or a URL */
static int grant_remote(struct group *g, const struct conf_found *f)
{
	struct conf_url u;
	char text[512];
	char host[256];
	const char *p = text;
	size_t n;

	if (f->len >= sizeof(text))
		return 0;
	memcpy(text, f->text, f->len);
	text[f->len] = '\0';
	if (conf_url_parse(text, f->len, &u) == 0)
		return grant_host(g, u.host, u.port, u.scheme);
	if (strncmp(p, "ssh://", 6) == 0)
		p += 6;
	else if (strstr(p, "://") || !strchr(p, ':')) /* git://, file://, a path */
		return 0;
	p = strchr(p, '@') ? strchr(p, '@') + 1 : p;
	n = strcspn(p, ":/");
	if (n == 0 || n >= sizeof(host))
		return 0;
	memcpy(host, p, n);
	host[n] = '\0';
	return grant_host(g, host, 22, "any");
}

/* The first place counts, and in it the last line: that is how npm and pip have it. */
static int keep_mirror(struct group *g, const struct conf_found *f, const struct conf_url *u)
{
	const char *rest = memmem(f->text, f->len, "://", 3);
	const char *end = f->text + f->len;
	bool usual = u->port == (strcmp(u->scheme, "http") == 0 ? 80 : 443);
	char port[8] = "";
	size_t path = 0;

	if (g->mirror_at != 0 && g->mirror_at != g->places)
		return 0;
	for (rest += 3; rest < end && !strchr("/?#", *rest); rest++)
		continue;
	while (rest + path < end && rest[path] != '?' && rest[path] != '#')
		path++;
	if (!usual)
		(void)snprintf(port, sizeof(port), ":%u", u->port);
	g->mirror_at = g->places;
	free(g->mirror);
	g->mirror = NULL;
	if (this_machine(u->host))
		return 0;
	if (asprintf(&g->mirror, "%s://%s%s%.*s", u->scheme, u->host, port, (int)path, rest) < 0) {
		g->mirror = NULL;
		return sb_err_set(g->err, -ENOMEM, "out of memory");
	}
	return 0;
}

static int on_found(void *arg, const struct conf_found *f)
{
	struct group *g = arg;
	struct conf_url u;
	char host[256];
	int r;

	/* what the project says never hides the default that the caller's own tool has */
	if (!g->project && (f->kind == CONF_BASE || f->kind == CONF_REPLACE))
		g->base = true;
	if (f->kind == CONF_REPLACE)
		return 0;
	if (f->kind == CONF_REMOTE)
		return grant_remote(g, f);
	if (f->kind == CONF_WORD) {
		if (f->len >= sizeof(host))
			return sb_err_set(g->err, -EINVAL, "group %s: %s:%u: name too long", g->word,
					  g->shown, f->line);
		memcpy(host, f->text, f->len);
		host[f->len] = '\0';
		return grant_host(g, host, 443, "https");
	}
	r = conf_url_parse(f->text, f->len, &u);
	if (r == -EPROTONOSUPPORT || (r < 0 && g->project)) {
		warn(g, "%s:%u: neither http nor https, left out: %.*s", g->shown, f->line,
		     (int)SB_MIN(strcspn(f->text, ":\n"), SB_MIN(f->len, (size_t)60)), f->text);
		return 0;
	}
	if (r < 0)
		return sb_err_set(g->err, -EINVAL,
				  "group %s: %s:%u: no URL that can be understood; write the "
				  "destination itself in --allow-hosts instead of \"%s\"",
				  g->word, g->shown, f->line, g->word);
	if (u.userinfo)
		warn(g, "%s:%u: the user name in the URL of %s stays on the host", g->shown, f->line,
		     u.host);
	if (g->want_mirror)
		return f->kind == CONF_BASE && !g->project ? keep_mirror(g, f, &u) : 0;
	return grant_host(g, u.host, u.port, u.scheme);
}

/* The real path of @path without the root. Return: 0; -errno. */
static int real_inside(const struct group *g, const char *path, char out[PATH_MAX])
{
	char root[PATH_MAX];
	char real[PATH_MAX];
	size_t skip;

	if (!realpath(*g->env->root ? g->env->root : "/", root) || !realpath(path, real))
		return -errno;
	skip = strcmp(root, "/") == 0 ? 0 : strlen(root);
	if (strncmp(real, root, skip) != 0)
		return -EXDEV;
	memcpy(out, real + skip, strlen(real + skip) + 1);
	return 0;
}

static bool writable(const struct group *g, const char *path)
{
	char real[PATH_MAX];

	if (!g->env->writable || real_inside(g, path, real) < 0)
		return false;
	for (size_t i = 0; g->env->writable[i]; i++)
		if (sb_path_within(real, g->env->writable[i]))
			return true;
	return false;
}

/* Return: 0; 1 = there is none; -errno with text. */
static int read_text(struct group *g, const char *path, char **ret, size_t *ret_len)
{
	sb_autofd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	sb_autofree char *text = NULL;
	char opened[32];
	struct stat st;
	size_t len = 0;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		if (fd < 0 && (errno == EACCES || errno == EPERM))
			warn(g, "%s cannot be read and is left out", g->shown);
		return 1;
	}
	/* where the descriptor is, not where the path leads now: a link may have been turned since */
	(void)snprintf(opened, sizeof(opened), "/proc/self/fd/%d", fd);
	g->project = g->project || writable(g, opened);
	text = malloc(FILE_MAX + 1);
	if (!text)
		return sb_err_set(g->err, -ENOMEM, "out of memory");
	for (;;) {
		ssize_t n = read(fd, text + len, FILE_MAX + 1 - len);

		if (n < 0)
			return sb_err_set(g->err, -errno, "group %s: %s: %s", g->word, g->shown,
					  strerror(errno));
		if (n == 0)
			break;
		len += (size_t)n;
		if (len > FILE_MAX)
			return sb_err_set(g->err, -EFBIG, "group %s: %s is larger than 1 MiB",
					  g->word, g->shown);
	}
	*ret = sb_take(&text);
	*ret_len = len;
	return 0;
}

/* Return: 0 = read; 1 = there is none; -errno. */
static int read_path(struct group *g, conf_reader *reader, bool project, const char *path)
{
	const char *inside = path + strlen(g->env->root);
	size_t home = strlen(g->env->home);
	sb_autofree char *text = NULL;
	unsigned int line = 0;
	char shown[160];
	size_t len = 0;
	int r;

	if (home > 1 && strncmp(inside, g->env->home, home) == 0 && inside[home] == '/')
		(void)snprintf(shown, sizeof(shown), "~%.150s", inside + home);
	else
		(void)snprintf(shown, sizeof(shown), "%.150s", inside);
	for (char *c = shown; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	g->shown = shown;
	g->project = project;
	g->places++;
	looked(g, shown);
	r = read_text(g, path, &text, &len);
	if (r == 0)
		r = reader(text, len, on_found, g, &line);
	g->shown = NULL;
	g->project = false;
	if (r == -EBADMSG || r == -E2BIG)
		return sb_err_set(g->err, r, "group %s: %s:%u: %s", g->word, shown, line,
				  r == -E2BIG ? "line longer than 4 KiB" : "a NUL byte");
	return r;
}

static int read_file(struct group *g, conf_reader *reader, bool project, const char *fmt, ...)
	SB_PRINTF(4, 5);
static int read_file(struct group *g, conf_reader *reader, bool project, const char *fmt, ...)
{
	char path[PATH_MAX];
	size_t root = strlen(g->env->root);
	va_list ap;
	int n;

	if (root >= sizeof(path))
		return 1;
	memcpy(path, g->env->root, root);
	va_start(ap, fmt);
	n = vsnprintf(path + root, sizeof(path) - root, fmt, ap);
	va_end(ap);
	return n < 0 || (size_t)n >= sizeof(path) - root ? 1 : read_path(g, reader, project, path);
}

/* Every file that a pattern (without the root) names; at most 256. Return: files read; -errno. */
static int read_glob(struct group *g, conf_reader *reader, const char *pattern)
{
	char path[PATH_MAX];
	glob_t found = { 0 };
	int count = 0;
	int r = snprintf(path, sizeof(path), "%s%s", g->env->root, pattern);

	if (r < 0 || (size_t)r >= sizeof(path))
		return 0;
	if (glob(path, 0, NULL, &found) != 0) {
		looked(g, pattern);
		return 0;
	}
	r = 0;
	for (size_t i = 0; r >= 0 && i < SB_MIN(found.gl_pathc, (size_t)256); i++) {
		r = read_path(g, reader, false, found.gl_pathv[i]);
		count += r == 0;
	}
	globfree(&found);
	return r < 0 ? r : count;
}

/* A variable of the caller as if it were a file. @value: NULL = not set. */
static int from_env(struct group *g, const char *name, enum conf_kind kind)
{
	const char *v = g->env->getenv(name);
	int r = 0;

	if (!v)
		return 0;
	g->shown = name;
	g->places++;
	for (v += strspn(v, " \t\n"); r == 0 && *v; v += strspn(v, " \t\n")) {
		size_t n = strcspn(v, " \t\n");

		r = on_found(g, &(struct conf_found){ .kind = kind, .text = v, .len = n, .line = 1 });
		v += n;
	}
	g->shown = NULL;
	return r;
}

/* The value of $name, or home and @under it. */
static void var_or_home(const struct group *g, const char *name, const char *under, char *out,
			size_t cap)
{
	const char *v = g->env->getenv(name);

	if (v && v[0] == '/')
		(void)snprintf(out, cap, "%s", v);
	else
		(void)snprintf(out, cap, "%s%s", g->env->home, under);
}

/* The first @n bytes of @dir between @before and @after. Return: whether it fits. */
static bool place(char out[PATH_MAX], const char *before, const char *dir, size_t n,
		  const char *after)
{
	size_t a = strlen(before);
	size_t c = strlen(after);

	if (a >= PATH_MAX || n >= PATH_MAX || c >= PATH_MAX || a + n + c >= PATH_MAX)
		return false;
	memcpy(out, before, a);
	memcpy(out + a, dir, n);
	memcpy(out + a + n, after, c + 1);
	return true;
}

/*
 * Where @program is installed: the real path (without the root) of the first one in PATH.
 * Return: 0; -ENOENT.
 */
static int find_program(const struct group *g, const char *program, char out[PATH_MAX])
{
	const char *path = g->env->getenv("PATH");
	char name[32];
	char try[PATH_MAX];

	if (!path || !*path)
		path = DEFAULT_PATH;
	(void)snprintf(name, sizeof(name), "/%s", program);
	for (size_t n; *path; path += n + (path[n] == ':')) {
		n = strcspn(path, ":");
		if (path[0] == '/' && place(try, g->env->root, path, n, name) &&
		    access(try, X_OK) == 0 && real_inside(g, try, out) == 0)
			return 0;
	}
	return -ENOENT;
}

/* Cut the last @n components off. */
static void up(char *path, int n)
{
	while (n-- > 0) {
		char *slash = strrchr(path, '/');

		if (slash)
			*slash = '\0';
	}
}

/* ---- the groups ---- */

static int npm_prefix(struct group *g)
{
	const char *prefix = g->env->getenv("PREFIX");
	char node[PATH_MAX];
	int r = 0;

	if (prefix && prefix[0] == '/')
		r = read_file(g, conf_npmrc, false, "%s/etc/npmrc", prefix);
	if (r >= 0 && find_program(g, "node", node) == 0) {
		up(node, 2);
		r = read_file(g, conf_npmrc, false, "%s/etc/npmrc", node);
	}
	return r;
}

static int npm_default(struct group *g)
{
	static const char *const files[] = {
		"node_modules/@npmcli/config/lib/definitions/definitions.js",
		"lib/utils/config/definitions.js",
		"../@npmcli/config/lib/definitions/definitions.js",
	};
	char at[PATH_MAX];
	int r = 0;

	if (find_program(g, "npm", at) < 0) {
		looked(g, "npm itself (not in PATH)");
		return 0;
	}
	up(at, 2); /* .../npm/bin/npm-cli.js */
	for (size_t i = 0; r >= 0 && !g->base && i < SB_ARRAY_LEN(files); i++)
		r = read_file(g, conf_npm_source, false, "%s/%s", at, files[i]);
	return r;
}

static int group_npm(struct group *g)
{
	int r = from_env(g, "npm_config_registry", CONF_BASE);

	if (r == 0)
		r = from_env(g, "NPM_CONFIG_REGISTRY", CONF_BASE);
	if (r >= 0)
		r = read_file(g, conf_npmrc, false, "%s/.npmrc", g->env->home);
	if (r >= 0)
		r = read_file(g, conf_npmrc, false, "/etc/npmrc");
	if (r >= 0)
		r = npm_prefix(g);
	if (r >= 0 && !g->base && !g->want_mirror)
		r = npm_default(g);
	if (r >= 0 && g->env->project)
		r = read_file(g, conf_npmrc, true, "%s/.npmrc", g->env->project);
	return r;
}

static int pip_default(struct group *g)
{
	static const char tail[] = "lib/python3*/*-packages/pip/_internal/models/index.py";
	const char *path = g->env->getenv("PATH");
	char pattern[PATH_MAX];
	int r = 0;

	if (!path || !*path)
		path = DEFAULT_PATH;
	for (size_t n; r >= 0 && !g->base && *path; path += n + (path[n] == ':')) {
		size_t dir = n = strcspn(path, ":");

		while (dir > 0 && path[dir - 1] != '/')
			dir--; /* DIR/bin: what it runs is in DIR/lib */
		if (path[0] == '/' && place(pattern, "", path, dir, tail))
			r = read_glob(g, conf_pip_source, pattern);
	}
	if (r >= 0 && !g->base &&
	    place(pattern, g->env->home, "/.pyenv/versions/*/", strlen("/.pyenv/versions/*/"), tail))
		r = read_glob(g, conf_pip_source, pattern);
	return r;
}

static int group_pypi(struct group *g)
{
	const char *own = g->env->getenv("PIP_CONFIG_FILE");
	const char *venv = g->env->getenv("VIRTUAL_ENV");
	char config[PATH_MAX];
	int r = from_env(g, "PIP_INDEX_URL", CONF_BASE);

	var_or_home(g, "XDG_CONFIG_HOME", "/.config", config, sizeof(config));
	if (r == 0)
		r = from_env(g, "PIP_EXTRA_INDEX_URL", CONF_EXTRA);
	if (r >= 0 && own && own[0] == '/' && strcmp(own, "/dev/null") != 0)
		r = read_file(g, conf_pip, false, "%s", own);
	if (r >= 0)
		r = read_file(g, conf_pip, false, "%s/pip/pip.conf", config);
	if (r >= 0)
		r = read_file(g, conf_pip, false, "%s/.pip/pip.conf", g->env->home);
	if (r >= 0)
		r = read_file(g, conf_pip, false, "/etc/pip.conf");
	if (r >= 0)
		r = read_file(g, conf_pip, false, "/etc/xdg/pip/pip.conf");
	if (r >= 0 && venv && venv[0] == '/') /* often in the project */
		r = read_file(g, conf_pip, true, "%s/pip.conf", venv);
	return r < 0 || g->base || g->want_mirror ? r : pip_default(g);
}

/* Proxies of the host's apt are told, not used: the gate dials by itself. */
static int on_apt_proxy(void *arg, const struct conf_found *f)
{
	struct group *g = arg;

	warn(g, "%s:%u: apt uses a proxy here; the sandbox does not: its connections go from this "
		"host directly", g->shown, f->line);
	return 0;
}

static int apt_proxy(const char *s, size_t len, conf_fn *fn, void *arg, unsigned int *line)
{
	(void)fn;
	return conf_apt_proxy(s, len, on_apt_proxy, arg, line);
}

static int group_debian(struct group *g)
{
	int r = read_file(g, conf_apt_list, false, "/etc/apt/sources.list");

	if (r >= 0)
		r = read_glob(g, conf_apt_list, "/etc/apt/sources.list.d/*.list");
	if (r >= 0)
		r = read_glob(g, conf_apt_sources, "/etc/apt/sources.list.d/*.sources");
	if (r >= 0 && g->n_granted > 0) {
		r = read_file(g, apt_proxy, false, "/etc/apt/apt.conf");
		if (r >= 0)
			r = read_glob(g, apt_proxy, "/etc/apt/apt.conf.d/*");
	}
	return r;
}

/*
 * The default is inside cargo's program. But cargo keeps a folder for every registry that it has
 * used: HOST-<16 hex digits>, with the registry's config.json that tells where downloads are.
 */
static int cargo_used(struct group *g, const char *home)
{
	char path[PATH_MAX + 32];
	char shown[160];
	struct dirent *e;
	DIR *dir;
	int r = snprintf(path, sizeof(path), "%s%.4000s/registry/index", g->env->root, home);

	if (r < 0 || (size_t)r >= sizeof(path))
		return 0;
	(void)snprintf(shown, sizeof(shown), "%.120s/registry/index", home);
	looked(g, shown);
	if (writable(g, path))
		return 0;
	dir = opendir(path);
	r = 0;
	while (dir && r >= 0 && (e = readdir(dir))) {
		const char *dash = strrchr(e->d_name, '-');
		char host[256];

		if (e->d_name[0] == '.' || !dash || strlen(dash) != 17 ||
		    strspn(dash + 1, "0123456789abcdef") != 16)
			continue;
		(void)snprintf(host, sizeof(host), "%.*s", (int)SB_MIN(dash - e->d_name, 250),
			       e->d_name);
		g->shown = shown;
		g->base = true;
		r = grant_host(g, host, 443, "https");
		if (r == 0)
			r = read_file(g, conf_cargo_index, false, "%s/registry/index/%s/config.json",
				      home, e->d_name);
		if (r >= 0)
			r = read_file(g, conf_cargo_index, false,
				      "%s/registry/index/%s/.cache/config.json", home, e->d_name);
	}
	if (dir)
		(void)closedir(dir);
	return r;
}

static int group_crates(struct group *g)
{
	static const char *const files[] = { "config.toml", "config" };
	char home[PATH_MAX];
	int r = 0;

	var_or_home(g, "CARGO_HOME", "/.cargo", home, sizeof(home));
	for (size_t i = 0; r >= 0 && i < SB_ARRAY_LEN(files); i++)
		r = read_file(g, conf_cargo, false, "%s/%s", home, files[i]);
	if (r >= 0)
		r = cargo_used(g, home);
	for (size_t i = 0; r >= 0 && g->env->project && i < SB_ARRAY_LEN(files); i++)
		r = read_file(g, conf_cargo, true, "%s/.cargo/%s", g->env->project, files[i]);
	if (r >= 0 && !g->base)
		return sb_err_set(g->err, -ENOENT,
				  "group crates: cargo's default registry is inside the program and "
				  "cannot be read; let cargo fetch something once on this host, or put "
				  "[source.crates-io] replace-with into ~/.cargo/config.toml, or give "
				  "the registry's names in --allow-hosts (looked in %.180s)",
				  g->looked);
	return r;
}

static int go_variable(struct group *g, bool sumdb)
{
	conf_reader *reader = sumdb ? conf_go_sumdb : conf_go_proxy;
	const char *name = sumdb ? "GOSUMDB" : "GOPROXY";
	const char *v = g->env->getenv(name);
	const char *goenv = g->env->getenv("GOENV");
	const char *goroot = g->env->getenv("GOROOT");
	size_t before = g->n_granted;
	char at[PATH_MAX];
	int r;

	if (v && *v) {
		g->shown = name;
		return conf_go_value(v, strlen(v), sumdb, 1, on_found, g);
	}
	if (goenv && goenv[0] == '/') {
		r = read_file(g, reader, false, "%s", goenv);
	} else {
		var_or_home(g, "XDG_CONFIG_HOME", "/.config", at, sizeof(at));
		r = read_file(g, reader, false, "%s/go/env", at);
	}
	if (r < 0 || g->n_granted > before)
		return r;
	if (goroot && goroot[0] == '/') {
		(void)snprintf(at, sizeof(at), "%s", goroot);
	} else if (find_program(g, "go", at) == 0) {
		up(at, 2);
	} else {
		looked(g, "go itself (not in PATH)");
		return 0;
	}
	r = read_file(g, reader, false, "%s/go.env", at);
	if (r >= 0 && g->n_granted == before) /* before Go 1.21 */
		r = read_file(g, sumdb ? conf_go_source_sumdb : conf_go_source_proxy, false,
			      "%s/src/cmd/go/internal/cfg/cfg.go", at);
	return r;
}

static int group_go(struct group *g)
{
	int r = go_variable(g, false);

	if (r >= 0 && g->n_granted == 0)
		return sb_err_set(g->err, -ENOENT,
				  "group go: no module proxy is configured (GOPROXY, \"go env\", "
				  "go.env); give the servers of the modules in --allow-hosts (looked in "
				  "%.240s)", g->looked);
	return r < 0 ? r : go_variable(g, true);
}

static int group_github(struct group *g)
{
	static const char *const hosts[] = {
		"github.com", "api.github.com", "codeload.github.com",
		"objects.githubusercontent.com", "raw.githubusercontent.com",
	};
	int r = 0;

	for (size_t i = 0; r >= 0 && i < SB_ARRAY_LEN(hosts); i++) {
		g->shown = "built in";
		r = grant_host(g, hosts[i], 443, "https");
	}
	if (r >= 0 && g->env->project)
		r = read_file(g, conf_git, true, "%s/.git/config", g->env->project);
	return r;
}

static const struct {
	const char *word;
	int (*fn)(struct group *g);
} table[] = {
	{ "npm", group_npm },	    { "pypi", group_pypi }, { "debian", group_debian },
	{ "crates", group_crates }, { "go", group_go },	    { "github", group_github },
};

bool groups_known(const char *word, size_t len)
{
	for (size_t i = 0; i < SB_ARRAY_LEN(table); i++)
		if (strlen(table[i].word) == len && memcmp(table[i].word, word, len) == 0)
			return true;
	return false;
}

const char *groups_near(const char *word, size_t len)
{
	static const struct {
		const char *word;
		const char *group;
	} other[] = {
		{ "npmjs", "npm" },    { "yarn", "npm" },     { "pip", "pypi" },
		{ "apt", "debian" },   { "cargo", "crates" }, { "deb", "debian" },
		{ "golang", "go" },    { "nmp", "npm" },      { "pipy", "pypi" },
		{ "crate", "crates" }, { "gh", "github" },
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(table); i++)
		if (strlen(table[i].word) == len && strncasecmp(table[i].word, word, len) == 0)
			return table[i].word;
	for (size_t i = 0; i < SB_ARRAY_LEN(other); i++)
		if (strlen(other[i].word) == len && strncasecmp(other[i].word, word, len) == 0)
			return other[i].group;
	return NULL;
}

int groups_resolve(const struct groups_env *env, const char *word, size_t len, bool deny,
		   groups_add_fn *add, void *arg, struct sb_err *err)
{
	struct group g = { .env = env, .deny = deny, .add = add, .arg = arg, .err = err };
	int r = -EINVAL;

	for (size_t i = 0; i < SB_ARRAY_LEN(table); i++) {
		if (strlen(table[i].word) != len || memcmp(table[i].word, word, len) != 0)
			continue;
		g.word = table[i].word;
		r = table[i].fn(&g);
	}
	for (size_t i = 0; i < g.n_granted; i++)
		free(g.granted[i]);
	if (r >= 0 && g.n_granted == 0)
		return sb_err_set(err, -ENOENT,
				  "group %s: no destination found; looked in %.300s; give the names "
				  "themselves in --allow-hosts", g.word, g.looked);
	return r < 0 ? r : 0;
}

int groups_mirror(const struct groups_env *env, const char *word, char **ret, struct sb_err *err)
{
	struct group g = { .env = env, .err = err, .want_mirror = true };
	int r = -EINVAL;

	for (size_t i = 0; i < SB_ARRAY_LEN(table); i++) {
		if (strcmp(table[i].word, word) != 0)
			continue;
		g.word = table[i].word;
		r = table[i].fn(&g);
	}
	if (r < 0) {
		free(g.mirror);
		return r;
	}
	*ret = g.mirror;
	return 0;
}
