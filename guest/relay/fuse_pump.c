#include "relay/fuse_pump.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"

#define MSG_MAX ((1U << 20) + 4096U) /* one message either way; what both ends agree on */
#define PORT_BUF 4096U               /* the port driver gives one such buffer for each iovec */
#define MAX_IOV 256U
#define NOTES_MAX (256U << 10) /* notifications that wait; more are dropped: caches time out */
#define NOTE_MAX 1536U /* one that names an entry, with room */
#define STACK (256U << 10)
#define FIRST_WAIT_MS 30000

/* ---- mount ---- */

static int set_string(int fs, const char *key, const char *value)
{
	return fsconfig(fs, FSCONFIG_SET_STRING, key, value, 0) < 0 ? -errno : 0;
}

static int set_flag(int fs, const char *key)
{
	return fsconfig(fs, FSCONFIG_SET_FLAG, key, NULL, 0) < 0 ? -errno : 0;
}

static int configure(int fs, int fuse_fd, uint32_t flags)
{
	char text[16];
	char uid[16];
	char gid[16];
	int r;

	(void)snprintf(text, sizeof(text), "%d", fuse_fd);
	(void)snprintf(uid, sizeof(uid), "%u", getuid());
	(void)snprintf(gid, sizeof(gid), "%u", getgid());
	r = set_string(fs, "source", "sendbox");
	if (r == 0)
		r = set_string(fs, "fd", text);
	if (r == 0)
		r = set_string(fs, "rootmode", flags & SB_FUSE_FILE ? "100000" : "40000");
	if (r == 0)
		r = set_string(fs, "user_id", uid);
	if (r == 0)
		r = set_string(fs, "group_id", gid);
	if (r == 0)
		r = set_flag(fs, "default_permissions");
	if (r == 0)
		r = set_flag(fs, "allow_other");
	if (r == 0 && (flags & SB_FUSE_RO))
		r = set_flag(fs, "ro");
	if (r == 0)
		r = fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0 ? -errno : 0;
	return r;
}

int sb_fuse_tree(uint32_t flags, int *ret_fuse_fd, int *ret_tree, struct sb_err *err)
{
	unsigned int attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
	sb_autofd int fuse_fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	sb_autofd int fs = -1;
	sb_autofd int tree = -1;
	int r;

	if (fuse_fd < 0)
		return sb_err_set(err, -errno, "/dev/fuse: %s", strerror(errno));
	fs = fsopen("fuse", FSOPEN_CLOEXEC);
	if (fs < 0)
		return sb_err_set(err, -errno, "no FUSE file system: %s", strerror(errno));
	r = configure(fs, fuse_fd, flags);
	if (r < 0)
		return sb_err_set(err, r, "cannot make a FUSE mount: %s", strerror(-r));
	if (flags & SB_FUSE_RO)
		attrs |= MOUNT_ATTR_RDONLY;
	if (flags & SB_FUSE_NOEXEC)
		attrs |= MOUNT_ATTR_NOEXEC;
	tree = fsmount(fs, FSMOUNT_CLOEXEC, attrs);
	if (tree < 0)
		return sb_err_set(err, -errno, "cannot mount FUSE: %s", strerror(errno));
	*ret_fuse_fd = sb_fd_take(&fuse_fd);
	*ret_tree = sb_fd_take(&tree);
	return 0;
}

