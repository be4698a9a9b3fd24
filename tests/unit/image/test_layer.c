/*
 * image_layer_from_tar: what an archive becomes in the cache, by the real jailed helper. Of what is
 * refused nothing is kept, and no process is left. What a helper says that was taken over is no
 * success either.
 */
#include <archive.h>
#include <archive_entry.h>
#include <inttypes.h>

#include "cache_place.h"
#include "erofs/read.h"
#include "image/image.h"
#include "tar_make.h"

static struct tar_make t;
static struct sb_err err;

static void start(void)
{
	memset(&t, 0, sizeof(t));
}

static int layer(const struct cache_place *p, const void *bytes, size_t len, uint64_t max,
		 struct sb_plan_layer *ret)
{
	sb_autofd int fd = cache_place_file(bytes, len);
	int fds = t_open_fds();
	int r;

	err = (struct sb_err){ 0 };
	r = image_layer_from_tar(&p->d, fd, max, ret, &err);
	CHECK_EQ(t_open_fds(), fds);
	CHECK(cache_place_childless());
	CHECK_EQ(cache_place_count(p, "layers", ""), r == 0 ? 2 : 0);
	if (r < 0)
		CHECK(err.code == r && err.text[0] != '\0');
	return r;
}

static void refused(const char *text)
{
	struct cache_place p;
	struct sb_plan_layer l = { 0 };

	tar_close(&t);
	cache_place_make(&p);
	CHECK_EQ(layer(&p, t.p, t.len, 0, &l), -EBADMSG);
	CHECK(!l.path);
	if (!strstr(err.text, text))
		t_fail(__FILE__, __LINE__, "got \"%s\", want \"%s\"", err.text, text);
	cache_place_done(&p);
	start();
}

/* The mode of @name in @dir of the layer; 0: it is not there. */
static uint32_t mode_of(const struct sb_plan_layer *l, const char *dir, const char *name)
{
	sb_autofd int fd = open(l->path, O_RDONLY | O_CLOEXEC);
	void *p = fd < 0 ? MAP_FAILED : mmap(NULL, l->size, PROT_READ, MAP_PRIVATE, fd, 0);
	const char *const parts[] = { dir, name };
	struct sb_erofs fs;
	struct sb_erofs_node n = { 0 };
	int r;

	if (p == MAP_FAILED)
		return 0;
	r = sb_erofs_open(p, l->size, &fs, NULL);
	if (r == 0)
		r = sb_erofs_node(&fs, fs.root, &n);
	for (size_t i = 0; r == 0 && i < SB_ARRAY_LEN(parts); i++) {
		struct sb_erofs_entry e;

		r = sb_erofs_lookup(&fs, &n, parts[i], strlen(parts[i]), &e);
		if (r == 0)
			r = sb_erofs_node(&fs, e.nid, &n);
	}
	(void)munmap(p, l->size);
	return r == 0 ? n.mode : 0;
}

TEST(a_layer)
{
	struct cache_place p;
	struct sb_plan_layer one = { 0 };
	struct sb_plan_layer two = { 0 };
	struct stat st;

	start();
	cache_place_make(&p);
	tar_dir(&t, "opt");
	tar_file(&t, "opt/made", "by hand\n");
	tar_file(&t, "opt/.wh.gone", "");
	(void)tar_head(&t, '3', "opt/null", NULL, 0666, 0);
	(void)tar_head(&t, '4', "opt/sda", NULL, 0666, 0);
	tar_link(&t, '2', "opt/out", "../../../etc/shadow");
	(void)tar_head(&t, '0', "opt/su", NULL, 04755, 0);
	tar_close(&t);
	REQUIRE(layer(&p, t.p, t.len, 0, &one) == 0);
	CHECK_EQ(mode_of(&one, "opt", "made"), S_IFREG | 0644);
	CHECK_EQ(mode_of(&one, "opt", "gone"), S_IFCHR); /* a whiteout as overlays have it */
	CHECK_EQ(mode_of(&one, "opt", "null"), 0);       /* devices are left out */
	CHECK_EQ(mode_of(&one, "opt", "sda"), 0);
	CHECK_EQ(mode_of(&one, "opt", "out"), S_IFLNK | 0777);
	CHECK_EQ(mode_of(&one, "opt", "su"), S_IFREG | 04755);
	REQUIRE(stat(one.path, &st) == 0);
	CHECK_EQ(st.st_mode, S_IFREG | 0400);
	CHECK(st.st_ino == one.ino && (uint64_t)st.st_size == one.size);
	/* the same bytes are the same file */
	CHECK_EQ(layer(&p, t.p, t.len, 0, &two), 0);
	CHECK_STR(two.path, one.path);
	CHECK_EQ(two.ino, one.ino);
	image_layer_done(&one);
	image_layer_done(&two);
	cache_place_done(&p);
}

