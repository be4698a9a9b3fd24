#include "commands.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/syscalls.h"

#define MAX_WORDS 512

struct entry {
	struct sb_ipc_exec_event ev; /* count: all of them */
	bool told;
};

struct commands {
	const struct sb_plan *plan;
	bool at_once;
	struct entry *list; /* COMMANDS_MAX, in the order of their coming */
	size_t n;
	size_t lines;
	uint64_t beyond; /* refusals that had no place, here or on the way */
};

int commands_new(const struct sb_plan *plan, bool at_once, struct commands **ret)
{
	struct commands *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->plan = plan;
	c->at_once = at_once;
	*ret = c;
	return 0;
}

struct commands *commands_free(struct commands *c)
{
	if (c)
		free(c->list);
	free(c);
	return NULL;
}

/* --- what an event says, in our own words --- */

static const struct sb_cmd_rule *rule_of(const struct sb_plan *plan,
					 const struct sb_ipc_exec_event *ev)
{
	return ev->rule < plan->commands.n_rules ? &plan->commands.rules[ev->rule] : NULL;
}

/* Only the words that this program knows, so that nothing else is ever shown. */
static const char *why_of(const struct sb_ipc_exec_event *ev)
{
	static const char *const known[] = {
		"rule",	   "default",	   "copy-of-denied", "loader",	    "no-path", "loose-name",
		"too-long", "changed", "cannot-watch",   "lost", "system-call",
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(known); i++)
		if (strncmp(ev->why, known[i], sizeof(ev->why)) == 0)
			return known[i];
	return "other";
}

static enum sb_cmd_action action_of(const struct sb_ipc_exec_event *ev)
{
	return ev->action == SB_CMD_LOG || ev->action == SB_CMD_ALLOW
		       ? (enum sb_cmd_action)ev->action
		       : SB_CMD_DENY;
}

static bool is_call(const struct sb_ipc_exec_event *ev)
{
	return strncmp(ev->why, "system-call", sizeof(ev->why)) == 0;
}

/* The name must be one that we know; the program's path is the workload's. */
static void explain_call(const struct sb_ipc_exec_event *ev, char *out, size_t cap)
{
	bool known = ev->argv_len > 0 && sb_syscall_number(ev->argv) != -ENOENT;
	char path[sizeof(ev->path)];
	size_t n = strnlen(ev->path, sizeof(path) - 1);

	for (size_t i = 0; i < n; i++)
		path[i] = ev->path[i] >= 0x20 && ev->path[i] < 0x7f ? ev->path[i] : '?';
	path[n] = '\0';
	(void)snprintf(out, cap, "refused system call %s by %s", known ? ev->argv : "(unknown)",
		       n > 0 ? path : "a program");
}

static void explain(const struct sb_plan *plan, const struct sb_ipc_exec_event *ev, char *out,
		    size_t cap)
{
	const char *words[MAX_WORDS + 1];
	struct sb_cmd_verdict v = { .action = action_of(ev), .rule = rule_of(plan, ev),
				    .why = why_of(ev) };
	struct sb_cmd_request q = { .path = ev->path, .fd = -1, .argv = words,
				    .project = plan->cwd, .top_level = ev->top_level };

	if (is_call(ev)) {
		explain_call(ev, out, cap);
		return;
	}
	for (size_t at = 0; at < ev->argv_len && q.argc < MAX_WORDS;
	     at += strlen(ev->argv + at) + 1)
		words[q.argc++] = ev->argv + at;
	words[q.argc] = NULL;
	sb_cmd_explain(&v, &q, out, cap);
	if (ev->killed) /* it was allowed as it was judged */
		(void)snprintf(out, cap, "killed \"%.200s\": what it was to run changed while it was "
			       "judged", ev->path);
}

static void say(struct commands *c, struct entry *e, commands_line_fn *line, void *arg)
{
	static const char prefix[] = "sendbox: "; /* the caller has its own */
	char text[1400];
	char times[40] = "";
	char all[1500];
	size_t skip;

	explain(c->plan, &e->ev, text, sizeof(text));
	skip = strncmp(text, prefix, sizeof(prefix) - 1) == 0 ? sizeof(prefix) - 1 : 0;
	if (e->ev.count > 1)
		(void)snprintf(times, sizeof(times), " (%llu times)",
			       (unsigned long long)e->ev.count);
	(void)snprintf(all, sizeof(all), "%s%s", text + skip, times);
	line(arg, all);
	e->told = true;
	c->lines++;
}

