#include "base/text.h"
#include "t.h"
#include "tar_make.h"
#include "wire/tar.h"

static struct tar_make t;
static char seen[4096];
static struct sb_text out = { .p = seen, .cap = sizeof(seen) };

static int on_entry(void *arg, const struct sb_tar_entry *e)
{
	(void)arg;
	sb_text_add(&out, "%d %.100s -> %.100s %o %u:%u %llu %lld.%u %u,%u", (int)e->type, e->path,
		    e->link, e->mode, e->uid, e->gid, (unsigned long long)e->size,
		    (long long)e->mtime, e->mtime_nsec, e->major, e->minor);
	for (size_t i = 0; i < e->n_xattrs; i++)
		sb_text_add(&out, " %.*s=%.*s", (int)e->xattrs[i].name_len, e->xattrs[i].name,
			    (int)e->xattrs[i].value_len, (const char *)e->xattrs[i].value);
	sb_text_add(&out, "\n");
	return 0;
}
static int on_data(void *arg, const uint8_t *p, size_t len)
{
	(void)arg;
	sb_text_add(&out, "%.*s", (int)len, (const char *)p);
	return 0;
}
static int on_end(void *arg)
{
	(void)arg;
	sb_text_add(&out, "$\n");
	return 0;
}

/* All at once, or in pieces of @piece bytes. */
static int run(size_t piece, struct sb_err *err)
{
	static const struct sb_tar_ops ops = { on_entry, on_data, on_end };
	sb_autotar struct sb_tar *r = NULL;
	int rc;

	seen[0] = '\0';
	out.len = 0;
	if (sb_tar_new(&ops, NULL, &r) < 0)
		return -ENOMEM;
	for (size_t at = 0; at < t.len; at += piece) {
		rc = sb_tar_push(r, t.p + at, t.len - at < piece ? t.len - at : piece, err);
		if (rc < 0)
			return rc;
	}
	return sb_tar_end(r, err);
}

static void refused(const char *text)
{
	struct sb_err err = { 0 };

	CHECK_EQ(run(t.len, &err), -EBADMSG);
	if (!strstr(err.text, text))
		t_fail(__FILE__, __LINE__, "got \"%s\", want \"%s\"", err.text, text);
}

static void start(void)
{
	memset(&t, 0, sizeof(t));
}

TEST(kinds)
{
	static const char want[] = "6 d/ ->  755 0:0 0 1000.0 0,0\n"
				   "1 d/f ->  644 0:0 5 1000.0 0,0\nhello$\n"
				   "2 d/h -> d/f 777 0:0 0 1000.0 0,0\n"
				   "3 l -> ../x 777 0:0 0 1000.0 0,0\n"
				   "4 null ->  666 0:0 0 1000.0 1,3\n"
				   "7 p ->  600 0:0 0 1000.0 0,0\n"
				   "1 e ->  644 0:0 0 1000.0 0,0\n$\n"
				   "6 old/ ->  755 0:0 0 1000.0 0,0\n";
	uint8_t *h;

	start();
	tar_dir(&t, "d/");
	tar_file(&t, "d/f", "hello");
	tar_link(&t, '1', "d/h", "d/f");
	tar_link(&t, '2', "l", "../x");
	h = tar_head(&t, '3', "null", NULL, 0666, 0);
	memcpy(h + 329, "0000001\0" "0000003", 16);
	tar_seal(h);
	(void)tar_head(&t, '6', "p", NULL, 0600, 0);
	tar_file(&t, "e", "");
	(void)tar_head(&t, '\0', "old/", NULL, 0755, 0);
	tar_close(&t);
	CHECK_EQ(run(t.len, NULL), 0);
	CHECK_STR(seen, want);
	for (size_t piece = 1; piece < 1200; piece += 37) {
		CHECK_EQ(run(piece, NULL), 0);
		CHECK(strlen(seen) == sizeof(want) - 1);
	}
}

