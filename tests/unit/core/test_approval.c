/* Every event in every state, by table; then what grants bind, limits, floods, patterns. */
#include "core/approval.h"

#include <stdlib.h>

#include "t.h"

#define S 1000000000ULL

static const struct sb_appr_conf usual = { .mode = SB_APPR_MODE_AUTO,
					   .session_grants = true,
					   .pattern_grants = true,
					   .forever_grants = true,
					   .timeout_ns = 30 * S,
					   .questions = 1000,
					   .rate = 240,
					   .grant_s = 1000 };
static uint64_t next_id;

static struct sb_appr_now at(uint64_t s)
{
	return (struct sb_appr_now){ .mono_ns = s * S, .unix_s = 1000000 + s };
}

static struct sb_appr_request req(const char *subject)
{
	struct sb_appr_request q = { .id = ++next_id, .source = 1, .kind = SB_APPR_NETWORK,
				     .subject = subject, .rule = "ask *.example.com (f:3)" };

	memset(q.plan, 0x11, 32);
	memset(q.policy, 0x22, 32);
	return q;
}

static struct sb_appr *fresh(const struct sb_appr_conf *c)
{
	struct sb_appr *a = NULL;

	next_id = 0;
	if (sb_appr_new(c, &a) < 0)
		abort();
	return a;
}

static struct sb_appr_result ask(struct sb_appr *a, const char *subject, uint64_t s)
{
	struct sb_appr_request q = req(subject);

	return sb_appr_ask(a, &q, SB_APPR_TERMINAL, at(s));
}

/* ---- the table ---- */

enum state { NEVER_GIVEN, OPEN_ONE, OPEN_TWO_ROUTES, ALLOWED, REFUSED, TIMED_OUT, N_STATES };
enum event {
	E_NO, E_NEVER, E_ONCE, E_SESSION, E_PATTERN, E_FOREVER, E_PATTERN_FOREVER,
	E_PATTERN_MISSING, E_PATTERN_OTHER, E_PATTERN_ALL, E_STRAY_PATTERN, E_BAD_ANSWER,
	E_HOOK_FAILED, E_GONE, E_ENDED, E_REFUSE_AS_GRANT, E_LOST_TERMINAL, E_LOST_OTHER, E_TIME,
	E_AFTER_TIME_YES, N_EVENTS
};
struct cell {
	int code;
	enum sb_appr_verdict verdict; /* of code 0 */
	enum sb_appr_reason reason;
};
#define YES { 0, SB_APPR_ALLOWED, SB_APPR_ANSWER_YES }
#define NO { 0, SB_APPR_REFUSED, SB_APPR_ANSWER_NO }
#define INVALID { -EINVAL, SB_APPR_REFUSED, SB_APPR_BAD }
static const struct cell when_open[N_EVENTS] = {
	[E_NO] = NO,
	[E_NEVER] = NO,
	[E_ONCE] = YES,
	[E_SESSION] = YES,
	[E_PATTERN] = YES,
	[E_FOREVER] = YES,
	[E_PATTERN_FOREVER] = YES,
	[E_PATTERN_MISSING] = INVALID,
	[E_PATTERN_OTHER] = INVALID,
	[E_PATTERN_ALL] = INVALID,
	[E_STRAY_PATTERN] = INVALID,
	[E_BAD_ANSWER] = { -EPERM, SB_APPR_REFUSED, SB_APPR_BAD },
	[E_HOOK_FAILED] = { 0, SB_APPR_REFUSED, SB_APPR_HOOK_FAILED },
	[E_GONE] = { 0, SB_APPR_REFUSED, SB_APPR_GONE },
	[E_ENDED] = { 0, SB_APPR_REFUSED, SB_APPR_ENDED },
	[E_REFUSE_AS_GRANT] = { 0, SB_APPR_REFUSED, SB_APPR_BAD },
	[E_LOST_TERMINAL] = { 1, SB_APPR_REFUSED, SB_APPR_NOBODY },
	[E_LOST_OTHER] = { -1, SB_APPR_REFUSED, SB_APPR_BAD }, /* stays open */
	[E_TIME] = { 0, SB_APPR_REFUSED, SB_APPR_TIMEOUT },
	[E_AFTER_TIME_YES] = { SB_APPR_LATE, SB_APPR_REFUSED, SB_APPR_BAD },
};

