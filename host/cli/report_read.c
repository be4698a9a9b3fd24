/* Where a report comes from: the log, and the snapshots. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "audit_text.h"
#include "base/fd.h"
#include "base/num.h"
#include "report.h"
#include "report_log.h"
#include "self.h"

static int on_change(void *arg, char *line)
{
	json_t *o = json_loads(line, JSON_REJECT_DUPLICATES, NULL);

	if (o)
		report_add_file(arg, o);
	json_decref(o);
	return 0;
}

/* The program that knows snapshots says what changed. */
static void read_files(struct report *r, const struct session_record *s)
{
	char id[33];
	const char *argv[] = { "diff", "--json", id, NULL };
	char text[SB_ERR_TEXT_MAX + 40];
	struct sb_err err = { 0 };
	int k;

	sb_hex_write(s->id, 16, id);
	if (s->n_snapshots == 0) {
		report_no_files(r, s->outcome == SESSION_RUNNING ? "not known yet: the session runs"
				   : s->kind != SESSION_COMMAND ? "of no folder of yours"
							       : "no snapshots were taken");
		return;
	}
	k = self_lines(argv, on_change, r, &err);
	if (k == 0)
		return;
	if (k > 0)
		(void)snprintf(text, sizeof(text), "the snapshots cannot be compared: sendbox diff %.12s", id);
	else
		(void)snprintf(text, sizeof(text), "the snapshots cannot be compared: %s", err.text);
	report_no_files(r, text);
}

int report_read(const struct cli_dirs *d, const struct session_record *s, bool redact, json_t **ret,
		struct sb_err *err)
{
	struct report *r = NULL;
	struct sb_err log = { 0 };

	if (report_new(&r) < 0)
		return sb_err_set(err, -ENOMEM, "out of memory");
	if (report_log(d, s, r, &log) < 0)
		report_no_audit(r, log.text);
	read_files(r, s);
	*ret = report_json(r, s);
	(void)report_free(r);
	if (*ret && redact && audit_redact_json(*ret) < 0) {
		json_decref(*ret);
		*ret = NULL;
	}
	return *ret ? 0 : sb_err_set(err, -ENOMEM, "out of memory");
}
