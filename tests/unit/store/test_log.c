/* The files of a log: several writers, what a crash leaves, what was tampered with. */
#include "log_place.h"
#include "store/audit_heads.h"

static uint64_t records(const struct place *p)
{
	struct sb_audit_report rep;

	if (place_verify(p, &rep) < 0 || !rep.good)
		return UINT64_MAX;
	return rep.n;
}

TEST(writes_and_continues)
{
	struct place p;
	struct sb_audit_head h = { 0 };

	place_make(&p);
	for (unsigned int i = 0; i < 4; i++) {
		sb_autolog struct sb_audit_log *l = NULL;

		REQUIRE(sb_audit_log_open(p.dir, p.sec, &l, NULL) == 0);
		CHECK(!sb_audit_log_dirty(l));
		CHECK_EQ(place_write(l, "a", 3, NULL), 0);
		CHECK(sb_audit_log_dirty(l) && sb_audit_log_unsigned(l));
		CHECK_EQ(sb_audit_log_sign(l, &h, NULL), 0);
		CHECK(!sb_audit_log_dirty(l) && !sb_audit_log_unsigned(l));
		CHECK_EQ(h.n, 3 * (i + 1));
	}
	CHECK_EQ(records(&p), 12);
	place_done(&p);
}

/* Each finds what the other has written, whoever's head is the last. */
TEST(two_writers)
{
	struct place p;
	struct sb_audit_log *l[2] = { NULL, NULL };
	struct sb_audit_head h = { 0 };

	place_make(&p);
	for (int i = 0; i < 2; i++)
		REQUIRE(sb_audit_log_open(p.dir, p.sec, &l[i], NULL) == 0);
	for (unsigned int i = 0; i < 50; i++)
		CHECK_EQ(place_write(l[i % 3 == 0], i % 3 == 0 ? "b" : "a", 1 + i % 5, NULL), 0);
	CHECK_EQ(sb_audit_log_sign(l[1], &h, NULL), 0);
	CHECK_EQ(sb_audit_log_sign(l[0], &h, NULL), 0);
	CHECK_EQ(sb_audit_log_sign(l[1], NULL, NULL), 0);
	CHECK_EQ(records(&p), 150);
	for (int i = 0; i < 2; i++)
		l[i] = sb_audit_log_free(l[i]);
	place_done(&p);
}

static void append(const struct place *p, const char *name, const char *text)
{
	sb_autofd int fd = openat(p->dir, name, O_WRONLY | O_APPEND | O_CLOEXEC);

	CHECK(fd >= 0 && sb_fd_write_all(fd, text, strlen(text)) == 0);
}

#define FIRST "log-00000000000000000000"

/* A record that was not written whole when its writer died. */
TEST(torn_line)
{
	struct place p;
	sb_autolog struct sb_audit_log *l = NULL;
	sb_autolog struct sb_audit_log *other = NULL;

	place_make(&p);
	REQUIRE(sb_audit_log_open(p.dir, p.sec, &l, NULL) == 0);
	CHECK_EQ(place_write(l, "a", 3, NULL), 0);
	CHECK_EQ(sb_audit_log_sign(l, NULL, NULL), 0);
	append(&p, FIRST, "{\"v\":1,\"seq\":3,\"time");
	CHECK_EQ(records(&p), 3);
	CHECK_EQ(place_write(l, "a", 2, NULL), 0); /* the lock was free: nobody was writing it */
	CHECK_EQ(records(&p), 5);
	append(&p, FIRST, "{");
	REQUIRE(sb_audit_log_open(p.dir, p.sec, &other, NULL) == 0);
	CHECK_EQ(place_write(other, "b", 1, NULL), 0);
	CHECK_EQ(records(&p), 6);
	l = sb_audit_log_free(l);
	other = sb_audit_log_free(other);
	place_done(&p);
}

/* Nothing is continued that is not what was signed. */
static void refuses_to_continue(const struct place *p, const char *what)
{
	sb_autolog struct sb_audit_log *l = NULL;
	struct sb_err err = { 0 };
	int r = sb_audit_log_open(p->dir, p->sec, &l, &err);

	if (r != -EBADMSG || !strstr(err.text, "sendbox audit verify"))
		t_fail(__FILE__, __LINE__, "%s: %d %s", what, r, err.text);
}

