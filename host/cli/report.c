/* Records become counts and lists. */
#include "report.h"

#include <errno.h>
#include <string.h>

#include "base/num.h"
#include "commands.h"
#include "core/net_policy.h"
#include "plan_net.h"
#include "report_packages.h"
#include "session_text.h"
#include "summary.h"

struct list {
	json_t *v;    /* array of objects; owned */
	json_t *seen; /* key of an entry -> its object; owned; NULL = no entry has a key */
	uint64_t more;
};

#define LISTS 9

struct report {
	struct list commands;
	struct list files;
	struct list quarantined;
	struct list network;
	struct list packages;
	struct list secrets;
	struct list ssh;
	struct list refused;
	struct list approvals;
	uint64_t added, modified, deleted, guarded;
	uint64_t up, down;
	char *no_files; /* owned */
	char *no_audit;
	char *head;
	uint64_t first, last, records, lost;
	bool have_record;
};

static void list_done(struct list *l)
{
	json_decref(l->v);
	json_decref(l->seen);
}

static struct list *const *lists_of(struct report *r, struct list *out[LISTS])
{
	struct list *const all[LISTS] = { &r->commands, &r->files, &r->network, &r->packages, &r->secrets,
					  &r->ssh, &r->refused, &r->approvals, &r->quarantined };

	memcpy(out, all, sizeof(all));
	return out;
}

int report_new(struct report **ret)
{
	struct report *r = calloc(1, sizeof(*r));
	struct list *all[LISTS];

	if (!r)
		return -ENOMEM;
	(void)lists_of(r, all);
	for (size_t i = 0; i < SB_ARRAY_LEN(all); i++) {
		all[i]->v = json_array();
		all[i]->seen = json_object();
		if (!all[i]->v || !all[i]->seen) {
			(void)report_free(r);
			return -ENOMEM;
		}
	}
	*ret = r;
	return 0;
}

struct report *report_free(struct report *r)
{
	struct list *all[LISTS];

	if (!r)
		return NULL;
	(void)lists_of(r, all);
	for (size_t i = 0; i < SB_ARRAY_LEN(all); i++)
		list_done(all[i]);
	free(r->no_files);
	free(r->no_audit);
	free(r->head);
	free(r);
	return NULL;
}

static void replace(char **slot, const char *text)
{
	free(*slot);
	*slot = text ? strdup(text) : NULL;
}

void report_no_files(struct report *r, const char *why)
{
	replace(&r->no_files, why);
}

void report_no_audit(struct report *r, const char *why)
{
	replace(&r->no_audit, why);
}

void report_head(struct report *r, const char *head)
{
	replace(&r->head, head);
}

/* The entry of @key: the one that is there, or @fresh (which is taken). NULL: no room. */
static json_t *entry(struct list *l, const char *key, json_t *fresh)
{
	json_t *have = json_object_get(l->seen, key);

	if (have || !fresh || json_array_size(l->v) >= REPORT_LIST_MAX) {
		l->more += !have;
		json_decref(fresh);
		return have;
	}
	if (json_object_set(l->seen, key, fresh) < 0 || json_array_append_new(l->v, fresh) < 0)
		return NULL;
	return json_array_get(l->v, json_array_size(l->v) - 1);
}

static void add_to(json_t *o, const char *key, uint64_t n)
{
	json_int_t have = json_integer_value(json_object_get(o, key));
	json_int_t sum;

	if (o && n <= INT64_MAX && !__builtin_add_overflow(have, (json_int_t)n, &sum))
		(void)json_object_set_new(o, key, json_integer(sum));
}

/* ---- fields of a record ---- */

struct fields {
	char action[SB_AUDIT_ACTION_MAX + 1];
	char subject[SB_AUDIT_SUBJECT_MAX + 1];
	char rule[SB_AUDIT_RULE_MAX + 1];
	char reason[SB_AUDIT_REASON_MAX + 1];
	uint64_t count;
};

static void fields_of(const struct sb_audit_record *rec, struct fields *f)
{
	(void)sb_audit_text(&rec->action, f->action, sizeof(f->action));
	(void)sb_audit_text(&rec->subject, f->subject, sizeof(f->subject));
	(void)sb_audit_text(&rec->rule, f->rule, sizeof(f->rule));
	(void)sb_audit_text(&rec->reason, f->reason, sizeof(f->reason));
	f->count = SB_MAX(sb_audit_get_num(rec, "count"), 1U);
}

