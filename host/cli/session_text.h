#ifndef SB_HOST_CLI_SESSION_TEXT_H
#define SB_HOST_CLI_SESSION_TEXT_H
/* A remembered session, for programs and for people. */
#include <jansson.h>
#include <stdio.h>

#include "state/session_record.h"

/* One object; NULL without memory. @redact, of all of these: the command without what looks like a secret. */
json_t *session_text_json(const struct session_record *r, bool redact);
/* The columns of `session ls`; a line of a list. */
void session_text_head(FILE *to);
void session_text_line(FILE *to, const struct session_record *r, bool redact);
/* Everything about one, a line a thing. */
void session_text_show(FILE *to, const struct session_record *r, bool redact);
/* How it ended, as "exit 3", "cancelled", "running". */
void session_text_outcome(const struct session_record *r, char *out, size_t cap);
/* How long it ran, or runs; "-": nobody knows. */
void session_text_duration(const struct session_record *r, char *out, size_t cap);

/*
 * session_text_find - the session that a word of the user's means
 * @word: first digits of an id, or the name of an instance, whose last session is meant; NULL: the last one
 *        of @project
 * Return: 0; -ENOENT; -ENOTUNIQ; -EINVAL; -errno. The text is in @err.
 */
SB_MUST_CHECK int session_text_find(struct state *s, const char *word, const char *project,
				    struct session_record *ret, struct sb_err *err);

#endif
