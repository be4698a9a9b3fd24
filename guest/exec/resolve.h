#ifndef SB_GUEST_EXEC_RESOLVE_H
#define SB_GUEST_EXEC_RESOLVE_H
/*
 * Which files an argv[0] can mean, and the environment of a command. No file is looked at here:
 * the child tries the candidates with its own identity and root, so the kernel decides.
 */
#include "core/plan.h"

/* A NULL-terminated vector in one allocation: release with free(). */

/*
 * sb_resolve_program - the paths to try, in order
 * @name: argv[0]; with a '/' it is the only candidate (relative to the working directory)
 * @path: value of PATH, or NULL for the usual default; an empty element is the working directory
 * @ret:  vector of at least one path; malloc'd in one piece, caller frees
 * Return: 0; -ENOENT for an empty name; -ENOMEM.
 */
SB_MUST_CHECK int sb_resolve_program(const char *name, const char *path, char ***ret);

/*
 * sb_resolve_env - complete an environment with what is missing of HOME USER LOGNAME TMPDIR PATH
 * LANG PWD, and TERM with a terminal
 * @env:  vector of "NAME=value"; strings are borrowed by the result
 * @cwd:  working directory, for PWD
 * @ret:  vector, malloc'd in one piece, caller frees
 * Return: 0; -ENOMEM.
 */
SB_MUST_CHECK int sb_resolve_env(const struct sb_plan *plan, char *const *env, const char *cwd,
				 bool tty, char ***ret);

/* The value of @name in @env or NULL. */
const char *sb_resolve_getenv(char *const *env, const char *name);

#endif
