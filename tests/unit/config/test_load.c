/* Files of the layers: found, checked, hashed, merged. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cfgt.h"

static char top[] = "/tmp/sb-config-XXXXXX";

static void put(const char *name, mode_t mode, const char *text)
{
	char path[300];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", top, name);
	(void)unlink(path);
	f = fopen(path, "we");
	CHECK(f);
	if (f) {
		(void)fputs(text, f);
		(void)fclose(f);
	}
	CHECK_EQ(chmod(path, mode), 0);
}

/* printf 'timeout: 1\nname: s\n' | sha256sum */
static const char sha256_of_system[] =
	"\x17\x59\x3d\x16\xa7\xcb\x93\x36\xf0\x03\xe6\xd0\x8e\x70\x6b\xe7"
	"\x7c\x9c\x66\xeb\xef\xc8\xe9\xc6\x47\xbb\xb2\x9e\x79\xb3\x51\x88";

static const char *at(const char *name)
{
	static char path[4][300];
	static unsigned int i;

	i = (i + 1) % 4;
	(void)snprintf(path[i], sizeof(path[i]), "%s/%s", top, name);
	return path[i];
}

static void setup(void)
{
	static const char *const dirs[] = { "etc", "config", "home", "home/p", "home/p/sub", "other" };

	if (strstr(top, "XXXXXX"))
		CHECK(mkdtemp(top));
	for (size_t i = 0; i < SB_ARRAY_LEN(dirs); i++)
		(void)mkdir(at(dirs[i]), 0755);
	(void)unlink(at("etc/c.yaml"));
	(void)unlink(at("config/config.yaml"));
	(void)unlink(at("home/.sendbox.yaml"));
	(void)unlink(at("home/p/.sendbox.yaml"));
	(void)unlink(at(".sendbox.yaml"));
}

static int load(const char *file, const char *dir, struct cfg_loaded *l, struct problems *p)
{
	char system[300];
	char config[300];
	char home[300];
	char project[300];
	const struct cfg_source options[] = {
		{ CFG_COMMAND_LINE, "--uid", "{\"uid\": 77}", 11 },
	};
	struct cfg_files in = { .system = system, .config_dir = config, .home = home, .file = file,
				.project_dir = project, .option_list = options, .n_options = 1 };

	(void)snprintf(system, sizeof(system), "%s/etc/c.yaml", top);
	(void)snprintf(config, sizeof(config), "%s/config", top);
	(void)snprintf(home, sizeof(home), "%s/home", top);
	(void)snprintf(project, sizeof(project), "%s/%s", top, dir);
	*l = (struct cfg_loaded){ 0 };
	return cfg_load(&in, l, p);
}

static void where(const struct cfg_loaded *l, const char *path, const char *want)
{
	const struct cfg_value *v = cfg_get(l->cfg, path);
	char text[600];

	CHECK(v);
	if (!v)
		return;
	cfg_where(v, text, sizeof(text));
	CHECK_STR(strncmp(text, top, strlen(top)) == 0 ? text + strlen(top) : text, want);
}

