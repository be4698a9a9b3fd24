/*
 * sendbox export: an instance as an OCI archive. Each layer beneath it becomes a layer archive again, made by
 * the jailed sendbox-imgfs; its own changes are written out by the guest's own code (task EXPORT), so that no
 * file system of a guest is read here. Everything is made in files without a name first, and the archive
 * gets its name when it is whole: one that is killed leaves nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/num.h"
#include "cmd_instance.h"
#include "crypto/crypto.h"
#include "environment/build.h"
#include "image/instance_meta.h"
#include "image/source.h"
#include "instance_base.h"
#include "launch.h"
#include "wire/tar_out.h"

#define MAX_LAYER_BYTES (64ULL << 30)
#define MAX_LAYERS (SB_PLAN_MAX_LAYERS + 1)
#define COPY (1U << 20)

struct export {
	struct instances *in;
	const char *name;
	const char *to; /* "-" = stdout; NULL = NAME.oci.tar */
	struct instance i;
	struct instance_base base;
	int tmp; /* folder for files without a name */
	int fds[MAX_LAYERS];
	struct oci_blob layers[MAX_LAYERS];
	size_t n;
	int out;
	struct sb_err *err;
};

/* ---- layers ---- */

static int new_file(struct export *x, int *ret)
{
	*ret = openat(x->tmp, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	return *ret < 0 ? sb_err_set(x->err, -errno, "cannot make a file in %s: %s",
				     x->in->dirs.d.cache, strerror(errno))
			: 0;
}

/* The file at @fd is the next layer. */
static int keep(struct export *x, int *fd)
{
	struct oci_blob *b = &x->layers[x->n];
	uint8_t sha[SB_SHA256_LEN];
	int r = sb_sha256_fd(*fd, sha, &b->size);

	if (r < 0)
		return sb_err_set(x->err, r, "cannot read what was written: %s", strerror(-r));
	memcpy(b->digest, "sha256:", 7);
	sb_hex_write(sha, sizeof(sha), b->digest + 7);
	x->fds[x->n++] = sb_fd_take(fd);
	return 0;
}

static int below(struct export *x, const struct sb_plan_layer *l)
{
	sb_autofd int fd = -1;
	int r = new_file(x, &fd);

	if (r == 0)
		r = image_layer_to_tar(&x->in->dirs.d, l, fd, MAX_LAYER_BYTES, x->err);
	return r < 0 ? r : keep(x, &fd);
}

/* A session's sparse files are as large here as they pretend to be: others need room, too. */
static uint64_t room(const struct export *x)
{
	struct statvfs v;

	if (fstatvfs(x->tmp, &v) < 0)
		return MAX_LAYER_BYTES;
	return SB_MIN((uint64_t)v.f_bavail * v.f_frsize / 2, (uint64_t)MAX_LAYER_BYTES);
}

/* What the instance itself has changed. */
static int own(struct export *x)
{
	sb_autofree char *accel = instance_option(&x->i, "accel");
	sb_autofree char *kernel = instance_option(&x->i, "kernel");
	const struct run_options o = { .runtime = x->i.runtime, .accel = accel, .kernel = kernel,
				       .profile = "build", .no_config = true };
	struct launch_target t = { 0 };
	sb_autofd int fd = -1;
	sb_autofd int log = -1;
	int r = new_file(x, &fd);

	if (r == 0)
		r = new_file(x, &log);
	if (r < 0)
		return r;
	instance_base_target(&x->base, &t);
	t.upper = strcmp(x->i.runtime, "microvm") == 0 ? SB_UPPER_DISK : SB_UPPER_DIR;
	t.upper_path = x->i.upper;
	r = env_export(&o, &t, fd, log, room(x), x->name, x->err);
	if (r < 0 && r != -EINTR)
		env_show_tail(log, 0);
	if (r == -EINTR)
		(void)sb_err_set(x->err, r, "stopped; nothing was written");
	return r < 0 ? r : keep(x, &fd);
}

static int make_layers(struct export *x)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < x->base.n_layers; i++)
		r = below(x, &x->base.layers[i]);
	if (r == 0 && x->i.upper)
		r = own(x);
	if (r == 0 && x->n == 0)
		r = sb_err_set(x->err, -ENODATA, "instance \"%s\" was never started: there is nothing to write",
			       x->name);
	return r;
}

/* ---- the archive ---- */

static int put(struct export *x, const void *p, size_t len)
{
	int r = sb_fd_write_all(x->out, p, len);

	return r < 0 ? sb_err_set(x->err, r, "cannot write the archive: %s", strerror(-r)) : 0;
}

static int put_head(struct export *x, enum sb_tar_out_type type, const char *name, uint64_t size)
{
	const struct sb_tar_out e = { .type = type, .path = name, .size = size,
				      .mode = type == SB_TAR_OUT_DIR ? 0755 : 0644 };
	sb_autobuf struct sb_buf head;
	int r;

	sb_buf_init(&head, 65536);
	r = sb_tar_out_header(&head, &e);
	return r < 0 ? sb_err_set(x->err, r, "%s", strerror(-r)) : put(x, head.data, head.len);
}

