/* What is opened is what was signed: every bit, every kind of file, and swaps after the check. */
#include "provider/bundle_open.h"

#include <stdlib.h>

#include "base/fd.h"
#include "t.h"
#include "t_bundle.h"

static char top[64];
static char bundle[128];
static uint8_t pub[32];
static uint8_t sec[64];
static const char *const files[] = {
	"bin/sendbox-guest", "boot/initramfs.cpio", "boot/modules",  "manifest.json",
	"manifest.sig",	     "share/inventory.json", "share/sbom.cdx.json", "share/sbom.spdx.json",
};

static void fresh(uint64_t sequence)
{
	struct sb_err err = { 0 };

	(void)snprintf(top, sizeof(top), "/tmp/sb-bundle-XXXXXX");
	if (sb_crypto_init() < 0 || !mkdtemp(top))
		abort();
	(void)umask(022);
	(void)snprintf(bundle, sizeof(bundle), "%s/b", top);
	t_bundle_key(pub, sec);
	if (t_bundle_make(bundle, "guest program", 13, sequence, sec, &err) < 0) {
		t_fail(__FILE__, __LINE__, "%s", err.text);
		abort();
	}
}

static void gone(void)
{
	CHECK_EQ(sb_rmtree(AT_FDCWD, top), 0);
}

