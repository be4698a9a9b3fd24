#include "image/build.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "image/cache.h"
#include "os/spawn.h"

struct image_build {
	const struct sb_dirs *d;
	int dir;     /* <cache>/layers */
	char tmp[32]; /* name there, or "" */
	int out;
	int feed;
	int result;
	pid_t pid;   /* 0: reaped */
};

struct image_build *image_build_free(struct image_build *b)
{
	if (!b)
		return NULL;
	if (b->pid > 0) {
		(void)kill(b->pid, SIGKILL);
		(void)waitpid(b->pid, NULL, 0);
	}
	if (b->tmp[0])
		(void)unlinkat(b->dir, b->tmp, 0);
	sb_fd_close(&b->out);
	sb_fd_close(&b->feed);
	sb_fd_close(&b->result);
	sb_fd_close(&b->dir);
	free(b);
	return NULL;
}

static int open_spool(int dir, int *ret)
{
	char name[32];

	image_tmp_name(name);
	*ret = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (*ret < 0 || unlinkat(dir, name, 0) < 0)
		return -errno;
	return 0;
}

/* @fds: what the helper has besides its messages. */
static int spawn_helper(struct image_build *b, const char *program, const char *what,
			uint64_t max_bytes, const struct sb_spawn_fd *fds, size_t n_fds,
			struct sb_err *err)
{
	char path[PATH_MAX];
	char max[24];
	const char *argv[] = { program, what, max, NULL };
	struct sb_spawn s = { .path = path, .argv = argv, .fds = fds, .n_fds = n_fds,
			      .new_session = true };
	int n = snprintf(path, sizeof(path), "%s/%s", b->d->libexec, program);

	if (n < 0 || (size_t)n >= sizeof(path))
		return sb_err_set(err, -ENAMETOOLONG, "path too long: %.200s", b->d->libexec);
	(void)snprintf(max, sizeof(max), "%llu", (unsigned long long)max_bytes);
	return sb_spawn_start(&s, &b->pid, NULL, err);
}

int image_build_start(const struct sb_dirs *d, bool layer, uint64_t max_bytes,
		      struct image_build **ret, struct sb_err *err)
{
	image_autobuild struct image_build *b = calloc(1, sizeof(*b));
	sb_autofd int feed = -1;
	sb_autofd int result = -1;
	sb_autofd int spool = -1;
	int socks[2];
	int pipes[2];
	int r;

	if (!b)
		return sb_err_set(err, -ENOMEM, "out of memory");
	*b = (struct image_build){ .d = d, .dir = -1, .out = -1, .feed = -1, .result = -1 };
	r = image_dir_open(d, "layers", &b->dir, err);
	if (r < 0)
		return r;
	image_tmp_name(b->tmp);
	b->out = openat(b->dir, b->tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (b->out < 0) {
		r = sb_err_set(err, -errno, "cannot make a file in %s/layers: %s", d->cache,
			       strerror(errno));
		b->tmp[0] = '\0';
		return r;
	}
	r = flock(b->out, LOCK_EX | LOCK_NB) < 0 ? -errno : open_spool(b->dir, &spool);
	if (r < 0)
		return sb_err_set(err, r, "cannot make a file in %s/layers: %s", d->cache,
				  strerror(-r));
	/* a socket and not a pipe: writing to a helper that ended raises no signal */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socks) < 0)
		return sb_err_set(err, -errno, "socketpair: %s", strerror(errno));
	b->feed = socks[0];
	feed = socks[1];
	if (pipe2(pipes, O_CLOEXEC) < 0)
		return sb_err_set(err, -errno, "pipe: %s", strerror(errno));
	b->result = pipes[0];
	result = pipes[1];
	{
		const struct sb_spawn_fd fds[] = { { feed, STDIN_FILENO },
						   { b->out, STDOUT_FILENO },
						   { STDERR_FILENO, STDERR_FILENO },
						   { result, IMAGE_RESULT_FD },
						   { spool, IMAGE_SPOOL_FD } };

		r = spawn_helper(b, "sendbox-image", layer ? "layer" : "image", max_bytes, fds,
				 SB_ARRAY_LEN(fds), err);
	}
	if (r < 0)
		return r;
	*ret = sb_take(&b);
	return 0;
}

/* Untrusted text for people: one line of printable ASCII. */
static void clean(char *text)
{
	for (; *text; text++)
		if (*text < 0x20 || *text > 0x7e)
			*text = '?';
}

/* The helper's last words. Return: 0; its error with its text; -EPROTO when it had none. */
static int harvest(struct image_build *b, struct image_result *res, struct sb_err *err)
{
	int status = 0;
	int r;

	sb_fd_close(&b->feed);
	r = sb_fd_read_all(b->result, res, sizeof(*res));
	while (waitpid(b->pid, &status, 0) < 0 && errno == EINTR)
		;
	b->pid = 0;
	if (r < 0 && WIFSIGNALED(status))
		return sb_err_set(err, -EPROTO, "the helper was ended by signal %d (%s)",
				  WTERMSIG(status), strsignal(WTERMSIG(status)));
	if (r < 0 || res->code > 0 || res->code < -4095)
		return sb_err_set(err, -EPROTO, "the helper ended without a result");
	res->text[sizeof(res->text) - 1] = '\0';
	clean(res->text);
	if (res->code < 0)
		return sb_err_set(err, res->code, "%s", res->text);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return sb_err_set(err, -EPROTO, "the helper failed after its result");
	return 0;
}

