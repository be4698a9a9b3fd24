#ifndef SB_CORE_CMD_POLICY_H
#define SB_CORE_CMD_POLICY_H
/*
 * Command policy: which programs may run with which arguments; the plan's commands part and the
 * one place that decides, on the host (before a start, `policy test`) and in the guest (every
 * execve). Pure but for the file lookups of struct sb_cmd_files.
 *
 * Order: first matching deny rule, then the other rules in the plan's order (the first that
 * matches decides: allow, ask, log), then the default.
 */
#include "base/err.h"

#define SB_CMD_MAX_RULES 4096
#define SB_CMD_MAX_PATTERN 4096 /* bytes of one rule's text */
#define SB_CMD_MAX_TOKENS 64
#define SB_CMD_MAX_ARGV 65536          /* words judged; more is refused */
#define SB_CMD_MAX_ARGV_BYTES (2U << 20) /* the same, bytes */

enum sb_cmd_action {
	SB_CMD_DENY = 0, /* zero is the safe one */
	SB_CMD_ALLOW = 1,
	SB_CMD_LOG = 2, /* allow, and record */
	SB_CMD_ASK = 3, /* top_level only: the user at the terminal decides before the start */
};
enum sb_cmd_scope {
	SB_CMD_SCOPE_NONE = 0,      /* no command policy at all */
	SB_CMD_SCOPE_TOP_LEVEL = 1, /* what the broker starts */
	SB_CMD_SCOPE_TREE = 2,      /* every execve of every descendant, too */
};

struct sb_cmd_rule {
	char *pattern; /* as written, see sb_cmd_rule_check */
	enum sb_cmd_action action;
	enum sb_cmd_scope scope; /* TOP_LEVEL: for the first command alone; TREE: always */
	bool any_order;          /* option words of the pattern match wherever they stand */
	char *reason;            /* shown when the rule refuses; may be NULL */
	char *from;              /* where it is written: "/p/.sendbox.yaml:12" */
};
struct sb_plan_commands {
	enum sb_cmd_scope scope;      /* NONE: everything else empty, default allow */
	enum sb_cmd_action fallback;  /* ALLOW or DENY */
	struct sb_cmd_rule *rules;
	size_t n_rules;
	bool log_blocked;             /* refusals become events and lines, not only EACCES */
};
void sb_plan_commands_done(struct sb_plan_commands *c);
/* Every rule that needs nothing else of the plan. Return: 0; -EINVAL with text. */
SB_MUST_CHECK int sb_plan_commands_check(const struct sb_plan_commands *c, struct sb_err *err);

/*
 * sb_cmd_rule_check - is @pattern well-formed?
 *
 * Words are separated by blanks; a backslash takes the next byte as it is, so "\ " is a blank in a
 * word and "\*" a star. In a word "*" is any run of bytes, "?" one byte, "[" has no meaning. A word
 * "**" is any number of words, none included; anywhere but in first place. No quotes, variables or
 * shell syntax. The first word names the program: without "/" the program of that name in the
 * image's own program folders (a file of that name elsewhere does not match; links that the image
 * has for it do); with "/" a path glob over the resolved absolute path, in which "*" and "?" do not
 * match "/" and "**" does; "*" or "**" alone: any program. "./" in front is the project folder.
 * Without any "**" the number of words is exact, as in the first version of this format.
 * Return: 0; -EINVAL with text.
 */
SB_MUST_CHECK int sb_cmd_rule_check(const char *pattern, bool any_order, struct sb_err *err);

/* Identity of a file. A zero ino is "unknown". */
struct sb_cmd_file {
	uint64_t dev;
	uint64_t ino;
	uint64_t size;
};
/*
 * How the policy looks at the image: the caller's root (host: the image's folder; guest: "/");
 * conn/cmd_image.h makes one over a descriptor.
 * find: the @nth (from 0) file called @name in the image's program folders, in the order of PATH;
 *       a @name with "/" is that absolute path itself, a folder's too (only @nth 0). Writes the
 *       final path (links resolved inside the root) and the identity.
 * list: each name in the program folders, for rules such as "python3*"; may be NULL: such a rule
 *       matches nothing. Ends early with what @each returns below 0.
 * digest: SHA-256 of @fd, of @path when it is -1.
 * Return: 0; -ENOENT; -errno.
 */
