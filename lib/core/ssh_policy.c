/*
 * Theory of operation. A key signs logins, which is what RFC 4252 section 7 describes: the session's
 * identifier is part of what is signed, so a signature is good for that one session and no other.
 * Which host that session is with is known only by the host's own signature over the identifier
 * (session-bind), which the guest cannot make. So with hosts in the plan a login is signed for a
 * session that one of these hosts has vouched for, whatever the guest says; without hosts, for any
 * session.
 */
#include "core/ssh_policy.h"

#include <errno.h>
#include <string.h>

#include "base/base64.h"

static const struct {
	const char *name;
	const char *text;
} reasons[] = {
	[SB_SSH_OK] = { "ok", "allowed" },
	[SB_SSH_NOT_OFFERED] = { "key", "a key that is not offered" },
	[SB_SSH_WEAK] = { "algorithm", "SHA-1, or an algorithm that is not the key's" },
	[SB_SSH_NOT_A_LOGIN] = { "not-a-login", "the data is no login with this key" },
	[SB_SSH_NO_DATA] = { "data", "a signature over data, and ssh_agent.sign_data is false" },
	[SB_SSH_NOT_BOUND] = { "not-bound", "hosts are configured, and the client does not say which "
					    "host it logs in to (OpenSSH before 8.9, libssh2, ...)" },
	[SB_SSH_FORWARDED] = { "forwarded", "the connection is bound for forwarding only" },
	[SB_SSH_OTHER_SESSION] = { "session", "the login is for another session than was bound" },
	[SB_SSH_OTHER_HOST_KEY] = { "host-key", "the login names another host key than was bound" },
	[SB_SSH_HOST] = { "host", "a host that is not among ssh_agent.hosts" },
	[SB_SSH_BAD_BIND] = { "bind", "the host has not signed this session" },
	[SB_SSH_BIND_AGAIN] = { "bind-again", "the connection is bound already" },
	[SB_SSH_REQUEST] = { "request", "a request that the relay does not do" },
	[SB_SSH_MALFORMED] = { "malformed", "not the agent protocol" },
	[SB_SSH_AGENT] = { "agent", "the agent on the host refused or cannot be reached" },
	[SB_SSH_TOO_MANY] = { "too-many", "too many at a time" },
	[SB_SSH_NOT_RECORDED] = { "not-recorded", "it could not be recorded first" },
	[SB_SSH_NOT_APPROVED] = { "not-approved", "it was asked for (ssh_agent.ask), and not approved" },
};

const char *sb_ssh_reason_name(enum sb_ssh_reason r)
{
	_Static_assert(SB_ARRAY_LEN(reasons) == SB_SSH_N_REASONS, "a name for each");
	return (size_t)r < SB_ARRAY_LEN(reasons) ? reasons[r].name : NULL;
}

const char *sb_ssh_reason_text(enum sb_ssh_reason r)
{
	return (size_t)r < SB_ARRAY_LEN(reasons) ? reasons[r].text : "?";
}

void sb_ssh_fingerprint(const uint8_t sha256[SB_SSH_DIGEST], char out[SB_SSH_FINGERPRINT])
{
	char text[SB_BASE64_LEN(SB_SSH_DIGEST) + 1];

	sb_base64_write(sha256, SB_SSH_DIGEST, text);
	memcpy(out, "SHA256:", 7);
	memcpy(out + 7, text, 43); /* without the padding */
	out[SB_SSH_FINGERPRINT - 1] = '\0';
}

/* --- the plan's part --- */

const struct sb_plan_ssh_key *sb_plan_ssh_key(const struct sb_plan_ssh *p,
					      const uint8_t sha256[SB_SSH_DIGEST])
{
	for (size_t i = 0; i < p->n_keys; i++)
		if (memcmp(p->keys[i].sha256, sha256, SB_SSH_DIGEST) == 0)
			return &p->keys[i];
	return NULL;
}

const char *sb_plan_ssh_host(const struct sb_plan_ssh *p, const uint8_t sha256[SB_SSH_DIGEST])
{
	for (size_t i = 0; i < p->n_hosts; i++)
		if (memcmp(p->hosts[i].sha256, sha256, SB_SSH_DIGEST) == 0)
			return p->hosts[i].name;
	return NULL;
}

void sb_plan_ssh_done(struct sb_plan_ssh *p)
{
	for (size_t i = 0; i < p->n_keys; i++)
		free(p->keys[i].comment);
	for (size_t i = 0; i < p->n_hosts; i++)
		free(p->hosts[i].name);
	free(p->keys);
	free(p->hosts);
	*p = (struct sb_plan_ssh){ 0 };
}

static bool host_name_ok(const char *s)
{
	static const char ok[] = "abcdefghijklmnopqrstuvwxyz0123456789-._:[]%";

	return s && *s && strlen(s) <= 255 && s[strspn(s, ok)] == '\0' && *s != '-';
}

static bool comment_ok(const char *s)
{
	if (!s || strlen(s) > 256)
		return false;
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return false;
	return true;
}

static int check_host(const struct sb_plan_ssh *p, size_t i, struct sb_err *err)
{
	const struct sb_plan_ssh_host *h = &p->hosts[i];
	int order;

	if (!host_name_ok(h->name))
		return sb_err_set(err, -EINVAL, "plan refused: SSH host \"%.100s\": must be a name in "
				  "lower case, or [NAME]:PORT", h->name ? h->name : "");
	if (i == 0)
		return 0;
	order = strcmp(h[-1].name, h->name);
	if (order == 0)
		order = memcmp(h[-1].sha256, h->sha256, SB_SSH_DIGEST);
	return order < 0 ? 0
			 : sb_err_set(err, -EINVAL, "plan refused: SSH host \"%.100s\": a key is "
				      "there twice or not in sorted order", h->name);
}

