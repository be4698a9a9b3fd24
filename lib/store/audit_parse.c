/*
 * Theory of operation. One pass over the line, left to right, against the one order and spelling that
 * the encoder has; nothing is skipped, nothing is kept but pointers into the line. A backslash in a
 * JSON string is followed by a quote or a backslash; two backslashes are one in the text, which stands
 * there for a byte (\xNN) or, doubled, for itself.
 */
#include "store/audit.h"

#include <errno.h>
#include <string.h>

#include "store/audit_i.h"

struct in {
	const char *p;
	const char *end;
};

static bool lit(struct in *in, const char *s, size_t n)
{
	if ((size_t)(in->end - in->p) < n || memcmp(in->p, s, n) != 0)
		return false;
	in->p += n;
	return true;
}
#define LIT(in, s) lit(in, s, sizeof(s) - 1)

static bool number(struct in *in, uint64_t *ret)
{
	const char *from = in->p;
	uint64_t v = 0;

	while (in->p < in->end && *in->p >= '0' && *in->p <= '9')
		if (__builtin_mul_overflow(v, 10U, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*in->p++ - '0'), &v))
			return false;
	*ret = v;
	return in->p > from && (in->p == from + 1 || *from != '0');
}

/* 1 and the value of a lower-case hexadecimal digit */
static const uint8_t hex_values[256] = {
	['0'] = 0x10, ['1'] = 0x11, ['2'] = 0x12, ['3'] = 0x13, ['4'] = 0x14, ['5'] = 0x15,
	['6'] = 0x16, ['7'] = 0x17, ['8'] = 0x18, ['9'] = 0x19, ['a'] = 0x1a, ['b'] = 0x1b,
	['c'] = 0x1c, ['d'] = 0x1d, ['e'] = 0x1e, ['f'] = 0x1f,
};

static int digit(char c)
{
	uint8_t v = hex_values[(uint8_t)c];

	return v ? v & 15 : -1;
}

static bool hex(struct in *in, uint8_t *out, size_t n)
{
	uint8_t good = 0x10;

	if ((size_t)(in->end - in->p) < 2 * n)
		return false;
	for (size_t i = 0; i < n; i++, in->p += 2) {
		uint8_t high = hex_values[(uint8_t)in->p[0]];
		uint8_t low = hex_values[(uint8_t)in->p[1]];

		good &= high & low;
		out[i] = (uint8_t)(high << 4 | (low & 15));
	}
	return good != 0;
}

/* Behind two backslashes: another two, or a byte that is never written as it is. */
static bool escape(struct in *in, size_t *bytes)
{
	int high;
	int low;

	if (in->end - in->p >= 2 && in->p[0] == '\\' && in->p[1] == '\\') {
		in->p += 2;
		*bytes += 2;
		return true;
	}
	if (in->end - in->p < 3 || in->p[0] != 'x')
		return false;
	high = digit(in->p[1]);
	low = digit(in->p[2]);
	in->p += 3;
	*bytes += 4;
	return high >= 0 && low >= 0 &&
	       (high < 2 || high >= 8 || (high == 7 && low == 15));
}

/* What stands for itself and is one byte. */
static inline bool is_plain(char c)
{
	return c >= 0x20 && c != '"' && c != '\\' && c != 0x7f;
}

/* The rest of a string whose quote was taken. @left: bytes of text that it may have. */
static bool string(struct in *in, size_t *left, struct sb_audit_str *ret)
{
	const char *from = in->p;
	size_t bytes = 0;

	while (in->p < in->end) {
		const char *run = in->p;
		uint8_t c;
		size_t n;

		while (in->p < in->end && is_plain(*in->p))
			in->p++;
		bytes += (size_t)(in->p - run);
		if (in->p == in->end)
			return false;
		c = (uint8_t)*in->p;
		if (c == '"') {
			*ret = (struct sb_audit_str){ from, (size_t)(in->p - from) };
			in->p++;
			if (bytes > *left)
				return false;
			*left -= bytes;
			return true;
		}
		if (c == '\\') {
			if (in->end - in->p < 2)
				return false;
			in->p += 2;
			if (in->p[-1] == '"')
				bytes++;
			else if (in->p[-1] != '\\' || !escape(in, &bytes))
				return false;
			continue;
		}
		n = c >= 0x20 && c < 0x7f ? 1 : audit_char((const uint8_t *)in->p, (size_t)(in->end - in->p));
		if (n == 0)
			return false;
		bytes += n;
		in->p += n;
	}
	return false;
}