struct sb_cmd_files {
	int (*find)(void *arg, const char *name, unsigned int nth, char *path, size_t cap,
		    struct sb_cmd_file *ret);
	int (*list)(void *arg, int (*each)(void *each_arg, const char *name), void *each_arg);
	int (*digest)(void *arg, const char *path, int fd, uint8_t ret[32]);
	void *arg;
};

/* What is about to run, all borrowed. */
struct sb_cmd_request {
	const char *path;        /* resolved, absolute, links followed; "" = no path (memory file) */
	struct sb_cmd_file file; /* of what runs */
	int fd;                  /* readable descriptor of it for a content digest; -1 = none */
	const char *const *argv; /* argv[0] included */
	size_t argc;
	const char *project;     /* the guest path "./" stands for */
	bool top_level;
	bool loose; /* a script whose interpreter opens it by a name that can lead elsewhere by then:
		     * no rule for it allows, see sb_cmdpol_decide_chain */
};
struct sb_cmd_verdict {
	enum sb_cmd_action action;
	const struct sb_cmd_rule *rule; /* that decided, borrowed from the policy; NULL = default */
	const char *why;                /* static, machine-readable: "rule", "default",
					 * "copy-of-denied", "loader", "no-path", "too-long", "loose-name" */
};

struct sb_cmdpol;
/*
 * sb_cmdpol_new - compile
 * @c: copied as far as needed
 * @files: asked for each program name of the rules, now; borrowed for ever (digest is called later,
 * for a file elsewhere that has the size of a denied program). A name that the image lacks matches
 * nothing.
 * Return: 0; -EINVAL with text; -ENOMEM; what @files returned but -ENOENT.
 */
SB_MUST_CHECK int sb_cmdpol_new(const struct sb_plan_commands *c, const struct sb_cmd_files *files,
				struct sb_cmdpol **ret, struct sb_err *err);
struct sb_cmdpol *sb_cmdpol_free(struct sb_cmdpol *p);
#define SB_AUTO_CMDPOL SB_CLEANUP(sb_cmdpol_freep)
static inline void sb_cmdpol_freep(struct sb_cmdpol **p)
{
	(void)sb_cmdpol_free(*p);
}
/* Decide on one program. Bounds: linear in the words for the rules of that program. */
struct sb_cmd_verdict sb_cmdpol_decide(const struct sb_cmdpol *p, const struct sb_cmd_request *q);
/*
 * Several files that run as one program, a script and its interpreters: @q[0] as it was called, each
 * further one as the kernel will run it (interpreter, its argument, the path of the one before, the
 * rest). A deny rule for any refuses; a rule that allows one allows, unless that one is loose and
 * the default refuses; else the default.
 */
struct sb_cmd_verdict sb_cmdpol_decide_chain(const struct sb_cmdpol *p,
					     const struct sb_cmd_request *q, size_t n);
/*
 * The same for two. A script: @script as it was called, @interp as the kernel will run it (interpreter, its argument,
 * the script's path, the rest). A deny rule for either refuses; a rule that allows either allows;
 * else the default.
 */
struct sb_cmd_verdict sb_cmdpol_decide_script(const struct sb_cmdpol *p,
					      const struct sb_cmd_request *script,
					      const struct sb_cmd_request *interp);
/* Place of a verdict's rule in the plan; SIZE_MAX for NULL. */
size_t sb_cmdpol_index(const struct sb_cmdpol *p, const struct sb_cmd_rule *rule);
/* "allow", "deny", "log", "ask" */
const char *sb_cmd_action_name(enum sb_cmd_action a);
/* One line for people: what was refused, the rule, where it is, what to do. */
void sb_cmd_explain(const struct sb_cmd_verdict *v, const struct sb_cmd_request *q, char *out,
		    size_t cap);

#endif
