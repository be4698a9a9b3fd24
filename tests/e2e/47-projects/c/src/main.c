#include <stdio.h>
#include <string.h>

#include "config.h"
#include "tally.h"

#ifndef REVISION
#define REVISION "unknown"
#endif

int main(int argc, char **argv)
{
	char line[4096];
	size_t n = 0;

	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		puts("tally " REVISION);
		return 0;
	}
	while (fgets(line, sizeof(line), stdin))
		n += words_in(line);
	printf("%zu\n", n);
	return 0;
}
