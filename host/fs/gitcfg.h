#ifndef SB_FS_GITCFG_H
#define SB_FS_GITCFG_H
/*
 * A repository's own configuration in the hands of a session.
 *
 * Git's file names programs that git starts (core.fsmonitor, core.hooksPath, aliases, filters,
 * credential helpers), other files, and where a push goes; whoever writes it has commands run, or
 * work sent elsewhere, the next time somebody outside uses git in that folder. But "git init", "git
 * clone", "git push -u" and "git remote add" write it, too. So a new content passes when it is the
 * old one with all its entries in their order, and added to them only what says nothing of the kind:
 *
 *   core.bare=false; core.filemode, ignorecase, logallrefupdates, precomposeunicode, symlinks as
 *     true or false; core.repositoryformatversion=0          (what git init finds out)
 *   user.name, user.email
 *   branch.*.remote as "." or the name of a remote that has a URL in the same file, .merge as
 *     refs/heads/..., .rebase
 *   remote.*.url, pushurl by https, http, ssh or git, for a remote that has none; .fetch into
 *     refs/remotes or refs/tags, .tagopt, .prune
 *   submodule.*.active, .url as above
 *
 * each only where the old file does not set it. Entries are compared as they are written. A file
 * that this reader does not understand whole (continued lines, "[section.sub]", several things on one
 * line) is never changed.
 */
#include "base/err.h"

#define FS_GITCFG_MAX (64U << 10)

/* May @new take the place of @old? Pure. Return: 0; -EACCES; -ENOMEM. */
SB_MUST_CHECK int fs_gitcfg_check(const char *old, size_t old_len, const char *new, size_t new_len);
/* The same for files of the folder @dir: @name, with one name only, and @target, which may not be
 * there. Return: as above; -errno. */
SB_MUST_CHECK int fs_gitcfg_replace(int dir, const char *name, const char *target);

#endif
