/* Who the workload is, its environment, words and terminal. */
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "conn/plan_env.h"
#include "launch.h"
#include "plan_make_i.h"
#include "plan_net.h"

#define PROXY "127.0.0.1:3128" /* SB_NET_PROXY_PORT */
#define NO_PROXY "localhost,127.0.0.1,::1"
#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static int oom(struct sb_err *err)
{
	return sb_err_set(err, -ENOMEM, "out of memory");
}

static bool plain_name(const char *s)
{
	return s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")] ==
		       '\0' &&
	       s[0] != '\0' && s[0] != '-' && s[0] != '.' && strlen(s) <= 32;
}

/* Root of its own guest. */
static int set_builder(struct sb_plan *p, const struct stat *project, struct sb_err *err)
{
	p->owner_uid = project->st_uid;
	p->owner_gid = project->st_gid;
	p->user = strdup("root");
	p->home = strdup("/root");
	p->hostname = strdup("sendbox");
	return p->user && p->home && p->hostname ? 0 : oom(err);
}

/* The name inside: an ordinary user keeps his own, root becomes somebody else. */
static const char *guest_user(bool test_root)
{
	const struct passwd *pw = geteuid() == 0 ? NULL : getpwuid(geteuid());

	if (geteuid() == 0)
		return test_root ? "root" : "user";
	return pw && plain_name(pw->pw_name) ? pw->pw_name : "user";
}

int plan_guest_home(char *out, size_t cap)
{
	bool test_root = getenv("SENDBOX_TEST_GUEST_ROOT") != NULL;
	int n = snprintf(out, cap, test_root ? "/root" : "/home/%s", guest_user(test_root));

	return n < 0 || (size_t)n >= cap ? -ENAMETOOLONG : 0;
}

int plan_set_identity(struct sb_plan *p, const struct plan_input *in, const struct stat *project,
		      struct sb_err *err)
{
	const struct cfg_value *uid = conf_set(in, "uid");
	char home[64];

	p->test_root = !plan_alone(p) && getenv("SENDBOX_TEST_GUEST_ROOT") != NULL;
	if (p->builder)
		return set_builder(p, project, err);
	if (geteuid() == 0) {
		p->uid = p->gid = p->test_root ? 0 : 1000;
		p->owner_uid = project->st_uid;
		p->owner_gid = project->st_gid;
	} else {
		p->uid = p->owner_uid = geteuid();
		p->gid = p->owner_gid = getegid();
		if (p->test_root)
			p->uid = p->gid = 0;
	}
	p->user = strdup(guest_user(p->test_root));
	if (!p->user)
		return oom(err);
	if (uid && !p->test_root)
		p->uid = p->gid = (uint32_t)uid->integer;
	(void)snprintf(home, sizeof(home), p->test_root ? "/root" : "/home/%s", p->user);
	p->home = strdup(home);
	p->hostname = strdup("sendbox");
	return p->home && p->hostname ? 0 : oom(err);
}

static int env_set(struct sb_plan *p, const char *name, size_t len, const char *value,
		   struct sb_err *err)
{
	int r = sb_plan_env_set(p, name, len, value);

	if (r == -E2BIG)
		return sb_err_set(err, r, "too many environment variables: at most %d",
				  SB_PLAN_MAX_ARGS);
	return r < 0 ? oom(err) : 0;
}

int plan_base_env(struct sb_plan *p, bool proxy_env, struct sb_err *err)
{
	const struct {
		const char *name;
		const char *value;
	} base[] = {
		{ "PATH", DEFAULT_PATH }, { "HOME", p->home },	     { "USER", p->user },
		{ "LOGNAME", p->user },	  { "SHELL", "/bin/bash" },  { "TMPDIR", "/tmp" },
		{ "LANG", "C.UTF-8" },	  { "PWD", p->cwd },	     { "TERM", p->term },
	}, proxied[] = {
		{ "HTTP_PROXY", "http://" PROXY },  { "HTTPS_PROXY", "http://" PROXY },
		{ "http_proxy", "http://" PROXY },  { "https_proxy", "http://" PROXY },
		{ "ALL_PROXY", "socks5h://" PROXY }, { "all_proxy", "socks5h://" PROXY },
		{ "NO_PROXY", NO_PROXY },	    { "no_proxy", NO_PROXY },
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < SB_ARRAY_LEN(base); i++)
		if (base[i].value)
			r = env_set(p, base[i].name, strlen(base[i].name), base[i].value, err);
	for (size_t i = 0; r == 0 && proxy_env && i < SB_ARRAY_LEN(proxied); i++)
		r = env_set(p, proxied[i].name, strlen(proxied[i].name), proxied[i].value, err);
	return r;
}

/* @value: NULL = the caller's */
static int set_one(struct sb_plan *p, const char *name, size_t len, const char *value,
		   const char *who, struct sb_err *err)
{
	sb_autofree char *copy = strndup(name, len);

	if (!copy)
		return oom(err);
	if (!value)
		value = getenv(copy);
	if (!value)
		return sb_err_set(err, -EINVAL, "%s %.100s: the caller has no such variable", who,
				  copy);
	return env_set(p, name, len, value, err);
}

