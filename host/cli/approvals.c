#include "approvals_i.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "approve_note.h"
#include "base/fd.h"
#include "bundle_local.h"
#include "base/log.h"
#include "crypto/crypto.h"
#include "grants.h"
#include "net_text.h"

#define S_NS 1000000000ULL

/* ---- configuration ---- */

static int hook_words(const struct cfg *cfg, struct approvals_conf *c, struct sb_err *err)
{
	const struct cfg_value *v;
	const char *home = getenv("HOME");

	for (size_t i = 0; cfg && (v = cfg_item(cfg, "approvals.hook", i)) != NULL; i++) {
		if (i == APPROVALS_HOOK_WORDS)
			return sb_err_set(err, -E2BIG, "approvals.hook: more than %d words",
					  APPROVALS_HOOK_WORDS);
		if (i == 0 && strncmp(v->text, "~/", 2) == 0 && home) {
			if (asprintf(&c->hook[i], "%s/%s", home, v->text + 2) < 0)
				c->hook[i] = NULL;
		} else {
			c->hook[i] = strdup(v->text);
		}
		if (!c->hook[i])
			return sb_err_set(err, -ENOMEM, "out of memory");
	}
	if (c->hook[0] && c->hook[0][0] != '/')
		return sb_err_set(err, -EINVAL, "approvals.hook: \"%.200s\": the program's whole path, please",
				  c->hook[0]);
	return 0;
}

int approvals_conf_read(const struct cfg *cfg, struct approvals_conf *ret, struct sb_err *err)
{
	struct approvals_conf c = { 0 };
	const char *mode = cfg ? cfg_str(cfg, "approvals.mode", "auto") : "auto";
	int r;

	c.appr.mode = strcmp(mode, "auto") == 0	  ? SB_APPR_MODE_AUTO
		      : strcmp(mode, "wait") == 0 ? SB_APPR_MODE_WAIT
						  : SB_APPR_MODE_NEVER;
#define INT(key, or) (cfg ? cfg_int(cfg, "approvals." key, or) : (or))
#define BOOL(key, or) (cfg ? cfg_bool(cfg, "approvals." key, or) : (or))
	c.appr.session_grants = BOOL("session_grants", true);
	c.appr.pattern_grants = BOOL("pattern_grants", true);
	c.appr.forever_grants = BOOL("forever_grants", true);
	c.appr.timeout_ns = (uint64_t)INT("timeout", 120000) * 1000000ULL;
	c.appr.questions = (uint32_t)INT("questions", 50);
	c.appr.rate = (uint32_t)INT("rate", 10);
	c.appr.grant_s = (uint64_t)INT("grant_expiry", 90 * 86400000LL) / 1000;
	c.appr.grant_uses = (uint32_t)INT("grant_uses", 0);
	c.hook_ns = (uint64_t)INT("hook_timeout", 30000) * 1000000ULL;
	r = hook_words(cfg, &c, err);
	if (r < 0) {
		approvals_conf_done(&c);
		return r;
	}
	*ret = c;
	return 0;
}

void approvals_conf_done(struct approvals_conf *c)
{
	for (size_t i = 0; i <= APPROVALS_HOOK_WORDS; i++)
		free(c->hook[i]);
	*c = (struct approvals_conf){ 0 };
}

/* ---- what is asked for ---- */

bool approvals_wanted(const struct sb_plan *p)
{
	for (size_t i = 0; i < p->commands.n_rules; i++)
		if (p->commands.rules[i].action == SB_CMD_ASK)
			return true;
	return p->net.n_ask > 0 || p->ssh.ask;
}

