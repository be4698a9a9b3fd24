#include "plan_guards.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define GIT_CONFIG ".git/config" /* git itself may add to it, see host/fs/gitcfg.h */

/* What programs outside run or believe without being asked, when somebody opens the folder there. */
static const char *const readonly_default[] = {
	/* git: hooks, and settings that name programs; commondir would bring others */
	".git/hooks", GIT_CONFIG, ".git/config.worktree", ".git/commondir",
	/* remotes in the old way: a push to a folder of the session runs the hooks there */
	".git/remotes", ".git/branches",
	/* editors */
	".vscode", ".idea", ".zed", ".vim", ".nvim.lua", ".nvimrc", ".exrc", ".vimrc",
	".dir-locals.el",
	/* agents */
	".claude", ".cursor", ".codex", ".gemini", ".mcp.json", ".aider.conf.yml",
	/* shells and tool managers that read what lies in the current folder */
	".envrc", ".mise.toml", ".mise", ".devcontainer", ".devcontainer.json",
	".sendbox.yaml", NULL,
};
/* Keys and passwords, where a share holds the caller's home. */
static const char *const hidden_default[] = {
	".ssh", ".gnupg", ".netrc", ".git-credentials", ".npmrc", ".pypirc", ".aws", ".azure",
	".kube", ".docker/config.json", ".config/gcloud", ".config/gh", ".config/hub",
	".config/git/credentials", ".cargo/credentials", ".cargo/credentials.toml",
	".password-store", ".local/share/keyrings", NULL,
};

struct build {
	struct sb_plan *p;
	struct sb_plan_guard v[SB_PLAN_MAX_GUARDS]; /* paths owned */
	size_t n;
	const struct guard_entry *at; /* whose place errors name; NULL = none */
	struct sb_err *err;
};

static void build_done(struct build *b)
{
	for (size_t i = 0; i < b->n; i++)
		free(b->v[i].path);
	free(b);
}

/* "FILE:LINE: " of the entry at hand; borrowed by the build. */
static const char *where(const struct build *b)
{
	return b->at && b->at->where ? b->at->where : "guarded_paths";
}

static int put(struct build *b, const char *path, enum sb_guard_mode mode)
{
	for (size_t i = 0; i < b->n; i++) {
		if (strcmp(b->v[i].path, path) != 0)
			continue;
		if (mode == SB_GUARD_HIDDEN || b->v[i].mode == SB_GUARD_GIT)
			b->v[i].mode = mode; /* the stricter one */
		return 0;
	}
	if (b->n == SB_PLAN_MAX_GUARDS)
		return sb_err_set(b->err, -EINVAL, "more than %d guarded paths, counted once for "
				  "each mount through which they are reached", SB_PLAN_MAX_GUARDS);
	b->v[b->n].path = strdup(path);
	if (!b->v[b->n].path)
		return sb_err_set(b->err, -ENOMEM, "out of memory");
	b->v[b->n++].mode = mode;
	return 0;
}

