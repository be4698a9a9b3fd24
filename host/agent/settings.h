#ifndef SB_HOST_AGENT_SETTINGS_H
#define SB_HOST_AGENT_SETTINGS_H
/*
 * An agent's own settings: files of the user's home are copied into a folder that belongs to one
 * instance, the session works on the copy, and what it changed is looked at and merged by the user,
 * or not at all.
 *
 *   DIR/manifest.json   what was copied, with digests; ours, never seen by the session
 *   DIR/copy/N/...      the copies, shared read-write: hostile from the first start on
 *
 * Copying takes regular files only and follows no link. Looking at a copy and merging it opens
 * everything beneath one descriptor, follows no link and reads regular files of bounded size.
 */
#include <sys/stat.h>

#include "agent.h"

#define SETTINGS_MAX_FILES 20000U
#define SETTINGS_MAX_BYTES (256U << 20) /* of one instance's copies */
#define SETTINGS_MAX_FILE (16U << 20)   /* larger ones are neither copied nor merged */
#define SETTINGS_MAX_DEPTH 32

struct settings_where {
	const char *dir;  /* absolute; of this instance; made when it is not there */
	const char *home; /* the user's */
	const char *guest_home;
	uid_t uid; /* who the copies belong to */
	gid_t gid;
};
struct settings_mount { /* owned strings */
	char *host;
	char *guest;
	char *shown; /* "~/.claude" */
	bool live;   /* the user's own, not a copy */
};
struct settings {
	struct settings_mount *mounts;
	size_t n;
	size_t files;  /* copied by this call */
	size_t held;   /* left out: they look like credentials */
	size_t odd;    /* left out: links, sockets, devices, too large */
	bool again;    /* the copies of an earlier session are used again */
};
/*
 * settings_prepare - make the copies, or find those of the instance's last session
 * Return: 0; -EFBIG, -E2BIG: beyond the limits above, with the remedy; -errno with text.
 */
SB_MUST_CHECK int settings_prepare(const struct agent *a, const struct settings_where *w,
				   struct settings *ret, struct sb_err *err);
void settings_done(struct settings *s);
/* Whether a file of that name holds credentials as far as its name tells. */
bool settings_is_credential(const char *name);

enum settings_change {
	SETTINGS_SAME = 0,
	SETTINGS_ADDED,
	SETTINGS_CHANGED,
	SETTINGS_REMOVED,
	SETTINGS_ODD, /* a link, device, fifo, or too large: never merged */
};
#define SETTINGS_TAKEN 1
struct settings_file {
	enum settings_change change;
	const char *shown; /* "~/.claude/settings.json", not escaped */
	const char *path;  /* beneath home, of the user's file */
	const char *bytes; /* of the session's; NULL = none, or not asked for */
	size_t len;
	const char *base;  /* digest of what was copied, hex; "" = there was none */
};
/*
 * settings_each - every file that the session changed
 * @fn: called with bytes when @bytes; SETTINGS_TAKEN: the user has it now, so it is no change any
 * more. -errno ends it.
 * Return: 0; -ENOENT: there are no copies; what @fn returned; -errno with text.
 */
SB_MUST_CHECK int settings_each(const char *dir, bool bytes,
				int (*fn)(void *arg, const struct settings_file *f), void *arg,
				struct sb_err *err);
enum settings_applied { SETTINGS_DONE = 1, SETTINGS_CONFLICT, SETTINGS_SKIPPED };
/*
 * settings_apply - write one change to the user's file
 * A file that is not what it was when it was copied is a conflict, and left alone.
 * Return: enum settings_applied; -errno with text.
 */
SB_MUST_CHECK int settings_apply(const char *home, const struct settings_file *f,
				 struct sb_err *err);
#endif
