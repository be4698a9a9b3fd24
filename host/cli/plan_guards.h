#ifndef SB_CLI_PLAN_GUARDS_H
#define SB_CLI_PLAN_GUARDS_H
/*
 * Guarded paths of a plan: what lies in a folder that is shared read-write and still must not be
 * changed, or not even be seen, from inside.
 */
#include "core/plan.h"

#define GUARDS_DEFAULT "default" /* the word in a list for what is built in */

struct guard_entry {
	const char *text; /* relative to the project, or absolute in the guest; no wildcards; or the
			   * word above */
	char *where;      /* "FILE:LINE" for errors, or NULL */
	enum sb_guard_mode mode;
};
/* All borrowed. */
struct guard_lists {
	const struct guard_entry *v;
	size_t n;
	const char *project;      /* where the project is in the guest */
	const char *home;         /* the caller's home on the host; NULL = none */
	const char *const *files; /* of the configuration, on the host; NULL-terminated, or NULL */
};

/*
 * plan_guards - fill guards and n_guards of @p
 * @p: provider, mounts and their modes are final; guards of an earlier call are replaced
 *
 * The same file reached through another mount, or through a symbolic link, is guarded there too.
 * Entries of the built-in lists that have no place in this plan are left out; entries that were
 * written down are refused then. The configuration's files are guarded where that costs nothing: in a
 * micro-VM, and in a namespace when its folder is served for other guards anyway.
 * Looks at the host's files, changes none. Return: 0; -EINVAL with the text in @err; -ENOMEM.
 */
SB_MUST_CHECK int plan_guards(struct sb_plan *p, const struct guard_lists *l, struct sb_err *err);

#endif
