/*
 * Ways to start a program, each tried in a child. Prints one line: "exit=N", "errno=NAME" or
 * "signal=N" for how it went; the races print counts of each.
 *
 * Copies of this program are the targets: one with a "d" at the end of the file ends with 66, one with
 * an "a" there with 65, whatever they are told.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char **words; /* argv of the target */

static const char *errno_text(int e)
{
	const char *n = strerrorname_np(e);

	return n ? n : "?";
}

/* What follows the program in its file says who it is, under whatever name. */
static void target(void)
{
	struct stat st;
	char last = '\0';
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0 || pread(fd, &last, 1, st.st_size - 1) != 1)
		return;
	(void)close(fd);
	if (last == 'd')
		_exit(66);
	if (last == 'a')
		_exit(65);
}

/* --- ways --- */

static void way_run(char **a)
{
	execve(a[0], words, environ);
}
static void way_at(char **a) /* DIR/NAME */
{
	char *slash = strrchr(a[0], '/');
	int dir;

	*slash = '\0';
	dir = open(a[0], O_PATH | O_DIRECTORY);
	syscall(SYS_execveat, dir, slash + 1, words, environ, 0);
}
static void way_relative(char **a)
{
	char *slash = strrchr(a[0], '/');

	*slash = '\0';
	if (chdir(a[0]) == 0)
		execve(slash + 1, words, environ);
}
static void way_empty(char **a)
{
	int fd = open(a[0], O_PATH | O_CLOEXEC);

	syscall(SYS_execveat, fd, "", words, environ, AT_EMPTY_PATH);
}
static void way_fexecve(char **a)
{
	int fd = open(a[0], O_RDONLY);

	fexecve(fd, words, environ);
}
static void way_nofollow(char **a)
{
	syscall(SYS_execveat, AT_FDCWD, a[0], words, environ, AT_SYMLINK_NOFOLLOW);
}
static int memory_copy(const char *path)
{
	const char *name = strrchr(path, '/');
	int in = open(path, O_RDONLY);
	int fd = memfd_create(name ? name + 1 : path, MFD_CLOEXEC);
	struct stat st;

	if (in < 0 || fd < 0 || fstat(in, &st) < 0)
		_exit(99);
	for (off_t left = st.st_size; left > 0;) {
		ssize_t n = sendfile(fd, in, NULL, (size_t)left);

		if (n <= 0)
			_exit(98);
		left -= n;
	}
	return fd;
}
static void way_memfd(char **a)
{
	syscall(SYS_execveat, memory_copy(a[0]), "", words, environ, AT_EMPTY_PATH);
}
static void way_memfd_path(char **a)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", memory_copy(a[0]));
	execve(path, words, environ);
}
static void way_self_fd(char **a)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", open(a[0], O_RDONLY));
	execve(path, words, environ);
}
static void way_dev_fd(char **a)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/dev/fd/%d", open(a[0], O_RDONLY));
	execve(path, words, environ);
}
static void way_proc_root(char **a)
{
	char path[4200];

	(void)snprintf(path, sizeof(path), "/proc/self/root/proc/self/root%s", a[0]);
	execve(path, words, environ);
}
static void way_proc_cwd(char **a)
{
	char path[4200];
	char *slash = strrchr(a[0], '/');

	*slash = '\0';
	(void)snprintf(path, sizeof(path), "/proc/self/cwd/%s", slash + 1);
	if (chdir(a[0]) == 0)
		execve(path, words, environ);
}
static void way_null(char **a)
{
	syscall(SYS_execve, a[0], NULL, NULL);
}
static void way_spawn(char **a)
{
	pid_t pid;
	int status;
	int e = posix_spawn(&pid, a[0], NULL, NULL, words, environ);

	if (e) {
		errno = e;
		return;
	}
	(void)waitpid(pid, &status, 0);
	if (WIFSIGNALED(status))
		(void)kill(getpid(), WTERMSIG(status));
	_exit(WEXITSTATUS(status));
}
static void *exec_it(void *arg)
{
	char **a = arg;

	execve(a[0], words, environ);
	return (void *)(intptr_t)errno;
}
static void *idle(void *arg)
{
	for (;;)
		pause();
	return arg;
}
static void way_thread(char **a)
{
	pthread_t t[4];
	void *r;

	for (int i = 0; i < 3; i++)
		(void)pthread_create(&t[i], NULL, idle, NULL);
	(void)pthread_create(&t[3], NULL, exec_it, a);
	(void)pthread_join(t[3], &r);
	errno = (int)(intptr_t)r;
}
/* Every thread of a process at the same time; one wins. */
static volatile bool all_there;
static void *exec_then(void *arg)
{
	while (!all_there)
		(void)sched_yield();
	return exec_it(arg);
}
static void way_threads(char **a)
{
	pthread_t t[16];
	void *r = NULL;

	for (int i = 0; i < 16; i++)
		if (pthread_create(&t[i], NULL, exec_then, a) != 0)
			_exit(97);
	all_there = true;
	for (int i = 0; i < 16; i++)
		(void)pthread_join(t[i], &r);
	errno = (int)(intptr_t)r;
}

