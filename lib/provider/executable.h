#ifndef SB_PROVIDER_EXECUTABLE_H
#define SB_PROVIDER_EXECUTABLE_H
/*
 * The programs of a session by content. The plan names each by role ("executable:NAME"), path and
 * SHA-256; whoever starts one opens it once, compares the digest, and executes that descriptor, so
 * that a file put in its place afterwards is not what runs. A digest may come from a stamp (see
 * provider/microvm/cache.h for why that is safe): a program that only root may write to cannot be
 * changed behind its stamp by anybody else, one of the caller's own by the caller alone.
 */
#include <sys/stat.h>

#include "core/plan.h"

#define SB_EXE_ROLE "executable:"

/*
 * sb_exe_add - open @path, resolve links, and add it to the plan's parts as executable:@name
 * @cache: cache directory, for stamps
 * Return: 0; -errno with text.
 */
SB_MUST_CHECK int sb_exe_add(struct sb_plan *p, const char *cache, const char *name,
			     const char *path, struct sb_err *err);

/*
 * sb_exe_open - open the program executable:@name of the plan and check that it still is that
 * @ret_path: borrowed from the plan; may be NULL
 * @ret_st: its state, which the digest belongs to; may be NULL
 * Return: descriptor for sb_spawn.exe; -ENOENT: the plan has no such program; -ESTALE: it is
 * another one now; -errno. The text is in @err.
 */
SB_MUST_CHECK int sb_exe_open(const struct sb_plan *p, const char *cache, const char *name,
			      const char **ret_path, struct stat *ret_st, struct sb_err *err);

#endif
