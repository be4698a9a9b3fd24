#ifndef SB_HOST_CLI_PLAN_CONF_H
#define SB_HOST_CLI_PLAN_CONF_H
/*
 * What a plan is made from: the effective configuration, which the options are the innermost layer
 * of, and what only the command line says (the command, the terminal). Every message about a value
 * names the option or FILE:LINE that set it.
 */
#include "cfg_options.h"

#define CONF_PROJECT_FILE ".sendbox.yaml"

struct launch_target;

struct plan_input {
	const struct run_options *opt;
	const struct cfg_loaded *conf;
	const struct cfg_options *line;
	const struct launch_target *target; /* launch.h; NULL = as the configuration says */
	const int *io; /* input, output, errors of the command; NULL = 0, 1 and 2 */
};

/* A value that some layer sets; NULL = nobody but the built-in defaults. */
const struct cfg_value *conf_set(const struct plan_input *in, const char *path);
/* A member of a map, or NULL. */
const struct cfg_value *conf_member(const struct cfg_value *map, const char *key);
int64_t conf_int(const struct plan_input *in, const char *path, int64_t or);
bool conf_bool(const struct plan_input *in, const char *path, bool or);
const char *conf_str(const struct plan_input *in, const char *path, const char *or);

/* "--option", "FILE:LINE" or "default". */
void conf_where(const struct plan_input *in, const struct cfg_value *v, char *out, size_t cap);
/* "--mount" or "FILE:LINE: mounts" */
void conf_name(const struct plan_input *in, const struct cfg_value *v, const char *option,
	       const char *key, char *out, size_t cap);
/* The string as it was given. */
const char *conf_text(const struct plan_input *in, const struct cfg_value *v);
/*
 * conf_path - a path of the configuration
 * @text: relative: beneath the folder of the file that says it; on the command line as it is.
 *        "~/" in a file is the caller's home.
 * @ret: malloc'd. Return: 0; -ENAMETOOLONG; -ENOMEM.
 */
SB_MUST_CHECK int conf_path(const struct cfg_value *v, const char *text, char **ret);

#endif
