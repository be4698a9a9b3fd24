#ifndef SB_TEST_IMAGE_CACHE_PLACE_H
#define SB_TEST_IMAGE_CACHE_PLACE_H
/* A cache of its own, gone at the end, with the real sendbox-image or with another program. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/rmtree.h"
#include "crypto/crypto.h"
#include "provider/provider.h"
#include "t.h"

struct cache_place {
	char top[64];
	char state[80];
	struct sb_dirs d;
};
static inline void cache_place_make(struct cache_place *p)
{
	(void)snprintf(p->top, sizeof(p->top), "/tmp/sb-image-XXXXXX");
	if (sb_crypto_init() < 0 || !mkdtemp(p->top))
		abort();
	(void)snprintf(p->state, sizeof(p->state), "%s/state", p->top);
	if (mkdir(p->state, 0700) < 0)
		abort();
	p->d = (struct sb_dirs){ .cache = p->top, .state = p->state, .config = p->state, .libexec = LIBEXEC };
}
static inline void cache_place_done(struct cache_place *p)
{
	if (sb_rmtree(AT_FDCWD, p->top) < 0)
		abort();
}

/* Files in @dir of the cache that have @part in their names. */
static inline int cache_place_count(const struct cache_place *p, const char *dir, const char *part)
{
	char path[160];
	const struct dirent *e;
	DIR *d;
	int n = 0;

	(void)snprintf(path, sizeof(path), "%s/%s", p->top, dir);
	d = opendir(path);
	while (d && (e = readdir(d)) != NULL)
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
		     strstr(e->d_name, part) != NULL;
	if (d)
		(void)closedir(d);
	return n;
}
/* @text as a shell script in the place of sendbox-image. */
static inline void cache_place_helper(struct cache_place *p, const char *text)
{
	char path[160];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/sendbox-image", p->top);
	(void)unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || close(fd) < 0)
		abort();
	p->d.libexec = p->top;
}

/* Bytes as a file, read from its beginning. */
static inline int cache_place_file(const void *bytes, size_t len)
{
	int fd = memfd_create("tar", MFD_CLOEXEC);

	if (fd < 0 || write(fd, bytes, len) != (ssize_t)len || lseek(fd, 0, SEEK_SET) != 0)
		abort();
	return fd;
}

/* No child is left: waiting fails at once. */
static inline bool cache_place_childless(void)
{
	return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
}

#endif
