/*
 * Theory of operation. The monitor of a session listens on net.sock in the session's directory and
 * passes callers of its own user to the net gate, which answers: first a list of connections that
 * ends with NET_END, then, with --follow, every event. A change of the rules is a signed amendment
 * with the sequence number after the gate's last one; the gate refuses a number that somebody else
 * was faster with, and then the new number is tried once.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "cli.h"
#include "crypto/crypto.h"
#include "dirs.h"
#include "net_text.h"
#include "options.h"
#include "plan_net.h"
#include "session.h"

#define LISTS_MAX 64

struct net {
	bool follow;
	bool json;
	const char *session;
	const char *allow[LISTS_MAX];
	size_t n_allow;
	const char *remove[LISTS_MAX];
	size_t n_remove;
	bool help;

	struct cli_dirs dirs;
	struct sb_plan *plan;
	int dir;
	int sock;
};

enum { O_FOLLOW = 1, O_JSON, O_ALLOW, O_REMOVE, O_HELP };
static const struct cli_option table[] = {
	{ "follow", 'f', NULL, "go on with every decision until the session ends", O_FOLLOW },
	{ "json", 0, NULL, "one JSON object a line", O_JSON },
	{ "allow", 0, "RULE", "allow this too, from now on", O_ALLOW },
	{ "remove", 0, "RULE", "take an allow rule away and cut what it allowed", O_REMOVE },
	{ "help", 'h', NULL, "this text", O_HELP },
};

static int take(struct net *n, int id, const char *value, struct sb_err *err)
{
	if (id == O_FOLLOW)
		n->follow = true;
	else if (id == O_JSON)
		n->json = true;
	else if (id == O_HELP)
		n->help = true;
	else if ((id == O_ALLOW ? n->n_allow : n->n_remove) == LISTS_MAX)
		return sb_err_set(err, -EINVAL, "at most %d rules at once", LISTS_MAX);
	else if (id == O_ALLOW)
		n->allow[n->n_allow++] = value;
	else
		n->remove[n->n_remove++] = value;
	return 0;
}

/* Options may stand on both sides of SESSION. */
static int parse(struct net *n, int argc, char **argv, struct sb_err *err)
{
	const char *value;
	bool dashes = false;
	int at = 0;

	while (at < argc) {
		int id = dashes ? 0
				: cli_options_next(table, SB_ARRAY_LEN(table), argc, argv, &at,
						   &value, &dashes, err);
		int r = id > 0 ? take(n, id, value, err) : id;

		if (r < 0)
			return r;
		if (id > 0 || at >= argc)
			continue;
		if (n->session)
			return sb_err_set(err, -EINVAL, "one session at a time, not \"%.60s\" too",
					  argv[at]);
		n->session = argv[at++];
		if (n->session[0] == '\0')
			return sb_err_set(err, -EINVAL, "\"\" names no session");
	}
	return 0;
}

static void print_json(json_t *o)
{
	char *s = o ? json_dumps(o, JSON_COMPACT) : NULL;

	if (s)
		(void)puts(s);
	free(s);
	json_decref(o);
}

/* ---- sessions ---- */

static void command_text(const struct sb_plan *p, char *out, size_t room)
{
	size_t n = 0;

	out[0] = '\0';
	for (size_t i = 0; p->argv[i] && n + 8 < room; i++) {
		if (i > 0)
			out[n++] = ' ';
		net_text_escape(p->argv[i], strlen(p->argv[i]), out + n, room - n);
		n += strlen(out + n);
	}
}

static void list_one(void *arg, int dir, const struct sb_plan *p)
{
	const struct net *n = arg;
	char hex[33];
	char command[80];
	char since[32] = "-";
	time_t t = (time_t)p->created_unix_s;
	struct tm tm;

	(void)dir;
	sb_hex_write(p->session, sizeof(p->session), hex);
	if (n->session && strncmp(hex, n->session, strlen(n->session)) != 0 &&
	    !(p->instance && strcmp(p->instance, n->session) == 0))
		return;
	command_text(p, command, sizeof(command));
	if (localtime_r(&t, &tm))
		(void)strftime(since, sizeof(since), "%Y-%m-%d %H:%M:%S", &tm);
	if (n->json)
		print_json(json_pack("{s:s,s:s,s:s,s:I}", "event", "session", "session", hex, "command",
				     command, "since_unix_s", (json_int_t)p->created_unix_s));
	else
		printf("%s  %s  %s\n", hex, since, command);
}

