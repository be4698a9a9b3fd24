/*
 * Failure injection through the linker's --wrap. A test that uses it links this file and gets
 * `-Wl,--wrap=` for every function below.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include "t.h"

static unsigned int countdown;
static bool fired;

void t_fault_arm(unsigned int nth)
{
	countdown = nth;
	fired = false;
}

bool t_fault_fired(void)
{
	bool f = fired;

	countdown = 0;
	return f;
}

void t_fault_disarm(void)
{
	countdown = 0;
}

bool t_fault_hit(int err)
{
	if (countdown == 0 || --countdown > 0)
		return false;
	fired = true;
	errno = err;
	return true;
}

#define hit t_fault_hit
#define WRAP(ret, name, args, call, fail, err)                                                     \
	ret __real_##name args;                                                                    \
	ret __wrap_##name args;                                                                    \
	ret __wrap_##name args                                                                     \
	{                                                                                          \
		if (hit(err))                                                                      \
			return fail;                                                               \
		return __real_##name call;                                                         \
	}

WRAP(void *, malloc, (size_t n), (n), NULL, ENOMEM)
WRAP(void *, calloc, (size_t n, size_t s), (n, s), NULL, ENOMEM)
WRAP(void *, realloc, (void *p, size_t n), (p, n), NULL, ENOMEM)
WRAP(int, socket, (int d, int t, int p), (d, t, p), -1, EMFILE)
WRAP(int, socketpair, (int d, int t, int p, int *v), (d, t, p, v), -1, EMFILE)
WRAP(int, pipe2, (int *v, int f), (v, f), -1, EMFILE)
WRAP(int, epoll_create1, (int f), (f), -1, EMFILE)
WRAP(int, fsync, (int f), (f), -1, EIO)
WRAP(ssize_t, write, (int f, const void *b, size_t n), (f, b, n), -1, EIO)
WRAP(ssize_t, read, (int f, void *b, size_t n), (f, b, n), -1, EIO)
WRAP(int, renameat, (int a, const char *b, int c, const char *d), (a, b, c, d), -1, EIO)
WRAP(pid_t, fork, (void), (), -1, EAGAIN)

/* Taking a descriptor out needs no memory and does not fail. */
int __real_epoll_ctl(int e, int o, int f, struct epoll_event *v);
int __wrap_epoll_ctl(int e, int o, int f, struct epoll_event *v);
int __wrap_epoll_ctl(int e, int o, int f, struct epoll_event *v)
{
	if (o != EPOLL_CTL_DEL && hit(ENOMEM))
		return -1;
	return __real_epoll_ctl(e, o, f, v);
}

/* The name that a build with 64-bit offsets calls. */
int __real_openat64(int d, const char *p, int fl, mode_t m);
int __wrap_openat64(int d, const char *p, int fl, ...);
int __wrap_openat64(int d, const char *p, int fl, ...)
{
	mode_t m = 0;

	if (fl & (O_CREAT | __O_TMPFILE)) {
		va_list ap;

		va_start(ap, fl);
		m = va_arg(ap, mode_t);
		va_end(ap);
	}
	if (hit(EACCES))
		return -1;
	return __real_openat64(d, p, fl, m);
}
