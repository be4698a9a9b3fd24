/* sendbox approvals, approve, deny: the open questions of running sessions, from another terminal. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "approvals_client.h"
#include "base/fd.h"
#include "base/num.h"
#include "cli.h"
#include "crypto/crypto.h"
#include "dirs.h"
#include "grants.h"
#include "options.h"
#include "plan_show.h"
#include "session.h"

#define SESSIONS 64
#define SHORT 8 /* digits of a session's id that are shown */

struct place { /* one session that may have questions */
	char hex[33];
	int sock; /* owned; -1 = free */
};
struct view {
	struct place p[SESSIONS];
	size_t n;
	bool json;
	bool follow;
	size_t shown;
};

int approvals_connect(int dir, int *ret)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	sb_autofd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/" APPROVALS_SOCKET, dir);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		return -errno;
	*ret = sb_fd_take(&fd);
	return 0;
}

static bool known(const struct view *v, const char *hex)
{
	for (size_t i = 0; i < v->n; i++)
		if (v->p[i].sock >= 0 && strcmp(v->p[i].hex, hex) == 0)
			return true;
	return false;
}

static void on_session(void *arg, int dir, const struct sb_plan *plan)
{
	struct view *v = arg;
	char hex[33];
	int sock = -1;

	sb_hex_write(plan->session, sizeof(plan->session), hex);
	if (v->n == SESSIONS || known(v, hex) || approvals_connect(dir, &sock) < 0)
		return;
	memcpy(v->p[v->n].hex, hex, sizeof(hex));
	v->p[v->n++].sock = sock;
}

static void drop(struct view *v, size_t i)
{
	sb_fd_close(&v->p[i].sock);
	v->p[i] = v->p[--v->n];
}

static void view_done(struct view *v)
{
	while (v->n > 0)
		drop(v, 0);
}

/* ---- showing ---- */

static bool text_ok(const struct sb_ipc_appr_question *q)
{
	return q && memchr(q->subject, 0, sizeof(q->subject)) && memchr(q->rule, 0, sizeof(q->rule)) &&
	       sb_appr_text_ok(q->subject, SB_APPR_SUBJECT_MAX) &&
	       sb_appr_text_ok(q->rule, SB_APPR_RULE_MAX);
}

static json_t *question_json(const char *hex, const struct sb_ipc_appr_question *q)
{
	const char *kind = sb_appr_kind_name((enum sb_appr_kind)q->kind);

	return json_pack("{s:s,s:I,s:s,s:s,s:s,s:I}", "session", hex, "number", (json_int_t)q->number,
			 "kind", kind ? kind : "", "subject", q->subject, "rule", q->rule, "left_ms",
			 (json_int_t)q->left_ms);
}

static void print_json(json_t *j)
{
	if (j && json_dumpf(j, stdout, JSON_COMPACT) == 0)
		(void)putchar('\n');
	json_decref(j);
}

static void show_question(struct view *v, const char *hex, const struct sb_ipc_appr_question *q)
{
	const char *kind = sb_appr_kind_name((enum sb_appr_kind)q->kind);

	v->shown++;
	if (v->json) {
		print_json(question_json(hex, q));
		return;
	}
	printf("%.*s:%llu  %s  %s\n    rule: %s; %llu s left\n", SHORT, hex,
	       (unsigned long long)q->number, kind ? kind : "?", q->subject, q->rule,
	       (unsigned long long)(q->left_ms + 999) / 1000);
}

static void show_closed(const struct view *v, const char *hex, const struct sb_ipc_appr_closed *c)
{
	const char *reason = sb_appr_reason_name((enum sb_appr_reason)c->reason);

	if (v->json)
		print_json(json_pack("{s:s,s:I,s:b,s:s}", "session", hex, "number",
				     (json_int_t)c->number, "allowed", c->allow != 0, "reason", reason));
	else
		printf("%.*s:%llu  %s (%s)\n", SHORT, hex, (unsigned long long)c->number,
		       c->allow ? "allowed" : "refused", reason);
}

