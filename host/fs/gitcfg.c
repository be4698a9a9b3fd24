#include "fs/gitcfg.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#define MAX_ENTRIES 4096

struct span {
	const char *p;
	size_t n;
};
struct entry {
	struct span section; /* case does not count */
	struct span sub;     /* as written, without its quotes */
	struct span key;     /* case does not count */
	struct span value;   /* as written, without the blanks around it */
	bool has_sub;
	bool has_value;
};
struct list {
	struct entry v[MAX_ENTRIES];
	size_t n;
};

static bool is(struct span a, const char *word)
{
	return strlen(word) == a.n && strncasecmp(a.p, word, a.n) == 0;
}

static bool same(struct span a, struct span b)
{
	return a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
}

static bool same_name(struct span a, struct span b)
{
	return a.n == b.n && strncasecmp(a.p, b.p, a.n) == 0;
}

static bool made_of(struct span s, const char *more)
{
	for (size_t i = 0; i < s.n; i++)
		if (!isalnum((unsigned char)s.p[i]) && !strchr(more, s.p[i]))
			return false;
	return s.n > 0;
}

static bool begins(struct span s, const char *with)
{
	return s.n >= strlen(with) && memcmp(s.p, with, strlen(with)) == 0;
}

/* ---- reading ---- */

static size_t blanks(struct span s)
{
	size_t n = 0;

	while (n < s.n && (s.p[n] == ' ' || s.p[n] == '\t'))
		n++;
	return n;
}

static struct span from(struct span s, size_t n)
{
	return (struct span){ s.p + n, s.n - n };
}

static bool is_rest(struct span s) /* nothing, or a comment */
{
	s = from(s, blanks(s));
	return s.n == 0 || *s.p == '#' || *s.p == ';';
}

/* [name] or [name "sub"] and nothing else on the line. */
static bool read_header(struct span s, struct entry *at)
{
	size_t n = 1;

	while (n < s.n && (isalnum((unsigned char)s.p[n]) || s.p[n] == '-'))
		n++;
	*at = (struct entry){ .section = { s.p + 1, n - 1 } };
	if (n == 1 || n == s.n)
		return false;
	if (s.p[n] == ']')
		return is_rest(from(s, n + 1));
	s = from(s, n);
	if (blanks(s) == 0)
		return false;
	s = from(s, blanks(s));
	if (s.n == 0 || *s.p != '"')
		return false;
	at->has_sub = true;
	at->sub.p = s.p + 1;
	for (n = 1; n < s.n && s.p[n] != '"'; n++)
		if (s.p[n] == '\\')
			n++;
	if (n >= s.n)
		return false;
	at->sub.n = n - 1;
	s = from(s, n + 1);
	return s.n > 0 && *s.p == ']' && is_rest(from(s, 1));
}

static bool read_entry(struct span s, struct entry *e)
{
	size_t n = 0;

	if (!isalpha((unsigned char)*s.p))
		return false;
	while (n < s.n && (isalnum((unsigned char)s.p[n]) || s.p[n] == '-'))
		n++;
	e->key = (struct span){ s.p, n };
	s = from(s, n);
	s = from(s, blanks(s));
	e->value = (struct span){ s.p, 0 };
	e->has_value = s.n > 0 && *s.p == '=';
	if (!e->has_value)
		return is_rest(s);
	s = from(s, 1);
	s = from(s, blanks(s));
	while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
		s.n--;
	e->value = s;
	return s.n == 0 || s.p[s.n - 1] != '\\'; /* it would go on in the next line */
}

static bool read_line(struct span s, struct entry *at, struct list *l)
{
	for (size_t i = 0; i < s.n; i++)
		if (((unsigned char)s.p[i] < 0x20 && s.p[i] != '\t') || s.p[i] == 0x7f)
			return false;
	s = from(s, blanks(s));
	if (is_rest(s))
		return true;
	if (*s.p == '[')
		return read_header(s, at);
	if (at->section.n == 0 || l->n == MAX_ENTRIES)
		return false;
	l->v[l->n] = *at;
	return read_entry(s, &l->v[l->n++]);
}

