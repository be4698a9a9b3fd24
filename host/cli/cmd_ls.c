/* sendbox ls, rm, rename, prune: what needs the database and no session. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "cmd_instance.h"
#include "plan_show.h"
#include "sizes.h"
#include "term.h"
#include "run_agent_i.h"

static const char json_help[] = "print one JSON object an instance a line";

/* ---- size ---- */

static uint64_t size_of(struct state *s, int64_t id)
{
	char path[4200];
	struct sb_err err = { 0 };
	int fd = -1;

	return instance_dir(s, id, path, sizeof(path), &fd, &err) < 0 ? 0 : sizes_used(fd);
}

static void age_text(int64_t then, char *out, size_t cap)
{
	long long s = (long long)time(NULL) - then;

	if (s < 0)
		s = 0;
	if (s < 60)
		(void)snprintf(out, cap, "%llds ago", s);
	else if (s < 3600)
		(void)snprintf(out, cap, "%lldm ago", s / 60);
	else if (s < 86400)
		(void)snprintf(out, cap, "%lldh ago", s / 3600);
	else
		(void)snprintf(out, cap, "%lldd ago", s / 86400);
}

/* ---- ls ---- */

struct listing {
	struct instances *in;
	bool json;
	bool any;
	bool names;
	size_t width; /* of a line; without a terminal there is no end to it */
};

/* No layer of an image lies below, and no folder was named. */
static bool is_host(const struct instance *i)
{
	return i->layers && strcmp(i->layers, "[]") == 0;
}

static void list_json(const struct listing *l, const struct instance *i)
{
	char session[33];
	char plan[65];
	json_t *layers = i->layers ? json_loads(i->layers, 0, NULL) : NULL;
	json_t *options = i->options ? json_loads(i->options, 0, NULL) : NULL;
	json_t *o;
	char *s;

	sb_hex_write(i->session, 16, session);
	sb_hex_write(i->plan_sha256, 32, plan);
	o = json_pack("{s:s,s:s?,s:s,s:s?,s:s?,s:s?,s:o?,s:s,s:s,s:I,s:o,s:I,s:I,s:o,s:I,s:o?}", "name", i->name,
		      "agent", i->agent, "status", instance_status_name(i->status), "workspace",
		      i->workspace, "runtime", i->runtime, "image",
		      i->image ? i->image : is_host(i) ? "host" : NULL, "layers", layers, "session",
		      session, "plan_sha256", plan, "cpus", (json_int_t)i->cpus, "memory_bytes",
		      i->memory_bytes ? json_integer((json_int_t)i->memory_bytes) : json_null(), "created",
		      (json_int_t)i->created_s, "started", (json_int_t)i->started_s, "exit_code",
		      i->exit_code < 0 ? json_null() : json_integer(i->exit_code), "size_bytes",
		      (json_int_t)size_of(l->in->s, i->id), "options", options);
	s = o ? json_dumps(o, JSON_COMPACT) : NULL;
	if (s)
		(void)puts(s);
	free(s);
	json_decref(o);
}

/* What is left of a line of the terminal: the end of a path says more than its beginning. */
static void list_workspace(const struct listing *l, const char *path)
{
	const size_t before = 79;
	size_t room = l->width > before + 10 ? l->width - before : 10;
	size_t n = strlen(path);

	if (n > room) {
		path += n - room + 3;
		while (((unsigned char)*path & 0xc0) == 0x80)
			path++;
		printf("...");
	}
	plan_put(stdout, path);
	(void)putchar('\n');
}

static void list_narrow(struct listing *l, const struct instance *i, const char *age, const char *size)
{
	const char *rest[] = { instance_status_name(i->status), age, size, i->agent ? i->agent : "-" };
	size_t at = (size_t)printf("%s", i->name);

	for (size_t k = 0; k < SB_ARRAY_LEN(rest) && at + 1 + strlen(rest[k]) <= l->width; k++)
		at += (size_t)printf(" %s", rest[k]);
	(void)putchar('\n');
	l->any = true;
}

static int list_one(void *arg, const struct instance *i)
{
	struct listing *l = arg;
	char name[31];
	char age[32];
	char size[32];
	size_t n = strlen(i->name);

	if (l->names) {
		(void)puts(i->name);
		return 0;
	}
	if (l->json) {
		list_json(l, i);
		return 0;
	}
	age_text(i->created_s, age, sizeof(age));
	sizes_text(size_of(l->in->s, i->id), size, sizeof(size));
	if (l->width < 80) { /* a line each, the name whole */
		list_narrow(l, i, age, size);
		return 0;
	}
	if (!l->any)
		printf("%-30s %-12s %-12s %-12s %6s  %s\n", "NAME", "AGENT", "STATUS", "CREATED", "SIZE",
		       "WORKSPACE");
	l->any = true;
	/* the end of a long name tells it apart */
	(void)snprintf(name, sizeof(name), "%s%s", n > 30 ? "..." : "", n > 30 ? i->name + n - 27 : i->name);
	printf("%-30s %-12.12s %-12s %-12s %6s  ", name, i->agent ? i->agent : "-",
	       instance_status_name(i->status), age, size);
	list_workspace(l, i->workspace ? i->workspace : "-");
	return 0;
}

