#ifndef SB_CORE_APPROVAL_H
#define SB_CORE_APPROVAL_H
/*
 * What becomes of a verdict of "ask": the pure state machine. Time, and the numbers of persistent
 * grants, are arguments; docs/approvals.md has it as a table, tests/unit/core/test_approval.c tries
 * every event in every state.
 *
 * A question is asked (sb_appr_ask), and decided at once by what is known already, or it opens and
 * waits for one event: an answer, the end of its time, the loss of everybody who could answer, the
 * end of who asked, the end of the session. What is not allowed by one of these is refused.
 */
#include "base/err.h"

#define SB_APPR_SUBJECT_MAX 2000 /* bytes; what is longer is refused, not cut */
#define SB_APPR_RULE_MAX 500
#define SB_APPR_PATTERN_MAX 512
#define SB_APPR_MAX_GRANTS 1024  /* and as many deny rules */
#define SB_APPR_MAX_OPEN 16
#define SB_APPR_MAX_RECENT 64    /* refused a moment ago */
#define SB_APPR_MAX_RATE 240
#define SB_APPR_RECENT_NS 60000000000ULL /* a refusal stands that long for the same subject */

enum sb_appr_kind {
	SB_APPR_NONE = 0,
	SB_APPR_COMMAND = 1, /* words of a command */
	SB_APPR_NETWORK = 2, /* NAME:PORT/PROTO */
	SB_APPR_SSH = 3,     /* a signature */
	SB_APPR_N_KINDS,
};
const char *sb_appr_kind_name(enum sb_appr_kind k); /* "command", ...; NULL */

enum sb_appr_reason {
	SB_APPR_BAD = 0,      /* "malformed": no kind, no subject, too long, control characters */
	SB_APPR_REPLAY,       /* "replay": that request was there already */
	SB_APPR_DENY_RULE,    /* "deny-rule": somebody said never */
	SB_APPR_RECENT,       /* "refused-recently" */
	SB_APPR_OFF,          /* "approvals-off": approvals.mode is never */
	SB_APPR_BUDGET,       /* "too-many-questions": the session has asked its share */
	SB_APPR_RATE,         /* "too-many-questions-a-minute" */
	SB_APPR_FULL,         /* "too-many-open-questions" */
	SB_APPR_NOBODY,       /* "nobody-to-ask" */
	SB_APPR_ANSWER_NO,    /* "the-answer-was-no" */
	SB_APPR_TIMEOUT,      /* "no-answer-in-time" */
	SB_APPR_HOOK_FAILED,  /* "hook-failed" */
	SB_APPR_GONE,         /* "asker-gone" */
	SB_APPR_ENDED,        /* "session-ended" */
	SB_APPR_GRANT,        /* "grant": allowed by what was said before */
	SB_APPR_ANSWER_YES,   /* "the-answer-was-yes" */
	SB_APPR_UNRECORDED,   /* "not-recorded": the audit log does not take it */
	SB_APPR_N_REASONS,
};
const char *sb_appr_reason_name(enum sb_appr_reason r);
/* What to do about a refusal; one line for people. */
const char *sb_appr_remedy(enum sb_appr_reason r);

enum sb_appr_answer {
	SB_APPR_NO = 0,        /* this one */
	SB_APPR_NEVER = 1,     /* and for ever: a deny rule */
	SB_APPR_ONCE = 2,      /* this one */
	SB_APPR_SESSION = 3,   /* this subject in this session */
	SB_APPR_PATTERN = 4,   /* what matches the pattern, in this session */
	SB_APPR_FOREVER = 5,   /* this subject, until the grant expires or is revoked */
	SB_APPR_PATTERN_FOREVER = 6,
	SB_APPR_N_ANSWERS,
};
const char *sb_appr_answer_name(enum sb_appr_answer a); /* "deny", "once", ... */
/* Return: 0; -EINVAL. */
SB_MUST_CHECK int sb_appr_answer_parse(const char *s, enum sb_appr_answer *ret);

