/* sendbox-guest: PID 1 of every guest. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "conn/inherit.h"
#include "init/init.h"

int main(int argc, char **argv)
{
	sb_log_init("sendbox-guest");
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		(void)printf("sendbox-guest %s\n", SB_VERSION);
		return 0;
	}
	if (getpid() != 1) {
		sb_log("this program is the first process of a guest; `sendbox run` starts it");
		return 2;
	}
	if (argc == 3 && strcmp(argv[1], SB_INHERIT_MODE) == 0) {
		if (strcmp(argv[2], SB_INHERIT_TREES_ARG) == 0)
			return sb_init_namespace(true);
		if (strcmp(argv[2], SB_INHERIT_OWN) == 0)
			return sb_init_namespace(false);
		return 2;
	}
	sb_init_vm();
}
