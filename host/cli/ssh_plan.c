/*
 * Keys are chosen when the plan is made: the agent is asked what it has, and the plan holds digests.
 * What the agent has later makes no difference to what may be signed.
 */
#include "ssh_plan.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "conn/plan_env.h"
#include "core/ssh_policy.h"
#include "crypto/crypto.h"
#include "launch.h"
#include "ssh_key_line.h"

#define AGENT_SECONDS 10
#define LISTED 16 /* keys in a refusal */
#define COMMENT_MAX 256

struct agent_key {
	uint8_t sha256[32];
	char comment[COMMENT_MAX + 1];
};
struct agent_keys {
	struct agent_key *v;
	size_t n;
};

static int oom(struct sb_err *err)
{
	return sb_err_set(err, -ENOMEM, "out of memory");
}

/* --- the agent --- */

int ssh_agent_open(int *ret, struct sb_err *err)
{
	const char *path = getenv("SSH_AUTH_SOCK");
	struct stat st;
	sb_autofd int fd = -1;

	if (!path || !*path)
		return sb_err_set(err, -ENOENT, "--ssh-agent: there is no SSH agent here "
				  "(SSH_AUTH_SOCK is not set); start one and add a key: "
				  "eval $(ssh-agent); ssh-add");
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return sb_err_set(err, -errno, "--ssh-agent: SSH_AUTH_SOCK=%.200s: %s", path,
				  strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return sb_err_set(err, -ENOTSOCK, "--ssh-agent: SSH_AUTH_SOCK=%.200s is no socket", path);
	*ret = sb_fd_take(&fd);
	return 0;
}

static int connect_agent(int *ret, struct sb_err *err)
{
	const struct timeval limit = { .tv_sec = AGENT_SECONDS };
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	sb_autofd int path = -1;
	sb_autofd int fd = -1;
	int r = ssh_agent_open(&path, err);

	if (r < 0)
		return r;
	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "/proc/self/fd/%d", path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0 ||
	    connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0)
		return sb_err_set(err, -errno, "--ssh-agent: the SSH agent of SSH_AUTH_SOCK does not "
				  "answer: %s", strerror(errno));
	*ret = sb_fd_take(&fd);
	return 0;
}

