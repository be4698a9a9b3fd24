#ifndef SB_WIRE_EXEC_REQ_H
#define SB_WIRE_EXEC_REQ_H
/*
 * A further command for a running session, as it lies in a sealed memory file on its way from the
 * command line to the channel process: little-endian {u32 magic, u32 flags, u32 cwd_len, u32 n_argv,
 * u32 argv_len, u32 n_env, u32 env_len}, then the bytes of cwd (no NUL), of argv and of the
 * environment (strings, each with its NUL).
 */
#include "base/buf.h"

#define SB_EXEC_REQ_MAX (200U << 10) /* a control message to the guest holds it */
#define SB_EXEC_REQ_TTY 1U
#define SB_EXEC_REQ_SEPARATE_STDERR 2U /* with TTY */

struct sb_exec_req { /* borrowed from the bytes when parsed */
	uint32_t flags;
	const char *cwd; /* not NUL-terminated; empty = where the session's command began */
	uint32_t cwd_len;
	const char *argv;
	uint32_t argv_len;
	uint32_t n_argv; /* at least 1 */
	const char *env;
	uint32_t env_len;
	uint32_t n_env;
};

/* Append the request. Errors show in sb_buf_error(). */
void sb_exec_req_write(struct sb_buf *b, const struct sb_exec_req *r);
/* Return: 0; -EBADMSG: not what sb_exec_req_write writes. */
SB_MUST_CHECK int sb_exec_req_parse(const uint8_t *p, size_t len, struct sb_exec_req *ret);

#endif
