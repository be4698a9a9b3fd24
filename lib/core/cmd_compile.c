/* From rules to the table of cmd_compiled.h, with what the image says of their programs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/cmd_compiled.h"

#define MAX_ENTRIES (1U << 20)
#define PATH_MAX_LEN 4096

static const char *const loaders[] = {
	"/lib64/ld-linux-x86-64.so.2",
	"/lib/ld-linux-x86-64.so.2",
	"/lib/ld-linux.so.2",
	"/libx32/ld-linux-x32.so.2",
	"/lib/ld-linux-aarch64.so.1",
	"/lib/ld-linux-armhf.so.3",
	"/lib/ld-linux-riscv64-lp64d.so.1",
	"/lib64/ld64.so.2",
	"/lib64/ld64.so.1",
	"/lib/ld64.so.1",
	"/lib/ld-musl-x86_64.so.1",
	"/lib/ld-musl-aarch64.so.1",
	"/lib/ld-musl-i386.so.1",
	"/lib/ld-musl-armhf.so.1",
	"/lib/ld-musl-riscv64.so.1",
};

/* Only programs that run nothing of their own under a name they do not know. */
static const struct {
	const char *own;
	bool prefix; /* "busybox.static" is one, too */
	enum sb_cmd_multi_kind kind;
} multis[] = {
	{ "busybox", true, SB_CMD_MULTI_OWN },
	{ "toybox", true, SB_CMD_MULTI_OWN },
	{ "coreutils", true, SB_CMD_MULTI_ANY },
	{ "kmod", false, SB_CMD_MULTI_OWN },
	{ "xtables-nft-multi", false, SB_CMD_MULTI_ANY },
	{ "xtables-legacy-multi", false, SB_CMD_MULTI_ANY },
	{ "dropbearmulti", false, SB_CMD_MULTI_ANY },
	{ "git", false, SB_CMD_MULTI_GIT },
};

/* State of one compilation. */
struct make {
	struct sb_cmdpol *p;
	struct sb_err *err;
	uint32_t *first; /* name cache: index + 1 of the rule whose name was asked; 0 = free */
	uint32_t *known; /* for each rule: its first known file */
	uint32_t *count;
	size_t mask;
	uint32_t rule; /* which is being added */
};

/* Room for one more. Return: 0; -ENOMEM. */
static int grow(void *vp, size_t n, size_t *room, size_t size)
{
	void **slot = vp;
	size_t want = *room ? 2 * *room : 64;
	void *v;

	if (n < *room)
		return 0;
	v = realloc(*slot, want * size);
	if (!v)
		return -ENOMEM;
	*slot = v;
	*room = want;
	return 0;
}

/* ---- what the image says ---- */

const struct sb_cmd_multi *sb_cmd_multi_of(const struct sb_cmdpol *p, const struct sb_cmd_file *f)
{
	for (size_t i = 0; i < p->n_multi; i++)
		if (sb_cmd_same_file(&p->multi[i].file, f))
			return &p->multi[i];
	return NULL;
}

static int note_multi(struct sb_cmdpol *p, const struct sb_cmd_known *k)
{
	const char *base = sb_cmd_base(k->path);
	void *v;

	for (size_t i = 0; i < SB_ARRAY_LEN(multis); i++) {
		size_t n = strlen(multis[i].own);

		if (strncmp(base, multis[i].own, n) != 0 || (!multis[i].prefix && base[n]))
			continue;
		if (sb_cmd_multi_of(p, &k->file))
			return 0;
		v = realloc(p->multi, (p->n_multi + 1) * sizeof(*p->multi));
		if (!v)
			return -ENOMEM;
		p->multi = v;
		p->multi[p->n_multi++] =
			(struct sb_cmd_multi){ k->file, multis[i].kind, multis[i].own };
		return 0;
	}
	return 0;
}

/* The @nth file of @name. Return: 1 it is the last of @p->known now; 0 there is none; -errno. */
static int ask(struct make *m, const char *name, unsigned int nth)
{
	struct sb_cmdpol *p = m->p;
	struct sb_cmd_known k = { 0 };
	char path[PATH_MAX_LEN];
	int r = p->files->find(p->files->arg, name, nth, path, sizeof(path), &k.file);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return sb_err_set(m->err, r, "command policy: cannot look up \"%.200s\": %s", name,
				  strerror(-r));
	if (grow(&p->known, p->n_known, &p->room_known, sizeof(*p->known)) < 0)
		return -ENOMEM;
	k.path = strdup(path);
	if (!k.path)
		return -ENOMEM;
	p->known[p->n_known++] = k;
	r = note_multi(p, &p->known[p->n_known - 1]);
	return r < 0 ? r : 1;
}

