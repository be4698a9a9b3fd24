#ifndef CFGT_H
#define CFGT_H
/* What the tests of the configuration share. */
#include "config/config.h"
#include "t.h"

#define P(i) (p.n > (i) ? &p.v[i] : &(const struct problem){ .line = 0 })

/* libfyaml 0.7.12 loses a buffer of a text that ends in an error; bounded, and not ours. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libfyaml";
}

static inline int load_text(const char *text, enum doc_format f, struct doc **ret, struct problems *p)
{
	return doc_load(text, strlen(text), f, "f", ret, p);
}

/* "LINE:COL code key" of every problem, one a line. */
static inline const char *told(const struct problems *p)
{
	static char out[20000];
	FILE *f = fmemopen(out, sizeof(out), "w");

	out[0] = '\0';
	for (size_t i = 0; f && i < p->n; i++)
		(void)fprintf(f, "%s%u:%u %s%s%s", i > 0 ? "\n" : "", p->v[i].line, p->v[i].col,
			      p->v[i].code, p->v[i].key[0] ? " " : "", p->v[i].key);
	if (f)
		(void)fclose(f);
	return out;
}

/* Compile one project file; NULL when it has problems. */
static inline struct cfg *one(const char *text, struct problems *p)
{
	struct cfg_source s = { CFG_PROJECT, "/p/.sendbox.yaml", text, strlen(text) };
	struct cfg *c = NULL;
	int r = cfg_compile(&s, 1, &c, p);

	CHECK(r == 0 || r == -EBADMSG);
	CHECK((r == 0) == (c != NULL));
	CHECK((r == 0) == (p->n == 0));
	return c;
}

#endif
