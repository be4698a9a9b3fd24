#ifndef SB_CORE_CMD_COMPILED_H
#define SB_CORE_CMD_COMPILED_H
/*
 * A command policy in the form that decides. Made by cmd_compile.c and cmd_table.c, read by
 * cmd_policy.c.
 *
 * Theory of operation. Every rule hangs in one hash table under what can be known of a command
 * before any pattern is looked at: the identity of its file (with the name of the tool for a file
 * that is many), its path, a folder above it that a path pattern begins with, or "any". When the
 * rule's first word behind the program is fixed, it is part of the key. So a decision looks up a
 * handful of keys - two for each part of the path and a few more - and tries the few rules there.
 * Keys are hashes of 64 bits; whatever they find is compared in full.
 *
 * A program by name is the identity (device, inode) of every file of that name in the image's
 * program folders, so other names, hard links and links to it are the same program, and a file of
 * that name elsewhere is not.
 */
#include "core/cmd_i.h"

/* Programs that are many, by the name they are called by. */
enum sb_cmd_multi_kind {
	SB_CMD_MULTI_NO = 0,
	SB_CMD_MULTI_OWN,  /* busybox: first argument only when called by its own name */
	SB_CMD_MULTI_ANY,  /* coreutils: also when called by a name that it does not know */
	SB_CMD_MULTI_GIT,  /* "git-push x" is "git push x" */
};
struct sb_cmd_multi {
	struct sb_cmd_file file;
	enum sb_cmd_multi_kind kind;
	const char *own; /* static */
};
const struct sb_cmd_multi *sb_cmd_multi_of(const struct sb_cmdpol *p,
					   const struct sb_cmd_file *f);

struct sb_cmd_known { /* a file that rules or the usual places of loaders name */
	struct sb_cmd_file file;
	char *path; /* owned */
	bool loader;
	bool denied; /* copies are looked for */
	enum { SB_CMD_UNREAD = 0, SB_CMD_READ, SB_CMD_UNREADABLE } state;
	uint8_t digest[32];
};
struct sb_cmd_compiled {
	enum sb_cmd_prog kind;
	struct sb_cmd_word prog; /* path globs */
	struct sb_cmd_word alt;  /* the same behind the links of its fixed part; len 0 = none */
	struct sb_cmd_args args;
	void *mem;     /* words and text, owned */
	char *alt_mem; /* owned; for a path without stars its final text or NULL */
};
enum sb_cmd_entry_mode {
	SB_CMD_ENTRY_PLAIN = 0,
	SB_CMD_ENTRY_TOOL,  /* name: the tool of a file that is many */
	SB_CMD_ENTRY_FIRST, /* name: what the first argument has to be, before the rule's own */
};
struct sb_cmd_entry {
	uint64_t key;
	const char *name; /* borrowed of the policy */
	uint32_t rule;
	uint32_t known; /* index; UINT32_MAX = by path or any */
	enum sb_cmd_entry_mode mode;
};
struct sb_cmd_slot {
	uint64_t key;
	uint32_t at;
	uint32_t n_deny; /* first, then the others, each in the plan's order */
	uint32_t n;      /* 0 = free */
};
struct sb_cmdpol {
	enum sb_cmd_scope scope;
	enum sb_cmd_action fallback;
	struct sb_cmd_rule *rules; /* owned copies */
	struct sb_cmd_compiled *compiled;
	size_t n_rules;
	struct sb_cmd_entry *entries;
	size_t n_entries;
	size_t room_entries;
	struct sb_cmd_slot *slots;
	size_t mask;
	struct sb_cmd_known *known;
	size_t n_known;
	size_t room_known;
	uint32_t *by_size; /* denied and loaders, by size */
	size_t n_by_size;
	struct sb_cmd_multi *multi;
	size_t n_multi;
	char **names; /* owned: names that patterns stand for */
	size_t n_names;
	size_t room_names;
	bool has_paths;
	bool has_folders;
	bool has_local;
	const struct sb_cmd_files *files;
};

/* Order the entries, make slots and by_size. Return: 0; -ENOMEM. */
SB_MUST_CHECK int sb_cmd_table_build(struct sb_cmdpol *p);

/* ---- keys ---- */

enum sb_cmd_key {
	SB_CMD_KEY_ANY = 1,
	SB_CMD_KEY_FILE,
	SB_CMD_KEY_PATH,
	SB_CMD_KEY_FOLDER,
	SB_CMD_KEY_LOCAL,
	SB_CMD_KEY_LOCAL_FOLDER,
};
#define SB_CMD_HASH_START 0xcbf29ce484222325ULL
#define SB_CMD_HASH_WORD 64 /* bytes of an argument that count */

static inline uint64_t sb_cmd_hash(uint64_t h, const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)s[i]) * 0x100000001b3; /* FNV-1a */
	return h;
}
static inline uint64_t sb_cmd_mix(uint64_t a, uint64_t b)
{
	a = (a ^ b) * 0x9e3779b97f4a7c15;
	return a ^ (a >> 29);
}
static inline uint64_t sb_cmd_key_text(enum sb_cmd_key kind, const char *s, size_t len)
{
	return sb_cmd_mix(kind, sb_cmd_hash(SB_CMD_HASH_START, s, len));
}
static inline uint64_t sb_cmd_key_file(const struct sb_cmd_file *f)
{
	return sb_cmd_mix(sb_cmd_mix(SB_CMD_KEY_FILE, f->dev), f->ino);
}
static inline uint64_t sb_cmd_key_tool(uint64_t file, const char *name, size_t len)
{
	return sb_cmd_mix(file, sb_cmd_hash(SB_CMD_HASH_START, name, len));
}
/* For a fixed first argument. */
static inline uint64_t sb_cmd_key_word(uint64_t key, const char *word)
{
	size_t len = 0;

	while (len < SB_CMD_HASH_WORD && word[len])
		len++;
	return sb_cmd_mix(key + 1, sb_cmd_hash(SB_CMD_HASH_START, word, len));
}
static inline const char *sb_cmd_base(const char *path)
{
	const char *base = path;

	for (; *path; path++)
		if (*path == '/')
			base = path + 1;
	return base;
}
static inline bool sb_cmd_same_file(const struct sb_cmd_file *a, const struct sb_cmd_file *b)
{
	return a->ino != 0 && a->ino == b->ino && a->dev == b->dev;
}

#endif
