#include "audit_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/num.h"

bool audit_wanted(const struct audit_filter *f, const struct sb_audit_record *r)
{
	char hex[33];
	char subject[SB_AUDIT_SUBJECT_MAX + 1];
	size_t n;
	size_t len;

	if (r->seq < f->from || (f->to > 0 && r->seq >= f->to) || r->time_ns < f->since_ns ||
	    (f->until_ns > 0 && r->time_ns >= f->until_ns) ||
	    (f->kinds != 0 && (f->kinds & 1U << r->kind) == 0) ||
	    (f->verdicts != 0 && (f->verdicts & 1U << r->verdict) == 0))
		return false;
	sb_hex_write(r->session, 16, hex);
	if (f->session && strncmp(hex, f->session, strlen(f->session)) != 0)
		return false;
	if (!f->host)
		return true;
	if (r->kind != SB_AUDIT_NETWORK && r->kind != SB_AUDIT_SSH)
		return false;
	len = sb_audit_text(&r->subject, subject, sizeof(subject));
	if (r->kind == SB_AUDIT_NETWORK && strrchr(subject, ':'))
		len = (size_t)(strrchr(subject, ':') - subject);
	n = strlen(f->host);
	return len >= n && strncasecmp(subject + len - n, f->host, n) == 0 &&
	       (len == n || subject[len - n - 1] == '.');
}

void audit_time(uint64_t ns, char out[32])
{
	time_t s = (time_t)(ns / 1000000000U);
	struct tm tm;
	char day[24] = "?";

	if (gmtime_r(&s, &tm))
		(void)strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(out, 32, "%s.%03uZ", day, (unsigned int)(ns / 1000000U % 1000U));
}

/* ---- redaction ---- */

static int redact_string(json_t *s, bool after)
{
	char *text = audit_redact(json_string_value(s), after);
	int r = text ? json_string_set(s, text) : -1;

	free(text);
	return r < 0 ? -ENOMEM : 0;
}

static int redact_list(json_t *a)
{
	bool after = false;
	size_t i;
	json_t *v;
	int r = 0;

	json_array_foreach(a, i, v) {
		bool next = json_is_string(v) && audit_announces(json_string_value(v));

		if (r == 0 && json_is_string(v))
			r = redact_string(v, after);
		after = next;
	}
	return r;
}

/* The texts that may hold something of the guest's or the user's. */
static int redact(json_t *o)
{
	static const char *const fields[] = { "subject", "rule", "reason" };
	json_t *data = json_object_get(o, "data");
	const char *key;
	json_t *v;
	int r = 0;

	for (size_t i = 0; r == 0 && i < SB_ARRAY_LEN(fields); i++) {
		v = json_object_get(o, fields[i]);
		if (json_is_string(v))
			r = redact_string(v, false);
	}
	json_object_foreach(data, key, v) {
		if (r == 0 && json_is_string(v))
			r = redact_string(v, false);
		else if (r == 0 && json_is_array(v))
			r = redact_list(v);
	}
	return r;
}

int audit_redact_json(json_t *o)
{
	const char *key;
	size_t i;
	json_t *v;
	int r = 0;

	if (json_is_string(o))
		return redact_string(o, false);
	if (json_is_array(o) && json_is_string(json_array_get(o, 0)))
		return redact_list(o);
	json_array_foreach(o, i, v)
		if (r == 0)
			r = audit_redact_json(v);
	json_object_foreach(o, key, v)
		if (r == 0)
			r = audit_redact_json(v);
	return r;
}

/* ---- forms ---- */

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

/* How a process ended; what of its value is told depends on that. Return: whether @data says it. */
static bool end_words(const json_t *data, char *out, size_t cap)
{
	const char *kind = text_of(data, "exit");
	long long value = (long long)json_integer_value(json_object_get(data, "value"));

	if (strcmp(kind, "exit") == 0)
		(void)snprintf(out, cap, "exit %lld", value);
	else if (strcmp(kind, "signal") == 0)
		(void)snprintf(out, cap, "signal %lld", value);
	else if (strcmp(kind, "not-found") == 0)
		(void)snprintf(out, cap, "not found");
	else if (strcmp(kind, "not-executable") == 0)
		(void)snprintf(out, cap, "not executable");
	else if (strcmp(kind, "setup") == 0)
		(void)snprintf(out, cap, "not started: %s", strerror((int)(value > 0 && value < 4096 ? value : 0)));
	else
		(void)snprintf(out, cap, "end unknown");
	return kind[0] != '\0';
}