int approvals_policy(const struct sb_plan *p, uint8_t ret[32], struct sb_err *err)
{
	struct sb_plan common = *p;
	struct sb_plan_mount mounts[SB_PLAN_MAX_MOUNTS];
	char word[] = "-";
	char *argv[] = { word, NULL };
	sb_autofree char *bytes = NULL;
	size_t len = 0;
	int r;

	memset(common.session, 0, sizeof(common.session));
	common.created_unix_s = 1;
	common.expires_unix_s = 2;
	memset(common.reviewed_sha256, 0, sizeof(common.reviewed_sha256));
	common.argv = argv;
	common.tty = false;
	common.separate_stderr = false;
	common.term = NULL;
	common.env = NULL; /* words of the terminal and of the day */
	common.n_env = 0;
	common.instance = NULL;
	common.upper = (struct sb_plan_upper){ .kind = SB_UPPER_TMPFS };
	common.disk_bytes = 1U << 20;
	/* made and signed here: its content counts, not which key of this host signed it */
	if (strcmp(p->bundle.origin, BUNDLE_LOCAL) == 0)
		memset(common.bundle.key, 0, sizeof(common.bundle.key));
	/* the usual quota is what the disk has free at the moment */
	memcpy(mounts, p->mounts, p->n_mounts * sizeof(*mounts));
	for (size_t i = 0; i < p->n_mounts; i++)
		mounts[i].quota_bytes = mounts[i].quota_inodes = 0;
	common.mounts = mounts;
	r = sb_plan_write(&common, &bytes, &len, err);
	if (r == 0)
		sb_sha256(bytes, len, ret);
	return r;
}

void approvals_escape(const char *in, char *out, size_t cap)
{
	size_t n;

	net_text_escape(in, strlen(in), out, cap);
	n = strlen(out);
	while (n > 0 && out[n - 1] == ' ')
		out[--n] = '\0';
	if (n == 0)
		(void)snprintf(out, cap, "-");
	if (out[0] == ' ')
		out[0] = '_';
}

/* Bytes as printable ones. Return: 0; -E2BIG. */
static int put_word(char *out, size_t *n, const char *p, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		bool plain = p[i] > 0x20 && p[i] < 0x7f && p[i] != '\\';

		if (*n + 4 > SB_APPR_SUBJECT_MAX)
			return -E2BIG;
		if (plain)
			out[(*n)++] = p[i];
		else
			*n += (size_t)snprintf(out + *n, 5, "\\x%02x", (unsigned char)p[i]);
	}
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const char *x = *(const char *const *)a;
	const char *y = *(const char *const *)b;
	size_t n = strcspn(x, "=");
	size_t k = strcspn(y, "=");
	int r = memcmp(x, y, SB_MIN(n, k));

	return r ? r : n < k ? -1 : n > k;
}

/* Each name once, whatever their order was. */
static int put_names(char *out, size_t *n, const char *const *env, size_t n_env)
{
	sb_autofree const char **list = calloc(n_env + 1, sizeof(*list));
	int r = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < n_env; i++)
		list[i] = env[i];
	qsort(list, n_env, sizeof(*list), by_name);
	for (size_t i = 0; r == 0 && i < n_env; i++) {
		if (i > 0 && by_name(&list[i - 1], &list[i]) == 0)
			continue;
		r = put_word(out, n, list[i], strcspn(list[i], "="));
		if (r == 0 && *n + 4 > SB_APPR_SUBJECT_MAX)
			r = -E2BIG;
		if (r == 0)
			*n += (size_t)snprintf(out + *n, 5, "=\\? ");
	}
	return r;
}

int approvals_words(const char *const *argv, const char *const *env, size_t n_env,
		    char out[SB_APPR_SUBJECT_MAX + 1])
{
	size_t n = 0;
	int r = n_env > 0 ? put_names(out, &n, env, n_env) : 0;

	for (size_t i = 0; r == 0 && argv[i]; i++) {
		if (i > 0 && n < SB_APPR_SUBJECT_MAX)
			out[n++] = ' ';
		if (argv[i][0])
			r = put_word(out, &n, argv[i], strlen(argv[i]));
		else if (n + 2 > SB_APPR_SUBJECT_MAX)
			r = -E2BIG;
		else
			out[n++] = '\'', out[n++] = '\'';
	}
	out[n] = '\0';
	return r;
}