static int send_all(struct image_build *b, const void *p, size_t len, struct sb_err *err)
{
	const uint8_t *from = p;

	while (len > 0) {
		ssize_t n = send(b->feed, from, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			struct image_result res;
			int r = b->pid > 0 ? harvest(b, &res, err) : -EPROTO;

			return r < 0 ? r : sb_err_set(err, -EPROTO, "sendbox-image ended early");
		}
		from += n;
		len -= (size_t)n;
	}
	return 0;
}

static int send_word(struct image_build *b, uint32_t v, struct sb_err *err)
{
	v = htole32(v);
	return send_all(b, &v, sizeof(v), err);
}

int image_build_begin(struct image_build *b, struct sb_err *err)
{
	return send_word(b, 0, err);
}

int image_build_end(struct image_build *b, struct sb_err *err)
{
	return send_word(b, 0, err);
}

int image_build_add(struct image_build *b, const void *p, size_t len, struct sb_err *err)
{
	const uint8_t *from = p;
	int r = 0;

	while (r == 0 && len > 0) {
		size_t n = SB_MIN(len, (size_t)IMAGE_FRAME_MAX);

		r = send_word(b, (uint32_t)n, err);
		if (r == 0)
			r = send_all(b, from, n, err);
		from += n;
		len -= n;
	}
	return r;
}

int image_build_finish(struct image_build *b, struct sb_plan_layer *ret, struct image_result *counts,
		       struct sb_err *err)
{
	struct image_result res;
	int r = send_word(b, IMAGE_FRAME_END, err);

	if (r == 0)
		r = harvest(b, &res, err);
	if (r == 0)
		r = image_layer_keep(b->d, b->dir, b->tmp, b->out, ret, err);
	if (r < 0)
		return r;
	b->tmp[0] = '\0';
	if (counts)
		*counts = res;
	return 0;
}

int image_layer_from_tar(const struct sb_dirs *d, int fd, uint64_t max_bytes,
			 struct sb_plan_layer *ret, struct sb_err *err)
{
	image_autobuild struct image_build *b = NULL;
	sb_autofree uint8_t *buf = malloc(IMAGE_FRAME_MAX);
	int r;

	if (!buf)
		return sb_err_set(err, -ENOMEM, "out of memory");
	r = image_build_start(d, true, max_bytes, &b, err);
	if (r == 0)
		r = image_build_begin(b, err);
	while (r == 0) {
		ssize_t n = read(fd, buf, IMAGE_FRAME_MAX);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return sb_err_set(err, -errno, "cannot read the archive: %s",
					  strerror(errno));
		if (n == 0)
			break;
		r = image_build_add(b, buf, (size_t)n, err);
	}
	if (r == 0)
		r = image_build_end(b, err);
	return r < 0 ? r : image_build_finish(b, ret, NULL, err);
}

static int open_layer(const struct sb_plan_layer *l, int *ret, struct sb_err *err)
{
	sb_autofd int fd = open(l->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return sb_err_set(err, -errno, "layer \"%.300s\": %s", l->path, strerror(errno));
	if (st.st_dev != l->dev || st.st_ino != l->ino || (uint64_t)st.st_size != l->size)
		return sb_err_set(err, -ESTALE, "layer \"%.300s\": it is another file by now", l->path);
	*ret = sb_fd_take(&fd);
	return 0;
}

int image_layer_to_tar(const struct sb_dirs *d, const struct sb_plan_layer *l, int out,
		       uint64_t max_bytes, struct sb_err *err)
{
	image_autobuild struct image_build *b = calloc(1, sizeof(*b));
	sb_autofd int layer = -1;
	sb_autofd int result = -1;
	struct image_result res;
	int pipes[2];
	int r;

	if (!b)
		return sb_err_set(err, -ENOMEM, "out of memory");
	*b = (struct image_build){ .d = d, .dir = -1, .out = -1, .feed = -1, .result = -1 };
	r = open_layer(l, &layer, err);
	if (r < 0)
		return r;
	if (pipe2(pipes, O_CLOEXEC) < 0)
		return sb_err_set(err, -errno, "pipe: %s", strerror(errno));
	b->result = pipes[0];
	result = pipes[1];
	{
		const struct sb_spawn_fd fds[] = { { layer, STDIN_FILENO },
						   { out, STDOUT_FILENO },
						   { STDERR_FILENO, STDERR_FILENO },
						   { result, IMAGE_RESULT_FD } };

		r = spawn_helper(b, "sendbox-imgfs", "--tar", max_bytes, fds, SB_ARRAY_LEN(fds), err);
	}
	sb_fd_close(&result);
	return r < 0 ? r : harvest(b, &res, err);
}
