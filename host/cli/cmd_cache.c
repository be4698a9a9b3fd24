/*
 * sendbox cache: what agents' environments and images take on disk, and how it is given back. A layer
 * that an instance lies on is never removed here; the instance could not be resumed without it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "cli.h"
#include "crypto/crypto.h"
#include "dirs.h"
#include "image/image.h"
#include "options.h"
#include "os/rmtree.h"
#include "run_agent_i.h"
#include "state/state.h"
#include "term.h"

#define SHA_HEX 64
#define MAX_USED 4096 /* layers; each instance and environment has a few */

enum { OPT_JSON = 1, OPT_ALL, OPT_YES, OPT_HELP };
static const struct cli_option options[] = {
	{ "json", 0, NULL, "print JSON, one value a line", OPT_JSON },
	{ "all", 'a', NULL, "clean: images and kernels as well", OPT_ALL },
	{ "yes", 'y', NULL, "clean: do not ask", OPT_YES },
	{ "help", 'h', NULL, "show this", OPT_HELP },
};

struct cache {
	struct cli_dirs dirs;
	struct state *state;
	bool json, all, yes;
	bool rows; /* of ls: images are shown as they are looked at */
	char (*used)[SHA_HEX + 1]; /* layers that must stay */
	size_t n_used;
	size_t n_instances;
	uint64_t freed;
	const char *agent; /* of rm; an agent's name */
	uint8_t (*gone)[32];
	size_t n_gone;
	size_t broken;
};

static void size_text(uint64_t bytes, char out[16])
{
	static const char units[] = "BKMGT";
	double v = (double)bytes;
	size_t u = 0;

	while (v >= 1024 && u + 2 < sizeof(units)) {
		v /= 1024;
		u++;
	}
	(void)snprintf(out, 16, u == 0 ? "%.0f %c" : "%.1f %c", v, units[u]);
}

static void time_text(int64_t s, char out[20])
{
	time_t t = (time_t)s;
	struct tm tm;

	if (s == 0 || !localtime_r(&t, &tm) || strftime(out, 20, "%Y-%m-%d %H:%M", &tm) == 0)
		(void)snprintf(out, 20, "-");
}

/* ---- ls ---- */

static void row(const struct cache *c, const char *kind, const char *name, const char *base,
		uint64_t bytes, int64_t modified)
{
	char size[16];
	char when[20];
	json_t *j;

	if (c->json) {
		j = json_pack("{s:s, s:s, s:s?, s:I, s:I}", "kind", kind, "name", name, "base", base,
			      "bytes", (json_int_t)bytes, "modified", (json_int_t)modified);
		if (j && json_dumpf(j, stdout, JSON_COMPACT) == 0)
			(void)putchar('\n');
		json_decref(j);
		return;
	}
	size_text(bytes, size);
	time_text(modified, when);
	printf("%-12s %-24s %9s  %s\n", kind, name, size, when);
}

static int one_environment(void *arg, const struct environment *e)
{
	row(arg, "environment", e->agent, e->base, e->bytes, e->built_s);
	return 0;
}

/* Open the folder @name of the cache. @ret_path: its path, owned; @ret: NULL = it is not there.
 * Return: 0; -errno with text. */
static int open_folder(const struct cache *c, const char *name, char **ret_path, DIR **ret,
		       struct sb_err *err)
{
	*ret = NULL;
	if (asprintf(ret_path, "%s/%s", c->dirs.d.cache, name) < 0) {
		*ret_path = NULL;
		return sb_err_set(err, -ENOMEM, "out of memory");
	}
	*ret = opendir(*ret_path);
	return *ret || errno == ENOENT ? 0
				       : sb_err_set(err, -errno, "%s: %s", *ret_path, strerror(errno));
}