int approvals_refused(const struct sb_appr_result *res, const char *subject, const char *rule, const char *remedy,
		      struct sb_err *err)
{
	char own[80];

	if (!remedy && res->reason == SB_APPR_DENY_RULE && res->grant > 0) {
		(void)snprintf(own, sizeof(own), "sendbox grants revoke %lld takes that back", (long long)res->grant);
		remedy = own;
	}
	return sb_err_set(err, -EACCES, "refused to run \"%.130s\": the rule %.160s asks first: not approved (%s): %.120s",
			  subject, rule, sb_appr_reason_name(res->reason), remedy ? remedy : sb_appr_remedy(res->reason));
}

/* ---- engine ---- */

struct sb_appr_now approvals_now(void)
{
	return (struct sb_appr_now){ .mono_ns = sb_now_ns(), .unix_s = sb_real_ns() / S_NS };
}

uint32_t approvals_routes(struct approvals *a)
{
	return (a->ui.present && a->ui.present(a->ui.arg) ? SB_APPR_TERMINAL : 0) |
	       (a->conf.hook[0] ? SB_APPR_HOOK : 0) | (serve_watched(a) ? SB_APPR_WATCHER : 0);
}

void approvals_fill(const struct approvals *a, const struct sb_appr_question *o,
		    struct sb_ipc_appr_question *ret)
{
	const struct sb_appr_conf *c = &a->conf.appr;
	uint64_t now = sb_now_ns();

	*ret = (struct sb_ipc_appr_question){ .number = o->number, .kind = (uint32_t)o->kind };
	ret->left_ms = o->deadline_ns > now ? (o->deadline_ns - now) / 1000000 : 0;
	ret->may = 1U << SB_APPR_NO | 1U << SB_APPR_NEVER | 1U << SB_APPR_ONCE |
		   (c->session_grants ? 1U << SB_APPR_SESSION : 0) |
		   (c->pattern_grants ? 1U << SB_APPR_PATTERN : 0) |
		   (c->forever_grants ? 1U << SB_APPR_FOREVER : 0) |
		   (c->forever_grants && c->pattern_grants ? 1U << SB_APPR_PATTERN_FOREVER : 0);
	memcpy(ret->subject, o->subject, sizeof(o->subject));
	memcpy(ret->rule, o->rule, sizeof(o->rule));
}

/* Each change of the grants replaces their head. Return: whether it did since the last look. */
static bool grants_changed(struct approvals *a)
{
	char path[4200];
	struct stat st = { 0 };
	bool same;

	(void)snprintf(path, sizeof(path), "%s/keys/grants.head", a->d->state);
	(void)stat(path, &st); /* none: all zero */
	same = a->looked && st.st_ino == a->head.st_ino && st.st_size == a->head.st_size &&
	       st.st_mtim.tv_sec == a->head.st_mtim.tv_sec &&
	       st.st_mtim.tv_nsec == a->head.st_mtim.tv_nsec;
	a->looked = true;
	a->head = st;
	return !same;
}

/* The grants as they are now: another process may have revoked some. */
static int load_grants(struct approvals *a)
{
	sb_autogrants struct grants g = { 0 };
	struct sb_err err = { 0 };
	int r;

	if (!grants_changed(a))
		return 0;
	sb_appr_unload(a->appr);
	r = grants_load(a->d, &g, &err);
	if (r < 0) {
		a->looked = false;
		sb_log("grants: %s", err.text);
		return r;
	}
	if (!g.sound)
		sb_log("grants: %s", g.why);
	for (size_t i = 0; i < g.n; i++)
		if ((g.sound || g.g[i].deny) && sb_appr_load(a->appr, &g.g[i]) < 0)
			sb_log("grant %lld does not count: it is malformed", (long long)g.g[i].id);
	return 0;
}

/* ---- who asked ---- */

static struct asked *asked_find(struct approvals *a, uint64_t serial)
{
	for (size_t i = 0; i < APPROVALS_ASKED; i++)
		if (a->asked[i].serial == serial)
			return &a->asked[i];
	return NULL;
}

