/*
 * sendbox-snapshot - captures trees into the store of snapshots, and puts them back
 *
 * Descriptors and options: helper.h. What it reads was written by a session: names, links, contents,
 * attributes. It has the store and the trees, nothing else, and may write to a tree only to restore.
 */
#include <errno.h>
#include <jansson.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/num.h"
#include "helper.h"
#include "os/jail.h"
#include "snapshot.h"
#include "snapshot.syscalls.h"

struct args {
	const char *verb;
	const char *paths[SNAP_TREES_MAX];
	size_t n_paths;
	struct snap_rules rules;
	const char *label;
	const char *from;
	const char *to;
	const char *quarantined; /* id: has what was put back */
	const char *session;
	const char *session_path;
	const char *only[1024]; /* NULL-terminated */
	size_t n_only;
	bool mistaken; /* what was named is not there */
	bool json, stat, names, guarded, escape, heads, force, dry, sync, ask, spare, no_cache, go_on, back;
};

struct flag {
	const char *name;
	size_t at;
};
#define FLAG(n) { "--" #n, offsetof(struct args, n) }
static const struct flag flags[] = {
	FLAG(json), FLAG(stat), FLAG(names), FLAG(guarded), FLAG(escape), FLAG(heads), FLAG(force),
	FLAG(dry), FLAG(sync), FLAG(ask), FLAG(spare), { "--no-cache", offsetof(struct args, no_cache) },
	{ "--continue", offsetof(struct args, go_on) }, { "--abort", offsetof(struct args, back) },
};

static int set_flag(struct args *a, const char *word)
{
	for (size_t i = 0; i < SB_ARRAY_LEN(flags); i++)
		if (strcmp(word, flags[i].name) == 0) {
			*(bool *)((char *)a + flags[i].at) = true;
			return 0;
		}
	return -EINVAL;
}

static int inner_rule(struct args *a, const char *pattern)
{
	char *p = NULL;

	if (asprintf(&p, SNAP_RULE_INNER "%s", pattern) < 0)
		return -ENOMEM;
	a->rules.patterns[a->rules.n++] = p;
	return 0;
}

static int set_value(struct args *a, const char *word, const char *v)
{
	if (strcmp(word, "--path") == 0 && a->n_paths < SNAP_TREES_MAX)
		a->paths[a->n_paths++] = v;
	else if (strcmp(word, "--exclude") == 0 && a->rules.n < SB_SNAP_EXCLUDES_MAX)
		a->rules.patterns[a->rules.n++] = v;
	else if (strcmp(word, "--exclude-inner") == 0 && a->rules.n < SB_SNAP_EXCLUDES_MAX)
		return inner_rule(a, v);
	else if (strcmp(word, "--only") == 0 && a->n_only + 1 < SB_ARRAY_LEN(a->only))
		a->only[a->n_only++] = v;
	else if (strcmp(word, "--label") == 0)
		a->label = v;
	else if (strcmp(word, "--from") == 0)
		a->from = v;
	else if (strcmp(word, "--to") == 0)
		a->to = v;
	else if (strcmp(word, "--quarantined") == 0)
		a->quarantined = v;
	else if (strcmp(word, "--session") == 0)
		a->session = v;
	else if (strcmp(word, "--session-path") == 0)
		a->session_path = v;
	else
		return -EINVAL;
	return 0;
}

static int parse(struct args *a, int argc, char **argv)
{
	if (argc < 2)
		return -EINVAL;
	a->verb = argv[1];
	a->label = "";
	for (int i = 2; i < argc; i++) {
		if (set_flag(a, argv[i]) == 0)
			continue;
		if (i + 1 >= argc || set_value(a, argv[i], argv[i + 1]) < 0)
			return -EINVAL;
		i++;
	}
	return 0;
}

/* --- the jail --- */

static bool writes(const struct args *a)
{
	return strcmp(a->verb, "restore") == 0;
}

