#ifndef SB_HOST_CLI_COMMANDS_H
#define SB_HOST_CLI_COMMANDS_H
/*
 * What the judge of executions told: for people, one line for each program, words and reason; for
 * programs, one JSON object an event. The texts are composed here, from the plan's rules; of what
 * the guest says only the escaped path and words are shown.
 */
#include <jansson.h>

#include "core/plan.h"
#include "wire/ipc.h"

#define COMMANDS_MAX 1024
#define COMMANDS_LINES 20

typedef void commands_line_fn(void *arg, const char *text);

struct commands;
/* @plan: borrowed. @at_once: each first one of its kind is told when it comes, the rest at the end. */
SB_MUST_CHECK int commands_new(const struct sb_plan *plan, bool at_once, struct commands **ret);
struct commands *commands_free(struct commands *c);
void commands_add(struct commands *c, const struct sb_ipc_exec_event *ev, commands_line_fn *line,
		  void *arg);
/* What was not told yet; at most COMMANDS_LINES lines in all, then a count. */
void commands_tell(struct commands *c, commands_line_fn *line, void *arg);

/* As one object for --json. Return: NULL without memory. */
json_t *commands_json(const struct sb_plan *plan, const struct sb_ipc_exec_event *ev);

/* Bytes as a JSON string: what is not valid UTF-8 comes with each byte outside ASCII escaped. */
json_t *commands_text(const char *p);

#endif