TEST(hostile)
{
	char longest[101];
	uint8_t *h;

	start();
	tar_file(&t, "../escaped", "x");
	refused("a name with \"..\"");
	tar_file(&t, "a/../../escaped", "x");
	refused("a name with \"..\"");
	tar_dir(&t, "a");
	tar_file(&t, "a/.wh...", "");
	refused("whiteout");
	/* beneath a link nothing is written, wherever it leads */
	tar_link(&t, '2', "d", "/etc");
	tar_file(&t, "d/passwd", "root::0:0::/:/bin/sh\n");
	refused("d/passwd");
	tar_file(&t, "f", "x");
	tar_file(&t, "f/g", "x");
	refused("f/g");
	tar_link(&t, '1', "h", "/etc/shadow");
	refused("not there");
	tar_link(&t, '1', "h", "../../etc/shadow");
	refused("a name with \"..\"");
	tar_link(&t, '1', "h", "h");
	refused("hard link");
	tar_file(&t, "twice", "x");
	tar_link(&t, '2', "twice", "/etc");
	refused("twice");
	tar_file(&t, ".", "x");
	refused("the root must be a directory");
	(void)tar_head(&t, 'Z', "odd", NULL, 0644, 0);
	refused("");
	/* numbers that lie */
	h = tar_head(&t, '0', "f", NULL, 0644, 0);
	memset(h + 124, '7', 11);
	tar_seal(h);
	refused("");
	h = tar_head(&t, '0', "f", NULL, 0644, 4);
	h[0] = 'g';
	refused("sum");
	(void)tar_head(&t, 'x', "pax", NULL, 0644, 3);
	tar_data(&t, "99 path=a\n", 3);
	tar_file(&t, "f", "x");
	refused("");
	memset(longest, 'n', sizeof(longest));
	longest[100] = '\0';
	tar_pax(&t, "18 path=a\0b/../c\n", 17);
	tar_file(&t, longest, "x");
	refused("");
	/* not an archive at all */
	memset(t.p, 'x', 4096);
	t.len = 4096;
	refused("");
}

/* Wherever it is cut nothing is kept. */
TEST(truncated)
{
	size_t whole;

	start();
	tar_dir(&t, "opt");
	tar_pax(&t, "15 path=opt/xx\n", 15);
	tar_file(&t, "x", "123456789");
	tar_file(&t, "opt/last", "1");
	whole = t.len;
	for (size_t cut = 0; cut <= whole; cut += 256) {
		struct cache_place p;
		struct sb_plan_layer l = { 0 };

		cache_place_make(&p);
		CHECK_EQ(layer(&p, t.p, cut, 0, &l), -EBADMSG);
		if (cut > 0 && !strstr(err.text, "cut off"))
			t_fail(__FILE__, __LINE__, "at %zu: \"%s\"", cut, err.text);
		cache_place_done(&p);
	}
}

/* @len zeroes, packed: the archive that has them as a file is a bomb. */
static size_t bomb(uint8_t *to, size_t cap, uint64_t len)
{
	static uint8_t zeroes[1 << 20];
	struct archive *a = archive_write_new();
	struct archive_entry *e = archive_entry_new();
	size_t used = 0;

	start();
	(void)tar_head(&t, '0', "zeroes", NULL, 0644, len);
	(void)archive_write_set_format_raw(a);
	(void)archive_write_add_filter_zstd(a);
	(void)archive_write_open_memory(a, to, cap, &used);
	archive_entry_set_filetype(e, AE_IFREG);
	(void)archive_write_header(a, e);
	(void)archive_write_data(a, t.p, t.len);
	for (uint64_t at = 0; at < len + 1024; at += sizeof(zeroes))
		(void)archive_write_data(a, zeroes, sizeof(zeroes));
	(void)archive_write_close(a);
	(void)archive_write_free(a);
	archive_entry_free(e);
	return used;
}