static int jail_me(const struct args *a, struct sb_err *err)
{
	int trees[SNAP_TREES_MAX + 1];
	const int store = SNAP_STORE_FD;
	struct sb_jail j = { .syscalls = snapshot_syscalls,
			     .n_syscalls = SB_ARRAY_LEN(snapshot_syscalls),
			     .flags = SB_JAIL_THREADS | SB_JAIL_IOCTL_ISATTY,
			     .root_fd = store,
			     .root_writable = true };
	struct rlimit rl;

	for (size_t i = 0; i < a->n_paths; i++)
		trees[i] = SNAP_TREE_FD + (int)i;
	if (writes(a)) {
		j.root_fds = trees;
		j.n_root_fds = a->n_paths;
	} else {
		j.read_fds = trees;
		j.n_read_fds = a->n_paths;
	}
	/* root reads what a session may not let it, and gives files back to who had them */
	j.keep_caps = 1ULL << CAP_DAC_READ_SEARCH;
	if (writes(a))
		j.keep_caps |= 1ULL << CAP_CHOWN | 1ULL << CAP_DAC_OVERRIDE | 1ULL << CAP_FOWNER |
			       1ULL << CAP_FSETID | 1ULL << CAP_SETFCAP;
	if (getrlimit(RLIMIT_NOFILE, &rl) == 0) { /* a folder is open for each level */
		rl.rlim_cur = rl.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &rl);
	}
	(void)umask(0077);
	tzset(); /* reads a file */
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || signal(SIGXFSZ, SIG_IGN) == SIG_ERR)
		return sb_err_set(err, -errno, "signals: %s", strerror(errno));
	return sb_jail_enter(&j, err);
}

/* --- verbs; 0 = fine, 1 = an answer that is no, or a negative errno with the text --- */

struct run {
	struct args *a;
	struct sb_snap_store *store;
	struct snap_tree tree; /* the first one */
};

static int do_create(struct run *r, struct sb_err *err)
{
	struct snap_captured got;
	struct snap_capture c = { .store = r->store, .tree = &r->tree, .rules = &r->a->rules,
				  .label = r->a->label, .role = SB_SNAP_ROLE_MANUAL,
				  .sync = r->a->sync, .no_cache = r->a->no_cache };
	char hex[SB_PACK_NAME];
	int k = snap_capture(&c, &got, err);

	if (k < 0)
		return k;
	sb_hex_write(got.id, SB_SNAP_HASH, hex);
	if (r->a->json)
		printf("{\"id\":\"%s\",\"files\":%llu,\"bytes\":%llu,\"read_files\":%llu,\"new_bytes\":%llu,"
		       "\"not_kept\":%llu,\"unreadable\":%llu}\n", hex,
		       (unsigned long long)got.counts.files, (unsigned long long)got.counts.bytes,
		       (unsigned long long)got.read_files, (unsigned long long)got.new_bytes,
		       (unsigned long long)got.counts.others, (unsigned long long)got.unreadable);
	else
		printf("%s\n", hex);
	if (got.unreadable > 0 && !r->a->json)
		(void)fprintf(stderr, "sendbox: %llu entries could not be read and are listed only\n",
			      (unsigned long long)got.unreadable);
	return 0;
}

/* What the user named; a session's own were there once. */
static int find(struct run *r, const char *word, uint8_t id[SB_SNAP_HASH], struct sb_err *err)
{
	int k = snap_find(r->store, word, id, err);

	r->a->mistaken = !r->a->session && (k == -ENOENT || k == -EINVAL || k == -ENOTUNIQ);
	return k;
}

