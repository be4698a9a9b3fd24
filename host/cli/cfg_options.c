#include "cfg_options.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- text ---- */

struct text {
	struct cfg_options *c;
	size_t cap;
	size_t line_cap;
	bool failed; /* no memory */
	bool comma;  /* before the next line */
};

static void put(struct text *t, const char *s, size_t len)
{
	struct cfg_options *c = t->c;

	if (t->failed)
		return;
	if (c->len + len + 1 > t->cap) {
		size_t cap = (c->len + len + 1) * 2;
		char *p = realloc(c->text, cap);

		if (!p) {
			t->failed = true;
			return;
		}
		c->text = p;
		t->cap = cap;
	}
	memcpy(c->text + c->len, s, len);
	c->len += len;
	c->text[c->len] = '\0';
}

static void puts_(struct text *t, const char *s)
{
	put(t, s, strlen(s));
}

/* Bytes of the UTF-8 character at @s; 0 = none that YAML may hold as it is. */
static size_t character(const unsigned char *s)
{
	static const unsigned char mark[] = { 0xef, 0xbb, 0xbf };
	size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;

	if (n == 1)
		return s[0] >= 0x20 && s[0] != 0x7f;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if (n == 2 && s[0] == 0xc2 && s[1] < 0xa0) /* C1 */
		return 0;
	if (n == 3 && ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0) ||
		       memcmp(s, mark, 3) == 0 || (s[0] == 0xef && s[1] == 0xbf && s[2] >= 0xbe)))
		return 0;
	if (n == 4 && ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90)))
		return 0;
	return n;
}

/* What cannot stand there becomes "?": the given bytes are kept with the line. */
static void quoted(struct text *t, const char *s)
{
	puts_(t, "\"");
	while (*s) {
		size_t n = character((const unsigned char *)s);
		char esc[3] = { '\\', *s, '\0' };

		if (n == 0)
			puts_(t, "?");
		else if (*s == '"' || *s == '\\')
			puts_(t, esc);
		else
			put(t, s, n);
		s += n > 0 ? n : 1;
	}
	puts_(t, "\"");
}

/* End the line before, begin one that @option stands for. */
static void line(struct text *t, const char *option, const char *raw)
{
	struct cfg_options *c = t->c;
	struct cfg_options_line *l;

	if (c->n_lines > 0)
		puts_(t, t->comma ? ",\n" : "\n");
	t->comma = false;
	if (c->n_lines == t->line_cap) {
		size_t cap = t->line_cap * 2 + 64;

		l = realloc(c->lines, cap * sizeof(*l));
		if (!l) {
			t->failed = true;
			return;
		}
		c->lines = l;
		t->line_cap = cap;
	}
	l = &c->lines[c->n_lines++];
	*l = (struct cfg_options_line){ .option = option, .raw = raw ? strdup(raw) : NULL };
	t->failed |= raw && !l->raw;
}

static void open_with(struct text *t, const char *key, const char *bracket)
{
	line(t, NULL, NULL);
	if (key) {
		quoted(t, key);
		puts_(t, ": ");
	}
	puts_(t, bracket);
}

static void close_with(struct text *t, const char *bracket)
{
	t->comma = false;
	line(t, NULL, NULL);
	puts_(t, bracket);
	t->comma = true;
}

static void begin(struct text *t, const char *option, const char *key, const char *raw)
{
	line(t, option, raw);
	if (key) {
		quoted(t, key);
		puts_(t, ": ");
	}
	t->comma = true;
}

static void string(struct text *t, const char *option, const char *key, const char *value)
{
	begin(t, option, key, value);
	quoted(t, value);
}

SB_PRINTF(4, 5)
static void plain(struct text *t, const char *option, const char *key, const char *fmt, ...)
{
	char buf[64];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	begin(t, option, key, buf);
	puts_(t, buf);
}

/* ---- options ---- */

/* Each item of a comma list a line. */
static int items(struct text *t, const char *option, const char *list, bool upper,
		 struct sb_err *err)
{
	const char *p = list;

	for (;;) {
		size_t n = strcspn(p, ",");
		size_t from = 0;
		size_t to = n;
		sb_autofree char *item = NULL;

		while (from < to && isspace((unsigned char)p[from]))
			from++;
		while (to > from && isspace((unsigned char)p[to - 1]))
			to--;
		if (from == to)
			return sb_err_set(err, -EINVAL, "%s \"%.100s\": an empty item in the list",
					  option, list);
		item = strndup(p + from, to - from);
		if (!item)
			return -ENOMEM;
		for (char *c = item; upper && *c; c++)
			*c = (char)toupper((unsigned char)*c);
		string(t, option, NULL, item);
		if (p[n] == '\0')
			return 0;
		p += n + 1;
	}
}

