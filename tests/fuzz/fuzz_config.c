/*
 * A configuration: two layers, split at the first 0xff byte. What is accepted, written as canonical
 * JSON and loaded again, is the same; a problem has a line; nothing that an outer file denies is
 * gone; a migrated file loads.
 */
#include "config/config.h"
#include "config/doc_i.h"
#include "doc_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void round_trip(const struct cfg *c)
{
	struct problems p = { 0 };
	struct cfg *again = NULL;
	struct cfg_source s = { CFG_PROJECT, "/p/x.json", NULL, 0 };
	char *first = NULL;
	char *second = NULL;
	size_t n = 0;

	if (cfg_json(c, &first, &s.len) < 0)
		return;
	s.bytes = first;
	sb_assert(cfg_compile(&s, 1, &again, &p) == 0);
	sb_assert(cfg_json(again, &second, &n) == 0);
	sb_assert(n == s.len && memcmp(first, second, n) == 0);
	again = cfg_free(again);
	free(first);
	free(second);
}

static void denied(const struct cfg *outer, const struct cfg *both, const char *path)
{
	const struct cfg_value *v;

	for (size_t i = 0; (v = cfg_item(outer, path, i)) != NULL; i++) {
		const struct cfg_value *w;
		size_t k = 0;

		while ((w = cfg_item(both, path, k)) != NULL && strcmp(v->text, w->text) != 0)
			k++;
		sb_assert(w);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const char *text = (const char *)data;
	const char *cut = len > 0 ? memchr(text, 0xff, len) : NULL;
	size_t first = cut ? (size_t)(cut - text) : len;
	const struct cfg_source s[] = {
		{ CFG_USER, "/u/config.yaml", text, first },
		{ CFG_PROJECT, "/p/.sendbox.yaml", cut ? cut + 1 : "", cut ? len - first - 1 : 0 },
	};
	struct problems p = { 0 };
	struct cfg *outer = NULL;
	struct cfg *both = NULL;
	char *text_out = NULL;
	size_t text_len = 0;
	size_t changes = 0;
	int r;

	doc_yaml_inside = true;
	if (cfg_compile(s, 1, &outer, &p) == 0)
		round_trip(outer);
	doc_check_problems(&p);
	problems_done(&p);
	r = cfg_compile(s, 2, &both, &p);
	sb_assert((r == 0) == (both != NULL) && (r != 0 || outer));
	if (both) {
		round_trip(both);
		denied(outer, both, "policy.network.blocked_domains");
		denied(outer, both, "policy.boundaries.syscalls.additional_denylist");
		denied(outer, both, "guarded_paths.hidden");
	}
	doc_check_problems(&p);
	problems_done(&p);
	if (cfg_migrate(s[0].bytes, s[0].len, "/p/old.yaml", &text_out, &text_len, &changes, &p) == 0) {
		struct cfg_source again = { CFG_PROJECT, "/p/old.yaml", text_out, text_len };
		struct cfg *c = NULL;

		sb_assert(cfg_compile(&again, 1, &c, &p) == 0);
		c = cfg_free(c);
		free(text_out);
	}
	problems_done(&p);
	outer = cfg_free(outer);
	both = cfg_free(both);
	return 0;
}