static int open_with(const struct sb_bundle_trust *t, struct sb_bundle **ret, struct sb_err *err)
{
	sb_autofd int dir = open(bundle, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return dir < 0 ? -errno : sb_bundle_open(dir, t, ret, err);
}

static int try_open(struct sb_err *err)
{
	const struct sb_bundle_trust t = { .keys = pub, .n_keys = 1 };
	struct sb_bundle *b = NULL;
	int fds = t_open_fds();
	int r = open_with(&t, &b, err);

	CHECK((r == 0) == (b != NULL));
	(void)sb_bundle_free(b);
	CHECK_EQ(t_open_fds(), fds);
	return r;
}

static char *at(const char *name)
{
	static char path[4][512];
	static unsigned int n;
	char *p = path[n++ % 4];

	(void)snprintf(p, sizeof(path[0]), "%s/%s", bundle, name);
	return p;
}

/* Change one bit of the file's byte @i, without another time or inode. */
static void flip(const char *name, size_t i, int bit)
{
	char *path = at(name);
	struct stat st;
	char c;
	int fd;

	if (stat(path, &st) < 0 || chmod(path, 0600) < 0)
		abort();
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (pread(fd, &c, 1, (off_t)i) != 1)
		abort();
	c = (char)(c ^ (1 << bit));
	if (pwrite(fd, &c, 1, (off_t)i) != 1 || close(fd) < 0 || chmod(path, st.st_mode & 07777) < 0)
		abort();
}

TEST(opens_and_reads)
{
	const struct sb_bundle_trust t = { .keys = pub, .n_keys = 1, .floor = 3,
					   .architecture = "x86_64", .plan_version = 1 };
	struct sb_bundle *b = NULL;
	struct sb_err err = { 0 };
	char *text = NULL;
	size_t len = 0;

	fresh(3);
	REQUIRE(open_with(&t, &b, &err) == 0);
	CHECK_EQ(b->m.sequence, 3);
	CHECK_MEM(b->key, pub, 32);
	CHECK_EQ(sb_bundle_read(b, SB_BUNDLE_GUEST, &text, &len, &err), 0);
	CHECK_EQ(len, 13);
	CHECK_STR(text, "guest program");
	free(text);
	for (int k = SB_BUNDLE_GUEST; k < SB_BUNDLE_KINDS; k++)
		CHECK(fcntl(b->fds[k], F_GETFD) == FD_CLOEXEC);
	(void)sb_bundle_free(b);
	gone();
}

TEST(each_flipped_bit_is_refused)
{
	size_t n = 0;

	fresh(1);
	for (size_t f = 0; f < SB_ARRAY_LEN(files); f++) {
		struct stat st;

		REQUIRE(stat(at(files[f]), &st) == 0);
		for (size_t i = 0; i < (size_t)st.st_size; i++)
			for (int bit = 0; bit < 8; bit++) {
				flip(files[f], i, bit);
				if (try_open(NULL) == 0)
					t_fail(__FILE__, __LINE__, "%s: bit %d of byte %zu",
					       files[f], bit, i);
				flip(files[f], i, bit);
				n++;
			}
	}
	CHECK_EQ(try_open(NULL), 0); /* all as it was: the refusals were for the bits */
	CHECK(n > 15000);
	gone();
}

TEST(lengths_are_refused)
{
	fresh(1);
	for (size_t f = 0; f < SB_ARRAY_LEN(files); f++) {
		char *path = at(files[f]);
		struct stat st;

		REQUIRE(stat(path, &st) == 0 && chmod(path, 0600) == 0);
		REQUIRE(truncate(path, st.st_size + 1) == 0 && chmod(path, st.st_mode) == 0);
		CHECK_EQ(try_open(NULL), -EBADMSG);
		REQUIRE(chmod(path, 0600) == 0 && truncate(path, st.st_size) == 0);
		REQUIRE(chmod(path, st.st_mode) == 0);
		CHECK_EQ(try_open(NULL), 0);
	}
	/* a file of many gigabytes costs nothing: sizes are looked at first */
	REQUIRE(chmod(at("manifest.json"), 0600) == 0 &&
		truncate(at("manifest.json"), 1LL << 40) == 0);
	CHECK_EQ(try_open(NULL), -EBADMSG);
	gone();
}

TEST(other_key_floor_machine_version)
{
	uint8_t keys[64] = { 7 };
	struct sb_bundle_trust t = { .keys = keys, .n_keys = 1 };
	struct sb_bundle *b = NULL;
	struct sb_err err = { 0 };

	fresh(4);
	CHECK_EQ(open_with(&t, &b, &err), -EKEYREJECTED);
	t.n_keys = 0;
	CHECK_EQ(open_with(&t, &b, NULL), -EKEYREJECTED);
	memcpy(keys + 32, pub, 32);
	t.n_keys = 2;
	CHECK_EQ(open_with(&t, &b, NULL), 0);
	b = sb_bundle_free(b);
	t.floor = 5;
	err = (struct sb_err){ 0 };
	CHECK_EQ(open_with(&t, &b, &err), -ESTALE);
	CHECK(strstr(err.text, "sequence 4") && strstr(err.text, "below 5"));
	t.floor = 4;
	t.architecture = "aarch64";
	CHECK_EQ(open_with(&t, &b, NULL), -ENOEXEC);
	t.architecture = "x86_64";
	t.plan_version = 9;
	CHECK_EQ(open_with(&t, &b, NULL), -ENOEXEC);
	t.plan_version = 1;
	CHECK_EQ(open_with(&t, &b, NULL), 0);
	(void)sb_bundle_free(b);
	gone();
}

/* A signature of ours over something else: the same bytes without the domain. */
TEST(signature_is_for_bundles_alone)
{
	char text[SB_BUNDLE_SIGNATURE_LEN + 1];
	sb_autofree char *m = NULL;
	sb_autofd int dir = -1;
	uint8_t sig[64];
	size_t len;

	fresh(1);
	dir = open(bundle, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	REQUIRE(sb_fd_read_file(dir, "manifest.json", 65536, &m, &len) == 0);
	sb_sign(m, len, sec, sig);
	sb_bundle_signature_write(pub, sig, text);
	REQUIRE(sb_fd_write_file(dir, "manifest.sig", text, strlen(text), 0444) == 0);
	CHECK_EQ(try_open(NULL), -EBADMSG);
	CHECK_EQ(sb_bundle_sign(dir, sec, NULL), 0); /* control */
	CHECK_EQ(try_open(NULL), 0);
	gone();
}

/* RFC 8032's curve: the public key that is the neutral element signs everything. */
TEST(small_order_key)
{
	static const uint8_t neutral[32] = { 1 };
	const struct sb_bundle_trust t = { .keys = neutral, .n_keys = 1 };
	char text[SB_BUNDLE_SIGNATURE_LEN + 1];
	uint8_t sig[64] = { 1 }; /* R neutral, S zero */
	struct sb_bundle *b = NULL;
	sb_autofd int dir = -1;

	fresh(1);
	dir = open(bundle, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sb_bundle_signature_write(neutral, sig, text);
	REQUIRE(sb_fd_write_file(dir, "manifest.sig", text, strlen(text), 0444) == 0);
	CHECK_EQ(open_with(&t, &b, NULL), -EBADMSG);
	gone();
}

static void refused(int line, int want, const char *says)
{
	struct sb_err err = { 0 };
	int r = try_open(&err);

	if (r != want || !strstr(err.text, says))
		t_fail(__FILE__, line, "%d, want %d: \"%s\", want \"%s\"", r, want, err.text, says);
}

TEST(kinds_of_files)
{
	for (size_t f = 0; f < SB_ARRAY_LEN(files); f++) {
		char real[512];
		char other[512];

		fresh(1);
		(void)snprintf(real, sizeof(real), "%s/%s", bundle, files[f]);
		(void)snprintf(other, sizeof(other), "%s/other", top);
		REQUIRE(rename(real, other) == 0);
		refused(__LINE__, -ENOENT, files[f]); /* manifest.sig too is named */
		REQUIRE(symlink(other, real) == 0);
		refused(__LINE__, -EPERM, "symbolic link");
		REQUIRE(unlink(real) == 0 && link(other, real) == 0);
		refused(__LINE__, -EPERM, "hard link");
		REQUIRE(unlink(real) == 0 && mkfifo(real, 0444) == 0);
		refused(__LINE__, -EPERM, "not a regular file");
		REQUIRE(unlink(real) == 0 && mkdir(real, 0755) == 0);
		refused(__LINE__, -EPERM, "not a regular file");
		REQUIRE(rmdir(real) == 0 && rename(other, real) == 0);
		REQUIRE(chmod(real, 0464) == 0);
		refused(__LINE__, -EPERM, "written by its group");
		REQUIRE(chmod(real, 0446) == 0);
		refused(__LINE__, -EPERM, "written by its group or by others");
		REQUIRE(chmod(real, strstr(real, "guest") ? 0555 : 0444) == 0);
		CHECK_EQ(try_open(NULL), 0);
		gone();
	}
}

TEST(modes_and_folders)
{
	char other[512];

	fresh(1);
	REQUIRE(chmod(at("bin/sendbox-guest"), 04555) == 0);
	refused(__LINE__, -EPERM, "mode 4555");
	REQUIRE(chmod(at("bin/sendbox-guest"), 0755) == 0);
	refused(__LINE__, -EPERM, "mode 0755");
	REQUIRE(chmod(at("bin/sendbox-guest"), 0555) == 0);
	REQUIRE(chmod(at("boot"), 0775) == 0);
	refused(__LINE__, -EPERM, "written by its group");
	REQUIRE(chmod(at("boot"), 0755) == 0 && chmod(bundle, 0757) == 0);
	refused(__LINE__, -EPERM, "written by its group or by others");
	REQUIRE(chmod(bundle, 0755) == 0);
	/* a folder that is a link, inside and outside the bundle */
	(void)snprintf(other, sizeof(other), "%s/boot", top);
	REQUIRE(rename(at("boot"), other) == 0 && symlink("../boot", at("boot")) == 0);
	refused(__LINE__, -EPERM, "boot");
	REQUIRE(unlink(at("boot")) == 0 && rename(other, at("boot")) == 0);
	/* one file, folder or link too many, anywhere */
	REQUIRE(mkdir(at("boot/extra"), 0755) == 0);
	refused(__LINE__, -EBADMSG, "boot/extra is not in the manifest");
	REQUIRE(rmdir(at("boot/extra")) == 0 && symlink("/", at(".hidden")) == 0);
	refused(__LINE__, -EBADMSG, ".hidden is not in the manifest");
	REQUIRE(unlink(at(".hidden")) == 0);
	CHECK_EQ(try_open(NULL), 0);
	if (geteuid() == 0) {
		REQUIRE(chown(at("boot/modules"), 12345, 0) == 0);
		refused(__LINE__, -EPERM, "belongs neither");
		REQUIRE(chown(at("boot/modules"), 0, 0) == 0 && chown(at("share"), 12345, 0) == 0);
		refused(__LINE__, -EPERM, "belongs neither");
		REQUIRE(chown(at("share"), 0, 0) == 0);
		CHECK_EQ(try_open(NULL), 0);
	}
	gone();
}

/* Swapped after the check: the descriptors are of what was checked. */
TEST(swaps_change_nothing)
{
	const struct sb_bundle_trust t = { .keys = pub, .n_keys = 1 };
	struct sb_bundle *b = NULL;
	char *text = NULL;
	char aside[512];
	char evil[512];
	uint8_t sha[32];
	uint64_t n;
	size_t len;
	int fd;

	fresh(1);
	(void)snprintf(aside, sizeof(aside), "%s/aside", top);
	(void)snprintf(evil, sizeof(evil), "%s/evil", top);
	REQUIRE(open_with(&t, &b, NULL) == 0);
	/* the file */
	fd = open(evil, O_WRONLY | O_CREAT | O_CLOEXEC, 0555);
	REQUIRE(fd >= 0 && write(fd, "evil! program", 13) == 13 && close(fd) == 0);
	REQUIRE(rename(evil, at("bin/sendbox-guest")) == 0);
	CHECK_EQ(sb_bundle_read(b, SB_BUNDLE_GUEST, &text, &len, NULL), 0);
	CHECK_STR(text, "guest program");
	free(text);
	CHECK_EQ(sb_sha256_fd(b->fds[SB_BUNDLE_GUEST], sha, &n), 0);
	CHECK_MEM(sha, sb_bundle_find(&b->m, SB_BUNDLE_GUEST)->sha256, 32);
	/* control: who opens it now sees the other one, and refuses it */
	CHECK_EQ(try_open(NULL), -EBADMSG);
	/* the whole bundle */
	REQUIRE(rename(bundle, aside) == 0);
	CHECK_EQ(sb_bundle_read(b, SB_BUNDLE_MODULES, &text, &len, NULL), 0);
	CHECK(strstr(text, "boot required fuse\n"));
	free(text);
	(void)sb_bundle_free(b);
	gone();
}

/* Written into after the check, which only the owner can: what is read is hashed as it is read. */
TEST(writes_are_seen)
{
	const struct sb_bundle_trust t = { .keys = pub, .n_keys = 1 };
	struct sb_bundle *b = NULL;
	struct sb_err err = { 0 };
	char *text = NULL;
	size_t len;

	fresh(1);
	REQUIRE(open_with(&t, &b, NULL) == 0);
	flip("bin/sendbox-guest", 3, 0);
	CHECK_EQ(sb_bundle_read(b, SB_BUNDLE_GUEST, &text, &len, &err), -EBADMSG);
	CHECK(strstr(err.text, "changed after"));
	flip("bin/sendbox-guest", 3, 0);
	CHECK_EQ(sb_bundle_read(b, SB_BUNDLE_GUEST, &text, &len, NULL), 0);
	free(text);
	(void)sb_bundle_free(b);
	gone();
}

TEST(peek)
{
	struct sb_bundle_manifest m = { 0 };
	sb_autofd int dir = -1;
	uint8_t key[32];
	uint8_t sha[32];
	bool good = false;

	fresh(6);
	dir = open(bundle, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_EQ(sb_bundle_peek(dir, &m, key, sha, &good, NULL), 0);
	CHECK(good && m.sequence == 6 && memcmp(key, pub, 32) == 0);
	sb_bundle_manifest_done(&m);
	flip("manifest.sig", 100, 0);
	if (sb_bundle_peek(dir, &m, key, sha, &good, NULL) == 0)
		CHECK(!good);
	sb_bundle_manifest_done(&m);
	REQUIRE(unlink(at("manifest.sig")) == 0);
	CHECK_EQ(sb_bundle_peek(dir, &m, key, sha, &good, NULL), 0);
	CHECK(!good && key[0] == 0 && key[31] == 0);
	sb_bundle_manifest_done(&m);
	gone();
}

/* Nothing is signed that could not be opened afterwards. */
TEST(sign_checks)
{
	sb_autofd int dir = -1;

	fresh(1);
	dir = open(bundle, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	flip("boot/modules", 0, 0);
	CHECK_EQ(sb_bundle_sign(dir, sec, NULL), -EBADMSG);
	flip("boot/modules", 0, 0);
	REQUIRE(chmod(at("boot/modules"), 0644) == 0);
	CHECK_EQ(sb_bundle_sign(dir, sec, NULL), -EPERM);
	REQUIRE(chmod(at("boot/modules"), 0444) == 0);
	CHECK_EQ(sb_bundle_sign(dir, sec, NULL), 0);
	gone();
}
