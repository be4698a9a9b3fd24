/* sendbox image pull|list|inspect|rm|verify: base images in the cache. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "cli.h"
#include "crypto/crypto.h"
#include "dirs.h"
#include "image/cache.h"
#include "image_text.h"
#include "options.h"
#include "plan_show.h"
#include "state/state.h"

enum { O_UPDATE = 1, O_OFFLINE, O_QUIET, O_LOCK, O_FORCE, O_HELP };

static const struct cli_option table[] = {
	{ "update", 0, NULL, "pull: ask what the tag stands for now, and pin that", O_UPDATE },
	{ "offline", 0, NULL, "pull: use what is here, fetch nothing", O_OFFLINE },
	{ "lock", 0, "FILE", "pull: the lock file, instead of images.lock beside config.yaml", O_LOCK },
	{ "force", 'f', NULL, "rm: also what instances and environments lie on", O_FORCE },
	{ "quiet", 'q', NULL, "nothing on stderr but failures", O_QUIET },
	{ "help", 'h', NULL, "this text", O_HELP },
};

struct args {
	bool update;
	bool offline;
	bool quiet;
	bool help;
	bool force;
	const char *lock;
	const char *verb;
	const char *what;
};

static void help(void)
{
	printf("usage: sendbox image pull IMAGE [--update] [--offline] [--lock FILE]\n"
	       "       sendbox image list\n"
	       "       sendbox image inspect IMAGE|DIGEST\n"
	       "       sendbox image verify IMAGE|DIGEST\n"
	       "       sendbox image rm IMAGE|DIGEST [--force]\n\n"
	       "Images that sessions are laid on. IMAGE is NAME[:TAG][@sha256:...], oci:DIR[:TAG],\n"
	       "oci-archive:FILE[:TAG] or docker-archive:FILE[:TAG].\n\n");
	cli_options_help(table, SB_ARRAY_LEN(table));
}

static int parse(int argc, char **argv, struct args *a, struct sb_err *err)
{
	const char **words[] = { &a->verb, &a->what };
	size_t n = 0;

	for (int at = 0;;) {
		const char *v;
		bool dashes;
		int id = cli_options_next(table, SB_ARRAY_LEN(table), argc, argv, &at, &v, &dashes,
					  err);

		if (id < 0)
			return id;
		if (id == 0 && at >= argc)
			break;
		if (id == 0 && n == SB_ARRAY_LEN(words))
			return sb_err_set(err, -EINVAL, "\"%.60s\" is one word too many", argv[at]);
		if (id == 0)
			*words[n++] = argv[at++];
		a->update = a->update || id == O_UPDATE;
		a->offline = a->offline || id == O_OFFLINE;
		a->quiet = a->quiet || id == O_QUIET;
		a->help = a->help || id == O_HELP;
		a->force = a->force || id == O_FORCE;
		if (id == O_LOCK)
			a->lock = v;
	}
	if (n == 0 && !a->help)
		return sb_err_set(err, -EINVAL, "say what: pull, list, inspect, verify or rm");
	if (a->update && a->offline)
		return sb_err_set(err, -EINVAL, "--update asks the registry, --offline forbids it");
	if (a->lock && a->lock[0] != '/')
		return sb_err_set(err, -EINVAL, "--lock \"%.200s\": must be an absolute path", a->lock);
	return 0;
}

static void show(const struct image *i)
{
	char hex[65];

	sb_hex_write(i->layer.sha256, 32, hex);
	printf("reference: ");
	plan_put(stdout, i->reference ? i->reference : "");
	printf("\ndigest: %s\nlayer: %s\nsize: %" PRIu64 "\n", i->digest ? i->digest : "-", hex,
	       i->layer.size);
	if (i->user) {
		printf("user: ");
		plan_put(stdout, i->user);
		(void)putchar('\n');
	}
	if (i->workdir) {
		printf("workdir: ");
		plan_put(stdout, i->workdir);
		(void)putchar('\n');
	}
	for (char **e = i->env; e && *e; e++) {
		printf("env: ");
		plan_put(stdout, *e);
		(void)putchar('\n');
	}
}

static int pull(const struct args *a, const struct sb_dirs *d, struct sb_err *err)
{
	SB_CLEANUP(image_done) struct image i = { 0 };
	struct image_text text = { .quiet = a->quiet };
	struct image_want w = { .reference = a->what, .lock_path = a->lock, .offline = a->offline,
				.update = a->update, .progress = image_text_progress, .arg = &text };
	int r = image_get(d, &w, &i, err);

	image_text_end(&text);
	if (r < 0)
		return r;
	if (i.form != IMAGE_FORM_EROFS)
		return sb_err_set(err, -EINVAL, "\"%.200s\" is used as it is; there is nothing to pull",
				  a->what);
	if (i.moved_from && !a->quiet)
		cli_error("%s: moved from %s to %s", a->what, i.moved_from, i.digest);
	if (!a->update && !a->offline && image_moved(d, &w, &i, err) > 0 && !a->quiet)
		cli_error("%s: the tag stands for another image now; what was pinned is used. To move: "
			  "sendbox image pull --update %s", a->what, a->what);
	show(&i);
	return 0;
}

static void broken(void *arg, const char *text)
{
	(void)arg;
	cli_error("%s", text);
}

static int each(const struct sb_dirs *d, int (*fn)(void *arg, const struct image *i), void *arg,
		struct sb_err *err)
{
	return image_each(d, fn, broken, arg, err);
}

static int list_line(void *arg, const struct image *i)
{
	(void)arg;
	printf("%.19s  %6" PRIu64 " MiB  ", i->digest, i->layer.size >> 20);
	plan_put(stdout, i->reference ? i->reference : "");
	(void)putchar('\n');
	return 0;
}

struct find {
	const char *what;
	char digest[72];
	unsigned int n;
};

/* A reference as it was given, a digest, or the beginning of one. */
static int match(void *arg, const struct image *i)
{
	struct find *f = arg;
	const char *hex = strncmp(f->what, "sha256:", 7) == 0 ? f->what + 7 : f->what;
	bool same = i->reference && strcmp(i->reference, f->what) == 0;

	same = same || (strlen(hex) >= 8 && strncmp(i->digest + 7, hex, strlen(hex)) == 0);
	if (!same)
		return 0;
	memcpy(f->digest, i->digest, 72);
	f->n++;
	return 0;
}

