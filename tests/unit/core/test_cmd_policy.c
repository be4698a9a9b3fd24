#include "core/cmd_json.h"
#include "core/cmd_policy.h"
#include "t.h"

#include <stdlib.h>

/*
 * An image in memory: every file has a path, an identity and content. Names are those of files and
 * links in /usr/local/bin and /usr/bin.
 */
struct image_file {
	const char *path;
	const char *to; /* final path */
	uint64_t ino;
	const char *content;
};
static const struct image_file image[] = {
	{ "/usr/local/bin/node", "/usr/local/bin/node", 30, "node of local" },
	{ "/usr/bin/git", "/usr/bin/git", 10, "git's bytes" },
	{ "/usr/bin/git-receive-pack", "/usr/bin/git", 10, "git's bytes" },
	{ "/usr/bin/python3.11", "/usr/bin/python3.11", 11, "python" },
	{ "/usr/bin/python3", "/usr/bin/python3.11", 11, "python" },
	{ "/usr/bin/python", "/usr/bin/python3.11", 11, "python" },
	{ "/bin/python3", "/usr/bin/python3.11", 11, "python" },
	{ "/usr/bin/node", "/usr/bin/node", 31, "node" },
	{ "/usr/bin/env", "/usr/bin/env", 12, "env" },
	{ "/usr/bin/sh", "/usr/bin/dash", 13, "dash" },
	{ "/usr/bin/dash", "/usr/bin/dash", 13, "dash" },
	{ "/usr/bin/rm", "/usr/bin/rm", 14, "rm" },
	{ "/usr/bin/true", "/usr/bin/true", 15, "same" },
	{ "/usr/bin/false", "/usr/bin/false", 16, "also" },
	{ "/usr/bin/busybox", "/usr/bin/busybox", 20, "busybox" },
	{ "/usr/bin/wget", "/usr/bin/busybox", 20, "busybox" },
	{ "/usr/bin/vi", "/usr/bin/busybox", 20, "busybox" },
	{ "/usr/bin/coreutils", "/usr/bin/coreutils", 21, "coreutils" },
	{ "/usr/bin/cat", "/usr/bin/coreutils", 21, "coreutils" },
	{ "/usr/bin/unlink", "/usr/bin/coreutils", 21, "coreutils" },
	{ "/lib64/ld-linux-x86-64.so.2", "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", 22,
	  "loader" },
	{ "/bin", "/usr/bin", 2, "" },
	{ "/usr", "/usr", 3, "" },
	{ "/", "/", 1, "" },
	{ "/opt", "/opt", 4, "" },
};
static unsigned int n_finds;
static unsigned int n_digests;
static int find_error;
static int digest_error;

static int give(const struct image_file *f, char *path, size_t cap, struct sb_cmd_file *ret)
{
	*ret = (struct sb_cmd_file){ 1, f->ino, strlen(f->content) };
	(void)snprintf(path, cap, "%s", f->to);
	return 0;
}

static int find(void *arg, const char *name, unsigned int nth, char *path, size_t cap,
		struct sb_cmd_file *ret)
{
	(void)arg;
	n_finds++;
	if (find_error)
		return find_error;
	for (size_t i = 0; i < SB_ARRAY_LEN(image); i++) {
		const char *base = strrchr(image[i].path, '/') + 1;

		if (name[0] == '/') {
			if (strcmp(name, image[i].path) == 0 && nth == 0)
				return give(&image[i], path, cap, ret);
		} else if (strstr(image[i].path, "bin/") && strcmp(base, name) == 0 && nth-- == 0) {
			return give(&image[i], path, cap, ret);
		}
	}
	return -ENOENT;
}

static int list(void *arg, int (*each)(void *each_arg, const char *name), void *each_arg)
{
	int r = 0;

	(void)arg;
	for (size_t i = 0; r == 0 && i < SB_ARRAY_LEN(image); i++)
		if (strstr(image[i].path, "bin/"))
			r = each(each_arg, strrchr(image[i].path, '/') + 1);
	return r;
}

/* Descriptors 100.. are files elsewhere; what they hold. */
static const char *const elsewhere[] = { "git's bytes", "git's byteZ", "loader", "busybox", "same" };

static int digest(void *arg, const char *path, int fd, uint8_t ret[32])
{
	const char *content = fd >= 100 ? elsewhere[fd - 100] : NULL;

	(void)arg;
	n_digests++;
	if (digest_error)
		return digest_error;
	for (size_t i = 0; !content && i < SB_ARRAY_LEN(image); i++)
		if (strcmp(image[i].to, path) == 0)
			content = image[i].content;
	if (!content)
		return -EACCES;
	memset(ret, 0, 32);
	memcpy(ret, content, strlen(content));
	return 0;
}
static const struct sb_cmd_files files = { find, list, digest, NULL };