static int put_pad(struct export *x, uint64_t size)
{
	static const uint8_t zero[SB_TAR_OUT_BLOCK];

	return put(x, zero, (size_t)(-size & (SB_TAR_OUT_BLOCK - 1)));
}

static int put_text(struct export *x, const char *name, const char *text)
{
	size_t len = strlen(text);
	int r = put_head(x, SB_TAR_OUT_FILE, name, len);

	if (r == 0)
		r = put(x, text, len);
	return r < 0 ? r : put_pad(x, len);
}

static void blob_name(const struct oci_blob *b, char out[80])
{
	(void)snprintf(out, 80, "blobs/sha256/%.64s", b->digest + 7);
}

static int put_layer(struct export *x, size_t k)
{
	sb_autofree uint8_t *buf = malloc(COPY);
	uint64_t left = x->layers[k].size;
	char name[80];
	int r;

	if (!buf)
		return sb_err_set(x->err, -ENOMEM, "out of memory");
	blob_name(&x->layers[k], name);
	r = lseek(x->fds[k], 0, SEEK_SET) < 0 ? -errno : put_head(x, SB_TAR_OUT_FILE, name, left);
	while (r == 0 && left > 0) {
		size_t n = (size_t)SB_MIN(left, (uint64_t)COPY);

		r = sb_fd_read_all(x->fds[k], buf, n);
		if (r < 0)
			return sb_err_set(x->err, r, "cannot read what was written: %s", strerror(-r));
		r = put(x, buf, n);
		left -= n;
	}
	return r < 0 ? r : put_pad(x, x->layers[k].size);
}

static void text_blob(const char *text, struct oci_blob *b)
{
	b->size = strlen(text);
	image_digest(text, b->size, b->digest);
}

static int put_documents(struct export *x, const struct instance_image *im)
{
	sb_autofree char *config = NULL;
	sb_autofree char *manifest = NULL;
	sb_autofree char *index = NULL;
	struct oci_blob c;
	struct oci_blob m;
	char name[80];
	int r = instance_image_config(im, &config);

	if (r == 0) {
		text_blob(config, &c);
		r = instance_image_manifest(im, &c, &manifest);
	}
	if (r == 0) {
		text_blob(manifest, &m);
		r = instance_image_index(im, &m, &index);
	}
	if (r < 0)
		return sb_err_set(x->err, r, "out of memory");
	r = put_text(x, "oci-layout", "{\"imageLayoutVersion\":\"1.0.0\"}");
	if (r == 0)
		r = put_text(x, "index.json", index);
	if (r == 0)
		r = put_head(x, SB_TAR_OUT_DIR, "blobs", 0);
	if (r == 0)
		r = put_head(x, SB_TAR_OUT_DIR, "blobs/sha256", 0);
	blob_name(&c, name);
	if (r == 0)
		r = put_text(x, name, config);
	blob_name(&m, name);
	return r < 0 ? r : put_text(x, name, manifest);
}

static int put_archive(struct export *x)
{
	static const uint8_t end[2 * SB_TAR_OUT_BLOCK];
	char host[INSTANCE_HOST_ROOM];
	char cpus[16];
	char memory[32];
	const struct instance_meta meta = {
		.name = x->i.name, .agent = x->i.agent, .image = x->i.image, .runtime = x->i.runtime,
		.workspace = x->i.workspace, .options = x->i.options, .cpus = cpus, .memory = memory,
		.base = (char *)(uintptr_t)(x->base.image == SB_IMAGE_HOST ? "host" : "layers"),
		.host = x->base.image == SB_IMAGE_HOST ? host : NULL,
	};
	const struct instance_image im = { .meta = &meta, .arch = image_arch(), .env = x->base.env,
					   .layers = x->layers, .n_layers = x->n };
	int r;

	instance_host_text(host);
	(void)snprintf(cpus, sizeof(cpus), "%u", x->i.cpus);
	(void)snprintf(memory, sizeof(memory), "%llu", (unsigned long long)x->i.memory_bytes);
	r = put_documents(x, &im);
	for (size_t k = 0; r == 0 && k < x->n; k++) {
		size_t same = 0;

		while (strcmp(x->layers[same].digest, x->layers[k].digest) != 0)
			same++;
		if (same == k)
			r = put_layer(x, k);
	}
	return r < 0 ? r : put(x, end, sizeof(end));
}

/* ---- where it goes ---- */