static void asked_free(struct asked *q)
{
	free(q->subject);
	free(q->rule);
	*q = (struct asked){ 0 };
}

static void tell(struct approvals *a, uint32_t source, uint64_t id, uint64_t number,
		 const struct sb_appr_result *res)
{
	if (source == APPROVALS_FROM_COMMAND && serve_decided(a, id, number, res))
		return;
	a->ui.decided(a->ui.arg, source, id, res);
}

/* The request is decided. */
static void tell_asked(struct approvals *a, uint64_t serial, uint64_t number,
		       const struct sb_appr_result *res)
{
	struct asked *q = asked_find(a, serial);
	uint32_t source;
	uint64_t id;

	if (!q)
		return;
	source = q->source;
	id = q->id;
	asked_free(q);
	tell(a, source, id, number, res);
}

static void on_late(struct sb_timer *t);

static void arm(struct approvals *a)
{
	uint64_t due = sb_appr_deadline(a->appr);
	uint64_t now = sb_now_ns();

	sb_timer_del(&a->late);
	if (due != 0)
		sb_timer_set(a->loop, &a->late, due > now ? due - now : 0, on_late, a);
}

static void ask_waiting(struct approvals *a, const struct sb_appr_question *o);

/* It is on record: tell everybody. */
static void closed(struct approvals *a, const struct sb_appr_question *o, const struct sb_appr_result *final)
{
	hook_stop(a, o->number);
	if (a->shown == o->number) {
		a->shown = 0;
		a->ui.hide(a->ui.arg, o->number);
	}
	serve_closed(a, o->number, final);
	tell_asked(a, o->id, o->number, final);
	arm(a);
	ask_waiting(a, o);
	approvals_present(a);
}

static struct approve_answer record_of(const struct approvals *a, const struct sb_appr_question *o,
				       const struct sb_appr_result *res, const char *by)
{
	return (struct approve_answer){ .session = a->session, .kind = o->kind, .subject = o->subject,
					.rule = o->rule, .res = res, .by = by };
}

static void close_as(struct approvals *a, const struct sb_appr_question *o, const struct sb_appr_result *res,
		     const struct approve_answer *ans)
{
	struct sb_appr_result final = *res;
	struct sb_err err = { 0 };

	/* no record, no yes, and nothing that the yes would leave behind */
	if (approve_note_answer(a->d, ans, &err) < 0) {
		sb_log("the audit log does not take the answer: %s", err.text);
		sb_appr_forget(a->appr, o->number);
		if (final.verdict == SB_APPR_ALLOWED)
			final = (struct sb_appr_result){ .reason = SB_APPR_UNRECORDED,
							 .question = res->question };
	}
	closed(a, o, &final);
}

void approvals_close(struct approvals *a, const struct sb_appr_question *o,
		     const struct sb_appr_result *res, const char *by)
{
	const struct approve_answer ans = record_of(a, o, res, by);

	close_as(a, o, res, &ans);
}

static void on_late(struct sb_timer *t)
{
	struct approvals *a = t->owner;
	struct sb_appr_question was;
	struct sb_appr_result res;

	while (sb_appr_late(a->appr, approvals_now(), &was, &res) != 0)
		approvals_close(a, &was, &res, "time");
	arm(a);
}

void approvals_lost(struct approvals *a, uint64_t number, uint32_t route)
{
	const struct sb_appr_question *o = sb_appr_get(a->appr, number);
	struct sb_appr_question was;
	struct sb_appr_result res;

	if (!o)
		return;
	was = *o;
	if (sb_appr_lost(a->appr, number, route, approvals_now(), &res) == 1)
		approvals_close(a, &was, &res, "nobody");
	else
		approvals_present(a);
}

