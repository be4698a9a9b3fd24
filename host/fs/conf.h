#ifndef SB_FS_CONF_H
#define SB_FS_CONF_H
/*
 * What one file server may do: its options, and the path rules.
 */
#include <sys/types.h>

#include "base/err.h"

#define FS_MAX_TREE 256
#define FS_MAX_RULES 1024
#define FS_MAX_RULE_DEPTH 64

enum fs_root_kind { FS_ROOT_NONE = 0, FS_ROOT_DIR, FS_ROOT_FILE, FS_ROOT_TREE };
enum fs_cache { FS_CACHE_SHORT = 0, FS_CACHE_LONG };

struct fs_map {
	uid_t host_uid;
	gid_t host_gid;
	uid_t guest_uid;
	gid_t guest_gid;
};

struct fs_leaf {
	char *path; /* owned; relative, normalised: "etc/ssl/certs" */
	int fd;     /* owned by the process */
};

enum fs_rule_kind { FS_RULE_PROTECT = 0, FS_RULE_HIDE, FS_RULE_GIT };
/* A component of a rule path. A leaf hides or protects; an inner one only leads there. */
struct fs_rule {
	char *name;
	bool hide;
	bool protect;
	bool git; /* protected, but may be replaced as gitcfg.h says */
	struct fs_rule *sub; /* first child */
	struct fs_rule *next;
};

struct fs_conf {
	enum fs_root_kind kind;
	int root_fd; /* directory or file */
	struct fs_leaf *leaves;
	size_t n_leaves;
	bool ro;
	bool root_is_root;
	bool no_xattr; /* no extended attributes at all: the guest's kernel stops asking */
	bool map_set;
	bool as_set;
	uid_t as_uid;
	gid_t as_gid;
	struct fs_map map;
	enum fs_cache cache;
	uint64_t quota_bytes;  /* 0 = none */
	uint64_t quota_inodes; /* 0 = none */
	struct fs_rule rules;  /* its sub is the tree; root itself has no rule */
	size_t n_rules;
};

void fs_conf_init(struct fs_conf *c);
void fs_conf_done(struct fs_conf *c);
/* Options of the command line. Return: 0; -EINVAL with the text in @err; -ENOMEM. */
SB_MUST_CHECK int fs_conf_parse(struct fs_conf *c, int argc, char *const *argv,
				struct sb_err *err);

/* Pure parts, for tests and fuzzing. Return: 0; -EINVAL; -ENOMEM. */
SB_MUST_CHECK int fs_conf_map(const char *s, struct fs_map *ret);
SB_MUST_CHECK int fs_conf_leaf(struct fs_conf *c, const char *spec);
SB_MUST_CHECK int fs_conf_rule(struct fs_conf *c, const char *path, enum fs_rule_kind kind);

/* The rule for @name beneath @at. @at may be NULL. Return: NULL = none. */
const struct fs_rule *fs_rule_sub(const struct fs_rule *at, const char *name);

#endif