/* Rules separated by ";": "!" deny, "+" allow, "=" log, "?" ask; then "1" for the first command
 * alone, "~" for any order; then the pattern. */
static struct sb_plan_commands plan(enum sb_cmd_action fallback, const char *text)
{
	struct sb_plan_commands c = { .scope = SB_CMD_SCOPE_TREE, .fallback = fallback };

	while (*text) {
		size_t len = strcspn(text, ";");
		struct sb_cmd_rule *r;
		const char *s = text;
		char from[32];

		c.rules = realloc(c.rules, (c.n_rules + 1) * sizeof(*c.rules));
		r = &c.rules[c.n_rules++];
		*r = (struct sb_cmd_rule){ .scope = SB_CMD_SCOPE_TREE };
		r->action = *s == '!' ? SB_CMD_DENY :
			    *s == '+' ? SB_CMD_ALLOW :
			    *s == '=' ? SB_CMD_LOG :
					SB_CMD_ASK;
		s++;
		if (*s == '1' || r->action == SB_CMD_ASK)
			r->scope = SB_CMD_SCOPE_TOP_LEVEL;
		s += *s == '1';
		r->any_order = *s == '~';
		s += *s == '~';
		r->pattern = strndup(s, len - (size_t)(s - text));
		(void)snprintf(from, sizeof(from), "file:%zu", c.n_rules);
		r->from = strdup(from);
		text += len;
		text += *text == ';';
	}
	return c;
}

static struct sb_cmdpol *policy(enum sb_cmd_action fallback, const char *text)
{
	struct sb_plan_commands c = plan(fallback, text);
	struct sb_cmdpol *p = NULL;
	struct sb_err e = { 0 };

	if (sb_cmdpol_new(&c, &files, &p, &e) < 0)
		t_fail(__FILE__, __LINE__, "%s: %s", text, e.text);
	sb_plan_commands_done(&c);
	return p;
}

/* A command: PATH and words, separated by blanks. A path of the image has its identity; "@N" in
 * front: the file elsewhere of that number; "." alone: no path. */
struct command {
	char text[512];
	const char *argv[64];
	struct sb_cmd_request q;
};

static void command(struct command *c, const char *text)
{
	char *s = c->text;

	*c = (struct command){ .q = { .path = "", .fd = -1, .project = "/work" } };
	(void)snprintf(c->text, sizeof(c->text), "%s", text);
	if (*s == '@') {
		c->q.fd = 100 + s[1] - '0';
		c->q.file = (struct sb_cmd_file){ 9, 900 + (uint64_t)(s[1] - '0'),
						  strlen(elsewhere[s[1] - '0']) };
		s += 2;
	}
	while (s) {
		char *end = strchr(s, ' ');

		if (end)
			*end++ = '\0';
		if (c->q.argv)
			c->argv[c->q.argc++] = s;
		else
			c->q.path = s[0] == '.' ? "" : s;
		c->q.argv = c->argv;
		s = end;
	}
	for (size_t i = 0; c->q.fd < 0 && i < SB_ARRAY_LEN(image); i++) {
		if (strcmp(image[i].path, c->q.path) == 0) {
			c->q.file = (struct sb_cmd_file){ 1, image[i].ino,
							  strlen(image[i].content) };
			c->q.path = image[i].to;
		}
	}
}

static void verdict_is(int line, const struct sb_cmdpol *p, const char *text, bool top,
		       enum sb_cmd_action action, const char *why)
{
	struct sb_cmd_verdict v;
	struct command c;

	command(&c, text);
	c.q.top_level = top;
	v = sb_cmdpol_decide(p, &c.q);
	if (v.action != action || strcmp(v.why, why) != 0)
		t_fail(__FILE__, line, "%s: %s, %s", text, sb_cmd_action_name(v.action), v.why);
}
#define IS(p, text, action, why) verdict_is(__LINE__, p, text, false, SB_CMD_##action, why)
#define TOP(p, text, action, why) verdict_is(__LINE__, p, text, true, SB_CMD_##action, why)

TEST(order_of_rules)
{
	struct sb_cmdpol *p = policy(SB_CMD_DENY, "=git log **;+git **;!git push **;+rm *;=rm *");

	IS(p, "/usr/bin/git git status", ALLOW, "rule");
	IS(p, "/usr/bin/git git log -1", LOG, "rule");
	IS(p, "/usr/bin/git git push origin", DENY, "rule");
	IS(p, "/usr/bin/rm rm x", ALLOW, "rule");
	IS(p, "/usr/bin/rm rm x y", DENY, "default");
	IS(p, "/usr/bin/env env", DENY, "default");
	p = sb_cmdpol_free(p);
	p = policy(SB_CMD_ALLOW, "!* --evil **;+git **;!~git -f **");
	IS(p, "/usr/bin/env env", ALLOW, "default");
	IS(p, "/usr/bin/env env --evil", DENY, "rule");
	IS(p, "/usr/bin/git git --evil x", DENY, "rule");
	IS(p, "/usr/bin/git git push -f", DENY, "rule");
	IS(p, "/usr/bin/git git push f", ALLOW, "rule");
	p = sb_cmdpol_free(p);
	p = policy(SB_CMD_DENY, "");
	IS(p, "/usr/bin/git git", DENY, "default");
	p = sb_cmdpol_free(p);
}