void approvals_present(struct approvals *a)
{
	const struct sb_appr_question *o = NULL;
	struct sb_ipc_appr_question q;

	if (a->shown != 0)
		return;
	do {
		o = sb_appr_next(a->appr, o ? o->number : 0);
	} while (o && (!(o->routes & SB_APPR_TERMINAL) || hook_runs(a, o->number)));
	if (!o)
		return;
	approvals_fill(a, o, &q);
	a->shown = o->number;
	if (a->ui.show(a->ui.arg, &q) < 0) {
		a->shown = 0;
		approvals_lost(a, q.number, SB_APPR_TERMINAL);
	}
}

static struct sb_appr_result ask_once(struct approvals *a, struct asked *who)
{
	struct sb_appr_request q = { .id = who->serial, .kind = who->kind, .subject = who->subject,
				     .rule = who->rule };

	memcpy(q.plan, a->plan, 32);
	memcpy(q.policy, a->policy, 32);
	(void)load_grants(a); /* without them everything is asked */
	return sb_appr_ask(a->appr, &q, approvals_routes(a), approvals_now());
}

/* By what is known already, or a question opens. */
static void ask(struct approvals *a, struct asked *who)
{
	struct sb_appr_result res = ask_once(a, who);
	struct sb_err err = { 0 };

	who->waits = false;
	while (res.verdict == SB_APPR_ALLOWED && res.grant != 0 && (res.used_up || res.uses_left > 0)) {
		int r = grants_use(a->d, res.grant, &err);

		if (r == 0)
			break;
		if (r == -ENOENT) { /* another session has had its last use: as if it were not there */
			a->looked = false;
			who->serial = ++a->serial;
			res = ask_once(a, who);
			continue;
		}
		sb_log("grant %lld: %s", (long long)res.grant, err.text);
		res = (struct sb_appr_result){ .reason = SB_APPR_BAD };
	}
	if (res.verdict != SB_APPR_ASKED) {
		approvals_known(a, who, &res);
		tell_asked(a, who->serial, 0, &res);
		return;
	}
	arm(a);
	serve_question(a, sb_appr_get(a->appr, res.question));
	if (a->conf.hook[0] && hook_start(a, sb_appr_get(a->appr, res.question)) < 0) {
		struct sb_appr_question was = *sb_appr_get(a->appr, res.question);

		if (sb_appr_refuse(a->appr, was.number, SB_APPR_HOOK_FAILED, approvals_now(), &res) == 0)
			approvals_close(a, &was, &res, "hook");
		return;
	}
	approvals_present(a);
}

static bool is_about(const struct asked *q, enum sb_appr_kind kind, const char *subject,
		     const char *rule)
{
	return q->serial != 0 && q->kind == kind && strcmp(q->subject, subject) == 0 &&
	       strcmp(q->rule, rule) == 0;
}

/* Those who asked the same meanwhile ask again: a grant answers all of them, a yes for once does not. */
static void ask_waiting(struct approvals *a, const struct sb_appr_question *o)
{
	struct sb_appr_question was = *o;

	for (size_t i = 0; i < APPROVALS_ASKED; i++) {
		struct asked *q = &a->asked[i];

		if (!is_about(q, was.kind, was.subject, was.rule) || !q->waits)
			continue;
		ask(a, q);
		if (q->serial != 0) /* a question is open again: the others wait for it */
			return;
	}
}

void approvals_ask(struct approvals *a, uint32_t source, uint64_t id, enum sb_appr_kind kind,
		   const char *subject, const char *rule)
{
	struct sb_appr_result res = { .reason = SB_APPR_BAD };
	struct asked *q = asked_find(a, 0);
	bool waits = false;

	if (source == 0 || source >= SB_ARRAY_LEN(a->seen) || id <= a->seen[source]) {
		res.reason = SB_APPR_REPLAY;
		tell(a, source, id, 0, &res);
		return;
	}
	a->seen[source] = id;
	if (!q)
		res.reason = SB_APPR_FULL;
	if (!q || !sb_appr_text_ok(subject, SB_APPR_SUBJECT_MAX) || !sb_appr_text_ok(rule, SB_APPR_RULE_MAX)) {
		tell(a, source, id, 0, &res);
		return;
	}
	for (size_t i = 0; i < APPROVALS_ASKED; i++)
		waits |= is_about(&a->asked[i], kind, subject, rule);
	*q = (struct asked){ .serial = ++a->serial, .source = source, .id = id, .kind = kind, .waits = waits,
			     .subject = strdup(subject), .rule = strdup(rule) };
	if (!q->subject || !q->rule) {
		asked_free(q);
		tell(a, source, id, 0, &res);
	} else if (!waits) {
		ask(a, q);
	}
}