static int fire(struct sb_appr *a, uint64_t n, enum event e, struct sb_appr_result *ret)
{
	static const struct {
		enum sb_appr_answer answer;
		const char *pattern;
	} answers[] = { { SB_APPR_NO, NULL },
			{ SB_APPR_NEVER, NULL },
			{ SB_APPR_ONCE, NULL },
			{ SB_APPR_SESSION, NULL },
			{ SB_APPR_PATTERN, "*.example.com:443" },
			{ SB_APPR_FOREVER, NULL },
			{ SB_APPR_PATTERN_FOREVER, "*.example.com:443" },
			{ SB_APPR_PATTERN, NULL },
			{ SB_APPR_PATTERN, "*.example.org:443" },
			{ SB_APPR_PATTERN, "**" },
			{ SB_APPR_ONCE, "*.example.com:443" },
			{ SB_APPR_N_ANSWERS, NULL } };
	struct sb_appr_question was;
	struct sb_appr_grant g;
	bool keep;

	*ret = (struct sb_appr_result){ 0 };
	if (e == E_HOOK_FAILED)
		return sb_appr_refuse(a, n, SB_APPR_HOOK_FAILED, at(1), ret);
	if (e == E_GONE)
		return sb_appr_refuse(a, n, SB_APPR_GONE, at(1), ret);
	if (e == E_ENDED)
		return sb_appr_refuse(a, n, SB_APPR_ENDED, at(1), ret);
	if (e == E_REFUSE_AS_GRANT)
		return sb_appr_refuse(a, n, SB_APPR_ANSWER_YES, at(1), ret);
	if (e == E_LOST_TERMINAL)
		return sb_appr_lost(a, n, SB_APPR_TERMINAL, at(1), ret);
	if (e == E_LOST_OTHER)
		return sb_appr_lost(a, n, SB_APPR_HOOK | SB_APPR_LATER, at(1), ret);
	if (e == E_TIME)
		return sb_appr_late(a, at(30), &was, ret) == n ? 0 : -1;
	if (e == E_AFTER_TIME_YES)
		return sb_appr_answer(a, n, SB_APPR_ONCE, NULL, at(30), &g, &keep, ret);
	return sb_appr_answer(a, n, answers[e].answer, answers[e].pattern, at(1), &g, &keep, ret);
}

static struct sb_appr *in_state(enum state s, uint64_t *ret_n)
{
	struct sb_appr *a = fresh(&usual);
	struct sb_appr_request q = req("a.example.com:443");
	struct sb_appr_result r;

	*ret_n = 1;
	if (s == NEVER_GIVEN)
		return a;
	r = sb_appr_ask(a, &q, s == OPEN_TWO_ROUTES ? SB_APPR_TERMINAL | SB_APPR_WATCHER
						    : SB_APPR_TERMINAL, at(0));
	CHECK_EQ(r.verdict, SB_APPR_ASKED);
	CHECK_EQ(r.question, 1);
	if (s == ALLOWED)
		CHECK_EQ(fire(a, 1, E_ONCE, &r), 0);
	if (s == REFUSED)
		CHECK_EQ(fire(a, 1, E_NO, &r), 0);
	if (s == TIMED_OUT)
		CHECK_EQ(fire(a, 1, E_TIME, &r), 0);
	return a;
}

static void try_cell(enum state s, enum event e)
{
	uint64_t n;
	sb_autoappr struct sb_appr *a = in_state(s, &n);
	bool open = s == OPEN_ONE || s == OPEN_TWO_ROUTES;
	bool lost = e == E_LOST_TERMINAL || e == E_LOST_OTHER;
	struct cell want = when_open[e];
	struct sb_appr_result r;
	int code = fire(a, n, e, &r);

	if (!open) { /* nothing changes what is decided, or was never asked */
		want = (struct cell){ lost ? 0 : e == E_TIME ? -1 :
				      s == NEVER_GIVEN ? SB_APPR_UNKNOWN : SB_APPR_LATE,
				      SB_APPR_REFUSED, SB_APPR_BAD };
	} else if (e == E_LOST_OTHER || (e == E_LOST_TERMINAL && s == OPEN_TWO_ROUTES)) {
		want = (struct cell){ 0, SB_APPR_REFUSED, SB_APPR_BAD };
	}
	if (code != want.code || r.verdict != want.verdict || r.reason != want.reason)
		t_fail(__FILE__, __LINE__, "state %d event %d: code %d verdict %d reason %s", (int)s,
		       (int)e, code, (int)r.verdict, sb_appr_reason_name(r.reason));
	if (open) {
		bool still = lost ? code == 0 : code < 0 || code == SB_APPR_LATE;

		CHECK_EQ(sb_appr_get(a, n) != NULL, still);
	} else {
		CHECK(!sb_appr_get(a, n));
	}
}

