/* What a session may do to a repository's configuration. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "t.h"

#include "fs/gitcfg.h"

static const char base[] = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n"
			   "[remote \"origin\"]\n\turl = https://example.com/a.git\n"
			   "\tfetch = +refs/heads/*:refs/remotes/origin/*\n"
			   "[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n"
			   "[credential]\n\thelper = !f() { x; }; f\n";

static int check(const char *old, const char *new)
{
	return fs_gitcfg_check(old, strlen(old), new, strlen(new));
}

static int added(const char *text)
{
	char new[4096];

	(void)snprintf(new, sizeof(new), "%s%s", base, text);
	return check(base, new);
}

TEST(what_git_adds_by_itself)
{
	CHECK_EQ(check("", "[core]\n\trepositoryformatversion = 0\n"), 0);
	CHECK_EQ(check("[core]\n\trepositoryformatversion = 0\n",
		       "[core]\n\trepositoryformatversion = 0\n\tfilemode = false\n\tbare = false\n"
		       "\tlogallrefupdates = true\n"), 0);
	CHECK_EQ(check(base, base), 0);
	CHECK_EQ(added("[branch \"topic\"]\n\tremote = origin\n\tmerge = refs/heads/topic\n"), 0);
	CHECK_EQ(added("[remote \"fork\"]\n\turl = git@example.com:me/a.git\n"
		       "\tfetch = +refs/heads/*:refs/remotes/fork/*\n"), 0);
	CHECK_EQ(added("[user]\n\tname = A. Person\n\temail = a@example.com\n"), 0);
	CHECK_EQ(added("# a comment\n; another\n\n"), 0);
	CHECK_EQ(added("[submodule \"x\"]\n\tactive = true\n\turl = https://example.com/x\n"), 0);
}

TEST(what_runs_something)
{
	static const char *const bad[] = {
		"[core]\n\tfsmonitor = x\n", "[core]\n\thooksPath = x\n", "[core]\n\teditor = x\n",
		"[core]\n\tsshCommand = x\n", "[core]\n\tpager = x\n", "[core]\n\tworktree = /x\n",
		"[core]\n\tbare = true\n", "[core]\n\tgitProxy = x\n", "[alias]\n\tst = !x\n",
		"[include]\n\tpath = /x\n", "[includeIf \"gitdir:/\"]\n\tpath = /x\n",
		"[filter \"x\"]\n\tclean = x\n", "[diff \"x\"]\n\tcommand = x\n",
		"[merge \"x\"]\n\tdriver = x\n", "[credential]\n\thelper = x\n",
		"[gpg]\n\tprogram = x\n", "[http]\n\tproxy = x\n", "[url \"x\"]\n\tinsteadOf = y\n",
		"[submodule \"x\"]\n\tupdate = !x\n", "[remote \"n\"]\n\tuploadpack = x\n",
		"[remote \"n\"]\n\treceivepack = x\n", "[remote \"n\"]\n\tvcs = x\n",
		"[remote \"n\"]\n\tproxy = x\n", "[branch \"n\"]\n\tpushRemote = x\n",
		"[extensions]\n\tworktreeConfig = true\n", "[user]\n\tsigningkey = x\n",
		"[core]\n\trepositoryformatversion = 1\n", "[safe]\n\tdirectory = *\n",
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(bad); i++) {
		if (added(bad[i]) != -EACCES)
			printf("# %s", bad[i]);
		CHECK_EQ(added(bad[i]), -EACCES);
		CHECK_EQ(check("", bad[i]), -EACCES);
	}
}

TEST(where_things_come_from_and_go_to)
{
	static const char *const bad[] = {
		"ext::sh -c x", "ext::x", "fd::3", "/tmp/x", "../x", "file:///x", "-x", "c:x", "x",
		"ssh://-oProxyCommand=x/y", "git@-oProxy:x", "ssh://a@-o/x", "a::b", "https://", "x:-y",
		"https://a b", "https://a\\", "https://a\"b", "https://a;b", "host:", "ftp://x/y", "",
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(bad); i++) {
		char text[200];

		(void)snprintf(text, sizeof(text), "[remote \"n\"]\n\turl = %s\n", bad[i]);
		if (added(text) != -EACCES)
			printf("# %s\n", bad[i]);
		CHECK_EQ(added(text), -EACCES);
	}
	/* a remote that is there, a branch that has one: they stay */
	CHECK_EQ(added("[remote \"origin\"]\n\turl = https://evil.example/a\n"), -EACCES);
	CHECK_EQ(added("[remote \"origin\"]\n\tpushurl = https://evil.example/a\n"), -EACCES);
	CHECK_EQ(added("[Remote \"origin\"]\n\tURL = https://evil.example/a\n"), -EACCES);
	CHECK_EQ(added("[branch \"main\"]\n\tremote = fork\n"), -EACCES);
	CHECK_EQ(added("[branch \"n\"]\n\tremote = https://evil.example/a\n"), -EACCES);
	CHECK_EQ(added("[branch \"n\"]\n\tremote = ext::x\n"), -EACCES);
	/* no remote of that name: git would push into a folder, and run the hooks there */
	CHECK_EQ(added("[branch \"n\"]\n\tremote = evil\n"), -EACCES);
	CHECK_EQ(added("[branch \"n\"]\n\tremote = sub/evil\n"), -EACCES);
	CHECK_EQ(added("[branch \"n\"]\n\tremote = Origin\n"), -EACCES);
	CHECK_EQ(added("[remote \"e\"]\n\tprune = true\n[branch \"n\"]\n\tremote = e\n"), -EACCES);
	CHECK_EQ(added("[remote \"e\"]\n\turl = https://a.example/b\n[branch \"n\"]\n\tremote = e\n"), 0);
	CHECK_EQ(added("[branch \"n\"]\n\tremote = .\n"), 0);
	/* the name of one that is there, written in another way */
	CHECK_EQ(added("[remote \"or\\igin\"]\n\turl = https://evil.example/a\n"), -EACCES);
	CHECK_EQ(added("[branch \"ma\\in\"]\n\tmerge = refs/heads/evil\n"), -EACCES);
	CHECK_EQ(added("[remote \"origin\"]\n\tfetch = +refs/heads/*:refs/heads/*\n"), -EACCES);
	CHECK_EQ(added("[remote \"origin\"]\n\tfetch = refs/pull/*:refs/remotes/origin/pr/*\n"), 0);
}

