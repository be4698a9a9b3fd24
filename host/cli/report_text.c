/* A report for people: as text, as Markdown, in short. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "plan_show.h"
#include "report.h"
#include "sizes.h"

#define SHOWN 40 /* of a list, in a text */

struct out {
	FILE *to;
	bool md;
	bool several; /* folders: paths are told with theirs */
};

static const char *str(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static uint64_t num(const json_t *o, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(o, key));

	return n > 0 ? (uint64_t)n : 0;
}

/* Escaped; in Markdown as code, which nothing ends early. */
static void value(const struct out *o, const char *s)
{
	if (!o->md) {
		plan_put(o->to, s);
		return;
	}
	(void)fputc('`', o->to);
	for (; *s; s++) {
		const char one[2] = { *s, '\0' };

		if (*s == '`')
			(void)fputs("\\x60", o->to);
		else
			plan_put(o->to, one);
	}
	(void)fputc('`', o->to);
}

static void heading(const struct out *o, const char *title)
{
	(void)fprintf(o->to, o->md ? "\n## %s\n\n" : "\n%s\n", title);
}

static void item(const struct out *o)
{
	(void)fputs(o->md ? "- " : "  ", o->to);
}

static void fact(const struct out *o, const char *name, const char *text)
{
	if (text[0] == '\0')
		return;
	(void)fprintf(o->to, o->md ? "- %s: " : "%-10s ", name);
	value(o, text);
	(void)fputc('\n', o->to);
}

/* Words as one line. */
static void words(const json_t *argv, char *out, size_t cap)
{
	struct sb_text t = { .p = out, .cap = cap };
	json_t *w;
	size_t i;

	out[0] = '\0';
	json_array_foreach(argv, i, w)
		sb_text_add(&t, "%s%s", i ? " " : "", json_string_value(w) ? json_string_value(w) : "");
}

typedef void entry_fn(const struct out *o, const json_t *e);

static void list(const struct out *o, const json_t *doc, const char *key, const char *title, entry_fn *fn)
{
	const json_t *v = json_object_get(doc, key);
	size_t n = json_array_size(v);
	size_t shown = o->md ? n : SB_MIN(n, (size_t)SHOWN);
	char more[40];
	uint64_t rest;

	(void)snprintf(more, sizeof(more), "%.30s_more", key);
	rest = num(doc, more) + (n - shown);
	if (n == 0)
		return;
	if (title)
		heading(o, title);
	for (size_t i = 0; i < shown; i++) {
		item(o);
		fn(o, json_array_get(v, i));
		(void)fputc('\n', o->to);
	}
	if (rest > 0)
		(void)fprintf(o->to, "%sand %llu more%s\n", o->md ? "- " : "  ", (unsigned long long)rest,
			      o->md ? "" : "; --json has up to 500");
}

static void times(const struct out *o, uint64_t n)
{
	if (n > 1)
		(void)fprintf(o->to, " (%llu times)", (unsigned long long)n);
}

static void command(const struct out *o, const json_t *e)
{
	char text[2000];

	words(json_object_get(e, "argv"), text, sizeof(text));
	value(o, text);
	times(o, num(e, "count"));
}

static void path_of(const struct out *o, const json_t *e)
{
	sb_autofree char *path = NULL;

	if (o->several && asprintf(&path, "%s/%s", str(e, "source"), str(e, "path")) < 0)
		path = NULL;
	value(o, path ? path : str(e, "path"));
}

static void change(const struct out *o, const json_t *e)
{
	(void)fprintf(o->to, "%.1s ", str(e, "status"));
	path_of(o, e);
	if (json_object_get(e, "guarded")) {
		(void)fputs("  guarded: ", o->to);
		plan_put(o->to, str(e, "guarded"));
	}
}

static void quarantined(const struct out *o, const json_t *e)
{
	(void)fprintf(o->to, "%s: ", str(e, "status")[0] == 'A'	  ? "added"
				     : str(e, "status")[0] == 'D' ? "deleted" : "changed");
	path_of(o, e);
	(void)fprintf(o->to, "  in snapshot %.12s", str(e, "quarantined"));
}