static int both(struct run *r, struct snap_loaded *a, struct snap_loaded *b, struct sb_err *err)
{
	uint8_t from[SB_SNAP_HASH];
	uint8_t to[SB_SNAP_HASH] = { 0 };
	static const uint8_t none[SB_SNAP_HASH];
	int k;

	if (r->a->from) {
		k = find(r, r->a->from, from, err);
		if (k == 0 && r->a->to)
			k = find(r, r->a->to, to, err);
		if (k == -ENOENT && r->a->session) {
			*err = (struct sb_err){ 0 };
			k = sb_err_set(err, -ENODATA, "the snapshots of session %.12s are not there any more: somebody "
				       "removed them, with snapshot rm or prune", r->a->session);
		}
	} else {
		k = snap_session(r->store, r->a->session, r->a->session_path, from, to, err);
	}
	if (k == 0)
		k = snap_load(r->store, from, a, err);
	if (k < 0 || memcmp(to, none, sizeof(to)) == 0)
		return k;
	k = snap_load(r->store, to, b, err);
	if (k != -EBADMSG || !writes(r->a))
		return k;
	*err = (struct sb_err){ 0 }; /* a restore does without it, and says so */
	memcpy(b->id, to, sizeof(to));
	return 0;
}

/* Against what is there now, when there is no second one. */
static int now(struct run *r, uint64_t since_ns, struct snap_loaded *b, struct sb_err *err)
{
	struct snap_captured got;
	struct snap_capture c = { .store = r->store, .tree = &r->tree, .rules = &r->a->rules,
				  .label = "for a comparison", .role = SB_SNAP_ROLE_UNDO,
				  .since_ns = since_ns };
	int k;

	if (r->a->n_paths == 0)
		return sb_err_set(err, -ENODATA, "there is no snapshot of how the session ended");
	k = snap_capture(&c, &got, err);
	if (k == 0)
		k = snap_load(r->store, got.id, b, err);
	if (k == 0)
		k = snap_remove(r->store, got.id, err);
	return k;
}

/* What was left out then is left out now. */
static int same_rules(struct args *a, const struct sb_snap_manifest *m, struct sb_err *err)
{
	for (uint32_t i = a->rules.n > 0 ? m->n_excludes : 0; i < m->n_excludes; i++) {
		a->rules.patterns[i] = strndup((const char *)m->excludes[i].p, m->excludes[i].len);
		if (!a->rules.patterns[i])
			return sb_err_set(err, -ENOMEM, "out of memory");
		a->rules.n = i + 1;
	}
	return 0;
}

/* Each path that was named must be known to somebody: a mistyped one is not "nothing to do". */
static int known(struct run *r, const struct snap_loaded *x, const struct snap_loaded *y, const struct snap_loaded *z,
		 struct sb_err *err)
{
	for (size_t i = 0; x->bytes && i < r->a->n_only; i++) {
		const char *path = r->a->only[i];
		struct sb_snap_entry e;
		int k = snap_lookup(r->store, &x->m, path, &e);

		if (k == -ENOENT && y->bytes)
			k = snap_lookup(r->store, &y->m, path, &e);
		if (k == -ENOENT && z && z->bytes)
			k = snap_lookup(r->store, &z->m, path, &e);
		if (k == -ENOENT && r->a->n_paths > 0)
			k = snap_there(r->tree.fd, path);
		r->a->mistaken = k == -ENOENT;
		if (k == -ENOENT)
			return r->a->session ? sb_err_set(err, k, "\"%.200s\": neither a session, an instance nor a path "
							  "that session %.12s knows", path, r->a->session)
					     : sb_err_set(err, k, "\"%.200s\": no path of the snapshot", path);
		if (k < 0)
			return sb_err_set(err, k, "\"%.200s\": %s", path, strerror(-k));
	}
	return 0;
}

/* Has what was put back at the session's end. When it was removed meanwhile, that is said. */
static int load_quarantined(struct run *r, struct snap_loaded *z, struct sb_err *err)
{
	uint8_t id[SB_SNAP_HASH];
	int k = r->a->quarantined ? snap_find(r->store, r->a->quarantined, id, err) : -ENOENT;

	if (k == 0)
		return snap_load(r->store, id, z, err);
	*err = k == -ENOENT ? (struct sb_err){ 0 } : *err;
	if (k == -ENOENT && r->a->quarantined)
		(void)fprintf(stderr, "sendbox: snapshot %.12s, with what was put in quarantine, is not there any more\n",
			      r->a->quarantined);
	return k == -ENOENT ? 0 : k;
}

