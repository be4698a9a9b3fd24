#include "cmd_judge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "approve_note.h"
#include "asking.h"
#include "base/fd.h"
#include "plan_make_i.h"

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"
#define IMAGINED "/usr/bin/"

static int find(void *arg, const char *name, unsigned int nth, char *path, size_t cap,
		struct sb_cmd_file *ret)
{
	const struct cmd_judge *j = arg;
	int r = j->image.files.find(j->image.files.arg, name, nth, path, cap, ret);

	if (r != -ENOENT || nth > 0 || strchr(name, '/'))
		return r;
	if (snprintf(path, cap, IMAGINED "%s", name) >= (int)cap)
		return -ENOENT;
	*ret = (struct sb_cmd_file){ 0 };
	return 0;
}

static int list(void *arg, int (*each)(void *each_arg, const char *name), void *each_arg)
{
	const struct cmd_judge *j = arg;

	return j->image.files.list(j->image.files.arg, each, each_arg);
}

static int digest(void *arg, const char *path, int fd, uint8_t ret[32])
{
	const struct cmd_judge *j = arg;

	return j->image.files.digest(j->image.files.arg, path, fd, ret);
}

int cmd_judge_open(struct cmd_judge *j, const struct sb_plan *plan, bool imagine,
		   struct sb_err *err)
{
	const char *root = plan->image == SB_IMAGE_DIR ? plan->image_path : "/";
	int r;

	*j = (struct cmd_judge){ .plan = plan, .root = -1 };
	j->root = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (j->root < 0)
		return sb_err_set(err, -errno, "cannot open %.300s: %s", root, strerror(errno));
	if (plan->commands.scope == SB_CMD_SCOPE_NONE)
		return 0;
	r = sb_cmd_image_init(&j->image, j->root);
	if (r < 0)
		return sb_err_set(err, r, "cannot look at the programs of %.300s: %s", root,
				  strerror(-r));
	j->files = imagine ? (struct sb_cmd_files){ find, list, digest, j }
			   : j->image.files;
	return sb_cmdpol_new(&plan->commands, &j->files, &j->pol, err);
}

void cmd_judge_close(struct cmd_judge *j)
{
	j->pol = sb_cmdpol_free(j->pol);
	sb_fd_close(&j->root);
}

/* ---- where a program is ---- */

static const struct sb_plan_mount *mount_of(const struct sb_plan *p, const char *guest)
{
	const struct sb_plan_mount *in = NULL;

	for (size_t i = 0; i < p->n_mounts; i++) /* sorted: the innermost comes last */
		if (sb_path_within(guest, p->mounts[i].guest))
			in = &p->mounts[i];
	return in;
}

struct program {
	char path[SB_CMD_PATH_MAX];
	struct sb_cmd_file file;
	int fd; /* owned */
};

/*
 * A path of the guest. In a shared folder that has the same place on the host, links lead where
 * they lead there; in one with another place only within it.
 */
