#ifndef SB_HOST_CLI_SSH_TEXT_H
#define SB_HOST_CLI_SSH_TEXT_H
/* What the SSH relay decided, for people and programs. */
#include <jansson.h>

#include "core/plan.h"
#include "wire/ipc.h"

/* For --json. NULL: out of memory. */
json_t *ssh_text_json(const struct sb_plan *plan, const struct sb_ipc_ssh_event *ev);

struct ssh_summary;
#define SSH_SUMMARY_MAX 32
SB_MUST_CHECK int ssh_summary_new(struct ssh_summary **ret);
struct ssh_summary *ssh_summary_free(struct ssh_summary *s);
void ssh_summary_add(struct ssh_summary *s, const struct sb_ipc_ssh_event *ev);
/* One line for each kind of signature and refusal. */
void ssh_summary_tell(const struct ssh_summary *s, const struct sb_plan *plan,
		      void (*line)(void *arg, const char *text), void *arg);

#endif
