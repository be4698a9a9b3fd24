/* Making the copies. The source is the user's own home; the result is shared with a session. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "settings_i.h"

static int oom(struct sb_err *err)
{
	return sb_err_set(err, -ENOMEM, "out of memory");
}

bool settings_is_credential(const char *name)
{
	static const char *const names[] = {
		".credentials.json", "auth.json",      "oauth_creds.json", "google_accounts.json",
		"credentials.json",  "credentials",    "token",		   "tokens.json",
		"token.json",	     "access_token",   "hosts.yml",	   "hosts.json",
		"apps.json",	     "mcp-auth.json",  "mcp-oauth-tokens.json", ".netrc",
		".npmrc",	     ".pypirc",	       ".git-credentials", "secrets.json",
		"secrets.yaml",	     "secrets.yml",    "installation_id",  ".env",
		"id_rsa",	     "id_ed25519",     "id_ecdsa",	   "id_dsa",
	};
	static const char *const ends[] = { ".pem", ".key", ".p12", ".pfx", ".kdbx", ".keytab" };
	size_t n = strlen(name);

	for (size_t i = 0; i < SB_ARRAY_LEN(names); i++)
		if (strcasecmp(name, names[i]) == 0)
			return true;
	for (size_t i = 0; i < SB_ARRAY_LEN(ends); i++)
		if (n > strlen(ends[i]) && strcasecmp(name + n - strlen(ends[i]), ends[i]) == 0)
			return true;
	return strncasecmp(name, ".env.", 5) == 0 || strncasecmp(name, "cookies", 7) == 0;
}

/* ---- one mount's copies ---- */

struct copying {
	const struct agent_settings *s;
	const struct settings_where *w;
	struct settings *ret;
	json_t *files; /* borrowed: of the manifest */
	int to;        /* root of the copies of this mount */
	uint64_t *bytes;
	const char *path; /* of a file that lies in the folder of others; NULL = beneath the mount's */
	char at[4096];      /* for messages */
};

