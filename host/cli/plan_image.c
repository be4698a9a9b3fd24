/* A base image of a registry, a layout or an archive: one layer beneath the others. */
#include <errno.h>
#include <string.h>

#include "image/image.h"
#include "image_text.h"
#include "instance_base.h"
#include "plan_make_i.h"

int plan_set_layers_of(struct sb_plan *p, const char *reference,
		       const char *name, const struct sb_dirs *d, struct sb_err *err)
{
	SB_CLEANUP(image_done) struct image i = { 0 };
	struct image_text text = { 0 };
	struct image_want w = { .reference = reference, .progress = image_text_progress,
				.arg = &text };
	struct sb_plan_layer *layers;
	struct sb_err why = { 0 };
	int r = image_get(d, &w, &i, &why);

	image_text_end(&text);
	if (r < 0)
		return sb_err_set(err, r, "%.100s: %s", name, why.text);
	if (i.form != IMAGE_FORM_EROFS)
		return sb_err_set(err, -EINVAL, "%.100s: not an image of layers", name);
	if (p->n_layers >= SB_PLAN_MAX_LAYERS)
		return sb_err_set(err, -E2BIG, "%.100s: more than %d layers", name,
				  SB_PLAN_MAX_LAYERS);
	layers = calloc(SB_PLAN_MAX_LAYERS, sizeof(*layers));
	if (!layers)
		return sb_err_set(err, -ENOMEM, "out of memory");
	layers[0] = i.layer;
	i.layer = (struct sb_plan_layer){ 0 };
	if (p->n_layers > 0)
		memcpy(layers + 1, p->layers, p->n_layers * sizeof(*layers));
	free(p->layers);
	p->layers = layers;
	p->n_layers++;
	p->image = SB_IMAGE_LAYERS;
	return plan_image_env(p, i.env, err);
}

void plan_tell_image(const struct launch_target *t, const char *reference, const struct sb_dirs *d)
{
	SB_CLEANUP(image_done) struct image i = { 0 };
	const struct image_want w = { .reference = reference, .offline = true };

	if (t->was->image != SB_IMAGE_LAYERS || image_get(d, &w, &i, NULL) < 0)
		return;
	instance_base_tell(t->instance, t->was, reference, &i.layer, i.form == IMAGE_FORM_EROFS);
}