/* Who could answer a question. */
#define SB_APPR_TERMINAL 1U /* of the session */
#define SB_APPR_HOOK 2U
#define SB_APPR_WATCHER 4U  /* another terminal that looks at the questions */
#define SB_APPR_LATER 8U    /* approvals.mode is wait: somebody may come; never lost */
#define SB_APPR_ROUTES 15U

enum sb_appr_mode { SB_APPR_MODE_NEVER = 0, SB_APPR_MODE_AUTO = 1, SB_APPR_MODE_WAIT = 2 };
struct sb_appr_conf {
	enum sb_appr_mode mode;
	bool session_grants;
	bool pattern_grants;
	bool forever_grants;
	uint64_t timeout_ns;    /* > 0 */
	uint32_t questions;     /* a session */
	uint32_t rate;          /* a minute, 1 .. SB_APPR_MAX_RATE */
	uint64_t grant_s;       /* life of what is for ever; > 0 */
	uint32_t grant_uses;    /* of a grant for the session or longer; 0 = any number */
};
struct sb_appr_now {
	uint64_t mono_ns; /* for time-outs: does not go back */
	uint64_t unix_s;  /* for what outlives the session */
};
struct sb_appr_request {
	uint64_t id;         /* of who asks; grows with each */
	uint32_t source;     /* 0 .. 7: each counts for itself */
	enum sb_appr_kind kind;
	const char *subject; /* exact; printable ASCII */
	const char *rule;    /* that asks: its text and place */
	uint8_t plan[32];    /* digest of this session's plan */
	uint8_t policy[32];  /* digest of what every session with these rules has in common */
};
struct sb_appr_grant {
	int64_t id;         /* of the store; 0 = of this session alone */
	bool deny;
	bool pattern;       /* subject is one */
	enum sb_appr_kind kind;
	char subject[SB_APPR_SUBJECT_MAX + 1];
	char rule[SB_APPR_RULE_MAX + 1]; /* "" in a deny rule: whatever rule asks */
	uint8_t bound[32];  /* id > 0: policy digest; else the plan's. Deny rules: zero */
	uint64_t created_s;
	uint64_t expires_s; /* first second that it is over; 0 = with the session, or (deny) never */
	uint32_t uses;      /* left; 0 = not counted */
	uint64_t question;  /* of this session alone: that left it */
};
enum sb_appr_verdict { SB_APPR_REFUSED = 0, SB_APPR_ALLOWED = 1, SB_APPR_ASKED = 2 };
struct sb_appr_result {
	enum sb_appr_verdict verdict;
	enum sb_appr_reason reason;
	uint64_t question;  /* number from 1; 0 = none was opened */
	int64_t grant;      /* that allowed or denied it, when it is of the store */
	bool used_up;       /* and that was its last use: it is to be removed there */
	uint32_t uses_left; /* of it, when it counts them */
	uint64_t left_by;   /* when it is of this session alone: the question whose answer left it */
	char pattern[SB_APPR_PATTERN_MAX + 1]; /* of it; "" = it is for one subject */
};
struct sb_appr_question {
	uint64_t number;
	uint64_t id; /* of the request */
	uint32_t source;
	uint32_t routes; /* who may still answer */
	enum sb_appr_kind kind;
	char subject[SB_APPR_SUBJECT_MAX + 1];
	char rule[SB_APPR_RULE_MAX + 1];
	uint8_t plan[32];
	uint8_t policy[32];
	uint64_t deadline_ns;
	uint64_t asked_s;
};

struct sb_appr; /* one session's approvals */
SB_MUST_CHECK int sb_appr_new(const struct sb_appr_conf *c, struct sb_appr **ret);
struct sb_appr *sb_appr_free(struct sb_appr *a);
static inline void sb_appr_freep(struct sb_appr **a)
{
	(void)sb_appr_free(*a);
}
#define sb_autoappr SB_CLEANUP(sb_appr_freep)

