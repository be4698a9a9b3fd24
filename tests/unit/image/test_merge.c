/* What a list of archives becomes, against lists written by hand. */
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "image/merge.h"
#include "t.h"
#include "tar_make.h"

static struct tar_make t[3];
static struct sb_err err;
static char list[8192];
static struct sb_text out = { .p = list, .cap = sizeof(list) };

static void start(void)
{
	memset(t, 0, sizeof(t));
	err = (struct sb_err){ 0 };
}

static void add_path(const struct sb_erofs_entry *root, const struct sb_erofs_entry *e)
{
	const struct sb_erofs_entry *up[64];
	size_t n = 0;

	for (; e != root && n < SB_ARRAY_LEN(up); e = e->parent)
		up[n++] = e;
	for (size_t i = n; i > 0; i--)
		sb_text_add(&out, "/%.*s", (int)up[i - 1]->name_len, up[i - 1]->name);
	if (n == 0)
		sb_text_add(&out, "/");
}

static void add_line(const struct image_merge *m, const struct sb_erofs_entry *e)
{
	const struct sb_erofs_inode *i = e->inode;

	add_path(m->tree.root, e);
	sb_text_add(&out, " %o %u %llu%s%s%s\n", i->mode, i->nlink,
		    S_ISDIR(i->mode) ? 0ULL : (unsigned long long)i->size, i->target ? " > " : "",
		    i->target ? i->target : "", e->opaque ? " opaque" : "");
}

static int run_limited(enum image_mode mode, size_t n, const struct image_limits *limits)
{
	sb_autofd int file = memfd_create("out", MFD_CLOEXEC);
	sb_autofd int spool = memfd_create("spool", MFD_CLOEXEC);
	struct image_merge m;
	struct sb_erofs_entry *e;
	int r = image_merge_init(&m, mode, limits, file, spool, &err);

	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < n; i++) {
		sb_autotar struct sb_tar *tar = NULL;

		r = image_merge_layer(&m, &tar);
		if (r == 0)
			r = image_merge_push(&m, tar, t[i].p, t[i].len);
		if (r == 0)
			r = image_merge_end(&m, tar);
	}
	if (r == 0)
		r = image_merge_finish(&m);
	list[0] = '\0';
	out.len = 0;
	for (e = m.tree.root; r == 0 && e; e = sb_erofs_walk(m.tree.root, e))
		add_line(&m, e);
	image_merge_done(&m);
	return r;
}

static int run(enum image_mode mode, size_t n)
{
	for (size_t i = 0; i < n; i++)
		tar_close(&t[i]);
	return run_limited(mode, n, &image_limits_default);
}

static void refused(size_t n, const char *text)
{
	CHECK_EQ(run(IMAGE_MODE_IMAGE, n), -EBADMSG);
	if (!strstr(err.text, text))
		t_fail(__FILE__, __LINE__, "got \"%s\", want \"%s\"", err.text, text);
}

TEST(one_layer)
{
	start();
	tar_dir(&t[0], "./");
	tar_file(&t[0], "./b/c/f", "12345");
	tar_file(&t[0], "/abs", "x");
	tar_link(&t[0], '2', "l", "/etc/../..");
	tar_link(&t[0], '1', "b/h", "./abs");
	CHECK_EQ(run(IMAGE_MODE_IMAGE, 1), 0);
	CHECK_STR(list, "/ 40755 3 0\n/abs 100644 2 1\n/b 40755 3 0\n/b/c 40755 2 0\n"
			"/b/c/f 100644 1 5\n/b/h 100644 2 1\n/l 120777 1 10 > /etc/../..\n");
}

/* umoci insert writes such; where a digest vouches for the bytes it is whole, else it may be cut off. */
TEST(no_end_marker)
{
	start();
	tar_file(&t[0], "f", "abc");
	CHECK_EQ(run_limited(IMAGE_MODE_IMAGE, 1, &image_limits_default), 0);
	CHECK_EQ(run_limited(IMAGE_MODE_LAYER, 1, &image_limits_default), -EBADMSG);
	CHECK(strstr(err.text, "no end marker"));
	err = (struct sb_err){ 0 };
	t[0].len -= 400;
	CHECK_EQ(run_limited(IMAGE_MODE_IMAGE, 1, &image_limits_default), -EBADMSG);
	CHECK(strstr(err.text, "middle of an entry"));
}