static int own(int dir, const char *name, const struct settings_where *w)
{
	if (geteuid() != 0 || w->uid == 0)
		return 0;
	return fchownat(dir, name, w->uid, w->gid, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

/* The folders above @rel. */
static int make_parents(const struct copying *c, const char *rel)
{
	char part[4096];
	size_t n = strlen(rel);

	memcpy(part, rel, n + 1);
	for (size_t i = 1; i < n; i++) {
		int r;

		if (part[i] != '/')
			continue;
		part[i] = '\0';
		if (mkdirat(c->to, part, 0700) < 0 && errno != EEXIST)
			return -errno;
		r = own(c->to, part, c->w);
		if (r < 0)
			return r;
		part[i] = '/';
	}
	return 0;
}

static int put(struct copying *c, const char *rel, const char *bytes, size_t len, mode_t mode,
	       bool review)
{
	char sha[65];
	sb_autofd int fd = -1;
	int r = make_parents(c, rel);

	if (r < 0)
		return r;
	fd = openat(c->to, rel, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno == EEXIST ? 0 : -errno;
	r = sb_fd_write_all(fd, bytes, len);
	if (r == 0 && fchmod(fd, (mode & 0700) | 0600) < 0)
		r = -errno;
	if (r == 0)
		r = own(c->to, rel, c->w);
	if (r < 0)
		return r;
	settings_hex(bytes, len, sha);
	c->ret->files++;
	*c->bytes += len;
	if (!review)
		return 0;
	/* a name that is no UTF-8 is not kept: told as a new one later */
	(void)json_object_set_new(c->files, rel, json_pack("{s:s,s:s?}", "sha256", sha, "path",
							   c->path));
	return 0;
}

static bool skip_copy(void *arg, const char *rel)
{
	struct copying *c = arg;
	const char *slash = strrchr(rel, '/');

	if (settings_excluded(rel, c->s->exclude, c->s->n_exclude))
		return true;
	if (!c->s->credentials && settings_is_credential(slash ? slash + 1 : rel)) {
		c->ret->held++;
		return true;
	}
	return false;
}

static int copy_one(void *arg, int dir, const char *name, const char *rel, const struct stat *st)
{
	struct copying *c = arg;
	sb_autofree char *bytes = NULL;
	mode_t mode = 0;
	size_t len = 0;
	int r;

	(void)snprintf(c->at, sizeof(c->at), "%s", rel);
	if (!S_ISREG(st->st_mode) || st->st_size > (off_t)SETTINGS_MAX_FILE) {
		c->ret->odd++;
		return 0;
	}
	if (*c->bytes + (uint64_t)st->st_size > SETTINGS_MAX_BYTES)
		return -EFBIG;
	r = settings_read(dir, name, &bytes, &len, &mode);
	if (r == -ENOENT || r == -ELOOP || r == -EACCES || r == -EAGAIN) {
		c->ret->odd++;
		return 0;
	}
	return r < 0 ? r : put(c, rel, bytes, len, mode, true);
}

/* ---- the whole ---- */

struct preparing {
	const struct agent *a;
	const struct settings_where *w;
	struct settings *ret;
	json_t *mounts; /* of the manifest */
	uint64_t bytes;
	int home;
	int copies; /* DIR/copy */
};

static int add_mount(struct settings *s, const char *host, const char *guest, const char *shown,
		     bool live)
{
	struct settings_mount *m = realloc(s->mounts, (s->n + 1) * sizeof(*m));

	if (!m)
		return -ENOMEM;
	s->mounts = m;
	m = &s->mounts[s->n++];
	*m = (struct settings_mount){ strdup(host), strdup(guest), strdup(shown), live };
	return m->host && m->guest && m->shown ? 0 : -ENOMEM;
}

/* The manifest's entry of the mount at @to, or NULL. */
static json_t *mount_at(const struct preparing *p, const char *to)
{
	json_t *m;
	size_t i;

	json_array_foreach(p->mounts, i, m)
		if (strcmp(json_string_value(json_object_get(m, "to")), to) == 0)
			return m;
	return NULL;
}

/* Beneath the home folder: "~/a/b" -> "a/b" */
static const char *beneath(const char *path)
{
	path += 2;
	return path + strspn(path, "/");
}

/* A new folder of copies. @single: the one file in it that is shared, or NULL */
static json_t *new_mount(struct preparing *p, const struct agent_settings *s, const char *single)
{
	json_t *ex = json_array();
	json_t *m;
	char n[24];

	(void)snprintf(n, sizeof(n), "%zu", json_array_size(p->mounts));
	if (mkdirat(p->copies, n, 0700) < 0 || own(p->copies, n, p->w) < 0)
		return NULL;
	for (size_t i = 0; i < s->n_exclude; i++)
		(void)json_array_append_new(ex, json_string(s->exclude[i]));
	m = json_pack("{s:s,s:s,s:s,s:s?,s:o,s:{},s:[]}", "copy", n, "path", s->path, "to", s->to,
		      "single", single, "exclude", ex, "files", "oneway");
	if (!m || json_array_append_new(p->mounts, m) < 0)
		return NULL;
	return m;
}

static int open_copies(const struct preparing *p, const json_t *m, int *ret)
{
	int fd = openat(p->copies, json_string_value(json_object_get(m, "copy")),
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	*ret = fd;
	return 0;
}

static int copy_folder(struct preparing *p, const struct agent_settings *s, int from,
		       struct sb_err *err)
{
	sb_autofree struct copying *c = calloc(1, sizeof(*c));
	sb_autofree struct settings_walking *walk = calloc(1, sizeof(*walk));
	json_t *m = c && walk ? new_mount(p, s, NULL) : NULL;
	int r;

	if (!m)
		return sb_err_set(err, -EIO, "cannot make a copy of %.200s", s->path);
	*c = (struct copying){ .s = s, .w = p->w, .ret = p->ret, .bytes = &p->bytes, .to = -1,
			       .files = json_object_get(m, "files") };
	r = open_copies(p, m, &c->to);
	*walk = (struct settings_walking){ .fn = copy_one, .skip = skip_copy, .arg = c };
	if (r == 0)
		r = settings_walk(from, walk);
	sb_fd_close(&c->to);
	if (r == -E2BIG || r == -EFBIG)
		return sb_err_set(err, r,
				  "the settings in %.200s are more than %u files or %u MiB; name what "
				  "is not needed in \"exclude\" of the agent's definition, or use "
				  "--no-agent-mounts", s->path, SETTINGS_MAX_FILES,
				  SETTINGS_MAX_BYTES >> 20);
	return r < 0 ? sb_err_set(err, r, "cannot copy %.200s/%.200s: %s", s->path, c->at,
				  strerror(-r)) : 0;
}

/* Only the members that are named. */
static int filter_json(const struct agent_settings *s, char **bytes, size_t *len)
{
	json_t *all = json_loadb(*bytes, *len, 0, NULL);
	json_t *some = json_object();
	char *text;

	for (size_t i = 0; all && i < s->n_json_keys; i++) {
		json_t *v = json_object_get(all, s->json_keys[i]);

		if (v && !json_is_object(v) && !json_is_array(v))
			(void)json_object_set(some, s->json_keys[i], v);
	}
	text = json_dumps(some, JSON_INDENT(2));
	json_decref(all);
	json_decref(some);
	if (!text)
		return -ENOMEM;
	free(*bytes);
	*bytes = text;
	*len = strlen(text);
	return 0;
}

/* Where a file goes: into the copies of the folder that it lies in, or into a place of its own. */
static json_t *place_of(struct preparing *p, const struct agent_settings *s, const char **ret_rel)
{
	const char *slash = strrchr(s->to, '/');
	sb_autofree char *dir = strndup(s->to, (size_t)(slash - s->to));
	json_t *m;

	*ret_rel = slash + 1;
	if (!dir)
		return NULL;
	m = mount_at(p, dir);
	for (size_t i = 0; !m && i < p->a->n_settings; i++)
		if (strcmp(p->a->settings[i].to, dir) == 0 && !p->a->settings[i].live)
			m = new_mount(p, &p->a->settings[i], NULL);
	return m ? m : new_mount(p, s, slash + 1);
}

static int copy_file(struct preparing *p, const struct agent_settings *s, struct sb_err *err)
{
	sb_autofree struct copying *c = calloc(1, sizeof(*c));
	sb_autofree char *bytes = NULL;
	const char *rel = NULL;
	mode_t mode = 0;
	size_t len = 0;
	json_t *m;
	int r = c ? settings_read(p->home, beneath(s->path), &bytes, &len, &mode) : -ENOMEM;

	if (r == -ELOOP || r == -EFBIG || r == -EACCES) {
		p->ret->odd++;
		return 0;
	}
	if (r == 0 && s->n_json_keys > 0)
		r = filter_json(s, &bytes, &len);
	m = r == 0 ? place_of(p, s, &rel) : NULL;
	if (!m)
		return sb_err_set(err, r < 0 ? r : -EIO, "cannot copy %.200s: %s", s->path,
				  strerror(r < 0 ? -r : EIO));
	*c = (struct copying){ .s = s, .w = p->w, .ret = p->ret, .bytes = &p->bytes, .to = -1,
			       .path = s->path, .files = json_object_get(m, "files") };
	r = open_copies(p, m, &c->to);
	if (r == 0)
		r = put(c, rel, bytes, len, mode, s->n_json_keys == 0);
	sb_fd_close(&c->to);
	if (r == 0 && s->n_json_keys > 0)
		r = json_array_append_new(json_object_get(m, "oneway"), json_string(rel));
	return r < 0 ? sb_err_set(err, r, "cannot copy %.200s: %s", s->path, strerror(-r)) : 0;
}

static int expand(const char *path, const char *home, char *out, size_t cap)
{
	int n = snprintf(out, cap, "%s/%s", home, beneath(path));

	return n < 0 || (size_t)n >= cap ? -ENAMETOOLONG : 0;
}

static int live(struct preparing *p, const struct agent_settings *s, struct sb_err *err)
{
	char host[PATH_MAX];
	char guest[PATH_MAX];
	int r = expand(s->path, p->w->home, host, sizeof(host));

	if (r == 0)
		r = expand(s->to, p->w->guest_home, guest, sizeof(guest));
	if (r == 0)
		r = add_mount(p->ret, host, guest, s->path, true);
	return r < 0 ? sb_err_set(err, r, "%.200s: %s", s->path, strerror(-r)) : 0;
}

static int one(struct preparing *p, const struct agent_settings *s, bool folders,
	       struct sb_err *err)
{
	sb_autofd int fd = -1;
	struct stat st;

	if (!s->path || !s->to)
		return 0;
	if (fstatat(p->home, beneath(s->path), &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT || errno == ENOTDIR
			       ? 0
			       : sb_err_set(err, -errno, "%.200s: %s", s->path, strerror(errno));
	if (s->live)
		return folders ? live(p, s, err) : 0;
	if (S_ISDIR(st.st_mode) != folders)
		return 0;
	if (!folders)
		return copy_file(p, s, err);
	fd = openat(p->home, beneath(s->path), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return sb_err_set(err, -errno, "%.200s: %s", s->path, strerror(errno));
	return copy_folder(p, s, fd, err);
}

/* What the manifest says as mounts. */
static int mounts_of(const json_t *mounts, const struct settings_where *w, struct settings *ret)
{
	json_t *m;
	size_t i;
	int r = 0;

	json_array_foreach(mounts, i, m) {
		const char *single = json_string_value(json_object_get(m, "single"));
		const char *to = json_string_value(json_object_get(m, "to"));
		char host[PATH_MAX];
		char guest[PATH_MAX];

		if (snprintf(host, sizeof(host), "%s/copy/%s%s%s", w->dir,
			     json_string_value(json_object_get(m, "copy")), single ? "/" : "",
			     single ? single : "") >= (int)sizeof(host))
			return -ENAMETOOLONG;
		r = expand(to, w->guest_home, guest, sizeof(guest));
		if (r == 0)
			r = add_mount(ret, host, guest, to, false);
		if (r < 0)
			return r;
	}
	return 0;
}

static int make_dir(const char *dir, struct sb_err *err)
{
	char copies[PATH_MAX];

	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return sb_err_set(err, -errno, "cannot create %.300s: %s", dir, strerror(errno));
	(void)snprintf(copies, sizeof(copies), "%s/copy", dir);
	if (mkdir(copies, 0711) < 0 && errno != EEXIST)
		return sb_err_set(err, -errno, "cannot create %.300s: %s", copies, strerror(errno));
	return 0;
}

static int make_all(struct preparing *p, struct sb_err *err)
{
	int r = 0;

	/* folders first: files may lie in them */
	for (int folders = 1; folders >= 0; folders--)
		for (size_t i = 0; r == 0 && i < p->a->n_settings; i++)
			r = one(p, &p->a->settings[i], folders != 0, err);
	return r;
}

int settings_prepare(const struct agent *a, const struct settings_where *w, struct settings *ret,
		     struct sb_err *err)
{
	struct settings s = { 0 };
	struct preparing p = { .a = a, .w = w, .ret = &s, .home = -1, .copies = -1 };
	char copies[PATH_MAX];
	json_t *m = NULL;
	int r = settings_manifest(w->dir, &m, err);

	if (r == 0) {
		s.again = true;
	} else if (r == -ENOENT) {
		m = json_pack("{s:i,s:s,s:o}", "version", 1, "agent", a->name, "mounts", json_array());
		r = m ? make_dir(w->dir, err) : oom(err);
	}
	if (r < 0) {
		json_decref(m);
		return r;
	}
	p.mounts = json_object_get(m, "mounts");
	(void)snprintf(copies, sizeof(copies), "%s/copy", w->dir);
	p.home = open(w->home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	p.copies = open(copies, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (p.home < 0 || p.copies < 0)
		r = sb_err_set(err, -errno, "settings: %s", strerror(errno));
	if (r == 0 && !s.again)
		r = make_all(&p, err);
	for (size_t i = 0; r == 0 && s.again && i < a->n_settings; i++)
		if (a->settings[i].live)
			r = one(&p, &a->settings[i], true, err);
	if (r == 0 && !s.again)
		r = settings_manifest_put(w->dir, m, err);
	if (r == 0 && mounts_of(p.mounts, w, &s) < 0)
		r = oom(err);
	json_decref(m);
	sb_fd_close(&p.home);
	sb_fd_close(&p.copies);
	if (r < 0)
		settings_done(&s);
	else
		*ret = s;
	return r;
}

void settings_done(struct settings *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->mounts[i].host);
		free(s->mounts[i].guest);
		free(s->mounts[i].shown);
	}
	free(s->mounts);
	*s = (struct settings){ 0 };
}