/* The folder and the name in it. */
static int open_place(struct export *x, const char *path, int *ret_dir, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	char dir[4096];
	struct stat st;

	if (strlen(path) >= sizeof(dir) || (slash && slash[1] == '\0'))
		return sb_err_set(x->err, -EINVAL, "\"%.200s\": not the name of a file", path);
	(void)snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
	*ret_name = slash ? slash + 1 : path;
	*ret_dir = open(dir[0] ? dir : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*ret_dir < 0)
		return sb_err_set(x->err, -errno, "%.300s: %s", dir, strerror(errno));
	if (fstatat(*ret_dir, *ret_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return sb_err_set(x->err, -EEXIST, "%.300s: it is there already; remove it, or name another "
						   "with -o", path);
	x->out = openat(*ret_dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	return x->out < 0 ? sb_err_set(x->err, -errno, "%.300s: cannot make a file there: %s", dir,
				       strerror(errno)) : 0;
}

static int give_name(struct export *x, int dir, const char *name)
{
	char self[40];

	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", x->out);
	if (fsync(x->out) < 0 || linkat(AT_FDCWD, self, dir, name, AT_SYMLINK_FOLLOW) < 0)
		return sb_err_set(x->err, -errno, "%.300s: %s", name, strerror(errno));
	return 0;
}

static int look(struct export *x)
{
	int r = instance_base_get(&x->in->dirs.d, &x->i, &x->base, x->err);

	if (r == -ENOENT)
		return sb_err_set(x->err, r, "instance \"%s\" was made by an older sendbox that did not note what "
					     "it lies on: start it once", x->name);
	if (r == 0 && x->base.image == SB_IMAGE_DIR)
		return sb_err_set(x->err, -ENOTSUP, "instance \"%s\" lies over the folder %.200s, which is not "
						    "sendbox's to pack: pack it as an image, and make the instance "
						    "over that", x->name, x->base.path);
	return r;
}

static int export(struct export *x)
{
	sb_autofree char *usual = NULL;
	sb_autofree char *builds = NULL;
	const char *name = NULL;
	sb_autofd int dir = -1;
	bool out = x->to && strcmp(x->to, "-") == 0;
	int r = look(x);

	if (asprintf(&usual, "%s.oci.tar", x->name) < 0 || asprintf(&builds, "%s/builds", x->in->dirs.d.cache) < 0)
		return sb_err_set(x->err, -ENOMEM, "out of memory");
	if (r == 0 && out && isatty(STDOUT_FILENO))
		r = sb_err_set(x->err, -EINVAL, "an archive is nothing for a terminal: -o FILE");
	if (r == 0 && !out)
		r = open_place(x, x->to ? x->to : usual, &dir, &name);
	if (r < 0)
		return r;
	if (out)
		x->out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (mkdir(builds, 0700) < 0 && errno != EEXIST)
		return sb_err_set(x->err, -errno, "%s: %s", builds, strerror(errno));
	x->tmp = open(builds, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (x->out < 0 || x->tmp < 0)
		return sb_err_set(x->err, -errno, "%s: %s", builds, strerror(errno));
	r = make_layers(x);
	if (r == 0)
		r = put_archive(x);
	if (r == 0 && !out)
		r = give_name(x, dir, name);
	if (r == 0 && !out)
		printf("%s\n", x->to ? x->to : usual);
	if (r == 0 && x->base.image == SB_IMAGE_HOST)
		cli_error("it lies over this machine's own /usr, which is not in the archive: it can be used on a "
			  "machine with the same system");
	return r;
}

static int take(void *arg, int id, const char *value, struct sb_err *err)
{
	(void)err;
	if (id == 2)
		((struct export *)arg)->to = value;
	return 0;
}

int cmd_export(int argc, char **argv)
{
	static const struct cli_option table[] = {
		{ "output", 'o', "FILE", "where to; - for standard output (default: NAME.oci.tar)", 2 },
		{ "help", 'h', NULL, "this text", VERB_HELP },
	};
	static const struct verb v = { "sendbox export [options] NAME",
				       "Write a stopped instance to an OCI archive that sendbox import, skopeo and "
				       "umoci read.", table, SB_ARRAY_LEN(table), take };
	static struct export x = { .tmp = -1, .out = -1 };
	struct sb_err err = { 0 };
	sb_autofd int lock = -1;
	int at = 0;
	int k = verb_options(&v, &x, argc, argv, &at);

	if (k != 0)
		return k == VERB_DONE ? SB_EXIT_OK : SB_EXIT_USAGE;
	if (at != argc - 1) {
		cli_error("write: %s", v.usage);
		return SB_EXIT_USAGE;
	}
	x.name = argv[at];
	x.err = &err;
	if (instances_open(&x.in) < 0)
		return SB_EXIT_INTERNAL;
	k = instance_hold(x.in->s, x.name, &x.i, &lock, &err);
	/* no database is open while a session runs */
	x.in->s = state_close(x.in->s);
	if (k == 0)
		k = export(&x);
	for (size_t i = 0; i < x.n; i++)
		sb_fd_close(&x.fds[i]);
	instance_base_done(&x.base);
	instance_done(&x.i);
	if (k < 0)
		cli_error("%s", err.code ? err.text : strerror(-k));
	return k == 0 ? SB_EXIT_OK : k == -EINVAL ? SB_EXIT_USAGE : k == -EINTR ? SB_EXIT_CANCELLED : SB_EXIT_NO;
}
