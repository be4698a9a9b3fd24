#include "trust.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "audit_note.h"
#include "base/fd.h"
#include "base/num.h"
#include "cli.h"
#include "conf_show.h"
#include "net_text.h"
#include "term.h"

#define NAME "trust.json"
#define FILE_MAX (8U << 20)
#define SHOWN_MAX 200 /* values, or lines */
#define LINE_MAX_SHOWN 160U

/* ---- the file ---- */

static int broken(const struct sb_dirs *d, struct sb_err *err)
{
	return sb_err_set(err, -EBADMSG, "%.300s/" NAME " is damaged: remove it, and accept your project "
			  "files again with: sendbox config trust", d->state);
}

static bool entry_of(const json_t *e, const char **path, const char **hex)
{
	*path = json_string_value(json_object_get(e, "path"));
	*hex = json_string_value(json_object_get(e, "sha256"));
	return *path && *hex && strlen(*hex) == 64;
}

/* @ret: an array, new reference. */
static int load(const struct sb_dirs *d, int dir, json_t **ret, struct sb_err *err)
{
	sb_autofree char *text = NULL;
	size_t len = 0;
	const char *path;
	const char *hex;
	json_t *root;
	json_t *list;
	int r = sb_fd_read_own(dir, NAME, FILE_MAX, &text, &len);

	if (r == -ENOENT) {
		*ret = json_array();
		return *ret ? 0 : -ENOMEM;
	}
	if (r < 0)
		return sb_err_set(err, r, "cannot read %.300s/" NAME ": %s", d->state,
				  r == -EPERM ? SB_FD_NOT_OWN : strerror(-r));
	root = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
	list = json_object_get(root, "trusted");
	if (!json_is_array(list)) {
		json_decref(root);
		return broken(d, err);
	}
	for (size_t i = 0; i < json_array_size(list); i++) {
		if (!entry_of(json_array_get(list, i), &path, &hex)) {
			json_decref(root);
			return broken(d, err);
		}
	}
	*ret = json_incref(list);
	json_decref(root);
	return 0;
}

