#ifndef SB_HOST_CLI_PLAN_MAKE_I_H
#define SB_HOST_CLI_PLAN_MAKE_I_H
/*
 * The steps of plan_make, in the order in which they are called: each fills its part of the plan
 * and relies on those before it. Return: 0; -errno with text in @err.
 */
#include <sys/stat.h>

#include "plan_make.h"

/* Layers, upper, instance, task and builder: of the target, else memory and the command. */
SB_MUST_CHECK int plan_set_root(struct sb_plan *p, const struct plan_input *in,
				struct sb_err *err);
/* For a plan that was made earlier or elsewhere: which files they are here; a layer that is not the
 * one of the plan must have its digest. */
SB_MUST_CHECK int plan_renew_root(struct sb_plan *p, struct sb_err *err);
/* Of a builder and of an export: no folder of the user. */
bool plan_alone(const struct sb_plan *p);
/* Also cwd: the project's folder. @project: the project folder's identity */
SB_MUST_CHECK int plan_set_mounts(struct sb_plan *p, const struct plan_input *in,
				  const struct sb_dirs *d, struct stat *project,
				  struct sb_err *err);
SB_MUST_CHECK int plan_set_identity(struct sb_plan *p, const struct plan_input *in,
				    const struct stat *project, struct sb_err *err);
SB_MUST_CHECK int plan_set_terminal(struct sb_plan *p, const struct plan_input *in,
				    struct sb_err *err);
SB_MUST_CHECK int plan_set_env(struct sb_plan *p, const struct plan_input *in,
			       struct sb_err *err);
/* What every command gets. @proxy_env: and the variables of the proxy */
SB_MUST_CHECK int plan_base_env(struct sb_plan *p, bool proxy_env, struct sb_err *err);
/* What an image's configuration sets, "K=V": what nobody has set yet, and PATH when it is ours. */
SB_MUST_CHECK int plan_image_env(struct sb_plan *p, char *const *env, struct sb_err *err);
/* The value of a variable, borrowed; NULL = not set. */
/* Set, and empty, where git may not make hooks: git init then copies none. */
#define PLAN_GIT_TEMPLATE "GIT_TEMPLATE_DIR"
const char *plan_env_get(const struct sb_plan *p, const char *name);
const char *plan_env_path(void); /* PATH where nothing else is said */
SB_MUST_CHECK int plan_set_argv(struct sb_plan *p, char **argv, struct sb_err *err);
SB_MUST_CHECK int plan_set_image(struct sb_plan *p, const struct plan_input *in,
				 const struct sb_dirs *d, struct sb_err *err);
/* The layer of the image that @reference names, fetched if it must be, beneath the others.
 * @name: who says so, for messages. */
SB_MUST_CHECK int plan_set_layers_of(struct sb_plan *p, const char *reference,
				     const char *name, const struct sb_dirs *d,
				     struct sb_err *err);
struct launch_target;
/* A resumed instance keeps what it was made from; say so when @reference gives something else now. */
void plan_tell_image(const struct launch_target *t, const char *reference, const struct sb_dirs *d);
/* The guest path of the project: the shared folder that the working directory is in. */
const char *plan_project(const struct sb_plan *p);
/* What a micro-VM may add to each shared folder. */
void plan_set_quotas(struct sb_plan *p, const struct plan_input *in);
/* Profile, system calls, resource limits. */
SB_MUST_CHECK int plan_set_confinement(struct sb_plan *p, const struct plan_input *in,
				       struct sb_err *err);
/* Guarded paths, and the files of the configuration that the session could write. */
SB_MUST_CHECK int plan_set_guards(struct sb_plan *p, const struct plan_input *in,
				  struct sb_err *err);
/* The files that the plan was made from, and the digest of what they say together. */
SB_MUST_CHECK int plan_set_parts(struct sb_plan *p, const struct plan_input *in,
				 struct sb_err *err);
/* Every program of ours that the host will start, by content; prepare() adds the others. */
SB_MUST_CHECK int plan_set_executables(struct sb_plan *p, const struct sb_dirs *dirs,
				       struct sb_err *err);
SB_MUST_CHECK int plan_set_bundle(struct sb_plan *p, const struct sb_bundle *b,
				  const uint8_t pub[32], struct sb_err *err);
/*
 * plan_renew_mounts - for a plan that was made earlier or elsewhere: the identities that its image
 * and folders have here and now, after the checks of plan_set_mounts
 * @project: of the folder that the working directory is in
 */
SB_MUST_CHECK int plan_renew_mounts(struct sb_plan *p, const struct sb_dirs *d,
				    struct stat *project, struct sb_err *err);

#endif
