/* What is a record, written again from its parts, is the same line; nothing in it steers a terminal. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/audit.h"

#define ROOM 8192

static char *text(const struct sb_audit_str *s)
{
	static char pool[4][ROOM];
	static size_t at;
	char tmp[ROOM];
	char *out = pool[at++ % 4];

	(void)sb_audit_text(s, tmp, sizeof(tmp));
	out[sb_audit_bytes(tmp, out, ROOM - 1)] = '\0';
	return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *line = (const char *)data;
	struct sb_audit_event e = { 0 };
	struct sb_audit_record r;
	struct sb_audit_record again;
	char action[SB_AUDIT_ACTION_MAX + 1];
	char out[SB_AUDIT_LINE_MAX];
	int n;

	if (sb_audit_parse(line, size, &r, NULL) < 0)
		return 0;
	for (size_t i = 0; i < size; i++)
		if (data[i] < 0x20 || data[i] == 0x7f)
			abort();
	e.time_ns = r.time_ns;
	memcpy(e.session, r.session, sizeof(e.session));
	e.kind = r.kind;
	e.verdict = r.verdict;
	(void)sb_audit_text(&r.action, action, sizeof(action));
	e.action = action;
	e.subject = text(&r.subject);
	e.rule = text(&r.rule);
	e.reason = text(&r.reason);
	n = sb_audit_encode(&e, r.seq, r.prev, out);
	if (n < 0 || sb_audit_parse(out, (size_t)n - 1, &again, NULL) < 0)
		abort();
	/* bytes that need no escape may have come escaped one by one, and zeros end a text: those
	 * lines read the same and are written in another way */
	if (!memmem(data, size, "\\\\x", 3) &&
	    memcmp(line, out, (size_t)(r.data.p - line)) != 0)
		abort();
	return 0;
}