static int open_state(const struct sb_dirs *d, struct sb_err *err)
{
	int dir = open(d->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	return dir < 0 ? sb_err_set(err, -errno, "cannot open %s: %s", d->state, strerror(errno))
		       : dir;
}

static bool has(const json_t *list, const char *path, const uint8_t sha256[32])
{
	char want[65];
	const char *p;
	const char *hex;

	sb_hex_write(sha256, 32, want);
	for (size_t i = 0; i < json_array_size(list); i++)
		if (entry_of(json_array_get(list, i), &p, &hex) && strcmp(p, path) == 0)
			return strcmp(hex, want) == 0;
	return false;
}

int trust_check(const struct sb_dirs *d, const struct cfg_loaded *l, const bool *wanted,
		struct sb_err *err)
{
	sb_autofd int dir = open_state(d, err);
	json_t *list = NULL;
	int r = dir < 0 ? dir : load(d, dir, &list, err);

	for (size_t i = 0; r == 0 && i < l->n_files; i++)
		if (wanted[i] && !has(list, l->files[i].path, l->files[i].sha256))
			r = TRUST_NO;
	json_decref(list);
	return r;
}

/* One entry a path: what was accepted last. */
static int put(json_t *list, const char *path, const uint8_t sha256[32])
{
	char hex[65];
	const char *p;
	const char *h;
	json_t *e;

	sb_hex_write(sha256, 32, hex);
	for (size_t i = json_array_size(list); i > 0; i--)
		if (entry_of(json_array_get(list, i - 1), &p, &h) && strcmp(p, path) == 0)
			(void)json_array_remove(list, i - 1);
	while (json_array_size(list) >= TRUST_MAX)
		(void)json_array_remove(list, 0);
	e = json_pack("{s:s,s:s,s:I}", "path", path, "sha256", hex, "when",
		      (json_int_t)time(NULL));
	if (!e)
		return -EINVAL; /* a path that is not UTF-8 */
	return json_array_append_new(list, e) < 0 ? -ENOMEM : 0;
}

static int save(const struct sb_dirs *d, int dir, json_t *list, struct sb_err *err)
{
	json_t *root = json_pack("{s:i,s:O}", "version", 1, "trusted", list);
	sb_autofree char *text = root ? json_dumps(root, JSON_INDENT(1) | JSON_SORT_KEYS) : NULL;
	int r = text ? sb_fd_write_file(dir, NAME, text, strlen(text), 0600) : -ENOMEM;

	json_decref(root);
	return r < 0 ? sb_err_set(err, r, "cannot write %.300s/" NAME ": %s", d->state, strerror(-r))
		     : 0;
}

static int note(const struct sb_dirs *d, const struct cfg_loaded_file *f, struct sb_err *err)
{
	struct sb_audit_event e = { .kind = SB_AUDIT_POLICY, .action = "trust", .verdict = SB_AUDIT_ALLOW,
				    .subject = f->path };
	char hex[65];

	sb_hex_write(f->sha256, 32, hex);
	sb_audit_put(&e, "sha256", hex);
	return audit_note(d, &e, 1, err);
}

/* Two that accept at once: one after the other. On record first, or refused. */
static int add(const struct sb_dirs *d, const struct cfg_loaded_file *files, size_t n,
	       const bool *wanted, struct sb_err *err)
{
	sb_autofd int dir = open_state(d, err);
	json_t *list = NULL;
	int r = dir < 0 ? dir : 0;

	if (r == 0 && flock(dir, LOCK_EX) < 0)
		r = sb_err_set(err, -errno, "cannot lock %s: %s", d->state, strerror(errno));
	if (r == 0)
		r = load(d, dir, &list, err);
	for (size_t i = 0; r == 0 && i < n; i++) {
		if (wanted && !wanted[i])
			continue;
		r = put(list, files[i].path, files[i].sha256);
		if (r < 0)
			(void)sb_err_set(err, r, "%s cannot be accepted: %s", files[i].path,
					 r == -EINVAL ? "its path is not UTF-8" : strerror(-r));
	}
	for (size_t i = 0; r == 0 && i < n; i++)
		if (!wanted || wanted[i])
			r = note(d, &files[i], err);
	if (r == 0)
		r = save(d, dir, list, err);
	json_decref(list);
	return r;
}

int trust_add(const struct sb_dirs *d, const struct cfg_loaded *l, const bool *wanted,
	      struct sb_err *err)
{
	return add(d, l->files, l->n_files, wanted, err);
}

int trust_add_file(const struct sb_dirs *d, const char *path, const uint8_t sha256[32],
		   struct sb_err *err)
{
	struct cfg_loaded_file f = { 0 };
	sb_autofree char *copy = strdup(path);

	if (!copy)
		return -ENOMEM;
	f.path = copy;
	memcpy(f.sha256, sha256, sizeof(f.sha256));
	return add(d, &f, 1, NULL, err);
}

/* ---- what they ask for ---- */

struct showing {
	FILE *to;
	const struct cfg_loaded *l;
	const bool *wanted;
	size_t n;
};

static bool from_wanted(const struct showing *s, const struct cfg_value *v)
{
	for (size_t i = 0; v->origin.file && i < s->l->n_files; i++)
		if (s->wanted[i] && v->origin.layer == s->l->files[i].layer &&
		    strcmp(s->l->files[i].path, v->origin.file) == 0)
			return true;
	return false;
}

static void show_one(struct showing *s, const char *key, const char *name,
		     const struct cfg_value *v)
{
	char text[300];

	if (!from_wanted(s, v) || s->n++ >= SHOWN_MAX)
		return;
	conf_value_text(v, text, sizeof(text));
	(void)fprintf(s->to, "  %s%s%s: %s\n", key, name ? "." : "", name ? name : "", text);
}

static void show_key(void *arg, const struct cfg_key *key, const struct cfg_value *v)
{
	struct showing *s = arg;

	if (!v)
		return;
	if (v->kind != DOC_SEQ && v->kind != DOC_MAP) {
		show_one(s, key->path, NULL, v);
		return;
	}
	for (size_t i = 0; i < v->n; i++) {
		char name[100] = "";

		if (v->kind == DOC_MAP)
			net_text_escape(v->keys[i], strlen(v->keys[i]), name, sizeof(name));
		show_one(s, key->path, v->kind == DOC_MAP ? name : NULL, &v->items[i]);
	}
}

void trust_show(FILE *to, const struct cfg_loaded *l, const bool *wanted)
{
	struct showing s = { .to = to, .l = l, .wanted = wanted };

	conf_each_key(l->cfg, show_key, &s);
	if (s.n > SHOWN_MAX)
		(void)fprintf(to, "  ... and %zu more values: read the file\n", s.n - SHOWN_MAX);
}

/* ---- asking ---- */

static void names(const struct sb_dirs *d, const struct cfg_loaded *l, const bool *wanted,
		  char *out, size_t cap)
{
	sb_autofd int dir = open_state(d, NULL);
	json_t *list = NULL;
	size_t n = 0;

	out[0] = '\0';
	if (dir >= 0 && load(d, dir, &list, NULL) < 0)
		list = NULL;
	for (size_t i = 0; i < l->n_files && n + 8 < cap; i++) {
		if (!wanted[i] || has(list, l->files[i].path, l->files[i].sha256))
			continue;
		n += (size_t)snprintf(out + n, cap - n, "%s%s", n > 0 ? ", " : "",
				      l->files[i].path);
	}
	json_decref(list);
}

/* The text of a file that nobody has parsed, for a terminal: what is not printable is escaped. */
static void show_text(FILE *to, const char *bytes, size_t len)
{
	const char *end = bytes + len;
	size_t n = 0;

	for (const char *at = bytes; at < end && n < SHOWN_MAX; n++) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		size_t one = (size_t)((nl ? nl : end) - at);
		char line[LINE_MAX_SHOWN + 1];
		char out[4 * LINE_MAX_SHOWN + 1];

		memcpy(line, at, SB_MIN(one, sizeof(line) - 1));
		line[SB_MIN(one, sizeof(line) - 1)] = '\0';
		net_text_escape(line, sizeof(line), out, sizeof(out));
		(void)fprintf(to, "  | %s%s\n", out, one > LINE_MAX_SHOWN ? " ..." : "");
		at = nl ? nl + 1 : end;
		if (n + 1 == SHOWN_MAX && at < end)
			(void)fprintf(to, "  | ... and %zu more bytes: read the file\n",
				      (size_t)(end - at));
	}
}

