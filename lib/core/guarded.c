#include "core/guarded.h"

#include <fnmatch.h>
#include <string.h>
#include <strings.h>

struct row {
	enum sb_guarded g;
	const char *pattern; /* of the last components of a path; with a slash at its end: a folder and
			      * all that is in it */
};

static const struct row rows[] = {
	{ SB_GUARDED_GIT, ".git/hooks/" },
	{ SB_GUARDED_GIT, ".git/config" },
	{ SB_GUARDED_GIT, ".git/config.worktree" },
	{ SB_GUARDED_GIT, ".git/commondir" },
	{ SB_GUARDED_GIT, ".git/info/attributes" }, /* with it .git/info, when it is no folder */
	{ SB_GUARDED_GIT, ".git/remotes/" },
	{ SB_GUARDED_GIT, ".git/branches/" },
	{ SB_GUARDED_GIT, ".git/sequencer/" },
	{ SB_GUARDED_GIT, "rebase-merge/" }, /* "exec" lines; in a repository of any name */
	{ SB_GUARDED_GIT, "rebase-apply/" },
	{ SB_GUARDED_GIT, ".gitmodules" },
	{ SB_GUARDED_GIT, ".gitattributes" },
	{ SB_GUARDED_GIT, ".gitconfig" },
	{ SB_GUARDED_GIT, ".husky/" },
	{ SB_GUARDED_GIT, ".githooks/" },
	{ SB_GUARDED_GIT, ".pre-commit-config.yaml" },
	{ SB_GUARDED_GIT, "lefthook.yml" },
	{ SB_GUARDED_EDITOR, ".vscode/" },
	{ SB_GUARDED_EDITOR, ".idea/" },
	{ SB_GUARDED_EDITOR, ".zed/" },
	{ SB_GUARDED_EDITOR, ".vim/" },
	{ SB_GUARDED_EDITOR, ".nvim.lua" },
	{ SB_GUARDED_EDITOR, ".nvimrc" },
	{ SB_GUARDED_EDITOR, ".exrc" },
	{ SB_GUARDED_EDITOR, ".vimrc" },
	{ SB_GUARDED_EDITOR, ".dir-locals.el" },
	{ SB_GUARDED_EDITOR, "*.code-workspace" },
	{ SB_GUARDED_AGENT, ".claude/" },
	{ SB_GUARDED_AGENT, ".cursor/" },
	{ SB_GUARDED_AGENT, ".codex/" },
	{ SB_GUARDED_AGENT, ".gemini/" },
	{ SB_GUARDED_AGENT, ".mcp.json" },
	{ SB_GUARDED_AGENT, ".aider.conf.yml" },
	{ SB_GUARDED_AGENT, ".cursorrules" },
	{ SB_GUARDED_AGENT, "CLAUDE.md" },
	{ SB_GUARDED_AGENT, "AGENTS.md" },
	{ SB_GUARDED_AGENT, "GEMINI.md" },
	{ SB_GUARDED_AGENT, ".github/copilot-instructions.md" },
	{ SB_GUARDED_SHELL, ".envrc" },
	{ SB_GUARDED_SHELL, ".env" },
	{ SB_GUARDED_SHELL, ".mise.toml" },
	{ SB_GUARDED_SHELL, ".mise/" },
	{ SB_GUARDED_SHELL, ".tool-versions" },
	{ SB_GUARDED_SHELL, ".devcontainer/" },
	{ SB_GUARDED_SHELL, ".devcontainer.json" },
	{ SB_GUARDED_SHELL, ".sendbox.yaml" },
	{ SB_GUARDED_SHELL, ".bashrc" },
	{ SB_GUARDED_SHELL, ".profile" },
	{ SB_GUARDED_SHELL, ".bash_profile" },
	{ SB_GUARDED_SHELL, ".zshrc" },
	{ SB_GUARDED_SHELL, ".zshenv" },
	{ SB_GUARDED_CI, ".github/workflows/" },
	{ SB_GUARDED_CI, ".github/actions/" },
	{ SB_GUARDED_CI, ".gitlab-ci.yml" },
	{ SB_GUARDED_CI, ".circleci/" },
	{ SB_GUARDED_CI, ".buildkite/" },
	{ SB_GUARDED_CI, ".travis.yml" },
	{ SB_GUARDED_CI, ".drone.yml" },
	{ SB_GUARDED_CI, ".woodpecker.yml" },
	{ SB_GUARDED_CI, "Jenkinsfile" },
	{ SB_GUARDED_CI, "azure-pipelines.yml" },
	{ SB_GUARDED_CI, "bitbucket-pipelines.yml" },
	{ SB_GUARDED_CI, "appveyor.yml" },
	{ SB_GUARDED_PACKAGE, "package.json" },
	{ SB_GUARDED_PACKAGE, ".npmrc" },
	{ SB_GUARDED_PACKAGE, ".yarnrc" },
	{ SB_GUARDED_PACKAGE, ".yarnrc.yml" },
	{ SB_GUARDED_PACKAGE, ".pnpmfile.cjs" },
	{ SB_GUARDED_PACKAGE, "binding.gyp" },
	{ SB_GUARDED_PACKAGE, "setup.py" },
	{ SB_GUARDED_PACKAGE, "setup.cfg" },
	{ SB_GUARDED_PACKAGE, "pyproject.toml" },
	{ SB_GUARDED_PACKAGE, "conftest.py" },
	{ SB_GUARDED_PACKAGE, "sitecustomize.py" },
	{ SB_GUARDED_PACKAGE, "build.rs" },
	{ SB_GUARDED_PACKAGE, ".cargo/" },
	{ SB_GUARDED_PACKAGE, "composer.json" },
	{ SB_GUARDED_PACKAGE, "build.gradle" },
	{ SB_GUARDED_PACKAGE, "build.gradle.kts" },
	{ SB_GUARDED_PACKAGE, "pom.xml" },
	{ SB_GUARDED_BUILD, "Makefile" },
	{ SB_GUARDED_BUILD, "GNUmakefile" },
	{ SB_GUARDED_BUILD, "*.mk" },
	{ SB_GUARDED_BUILD, "CMakeLists.txt" },
	{ SB_GUARDED_BUILD, "meson.build" },
	{ SB_GUARDED_BUILD, "configure" },
	{ SB_GUARDED_BUILD, "Justfile" },
	{ SB_GUARDED_BUILD, "Taskfile.yml" },
	{ SB_GUARDED_BUILD, "Rakefile" },
	{ SB_GUARDED_BUILD, "Dockerfile" },
	{ SB_GUARDED_BUILD, "docker-compose.yml" },
	{ SB_GUARDED_BUILD, "compose.yaml" },
};

