/*
 * Boot the guest of init.c through the provider's table, as the monitor does.
 *
 * drive HOME LIBEXEC KERNEL|- WORDS...
 *   ports N       that many file server ports (default 2)
 *   flip initramfs|kernel   change one byte of the prepared file before the start
 *   say C         what to tell the guest (init.c); default q
 *   jail          print what /proc tells of the QEMU process before it ends
 *   orphan        print QEMU's pid, then die at once
 *   kvm           start with KVM whatever the probe says of it
 * HOME holds cache, run and the session. Prints what the guest says, and times.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "crypto/crypto.h"
#include "provider/provider.h"
#include "t_bundle.h"

static double now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

SB_NORETURN static void die(const char *what, const struct sb_err *err)
{
	printf("error %s: %s\n", what, err ? err->text : strerror(errno));
	exit(1);
}

static void flip(const char *cache, const char *what, const uint8_t sha[32])
{
	char hex[65];
	char path[4400];
	char byte;
	int fd;

	sb_hex_write(sha, 32, hex);
	(void)snprintf(path, sizeof(path), "%s/%s/%s.%s", cache,
		       *what == 'k' ? "kernels-elf" : "initramfs", hex, *what == 'k' ? "elf" : "cpio");
	if (chmod(path, 0600) < 0)
		die(path, NULL);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || pread(fd, &byte, 1, 9999) != 1)
		die(path, NULL);
	byte = (char)(byte ^ 1);
	if (pwrite(fd, &byte, 1, 9999) != 1)
		die(path, NULL);
	(void)close(fd);
}

static void show_jail(pid_t pid)
{
	static const char *const keys[] = { "Uid:", "Gid:", "Groups:", "NoNewPrivs:", "Seccomp:",
					    "CapEff:", "CapBnd:" };
	char path[64];
	char *text;
	size_t len;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (sb_fd_read_file(-1, path, 65536, &text, &len) < 0)
		die(path, NULL);
	for (size_t i = 0; i < SB_ARRAY_LEN(keys); i++) {
		const char *at = strstr(text, keys[i]);

		if (at)
			printf("jail %.*s\n", (int)strcspn(at, "\n"), at);
	}
	free(text);
	for (const char *const *ns = (const char *const[]){ "mnt", "net", "ipc", "uts", "user", NULL };
	     *ns; ns++) {
		char a[64] = "";
		char b[64] = "";

		(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, *ns);
		(void)!readlink(path, a, sizeof(a) - 1);
		(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", *ns);
		(void)!readlink(path, b, sizeof(b) - 1);
		printf("jail ns %s %s\n", *ns, strcmp(a, b) ? "own" : "shared");
	}
}

struct what {
	int ports;
	const char *flip;
	char say;
	bool jail;
	bool orphan;
	bool kvm;
};

static struct what parse(int argc, char **argv)
{
	struct what w = { .ports = 2, .say = 'q' };

	for (int i = 4; i < argc; i++) {
		const char *next = i + 1 < argc ? argv[i + 1] : "";

		if (strcmp(argv[i], "ports") == 0)
			w.ports = atoi(next), i++;
		else if (strcmp(argv[i], "flip") == 0)
			w.flip = next, i++;
		else if (strcmp(argv[i], "say") == 0)
			w.say = *next, i++;
		else if (strcmp(argv[i], "jail") == 0)
			w.jail = true;
		else if (strcmp(argv[i], "orphan") == 0)
			w.orphan = true;
		else if (strcmp(argv[i], "kvm") == 0)
			w.kvm = true;
	}
	return w;
}

/* Print lines until "end"; then tell it what to do and print the rest. */
static void talk(int fd, const struct what *w, const struct sb_guest *g)
{
	char buf[4096];
	size_t have = 0;
	bool told = false;

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		ssize_t n;

		if (poll(&p, 1, 120000) <= 0)
			die("guest is silent", NULL);
		n = read(fd, buf + have, sizeof(buf) - 1 - have);
		if (n <= 0)
			break;
		have += (size_t)n;
		buf[have] = '\0';
		if (!told && strstr(buf, "end\n")) {
			told = true;
			if (w->jail)
				show_jail(g->pid);
			if (write(fd, &w->say, 1) != 1)
				die("write", NULL);
			if (w->say == 'w')
				break;
		}
	}
	buf[have] = '\0';
	printf("%s", buf);
}