void approvals_gone(struct approvals *a, uint32_t source, uint64_t id)
{
	for (size_t i = 0; i < APPROVALS_ASKED; i++) {
		struct asked *q = &a->asked[i];
		uint64_t serial = q->serial;
		const struct sb_appr_question *o = NULL;
		struct sb_appr_result res;

		if (serial == 0 || q->source != source || q->id != id)
			continue;
		if (q->waits) {
			asked_free(q);
			return;
		}
		while ((o = sb_appr_next(a->appr, o ? o->number : 0)) != NULL) {
			struct sb_appr_question was = *o;

			if (was.id != serial)
				continue;
			if (sb_appr_refuse(a->appr, was.number, SB_APPR_GONE, approvals_now(), &res) == 0)
				approvals_close(a, &was, &res, "asker");
			return;
		}
	}
}

void approvals_message(struct approvals *a, const struct sb_ipc_msg *msg)
{
	const struct sb_ipc_appr_ask *q = sb_ipc_get(msg, sizeof(*q), 0);

	if (!q || memchr(q->subject, 0, sizeof(q->subject)) == NULL ||
	    memchr(q->rule, 0, sizeof(q->rule)) == NULL)
		return;
	if (q->kind == SB_APPR_NONE)
		approvals_gone(a, q->source, q->id);
	else
		approvals_ask(a, q->source, q->id, (enum sb_appr_kind)q->kind, q->subject, q->rule);
}

/* What in the configuration, or that there is no session yet, rules that answer out. */
static int not_permitted(const struct approvals *a, enum sb_appr_answer answer, struct sb_err *err)
{
	bool pattern = answer == SB_APPR_PATTERN || answer == SB_APPR_PATTERN_FOREVER;
	bool forever = answer == SB_APPR_FOREVER || answer == SB_APPR_PATTERN_FOREVER;

	if (a->listen < 0 && (pattern || answer == SB_APPR_SESSION))
		return sb_err_set(err, -EPERM, "\"%s\" is no answer for the first command, which has no session yet: once, "
					       "forever, deny or deny-forever", sb_appr_answer_name(answer));
	return sb_err_set(err, -EPERM, "\"%s\" is no answer here: approvals.%s_grants is false",
			  sb_appr_answer_name(answer), forever && !a->conf.appr.forever_grants ? "forever"
						      : pattern				      ? "pattern"
											      : "session");
}

static int answer_failed(const struct approvals *a, enum sb_appr_answer answer, int r, struct sb_err *err)
{
	switch (r) {
	case SB_APPR_LATE:
		return sb_err_set(err, -ESTALE, "that question is decided already");
	case SB_APPR_UNKNOWN:
		return sb_err_set(err, -ENOENT, "there is no such question");
	case -EPERM:
		return not_permitted(a, answer, err);
	case -EINVAL:
		return sb_err_set(err, r, "the pattern must match what is asked for, and not everything");
	default:
		return sb_err_set(err, r, "%s", strerror(-r));
	}
}

/* How far an answer goes. */
static const char *scope_of(enum sb_appr_answer answer)
{
	switch (answer) {
	case SB_APPR_SESSION:
	case SB_APPR_PATTERN:
		return "session";
	case SB_APPR_NEVER:
	case SB_APPR_FOREVER:
	case SB_APPR_PATTERN_FOREVER:
		return "forever";
	case SB_APPR_NO:
	case SB_APPR_ONCE:
	case SB_APPR_N_ANSWERS:
	default:
		return "once";
	}
}

