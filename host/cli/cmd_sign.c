/* sendbox sign: a signature of a file, in a file beside it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/fd.h"
#include "base/num.h"
#include "cli.h"
#include "crypto/crypto.h"
#include "dirs.h"
#include "provenance.h"
#include "verbs.h"

enum { O_KIND = 1, O_NAME, O_FOR, O_META, O_OUTPUT, O_REPLACE, O_HELP };

static const struct cli_option table[] = {
	{ "kind", 0, "KIND", "artifact (default), content or configuration", O_KIND },
	{ "name", 0, "TEXT", "what it is called (default: the file's name)", O_NAME },
	{ "valid-for", 0, "TIME", "the signature counts until TIME from now, as 90d", O_FOR },
	{ "meta", 0, "NAME=TEXT", "something that is signed along; may be repeated", O_META },
	{ "output", 'o', "FILE", "add the signature there (default: FILE.sig); - prints it", O_OUTPUT },
	{ "replace", 0, NULL, "remove signatures of other content", O_REPLACE },
	{ "help", 'h', NULL, "this text", O_HELP },
};

struct args {
	const char *file;
	const char *output;
	struct sb_prov_sig sig;
	bool replace;
	bool help;
};

static int meta(struct args *a, const char *v, struct sb_err *err)
{
	const char *eq = strchr(v, '=');
	sb_autofree char *key = eq ? strndup(v, (size_t)(eq - v)) : NULL;
	int r = key ? sb_prov_add_meta(&a->sig, key, eq + 1) : -EINVAL;

	if (r == 0)
		return 0;
	return sb_err_set(err, -EINVAL, "--meta \"%.60s\": %s", v,
			  r == -EEXIST ? "that name was given before"
			  : r == -E2BIG ? "too many"
			  : r == -ENOMEM ? "out of memory"
					 : "must be NAME=TEXT, of at most 128 and 4096 bytes of UTF-8 "
					   "without control characters");
}

static int take(void *arg, int id, const char *v, struct sb_err *err)
{
	struct args *a = arg;
	uint64_t ms = 0;

	switch (id) {
	case O_KIND:
		a->sig.kind = sb_prov_kind_of(v);
		if (a->sig.kind == SB_PROV_NONE || a->sig.kind == SB_PROV_REPORT)
			return sb_err_set(err, -EINVAL, "--kind \"%.60s\": must be artifact, content or "
							"configuration", v);
		return 0;
	case O_NAME:
		free(a->sig.name);
		a->sig.name = strdup(v);
		return a->sig.name ? 0 : sb_err_set(err, -ENOMEM, "out of memory");
	case O_FOR:
		if (sb_num_duration_ms(v, &ms) < 0)
			return sb_err_set(err, -EINVAL, "--valid-for \"%.60s\": must be a time such as 12h, "
							"90d", v);
		a->sig.expires_at = (uint64_t)time(NULL) + ms / 1000;
		return 0;
	case O_META:
		return meta(a, v, err);
	case O_REPLACE:
		a->replace = true;
		return 0;
	case O_OUTPUT:
		a->output = v;
		return 0;
	default:
		a->help = true;
		return 0;
	}
}

static int parse(int argc, char **argv, struct args *a, struct sb_err *err)
{
	static const struct verb_words v = { table, SB_ARRAY_LEN(table), take, 1, "file" };
	int n = verb_words(&v, a, argc, argv, &a->file, err);

	if (n < 0)
		return n;
	return a->file || a->help ? 0 : sb_err_set(err, -EINVAL, "say which file");
}

static int print(const struct sb_prov_sig *s, struct sb_err *err)
{
	sb_autofree char *line = NULL;
	size_t len = 0;
	int r = sb_prov_line(s, &line, &len);

	if (r == 0 && (fwrite(line, 1, len, stdout) != len || fflush(stdout) != 0))
		r = -EIO;
	return r < 0 ? sb_err_set(err, r, "cannot write the signature: %s", strerror(-r)) : 0;
}

static int sign(struct args *a, struct sb_err *err)
{
	static struct cli_dirs dirs;
	const char *slash = strrchr(a->file, '/');
	bool print_it = a->output && strcmp(a->output, "-") == 0;
	char path[4200];
	int r;

	if (!a->sig.name)
		a->sig.name = strdup(slash ? slash + 1 : a->file);
	if (!a->sig.name || sb_crypto_init() < 0)
		return sb_err_set(err, -ENOMEM, "out of memory");
	(void)snprintf(path, sizeof(path), "%.4090s.sig", a->file);
	r = provenance_digest(a->file, a->sig.sha256, err);
	if (r == 0)
		r = cli_dirs_init(&dirs, err);
	if (r == 0)
		r = provenance_sign(&dirs.d, &a->sig, err);
	if (r == 0 && !print_it && !a->replace)
		r = provenance_room(a->output ? a->output : path, &a->sig, err);
	if (r == 1)
		cli_error("%s has this signature already", a->output ? a->output : path);
	if (r != 0)
		return SB_MIN(r, 0);
	r = provenance_note(&dirs.d, &a->sig, err);
	if (r < 0)
		return r;
	if (print_it)
		return print(&a->sig, err);
	r = provenance_append(a->output ? a->output : path, &a->sig, a->replace, err);
	if (r == 0)
		cli_error("signed: %s", a->output ? a->output : path);
	return r == 0 || r == -E2BIG || r == -EBADMSG || r == -ENOMEM ? r : -EIO; /* it cannot be written there */
}

int cmd_sign(int argc, char **argv)
{
	SB_CLEANUP(sb_prov_sig_done) struct sb_prov_sig sig = { .kind = SB_PROV_ARTIFACT };
	struct args a = { .file = NULL };
	struct sb_err err = { 0 };
	int r;

	a.sig = sig;
	r = parse(argc, argv, &a, &err);
	if (r == 0 && a.help) {
		printf("usage: sendbox sign [options] FILE\n\nSign a file with this host's key. Further "
		       "signers add theirs to the same FILE.sig.\n\n");
		cli_options_help(table, SB_ARRAY_LEN(table));
		sig = a.sig;
		return fflush(stdout) == 0 ? SB_EXIT_OK : SB_EXIT_INTERNAL;
	}
	if (r < 0) {
		cli_error("%s", err.text);
		sig = a.sig;
		return SB_EXIT_USAGE;
	}
	r = sign(&a, &err);
	sig = a.sig;
	if (r < 0)
		cli_error("%s", err.text);
	return r == 0 ? SB_EXIT_OK : r == -EIO || r == -ENOSPC ? SB_EXIT_OUTPUT : SB_EXIT_USAGE;
}
