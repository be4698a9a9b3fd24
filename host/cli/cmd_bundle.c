#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "bundle_build.h"
#include "bundle_keys.h"
#include "bundle_local.h"
#include "cli.h"
#include "crypto/crypto.h"
#include "dirs.h"
#include "options.h"
#include "os/rmtree.h"

enum { O_OUTPUT = 1, O_SEQUENCE, O_MINIMUM, O_VERSION, O_FROM, O_KEY, O_FLOOR, O_JSON, O_HELP };

#define JSON_OPTION { "json", 0, NULL, "the result as one JSON object", O_JSON }
#define HELP_OPTION { "help", 'h', NULL, "this text", O_HELP }
static const struct cli_option build_table[] = {
	{ "output", 'o', "DIR", "folder to make; must not exist", O_OUTPUT },
	{ "sequence", 0, "N", "release sequence, 1 or higher", O_SEQUENCE },
	{ "minimum", 0, "N", "lowest sequence to accept after this one (default: its own)", O_MINIMUM },
	{ "version", 0, "V", "version of the release (default: that of sendbox)", O_VERSION },
	{ "from", 0, "DIR", "folder with the guest parts (default: the installed ones)", O_FROM },
	JSON_OPTION,
	HELP_OPTION,
};
static const struct cli_option sign_table[] = {
	{ "key", 0, "FILE", "signing key, 64 bytes (default: the host's own)", O_KEY },
	JSON_OPTION,
	HELP_OPTION,
};
static const struct cli_option verify_table[] = {
	{ "key", 0, "FILE", "the one public key to trust (default: the host's trusted keys)", O_KEY },
	{ "minimum-sequence", 0, "N", "refuse anything older (default: the host's floor)", O_FLOOR },
	JSON_OPTION,
	HELP_OPTION,
};
static const struct cli_option inspect_table[] = { JSON_OPTION, HELP_OPTION };

struct request {
	const char *output;
	const char *release;
	const char *from;
	const char *key;
	const char *dir; /* the operand */
	uint64_t sequence;
	uint64_t minimum;
	uint64_t floor;
	bool floor_given;
	bool json;
	bool help;
	int status; /* exit status of a failure; 0 = by its code */
};

struct action {
	const char *name;
	const char *usage;
	const char *help;
	const struct cli_option *table;
	size_t n;
	bool operand;
	int (*run)(struct request *q, json_t *result, struct sb_err *err);
};

/* ---- parsing ---- */

static int sequence(const char *what, const char *value, uint64_t min, uint64_t *ret,
		    struct sb_err *err)
{
	if (sb_num_u64(value, min, SB_BUNDLE_SEQUENCE_MAX, ret) < 0)
		return sb_err_set(err, -EINVAL, "--%s \"%.60s\": must be a whole number, %llu or "
				  "higher", what, value, (unsigned long long)min);
	return 0;
}

static int take(struct request *q, int id, const char *value, struct sb_err *err)
{
	switch (id) {
	case O_OUTPUT:
		q->output = value;
		return 0;
	case O_VERSION:
		q->release = value;
		return 0;
	case O_FROM:
		q->from = value;
		return 0;
	case O_KEY:
		q->key = value;
		return 0;
	case O_SEQUENCE:
		return sequence("sequence", value, 1, &q->sequence, err);
	case O_MINIMUM:
		return sequence("minimum", value, 1, &q->minimum, err);
	case O_FLOOR:
		q->floor_given = true;
		return sequence("minimum-sequence", value, 0, &q->floor, err);
	case O_JSON:
		q->json = true;
		return 0;
	default:
		q->help = true;
		return 0;
	}
}

static int parse(const struct action *a, int argc, char **argv, struct request *q,
		 struct sb_err *err)
{
	const char *value;
	bool dashes;
	int at = 0;
	int id;
	int r;

	while ((id = cli_options_next(a->table, a->n, argc, argv, &at, &value, &dashes, err)) > 0) {
		r = take(q, id, value, err);
		if (r < 0)
			return r;
	}
	if (id < 0 || q->help)
		return id;
	if (argc - at != (a->operand ? 1 : 0))
		return sb_err_set(err, -EINVAL, a->operand ? "bundle %s wants one operand, the "
							     "bundle's folder"
							   : "bundle %s takes no operands", a->name);
	q->dir = a->operand ? argv[at] : NULL;
	return 0;
}

/* ---- results ---- */

