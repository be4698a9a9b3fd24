/*
 * Files of the layers. Each is opened once; what is checked and hashed is what is parsed. A file
 * that is there and may not be used is a problem, never skipped: a missing layer could mean more
 * rights.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "cfg_i.h"
#include "crypto/crypto.h"

#define SYSTEM_FILE "/etc/sendbox/config.yaml"
#define PROJECT_NAME ".sendbox.yaml"
#define MAX_EXTENDS 8 /* files that name each other */
#define MAX_FILES (3 * (MAX_EXTENDS + 1))

struct file {
	enum cfg_layer layer;
	char *path;
	char *bytes;
	size_t len;
	uint8_t sha256[32];
	dev_t dev;
	ino_t ino;
};

struct loading {
	const struct cfg_files *in;
	int refused; /* what admit said; ends the loading */
	struct problems *p;
	uid_t sudo_uid; /* 0 = nobody */
	struct file files[MAX_FILES]; /* outer to inner */
	size_t n;
	size_t n_system; /* the first of them: the system's and what those extend */
};

static void file_done(struct file *f)
{
	free(f->path);
	free(f->bytes);
	*f = (struct file){ 0 };
}

static int io(struct loading *l, const struct doc_node *at, const char *code, const char *fmt, ...)
	SB_PRINTF(4, 5);
static int io(struct loading *l, const struct doc_node *at, const char *code, const char *fmt, ...)
{
	struct problem_at where = { at->file, at->line, at->col };
	va_list ap;

	va_start(ap, fmt);
	problems_addv(l->p, &where, at->line > 0 ? "extends" : "", code, fmt, ap);
	va_end(ap);
	return -EBADMSG;
}

/* ---- one file ---- */

/*
 * Root on behalf of somebody: sudo says of whom. His project's file in his own folder is as good as
 * his command line is, which he has written as well; system and user files stay root's.
 */
static bool of_sudo_caller(const struct loading *l, enum cfg_layer layer, const char *path,
			   const struct stat *st)
{
	const char *slash = strrchr(path, '/');
	sb_autofree char *dir = slash ? strndup(path, SB_MAX((size_t)(slash - path), (size_t)1)) : NULL;
	struct stat folder;

	return l->sudo_uid != 0 && st->st_uid == l->sudo_uid && layer >= CFG_ORG && dir &&
	       stat(dir, &folder) == 0 && folder.st_uid == l->sudo_uid &&
	       !(folder.st_mode & S_IWOTH);
}

/* @shown: for problems, with the line that names the file when there is one. */
static int check_stat(struct loading *l, enum cfg_layer layer, const char *path,
		      const struct stat *st, const struct doc_node *shown)
{
	if (!S_ISREG(st->st_mode))
		return io(l, shown, "untrusted", "%.400s is no regular file", path);
	if (st->st_uid != geteuid() && st->st_uid != 0 && !of_sudo_caller(l, layer, path, st))
		return io(l, shown, "untrusted", "%.400s belongs to user %u; it must belong to you or "
			  "root%s", path, st->st_uid, geteuid() == 0 && layer >= CFG_ORG ?
			  ", or in a folder of the same user, who calls through sudo" : "");
	if ((st->st_mode & S_IWOTH) || ((st->st_mode & S_IWGRP) && st->st_gid != st->st_uid))
		return io(l, shown, "untrusted", "%.400s can be written by others; chmod go-w it first",
			  path);
	if (st->st_size > (off_t)DOC_MAX_BYTES)
		return io(l, shown, "limit", "%.400s has more than %u MiB", path, DOC_MAX_BYTES >> 20);
	return 0;
}