TEST(the_rule_that_decided)
{
	struct sb_cmdpol *p = policy(SB_CMD_DENY, "+git **;!* x;!git x;+/usr/bin/git x;=rm *");
	struct sb_cmd_verdict v;
	struct command c;

	command(&c, "/usr/bin/git git x");
	v = sb_cmdpol_decide(p, &c.q);
	CHECK_EQ(sb_cmdpol_index(p, v.rule), 1);
	CHECK_STR(v.rule->pattern, "* x");
	CHECK_STR(v.rule->from, "file:2");
	command(&c, "/usr/bin/rm rm y");
	v = sb_cmdpol_decide(p, &c.q);
	CHECK_EQ(sb_cmdpol_index(p, v.rule), 4);
	CHECK_EQ(sb_cmdpol_index(p, NULL), -1);
	p = sb_cmdpol_free(p);
}

TEST(scopes)
{
	struct sb_cmdpol *p = policy(SB_CMD_DENY, "+1git **;?rm **;!1env **;+env **");
	struct sb_plan_commands top = { .scope = SB_CMD_SCOPE_TOP_LEVEL, .fallback = SB_CMD_DENY };
	struct sb_plan_commands none = { .fallback = SB_CMD_ALLOW };

	TOP(p, "/usr/bin/git git x", ALLOW, "rule");
	IS(p, "/usr/bin/git git x", DENY, "default");
	TOP(p, "/usr/bin/rm rm x", ASK, "rule");
	IS(p, "/usr/bin/rm rm x", DENY, "default");
	TOP(p, "/usr/bin/env env x", DENY, "rule");
	IS(p, "/usr/bin/env env x", ALLOW, "rule");
	p = sb_cmdpol_free(p);
	CHECK_EQ(sb_cmdpol_new(&top, &files, &p, NULL), 0);
	TOP(p, "/usr/bin/git git", DENY, "default");
	IS(p, "/usr/bin/git git", ALLOW, "default");
	p = sb_cmdpol_free(p);
	CHECK_EQ(sb_cmdpol_new(&none, &files, &p, NULL), 0);
	TOP(p, "/usr/bin/git git", ALLOW, "default");
	IS(p, "/lib64/ld-linux-x86-64.so.2 ld x", ALLOW, "default");
	p = sb_cmdpol_free(p);
}

TEST(X01_a_name_is_the_image_s_file)
{
	struct sb_cmdpol *p = policy(SB_CMD_DENY, "+git **;+node **;+python3 **;+nothere **");

	IS(p, "/usr/bin/git git x", ALLOW, "rule");
	IS(p, "/usr/bin/git other x", ALLOW, "rule"); /* argv[0] is anybody's */
	IS(p, "/usr/bin/git /work/git x", ALLOW, "rule");
	IS(p, "/work/git git x", DENY, "default"); /* planted */
	IS(p, "/usr/bin/env git x", DENY, "default");
	IS(p, "/usr/local/bin/node node x", ALLOW, "rule"); /* every file of the name */
	IS(p, "/usr/bin/node node x", ALLOW, "rule");
	IS(p, "/usr/bin/python3 x", ALLOW, "rule");
	IS(p, "/usr/bin/python3.11 x", ALLOW, "rule");
	IS(p, "/usr/bin/nothere x", DENY, "default");
	p = sb_cmdpol_free(p);
	p = policy(SB_CMD_ALLOW, "!python3 **");
	IS(p, "/usr/bin/python3.11 python3.11 x", DENY, "rule");
	IS(p, "/usr/bin/python p", DENY, "rule");
	IS(p, "/usr/bin/python", DENY, "rule"); /* no words at all */
	p = sb_cmdpol_free(p);
}

TEST(X01_names_with_stars)
{
	struct sb_cmdpol *p = policy(SB_CMD_ALLOW, "!python3* -c **;!no?e **;!git-* x");

	IS(p, "/usr/bin/python3.11 p -c x", DENY, "rule");
	IS(p, "/usr/bin/python p -c x", DENY, "rule");
	IS(p, "/usr/bin/python p x", ALLOW, "default");
	IS(p, "/usr/local/bin/node n", DENY, "rule");
	IS(p, "/work/node n", ALLOW, "default");
	IS(p, "/usr/bin/git git receive-pack x", DENY, "rule");
	IS(p, "/usr/bin/git git push x", ALLOW, "default");
	p = sb_cmdpol_free(p);
}

