#ifndef SB_WIRE_SSH_AGENT_H
#define SB_WIRE_SSH_AGENT_H
/*
 * The SSH agent protocol (draft-ietf-sshm-ssh-agent; OpenSSH PROTOCOL.agent for session-bind and
 * PROTOCOL for publickey-hostbound), as far as a relay must understand it, and what it carries: SSH
 * public keys, signatures (RFC 4253 6.6, RFC 5656 3.1, RFC 8709, RFC 8332) and the login request
 * that is signed (RFC 4252 section 7). One parser for both sides. Pure; everything found borrows
 * from the input; a length is checked before it is used; what is left over is malformed.
 */
#include "base/buf.h"

#define SB_SSH_HEAD 4              /* length of a message, big-endian */
#define SB_SSH_REQUEST_MAX 32768U  /* body of a client's message: a login with a certificate is below */
#define SB_SSH_ANSWER_MAX 262144U  /* body of an agent's: OpenSSH's own limit */
#define SB_SSH_IDS_MAX 2048U       /* keys of one agent */

enum sb_ssh_msg {
	SB_SSH_FAILURE = 5,
	SB_SSH_SUCCESS = 6,
	SB_SSH_REQUEST_IDENTITIES = 11,
	SB_SSH_IDENTITIES_ANSWER = 12,
	SB_SSH_SIGN_REQUEST = 13,
	SB_SSH_SIGN_RESPONSE = 14,
	SB_SSH_EXTENSION = 27,
};

struct sb_ssh_str {
	const uint8_t *p;
	size_t len;
};
bool sb_ssh_is(const struct sb_ssh_str *s, const char *text);

/* A whole message at @p? @body: it, without its length, at least one byte.
 * Return: 0; SB_SSH_MORE; -EBADMSG: empty or longer than @max. */
#define SB_SSH_MORE 1
SB_MUST_CHECK int sb_ssh_frame(const uint8_t *p, size_t len, size_t max, struct sb_ssh_str *body);

/* --- what a client asks for --- */
enum sb_ssh_kind {
	SB_SSH_OTHER = 0, /* anything that the relay does not do; only its type was looked at */
	SB_SSH_LIST,
	SB_SSH_SIGN,
	SB_SSH_BIND,      /* session-bind@openssh.com */
};
#define SB_SSH_SESSION_MAX 64 /* bytes of a session identifier: SHA-512 is the longest hash */
struct sb_ssh_request {
	enum sb_ssh_kind kind;
	uint8_t type;
	struct sb_ssh_str key;  /* SIGN */
	struct sb_ssh_str data;
	uint32_t flags;
	struct sb_ssh_str host_key; /* BIND */
	struct sb_ssh_str session;
	struct sb_ssh_str signature;
	bool forwarding;
};
/* Return: 0; -EBADMSG: empty, or a malformed LIST, SIGN or BIND. */
SB_MUST_CHECK int sb_ssh_request(const struct sb_ssh_str *body, struct sb_ssh_request *ret);

/* --- the data of a login --- */
struct sb_ssh_userauth {
	struct sb_ssh_str session;
	struct sb_ssh_str user;
	struct sb_ssh_str algorithm;
	struct sb_ssh_str key;
	struct sb_ssh_str host_key; /* publickey-hostbound-v00@openssh.com; else p = NULL */
};
/* Return: 0; -EBADMSG: it is anything else. */
SB_MUST_CHECK int sb_ssh_userauth(const struct sb_ssh_str *data, struct sb_ssh_userauth *ret);

/* What `ssh-keygen -Y sign` and git sign (OpenSSH PROTOCOL.sshsig): never a login, by its first bytes. */
struct sb_ssh_sshsig {
	struct sb_ssh_str namespace;
	struct sb_ssh_str hash;
};
/* Return: 0; -EBADMSG: it is anything else. */
SB_MUST_CHECK int sb_ssh_sshsig(const struct sb_ssh_str *data, struct sb_ssh_sshsig *ret);

/* --- an agent's answers --- */
struct sb_ssh_ids {
	struct sb_rd rd;
	uint32_t left;
};
/* Return: 0; -EBADMSG. */
SB_MUST_CHECK int sb_ssh_ids(const struct sb_ssh_str *body, struct sb_ssh_ids *ret);
/* Return: 1 = one more; 0 = that was all; -EBADMSG. */
SB_MUST_CHECK int sb_ssh_ids_next(struct sb_ssh_ids *ids, struct sb_ssh_str *key,
				  struct sb_ssh_str *comment);
/* @signature: its blob. Return: 0; -EBADMSG: it is anything else, a refusal too. */
SB_MUST_CHECK int sb_ssh_signed(const struct sb_ssh_str *body, struct sb_ssh_str *signature);

/* --- keys and signatures --- */
enum sb_ssh_alg {
	SB_SSH_ALG_NONE = 0, /* some other one */
	SB_SSH_ED25519,
	SB_SSH_RSA,
	SB_SSH_P256,
	SB_SSH_P384,
	SB_SSH_P521,
};
struct sb_ssh_key {
	enum sb_ssh_alg alg;
	struct sb_ssh_str type; /* the name of its type: 1 to 64 printable characters */
	struct sb_ssh_str a;    /* ed25519: 32 bytes; rsa: e; ecdsa: point */
	struct sb_ssh_str b;    /* rsa: n */
};
/* Of a key of another type only the name is looked at. Return: 0; -EBADMSG. */
SB_MUST_CHECK int sb_ssh_key(const struct sb_ssh_str *blob, struct sb_ssh_key *ret);
/* Whether a signature by a key of @type may be made for @algorithm with these flags of the agent
 * protocol; never SHA-1. */
bool sb_ssh_fits(const struct sb_ssh_str *type, const struct sb_ssh_str *algorithm, uint32_t flags);

enum sb_ssh_hash { SB_SSH_HASH_NONE = 0, SB_SSH_SHA256, SB_SSH_SHA384, SB_SSH_SHA512 };
struct sb_ssh_sig {
	enum sb_ssh_hash hash; /* ed25519: NONE */
	struct sb_ssh_str r;   /* ed25519: 64 bytes; rsa: all of it; ecdsa: r */
	struct sb_ssh_str s;   /* ecdsa */
};
/* A signature that belongs to @key. Return: 0; -EBADMSG: malformed, or of another kind. */
SB_MUST_CHECK int sb_ssh_sig(const struct sb_ssh_str *blob, const struct sb_ssh_key *key,
			     struct sb_ssh_sig *ret);

/* --- writing --- */
void sb_ssh_put_u32(struct sb_buf *b, uint32_t v);
void sb_ssh_put_str(struct sb_buf *b, const void *p, size_t len);
/* A whole message: its length, then @len bytes at @body. */
void sb_ssh_put_frame(struct sb_buf *b, const void *body, size_t len);

#endif
