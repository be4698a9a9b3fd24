/* Names that the review of a session looks at. */
#include "core/guarded.h"
#include "t.h"

#include <stdio.h>
#include <string.h>

TEST(guarded_names)
{
	static const char *const yes[] = {
		".git/hooks/pre-commit", "a/b/.git/config", ".GIT/Config", ".git/modules/x/config", ".github/workflows/x.yml",
		".git/modules/x/hooks/post-checkout", ".git/worktrees/w/commondir", ".git/worktrees/w/config.worktree",
		"x/hooks/post-receive",
		/* what a rebase, am or cherry-pick that goes on will do */
		".git/rebase-merge/git-rebase-todo", ".git/modules/a/b/rebase-apply/next", ".git/worktrees/w/rebase-merge",
		"srv.git/rebase-merge/git-rebase-todo", ".git/sequencer/todo", ".git/modules/m/sequencer/opts", "store/sequencer/todo",
		".git/modules/m/info/attributes", "srv.git/info/attributes", ".git/objects/info/alternates", ".git/info/grafts",
		"Makefile", "a/rules.mk", ".vscode", ".vscode/a/b", ".envrc",
	};
	static const char *const no[] = { ".git", ".git/HEAD", ".github", ".github/x", "x/config", "src/a.c", ".gitx/hooks",
					  ".git/hooks/pre-commit.sample", "commondir", "sequencer", "info",
					  "src/sequencer/a.c", "info/a", ".git/refs/heads/rebase", ".git/objects/info/packs" };

	for (size_t i = 0; i < SB_ARRAY_LEN(yes); i++)
		if (sb_guarded(yes[i]) == SB_GUARDED_NO)
			t_fail(__FILE__, __LINE__, "%s is not guarded", yes[i]);
	for (size_t i = 0; i < SB_ARRAY_LEN(no); i++)
		if (sb_guarded(no[i]) != SB_GUARDED_NO)
			t_fail(__FILE__, __LINE__, "%s is guarded", no[i]);
}

/* What tools of today run or believe, each beside one that has always been told. */
TEST(names_of_tools)
{
	static const struct {
		enum sb_guarded g;
		const char *names;
	} want[] = {
		{ SB_GUARDED_GIT, "lefthook.yaml .lefthook.yml lefthook-local.toml .huskyrc.js .lintstagedrc.json "
				  ".hg/hgrc .hg/hgrc-not-shared .jj/repo/config.toml .svn/wc.db .lfsconfig .githooks/hooks/pre-commit.sample" },
		{ SB_GUARDED_EDITOR, ".lvimrc .nvim/a.lua .gdbinit x.sublime-project" },
		{ SB_GUARDED_AGENT, "opencode.json .opencode/x .windsurfrules .windsurf/a .clinerules .clinerules/a .continue/a .kiro/a .claude/hooks/run.sample "
				    ".claude/hooks/pre-commit.sample" },
		{ SB_GUARDED_SHELL, "mise.toml .config/mise.toml .direnvrc .bash_login .inputrc .tmux.conf .irbrc .pryrc shell.nix "
				    "a/flake.nix .venv/bin/activate .venv/bin/activate.fish .venv/bin/python3 venv/bin/pip .env.local .envrc.local "
				    "mise.dev.toml .mise.dev.toml .Rprofile .python-version devbox.json" },
		{ SB_GUARDED_CI, ".forgejo/workflows/a .gitea/workflows/a .woodpecker/a.yaml .github/dependabot.yml" },
		{ SB_GUARDED_PACKAGE, ".yarn/releases/y.cjs .pnp.cjs pnpm-workspace.yaml settings.gradle gradlew gradle/wrapper/a "
				      "mvnw .mvn/jvm.config Gemfile Cargo.toml rust-toolchain.toml tox.ini noxfile.py usercustomize.py .eslintrc.json .babelrc Pipfile go.work .bundle/config "
				      "lib/site-packages/a.pth deno.json bunfig.toml" },
		{ SB_GUARDED_BUILD, "compose.yml docker-compose.yaml Taskfile.yaml .justfile justfile Containerfile SConstruct WORKSPACE "
				    "a/BUILD.bazel .bazelrc Vagrantfile vite.config.ts vite.config.mjs a/jest.config.cjs .eslintrc.js .prettierrc.js "
				    ".eslintrc.cjs .stylelintrc.cjs docker-compose.override.yml compose.override.yaml Dockerfile.dev a.Dockerfile BUCK Makefile.in" },
		{ SB_GUARDED_NO, "model.pth mise venv/lib/a.py src/config.js rc.js tsconfig.json gradle/libs.versions.toml .config "
				 ".yarn/cache/a.zip node_modules/.bin/a" },
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(want); i++) {
		char text[1000];
		char *at = text;

		(void)snprintf(text, sizeof(text), "%s", want[i].names);
		for (char *name = strtok_r(at, " ", &at); name; name = strtok_r(NULL, " ", &at))
			if (sb_guarded(name) != want[i].g)
				t_fail(__FILE__, __LINE__, "%s is %d, not %d", name, (int)sb_guarded(name), (int)want[i].g);
	}
}

/* Folders on the way to guarded names, once they are something else. */
TEST(what_leads_to_guarded_names)
{
	static const char *const yes[] = { ".git", "a/.git", ".Git", ".git/info", ".github", "x/y/.github" };
	static const char *const no[] = { "", "a", "git", ".git/objects", ".gith", ".github/workflows/x", "x/.git/HEAD" };

	for (size_t i = 0; i < SB_ARRAY_LEN(yes); i++)
		if (sb_guarded_above(yes[i]) == SB_GUARDED_NO)
			t_fail(__FILE__, __LINE__, "%s does not count", yes[i]);
	for (size_t i = 0; i < SB_ARRAY_LEN(no); i++)
		if (sb_guarded_above(no[i]) != SB_GUARDED_NO)
			t_fail(__FILE__, __LINE__, "%s counts", no[i]);
	CHECK(sb_guarded_link(".git/modules") == SB_GUARDED_GIT);
	CHECK(sb_guarded_link("a/.git/worktrees/w") == SB_GUARDED_GIT);
	CHECK(sb_guarded_link("Makefile") == SB_GUARDED_BUILD);
	CHECK(sb_guarded_link("src/x") == SB_GUARDED_NO);
	CHECK(sb_guarded_bare("config") && sb_guarded_bare("HEAD") && !sb_guarded_bare("Config") &&
	      !sb_guarded_bare("objects"));
	CHECK(sb_guarded_bare("hooks") && sb_guarded_bare("info") && sb_guarded_bare("modules") &&
	      sb_guarded_bare("worktrees") && !sb_guarded_bare("hooks2"));
	CHECK(sb_guarded_text(SB_GUARDED_BLIND)[0] != '\0');
}