int sb_fuse_mount(const char *target, uint32_t flags, int *ret_fuse_fd, struct sb_err *err)
{
	sb_autofd int fuse_fd = -1;
	sb_autofd int tree = -1;
	int r = sb_fuse_tree(flags, &fuse_fd, &tree, err);

	if (r < 0)
		return r;
	if (move_mount(tree, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return sb_err_set(err, -errno, "cannot mount on %s: %s", target, strerror(errno));
	*ret_fuse_fd = sb_fd_take(&fuse_fd);
	return 0;
}

int sb_fuse_readahead(const char *sysfs, const char *target, unsigned int kib)
{
	char path[256];
	char text[16];
	sb_autofd int fd = -1;
	struct stat st;
	int n;

	if (stat(target, &st) < 0)
		return -errno;
	n = snprintf(path, sizeof(path), "%s/class/bdi/%u:%u/read_ahead_kb", sysfs,
		     major(st.st_dev), minor(st.st_dev));
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = snprintf(text, sizeof(text), "%u\n", kib);
	return sb_fd_write_all(fd, text, (size_t)n);
}

/* ---- pump ---- */

struct pump {
	int fuse;
	int port;
	uint8_t *out;   /* MSG_MAX: kernel to port */
	uint8_t *in;    /* 2 * MSG_MAX: port to kernel */
	uint8_t *notes; /* NOTES_MAX: whole notifications, in order */
	size_t notes_len;
	pthread_mutex_t lock;
	pthread_cond_t more;
};

/* Whole message to the port; the driver takes at most 32 KiB at a time. */
static void to_port(const struct pump *p, const uint8_t *buf, size_t len)
{
	while (len > 0) {
		ssize_t n = write(p->port, buf, len);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			if (errno != EAGAIN)
				_exit(1);
			struct pollfd w = { .fd = p->port, .events = POLLOUT };

			(void)poll(&w, 1, 1000);
			continue;
		}
		buf += n;
		len -= (size_t)n;
	}
}

static void *requests(void *arg)
{
	struct pump *p = arg;

	for (;;) {
		ssize_t n = read(p->fuse, p->out, MSG_MAX);

		if (n < 0) {
			/* ENOENT: the request was taken back */
			if (errno == EINTR || errno == ENOENT || errno == EAGAIN)
				continue;
			_exit(errno == ENODEV ? 0 : 1);
		}
		to_port(p, p->out, (size_t)n);
	}
	return NULL;
}

/*
 * A notification may wait for a lock that a request under way holds, and the answer to that
 * request comes through the other thread: so these have one of their own.
 */
static void *notifications(void *arg)
{
	struct pump *p = arg;
	static uint8_t one[NOTE_MAX];

	for (;;) {
		struct fuse_out_header h;

		(void)pthread_mutex_lock(&p->lock);
		while (p->notes_len == 0)
			(void)pthread_cond_wait(&p->more, &p->lock);
		memcpy(&h, p->notes, sizeof(h));
		memcpy(one, p->notes, h.len);
		p->notes_len -= h.len;
		memmove(p->notes, p->notes + h.len, p->notes_len);
		(void)pthread_mutex_unlock(&p->lock);
		/* what is not cached (ENOENT) or busy needs no telling */
		if (write(p->fuse, one, h.len) < 0 && errno == ENODEV)
			_exit(0);
	}
	return NULL;
}

static void queue_note(struct pump *p, const uint8_t *msg, uint32_t len)
{
	if (len > NOTE_MAX)
		return;
	(void)pthread_mutex_lock(&p->lock);
	if (NOTES_MAX - p->notes_len >= len) {
		memcpy(p->notes + p->notes_len, msg, len);
		p->notes_len += len;
		(void)pthread_cond_signal(&p->more);
	}
	(void)pthread_mutex_unlock(&p->lock);
}

/* Give the kernel every whole message of the first @len bytes. Return: bytes used. */
static size_t deliver(struct pump *p, size_t len)
{
	size_t at = 0;

	while (len - at >= sizeof(struct fuse_out_header)) {
		struct fuse_out_header h;

		memcpy(&h, p->in + at, sizeof(h));
		if (h.len < sizeof(h) || h.len > MSG_MAX)
			_exit(1);
		if (len - at < h.len)
			break;
		if (h.unique == 0) {
			queue_note(p, p->in + at, h.len);
		} else if (write(p->fuse, p->in + at, h.len) < 0) {
			if (errno == ENODEV)
				_exit(0);
			/* ENOENT: nobody waits for it any more */
			if (errno != ENOENT && errno != EINTR)
				_exit(1);
		}
		at += h.len;
	}
	return at;
}

/*
 * Read from the blocking port: one iovec for each buffer of the driver, and never more of them
 * than the message under way still fills, for the call would wait for the last one.
 */
static ssize_t from_port(const struct pump *p, size_t have)
{
	struct iovec v[MAX_IOV];
	unsigned int n = 0;
	size_t want = 0;
	uint32_t len;

	if (have >= sizeof(len)) {
		memcpy(&len, p->in, sizeof(len));
		want = len > have ? len - have : 0;
	}
	do {
		v[n] = (struct iovec){ p->in + have + (size_t)n * PORT_BUF, PORT_BUF };
		n++;
	} while (n < MAX_IOV && (size_t)(n + 1) * PORT_BUF <= want);
	return n == 1 ? read(p->port, v[0].iov_base, PORT_BUF) : readv(p->port, v, (int)n);
}

SB_NORETURN static void answers(struct pump *p)
{
	const struct timespec nap = { .tv_nsec = 10 * 1000 * 1000 };
	unsigned int waited_ms = 0;
	size_t have = 0;

	for (;;) {
		ssize_t n = from_port(p, have);
		size_t used;

		if (n < 0) {
			struct pollfd w = { .fd = p->port, .events = POLLIN };

			if (errno != EAGAIN && errno != EINTR)
				_exit(1);
			(void)poll(&w, 1, 1000);
			continue;
		}
		if (n == 0) { /* no host there: not yet, or no more */
			if (waited_ms >= FIRST_WAIT_MS)
				_exit(1);
			(void)nanosleep(&nap, NULL);
			waited_ms += 10;
			continue;
		}
		waited_ms = FIRST_WAIT_MS;
		have += (size_t)n;
		used = deliver(p, have);
		if (used > 0) {
			have -= used;
			memmove(p->in, p->in + used, have);
		}
	}
}

static int start_thread(void *(*fn)(void *), struct pump *p)
{
	pthread_attr_t attr;
	pthread_t t;
	int r = pthread_attr_init(&attr);

	if (r == 0) {
		r = pthread_attr_setstacksize(&attr, STACK);
		if (r == 0)
			r = pthread_create(&t, &attr, fn, p);
		(void)pthread_attr_destroy(&attr);
	}
	return -r;
}

static void *pages(size_t len)
{
	void *m = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return m == MAP_FAILED ? NULL : m;
}

static void unkillable_by_oom(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, "-1000", 5) < 0) {
		/* not allowed (a test without root): then it is as any other process */
	}
	(void)close(fd);
}

