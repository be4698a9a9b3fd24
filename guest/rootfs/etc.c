/* /etc of the guest: a few files of our own and what the host image may show of its /etc. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "core/host_image.h"
#include "rootfs/rootfs.h"

#define MAX_TEXT (1U << 20)
#define SERVED_ETC "run/host/etc" /* where Flatpak shows a host's /etc, too */

static const char nsswitch[] = "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
			       "networks: files\nprotocols: files\nservices: files\n";
static const char shells[] = "/bin/sh\n/bin/bash\n/usr/bin/sh\n/usr/bin/bash\n";
static const char resolv[] = "nameserver 127.0.0.1\noptions timeout:2 attempts:2\n";

/*
 * Browsers offer an encrypted client hello to everybody, most of the time a meaningless one that
 * nobody can tell from a real one. The gate refuses both, so they are told not to.
 */
static const struct {
	const char *dir; /* below /etc */
	const char *name;
	const char *text;
} browser_policies[] = {
	{ "chromium/policies/managed", "sendbox.json", "{\"EncryptedClientHelloEnabled\":false}\n" },
	{ "opt/chrome/policies/managed", "sendbox.json", "{\"EncryptedClientHelloEnabled\":false}\n" },
	{ "opt/chrome_for_testing/policies/managed", "sendbox.json",
	  "{\"EncryptedClientHelloEnabled\":false}\n" },
	{ "firefox/policies", "policies.json",
	  "{\"policies\":{\"DisableEncryptedClientHello\":true}}\n" },
};

/* Show one host entry; private ones and special files are left out. */
static int show(int from, int to, const char *name)
{
	sb_autofd int tree = -1;
	struct stat st;
	int e;

	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISLNK(st.st_mode)) {
		char target[SB_PLAN_MAX_PATH + 1];
		ssize_t n = readlinkat(from, name, target, sizeof(target) - 1);

		if (n < 0)
			return -errno;
		target[n] = '\0';
		return symlinkat(target, to, name) < 0 && errno != EEXIST ? -errno : 0;
	}
	if (S_ISDIR(st.st_mode)) {
		if ((st.st_mode & 05) != 05)
			return 0;
		if (mkdirat(to, name, 0755) < 0)
			return errno == EEXIST ? 0 : -errno;
	} else {
		if (!S_ISREG(st.st_mode) || !(st.st_mode & 04))
			return 0;
		e = sb_root_put(to, name, "", 0, 0644);
		if (e < 0)
			return e;
	}
	e = sb_mnt_clone(from, name, SB_MNT_SAFE | MOUNT_ATTR_RDONLY, &tree);
	return e < 0 ? e : sb_mnt_attach_path(tree, to, name);
}

/*
 * In the micro-VM each look at a served file is a trip to the host. What is served is exactly the
 * list, so it is mounted once, and /etc gets links into it.
 */
