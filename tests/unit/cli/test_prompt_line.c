/* The line discipline of the prompt, byte by byte. */
#include "prompt.h"

#include "t.h"

/* Feed @bytes. Return: the last event. */
static enum prompt_event feed(struct prompt_line *l, const char *bytes)
{
	enum prompt_event e = PROMPT_NOTHING;

	for (; *bytes; bytes++)
		e = prompt_line_byte(l, (uint8_t)*bytes);
	return e;
}

static const char *line(const char *bytes)
{
	static struct prompt_line l;

	l = (struct prompt_line){ 0 };
	return feed(&l, bytes) == PROMPT_LINE ? l.text : "(no line)";
}

TEST(what_counts)
{
	CHECK_STR(line("once\n"), "once");
	CHECK_STR(line("once\r"), "once");
	CHECK_STR(line("onx\x7f" "ce\n"), "once");
	CHECK_STR(line("\b\b\bno\n"), "no");
	CHECK_STR(line("\n"), "");
	CHECK_STR(line("\xc3\xa4n\x01o\n"), "no");
}

TEST(keys_are_no_text)
{
	CHECK_STR(line("\033[Aon\033[1;5Dce\033OP\n"), "once");
	CHECK_STR(line("\033[<0;12;7Mno\n"), "no"); /* a mouse */
	CHECK_STR(line("\033yno\n"), "no");         /* alt-y */
	CHECK_STR(line("\033\033[Cno\n"), "no");
}

TEST(pastes_are_nothing)
{
	struct prompt_line l = { 0 };

	CHECK_EQ(feed(&l, "\033[200~once\r"), PROMPT_NOTHING);
	CHECK_EQ(l.len, 0);
	prompt_line_clear(&l); /* still a paste */
	CHECK_EQ(feed(&l, "yes\n\033[201~"), PROMPT_NOTHING);
	CHECK_EQ(feed(&l, "no\n"), PROMPT_LINE);
	CHECK_STR(l.text, "no");
}

TEST(cancel)
{
	struct prompt_line l = { 0 };

	CHECK_EQ(feed(&l, "onc\x03"), PROMPT_CANCEL);
	CHECK_EQ(feed(&l, "\x04"), PROMPT_CANCEL);
}

TEST(answers)
{
	static const struct {
		const char *text;
		int answer; /* -1 = none */
		const char *pattern;
	} t[] = { { "", SB_APPR_NO, NULL },	       { "no", SB_APPR_NO, NULL },
		  { "once", SB_APPR_ONCE, NULL },      { "y", SB_APPR_ONCE, NULL },
		  { "never", SB_APPR_NEVER, NULL },    { "session", SB_APPR_SESSION, NULL },
		  { "forever", SB_APPR_FOREVER, NULL }, { "pattern a:*", SB_APPR_PATTERN, "a:*" },
		  { "pattern-forever a", SB_APPR_PATTERN_FOREVER, "a" }, { "yeah", -1, NULL },
		  { "Once", -1, NULL },		       { " once", -1, NULL },
		  { "pattern", -1, NULL } };

	for (size_t i = 0; i < SB_ARRAY_LEN(t); i++) {
		struct prompt_line l = { 0 };
		enum sb_appr_answer a = SB_APPR_NO;
		const char *p;
		int r;

		(void)feed(&l, t[i].text);
		(void)feed(&l, "\n");
		r = prompt_line_answer(&l, &a, &p);
		CHECK_EQ(r, t[i].answer < 0 ? -EINVAL : 0);
		if (r == 0) {
			CHECK_EQ(a, t[i].answer);
			CHECK((p == NULL) == (t[i].pattern == NULL));
			if (p)
				CHECK_STR(p, t[i].pattern);
		}
	}
}

TEST(too_long)
{
	struct prompt_line l = { 0 };
	enum sb_appr_answer a;
	const char *p;

	for (int i = 0; i < 5000; i++)
		(void)prompt_line_byte(&l, 'y');
	CHECK_EQ(prompt_line_byte(&l, '\n'), PROMPT_LINE);
	CHECK_EQ(prompt_line_answer(&l, &a, &p), -EINVAL);
}
