#include "publish.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "audit_key.h"
#include "audit_note.h"
#include "base/fd.h"
#include "launch_i.h"
#include "os/spawn.h"
#include "store/audit_head.h"

#define WORDS 32
#define FEED_MS 30000

int publish_append(const char *path, const char *text, size_t len, struct sb_err *err)
{
	sb_autofd int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644);
	int r = fd < 0 ? -errno : sb_fd_write_all(fd, text, len);

	if (r == 0 && fsync(fd) < 0 && errno != EINVAL && errno != EROFS)
		r = -errno;
	return r < 0 ? sb_err_set(err, r, "cannot append the head to %.300s: %s", path, strerror(-r)) : 0;
}

/* Until it ends, or its time is over. Return: its wait status. */
static int reap(pid_t pid, int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	int status = -1;

	if (poll(&p, 1, FEED_MS) == 0)
		(void)kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return status;
}

int publish_feed(const char *const *argv, const char *text, size_t len, struct sb_err *err)
{
	sb_autofd int in = -1;
	sb_autofd int pidfd = -1;
	struct sb_spawn_fd fds[3] = { { -1, 0 }, { STDOUT_FILENO, 1 }, { STDERR_FILENO, 2 } };
	struct sb_err why = { 0 };
	pid_t pid = 0;
	int status;
	int r = launch_memfd("sendbox-head", text, len, &in);

	if (r == 0 && lseek(in, 0, SEEK_SET) < 0)
		r = -errno;
	fds[0].from = in;
	if (r == 0)
		r = sb_spawn_start(&(struct sb_spawn){ .path = argv[0],
						       .argv = argv,
						       .env = (const char *const *)environ,
						       .fds = fds,
						       .n_fds = SB_ARRAY_LEN(fds) },
				   &pid, &pidfd, &why);
	if (r < 0)
		return sb_err_set(err, r, "cannot start %.200s: %.200s", argv[0],
				  why.code ? why.text : strerror(-r));
	status = reap(pid, pidfd);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return sb_err_set(err, -ETIMEDOUT, "the head was given to \"%.200s\", which was killed, perhaps "
						   "because it took more than %d seconds", argv[0], FEED_MS / 1000);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return sb_err_set(err, -EIO, "the head was given to \"%.200s\", which failed", argv[0]);
	return 0;
}

/* ---- audit.publish ---- */

static int read_head(const struct sb_dirs *d, char **ret, size_t *ret_len, struct sb_err *err)
{
	sb_autofd int dir = -1;
	char path[4200];
	struct sb_audit_head h;
	uint8_t pub[32];
	int r = audit_public(d, pub, err);

	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "%s/audit", d->state);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dir < 0)
		return sb_err_set(err, -errno, "cannot open %.300s: %s", path, strerror(errno));
	r = sb_fd_read_file(dir, "head", SB_AUDIT_HEAD_MAX, ret, ret_len);
	if (r == 0)
		r = sb_audit_head_open(*ret, *ret_len, pub, &h, NULL);
	return r < 0 ? sb_err_set(err, r, "the audit log has no head of its key: %s", strerror(-r)) : 0;
}

static int to_command(const struct cfg_value *v, const char *text, size_t len, struct sb_err *err)
{
	const char *argv[WORDS + 1] = { NULL };

	for (size_t i = 0; i < v->n && i < WORDS; i++)
		argv[i] = v->items[i].text;
	return publish_feed(argv, text, len, err);
}

/* @subject: what it is, for the record. */
static int to_place(const struct cfg_value *v, const char *text, size_t len, const char **subject,
		    struct sb_err *err)
{
	const struct cfg_value *file = cfg_member(v, "file");
	const struct cfg_value *command = cfg_member(v, "command");
	int r;

	*subject = file ? file->text : command && command->n > 0 ? command->items[0].text : "standard error";
	if (!text)
		return err->code;
	if (file)
		return publish_append(file->text, text, len, err);
	if (command)
		return to_command(command, text, len, err);
	r = sb_fd_write_all(STDERR_FILENO, text, len);
	return r < 0 ? sb_err_set(err, r, "cannot write the head to standard error: %s", strerror(-r)) : 0;
}

static void failed(const struct sb_dirs *d, const uint8_t session[16], const char *subject,
		   const struct sb_err *why, void (*say)(void *arg, const char *text), void *arg)
{
	struct sb_audit_event e = { .kind = SB_AUDIT_SESSION, .action = "publish", .verdict = SB_AUDIT_ERROR,
				    .subject = subject, .reason = why->text };
	struct sb_err err = { 0 };
	char text[2 * SB_ERR_TEXT_MAX];

	memcpy(e.session, session, sizeof(e.session));
	(void)snprintf(text, sizeof(text), "WARNING: audit.publish: %s", why->text);
	say(arg, text);
	if (audit_note(d, &e, 1, &err) < 0) {
		(void)snprintf(text, sizeof(text), "WARNING: nor is that on record: %s", err.text);
		say(arg, text);
	}
}

void publish_head(const struct sb_dirs *d, const struct cfg *cfg, const uint8_t session[16],
		  void (*say)(void *arg, const char *text), void *arg)
{
	sb_autofree char *text = NULL;
	const struct cfg_value *v;
	struct sb_err none = { 0 };
	size_t len = 0;

	if (!cfg || !cfg_item(cfg, "audit.publish", 0))
		return;
	if (read_head(d, &text, &len, &none) < 0) {
		free(text);
		text = NULL;
	}
	for (size_t i = 0; (v = cfg_item(cfg, "audit.publish", i)) != NULL; i++) {
		struct sb_err err = none;
		const char *subject;

		if (to_place(v, text, len, &subject, &err) < 0)
			failed(d, session, subject, &err, say, arg);
	}
}
