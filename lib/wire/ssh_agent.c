#include "wire/ssh_agent.h"

#include <errno.h>
#include <string.h>

#define USERAUTH_REQUEST 50 /* SSH_MSG_USERAUTH_REQUEST, RFC 4252 */
#define FLAG_SHA256 2U      /* SSH_AGENT_RSA_SHA2_256 */
#define FLAG_SHA512 4U
#define TYPE_MAX 64

static uint32_t be32(struct sb_rd *r)
{
	const uint8_t *p = sb_rd_bytes(r, 4);

	return p ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3] : 0;
}

static struct sb_ssh_str str(struct sb_rd *r)
{
	struct sb_ssh_str s = { .len = be32(r) };

	s.p = sb_rd_bytes(r, s.len);
	if (!s.p || r->bad)
		s = (struct sb_ssh_str){ 0 };
	return s;
}

static struct sb_rd reader(const struct sb_ssh_str *s)
{
	return (struct sb_rd){ .p = s->p, .len = s->len };
}

bool sb_ssh_is(const struct sb_ssh_str *s, const char *text)
{
	return s->len == strlen(text) && (s->len == 0 || memcmp(s->p, text, s->len) == 0);
}

int sb_ssh_frame(const uint8_t *p, size_t len, size_t max, struct sb_ssh_str *body)
{
	struct sb_rd r = { .p = p, .len = len };
	uint32_t n;

	if (len < SB_SSH_HEAD)
		return SB_SSH_MORE;
	n = be32(&r);
	if (n == 0 || n > max)
		return -EBADMSG;
	if (r.len < n)
		return SB_SSH_MORE;
	*body = (struct sb_ssh_str){ .p = p + SB_SSH_HEAD, .len = n };
	return 0;
}

/* --- requests --- */

static int bind_request(struct sb_rd *r, struct sb_ssh_request *q)
{
	uint8_t forwarding;

	q->kind = SB_SSH_BIND;
	q->host_key = str(r);
	q->session = str(r);
	q->signature = str(r);
	forwarding = sb_rd_u8(r);
	q->forwarding = forwarding == 1;
	if (q->host_key.len == 0 || q->signature.len == 0 || q->session.len == 0 ||
	    q->session.len > SB_SSH_SESSION_MAX || forwarding > 1)
		return -EBADMSG;
	return sb_rd_end(r);
}

int sb_ssh_request(const struct sb_ssh_str *body, struct sb_ssh_request *ret)
{
	struct sb_rd r = reader(body);
	struct sb_ssh_request q = { .type = sb_rd_u8(&r) };
	struct sb_ssh_str name;
	int k = 0;

	if (r.bad)
		return -EBADMSG;
	switch (q.type) {
	case SB_SSH_REQUEST_IDENTITIES:
		q.kind = SB_SSH_LIST;
		k = sb_rd_end(&r);
		break;
	case SB_SSH_SIGN_REQUEST:
		q.kind = SB_SSH_SIGN;
		q.key = str(&r);
		q.data = str(&r);
		q.flags = be32(&r);
		k = q.key.len == 0 ? -EBADMSG : sb_rd_end(&r);
		break;
	case SB_SSH_EXTENSION:
		name = str(&r);
		if (r.bad)
			k = -EBADMSG;
		else if (sb_ssh_is(&name, "session-bind@openssh.com"))
			k = bind_request(&r, &q);
		break;
	default:
		break;
	}
	if (k == 0)
		*ret = q;
	return k;
}

int sb_ssh_userauth(const struct sb_ssh_str *data, struct sb_ssh_userauth *ret)
{
	struct sb_rd r = reader(data);
	struct sb_ssh_userauth u = { .session = str(&r) };
	uint8_t type = sb_rd_u8(&r);
	struct sb_ssh_str service;
	struct sb_ssh_str method;
	bool bound;

	u.user = str(&r);
	service = str(&r);
	method = str(&r);
	bound = sb_ssh_is(&method, "publickey-hostbound-v00@openssh.com");
	if (type != USERAUTH_REQUEST || u.session.len == 0 || u.session.len > SB_SSH_SESSION_MAX ||
	    !sb_ssh_is(&service, "ssh-connection") || (!bound && !sb_ssh_is(&method, "publickey")) ||
	    sb_rd_u8(&r) != 1)
		return -EBADMSG;
	u.algorithm = str(&r);
	u.key = str(&r);
	if (bound)
		u.host_key = str(&r);
	if (u.algorithm.len == 0 || u.key.len == 0 || (bound && u.host_key.len == 0) ||
	    sb_rd_end(&r) < 0)
		return -EBADMSG;
	*ret = u;
	return 0;
}