static int not_accepted(const char *which, int answer, struct sb_err *err)
{
	return sb_err_set(err, -EACCES, "%s: %s; read it, then accept it with: sendbox config trust "
			  "(or run with --trust-config, or --no-config)", which,
			  answer == 0 ? "not accepted"
				      : "new or changed since you accepted it, and a session could "
					"have written it");
}

int trust_ask_file(const struct sb_dirs *d, const struct cfg_loaded *one,
		   const struct cfg_admit *file, bool terminal, struct sb_err *err)
{
	const bool wanted[] = { true };
	int r = -ENOTTY;

	if (terminal && cli_term_can_ask()) {
		cli_error("%s: new or changed since you accepted it; it says:", file->path);
		show_text(stderr, file->bytes, file->len);
		r = cli_term_ask("Use it, now and until it changes? [y/N] ");
		if (r > 0)
			return trust_add(d, one, wanted, err);
	}
	return not_accepted(file->path, r, err);
}

int trust_ask(const struct sb_dirs *d, const struct cfg_loaded *l, const bool *wanted,
	      bool terminal, struct sb_err *err)
{
	char which[400];
	char question[700];
	int r = -ENOTTY;

	names(d, l, wanted, which, sizeof(which));
	if (terminal && cli_term_can_ask()) {
		cli_error("%s: new or changed since you accepted it; it asks for:", which);
		trust_show(stderr, l, wanted);
		(void)snprintf(question, sizeof(question),
			       "Use it, now and until it changes? [y/N] ");
		r = cli_term_ask(question);
		if (r > 0)
			return trust_add(d, l, wanted, err);
	}
	return not_accepted(which, r, err);
}
