/* Whatever parses is canonical: writing it again gives the same bytes. And any two texts that are
 * JSON objects can be compared: a text does not differ from itself. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/plan_file.h"

static void count(void *arg, const char *path, const char *a, const char *b)
{
	size_t *n = arg;

	if (!path || (!a && !b))
		abort();
	(*n)++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char other[] = "{\"argv\":[\"a\"],\"env\":[{\"name\":\"A\"}],\"net\":{\"rules\":[1]}}";
	struct sb_plan_file f = { .plan = NULL };
	char *again = NULL;
	size_t len = 0;
	size_t n = 0;
	int r;

	if (sb_plan_file_parse((const char *)data, size, &f, NULL) == 0) {
		if (sb_plan_file_write(&f, &again, &len) < 0 || len != size ||
		    memcmp(again, data, size) != 0)
			abort();
		free(again);
		r = sb_plan_diff(f.plan, f.plan_len, other, sizeof(other) - 1, NULL, count, &n);
		if (r > 0 && (size_t)r != n)
			abort();
	} else if (f.plan) {
		abort();
	}
	n = 0;
	r = sb_plan_diff((const char *)data, size, (const char *)data, size, NULL, count, &n);
	if (r > 0 || n > 0)
		abort();
	sb_plan_file_done(&f);
	return 0;
}