static void runtime(struct text *t, const struct run_options *o)
{
	if (!o->runtime && !o->accel && !o->kernel && !o->image)
		return;
	open_with(t, "runtime", "{");
	if (o->runtime)
		string(t, "--runtime", "provider", o->runtime);
	if (o->accel)
		string(t, "--accel", "accel", o->accel);
	if (o->kernel)
		string(t, "--kernel", "kernel", o->kernel);
	if (o->image)
		string(t, "--image", "image", o->image);
	close_with(t, "}");
}

static void resources(struct text *t, const struct run_options *o)
{
	if (!o->cpus && !o->memory_bytes && !o->disk_bytes && !o->pids && !o->quota_bytes &&
	    !o->quota_files)
		return;
	open_with(t, "resources", "{");
	if (o->cpus)
		plain(t, "--cpus", "cpus", "%u", o->cpus);
	if (o->memory_bytes)
		plain(t, "--memory", "memory_mb", "\"%" PRIu64 "b\"", o->memory_bytes);
	if (o->disk_bytes)
		plain(t, "--disk", "disk_size_mb", "\"%" PRIu64 "b\"", o->disk_bytes);
	if (o->pids)
		plain(t, "--pids", "pids", "%u", o->pids);
	if (o->quota_bytes)
		plain(t, "--quota", "quota_mb", "\"%" PRIu64 "b\"", o->quota_bytes);
	if (o->quota_files)
		plain(t, "--quota-files", "quota_files", "%" PRIu64, o->quota_files);
	close_with(t, "}");
}

bool cfg_options_env_name(const char *s, size_t len)
{
	if (len == 0 || isdigit((unsigned char)*s))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)s[i]) && s[i] != '_')
			return false;
	return true;
}

/* Whether a later option sets the same variable. */
static bool set_again(const struct run_options *o, size_t at, size_t name)
{
	for (size_t i = at + 1; i < o->n_env; i++)
		if (strncmp(o->env[i], o->env[at], name) == 0 &&
		    (o->env[i][name] == '=' || o->env[i][name] == '\0'))
			return true;
	return false;
}

static int env(struct text *t, const struct run_options *o)
{
	bool opened = false;

	for (size_t i = 0; i < o->n_env; i++) {
		const char *e = o->env[i];
		size_t n = strcspn(e, "=");
		sb_autofree char *name = NULL;

		if (!cfg_options_env_name(e, n) || set_again(o, i, n))
			continue;
		name = strndup(e, n);
		if (!name)
			return -ENOMEM;
		if (!opened)
			open_with(t, "env", "{");
		opened = true;
		if (e[n] == '=')
			string(t, "--env", name, e + n + 1);
		else
			plain(t, "--env", name, "null");
	}
	if (opened)
		close_with(t, "}");
	return 0;
}

static void mounts(struct text *t, const struct run_options *o)
{
	if (o->n_mounts == 0)
		return;
	open_with(t, "mounts", "[");
	for (size_t i = 0; i < o->n_mounts; i++)
		string(t, "--mount", NULL, o->mounts[i]);
	close_with(t, "]");
}

static int lists(struct text *t, const char *option, const char *key, const char *const *list,
		 size_t n, struct sb_err *err)
{
	int r = 0;

	if (n == 0)
		return 0;
	open_with(t, key, "[");
	for (size_t i = 0; r == 0 && i < n; i++)
		r = items(t, option, list[i], false, err);
	close_with(t, "]");
	return r;
}

static int dns(struct text *t, const struct run_options *o, struct sb_err *err)
{
	bool queries = run_options_given(o, "dns-queries");
	bool names = run_options_given(o, "dns-new-names");
	int r = 0;

	if (o->n_dns_types == 0 && !queries && !names)
		return 0;
	open_with(t, "dns", "{");
	if (o->n_dns_types > 0) {
		open_with(t, "allowed_record_types", "[");
		string(t, "--dns-types", NULL, "A");
		string(t, "--dns-types", NULL, "AAAA");
		for (size_t i = 0; r == 0 && i < o->n_dns_types; i++)
			r = items(t, "--dns-types", o->dns_types[i], true, err);
		close_with(t, "]");
	}
	if (queries)
		plain(t, "--dns-queries", "queries_per_minute", "%u", o->dns_queries);
	if (names)
		plain(t, "--dns-new-names", "new_names_per_minute", "%u", o->dns_new_names);
	close_with(t, "}");
	return r;
}

