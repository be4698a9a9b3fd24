#include "ssh_key_line.h"

#include <errno.h>
#include <string.h>

#include "base/base64.h"
#include "crypto/crypto.h"
#include "wire/ssh_agent.h"

struct word {
	const char *p;
	size_t len;
};

static struct word next(const char **p, const char *end)
{
	struct word w;

	while (*p < end && (**p == ' ' || **p == '\t'))
		(*p)++;
	w.p = *p;
	while (*p < end && **p != ' ' && **p != '\t' && **p != '\r' && **p != '\n' && **p != '\0')
		(*p)++;
	w.len = (size_t)(*p - w.p);
	return w;
}

int ssh_key_line(const char *line, size_t len, size_t words, uint8_t sha256[32])
{
	const char *p = line;
	const char *end = line + SB_MIN(len, (size_t)SSH_KEY_LINE_MAX);
	struct word type;
	struct word text;
	sb_autofree uint8_t *blob = NULL;
	struct sb_ssh_str s = { 0 };
	struct sb_ssh_key key;

	for (size_t i = 0; i < words; i++)
		(void)next(&p, end);
	type = next(&p, end);
	text = next(&p, end);
	if (type.len == 0 || text.len == 0)
		return -EINVAL;
	blob = malloc(text.len + 3);
	if (!blob)
		return -ENOMEM;
	if (sb_base64_parse(text.p, text.len, blob, &s.len) < 0)
		return -EINVAL;
	s.p = blob;
	if (sb_ssh_key(&s, &key) < 0 || key.type.len != type.len ||
	    memcmp(key.type.p, type.p, type.len) != 0)
		return -EINVAL;
	sb_sha256(blob, s.len, sha256);
	return 0;
}

enum ssh_known ssh_known_line(const char *line, size_t len, uint8_t sha256[32])
{
	static const char revoked[] = "@revoked";
	static const char authority[] = "@cert-authority";
	const char *p = line;
	struct word first = next(&p, line + len);
	bool is_revoked = first.len == sizeof(revoked) - 1 && memcmp(first.p, revoked, first.len) == 0;

	if (first.len == 0 || first.p[0] == '#')
		return SSH_KNOWN_NONE;
	if (first.len == sizeof(authority) - 1 && memcmp(first.p, authority, first.len) == 0)
		return SSH_KNOWN_AUTHORITY;
	if (first.p[0] == '@' && !is_revoked)
		return SSH_KNOWN_NONE;
	if (ssh_key_line(line, len, is_revoked ? 2 : 1, sha256) < 0)
		return SSH_KNOWN_NONE;
	return is_revoked ? SSH_KNOWN_REVOKED : SSH_KNOWN_KEY;
}
