/*
 * The smallest guest: load the modules, find the port sb.chan, answer on it, power off.
 * What it sends: one line each for the kernel, every port, every network interface and every
 * virtio device, then "end". Then it waits for one byte: 'q' powers off, 'p' panics,
 * 'f' floods the console, 'w' waits for ever.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

__attribute__((__noreturn__)) static void die(const char *what)
{
	(void)dprintf(2, "init: %s\n", what);
	(void)reboot(RB_AUTOBOOT);
	for (;;)
		(void)pause();
}

static void load_modules(void)
{
	FILE *f = fopen("/sendbox/modules.order", "re");
	char name[256];
	char path[300];

	if (!f)
		die("no modules.order");
	while (fgets(name, sizeof(name), f)) {
		int fd;

		name[strcspn(name, "\n")] = '\0';
		(void)snprintf(path, sizeof(path), "/sendbox/modules/%s", name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || syscall(SYS_finit_module, fd, "", 0) < 0)
			(void)dprintf(2, "init: %s does not load\n", name);
		(void)close(fd);
	}
	(void)fclose(f);
}

static void list(int out, const char *what, const char *dir, const char *attr)
{
	DIR *d = opendir(dir);
	const struct dirent *e;

	while (d && (e = readdir(d))) {
		char path[600];
		char text[128] = "";
		int fd;

		if (e->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s/%s", dir, e->d_name, attr);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && read(fd, text, sizeof(text) - 1) < 0)
			text[0] = '\0';
		(void)close(fd);
		text[strcspn(text, "\n")] = '\0';
		(void)dprintf(out, "%s %s\n", what, *attr ? text : e->d_name);
	}
	if (d)
		(void)closedir(d);
}

/* The driver announces port names a little after it has loaded. */
static int open_port(const char *name)
{
	for (int tries = 0; tries < 500; tries++) {
		DIR *d = opendir("/sys/class/virtio-ports");
		const struct dirent *e;
		int got = -1;

		while (got < 0 && d && (e = readdir(d))) {
			char path[600];
			char text[64] = "";
			int fd;

			(void)snprintf(path, sizeof(path), "/sys/class/virtio-ports/%s/name",
				       e->d_name);
			fd = open(path, O_RDONLY | O_CLOEXEC);
			if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
				text[0] = '\0';
			(void)close(fd);
			text[strcspn(text, "\n")] = '\0';
			if (strcmp(text, name) != 0)
				continue;
			(void)snprintf(path, sizeof(path), "/dev/%s", e->d_name);
			got = open(path, O_RDWR | O_CLOEXEC);
		}
		if (d)
			(void)closedir(d);
		if (got >= 0)
			return got;
		(void)usleep(10000);
	}
	die("no such port");
}

static void obey(char c)
{
	int fd;

	switch (c) {
	case 'p':
		fd = open("/proc/sysrq-trigger", O_WRONLY | O_CLOEXEC);
		(void)!write(fd, "c", 1);
		break;
	case 'f':
		for (int i = 0; i < 20000; i++)
			(void)dprintf(2, "%0100d\n", i);
		break;
	case 'w':
		for (;;)
			(void)pause();
	default:
		break;
	}
}

int main(void)
{
	struct utsname u;
	struct pollfd p = { .events = POLLIN };
	char c = 0;

	if (mount("d", "/dev", "devtmpfs", 0, NULL) < 0 || mount("p", "/proc", "proc", 0, NULL) < 0 ||
	    mount("s", "/sys", "sysfs", 0, NULL) < 0)
		die("mounts");
	load_modules();
	p.fd = open_port("sb.chan");
	if (uname(&u) < 0)
		die("uname");
	(void)usleep(100000);
	(void)dprintf(p.fd, "kernel %s\n", u.release);
	list(p.fd, "port", "/sys/class/virtio-ports", "name");
	list(p.fd, "net", "/sys/class/net", "");
	list(p.fd, "virtio", "/sys/bus/virtio/devices", "device");
	list(p.fd, "pci", "/sys/bus/pci/devices", "");
	list(p.fd, "block", "/sys/block", "");
	(void)dprintf(p.fd, "end\n");
	while (read(p.fd, &c, 1) != 1)
		(void)poll(&p, 1, 1000);
	obey(c);
	(void)!write(p.fd, "bye\n", 4);
	(void)usleep(50000);
	(void)reboot(RB_POWER_OFF);
	die("still here");
}
