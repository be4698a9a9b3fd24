#include "banner.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "config/text.h"

#define KEY 12 /* columns of the first word and what follows it */

struct face {
	const struct banner *b;
	struct sb_buf *out;
	unsigned int width;
};

static void colour(const struct face *f, const char *code)
{
	if (f->b->colour)
		sb_buf_addf(f->out, "\033[%sm", code);
}

/* Columns of a text: characters, as far as this program knows. */
static size_t columns(const char *s, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)s[i] & 0xc0) != 0x80;
	return n;
}

/* How many bytes of @s go into @room columns; at a blank where there is one. */
static size_t piece(const char *s, size_t room)
{
	size_t len = strlen(s);
	size_t at = 0;
	size_t blank = 0;
	size_t n = 0;

	if (columns(s, len) <= room)
		return len;
	while (at < len && n < room) {
		if (s[at] == ' ' && at > 0)
			blank = at;
		at++;
		while (at < len && ((unsigned char)s[at] & 0xc0) == 0x80)
			at++;
		n++;
	}
	if (s[at] == ' ')
		blank = at;
	return blank > 0 ? blank : at;
}

/* One row: the key, then @text broken to what is left of the width. */
static void row(struct face *f, const char *key, const char *text, const char *code)
{
	bool below = f->width < 3 * KEY; /* narrow: the text stands under its key */
	unsigned int indent = below ? 2 : KEY;
	char shown[4096];
	const char *p = shown;

	text_show(text, strlen(text), shown, sizeof(shown));
	colour(f, "33");
	if (below)
		sb_buf_addf(f->out, "%s\n", key);
	else
		sb_buf_addf(f->out, "%-*s", KEY, key);
	colour(f, "0");
	for (bool first = true; first || *p; first = false) {
		size_t n = piece(p, f->width - indent);

		if (!first || below)
			sb_buf_addf(f->out, "%*s", (int)indent, "");
		if (code)
			colour(f, code);
		sb_buf_add(f->out, p, n);
		if (code)
			colour(f, "0");
		sb_buf_add_u8(f->out, '\n');
		p += n;
		p += strspn(p, " ");
	}
}

static void add(char *out, size_t cap, const char *s)
{
	size_t n = strlen(out);

	(void)snprintf(out + n, cap - n, "%s%s", n > 0 ? ", " : "", s);
}

static void amount(uint64_t bytes, char out[32])
{
	if (bytes % (1ULL << 30) == 0)
		(void)snprintf(out, 32, "%llu GiB", (unsigned long long)(bytes >> 30));
	else
		(void)snprintf(out, 32, "%llu MiB", (unsigned long long)(bytes >> 20));
}

static void resources(struct face *f)
{
	const struct sb_plan *p = f->b->plan;
	char memory[32] = "no limit of its own";
	char text[100];

	if (p->memory_bytes > 0)
		amount(p->memory_bytes, memory);
	(void)snprintf(text, sizeof(text), "%u CPU%s, memory %s", p->cpus, p->cpus == 1 ? "" : "s",
		       memory);
	row(f, "Resources", text, NULL);
}

static void runtime(struct face *f)
{
	const struct sb_plan *p = f->b->plan;

	if (p->provider == SB_PROVIDER_NAMESPACE)
		row(f, "Runtime", "namespaces: shares the host's kernel, weaker than a virtual machine",
		    "31");
	else if (p->accel == SB_ACCEL_TCG)
		row(f, "Runtime", "micro-VM, emulated: a kernel of its own; slow, and no boundary by "
				  "QEMU's own words", "33");
	else
		row(f, "Runtime", "micro-VM: a kernel of its own", "32");
}

