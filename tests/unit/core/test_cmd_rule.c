#include "core/cmd_i.h"
#include "t.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <time.h>

static void refused_for(int line, const char *pattern, const char *why)
{
	struct sb_err e = { 0 };

	if (sb_cmd_rule_check(pattern, false, &e) != -EINVAL || !strstr(e.text, why))
		t_fail(__FILE__, line, "%s: \"%s\", want \"%s\"", pattern, e.text, why);
	CHECK_EQ(sb_cmd_rule_check(pattern, true, NULL), -EINVAL);
}
#define REFUSED(pattern, why) refused_for(__LINE__, pattern, why)

TEST(what_is_no_rule)
{
	char longest[SB_CMD_MAX_PATTERN + 2];
	char words[3 * SB_CMD_MAX_TOKENS];

	REFUSED("", "it is empty");
	REFUSED(" \t\n\r\v\f", "it is empty");
	REFUSED("git \\", "backslash");
	REFUSED("\\", "backslash");
	REFUSED("** git", "\"**\" may not come first");
	REFUSED("bin/git", "begins with");
	REFUSED("../git", "begins with");
	REFUSED("*/git", "begins with");
	REFUSED("?/git", "begins with");
	REFUSED(".", "folder");
	REFUSED("..", "folder");
	REFUSED("/", "a path has no");
	REFUSED("./", "a path has no");
	REFUSED("//git", "a path has no");
	REFUSED("/usr//git", "a path has no");
	REFUSED("/usr/./git", "a path has no");
	REFUSED("/usr/../git", "a path has no");
	REFUSED("/usr/bin/", "a path has no");
	REFUSED("./../git", "a path has no");
	REFUSED("**/../git", "a path has no");
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	REFUSED(longest, "longer than 4096 bytes");
	longest[sizeof(longest) - 2] = '\0';
	CHECK_EQ(sb_cmd_rule_check(longest, false, NULL), 0);
	for (size_t i = 0; i < sizeof(words); i++)
		words[i] = i % 2 ? ' ' : 'x';
	words[2 * SB_CMD_MAX_TOKENS] = '\0';
	CHECK_EQ(sb_cmd_rule_check(words, false, NULL), 0);
	words[2 * SB_CMD_MAX_TOKENS] = 'x';
	words[2 * SB_CMD_MAX_TOKENS + 1] = '\0';
	REFUSED(words, "more than 64 words");
}

TEST(kinds_of_programs)
{
	static const struct {
		const char *pattern;
		enum sb_cmd_prog kind;
		const char *text;
	} t[] = {
		{ "git", SB_CMD_PROG_NAME, "git" },
		{ "*", SB_CMD_PROG_ANY, "*" },
		{ "**", SB_CMD_PROG_ANY, "**" },
		{ "* **", SB_CMD_PROG_ANY, "*" },
		{ "\\*", SB_CMD_PROG_NAME, "*" },
		{ "python3*", SB_CMD_PROG_NAME_GLOB, "python3*" },
		{ "/usr/bin/git", SB_CMD_PROG_PATH, "/usr/bin/git" },
		{ "/opt/my\\ tool", SB_CMD_PROG_PATH, "/opt/my tool" },
		{ "/usr/*/git", SB_CMD_PROG_PATH_GLOB, "/usr/*/git" },
		{ "/usr/**/git", SB_CMD_PROG_PATH_GLOB, "/usr/*git" },
		{ "**/git", SB_CMD_PROG_PATH_GLOB, "*git" },
		{ "/**", SB_CMD_PROG_PATH_GLOB, "/*" },
		{ "./run", SB_CMD_PROG_LOCAL, "run" },
		{ "./a/*.sh", SB_CMD_PROG_LOCAL, "a/*.sh" },
		{ "..git", SB_CMD_PROG_NAME, "..git" },
	};
	struct sb_cmd_pattern p;

	for (size_t i = 0; i < SB_ARRAY_LEN(t); i++) {
		CHECK_EQ(sb_cmd_pattern_parse(t[i].pattern, false, &p, NULL), 0);
		CHECK_EQ(p.kind, t[i].kind);
		CHECK_STR(p.prog.text, t[i].text);
	}
}

