#ifndef SB_CONN_PLAN_FD_H
#define SB_CONN_PLAN_FD_H
/* How a program of a session takes the plan that it was handed by descriptor. */
#include "core/plan.h"
#include "crypto/crypto.h"

struct sb_plan_expect {
	const uint8_t *signature;  /* SB_SIGN_LEN */
	const uint8_t *public_key; /* SB_SIGN_PUBLIC_LEN */
	const uint8_t *session;    /* 16 bytes that the plan must be for; NULL = any */
	uint64_t now_unix_s;       /* the plan must be within its time; 0 = not asked */
};

/*
 * sb_plan_verify - the one order in which a plan is verified: signature over the bytes, and only
 * then form and rules, session, time
 * Return: 0; -EKEYREJECTED (signature, session, future); -EKEYEXPIRED; what sb_plan_parse
 * returns. The text is in @err; @ret is set on success only.
 */
SB_MUST_CHECK int sb_plan_verify(const char *bytes, size_t len, const struct sb_plan_expect *x,
				 struct sb_plan **ret, struct sb_err *err);

/*
 * sb_plan_from_fd - read and verify
 * @fd: memory file, borrowed; its offset is left alone
 * @ret_bytes: what was signed, malloc'd; may be NULL
 *
 * Return: 0; -EFBIG (no sane size); as sb_plan_verify; -ENOMEM; -errno. The text is in @err.
 */
SB_MUST_CHECK int sb_plan_from_fd(int fd, const struct sb_plan_expect *x, struct sb_plan **ret,
				  char **ret_bytes, size_t *ret_len, struct sb_err *err);

/* sb_plan_env_from_fd - read the block of values from a memory file and fill @p with it. */
SB_MUST_CHECK int sb_plan_env_from_fd(int fd, struct sb_plan *p, struct sb_err *err);

#endif
