#ifndef SB_HOST_CLI_VERBS_H
#define SB_HOST_CLI_VERBS_H
/* The two forms of a command's words: options and then operands; and "sendbox NOUN VERB WORD", with
 * options anywhere. */
#include "options.h"

struct verb { /* one command's options and operands, parsed */
	const char *usage;               /* "sendbox rm [options] NAME..." */
	const char *what;                /* one sentence */
	const struct cli_option *table;
	size_t n_table;
	/* Take one option. Return: 0; -EINVAL with text. */
	int (*take)(void *arg, int id, const char *value, struct sb_err *err);
	bool program; /* words of a program follow: options stop at the first operand */
};
#define VERB_HELP 1 /* id of --help in every table */
#define VERB_DONE 1
/*
 * verb_options - the options of @argv; @ret_at: index of the first operand
 * Return: 0; VERB_DONE: the help was printed; -EINVAL, told.
 */
SB_MUST_CHECK int verb_options(const struct verb *v, void *arg, int argc, char **argv, int *ret_at);

struct verb_words { /* options and at most @max words, in any order */
	const struct cli_option *table;
	size_t n_table;
	/* Take one option. Return: 0; -EINVAL with text. */
	int (*take)(void *arg, int id, const char *value, struct sb_err *err);
	size_t max;
	const char *noun; /* "word": for the message about one too many */
};
/* @words: the first of them that are there are set; borrowed. Return: how many; -EINVAL with text. */
SB_MUST_CHECK int verb_words(const struct verb_words *v, void *arg, int argc, char **argv,
			     const char **words, struct sb_err *err);

#endif
