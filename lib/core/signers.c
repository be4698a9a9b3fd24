/* Whom one believes, and what signatures are worth. */
#include <errno.h>
#include <string.h>

#include "base/num.h"
#include "core/json_i.h"
#include "core/provenance.h"

#define FORMAT "sendbox-signers"
#define TEXT_MAX 256

void sb_signers_done(struct sb_signers *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->v[i].name);
		free(s->v[i].email);
	}
	free(s->v);
	*s = (struct sb_signers){ 0 };
}

int sb_signers_add(struct sb_signers *s, const struct sb_signer *one)
{
	struct sb_signer *v;
	char *name;
	char *email;

	for (size_t i = 0; i < s->n; i++)
		if (memcmp(s->v[i].key, one->key, 32) == 0 ||
		    (one->name[0] && strcmp(s->v[i].name, one->name) == 0))
			return -EEXIST;
	if (s->n == SB_SIGNERS_MAX)
		return -E2BIG;
	v = realloc(s->v, (s->n + 1) * sizeof(*v));
	if (!v)
		return -ENOMEM;
	s->v = v;
	name = strdup(one->name);
	email = strdup(one->email);
	if (!name || !email) {
		free(name);
		free(email);
		return -ENOMEM;
	}
	v[s->n] = *one;
	v[s->n].name = name;
	v[s->n++].email = email;
	return 0;
}

/* ---- reading ---- */

static int bad(struct sb_err *err, const char *what)
{
	return sb_err_set(err, -EBADMSG, "signers: %.300s", what);
}

static bool text_ok(const char *s)
{
	size_t n = strlen(s);

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
			return false;
	return n <= TEXT_MAX;
}

static int get_one(json_t *o, struct sb_signers *to, struct sb_err *err)
{
	json_int_t from = 0;
	json_int_t until = 0;
	json_int_t expires = 0;
	json_int_t revoked = 0;
	const char *key = NULL;
	const char *name = NULL;
	const char *email = "";
	struct sb_signer s = { 0 };
	json_error_t e;
	char text[160];
	int r;

	if (json_unpack_ex(o, &e, JSON_STRICT, "{s:s,s:s,s?s,s?I,s?I,s?I,s?I}", "key", &key, "name",
			   &name, "email", &email, "valid_from", &from, "valid_until", &until, "expires",
			   &expires, "revoked", &revoked) < 0) {
		(void)snprintf(text, sizeof(text), "identity %zu: %.120s", to->n + 1, e.text);
		return bad(err, text);
	}
	if (sb_hex_parse(key, s.key, sizeof(s.key)) < 0)
		return bad(err, "a key must be 64 hex digits, as sendbox key export prints them");
	if (!text_ok(name) || !text_ok(email) || name[0] == '\0')
		return bad(err, "a name must have 1 to 256 bytes without control characters");
	if (from < 0 || until < 0 || expires < 0 || revoked < 0)
		return bad(err, "times are seconds since 1970");
	s.name = (char *)(uintptr_t)name;
	s.email = (char *)(uintptr_t)email;
	s.valid_from = (uint64_t)from;
	s.valid_until = (uint64_t)until;
	s.expires = (uint64_t)expires;
	s.revoked = (uint64_t)revoked;
	r = sb_signers_add(to, &s);
	return r == -EEXIST ? bad(err, "two identities with one key or one name")
	       : r == -E2BIG ? bad(err, "more than 1024 identities")
			     : r;
}

static int require(const char *name, struct sb_signers *s, struct sb_err *err)
{
	char hex[65];

	for (size_t i = 0; name && i < s->n; i++) {
		sb_hex_write(s->v[i].key, 32, hex);
		if (strcmp(s->v[i].name, name) == 0 || strcmp(hex, name) == 0) {
			s->v[i].required = true;
			return 0;
		}
	}
	return bad(err, "required: each is the name or the key of an identity");
}

static int get_policy(json_t *o, struct sb_signers *s, struct sb_err *err)
{
	json_int_t threshold = 0;
	json_t *required = NULL;
	json_t *one;
	json_error_t e;
	int unsigned_ok = 0;
	size_t i;
	int r = 0;

	if (!o)
		return 0;
	if (json_unpack_ex(o, &e, JSON_STRICT, "{s?I,s?b,s?o}", "threshold", &threshold,
			   "allow_unsigned", &unsigned_ok, "required", &required) < 0)
		return bad(err, e.text);
	if (threshold < 0 || (uint64_t)threshold > s->n)
		return bad(err, "threshold: more than there are identities");
	if (unsigned_ok && (threshold > 0 || json_array_size(required) > 0))
		return bad(err, "allow_unsigned: not with a threshold or required signers");
	if (required && !json_is_array(required))
		return bad(err, "required: must be a list");
	s->threshold = (uint64_t)threshold;
	s->allow_unsigned = unsigned_ok != 0;
	json_array_foreach(required, i, one) {
		if (r == 0)
			r = require(json_string_value(one), s, err);
	}
	return r;
}

