/* sendbox verify: whether those have signed a file who should have. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "cli.h"
#include "commands.h"
#include "crypto/crypto.h"
#include "dirs.h"
#include "plan_show.h"
#include "provenance.h"
#include "verbs.h"

enum { O_SIGNATURES = 1, O_KEY, O_SIGNERS, O_KIND, O_NAME, O_JSON, O_HELP };

static const struct cli_option table[] = {
	{ "signatures", 's', "FILE", "where they are (default: FILE.sig)", O_SIGNATURES },
	{ "key", 'k', "KEY", "whose signature counts: a public key or its file; may be repeated", O_KEY },
	{ "signers", 0, "FILE", "whose signatures count, and how many are needed", O_SIGNERS },
	{ "kind", 0, "KIND", "the signed kind must be this one", O_KIND },
	{ "name", 0, "TEXT", "the signed name must be this one", O_NAME },
	{ "json", 0, NULL, "print one JSON object", O_JSON },
	{ "help", 'h', NULL, "this text", O_HELP },
};

struct args {
	const char *file;
	const char *signatures;
	const char *signers_file;
	const char *name;
	enum sb_prov_kind kind;
	struct sb_signers signers;
	bool json;
	bool help;
};

static int take(void *arg, int id, const char *v, struct sb_err *err)
{
	struct args *a = arg;
	switch (id) {
	case O_SIGNATURES:
		a->signatures = v;
		return 0;
	case O_KEY:
		return provenance_signers_key(v, &a->signers, err);
	case O_SIGNERS:
		a->signers_file = v;
		return 0;
	case O_KIND:
		a->kind = sb_prov_kind_of(v);
		return a->kind ? 0 : sb_err_set(err, -EINVAL, "--kind \"%.60s\": must be artifact, content, "
						"configuration or report", v);
	case O_NAME:
		a->name = v;
		return 0;
	case O_JSON:
		a->json = true;
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
	if (a->signers_file && a->signers.n > 0)
		return sb_err_set(err, -EINVAL, "--key and --signers exclude each other");
	return a->file || a->help ? 0 : sb_err_set(err, -EINVAL, "say which file");
}

static int load_signers(struct args *a, struct sb_err *err)
{
	static struct cli_dirs dirs;
	int r;

	if (a->signers_file)
		return provenance_signers_read(a->signers_file, &a->signers, err);
	if (a->signers.n > 0)
		return 0;
	r = cli_dirs_init(&dirs, err);
	return r < 0 ? r : provenance_own_signers(&dirs.d, &a->signers, err);
}

/* What the caller wants to have been signed; a signature of something else counts for nothing. */
static bool wanted(const struct args *a, const struct sb_prov_sig *s)
{
	return (!a->kind || s->kind == (uint32_t)a->kind) && (!a->name || strcmp(a->name, s->name) == 0);
}

static const char *name_of(const struct args *a, const struct sb_prov_sig *s)
{
	const struct sb_signer *who = sb_signers_find(&a->signers, s->signer);

	return who ? who->name : "";
}

static void show_text(const struct args *a, const struct sb_prov_sig *s, enum sb_prov_verdict v)
{
	char hex[65];
	char when[PLAN_TIME_ROOM];

	const struct sb_signer *who = sb_signers_find(&a->signers, s->signer);

	/* a signature names the digest of its key; key list names keys */
	sb_hex_write(who ? who->key : s->signer, 32, hex);
	plan_time_text(s->signed_at, when);
	printf("%s%.16s  %s  %s \"", who ? "" : "sha256:", hex, when, sb_prov_kind_name((enum sb_prov_kind)s->kind));
	plan_put(stdout, s->name);
	printf("\"  %s", wanted(a, s) || v != SB_PROV_COUNTS ? sb_prov_verdict_text(v)
							     : "of another kind or name");
	if (name_of(a, s)[0]) {
		printf("  ");
		plan_put(stdout, name_of(a, s));
	}
	(void)putchar('\n');
}

static json_t *sig_json(const struct args *a, const struct sb_prov_sig *s, enum sb_prov_verdict v)
{
	static const char *const words[SB_PROV_VERDICTS] = { "bad",   "good", "other_content",
							     "unknown", "revoked", "early",
							     "late",	"signer_expired", "expired" };
	json_t *meta = json_object();
	const struct sb_signer *who = sb_signers_find(&a->signers, s->signer);
	char signer[65];
	char key[65] = "";
	char id[33];

	sb_hex_write(s->signer, 32, signer);
	sb_hex_write(s->id, 16, id);
	if (who)
		sb_hex_write(who->key, 32, key);
	for (size_t i = 0; i < s->n_meta; i++)
		(void)json_object_set_new(meta, s->meta[i].key, json_string(s->meta[i].value));
	return json_pack("{s:s,s:s,s:s,s:o,s:s,s:s,s:I,s:o,s:o,s:b,s:s}", "signature_id", id, "signer", signer,
			 "signer_key", key, "signer_name", commands_text(name_of(a, s)), "kind",
			 sb_prov_kind_name((enum sb_prov_kind)s->kind), "name", s->name, "signed_at",
			 (json_int_t)s->signed_at, "expires_at",
			 s->expires_at ? json_integer((json_int_t)s->expires_at) : json_null(), "metadata",
			 meta, "wanted", wanted(a, s), "verdict", words[v]);
}

