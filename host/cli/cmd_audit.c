/* sendbox audit ls|show|tail|export|verify|prove|head: what was recorded, and whether it is true. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "cli.h"
#include "cmd_audit.h"
#include "crypto/crypto.h"
#include "verbs.h"

#define FOLLOW_NS 100000000L
#define TAIL 10

enum {
	O_SESSION = 1, O_KIND, O_VERDICT, O_HOST, O_SINCE, O_UNTIL, O_FROM, O_TO, O_LIMIT, O_FOLLOW, O_JSON,
	O_FORMAT, O_RAW, O_DIR, O_KEY, O_HEAD, O_SIZE, O_VKEY, O_FILE, O_COMMAND, O_HELP
};

static const struct cli_option table[] = {
	{ "session", 0, "ID", "ls, tail, export: records of this session alone", O_SESSION },
	{ "kind", 0, "KIND,...", "network, command, session, ...", O_KIND },
	{ "verdict", 0, "VERDICT,...", "allow, deny, ask, error, none", O_VERDICT },
	{ "host", 0, "NAME", "connections to NAME or beneath it", O_HOST },
	{ "since", 0, "TIME", "as 2h (ago), or seconds since 1970", O_SINCE },
	{ "until", 0, "TIME", "the same", O_UNTIL },
	{ "from", 0, "N", "from record N on; verify: those before it may be gone; prove: that the log of N records is "
		       "its beginning", O_FROM },
	{ "to", 0, "N", "up to the record before N", O_TO },
	{ "limit", 'n', "N", "the last N of them", O_LIMIT },
	{ "follow", 'f', NULL, "tail: go on as records come", O_FOLLOW },
	{ "json", 0, NULL, "one line of JSON each", O_JSON },
	{ "format", 0, "FORMAT", "export: jsonl, csv or ocsf", O_FORMAT },
	{ "no-redact", 0, NULL, "export: leave in what looks like a secret", O_RAW },
	{ "dir", 0, "FOLDER", "a copy of a log instead of this host's", O_DIR },
	{ "key", 0, "KEY", "verify: public key of the log, or a file with it", O_KEY },
	{ "head", 0, "FILE", "verify: with the signed heads in FILE; several times", O_HEAD },
	{ "size", 0, "N", "prove: in the log of N records", O_SIZE },
	{ "public-key", 0, NULL, "head: print the public key instead", O_VKEY },
	{ "append", 0, "FILE", "head: add it to FILE", O_FILE },
	{ "command", 0, "PROGRAM", "head: give it to PROGRAM's standard input", O_COMMAND },
	{ "help", 'h', NULL, "this text", O_HELP },
};

static void help(void)
{
	printf("usage: sendbox audit ls|tail|export [options]\n"
	       "       sendbox audit show N\n"
	       "       sendbox audit verify [--dir FOLDER --key KEY] [--head FILE] [--from N]\n"
	       "       sendbox audit prove N|--from N [--size N]\n"
	       "       sendbox audit head [--public-key] [--append FILE] [--command PROGRAM]\n\n"
	       "The record of what sessions did and were refused.\n\n");
	cli_options_help(table, SB_ARRAY_LEN(table));
}

static int number(const char *name, const char *v, uint64_t *ret, struct sb_err *err)
{
	return sb_num_u64(v, 0, INT64_MAX, ret) < 0
		       ? sb_err_set(err, -EINVAL, "--%s \"%.60s\": must be a number", name, v)
		       : 0;
}

static int moment(const char *name, const char *v, uint64_t *ret, struct sb_err *err)
{
	uint64_t s = 0;
	uint64_t ms = 0;

	if (strspn(v, "0123456789") == strlen(v) && sb_num_u64(v, 1, UINT32_MAX, &s) == 0) {
		*ret = s * 1000000000U;
		return 0;
	}
	if (sb_num_duration_ms(v, &ms) < 0)
		return sb_err_set(err, -EINVAL, "--%s \"%.60s\": must be a time such as 30m or 2d (ago), or "
						"seconds since 1970", name, v);
	*ret = ((uint64_t)time(NULL) - SB_MIN(ms / 1000, (uint64_t)time(NULL))) * 1000000000U;
	return 0;
}

/* Words with commas. @of: bit of a word, or a value that is none. */
static int words(const char *name, const char *v, bool kinds, uint32_t *ret, struct sb_err *err)
{
	char copy[256];
	char *save = NULL;

	(void)snprintf(copy, sizeof(copy), "%s", v);
	for (char *w = strtok_r(copy, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
		unsigned int k = kinds ? (unsigned int)sb_audit_kind_of(w)
				       : (unsigned int)sb_audit_verdict_of(w);

		if (kinds ? k == SB_AUDIT_KIND_NONE : k == SB_AUDIT_VERDICTS)
			return sb_err_set(err, -EINVAL, "--%s \"%.60s\": must be of %s", name, w,
					  kinds ? "session, plan, command, network, file, ssh, secret, "
						  "approval, policy, snapshot, provenance, key"
						: "allow, deny, ask, error, none");
		*ret |= 1U << k;
	}
	return *ret ? 0 : sb_err_set(err, -EINVAL, "--%s: must not be empty", name);
}

static int take_format(struct audit_args *a, const char *v, struct sb_err *err)
{
	if (strcmp(v, "jsonl") == 0)
		a->format = AUDIT_JSONL;
	else if (strcmp(v, "csv") == 0)
		a->format = AUDIT_CSV;
	else if (strcmp(v, "ocsf") == 0)
		a->format = AUDIT_OCSF;
	else
		return sb_err_set(err, -EINVAL, "--format \"%.60s\": must be jsonl, csv or ocsf", v);
	return 0;
}

static int take_session(struct audit_args *a, const char *v, struct sb_err *err)
{
	if (v[0] == '\0' || strlen(v) > 32 || v[strspn(v, "0123456789abcdef")] != '\0')
		return sb_err_set(err, -EINVAL, "--session \"%.60s\": a session is named by the first "
						"digits of its id", v);
	a->filter.session = v;
	return 0;
}

static int take_check(struct audit_args *a, int id, const char *v, struct sb_err *err)
{
	switch (id) {
	case O_DIR:
		a->dir = v;
		return 0;
	case O_KEY:
		a->key = v;
		return 0;
	case O_HEAD:
		if (a->n_heads == AUDIT_HEADS_MAX)
			return sb_err_set(err, -EINVAL, "--head: at most %d times", AUDIT_HEADS_MAX);
		a->heads[a->n_heads++] = v;
		return 0;
	case O_SIZE:
		return number("size", v, &a->size, err);
	case O_VKEY:
		a->vkey = true;
		return 0;
	case O_FILE:
		a->append = v;
		return 0;
	case O_COMMAND:
		a->command = v;
		return 0;
	default:
		a->help = true;
		return 0;
	}
}

static int take(void *arg, int id, const char *v, struct sb_err *err)
{
	struct audit_args *a = arg;
	struct audit_filter *f = &a->filter;

	switch (id) {
	case O_SESSION:
		return take_session(a, v, err);
	case O_KIND:
		return words("kind", v, true, &f->kinds, err);
	case O_VERDICT:
		return words("verdict", v, false, &f->verdicts, err);
	case O_HOST:
		f->host = v;
		return 0;
	case O_SINCE:
		return moment("since", v, &f->since_ns, err);
	case O_UNTIL:
		return moment("until", v, &f->until_ns, err);
	case O_FROM:
		return number("from", v, &f->from, err);
	case O_TO:
		return number("to", v, &f->to, err);
	case O_LIMIT:
		return sb_num_u64(v, 1, INT64_MAX, &a->limit) < 0
			       ? sb_err_set(err, -EINVAL, "--limit \"%.60s\": must be a number from 1", v) : 0;
	case O_FOLLOW:
		a->follow = true;
		return 0;
	case O_JSON:
		a->json = true;
		return 0;
	case O_FORMAT:
		return take_format(a, v, err);
	case O_RAW:
		a->raw = true;
		return 0;
	default:
		return take_check(a, id, v, err);
	}
}

#define BIT(id) (1U << (id))
#define FILTER (BIT(O_SESSION) | BIT(O_KIND) | BIT(O_VERDICT) | BIT(O_HOST) | BIT(O_SINCE) | BIT(O_UNTIL) | \
		BIT(O_FROM) | BIT(O_TO) | BIT(O_LIMIT) | BIT(O_DIR))