/* What a session stands on: where its home is, who it is, how it gets out. */
static bool is_base(const struct sb_plan *p, size_t n_base, const char *name, size_t len)
{
	for (size_t i = 0; i < n_base; i++)
		if (strlen(p->env[i].name) == len && memcmp(p->env[i].name, name, len) == 0)
			return len != 4 || memcmp(name, "PATH", 4) != 0;
	return false;
}

/* What the caller's own code sets: an image's variables, or what an installer needs. An image says where
 * its programs are, not what we say. */
static int set_target(struct sb_plan *p, const struct plan_input *in, struct sb_err *err)
{
	const char *const *e = in->target ? in->target->env : NULL;
	size_t n_base = p->n_env;
	int r = 0;

	for (; r == 0 && e && *e; e++) {
		size_t n = strcspn(*e, "=");

		if (n == 0 || (*e)[n] != '=')
			return sb_err_set(err, -EINVAL, "environment \"%.100s\": must be NAME=VALUE",
					  *e);
		if (!is_base(p, n_base, *e, n))
			r = env_set(p, *e, n, *e + n + 1, err);
	}
	return r;
}

static int set_configured(struct sb_plan *p, const struct plan_input *in, struct sb_err *err)
{
	const struct cfg_value *map = cfg_get(in->conf->cfg, "env");
	int r = 0;

	for (size_t i = 0; r == 0 && map && map->kind == DOC_MAP && i < map->n; i++) {
		const struct cfg_value *v = &map->items[i];
		char who[PATH_MAX];

		conf_name(in, v, "--env", "env", who, sizeof(who));
		r = set_one(p, map->keys[i], strlen(map->keys[i]),
			    v->kind == DOC_NULL ? NULL : conf_text(in, v), who, err);
	}
	return r;
}

/* Names that no file can have. */
static int set_unusual(struct sb_plan *p, const struct run_options *o, struct sb_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < o->n_env; i++) {
		const char *e = o->env[i];
		size_t n = strcspn(e, "=");

		if (n == 0)
			return sb_err_set(err, -EINVAL, "--env \"%.100s\": must be NAME=VALUE or "
							"NAME", e);
		if (!cfg_options_env_name(e, n))
			r = set_one(p, e, n, e[n] == '=' ? e + n + 1 : NULL, "--env", err);
	}
	return r;
}

int plan_set_env(struct sb_plan *p, const struct plan_input *in, struct sb_err *err)
{
	bool proxy = plan_net_mode(in) != SB_NET_NONE &&
		     conf_bool(in, "policy.network.proxy_env", false);
	int r = plan_base_env(p, proxy, err);

	if (r == 0)
		r = set_target(p, in, err);
	if (r == 0)
		r = set_configured(p, in, err);
	return r < 0 ? r : set_unusual(p, in->opt, err);
}

int plan_image_env(struct sb_plan *p, char *const *env, struct sb_err *err)
{
	int r = 0;

	for (; r == 0 && env && *env; env++) {
		size_t n = strcspn(*env, "=");
		sb_autofree char *name = strndup(*env, n);
		const char *now = name ? plan_env_get(p, name) : NULL;
		bool path = name && strcmp(name, "PATH") == 0 && now &&
			    strcmp(now, DEFAULT_PATH) == 0;

		if (!name)
			return oom(err);
		if (n > 0 && (*env)[n] == '=' && (!now || path))
			r = env_set(p, *env, n, *env + n + 1, err);
	}
	return r;
}

const char *plan_env_path(void)
{
	return DEFAULT_PATH;
}

const char *plan_env_get(const struct sb_plan *p, const char *name)
{
	for (size_t i = 0; i < p->n_env; i++)
		if (strcmp(p->env[i].name, name) == 0)
			return p->env[i].value;
	return NULL;
}

int plan_set_argv(struct sb_plan *p, char **argv, struct sb_err *err)
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

int plan_set_terminal(struct sb_plan *p, const struct plan_input *in, struct sb_err *err)
{
	const struct run_options *o = in->opt;
	static const int own[] = { STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO };
	const int *io = in->io ? in->io : own;
	bool terminals = isatty(io[0]) && isatty(io[1]);
	const char *term = getenv("TERM");

	if (o->interactive && !terminals)
		return sb_err_set(err, -EINVAL,
				  "--interactive needs a terminal on standard input and output");
	if (p->task == SB_TASK_EXPORT)
		return 0;
	p->tty = terminals && !o->json;
	p->separate_stderr = o->separate_stderr;
	if (o->separate_stderr && !p->tty)
		return sb_err_set(err, -EINVAL, "--separate-stderr is for interactive sessions; "
						"without a terminal stderr is always separate");
	/* a terminal shows both: stderr goes its own way only when it is redirected or asked */
	if (p->tty && !isatty(io[2]))
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
