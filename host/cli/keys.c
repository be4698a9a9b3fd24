#include "keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "audit_note.h"
#include "base/fd.h"
#include "base/num.h"
#include "crypto/crypto.h"
#include "dirs.h"

#define LIST "trusted.json"
#define ID_MIN 8

void cli_keys_done(struct cli_keys *k)
{
	sb_key_list_done(&k->list);
}

void cli_key_id(const uint8_t key[32], char out[CLI_KEY_ID_ROOM])
{
	sb_hex_write(key, (CLI_KEY_ID_ROOM - 1) / 2, out);
}

static int open_dir(const struct sb_dirs *d, int *ret, struct sb_err *err)
{
	char path[4200];

	(void)snprintf(path, sizeof(path), "%s/keys", d->state);
	*ret = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return *ret < 0 ? sb_err_set(err, -errno, "cannot open %s: %s", path, strerror(errno)) : 0;
}

static int load_list(int dir, struct sb_key_list *ret, struct sb_err *err)
{
	sb_autofree char *text = NULL;
	size_t len = 0;
	int r = sb_fd_read_own(dir, LIST, SB_KEYS_MAX_BYTES, &text, &len);

	*ret = (struct sb_key_list){ 0 };
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return sb_err_set(err, r, "cannot read keys/" LIST ": %s",
				  r == -EPERM ? SB_FD_NOT_OWN : strerror(-r));
	r = sb_key_list_parse(text, len, ret, err);
	return r < 0 ? sb_err_add(err, r, "keys/" LIST " is damaged; nothing is trusted until it is "
					  "restored or moved away") : 0;
}

int cli_keys_load(const struct sb_dirs *d, struct cli_keys *ret, struct sb_err *err)
{
	sb_autofd int dir = -1;
	uint8_t sec[64];
	int r = cli_host_key(d, ret->current, sec, err);

	sb_wipe(sec, sizeof(sec));
	if (r == 0)
		r = open_dir(d, &dir, err);
	return r < 0 ? r : load_list(dir, &ret->list, err);
}

int cli_keys_check(const struct cli_keys *k, const uint8_t key[32], uint64_t created,
		   struct sb_err *err)
{
	return sb_key_check(sb_key_list_find(&k->list, key),
			    memcmp(key, k->current, sizeof(k->current)) == 0, created, err);
}

/* ---- changes ---- */

struct change {
	struct cli_keys keys;
	int dir;
	int lock;
};

static void change_done(struct change *c)
{
	cli_keys_done(&c->keys);
	sb_fd_close(&c->lock);
	sb_fd_close(&c->dir);
}
#define autochange SB_CLEANUP(change_done)

