/* What the commands about instances share: the database, the holder's socket. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "cmd_instance.h"
#include "crypto/crypto.h"

int instances_open(struct instances **ret)
{
	static struct instances in;
	struct sb_err err = { 0 };
	int k = sb_crypto_init();

	if (k == 0)
		k = cli_dirs_init(&in.dirs, &err);
	if (k == 0)
		k = state_open(&in.dirs.d, &in.s, &err);
	if (k < 0) {
		cli_error("%s", err.code ? err.text : strerror(-k));
		return k;
	}
	*ret = &in;
	return 0;
}

const char *instance_status_name(enum instance_status s)
{
	switch (s) {
	case INSTANCE_STOPPED:
		return "stopped";
	case INSTANCE_STARTING:
		return "starting";
	case INSTANCE_RUNNING:
		return "running";
	case INSTANCE_CRASHED:
	default:
		return "crashed";
	}
}

bool instance_runs(const struct instance *i)
{
	return i->status == INSTANCE_RUNNING || i->status == INSTANCE_STARTING;
}

int instance_session_dir(const struct cli_dirs *d, const struct instance *i, int *ret, struct sb_err *err)
{
	char hex[33];
	char path[4200];
	int n;

	if (i->status != INSTANCE_RUNNING)
		return sb_err_set(err, -ENOTCONN, "instance \"%s\" does not run (%s); sendbox run --name %s "
						  "starts it", i->name, instance_status_name(i->status),
				  i->name);
	sb_hex_write(i->session, sizeof(i->session), hex);
	n = snprintf(path, sizeof(path), "%s/sessions/%s", d->run, hex);
	if (n < 0 || (size_t)n >= sizeof(path))
		return sb_err_set(err, -ENAMETOOLONG, "path too long: %.200s", d->run);
	*ret = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return *ret < 0 ? sb_err_set(err, -ENOTCONN, "instance \"%s\" has just ended", i->name) : 0;
}

int instance_connect(const struct cli_dirs *d, const struct instance *i, int *ret,
		     struct sb_err *err)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	sb_autofd int dir = -1;
	sb_autofd int sock = -1;
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int k = instance_session_dir(d, i, &dir, err);

	if (k < 0)
		return k;
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	(void)snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/attach.sock", dir);
	if (sock < 0 || connect(sock, (struct sockaddr *)&a, sizeof(a)) < 0)
		return sb_err_set(err, -errno, "instance \"%s\" does not answer: %s", i->name,
				  strerror(errno));
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 || cred.uid != geteuid())
		return sb_err_set(err, -EPERM, "instance \"%s\" is served by another user", i->name);
	k = sb_fd_set_nonblock(sock, true);
	if (k < 0)
		return sb_err_set(err, k, "%s", strerror(-k));
	*ret = sb_fd_take(&sock);
	return 0;
}

int instance_plan(const struct cli_dirs *d, const struct instance *i, struct sb_plan **ret,
		  struct sb_err *err)
{
	sb_autofd int dir = -1;
	sb_autofree char *bytes = NULL;
	size_t len = 0;
	int k = instance_session_dir(d, i, &dir, err);

	if (k < 0)
		return k;
	k = sb_fd_read_file(dir, "plan.json", SB_PLAN_MAX_BYTES, &bytes, &len);
	if (k < 0)
		return sb_err_set(err, k, "the plan of instance \"%s\": %s", i->name, strerror(-k));
	return sb_plan_parse(bytes, len, ret, err);
}
