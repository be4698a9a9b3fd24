/* Names that the review of a session looks at. */
#include "core/guarded.h"
#include "t.h"

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