/* Return: 0; 1: the list is complete; -errno: the session is gone. */
static int take(struct view *v, size_t i)
{
	sb_automsg struct sb_ipc_msg msg = { 0 };
	const void *p;
	int r = sb_ipc_recv(v->p[i].sock, &msg);

	if (r != 0)
		return r < 0 ? r : -EPIPE;
	switch (msg.type) {
	case SB_IPC_APPR_QUESTION:
		p = sb_ipc_get(&msg, sizeof(struct sb_ipc_appr_question), 0);
		if (!text_ok(p))
			return -EBADMSG;
		show_question(v, v->p[i].hex, p);
		return 0;
	case SB_IPC_APPR_CLOSED:
		p = sb_ipc_get(&msg, sizeof(struct sb_ipc_appr_closed), 0);
		if (!p)
			return -EBADMSG;
		show_closed(v, v->p[i].hex, p);
		return 0;
	case SB_IPC_APPR_END:
		return 1;
	default:
		return -EBADMSG;
	}
}

static int ask_list(struct view *v, size_t i)
{
	const struct sb_ipc_appr_watch w = { .follow = v->follow };
	int r = sb_ipc_send(v->p[i].sock, SB_IPC_APPR_WATCH, &w, sizeof(w), NULL, 0);

	while (r == 0)
		r = take(v, i);
	return r;
}

/* Those that began since the last look. */
static int rescan(struct view *v, const struct sb_dirs *d, struct sb_err *err)
{
	size_t had = v->n;
	int r = cli_session_each(d, on_session, v, err);

	for (size_t i = had; r == 0 && i < v->n;) {
		if (ask_list(v, i) < 0)
			drop(v, i);
		else
			i++;
	}
	return r;
}

static int follow(struct view *v, const struct sb_dirs *d, struct sb_err *err)
{
	for (;;) {
		struct pollfd p[SESSIONS];

		if (fflush(stdout) != 0)
			return sb_err_set(err, -EIO, "standard output: %s", strerror(errno));
		for (size_t i = 0; i < v->n; i++)
			p[i] = (struct pollfd){ .fd = v->p[i].sock, .events = POLLIN };
		if (poll(p, v->n, 500) < 0 && errno != EINTR)
			return sb_err_set(err, -errno, "poll: %s", strerror(errno));
		for (size_t i = v->n; i > 0; i--)
			if (p[i - 1].revents && take(v, i - 1) < 0)
				drop(v, i - 1);
		if (rescan(v, d, err) < 0)
			return err->code;
	}
}

int cmd_approvals(int argc, char **argv)
{
	enum { O_FOLLOW = 1, O_JSON, O_HELP };
	static const struct cli_option table[] = {
		{ "follow", 'f', NULL, "go on, with every question as it comes; while this runs, "
				       "somebody is there to ask", O_FOLLOW },
		{ "json", 0, NULL, "a line of JSON for each", O_JSON },
		{ "help", 'h', NULL, "this text", O_HELP },
	};
	static struct cli_dirs dirs;
	struct view v = { 0 };
	struct sb_err err = { 0 };
	const char *value;
	bool dashes;
	int at = 0;
	int id;
	int r;

	while ((id = cli_options_next(table, SB_ARRAY_LEN(table), argc, argv, &at, &value, &dashes,
				      &err)) > 0) {
		if (id == O_HELP) {
			printf("usage: sendbox approvals [options]\n\nThe open questions of running "
			       "sessions; sendbox approve and sendbox deny answer them.\n\n");
			cli_options_help(table, SB_ARRAY_LEN(table));
			return SB_EXIT_OK;
		}
		v.follow |= id == O_FOLLOW;
		v.json |= id == O_JSON;
	}
	if (id < 0 || at < argc) {
		cli_error("%s", id < 0 ? err.text : "approvals takes no operands");
		return SB_EXIT_USAGE;
	}
	r = cli_dirs_init(&dirs, &err);
	if (r == 0)
		r = rescan(&v, &dirs.d, &err);
	if (r == 0 && v.follow)
		r = follow(&v, &dirs.d, &err);
	if (r == 0 && v.shown == 0 && !v.json)
		printf("no open questions\n");
	view_done(&v);
	if (r < 0)
		cli_error("%s", err.text);
	return r < 0 ? SB_EXIT_INTERNAL : fflush(stdout) == 0 ? SB_EXIT_OK : SB_EXIT_WRITE;
}

/* ---- answers ---- */

