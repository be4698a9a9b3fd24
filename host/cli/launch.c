/*
 * One session from options to its exit status: launch_plan.c makes and signs the plan,
 * launch_session.c runs it. Nothing is kept from one call to the next.
 */
#include "launch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "cli.h"
#include "crypto/crypto.h"
#include "hold.h"
#include "launch_i.h"
#include "plan_net.h"
#include "run_snaps.h"
#include "sizes.h"

#define REPORT_AFTER_NS 10000000000ULL

int launch_fail(struct run *r, uint32_t why, struct sb_err *err, int code)
{
	if (r->result.fail == SB_FAIL_NONE) {
		r->result.fail = why;
		if (err->code == 0)
			(void)sb_err_set(err, code, "%s", strerror(-code));
		(void)snprintf(r->result.text, sizeof(r->result.text), "%.499s", err->text);
	}
	return code;
}

static void say(const struct run *r, const char *text)
{
	launch_say((void *)(uintptr_t)r, text);
}

/* Status and text for the shell, from what the monitor said. */
static int status_of(const struct run *r, char *text, size_t cap)
{
	const struct sb_ipc_exited *x = &r->result.exit;

	text[0] = '\0';
	if (r->result.fail != SB_FAIL_NONE) {
		(void)snprintf(text, cap, "%.*s", (int)sizeof(r->result.text) - 1, r->result.text);
		return cli_exit_of(r->result.fail);
	}
	if (x->lost != 0) {
		(void)snprintf(text, cap, "output of the command is lost: cannot write it: %s",
			       strerror((int)x->lost));
		return SB_EXIT_INTERNAL;
	}
	if (r->unreviewed) {
		(void)snprintf(text, cap, "guarded paths may be as the session left them: look at sendbox diff --guarded before "
			       "anything else runs in the folder");
		return SB_EXIT_REVIEW;
	}
	switch (x->kind) {
	case SB_EXIT_CODE:
		return (int)(x->value & 255);
	case SB_EXIT_SIGNAL:
		if (x->oom)
			(void)snprintf(text, cap, "the command was killed because it used more "
						  "memory than its limit; give more with --memory");
		return 128 + (int)(x->value & 127);
	case SB_EXIT_NOT_FOUND:
		(void)snprintf(text, cap, "%.200s: not found in the sandbox", r->program);
		return SB_EXIT_NO_PROGRAM;
	case SB_EXIT_NOT_EXEC:
		(void)snprintf(text, cap, "%.200s: cannot be executed in the sandbox: %s",
			       r->program, strerror((int)x->value));
		return SB_EXIT_CANNOT_EXEC;
	default:
		(void)snprintf(text, cap, "the guest could not set the command up: %s",
			       strerror((int)x->value));
		return SB_EXIT_GUEST;
	}
}

int launch_status(const struct run *r)
{
	char text[sizeof(((struct launch_result *)0)->text)];

	return status_of(r, text, sizeof(text));
}

static int dry_run(struct run *r, struct sb_err *err)
{
	int k = sb_fd_write_all(r->stdio[1], r->file, r->file_len);

	r->done = true;
	r->result.exit.kind = SB_EXIT_CODE;
	return k < 0 ? launch_fail(r, SB_FAIL_INTERNAL, err,
				   sb_err_set(err, k, "cannot write the plan to standard output: %s",
					      strerror(-k)))
		     : 0;
}

/* A grant of a port of this host that the program never used by its name, and then failed. */
static bool host_unused(const struct run *r)
{
	const struct sb_plan_net *n = &r->plan->net;
	bool granted = false;

	for (size_t i = 0; i < n->n_rules; i++)
		granted |= !n->rules[i].deny && strcmp(n->rules[i].host, SB_HOST_NAME) == 0;
	return granted && !summary_saw_host(r->summary) && r->done &&
	       r->result.fail == SB_FAIL_NONE && r->result.exit.kind == SB_EXIT_CODE &&
	       r->result.exit.value != 0;
}

/* What the session is told to have before it starts. */
static void tell_before(const struct run *r)
{
	const struct plan_input in = launch_input(r);
	const struct cfg_value *v;
	char where[600];
	char text[700];

	/* a banner has said so */
	if (r->plan->provider == SB_PROVIDER_NAMESPACE && !r->json &&
	    !(r->l->planned && !r->opt->quiet && isatty(STDERR_FILENO)))
		say(r, "runtime namespace shares the host's kernel: weaker than a virtual machine");
	if (r->plan->net.mode == SB_NET_OPEN) {
		/* of a plan that was given there is no configuration */
		(void)snprintf(where, sizeof(where), "--plan");
		if (!r->opt->plan) {
			v = conf_set(&in, "policy.network.mode");
			conf_where(&in, v ? v : conf_set(&in, "policy.network.default_action"),
				   where, sizeof(where));
		}
		(void)snprintf(text, sizeof(text), "%s: the network is not filtered, every public "
						   "name and address is in reach", where);
		say(r, text);
	}
	if (r->plan->test_root && !r->json)
		say(r, "SENDBOX_TEST_GUEST_ROOT is set: the command runs as root of the guest");
}

