/* Mounts, image and quotas of a plan. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "launch.h"
#include "os/kernfs.h"
#include "plan_make_i.h"

static int oom(struct sb_err *err)
{
	return sb_err_set(err, -ENOMEM, "out of memory");
}

/* Canonical path and identity of an existing directory or regular file. */
static int locate(const char *what, const char *path, char **ret, struct stat *st,
		  struct sb_err *err)
{
	char real[PATH_MAX];
	sb_autofd int fd = -1;
	char *copy;

	if (!realpath(path, real))
		return sb_err_set(err, -errno, "%s \"%.300s\": %s", what, path, strerror(errno));
	for (const char *c = real; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return sb_err_set(err, -EINVAL,
					  "%s \"%.300s\": its path holds control characters", what,
					  path);
	fd = open(real, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, st) < 0)
		return sb_err_set(err, -errno, "%s \"%.300s\": %s", what, real, strerror(errno));
	if (!S_ISDIR(st->st_mode) && !S_ISREG(st->st_mode))
		return sb_err_set(err, -EINVAL,
				  "%s \"%.300s\": neither a directory nor a regular file", what,
				  real);
	if (sb_kernfs_check(fd) < 0)
		return sb_err_set(err, -EACCES,
				  "%s \"%.300s\": a file system of the kernel (like /proc and /sys) "
				  "cannot be shared", what, real);
	if (faccessat(AT_FDCWD, real, S_ISDIR(st->st_mode) ? R_OK | X_OK : R_OK, AT_EACCESS) < 0)
		return sb_err_set(err, -errno, "%s \"%.300s\": you may not read it: %s", what,
				  real, strerror(errno));
	copy = strdup(real);
	if (!copy)
		return oom(err);
	*ret = copy;
	return 0;
}

/* Our own directories may not be inside a mount, nor a mount inside them. */
static int check_state_dirs(const char *path, const struct sb_dirs *d, struct sb_err *err)
{
	const char *const own[] = { d->config, d->state, d->cache, d->run };

	if (strcmp(path, "/") == 0)
		return sb_err_set(err, -EINVAL,
				  "the whole file system cannot be shared: choose a folder");
	for (size_t i = 0; i < SB_ARRAY_LEN(own); i++) {
		if (sb_path_within(own[i], path) || sb_path_within(path, own[i]))
			return sb_err_set(err, -EINVAL,
					  "\"%.200s\" cannot be shared: it holds or lies in sendbox's "
					  "own state (%.200s); share a subfolder, or set SENDBOX_HOME "
					  "elsewhere",
					  path, own[i]);
	}
	return 0;
}

/* The namespace runtime shares a folder with all that is mounted in it; the file server of a
 * micro-VM refuses such a place by itself. */
static int check_beneath(const struct sb_plan *p, const char *real, struct sb_err *err)
{
	char at[512];
	int r;

	if (p->provider != SB_PROVIDER_NAMESPACE)
		return 0;
	r = sb_kernfs_below(real, at, sizeof(at));
	if (r < 0)
		return sb_err_set(err, r, "cannot read /proc/self/mountinfo: %s", strerror(-r));
	if (r > 0)
		return sb_err_set(err, -EACCES,
				  "\"%.200s\" cannot be shared: a file system of the kernel is "
				  "mounted at %.300s; unmount it, share a subfolder, or use "
				  "--runtime microvm", real, at);
	return 0;
}

/* @d: NULL = the folder is of our own state, made for this session */
static int add_mount(struct sb_plan *p, const char *what, const char *host, const char *guest,
		     enum sb_mount_mode mode, const struct sb_dirs *d, struct stat *ret_st,
		     struct sb_err *err)
{
	struct sb_plan_mount *m;
	char norm[SB_PLAN_MAX_PATH + 1];
	struct stat st;
	char *real = NULL;
	int r = locate(what, host, &real, &st, err);

