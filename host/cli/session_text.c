#include "session_text.h"

#include <errno.h>
#include <string.h>

#include "audit_text.h"
#include "base/num.h"
#include "base/text.h"
#include "commands.h"
#include "os/loop.h"
#include "plan_show.h"
#include "sizes.h"

#define SHORT 12 /* digits of an id in lists */

static json_t *or_null(const char *s)
{
	return s && s[0] ? commands_text(s) : json_null();
}

static json_t *number_or_null(int64_t n, bool has)
{
	return has ? json_integer(n) : json_null();
}

static json_t *snapshots_json(const struct session_record *r)
{
	json_t *all = json_array();

	for (size_t i = 0; i < r->n_snapshots; i++) {
		const struct session_snapshot *s = &r->snapshots[i];

		(void)json_array_append_new(all, json_pack("{s:o,s:o,s:o,s:o}", "source",
							   commands_text(s->source), "before",
							   or_null(s->before), "after", or_null(s->after),
							   "quarantined", or_null(s->quarantined)));
	}
	return all;
}

/* The words of its command; NULL when there are none, or what looks like a secret cannot be left out. */
static json_t *words(const struct session_record *r, bool redact)
{
	json_t *argv = r->argv ? json_loads(r->argv, 0, NULL) : NULL;

	if (argv && redact && audit_redact_json(argv) < 0) {
		json_decref(argv);
		return NULL;
	}
	return argv;
}

json_t *session_text_json(const struct session_record *r, bool redact)
{
	json_t *argv = words(r, redact);
	json_t *audit = r->audit_first >= 0 ? json_pack("{s:I,s:I}", "first", (json_int_t)r->audit_first,
							"last", (json_int_t)r->audit_last)
					    : json_null();
	char id[33];
	char plan[65];

	sb_hex_write(r->id, 16, id);
	sb_hex_write(r->plan_sha256, 32, plan);
	return json_pack("{s:s,s:s,s:o,s:o,s:o,s:o,s:o,s:s,s:I,s:o,s:s,s:o,s:o,s:o,s:b}", "session", id,
			 "kind", session_kind_name(r->kind), "project", or_null(r->project), "agent",
			 or_null(r->agent), "instance", or_null(r->instance), "runtime",
			 or_null(r->provider), "argv", argv ? argv : json_array(), "plan_sha256", plan,
			 "started_ns", (json_int_t)r->started_ns, "ended_ns",
			 number_or_null((json_int_t)r->ended_ns, r->ended_ns != 0), "outcome",
			 session_outcome_name(r->outcome), "exit_status",
			 number_or_null(r->exit_status, r->exit_status >= 0), "audit", audit, "snapshots",
			 snapshots_json(r), "kept", r->kept);
}

/* Printable ASCII as it is, the rest escaped. */
static void add_escaped(struct sb_text *t, const char *s)
{
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c < 0x20 || c >= 0x7f)
			sb_text_add(t, "\\x%02x", (unsigned int)c);
		else
			sb_text_add(t, "%c", c);
	}
}

static void command(const struct session_record *r, bool redact, char *out, size_t cap)
{
	struct sb_text t = { .p = out, .cap = cap };
	json_t *argv = words(r, redact);
	json_t *word;
	size_t i;

	out[0] = '\0';
	json_array_foreach(argv, i, word) {
		const char *s = json_string_value(word);

		if (s && t.len + 1 < cap) {
			sb_text_add(&t, "%s", i ? " " : "");
			add_escaped(&t, s);
		}
	}
	json_decref(argv);
}

void session_text_outcome(const struct session_record *r, char *out, size_t cap)
{
	if (r->outcome == SESSION_ENDED && r->exit_status >= 0)
		(void)snprintf(out, cap, "exit %d", r->exit_status);
	else
		(void)snprintf(out, cap, "%s", session_outcome_name(r->outcome));
}