int sb_ssh_sshsig(const struct sb_ssh_str *data, struct sb_ssh_sshsig *ret)
{
	struct sb_rd r = reader(data);
	const uint8_t *magic = sb_rd_bytes(&r, 6);
	struct sb_ssh_sshsig s = { .namespace = str(&r) };

	(void)str(&r); /* reserved */
	s.hash = str(&r);
	(void)str(&r); /* the hash of what is signed */
	if (!magic || memcmp(magic, "SSHSIG", 6) != 0 || sb_rd_end(&r) < 0 ||
	    s.namespace.len == 0 || (!sb_ssh_is(&s.hash, "sha256") && !sb_ssh_is(&s.hash, "sha512")))
		return -EBADMSG;
	*ret = s;
	return 0;
}

/* --- answers --- */

int sb_ssh_ids(const struct sb_ssh_str *body, struct sb_ssh_ids *ret)
{
	struct sb_rd r = reader(body);
	uint8_t type = sb_rd_u8(&r);
	uint32_t n = be32(&r);

	if (r.bad || type != SB_SSH_IDENTITIES_ANSWER || n > SB_SSH_IDS_MAX)
		return -EBADMSG;
	*ret = (struct sb_ssh_ids){ .rd = r, .left = n };
	return 0;
}

int sb_ssh_ids_next(struct sb_ssh_ids *ids, struct sb_ssh_str *key, struct sb_ssh_str *comment)
{
	if (ids->left == 0)
		return sb_rd_end(&ids->rd);
	ids->left--;
	*key = str(&ids->rd);
	*comment = str(&ids->rd);
	return ids->rd.bad || key->len == 0 ? -EBADMSG : 1;
}

int sb_ssh_signed(const struct sb_ssh_str *body, struct sb_ssh_str *signature)
{
	struct sb_rd r = reader(body);
	uint8_t type = sb_rd_u8(&r);
	struct sb_ssh_str s = str(&r);

	if (type != SB_SSH_SIGN_RESPONSE || s.len == 0 || sb_rd_end(&r) < 0)
		return -EBADMSG;
	*signature = s;
	return 0;
}

/* --- keys --- */

static const struct {
	const char *name;
	const char *curve; /* of ecdsa */
	enum sb_ssh_alg alg;
	enum sb_ssh_hash hash;
} types[] = {
	{ "ssh-ed25519", NULL, SB_SSH_ED25519, SB_SSH_HASH_NONE },
	{ "ssh-rsa", NULL, SB_SSH_RSA, SB_SSH_HASH_NONE },
	{ "ecdsa-sha2-nistp256", "nistp256", SB_SSH_P256, SB_SSH_SHA256 },
	{ "ecdsa-sha2-nistp384", "nistp384", SB_SSH_P384, SB_SSH_SHA384 },
	{ "ecdsa-sha2-nistp521", "nistp521", SB_SSH_P521, SB_SSH_SHA512 },
};

static bool printable(const struct sb_ssh_str *s)
{
	for (size_t i = 0; i < s->len; i++)
		if (s->p[i] <= 0x20 || s->p[i] >= 0x7f)
			return false;
	return s->len > 0 && s->len <= TYPE_MAX;
}

