#include "os/kernfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/fd.h"

#define MOUNTINFO_MAX (16U << 20)

int sb_kernfs_check(int fd)
{
	static const uint32_t refused[] = {
		PROC_SUPER_MAGIC,   SYSFS_MAGIC,         DEBUGFS_MAGIC,      TRACEFS_MAGIC,
		CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, DEVPTS_SUPER_MAGIC, BPF_FS_MAGIC,
		SECURITYFS_MAGIC,   EFIVARFS_MAGIC,      SELINUX_MAGIC,      NSFS_MAGIC,
		BINFMTFS_MAGIC,     SOCKFS_MAGIC,        PSTOREFS_MAGIC,     SMACK_MAGIC,
		0x62656570 /* configfs */, 0x19800202 /* mqueue */, 0x65735543 /* fusectl */,
	};
	struct statfs s;

	if (fstatfs(fd, &s) < 0)
		return -errno;
	for (size_t i = 0; i < SB_ARRAY_LEN(refused); i++)
		if ((uint32_t)s.f_type == refused[i])
			return -EACCES;
	return 0;
}

/* Undo the octal escapes of mountinfo, in place. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
		    s[3] >= '0' && s[3] <= '7') {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

static bool is_kernels(const char *type)
{
	static const char *const types[] = {
		"proc",       "sysfs",      "debugfs",   "tracefs",     "cgroup", "cgroup2",
		"devpts",     "bpf",        "securityfs", "efivarfs",   "selinuxfs", "nsfs",
		"binfmt_misc", "pstore",    "smackfs",   "configfs",    "mqueue", "fusectl",
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(types); i++)
		if (strcmp(type, types[i]) == 0)
			return true;
	return false;
}

int sb_kernfs_below(const char *path, char *ret, size_t cap)
{
	sb_autofree char *text = NULL;
	size_t len = strlen(path);
	char *save = NULL;
	size_t n;
	int r = sb_fd_read_file(AT_FDCWD, "/proc/self/mountinfo", MOUNTINFO_MAX, &text, &n);

	if (r < 0)
		return r;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *dash = strstr(line, " - ");
		char *at = line;
		char *type;

		for (int i = 0; at && i < 4; i++) { /* the fifth field */
			at = strchr(at, ' ');
			at = at ? at + 1 : NULL;
		}
		if (!at || !dash || at > dash)
			continue;
		type = dash + 3;
		type[strcspn(type, " ")] = '\0';
		at[strcspn(at, " ")] = '\0';
		unescape(at);
		if (is_kernels(type) && strncmp(at, path, len) == 0 &&
		    (at[len] == '/' || at[len] == '\0')) {
			(void)snprintf(ret, cap, "%s", at);
			return 1;
		}
	}
	return 0;
}
