#include "exec/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <net/ethernet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "core/syscalls.h"
#include "exec/judge.h"

#define TEXT_MAX (SB_CONTROLS_MAX_TEXT / 2) /* the other half is for the kernel's settings */

struct sb_probe_report {
	int32_t failed; /* errno of a step, > 0 */
	char step[32];
	uint32_t complete;
	uint32_t len;
	char text[TEXT_MAX];
};

static void put(struct sb_probe_report *r, const char *fmt, ...) SB_PRINTF(2, 3);
static void put(struct sb_probe_report *r, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(r->text + r->len, sizeof(r->text) - r->len, fmt, ap);
	va_end(ap);
	if (n > 0 && (size_t)n < sizeof(r->text) - r->len)
		r->len += (uint32_t)n;
	else
		r->text[r->len] = '\0';
}

SB_NORETURN static void give_up(struct sb_probe_report *r, const char *step, int error)
{
	(void)snprintf(r->step, sizeof(r->step), "%s", step);
	r->failed = error;
	_exit(1);
}

/* --- limits ------------------------------------------------------------------------------ */

static void tell_limits(struct sb_probe_report *r, const struct sb_confine *c)
{
	static const struct {
		const char *name;
		int resource;
	} limits[] = {
		{ "core", RLIMIT_CORE },   { "nofile", RLIMIT_NOFILE }, { "fsize", RLIMIT_FSIZE },
		{ "as", RLIMIT_AS },	   { "data", RLIMIT_DATA },	{ "stack", RLIMIT_STACK },
		{ "cpu", RLIMIT_CPU },	   { "memlock", RLIMIT_MEMLOCK },
	};
	struct rlimit l;

	for (size_t i = 0; i < SB_ARRAY_LEN(limits); i++)
		if (getrlimit((__rlimit_resource_t)limits[i].resource, &l) == 0)
			put(r, "rlimit.%s=%" PRIu64 "\n", limits[i].name, (uint64_t)l.rlim_cur);
	if (c->nproc && getrlimit(RLIMIT_NPROC, &l) == 0)
		put(r, "pids=%" PRIu64 "\n", (uint64_t)l.rlim_cur);
}

/* --- what the kernel says of the process ------------------------------------------------- */

/* Copy the value of "Key:\tvalue\n" in @text. */
static bool field(const char *text, const char *key, char *ret, size_t cap)
{
	size_t len = strlen(key);

	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		if (*line == '\n')
			line++;
		if (strncmp(line, key, len) == 0 && line[len] == ':') {
			const char *v = line + len + 1 + strspn(line + len + 1, "\t ");
			size_t n = SB_MIN(strcspn(v, "\n"), cap - 1);

			memcpy(ret, v, n);
			ret[n] = '\0';
			return true;
		}
	}
	return false;
}

/* All four ids of the line are one: tell it. */
static void tell_id(struct sb_probe_report *r, const char *name, const char *status, const char *key)
{
	unsigned int id[4];
	char v[64];

	if (!field(status, key, v, sizeof(v)) ||
	    sscanf(v, "%u %u %u %u", &id[0], &id[1], &id[2], &id[3]) != 4)
		return;
	if (id[0] == id[1] && id[1] == id[2] && id[2] == id[3])
		put(r, "%s=%u\n", name, id[0]);
	else
		put(r, "%s=mixed\n", name);
}

