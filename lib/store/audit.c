#include "store/audit.h"

#include <errno.h>
#include <string.h>

#include "store/audit_i.h"

static const char *const kinds[SB_AUDIT_KINDS] = {
	[SB_AUDIT_SESSION] = "session",	  [SB_AUDIT_PLAN] = "plan",
	[SB_AUDIT_COMMAND] = "command",	  [SB_AUDIT_NETWORK] = "network",
	[SB_AUDIT_FILE] = "file",	  [SB_AUDIT_SSH] = "ssh",
	[SB_AUDIT_SECRET] = "secret",	  [SB_AUDIT_APPROVAL] = "approval",
	[SB_AUDIT_POLICY] = "policy",	  [SB_AUDIT_SNAPSHOT] = "snapshot",
	[SB_AUDIT_PROVENANCE] = "provenance", [SB_AUDIT_KEY] = "key",
};
static const char *const verdicts[SB_AUDIT_VERDICTS] = {
	[SB_AUDIT_NONE] = "none", [SB_AUDIT_DENY] = "deny",   [SB_AUDIT_ALLOW] = "allow",
	[SB_AUDIT_ASK] = "ask",	  [SB_AUDIT_ERROR] = "error",
};

const char *sb_audit_kind_name(enum sb_audit_kind k)
{
	return k > 0 && k < SB_AUDIT_KINDS ? kinds[k] : NULL;
}

const char *sb_audit_verdict_name(enum sb_audit_verdict v)
{
	return v >= 0 && v < SB_AUDIT_VERDICTS ? verdicts[v] : NULL;
}

enum sb_audit_kind audit_kind_n(const char *p, size_t len)
{
	for (int k = 1; k < SB_AUDIT_KINDS; k++)
		if (kinds[k][0] == p[0] && strlen(kinds[k]) == len && memcmp(kinds[k], p, len) == 0)
			return (enum sb_audit_kind)k;
	return SB_AUDIT_KIND_NONE;
}

enum sb_audit_verdict audit_verdict_n(const char *p, size_t len)
{
	for (int v = 0; v < SB_AUDIT_VERDICTS; v++)
		if (verdicts[v][0] == p[0] && strlen(verdicts[v]) == len &&
		    memcmp(verdicts[v], p, len) == 0)
			return (enum sb_audit_verdict)v;
	return SB_AUDIT_VERDICTS;
}

enum sb_audit_kind sb_audit_kind_of(const char *name)
{
	return audit_kind_n(name, strlen(name));
}

enum sb_audit_verdict sb_audit_verdict_of(const char *name)
{
	return audit_verdict_n(name, strlen(name));
}

/* ---- events ---- */

static struct sb_audit_value *more(struct sb_audit_event *e, const char *key,
				   enum sb_audit_type type)
{
	struct sb_audit_value *v = &e->data[e->n_data];

	sb_assert(e->n_data + 1 < SB_AUDIT_DATA_MAX); /* one is left for "cut" */
	e->n_data++;
	*v = (struct sb_audit_value){ .key = key, .type = type, .p = "" };
	return v;
}

void sb_audit_put(struct sb_audit_event *e, const char *key, const char *s)
{
	struct sb_audit_value *v;

	if (!s)
		return;
	v = more(e, key, SB_AUDIT_TEXT);
	v->p = s;
	v->len = strlen(s);
}

void sb_audit_put_num(struct sb_audit_event *e, const char *key, uint64_t num)
{
	more(e, key, SB_AUDIT_NUM)->num = num;
}

void sb_audit_put_bool(struct sb_audit_event *e, const char *key, bool on)
{
	more(e, key, SB_AUDIT_BOOL)->num = on;
}

void sb_audit_put_list(struct sb_audit_event *e, const char *key, const char *words, size_t len)
{
	struct sb_audit_value *v = more(e, key, SB_AUDIT_LIST);

	sb_assert(len == 0 || words[len - 1] == '\0');
	v->p = words;
	v->len = len;
}

/* ---- text ---- */

