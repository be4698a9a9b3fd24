#include "core/guarded.h"

#include <fnmatch.h>
#include <string.h>
#include <strings.h>

/* Of the last components of a path, in any case of letters; with a slash at its end: a folder and all that is in it;
 * with * or [: as in a shell. Each list ends with NULL. */
static const char *const git_names[] = {
	".git/hooks/", ".git/config", ".git/config.worktree", ".git/commondir", ".git/info/attributes",
	".git/remotes/", ".git/branches/", ".git/sequencer/",
	"rebase-merge/", "rebase-apply/", /* "exec" lines; in a repository of any name */
	".gitmodules", ".gitattributes", ".gitconfig", ".lfsconfig",
	".hg/hgrc*", ".hg/sharedpath", ".hg/requires", ".jj/", ".svn/",
	".husky/", ".huskyrc*", ".githooks/", ".pre-commit-config.yaml", "lefthook.*", ".lefthook.*",
	"lefthook-local.*", ".lefthook-local.*", ".overcommit.yml", ".lintstagedrc*",
	NULL,
};

static const char *const editor_names[] = {
	".vscode/", "*.code-workspace", ".idea/", ".fleet/", ".vs/", ".zed/", ".helix/",
	"*.sublime-project",
	".vim/", ".nvim/", ".nvim.lua", ".nvimrc", ".exrc", ".vimrc", ".lvimrc", ".gvimrc",
	".dir-locals.el",
	".gdbinit", ".lldbinit",
	NULL,
};

static const char *const agent_names[] = {
	".claude/", "CLAUDE.md", "CLAUDE.local.md", ".mcp.json", "AGENTS.md", ".codex/", ".cursor/",
	".cursorrules", ".gemini/", "GEMINI.md",
	".aider.conf.yml", ".github/copilot-instructions.md", ".github/instructions/", ".github/prompts/",
	".github/chatmodes/", ".github/agents/",
	"opencode.json", "opencode.jsonc", ".opencode/", ".windsurf/", ".windsurfrules", ".clinerules/",
	".continue/", ".kiro/", ".roo/", ".roomodes", ".roorules",
	".junie/", ".amazonq/", ".goosehints", ".qwen/", "QWEN.md", "crush.json", ".crush.json", "CRUSH.md",
	".trae/", ".augment/", ".kilocode/",
	NULL,
};

static const char *const shell_names[] = {
	".envrc*", ".direnvrc", ".direnv/", ".env", ".env.*", ".sendbox.yaml", ".devcontainer/",
	".devcontainer.json", ".tool-versions",
	".mise*.toml", ".mise/", "mise.toml", "mise.*.toml", "mise-tasks/", "mise/config.toml",
	".config/mise/", ".config/mise*.toml", ".rtx.toml", ".python-version", ".ruby-version",
	"shell.nix", "flake.nix", "default.nix", "devenv.nix", "devbox.json", ".venv/bin/activate*", "venv/bin/activate*",
	".venv/bin/python*", "venv/bin/python*", ".venv/bin/pip*", "venv/bin/pip*",
	".profile", ".inputrc", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases",
	".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout",
	".kshrc", ".cshrc", ".tcshrc", ".login", ".config/fish/", ".tmux.conf", ".screenrc", ".irbrc",
	".pryrc", ".pdbrc", ".Rprofile", ".ghci", ".ocamlinit", ".octaverc", ".proverc",
	NULL,
};

static const char *const ci_names[] = {
	".github/workflows/", ".github/actions/", ".github/dependabot.yml", ".github/dependabot.yaml",
	".forgejo/workflows/", ".gitea/workflows/",
	".gitlab-ci.yml", ".circleci/", ".buildkite/", ".travis.yml", ".drone.yml", ".woodpecker/",
	".woodpecker.yml", ".woodpecker.yaml", ".cirrus.yml",
	".semaphore/", ".build.yml", ".builds/", ".tekton/", ".teamcity/", "Jenkinsfile",
	"azure-pipelines.yml", "azure-pipelines.yaml",
	"bitbucket-pipelines.yml", "appveyor.yml", ".appveyor.yml", "cloudbuild.yaml", "buildspec.yml",
	"renovate.json", ".renovaterc*",
	NULL,
};

static const char *const package_names[] = {
	"package.json", ".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn/releases/", ".yarn/plugins/", ".pnp.cjs",
	".pnp.loader.mjs", ".pnpmfile.cjs",
	"pnpm-workspace.yaml", "bunfig.toml", "deno.json", "deno.jsonc", "binding.gyp",
	"setup.py", "setup.cfg", "pyproject.toml", "tox.ini", "noxfile.py", "pytest.ini", "conftest.py",
	"sitecustomize.py", "usercustomize.py",
	"site-packages/*.pth",
	"Pipfile", "ansible.cfg", ".pylintrc", ".rspec", ".rubocop.yml", ".bundle/config",
	".mocharc.*", ".babelrc", ".eslintrc", ".eslintrc.json", ".eslintrc.y*ml", "turbo.json", "nx.json", "lerna.json",
	"Cargo.toml", "build.rs", ".cargo/", "go.work", "rust-toolchain", "rust-toolchain.toml",
	"composer.json", "Gemfile", "*.gemspec", "Podfile", "Package.swift", "mix.exs", "rebar.config",
	"build.sbt", "Setup.hs",
	"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradle.properties",
	"gradlew", "gradlew.bat", "gradle/wrapper/",
	"pom.xml", "mvnw", "mvnw.cmd", ".mvn/", "nuget.config", "*.csproj", "Directory.Build.props",
	"Directory.Build.targets",
	NULL,
};

