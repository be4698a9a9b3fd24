/*
 * A sendbox-monitor that does mischief between the verification of the bundle and its use, then goes
 * on as the real one, which lies beside it as sendbox-monitor.real. What to do stands in the file
 * "mischief" of the same folder: "swap A B" renames A onto B; "write A" changes a byte of A in place.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char path[4096], a[4096], b[4096], word[16];
	char byte;
	FILE *f;
	int fd;

	(void)argc;
	snprintf(path, sizeof(path), "%s/mischief", argv[1]);
	f = fopen(path, "re");
	if (f) {
		if (fscanf(f, "%15s %4095s %4095s", word, a, b) >= 2) {
			if (strcmp(word, "swap") == 0 && rename(a, b) < 0)
				return 99;
			if (strcmp(word, "write") == 0) {
				chmod(a, 0755);
				fd = open(a, O_RDWR | O_CLOEXEC);
				if (fd < 0 || pread(fd, &byte, 1, 5000) != 1)
					return 98;
				byte ^= 1;
				if (pwrite(fd, &byte, 1, 5000) != 1 || close(fd) < 0)
					return 97;
				chmod(a, 0555);
			}
		}
		fclose(f);
	}
	snprintf(path, sizeof(path), "%s/sendbox-monitor.real", argv[1]);
	execv(path, argv);
	return 96;
}
