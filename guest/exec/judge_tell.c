/*
 * Telling: an event to PID 1, a line to the caller. The first event of its kind goes at once and
 * opens a slot for 250 ms; equal ones only count in the slot and go as one event when the window
 * ends. What finds no slot, or no room in the socket, is counted, for refused and other ones apart,
 * and told as "lost". The workload chooses how many there are, never how much memory they take.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "exec/judge_i.h"

#define MERGE_NS 250000000U
#define PTS_MAJOR 136U
#define PTS_MAJORS 8U

static void fill_path(struct sb_judge_event *ev, const char *path)
{
	size_t len = strnlen(path, sizeof(ev->path));

	if (len == sizeof(ev->path)) {
		len--;
		ev->cut = 1;
	}
	memcpy(ev->path, path, len);
}

static void fill_argv(struct sb_judge_event *ev, const struct sb_cmd_request *q)
{
	size_t used = 0;

	for (size_t i = 0; i < q->argc; i++) {
		size_t len = strlen(q->argv[i]);
		size_t room = sizeof(ev->argv) - used;

		if (room < 2 && (ev->cut = 1))
			break;
		if (len > room - 1) {
			len = room - 1;
			ev->cut = 1;
		}
		memcpy(ev->argv + used, q->argv[i], len);
		ev->argv[used + len] = '\0';
		used += len + 1;
		ev->n_argv++;
	}
	ev->argv_len = (uint16_t)used;
}

void tell_fill(struct judge *j, const struct call *c, const struct sb_cmd_request *q,
	       const struct sb_cmd_verdict *v, struct sb_judge_event *ev)
{
	size_t rule = sb_cmdpol_index(j->policy, v->rule);

	*ev = (struct sb_judge_event){
		.cmd = c->l->cmd,
		.pid = (uint32_t)c->tgid,
		.rule = rule < j->plan->commands.n_rules ? (uint32_t)rule : SB_JUDGE_NO_RULE,
		.count = 1,
		.action = (uint8_t)v->action,
		.top_level = !c->l->ran,
	};
	(void)snprintf(ev->why, sizeof(ev->why), "%s", v->why);
	fill_path(ev, q->path ? q->path : "");
	fill_argv(ev, q);
}

/* --- to PID 1 --------------------------------------------------------------------------- */

static bool equal(const struct sb_judge_event *a, const struct sb_judge_event *b)
{
	return a->cmd == b->cmd && a->rule == b->rule && a->action == b->action &&
	       a->top_level == b->top_level && a->killed == b->killed &&
	       a->argv_len == b->argv_len && strcmp(a->why, b->why) == 0 &&
	       strcmp(a->path, b->path) == 0 && memcmp(a->argv, b->argv, a->argv_len) == 0;
}

/* Return: whether it went; a dead reader takes everything, the session is over. */
static bool send_event(struct judge *j, const struct sb_judge_event *ev)
{
	int flags = MSG_NOSIGNAL | (j->patient ? 0 : MSG_DONTWAIT);

	return send(j->sock, ev, sizeof(*ev), flags) >= 0 ||
	       (errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM);
}

static void send_lost(struct judge *j)
{
	for (size_t i = 0; i < SB_ARRAY_LEN(j->lost); i++) {
		struct sb_judge_event ev = {
			.rule = SB_JUDGE_NO_RULE,
			.action = i == 0 ? SB_CMD_DENY : SB_CMD_LOG,
			.why = WHY_LOST,
		};

		if (j->lost[i] == 0)
			continue;
		ev.count = (uint32_t)SB_MIN(j->lost[i], (uint64_t)UINT32_MAX);
		if (!send_event(j, &ev))
			return;
		j->lost[i] -= ev.count;
	}
}

/* Tell what is counted; slots that had nothing to tell are free again. Return: whether any is
 * left. */
static bool flush(struct judge *j)
{
	size_t n = 0;

	for (size_t i = 0; i < j->n_slots; i++) {
		struct slot *s = &j->slots[i];

		if (s->ev.count == 0)
			continue;
		if (send_event(j, &s->ev))
			s->ev.count = 0;
		if (n != i)
			j->slots[n] = *s;
		n++;
	}
	j->n_slots = n;
	send_lost(j);
	return n > 0 || j->lost[0] > 0 || j->lost[1] > 0;
}

void tell_merged(struct judge *j)
{
	j->merge_ns = flush(j) ? sb_now_ns() + MERGE_NS : 0;
}

void tell_all(struct judge *j)
{
	j->patient = true;
	(void)flush(j);
	j->patient = false;
}

void tell(struct judge *j, const struct sb_judge_event *ev)
{
	if (j->merge_ns == 0)
		j->merge_ns = sb_now_ns() + MERGE_NS;
	for (size_t i = 0; i < j->n_slots; i++) {
		struct slot *s = &j->slots[i];

		if (!equal(&s->ev, ev))
			continue;
		if (s->ev.count < UINT32_MAX)
			s->ev.count++;
		s->ev.pid = ev->pid;
		return;
	}
	if (j->n_slots == SLOTS) {
		j->lost[ev->action != SB_CMD_DENY]++;
		return;
	}
	j->slots[j->n_slots].ev = *ev;
	if (send_event(j, ev))
		j->slots[j->n_slots].ev.count = 0;
	j->n_slots++;
}

/* --- to the caller ---------------------------------------------------------------------- */

/* A pipe or a terminal of its own; the session's is the host's to write to. */
static bool is_its_own(const struct listener *l, const struct stat *st)
{
	unsigned int m = major(st->st_rdev);

	if (st->st_dev == l->err_dev && st->st_ino == l->err_ino)
		return false;
	return S_ISFIFO(st->st_mode) ||
	       (S_ISCHR(st->st_mode) && m >= PTS_MAJOR && m < PTS_MAJOR + PTS_MAJORS);
}

void tell_caller(struct judge *j, const struct call *c, const struct sb_cmd_request *q,
		 const struct sb_cmd_verdict *v)
{
	char path[32];
	char text[1100];
	sb_autofd int probe = -1;
	sb_autofd int fd = -1;
	struct stat st;
	size_t n;

	(void)snprintf(path, sizeof(path), "%d/fd/2", c->tid);
	probe = look_open(j, path, O_PATH);
	if (probe < 0 || fstat(probe, &st) < 0 || !is_its_own(c->l, &st))
		return;
	(void)snprintf(path, sizeof(path), "self/fd/%d", probe);
	fd = look_open(j, path, O_WRONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return;
	sb_cmd_explain(v, q, text, sizeof(text) - 1);
	n = strlen(text);
	text[n] = '\n';
	/* nobody is to wait for it: when there is no room, there is none */
	if (write(fd, text, n + 1) < 0)
		sb_debug("a refusal was not told to its process");
}
