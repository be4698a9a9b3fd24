/* The options of an instance's first start, kept as words and used again when it is resumed: what is
 * given then takes the place of what was given before, option by option. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "dirs.h"
#include "instance_run.h"
#include "options.h"

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

/* The words that are used: the kept ones, those of now, and the command of then if there is none
 * now. Everything points into @opts, @cmd or @argv. */
static int merged(int argc, char **argv, const json_t *opts, const json_t *cmd, bool has_cmd,
		  char **out)
{
	size_t n = 0;

	for (size_t i = 0; i < json_array_size(opts); i++) {
		const char *w = json_string_value(json_array_get(opts, i));

		if (w && strncmp(w, "--", 2) == 0 && !given(argc, argv, w) && n < WORDS_MAX)
			out[n++] = (char *)(uintptr_t)w;
	}
	for (int i = 0; i < argc && n < WORDS_MAX; i++)
		out[n++] = argv[i];
	if (!has_cmd) {
		static char dashes[] = "--";

		if (n == 0 || strcmp(out[n - 1], "--") != 0)
			out[n++] = dashes;
		for (size_t i = 0; i < json_array_size(cmd) && n < WORDS_MAX; i++)
			out[n++] = (char *)(uintptr_t)json_string_value(json_array_get(cmd, i));
	}
	out[n] = NULL;
	return (int)n;
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

bool run_is_instance(const struct run_options *opt)
{
	struct instance was = { 0 };
	struct sb_err err = { 0 };
	bool plain;

	if (!opt->name || (opt->agent && opt->agent[0] != '\0'))
		return false;
	if (!opt->agent)
		return true;
	plain = find(opt->name, &was, &err) == 0 && !was.agent;
	instance_done(&was);
	return plain;
}

static int usage(struct launch_result *ret, int k, const struct sb_err *err)
{
	ret->fail = k == -EINVAL || k == -ENOENT ? SB_FAIL_USAGE : SB_FAIL_INTERNAL;
	ret->status = cli_exit_of(ret->fail);
	(void)snprintf(ret->text, sizeof(ret->text), "%.499s", err->text);
	return k;
}

int run_instance(int argc, char **argv, struct run_options *opt, struct launch_result *ret,
		 struct sb_err *err)
{
	struct launch l = { .opt = opt, .io = { -1, -1, -1 } };
	struct instance_start st = { .name = opt->name, .rm = opt->rm, .detach = opt->detach,
				     .detach_keys = opt->detach_keys };
	sb_autofree char *kept = NULL;
	sb_autofree char **words = calloc(WORDS_MAX + 2, sizeof(*words));
	struct instance was = { 0 };
	json_t *opts = NULL;
	json_t *cmd = NULL;
	bool has_cmd = opt->argv && opt->argv[0];
	int k = words ? find(opt->name, &was, err) : sb_err_set(err, -ENOMEM, "out of memory");

	*ret = (struct launch_result){ 0 };
	if (k == -ENOENT && has_cmd) {
		*err = (struct sb_err){ 0 };
		k = keep_options(argc, argv, &kept, err);
		st.options = kept;
	} else if (k == 0) {
		int n;

		opts = was.options ? json_loads(was.options, 0, NULL) : NULL;
		cmd = was.argv ? json_loads(was.argv, 0, NULL) : NULL;
		n = merged(argc, argv, opts, cmd, has_cmd, words);
		*opt = (struct run_options){ 0 };
		k = run_options_parse(n, words, opt, err);
		st.image = opt->image;
	}
	if (k == 0)
		k = launch_instance(&l, &st, ret, err);
	else
		(void)usage(ret, k, err);
	instance_done(&was);
	json_decref(opts);
	json_decref(cmd);
	return k;
}
