#include "bundle_local.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/num.h"
#include "bundle_build.h"
#include "bundle_keys.h"
#include "bundle_sbom.h"
#include "crypto/crypto.h"
#include "os/rmtree.h"
#include "provider/microvm/cache.h"

#define KEEP 8 /* local bundles */
#define LIST_MAX 256

void cli_machine(char ret[65])
{
	struct utsname u;

	(void)snprintf(ret, 65, "%s", uname(&u) == 0 ? u.machine : "unknown");
}

static int open_release(int dir, const struct sb_dirs *d, const uint8_t pub[32],
			struct sb_bundle **ret, struct sb_err *err)
{
	uint8_t keys[SB_BUNDLE_MAX_KEYS][32];
	char machine[65];
	struct sb_bundle_trust t = { .keys = keys[0],
				     .architecture = machine,
				     .plan_version = SB_PLAN_VERSION };
	sb_autobundle struct sb_bundle *b = NULL;
	int r = bundle_keys_trusted(d, pub, keys, err);

	if (r < 0)
		return r;
	t.n_keys = (size_t)r;
	cli_machine(machine);
	r = bundle_floor_get(d, &t.floor, err);
	if (r == 0)
		r = sb_bundle_open(dir, &t, &b, err);
	if (r == 0 && b->m.minimum_sequence > t.floor)
		r = bundle_floor_raise(d, b->m.minimum_sequence, err);
	if (r == -EKEYREJECTED)
		(void)sb_err_add(err, r, "put the publisher's key into %.150s/keys/NAME.pub if you "
				 "trust it", d->config);
	if (r == 0)
		*ret = sb_take(&b);
	return r;
}

/* ---- local builds ---- */

