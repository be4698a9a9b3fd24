#ifndef SB_HOST_CLI_SSH_KEY_LINE_H
#define SB_HOST_CLI_SSH_KEY_LINE_H
/* Lines of OpenSSH's files, as far as a key's digest needs it: a public key file ("TYPE BASE64
 * COMMENT") and what `ssh-keygen -F` prints of a known_hosts file. Pure. */
#include "base/mem.h"

#define SSH_KEY_LINE_MAX 32768

/* @words: how many come before the key's type. @sha256: of the key's blob.
 * Return: 0; -EINVAL: there is no key, or its type is not the one that it says itself. */
SB_MUST_CHECK int ssh_key_line(const char *line, size_t len, size_t words, uint8_t sha256[32]);

enum ssh_known { SSH_KNOWN_NONE = 0, SSH_KNOWN_KEY, SSH_KNOWN_REVOKED, SSH_KNOWN_AUTHORITY };
/* One line of known_hosts; comments, blank lines and what is malformed are NONE. */
enum ssh_known ssh_known_line(const char *line, size_t len, uint8_t sha256[32]);

#endif