static int find(const struct sb_dirs *d, const char *what, struct image *ret, struct sb_err *err)
{
	struct find f = { .what = what };
	int r = each(d, match, &f, err);

	if (r < 0)
		return r;
	if (f.n != 1)
		return sb_err_set(err, -ENOENT, "\"%.200s\": %s; sendbox image list shows them", what,
				  f.n == 0 ? "no such image here" : "more than one image");
	return image_record_load(d, f.digest, ret, err);
}

static int verify(const struct image *i, struct sb_err *err)
{
	sb_autofd int fd = open(i->layer.path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	uint8_t sha[32];
	uint64_t len = 0;
	int r = fd < 0 ? -errno : sb_sha256_fd(fd, sha, &len);

	if (r < 0)
		return sb_err_set(err, r, "%.300s: %s", i->layer.path, strerror(-r));
	if (memcmp(sha, i->layer.sha256, 32) != 0)
		return sb_err_set(err, -EBADMSG, "%.300s: it is not what was made; remove it",
				  i->layer.path);
	printf("%s: as it was made\n", i->digest);
	return 0;
}

struct uses {
	const struct image *of;
	unsigned int n;
};

static int count_use(void *arg, const struct image *i)
{
	struct uses *u = arg;

	u->n += memcmp(i->layer.sha256, u->of->layer.sha256, 32) == 0;
	return 0;
}

struct users {
	char hex[65];      /* of the layer */
	char names[300];
	unsigned int n;
};

static void add_user(struct users *u, const char *kind, const char *name)
{
	size_t len = strlen(u->names);

	if (u->n++ < 5)
		(void)snprintf(u->names + len, sizeof(u->names) - len, "%s%s %.40s", u->n > 1 ? ", " : "", kind, name);
	else if (u->n == 6)
		(void)snprintf(u->names + len, sizeof(u->names) - len, ", ...");
}

static int instance_uses(void *arg, const struct instance *i)
{
	struct users *u = arg;

	if (i->layers && strstr(i->layers, u->hex))
		add_user(u, "instance", i->name);
	return 0;
}

/* An environment's record names its base with the digest of its manifest. */
static int environment_uses(void *arg, const struct environment *e)
{
	struct users *u = arg;

	if (e->base && strstr(e->base, u->hex))
		add_user(u, "environment of", e->agent);
	return 0;
}

/* Instances and environments lie on the layer and are of no use without it. */
static int refuse_used(const struct image *i, const struct sb_dirs *d, struct sb_err *err)
{
	sb_autostate struct state *s = NULL;
	struct users u = { .n = 0 };
	int r = state_open(d, &s, err);

	sb_hex_write(i->layer.sha256, 32, u.hex);
	if (r == 0)
		r = instance_each(s, instance_uses, &u, err);
	(void)snprintf(u.hex, sizeof(u.hex), "%.64s", i->digest + 7);
	if (r == 0)
		r = environment_each(s, environment_uses, &u, err);
	if (r < 0 || u.n == 0)
		return r;
	return sb_err_set(err, -EBUSY, "image %.19s is in use by %s; remove these first, or say --force", i->digest,
			  u.names);
}

/* The layer goes with the last image that has it. Sessions that run keep it open. */
static int rm(const struct args *a, const struct image *i, const struct sb_dirs *d, struct sb_err *err)
{
	struct uses u = { .of = i };
	int r = each(d, count_use, &u, err);

	if (r == 0 && u.n <= 1 && !a->force)
		r = refuse_used(i, d, err);
	if (r == 0)
		r = image_record_remove(d, i, u.n <= 1, err);
	if (r == 0)
		printf("%s removed\n", i->digest);
	return r;
}

static int run(const struct args *a, const struct sb_dirs *d, struct sb_err *err)
{
	SB_CLEANUP(image_done) struct image i = { 0 };
	bool is_list = strcmp(a->verb, "list") == 0;
	int r;

	if (is_list != (a->what == NULL))
		return sb_err_set(err, -EINVAL, is_list ? "list takes no image" : "say which image");
	if (is_list)
		return each(d, list_line, NULL, err);
	if (strcmp(a->verb, "pull") == 0)
		return pull(a, d, err);
	if (strcmp(a->verb, "inspect") != 0 && strcmp(a->verb, "verify") != 0 &&
	    strcmp(a->verb, "rm") != 0)
		return sb_err_set(err, -EINVAL, "\"%.60s\": must be pull, list, inspect, verify or rm",
				  a->verb);
	r = find(d, a->what, &i, err);
	if (r < 0)
		return r;
	if (strcmp(a->verb, "verify") == 0)
		return verify(&i, err);
	if (strcmp(a->verb, "rm") == 0)
		return rm(a, &i, d, err);
	show(&i);
	return 0;
}

int cmd_image(int argc, char **argv)
{
	struct args a = { 0 };
	struct cli_dirs dirs;
	struct sb_err err = { 0 };
	int r = parse(argc, argv, &a, &err);

	if (r == 0 && a.help) {
		help();
		return SB_EXIT_OK;
	}
	if (r < 0) {
		cli_error("%s", err.text);
		return SB_EXIT_USAGE;
	}
	r = sb_crypto_init();
	if (r == 0)
		r = cli_dirs_init(&dirs, &err);
	if (r == 0)
		r = run(&a, &dirs.d, &err);
	if (r == 0 && fflush(stdout) != 0)
		return SB_EXIT_OUTPUT;
	if (r == 0)
		return SB_EXIT_OK;
	cli_error("%s", err.code ? err.text : strerror(-r));
	return r == -EINVAL ? SB_EXIT_USAGE : SB_EXIT_NO;
}
