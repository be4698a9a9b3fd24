#ifndef SB_HOST_CLI_AUDIT_TEXT_H
#define SB_HOST_CLI_AUDIT_TEXT_H
/* Records for people and for other programs, and which of them are wanted. */
#include <jansson.h>

#include "store/audit_read.h"

struct audit_filter {
	const char *session; /* beginning of its id; NULL = any */
	const char *host;    /* of a network record: it or beneath it */
	uint32_t kinds;      /* bits; 0 = any */
	uint32_t verdicts;
	uint64_t since_ns;
	uint64_t until_ns; /* 0 = no end */
	uint64_t from;     /* numbers */
	uint64_t to;       /* before it; 0 = no end */
};
bool audit_wanted(const struct audit_filter *f, const struct sb_audit_record *r);

enum audit_format { AUDIT_TEXT = 0, AUDIT_JSONL, AUDIT_CSV, AUDIT_OCSF };
/* Print one record to stdout. @redact: leave out what looks like a secret. Return: 0; -EIO; -ENOMEM. */
SB_MUST_CHECK int audit_print(enum audit_format f, bool redact, const struct sb_audit_record *r,
			      const struct sb_audit_line *line);
void audit_print_heading(enum audit_format f);
/* UTC, with milliseconds. */
void audit_time(uint64_t ns, char out[32]);
/* Replace the values in @s that look like secrets. @after: the word before it announces one. Return:
 * malloc'd; NULL = no memory. */
char *audit_redact(const char *s, bool after);
/* The same for all texts in @o, at any depth (a document of ours). Return: 0; -ENOMEM. */
SB_MUST_CHECK int audit_redact_json(json_t *o);
/* Whether a word is an option whose value follows as the next word and is a secret. */
bool audit_announces(const char *word);

#endif