TEST(cut_or_gone)
{
	struct place p;
	struct sb_audit_report rep;
	struct stat st;
	char path[128];

	place_make(&p);
	{
		sb_autolog struct sb_audit_log *l = NULL;

		REQUIRE(sb_audit_log_open(p.dir, p.sec, &l, NULL) == 0);
		CHECK_EQ(place_write(l, "a", 5, NULL), 0);
		CHECK_EQ(sb_audit_log_sign(l, NULL, NULL), 0);
		(void)snprintf(path, sizeof(path), "%s/" FIRST, p.path);
		REQUIRE(stat(path, &st) == 0 && truncate(path, st.st_size - 100) == 0);
		CHECK_EQ(place_write(l, "a", 1, NULL), -EBADMSG); /* while it is written to */
	}
	refuses_to_continue(&p, "cut");
	REQUIRE(place_verify(&p, &rep) == 0);
	CHECK(!rep.good);
	CHECK_EQ(rep.bad, 4);
	REQUIRE(unlink(path) == 0);
	refuses_to_continue(&p, "gone");
	place_done(&p);
}

TEST(another_key)
{
	struct place p;
	uint8_t pub[32];

	place_make(&p);
	{
		sb_autolog struct sb_audit_log *l = NULL;

		REQUIRE(sb_audit_log_open(p.dir, p.sec, &l, NULL) == 0);
		CHECK_EQ(place_write(l, "a", 5, NULL), 0);
		CHECK_EQ(sb_audit_log_sign(l, NULL, NULL), 0);
	}
	sb_sign_keypair(pub, p.sec);
	refuses_to_continue(&p, "another key");
	place_done(&p);
}

/* Every byte of a small log, changed in a few ways: found each time, and the record named. */
TEST(every_byte)
{
	static const uint8_t flips[] = { 0x01, 0x80 };
	struct place p;
	sb_autofree char *text = NULL;
	size_t len = 0;
	size_t line = 0;
	sb_autofd int fd = -1;

	place_make(&p);
	{
		sb_autolog struct sb_audit_log *l = NULL;

		REQUIRE(sb_audit_log_open(p.dir, p.sec, &l, NULL) == 0);
		CHECK_EQ(place_write(l, "abc", 3, NULL), 0);
		CHECK_EQ(sb_audit_log_sign(l, NULL, NULL), 0);
	}
	REQUIRE(sb_fd_read_file(p.dir, FIRST, 1U << 20, &text, &len) == 0);
	fd = openat(p.dir, FIRST, O_WRONLY | O_CLOEXEC);
	REQUIRE(fd >= 0);
	for (size_t i = 0; i < len; i++) {
		for (size_t k = 0; k < sizeof(flips); k++) {
			struct sb_audit_report rep = { 0 };
			char c = (char)(text[i] ^ (char)flips[k]);
			size_t want = line > 0 ? line - 1 : 0; /* the first line is before record 0 */

			REQUIRE(pwrite(fd, &c, 1, (off_t)i) == 1);
			REQUIRE(place_verify(&p, &rep) == 0);
			if (rep.good || rep.bad != want)
				t_fail(__FILE__, __LINE__, "byte %zu (line %zu) ^ %u: %s, record %llu: %s", i,
				       line, flips[k], rep.good ? "good" : "bad",
				       (unsigned long long)rep.bad, rep.text);
			REQUIRE(pwrite(fd, text + i, 1, (off_t)i) == 1);
		}
		line += text[i] == '\n';
	}
	CHECK_EQ(records(&p), 3);
	place_done(&p);
}

