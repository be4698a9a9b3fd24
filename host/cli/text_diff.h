#ifndef SB_HOST_CLI_TEXT_DIFF_H
#define SB_HOST_CLI_TEXT_DIFF_H
/* Two texts for people: what is alike at both ends is left out, the rest stands there with - and +.
 * Both may be hostile: control characters are escaped, lines and their number are bounded. */
#include <stdio.h>

#include "base/mem.h"

#define TEXT_DIFF_LINES 400 /* shown of each */

void text_diff(FILE *to, const char *old, size_t old_len, const char *new, size_t new_len);

#endif