/* "NUMBER" of the only session that has a question of that number, or "SESSION:NUMBER". */
static int parse_id(const char *text, char prefix[33], uint64_t *number, struct sb_err *err)
{
	const char *colon = strchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : 0;

	if (n > 32 || (colon && n == 0) || sb_num_u64(colon ? colon + 1 : text, 1, UINT64_MAX, number) < 0)
		return sb_err_set(err, -EINVAL, "\"%.60s\": write NUMBER or SESSION:NUMBER, as sendbox "
						"approvals shows it", text);
	memcpy(prefix, text, n);
	prefix[n] = '\0';
	return 0;
}

/* Whether the session at @i has that question open; @ret: it. */
static bool has(struct view *v, size_t i, uint64_t number, struct sb_ipc_appr_question *ret)
{
	const struct sb_ipc_appr_watch w = { 0 };
	bool found = false;

	if (sb_ipc_send(v->p[i].sock, SB_IPC_APPR_WATCH, &w, sizeof(w), NULL, 0) < 0)
		return false;
	for (;;) {
		sb_automsg struct sb_ipc_msg msg = { 0 };
		const struct sb_ipc_appr_question *q;

		if (sb_ipc_recv(v->p[i].sock, &msg) != 0 || msg.type == SB_IPC_APPR_END)
			return found;
		q = sb_ipc_get(&msg, sizeof(*q), 0);
		if (!q || msg.type != SB_IPC_APPR_QUESTION || q->number != number || !text_ok(q))
			continue;
		found = true;
		*ret = *q;
	}
}

static int find(struct view *v, const char *prefix, uint64_t number, size_t *ret,
		struct sb_ipc_appr_question *ret_q, struct sb_err *err)
{
	size_t n = 0;

	for (size_t i = 0; i < v->n; i++) {
		if (strncmp(v->p[i].hex, prefix, strlen(prefix)) != 0 || !has(v, i, number, ret_q))
			continue;
		*ret = i;
		n++;
	}
	if (n == 0)
		return sb_err_set(err, -ENOENT, "there is no open question %llu%s%s: sendbox approvals lists "
						"them", (unsigned long long)number,
				  prefix[0] ? " of session " : "", prefix);
	if (n > 1)
		return sb_err_set(err, -ENOTUNIQ, "several sessions have a question %llu: write SESSION:%llu",
				  (unsigned long long)number, (unsigned long long)number);
	return 0;
}

int approvals_decide(int sock, uint64_t number, enum sb_appr_answer answer, const char *pattern,
		     struct sb_ipc_appr_closed *ret, struct sb_err *err)
{
	struct sb_ipc_appr_decide m = { .number = number, .answer = (uint32_t)answer };
	int r;

	if (pattern)
		(void)snprintf(m.pattern, sizeof(m.pattern), "%s", pattern);
	r = sb_ipc_send(sock, SB_IPC_APPR_DECIDE, &m, sizeof(m), NULL, 0);
	while (r == 0) {
		sb_automsg struct sb_ipc_msg msg = { 0 };
		const struct sb_ipc_appr_closed *c;
		const struct sb_ipc_failed *f;

		r = sb_ipc_recv(sock, &msg);
		if (r == 0 && ret && msg.type == SB_IPC_APPR_CLOSED &&
		    (c = sb_ipc_get(&msg, sizeof(*c), 0)) != NULL && c->number == number)
			*ret = *c;
		if (r != 0 || msg.type != SB_IPC_APPR_END)
			continue;
		f = sb_ipc_get(&msg, sizeof(*f), 0);
		if (!f)
			return sb_err_set(err, -EBADMSG, "the session's answer is malformed");
		if (f->fail != 0)
			return sb_err_set(err, -(int)f->fail, "%.*s", (int)strnlen(f->text, sizeof(f->text)), f->text);
		return 0;
	}
	return sb_err_set(err, r < 0 ? r : -EPIPE, "the session is gone");
}

struct answer_args {
	enum sb_appr_answer answer;
	const char *pattern;
	bool once;
	bool session;
	bool forever;
	const char *id;
};

/* One scope, and --pattern with --forever alone: what contradicts itself is not guessed at. */
static int scope_of(struct answer_args *a, struct sb_err *err)
{
	const char *narrow = a->once ? "--once" : a->session ? "--session" : NULL;
	const char *other = a->once && a->session ? "--session" : a->pattern ? "--pattern" : a->forever ? "--forever" : NULL;

	if (narrow && other)
		return sb_err_set(err, -EINVAL, "%s and %s exclude each other: say how long it holds with one of --once, "
						"--session, --pattern P, --forever, or with --pattern P --forever",
				  narrow, other);
	if (a->pattern)
		a->answer = a->forever ? SB_APPR_PATTERN_FOREVER : SB_APPR_PATTERN;
	else if (a->forever)
		a->answer = SB_APPR_FOREVER;
	else if (a->session)
		a->answer = SB_APPR_SESSION;
	return 0;
}