static int diff_quarantined(struct snap_diff_conf c, const struct snap_loaded *x, const struct snap_loaded *z,
			    uint64_t *n, struct sb_err *err)
{
	struct snap_diff_counts counts = { 0 };
	char hex[SB_PACK_NAME];
	int k;

	if (!z->bytes)
		return 0;
	sb_hex_write(z->id, SB_SNAP_HASH, hex);
	c.quarantined = hex;
	c.guarded = true;
	k = snap_diff(&c, &x->m, &z->m, &counts, err);
	*n = counts.guarded;
	return k;
}

static int do_diff(struct run *r, struct sb_err *err)
{
	struct args *a = r->a;
	struct snap_diff_conf c = { .store = r->store, .out = stdout, .json = a->json, .stat = a->stat,
				    .paths = a->n_only ? a->only : NULL, .names = a->names,
				    .guarded = a->guarded, .escape = a->escape, .heads = a->heads };
	struct snap_diff_counts n = { 0 };
	struct snap_loaded x = { 0 };
	struct snap_loaded y = { 0 };
	struct snap_loaded z = { 0 };
	uint64_t away = 0;
	int k = both(r, &x, &y, err);

	if (k == 0)
		k = load_quarantined(r, &z, err);
	if (k == 0)
		k = same_rules(a, &x.m, err);
	if (k == 0)
		k = known(r, &x, &y, &z, err);
	if (k == 0 && !y.bytes)
		k = now(r, x.m.time_ns, &y, err);
	if (k == 0)
		k = snap_diff(&c, &x.m, &y.m, &n, err);
	if (k == 0)
		k = diff_quarantined(c, &x, &z, &away, err);
	if (k == 0 && !a->json && !a->names)
		printf("%llu added, %llu changed, %llu deleted", (unsigned long long)n.added,
		       (unsigned long long)n.modified, (unsigned long long)n.deleted);
	if (k == 0 && !a->json && !a->names && away > 0)
		printf("; %llu in quarantine", (unsigned long long)away);
	if (k == 0 && !a->json && !a->names)
		(void)putchar('\n');
	snap_loaded_done(&x);
	snap_loaded_done(&y);
	snap_loaded_done(&z);
	return k;
}

static void tell_json(const struct args *a, const struct snap_restored *res, const char *saved)
{
	json_t *o = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:b}", "event", "end", "restored",
			      (json_int_t)res->restored, "removed", (json_int_t)res->removed, "conflicts",
			      (json_int_t)res->conflicts, "yours", (json_int_t)res->theirs, "lost",
			      (json_int_t)res->lost, "failed",
			      (json_int_t)res->failed, "dry_run", a->dry);

	if (o && saved[0])
		(void)json_object_set_new(o, "saved", json_string(saved));
	if (o)
		(void)snap_put_json(stdout, o, a->paths[0]);
	json_decref(o);
}

static void tell_restored(const struct args *a, const struct snap_restored *res)
{
	const char *would = a->dry ? "would be " : "";
	char hex[SB_PACK_NAME] = "";

	if (snap_is_set(res->saved))
		sb_hex_write(res->saved, SB_SNAP_HASH, hex);
	if (a->json) {
		tell_json(a, res, hex);
		return;
	}
	printf("%llu %srestored, %llu %sremoved", (unsigned long long)res->restored, would,
	       (unsigned long long)res->removed, would);
	if (res->conflicts > 0)
		printf(", %llu left alone because you changed them, too (--force puts them back)",
		       (unsigned long long)res->conflicts);
	if (res->theirs > 0)
		printf(", %llu of yours left alone", (unsigned long long)res->theirs);
	if (res->lost > 0)
		printf(", %llu cannot be given back", (unsigned long long)res->lost);
	if (res->failed > 0)
		printf(", %llu %sfailed", (unsigned long long)res->failed, a->dry ? "would have " : "");
	if (hex[0])
		printf("; what was there is snapshot %.12s", hex);
	(void)putchar('\n');
}

