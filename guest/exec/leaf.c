#include "exec/leaf.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/fd.h"

#define RESERVE_MIN (24ULL << 20)
#define RESERVE_SHARE 16 /* of guest memory */

static int put(int dir, const char *file, const char *text)
{
	sb_autofd int fd = openat(dir, file, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return sb_fd_write_all(fd, text, strlen(text));
}

static int get(int dir, const char *file, char *buf, size_t cap)
{
	sb_autofd int fd = openat(dir, file, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, cap - 1);
	if (n < 0)
		return -errno;
	buf[n] = '\0';
	return 0;
}

/* The number after "@key " at the start of a line; 0 when there is none. */
static uint64_t field(int dir, const char *file, const char *key)
{
	char buf[1024];
	size_t len = strlen(key);

	if (get(dir, file, buf, sizeof(buf)) < 0)
		return 0;
	for (char *line = buf; line && *line; line = strchr(line, '\n')) {
		if (*line == '\n')
			line++;
		if (strncmp(line, key, len) == 0 && line[len] == ' ')
			return strtoull(line + len + 1, NULL, 10);
	}
	return 0;
}

static uint64_t memory_limit(const struct sb_plan *plan)
{
	struct sysinfo si;
	uint64_t total = plan->memory_bytes;
	uint64_t reserve;

	if (sysinfo(&si) == 0) {
		uint64_t ram = (uint64_t)si.totalram * si.mem_unit;

		if (total == 0 || ram < total)
			total = ram;
	}
	reserve = SB_MAX(RESERVE_MIN, total / RESERVE_SHARE);
	return total > 2 * reserve ? total - reserve : total / 2;
}

int sb_leaf_setup(const char *dir, const struct sb_plan *plan, struct sb_err *err)
{
	sb_autofd int fd = open(dir, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	char text[32];
	int r;

	if (fd < 0)
		return sb_err_set(err, -errno, "cgroup %s: %s", dir, strerror(errno));
	/* the parent's switch first: the delegated directory may have been made just now */
	(void)!put(fd, "../cgroup.subtree_control", "+memory +pids");
	r = put(fd, "cgroup.subtree_control", "+memory +pids");
	if (r < 0)
		return sb_err_set(err, r, "cgroup controllers memory and pids: %s", strerror(-r));
	if (plan->pids_max) {
		(void)snprintf(text, sizeof(text), "%u", plan->pids_max);
		r = put(fd, "pids.max", text);
		if (r < 0)
			return sb_err_set(err, r, "cgroup pids.max: %s", strerror(-r));
	}
	(void)snprintf(text, sizeof(text), "%" PRIu64, memory_limit(plan));
	r = put(fd, "memory.max", text);
	if (r < 0)
		return sb_err_set(err, r, "cgroup memory.max: %s", strerror(-r));
	return 0;
}

int sb_leaf_pids(const char *dir, char *ret, size_t cap, struct sb_err *err)
{
	sb_autofd int fd = open(dir, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	char text[32];
	int r = fd < 0 ? -errno : get(fd, "pids.max", text, sizeof(text));

	if (r < 0)
		return sb_err_set(err, r, "cgroup pids.max: %s", strerror(-r));
	text[strcspn(text, "\n")] = '\0';
	(void)snprintf(ret, cap, "pids=%s\n", text);
	return 0;
}

int sb_leaf_new(const char *dir, uint32_t id, int *ret)
{
	char path[512];
	sb_autofd int fd = -1;

	if ((size_t)snprintf(path, sizeof(path), "%s/cmd-%u", dir, id) >= sizeof(path))
		return -ENAMETOOLONG;
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return -errno;
	fd = open(path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* a command that lost one process to the OOM killer is in an unknown state: end it whole */
	(void)!put(fd, "memory.oom.group", "1");
	*ret = sb_fd_take(&fd);
	return 0;
}

int sb_leaf_kill(int leaf)
{
	return put(leaf, "cgroup.kill", "1");
}

bool sb_leaf_oom(int leaf)
{
	return field(leaf, "memory.events", "oom_kill") > 0;
}

bool sb_leaf_populated(int leaf)
{
	return field(leaf, "cgroup.events", "populated") > 0;
}

int sb_leaf_remove(const char *dir, uint32_t id)
{
	char path[512];

	if ((size_t)snprintf(path, sizeof(path), "%s/cmd-%u", dir, id) >= sizeof(path))
		return -ENAMETOOLONG;
	return rmdir(path) < 0 && errno != ENOENT ? -errno : 0;
}
