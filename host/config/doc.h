#ifndef SB_HOST_CONFIG_DOC_H
#define SB_HOST_CONFIG_DOC_H
/*
 * One YAML or JSON document as a tree that remembers where each value stands. Pure: bytes in.
 * Refused with its place: what the YAML or JSON grammar refuses, several documents, anchors,
 * aliases, tags, duplicate keys, keys that are no plain strings, bytes that are no UTF-8, NUL, more
 * than the limits. All problems that can be told apart are reported, not the first alone.
 */
#include <stdint.h>

#include "base/err.h"

#define DOC_MAX_BYTES (4U << 20)
#define DOC_MAX_DEPTH 32
#define DOC_MAX_NODES 200000U
#define DOC_MAX_SCALAR (1U << 20) /* bytes */

#define DOC_MAX_BLANKS 256U /* YAML: blanks and line breaks in a row; bytes of a % line */

enum doc_kind { DOC_NULL = 0, DOC_BOOL, DOC_INT, DOC_FLOAT, DOC_STR, DOC_SEQ, DOC_MAP };
struct doc_node {
	enum doc_kind kind;
	uint32_t line; /* from 1 */
	uint32_t col;  /* from 1, in characters */
	const char *file; /* borrowed from the document: as given to doc_load */
	bool boolean;
	int64_t integer;
	double number;
	const char *text;   /* scalars: as written after unescaping, NUL-terminated */
	size_t len;
	/* SEQ, MAP */
	struct doc_node *items; /* n values */
	struct doc_node *keys;  /* MAP: n strings */
	size_t n;
};

enum doc_format { DOC_YAML = 0, DOC_JSON = 1 };

/* Problems, for people and as data. */
struct problem {
	char file[512];
	uint32_t line; /* 0 = the whole file, or none */
	uint32_t col;
	char key[256];      /* dotted path, "" = none */
	char code[32];      /* "syntax", "unknown_key", "duplicate_key", "wrong_type", "bad_value",
			     * "missing_key", "not_available", "locked", "limit", "io", "untrusted" */
	char message[600];  /* one sentence, with the offending text, and what to do */
	char near[64];      /* "did you mean"; "" = none */
	char excerpt[160];  /* the offending source line, escaped; "" = none */
};
struct problems {
	struct problem *v;
	size_t n;
	size_t dropped; /* more than PROBLEMS_MAX */
};
#define PROBLEMS_MAX 100
void problems_done(struct problems *p);
/* printf-style message; @at may be NULL. Never fails: without memory it counts in dropped. */
void problems_add(struct problems *p, const struct doc_node *at, const char *key, const char *code,
		  const char *fmt, ...) SB_PRINTF(5, 6);

struct doc;
/*
 * doc_load - parse
 * @file: for messages, copied
 * @ret: set on 0; doc_free
 * Return: 0; -EBADMSG with at least one entry in @problems; -ENOMEM.
 */
SB_MUST_CHECK int doc_load(const char *bytes, size_t len, enum doc_format format, const char *file,
			   struct doc **ret, struct problems *problems);
struct doc *doc_free(struct doc *d);
/* NULL for an empty document. */
const struct doc_node *doc_root(const struct doc *d);
const struct doc_node *doc_get(const struct doc_node *map, const char *key);

#endif
