#ifndef SB_HOST_CLI_INSTANCE_BASE_H
#define SB_HOST_CLI_INSTANCE_BASE_H
/*
 * What lies beneath an instance's own layer. It is recorded when the instance is made and used again
 * each time, whatever its image's name or its agent's definition stand for by then: an upper layer means
 * nothing over other layers. The row's "layers" are digests, lowest first; its "base" is
 *
 *   {"image": "layers"|"host"|"dir", "path": DIR, "reference": TEXT, "digest": "sha256:...",
 *    "env": ["NAME=VALUE", ...]}
 *
 * with what is known of it; "env" is what the image's configuration sets.
 */
#include "launch.h"
#include "state/state.h"

struct instance_base { /* owned */
	enum sb_image_kind image;
	char *path;
	char *reference;
	char *digest; /* of the image's manifest */
	char **env;   /* NULL-terminated, or NULL */
	struct sb_plan_layer layers[SB_PLAN_MAX_LAYERS];
	size_t n_layers;
};
void instance_base_done(struct instance_base *b);

/* What @p lies on, for the row. @ret: malloc'd. Return: 0; -ENOMEM. */
SB_MUST_CHECK int instance_base_text(const struct sb_dirs *d, const struct sb_plan *p, char **ret);
/* The same from what is known already; layers are not part of the text. */
SB_MUST_CHECK int instance_base_write(const struct instance_base *b, char **ret);
/* The digests as the row has them. @ret: malloc'd. */
SB_MUST_CHECK int instance_layers_text(const struct sb_plan_layer *layers, size_t n, char **ret);

/* The text alone, without layers. Return: 0; -ENOENT: nothing is recorded; -EBADMSG; -ENOMEM. */
SB_MUST_CHECK int instance_base_parse(const char *text, struct instance_base *ret);
/*
 * instance_base_get - the layers that @was lies on, from the cache
 * Return: 0; -ENOENT: a row of an older version, which does not say it; -ESTALE: one is gone or is not what
 * it was, with the cure in @err; -errno.
 */
SB_MUST_CHECK int instance_base_get(const struct sb_dirs *d, const struct instance *was,
				    struct instance_base *ret, struct sb_err *err);
/* @t points into @b afterwards. */
void instance_base_target(const struct instance_base *b, struct launch_target *t);

/* Say that @name stays on what it was made from while its image or definition (@what) gives @now. */
void instance_base_tell(const char *name, const struct instance_base *b, const char *what,
			const struct sb_plan_layer *now, size_t n_now);

/* The value of one of its stored options, malloc'd; NULL = none. */
char *instance_option(const struct instance *i, const char *name);

/* "debian 12 x86_64": what layers over `host` were made for. */
#define INSTANCE_HOST_ROOM 160
void instance_host_text(char out[INSTANCE_HOST_ROOM]);

#endif
