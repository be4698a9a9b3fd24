#include "report_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "store/audit_read.h"

#define SLACK_NS 120000000000ULL /* records are about in the order of their times */
#define CLOSE 256U               /* so few records are read rather than looked for */

static int time_at(struct sb_audit_reader *in, uint64_t seq, struct sb_audit_record *rec,
		   struct sb_err *err)
{
	int r = sb_audit_reader_seek(in, seq, err);

	do {
		r = r == 0 ? sb_audit_reader_next(in, rec, NULL, err) : r;
	} while (r == 0 && rec->seq < seq);
	return r;
}

/* Near the first record that is not older than @ns, and before it. */
static int find_time(struct sb_audit_reader *in, uint64_t ns, uint64_t *ret, struct sb_err *err)
{
	struct sb_audit_record rec;
	uint64_t low = sb_audit_reader_first(in);
	uint64_t step = CLOSE;
	uint64_t high;
	int r;

	for (;; step *= 2) { /* the end is not known: go on until it is passed */
		if (__builtin_add_overflow(low, step, &high))
			break;
		r = time_at(in, high, &rec, err);
		if (r < 0)
			return r;
		if (r == SB_AUDIT_END || rec.time_ns >= ns)
			break;
		low = high;
	}
	while (high - low > CLOSE) {
		uint64_t mid = low + (high - low) / 2;

		r = time_at(in, mid, &rec, err);
		if (r < 0)
			return r;
		if (r == SB_AUDIT_END || rec.time_ns >= ns)
			high = mid;
		else
			low = mid;
	}
	*ret = low;
	return 0;
}

static int read_records(struct sb_audit_reader *in, const struct session_record *s, struct report *r,
			struct sb_err *err)
{
	uint64_t from = s->started_ns > SLACK_NS ? s->started_ns - SLACK_NS : 0;
	uint64_t until = s->ended_ns ? s->ended_ns + SLACK_NS : UINT64_MAX;
	struct sb_audit_record rec;
	uint64_t seq = 0;
	int k = 0;

	if (s->audit_first >= 0)
		seq = (uint64_t)s->audit_first;
	else
		k = find_time(in, from, &seq, err);
	if (k == 0)
		k = sb_audit_reader_seek(in, seq, err);
	while (k == 0 && (k = sb_audit_reader_next(in, &rec, NULL, err)) == 0) {
		if (memcmp(rec.session, s->id, sizeof(rec.session)) == 0)
			report_add(r, &rec);
		else if (rec.time_ns > until)
			break;
	}
	return k < 0 ? k : 0;
}

int report_log(const struct cli_dirs *d, const struct session_record *s, struct report *r,
	       struct sb_err *err)
{
	sb_autoreader struct sb_audit_reader *in = NULL;
	sb_autofree char *head = NULL;
	sb_autofd int dir = -1;
	char path[4200];
	size_t len = 0;
	int k;

	(void)snprintf(path, sizeof(path), "%s/audit", d->state);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dir < 0)
		return sb_err_set(err, -errno, errno == ENOENT ? "there is no audit log here"
							       : "the audit log: %s", strerror(errno));
	k = sb_audit_reader_new(dir, &in, err);
	if (k == 0)
		k = read_records(in, s, r, err);
	if (k == 0 && sb_fd_read_file(dir, "head", SB_AUDIT_HEAD_MAX, &head, &len) == 0)
		report_head(r, head);
	return k;
}
