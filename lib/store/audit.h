#ifndef SB_STORE_AUDIT_H
#define SB_STORE_AUDIT_H
/*
 * One record of the audit log: an event as its source gives it, the canonical line that is stored,
 * and the message that carries an event to sendbox-auditd. Bytes in, structs out: no descriptor, no
 * hash. docs/protocol/audit.md is the description; the format of version 1 never changes.
 */
#include "base/buf.h"
#include "base/err.h"

#define SB_AUDIT_VERSION 1
#define SB_AUDIT_HASH 32
#define SB_AUDIT_LINE_MAX 16384 /* bytes of a record, its newline included */
/* Bytes of escaped text; what is longer is cut, and the record says "cut":true. */
#define SB_AUDIT_ACTION_MAX 32 /* a-z 0-9 - */
#define SB_AUDIT_SUBJECT_MAX 2048
#define SB_AUDIT_RULE_MAX 1024
#define SB_AUDIT_REASON_MAX 512
#define SB_AUDIT_KEY_MAX 32 /* a-z 0-9 _ */
#define SB_AUDIT_VALUE_MAX 3072 /* text of one value; of all words of a list */
#define SB_AUDIT_DATA_MAX 20 /* entries, one of them kept for "cut" */
#define SB_AUDIT_DATA_BYTES 8192 /* of all of them as JSON */

enum sb_audit_kind {
	SB_AUDIT_KIND_NONE = 0, /* never stored */
	SB_AUDIT_SESSION,
	SB_AUDIT_PLAN,
	SB_AUDIT_COMMAND,
	SB_AUDIT_NETWORK,
	SB_AUDIT_FILE,
	SB_AUDIT_SSH,
	SB_AUDIT_SECRET,
	SB_AUDIT_APPROVAL,
	SB_AUDIT_POLICY,
	SB_AUDIT_SNAPSHOT,
	SB_AUDIT_PROVENANCE,
	SB_AUDIT_KEY,
	SB_AUDIT_KINDS
};
enum sb_audit_verdict {
	SB_AUDIT_NONE = 0, /* nothing was decided */
	SB_AUDIT_DENY,
	SB_AUDIT_ALLOW,
	SB_AUDIT_ASK,
	SB_AUDIT_ERROR,
	SB_AUDIT_VERDICTS
};
const char *sb_audit_kind_name(enum sb_audit_kind k);
const char *sb_audit_verdict_name(enum sb_audit_verdict v);
/* Return: 0 (no kind), SB_AUDIT_VERDICTS (no verdict) for any other word. */
enum sb_audit_kind sb_audit_kind_of(const char *name);
enum sb_audit_verdict sb_audit_verdict_of(const char *name);

enum sb_audit_type { SB_AUDIT_TEXT = 1, SB_AUDIT_NUM, SB_AUDIT_BOOL, SB_AUDIT_LIST };
struct sb_audit_value {
	const char *key; /* borrowed; static text */
	enum sb_audit_type type;
	const char *p; /* TEXT: @len bytes; LIST: words, each with its NUL, @len bytes in all */
	size_t len;
	uint64_t num; /* NUM, BOOL */
};
/* What happened. Everything is borrowed; texts are NUL-terminated or NULL (= ""), any bytes. */
struct sb_audit_event {
	uint64_t time_ns; /* CLOCK_REALTIME; 0 = when it is written */
	uint8_t session[16]; /* all zero = outside of a session */
	enum sb_audit_kind kind;
	enum sb_audit_verdict verdict;
	const char *action; /* what: "start", "connect", "grant" */
	const char *subject; /* of what: host and port, path, program */
	const char *rule; /* text of the rule that decided */
	const char *reason;
	struct sb_audit_value data[SB_AUDIT_DATA_MAX]; /* each key once, in any order */
	size_t n_data;
};
/* One more value, unless @s is NULL. Too many: an assertion. */
void sb_audit_put(struct sb_audit_event *e, const char *key, const char *s);
void sb_audit_put_num(struct sb_audit_event *e, const char *key, uint64_t num);
void sb_audit_put_bool(struct sb_audit_event *e, const char *key, bool on);
void sb_audit_put_list(struct sb_audit_event *e, const char *key, const char *words, size_t len);

/*
 * sb_audit_encode - the canonical line of an event, its newline included
 * @prev: leaf hash of the record before; 32 zeros for record 0
 * Return: bytes at @out (never 0); -EINVAL: kind, verdict, action or a key is none; -EFBIG.
 */
SB_MUST_CHECK int sb_audit_encode(const struct sb_audit_event *e, uint64_t seq,
				  const uint8_t prev[SB_AUDIT_HASH], char out[SB_AUDIT_LINE_MAX]);

/* The bytes of a JSON string between its quotes, or of a value: borrowed from the line. */
struct sb_audit_str {
	const char *p;
	size_t len;
};
struct sb_audit_record {
	uint64_t seq;
	uint64_t time_ns;
	uint8_t prev[SB_AUDIT_HASH];
	uint8_t session[16]; /* all zero = none */
	enum sb_audit_kind kind;
	enum sb_audit_verdict verdict;
	struct sb_audit_str action;
	struct sb_audit_str subject;
	struct sb_audit_str rule;
	struct sb_audit_str reason;
	struct sb_audit_str data; /* with its braces */
};
/*
 * sb_audit_parse - take a line apart; only what sb_audit_encode can have written is a record
 * @line: @len bytes without the newline
 * Return: 0; -EBADMSG with the place of the fault.
 */
SB_MUST_CHECK int sb_audit_parse(const char *line, size_t len, struct sb_audit_record *ret,
				 struct sb_err *err);
/*
 * The value of @key in a parsed record's data.
 * TEXT: @p, @len as in sb_audit_str; LIST: the JSON array. Return: false when there is none.
 */
bool sb_audit_get(const struct sb_audit_record *r, const char *key, struct sb_audit_value *ret);
/* Number or bool of @key; 0 when there is none. */
uint64_t sb_audit_get_num(const struct sb_audit_record *r, const char *key);
/* Text for people and for JSON writers: no control character is in it, bytes are \xNN, a backslash
 * is two. NUL-terminated, cut to @cap. Return: its length. */
size_t sb_audit_text(const struct sb_audit_str *s, char *out, size_t cap);
/* The next word of a list. @at: 0 at first. Return: false at the end. */
bool sb_audit_word(const struct sb_audit_value *list, size_t *at, struct sb_audit_str *ret);
/* The bytes that were given to the encoder (@text: from sb_audit_text). Return: their number. */
size_t sb_audit_bytes(const char *text, char *out, size_t cap);

/* An event as a message (payload of SB_IPC_AUDIT_APPEND, after its head), at most SB_AUDIT_PACK_MAX
 * bytes: longer texts are cut. The unpacked event borrows from @p. Return: bytes; -EINVAL. */
#define SB_AUDIT_PACK_MAX 4000
SB_MUST_CHECK int sb_audit_pack(const struct sb_audit_event *e, uint8_t out[SB_AUDIT_PACK_MAX]);
/* Return: 0; -EBADMSG. */
SB_MUST_CHECK int sb_audit_unpack(const uint8_t *p, size_t len, struct sb_audit_event *ret);

#endif
