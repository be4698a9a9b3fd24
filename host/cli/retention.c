#include "retention.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "os/loop.h"
#include "retention_snaps.h"
#include "self.h"
#include "sizes.h"

#define STAMP "retention" /* in <state>: when it was last applied */
#define EVERY_S 86400
#define SLACK 50 /* sessions beyond the limit before the background is bothered */

static const char *const keys[] = { "retention.sessions", "retention.max_age", "retention.snapshots_mb" };

void retention_of(const struct cfg *c, bool any, struct retention *ret, const char **ignored)
{
	uint64_t v[SB_ARRAY_LEN(keys)] = { 1000, 0, 0 };

	*ignored = NULL;
	for (size_t i = 0; c && i < SB_ARRAY_LEN(keys); i++) {
		const struct cfg_value *set = cfg_get(c, keys[i]);

		if (!set)
			continue;
		if (!any && (set->origin.layer == CFG_PROJECT || set->origin.layer == CFG_AGENT))
			*ignored = keys[i];
		else
			v[i] = (uint64_t)set->integer;
	}
	*ret = (struct retention){ .sessions = v[0], .age_ns = v[1] * 1000000U, .bytes = v[2] };
}

/* ---- who goes ---- */

struct one {
	uint8_t id[16];
	json_t *snapshots; /* ids; owned */
	uint64_t started_ns;
	bool firm;  /* stays in any case */
	bool last;  /* of its folder */
	bool goes;
};
struct plan {
	struct one *v; /* newest first */
	size_t n;
	json_t *projects; /* that had one already */
	int failed;
};

static void plan_done(struct plan *p)
{
	for (size_t i = 0; i < p->n; i++)
		json_decref(p->v[i].snapshots);
	free(p->v);
	json_decref(p->projects);
}

static int on_session(void *arg, const struct session_record *r)
{
	struct plan *p = arg;
	const char *project = r->project ? r->project : "";
	struct one *v = realloc(p->v, (p->n + 1) * sizeof(*v));
	struct one *o;

	if (!v)
		return -ENOMEM;
	p->v = v;
	o = &v[p->n];
	*o = (struct one){ .started_ns = r->started_ns,
			   .firm = r->kept || r->outcome == SESSION_RUNNING,
			   .snapshots = json_array() };
	p->n++;
	memcpy(o->id, r->id, sizeof(o->id));
	/* a name that JSON cannot hold counts as one that was not seen */
	o->last = r->kind == SESSION_COMMAND && !json_object_get(p->projects, project);
	if (o->last)
		(void)json_object_set_new(p->projects, project, json_true());
	for (size_t i = 0; i < r->n_snapshots; i++) {
		if (r->snapshots[i].before[0])
			(void)json_array_append_new(o->snapshots, json_string(r->snapshots[i].before));
		if (r->snapshots[i].after[0])
			(void)json_array_append_new(o->snapshots, json_string(r->snapshots[i].after));
		if (r->snapshots[i].quarantined[0])
			(void)json_array_append_new(o->snapshots, json_string(r->snapshots[i].quarantined));
	}
	return 0;
}

static void choose(struct plan *p, const struct retention *r)
{
	uint64_t now = sb_real_ns();
	uint64_t n = 0;

	for (size_t i = 0; i < p->n; i++) {
		struct one *o = &p->v[i];

		n++;
		o->goes = !o->firm && ((r->sessions && n > r->sessions) ||
				       (r->age_ns && !o->last && now - o->started_ns > r->age_ns &&
					now > o->started_ns));
	}
}

/* ---- how ---- */

static int nothing(void *arg, char *line)
{
	(void)arg;
	(void)line;
	return 0;
}

static int snapshot_rm(const char *id, size_t *n)
{
	const char *argv[] = { "snapshot", "rm", id, NULL };
	struct sb_err err = { 0 };
	int k = self_lines(argv, nothing, NULL, &err);

	*n += k == 0;
	return k < 0 ? k : 0; /* one that is gone already is no failure */
}

/* Snapshots of @o that no session names which stays. */
static int drop_snapshots(const struct one *o, const json_t *needed, size_t *n)
{
	json_t *id;
	size_t i;
	int r = 0;

	json_array_foreach(o->snapshots, i, id) {
		const char *text = json_string_value(id);

		if (r == 0 && text && !json_object_get(needed, text))
			r = snapshot_rm(text, n);
	}
	return r;
}

