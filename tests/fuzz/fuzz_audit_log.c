/* The first line of a segment, a signed head, a public key: what is read, written again, is the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/audit_file.h"
#include "store/audit_heads.h"

/* Of the head in the corpus. */
static const char known[] =
	"sendbox-audit-8b2cb5ab3c9a0cc2+7cde5a7a+AYsstas8mgzCLOQrRmuNG6hUPvnN92JOTNODmjc24M/K";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	sb_autoheads struct sb_audit_heads heads = { 0 };
	struct sb_audit_state s;
	char again[SB_AUDIT_LOG_LINE_MAX];
	char vkey[SB_AUDIT_VKEY_ROOM];
	static uint8_t pub[32];
	static bool have;
	char copy[256];
	size_t n = 0;

	if (!have && sb_audit_vkey_parse(known, pub) < 0)
		abort();
	have = true;
	if (sb_audit_log_parse(text, size, &s) == 0 &&
	    (sb_audit_log_head(&s, again) != size + 1 || memcmp(again, text, size) != 0))
		abort();
	if (sb_audit_heads_parse(&heads, text, size, false, true, pub, &n) < 0 || n > size)
		abort();
	/* what was left for the next piece is read with it */
	if (sb_audit_heads_parse(&heads, text + n, size - n, true, true, pub, &n) < 0)
		abort();
	sb_audit_heads_sort(&heads);
	for (size_t i = 1; i < heads.n; i++)
		if (heads.list[i].n < heads.list[i - 1].n)
			abort();
	if (size < sizeof(copy)) {
		uint8_t key[32];

		memcpy(copy, text, size);
		copy[size] = '\0';
		if (strlen(copy) == size && sb_audit_vkey_parse(copy, key) == 0 && size != 64) {
			sb_audit_vkey(key, vkey);
			if (strcmp(vkey, copy) != 0)
				abort();
		}
	}
	return 0;
}