static bool bounded(struct in *in, size_t max, struct sb_audit_str *ret)
{
	return string(in, &max, ret);
}

static bool word(struct in *in, size_t max, char other, struct sb_audit_str *ret)
{
	const char *from = in->p;

	while (in->p < in->end && audit_word_char(*in->p, other))
		in->p++;
	*ret = (struct sb_audit_str){ from, (size_t)(in->p - from) };
	return ret->len > 0 && ret->len <= max && LIT(in, "\"");
}

static bool list(struct in *in)
{
	size_t left = SB_AUDIT_VALUE_MAX;
	struct sb_audit_str s;

	if (LIT(in, "]"))
		return true;
	for (;;) {
		if (left < 4)
			return false;
		left -= 3;
		if (!LIT(in, "\"") || !string(in, &left, &s))
			return false;
		if (LIT(in, "]"))
			return true;
		if (!LIT(in, ","))
			return false;
	}
}

/* One value; its place is in @ret. */
static bool value(struct in *in, struct sb_audit_value *ret)
{
	const char *from = in->p;
	struct sb_audit_str s;

	if (LIT(in, "\"")) {
		ret->type = SB_AUDIT_TEXT;
		if (!bounded(in, SB_AUDIT_VALUE_MAX, &s))
			return false;
		ret->p = s.p;
		ret->len = s.len;
		return true;
	}
	if (LIT(in, "[")) {
		ret->type = SB_AUDIT_LIST;
		if (!list(in))
			return false;
		ret->p = from;
		ret->len = (size_t)(in->p - from);
		return true;
	}
	ret->type = SB_AUDIT_BOOL;
	ret->num = 1;
	if (LIT(in, "true"))
		return true;
	ret->num = 0;
	if (LIT(in, "false"))
		return true;
	ret->type = SB_AUDIT_NUM;
	return number(in, &ret->num);
}

static bool after(const struct sb_audit_str *a, const struct sb_audit_str *b)
{
	int c = memcmp(a->p, b->p, SB_MIN(a->len, b->len));

	return c > 0 || (c == 0 && a->len > b->len);
}

/*
 * The next pair of an object whose brace was taken.
 * @last: the key before, len 0 at first; then this one
 * Return: 1; 0: that was the end; -1: malformed.
 */
static int pair(struct in *in, struct sb_audit_str *last, struct sb_audit_value *ret)
{
	struct sb_audit_str key;

	*ret = (struct sb_audit_value){ .p = "" };
	if (LIT(in, "}"))
		return 0;
	if (last->len > 0 && !LIT(in, ","))
		return -1;
	if (!LIT(in, "\"") || !word(in, SB_AUDIT_KEY_MAX, '_', &key) || !LIT(in, ":") ||
	    (last->len > 0 && !after(&key, last)) || !value(in, ret))
		return -1;
	*last = key;
	return 1;
}

static bool object(struct in *in, struct sb_audit_str *ret)
{
	struct sb_audit_str last = { "", 0 };
	struct sb_audit_value v;
	const char *from = in->p;
	size_t n = 0;
	int r;

	if (!LIT(in, "{"))
		return false;
	while ((r = pair(in, &last, &v)) > 0)
		if (++n > SB_AUDIT_DATA_MAX + 1)
			return false;
	*ret = (struct sb_audit_str){ from, (size_t)(in->p - from) };
	return r == 0 && ret->len <= SB_AUDIT_DATA_BYTES + 1;
}