/* Load under the lock, which is held until change_done. */
static int begin(const struct sb_dirs *d, struct change *c, struct sb_err *err)
{
	uint8_t sec[64];
	int r = cli_host_key(d, c->keys.current, sec, err); /* makes the directory, too */

	if (r == 0)
		r = open_dir(d, &c->dir, err);
	if (r < 0)
		goto out;
	c->lock = openat(c->dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (c->lock < 0 || flock(c->lock, LOCK_EX) < 0) {
		r = sb_err_set(err, -errno, "cannot lock keys/lock: %s", strerror(errno));
		goto out;
	}
	r = cli_host_key(d, c->keys.current, sec, err); /* it may be another one by now */
	if (r == 0)
		r = load_list(c->dir, &c->keys.list, err);
out:
	sb_wipe(sec, sizeof(sec));
	return r;
}

static int commit(const struct change *c, struct sb_err *err)
{
	sb_autofree char *text = NULL;
	size_t len = 0;
	int r = sb_key_list_write(&c->keys.list, &text, &len);

	if (r == 0)
		r = sb_fd_write_file(c->dir, LIST, text, len, 0600);
	return r < 0 ? sb_err_set(err, r, "cannot write keys/" LIST ": %s", strerror(-r)) : 0;
}

static int note(const struct sb_dirs *d, const char *action, const uint8_t key[32], const char *name,
		const uint8_t *former, uint64_t floor, struct sb_err *err)
{
	struct sb_audit_event e = { .kind = SB_AUDIT_KEY, .action = action };
	char hex[65];
	char old[65];

	sb_hex_write(key, 32, hex);
	e.subject = hex;
	if (name && *name)
		sb_audit_put(&e, "name", name);
	if (former) {
		sb_hex_write(former, 32, old);
		sb_audit_put(&e, "former", old);
	}
	if (floor)
		sb_audit_put_num(&e, "floor", floor);
	return audit_note(d, &e, 1, err);
}

static void raise_floor(struct sb_key_list *l)
{
	l->floor = SB_MAX(l->floor, (uint64_t)time(NULL));
}

/*
 * The list first, then what is signed anew, then the key: before the last the old key is still the current
 * one, for which an end does not count, and what the new one has signed counts, too, because it is in the list.
 */
int cli_keys_rotate(const struct sb_dirs *d, bool floor,
		    int (*resign)(void *arg, const uint8_t key[32], const uint8_t sec[64],
				  struct sb_err *err),
		    void *arg, uint8_t ret[32], struct sb_err *err)
{
	autochange struct change c = { .dir = -1, .lock = -1 };
	uint64_t now = (uint64_t)time(NULL);
	struct sb_key *k;
	uint8_t sec[64];
	int r = begin(d, &c, err);

	if (r < 0)
		return r;
	sb_sign_keypair(ret, sec);
	k = sb_key_list_add(&c.keys.list, c.keys.current);
	if (k) {
		k->own = true;
		k->until = now;
		k = sb_key_list_add(&c.keys.list, ret);
	}
	if (!k) {
		r = sb_err_set(err, -ENOSPC, "no room for another key (at most %d)", SB_KEYS_MAX);
	} else {
		k->own = true;
		k->from = now;
		if (floor)
			raise_floor(&c.keys.list);
		r = note(d, "rotate", ret, NULL, c.keys.current, c.keys.list.floor, err);
		if (r == 0)
			r = commit(&c, err);
	}
	if (r == 0 && resign)
		r = resign(arg, ret, sec, err);
	if (r == 0) {
		r = sb_fd_write_file(c.dir, CLI_KEY_NAME, sec, sizeof(sec), 0600);
		if (r < 0)
			(void)sb_err_set(err, r, "cannot write keys/" CLI_KEY_NAME ": %s",
					 strerror(-r));
	}
	sb_wipe(sec, sizeof(sec));
	return r;
}

int cli_keys_trust(const struct sb_dirs *d, const struct sb_key *in, struct sb_err *err)
{
	autochange struct change c = { .dir = -1, .lock = -1 };
	struct sb_key *k;
	char *name;
	int r = begin(d, &c, err);

	if (r < 0)
		return r;
	k = sb_key_list_find(&c.keys.list, in->key);
	if (memcmp(in->key, c.keys.current, 32) == 0 || (k && k->own))
		return sb_err_set(err, -EEXIST, "that is this host's own key");
	if (k && k->revoked)
		return sb_err_set(err, -EEXIST, "that key was revoked and cannot be trusted again");
	k = sb_key_list_add(&c.keys.list, in->key);
	name = k ? strdup(in->name) : NULL;
	if (!name)
		return sb_err_set(err, -ENOSPC, "no room for another key (at most %d)", SB_KEYS_MAX);
	free(k->name);
	k->name = name;
	k->from = in->from;
	k->until = in->until;
	r = note(d, "trust", in->key, in->name, NULL, 0, err);
	return r < 0 ? r : commit(&c, err);
}

int cli_keys_find(const struct cli_keys *k, const char *id, uint8_t ret[32], struct sb_err *err)
{
	const uint8_t *found = NULL;
	size_t n = 0;
	char hex[65];

	if (!id) {
		memcpy(ret, k->current, 32);
		return 0;
	}
	if (strlen(id) < ID_MIN || strlen(id) > 64 ||
	    id[strspn(id, "0123456789abcdef")] != '\0')
		return sb_err_set(err, -EINVAL,
				  "\"%.64s\": a key is named by the first hex digits of it, at least "
				  "%d: see sendbox key list", id, ID_MIN);
	for (size_t i = 0; i <= k->list.n; i++) {
		const uint8_t *key = i < k->list.n ? k->list.keys[i].key : k->current;

		sb_hex_write(key, 32, hex);
		if (strncmp(hex, id, strlen(id)) != 0 || (found && memcmp(found, key, 32) == 0))
			continue;
		if (i == k->list.n && sb_key_list_find(&k->list, key))
			continue;
		found = key;
		n++;
	}
	if (n != 1)
		return sb_err_set(err, n ? -ENOTUNIQ : -ENOENT, "%s key begins with \"%.64s\": see "
				  "sendbox key list", n ? "more than one" : "no", id);
	memcpy(ret, found, 32);
	return 0;
}

int cli_keys_revoke(const struct sb_dirs *d, const char *id, uint8_t ret[32], struct sb_err *err)
{
	autochange struct change c = { .dir = -1, .lock = -1 };
	struct sb_key *k;
	int r = begin(d, &c, err);

	if (r == 0)
		r = cli_keys_find(&c.keys, id, ret, err);
	if (r < 0)
		return r;
	if (memcmp(ret, c.keys.current, 32) == 0)
		return sb_err_set(err, -EBUSY, "that is the key of today: run sendbox key rotate first, "
				  "then revoke it");
	k = sb_key_list_find(&c.keys.list, ret);
	sb_assert(k);
	if (!k->revoked)
		k->revoked = (uint64_t)time(NULL);
	raise_floor(&c.keys.list);
	r = note(d, "revoke", ret, k->name, NULL, c.keys.list.floor, err);
	return r < 0 ? r : commit(&c, err);
}

int cli_key_read(const char *path, uint8_t ret[32], struct sb_err *err)
{
	sb_autofree char *text = NULL;
	size_t len = 0;
	int r = sb_fd_read_file(AT_FDCWD, path, 128, &text, &len);

	/* what sendbox key export prints, pasted */
	if (r == -ENOENT && strlen(path) == 64 && sb_hex_parse(path, ret, 32) == 0)
		return 0;
	if (r < 0 && r != -EFBIG)
		return sb_err_set(err, r, "cannot read %.300s: %s", path, strerror(-r));
	if (r == 0 && len == 32) {
		memcpy(ret, text, 32);
		return 0;
	}
	if (r == 0 && len == 65 && text[64] == '\n')
		text[--len] = '\0';
	if (r < 0 || len != 64 || sb_hex_parse(text, ret, 32) < 0)
		return sb_err_set(err, -EINVAL,
				  "%.300s is no public key: 64 hex digits, as sendbox key export "
				  "prints them, or 32 bytes", path);
	return 0;
}
