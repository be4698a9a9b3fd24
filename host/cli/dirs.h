#ifndef SB_HOST_CLI_DIRS_H
#define SB_HOST_CLI_DIRS_H
/*
 * Where state lives: $SENDBOX_HOME/{config,state,cache,run}, else the XDG directories. All are
 * made with mode 0700 and must belong to the caller and not be writable by others.
 */
#include "provider/provider.h"

struct cli_dirs {
	struct sb_dirs d; /* points into the strings below */
	char config[4096];
	char state[4096];
	char cache[4096];
	char run[4096];
	char libexec[4096];
};

/* The caller's home directory: HOME when it is absolute, else the password file's, else @or.
 * Borrowed until the next look-up of a user. */
const char *cli_home(const char *or);

/* Fill and create. Return: 0; -errno with the text in @err. */
SB_MUST_CHECK int cli_dirs_init(struct cli_dirs *ret, struct sb_err *err);

#define CLI_KEY_NAME "host.ed25519" /* in <state>/keys */
/* Load the host's signing key, making it on first use. Return: 0; -errno. */
SB_MUST_CHECK int cli_host_key(const struct sb_dirs *d, uint8_t pub[32], uint8_t sec[64],
			       struct sb_err *err);

#endif