	if (r == 0 && d)
		r = check_state_dirs(real, d, err);
	if (r == 0 && sb_path_normalise(guest ? guest : real, norm) < 0)
		r = sb_err_set(err, -EINVAL,
			       "mount target \"%.300s\": must be an absolute path without \"..\"",
			       guest);
	if (r == 0)
		r = check_beneath(p, real, err);
	if (r == 0 && p->n_mounts == SB_PLAN_MAX_MOUNTS)
		r = sb_err_set(err, -EINVAL, "too many mounts: at most %d", SB_PLAN_MAX_MOUNTS);
	if (r < 0) {
		free(real);
		return r;
	}
	m = &p->mounts[p->n_mounts];
	*m = (struct sb_plan_mount){ .host = real,
				     .guest = strdup(norm),
				     .mode = mode,
				     .file = S_ISREG(st.st_mode),
				     .dev = st.st_dev,
				     .ino = st.st_ino };
	if (!m->guest) {
		free(real);
		return oom(err);
	}
	p->n_mounts++;
	if (ret_st)
		*ret_st = st;
	return 0;
}

static int bad_mount(const char *name, const char *spec, struct sb_err *err)
{
	return sb_err_set(err, -EINVAL,
			  "%s \"%.300s\": must be HOST:GUEST, HOST:GUEST:ro or HOST:GUEST:rw", name,
			  spec);
}

/* HOST:GUEST[:ro|rw], where HOST itself may not hold a colon, or {host, guest, mode}. */
static int one_mount(struct sb_plan *p, const struct plan_input *in, const struct cfg_value *v,
		     const struct sb_dirs *d, struct sb_err *err)
{
	const struct cfg_value *host_v = conf_member(v, "host");
	const struct cfg_value *guest_v = conf_member(v, "guest");
	const struct cfg_value *mode_v = conf_member(v, "mode");
	bool given = v->origin.layer == CFG_COMMAND_LINE; /* the bytes as they were given count */
	const char *spec = given || v->kind == DOC_STR ? conf_text(in, v) : NULL;
	const char *mode = mode_v ? mode_v->text : NULL;
	sb_autofree char *copy = strdup(spec ? spec : host_v ? host_v->text : "");
	sb_autofree char *host = NULL;
	char name[PATH_MAX];
	char *guest = NULL;
	char *word;
	int r;

	conf_name(in, v, "--mount", "mounts", name, sizeof(name));
	if (!copy)
		return oom(err);
	if (spec) {
		guest_v = NULL;
		mode = NULL;
	}
	if (spec && (guest = strchr(copy, ':'))) {
		*guest++ = '\0';
		word = strchr(guest, ':');
		if (word) {
			*word++ = '\0';
			mode = word;
		}
	}
	if (guest_v && !guest_v->text)
		guest_v = NULL;
	if (!(guest || guest_v) || !copy[0] || !(guest_v ? guest_v->text : guest)[0] ||
	    (mode && strcmp(mode, "ro") != 0 && strcmp(mode, "rw") != 0))
		return bad_mount(name, spec ? spec : copy, err);
	r = conf_path(v, copy, &host);
	if (r < 0)
		return sb_err_set(err, r, "%s \"%.300s\": %s", name, copy, strerror(-r));
	return add_mount(p, given ? "mount source" : name, host,
			 guest_v ? guest_v->text : guest,
			 mode && strcmp(mode, "rw") == 0 ? SB_MOUNT_RW : SB_MOUNT_RO, d, NULL, err);
}

static int by_guest(const void *a, const void *b)
{
	return strcmp(((const struct sb_plan_mount *)a)->guest,
		      ((const struct sb_plan_mount *)b)->guest);
}

/*
 * The project: project_path, or the folder of a .sendbox.yaml, or the current folder.
 * @ret_what: for messages
 */
static int project_folder(const struct plan_input *in, char **ret, char *what, size_t cap,
			  struct sb_err *err)
{
	const struct cfg_value *v = conf_set(in, "project_path");
	const char *file = in->conf->project_file;
	const char *slash = file ? strrchr(file, '/') : NULL;
	int r = 0;

	if (v) {
		conf_name(in, v, "--project", "project_path", what, cap);
		r = conf_path(v, conf_text(in, v), ret);
		return r < 0 ? sb_err_set(err, r, "%s: %s", what, strerror(-r)) : 0;
	}
	if (slash && strcmp(slash + 1, CONF_PROJECT_FILE) == 0) {
		(void)snprintf(what, cap, "the folder of %s", CONF_PROJECT_FILE);
		*ret = strndup(file, slash > file ? (size_t)(slash - file) : 1);
	} else {
		(void)snprintf(what, cap, "the current folder");
		*ret = strdup(".");
	}
	return *ret ? 0 : oom(err);
}

