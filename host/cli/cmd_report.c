/* sendbox report: what a session did. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/num.h"
#include "cli.h"
#include "crypto/crypto.h"
#include "dirs.h"
#include "provenance.h"
#include "report.h"
#include "session_text.h"
#include "verbs.h"

enum { O_JSON = 1, O_MARKDOWN, O_OUTPUT, O_SIGN, O_RAW, O_HELP };

static const struct cli_option table[] = {
	{ "json", 0, NULL, "one JSON object", O_JSON },
	{ "markdown", 0, NULL, "as Markdown", O_MARKDOWN },
	{ "output", 'o', "FILE", "write it there, which must not exist; - is standard output", O_OUTPUT },
	{ "sign", 0, NULL, "with --output: sign it with this host's key, in FILE.sig", O_SIGN },
	{ "no-redact", 0, NULL, "leave in what looks like a secret", O_RAW },
	{ "help", 'h', NULL, "this text", O_HELP },
};

struct args {
	const char *session;
	const char *output;
	bool json;
	bool markdown;
	bool sign;
	bool raw;
	bool help;
};

static int take(void *arg, int id, const char *v, struct sb_err *err)
{
	struct args *a = arg;

	(void)err;
	a->json |= id == O_JSON;
	a->markdown |= id == O_MARKDOWN;
	a->sign |= id == O_SIGN;
	a->raw |= id == O_RAW;
	a->help |= id == O_HELP;
	if (id == O_OUTPUT)
		a->output = v;
	return 0;
}

static int parse(int argc, char **argv, struct args *a, struct sb_err *err)
{
	static const struct verb_words v = { table, SB_ARRAY_LEN(table), take, 1, "session" };
	int n = verb_words(&v, a, argc, argv, &a->session, err);

	if (n < 0)
		return n;
	if (a->json && a->markdown)
		return sb_err_set(err, -EINVAL, "--json and --markdown exclude each other");
	if (a->output && strcmp(a->output, "-") == 0)
		a->output = NULL; /* standard output, as everywhere */
	if (a->sign && !a->output)
		return sb_err_set(err, -EINVAL, "--sign needs --output FILE: the signature is FILE.sig");
	return 0;
}

static int find(const struct args *a, const struct cli_dirs *d, struct session_record *ret,
		struct sb_err *err)
{
	sb_autostate struct state *s = NULL;
	char cwd[4096];
	int r = state_open(&d->d, &s, err);

	if (r < 0)
		return r;
	if (!a->session && !getcwd(cwd, sizeof(cwd)))
		return sb_err_set(err, -errno, "the current folder: %s", strerror(errno));
	return session_text_find(s, a->session, cwd, ret, err);
}

static int print(const struct args *a, json_t *doc, FILE *to)
{
	if (a->json) {
		if (json_dumpf(doc, to, JSON_COMPACT) < 0)
			return -EIO;
		(void)fputc('\n', to);
	} else if (a->markdown) {
		report_markdown(to, doc);
	} else {
		report_text(to, doc);
	}
	return fflush(to) == 0 && !ferror(to) ? 0 : -EIO;
}

/* @text: what was printed, not what lies in the file by now: a session may share the folder. */
static int sign(const struct args *a, const struct cli_dirs *d, const char *session, const char *text,
		size_t len, struct sb_err *err)
{
	SB_CLEANUP(sb_prov_sig_done) struct sb_prov_sig s = { .kind = SB_PROV_REPORT };
	const char *slash = strrchr(a->output, '/');
	char path[4200];
	int r;

	(void)snprintf(path, sizeof(path), "%.4090s.sig", a->output);
	s.name = strdup(slash ? slash + 1 : a->output);
	r = s.name ? sb_prov_add_meta(&s, "session", session) : -ENOMEM;
	if (r < 0)
		return sb_err_set(err, r, "out of memory");
	sb_sha256(text, len, s.sha256);
	r = provenance_sign(&d->d, &s, err);
	if (r == 0)
		r = provenance_note(&d->d, &s, err);
	return r < 0 ? r : provenance_append(path, &s, true, err);
}

static int in_memory(const struct args *a, json_t *doc, char **ret, size_t *ret_len, struct sb_err *err)
{
	FILE *to = open_memstream(ret, ret_len);
	int r = to ? print(a, doc, to) : -ENOMEM;

	if (to && fclose(to) != 0)
		r = -ENOMEM;
	return r < 0 ? sb_err_set(err, r, "out of memory") : 0;
}

static int write_file(const char *path, const char *text, size_t len, struct sb_err *err)
{
	sb_autofd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : sb_fd_write_all(fd, text, len);

	return r < 0 ? sb_err_set(err, r == -EEXIST ? -EEXIST : -EIO, "cannot write %.300s: %s", path,
				  strerror(-r))
		     : 0;
}

static int to_file(const struct args *a, const struct cli_dirs *d, json_t *doc, const char *session,
		   struct sb_err *err)
{
	sb_autofree char *text = NULL;
	size_t len = 0;
	int r = in_memory(a, doc, &text, &len, err);

	if (r == 0)
		r = write_file(a->output, text, len, err);
	return r < 0 || !a->sign ? r : sign(a, d, session, text, len, err);
}

static int report(const struct args *a, struct sb_err *err)
{
	static struct cli_dirs dirs;
	sb_autosession struct session_record s = { .kind = SESSION_KIND_NONE };
	json_t *doc = NULL;
	char hex[33];
	int r = sb_crypto_init();

	if (r == 0)
		r = cli_dirs_init(&dirs, err);
	if (r == 0)
		r = find(a, &dirs, &s, err);
	if (r == 0)
		r = report_read(&dirs, &s, !a->raw, &doc, err);
	if (r < 0)
		return r;
	sb_hex_write(s.id, 16, hex);
	if (!a->output)
		r = print(a, doc, stdout) < 0 ? sb_err_set(err, -EIO, "cannot write to standard output") : 0;
	else
		r = to_file(a, &dirs, doc, hex, err);
	json_decref(doc);
	return r;
}

int cmd_report(int argc, char **argv)
{
	struct args a = { .session = NULL };
	struct sb_err err = { 0 };
	int r = parse(argc, argv, &a, &err);

	if (r == 0 && a.help) {
		printf("usage: sendbox report [options] [SESSION]\n\nTell what a session did: files, network, "
		       "commands, packages, secrets, refusals, approvals. SESSION is\nthe first digits of "
		       "an id, or an instance, whose last one is meant; without it, the last one of this\nfolder is.\n\n");
		cli_options_help(table, SB_ARRAY_LEN(table));
		return fflush(stdout) == 0 ? SB_EXIT_OK : SB_EXIT_INTERNAL;
	}
	if (r == 0) {
		r = report(&a, &err);
		if (r == 0)
			return SB_EXIT_OK;
	}
	cli_error("%s", err.text);
	return r == -EIO || r == -EEXIST	 ? SB_EXIT_OUTPUT
	       : r == -ENOMEM || r == -EBADMSG ? SB_EXIT_INTERNAL
					       : SB_EXIT_USAGE;
}
