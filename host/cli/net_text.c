#include "net_text.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/net_policy.h"

void net_text_escape(const char *in, size_t cap, char *out, size_t room)
{
	size_t n = 0;

	for (size_t i = 0; i < cap && in[i]; i++) {
		unsigned char c = (unsigned char)in[i];

		if (n + 5 > room)
			break;
		if (c >= 0x20 && c < 0x7f) {
			out[n++] = (char)c;
		} else {
			(void)snprintf(out + n, room - n, "\\x%02x", c);
			n += 4;
		}
	}
	out[n] = '\0';
}

const char *net_text_kind(uint8_t kind)
{
	static const char *const names[] = { "none", "connect", "closed", "dns",
					     "amend", "lost",	"request" };

	return kind < SB_ARRAY_LEN(names) ? names[kind] : "none";
}

const char *net_text_via(uint8_t via)
{
	static const char *const names[] = { "-", "direct", "connect", "http", "socks" };

	return via < SB_ARRAY_LEN(names) ? names[via] : "-";
}

static const char *proto_name(uint8_t proto)
{
	static const char *const names[] = { "auto", "https", "http", "any" };

	return proto < SB_ARRAY_LEN(names) ? names[proto] : "auto";
}

const char *net_text_reason(uint16_t reason)
{
	if (reason == SB_NET_OK)
		return "ok";
	return reason < SB_NET_N_REASONS ? sb_net_reason_name((enum sb_net_reason)reason) : "internal";
}

void net_text_target(const struct sb_ipc_net_event *ev, char *out, size_t room)
{
	char name[1100];
	bool brackets = memchr(ev->name, ':', strnlen(ev->name, sizeof(ev->name))) != NULL;

	net_text_escape(ev->name, sizeof(ev->name), name, sizeof(name));
	if (ev->port == 0)
		(void)snprintf(out, room, "%s", name);
	else
		(void)snprintf(out, room, brackets ? "[%s]:%u" : "%s:%u", name, ev->port);
}

void net_text_bytes(uint64_t n, char out[16])
{
	static const char units[] = "kMGTPE";
	size_t u = 0;

	if (n < 1000) {
		(void)snprintf(out, 16, "%u", (unsigned int)n);
		return;
	}
	for (; n >= 1000000; u++)
		n /= 1000;
	(void)snprintf(out, 16, "%u.%u%c", (unsigned int)(n / 1000) % 1000U,
		       (unsigned int)(n / 100 % 10), units[u]);
}

void net_text_time(uint64_t time_ns, char out[16])
{
	time_t t = (time_t)(time_ns / 1000000000U);
	struct tm tm;

	if (!localtime_r(&t, &tm) || strftime(out, 16, "%H:%M:%S", &tm) == 0)
		(void)snprintf(out, 16, "-");
}

json_t *net_text_json(const struct sb_ipc_net_event *ev)
{
	char name[1100];
	char rule[1400];
	char addr[SB_ADDR_TEXT] = "";
	bool connection = ev->kind == SB_NET_EV_CONNECT || ev->kind == SB_NET_EV_CLOSED ||
			  ev->kind == SB_NET_EV_REQUEST;
	struct sb_addr a;
	json_t *o;

	net_text_escape(ev->name, sizeof(ev->name), name, sizeof(name));
	net_text_escape(ev->rule, sizeof(ev->rule), rule, sizeof(rule));
	if (ev->has_addr) {
		memcpy(a.b, ev->addr, sizeof(a.b));
		sb_addr_format(&a, addr);
	}
	o = json_pack("{s:s,s:s,s:I,s:b,s:s,s:I}", "event", "network", "kind",
		      net_text_kind(ev->kind), "time_ns", (json_int_t)ev->time_ns, "allow",
		      ev->allow != 0, "reason", net_text_reason(ev->reason), "count",
		      (json_int_t)ev->count);
	if (!o)
		return NULL;
	if (name[0])
		(void)json_object_set_new(o, "name", json_string(name));
	if (ev->port)
		(void)json_object_set_new(o, "port", json_integer(ev->port));
	if (addr[0])
		(void)json_object_set_new(o, "address", json_string(addr));
	if (rule[0])
		(void)json_object_set_new(o, "rule", json_string(rule));
	if (ev->kind == SB_NET_EV_DNS)
		(void)json_object_set_new(o, "dns_type", json_integer(ev->dns_type));
	if (connection) {
		(void)json_object_set_new(o, "id", json_integer((json_int_t)ev->id));
		(void)json_object_set_new(o, "via", json_string(net_text_via(ev->via)));
		(void)json_object_set_new(o, "protocol", json_string(proto_name(ev->proto)));
		(void)json_object_set_new(o, "up_bytes", json_integer((json_int_t)ev->up));
		(void)json_object_set_new(o, "down_bytes", json_integer((json_int_t)ev->down));
	}
	return o;
}
