/*
 * One table drives the reading: each field has its name, its reader and, for problems, its own path.
 * Pure: bytes in. Limits are counted before anything is kept.
 */
#include <errno.h>
#include <string.h>

#include "agent_i.h"
#include "base/near.h"
#include "config/cfg_i.h"
#include "core/net_policy.h"
#include "core/plan.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

struct reading {
	struct agent *a;
	struct problems *p;
	const char *file; /* in the arena */
	bool oom;
};

bool agent_name_ok(const char *s)
{
	size_t n = strlen(s);

	return n >= 1 && n <= 64 && strchr(LETTERS DIGITS, s[0]) &&
	       s[strspn(s, LETTERS DIGITS "._-")] == '\0';
}

static bool has_control(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return true;
	return false;
}

static const char *keep(struct reading *r, const char *s)
{
	const char *copy = arena_text(&r->a->arena, s, strlen(s));

	r->oom = r->oom || !copy;
	return copy ? copy : "";
}

static void *array(struct reading *r, size_t n, size_t size)
{
	void *v = arena_array(&r->a->arena, n + 1, size);

	r->oom = r->oom || !v;
	return v;
}

static bool bad(struct reading *r, const struct doc_node *n, const char *field, const char *why)
{
	if (n->kind == DOC_SEQ || n->kind == DOC_MAP || n->kind == DOC_NULL)
		problems_add(r->p, n, field, "bad_value", "%s", why);
	else
		problems_add(r->p, n, field, "bad_value", "\"%.120s\": %s", n->text, why);
	return false;
}

static bool is(struct reading *r, const struct doc_node *n, const char *field, enum doc_kind kind,
	       const char *what)
{
	if (n->kind == kind)
		return true;
	problems_add(r->p, n, field, "wrong_type", "must be %s", what);
	return false;
}

/* A text of 1 to @max bytes; line breaks and tabs only when @lines. */
static bool text_ok(struct reading *r, const struct doc_node *n, const char *field, size_t max,
		    bool lines)
{
	if (!is(r, n, field, DOC_STR, "a text"))
		return false;
	if (n->len == 0)
		return bad(r, n, field, "must not be empty");
	if (n->len > max) {
		problems_add(r->p, n, field, "limit", "more than %zu bytes", max);
		return false;
	}
	if (strlen(n->text) != n->len)
		return bad(r, n, field, "holds a NUL");
	if (!lines && has_control(n->text))
		return bad(r, n, field, "holds a control character");
	return true;
}

/* ---- what a text must be ---- */

static bool any_text(struct reading *r, const struct doc_node *n, const char *field)
{
	return text_ok(r, n, field, 65536, true);
}

static bool image_text(struct reading *r, const struct doc_node *n, const char *field)
{
	if (!text_ok(r, n, field, 512, false))
		return false;
	if (strpbrk(n->text, " \"'\\"))
		return bad(r, n, field, "no reference of an image: it holds a blank or a quote");
	return true;
}

static bool env_text(struct reading *r, const struct doc_node *n, const char *field)
{
	size_t name;

	if (!text_ok(r, n, field, 131072, true))
		return false;
	name = strcspn(n->text, "=");
	if (name == 0 || name > 255 || strchr(DIGITS, n->text[0]) ||
	    strspn(n->text, LETTERS DIGITS "_") < name)
		return bad(r, n, field, "must be NAME=VALUE, or NAME to pass the caller's on; a name is "
			   "letters, digits and _ and no digit first");
	return true;
}

static int ignore_rule(void *arg, const struct sb_net_rule *rule)
{
	(void)arg;
	(void)rule;
	return 0;
}

static bool is_group(const char *s)
{
	for (size_t i = 0; cfg_groups[i]; i++)
		if (strcmp(cfg_groups[i], s) == 0)
			return true;
	return false;
}

static bool host_text(struct reading *r, const struct doc_node *n, const char *field)
{
	struct sb_err err = { 0 };

	if (!text_ok(r, n, field, 1024, false))
		return false;
	if (is_group(n->text) ||
	    sb_net_rule_parse(n->text, n->len, false, field, ignore_rule, NULL, &err) == 0)
		return true;
	problems_add(r->p, n, field, "bad_value", "%.400s",
		     err.text[0] ? err.text : "no name, address or group");
	return false;
}

