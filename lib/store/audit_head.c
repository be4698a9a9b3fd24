#include "store/audit_head.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/num.h"
#include "crypto/crypto.h"

#define ED25519 1 /* algorithm of the note format */
#define DASH "\xe2\x80\x94 "
#define SIG_BYTES 68
#define SIG_TEXT 92 /* base64 of them */
#define ROOT_TEXT 44

static void name_of(const uint8_t pub[32], char out[SB_AUDIT_NAME_LEN + 1])
{
	memcpy(out, "sendbox-audit-", 14);
	sb_hex_write(pub, 8, out + 14);
}

/* The first four bytes of SHA-256(name, newline, algorithm, key). */
static void id_of(const char *name, const uint8_t pub[32], uint8_t out[4])
{
	uint8_t all[SB_AUDIT_NAME_LEN + 2 + 32];
	uint8_t sha[32];

	memcpy(all, name, SB_AUDIT_NAME_LEN);
	all[SB_AUDIT_NAME_LEN] = '\n';
	all[SB_AUDIT_NAME_LEN + 1] = ED25519;
	memcpy(all + SB_AUDIT_NAME_LEN + 2, pub, 32);
	sb_sha256(all, sizeof(all), sha);
	memcpy(out, sha, 4);
}

size_t sb_audit_head_sign(const struct sb_audit_head *h, const uint8_t pub[32],
			  const uint8_t sec[64], char out[SB_AUDIT_HEAD_MAX])
{
	char name[SB_AUDIT_NAME_LEN + 1];
	char b64[SIG_TEXT + 4];
	uint8_t sig[SIG_BYTES];
	int n;
	int more;

	name_of(pub, name);
	sb_base64_write(h->root, sizeof(h->root), b64);
	n = snprintf(out, SB_AUDIT_HEAD_MAX, "%s\n%llu\n%s\n", name, (unsigned long long)h->n, b64);
	sb_assert(n > 0 && n < SB_AUDIT_HEAD_MAX / 2);
	id_of(name, pub, sig);
	sb_sign(out, (size_t)n, sec, sig + 4);
	sb_base64_write(sig, sizeof(sig), b64);
	more = snprintf(out + n, SB_AUDIT_HEAD_MAX - (size_t)n, "\n" DASH "%s %s\n", name, b64);
	sb_assert(more > 0 && n + more < SB_AUDIT_HEAD_MAX);
	return (size_t)(n + more);
}

/* The line at *@p without its newline; *@p moves behind it. Return: its length; -1. */
static int line(const char **p, const char *end, const char **ret)
{
	const char *nl = memchr(*p, '\n', (size_t)(end - *p));
	int n;

	if (!nl)
		return -1;
	n = (int)(nl - *p);
	*ret = *p;
	*p = nl + 1;
	return n;
}

static bool decode(const char *p, size_t len, uint8_t *out, size_t want)
{
	uint8_t buf[SIG_BYTES + 4];
	size_t n = 0;

	if (len > SIG_TEXT || sb_base64_parse(p, len, buf, &n) < 0 || n != want)
		return false;
	memcpy(out, buf, want);
	return true;
}

static bool body(const char **p, const char *end, const char *name, struct sb_audit_head *h)
{
	const char *l;
	char num[24];
	int n = line(p, end, &l);

	if (n != SB_AUDIT_NAME_LEN || memcmp(l, name, SB_AUDIT_NAME_LEN) != 0)
		return false;
	n = line(p, end, &l);
	if (n < 1 || (size_t)n >= sizeof(num))
		return false;
	memcpy(num, l, (size_t)n);
	num[n] = '\0';
	if (sb_num_u64(num, 0, UINT64_MAX, &h->n) < 0)
		return false;
	n = line(p, end, &l);
	return n == ROOT_TEXT && decode(l, ROOT_TEXT, h->root, 32);
}

int sb_audit_head_open(const char *text, size_t len, const uint8_t pub[32],
		       struct sb_audit_head *ret, size_t *next)
{
	const char *p = text;
	const char *end = text + SB_MIN(len, (size_t)SB_AUDIT_HEAD_MAX);
	const size_t skip = strlen(DASH);
	char name[SB_AUDIT_NAME_LEN + 1];
	struct sb_audit_head h;
	uint8_t id[4];
	uint8_t sig[SIG_BYTES];
	size_t signed_len;
	bool good = false;
	const char *l;
	int n;

	name_of(pub, name);
	id_of(name, pub, id);
	if (len < SB_AUDIT_NAME_LEN || memcmp(text, "sendbox-audit-", 14) != 0)
		return -EBADMSG;
	if (memcmp(text, name, SB_AUDIT_NAME_LEN) != 0)
		return -EKEYREJECTED;
	if (!body(&p, end, name, &h))
		return -EBADMSG;
	signed_len = (size_t)(p - text);
	if (line(&p, end, &l) != 0)
		return -EBADMSG;
	while (p < end && (size_t)(end - p) > skip && memcmp(p, DASH, skip) == 0) {
		n = line(&p, end, &l);
		if (n < 0)
			return -EBADMSG;
		/* of ours, the one with the right id; others may have signed, too */
		if ((size_t)n == skip + SB_AUDIT_NAME_LEN + 1 + SIG_TEXT &&
		    memcmp(l + skip, name, SB_AUDIT_NAME_LEN) == 0 &&
		    l[skip + SB_AUDIT_NAME_LEN] == ' ' &&
		    decode(l + n - SIG_TEXT, SIG_TEXT, sig, SIG_BYTES) &&
		    memcmp(sig, id, sizeof(id)) == 0)
			good |= sb_sign_verify(text, signed_len, sig + 4, pub);
	}
	if (!next && p != text + len)
		return -EBADMSG;
	if (!good)
		return -EKEYREJECTED;
	if (next)
		*next = (size_t)(p - text);
	*ret = h;
	return 0;
}

void sb_audit_vkey(const uint8_t pub[32], char out[SB_AUDIT_VKEY_ROOM])
{
	char name[SB_AUDIT_NAME_LEN + 1];
	char id[9];
	char b64[SB_BASE64_LEN(33) + 1];
	uint8_t key[33];
	uint8_t raw[4];

	name_of(pub, name);
	id_of(name, pub, raw);
	sb_hex_write(raw, 4, id);
	key[0] = ED25519;
	memcpy(key + 1, pub, 32);
	sb_base64_write(key, sizeof(key), b64);
	(void)snprintf(out, SB_AUDIT_VKEY_ROOM, "%s+%s+%s", name, id, b64);
}

int sb_audit_vkey_parse(const char *text, uint8_t ret[32])
{
	char again[SB_AUDIT_VKEY_ROOM];
	const char *b64;
	uint8_t key[33];
	const char *p;

	if (strlen(text) == 64 && sb_hex_parse(text, ret, 32) == 0)
		return 0;
	/* base64 has plus signs, too: the third part begins behind the second one of them */
	p = strchr(text, '+');
	b64 = p ? strchr(p + 1, '+') : NULL;
	if (!b64 || strlen(b64 + 1) > SIG_TEXT || !decode(b64 + 1, strlen(b64 + 1), key, 33) ||
	    key[0] != ED25519)
		return -EINVAL;
	sb_audit_vkey(key + 1, again);
	if (strcmp(again, text) != 0)
		return -EINVAL;
	memcpy(ret, key + 1, 32);
	return 0;
}
