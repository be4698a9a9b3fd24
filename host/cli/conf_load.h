#ifndef SB_HOST_CLI_CONF_LOAD_H
#define SB_HOST_CLI_CONF_LOAD_H
/* The configuration of a command: the files of every layer and its options, and whether the project
 * files among them were accepted by the user. */
#include "dirs.h"
#include "plan_conf.h"

struct conf {
	struct cfg_options line;
	struct cfg_loaded loaded;
	struct problems problems;
};
/*
 * conf_load - read, check, merge
 * @o: options of the command line; config, no_config and project say where to look
 * Return: 0; -EBADMSG with @ret->problems; other -errno with text. conf_done in every case.
 */
SB_MUST_CHECK int conf_load(const struct cli_dirs *dirs, const struct run_options *o,
			    struct conf *ret, struct sb_err *err);
/*
 * conf_load_trusted - the same for a session: files of the project that were found, and all that
 * they extend, must have been accepted before they are parsed; then as conf_trusted
 * @ask: at the terminal, if there is one
 * Return: as conf_load; -EACCES with text.
 */
SB_MUST_CHECK int conf_load_trusted(const struct cli_dirs *dirs, const struct run_options *o,
				    bool ask, struct conf *ret, struct sb_err *err);
void conf_done(struct conf *c);

/*
 * conf_trusted - is every file that a session could have written accepted?
 *
 * Files of the project and what they extend count when they were found by looking, or lie in a
 * folder that the session would share read-write. Asks on a terminal when @ask.
 * Return: 0; -EACCES with text.
 */
SB_MUST_CHECK int conf_trusted(const struct cli_dirs *dirs, const struct run_options *o,
			       const struct conf *c, bool ask, struct sb_err *err);

/* The first problem and how many more there are, as one line. */
void conf_problem_text(const struct problems *p, char *out, size_t cap);

#endif