static int find(struct net *n, struct sb_err *err)
{
	int r = cli_session_find(&n->dirs.d, n->session, &n->dir, &n->plan, err);

	if (r == CLI_SESSION_NONE && n->session)
		return sb_err_set(err, -ENOENT, "no running session begins with \"%.60s\", and no "
						"instance of that name runs", n->session);
	if (r == CLI_SESSION_NONE)
		return sb_err_set(err, -ENOENT, "no running session");
	if (r == CLI_SESSION_MANY) {
		r = cli_session_each(&n->dirs.d, list_one, n, err);
		return r < 0 ? r : sb_err_set(err, -ENOTUNIQ,
					      "several sessions run: name one of those listed");
	}
	return r;
}

static int connect_gate(struct net *n, struct sb_err *err)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	sb_autofd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	/* the path through /proc: that of the directory may be longer than a socket's address */
	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "/proc/self/fd/%d/net.sock", n->dir);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) == 0) {
		n->sock = sb_fd_take(&fd);
		return 0;
	}
	if (errno == ENOENT && n->plan->net.mode == SB_NET_NONE)
		return sb_err_set(err, -ENOENT, "the session runs with --no-network");
	return sb_err_set(err, -errno, "cannot reach the session's net gate: %s", strerror(errno));
}

/* ---- the view ---- */

static void print_flow(const struct net *n, const struct sb_ipc_net_flow *f)
{
	struct sb_ipc_net_event host = f->ev;
	char when[16];
	char up[16];
	char down[16];
	char port[8];
	char target[1200];

	bool name = f->ev.kind == SB_NET_EV_DNS; /* one that was refused */

	if (n->json) {
		json_t *o = net_text_json(&f->ev);

		if (o && !name) {
			(void)json_object_set_new(o, "event", json_string("connection"));
			(void)json_object_del(o, "kind");
			(void)json_object_del(o, "time_ns");
			(void)json_object_del(o, "count");
			(void)json_object_set_new(o, "open", json_boolean(f->open != 0));
			(void)json_object_set_new(o, "opened_ns",
						  json_integer((json_int_t)f->opened_ns));
		}
		print_json(o);
		return;
	}
	host.port = 0;
	net_text_target(&host, target, sizeof(target));
	net_text_time(f->opened_ns, when);
	net_text_bytes(f->ev.up, up);
	net_text_bytes(f->ev.down, down);
	(void)snprintf(port, sizeof(port), name ? "-" : "%u", f->ev.port);
	printf("%-8s  %-7s  %-40s  %5s  %-22s  %7s  %7s\n", when, name ? "dns" : net_text_via(f->ev.via),
	       target, port,
	       f->open			    ? "open"
	       : f->ev.reason == SB_NET_OK ? "closed"
					    : net_text_reason(f->ev.reason),
	       up, down);
}

static void print_event(const struct net *n, const struct sb_ipc_net_event *ev)
{
	char when[16];
	char up[16];
	char down[16];
	char target[1200];
	char rule[1400];

	if (n->json) {
		print_json(net_text_json(ev));
		return;
	}
	net_text_time(ev->time_ns, when);
	net_text_target(ev, target, sizeof(target));
	net_text_escape(ev->rule, sizeof(ev->rule), rule, sizeof(rule));
	net_text_bytes(ev->up, up);
	net_text_bytes(ev->down, down);
	printf("%s  %-7s  %-7s  ", when, net_text_kind(ev->kind), net_text_via(ev->via));
	switch (ev->kind) {
	case SB_NET_EV_AMEND:
		printf("amendment %llu: %s %s", (unsigned long long)ev->count,
		       ev->allow ? "allow" : "remove", rule);
		break;
	case SB_NET_EV_LOST:
		printf("%llu %s not shown", (unsigned long long)ev->count,
		       ev->allow ? "events" : "refusals");
		break;
	case SB_NET_EV_CLOSED:
		printf("%s  %s  up %s down %s", target, net_text_reason(ev->reason), up, down);
		break;
	default:
		printf("%s  %s", target, ev->allow ? "allowed" : net_text_reason(ev->reason));
		if (rule[0])
			printf("  by %s", rule);
		break;
	}
	if (ev->count > 1 && ev->kind != SB_NET_EV_AMEND && ev->kind != SB_NET_EV_LOST)
		printf("  (%llu times)", (unsigned long long)ev->count);
	printf("\n");
}

