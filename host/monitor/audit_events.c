/*
 * What the records of a session say. Texts of the guest go in as they are: the encoder makes them
 * harmless. An allowed connection and a signature are recorded before they happen (pending.c); the
 * events that follow say how they went.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "audit.h"
#include "base/num.h"
#include "core/net_policy.h"
#include "core/ssh_policy.h"
#include "crypto/crypto.h"

#define LIST_ROOM 3000

uint64_t mon_audit_count(const struct sb_audit_event *e)
{
	for (size_t i = 0; i < e->n_data; i++)
		if (strcmp(e->data[i].key, "count") == 0)
			return e->data[i].num;
	return 1;
}

static void put_count(struct sb_audit_event *e, uint64_t count)
{
	if (count > 1)
		sb_audit_put_num(e, "count", count);
}

/* ---- the plan ---- */

struct words {
	char p[LIST_ROOM];
	size_t len;
	bool cut;
};

static void add_word(struct words *w, const char *s)
{
	size_t n = strlen(s) + 1;

	if (n > sizeof(w->p) - w->len) {
		w->cut = true;
		return;
	}
	memcpy(w->p + w->len, s, n);
	w->len += n;
}

static const char *net_mode(const struct sb_plan *p)
{
	return p->net.mode == SB_NET_NONE ? "none" : p->net.mode == SB_NET_OPEN ? "open" : "rules";
}

static void add_mounts(struct words *w, const struct sb_plan *p)
{
	char text[2 * 4096 + 16];

	for (size_t i = 0; i < p->n_mounts; i++) {
		(void)snprintf(text, sizeof(text), "%s:%s:%s",
			       p->mounts[i].mode == SB_MOUNT_RO ? "ro" : "rw", p->mounts[i].host,
			       p->mounts[i].guest);
		add_word(w, text);
	}
}

static void record_start(struct monitor *m, const char *plan_hex)
{
	static struct words argv;
	static struct words mounts;
	const struct sb_plan *p = m->plan;
	struct sb_audit_event e = { .kind = SB_AUDIT_SESSION, .action = "start",
				    .subject = p->argv[0] };

	argv.len = mounts.len = 0;
	for (size_t i = 0; p->argv[i]; i++)
		add_word(&argv, p->argv[i]);
	add_mounts(&mounts, p);
	sb_audit_put(&e, "plan", plan_hex);
	sb_audit_put(&e, "provider", m->provider->name);
	sb_audit_put(&e, "cwd", p->cwd);
	sb_audit_put(&e, "network", net_mode(p));
	sb_audit_put(&e, "instance", p->instance);
	sb_audit_put(&e, "version", p->host_version);
	sb_audit_put_num(&e, "uid", p->owner_uid);
	if (argv.cut || mounts.cut)
		sb_audit_put_bool(&e, "cut", true);
	sb_audit_put_list(&e, "mounts", mounts.p, SB_MIN(mounts.len, (size_t)LIST_ROOM));
	sb_audit_put_list(&e, "argv", argv.p, argv.len);
	mon_audit(m, &e);
}

int mon_audit_plan(struct monitor *m, mon_audit_fn *fn, struct sb_err *err)
{
	struct sb_audit_event e = { .kind = SB_AUDIT_PLAN, .action = "accepted",
				    .verdict = SB_AUDIT_ALLOW };
	uint8_t sha[SB_SHA256_LEN];
	char hex[2 * SB_SHA256_LEN + 1];
	char key[65];
	uint64_t len = 0;
	int r = sb_sha256_fd(m->plan_memfd, sha, &len);

	if (r < 0)
		return sb_err_set(err, r, "cannot read the plan: %s", strerror(-r));
	sb_hex_write(sha, sizeof(sha), hex);
	sb_hex_write(m->start.public_key, 32, key);
	record_start(m, hex);
	for (size_t i = 0; m->plan->secrets && m->plan->secrets[i]; i++) {
		struct sb_audit_event s = { .kind = SB_AUDIT_SECRET, .action = "give",
					    .verdict = SB_AUDIT_ALLOW,
					    .subject = m->plan->secrets[i] };

		mon_audit(m, &s);
	}
	e.subject = hex;
	sb_audit_put(&e, "signer", key);
	sb_audit_put_num(&e, "bytes", len);
	r = mon_audit_wait(m, &e, SB_IPC_AUDIT_WAIT, fn, NULL);
	return r < 0 ? sb_err_set(err, r, "%s", strerror(-r)) : 0;
}