TEST(pax)
{
	start();
	tar_pax(&t, "15 path=a/long\n13 uid=70000\n26 mtime=1700000000.25000\n"
		    "31 SCHILY.xattr.user.k=a=c\n de\n", 15 + 13 + 26 + 31);
	tar_file(&t, "short", "x");
	tar_file(&t, "next", "");
	tar_close(&t);
	CHECK_EQ(run(t.len, NULL), 0);
	CHECK_STR(seen, "1 a/long ->  644 70000:0 1 1700000000.250000000 0,0 user.k=a=c\n de\nx$\n"
			"1 next ->  644 0:0 0 1000.0 0,0\n$\n");
	start();
	tar_pax(&t, "15 mtime=-1.25\n", 15);
	tar_file(&t, "f", "");
	tar_close(&t);
	CHECK_EQ(run(t.len, NULL), 0);
	CHECK_STR(seen, "1 f ->  644 0:0 0 -2.750000000 0,0\n$\n");
	start();
	tar_pax(&t, "10 size=2\n", 10);
	(void)tar_head(&t, '0', "f", NULL, 0644, 7);
	tar_data(&t, "xy", 2);
	tar_close(&t);
	CHECK_EQ(run(t.len, NULL), 0);
	CHECK_STR(seen, "1 f ->  644 0:0 2 1000.0 0,0\nxy$\n");
}

TEST(gnu)
{
	char name[300];
	uint8_t *h;

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	start();
	(void)tar_head(&t, 'L', "././@LongLink", NULL, 0644, sizeof(name));
	tar_data(&t, name, sizeof(name));
	h = tar_head(&t, '0', "cut", NULL, 0644, 0);
	memset(h + 124, 0, 12);
	h[124] = 0x80; /* base 256 */
	memset(h + 136, 0xff, 12); /* -1 */
	tar_seal(h);
	tar_close(&t);
	CHECK_EQ(run(t.len, NULL), 0);
	CHECK(strstr(seen, "1 nnnnnnnn") == seen && strstr(seen, " -1.0 "));
	start();
	h = tar_head(&t, '0', "name", NULL, 0644, 0);
	memcpy(h + 345, "prefix/dir", 10);
	tar_seal(h);
	tar_close(&t);
	CHECK_EQ(run(t.len, NULL), 0);
	CHECK(strstr(seen, "1 prefix/dir/name ->") == seen);
}

TEST(hostile)
{
	uint8_t *h;

	start();
	tar_file(&t, "f", "abc");
	refused("no end marker");
	t.len -= 400;
	refused("middle of an entry");
	start();
	tar_file(&t, "f", "abc");
	t.p[3] ^= 1;
	refused("checksum");
	start();
	(void)tar_head(&t, 'S', "sparse", NULL, 0644, 0);
	refused("sparse");
	start();
	tar_pax(&t, "23 GNU.sparse.size=999\n", 23);
	tar_file(&t, "f", "");
	refused("sparse");
	start();
	(void)tar_head(&t, 'M', "multi", NULL, 0644, 0);
	refused("unknown type 0x4d");
	start();
	(void)tar_head(&t, 'x', "pax", NULL, 0644, (1U << 20) + 1);
	refused("extended header of 1048577 bytes");
	start();
	tar_pax(&t, "9999 path=a\n", 12);
	tar_file(&t, "f", "");
	refused("malformed");
	start();
	tar_pax(&t, "10 path=ab\n", 11);
	tar_file(&t, "f", "");
	refused("malformed");
	start();
	tar_pax(&t, "11 path=a\0b\n", 12);
	t.p[512] = '1';
	t.p[513] = '2';
	tar_file(&t, "f", "");
	refused("NUL");
	start();
	tar_pax(&t, "11 size=-1\n", 11);
	tar_file(&t, "f", "");
	refused("size is no number");
	start();
	tar_pax(&t, "28 size=9223372036854775807\n", 28);
	tar_file(&t, "f", "");
	refused("out of range");
	start();
	tar_pax(&t, "18 uid=4294967295\n", 18);
	tar_file(&t, "f", "");
	refused("owner");
	start();
	tar_pax(&t, "12 path=abc\n", 12);
	tar_close(&t);
	refused("without its entry");
	start();
	tar_pax(&t, "12 path=abc\n", 12);
	tar_pax(&t, "12 path=abd\n", 12);
	refused("two extended headers");
	start();
	(void)tar_head(&t, '2', "l", NULL, 0777, 0);
	refused("without a target");
	start();
	(void)tar_head(&t, '0', "", NULL, 0777, 0);
	refused("without a name");
	start();
	t.len = 512;
	tar_file(&t, "f", "");
	refused("after a block of zeroes");
	start();
	h = tar_head(&t, '0', "f", NULL, 0644, 0);
	memset(h + 124, 0xff, 12);
	tar_seal(h);
	refused("size is no number");
	start();
	memset(t.p, 'a', 3000);
	t.len = 3000;
	refused("no tar archive");
}
