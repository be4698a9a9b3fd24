#include "wire/tar_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct sb_tar_name *slot(struct sb_tar_name *v, size_t room, uint64_t id)
{
	size_t i = (size_t)(id * 0x9e3779b97f4a7c15ULL) & (room - 1);

	while (v[i].path && v[i].id != id)
		i = (i + 1) & (room - 1);
	return &v[i];
}

/* Half of it stays free. */
static int grow(struct sb_tar_names *t)
{
	size_t room = t->room ? 2 * t->room : 1024;
	struct sb_tar_name *v;

	if (2 * t->n < t->room)
		return 0;
	if (room > 2 * (size_t)SB_TAR_NAMES_MAX)
		return -E2BIG;
	v = calloc(room, sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < t->room; i++)
		if (t->v[i].path)
			*slot(v, room, t->v[i].id) = t->v[i];
	free(t->v);
	t->v = v;
	t->room = room;
	return 0;
}

int sb_tar_names_first(struct sb_tar_names *t, uint64_t id, const char *path, const char **ret)
{
	struct sb_tar_name *s;
	int r = grow(t);

	*ret = NULL;
	if (r < 0)
		return r;
	s = slot(t->v, t->room, id);
	if (s->path) {
		*ret = s->path;
		return 0;
	}
	s->path = strdup(path);
	if (!s->path)
		return -ENOMEM;
	s->id = id;
	t->n++;
	return 0;
}

void sb_tar_names_done(struct sb_tar_names *t)
{
	for (size_t i = 0; i < t->room; i++)
		free(t->v[i].path);
	free(t->v);
	*t = (struct sb_tar_names){ 0 };
}