/* ---- network ---- */

static const char *const vias[] = {
	[SB_NET_VIA_DIRECT] = "direct", [SB_NET_VIA_CONNECT] = "connect",
	[SB_NET_VIA_HTTP] = "http",	[SB_NET_VIA_SOCKS] = "socks",
};

static const char *reason_of(const struct sb_ipc_net_event *ev)
{
	return ev->reason < SB_NET_N_REASONS && ev->reason != SB_NET_OK
		       ? sb_net_reason_name((enum sb_net_reason)ev->reason)
		       : NULL;
}

void mon_audit_net(struct monitor *m, const struct sb_ipc_net_event *ev)
{
	struct sb_audit_event e = { .time_ns = ev->time_ns, .kind = SB_AUDIT_NETWORK,
				    .verdict = ev->allow ? SB_AUDIT_ALLOW : SB_AUDIT_DENY };
	char subject[sizeof(ev->name) + 8];
	char name[sizeof(ev->name)];
	char rule[sizeof(ev->rule)];
	char addr[SB_ADDR_TEXT];
	struct sb_addr a;

	(void)snprintf(name, sizeof(name), "%.*s", (int)sizeof(name) - 1, ev->name);
	(void)snprintf(rule, sizeof(rule), "%.*s", (int)sizeof(rule) - 1, ev->rule);
	(void)snprintf(subject, sizeof(subject), "%s:%u", name, ev->port);
	e.subject = subject;
	e.rule = rule;
	e.reason = reason_of(ev);
	switch (ev->kind) {
	case SB_NET_EV_CONNECT:
		if (ev->allow) /* recorded when it was asked for */
			return;
		e.action = "connect";
		break;
	case SB_NET_EV_CLOSED:
		e.action = "close";
		e.verdict = SB_AUDIT_NONE;
		sb_audit_put_num(&e, "up", ev->up);
		sb_audit_put_num(&e, "down", ev->down);
		break;
	case SB_NET_EV_DNS:
		e.action = "resolve";
		e.subject = name;
		sb_audit_put_num(&e, "type", ev->dns_type);
		break;
	case SB_NET_EV_AMEND:
		e.kind = SB_AUDIT_POLICY;
		e.action = "amend";
		e.subject = NULL;
		sb_audit_put_num(&e, "number", ev->count);
		break;
	case SB_NET_EV_REQUEST:
		e.action = "request";
		break;
	case SB_NET_EV_LOST:
	default:
		e.action = "lost";
		e.subject = NULL;
		e.reason = "more events than the gate could keep";
		break;
	}
	if (ev->id > 0)
		sb_audit_put_num(&e, "id", ev->id);
	if (ev->via > 0 && ev->via < SB_ARRAY_LEN(vias))
		sb_audit_put(&e, "via", vias[ev->via]);
	if (ev->has_addr) {
		memcpy(a.b, ev->addr, sizeof(a.b));
		sb_addr_format(&a, addr);
		sb_audit_put(&e, "address", addr);
	}
	if (ev->kind != SB_NET_EV_AMEND)
		put_count(&e, ev->count);
	mon_audit(m, &e);
}

/* ---- SSH ---- */

void mon_audit_ssh(struct monitor *m, const struct sb_ipc_ssh_event *ev)
{
	static const char *const actions[] = { [SB_SSH_EV_SIGN] = "sign", [SB_SSH_EV_BIND] = "bind",
					       [SB_SSH_EV_REQUEST] = "request",
					       [SB_SSH_EV_LOST] = "lost" };
	struct sb_audit_event e = { .time_ns = ev->time_ns, .kind = SB_AUDIT_SSH,
				    .verdict = ev->allow ? SB_AUDIT_ALLOW : SB_AUDIT_DENY,
				    .action = actions[ev->kind], .subject = ev->host };
	char key[65];

	if (ev->kind == SB_SSH_EV_SIGN && ev->allow)
		return; /* recorded when it was asked for */
	if (!ev->allow)
		e.reason = sb_ssh_reason_name((enum sb_ssh_reason)ev->reason);
	if (ev->has_key) {
		sb_hex_write(ev->key, sizeof(ev->key), key);
		sb_audit_put(&e, "key", key);
	}
	if (ev->user[0])
		sb_audit_put(&e, "user", ev->user);
	if (ev->kind == SB_SSH_EV_REQUEST)
		sb_audit_put_num(&e, "type", ev->type);
	put_count(&e, ev->count);
	mon_audit(m, &e);
}

