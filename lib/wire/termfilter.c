/*
 * Theory of operation. The parser follows the states of a VT500 series terminal. A sequence is
 * held back until its last byte decides; strings that pass (titles, hyperlinks) are let through
 * as they come, bounded, and closed by our own terminator when the guest leaves them open.
 * A character of UTF-8 is held until it is complete, because C1 controls hide in U+0080..U+009F
 * and in overlong forms. A byte of 0x80..0x9f is never let through outside a valid character, so
 * nothing that we take out can join its neighbours into a control.
 */
#include "wire/termfilter.h"

#include <string.h>

enum state {
	GROUND = 0,
	ESCAPE,     /* ESC and intermediates, held */
	CSI,        /* held */
	CSI_DROP,   /* too long to hold: out, up to its final byte */
	OSC,        /* held until its number (or the whole of a short one) decides */
	STRING,     /* let through */
	STRING_ESC, /* ESC seen inside a string that passes */
	DROP,       /* a string that is taken out */
	DROP_ESC,
	UTF8,       /* inside a character; return_to says where */
};

#define STRING_MAX 4096 /* bytes of a title or a link */

#define C_ENQ 0x05
#define C_BEL 0x07
#define C_CAN 0x18
#define C_SUB 0x1a
#define C_ESC 0x1b

struct run {
	struct sb_termfilter *f;
	uint8_t *out;
	size_t n;
};

static void emit(struct run *r, uint8_t b)
{
	r->out[r->n++] = b;
}

static void emit_held(struct run *r)
{
	memcpy(r->out + r->n, r->f->held, r->f->n_held);
	r->n += r->f->n_held;
	r->f->n_held = 0;
}

static void begin_escape(struct sb_termfilter *f)
{
	f->held[0] = C_ESC;
	f->n_held = 1;
	f->state = ESCAPE;
}

static bool hold(struct sb_termfilter *f, uint8_t b)
{
	if (f->n_held == SB_TERMFILTER_HELD)
		return false;
	f->held[f->n_held++] = b;
	return true;
}

/* --- decisions --- */

/* First number of the held CSI; -1 = none. */
static int first_number(const struct sb_termfilter *f)
{
	int v = -1;

	for (uint16_t i = 2; i < f->n_held && f->held[i] >= '0' && f->held[i] <= '9'; i++) {
		v = (v < 0 ? 0 : v) * 10 + (f->held[i] - '0');
		if (v > 100000)
			return 100000;
	}
	return v;
}

/* The held CSI is complete, its last byte is the final one. */
static bool csi_allowed(const struct sb_termfilter *f)
{
	uint8_t final = f->held[f->n_held - 1];
	uint8_t before = f->held[f->n_held - 2]; /* '[' at least */

	switch (final) {
	case 'i': /* media copy: prints, or sends the screen */
		return false;
	case 'y': /* checksum of a rectangle reads the screen */
		return before != '*';
	case 't': /* window operations */
		switch (first_number(f)) {
		case 14:
		case 15:
		case 16:
		case 18:
		case 19:
		case 22:
		case 23:
			return true;
		default:
			return before < '0'; /* an intermediate: margins and attributes */
		}
	default:
		return true;
	}
}

enum osc_kind {
	OSC_DROP = 0,
	OSC_STRING, /* let through as it comes */
	OSC_HOLD,   /* short: decided when complete */
};

static enum osc_kind osc_kind(uint32_t number)
{
	switch (number) {
	case 0:
	case 1:
	case 2:
	case 8:
		return OSC_STRING;
	case 4:
	case 10:
	case 11:
	case 12:
	case 104:
	case 110:
	case 111:
	case 112:
		return OSC_HOLD;
	default:
		return OSC_DROP;
	}
}

/* --- states --- */

static void in_ground(struct run *r, uint8_t b)
{
	if (b == C_ESC)
		begin_escape(r->f);
	else if (b != C_ENQ && (b < 0x80 || b > 0x9f))
		emit(r, b);
}

static void in_escape(struct run *r, uint8_t b)
{
	struct sb_termfilter *f = r->f;
	uint8_t inter = f->n_held > 1 ? f->held[1] : 0;

	if (b >= 0x20 && b <= 0x2f) {
		if (!hold(f, b)) {
			f->n_held = 0;
			f->state = GROUND;
		}
		return;
	}
	f->state = GROUND;
	if (b < 0x20) { /* executed at once, the sequence goes on */
		f->state = ESCAPE;
		if (b != C_ENQ)
			emit(r, b);
		return;
	}
	if (inter == 0) {
		switch (b) {
		case '[':
			f->state = CSI;
			(void)hold(f, b);
			return;
		case ']':
			f->state = OSC;
			(void)hold(f, b);
			return;
		case 'P':
		case 'X':
		case '^':
		case '_':
		case 'k':
			f->n_held = 0;
			f->state = DROP;
			return;
		case '\\':
			f->n_held = 0;
			return;
		default:
			break;
		}
	}
	/* "ESC %" would leave UTF-8, "ESC SP" would turn on 8-bit controls */
	if (b > 0x7e || inter == '%' || inter == ' ' || !hold(f, b)) {
		f->n_held = 0;
		return;
	}
	emit_held(r);
}

