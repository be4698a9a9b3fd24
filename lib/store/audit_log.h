#ifndef SB_STORE_AUDIT_LOG_H
#define SB_STORE_AUDIT_LOG_H
/*
 * The writer of a log. Several may be at work, one a session: a lock is held for each batch, and who
 * gets it reads first what others have written. After any failure the log is as it was, or has whole
 * records more; the writer is of no use any more (free it).
 */
#include "store/audit_file.h"

struct sb_audit_log;

/*
 * sb_audit_log_open - go to the end of the log in @dir, or begin one
 * @dir: borrowed until the log is freed; @sec: Ed25519 key that heads are signed with, copied
 *
 * Checks that the log still holds what its head says, and continues nothing else. A line that was
 * not whole is removed. Blocks: for the lock, at most 10 s.
 * Return: 0; -EBADMSG: the log was damaged; -ETIMEDOUT: the lock; -errno; with text and remedy.
 */
SB_MUST_CHECK int sb_audit_log_open(int dir, const uint8_t sec[64], struct sb_audit_log **ret,
				    struct sb_err *err);
struct sb_audit_log *sb_audit_log_free(struct sb_audit_log *l); /* writes nothing */
static inline void sb_audit_log_freep(struct sb_audit_log **l)
{
	*l = sb_audit_log_free(*l);
}
#define sb_autolog SB_CLEANUP(sb_audit_log_freep)

/* One batch: begin (lock), put any number, end (write, unlock; all of them or none). */
SB_MUST_CHECK int sb_audit_log_begin(struct sb_audit_log *l, struct sb_err *err);
/* Return: 0 with the record's number; -ENOBUFS: end this batch first; -EINVAL: no event. */
SB_MUST_CHECK int sb_audit_log_put(struct sb_audit_log *l, const struct sb_audit_event *e,
				   uint64_t *ret_seq);
bool sb_audit_log_full(const struct sb_audit_log *l); /* the next put would be -ENOBUFS */
SB_MUST_CHECK int sb_audit_log_end(struct sb_audit_log *l, struct sb_err *err);
void sb_audit_log_abort(struct sb_audit_log *l); /* instead of end: nothing is written */
/* Make what was written durable. Blocks on the disk. */
SB_MUST_CHECK int sb_audit_log_sync(struct sb_audit_log *l, struct sb_err *err);
/* Sign the head of what is durable, unless another writer's is newer. @ret: what was signed; may be
 * NULL. Implies sync. */
SB_MUST_CHECK int sb_audit_log_sign(struct sb_audit_log *l, struct sb_audit_head *ret,
				    struct sb_err *err);
/* Whether there is something that is not durable; that no head covers. */
bool sb_audit_log_dirty(const struct sb_audit_log *l);
bool sb_audit_log_unsigned(const struct sb_audit_log *l);

#endif