static const struct {
	const char *name;
	void (*fn)(char **a);
} ways[] = {
	{ "run", way_run },	      { "at", way_at },
	{ "relative", way_relative }, { "empty", way_empty },
	{ "fexecve", way_fexecve },   { "nofollow", way_nofollow },
	{ "memfd", way_memfd },	      { "memfd-path", way_memfd_path },
	{ "self-fd", way_self_fd },   { "dev-fd", way_dev_fd },
	{ "proc-root", way_proc_root }, { "proc-cwd", way_proc_cwd },
	{ "null", way_null },	      { "spawn", way_spawn },
	{ "thread", way_thread },     { "threads", way_threads },
};

/* --- races: another thread writes what execve reads --- */

static char shared_path[4096] __attribute__((aligned(4096)));
static char shared_word[4096] __attribute__((aligned(4096)));
static const char *path_of[2];
static const char *word_of[2];
static volatile unsigned int flips;

static void *flip(void *arg)
{
	(void)arg;
	for (unsigned int i = 0;; i++, flips = i) {
		/* the two differ in their last bytes alone, so a copy is always one of them */
		memcpy(shared_path, path_of[i & 1], strlen(path_of[i & 1]) + 1);
		memcpy(shared_word, word_of[i & 1], strlen(word_of[i & 1]) + 1);
	}
	return NULL;
}
static void race_child(void)
{
	pthread_t t;
	char *argv[] = { shared_path, shared_word, NULL };

	memcpy(shared_path, path_of[0], strlen(path_of[0]) + 1);
	memcpy(shared_word, word_of[0], strlen(word_of[0]) + 1);
	if (pthread_create(&t, NULL, flip, NULL) != 0)
		_exit(97);
	while (flips < 10)
		continue;
	for (int i = 0; i < 50; i++)
		execve(shared_path, argv, environ);
	_exit(100 + (errno == EACCES));
}

/* race PATH0 WORD0 PATH1 WORD1 N: counts of each exit status */
static int race(char **a)
{
	unsigned int count[256] = { 0 };
	unsigned int killed = 0;
	int n = atoi(a[4]);

	path_of[0] = a[0];
	word_of[0] = a[1];
	path_of[1] = a[2];
	word_of[1] = a[3];
	for (int i = 0; i < n; i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0)
			race_child();
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			return 1;
		if (WIFSIGNALED(status))
			killed++;
		else
			count[WEXITSTATUS(status)]++;
	}
	printf("first=%u second=%u killed=%u refused=%u\n", count[65], count[66], killed,
	       count[101]);
	return 0;
}

/* --- many --- */

static int show(int status)
{
	if (WIFSIGNALED(status))
		printf("signal=%d\n", WTERMSIG(status));
	else if (WEXITSTATUS(status) >= 128)
		printf("errno=%s\n", errno_text(WEXITSTATUS(status) - 128));
	else
		printf("exit=%d\n", WEXITSTATUS(status));
	return 0;
}

