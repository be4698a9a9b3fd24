#ifndef SB_BASE_ERR_H
#define SB_BASE_ERR_H
/*
 * Text for people at the edges (options, plan, provider, command line).
 *
 * Caller-allocated, no heap, nothing to release. Every function that takes a struct sb_err *
 * accepts NULL. The first error wins: a clean-up error is appended, never put in its place.
 */
#include "base/mem.h"

#define SB_ERR_TEXT_MAX 512

struct sb_err {
	int code;                   /* 0 = unset; else the negative errno that goes with the text */
	char text[SB_ERR_TEXT_MAX]; /* NUL-terminated, one line, no trailing newline */
};

/*
 * sb_err_set - record the primary error
 * @err:  may be NULL; if it already holds an error, the new text is dropped
 * @code: negative errno to return
 *
 * Return: @code, so that callers write `return sb_err_set(err, -EINVAL, "...")`.
 */
int sb_err_set(struct sb_err *err, int code, const char *fmt, ...) SB_PRINTF(3, 4);

/* sb_err_add - append "; text" to what is there (or set it when nothing is there yet) */
int sb_err_add(struct sb_err *err, int code, const char *fmt, ...) SB_PRINTF(3, 4);

#endif