static int digest_of(const struct sb_dirs *d, int parts, const char *name, char out[SB_HEX_SHA256],
		     struct sb_err *err)
{
	sb_autofd int fd = openat(parts, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	uint8_t sha[SB_SHA256_LEN];
	int r = fd < 0 ? -errno : sb_cache_sha256(d->cache, fd, sha, NULL);

	if (r < 0)
		return sb_err_set(err, r, "cannot read the guest part %s/%s: %s; install sendbox "
				  "again", d->libexec, name, strerror(-r));
	sb_hex_write(sha, sizeof(sha), out);
	return 0;
}

/* The name of the local bundle: a digest of all that decides its bytes. */
static int local_name(const struct sb_dirs *d, int parts, const uint8_t pub[32],
		      char out[SB_HEX_SHA256], struct sb_err *err)
{
	char guest[SB_HEX_SHA256];
	char components[SB_HEX_SHA256];
	char key[SB_HEX_SHA256];
	uint8_t sha[SB_SHA256_LEN];
	char text[512];
	int r = digest_of(d, parts, "sendbox-guest", guest, err);

	if (r == 0)
		r = digest_of(d, parts, BUNDLE_COMPONENTS, components, err);
	if (r < 0)
		return r;
	sb_hex_write(pub, 32, key);
	(void)snprintf(text, sizeof(text), "sendbox-local-bundle 1\n%s %d\n%s\n%s\n%s\n", SB_VERSION,
		       SB_PLAN_VERSION, guest, components, key);
	sb_sha256(text, strlen(text), sha);
	sb_hex_write(sha, sizeof(sha), out);
	return 0;
}

/* Remove the oldest ones beyond KEEP, and what a builder that died left behind; best effort. */
static void prune(int bundles)
{
	for (int round = 0; round < LIST_MAX; round++) {
		int fd = openat(bundles, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		DIR *dir = fd < 0 ? NULL : fdopendir(fd);
		const struct dirent *e;
		char oldest[256] = "";
		time_t at = 0;
		int n = 0;

		if (!dir)
			sb_fd_close(&fd);
		while (dir && (e = readdir(dir))) {
			struct stat st;

			if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
			    fstatat(bundles, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
				continue;
			n++;
			if (*oldest && st.st_ctim.tv_sec >= at)
				continue;
			at = st.st_ctim.tv_sec;
			(void)snprintf(oldest, sizeof(oldest), "%s", e->d_name);
		}
		if (dir)
			(void)closedir(dir);
		if (n <= KEEP || !*oldest || sb_rmtree(bundles, oldest) < 0)
			return;
	}
}

/* Make it beside and rename: whoever comes second finds the first one's. */
static int make_local(int bundles, int parts, const char *name, const uint8_t sec[64],
		      struct sb_err *err)
{
	const struct bundle_build b = { .release = SB_VERSION, .sequence = 1,
					.minimum_sequence = 1 };
	sb_autofd int dir = -1;
	uint8_t rnd[8];
	char hex[2 * sizeof(rnd) + 1];
	char tmp[32];
	int r;

	sb_random(rnd, sizeof(rnd));
	sb_hex_write(rnd, sizeof(rnd), hex);
	(void)snprintf(tmp, sizeof(tmp), "tmp-%s", hex);
	if (mkdirat(bundles, tmp, 0700) < 0)
		return sb_err_set(err, -errno, "cannot make a bundle: %s", strerror(errno));
	dir = openat(bundles, tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	r = dir < 0 ? sb_err_set(err, -errno, "cannot make a bundle: %s", strerror(errno))
		    : bundle_build(parts, dir, &b, err);
	if (r == 0)
		r = sb_bundle_sign(dir, sec, err);
	if (r == 0 && renameat(bundles, tmp, bundles, name) < 0 && errno != EEXIST &&
	    errno != ENOTEMPTY)
		r = sb_err_set(err, -errno, "cannot keep the bundle: %s", strerror(errno));
	if (sb_rmtree(bundles, tmp) < 0)
		sb_debug("%s is left behind", tmp);
	if (r == 0)
		prune(bundles);
	return r;
}

static int try_local(int bundles, const char *name, const uint8_t pub[32], struct sb_bundle **ret,
		     struct sb_err *err)
{
	char machine[65];
	const struct sb_bundle_trust t = { .keys = pub,
					   .n_keys = 1,
					   .architecture = machine,
					   .plan_version = SB_PLAN_VERSION };
	sb_autofd int dir = openat(bundles, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (dir < 0)
		return sb_err_set(err, -errno, "cannot open the bundle: %s", strerror(errno));
	cli_machine(machine);
	return sb_bundle_open(dir, &t, ret, err);
}

static int open_local(const struct sb_dirs *d, const uint8_t pub[32], const uint8_t sec[64],
		      struct sb_bundle **ret, struct sb_err *err)
{
	sb_autofd int parts = open(d->libexec, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sb_autofd int bundles = sb_cache_dir(d->cache, "bundles", err);
	char name[SB_HEX_SHA256];
	struct sb_err why = { 0 };
	int r;

	if (bundles < 0)
		return bundles;
	if (parts < 0)
		return sb_err_set(err, -errno, "cannot open %s: %s", d->libexec, strerror(errno));
	r = local_name(d, parts, pub, name, err);
	if (r < 0)
		return r;
	r = try_local(bundles, name, pub, ret, &why);
	if (r == -ENOENT) { /* not there, or not all of it */
		why = (struct sb_err){ 0 };
		r = sb_rmtree(bundles, name);
		if (r < 0)
			(void)sb_err_set(&why, r, "what is left of it cannot be removed");
		else
			r = make_local(bundles, parts, name, sec, &why);
		if (r == 0)
			r = try_local(bundles, name, pub, ret, &why);
	}
	if (r < 0)
		(void)sb_err_set(err, r, "%.280s; the bundle is %.100s/bundles/%.64s: remove it to have "
				 "it made anew", why.text, d->cache, name);
	return r;
}

int cli_bundle_open(const struct sb_dirs *d, const uint8_t pub[32], const uint8_t sec[64],
		    struct sb_bundle **ret, struct sb_err *err)
{
	sb_autofd int parts = open(d->libexec, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sb_autofd int dir = -1;

	if (parts < 0)
		return sb_err_set(err, -errno, "cannot open %s: %s", d->libexec, strerror(errno));
	dir = openat(parts, BUNDLE_INSTALLED, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dir >= 0)
		return open_release(dir, d, pub, ret, err);
	if (errno != ENOENT) /* what is there is no folder: nothing is put in its place */
		return sb_err_set(err, -errno, "cannot open %s/" BUNDLE_INSTALLED ": %s", d->libexec,
				  strerror(errno));
	return open_local(d, pub, sec, ret, err);
}
