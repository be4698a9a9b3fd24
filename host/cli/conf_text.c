#include "conf_text.h"

#include <errno.h>
#include <string.h>

/* A piece of borrowed text. */
struct span {
	const char *p;
	size_t len;
};

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static struct span trim(struct span s)
{
	while (s.len > 0 && blank(s.p[0])) {
		s.p++;
		s.len--;
	}
	while (s.len > 0 && blank(s.p[s.len - 1]))
		s.len--;
	return s;
}

static bool is(struct span s, const char *word)
{
	return s.len == strlen(word) && memcmp(s.p, word, s.len) == 0;
}

static bool begins(struct span s, const char *word)
{
	return s.len >= strlen(word) && memcmp(s.p, word, strlen(word)) == 0;
}

static bool same_letters(struct span s, const char *word)
{
	return s.len == strlen(word) && strncasecmp(s.p, word, s.len) == 0;
}

static struct span after(struct span s, size_t n)
{
	n = SB_MIN(n, s.len);
	return (struct span){ s.p + n, s.len - n };
}

/* Cut @s at the first @c: the head is returned and @s becomes the rest. False: there is none. */
static bool cut(struct span *s, char c, struct span *head)
{
	const char *at = s->len > 0 ? memchr(s->p, c, s->len) : NULL;

	if (!at)
		return false;
	*head = (struct span){ s->p, (size_t)(at - s->p) };
	*s = after(*s, head->len + 1);
	return true;
}

/* The next word between blanks; len 0 at the end. */
static struct span word(struct span *s)
{
	struct span w;

	*s = trim(*s);
	w = *s;
	for (w.len = 0; w.len < s->len && !blank(s->p[w.len]); w.len++)
		continue;
	*s = after(*s, w.len);
	return w;
}

static struct span unquote(struct span s)
{
	if (s.len >= 2 && (s.p[0] == '"' || s.p[0] == '\'') && s.p[s.len - 1] == s.p[0])
		return (struct span){ s.p + 1, s.len - 2 };
	return s;
}

/* The first quoted text in @s, without its quotes; len 0 when there is none. */
static struct span quoted(struct span s)
{
	for (size_t i = 0; i < s.len; i++) {
		const char *end;

		if (s.p[i] != '"' && s.p[i] != '\'')
			continue;
		end = memchr(s.p + i + 1, s.p[i], s.len - i - 1);
		if (!end)
			break;
		return (struct span){ s.p + i + 1, (size_t)(end - s.p) - i - 1 };
	}
	return (struct span){ s.p, 0 };
}

static struct span find(struct span s, const char *needle)
{
	const char *at = s.len > 0 ? memmem(s.p, s.len, needle, strlen(needle)) : NULL;

	return at ? after(s, (size_t)(at - s.p)) : (struct span){ s.p, 0 };
}

static int tell(conf_fn *fn, void *arg, enum conf_kind kind, struct span s, unsigned int line)
{
	return fn(arg, &(struct conf_found){ .kind = kind, .text = s.p, .len = s.len,
					     .line = line });
}

/* Step to the next line. Return: 1; 0 at the end; -EBADMSG; -E2BIG. */
static int next_line(struct span *text, struct span *ret, unsigned int *line)
{
	if (text->len == 0)
		return 0;
	(*line)++;
	if (!cut(text, '\n', ret)) {
		*ret = *text;
		*text = after(*text, text->len);
	}
	if (ret->len > CONF_LINE_MAX)
		return -E2BIG;
	return ret->len > 0 && memchr(ret->p, '\0', ret->len) ? -EBADMSG : 1;
}

/* ---- URLs ---- */

static int port_of(struct span s, uint16_t *ret)
{
	uint32_t n = 0;

	if (s.len == 0 || s.len > 5)
		return -EINVAL;
	for (size_t i = 0; i < s.len; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return -EINVAL;
		n = n * 10 + (uint32_t)(s.p[i] - '0');
	}
	if (n == 0 || n > 65535)
		return -EINVAL;
	*ret = (uint16_t)n;
	return 0;
}

