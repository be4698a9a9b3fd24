#include "os/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

/* <linux/landlock.h> of the kernel; numbers are interface */
#define CREATE_VERSION 1U
#define RULE_PATH_BENEATH 1
#define FS_EXECUTE (1ULL << 0)
#define FS_WRITE_FILE (1ULL << 1)
#define FS_READ_FILE (1ULL << 2)
#define FS_READ_DIR (1ULL << 3)
#define FS_REMOVE_DIR (1ULL << 4)
#define FS_REMOVE_FILE (1ULL << 5)
#define FS_MAKE_CHAR (1ULL << 6)
#define FS_MAKE_DIR (1ULL << 7)
#define FS_MAKE_REG (1ULL << 8)
#define FS_MAKE_SOCK (1ULL << 9)
#define FS_MAKE_FIFO (1ULL << 10)
#define FS_MAKE_BLOCK (1ULL << 11)
#define FS_MAKE_SYM (1ULL << 12)
#define FS_REFER (1ULL << 13)     /* version 2 */
#define FS_TRUNCATE (1ULL << 14)  /* version 3 */
#define FS_IOCTL_DEV (1ULL << 15) /* version 5 */

#define SCOPE_SIGNAL (1ULL << 1)   /* version 6 */

#define ON_FILES (FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV)

struct ruleset_attr { /* the first field is all that version 1 knows; shorter is accepted */
	uint64_t handled_access_fs;
};

struct scope_attr {
	uint64_t handled_access_fs;
	uint64_t handled_access_net;
	uint64_t scoped;
};

struct SB_PACKED path_beneath_attr {
	uint64_t allowed_access;
	int32_t parent_fd;
};

int sb_landlock_abi(void)
{
	long v = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_VERSION);

	return v < 0 ? -errno : (int)v;
}

static uint64_t handled(int abi)
{
	uint64_t m = (FS_MAKE_SYM << 1) - 1;

	if (abi >= 2)
		m |= FS_REFER;
	if (abi >= 3)
		m |= FS_TRUNCATE;
	if (abi >= 5)
		m |= FS_IOCTL_DEV;
	return m;
}

int sb_landlock_new(int *ret)
{
	int abi = sb_landlock_abi();
	struct ruleset_attr attr;
	int fd;

	if (abi < 0)
		return abi;
	if (abi < 2)
		return -EPROTO;
	attr.handled_access_fs = handled(abi);
	fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (fd < 0)
		return -errno;
	*ret = fd; /* close-on-exec from birth */
	return 0;
}

int sb_landlock_allow(int ruleset, const char *path, enum sb_landlock_class c)
{
	struct path_beneath_attr rule = { 0 };
	struct stat st;
	sb_autofd int fd = -1;
	int abi = sb_landlock_abi();

	if (abi < 0)
		return abi;
	switch (c) {
	case SB_LANDLOCK_READ:
		rule.allowed_access = FS_READ_FILE | FS_READ_DIR | FS_EXECUTE;
		break;
	case SB_LANDLOCK_DEVICE:
		rule.allowed_access =
			FS_READ_FILE | FS_WRITE_FILE | FS_READ_DIR | FS_TRUNCATE | FS_IOCTL_DEV;
		break;
	case SB_LANDLOCK_FULL:
		rule.allowed_access = handled(abi) & ~(FS_MAKE_CHAR | FS_MAKE_BLOCK);
		break;
	case SB_LANDLOCK_NONE:
	default:
		return -EINVAL;
	}
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	rule.allowed_access &= handled(abi);
	if (!S_ISDIR(st.st_mode))
		rule.allowed_access &= ON_FILES;
	rule.parent_fd = fd;
	if (syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0) < 0)
		return -errno;
	return 0;
}

int sb_landlock_enter(int ruleset)
{
	return syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ? -errno : 0;
}

int sb_landlock_scope_signals(void)
{
	/* A ruleset refuses renames between directories unless it allows them, whether it names
	 * that right or not; this one must change nothing for files. */
	const struct scope_attr attr = { .handled_access_fs = FS_REFER, .scoped = SCOPE_SIGNAL };
	struct path_beneath_attr rule = { .allowed_access = FS_REFER };
	sb_autofd int root = -1;
	int abi = sb_landlock_abi();
	sb_autofd int fd = -1;

	if (abi < 0)
		return abi;
	if (abi < SB_LANDLOCK_ABI_SCOPE)
		return -EOPNOTSUPP;
	fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	root = open("/", O_PATH | O_CLOEXEC);
	if (fd < 0 || root < 0)
		return -errno;
	rule.parent_fd = root;
	if (syscall(SYS_landlock_add_rule, fd, RULE_PATH_BENEATH, &rule, 0) < 0)
		return -errno;
	return sb_landlock_enter(fd);
}