TEST(every_layer)
{
	struct problems p = { 0 };
	struct cfg_loaded l;

	setup();
	put("etc/c.yaml", 0644, "timeout: 1\nname: s\n");
	put("config/config.yaml", 0600, "timeout: 2\nenv: {A: u}\n");
	put("other/org.yaml", 0644, "extends: base.yaml\ntimeout: 4\nresources: {cpus: 2}\n");
	put("other/base.yaml", 0644, "timeout: 3\nresources: {cpus: 1, pids: 9}\n");
	put("home/p/.sendbox.yaml", 0600, "# c\nextends: ../../other/org.yaml\ntimeout: 5\n");
	put("home/.sendbox.yaml", 0600, "timeout: 99\n");
	CHECK_EQ(load(NULL, "home/p/sub", &l, &p), 0);
	CHECK_STR(told(&p), "");
	REQUIRE(l.cfg);
	where(&l, "name", "/etc/c.yaml:2");
	where(&l, "env.A", "/config/config.yaml:2");
	where(&l, "resources.pids", "/other/base.yaml:2");
	where(&l, "resources.cpus", "/other/org.yaml:3");
	where(&l, "timeout", "/home/p/.sendbox.yaml:3");
	where(&l, "uid", "--uid");
	CHECK_EQ(cfg_int(l.cfg, "timeout", 0), 5000);
	CHECK_EQ(l.n_files, 5);
	CHECK_EQ(l.files[0].layer, CFG_SYSTEM);
	CHECK_EQ(l.files[2].layer, CFG_ORG);
	CHECK_EQ(l.files[4].layer, CFG_PROJECT);
	CHECK_STR(l.project_file, at("home/p/.sendbox.yaml"));
	CHECK_MEM(l.files[0].sha256, sha256_of_system, 32);
	cfg_loaded_done(&l);
	/* upward, but not past the home directory */
	put(".sendbox.yaml", 0600, "timeout: 98\n");
	(void)unlink(at("home/p/.sendbox.yaml"));
	CHECK_EQ(load(NULL, "home/p/sub", &l, &p), 0);
	where(&l, "timeout", "/home/.sendbox.yaml:1");
	cfg_loaded_done(&l);
	(void)unlink(at("home/.sendbox.yaml"));
	CHECK_EQ(load(NULL, "home/p/sub", &l, &p), 0);
	where(&l, "timeout", "/config/config.yaml:1");
	CHECK(l.project_file == NULL);
	cfg_loaded_done(&l);
	CHECK_EQ(load(NULL, "other", &l, &p), 0);
	where(&l, "timeout", "/.sendbox.yaml:1");
	cfg_loaded_done(&l);
	/* --config instead of looking */
	CHECK_EQ(load(at("other/base.yaml"), "home/p", &l, &p), 0);
	where(&l, "timeout", "/other/base.yaml:1");
	CHECK_STR(l.project_file, at("other/base.yaml"));
	cfg_loaded_done(&l);
}

static void refused(const char *what, const char *file, const char *code, const char *message)
{
	struct problems p = { 0 };
	struct cfg_loaded l;

	CHECK_EQ(load(file, "home/p", &l, &p), -EBADMSG);
	CHECK(l.cfg == NULL);
	if (p.n == 0 || strcmp(p.v[0].code, code) != 0 || !strstr(p.v[0].message, message))
		t_fail(__FILE__, __LINE__, "%s: %s %s", what, p.n ? p.v[0].code : "",
		       p.n ? p.v[0].message : "accepted");
	problems_done(&p);
}

