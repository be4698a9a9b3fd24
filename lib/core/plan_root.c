/* What the root file system is laid of: layers, the upper one, and who works on it. */
#include <errno.h>
#include <string.h>

#include "core/plan_i.h"

#define refuse sb_plan_refuse

#define BLOCK 4096U
#define MAX_LAYER_BYTES (1ULL << 40)

static const char *const upper_names[] = { NULL, "tmpfs", "disk", "dir" };
static const char *const task_names[] = { NULL, "command", "export" };

#define LF(key, kind, member) SB_JSON_F(struct sb_plan_layer, key, kind, member)
static const struct sb_json_field layer_fields[] = {
	LF("path", K_STR, path),
	SB_JSON_HEX(struct sb_plan_layer, "sha256", sha256),
	LF("dev", K_U64, dev),
	LF("ino", K_U64, ino),
	LF("size", K_U64, size),
	LF("ctime_ns", K_U64, ctime_ns),
};
#define UF(key, kind, member) SB_JSON_F(struct sb_plan_upper, key, kind, member)
static const struct sb_json_field upper_fields[] = {
	SB_JSON_ENUM(struct sb_plan_upper, "kind", kind, upper_names),
	UF("path", K_STR_OR_NULL, path),
	UF("dev", K_U64, dev),
	UF("ino", K_U64, ino),
};
static const struct sb_json_field root_fields[] = {
	SB_JSON_F(struct sb_plan, "instance", K_STR_OR_NULL, instance),
	SB_JSON_ENUM(struct sb_plan, "task", task, task_names),
	SB_JSON_F(struct sb_plan, "builder", K_BOOL, builder),
};

const char *sb_plan_upper_name(enum sb_upper_kind k)
{
	return (size_t)k < SB_ARRAY_LEN(upper_names) ? upper_names[k] : NULL;
}

/* ---- JSON ---- */

int sb_plan_root_add(json_t *o, const struct sb_plan *p)
{
	json_t *upper = json_object();
	int r = sb_json_add(o, root_fields, SB_ARRAY_LEN(root_fields), p);

	if (r == 0 && upper)
		r = sb_json_add(upper, upper_fields, SB_ARRAY_LEN(upper_fields), &p->upper);
	if (r < 0) {
		json_decref(upper);
		return r;
	}
	if (json_object_set_new(o, "upper", upper) < 0 ||
	    json_object_set_new(o, "layers",
				sb_json_list(p->layers, p->n_layers, sizeof(*p->layers),
					     layer_fields, SB_ARRAY_LEN(layer_fields))) < 0)
		return -ENOMEM;
	return 0;
}

int sb_plan_root_get(const json_t *o, struct sb_plan *p, struct sb_err *err)
{
	const json_t *upper = json_object_get(o, "upper");
	void *layers = NULL;
	int r = sb_json_get(o, root_fields, SB_ARRAY_LEN(root_fields), p, err);

	if (r == 0)
		r = sb_json_get_list(o, "layers", SB_PLAN_MAX_LAYERS, sizeof(*p->layers),
				     layer_fields, SB_ARRAY_LEN(layer_fields), &layers,
				     &p->n_layers, err);
	p->layers = layers;
	if (r < 0)
		return r;
	if (!json_is_object(upper))
		return sb_json_bad(err, "upper", "is missing or no object");
	return sb_json_get(upper, upper_fields, SB_ARRAY_LEN(upper_fields), &p->upper, err);
}

void sb_plan_root_done(struct sb_plan *p)
{
	for (size_t i = 0; i < p->n_layers; i++)
		free(p->layers[i].path);
	free(p->layers);
	free(p->upper.path);
	free(p->instance);
}

/* ---- rules ---- */

/* A file that decides what runs must not be one that the workload could write. */
static int check_apart(const struct sb_plan *p, const char *what, const char *path,
		       struct sb_err *err)
{
	int r = sb_plan_check_path(what, path, err);

	for (size_t i = 0; r == 0 && i < p->n_mounts; i++)
		if (p->mounts[i].host && (sb_path_within(path, p->mounts[i].host) ||
					  sb_path_within(p->mounts[i].host, path)))
			r = refuse(err, what, path, "lies in a shared folder, or holds one");
	return r;
}

