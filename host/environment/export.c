/* Sessions that work for sendbox itself: a step of a builder, the export of an upper layer. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/launch.h"
#include "environment/build.h"

int env_session(const struct run_options *o, const struct launch_target *t, const int io[3],
		void (*refused)(void *arg, const char *text), void *arg, struct sb_err *err)
{
	struct launch l = { .opt = o, .target = t, .io = { io[0], io[1], io[2] }, .quiet = true,
			    .refused = refused, .arg = arg };
	struct launch_result res;
	int r = launch(&l, &res, err);

	if (env_stopped() || res.fail == SB_FAIL_CANCELLED)
		return -EINTR;
	if (r < 0)
		return r;
	if (res.fail != SB_FAIL_NONE || res.exit.lost != 0 || res.exit.kind > SB_EXIT_SIGNAL)
		return sb_err_set(err, res.exit.lost != 0 ? -(int)res.exit.lost : -EIO,
				  "the builder: %s", res.text);
	return res.status;
}

int env_export(const struct run_options *o, const struct launch_target *t, int out, int log,
	       uint64_t max, const char *who, struct sb_err *err)
{
	sb_autofd int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct env_pour tar = { .in = -1 };
	struct env_pour said = { .in = -1 };
	char word[] = "export"; /* for people: nothing is run */
	char *argv[] = { word, NULL };
	struct launch_target to = *t;
	struct run_options with = *o;
	int r;

	to.task = SB_TASK_EXPORT;
	to.env = NULL;
	with.argv = argv;
	with.no_network = true;
	if (nothing < 0)
		return sb_err_set(err, -errno, "/dev/null: %s", strerror(errno));
	r = env_pour_start(&tar, out, max, false, err);
	if (r == 0)
		r = env_pour_start(&said, log, ENV_MAX_LOG_BYTES, true, err);
	if (r == 0) {
		const int io[3] = { nothing, tar.in, said.in };

		r = env_session(&with, &to, io, NULL, NULL, err);
	}
	(void)env_pour_end(&said);
	if (!env_pour_end(&tar) && r != -EINTR)
		return sb_err_set(err, -EFBIG, "%s: its files are more than %llu MiB, or the disk is full",
				  who, (unsigned long long)(max >> 20));
	if (r > 0)
		return sb_err_set(err, -EIO, "%s could not hand its files over (status %d)", who, r);
	return r;
}