static void tell_status(struct sb_probe_report *r, const struct sb_confine *c, int fd)
{
	static const char *const sets[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" };
	char status[4096];
	char v[64];
	ssize_t n = pread(fd, status, sizeof(status) - 1, 0);
	const char *caps = "none";
	char want[32] = "";

	if (c->builder)
		(void)snprintf(want, sizeof(want), "%016" PRIx64, SB_BUILDER_CAPS);
	if (n <= 0)
		return;
	status[n] = '\0';
	tell_id(r, "uid", status, "Uid");
	tell_id(r, "gid", status, "Gid");
	for (size_t i = 0; i < SB_ARRAY_LEN(sets); i++)
		if (!field(status, sets[i], v, sizeof(v)) ||
		    (c->builder && i > 0 && i < 4 ? strcmp(v, want) != 0
						   : v[strspn(v, "0")] != '\0'))
			caps = sets[i];
	put(r, "capabilities=%s\n", c->builder && strcmp(caps, "none") == 0 ? "builder" : caps);
	if (field(status, "NoNewPrivs", v, sizeof(v)))
		put(r, "no_new_privs=%s\n", v);
	if (field(status, "Seccomp", v, sizeof(v)))
		put(r, "seccomp=%s\n", strcmp(v, "2") == 0 ? "filter" : v);
}

/* --- calls ------------------------------------------------------------------------------- */

static const struct try {
	const char *word; /* of sb_controls_refused */
	long nr;
	unsigned long arg[3]; /* harmless, and answered otherwise where the call is not refused */
	int error;
} tries[] = {
	{ "mount", SYS_mount, { 0, 0, 0 }, EPERM },
	{ "unshare", SYS_unshare, { 0, 0, 0 }, EPERM },
	{ "setns", SYS_setns, { ~0UL, 0, 0 }, EPERM },
	{ "bpf", SYS_bpf, { 9999, 0, 0 }, EPERM },
	{ "keyctl", SYS_keyctl, { 9999, 0, 0 }, EPERM },
	{ "perf_event_open", SYS_perf_event_open, { 0, 0, 0 }, EPERM },
	{ "io_uring_setup", SYS_io_uring_setup, { 0, 0, 0 }, EPERM },
	{ "clone3", SYS_clone3, { 0, 0, 0 }, ENOSYS },
	{ "packet-socket", SYS_socket, { AF_PACKET, SOCK_RAW, 0 }, EAFNOSUPPORT },
	{ "tiocsti", SYS_ioctl, { ~0UL, TIOCSTI, 0 }, EPERM },
	{ "ptrace", SYS_ptrace, { 9999, ~0UL, 0 }, EPERM },
	{ "process_vm_readv", SYS_process_vm_readv, { 0, 0, 0 }, EPERM },
	{ "memfd_create", SYS_memfd_create, { 0, 0, 0 }, EPERM },
	{ "execveat", SYS_execveat, { ~0UL, 0, 0 }, EPERM },
	{ "netlink-socket", SYS_socket, { AF_NETLINK, SOCK_RAW, 0 }, EAFNOSUPPORT },
};

static void tell_refused(struct sb_probe_report *r, enum sb_profile profile)
{
	const char *words = sb_controls_refused(profile);
	const char *sep = "";

	put(r, "refused=");
	while (*words) {
		size_t len = strcspn(words, ",");

		for (size_t i = 0; i < SB_ARRAY_LEN(tries); i++) {
			const struct try *t = &tries[i];

			if (strlen(t->word) != len || memcmp(t->word, words, len) != 0)
				continue;
			if (syscall(t->nr, t->arg[0], t->arg[1], t->arg[2], 0, 0, 0) >= 0 ||
			    errno != t->error)
				continue;
			put(r, "%s%s", sep, t->word);
			sep = ",";
		}
		words += len + (words[len] == ',');
	}
	put(r, "\n");
}

/* Each with arguments that no call takes: one that is not refused does no harm, or ends us. */
static void tell_denied(struct sb_probe_report *r, char *const *names)
{
	const char *sep = "";
	pid_t self = getpid();

	if (!names || !*names)
		return;
	put(r, "denied=");
	for (; *names; names++) {
		int nr = sb_syscall_number(*names);
		long v = -1;

		errno = EPERM; /* a call that this machine has not is refused for good */
		if (nr >= 0)
			v = syscall(nr, -1L, -1L, -1L, -1L, -1L, -1L);
		if (v == 0 && (pid_t)syscall(SYS_getpid) != self) /* it was a fork */
			_exit(0);
		if (v >= 0 || errno != EPERM)
			continue;
		put(r, "%s%s", sep, *names);
		sep = ",";
	}
	put(r, "\n");
}

/* --- Landlock ---------------------------------------------------------------------------- */

/* A folder that anybody may write to and no rule names: attached nowhere. */
static int free_folder(void)
{
	sb_autofd int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);

	if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "mode", "1777", 0) < 0 ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	return fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