int conf_url_parse(const char *s, size_t len, struct conf_url *ret)
{
	struct conf_url u = { .port = 443 };
	struct span rest = { s, len };
	struct span scheme;
	struct span host;
	const char *at;

	for (size_t i = 0; i < len; i++)
		if (s[i] <= 0x20 || s[i] == 0x7f || s[i] == '\\')
			return -EINVAL;
	if (!cut(&rest, ':', &scheme) || !begins(rest, "//"))
		return -EINVAL;
	if (same_letters(scheme, "http"))
		u.port = 80;
	else if (!same_letters(scheme, "https"))
		return -EPROTONOSUPPORT;
	memcpy(u.scheme, u.port == 80 ? "http" : "https", u.port == 80 ? 5 : 6);
	rest = after(rest, 2);
	for (host = rest, host.len = 0; host.len < rest.len; host.len++)
		if (strchr("/?#", rest.p[host.len]))
			break;
	at = host.len > 0 ? memrchr(host.p, '@', host.len) : NULL;
	if (at) {
		u.userinfo = true;
		host = after(host, (size_t)(at - host.p) + 1);
	}
	rest = host;
	if (host.len > 0 && host.p[0] == '[') {
		if (!cut(&rest, ']', &host))
			return -EINVAL;
		host.len++; /* its brackets belong to it */
	} else {
		for (host.len = 0; host.len < rest.len && rest.p[host.len] != ':'; host.len++)
			continue;
		rest = after(rest, host.len);
	}
	if (host.len == 0 || host.len >= sizeof(u.host))
		return -EINVAL;
	if (rest.len > 0 && (rest.p[0] != ':' || port_of(after(rest, 1), &u.port) < 0))
		return -EINVAL;
	memcpy(u.host, host.p, host.len);
	*ret = u;
	return 0;
}

/* ---- npm ---- */

int conf_npmrc(const char *s, size_t len, conf_fn *fn, void *arg, unsigned int *line)
{
	struct span text = { s, len };
	struct span l;
	int r;

	*line = 0;
	while ((r = next_line(&text, &l, line)) > 0) {
		struct span key;
		bool scoped;

		l = trim(l);
		if (l.len == 0 || l.p[0] == '#' || l.p[0] == ';' || !cut(&l, '=', &key))
			continue;
		key = unquote(trim(key));
		scoped = key.len > 10 && key.p[0] == '@' && is(after(key, key.len - 9), ":registry");
		if (!scoped && !is(key, "registry"))
			continue;
		r = tell(fn, arg, scoped ? CONF_EXTRA : CONF_BASE, unquote(trim(l)), *line);
		if (r != 0)
			return r;
	}
	return r;
}

/* new Definition('registry', {  or  define('registry', {  and its default: '...' */
int conf_npm_source(const char *s, size_t len, conf_fn *fn, void *arg, unsigned int *line)
{
	struct span text = { s, len };
	unsigned int inside = 0; /* lines that may still hold the default */
	struct span l;
	int r;

	*line = 0;
	while ((r = next_line(&text, &l, line)) > 0) {
		if (find(l, "('registry', {").len > 0 || find(l, "(\"registry\", {").len > 0) {
			inside = 6;
			continue;
		}
		l = trim(l);
		if (inside == 0 || --inside == 0 || !begins(l, "default:"))
			continue;
		l = quoted(l);
		return l.len > 0 ? tell(fn, arg, CONF_BASE, l, *line) : 0;
	}
	return r;
}

/* ---- pip ---- */

static bool pip_key(struct span key, enum conf_kind *kind)
{
	if (is(key, "index-url") || is(key, "index_url"))
		*kind = CONF_BASE;
	else if (is(key, "extra-index-url") || is(key, "extra_index_url") ||
		 is(key, "find-links") || is(key, "find_links"))
		*kind = CONF_EXTRA;
	else
		return false;
	return true;
}

