#include "provider/namespace/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"

#define MAX_TEXT (1U << 20)
#define PREFIX "/sys/fs/cgroup/"
#define RECORD "cgroups"
#define REMOVE_MS 3000
#define PERIOD_US 100000U

/* Whether the comma-separated @list has @word. */
static bool has_word(const char *list, size_t len, const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; i + n <= len; i++)
		if (memcmp(list + i, word, n) == 0 && (i == 0 || list[i - 1] == ',') &&
		    (i + n == len || list[i + n] == ','))
			return true;
	return false;
}

/* Our own group in the hierarchy of @controller ("" = version 2). Return: length; 0 = not found. */
static size_t own_group(const char *self, const char *controller, const char **ret)
{
	for (const char *line = self; *line;) {
		const char *end = strchrnul(line, '\n');
		const char *list = memchr(line, ':', (size_t)(end - line));
		const char *path = list ? memchr(list + 1, ':', (size_t)(end - list - 1)) : NULL;

		if (path) {
			size_t len = (size_t)(path - list - 1);

			if (controller[0] ? has_word(list + 1, len, controller) : len == 0) {
				*ret = path + 1;
				return (size_t)(end - path - 1);
			}
		}
		line = *end ? end + 1 : end;
	}
	return 0;
}

/* Field @n (0-based) of a line of mountinfo. Return: its length. */
static size_t field(const char *line, size_t n, const char **ret)
{
	size_t len;

	for (; n > 0; n--) {
		line += strcspn(line, " \n");
		line += *line == ' ';
	}
	len = strcspn(line, " \n");
	*ret = line;
	return len;
}

static int join(char *ret, size_t cap, const char *mount, size_t mount_len, const char *own,
		size_t own_len)
{
	int n;

	if (own_len == 1) /* "/" */
		own_len = 0;
	n = snprintf(ret, cap, "%.*s%.*s", (int)mount_len, mount, (int)own_len, own);
	return n < 0 || (size_t)n >= cap ? -ENAMETOOLONG : 0;
}

int sb_ns_cgroup_find(const char *mountinfo, const char *self, const char *controller, bool root,
		      char *ret, size_t cap, bool *ret_v2)
{
	for (const char *line = mountinfo; *line;) {
		const char *end = strchrnul(line, '\n');
		const char *dash = memmem(line, (size_t)(end - line), " - ", 3);
		const char *at;
		const char *type;
		const char *opts;
		const char *own = "/";
		size_t at_len = field(line, 4, &at);
		size_t own_len = 1;
		size_t type_len = dash ? field(dash + 3, 0, &type) : 0;
		bool v1 = type_len == 6 && memcmp(type, "cgroup", 6) == 0;

		if (v1) {
			size_t len = field(dash + 3, 2, &opts);

			if (has_word(opts, len, controller)) {
				own_len = own_group(self, controller, &own);
				*ret_v2 = false;
				return join(ret, cap, at, at_len, own, own_len);
			}
		} else if (type_len == 7 && memcmp(type, "cgroup2", 7) == 0) {
			char path[4200];
			sb_autofree char *text = NULL;
			size_t len = 0;

			/* root makes its groups at the top: processes there are no obstacle */
			if (!root)
				own_len = own_group(self, "", &own);
			(void)snprintf(path, sizeof(path), "%.*s/cgroup.controllers",
				       (int)SB_MIN(at_len, (size_t)4000), at);
			if (sb_fd_read_file(AT_FDCWD, path, MAX_TEXT, &text, &len) == 0) {
				for (size_t i = 0; i < len; i++)
					if (text[i] == ' ' || text[i] == '\n')
						text[i] = ',';
				if (has_word(text, len, controller)) {
					*ret_v2 = true;
					return join(ret, cap, at, at_len, own, own_len);
				}
			}
		}
		line = *end ? end + 1 : end;
	}
	return -ENOENT;
}

static int put(const char *dir, const char *name, const char *text)
{
	char path[4300];
	sb_autofd int fd = -1;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	n = write(fd, text, strlen(text));
	return n < 0 ? -errno : 0;
}

static int put_u64(const char *dir, const char *name, uint64_t v)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
	return put(dir, name, text);
}

