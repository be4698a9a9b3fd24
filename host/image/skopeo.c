#include "image/skopeo.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "image/oci.h"
#include "os/spawn.h"

#define ERRORS_MAX 8192U
#define TICK_MS 200

struct child {
	pid_t pid;
	int out;
	int errs;
	struct sb_buf text;  /* of stdout */
	struct sb_buf words; /* end of stderr */
	uint64_t max_file;
};

static void child_done(struct child *c)
{
	if (c->pid > 0) {
		(void)kill(c->pid, SIGKILL);
		(void)waitpid(c->pid, NULL, 0);
	}
	sb_fd_close(&c->out);
	sb_fd_close(&c->errs);
	sb_buf_done(&c->text);
	sb_buf_done(&c->words);
}

int skopeo_name(const struct image_ref *ref, const char *digest, char ret[4400], struct sb_err *err)
{
	const char *transport = "docker://";
	int n;

	if (ref->source == IMAGE_SOURCE_OCI_ARCHIVE)
		transport = "oci-archive:";
	if (ref->source == IMAGE_SOURCE_DOCKER_ARCHIVE)
		transport = "docker-archive:";
	if (ref->source == IMAGE_SOURCE_REGISTRY && digest)
		n = snprintf(ret, 4400, "%s%s@%s", transport, ref->name, digest);
	else if (ref->source == IMAGE_SOURCE_REGISTRY && !ref->tag[0])
		n = snprintf(ret, 4400, "%s%s:latest", transport, ref->name);
	else
		n = snprintf(ret, 4400, "%s%s%s%s", transport, ref->name, ref->tag[0] ? ":" : "",
			     ref->tag);
	return n < 0 || n >= 4400 ? sb_err_set(err, -ENAMETOOLONG, "reference too long") : 0;
}

static int limit_files(void *arg)
{
	const struct child *c = arg;
	struct rlimit rl;

	if (getrlimit(RLIMIT_FSIZE, &rl) < 0)
		return -errno;
	rl.rlim_cur = SB_MIN(rl.rlim_max, (rlim_t)c->max_file);
	rl.rlim_max = rl.rlim_cur;
	return setrlimit(RLIMIT_FSIZE, &rl) < 0 ? -errno : 0;
}

static int start(struct child *c, const char *const *argv, struct sb_err *err)
{
	static const char *const places[] = { "/usr/bin/skopeo", "/usr/local/bin/skopeo",
					      "/bin/skopeo" };
	sb_autofd int out = -1;
	sb_autofd int errs = -1;
	const char *path = NULL;
	int a[2];
	int b[2];
	struct sb_spawn_fd fds[2];
	struct sb_spawn s = { .argv = argv, .env = (const char *const *)environ, .fds = fds,
			      .n_fds = 2, .new_session = true, .pre_exec = limit_files, .arg = c };

	for (size_t i = 0; i < SB_ARRAY_LEN(places) && !path; i++)
		if (access(places[i], X_OK) == 0)
			path = places[i];
	if (!path)
		return sb_err_set(err, -ENOENT,
				  "skopeo is not installed, which fetches images: install the package "
				  "skopeo, or use dir:, oci: or host");
	if (pipe2(a, O_CLOEXEC) < 0)
		return sb_err_set(err, -errno, "pipe: %s", strerror(errno));
	c->out = a[0];
	out = a[1];
	if (pipe2(b, O_CLOEXEC) < 0)
		return sb_err_set(err, -errno, "pipe: %s", strerror(errno));
	c->errs = b[0];
	errs = b[1];
	fds[0] = (struct sb_spawn_fd){ out, STDOUT_FILENO };
	fds[1] = (struct sb_spawn_fd){ errs, STDERR_FILENO };
	s.path = path;
	return sb_spawn_start(&s, &c->pid, NULL, err);
}

/* Return: 1: more may come; 0: the end; -errno. */
static int take(int fd, struct sb_buf *b, bool keep_end)
{
	uint8_t buf[8192];
	ssize_t n = read(fd, buf, sizeof(buf));

	if (n < 0)
		return errno == EINTR ? 1 : -errno;
	if (n == 0)
		return 0;
	if (keep_end && b->len + (size_t)n > ERRORS_MAX)
		sb_buf_drop(b, SB_MIN(b->len, (size_t)n));
	sb_buf_add(b, buf, (size_t)n);
	return sb_buf_error(b) ? sb_buf_error(b) : 1;
}