static bool can_make(int dir, const char *name)
{
	sb_autofd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	return fd >= 0;
}

/* --- the child --------------------------------------------------------------------------- */

SB_NORETURN static void child(const struct sb_plan *plan, const struct sb_confine *c, int judge,
			      int folder, struct sb_probe_report *r)
{
	sb_autofd int status = -1;
	bool could;
	int e = sb_confine_limits(c);

	if (e < 0)
		give_up(r, "limits", -e);
	e = sb_confine_identity(c);
	if (e < 0)
		give_up(r, "identity", -e);
	tell_limits(r, c);
	could = can_make(folder, "before");
	status = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	if (status < 0)
		give_up(r, "/proc/self/status", errno);
	e = sb_confine_walls(c, judge, SB_JUDGE_PROBE);
	if (e < 0)
		give_up(r, "walls", -e);
	put(r, "profile=%s\n", c->root ? "none" : sb_plan_profile_name(plan->profile));
	tell_status(r, c, status);
	if (!could)
		put(r, "landlock=cannot be tested\n");
	else
		put(r, "landlock=%s\n", can_make(folder, "after") ? "not in force" : "in force");
	if (!c->root) {
		tell_refused(r, plan->profile);
		tell_denied(r, plan->deny_syscalls);
		/* with the asking filter only the judge can have given these errors */
		if (c->asking.len > 0 && syscall(SYS_unshare, 0) < 0 && errno == EPERM)
			put(r, "log_blocked=in force\n");
	}
	r->complete = 1;
	_exit(0);
}

int sb_probe_start(const struct sb_plan *plan, const struct sb_confine *c, int judge,
		   struct sb_probe *ret, struct sb_err *err)
{
	struct sb_probe_report *r = mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	sb_autofd int folder = -1;
	sb_autofd int rd = -1;
	sb_autofd int wr = -1;
	int p[2];
	pid_t pid;

	if (r == MAP_FAILED)
		return sb_err_set(err, -errno, "probe: %s", strerror(errno));
	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0) {
		(void)munmap(r, sizeof(*r));
		return sb_err_set(err, -errno, "probe: %s", strerror(errno));
	}
	rd = p[0];
	wr = p[1];
	if (!c->root)
		folder = free_folder();
	pid = fork();
	if (pid == 0)
		child(plan, c, judge, folder, r);
	if (pid < 0) {
		(void)munmap(r, sizeof(*r));
		return sb_err_set(err, -errno, "probe: %s", strerror(errno));
	}
	*ret = (struct sb_probe){ .pid = pid, .done = sb_fd_take(&rd), .report = r };
	return 0;
}

int sb_probe_text(const struct sb_probe *p, const char **ret, struct sb_err *err)
{
	struct sb_probe_report *r = p->report;

	if (r->failed) {
		r->step[sizeof(r->step) - 1] = '\0';
		return sb_err_set(err, -r->failed, "a command cannot be confined: %s: %s", r->step,
				  strerror(r->failed));
	}
	if (!r->complete)
		return sb_err_set(err, -EPROTO, "the process that reads back the controls died");
	r->text[sizeof(r->text) - 1] = '\0';
	*ret = r->text;
	return 0;
}

void sb_probe_end(struct sb_probe *p)
{
	sb_fd_close(&p->done);
	if (p->report)
		(void)munmap(p->report, sizeof(*p->report));
	p->report = NULL;
}