TEST(paths_as_programs)
{
	struct sb_cmdpol *p = policy(SB_CMD_DENY, "+/usr/bin/git **;+/bin/python3 x;+/bin/d* **;"
						  "+./run *;+./tools/**/*.sh **;+/opt/**/a?c;"
						  "+/bin/later **");

	IS(p, "/usr/bin/git git", ALLOW, "rule");
	IS(p, "/work/usr/bin/git git", DENY, "default");
	IS(p, "/usr/bin/python3.11 p x", ALLOW, "rule"); /* through two links */
	IS(p, "/usr/bin/dash sh -c x", ALLOW, "rule"); /* /bin is /usr/bin */
	IS(p, "/usr/bin/later l", ALLOW, "rule");
	IS(p, "/work/run r x", ALLOW, "rule");
	IS(p, "/work/a/run r x", DENY, "default");
	IS(p, "/workrun r x", DENY, "default");
	IS(p, "/work/tools/a.sh a", ALLOW, "rule");
	IS(p, "/work/tools/b/c/a.sh a", ALLOW, "rule");
	IS(p, "/work/tools/a.py a", DENY, "default");
	IS(p, "/opt/x/abc a", ALLOW, "rule");
	IS(p, "/opt/abc a", ALLOW, "rule");
	IS(p, "/opt/a/c a", DENY, "default");
	p = sb_cmdpol_free(p);
	p = policy(SB_CMD_ALLOW, "!/bin/* -x;!**/evil **;!/usr/bin/python3 **");
	IS(p, "/usr/bin/env e -x", DENY, "rule");
	IS(p, "/work/a/evil e", DENY, "rule");
	IS(p, "/usr/bin/python3.11 p", DENY, "rule");
	p = sb_cmdpol_free(p);
}

TEST(X01_busybox)
{
	struct sb_cmdpol *p = policy(SB_CMD_ALLOW, "!wget **;!busybox --install **");

	IS(p, "/usr/bin/busybox wget x", DENY, "rule");
	IS(p, "/usr/bin/busybox /any/where/wget x", DENY, "rule");
	IS(p, "/usr/bin/busybox -wget x", DENY, "rule");
	IS(p, "/usr/bin/busybox busybox wget x", DENY, "rule");
	IS(p, "/usr/bin/busybox busybox busybox busybox wget", DENY, "rule");
	IS(p, "/usr/bin/busybox busybox.static /x/wget", DENY, "rule");
	IS(p, "/usr/bin/busybox busybox vi wget", ALLOW, "default");
	IS(p, "/usr/bin/busybox vi wget", ALLOW, "default");
	IS(p, "/usr/bin/busybox busybox", ALLOW, "default");
	IS(p, "/usr/bin/busybox busybox --install -s", DENY, "rule");
	IS(p, "/usr/bin/busybox vi --install", ALLOW, "default");
	IS(p, "/usr/bin/busybox busybox busybox busybox busybox busybox busybox busybox busybox "
	      "busybox busybox vi", DENY, "too-long");
	p = sb_cmdpol_free(p);
	p = policy(SB_CMD_DENY, "+/usr/bin/vi *;+busybox");
	IS(p, "/usr/bin/busybox vi x", ALLOW, "rule");
	IS(p, "/usr/bin/busybox busybox vi x", ALLOW, "rule");
	IS(p, "/usr/bin/busybox wget x", DENY, "default");
	IS(p, "/usr/bin/busybox busybox", ALLOW, "rule");
	IS(p, "/usr/bin/busybox busybox wget", DENY, "default");
	p = sb_cmdpol_free(p);
}

TEST(X01_coreutils)
{
	struct sb_cmdpol *p = policy(SB_CMD_ALLOW, "!unlink **");

	IS(p, "/usr/bin/coreutils unlink x", DENY, "rule");
	IS(p, "/usr/bin/coreutils coreutils unlink x", DENY, "rule");
	IS(p, "/usr/bin/coreutils zzz unlink x", DENY, "rule"); /* a name it does not know */
	IS(p, "/usr/bin/coreutils uu-unlink x", DENY, "rule");
	IS(p, "/usr/bin/coreutils cat --coreutils-prog=unlink x", DENY, "rule");
	IS(p, "/usr/bin/coreutils c --coreutils-prog-shebang=unlink x", DENY, "rule");
	IS(p, "/usr/bin/coreutils cat unlink", ALLOW, "default");
	p = sb_cmdpol_free(p);
}

TEST(X01_git_by_its_other_names)
{
	struct sb_cmdpol *p = policy(SB_CMD_ALLOW, "!git push **;!git-receive-pack **");

	IS(p, "/usr/bin/git git push x", DENY, "rule");
	IS(p, "/usr/bin/git git-push x", DENY, "rule");
	IS(p, "/usr/bin/git /x/git-push", DENY, "rule");
	IS(p, "/usr/bin/git git-receive-pack x", DENY, "rule");
	IS(p, "/usr/bin/git git receive-pack x", DENY, "rule");
	IS(p, "/usr/bin/git git pull", ALLOW, "default");
	p = sb_cmdpol_free(p);
}