/* Return: bytes of the UTF-8 character at @p; 0: it is none, or one that is not written as it is. */
size_t audit_char(const uint8_t *p, size_t len)
{
	uint32_t c = p[0];
	size_t n;

	if (c < 0x80)
		return c >= 0x20 && c != 0x7f;
	n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
	if (c < 0xc2 || c > 0xf4 || n > len)
		return 0;
	c &= 0x7fU >> n;
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3fU);
	}
	if ((n == 3 && c < 0x800) || (n == 4 && c < 0x10000) || c > 0x10ffff ||
	    (c >= 0xd800 && c <= 0xdfff))
		return 0;
	/* C1; zero width and direction marks; line and paragraph ends; byte order mark; annotations;
	 * private signs of no shape (tags) */
	if (c < 0xa0 || (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
	    (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
	    (c & 0xfffe) == 0xfffe || (c >= 0xe0000 && c <= 0xe0fff))
		return 0;
	return n;
}

size_t sb_audit_text(const struct sb_audit_str *s, char *out, size_t cap)
{
	size_t n = 0;

	for (size_t i = 0; i < s->len && n + 1 < cap; i++) {
		if (s->p[i] == '\\' && i + 1 < s->len)
			i++;
		out[n++] = s->p[i];
	}
	out[n] = '\0';
	return n;
}

static int nibble(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

size_t sb_audit_bytes(const char *text, char *out, size_t cap)
{
	size_t n = 0;

	for (const char *p = text; *p && n < cap; p++) {
		if (p[0] == '\\' && p[1] == 'x' && nibble(p[2]) >= 0 && nibble(p[3]) >= 0) {
			out[n++] = (char)(nibble(p[2]) << 4 | nibble(p[3]));
			p += 3;
			continue;
		}
		if (p[0] == '\\' && p[1] == '\\')
			p++;
		out[n++] = *p;
	}
	return n;
}

/* ---- writing ---- */

struct out {
	char *p;
	size_t len;
	size_t cap; /* beyond it nothing is written, and `full` is set */
	bool full;
	bool cut;
};

static void raw(struct out *o, const char *p, size_t len)
{
	if (o->full || len > o->cap - o->len) {
		o->full = true;
		return;
	}
	memcpy(o->p + o->len, p, len);
	o->len += len;
}

static void str(struct out *o, const char *s)
{
	raw(o, s, strlen(s));
}

static void num(struct out *o, uint64_t v)
{
	char text[20];
	size_t at = sizeof(text);

	do
		text[--at] = (char)('0' + v % 10);
	while ((v /= 10) > 0);
	raw(o, text + at, sizeof(text) - at);
}

static const char digits[] = "0123456789abcdef";

static void hex(struct out *o, const uint8_t *p, size_t len)
{
	char text[2 * SB_AUDIT_HASH];

	sb_assert(len <= SB_AUDIT_HASH);
	for (size_t i = 0; i < len; i++) {
		text[2 * i] = digits[p[i] >> 4];
		text[2 * i + 1] = digits[p[i] & 15];
	}
	raw(o, text, 2 * len);
}

/* @len bytes as a JSON string of at most @max bytes of text. Return: what is left of @max. */
static size_t text(struct out *o, const char *p, size_t len, size_t max)
{
	const uint8_t *b = (const uint8_t *)p;
	size_t left = max;

	raw(o, "\"", 1);
	for (size_t i = 0, n; i < len; i += n ? n : 1) {
		char esc[5] = { '\\', '\\', 'x', digits[b[i] >> 4], digits[b[i] & 15] };
		size_t cost;

		n = audit_char(b + i, len - i);
		cost = n == 0 ? 4 : b[i] == '\\' ? 2 : n;
		if (cost > left) {
			o->cut = true;
			break;
		}
		left -= cost;
		if (n == 0)
			raw(o, esc, 5);
		else if (b[i] == '\\')
			raw(o, "\\\\\\\\", 4);
		else if (b[i] == '"')
			raw(o, "\\\"", 2);
		else
			raw(o, p + i, n);
	}
	raw(o, "\"", 1);
	return left;
}

static bool is_word(const char *s, size_t max, const char *others)
{
	size_t n = s ? strlen(s) : 0;

	if (n == 0 || n > max)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!audit_word_char(s[i], others[0]))
			return false;
	return true;
}

static void list(struct out *o, const struct sb_audit_value *v)
{
	size_t left = SB_AUDIT_VALUE_MAX;

	raw(o, "[", 1);
	for (size_t at = 0; at < v->len; at += strlen(v->p + at) + 1) {
		/* an empty word has its price, too */
		if (left < 4) {
			o->cut = true;
			break;
		}
		if (at > 0)
			raw(o, ",", 1);
		left = text(o, v->p + at, strlen(v->p + at), left - 3);
	}
	raw(o, "]", 1);
}

static void value(struct out *o, const struct sb_audit_value *v)
{
	raw(o, "\"", 1);
	str(o, v->key);
	raw(o, "\":", 2);
	switch (v->type) {
	case SB_AUDIT_NUM:
		num(o, v->num);
		break;
	case SB_AUDIT_BOOL:
		str(o, v->num ? "true" : "false");
		break;
	case SB_AUDIT_LIST:
		list(o, v);
		break;
	case SB_AUDIT_TEXT:
	default:
		(void)text(o, v->p, v->len, SB_AUDIT_VALUE_MAX);
		break;
	}
}

#define CUT_ROOM 12 /* ,"cut":true} */

/* Values in the order of their keys; one that has no room is left out. */
static void data(struct out *o, const struct sb_audit_value *const *v, size_t n)
{
	size_t whole = o->cap;
	size_t end = o->len + SB_AUDIT_DATA_BYTES;
	bool any = false;

	raw(o, "{", 1);
	for (size_t i = 0; i < n && !o->full; i++) {
		size_t at = o->len;

		o->cap = SB_MIN(whole, strcmp(v[i]->key, "cut") == 0 ? end : end - CUT_ROOM);
		if (any)
			raw(o, ",", 1);
		value(o, v[i]);
		if (o->full) {
			o->full = false;
			o->cut = true;
			o->len = at;
		} else {
			any = true;
		}
	}
	o->cap = whole;
	raw(o, "}", 1);
}

/* Pointers to the values, sorted by key. Return: their number; -EINVAL. */
static int sorted(const struct sb_audit_event *e, const struct sb_audit_value *cut,
		  const struct sb_audit_value *v[SB_AUDIT_DATA_MAX + 1])
{
	int n = 0;

	if (e->n_data > SB_AUDIT_DATA_MAX)
		return -EINVAL;
	for (size_t i = 0; i <= e->n_data; i++) {
		const struct sb_audit_value *x = i < e->n_data ? &e->data[i] : cut;
		int at = n;

		if (!x)
			break;
		if (!is_word(x->key, SB_AUDIT_KEY_MAX, "_"))
			return -EINVAL;
		if (x != cut && strcmp(x->key, "cut") == 0 && cut)
			continue;
		while (at > 0 && strcmp(v[at - 1]->key, x->key) > 0) {
			v[at] = v[at - 1];
			at--;
		}
		if (at > 0 && strcmp(v[at - 1]->key, x->key) == 0)
			return -EINVAL;
		v[at] = x;
		n++;
	}
	return n;
}

static void field(struct out *o, const char *head, const char *s, size_t max)
{
	str(o, head);
	(void)text(o, s ? s : "", s ? strlen(s) : 0, max);
}

static const struct sb_audit_value was_cut = { .key = "cut", .type = SB_AUDIT_BOOL, .num = 1 };

static int write_line(const struct sb_audit_event *e, uint64_t seq, const uint8_t *prev,
		      struct out *o, bool cut)
{
	static const uint8_t none[16] = { 0 };
	const struct sb_audit_value *v[SB_AUDIT_DATA_MAX + 1];
	int n = sorted(e, cut ? &was_cut : NULL, v);

	if (n < 0)
		return n;
	str(o, "{\"v\":1,\"seq\":");
	num(o, seq);
	str(o, ",\"time_ns\":");
	num(o, e->time_ns);
	str(o, ",\"prev\":\"");
	hex(o, prev, SB_AUDIT_HASH);
	str(o, "\",\"session\":\"");
	if (memcmp(e->session, none, sizeof(none)) != 0)
		hex(o, e->session, sizeof(e->session));
	str(o, "\",\"kind\":\"");
	str(o, kinds[e->kind]);
	str(o, "\",\"action\":\"");
	str(o, e->action);
	str(o, "\",\"verdict\":\"");
	str(o, verdicts[e->verdict]);
	field(o, "\",\"subject\":", e->subject, SB_AUDIT_SUBJECT_MAX);
	field(o, ",\"rule\":", e->rule, SB_AUDIT_RULE_MAX);
	field(o, ",\"reason\":", e->reason, SB_AUDIT_REASON_MAX);
	str(o, ",\"data\":");
	data(o, v, (size_t)n);
	raw(o, "}\n", 2);
	return o->full ? -EFBIG : (int)o->len;
}

int sb_audit_encode(const struct sb_audit_event *e, uint64_t seq,
		    const uint8_t prev[SB_AUDIT_HASH], char out[SB_AUDIT_LINE_MAX])
{
	struct out o = { .p = out, .cap = SB_AUDIT_LINE_MAX };
	int r;

	if (!sb_audit_kind_name(e->kind) || !sb_audit_verdict_name(e->verdict) ||
	    !is_word(e->action, SB_AUDIT_ACTION_MAX, "-"))
		return -EINVAL;
	r = write_line(e, seq, prev, &o, false);
	if (r < 0 || !o.cut)
		return r;
	o = (struct out){ .p = out, .cap = SB_AUDIT_LINE_MAX };
	return write_line(e, seq, prev, &o, true);
}
