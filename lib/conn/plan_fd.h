#ifndef SB_CONN_PLAN_FD_H
#define SB_CONN_PLAN_FD_H
/* How a program of a session takes the plan that it was handed by descriptor. */
#include "core/plan.h"
#include "crypto/crypto.h"

/*
 * sb_plan_from_fd - read, verify, and only then parse
 * @fd: memory file, borrowed; its offset is left alone
 * @ret_bytes: what was signed, malloc'd; may be NULL
 *
 * Return: 0; -EFBIG (no sane size); -EKEYREJECTED (signature); what
 * sb_plan_parse returns; -ENOMEM; -errno. The text is in @err.
 */
SB_MUST_CHECK int sb_plan_from_fd(int fd, const uint8_t signature[SB_SIGN_LEN],
				  const uint8_t public_key[SB_SIGN_PUBLIC_LEN],
				  struct sb_plan **ret, char **ret_bytes, size_t *ret_len,
				  struct sb_err *err);

#endif