static json_t *hex(const uint8_t *p, size_t len)
{
	char text[2 * 64 + 1];

	sb_assert(len <= 64);
	sb_hex_write(p, len, text);
	return json_string(text);
}

static void set(json_t *o, const char *key, json_t *value)
{
	(void)json_object_set_new(o, key, value);
}

static void describe(json_t *o, const struct sb_bundle_manifest *m, const uint8_t sha[32])
{
	json_t *list = json_array();

	set(o, "release", json_string(m->release));
	set(o, "sequence", json_integer((json_int_t)m->sequence));
	set(o, "minimum_sequence", json_integer((json_int_t)m->minimum_sequence));
	set(o, "architecture", json_string(m->architecture));
	set(o, "plan_version", json_integer(m->plan_version));
	set(o, "manifest_sha256", hex(sha, 32));
	for (size_t i = 0; i < m->n_artifacts; i++) {
		const struct sb_bundle_artifact *a = &m->artifacts[i];
		json_t *e = json_pack("{s:s, s:s, s:I, s:o}", "path", a->path, "kind",
				      sb_bundle_kind_name(a->kind), "size", (json_int_t)a->size,
				      "sha256", hex(a->sha256, 32));

		set(e, "mode", json_sprintf("%04o", a->mode));
		(void)json_array_append_new(list, e);
	}
	set(o, "artifacts", list);
}

static const char *str(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static void print_text(const json_t *o)
{
	const json_t *sig = json_object_get(o, "signature");
	const json_t *a;
	size_t i;

	printf("release       %s\nsequence      %lld (accepts none below %lld after it)\n"
	       "architecture  %s\nplan version  %lld\nmanifest      sha256 %s\n",
	       str(o, "release"), (long long)json_integer_value(json_object_get(o, "sequence")),
	       (long long)json_integer_value(json_object_get(o, "minimum_sequence")),
	       str(o, "architecture"),
	       (long long)json_integer_value(json_object_get(o, "plan_version")),
	       str(o, "manifest_sha256"));
	if (json_is_object(sig))
		printf("signature     %s, by %s (%s)\n",
		       json_is_true(json_object_get(sig, "valid")) ? "valid" : "NOT VALID",
		       str(sig, "key"),
		       json_is_true(json_object_get(sig, "trusted")) ? "trusted here"
								     : "not trusted here");
	else
		printf("signature     none\n");
	json_array_foreach(json_object_get(o, "artifacts"), i, a)
		printf("  %s %9lld %s  %s\n", str(a, "mode"),
		       (long long)json_integer_value(json_object_get(a, "size")), str(a, "sha256"),
		       str(a, "path"));
}

static int print_json(json_t *o)
{
	char *s = json_dumps(o, JSON_COMPACT);
	int r = s && puts(s) >= 0 && fflush(stdout) == 0 ? 0 : -EIO;

	free(s);
	return r;
}

/* ---- actions ---- */

static int open_dir(const char *path, struct sb_err *err)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? sb_err_set(err, -errno, "cannot open %.300s: %s", path, strerror(errno)) : fd;
}

/* The manifest that is there now, and who signed it. */
static int show(int dir, const uint8_t *keys, size_t n_keys, json_t *o, struct sb_err *err)
{
	static const uint8_t none[32];
	sb_automanifest struct sb_bundle_manifest m = { 0 };
	bool trusted = false;
	bool good;
	uint8_t key[32];
	uint8_t sha[32];
	int r = sb_bundle_peek(dir, &m, key, sha, &good, err);

	if (r < 0)
		return r;
	describe(o, &m, sha);
	for (size_t i = 0; i < n_keys; i++)
		trusted |= memcmp(keys + 32 * i, key, 32) == 0;
	set(o, "signature",
	    memcmp(key, none, 32) == 0
		    ? json_null()
		    : json_pack("{s:o, s:b, s:b}", "key", hex(key, 32), "valid", good, "trusted",
				trusted));
	return 0;
}