/* Where the command starts: the current folder when it is in the project, else the project. */
static int set_cwd(struct sb_plan *p, const struct plan_input *in, struct sb_err *err)
{
	const struct cfg_value *v = conf_set(in, "project_path");
	const char *project = p->mounts[0].guest;
	char here[PATH_MAX];

	if ((v && v->origin.layer == CFG_COMMAND_LINE) || !realpath(".", here) ||
	    !sb_path_within(here, project))
		p->cwd = strdup(project);
	else
		p->cwd = strdup(here);
	return p->cwd ? 0 : oom(err);
}

/* Its home; the folder of nobody's project. */
static int set_alone(struct sb_plan *p, struct stat *project, struct sb_err *err)
{
	*project = (struct stat){ .st_uid = geteuid(), .st_gid = getegid() };
	p->cwd = strdup(p->builder ? "/root" : "/");
	return p->cwd ? 0 : oom(err);
}

bool plan_alone(const struct sb_plan *p)
{
	return p->builder || p->task == SB_TASK_EXPORT;
}

int plan_set_mounts(struct sb_plan *p, const struct plan_input *in, const struct sb_dirs *d,
		    struct stat *project, struct sb_err *err)
{
	sb_autofree char *folder = NULL;
	const struct cfg_value *v;
	char what[PATH_MAX];
	int r;

	p->mounts = calloc(SB_PLAN_MAX_MOUNTS, sizeof(*p->mounts));
	if (!p->mounts)
		return oom(err);
	if (plan_alone(p))
		return set_alone(p, project, err);
	r = project_folder(in, &folder, what, sizeof(what), err);
	if (r == 0)
		r = add_mount(p, what, folder, NULL, SB_MOUNT_RW, d, project, err);
	if (r < 0)
		return r;
	if (!S_ISDIR(project->st_mode))
		return sb_err_set(err, -ENOTDIR, "%s \"%.300s\": not a directory", what, folder);
	r = set_cwd(p, in, err);
	for (size_t i = 0; r == 0 && (v = cfg_item(in->conf->cfg, "mounts", i)); i++)
		r = one_mount(p, in, v, d, err);
	for (size_t i = 0; r == 0 && i < in->opt->n_own; i++)
		r = add_mount(p, "settings", in->opt->own[i].host, in->opt->own[i].guest,
			      SB_MOUNT_RW, NULL, NULL, err);
	if (r < 0)
		return r;
	qsort(p->mounts, p->n_mounts, sizeof(*p->mounts), by_guest);
	return 0;
}

static const struct sb_plan_mount *project_mount(const struct sb_plan *p)
{
	const struct sb_plan_mount *best = NULL;
	size_t len = 0;

	for (size_t i = 0; i < p->n_mounts; i++) {
		const char *g = p->mounts[i].guest;

		if (sb_path_within(p->cwd, g) && strlen(g) > len) {
			best = &p->mounts[i];
			len = strlen(g);
		}
	}
	return best;
}

const char *plan_project(const struct sb_plan *p)
{
	const struct sb_plan_mount *m = project_mount(p);

	return m ? m->guest : p->cwd;
}

const char *plan_project_host(const struct sb_plan *p)
{
	const struct sb_plan_mount *m = project_mount(p);

	return m ? m->host : NULL;
}

static int set_image_dir(struct sb_plan *p, const char *what, const char *path,
			 const struct sb_dirs *d, struct sb_err *err)
{
	struct stat st;
	int r = locate(what, path, &p->image_path, &st, err);

	p->image = SB_IMAGE_DIR;
	if (r == 0)
		r = check_state_dirs(p->image_path, d, err);
	if (r < 0)
		return r;
	if (!S_ISDIR(st.st_mode))
		return sb_err_set(err, -ENOTDIR, "image \"%.300s\": not a directory",
				  p->image_path);
	p->image_dev = st.st_dev;
	p->image_ino = st.st_ino;
	return 0;
}