TEST(every_event_in_every_state)
{
	for (int s = 0; s < N_STATES; s++)
		for (int e = 0; e < N_EVENTS; e++)
			try_cell((enum state)s, (enum event)e);
}

TEST(nothing_is_allowed_but_by_a_yes_or_a_grant)
{
	for (int s = 0; s < N_STATES; s++)
		for (int e = 0; e < N_EVENTS; e++)
			for (int f = 0; f < N_EVENTS; f++) {
				uint64_t n;
				sb_autoappr struct sb_appr *a = in_state((enum state)s, &n);
				struct sb_appr_result one;
				struct sb_appr_result two;
				bool yes = e >= E_ONCE && e <= E_PATTERN_FOREVER;
				bool yes2 = f >= E_ONCE && f <= E_PATTERN_FOREVER;

				(void)fire(a, n, (enum event)e, &one);
				(void)fire(a, n, (enum event)f, &two);
				CHECK(one.verdict != SB_APPR_ALLOWED || yes);
				CHECK(two.verdict != SB_APPR_ALLOWED || yes2);
				/* once only */
				CHECK(one.verdict != SB_APPR_ALLOWED || two.verdict != SB_APPR_ALLOWED);
			}
}

/* ---- asking ---- */

TEST(order_of_what_decides)
{
	struct sb_appr_conf never = usual;
	sb_autoappr struct sb_appr *a = fresh(&usual);
	sb_autoappr struct sb_appr *off = NULL;
	struct sb_appr_grant deny = { .id = 7, .deny = true, .kind = SB_APPR_NETWORK,
				      .subject = "b.example.com:443" };
	struct sb_appr_grant yes = { .id = 8, .kind = SB_APPR_NETWORK, .subject = "*.example.com:443",
				     .pattern = true, .rule = "ask *.example.com (f:3)",
				     .created_s = 1000000, .expires_s = 1000100 };
	struct sb_appr_request q;
	struct sb_appr_result r;

	memset(yes.bound, 0x22, 32);
	CHECK_EQ(sb_appr_load(a, &deny), 0);
	CHECK_EQ(sb_appr_load(a, &yes), 0);
	r = ask(a, "b.example.com:443", 1);
	CHECK_EQ(r.reason, SB_APPR_DENY_RULE);
	CHECK_EQ(r.grant, 7);
	CHECK_STR(r.pattern, "");
	r = ask(a, "c.example.com:443", 1);
	CHECK_EQ(r.verdict, SB_APPR_ALLOWED);
	CHECK_EQ(r.grant, 8);
	CHECK_EQ(r.left_by, 0);
	CHECK_STR(r.pattern, "*.example.com:443");
	q = req("c.example.com:443");
	q.id = 1;
	CHECK_EQ(sb_appr_ask(a, &q, SB_APPR_TERMINAL, at(1)).reason, SB_APPR_REPLAY);
	q = req("d.example.org:443");
	CHECK_EQ(sb_appr_ask(a, &q, 0, at(1)).reason, SB_APPR_NOBODY);
	q = req("d.example.org:443");
	CHECK_EQ(sb_appr_ask(a, &q, SB_APPR_LATER, at(1)).reason, SB_APPR_NOBODY);
	never.mode = SB_APPR_MODE_NEVER;
	off = fresh(&never);
	CHECK_EQ(sb_appr_load(off, &yes), 0);
	CHECK_EQ(ask(off, "x.example.org:443", 1).reason, SB_APPR_OFF);
	CHECK_EQ(ask(off, "c.example.com:443", 1).verdict, SB_APPR_ALLOWED);
	never.mode = SB_APPR_MODE_WAIT;
	off = sb_appr_free(off);
	off = fresh(&never);
	q = req("d.example.org:443");
	r = sb_appr_ask(off, &q, 0, at(1));
	CHECK_EQ(r.verdict, SB_APPR_ASKED);
	CHECK_EQ(sb_appr_lost(off, r.question, SB_APPR_ROUTES, at(2), &r), 0);
}

