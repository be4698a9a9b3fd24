#ifndef SB_HOST_CLI_REPORT_H
#define SB_HOST_CLI_REPORT_H
/*
 * What a session did, put together from its row, its audit records and its snapshots: one JSON document
 * (docs/records.md has its keys), which is also what the texts are made from. Every list is bounded, and
 * says how much more there was.
 */
#include <jansson.h>
#include <stdio.h>

#include "dirs.h"
#include "state/session_record.h"
#include "store/audit.h"

#define REPORT_VERSION 1
#define REPORT_LIST_MAX 500

struct report;
SB_MUST_CHECK int report_new(struct report **ret);
struct report *report_free(struct report *r);
/* One record of the session, in the order of the log. */
void report_add(struct report *r, const struct sb_audit_record *rec);
/* One change of a file, as `sendbox diff --json` prints it; borrowed. */
void report_add_file(struct report *r, json_t *change);
/* Why there is nothing about files; borrowed. */
void report_no_files(struct report *r, const char *why);
/* The last signed head, or NULL. */
void report_head(struct report *r, const char *head);
/* Nothing is known of the log; the reason. */
void report_no_audit(struct report *r, const char *why);
/* The document, of session @s. Return: NULL without memory. */
json_t *report_json(struct report *r, const struct session_record *s);

/* report_text.c: @doc as text, or as Markdown. All texts are escaped for a terminal. */
void report_text(FILE *to, const json_t *doc);
void report_markdown(FILE *to, const json_t *doc);

/* report_read.c: fill a report of @s from the log and the snapshots. What cannot be read is told in the
 * document, not an error. @redact: without what looks like a secret. Return: 0; -ENOMEM; -errno with text. */
SB_MUST_CHECK int report_read(const struct cli_dirs *d, const struct session_record *s, bool redact,
			      json_t **ret, struct sb_err *err);

#endif