/* @command: the words behind the program, separated by "|". */
static bool matches(const char *pattern, bool any_order, const char *command)
{
	static char copy[4096];
	const char *argv[256];
	struct sb_cmd_pattern p;
	struct sb_cmd_args a;
	size_t argc = 0;

	if (sb_cmd_pattern_parse(pattern, any_order, &p, NULL) < 0) {
		t_fail(__FILE__, __LINE__, "%s is no pattern", pattern);
		return false;
	}
	a = (struct sb_cmd_args){ p.word, (uint16_t)p.n_operands, (uint16_t)p.n_options,
				  any_order, p.dashes, p.deep };
	(void)snprintf(copy, sizeof(copy), "%s", command);
	for (char *s = copy; *command && s;) {
		argv[argc++] = s;
		s = strchr(s, '|');
		if (s)
			*s++ = '\0';
	}
	return sb_cmd_args_match(&a, argv, argc);
}
static void match_is(int line, const char *pattern, bool any_order, const char *command, bool want)
{
	if (matches(pattern, any_order, command) != want)
		t_fail(__FILE__, line, "%s against %s: want %d", pattern, command, want);
}
#define YES(pattern, command) match_is(__LINE__, pattern, false, command, true)
#define NO(pattern, command) match_is(__LINE__, pattern, false, command, false)
#define ANY_YES(pattern, command) match_is(__LINE__, pattern, true, command, true)
#define ANY_NO(pattern, command) match_is(__LINE__, pattern, true, command, false)

TEST(the_first_format_keeps_its_meaning)
{
	YES("git *", "status --short");
	NO("git *", "status|--short");
	NO("git *", "");
	YES("git", "");
	NO("git", "status");
	YES("git * *", "a|b");
	NO("git * *", "a|b|c");
	YES("git pu?h", "push");
	NO("git pu?h", "puh");
	YES("git \\*", "*");
	NO("git \\*", "x");
	YES("git a\\ b", "a b");
	YES("git  \t a \n", "a");
	YES("git [ab]", "[ab]");
	NO("git [ab]", "a");
	YES("git 'x'", "'x'");
	YES("git $HOME", "$HOME");
	YES("git \\\\", "\\");
}

TEST(tails)
{
	YES("git **", "");
	YES("git **", "a");
	YES("git **", "a|b|c");
	YES("git push **", "push");
	YES("git push **", "push|origin|main");
	NO("git push **", "pull|push");
	YES("git ** push **", "-C|/x|push|origin");
	YES("git ** push", "push");
	YES("git ** push", "push|push");
	NO("git ** push", "push|x");
	YES("git ** a b ** c", "a|a|b|x|c");
	NO("git ** a b ** c", "a|b|c|x");
	NO("git ** a b ** c", "a|x|b|c");
	YES("git ** ** a", "a");
	YES("git ** * **", "a");
	NO("git ** * **", "");
	YES("git a**b", "axxb");
	NO("git a**b", "a|b");
	YES("**", "");
	YES("**", "a|b");
	NO("*", "a");
	YES("git \\**", "*x");
	NO("git \\**", "x|y");
}

TEST(words)
{
	YES("x --*=*", "--a=b");
	NO("x --*=*", "--ab");
	YES("x a*b*c", "abc");
	YES("x a*b*c", "abbbcbc");
	NO("x a*b*c", "abcb");
	YES("x *aab", "aaaab");
	YES("x *a?b*", "aaxb");
	YES("x ?*", "a");
	YES("x *?*?*", "ab");
	NO("x *?*?*", "a");
	YES("x *ab?", "ababc");
	YES("x *.\\*", "a.*");
	NO("x *.\\*", "a.b");
	NO("x aa*a", "aa");
	YES("x a*", "a/b/c");
}

