/* <config>/config.json in the earlier tool's form: what it says is the user's, just outside of
 * config.yaml. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "agent_i.h"

struct reading {
	struct agent_layer *l;
	struct problems *p;
	const char *file;
	const char *home;
	char *data_dir;
};

static bool is(struct reading *r, const struct doc_node *n, const char *key, enum doc_kind kind,
	       const char *what)
{
	if (n->kind == kind && (kind != DOC_STR || n->len > 0))
		return true;
	problems_add(r->p, n, key, "wrong_type", "must be %s", what);
	return false;
}

/* One more document whose value stands on @n's line. */
static int add(struct reading *r, const struct doc_node *n, const char *head, const char *value,
	       const char *tail)
{
	struct agent_layer *l = r->l;
	size_t len = n->line + strlen(head) + strlen(value) + strlen(tail);
	char *text = arena_alloc(&l->arena, len + 1);
	char *at = text;

	if (!text)
		return -ENOMEM;
	for (uint32_t i = 1; i < n->line; i++)
		*at++ = '\n';
	for (size_t i = 0; i < 3; i++) {
		const char *s = i == 0 ? head : i == 1 ? value : tail;

		memcpy(at, s, strlen(s) + 1);
		at += strlen(s);
	}
	l->v[l->n++] = (struct cfg_source){ CFG_USER, r->file, text, (size_t)(at - text) };
	return 0;
}

/* A text that can stand in JSON as it is. */
static bool plain(struct reading *r, const struct doc_node *n, const char *key)
{
	if (!is(r, n, key, DOC_STR, "a text"))
		return false;
	for (const char *c = n->text; *c; c++) {
		if ((unsigned char)*c >= 0x20 && *c != 0x7f && *c != '"' && *c != '\\')
			continue;
		problems_add(r->p, n, key, "bad_value", "holds a quote, a backslash or a control "
			     "character");
		return false;
	}
	return true;
}

static const char *path_of(struct reading *r, const struct doc_node *n, const char *key)
{
	if (!plain(r, n, key))
		return NULL;
	if (n->text[0] != '/' && strncmp(n->text, "~/", 2) != 0) {
		problems_add(r->p, n, key, "bad_value", "must be an absolute path, or one that begins "
			     "with ~/");
		return NULL;
	}
	return agent_path(&r->l->arena, n->text, r->home, false);
}

static int one(struct reading *r, const char *key, const struct doc_node *n)
{
	const char *path;
	char number[32];

	if (strcmp(key, "kernel") == 0) {
		path = path_of(r, n, key);
		return path ? add(r, n, "{\"runtime\":{\"kernel\":\"", path, "\"}}") : 0;
	}
	if (strcmp(key, "dataDir") == 0) {
		path = path_of(r, n, key);
		r->data_dir = path ? strdup(path) : NULL;
		return path && !r->data_dir ? -ENOMEM : 0;
	}
	if (strcmp(key, "defaultCPUs") == 0) {
		if (!is(r, n, key, DOC_INT, "a whole number"))
			return 0;
		(void)snprintf(number, sizeof(number), "%lld", (long long)n->integer);
		return add(r, n, "{\"resources\":{\"cpus\":", number, "}}");
	}
	if (strcmp(key, "defaultMemory") == 0)
		return plain(r, n, key) ? add(r, n, "{\"resources\":{\"memory_mb\":\"", n->text, "\"}}")
					: 0;
	if (strcmp(key, "initfsReference") == 0) /* the guest is made of sendbox itself */
		return 0;
	problems_add(r->p, n, key, "unknown_key", "there is no key \"%.80s\": dataDir, kernel, "
		     "defaultCPUs, defaultMemory, initfsReference", key);
	return 0;
}

int global_parse(const char *bytes, size_t len, const char *file, const char *home,
		 struct agent_layer *ret, char **ret_data_dir, struct problems *p)
{
	struct agent_layer l = { .v = calloc(4, sizeof(*l.v)) };
	struct reading r = { .l = &l, .p = p, .home = home };
	size_t before = p->n + p->dropped;
	size_t first = p->n;
	const struct doc_node *root;
	struct doc *d = NULL;
	int k = l.v ? doc_load(bytes, len, DOC_JSON, file, &d, p) : -ENOMEM;

	r.file = arena_text(&l.arena, file, strlen(file));
	if (k == 0 && !r.file)
		k = -ENOMEM;
	root = k == 0 ? doc_root(d) : NULL;
	if (root && is(&r, root, "", DOC_MAP, "one JSON object"))
		for (size_t i = 0; k == 0 && i < root->n; i++)
			k = one(&r, root->keys[i].text, &root->items[i]);
	(void)doc_free(d);
	problems_excerpts(p, first, file, bytes, len);
	if (k == 0 && p->n + p->dropped > before)
		k = -EBADMSG;
	if (k < 0) {
		agent_layer_done(&l);
		free(r.data_dir);
		return k;
	}
	*ret = l;
	*ret_data_dir = r.data_dir;
	return 0;
}

int global_load(const char *config_dir, const char *home, struct agent_layer *ret,
		char **ret_data_dir, struct problems *p)
{
	sb_autofree char *bytes = NULL;
	char path[PATH_MAX];
	size_t len = 0;
	int r;

	*ret = (struct agent_layer){ 0 };
	*ret_data_dir = NULL;
	if (snprintf(path, sizeof(path), "%s/config.json", config_dir) >= (int)sizeof(path))
		return 0;
	r = agent_read_file(path, &bytes, &len, p);
	if (r != 0)
		return r < 0 ? r : 0;
	return global_parse(bytes, len, path, home, ret, ret_data_dir, p);
}