/* All files of a name; those of one that was asked for before are taken from there. */
static int ask_all(struct make *m, const char *name)
{
	size_t i = (size_t)sb_cmd_mix(1, sb_cmd_hash(SB_CMD_HASH_START, name, strlen(name)));
	int r = 1;

	for (; m->first[i & m->mask]; i++) {
		uint32_t other = m->first[i & m->mask] - 1;

		if (strcmp(m->p->compiled[other].prog.text, name) == 0) {
			m->known[m->rule] = m->known[other];
			m->count[m->rule] = m->count[other];
			return 0;
		}
	}
	m->known[m->rule] = (uint32_t)m->p->n_known;
	for (unsigned int nth = 0; r == 1; nth++)
		r = ask(m, name, nth);
	if (r < 0)
		return r;
	m->count[m->rule] = (uint32_t)m->p->n_known - m->known[m->rule];
	m->first[i & m->mask] = m->rule + 1;
	return 0;
}

static int find_loaders(struct make *m)
{
	for (size_t i = 0; i < SB_ARRAY_LEN(loaders); i++) {
		int r = ask(m, loaders[i], 0);

		if (r < 0)
			return r;
		if (r > 0)
			m->p->known[m->p->n_known - 1].loader = true;
	}
	return 0;
}

/* ---- entries ---- */

static int add_entry(struct make *m, uint64_t key, const struct sb_cmd_entry *like)
{
	struct sb_cmdpol *p = m->p;
	const struct sb_cmd_args *a = &p->compiled[m->rule].args;
	struct sb_cmd_entry *e;

	if (p->n_entries == MAX_ENTRIES)
		return sb_err_set(m->err, -EINVAL,
				  "command policy: the names that its patterns stand for are too "
				  "many; write longer patterns");
	if (grow(&p->entries, p->n_entries, &p->room_entries, sizeof(*p->entries)) < 0)
		return -ENOMEM;
	if (like->mode == SB_CMD_ENTRY_FIRST)
		key = sb_cmd_key_word(key, like->name);
	else if (!a->any_order && a->n_operands > 0 && a->word[0].literal)
		key = sb_cmd_key_word(key, a->word[0].text);
	e = &p->entries[p->n_entries++];
	*e = *like;
	e->key = key;
	e->rule = m->rule;
	return 0;
}

/* By identity of one known file. @name: by which the rule means it. */
static int add_file(struct make *m, uint32_t known, const char *name)
{
	struct sb_cmd_known *k = &m->p->known[known];
	const struct sb_cmd_multi *multi = sb_cmd_multi_of(m->p, &k->file);
	struct sb_cmd_entry e = { .known = known };
	uint64_t key = sb_cmd_key_file(&k->file);

	k->denied |= m->p->rules[m->rule].action == SB_CMD_DENY;
	if (multi && multi->kind != SB_CMD_MULTI_GIT) {
		e.mode = SB_CMD_ENTRY_TOOL;
		e.name = strcmp(name, sb_cmd_base(k->path)) == 0 ? multi->own : name;
		key = sb_cmd_key_tool(key, e.name, strlen(e.name));
	} else if (multi && strncmp(name, "git-", 4) == 0) {
		e.mode = SB_CMD_ENTRY_FIRST;
		e.name = name + 4;
	}
	return add_entry(m, key, &e);
}

static int add_text(struct make *m, enum sb_cmd_key kind, const char *s, size_t len)
{
	struct sb_cmd_entry e = { .known = UINT32_MAX };

	return add_entry(m, sb_cmd_key_text(kind, s, len), &e);
}

static int add_name(struct make *m)
{
	const char *name = m->p->compiled[m->rule].prog.text;
	int r = ask_all(m, name);

	for (uint32_t i = 0; r == 0 && i < m->count[m->rule]; i++)
		r = add_file(m, m->known[m->rule] + i, name);
	return r;
}