TEST(an_empty_word)
{
	const char *argv[] = { "" };
	struct sb_cmd_pattern p;
	struct sb_cmd_args a;

	CHECK_EQ(sb_cmd_pattern_parse("git *", false, &p, NULL), 0);
	a = (struct sb_cmd_args){ p.word, 1, 0, false, false, false };
	CHECK(sb_cmd_args_match(&a, argv, 1));
	CHECK_EQ(sb_cmd_pattern_parse("git ?", false, &p, NULL), 0);
	a.word = p.word;
	CHECK(!sb_cmd_args_match(&a, argv, 1));
}

TEST(options_in_any_order)
{
	ANY_YES("git push --force **", "push|origin|main|--force");
	ANY_YES("git push --force **", "--force|push");
	ANY_YES("git push --force **", "push|-v|--force");
	ANY_NO("git push --force **", "push|origin");
	ANY_NO("git push --force **", "push|--|--force");
	ANY_YES("git push --force **", "push|--force|--|x");
	ANY_NO("git push --force *", "push|-v|--force|x"); /* one option too many */
	ANY_YES("git push --force *", "--force|push|x");
	ANY_YES("x --a=* --b=* y", "y|--b=2|--a=1");
	ANY_NO("x --a=* --b=* y", "y|--b=2|--b=1");
	ANY_YES("x --a --a **", "--a|y|--a");
	ANY_NO("x --a --a **", "--a|y");
	/* an option word of the pattern has to leave the other one its own */
	ANY_YES("x -* --b **", "--b|-a");
	ANY_YES("x --b -* **", "--b|-a");
	ANY_YES("x --* --b? --bc **", "--bc|--bd|--c");
	ANY_NO("x --* --b? --bc **", "--bc|--bd");
	ANY_YES("x - y", "-|y");
	ANY_NO("x - y", "y|-");
	/* "--" of a pattern */
	ANY_YES("x -a -- -b", "-a|--|-b");
	ANY_NO("x -a -- -b", "-a|-b");
	ANY_YES("x a b", "a|--|b");
	ANY_YES("x ** c", "-a|b|-d|c");
	ANY_NO("x ** c", "-a|b|-d|c|d");
	ANY_YES("x **", "");
	ANY_YES("x", "");
	ANY_NO("x", "-a");
}

TEST(X01_bundles_of_short_options)
{
	ANY_YES("rm -r -f **", "-rf|x");
	ANY_YES("rm -r -f **", "-fr");
	ANY_YES("rm -r -f **", "-vfir|x");
	ANY_YES("rm -r -f **", "x|-f|-r");
	ANY_NO("rm -r -f **", "-r|x");
	ANY_NO("rm -r -f **", "--rf|x");
	ANY_YES("rm -r -f *", "-rf|x");
	ANY_NO("rm -r -f *", "-rfv|x");
	ANY_NO("rm -r -r **", "-r");
	ANY_YES("rm -r -r **", "-rr");
	ANY_YES("tar -x -f **", "-xf/tmp/a");
	ANY_NO("tar -x -f *", "-xf/tmp/a|b"); /* "/tmp/a" is more than the pattern has */
	ANY_YES("rm -rf *", "-rf|x"); /* the word itself */
	ANY_NO("rm -rf *", "-fr|x");
	ANY_YES("x -* -f *", "-f|-g|y");
	ANY_YES("x -* -f *", "-g|-f|y");
}

TEST(tables_of_docs_policy_md)
{
	static const char *const rules[] = { "git", "git *", "git **", "git push **",
					     "git ** origin" };
	static const char *const commands[] = { "", "status", "status|-s", "push|origin" };
	static const char *const want[] = { "1000", "0100", "1111", "0001", "0001" };

	for (size_t i = 0; i < SB_ARRAY_LEN(rules); i++)
		for (size_t k = 0; k < SB_ARRAY_LEN(commands); k++)
			match_is(__LINE__, rules[i], false, commands[k], want[i][k] == '1');
	ANY_YES("rm -r -f **", "-rf|x");
	ANY_YES("rm -r -f **", "-fvr|x");
	ANY_YES("rm -r -f **", "x|-f|-r");
	ANY_NO("rm -r -f **", "-r|x");
	ANY_YES("git push --force **", "push|origin|--force");
	ANY_YES("git push --force **", "--force|push");
	ANY_NO("git push --force **", "push|--|--force");
	ANY_YES("tool --level=* file", "file|--level=3");
	ANY_NO("tool --level=* file", "-v|file|--level=3");
}