static bool read_all(const char *text, size_t len, struct list *l)
{
	struct entry at = { .section = { NULL, 0 } };

	l->n = 0;
	while (len > 0) {
		const char *end = memchr(text, '\n', len);
		struct span line = { text, end ? (size_t)(end - text) : len };

		if (!read_line(line, &at, l))
			return false;
		len -= line.n + (end ? 1 : 0);
		text += line.n + (end ? 1 : 0);
	}
	return true;
}

/* ---- what may be added ---- */

static bool is_url(struct span v)
{
	static const char *const schemes[] = { "https://", "http://", "ssh://", "git://" };
	struct span host = v;
	size_t colon;

	for (size_t i = 0; i < v.n; i++)
		if (v.p[i] <= 0x20 || v.p[i] >= 0x7f || strchr("\"\\;#'`<>|$&", v.p[i]))
			return false;
	for (size_t i = 0; i < SB_ARRAY_LEN(schemes); i++)
		if (begins(v, schemes[i])) {
			host = from(v, strlen(schemes[i]));
			return host.n > 0 && (isalnum((unsigned char)*host.p) || *host.p == '[') &&
			       !memmem(host.p, host.n, "@-", 2);
		}
	/* HOST:PATH and USER@HOST:PATH; a second colon would name a program that fetches */
	for (colon = 0; colon < v.n && v.p[colon] != ':'; colon++)
		if (!isalnum((unsigned char)v.p[colon]) && !strchr("._-@", v.p[colon]))
			return false;
	return colon > 1 && colon + 1 < v.n && isalnum((unsigned char)*v.p) &&
	       v.p[colon + 1] != ':' && v.p[colon + 1] != '-' &&
	       !begins(from(v, colon + 1), "//") && /* another scheme */
	       !memmem(v.p, colon, "@-", 2);
}

/* [+]refs/...:refs/remotes/... */
static bool is_refspec(struct span v)
{
	const char *colon;
	struct span to;

	v = from(v, begins(v, "+") ? 1 : 0);
	colon = memchr(v.p, ':', v.n);
	if (!made_of(v, "/*._-:@") || !begins(v, "refs/") || !colon)
		return false;
	to = from(v, (size_t)(colon + 1 - v.p));
	return begins(to, "refs/remotes/") || begins(to, "refs/tags/");
}

static bool is_bool(struct span v)
{
	return is(v, "true") || is(v, "false");
}

static bool has(const struct list *old, const struct entry *e, const char *key)
{
	for (size_t i = 0; i < old->n; i++) {
		const struct entry *o = &old->v[i];

		if (same_name(o->section, e->section) && o->has_sub == e->has_sub &&
		    same(o->sub, e->sub) && is(o->key, key))
			return true;
	}
	return false;
}

static bool is_any(struct span key, const char *const *words)
{
	for (; *words; words++)
		if (is(key, *words))
			return true;
	return false;
}

static bool harmless_core(const struct entry *e)
{
	static const char *const found[] = { "filemode", "ignorecase", "logallrefupdates",
					     "precomposeunicode", "symlinks", NULL };

	if (is(e->key, "repositoryformatversion"))
		return is(e->value, "0");
	if (is(e->key, "bare"))
		return is(e->value, "false");
	return is_any(e->key, found) && is_bool(e->value);
}

/* Whether one of the entries gives the remote @name a URL. What is no remote's name is a path to git,
 * and a push into a folder runs the hooks there. */
static bool is_remote(const struct list *l, struct span name)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct entry *e = &l->v[i];

		if (is(e->section, "remote") && e->has_sub && same(e->sub, name) &&
		    is(e->key, "url") && e->has_value && e->value.n > 0)
			return true;
	}
	return false;
}

static bool harmless_branch(const struct list *new, const struct entry *e)
{
	if (is(e->key, "remote"))
		return is(e->value, ".") ||
		       (made_of(e->value, "._/-") && isalnum((unsigned char)*e->value.p) &&
			is_remote(new, e->value));
	if (is(e->key, "merge"))
		return begins(e->value, "refs/heads/") && made_of(e->value, "/._-+@");
	return is(e->key, "rebase") && (is_bool(e->value) || is(e->value, "merges"));
}