/* ---- commands ---- */

void mon_audit_exec(struct monitor *m, const struct sb_ipc_exec_event *ev)
{
	const struct sb_plan_commands *c = &m->plan->commands;
	const struct sb_cmd_rule *rule = ev->rule < c->n_rules ? &c->rules[ev->rule] : NULL;
	bool call = strcmp(ev->why, "system-call") == 0;
	struct sb_audit_event e = { .time_ns = ev->time_ns, .kind = SB_AUDIT_COMMAND,
				    .action = strcmp(ev->why, "lost") == 0 ? "lost"
					      : call			     ? "system-call"
									     : "exec",
				    .verdict = ev->killed		      ? SB_AUDIT_ERROR
					       : ev->action == SB_CMD_DENY ? SB_AUDIT_DENY
									   : SB_AUDIT_ALLOW,
				    .subject = ev->path,
				    .rule = rule ? rule->pattern : NULL,
				    .reason = ev->why };

	sb_audit_put_num(&e, "command", ev->cmd);
	sb_audit_put_num(&e, "pid", ev->pid);
	sb_audit_put_bool(&e, "top_level", ev->top_level != 0);
	if (ev->cut)
		sb_audit_put_bool(&e, "cut", true);
	put_count(&e, ev->count);
	sb_audit_put_list(&e, "argv", ev->argv, ev->argv_len);
	mon_audit(m, &e);
}

static void put_exit(struct sb_audit_event *e, const struct sb_ipc_exited *x)
{
	static const char *const kinds[] = { "unknown",	  "exit",     "signal",
					     "not-found", "not-executable", "setup" };

	sb_audit_put(e, "exit", kinds[x->kind < SB_ARRAY_LEN(kinds) ? x->kind : 0]);
	sb_audit_put_num(e, "value", x->value);
	sb_audit_put_num(e, "user_us", x->user_us);
	sb_audit_put_num(e, "system_us", x->sys_us);
	sb_audit_put_num(e, "max_rss", x->max_rss);
	if (x->oom)
		sb_audit_put_bool(e, "oom", true);
	if (x->lost != 0) /* errno: what it printed did not get where it should */
		sb_audit_put_num(e, "output_lost", x->lost);
}

void mon_audit_exit(struct monitor *m, const struct sb_ipc_exited *x)
{
	struct sb_audit_event e = { .kind = SB_AUDIT_COMMAND, .action = "exit" };

	if (x->cmd == 0) /* the session's outcome says it */
		return;
	sb_audit_put_num(&e, "command", x->cmd);
	put_exit(&e, x);
	mon_audit(m, &e);
}

/* ---- the end ---- */

static void on_outcome(struct monitor *m, void *arg, bool ok)
{
	(void)m;
	(void)arg;
	(void)ok;
}

void mon_audit_outcome(struct monitor *m)
{
	static const char *const fails[] = {
		[SB_FAIL_NONE] = "exit",	 [SB_FAIL_USAGE] = "usage",
		[SB_FAIL_PLAN] = "plan",	 [SB_FAIL_PROVIDER] = "provider",
		[SB_FAIL_GUEST] = "guest",	 [SB_FAIL_TIMEOUT] = "timeout",
		[SB_FAIL_CANCELLED] = "cancelled", [SB_FAIL_INTERNAL] = "internal",
		[SB_FAIL_AUDIT] = "audit",
	};
	struct sb_audit_event e = { .kind = SB_AUDIT_SESSION, .action = "end",
				    .verdict = m->done.fail ? SB_AUDIT_ERROR : SB_AUDIT_NONE,
				    .reason = m->done.text };

	if (!m->plan || !m->have_outcome || m->audit.broken ||
	    (m->audit.told && m->audit.told_fail == m->done.fail))
		return;
	m->audit.told = true;
	m->audit.told_fail = m->done.fail;
	e.subject = m->done.fail < SB_ARRAY_LEN(fails) ? fails[m->done.fail] : "internal";
	if (m->cli_gone && m->done.fail == SB_FAIL_CANCELLED)
		e.subject = "crashed"; /* nobody cancelled it: as the session's row will say */
	if (m->done.fail == SB_FAIL_NONE)
		put_exit(&e, &m->done.exit);
	if (mon_audit_wait(m, &e, SB_IPC_AUDIT_SIGN, on_outcome, NULL) < 0)
		return; /* told */
}
