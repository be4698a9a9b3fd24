#ifndef SB_HOST_AGENT_AGENT_I_H
#define SB_HOST_AGENT_AGENT_I_H
#include "agent.h"
#include "config/doc_i.h"

/* Names of the fields, NULL-terminated. */
extern const char *const agent_fields[];

#endif
