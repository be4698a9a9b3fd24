#include "text_diff.h"

#include <string.h>

#include "config/text.h"

struct side {
	const char *p;
	size_t len;
};

static size_t line_len(const char *p, size_t len)
{
	const char *nl = memchr(p, '\n', len);

	return nl ? (size_t)(nl - p) + 1 : len;
}

/* Bytes of whole lines that are alike at the front. */
static size_t front(const struct side *a, const struct side *b)
{
	size_t at = 0;

	while (at < a->len && at < b->len) {
		size_t n = line_len(a->p + at, a->len - at);

		if (line_len(b->p + at, b->len - at) != n || memcmp(a->p + at, b->p + at, n) != 0)
			break;
		at += n;
	}
	return at;
}

/* The same at the back, beyond @from. */
static size_t back(const struct side *a, const struct side *b, size_t from)
{
	size_t max = SB_MIN(a->len, b->len) - from;
	size_t same = 0;
	size_t whole = 0;

	while (same < max && a->p[a->len - 1 - same] == b->p[b->len - 1 - same]) {
		same++;
		if (same == max || a->p[a->len - 1 - same] == '\n')
			whole = same;
	}
	/* only what begins a line on both sides */
	while (whole > 0 &&
	       ((a->len > whole && a->p[a->len - whole - 1] != '\n') ||
		(b->len > whole && b->p[b->len - whole - 1] != '\n')))
		whole--;
	return whole;
}

static void lines(FILE *to, char mark, const char *p, size_t len)
{
	char shown[600];
	size_t n = 0;

	while (len > 0) {
		size_t k = line_len(p, len);
		size_t text = k > 0 && p[k - 1] == '\n' ? k - 1 : k;

		if (n++ == TEXT_DIFF_LINES) {
			(void)fprintf(to, "%c ... and %zu more bytes\n", mark, len);
			return;
		}
		text_show(p, text, shown, sizeof(shown));
		(void)fprintf(to, "%c %s\n", mark, shown);
		p += k;
		len -= k;
	}
}

void text_diff(FILE *to, const char *old, size_t old_len, const char *new, size_t new_len)
{
	struct side a = { old, old_len };
	struct side b = { new, new_len };
	size_t from;
	size_t end;

	if (memchr(old, '\0', old_len) || memchr(new, '\0', new_len)) {
		(void)fprintf(to, "  binary: %zu bytes, were %zu\n", new_len, old_len);
		return;
	}
	from = front(&a, &b);
	end = back(&a, &b, from);
	lines(to, '-', old + from, old_len - from - end);
	lines(to, '+', new + from, new_len - from - end);
}