int plan_set_image(struct sb_plan *p, const struct plan_input *in, const struct sb_dirs *d,
		   struct sb_err *err)
{
	const struct launch_target *t = in->target;
	const struct cfg_value *v = conf_set(in, "runtime.image");
	const char *text = v ? conf_text(in, v) : "host";
	sb_autofree char *path = NULL;
	char name[PATH_MAX];
	int r;

	if (t && t->was && v && !in->opt->json)
		plan_tell_image(t, text, d);
	if (t && t->image == SB_IMAGE_DIR)
		return t->image_path ? set_image_dir(p, "image", t->image_path, d, err) : -EINVAL;
	if (t && t->image != SB_IMAGE_NONE) {
		p->image = t->image;
		return 0;
	}
	if (strcmp(text, "host") == 0) {
		p->image = SB_IMAGE_HOST;
		return 0;
	}
	conf_name(in, v, "--image", "runtime.image", name, sizeof(name));
	if (strncmp(text, "dir:", 4) != 0 && text[0] != '/')
		return plan_set_layers_of(p, text, name, d, err);
	r = conf_path(v, text[0] == '/' ? text : text + 4, &path);
	if (r < 0)
		return sb_err_set(err, r, "%s: %s", name, strerror(-r));
	return set_image_dir(p, v->origin.layer == CFG_COMMAND_LINE ? "image" : name, path, d, err);
}

static int renew_one(const struct sb_plan *p, struct sb_plan_mount *m, const struct sb_dirs *d,
		     struct stat *st, struct sb_err *err)
{
	sb_autofree char *real = NULL;
	int r = locate("folder of the plan", m->host, &real, st, err);

	if (r == 0)
		r = check_state_dirs(real, d, err);
	if (r == 0)
		r = check_beneath(p, real, err);
	if (r < 0)
		return r;
	if (strcmp(real, m->host) != 0)
		return sb_err_set(err, -ESTALE,
				  "plan refused: \"%.200s\" is a link to \"%.200s\" here", m->host,
				  real);
	m->file = S_ISREG(st->st_mode);
	m->dev = st->st_dev;
	m->ino = st->st_ino;
	return 0;
}

int plan_renew_mounts(struct sb_plan *p, const struct sb_dirs *d, struct stat *project,
		      struct sb_err *err)
{
	struct sb_plan_mount image = { .host = p->image_path };
	const char *at = plan_project(p);
	struct stat st;
	int r = 0;

	*project = (struct stat){ .st_uid = geteuid(), .st_gid = getegid() };
	for (size_t i = 0; r == 0 && i < p->n_mounts; i++) {
		r = renew_one(p, &p->mounts[i], d, &st, err);
		if (r == 0 && strcmp(p->mounts[i].guest, at) == 0)
			*project = st;
	}
	if (r == 0 && p->image == SB_IMAGE_DIR) {
		r = renew_one(p, &image, d, &st, err);
		p->image_dev = image.dev;
		p->image_ino = image.ino;
		if (r == 0 && image.file)
			r = sb_err_set(err, -ENOTDIR, "image \"%.300s\": not a directory",
				       p->image_path);
	}
	return r;
}

/*
 * A guest must not be able to fill the host's disk: unless told otherwise, what a session may add
 * to a shared folder is half of what is free when the plan is made.
 */
void plan_set_quotas(struct sb_plan *p, const struct plan_input *in)
{
	uint64_t bytes = (uint64_t)conf_int(in, "resources.quota_mb", 0);
	uint64_t files = (uint64_t)conf_int(in, "resources.quota_files", 0);

	for (size_t i = 0; i < p->n_mounts; i++) {
		struct sb_plan_mount *m = &p->mounts[i];
		struct statvfs v;

		if (m->mode != SB_MOUNT_RW)
			continue;
		m->quota_bytes = bytes;
		m->quota_inodes = files;
		if (statvfs(m->host, &v) < 0)
			continue;
		if (m->quota_bytes == 0)
			m->quota_bytes = SB_MAX((uint64_t)v.f_bavail * v.f_frsize / 2, 1U);
		if (m->quota_inodes == 0 && v.f_files > 0) /* some file systems have no limit */
			m->quota_inodes = SB_MAX((uint64_t)v.f_favail / 2, 1U);
	}
}
