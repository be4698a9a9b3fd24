/* The options of an instance's first start, kept as words and used again when it is resumed: what is
 * given then takes the place of what was given before, option by option. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "dirs.h"
#include "instance_base.h"
#include "instance_run.h"
#include "options.h"
#include "run_agent.h"

#define WORDS_MAX 1500

/* Of this start alone. */
static bool passing(const char *name)
{
	static const char *const words[] = { "name", "rm", "detach", "detach-keys", "json", "keep",
					     "dry-run", "interactive", "trust-config", "plan", "help",
					     "valid-for", "separate-stderr", "quiet", "reinstall" };

	for (size_t i = 0; i < SB_ARRAY_LEN(words); i++)
		if (strcmp(words[i], name) == 0)
			return true;
	return false;
}

/* A relative path means another file in another folder. */
static char *absolute(const char *name, const char *value, const char *cwd)
{
	static const char *const paths[] = { "project", "workspace", "config", "kernel", "mount" };
	static const char *const forms[] = { "dir:", "oci:", "oci-archive:", "docker-archive:" };
	const char *head = "";
	size_t head_len = 0;
	bool path = false;
	char *s = NULL;

	for (size_t i = 0; i < SB_ARRAY_LEN(paths); i++)
		path |= strcmp(paths[i], name) == 0;
	path |= strcmp(name, "ssh-agent") == 0 && strchr(value, '/') &&
		strncmp(value, "SHA256:", 7) != 0; /* else a key's comment or digest */
	for (size_t i = 0; strcmp(name, "image") == 0 && i < SB_ARRAY_LEN(forms); i++)
		if (strncmp(value, forms[i], strlen(forms[i])) == 0) {
			path = true;
			head = forms[i];
			head_len = strlen(head);
		}
	if (!path || value[head_len] == '/' || value[head_len] == '~')
		return strdup(value);
	if (asprintf(&s, "%s%s/%s", head, cwd, value + head_len) < 0)
		return NULL;
	return s;
}

static int add_word(json_t *a, const char *name, const char *value)
{
	char *s = NULL;
	json_t *one;
	int r;

	if (asprintf(&s, "--%s%s%s", name, value ? "=" : "", value ? value : "") < 0)
		return -ENOMEM;
	one = json_string(s);
	free(s);
	r = one ? json_array_append_new(a, one) : -1;
	return r < 0 ? -EINVAL : 0;
}

/* @argv as `run` got it. @ret: malloc'd JSON. */
static int keep_options(int argc, char **argv, char **ret, struct sb_err *err)
{
	char cwd[4096];
	json_t *words = json_array();
	const char *name;
	const char *value;
	int at = 0;
	int k = words && getcwd(cwd, sizeof(cwd)) ? 0 : -ENOMEM;
	bool project = false;

	while (k == 0 && run_options_step(argc, argv, &at, &name, &value)) {
		sb_autofree char *v = value ? absolute(name, value, cwd) : NULL;

		project |= strcmp(name, "project") == 0 || strcmp(name, "workspace") == 0;
		if (passing(name) || (strcmp(name, "env") == 0 && v && strchr(v, '=')))
			continue;
		k = add_word(words, name, v);
	}
	if (k == 0 && !project)
		k = add_word(words, "project", cwd);
	*ret = k == 0 ? json_dumps(words, JSON_COMPACT) : NULL;
	json_decref(words);
	return *ret ? 0 : sb_err_set(err, k < 0 ? k : -ENOMEM, "the options cannot be kept: %s",
				     k == -EINVAL ? "they are not UTF-8" : "out of memory");
}

static bool given(int argc, char **argv, const char *word)
{
	const char *name;
	const char *value;
	size_t len = strcspn(word, "=");
	int at = 0;

	while (run_options_step(argc, argv, &at, &name, &value))
		if (len == strlen(name) + 2 && strncmp(word + 2, name, len - 2) == 0)
			return true;
	return false;
}

/* The words that are used: the kept ones and those of now. Everything points into @opts or @argv. */
static size_t merged(int argc, char **argv, const json_t *opts, char **out)
{
	size_t n = 0;

	for (size_t i = 0; i < json_array_size(opts); i++) {
		const char *w = json_string_value(json_array_get(opts, i));

		if (w && strncmp(w, "--", 2) == 0 && !given(argc, argv, w) && n < WORDS_MAX)
			out[n++] = (char *)(uintptr_t)w;
	}
	for (int i = 0; i < argc && n < WORDS_MAX; i++)
		out[n++] = argv[i];
	return n;
}

/* Nothing to run was given: the agent of then, or the command of then. */
static size_t as_before(const struct instance *was, const json_t *cmd, char **out, size_t n)
{
	static char dashes[] = "--";

	if (n > 0 && strcmp(out[n - 1], "--") == 0)
		n--;
	if (was->agent) {
		out[n++] = was->agent;
		return n;
	}
	out[n++] = dashes;
	for (size_t i = 0; i < json_array_size(cmd) && n < WORDS_MAX; i++)
		out[n++] = (char *)(uintptr_t)json_string_value(json_array_get(cmd, i));
	return n;
}

