#ifndef SB_STORE_AUDIT_FILE_H
#define SB_STORE_AUDIT_FILE_H
/*
 * The files of a log's directory: segments ("log-" and the number of the first record, 20 digits),
 * "head" (audit_head.h), "heads" (audit_heads.h), "tail" (where the writer was; a shortcut that is never believed unchecked)
 * and "lock".
 */
#include "base/err.h"
#include "store/audit.h"
#include "store/audit_head.h"
#include "store/merkle.h"

#define SB_AUDIT_SEGMENT (16U << 20) /* a segment of so many bytes or more is not continued */
#define SB_AUDIT_FILE_NAME_ROOM 25   /* log-00000000000000000000 */
#define SB_AUDIT_LOG_LINE_MAX 4608   /* first line of a segment, newline included */

/* Where a log has come to: what its next record depends on. */
struct sb_audit_state {
	struct sb_merkle tree; /* tree.n: number of the next record */
	uint8_t prev[SB_AUDIT_HASH]; /* leaf hash of the last record */
};
/* Continue by a line (without its newline): its number and what it says of the one before must fit.
 * Return: 0; -EBADMSG with text. */
SB_MUST_CHECK int sb_audit_state_add(struct sb_audit_state *s, const char *line, size_t len,
				     struct sb_audit_record *rec, struct sb_err *err);

void sb_audit_log_name(uint64_t first, char out[SB_AUDIT_FILE_NAME_ROOM]);
/* Return: whether @name is that of a segment. */
bool sb_audit_log_first(const char *name, uint64_t *ret);
/* First numbers of all segments, ascending. @ret: malloc'd. Return: 0; -errno. */
SB_MUST_CHECK int sb_audit_log_list(int dir, uint64_t **ret, size_t *ret_n);

/* The first line of a segment that continues @s. Return: bytes. */
size_t sb_audit_log_head(const struct sb_audit_state *s, char out[SB_AUDIT_LOG_LINE_MAX]);
/* @line: without its newline. Return: 0; -EBADMSG. */
SB_MUST_CHECK int sb_audit_log_parse(const char *line, size_t len, struct sb_audit_state *ret);

/* "tail": a state, and how far it is in which segment. */
struct sb_audit_tail {
	struct sb_audit_state state;
	uint64_t first;
	uint64_t offset; /* end of the last record */
};
SB_MUST_CHECK int sb_audit_tail_read(int dir, struct sb_audit_tail *ret); /* 0; -errno */
SB_MUST_CHECK int sb_audit_tail_write(int dir, const struct sb_audit_tail *t);

/* "head". Return: 0; -ENOENT; -EBADMSG, -EKEYREJECTED; -errno. */
SB_MUST_CHECK int sb_audit_head_read(int dir, const uint8_t pub[32], struct sb_audit_head *ret);
/* Replace a small file: no sync, but whole before and after. Return: 0; -errno. */
SB_MUST_CHECK int sb_audit_put_file(int dir, const char *name, const void *p, size_t len);

#endif
