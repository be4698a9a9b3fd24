/* The terminal filter: literal input, literal output, whole and cut at every place. */
#include <stdlib.h>

#include "t.h"
#include "wire/termfilter.h"

static void through(const char *in, size_t len, const char *want, size_t want_len)
{
	uint8_t out[SB_TERMFILTER_ROOM(2048)];

	for (size_t cut = 0; cut <= len; cut++) {
		struct sb_termfilter f = { 0 };
		size_t n = sb_termfilter_run(&f, (const uint8_t *)in, cut, out);

		n += sb_termfilter_run(&f, (const uint8_t *)in + cut, len - cut, out + n);
		n += sb_termfilter_end(&f, out + n);
		if (n != want_len || memcmp(out, want, n) != 0) {
			t_fail(__FILE__, __LINE__, "cut at %zu of %zu: %zu bytes, want %zu: %.40s",
			       cut, len, n, want_len, in[0] == '\x1b' ? in + 1 : in);
			return;
		}
	}
}

#define PASS(s) through(s, sizeof(s) - 1, s, sizeof(s) - 1)
#define GIVES(s, w) through(s, sizeof(s) - 1, w, sizeof(w) - 1)

TEST(what_programs_need_passes)
{
	PASS("plain text\r\n\t\b\a");
	PASS("\x1b[1;31mred\x1b[0m");
	PASS("\x1b[38;2;1;2;3m\x1b[38:5:7m");
	PASS("\x1b[2J\x1b[H\x1b[10;20H\x1b[K");
	PASS("\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[?1000h\x1b[?1006h");
	PASS("\x1b[c\x1b[>c\x1b[6n\x1b[?6n\x1b[5n"); /* vi asks who and where */
	PASS("\x1b[?2026$p\x1b[>4;2m\x1b[>q\x1b[=1u");
	PASS("\x1b(B\x1b)0\x0e\x0f\x1b=\x1b>\x1b"
	     "7\x1b"
	     "8\x1b"
	     "D\x1b"
	     "M\x1b"
	     "c\x1b#8");
	PASS("\x1b[!p\x1b[4 q\x1b[1;24r\x1b[22;0;0t\x1b[23;0;0t\x1b[18t\x1b[14t");
	PASS("\x1b]0;a title\a");
	GIVES("\x1b]2;a title\x1b\\x", "\x1b]2;a title\ax");
	PASS("\x1b]8;;http://example.org/\alink\x1b]8;;\a");
	PASS("\x1b]11;rgb:00/00/00\a\x1b]104\a\x1b]4;1;rgb:ff/00/00\a");
	PASS("gr\xc3\xbc\xc3\x9f \xe2\x9b\x84 \xf0\x9f\x98\x80 \xe2\x94\x80");
	GIVES("\x1b[31\nm", "\n\x1b[31m"); /* executed at once, as terminals do */
}

TEST(what_is_taken_out)
{
	GIVES("a\x05"
	      "b",
	      "ab");
	GIVES("a\x1b]52;c;aGVsbG8=\ab", "ab");
	GIVES("a\x1b]52;c;?\x1b\\b", "ab");
	GIVES("a\x1b]1337;File=x:aaaa\ab", "ab");
	GIVES("a\x1b]777;notify;x\ab\x1b]9;x\ac", "abc");
	GIVES("a\x1b]10;?\ab\x1b]11;?\x1b\\c\x1b]4;1;?\ad", "abcd");
	GIVES("a\x1bP$qm\x1b\\b", "ab");
	GIVES("a\x1bP+q544e\x1b\\b", "ab");
	GIVES("a\x1b_Gi=1;AAAA\x1b\\b\x1b^x\x1b\\c\x1bXx\x1b\\d", "abcd");
	GIVES("a\x1bktitle\x1b\\b", "ab");
	GIVES("a\x1b[21tb\x1b[20tc\x1b[8;1;1td\x1b[te", "abcde");
	GIVES("a\x1b[4ib\x1b[?5ic", "abc");
	GIVES("a\x1b[1;1;1;1;1;1*yb", "ab");
	GIVES("a\x1b%@b\x1b Gc", "abc");
	GIVES("a\x1b]bad\ab\x1b]0x\ac", "abc");
}

TEST(eight_bit_controls)
{
	GIVES("a\x9b"
	      "21tb",
	      "a21tb");
	GIVES("a\x9d"
	      "52;c;x\x9c",
	      "a52;c;x");
	GIVES("a\xc2\x9b"
	      "21tb",
	      "a21tb");
	GIVES("\xe0\x82\x9b"
	      "c",
	      "\xe0"
	      "c"); /* overlong */
	GIVES("\xf0\x80\x82\x9b"
	      "c",
	      "\xf0"
	      "c");
	GIVES("\xc2\x1b[mx", "\xc2\x1b[mx");
	GIVES("\x1b]0;t\xc2\x9c\x9c\ax", "\x1b]0;t\ax");
	PASS("latin \xe4\xf6\xfc text");
}

TEST(broken_sequences)
{
	GIVES("a\x1b[12\x18"
	      "b",
	      "ab");
	GIVES("a\x1b[12\x1b[mb", "a\x1b[mb");
	GIVES("a\x1b]52;c;x\x1b[mb", "a\x1b[mb");
	GIVES("a\x1b]0;t\x1b[mb", "a\x1b]0;t\a\x1b[mb");
	GIVES("a\x1b]0;t", "a\x1b]0;t\a"); /* left open at the end */
	GIVES("a\x1b]0;\x18"
	      "b",
	      "a\x1b]0;\a"
	      "b");
	GIVES("a\x1b", "a");
	GIVES("a\x1b[1;", "a");
	GIVES("a\x1b]52;c;never ends", "a");
	GIVES("a\x1b[31\x80mb", "amb");
}

TEST(bounds)
{
	char *in = malloc(20000);
	uint8_t *out = malloc(SB_TERMFILTER_ROOM(20000));
	struct sb_termfilter f = { 0 };
	size_t n;

	REQUIRE(in && out);
	memset(in, '1', 20000);
	memcpy(in, "\x1b[", 2);
	in[19998] = 'm';
	in[19999] = 'x';
	n = sb_termfilter_run(&f, (const uint8_t *)in, 20000, out);
	CHECK_EQ(n, 1);
	CHECK_EQ(out[0], 'x');
	memcpy(in, "\x1b]0;", 4);
	in[19998] = '\a';
	f = (struct sb_termfilter){ 0 };
	n = sb_termfilter_run(&f, (const uint8_t *)in, 20000, out);
	CHECK_EQ(n, 4 + 4096 + 1 + 1); /* start, text, our terminator, x */
	CHECK_EQ(out[n - 2], '\a');
	/* the worst growth: a string that another sequence cuts short */
	for (size_t i = 0; i + 6 <= 20000; i += 6)
		memcpy(in + i, "\x1b]0;\x1b"
			       "7",
		       6);
	f = (struct sb_termfilter){ 0 };
	n = sb_termfilter_run(&f, (const uint8_t *)in, 19998, out);
	CHECK_EQ(n, 19998 / 6 * 7);
	free(in);
	free(out);
}
