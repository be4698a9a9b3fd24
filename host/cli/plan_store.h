#ifndef SB_HOST_CLI_PLAN_STORE_H
#define SB_HOST_CLI_PLAN_STORE_H
/*
 * Signed plans as files: of each session in <state>/plans/<session>.plan, mode 0600, the newest
 * PLAN_STORE_KEEP; and those that somebody exported.
 */
#include "core/plan.h"
#include "core/plan_file.h"
#include "keys.h"
#include "provider/provider.h"

#define PLAN_STORE_KEEP 1000

/* Written beside, synced, renamed. Return: 0; -errno with text. */
SB_MUST_CHECK int plan_store_put(const struct sb_dirs *d, const uint8_t session[16],
				 const char *bytes, size_t len, struct sb_err *err);

struct plan_loaded {
	struct sb_plan_file file;
	struct sb_plan *plan;
	uint8_t sha256[32]; /* of the plan's bytes */
};
void plan_loaded_done(struct plan_loaded *l);
#define autoloaded SB_CLEANUP(plan_loaded_done)

/*
 * plan_load - read a signed plan and verify its signature with the key that it names
 * @what: a file (exists, or holds a '/' or '.'), else the first digits of a session's id
 * @d: NULL: files only
 * @key: it must be signed with this one; NULL: any, which says nothing about who signed it
 *
 * Return: 0; -EKEYREJECTED: signature, key; -EBADMSG: damaged; -ENOENT; -ENOTUNIQ; -errno. The text
 * is in @err.
 */
SB_MUST_CHECK int plan_load(const char *what, const struct sb_dirs *d, const uint8_t *key,
			    struct plan_loaded *ret, struct sb_err *err);
bool plan_names_file(const char *what);

#endif
