/*
 * sendbox-image - layer archives in, one erofs file out
 *
 * Everything it reads was written by somebody else. It has the descriptors of helper.h, opens
 * nothing, and runs in a jail with a bound on memory and on processor time.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/num.h"
#include "image.syscalls.h"
#include "image/feed.h"
#include "image/helper.h"
#include "os/jail.h"

#define MEMORY_BYTES (1280ULL << 20) /* the tree's cap and room for the rest */
#define CPU_SECONDS 1800

static int limit(__rlimit_resource_t what, rlim_t to)
{
	struct rlimit rl;

	if (getrlimit(what, &rl) < 0)
		return -errno;
	rl.rlim_cur = SB_MIN(rl.rlim_max, to);
	rl.rlim_max = rl.rlim_cur;
	return setrlimit(what, &rl) < 0 ? -errno : 0;
}

static int jail_me(struct sb_err *err)
{
	struct sb_jail j = { .syscalls = image_syscalls,
			     .n_syscalls = SB_ARRAY_LEN(image_syscalls),
			     .nofile = 8,
			     .root_fd = -1 };
	int r = limit(RLIMIT_CPU, CPU_SECONDS);

#ifndef SB_JAIL_RELAXED /* sanitizers reserve terabytes of address space */
	if (r == 0)
		r = limit(RLIMIT_AS, MEMORY_BYTES);
#endif
	if (r < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR || signal(SIGXFSZ, SIG_IGN) == SIG_ERR)
		return sb_err_set(err, r < 0 ? r : -errno, "limits: %s", strerror(r < 0 ? -r : errno));
	return sb_jail_enter(&j, err);
}

static int make(enum image_mode mode, uint64_t max_bytes, struct image_result *ret,
		struct sb_err *err)
{
	struct image_limits limits = image_limits_default;
	struct image_merge m;
	int r;

	if (max_bytes > 0)
		limits.max_bytes = max_bytes;
	r = image_merge_init(&m, mode, &limits, STDOUT_FILENO, IMAGE_SPOOL_FD, err);
	if (r < 0)
		return r;
	r = image_feed(&m, STDIN_FILENO);
	if (r == 0)
		r = image_merge_finish(&m);
	ret->layers = m.layer;
	ret->entries = m.counts.entries;
	ret->bytes = m.counts.bytes;
	ret->devices = m.counts.devices;
	ret->xattrs = m.counts.xattrs;
	/* no image_merge_done: the end of the process is faster than giving back a million names */
	return r;
}

int main(int argc, char **argv)
{
	struct image_result res = { 0 };
	struct sb_err err = { 0 };
	enum image_mode mode = IMAGE_MODE_NONE;
	uint64_t max_bytes = 0;
	int r;

	sb_log_init("sendbox-image");
	if (argc == 3 && strcmp(argv[1], "image") == 0)
		mode = IMAGE_MODE_IMAGE;
	if (argc == 3 && strcmp(argv[1], "layer") == 0)
		mode = IMAGE_MODE_LAYER;
	if (mode == IMAGE_MODE_NONE || sb_num_u64(argv[2], 0, INT64_MAX, &max_bytes) < 0) {
		sb_log("sendbox starts this program; it is of no use by hand");
		return 2;
	}
	r = jail_me(&err);
	if (r == 0)
		r = make(mode, max_bytes, &res, &err);
	res.code = r;
	(void)snprintf(res.text, sizeof(res.text), "%s", err.text);
	if (sb_fd_write_all(IMAGE_RESULT_FD, &res, sizeof(res)) < 0)
		_exit(1);
	_exit(r < 0 ? 1 : 0);
}
