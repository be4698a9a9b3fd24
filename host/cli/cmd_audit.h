#ifndef SB_HOST_CLI_CMD_AUDIT_H
#define SB_HOST_CLI_CMD_AUDIT_H
/* The parts of sendbox audit. */
#include "audit_text.h"
#include "dirs.h"

#define AUDIT_HEADS_MAX 16
struct audit_args {
	struct audit_filter filter;
	enum audit_format format;
	bool follow;
	bool json;
	bool raw;
	bool vkey;
	bool help;
	uint64_t limit; /* 0 = all */
	const char *dir; /* a copy of a log; NULL = this host's */
	const char *key;
	const char *heads[AUDIT_HEADS_MAX];
	size_t n_heads;
	const char *append; /* head: a file */
	const char *command; /* head: a program */
	uint64_t size; /* prove; 0 = of the newest head */
	const char *verb;
	const char *what;
};

/* Directory of the log. Return: 0; -errno with text. */
SB_MUST_CHECK int cmd_audit_dir(const struct audit_args *a, const struct cli_dirs *dirs, int *ret,
				struct sb_err *err);
/* Each: exit status, or -errno with text. */
int cmd_audit_verify(const struct audit_args *a, const struct cli_dirs *dirs, struct sb_err *err);
int cmd_audit_prove(const struct audit_args *a, const struct cli_dirs *dirs, struct sb_err *err);
int cmd_audit_head(const struct audit_args *a, const struct cli_dirs *dirs, struct sb_err *err);

#endif
