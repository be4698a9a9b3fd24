/*
 * The keys of the hosts that the SSH agent may log in to, from the caller's known_hosts. Names there
 * may be hashed or patterns; OpenSSH's own ssh-keygen -F knows how to look, so it is asked.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/spawn.h"
#include "ssh_key_line.h"
#include "ssh_plan.h"

#define KEYGEN "/usr/bin/ssh-keygen"
#define OUTPUT_MAX (256U << 10)
#define KEYS_OF_ONE 64

struct found {
	uint8_t keys[KEYS_OF_ONE][32];
	size_t n;
	uint8_t revoked[KEYS_OF_ONE][32];
	size_t n_revoked;
	bool authority; /* of host certificates: nothing that we can use */
};

static int run_keygen(const char *name, const char *file, char *out, size_t *ret_len,
		      struct sb_err *err)
{
	const char *const argv[] = { "ssh-keygen", "-F", name, "-f", file, NULL };
	sb_autofd int from = -1;
	sb_autofd int to = -1;
	struct sb_spawn_fd fds[1];
	int p[2];
	int status = 0;
	size_t len = 0;
	ssize_t n = 1;
	pid_t pid;
	int r;

	if (pipe2(p, O_CLOEXEC) < 0)
		return sb_err_set(err, -errno, "pipe: %s", strerror(errno));
	from = p[0];
	to = p[1];
	fds[0] = (struct sb_spawn_fd){ to, STDOUT_FILENO };
	r = sb_spawn_start(&(struct sb_spawn){ .path = KEYGEN, .argv = argv, .fds = fds, .n_fds = 1 },
			   &pid, NULL, err);
	sb_fd_close(&to);
	if (r < 0)
		return r;
	while (n > 0 && len < OUTPUT_MAX) {
		n = read(from, out + len, OUTPUT_MAX - len);
		if (n > 0)
			len += (size_t)n;
		else if (n < 0 && errno == EINTR)
			n = 1;
	}
	sb_fd_close(&from);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	*ret_len = len;
	if (WIFEXITED(status) && WEXITSTATUS(status) <= 1) /* 1: the host is not in that file */
		return 0;
	return sb_err_set(err, -EIO, "ssh-keygen could not look into %.200s (its status was %d; it needs an "
			  "entry of the caller in the list of users)", file, status);
}

static void add(uint8_t (*list)[32], size_t *n, const uint8_t sha256[32])
{
	for (size_t i = 0; i < *n; i++)
		if (memcmp(list[i], sha256, 32) == 0)
			return;
	if (*n < KEYS_OF_ONE)
		memcpy(list[(*n)++], sha256, 32);
}

static void take_lines(const char *text, size_t len, struct found *f)
{
	const char *end = text + len;

	while (text < end) {
		const char *nl = memchr(text, '\n', (size_t)(end - text));
		size_t n = nl ? (size_t)(nl - text) : (size_t)(end - text);
		uint8_t sha256[32];

		switch (ssh_known_line(text, n, sha256)) {
		case SSH_KNOWN_KEY:
			add(f->keys, &f->n, sha256);
			break;
		case SSH_KNOWN_REVOKED:
			add(f->revoked, &f->n_revoked, sha256);
			break;
		case SSH_KNOWN_AUTHORITY:
			f->authority = true;
			break;
		case SSH_KNOWN_NONE:
		default:
			break;
		}
		text += n + (nl ? 1 : 0);
	}
}

static bool is_revoked(const struct found *f, const uint8_t sha256[32])
{
	for (size_t i = 0; i < f->n_revoked; i++)
		if (memcmp(f->revoked[i], sha256, 32) == 0)
			return true;
	return false;
}

static int look(const char *name, struct found *f, struct sb_err *err)
{
	const char *home = getenv("HOME");
	char own[PATH_MAX];
	const char *const files[] = { own, "/etc/ssh/ssh_known_hosts" };
	sb_autofree char *out = malloc(OUTPUT_MAX);
	int n = snprintf(own, sizeof(own), "%s/.ssh/known_hosts", home ? home : "");

	if (!out)
		return sb_err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < SB_ARRAY_LEN(files); i++) {
		size_t len = 0;
		int r;

		if (n < 0 || (size_t)n >= sizeof(own) || access(files[i], R_OK) < 0)
			continue;
		r = run_keygen(name, files[i], out, &len, err);
		if (r < 0)
			return sb_err_add(err, r, "ssh_agent.hosts needs OpenSSH's ssh-keygen");
		take_lines(out, len, f);
	}
	return 0;
}

/* NAME or NAME:PORT as known_hosts has it. Return: 0; -EINVAL. */
static int known_name(const char *host, char out[300])
{
	static const char ok[] = "abcdefghijklmnopqrstuvwxyz0123456789-._";
	size_t n = strspn(host, ok);
	const char *port = host + n + 1;

	if (n == 0 || n > 253 || host[0] == '-' || (host[n] != '\0' && host[n] != ':'))
		return -EINVAL;
	if (host[n] == '\0') {
		(void)snprintf(out, 300, "%s", host);
		return 0;
	}
	if (*port == '\0' || strlen(port) > 5 || port[strspn(port, "0123456789")] != '\0')
		return -EINVAL;
	if (strcmp(port, "22") == 0)
		(void)snprintf(out, 300, "%.*s", (int)n, host);
	else
		(void)snprintf(out, 300, "[%.*s]:%s", (int)n, host, port);
	return 0;
}

int ssh_known_host(const char *host, struct sb_plan_ssh *p, struct sb_err *err)
{
	struct found f = { .n = 0 };
	char name[300];
	size_t added = 0;
	int r = known_name(host, name);

	if (r < 0)
		return sb_err_set(err, r, "ssh_agent.hosts \"%.200s\": must be NAME or NAME:PORT in "
				  "lower case", host);
	r = look(name, &f, err);
	for (size_t i = 0; r == 0 && i < f.n; i++) {
		if (is_revoked(&f, f.keys[i]))
			continue;
		r = ssh_plan_add_host(p, name, f.keys[i], err);
		added++;
	}
	if (r < 0)
		return r;
	if (added == 0)
		return sb_err_set(err, -ENOENT,
				  "ssh_agent.hosts: %s has no key in ~/.ssh/known_hosts or "
				  "/etc/ssh/ssh_known_hosts%s; log in to it once from here, or add a key "
				  "that you have checked (ssh-keyscan %.253s)", name,
				  f.authority ? " (certificates of hosts cannot be used)" : "", host);
	return 0;
}