/* Their snapshots first: who is killed between the two forgets the rest the next time. */
static int remove_chosen(struct plan *p, struct state *s, struct retention_done *ret, struct sb_err *err)
{
	json_t *needed = json_object();
	int r = needed ? 0 : sb_err_set(err, -ENOMEM, "out of memory");
	json_t *id;
	size_t k;

	for (size_t i = 0; i < p->n; i++) {
		if (p->v[i].goes)
			continue;
		json_array_foreach(p->v[i].snapshots, k, id)
			(void)json_object_set_new(needed, json_string_value(id), json_true());
	}
	for (size_t i = p->n; r == 0 && i-- > 0;) {
		struct sb_err why = { 0 };

		if (!p->v[i].goes)
			continue;
		r = drop_snapshots(&p->v[i], needed, &ret->snapshots);
		if (r < 0) {
			(void)sb_err_set(err, r, "the snapshots of a session cannot be removed: %s",
					 strerror(-r));
			break;
		}
		r = session_record_remove(s, p->v[i].id, &why);
		if (r == 0)
			ret->sessions++;
		else if (r == -EBUSY || r == -ENOENT)
			r = 0; /* somebody else's doing */
		else
			(void)sb_err_set(err, r, "%s", why.text);
		p->v[i].firm = true; /* not once more */
		p->v[i].goes = false;
		if (json_array_size(p->v[i].snapshots) > 0)
			(void)json_array_clear(p->v[i].snapshots);
	}
	json_decref(needed);
	return r;
}

static uint64_t snapshot_bytes(const struct cli_dirs *d)
{
	char path[4200];

	(void)snprintf(path, sizeof(path), "%s/snapshots", d->state);
	return sizes_used(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
}

static int collect(void)
{
	const char *argv[] = { "snapshot", "gc", NULL };
	struct sb_err err = { 0 };

	return self_lines(argv, nothing, NULL, &err);
}

/* Snapshots that no session holds: what is too old, then the older half until it is small enough. */
static int drop_loose(const struct cli_dirs *d, struct state *s, const struct retention *r,
		      struct retention_done *ret, struct sb_err *err)
{
	SB_CLEANUP(retention_snaps_done) struct retention_snaps l = { NULL };
	const uint64_t now = sb_real_ns();
	int k;

	if (!r->age_ns && (!r->bytes || snapshot_bytes(d) <= r->bytes))
		return 0;
	k = retention_snaps_list(s, &l, err);
	if (k == 0 && r->age_ns && now > r->age_ns)
		k = retention_snaps_drop(&l, retention_snaps_older(&l, now - r->age_ns), &ret->loose, err);
	while (k == 0 && r->bytes && json_array_size(l.v) > 0 && snapshot_bytes(d) > r->bytes)
		k = retention_snaps_drop(&l, (json_array_size(l.v) + 1) / 2, &ret->loose, err);
	return k;
}

/* The older half of those that may go, until it is small enough or nothing more can go. */
static int by_size(struct plan *p, const struct cli_dirs *d, struct state *s, const struct retention *r,
		   struct retention_done *ret, struct sb_err *err)
{
	while (r->bytes && snapshot_bytes(d) > r->bytes) {
		size_t may = 0;
		size_t chosen = 0;
		int k;

		for (size_t i = 0; i < p->n; i++)
			may += !p->v[i].firm && !p->v[i].last && json_array_size(p->v[i].snapshots) > 0;
		if (may == 0)
			return 0;
		for (size_t i = p->n; i-- > 0 && chosen < (may + 1) / 2;)
			if (!p->v[i].firm && !p->v[i].last && json_array_size(p->v[i].snapshots) > 0) {
				p->v[i].goes = true;
				chosen++;
			}
		k = remove_chosen(p, s, ret, err);
		if (k < 0)
			return k;
		if (collect() != 0)
			return sb_err_set(err, -EIO, "sendbox snapshot gc failed");
	}
	return 0;
}

static void stamp(const struct cli_dirs *d)
{
	char path[4200];
	sb_autofd int fd = -1;

	(void)snprintf(path, sizeof(path), "%s/" STAMP, d->state);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0)
		(void)futimens(fd, NULL);
}

int retention_apply(const struct cli_dirs *d, struct state *s, const struct retention *r,
		    struct retention_done *ret, struct sb_err *err)
{
	SB_CLEANUP(plan_done) struct plan p = { .projects = json_object() };
	int k = session_record_each(s, on_session, &p, err);

	*ret = (struct retention_done){ 0 };
	stamp(d);
	if (k < 0)
		return err->code ? k : sb_err_set(err, k, "out of memory");
	choose(&p, r);
	k = remove_chosen(&p, s, ret, err);
	if (k == 0 && ret->snapshots > 0 && collect() != 0)
		k = sb_err_set(err, -EIO, "sendbox snapshot gc failed");
	if (k == 0)
		k = drop_loose(d, s, r, ret, err);
	return k < 0 ? k : by_size(&p, d, s, r, ret, err);
}

void retention_after(const struct cli_dirs *d, struct state *s, const struct retention *r)
{
	static const char *const argv[] = { "gc", "--retention", NULL };
	struct sb_err err = { 0 };
	struct stat st;
	char path[4200];
	uint64_t n = 0;
	bool due = false;

	(void)snprintf(path, sizeof(path), "%s/" STAMP, d->state);
	if (lstat(path, &st) < 0) /* the first session of all */
		stamp(d);
	else
		due = (r->age_ns || r->bytes) && time(NULL) - st.st_mtime > EVERY_S;
	if (!due && r->sessions && session_record_count(s, &n, &err) == 0)
		due = n > r->sessions + SLACK;
	if (due && self_background(argv, &err) < 0)
		return; /* the next session tries again; sendbox gc tells why */
}