static json_t *value_json(const struct sb_audit_record *rec, const char *key)
{
	struct sb_audit_value v;

	if (!sb_audit_get(rec, key, &v) || v.type != SB_AUDIT_LIST)
		return NULL;
	return json_loadb(v.p, v.len, 0, NULL);
}

static void text_of(const struct sb_audit_record *rec, const char *key, char *out, size_t cap)
{
	struct sb_audit_value v;
	struct sb_audit_str s;

	out[0] = '\0';
	if (!sb_audit_get(rec, key, &v) || v.type != SB_AUDIT_TEXT)
		return;
	s = (struct sb_audit_str){ v.p, v.len };
	(void)sb_audit_text(&s, out, cap);
}

/* ---- what to do about a refusal ---- */

static void net_remedy(const struct sb_audit_record *rec, const struct fields *f, char *out, size_t cap)
{
	struct sb_ipc_net_event ev = { .reason = SB_NET_N_REASONS };
	const char *colon = strrchr(f->subject, ':');
	size_t len = colon ? (size_t)(colon - f->subject) : strlen(f->subject);
	char text[64];
	struct sb_addr a;
	uint64_t port = 0;

	out[0] = '\0';
	for (int i = 0; i < SB_NET_N_REASONS; i++)
		if (strcmp(sb_net_reason_name((enum sb_net_reason)i), f->reason) == 0)
			ev.reason = (uint16_t)i;
	if (ev.reason == SB_NET_N_REASONS || len >= sizeof(ev.name))
		return;
	memcpy(ev.name, f->subject, len);
	if (colon && sb_num_u64(colon + 1, 0, UINT16_MAX, &port) == 0)
		ev.port = (uint16_t)port;
	ev.dns_type = (uint16_t)SB_MIN(sb_audit_get_num(rec, "type"), (uint64_t)UINT16_MAX);
	text_of(rec, "address", text, sizeof(text));
	if (text[0] && sb_addr_parse(text, strlen(text), &a) == 0) {
		ev.has_addr = 1;
		memcpy(ev.addr, a.b, sizeof(ev.addr));
	}
	summary_way(&ev, plan_net_is_own, out, cap);
}

static void remedy_of(const struct sb_audit_record *rec, const struct fields *f, char *out, size_t cap)
{
	size_t len = strlen(f->rule);

	out[0] = '\0';
	switch (rec->kind) {
	case SB_AUDIT_NETWORK:
		net_remedy(rec, f, out, cap);
		break;
	case SB_AUDIT_COMMAND:
		if (strcmp(f->action, "system-call") == 0)
			(void)snprintf(out, cap, "a wider profile: sendbox run --profile build ..., see policy.syscalls");
		else if (len == 0 || f->rule[len - 1] != ')') /* else it stands there */
			(void)snprintf(out, cap, "sendbox policy test -- COMMAND names the rule and its place");
		break;
	case SB_AUDIT_SSH:
		(void)snprintf(out, cap, "ssh_agent in the configuration says which key logs in where");
		break;
	case SB_AUDIT_APPROVAL:
	case SB_AUDIT_KIND_NONE:
	case SB_AUDIT_SESSION:
	case SB_AUDIT_PLAN:
	case SB_AUDIT_FILE:
	case SB_AUDIT_SECRET:
	case SB_AUDIT_POLICY:
	case SB_AUDIT_SNAPSHOT:
	case SB_AUDIT_PROVENANCE:
	case SB_AUDIT_KEY:
	case SB_AUDIT_KINDS:
	default:
		break;
	}
}

static void refused(struct report *r, const struct sb_audit_record *rec, const struct fields *f)
{
	sb_autofree char *words = NULL;
	sb_autofree char *key = NULL;
	char remedy[400];
	json_t *argv = rec->kind == SB_AUDIT_COMMAND ? value_json(rec, "argv") : NULL;
	json_t *o;

	words = argv ? json_dumps(argv, JSON_COMPACT) : NULL;
	if (asprintf(&key, "%d %s %s %s %s", (int)rec->kind, f->action, f->reason, f->subject, words ? words : "") < 0)
		key = NULL;
	remedy_of(rec, f, remedy, sizeof(remedy));
	o = entry(&r->refused, key ? key : f->subject,
		  json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:i,s:o*}", "kind", sb_audit_kind_name(rec->kind), "action",
			    f->action, "subject", f->subject, "rule", f->rule, "reason", f->reason, "remedy",
			    remedy, "count", 0, "argv", argv));
	add_to(o, "count", f->count);
}