int conf_pip(const char *s, size_t len, conf_fn *fn, void *arg, unsigned int *line)
{
	struct span text = { s, len };
	enum conf_kind kind = CONF_NONE;
	struct span l;
	int r;

	*line = 0;
	while ((r = next_line(&text, &l, line)) > 0) {
		bool more = l.len > 0 && blank(l.p[0]);
		struct span w;
		struct span key;

		l = trim(l);
		if (l.len == 0 || l.p[0] == '#' || l.p[0] == ';')
			continue;
		if (!more) {
			const char *eq = memchr(l.p, '=', l.len);
			const char *colon = memchr(l.p, ':', l.len);
			bool by_colon = colon && (!eq || colon < eq);

			kind = CONF_NONE;
			if (!cut(&l, by_colon ? ':' : '=', &key) || !pip_key(trim(key), &kind))
				continue;
		}
		while (kind != CONF_NONE && (w = word(&l)).len > 0) {
			/* a link may be a folder too */
			if (kind == CONF_EXTRA && find(w, "://").len == 0)
				continue;
			r = tell(fn, arg, kind, w, *line);
			if (r != 0)
				return r;
		}
	}
	return r;
}

/* PyPI = PackageIndex("URL", file_storage_domain="HOST"), on one line or several */
int conf_pip_source(const char *s, size_t len, conf_fn *fn, void *arg, unsigned int *line)
{
	struct span text = { s, len };
	unsigned int inside = 0;
	bool have_url = false;
	struct span l;
	int r;

	*line = 0;
	while ((r = next_line(&text, &l, line)) > 0) {
		struct span files;

		if (begins(l, "PyPI = PackageIndex(")) {
			inside = 5;
			l = after(l, strlen("PyPI = PackageIndex("));
		}
		if (inside == 0 || inside-- == 1)
			continue;
		files = find(l, "file_storage_domain");
		if (!have_url && quoted(l).len > 0 &&
		    (files.len == 0 || quoted(l).p < files.p)) {
			have_url = true;
			r = tell(fn, arg, CONF_BASE, quoted(l), *line);
			if (r != 0)
				return r;
		}
		if (files.len > 0)
			return quoted(files).len > 0 ? tell(fn, arg, CONF_WORD, quoted(files), *line)
						     : 0;
	}
	return r;
}

/* ---- apt ---- */

/* Local media and whatever else has no host. */
static bool apt_local(struct span uri)
{
	return begins(uri, "file:") || begins(uri, "copy:") || begins(uri, "cdrom:") ||
	       begins(uri, "mirror+file:");
}

static int tell_apt(conf_fn *fn, void *arg, struct span uri, unsigned int line)
{
	if (apt_local(uri))
		return 0;
	if (begins(uri, "mirror+"))
		uri = after(uri, 7);
	return tell(fn, arg, CONF_BASE, uri, line);
}

int conf_apt_list(const char *s, size_t len, conf_fn *fn, void *arg, unsigned int *line)
{
	struct span text = { s, len };
	struct span l;
	int r;

	*line = 0;
	while ((r = next_line(&text, &l, line)) > 0) {
		struct span head;
		struct span w;

		if (cut(&l, '#', &head))
			l = head;
		w = word(&l);
		if (!is(w, "deb") && !is(w, "deb-src"))
			continue;
		l = trim(l);
		if (l.len > 0 && l.p[0] == '[' && !cut(&l, ']', &head))
			continue;
		w = word(&l);
		r = w.len > 0 ? tell_apt(fn, arg, w, *line) : 0;
		if (r != 0)
			return r;
	}
	return r;
}

#define STANZA_MAX 64 /* URIs of one stanza */

struct stanza {
	struct span uris[STANZA_MAX];
	unsigned int lines[STANZA_MAX];
	size_t n;
	bool off;
	bool in_uris;
};

static int stanza_end(struct stanza *st, conf_fn *fn, void *arg)
{
	int r = 0;

	for (size_t i = 0; r == 0 && !st->off && i < st->n; i++)
		r = tell_apt(fn, arg, st->uris[i], st->lines[i]);
	*st = (struct stanza){ 0 };
	return r;
}