TEST(malformed_requests)
{
	sb_autoappr struct sb_appr *a = fresh(&usual);
	static char longer[SB_APPR_SUBJECT_MAX + 2];
	struct sb_appr_request q;

	memset(longer, 'a', SB_APPR_SUBJECT_MAX + 1);
	CHECK_EQ(ask(a, "", 1).reason, SB_APPR_BAD);
	CHECK_EQ(ask(a, longer, 1).reason, SB_APPR_BAD);
	longer[SB_APPR_SUBJECT_MAX] = 0;
	CHECK_EQ(ask(a, longer, 1).verdict, SB_APPR_ASKED);
	CHECK_EQ(ask(a, "a\033[2Jb", 1).reason, SB_APPR_BAD);
	CHECK_EQ(ask(a, "a\nb", 1).reason, SB_APPR_BAD);
	CHECK_EQ(ask(a, "\xc3\xa4", 1).reason, SB_APPR_BAD);
	CHECK_EQ(ask(a, " a", 1).reason, SB_APPR_BAD);
	q = req("a");
	q.kind = SB_APPR_NONE;
	CHECK_EQ(sb_appr_ask(a, &q, 1, at(1)).reason, SB_APPR_BAD);
	q = req("a");
	q.source = 8;
	CHECK_EQ(sb_appr_ask(a, &q, 1, at(1)).reason, SB_APPR_BAD);
	q = req("a");
	q.rule = "";
	CHECK_EQ(sb_appr_ask(a, &q, 1, at(1)).reason, SB_APPR_BAD);
	q = req("a");
	q.id = 0;
	CHECK_EQ(sb_appr_ask(a, &q, 1, at(1)).reason, SB_APPR_REPLAY);
}

TEST(floods)
{
	struct sb_appr_conf c = usual;
	sb_autoappr struct sb_appr *a = NULL;
	struct sb_appr_result r = { 0 };
	char subject[32];

	c.questions = 5;
	c.rate = 3;
	a = fresh(&c);
	for (int i = 0; i < 3; i++) {
		(void)snprintf(subject, sizeof(subject), "h%d:1", i);
		CHECK_EQ(ask(a, subject, 10).verdict, SB_APPR_ASKED);
	}
	CHECK_EQ(ask(a, "h3:1", 69).reason, SB_APPR_RATE);
	CHECK_EQ(ask(a, "h3:1", 70).verdict, SB_APPR_ASKED);
	CHECK_EQ(ask(a, "h4:1", 71).verdict, SB_APPR_ASKED);
	CHECK_EQ(ask(a, "h5:1", 500).reason, SB_APPR_BUDGET);
	a = sb_appr_free(a);
	a = fresh(&usual);
	for (int i = 0; i < SB_APPR_MAX_OPEN; i++) {
		(void)snprintf(subject, sizeof(subject), "h%d:1", i);
		CHECK_EQ(ask(a, subject, 10).verdict, SB_APPR_ASKED);
	}
	CHECK_EQ(ask(a, "more:1", 10).reason, SB_APPR_FULL);
	/* a no stands for a minute, for the same subject alone */
	CHECK_EQ(fire(a, 3, E_NO, &r), 0);
	CHECK_EQ(ask(a, "h2:1", 59).reason, SB_APPR_RECENT);
	CHECK_EQ(ask(a, "h2:2", 59).verdict, SB_APPR_ASKED);
	CHECK_EQ(fire(a, 4, E_ONCE, &r), 0);
	CHECK_EQ(ask(a, "h2:1", 61).verdict, SB_APPR_ASKED);
	/* and what was allowed once is asked again */
	CHECK_EQ(fire(a, 5, E_ONCE, &r), 0);
	CHECK_EQ(ask(a, "h3:1", 11).verdict, SB_APPR_ASKED);
}

/* ---- an answer that turns out not to count ---- */