void session_text_duration(const struct session_record *r, char *out, size_t cap)
{
	uint64_t end = r->outcome == SESSION_RUNNING ? sb_real_ns() : r->ended_ns;

	if (end < r->started_ns || end == 0)
		(void)snprintf(out, cap, "-");
	else
		sizes_duration(end - r->started_ns, out, cap);
}

/* ---- by a word ---- */

struct of_instance {
	const char *name;
	char id[33];
};

static int on_record(void *arg, const struct session_record *r)
{
	struct of_instance *f = arg;

	if (!r->instance || strcmp(r->instance, f->name) != 0 || r->kind != SESSION_COMMAND)
		return 0;
	sb_hex_write(r->id, sizeof(r->id), f->id);
	return 1;
}

int session_text_find(struct state *s, const char *word, const char *project, struct session_record *ret,
		      struct sb_err *err)
{
	struct of_instance f = { .name = word };
	struct sb_err later = { 0 };
	int r = session_record_get(s, word, word ? NULL : project, ret, err);

	if (!word || (r != -ENOENT && r != -EINVAL))
		return r;
	if (session_record_each(s, on_record, &f, &later) <= 0) /* the newest first */
		return r;
	*err = (struct sb_err){ 0 };
	return session_record_get(s, f.id, NULL, ret, err);
}

/* ---- lists ---- */

void session_text_head(FILE *to)
{
	(void)fprintf(to, "%-*s  %-19s  %8s  %-9s  %s\n", SHORT, "SESSION", "STARTED (UTC)", "TOOK", "END",
		      "COMMAND");
}

void session_text_line(FILE *to, const struct session_record *r, bool redact)
{
	char id[33];
	char when[PLAN_TIME_ROOM];
	char took[24];
	char end[24];
	char text[61];

	sb_hex_write(r->id, 16, id);
	plan_time_text(r->started_ns / 1000000000U, when);
	session_text_duration(r, took, sizeof(took));
	session_text_outcome(r, end, sizeof(end));
	command(r, redact, text, sizeof(text));
	(void)fprintf(to, "%.*s  %.19s  %8s  %-9s  %s%s%s%s\n", SHORT, id, when, took, end, r->kept ? "[kept] " : "",
		      r->agent ? r->agent : "", r->agent ? ": " : "", text);
}

/* ---- one ---- */

static void row(FILE *to, const char *name, const char *value)
{
	if (!value || !value[0])
		return;
	(void)fprintf(to, "%-10s ", name);
	plan_put(to, value);
	(void)fputc('\n', to);
}

void session_text_show(FILE *to, const struct session_record *r, bool redact)
{
	char text[4200];
	char when[PLAN_TIME_ROOM];

	sb_hex_write(r->id, 16, text);
	row(to, "session", text);
	if (r->kind != SESSION_COMMAND)
		row(to, "kind", session_kind_name(r->kind));
	row(to, "project", r->project);
	row(to, "agent", r->agent);
	row(to, "instance", r->instance);
	row(to, "runtime", r->provider);
	command(r, redact, text, sizeof(text));
	(void)fprintf(to, "%-10s %s\n", "command", text); /* escaped already */
	plan_time_text(r->started_ns / 1000000000U, when);
	row(to, "started", when);
	if (r->ended_ns) {
		plan_time_text(r->ended_ns / 1000000000U, when);
		row(to, "ended", when);
	}
	session_text_duration(r, text, sizeof(text));
	row(to, "took", text);
	session_text_outcome(r, text, sizeof(text));
	row(to, "end", text);
	sb_hex_write(r->plan_sha256, 32, text);
	row(to, "plan", text);
	for (size_t i = 0; i < r->n_snapshots; i++) {
		const struct session_snapshot *s = &r->snapshots[i];

		row(to, "snapshots", s->source);
		row(to, "  before", s->before);
		row(to, "  after", s->after);
		row(to, "  in quarantine", s->quarantined);
	}
	if (r->kept)
		row(to, "kept", "yes");
}
