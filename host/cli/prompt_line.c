/* The line discipline of the prompt. */
#include <errno.h>
#include <string.h>

#include "prompt.h"

static void end_csi(struct prompt_line *l, uint8_t final)
{
	l->state = LINE_PLAIN;
	l->csi[l->n_csi] = '\0';
	if (final != '~')
		return;
	if (strcmp(l->csi, "200") == 0)
		l->pasting = true;
	else if (strcmp(l->csi, "201") == 0)
		l->pasting = false;
}

/* Return: whether the byte belongs to an escape sequence. */
static bool escape(struct prompt_line *l, uint8_t c)
{
	switch (l->state) {
	case LINE_PLAIN:
		if (c != 0x1b)
			return false;
		l->state = LINE_ESC;
		return true;
	case LINE_ESC:
		l->n_csi = 0;
		l->state = c == '[' ? LINE_CSI : c == 'O' ? LINE_SS3 : c == 0x1b ? LINE_ESC : LINE_PLAIN;
		return true;
	case LINE_CSI:
		if (c >= 0x40 && c <= 0x7e)
			end_csi(l, c);
		else if (l->n_csi < sizeof(l->csi) - 1)
			l->csi[l->n_csi++] = (char)c;
		return true;
	case LINE_SS3:
	default:
		l->state = LINE_PLAIN;
		return true;
	}
}

void prompt_line_clear(struct prompt_line *l)
{
	l->len = 0;
	l->too_long = false;
}

enum prompt_event prompt_line_byte(struct prompt_line *l, uint8_t c)
{
	if (escape(l, c) || l->pasting)
		return PROMPT_NOTHING;
	switch (c) {
	case '\r':
	case '\n':
		l->text[l->too_long ? 0 : l->len] = '\0';
		return PROMPT_LINE;
	case 3: /* ctrl-c, ctrl-d, ctrl-\ */
	case 4:
	case 0x1c:
		return PROMPT_CANCEL;
	case 8:
	case 0x7f:
		if (l->len == 0)
			return PROMPT_NOTHING;
		l->len--;
		return PROMPT_ERASE;
	default:
		break;
	}
	if (c < 0x20 || c > 0x7e)
		return PROMPT_NOTHING;
	if (l->len == sizeof(l->text) - 1) {
		l->too_long = true;
		return PROMPT_NOTHING;
	}
	l->text[l->len++] = (char)c;
	return PROMPT_ECHO;
}

int prompt_line_answer(struct prompt_line *l, enum sb_appr_answer *ret, const char **pattern)
{
	static const struct {
		const char *word;
		enum sb_appr_answer answer;
	} words[] = { { "", SB_APPR_NO },	     { "n", SB_APPR_NO },	{ "no", SB_APPR_NO },
		      { "deny", SB_APPR_NO },	     { "never", SB_APPR_NEVER }, { "y", SB_APPR_ONCE },
		      { "yes", SB_APPR_ONCE },	     { "once", SB_APPR_ONCE },
		      { "session", SB_APPR_SESSION }, { "forever", SB_APPR_FOREVER } };
	static const char p[] = "pattern ";
	static const char f[] = "pattern-forever ";

	*pattern = NULL;
	if (l->too_long)
		return -EINVAL;
	for (size_t i = 0; i < SB_ARRAY_LEN(words); i++) {
		if (strcmp(l->text, words[i].word) == 0) {
			*ret = words[i].answer;
			return 0;
		}
	}
	if (strncmp(l->text, p, sizeof(p) - 1) == 0) {
		*ret = SB_APPR_PATTERN;
		*pattern = l->text + sizeof(p) - 1;
	} else if (strncmp(l->text, f, sizeof(f) - 1) == 0) {
		*ret = SB_APPR_PATTERN_FOREVER;
		*pattern = l->text + sizeof(f) - 1;
	} else {
		return -EINVAL;
	}
	return strlen(*pattern) <= SB_APPR_PATTERN_MAX ? 0 : -EINVAL;
}