TEST(X01_copies)
{
	struct sb_cmdpol *p = policy(SB_CMD_ALLOW, "!git push **;!wget **;+/work/mine **;!true");

	IS(p, "@0/work/g g push x", DENY, "copy-of-denied");
	IS(p, "@0/work/mine g push x", DENY, "copy-of-denied");
	IS(p, "@0/work/mine g pull", ALLOW, "rule");
	IS(p, "@0. g push x", DENY, "copy-of-denied"); /* in memory */
	IS(p, "@1/work/g g push x", ALLOW, "default"); /* same size, other bytes */
	IS(p, "@3/work/b wget x", DENY, "copy-of-denied");
	IS(p, "@3/work/b busybox wget x", DENY, "copy-of-denied");
	IS(p, "@3/work/b vi x", ALLOW, "default");
	IS(p, "@2/work/l l /usr/bin/git", DENY, "loader");
	n_digests = 0;
	IS(p, "/usr/bin/env env", ALLOW, "default");
	CHECK_EQ(n_digests, 0);
	IS(p, "@0/work/g g push x", DENY, "copy-of-denied");
	CHECK_EQ(n_digests, 1); /* git's own is known by now */
	IS(p, "@4/work/t t", DENY, "copy-of-denied");
	IS(p, "@4/work/t t x", ALLOW, "default");
	p = sb_cmdpol_free(p);
	/* whoever takes away the descriptors for a moment does not make a copy unknown for ever */
	for (size_t i = 0; i < 4; i++) {
		static const int errors[] = { -EMFILE, -ENFILE, -ENOENT, -EIO };

		p = policy(SB_CMD_ALLOW, "!git push **");
		digest_error = errors[i];
		IS(p, "@0/work/g g push x", DENY, "copy-of-denied");
		digest_error = 0;
		IS(p, "@0/work/g g push x", DENY, "copy-of-denied");
		IS(p, "@1/work/g g push x", ALLOW, "default");
		p = sb_cmdpol_free(p);
	}
	p = policy(SB_CMD_DENY, "!git push **");
	n_digests = 0;
	IS(p, "@0/work/g g push x", DENY, "default");
	CHECK_EQ(n_digests, 0); /* refused anyway */
	p = sb_cmdpol_free(p);
}

TEST(what_cannot_be_read_is_refused)
{
	struct sb_cmdpol *p = policy(SB_CMD_ALLOW, "!git push **");
	struct sb_cmd_verdict v;
	struct command c;

	command(&c, "@0/work/g g push x");
	c.q.fd = -1; /* and no such path in the image */
	v = sb_cmdpol_decide(p, &c.q);
	CHECK_EQ(v.action, SB_CMD_DENY);
	CHECK_STR(v.why, "copy-of-denied");
	p = sb_cmdpol_free(p);
}

TEST(X01_no_path)
{
	struct sb_cmdpol *p = policy(SB_CMD_DENY, "+git **;+/usr/** **");

	IS(p, "@1. git x", DENY, "no-path");
	p = sb_cmdpol_free(p);
	p = policy(SB_CMD_ALLOW, "!git push **");
	IS(p, "@1. git push", ALLOW, "default");
	IS(p, ". git push", DENY, "no-path"); /* nothing to compare */
	p = sb_cmdpol_free(p);
	p = policy(SB_CMD_DENY, "+* **");
	IS(p, "@1. git x", ALLOW, "rule");
	p = sb_cmdpol_free(p);
}

TEST(X01_loaders)
{
	static const char *const paths[] = {
		"/work/ld-linux-x86-64.so.2 a", "/x/ld-musl-x86_64.so.1 a", "/x/ld-2.31.so a",
		"/x/ld.so a", "/x/ld64.so.2 a",
	};
	struct sb_cmdpol *p = policy(SB_CMD_ALLOW, "+* **;+/usr/** **;+ld* **");

	IS(p, "/lib64/ld-linux-x86-64.so.2 l /usr/bin/git", DENY, "loader");
	for (size_t i = 0; i < SB_ARRAY_LEN(paths); i++)
		IS(p, paths[i], DENY, "loader");
	IS(p, "/work/ld-script a", ALLOW, "rule");
	p = sb_cmdpol_free(p);
	p = policy(SB_CMD_DENY, "=* **;+/lib64/ld-linux-x86-64.so.2 --verify *;!* --evil");
	IS(p, "/lib64/ld-linux-x86-64.so.2 l --verify x", ALLOW, "rule");
	IS(p, "/lib64/ld-linux-x86-64.so.2 l /usr/bin/git", DENY, "loader");
	IS(p, "/lib64/ld-linux-x86-64.so.2 l --evil", DENY, "rule");
	p = sb_cmdpol_free(p);
}

