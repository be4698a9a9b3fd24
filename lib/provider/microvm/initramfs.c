#include "provider/microvm/initramfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/num.h"
#include "provider/microvm/cpio.h"
#include "provider/microvm/modules.h"

#define BUILDER_VERSION 6
#define KEEP 16
#define LISTS 4
#define MODULE_MAX (64U << 20) /* bytes of one module */

struct part {
	char *data; /* owned */
	size_t len;
	unsigned int lists; /* modules: bit of each list that names it; of the first one alone if so */
	char name[256];
};
struct parts {
	struct part guest;
	struct part base;
	struct part wanted; /* text that the lists of `want` point into */
	struct sb_module_wants want;
	struct part modules[LISTS * SB_MODULES_MAX];
	size_t n;
	bool disks; /* else the last list stays out: what is not there takes no time */
};

static void parts_free(struct parts **pp)
{
	struct parts *p = *pp;

	if (!p)
		return;
	free(p->guest.data);
	free(p->base.data);
	free(p->wanted.data);
	for (size_t i = 0; i < p->n; i++)
		free(p->modules[i].data);
	free(p);
}

/* The text of a file of the modules directory; a missing modules.builtin is an empty one. */
static int read_text(int dir, const char *modules, const char *name, char **ret, struct sb_err *err)
{
	size_t len;
	int r = sb_fd_read_file(dir, name, SB_MODULES_TEXT_MAX, ret, &len);

	if (r == -ENOENT && strcmp(name, "modules.builtin") == 0) {
		*ret = calloc(1, 1);
		return *ret ? 0 : sb_err_set(err, -ENOMEM, "out of memory");
	}
	if (r < 0)
		return sb_err_set(err, r, "cannot read %s/%s: %s", modules, name, strerror(-r));
	return 0;
}

/* Unpack a module if it is packed: the guest loads plain ones. */
static int plain_module(struct part *m, const char *path)
{
	size_t n = strlen(path);
	uint8_t *out;
	size_t len;
	int r;

	if (n > 3 && strcmp(path + n - 3, ".ko") == 0)
		return 0;
	r = sb_unpack(m->data, m->len, MODULE_MAX, &out, &len);
	if (r < 0)
		return r;
	free(m->data);
	m->data = (char *)out;
	m->len = len;
	return 0;
}

/*
 * Only when the configuration that came with the kernel says so: `config` beside vmlinuz, or
 * config-RELEASE beside vmlinuz-RELEASE. Without one the modules stay as they are.
 */
static bool may_cut_signatures(const struct sb_kernel *k)
{
	const char *slash = strrchr(k->image, '/');
	sb_autofree char *text = NULL;
	char path[SB_KERNEL_PATH_MAX + 80];
	size_t len;
	int dir = slash ? (int)(slash - k->image) : 0;
	bool named = slash && strstr(slash, k->release) && *k->release;

	(void)snprintf(path, sizeof(path), "%.*s/config%s%s", dir, k->image, named ? "-" : "",
		       named ? k->release : "");
	return slash && sb_fd_read_file(AT_FDCWD, path, SB_MODULES_TEXT_MAX, &text, &len) == 0 &&
	       sb_modules_sig_optional(text);
}

/* Read one module, as the guest gets it. */
static int read_module(const struct sb_kernel *k, int dir, const char *path, bool cut,
		       struct parts *p, struct sb_err *err)
{
	struct part *m = &p->modules[p->n];
	int r = sb_fd_read_file(dir, path, MODULE_MAX, &m->data, &m->len);

	if (r < 0)
		return sb_err_set(err, r, "cannot read %s/%s: %s", k->modules, path, strerror(-r));
	p->n++;
	r = plain_module(m, path);
	if (r < 0)
		return sb_err_set(err, r, "%s/%s is damaged", k->modules, path);
	if (cut)
		m->len = sb_modules_plain_len(m->data, m->len);
	sb_modules_guest_name(path, m->name);
	return 0;
}

/* A module of list @w: what every guest loads is there already; what another list brought is read
 * once, and named in both orders. */
static int take_module(const struct sb_kernel *k, int dir, const char *path, bool cut, size_t w,
		       struct parts *p, struct sb_err *err)
{
	char name[256];
	int r;

	sb_modules_guest_name(path, name);
	for (size_t i = 0; i < p->n; i++) {
		if (strcmp(p->modules[i].name, name) != 0)
			continue;
		if (!(p->modules[i].lists & 1U))
			p->modules[i].lists |= 1U << w;
		return 0;
	}
	r = read_module(k, dir, path, cut, p, err);
	if (r == 0)
		p->modules[p->n - 1].lists = 1U << w;
	return r;
}