static int print_json(const struct args *a, const struct sb_prov_file *f,
		      const enum sb_prov_verdict *v, const uint8_t sha256[32], const struct sb_err *why)
{
	json_t *list = json_array();
	char hex[65];
	json_t *o;
	char *s;

	for (size_t i = 0; i < f->n; i++)
		(void)json_array_append_new(list, sig_json(a, &f->sigs[i], v[i]));
	sb_hex_write(sha256, 32, hex);
	o = json_pack("{s:o,s:s,s:b,s:o,s:o}", "file", commands_text(a->file), "sha256", hex, "verified",
		      why->code == 0, "reason", why->code ? commands_text(why->text) : json_null(),
		      "signatures", list);
	s = o ? json_dumps(o, JSON_COMPACT) : NULL;
	if (s)
		(void)puts(s);
	json_decref(o);
	free(s);
	return s && fflush(stdout) == 0 ? 0 : -EIO;
}

/* Return: 0 = it passes; 1 = it does not, and that was told; -errno with text. */
static int verify(struct args *a, struct sb_err *err)
{
	sb_autoprov struct sb_prov_file f = { .n = 0 };
	sb_autofree enum sb_prov_verdict *v = NULL;
	struct sb_err why = { 0 };
	uint8_t sha256[32];
	char path[4200];
	int r = sb_crypto_init();

	(void)snprintf(path, sizeof(path), "%.4090s.sig", a->file);
	if (r == 0)
		r = load_signers(a, err);
	if (r == 0)
		r = provenance_digest(a->file, sha256, err);
	if (r < 0)
		return r;
	r = provenance_read(a->signatures ? a->signatures : path, &f, &why);
	if (r < 0 && r != -ENOENT && r != -EBADMSG)
		return sb_err_set(err, r, "%s", why.text);
	v = calloc(f.n + 1, sizeof(*v));
	if (!v)
		return sb_err_set(err, -ENOMEM, "out of memory");
	if (r == -ENOENT && !a->signers.allow_unsigned)
		(void)sb_err_set(&why, r, "there is no signature: %.300s", a->signatures ? a->signatures
											 : path);
	if (why.code == 0)
		r = provenance_verify(&f, sha256, &a->signers, v, &why);
	for (size_t i = 0; why.code == 0 && i < f.n; i++)
		if (v[i] == SB_PROV_COUNTS && !wanted(a, &f.sigs[i]))
			r = sb_err_set(&why, -EKEYREJECTED, "signature %zu is of %s \"%.200s\", not what was "
				       "asked for", i + 1,
				       sb_prov_kind_name((enum sb_prov_kind)f.sigs[i].kind), f.sigs[i].name);
	if (a->json)
		return print_json(a, &f, v, sha256, &why) < 0 ? sb_err_set(err, -EIO, "cannot write") : !!why.code;
	for (size_t i = 0; i < f.n; i++)
		show_text(a, &f.sigs[i], v[i]);
	if (why.code)
		cli_error("%s is not verified: %s", a->file, why.text);
	else if (f.n == 0)
		printf("no signature, which the signers file allows\n");
	else
		printf("verified\n");
	return why.code ? 1 : 0;
}

int cmd_verify(int argc, char **argv)
{
	struct args a = { .file = NULL };
	struct sb_err err = { 0 };
	int r = parse(argc, argv, &a, &err);

	if (r < 0) {
		cli_error("%s", err.text);
	} else if (a.help) {
		printf("usage: sendbox verify [options] FILE\n\nTell whether a file was signed by those whose "
		       "signatures count: the keys of --key, of\n--signers, else those of sendbox key list."
		       "\n\n");
		cli_options_help(table, SB_ARRAY_LEN(table));
	} else {
		r = verify(&a, &err);
		if (r < 0)
			cli_error("%s", err.text);
	}
	sb_signers_done(&a.signers);
	return r < 0 ? SB_EXIT_USAGE : fflush(stdout) != 0 ? SB_EXIT_INTERNAL : r ? SB_EXIT_NO : SB_EXIT_OK;
}