static void destination(const struct out *o, const json_t *e)
{
	char up[16];
	char down[16];

	sizes_text(num(e, "sent"), up, sizeof(up));
	sizes_text(num(e, "received"), down, sizeof(down));
	value(o, str(e, "target"));
	(void)fprintf(o->to, "  %llu connection%s, %s sent, %s received",
		      (unsigned long long)num(e, "connections"), num(e, "connections") == 1 ? "" : "s", up,
		      down);
}

static void package(const struct out *o, const json_t *e)
{
	plan_put(o->to, str(e, "manager"));
	(void)fputs(": ", o->to);
	if (json_is_string(json_object_get(e, "package")))
		value(o, str(e, "package"));
	else
		(void)fputs("what a file of the project lists", o->to);
}

static void secret(const struct out *o, const json_t *e)
{
	value(o, str(e, "name"));
	times(o, num(e, "times"));
}

static void login(const struct out *o, const json_t *e)
{
	value(o, str(e, "host"));
	(void)fputs(" as ", o->to);
	value(o, str(e, "user"));
	times(o, num(e, "signatures"));
}

static void refusal(const struct out *o, const json_t *e)
{
	const json_t *argv = json_object_get(e, "argv");
	char text[2000];

	(void)fprintf(o->to, "%s %s: ", str(e, "kind"), str(e, "action"));
	words(argv, text, sizeof(text));
	value(o, text[0] ? text : str(e, "subject"));
	if (text[0] && strchr(str(e, "subject"), '/') && strcmp(str(e, "subject"), json_string_value(json_array_get(argv, 0))) != 0) {
		(void)fputs(" by ", o->to);
		value(o, str(e, "subject"));
	}
	(void)fputs(" (", o->to);
	plan_put(o->to, str(e, "reason"));
	(void)fputc(')', o->to);
	times(o, num(e, "count"));
	if (str(e, "rule")[0]) {
		(void)fputs(", rule ", o->to);
		value(o, str(e, "rule"));
	}
	if (str(e, "remedy")[0]) {
		(void)fputs(o->md ? " – " : "\n      ", o->to);
		plan_put(o->to, str(e, "remedy"));
	}
}

static void approval(const struct out *o, const json_t *e)
{
	(void)fprintf(o->to, "%s, %s: ", str(e, "action"), str(e, "verdict"));
	value(o, str(e, "subject"));
	if (str(e, "reason")[0]) {
		(void)fputs(" (", o->to);
		plan_put(o->to, str(e, "reason"));
		(void)fputc(')', o->to);
	}
	if (num(e, "grant") > 0)
		(void)fprintf(o->to, ", grant %llu", (unsigned long long)num(e, "grant"));
	else if (num(e, "question") > 0)
		(void)fprintf(o->to, ", question %llu", (unsigned long long)num(e, "question"));
	if (str(e, "scope")[0]) {
		(void)fputs(", ", o->to);
		plan_put(o->to, strcmp(str(e, "scope"), "forever") == 0 ? "for ever" : str(e, "scope"));
	}
	if (str(e, "pattern")[0]) {
		(void)fputs(", pattern ", o->to);
		value(o, str(e, "pattern"));
	}
}

static void snapshot(const struct out *o, const json_t *e)
{
	value(o, str(e, "source"));
	(void)fprintf(o->to, ": before %.16s, after %.16s", str(e, "before")[0] ? str(e, "before") : "-",
		      str(e, "after")[0] ? str(e, "after") : "-");
	if (str(e, "quarantined")[0])
		(void)fprintf(o->to, ", with what is in quarantine %.16s", str(e, "quarantined"));
}

/* ---- parts ---- */

static void end_text(const json_t *s, char *out, size_t cap)
{
	const json_t *status = json_object_get(s, "exit_status");

	if (strcmp(str(s, "outcome"), "ended") == 0 && json_is_integer(status))
		(void)snprintf(out, cap, "exit %d", (int)json_integer_value(status));
	else
		(void)snprintf(out, cap, "%s", str(s, "outcome"));
}

