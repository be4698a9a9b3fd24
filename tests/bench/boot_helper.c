/*
 * boot_helper cpio INIT OUT   an initramfs that holds INIT as /init and /dev/console
 * boot_helper tsc             frequency of the time stamp counter, kHz
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "provider/microvm/cpio.h"
#include "provider/microvm/vm.h"

#define MAX_BYTES (64U << 20)

static int make_cpio(const char *init, const char *out)
{
	sb_autofree char *p = NULL;
	sb_autobuf struct sb_buf b = { 0 };
	struct sb_cpio c = { .out = &b };
	sb_autofd int fd = open(out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	size_t len = 0;

	if (fd < 0 || sb_fd_read_file(AT_FDCWD, init, MAX_BYTES, &p, &len) < 0)
		return 1;
	sb_buf_init(&b, MAX_BYTES);
	sb_cpio_dir(&c, "dev", 0755);
	sb_cpio_chardev(&c, "dev/console", 0600, 5, 1);
	sb_cpio_file(&c, "init", 0755, p, len);
	sb_cpio_end(&c);
	return sb_buf_error(&b) < 0 || sb_fd_write_all(fd, b.data, b.len) < 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "cpio") == 0)
		return make_cpio(argv[2], argv[3]);
	if (argc == 2 && strcmp(argv[1], "tsc") == 0) {
		struct sb_tsc t;

		sb_tsc_begin(&t);
		printf("%" PRIu64 "\n", sb_tsc_khz(&t));
		return 0;
	}
	return 2;
}