TEST(whiteouts)
{
	start();
	tar_file(&t[0], "a/1", "");
	tar_file(&t[0], "a/2", "");
	tar_file(&t[0], "b/1", "");
	tar_file(&t[0], "c/d/1", "");
	tar_file(&t[0], "keep", "");
	/* a whiteout acts below its own layer alone, wherever it stands */
	tar_file(&t[1], "b/new", "");
	tar_file(&t[1], "b/.wh..wh..opq", "");
	tar_file(&t[1], "a/.wh.1", "");
	tar_file(&t[1], ".wh.c", "");
	tar_dir(&t[1], "c");
	tar_file(&t[1], "c/new", "");
	tar_file(&t[1], ".wh.nothing", "");
	tar_file(&t[1], "no/where/.wh.x", "");
	tar_file(&t[1], ".wh..wh.plnk", "");
	CHECK_EQ(run(IMAGE_MODE_IMAGE, 2), 0);
	CHECK_STR(list, "/ 40755 5 0\n/a 40755 2 0\n/a/2 100644 1 0\n/b 40755 2 0\n"
			"/b/new 100644 1 0\n/c 40755 2 0\n/c/new 100644 1 0\n/keep 100644 1 0\n");
}

TEST(whiteout_after_what_it_spares)
{
	start();
	tar_file(&t[0], "d/sub/old", "");
	tar_file(&t[0], "d/old", "");
	tar_file(&t[1], "d/sub/new", "");
	tar_file(&t[1], ".wh.d", "");
	CHECK_EQ(run(IMAGE_MODE_IMAGE, 2), 0);
	CHECK_STR(list, "/ 40755 3 0\n/d 40755 3 0\n/d/sub 40755 2 0\n/d/sub/new 100644 1 0\n");
}

TEST(replaced)
{
	start();
	tar_file(&t[0], "f", "old");
	tar_file(&t[0], "d/x", "");
	tar_link(&t[0], '2', "l", "d");
	tar_file(&t[0], "h1", "data");
	tar_link(&t[0], '1', "h2", "h1");
	tar_dir(&t[1], "f");
	tar_file(&t[1], "f/in", "");
	tar_file(&t[1], "d", "file");
	tar_dir(&t[1], "l");
	tar_file(&t[1], "h1", "other!");
	tar_link(&t[2], '1', "h3", "h2");
	tar_file(&t[2], "f", "file again");
	tar_dir(&t[2], "d/");
	CHECK_EQ(run(IMAGE_MODE_IMAGE, 3), 0);
	CHECK_STR(list, "/ 40755 4 0\n/d 40755 2 0\n/f 100644 1 10\n/h1 100644 1 6\n"
			"/h2 100644 2 4\n/h3 100644 2 4\n/l 40755 2 0\n");
}

TEST(directory_keeps_what_is_in_it)
{
	start();
	tar_file(&t[0], "d/x", "");
	(void)tar_head(&t[1], '5', "d", NULL, 01700, 0);
	CHECK_EQ(run(IMAGE_MODE_IMAGE, 2), 0);
	CHECK_STR(list, "/ 40755 3 0\n/d 41700 2 0\n/d/x 100644 1 0\n");
}

TEST(layer_keeps_whiteouts)
{
	start();
	tar_file(&t[0], "a/.wh.gone", "");
	tar_file(&t[0], "b/.wh..wh..opq", "");
	tar_file(&t[0], ".wh.c", "");
	tar_file(&t[0], "c/new", "");
	tar_file(&t[0], "d/new", "");
	tar_file(&t[0], ".wh.d", "");
	tar_file(&t[0], ".wh.e", "");
	tar_file(&t[0], "e", "x");
	CHECK_EQ(run(IMAGE_MODE_LAYER, 1), 0);
	CHECK_STR(list, "/ 40755 6 0\n/a 40755 2 0\n/a/gone 20000 1 0\n/b 40755 2 0 opaque\n"
			"/c 40755 2 0 opaque\n/c/new 100644 1 0\n/d 40755 2 0 opaque\n"
			"/d/new 100644 1 0\n/e 100644 1 1\n");
	start();
	CHECK_EQ(run(IMAGE_MODE_LAYER, 2), -EBADMSG);
}