/* A name as Debian's policy has it: it becomes a word of a command. */
static bool package_text(struct reading *r, const struct doc_node *n, const char *field)
{
	const char *s = n->text;

	if (!text_ok(r, n, field, 128, false))
		return false;
	if (strlen(s) == n->len && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789") > 0 &&
	    s[strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789+-.")] == '\0')
		return true;
	return bad(r, n, field, "must be the name of a Debian package: a-z 0-9 + - .");
}

/* Absolute, or beneath the home folder; no "..". */
static bool path_text(struct reading *r, const struct doc_node *n, const char *field)
{
	char norm[SB_PLAN_MAX_PATH + 1];
	const char *s = n->text;

	if (!text_ok(r, n, field, SB_PLAN_MAX_PATH - 256, false))
		return false;
	if (s[0] == '~' && (s[1] == '/' || s[1] == '\0'))
		s = s[1] ? s + 1 : "/";
	if (sb_path_normalise(s, norm) < 0)
		return bad(r, n, field, "must be an absolute path, or one that begins with ~/, without "
			   "\"..\"");
	return true;
}

static bool home_path(struct reading *r, const struct doc_node *n, const char *field)
{
	if (!path_text(r, n, field))
		return false;
	if (strncmp(n->text, "~/", 2) != 0 || n->text[2 + strspn(n->text + 2, "/.")] == '\0')
		return bad(r, n, field, "must be a file or folder beneath ~/");
	return true;
}

/* A path beneath the folder, or "*.ext". */
static bool exclude_text(struct reading *r, const struct doc_node *n, const char *field)
{
	char rooted[1100];
	char norm[SB_PLAN_MAX_PATH + 1];

	if (!text_ok(r, n, field, 1024, false))
		return false;
	rooted[0] = '/';
	memcpy(rooted + 1, n->text, n->len + 1);
	if (n->text[0] == '/' || sb_path_normalise(rooted, norm) < 0 || strcmp(norm, "/") == 0)
		return bad(r, n, field, "must be a path beneath the folder, or *.ENDING");
	return true;
}

typedef bool text_fn(struct reading *r, const struct doc_node *n, const char *field);

/* ---- lists of texts ---- */

struct list_rule {
	text_fn *check;
	size_t max;
	bool unique;
};

static size_t name_len(const struct doc_node *n, const struct list_rule *rule)
{
	return rule->check == env_text ? strcspn(n->text, "=") : n->len;
}

static bool twice(const struct doc_node *list, size_t at, const struct list_rule *rule)
{
	const struct doc_node *n = &list->items[at];
	size_t len = name_len(n, rule);

	for (size_t i = 0; i < at; i++) {
		const struct doc_node *o = &list->items[i];

		if (o->kind == DOC_STR && name_len(o, rule) == len &&
		    memcmp(o->text, n->text, len) == 0)
			return true;
	}
	return false;
}

/* Return: whether all of it may be kept. */
static bool texts_ok(struct reading *r, const struct doc_node *n, const char *field,
		     const struct list_rule *rule)
{
	bool good = true;

	if (!is(r, n, field, DOC_SEQ, "a list of texts"))
		return false;
	if (n->n > rule->max) {
		problems_add(r->p, n, field, "limit", "more than %zu entries", rule->max);
		return false;
	}
	for (size_t i = 0; i < n->n; i++) {
		if (!rule->check(r, &n->items[i], field))
			good = false;
		else if (rule->unique && twice(n, i, rule))
			good = bad(r, &n->items[i], field, "stands there twice");
	}
	return good;
}

static void read_list(struct reading *r, const struct doc_node *n, const char *field,
		      const struct list_rule *rule, struct agent_list *ret)
{
	struct agent_list l = { .at = { r->file, n->line } };

	if (!texts_ok(r, n, field, rule))
		return;
	l.v = array(r, n->n, sizeof(*l.v));
	for (size_t i = 0; l.v && i < n->n; i++)
		l.v[l.n++] = (struct agent_item){ keep(r, n->items[i].text), n->items[i].line };
	*ret = l;
}

static const char **read_texts(struct reading *r, const struct doc_node *n, const char *field,
			       const struct list_rule *rule, size_t *ret_n)
{
	const char **v;

	*ret_n = 0;
	if (!n || !texts_ok(r, n, field, rule))
		return NULL;
	v = array(r, n->n, sizeof(*v));
	for (size_t i = 0; v && i < n->n; i++)
		v[(*ret_n)++] = keep(r, n->items[i].text);
	return v;
}

/* ---- maps ---- */

static void unknown(struct reading *r, const struct doc_node *key, const char *field,
		    const char *const *known)
{
	size_t before = r->p->n;
	const char *near = NULL;

	for (size_t i = 0; known[i]; i++)
		if (sb_near(key->text, known[i], 2) <= 2)
			near = known[i];
	problems_add(r->p, key, field, "unknown_key", "there is no field \"%.80s\"%s%s", key->text,
		     field[0] ? " in " : "", field);
	problems_near(r->p, before, near);
}

static bool only(struct reading *r, const struct doc_node *map, const char *field,
		 const char *const *known)
{
	bool good = true;

	for (size_t i = 0; i < map->n; i++) {
		size_t k = 0;

		while (known[k] && strcmp(known[k], map->keys[i].text) != 0)
			k++;
		if (!known[k]) {
			unknown(r, &map->keys[i], field, known);
			good = false;
		}
	}
	return good;
}

static const struct doc_node *need(struct reading *r, const struct doc_node *map, const char *key,
				   const char *field)
{
	const struct doc_node *n = doc_get(map, key);

	if (!n)
		problems_add(r->p, map, field, "missing_key", "\"%s\" is missing", key);
	return n;
}

static bool read_bool(struct reading *r, const struct doc_node *map, const char *key,
		      const char *field)
{
	const struct doc_node *n = doc_get(map, key);

	return n && is(r, n, field, DOC_BOOL, "true or false") && n->boolean;
}

static bool list_ok(struct reading *r, const struct doc_node *n, const char *field, size_t max)
{
	if (!is(r, n, field, DOC_SEQ, "a list"))
		return false;
	if (n->n <= max)
		return true;
	problems_add(r->p, n, field, "limit", "more than %zu entries", max);
	return false;
}

static void read_mounts(struct reading *r, const struct doc_node *n)
{
	static const char *const known[] = { "hostPath", "containerPath", "readOnly", NULL };
	struct agent_mount *v;
	size_t count = 0;

	if (!list_ok(r, n, "mounts", 16))
		return;
	v = array(r, n->n, sizeof(*v));
	for (size_t i = 0; v && i < n->n; i++) {
		const struct doc_node *m = &n->items[i];
		const struct doc_node *host;
		const struct doc_node *guest;
		bool good = is(r, m, "mounts", DOC_MAP, "a map of hostPath and containerPath");

		if (!good)
			continue;
		good = only(r, m, "mounts", known);
		host = need(r, m, "hostPath", "mounts");
		guest = need(r, m, "containerPath", "mounts");
		good = host && path_text(r, host, "mounts.hostPath") && good;
		good = guest && path_text(r, guest, "mounts.containerPath") && good;
		if (good)
			v[count++] = (struct agent_mount){ keep(r, host->text), keep(r, guest->text),
							   read_bool(r, m, "readOnly", "mounts.readOnly"),
							   m->line };
	}
	r->a->mounts = v;
	r->a->n_mounts = count;
	r->a->mounts_at = (struct agent_place){ r->file, n->line };
}

static void read_setting(struct reading *r, const struct doc_node *n, struct agent_settings *s)
{
	static const char *const known[] = { "path",	   "to",      "mode",
					     "credentials", "exclude", "jsonKeys", NULL };
	static const struct list_rule excludes = { exclude_text, 256, true };
	static const struct list_rule keys = { any_text, 256, true };
	const struct doc_node *path = n;
	const struct doc_node *to;
	const struct doc_node *mode;

	s->line = n->line;
	if (n->kind == DOC_STR) {
		if (home_path(r, n, "settings"))
			s->path = s->to = keep(r, n->text);
		return;
	}
	if (!is(r, n, "settings", DOC_MAP, "a path, or a map with path") ||
	    !only(r, n, "settings", known))
		return;
	path = need(r, n, "path", "settings");
	to = doc_get(n, "to");
	mode = doc_get(n, "mode");
	if (path && home_path(r, path, "settings.path"))
		s->path = s->to = keep(r, path->text);
	if (to && home_path(r, to, "settings.to"))
		s->to = keep(r, to->text);
	if (mode && is(r, mode, "settings.mode", DOC_STR, "copy or mount")) {
		s->live = strcmp(mode->text, "mount") == 0;
		if (!s->live && strcmp(mode->text, "copy") != 0)
			(void)bad(r, mode, "settings.mode", "must be copy or mount");
	}
	s->credentials = read_bool(r, n, "credentials", "settings.credentials");
	s->exclude = read_texts(r, doc_get(n, "exclude"), "settings.exclude", &excludes,
				&s->n_exclude);
	s->json_keys = read_texts(r, doc_get(n, "jsonKeys"), "settings.jsonKeys", &keys,
				  &s->n_json_keys);
	if (s->live && (s->n_exclude > 0 || s->n_json_keys > 0))
		(void)bad(r, n, "settings", "a live mount cannot leave anything out: exclude and "
			  "jsonKeys go with mode copy");
}

static void read_settings(struct reading *r, const struct doc_node *n)
{
	struct agent_settings *v;

	if (!list_ok(r, n, "settings", 16))
		return;
	v = array(r, n->n, sizeof(*v));
	for (size_t i = 0; v && i < n->n; i++)
		read_setting(r, &n->items[i], &v[i]);
	r->a->settings = v;
	r->a->n_settings = v ? n->n : 0;
	r->a->settings_at = (struct agent_place){ r->file, n->line };
}

static void read_secrets(struct reading *r, const struct doc_node *n)
{
	static const char *const known[] = { "name", "hosts", NULL };
	static const struct list_rule hosts = { host_text, 64, true };
	struct agent_secret *v;

	if (!list_ok(r, n, "secrets", 32))
		return;
	v = array(r, n->n, sizeof(*v));
	for (size_t i = 0; v && i < n->n; i++) {
		const struct doc_node *m = &n->items[i];
		const struct doc_node *name;
		const struct doc_node *list;

		v[i].line = m->line;
		if (!is(r, m, "secrets", DOC_MAP, "a map of name and hosts") ||
		    !only(r, m, "secrets", known))
			continue;
		name = need(r, m, "name", "secrets");
		list = need(r, m, "hosts", "secrets");
		if (name && env_text(r, name, "secrets.name") && strchr(name->text, '='))
			(void)bad(r, name, "secrets.name", "the name of a variable alone");
		v[i].name = name && name->kind == DOC_STR ? keep(r, name->text) : "";
		v[i].hosts = read_texts(r, list, "secrets.hosts", &hosts, &v[i].n_hosts);
		if (list && list->kind == DOC_SEQ && list->n == 0)
			(void)bad(r, list, "secrets.hosts", "a secret needs a host that it belongs to");
	}
	r->a->secrets = v;
	r->a->n_secrets = v ? n->n : 0;
	r->a->secrets_at = (struct agent_place){ r->file, n->line };
}

/* ---- the whole ---- */

static void read_text(struct reading *r, const struct doc_node *n, const char *field,
		      struct agent_text *ret)
{
	bool good = ret == &r->a->image ? image_text(r, n, field) : text_ok(r, n, field, 128, false);

	if (good)
		*ret = (struct agent_text){ keep(r, n->text), { r->file, n->line } };
}

static void read_field(struct reading *r, const char *key, const struct doc_node *n)
{
	struct agent *a = r->a;
	const struct {
		const char *name;
		struct agent_list *list;
		struct list_rule rule;
	} lists[] = {
		{ "installCommands", &a->install, { any_text, 64, false } },
		{ "launchCommand", &a->launch, { any_text, 256, false } },
		{ "environmentVariables", &a->env, { env_text, 128, true } },
		{ "allowedHosts", &a->hosts, { host_text, 256, true } },
		{ "healthCheck", &a->health, { any_text, 256, false } },
		{ "caches", &a->caches, { home_path, 16, true } },
		{ "packageGroups", &a->groups, { host_text, 16, true } },
		{ "systemPackages", &a->packages, { package_text, 128, true } },
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(lists); i++)
		if (strcmp(key, lists[i].name) == 0)
			read_list(r, n, key, &lists[i].rule, lists[i].list);
	if (strcmp(key, "launchCommand") == 0 && n->kind == DOC_SEQ && n->n == 0)
		(void)bad(r, n, key, "names no program");
	if (strcmp(key, "displayName") == 0)
		read_text(r, n, key, &a->display);
	else if (strcmp(key, "baseImage") == 0)
		read_text(r, n, key, &a->image);
	else if (strcmp(key, "mounts") == 0)
		read_mounts(r, n);
	else if (strcmp(key, "settings") == 0)
		read_settings(r, n);
	else if (strcmp(key, "secrets") == 0)
		read_secrets(r, n);
}

const char *const agent_fields[] = {
	"displayName", "baseImage", "installCommands", "launchCommand", "environmentVariables",
	"mounts", "allowedHosts", "healthCheck", "settings", "secrets", "caches", "packageGroups",
	"systemPackages", NULL
};

static void read_fields(struct reading *r, const struct doc_node *root)
{
	(void)only(r, root, "", agent_fields);
	/* commands of one's own know what they need: definitions of the earlier tool have these alone */
	for (size_t i = 0; i < root->n; i++)
		if (strcmp(root->keys[i].text, "installCommands") == 0)
			r->a->packages = (struct agent_list){ 0 };
	for (size_t i = 0; i < root->n; i++)
		read_field(r, root->keys[i].text, &root->items[i]);
}

int agent_parse(const char *bytes, size_t len, const char *file, struct agent *into,
		struct problems *p)
{
	struct reading r = { .a = into, .p = p };
	struct doc_node whole = { .file = file };
	size_t before = p->n + p->dropped;
	const struct doc_node *root;
	struct doc *d = NULL;
	int k;

	if (len > AGENT_MAX_BYTES) {
		problems_add(p, &whole, "", "limit", "more than %u KiB", AGENT_MAX_BYTES >> 10);
		return -EBADMSG;
	}
	r.file = keep(&r, file);
	k = r.oom ? -ENOMEM : doc_load(bytes, len, DOC_JSON, file, &d, p);
	if (k < 0)
		return k;
	root = doc_root(d);
	if (!root)
		problems_add(p, &whole, "", "wrong_type", "must be one JSON object");
	else if (is(&r, root, "", DOC_MAP, "one JSON object"))
		read_fields(&r, root);
	(void)doc_free(d);
	problems_excerpts(p, before < p->n ? before : p->n, file, bytes, len);
	if (r.oom)
		return -ENOMEM;
	return p->n + p->dropped > before ? -EBADMSG : 0;
}

int agent_complete(const struct agent *a, const char *file, struct problems *p)
{
	const struct {
		const char *name;
		bool there;
	} required[] = {
		{ "displayName", a->display.text != NULL },
		{ "baseImage", a->image.text != NULL },
		{ "installCommands", a->install.at.file != NULL },
		{ "launchCommand", a->launch.n > 0 },
	};
	struct doc_node whole = { .file = file };
	int r = 0;

	for (size_t i = 0; i < SB_ARRAY_LEN(required); i++) {
		if (required[i].there)
			continue;
		problems_add(p, &whole, required[i].name, "missing_key",
			     "a new agent needs \"%s\"", required[i].name);
		r = -EBADMSG;
	}
	return r;
}

struct agent *agent_free(struct agent *a)
{
	if (a)
		arena_done(&a->arena);
	free(a);
	return NULL;
}
