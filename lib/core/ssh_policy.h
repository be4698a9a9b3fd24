#ifndef SB_CORE_SSH_POLICY_H
#define SB_CORE_SSH_POLICY_H
/*
 * What the relay to the user's SSH agent may do, and the one place that decides it. Pure: digests
 * (SHA-256 of a key's blob, what OpenSSH shows as its fingerprint) are the caller's to compute, and
 * a bind's signature his to verify.
 */
#include "base/err.h"
#include "wire/ssh_agent.h"

#define SB_SSH_DIGEST 32
#define SB_SSH_MAX_KEYS 32
#define SB_SSH_MAX_HOSTS 64
#define SB_SSH_MAX_HOST_KEYS 256 /* of all hosts */
#define SB_SSH_MAX_CONNS 16      /* connections of the guest at a time */

struct sb_plan_ssh_key {
	uint8_t sha256[SB_SSH_DIGEST];
	char *comment; /* as the agent had it when the plan was made, for people */
};
struct sb_plan_ssh_host {
	char *name; /* as given: NAME or [NAME]:PORT; once for each of its keys */
	uint8_t sha256[SB_SSH_DIGEST];
};
struct sb_plan_ssh { /* no keys = no relay */
	struct sb_plan_ssh_key *keys; /* sorted by digest */
	size_t n_keys;
	struct sb_plan_ssh_host *hosts; /* sorted by name, then digest; none = any host */
	size_t n_hosts;
	bool sign_data; /* SSHSIG too: files, commits */
	bool ask;       /* each signature is asked for first */
};

enum sb_ssh_reason {
	SB_SSH_OK = 0,
	SB_SSH_NOT_OFFERED,    /* a key that the plan does not name */
	SB_SSH_WEAK,           /* SHA-1, or flags that do not belong to the key */
	SB_SSH_NOT_A_LOGIN,    /* neither a login with this key nor, where allowed, SSHSIG */
	SB_SSH_NO_DATA,        /* SSHSIG, and the plan does not allow it */
	SB_SSH_NOT_BOUND,      /* hosts are configured, and the client did not say which it is */
	SB_SSH_FORWARDED,      /* bound for forwarding alone */
	SB_SSH_OTHER_SESSION,  /* not the session that was bound last */
	SB_SSH_OTHER_HOST_KEY, /* hostbound to another key than the session's */
	SB_SSH_HOST,           /* a host key that belongs to none of the hosts */
	SB_SSH_BAD_BIND,       /* its signature is not the host's, or of a kind that is not known */
	SB_SSH_BIND_AGAIN,     /* bound for a login already, or that session to another key */
	SB_SSH_REQUEST,        /* a request that the relay does not do: add, remove, lock, ... */
	SB_SSH_MALFORMED,      /* not the agent protocol; the connection ends */
	SB_SSH_AGENT,          /* the user's agent refused, or cannot be reached */
	SB_SSH_TOO_MANY,       /* connections, or binds of one */
	SB_SSH_NOT_RECORDED,   /* nothing is signed that is not on record first */
	SB_SSH_NOT_APPROVED,   /* it was asked for, and the answer was no */
	SB_SSH_N_REASONS,
};
/* One word for events; NULL: no such reason. */
const char *sb_ssh_reason_name(enum sb_ssh_reason r);
/* For people. */
const char *sb_ssh_reason_text(enum sb_ssh_reason r);

#define SB_SSH_FINGERPRINT 51 /* "SHA256:" and 43 characters, as ssh-keygen -l shows it */
void sb_ssh_fingerprint(const uint8_t sha256[SB_SSH_DIGEST], char out[SB_SSH_FINGERPRINT]);

const struct sb_plan_ssh_key *sb_plan_ssh_key(const struct sb_plan_ssh *p,
					      const uint8_t sha256[SB_SSH_DIGEST]);
/* The name of the host that has this key; NULL: none of the plan. */
const char *sb_plan_ssh_host(const struct sb_plan_ssh *p, const uint8_t sha256[SB_SSH_DIGEST]);
void sb_plan_ssh_done(struct sb_plan_ssh *p);
/* Return: 0; -EINVAL with text. */
SB_MUST_CHECK int sb_plan_ssh_check(const struct sb_plan_ssh *p, struct sb_err *err);

#define SB_SSH_MAX_BINDS 16
struct sb_ssh_bind {
	uint8_t session[SB_SSH_SESSION_MAX];
	uint8_t session_len;
	bool forwarding;
	uint8_t host_key[SB_SSH_DIGEST];
};
struct sb_ssh_binds { /* of one connection, in their order */
	struct sb_ssh_bind b[SB_SSH_MAX_BINDS];
	size_t n;
};
/* A session-bind whose signature is valid; kept when it is allowed. */
enum sb_ssh_reason sb_ssh_judge_bind(const struct sb_plan_ssh *p, struct sb_ssh_binds *binds,
				     const struct sb_ssh_request *q,
				     const uint8_t host_key[SB_SSH_DIGEST]);

struct sb_ssh_ask {
	struct sb_ssh_str key; /* its blob, */
	uint8_t sha256[SB_SSH_DIGEST];
	uint32_t flags;
	const struct sb_ssh_userauth *login; /* NULL: the data is no login */
	uint8_t login_host[SB_SSH_DIGEST];   /* of login->host_key, if there is one */
	const struct sb_ssh_sshsig *data;    /* NULL: it is no SSHSIG */
};
enum sb_ssh_reason sb_ssh_judge_sign(const struct sb_plan_ssh *p, const struct sb_ssh_binds *binds,
				     const struct sb_ssh_ask *ask);

#endif