/* Until when the grant of the store counts, and how often. */
static void store_terms(const struct sb_dirs *d, int64_t id, char *out, size_t cap)
{
	sb_autogrants struct grants g = { 0 };
	char until[PLAN_TIME_ROOM];
	char uses[40] = "";

	out[0] = '\0';
	if (sb_crypto_init() < 0 || grants_load(d, &g, NULL) < 0)
		return; /* what was said holds; sendbox grants ls tells the rest */
	for (size_t i = 0; i < g.n; i++) {
		if (g.g[i].id != id || g.g[i].expires_s == 0)
			continue;
		plan_time_text(g.g[i].expires_s, until);
		if (g.g[i].uses > 0)
			(void)snprintf(uses, sizeof(uses), ", %u use%s", g.g[i].uses, g.g[i].uses == 1 ? "" : "s");
		(void)snprintf(out, cap, " until %s%s", until, uses);
	}
}

/* What was answered, how long that holds, how it is taken back. */
static void tell(const struct answer_args *a, const struct sb_dirs *d, const char *hex,
		 const struct sb_ipc_appr_question *q, const struct sb_ipc_appr_closed *c)
{
	const char *kind = sb_appr_kind_name((enum sb_appr_kind)q->kind);
	char terms[120];

	printf("%s %s: %s\n", c->allow ? "allowed" : "refused", kind ? kind : "?", q->subject);
	store_terms(d, c->grant, terms, sizeof(terms));
	switch (a->answer) {
	case SB_APPR_NEVER:
		printf("    whenever anything asks for exactly this, in every session; sendbox grants revoke %lld "
		       "takes it back\n", (long long)c->grant);
		break;
	case SB_APPR_SESSION:
		printf("    also when the same rule asks for it again, until session %.*s ends; nothing takes it back "
		       "before\n", SHORT, hex);
		break;
	case SB_APPR_PATTERN:
		printf("    and what else the same rule asks for and \"%s\" matches, until session %.*s ends; nothing "
		       "takes it back before\n", a->pattern, SHORT, hex);
		break;
	case SB_APPR_FOREVER:
		printf("    also in later sessions with the same policy,%s; sendbox grants revoke %lld takes it back\n",
		       terms, (long long)c->grant);
		break;
	case SB_APPR_PATTERN_FOREVER:
		printf("    and what else \"%s\" matches, also in later sessions with the same policy,%s; sendbox "
		       "grants revoke %lld takes it back\n", a->pattern, terms, (long long)c->grant);
		break;
	case SB_APPR_NO:
		printf("    this once; for a minute the same is refused unasked\n");
		break;
	case SB_APPR_ONCE:
	case SB_APPR_N_ANSWERS:
	default:
		printf("    this once; nothing is left to take back\n");
	}
}

/* What the session made of the answer. */
static int outcome(const struct answer_args *a, const struct sb_ipc_appr_closed *c, struct sb_err *err)
{
	bool yes = a->answer != SB_APPR_NO && a->answer != SB_APPR_NEVER;
	const char *reason = sb_appr_reason_name((enum sb_appr_reason)c->reason);

	if (c->number == 0)
		return sb_err_set(err, -EBADMSG, "the session does not say how it was decided");
	if (yes && !c->allow)
		return sb_err_set(err, -ESTALE, "refused all the same (%s): %s", reason ? reason : "?",
				  sb_appr_remedy((enum sb_appr_reason)c->reason));
	return 0;
}

