#include "store/audit_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"

static const char prefix[] = "{\"format\":\"sendbox-audit\",\"version\":1,\"first\":";

int sb_audit_state_add(struct sb_audit_state *s, const char *line, size_t len,
		       struct sb_audit_record *rec, struct sb_err *err)
{
	struct sb_audit_record r;
	int k = sb_audit_parse(line, len, &r, err);

	if (k < 0)
		return k;
	if (r.seq != s->tree.n)
		return sb_err_set(err, -EBADMSG, "its number is %llu, and %llu comes next",
				  (unsigned long long)r.seq, (unsigned long long)s->tree.n);
	if (memcmp(r.prev, s->prev, sizeof(s->prev)) != 0)
		return sb_err_set(err, -EBADMSG, "the record before it is not the one that it names");
	sb_merkle_leaf(line, len, s->prev);
	sb_merkle_add(&s->tree, s->prev);
	if (rec)
		*rec = r;
	return 0;
}

void sb_audit_log_name(uint64_t first, char out[SB_AUDIT_FILE_NAME_ROOM])
{
	(void)snprintf(out, SB_AUDIT_FILE_NAME_ROOM, "log-%020llu", (unsigned long long)first);
}

bool sb_audit_log_first(const char *name, uint64_t *ret)
{
	char again[SB_AUDIT_FILE_NAME_ROOM];
	uint64_t v = 0;

	if (strlen(name) != SB_AUDIT_FILE_NAME_ROOM - 1 || strncmp(name, "log-", 4) != 0)
		return false;
	for (const char *p = name + 4; *p; p++)
		if (*p < '0' || *p > '9' || __builtin_mul_overflow(v, 10U, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return false;
	sb_audit_log_name(v, again);
	*ret = v;
	return strcmp(again, name) == 0;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

int sb_audit_log_list(int dir, uint64_t **ret, size_t *ret_n)
{
	sb_autofree uint64_t *list = NULL;
	size_t n = 0;
	size_t room = 0;
	const struct dirent *e;
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	int r;

	if (!d) {
		r = -errno;
		sb_fd_close(&fd);
		return r;
	}
	r = 0;
	for (errno = 0; r == 0 && (e = readdir(d)) != NULL; errno = 0) {
		uint64_t first;

		if (!sb_audit_log_first(e->d_name, &first))
			continue;
		if (n == room) {
			uint64_t *more = realloc(list, (room += 64) * sizeof(*list));

			if (!more) {
				r = -ENOMEM;
				break;
			}
			list = more;
		}
		list[n++] = first;
	}
	if (r == 0 && errno != 0)
		r = -errno;
	(void)closedir(d);
	if (r < 0)
		return r;
	if (n > 0)
		qsort(list, n, sizeof(*list), by_number);
	*ret = sb_take(&list);
	*ret_n = n;
	return 0;
}

/* ---- a state as text ---- */

/* ,"prev":"...","peaks":"..."} */
static size_t put_state(const struct sb_audit_state *s, char *out)
{
	size_t n = sb_merkle_peaks(s->tree.n);
	size_t at = 0;

	memcpy(out, ",\"prev\":\"", 9);
	at += 9;
	sb_hex_write(s->prev, SB_AUDIT_HASH, out + at);
	at += 2 * SB_AUDIT_HASH;
	memcpy(out + at, "\",\"peaks\":\"", 11);
	at += 11;
	sb_hex_write(s->tree.peak[0], n * SB_MERKLE_HASH, out + at);
	at += 2 * n * SB_MERKLE_HASH;
	memcpy(out + at, "\"}\n", 3);
	return at + 3;
}

size_t sb_audit_log_head(const struct sb_audit_state *s, char out[SB_AUDIT_LOG_LINE_MAX])
{
	int n = snprintf(out, SB_AUDIT_LOG_LINE_MAX, "%s%llu", prefix,
			 (unsigned long long)s->tree.n);

	sb_assert(n > 0);
	return (size_t)n + put_state(s, out + n);
}

static int take_num(const char **p, const char *end, uint64_t *ret)
{
	char text[24];
	size_t n = 0;

	while (*p < end && **p >= '0' && **p <= '9' && n + 1 < sizeof(text))
		text[n++] = *(*p)++;
	text[n] = '\0';
	return sb_num_u64(text, 0, UINT64_MAX, ret) < 0 ? -EBADMSG : 0;
}

static int take_hex(const char **p, size_t len, uint8_t *out)
{
	char text[2 * SB_AUDIT_HASH + 1];

	for (size_t at = 0; at < len; at += SB_AUDIT_HASH) {
		memcpy(text, *p, 2 * SB_AUDIT_HASH);
		text[2 * SB_AUDIT_HASH] = '\0';
		*p += 2 * SB_AUDIT_HASH;
		if (sb_hex_parse(text, out + at, SB_AUDIT_HASH) < 0)
			return -EBADMSG;
	}
	return 0;
}

/* @n was read; from ,"prev" to the brace */
static int take_state(const char *p, const char *end, uint64_t n, struct sb_audit_state *ret)
{
	size_t peaks = sb_merkle_peaks(n) * SB_MERKLE_HASH;
	const size_t want = 9 + 2 * SB_AUDIT_HASH + 11 + 2 * peaks + 2;
	struct sb_audit_state s = { .tree = { .n = n } };

	if ((size_t)(end - p) != want || memcmp(p, ",\"prev\":\"", 9) != 0)
		return -EBADMSG;
	p += 9;
	if (take_hex(&p, SB_AUDIT_HASH, s.prev) < 0 || memcmp(p, "\",\"peaks\":\"", 11) != 0)
		return -EBADMSG;
	p += 11;
	if (take_hex(&p, peaks, s.tree.peak[0]) < 0 || memcmp(p, "\"}", 2) != 0)
		return -EBADMSG;
	*ret = s;
	return 0;
}

int sb_audit_log_parse(const char *line, size_t len, struct sb_audit_state *ret)
{
	const char *end = line + len;
	const char *p = line + sizeof(prefix) - 1;
	uint64_t n;

	if (len < sizeof(prefix) || len >= SB_AUDIT_LOG_LINE_MAX ||
	    memcmp(line, prefix, sizeof(prefix) - 1) != 0 || take_num(&p, end, &n) < 0)
		return -EBADMSG;
	return take_state(p, end, n, ret);
}

/* ---- small files ---- */

int sb_audit_put_file(int dir, const char *name, const void *p, size_t len)
{
	char tmp[64];
	sb_autofd int fd = -1;
	int r;

	/* whoever writes one of these holds the lock: the name is nobody else's */
	(void)snprintf(tmp, sizeof(tmp), ".%s.new", name);
	fd = openat(dir, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	r = sb_fd_write_all(fd, p, len);
	if (r == 0 && renameat(dir, tmp, dir, name) < 0)
		r = -errno;
	return r;
}

static const char tail_prefix[] = "{\"format\":\"sendbox-audit-tail\",\"version\":1,\"n\":";

int sb_audit_tail_write(int dir, const struct sb_audit_tail *t)
{
	char out[SB_AUDIT_LOG_LINE_MAX + 128];
	int n = snprintf(out, sizeof(out), "%s%llu,\"first\":%llu,\"offset\":%llu", tail_prefix,
			 (unsigned long long)t->state.tree.n, (unsigned long long)t->first,
			 (unsigned long long)t->offset);

	sb_assert(n > 0 && (size_t)n < sizeof(out) - SB_AUDIT_LOG_LINE_MAX + 128);
	return sb_audit_put_file(dir, "tail", out, (size_t)n + put_state(&t->state, out + n));
}

static bool skip(const char **p, const char *end, const char *what)
{
	size_t n = strlen(what);

	if ((size_t)(end - *p) < n || memcmp(*p, what, n) != 0)
		return false;
	*p += n;
	return true;
}

int sb_audit_tail_read(int dir, struct sb_audit_tail *ret)
{
	sb_autofree char *text = NULL;
	struct sb_audit_tail t;
	size_t len = 0;
	const char *p;
	const char *end;
	uint64_t n;
	int r = sb_fd_read_own(dir, "tail", SB_AUDIT_LOG_LINE_MAX + 128, &text, &len);

	if (r < 0)
		return r;
	p = text;
	end = text + len;
	if (len == 0 || end[-1] != '\n')
		return -EBADMSG;
	end--;
	if (!skip(&p, end, tail_prefix) || take_num(&p, end, &n) < 0 ||
	    !skip(&p, end, ",\"first\":") || take_num(&p, end, &t.first) < 0 ||
	    !skip(&p, end, ",\"offset\":") || take_num(&p, end, &t.offset) < 0)
		return -EBADMSG;
	r = take_state(p, end, n, &t.state);
	if (r == 0)
		*ret = t;
	return r;
}

int sb_audit_head_read(int dir, const uint8_t pub[32], struct sb_audit_head *ret)
{
	sb_autofree char *text = NULL;
	size_t len = 0;
	int r = sb_fd_read_file(dir, "head", SB_AUDIT_HEAD_MAX, &text, &len);

	return r < 0 ? r : sb_audit_head_open(text, len, pub, ret, NULL);
}
