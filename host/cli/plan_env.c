/* Who the workload is, its environment, words and terminal. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plan_make_i.h"

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

int plan_set_identity(struct sb_plan *p, const struct stat *project, struct sb_err *err)
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

int plan_set_env(struct sb_plan *p, const struct run_options *o, struct sb_err *err)
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

int plan_set_terminal(struct sb_plan *p, const struct run_options *o, struct sb_err *err)
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
