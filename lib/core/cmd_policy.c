/* Decisions on commands; see cmd_compiled.h for how rules are found. */
#include "core/cmd_policy.h"

#include <errno.h>
#include <string.h>

#include "core/cmd_compiled.h"

#define NONE UINT32_MAX
#define MAX_NESTED 8 /* "busybox busybox ls" */

/* One question on its way through the table. */
struct look {
	const struct sb_cmdpol *p;
	const struct sb_cmd_request *q;
	const struct sb_cmd_file *file; /* of what runs, or of the program it is a copy of */
	uint32_t deny;    /* first rule of its kind in the plan's order; NONE */
	uint32_t other;
	uint32_t by_path; /* like other, of those that name one path */
	bool failed;      /* nested too deep, or no memory: refuse */
};
/* The words behind the program, and by which name a file that is many is meant. */
struct words {
	const char *tool; /* NULL = the file itself */
	const char *const *argv;
	size_t argc;
};

/* ---- the table ---- */

/* The path behind the project's folder; NULL = not inside. */
static const char *local_path(const struct sb_cmd_request *q)
{
	size_t n = q->project ? strlen(q->project) : 0;

	if (n == 0 || strncmp(q->path, q->project, n) != 0)
		return NULL;
	if (q->project[n - 1] == '/')
		return q->path + n;
	return q->path[n] == '/' ? q->path + n + 1 : NULL;
}

static bool by_path(const struct look *l, const struct sb_cmd_compiled *c)
{
	const char *path = l->q->path;

	switch (c->kind) {
	case SB_CMD_PROG_ANY:
		return true;
	case SB_CMD_PROG_PATH:
		return strcmp(path, c->prog.text) == 0 ||
		       (c->alt_mem && strcmp(path, c->alt_mem) == 0);
	case SB_CMD_PROG_PATH_GLOB:
		return sb_cmd_path_match(&c->prog, path) ||
		       (c->alt.len > 0 && sb_cmd_path_match(&c->alt, path));
	case SB_CMD_PROG_LOCAL:
		path = local_path(l->q);
		return path && (c->prog.literal ? strcmp(path, c->prog.text) == 0 :
						  sb_cmd_path_match(&c->prog, path));
	case SB_CMD_PROG_NAME:
	case SB_CMD_PROG_NAME_GLOB:
	default:
		return false;
	}
}

static bool holds(const struct look *l, const struct sb_cmd_entry *e, const struct words *w)
{
	const struct sb_cmd_rule *r = &l->p->rules[e->rule];
	const struct sb_cmd_compiled *c = &l->p->compiled[e->rule];
	size_t skip = 0;

	if (r->scope == SB_CMD_SCOPE_TOP_LEVEL && !l->q->top_level)
		return false;
	if (e->known == NONE ? !by_path(l, c) :
			       !sb_cmd_same_file(&l->p->known[e->known].file, l->file))
		return false;
	switch (e->mode) {
	case SB_CMD_ENTRY_TOOL:
		if (!w->tool || strcmp(w->tool, e->name) != 0)
			return false;
		break;
	case SB_CMD_ENTRY_FIRST:
		if (w->tool || w->argc == 0 || strcmp(w->argv[0], e->name) != 0)
			return false;
		skip = 1;
		break;
	case SB_CMD_ENTRY_PLAIN:
	default:
		if (w->tool)
			return false;
		break;
	}
	return sb_cmd_args_match(&c->args, w->argv + skip, w->argc - skip);
}

static void try_slot(struct look *l, uint64_t key, const struct words *w)
{
	const struct sb_cmdpol *p = l->p;
	const struct sb_cmd_entry *e;
	const struct sb_cmd_slot *s;
	size_t at = (size_t)key;

	while (p->slots[at & p->mask].n > 0 && p->slots[at & p->mask].key != key)
		at++;
	s = &p->slots[at & p->mask];
	if (s->n == 0)
		return;
	e = p->entries + s->at;
	for (uint32_t i = 0; i < s->n_deny && e[i].rule < l->deny; i++) {
		if (holds(l, &e[i], w)) {
			l->deny = e[i].rule;
			break;
		}
	}
	for (uint32_t i = s->n_deny; i < s->n && e[i].rule < SB_MAX(l->other, l->by_path); i++) {
		bool path = p->compiled[e[i].rule].kind == SB_CMD_PROG_PATH;

		if (e[i].rule >= l->other && (!path || e[i].rule >= l->by_path))
			continue;
		if (!holds(l, &e[i], w))
			continue;
		l->other = SB_MIN(l->other, e[i].rule);
		if (path)
			l->by_path = SB_MIN(l->by_path, e[i].rule);
	}
}