TEST(forgotten)
{
	sb_autoappr struct sb_appr *a = fresh(&usual);
	struct sb_appr_result r = ask(a, "a:1", 0);
	struct sb_appr_result other;
	struct sb_appr_grant g;
	bool keep = false;

	CHECK_EQ(sb_appr_answer(a, r.question, SB_APPR_SESSION, NULL, at(1), &g, &keep, &r), 0);
	other = ask(a, "b:1", 1);
	CHECK_EQ(sb_appr_answer(a, other.question, SB_APPR_SESSION, NULL, at(1), &g, &keep, &other), 0);
	CHECK_EQ(ask(a, "a:1", 2).reason, SB_APPR_GRANT); /* control */
	sb_appr_forget(a, r.question);
	CHECK_EQ(ask(a, "a:1", 3).verdict, SB_APPR_ASKED);
	CHECK_EQ(ask(a, "b:1", 4).reason, SB_APPR_GRANT);
	g = (struct sb_appr_grant){ .id = 5, .kind = SB_APPR_NETWORK, .deny = true, .subject = "c:1" };
	CHECK_EQ(sb_appr_load(a, &g), 0);
	sb_appr_forget(a, 0); /* of no question: nothing of the store */
	CHECK_EQ(ask(a, "c:1", 5).reason, SB_APPR_DENY_RULE);
}

/* ---- what a grant binds ---- */

static void bound(enum sb_appr_answer answer, const char *pattern)
{
	struct sb_appr *a = fresh(&usual);
	struct sb_appr_result r = ask(a, "a.example.com:443", 0);
	struct sb_appr_request q;
	struct sb_appr_grant g;
	bool keep = false;
	bool forever = answer == SB_APPR_FOREVER || answer == SB_APPR_PATTERN_FOREVER;

	CHECK_EQ(sb_appr_answer(a, r.question, answer, pattern, at(1), &g, &keep, &r), 0);
	CHECK_EQ(keep, forever);
	if (keep) {
		g.id = 3;
		CHECK_EQ(sb_appr_load(a, &g), 0);
	}
	CHECK_EQ(ask(a, "a.example.com:443", 2).reason, SB_APPR_GRANT);
	CHECK_EQ(ask(a, "b.example.com:443", 2).verdict, pattern ? SB_APPR_ALLOWED : SB_APPR_ASKED);
	CHECK_EQ(ask(a, "a.example.com:22", 2).verdict, SB_APPR_ASKED);
	CHECK_EQ(ask(a, "a.example.com:443.evil.org:443", 2).verdict, SB_APPR_ASKED);
	q = req("a.example.com:443");
	q.rule = "ask *.com (f:4)";
	CHECK_EQ(sb_appr_ask(a, &q, 1, at(2)).verdict, SB_APPR_ASKED);
	q = req("a.example.com:443");
	q.kind = SB_APPR_SSH;
	CHECK_EQ(sb_appr_ask(a, &q, 1, at(2)).verdict, SB_APPR_ASKED);
	q = req("a.example.com:443");
	q.plan[31] ^= 1;
	CHECK_EQ(sb_appr_ask(a, &q, 1, at(2)).verdict, forever ? SB_APPR_ALLOWED : SB_APPR_ASKED);
	q = req("a.example.com:443");
	q.policy[31] ^= 1;
	CHECK_EQ(sb_appr_ask(a, &q, 1, at(2)).verdict, forever ? SB_APPR_ASKED : SB_APPR_ALLOWED);
	if (forever) {
		CHECK_EQ(ask(a, "a.example.com:443", 1000).verdict, SB_APPR_ALLOWED);
		CHECK_EQ(ask(a, "a.example.com:443", 1001).verdict, SB_APPR_ASKED); /* expired */
		q = req("a.example.com:443");
		CHECK_EQ(sb_appr_ask(a, &q, 1, (struct sb_appr_now){ .mono_ns = 2000 * S, .unix_s = 999999 })
				 .verdict, SB_APPR_ASKED); /* the clock was turned back */
		sb_appr_unload(a);
		CHECK_EQ(ask(a, "a.example.com:443", 5).verdict, SB_APPR_ASKED);
	} else {
		sb_appr_unload(a);
		CHECK_EQ(ask(a, "a.example.com:443", 100000).verdict, SB_APPR_ALLOWED);
	}
	(void)sb_appr_free(a);
}

TEST(grants_bind)
{
	bound(SB_APPR_SESSION, NULL);
	bound(SB_APPR_PATTERN, "*.example.com:443");
	bound(SB_APPR_FOREVER, NULL);
	bound(SB_APPR_PATTERN_FOREVER, "*.example.com:443");
}