/* ---- kinds of records ---- */

static void on_approval(struct report *r, const struct sb_audit_record *rec, const struct fields *f)
{
	static const char *const texts[] = { "by", "scope", "pattern" };
	static const char *const numbers[] = { "grant", "question" };
	char text[SB_AUDIT_SUBJECT_MAX + 1];
	json_t *o;

	if (json_array_size(r->approvals.v) >= REPORT_LIST_MAX) {
		r->approvals.more++;
		return;
	}
	o = json_pack("{s:s,s:s,s:s,s:s,s:s}", "action", f->action, "verdict",
		      sb_audit_verdict_name(rec->verdict), "subject", f->subject, "rule", f->rule, "reason",
		      f->reason);
	for (size_t i = 0; o && i < SB_ARRAY_LEN(texts); i++) {
		text_of(rec, texts[i], text, sizeof(text));
		if (text[0])
			(void)json_object_set_new(o, texts[i], json_string(text));
	}
	for (size_t i = 0; o && i < SB_ARRAY_LEN(numbers); i++)
		if (sb_audit_get_num(rec, numbers[i]) > 0)
			(void)json_object_set_new(o, numbers[i],
						  json_integer((json_int_t)sb_audit_get_num(rec, numbers[i])));
	(void)json_array_append_new(r->approvals.v, o);
}

static void on_command(struct report *r, const struct sb_audit_record *rec, const struct fields *f)
{
	sb_autofree char *key = NULL;
	json_t *argv;
	json_t *o;

	if (rec->verdict != SB_AUDIT_ALLOW && rec->kind == SB_AUDIT_COMMAND)
		return;
	argv = value_json(rec, "argv");
	if (!argv)
		argv = json_pack("[s]", f->subject);
	report_packages(argv, r->packages.v, REPORT_LIST_MAX, &r->packages.more);
	key = json_dumps(argv, JSON_COMPACT);
	o = entry(&r->commands, key ? key : "",
		  json_pack("{s:o,s:s,s:b,s:i}", "argv", argv, "program", f->subject, "top_level",
			    rec->kind == SB_AUDIT_SESSION || strcmp(f->action, "start") == 0 ||
				    sb_audit_get_num(rec, "top_level") != 0, "count", 0));
	add_to(o, "count", f->count);
}

static void on_network(struct report *r, const struct sb_audit_record *rec, const struct fields *f)
{
	bool closed = strcmp(f->action, "close") == 0;
	uint64_t up = sb_audit_get_num(rec, "up");
	uint64_t down = sb_audit_get_num(rec, "down");
	json_t *o;

	if (!closed && (rec->verdict != SB_AUDIT_ALLOW || strcmp(f->action, "connect") != 0))
		return;
	r->up += up;
	r->down += down;
	o = entry(&r->network, f->subject,
		  json_pack("{s:s,s:i,s:i,s:i}", "target", f->subject, "connections", 0, "sent", 0,
			    "received", 0));
	add_to(o, "connections", closed ? 0 : f->count);
	add_to(o, "sent", up);
	add_to(o, "received", down);
}

static void on_ssh(struct report *r, const struct sb_audit_record *rec, const struct fields *f)
{
	char key[72];
	char user[128];
	char both[sizeof(f->subject) + sizeof(key) + sizeof(user)];
	json_t *o;

	if (rec->verdict != SB_AUDIT_ALLOW || strcmp(f->action, "sign") != 0)
		return;
	text_of(rec, "key", key, sizeof(key));
	text_of(rec, "user", user, sizeof(user));
	(void)snprintf(both, sizeof(both), "%s %s %s", key, user, f->subject);
	o = entry(&r->ssh, both, json_pack("{s:s,s:s,s:s,s:i}", "host", f->subject, "user", user, "key", key,
					   "signatures", 0));
	add_to(o, "signatures", f->count);
}

