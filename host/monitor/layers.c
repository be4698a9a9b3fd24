/* Namespace runtime: the server of the session's read-only layers. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "monitor.h"
#include "provider/layer.h"

struct args {
	const char *argv[4 + 2 * SB_PLAN_MAX_LAYERS];
	char text[SB_PLAN_MAX_LAYERS + 1][32];
	int fds[SB_PLAN_MAX_LAYERS];
	size_t n;
	size_t n_fds;
};

static int add_layers(const struct sb_plan *p, struct args *a, struct sb_err *err)
{
	for (size_t i = 0; i < p->n_layers; i++) {
		int r = sb_layer_open(&p->layers[i], &a->fds[a->n_fds], err);

		if (r < 0)
			return r;
		(void)snprintf(a->text[i], sizeof(a->text[i]), "%zu", 4 + a->n_fds++);
		a->argv[a->n++] = "--layer";
		a->argv[a->n++] = a->text[i];
	}
	return 0;
}

/* For an ordinary user no other id exists in the session, and an overlay cannot copy a file up
 * whose owner does not. */
static void add_owner(const struct sb_plan *p, struct args *a)
{
	char *text = a->text[SB_PLAN_MAX_LAYERS];

	if (geteuid() == 0)
		return;
	(void)snprintf(text, sizeof(a->text[0]), "%u:%u", p->uid, p->gid);
	a->argv[a->n++] = "--owner";
	a->argv[a->n++] = text;
}

int mon_start_layers(struct monitor *m, int *guest_end, struct sb_err *err)
{
	struct args a = { .argv = { "sendbox-imgfs" }, .n = 1 };
	sb_autofd int theirs = -1;
	int sv[2];
	int r = add_layers(m->plan, &a, err);

	add_owner(m->plan, &a);
	if (r == 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
		r = sb_err_set(err, -errno, "socketpair: %s", strerror(errno));
	if (r == 0) {
		theirs = sv[0];
		*guest_end = sv[1];
		r = mon_spawn(m, &m->fs[0], "server of layers", a.argv, theirs, a.fds, a.n_fds, err);
	}
	for (size_t i = 0; i < a.n_fds; i++)
		sb_fd_close(&a.fds[i]);
	return r;
}