static int read_bytes(struct loading *l, int fd, const struct doc_node *shown, struct file *f)
{
	f->bytes = malloc(DOC_MAX_BYTES + 1);
	if (!f->bytes)
		return -ENOMEM;
	for (;;) {
		ssize_t n = read(fd, f->bytes + f->len, DOC_MAX_BYTES + 1 - f->len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return io(l, shown, "io", "cannot read %.400s: %s", f->path, strerror(errno));
		if (n == 0)
			break;
		f->len += (size_t)n;
		if (f->len > DOC_MAX_BYTES)
			return io(l, shown, "limit", "%.400s has more than %u MiB", f->path,
				  DOC_MAX_BYTES >> 20);
	}
	sb_sha256(f->bytes, f->len, f->sha256);
	return 0;
}

/* Before any byte is looked at as anything but bytes. */
static int admit(const struct loading *l, const struct file *f)
{
	const struct cfg_admit a = { f->layer, f->path, f->bytes, f->len, f->sha256 };

	return l->in->admit ? l->in->admit(l->in->admit_arg, &a) : 0;
}

/*
 * open_file - @dir/@name, or @name alone when @dir is NULL; the path becomes absolute
 * Return: 0; 1: there is none; -EBADMSG, told; l->refused; -ENOMEM.
 */
static int open_file(struct loading *l, enum cfg_layer layer, const char *path,
		     const struct doc_node *named, struct file *ret)
{
	struct doc_node shown = named ? *named : (struct doc_node){ .file = path };
	const char *slash = strrchr(path, '/');
	sb_autofree char *dir = slash ? strndup(path, SB_MAX((size_t)(slash - path), (size_t)1))
				      : strdup(".");
	const char *name = slash ? slash + 1 : path;
	sb_autofree char *real = NULL;
	sb_autofd int fd = -1;
	struct file f = { .layer = layer };
	struct stat st;
	int r;

	if (!dir)
		return -ENOMEM;
	if (!*name || strcmp(name, "..") == 0 || strcmp(name, ".") == 0)
		return io(l, &shown, "io", "\"%.400s\" names no file", path);
	real = realpath(dir, NULL);
	if (!real)
		return errno == ENOMEM			       ? -ENOMEM
		       : errno == ENOENT || errno == ENOTDIR ? 1
							       : io(l, &shown, "io", "%.400s: %s", dir,
								    strerror(errno));
	if (asprintf(&f.path, "%s/%s", strcmp(real, "/") == 0 ? "" : real, name) < 0)
		return -ENOMEM;
	fd = open(f.path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (!named)
		shown.file = f.path;
	if (fd < 0 && errno == ENOENT)
		r = 1;
	else if (fd < 0)
		r = io(l, &shown, errno == ELOOP ? "untrusted" : "io", "%.400s: %s", f.path,
		       errno == ELOOP ? "a symbolic link; name the file itself" : strerror(errno));
	else if (fstat(fd, &st) < 0)
		r = io(l, &shown, "io", "%.400s: %s", f.path, strerror(errno));
	else
		r = check_stat(l, layer, f.path, &st, &shown);
	if (r == 0) {
		f.dev = st.st_dev;
		f.ino = st.st_ino;
		r = read_bytes(l, fd, &shown, &f);
	}
	if (r == 0)
		r = l->refused = admit(l, &f);
	if (r != 0) {
		file_done(&f);
		return r;
	}
	*ret = f;
	return 0;
}

/* ---- extends ---- */

/* The text of `extends:` and where it stands. Return: 1; 0 = none (or told later); -ENOMEM. */
static int find_extends(const struct file *f, char **ret, struct doc_node *where)
{
	struct problems ignored = { 0 };
	struct doc *d = NULL;
	const struct doc_node *n;
	size_t len = strlen(f->path);
	int r;

	if (!memmem(f->bytes, f->len, "extends", 7))
		return 0;
	r = doc_load_partial(f->bytes, f->len,
			     len > 5 && strcmp(f->path + len - 5, ".json") == 0 ? DOC_JSON : DOC_YAML,
			     f->path, &d, &ignored);
	problems_done(&ignored);
	if (r < 0)
		return r == -ENOMEM ? r : 0; /* a broken file is told when it is compiled */
	n = doc_get(doc_root(d), "extends");
	r = 0;
	if (n && n->kind == DOC_STR && n->text[0] && n->text[0] != '~' && !strstr(n->text, "://")) {
		const char *slash = strrchr(f->path, '/');

		*where = (struct doc_node){ .file = f->path, .line = n->line, .col = n->col };
		r = n->text[0] == '/' ? asprintf(ret, "%s", n->text)
				      : asprintf(ret, "%.*s/%s", (int)(slash - f->path), f->path,
						 n->text);
		r = r < 0 ? -ENOMEM : 1;
	}
	(void)doc_free(d);
	return r;
}

/* @path and all it extends, the outermost first. Return: as open_file. */
static int add_chain(struct loading *l, enum cfg_layer layer, const char *path)
{
	struct file chain[MAX_EXTENDS + 1]; /* inner to outer */
	sb_autofree char *next = strdup(path);
	struct doc_node where = { .line = 0 };
	size_t n = 0;
	int r = next ? 0 : -ENOMEM;

	while (r == 0 && next) {
		struct file f = { 0 };
		char *found = NULL;

		r = open_file(l, n == 0 ? layer : CFG_ORG, next, n == 0 ? NULL : &where, &f);
		if (r == 1 && n > 0)
			r = io(l, &where, "io", "%.400s: there is no such file", next);
		for (size_t i = 0; r == 0 && i < n; i++)
			if (chain[i].dev == f.dev && chain[i].ino == f.ino)
				r = io(l, &where, "bad_value", "%.400s extends itself", f.path);
		if (r == 0 && n > MAX_EXTENDS)
			r = io(l, &where, "limit", "more than %d files extend each other", MAX_EXTENDS);
		if (r != 0) {
			file_done(&f);
			break;
		}
		chain[n++] = f;
		r = find_extends(&f, &found, &where);
		free(next);
		next = found;
		r = SB_MIN(r, 0);
	}
	/* what could be read is compiled all the same: its problems are told, too */
	while (n > 0)
		l->files[l->n++] = chain[--n];
	return r;
}

/* ---- looking for the project's file ---- */

static int look_upward(struct loading *l, const struct cfg_files *in, char **ret)
{
	sb_autofree char *dir = realpath(in->project_dir ? in->project_dir : ".", NULL);
	struct stat home = { 0 };
	bool has_home = in->home && stat(in->home, &home) == 0;

	if (!dir)
		return errno == ENOMEM ? -ENOMEM
				       : io(l, &(struct doc_node){ .file = in->project_dir }, "io",
					    "%s", strerror(errno));
	for (;;) {
		sb_autofree char *path = NULL;
		struct stat st;
		char *slash;

		if (asprintf(&path, "%s/" PROJECT_NAME, strcmp(dir, "/") == 0 ? "" : dir) < 0)
			return -ENOMEM;
		if (lstat(path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR)) {
			*ret = sb_take(&path);
			return 0;
		}
		if (strcmp(dir, "/") == 0 || (has_home && stat(dir, &st) == 0 &&
					      st.st_dev == home.st_dev && st.st_ino == home.st_ino))
			return 0;
		slash = strrchr(dir, '/');
		slash[slash == dir] = '\0';
	}
}

/* Other than a problem that is told with the rest. */
static bool is_end(const struct loading *l, int r)
{
	return r == -ENOMEM || l->refused < 0;
}

static int load_files(struct loading *l, const struct cfg_files *in)
{
	sb_autofree char *user = NULL;
	sb_autofree char *project = NULL;
	int told = 0;
	int r = add_chain(l, CFG_SYSTEM, in->system ? in->system : SYSTEM_FILE);

	l->n_system = l->n;
	told = SB_MIN(r, 0);
	if (is_end(l, told))
		return told;
	if (in->config_dir) {
		if (asprintf(&user, "%s/config.yaml", in->config_dir) < 0)
			return -ENOMEM;
		r = add_chain(l, CFG_USER, user);
		if (is_end(l, r))
			return r;
		told = SB_MIN(told, SB_MIN(r, 0));
	}
	r = in->file || in->no_project ? 0 : look_upward(l, in, &project);
	if (r == 0 && (in->file || project)) {
		r = add_chain(l, CFG_PROJECT, in->file ? in->file : project);
		if (r == 1 && in->file)
			r = io(l, &(struct doc_node){ .file = in->file }, "io", "there is no such file");
	}
	return is_end(l, r) ? r : SB_MIN(told, SB_MIN(r, 0));
}

static void add_file(struct cfg_source *src, size_t *n, const struct file *f)
{
	src[(*n)++] = (struct cfg_source){ f->layer, f->path, f->bytes, f->len };
}

static int compile(struct loading *l, const struct cfg_files *in, struct cfg **ret)
{
	struct cfg_source *src = calloc(l->n + 1 + in->n_options + in->n_user + in->n_agent,
					sizeof(*src));
	size_t n = 0;
	int r;

	if (!src)
		return -ENOMEM;
	for (size_t i = 0; i < l->n_system; i++)
		add_file(src, &n, &l->files[i]);
	for (size_t i = 0; i < in->n_user; i++)
		src[n++] = in->user_list[i];
	for (size_t i = l->n_system; i < l->n; i++)
		add_file(src, &n, &l->files[i]);
	for (size_t i = 0; i < in->n_agent; i++)
		src[n++] = in->agent_list[i];
	if (in->options)
		src[n++] = (struct cfg_source){ CFG_COMMAND_LINE, "command line", in->options,
						in->options_len };
	for (size_t i = 0; i < in->n_options; i++)
		src[n++] = in->option_list[i];
	r = cfg_compile(src, n, ret, l->p);
	free(src);
	return r;
}

static int hand_over(struct loading *l, struct cfg_loaded *ret)
{
	ret->files = calloc(l->n + 1, sizeof(*ret->files));
	if (!ret->files)
		return -ENOMEM;
	for (size_t i = 0; i < l->n; i++) {
		struct cfg_loaded_file *f = &ret->files[ret->n_files++];

		f->layer = l->files[i].layer;
		f->path = sb_take(&l->files[i].path);
		memcpy(f->sha256, l->files[i].sha256, sizeof(f->sha256));
		if (f->layer == CFG_PROJECT)
			ret->project_file = f->path;
	}
	return 0;
}

int cfg_load(const struct cfg_files *in, struct cfg_loaded *ret, struct problems *problems)
{
	struct loading *l = calloc(1, sizeof(*l));
	struct cfg_loaded out = { 0 };
	int told;
	int r;

	if (!l)
		return -ENOMEM;
	l->p = problems;
	l->sudo_uid = in->sudo_uid;
	l->in = in;
	told = load_files(l, in);
	r = is_end(l, told) ? told : compile(l, in, &out.cfg);
	r = r == 0 ? told : r;
	if (r == 0)
		r = hand_over(l, &out);
	for (size_t i = 0; i < l->n; i++)
		file_done(&l->files[i]);
	free(l);
	if (r < 0) {
		cfg_loaded_done(&out);
		return r;
	}
	*ret = out;
	return 0;
}

void cfg_loaded_done(struct cfg_loaded *l)
{
	for (size_t i = 0; i < l->n_files; i++)
		free(l->files[i].path);
	free(l->files);
	(void)cfg_free(l->cfg);
	*l = (struct cfg_loaded){ 0 };
}