void report_add(struct report *r, const struct sb_audit_record *rec)
{
	struct fields f;
	json_t *o;

	fields_of(rec, &f);
	if (!r->have_record)
		r->first = rec->seq;
	r->have_record = true;
	r->last = rec->seq;
	r->records++;
	if (strcmp(f.action, "lost") == 0)
		r->lost += f.count;
	else if (rec->verdict == SB_AUDIT_DENY && rec->kind != SB_AUDIT_APPROVAL)
		refused(r, rec, &f);
	switch (rec->kind) {
	case SB_AUDIT_SESSION:
		if (strcmp(f.action, "start") == 0)
			on_command(r, rec, &f);
		break;
	case SB_AUDIT_COMMAND:
		if (strcmp(f.action, "start") == 0 || strcmp(f.action, "exec") == 0)
			on_command(r, rec, &f);
		break;
	case SB_AUDIT_NETWORK:
		on_network(r, rec, &f);
		break;
	case SB_AUDIT_SSH:
		on_ssh(r, rec, &f);
		break;
	case SB_AUDIT_SECRET:
		o = entry(&r->secrets, f.subject, json_pack("{s:s,s:i}", "name", f.subject, "times", 0));
		add_to(o, "times", f.count);
		break;
	case SB_AUDIT_APPROVAL:
		on_approval(r, rec, &f);
		break;
	case SB_AUDIT_KIND_NONE:
	case SB_AUDIT_PLAN:
	case SB_AUDIT_FILE:
	case SB_AUDIT_POLICY:
	case SB_AUDIT_SNAPSHOT:
	case SB_AUDIT_PROVENANCE:
	case SB_AUDIT_KEY:
	case SB_AUDIT_KINDS:
	default:
		break;
	}
}

static void append(struct list *l, json_t *o)
{
	if (json_array_size(l->v) < REPORT_LIST_MAX)
		(void)json_array_append(l->v, o);
	else
		l->more++;
}

void report_add_file(struct report *r, json_t *change)
{
	const char *status = json_string_value(json_object_get(change, "status"));

	if (!status)
		return;
	if (json_object_get(change, "quarantined")) { /* it is not there: no change of the folder */
		append(&r->quarantined, change);
		return;
	}
	if (status[0] == 'A')
		r->added++;
	else if (status[0] == 'D')
		r->deleted++;
	else
		r->modified++;
	r->guarded += json_object_get(change, "guarded") != NULL;
	append(&r->files, change);
}

/* ---- the document ---- */

static int put(json_t *doc, const char *name, struct list *l)
{
	char more[32];

	(void)snprintf(more, sizeof(more), "%s_more", name);
	return json_object_set(doc, name, l->v) < 0 ||
			       json_object_set_new(doc, more, json_integer((json_int_t)l->more)) < 0
		       ? -ENOMEM
		       : 0;
}

static json_t *or_null(const char *s)
{
	return s ? commands_text(s) : json_null();
}

static json_t *files_json(const struct report *r)
{
	if (r->no_files)
		return json_pack("{s:o}", "unknown", commands_text(r->no_files));
	return json_pack("{s:I,s:I,s:I,s:I}", "added", (json_int_t)r->added, "modified",
			 (json_int_t)r->modified, "deleted", (json_int_t)r->deleted, "guarded",
			 (json_int_t)r->guarded);
}

static json_t *audit_json(const struct report *r)
{
	if (r->no_audit || !r->have_record)
		return json_pack("{s:o}", "unknown",
				 commands_text(r->no_audit ? r->no_audit : "the log has no record of it"));
	return json_pack("{s:I,s:I,s:I,s:I,s:o}", "first", (json_int_t)r->first, "last",
			 (json_int_t)r->last, "records", (json_int_t)r->records, "lost",
			 (json_int_t)r->lost, "head", or_null(r->head));
}

json_t *report_json(struct report *r, const struct session_record *s)
{
	bool over = s->ended_ns > s->started_ns;
	json_t *doc = json_pack("{s:s,s:i,s:o,s:o,s:o,s:o,s:I,s:I}", "format", "sendbox-report", "version",
				REPORT_VERSION, "session", session_text_json(s, false), "duration_ns",
				over ? json_integer((json_int_t)(s->ended_ns - s->started_ns)) : json_null(),
				"audit", audit_json(r), "files", files_json(r), "sent", (json_int_t)r->up,
				"received", (json_int_t)r->down);

	if (!doc || put(doc, "commands", &r->commands) < 0 || put(doc, "changes", &r->files) < 0 ||
	    put(doc, "quarantined", &r->quarantined) < 0 ||
	    put(doc, "network", &r->network) < 0 || put(doc, "packages", &r->packages) < 0 ||
	    put(doc, "secrets", &r->secrets) < 0 || put(doc, "ssh", &r->ssh) < 0 ||
	    put(doc, "refused", &r->refused) < 0 || put(doc, "approvals", &r->approvals) < 0) {
		json_decref(doc);
		return NULL;
	}
	return doc;
}
