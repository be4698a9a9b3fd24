#include "plan_again.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "conn/plan_env.h"
#include "crypto/crypto.h"
#include "plan_features.h"
#include "plan_make_i.h"
#include "plan_store.h"
#include "provider/executable.h"
#include "wire/ipc.h"

#define MAX_TOLD 20

static int oom(struct sb_err *err)
{
	return sb_err_set(err, -ENOMEM, "out of memory");
}

/* ---- is it to be believed? ---- */

static int believe(const struct sb_dirs *dirs, const struct plan_loaded *l, struct sb_err *err)
{
	cli_autokeys struct cli_keys keys = { .list = { .n = 0 } };
	char id[CLI_KEY_ID_ROOM];
	int r = cli_keys_load(dirs, &keys, err);

	if (r < 0)
		return r;
	cli_key_id(l->file.key, id);
	r = cli_keys_check(&keys, l->file.key, l->plan->created_unix_s, err);
	if (r < 0)
		return sb_err_add(err, r, "it is signed with %s: see sendbox key list, sendbox key "
				  "trust", id);
	r = sb_plan_check_time(l->plan, (uint64_t)time(NULL), err);
	if (r < 0)
		return sb_err_add(err, r, "export it with sendbox run --dry-run --valid-for TIME");
	if (l->plan->created_unix_s < keys.list.floor)
		return sb_err_set(err, -EKEYREJECTED,
				  "the plan is older than this host's floor (sendbox key list): make "
				  "it anew");
	return 0;
}

/* ---- the environment ---- */

static const char *given(const struct run_options *o, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = o->n_env; i > 0; i--)
		if (strncmp(o->env[i - 1], name, len) == 0 &&
		    (o->env[i - 1][len] == '=' || o->env[i - 1][len] == '\0'))
			return o->env[i - 1][len] ? o->env[i - 1] + len + 1 : getenv(name);
	return NULL;
}

static bool matches(const char *value, const uint8_t sha256[SB_SHA256_LEN])
{
	uint8_t sha[SB_SHA256_LEN];

	if (!value)
		return false;
	sb_sha256(value, strlen(value), sha);
	return memcmp(sha, sha256, sizeof(sha)) == 0;
}

static int find_values(struct sb_plan *p, const struct run_options *o, const struct sb_plan *implied,
		       struct sb_err *err)
{
	for (size_t i = 0; i < p->n_env; i++) {
		struct sb_plan_env *e = &p->env[i];
		const char *const from[] = { given(o, e->name), plan_env_get(implied, e->name),
					     getenv(e->name) };
		const char *value = NULL;

		for (size_t k = 0; k < SB_ARRAY_LEN(from) && !value; k++)
			if (matches(from[k], e->sha256))
				value = from[k];
		if (!value)
			return sb_err_set(err, -EKEYREJECTED,
					  "the value of %.100s is not the one of the plan, which holds "
					  "only its digest: give it with --env %.100s=VALUE", e->name,
					  e->name);
		e->value = strdup(value);
		if (!e->value)
			return oom(err);
	}
	for (size_t i = 0; i < o->n_env; i++) {
		size_t n = strcspn(o->env[i], "=");
		bool known = false;

		for (size_t k = 0; k < p->n_env && !known; k++)
			known = strlen(p->env[k].name) == n &&
				strncmp(p->env[k].name, o->env[i], n) == 0;
		if (!known)
			return sb_err_set(err, -EINVAL, "--env %.*s: the plan has no such variable",
					  (int)SB_MIN(n, (size_t)100), o->env[i]);
	}
	return 0;
}

static int fill_env(struct sb_plan *p, const struct run_options *o, struct sb_err *err)
{
	struct sb_plan implied = { .home = p->home, .user = p->user, .cwd = p->cwd,
				   .term = p->term };
	char agent[64];
	int r = plan_base_env(&implied, true, err);

	(void)snprintf(agent, sizeof(agent), SB_PLAN_SSH_SOCKET, p->uid);
	if (r == 0 && p->ssh.n_keys > 0)
		r = sb_plan_env_set(&implied, "SSH_AUTH_SOCK", strlen("SSH_AUTH_SOCK"), agent);
	if (r == 0 && sb_plan_env_set(&implied, PLAN_GIT_TEMPLATE, strlen(PLAN_GIT_TEMPLATE), "") < 0)
		r = oom(err);
	if (r == 0)
		r = find_values(p, o, &implied, err);
	for (size_t i = 0; i < implied.n_env; i++) {
		free(implied.env[i].name);
		free(implied.env[i].value);
	}
	free(implied.env);
	return r;
}

/* ---- made anew ---- */

static void drop_executables(struct sb_plan *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n_parts; i++) {
		if (strncmp(p->parts[i].role, SB_EXE_ROLE, strlen(SB_EXE_ROLE)) != 0) {
			p->parts[n++] = p->parts[i];
			continue;
		}
		free(p->parts[i].role);
		free(p->parts[i].path);
	}
	p->n_parts = n;
}

static int renew_owner(struct sb_plan *p, const struct stat *project)
{
	bool root = geteuid() == 0;

	p->owner_uid = root ? project->st_uid : geteuid();
	p->owner_gid = root ? project->st_gid : getegid();
	p->test_root = !plan_alone(p) && getenv("SENDBOX_TEST_GUEST_ROOT") != NULL;
	return 0;
}