static const struct audit_verb {
	const char *name;
	uint32_t options;
	bool operand;
} verbs[] = {
	{ "ls", FILTER | BIT(O_JSON), false },
	{ "tail", FILTER | BIT(O_JSON) | BIT(O_FOLLOW), false },
	{ "export", FILTER | BIT(O_JSON) | BIT(O_FORMAT) | BIT(O_RAW), false },
	{ "show", BIT(O_JSON) | BIT(O_DIR), true },
	{ "verify", BIT(O_JSON) | BIT(O_DIR) | BIT(O_KEY) | BIT(O_HEAD) | BIT(O_FROM), false },
	{ "prove", BIT(O_JSON) | BIT(O_DIR) | BIT(O_KEY) | BIT(O_FROM) | BIT(O_SIZE), true },
	{ "head", BIT(O_DIR) | BIT(O_KEY) | BIT(O_VKEY) | BIT(O_FILE) | BIT(O_COMMAND), false },
};

/* What the verb has no use for is a mistake. */
static int check_verb(const struct audit_args *a, uint32_t given, struct sb_err *err)
{
	const struct audit_verb *v = NULL;

	for (size_t i = 0; i < SB_ARRAY_LEN(verbs); i++)
		if (strcmp(verbs[i].name, a->verb) == 0)
			v = &verbs[i];
	if (!v)
		return sb_err_set(err, -EINVAL, "\"%.60s\": must be ls, show, tail, export, verify, prove or head",
				  a->verb);
	if (a->what && !v->operand)
		return sb_err_set(err, -EINVAL, "\"%.60s\" is one word too many: audit %s takes none", a->what,
				  v->name);
	for (size_t i = 0; i < SB_ARRAY_LEN(table); i++)
		if (table[i].id != O_HELP && (given & ~v->options & BIT(table[i].id)))
			return sb_err_set(err, -EINVAL, "--%s is not for audit %s", table[i].name, v->name);
	return 0;
}