int sb_ssh_key(const struct sb_ssh_str *blob, struct sb_ssh_key *ret)
{
	struct sb_rd r = reader(blob);
	struct sb_ssh_key k = { .type = str(&r) };
	struct sb_ssh_str curve;
	size_t i = 0;

	if (!printable(&k.type))
		return -EBADMSG;
	while (i < SB_ARRAY_LEN(types) && !sb_ssh_is(&k.type, types[i].name))
		i++;
	if (i == SB_ARRAY_LEN(types)) {
		*ret = k;
		return 0;
	}
	k.alg = types[i].alg;
	if (types[i].curve) {
		curve = str(&r);
		if (!sb_ssh_is(&curve, types[i].curve))
			return -EBADMSG;
	}
	k.a = str(&r);
	if (k.alg == SB_SSH_RSA)
		k.b = str(&r);
	if (sb_rd_end(&r) < 0 || k.a.len == 0 || (k.alg == SB_SSH_RSA && k.b.len == 0) ||
	    (k.alg == SB_SSH_ED25519 && k.a.len != 32))
		return -EBADMSG;
	*ret = k;
	return 0;
}

/* The type without what makes it a certificate. */
static struct sb_ssh_str plain_type(const struct sb_ssh_str *type)
{
	static const char cert[] = "-cert-v01@openssh.com";
	const size_t n = sizeof(cert) - 1;
	struct sb_ssh_str s = *type;

	if (s.len > n && memcmp(s.p + s.len - n, cert, n) == 0)
		s.len -= n;
	return s;
}

bool sb_ssh_fits(const struct sb_ssh_str *type, const struct sb_ssh_str *algorithm, uint32_t flags)
{
	struct sb_ssh_str key = plain_type(type);
	struct sb_ssh_str alg = plain_type(algorithm);

	if ((key.len == type->len) != (alg.len == algorithm->len))
		return false;
	if (!sb_ssh_is(&key, "ssh-rsa"))
		return flags == 0 && key.len == alg.len && memcmp(key.p, alg.p, key.len) == 0;
	return (flags == FLAG_SHA256 && sb_ssh_is(&alg, "rsa-sha2-256")) ||
	       (flags == FLAG_SHA512 && sb_ssh_is(&alg, "rsa-sha2-512"));
}

int sb_ssh_sig(const struct sb_ssh_str *blob, const struct sb_ssh_key *key, struct sb_ssh_sig *ret)
{
	struct sb_rd r = reader(blob);
	struct sb_ssh_str type = str(&r);
	struct sb_ssh_str rest = str(&r);
	struct sb_ssh_sig s = { .r = rest };
	struct sb_rd in = reader(&rest);

	if (sb_rd_end(&r) < 0 || rest.len == 0)
		return -EBADMSG;
	if (key->alg == SB_SSH_RSA) {
		s.hash = sb_ssh_is(&type, "rsa-sha2-256")   ? SB_SSH_SHA256
			 : sb_ssh_is(&type, "rsa-sha2-512") ? SB_SSH_SHA512
							    : SB_SSH_HASH_NONE;
		if (s.hash == SB_SSH_HASH_NONE)
			return -EBADMSG;
		*ret = s;
		return 0;
	}
	if (key->alg == SB_SSH_ALG_NONE || type.len != key->type.len ||
	    memcmp(type.p, key->type.p, type.len) != 0)
		return -EBADMSG;
	if (key->alg == SB_SSH_ED25519) {
		if (rest.len != 64)
			return -EBADMSG;
		*ret = s;
		return 0;
	}
	for (size_t i = 0; i < SB_ARRAY_LEN(types); i++)
		if (types[i].alg == key->alg)
			s.hash = types[i].hash;
	s.r = str(&in);
	s.s = str(&in);
	if (sb_rd_end(&in) < 0 || s.r.len == 0 || s.s.len == 0)
		return -EBADMSG;
	*ret = s;
	return 0;
}

/* --- writing --- */

void sb_ssh_put_u32(struct sb_buf *b, uint32_t v)
{
	uint8_t be[4] = { (uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v };

	sb_buf_add(b, be, sizeof(be));
}

void sb_ssh_put_str(struct sb_buf *b, const void *p, size_t len)
{
	sb_assert(len <= UINT32_MAX);
	sb_ssh_put_u32(b, (uint32_t)len);
	sb_buf_add(b, p, len);
}

void sb_ssh_put_frame(struct sb_buf *b, const void *body, size_t len)
{
	sb_ssh_put_str(b, body, len);
}