static void print_end(const json_t *o)
{
	const json_t *data = json_object_get(o, "data");
	const json_t *command = json_object_get(data, "command");
	const json_t *lost = json_object_get(data, "output_lost");
	const char *subject = text_of(o, "subject");
	char text[120];

	if (json_is_integer(command))
		printf(" command %lld", (long long)json_integer_value(command));
	if (!end_words(data, text, sizeof(text)))
		printf(" %s", subject);
	else
		printf(" %s%s", text, json_is_true(json_object_get(data, "oom")) ? ", out of memory" : "");
	if (json_is_integer(lost))
		printf(", output lost: %s", strerror((int)(json_integer_value(lost) & 4095)));
}

/* How far an answer goes, and which answer decides. */
static void print_approval(const json_t *data)
{
	static const char *const numbers[] = { "grant", "question" };
	static const char *const texts[] = { "scope", "pattern" };

	for (size_t i = 0; i < SB_ARRAY_LEN(numbers); i++)
		if (json_is_integer(json_object_get(data, numbers[i])))
			printf(", %s %lld", numbers[i], (long long)json_integer_value(json_object_get(data, numbers[i])));
	for (size_t i = 0; i < SB_ARRAY_LEN(texts); i++)
		if (text_of(data, texts[i])[0])
			printf(", %s %s", texts[i], text_of(data, texts[i]));
}

static void print_text(const json_t *o, const struct sb_audit_record *r)
{
	char when[32];
	const char *reason = text_of(o, "reason");
	const char *action = text_of(o, "action");
	json_t *argv = json_object_get(json_object_get(o, "data"), "argv");
	size_t i;
	json_t *v;

	audit_time(r->time_ns, when);
	printf("%llu %s %.8s %s %s %s", (unsigned long long)r->seq, when,
	       text_of(o, "session")[0] ? text_of(o, "session") : "-", text_of(o, "kind"),
	       action, text_of(o, "verdict"));
	if ((r->kind == SB_AUDIT_SESSION && strcmp(action, "end") == 0) ||
	    (r->kind == SB_AUDIT_COMMAND && strcmp(action, "exit") == 0))
		print_end(o);
	else
		printf(" %s", text_of(o, "subject"));
	if (r->kind == SB_AUDIT_COMMAND || strcmp(text_of(o, "action"), "start") == 0)
		json_array_foreach(argv, i, v)
			if (i > 0)
				printf(" %s", json_string_value(v));
	v = json_object_get(json_object_get(o, "data"), "command"); /* what its end is told by */
	if (r->kind == SB_AUDIT_COMMAND && strcmp(action, "start") == 0 && json_is_integer(v))
		printf(", command %lld", (long long)json_integer_value(v));
	if (reason[0])
		printf(" (%s)", reason);
	if (r->kind == SB_AUDIT_APPROVAL)
		print_approval(json_object_get(o, "data"));
	(void)putchar('\n');
}

/* A cell; one that a spreadsheet would take for a formula begins with an apostrophe. */
static void cell(const char *s, bool last)
{
	(void)putchar('"');
	if (s[0] && strchr("=+-@\t", s[0]))
		(void)putchar('\'');
	for (; *s; s++) {
		if (*s == '"')
			(void)putchar('"');
		(void)putchar(*s);
	}
	(void)fputs(last ? "\"\r\n" : "\",", stdout);
}

static int print_csv(const json_t *o, const struct sb_audit_record *r)
{
	static const char *const fields[] = { "session", "kind", "action", "verdict", "subject", "rule",
					      "reason" };
	char when[32];
	char *data = json_dumps(json_object_get(o, "data"), JSON_COMPACT);

	if (!data)
		return -ENOMEM;
	audit_time(r->time_ns, when);
	printf("%llu,", (unsigned long long)r->seq);
	cell(when, false);
	for (size_t i = 0; i < SB_ARRAY_LEN(fields); i++)
		cell(text_of(o, fields[i]), false);
	cell(data, true);
	free(data);
	return 0;
}

