#ifndef SB_WIRE_TERMFILTER_H
#define SB_WIRE_TERMFILTER_H
/*
 * Filter for output of a guest that goes to the user's terminal: takes out what makes the terminal
 * act beyond drawing or answer with text that the guest chose. Streaming, bounded state, pure.
 *
 * Out: ENQ; 8-bit C1 controls, raw or as U+0080..U+009F; DCS, APC, PM, SOS and `ESC k` strings;
 * OSC except titles (0 1 2), hyperlinks (8), colours set or reset (4 10 11 12 104 110 111 112;
 * queries are out); media copy (CSI i), screen checksums (CSI * y), window operations (CSI t)
 * but for sizes and the title stack; switching UTF-8 off (ESC %) or C1 on (ESC SP).
 * Through: everything else, cursor, SGR, modes, DA, DSR, DECRQM, charset designations, and so on.
 * The terminal is taken to be in UTF-8 mode.
 */
#include "base/mem.h"

#define SB_TERMFILTER_HELD 128 /* bytes of an undecided sequence */
#define SB_TERMFILTER_SLACK (SB_TERMFILTER_HELD + 8)
/* Room for the output of @len bytes: what was held before, and a terminator for each string that
 * the guest left open (the shortest has five bytes, so twice is ample). */
#define SB_TERMFILTER_ROOM(len) (2 * (size_t)(len) + SB_TERMFILTER_SLACK)

struct sb_termfilter { /* zeroed = ready */
	uint8_t state;
	uint8_t utf8_need;   /* continuation bytes to come */
	uint8_t n_utf8;
	uint8_t utf8[4];
	uint8_t return_to;   /* state after a character inside a string */
	uint16_t n_held;
	uint32_t string_len; /* of a string that is let through */
	uint8_t held[SB_TERMFILTER_HELD];
};

/*
 * sb_termfilter_run - filter @len bytes
 * @out: at least SB_TERMFILTER_ROOM(@len) bytes; not overlapping @in
 * Return: bytes written to @out.
 */
size_t sb_termfilter_run(struct sb_termfilter *f, const uint8_t *in, size_t len, uint8_t *out);
/* No more input: drops what is undecided, ends an open string. @out: SB_TERMFILTER_SLACK bytes. */
size_t sb_termfilter_end(struct sb_termfilter *f, uint8_t *out);

#endif
