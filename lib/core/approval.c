/*
 * Theory of operation. Three states of a question, told apart by its number alone: never given
 * (number > last), open (in the table), decided (neither). There is no way back: what is decided
 * stays so, and an answer that comes then is late. A refusal by a person or by time stands for the
 * same subject for a while, so that a program which tries again and again does not become a flood of
 * questions.
 */
#include "approval.h"

#include <errno.h>
#include <string.h>

#define SOURCES 8
#define MINUTE_NS 60000000000ULL

struct recent {
	enum sb_appr_kind kind;
	uint64_t until_ns; /* 0 = free */
	char subject[SB_APPR_SUBJECT_MAX + 1];
};

struct sb_appr {
	struct sb_appr_conf conf;
	struct sb_appr_grant *grants[2 * SB_APPR_MAX_GRANTS]; /* owned; deny rules among them */
	size_t n_grants;
	size_t n_of[2]; /* grants, deny rules */
	struct sb_appr_question open[SB_APPR_MAX_OPEN]; /* number 0 = free */
	struct recent recent[SB_APPR_MAX_RECENT];
	size_t next_recent;
	uint64_t asked_ns[SB_APPR_MAX_RATE]; /* ring of the last conf.rate openings; 0 = none */
	size_t next_asked;
	uint64_t seen[SOURCES]; /* highest id of each source */
	uint64_t last;          /* number of the last question */
};

int sb_appr_new(const struct sb_appr_conf *c, struct sb_appr **ret)
{
	struct sb_appr *a;

	if (c->mode > SB_APPR_MODE_WAIT || c->timeout_ns == 0 || c->rate == 0 ||
	    c->rate > SB_APPR_MAX_RATE || c->grant_s == 0)
		return -EINVAL;
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	a->conf = *c;
	*ret = a;
	return 0;
}

struct sb_appr *sb_appr_free(struct sb_appr *a)
{
	if (a) {
		for (size_t i = 0; i < a->n_grants; i++)
			free(a->grants[i]);
		free(a);
	}
	return NULL;
}

/* ---- grants ---- */

static bool grant_ok(const struct sb_appr_grant *g)
{
	static const uint8_t zero[32];

	if (g->kind <= SB_APPR_NONE || g->kind >= SB_APPR_N_KINDS ||
	    !sb_appr_text_ok(g->subject, SB_APPR_SUBJECT_MAX) ||
	    (g->rule[0] && !sb_appr_text_ok(g->rule, SB_APPR_RULE_MAX)))
		return false;
	if (g->deny) /* exact, and about nothing but the subject */
		return !g->pattern && !g->rule[0] && memcmp(g->bound, zero, 32) == 0 && g->uses == 0;
	return memcmp(g->bound, zero, 32) != 0 &&
	       (g->id == 0 || g->expires_s > g->created_s) &&
	       (!g->pattern || sb_appr_pattern_check(g->subject, NULL) == 0);
}

