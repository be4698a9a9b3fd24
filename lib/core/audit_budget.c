#include "core/audit_budget.h"

static const struct {
	uint32_t records;
	uint32_t bytes;
} limits[SB_AUDIT_CLASSES] = {
	[SB_AUDIT_CLASS_RESOLVE] = { 600, 128U << 10 },
	[SB_AUDIT_CLASS_NETWORK] = { 600, 128U << 10 },
	[SB_AUDIT_CLASS_SSH] = { 600, 128U << 10 },
	[SB_AUDIT_CLASS_COMMAND] = { 2000, 512U << 10 }, /* a build starts many */
};

/* FNV-1a: the texts are the user's rules and our reasons, nobody makes them collide. */
uint64_t sb_audit_budget_mark(const char *const *texts, size_t n)
{
	uint64_t h = 0xcbf29ce484222325ULL;

	for (size_t i = 0; i < n; i++) {
		for (const char *p = texts[i]; p && *p; p++)
			h = (h ^ (unsigned char)*p) * 0x100000001b3ULL;
		h = (h ^ 0xff) * 0x100000001b3ULL;
	}
	return h ? h : 1;
}

/* Return: whether the mark was not there, and now is. */
static bool is_first(struct sb_audit_budget *b, uint64_t mark)
{
	size_t i = (size_t)(mark % SB_AUDIT_RULES);

	while (b->seen[i] != 0 && b->seen[i] != mark)
		i = (i + 1) % SB_AUDIT_RULES;
	if (b->seen[i] == mark || b->n_seen + 1 == SB_AUDIT_RULES)
		return false;
	b->seen[i] = mark;
	b->n_seen++;
	return true;
}

bool sb_audit_budget_take(struct sb_audit_budget *b, enum sb_audit_class c, size_t bytes, uint64_t mark,
			  uint64_t now_ns)
{
	bool first;

	if (c == SB_AUDIT_CLASS_FREE || c >= SB_AUDIT_CLASSES)
		return true;
	if (b->began_ns == 0 || now_ns - b->began_ns >= SB_AUDIT_MINUTE_NS) {
		for (size_t i = 0; i < SB_AUDIT_CLASSES; i++)
			b->records[i] = b->bytes[i] = 0;
		b->began_ns = now_ns ? now_ns : 1;
	}
	first = mark != 0 && is_first(b, mark);
	if (!first && (b->records[c] >= limits[c].records || bytes > limits[c].bytes - b->bytes[c]))
		return false;
	b->records[c]++;
	b->bytes[c] += (uint32_t)SB_MIN(bytes, (size_t)(limits[c].bytes - b->bytes[c]));
	return true;
}