int approvals_answer(struct approvals *a, uint64_t number, enum sb_appr_answer answer,
		     const char *pattern, const char *by, struct sb_err *err)
{
	const struct sb_appr_question *o = sb_appr_get(a->appr, number);
	sb_autofree struct sb_appr_grant *g = calloc(1, sizeof(*g));
	struct sb_appr_question was = { 0 };
	struct sb_appr_result res;
	struct approve_answer ans;
	bool keep = false;
	bool forever = answer == SB_APPR_FOREVER || answer == SB_APPR_PATTERN_FOREVER;
	int r;

	if (!g)
		return sb_err_set(err, -ENOMEM, "out of memory");
	if (o)
		was = *o;
	r = sb_appr_answer(a->appr, number, answer, pattern, approvals_now(), g, &keep, &res);
	if (r != 0)
		return answer_failed(a, answer, r, err);
	ans = record_of(a, &was, &res, by);
	ans.scope = scope_of(answer);
	ans.pattern = pattern;
	if (!keep) {
		close_as(a, &was, &res, &ans);
		return 0;
	}
	/* what outlives the session: first the record of the answer and the grant, then the grant */
	if (grants_add(a->d, g, &ans, &res.grant, err) == 0) {
		closed(a, &was, &res);
		return 0;
	}
	/* a yes without its grant is no yes; a no is still a no */
	if (forever)
		res = (struct sb_appr_result){ .reason = SB_APPR_BAD, .question = number };
	approvals_close(a, &was, &res, by);
	return -EIO;
}

void approvals_terminal(struct approvals *a, bool there)
{
	if (there) {
		sb_appr_gained(a->appr, SB_APPR_TERMINAL);
		approvals_present(a);
		return;
	}
	a->shown = 0;
	for (uint64_t n = 0;;) {
		const struct sb_appr_question *o = sb_appr_next(a->appr, n);

		if (!o)
			return;
		n = o->number;
		approvals_lost(a, n, SB_APPR_TERMINAL);
	}
}

/* ---- life ---- */

int approvals_new(struct sb_loop *loop, const struct sb_dirs *d, const struct sb_plan *plan,
		  const uint8_t plan_sha256[32], int session_dir, struct approvals_conf *c,
		  const struct approvals_ui *ui, struct approvals **ret, struct sb_err *err)
{
	struct approvals *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return sb_err_set(err, -ENOMEM, "out of memory");
	a->loop = loop;
	a->d = d;
	a->ui = *ui;
	a->listen = a->dir = -1;
	for (size_t i = 0; i < APPROVALS_CLIENTS; i++)
		a->watchers[i].sock = -1;
	memcpy(a->session, plan->session, sizeof(a->session));
	memcpy(a->plan, plan_sha256, 32);
	r = approvals_policy(plan, a->policy, err);
	if (r == 0) {
		r = sb_appr_new(&c->appr, &a->appr);
		if (r < 0)
			(void)sb_err_set(err, r, "approvals: %s", strerror(-r));
	}
	if (r == 0 && session_dir >= 0)
		r = serve_open(a, session_dir, err);
	if (r < 0) {
		serve_close(a);
		a->appr = sb_appr_free(a->appr);
		free(a);
		return r;
	}
	a->conf = *c;
	*c = (struct approvals_conf){ 0 };
	*ret = a;
	return 0;
}

struct approvals *approvals_free(struct approvals *a)
{
	const struct sb_appr_question *o;
	struct sb_appr_result res;

	if (!a)
		return NULL;
	while ((o = sb_appr_next(a->appr, 0)) != NULL) {
		struct sb_appr_question was = *o;

		if (sb_appr_refuse(a->appr, was.number, SB_APPR_ENDED, approvals_now(), &res) != 0)
			break;
		approvals_close(a, &was, &res, "end");
	}
	sb_timer_del(&a->late);
	serve_close(a);
	for (size_t i = 0; i < APPROVALS_ASKED; i++)
		asked_free(&a->asked[i]);
	approvals_conf_done(&a->conf);
	a->appr = sb_appr_free(a->appr);
	free(a);
	return NULL;
}
