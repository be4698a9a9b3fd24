/*
 * Theory of operation. The plan is tables of fields (json_i.h) and a few lists; what has been read
 * is written again and must be the same bytes.
 */
#include "core/plan.h"

#include <errno.h>
#include <string.h>

#include "core/json_i.h"
#include "core/plan_i.h"

#define FORMAT "sendbox-plan"

static const char *const provider_names[] = { NULL, "microvm", "namespace" };
static const char *const accel_names[] = { "none", "kvm", "tcg" };
static const char *const image_names[] = { NULL, "host", "dir", "layers" };
static const char *const mode_names[] = { NULL, "ro", "rw" };

#define F(key, kind, member) SB_JSON_F(struct sb_plan, key, kind, member)
#define FHEX(key, member) SB_JSON_HEX(struct sb_plan, key, member)
#define FENUM(key, member, names) SB_JSON_ENUM(struct sb_plan, key, member, names)

static const struct sb_json_field plan_fields[] = {
	FHEX("session", session),
	F("created", K_U64, created_unix_s),
	F("expires", K_U64, expires_unix_s),
	FENUM("provider", provider, provider_names),
	FENUM("accel", accel, accel_names),
	F("provider_reason", K_STR, provider_reason),
	FENUM("image", image, image_names),
	F("image_path", K_STR_OR_NULL, image_path),
	F("image_dev", K_U64, image_dev),
	F("image_ino", K_U64, image_ino),
	F("kernel_release", K_STR_OR_NULL, kernel_release),
	FHEX("kernel_sha256", kernel_sha256),
	FHEX("initramfs_sha256", initramfs_sha256),
	FHEX("guest_sha256", guest_sha256),
	F("cwd", K_STR, cwd),
	F("tty", K_BOOL, tty),
	F("separate_stderr", K_BOOL, separate_stderr),
	F("term", K_STR_OR_NULL, term),
	F("uid", K_U32, uid),
	F("gid", K_U32, gid),
	F("user", K_STR, user),
	F("home", K_STR, home),
	F("owner_uid", K_U32, owner_uid),
	F("owner_gid", K_U32, owner_gid),
	F("hostname", K_STR, hostname),
	F("test_root", K_BOOL, test_root),
	F("cpus", K_U32, cpus),
	F("memory", K_U64, memory_bytes),
	F("disk", K_U64, disk_bytes),
	F("pids_max", K_U32, pids_max),
	F("nofile", K_U64, nofile),
	F("timeout_ms", K_U64, timeout_ms),
	F("cpus_asked", K_BOOL, cpus_asked),
	F("memory_asked", K_BOOL, memory_asked),
	F("pids_asked", K_BOOL, pids_asked),
};

#define MF(key, kind, member) SB_JSON_F(struct sb_plan_mount, key, kind, member)
static const struct sb_json_field mount_fields[] = {
	MF("host", K_STR, host),
	MF("guest", K_STR, guest),
	SB_JSON_ENUM(struct sb_plan_mount, "mode", mode, mode_names),
	MF("file", K_BOOL, file),
	MF("dev", K_U64, dev),
	MF("ino", K_U64, ino),
	MF("quota_bytes", K_U64, quota_bytes),
	MF("quota_inodes", K_U64, quota_inodes),
};

static const struct sb_json_field env_fields[] = {
	SB_JSON_F(struct sb_plan_env, "name", K_STR, name),
	SB_JSON_HEX(struct sb_plan_env, "sha256", sha256),
};

struct sb_plan *sb_plan_free(struct sb_plan *p)
{
	if (!p)
		return NULL;
	for (size_t i = 0; i < p->n_mounts; i++) {
		free(p->mounts[i].host);
		free(p->mounts[i].guest);
	}
	free(p->mounts);
	free(p->provider_reason);
	free(p->image_path);
	free(p->kernel_release);
	free(p->cwd);
	free(p->term);
	free(p->user);
	free(p->home);
	free(p->hostname);
	sb_json_strings_free(p->argv);
	for (size_t i = 0; i < p->n_env; i++) {
		free(p->env[i].name);
		if (p->env[i].value)
			explicit_bzero(p->env[i].value, strlen(p->env[i].value));
		free(p->env[i].value);
	}
	free(p->env);
	sb_plan_net_done(&p->net);
	sb_plan_ssh_done(&p->ssh);
	sb_plan_root_done(p);
	sb_plan_parts_done(p);
	free(p);
	return NULL;
}

/* ---- writing ---- */