static bool harmless_remote(const struct list *old, const struct entry *e)
{
	if (is(e->key, "url") || is(e->key, "pushurl"))
		return !has(old, e, "url") && !has(old, e, "pushurl") && is_url(e->value);
	if (is(e->key, "tagopt"))
		return is(e->value, "--tags") || is(e->value, "--no-tags");
	return is(e->key, "prune") && is_bool(e->value);
}

/* @new: all entries that there will be. */
static bool harmless(const struct list *old, const struct list *new, const struct entry *e)
{
	char key[32];

	if (!e->has_value || e->key.n >= sizeof(key))
		return false;
	/* the same name written in another way would not be found among the old entries */
	if (e->has_sub && memchr(e->sub.p, '\\', e->sub.n))
		return false;
	if (is(e->section, "remote") && e->has_sub && is(e->key, "fetch"))
		return is_refspec(e->value); /* there may be several */
	memcpy(key, e->key.p, e->key.n);
	key[e->key.n] = '\0';
	if (has(old, e, key))
		return false;
	if (!e->has_sub) {
		if (is(e->section, "user"))
			return (is(e->key, "name") || is(e->key, "email")) && e->value.n > 0 &&
			       !memchr(e->value.p, '"', e->value.n) &&
			       !memchr(e->value.p, '\\', e->value.n);
		return is(e->section, "core") && harmless_core(e);
	}
	if (is(e->section, "branch"))
		return harmless_branch(new, e);
	if (is(e->section, "remote"))
		return harmless_remote(old, e);
	return is(e->section, "submodule") && (is(e->key, "active") ? is_bool(e->value)
					       : is(e->key, "url") && is_url(e->value));
}

static bool equal(const struct entry *a, const struct entry *b)
{
	return same_name(a->section, b->section) && a->has_sub == b->has_sub && same(a->sub, b->sub) &&
	       same_name(a->key, b->key) && a->has_value == b->has_value && same(a->value, b->value);
}

static int compare(const struct list *old, const struct list *new)
{
	size_t kept = 0;

	for (size_t i = 0; i < new->n; i++) {
		if (kept < old->n && equal(&old->v[kept], &new->v[i]))
			kept++;
		else if (!harmless(old, new, &new->v[i]))
			return -EACCES;
	}
	return kept == old->n ? 0 : -EACCES;
}

int fs_gitcfg_check(const char *old, size_t old_len, const char *new, size_t new_len)
{
	struct list *l = malloc(2 * sizeof(*l));
	int r = -EACCES;

	if (!l)
		return -ENOMEM;
	if (old_len <= FS_GITCFG_MAX && new_len <= FS_GITCFG_MAX &&
	    read_all(old, old_len, &l[0]) && read_all(new, new_len, &l[1]))
		r = compare(&l[0], &l[1]);
	free(l);
	return r;
}

/* ---- files ---- */

/* Return: bytes; -ENOENT; -errno. */
static ssize_t read_file(int dir, const char *name, nlink_t names, char *buf)
{
	sb_autofd int fd = -1;
	struct stat st;
	size_t len = 0;
	ssize_t n;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || (names > 0 && st.st_nlink != names))
		return -EACCES;
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	do {
		n = read(fd, buf + len, FS_GITCFG_MAX + 1 - len);
		if (n < 0)
			return -errno;
		len += (size_t)n;
	} while (n > 0 && len <= FS_GITCFG_MAX);
	return len > FS_GITCFG_MAX ? -EACCES : (ssize_t)len;
}

int fs_gitcfg_replace(int dir, const char *name, const char *target)
{
	sb_autofree char *buf = malloc(2 * (FS_GITCFG_MAX + 1));
	ssize_t old;
	ssize_t new;

	if (!buf)
		return -ENOMEM;
	new = read_file(dir, name, 1, buf);
	if (new < 0)
		return (int)new;
	old = read_file(dir, target, 0, buf + FS_GITCFG_MAX + 1);
	if (old == -ENOENT)
		old = 0;
	return old < 0 ? (int)old : fs_gitcfg_check(buf + FS_GITCFG_MAX + 1, (size_t)old, buf,
						    (size_t)new);
}
