#ifndef SB_CORE_KEY_LIST_H
#define SB_CORE_KEY_LIST_H
/*
 * The keys whose plans a host believes, with the time in which each counts, and the floor: plans
 * made before it are not run again. Pure; kept by host/cli/keys.h.
 */
#include "base/err.h"

#define SB_KEYS_MAX 256
#define SB_KEYS_MAX_BYTES (128U << 10)
#define SB_KEY_NAME_MAX 64

struct sb_key {
	uint8_t key[32];
	uint64_t from;    /* plans made earlier do not count; 0 = always */
	uint64_t until;   /* plans made later do not count; 0 = no end */
	uint64_t revoked; /* when; 0 = not */
	bool own;         /* this host made it */
	char *name;       /* for people, may be empty; owned */
};
struct sb_key_list {
	struct sb_key *keys; /* sorted by key; owned */
	size_t n;
	uint64_t floor;
};

void sb_key_list_done(struct sb_key_list *l);
#define sb_autokeys SB_CLEANUP(sb_key_list_done)
/* Canonical bytes. @ret: malloc'd. Return: 0; -EINVAL; -ENOMEM. */
SB_MUST_CHECK int sb_key_list_write(const struct sb_key_list *l, char **ret, size_t *ret_len);
/* Strict inverse. Return: 0; -EBADMSG; -ENOMEM. */
SB_MUST_CHECK int sb_key_list_parse(const char *bytes, size_t len, struct sb_key_list *ret,
				    struct sb_err *err);
struct sb_key *sb_key_list_find(const struct sb_key_list *l, const uint8_t key[32]);
/* The entry for @key, made with an empty name if there is none. Return: NULL = full, no memory. */
struct sb_key *sb_key_list_add(struct sb_key_list *l, const uint8_t key[32]);

/*
 * sb_key_check - does @k (NULL = unknown) count for a plan made at @created?
 * @current: it is the host's key of today, which has no end
 * Return: 0; -EKEYREJECTED; -EKEYREVOKED; -EKEYEXPIRED. The text is in @err.
 */
SB_MUST_CHECK int sb_key_check(const struct sb_key *k, bool current, uint64_t created,
			       struct sb_err *err);

#endif