static bool path_matches(const char *pattern, const char *path)
{
	struct sb_cmd_pattern p;

	CHECK_EQ(sb_cmd_pattern_parse(pattern, false, &p, NULL), 0);
	return sb_cmd_path_match(&p.prog, path);
}

TEST(paths)
{
	static const struct {
		const char *pattern;
		const char *path;
		bool want;
	} t[] = {
		{ "/usr/bin/*", "/usr/bin/git", true },
		{ "/usr/bin/*", "/usr/bin/a/git", false },
		{ "/usr/bin/*", "/usr/bin", false },
		{ "/usr/*/git", "/usr/bin/git", true },
		{ "/usr/*/git", "/usr/a/b/git", false },
		{ "/usr/**/git", "/usr/a/b/git", true },
		{ "/usr/**/git", "/usr/git", true },
		{ "/usr/**/git", "/usr/xgit", false },
		{ "/usr/**git", "/usr/xgit", true },
		{ "/usr/**", "/usr/a/b", true },
		{ "/usr/**", "/usr", false },
		{ "**/git", "/usr/bin/git", true },
		{ "**/git", "/git", true },
		{ "**/git", "/usr/bin/legit", false },
		{ "**/bin/**/git", "/usr/bin/git", true },
		{ "/*/*/a*b", "/x/y/axxb", true },
		{ "/*/*/a*b", "/x/y/ax/b", false },
		{ "/?in/?s", "/bin/ls", true },
		{ "/a?b", "/a/b", false },
		{ "/**/a*/*b/c", "/a/b/a1/2b/c", true },
		{ "/**/a*/*b/c", "/a1/x/c", false },
		{ "/**/**/c", "/c", true },
		{ "/a\\*/*", "/a*/b", true },
		{ "/a\\*/*", "/ax/b", false },
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(t); i++)
		if (path_matches(t[i].pattern, t[i].path) != t[i].want)
			t_fail(__FILE__, __LINE__, "%s against %s", t[i].pattern, t[i].path);
}

static uint64_t seed = 88172645463325252;

static unsigned int rnd(unsigned int below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned int)((seed >> 16) % below);
}

static void random_text(char *out, size_t max, const char *alphabet)
{
	size_t n = rnd((unsigned int)max);

	for (size_t i = 0; i < n; i++)
		out[i] = alphabet[rnd((unsigned int)strlen(alphabet))];
	out[n] = '\0';
}

/* Without brackets our words are fnmatch's with no flags; our paths those with FNM_PATHNAME. */
TEST(fnmatch_agrees)
{
	unsigned int yes = 0;

	for (unsigned int i = 0; i < 300000; i++) {
		char pattern[64] = "/";
		char text[64] = "/";
		struct sb_cmd_pattern p;
		bool got;
		bool path = i % 2;

		random_text(pattern + 1, 9, path ? "ab*?/\\" : "ab*?\\.-");
		random_text(text + 1, 11, path ? "ab/" : "ab.-*\\");
		/* glibc takes "*\\/" for no "/" */
		if (path && (strstr(pattern, "**") || strstr(pattern, "\\/") ||
			     sb_cmd_pattern_parse(pattern, false, &p, NULL) < 0))
			continue;
		if (path) {
			got = p.kind == SB_CMD_PROG_PATH ? strcmp(p.prog.text, text) == 0 :
							   sb_cmd_path_match(&p.prog, text);
		} else {
			char rule[80];

			(void)snprintf(rule, sizeof(rule), "x %s", pattern + 1);
			if (!pattern[1] || strcmp(pattern + 1, "**") == 0 ||
			    sb_cmd_pattern_parse(rule, false, &p, NULL) < 0)
				continue;
			got = sb_cmd_word_match(&p.word[0], text + 1, strlen(text + 1));
		}
		yes += got;
		if (got != (fnmatch(pattern + !path, text + !path, path ? FNM_PATHNAME : 0) == 0))
			t_fail(__FILE__, __LINE__, "%s against %s: %d", pattern + !path,
			       text + !path, got);
	}
	CHECK(yes > 3000);
}

