#ifndef SB_HOST_CONFIG_DOC_I_H
#define SB_HOST_CONFIG_DOC_I_H
/* Inside of the document: what the YAML and the JSON reader share. */
#include <stdarg.h>

#include "arena.h"
#include "doc.h"
#include "text.h"

struct doc {
	struct arena arena;
	const char *file; /* in the arena */
	struct doc_node *root;
};

struct problem_at {
	const char *file;
	uint32_t line;
	uint32_t col;
};
void problems_addv(struct problems *p, const struct problem_at *at, const char *key,
		   const char *code, const char *fmt, va_list ap) __attribute__((__format__(__printf__, 5, 0)));
/* "Did you mean" of the last problem, if one was added since there were @before. */
void problems_near(struct problems *p, size_t before, const char *near);
/* Fill in the source line of every problem of @file from number @from on. */
void problems_excerpts(struct problems *p, size_t from, const char *file, const char *bytes,
		       size_t len);

/*
 * Makes the tree from events. Children wait on one stack until their container ends, so that each
 * list and map is one array. Depth is bounded, nothing recurses.
 */
struct doc_frame {
	struct doc_node node; /* the container itself */
	size_t first;         /* of its children on the stack */
};
struct doc_build {
	struct doc *d;
	struct problems *p;
	struct doc_node *stack; /* owned */
	size_t n;
	size_t cap;
	size_t total; /* nodes so far */
	struct doc_frame frames[DOC_MAX_DEPTH];
	size_t depth;
};
/* All: 0; -EBADMSG: a limit, told, reading must stop; -ENOMEM. */
SB_MUST_CHECK int doc_build_put(struct doc_build *b, const struct doc_node *scalar);
SB_MUST_CHECK int doc_build_open(struct doc_build *b, enum doc_kind kind, uint32_t line,
				 uint32_t col);
SB_MUST_CHECK int doc_build_close(struct doc_build *b);
/* Whether the next node is a key of a map. */
bool doc_build_in_key(const struct doc_build *b);

/* Return: 0 (also when there are problems that leave a tree); -EBADMSG; -ENOMEM. */
SB_MUST_CHECK int doc_read_yaml(struct doc_build *b, const char *bytes, size_t len);
/* For tests and fuzz targets: libfyaml in this process, where failures can be made and crashes seen. */
extern bool doc_yaml_inside;
SB_MUST_CHECK int doc_read_json(struct doc_build *b, const char *bytes, size_t len);

/* As doc_load, but returns 0 with the tree when there are problems that leave one. */
SB_MUST_CHECK int doc_load_partial(const char *bytes, size_t len, enum doc_format format,
				   const char *file, struct doc **ret, struct problems *problems);

/* What a plain scalar means in YAML's core schema: sets kind and value from text. */
void doc_resolve_plain(struct doc_node *n);

#endif