/* At a terminal, of a session that was more than a glance: where the whole account is. */
static void tell_report(const struct run *r)
{
	uint64_t took_ns = sb_now_ns() - r->began_ns;
	char text[120];
	char took[24];
	char id[33];

	if (r->json || r->opt->quiet || r->plan->builder || !isatty(STDERR_FILENO) ||
	    took_ns < REPORT_AFTER_NS)
		return;
	sb_hex_write(r->plan->session, 16, id);
	sizes_duration(took_ns, took, sizeof(took));
	(void)snprintf(text, sizeof(text), "session %.12s took %s; what it did: sendbox report %.12s", id, took,
		       id);
	say(r, text);
}

static void tell_after(struct run *r, bool unused)
{
	char text[4200];

	if (r->detached && !r->json) {
		(void)snprintf(text, sizeof(text), "detached: instance %s runs on; sendbox attach %s "
						   "joins it again", r->hold->name, r->hold->name);
		say(r, text);
		return;
	}
	if (r->opt->keep && r->have_session && !r->json) {
		(void)snprintf(text, sizeof(text),
			       "session kept in %s; clear it with: sendbox gc --all",
			       r->session.path);
		say(r, text);
	}
	if (r->commands)
		commands_tell(r->commands, launch_say, r);
	if (r->ssh)
		ssh_summary_tell(r->ssh, r->plan, launch_say, r);
	if (r->summary && r->l->refused)
		summary_tell(r->summary, plan_net_is_own, r->plan->builder, r->l->refused, r->l->arg);
	else if (r->summary)
		summary_tell(r->summary, plan_net_is_own, r->plan->builder, launch_say, r);
	if (unused)
		say(r, "network: the allowed port of this host was not used: inside, this host is "
		       SB_HOST_NAME ", and localhost is the sandbox itself");
	tell_report(r);
}

static int prepare(struct run *r, struct sb_err *err)
{
	int k = sb_crypto_init();

	if (k == 0)
		k = cli_dirs_init(&r->dirs, err);
	if (k < 0)
		return launch_fail(r, SB_FAIL_INTERNAL, err, k);
	if (!r->opt->plan)
		k = launch_load(r, err);
	if (k == 0)
		k = launch_plan(r, err);
	if (k < 0)
		return k;
	k = run_snaps_check(r, err);
	return k < 0 ? launch_fail(r, SB_FAIL_USAGE, err, k) : 0;
}

static int run(struct run *r, struct sb_err *err)
{
	int k = sb_loop_new(&r->loop);

	if (k == 0 && !r->json)
		k = summary_new(&r->summary);
	if (k == 0 && !r->json && r->plan->ssh.n_keys > 0)
		k = ssh_summary_new(&r->ssh);
	if (k == 0 && !r->json)
		k = commands_new(r->plan, !r->plan->tty, &r->commands);
	if (k == 0) {
		r->began_ns = sb_now_ns();
		tell_before(r);
		k = launch_session(r, err);
	}
	if (k == 0 && r->detached) { /* how it ends is nobody's to know here */
		r->done = true;
		r->result.exit = (struct sb_ipc_exited){ .kind = SB_EXIT_CODE };
		return 0;
	}
	if (k == 0 && !r->done)
		k = sb_err_set(err, -ESRCH, "the session's monitor ended unexpectedly; everything "
					    "was cleared");
	/* made from something else than what was asked for now */
	return k < 0 ? launch_fail(r, k == -ESTALE ? SB_FAIL_USAGE : SB_FAIL_INTERNAL, err, k) : 0;
}

static void release(struct run *r)
{
	r->commands = commands_free(r->commands);
	r->summary = summary_free(r->summary);
	r->ssh = ssh_summary_free(r->ssh);
	r->plan = sb_plan_free(r->plan);
	r->loop = sb_loop_free(r->loop);
	r->bundle = sb_bundle_free(r->bundle);
	free(r->plan_bytes);
	free(r->file);
	conf_done(&r->conf);
}

static void fill(const struct run *r, struct launch_result *ret)
{
	ret->problems = r->problems;
	ret->fail = r->result.fail;
	ret->exit = r->result.exit;
	ret->status = status_of(r, ret->text, sizeof(ret->text));
	if (r->plan)
		memcpy(ret->session, r->plan->session, sizeof(ret->session));
	if (r->plan_bytes)
		sb_sha256(r->plan_bytes, r->plan_len, ret->plan_sha256);
}

int launch(const struct launch *l, struct launch_result *ret, struct sb_err *err)
{
	return launch_held(l, NULL, ret, err);
}

int launch_held(const struct launch *l, const struct hold_conf *hold, struct launch_result *ret,
		struct sb_err *err)
{
	struct run r = { .l = l,
			 .hold = hold,
			 .opt = l->opt,
			 .json = l->opt->json && !l->quiet,
			 .sock = -1,
			 .sigfd = -1,
			 .session = { .dir = -1, .lock = -1 },
			 .io = { { .fd = -1 }, { .fd = -1 }, { .fd = -1 } } };
	bool unused = false;
	int k;

	*ret = (struct launch_result){ 0 };
	for (int i = 0; i < 3; i++)
		r.stdio[i] = l->io[i] >= 0 ? l->io[i] : i;
	k = prepare(&r, err);
	if (k == 0 && r.opt->dry_run) {
		k = dry_run(&r, err);
	} else if (k == 0) {
		if (l->planned)
			l->planned(l->arg, r.plan);
		k = run(&r, err);
		unused = r.summary && host_unused(&r);
		launch_session_end(&r);
		tell_after(&r, unused);
		ret->detached = r.detached;
	}
	fill(&r, ret);
	release(&r);
	return k;
}
