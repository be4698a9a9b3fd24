/* The report as JSON, pinned: tests/golden/report-1.json is version 1. Names and types in it never change; further
 * keys may come (add them there). */
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>

#include "base/fd.h"
#include "plan_net.h"
#include "report.h"
#include "t.h"

bool plan_net_is_own(const struct sb_addr *a)
{
	(void)a;
	return false;
}

static struct report *r;
static uint64_t seq;

static void add(struct sb_audit_event *e)
{
	static const uint8_t prev[SB_AUDIT_HASH];
	static char line[SB_AUDIT_LINE_MAX];
	struct sb_audit_record rec;
	struct sb_err err = { 0 };
	int n;

	e->time_ns = 1700000000000000000;
	e->session[0] = 0xab;
	n = sb_audit_encode(e, seq, prev, line);
	REQUIRE(n > 0);
	REQUIRE(sb_audit_parse(line, (size_t)n - 1, &rec, &err) == 0);
	seq++;
	report_add(r, &rec);
}

#define ADD(...) add(&(struct sb_audit_event){ __VA_ARGS__ })

static void add_records(void)
{
	static const char words[] = "npm\0install\0left-pad";
	static const char rm[] = "rm\0-rf\0x";
	struct sb_audit_event start = { .kind = SB_AUDIT_SESSION, .action = "start", .subject = "/usr/bin/npm" };
	struct sb_audit_event closed = { .kind = SB_AUDIT_NETWORK, .action = "close", .subject = "a.test:443" };
	struct sb_audit_event ssh = { .kind = SB_AUDIT_SSH, .verdict = SB_AUDIT_ALLOW, .action = "sign",
				      .subject = "git.test" };
	struct sb_audit_event placed = { .kind = SB_AUDIT_COMMAND, .verdict = SB_AUDIT_DENY, .action = "start",
					 .subject = "rm", .rule = "rm ** (/p/.sendbox.yaml:6)", .reason = "rule" };

	sb_audit_put_list(&start, "argv", words, sizeof(words));
	add(&start);
	ADD(.kind = SB_AUDIT_NETWORK, .verdict = SB_AUDIT_ALLOW, .action = "connect", .subject = "a.test:443");
	sb_audit_put_num(&closed, "up", 100);
	sb_audit_put_num(&closed, "down", 2000);
	add(&closed);
	ADD(.kind = SB_AUDIT_NETWORK, .verdict = SB_AUDIT_DENY, .action = "resolve", .subject = "b.test",
	    .reason = "name-not-allowed");
	ADD(.kind = SB_AUDIT_COMMAND, .verdict = SB_AUDIT_DENY, .action = "start", .subject = "/bin/rm",
	    .rule = "deny rm *", .reason = "rule");
	sb_audit_put_list(&placed, "argv", rm, sizeof(rm)); /* its rule says where it is: no remedy beside that */
	add(&placed);
	sb_audit_put(&ssh, "key", "SHA256:abc");
	sb_audit_put(&ssh, "user", "git");
	add(&ssh);
	ADD(.kind = SB_AUDIT_SECRET, .verdict = SB_AUDIT_ALLOW, .action = "use", .subject = "TOKEN");
	ADD(.kind = SB_AUDIT_APPROVAL, .verdict = SB_AUDIT_ALLOW, .action = "answer", .subject = "git push",
	    .rule = "ask git push *", .reason = "once");
	ADD(.kind = SB_AUDIT_SESSION, .action = "end", .subject = "exit");
}

static void add_change(const char *text)
{
	json_t *o = json_loads(text, 0, NULL);

	REQUIRE(o != NULL);
	report_add_file(r, o);
	json_decref(o);
}

static struct session_record session(void)
{
	static struct session_snapshot snap = { .source = (char *)(uintptr_t)"/p", .before = "b0", .after = "a0",
					       .quarantined = "c0" };

	return (struct session_record){
		.id = { 0xab },
		.kind = SESSION_COMMAND,
		.project = (char *)(uintptr_t)"/p",
		.agent = (char *)(uintptr_t)"claude",
		.instance = (char *)(uintptr_t)"i1",
		.provider = (char *)(uintptr_t)"namespace",
		.argv = (char *)(uintptr_t)"[\"npm\",\"install\",\"left-pad\"]",
		.plan_sha256 = { 0xcd },
		.started_ns = 1700000000000000000,
		.ended_ns = 1700000001500000000,
		.outcome = SESSION_ENDED,
		.exit_status = 3,
		.audit_first = 7,
		.audit_last = 15,
		.kept = true,
		.snapshots = &snap,
		.n_snapshots = 1,
	};
}

/* One key a line, so that a difference is seen. */
static void compare(json_t *doc, const char *name)
{
	sb_autofree char *got = doc ? json_dumps(doc, JSON_INDENT(1) | JSON_SORT_KEYS) : NULL;
	sb_autofree char *want = NULL;
	char path[400];
	size_t len = 0;

	(void)snprintf(path, sizeof(path), "%s/%s", GOLDEN, name);
	REQUIRE(got != NULL);
	CHECK_EQ(sb_fd_read_file(AT_FDCWD, path, 1U << 20, &want, &len), 0);
	if (want && len > 0 && want[len - 1] == '\n')
		want[len - 1] = '\0';
	CHECK_STR(got, want ? want : "");
	json_decref(doc);
}

TEST(everything)
{
	const struct session_record s = session();

	REQUIRE(report_new(&r) == 0);
	add_records();
	add_change("{\"status\":\"A\",\"kind\":\"file\",\"path\":\"Makefile\",\"guarded\":\"builds run it\",\"size\":5,"
		   "\"mode\":420,\"source\":\"/p\"}");
	add_change("{\"status\":\"M\",\"kind\":\"file\",\"path\":\"a\",\"old_size\":1,\"size\":2,\"old_mode\":420,"
		   "\"mode\":420,\"source\":\"/p\"}");
	add_change("{\"status\":\"D\",\"kind\":\"FIFO\",\"path\":\"pipe\",\"lost\":true,\"source\":\"/p\"}");
	add_change("{\"status\":\"A\",\"kind\":\"file\",\"path\":\".envrc\",\"guarded\":\"the shell runs it\",\"size\":5,"
		   "\"mode\":420,\"source\":\"/p\",\"quarantined\":\"c0\"}");
	report_head(r, "sendbox-audit-head 1 ...");
	compare(report_json(r, &s), "report-1.json");
	r = report_free(r);
}

TEST(nothing_is_known)
{
	const struct session_record s = { .id = { 1 }, .kind = SESSION_COMMAND, .started_ns = 1700000000000000000,
					  .outcome = SESSION_CRASHED, .exit_status = -1, .audit_first = -1,
					  .audit_last = -1 };

	REQUIRE(report_new(&r) == 0);
	report_no_files(r, "no snapshots were taken");
	compare(report_json(r, &s), "report-1-unknown.json");
	r = report_free(r);
}
