#ifndef SB_HOST_CLI_SNAPS_WORDS_H
#define SB_HOST_CLI_SNAPS_WORDS_H
/* Operands of undo and diff: [SESSION] [PATH]... */
#include "snaps.h"

struct snaps_words {
	const char *session; /* NULL: the last one of the current folder's project */
	char **paths;        /* absolute, normal; owned */
	size_t n;
	struct snaps_of *of; /* its folders; owned */
	size_t n_of;
};
/* A first word of 4 to 32 hex digits is a session, the name of an instance its last one; "./x" is a path. Return: 0; -errno with the text. */
SB_MUST_CHECK int snaps_words(const struct cli_dirs *d, int argc, char **argv, struct snaps_words *ret,
			      struct sb_err *err);
/* The exit status for what was wrong with the words: as everywhere where a session is named. */
int snaps_words_status(int r);
void snaps_words_done(struct snaps_words *w);
/* The paths that lie in folder @i, as --only of @c. @ret: whether any does, or none was given. */
SB_MUST_CHECK int snaps_words_only(const struct snaps_words *w, size_t i, struct snaps_call *c, bool *ret,
				   struct sb_err *err);
/* An absolute, normal path of @word, which need not be there. @ret: malloc'd. */
SB_MUST_CHECK int snaps_absolute(const char *word, char **ret, struct sb_err *err);

#endif