TEST(what_is_there_stays)
{
	CHECK_EQ(check(base, ""), -EACCES);
	CHECK_EQ(check("[a]\n\tb = c\n", "[a]\n\tb = d\n"), -EACCES);
	CHECK_EQ(check("[a]\n\tb = c\n[a]\n\td = e\n", "[a]\n\td = e\n\tb = c\n"), -EACCES);
	CHECK_EQ(check("[a]\n\tb = c\n", "[A]\n  B=c  \n"), 0); /* the same to git */
	CHECK_EQ(check("[a \"x\"]\n\tb = c\n", "[a \"X\"]\n\tb = c\n"), -EACCES);
	CHECK_EQ(check("[a]\n\tb\n", "[a]\n\tb =\n"), -EACCES);
}

TEST(what_is_not_understood_is_refused)
{
	static const char *const bad[] = {
		"[core] fsmonitor = x\n", "[core.x]\n\ta = b\n", "[core]\n\tbare = fal\\\nse\n",
		"[core\n", "[core \"x]\n", "core = x\n", "[core]\n\t= x\n", "[core]\n\t1a = x\n",
		"[core \"a\" ]\n", "[]\n", "[core]x\n", "[core]\r\n", "\xef\xbb\xbf[core]\n",
		"[core]\n\tbare false\n", "[core]\n\ta\"b\" = c\n", "[user]\n\tname = \"a\n",
		"[user]\n\tname = a\\\n\temail = b\n", "[user \"x\"]\n\tname = a\n",
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(bad); i++) {
		if (added(bad[i]) != -EACCES)
			printf("# %s", bad[i]);
		CHECK_EQ(added(bad[i]), -EACCES);
	}
	CHECK_EQ(fs_gitcfg_check("", 0, "[core]\n\0", 8), -EACCES);
	CHECK_EQ(check("[old.style]\n\ta = b\n", "[old.style]\n\ta = b\n"), -EACCES);
}

static void put(int dir, const char *name, const char *text)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	(void)close(fd);
}

TEST(files)
{
	char top[] = "/tmp/sb-gitcfg-XXXXXX";
	char *big = calloc(1, FS_GITCFG_MAX + 2);
	int dir;

	REQUIRE(mkdtemp(top) && big);
	dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	put(dir, "config.lock", "[core]\n\tbare = false\n");
	CHECK_EQ(fs_gitcfg_replace(dir, "config.lock", "config"), 0);
	CHECK_EQ(linkat(dir, "config.lock", dir, "second", 0), 0);
	CHECK_EQ(fs_gitcfg_replace(dir, "config.lock", "config"), -EACCES);
	CHECK_EQ(unlinkat(dir, "second", 0), 0);
	CHECK_EQ(symlinkat("config.lock", dir, "l"), 0);
	CHECK_EQ(fs_gitcfg_replace(dir, "l", "config"), -EACCES);
	CHECK_EQ(fs_gitcfg_replace(dir, "none", "config"), -ENOENT);
	put(dir, "config", "[core]\n\tfsmonitor = mine\n");
	CHECK_EQ(fs_gitcfg_replace(dir, "config.lock", "config"), -EACCES);
	CHECK_EQ(unlinkat(dir, "config", 0), 0);
	CHECK_EQ(symlinkat("l", dir, "config"), 0);
	CHECK_EQ(fs_gitcfg_replace(dir, "config.lock", "config"), -EACCES);
	memset(big, '\n', FS_GITCFG_MAX + 1);
	CHECK_EQ(unlinkat(dir, "config", 0), 0);
	put(dir, "config.lock", big);
	CHECK_EQ(fs_gitcfg_replace(dir, "config.lock", "config"), -EACCES);
	free(big);
	(void)unlinkat(dir, "config.lock", 0);
	(void)unlinkat(dir, "l", 0);
	(void)close(dir);
	CHECK_EQ(rmdir(top), 0);
}
