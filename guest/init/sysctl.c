/* Kernel settings of a guest that owns its kernel: applied, read back, told in READY. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "init/init.h"

enum rule {
	EXACT = 0,
	AT_LEAST = 1, /* a stricter value is as good */
};

static const struct setting {
	const char *path; /* below /proc/sys */
	const char *value;
	enum rule rule;
} settings[] = {
	{ "kernel/kptr_restrict", "2", EXACT },
	{ "kernel/dmesg_restrict", "1", EXACT },
	{ "kernel/perf_event_paranoid", "3", AT_LEAST },
	{ "kernel/unprivileged_bpf_disabled", "1", AT_LEAST },
	{ "net/core/bpf_jit_harden", "2", EXACT },
	{ "kernel/randomize_va_space", "2", EXACT },
	{ "kernel/core_pattern", "|/bin/false", EXACT },
	{ "kernel/core_uses_pid", "0", EXACT },
	{ "kernel/kexec_load_disabled", "1", EXACT },
	{ "kernel/io_uring_disabled", "2", EXACT },
	{ "kernel/sysrq", "0", EXACT },
	{ "kernel/panic_on_oops", "1", EXACT },
	{ "kernel/unprivileged_userns_clone", "0", EXACT },
	{ "user/max_user_namespaces", "0", EXACT },
	{ "vm/unprivileged_userfaultfd", "0", EXACT },
	{ "vm/mmap_min_addr", "65536", AT_LEAST },
	{ "fs/protected_symlinks", "1", EXACT },
	{ "fs/protected_hardlinks", "1", EXACT },
	{ "fs/protected_fifos", "2", EXACT },
	{ "fs/protected_regular", "2", EXACT },
	{ "fs/suid_dumpable", "0", EXACT },
	{ "dev/tty/ldisc_autoload", "0", EXACT },
	{ "dev/tty/legacy_tiocsti", "0", EXACT },
	{ "net/ipv4/ip_forward", "0", EXACT },
	{ "net/ipv4/conf/all/accept_redirects", "0", EXACT },
	{ "net/ipv4/conf/default/accept_redirects", "0", EXACT },
	{ "net/ipv4/conf/all/secure_redirects", "0", EXACT },
	{ "net/ipv4/conf/all/send_redirects", "0", EXACT },
	{ "net/ipv4/conf/all/accept_source_route", "0", EXACT },
	{ "net/ipv6/conf/all/accept_redirects", "0", EXACT },
	{ "net/ipv6/conf/all/accept_ra", "0", EXACT },
};

#define SETTINGS_TEXT 4096
static char told[SETTINGS_TEXT];
static size_t told_len;

static void tell(const char *path, const char *what)
{
	int n = snprintf(told + told_len, sizeof(told) - told_len, "sysctl.%s%s\n", path, what);

	if (n > 0 && (size_t)n < sizeof(told) - told_len)
		told_len += (size_t)n;
	else
		told[told_len] = '\0';
}

static bool holds(const struct setting *s, const char *now)
{
	uint64_t want;
	uint64_t have;

	if (strcmp(s->value, now) == 0)
		return true;
	return s->rule == AT_LEAST && sb_num_u64(s->value, 0, UINT32_MAX, &want) == 0 &&
	       sb_num_u64(now, 0, UINT32_MAX, &have) == 0 && have >= want;
}

/* The current value without its newline. */
static int get(int fd, char *ret, size_t cap)
{
	ssize_t n = pread(fd, ret, cap - 1, 0);

	if (n < 0)
		return -errno;
	ret[n] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	return 0;
}

/* Return: 0; -ENOENT when this kernel has no such setting; -errno. */
static int apply(int proc, const struct setting *s)
{
	char path[128];
	char now[256];
	sb_autofd int fd = -1;
	int e;

	(void)snprintf(path, sizeof(path), "sys/%s", s->path);
	fd = openat(proc, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	e = get(fd, now, sizeof(now));
	if (e == 0 && holds(s, now))
		return 0;
	if (pwrite(fd, s->value, strlen(s->value), 0) < 0)
		return -errno;
	e = get(fd, now, sizeof(now));
	if (e < 0)
		return e;
	return holds(s, now) ? 0 : -EIO;
}

static int set(int proc, const struct setting *s, struct sb_err *err)
{
	char value[32];
	int e = apply(proc, s);

	if (e == -ENOENT) {
		tell(s->path, "=absent");
		return 0;
	}
	if (e < 0)
		return sb_err_set(err, e, "cannot harden the kernel: %s=%s: %s", s->path, s->value,
				  strerror(-e));
	(void)snprintf(value, sizeof(value), "=%s", s->value);
	tell(s->path, value);
	return 0;
}

int sb_init_sysctl(int proc, enum sb_profile profile, const char **ret, struct sb_err *err)
{
	/* a debugger may trace what it started; else nobody may trace anything */
	const struct setting tracing = { "kernel/yama/ptrace_scope",
					 profile == SB_PROFILE_BUILD ? "1" : "2", AT_LEAST };
	int e;

	told_len = 0;
	told[0] = '\0';
	e = set(proc, &tracing, err);
	for (size_t i = 0; e == 0 && i < SB_ARRAY_LEN(settings); i++)
		e = set(proc, &settings[i], err);
	if (e == 0)
		*ret = told;
	return e;
}

int sb_init_no_more_modules(int proc, struct sb_err *err)
{
	static const struct setting closed = { "kernel/modules_disabled", "1", EXACT };
	int e = apply(proc, &closed);

	if (e == -ENOENT) /* a kernel without modules */
		return 0;
	return e < 0 ? sb_err_set(err, e, "cannot close module loading: %s", strerror(-e)) : 0;
}