static int close_rest(int a, int b)
{
	unsigned int lo = (unsigned int)SB_MIN(a, b);
	unsigned int hi = (unsigned int)SB_MAX(a, b);
	int r = 0;

	if (lo > 3)
		r |= close_range(3, lo - 1, 0);
	if (hi > lo + 1)
		r |= close_range(lo + 1, hi - 1, 0);
	r |= close_range(hi + 1, ~0U, 0);
	return r < 0 ? -errno : 0;
}

SB_NORETURN static void child(int fuse_fd, int port_fd, pid_t parent)
{
	static struct pump p;
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
		_exit(1);
	(void)prctl(PR_SET_NAME, "sb-fuse", 0, 0, 0);
	(void)setsid();
	(void)signal(SIGPIPE, SIG_IGN);
	unkillable_by_oom();
	if (sb_fd_set_nonblock(port_fd, false) < 0 || close_rest(fuse_fd, port_fd) < 0 ||
	    chdir("/") < 0)
		_exit(1);
	p.fuse = fuse_fd;
	p.port = port_fd;
	p.out = pages(MSG_MAX);
	p.in = pages(2UL * MSG_MAX);
	p.notes = pages(NOTES_MAX);
	if (!p.out || !p.in || !p.notes || pthread_mutex_init(&p.lock, NULL) != 0 ||
	    pthread_cond_init(&p.more, NULL) != 0)
		_exit(1);
	/* it must not wait for memory that only its own mount could free; best effort in tests */
	(void)mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
	if (start_thread(requests, &p) < 0 || start_thread(notifications, &p) < 0)
		_exit(1);
	answers(&p);
}

int sb_fuse_pump_start(int *fuse_fd, int *port_fd, pid_t *ret)
{
	pid_t parent = getpid();
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0)
		child(*fuse_fd, *port_fd, parent);
	sb_fd_close(fuse_fd);
	sb_fd_close(port_fd);
	*ret = pid;
	return 0;
}
