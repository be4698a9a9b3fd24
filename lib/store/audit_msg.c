/*
 * An event between two programs of ours: fixed head, then the texts, each with its NUL, then the
 * values: u8 type, key with its NUL, and u64 for numbers or u16 length and bytes. Little-endian.
 */
#include <errno.h>
#include <string.h>

#include "store/audit_i.h"

struct pack {
	uint8_t *p;
	size_t len;
	size_t cap;
	bool cut;
};

static bool bytes(struct pack *k, const void *p, size_t len)
{
	if (len > k->cap - k->len)
		return false;
	if (len > 0)
		memcpy(k->p + k->len, p, len);
	k->len += len;
	return true;
}

static bool le(struct pack *k, uint64_t v, size_t n)
{
	uint8_t b[8];

	for (size_t i = 0; i < n; i++)
		b[i] = (uint8_t)(v >> (8 * i));
	return bytes(k, b, n);
}

/* A text with its NUL, cut to @max and to what there is room for. */
static bool text(struct pack *k, const char *s, size_t max)
{
	size_t len = s ? strlen(s) : 0;
	size_t room = k->cap - k->len;
	size_t n = SB_MIN(SB_MIN(len, max), room > 0 ? room - 1 : 0);

	k->cut |= n < len;
	return bytes(k, s, n) && le(k, 0, 1);
}

/* How much of a list of whole words fits. */
static size_t words(const char *p, size_t len, size_t room)
{
	size_t n = 0;

	while (n < len && n + strlen(p + n) + 1 <= room)
		n += strlen(p + n) + 1;
	return n;
}

static bool value(struct pack *k, const struct sb_audit_value *v)
{
	size_t at = k->len;
	size_t room;
	size_t n;

	if (!le(k, v->type, 1) || !bytes(k, v->key, strlen(v->key) + 1))
		goto full;
	if (v->type == SB_AUDIT_NUM || v->type == SB_AUDIT_BOOL) {
		if (le(k, v->num, 8))
			return true;
		goto full;
	}
	room = k->cap - k->len;
	room = SB_MIN(room > 2 ? room - 2 : 0, (size_t)SB_AUDIT_VALUE_MAX);
	n = v->type == SB_AUDIT_LIST ? words(v->p, v->len, room) : SB_MIN(v->len, room);
	k->cut |= n < v->len;
	if (le(k, n, 2) && bytes(k, v->p, n))
		return true;
full:
	k->len = at;
	k->cut = true;
	return false;
}

#define CUT_ROOM 13 /* type, "cut", number */

int sb_audit_pack(const struct sb_audit_event *e, uint8_t out[SB_AUDIT_PACK_MAX])
{
	struct pack k = { .p = out, .cap = SB_AUDIT_PACK_MAX - CUT_ROOM };
	const struct sb_audit_value cut = { .key = "cut", .type = SB_AUDIT_BOOL, .num = 1 };
	size_t count_at;
	uint8_t n = 0;
	bool has_cut = false;

	if (!sb_audit_kind_name(e->kind) || !sb_audit_verdict_name(e->verdict) || !e->action ||
	    strlen(e->action) > SB_AUDIT_ACTION_MAX || e->n_data > SB_AUDIT_DATA_MAX)
		return -EINVAL;
	if (!le(&k, e->time_ns, 8) || !bytes(&k, e->session, 16) || !le(&k, e->kind, 1) ||
	    !le(&k, e->verdict, 1) || !le(&k, 0, 1))
		return -EINVAL;
	count_at = k.len - 1;
	if (!text(&k, e->action, SB_AUDIT_ACTION_MAX) ||
	    !text(&k, e->subject, SB_AUDIT_SUBJECT_MAX) || !text(&k, e->rule, SB_AUDIT_RULE_MAX) ||
	    !text(&k, e->reason, SB_AUDIT_REASON_MAX))
		return -EINVAL;
	for (size_t i = 0; i < e->n_data; i++) {
		if (strcmp(e->data[i].key, "cut") == 0) {
			has_cut = true;
			k.cut |= e->data[i].num != 0;
		} else if (value(&k, &e->data[i])) {
			n++;
		}
	}
	k.cap = SB_AUDIT_PACK_MAX;
	if ((k.cut || has_cut) && n < SB_AUDIT_DATA_MAX) {
		struct sb_audit_value v = cut;

		v.num = k.cut;
		if (value(&k, &v))
			n++;
	}
	out[count_at] = n;
	return (int)k.len;
}

static const char *take_text(struct sb_rd *rd)
{
	const uint8_t *end = rd->bad ? NULL : memchr(rd->p, 0, rd->len);

	if (!end) {
		rd->bad = true;
		return "";
	}
	return (const char *)sb_rd_bytes(rd, (size_t)(end - rd->p) + 1);
}

static void take_value(struct sb_rd *rd, struct sb_audit_value *v)
{
	v->type = (enum sb_audit_type)sb_rd_u8(rd);
	v->key = take_text(rd);
	v->p = "";
	switch (v->type) {
	case SB_AUDIT_NUM:
	case SB_AUDIT_BOOL:
		v->num = sb_rd_le64(rd);
		rd->bad |= v->type == SB_AUDIT_BOOL && v->num > 1;
		return;
	case SB_AUDIT_TEXT:
	case SB_AUDIT_LIST:
		v->len = sb_rd_le16(rd);
		v->p = (const char *)sb_rd_bytes(rd, v->len);
		rd->bad |= !v->p || (v->type == SB_AUDIT_LIST && v->len > 0 && v->p[v->len - 1] != '\0');
		return;
	default:
		rd->bad = true;
	}
}

int sb_audit_unpack(const uint8_t *p, size_t len, struct sb_audit_event *ret)
{
	struct sb_rd rd = { .p = p, .len = len };
	struct sb_audit_event e = { 0 };
	const uint8_t *id;

	e.time_ns = sb_rd_le64(&rd);
	id = sb_rd_bytes(&rd, 16);
	if (id)
		memcpy(e.session, id, 16);
	e.kind = (enum sb_audit_kind)sb_rd_u8(&rd);
	e.verdict = (enum sb_audit_verdict)sb_rd_u8(&rd);
	e.n_data = sb_rd_u8(&rd);
	e.action = take_text(&rd);
	e.subject = take_text(&rd);
	e.rule = take_text(&rd);
	e.reason = take_text(&rd);
	if (rd.bad || e.n_data > SB_AUDIT_DATA_MAX)
		return -EBADMSG;
	for (size_t i = 0; i < e.n_data && !rd.bad; i++)
		take_value(&rd, &e.data[i]);
	if (sb_rd_end(&rd) < 0 || !sb_audit_kind_name(e.kind) || !sb_audit_verdict_name(e.verdict))
		return -EBADMSG;
	*ret = e;
	return 0;
}