/* Classes of the Open Cybersecurity Schema Framework, 1.1. */
static int class_of(const struct sb_audit_record *r, const char *action)
{
	switch ((int)r->kind) {
	case SB_AUDIT_NETWORK:
		return strcmp(action, "resolve") == 0 ? 4003 : 4001;
	case SB_AUDIT_SSH:
		return 4007;
	case SB_AUDIT_COMMAND:
		return 1007;
	case SB_AUDIT_FILE:
		return 1001;
	default:
		return 6002; /* application lifecycle */
	}
}

static void ocsf_endpoint(json_t *e, const char *subject)
{
	const char *colon = strrchr(subject, ':');
	size_t n = colon ? (size_t)(colon - subject) : strlen(subject);
	uint64_t port = 0;

	if (colon && sb_num_u64(colon + 1, 0, 65535, &port) < 0)
		port = 0;
	(void)json_object_set_new(e, "dst_endpoint",
				  json_pack("{s:o,s:I}", "hostname", json_stringn(subject, n), "port",
					    (json_int_t)port));
}

static json_t *ocsf(const json_t *o, const struct sb_audit_record *r)
{
	const char *action = text_of(o, "action");
	int class = class_of(r, action);
	bool denied = r->verdict == SB_AUDIT_DENY || r->verdict == SB_AUDIT_ERROR;
	json_t *e = json_pack(
		"{s:i,s:i,s:i,s:i,s:s,s:I,s:i,s:i,s:i,s:s,s:{s:s,s:s,s:{s:s,s:s,s:s}},s:{s:{s:s}}}",
		"activity_id", 99, "category_uid", class / 1000, "class_uid", class, "type_uid",
		class * 100 + 99, "activity_name", action, "time", (json_int_t)(r->time_ns / 1000000U),
		"severity_id", denied ? 3 : 1, "status_id", denied ? 2 : 1, "disposition_id",
		r->verdict == SB_AUDIT_DENY ? 2 : r->verdict == SB_AUDIT_ALLOW ? 1 : 0, "message",
		text_of(o, "subject"), "metadata", "version", "1.1.0", "log_name", "sendbox-audit",
		"product", "name", "sendbox", "vendor_name", "sendbox", "version", SB_VERSION, "actor",
		"session", "uid", text_of(o, "session"));
	char seq[24];

	if (!e)
		return NULL;
	(void)snprintf(seq, sizeof(seq), "%llu", (unsigned long long)r->seq);
	(void)json_object_set_new(json_object_get(e, "metadata"), "uid", json_string(seq));
	if (class == 4001)
		ocsf_endpoint(e, text_of(o, "subject"));
	if (class == 4003)
		(void)json_object_set_new(e, "query", json_pack("{s:s}", "hostname", text_of(o, "subject")));
	if (class == 1007)
		(void)json_object_set_new(e, "process", json_pack("{s:s}", "name", text_of(o, "subject")));
	(void)json_object_set(e, "unmapped", (json_t *)(uintptr_t)o);
	return e;
}

static int print_json(json_t *o)
{
	char *s = o ? json_dumps(o, JSON_COMPACT) : NULL;

	if (s)
		(void)puts(s);
	free(s);
	return s ? 0 : -ENOMEM;
}

void audit_print_heading(enum audit_format f)
{
	if (f == AUDIT_CSV)
		(void)fputs("seq,time,session,kind,action,verdict,subject,rule,reason,data\r\n", stdout);
}

int audit_print(enum audit_format f, bool hide, const struct sb_audit_record *r,
		const struct sb_audit_line *line)
{
	json_t *o;
	json_t *e;
	int k;

	if (f == AUDIT_JSONL && !hide) {
		(void)fwrite(line->p, 1, line->len, stdout);
		(void)putchar('\n');
		return ferror(stdout) ? -EIO : 0;
	}
	o = json_loadb(line->p, line->len, 0, NULL);
	k = o ? hide ? redact(o) : 0 : -ENOMEM;
	if (k == 0 && f == AUDIT_TEXT) {
		print_text(o, r);
	} else if (k == 0 && f == AUDIT_CSV) {
		k = print_csv(o, r);
	} else if (k == 0 && f == AUDIT_JSONL) {
		k = print_json(o);
	} else if (k == 0) {
		e = ocsf(o, r);
		k = print_json(e);
		json_decref(e);
	}
	json_decref(o);
	return k < 0 ? k : ferror(stdout) ? -EIO : 0;
}
