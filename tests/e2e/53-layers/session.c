/*
 * One session on layers, for tests: what environments and instances ask of launch(), without their
 * records.
 *
 * session [--runtime R] [--accel A] [--image host|layers] [--layer FILE]... [--upper DIR|FILE]
 *         [--builder] [--export] [--allow HOSTS] -- COMMAND...
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/launch.h"
#include "crypto/crypto.h"

#undef main /* the command line's own is sendbox_main here */

static int add(struct sb_plan_layer *l, char *path)
{
	FILE *f = fopen(path, "re");
	struct stat st;
	uint64_t len;
	int r;

	if (!f || fstat(fileno(f), &st) < 0)
		return -errno;
	r = sb_sha256_fd(fileno(f), l->sha256, &len);
	(void)fclose(f);
	l->path = path;
	l->dev = st.st_dev;
	l->ino = st.st_ino;
	l->size = (uint64_t)st.st_size;
	l->ctime_ns = (uint64_t)st.st_ctim.tv_sec * 1000000000U + (uint64_t)st.st_ctim.tv_nsec;
	return r;
}

int main(int argc, char **argv)
{
	static struct sb_plan_layer layers[SB_PLAN_MAX_LAYERS];
	static struct run_options o = { .no_config = true };
	struct launch_target t = { .image = SB_IMAGE_HOST, .layers = layers };
	struct launch l = { .opt = &o, .target = &t, .io = { -1, -1, -1 } };
	struct launch_result res = { 0 };
	struct sb_err err = { 0 };
	int i = 1;

	for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
		char *v = i + 1 < argc ? argv[i + 1] : argv[i];
		struct stat st;

		if (strcmp(argv[i], "--builder") == 0) {
			t.builder = true;
			continue;
		} else if (strcmp(argv[i], "--keep") == 0) {
			o.keep = true;
			continue;
		} else if (strcmp(argv[i], "--export") == 0) {
			t.task = SB_TASK_EXPORT;
			o.no_network = true;
			continue;
		} else if (strcmp(argv[i], "--runtime") == 0) {
			o.runtime = v;
		} else if (strcmp(argv[i], "--accel") == 0) {
			o.accel = v;
		} else if (strcmp(argv[i], "--allow") == 0) {
			o.allow[o.n_allow++] = v;
		} else if (strcmp(argv[i], "--image") == 0) {
			t.image = strcmp(v, "host") == 0 ? SB_IMAGE_HOST : SB_IMAGE_LAYERS;
		} else if (strcmp(argv[i], "--layer") == 0 && t.n_layers < SB_PLAN_MAX_LAYERS) {
			if (add(&layers[t.n_layers++], v) < 0) {
				perror(v);
				return 2;
			}
		} else if (strcmp(argv[i], "--upper") == 0 && stat(v, &st) == 0) {
			t.upper = S_ISDIR(st.st_mode) ? SB_UPPER_DIR : SB_UPPER_DISK;
			t.upper_path = v;
		} else {
			(void)fprintf(stderr, "session: %s?\n", argv[i]);
			return 2;
		}
		i++;
	}
	o.argv = argv + i + 1;
	if (i + 1 >= argc || launch(&l, &res, &err) < 0 || res.text[0])
		(void)fprintf(stderr, "session: %s\n", err.text[0] ? err.text : res.text);
	return res.status;
}
