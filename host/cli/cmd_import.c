/*
 * sendbox import: an archive that sendbox export wrote becomes a stopped instance. The archive is somebody
 * else's: its names are a closed list, its blobs are compared with their digests, its layers are read by the
 * jailed sendbox-image and by nobody else, and nothing that it says of the instance grants anything: the
 * options and the workspace that it had are shown, and not taken.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/fd.h"
#include "cmd_instance.h"
#include "image/oci_archive.h"
#include "image/instance_meta.h"
#include "image/source.h"
#include "image_text.h"
#include "instance_base.h"
#include "plan_show.h"

#define MAX_ARCHIVE (256ULL << 30)

struct import {
	struct instances *in;
	const char *file;
	const char *name; /* NULL = as it was called */
	bool quiet;
	struct image_archive archive;
	struct oci_manifest manifest;
	struct instance_meta meta;
	struct instance_base base;
	struct sb_err *err;
};

/* ---- the file ---- */

/* What comes from a pipe is kept in a file without a name: it is read more than once. */
static int spool(struct import *x, int from, int *ret)
{
	sb_autofree uint8_t *buf = malloc(1U << 20);
	sb_autofd int fd = -1;
	uint64_t left = MAX_ARCHIVE;
	ssize_t n = 1;

	fd = open(x->in->dirs.d.cache, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0 || !buf)
		return sb_err_set(x->err, -errno, "%.200s: %s", x->in->dirs.d.cache, strerror(errno));
	while (n > 0) {
		int r;

		n = read(from, buf, 1U << 20);
		if (n < 0 && errno == EINTR) {
			n = 1;
			continue;
		}
		if (n < 0)
			return sb_err_set(x->err, -errno, "cannot read it: %s", strerror(errno));
		if ((uint64_t)n > left)
			return sb_err_set(x->err, -EFBIG, "more than 256 GiB");
		left -= (uint64_t)n;
		r = sb_fd_write_all(fd, buf, (size_t)n);
		if (r < 0)
			return sb_err_set(x->err, r, "cannot keep it: %s", strerror(-r));
	}
	*ret = sb_fd_take(&fd);
	return 0;
}