TEST(hostile_names)
{
	start();
	tar_file(&t[0], "../x", "");
	refused(1, "layer 1: entry \"../x\": a name with \"..\"");
	start();
	tar_file(&t[0], "a/../../x", "");
	refused(1, "..");
	start();
	tar_link(&t[0], '2', "up", "/etc");
	tar_file(&t[0], "up/passwd", "x");
	refused(1, "layer 1: entry \"up/passwd\": it lies beneath \"up\", which is a symbolic link");
	start();
	tar_link(&t[0], '2', "up", "/etc");
	tar_file(&t[1], "up/passwd", "x");
	refused(2, "layer 2: entry \"up/passwd\"");
	start();
	tar_file(&t[0], "f", "");
	tar_file(&t[0], "f/x", "");
	refused(1, "which is no directory");
	start();
	tar_file(&t[0], "f", "");
	tar_file(&t[0], "./f", "");
	refused(1, "twice");
	start();
	tar_file(&t[0], "d/f", "");
	tar_file(&t[0], "d", "");
	refused(1, "twice");
	start();
	tar_file(&t[0], ".wh.x/f", "");
	refused(1, "reserved");
	start();
	tar_file(&t[0], "d/.wh.", "");
	refused(1, "a whiteout of nothing");
	start();
	tar_file(&t[0], "d/.wh...", "");
	refused(1, "a whiteout of nothing");
	start();
	tar_file(&t[0], ".wh.x", "data");
	refused(1, "no empty file");
	start();
	tar_file(&t[0], "./", "");
	t[0].p[156] = '2';
	memcpy(t[0].p + 157, "x", 2);
	tar_seal(t[0].p);
	refused(1, "root");
}

TEST(hostile_links)
{
	start();
	tar_link(&t[0], '1', "h", "nothing");
	refused(1, "a hard link to \"nothing\", which is not there");
	start();
	tar_link(&t[0], '1', "h", "../../etc/passwd");
	refused(1, "..");
	start();
	tar_dir(&t[0], "d");
	tar_link(&t[0], '1', "h", "d");
	refused(1, "a directory");
	start();
	tar_link(&t[0], '2', "s", "/etc");
	tar_link(&t[0], '1', "h", "s/passwd");
	refused(1, "symbolic link");
	start();
	tar_file(&t[0], "d/f", "");
	tar_link(&t[1], '1', "d", "d/f");
	refused(2, "which it replaces");
	start();
	tar_file(&t[0], "d/f", "");
	tar_link(&t[1], '1', "d/f", "d/f");
	refused(2, "itself");
}

TEST(left_out)
{
	uint8_t *h;

	start();
	h = tar_head(&t[0], '4', "sda", NULL, 0666, 0);
	memcpy(h + 329, "0000010\0" "0000000", 16);
	tar_seal(h);
	(void)tar_head(&t[0], '3', "zero", NULL, 0666, 0);
	tar_pax(&t[0], "50 SCHILY.xattr.trusted.overlay.redirect=/other/x\n", 50);
	tar_file(&t[0], "f", "");
	CHECK_EQ(run(IMAGE_MODE_IMAGE, 1), 0);
	CHECK_STR(list, "/ 40755 2 0\n/f 100644 1 0\n");
}

TEST(limits)
{
	struct image_limits l = image_limits_default;

	start();
	tar_file(&t[0], "a/b/c/d/e", "12345678");
	tar_close(&t[0]);
	l.max_entries = 5;
	CHECK_EQ(run_limited(IMAGE_MODE_IMAGE, 1, &l), -E2BIG);
	CHECK(strstr(err.text, "more than 5 entries"));
	l.max_entries = 6;
	CHECK_EQ(run_limited(IMAGE_MODE_IMAGE, 1, &l), 0);
	l.max_bytes = 7;
	CHECK_EQ(run_limited(IMAGE_MODE_IMAGE, 1, &l), -EFBIG);
	l = image_limits_default;
	l.max_memory = 200;
	CHECK(run_limited(IMAGE_MODE_IMAGE, 1, &l) < 0);
}
