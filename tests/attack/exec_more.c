/*
 * More ways to start a program past a command policy, and races for it. The targets are copies of
 * exec_probe.c: one ends with 66 (denied) or 65 (allowed), whatever it is told. Prints a line.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif
#define TRIES 50

static char word[] = "x";
static char *words[] = { word, NULL };

/* --- ways; each in a child, which ends with 128 + errno when nothing runs --- */

/* Opened by the kernel's own thread or not: no system call "openat" is made. */
static int uring_open(const char *path)
{
	struct io_uring_params p = { 0 };
	int ring = (int)syscall(SYS_io_uring_setup, 4, &p);
	struct io_uring_sqe *sqe;
	char *sq;
	char *cq;

	if (ring < 0)
		return -1;
	sq = mmap(NULL, p.sq_off.array + p.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED, ring,
		  IORING_OFF_SQ_RING);
	cq = mmap(NULL, p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe),
		  PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_CQ_RING);
	sqe = mmap(NULL, p.sq_entries * sizeof(*sqe), PROT_READ | PROT_WRITE, MAP_SHARED, ring,
		   IORING_OFF_SQES);
	if (sq == MAP_FAILED || cq == MAP_FAILED || (void *)sqe == MAP_FAILED)
		return -1;
	*sqe = (struct io_uring_sqe){ .opcode = IORING_OP_OPENAT, .fd = AT_FDCWD,
				      .addr = (uint64_t)(uintptr_t)path, .open_flags = O_RDONLY };
	((uint32_t *)(void *)(sq + p.sq_off.array))[0] = 0;
	__atomic_store_n((uint32_t *)(void *)(sq + p.sq_off.tail), 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
		return -1;
	return ((struct io_uring_cqe *)(void *)(cq + p.cq_off.cqes))->res;
}
static void way_uring(const char *path)
{
	int fd = uring_open(path);

	if (fd >= 0)
		fexecve(fd, words, environ);
}
static void way_x32(const char *path)
{
	syscall(0x40000000L | 520, path, words, environ);
}
static void way_int80(const char *path)
{
#ifdef __x86_64__
	char *low = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	uint32_t argv[2];
	long r = 11;

	if (low == MAP_FAILED)
		return;
	(void)snprintf(low, 4096, "%s", path);
	argv[0] = (uint32_t)(uintptr_t)low;
	argv[1] = 0;
	memcpy(low + 4096, argv, sizeof(argv));
	__asm__ volatile("int $0x80"
			 : "+a"(r)
			 : "b"((long)(uintptr_t)low), "c"((long)(uintptr_t)(low + 4096)), "d"(0L)
			 : "memory", "r8", "r9", "r10", "r11");
	errno = (int)-r;
#else
	(void)path;
	errno = ENOSYS;
#endif
}

static int show(int status)
{
	if (WIFSIGNALED(status))
		printf("signal=%d\n", WTERMSIG(status));
	else if (WEXITSTATUS(status) >= 128)
		printf("errno=%s\n", strerrorname_np(WEXITSTATUS(status) - 128));
	else
		printf("exit=%d\n", WEXITSTATUS(status));
	return 0;
}
static int one_way(void (*fn)(const char *path), const char *path)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		fn(path);
		_exit(128 + errno);
	}
	return pid < 0 || waitpid(pid, &status, 0) != pid ? 1 : show(status);
}

/* --- races --- */

struct count {
	unsigned int first; /* allowed */
	unsigned int second; /* denied */
	unsigned int killed;
	unsigned int refused;
	unsigned int other;
};

static void add(struct count *c, int status)
{
	int e = WIFEXITED(status) ? WEXITSTATUS(status) : -1;

	if (e < 0)
		c->killed++;
	else if (e == 65)
		c->first++;
	else if (e == 66)
		c->second++;
	else if (e == 101)
		c->refused++;
	else
		c->other++;
}
static int told(const struct count *c)
{
	printf("first=%u second=%u killed=%u refused=%u other=%u\n", c->first, c->second, c->killed,
	       c->refused, c->other);
	return 0;
}

static char *path; /* what execve reads; somebody else writes it */
static const char *path_of[2];
static volatile unsigned int *round_now; /* writers of another one end */