static int link_served(const struct sb_rootfs *r, int to)
{
	sb_autofd int tree = -1;
	sb_autofd int at = -1;
	struct dirent *d;
	DIR *dir;
	int e = sb_root_dir(r, SERVED_ETC, &at);

	if (e == 0)
		e = sb_mnt_clone(r->etc, ".", SB_MNT_SAFE | MOUNT_ATTR_RDONLY, &tree);
	if (e == 0)
		e = sb_mnt_attach(tree, at);
	if (e < 0)
		return e;
	dir = fdopendir(openat(r->etc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	if (!dir)
		return -errno;
	while (e == 0 && (d = readdir(dir))) {
		char target[sizeof(SERVED_ETC) + 260];

		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		(void)snprintf(target, sizeof(target), "/" SERVED_ETC "/%s", d->d_name);
		if (symlinkat(target, to, d->d_name) < 0 && errno != EEXIST)
			e = -errno;
	}
	(void)closedir(dir);
	return e;
}

/* Names of the list are at most one folder deep. */
static int show_host(const struct sb_rootfs *r, int to)
{
	if (r->vm)
		return link_served(r, to);
	for (size_t i = 0; sb_host_etc[i]; i++) {
		const char *name = sb_host_etc[i];
		const char *slash = strchr(name, '/');
		char dir[64];
		int e;

		if (slash) {
			size_t len = (size_t)(slash - name);

			if (len >= sizeof(dir))
				return -ENAMETOOLONG;
			memcpy(dir, name, len);
			dir[len] = '\0';
			if (faccessat(r->etc, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
				continue;
			if (mkdirat(to, dir, 0755) < 0 && errno != EEXIST)
				return -errno;
		}
		e = show(r->etc, to, name);
		if (e < 0)
			return e;
	}
	return 0;
}

/* Whether the passwd- or group-like @text has @id in its third field. */
static bool has_id(const char *text, uint32_t id)
{
	sb_autobuf struct sb_buf want;
	bool found = false;

	sb_buf_init(&want, 64);
	sb_buf_addf(&want, "%u:", id);
	for (const char *line = text; *line && !found;) {
		const char *end = strchrnul(line, '\n');
		const char *f = memchr(line, ':', (size_t)(end - line));

		if (f)
			f = memchr(f + 1, ':', (size_t)(end - f - 1));
		if (f && (size_t)(end - f - 1) >= want.len &&
		    memcmp(f + 1, want.data, want.len) == 0)
			found = true;
		line = *end ? end + 1 : end;
	}
	return found;
}

/* Start @b with the file that the image has under @name. */
static int load(const struct sb_rootfs *r, int etc, const char *name, struct sb_buf *b)
{
	sb_autofree char *text = NULL;
	size_t len = 0;
	int e;

	if (r->plan->image == SB_IMAGE_HOST && !sb_rootfs_is_laid(r->plan))
		return 0;
	e = sb_fd_read_file(etc, name, MAX_TEXT, &text, &len);
	if (e == -ENOENT || e == -ELOOP)
		return 0;
	if (e < 0)
		return e;
	sb_buf_add(b, text, len);
	if (len > 0 && text[len - 1] != '\n')
		sb_buf_add_u8(b, '\n');
	return 0;
}

static int put_buf(int etc, const char *name, const struct sb_buf *b)
{
	int e = sb_buf_error(b);

	return e < 0 ? e : sb_root_put(etc, name, (const char *)b->data, b->len, 0644);
}

static const char *shell_of(const struct sb_rootfs *r)
{
	return faccessat(r->root, "usr/bin/bash", X_OK, 0) == 0 ? "/bin/bash" : "/bin/sh";
}

static void add_missing(struct sb_buf *b, uint32_t id, const char *line)
{
	sb_buf_add_u8(b, '\0'); /* has_id() reads a string */
	if (sb_buf_error(b) == 0) {
		b->len--;
		if (!has_id((const char *)b->data, id))
			sb_buf_add_str(b, line);
	}
}

static int put_accounts(const struct sb_rootfs *r, int etc)
{
	const struct sb_plan *p = r->plan;
	sb_autobuf struct sb_buf pw;
	sb_autobuf struct sb_buf gr;
	sb_autobuf struct sb_buf line;
	int e;

	sb_buf_init(&pw, 2 * MAX_TEXT);
	sb_buf_init(&gr, 2 * MAX_TEXT);
	sb_buf_init(&line, 16384);
	e = load(r, etc, "passwd", &pw);
	if (e == 0)
		e = load(r, etc, "group", &gr);
	if (e < 0)
		return e;
	add_missing(&pw, 0, "root:x:0:0:root:/root:/usr/sbin/nologin\n");
	sb_buf_addf(&line, "%s:x:%u:%u:sendbox:%s:%s\n", p->user, p->uid, p->gid, p->home,
		    shell_of(r));
	sb_buf_add_u8(&line, '\0');
	if (sb_buf_error(&line) < 0)
		return sb_buf_error(&line);
	add_missing(&pw, p->uid, (const char *)line.data);
	add_missing(&pw, 65534, "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n");
	add_missing(&gr, 0, "root:x:0:\n");
	line.len = 0;
	sb_buf_addf(&line, "%s:x:%u:\n", p->user, p->gid);
	sb_buf_add_u8(&line, '\0');
	if (sb_buf_error(&line) < 0)
		return sb_buf_error(&line);
	add_missing(&gr, p->gid, (const char *)line.data);
	add_missing(&gr, 5, "tty:x:5:\n");
	add_missing(&gr, 65534, "nogroup:x:65534:\n");
	e = put_buf(etc, "passwd", &pw);
	return e < 0 ? e : put_buf(etc, "group", &gr);
}

static int put_names(const struct sb_rootfs *r, int etc)
{
	sb_autobuf struct sb_buf b;
	int e;

	sb_buf_init(&b, 4096);
	sb_buf_addf(&b, "%s\n", r->plan->hostname);
	e = put_buf(etc, "hostname", &b);
	if (e < 0)
		return e;
	b.len = 0;
	sb_buf_addf(&b, "127.0.0.1\tlocalhost %s\n::1\tlocalhost ip6-localhost ip6-loopback\n",
		    r->plan->hostname);
	e = put_buf(etc, "hosts", &b);
	return e < 0 ? e : sb_root_put(etc, "resolv.conf", resolv, sizeof(resolv) - 1, 0644);
}

static int put_policies(const struct sb_rootfs *r)
{
	int e = 0;

	if (r->plan->net.mode != SB_NET_FILTER || r->plan->net.ech_outer)
		return 0;
	for (size_t i = 0; e == 0 && i < SB_ARRAY_LEN(browser_policies); i++) {
		sb_autofd int path = -1;
		sb_autofd int dir = -1;
		char at[128];

		(void)snprintf(at, sizeof(at), "etc/%s", browser_policies[i].dir);
		e = sb_root_dir(r, at, &path);
		if (e == 0) {
			dir = openat(path, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			e = dir < 0 ? -errno : 0;
		}
		if (e == 0)
			e = sb_root_put(dir, browser_policies[i].name, browser_policies[i].text,
					strlen(browser_policies[i].text), 0644);
	}
	return e;
}

/* What an earlier session left there is replaced. */
static int put_link(const char *to, int dir, const char *name)
{
	if (symlinkat(to, dir, name) == 0)
		return 0;
	if (errno != EEXIST)
		return -errno;
	return unlinkat(dir, name, 0) < 0 || symlinkat(to, dir, name) < 0 ? -errno : 0;
}

int sb_rootfs_etc(const struct sb_rootfs *r, struct sb_err *err)
{
	sb_autofd int path = -1;
	sb_autofd int etc = -1;
	int e;

	e = sb_root_dir(r, "etc", &path);
	if (e == 0) {
		etc = openat(path, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		e = etc < 0 ? -errno : 0;
	}
	if (e == 0)
		e = put_accounts(r, etc);
	if (e == 0)
		e = put_names(r, etc);
	if (e == 0)
		e = put_policies(r);
	if (e == 0 && r->plan->image == SB_IMAGE_HOST) {
		e = sb_root_put(etc, "nsswitch.conf", nsswitch, sizeof(nsswitch) - 1, 0644);
		if (e == 0)
			e = sb_root_put(etc, "shells", shells, sizeof(shells) - 1, 0644);
		if (e == 0)
			e = put_link("/proc/self/mounts", etc, "mtab");
		if (e == 0)
			e = put_link("../usr/lib/os-release", etc, "os-release");
		if (e == 0 && r->etc >= 0)
			e = show_host(r, etc);
	}
	return e < 0 ? sb_err_set(err, e, "cannot make the guest's /etc: %s", strerror(-e)) : 0;
}