/* "@dir/@rest". Return: 0; -ENAMETOOLONG. */
static int join(char out[PATH_MAX], const char *dir, const char *rest)
{
	int n = snprintf(out, PATH_MAX, "%s%s%s", dir, *rest && strcmp(dir, "/") != 0 ? "/" : "",
			 rest);

	return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

/* What follows @dir and its slash in @path, which is within it. */
static const char *rest_of(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return path[n] == '/' ? path + n + 1 : n == 1 ? path + 1 : path + n;
}

static bool has_place(const struct sb_plan *p, const char *path)
{
	const struct sb_plan_mount *m = sb_plan_holder(p, path);

	if (!m || m->mode != SB_MOUNT_RW || m->file || strcmp(m->guest, path) == 0)
		return false;
	for (size_t i = 0; i < p->n_mounts; i++)
		if (sb_path_within(p->mounts[i].guest, path))
			return false;
	return true;
}

/* Guard the host's @path in every mount through which it can be reached. */
static int put_host(struct build *b, const char *path, enum sb_guard_mode mode, const char *as)
{
	for (size_t i = 0; i < b->p->n_mounts; i++) {
		const struct sb_plan_mount *m = &b->p->mounts[i];
		char at[PATH_MAX];
		int r = 0;

		if (sb_path_within(m->host, path)) {
			if (m->mode == SB_MOUNT_RW || mode == SB_GUARD_HIDDEN)
				return sb_err_set(b->err, -EINVAL,
						  "%.150s: guarded path \"%.100s\" is shared%s at "
						  "%.100s as well: take one of the two away",
						  where(b), as,
						  m->mode == SB_MOUNT_RW ? " read-write" : "",
						  m->guest);
			continue;
		}
		if (!sb_path_within(path, m->host))
			continue;
		if (m->mode != SB_MOUNT_RW) {
			if (mode == SB_GUARD_HIDDEN)
				return sb_err_set(b->err, -EINVAL,
						  "%.150s: hidden path \"%.100s\" can be read "
						  "through the mount at %.100s: share that one "
						  "read-write or not at all", where(b), as,
						  m->guest);
			continue;
		}
		if (join(at, m->guest, rest_of(path, m->host)) == 0 && has_place(b->p, at))
			r = put(b, at, mode);
		if (r < 0)
			return r;
	}
	return 0;
}

/* @path is in the guest. @own: written down by somebody, not built in. */
static int add(struct build *b, const char *path, enum sb_guard_mode mode, bool own)
{
	const struct sb_plan_mount *m = sb_plan_holder(b->p, path);
	char host[PATH_MAX];
	char real[PATH_MAX];
	int r;

	if (!has_place(b->p, path)) {
		if (!own)
			return 0;
		return sb_err_set(b->err, -EINVAL,
				  "%.150s: guarded path \"%.200s\": must lie inside a folder that is "
				  "shared read-write, and hold no other mount", where(b), path);
	}
	r = put(b, path, mode);
	if (r < 0 || join(host, m->host, rest_of(path, m->guest)) < 0)
		return r;
	r = put_host(b, host, mode, path);
	if (r == 0 && realpath(host, real) && strcmp(real, host) != 0)
		r = put_host(b, real, mode, path); /* what a link on the way leads to */
	return r;
}

static int add_below(struct build *b, const char *dir, const char *entry, enum sb_guard_mode mode,
		     bool own)
{
	char path[PATH_MAX];
	char norm[SB_PLAN_MAX_PATH + 1];
	int r = entry[0] == '/' ? join(path, entry, "") : join(path, dir, entry);

	if (r == 0)
		r = sb_path_normalise(path, norm);
	if (r < 0)
		return sb_err_set(b->err, -EINVAL,
				  "%.150s: guarded path \"%.200s\": must be relative to the project "
				  "or absolute in the sandbox, without \"..\"", where(b), entry);
	return add(b, norm, mode, own);
}

/* A worktree's .git is a file that names another folder: then that file is what counts. */
static bool git_is_file(const struct build *b, const char *project)
{
	const struct sb_plan_mount *m = sb_plan_holder(b->p, project);
	char in_guest[PATH_MAX];
	char host[PATH_MAX];
	struct stat st;

	return m && join(in_guest, project, ".git") == 0 &&
	       join(host, m->host, rest_of(in_guest, m->guest)) == 0 && lstat(host, &st) == 0 &&
	       S_ISREG(st.st_mode);
}

static int add_readonly_default(struct build *b, const char *project)
{
	bool file = git_is_file(b, project);
	int r = file ? add_below(b, project, ".git", SB_GUARD_READONLY, false) : 0;

	for (const char *const *e = readonly_default; r == 0 && *e; e++)
		if (!file || strncmp(*e, ".git/", 5) != 0)
			r = add_below(b, project, *e,
				      strcmp(*e, GIT_CONFIG) == 0 ? SB_GUARD_GIT : SB_GUARD_READONLY,
				      false);
	return r;
}

static int add_hidden_default(struct build *b, const char *home)
{
	int r = 0;

	for (size_t i = 0; home && r == 0 && i < b->p->n_mounts; i++) {
		const struct sb_plan_mount *m = &b->p->mounts[i];
		char at[PATH_MAX];

		if (m->mode != SB_MOUNT_RW || !sb_path_within(home, m->host) ||
		    join(at, m->guest, rest_of(home, m->host)) < 0)
			continue;
		for (const char *const *e = hidden_default; r == 0 && *e; e++)
			r = add_below(b, at, *e, SB_GUARD_HIDDEN, false);
	}
	return r;
}

static int add_list(struct build *b, const struct guard_lists *l, enum sb_guard_mode mode)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < l->n; i++) {
		const char *text = l->v[i].text;

		if (l->v[i].mode != mode)
			continue;
		b->at = &l->v[i];
		if (strcmp(text, GUARDS_DEFAULT) == 0)
			r = mode == SB_GUARD_HIDDEN ? add_hidden_default(b, l->home)
						    : add_readonly_default(b, l->project);
		else if (!*text || strpbrk(text, "*?["))
			r = sb_err_set(b->err, -EINVAL,
				       "%.150s: guarded path \"%.200s\": wildcards are not understood; "
				       "name the file or a folder above it", where(b), text);
		else
			r = add_below(b, l->project, text, mode, true);
	}
	b->at = NULL;
	return r;
}