static void tell_asker(const struct snap_restore *c, const struct snap_restored *res)
{
	const struct snap_msg_end m = { .type = SNAP_MSG_END, .restored = res->restored,
					.removed = res->removed, .conflicts = res->conflicts,
					.yours = res->theirs, .lost = res->lost, .failed = res->failed };

	if (c->ask >= 0 && send(c->ask, &m, sizeof(m), MSG_NOSIGNAL) < 0)
		sb_debug("nobody listens any more");
}

static int do_restore(struct run *r, struct sb_err *err)
{
	struct args *a = r->a;
	struct snap_loaded x = { 0 };
	struct snap_loaded y = { 0 };
	char head[SB_SNAP_PATH_MAX * 4 + 8];
	struct snap_restored res;
	struct snap_restore c = { .store = r->store, .tree = &r->tree, .rules = &a->rules,
				  .paths = a->n_only ? a->only : NULL, .force = a->force, .dry = a->dry,
				  .guarded = a->guarded, .json = a->json, .out = stdout,
				  .ask = a->ask ? SNAP_SOCK_FD : -1,
				  .going_on = a->go_on ? SNAP_GO_FINISH : a->back ? SNAP_GO_BACK : SNAP_GO_START };
	int k = c.going_on == SNAP_GO_START ? both(r, &x, &y, err) : 0;

	c.target = x.id;
	c.expect = snap_is_set(y.id) ? y.id : NULL;
	if (k == 0 && x.bytes)
		k = same_rules(a, &x.m, err);
	if (k == 0)
		k = known(r, &x, &y, NULL, err);
	if (k == 0 && a->heads && !a->json) {
		snap_text((const uint8_t *)a->paths[0], strlen(a->paths[0]), head, sizeof(head));
		printf("%s:\n", head);
	}
	if (k == 0)
		k = snap_restore(&c, &res, err);
	if (k == 0) {
		tell_restored(a, &res);
		tell_asker(&c, &res);
	}
	snap_loaded_done(&x);
	snap_loaded_done(&y);
	return k < 0 ? k : res.conflicts + res.theirs + res.lost + res.failed > 0;
}

static int do_verify(struct run *r, struct sb_err *err)
{
	uint8_t id[SB_SNAP_HASH];
	int64_t k = r->a->from ? find(r, r->a->from, id, err) : 0;

	if (k == 0)
		k = snap_verify(r->store, r->a->from ? id : NULL, stdout, r->a->json, err);
	if (k >= 0 && r->a->json)
		printf("{\"findings\":%lld}\n", (long long)k);
	else if (k >= 0)
		printf(k == 0 ? "the store of snapshots is whole\n" : "%lld findings\n", (long long)k);
	return k < 0 ? (int)k : k > 0;
}

static int do_rm(struct run *r, struct sb_err *err)
{
	int k = 0;

	for (size_t i = 0; k == 0 && i < r->a->n_only; i++) {
		uint8_t id[SB_SNAP_HASH];

		k = find(r, r->a->only[i], id, err);
		if (k == 0 && r->a->spare && snap_needed(r->store, id))
			continue;
		if (k == 0 && snap_needed(r->store, id))
			k = sb_err_set(err, -EBUSY, "snapshot %.16s: an undo that was interrupted needs it; finish that with "
				       "sendbox undo --continue, or take it back with --abort", r->a->only[i]);
		if (k == 0)
			k = snap_remove(r->store, id, err);
	}
	return k;
}

static int do_gc(struct run *r, struct sb_err *err)
{
	struct snap_gone gone;
	int k = 0;

	if (strcmp(r->a->verb, "rm") == 0)
		k = do_rm(r, err);
	if (k == 0)
		k = snap_gc(r->store, &gone, err);
	if (k == 0)
		printf("%.1f MiB freed\n", (double)gone.bytes / (1024.0 * 1024.0));
	return k;
}