static int set_memory(const char *dir, bool v2, uint64_t v)
{
	int e = put_u64(dir, v2 ? "memory.max" : "memory.limit_in_bytes", v);
	int swap;

	if (e < 0)
		return e;
	/* without swap accounting there is nothing to set */
	swap = v2 ? put(dir, "memory.swap.max", "0") :
		    put_u64(dir, "memory.memsw.limit_in_bytes", v);
	return swap < 0 && swap != -ENOENT && swap != -EACCES ? swap : 0;
}

static int set_cpu(const char *dir, bool v2, uint64_t cpus)
{
	char text[64];
	int e;

	if (v2) {
		(void)snprintf(text, sizeof(text), "%llu %u",
			       (unsigned long long)(cpus * PERIOD_US), PERIOD_US);
		return put(dir, "cpu.max", text);
	}
	e = put_u64(dir, "cpu.cfs_period_us", PERIOD_US);
	return e < 0 ? e : put_u64(dir, "cpu.cfs_quota_us", cpus * PERIOD_US);
}

static int set_pids(const char *dir, bool v2, uint64_t v)
{
	(void)v2;
	return put_u64(dir, "pids.max", v);
}

static const struct {
	const char *name; /* of the controller and of the option */
	int (*set)(const char *dir, bool v2, uint64_t v);
} kinds[SB_NS_GROUPS] = {
	{ "memory", set_memory },
	{ "pids", set_pids },
	{ "cpu", set_cpu },
};

struct host {
	char *mountinfo;
	char *self;
};

static void host_done(struct host *h)
{
	free(h->mountinfo);
	free(h->self);
}

static int host_read(struct host *h)
{
	size_t len;
	int e = sb_fd_read_file(AT_FDCWD, "/proc/self/mountinfo", MAX_TEXT, &h->mountinfo, &len);

	return e < 0 ? e : sb_fd_read_file(AT_FDCWD, "/proc/self/cgroup", MAX_TEXT, &h->self, &len);
}

static int refuse(struct sb_err *err, int e, const char *what)
{
	const char *remedy = geteuid() == 0 ?
		"give this system the controller (cgroup v2: boot with systemd.unified_cgroup_"
		"hierarchy=1), or leave the limit out" :
		"run inside: systemd-run --user --scope -p Delegate=yes, use --runtime microvm, or "
		"leave the limit out";

	return sb_err_set(err, e, "the limit for %s cannot be enforced here (%s); %s", what,
			  strerror(-e), remedy);
}

/* Make or reuse the group for kind @k. */
static int make_group(const struct host *h, size_t k, int record, const char *name, uint64_t value,
		      struct sb_ns_groups *g, const char **ret)
{
	char parent[4096];
	char enable[32];
	sb_autofree char *dir = NULL;
	bool v2;
	int e = sb_ns_cgroup_find(h->mountinfo, h->self, kinds[k].name, geteuid() == 0, parent,
				  sizeof(parent), &v2);

	if (e < 0)
		return e;
	if (asprintf(&dir, "%s/%s", parent, name) < 0) {
		dir = NULL;
		return -ENOMEM;
	}
	*ret = NULL;
	for (size_t i = 0; i < g->n; i++)
		if (strcmp(g->dirs[i], dir) == 0)
			*ret = g->dirs[i];
	if (v2) {
		(void)snprintf(enable, sizeof(enable), "+%s", kinds[k].name);
		e = put(parent, "cgroup.subtree_control", enable);
		if (e < 0)
			return e;
	}
	if (!*ret) {
		if (dprintf(record, "%s\n", dir) < 0)
			return -errno;
		if (mkdir(dir, 0755) < 0)
			return -errno;
		g->dirs[g->n++] = sb_take(&dir);
		*ret = g->dirs[g->n - 1];
	}
	return kinds[k].set(*ret, v2, value);
}

int sb_ns_limits_set(const struct sb_ns_limits *l, int session_dir, const char *name, pid_t pid,
		     struct sb_ns_groups *ret, struct sb_err *err)
{
	const uint64_t values[SB_NS_GROUPS] = { l->memory_bytes, l->pids, l->cpus };
	SB_CLEANUP(host_done) struct host h = { 0 };
	struct sb_ns_groups g = { 0 };
	sb_autofd int record = -1;
	int e = 0;