static int add(struct sb_appr *a, const struct sb_appr_grant *g)
{
	struct sb_appr_grant *copy;

	if (a->n_of[g->deny] == SB_APPR_MAX_GRANTS)
		return -E2BIG;
	copy = malloc(sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	*copy = *g;
	a->grants[a->n_grants++] = copy;
	a->n_of[g->deny]++;
	return 0;
}

static void drop(struct sb_appr *a, size_t i)
{
	a->n_of[a->grants[i]->deny]--;
	free(a->grants[i]);
	a->grants[i] = a->grants[--a->n_grants];
}

int sb_appr_load(struct sb_appr *a, const struct sb_appr_grant *g)
{
	return g->id > 0 && grant_ok(g) ? add(a, g) : -EINVAL;
}

void sb_appr_unload(struct sb_appr *a)
{
	for (size_t i = a->n_grants; i > 0; i--)
		if (a->grants[i - 1]->id > 0)
			drop(a, i - 1);
}

void sb_appr_forget(struct sb_appr *a, uint64_t question)
{
	for (size_t i = a->n_grants; question != 0 && i > 0; i--)
		if (a->grants[i - 1]->question == question)
			drop(a, i - 1);
}

/* A clock that stands before the grant was made says nothing about when it is over. */
static bool in_time(const struct sb_appr_grant *g, struct sb_appr_now now)
{
	return g->expires_s == 0 || (now.unix_s >= g->created_s && now.unix_s < g->expires_s);
}

static bool matches(const struct sb_appr_grant *g, const struct sb_appr_request *q,
		    struct sb_appr_now now)
{
	if (g->kind != q->kind)
		return false;
	if (g->deny)
		return (g->expires_s == 0 || now.unix_s < g->expires_s) &&
		       strcmp(g->subject, q->subject) == 0;
	return in_time(g, now) && strcmp(g->rule, q->rule) == 0 &&
	       memcmp(g->bound, g->id > 0 ? q->policy : q->plan, 32) == 0 &&
	       (g->pattern ? sb_appr_pattern_match(g->subject, q->subject)
			   : strcmp(g->subject, q->subject) == 0);
}

static struct sb_appr_result refused(enum sb_appr_reason why)
{
	return (struct sb_appr_result){ .verdict = SB_APPR_REFUSED, .reason = why };
}

/* Return: whether a deny rule or a grant decides. */
static bool by_grant(struct sb_appr *a, const struct sb_appr_request *q, bool deny,
		     struct sb_appr_now now, struct sb_appr_result *ret)
{
	for (size_t i = 0; i < a->n_grants; i++) {
		struct sb_appr_grant *g = a->grants[i];

		if (g->deny != deny || !matches(g, q, now))
			continue;
		*ret = (struct sb_appr_result){ .verdict = deny ? SB_APPR_REFUSED : SB_APPR_ALLOWED,
						.reason = deny ? SB_APPR_DENY_RULE : SB_APPR_GRANT,
						.grant = g->id,
						.left_by = g->id > 0 ? 0 : g->question };
		if (g->pattern)
			memcpy(ret->pattern, g->subject, SB_MIN(strlen(g->subject), sizeof(ret->pattern) - 1));
		if (g->uses > 0) {
			ret->uses_left = --g->uses;
			ret->used_up = g->uses == 0;
			if (ret->used_up)
				drop(a, i);
		}
		return true;
	}
	return false;
}

/* ---- questions ---- */

static bool request_ok(const struct sb_appr_request *q)
{
	return q->kind > SB_APPR_NONE && q->kind < SB_APPR_N_KINDS && q->source < SOURCES &&
	       sb_appr_text_ok(q->subject, SB_APPR_SUBJECT_MAX) &&
	       sb_appr_text_ok(q->rule, SB_APPR_RULE_MAX);
}

static bool was_refused(const struct sb_appr *a, const struct sb_appr_request *q, uint64_t now_ns)
{
	for (size_t i = 0; i < SB_APPR_MAX_RECENT; i++) {
		const struct recent *r = &a->recent[i];

		if (r->until_ns > now_ns && r->kind == q->kind && strcmp(r->subject, q->subject) == 0)
			return true;
	}
	return false;
}

/* Whether the last minute has seen its share. */
static bool too_fast(const struct sb_appr *a, uint64_t now_ns)
{
	uint64_t then = a->asked_ns[a->next_asked]; /* the oldest of the last `rate` openings */

	return then != 0 && now_ns - then < MINUTE_NS;
}

static struct sb_appr_question *room(struct sb_appr *a)
{
	for (size_t i = 0; i < SB_APPR_MAX_OPEN; i++)
		if (a->open[i].number == 0)
			return &a->open[i];
	return NULL;
}

static struct sb_appr_result open_question(struct sb_appr *a, const struct sb_appr_request *q,
					   uint32_t routes, struct sb_appr_now now)
{
	struct sb_appr_question *o = room(a);

	if (!o)
		return refused(SB_APPR_FULL);
	if (routes == 0)
		return refused(SB_APPR_NOBODY);
	a->asked_ns[a->next_asked] = now.mono_ns ? now.mono_ns : 1;
	a->next_asked = (a->next_asked + 1) % a->conf.rate;
	*o = (struct sb_appr_question){ .number = ++a->last,
					.id = q->id,
					.source = q->source,
					.routes = routes,
					.kind = q->kind,
					.deadline_ns = now.mono_ns + a->conf.timeout_ns,
					.asked_s = now.unix_s };
	memcpy(o->subject, q->subject, strlen(q->subject) + 1);
	memcpy(o->rule, q->rule, strlen(q->rule) + 1);
	memcpy(o->plan, q->plan, 32);
	memcpy(o->policy, q->policy, 32);
	return (struct sb_appr_result){ .verdict = SB_APPR_ASKED, .question = o->number };
}

struct sb_appr_result sb_appr_ask(struct sb_appr *a, const struct sb_appr_request *q,
				  uint32_t routes, struct sb_appr_now now)
{
	struct sb_appr_result ret;

	if (!request_ok(q))
		return refused(SB_APPR_BAD);
	if (q->id <= a->seen[q->source])
		return refused(SB_APPR_REPLAY);
	a->seen[q->source] = q->id;
	if (by_grant(a, q, true, now, &ret))
		return ret;
	if (was_refused(a, q, now.mono_ns))
		return refused(SB_APPR_RECENT);
	if (by_grant(a, q, false, now, &ret))
		return ret;
	if (a->conf.mode == SB_APPR_MODE_NEVER)
		return refused(SB_APPR_OFF);
	if (a->last >= a->conf.questions)
		return refused(SB_APPR_BUDGET);
	if (too_fast(a, now.mono_ns))
		return refused(SB_APPR_RATE);
	routes &= SB_APPR_ROUTES & ~SB_APPR_LATER;
	if (a->conf.mode == SB_APPR_MODE_WAIT)
		routes |= SB_APPR_LATER;
	return open_question(a, q, routes, now);
}

static struct sb_appr_question *find(struct sb_appr *a, uint64_t number)
{
	for (size_t i = 0; number != 0 && i < SB_APPR_MAX_OPEN; i++)
		if (a->open[i].number == number)
			return &a->open[i];
	return NULL;
}

static int state_of(const struct sb_appr *a, uint64_t number)
{
	return number != 0 && number <= a->last ? SB_APPR_LATE : SB_APPR_UNKNOWN;
}

/* The end of an open question. */
static struct sb_appr_result decide(struct sb_appr *a, struct sb_appr_question *o,
				    enum sb_appr_verdict verdict, enum sb_appr_reason why,
				    struct sb_appr_now now)
{
	const struct sb_appr_result ret = { .verdict = verdict, .reason = why,
					    .question = o->number };

	if (why == SB_APPR_ANSWER_NO || why == SB_APPR_TIMEOUT || why == SB_APPR_HOOK_FAILED) {
		struct recent *r = &a->recent[a->next_recent];

		a->next_recent = (a->next_recent + 1) % SB_APPR_MAX_RECENT;
		r->kind = o->kind;
		r->until_ns = now.mono_ns + SB_APPR_RECENT_NS;
		memcpy(r->subject, o->subject, sizeof(r->subject));
	}
	o->number = 0;
	return ret;
}

static bool permitted(const struct sb_appr_conf *c, enum sb_appr_answer answer)
{
	switch (answer) {
	case SB_APPR_NO:
	case SB_APPR_NEVER:
	case SB_APPR_ONCE:
		return true;
	case SB_APPR_SESSION:
		return c->session_grants;
	case SB_APPR_PATTERN:
		return c->pattern_grants;
	case SB_APPR_FOREVER:
		return c->forever_grants;
	case SB_APPR_PATTERN_FOREVER:
		return c->pattern_grants && c->forever_grants;
	case SB_APPR_N_ANSWERS:
	default:
		return false;
	}
}

/* What the answer leaves behind. */
static struct sb_appr_grant *left(const struct sb_appr *a, const struct sb_appr_question *o,
				  enum sb_appr_answer answer, const char *pattern,
				  struct sb_appr_now now)
{
	bool forever = answer == SB_APPR_FOREVER || answer == SB_APPR_PATTERN_FOREVER;
	struct sb_appr_grant *g = calloc(1, sizeof(*g));
	const char *subject = pattern ? pattern : o->subject;

	if (!g)
		return NULL;
	g->kind = o->kind;
	g->created_s = now.unix_s;
	memcpy(g->subject, subject, strlen(subject) + 1);
	g->deny = answer == SB_APPR_NEVER;
	if (g->deny)
		return g;
	g->pattern = pattern != NULL;
	g->uses = a->conf.grant_uses;
	memcpy(g->rule, o->rule, sizeof(g->rule));
	memcpy(g->bound, forever ? o->policy : o->plan, 32);
	g->question = forever ? 0 : o->number;
	g->expires_s = forever ? now.unix_s + a->conf.grant_s : 0;
	return g;
}

static bool has_pattern(enum sb_appr_answer answer)
{
	return answer == SB_APPR_PATTERN || answer == SB_APPR_PATTERN_FOREVER;
}

int sb_appr_answer(struct sb_appr *a, uint64_t question, enum sb_appr_answer answer,
		   const char *pattern, struct sb_appr_now now, struct sb_appr_grant *grant,
		   bool *ret_keep, struct sb_appr_result *ret)
{
	struct sb_appr_question *o = find(a, question);
	sb_autofree struct sb_appr_grant *g = NULL;
	bool no = answer == SB_APPR_NO || answer == SB_APPR_NEVER;
	bool here = answer == SB_APPR_SESSION || answer == SB_APPR_PATTERN;
	int r = 0;

	*ret_keep = false;
	if (!o || now.mono_ns >= o->deadline_ns)
		return o ? SB_APPR_LATE : state_of(a, question);
	if (!permitted(&a->conf, answer))
		return -EPERM;
	if (has_pattern(answer) != (pattern != NULL) ||
	    (pattern && (sb_appr_pattern_check(pattern, NULL) < 0 ||
			 !sb_appr_pattern_match(pattern, o->subject))))
		return -EINVAL;
	if (answer != SB_APPR_NO && answer != SB_APPR_ONCE) {
		g = left(a, o, answer, pattern, now);
		if (!g)
			return -ENOMEM;
		if (here)
			r = add(a, g);
		else if (grant)
			*grant = *g;
		if (r < 0)
			return r;
		*ret_keep = !here && grant;
	}
	*ret = decide(a, o, no ? SB_APPR_REFUSED : SB_APPR_ALLOWED,
		      no ? SB_APPR_ANSWER_NO : SB_APPR_ANSWER_YES, now);
	return 0;
}

int sb_appr_refuse(struct sb_appr *a, uint64_t question, enum sb_appr_reason why,
		   struct sb_appr_now now, struct sb_appr_result *ret)
{
	struct sb_appr_question *o = find(a, question);

	if (!o)
		return state_of(a, question);
	if (why >= SB_APPR_GRANT) /* that would be no refusal */
		why = SB_APPR_BAD;
	*ret = decide(a, o, SB_APPR_REFUSED, why, now);
	return 0;
}

int sb_appr_lost(struct sb_appr *a, uint64_t question, uint32_t route, struct sb_appr_now now,
		 struct sb_appr_result *ret)
{
	struct sb_appr_question *o = find(a, question);

	if (!o)
		return 0;
	o->routes &= ~(route & ~SB_APPR_LATER);
	if (o->routes != 0)
		return 0;
	*ret = decide(a, o, SB_APPR_REFUSED, SB_APPR_NOBODY, now);
	return 1;
}

uint64_t sb_appr_late(struct sb_appr *a, struct sb_appr_now now, struct sb_appr_question *was,
		      struct sb_appr_result *ret)
{
	for (size_t i = 0; i < SB_APPR_MAX_OPEN; i++) {
		struct sb_appr_question *o = &a->open[i];

		if (o->number == 0 || now.mono_ns < o->deadline_ns)
			continue;
		*was = *o;
		*ret = decide(a, o, SB_APPR_REFUSED, SB_APPR_TIMEOUT, now);
		return was->number;
	}
	return 0;
}

uint64_t sb_appr_deadline(const struct sb_appr *a)
{
	uint64_t first = 0;

	for (size_t i = 0; i < SB_APPR_MAX_OPEN; i++)
		if (a->open[i].number != 0 && (first == 0 || a->open[i].deadline_ns < first))
			first = a->open[i].deadline_ns;
	return first;
}

const struct sb_appr_question *sb_appr_next(const struct sb_appr *a, uint64_t after)
{
	const struct sb_appr_question *next = NULL;

	for (size_t i = 0; i < SB_APPR_MAX_OPEN; i++) {
		const struct sb_appr_question *o = &a->open[i];

		if (o->number > after && (!next || o->number < next->number))
			next = o;
	}
	return next;
}

const struct sb_appr_question *sb_appr_get(const struct sb_appr *a, uint64_t number)
{
	const struct sb_appr_question *next = number ? sb_appr_next(a, number - 1) : NULL;

	return next && next->number == number ? next : NULL;
}

void sb_appr_gained(struct sb_appr *a, uint32_t route)
{
	for (size_t i = 0; i < SB_APPR_MAX_OPEN; i++)
		if (a->open[i].number != 0)
			a->open[i].routes |= route & SB_APPR_ROUTES & ~SB_APPR_LATER;
}