TEST(too_long)
{
	static const char *argv[SB_CMD_MAX_ARGV + 1];
	static char big[SB_CMD_MAX_ARGV_BYTES];
	struct sb_cmdpol *p = policy(SB_CMD_ALLOW, "+* **");
	struct sb_cmd_request q = { .path = "/x", .fd = -1, .argv = argv, .project = "/work" };

	for (size_t i = 0; i <= SB_CMD_MAX_ARGV; i++)
		argv[i] = "x";
	q.argc = SB_CMD_MAX_ARGV;
	CHECK_STR(sb_cmdpol_decide(p, &q).why, "rule");
	q.argc++;
	CHECK_STR(sb_cmdpol_decide(p, &q).why, "too-long");
	CHECK_EQ(sb_cmdpol_decide(p, &q).action, SB_CMD_DENY);
	memset(big, 'x', sizeof(big) - 1);
	argv[0] = big;
	q.argc = 1;
	CHECK_STR(sb_cmdpol_decide(p, &q).why, "rule");
	q.argc = 2;
	CHECK_STR(sb_cmdpol_decide(p, &q).why, "too-long");
	p = sb_cmdpol_free(p);
}

static void script_is(int line, const struct sb_cmdpol *p, const char *script, const char *interp,
		      enum sb_cmd_action action, const char *why)
{
	struct sb_cmd_verdict v;
	struct command a;
	struct command b;

	command(&a, script);
	command(&b, interp);
	a.q.top_level = b.q.top_level = true;
	v = sb_cmdpol_decide_script(p, &a.q, &b.q);
	if (v.action != action || strcmp(v.why, why) != 0)
		t_fail(__FILE__, line, "%s: %s, %s", script, sb_cmd_action_name(v.action), v.why);
}
#define SCRIPT(p, s, i, action, why) script_is(__LINE__, p, s, i, SB_CMD_##action, why)

TEST(scripts)
{
	struct sb_cmdpol *p = policy(SB_CMD_DENY, "+./run **;=python3 /work/log.py **;!sh -e **;"
						  "+env **;?rm **");

	SCRIPT(p, "/work/run run a", "/usr/bin/dash sh /work/run a", ALLOW, "rule");
	SCRIPT(p, "/work/run run a", "/usr/bin/dash sh -e /work/run a", DENY, "rule");
	SCRIPT(p, "/work/run run a", "/usr/bin/python3 p /work/log.py", LOG, "rule");
	SCRIPT(p, "/work/x x a", "/usr/bin/env env x a", ALLOW, "rule");
	SCRIPT(p, "/work/x x a", "/usr/bin/rm rm /work/x a", ASK, "rule");
	SCRIPT(p, "/work/run run a", "/usr/bin/rm rm /work/run a", ALLOW, "rule");
	SCRIPT(p, "/work/x x a", "/usr/bin/dash sh /work/x a", DENY, "default");
	SCRIPT(p, "/work/run run", "/lib64/ld-linux-x86-64.so.2 l /work/run", DENY, "loader");
	SCRIPT(p, "@1. x", "/usr/bin/env env /dev/fd/3", ALLOW, "rule");
	p = sb_cmdpol_free(p);
	p = policy(SB_CMD_ALLOW, "!python3 **");
	SCRIPT(p, "/work/x x", "/usr/bin/python3 p /work/x", DENY, "rule");
	SCRIPT(p, "/work/x x", "/usr/bin/dash s /work/x", ALLOW, "default");
	CHECK_EQ(sb_cmdpol_decide_chain(p, NULL, 0).action, SB_CMD_DENY);
	p = sb_cmdpol_free(p);
}

static void explain_is(int line, const struct sb_cmdpol *p, const char *text, const char *want)
{
	struct sb_cmd_verdict v;
	struct command c;
	char out[1024];

	command(&c, text);
	v = sb_cmdpol_decide(p, &c.q);
	sb_cmd_explain(&v, &c.q, out, sizeof(out));
	if (strcmp(out, want) != 0)
		t_fail(__FILE__, line, "got \"%s\", want \"%s\"", out, want);
	sb_cmd_explain(&v, &c.q, out, 10);
	CHECK_EQ(strlen(out), 9);
}
#define EXPLAIN(p, text, want) explain_is(__LINE__, p, text, want)

