/*
 * Whether the log is true: verify reads all of it and compares it with signed heads, prove makes
 * proofs that others can check, head gives a head away so that a later log can be held against it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "audit_key.h"
#include "base/base64.h"
#include "base/fd.h"
#include "base/num.h"
#include "cli.h"
#include "cmd_audit.h"
#include "crypto/crypto.h"
#include "publish.h"
#include "store/audit_heads.h"
#include "store/audit_verify.h"

/* Those of a file. @own: history beside the log; else it is to have one that was signed with @pub. */
static int add_heads(struct sb_audit_heads *h, int dir, const char *path, const uint8_t pub[32], bool own,
		     struct sb_err *err)
{
	size_t before = h->n;
	int r = sb_audit_heads_read(h, dir, path, own, pub);

	if (r == -ENOENT && own)
		return 0;
	if (r < 0)
		return sb_err_set(err, r, "%.300s: %s", path, strerror(-r));
	if (h->n == before && !own)
		return sb_err_set(err, -EKEYREJECTED, "%.300s holds no head that was signed with this key",
				  path);
	return 0;
}

static int find_key(const struct audit_args *a, const struct cli_dirs *dirs, uint8_t pub[32],
		    struct sb_err *err)
{
	sb_autofree char *text = NULL;
	size_t len = 0;

	if (!a->key && a->dir)
		return sb_err_set(err, -EINVAL, "--dir needs --key: the public key of that log, as sendbox "
						"audit head --public-key prints it there");
	if (!a->key)
		return audit_public(&dirs->d, pub, err);
	if (sb_audit_vkey_parse(a->key, pub) == 0)
		return 0;
	if (sb_fd_read_file(AT_FDCWD, a->key, 256, &text, &len) == 0) {
		text[strcspn(text, "\r\n")] = '\0';
		if (sb_audit_vkey_parse(text, pub) == 0)
			return 0;
	}
	return sb_err_set(err, -EINVAL, "--key \"%.100s\": no public key of an audit log, and no file with "
					"one", a->key);
}

/* Key, folder and heads: what the log brings, and what was kept elsewhere. */
static int open_all(const struct audit_args *a, const struct cli_dirs *dirs, uint8_t pub[32],
		    int *dir, struct sb_audit_heads *h, struct sb_err *err)
{
	int r = find_key(a, dirs, pub, err);

	if (r == 0)
		r = cmd_audit_dir(a, dirs, dir, err);
	if (r == 0) /* first: these are thinned, those that were given are not */
		r = add_heads(h, *dir, "heads", pub, true, err);
	if (r == 0)
		r = add_heads(h, *dir, "head", pub, true, err);
	for (size_t i = 0; r == 0 && i < a->n_heads; i++)
		r = add_heads(h, AT_FDCWD, a->heads[i], pub, false, err);
	sb_audit_heads_sort(h);
	return r;
}

/* ---- verify ---- */

static int tell(const struct audit_args *a, const struct sb_audit_report *rep, const struct sb_audit_heads *h)
{
	char root[SB_BASE64_LEN(32) + 1];
	uint64_t covered = h->n > 0 ? h->list[h->n - 1].n : 0;
	char gone[64] = "";

	if (rep->first > 0)
		(void)snprintf(gone, sizeof(gone), "the first %llu are gone, ", (unsigned long long)rep->first);
	sb_base64_write(rep->root, 32, root);
	if (a->json && rep->good)
		printf("{\"ok\":true,\"records\":%llu,\"first\":%llu,\"signed\":%llu,\"root\":\"%s\"}\n",
		       (unsigned long long)rep->n, (unsigned long long)rep->first,
		       (unsigned long long)covered, root);
	else if (a->json)
		printf("{\"ok\":false,\"record\":%llu,\"from\":%llu,\"file\":\"%s\",\"offset\":%llu,"
		       "\"reason\":\"%s\"}\n",
		       (unsigned long long)rep->bad, (unsigned long long)rep->bad_from, rep->file,
		       (unsigned long long)rep->offset, rep->text);
	else if (rep->good)
		printf("good: %llu records, %s%llu of them covered by a signed head; root %s\n",
		       (unsigned long long)rep->n, gone, (unsigned long long)covered, root);
	else
		printf("bad: record %llu (%s, byte %llu): %s\n", (unsigned long long)rep->bad, rep->file,
		       (unsigned long long)rep->offset, rep->text);
	if (fflush(stdout) != 0)
		return SB_EXIT_WRITE;
	return rep->good ? SB_EXIT_OK : SB_EXIT_NO;
}

int cmd_audit_verify(const struct audit_args *a, const struct cli_dirs *dirs, struct sb_err *err)
{
	struct sb_audit_report rep;
	sb_autoheads struct sb_audit_heads h = { 0 };
	sb_autofd int dir = -1;
	uint8_t pub[32];
	int r = open_all(a, dirs, pub, &dir, &h, err);

	if (r == 0 && h.n == 0)
		r = sb_err_set(err, -ENOENT, "no signed head is there, so nobody can tell what is missing: "
					     "give one with --head");
	if (r == 0)
		r = sb_audit_verify(dir, h.list, h.n, a->filter.from, &rep, err);
	if (r == 0)
		r = tell(a, &rep, &h);
	return r;
}

/* ---- prove ---- */

static void put_hash(json_t *to, const uint8_t p[32])
{
	char text[SB_BASE64_LEN(32) + 1];

	sb_base64_write(p, 32, text);
	(void)json_array_append_new(to, json_string(text));
}

struct proof {
	struct sb_merkle_range ranges[SB_MERKLE_PEAKS + 2];
	uint8_t hashes[SB_MERKLE_PEAKS + 2][SB_MERKLE_HASH];
	size_t n;
	uint8_t leaf[SB_MERKLE_HASH];
	char *line; /* owned */
};