/* Return: 0 with @ret; -ENOENT: it is new; -errno with text. */
static int find(const char *name, struct instance *ret, struct sb_err *err)
{
	struct cli_dirs *dirs = calloc(1, sizeof(*dirs));
	sb_autostate struct state *s = NULL;
	int k = dirs ? cli_dirs_init(dirs, err) : -ENOMEM;

	if (k == 0)
		k = state_open(&dirs->d, &s, err);
	if (k == 0)
		k = instance_get(s, name, ret, err);
	free(dirs);
	return k;
}

static int usage(struct launch_result *ret, int k, const struct sb_err *err)
{
	ret->fail = k == -EINVAL || k == -ENOENT ? SB_FAIL_USAGE : SB_FAIL_INTERNAL;
	ret->status = cli_exit_of(ret->fail);
	(void)snprintf(ret->text, sizeof(ret->text), "%.499s", err->text);
	return k;
}

struct again { /* what a resumed one is made of */
	struct instance was;
	struct instance_base base;
	json_t *opts;
	json_t *cmd;
	char **words; /* WORDS_MAX + 2 */
};

static void again_done(struct again *a)
{
	instance_base_done(&a->base);
	instance_done(&a->was);
	json_decref(a->opts);
	json_decref(a->cmd);
	free(a->words);
}

/* @opt anew, from what was kept and what is given. Return: 0; -errno with text. */
static int again(int argc, char **argv, struct again *a, struct run_options *opt, struct sb_err *err)
{
	bool nothing = opt->agent ? opt->agent[0] == '\0' : !(opt->argv && opt->argv[0]);
	size_t n;

	if (opt->agent && opt->agent[0] != '\0' &&
	    (!a->was.agent || strcmp(a->was.agent, opt->agent) != 0))
		return sb_err_set(err, -EINVAL, "instance \"%s\" is %s%s, not of %.64s: take another --name",
				  a->was.name, a->was.agent ? "of " : "no agent's",
				  a->was.agent ? a->was.agent : "", opt->agent);
	a->opts = a->was.options ? json_loads(a->was.options, 0, NULL) : NULL;
	a->cmd = a->was.argv ? json_loads(a->was.argv, 0, NULL) : NULL;
	if (nothing && !a->was.agent && json_array_size(a->cmd) == 0)
		return sb_err_set(err, -EINVAL, "instance \"%s\" has not run a program yet: sendbox run --name %s -- "
				  "PROGRAM", a->was.name, a->was.name);
	n = merged(argc, argv, a->opts, a->words);
	if (nothing)
		n = as_before(&a->was, a->cmd, a->words, n);
	a->words[n] = NULL;
	*opt = (struct run_options){ 0 };
	return run_options_parse((int)n, a->words, opt, err);
}

/* The layers of then, if they are there; otherwise those of now are looked at by hold_check(). */
static int on_base(struct again *a, struct launch_target *t, struct launch *l, struct sb_err *err)
{
	struct cli_dirs *dirs = calloc(1, sizeof(*dirs));
	int k = dirs ? cli_dirs_init(dirs, err) : -ENOMEM;

	if (k == 0) {
		struct sb_err why = { 0 };

		k = instance_base_get(&dirs->d, &a->was, &a->base, &why);
		if (k == 0) {
			instance_base_target(&a->base, t);
			t->was = &a->base;
			l->target = t;
		}
		k = k == -ENOENT || k == -ESTALE ? 0 : k;
		if (k < 0)
			*err = why;
	}
	free(dirs);
	return k;
}

int run_instance(int argc, char **argv, struct run_options *opt, struct launch_result *ret,
		 struct sb_err *err)
{
	struct launch l = { .opt = opt, .io = { -1, -1, -1 } };
	struct launch_target target = { 0 };
	struct instance_start st = { 0 };
	sb_autofree char *kept = NULL;
	SB_CLEANUP(again_done) struct again a = { .words = calloc(WORDS_MAX + 2, sizeof(char *)) };
	int k = a.words ? -ENOENT : sb_err_set(err, -ENOMEM, "out of memory");

	*ret = (struct launch_result){ 0 };
	if (k == -ENOENT && opt->name)
		k = find(opt->name, &a.was, err);
	if (k == -ENOENT && (opt->agent || (opt->argv && opt->argv[0]))) {
		*err = (struct sb_err){ 0 };
		k = keep_options(argc, argv, &kept, err);
	} else if (k == 0) {
		k = again(argc, argv, &a, opt, err);
		if (k == 0 && !a.was.options) /* an imported one starts for the first time */
			k = keep_options(argc, argv, &kept, err);
	}
	if (k < 0)
		return usage(ret, k, err);
	if (opt->agent)
		return run_agent(opt, kept, a.was.name ? &a.was : NULL, ret, err);
	st = (struct instance_start){ .name = opt->name, .rm = opt->rm, .detach = opt->detach,
				      .detach_keys = opt->detach_keys, .options = kept,
				      .image = opt->image };
	if (a.was.name)
		k = on_base(&a, &target, &l, err);
	if (k < 0)
		return usage(ret, k, err);
	/* a dry run starts nothing, so the instance is not one that started and ended */
	return opt->dry_run ? launch(&l, ret, err) : launch_instance(&l, &st, ret, err);
}
