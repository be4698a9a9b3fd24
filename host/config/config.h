#ifndef SB_HOST_CONFIG_CONFIG_H
#define SB_HOST_CONFIG_CONFIG_H
/*
 * The configuration: layers of documents merged into one effective tree in which every value knows
 * the layer, file and line that set it. One table of keys (keys.c) drives loading, checking,
 * `config explain`, the JSON Schema and the table in docs/configuration.md.
 *
 * Merging, outer to inner: default, system, user, organisation (extends:), project, agent, command
 * line. Scalars: the innermost wins, unless an outer layer that sets it has `locked: true`. Deny
 * lists (denylist, blocked_*, additional_denylist, guarded paths) only grow. Allow lists grow,
 * unless an outer layer that has the list is locked: then an inner layer may only narrow it (each
 * of its entries must be among the outer's, and it replaces them).
 */
#include "doc.h"

enum cfg_layer {
	CFG_DEFAULT = 0,
	CFG_SYSTEM,  /* /etc/sendbox/config.yaml */
	CFG_USER,    /* <config>/config.yaml */
	CFG_ORG,     /* extends: */
	CFG_PROJECT, /* .sendbox.yaml */
	CFG_AGENT,
	CFG_COMMAND_LINE,
	CFG_N_LAYERS,
};
const char *cfg_layer_name(enum cfg_layer l); /* "default", "system", "user", "organisation", ... */

struct cfg_origin {
	enum cfg_layer layer;
	const char *file; /* path, or the option's name for the command line; "" = built in */
	uint32_t line;    /* 0 = none */
	uint32_t col;     /* from 1 */
};
struct cfg_value { /* a node of the effective tree */
	enum doc_kind kind;
	bool boolean;
	int64_t integer;
	const char *text; /* strings */
	struct cfg_value *items; /* SEQ, MAP */
	const char **keys;       /* MAP */
	size_t n;
	struct cfg_origin origin;
	const struct cfg_key *row; /* of the table; SIZE: integer is bytes, DURATION: ms */
	const struct cfg_origin *locked_by; /* the layer with `locked: true` that set it, or NULL */
};

/* How an inner layer changes what an outer one has. */
enum cfg_merge {
	CFG_M_INNERMOST = 0, /* scalars; with an outer lock: only the same value */
	CFG_M_GROW,          /* deny lists: entries are added, never taken away, lock or not */
	CFG_M_ALLOW,         /* entries are added; with an outer lock: chosen from the outer's */
	CFG_M_FIXED,         /* entries are added; with an outer lock: nothing changes */
	CFG_M_STRICTER,      /* ENUM, BOOL: a file of the project may only go on in the order of words, false to true */
};
/* What a text must be, beyond its length. */
enum cfg_text {
	CFG_X_ANY = 0, CFG_X_NAME, CFG_X_EXTENDS, CFG_X_IMAGE, CFG_X_ENV_VALUE, CFG_X_MOUNT,
	CFG_X_HOST_PATH, CFG_X_GUEST_PATH, CFG_X_GUARD, CFG_X_COMMAND, CFG_X_NET_ALLOW,
	CFG_X_NET_DENY, CFG_X_NETWORK, CFG_X_GROUP_RULE, CFG_X_DNS_TYPE, CFG_X_SYSCALL,
	CFG_X_CONNECT, CFG_X_SECRET, CFG_X_URL,
};
/* One row of the key table. Rows of one path that follow each other are alternatives. */
enum cfg_type {
	CFG_T_BOOL = 1, CFG_T_INT, CFG_T_STR, CFG_T_PATH, CFG_T_SIZE /* bytes: integer of MiB or "4g" */,
	CFG_T_DURATION /* milliseconds: integer of seconds or "30m" */, CFG_T_ENUM, CFG_T_LIST,
	CFG_T_MAP /* fixed keys */, CFG_T_TABLE /* free keys */, CFG_T_NULL, CFG_T_ANY,
};
enum cfg_state {
	CFG_ACTS = 1,
	CFG_NOT_YET,  /* a value that asks for something is refused: "not available yet" */
	CFG_META,     /* schema_version, extends, locked, name: about the file itself */
};
struct cfg_key {
	const char *path;  /* dotted; "[]" = element of a list, "*" = free key of a table */
	enum cfg_type type;
	enum cfg_state state;
	int64_t min, max;  /* INT: range; STR, LIST: length; SIZE, DURATION: bytes, ms */
	const char *words; /* ENUM: "allow|deny"; "!kata" = known, not available yet */
	const char *fallback; /* default as JSON or a bare word, NULL = none (unset) */
	const char *neutral;  /* NOT_YET: value that asks for nothing, as fallback; "*" = every
			       * valid value (alone it asks for nothing); NULL = none */
	const char *help;  /* one sentence */
	const char *acts;  /* one sentence: the observable change; for docs */
	enum cfg_merge merge;
	bool required;     /* in its map, when that is there */
	enum cfg_text text; /* STR, PATH: what the text must be */
};
extern const struct cfg_key cfg_keys[];
extern const size_t cfg_n_keys;

struct cfg_source {
	enum cfg_layer layer;
	const char *file;  /* for messages */
	const char *bytes; /* borrowed for the call */
	size_t len;
};
struct cfg;
/*
 * cfg_compile - parse every source (outer to inner), check, merge
 * @base: directory that relative paths of @src[i].file are resolved against is that file's own
 * Return: 0; -EBADMSG with problems (all of them, from all sources); -ENOMEM.
 */