/* What a disk or folder takes, not what it pretends to. */
static uint64_t allocated(int dir, const char *name, int depth)
{
	struct stat st;
	uint64_t sum;
	int fd;
	DIR *d;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	sum = (uint64_t)st.st_blocks * 512;
	if (!S_ISDIR(st.st_mode) || depth > 64)
		return sum;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	d = fd >= 0 ? fdopendir(fd) : NULL;
	if (!d) {
		sb_fd_close(&fd);
		return sum;
	}
	for (const struct dirent *e = readdir(d); e; e = readdir(d))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			sum += allocated(dirfd(d), e->d_name, depth + 1);
	(void)closedir(d);
	return sum;
}

static int one_instance(void *arg, const struct instance *i)
{
	row(arg, "instance", i->name, i->image, i->upper ? allocated(AT_FDCWD, i->upper, 0) : 0,
	    i->stopped_s ? i->stopped_s : i->started_s);
	return 0;
}

/* One row for each folder of <cache>/@in: what package managers keep (run_agent_caches.c), kernels. */
static int list_folder(const struct cache *c, const char *in, const char *kind, struct sb_err *err)
{
	sb_autofree char *path = NULL;
	DIR *d;
	int r = open_folder(c, in, &path, &d, err);

	if (r < 0 || !d)
		return r;
	for (const struct dirent *e = readdir(d); e; e = readdir(d)) {
		struct stat st;

		if (e->d_name[0] != '.' && fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			row(c, kind, e->d_name, NULL, allocated(dirfd(d), e->d_name, 0),
			    (int64_t)st.st_mtime);
	}
	(void)closedir(d);
	return 0;
}

/* ---- what is in use ---- */

static int use(struct cache *c, const char *hex)
{
	if (c->n_used == MAX_USED)
		return -E2BIG;
	(void)snprintf(c->used[c->n_used++], SHA_HEX + 1, "%s", hex);
	return 0;
}

static int used_by_environment(void *arg, const struct environment *e)
{
	char hex[SHA_HEX + 1];
	int r = 0;

	for (size_t i = 0; r == 0 && i < e->n_layers; i++) {
		sb_hex_write(e->layers[i], 32, hex);
		r = use(arg, hex);
	}
	return r;
}

static int used_by_instance(void *arg, const struct instance *i)
{
	struct cache *c = arg;
	json_t *j = i->layers ? json_loads(i->layers, 0, NULL) : NULL;
	size_t n;
	json_t *v;
	int r = i->layers && !json_is_array(j) ? -EBADMSG : 0;

	c->n_instances++;
	json_array_foreach(j, n, v)
		if (r == 0)
			r = json_is_string(v) && json_string_length(v) == SHA_HEX
				    ? use(c, json_string_value(v)) : -EBADMSG;
	json_decref(j);
	return r;
}

static void image_row(const struct cache *c, const char *reference, const char *hex)
{
	sb_autofree char *path = NULL;
	struct stat st;

	if (asprintf(&path, "%s/layers/%.64s.erofs", c->dirs.d.cache, hex) > 0 && stat(path, &st) == 0)
		row(c, "image", reference ? reference : "-", NULL, (uint64_t)st.st_blocks * 512,
		    (int64_t)st.st_mtime);
}

/* An image's record names its layer; the whole text is looked through for it. */
static int used_by_images(struct cache *c)
{
	sb_autofree char *path = NULL;
	DIR *d;
	int r = open_folder(c, "images", &path, &d, NULL);

	if (r < 0 || !d)
		return r;
	for (const struct dirent *e = readdir(d); r == 0 && e; e = readdir(d)) {
		const char *dot = strrchr(e->d_name, '.');
		sb_autofree char *text = NULL;
		size_t len;
		json_t *j;
		const char *hex;

		if (!dot || strcmp(dot, ".json") != 0 ||
		    sb_fd_read_file(dirfd(d), e->d_name, 1U << 20, &text, &len) < 0)
			continue;
		j = json_loadb(text, len, 0, NULL);
		hex = json_string_value(json_object_get(j, "layer"));
		if (hex && strlen(hex) == SHA_HEX)
			r = use(c, hex);
		if (hex && c->rows)
			image_row(c, json_string_value(json_object_get(j, "reference")), hex);
		json_decref(j);
	}
	(void)closedir(d);
	return r;
}

static int find_used(struct cache *c, struct sb_err *err)
{
	int r = environment_each(c->state, used_by_environment, c, err);

	if (r == 0)
		r = instance_each(c->state, used_by_instance, c, err);
	if (r == 0 && !c->all)
		r = used_by_images(c);
	return r < 0 ? sb_err_set(err, r, "cannot tell which layers are in use: %s; nothing was "
				  "removed", strerror(-r)) : 0;
}

static bool is_used(const struct cache *c, const char *hex)
{
	for (size_t i = 0; i < c->n_used; i++)
		if (strncmp(c->used[i], hex, SHA_HEX) == 0)
			return true;
	return false;
}

/* Layers that no environment and no image names: instances lie on them, or clean removes them. */
static int list_layers(const struct cache *c, struct sb_err *err)
{
	sb_autofree char *path = NULL;
	DIR *d;
	int r = open_folder(c, "layers", &path, &d, err);

	if (r < 0 || !d)
		return r;
	for (const struct dirent *e = readdir(d); e; e = readdir(d)) {
		char name[17];
		struct stat st;

		if (strspn(e->d_name, "0123456789abcdef") != SHA_HEX ||
		    strcmp(e->d_name + SHA_HEX, ".erofs") != 0 || is_used(c, e->d_name) ||
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		(void)snprintf(name, sizeof(name), "%.16s", e->d_name);
		row(c, "layer", name, NULL, (uint64_t)st.st_blocks * 512, (int64_t)st.st_mtime);
	}
	(void)closedir(d);
	return 0;
}

static int list(struct cache *c, struct sb_err *err)
{
	int r;

	if (!c->json)
		printf("%-12s %-24s %9s  %s\n", "KIND", "NAME", "SIZE", "MODIFIED");
	r = environment_each(c->state, one_environment, c, err);
	if (r == 0)
		r = instance_each(c->state, one_instance, c, err);
	if (r == 0)
		r = list_folder(c, RUN_AGENT_CACHES, "packages", err);
	if (r == 0)
		r = list_folder(c, "kernels", "kernel", err);
	c->rows = true;
	if (r == 0)
		r = used_by_images(c);
	if (r == 0)
		r = environment_each(c->state, used_by_environment, c, err);
	return r < 0 ? r : list_layers(c, err);
}

/* Layers that nothing names. Others may make one right now: those of the last minute stay. */
static int prune_layers(struct cache *c, struct sb_err *err)
{
	sb_autofree char *path = NULL;
	DIR *d;
	int r = find_used(c, err);

	if (r < 0)
		return r;
	r = open_folder(c, "layers", &path, &d, err);
	if (r < 0 || !d)
		return r;
	for (const struct dirent *e = readdir(d); e; e = readdir(d)) {
		struct stat st;

		if (strspn(e->d_name, "0123456789abcdef") != SHA_HEX || is_used(c, e->d_name) ||
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    st.st_ctime + 60 > time(NULL))
			continue;
		if (unlinkat(dirfd(d), e->d_name, 0) < 0)
			r = sb_err_set(err, -errno, "%s/%s: %s", path, e->d_name, strerror(errno));
		else
			c->freed += (uint64_t)st.st_blocks * 512;
	}
	(void)closedir(d);
	return r;
}

/* ---- rm, clean ---- */

static int note_gone(void *arg, const struct environment *e)
{
	struct cache *c = arg;

	if (c->agent && strcmp(c->agent, e->agent) != 0)
		return 0;
	if (c->n_gone == MAX_USED)
		return -E2BIG;
	memcpy(c->gone[c->n_gone++], e->key, 32);
	return 0;
}

static int remove_environments(struct cache *c, struct sb_err *err)
{
	int r = environment_each(c->state, note_gone, c, err);

	for (size_t i = 0; r == 0 && i < c->n_gone; i++)
		r = environment_remove(c->state, c->gone[i], err);
	return r;
}

/* Remove <cache>/@in/@name. */
static int remove_folder(struct cache *c, const char *in, const char *name, struct sb_err *err)
{
	sb_autofree char *path = NULL;
	sb_autofd int dir = -1;
	uint64_t bytes;
	int r;

	if (asprintf(&path, "%s/%s", c->dirs.d.cache, in) < 0)
		return -ENOMEM;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return errno == ENOENT ? 0 : sb_err_set(err, -errno, "%s: %s", path, strerror(errno));
	bytes = allocated(dir, name, 0);
	r = sb_rmtree(dir, name);
	if (r < 0)
		return sb_err_set(err, r, "%s/%s: %s", path, name, strerror(-r));
	c->freed += bytes;
	return bytes > 0;
}

static void tell_freed(const struct cache *c)
{
	char size[16];

	size_text(c->freed, size);
	(void)fprintf(stderr, "removed %zu environment%s, %s given back\n", c->n_gone,
		      c->n_gone == 1 ? "" : "s", size);
}

static int remove_one(struct cache *c, struct sb_err *err)
{
	int r = remove_environments(c, err);

	if (r == 0)
		r = remove_folder(c, RUN_AGENT_CACHES, c->agent, err);
	if (r == 0 && c->n_gone == 0) {
		char list[1024];
		char near[65];

		agent_names(c->dirs.config, c->agent, list, sizeof(list), near);
		if (strcmp(near, c->agent) == 0)
			near[0] = '\0';
		return sb_err_set(err, -ENOENT, "%s: nothing is cached%s%s%s", c->agent,
				  near[0] ? "; did you mean " : "", near, near[0] ? "?" : "");
	}
	if (r >= 0)
		r = prune_layers(c, err);
	if (r == 0)
		tell_freed(c);
	return r;
}

static int may_clean(const struct cache *c)
{
	char text[200];
	int r;

	if (c->yes || c->n_instances == 0)
		return 1;
	(void)snprintf(text, sizeof(text), "%zu instance%s stay with the layers they lie on. Remove "
		       "everything else? [y/N] ", c->n_instances, c->n_instances == 1 ? "" : "s");
	r = cli_term_ask(text);
	if (r == -ENOTTY)
		cli_error("there are instances and nobody to ask: say --yes");
	return r > 0;
}

static int count_instance(void *arg, const struct instance *i)
{
	struct cache *c = arg;

	(void)i;
	c->n_instances++;
	return 0;
}

static int clean(struct cache *c, struct sb_err *err)
{
	int r = instance_each(c->state, count_instance, c, err);

	if (r < 0)
		return r;
	if (!may_clean(c))
		return sb_err_set(err, -ECANCELED, "nothing was removed");
	r = remove_environments(c, err);
	if (r == 0)
		r = remove_folder(c, ".", RUN_AGENT_CACHES, err);
	if (r >= 0 && c->all)
		r = remove_folder(c, ".", "images", err);
	if (r >= 0 && c->all)
		r = remove_folder(c, ".", "kernels", err);
	if (r >= 0)
		r = prune_layers(c, err);
	if (r == 0)
		tell_freed(c);
	return r;
}

/* ---- verify ---- */

static int verify_file(struct cache *c, int dir, const char *name)
{
	sb_autofd int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char hex[SHA_HEX + 1];
	uint8_t sum[32];
	uint64_t len;
	int r = fd < 0 ? -errno : sb_sha256_fd(fd, sum, &len);
	bool good;

	sb_hex_write(sum, sizeof(sum), hex);
	good = r == 0 && strncmp(hex, name, SHA_HEX) == 0;
	c->broken += !good;
	printf("%.*s %s\n", SHA_HEX, name, good ? "ok" : r < 0 ? strerror(-r) : "CHANGED");
	return r;
}

static int verify(struct cache *c, struct sb_err *err)
{
	sb_autofree char *path = NULL;
	DIR *d;
	int r = open_folder(c, "layers", &path, &d, err);

	if (r < 0 || !d)
		return r;
	for (const struct dirent *e = readdir(d); e; e = readdir(d))
		if (strspn(e->d_name, "0123456789abcdef") == SHA_HEX &&
		    strcmp(e->d_name + SHA_HEX, ".erofs") == 0)
			(void)verify_file(c, dirfd(d), e->d_name);
	(void)closedir(d);
	return c->broken == 0 ? 0
			      : sb_err_set(err, -ESTALE, "%zu layer%s not what it was when it was made: "
					   "remove it from %s, and it is made again", c->broken,
					   c->broken == 1 ? " is" : "s are", path);
}

/* ---- */

static int usage(FILE *to, int status)
{
	(void)fprintf(to, "usage: sendbox cache ls|list [--json]\n"
			  "       sendbox cache rm AGENT\n"
			  "       sendbox cache clean [--all] [--yes]\n"
			  "       sendbox cache verify\n\n");
	cli_options_help(options, SB_ARRAY_LEN(options));
	return status;
}

static int act(struct cache *c, const char *verb, char **words, int n, struct sb_err *err)
{
	bool rm = strcmp(verb, "rm") == 0;

	if (n != (rm ? 1 : 0))
		return sb_err_set(err, -EINVAL, rm ? "cache rm: name one agent"
						   : "cache: unexpected \"%.60s\"", n ? words[0] : "");
	if (strcmp(verb, "ls") == 0 || strcmp(verb, "list") == 0)
		return list(c, err);
	if (rm) {
		if (!agent_name_ok(words[0]))
			return sb_err_set(err, -EINVAL, "cache rm: \"%.60s\" is no agent's name", words[0]);
		c->agent = words[0];
		return remove_one(c, err);
	}
	if (strcmp(verb, "clean") == 0)
		return clean(c, err);
	if (strcmp(verb, "verify") == 0)
		return verify(c, err);
	return sb_err_set(err, -EINVAL, "cache: unknown \"%.60s\"; ls, rm, clean or verify", verb);
}

int cmd_cache(int argc, char **argv)
{
	static char used[MAX_USED][SHA_HEX + 1];
	static uint8_t gone[MAX_USED][32];
	struct cache c = { .used = used, .gone = gone };
	struct sb_err err = { 0 };
	const char *verb = argc > 0 ? argv[0] : "";
	const char *value;
	bool dashes;
	int at = 0;
	int id;
	int r;

	if (argc == 0 || verb[0] == '-')
		return usage(argc > 0 && strcmp(verb, "--help") == 0 ? stdout : stderr,
			     argc > 0 && strcmp(verb, "--help") == 0 ? SB_EXIT_OK : SB_EXIT_USAGE);
	cli_options_first(options, SB_ARRAY_LEN(options), argc - 1, argv + 1);
	while ((id = cli_options_next(options, SB_ARRAY_LEN(options), argc - 1, argv + 1, &at,
				      &value, &dashes, &err)) > 0) {
		if (id == OPT_HELP)
			return usage(stdout, SB_EXIT_OK);
		c.json |= id == OPT_JSON;
		c.all |= id == OPT_ALL;
		c.yes |= id == OPT_YES;
	}
	r = id < 0 ? id : sb_crypto_init();
	if (r == 0)
		r = cli_dirs_init(&c.dirs, &err);
	if (r == 0)
		r = state_open(&c.dirs.d, &c.state, &err);
	if (r == 0)
		r = act(&c, verb, argv + 1 + at, argc - 1 - at, &err);
	c.state = state_close(c.state);
	if (r < 0)
		cli_error("%s", err.text[0] ? err.text : strerror(-r));
	return r == 0 ? SB_EXIT_OK : r == -EINVAL ? SB_EXIT_USAGE : SB_EXIT_NO;
}
