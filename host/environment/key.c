/* What decides an environment, and its digest. */
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/num.h"
#include "crypto/crypto.h"
#include "environment/build.h"

#define FORMAT "sendbox environment 1"
#define OS_RELEASE "/usr/lib/os-release"
#define OS_RELEASE_MAX 65536
#define KEY_MAX (4U << 20)

/* Each item with its length, so that no two lists are the same bytes. */
static int item(struct sb_buf *b, const char *name, const char *value)
{
	sb_buf_addf(b, "\n%s %zu ", name, strlen(value));
	sb_buf_add_str(b, value);
	return 0;
}

static void list(struct sb_buf *b, const char *name, const char *const *items)
{
	for (size_t i = 0; items && items[i]; i++)
		(void)item(b, name, items[i]);
}

/* What layers over the host's /usr depend on. */
static int host(struct sb_buf *b, struct sb_err *err)
{
	sb_autofree char *release = NULL;
	struct utsname u;
	size_t len;
	int r = sb_fd_read_file(AT_FDCWD, OS_RELEASE, OS_RELEASE_MAX, &release, &len);

	if (r < 0)
		return sb_err_set(err, r, OS_RELEASE ": %s", strerror(-r));
	(void)uname(&u);
	(void)item(b, "host", release);
	(void)item(b, "machine", u.machine);
	return item(b, "libc", gnu_get_libc_version());
}

static int base(struct sb_buf *b, const struct image *i, struct sb_err *err)
{
	char text[80];
	struct stat st;

	switch (i->form) {
	case IMAGE_FORM_EROFS:
		sb_hex_write(i->layer.sha256, sizeof(i->layer.sha256), text);
		return item(b, "layer", text);
	case IMAGE_FORM_DIR:
		if (stat(i->path, &st) < 0)
			return sb_err_set(err, -errno, "image %s: %s", i->path, strerror(errno));
		(void)snprintf(text, sizeof(text), "%llu %llu", (unsigned long long)st.st_dev,
			       (unsigned long long)st.st_ino);
		(void)item(b, "directory", i->path);
		return item(b, "identity", text);
	case IMAGE_FORM_HOST:
		return host(b, err);
	case IMAGE_FORM_NONE:
	default:
		return sb_err_set(err, -EINVAL, "an environment needs a base image");
	}
}

int environment_key(const struct environment_what *w, uint8_t ret[32], struct sb_err *err)
{
	sb_autobuf struct sb_buf b;
	int r;

	sb_buf_init(&b, KEY_MAX);
	sb_buf_add(&b, FORMAT, strlen(FORMAT));
	r = base(&b, w->base, err);
	list(&b, "command", w->commands);
	list(&b, "health", w->health);
	list(&b, "env", w->env);
	list(&b, "group", w->groups);
	if (r == 0 && sb_buf_error(&b) < 0)
		r = sb_err_set(err, sb_buf_error(&b), "the definition is too long");
	if (r == 0)
		sb_sha256(b.data, b.len, ret);
	return r;
}