/* Lines left out, doubled, exchanged. */
TEST(lines)
{
	struct place p;
	sb_autofree char *text = NULL;
	size_t len = 0;
	char *at[8];
	size_t n = 0;

	place_make(&p);
	{
		sb_autolog struct sb_audit_log *l = NULL;

		REQUIRE(sb_audit_log_open(p.dir, p.sec, &l, NULL) == 0);
		CHECK_EQ(place_write(l, "abc", 5, NULL), 0);
		CHECK_EQ(sb_audit_log_sign(l, NULL, NULL), 0);
	}
	REQUIRE(sb_fd_read_file(p.dir, FIRST, 1U << 20, &text, &len) == 0);
	for (char *q = text; q < text + len; q = strchr(q, '\n') + 1)
		at[n++] = q;
	at[n] = text + len;
	REQUIRE(n == 6);
	for (size_t gone = 1; gone <= 5; gone++) {
		for (int how = 0; how < 3; how++) {
			sb_autobuf struct sb_buf b;
			struct sb_audit_report rep = { 0 };

			sb_buf_init(&b, 1U << 20);
			sb_buf_add(&b, text, (size_t)(at[gone] - text));
			if (how == 1) /* twice */
				for (int k = 0; k < 2; k++)
					sb_buf_add(&b, at[gone], (size_t)(at[gone + 1] - at[gone]));
			if (how == 2 && gone < 5) { /* exchanged with the next */
				sb_buf_add(&b, at[gone + 1], (size_t)(at[gone + 2] - at[gone + 1]));
				sb_buf_add(&b, at[gone], (size_t)(at[gone + 1] - at[gone]));
				sb_buf_add(&b, at[gone + 2], (size_t)(at[6] - at[gone + 2]));
			} else {
				sb_buf_add(&b, at[gone + 1], (size_t)(at[6] - at[gone + 1]));
			}
			REQUIRE(sb_fd_write_file(p.dir, FIRST, b.data, b.len, 0600) == 0);
			REQUIRE(place_verify(&p, &rep) == 0);
			CHECK(!rep.good);
			/* doubled: what stands where the next should is the first wrong one */
			CHECK_EQ(rep.bad, how == 1 ? gone : gone - 1);
		}
	}
	place_done(&p);
}

