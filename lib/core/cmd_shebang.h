#ifndef SB_CORE_CMD_SHEBANG_H
#define SB_CORE_CMD_SHEBANG_H
/*
 * The first line of a script, read as Linux reads it (fs/binfmt_script.c). Pure.
 */
#include "base/mem.h"

#define SB_CMD_HEAD 256  /* bytes of a file that the kernel looks at */
#define SB_CMD_LEVELS 5  /* interpreters in a row; one more and execve fails with ELOOP */

struct sb_cmd_shebang {
	char interp[SB_CMD_HEAD]; /* as written, may be relative: to the working directory */
	char arg[SB_CMD_HEAD];    /* everything behind, blanks at its end cut */
	bool has_arg; /* it may be empty: a file that ends in a blank without a newline */
};
/*
 * sb_cmd_shebang - who runs this file?
 * @head: its first bytes, at most SB_CMD_HEAD of them count
 * Return: 1 a script, @ret is set; 0 no script; -ENOEXEC: begins with "#!", and execve fails.
 */
SB_MUST_CHECK int sb_cmd_shebang(const void *head, size_t len, struct sb_cmd_shebang *ret);

#endif
