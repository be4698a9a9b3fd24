#include "grant_head.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/text.h"

#define FIRST "sendbox-grants-head-v1\n"

static void put_state(struct sb_text *t, const struct sb_grant_state *s)
{
	char hex[65];

	sb_hex_write(s->sha256, 32, hex);
	sb_text_add(t, "%llu %s\n", (unsigned long long)s->generation, hex);
}

size_t sb_grant_head_signed(const struct sb_grant_head *h, char out[SB_GRANT_HEAD_MAX])
{
	struct sb_text t = { .p = out, .cap = SB_GRANT_HEAD_MAX };
	char hex[65];

	out[0] = '\0';
	sb_text_add(&t, FIRST);
	put_state(&t, &h->now);
	if (h->changing)
		put_state(&t, &h->next);
	sb_hex_write(h->key, 32, hex);
	sb_text_add(&t, "key %s\n", hex);
	return t.len;
}

size_t sb_grant_head_write(const struct sb_grant_head *h, char out[SB_GRANT_HEAD_MAX])
{
	struct sb_text t = { .p = out, .cap = SB_GRANT_HEAD_MAX };
	char hex[129];

	t.len = sb_grant_head_signed(h, out);
	sb_hex_write(h->sig, 64, hex);
	sb_text_add(&t, "sig %s\n", hex);
	return t.len;
}

/* The next line, without its end. Return: false when there is none that fits. */
static bool line(const char **p, const char *end, char out[200])
{
	const char *nl = memchr(*p, '\n', (size_t)(end - *p));
	size_t n = nl ? (size_t)(nl - *p) : 200;

	if (n >= 200)
		return false;
	memcpy(out, *p, n);
	out[n] = '\0';
	*p = nl + 1;
	return true;
}

static bool get_state(char *text, struct sb_grant_state *s)
{
	char *blank = strchr(text, ' ');

	if (!blank)
		return false;
	*blank = '\0';
	return sb_num_u64(text, 0, UINT64_MAX - 1, &s->generation) == 0 &&
	       sb_hex_parse(blank + 1, s->sha256, 32) == 0;
}

int sb_grant_head_parse(const char *bytes, size_t len, struct sb_grant_head *ret)
{
	struct sb_grant_head h = { 0 };
	const char *p = bytes + sizeof(FIRST) - 1;
	const char *end = bytes + len;
	char text[200];
	char again[SB_GRANT_HEAD_MAX];

	if (len < sizeof(FIRST) || len >= SB_GRANT_HEAD_MAX || memcmp(bytes, FIRST, sizeof(FIRST) - 1) != 0 ||
	    !line(&p, end, text) || !get_state(text, &h.now) || !line(&p, end, text))
		return -EBADMSG;
	if (strncmp(text, "key ", 4) != 0) {
		h.changing = true;
		if (!get_state(text, &h.next) || h.next.generation != h.now.generation + 1 ||
		    !line(&p, end, text))
			return -EBADMSG;
	}
	if (strncmp(text, "key ", 4) != 0 || sb_hex_parse(text + 4, h.key, 32) < 0)
		return -EBADMSG;
	h.signed_len = (size_t)(p - bytes);
	if (!line(&p, end, text) || strncmp(text, "sig ", 4) != 0 ||
	    sb_hex_parse(text + 4, h.sig, 64) < 0 || sb_grant_head_write(&h, again) != len ||
	    memcmp(again, bytes, len) != 0)
		return -EBADMSG;
	*ret = h;
	return 0;
}

static bool same(const struct sb_grant_state *a, const struct sb_grant_state *b)
{
	return a->generation == b->generation && memcmp(a->sha256, b->sha256, 32) == 0;
}

bool sb_grant_head_covers(const struct sb_grant_head *h, const struct sb_grant_state *s)
{
	return same(&h->now, s) || (h->changing && same(&h->next, s));
}

size_t sb_grant_line(const struct sb_appr_grant *g, char out[SB_GRANT_LINE_MAX])
{
	struct sb_text t = { .p = out, .cap = SB_GRANT_LINE_MAX };
	char hex[65];

	out[0] = '\0';
	sb_hex_write(g->bound, 32, hex);
	sb_text_add(&t, "%lld %d %d %d %llu %llu %u %s %zu ", (long long)g->id, (int)g->kind, g->deny,
		    g->pattern, (unsigned long long)g->created_s, (unsigned long long)g->expires_s,
		    g->uses, hex, strlen(g->subject));
	sb_text_add(&t, "%s %s\n", g->subject, g->rule);
	return t.len;
}