static const char *const build_names[] = {
	"Makefile", "GNUmakefile", "Makefile.am", "*.mk", "CMakeLists.txt", "CMakePresets.json",
	"meson.build", "configure",
	"Justfile", ".justfile", "Taskfile.yml", "Taskfile.yaml", "Rakefile", "SConstruct", "SConscript",
	"wscript", "build.zig", "Makefile.in", "meson_options.txt", "Snakefile", "Brewfile", "BUCK", "dune-project",
	"project.clj", "Taskfile.dist.yml",
	"WORKSPACE", "WORKSPACE.bazel", "MODULE.bazel", "BUILD", "BUILD.bazel", "*.bzl", ".bazelrc",
	"Dockerfile*", "*.Dockerfile", "Containerfile*", "docker-compose*.yml", "docker-compose*.yaml",
	"compose*.yml", "compose*.yaml", "Vagrantfile", "Tiltfile", "Earthfile", "Procfile",
	/* of vite, jest, eslint and others: programs */
	"*.config.[jt]s", "*.config.[cm][jt]s", ".*rc.js", ".*rc.[cm]js", "gulpfile.*", "Gruntfile.*",
	NULL,
};

static const struct kind {
	enum sb_guarded g;
	const char *const *names;
} kinds[] = {
	{ SB_GUARDED_GIT, git_names },
	{ SB_GUARDED_EDITOR, editor_names },
	{ SB_GUARDED_AGENT, agent_names },
	{ SB_GUARDED_SHELL, shell_names },
	{ SB_GUARDED_CI, ci_names },
	{ SB_GUARDED_PACKAGE, package_names },
	{ SB_GUARDED_BUILD, build_names },
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

/* @pattern against the path from one of its components on. */
static bool match_at(const char *pattern, const char *at)
{
	size_t n = strlen(pattern);

	if (pattern[n - 1] == '/') /* the folder itself, or what is in it */
		return strncasecmp(pattern, at, n - 1) == 0 && (at[n - 1] == '\0' || at[n - 1] == '/');
	if (strpbrk(pattern, "*["))
		return fnmatch(pattern, at, FNM_PATHNAME | FNM_CASEFOLD) == 0;
	return strcasecmp(pattern, at) == 0;
}

/* The kind of the first name that @fits what @path ends with. */
static enum sb_guarded by_kind(const char *path, bool (*fits)(const char *pattern, const char *at))
{
	for (const char *at = path; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
		for (size_t i = 0; i < SB_ARRAY_LEN(kinds); i++)
			for (const char *const *name = kinds[i].names; *name; name++)
				if (fits(*name, at))
					return kinds[i].g;
	return SB_GUARDED_NO;
}

/* @ending: what follows the hook's name */
static bool is_hook(const char *path, const char *ending)
{
	const char *name = strrchr(path, '/');
	size_t dir = name ? (size_t)(name - path) : 0;

	if (dir < 5 || strncasecmp(path + dir - 5, "hooks", 5) != 0 || (dir > 5 && path[dir - 6] != '/'))
		return false;
	for (size_t i = 0; i < SB_ARRAY_LEN(hooks); i++)
		if (strncasecmp(name + 1, hooks[i], strlen(hooks[i])) == 0 &&
		    strcmp(name + 1 + strlen(hooks[i]), ending) == 0)
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
	enum sb_guarded g;

	if (in_git(path) && is_hook(path, ".sample"))
		return SB_GUARDED_NO; /* git's own examples, which nothing runs */
	g = by_kind(path, match_at);
	if (g != SB_GUARDED_NO)
		return g;
	/* modules and work trees have settings and hooks of their own */
	if (in_git(path)) {
		const char *name = strrchr(path, '/') + 1;

		if (strstr(path, "/hooks/") || strstr(path, "/sequencer/") || strcasecmp(name, "config") == 0 ||
		    strcasecmp(name, "config.worktree") == 0 || strcasecmp(name, "commondir") == 0)
			return SB_GUARDED_GIT;
	}
	return is_hook(path, "") || is_in_repository(path) ? SB_GUARDED_GIT : SB_GUARDED_NO;
}

/* Whether @at is one of the folders that @pattern leads through. */
static bool leads_through(const char *pattern, const char *at)
{
	const size_t n = strlen(at);

	return strncasecmp(pattern, at, n) == 0 && pattern[n] == '/' && pattern[n + 1] != '\0';
}

enum sb_guarded sb_guarded_above(const char *path)
{
	return by_kind(path, leads_through);
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
