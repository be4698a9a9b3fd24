#ifndef SB_BASE_MEM_H
#define SB_BASE_MEM_H
/*
 * Memory and ownership idioms, compiler attributes, assertions.
 *
 * Ownership is visible in the parameter type: a value or pointer is borrowed, the address of a
 * slot is given ("take"): the callee empties the slot on success and leaves it alone on failure.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define SB_MUST_CHECK __attribute__((__warn_unused_result__))
#define SB_PRINTF(f, a) __attribute__((__format__(__printf__, f, a)))
#define SB_CLEANUP(fn) __attribute__((__cleanup__(fn)))
#define SB_NORETURN __attribute__((__noreturn__))
#define SB_UNUSED __attribute__((__unused__))
#define SB_PACKED __attribute__((__packed__))

#define SB_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define SB_CONTAINER_OF(ptr, type, member) \
	((type *)(void *)((char *)(ptr) - offsetof(type, member)))

static inline void *sb_take_ptr_(void *pp)
{
	void **slot = pp;
	void *p = *slot;

	*slot = NULL;
	return p;
}
/* Move a pointer out of its slot; keeps the type in plain C17. */
#define sb_take(pp) (0 ? *(pp) : sb_take_ptr_(pp))

static inline void sb_freep(void *pp)
{
	free(*(void **)pp);
}
#define sb_autofree SB_CLEANUP(sb_freep)

/* Free a NULL-terminated list and what is in it; *@list, which may be NULL, becomes NULL. */
static inline void sb_free_list(char ***list)
{
	for (char **e = *list; e && *e; e++)
		free(*e);
	free(*list);
	*list = NULL;
}

/* Stays on in release builds; for our own bugs only, never for input. */
SB_NORETURN void sb_assert_fail(const char *expr, const char *file, int line);
#define sb_assert(e) ((e) ? (void)0 : sb_assert_fail(#e, __FILE__, __LINE__))

static inline SB_MUST_CHECK bool sb_add_size(size_t a, size_t b, size_t *ret)
{
	return !__builtin_add_overflow(a, b, ret);
}
static inline SB_MUST_CHECK bool sb_mul_size(size_t a, size_t b, size_t *ret)
{
	return !__builtin_mul_overflow(a, b, ret);
}
#define SB_MIN(a, b) ((a) < (b) ? (a) : (b))
#define SB_MAX(a, b) ((a) > (b) ? (a) : (b))

#endif