static int run_build(struct request *q, json_t *result, struct sb_err *err)
{
	struct bundle_build b = { .release = q->release ? q->release : SB_VERSION,
				  .sequence = q->sequence,
				  .minimum_sequence = q->minimum ? q->minimum : q->sequence };
	sb_autofd int from = -1;
	sb_autofd int out = -1;
	struct cli_dirs dirs;
	int r;

	q->status = SB_EXIT_USAGE;
	if (!q->output || q->sequence == 0)
		return sb_err_set(err, -EINVAL, "bundle build wants --output DIR and --sequence N");
	if (b.minimum_sequence > b.sequence)
		return sb_err_set(err, -EINVAL, "--minimum %llu is above --sequence %llu: the bundle "
				  "would refuse itself", (unsigned long long)b.minimum_sequence,
				  (unsigned long long)b.sequence);
	r = bundle_build_time(&b.created, err);
	if (r == 0 && !q->from)
		r = cli_dirs_init(&dirs, err);
	if (r < 0)
		return r;
	from = open_dir(q->from ? q->from : dirs.d.libexec, err);
	if (from < 0)
		return from;
	q->status = SB_EXIT_OUTPUT;
	if (mkdir(q->output, 0755) < 0)
		return errno == EEXIST
			       ? sb_err_set(err, -EEXIST, "%.300s is there already: choose another "
					    "--output", q->output)
			       : sb_err_set(err, -errno, "cannot make %.300s: %s", q->output,
					    strerror(errno));
	out = open(q->output, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	r = out < 0 || fchmod(out, 0755) < 0
		    ? sb_err_set(err, -errno, "cannot open %.300s: %s", q->output, strerror(errno))
		    : bundle_build(from, out, &b, err);
	if (r == 0)
		r = show(out, NULL, 0, result, err);
	if (r < 0 && sb_rmtree(AT_FDCWD, q->output) < 0)
		(void)sb_err_add(err, r, "%.200s is left behind", q->output);
	if (r < 0 && (r == -ENOENT || r == -ENOEXEC || r == -EBADMSG || r == -EINVAL))
		q->status = SB_EXIT_USAGE;
	return r;
}

static int run_sign(struct request *q, json_t *result, struct sb_err *err)
{
	sb_autofd int dir = open_dir(q->dir, err);
	uint8_t pub[32];
	uint8_t sec[64];
	int r;

	if (dir < 0)
		return dir;
	if (q->key) {
		q->status = SB_EXIT_USAGE;
		r = bundle_key_secret(q->key, sec, err);
		if (r == 0)
			sb_sign_public(sec, pub);
	} else {
		struct cli_dirs dirs;

		r = cli_dirs_init(&dirs, err);
		if (r == 0)
			r = cli_host_key(&dirs.d, pub, sec, err);
	}
	if (r == 0) {
		q->status = 0;
		r = sb_bundle_sign(dir, sec, err);
	}
	sb_wipe(sec, sizeof(sec));
	return r < 0 ? r : show(dir, pub, 1, result, err);
}

/* Keys that are trusted here, and the floor. */
static int trust_of(const struct request *q, uint8_t keys[SB_BUNDLE_MAX_KEYS][32],
		    struct sb_bundle_trust *t, struct sb_err *err)
{
	struct cli_dirs dirs;
	uint8_t pub[32];
	uint8_t sec[64];
	int r;

	t->keys = keys[0];
	t->floor = q->floor;
	if (q->key) {
		t->n_keys = 1;
		return bundle_key_public(AT_FDCWD, q->key, keys[0], err);
	}
	r = cli_dirs_init(&dirs, err);
	if (r == 0)
		r = cli_host_key(&dirs.d, pub, sec, err);
	sb_wipe(sec, sizeof(sec));
	if (r == 0)
		r = bundle_keys_trusted(&dirs.d, pub, keys, err);
	if (r < 0)
		return r;
	t->n_keys = (size_t)r;
	return q->floor_given ? 0 : bundle_floor_get(&dirs.d, &t->floor, err);
}

static int run_verify(struct request *q, json_t *result, struct sb_err *err)
{
	uint8_t keys[SB_BUNDLE_MAX_KEYS][32];
	sb_autobundle struct sb_bundle *b = NULL;
	struct sb_bundle_trust t = { 0 };
	sb_autofd int dir = open_dir(q->dir, err);
	int r;

	if (dir < 0)
		return dir;
	q->status = SB_EXIT_USAGE;
	r = trust_of(q, keys, &t, err);
	if (r < 0)
		return r;
	q->status = 0;
	r = sb_bundle_open(dir, &t, &b, err);
	if (r < 0)
		return r;
	describe(result, &b->m, b->manifest_sha256);
	set(result, "signature", json_pack("{s:o, s:b, s:b}", "key", hex(b->key, 32), "valid", 1,
					   "trusted", 1));
	return 0;
}

static int run_inspect(struct request *q, json_t *result, struct sb_err *err)
{
	uint8_t keys[SB_BUNDLE_MAX_KEYS][32];
	struct sb_bundle_trust t = { 0 };
	sb_autofd int dir = open_dir(q->dir, err);
	int r;

	if (dir < 0)
		return dir;
	r = trust_of(q, keys, &t, err);
	return r < 0 ? r : show(dir, t.keys, t.n_keys, result, err);
}

static const struct action actions[] = {
	{ "build", "--output DIR --sequence N [options]",
	  "Make an unsigned bundle of the guest parts. The same parts give the same bytes.",
	  build_table, SB_ARRAY_LEN(build_table), false, run_build },
	{ "sign", "[options] DIR", "Check a bundle's files against its manifest and sign it.",
	  sign_table, SB_ARRAY_LEN(sign_table), true, run_sign },
	{ "verify", "[options] DIR", "Verify a bundle as the start of a session does.", verify_table,
	  SB_ARRAY_LEN(verify_table), true, run_verify },
	{ "inspect", "[options] DIR",
	  "Show a bundle's manifest and who signed it, without trusting either.", inspect_table,
	  SB_ARRAY_LEN(inspect_table), true, run_inspect },
};

static int status_of(const struct request *q, int r)
{
	if (q->status != 0)
		return q->status;
	switch (r) {
	case -ENOENT:
	case -EBADMSG:
	case -EKEYREJECTED:
	case -ESTALE:
	case -EPERM:
	case -ENOEXEC:
		return SB_EXIT_PLAN_REFUSED;
	default:
		return SB_EXIT_INTERNAL;
	}
}

static int fail(const struct request *q, int status, const struct sb_err *err)
{
	const char *code = status == SB_EXIT_PLAN_REFUSED ? "bundle_refused" : cli_code_of(status);

	if (!q->json)
		cli_error("%s", err->text);
	else if (print_json(json_pack("{s:i, s:b, s:i, s:[{s:s, s:s, s:s}]}", "schema_version", 1,
				      "ok", 0, "exit_code", status, "diagnostics", "code", code,
				      "path", q->dir ? q->dir : q->output ? q->output : "",
				      "message", err->text)) < 0)
		cli_error("%s", err->text);
	return status;
}

static int run_action(const struct action *a, int argc, char **argv)
{
	struct request q = { 0 };
	struct sb_err err = { 0 };
	json_t *result;
	int r = parse(a, argc, argv, &q, &err);

	if (q.help) {
		printf("usage: sendbox bundle %s %s\n\n%s\n\n", a->name, a->usage, a->help);
		cli_options_help(a->table, a->n);
		return fflush(stdout) == 0 ? SB_EXIT_OK : SB_EXIT_INTERNAL;
	}
	if (r < 0) { /* --json may stand behind the error */
		for (int i = 0; i < argc; i++)
			q.json |= strcmp(argv[i], "--json") == 0;
		return fail(&q, SB_EXIT_USAGE, &err);
	}
	if (sb_crypto_init() < 0) {
		(void)sb_err_set(&err, -EIO, "the crypto library does not start");
		return fail(&q, SB_EXIT_INTERNAL, &err);
	}
	result = json_pack("{s:i, s:b, s:s}", "schema_version", 1, "ok", 1, "bundle",
			   q.dir ? q.dir : q.output ? q.output : "");
	r = a->run(&q, result, &err);
	if (r < 0) {
		json_decref(result);
		return fail(&q, status_of(&q, r), &err);
	}
	if (!q.json)
		print_text(result);
	r = q.json ? print_json(result) : fflush(stdout) == 0 ? 0 : -EIO;
	json_decref(result);
	return r == 0 ? SB_EXIT_OK : SB_EXIT_OUTPUT;
}

int cmd_bundle(int argc, char **argv)
{
	bool help = argc > 0 && (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0);

	for (size_t i = 0; argc > 0 && i < SB_ARRAY_LEN(actions); i++)
		if (strcmp(argv[0], actions[i].name) == 0)
			return run_action(&actions[i], argc - 1, argv + 1);
	if (help || argc == 0) {
		printf("usage: sendbox bundle ACTION [options]\n\n");
		for (size_t i = 0; i < SB_ARRAY_LEN(actions); i++)
			printf("  %-8s %s\n", actions[i].name, actions[i].help);
		printf("\nsendbox bundle ACTION --help tells the options.\n");
		return argc == 0 ? SB_EXIT_USAGE : fflush(stdout) == 0 ? SB_EXIT_OK : SB_EXIT_INTERNAL;
	}
	cli_error("bundle wants an action: build, sign, verify or inspect");
	return SB_EXIT_USAGE;
}
