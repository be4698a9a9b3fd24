/*
 * Folders of package managers that outlive a session (`caches` of a definition). A session could leave
 * anything in them for the next one, so they belong to one agent in one workspace: who works there
 * could already leave it in the workspace itself. A builder of environments never sees them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "crypto/crypto.h"
#include "run_agent_i.h"

static int bad(const struct run_agent *r, const char *name, int code, struct sb_err *err)
{
	return sb_err_set(err, code, "caches: cannot make a folder for %.300s in %.300s/%s: %s", name,
			  r->dirs.d.cache, RUN_AGENT_CACHES, strerror(-code));
}

/* Make @name in @dir and enter it. Takes @dir. Return: descriptor; -errno. */
static int enter(int dir, const char *name)
{
	sb_autofd int above = dir;

	if (above < 0)
		return above;
	if (mkdirat(above, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	dir = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return dir < 0 ? -errno : dir;
}

/* The folder of this agent and workspace. Return: descriptor; -errno. */
static int enter_own(const struct run_agent *r, char hex[33])
{
	sb_autofree char *workspace = realpath(r->opt.project ? r->opt.project : ".", NULL);
	uint8_t sum[SB_SHA256_LEN];
	int dir;

	if (!workspace)
		return -errno;
	sb_sha256(workspace, strlen(workspace), sum);
	sb_hex_write(sum, 16, hex);
	dir = open(r->dirs.d.cache, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = enter(dir < 0 ? -errno : dir, RUN_AGENT_CACHES);
	dir = enter(dir, r->agent->name);
	return enter(dir, hex);
}

/* "~/.cache/pip" as one name: none of these folders lies in another, whose owner is the guest. */
static void flat(const char *path, char out[NAME_MAX + 1])
{
	size_t n = 0;

	for (path += 2; *path && n < NAME_MAX - 2; path++) {
		if (*path == '/' || *path == '%')
			out[n++] = '%';
		if (*path != '/')
			out[n++] = *path;
	}
	out[n] = '\0';
}

static int one(struct run_agent *r, int dir, const char *hex, const char *path, struct sb_err *err)
{
	char name[NAME_MAX + 1];
	char host[PATH_MAX];
	const char *guest = agent_path(&r->arena, path, r->guest_home, false);
	const char *kept;
	struct settings_where w = { 0 };
	sb_autofd int fd = -1;

	if (strlen(path) > NAME_MAX / 2)
		return bad(r, path, -ENAMETOOLONG, err);
	flat(path, name);
	if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
		return bad(r, path, -errno, err);
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	run_agent_owner(r, &w);
	if (fd < 0 || fchown(fd, w.uid, w.gid) < 0)
		return bad(r, path, -errno, err);
	(void)snprintf(host, sizeof(host), "%.2000s/%s/%s/%s/%s", r->dirs.d.cache, RUN_AGENT_CACHES,
		       r->agent->name, hex, name);
	kept = arena_text(&r->arena, host, strlen(host));
	if (!guest || !kept)
		return bad(r, path, -ENOMEM, err);
	if (r->opt.n_own == RUN_AGENT_MOUNTS)
		return bad(r, path, -E2BIG, err);
	r->own[r->opt.n_own++] = (struct own_mount){ kept, guest };
	r->opt.own = r->own;
	if (r->n_mounts < RUN_AGENT_MOUNTS)
		r->mounts[r->n_mounts++] = (struct banner_mount){
			path, guest, "kept for this agent in this workspace", false, false
		};
	return 0;
}

/* None lies in another: its mount point would be the guest's to make, or to bend. */
static int apart(const struct agent_list *l, struct sb_err *err)
{
	char outer[SB_PLAN_MAX_PATH + 1];
	char inner[SB_PLAN_MAX_PATH + 1];

	for (size_t i = 0; i < l->n; i++)
		for (size_t j = 0; j < l->n; j++)
			if (i != j && sb_path_normalise(l->v[i].text + 1, outer) == 0 &&
			    sb_path_normalise(l->v[j].text + 1, inner) == 0 && sb_path_within(inner, outer))
				return sb_err_set(err, -EINVAL, "%.200s:%u: caches: %.200s lies in %.200s: "
						  "name one of them", l->at.file, l->v[j].line,
						  l->v[j].text, l->v[i].text);
	return 0;
}

int run_agent_caches(struct run_agent *r, struct sb_err *err)
{
	const struct agent_list *l = &r->agent->caches;
	sb_autofd int dir = -1;
	char hex[33];
	int k = 0;

	if (l->n == 0 || r->opt.no_agent_mounts || r->opt.dry_run)
		return 0;
	k = apart(l, err);
	if (k < 0)
		return k;
	dir = enter_own(r, hex);
	if (dir < 0)
		return bad(r, l->v[0].text, dir, err);
	for (size_t i = 0; k == 0 && i < l->n; i++)
		k = one(r, dir, hex, l->v[i].text, err);
	return k;
}
