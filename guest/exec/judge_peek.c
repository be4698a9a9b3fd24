/* Path and words of an execve, from the memory of the caller, which waits. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>

#include "exec/judge_i.h"

#define PAGE 4096U
#define BATCH 32 /* words read at a time, SLICE bytes each */
#define SLICE 128U
#define FIRST 256U /* bytes of path and of pointers read at first */

/* Up to the end of a page at a time, so that what is readable is read. Return: bytes; -EFAULT. */
static ssize_t peek(pid_t tid, uint64_t at, void *out, size_t len)
{
	struct iovec to = { .iov_base = out, .iov_len = len };
	struct iovec from[3];
	size_t n = 0;
	ssize_t r;

	while (len > 0 && n < SB_ARRAY_LEN(from)) {
		size_t one = SB_MIN(len, PAGE - (size_t)(at % PAGE));

		from[n++] = (struct iovec){ .iov_base = (void *)(uintptr_t)at, .iov_len = one };
		at += one;
		len -= one;
	}
	r = process_vm_readv(tid, &to, 1, from, n, 0);
	return r > 0 ? r : -EFAULT;
}

/* A string with its NUL. Return: its length without; -EFAULT; -E2BIG when @cap is too little. */
static ssize_t peek_string(pid_t tid, uint64_t at, char *out, size_t cap)
{
	size_t len = 0;

	while (len < cap) {
		ssize_t n = peek(tid, at + len, out + len, SB_MIN(cap - len, (size_t)PAGE));
		const char *nul;

		if (n < 0)
			return n;
		nul = memchr(out + len, '\0', (size_t)n);
		if (nul)
			return nul - out;
		len += (size_t)n;
	}
	return -E2BIG;
}

/* @got: how many are there already. Return: 0; -EFAULT; LOOK_TOO_LONG. */
static int peek_pointers(pid_t tid, uint64_t at, uint64_t *out, size_t got, size_t *ret_n)
{
	size_t n = 0;

	*ret_n = 0;
	if (at == 0)
		return 0;
	for (;;) {
		size_t want;
		ssize_t r;

		for (; n < got; n++) {
			if (out[n] == 0) {
				*ret_n = n;
				return 0;
			}
		}
		want = SB_MIN((size_t)1024, SB_CMD_MAX_ARGV + 1U - n);
		if (want == 0)
			return LOOK_TOO_LONG;
		r = peek(tid, at + n * 8, out + n, want * 8);
		if (r < 8)
			return -EFAULT;
		got = n + (size_t)r / 8;
	}
}

/* What mostly is all of path and pointers, in one call; what is missing is read again. */
size_t peek_both(const struct call *c, struct look *k, size_t *ret_name)
{
	struct iovec to[2] = { { k->name, SB_MIN(FIRST, PAGE - (size_t)(c->path % PAGE)) },
			       { k->pointers, SB_MIN(FIRST, PAGE - (size_t)(c->argv % PAGE)) } };
	const struct iovec from[2] = { { (void *)(uintptr_t)c->path, to[0].iov_len },
				       { (void *)(uintptr_t)c->argv, to[1].iov_len } };
	ssize_t n = process_vm_readv(c->tid, to, 2, from, c->argv ? 2 : 1, 0);
	size_t got = n > 0 ? (size_t)n : 0;

	*ret_name = SB_MIN(got, to[0].iov_len);
	return (got - *ret_name) / 8;
}

/* Short words of up to BATCH pointers at a time, each into its slice; a longer one by itself. */
static int peek_words(pid_t tid, struct look *k, size_t n)
{
	char slices[BATCH * SLICE];
	struct iovec from[BATCH];
	size_t used = 0;

	for (size_t i = 0; i < n;) {
		size_t m = SB_MIN(n - i, (size_t)BATCH);
		struct iovec to = { .iov_base = slices };
		size_t at = 0;
		ssize_t got;

		for (size_t w = 0; w < m; w++) {
			uint64_t p = k->pointers[i + w];

			from[w].iov_base = (void *)(uintptr_t)p;
			from[w].iov_len = SB_MIN(SLICE, PAGE - (size_t)(p % PAGE));
			to.iov_len += from[w].iov_len;
		}
		got = process_vm_readv(tid, &to, 1, from, m, 0);
		for (size_t w = 0; w < m; w++, i++) {
			size_t one = from[w].iov_len;
			const char *nul = got >= (ssize_t)(at + one)
						  ? memchr(slices + at, '\0', one)
						  : NULL;
			ssize_t len;

			if (used >= SB_CMD_MAX_ARGV_BYTES)
				return LOOK_TOO_LONG;
			if (nul) {
				len = nul - (slices + at);
				memcpy(k->words + used, slices + at, (size_t)len + 1);
			} else {
				len = peek_string(tid, k->pointers[i], k->words + used, MAX_WORD);
				if (len < 0)
					return (int)len;
			}
			k->argv[0][i] = k->words + used;
			used += (size_t)len + 1;
			at += one;
		}
	}
	return used > SB_CMD_MAX_ARGV_BYTES ? LOOK_TOO_LONG : 0;
}

int peek_argv(const struct call *c, struct look *k, size_t got)
{
	struct sb_cmd_request *q = &k->level[0];
	int r = peek_pointers(c->tid, c->argv, k->pointers, got, &q->argc);

	if (r == 0)
		r = peek_words(c->tid, k, q->argc);
	if (r != 0)
		return r;
	if (q->argc == 0) { /* the kernel gives it one, empty */
		k->words[0] = '\0';
		k->argv[0][q->argc++] = k->words;
	}
	k->argv[0][q->argc] = NULL;
	q->argv = k->argv[0];
	return 0;
}

/* @got: bytes of it that are there already. */
int peek_name(const struct call *c, struct look *k, size_t got)
{
	const char *nul = memchr(k->name, '\0', got);
	ssize_t n = nul ? nul - k->name : peek_string(c->tid, c->path, k->name, sizeof(k->name));

	if (n == -E2BIG)
		return -ENAMETOOLONG;
	if (n < 0)
		return (int)n;
	return n == 0 && !(c->flags & AT_EMPTY_PATH) ? -ENOENT : 0;
}