/* "" or 32 digits that are not all zero */
static bool session(struct in *in, uint8_t out[16])
{
	static const uint8_t none[16] = { 0 };

	memset(out, 0, 16);
	if (LIT(in, "\""))
		return true;
	return hex(in, out, 16) && LIT(in, "\"") && memcmp(out, none, 16) != 0;
}

static bool names(struct in *in, struct sb_audit_record *r)
{
	struct sb_audit_str s;

	if (!LIT(in, ",\"kind\":\"") || !word(in, SB_AUDIT_ACTION_MAX, '-', &s))
		return false;
	r->kind = audit_kind_n(s.p, s.len);
	if (r->kind == SB_AUDIT_KIND_NONE || !LIT(in, ",\"action\":\"") ||
	    !word(in, SB_AUDIT_ACTION_MAX, '-', &r->action) || !LIT(in, ",\"verdict\":\"") ||
	    !word(in, SB_AUDIT_ACTION_MAX, '-', &s))
		return false;
	r->verdict = audit_verdict_n(s.p, s.len);
	return r->verdict != SB_AUDIT_VERDICTS;
}

static bool record(struct in *in, struct sb_audit_record *r)
{
	return LIT(in, "{\"v\":1,\"seq\":") && number(in, &r->seq) && LIT(in, ",\"time_ns\":") &&
	       number(in, &r->time_ns) && LIT(in, ",\"prev\":\"") &&
	       hex(in, r->prev, SB_AUDIT_HASH) && LIT(in, "\",\"session\":\"") &&
	       session(in, r->session) && names(in, r) && LIT(in, ",\"subject\":\"") &&
	       bounded(in, SB_AUDIT_SUBJECT_MAX, &r->subject) && LIT(in, ",\"rule\":\"") &&
	       bounded(in, SB_AUDIT_RULE_MAX, &r->rule) && LIT(in, ",\"reason\":\"") &&
	       bounded(in, SB_AUDIT_REASON_MAX, &r->reason) && LIT(in, ",\"data\":") &&
	       object(in, &r->data) && LIT(in, "}") && in->p == in->end;
}

int sb_audit_parse(const char *line, size_t len, struct sb_audit_record *ret, struct sb_err *err)
{
	struct in in = { line, line + SB_MIN(len, (size_t)SB_AUDIT_LINE_MAX) };
	struct sb_audit_record r;

	if (len >= SB_AUDIT_LINE_MAX || !record(&in, &r))
		return sb_err_set(err, -EBADMSG, "no record in canonical form: byte %zu of %zu",
				  (size_t)(in.p - line), len);
	*ret = r;
	return 0;
}

bool sb_audit_get(const struct sb_audit_record *r, const char *key, struct sb_audit_value *ret)
{
	struct in in = { r->data.p + 1, r->data.p + r->data.len };
	struct sb_audit_str last = { "", 0 };
	size_t n = strlen(key);

	while (pair(&in, &last, ret) > 0) {
		if (last.len == n && memcmp(last.p, key, n) == 0) {
			ret->key = key;
			return true;
		}
	}
	return false;
}

uint64_t sb_audit_get_num(const struct sb_audit_record *r, const char *key)
{
	struct sb_audit_value v;

	return sb_audit_get(r, key, &v) ? v.num : 0;
}

bool sb_audit_word(const struct sb_audit_value *l, size_t *at, struct sb_audit_str *ret)
{
	struct in in = { l->p + *at, l->p + l->len };
	size_t left = SB_AUDIT_VALUE_MAX;

	/* at '[' or behind a word */
	if (l->type != SB_AUDIT_LIST || in.p >= in.end)
		return false;
	in.p++;
	if (!LIT(&in, "\"") || !string(&in, &left, ret))
		return false;
	*at = (size_t)(in.p - l->p);
	return true;
}
