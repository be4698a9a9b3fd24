#ifndef SB_HOST_CLI_GROUPS_H
#define SB_HOST_CLI_GROUPS_H
/*
 * Words that stand for several destinations in --allow-hosts and --deny-hosts: npm, pypi, debian,
 * crates, go, github. Those of package managers are read from the configuration that the caller's
 * own tools use, when the plan is made and without a network access.
 *
 * Files that the sandbox can write (in the project, in folders shared read-write) were perhaps
 * written by an earlier session, so what they name is never allowed by them alone: the caller is
 * told what to add.
 */
#include "base/err.h"

struct groups_env {
	const char *root;    /* before every absolute path that is read; "" but in tests */
	const char *home;    /* absolute, without the root */
	const char *project; /* as home; NULL = none */
	const char *const *writable; /* NULL-terminated, as home; the project is among them */
	const char *(*getenv)(const char *name);
	void (*warn)(void *arg, const char *text);
	void *arg;
};

bool groups_known(const char *word, size_t len);
/* The group that a word means that is none, as NPM or pip. NULL = none. */
const char *groups_near(const char *word, size_t len);
/* All of them, for messages: "npm, pypi, ..." */
extern const char groups_words[];

/* @rule: as people write it; @from: "group npm (~/.npmrc)" */
typedef int groups_add_fn(void *arg, const char *rule, const char *from, struct sb_err *err);

/*
 * groups_resolve - call @add for each destination of the group @word
 * @deny: for a deny rule: every port, and what the project names too
 * Return: 0; -ENOENT when nothing was found, with the places in @err; -EINVAL, -EBADMSG for a file
 * that cannot be understood; what @add returned.
 */
SB_MUST_CHECK int groups_resolve(const struct groups_env *env, const char *word, size_t len,
				 bool deny, groups_add_fn *add, void *arg, struct sb_err *err);

/*
 * groups_mirror - the registry that the caller has configured in place of a tool's built-in one
 * @word: "npm" or "pypi"
 * @ret: malloc'd URL without user name, password, query and fragment; NULL: the tool's default, or a
 * server of this machine, which no sandbox reaches by that URL. Never from a file of the project.
 *
 * Return: 0; -EINVAL, -EBADMSG, -E2BIG for a file that cannot be understood; -ENOMEM.
 */
SB_MUST_CHECK int groups_mirror(const struct groups_env *env, const char *word, char **ret,
				struct sb_err *err);

#endif
