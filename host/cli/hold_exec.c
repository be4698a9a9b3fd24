/* A further command: the client's words and descriptors, the session's environment. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "crypto/crypto.h"
#include "hold_i.h"
#include "wire/exec_req.h"

static bool same_name(const char *a, const char *b)
{
	size_t n = strcspn(a, "=");

	return n == strcspn(b, "=") && memcmp(a, b, n) == 0;
}

static bool overridden(const struct sb_exec_req *q, const char *kv)
{
	const char *p = q->env;

	for (uint32_t i = 0; i < q->n_env; i++, p += strlen(p) + 1)
		if (same_name(p, kv))
			return true;
	return false;
}

/* The session's variables, then those of the request, which win. */
static int merge(struct hold *h, const struct sb_exec_req *q, struct sb_buf *out)
{
	sb_autobuf struct sb_buf env;
	struct sb_exec_req all = *q;

	sb_buf_init(&env, SB_EXEC_REQ_MAX);
	all.n_env = q->n_env;
	for (char **e = h->env; e && *e; e++)
		if (!overridden(q, *e)) {
			sb_buf_add(&env, *e, strlen(*e) + 1);
			all.n_env++;
		}
	sb_buf_add(&env, q->env, q->env_len);
	all.env = (const char *)env.data;
	all.env_len = (uint32_t)env.len;
	if (sb_buf_error(&env) < 0)
		return sb_buf_error(&env);
	sb_exec_req_write(out, &all);
	sb_wipe(env.data, env.len);
	return sb_buf_error(out);
}

static int read_all(int fd, struct sb_buf *b)
{
	struct stat st;
	sb_autofree char *p = NULL;
	int seals = fcntl(fd, F_GET_SEALS); /* -1: a file elsewhere, whose reading may hang */
	ssize_t n;

	if (seals < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 ||
	    st.st_size > (off_t)SB_EXEC_REQ_MAX ||
	    (seals & (F_SEAL_WRITE | F_SEAL_SHRINK)) != (F_SEAL_WRITE | F_SEAL_SHRINK))
		return -EBADMSG;
	p = malloc((size_t)st.st_size);
	if (!p)
		return -ENOMEM;
	n = sb_fd_read_at(fd, p, (size_t)st.st_size, 0);
	if (n != (ssize_t)st.st_size)
		return -EBADMSG;
	sb_buf_add(b, p, (size_t)n);
	sb_wipe(p, (size_t)n);
	return sb_buf_error(b);
}

static void refuse(struct hold_client *c, const char *text)
{
	struct sb_ipc_failed f = { .fail = SB_FAIL_INTERNAL };

	(void)snprintf(f.text, sizeof(f.text), "%s", text);
	if (sb_ipc_send(c->sock, SB_ATT_REFUSED, &f, sizeof(f), NULL, 0) < 0)
		hold_client_drop(c);
}

int hold_exec(struct hold_client *c, struct sb_ipc_msg *msg)
{
	struct sb_ipc_run run;
	sb_autobuf struct sb_buf raw;
	sb_autobuf struct sb_buf whole;
	sb_autofd int fd = -1;
	struct sb_exec_req q;
	int fds[4];
	int r;

	sb_buf_init(&raw, SB_EXEC_REQ_MAX);
	sb_buf_init(&whole, SB_EXEC_REQ_MAX);
	if (c->cmd != 0)
		return -EBADMSG;
	memcpy(&run, msg->data, sizeof(run));
	if (!c->h->r->started || c->h->over) {
		refuse(c, "the session's command does not run yet, or not any more");
		return 0;
	}
	r = read_all(msg->fds[3], &raw);
	if (r == 0)
		r = sb_exec_req_parse(raw.data, raw.len, &q);
	if (r == 0)
		r = merge(c->h, &q, &whole);
	if (r == 0)
		r = launch_memfd("sendbox-exec", whole.data, whole.len, &fd);
	sb_wipe(raw.data, raw.len);
	sb_wipe(whole.data, whole.len);
	if (r == -EFBIG) {
		refuse(c, "words and environment together are too long");
		return 0;
	}
	if (r < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return r < 0 ? r : -errno;
	run.cmd = ++c->h->next_cmd;
	for (int i = 0; i < 3; i++)
		fds[i] = msg->fds[i];
	fds[3] = fd;
	r = sb_ipc_send(c->h->r->sock, SB_IPC_EXEC, &run, sizeof(run), fds, 4);
	if (r < 0) {
		refuse(c, "the session takes no more requests now");
		return 0;
	}
	c->cmd = run.cmd;
	return 0;
}