static int write_unchecked(const struct sb_plan *p, char **ret, size_t *ret_len)
{
	json_t *o = json_object();
	char *text = NULL;

	if (o && json_object_set_new(o, "format", json_string(FORMAT)) == 0 &&
	    json_object_set_new(o, "version", json_integer(SB_PLAN_VERSION)) == 0 &&
	    sb_json_add(o, plan_fields, SB_ARRAY_LEN(plan_fields), p) == 0 &&
	    json_object_set_new(o, "argv", sb_json_strings(p->argv)) == 0 &&
	    json_object_set_new(o, "env",
				sb_json_list(p->env, p->n_env, sizeof(*p->env), env_fields,
					     SB_ARRAY_LEN(env_fields))) == 0 &&
	    json_object_set_new(o, "mounts",
				sb_json_list(p->mounts, p->n_mounts, sizeof(*p->mounts),
					     mount_fields, SB_ARRAY_LEN(mount_fields))) == 0 &&
	    json_object_set_new(o, "net", sb_net_json(&p->net)) == 0 &&
	    json_object_set_new(o, "ssh", sb_plan_ssh_json(&p->ssh)) == 0 &&
	    sb_plan_root_add(o, p) == 0 && sb_plan_parts_add(o, p) == 0)
		text = sb_json_text(sb_take(&o));
	json_decref(o);
	if (!text)
		return -ENOMEM;
	*ret = text;
	*ret_len = strlen(text);
	return 0;
}

int sb_plan_write(const struct sb_plan *p, char **ret, size_t *ret_len, struct sb_err *err)
{
	sb_autofree char *text = NULL;
	size_t len = 0;
	int r = sb_plan_check(p, err);

	if (r < 0)
		return r;
	r = write_unchecked(p, &text, &len);
	if (r < 0)
		return sb_err_set(err, r, "plan: out of memory");
	if (len > SB_PLAN_MAX_BYTES)
		return sb_err_set(err, -EINVAL, "plan: larger than %u bytes", SB_PLAN_MAX_BYTES);
	*ret = sb_take(&text);
	*ret_len = len;
	return 0;
}

/* ---- parsing ---- */

static int parse_object(const json_t *o, struct sb_plan *p, struct sb_err *err)
{
	const json_t *format = json_object_get(o, "format");
	const json_t *version = json_object_get(o, "version");
	void *mounts = NULL;
	void *env = NULL;
	int r;

	if (!json_is_string(format) || strcmp(json_string_value(format), FORMAT) != 0)
		return sb_json_bad(err, "format", "is not " FORMAT);
	if (json_integer_value(version) != SB_PLAN_VERSION)
		return sb_json_bad(err, "version", "is not one that this program knows");
	r = sb_json_get(o, plan_fields, SB_ARRAY_LEN(plan_fields), p, err);
	if (r == 0)
		r = sb_json_get_strings(o, "argv", SB_PLAN_MAX_ARGS, &p->argv, err);
	if (r == 0)
		r = sb_json_get_list(o, "env", SB_PLAN_MAX_ARGS, sizeof(*p->env), env_fields,
				     SB_ARRAY_LEN(env_fields), &env, &p->n_env, err);
	p->env = env;
	if (r == 0)
		r = sb_json_get_list(o, "mounts", SB_PLAN_MAX_MOUNTS, sizeof(*p->mounts),
				     mount_fields, SB_ARRAY_LEN(mount_fields), &mounts,
				     &p->n_mounts, err);
	p->mounts = mounts;
	if (r == 0)
		r = sb_net_json_get(o, "net", &p->net, err);
	if (r == 0)
		r = sb_plan_ssh_json_get(o, &p->ssh, err);
	if (r == 0)
		r = sb_plan_root_get(o, p, err);
	if (r == 0)
		r = sb_plan_parts_get(o, p, err);
	return r;
}

int sb_plan_parse(const char *bytes, size_t len, struct sb_plan **ret, struct sb_err *err)
{
	sb_autoplan struct sb_plan *p = calloc(1, sizeof(*p));
	sb_autofree char *again = NULL;
	size_t again_len = 0;
	json_t *o;
	int r;

	if (!p)
		return -ENOMEM;
	r = sb_json_load("plan", bytes, len, SB_PLAN_MAX_BYTES, 0, &o, err);
	if (r < 0)
		return r;
	r = parse_object(o, p, err);
	json_decref(o);
	if (r == 0)
		r = write_unchecked(p, &again, &again_len);
	if (r < 0)
		return sb_err_set(err, r, "plan: cannot be read");
	r = sb_json_same("plan", bytes, len, again, again_len, err);
	if (r < 0)
		return r;
	if (sb_plan_check(p, err) < 0)
		return -EBADMSG;
	*ret = sb_take(&p);
	return 0;
}