static int take_ls(void *arg, int id, const char *value, struct sb_err *err)
{
	struct listing *l = arg;

	(void)value;
	(void)err;
	l->json |= id == 2;
	l->names |= id == 3;
	return 0;
}

int cmd_ls(int argc, char **argv)
{
	static const struct cli_option table[] = {
		{ "json", 0, NULL, json_help, 2 },
		{ "names", 'q', NULL, "print the names alone", 3 },
		{ "all", 'a', NULL, "what it does anyway: all are listed", 4 },
		{ "help", 'h', NULL, "this text", VERB_HELP },
	};
	static const struct verb v = { "sendbox ls [options]", "List the instances, newest first.", table,
				       SB_ARRAY_LEN(table), take_ls };
	struct listing l = { .width = SIZE_MAX };
	struct sb_err err = { 0 };
	uint16_t rows;
	uint16_t cols;
	int at = 0;
	int k = verb_options(&v, &l, argc, argv, &at);

	if (k != 0)
		return k == VERB_DONE ? SB_EXIT_OK : SB_EXIT_USAGE;
	if (at < argc) {
		cli_error("ls takes no names; sendbox ls --help");
		return SB_EXIT_USAGE;
	}
	if (isatty(STDOUT_FILENO)) {
		cli_term_size(STDOUT_FILENO, &rows, &cols);
		l.width = cols;
	}
	if (instances_open(&l.in) < 0)
		return SB_EXIT_INTERNAL;
	k = instance_each(l.in->s, list_one, &l, &err);
	if (k < 0)
		cli_error("%s", err.text);
	l.in->s = state_close(l.in->s);
	if (fflush(stdout) != 0)
		return SB_EXIT_OUTPUT;
	return k < 0 ? SB_EXIT_INTERNAL : SB_EXIT_OK;
}

/* ---- rm ---- */

struct names {
	char *name[4096];
	size_t n;
	int64_t before; /* prune: last used before; 0 = all */
	bool lost;
};

static int collect(void *arg, const struct instance *i)
{
	struct names *n = arg;
	int64_t last = i->stopped_s > i->started_s ? i->stopped_s : i->started_s;

	if (n->before != 0 && (instance_runs(i) || last >= n->before))
		return 0;
	if (n->n == SB_ARRAY_LEN(n->name)) {
		n->lost = true;
		return 0;
	}
	n->name[n->n] = strdup(i->name);
	return n->name[n->n] ? (n->n++, 0) : -ENOMEM;
}

/* @status: of them all; what is lost once stays so. */
static void remove_named(int *status, struct instances *in, const char *name, bool json)
{
	struct sb_err err = { 0 };
	int k = instance_remove(in->s, name, &err);

	if (k == 0) { /* and its copies of an agent's settings: the next one of the name has its own */
		k = run_agent_settings_remove(&in->dirs.d, name);
		if (k < 0)
			(void)sb_err_set(&err, k, "%s is removed, but not its copies of settings: %s", name,
					 strerror(-k));
	}
	if (k < 0)
		cli_error("%s", err.text);
	else if (json)
		printf("{\"removed\":\"%s\"}\n", name);
	else
		printf("%s\n", name);
	/* an unknown name keeps no other one from being removed */
	if (k < 0)
		*status = SB_MAX(*status, SB_EXIT_NO);
}

static int take_rm(void *arg, int id, const char *value, struct sb_err *err)
{
	bool *flags = arg;

	(void)value;
	if (id == 4)
		return sb_err_set(err, -EINVAL, "rm never ends a session: first sendbox stop --time 0 NAME; one "
						"that does not run needs no --force");
	flags[id - 2] = true;
	return 0;
}

