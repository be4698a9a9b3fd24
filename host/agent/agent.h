#ifndef SB_HOST_AGENT_AGENT_H
#define SB_HOST_AGENT_AGENT_H
/*
 * Agent definitions: what an agent's environment is made of, how it is started, and what it may
 * reach. JSON; a file of the user named like a built-in replaces the fields that it has, whole
 * lists with them. Every value keeps its file and line.
 */
#include <stdio.h>

#include "config/arena.h"
#include "config/config.h"

#define AGENT_MAX_BYTES (256U << 10) /* of a definition */

struct agent_place {
	const char *file; /* "" = nobody set it */
	uint32_t line;
};
struct agent_item {
	const char *text;
	uint32_t line;
};
struct agent_list {
	struct agent_item *v;
	size_t n;
	struct agent_place at;
};
struct agent_text {
	const char *text; /* NULL = not set */
	struct agent_place at;
};
struct agent_mount {
	const char *host;  /* absolute or "~/..." */
	const char *guest; /* absolute or "~/..." */
	bool read_only;
	uint32_t line;
};
/* A file or folder of the user's home that the agent's program keeps its settings in. */
struct agent_settings {
	const char *path;  /* "~/..." on the host */
	const char *to;    /* "~/..." inside; as @path when not said */
	bool live;         /* mode "mount": the real one, shared read-write */
	bool credentials;  /* copy files that hold credentials, too */
	const char **exclude; /* n_exclude paths beneath it, "a/b" or "*.ext" */
	size_t n_exclude;
	const char **json_keys; /* of a JSON file, only these members are copied, and nothing comes back */
	size_t n_json_keys;
	uint32_t line;
};
struct agent_secret {
	const char *name;
	const char **hosts;
	size_t n_hosts;
	uint32_t line;
};

struct agent {
	struct arena arena;
	const char *name;
	bool builtin; /* the name is a built-in one */
	bool custom;  /* a file of the user says something of it */
	struct agent_text display, image;
	struct agent_list install, launch, env, hosts, health, caches, groups;
	struct agent_list packages; /* Debian packages under the install commands; a base that is the
				     * host has its own programs and gets none */
	struct agent_mount *mounts;
	size_t n_mounts;
	struct agent_place mounts_at;
	struct agent_settings *settings;
	size_t n_settings;
	struct agent_place settings_at;
	struct agent_secret *secrets;
	size_t n_secrets;
	struct agent_place secrets_at;
};

/* 1..64 bytes of a-z A-Z 0-9 . _ -, first a letter or digit; no word of the command line. */
bool agent_name_ok(const char *name);

/*
 * agent_parse - lay one definition over what is there
 * @file: for messages and places, copied
 * Every problem is told, with line, column and field; @into is then of no use.
 * Return: 0; -EBADMSG, told; -ENOMEM.
 */
SB_MUST_CHECK int agent_parse(const char *bytes, size_t len, const char *file, struct agent *into,
			      struct problems *p);
/* What a definition must have when everything is laid over. Return: as agent_parse. */
SB_MUST_CHECK int agent_complete(const struct agent *a, const char *file, struct problems *p);
struct agent *agent_free(struct agent *a);
static inline void agent_freep(struct agent **a)
{
	(void)agent_free(*a);
}
#define sb_autoagent SB_CLEANUP(agent_freep)

/* ---- built-in ones ---- */
struct agent_builtin {
	const char *name;
	const char *json;
	size_t len;
};
extern const struct agent_builtin agent_builtins[];
extern const size_t agent_n_builtins;
const struct agent_builtin *agent_builtin_find(const char *name);

/* ---- the user's folder ---- */
/*
 * agent_load - the definition of @name: the built-in one and <config>/agents/NAME.json over it
 * Files are opened once, not through a link; regular, at most AGENT_MAX_BYTES, the caller's or
 * root's, not writable by others.
 * Return: 0; -ENOENT: neither is there; -EBADMSG with @p; -ENOMEM.
 */
SB_MUST_CHECK int agent_load(const char *config_dir, const char *name, struct agent **ret,
			     struct problems *p);
/* Whether there is such an agent, without reading its file. */
bool agent_exists(const char *config_dir, const char *name);
/*
 * agent_each - every name, sorted: built-in and the user's
 * Names that are no agent's (agent_name_ok) are passed to @fn with @ok = false.
 * Return: 0; what @fn returned; -errno.
 */
SB_MUST_CHECK int agent_each(const char *config_dir,
			     int (*fn)(void *arg, const char *name, bool ok), void *arg);
/* "claude, codex, ..." and the nearest name to @word, "" = none is near. */
void agent_names(const char *config_dir, const char *word, char *list, size_t cap, char near[65]);

/* ---- as a layer of the configuration ---- */
struct agent_layer {
	struct cfg_source *v;
	size_t n;
	struct arena arena;
};
struct agent_use {
	const char *home;       /* the user's, on the host */
	const char *guest_home; /* inside */
	bool no_mounts;         /* --no-agent-mounts */
	const char *(*variable)(const char *name);
	bool (*exists)(void *arg, const char *path); /* of a mount's host path */
	/* A mount that is left out because its folder is not there. May be NULL. */
	void (*skipped)(void *arg, const struct agent_mount *m, const char *host);
	void *arg;
};
/*
 * agent_layer_make - what the definition says as documents for cfg_load, one a field; a value stands
 * on the line on which it stands in the definition
 * Return: 0; -ENOMEM.
 */
SB_MUST_CHECK int agent_layer_make(const struct agent *a, const struct agent_use *use,
				   struct agent_layer *ret);
void agent_layer_done(struct agent_layer *l);
/* A path that begins with "~" beneath @home; /root and what is in it when @root. In @a. */
const char *agent_path(struct arena *a, const char *path, const char *home, bool root);

/* ---- the user's own file in the earlier tool's form ---- */
/*
 * global_load - <config>/config.json: dataDir, kernel, defaultCPUs, defaultMemory; initfsReference
 * says nothing here
 * @ret: sources of the user's layer; agent_layer_done. Empty without the file.
 * @ret_data_dir: absolute, or NULL; malloc'd
 * Return: 0; -EBADMSG with @p; -ENOMEM.
 */
SB_MUST_CHECK int global_load(const char *config_dir, const char *home, struct agent_layer *ret,
			      char **ret_data_dir, struct problems *p);
SB_MUST_CHECK int global_parse(const char *bytes, size_t len, const char *file, const char *home,
			       struct agent_layer *ret, char **ret_data_dir, struct problems *p);

/* The whole definition as JSON with sorted keys, and where each field is from. malloc'd. */
SB_MUST_CHECK int agent_json(const struct agent *a, char **ret);

#endif