/* Words in order against the same by plain recursion. */
static bool slow(const char *const *p, size_t n, const char *const *argv, size_t argc)
{
	if (n == 0)
		return argc == 0;
	if (strcmp(p[0], "**") == 0)
		return slow(p + 1, n - 1, argv, argc) ||
		       (argc > 0 && slow(p, n, argv + 1, argc - 1));
	return argc > 0 && fnmatch(p[0], argv[0], 0) == 0 && slow(p + 1, n - 1, argv + 1, argc - 1);
}

TEST(tails_agree_with_recursion)
{
	static const char *const parts[] = { "**", "**", "a", "b", "*", "a*", "?" };
	static const char *const words[] = { "a", "b", "ab", "c" };
	unsigned int yes = 0;

	for (unsigned int i = 0; i < 100000; i++) {
		const char *p[8];
		const char *argv[8];
		char rule[64] = "x";
		struct sb_cmd_pattern parsed;
		struct sb_cmd_args a;
		size_t n = rnd(7);
		size_t argc = rnd(8);
		bool want;

		for (size_t k = 0; k < n; k++) {
			p[k] = parts[rnd(7)];
			(void)strncat(rule, " ", sizeof(rule) - strlen(rule) - 1);
			(void)strncat(rule, p[k], sizeof(rule) - strlen(rule) - 1);
		}
		for (size_t k = 0; k < argc; k++)
			argv[k] = words[rnd(4)];
		CHECK_EQ(sb_cmd_pattern_parse(rule, false, &parsed, NULL), 0);
		a = (struct sb_cmd_args){ parsed.word, (uint16_t)parsed.n_operands, 0, false, false,
					  parsed.deep };
		want = slow(p, n, argv, argc);
		yes += want;
		CHECK_EQ(sb_cmd_args_match(&a, argv, argc), want);
	}
	CHECK(yes > 5000);
}

static double seconds(const char *pattern, bool any_order, const char *const *argv, size_t argc)
{
	struct sb_cmd_pattern p;
	struct sb_cmd_args a;
	struct timespec from;
	struct timespec to;

	CHECK_EQ(sb_cmd_pattern_parse(pattern, any_order, &p, NULL), 0);
	a = (struct sb_cmd_args){ p.word, (uint16_t)p.n_operands, (uint16_t)p.n_options, any_order,
				  p.dashes, p.deep };
	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	CHECK(!sb_cmd_args_match(&a, argv, argc));
	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	return (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
}

/* The longest commands that are judged, made to be expensive. Quadratic work would take minutes. */
TEST(no_command_is_expensive)
{
	static const char *argv[SB_CMD_MAX_ARGV];
	static char big[1U << 20];
	char pattern[600] = "x";

	for (size_t i = 0; i < SB_CMD_MAX_ARGV; i++)
		argv[i] = i % 2 ? "-ab" : "aaaaaaaaaaaaaaaaaaaaaaaaaaa";
	for (unsigned int i = 0; i < 30; i++)
		(void)strncat(pattern, " ** *a*a*b", sizeof(pattern) - strlen(pattern) - 1);
	CHECK(seconds(pattern, false, argv, SB_CMD_MAX_ARGV) < 10);
	(void)snprintf(pattern, sizeof(pattern), "x");
	for (unsigned int i = 0; i < 60; i++)
		(void)strncat(pattern, i % 2 ? " -a" : " -*", sizeof(pattern) - strlen(pattern) - 1);
	(void)strncat(pattern, " -c **", sizeof(pattern) - strlen(pattern) - 1);
	CHECK(seconds(pattern, true, argv, SB_CMD_MAX_ARGV) < 10);
	memset(big, 'a', sizeof(big) - 1);
	argv[0] = big;
	CHECK(seconds("x *a*a*a*a*a*a*a*a*a*a*b*a*a*a*a*a", false, argv, 1) < 2);
	CHECK(seconds("x *a?a*aaa?a*a?a?a?a*b*", false, argv, 1) < 2);
}
