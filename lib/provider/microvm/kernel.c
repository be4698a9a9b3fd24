#include "provider/microvm/kernel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"

#define ELF_KEEP 6
#define MAP_MAX 512

static const char *const image_names[] = { "vmlinuz", "vmlinux", "Image" };

int sb_kernel_version_cmp(const char *a, const char *b)
{
	return strverscmp(a, b);
}

static bool is_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

SB_PRINTF(3, 4) static bool path_fits(char *out, size_t room, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(out, room, fmt, ap);
	va_end(ap);
	return n >= 0 && (size_t)n < room;
}

/* A directory in the layout of fetch-kernel. */
static int try_dir(const char *dir, struct sb_kernel *k)
{
	char dep[SB_KERNEL_PATH_MAX];

	if (!path_fits(k->modules, sizeof(k->modules), "%s/modules", dir) ||
	    !path_fits(dep, sizeof(dep), "%s/modules/modules.dep", dir) || !is_file(dep))
		return -ENOENT;
	for (size_t i = 0; i < SB_ARRAY_LEN(image_names); i++)
		if (path_fits(k->image, sizeof(k->image), "%s/%s", dir, image_names[i]) &&
		    is_file(k->image))
			return 0;
	return -ENOENT;
}

/*
 * The newest usable entry of @dir. @prefix and @suffix: what an entry's name has around the
 * release; with a prefix the entry is an image whose modules are in /lib/modules.
 */
static int find_newest(const char *dir, const char *prefix, const char *suffix,
		       struct sb_kernel *ret)
{
	DIR *d = opendir(dir);
	char best[SB_KERNEL_RELEASE_MAX + 1] = "";
	const struct dirent *e;

	if (!d)
		return -ENOENT;
	while ((e = readdir(d))) {
		struct sb_kernel k = { 0 };
		char sub[SB_KERNEL_PATH_MAX];
		const char *rel = e->d_name + strlen(prefix);
		size_t n;

		if (strncmp(e->d_name, prefix, strlen(prefix)) != 0 || !sb_kimage_release_ok(rel))
			continue;
		n = strlen(rel);
		if (n < strlen(suffix) || strcmp(rel + n - strlen(suffix), suffix) != 0 ||
		    (*best && sb_kernel_version_cmp(rel, best) <= 0))
			continue;
		if (*prefix) {
			char dep[SB_KERNEL_PATH_MAX];

			if (!path_fits(k.image, sizeof(k.image), "%s/%s", dir, e->d_name) ||
			    !path_fits(k.modules, sizeof(k.modules), "/lib/modules/%s", rel) ||
			    !path_fits(dep, sizeof(dep), "/lib/modules/%s/modules.dep", rel) ||
			    !is_file(k.image) || !is_file(dep) || access(k.image, R_OK) < 0)
				continue;
		} else if (!path_fits(sub, sizeof(sub), "%s/%s", dir, rel) ||
			   try_dir(sub, &k) < 0) {
			continue;
		}
		*ret = k;
		memcpy(best, rel, n + 1);
	}
	(void)closedir(d);
	return *best ? 0 : -ENOENT;
}

int sb_kernel_find(const struct sb_dirs *dirs, const char *path, struct sb_kernel *ret,
		   struct sb_err *err)
{
	struct sb_kernel k = { 0 };
	struct stat st;
	char own[SB_KERNEL_PATH_MAX];

	if (path) {
		if (stat(path, &st) < 0)
			return sb_err_set(err, -errno, "cannot use kernel %s: %s", path,
					  strerror(errno));
		if (S_ISDIR(st.st_mode)) {
			if (try_dir(path, &k) < 0)
				return sb_err_set(err, -ENOENT,
						  "no kernel in %s: vmlinuz and modules/modules.dep "
						  "are expected there", path);
		} else if (!path_fits(k.image, sizeof(k.image), "%s", path)) {
			return sb_err_set(err, -ENAMETOOLONG, "the kernel's path is too long");
		}
		*ret = k;
		return 0;
	}
	if ((path_fits(own, sizeof(own), "%s/kernels", dirs->cache) &&
	     find_newest(own, "", "", &k) == 0) ||
	    (path_fits(own, sizeof(own), "%s/kernels", dirs->libexec) &&
	     find_newest(own, "", "", &k) == 0) ||
	    find_newest("/usr/lib/sendbox/kernels", "", "", &k) == 0 ||
	    find_newest("/boot", "vmlinuz-", "-cloud-amd64", &k) == 0 ||
	    find_newest("/boot", "vmlinuz-", "-cloud-arm64", &k) == 0) {
		*ret = k;
		return 0;
	}
	return sb_err_set(err, -ENOENT, "no guest kernel found; fetch one with: %s/fetch-kernel",
			  dirs->libexec);
}

