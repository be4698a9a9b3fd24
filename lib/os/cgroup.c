#include "os/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"

#define V1_MAGIC 0x27e0eb
#define V2_MAGIC 0x63677270
#define PREFIX "sendbox-"
#define NAME_MAX_LEN 64
#define WAIT_MS 5000
#define POLL_MS 10
#define CPU_PERIOD_US 100000ULL
#define TEXT_CAP (4U << 20) /* mountinfo of a machine with many containers */

static const char *const names[SB_CGROUP_N] = { "cpu", "memory", "pids" };

struct group {
	char path[PATH_MAX];
	bool v2;
};
struct sb_cgroup {
	struct group group[SB_CGROUP_N];
	size_t n;
};

static bool join(char *ret, size_t cap, const char *a, const char *b, const char *c)
{
	size_t la = strlen(a);
	size_t lb = strlen(b);
	size_t lc = strlen(c);

	if (la + lb + lc >= cap)
		return false;
	memcpy(ret, a, la);
	memcpy(ret + la, b, lb);
	memcpy(ret + la + lb, c, lc + 1);
	return true;
}

/* --- small file access ------------------------------------------------------------------ */

static int put(const char *dir, const char *file, const char *text)
{
	char path[PATH_MAX + 64];
	sb_autofd int fd = -1;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	/* one write: each is one command to the kernel */
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

static int get(const char *dir, const char *file, char **ret)
{
	char path[PATH_MAX + 64];
	size_t len;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, file);
	return sb_fd_read_file(AT_FDCWD, path, TEXT_CAP, ret, &len);
}

/* Whether @word is one of the words of @list, which blanks, commas or newlines separate. */
static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	while (*list) {
		size_t n = strcspn(list, " ,\n");

		if (n == len && memcmp(list, word, len) == 0)
			return true;
		list += n;
		list += strspn(list, " ,\n");
	}
	return false;
}

static void sleep_ms(unsigned int ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	(void)nanosleep(&ts, NULL);
}

/* --- where the caller is ---------------------------------------------------------------- */

struct hierarchy {
	bool v2;
	char mount[PATH_MAX]; /* mount point */
	char own[PATH_MAX];   /* the caller's directory in it */
};

/* The caller's path in the hierarchy with controller @c (NULL: version 2), from /proc text. */
static bool own_path(const char *cgroups, const char *c, char *ret, size_t cap)
{
	for (const char *line = cgroups; line && *line;) {
		const char *end = strchrnul(line, '\n');
		const char *list = memchr(line, ':', (size_t)(end - line));
		const char *path = list ? memchr(list + 1, ':', (size_t)(end - list - 1)) : NULL;

		if (path) {
			char controllers[128];
			size_t len = (size_t)(path - list - 1);

			len = SB_MIN(len, sizeof(controllers) - 1);
			memcpy(controllers, list + 1, len);
			controllers[len] = '\0';
			if (c ? has_word(controllers, c) : len == 0) {
				len = (size_t)(end - path - 1);
				if (len >= cap)
					return false;
				memcpy(ret, path + 1, len);
				ret[len] = '\0';
				return true;
			}
		}
		line = *end ? end + 1 : end;
	}
	return false;
}

/* Undo the octal escapes of mountinfo in place. */
static void unescape(char *s)
{
	char *to = s;

	while (*s) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] && s[3]) {
			*to++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
			s += 4;
		} else {
			*to++ = *s++;
		}
	}
	*to = '\0';
}

