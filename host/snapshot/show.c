/* Lists of snapshots, and those of one session. */
#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <time.h>

#include "base/num.h"
#include "snapshot.h"

static const char *role_text(uint8_t role)
{
	static const char *const texts[] = { "", "manual", "before", "after", "undo" };

	return role < SB_ARRAY_LEN(texts) ? texts[role] : "";
}

static void time_text(uint64_t ns, bool json, char out[40])
{
	time_t t = (time_t)(ns / 1000000000U);
	struct tm tm;

	if (!(json ? gmtime_r(&t, &tm) : localtime_r(&t, &tm)) ||
	    strftime(out, 40, json ? "%Y-%m-%dT%H:%M:%SZ" : "%Y-%m-%d %H:%M:%S", &tm) == 0)
		out[0] = '\0';
}

static int show_one(const struct snap_loaded *l, FILE *out, bool json)
{
	const struct sb_snap_counts *c = &l->m.counts;
	char path[SB_SNAP_PATH_MAX * 4 + 8];
	char label[SB_SNAP_LABEL_MAX * 4 + 8];
	char hex[SB_PACK_NAME];
	char when[40];
	json_t *o;
	int r;

	sb_hex_write(l->id, SB_SNAP_HASH, hex);
	time_text(l->m.time_ns, json, when);
	snap_text(l->m.path.p, l->m.path.len, path, sizeof(path));
	snap_text(l->m.label.p, l->m.label.len, label, sizeof(label));
	if (!json) {
		bool session = l->m.role == SB_SNAP_ROLE_BEFORE || l->m.role == SB_SNAP_ROLE_AFTER;

		return fprintf(out, "%.12s  %s  %-6s %.*s%s%8llu files %10.1f MiB  %s\n", hex, when,
			       role_text(l->m.role), session ? 12 : SB_SNAP_LABEL_MAX, label,
			       label[0] ? "  " : "", (unsigned long long)c->files,
			       (double)c->bytes / (1024.0 * 1024.0), path) < 0 ? -EIO : 0;
	}
	o = json_pack("{s:s, s:s, s:I, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "id", hex, "time", when, "time_ns",
		      (json_int_t)l->m.time_ns, "role",
		      role_text(l->m.role), "label", label, "path", path, "files", (json_int_t)c->files,
		      "dirs", (json_int_t)c->dirs, "links", (json_int_t)c->links, "not_kept",
		      (json_int_t)c->others, "excluded", (json_int_t)c->excluded, "bytes", (json_int_t)c->bytes);
	r = o && json_dumpf(o, out, JSON_COMPACT) == 0 && fputc('\n', out) != EOF ? 0 : -EIO;
	json_decref(o);
	return r;
}

static bool of_path(const struct snap_loaded *l, const char *path)
{
	return !path || (l->m.path.len == strlen(path) && memcmp(l->m.path.p, path, l->m.path.len) == 0);
}

static void damaged(void *arg, const char *name, const char *why)
{
	(void)arg;
	(void)fprintf(stderr, "sendbox: snapshot %.16s: %s\n", name, why);
}

int snap_ls(struct sb_snap_store *s, const char *path, FILE *out, bool json, struct sb_err *err)
{
	struct snap_loaded *all = NULL;
	size_t n = 0;
	int r = snap_load_all(s, &all, &n, damaged, NULL, err);

	for (size_t i = 0; r == 0 && i < n; i++)
		if (of_path(&all[i], path))
			r = show_one(&all[i], out, json);
	if (all)
		snap_loaded_free(all, n);
	return r < 0 ? sb_err_set(err, r, "snapshot ls: %s", strerror(-r)) : 0;
}

static bool of_session(const struct snap_loaded *l, const char *session, const char *path)
{
	if (l->m.role != SB_SNAP_ROLE_BEFORE || !of_path(l, path))
		return false;
	return !session || (l->m.label.len >= strlen(session) && strlen(session) >= 4 &&
			    memcmp(l->m.label.p, session, strlen(session)) == 0);
}

int snap_session(struct sb_snap_store *s, const char *session, const char *path,
		 uint8_t before[SB_SNAP_HASH], uint8_t after[SB_SNAP_HASH], struct sb_err *err)
{
	struct snap_loaded *all = NULL;
	const struct snap_loaded *b = NULL;
	size_t n = 0;
	int r = snap_load_all(s, &all, &n, NULL, NULL, err);

	memset(after, 0, SB_SNAP_HASH);
	for (size_t i = n; r == 0 && !b && i > 0; i--) /* the newest first */
		if (of_session(&all[i - 1], session, path))
			b = &all[i - 1];
	for (size_t i = 0; b && i < n; i++)
		if (all[i].m.role == SB_SNAP_ROLE_AFTER && all[i].m.label.len == b->m.label.len &&
		    memcmp(all[i].m.label.p, b->m.label.p, b->m.label.len) == 0 &&
		    sb_snap_name_cmp(all[i].m.path.p, all[i].m.path.len, b->m.path.p, b->m.path.len) == 0)
			memcpy(after, all[i].id, SB_SNAP_HASH);
	if (b)
		memcpy(before, b->id, SB_SNAP_HASH);
	else if (r == 0)
		r = sb_err_set(err, -ENOENT, session ? "no snapshots of session \"%.40s\"%s%.300s"
						     : "no snapshots of a session%s%s%.300s",
			       session ? session : "", path ? " of " : "", path ? path : "");
	if (all)
		snap_loaded_free(all, n);
	return r;
}
