#include "verbs.h"

#include <errno.h>
#include <stdio.h>

#include "cli.h"

int verb_options(const struct verb *v, void *arg, int argc, char **argv, int *ret_at)
{
	struct sb_err err = { 0 };
	int at = 0;

	if (!v->program)
		cli_options_first(v->table, v->n_table, argc, argv);
	for (;;) {
		const char *value;
		bool dashes;
		int id = cli_options_next(v->table, v->n_table, argc, argv, &at, &value, &dashes, &err);
		int r = id;

		if (id == VERB_HELP) {
			printf("usage: %s\n\n%s\n\n", v->usage, v->what);
			cli_options_help(v->table, v->n_table);
			return VERB_DONE;
		}
		if (id > 0)
			r = v->take ? v->take(arg, id, value, &err) : 0;
		if (r < 0) {
			cli_error("%s", err.text);
			return -EINVAL;
		}
		if (id == 0)
			break;
	}
	*ret_at = at;
	return 0;
}

int verb_words(const struct verb_words *v, void *arg, int argc, char **argv, const char **words,
	       struct sb_err *err)
{
	size_t n = 0;

	for (int at = 0;;) {
		const char *value;
		bool dashes;
		int id = cli_options_next(v->table, v->n_table, argc, argv, &at, &value, &dashes, err);

		if (id < 0 || (id > 0 && v->take(arg, id, value, err) < 0))
			return -EINVAL;
		if (id > 0)
			continue;
		if (at >= argc)
			return (int)n;
		if (n == v->max)
			return sb_err_set(err, -EINVAL, "\"%.60s\" is one %s too many", argv[at], v->noun);
		words[n++] = argv[at++];
	}
}