/* --- text --- */

static bool equal(const struct sb_ipc_exec_event *a, const struct sb_ipc_exec_event *b)
{
	return a->rule == b->rule && a->action == b->action && a->killed == b->killed &&
	       a->argv_len == b->argv_len && strcmp(a->why, b->why) == 0 &&
	       strcmp(a->path, b->path) == 0 && memcmp(a->argv, b->argv, a->argv_len) == 0;
}

/* A shell that tries the next folder of PATH after a refusal: to people that is one command. */
static bool second_try(const struct sb_ipc_exec_event *last, const struct sb_ipc_exec_event *ev)
{
	return last->pid == ev->pid && last->cmd == ev->cmd && ev->count == 1 && !is_call(ev);
}

void commands_add(struct commands *c, const struct sb_ipc_exec_event *ev, commands_line_fn *line,
		  void *arg)
{
	bool lost = strcmp(ev->why, "lost") == 0;

	if (ev->action == SB_CMD_ALLOW)
		return;
	for (size_t i = 0; i < c->n && !lost; i++) {
		if (equal(&c->list[i].ev, ev)) {
			if (!second_try(&c->list[i].ev, ev))
				c->list[i].ev.count += ev->count;
			c->list[i].ev.pid = ev->pid;
			return;
		}
	}
	if (!c->list)
		c->list = calloc(COMMANDS_MAX, sizeof(*c->list));
	if (lost || !c->list || c->n == COMMANDS_MAX) {
		c->beyond += ev->count;
		return;
	}
	c->list[c->n++].ev = *ev;
	if (c->at_once && ev->action == SB_CMD_DENY && !is_call(ev) && c->lines + 1 < COMMANDS_LINES)
		say(c, &c->list[c->n - 1], line, arg);
}

void commands_tell(struct commands *c, commands_line_fn *line, void *arg)
{
	uint64_t rest = c->beyond;
	uint64_t again = 0; /* of commands that have their line */
	char text[160];

	for (size_t i = 0; i < c->n; i++) {
		struct entry *e = &c->list[i];

		if (e->told)
			again += e->ev.count - 1;
		else if (c->lines + 1 < COMMANDS_LINES)
			say(c, e, line, arg);
		else
			rest += e->ev.count;
	}
	if (rest == 0 && again == 0)
		return;
	if (rest == 0)
		(void)snprintf(text, sizeof(text), "commands: refused again, %llu time%s; --json shows "
			       "each", (unsigned long long)again, again == 1 ? "" : "s");
	else
		(void)snprintf(text, sizeof(text), "commands: and %llu more; --json shows all",
			       (unsigned long long)(rest + again));
	line(arg, text);
}

/* --- JSON --- */

/* Bytes as text: what is not valid UTF-8 comes with each byte outside ASCII escaped. */
json_t *commands_text(const char *p)
{
	json_t *s = json_string(p);
	sb_autofree char *out = NULL;
	size_t n = 0;

	if (s)
		return s;
	out = malloc(4 * strlen(p) + 1);
	if (!out)
		return NULL;
	for (; *p; p++) {
		if ((unsigned char)*p < 0x80)
			out[n++] = *p;
		else
			n += (size_t)snprintf(out + n, 5, "\\x%02x", (unsigned int)(unsigned char)*p);
	}
	out[n] = '\0';
	return json_string(out);
}

json_t *commands_json(const struct sb_plan *plan, const struct sb_ipc_exec_event *ev)
{
	const struct sb_cmd_rule *rule = rule_of(plan, ev);
	json_t *argv = json_array();

	for (size_t at = 0; at < ev->argv_len; at += strlen(ev->argv + at) + 1)
		(void)json_array_append_new(argv, commands_text(ev->argv + at));
	return json_pack("{s:s,s:s,s:s,s:s?,s:s?,s:o?,s:o?,s:b,s:b,s:b,s:I,s:I,s:I}", "event",
			 "command", "action", sb_cmd_action_name(action_of(ev)), "why", why_of(ev),
			 "rule", rule ? rule->pattern : NULL, "from", rule ? rule->from : NULL,
			 "path", commands_text(ev->path), "argv", argv, "cut", ev->cut != 0,
			 "top_level", ev->top_level != 0, "killed", ev->killed != 0, "command",
			 (json_int_t)ev->cmd, "pid", (json_int_t)ev->pid, "count",
			 (json_int_t)ev->count);
}
