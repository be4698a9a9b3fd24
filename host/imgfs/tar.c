/* --tar: the layer on fd 0 as an archive on fd 1, the result on fd 3 (image/helper.h). */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "image/helper.h"
#include "imgfs.syscalls.h"
#include "layer_out.h"
#include "os/jail.h"

#define MEMORY_BYTES (768ULL << 20) /* names of hard links, headers */
#define CPU_SECONDS 1800
#define MAX_ENTRIES 4000000U

static int limit(__rlimit_resource_t what, rlim_t to)
{
	const struct rlimit rl = { to, to };

	return setrlimit(what, &rl) < 0 ? -errno : 0;
}

static int jail_me(uint64_t mapped, struct sb_err *err)
{
	const struct sb_jail j = { .syscalls = imgfs_syscalls,
				   .n_syscalls = SB_ARRAY_LEN(imgfs_syscalls),
				   .nofile = 8,
				   .root_fd = -1 };
	int r = limit(RLIMIT_CPU, CPU_SECONDS);

	(void)mapped;
#ifndef SB_JAIL_RELAXED /* sanitizers reserve terabytes of address space */
	if (r == 0)
		r = limit(RLIMIT_AS, MEMORY_BYTES + mapped);
#endif
	if (r < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR || signal(SIGXFSZ, SIG_IGN) == SIG_ERR)
		return sb_err_set(err, r < 0 ? r : -errno, "limits: %s", strerror(r < 0 ? -r : errno));
	return sb_jail_enter(&j, err);
}

static int put(void *arg, const void *p, size_t len)
{
	(void)arg;
	return sb_fd_write_all(STDOUT_FILENO, p, len);
}

static int convert(uint64_t size, uint64_t max_bytes, struct sb_err *err)
{
	const struct layer_out_sink to = { .put = put };
	const char *why = "";
	struct sb_erofs fs;
	const uint8_t *p = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, STDIN_FILENO, 0);
	int r;

	if (p == MAP_FAILED)
		return sb_err_set(err, -errno, "mmap: %s", strerror(errno));
	if (sb_erofs_open(p, (size_t)size, &fs, &why) < 0)
		return sb_err_set(err, -EBADMSG, "not a layer: %s", why);
	r = layer_out(&fs, MAX_ENTRIES, max_bytes, &to, err);
	return r < 0 && err->code == 0 ? sb_err_set(err, r, "cannot write the archive: %s", strerror(-r)) : r;
}

int imgfs_tar(const char *max_bytes)
{
	struct image_result res = { 0 };
	struct sb_err err = { 0 };
	struct stat st;
	uint64_t max = 0;
	int r;

	if (sb_num_u64(max_bytes, 1, INT64_MAX, &max) < 0 || fstat(STDIN_FILENO, &st) < 0 ||
	    !S_ISREG(st.st_mode) || st.st_size <= 0)
		return 2;
	r = jail_me((uint64_t)st.st_size, &err);
	if (r == 0)
		r = convert((uint64_t)st.st_size, max, &err);
	res.code = r;
	(void)snprintf(res.text, sizeof(res.text), "%s", err.text);
	if (sb_fd_write_all(IMAGE_RESULT_FD, &res, sizeof(res)) < 0)
		_exit(1);
	_exit(r < 0 ? 1 : 0);
}