static void in_csi(struct run *r, uint8_t b)
{
	struct sb_termfilter *f = r->f;

	if (b < 0x20) {
		if (b != C_ENQ)
			emit(r, b);
		return;
	}
	if (b >= 0x7f) { /* DEL is ignored inside a sequence; 8-bit breaks it */
		if (b > 0x7f) {
			f->n_held = 0;
			f->state = GROUND;
		}
		return;
	}
	if (!hold(f, b)) {
		f->n_held = 0;
		f->state = b >= 0x40 ? GROUND : CSI_DROP;
		return;
	}
	if (b < 0x40)
		return;
	f->state = GROUND;
	if (csi_allowed(f))
		emit_held(r);
	f->n_held = 0;
}

static void osc_number_done(struct run *r)
{
	struct sb_termfilter *f = r->f;
	uint32_t number = 0;

	if (f->n_held <= 2 || f->n_held > 6)
		number = UINT32_MAX;
	for (uint16_t i = 2; i < f->n_held && number != UINT32_MAX; i++)
		number = number * 10 + (uint32_t)(f->held[i] - '0');
	switch (osc_kind(number)) {
	case OSC_STRING:
		emit_held(r);
		f->string_len = 0;
		f->state = STRING;
		break;
	case OSC_HOLD:
		break;
	case OSC_DROP:
	default:
		f->n_held = 0;
		f->state = DROP;
		break;
	}
}

static bool all_digits(const struct sb_termfilter *f)
{
	for (uint16_t i = 2; i < f->n_held; i++)
		if (f->held[i] < '0' || f->held[i] > '9')
			return false;
	return true;
}

static void in_osc(struct run *r, uint8_t b)
{
	struct sb_termfilter *f = r->f;
	bool end = b == C_BEL || b == C_ESC;

	if (all_digits(f) && (b < '0' || b > '9')) {
		if (b != ';' && !end) {
			f->n_held = 0;
			f->state = DROP;
			return;
		}
		osc_number_done(r);
		if (f->state == STRING) { /* the byte itself belongs to the string */
			if (b == C_BEL) {
				emit(r, b);
				f->state = GROUND;
			} else if (b == C_ESC) {
				f->state = STRING_ESC;
			} else {
				emit(r, b);
			}
			return;
		}
		if (f->state == DROP) {
			f->state = b == C_ESC ? DROP_ESC : end ? GROUND : DROP;
			return;
		}
	}
	if (end) {
		bool ask = memchr(f->held, '?', f->n_held) != NULL;

		if (!ask) {
			emit_held(r);
			emit(r, C_BEL); /* one terminator for both */
		}
		f->n_held = 0;
		f->state = b == C_ESC ? DROP_ESC : GROUND;
		return;
	}
	if (b < 0x20 || b > 0x7e || f->n_held >= SB_TERMFILTER_HELD - 1) {
		f->n_held = 0;
		f->state = DROP;
		return;
	}
	(void)hold(f, b);
}

static void end_string(struct run *r)
{
	emit(r, C_BEL);
}

static void in_string(struct run *r, uint8_t b)
{
	struct sb_termfilter *f = r->f;

	if (b == C_BEL) {
		emit(r, b);
		f->state = GROUND;
	} else if (b == C_ESC) {
		f->state = STRING_ESC;
	} else if (f->string_len >= STRING_MAX) {
		end_string(r);
		f->state = DROP;
	} else if ((b >= 0x20 && b < 0x7f) || b >= 0xa0) {
		f->string_len++;
		emit(r, b);
	}
}

static void step(struct run *r, uint8_t b);

static void in_string_esc(struct run *r, uint8_t b)
{
	end_string(r);
	r->f->state = GROUND;
	if (b == '\\')
		return;
	begin_escape(r->f); /* the string was cut short by another sequence */
	step(r, b);
}

static void in_drop(struct run *r, uint8_t b)
{
	if (b == C_BEL)
		r->f->state = GROUND;
	else if (b == C_ESC)
		r->f->state = DROP_ESC;
}

static void in_drop_esc(struct run *r, uint8_t b)
{
	r->f->state = GROUND;
	if (b == '\\')
		return;
	begin_escape(r->f);
	step(r, b);
}

