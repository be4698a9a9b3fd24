#include "provenance.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "audit_note.h"
#include "base/fd.h"
#include "base/num.h"
#include "crypto/crypto.h"
#include "dirs.h"
#include "keys.h"

int provenance_sign(const struct sb_dirs *d, struct sb_prov_sig *s, struct sb_err *err)
{
	sb_autofree uint8_t *payload = NULL;
	uint8_t pub[32];
	uint8_t sec[64];
	size_t len = 0;
	int r = cli_host_key(d, pub, sec, err);

	if (r < 0)
		return r;
	sb_sha256(pub, sizeof(pub), s->signer);
	sb_random(s->id, sizeof(s->id));
	s->signed_at = (uint64_t)time(NULL);
	r = sb_prov_payload(s, &payload, &len);
	if (r == 0)
		sb_sign(payload, len, sec, s->signature);
	sb_wipe(sec, sizeof(sec));
	return r < 0 ? sb_err_set(err, r, "cannot be signed: %s", r == -EINVAL
				  ? "the name must be UTF-8 of 1 to 1024 bytes without control characters"
				  : strerror(-r)) : 0;
}

int provenance_note(const struct sb_dirs *d, const struct sb_prov_sig *s, struct sb_err *err)
{
	struct sb_audit_event e = { .kind = SB_AUDIT_PROVENANCE, .action = "sign", .subject = s->name };
	char sha256[65];
	char signer[65];

	sb_hex_write(s->sha256, 32, sha256);
	sb_hex_write(s->signer, 32, signer);
	sb_audit_put(&e, "kind", sb_prov_kind_name((enum sb_prov_kind)s->kind));
	sb_audit_put(&e, "sha256", sha256);
	sb_audit_put(&e, "signer", signer);
	return audit_note(d, &e, 1, err);
}

int provenance_digest(const char *path, uint8_t ret[32], struct sb_err *err)
{
	sb_autofd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	uint64_t len = 0;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return sb_err_set(err, -errno, "cannot read %.300s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return sb_err_set(err, -EINVAL, "%.300s is no regular file", path);
	r = sb_sha256_fd(fd, ret, &len);
	return r < 0 ? sb_err_set(err, r, "cannot read %.300s: %s", path, strerror(-r)) : 0;
}

/* @r: of sb_fd_read_file(); Return: the same */
static int not_read(const char *path, int r, struct sb_err *err)
{
	return sb_err_set(err, r, "cannot read %.300s: %s", path,
			  r == -EINVAL ? "it is no regular file" : strerror(-r));
}

int provenance_read(const char *path, struct sb_prov_file *ret, struct sb_err *err)
{
	sb_autofree char *text = NULL;
	struct sb_err why = { 0 };
	size_t len = 0;
	int r = sb_fd_read_file(AT_FDCWD, path, SB_PROV_FILE_MAX, &text, &len);

	if (r == -ENOENT)
		return r;
	if (r < 0)
		return not_read(path, r, err);
	r = sb_prov_parse(text, len, ret, &why);
	return r < 0 ? sb_err_set(err, r, "%.200s: %.250s", path, why.text) : 0;
}

static int add_line(int dir, const char *name, char *before, size_t before_len,
		    const struct sb_prov_sig *s)
{
	sb_autofree char *line = NULL;
	sb_autofree char *all = NULL;
	size_t len = 0;
	int r = sb_prov_line(s, &line, &len);

	if (r < 0)
		return r;
	all = malloc(before_len + len);
	if (!all)
		return -ENOMEM;
	if (before_len)
		memcpy(all, before, before_len);
	memcpy(all + before_len, line, len);
	return sb_fd_write_file(dir, name, all, before_len + len, 0644);
}

/* Those of other content never verify with @s. */
static int look_at(const struct sb_prov_file *f, const struct sb_prov_sig *s, const char *path,
		   struct sb_err *err)
{
	size_t others = 0;

	for (size_t i = 0; i < f->n; i++) {
		const struct sb_prov_sig *o = &f->sigs[i];

		if (memcmp(o->sha256, s->sha256, 32) != 0)
			others++;
		else if (memcmp(o->signer, s->signer, 32) == 0 && o->kind == s->kind &&
			 strcmp(o->name, s->name) == 0 && !o->expires_at && !s->expires_at && !o->n_meta && !s->n_meta)
			return 1;
	}
	return others == 0 ? 0
			   : sb_err_set(err, -EEXIST, "%.300s has %zu signatures of other content, with which nothing "
					"verifies: --replace removes them", path, others);
}

int provenance_room(const char *path, const struct sb_prov_sig *s, struct sb_err *err)
{
	sb_autoprov struct sb_prov_file f = { .n = 0 };
	int r = provenance_read(path, &f, err);

	return r == -ENOENT ? 0 : r < 0 ? r : look_at(&f, s, path, err);
}

/* The lines of those that are of the same content. */
static int keep_same(const struct sb_prov_file *f, const uint8_t sha256[32], char **before, size_t *len)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++) {
		sb_autofree char *line = NULL;
		size_t l = 0;
		int r = memcmp(f->sigs[i].sha256, sha256, 32) == 0 ? sb_prov_line(&f->sigs[i], &line, &l) : 0;

		if (r < 0)
			return r;
		sb_assert(n + l <= *len); /* they are lines of it, in order */
		if (l > 0)
			memmove(*before + n, line, l);
		n += l;
	}
	*len = n;
	return 0;
}