/* A grant or deny rule of the store, copied. Return: 0; -EINVAL; -E2BIG; -ENOMEM. */
SB_MUST_CHECK int sb_appr_load(struct sb_appr *a, const struct sb_appr_grant *g);
/* Forget what was loaded (id > 0); what belongs to this session stays. */
void sb_appr_unload(struct sb_appr *a);

/*
 * sb_appr_ask - replay, deny rule, refused a moment ago, grant, mode, budget, rate, room, somebody
 * there; in this order
 * @routes: who is there to answer
 */
struct sb_appr_result sb_appr_ask(struct sb_appr *a, const struct sb_appr_request *q,
				  uint32_t routes, struct sb_appr_now now);

#define SB_APPR_LATE 1    /* it is decided already; nothing changes */
#define SB_APPR_UNKNOWN 2 /* there never was such a question */
/*
 * sb_appr_answer - somebody's answer to an open question
 * @pattern: of the two answers that have one, else NULL; must match the question's subject
 * @grant: NULL, or receives what is to be kept in the store: a grant or deny rule with id 0 that
 *         the caller saves and then gives to sb_appr_load with its id
 * @ret_keep: whether @grant was filled
 * An answer that comes after the question's time is late, even when nobody noticed the time yet.
 * Return: 0: decided, @ret says how; SB_APPR_LATE; SB_APPR_UNKNOWN; -EPERM: the configuration has
 * no such answers, the question stays open; -EINVAL: the pattern; -E2BIG, -ENOMEM: stays open.
 */
SB_MUST_CHECK int sb_appr_answer(struct sb_appr *a, uint64_t question, enum sb_appr_answer answer,
				 const char *pattern, struct sb_appr_now now,
				 struct sb_appr_grant *grant, bool *ret_keep,
				 struct sb_appr_result *ret);
/* The answer to @question does not count after all: whatever it left in the session goes. */
void sb_appr_forget(struct sb_appr *a, uint64_t question);
/* Decide an open question without an answer: HOOK_FAILED, GONE, ENDED. Return: as above. */
SB_MUST_CHECK int sb_appr_refuse(struct sb_appr *a, uint64_t question, enum sb_appr_reason why,
				 struct sb_appr_now now, struct sb_appr_result *ret);
/* One that could answer cannot any more. Return: 0: others can; 1: refused, see @ret; LATE is 0. */
SB_MUST_CHECK int sb_appr_lost(struct sb_appr *a, uint64_t question, uint32_t route,
			       struct sb_appr_now now, struct sb_appr_result *ret);
/* The next open question whose time is over, refused. Return: its number; 0: none. */
uint64_t sb_appr_late(struct sb_appr *a, struct sb_appr_now now, struct sb_appr_question *was,
		      struct sb_appr_result *ret);
/* When sb_appr_late is worth calling. Return: time; 0: no open question. */
uint64_t sb_appr_deadline(const struct sb_appr *a);
/* Open questions in order: the first with a number > @after. NULL: none. */
const struct sb_appr_question *sb_appr_next(const struct sb_appr *a, uint64_t after);
/* By its number, if it is open. */
const struct sb_appr_question *sb_appr_get(const struct sb_appr *a, uint64_t number);
/* Further people look: open questions may be answered by them too. */
void sb_appr_gained(struct sb_appr *a, uint32_t route);

/* approval_match.c */
/*
 * A pattern of subjects: "*" any bytes but blanks and colons, "**" any bytes, "?" one such byte,
 * "\" the next byte as it is. It needs a letter or digit of its own.
 * Return: 0; -EINVAL with text.
 */
SB_MUST_CHECK int sb_appr_pattern_check(const char *pattern, struct sb_err *err);
bool sb_appr_pattern_match(const char *pattern, const char *subject);
/* 1..max bytes of printable ASCII, blanks within. */
bool sb_appr_text_ok(const char *s, size_t max);

#endif