/* Names beneath a hidden one are hidden by it. */
static void drop_covered(struct build *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->n; i++) {
		bool covered = false;

		for (size_t k = 0; k < b->n && !covered; k++)
			covered = k != i && b->v[k].path && b->v[k].mode == SB_GUARD_HIDDEN &&
				  sb_path_within(b->v[i].path, b->v[k].path);
		if (covered) {
			free(b->v[i].path);
			b->v[i].path = NULL;
		}
	}
	for (size_t i = 0; i < b->n; i++)
		if (b->v[i].path)
			b->v[n++] = b->v[i];
	b->n = n;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct sb_plan_guard *)a)->path,
		      ((const struct sb_plan_guard *)b)->path);
}

static void replace(struct sb_plan *p, struct sb_plan_guard *v, size_t n)
{
	for (size_t i = 0; i < p->n_guards; i++)
		free(p->guards[i].path);
	free(p->guards);
	p->guards = v;
	p->n_guards = n;
}

/* A folder that two servers share: what one has looked at the other one could change. */
static void one_server_alone(struct build *b)
{
	size_t git = 0;

	for (size_t i = 0; i < b->n; i++)
		git += b->v[i].mode == SB_GUARD_GIT;
	for (size_t i = 0; git > 1 && i < b->n; i++)
		if (b->v[i].mode == SB_GUARD_GIT)
			b->v[i].mode = SB_GUARD_READONLY;
}

static int take(struct build *b)
{
	struct sb_plan_guard *v = NULL;

	drop_covered(b);
	one_server_alone(b);
	if (b->n > 0) {
		v = calloc(b->n, sizeof(*v));
		if (!v)
			return sb_err_set(b->err, -ENOMEM, "out of memory");
		qsort(b->v, b->n, sizeof(b->v[0]), by_path);
		memcpy(v, b->v, b->n * sizeof(*v));
	}
	replace(b->p, v, b->n);
	b->n = 0;
	return 0;
}

/* Whether guarding @file starts no server that is not needed anyway. */
static bool is_cheap(const struct build *b, const char *file)
{
	if (b->p->provider == SB_PROVIDER_MICROVM)
		return true;
	for (size_t i = 0; i < b->n; i++) {
		const struct sb_plan_mount *m = sb_plan_holder(b->p, b->v[i].path);

		if (m && sb_path_within(file, m->host))
			return true;
	}
	return false;
}

int plan_guards(struct sb_plan *p, const struct guard_lists *l, struct sb_err *err)
{
	struct build *b = calloc(1, sizeof(*b));
	int r;

	if (!b)
		return sb_err_set(err, -ENOMEM, "out of memory");
	b->p = p;
	b->err = err;
	r = add_list(b, l, SB_GUARD_HIDDEN);
	if (r == 0)
		r = add_list(b, l, SB_GUARD_READONLY);
	for (const char *const *f = l->files; r == 0 && f && *f; f++)
		if (is_cheap(b, *f))
			r = put_host(b, *f, SB_GUARD_READONLY, *f);
	if (r == 0)
		r = take(b);
	build_done(b);
	return r;
}
