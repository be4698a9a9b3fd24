/* The SSH agent protocol. What parses, written again, is what came; what is borrowed lies inside. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/ssh_agent.h"

static const uint8_t *from;
static size_t size_of;

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void inside(const struct sb_ssh_str *s)
{
	must(s->len == 0 || (s->p >= from && s->len <= size_of &&
			     (size_t)(s->p - from) <= size_of - s->len));
}

static void same(struct sb_buf *b, const struct sb_ssh_str *body)
{
	must(sb_buf_error(b) == 0 && b->len == body->len && memcmp(b->data, body->p, b->len) == 0);
	sb_buf_done(b);
}

static void put(struct sb_buf *b, const struct sb_ssh_str *s)
{
	inside(s);
	sb_ssh_put_str(b, s->p, s->len);
}

static void request(const struct sb_ssh_str *body)
{
	static const char bind[] = "session-bind@openssh.com";
	struct sb_ssh_request q;
	struct sb_buf b;
	int k = sb_ssh_request(body, &q);

	must(k == 0 || k == -EBADMSG);
	if (k < 0)
		return;
	sb_buf_init(&b, 1U << 20);
	sb_buf_add_u8(&b, q.type);
	must(q.type == body->p[0]);
	if (q.kind == SB_SSH_SIGN) {
		put(&b, &q.key);
		put(&b, &q.data);
		sb_ssh_put_u32(&b, q.flags);
	} else if (q.kind == SB_SSH_BIND) {
		sb_ssh_put_str(&b, bind, strlen(bind));
		put(&b, &q.host_key);
		put(&b, &q.session);
		put(&b, &q.signature);
		sb_buf_add_u8(&b, q.forwarding);
		must(q.session.len > 0 && q.session.len <= SB_SSH_SESSION_MAX);
	}
	if (q.kind == SB_SSH_OTHER)
		sb_buf_done(&b);
	else
		same(&b, body);
}

static void answers(const struct sb_ssh_str *body)
{
	struct sb_ssh_ids ids;
	struct sb_ssh_str key;
	struct sb_ssh_str comment;
	struct sb_ssh_sshsig data;
	struct sb_ssh_userauth u;
	struct sb_buf b;
	int k = sb_ssh_ids(body, &ids);

	sb_buf_init(&b, 1U << 20);
	if (k == 0) {
		sb_buf_add_u8(&b, SB_SSH_IDENTITIES_ANSWER);
		sb_ssh_put_u32(&b, ids.left);
		must(ids.left <= SB_SSH_IDS_MAX);
		while ((k = sb_ssh_ids_next(&ids, &key, &comment)) == 1) {
			put(&b, &key);
			put(&b, &comment);
		}
		if (k == 0)
			same(&b, body);
	}
	sb_buf_done(&b);
	if (sb_ssh_signed(body, &key) == 0)
		inside(&key);
	k = sb_ssh_userauth(body, &u);
	if (k == 0) {
		inside(&u.session);
		inside(&u.user);
		inside(&u.key);
		inside(&u.host_key);
	}
	must(sb_ssh_sshsig(body, &data) < 0 || k < 0); /* never both */
}

static void keys(const struct sb_ssh_str *body)
{
	static const struct sb_ssh_key some[] = { { .alg = SB_SSH_RSA }, { .alg = SB_SSH_ALG_NONE } };
	struct sb_ssh_key key = { 0 };
	struct sb_ssh_sig sig;

	if (sb_ssh_key(body, &key) == 0) {
		inside(&key.type);
		inside(&key.a);
		inside(&key.b);
		must(key.type.len > 0 && key.type.len <= 64);
		must(key.alg != SB_SSH_ED25519 || key.a.len == 32);
	}
	for (size_t i = 0; i < SB_ARRAY_LEN(some); i++)
		if (sb_ssh_sig(body, &some[i], &sig) == 0)
			inside(&sig.r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sb_ssh_str body = { data, size };
	struct sb_ssh_str framed = { 0 };
	int k = sb_ssh_frame(data, size, SB_SSH_REQUEST_MAX, &framed);

	from = data;
	size_of = size;
	must(k == 0 || k == SB_SSH_MORE || k == -EBADMSG);
	if (k == 0) {
		inside(&framed);
		must(framed.len > 0 && framed.len <= SB_SSH_REQUEST_MAX);
		request(&framed);
		answers(&framed);
	}
	request(&body);
	answers(&body);
	keys(&body);
	return 0;
}