static int locate(const struct cmd_judge *j, const char *guest, struct program *ret)
{
	const struct sb_plan_mount *m = mount_of(j->plan, guest);
	bool same = m && j->plan->image == SB_IMAGE_HOST && strcmp(m->host, m->guest) == 0;
	char inside[SB_CMD_PATH_MAX];
	const char *rest;
	sb_autofd int dir = -1;
	int n;
	int r;

	sb_fd_close(&ret->fd);
	if (!m || same)
		return sb_cmd_resolve(j->root, "/", guest, ret->path, sizeof(ret->path), &ret->file,
				      &ret->fd);
	if (m->file)
		return -ENOENT;
	rest = guest + strlen(m->guest);
	dir = open(m->host, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	r = sb_cmd_resolve(dir, "/", *rest ? rest : "/", inside, sizeof(inside), &ret->file, &ret->fd);
	if (r < 0)
		return r;
	n = snprintf(ret->path, sizeof(ret->path), "%s%s", strcmp(m->guest, "/") ? m->guest : "",
		     inside);
	return n < 0 || (size_t)n >= sizeof(ret->path) ? -ENAMETOOLONG : 0;
}

/* As execve of @name in the working directory. */
static int locate_name(const struct cmd_judge *j, const char *name, struct program *ret)
{
	char full[SB_PLAN_MAX_PATH * 2];
	char norm[SB_PLAN_MAX_PATH + 1];
	int n = snprintf(full, sizeof(full), "%s%s%s", name[0] == '/' ? "" : j->plan->cwd,
			 name[0] == '/' ? "" : "/", name);

	if (n < 0 || (size_t)n >= sizeof(full))
		return -ENAMETOOLONG;
	/* with "..": as text; what it means behind a link the guest sees itself */
	if (sb_path_normalise(full, norm) == 0)
		return locate(j, norm, ret);
	return locate(j, full, ret);
}

static int search(const struct cmd_judge *j, const char *name, struct program *ret)
{
	const char *path = plan_env_get(j->plan, "PATH");

	if (!path)
		path = DEFAULT_PATH;
	for (size_t n; *path; path += n + (path[n] == ':')) {
		char full[SB_CMD_PATH_MAX];

		n = strcspn(path, ":");
		if (n >= sizeof(full) / 2 || strlen(name) >= sizeof(full) / 2)
			continue;
		(void)snprintf(full, sizeof(full), "%.*s/%.*s", n > 0 ? (int)n : 1,
			       n > 0 ? path : ".", (int)sizeof(full) / 2 - 2, name);
		if (locate_name(j, full, ret) == 0)
			return 0;
	}
	return -ENOENT;
}

/* ---- the decision ---- */

static size_t count(const char *const *argv)
{
	size_t n = 0;

	while (argv[n])
		n++;
	return n;
}

/* A script and its interpreters, one in the other; words are owned. */
struct chain {
	struct program program[SB_CMD_LEVELS + 1];
	struct sb_cmd_request q[SB_CMD_LEVELS + 1];
	const char **words[SB_CMD_LEVELS + 1];
	struct sb_cmd_shebang line[SB_CMD_LEVELS + 1];
	size_t n;
};

/* The interpreter of the last one, as the kernel runs it: its argument, the file, the rest. */
static int add_interpreter(const struct cmd_judge *j, struct chain *c)
{
	const struct sb_cmd_shebang *s = &c->line[c->n - 1];
	const struct sb_cmd_request *before = &c->q[c->n - 1];
	struct program *p = &c->program[c->n];
	const char **words = calloc(before->argc + 3, sizeof(*words));
	size_t n = 0;

	if (!words)
		return -ENOMEM;
	c->words[c->n] = words;
	words[n++] = s->interp;
	if (s->arg[0])
		words[n++] = s->arg;
	words[n++] = before->path;
	for (size_t k = 1; k < before->argc; k++)
		words[n++] = before->argv[k];
	p->fd = -1;
	if (locate_name(j, s->interp, p) < 0) {
		p->file = (struct sb_cmd_file){ 0 };
		memcpy(p->path, s->interp, sizeof(s->interp));
	}
	c->q[c->n] = c->q[0];
	c->q[c->n].path = p->path;
	c->q[c->n].file = p->file;
	c->q[c->n].fd = p->fd;
	c->q[c->n].argv = words;
	c->q[c->n].argc = n;
	c->n++;
	return 0;
}

/* Return: 1 = the last one is a script; 0; -errno. */
static int is_script(struct chain *c)
{
	char head[SB_CMD_HEAD];
	int r = c->program[c->n - 1].fd < 0 ? 0 : sb_cmd_read_head(c->program[c->n - 1].fd, head);

	/* one that cannot be read cannot be run by an interpreter either */
	return r > 0 && c->n <= SB_CMD_LEVELS &&
	       sb_cmd_shebang(head, (size_t)r, &c->line[c->n - 1]) > 0;
}

static int decide(const struct cmd_judge *j, struct chain *c, struct cmd_answer *ret)
{
	int r = 0;

	while (r == 0 && is_script(c))
		r = add_interpreter(j, c);
	if (r == 0) {
		ret->verdict = sb_cmdpol_decide_chain(j->pol, c->q, c->n);
		sb_cmd_explain(&ret->verdict, &c->q[0], ret->text, sizeof(ret->text));
	}
	for (size_t i = 0; i < c->n; i++) {
		sb_fd_close(&c->program[i].fd);
		free(c->words[i]);
	}
	return r;
}

int cmd_judge_decide(const struct cmd_judge *j, const char *const *argv, struct cmd_answer *ret,
		     struct sb_err *err)
{
	sb_autofree struct chain *c = calloc(1, sizeof(*c));
	bool named = strchr(argv[0], '/') != NULL;
	struct program *p;
	int r;

	if (!c)
		return sb_err_set(err, -ENOMEM, "out of memory");
	p = &c->program[0];
	p->fd = -1;
	c->n = 1;
	r = named ? locate_name(j, argv[0], p) : search(j, argv[0], p);
	*ret = (struct cmd_answer){ .found = r == 0 };
	ret->verdict = (struct sb_cmd_verdict){ .action = SB_CMD_ALLOW, .why = "no-policy" };
	if (r < 0) {
		p->file = (struct sb_cmd_file){ 0 };
		(void)snprintf(p->path, sizeof(p->path), "%s%s", named ? "" : IMAGINED, argv[0]);
	}
	(void)snprintf(ret->path, sizeof(ret->path), "%s", p->path);
	c->q[0] = (struct sb_cmd_request){ .path = p->path,
					   .file = p->file,
					   .fd = p->fd,
					   .argv = argv,
					   .argc = count(argv),
					   .project = plan_project(j->plan),
					   .top_level = true };
	if (!j->pol) {
		sb_fd_close(&p->fd);
		return 0;
	}
	r = decide(j, c, ret);
	return r < 0 ? sb_err_set(err, r, "command policy: %s", strerror(-r)) : 0;
}

/* ---- before the start ---- */

int cmd_judge_start(const struct sb_dirs *d, const struct sb_plan *plan, const struct cfg *cfg,
		    bool terminal, int session_dir, const char *const *env, size_t n_env,
		    struct sb_err *err)
{
	struct cmd_judge j;
	struct cmd_answer a;
	char rule[500];
	int r;

	if (plan->commands.scope == SB_CMD_SCOPE_NONE)
		return 0;
	r = cmd_judge_open(&j, plan, false, err);
	if (r == 0)
		r = cmd_judge_decide(&j, (const char *const *)plan->argv, &a, err);
	if (r < 0 || !a.found || a.verdict.action == SB_CMD_ALLOW || a.verdict.action == SB_CMD_LOG)
		goto out;
	(void)snprintf(rule, sizeof(rule), "%.300s (%.150s)", a.verdict.rule ? a.verdict.rule->pattern : "-",
		       a.verdict.rule ? a.verdict.rule->from : "default");
	if (a.verdict.action == SB_CMD_ASK)
		r = session_dir >= 0 ? asking_exec(session_dir, plan, rule, terminal, env, n_env, err)
				     : asking_command(d, plan, cfg, rule, terminal, env, n_env, err);
	else
		r = sb_err_set(err, -EACCES, "%.500s",
			       a.text + (strncmp(a.text, "sendbox: ", 9) == 0 ? 9 : 0));
	if (r == -EACCES)
		r = command_refused(d, plan, session_dir >= 0, rule,
				    a.verdict.action == SB_CMD_ASK ? "not-approved" : a.verdict.why, err);
out:
	cmd_judge_close(&j);
	return r;
}
