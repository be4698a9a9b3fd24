#ifndef SB_HOST_CLI_PLAN_SHOW_H
#define SB_HOST_CLI_PLAN_SHOW_H
/* A plan for people, on standard output: what it lets a session do, and which rule of which file
 * says so. Its text may come from elsewhere: everything but printable ASCII is escaped. */
#include <stdio.h>

#include "core/plan.h"

void plan_show(FILE *to, const struct sb_plan *p);
/* "2026-11-30 04:05:06 UTC" */
#define PLAN_TIME_ROOM 32
void plan_time_text(uint64_t unix_s, char out[PLAN_TIME_ROOM]);
/* One string, escaped. */
void plan_put(FILE *to, const char *s);

#endif
