/*
 * Theory of operation. Each name that was asked for gets the next number, once and for the whole
 * session; number i is 198.18.0.16 + i and fd73:656e:6462:6f78::(16 + i). An array leads from the
 * number to the name, an open-addressing table of numbers from the name to the number, never more
 * than half full. The guest chooses names (beneath wildcards), so the hash is keyed; a budget
 * (dns.c) limits how fast it may, NAMES_MAX how many.
 */
#include <errno.h>
#include <string.h>

#include "crypto/crypto.h"
#include "net/gate.h"
#include "net/hash.h"

#define FIRST 16 /* the addresses below are the guest's own */

static const uint8_t prefix4[14] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 198, 18 };
static const uint8_t prefix6[8] = { 0xfd, 0x73, 0x65, 0x6e, 0x64, 0x62, 0x6f, 0x78 };

struct names {
	char **text; /* by number; owned */
	size_t n;
	size_t room;
	uint32_t *table; /* number + 1; 0 = empty */
	size_t size;     /* power of two */
	uint64_t key[2];
};

int names_new(struct names **ret)
{
	sb_autofree struct names *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->size = 64;
	n->table = calloc(n->size, sizeof(*n->table));
	if (!n->table)
		return -ENOMEM;
	sb_random(n->key, sizeof(n->key));
	*ret = sb_take(&n);
	return 0;
}

struct names *names_free(struct names *n)
{
	if (n) {
		for (size_t i = 0; i < n->n; i++)
			free(n->text[i]);
		free(n->text);
		free(n->table);
		free(n);
	}
	return NULL;
}

/* The slot of @name, or the empty one where it belongs. */
static uint32_t *slot_of(const struct names *n, const char *name)
{
	size_t at = (size_t)hash_name(n->key, name) & (n->size - 1);

	while (n->table[at] != 0 && strcmp(n->text[n->table[at] - 1], name) != 0)
		at = (at + 1) & (n->size - 1);
	return &n->table[at];
}

static int grow(struct names *n)
{
	if (n->n == n->room) {
		size_t room = n->room ? n->room * 2 : 32;
		char **more = realloc(n->text, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		n->text = more;
		n->room = room;
	}
	if ((n->n + 1) * 2 > n->size) {
		uint32_t *old = n->table;
		uint32_t *more = calloc(n->size * 2, sizeof(*more));

		if (!more)
			return -ENOMEM;
		n->table = more;
		n->size *= 2;
		for (size_t i = 0; i < n->n; i++)
			*slot_of(n, n->text[i]) = (uint32_t)i + 1;
		free(old);
	}
	return 0;
}

static void addr_of(size_t number, bool v6, struct sb_addr *ret)
{
	uint32_t v = (uint32_t)number + FIRST;

	memset(ret, 0, sizeof(*ret));
	if (v6) {
		memcpy(ret->b, prefix6, sizeof(prefix6));
	} else {
		memcpy(ret->b, prefix4, sizeof(prefix4));
		ret->b[13] = (uint8_t)(ret->b[13] | v >> 16);
	}
	if (v6)
		ret->b[13] = (uint8_t)(v >> 16);
	ret->b[14] = (uint8_t)(v >> 8);
	ret->b[15] = (uint8_t)v;
}

int names_addr(struct names *n, const char *name, bool v6, struct sb_addr *ret)
{
	uint32_t *slot = slot_of(n, name);

	if (*slot == 0) {
		char *copy;
		int r;

		if (n->n >= NAMES_MAX)
			return -ENOSPC;
		r = grow(n);
		if (r < 0)
			return r;
		copy = strdup(name);
		if (!copy)
			return -ENOMEM;
		slot = slot_of(n, name); /* the table may be another one */
		n->text[n->n++] = copy;
		*slot = (uint32_t)n->n;
	}
	addr_of(*slot - 1, v6, ret);
	return 0;
}

/* The number that @a encodes. Return: 1 and @ret; 0 = inside no pool or below the first one. */
static int number_of(const struct sb_addr *a, uint64_t *ret)
{
	uint64_t v = 0;

	if (memcmp(a->b, prefix6, sizeof(prefix6)) == 0) {
		for (size_t i = 8; i < 16; i++)
			v = v << 8 | a->b[i];
	} else if (memcmp(a->b, prefix4, 13) == 0 && (a->b[13] & 0xfe) == 18) {
		v = (uint64_t)(a->b[13] & 1) << 16 | (uint64_t)a->b[14] << 8 | a->b[15];
	} else {
		return 0;
	}
	if (v < FIRST)
		return 0;
	*ret = v - FIRST;
	return 1;
}

const char *names_of(const struct names *n, const struct sb_addr *a)
{
	uint64_t i;

	return number_of(a, &i) != 0 && i < n->n ? n->text[i] : NULL;
}

bool names_synthetic(const struct sb_addr *a)
{
	return memcmp(a->b, prefix6, sizeof(prefix6)) == 0 ||
	       (memcmp(a->b, prefix4, 13) == 0 && (a->b[13] & 0xfe) == 18);
}

bool names_known(const struct names *n, const char *name)
{
	return *slot_of(n, name) != 0;
}