TEST(once_is_once)
{
	sb_autoappr struct sb_appr *a = fresh(&usual);
	struct sb_appr_result r = ask(a, "a:1", 0);

	CHECK_EQ(fire(a, r.question, E_ONCE, &r), 0);
	CHECK_EQ(ask(a, "a:1", 1).verdict, SB_APPR_ASKED);
}

TEST(never_is_exact_and_wins)
{
	sb_autoappr struct sb_appr *a = fresh(&usual);
	struct sb_appr_result r = ask(a, "a.example.com:443", 0);
	struct sb_appr_grant g;
	struct sb_appr_request q;
	bool keep = false;

	CHECK_EQ(sb_appr_answer(a, r.question, SB_APPR_NEVER, NULL, at(1), &g, &keep, &r), 0);
	CHECK(keep && g.deny && g.expires_s == 0);
	CHECK_STR(g.subject, "a.example.com:443");
	g.id = 9;
	CHECK_EQ(sb_appr_load(a, &g), 0);
	q = req("a.example.com:443"); /* another rule, another plan, another policy, years later */
	q.rule = "other";
	memset(q.plan, 9, 32);
	memset(q.policy, 9, 32);
	CHECK_EQ(sb_appr_ask(a, &q, 1, at(100000000)).reason, SB_APPR_DENY_RULE);
	CHECK_EQ(ask(a, "b.example.com:443", 200).verdict, SB_APPR_ASKED);
}

TEST(uses_are_counted)
{
	struct sb_appr_conf c = usual;
	sb_autoappr struct sb_appr *a = NULL;
	struct sb_appr_result r;

	c.grant_uses = 2;
	a = fresh(&c);
	r = ask(a, "a.example.com:443", 0);
	CHECK_EQ(fire(a, r.question, E_SESSION, &r), 0);
	r = ask(a, "a.example.com:443", 2);
	CHECK(r.verdict == SB_APPR_ALLOWED && !r.used_up && r.uses_left == 1);
	r = ask(a, "a.example.com:443", 2);
	CHECK(r.verdict == SB_APPR_ALLOWED && r.used_up);
	CHECK_EQ(ask(a, "a.example.com:443", 2).verdict, SB_APPR_ASKED);
}

TEST(what_the_configuration_forbids)
{
	for (int bits = 0; bits < 8; bits++)
		for (int e = 0; e < SB_APPR_N_ANSWERS; e++) {
			struct sb_appr_conf c = usual;
			sb_autoappr struct sb_appr *a = NULL;
			struct sb_appr_result r;
			struct sb_appr_grant g;
			bool keep;
			bool may;
			const char *p = e == SB_APPR_PATTERN || e == SB_APPR_PATTERN_FOREVER ? "a:*" : NULL;

			c.session_grants = bits & 1;
			c.pattern_grants = bits & 2;
			c.forever_grants = bits & 4;
			may = e < SB_APPR_SESSION || (e == SB_APPR_SESSION && (bits & 1)) ||
			      (e == SB_APPR_PATTERN && (bits & 2)) ||
			      (e == SB_APPR_FOREVER && (bits & 4)) ||
			      (e == SB_APPR_PATTERN_FOREVER && (bits & 6) == 6);
			a = fresh(&c);
			r = ask(a, "a:1", 0);
			CHECK_EQ(sb_appr_answer(a, 1, (enum sb_appr_answer)e, p, at(1), &g, &keep, &r),
				 may ? 0 : -EPERM);
			CHECK_EQ(sb_appr_get(a, 1) != NULL, !may);
		}
}

