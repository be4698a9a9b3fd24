/*
 * A definition as documents of the configuration. Line breaks are put before each value, so that it
 * stands on the line of its document on which it stands in the definition: that is how every message
 * and `config explain` name the right place.
 */
#include <errno.h>
#include <string.h>

#include "agent_i.h"
#include "base/buf.h"

struct out {
	struct sb_buf b;
	uint32_t line;
	bool comma;
};

static void to_line(struct out *o, uint32_t line)
{
	for (; o->line < line; o->line++)
		sb_buf_add_u8(&o->b, '\n');
}

static void text(struct out *o, const char *s)
{
	sb_buf_add_u8(&o->b, '"');
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\')
			sb_buf_addf(&o->b, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			sb_buf_addf(&o->b, "\\u%04x", c);
		else
			sb_buf_add_u8(&o->b, c);
	}
	sb_buf_add_u8(&o->b, '"');
}

static void begin(struct out *o, uint32_t line, const char *head)
{
	sb_buf_init(&o->b, 8U << 20);
	o->line = 1;
	o->comma = false;
	to_line(o, line);
	sb_buf_add_str(&o->b, head);
}

static void next(struct out *o, uint32_t line)
{
	if (o->comma)
		sb_buf_add_u8(&o->b, ',');
	o->comma = true;
	to_line(o, line);
}

/* Keep what was written as one more source. */
static int end(struct out *o, const char *tail, const char *file, struct agent_layer *l)
{
	struct cfg_source *s = &l->v[l->n];
	int r;

	sb_buf_add_str(&o->b, tail);
	r = sb_buf_error(&o->b);
	if (r == 0) {
		*s = (struct cfg_source){ .layer = CFG_AGENT,
					  .file = arena_text(&l->arena, file, strlen(file)),
					  .bytes = arena_text(&l->arena, (const char *)o->b.data,
							      o->b.len),
					  .len = o->b.len };
		r = s->file && s->bytes ? 0 : -ENOMEM;
		l->n += r == 0;
	}
	sb_buf_done(&o->b);
	return r;
}

static const char *joined(struct arena *a, const char *first, const char *second)
{
	size_t n = strlen(first);
	size_t m = strlen(second);
	char *s = arena_alloc(a, n + m + 1);

	if (!s)
		return NULL;
	memcpy(s, first, n);
	memcpy(s + n, second, m + 1);
	return s;
}

const char *agent_path(struct arena *a, const char *path, const char *home, bool root)
{
	const char *rest = path;

	if (path[0] == '~' && (path[1] == '/' || path[1] == '\0'))
		rest = path + 1;
	else if (root && strncmp(path, "/root", 5) == 0 && (path[5] == '/' || path[5] == '\0'))
		rest = path + 5;
	else
		return arena_text(a, path, strlen(path));
	return joined(a, home, rest);
}

/* "$HOME/..." is the home folder inside. */
static int value(struct out *o, const struct agent_use *use, struct arena *a, const char *v)
{
	const char *path = strncmp(v, "$HOME/", 6) == 0 ? joined(a, use->guest_home, v + 5) : v;

	if (!path)
		return -ENOMEM;
	text(o, path);
	return 0;
}

static int put_env(const struct agent *a, const struct agent_use *use, struct agent_layer *l)
{
	struct out o;
	int r = 0;

	if (a->env.n == 0)
		return 0;
	begin(&o, a->env.at.line, "{\"env\":{");
	for (size_t i = 0; r == 0 && i < a->env.n; i++) {
		const char *e = a->env.v[i].text;
		size_t n = strcspn(e, "=");
		char name[256];

		(void)snprintf(name, sizeof(name), "%.*s", (int)SB_MIN(n, sizeof(name) - 1), e);
		if (e[n] != '=' && !use->variable(name))
			continue;
		next(&o, a->env.v[i].line);
		text(&o, name);
		sb_buf_add_u8(&o.b, ':');
		if (e[n] == '=')
			r = value(&o, use, &l->arena, e + n + 1);
		else
			sb_buf_add_str(&o.b, "null");
	}
	if (r == 0)
		return end(&o, "}}", a->env.at.file, l);
	sb_buf_done(&o.b);
	return r;
}

static int put_mounts(const struct agent *a, const struct agent_use *use, struct agent_layer *l)
{
	struct out o;

	if (a->n_mounts == 0 || use->no_mounts)
		return 0;
	begin(&o, a->mounts_at.line, "{\"mounts\":[");
	for (size_t i = 0; i < a->n_mounts; i++) {
		const struct agent_mount *m = &a->mounts[i];
		const char *host = agent_path(&l->arena, m->host, use->home, false);
		const char *guest = agent_path(&l->arena, m->guest, use->guest_home, true);

		if (!host || !guest) {
			sb_buf_done(&o.b);
			return -ENOMEM;
		}
		if (!use->exists(use->arg, host)) {
			if (use->skipped)
				use->skipped(use->arg, m, host);
			continue;
		}
		next(&o, m->line);
		sb_buf_add_str(&o.b, "{\"host\":");
		text(&o, host);
		sb_buf_add_str(&o.b, ",\"guest\":");
		text(&o, guest);
		sb_buf_addf(&o.b, ",\"mode\":\"%s\"}", m->read_only ? "ro" : "rw");
	}
	return end(&o, "]}", a->mounts_at.file, l);
}

static int put_hosts(const struct agent *a, struct agent_layer *l)
{
	struct out o;

	if (a->hosts.n == 0)
		return 0;
	begin(&o, a->hosts.at.line, "{\"policy\":{\"network\":{\"allowed_domains\":[");
	for (size_t i = 0; i < a->hosts.n; i++) {
		next(&o, a->hosts.v[i].line);
		text(&o, a->hosts.v[i].text);
	}
	return end(&o, "]}}}", a->hosts.at.file, l);
}

int agent_layer_make(const struct agent *a, const struct agent_use *use, struct agent_layer *ret)
{
	struct agent_layer l = { 0 };
	int r;

	l.v = calloc(4, sizeof(*l.v));
	r = l.v ? put_env(a, use, &l) : -ENOMEM;
	if (r == 0)
		r = put_mounts(a, use, &l);
	if (r == 0)
		r = put_hosts(a, &l);
	if (r < 0) {
		agent_layer_done(&l);
		return r;
	}
	*ret = l;
	return 0;
}

void agent_layer_done(struct agent_layer *l)
{
	free(l->v);
	arena_done(&l->arena);
	*l = (struct agent_layer){ 0 };
}