/* Find the mount with controller @c (NULL: version 2). @ret->own is not set. */
static bool find_mount(char *info, const char *c, struct hierarchy *ret, char *root, size_t cap)
{
	char *save = NULL;

	for (char *line = strtok_r(info, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *tail = strstr(line, " - ");
		char at_root[PATH_MAX];
		char at[PATH_MAX];
		char type[32];
		char options[512];

		if (!tail || sscanf(line, "%*d %*d %*s %4095s %4095s", at_root, at) != 2 ||
		    sscanf(tail + 3, "%31s %*s %511s", type, options) != 2)
			continue;
		if (strcmp(type, c ? "cgroup" : "cgroup2") != 0 || (c && !has_word(options, c)))
			continue;
		unescape(at);
		unescape(at_root);
		if (strlen(at_root) >= cap)
			continue;
		memcpy(ret->mount, at, strlen(at) + 1);
		memcpy(root, at_root, strlen(at_root) + 1);
		ret->v2 = !c;
		return true;
	}
	return false;
}

static bool is_dir(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool find_hierarchy(const char *c, struct hierarchy *ret)
{
	sb_autofree char *info = NULL;
	sb_autofree char *cgroups = NULL;
	char root[PATH_MAX];
	char own[PATH_MAX];
	const char *below = own;
	size_t len;

	if (get("/proc/self", "mountinfo", &info) < 0 || get("/proc/self", "cgroup", &cgroups) < 0)
		return false;
	if (!find_mount(info, c, ret, root, sizeof(root)) ||
	    !own_path(cgroups, c, own, sizeof(own)))
		return false;
	/* the mount may show a part of the hierarchy only (containers) */
	len = strlen(root);
	if (len > 1 && strncmp(own, root, len) == 0 && (own[len] == '/' || own[len] == '\0'))
		below = own + len;
	if (strcmp(below, "/") == 0)
		below = "";
	if (strstr(below, "/..") || !join(ret->own, sizeof(ret->own), ret->mount, below, "") ||
	    !is_dir(ret->own))
		memcpy(ret->own, ret->mount, sizeof(ret->own));
	return true;
}

/* --- where groups can be made ----------------------------------------------------------- */

static bool writable(const char *dir)
{
	char path[PATH_MAX + 16];

	(void)snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	return access(dir, W_OK) == 0 && access(path, W_OK) == 0;
}

/* Whether children of @dir have controller @c, switching it on when that is allowed. */
static bool passes_on(const char *dir, const char *c)
{
	sb_autofree char *on = NULL;
	char text[16];

	if (get(dir, "cgroup.subtree_control", &on) == 0 && has_word(on, c))
		return true;
	(void)snprintf(text, sizeof(text), "+%s", c);
	return put(dir, "cgroup.subtree_control", text) == 0;
}

static bool v2_parent(const char *c, char *ret)
{
	struct hierarchy h;
	sb_autofree char *all = NULL;

	if (!find_hierarchy(NULL, &h) || get(h.mount, "cgroup.controllers", &all) < 0 ||
	    !has_word(all, c))
		return false;
	/* a group with processes passes nothing on, so usually an ancestor has to */
	for (;;) {
		char *slash;

		if (writable(h.own) && passes_on(h.own, c)) {
			memcpy(ret, h.own, strlen(h.own) + 1);
			return true;
		}
		slash = strrchr(h.own, '/');
		if (strlen(h.own) <= strlen(h.mount) || !slash)
			return false;
		*slash = '\0';
	}
}

static bool find_parent(enum sb_cgroup_controller c, char *ret, bool *ret_v2)
{
	struct hierarchy h;

	if (find_hierarchy(names[c], &h)) { /* a controller is in one hierarchy only */
		if (!writable(h.own))
			return false;
		memcpy(ret, h.own, strlen(h.own) + 1);
		*ret_v2 = false;
		return true;
	}
	*ret_v2 = true;
	return v2_parent(names[c], ret);
}

static const char *remedy_for(const char *c, char *buf, size_t cap)
{
	if (geteuid() == 0)
		(void)snprintf(buf, cap,
			       "mount a cgroup hierarchy with the controller \"%s\" read-write", c);
	else
		(void)snprintf(buf, cap,
			       "run it as: systemd-run --user --scope -p Delegate=yes sendbox ... "
			       "(controller \"%s\" is not delegated to you)",
			       c);
	return buf;
}

void sb_cgroup_probe(struct sb_cgroup_probe *ret)
{
	for (int i = 0; i < SB_CGROUP_N; i++) {
		char parent[PATH_MAX];
		bool v2;

		ret->controller[i].name = names[i];
		ret->controller[i].where[0] = '\0';
		ret->controller[i].remedy[0] = '\0';
		ret->controller[i].usable =
			find_parent((enum sb_cgroup_controller)i, parent, &v2);
		if (ret->controller[i].usable)
			(void)snprintf(ret->controller[i].where, sizeof(ret->controller[i].where),
				       "%.199s", parent);
		else
			(void)remedy_for(names[i], ret->controller[i].remedy,
					 sizeof(ret->controller[i].remedy));
	}
}

/* --- making ----------------------------------------------------------------------------- */

static int set_limit(const struct group *g, enum sb_cgroup_controller c,
		     const struct sb_cgroup_limits *l)
{
	char text[64];
	int r;

	switch (c) {
	case SB_CGROUP_CPU:
		if (g->v2) {
			(void)snprintf(text, sizeof(text), "%llu %llu", l->cpus * CPU_PERIOD_US,
				       CPU_PERIOD_US);
			return put(g->path, "cpu.max", text);
		}
		(void)snprintf(text, sizeof(text), "%llu", CPU_PERIOD_US);
		r = put(g->path, "cpu.cfs_period_us", text);
		if (r < 0)
			return r;
		(void)snprintf(text, sizeof(text), "%llu", l->cpus * CPU_PERIOD_US);
		return put(g->path, "cpu.cfs_quota_us", text);
	case SB_CGROUP_MEMORY:
		(void)snprintf(text, sizeof(text), "%" PRIu64, l->memory_bytes);
		if (g->v2) {
			r = put(g->path, "memory.max", text);
			if (r == 0)
				r = put(g->path, "memory.swap.max", "0");
			/* without swap accounting there is no such file */
			return r == -ENOENT ? 0 : r;
		}
		r = put(g->path, "memory.limit_in_bytes", text);
		if (r == 0)
			r = put(g->path, "memory.memsw.limit_in_bytes", text);
		return r == -ENOENT ? 0 : r;
	case SB_CGROUP_PIDS:
		(void)snprintf(text, sizeof(text), "%u", l->pids_max);
		return put(g->path, "pids.max", text);
	case SB_CGROUP_N:
	default:
		return -EINVAL;
	}
}

static struct group *group_at(struct sb_cgroup *cg, const char *path)
{
	for (size_t i = 0; i < cg->n; i++)
		if (strcmp(cg->group[i].path, path) == 0)
			return &cg->group[i];
	return NULL;
}

static int add_controller(struct sb_cgroup *cg, const char *name, enum sb_cgroup_controller c,
			  const struct sb_cgroup_limits *l, struct sb_err *err)
{
	char parent[PATH_MAX];
	char path[PATH_MAX];
	char remedy[200];
	struct group *g;
	bool v2;
	int r;

	if (!find_parent(c, parent, &v2))
		return sb_err_set(err, -EOPNOTSUPP, "the limit on %s cannot be enforced here: %s",
				  names[c], remedy_for(names[c], remedy, sizeof(remedy)));
	if (!join(path, sizeof(path), parent, "/" PREFIX, name))
		return sb_err_set(err, -ENAMETOOLONG, "cgroup path too long");
	g = group_at(cg, path);
	if (!g) {
		if (mkdir(path, 0755) < 0)
			return sb_err_set(err, -errno, "cannot make the cgroup %.300s: %s", path,
					  strerror(errno));
		g = &cg->group[cg->n++];
		memcpy(g->path, path, strlen(path) + 1);
		g->v2 = v2;
	}
	r = set_limit(g, c, l);
	if (r < 0)
		return sb_err_set(err, r, "cannot set the limit on %s in %.300s: %s", names[c], path,
				  strerror(-r));
	return 0;
}

static bool name_ok(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len <= NAME_MAX_LEN &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") ==
		       len;
}

int sb_cgroup_new(const char *name, const struct sb_cgroup_limits *limits, struct sb_cgroup **ret,
		  struct sb_err *err)
{
	const bool wanted[SB_CGROUP_N] = { limits->cpus > 0, limits->memory_bytes > 0,
					   limits->pids_max > 0 };
	struct sb_cgroup *cg;
	int r = 0;

	if (!name_ok(name))
		return sb_err_set(err, -EINVAL, "bad cgroup name");
	cg = calloc(1, sizeof(*cg));
	if (!cg)
		return -ENOMEM;
	for (int c = 0; r == 0 && c < SB_CGROUP_N; c++)
		if (wanted[c])
			r = add_controller(cg, name, (enum sb_cgroup_controller)c, limits, err);
	if (r < 0) {
		int r2 = sb_cgroup_remove(cg);

		if (r2 < 0)
			(void)sb_err_add(err, r2, "removing the cgroup: %s", strerror(-r2));
		(void)sb_cgroup_free(cg);
		return r;
	}
	*ret = cg;
	return 0;
}

struct sb_cgroup *sb_cgroup_free(struct sb_cgroup *cg)
{
	free(cg);
	return NULL;
}

int sb_cgroup_add(const struct sb_cgroup *cg, pid_t pid)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%d", pid);
	for (size_t i = 0; i < cg->n; i++) {
		int r = put(cg->group[i].path, "cgroup.procs", text);

		if (r < 0)
			return r;
	}
	return 0;
}

/* --- ending ----------------------------------------------------------------------------- */

/* One round of SIGKILL. Return: number of processes seen, -errno. */
static int kill_round(const struct group *g)
{
	sb_autofree char *text = NULL;
	int n = 0;
	int r;

	if (g->v2)
		(void)!put(g->path, "cgroup.kill", "1"); /* 5.14 and later; the list does it too */
	r = get(g->path, "cgroup.procs", &text);
	if (r < 0)
		return r == -ENOENT || r == -ENODEV ? 0 : r;
	for (char *p = text; *p;) {
		char *end;
		long pid = strtol(p, &end, 10);

		if (end == p)
			break;
		if (pid > 1) {
			n++;
			(void)kill((pid_t)pid, SIGKILL);
		} else {
			n++; /* 0: in another pid namespace; seen, out of reach from here */
		}
		p = end + strspn(end, "\n");
	}
	return n;
}

static int kill_group(const struct group *g)
{
	for (int ms = 0; ms < WAIT_MS; ms += POLL_MS) {
		int n = kill_round(g);

		if (n <= 0)
			return n;
		sleep_ms(POLL_MS);
	}
	return -EBUSY;
}

static int remove_group(const struct group *g)
{
	for (int ms = 0; ms < WAIT_MS; ms += POLL_MS) {
		if (rmdir(g->path) == 0 || errno == ENOENT)
			return 0;
		if (errno != EBUSY)
			return -errno;
		sleep_ms(POLL_MS);
	}
	return -EBUSY;
}

int sb_cgroup_kill(const struct sb_cgroup *cg)
{
	int r = 0;

	for (size_t i = 0; i < cg->n; i++) {
		int r2 = kill_group(&cg->group[i]);

		r = r < 0 ? r : r2;
	}
	return r;
}

int sb_cgroup_remove(const struct sb_cgroup *cg)
{
	int r = 0;

	for (size_t i = 0; i < cg->n; i++) {
		int r2 = remove_group(&cg->group[i]);

		r = r < 0 ? r : r2;
	}
	return r;
}

bool sb_cgroup_oom(const struct sb_cgroup *cg)
{
	for (size_t i = 0; i < cg->n; i++) {
		const char *file = cg->group[i].v2 ? "memory.events" : "memory.oom_control";
		sb_autofree char *text = NULL;
		const char *at;

		if (get(cg->group[i].path, file, &text) < 0)
			continue; /* not the hierarchy with memory */
		at = strstr(text, "oom_kill ");
		if (at && strtoul(at + strlen("oom_kill "), NULL, 10) > 0)
			return true;
	}
	return false;
}

/* --- records ---------------------------------------------------------------------------- */

int sb_cgroup_describe(const struct sb_cgroup *cg, char **ret)
{
	struct sb_buf b;

	sb_buf_init(&b, SB_CGROUP_N * (PATH_MAX + 1) + 1);
	for (size_t i = 0; i < cg->n; i++)
		sb_buf_addf(&b, "%s\n", cg->group[i].path);
	sb_buf_add_u8(&b, 0);
	if (sb_buf_error(&b)) {
		sb_buf_done(&b);
		return -ENOMEM;
	}
	*ret = (char *)b.data; /* moved out */
	return 0;
}

static int gc_one(const char *path)
{
	const char *base = strrchr(path, '/');
	struct group g;
	struct statfs fs;
	int r;

	if (path[0] != '/' || strstr(path, "/../") || strncmp(base + 1, PREFIX, strlen(PREFIX)) != 0 ||
	    !name_ok(base + 1 + strlen(PREFIX)) || strlen(path) >= sizeof(g.path))
		return -EINVAL;
	if (statfs(path, &fs) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fs.f_type != V1_MAGIC && fs.f_type != V2_MAGIC)
		return -EINVAL;
	memcpy(g.path, path, strlen(path) + 1);
	g.v2 = fs.f_type == V2_MAGIC;
	r = kill_group(&g);
	return r < 0 ? r : remove_group(&g);
}

int sb_cgroup_gc(const char *text)
{
	int r = 0;

	while (*text) {
		size_t len = strcspn(text, "\n");
		sb_autofree char *line = strndup(text, len);
		int r2 = line ? 0 : -ENOMEM;

		if (line && len > 0)
			r2 = gc_one(line);
		r = r < 0 ? r : r2;
		text += len;
		text += *text == '\n';
	}
	return r;
}
