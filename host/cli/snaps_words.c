#include "snaps_words.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "core/plan.h"
#include "session_text.h"

int snaps_absolute(const char *word, char **ret, struct sb_err *err)
{
	char here[PATH_MAX];
	char norm[SB_PLAN_MAX_PATH + 1];
	char *all = NULL;
	char out[PATH_MAX * 2];
	size_t n = 0;

	if (word[0] != '/' && !getcwd(here, sizeof(here)))
		return sb_err_set(err, -errno, "the current folder: %s", strerror(errno));
	if (asprintf(&all, "%s/%s", word[0] == '/' ? "" : here, word) < 0)
		return sb_err_set(err, -ENOMEM, "out of memory");
	if (strlen(all) >= sizeof(out) - 2) {
		free(all);
		return sb_err_set(err, -ENAMETOOLONG, "\"%.100s...\": too long", word);
	}
	/* "." and ".." by the text: what is meant need not be there any more */
	for (char *save = NULL, *c = strtok_r(all, "/", &save); c; c = strtok_r(NULL, "/", &save)) {
		if (strcmp(c, ".") == 0)
			continue;
		if (strcmp(c, "..") == 0) {
			while (n > 0 && out[--n] != '/')
				continue;
			continue;
		}
		out[n++] = '/';
		memcpy(out + n, c, strlen(c));
		n += strlen(c);
	}
	free(all);
	out[n] = '\0';
	if (n == 0 || sb_path_normalise(out, norm) < 0)
		return sb_err_set(err, -EINVAL, "\"%.200s\" is no path of a snapshot", word);
	*ret = strdup(norm);
	return *ret ? 0 : sb_err_set(err, -ENOMEM, "out of memory");
}

static bool is_session(const char *word)
{
	size_t n = strlen(word);

	return n >= 4 && n <= 32 && strspn(word, "0123456789abcdef") == n;
}

/* Whether @word is an instance that had a session. Return: 1; 0; -EINVAL: a path of that name is there, too. */
static int is_instance(const struct cli_dirs *d, const char *word, struct sb_err *err)
{
	sb_autostate struct state *s = NULL;
	sb_autosession struct session_record rec = { 0 };
	struct sb_err none = { 0 };
	struct stat st;
	int r = strchr(word, '/') || word[0] == '.' ? -ENOENT : state_open(&d->d, &s, &none);

	if (r < 0 || session_text_find(s, word, NULL, &rec, &none) < 0)
		return 0; /* what is wrong shows when it is read as a path */
	if (lstat(word, &st) == 0)
		return sb_err_set(err, -EINVAL, "\"%.200s\" is an instance and a path: say ./%.200s for the path, or the "
				  "session's id, see sendbox session ls", word, word);
	return 1;
}

/* Each path must lie in a folder that the session could write to. */
static int in_some(const struct snaps_words *w, char **argv, struct sb_err *err)
{
	for (size_t k = 0; k < w->n; k++) {
		bool in = false;

		for (size_t i = 0; i < w->n_of; i++)
			in = in || sb_path_within(w->paths[k], w->of[i].path);
		if (!in)
			return sb_err_set(err, -EINVAL, "\"%.200s\": neither a session, an instance nor a path of session %.12s, "
					  "which could write to %.200s%s", argv[k], w->of[0].session,
					  w->of[0].path, w->n_of > 1 ? " and others" : "");
	}
	return 0;
}

int snaps_words(const struct cli_dirs *d, int argc, char **argv, struct snaps_words *ret, struct sb_err *err)
{
	char here[PATH_MAX];
	int r = argc > 0 ? is_session(argv[0]) ? 1 : is_instance(d, argv[0], err) : 0;

	*ret = (struct snaps_words){ 0 };
	if (r < 0)
		return r;
	if (r > 0) {
		ret->session = argv[0];
		argv++;
		argc--;
	}
	r = 0;
	ret->paths = calloc((size_t)argc + 1, sizeof(char *));
	if (!ret->paths)
		return sb_err_set(err, -ENOMEM, "out of memory");
	for (int i = 0; r == 0 && i < argc; i++) {
		r = snaps_absolute(argv[i], &ret->paths[ret->n], err);
		ret->n += r == 0;
	}
	if (r == 0 && !realpath(".", here))
		r = sb_err_set(err, -errno, "the current folder: %s", strerror(errno));
	if (r == 0)
		r = snaps_session(d, ret->session, ret->session ? NULL : here, &ret->of, &ret->n_of, err);
	return r < 0 ? r : in_some(ret, argv, err);
}

int snaps_words_status(int r)
{
	if (r == -ENODATA)
		return SB_EXIT_NO;
	return r == -ENOENT || r == -ENOTDIR || r == -EINVAL || r == -ENOTUNIQ || r == -EBUSY ? SB_EXIT_USAGE
											      : SB_EXIT_INTERNAL;
}

void snaps_words_done(struct snaps_words *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->paths[i]);
	free(w->paths);
	for (size_t i = 0; i < w->n_of; i++)
		snaps_of_done(&w->of[i]);
	free(w->of);
}

int snaps_words_only(const struct snaps_words *w, size_t i, struct snaps_call *c, bool *ret,
		     struct sb_err *err)
{
	const char *root = w->of[i].path;
	const size_t n = strlen(root);

	*ret = w->n == 0;
	for (size_t k = 0; k < w->n; k++) {
		if (!sb_path_within(w->paths[k], root))
			continue;
		*ret = true;
		if (snaps_pair(c, "--only", w->paths[k][n] ? w->paths[k] + n + 1 : "") < 0)
			return sb_err_set(err, -E2BIG, "too many paths");
	}
	return 0;
}
