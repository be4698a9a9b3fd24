#ifndef SB_HOST_CLI_NET_TEXT_H
#define SB_HOST_CLI_NET_TEXT_H
/* Events of the net gate for people and for programs. What the guest chose is escaped. */
#include <jansson.h>

#include "wire/ipc.h"

/* Printable ASCII stays, the rest becomes \xNN; @in ends with NUL or after @cap bytes. */
void net_text_escape(const char *in, size_t cap, char *out, size_t room);
const char *net_text_kind(uint8_t kind);
const char *net_text_via(uint8_t via);
const char *net_text_reason(uint16_t reason); /* "ok" when there is none */
/* NAME:PORT, [ADDRESS]:PORT, or the name alone */
void net_text_target(const struct sb_ipc_net_event *ev, char *out, size_t room);
/* 999, 1.2k, 3.4M, ... */
void net_text_bytes(uint64_t n, char out[16]);
/* hh:mm:ss of the local day */
void net_text_time(uint64_t time_ns, char out[16]);
/* {"event":"network","kind":...}; NULL when there is no memory. The caller owns it. */
json_t *net_text_json(const struct sb_ipc_net_event *ev);

#endif