static void flip_paths(void)
{
	const unsigned int mine = *round_now;

	for (unsigned int i = 0; *round_now == mine && i < 1U << 30; i++)
		memcpy(path, path_of[i & 1], strlen(path_of[i & 1]) + 1);
}
static int flip_process(void *arg)
{
	(void)arg;
	flip_paths();
	_exit(0);
}
static void *flip_thread(void *arg)
{
	flip_paths();
	return arg;
}
static void try_path(void)
{
	for (int i = 0; i < TRIES; i++)
		execve(path, words, environ);
	_exit(100 + (errno == EACCES));
}

/* Another process with the same memory writes; the caller of execve shares nothing else with it. */
static void race_vm(struct count *c)
{
	static char stack[65536] __attribute__((aligned(16)));
	int status;
	pid_t flipper;
	pid_t pid = fork();

	if (pid == 0) {
		flipper = clone(flip_process, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);
		if (flipper < 0)
			_exit(97);
		try_path();
	}
	if (pid > 0 && waitpid(pid, &status, 0) == pid)
		add(c, status);
}

/* The caller of execve is a child of vfork; a thread of its waiting parent writes. */
static void race_vfork(struct count *c)
{
	int status;
	pid_t pid = vfork();

	if (pid == 0)
		try_path();
	if (pid > 0 && waitpid(pid, &status, 0) == pid)
		add(c, status);
}

static int race(const char *how, char **a)
{
	bool vm = strcmp(how, "race-vm") == 0;
	struct count c = { 0 };
	pthread_t t;

	path_of[0] = a[0];
	path_of[1] = a[1];
	path = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	round_now = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (path == MAP_FAILED || (void *)(uintptr_t)round_now == MAP_FAILED)
		return 1;
	memcpy(path, path_of[0], strlen(path_of[0]) + 1);
	if (!vm && pthread_create(&t, NULL, flip_thread, NULL) != 0)
		return 1;
	for (int i = 0; i < atoi(a[2]); i++) {
		(vm ? race_vm : race_vfork)(&c);
		*round_now += vm;
	}
	*round_now += 1;
	return told(&c);
}

/* swap X Y N: two files exchange their names while one of them is started */
static int swap(char **a)
{
	struct count c = { 0 };
	pid_t flipper;

	round_now = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if ((void *)(uintptr_t)round_now == MAP_FAILED)
		return 1;
	path = a[0];
	flipper = fork();
	if (flipper == 0) {
		while (*round_now == 0)
			(void)syscall(SYS_renameat2, AT_FDCWD, a[0], AT_FDCWD, a[1], RENAME_EXCHANGE);
		_exit(0);
	}
	for (int i = 0; flipper > 0 && i < atoi(a[2]); i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			execve(path, words, environ);
			_exit(100 + (errno == EACCES));
		}
		if (pid > 0 && waitpid(pid, &status, 0) == pid)
			add(&c, status);
	}
	*round_now = 1;
	(void)waitpid(flipper, NULL, 0);
	return told(&c);
}

/* flood N PATH: refused again and again, each time with words of its own */
static int flood(char **a)
{
	unsigned int refused = 0;
	int n = atoi(a[0]);

	for (int i = 0; i < n; i++) {
		char text[32];
		char *argv[] = { a[1], text, NULL };

		(void)snprintf(text, sizeof(text), "%d", i);
		execve(a[1], argv, environ);
		refused += errno == EACCES;
	}
	printf("refused=%u\n", refused);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*fn)(const char *path);
	} ways[] = { { "uring", way_uring }, { "x32", way_x32 }, { "int80", way_int80 } };

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (argc == 3 && strcmp(argv[1], ways[i].name) == 0)
			return one_way(ways[i].fn, argv[2]);
	if (argc == 5 && strncmp(argv[1], "race-", 5) == 0)
		return race(argv[1], argv + 2);
	if (argc == 5 && strcmp(argv[1], "swap") == 0)
		return swap(argv + 2);
	if (argc == 4 && strcmp(argv[1], "flood") == 0)
		return flood(argv + 2);
	return 2;
}