struct counted {
	struct audit_args *args;
	uint32_t given; /* BIT of each option that was said */
};

static int take_counted(void *arg, int id, const char *v, struct sb_err *err)
{
	struct counted *c = arg;

	c->given |= BIT(id);
	return take(c->args, id, v, err);
}

static int parse(int argc, char **argv, struct audit_args *a, struct sb_err *err)
{
	static const struct verb_words v = { table, SB_ARRAY_LEN(table), take_counted, 2, "word" };
	struct counted c = { .args = a };
	const char *words[2] = { NULL, NULL };
	int n = verb_words(&v, &c, argc, argv, words, err);

	if (n < 0)
		return n;
	if (n > 0)
		a->verb = words[0];
	a->what = words[1];
	if (a->help)
		return 0;
	if (n == 0)
		return sb_err_set(err, -EINVAL, "say what: ls, show, tail, export, verify, prove or head");
	return check_verb(a, c.given, err);
}

int cmd_audit_dir(const struct audit_args *a, const struct cli_dirs *dirs, int *ret,
		  struct sb_err *err)
{
	char path[4200];

	(void)snprintf(path, sizeof(path), "%s/audit", dirs->state);
	*ret = open(a->dir ? a->dir : path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*ret < 0 && errno == ENOENT && !a->dir)
		return sb_err_set(err, -ENOENT, "there is no audit log yet");
	return *ret < 0 ? sb_err_set(err, -errno, "cannot open %.300s: %s", a->dir ? a->dir : path,
				     strerror(errno))
			: 0;
}

/* ---- reading ---- */

struct printing {
	const struct audit_args *a;
	enum audit_format format;
	bool redact;
	uint64_t skip; /* of the wanted ones */
};

/* All that are there. Return: SB_AUDIT_END; -errno. */
static int pass(struct sb_audit_reader *r, struct printing *p, uint64_t *count, struct sb_err *err)
{
	struct sb_audit_record rec;
	struct sb_audit_line line;
	int k;

	while ((k = sb_audit_reader_next(r, &rec, &line, err)) == 0) {
		if (p->a->filter.to > 0 && rec.seq >= p->a->filter.to)
			return SB_AUDIT_END;
		if (!audit_wanted(&p->a->filter, &rec))
			continue;
		if (count) {
			++*count;
			continue;
		}
		if (p->skip > 0) {
			p->skip--;
			continue;
		}
		k = audit_print(p->format, p->redact, &rec, &line);
		if (k < 0)
			return sb_err_set(err, k, "cannot write: %s", strerror(-k));
	}
	if (k < 0)
		(void)sb_err_add(err, k, "see sendbox audit verify");
	return k;
}

static int follow(struct sb_audit_reader *r, struct printing *p, struct sb_err *err)
{
	const struct timespec wait = { .tv_nsec = FOLLOW_NS };
	int k = SB_AUDIT_END;

	while (k == SB_AUDIT_END && fflush(stdout) == 0) {
		(void)nanosleep(&wait, NULL);
		k = pass(r, p, NULL, err);
	}
	return k < 0 ? k : 0;
}

