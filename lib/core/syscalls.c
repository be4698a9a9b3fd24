#include "core/syscalls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/near.h"

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

static const char *nearest(const char *name)
{
	const char *best = NULL;
	unsigned int least = 3;

	for (size_t i = 0; i < SB_ARRAY_LEN(table); i++) {
		unsigned int d = sb_near(name, table[i].name, 2);

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
	near = nearest(name);
	return sb_err_set(err, -EINVAL, "there is no system call \"%.60s\"%s%s%s", name,
			  near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}
