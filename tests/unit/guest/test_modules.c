#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/init.h"
#include "t.h"

static char dir[64];

static void order(const char *text)
{
	sb_autofd int fd = -1;
	char path[100];

	(void)snprintf(dir, sizeof(dir), "/tmp/sb-modules-XXXXXX");
	CHECK(mkdtemp(dir) != NULL);
	(void)snprintf(path, sizeof(path), "%s/order", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0);
	CHECK_EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static int load(struct sb_err *err)
{
	char path[100];

	(void)snprintf(path, sizeof(path), "%s/order", dir);
	return sb_init_modules(dir, path, "overlay.ko", err);
}

TEST(no_list_means_nothing_to_load)
{
	order("");
	CHECK_EQ(sb_init_modules(dir, "/tmp/sb-no-such-list", NULL, NULL), 0);
	CHECK_EQ(load(NULL), 0);
}

TEST(a_missing_module_is_named)
{
	struct sb_err err = { 0 };

	order("fuse.ko\n");
	CHECK_EQ(load(&err), -ENOENT);
	CHECK(strstr(err.text, "fuse.ko") != NULL);
}

TEST(one_can_be_left_out)
{
	order("overlay.ko\n");
	CHECK_EQ(load(NULL), 0);
	CHECK_EQ(sb_init_module(dir, "overlay.ko", NULL), 0); /* there is none: built in */
}

TEST(names_stay_in_the_folder)
{
	struct sb_err err = { 0 };

	order("../evil.ko\n");
	CHECK_EQ(load(&err), -EINVAL);
}
