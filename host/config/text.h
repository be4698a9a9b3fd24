#ifndef SB_HOST_CONFIG_TEXT_H
#define SB_HOST_CONFIG_TEXT_H
/* Bytes of a document: UTF-8, places, and what of it may reach a terminal. Pure. */
#include <stdint.h>

#include "base/mem.h"

/* The character at @s. Return: its length in bytes, 1..4; 0 when it is no UTF-8. */
size_t text_char(const char *s, size_t len, uint32_t *ret);

/* A place in @bytes that moves forward; going back starts anew from the front. */
struct text_place {
	const char *bytes;
	size_t len;
	size_t pos;
	uint32_t line; /* from 1 */
	uint32_t col;  /* from 1, in characters */
};
void text_place_init(struct text_place *p, const char *bytes, size_t len);
void text_place_to(struct text_place *p, size_t pos);

/*
 * Copy for people: control characters, bytes that are no UTF-8, and characters that are invisible
 * or turn the direction become \xNN. Ends at @len bytes or when @out is full, then with "...".
 */
void text_show(const char *in, size_t len, char *out, size_t cap);

/* Append as much of @s as has room; @out ends with NUL. Return: whether all of it had. */
bool text_append(char *out, size_t cap, const char *s, size_t len);


#endif