static int listed(void *arg, const char *name)
{
	struct make *m = arg;
	struct sb_cmdpol *p = m->p;

	if (grow(&p->names, p->n_names, &p->room_names, sizeof(*p->names)) < 0)
		return -ENOMEM;
	p->names[p->n_names] = strdup(name);
	if (!p->names[p->n_names])
		return -ENOMEM;
	p->n_names++;
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names of the image that a pattern stands for, each once. */
static int add_name_glob(struct make *m)
{
	struct sb_cmdpol *p = m->p;
	const struct sb_cmd_word *w = &p->compiled[m->rule].prog;
	int r = 0;

	if (!p->files->list)
		return 0;
	if (!p->names) {
		r = p->files->list(p->files->arg, listed, m);
		if (r < 0 && r != -ENOMEM)
			return sb_err_set(m->err, r,
					  "command policy: cannot list the image's programs: %s",
					  strerror(-r));
		if (p->n_names > 0)
			qsort(p->names, p->n_names, sizeof(*p->names), by_text);
	}
	for (size_t i = 0; r == 0 && i < p->n_names; i++) {
		const char *name = p->names[i];
		int found = 1;

		if ((i > 0 && strcmp(name, p->names[i - 1]) == 0) ||
		    !sb_cmd_word_match(w, name, strlen(name)))
			continue;
		for (unsigned int nth = 0; r == 0 && found == 1; nth++) {
			found = ask(m, name, nth);
			r = found < 0 ? found : 0;
			if (found == 1)
				r = add_file(m, (uint32_t)p->n_known - 1, name);
		}
	}
	return r;
}

/* @text has links: the same behind them, when its folder is there. Return: 0, *@ret may be NULL. */
static int behind_links(struct make *m, const char *text, size_t folder, char **ret)
{
	const struct sb_cmd_files *f = m->p->files;
	char path[PATH_MAX_LEN];
	char *name = strndup(text, folder ? folder : 1);
	struct sb_cmd_file file;
	size_t n;
	int r;

	*ret = NULL;
	if (!name)
		return -ENOMEM;
	r = f->find(f->arg, name, 0, path, sizeof(path), &file);
	free(name);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return sb_err_set(m->err, r, "command policy: cannot look up \"%.200s\": %s", text,
				  strerror(-r));
	n = strcmp(path, "/") == 0 ? 0 : strlen(path);
	if (n == folder && memcmp(path, text, n) == 0)
		return 0;
	*ret = malloc(n + strlen(text + folder) + 1);
	if (!*ret)
		return -ENOMEM;
	memcpy(*ret, path, n);
	memcpy(*ret + n, text + folder, strlen(text + folder) + 1);
	return 0;
}

static int add_path(struct make *m)
{
	struct sb_cmdpol *p = m->p;
	struct sb_cmd_compiled *c = &p->compiled[m->rule];
	const char *text = c->prog.text;
	const char *base = sb_cmd_base(text);
	int r = ask(m, text, 0);
	int there = r;

	p->has_paths = true;
	if (r > 0) {
		const struct sb_cmd_known *k = &p->known[p->n_known - 1];
		bool final = strcmp(k->path, text) == 0;

		if (sb_cmd_multi_of(p, &k->file) && !final)
			return add_file(m, (uint32_t)p->n_known - 1, base);
		if (!final) {
			c->alt_mem = strdup(k->path);
			if (!c->alt_mem)
				return -ENOMEM;
		}
	} else if (r == 0) {
		r = behind_links(m, text, (size_t)(base - text) - 1, &c->alt_mem);
	}
	if (r >= 0)
		r = add_text(m, SB_CMD_KEY_PATH, text, strlen(text));
	if (r == 0 && c->alt_mem)
		r = add_text(m, SB_CMD_KEY_PATH, c->alt_mem, strlen(c->alt_mem));
	if (r == 0 && there > 0) {
		struct sb_cmd_known *k = &p->known[p->n_known - 1];
		struct sb_cmd_entry e = { .known = (uint32_t)p->n_known - 1 };

		k->denied |= p->rules[m->rule].action == SB_CMD_DENY;
		r = add_entry(m, sb_cmd_key_file(&k->file), &e);
	}
	return r;
}

/* Length of the folder in front of the first star. */
static size_t fixed_folder(const struct sb_cmd_word *w)
{
	size_t folder = 0;

	for (size_t i = 0; i < w->len && w->cls[i] == SB_CMD_LIT; i++)
		if (w->text[i] == '/')
			folder = i;
	return folder;
}

static int add_path_glob(struct make *m)
{
	struct sb_cmd_compiled *c = &m->p->compiled[m->rule];
	size_t folder = fixed_folder(&c->prog);
	size_t n;
	uint8_t *cls;
	int r = add_text(m, SB_CMD_KEY_FOLDER, c->prog.text, folder);

	m->p->has_folders = true;
	if (r == 0 && folder > 0)
		r = behind_links(m, c->prog.text, folder, &c->alt_mem);
	if (r < 0 || !c->alt_mem)
		return r;
	/* Classes of the new text, behind it in one block. */
	n = strlen(c->alt_mem);
	cls = realloc(c->alt_mem, 2 * (n + 1));
	if (!cls)
		return -ENOMEM;
	c->alt_mem = (char *)cls;
	cls += n + 1;
	memset(cls, SB_CMD_LIT, n);
	memcpy(cls + n - (c->prog.len - folder), c->prog.cls + folder, c->prog.len - folder);
	c->alt = (struct sb_cmd_word){ .text = c->alt_mem, .cls = cls, .len = (uint32_t)n };
	return add_text(m, SB_CMD_KEY_FOLDER, c->alt_mem, fixed_folder(&c->alt));
}

static int add_local(struct make *m)
{
	const struct sb_cmd_word *w = &m->p->compiled[m->rule].prog;

	m->p->has_local = true;
	if (w->literal)
		return add_text(m, SB_CMD_KEY_LOCAL, w->text, w->len);
	return add_text(m, SB_CMD_KEY_LOCAL_FOLDER, w->text, fixed_folder(w));
}

/* ---- rules ---- */

static int copy_rule(const struct sb_cmd_rule *from, struct sb_cmd_rule *to)
{
	*to = *from;
	to->pattern = strdup(from->pattern);
	to->reason = from->reason ? strdup(from->reason) : NULL;
	to->from = strdup(from->from);
	return to->pattern && to->from && (to->reason || !from->reason) ? 0 : -ENOMEM;
}

/* The pattern's words in one block of exact size. */
static int keep(const struct sb_cmd_pattern *from, struct sb_cmd_compiled *c)
{
	size_t n = from->n_operands + from->n_options;
	struct sb_cmd_word *w = malloc(n * sizeof(*w) + 2 * from->used);
	char *text = (char *)(w + n);
	uint8_t *cls = (uint8_t *)text + from->used;

	if (!w)
		return -ENOMEM;
	c->mem = w;
	memcpy(text, from->text, from->used);
	memcpy(cls, from->cls, from->used);
	c->kind = from->kind;
	c->prog = from->prog;
	c->prog.text = text + (from->prog.text - from->text);
	c->prog.cls = cls + (from->prog.cls - from->cls);
	for (size_t i = 0; i < n; i++) {
		w[i] = from->word[i];
		w[i].text = text + (from->word[i].text - from->text);
		w[i].cls = cls + (from->word[i].cls - from->cls);
	}
	c->args = (struct sb_cmd_args){
		.word = w,
		.n_operands = (uint16_t)from->n_operands,
		.n_options = (uint16_t)from->n_options,
		.any_order = from->any_order,
		.dashes = from->dashes,
		.deep = from->deep,
	};
	return 0;
}

static int add_rule(struct make *m, const struct sb_cmd_rule *r)
{
	struct sb_cmd_pattern pattern;
	int ret = copy_rule(r, &m->p->rules[m->rule]);

	if (ret == 0)
		ret = sb_cmd_pattern_parse(r->pattern, r->any_order, &pattern, m->err);
	if (ret == 0)
		ret = keep(&pattern, &m->p->compiled[m->rule]);
	if (ret < 0)
		return ret;
	switch (pattern.kind) {
	case SB_CMD_PROG_ANY:
		return add_text(m, SB_CMD_KEY_ANY, "", 0);
	case SB_CMD_PROG_NAME:
		return add_name(m);
	case SB_CMD_PROG_NAME_GLOB:
		return add_name_glob(m);
	case SB_CMD_PROG_PATH:
		return add_path(m);
	case SB_CMD_PROG_PATH_GLOB:
		return add_path_glob(m);
	case SB_CMD_PROG_LOCAL:
		return add_local(m);
	default:
		return -EINVAL;
	}
}

static int compile(struct make *m, const struct sb_plan_commands *c)
{
	struct sb_cmdpol *p = m->p;
	size_t size = 16;
	int r;

	while (size < 2 * c->n_rules)
		size *= 2;
	m->mask = size - 1;
	m->first = calloc(size, sizeof(*m->first));
	m->known = calloc(c->n_rules + 1, sizeof(*m->known));
	m->count = calloc(c->n_rules + 1, sizeof(*m->count));
	p->rules = calloc(c->n_rules + 1, sizeof(*p->rules));
	p->compiled = calloc(c->n_rules + 1, sizeof(*p->compiled));
	if (!m->first || !m->known || !m->count || !p->rules || !p->compiled)
		return -ENOMEM;
	p->n_rules = c->n_rules;
	r = p->scope == SB_CMD_SCOPE_NONE ? 0 : find_loaders(m);
	for (m->rule = 0; r == 0 && m->rule < c->n_rules; m->rule++)
		r = add_rule(m, &c->rules[m->rule]);
	return r == 0 ? sb_cmd_table_build(p) : r;
}

int sb_cmdpol_new(const struct sb_plan_commands *c, const struct sb_cmd_files *files,
		  struct sb_cmdpol **ret, struct sb_err *err)
{
	SB_AUTO_CMDPOL struct sb_cmdpol *p = NULL;
	struct make m = { .err = err };
	int r = sb_plan_commands_check(c, err);

	if (r < 0)
		return r;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->scope = c->scope;
	p->fallback = c->fallback;
	p->files = files;
	m.p = p;
	r = compile(&m, c);
	free(m.first);
	free(m.known);
	free(m.count);
	if (r < 0)
		return r;
	*ret = sb_take(&p);
	return 0;
}
