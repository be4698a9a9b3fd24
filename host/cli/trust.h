#ifndef SB_HOST_CLI_TRUST_H
#define SB_HOST_CLI_TRUST_H
/*
 * Files of the configuration that the user has accepted, by content: <state>/trust.json holds for
 * each path the SHA-256 of the bytes that were accepted last. A project file lies where a session
 * can write, so it counts only while its bytes are those.
 */
#include <stdio.h>

#include "config/config.h"
#include "provider/provider.h"

#define TRUST_NO 1
#define TRUST_MAX 10000 /* entries; the oldest go first */

/*
 * trust_check - are the wanted files accepted?
 * @wanted: one for each of @l->files
 * Return: 0; TRUST_NO; -errno with text.
 */
SB_MUST_CHECK int trust_check(const struct sb_dirs *d, const struct cfg_loaded *l,
			      const bool *wanted, struct sb_err *err);
/* Accept them. Return: 0; -errno with text. */
SB_MUST_CHECK int trust_add(const struct sb_dirs *d, const struct cfg_loaded *l,
			    const bool *wanted, struct sb_err *err);
/* The same for one file. */
SB_MUST_CHECK int trust_add_file(const struct sb_dirs *d, const char *path,
				 const uint8_t sha256[32], struct sb_err *err);

/* Print what the wanted files ask for, a line a value. */
void trust_show(FILE *to, const struct cfg_loaded *l, const bool *wanted);
/*
 * trust_ask - the user decides at the terminal; "y" accepts for good
 * @terminal: whether he may be asked at all
 * Return: 0; -EACCES with text: refused, or nobody to ask.
 */
SB_MUST_CHECK int trust_ask(const struct sb_dirs *d, const struct cfg_loaded *l,
			    const bool *wanted, bool terminal, struct sb_err *err);
/*
 * trust_ask_file - the same for one file that has not been parsed: its text is shown
 * @one: it alone; @file: its bytes
 */
SB_MUST_CHECK int trust_ask_file(const struct sb_dirs *d, const struct cfg_loaded *one,
				 const struct cfg_admit *file, bool terminal, struct sb_err *err);

#endif
