/*
 * A definition laid over a built-in one. What is accepted, written as JSON, is accepted again and
 * says the same; the layer that is made of it is a configuration whose every value stands on a line
 * of the definition.
 */
#include <errno.h>
#include <string.h>

#include "agent/agent.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const char *no_env(const char *name)
{
	return name[0] == 'A' ? "x" : NULL;
}

static bool is_there(void *arg, const char *path)
{
	(void)arg;
	return path[0] != '\0';
}

static void places(const struct cfg_value *v, uint32_t lines)
{
	if (v->origin.layer == CFG_AGENT)
		sb_assert(v->origin.line >= 1 && v->origin.line <= lines);
	for (size_t i = 0; i < v->n; i++)
		places(&v->items[i], lines);
}

static void layer(const struct agent *a, uint32_t lines)
{
	const struct agent_use use = { .home = "/home/h", .guest_home = "/home/user",
				       .variable = no_env, .exists = is_there };
	static const char *const paths[] = { "env", "mounts", "policy.network.allowed_domains" };
	struct problems p = { 0 };
	struct agent_layer l = { 0 };
	struct cfg *c = NULL;

	sb_assert(agent_layer_make(a, &use, &l) == 0);
	if (cfg_compile(l.v, l.n, &c, &p) == 0)
		for (size_t i = 0; i < SB_ARRAY_LEN(paths); i++)
			if (cfg_get(c, paths[i]))
				places(cfg_get(c, paths[i]), lines);
	for (size_t i = 0; i < p.n; i++) /* never that what was written is no JSON */
		sb_assert(strcmp(p.v[i].code, "syntax") != 0 &&
			  strcmp(p.v[i].code, "duplicate_key") != 0);
	problems_done(&p);
	c = cfg_free(c);
	agent_layer_done(&l);
}

/* The same bytes as the user's config.json: what is accepted makes documents that are JSON. */
static void global(const char *text, size_t len)
{
	struct problems p = { 0 };
	struct agent_layer l = { 0 };
	struct cfg *c = NULL;
	char *dir = NULL;

	if (global_parse(text, len, "g.json", "/home/h", &l, &dir, &p) == 0 &&
	    cfg_compile(l.v, l.n, &c, &p) < 0)
		for (size_t i = 0; i < p.n; i++)
			sb_assert(strcmp(p.v[i].code, "syntax") != 0);
	c = cfg_free(c);
	agent_layer_done(&l);
	problems_done(&p);
	free(dir);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct agent *a = calloc(1, sizeof(*a));
	struct agent *b = calloc(1, sizeof(*b));
	struct problems p = { 0 };
	char *first = NULL;
	char *second = NULL;
	uint32_t lines = 1;
	int r;

	sb_assert(a && b);
	for (size_t i = 0; i < len; i++) /* \r ends a line, too */
		lines += data[i] == '\n' || data[i] == '\r';
	r = agent_parse((const char *)data, len, "x.json", a, &p);
	sb_assert(r == 0 || (r == -EBADMSG && p.n > 0));
	for (size_t i = 0; i < p.n; i++)
		sb_assert(p.v[i].message[0] && strcmp(p.v[i].file, "x.json") == 0);
	problems_done(&p);
	if (r == 0) {
		sb_assert(agent_json(a, &first) == 0);
		sb_assert(agent_parse(first, strlen(first), "y.json", b, &p) == 0);
		sb_assert(agent_json(b, &second) == 0 && strcmp(first, second) == 0);
		problems_done(&p);
		layer(a, lines);
	}
	global((const char *)data, len);
	free(first);
	free(second);
	(void)agent_free(a);
	(void)agent_free(b);
	return 0;
}