int sb_plan_ssh_check(const struct sb_plan_ssh *p, struct sb_err *err)
{
	if (p->n_keys > SB_SSH_MAX_KEYS)
		return sb_err_set(err, -EINVAL, "plan refused: %zu SSH keys, at most %d are possible",
				  p->n_keys, SB_SSH_MAX_KEYS);
	if (p->n_hosts > SB_SSH_MAX_HOST_KEYS)
		return sb_err_set(err, -EINVAL, "plan refused: %zu keys of SSH hosts, at most %d are "
				  "possible", p->n_hosts, SB_SSH_MAX_HOST_KEYS);
	if (p->n_keys == 0 && (p->n_hosts > 0 || p->sign_data || p->ask))
		return sb_err_set(err, -EINVAL, "plan refused: SSH hosts without a key");
	for (size_t i = 0; i < p->n_keys; i++) {
		if (!comment_ok(p->keys[i].comment))
			return sb_err_set(err, -EINVAL, "plan refused: the comment of an SSH key must "
					  "be at most 256 bytes without control characters");
		if (i > 0 &&
		    memcmp(p->keys[i - 1].sha256, p->keys[i].sha256, SB_SSH_DIGEST) >= 0)
			return sb_err_set(err, -EINVAL, "plan refused: an SSH key is there twice or "
					  "not in sorted order");
	}
	for (size_t i = 0; i < p->n_hosts; i++) {
		int r = check_host(p, i, err);

		if (r < 0)
			return r;
	}
	return 0;
}

/* --- decisions --- */

static bool same_session(const struct sb_ssh_bind *b, const struct sb_ssh_str *session)
{
	return b->session_len == session->len && memcmp(b->session, session->p, session->len) == 0;
}

enum sb_ssh_reason sb_ssh_judge_bind(const struct sb_plan_ssh *p, struct sb_ssh_binds *binds,
				     const struct sb_ssh_request *q,
				     const uint8_t host_key[SB_SSH_DIGEST])
{
	struct sb_ssh_bind *b;

	sb_assert(q->session.len > 0 && q->session.len <= SB_SSH_SESSION_MAX);
	if (p->n_hosts > 0 && !sb_plan_ssh_host(p, host_key))
		return SB_SSH_HOST;
	for (size_t i = 0; i < binds->n; i++) {
		b = &binds->b[i];
		if (!b->forwarding)
			return SB_SSH_BIND_AGAIN;
		if (!same_session(b, &q->session))
			continue;
		if (memcmp(b->host_key, host_key, SB_SSH_DIGEST) == 0 && q->forwarding)
			return SB_SSH_OK;
		return SB_SSH_BIND_AGAIN;
	}
	if (binds->n == SB_SSH_MAX_BINDS)
		return SB_SSH_TOO_MANY;
	b = &binds->b[binds->n++];
	memcpy(b->session, q->session.p, q->session.len);
	b->session_len = (uint8_t)q->session.len;
	b->forwarding = q->forwarding;
	memcpy(b->host_key, host_key, SB_SSH_DIGEST);
	return SB_SSH_OK;
}

static bool rsa_flags_ok(const struct sb_ssh_str *type, uint32_t flags)
{
	static const struct sb_ssh_str sha256 = { (const uint8_t *)"rsa-sha2-256", 12 };
	static const struct sb_ssh_str sha512 = { (const uint8_t *)"rsa-sha2-512", 12 };

	return sb_ssh_fits(type, type, flags) || sb_ssh_fits(type, &sha256, flags) ||
	       sb_ssh_fits(type, &sha512, flags);
}

static enum sb_ssh_reason judge_login(const struct sb_plan_ssh *p,
				      const struct sb_ssh_binds *binds,
				      const struct sb_ssh_ask *ask)
{
	const struct sb_ssh_bind *last = binds->n > 0 ? &binds->b[binds->n - 1] : NULL;
	const struct sb_ssh_userauth *u = ask->login;

	if (!last)
		return p->n_hosts > 0 ? SB_SSH_NOT_BOUND : SB_SSH_OK;
	if (last->forwarding) /* who is behind it, nobody can say */
		return p->n_hosts > 0 ? SB_SSH_FORWARDED : SB_SSH_OK;
	if (!same_session(last, &u->session))
		return SB_SSH_OTHER_SESSION;
	if (u->host_key.p && memcmp(ask->login_host, last->host_key, SB_SSH_DIGEST) != 0)
		return SB_SSH_OTHER_HOST_KEY;
	return SB_SSH_OK;
}

enum sb_ssh_reason sb_ssh_judge_sign(const struct sb_plan_ssh *p, const struct sb_ssh_binds *binds,
				     const struct sb_ssh_ask *ask)
{
	const struct sb_ssh_userauth *u = ask->login;
	struct sb_ssh_key key;

	if (!sb_plan_ssh_key(p, ask->sha256) || sb_ssh_key(&ask->key, &key) < 0)
		return SB_SSH_NOT_OFFERED;
	if (!u && ask->data) {
		if (!p->sign_data)
			return SB_SSH_NO_DATA;
		return rsa_flags_ok(&key.type, ask->flags) ? SB_SSH_OK : SB_SSH_WEAK;
	}
	if (!u || u->key.len != ask->key.len || memcmp(u->key.p, ask->key.p, u->key.len) != 0)
		return SB_SSH_NOT_A_LOGIN;
	if (!sb_ssh_fits(&key.type, &u->algorithm, ask->flags))
		return SB_SSH_WEAK;
	return judge_login(p, binds, ask);
}