static int answer(const struct answer_args *a)
{
	static struct cli_dirs dirs;
	struct view v = { 0 };
	struct sb_ipc_appr_question q = { 0 };
	struct sb_ipc_appr_closed c = { 0 };
	struct sb_err err = { 0 };
	char prefix[33];
	uint64_t number;
	size_t i = 0;
	int r = parse_id(a->id, prefix, &number, &err);

	if (r == 0)
		r = cli_dirs_init(&dirs, &err);
	if (r == 0)
		r = cli_session_each(&dirs.d, on_session, &v, &err);
	if (r == 0)
		r = find(&v, prefix, number, &i, &q, &err);
	if (r == 0)
		r = approvals_decide(v.p[i].sock, number, a->answer, a->pattern, &c, &err);
	if (r == 0)
		r = outcome(a, &c, &err);
	if (r == 0)
		tell(a, &dirs.d, v.p[i].hex, &q, &c);
	view_done(&v);
	if (r == 0)
		return fflush(stdout) == 0 ? SB_EXIT_OK : SB_EXIT_WRITE;
	cli_error("%s", err.text);
	return r == -EINVAL || r == -EPERM ? SB_EXIT_USAGE
	       : r == -ENOENT || r == -ENOTUNIQ || r == -ESTALE ? SB_EXIT_NO : SB_EXIT_INTERNAL;
}

int cmd_approve(int argc, char **argv)
{
	enum { O_ONCE = 1, O_SESSION, O_PATTERN, O_FOREVER, O_HELP };
	static const struct cli_option table[] = {
		{ "once", 0, NULL, "this one (the default)", O_ONCE },
		{ "session", 0, NULL, "the same again, until this session ends", O_SESSION },
		{ "pattern", 0, "P", "what matches P (* ? **), until this session ends", O_PATTERN },
		{ "forever", 0, NULL, "in later sessions with the same rules too, until it expires; with "
				      "--pattern: what matches it", O_FOREVER },
		{ "help", 'h', NULL, "this text", O_HELP },
	};
	struct answer_args a = { .answer = SB_APPR_ONCE };
	struct sb_err err = { 0 };
	const char *value;
	bool dashes;
	int at = 0;
	int id;

	while ((id = cli_options_next(table, SB_ARRAY_LEN(table), argc, argv, &at, &value, &dashes,
				      &err)) > 0) {
		if (id == O_HELP) {
			printf("usage: sendbox approve [options] NUMBER|SESSION:NUMBER\n\nSay yes to an open "
			       "question of a session.\n\n");
			cli_options_help(table, SB_ARRAY_LEN(table));
			return SB_EXIT_OK;
		}
		if (id == O_PATTERN && a.pattern && strcmp(a.pattern, value) != 0) {
			cli_error("--pattern \"%.60s\" and \"%.60s\": one pattern an answer", a.pattern, value);
			return SB_EXIT_USAGE;
		}
		if (id == O_PATTERN)
			a.pattern = value;
		a.once |= id == O_ONCE;
		a.session |= id == O_SESSION;
		a.forever |= id == O_FOREVER;
	}
	if (id < 0 || argc - at != 1) {
		cli_error("%s", id < 0 ? err.text : "write: sendbox approve [options] NUMBER");
		return SB_EXIT_USAGE;
	}
	if (a.pattern && sb_appr_pattern_check(a.pattern, &err) < 0) {
		cli_error("--pattern: %s", err.text);
		return SB_EXIT_USAGE;
	}
	if (scope_of(&a, &err) < 0) {
		cli_error("%s", err.text);
		return SB_EXIT_USAGE;
	}
	a.id = argv[at];
	return answer(&a);
}

int cmd_deny(int argc, char **argv)
{
	enum { O_FOREVER = 1, O_HELP };
	static const struct cli_option table[] = {
		{ "forever", 0, NULL, "whenever anything asks for exactly this", O_FOREVER },
		{ "help", 'h', NULL, "this text", O_HELP },
	};
	struct answer_args a = { .answer = SB_APPR_NO };
	struct sb_err err = { 0 };
	const char *value;
	bool dashes;
	int at = 0;
	int id;

	while ((id = cli_options_next(table, SB_ARRAY_LEN(table), argc, argv, &at, &value, &dashes,
				      &err)) > 0) {
		if (id == O_HELP) {
			printf("usage: sendbox deny [options] NUMBER|SESSION:NUMBER\n\nSay no to an open question "
			       "of a session.\n\n");
			cli_options_help(table, SB_ARRAY_LEN(table));
			return SB_EXIT_OK;
		}
		a.answer = SB_APPR_NEVER;
	}
	if (id < 0 || argc - at != 1) {
		cli_error("%s", id < 0 ? err.text : "write: sendbox deny [options] NUMBER");
		return SB_EXIT_USAGE;
	}
	a.id = argv[at];
	return answer(&a);
}
