#ifndef SB_CORE_AUDIT_BUDGET_H
#define SB_CORE_AUDIT_BUDGET_H
/*
 * How many records that nobody waits for a session may cause in a minute, of each class apart, so that a flood of one
 * does not drown another. The first refusal by each rule is always taken. What is not taken the caller counts.
 */
#include "base/mem.h"

enum sb_audit_class {
	SB_AUDIT_CLASS_FREE = 0, /* the host's own: always taken */
	SB_AUDIT_CLASS_RESOLVE,
	SB_AUDIT_CLASS_NETWORK,
	SB_AUDIT_CLASS_SSH,
	SB_AUDIT_CLASS_COMMAND,
	SB_AUDIT_CLASSES
};
#define SB_AUDIT_MINUTE_NS 60000000000ULL
#define SB_AUDIT_RULES 4096 /* whose first refusal is told apart; further ones have the budget alone */

struct sb_audit_budget {
	uint64_t began_ns; /* of this minute; 0 = none yet */
	uint32_t records[SB_AUDIT_CLASSES];
	uint32_t bytes[SB_AUDIT_CLASSES];
	uint64_t seen[SB_AUDIT_RULES]; /* marks, by their hash; 0 = free */
	size_t n_seen;
};
/* A mark of what refused: any texts, NULL for none. Never 0. */
uint64_t sb_audit_budget_mark(const char *const *texts, size_t n);
/* @mark: of a refusal; 0: it is none. Return: whether it is to be recorded. */
bool sb_audit_budget_take(struct sb_audit_budget *b, enum sb_audit_class c, size_t bytes, uint64_t mark,
			  uint64_t now_ns);

#endif