/* Read the whole of a regular file. */
static int read_image(const char *path, int fd, uint8_t **ret, size_t *ret_len, struct sb_err *err)
{
	sb_autofree uint8_t *p = NULL;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return sb_err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (st.st_size == 0 || (uint64_t)st.st_size > SB_KERNEL_MAX_BYTES)
		return sb_err_set(err, -EBADMSG, "kernel %s: not a kernel: %s", path,
				  st.st_size == 0 ? "empty" : "too large");
	p = malloc((size_t)st.st_size);
	if (!p)
		return sb_err_set(err, -ENOMEM, "out of memory");
	r = sb_fd_read_all(fd, p, (size_t)st.st_size);
	if (r < 0)
		return sb_err_set(err, r, "cannot read %s: %s", path, strerror(-r));
	*ret = sb_take(&p);
	*ret_len = (size_t)st.st_size;
	return 0;
}

/* Unpack until there is a plain kernel. @p is replaced. */
static int unpack_image(const char *path, uint8_t **p, size_t *len, char *release,
			struct sb_err *err)
{
	for (int layer = 0; layer < 3; layer++) {
		struct sb_err why = { 0 };
		struct sb_kimage k;
		uint8_t *out;
		size_t out_len;
		int r = sb_kimage_parse(*p, *len, sb_vm_arch_host(), &k, &why);

		if (r < 0)
			return sb_err_set(err, r, "kernel %s: %s", path, why.text);
		if (k.kind == SB_KIMAGE_ELF || k.kind == SB_KIMAGE_ARM64) {
			memcpy(release, k.release, sizeof(k.release));
			return 0;
		}
		if (k.packed) {
			r = sb_unpack(*p + k.payload_off, k.payload_len, SB_KERNEL_MAX_BYTES, &out,
				      &out_len);
			if (r < 0)
				return sb_err_set(err, r, "kernel %s: cannot unpack it: %s", path,
						  r == -EFBIG ? "too large" : "damaged");
			free(*p);
			*p = out;
			*len = out_len;
		} else {
			memmove(*p, *p + k.payload_off, k.payload_len);
			*len = k.payload_len;
		}
	}
	return sb_err_set(err, -EBADMSG, "kernel %s: packed more than twice", path);
}

/* <dir>/<source>.map: "1 <elf digest> <release>\n" of a source that was unpacked before. */
static int map_read(const char *cache, int dir, struct sb_kernel *k)
{
	sb_autofree char *text = NULL;
	sb_autofd int fd = -1;
	char name[SB_HEX_SHA256 + 8];
	char hex[SB_HEX_SHA256];
	uint8_t want[SB_SHA256_LEN];
	uint8_t have[SB_SHA256_LEN];
	char *end;
	size_t len;
	int r;

	sb_hex_write(k->source_sha256, SB_SHA256_LEN, hex);
	(void)snprintf(name, sizeof(name), "%s.map", hex);
	r = sb_fd_read_file(dir, name, MAP_MAX, &text, &len);
	if (r < 0)
		return r;
	if (len < 2 + SB_HEX_SHA256 + 2 || strlen(text) != len || memcmp(text, "1 ", 2) != 0 ||
	    text[2 + SB_HEX_SHA256 - 1] != ' ' || text[len - 1] != '\n')
		return -EBADMSG;
	text[2 + SB_HEX_SHA256 - 1] = '\0';
	text[len - 1] = '\0';
	end = text + 2 + SB_HEX_SHA256;
	if (sb_hex_parse(text + 2, want, sizeof(want)) < 0 || !sb_kimage_release_ok(end))
		return -EBADMSG;
	(void)snprintf(name, sizeof(name), "%s.elf", text + 2);
	fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	r = sb_cache_sha256(cache, fd, have, NULL);
	if (r < 0)
		return r;
	if (memcmp(have, want, sizeof(want)) != 0)
		return -EBADMSG; /* damaged: it is made anew */
	memcpy(k->elf_sha256, want, sizeof(want));
	memcpy(k->release, end, strlen(end) + 1);
	return 0;
}

