/* The mapped layers, and which node a number stands for. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "imgfs.h"

#define LAYER_SHIFT 40 /* above: number of the layer + 1; below: nid */
#define NID_MASK ((1ULL << LAYER_SHIFT) - 1)

int imgfs_add(struct imgfs *fs, int fd, struct sb_err *err)
{
	const char *why = "";
	struct stat st;
	void *m;

	if (fs->n >= IMGFS_MAX_LAYERS)
		return sb_err_set(err, -E2BIG, "more than %d layers", IMGFS_MAX_LAYERS);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0)
		return sb_err_set(err, -EINVAL, "layer %zu is no file", fs->n);
	m = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (m == MAP_FAILED)
		return sb_err_set(err, -errno, "cannot map layer %zu: %s", fs->n, strerror(errno));
	if (sb_erofs_open(m, (size_t)st.st_size, &fs->layers[fs->n], &why) < 0) {
		(void)munmap(m, (size_t)st.st_size);
		return sb_err_set(err, -EBADMSG, "layer %zu is refused: %s", fs->n, why);
	}
	fs->map_len[fs->n++] = (size_t)st.st_size;
	return 0;
}

void imgfs_done(struct imgfs *fs)
{
	for (size_t i = 0; i < fs->n; i++)
		(void)munmap((void *)(uintptr_t)fs->layers[i].p, fs->map_len[i]);
	fs->n = 0;
}

fuse_ino_t imgfs_ino(size_t layer, uint64_t nid)
{
	return (uint64_t)(layer + 1) << LAYER_SHIFT | (nid & NID_MASK);
}

int imgfs_node(const struct imgfs *fs, fuse_ino_t ino, size_t *ret_layer, struct sb_erofs_node *ret)
{
	uint64_t layer = (uint64_t)ino >> LAYER_SHIFT;

	if (layer == 0 || layer > fs->n)
		return -ENOENT;
	*ret_layer = (size_t)layer - 1;
	return sb_erofs_node(&fs->layers[layer - 1], (uint64_t)ino & NID_MASK, ret);
}

bool imgfs_shown(const struct sb_erofs_node *n)
{
	return S_ISCHR(n->mode) ? n->dev == 0 : !S_ISBLK(n->mode);
}

bool imgfs_xattr_shown(const char *name)
{
	static const char user[] = "user.";
	static const char overlay[] = "user.overlay.";

	if (strncmp(name, user, sizeof(user) - 1) != 0)
		return false; /* privileges and access lists mean nothing in a session */
	return strncmp(name, overlay, sizeof(overlay) - 1) != 0 ||
	       strcmp(name, "user.overlay.opaque") == 0;
}
