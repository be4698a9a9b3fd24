/*
 * Theory of operation. The file appears whole or not at all: a temporary file in the same folder,
 * then a rename that never replaces. The folder is opened by its real path without following a
 * link on the way, and everything happens beneath that descriptor.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli.h"
#include "conf_fail.h"
#include "crypto/crypto.h"
#include "dirs.h"
#include "options.h"
#include "plan_net.h"
#include "presets.h"
#include "trust.h"

#define NAME CONF_PROJECT_FILE

struct init {
	const char *project;
	const char *policy;
	const char *runtime;
	bool json;
	bool help;
};

enum { O_PROJECT = 1, O_POLICY, O_RUNTIME, O_JSON, O_HELP };
static const struct cli_option table[] = {
	{ "project", 0, "DIR", "folder to write the file into (default: the current one)", O_PROJECT },
	{ "policy", 0, "NAME", "default, permissive or strict", O_POLICY },
	{ "runtime", 0, "NAME", "auto, microvm or namespace", O_RUNTIME },
	{ "json", 0, NULL, "print one JSON object", O_JSON },
	{ "help", 'h', NULL, "this text", O_HELP },
};

static int parse(struct init *o, int argc, char **argv, struct sb_err *err)
{
	const char *value;
	bool dashes;
	int at = 0;
	int id;

	while ((id = cli_options_next(table, SB_ARRAY_LEN(table), argc, argv, &at, &value, &dashes,
				      err)) > 0) {
		if (id == O_PROJECT)
			o->project = value;
		else if (id == O_POLICY)
			o->policy = value;
		else if (id == O_RUNTIME)
			o->runtime = value;
		else if (id == O_JSON)
			o->json = true;
		else
			o->help = true;
	}
	if (id < 0)
		return id;
	if (at < argc)
		return sb_err_set(err, -EINVAL, "init takes no operands: \"%.100s\"", argv[at]);
	if (!presets_known(o->policy))
		return sb_err_set(err, -EINVAL, "--policy \"%.60s\": must be %s", o->policy,
				  presets_words);
	if (strcmp(o->runtime, "apple") == 0 || strcmp(o->runtime, "kata") == 0 ||
	    strcmp(o->runtime, "hyperlight") == 0)
		return sb_err_set(err, -EINVAL, "--runtime %s: not available yet", o->runtime);
	if (strcmp(o->runtime, "auto") != 0 && strcmp(o->runtime, "microvm") != 0 &&
	    strcmp(o->runtime, "namespace") != 0)
		return sb_err_set(err, -EINVAL, "--runtime \"%.60s\": must be auto, microvm or namespace",
				  o->runtime);
	return 0;
}

static int open_folder(const char *path, char real[PATH_MAX], struct sb_err *err)
{
	struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
				.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
	int fd;

	if (!realpath(path, real))
		return sb_err_set(err, -errno, "%.300s: %s", path, strerror(errno));
	fd = (int)syscall(SYS_openat2, AT_FDCWD, real, &how, sizeof(how));
	return fd < 0 ? sb_err_set(err, -errno, "%.300s: %s", real, strerror(errno)) : fd;
}

/* Return: 0; -EEXIST with text; -errno with text. */
static int write_new(int dir, const char *real, const char *text, size_t len, struct sb_err *err)
{
	sb_autofd int fd = -1;
	struct stat st;
	char tmp[64];
	int r;

	(void)snprintf(tmp, sizeof(tmp), NAME ".%ld.tmp", (long)getpid());
	if (fstatat(dir, NAME, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return sb_err_set(err, -EEXIST, "%.300s/" NAME " is there already and stays as it is; "
				  "remove it first to make a new one", real);
	fd = openat(dir, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return sb_err_set(err, -errno, "cannot write to %.300s: %s", real, strerror(errno));
	r = sb_fd_write_all(fd, text, len);
	if (r == 0 && (fchmod(fd, 0600) < 0 || fsync(fd) < 0))
		r = -errno;
	if (r == 0 && renameat2(dir, tmp, dir, NAME, RENAME_NOREPLACE) < 0) {
		/* some file systems have no such rename; a link does not replace either */
		r = -errno;
		if (r == -EINVAL && linkat(dir, tmp, dir, NAME, 0) == 0)
			r = 0;
	}
	(void)unlinkat(dir, tmp, 0);
	if (r < 0)
		return sb_err_set(err, r, "cannot write %.300s/" NAME ": %s", real, strerror(-r));
	(void)fsync(dir);
	return 0;
}

static bool group_here(void *arg, const char *group)
{
	return plan_net_group_here(group, arg);
}

static int tell(const struct init *o, const char *file, const char *real, const char *name)
{
	if (o->json)
		return conf_print(json_pack("{s:i,s:b,s:s,s:s,s:s,s:s,s:s}", "schema_version", 1, "ok", 1,
					    "config", file, "project", real, "sandbox", name, "policy",
					    o->policy, "runtime", o->runtime), SB_EXIT_OK);
	printf("wrote %s (policy %s, runtime %s), and accepted it\n"
	       "next: sendbox run -- PROGRAM, or look first: sendbox policy show\n",
	       file, o->policy, o->runtime);
	return conf_flush(SB_EXIT_OK);
}

static int init(const struct init *o)
{
	struct cli_dirs dirs;
	struct sb_err err = { 0 };
	sb_autofree char *text = NULL;
	char real[PATH_MAX];
	char file[PATH_MAX + sizeof(NAME) + 1];
	uint8_t digest[SB_SHA256_LEN];
	sb_autofd int dir = -1;
	const char *name;
	size_t len = 0;
	int r = cli_dirs_init(&dirs, &err);

	if (r < 0)
		return conf_fail(o->json, SB_EXIT_INTERNAL, "io", "", "%s", err.text);
	dir = open_folder(o->project, real, &err);
	if (dir < 0)
		return conf_fail(o->json, SB_EXIT_USAGE, "invalid_path", o->project, "%s", err.text);
	name = strrchr(real, '/') + 1;
	if (!*name)
		name = "sendbox";
	r = preset_write(o->policy, name, o->runtime, group_here, real, &text, &len);
	if (r == 0)
		r = write_new(dir, real, text, len, &err);
	if (r < 0)
		return conf_fail(o->json, SB_EXIT_WRITE, "io", real, "%s",
				 err.code ? err.text : strerror(-r));
	(void)snprintf(file, sizeof(file), "%s/" NAME, strcmp(real, "/") == 0 ? "" : real);
	sb_sha256(text, len, digest);
	r = trust_add_file(&dirs.d, file, digest, &err);
	if (r < 0)
		return conf_fail(o->json, SB_EXIT_INTERNAL, "io", file, "%s",
				 err.code ? err.text : strerror(-r));
	return tell(o, file, real, name);
}

int cmd_init(int argc, char **argv)
{
	struct init o = { .project = ".", .policy = "default", .runtime = "auto" };
	struct sb_err err = { 0 };
	int r = parse(&o, argc, argv, &err);

	if (r < 0) {
		for (int i = 0; i < argc; i++)
			o.json |= strcmp(argv[i], "--json") == 0;
		return conf_fail(o.json, SB_EXIT_USAGE, "usage", "", "%s", err.text);
	}
	if (o.help) {
		printf("usage: sendbox init [options]\n\nWrite a " NAME " that says what a sandbox for this "
		       "folder may do, and accept it.\n\n");
		cli_options_help(table, SB_ARRAY_LEN(table));
		return conf_flush(SB_EXIT_OK);
	}
	if (sb_crypto_init() < 0)
		return conf_fail(o.json, SB_EXIT_INTERNAL, "internal", "", "libsodium cannot be used");
	return init(&o);
}