static int do_ls(struct run *r, struct sb_err *err)
{
	return snap_ls(r->store, r->a->session_path, stdout, r->a->json, err);
}

/* The ids of a session's snapshots, for the command line. */
static int do_session(struct run *r, struct sb_err *err)
{
	uint8_t before[SB_SNAP_HASH];
	uint8_t after[SB_SNAP_HASH];
	char hex[2][SB_PACK_NAME];
	int k = snap_session(r->store, r->a->session, r->a->session_path, before, after, err);

	if (k < 0)
		return k;
	sb_hex_write(before, SB_SNAP_HASH, hex[0]);
	sb_hex_write(after, SB_SNAP_HASH, hex[1]);
	printf("%s %s\n", hex[0], hex[1]);
	return 0;
}

/* Where a snapshot is of, as it is. */
static int do_path(struct run *r, struct sb_err *err)
{
	struct snap_loaded x = { 0 };
	uint8_t id[SB_SNAP_HASH];
	int k = find(r, r->a->from ? r->a->from : "", id, err);

	if (k == 0)
		k = snap_load(r->store, id, &x, err);
	if (k == 0)
		(void)fwrite(x.m.path.p, 1, x.m.path.len, stdout);
	snap_loaded_done(&x);
	return k;
}

static int do_serve(struct run *r, struct sb_err *err)
{
	static struct snap_tree trees[SNAP_TREES_MAX];

	for (size_t i = 0; i < r->a->n_paths; i++)
		snap_tree_init(&trees[i], SNAP_TREE_FD + (int)i, r->a->paths[i]);
	return snap_serve(r->store, trees, r->a->n_paths, &r->a->rules, SNAP_SOCK_FD, err);
}

static const struct verb {
	const char *name;
	int (*fn)(struct run *r, struct sb_err *err);
	bool exclusive;
} verbs[] = {
	{ "create", do_create, false }, { "diff", do_diff, false },	  { "gc", do_gc, true },
	{ "ls", do_ls, false },		{ "path", do_path, false },
	{ "restore", do_restore, false },
	{ "rm", do_gc, true },		{ "serve", do_serve, false },	  { "session", do_session, false },
	{ "verify", do_verify, false },
};

static int run(struct args *a, const struct verb *v, struct sb_err *err)
{
	struct run r = { .a = a };
	int k = jail_me(a, err);

	if (k == 0)
		k = sb_snap_store_open(SNAP_STORE_FD, v->exclusive, &r.store, err);
	if (k < 0)
		return k;
	if (a->n_paths > 0)
		snap_tree_init(&r.tree, SNAP_TREE_FD, a->paths[0]);
	k = v->fn(&r, err);
	(void)sb_snap_store_free(r.store);
	if (k >= 0 && fflush(stdout) != 0)
		k = sb_err_set(err, -EIO, "cannot write to standard output");
	return k;
}

int main(int argc, char **argv)
{
	static struct args a;
	struct sb_err err = { 0 };
	const struct verb *v = NULL;
	int k = parse(&a, argc, argv);

	sb_log_init("sendbox-snapshot");
	for (size_t i = 0; k == 0 && i < SB_ARRAY_LEN(verbs); i++)
		if (strcmp(verbs[i].name, a.verb) == 0)
			v = &verbs[i];
	if (!v) {
		sb_log("sendbox starts this program; it is of no use by hand");
		return 2;
	}
	k = run(&a, v, &err);
	if (k < 0) {
		const char *why = err.text[0] ? err.text : strerror(-k);
		char text[SB_ERR_TEXT_MAX * 4 + 8];

		(void)fflush(stdout);
		snap_text((const uint8_t *)why, strlen(why), text, sizeof(text));
		(void)fprintf(stderr, "sendbox: %s\n", text);
	}
	_exit(k >= 0 ? k : a.mistaken ? 2 : k == -ENODATA ? 1 : 124);
}
