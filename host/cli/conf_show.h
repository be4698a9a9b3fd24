#ifndef SB_HOST_CLI_CONF_SHOW_H
#define SB_HOST_CLI_CONF_SHOW_H
/* Values of the configuration for people and for programs. */
#include <jansson.h>

#include "config/config.h"

/* As one line of JSON-like text; sizes and times with their unit; control characters escaped.
 * Cut at @cap with "...". */
void conf_value_text(const struct cfg_value *v, char *out, size_t cap);
/* NULL when there is no memory. Sizes are bytes, times milliseconds. */
json_t *conf_value_json(const struct cfg_value *v);
/* {"layer", "file", "line"}; where: "FILE:LINE" */
json_t *conf_origin_json(const struct cfg_value *v);

/*
 * conf_each_key - every key that has a value of its own: no map of fixed keys, no element
 * @fn: called with the dotted path and the value, which may be NULL (not set, no default)
 */
void conf_each_key(const struct cfg *c,
		   void (*fn)(void *arg, const struct cfg_key *key, const struct cfg_value *v),
		   void *arg);

#endif