static int network(struct text *t, const struct run_options *o, struct sb_err *err)
{
	int r;

	if (!o->no_network && !o->net_option)
		return 0;
	open_with(t, "network", "{");
	if (o->no_network)
		string(t, "--no-network", "mode", "none");
	if (o->no_filter) {
		string(t, "--no-network-filter", "mode", "open");
		string(t, "--no-network-filter", "default_action", "allow");
	}
	r = lists(t, "--allow-hosts", "allowed_domains", o->allow, o->n_allow, err);
	if (r == 0)
		r = lists(t, "--deny-hosts", "blocked_domains", o->deny, o->n_deny, err);
	if (r == 0 && o->n_host_ports > 0) {
		open_with(t, "host_ports", "[");
		for (size_t i = 0; i < o->n_host_ports; i++)
			plain(t, "--allow-host-port", NULL, "%u", o->host_ports[i]);
		close_with(t, "]");
	}
	if (o->proxy_env)
		plain(t, "--proxy-env", "proxy_env", "true");
	if (o->strict_cname)
		plain(t, "--strict-cname", "strict_cname", "true");
	if (o->allow_ech)
		plain(t, "--allow-ech", "allow_ech", "true");
	if (run_options_given(o, "net-connections"))
		plain(t, "--net-connections", "max_connections", "%u", o->net_connections);
	if (run_options_given(o, "net-idle") && o->net_idle_ms == 0)
		plain(t, "--net-idle", "idle_timeout", "0");
	else if (run_options_given(o, "net-idle"))
		plain(t, "--net-idle", "idle_timeout", "\"%" PRIu64 "ms\"", o->net_idle_ms);
	if (o->net_bytes)
		plain(t, "--net-bytes", "session_mb", "\"%" PRIu64 "b\"", o->net_bytes);
	if (o->net_host_bytes)
		plain(t, "--net-host-bytes", "host_mb", "\"%" PRIu64 "b\"", o->net_host_bytes);
	if (r == 0)
		r = dns(t, o, err);
	close_with(t, "}");
	return r;
}

static void ssh_agent(struct text *t, const struct run_options *o)
{
	if (!run_options_given(o, "ssh-agent"))
		return;
	open_with(t, "ssh_agent", "{");
	plain(t, "--ssh-agent", "enabled", "true");
	if (o->n_ssh_keys > 0) {
		open_with(t, "keys", "[");
		for (size_t i = 0; i < o->n_ssh_keys; i++)
			string(t, "--ssh-agent", NULL, o->ssh_keys[i]);
		close_with(t, "]");
	}
	close_with(t, "}");
}

int cfg_options_make(const struct run_options *o, struct cfg_options *ret, struct sb_err *err)
{
	struct cfg_options c = { 0 };
	struct text t = { .c = &c };
	int r;

	open_with(&t, NULL, "{");
	if (o->project)
		string(&t, "--project", "project_path", o->project);
	runtime(&t, o);
	resources(&t, o);
	if (o->timeout_ms)
		plain(&t, "--timeout", "timeout", "\"%" PRIu64 "ms\"", o->timeout_ms);
	mounts(&t, o);
	ssh_agent(&t, o);
	r = env(&t, o);
	if (r == 0 && (o->profile || o->no_network || o->net_option)) {
		open_with(&t, "policy", "{");
		if (o->profile)
			string(&t, "--profile", "profile", o->profile);
		r = network(&t, o, err);
		close_with(&t, "}");
	}
	close_with(&t, "}");
	puts_(&t, "\n");
	if (r == 0 && t.failed)
		r = -ENOMEM;
	if (r < 0) {
		cfg_options_done(&c);
		return sb_err_set(err, r, "out of memory");
	}
	*ret = c;
	return 0;
}

void cfg_options_done(struct cfg_options *c)
{
	for (size_t i = 0; i < c->n_lines; i++)
		free(c->lines[i].raw);
	free(c->lines);
	free(c->text);
	*c = (struct cfg_options){ 0 };
}

/* ---- back from a value to its option ---- */

static const struct cfg_options_line *line_of(const struct cfg_options *c,
					      const struct cfg_value *v)
{
	if (!c || !v || v->origin.layer != CFG_COMMAND_LINE || v->origin.line == 0 ||
	    v->origin.line > c->n_lines)
		return NULL;
	return &c->lines[v->origin.line - 1];
}

void cfg_options_where(const struct cfg_options *c, const struct cfg_value *v, char *out,
		       size_t cap)
{
	const struct cfg_options_line *l = line_of(c, v);

	if (l && l->option)
		(void)snprintf(out, cap, "%s", l->option);
	else
		cfg_where(v, out, cap);
}

const char *cfg_options_raw(const struct cfg_options *c, const struct cfg_value *v)
{
	const struct cfg_options_line *l = line_of(c, v);

	return l && l->raw ? l->raw : v->text;
}

void cfg_options_blame(const struct cfg_options *c, struct problems *p)
{
	for (size_t i = 0; c && i < p->n; i++) {
		struct problem *q = &p->v[i];

		if (strcmp(q->file, CFG_OPTIONS_FILE) != 0 || q->line == 0 ||
		    q->line > c->n_lines || !c->lines[q->line - 1].option)
			continue;
		(void)snprintf(q->file, sizeof(q->file), "%s", c->lines[q->line - 1].option);
		q->line = 0;
		q->col = 0;
		q->excerpt[0] = '\0';
	}
}