static int pump(struct child *c, void (*tick)(void *arg), void *arg)
{
	while (c->out >= 0 || c->errs >= 0) {
		struct pollfd p[2] = { { .fd = c->out, .events = POLLIN },
				       { .fd = c->errs, .events = POLLIN } };
		int n = poll(p, 2, TICK_MS);
		int r;

		if (tick)
			tick(arg);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n <= 0)
			continue;
		if (p[0].revents) {
			r = take(c->out, &c->text, false);
			if (r < 0)
				return r;
			if (r == 0)
				sb_fd_close(&c->out);
		}
		if (p[1].revents) {
			r = take(c->errs, &c->words, true);
			if (r < 0)
				return r;
			if (r == 0)
				sb_fd_close(&c->errs);
		}
	}
	return 0;
}

/* Of a line of its log the message, without the quotes of the log; of that what stands behind the image's
 * name, which the caller says itself. */
static void unquote(char *text)
{
	const char *p = strstr(text, "msg=\"");
	char *to = text;
	const char *behind;

	if (!p)
		return;
	for (p += 5; *p && *p != '"'; p++) {
		if (*p == '\\' && p[1])
			p++;
		*to++ = *p;
	}
	*to = '\0';
	behind = strstr(text, "\": ");
	if (behind && behind[3])
		memmove(text, behind + 3, strlen(behind + 3) + 1);
}

/* The last line that it said, printable, without its time stamp. */
static void last_words(struct sb_buf *b, char *out, size_t cap)
{
	size_t n = b->len;
	size_t from;

	while (n > 0 && (b->data[n - 1] == '\n' || b->data[n - 1] == ' '))
		n--;
	for (from = n; from > 0 && b->data[from - 1] != '\n';)
		from--;
	(void)snprintf(out, cap, "%.*s", (int)SB_MIN(n - from, (size_t)400),
		       b->data ? (const char *)b->data + from : "");
	unquote(out);
	for (char *s = out; *s; s++)
		if (*s < 0x20 || *s > 0x7e)
			*s = '?';
}

static int run(struct child *c, const char *const *argv, const char *name, void (*tick)(void *arg),
	       void *arg, struct sb_err *err)
{
	char words[420];
	int status = 0;
	int r = start(c, argv, err);

	if (r < 0)
		return r;
	r = pump(c, tick, arg);
	if (r < 0)
		return sb_err_set(err, r, "image %.200s: skopeo says more than is taken: %s", name,
				  strerror(-r));
	while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
		;
	c->pid = 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	last_words(&c->words, words, sizeof(words));
	if (strstr(words, "no space left"))
		return sb_err_set(err, -ENOSPC, "image %.200s: the disk is full", name);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ)
		return sb_err_set(err, -EBADMSG, "image %.200s: more bytes came than its manifest "
						 "says", name);
	return sb_err_set(err, strstr(words, "manifest unknown") ? -ENOENT : -EIO,
			  "image %.200s: skopeo could not fetch it: %s", name, words);
}

static void child_init(struct child *c, size_t max_text, uint64_t max_file)
{
	*c = (struct child){ .out = -1, .errs = -1, .max_file = max_file };
	sb_buf_init(&c->text, max_text);
	sb_buf_init(&c->words, 2 * ERRORS_MAX);
}

int skopeo_raw(const struct image_ref *ref, const char *digest, char **ret, size_t *ret_len,
	       struct sb_err *err)
{
	SB_CLEANUP(child_done) struct child c;
	char name[4400];
	/* otherwise nothing is said about TLS: an option would override skopeo's configuration */
	const char *argv[] = { "skopeo", "--command-timeout", "2m", "inspect", "--raw",
			       ref->loopback ? "--tls-verify=false" : name,
			       ref->loopback ? name : NULL, NULL };
	int r = skopeo_name(ref, digest, name, err);

	child_init(&c, OCI_MAX_DOCUMENT, OCI_MAX_DOCUMENT);
	if (r == 0)
		r = run(&c, argv, ref->name, NULL, NULL, err);
	if (r < 0)
		return r;
	*ret_len = c.text.len;
	*ret = (char *)sb_take(&c.text.data);
	c.text = (struct sb_buf){ 0 };
	return *ret ? 0 : sb_err_set(err, -EBADMSG, "image %.200s: an empty manifest", ref->name);
}

int skopeo_copy(const struct image_ref *ref, const char *digest, const char *dir, uint64_t max_file,
		void (*tick)(void *arg), void *arg, struct sb_err *err)
{
	SB_CLEANUP(child_done) struct child c;
	char name[4400];
	char to[4400];
	const char *argv[] = { "skopeo", "--command-timeout", "60m", "copy", "--quiet",
			       name, to, ref->loopback ? "--src-tls-verify=false" : NULL, NULL };
	int r = skopeo_name(ref, digest, name, err);

	child_init(&c, 65536, max_file);
	if (r == 0 && snprintf(to, sizeof(to), "dir:%s", dir) >= (int)sizeof(to))
		r = sb_err_set(err, -ENAMETOOLONG, "path too long");
	return r < 0 ? r : run(&c, argv, ref->name, tick, arg, err);
}
