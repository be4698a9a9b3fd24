/* Texts and patterns of approvals, and their names. */
#include <errno.h>
#include <string.h>

#include "approval.h"

bool sb_appr_text_ok(const char *s, size_t max)
{
	size_t n = s ? strnlen(s, max + 1) : 0;

	if (n == 0 || n > max || s[0] == ' ' || s[n - 1] == ' ')
		return false;
	for (size_t i = 0; i < n; i++)
		if (s[i] < 0x20 || s[i] > 0x7e)
			return false;
	return true;
}

int sb_appr_pattern_check(const char *pattern, struct sb_err *err)
{
	bool own = false;

	if (!sb_appr_text_ok(pattern, SB_APPR_PATTERN_MAX))
		return sb_err_set(err, -EINVAL, "a pattern is 1 to %d printable characters",
				  SB_APPR_PATTERN_MAX);
	for (const char *p = pattern; *p; p++) {
		if (*p == '\\' && !*++p)
			return sb_err_set(err, -EINVAL, "the pattern ends with a backslash");
		own |= (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9');
	}
	return own ? 0 : sb_err_set(err, -EINVAL, "the pattern \"%.100s\" stands for everything",
				    pattern);
}

/* Whether "*" may swallow it. */
static bool inside(char c)
{
	return c != ' ' && c != ':';
}

/*
 * Two stars may wait at a time: the last "**" and the last "*" after it. Going back to them is
 * enough, so the work is bounded by the product of the two lengths.
 */
bool sb_appr_pattern_match(const char *p, const char *s)
{
	const char *wide_p = NULL;
	const char *wide_s = NULL;
	const char *star_p = NULL;
	const char *star_s = NULL;

	for (;;) {
		if (p[0] == '*' && p[1] == '*') {
			while (*p == '*')
				p++;
			wide_p = p;
			wide_s = s;
			star_p = NULL;
			continue;
		}
		if (p[0] == '*') {
			star_p = ++p;
			star_s = s;
			continue;
		}
		if (!*s && !*p)
			return true;
		if (*s && *p && (*p == '?' ? inside(*s) : (*p == '\\' ? p[1] : *p) == *s)) {
			p += *p == '\\' ? 2 : 1;
			s++;
			continue;
		}
		if (star_p && *star_s && inside(*star_s)) {
			p = star_p;
			s = ++star_s;
			continue;
		}
		if (!wide_p || !*wide_s)
			return false;
		p = wide_p;
		s = ++wide_s;
		star_p = NULL;
	}
}

const char *sb_appr_kind_name(enum sb_appr_kind k)
{
	static const char *const names[] = { NULL, "command", "network", "ssh" };

	return (unsigned int)k < SB_ARRAY_LEN(names) ? names[k] : NULL;
}

static const struct {
	const char *name;
	const char *remedy;
} reasons[SB_APPR_N_REASONS] = {
	[SB_APPR_BAD] = { "malformed", "it cannot be asked about: too long, or not printable" },
	[SB_APPR_REPLAY] = { "replay", "the request was made already" },
	[SB_APPR_DENY_RULE] = { "deny-rule", "sendbox grants ls shows the rule, sendbox grants revoke "
					     "removes it" },
	[SB_APPR_RECENT] = { "refused-recently", "it was refused less than a minute ago: wait until that is over" },
	[SB_APPR_OFF] = { "approvals-off", "approvals.mode is never: set it to auto or wait, or change "
					   "the rule" },
	[SB_APPR_BUDGET] = { "too-many-questions", "approvals.questions is used up for this session" },
	[SB_APPR_RATE] = { "too-many-questions-a-minute", "approvals.rate limits them" },
	[SB_APPR_FULL] = { "too-many-open-questions", "answer those that are open: sendbox approvals" },
	[SB_APPR_NOBODY] = { "nobody-to-ask", "run it at a terminal, watch with sendbox approvals "
					      "--follow, let approvals.hook answer, or set approvals.mode: wait" },
	[SB_APPR_ANSWER_NO] = { "the-answer-was-no", "it was asked and refused" },
	[SB_APPR_TIMEOUT] = { "no-answer-in-time", "approvals.timeout is how long an answer may take" },
	[SB_APPR_HOOK_FAILED] = { "hook-failed", "approvals.hook gave no answer that counts" },
	[SB_APPR_GONE] = { "asker-gone", "who asked did not wait" },
	[SB_APPR_ENDED] = { "session-ended", "the session ended first" },
	[SB_APPR_GRANT] = { "grant", "allowed by a grant: sendbox grants ls" },
	[SB_APPR_ANSWER_YES] = { "the-answer-was-yes", "it was asked and allowed" },
	[SB_APPR_UNRECORDED] = { "not-recorded", "it cannot be recorded: sendbox audit verify tells more" },
};

const char *sb_appr_reason_name(enum sb_appr_reason r)
{
	return (unsigned int)r < SB_APPR_N_REASONS ? reasons[r].name : "malformed";
}

const char *sb_appr_remedy(enum sb_appr_reason r)
{
	return (unsigned int)r < SB_APPR_N_REASONS ? reasons[r].remedy : "";
}

static const char *const answers[SB_APPR_N_ANSWERS] = {
	"deny", "deny-forever", "once", "session", "pattern", "forever", "pattern-forever",
};

const char *sb_appr_answer_name(enum sb_appr_answer a)
{
	return (unsigned int)a < SB_APPR_N_ANSWERS ? answers[a] : "deny";
}

int sb_appr_answer_parse(const char *s, enum sb_appr_answer *ret)
{
	for (size_t i = 0; i < SB_APPR_N_ANSWERS; i++) {
		if (strcmp(s, answers[i]) == 0) {
			*ret = (enum sb_appr_answer)i;
			return 0;
		}
	}
	return -EINVAL;
}
