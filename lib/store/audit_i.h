#ifndef SB_STORE_AUDIT_I_H
#define SB_STORE_AUDIT_I_H
/* Shared by the writer and the parser of records. */
#include "store/audit.h"

size_t audit_char(const uint8_t *p, size_t len);
enum sb_audit_kind audit_kind_n(const char *p, size_t len);
enum sb_audit_verdict audit_verdict_n(const char *p, size_t len);

/* @other: '-' in actions, '_' in keys */
static inline bool audit_word_char(char c, char other)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == other;
}

#endif
