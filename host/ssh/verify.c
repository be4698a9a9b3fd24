#include "crypto/crypto.h"
#include "crypto/pk.h"
#include "ssh.h"

static struct sb_pk_bytes bytes(const struct sb_ssh_str *s)
{
	return (struct sb_pk_bytes){ .p = s->p, .len = s->len };
}

static bool ecdsa(const struct sb_ssh_key *key, const struct sb_ssh_sig *sig,
		  enum sb_pk_curve curve, enum sb_pk_hash hash, const struct sb_ssh_str *data)
{
	const struct sb_pk_bytes point = bytes(&key->a);
	const struct sb_pk_bytes r = bytes(&sig->r);
	const struct sb_pk_bytes s = bytes(&sig->s);

	return sb_pk_ecdsa(curve, &point, hash, &r, &s, data->p, data->len);
}

static bool rsa(const struct sb_ssh_key *key, const struct sb_ssh_sig *sig,
		const struct sb_ssh_str *data)
{
	const struct sb_pk_bytes e = bytes(&key->a);
	const struct sb_pk_bytes n = bytes(&key->b);
	const struct sb_pk_bytes s = bytes(&sig->r);

	return sb_pk_rsa(&e, &n, sig->hash == SB_SSH_SHA512 ? SB_PK_SHA512 : SB_PK_SHA256, &s,
			 data->p, data->len);
}

bool bind_verified(const struct sb_ssh_request *q)
{
	struct sb_ssh_key key;
	struct sb_ssh_sig sig;

	if (sb_ssh_key(&q->host_key, &key) < 0 || sb_ssh_sig(&q->signature, &key, &sig) < 0)
		return false;
	switch (key.alg) {
	case SB_SSH_ED25519:
		return sb_sign_verify(q->session.p, q->session.len, sig.r.p, key.a.p);
	case SB_SSH_RSA:
		return rsa(&key, &sig, &q->session);
	case SB_SSH_P256:
		return ecdsa(&key, &sig, SB_PK_P256, SB_PK_SHA256, &q->session);
	case SB_SSH_P384:
		return ecdsa(&key, &sig, SB_PK_P384, SB_PK_SHA384, &q->session);
	case SB_SSH_P521:
		return ecdsa(&key, &sig, SB_PK_P521, SB_PK_SHA512, &q->session);
	case SB_SSH_ALG_NONE:
	default:
		return false;
	}
}
