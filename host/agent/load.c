/* Built-in definitions and those of the user's folder. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent_i.h"
#include "base/fd.h"
#include "base/near.h"

#define MAX_AGENTS 1024

const struct agent_builtin *agent_builtin_find(const char *name)
{
	for (size_t i = 0; i < agent_n_builtins; i++)
		if (strcmp(agent_builtins[i].name, name) == 0)
			return &agent_builtins[i];
	return NULL;
}

static int refuse(struct problems *p, const char *path, const char *code, const char *why)
{
	struct doc_node whole = { .file = path };

	problems_add(p, &whole, "", code, "%s", why);
	return -EBADMSG;
}

static int read_all(int fd, char **ret, size_t *ret_len)
{
	sb_autofree char *bytes = malloc(AGENT_MAX_BYTES + 1);
	ssize_t n = bytes ? sb_fd_read_most(fd, bytes, AGENT_MAX_BYTES + 1) : -ENOMEM;

	if (n < 0)
		return (int)n;
	*ret = sb_take(&bytes);
	*ret_len = (size_t)n;
	return 0;
}

int agent_read_file(const char *path, char **ret, size_t *ret_len, struct problems *p)
{
	sb_autofd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	int r;

	if (fd < 0 && errno == ENOENT)
		return 1;
	if (fd < 0)
		return refuse(p, path, errno == ELOOP ? "untrusted" : "io",
			      errno == ELOOP ? "a symbolic link; put the file itself there"
					     : strerror(errno));
	if (fstat(fd, &st) < 0)
		return refuse(p, path, "io", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return refuse(p, path, "untrusted", "no regular file");
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return refuse(p, path, "untrusted", "belongs to another user; it must be yours or root's");
	if ((st.st_mode & S_IWOTH) || ((st.st_mode & S_IWGRP) && st.st_gid != st.st_uid))
		return refuse(p, path, "untrusted", "can be written by others; chmod go-w it first");
	r = read_all(fd, ret, ret_len);
	return r < 0 && r != -ENOMEM ? refuse(p, path, "io", strerror(-r)) : r;
}

static int new_agent(const char *name, struct agent **ret)
{
	struct agent *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->name = arena_text(&a->arena, name, strlen(name));
	if (!a->name) {
		(void)agent_free(a);
		return -ENOMEM;
	}
	*ret = a;
	return 0;
}

int agent_load(const char *config_dir, const char *name, struct agent **ret, struct problems *p)
{
	const struct agent_builtin *b = agent_builtin_find(name);
	sb_autoagent struct agent *a = NULL;
	sb_autofree char *bytes = NULL;
	char path[PATH_MAX];
	char shown[128];
	size_t len = 0;
	int r;

	if (!agent_name_ok(name) ||
	    snprintf(path, sizeof(path), "%s/agents/%s.json", config_dir, name) >= (int)sizeof(path))
		return -ENOENT;
	r = new_agent(name, &a);
	if (r == 0 && b) {
		a->builtin = true;
		(void)snprintf(shown, sizeof(shown), "built-in agent %.64s.json", name);
		r = agent_parse(b->json, b->len, shown, a, p);
	}
	if (r < 0)
		return r;
	r = agent_read_file(path, &bytes, &len, p);
	if (r == 1 && !b)
		return -ENOENT;
	if (r == 0) {
		a->custom = true;
		r = agent_parse(bytes, len, path, a, p);
	}
	if (r >= 0)
		r = agent_complete(a, path, p);
	if (r < 0)
		return r;
	*ret = sb_take(&a);
	return 0;
}

bool agent_exists(const char *config_dir, const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	if (!agent_name_ok(name))
		return false;
	return agent_builtin_find(name) ||
	       (snprintf(path, sizeof(path), "%s/agents/%s.json", config_dir, name) <
			(int)sizeof(path) &&
		lstat(path, &st) == 0);
}

/* ---- all of them ---- */

struct names {
	char *v[MAX_AGENTS];
	size_t n;
};

static void names_done(struct names *n)
{
	for (size_t i = 0; i < n->n; i++)
		free(n->v[i]);
	free(n);
}

static int names_add(struct names *n, const char *name, size_t len)
{
	char *copy;

	for (size_t i = 0; i < n->n; i++)
		if (strlen(n->v[i]) == len && memcmp(n->v[i], name, len) == 0)
			return 0;
	if (n->n == MAX_AGENTS)
		return -E2BIG;
	copy = strndup(name, len);
	if (!copy)
		return -ENOMEM;
	n->v[n->n++] = copy;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int names_read(const char *config_dir, struct names *names)
{
	char path[PATH_MAX];
	struct dirent *e;
	int r = 0;
	DIR *d;

	for (size_t i = 0; r == 0 && i < agent_n_builtins; i++)
		r = names_add(names, agent_builtins[i].name, strlen(agent_builtins[i].name));
	if (r < 0 || snprintf(path, sizeof(path), "%s/agents", config_dir) >= (int)sizeof(path))
		return r;
	d = opendir(path);
	if (!d)
		return errno == ENOENT ? 0 : -errno;
	while (r == 0 && (e = readdir(d))) {
		size_t n = strlen(e->d_name);

		if (n > 5 && strcmp(e->d_name + n - 5, ".json") == 0 && e->d_name[0] != '.')
			r = names_add(names, e->d_name, n - 5);
	}
	(void)closedir(d);
	qsort(names->v, names->n, sizeof(*names->v), by_name);
	return r;
}

int agent_each(const char *config_dir, int (*fn)(void *arg, const char *name, bool ok), void *arg)
{
	struct names *names = calloc(1, sizeof(*names));
	int r = names ? names_read(config_dir, names) : -ENOMEM;

	for (size_t i = 0; r == 0 && i < names->n; i++)
		r = fn(arg, names->v[i], agent_name_ok(names->v[i]));
	if (names)
		names_done(names);
	return r;
}

struct near {
	const char *word;
	char *list;
	size_t cap;
	unsigned int best;
	char *name;
};

static int near_one(void *arg, const char *name, bool ok)
{
	struct near *n = arg;
	unsigned int d = ok ? sb_near(n->word, name, 3) : 9;
	size_t len = strlen(n->list);

	if (!ok)
		return 0;
	if (d < n->best) {
		n->best = d;
		(void)snprintf(n->name, 65, "%s", name);
	}
	(void)snprintf(n->list + len, n->cap - len, "%s%s", len > 0 ? ", " : "", name);
	return 0;
}

void agent_names(const char *config_dir, const char *word, char *list, size_t cap, char near[65])
{
	struct near n = { word, list, cap, 3, near };

	list[0] = '\0';
	near[0] = '\0';
	if (agent_each(config_dir, near_one, &n) < 0)
		(void)snprintf(list, cap, "(cannot be listed)");
}
