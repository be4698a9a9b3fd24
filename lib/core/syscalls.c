#include "core/syscalls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const struct entry {
	const char *name;
	int nr;
} table[] = {
#include "syscall-table.h"
};

static int compare(const void *key, const void *e)
{
	return strcmp(key, ((const struct entry *)e)->name);
}

int sb_syscall_number(const char *name)
{
	const struct entry *e = bsearch(name, table, SB_ARRAY_LEN(table), sizeof(table[0]), compare);

	if (!e)
		return -ENOENT;
	return e->nr < 0 ? SB_SYSCALL_ABSENT : e->nr;
}

const char *sb_syscall_name(int nr)
{
	for (size_t i = 0; nr >= 0 && i < SB_ARRAY_LEN(table); i++)
		if (table[i].nr == nr)
			return table[i].name;
	return NULL;
}

#define NAME_ROOM 40

/* Edits between two short names. */
static unsigned int distance(const char *a, const char *b)
{
	unsigned int row[NAME_ROOM + 1];
	size_t lb = strlen(b);

	for (unsigned int j = 0; j <= lb; j++)
		row[j] = j;
	for (unsigned int i = 1; a[i - 1]; i++) {
		unsigned int diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= lb; j++) {
			unsigned int change = diagonal + (a[i - 1] != b[j - 1]);
			unsigned int one = SB_MIN(row[j], row[j - 1]) + 1;

			diagonal = row[j];
			row[j] = SB_MIN(change, one);
		}
	}
	return row[lb];
}

static const char *nearest(const char *name)
{
	const char *best = NULL;
	unsigned int least = 3;

	for (size_t i = 0; i < SB_ARRAY_LEN(table); i++) {
		unsigned int d = distance(name, table[i].name);

		if (d < least) {
			least = d;
			best = table[i].name;
		}
	}
	return best;
}

int sb_syscall_may_deny(const char *name, struct sb_err *err)
{
	static const char *const vital[] = { "execve", "exit", "exit_group", "rt_sigreturn" };
	const char *near;

	for (size_t i = 0; i < SB_ARRAY_LEN(vital); i++)
		if (strcmp(name, vital[i]) == 0)
			return sb_err_set(err, -EINVAL, "system call \"%s\" cannot be denied: "
					  "without it no program can run or end", name);
	if (sb_syscall_number(name) != -ENOENT)
		return 0;
	near = strlen(name) < NAME_ROOM ? nearest(name) : NULL;
	return sb_err_set(err, -EINVAL, "there is no system call \"%.60s\"%s%s%s", name,
			  near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}