static int stanza_line(struct stanza *st, struct span l, unsigned int line)
{
	bool more = blank(l.p[0]);
	struct span key;
	struct span w;

	if (!more) {
		st->in_uris = false;
		if (!cut(&l, ':', &key))
			return 0;
		key = trim(key);
		st->in_uris = same_letters(key, "URIs") || same_letters(key, "URI");
		if (same_letters(key, "Enabled"))
			st->off = same_letters(trim(l), "no") || same_letters(trim(l), "false");
	}
	while (st->in_uris && (w = word(&l)).len > 0) {
		if (st->n == STANZA_MAX)
			return -E2BIG;
		st->uris[st->n] = w;
		st->lines[st->n++] = line;
	}
	return 0;
}

int conf_apt_sources(const char *s, size_t len, conf_fn *fn, void *arg, unsigned int *line)
{
	struct span text = { s, len };
	struct stanza st = { 0 };
	struct span l;
	int r;

	*line = 0;
	while ((r = next_line(&text, &l, line)) > 0) {
		if (l.len > 0 && l.p[0] == '#')
			continue;
		r = trim(l).len == 0 ? stanza_end(&st, fn, arg) : stanza_line(&st, l, *line);
		if (r != 0)
			return r;
	}
	return r < 0 ? r : stanza_end(&st, fn, arg);
}

int conf_apt_proxy(const char *s, size_t len, conf_fn *fn, void *arg, unsigned int *line)
{
	struct span text = { s, len };
	struct span l;
	int r;

	*line = 0;
	while ((r = next_line(&text, &l, line)) > 0) {
		l = trim(l);
		if (begins(l, "//") || begins(l, "#"))
			continue;
		if ((find(l, "::Proxy").len > 0 || begins(l, "Proxy")) && quoted(l).len > 0 &&
		    !is(quoted(l), "DIRECT") && !is(quoted(l), "false")) {
			r = tell(fn, arg, CONF_EXTRA, quoted(l), *line);
			if (r != 0)
				return r;
		}
	}
	return r;
}

/* ---- cargo ---- */

/* "sparse+https://..." and "registry+https://..." are the URL behind the sign. */
static struct span cargo_url(struct span s)
{
	if (begins(s, "sparse+"))
		return after(s, 7);
	return begins(s, "registry+") ? after(s, 9) : s;
}

int conf_cargo(const char *s, size_t len, conf_fn *fn, void *arg, unsigned int *line)
{
	struct span text = { s, len };
	struct span section = { "", 0 };
	struct span l;
	int r;

	*line = 0;
	while ((r = next_line(&text, &l, line)) > 0) {
		struct span key;
		struct span inner;

		l = trim(l);
		if (l.len == 0 || l.p[0] == '#')
			continue;
		if (l.p[0] == '[') {
			l = after(l, 1);
			section = cut(&l, ']', &key) ? trim(key) : (struct span){ l.p, 0 };
			continue;
		}
		if (!cut(&l, '=', &key))
			continue;
		key = trim(key);
		l = trim(l);
		if (is(key, "replace-with") &&
		    (is(section, "source.crates-io") || is(section, "source.\"crates-io\""))) {
			r = tell(fn, arg, CONF_REPLACE, quoted(l), *line);
			if (r != 0)
				return r;
			continue;
		}
		/* name = { index = "..." }, key = "...", section.key = "..." */
		inner = begins(l, "{") ? find(l, "index") : (struct span){ l.p, 0 };
		if (inner.len == 0 && begins(l, "{"))
			inner = find(l, "registry");
		if ((begins(section, "registries") || begins(key, "registries.")) &&
		    (inner.len > 0 || is(key, "index") ||
		     (key.len > 6 && is(after(key, key.len - 6), ".index"))))
			l = quoted(inner.len > 0 ? inner : l);
		else if ((begins(section, "source") && (inner.len > 0 || is(key, "registry"))))
			l = quoted(inner.len > 0 ? inner : l);
		else
			continue;
		r = l.len > 0 ? tell(fn, arg, CONF_EXTRA, cargo_url(l), *line) : 0;
		if (r != 0)
			return r;
	}
	return r;
}