	*ret = g;
	if (!values[0] && !values[1] && !values[2])
		return 0;
	record = openat(session_dir, RECORD,
			O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (record < 0)
		return sb_err_set(err, -errno, "cannot record the control groups: %s",
				  strerror(errno));
	e = host_read(&h);
	if (e < 0)
		return sb_err_set(err, e, "cannot read /proc/self: %s", strerror(-e));
	for (size_t k = 0; e == 0 && k < SB_NS_GROUPS; k++) {
		const char *dir;

		if (!values[k])
			continue;
		e = make_group(&h, k, record, name, values[k], &g, &dir);
		if (e == 0)
			e = put_u64(dir, "cgroup.procs", (uint64_t)pid);
		if (e < 0)
			(void)refuse(err, e, kinds[k].name);
	}
	if (e < 0) {
		/* the process is not the caller's last word: it may sit in a group still */
		for (size_t i = 0; i < g.n; i++)
			if (rmdir(g.dirs[i]) == 0)
				g.dirs[i][0] = '\0';
		*ret = g;
		return e;
	}
	*ret = g;
	return 0;
}

/* Kill every process in the group at @dir. */
static void kill_group(const char *dir)
{
	char path[4300];
	sb_autofree char *text = NULL;
	char *save = NULL;
	size_t len;

	if (put(dir, "cgroup.kill", "1") == 0)
		return;
	(void)snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	if (sb_fd_read_file(AT_FDCWD, path, MAX_TEXT, &text, &len) < 0)
		return;
	for (char *p = strtok_r(text, "\n", &save); p; p = strtok_r(NULL, "\n", &save)) {
		uint64_t pid;

		if (sb_num_u64(p, 2, INT32_MAX, &pid) == 0)
			(void)kill((pid_t)pid, SIGKILL);
	}
}

static int remove_group(const char *dir)
{
	const struct timespec nap = { .tv_nsec = 1000000 };

	for (int i = 0; i < REMOVE_MS; i++) {
		if (rmdir(dir) == 0 || errno == ENOENT)
			return 0;
		if (errno != EBUSY)
			break;
		kill_group(dir);
		(void)nanosleep(&nap, NULL);
	}
	return -errno;
}

int sb_ns_groups_remove(struct sb_ns_groups *g, struct sb_err *err)
{
	int first = 0;

	for (size_t i = 0; i < g->n; i++) {
		int e = g->dirs[i][0] ? remove_group(g->dirs[i]) : 0;

		if (e < 0)
			(void)sb_err_add(err, e, "cannot remove %s: %s", g->dirs[i], strerror(-e));
		if (e < 0 && first == 0)
			first = e;
		free(g->dirs[i]);
	}
	g->n = 0;
	return first;
}

int sb_ns_groups_gc(int session_dir, struct sb_err *err)
{
	sb_autofree char *text = NULL;
	char *save = NULL;
	size_t len;
	int e = sb_fd_read_file(session_dir, RECORD, MAX_TEXT, &text, &len);
	int first = 0;

	if (e == -ENOENT)
		return 0;
	if (e < 0)
		return sb_err_add(err, e, "cannot read the record of control groups: %s",
				  strerror(-e));
	for (char *dir = strtok_r(text, "\n", &save); dir; dir = strtok_r(NULL, "\n", &save)) {
		const char *base = strrchr(dir, '/');

		if (strncmp(dir, PREFIX, sizeof(PREFIX) - 1) != 0 || strstr(dir, "/../") ||
		    strncmp(base, "/sendbox-", 9) != 0)
			continue; /* none of ours */
		e = remove_group(dir);
		if (e < 0)
			(void)sb_err_add(err, e, "cannot remove %s: %s", dir, strerror(-e));
		if (e < 0 && first == 0)
			first = e;
	}
	return first;
}

bool sb_ns_limits_probe(char *ret, size_t cap)
{
	SB_CLEANUP(host_done) struct host h = { 0 };
	bool all = true;
	size_t n = 0;

	ret[0] = '\0';
	if (host_read(&h) < 0)
		return false;
	for (size_t k = 0; k < SB_NS_GROUPS; k++) {
		char dir[4096];
		bool v2 = false;
		int e = sb_ns_cgroup_find(h.mountinfo, h.self, kinds[k].name, geteuid() == 0, dir,
					  sizeof(dir), &v2);
		bool ok = e == 0 && access(dir, W_OK) == 0;
		int w = snprintf(ret + n, cap - n, "%s%s %s", n ? ", " : "", kinds[k].name,
				 !ok ? (e < 0 ? "missing" : "not writable") : v2 ? "v2" : "v1");

		if (w > 0 && (size_t)w < cap - n)
			n += (size_t)w;
		all = all && ok;
	}
	return all;
}