static int check_layer(const struct sb_plan *p, size_t i, struct sb_err *err)
{
	static const uint8_t none[32];
	const struct sb_plan_layer *l = &p->layers[i];
	int r = check_apart(p, "layer", l->path, err);

	if (r < 0)
		return r;
	if (memcmp(l->sha256, none, sizeof(none)) == 0)
		return refuse(err, "layer", l->path, "has no digest");
	if (l->size < BLOCK || l->size % BLOCK != 0 || l->size > MAX_LAYER_BYTES)
		return refuse(err, "layer", l->path,
			      "its size must be whole blocks of 4 KiB, 1 TiB at most");
	if (l->ino == 0 || l->ctime_ns == 0)
		return refuse(err, "layer", l->path, "does not say which file it is");
	for (size_t k = 0; k < i; k++)
		if (memcmp(p->layers[k].sha256, l->sha256, sizeof(l->sha256)) == 0)
			return refuse(err, "layer", l->path, "is there twice");
	return 0;
}

static int check_upper(const struct sb_plan *p, struct sb_err *err)
{
	const struct sb_plan_upper *u = &p->upper;
	bool vm = p->provider == SB_PROVIDER_MICROVM;

	if (!sb_plan_upper_name(u->kind))
		return sb_err_set(err, -EINVAL, "plan refused: no kind of upper layer (tmpfs, "
						"disk, dir)");
	if (u->kind == SB_UPPER_TMPFS)
		return !u->path && u->dev == 0 && u->ino == 0
			       ? 0
			       : refuse(err, "upper layer", u->path, "in memory has no path");
	if ((u->kind == SB_UPPER_DISK) != vm)
		return refuse(err, "upper layer", u->path,
			      vm ? "a micro-VM has a disk, not a directory"
				 : "only a micro-VM can have a disk");
	if (u->ino == 0)
		return refuse(err, "upper layer", u->path, "does not say which file it is");
	return check_apart(p, "upper layer", u->path, err);
}

static int check_builder(const struct sb_plan *p, struct sb_err *err)
{
	if (!p->builder)
		return 0;
	if (p->uid != 0 || p->gid != 0 || p->test_root)
		return sb_err_set(err, -EINVAL,
				  "plan refused: a builder is root of its own guest, and not the "
				  "root of tests");
	if (p->ssh.n_keys > 0)
		return sb_err_set(err, -EINVAL, "plan refused: a builder gets no SSH keys");
	for (size_t i = 0; i < p->n_mounts; i++)
		if (p->mounts[i].mode != SB_MOUNT_RO)
			return refuse(err, "mount target", p->mounts[i].guest,
				      "a builder gets folders read-only");
	return 0;
}

static int check_task(const struct sb_plan *p, struct sb_err *err)
{
	const char *rule = NULL;

	if (p->task == SB_TASK_COMMAND)
		return 0;
	if (p->task != SB_TASK_EXPORT)
		return sb_err_set(err, -EINVAL, "plan refused: no task (command, export)");
	if (p->upper.kind == SB_UPPER_TMPFS)
		rule = "needs an upper layer that outlived its session";
	else if (p->n_mounts > 0)
		rule = "has no shared folders";
	else if (p->net.mode != SB_NET_NONE)
		rule = "has no network";
	else if (p->ssh.n_keys > 0)
		rule = "has no SSH keys";
	else if (p->tty)
		rule = "writes to no terminal";
	else if (p->builder)
		rule = "runs nothing, so it is no builder";
	return rule ? refuse(err, "task", "export", rule) : 0;
}

bool sb_plan_instance_ok(const char *name)
{
	static const char ok[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				 "._-";

	return name && *name && strlen(name) <= SB_PLAN_MAX_INSTANCE &&
	       name[strspn(name, ok)] == '\0' && !strchr("._-", name[0]);
}

int sb_plan_root_check(const struct sb_plan *p, struct sb_err *err)
{
	int r = 0;

	if (p->n_layers > SB_PLAN_MAX_LAYERS)
		return sb_err_set(err, -EINVAL, "plan refused: %zu layers, at most %d are possible",
				  p->n_layers, SB_PLAN_MAX_LAYERS);
	if (p->image == SB_IMAGE_LAYERS && p->n_layers == 0)
		return sb_err_set(err, -EINVAL, "plan refused: an image of layers without a layer");
	for (size_t i = 0; r == 0 && i < p->n_layers; i++)
		r = check_layer(p, i, err);
	if (r == 0)
		r = check_upper(p, err);
	if (r == 0)
		r = check_builder(p, err);
	if (r == 0)
		r = check_task(p, err);
	if (r == 0 && p->instance && !sb_plan_instance_ok(p->instance))
		r = refuse(err, "instance", p->instance,
			   "must be 1 to 64 of A-Z a-z 0-9 . _ - and begin with a letter or digit");
	return r;
}