int provenance_append(const char *path, const struct sb_prov_sig *s, bool replace, struct sb_err *err)
{
	sb_autoprov struct sb_prov_file f = { .n = 0 };
	sb_autofree char *before = NULL;
	sb_autofree char *folder = strdup(path);
	char *slash = folder ? strrchr(folder, '/') : NULL;
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	sb_autofd int dir = -1;
	size_t len = 0;
	int r;

	if (!folder)
		return sb_err_set(err, -ENOMEM, "out of memory");
	if (slash)
		*(slash == folder ? slash + 1 : slash) = '\0';
	dir = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return sb_err_set(err, -errno, "cannot open the folder of %.300s: %s", path,
				  strerror(errno));
	r = sb_fd_read_file(dir, name, SB_PROV_FILE_MAX, &before, &len);
	if (r == 0)
		r = sb_prov_parse(before, len, &f, err);
	if (r < 0 && r != -ENOENT)
		return sb_err_set(err, r, "cannot add to %.300s: %s", path, strerror(-r));
	if (f.n == SB_PROV_MAX)
		return sb_err_set(err, -E2BIG, "%.300s has %d signatures already", path, SB_PROV_MAX);
	if (replace && f.n > 0)
		r = keep_same(&f, s->sha256, &before, &len);
	r = add_line(dir, name, before, r == 0 ? len : 0, s);
	return r < 0 ? sb_err_set(err, r, "cannot write %.300s: %s", path, strerror(-r)) : 0;
}

/* ---- signers ---- */

static void fingerprints(struct sb_signers *s)
{
	for (size_t i = 0; i < s->n; i++)
		sb_sha256(s->v[i].key, 32, s->v[i].fingerprint);
}

int provenance_own_signers(const struct sb_dirs *d, struct sb_signers *ret, struct sb_err *err)
{
	cli_autokeys struct cli_keys keys = { .list = { .n = 0 } };
	sb_autosigners struct sb_signers s = { .n = 0 };
	static char none[] = "";
	static char this_host[] = "this host";
	struct sb_signer own = { .name = none, .email = none };
	int r = cli_keys_load(d, &keys, err);

	if (r < 0)
		return r;
	memcpy(own.key, keys.current, 32);
	own.name = this_host;
	r = sb_signers_add(&s, &own);
	for (size_t i = 0; r == 0 && i < keys.list.n; i++) {
		const struct sb_key *k = &keys.list.keys[i];
		struct sb_signer one = { .name = none, .email = none, .valid_from = k->from,
					 .valid_until = k->until, .revoked = k->revoked };

		if (memcmp(k->key, keys.current, 32) == 0) {
			s.v[0].revoked = k->revoked;
			continue;
		}
		memcpy(one.key, k->key, 32);
		r = sb_signers_add(&s, &one);
		if (r == 0 && (k->name[0] || k->own)) { /* names need not differ here */
			free(s.v[s.n - 1].name);
			s.v[s.n - 1].name = strdup(k->own ? "this host, a former key" : k->name);
			r = s.v[s.n - 1].name ? 0 : -ENOMEM;
		}
	}
	if (r < 0)
		return sb_err_set(err, r, "the keys: %s", strerror(-r));
	fingerprints(&s);
	*ret = s;
	s = (struct sb_signers){ .n = 0 };
	return 0;
}

int provenance_signers_read(const char *path, struct sb_signers *ret, struct sb_err *err)
{
	sb_autofree char *text = NULL;
	struct sb_err why = { 0 };
	size_t len = 0;
	int r = sb_fd_read_file(AT_FDCWD, path, SB_SIGNERS_FILE_MAX, &text, &len);

	if (r < 0)
		return not_read(path, r, err);
	r = sb_signers_parse(text, len, ret, &why);
	if (r < 0)
		return sb_err_set(err, r, "%.200s: %.250s", path, why.text);
	fingerprints(ret);
	return 0;
}

int provenance_signers_key(const char *key, struct sb_signers *s, struct sb_err *err)
{
	static char none[] = "";
	struct sb_signer one = { .name = none, .email = none };
	int r = cli_key_read(key, one.key, err);

	if (r < 0)
		return r;
	r = sb_signers_add(s, &one);
	if (r < 0 && r != -EEXIST)
		return sb_err_set(err, r, "too many keys");
	fingerprints(s);
	return 0;
}

int provenance_verify(const struct sb_prov_file *f, const uint8_t sha256[32],
		      const struct sb_signers *s, enum sb_prov_verdict *verdicts, struct sb_err *err)
{
	uint64_t now = (uint64_t)time(NULL);

	for (size_t i = 0; i < f->n; i++) {
		const struct sb_prov_sig *sig = &f->sigs[i];
		const struct sb_signer *who = sb_signers_find(s, sig->signer);
		sb_autofree uint8_t *payload = NULL;
		size_t len = 0;
		int r = sb_prov_payload(sig, &payload, &len);

		if (r < 0)
			return sb_err_set(err, r, "signature %zu: %s", i + 1, strerror(-r));
		verdicts[i] = sb_prov_judge(sig, sha256, who,
					    who && sb_sign_verify(payload, len, sig->signature, who->key),
					    now);
	}
	return sb_prov_decide(f, verdicts, s, err);
}