static int print_proof(const struct audit_args *a, const struct proof *p, uint64_t m, uint64_t n)
{
	const uint8_t *root = p->hashes[p->n];
	json_t *hashes = json_array();
	char b64[2][SB_BASE64_LEN(32) + 1];
	bool old = !a->what;
	json_t *o;
	char *text;

	for (size_t i = 0; i < p->n; i++)
		put_hash(hashes, p->hashes[i]);
	sb_base64_write(root, 32, b64[0]);
	sb_base64_write(old ? p->hashes[p->n + 1] : p->leaf, 32, b64[1]);
	o = json_pack("{s:s,s:I,s:I,s:s,s:s,s:o,s:s*}", "proof", old ? "consistency" : "inclusion",
		      old ? "old_size" : "record", (json_int_t)m, "size", (json_int_t)n, "root", b64[0],
		      old ? "old_root" : "leaf", b64[1], "hashes", hashes, "line", p->line);
	text = o ? json_dumps(o, JSON_COMPACT) : NULL;
	if (text)
		(void)puts(text);
	free(text);
	json_decref(o);
	return text && fflush(stdout) == 0 ? SB_EXIT_OK : SB_EXIT_WRITE;
}

/* What is proved, and in which tree. Return: 0; -EINVAL, -ENOENT with text. */
static int question(const struct audit_args *a, int dir, uint64_t *m, uint64_t *n, struct sb_err *err)
{
	sb_autofree char *text = NULL;
	size_t len = 0;
	char *line;

	*m = a->filter.from;
	if (a->what && sb_num_u64(a->what, 0, INT64_MAX, m) < 0)
		return sb_err_set(err, -EINVAL, "prove: \"%.60s\" is no record's number", a->what);
	*n = a->size;
	if (*n == 0) { /* the newest head's; it need not be verified here: who has the proof does it */
		if (sb_fd_read_file(dir, "head", SB_AUDIT_HEAD_MAX, &text, &len) < 0 ||
		    !(line = strchr(text, '\n')))
			return sb_err_set(err, -ENOENT, "there is no head yet: say --size");
		line[1 + strcspn(line + 1, "\n")] = '\0';
		if (sb_num_u64(line + 1, 1, INT64_MAX, n) < 0)
			return sb_err_set(err, -EBADMSG, "the head is damaged: say --size");
	}
	if (a->what ? *m >= *n : *m == 0 || *m > *n)
		return sb_err_set(err, -EINVAL, "prove: %llu is not in a log of %llu records",
				  (unsigned long long)*m, (unsigned long long)*n);
	return 0;
}

int cmd_audit_prove(const struct audit_args *a, const struct cli_dirs *dirs, struct sb_err *err)
{
	static struct proof p;
	sb_autofd int dir = -1;
	uint64_t m = 0;
	uint64_t n = 0;
	bool good;
	int r = cmd_audit_dir(a, dirs, &dir, err);

	if (r == 0)
		r = question(a, dir, &m, &n, err);
	if (r < 0)
		return r;
	p.n = a->what ? sb_merkle_path(m, n, p.ranges) : sb_merkle_growth(m, n, p.ranges);
	p.ranges[p.n] = (struct sb_merkle_range){ 0, n };
	p.ranges[p.n + 1] = (struct sb_merkle_range){ 0, a->what ? 0 : m };
	r = sb_audit_hashes(dir, n, p.ranges, p.n + 2, p.hashes, m, a->what ? p.leaf : NULL,
			    a->what ? &p.line : NULL, err);
	if (r < 0)
		return r;
	good = a->what ? sb_merkle_has(p.leaf, m, n, p.hashes[p.n],
				       (const uint8_t(*)[32])p.hashes, p.n)
		       : sb_merkle_grew(m, p.hashes[p.n + 1], n, p.hashes[p.n],
					(const uint8_t(*)[32])p.hashes, p.n);
	if (!good)
		return sb_err_set(err, -EIO, "the proof proves nothing: an error in sendbox");
	r = print_proof(a, &p, m, n);
	free(sb_take(&p.line));
	return r;
}

/* ---- head ---- */

int cmd_audit_head(const struct audit_args *a, const struct cli_dirs *dirs, struct sb_err *err)
{
	sb_autofree char *text = NULL;
	char vkey[SB_AUDIT_VKEY_ROOM];
	struct sb_audit_head h;
	sb_autofd int dir = -1;
	size_t len = 0;
	uint8_t pub[32];
	int r = find_key(a, dirs, pub, err);

	if (r < 0)
		return r;
	if (a->vkey) {
		sb_audit_vkey(pub, vkey);
		printf("%s\n", vkey);
		return fflush(stdout) == 0 ? SB_EXIT_OK : SB_EXIT_WRITE;
	}
	r = cmd_audit_dir(a, dirs, &dir, err);
	if (r == 0) {
		r = sb_fd_read_file(dir, "head", SB_AUDIT_HEAD_MAX, &text, &len);
		if (r == 0)
			r = sb_audit_head_open(text, len, pub, &h, NULL);
		if (r < 0)
			(void)sb_err_set(err, r, "the audit log has no head of its key: %s", strerror(-r));
	}
	if (r == 0 && a->append && publish_append(a->append, text, len, err) < 0)
		r = -EIO;
	if (r == 0 && a->command) { /* of the user's own, as the user: nothing of a session reaches it */
		const char *const argv[] = { "/bin/sh", "-c", a->command, NULL };

		r = publish_feed(argv, text, len, err);
	}
	if (r < 0)
		return r;
	if (!a->append && !a->command)
		(void)fwrite(text, 1, len, stdout);
	return fflush(stdout) == 0 ? SB_EXIT_OK : SB_EXIT_WRITE;
}
