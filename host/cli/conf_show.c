#include "conf_show.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "net_text.h"

static void add_text(struct sb_text *o, const char *s)
{
	size_t n = strlen(s);
	sb_autofree char *safe = malloc(n * 4 + 1);

	if (!safe)
		return;
	net_text_escape(s, n, safe, n * 4 + 1);
	sb_text_add(o, "%s", safe);
}

static bool is_type(const struct cfg_value *v, enum cfg_type type)
{
	return v->row && v->row->type == type;
}

static void add_integer(struct sb_text *o, const struct cfg_value *v)
{
	int64_t n = v->integer;

	if (is_type(v, CFG_T_SIZE))
		sb_text_add(o, n % (1 << 20) == 0 ? "%lldm" : "%lldb",
		    (long long)(n % (1 << 20) == 0 ? n >> 20 : n));
	else if (is_type(v, CFG_T_DURATION))
		sb_text_add(o, n % 1000 == 0 ? "%llds" : "%lldms",
		    (long long)(n % 1000 == 0 ? n / 1000 : n));
	else
		sb_text_add(o, "%lld", (long long)n);
}

static void add_value(struct sb_text *o, const struct cfg_value *v)
{
	switch (v->kind) {
	case DOC_NULL:
		sb_text_add(o, "null");
		break;
	case DOC_BOOL:
		sb_text_add(o, v->boolean ? "true" : "false");
		break;
	case DOC_INT:
		add_integer(o, v);
		break;
	case DOC_FLOAT:
	case DOC_STR:
		add_text(o, v->text);
		break;
	case DOC_SEQ:
	case DOC_MAP:
	default:
		sb_text_add(o, v->kind == DOC_SEQ ? "[" : "{");
		for (size_t i = 0; i < v->n; i++) {
			if (i > 0)
				sb_text_add(o, ", ");
			if (v->kind == DOC_MAP) {
				add_text(o, v->keys[i]);
				sb_text_add(o, ": ");
			}
			add_value(o, &v->items[i]);
		}
		sb_text_add(o, v->kind == DOC_SEQ ? "]" : "}");
		break;
	}
}

void conf_value_text(const struct cfg_value *v, char *out, size_t cap)
{
	struct sb_text o = { .p = out, .cap = cap };

	out[0] = '\0';
	if (!v) {
		sb_text_add(&o, "(not set)");
		return;
	}
	add_value(&o, v);
	if (o.len + 1 == cap && cap > 4)
		memcpy(out + cap - 4, "...", 4);
}

json_t *conf_value_json(const struct cfg_value *v)
{
	json_t *j;

	if (!v)
		return json_null();
	switch (v->kind) {
	case DOC_BOOL:
		return json_boolean(v->boolean);
	case DOC_INT:
		return json_integer(v->integer);
	case DOC_STR:
	case DOC_FLOAT:
		return json_string(v->text);
	case DOC_SEQ:
		j = json_array();
		for (size_t i = 0; j && i < v->n; i++)
			(void)json_array_append_new(j, conf_value_json(&v->items[i]));
		return j;
	case DOC_MAP:
		j = json_object();
		for (size_t i = 0; j && i < v->n; i++)
			(void)json_object_set_new(j, v->keys[i], conf_value_json(&v->items[i]));
		return j;
	case DOC_NULL:
	default:
		return json_null();
	}
}

json_t *conf_origin_json(const struct cfg_value *v)
{
	if (!v)
		return json_null();
	return json_pack("{s:s,s:s,s:I}", "layer", cfg_layer_name(v->origin.layer), "file",
			 v->origin.file ? v->origin.file : "", "line", (json_int_t)v->origin.line);
}

void conf_each_key(const struct cfg *c,
		   void (*fn)(void *arg, const struct cfg_key *key, const struct cfg_value *v),
		   void *arg)
{
	const char *last = "";

	for (size_t i = 0; i < cfg_n_keys; i++) {
		const struct cfg_key *k = &cfg_keys[i];

		if (k->type == CFG_T_MAP || strchr(k->path, '[') || strchr(k->path, '*') ||
		    strcmp(k->path, last) == 0)
			continue;
		last = k->path;
		fn(arg, k, cfg_get(c, k->path));
	}
}