TEST(texts)
{
	struct sb_plan_commands c = plan(SB_CMD_DENY, "!git push **;+env **;=rm *");
	struct sb_cmdpol *p = NULL;

	c.rules[0].reason = strdup("pushing is for people");
	CHECK_EQ(sb_cmdpol_new(&c, &files, &p, NULL), 0);
	sb_plan_commands_done(&c);
	EXPLAIN(p, "/usr/bin/git git push origin",
		"sendbox: refused to run \"git push origin\" (/usr/bin/git): deny rule "
		"\"git push **\" (file:1): pushing is for people. Change that rule if it should run");
	EXPLAIN(p, "/usr/bin/env env a\033[2J\tb*",
		"sendbox: allowed to run \"env a\\x1b[2J\\x09b\\*\" (/usr/bin/env): allow rule "
		"\"env **\" (file:2)");
	EXPLAIN(p, "/usr/bin/rm rm x",
		"sendbox: allowed and recorded \"rm x\" (/usr/bin/rm): log rule \"rm *\" (file:3)");
	EXPLAIN(p, "/work/tool tool a",
		"sendbox: refused to run \"tool a\" (/work/tool): no rule allows it. To allow it, "
		"add to policy.commands.allowlist: \"tool a\"");
	EXPLAIN(p, "@1. x",
		"sendbox: refused to run \"x\": the file has no path (in memory, or removed), so no "
		"rule for a program can allow it. Run it from a file");
	p = sb_cmdpol_free(p);
	CHECK_STR(sb_cmd_action_name(SB_CMD_ASK), "ask");
}

TEST(plans)
{
	struct sb_plan_commands c = plan(SB_CMD_DENY, "+git;!rm **");
	struct sb_err e = { 0 };

	CHECK_EQ(sb_plan_commands_check(&c, &e), 0);
	c.rules[0].action = SB_CMD_ASK;
	CHECK_EQ(sb_plan_commands_check(&c, &e), -EINVAL);
	CHECK(strstr(e.text, "top_level"));
	c.rules[0].scope = SB_CMD_SCOPE_TOP_LEVEL;
	CHECK_EQ(sb_plan_commands_check(&c, NULL), 0);
	c.rules[0].scope = SB_CMD_SCOPE_NONE;
	CHECK_EQ(sb_plan_commands_check(&c, NULL), -EINVAL);
	c.rules[0].scope = SB_CMD_SCOPE_TREE;
	c.rules[0].action = (enum sb_cmd_action)4;
	CHECK_EQ(sb_plan_commands_check(&c, NULL), -EINVAL);
	c.rules[0].action = SB_CMD_DENY;
	c.rules[0].pattern[0] = ' ';
	c.rules[0].pattern[1] = '\0';
	CHECK_EQ(sb_plan_commands_check(&c, NULL), -EINVAL);
	c.rules[0].pattern[0] = 'x';
	c.fallback = SB_CMD_LOG;
	CHECK_EQ(sb_plan_commands_check(&c, NULL), -EINVAL);
	c.fallback = SB_CMD_ALLOW;
	c.scope = SB_CMD_SCOPE_NONE;
	CHECK_EQ(sb_plan_commands_check(&c, NULL), -EINVAL);
	sb_plan_commands_done(&c);
	CHECK_EQ(sb_plan_commands_check(&c, NULL), -EINVAL); /* zero: deny needs a scope */
	c.fallback = SB_CMD_ALLOW;
	CHECK_EQ(sb_plan_commands_check(&c, NULL), 0);
	c.log_blocked = true;
	CHECK_EQ(sb_plan_commands_check(&c, NULL), -EINVAL);
}

TEST(json)
{
	static const char want[] =
		"{\"default\":\"deny\",\"log_blocked\":true,\"rules\":["
		"{\"action\":\"allow\",\"any_order\":true,\"from\":\"file:1\",\"pattern\":\"git "
		"**\",\"reason\":null,\"scope\":\"tree\"},"
		"{\"action\":\"ask\",\"any_order\":false,\"from\":\"file:2\",\"pattern\":\"rm\","
		"\"reason\":\"why\",\"scope\":\"top_level\"}],\"scope\":\"tree\"}";
	struct sb_plan_commands c = plan(SB_CMD_DENY, "+~git **;?rm");
	struct sb_plan_commands back = { 0 };
	struct sb_err e = { 0 };
	char *text;
	char *again;
	json_t *o;

	c.log_blocked = true;
	c.rules[1].reason = strdup("why");
	text = sb_json_text(sb_cmd_json(&c));
	CHECK_STR(text, want);
	o = json_object();
	CHECK_EQ(json_object_set_new(o, "commands", json_loads(text, 0, NULL)), 0);
	CHECK_EQ(sb_cmd_json_get(o, "commands", &back, &e), 0);
	again = sb_json_text(sb_cmd_json(&back));
	CHECK_STR(again, want);
	sb_plan_commands_done(&back);
	CHECK_EQ(sb_cmd_json_get(o, "other", &back, NULL), -EBADMSG);
	(void)json_object_del(json_array_get(json_object_get(json_object_get(o, "commands"),
							     "rules"), 1), "from");
	CHECK_EQ(sb_cmd_json_get(o, "commands", &back, NULL), -EBADMSG);
	sb_plan_commands_done(&back);
	json_decref(o);
	free(text);
	free(again);
	sb_plan_commands_done(&c);
}

