#include "retention_snaps.h"

#include <errno.h>
#include <string.h>

#include "base/num.h"
#include "self.h"

#define BATCH 64
#define SHORT 12 /* digits of the id that was put back, in the label of the snapshot before it */
#define UNDO_LABEL "before restoring "

struct listing {
	struct state *s;
	json_t *all;      /* as they were printed */
	json_t *sessions; /* ids that are remembered */
	json_t *firm;     /* first digits of the snapshots of those that are kept, or run */
	json_t *last;     /* folder -> its last snapshot before an undo */
};

static void listing_done(struct listing *l)
{
	json_decref(l->all);
	json_decref(l->sessions);
	json_decref(l->firm);
	json_decref(l->last);
}

void retention_snaps_done(struct retention_snaps *l)
{
	json_decref(l->v);
	l->v = NULL;
}

static const char *text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static int on_session(void *arg, const struct session_record *r)
{
	const struct listing *l = arg;
	char hex[33];
	int k;

	sb_hex_write(r->id, sizeof(r->id), hex);
	k = json_object_set_new(l->sessions, hex, json_true());
	for (size_t i = 0; k == 0 && (r->kept || r->outcome == SESSION_RUNNING) && i < r->n_snapshots; i++) {
		const char *const ids[] = { r->snapshots[i].before, r->snapshots[i].after,
					   r->snapshots[i].quarantined };

		for (size_t n = 0; n < SB_ARRAY_LEN(ids); n++)
			if (ids[n][0])
				k |= json_object_setn_new(l->firm, ids[n], SHORT, json_true());
	}
	return k == 0 ? 0 : -ENOMEM;
}

static int on_snapshot(void *arg, char *line)
{
	const struct listing *l = arg;
	json_t *o = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
	int k = o ? 0 : -EBADMSG;

	if (o && strcmp(text(o, "role"), "undo") == 0)
		k = json_object_set(l->last, text(o, "path"), o);
	if (o && k == 0)
		k = json_array_append(l->all, o);
	json_decref(o);
	return k < 0 && k != -EBADMSG ? -ENOMEM : k;
}

/* One that starts has its first snapshots before its row. */
static bool forgotten(const struct listing *l, const char *session)
{
	uint8_t id[16];

	return sb_hex_parse(session, id, sizeof(id)) == 0 && !json_object_get(l->sessions, session) &&
	       !session_record_alive(l->s, id);
}

static bool may_go(const struct listing *l, const json_t *o)
{
	const char *role = text(o, "role");
	const char *label = text(o, "label");

	if (strcmp(role, "before") == 0 || strcmp(role, "after") == 0)
		return forgotten(l, label);
	if (strcmp(role, "undo") != 0 || json_object_get(l->last, text(o, "path")) == o)
		return false;
	return strncmp(label, UNDO_LABEL, strlen(UNDO_LABEL)) != 0 ||
	       !json_object_get(l->firm, label + strlen(UNDO_LABEL));
}

static int choose(const struct listing *l, json_t *to)
{
	json_t *o;
	size_t i;

	json_array_foreach(l->all, i, o)
		if (may_go(l, o) && json_array_append(to, o) < 0)
			return -ENOMEM;
	return 0;
}

int retention_snaps_list(struct state *s, struct retention_snaps *ret, struct sb_err *err)
{
	static const char *const argv[] = { "snapshot", "ls", "--all", "--json", NULL };
	SB_CLEANUP(listing_done) struct listing l = { s, json_array(), json_object(), json_object(),
						  json_object() };
	json_t *v = json_array();
	int r = l.all && l.sessions && l.firm && l.last && v ? 0 : -ENOMEM;

	if (r == 0)
		r = self_lines(argv, on_snapshot, &l, err);
	if (r > 0)
		r = -EIO;
	if (r == 0)
		r = session_record_each(s, on_session, &l, err);
	if (r == 0)
		r = choose(&l, v);
	if (r < 0) {
		json_decref(v);
		return err->code ? r : sb_err_set(err, r, "snapshots cannot be listed: %s", strerror(-r));
	}
	ret->v = v;
	return 0;
}

size_t retention_snaps_older(const struct retention_snaps *l, uint64_t ns)
{
	size_t n = 0;

	while (n < json_array_size(l->v) &&
	       (uint64_t)json_integer_value(json_object_get(json_array_get(l->v, n), "time_ns")) < ns)
		n++;
	return n;
}

static int nothing(void *arg, char *line)
{
	(void)arg;
	(void)line;
	return 0;
}

static int rm(const struct retention_snaps *l, size_t n, struct sb_err *err)
{
	const char *argv[BATCH + 3] = { "snapshot", "rm" };

	for (size_t i = 0; i < n; i++)
		argv[i + 2] = text(json_array_get(l->v, i), "id");
	return self_lines(argv, nothing, NULL, err);
}

int retention_snaps_drop(struct retention_snaps *l, size_t n, size_t *removed, struct sb_err *err)
{
	while (n > 0 && json_array_size(l->v) > 0) {
		struct sb_err why = { 0 };
		size_t part = SB_MIN(SB_MIN(n, json_array_size(l->v)), (size_t)BATCH);
		int r = rm(l, part, &why);

		if (r > 0 && part > 1) { /* one that is gone already, or is needed, stops the others */
			part = 1;
			r = rm(l, part, &why);
		}
		if (r < 0)
			return sb_err_set(err, r, "snapshots cannot be removed: %s", why.text);
		*removed += r == 0 ? part : 0;
		n -= part;
		for (size_t i = 0; i < part; i++)
			(void)json_array_remove(l->v, 0);
	}
	return 0;
}
