#ifndef SB_CONN_CMD_IMAGE_H
#define SB_CONN_CMD_IMAGE_H
/*
 * Programs of an image as the command policy sees them: struct sb_cmd_files over a descriptor of
 * the root folder. Every lookup stays inside that root (openat2, RESOLVE_IN_ROOT), so links of an
 * image folder cannot lead out. Used by `policy test` and by the guest's judge. Needs /proc, for
 * the final path of an open file, and sb_crypto_init() for digests.
 */
#include "core/cmd_policy.h"
#include "core/cmd_shebang.h"

#define SB_CMD_PATH_MAX 4096 /* with NUL */
#define SB_CMD_IMAGE_FOLDERS 6

struct sb_cmd_image {
	struct sb_cmd_files files; /* hand this to sb_cmdpol_new; its arg is the image itself */
	int root;                  /* borrowed */
	const char *folder[SB_CMD_IMAGE_FOLDERS]; /* without those that are links to another */
	unsigned int n_folders;
	/* Where the last answer of find was, so that asking for the next one goes on there. */
	char last[256];
	unsigned int last_nth;
	unsigned int last_folder;
};
/*
 * sb_cmd_image_init - program folders of /usr/local/sbin:...:/bin that @root_fd has
 * @root_fd: a folder, O_PATH is enough; borrowed for as long as @i is used. @i must not move.
 * Return: 0; -errno. Nothing to release.
 */
SB_MUST_CHECK int sb_cmd_image_init(struct sb_cmd_image *i, int root_fd);

/*
 * sb_cmd_resolve - the file that execve(@name) would open
 * @cwd:  absolute path inside the root; only used when @name is relative
 * @name: as given to execve, no search in PATH
 * @path: the final path inside the root, links followed, NUL-terminated; @cap >= SB_CMD_PATH_MAX
 * @fd:   O_PATH descriptor of the file, caller closes; NULL = not wanted
 *
 * Links of /proc that are no paths (/proc/self/exe, /proc/self/fd/N) are refused with -ELOOP or
 * -EXDEV: who judges another process takes those from /proc/PID itself.
 * Return: 0; -EACCES not a regular file or without any execute bit; -errno as execve has it.
 */
SB_MUST_CHECK int sb_cmd_resolve(int root_fd, const char *cwd, const char *name, char *path,
				 size_t cap, struct sb_cmd_file *file, int *fd);
/* The first SB_CMD_HEAD bytes of an open file (O_PATH too: opened again through /proc).
 * Return: number of bytes; -errno. */
SB_MUST_CHECK int sb_cmd_read_head(int fd, char head[SB_CMD_HEAD]);
/* Final path of an open file inside @root_fd. Return: 0; -ENOENT (no path: removed, a memory
 * file, outside the root); -ENAMETOOLONG; -errno. */
SB_MUST_CHECK int sb_cmd_fd_path(int root_fd, int fd, char *path, size_t cap);

#endif
