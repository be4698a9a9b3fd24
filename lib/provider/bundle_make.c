#include "provider/bundle_make.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "crypto/crypto.h"

static int set_times(int fd, time_t at)
{
	const struct timespec both[2] = { { .tv_sec = at }, { .tv_sec = at } };

	return futimens(fd, both) < 0 ? -errno : 0;
}

static int put_file(int dirfd, const char *path, const void *p, size_t len, mode_t mode, time_t at)
{
	sb_autofd int fd = openat(dirfd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
				  0600);
	int r;

	if (fd < 0)
		return -errno;
	r = sb_fd_write_all(fd, p, len);
	if (r == 0 && fchmod(fd, mode) < 0)
		r = -errno;
	if (r == 0)
		r = set_times(fd, at);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	return r;
}

/* The folder of @path, made unless it is there: artifacts lie at most one level deep. */
static int make_parent(int dirfd, const char *path)
{
	const char *slash = strchr(path, '/');
	char dir[SB_BUNDLE_PATH_MAX + 1];
	sb_autofd int fd = -1;

	if (!slash)
		return 0;
	memcpy(dir, path, (size_t)(slash - path));
	dir[slash - path] = '\0';
	if (mkdirat(dirfd, dir, 0755) < 0)
		return errno == EEXIST ? 0 : -errno;
	fd = openat(dirfd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 || fchmod(fd, 0755) < 0 ? -errno : 0;
}

static int finish_folder(int dirfd, const char *path, time_t at)
{
	sb_autofd int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	int r = fd < 0 ? -errno : set_times(fd, at);

	return r == 0 && fsync(fd) < 0 ? -errno : r;
}

static int finish_folders(int dirfd, const struct sb_bundle_manifest *m, time_t at)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < m->n_artifacts; i++) {
		char dir[SB_BUNDLE_PATH_MAX + 1] = { 0 };
		const char *slash = strchr(m->artifacts[i].path, '/');

		if (!slash)
			continue;
		memcpy(dir, m->artifacts[i].path, (size_t)(slash - m->artifacts[i].path));
		r = finish_folder(dirfd, dir, at);
	}
	return r == 0 ? finish_folder(dirfd, ".", at) : r;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct sb_bundle_artifact *)a)->path,
		      ((const struct sb_bundle_artifact *)b)->path);
}

static int describe(const struct sb_bundle_make *in, struct sb_bundle_manifest *m)
{
	m->release = strdup(in->release);
	m->architecture = strdup(in->architecture);
	m->sequence = in->sequence;
	m->minimum_sequence = in->minimum_sequence;
	m->plan_version = in->plan_version;
	m->artifacts = calloc(SB_BUNDLE_KINDS - 1, sizeof(*m->artifacts));
	if (!m->release || !m->architecture || !m->artifacts)
		return -ENOMEM;
	for (unsigned int k = SB_BUNDLE_GUEST; k < SB_BUNDLE_KINDS; k++) {
		struct sb_bundle_artifact *a = &m->artifacts[m->n_artifacts++];

		a->kind = (enum sb_bundle_kind)k;
		a->path = strdup(sb_bundle_kind_path(a->kind));
		a->mode = sb_bundle_kind_mode(a->kind);
		a->size = in->parts[k].len;
		sb_sha256(in->parts[k].data, in->parts[k].len, a->sha256);
		if (!a->path)
			return -ENOMEM;
	}
	qsort(m->artifacts, m->n_artifacts, sizeof(*m->artifacts), by_path);
	return 0;
}

int sb_bundle_make(int dirfd, const struct sb_bundle_make *in, struct sb_err *err)
{
	sb_automanifest struct sb_bundle_manifest m = { 0 };
	sb_autofree char *text = NULL;
	size_t len = 0;
	int r = describe(in, &m);

	if (r == 0)
		r = sb_bundle_manifest_write(&m, &text, &len, err);
	if (r < 0)
		return r == -ENOMEM ? sb_err_set(err, r, "out of memory") : r;
	for (size_t i = 0; r == 0 && i < m.n_artifacts; i++) {
		const struct sb_bundle_artifact *a = &m.artifacts[i];

		r = make_parent(dirfd, a->path);
		if (r == 0)
			r = put_file(dirfd, a->path, in->parts[a->kind].data, (size_t)a->size,
				     a->mode, in->mtime);
	}
	if (r == 0)
		r = put_file(dirfd, SB_BUNDLE_MANIFEST, text, len, 0444, in->mtime);
	if (r == 0)
		r = finish_folders(dirfd, &m, in->mtime);
	return r < 0 ? sb_err_set(err, r, "cannot write the bundle: %s", strerror(-r)) : 0;
}
