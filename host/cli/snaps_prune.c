#include "snaps_prune.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "audit_note.h"
#include "cli.h"
#include "self.h"
#include "state/session_record.h"

#define BATCH 200 /* ids of one record */
#define ID_SHOWN 12

struct prune {
	const struct cli_dirs *d;
	const struct snaps_prune *p;
	json_t *all;  /* as they are listed, the oldest first */
	json_t *firm; /* ids of sessions that are kept, or run */
	json_t *go;
	json_t *folders; /* of those that go: path -> number */
	size_t staying;  /* of such sessions */
	size_t by_hand;  /* left alone */
};

static void prune_done(struct prune *x)
{
	json_decref(x->all);
	json_decref(x->firm);
	json_decref(x->go);
	json_decref(x->folders);
}

static const char *text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static int on_session(void *arg, const struct session_record *s)
{
	const struct prune *x = arg;
	int k = 0;

	for (size_t i = 0; (s->kept || s->outcome == SESSION_RUNNING) && i < s->n_snapshots; i++) {
		const char *const ids[] = { s->snapshots[i].before, s->snapshots[i].after,
					    s->snapshots[i].quarantined };

		for (size_t n = 0; n < SB_ARRAY_LEN(ids); n++)
			if (ids[n][0])
				k |= json_object_set_new(x->firm, ids[n], json_true());
	}
	return k == 0 ? 0 : -ENOMEM;
}

static int on_snapshot(void *arg, char *line)
{
	const struct prune *x = arg;
	json_t *o = json_loads(line, JSON_REJECT_DUPLICATES, NULL);

	return json_array_append_new(x->all, o) < 0 ? -ENOMEM : 0;
}

/* How many of its folder are before it, of those that count; it is one of them now. */
static json_int_t nth(json_t *seen, const char *path)
{
	json_int_t n = json_integer_value(json_object_get(seen, path));

	return json_object_set_new(seen, path, json_integer(n + 1)) < 0 ? -1 : n;
}

/* One that is @n-th of its folder, the newest is 0. */
static bool may_go(struct prune *x, const json_t *o, json_int_t n)
{
	if (n < 0 || (uint64_t)n < x->p->keep)
		return false;
	if (x->p->before_ns > 0 && (uint64_t)json_integer_value(json_object_get(o, "time_ns")) >= x->p->before_ns)
		return false;
	if (!json_object_get(x->firm, text(o, "id")))
		return true;
	x->staying++;
	return false;
}

static int choose(struct prune *x)
{
	json_t *seen = json_object();
	int k = seen ? 0 : -ENOMEM;

	for (size_t i = json_array_size(x->all); k == 0 && i > 0; i--) { /* the newest first */
		json_t *o = json_array_get(x->all, i - 1);
		const bool by_hand = strcmp(text(o, "role"), "manual") == 0;

		x->by_hand += by_hand && !x->p->manual;
		if (by_hand && !x->p->manual)
			continue;
		if (!may_go(x, o, nth(seen, text(o, "path"))))
			continue;
		k = json_array_append(x->go, o) < 0 || nth(x->folders, text(o, "path")) < 0 ? -ENOMEM : 0;
	}
	json_decref(seen);
	return k;
}

static int list(struct prune *x, struct sb_err *err)
{
	const char *argv[] = { "snapshot", "ls", "--json", x->p->all ? "--all" : NULL, NULL };
	sb_autostate struct state *s = NULL;
	int r = self_lines(argv, on_snapshot, x, err);

	if (r == 0)
		r = state_open(&x->d->d, &s, err);
	if (r == 0)
		r = session_record_each(s, on_session, x, err);
	return r > 0 ? -EIO : r;
}

/* On record before it is done; which ones, and how many. */
static int note(const struct prune *x, size_t from, size_t n, struct sb_err *err)
{
	struct sb_audit_event e = { .kind = SB_AUDIT_SNAPSHOT, .action = "prune" };
	char ids[BATCH * (ID_SHOWN + 1)];
	size_t len = 0;

	for (size_t i = 0; i < n; i++)
		len += (size_t)snprintf(ids + len, sizeof(ids) - len, "%.*s", ID_SHOWN,
					text(json_array_get(x->go, from + i), "id")) + 1;
	if (json_object_size(x->folders) == 1)
		e.subject = json_object_iter_key(json_object_iter(x->folders));
	sb_audit_put_num(&e, "count", n);
	sb_audit_put_num(&e, "folders", json_object_size(x->folders));
	sb_audit_put_bool(&e, "manual", x->p->manual);
	sb_audit_put_list(&e, "ids", ids, len);
	return audit_note(&x->d->d, &e, 1, err);
}

static int drop(const struct prune *x, size_t from, size_t n, struct sb_err *err)
{
	struct snaps_call c;
	int r;

	snaps_call_init(&c, "rm");
	r = snaps_word(&c, "--spare"); /* what an interrupted undo needs */
	for (size_t i = 0; r == 0 && i < n; i++)
		r = snaps_pair(&c, "--only", text(json_array_get(x->go, from + i), "id"));
	if (r == 0)
		r = note(x, from, n, err);
	if (r == 0)
		r = snaps_run(x->d, &c, NULL, err);
	return r > 0 ? -EIO : r;
}

static void tell(const struct prune *x)
{
	const char *verb = x->p->dry ? "would be removed" : "removed";
	const char *path;
	json_t *n;
	json_t *o;
	size_t i;

	json_array_foreach(x->go, i, o)
		if (x->p->dry)
			printf("%.12s  %s  %-6s  %s\n", text(o, "id"), text(o, "time"), text(o, "role"), text(o, "path"));
	json_object_foreach(x->folders, path, n)
		printf("%lld of %s %s\n", (long long)json_integer_value(n), path, verb);
	printf("%zu snapshots %s\n", json_array_size(x->go), verb);
	if (x->staying > 0)
		printf("%zu snapshots of sessions that are kept, or run, stay\n", x->staying);
	if (x->by_hand > 0)
		printf("%zu made by hand stay; --manual removes them, too\n", x->by_hand);
}

int snaps_prune(const struct cli_dirs *d, const struct snaps_prune *p, struct sb_err *err)
{
	SB_CLEANUP(prune_done) struct prune x = { d, p, json_array(), json_object(), json_array(), json_object(), 0, 0 };
	int r = x.all && x.firm && x.go && x.folders ? list(&x, err) : -ENOMEM;

	if (r == 0)
		r = choose(&x);
	for (size_t i = 0; r == 0 && !p->dry && i < json_array_size(x.go); i += BATCH)
		r = drop(&x, i, SB_MIN(json_array_size(x.go) - i, (size_t)BATCH), err);
	if (r < 0)
		return err->code ? r : sb_err_set(err, r, "snapshots cannot be pruned: %s", strerror(-r));
	tell(&x);
	return 0;
}