static void head(const struct out *o, const json_t *doc)
{
	const json_t *s = json_object_get(doc, "session");
	char text[2000];

	(void)fprintf(o->to, o->md ? "# Session %s\n\n" : "session    %s\n", str(s, "session"));
	fact(o, "project", str(s, "project"));
	fact(o, "agent", str(s, "agent"));
	fact(o, "instance", str(s, "instance"));
	words(json_object_get(s, "argv"), text, sizeof(text));
	fact(o, "command", text);
	fact(o, "runtime", str(s, "runtime"));
	plan_time_text(num(s, "started_ns") / 1000000000U, text);
	fact(o, "started", text);
	if (json_is_integer(json_object_get(doc, "duration_ns"))) {
		sizes_duration(num(doc, "duration_ns"), text, sizeof(text));
		fact(o, "took", text);
	}
	end_text(s, text, sizeof(text));
	fact(o, "end", text);
	fact(o, "plan", str(s, "plan_sha256"));
}

static void files(const struct out *o, const json_t *doc)
{
	const json_t *f = json_object_get(doc, "files");

	heading(o, "Files");
	if (json_object_get(f, "unknown")) {
		item(o);
		plan_put(o->to, str(f, "unknown"));
		(void)fputc('\n', o->to);
		return;
	}
	item(o);
	(void)fprintf(o->to, "%llu added, %llu changed, %llu deleted",
		      (unsigned long long)num(f, "added"), (unsigned long long)num(f, "modified"),
		      (unsigned long long)num(f, "deleted"));
	if (num(f, "guarded") > 0)
		(void)fprintf(o->to, ", %llu of them guarded", (unsigned long long)num(f, "guarded"));
	(void)fputc('\n', o->to);
	list(o, doc, "changes", NULL, change);
}

/* The root of a head, which is a note of several lines. */
static void head_line(const struct out *o, const char *head)
{
	char size[32] = "";
	char root[64] = "";
	const char *line = strchr(head, '\n');

	if (!line || sscanf(line + 1, "%31s %63s", size, root) != 2)
		return;
	item(o);
	(void)fputs("head of ", o->to);
	plan_put(o->to, size);
	(void)fputs(" records: ", o->to);
	value(o, root);
	(void)fputc('\n', o->to);
}

static void audit(const struct out *o, const json_t *doc)
{
	const json_t *a = json_object_get(doc, "audit");

	heading(o, "Audit");
	item(o);
	if (json_object_get(a, "unknown")) {
		plan_put(o->to, str(a, "unknown"));
		(void)fputc('\n', o->to);
		return;
	}
	(void)fprintf(o->to, "%llu records, number %llu to %llu", (unsigned long long)num(a, "records"),
		      (unsigned long long)num(a, "first"), (unsigned long long)num(a, "last"));
	if (num(a, "lost") > 0)
		(void)fprintf(o->to, "; %llu more were counted only", (unsigned long long)num(a, "lost"));
	(void)fputc('\n', o->to);
	head_line(o, str(a, "head"));
}

static void render(FILE *to, bool md, const json_t *doc)
{
	const json_t *folders = json_object_get(json_object_get(doc, "session"), "snapshots");
	const struct out out = { to, md, json_array_size(folders) > 1 };
	const struct out *o = &out;

	head(o, doc);
	files(o, doc);
	list(o, doc, "quarantined", "Quarantined: put back, and not there any more", quarantined);
	list(o, doc, "network", "Network", destination);
	list(o, doc, "refused", "Refused", refusal);
	list(o, doc, "commands", "Commands", command);
	list(o, doc, "packages", "Packages", package);
	list(o, doc, "secrets", "Secrets", secret);
	list(o, doc, "ssh", "SSH logins", login);
	list(o, doc, "approvals", "Approvals", approval);
	list(o, json_object_get(doc, "session"), "snapshots", "Snapshots", snapshot);
	audit(o, doc);
}

void report_text(FILE *to, const json_t *doc)
{
	render(to, false, doc);
}

void report_markdown(FILE *to, const json_t *doc)
{
	render(to, true, doc);
}