static void forget_facts(struct sb_plan *p)
{
	drop_executables(p);
	for (size_t i = 0; i < p->n_features; i++) {
		free(p->features[i].name);
		free(p->features[i].mechanism);
	}
	free(p->features);
	p->features = NULL;
	p->n_features = 0;
	free(p->bundle.origin);
	p->bundle = (struct sb_plan_bundle){ .origin = NULL };
	free(p->kernel_release);
	p->kernel_release = NULL;
	memset(p->kernel_sha256, 0, sizeof(p->kernel_sha256));
	memset(p->initramfs_sha256, 0, sizeof(p->initramfs_sha256));
	memset(p->guest_sha256, 0, sizeof(p->guest_sha256));
	free(p->host_version);
	p->host_version = strdup(SB_VERSION);
}

static int renew(struct sb_plan *p, const struct run_options *o, const struct sb_dirs *dirs,
		 const struct sb_bundle *bundle, const uint8_t pub[32], struct sb_err *err)
{
	const struct sb_provider *provider = sb_provider_get(p->provider);
	struct stat project;
	int r;

	if (!provider)
		return sb_err_set(err, -ENOSYS, "this build has no such runtime");
	sb_random(p->session, sizeof(p->session));
	p->created_unix_s = (uint64_t)time(NULL);
	p->expires_unix_s = p->created_unix_s + PLAN_START_S;
	forget_facts(p);
	if (!p->host_version)
		return oom(err);
	r = plan_renew_mounts(p, dirs, &project, err);
	if (r == 0)
		r = plan_renew_root(p, err);
	if (r == 0)
		r = renew_owner(p, &project);
	if (r == 0)
		r = plan_set_bundle(p, bundle, pub, err);
	if (r == 0)
		r = provider->prepare(dirs, o->kernel, bundle, pub, p, err);
	if (r == 0)
		r = plan_set_executables(p, dirs, err);
	if (r == 0) {
		r = plan_features(p);
		if (r < 0)
			(void)sb_err_set(err, r, "features of the plan: %s", strerror(-r));
	}
	return r;
}

/* ---- compared ---- */

static void tell(void *arg, const char *path, const char *a, const char *b)
{
	size_t *n = arg;

	if ((*n)++ < MAX_TOLD)
		cli_error("plan: %.200s: there %.300s, here %.300s", path, a ? a : "nothing",
			  b ? b : "nothing");
}

/*
 * Session, times and identities of folders are this run's. The initramfs holds the host's public
 * key, and a local guest bundle is signed with it: of a plan from another host they are left out;
 * kernel, guest program and the bundle's manifest are compared.
 */
static int compare(const struct plan_loaded *l, const struct sb_plan *p, const uint8_t pub[32],
		   struct sb_err *err)
{
	const char *skip[20] = { "session",    "created",    "expires",	   "reviewed_sha256",
				 "mounts.dev", "mounts.ino", "image_dev",  "image_ino",
				 "layers.dev", "layers.ino", "layers.ctime_ns",
				 "upper.dev",  "upper.ino" };
	sb_autofree char *bytes = NULL;
	size_t at = 13;
	size_t told = 0;
	size_t len = 0;
	int r;

	if (memcmp(l->file.key, pub, 32) != 0) {
		skip[at++] = "initramfs_sha256";
		if (memcmp(l->plan->bundle.key, l->file.key, 32) == 0 &&
		    memcmp(p->bundle.key, pub, 32) == 0)
			skip[at++] = "bundle.key";
	}
	r = sb_plan_write(p, &bytes, &len, err);
	if (r < 0)
		return r;
	r = sb_plan_diff(l->file.plan, l->file.plan_len, bytes, len, skip, tell, &told);
	if (r < 0)
		return sb_err_set(err, r, "cannot compare the plans: %s", strerror(-r));
	if (r > 0)
		return sb_err_set(err, -ESTALE,
				  "plan refused: this host would run something else (%d difference%s, "
				  "told above); make and review a new plan with sendbox run --dry-run",
				  r, r == 1 ? "" : "s");
	return 0;
}

static int check_terminal(const struct sb_plan *p, struct sb_err *err)
{
	if (p->tty && !(isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)))
		return sb_err_set(err, -ENOTTY, "plan refused: it is for a terminal on standard input "
						"and output");
	return 0;
}

int plan_again(const struct run_options *o, const struct sb_dirs *dirs,
	       const struct sb_bundle *bundle, const uint8_t pub[32], struct sb_plan **ret,
	       uint32_t *ret_fail, struct sb_err *err)
{
	autoloaded struct plan_loaded l = { .plan = NULL };
	sb_autoplan struct sb_plan *p = NULL;
	int r = plan_load(o->plan, dirs, NULL, &l, err);

	*ret_fail = r == -ENOENT || r == -ENOTUNIQ ? SB_FAIL_USAGE : SB_FAIL_PLAN;
	if (r == 0)
		r = believe(dirs, &l, err);
	if (r == 0)
		r = sb_plan_parse(l.file.plan, l.file.plan_len, &p, err);
	if (r == 0)
		r = check_terminal(p, err);
	if (r == 0)
		r = fill_env(p, o, err);
	if (r < 0)
		return r;
	memcpy(p->reviewed_sha256, l.sha256, sizeof(l.sha256));
	*ret_fail = SB_FAIL_PROVIDER;
	r = renew(p, o, dirs, bundle, pub, err);
	if (r < 0)
		return r;
	*ret_fail = SB_FAIL_PLAN;
	r = compare(&l, p, pub, err);
	if (r < 0)
		return r;
	*ret = sb_take(&p);
	*ret_fail = SB_FAIL_NONE;
	return 0;
}
