#ifndef SB_HOST_CLI_LAUNCH_H
#define SB_HOST_CLI_LAUNCH_H
/*
 * One session, from options to its exit status: what `run`, the builder of environments, `edit`,
 * `export` and a resumed instance have in common.
 */
#include "conf_load.h"
#include "core/plan.h"
#include "options.h"
#include "wire/ipc.h"

struct instance_base;

/* What the session is laid on; zero = as the options and the configuration say. */
struct launch_target {
	enum sb_image_kind image;   /* HOST, DIR or LAYERS; NONE = as configured */
	const char *image_path;     /* DIR */
	const struct sb_plan_layer *layers; /* borrowed */
	size_t n_layers;
	enum sb_upper_kind upper;   /* NONE = tmpfs */
	const char *upper_path;
	const char *instance;
	const struct instance_base *was; /* a resumed one: what it lies on, as above; borrowed */
	bool builder;
	enum sb_task task;          /* NONE = COMMAND */
	const char *const *env;     /* NULL-terminated "K=V", before the options' own */
	/* With upper NONE: the upper layer lies in this directory, of the kind that the runtime has
	 * (state/upper.h); it is made unless it is there. */
	const char *upper_dir;
};

struct launch {
	const struct run_options *opt;
	const struct launch_target *target; /* NULL = plain */
	int io[3];                  /* -1 = the program's own; borrowed */
	bool quiet;                 /* no summaries, no banners: the caller speaks */
	/* With quiet: a line for each thing that the net gate refused, at the end. May be NULL. */
	void (*refused)(void *arg, const char *text);
	/* Called when the plan is made and signed, before anything starts. May be NULL. */
	void (*planned)(void *arg, const struct sb_plan *plan);
	void *arg;
};
struct launch_result {
	uint32_t fail;              /* enum sb_fail */
	struct sb_ipc_exited exit;
	int status;                 /* exit status for the shell */
	char text[500];             /* of a failure, or "" */
	bool detached;              /* an instance that goes on without this process */
	char *problems;             /* with --json: of the configuration, as problems_json writes them; the
				     * caller frees it; else NULL */
	uint8_t session[16];
	uint8_t plan_sha256[32];
};
/* Return: 0 with @ret (also when the command failed); -errno: no session came about, text in
 * @err and @ret->fail. */
SB_MUST_CHECK int launch(const struct launch *l, struct launch_result *ret, struct sb_err *err);

#endif