static int open_file(struct import *x, int *ret)
{
	sb_autofd int fd = -1;
	struct stat st;

	if (strcmp(x->file, "-") == 0)
		fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	else
		fd = open(x->file, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return sb_err_set(x->err, -errno, "%s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? sb_err_set(x->err, -EISDIR, "it is a folder, not an archive")
					   : spool(x, fd, ret);
	*ret = sb_fd_take(&fd);
	return 0;
}

/* ---- what it says ---- */

static int read_documents(struct import *x, const struct image_blobs *blobs)
{
	sb_autofree char *index = NULL;
	sb_autofree char *manifest = NULL;
	sb_autofree char *config = NULL;
	struct oci_config c = { 0 };
	struct oci_blob m;
	size_t len = 0;
	int r = image_archive_file(&x->archive, "index.json", &index, &len, x->err);

	if (r == 0)
		r = oci_index_pick(index, len, NULL, image_arch(), &m, x->err);
	if (r == 0)
		r = image_blob_read(blobs, &m, &manifest, x->err);
	if (r == 0)
		r = oci_manifest_parse(manifest, (size_t)m.size, &x->manifest, x->err);
	if (r == 0)
		r = instance_meta_parse(manifest, (size_t)m.size, &x->meta, x->err);
	if (r == 0)
		r = image_blob_read(blobs, &x->manifest.config, &config, x->err);
	if (r == 0)
		r = oci_config_parse(config, (size_t)x->manifest.config.size, image_arch(),
				     x->manifest.n_layers, &c, x->err);
	if (r < 0)
		return r;
	x->base.env = c.env;
	c.env = NULL;
	oci_config_done(&c);
	return 0;
}

static int check(struct import *x)
{
	const char *name = x->name ? x->name : x->meta.name;

	if (!instance_name_ok(name))
		return sb_err_set(x->err, -EBADMSG, "the instance's name in it is none: give one with --name");
	if (x->meta.agent && !agent_name_ok(x->meta.agent))
		return sb_err_set(x->err, -EBADMSG, "the agent's name in it is none");
	x->base.image = strcmp(x->meta.base, "host") == 0 ? SB_IMAGE_HOST : SB_IMAGE_LAYERS;
	x->name = name;
	return 0;
}

/* The first layer of an image is a whole; the others keep what they remove. More layers than a session can
 * have become one. */
static int make_layers(struct import *x, const struct image_blobs *blobs)
{
	struct image_text text = { .quiet = x->quiet };
	const struct image_want w = { .progress = image_text_progress, .arg = &text };
	const struct oci_manifest *m = &x->manifest;
	bool whole = x->base.image == SB_IMAGE_LAYERS;
	size_t at = 0;
	int r = 0;

	if (m->n_layers > SB_PLAN_MAX_LAYERS && !whole)
		return sb_err_set(x->err, -E2BIG, "%zu layers over the host's system, at most %d are possible",
				  m->n_layers, SB_PLAN_MAX_LAYERS);
	if (m->n_layers > SB_PLAN_MAX_LAYERS)
		at = m->n_layers - (SB_PLAN_MAX_LAYERS - 1);
	else if (whole)
		at = 1;
	if (at > 0) {
		r = image_make_layer(&x->in->dirs.d, &w, blobs, m, 0, at, false, &x->base.layers[0], x->err);
		x->base.n_layers += r == 0;
	}
	for (; r == 0 && at < m->n_layers; at++) {
		r = image_make_layer(&x->in->dirs.d, &w, blobs, m, at, 1, true,
				     &x->base.layers[x->base.n_layers], x->err);
		x->base.n_layers += r == 0;
	}
	image_text_end(&text);
	return r;
}

static void tell(const struct import *x)
{
	char here[INSTANCE_HOST_ROOM];

	instance_host_text(here);
	if (x->base.image == SB_IMAGE_HOST && (!x->meta.host || strcmp(x->meta.host, here) != 0))
		cli_error("it was made over another system (%.100s) than this one (%s): what is in it may not run",
			  x->meta.host ? x->meta.host : "unknown", here);
	if (x->quiet)
		return;
	if (x->meta.options && strcmp(x->meta.options, "[]") != 0)
		cli_error("not taken over: its options were %.1000s", x->meta.options);
	if (x->meta.workspace)
		cli_error("not taken over: its workspace was %.1000s; the folder that it is started in is shared",
			  x->meta.workspace);
	if (x->meta.agent)
		cli_error("it is one of the agent %.64s: once started, what is in it is given that agent's variables "
			  "(its keys), copies of its settings and its hosts", x->meta.agent);
	cli_error("start it with: sendbox run --name %s%s", x->name,
		  x->meta.agent ? "" : " -- PROGRAM");
}

static int add(struct import *x)
{
	sb_autofree char *layers = NULL;
	sb_autofree char *base = NULL;
	struct instance row = { .name = (char *)(uintptr_t)x->name, .agent = x->meta.agent,
				.image = x->meta.image };
	int r = instance_layers_text(x->base.layers, x->base.n_layers, &layers);

	if (r == 0)
		r = instance_base_write(&x->base, &base);
	if (r < 0)
		return sb_err_set(x->err, r, "out of memory");
	row.layers = layers;
	row.base = base;
	return instance_add(x->in->s, &row, x->err);
}

/* Before the work: a name that is taken would be told after minutes. */
static int is_free(struct import *x)
{
	struct instance i = { 0 };
	struct sb_err err = { 0 };
	int r = instance_get(x->in->s, x->name, &i, &err);

	instance_done(&i);
	if (r == 0)
		return sb_err_set(x->err, -EEXIST, "there is an instance \"%s\" already: give another name with "
						   "--name", x->name);
	return r == -ENOENT ? 0 : sb_err_set(x->err, r, "%s", err.text);
}

static int import(struct import *x)
{
	struct image_blobs blobs = { .dir = -1, .archive = &x->archive };
	sb_autofd int fd = -1;
	int r = open_file(x, &fd);

	if (r == 0)
		r = image_archive_open(fd, &x->archive, x->err);
	if (r == 0)
		r = read_documents(x, &blobs);
	if (r == 0)
		r = check(x);
	if (r == 0)
		r = is_free(x);
	if (r == 0)
		r = make_layers(x, &blobs);
	if (r == 0)
		r = add(x);
	if (r == 0) {
		printf("%s\n", x->name);
		tell(x);
	}
	return r;
}

static int take(void *arg, int id, const char *value, struct sb_err *err)
{
	struct import *x = arg;

	(void)err;
	if (id == 2)
		x->name = value;
	else
		x->quiet = true;
	return 0;
}

int cmd_import(int argc, char **argv)
{
	static const struct cli_option table[] = {
		{ "name", 'n', "NAME", "how to call it (default: as it was called)", 2 },
		{ "quiet", 'q', NULL, "say nothing but the name and errors", 3 },
		{ "help", 'h', NULL, "this text", VERB_HELP },
	};
	static const struct verb v = { "sendbox import [options] FILE",
				       "Make a stopped instance of an archive that sendbox export wrote; - reads "
				       "standard input.", table, SB_ARRAY_LEN(table), take };
	static struct import x;
	struct sb_err err = { 0 };
	int at = 0;
	int k = verb_options(&v, &x, argc, argv, &at);

	if (k != 0)
		return k == VERB_DONE ? SB_EXIT_OK : SB_EXIT_USAGE;
	if (x.name && !instance_name_ok(x.name)) {
		cli_error("--name: 1 to 64 letters, digits, \".\", \"_\" and \"-\", first a letter or digit");
		return SB_EXIT_USAGE;
	}
	if (at != argc - 1) {
		cli_error("write: %s", v.usage);
		return SB_EXIT_USAGE;
	}
	x.file = argv[at];
	x.err = &err;
	if (instances_open(&x.in) < 0)
		return SB_EXIT_INTERNAL;
	k = import(&x);
	x.in->s = state_close(x.in->s);
	instance_base_done(&x.base);
	instance_meta_done(&x.meta);
	if (k == 0)
		return SB_EXIT_OK;
	cli_error("%.200s: %s; no instance was made", x.file, err.code ? err.text : strerror(-k));
	return SB_EXIT_NO;
}