static int get_all(json_t *o, struct sb_signers *s, struct sb_err *err)
{
	const char *format = NULL;
	json_t *identities = NULL;
	json_t *policy = NULL;
	json_t *one;
	json_error_t e;
	int version = 0;
	size_t i;
	int r = 0;

	if (json_unpack_ex(o, &e, JSON_STRICT, "{s:s,s:i,s:o,s?o}", "format", &format, "version",
			   &version, "identities", &identities, "policy", &policy) < 0)
		return bad(err, e.text);
	if (strcmp(format, FORMAT) != 0 || version != SB_PROV_VERSION)
		return bad(err, "format must be \"" FORMAT "\", version 1");
	if (!json_is_array(identities))
		return bad(err, "identities: must be a list");
	json_array_foreach(identities, i, one) {
		if (r == 0)
			r = get_one(one, s, err);
	}
	return r < 0 ? r : get_policy(policy, s, err);
}

int sb_signers_parse(const char *bytes, size_t len, struct sb_signers *ret, struct sb_err *err)
{
	sb_autosigners struct sb_signers s = { .n = 0 };
	json_t *o;
	int r = sb_json_load("signers", bytes, len, SB_SIGNERS_FILE_MAX, 0, &o, err);

	if (r < 0)
		return r;
	r = get_all(o, &s, err);
	json_decref(o);
	if (r < 0)
		return r;
	*ret = s;
	s = (struct sb_signers){ .n = 0 };
	return 0;
}

/* ---- deciding ---- */

const char *sb_prov_verdict_text(enum sb_prov_verdict v)
{
	static const char *const texts[SB_PROV_VERDICTS] = {
		"the signature is not valid",
		"good",
		"it was made for other content",
		"of a signer who is not trusted here",
		"its signer was revoked",
		"made before its signer counted, or in the future",
		"made after its signer's time",
		"its signer has expired",
		"it has expired",
	};

	return v < SB_PROV_VERDICTS ? texts[v] : texts[0];
}

struct sb_signer *sb_signers_find(const struct sb_signers *s, const uint8_t fingerprint[32])
{
	for (size_t i = 0; i < s->n; i++)
		if (memcmp(s->v[i].fingerprint, fingerprint, 32) == 0)
			return &s->v[i];
	return NULL;
}

enum sb_prov_verdict sb_prov_judge(const struct sb_prov_sig *s, const uint8_t sha256[32],
				   const struct sb_signer *signer, bool valid, uint64_t now)
{
	if (signer && !valid)
		return SB_PROV_BAD;
	if (memcmp(s->sha256, sha256, 32) != 0)
		return SB_PROV_OTHER_FILE;
	if (!signer)
		return SB_PROV_UNKNOWN;
	if (signer->revoked)
		return SB_PROV_REVOKED;
	if (s->signed_at < signer->valid_from || s->signed_at > now + SB_PROV_SKEW_S)
		return SB_PROV_EARLY;
	if (signer->valid_until && s->signed_at > signer->valid_until)
		return SB_PROV_LATE;
	if (signer->expires && now >= signer->expires)
		return SB_PROV_SIGNER_EXPIRED;
	if (s->expires_at && now >= s->expires_at)
		return SB_PROV_EXPIRED;
	return SB_PROV_COUNTS;
}

/* Whether some signature of @who counts. */
static bool has_signed(const struct sb_prov_file *f, const enum sb_prov_verdict *verdicts,
		       const struct sb_signer *who)
{
	for (size_t i = 0; i < f->n; i++)
		if (verdicts[i] == SB_PROV_COUNTS && memcmp(f->sigs[i].signer, who->fingerprint, 32) == 0)
			return true;
	return false;
}

int sb_prov_decide(const struct sb_prov_file *f, const enum sb_prov_verdict *verdicts,
		   const struct sb_signers *s, struct sb_err *err)
{
	uint64_t n = 0;

	for (size_t i = 0; i < f->n; i++)
		if (verdicts[i] == SB_PROV_BAD || verdicts[i] == SB_PROV_OTHER_FILE)
			return sb_err_set(err, -EKEYREJECTED, "signature %zu: %s", i + 1,
					  sb_prov_verdict_text(verdicts[i]));
	for (size_t i = 0; i < s->n; i++) {
		bool has = has_signed(f, verdicts, &s->v[i]);

		if (s->v[i].required && !has)
			return sb_err_set(err, -EKEYREJECTED, "%.100s must have signed it, and has not",
					  s->v[i].name);
		n += has;
	}
	if (f->n == 0 && s->allow_unsigned)
		return 0;
	if (n < SB_MAX(s->threshold, 1U))
		return sb_err_set(err, -EKEYREJECTED, "%llu good signature%s, %llu needed",
				  (unsigned long long)n, n == 1 ? "" : "s",
				  (unsigned long long)SB_MAX(s->threshold, 1U));
	return 0;
}