/* Return: 0 with @ret set; -errno with text. @show: print what comes before the end. */
static int until_end(const struct net *n, bool show, struct sb_ipc_net_end *ret,
		     struct sb_err *err)
{
	for (;;) {
		sb_automsg struct sb_ipc_msg msg = { 0 };
		const void *p;
		int r = sb_ipc_recv(n->sock, &msg);

		if (r == SB_IPC_EOF)
			return sb_err_set(err, -EPIPE, "the session ended");
		if (r < 0)
			return sb_err_set(err, r, "the net gate: %s", strerror(-r));
		if (msg.type == SB_IPC_NET_FLOW &&
		    (p = sb_ipc_get(&msg, sizeof(struct sb_ipc_net_flow), 0))) {
			if (show)
				print_flow(n, p);
		} else if (msg.type == SB_IPC_NET_END &&
			   (p = sb_ipc_get(&msg, sizeof(*ret), 0))) {
			memcpy(ret, p, sizeof(*ret));
			ret->text[sizeof(ret->text) - 1] = '\0';
			return 0;
		} else if (msg.type != SB_IPC_NET_EVENT) {
			return sb_err_set(err, -EBADMSG, "the net gate said something unknown");
		}
	}
}

static int ask_list(const struct net *n, bool show, struct sb_ipc_net_end *end, struct sb_err *err)
{
	struct sb_ipc_net_watch w = { .follow = show && n->follow };
	int r = sb_ipc_send(n->sock, SB_IPC_NET_WATCH, &w, sizeof(w), NULL, 0);

	if (r < 0)
		return sb_err_set(err, r, "cannot reach the net gate: %s", strerror(-r));
	r = until_end(n, show, end, err);
	if (r == 0 && end->fail != 0)
		return sb_err_set(err, -EIO, "the net gate: %s", end->text);
	return r;
}

static int view(const struct net *n, struct sb_err *err)
{
	struct sb_ipc_net_end end;
	char hex[33];
	char command[200];
	int r;

	if (!n->json) {
		sb_hex_write(n->plan->session, sizeof(n->plan->session), hex);
		command_text(n->plan, command, sizeof(command));
		printf("session %s: %s\n", hex, command);
		printf("%-8s  %-7s  %-40s  %5s  %-22s  %7s  %7s\n", "TIME", "VIA", "TARGET", "PORT",
		       "VERDICT", "UP", "DOWN");
	}
	r = ask_list(n, true, &end, err);
	while (r == 0 && n->follow && fflush(stdout) == 0) {
		sb_automsg struct sb_ipc_msg msg = { 0 };
		const struct sb_ipc_net_event *ev;
		size_t n_ev;

		r = sb_ipc_recv(n->sock, &msg);
		if (r == SB_IPC_EOF)
			return 0;
		if (r < 0)
			return sb_err_set(err, r, "the net gate: %s", strerror(-r));
		n_ev = sb_ipc_get_events(&msg, &ev);
		for (size_t i = 0; i < n_ev; i++)
			print_event(n, &ev[i]);
	}
	return r;
}

/* ---- changes ---- */

static int send_amendment(struct net *n, struct sb_net_amend *a, const uint8_t sec[64],
			  struct sb_ipc_net_end *end, struct sb_err *err)
{
	sb_autofree char *bytes = NULL;
	sb_autofree uint8_t *msg = NULL;
	struct sb_ipc_net_amend head;
	size_t len = 0;
	int r = sb_net_amend_write(a, &bytes, &len);

	if (r < 0)
		return sb_err_set(err, r, "the amendment cannot be written: %s", strerror(-r));
	if (len > SB_NET_AMEND_MAX || sizeof(head) + len > SB_IPC_MAX_LEN)
		return sb_err_set(err, -E2BIG, "too many rules for one amendment: give fewer at once");
	msg = malloc(sizeof(head) + len);
	if (!msg)
		return sb_err_set(err, -ENOMEM, "out of memory");
	sb_sign(bytes, len, sec, head.signature);
	memcpy(msg, &head, sizeof(head));
	memcpy(msg + sizeof(head), bytes, len);
	r = sb_ipc_send(n->sock, SB_IPC_NET_AMEND, msg, sizeof(head) + len, NULL, 0);
	if (r < 0)
		return sb_err_set(err, r, "cannot reach the net gate: %s", strerror(-r));
	return until_end(n, false, end, err);
}

static void tell_rules(const struct net *n, json_t *list, const char *what,
		       const struct sb_net_rule *rules, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char text[400];

		sb_net_rule_text(&rules[i], text, sizeof(text));
		if (n->json)
			(void)json_array_append_new(list, json_string(text));
		else
			printf("%s %s\n", what, text);
	}
}