TEST(hand_made_grants)
{
	sb_autoappr struct sb_appr *a = fresh(&usual);
	struct sb_appr_grant ok = { .id = 1, .kind = SB_APPR_NETWORK, .subject = "a.b:1",
				    .rule = "r", .bound = { 1 }, .created_s = 5, .expires_s = 6 };
	struct sb_appr_grant g;
	static const uint8_t zero[32];

	CHECK_EQ(sb_appr_load(a, &ok), 0);
#define REFUSED_WITH(change) do { g = ok; change; CHECK_EQ(sb_appr_load(a, &g), -EINVAL); } while (0)
	REFUSED_WITH(g.id = 0);
	REFUSED_WITH(g.id = -1);
	REFUSED_WITH(g.kind = SB_APPR_NONE);
	REFUSED_WITH(g.kind = SB_APPR_N_KINDS);
	REFUSED_WITH(g.subject[0] = 0);
	REFUSED_WITH(g.subject[0] = '\033');
	REFUSED_WITH(g.rule[0] = '\n');
	REFUSED_WITH(memcpy(g.bound, zero, 32));
	REFUSED_WITH(g.expires_s = 0);
	REFUSED_WITH(g.expires_s = 5);
	REFUSED_WITH((memcpy(g.subject, "**", 3), g.pattern = true));
	REFUSED_WITH((g.deny = true));
	REFUSED_WITH((g.deny = true, memcpy(g.bound, zero, 32)));
	REFUSED_WITH((g.deny = true, memcpy(g.bound, zero, 32), g.rule[0] = 0, g.pattern = true));
	/* an empty rule never matches a request, which has one */
	g = ok;
	g.rule[0] = 0;
	memset(g.bound, 0x22, 32);
	g.created_s = 0;
	g.expires_s = 9999999;
	CHECK_EQ(sb_appr_load(a, &g), 0);
	CHECK_EQ(ask(a, "a.b:1", 1).verdict, SB_APPR_ASKED);
}

TEST(open_questions_in_order)
{
	sb_autoappr struct sb_appr *a = fresh(&usual);
	struct sb_appr_result r;
	struct sb_appr_question was;

	CHECK_EQ(sb_appr_deadline(a), 0);
	(void)ask(a, "a:1", 1);
	(void)ask(a, "b:1", 2);
	(void)ask(a, "c:1", 3);
	CHECK_EQ(sb_appr_deadline(a), 31 * S);
	CHECK_EQ(sb_appr_next(a, 0)->number, 1);
	CHECK_EQ(fire(a, 2, E_ONCE, &r), 0);
	(void)ask(a, "d:1", 4);
	CHECK_EQ(sb_appr_next(a, 1)->number, 3);
	CHECK_EQ(sb_appr_next(a, 3)->number, 4);
	CHECK(!sb_appr_next(a, 4));
	CHECK_EQ(sb_appr_late(a, at(30), &was, &r), 0);
	CHECK_EQ(sb_appr_late(a, at(33), &was, &r), 1);
	CHECK_STR(was.subject, "a:1");
	CHECK_EQ(sb_appr_late(a, at(33), &was, &r), 3);
	CHECK_EQ(sb_appr_late(a, at(33), &was, &r), 0);
	sb_appr_gained(a, SB_APPR_WATCHER | SB_APPR_LATER);
	CHECK_EQ(sb_appr_next(a, 0)->routes, SB_APPR_TERMINAL | SB_APPR_WATCHER);
}

/* ---- patterns and names ---- */

TEST(patterns)
{
	static const struct {
		const char *p, *s;
		bool yes;
	} t[] = {
		{ "a.b:1", "a.b:1", true },	      { "a.b:1", "a.b:12", false },
		{ "*.b:1", "a.b:1", true },	      { "*.b:1", "x.a.b:1", true },
		{ "*.b:1", "b:1", false },	      { "*.b:1", "evil:1.b:1", false },
		{ "*.b:*", "a.b:443", true },	      { "git push *", "git push origin", true },
		{ "git push *", "git push a b", false }, { "git push **", "git push a b", true },
		{ "git push *", "git pushy a", false }, { "git ** main", "git push -f x main", true },
		{ "git ** main", "git push main x", false }, { "a*b*c", "aXbYbZc", true },
		{ "a*b*c", "aXbYbZ", false },	      { "a?c", "abc", true },
		{ "a?c", "a c", false },	      { "a\\*c", "a*c", true },
		{ "a\\*c", "abc", false },	      { "a**", "a", true },
		{ "**a", "a", true },		      { "**a", "ba", true },
		{ "**a*b", "ca d:axb", true },	      { "*a:*b", "aa:b", true },
		{ "a***b", "a x:b", true },	      { "a", "", false },
		{ "a*", "a:", false },
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(t); i++)
		if (sb_appr_pattern_match(t[i].p, t[i].s) != t[i].yes)
			t_fail(__FILE__, __LINE__, "%s on %s", t[i].p, t[i].s);
	CHECK_EQ(sb_appr_pattern_check("*.example.com:443", NULL), 0);
	CHECK_EQ(sb_appr_pattern_check("", NULL), -EINVAL);
	CHECK_EQ(sb_appr_pattern_check("*", NULL), -EINVAL);
	CHECK_EQ(sb_appr_pattern_check("**:**", NULL), -EINVAL);
	CHECK_EQ(sb_appr_pattern_check("? *.*", NULL), -EINVAL);
	CHECK_EQ(sb_appr_pattern_check("a\\", NULL), -EINVAL);
	CHECK_EQ(sb_appr_pattern_check("a\n", NULL), -EINVAL);
}