TEST(lookups)
{
	struct sb_plan_commands c = plan(SB_CMD_DENY, "+git a;+git b;+git c;+git d");
	struct sb_cmdpol *p = NULL;
	struct sb_err e = { 0 };
	unsigned int loaders;

	n_finds = 0;
	CHECK_EQ(sb_cmdpol_new(&(struct sb_plan_commands){ .scope = SB_CMD_SCOPE_TREE }, &files, &p,
			       &e), 0);
	p = sb_cmdpol_free(p);
	loaders = n_finds;
	n_finds = 0;
	CHECK_EQ(sb_cmdpol_new(&c, &files, &p, &e), 0);
	CHECK_EQ(n_finds, loaders + 2); /* one name: a file, and no second */
	IS(p, "/usr/bin/git git d", ALLOW, "rule");
	IS(p, "/usr/bin/git git e", DENY, "default");
	p = sb_cmdpol_free(p);
	find_error = -EIO;
	CHECK_EQ(sb_cmdpol_new(&c, &files, &p, &e), -EIO);
	CHECK(strstr(e.text, "cannot look up"));
	find_error = 0;
	sb_plan_commands_done(&c);
}

TEST(every_allocation_may_fail)
{
	struct sb_plan_commands c = plan(SB_CMD_ALLOW, "+git a;!p*n3 b;+/bin/git c;!/bin/g* d;+./e f;"
						       "!**/x;+* y;!wget z;!vi;!/usr/bin/unlink");

	T_EVERY_FAULT(n)
	{
		struct sb_cmdpol *p = NULL;
		int r;

		t_fault_arm(n);
		r = sb_cmdpol_new(&c, &files, &p, NULL);
		if (!t_fault_fired()) {
			CHECK_EQ(r, 0);
			CHECK(n > 20);
			p = sb_cmdpol_free(p);
			break;
		}
		CHECK_EQ(r, -ENOMEM);
		CHECK(!p);
	}
	sb_plan_commands_done(&c);
}

TEST(a_decision_without_memory_refuses)
{
	struct sb_cmdpol *p = policy(SB_CMD_ALLOW, "!git push **");
	struct sb_cmd_verdict v;
	struct command c;

	command(&c, "/usr/bin/git git-push x");
	t_fault_arm(1);
	v = sb_cmdpol_decide(p, &c.q);
	CHECK(t_fault_fired());
	CHECK_EQ(v.action, SB_CMD_DENY);
	p = sb_cmdpol_free(p);
}

/* @form with the number in place of "#". */
static void fill(char text[64], const char *form, size_t n)
{
	size_t at = strcspn(form, "#");
	char number[24];

	(void)snprintf(number, sizeof(number), "%zu", n);
	text[0] = '\0';
	(void)strncat(text, form, at);
	(void)strncat(text, number, 63 - strlen(text));
	(void)strncat(text, form + at + 1, 63 - strlen(text));
}

/* Many rules of every kind, each against its own command and another. */
TEST(many_rules)
{
	struct sb_plan_commands c = { .scope = SB_CMD_SCOPE_TREE, .fallback = SB_CMD_DENY };
	struct sb_cmdpol *p = NULL;
	struct command q;

	c.n_rules = 1000;
	c.rules = calloc(c.n_rules, sizeof(*c.rules));
	for (size_t i = 0; i < c.n_rules; i++) {
		static const char *const kinds[] = { "git sub# **", "/opt/tool#/* **",
						     "/opt/exact# x", "./dir#/run",
						     "* word#" };
		char text[64];

		fill(text, kinds[i % 5], i);
		c.rules[i] = (struct sb_cmd_rule){ .pattern = strdup(text), .from = strdup("f"),
						   .action = i % 3 ? SB_CMD_ALLOW : SB_CMD_DENY,
						   .scope = SB_CMD_SCOPE_TREE };
	}
	CHECK_EQ(sb_cmdpol_new(&c, &files, &p, NULL), 0);
	for (size_t i = 0; i < c.n_rules; i++) {
		static const char *const hits[] = { "/usr/bin/git git sub# x",
						    "/opt/tool#/bin b x", "/opt/exact# e x",
						    "/work/dir#/run r", "/usr/bin/env e word#" };
		struct sb_cmd_verdict v;
		char text[64];

		fill(text, hits[i % 5], i);
		command(&q, text);
		v = sb_cmdpol_decide(p, &q.q);
		CHECK_EQ(sb_cmdpol_index(p, v.rule), i);
		CHECK_EQ(v.action, i % 3 ? SB_CMD_ALLOW : SB_CMD_DENY);
		fill(text, hits[i % 5], i + 1);
		command(&q, text);
		v = sb_cmdpol_decide(p, &q.q);
		CHECK(!v.rule);
	}
	sb_plan_commands_done(&c);
	p = sb_cmdpol_free(p);
}
