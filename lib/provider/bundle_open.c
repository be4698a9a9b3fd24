#include "provider/bundle_open.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "crypto/crypto.h"

#define SIGNED_MAX (sizeof(SB_BUNDLE_DOMAIN) + SB_BUNDLE_MANIFEST_MAX)

struct sb_bundle *sb_bundle_free(struct sb_bundle *b)
{
	if (!b)
		return NULL;
	for (size_t i = 0; i < SB_BUNDLE_KINDS; i++)
		sb_fd_close(&b->fds[i]);
	sb_bundle_manifest_done(&b->m);
	free(b->manifest);
	free(b);
	return NULL;
}

/* ---- files ---- */

static int open_beneath(int dirfd, const char *path, int flags)
{
	struct open_how how = {
		.flags = (unsigned int)(flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	int fd = (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

static int refuse(struct sb_err *err, int code, const char *path, const char *why)
{
	return sb_err_set(err, code, "bundle refused: %.130s %s", path, why);
}

static int check_owner(const struct stat *st, const char *path, struct sb_err *err)
{
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return refuse(err, -EPERM, path, "belongs neither to the caller nor to root");
	if ((st->st_mode & 022) != 0)
		return refuse(err, -EPERM, path, "can be written by its group or by others; run: "
						 "chmod go-w");
	return 0;
}

/* The one opening of a file. Return: fd; -errno. */
static int open_file(int dirfd, const char *path, uint64_t max, struct stat *st, struct sb_err *err)
{
	sb_autofd int fd = open_beneath(dirfd, path, O_RDONLY);
	int r;

	if (fd == -ELOOP)
		return refuse(err, -EPERM, path, "is a symbolic link, or reached through one");
	if (fd == -ENXIO || fd == -ENODEV)
		return refuse(err, -EPERM, path, "is not a regular file");
	if (fd < 0)
		return sb_err_set(err, fd, "bundle refused: cannot open %.130s: %s", path,
				  strerror(-fd));
	if (fstat(fd, st) < 0)
		return sb_err_set(err, -errno, "bundle refused: %.130s: %s", path, strerror(errno));
	if (!S_ISREG(st->st_mode))
		return refuse(err, -EPERM, path, "is not a regular file");
	if (st->st_nlink != 1)
		return refuse(err, -EPERM, path, "has more than one name (hard link)");
	r = check_owner(st, path, err);
	if (r < 0)
		return r;
	if (st->st_size <= 0 || (uint64_t)st->st_size > max)
		return refuse(err, -EBADMSG, path, "is empty or larger than is allowed");
	return sb_fd_take(&fd);
}

/* All of @fd, which has @size bytes: one more or one less is an error. */
static int read_exact(int fd, size_t size, char **ret)
{
	sb_autofree char *p = malloc(size + 1);
	ssize_t n = p ? sb_fd_read_at(fd, p, size + 1, 0) : -ENOMEM;

	if (n < 0)
		return (int)n;
	if ((size_t)n != size)
		return -EBADMSG;
	p[size] = '\0';
	*ret = sb_take(&p);
	return 0;
}

static int read_small(int dirfd, const char *path, size_t max, char **ret, size_t *ret_len,
		      struct sb_err *err)
{
	struct stat st;
	sb_autofd int fd = open_file(dirfd, path, max, &st, err);
	int r;

	if (fd < 0)
		return fd;
	r = read_exact(fd, (size_t)st.st_size, ret);
	if (r < 0)
		return sb_err_set(err, r, "bundle refused: cannot read %.130s: %s", path,
				  r == -EBADMSG ? "it changes while it is read" : strerror(-r));
	*ret_len = (size_t)st.st_size;
	return 0;
}

/* ---- signature ---- */

/* What the signature is over. @out: SIGNED_MAX bytes. */
static size_t signed_bytes(const char *manifest, size_t len, char *out)
{
	memcpy(out, SB_BUNDLE_DOMAIN, sizeof(SB_BUNDLE_DOMAIN));
	memcpy(out + sizeof(SB_BUNDLE_DOMAIN), manifest, len);
	return sizeof(SB_BUNDLE_DOMAIN) + len;
}

static int signature_good(const char *manifest, size_t len, const uint8_t sig[64],
			  const uint8_t key[32])
{
	sb_autofree char *m = malloc(SIGNED_MAX);

	if (!m)
		return -ENOMEM;
	return sb_sign_verify(m, signed_bytes(manifest, len, m), sig, key);
}

static int read_signature(int dirfd, uint8_t key[32], uint8_t sig[64], struct sb_err *err)
{
	sb_autofree char *text = NULL;
	size_t len;
	struct sb_err why = { 0 };
	int r = read_small(dirfd, SB_BUNDLE_SIGNATURE, SB_BUNDLE_SIGNATURE_LEN, &text, &len, &why);

	if (r == -ENOENT)
		return sb_err_set(err, r, "bundle refused: it is not signed (no " SB_BUNDLE_SIGNATURE
				  "); its publisher signs it with: sendbox bundle sign");
	if (r < 0)
		return sb_err_set(err, r, "%s", why.text);
	if (len != SB_BUNDLE_SIGNATURE_LEN || sb_bundle_signature_parse(text, key, sig) < 0)
		return refuse(err, -EBADMSG, SB_BUNDLE_SIGNATURE, "is malformed");
	return 0;
}

static bool trusted(const struct sb_bundle_trust *t, const uint8_t key[32])
{
	for (size_t i = 0; i < t->n_keys; i++)
		if (memcmp(t->keys + 32 * i, key, 32) == 0)
			return true;
	return false;
}

static int verify_manifest(int dirfd, const struct sb_bundle_trust *t, struct sb_bundle *b,
			   struct sb_err *err)
{
	uint8_t sig[64];
	int r = read_signature(dirfd, b->key, sig, err);

	if (r < 0)
		return r;
	if (!trusted(t, b->key))
		return sb_err_set(err, -EKEYREJECTED,
				  "bundle refused: it is signed with a key that is not trusted here "
				  "(%02x%02x%02x%02x...)",
				  b->key[0], b->key[1], b->key[2], b->key[3]);
	r = read_small(dirfd, SB_BUNDLE_MANIFEST, SB_BUNDLE_MANIFEST_MAX, &b->manifest,
		       &b->manifest_len, err);
	if (r < 0)
		return r;
	r = signature_good(b->manifest, b->manifest_len, sig, b->key);
	if (r < 0)
		return sb_err_set(err, r, "out of memory");
	if (r == 0)
		return refuse(err, -EBADMSG, SB_BUNDLE_MANIFEST,
			      "is not what was signed: the signature does not fit");
	sb_sha256(b->manifest, b->manifest_len, b->manifest_sha256);
	return sb_bundle_manifest_parse(b->manifest, b->manifest_len, &b->m, err);
}

static int check_purpose(const struct sb_bundle_trust *t, const struct sb_bundle_manifest *m,
			 struct sb_err *err)
{
	if (m->sequence < t->floor)
		return sb_err_set(err, -ESTALE,
				  "bundle refused: release %s has sequence %llu, and this host has "
				  "taken a release that allows none below %llu; install a newer one",
				  m->release, (unsigned long long)m->sequence,
				  (unsigned long long)t->floor);
	if (t->architecture && strcmp(t->architecture, m->architecture) != 0)
		return sb_err_set(err, -ENOEXEC, "bundle refused: it is for %s, this machine is %s",
				  m->architecture, t->architecture);
	if (t->plan_version != 0 && t->plan_version != m->plan_version)
		return sb_err_set(err, -ENOEXEC,
				  "bundle refused: its guest reads plans of version %u, this sendbox "
				  "makes version %u; install the bundle that belongs to it",
				  m->plan_version, t->plan_version);
	return 0;
}

/* ---- folders ---- */

/* Whether the entry @path is a planned file, or a folder of one. */
static bool planned(const struct sb_bundle_manifest *m, const char *path)
{
	size_t n = strlen(path);

	if (strcmp(path, SB_BUNDLE_MANIFEST) == 0 || strcmp(path, SB_BUNDLE_SIGNATURE) == 0)
		return true;
	for (size_t i = 0; i < m->n_artifacts; i++) {
		const char *p = m->artifacts[i].path;

		if (strncmp(p, path, n) == 0 && (p[n] == '\0' || p[n] == '/'))
			return true;
	}
	return false;
}

/* Every entry of one folder; @dir is "" or ends in a slash. */
static int check_folder(int dirfd, const struct sb_bundle_manifest *m, const char *dir,
			struct sb_err *err)
{
	int fd = open_beneath(dirfd, *dir ? dir : ".", O_RDONLY | O_DIRECTORY);
	const char *name = *dir ? dir : "the bundle's folder";
	struct dirent *e;
	struct stat st;
	DIR *d;
	int r = 0;

	if (fd == -ELOOP || fd == -ENOTDIR)
		return refuse(err, -EPERM, name, "is not a folder");
	if (fd < 0)
		return sb_err_set(err, fd, "bundle refused: cannot open %.130s: %s", name,
				  strerror(-fd));
	if (fstat(fd, &st) < 0)
		r = -errno;
	if (r == 0)
		r = check_owner(&st, name, err);
	d = r == 0 ? fdopendir(fd) : NULL;
	if (!d) {
		r = r < 0 ? r : -errno;
		sb_fd_close(&fd);
		return r;
	}
	while (r == 0 && (errno = 0, e = readdir(d))) {
		char path[SB_BUNDLE_PATH_MAX + 300];

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		(void)snprintf(path, sizeof(path), "%s%s", dir, e->d_name);
		if (!planned(m, path))
			r = refuse(err, -EBADMSG, path, "is not in the manifest; nothing else may "
							"be in a bundle");
	}
	if (r == 0 && errno != 0)
		r = sb_err_set(err, -errno, "bundle refused: %.130s: %s", name, strerror(errno));
	(void)closedir(d);
	return r;
}

/* Each folder once: the manifest is sorted, so the paths of a folder follow one another. */
static int check_folders(int dirfd, const struct sb_bundle_manifest *m, struct sb_err *err)
{
	const char *last = "";
	int r = check_folder(dirfd, m, "", err);

	for (size_t i = 0; r == 0 && i < m->n_artifacts; i++) {
		const char *p = m->artifacts[i].path;

		for (const char *s = strchr(p, '/'); r == 0 && s; s = strchr(s + 1, '/')) {
			char dir[SB_BUNDLE_PATH_MAX + 2];
			size_t n = (size_t)(s - p) + 1;

			if (strncmp(last, p, n) == 0)
				continue;
			memcpy(dir, p, n);
			dir[n] = '\0';
			r = check_folder(dirfd, m, dir, err);
		}
		last = p;
	}
	return r;
}

/* ---- artifacts ---- */

static int open_artifact(int dirfd, const struct sb_bundle_artifact *a, int *ret, struct sb_err *err)
{
	uint8_t sha[SB_SHA256_LEN];
	struct stat st;
	sb_autofd int fd = open_file(dirfd, a->path, a->size, &st, err);
	uint64_t len;
	int r;

	if (fd < 0)
		return fd;
	if ((st.st_mode & 07777) != a->mode)
		return sb_err_set(err, -EPERM,
				  "bundle refused: %.130s has mode %04o, the manifest says %04o",
				  a->path, st.st_mode & 07777U, a->mode);
	if ((uint64_t)st.st_size != a->size)
		return refuse(err, -EBADMSG, a->path, "has another size than the manifest says");
	r = sb_sha256_fd(fd, sha, &len);
	if (r < 0)
		return sb_err_set(err, r, "bundle refused: cannot read %.130s: %s", a->path,
				  strerror(-r));
	if (len != a->size || memcmp(sha, a->sha256, sizeof(sha)) != 0)
		return refuse(err, -EBADMSG, a->path, "is not what was signed: another digest");
	*ret = sb_fd_take(&fd);
	return 0;
}

static int open_artifacts(int dirfd, struct sb_bundle *b, struct sb_err *err)
{
	int r = check_folders(dirfd, &b->m, err);

	for (size_t i = 0; r == 0 && i < b->m.n_artifacts; i++)
		r = open_artifact(dirfd, &b->m.artifacts[i], &b->fds[b->m.artifacts[i].kind], err);
	return r;
}

static struct sb_bundle *bundle_new(void)
{
	struct sb_bundle *b = calloc(1, sizeof(*b));

	for (size_t i = 0; b && i < SB_BUNDLE_KINDS; i++)
		b->fds[i] = -1;
	return b;
}

int sb_bundle_open(int dirfd, const struct sb_bundle_trust *trust, struct sb_bundle **ret,
		   struct sb_err *err)
{
	sb_autobundle struct sb_bundle *b = bundle_new();
	int r;

	if (!b)
		return sb_err_set(err, -ENOMEM, "out of memory");
	r = verify_manifest(dirfd, trust, b, err);
	if (r == 0)
		r = check_purpose(trust, &b->m, err);
	if (r == 0)
		r = open_artifacts(dirfd, b, err);
	if (r < 0)
		return r;
	*ret = sb_take(&b);
	return 0;
}

int sb_bundle_peek(int dirfd, struct sb_bundle_manifest *ret, uint8_t ret_key[32],
		   uint8_t ret_sha256[32], bool *ret_good, struct sb_err *err)
{
	sb_autofree char *manifest = NULL;
	uint8_t key[32] = { 0 };
	uint8_t sig[64];
	struct stat st;
	bool good = false;
	size_t len;
	int r = read_small(dirfd, SB_BUNDLE_MANIFEST, SB_BUNDLE_MANIFEST_MAX, &manifest, &len, err);

	if (r < 0)
		return r;
	if (fstatat(dirfd, SB_BUNDLE_SIGNATURE, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		r = read_signature(dirfd, key, sig, err);
		if (r == 0)
			r = signature_good(manifest, len, sig, key);
		if (r < 0)
			return r;
		good = r > 0;
	}
	r = sb_bundle_manifest_parse(manifest, len, ret, err);
	if (r < 0)
		return r;
	memcpy(ret_key, key, sizeof(key));
	sb_sha256(manifest, len, ret_sha256);
	*ret_good = good;
	return 0;
}

int sb_bundle_sign(int dirfd, const uint8_t sec[64], struct sb_err *err)
{
	sb_autobundle struct sb_bundle *b = bundle_new();
	sb_autofree char *m = malloc(SIGNED_MAX);
	char text[SB_BUNDLE_SIGNATURE_LEN + 1];
	uint8_t pub[32];
	uint8_t sig[64];
	int r;

	if (!b || !m)
		return sb_err_set(err, -ENOMEM, "out of memory");
	r = read_small(dirfd, SB_BUNDLE_MANIFEST, SB_BUNDLE_MANIFEST_MAX, &b->manifest,
		       &b->manifest_len, err);
	if (r == 0)
		r = sb_bundle_manifest_parse(b->manifest, b->manifest_len, &b->m, err);
	if (r == 0)
		r = open_artifacts(dirfd, b, err);
	if (r < 0)
		return r;
	sb_sign(m, signed_bytes(b->manifest, b->manifest_len, m), sec, sig);
	sb_sign_public(sec, pub);
	sb_bundle_signature_write(pub, sig, text);
	r = sb_fd_write_file(dirfd, SB_BUNDLE_SIGNATURE, text, SB_BUNDLE_SIGNATURE_LEN, 0444);
	return r < 0 ? sb_err_set(err, r, "cannot write %s: %s", SB_BUNDLE_SIGNATURE, strerror(-r))
		     : 0;
}

int sb_bundle_read(const struct sb_bundle *b, enum sb_bundle_kind kind, char **ret,
		   size_t *ret_len, struct sb_err *err)
{
	const struct sb_bundle_artifact *a = sb_bundle_find(&b->m, kind);
	sb_autofree char *p = NULL;
	uint8_t sha[SB_SHA256_LEN];
	int r;

	if (!a)
		return sb_err_set(err, -EINVAL, "the bundle has no such part");
	r = read_exact(b->fds[kind], (size_t)a->size, &p);
	if (r < 0 && r != -EBADMSG)
		return sb_err_set(err, r, "cannot read %s: %s", a->path, strerror(-r));
	if (r == 0)
		sb_sha256(p, (size_t)a->size, sha);
	if (r < 0 || memcmp(sha, a->sha256, sizeof(sha)) != 0)
		return sb_err_set(err, -EBADMSG, "%s was changed after the bundle was verified; "
				  "nothing was started", a->path);
	*ret = sb_take(&p);
	*ret_len = (size_t)a->size;
	return 0;
}
