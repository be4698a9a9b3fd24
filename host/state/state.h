#ifndef SB_HOST_STATE_STATE_H
#define SB_HOST_STATE_STATE_H
/*
 * What outlives a session: instances and environments, in one SQLite file <state>/state.db (WAL,
 * synchronous=FULL, foreign keys, 0600, schema version in user_version, refused when newer).
 * Whether an instance runs is never believed from the table alone: the lock of its session says it.
 */
#include "core/plan.h"
#include "provider/provider.h"

struct state; /* one open database */
SB_MUST_CHECK int state_open(const struct sb_dirs *d, struct state **ret, struct sb_err *err);
struct state *state_close(struct state *s);
static inline void state_closep(struct state **s)
{
	(void)state_close(*s);
}
#define sb_autostate SB_CLEANUP(state_closep)

/* 1..64 bytes of a-z A-Z 0-9 . _ -, first a letter or digit. */
bool instance_name_ok(const char *name);

enum instance_status {
	INSTANCE_STOPPED = 1,
	INSTANCE_STARTING = 2,
	INSTANCE_RUNNING = 3,
	INSTANCE_CRASHED = 4, /* was running and its session is gone */
};
struct instance { /* owned strings, NULL where unknown */
	int64_t id;
	char *name;
	char *agent;      /* or NULL: a plain command */
	char *workspace;
	char *runtime;    /* "microvm", "namespace": an instance stays with its runtime */
	char *upper;      /* disk file or directory below <state>/instances/<id>/ */
	char *layers;     /* JSON list of sha256, lowest first: what it was made from */
	char *image;      /* reference and digest, for people */
	char *argv;       /* JSON list: command of the last start */
	char *options;    /* JSON list of words: options of the starts, used again at resume */
	char *base;       /* JSON object: what lies beneath, see host/cli/instance_base.h */
	uint8_t session[16]; /* of the last start */
	uint8_t plan_sha256[32];
	uint8_t config_sha256[32];
	enum instance_status status;
	uint32_t cpus;
	uint64_t memory_bytes;
	int exit_code;    /* -1 = none */
	int64_t created_s, started_s, stopped_s; /* 0 = never */
};
void instance_done(struct instance *i);

/* Claim @name for a start: new row, or the stopped one; under the database's lock, so of two at
 * once one gets -EBUSY. @ret_lock: owned; the instance counts as in use until it and its copies in
 * other processes are closed. @want: argv alone counts when it is resumed. Return: 0; -EBUSY (runs: text offers attach); -EINVAL (name). */
SB_MUST_CHECK int instance_claim(struct state *s, const struct instance *want, bool *ret_resumed,
				 struct instance *ret, int *ret_lock, struct sb_err *err);
/* What a claimed instance was made of: runtime, upper, layers, base, image, workspace, cpus,
 * memory_bytes, config_sha256 of @made; options where it has some. */
SB_MUST_CHECK int instance_made(struct state *s, int64_t id, const struct instance *made,
				struct sb_err *err);
SB_MUST_CHECK int instance_started(struct state *s, int64_t id, const uint8_t session[16],
				   const uint8_t plan_sha256[32], struct sb_err *err);
SB_MUST_CHECK int instance_stopped(struct state *s, int64_t id, int exit_code, struct sb_err *err);
SB_MUST_CHECK int instance_get(struct state *s, const char *name, struct instance *ret,
			       struct sb_err *err); /* -ENOENT with near names */
SB_MUST_CHECK int instance_each(struct state *s, int (*fn)(void *arg, const struct instance *i),
				void *arg, struct sb_err *err); /* newest first */
/* Keep it from being started: until @ret_lock (owned) is closed a start is refused.
 * Return: 0; -EBUSY: it runs, or somebody else has it; -ENOENT; -errno. */
SB_MUST_CHECK int instance_hold(struct state *s, const char *name, struct instance *ret, int *ret_lock,
				struct sb_err *err);
/* A new one that was not started yet: name, agent, layers, base, image and options of @want.
 * Return: 0; -EEXIST; -EINVAL (name); -errno. */
SB_MUST_CHECK int instance_add(struct state *s, const struct instance *want, struct sb_err *err);
/* Directories that no row names: what killed starts, removals and imports left. @n: counted up. */
SB_MUST_CHECK int instance_gc(struct state *s, size_t *n, struct sb_err *err);
/* Row and files go; -EBUSY when it runs. */
SB_MUST_CHECK int instance_remove(struct state *s, const char *name, struct sb_err *err);
/* The same for the holder of its lock, without a look whether it runs. */
SB_MUST_CHECK int instance_forget(struct state *s, int64_t id, struct sb_err *err);
/* Its directory, <state>/instances/<id>. @ret_dir: owned. */
SB_MUST_CHECK int instance_dir(struct state *s, int64_t id, char *path, size_t cap, int *ret_dir,
			       struct sb_err *err);
/* @exit_code < 0 in instance_stopped: nobody knows, it crashed. */
SB_MUST_CHECK int instance_rename(struct state *s, const char *from, const char *to,
				  struct sb_err *err);

/* Environments: the layers that install commands made, by key = SHA-256 of everything that decides
 * them (definition's base digest, commands, environment, runtime where it matters). */
struct environment {
	uint8_t key[32];
	char *agent;
	char *base;       /* reference and digest, for people */
	uint8_t layers[SB_PLAN_MAX_LAYERS][32]; /* sha256, lowest first, without the base */
	size_t n_layers;
	uint64_t bytes;
	int64_t built_s;
	int64_t used_s;
};
SB_MUST_CHECK int environment_get(struct state *s, const uint8_t key[32], struct environment *ret,
				  struct sb_err *err); /* -ENOENT */
SB_MUST_CHECK int environment_put(struct state *s, const struct environment *e, struct sb_err *err);
SB_MUST_CHECK int environment_each(struct state *s, int (*fn)(void *arg, const struct environment *e),
				   void *arg, struct sb_err *err);
SB_MUST_CHECK int environment_remove(struct state *s, const uint8_t key[32], struct sb_err *err);
void environment_done(struct environment *e);

#endif