/* One request, one answer. @in: the whole message. Return: 0; -errno. */
static int ask(int fd, struct sb_buf *in, struct sb_ssh_str *body)
{
	static const uint8_t list[] = { 0, 0, 0, 1, SB_SSH_REQUEST_IDENTITIES };
	uint8_t chunk[4096];
	int k = SB_SSH_MORE;

	if (send(fd, list, sizeof(list), MSG_NOSIGNAL) != (ssize_t)sizeof(list))
		return -EPIPE;
	while (k == SB_SSH_MORE) {
		ssize_t n = recv(fd, chunk, sizeof(chunk), 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EPIPE;
		sb_buf_add(in, chunk, (size_t)n);
		k = sb_buf_error(in);
		if (k == 0)
			k = sb_ssh_frame(in->data, in->len, SB_SSH_ANSWER_MAX, body);
	}
	return k;
}

static int list_keys(const struct sb_ssh_str *body, struct agent_keys *ret)
{
	struct sb_ssh_ids ids;
	struct sb_ssh_str key;
	struct sb_ssh_str comment;
	int k = sb_ssh_ids(body, &ids);

	if (k < 0)
		return k;
	ret->v = calloc((size_t)ids.left + 1, sizeof(*ret->v));
	if (!ret->v)
		return -ENOMEM;
	while ((k = sb_ssh_ids_next(&ids, &key, &comment)) == 1) {
		struct agent_key *a = &ret->v[ret->n++];
		size_t n = SB_MIN(comment.len, (size_t)COMMENT_MAX);

		sb_sha256(key.p, key.len, a->sha256);
		for (size_t i = 0; i < n; i++)
			a->comment[i] = comment.p[i] >= 0x20 && comment.p[i] < 0x7f
						? (char)comment.p[i]
						: '?';
	}
	return k;
}

static int get_keys(struct agent_keys *ret, struct sb_err *err)
{
	sb_autobuf struct sb_buf in;
	sb_autofd int fd = -1;
	struct sb_ssh_str body = { 0 };
	int k = connect_agent(&fd, err);

	sb_buf_init(&in, SB_SSH_HEAD + SB_SSH_ANSWER_MAX);
	if (k < 0)
		return k;
	k = ask(fd, &in, &body);
	if (k == 0)
		k = list_keys(&body, ret);
	return k < 0 ? sb_err_set(err, k, "--ssh-agent: the SSH agent of SSH_AUTH_SOCK does not tell "
				  "its keys: %s", strerror(-k))
		     : 0;
}

/* --- choosing --- */

static int refuse(const struct agent_keys *keys, const char *why, struct sb_err *err)
{
	sb_autobuf struct sb_buf b;

	sb_buf_init(&b, 4096);
	for (size_t i = 0; i < keys->n && i < LISTED; i++) {
		char fp[SB_SSH_FINGERPRINT];

		sb_ssh_fingerprint(keys->v[i].sha256, fp);
		sb_buf_addf(&b, "%s%s %.60s", i ? ", " : "", fp, keys->v[i].comment);
	}
	return sb_err_set(err, -EINVAL, "%s; write --ssh-agent=KEY or ssh_agent.keys, with the "
			  "fingerprint, the comment or the public key's file. The agent has: %.*s",
			  why, keys->n ? (int)b.len : INT_MAX,
			  keys->n ? (const char *)b.data : "no key (ssh-add adds one)");
}

static int add_key(struct sb_plan_ssh *p, const struct agent_key *k, struct sb_err *err)
{
	struct sb_plan_ssh_key *v;
	size_t at = 0;

	if (sb_plan_ssh_key(p, k->sha256))
		return 0;
	if (p->n_keys == SB_SSH_MAX_KEYS)
		return sb_err_set(err, -E2BIG, "ssh_agent.keys: at most %d", SB_SSH_MAX_KEYS);
	v = realloc(p->keys, (p->n_keys + 1) * sizeof(*v));
	if (!v)
		return oom(err);
	p->keys = v;
	while (at < p->n_keys && memcmp(v[at].sha256, k->sha256, 32) < 0)
		at++;
	memmove(v + at + 1, v + at, (p->n_keys - at) * sizeof(*v));
	memcpy(v[at].sha256, k->sha256, 32);
	v[at].comment = strdup(k->comment);
	p->n_keys++;
	return v[at].comment ? 0 : oom(err);
}

int ssh_plan_add_host(struct sb_plan_ssh *p, const char *name, const uint8_t sha256[32],
		      struct sb_err *err)
{
	struct sb_plan_ssh_host *v;
	size_t at = 0;
	int order = 1;

	if (p->n_hosts == SB_SSH_MAX_HOST_KEYS)
		return sb_err_set(err, -E2BIG, "ssh_agent.hosts: more than %d keys",
				  SB_SSH_MAX_HOST_KEYS);
	for (; at < p->n_hosts && order > 0; at++) {
		order = strcmp(name, p->hosts[at].name);
		if (order == 0)
			order = memcmp(sha256, p->hosts[at].sha256, 32);
		if (order <= 0)
			break;
	}
	if (order == 0)
		return 0;
	v = realloc(p->hosts, (p->n_hosts + 1) * sizeof(*v));
	if (!v)
		return oom(err);
	p->hosts = v;
	memmove(v + at + 1, v + at, (p->n_hosts - at) * sizeof(*v));
	memcpy(v[at].sha256, sha256, 32);
	v[at].name = strdup(name);
	p->n_hosts++;
	return v[at].name ? 0 : oom(err);
}

/* The digest of the key in @v's file. */
static int of_file(const struct cfg_value *v, const char *name, uint8_t sha256[32],
		   struct sb_err *err)
{
	sb_autofree char *path = NULL;
	sb_autofree char *text = NULL;
	size_t len = 0;
	int r = conf_path(v, name, &path);

	if (r == 0)
		r = sb_fd_read_file(AT_FDCWD, path, SSH_KEY_LINE_MAX, &text, &len);
	if (r < 0)
		return sb_err_set(err, r, "ssh_agent.keys: %.200s: %s", name, strerror(-r));
	r = ssh_key_line(text, len, 0, sha256);
	return r < 0 ? sb_err_set(err, r, "ssh_agent.keys: %.200s holds no public key (the file that "
				  "ends in .pub)", name)
		     : 0;
}

static int choose(struct sb_plan_ssh *p, const struct agent_keys *keys, const struct cfg_value *v,
		  const char *name, struct sb_err *err)
{
	const struct agent_key *found = NULL;
	uint8_t sha256[32];
	char why[300];
	/* a fingerprint may have one, too */
	bool file = strchr(name, '/') != NULL && strncmp(name, "SHA256:", 7) != 0;
	int r = file ? of_file(v, name, sha256, err) : 0;

	if (r < 0)
		return r;
	for (size_t i = 0; i < keys->n; i++) {
		char fp[SB_SSH_FINGERPRINT];

		sb_ssh_fingerprint(keys->v[i].sha256, fp);
		if (file ? memcmp(keys->v[i].sha256, sha256, 32) != 0
			 : strcmp(fp, name) != 0 && strcmp(keys->v[i].comment, name) != 0)
			continue;
		if (found && memcmp(found->sha256, keys->v[i].sha256, 32) != 0) {
			(void)snprintf(why, sizeof(why), "--ssh-agent: two keys have the comment "
				       "\"%.100s\"", name);
			return refuse(keys, why, err);
		}
		found = &keys->v[i];
	}
	if (!found) {
		(void)snprintf(why, sizeof(why), "--ssh-agent: the agent has no key \"%.100s\"", name);
		return refuse(keys, why, err);
	}
	return add_key(p, found, err);
}

static int choose_all(struct sb_plan_ssh *p, const struct plan_input *in, struct sb_err *err)
{
	const struct cfg_value *names = cfg_get(in->conf->cfg, "ssh_agent.keys");
	struct agent_keys keys = { .v = NULL };
	int r = get_keys(&keys, err);

	if (r == 0 && (!names || names->n == 0)) {
		if (keys.n == 1)
			r = add_key(p, &keys.v[0], err);
		else
			r = refuse(&keys, keys.n ? "--ssh-agent: which key? Only keys that are named are "
						   "offered"
						 : "--ssh-agent: no key to offer", err);
	}
	for (size_t i = 0; r == 0 && names && i < names->n; i++)
		r = choose(p, &keys, &names->items[i], conf_text(in, &names->items[i]), err);
	free(keys.v);
	return r;
}

static bool wanted(const struct plan_input *in)
{
	const struct cfg_value *keys = cfg_get(in->conf->cfg, "ssh_agent.keys");

	if (in->target && (in->target->builder || in->target->task == SB_TASK_EXPORT))
		return false;
	return conf_bool(in, "ssh_agent.enabled", keys && keys->n > 0);
}

int plan_set_ssh(struct sb_plan *p, const struct plan_input *in, struct sb_err *err)
{
	const struct cfg_value *hosts = cfg_get(in->conf->cfg, "ssh_agent.hosts");
	char path[64];
	int r;

	if (!wanted(in))
		return 0;
	r = choose_all(&p->ssh, in, err);
	for (size_t i = 0; r == 0 && hosts && i < hosts->n; i++)
		r = ssh_known_host(conf_text(in, &hosts->items[i]), &p->ssh, err);
	if (r < 0)
		return r;
	p->ssh.sign_data = conf_bool(in, "ssh_agent.sign_data", false);
	p->ssh.ask = conf_bool(in, "ssh_agent.ask", false);
	(void)snprintf(path, sizeof(path), SB_PLAN_SSH_SOCKET, p->uid);
	r = sb_plan_env_set(p, "SSH_AUTH_SOCK", strlen("SSH_AUTH_SOCK"), path);
	return r < 0 ? sb_err_set(err, r, "SSH_AUTH_SOCK: %s", strerror(-r)) : 0;
}