TEST(unsafe_files)
{
	static const char good[] = "timeout: 7\n";
	struct problems p = { 0 };
	struct cfg_loaded l;
	int fds = t_open_fds();

	setup();
	put("home/p/.sendbox.yaml", 0600, good);
	CHECK_EQ(load(NULL, "home/p", &l, &p), 0); /* the control */
	cfg_loaded_done(&l);
	put("home/p/.sendbox.yaml", 0606, good);
	refused("others write", NULL, "untrusted", "chmod go-w");
	put("home/p/.sendbox.yaml", 0660, good);
	if (geteuid() == 0) { /* a group that is nobody's own */
		CHECK_EQ(chown(at("home/p/.sendbox.yaml"), 0, 12), 0);
		refused("group writes", NULL, "untrusted", "chmod go-w");
		CHECK_EQ(chown(at("home/p/.sendbox.yaml"), 0, 0), 0);
		CHECK_EQ(load(NULL, "home/p", &l, &p), 0); /* the owner's own group */
		cfg_loaded_done(&l);
		CHECK_EQ(chown(at("home/p/.sendbox.yaml"), 1234, 1234), 0);
		refused("another owner", NULL, "untrusted", "belongs to user 1234");
	}
	(void)unlink(at("home/p/.sendbox.yaml"));
	put("home/p/real", 0600, good);
	CHECK_EQ(symlink("real", at("home/p/.sendbox.yaml")), 0);
	refused("link", NULL, "untrusted", "symbolic link");
	(void)unlink(at("home/p/.sendbox.yaml"));
	CHECK_EQ(symlink("nowhere", at("home/p/.sendbox.yaml")), 0);
	refused("dangling link", NULL, "untrusted", "symbolic link");
	(void)unlink(at("home/p/.sendbox.yaml"));
	CHECK_EQ(mkfifo(at("home/p/.sendbox.yaml"), 0600), 0);
	refused("fifo", NULL, "untrusted", "no regular file");
	(void)unlink(at("home/p/.sendbox.yaml"));
	CHECK_EQ(mkdir(at("home/p/.sendbox.yaml"), 0755), 0);
	refused("folder", NULL, "untrusted", "no regular file");
	CHECK_EQ(rmdir(at("home/p/.sendbox.yaml")), 0);
	refused("missing", at("home/p/none.yaml"), "io", "no such file");
	refused("device", "/dev/zero", "untrusted", "no regular file");
	put("home/p/big.yaml", 0600, "#");
	CHECK_EQ(truncate(at("home/p/big.yaml"), (off_t)DOC_MAX_BYTES + 1), 0);
	refused("big", at("home/p/big.yaml"), "limit", "MiB");
	CHECK_EQ(truncate(at("home/p/big.yaml"), (off_t)1 << 40), 0);
	refused("huge", at("home/p/big.yaml"), "limit", "MiB");
	(void)unlink(at("home/p/big.yaml"));
	CHECK_EQ(t_open_fds(), fds);
}

TEST(extends)
{
	struct problems p = { 0 };
	struct cfg_loaded l;

	setup();
	put("home/p/.sendbox.yaml", 0600, "name: x\nextends: ./none.yaml\n");
	CHECK_EQ(load(NULL, "home/p", &l, &p), -EBADMSG);
	CHECK_STR(told(&p), "2:10 io extends");
	CHECK_STR(P(0)->file, at("home/p/.sendbox.yaml"));
	problems_done(&p);
	put("home/p/.sendbox.yaml", 0600, "extends: a.yaml\n");
	put("home/p/a.yaml", 0600, "extends: b.yaml\n");
	put("home/p/b.yaml", 0600, "extends: a.yaml\n");
	refused("circle", NULL, "bad_value", "extends itself");
	put("home/p/b.yaml", 0602, "timeout: 1\n");
	refused("others write", NULL, "untrusted", "chmod go-w");
	put("home/p/b.yaml", 0600, "extends: https://example.com/a.yaml\n");
	refused("address", NULL, "bad_value", "not available yet");
	/* problems of all files at once, in the order of the layers */
	put("home/p/b.yaml", 0600, "timeuot: 1\n");
	put("home/p/a.yaml", 0600, "extends: b.yaml\nuid: x\n");
	put("home/p/.sendbox.yaml", 0600, "extends: a.yaml\nuid: []\n");
	CHECK_EQ(load(NULL, "home/p", &l, &p), -EBADMSG);
	CHECK_STR(told(&p), "1:1 unknown_key timeuot\n2:6 wrong_type uid\n2:6 wrong_type uid");
	CHECK_STR(P(0)->near, "timeout");
	CHECK_STR(P(1)->file, at("home/p/a.yaml"));
	CHECK_STR(P(2)->file, at("home/p/.sendbox.yaml"));
	problems_done(&p);
	for (int i = 0; i < 10; i++) {
		char name[40];
		char text[40];

		(void)snprintf(name, sizeof(name), "home/p/c%d.yaml", i);
		(void)snprintf(text, sizeof(text), "extends: c%d.yaml\n", i + 1);
		put(name, 0600, text);
	}
	put("home/p/c10.yaml", 0600, "name: end\n");
	refused("long chain", at("home/p/c0.yaml"), "limit", "more than 8");
	CHECK_EQ(load(at("home/p/c3.yaml"), "home/p", &l, &p), 0);
	cfg_loaded_done(&l);
}
