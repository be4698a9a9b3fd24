#ifndef SB_HOST_CLI_CFG_OPTIONS_H
#define SB_HOST_CLI_CFG_OPTIONS_H
/*
 * The command line as the innermost layer of the configuration: every option that a file could say
 * too becomes a value of a small YAML text with one value a line, so that the line of a value tells
 * the option. The bytes of a value as they were given stand beside: a path or the value of a
 * variable need not be UTF-8.
 */
#include "config/config.h"
#include "options.h"

#define CFG_OPTIONS_FILE "command line" /* as what the layer stands in messages */

struct cfg_options_line {
	const char *option; /* "--memory"; NULL = none */
	char *raw;          /* as given; NULL = none */
};
struct cfg_options {
	char *text; /* the layer; NULL = no option of that kind was given */
	size_t len;
	struct cfg_options_line *lines; /* [0] is line 1 */
	size_t n_lines;
};

/* Return: 0; -EINVAL with text (an empty item of a list); -ENOMEM. */
SB_MUST_CHECK int cfg_options_make(const struct run_options *o, struct cfg_options *ret,
				   struct sb_err *err);
void cfg_options_done(struct cfg_options *c);

/* "--option" or "FILE:LINE" or "default". @c may be NULL. */
void cfg_options_where(const struct cfg_options *c, const struct cfg_value *v, char *out,
		       size_t cap);
/* The string as it was given. */
const char *cfg_options_raw(const struct cfg_options *c, const struct cfg_value *v);
/* Problems of the layer name the option instead of a line. */
void cfg_options_blame(const struct cfg_options *c, struct problems *p);

/* Whether a variable can be in a file: letters, digits and "_", no digit first. */
bool cfg_options_env_name(const char *s, size_t len);

#endif
