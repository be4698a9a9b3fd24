/*
 * What a YAML parser that was taken over may send: any bytes as records. Bounds hold, and what comes
 * out is a tree like any other.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config/doc_yaml.h"

/* As doc_check_node, but for lines and columns, which are the parser's word. */
static void check(const struct doc_node *n, unsigned int depth, size_t *total)
{
	sb_assert(depth <= DOC_MAX_DEPTH && ++*total <= 2U * DOC_MAX_NODES);
	if (n->kind != DOC_SEQ && n->kind != DOC_MAP) {
		sb_assert(n->text && strlen(n->text) == n->len && n->len <= DOC_MAX_SCALAR && n->n == 0);
		return;
	}
	for (size_t i = 0; i < n->n; i++) {
		check(&n->items[i], depth + 1, total);
		if (n->kind == DOC_MAP)
			sb_assert(n->keys[i].kind == DOC_STR && n->keys[i].text);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct problems p = { 0 };
	struct doc *d = calloc(1, sizeof(*d));
	struct doc_build *b = calloc(1, sizeof(*b));
	int fd = memfd_create("records", MFD_CLOEXEC);
	size_t total = 0;
	int r;

	sb_assert(d && b && fd >= 0);
	sb_assert(write(fd, data, len) == (ssize_t)len && lseek(fd, 0, SEEK_SET) == 0);
	d->file = "f";
	*b = (struct doc_build){ .d = d, .p = &p };
	r = yaml_records(b, fd);
	sb_assert(r == 0 || r == -EBADMSG || r == -EPIPE || r == -ENOMEM);
	sb_assert(b->depth <= DOC_MAX_DEPTH);
	if (r == 0 && b->depth == 0)
		for (size_t i = 0; i < b->n; i++)
			check(&b->stack[i], 0, &total);
	for (size_t i = 0; i < p.n; i++)
		for (const char *c = p.v[i].message; *c; c++)
			sb_assert((unsigned char)*c >= 0x20 && *c != 0x7f);
	problems_done(&p);
	free(b->stack);
	free(b);
	(void)doc_free(d);
	(void)close(fd);
	return 0;
}
