/*
 * The user's own command that answers: JSON on its standard input, the verdict by its exit status and
 * the first line of its output. What is not one of the answers is a refusal.
 *
 *   status 0   the line says "once" (or nothing), "session", "forever", "pattern PATTERN",
 *              "pattern-forever PATTERN", "deny", "deny-forever" or "ask"
 *   status 1   deny
 *   status 3   ask: people decide
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "approvals_i.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/num.h"
#include "launch_i.h"
#include "os/spawn.h"

static struct hook *find(const struct approvals *a, uint64_t number)
{
	for (size_t i = 0; i < SB_APPR_MAX_OPEN; i++)
		if (a->hooks[i].a && a->hooks[i].number == number)
			return (struct hook *)(uintptr_t)&a->hooks[i];
	return NULL;
}

bool hook_runs(const struct approvals *a, uint64_t number)
{
	return find(a, number) != NULL;
}

static void done(struct hook *h)
{
	sb_io_del(&h->pid_io);
	sb_io_del(&h->out_io);
	sb_timer_del(&h->late);
	if (!h->ended) { /* it is the first of a process group */
		(void)kill(-h->pid, SIGKILL);
		(void)kill(h->pid, SIGKILL);
		while (waitpid(h->pid, NULL, 0) < 0 && errno == EINTR)
			continue;
	}
	sb_fd_close(&h->pidfd);
	sb_fd_close(&h->out);
	*h = (struct hook){ .pidfd = -1, .out = -1 };
}

void hook_stop(struct approvals *a, uint64_t number)
{
	struct hook *h = find(a, number);

	if (h)
		done(h);
}

static void failed(struct hook *h, const char *why)
{
	struct approvals *a = h->a;
	const struct sb_appr_question *o = sb_appr_get(a->appr, h->number);
	struct sb_appr_question was;
	struct sb_appr_result res;

	sb_log("approvals.hook: %s", why);
	done(h);
	if (!o)
		return;
	was = *o;
	if (sb_appr_refuse(a->appr, was.number, SB_APPR_HOOK_FAILED, approvals_now(), &res) == 0)
		approvals_close(a, &was, &res, "hook");
}

/* Return: 0; 1: people decide; -EINVAL. */
static int read_answer(struct hook *h, enum sb_appr_answer *ret, const char **pattern)
{
	char *blank;

	*pattern = NULL;
	*ret = SB_APPR_NO;
	if (!WIFEXITED(h->status) || h->len >= sizeof(h->text))
		return -EINVAL;
	if (WEXITSTATUS(h->status) == 1)
		return 0;
	if (WEXITSTATUS(h->status) == 3)
		return 1;
	if (WEXITSTATUS(h->status) != 0 || memchr(h->text, 0, h->len))
		return -EINVAL;
	h->text[h->len] = '\0';
	h->text[strcspn(h->text, "\n")] = '\0';
	if (h->text[0] == '\0') {
		*ret = SB_APPR_ONCE;
		return 0;
	}
	if (strcmp(h->text, "ask") == 0)
		return 1;
	blank = strchr(h->text, ' ');
	if (blank) {
		*blank = '\0';
		*pattern = blank + 1;
	}
	return sb_appr_answer_parse(h->text, ret);
}

static void finish(struct hook *h)
{
	struct approvals *a = h->a;
	struct sb_err err = { 0 };
	enum sb_appr_answer answer;
	const char *pattern;
	struct hook copy;
	int r;

	if (!h->ended || h->out >= 0)
		return;
	r = read_answer(h, &answer, &pattern);
	if (r < 0) {
		failed(h, "no answer that counts");
		return;
	}
	copy = *h;
	if (pattern)
		pattern = copy.text + (pattern - h->text);
	done(h);
	if (r == 1) {
		approvals_lost(a, copy.number, SB_APPR_HOOK);
		return;
	}
	r = approvals_answer(a, copy.number, answer, pattern, "hook", &err);
	if (r < 0 && sb_appr_get(a->appr, copy.number)) {
		struct sb_appr_question was = *sb_appr_get(a->appr, copy.number);
		struct sb_appr_result res;

		sb_log("approvals.hook: %s", err.text);
		if (sb_appr_refuse(a->appr, was.number, SB_APPR_HOOK_FAILED, approvals_now(), &res) == 0)
			approvals_close(a, &was, &res, "hook");
	}
}