int conf_cargo_index(const char *s, size_t len, conf_fn *fn, void *arg, unsigned int *line)
{
	struct span text = { s, len };
	struct span l;
	int r;

	*line = 0;
	while ((r = next_line(&text, &l, line)) > 0) {
		l = find(l, "\"dl\"");
		l = quoted(after(l, 4));
		if (l.len == 0)
			continue;
		r = tell(fn, arg, CONF_EXTRA, l, *line);
		if (r != 0)
			return r;
	}
	return r;
}

/* ---- go ---- */

int conf_go_value(const char *s, size_t len, bool sumdb, unsigned int line, conf_fn *fn, void *arg)
{
	struct span v = trim((struct span){ s, len });
	struct span w;
	int r = 0;

	if (sumdb) { /* NAME[+KEY] [URL] */
		w = word(&v);
		if (w.len == 0 || is(w, "off"))
			return 0;
		v = trim(v);
		if (v.len > 0)
			return tell(fn, arg, CONF_EXTRA, v, line);
		for (size_t i = 0; i < w.len; i++)
			if (w.p[i] == '+')
				w.len = i;
		return tell(fn, arg, CONF_WORD, w, line);
	}
	while (r == 0 && v.len > 0) {
		for (w = v, w.len = 0; w.len < v.len; w.len++)
			if (v.p[w.len] == ',' || v.p[w.len] == '|')
				break;
		v = after(v, w.len + 1);
		w = trim(w);
		if (w.len > 0 && !is(w, "direct") && !is(w, "off") && !begins(w, "file:"))
			r = tell(fn, arg, CONF_BASE, w, line);
	}
	return r;
}

static int go_env(const char *s, size_t len, bool sumdb, conf_fn *fn, void *arg,
		  unsigned int *line)
{
	struct span text = { s, len };
	struct span l;
	int r;

	*line = 0;
	while ((r = next_line(&text, &l, line)) > 0) {
		struct span key;

		l = trim(l);
		if (l.len == 0 || l.p[0] == '#' || !cut(&l, '=', &key) ||
		    !is(trim(key), sumdb ? "GOSUMDB" : "GOPROXY"))
			continue;
		r = conf_go_value(l.p, l.len, sumdb, *line, fn, arg);
		if (r != 0)
			return r;
	}
	return r;
}

/* envOr("GOPROXY", "...") */
static int go_source(const char *s, size_t len, bool sumdb, conf_fn *fn, void *arg,
		     unsigned int *line)
{
	const char *call = sumdb ? "envOr(\"GOSUMDB\"," : "envOr(\"GOPROXY\",";
	struct span text = { s, len };
	struct span l;
	int r;

	*line = 0;
	while ((r = next_line(&text, &l, line)) > 0) {
		l = find(l, call);
		l = quoted(after(l, strlen(call)));
		if (l.len > 0)
			return conf_go_value(l.p, l.len, sumdb, *line, fn, arg);
	}
	return r;
}

int conf_go_proxy(const char *s, size_t len, conf_fn *fn, void *arg, unsigned int *line)
{
	return go_env(s, len, false, fn, arg, line);
}

int conf_go_sumdb(const char *s, size_t len, conf_fn *fn, void *arg, unsigned int *line)
{
	return go_env(s, len, true, fn, arg, line);
}

int conf_go_source_proxy(const char *s, size_t len, conf_fn *fn, void *arg, unsigned int *line)
{
	return go_source(s, len, false, fn, arg, line);
}

int conf_go_source_sumdb(const char *s, size_t len, conf_fn *fn, void *arg, unsigned int *line)
{
	return go_source(s, len, true, fn, arg, line);
}

/* ---- git ---- */

int conf_git(const char *s, size_t len, conf_fn *fn, void *arg, unsigned int *line)
{
	struct span text = { s, len };
	bool remote = false;
	struct span l;
	int r;

	*line = 0;
	while ((r = next_line(&text, &l, line)) > 0) {
		struct span key;

		l = trim(l);
		if (l.len > 0 && l.p[0] == '[')
			remote = begins(l, "[remote ");
		if (!remote || !cut(&l, '=', &key) || !same_letters(trim(key), "url"))
			continue;
		r = tell(fn, arg, CONF_REMOTE, unquote(trim(l)), *line);
		if (r != 0)
			return r;
	}
	return r;
}
