#ifndef SB_HOST_CLI_REPORT_PACKAGES_H
#define SB_HOST_CLI_REPORT_PACKAGES_H
/* What a package manager's command line names. */
#include <jansson.h>

#include "base/mem.h"

/*
 * Add {"manager", "package"} for each package that the words @argv ask to be installed to @to, which
 * holds each once; at most @max, beyond which @more counts. A command line that names none (it installs
 * what a file says) adds one with "package": null.
 */
void report_packages(const json_t *argv, json_t *to, size_t max, uint64_t *more);

#endif