/* --- characters --- */

static uint8_t utf8_need(uint8_t b)
{
	if (b >= 0xc2 && b <= 0xdf)
		return 1;
	if (b >= 0xe0 && b <= 0xef)
		return 2;
	if (b >= 0xf0 && b <= 0xf4)
		return 3;
	return 0;
}

/* Whether @b may follow what is held; the second byte rules out overlong forms and surrogates. */
static bool utf8_goes_on(const struct sb_termfilter *f, uint8_t b)
{
	uint8_t low = 0x80;
	uint8_t high = 0xbf;

	if (f->n_utf8 == 1) {
		switch (f->utf8[0]) {
		case 0xe0:
			low = 0xa0;
			break;
		case 0xed:
			high = 0x9f;
			break;
		case 0xf0:
			low = 0x90;
			break;
		case 0xf4:
			high = 0x8f;
			break;
		default:
			break;
		}
	}
	return b >= low && b <= high;
}

/* Held bytes as single bytes: those of 0x80..0x9f go out, the others are just odd letters. */
static void utf8_give_up(struct run *r)
{
	struct sb_termfilter *f = r->f;

	for (uint8_t i = 0; i < f->n_utf8; i++)
		if (f->utf8[i] >= 0xa0)
			emit(r, f->utf8[i]);
	f->n_utf8 = 0;
	f->utf8_need = 0;
	f->state = f->return_to;
}

static void in_utf8(struct run *r, uint8_t b)
{
	struct sb_termfilter *f = r->f;

	if (!utf8_goes_on(f, b)) {
		utf8_give_up(r);
		step(r, b);
		return;
	}
	f->utf8[f->n_utf8++] = b;
	if (--f->utf8_need > 0)
		return;
	/* U+0080..U+009F are the C1 controls */
	if (!(f->utf8[0] == 0xc2 && f->utf8[1] <= 0x9f)) {
		memcpy(r->out + r->n, f->utf8, f->n_utf8);
		r->n += f->n_utf8;
		f->string_len += f->n_utf8;
	}
	f->n_utf8 = 0;
	f->state = f->return_to;
}

static void cancel(struct run *r, uint8_t b)
{
	struct sb_termfilter *f = r->f;

	f->n_held = 0;
	if (f->state == STRING || f->state == STRING_ESC)
		end_string(r);
	else if (f->state == GROUND)
		emit(r, b);
	f->state = GROUND;
}

static void step(struct run *r, uint8_t b)
{
	struct sb_termfilter *f = r->f;

	if (f->state == UTF8) {
		in_utf8(r, b);
		return;
	}
	if (b == C_CAN || b == C_SUB) {
		cancel(r, b);
		return;
	}
	if (b == C_ESC && (f->state == ESCAPE || f->state == CSI || f->state == CSI_DROP)) {
		begin_escape(f);
		return;
	}
	if ((f->state == GROUND || f->state == STRING) && utf8_need(b) > 0 &&
	    !(f->state == STRING && f->string_len >= STRING_MAX)) {
		f->return_to = f->state;
		f->state = UTF8;
		f->utf8[0] = b;
		f->n_utf8 = 1;
		f->utf8_need = utf8_need(b);
		return;
	}
	switch ((enum state)f->state) {
	case GROUND:
		in_ground(r, b);
		break;
	case ESCAPE:
		in_escape(r, b);
		break;
	case CSI:
		in_csi(r, b);
		break;
	case CSI_DROP:
		if (b >= 0x40)
			f->state = GROUND;
		break;
	case OSC:
		in_osc(r, b);
		break;
	case STRING:
		in_string(r, b);
		break;
	case STRING_ESC:
		in_string_esc(r, b);
		break;
	case DROP:
		in_drop(r, b);
		break;
	case DROP_ESC:
		in_drop_esc(r, b);
		break;
	case UTF8:
		break;
	}
}

size_t sb_termfilter_run(struct sb_termfilter *f, const uint8_t *in, size_t len, uint8_t *out)
{
	struct run r = { .f = f, .out = out };

	for (size_t i = 0; i < len; i++) {
		/* plain text, most of all output */
		if (f->state == GROUND && in[i] >= 0x20 && in[i] < 0x7f)
			emit(&r, in[i]);
		else
			step(&r, in[i]);
	}
	return r.n;
}

size_t sb_termfilter_end(struct sb_termfilter *f, uint8_t *out)
{
	struct run r = { .f = f, .out = out };

	if (f->state == UTF8)
		utf8_give_up(&r);
	if (f->state == STRING || f->state == STRING_ESC)
		end_string(&r);
	*f = (struct sb_termfilter){ 0 };
	return r.n;
}