static void probe(struct look *l, uint64_t key, const struct words *w)
{
	try_slot(l, key, w);
	if (w->argc > 0)
		try_slot(l, sb_cmd_key_word(key, w->argv[0]), w);
}

/* ---- files that are many programs ---- */

static bool starts(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

static void probe_tool(struct look *l, uint64_t file, const char *tool, size_t from)
{
	const struct sb_cmd_request *q = l->q;
	struct words w = { tool, q->argv + SB_MIN(from, q->argc),
			   from < q->argc ? q->argc - from : 0 };

	probe(l, sb_cmd_key_tool(file, tool, strlen(tool)), &w);
}

/* Whether the image has this file under @name, so that it knows itself by it. */
static bool is_known_as(const struct look *l, const char *name)
{
	const struct sb_cmd_files *f = l->p->files;
	struct sb_cmd_file file;
	char path[4096];

	for (unsigned int nth = 0; name[0] && !strchr(name, '/'); nth++) {
		if (f->find(f->arg, name, nth, path, sizeof(path), &file) < 0)
			return false;
		if (sb_cmd_same_file(&file, l->file))
			return true;
	}
	return false;
}

/* The tool that is named by argument @at, and further ones if that is the file's own name. */
static void nested(struct look *l, uint64_t file, const char *own, size_t at)
{
	for (unsigned int n = 0; at < l->q->argc; n++, at++) {
		const char *name = sb_cmd_base(l->q->argv[at]);

		if (n == MAX_NESTED) {
			l->failed = true;
			return;
		}
		probe_tool(l, file, name, at + 1);
		if (!starts(name, own))
			return;
		if (strcmp(name, own) != 0)
			probe_tool(l, file, own, at + 1);
	}
}

static void tools(struct look *l, const struct sb_cmd_multi *m, uint64_t file)
{
	const struct sb_cmd_request *q = l->q;
	const char *name = sb_cmd_base(q->argc > 0 ? q->argv[0] : "");
	const char *tail;

	name += name[0] == '-';
	probe_tool(l, file, name, 1);
	if (starts(name, m->own)) {
		if (strcmp(name, m->own) != 0)
			probe_tool(l, file, m->own, 1);
		nested(l, file, m->own, 1);
	} else if (m->kind == SB_CMD_MULTI_ANY && !is_known_as(l, name)) {
		probe_tool(l, file, m->own, 1);
		nested(l, file, m->own, 1);
		tail = name + strlen(name); /* "x-rm" is "rm" for one of them */
		while (tail > name && ((tail[-1] | 0x20) >= 'a' && (tail[-1] | 0x20) <= 'z'))
			tail--;
		if (tail > name)
			probe_tool(l, file, tail, 1);
	}
	if (m->kind == SB_CMD_MULTI_ANY && q->argc > 1 && starts(q->argv[1], "--coreutils-prog")) {
		tail = strchr(q->argv[1], '=');
		if (tail)
			probe_tool(l, file, sb_cmd_base(tail + 1), 2);
	}
}

/* "git-push x" as "git push x". */
static void probe_git(struct look *l, uint64_t key)
{
	const struct sb_cmd_request *q = l->q;
	const char **argv = malloc(q->argc * sizeof(*argv));
	struct words w = { NULL, argv, q->argc };

	if (!argv) {
		l->failed = true;
		return;
	}
	memcpy(argv, q->argv, q->argc * sizeof(*argv));
	argv[0] = sb_cmd_base(q->argv[0]) + strlen("git-");
	probe(l, key, &w);
	free(argv);
}

/* ---- what can be known of a command ---- */

static void look_file(struct look *l, const struct words *w)
{
	const struct sb_cmd_multi *m = sb_cmd_multi_of(l->p, l->file);
	uint64_t key = sb_cmd_key_file(l->file);

	probe(l, key, w);
	if (!m)
		return;
	if (m->kind != SB_CMD_MULTI_GIT)
		tools(l, m, key);
	else if (l->q->argc > 0 && starts(sb_cmd_base(l->q->argv[0]), "git-"))
		probe_git(l, key);
}

/* Each folder above @path, the outermost ("") first. */
static void look_folders(struct look *l, enum sb_cmd_key kind, const char *path, bool relative,
			 const struct words *w)
{
	uint64_t h = SB_CMD_HASH_START;

	if (relative)
		probe(l, sb_cmd_mix(kind, h), w);
	for (; *path; path++) {
		if (*path == '/')
			probe(l, sb_cmd_mix(kind, h), w);
		h = sb_cmd_hash(h, path, 1);
	}
}

static void look_path(struct look *l, const struct words *w)
{
	const char *path = l->q->path;
	const char *local = l->p->has_local ? local_path(l->q) : NULL;

	if (l->p->has_paths)
		probe(l, sb_cmd_key_text(SB_CMD_KEY_PATH, path, strlen(path)), w);
	if (l->p->has_folders)
		look_folders(l, SB_CMD_KEY_FOLDER, path, false, w);
	if (local) {
		probe(l, sb_cmd_key_text(SB_CMD_KEY_LOCAL, local, strlen(local)), w);
		look_folders(l, SB_CMD_KEY_LOCAL_FOLDER, local, true, w);
	}
}

static struct look look(const struct sb_cmdpol *p, const struct sb_cmd_request *q,
			const struct sb_cmd_file *file)
{
	struct look l = { p, q, file, NONE, NONE, NONE, false };
	struct words w = { NULL, q->argc > 0 ? q->argv + 1 : q->argv,
			   q->argc > 0 ? q->argc - 1 : 0 };

	probe(&l, sb_cmd_key_text(SB_CMD_KEY_ANY, "", 0), &w);
	if (file->ino != 0)
		look_file(&l, &w);
	if (q->path[0])
		look_path(&l, &w);
	return l;
}

/* ---- copies and loaders ---- */

static bool is_loader(const struct sb_cmdpol *p, const struct sb_cmd_request *q)
{
	const char *base = sb_cmd_base(q->path);

	for (size_t i = 0; i < p->n_known && p->known[i].loader; i++)
		if (sb_cmd_same_file(&p->known[i].file, &q->file))
			return true;
	if (starts(base, "ld-linux") || starts(base, "ld-musl-") || starts(base, "ld64.so") ||
	    starts(base, "ld.so"))
		return true;
	return starts(base, "ld-") && base[3] >= '0' && base[3] <= '9' && strstr(base, ".so");
}

/*
 * Of one that rules name; read once. The policy is const for who asks, what was read is a memory.
 * Only a file that may not be read is given up: whoever makes other errors (no descriptor left, a
 * name that was taken away) must not make copies of it unknown.
 * Return: 0; -EACCES: who asks has no copy of it; other -errno: cannot tell now.
 */
static int known_digest(const struct sb_cmdpol *p, struct sb_cmd_known *k)
{
	int r;

	if (k->state == SB_CMD_READ)
		return 0;
	if (k->state == SB_CMD_UNREADABLE)
		return -EACCES;
	r = p->files->digest(p->files->arg, k->path, -1, k->digest);
	if (r == 0)
		k->state = SB_CMD_READ;
	else if (r == -EACCES || r == -EPERM)
		k->state = SB_CMD_UNREADABLE;
	return r == -EPERM ? -EACCES : r;
}

static size_t first_of_size(const struct sb_cmdpol *p, uint64_t size)
{
	size_t lo = 0;
	size_t hi = p->n_by_size;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (p->known[p->by_size[mid]].file.size < size)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* What the rules say of the program that @q is a copy of, when they refuse it. */
static bool is_denied_copy(const struct sb_cmdpol *p, const struct sb_cmd_request *q,
			   struct sb_cmd_verdict *ret)
{
	uint8_t digest[32];
	int r = 1; /* not read yet */

	for (size_t i = first_of_size(p, q->file.size); i < p->n_by_size; i++) {
		struct sb_cmd_known *k = &p->known[p->by_size[i]];
		struct look l;
		int known;

		if (k->file.size != q->file.size)
			break;
		if (sb_cmd_same_file(&k->file, &q->file))
			continue;
		known = known_digest(p, k);
		if (known == -EACCES)
			continue;
		if (r == 1)
			r = p->files->digest(p->files->arg, q->path, q->fd, digest);
		if (known == 0 && r == 0 && memcmp(k->digest, digest, sizeof(digest)) != 0)
			continue;
		l = look(p, q, &k->file);
		if (!k->loader && l.deny == NONE && !l.failed)
			continue;
		ret->action = SB_CMD_DENY;
		ret->rule = l.deny == NONE ? NULL : &p->rules[l.deny];
		ret->why = l.deny == NONE && k->loader ? "loader" : "copy-of-denied";
		return true;
	}
	return false;
}

/* ---- decisions ---- */

static bool is_too_long(const struct sb_cmd_request *q)
{
	size_t bytes = 0;

	if (q->argc > SB_CMD_MAX_ARGV)
		return true;
	for (size_t i = 0; i < q->argc; i++) {
		bytes += strlen(q->argv[i]) + 1;
		if (bytes > SB_CMD_MAX_ARGV_BYTES)
			return true;
	}
	return false;
}

static struct sb_cmd_verdict by_rule(const struct look *l, uint32_t rule)
{
	const struct sb_cmd_rule *r = &l->p->rules[rule];

	if (r->action == SB_CMD_ASK && !l->q->top_level)
		return (struct sb_cmd_verdict){ SB_CMD_DENY, r, "rule" };
	return (struct sb_cmd_verdict){ r->action, r, "rule" };
}

struct sb_cmd_verdict sb_cmdpol_decide(const struct sb_cmdpol *p, const struct sb_cmd_request *q)
{
	struct sb_cmd_verdict v = { p->fallback, NULL, q->path[0] ? "default" : "no-path" };
	struct look l;

	if (p->scope == SB_CMD_SCOPE_NONE ||
	    (p->scope == SB_CMD_SCOPE_TOP_LEVEL && !q->top_level))
		return (struct sb_cmd_verdict){ SB_CMD_ALLOW, NULL, "default" };
	if (is_too_long(q))
		return (struct sb_cmd_verdict){ SB_CMD_DENY, NULL, "too-long" };
	l = look(p, q, &q->file);
	if (l.deny != NONE)
		return by_rule(&l, l.deny);
	if (l.failed)
		return (struct sb_cmd_verdict){ SB_CMD_DENY, NULL, "too-long" };
	if (is_loader(p, q))
		return l.by_path != NONE ? by_rule(&l, l.by_path) :
					   (struct sb_cmd_verdict){ SB_CMD_DENY, NULL, "loader" };
	if (l.other != NONE)
		v = by_rule(&l, l.other);
	if (v.action == SB_CMD_DENY || p->n_by_size == 0 || is_denied_copy(p, q, &v))
		return v;
	if (!v.rule && !q->path[0] && q->fd < 0)
		v.action = SB_CMD_DENY; /* nothing to compare */
	else if (!v.rule)
		v.why = "default";
	return v;
}

/* Refused because nothing allows it, so that another of the chain may. */
static bool is_default(const struct sb_cmdpol *p, const struct sb_cmd_verdict *v)
{
	return !v->rule && (v->action != SB_CMD_DENY ||
			    (p->fallback == SB_CMD_DENY &&
			     (strcmp(v->why, "default") == 0 || strcmp(v->why, "no-path") == 0)));
}

/* Of two that a rule allows: what is recorded stays recorded, and asking is for the rest. */
static int weight(enum sb_cmd_action a)
{
	return a == SB_CMD_LOG ? 3 : a == SB_CMD_ALLOW ? 2 : 1;
}

struct sb_cmd_verdict sb_cmdpol_decide_chain(const struct sb_cmdpol *p,
					     const struct sb_cmd_request *q, size_t n)
{
	struct sb_cmd_verdict best = { SB_CMD_DENY, NULL, "no-path" };

	for (size_t i = 0; i < n; i++) {
		struct sb_cmd_verdict v = sb_cmdpol_decide(p, &q[i]);

		if (v.action == SB_CMD_DENY && !is_default(p, &v))
			return v;
		if (q[i].loose && v.rule && p->fallback == SB_CMD_DENY)
			v = (struct sb_cmd_verdict){ SB_CMD_DENY, NULL, "loose-name" };
		if (i == 0 || (v.rule && (!best.rule || weight(v.action) > weight(best.action))))
			best = v;
	}
	return best;
}

struct sb_cmd_verdict sb_cmdpol_decide_script(const struct sb_cmdpol *p,
					      const struct sb_cmd_request *script,
					      const struct sb_cmd_request *interp)
{
	const struct sb_cmd_request q[] = { *script, *interp };

	return sb_cmdpol_decide_chain(p, q, SB_ARRAY_LEN(q));
}

size_t sb_cmdpol_index(const struct sb_cmdpol *p, const struct sb_cmd_rule *rule)
{
	return rule ? (size_t)(rule - p->rules) : SIZE_MAX;
}
