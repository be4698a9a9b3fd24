/*
 * Build-time program: print the names of all system calls that either machine has, sorted, with
 * the number on one of them (-1: it has no such call), as initialisers of struct entry.
 */
#include <seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "newer_calls.h"

#define HIGHEST 511 /* from here on x32's own */
#define MAX_CALLS 600

struct entry {
	char name[40];
	int nr;
};
static struct entry all[MAX_CALLS];
static size_t n_all;

static void add(const char *name, int nr)
{
	for (size_t i = 0; i < n_all; i++) {
		if (strcmp(all[i].name, name) == 0) {
			if (all[i].nr < 0)
				all[i].nr = nr;
			return;
		}
	}
	if (n_all == MAX_CALLS || strlen(name) >= sizeof(all[0].name))
		exit(1);
	(void)snprintf(all[n_all].name, sizeof(all[0].name), "%s", name);
	all[n_all++].nr = nr;
}

static void add_machine(uint32_t arch, int ours)
{
	for (int nr = 0; nr <= HIGHEST; nr++) {
		char *name = seccomp_syscall_resolve_num_arch(arch, nr);

		if (name)
			add(name, ours ? nr : -1);
		free(name);
	}
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

int main(int argc, char **argv)
{
	const char *name = argc == 2 ? argv[1] : "";
	int x86 = strcmp(name, "x86_64") == 0;

	if (!x86 && strcmp(name, "aarch64") != 0) {
		fprintf(stderr, "usage: gen_syscalls x86_64|aarch64\n");
		return 2;
	}
	add_machine(SCMP_ARCH_X86_64, x86);
	add_machine(SCMP_ARCH_AARCH64, !x86);
	for (size_t i = 0; i < sizeof(newer) / sizeof(newer[0]); i++)
		add(newer[i].name, newer[i].nr);
	qsort(all, n_all, sizeof(all[0]), by_name);
	printf("/* made by gen_syscalls %s; do not edit */\n", name);
	for (size_t i = 0; i < n_all; i++)
		printf("\t{ \"%s\", %d },\n", all[i].name, all[i].nr);
	return 0;
}