/* Segments: a log that goes on into the next file, read from anywhere. */
TEST(segments)
{
	struct place p;
	sb_autolog struct sb_audit_log *l = NULL;
	sb_autolog struct sb_audit_log *other = NULL;
	sb_autoreader struct sb_audit_reader *r = NULL;
	char big[2000];
	uint64_t *segs = NULL;
	size_t n = 0;
	struct sb_audit_record rec;

	memset(big, 'x', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	place_make(&p);
	REQUIRE(sb_audit_log_open(p.dir, p.sec, &l, NULL) == 0);
	REQUIRE(sb_audit_log_open(p.dir, p.sec, &other, NULL) == 0);
	for (int i = 0; i < 50; i++)
		CHECK_EQ(place_write(l, big, 400, NULL), 0);
	CHECK_EQ(place_write(other, "b", 1, NULL), 0); /* it finds its way through both */
	CHECK_EQ(place_write(l, "a", 1, NULL), 0);
	CHECK_EQ(sb_audit_log_sign(l, NULL, NULL), 0);
	REQUIRE(sb_audit_log_list(p.dir, &segs, &n) == 0);
	CHECK_EQ(n, 3);
	free(segs);
	CHECK_EQ(records(&p), 20002);
	REQUIRE(sb_audit_reader_new(p.dir, &r, NULL) == 0);
	for (uint64_t want = 0; want < 20002; want += 1999) {
		uint64_t seen = 0;

		REQUIRE(sb_audit_reader_seek(r, want, NULL) == 0);
		do {
			REQUIRE(sb_audit_reader_next(r, &rec, NULL, NULL) == 0);
			seen++;
		} while (rec.seq < want);
		CHECK_EQ(rec.seq, want);
		CHECK(seen < 200);
	}
	other = sb_audit_log_free(other);
	REQUIRE(sb_audit_log_open(p.dir, p.sec, &other, NULL) == 0);
	CHECK_EQ(place_write(other, "b", 1, NULL), 0);
	CHECK_EQ(unlinkat(p.dir, "tail", 0), 0);
	other = sb_audit_log_free(other);
	REQUIRE(sb_audit_log_open(p.dir, p.sec, &other, NULL) == 0); /* without the shortcut */
	CHECK_EQ(place_write(other, "b", 1, NULL), 0);
	CHECK_EQ(records(&p), 20004);
	other = sb_audit_log_free(other);
	l = sb_audit_log_free(l);
	place_done(&p);
}

/* A segment that is gone: not good, and not continued, unless that is known. */
TEST(segments_gone)
{
	struct place p;
	struct sb_audit_report rep;
	struct sb_audit_head h;
	struct sb_audit_head early[2] = { 0 };
	char big[2000];
	uint64_t *segs = NULL;
	char name[3][SB_AUDIT_FILE_NAME_ROOM];
	size_t n = 0;

	memset(big, 'x', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	place_make(&p);
	{
		sb_autolog struct sb_audit_log *l = NULL;

		REQUIRE(sb_audit_log_open(p.dir, p.sec, &l, NULL) == 0);
		for (int i = 0; i < 50; i++)
			CHECK_EQ(place_write(l, big, 400, NULL), 0);
		CHECK_EQ(sb_audit_log_sign(l, &h, NULL), 0);
	}
	REQUIRE(sb_audit_log_list(p.dir, &segs, &n) == 0 && n == 3);
	for (size_t i = 0; i < 3; i++)
		sb_audit_log_name(segs[i], name[i]);
	early[0].n = segs[1];
	early[1] = h;
	REQUIRE(renameat(p.dir, name[1], p.dir, "aside") == 0);
	refuses_to_continue(&p, "the second segment is gone");
	REQUIRE(place_verify(&p, &rep) == 0);
	CHECK(!rep.good && rep.bad == segs[1]);
	REQUIRE(renameat(p.dir, "aside", p.dir, name[1]) == 0);
	CHECK_EQ(records(&p), 20000); /* control */
	REQUIRE(unlinkat(p.dir, name[0], 0) == 0);
	refuses_to_continue(&p, "the first segment is gone");
	REQUIRE(place_verify(&p, &rep) == 0);
	CHECK(!rep.good && rep.bad == 0 && strstr(rep.text, "missing"));
	REQUIRE(sb_audit_verify(p.dir, &h, 1, segs[1], &rep, NULL) == 0);
	CHECK(rep.good && rep.first == segs[1] && rep.n == 20000);
	/* a head of just what is gone, and one that is none */
	REQUIRE(sb_audit_verify(p.dir, early, 2, segs[1], &rep, NULL) == 0);
	CHECK(!rep.good && rep.bad == segs[1] - 1);
	REQUIRE(sb_audit_verify(p.dir, &h, 1, segs[1] - 1, &rep, NULL) == 0);
	CHECK(!rep.good && rep.bad == segs[1] - 1);
	free(segs);
	place_done(&p);
}

/* "heads" stays short, whatever it was, and what is left of it is true. */
TEST(heads_thinned)
{
	struct place p;
	sb_autoheads struct sb_audit_heads got = { 0 };
	sb_autoheads struct sb_audit_heads all = { 0 };
	char text[SB_AUDIT_HEAD_MAX];
	struct sb_audit_head h = { 0 };
	struct stat st;
	sb_autofd int fd = -1;
	size_t len = 0;

	place_make(&p);
	fd = openat(p.dir, "heads", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	REQUIRE(fd >= 0);
	CHECK_EQ(sb_fd_write_all(fd, "no head\n", 8), 0);
	for (h.n = 1; h.n <= 6000; h.n++) { /* from before it was thinned */
		h.root[0] = (uint8_t)h.n;
		len = sb_audit_head_sign(&h, p.pub, p.sec, text);
		REQUIRE(sb_fd_write_all(fd, text, len) == 0);
		if (h.n == 4000)
			CHECK_EQ(sb_fd_write_all(fd, "sendbox-audit-\n", 15), 0);
	}
	CHECK_EQ(sb_audit_heads_read(&all, p.dir, "heads", false, p.pub), 0);
	CHECK_EQ(all.n, 6000);
	CHECK_EQ(sb_audit_heads_read(&got, p.dir, "heads", true, p.pub), 0);
	CHECK(got.n > SB_AUDIT_HEADS_KEEP / 2 && got.n <= SB_AUDIT_HEADS_KEEP);
	CHECK(got.list[0].n == 1 && got.list[got.n - 1].n == 6000);
	for (; h.n <= 8000; h.n++) {
		h.root[0] = (uint8_t)h.n;
		len = sb_audit_head_sign(&h, p.pub, p.sec, text);
		REQUIRE(sb_audit_heads_add(p.dir, text, len) == 0);
		REQUIRE(fstatat(p.dir, "heads", &st, 0) == 0 && st.st_size <= SB_AUDIT_HEADS_BYTES);
	}
	sb_audit_heads_done(&got);
	CHECK_EQ(sb_audit_heads_read(&got, p.dir, "heads", false, p.pub), 0);
	CHECK(got.n > SB_AUDIT_HEADS_KEEP / 2 && got.n <= 2 * SB_AUDIT_HEADS_KEEP);
	CHECK(got.list[0].n == 1 && got.list[got.n - 1].n == 8000);
	for (size_t i = 0; i < got.n; i++)
		CHECK(got.list[i].root[0] == (uint8_t)got.list[i].n && (i == 0 || got.list[i].n > got.list[i - 1].n));
	place_done(&p);
}

TEST(heads)
{
	const struct sb_audit_head h = { .n = 1234, .root = { 1, 2, 3, [31] = 9 } };
	struct sb_audit_head got = { 0 };
	uint8_t pub[32];
	uint8_t sec[64];
	uint8_t again[32];
	char text[SB_AUDIT_HEAD_MAX];
	char vkey[SB_AUDIT_VKEY_ROOM];
	size_t len;

	REQUIRE(sb_crypto_init() == 0);
	sb_sign_keypair(pub, sec);
	len = sb_audit_head_sign(&h, pub, sec, text);
	REQUIRE(sb_audit_head_open(text, len, pub, &got, NULL) == 0);
	CHECK_EQ(got.n, 1234);
	CHECK_MEM(got.root, h.root, 32);
	for (size_t i = 0; i < len; i++) {
		text[i] ^= 1;
		if (sb_audit_head_open(text, len, pub, &got, NULL) == 0)
			t_fail(__FILE__, __LINE__, "byte %zu of %s", i, text);
		text[i] ^= 1;
		CHECK(sb_audit_head_open(text, i, pub, &got, NULL) < 0);
	}
	sb_audit_vkey(pub, vkey);
	CHECK_EQ(sb_audit_vkey_parse(vkey, again), 0);
	CHECK_MEM(again, pub, 32);
	vkey[20] ^= 1;
	CHECK_EQ(sb_audit_vkey_parse(vkey, again), -EINVAL);
}

/* A log of format 1 that was written when the format was new: it stays readable. */
TEST(golden)
{
	sb_autofd int dir = open(GOLDEN "/audit-1", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sb_autoreader struct sb_audit_reader *r = NULL;
	sb_autofree char *text = NULL;
	struct sb_audit_report rep = { 0 };
	struct sb_audit_record rec;
	struct sb_audit_head h;
	size_t len = 0;
	uint8_t pub[32];
	char subject[64];

	REQUIRE(dir >= 0 && sb_crypto_init() == 0);
	REQUIRE(sb_fd_read_file(dir, "key", 256, &text, &len) == 0);
	text[strcspn(text, "\n")] = '\0';
	REQUIRE(sb_audit_vkey_parse(text, pub) == 0);
	REQUIRE(sb_audit_head_read(dir, pub, &h) == 0);
	REQUIRE(sb_audit_verify(dir, &h, 1, 0, &rep, NULL) == 0);
	CHECK(rep.good);
	CHECK_EQ(rep.n, 3);
	REQUIRE(sb_audit_reader_new(dir, &r, NULL) == 0);
	for (int i = 0; i < 3; i++)
		REQUIRE(sb_audit_reader_next(r, &rec, NULL, NULL) == 0);
	CHECK_EQ(rec.kind, SB_AUDIT_KEY);
	CHECK_EQ(rec.verdict, SB_AUDIT_ERROR);
	(void)sb_audit_text(&rec.subject, subject, sizeof(subject));
	CHECK_STR(subject, "\\xff\xe2\x82\xac");
}