SB_MUST_CHECK int cfg_compile(const struct cfg_source *src, size_t n, struct cfg **ret,
			      struct problems *problems);
struct cfg *cfg_free(struct cfg *c);

/* By dotted path: "policy.network.default_action". NULL: not set and no default. */
const struct cfg_value *cfg_get(const struct cfg *c, const char *path);
/* Of a map or table; NULL: @v is NULL or has no such key. */
const struct cfg_value *cfg_member(const struct cfg_value *v, const char *key);
/* Shorthands; the table's type must fit (asserted), absent = @or. SIZE in bytes, DURATION in ms. */
bool cfg_bool(const struct cfg *c, const char *path, bool or);
int64_t cfg_int(const struct cfg *c, const char *path, int64_t or);
const char *cfg_str(const struct cfg *c, const char *path, const char *or);
/* Element of a list or NULL past its end. */
const struct cfg_value *cfg_item(const struct cfg *c, const char *path, size_t i);
/*
 * What the effective tree has that files may write in two ways: mounts[] and the entries of
 * policy.commands.{allowlist,denylist,rules} are always maps ({host, guest, mode} and
 * {run, action, any_order[, scope, reason]}); paths of the host are absolute, relative ones having
 * been taken from their file's directory (as they are, when the source's file has no directory);
 * SIZE and DURATION are integers.
 */
/* "FILE:LINE" of a value, "--option", or "default". */
void cfg_where(const struct cfg_value *v, char *out, size_t cap);
/* Canonical JSON of the effective configuration (sorted keys, no defaults left out). malloc'd. */
SB_MUST_CHECK int cfg_json(const struct cfg *c, char **ret, size_t *ret_len);
/* One value of it, the same way (with its newline-free text). malloc'd. */
SB_MUST_CHECK int cfg_value_json(const struct cfg_value *v, char **ret);
/* JSON Schema 2020-12 of the file format. malloc'd. */
SB_MUST_CHECK int cfg_schema(char **ret, size_t *ret_len);

/*
 * cfg_load - read the files of every layer
 * @project_dir: where to look for .sendbox.yaml, upward to the file system's root or $HOME;
 *               NULL = the working directory
 * @file: --config FILE instead of looking; NULL = look
 * @options: bytes of the command line's layer as YAML, or NULL
 * Files are opened once, no-follow for the last component, at most DOC_MAX_BYTES, regular; they must
 * belong to the caller or root and not be writable by others, nor by their group unless it is the
 * owner's private one (its number is the owner's). `extends:` of any file is loaded just outside of
 * it, at most 8 deep. A missing system, user or project file is none.
 * Return: 0; -EBADMSG with problems; what @admit said; -ENOMEM. @ret: set on 0, cfg_loaded_done.
 */
struct cfg_admit { /* borrowed for the call */
	enum cfg_layer layer;
	const char *path; /* absolute */
	const char *bytes;
	size_t len;
	const uint8_t *sha256; /* of the bytes */
};
struct cfg_files {
	const char *system;  /* NULL = the default place; for tests */
	const char *config_dir; /* user's; <dir>/config.yaml */
	const char *home;
	const char *project_dir;
	const char *file;
	uid_t sudo_uid; /* whose project files in his own folders count as the caller's; 0 = nobody's */
	bool no_project; /* --no-config: look for no .sendbox.yaml */
	const char *options; /* one YAML text; its values come from "command line" */
	size_t options_len;
	const struct cfg_source *option_list; /* or one text an option, file = "--memory" */
	size_t n_options;
	const struct cfg_source *user_list; /* just outside of the user's file */
	size_t n_user;
	const struct cfg_source *agent_list; /* of an agent's definition */
	size_t n_agent;
	/* asked for each file, with its bytes, before anything else looks at them; NULL = all are
	 * taken. Return: 0; what cfg_load is to return, -EBADMSG excepted. */
	int (*admit)(void *arg, const struct cfg_admit *file);
	void *admit_arg;
};
struct cfg_loaded_file {
	enum cfg_layer layer;
	char *path; /* absolute */
	uint8_t sha256[32];
};
struct cfg_loaded {
	struct cfg *cfg;
	struct cfg_loaded_file *files;
	size_t n_files;
	const char *project_file; /* of files, or NULL */
};
SB_MUST_CHECK int cfg_load(const struct cfg_files *in, struct cfg_loaded *ret,
			   struct problems *problems);
void cfg_loaded_done(struct cfg_loaded *l);

/*
 * cfg_migrate - a file of the earlier system as one that loads here
 * @bytes: YAML; comments and order stay
 * @ret: the text, malloc'd; what is not available yet has become a comment with a note above it
 * @ret_changes: how many entries that were; 0: @ret is @bytes
 * Return: 0; -EBADMSG: it has other problems, told; -ENOMEM.
 */
SB_MUST_CHECK int cfg_migrate(const char *bytes, size_t len, const char *file, char **ret,
			      size_t *ret_len, size_t *ret_changes, struct problems *problems);

/* A problem of an effective value: with its file and line. */
void cfg_problem(struct problems *p, const struct cfg_value *at, const char *key, const char *code,
		 const char *fmt, ...) SB_PRINTF(5, 6);
/* All problems on stderr for people, or one JSON object on stdout (cli.md's failure object). */
void problems_print(const struct problems *p);
SB_MUST_CHECK int problems_json(const struct problems *p, int exit_code, char **ret);

#endif