int cmd_rm(int argc, char **argv)
{
	static const struct cli_option table[] = {
		{ "all", 'a', NULL, "every instance that does not run", 2 },
		{ "json", 0, NULL, json_help, 3 },
		{ "force", 'f', NULL, "refused: sendbox stop ends a session", 4 },
		{ "help", 'h', NULL, "this text", VERB_HELP },
	};
	static const struct verb v = { "sendbox rm [options] NAME...", "Remove instances with all their files.",
				       table, SB_ARRAY_LEN(table), take_rm };
	static struct names all;
	bool flags[2] = { false, false };
	struct instances *in;
	struct sb_err err = { 0 };
	int status = SB_EXIT_OK;
	int at = 0;
	int k = verb_options(&v, flags, argc, argv, &at);

	if (k != 0)
		return k == VERB_DONE ? SB_EXIT_OK : SB_EXIT_USAGE;
	if (at >= argc && !flags[0]) {
		cli_error("no names; write: sendbox rm NAME..., or sendbox rm --all");
		return SB_EXIT_USAGE;
	}
	if (instances_open(&in) < 0)
		return SB_EXIT_INTERNAL;
	if (flags[0] && instance_each(in->s, collect, &all, &err) < 0) {
		cli_error("%s", err.text);
		status = SB_EXIT_INTERNAL;
	}
	for (size_t i = 0; i < all.n; i++)
		remove_named(&status, in, all.name[i], flags[1]);
	for (int i = at; i < argc && !flags[0]; i++)
		remove_named(&status, in, argv[i], flags[1]);
	in->s = state_close(in->s);
	return status;
}

/* ---- rename ---- */

int cmd_rename(int argc, char **argv)
{
	static const struct cli_option table[] = { { "help", 'h', NULL, "this text", VERB_HELP } };
	static const struct verb v = { "sendbox rename NAME NEW", "Give an instance another name.", table,
				       SB_ARRAY_LEN(table), NULL };
	struct instances *in;
	struct sb_err err = { 0 };
	int at = 0;
	int k = verb_options(&v, NULL, argc, argv, &at);

	if (k != 0)
		return k == VERB_DONE ? SB_EXIT_OK : SB_EXIT_USAGE;
	if (argc - at != 2) {
		cli_error("write: %s", v.usage);
		return SB_EXIT_USAGE;
	}
	if (instances_open(&in) < 0)
		return SB_EXIT_INTERNAL;
	k = instance_rename(in->s, argv[at], argv[at + 1], &err);
	if (k == 0) {
		k = run_agent_settings_rename(&in->dirs.d, argv[at], argv[at + 1]);
		if (k < 0)
			(void)sb_err_set(&err, k, "renamed, but its copies of settings are still %s's: %s",
					 argv[at], strerror(-k));
	}
	if (k < 0)
		cli_error("%s", err.text);
	in->s = state_close(in->s);
	return k == 0 ? SB_EXIT_OK : k == -EINVAL ? SB_EXIT_USAGE : SB_EXIT_NO;
}

/* ---- prune ---- */

struct prune {
	int64_t before;
	bool dry;
	bool json;
};

static int take_prune(void *arg, int id, const char *value, struct sb_err *err)
{
	struct prune *p = arg;
	uint64_t ms = 0;

	if (id == 3)
		p->dry = true;
	if (id == 4)
		p->json = true;
	if (id != 2)
		return 0;
	if (sb_num_duration_ms(value, &ms) < 0)
		return sb_err_set(err, -EINVAL, "--older-than takes a time, as 30d or 12h");
	p->before = (int64_t)time(NULL) - (int64_t)(ms / 1000);
	return 0;
}

int cmd_prune(int argc, char **argv)
{
	static const struct cli_option table[] = {
		{ "older-than", 0, "TIME", "not used for TIME, as 30d", 2 },
		{ "dry-run", 0, NULL, "tell what would be removed", 3 },
		{ "json", 0, NULL, json_help, 4 },
		{ "help", 'h', NULL, "this text", VERB_HELP },
	};
	static const struct verb v = { "sendbox prune --older-than TIME [--dry-run]",
				       "Remove instances that do not run and were not used for a while.", table,
				       SB_ARRAY_LEN(table), take_prune };
	static struct names all;
	struct prune p = { 0 };
	struct instances *in;
	struct sb_err err = { 0 };
	int status = SB_EXIT_OK;
	int at = 0;
	int k = verb_options(&v, &p, argc, argv, &at);

	if (k != 0)
		return k == VERB_DONE ? SB_EXIT_OK : SB_EXIT_USAGE;
	if (p.before == 0 || at < argc) {
		cli_error("write: %s", v.usage);
		return SB_EXIT_USAGE;
	}
	if (instances_open(&in) < 0)
		return SB_EXIT_INTERNAL;
	all.before = p.before;
	k = instance_each(in->s, collect, &all, &err);
	if (k < 0) {
		cli_error("%s", err.text);
		status = SB_EXIT_INTERNAL;
	}
	for (size_t i = 0; i < all.n; i++) {
		if (p.dry && p.json)
			printf("{\"would_remove\":\"%s\"}\n", all.name[i]);
		else if (p.dry)
			printf("would remove %s\n", all.name[i]);
		else
			remove_named(&status, in, all.name[i], p.json);
	}
	in->s = state_close(in->s);
	return status;
}