static int read_modules(const struct sb_kernel *k, struct parts *p, struct sb_err *err)
{
	const struct sb_module_want *const wants[LISTS] = { p->want.boot, p->want.net,
							   p->want.disk, p->want.upper };
	sb_autofd int dir = open(k->modules, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sb_autofree struct sb_module_list *lists = calloc(LISTS, sizeof(*lists));
	sb_autofree char *dep = NULL;
	sb_autofree char *builtin = NULL;
	struct sb_err why = { 0 };
	bool cut = may_cut_signatures(k);
	int r;

	if (!lists)
		return sb_err_set(err, -ENOMEM, "out of memory");
	if (dir < 0)
		return sb_err_set(err, -errno, "cannot open %s: %s", k->modules, strerror(errno));
	r = read_text(dir, k->modules, "modules.dep", &dep, err);
	if (r == 0)
		r = read_text(dir, k->modules, "modules.builtin", &builtin, err);
	if (r < 0)
		return r;
	for (size_t w = 0; w < LISTS; w++) {
		if (w >= 2 && !p->disks)
			break;
		r = sb_modules_pick(dep, builtin, wants[w], &lists[w], &why);
		if (r < 0)
			return sb_err_set(err, r, "kernel %s in %s cannot be used: %s", k->release,
					  k->image, why.text);
		for (size_t i = 0; r == 0 && i < lists[w].n; i++)
			r = take_module(k, dir, lists[w].path[i], cut, w, p, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The parts of the bundle: the bytes that are hashed here are the bytes that are used. */
static int read_bundle(const struct sb_bundle *b, struct parts *p, struct sb_err *err)
{
	int r = sb_bundle_read(b, SB_BUNDLE_GUEST, &p->guest.data, &p->guest.len, err);

	if (r == 0)
		r = sb_bundle_read(b, SB_BUNDLE_INITRAMFS, &p->base.data, &p->base.len, err);
	if (r == 0)
		r = sb_bundle_read(b, SB_BUNDLE_MODULES, &p->wanted.data, &p->wanted.len, err);
	if (r == 0 && sb_modules_want_parse(p->wanted.data, p->wanted.len, &p->want) < 0)
		r = sb_err_set(err, -EBADMSG, "the bundle's list of modules is malformed");
	return r;
}

/* Everything that decides the content, as text; its digest is the cache key. */
static int make_key(const struct sb_kernel *k, const struct sb_bundle *bundle,
		    const uint8_t pub[32], const struct parts *p, char out[SB_HEX_SHA256])
{
	static const enum sb_bundle_kind kinds[] = { SB_BUNDLE_GUEST, SB_BUNDLE_MODULES,
						     SB_BUNDLE_INITRAMFS };
	sb_autobuf struct sb_buf b = { 0 };
	uint8_t sha[SB_SHA256_LEN];
	char hex[SB_HEX_SHA256];

	sb_buf_init(&b, 65536);
	sb_buf_addf(&b, "sendbox-initramfs %d\n", BUILDER_VERSION);
	for (size_t i = 0; i < SB_ARRAY_LEN(kinds); i++) {
		sb_hex_write(sb_bundle_find(&bundle->m, kinds[i])->sha256, SB_SHA256_LEN, hex);
		sb_buf_addf(&b, "%s %s\n", sb_bundle_kind_name(kinds[i]), hex);
	}
	sb_hex_write(k->source_sha256, SB_SHA256_LEN, hex);
	sb_buf_addf(&b, "kernel %s\n", hex);
	sb_hex_write(pub, 32, hex);
	sb_buf_addf(&b, "pub %s\n", hex);
	for (size_t i = 0; i < p->n; i++) {
		sb_sha256(p->modules[i].data, p->modules[i].len, sha);
		sb_hex_write(sha, sizeof(sha), hex);
		sb_buf_addf(&b, "module %s %s %u\n", p->modules[i].name, hex,
			    p->modules[i].lists);
	}
	if (sb_buf_error(&b) < 0)
		return sb_buf_error(&b);
	sb_sha256(b.data, b.len, sha);
	sb_hex_write(sha, sizeof(sha), out);
	return 0;
}

void sb_initramfs_base(struct sb_buf *out)
{
	static const char *const dirs[] = { "dev", "proc", "sys", "run", "newroot", "sendbox",
					    "sendbox/etc", "sendbox/modules" };
	struct sb_cpio c = { .out = out };

	for (size_t i = 0; i < SB_ARRAY_LEN(dirs); i++)
		sb_cpio_dir(&c, dirs[i], 0755);
	sb_cpio_chardev(&c, "dev/console", 0600, 5, 1);
	sb_cpio_end(&c);
}

/* Names in load order. */
static int put_order(struct sb_cpio *c, const struct parts *p, unsigned int w)
{
	static const char *const names[LISTS] = { "sendbox/modules.order", "sendbox/modules.net",
						  "sendbox/modules.disk", "sendbox/modules.upper" };
	sb_autobuf struct sb_buf order = { 0 };

	sb_buf_init(&order, 65536);
	for (size_t i = 0; i < p->n; i++)
		if (p->modules[i].lists & 1U << w)
			sb_buf_addf(&order, "%s\n", p->modules[i].name);
	sb_cpio_file(c, names[w], 0444, order.data, order.len);
	return sb_buf_error(&order);
}

static int write_cpio(const struct parts *p, const uint8_t pub[32], struct sb_buf *out)
{
	struct sb_cpio c = { .out = out };

	sb_buf_add(out, p->base.data, p->base.len);
	sb_cpio_file(&c, "init", 0755, p->guest.data, p->guest.len);
	sb_cpio_file(&c, "sendbox/host.pub", 0444, pub, 32);
	for (size_t i = 0; i < p->n; i++) {
		char name[300];

		(void)snprintf(name, sizeof(name), "sendbox/modules/%s", p->modules[i].name);
		sb_cpio_file(&c, name, 0444, p->modules[i].data, p->modules[i].len);
	}
	for (unsigned int w = 0; w < LISTS; w++) {
		int r = w >= 2 && !p->disks ? 0 : put_order(&c, p, w);

		if (r < 0)
			return r;
	}
	sb_cpio_end(&c);
	return sb_buf_error(out);
}

/* <key>.sum names the file that was built for the key; good only while that file is intact. */
static int lookup(const char *cache, int dir, const char *key, uint8_t sha[SB_SHA256_LEN])
{
	sb_autofree char *hex = NULL;
	sb_autofd int fd = -1;
	uint8_t want[SB_SHA256_LEN];
	uint8_t have[SB_SHA256_LEN];
	char name[SB_HEX_SHA256 + 8];
	size_t len;
	int r;

	(void)snprintf(name, sizeof(name), "%s.sum", key);
	r = sb_fd_read_file(dir, name, SB_HEX_SHA256, &hex, &len);
	if (r < 0)
		return r;
	if (len != SB_HEX_SHA256 - 1 || sb_hex_parse(hex, want, sizeof(want)) < 0)
		return -EBADMSG;
	(void)snprintf(name, sizeof(name), "%s.cpio", hex);
	fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	r = sb_cache_sha256(cache, fd, have, NULL);
	if (r < 0)
		return r;
	if (memcmp(have, want, sizeof(want)) != 0)
		return -EBADMSG;
	memcpy(sha, want, sizeof(want));
	return 0;
}

static int build(int dir, const char *key, const struct parts *p, const uint8_t pub[32],
		 uint8_t sha[SB_SHA256_LEN], struct sb_err *err)
{
	sb_autobuf struct sb_buf out = { 0 };
	char hex[SB_HEX_SHA256];
	char name[SB_HEX_SHA256 + 8];
	uint8_t got[SB_SHA256_LEN];
	int r;

	sb_buf_init(&out, SB_INITRAMFS_MAX);
	r = write_cpio(p, pub, &out);
	if (r < 0)
		return sb_err_set(err, r, "cannot build the initramfs: %s", strerror(-r));
	sb_sha256(out.data, out.len, got);
	sb_hex_write(got, sizeof(got), hex);
	(void)snprintf(name, sizeof(name), "%s.cpio", hex);
	r = sb_cache_write(dir, name, out.data, out.len);
	if (r == 0) {
		(void)snprintf(name, sizeof(name), "%s.sum", key);
		r = sb_cache_write(dir, name, hex, strlen(hex));
	}
	if (r < 0)
		return sb_err_set(err, r, "cannot store the initramfs: %s", strerror(-r));
	sb_cache_prune(dir, ".cpio", KEEP);
	sb_cache_prune(dir, ".sum", KEEP);
	memcpy(sha, got, sizeof(got));
	return 0;
}

int sb_initramfs_prepare(const struct sb_dirs *dirs, const struct sb_kernel *k,
			 const struct sb_bundle *b, const uint8_t pub[32], bool disks,
			 uint8_t ret_sha256[SB_SHA256_LEN], struct sb_err *err)
{
	SB_CLEANUP(parts_free) struct parts *p = calloc(1, sizeof(*p));
	sb_autofd int dir = -1;
	char key[SB_HEX_SHA256];
	int r;

	if (!p)
		return sb_err_set(err, -ENOMEM, "out of memory");
	p->disks = disks;
	dir = sb_cache_dir(dirs->cache, "initramfs", err);
	if (dir < 0)
		return dir;
	r = read_bundle(b, p, err);
	if (r == 0)
		r = read_modules(k, p, err);
	if (r < 0)
		return r;
	r = make_key(k, b, pub, p, key);
	if (r < 0)
		return sb_err_set(err, r, "cannot build the initramfs: %s", strerror(-r));
	if (lookup(dirs->cache, dir, key, ret_sha256) < 0)
		r = build(dir, key, p, pub, ret_sha256, err);
	return r;
}

int sb_initramfs_check(const struct sb_kernel *k, struct sb_err *err)
{
	SB_CLEANUP(parts_free) struct parts *p = calloc(1, sizeof(*p));
	size_t n;

	if (!p)
		return sb_err_set(err, -ENOMEM, "out of memory");
	for (n = 0; sb_modules_wanted[n].name; n++)
		p->want.boot[n] = sb_modules_wanted[n];
	for (n = 0; sb_modules_net[n].name; n++)
		p->want.net[n] = sb_modules_net[n];
	return read_modules(k, p, err);
}