static void on_out(struct sb_io *io, uint32_t events)
{
	struct hook *h = io->owner;
	char rest[256];
	bool full = h->len == sizeof(h->text);
	ssize_t n = read(h->out, full ? rest : h->text + h->len, full ? sizeof(rest) : sizeof(h->text) - h->len);

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		h->len += full ? 0 : (size_t)n;
		return;
	}
	sb_io_del(io);
	sb_fd_close(&h->out);
	finish(h);
}

static void on_end(struct sb_io *io, uint32_t events)
{
	struct hook *h = io->owner;

	(void)events;
	if (waitpid(h->pid, &h->status, WNOHANG) != h->pid)
		return;
	sb_io_del(io);
	h->ended = true;
	finish(h); /* or when its output ends; what it left behind may keep that open until the time-out */
}

static void on_late(struct sb_timer *t)
{
	failed(t->owner, "it took too long (approvals.hook_timeout)");
}

static char *describe(const struct approvals *a, const struct sb_appr_question *o)
{
	char hex[33];
	json_t *j;
	char *text;

	sb_hex_write(a->session, 16, hex);
	j = json_pack("{s:i,s:s,s:I,s:s,s:s,s:s,s:I}", "v", 1, "session", hex, "number",
		      (json_int_t)o->number, "kind", sb_appr_kind_name(o->kind), "subject", o->subject,
		      "rule", o->rule, "timeout_ms", (json_int_t)(a->conf.hook_ns / 1000000));
	text = j ? json_dumps(j, JSON_COMPACT) : NULL;
	json_decref(j);
	return text;
}

int hook_start(struct approvals *a, const struct sb_appr_question *o)
{
	struct hook *h = find(a, 0);
	sb_autofree char *text = describe(a, o);
	sb_autofd int in = -1;
	struct sb_err err = { 0 };
	struct sb_spawn_fd fds[3];
	int out[2];
	int r;

	for (size_t i = 0; i < SB_APPR_MAX_OPEN && !h; i++)
		if (!a->hooks[i].a)
			h = &a->hooks[i];
	if (!h || !text)
		return -ENOMEM;
	r = launch_memfd("sendbox-question", text, strlen(text), &in);
	if (r < 0 || lseek(in, 0, SEEK_SET) < 0 || pipe2(out, O_CLOEXEC) < 0)
		return r < 0 ? r : -errno;
	*h = (struct hook){ .a = a, .number = o->number, .pidfd = -1, .out = out[0] };
	fds[0] = (struct sb_spawn_fd){ in, 0 };
	fds[1] = (struct sb_spawn_fd){ out[1], 1 };
	fds[2] = (struct sb_spawn_fd){ STDERR_FILENO, 2 };
	r = sb_spawn_start(&(struct sb_spawn){ .path = a->conf.hook[0],
					       .argv = (const char *const *)a->conf.hook,
					       .env = (const char *const *)environ,
					       .fds = fds,
					       .n_fds = fcntl(2, F_GETFD) >= 0 ? 3 : 2,
					       .new_session = true },
			   &h->pid, &h->pidfd, &err);
	sb_fd_close(&out[1]);
	if (r == 0)
		r = sb_fd_set_nonblock(h->out, true);
	if (r < 0) {
		sb_log("approvals.hook: %s", err.code ? err.text : strerror(-r));
		h->ended = h->pid <= 0;
		done(h);
		return r;
	}
	if (sb_io_set(a->loop, &h->pid_io, h->pidfd, EPOLLIN, on_end, h) < 0 ||
	    sb_io_set(a->loop, &h->out_io, h->out, EPOLLIN, on_out, h) < 0) {
		done(h);
		return -ENOMEM;
	}
	sb_timer_set(a->loop, &h->late, a->conf.hook_ns, on_late, h);
	return 0;
}