static int list(const struct audit_args *a, const struct cli_dirs *dirs, uint64_t limit,
		struct sb_err *err)
{
	bool export = strcmp(a->verb, "export") == 0;
	struct printing p = { .a = a,
			      .format = export ? (a->format ? a->format : AUDIT_JSONL)
				      : a->json ? AUDIT_JSONL
						: AUDIT_TEXT,
			      .redact = export && !a->raw };
	sb_autoreader struct sb_audit_reader *r = NULL;
	sb_autofd int dir = -1;
	uint64_t n = 0;
	int k = cmd_audit_dir(a, dirs, &dir, err);

	if (k == 0)
		k = sb_audit_reader_new(dir, &r, err);
	if (k == -ENOENT && !a->dir && !a->follow) {
		cli_error("%s", err->text);
		return SB_EXIT_OK;
	}
	if (k == 0)
		k = sb_audit_reader_seek(r, a->filter.from, err);
	if (k == 0 && limit > 0) {
		k = pass(r, &p, &n, err);
		p.skip = n - SB_MIN(n, limit);
		if (k >= 0)
			k = sb_audit_reader_seek(r, a->filter.from, err);
	}
	if (k < 0)
		return k;
	audit_print_heading(p.format);
	k = pass(r, &p, NULL, err);
	if (k == SB_AUDIT_END && a->follow)
		k = follow(r, &p, err);
	if (k < 0)
		return k;
	return fflush(stdout) == 0 ? SB_EXIT_OK : SB_EXIT_WRITE;
}

/* One record, whole. */
static int show(const struct audit_args *a, const struct cli_dirs *dirs, struct sb_err *err)
{
	sb_autoreader struct sb_audit_reader *r = NULL;
	struct sb_audit_record rec;
	struct sb_audit_line line;
	sb_autofd int dir = -1;
	uint64_t want = 0;
	json_t *o;
	char *text;
	int k = !a->what || sb_num_u64(a->what, 0, UINT64_MAX, &want) < 0
			? sb_err_set(err, -EINVAL, "show: the number of a record; sendbox audit ls has them")
			: cmd_audit_dir(a, dirs, &dir, err);

	if (k == 0)
		k = sb_audit_reader_new(dir, &r, err);
	if (k == 0)
		k = sb_audit_reader_seek(r, want, err);
	while (k == 0) {
		k = sb_audit_reader_next(r, &rec, &line, err);
		if (k == SB_AUDIT_END || (k == 0 && rec.seq > want))
			return sb_err_set(err, -ENOENT, "there is no record %llu",
					  (unsigned long long)want);
		if (k == 0 && rec.seq == want)
			break;
	}
	if (k < 0)
		return k;
	o = json_loadb(line.p, line.len, 0, NULL);
	text = o && !a->json ? json_dumps(o, JSON_INDENT(2)) : NULL;
	if (text)
		(void)puts(text);
	else
		printf("%.*s\n", (int)line.len, line.p);
	free(text);
	json_decref(o);
	return fflush(stdout) == 0 ? SB_EXIT_OK : SB_EXIT_WRITE;
}

static int run(struct audit_args *a, const struct cli_dirs *dirs, struct sb_err *err)
{
	if (strcmp(a->verb, "ls") == 0 || strcmp(a->verb, "export") == 0)
		return list(a, dirs, a->limit, err);
	if (strcmp(a->verb, "tail") == 0)
		return list(a, dirs, a->limit ? a->limit : TAIL, err);
	if (strcmp(a->verb, "show") == 0)
		return show(a, dirs, err);
	if (strcmp(a->verb, "verify") == 0)
		return cmd_audit_verify(a, dirs, err);
	if (strcmp(a->verb, "prove") == 0)
		return cmd_audit_prove(a, dirs, err);
	sb_assert(strcmp(a->verb, "head") == 0);
	return cmd_audit_head(a, dirs, err);
}

int cmd_audit(int argc, char **argv)
{
	struct audit_args a = { 0 };
	struct sb_err err = { 0 };
	struct cli_dirs dirs;
	int k = parse(argc, argv, &a, &err);

	if (k == 0 && a.help) {
		help();
		return fflush(stdout) == 0 ? SB_EXIT_OK : SB_EXIT_WRITE;
	}
	if (k == 0)
		k = sb_crypto_init();
	if (k == 0)
		k = cli_dirs_init(&dirs, &err);
	if (k == 0)
		k = run(&a, &dirs, &err);
	if (k >= 0)
		return k;
	cli_error("%s", err.code ? err.text : strerror(-k));
	return k == -EINVAL ? SB_EXIT_USAGE : k == -EIO ? SB_EXIT_WRITE : SB_EXIT_NO;
}
