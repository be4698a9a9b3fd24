/*
 * What is left out of an export: values that names give away (password=..., --token ..., Authorization:
 * ...), passwords in URLs, and tokens that their own prefix gives away. The stored record stays.
 */
#include <ctype.h>
#include <string.h>

#include "audit_text.h"
#include "base/buf.h"

#define GONE "[redacted]"
#define TEXT_MAX (64U << 10)

static const char *const names[] = { "password", "passwd", "passphrase", "secret", "token", "apikey",
				     "api_key", "api-key", "access_key", "access-key", "auth",
				     "credential", "cookie", "private_key", "private-key", "pwd" };
static const char *const tokens[] = { "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-",
				      "sk-", "sk_live_", "rk_live_", "AKIA", "ASIA", "xoxb-", "xoxp-",
				      "xoxa-", "npm_", "hf_", "pypi-", "AIza", "eyJ" };

static bool token_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

static bool names_secret(const char *p, size_t len)
{
	for (size_t i = 0; i < SB_ARRAY_LEN(names); i++) {
		size_t n = strlen(names[i]);

		for (size_t at = 0; at + n <= len; at++)
			if (strncasecmp(p + at, names[i], n) == 0)
				return true;
	}
	return false;
}

bool audit_announces(const char *word)
{
	return word[0] == '-' && !strchr(word, '=') && names_secret(word, strlen(word));
}

/* Length of a token at @p; 0 = none. */
static size_t token_at(const char *p)
{
	size_t n = 0;

	for (size_t i = 0; i < SB_ARRAY_LEN(tokens); i++) {
		if (strncmp(p, tokens[i], strlen(tokens[i])) != 0)
			continue;
		while (token_char(p[n]))
			n++;
		if (n >= strlen(tokens[i]) + 12)
			return n;
		n = 0;
	}
	return 0;
}

/* The end of a value: a blank, a quote, a separator. */
static size_t value_len(const char *p)
{
	return strcspn(p, " \t\"'&;,");
}

/* user:password@ behind "://". Return: bytes up to the @, which is not counted; 0 = none. */
static size_t userinfo(const char *p)
{
	size_t n = strcspn(p, "/@ ?#\"'");

	return p[n] == '@' && memchr(p, ':', n) ? n : 0;
}

char *audit_redact(const char *s, bool after)
{
	sb_autobuf struct sb_buf b;
	size_t word = 0; /* where the name that stands before = or : begins */

	sb_buf_init(&b, TEXT_MAX);
	if (after) {
		sb_buf_add_str(&b, GONE);
		s += strlen(s);
	}
	for (size_t i = 0; s[i];) {
		size_t n = i == 0 || !token_char(s[i - 1]) ? token_at(s + i) : 0;

		if (n == 0 && i >= 3 && strncmp(s + i - 3, "://", 3) == 0)
			n = userinfo(s + i);
		if (n > 0) {
			sb_buf_add_str(&b, GONE);
			i += n;
			continue;
		}
		if ((s[i] == '=' || (s[i] == ':' && s[i + 1] == ' ')) && i > word &&
		    names_secret(s + word, i - word)) {
			bool header = s[i] == ':';

			sb_buf_add(&b, s + i, header ? 2 : 1);
			i += header ? 2 : 1;
			n = header ? strlen(s + i) : value_len(s + i);
			if (n > 0)
				sb_buf_add_str(&b, GONE);
			i += n;
			word = i;
			continue;
		}
		if (!token_char(s[i]))
			word = i + 1;
		sb_buf_add(&b, s + i, 1);
		i++;
	}
	sb_buf_add_u8(&b, 0);
	return sb_buf_error(&b) < 0 ? NULL : strdup((const char *)b.data);
}
