#ifndef SB_STORE_AUDIT_READ_H
#define SB_STORE_AUDIT_READ_H
/*
 * Reading a log while others write: whole lines only, from any record on. Nothing is verified here
 * beyond the form of a line (audit_verify.h does). One reader, one thread.
 */
#include "store/audit_file.h"

struct sb_audit_reader;

struct sb_audit_line {
	const char *p; /* borrowed until the next call; without its newline */
	size_t len;
	uint64_t first;  /* of the segment */
	uint64_t offset; /* in its file */
	bool is_head;    /* the segment's first line, no record */
};
/* @dir: borrowed until the reader is freed. Return: 0; -ENOENT: there is no log; -errno with text. */
SB_MUST_CHECK int sb_audit_reader_new(int dir, struct sb_audit_reader **ret, struct sb_err *err);
struct sb_audit_reader *sb_audit_reader_free(struct sb_audit_reader *r);
static inline void sb_audit_reader_freep(struct sb_audit_reader **r)
{
	*r = sb_audit_reader_free(*r);
}
#define sb_autoreader SB_CLEANUP(sb_audit_reader_freep)

/* Number of the first record that is kept. */
uint64_t sb_audit_reader_first(const struct sb_audit_reader *r);
/* Go on near record @seq and not behind it: a few reads, whatever the size of the log. For a log
 * that was tampered with the place may be anywhere. Return: 0; -errno with text. */
SB_MUST_CHECK int sb_audit_reader_seek(struct sb_audit_reader *r, uint64_t seq, struct sb_err *err);

#define SB_AUDIT_END 1
/* The next line of any kind. Return: 0; SB_AUDIT_END, after which more may come; -EBADMSG: a line that
 * is too long; -errno; with text. */
SB_MUST_CHECK int sb_audit_reader_line(struct sb_audit_reader *r, struct sb_audit_line *ret,
				       struct sb_err *err);
/* The next record. @line: may be NULL. Return: as above; -EBADMSG: a line that is no record. */
SB_MUST_CHECK int sb_audit_reader_next(struct sb_audit_reader *r, struct sb_audit_record *ret,
				       struct sb_audit_line *line, struct sb_err *err);
/* Bytes behind the last whole line: a record that is being written, or was when somebody died. */
size_t sb_audit_reader_rest(const struct sb_audit_reader *r);

#endif