/* The plain way to say it, with going back everywhere. */
static bool slow(const char *p, const char *s)
{
	if (!*p)
		return !*s;
	if (p[0] == '*' && p[1] == '*') {
		const char *rest = p;

		while (*rest == '*')
			rest++;
		for (;; s++) {
			if (slow(rest, s))
				return true;
			if (!*s)
				return false;
		}
	}
	if (p[0] == '*') {
		for (;; s++) {
			if (slow(p + 1, s))
				return true;
			if (!*s || *s == ' ' || *s == ':')
				return false;
		}
	}
	return *s && *s == *p && slow(p + 1, s + 1);
}

TEST(patterns_as_the_plain_way_says)
{
	static const char pa[] = "ab:*";
	static const char sa[] = "ab:";
	char p[7];
	char s[7];
	unsigned int seed = 1;

	for (int i = 0; i < 200000; i++) {
		size_t np = 0;
		size_t ns = 0;

		seed = seed * 1103515245U + 12345U;
		for (unsigned int x = seed >> 8; np < 6 && x % 7 != 0; x /= 5)
			p[np++] = pa[x % 4];
		seed = seed * 1103515245U + 12345U;
		for (unsigned int x = seed >> 8; ns < 6 && x % 7 != 0; x /= 5)
			s[ns++] = sa[x % 3];
		p[np] = s[ns] = 0;
		if (sb_appr_pattern_match(p, s) != slow(p, s)) {
			t_fail(__FILE__, __LINE__, "%s on %s", p, s);
			return;
		}
	}
}

TEST(names)
{
	enum sb_appr_answer a;

	for (int i = 0; i < SB_APPR_N_ANSWERS; i++) {
		CHECK_EQ(sb_appr_answer_parse(sb_appr_answer_name((enum sb_appr_answer)i), &a), 0);
		CHECK_EQ(a, i);
	}
	CHECK_EQ(sb_appr_answer_parse("yes", &a), -EINVAL);
	for (int i = 0; i < SB_APPR_N_REASONS; i++) {
		CHECK(strlen(sb_appr_reason_name((enum sb_appr_reason)i)) > 0);
		CHECK(strlen(sb_appr_remedy((enum sb_appr_reason)i)) > 0);
	}
	CHECK_STR(sb_appr_kind_name(SB_APPR_COMMAND), "command");
	CHECK(!sb_appr_kind_name(SB_APPR_NONE));
}

TEST(refused_configurations)
{
	struct sb_appr_conf c = usual;
	struct sb_appr *a = NULL;

	c.timeout_ns = 0;
	CHECK_EQ(sb_appr_new(&c, &a), -EINVAL);
	c = usual;
	c.rate = SB_APPR_MAX_RATE + 1;
	CHECK_EQ(sb_appr_new(&c, &a), -EINVAL);
	c = usual;
	c.grant_s = 0;
	CHECK_EQ(sb_appr_new(&c, &a), -EINVAL);
	CHECK(!a);
}

TEST(no_memory)
{
	T_EVERY_FAULT(n) {
		struct sb_appr *a = NULL;
		struct sb_appr_result r = { 0 };
		struct sb_appr_grant g;
		bool keep;
		int k;

		next_id = 0;
		t_fault_arm(n);
		k = sb_appr_new(&usual, &a);
		if (k == 0) {
			r = ask(a, "a:1", 0);
			k = sb_appr_answer(a, r.question, SB_APPR_SESSION, NULL, at(1), &g, &keep, &r);
			CHECK_EQ(sb_appr_get(a, 1) != NULL, k < 0); /* nothing is half decided */
			CHECK_EQ(r.verdict == SB_APPR_ALLOWED, k == 0);
		}
		t_fault_disarm();
		a = sb_appr_free(a);
		if (!t_fault_fired())
			break;
		CHECK_EQ(k, -ENOMEM);
	}
}
