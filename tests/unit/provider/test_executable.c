/* Programs of a plan: by content, whatever happens to the path. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "crypto/crypto.h"
#include "os/rmtree.h"
#include "provider/executable.h"
#include "t.h"

static char dir[64];
static char prog[96];
static char link_path[96];

/* printf %s abc | sha256sum */
#define SHA_ABC "\xba\x78\x16\xbf\x8f\x01\xcf\xea\x41\x41\x40\xde\x5d\xae\x22\x23" \
		"\xb0\x03\x61\xa3\x96\x17\x7a\x9c\xb4\x10\xff\x61\xf2\x00\x15\xad"

static bool put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	return f && fputs(text, f) >= 0 && fclose(f) == 0;
}

static bool fresh(void)
{
	(void)snprintf(dir, sizeof(dir), "/tmp/sb-exe-XXXXXX");
	if (sb_crypto_init() < 0 || !mkdtemp(dir))
		return false;
	(void)snprintf(prog, sizeof(prog), "%s/prog", dir);
	(void)snprintf(link_path, sizeof(link_path), "%s/link", dir);
	return put(prog, "abc") && symlink("prog", link_path) == 0;
}

static void clear(void)
{
	CHECK_EQ(sb_rmtree(AT_FDCWD, dir), 0);
}

TEST(added_by_its_final_path)
{
	struct sb_plan p = { 0 };
	struct stat st;
	const char *path = NULL;
	char text[8] = { 0 };
	int fd;

	REQUIRE(fresh());
	CHECK_EQ(sb_exe_add(&p, dir, "net", link_path, NULL), 0);
	CHECK_EQ(sb_exe_add(&p, dir, "net", prog, NULL), -EEXIST);
	CHECK_EQ(sb_exe_add(&p, dir, "fs", "/no/such/program", NULL), -ENOENT);
	REQUIRE(p.n_parts == 1);
	CHECK_STR(p.parts[0].role, "executable:net");
	CHECK_STR(p.parts[0].path, prog);
	CHECK_MEM(p.parts[0].sha256, SHA_ABC, 32);
	fd = sb_exe_open(&p, dir, "net", &path, &st, NULL);
	REQUIRE(fd >= 0);
	CHECK_STR(path, prog);
	CHECK_EQ(st.st_size, 3);
	/* replaced afterwards: the descriptor is what was checked */
	CHECK(unlink(prog) == 0 && put(prog, "evil"));
	CHECK_EQ(read(fd, text, sizeof(text)), 3);
	CHECK_STR(text, "abc");
	sb_fd_close(&fd);
	CHECK_EQ(sb_exe_open(&p, dir, "fs", NULL, NULL, NULL), -ENOENT);
	free(p.parts[0].role);
	free(p.parts[0].path);
	free(p.parts);
	clear();
}

static int open_after(const char *how)
{
	struct sb_plan p = { 0 };
	struct sb_err err = { 0 };
	char cmd[400];
	int fd;

	if (!fresh() || sb_exe_add(&p, dir, "net", prog, NULL) < 0)
		abort();
	/* old enough to have a stamp */
	if (sb_exe_open(&p, dir, "net", NULL, NULL, NULL) < 0)
		abort();
	(void)snprintf(cmd, sizeof(cmd), "cd %s && %s", dir, how);
	CHECK_EQ(system(cmd), 0);
	fd = sb_exe_open(&p, dir, "net", NULL, NULL, &err);
	if (fd == -ESTALE)
		CHECK(strstr(err.text, "replaced after the plan was made"));
	free(p.parts[0].role);
	free(p.parts[0].path);
	free(p.parts);
	clear();
	return fd;
}

TEST(changed_programs_are_refused)
{
	CHECK_EQ(open_after("rm prog; printf abd >prog"), -ESTALE);
	CHECK_EQ(open_after("printf abd >prog"), -ESTALE);
	CHECK_EQ(open_after("printf abd >prog; touch -r link prog"), -ESTALE);
	CHECK_EQ(open_after("printf abcd >prog"), -ESTALE);
	CHECK_EQ(open_after(": >prog"), -ESTALE);
	CHECK_EQ(open_after("mv prog x; ln -s x prog"), -ELOOP);
	CHECK_EQ(open_after("rm prog; mkfifo prog"), -EINVAL);
	CHECK_EQ(open_after("rm prog; mkdir prog"), -EINVAL);
	CHECK_EQ(open_after("rm prog"), -ENOENT);
	CHECK(open_after("mv prog x; cp x prog") >= 0); /* the same content */
}
