#ifndef SB_TESTS_TAR_MAKE_H
#define SB_TESTS_TAR_MAKE_H
/* Tar archives for tests, written by hand: nothing of the reader under test is used. */
#include <stdint.h>
#include <string.h>

struct tar_make {
	uint8_t p[1 << 18];
	size_t len;
};

/* @digits octal digits and a NUL. */
static inline void tar_octal(uint8_t *p, size_t digits, size_t v)
{
	p[digits] = '\0';
	for (; digits > 0; digits--, v >>= 3)
		p[digits - 1] = (uint8_t)('0' + (v & 7));
}

static inline void tar_seal(uint8_t *h)
{
	unsigned int sum = 0;

	memset(h + 148, ' ', 8);
	for (size_t i = 0; i < 512; i++)
		sum += h[i];
	tar_octal(h + 148, 6, sum);
}

static inline void tar_data(struct tar_make *t, const void *data, size_t len)
{
	memcpy(t->p + t->len, data, len);
	t->len += (len + 511) & ~(size_t)511;
}

/* @size: as in the header; the data is added apart. Return: the header, to be changed and sealed. */
static inline uint8_t *tar_head(struct tar_make *t, char type, const char *name, const char *link,
				unsigned int mode, size_t size)
{
	uint8_t *h = t->p + t->len;

	memset(h, 0, 512);
	memcpy(h, name, strlen(name) > 100 ? 100 : strlen(name));
	tar_octal(h + 100, 7, mode);
	tar_octal(h + 108, 7, 0);
	tar_octal(h + 116, 7, 0);
	tar_octal(h + 124, 11, size);
	tar_octal(h + 136, 11, 1000);
	h[156] = (uint8_t)type;
	if (link)
		memcpy(h + 157, link, strlen(link));
	memcpy(h + 257, "ustar\0" "00", 8);
	tar_seal(h);
	t->len += 512;
	return h;
}

static inline void tar_file(struct tar_make *t, const char *name, const char *data)
{
	(void)tar_head(t, '0', name, NULL, 0644, strlen(data));
	tar_data(t, data, strlen(data));
}
static inline void tar_dir(struct tar_make *t, const char *name)
{
	(void)tar_head(t, '5', name, NULL, 0755, 0);
}
static inline void tar_link(struct tar_make *t, char type, const char *name, const char *to)
{
	(void)tar_head(t, type, name, to, 0777, 0);
}
/* "LEN KEY=VALUE\n" records, each written out by the caller. */
static inline void tar_pax(struct tar_make *t, const char *records, size_t len)
{
	(void)tar_head(t, 'x', "pax", NULL, 0644, len);
	tar_data(t, records, len);
}
static inline void tar_close(struct tar_make *t)
{
	memset(t->p + t->len, 0, 1024);
	t->len += 1024;
}

#endif