static int session(const struct sb_dirs *dirs, const char *path, const struct what *w,
		   struct sb_plan *plan)
{
	const struct sb_provider *vm = sb_provider_get(SB_PROVIDER_MICROVM);
	struct sb_start in = { .plan = plan, .dirs = dirs, .session_path = path,
			       .net_front = -1,
			       .ssh_front = -1 };
	struct sb_guest g = { .pid = -1, .pidfd = -1 };
	struct sb_err err = { 0 };
	int carrier[2];
	int fs[64];
	double t0 = now_ms();
	int status;

	in.session_dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	in.console = openat(in.session_dir, "console", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
			    0600);
	if (in.console < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, carrier) < 0)
		die("set-up", NULL);
	in.carrier = carrier[1];
	for (int i = 0; i < w->ports; i++) {
		int p[2];

		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p) < 0)
			die("socketpair", NULL);
		fs[i] = p[1];
	}
	in.fs_socks = fs;
	in.n_fs_socks = (size_t)w->ports;
	if (vm->start(&in, &g, &err) < 0)
		die("start", &err);
	(void)close(carrier[1]);
	printf("time start %.1f\n", now_ms() - t0);
	if (w->orphan) {
		printf("pid %d\n", (int)g.pid);
		exit(0);
	}
	talk(carrier[0], w, &g);
	if (w->say == 'w')
		vm->stop(&g);
	if (waitpid(g.pid, &status, 0) < 0)
		die("waitpid", NULL);
	printf("time end %.1f\n", now_ms() - t0);
	if (WIFEXITED(status))
		printf("qemu exit %d\n", WEXITSTATUS(status));
	else
		printf("qemu signal %d\n", WTERMSIG(status));
	return vm->destroy(&g, &err) < 0;
}

int main(int argc, char **argv)
{
	const struct sb_provider *vm = sb_provider_get(SB_PROVIDER_MICROVM);
	struct sb_dirs dirs = { 0 };
	struct sb_plan plan = { .accel = SB_ACCEL_TCG, .cpus = 1, .memory_bytes = 512U << 20 };
	struct sb_err err = { 0 };
	uint8_t pub[32] = "not a key but thirty-two bytes.";
	struct sb_bundle *bundle;
	char *guest = NULL;
	size_t guest_len = 0;
	struct what w;
	char cache[4000];
	char path[4000];
	char bundles[4000];
	double t0;
	int status;

	if (argc < 4 || sb_crypto_init() < 0)
		return 2;
	w = parse(argc, argv);
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	(void)snprintf(cache, sizeof(cache), "%s/cache", argv[1]);
	(void)snprintf(path, sizeof(path), "%s/session", argv[1]);
	(void)mkdir(cache, 0700);
	(void)mkdir(path, 0700);
	dirs.config = dirs.state = dirs.run = argv[1];
	dirs.cache = cache;
	dirs.libexec = argv[2];
	(void)snprintf(bundles, sizeof(bundles), "%s/sendbox-guest", argv[2]);
	if (sb_fd_read_file(AT_FDCWD, bundles, 64U << 20, &guest, &guest_len) < 0)
		die(bundles, NULL);
	(void)snprintf(bundles, sizeof(bundles), "%s/bundle", argv[1]);
	bundle = t_bundle(bundles, guest, guest_len, &err);
	free(guest);
	if (!bundle)
		die("bundle", &err);
	t0 = now_ms();
	if (vm->prepare(&dirs, strcmp(argv[3], "-") == 0 ? NULL : argv[3], bundle, pub, &plan, &err) < 0)
		die("prepare", &err);
	printf("release %s\n", plan.kernel_release);
	printf("time prepare %.1f\n", now_ms() - t0);
	if (w.flip)
		flip(cache, w.flip, *w.flip == 'k' ? plan.kernel_sha256 : plan.initramfs_sha256);
	if (w.kvm)
		plan.accel = SB_ACCEL_KVM;
	status = session(&dirs, path, &w, &plan);
	free(plan.kernel_release);
	free(plan.parts[0].role);
	free(plan.parts[0].path);
	free(plan.parts);
	(void)sb_bundle_free(bundle);
	return status;
}
