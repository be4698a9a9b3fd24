#ifndef SB_HOST_AGENT_AGENT_I_H
#define SB_HOST_AGENT_AGENT_I_H
#include "agent.h"
#include "config/doc_i.h"

/* Names of the fields, NULL-terminated. */
extern const char *const agent_fields[];

/* Return: 0; 1: there is none; -EBADMSG, told; -ENOMEM. */
SB_MUST_CHECK int agent_read_file(const char *path, char **ret, size_t *ret_len, struct problems *p);

#endif