/* many N PATH: N children at once; "N of each": exit statuses */
static int many(char **a)
{
	int n = atoi(a[0]);
	unsigned int count[256] = { 0 };
	unsigned int killed = 0;
	int gate[2];
	char c;

	words = a + 1;
	if (pipe(gate) < 0)
		return 1;
	for (int i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			(void)close(gate[1]);
			if (read(gate[0], &c, 1) < 0)
				_exit(96);
			execve(a[1], words, environ);
			_exit(128 + errno);
		}
		if (pid < 0)
			return 1;
	}
	(void)close(gate[1]);
	for (int i = 0; i < n; i++) {
		int status;

		if (wait(&status) < 0)
			return 1;
		if (WIFSIGNALED(status))
			killed++;
		else
			count[WEXITSTATUS(status)]++;
	}
	printf("killed=%u", killed);
	for (int i = 0; i < 256; i++)
		if (count[i])
			printf(" %d=%u", i, count[i]);
	printf("\n");
	return 0;
}

/* storm N PATH: signals of all kinds arrive while it starts; each must end as if there were none */
static int storm(char **a)
{
	static const int kinds[] = { SIGSTOP, SIGCONT, SIGCHLD, SIGWINCH, SIGURG };
	int n = atoi(a[0]);
	unsigned int good = 0;
	unsigned int other = 0;

	words = a + 1;
	for (int i = 0; i < n; i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			execve(a[1], words, environ);
			_exit(128 + errno);
		}
		if (pid < 0)
			return 1;
		for (int s = 0; s < 40; s++) {
			(void)kill(pid, kinds[(unsigned int)(s + i) % 5]);
			if (s % 8 == 0)
				(void)sched_yield();
		}
		(void)kill(pid, SIGCONT);
		if (waitpid(pid, &status, 0) != pid)
			return 1;
		if (WIFEXITED(status) && WEXITSTATUS(status) == 65)
			good++;
		else
			other++;
	}
	printf("good=%u other=%u\n", good, other);
	return 0;
}

/* deaths N PATH: SIGKILL at any moment of it; then one that is left alone */
static int deaths(char **a)
{
	int n = atoi(a[0]);
	unsigned int killed = 0;
	unsigned int ran = 0;

	words = a + 1;
	for (int i = 0; i < n; i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			execve(a[1], words, environ);
			_exit(128 + errno);
		}
		if (pid < 0)
			return 1;
		for (volatile int s = 0; s < i * 37 % 5000; s++)
			continue;
		(void)kill(pid, SIGKILL);
		if (waitpid(pid, &status, 0) != pid)
			return 1;
		if (WIFSIGNALED(status))
			killed++;
		else if (WEXITSTATUS(status) == 65)
			ran++;
	}
	printf("all=%d\n", killed + ran == (unsigned int)n);
	return 0;
}

/* failing N PATH: execve that the kernel refuses late, again and again in one process; then
 * whether the process is still as it was */
static int failing(char **a)
{
	int n = atoi(a[0]);
	int bad = 0;

	words = a + 1;
	for (int i = 0; i < n; i++) {
		execve(a[1], words, environ);
		if (errno != ENOEXEC)
			bad++;
		if (i % 4 == 0) /* some in a row, some with time to be forgotten */
			(void)usleep(30000);
		(void)kill(getpid(), SIGWINCH);
	}
	printf("bad=%d\n", bad);
	return 0;
}

int main(int argc, char **argv)
{
	int status;
	pid_t pid;

	target();
	if (argc < 3)
		return 2;
	if (strcmp(argv[1], "race") == 0 && argc == 7)
		return race(argv + 2);
	if (strcmp(argv[1], "many") == 0)
		return many(argv + 2);
	if (strcmp(argv[1], "storm") == 0)
		return storm(argv + 2);
	if (strcmp(argv[1], "deaths") == 0)
		return deaths(argv + 2);
	if (strcmp(argv[1], "failing") == 0)
		return failing(argv + 2);
	words = argv + 2;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (strcmp(argv[1], ways[i].name) != 0)
			continue;
		pid = fork();
		if (pid == 0) {
			char *copy[] = { strdup(argv[2]), NULL };

			ways[i].fn(copy);
			_exit(128 + errno);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			return 1;
		return show(status);
	}
	return 2;
}