/* Rules that came from one group are one word. */
static void network(struct face *f)
{
	const struct sb_plan_net *n = &f->b->plan->net;
	char text[3000] = "";
	char last[300] = "";
	size_t shown = 0;
	size_t more = 0;

	if (n->mode == SB_NET_NONE || (n->mode == SB_NET_FILTER && n->n_rules == 0)) {
		row(f, "Network", "none", "33");
		return;
	}
	if (n->mode == SB_NET_OPEN) {
		row(f, "Network", "NOT FILTERED: every public name and address", "31");
		return;
	}
	for (size_t i = 0; i < n->n_rules; i++) {
		const struct sb_net_rule *r = &n->rules[i];
		const char *word = r->host;
		const char *from;
		char group[64];

		if (r->deny)
			continue;
		from = strstr(r->from, "group ");
		if (from) {
			(void)snprintf(group, sizeof(group), "%.*s",
				       (int)SB_MIN(strcspn(from + 6, " "), sizeof(group) - 1), from + 6);
			word = group;
		}
		if (strcmp(word, last) == 0)
			continue;
		(void)snprintf(last, sizeof(last), "%.299s", word);
		if (shown < 40)
			add(text, sizeof(text), word);
		else
			more++;
		shown++;
	}
	if (more > 0) {
		(void)snprintf(last, sizeof(last), "and %zu more", more);
		add(text, sizeof(text), last);
	}
	row(f, "Network", text[0] ? text : "none", text[0] ? "32" : "33");
}

/* Whether the plan's mount is the workspace or stands in the list already. */
static bool is_listed(const struct banner *b, const struct sb_plan_mount *m)
{
	if (sb_path_within(b->plan->cwd, m->guest))
		return true;
	for (size_t i = 0; i < b->n_mounts; i++)
		if (strcmp(b->mounts[i].guest, m->guest) == 0)
			return true;
	return false;
}

static void mounts(struct face *f)
{
	const char *key = "Mounts";

	for (size_t i = 0; i < f->b->plan->n_mounts; i++) {
		const struct sb_plan_mount *m = &f->b->plan->mounts[i];
		char text[4096];

		if (is_listed(f->b, m))
			continue;
		(void)snprintf(text, sizeof(text), "%.1500s -> %.1500s%s", m->host, m->guest,
			       m->mode == SB_MOUNT_RO ? " (ro)" : "");
		row(f, key, text, NULL);
		key = "";
	}

	for (size_t i = 0; i < f->b->n_mounts; i++) {
		const struct banner_mount *m = &f->b->mounts[i];
		char text[4096];

		(void)snprintf(text, sizeof(text), "%.1500s -> %.1500s%s%s%s%s", m->shown, m->guest,
			       m->read_only ? " (ro)" : "", m->note[0] ? " (" : "", m->note,
			       m->note[0] ? ")" : "");
		row(f, key, text, m->loud ? "31" : NULL);
		key = "";
	}
}

/* Values that whoever reads the environment can use elsewhere. */
static bool is_key(const char *name)
{
	static const char *const words[] = { "KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD",
					     "CREDENTIAL" };

	for (size_t i = 0; i < SB_ARRAY_LEN(words); i++)
		if (strstr(name, words[i]))
			return true;
	return false;
}

static void keys(struct face *f)
{
	const struct sb_plan *p = f->b->plan;
	char names[600] = "";
	char text[900];

	for (size_t i = 0; i < p->n_env; i++)
		if (is_key(p->env[i].name))
			add(names, sizeof(names), p->env[i].name);
	if (!names[0])
		return;
	(void)snprintf(text, sizeof(text), "%s: plain variable%s inside, readable by all that runs "
		       "there", names, strchr(names, ',') ? "s" : "");
	row(f, "Keys", text, "31");
}

static void command(struct face *f)
{
	char text[1200] = "";
	struct sb_text t = { .p = text, .cap = sizeof(text) };

	for (size_t i = 0; f->b->plan->argv && f->b->plan->argv[i]; i++)
		sb_text_add(&t, "%s%.300s", i > 0 ? " " : "", f->b->plan->argv[i]);
	row(f, "Command", text, NULL);
}

void banner_write(const struct banner *b, struct sb_buf *out)
{
	struct face f = { .b = b, .out = out, .width = SB_MAX(b->width, 20U) };
	const struct sb_plan *p = b->plan;
	char title[300];

	(void)snprintf(title, sizeof(title), "%.128s (%.64s)", b->agent->display.text,
		       b->agent->name);
	row(&f, "Agent", title, "1");
	row(&f, "Instance", b->instance, NULL);
	row(&f, "Environment", b->environment, NULL);
	row(&f, "Workspace", p->cwd, NULL);
	resources(&f);
	runtime(&f);
	command(&f);
	network(&f);
	mounts(&f);
	keys(&f);
}
