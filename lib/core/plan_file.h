#ifndef SB_CORE_PLAN_FILE_H
#define SB_CORE_PLAN_FILE_H
/*
 * A signed plan as a file: compact JSON with sorted keys and one newline at the end,
 * {"format":"sendbox-signed-plan","key":HEX,"plan":TEXT,"signature":HEX,"version":1}. Pure: whether
 * the key is to be trusted and the signature holds is asked by whoever has a crypto library.
 */
#include "base/err.h"

#define SB_PLAN_FILE_MAX (9U << 20) /* a plan of 4 MiB whose every second byte is escaped */

struct sb_plan_file {
	uint8_t key[32]; /* public */
	uint8_t signature[64];
	char *plan; /* owned; what was signed */
	size_t plan_len;
};

void sb_plan_file_done(struct sb_plan_file *f);
#define sb_autoplanfile SB_CLEANUP(sb_plan_file_done)

/* @ret: malloc'd, caller frees. Return: 0; -EINVAL: the plan is no UTF-8 text or too large; -ENOMEM. */
SB_MUST_CHECK int sb_plan_file_write(const struct sb_plan_file *f, char **ret, size_t *ret_len);

/*
 * sb_plan_file_parse - strict inverse; the plan's own bytes are not looked at
 * @ret: filled on success only; release with sb_plan_file_done
 * Return: 0; -EBADMSG; -ENOMEM.
 */
SB_MUST_CHECK int sb_plan_file_parse(const char *bytes, size_t len, struct sb_plan_file *ret,
				     struct sb_err *err);

/*
 * sb_plan_diff - name what differs between two plans, as text
 * @fn: once for each difference, in sorted order; @a, @b: compact JSON, NULL = not there; borrowed
 * @skip: NULL-terminated names that are not compared: a top-level key ("session"), or a key of the
 * elements of a list ("mounts.dev"); NULL = compare everything
 *
 * Lists of things with an identity (mounts, parts, guards, features, environment) are compared by
 * it, other lists as what is in one and not in the other, and in their order.
 * Return: number of differences; -EBADMSG: not JSON objects; -ENOMEM.
 */
SB_MUST_CHECK int sb_plan_diff(const char *a, size_t a_len, const char *b, size_t b_len,
			       const char *const *skip,
			       void (*fn)(void *arg, const char *path, const char *a, const char *b),
			       void *arg);

#endif
