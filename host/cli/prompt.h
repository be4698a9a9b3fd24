#ifndef SB_HOST_CLI_PROMPT_H
#define SB_HOST_CLI_PROMPT_H
/*
 * A question at the user's terminal itself. The caller has made sure that nobody else writes there or
 * reads from it: the session's output and input are held back. Whatever was typed before the question,
 * in its first moments, or after the answer counts for nothing; what a paste or a key's escape sequence
 * brings does not either.
 */
#include "core/approval.h"
#include "os/loop.h"
#include "wire/ipc.h"

struct prompt;
struct prompt_conf {
	struct sb_loop *loop;
	/* The prompt is over; it is freed by the caller. @pattern: or NULL; borrowed */
	void (*answer)(void *arg, uint64_t number, enum sb_appr_answer answer, const char *pattern);
	void (*lost)(void *arg, uint64_t number); /* the terminal is gone */
	void *arg;
};
/* Return: 0; -ENOTTY: no terminal of this job in the foreground; -errno. */
SB_MUST_CHECK int prompt_show(const struct prompt_conf *c, const struct sb_ipc_appr_question *q,
			      struct prompt **ret);
/* Take it away and put the terminal's modes back. @why: a line for the user, or NULL */
struct prompt *prompt_free(struct prompt *p, const char *why);
/* Without a loop: ask and wait. Return: 0; -ENOTTY; -ETIMEDOUT. @pattern: SB_APPR_PATTERN_MAX + 1 */
SB_MUST_CHECK int prompt_wait(const struct sb_ipc_appr_question *q, enum sb_appr_answer *ret,
			      char *pattern);

/* For a question that is told in lines of the caller's: make what follows readable, whatever a program
 * did to the terminal. */
void prompt_clean(void);
/* Without a loop: a line that begins with y, typed after the question was seen. false: any other answer,
 * none within @for_ms, no terminal. */
bool prompt_yes(const char *question, uint64_t for_ms);

/* prompt_line.c: one line of typed bytes */
struct prompt_line {
	char text[SB_APPR_PATTERN_MAX + 40];
	size_t len;
	bool too_long;
	enum { LINE_PLAIN = 0, LINE_ESC, LINE_CSI, LINE_SS3 } state;
	bool pasting;
	char csi[16];
	size_t n_csi;
};
enum prompt_event { PROMPT_NOTHING = 0, PROMPT_ECHO, PROMPT_ERASE, PROMPT_LINE, PROMPT_CANCEL };
/* One byte. ECHO: it was added; LINE: text is whole, NUL-terminated. */
enum prompt_event prompt_line_byte(struct prompt_line *l, uint8_t c);
void prompt_line_clear(struct prompt_line *l); /* the text; a paste under way goes on being one */
/* What the line says. Return: 0; -EINVAL. @pattern: into the line, or NULL */
SB_MUST_CHECK int prompt_line_answer(struct prompt_line *l, enum sb_appr_answer *ret,
				     const char **pattern);

#endif