static void tell_change(const struct net *n, const struct sb_net_amend *a)
{
	json_t *allow = n->json ? json_array() : NULL;
	json_t *removed = n->json ? json_array() : NULL;

	tell_rules(n, allow, "allowed", a->allow, a->n_allow);
	tell_rules(n, removed, "removed", a->remove, a->n_remove);
	if (n->json)
		print_json(json_pack("{s:s,s:I,s:o,s:o}", "event", "amended", "seq",
				     (json_int_t)a->seq, "allow", allow, "remove", removed));
}

static int rules_of(struct net *n, const char *const *lists, size_t count, const char *from,
		    struct sb_plan_net *ret, struct sb_err *err)
{
	const char *writable[SB_PLAN_MAX_MOUNTS + 1] = { NULL };
	size_t k = 0;
	int r = 0;

	for (size_t i = 0; i < n->plan->n_mounts; i++)
		if (n->plan->mounts[i].mode == SB_MOUNT_RW)
			writable[k++] = n->plan->mounts[i].host;
	for (size_t i = 0; r == 0 && i < count; i++)
		r = plan_net_rules(lists[i], false, from, n->plan->cwd, writable, ret, err);
	return r;
}

static int amend(struct net *n, struct sb_err *err)
{
	struct sb_plan_net allow = { 0 };
	struct sb_plan_net gone = { 0 };
	struct sb_net_amend a = { 0 };
	struct sb_ipc_net_end end;
	uint8_t pub[32];
	uint8_t sec[64];
	int r = rules_of(n, n->allow, n->n_allow, "sendbox net --allow", &allow, err);

	if (r == 0)
		r = rules_of(n, n->remove, n->n_remove, "sendbox net --remove", &gone, err);
	if (r == 0)
		r = ask_list(n, false, &end, err);
	if (r == 0)
		r = cli_host_key(&n->dirs.d, pub, sec, err);
	if (r == 0) {
		memcpy(a.session, n->plan->session, sizeof(a.session));
		a.allow = allow.rules; /* borrowed */
		a.n_allow = allow.n_rules;
		a.remove = gone.rules;
		a.n_remove = gone.n_rules;
		a.seq = end.seq + 1;
		r = send_amendment(n, &a, sec, &end, err);
		if (r == 0 && end.fail == ESTALE) { /* somebody was faster */
			a.seq = end.seq + 1;
			r = send_amendment(n, &a, sec, &end, err);
		}
		if (r == 0 && end.fail != 0)
			r = sb_err_set(err, -EINVAL, "nothing was changed: %s", end.text);
		if (r == 0)
			tell_change(n, &a);
	}
	sb_wipe(sec, sizeof(sec));
	sb_plan_net_done(&allow);
	sb_plan_net_done(&gone);
	return r;
}

int cmd_net(int argc, char **argv)
{
	struct net n = { .dir = -1, .sock = -1 };
	struct sb_err err = { 0 };
	bool found = false;
	int r = parse(&n, argc, argv, &err);

	if (r < 0) {
		cli_error("%s", err.text);
		return SB_EXIT_USAGE;
	}
	if (n.help) {
		printf("usage: sendbox net [options] [SESSION]\n\nShow the connections of a running "
		       "session (the only one, or the one whose id begins with\nSESSION, or of the instance of "
		       "that name), or change what it may reach.\n\n");
		cli_options_help(table, SB_ARRAY_LEN(table));
		return fflush(stdout) == 0 ? SB_EXIT_OK : SB_EXIT_INTERNAL;
	}
	r = sb_crypto_init();
	if (r == 0)
		r = cli_dirs_init(&n.dirs, &err);
	if (r == 0)
		r = find(&n, &err);
	found = r == 0;
	if (r == 0)
		r = connect_gate(&n, &err);
	if (r == 0 && n.n_allow + n.n_remove > 0)
		r = amend(&n, &err);
	if (r == 0 && (n.n_allow + n.n_remove == 0 || n.follow))
		r = view(&n, &err);
	sb_fd_close(&n.sock);
	sb_fd_close(&n.dir);
	(void)sb_plan_free(n.plan);
	if (fflush(stdout) != 0 && r == 0)
		r = sb_err_set(&err, -EIO, "cannot write to standard output");
	if (r < 0)
		cli_error("%s", err.code ? err.text : strerror(-r));
	if (r < 0 && n.session && !found) /* a word that names none, as everywhere */
		return SB_EXIT_USAGE;
	return r < 0 ? 1 : SB_EXIT_OK;
}