/* Hooks of a folder that is a repository without a work tree, or a module of one. */
static const char *const hooks[] = {
	"applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-applypatch", "post-checkout",
	"post-commit", "post-index-change", "post-merge", "post-receive", "post-rewrite", "post-update",
	"pre-applypatch", "pre-auto-gc", "pre-commit", "pre-merge-commit", "pre-push", "pre-rebase",
	"pre-receive", "prepare-commit-msg", "proc-receive", "push-to-checkout", "reference-transaction",
	"sendemail-validate", "update",
};

/* The last components of what git believes in a repository of any name. */
static const char *const in_repository[] = {
	"info/attributes", "info/grafts", "objects/info/alternates", "sequencer/todo", "sequencer/opts",
};

/* @row's pattern against the path from one of its components on. */
static bool match_at(const char *pattern, const char *at)
{
	size_t n = strlen(pattern);

	if (pattern[n - 1] == '/') /* the folder itself, or what is in it */
		return strncasecmp(pattern, at, n - 1) == 0 && (at[n - 1] == '\0' || at[n - 1] == '/');
	if (pattern[0] == '*')
		return fnmatch(pattern, at, FNM_PATHNAME | FNM_CASEFOLD) == 0;
	return strcasecmp(pattern, at) == 0;
}

static bool is_hook(const char *path)
{
	const char *name = strrchr(path, '/');
	size_t dir = name ? (size_t)(name - path) : 0;

	if (dir < 5 || strncasecmp(path + dir - 5, "hooks", 5) != 0 || (dir > 5 && path[dir - 6] != '/'))
		return false;
	for (size_t i = 0; i < SB_ARRAY_LEN(hooks); i++)
		if (strcasecmp(name + 1, hooks[i]) == 0)
			return true;
	return false;
}

static bool is_in_repository(const char *path)
{
	const size_t n = strlen(path);

	for (size_t i = 0; i < SB_ARRAY_LEN(in_repository); i++) {
		const size_t k = strlen(in_repository[i]);

		if (n > k && path[n - k - 1] == '/' && strcasecmp(path + n - k, in_repository[i]) == 0)
			return true;
	}
	return false;
}

static bool in_git(const char *path)
{
	for (const char *at = path; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
		if (strncasecmp(at, ".git/", 5) == 0)
			return true;
	return false;
}

enum sb_guarded sb_guarded(const char *path)
{
	size_t n = strlen(path);

	if (n > 7 && strcmp(path + n - 7, ".sample") == 0 && strstr(path, "hooks/"))
		return SB_GUARDED_NO; /* git's own examples, which nothing runs */
	for (const char *at = path; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
		for (size_t i = 0; i < SB_ARRAY_LEN(rows); i++)
			if (match_at(rows[i].pattern, at))
				return rows[i].g;
	/* modules and work trees have settings and hooks of their own */
	if (in_git(path)) {
		const char *name = strrchr(path, '/') + 1;

		if (strstr(path, "/hooks/") || strstr(path, "/sequencer/") || strcasecmp(name, "config") == 0 ||
		    strcasecmp(name, "config.worktree") == 0 || strcasecmp(name, "commondir") == 0)
			return SB_GUARDED_GIT;
	}
	return is_hook(path) || is_in_repository(path) ? SB_GUARDED_GIT : SB_GUARDED_NO;
}

/* Whether @at is one of the folders that @pattern leads through. */
static bool leads_through(const char *pattern, const char *at)
{
	const size_t n = strlen(at);

	return strncasecmp(pattern, at, n) == 0 && pattern[n] == '/' && pattern[n + 1] != '\0';
}

enum sb_guarded sb_guarded_above(const char *path)
{
	for (const char *at = path; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
		for (size_t i = 0; i < SB_ARRAY_LEN(rows); i++)
			if (leads_through(rows[i].pattern, at))
				return rows[i].g;
	return SB_GUARDED_NO;
}

enum sb_guarded sb_guarded_link(const char *path)
{
	const enum sb_guarded g = sb_guarded(path);

	if (g != SB_GUARDED_NO)
		return g;
	return in_git(path) ? SB_GUARDED_GIT : sb_guarded_above(path);
}

bool sb_guarded_bare(const char *name)
{
	static const char *const names[] = { "config", "config.worktree", "commondir", "HEAD", "hooks", "info", "modules",
					     "worktrees", "sequencer" };

	for (size_t i = 0; i < SB_ARRAY_LEN(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

const char *sb_guarded_text(enum sb_guarded g)
{
	static const char *const texts[] = {
		"", "git runs or believes it", "the editor believes it", "agents believe it",
		"the shell runs or believes it", "the CI runs it", "package managers run it",
		"builds run it", "it cannot be looked into",
	};

	return texts[g];
}