static int build_elf(int dir, int src, struct sb_kernel *k, struct sb_err *err)
{
	sb_autofree uint8_t *p = NULL;
	char release[SB_KERNEL_RELEASE_MAX + 1];
	char map[MAP_MAX];
	char name[SB_HEX_SHA256 + 8];
	char hex[SB_HEX_SHA256];
	uint8_t sha[SB_SHA256_LEN];
	size_t len = 0;
	int r = read_image(k->image, src, &p, &len, err);

	if (r < 0)
		return r;
	sb_sha256(p, len, sha);
	if (memcmp(sha, k->source_sha256, sizeof(sha)) != 0)
		return sb_err_set(err, -EAGAIN, "kernel %s changes while it is read", k->image);
	r = unpack_image(k->image, &p, &len, release, err);
	if (r < 0)
		return r;
	sb_sha256(p, len, sha);
	sb_hex_write(sha, sizeof(sha), hex);
	(void)snprintf(name, sizeof(name), "%s.elf", hex);
	r = sb_cache_write(dir, name, p, len);
	if (r == 0) {
		(void)snprintf(map, sizeof(map), "1 %s %s\n", hex, release);
		sb_hex_write(k->source_sha256, SB_SHA256_LEN, hex);
		(void)snprintf(name, sizeof(name), "%s.map", hex);
		r = sb_cache_write(dir, name, map, strlen(map));
	}
	if (r < 0)
		return sb_err_set(err, r, "cannot store the unpacked kernel: %s", strerror(-r));
	sb_cache_prune(dir, ".elf", ELF_KEEP);
	memcpy(k->elf_sha256, sha, sizeof(sha));
	memcpy(k->release, release, sizeof(release));
	return 0;
}

/* For an image given by path: modules beside it, or those installed on the host. */
static int find_modules(struct sb_kernel *k, struct sb_err *err)
{
	const char *slash = strrchr(k->image, '/');
	int dir_len = slash ? (int)(slash - k->image) : 1;
	char dep[SB_KERNEL_PATH_MAX + 32];

	for (int i = 0; i < 3; i++) {
		bool fits = i == 0 ? path_fits(k->modules, sizeof(k->modules), "%.*s/modules",
					       dir_len, slash ? k->image : ".")
				   : path_fits(k->modules, sizeof(k->modules), "%s/lib/modules/%s",
					       i == 1 ? "" : "/usr", k->release);

		if (fits && path_fits(dep, sizeof(dep), "%s/modules.dep", k->modules) &&
		    is_file(dep))
			return 0;
	}
	k->modules[0] = '\0';
	return sb_err_set(err, -ENOENT,
			  "no modules for kernel %s: neither %.*s/modules/modules.dep nor "
			  "/lib/modules/%s/modules.dep is there", k->release, dir_len,
			  slash ? k->image : ".", k->release);
}

int sb_kernel_prepare(const struct sb_dirs *dirs, struct sb_kernel *k, struct sb_err *err)
{
	sb_autofd int dir = sb_cache_dir(dirs->cache, "kernels-elf", err);
	sb_autofd int src = -1;
	int r;

	if (dir < 0)
		return dir;
	src = open(k->image, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (src < 0)
		return sb_err_set(err, -errno, "cannot open kernel %s: %s", k->image,
				  strerror(errno));
	r = sb_cache_sha256(dirs->cache, src, k->source_sha256, NULL);
	if (r < 0)
		return sb_err_set(err, r, "cannot read kernel %s: %s", k->image,
				  r == -EINVAL ? "not a regular file" : strerror(-r));
	if (map_read(dirs->cache, dir, k) < 0) {
		r = build_elf(dir, src, k, err);
		if (r < 0)
			return r;
	}
	return *k->modules ? 0 : find_modules(k, err);
}
