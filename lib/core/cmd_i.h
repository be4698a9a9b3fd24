#ifndef SB_CORE_CMD_I_H
#define SB_CORE_CMD_I_H
/* Shared by cmd_rule.c, cmd_match.c, cmd_policy.c, cmd_index.c and tests. */
#include "core/cmd_policy.h"

enum sb_cmd_class {
	SB_CMD_LIT = 0, /* the byte itself */
	SB_CMD_ONE,     /* ?: one byte, in a path not "/" */
	SB_CMD_RUN,     /* *: any bytes, in a path not "/" */
	SB_CMD_DEEP,    /* path only, **: any bytes */
	SB_CMD_DIRS,    /* path only, "**" and "/" behind the start or a "/": any folders, or none */
};
/* A word of a pattern, without escapes. */
struct sb_cmd_word {
	const char *text;   /* NUL-terminated */
	const uint8_t *cls; /* enum sb_cmd_class of each byte */
	uint32_t len;
	bool literal; /* SB_CMD_LIT throughout */
	bool deep;    /* the word is "**": any number of words */
};
enum sb_cmd_prog {
	SB_CMD_PROG_ANY = 1,
	SB_CMD_PROG_NAME,
	SB_CMD_PROG_NAME_GLOB,
	SB_CMD_PROG_PATH,
	SB_CMD_PROG_PATH_GLOB,
	SB_CMD_PROG_LOCAL, /* "./": the text is what follows, a path glob or literal */
};
struct sb_cmd_pattern {
	enum sb_cmd_prog kind;
	struct sb_cmd_word prog;
	struct sb_cmd_word word[SB_CMD_MAX_TOKENS]; /* operands in order, then options */
	size_t n_operands;
	size_t n_options; /* any_order only */
	bool any_order;
	bool dashes; /* any_order: the pattern has "--" */
	bool deep;   /* some operand is "**" */
	size_t used; /* bytes of the buffers below */
	char text[SB_CMD_MAX_PATTERN + SB_CMD_MAX_TOKENS];
	uint8_t cls[SB_CMD_MAX_PATTERN + SB_CMD_MAX_TOKENS];
};
/* @ret points into itself: it must not move. Return: 0; -EINVAL with text. */
SB_MUST_CHECK int sb_cmd_pattern_parse(const char *pattern, bool any_order,
				       struct sb_cmd_pattern *ret, struct sb_err *err);

/* The words behind the program of one rule. */
struct sb_cmd_args {
	const struct sb_cmd_word *word;
	uint16_t n_operands;
	uint16_t n_options;
	bool any_order;
	bool dashes;
	bool deep;
};
/* Bounds: time (words of the pattern) x (bytes of @argv), no memory. */
bool sb_cmd_args_match(const struct sb_cmd_args *a, const char *const *argv, size_t argc);
/* Bounds: (bytes of the word) x @len when it has "?", else linear. */
bool sb_cmd_word_match(const struct sb_cmd_word *w, const char *s, size_t len);
bool sb_cmd_path_match(const struct sb_cmd_word *w, const char *path);
/* Whether a word of a command is an option: "-x", "--x", not "-" and not "--". */
static inline bool sb_cmd_is_option(const char *s)
{
	return s[0] == '-' && s[1] != '\0' && !(s[1] == '-' && s[2] == '\0');
}

#endif