TEST(bombs)
{
	static uint8_t packed[1 << 20];
	struct cache_place p;
	struct sb_plan_layer l = { 0 };
	size_t len = bomb(packed, sizeof(packed), 300ULL << 20);

	cache_place_make(&p);
	REQUIRE(len > 0 && len < sizeof(packed));
	CHECK_EQ(layer(&p, packed, len, 0, &l), -EBADMSG);
	CHECK(strstr(err.text, "decompression bomb") != NULL);
	/* control: less of it is a layer, unless it is more than the caller takes */
	len = bomb(packed, sizeof(packed), 20ULL << 20);
	CHECK_EQ(layer(&p, packed, len, 10ULL << 20, &l), -EFBIG);
	CHECK_EQ(layer(&p, packed, len, 0, &l), 0);
	CHECK_EQ(mode_of(&l, ".", "zeroes"), S_IFREG | 0644);
	image_layer_done(&l);
	cache_place_done(&p);
}

TEST(what_cannot_be_read)
{
	struct cache_place p;
	struct sb_plan_layer l = { 0 };
	sb_autofd int dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	cache_place_make(&p);
	err = (struct sb_err){ 0 };
	CHECK_EQ(image_layer_from_tar(&p.d, dir, 0, &l, &err), -EISDIR);
	CHECK(strstr(err.text, "cannot read the archive") != NULL);
	CHECK_EQ(cache_place_count(&p, "layers", ""), 0);
	CHECK(cache_place_childless());
	cache_place_done(&p);
}

/* Programs in the place of the helper: what they do, and what is told of it. */
TEST(a_helper_that_was_taken_over)
{
	static const struct {
		const char *text;
		int r;
		const char *say;
	} cases[] = {
		{ "exit 0", -EPROTO, "without a result" },
		{ "cat >/dev/null; exit 0", -EPROTO, "without a result" },
		{ "cat >/dev/null; head -c 20 /dev/zero >&3", -EPROTO, "without a result" },
		{ "cat >/dev/null; kill -SEGV $$", -EPROTO, "signal 11" },
		/* code 1, and one that is no errno */
		{ "cat >/dev/null; { printf '\\001\\0\\0\\0'; head -c 552 /dev/zero; } >&3", -EPROTO,
		  "without a result" },
		{ "cat >/dev/null; { printf '\\0\\0\\0\\200'; head -c 552 /dev/zero; } >&3", -EPROTO,
		  "without a result" },
		/* ENOSPC with a text that no terminal should get, and that does not end */
		{ "cat >/dev/null; { printf '\\344\\377\\377\\377'; head -c 36 /dev/zero; "
		  "head -c 516 /dev/zero | tr '\\0' '\\033'; } >&3", -ENOSPC, "????" },
		/* success by word alone */
		{ "cat >/dev/null; head -c 556 /dev/zero >&3; exit 3", -EPROTO, "after its result" },
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(cases); i++) {
		struct cache_place p;
		struct sb_plan_layer l = { 0 };
		char text[512];

		start();
		tar_file(&t, "f", "x");
		tar_close(&t);
		cache_place_make(&p);
		(void)snprintf(text, sizeof(text), "#!/bin/sh\nPATH=/usr/bin:/bin\n%s\n", cases[i].text);
		cache_place_helper(&p, text);
		CHECK_EQ(layer(&p, t.p, t.len, 0, &l), cases[i].r);
		if (!strstr(err.text, cases[i].say) || strchr(err.text, 0x1b))
			t_fail(__FILE__, __LINE__, "%zu: \"%s\"", i, err.text);
		cache_place_done(&p);
	}
}
