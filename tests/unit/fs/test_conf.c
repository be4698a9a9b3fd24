#include "fs/conf.h"
#include "t.h"

static int parse(struct fs_conf *c, const char *const *args)
{
	const char *argv[32] = { "sendbox-fs" };
	int argc = 1;

	for (; *args; args++)
		argv[argc++] = *args;
	fs_conf_init(c);
	return fs_conf_parse(c, argc, (char *const *)(uintptr_t)argv, NULL);
}

TEST(map)
{
	struct fs_map m;
	static const char *const bad[] = { "", "1", "1:2:3", "1:2:3:4:5", "1:2:3:", ":1:2:3",
					   "1:2:3:4294967295", "1:2:3:-1", "1:2:3: 4", "01:2:3:4",
					   "1:2:3:99999999999999999999" };

	CHECK_EQ(fs_conf_map("0:10:1000:4294967294", &m), 0);
	CHECK_EQ(m.host_uid, 0);
	CHECK_EQ(m.host_gid, 10);
	CHECK_EQ(m.guest_uid, 1000);
	CHECK_EQ(m.guest_gid, 4294967294U);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_EQ(fs_conf_map(bad[i], &m), -EINVAL);
}

TEST(leaves)
{
	struct fs_conf c;
	static const char *const bad[] = { "usr=4",    "usr/x=5",  "etc=5",  "/abs=5", "a//b=5",
					   "a/=5",     "../x=5",   "a/./b=5", "=5",    "a",
					   "a=",       "a=2",      "a=x",    "a=99999999999" };

	fs_conf_init(&c);
	CHECK_EQ(fs_conf_leaf(&c, "usr=4"), 0);
	CHECK_EQ(fs_conf_leaf(&c, "etc/ssl/certs=5"), 0);
	CHECK_EQ(fs_conf_leaf(&c, "etc/ssl/c=6=6"), 0); /* the last '=' counts */
	CHECK_EQ(fs_conf_leaf(&c, "us=7"), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_EQ(fs_conf_leaf(&c, bad[i]), -EINVAL);
	CHECK_EQ(c.n_leaves, 4);
	CHECK_STR(c.leaves[2].path, "etc/ssl/c=6");
	fs_conf_done(&c);
}

TEST(rules)
{
	struct fs_conf c;
	const struct fs_rule *r;

	fs_conf_init(&c);
	CHECK_EQ(fs_conf_rule(&c, ".git/hooks", FS_RULE_PROTECT), 0);
	CHECK_EQ(fs_conf_rule(&c, ".git/config", FS_RULE_HIDE), 0);
	CHECK_EQ(fs_conf_rule(&c, ".env", FS_RULE_HIDE), 0);
	CHECK_EQ(fs_conf_rule(&c, "/x", FS_RULE_HIDE), -EINVAL);
	CHECK_EQ(fs_conf_rule(&c, "", FS_RULE_HIDE), -EINVAL);
	CHECK_EQ(fs_conf_rule(&c, "x/..", FS_RULE_HIDE), -EINVAL);
	r = fs_rule_sub(&c.rules, ".git");
	REQUIRE(r);
	CHECK(!r->hide && !r->protect);
	CHECK(fs_rule_sub(r, "hooks") && fs_rule_sub(r, "hooks")->protect);
	CHECK(fs_rule_sub(r, "config") && fs_rule_sub(r, "config")->hide);
	CHECK(!fs_rule_sub(r, "hook"));
	CHECK(!fs_rule_sub(&c.rules, ".gi"));
	CHECK(!fs_rule_sub(NULL, ".git"));
	fs_conf_done(&c);
}

TEST(command_line)
{
	static const char *const good[] = { "--root", "4", "--map", "1:1:1000:1000", "--cache",
					    "short", "--quota-bytes", "5", "--hide", ".env", NULL };
	static const char *const tree[] = { "--tree", "usr=4", "--tree", "etc/x=5", NULL };
	static const char *const bad[][6] = {
		{ NULL },
		{ "--root", "4", NULL },                             /* writable without a map */
		{ "--root", "4", "--file", "5", "--ro", NULL },      /* two roots */
		{ "--root", "2", "--ro", NULL },                     /* a standard descriptor */
		{ "--tree", "a=4", "--hide", "a", NULL },            /* rules need a directory */
		{ "--root", "4", "--ro", "--cache", "never", NULL },
		{ "--root", "4", "--ro", "--quota-bytes", "0", NULL },
		{ "--root", "4", "--ro", "--what", NULL },
		{ "--ro", "--root", NULL },
	};
	struct fs_conf c;

	CHECK_EQ(parse(&c, good), 0);
	CHECK_EQ(c.kind, FS_ROOT_DIR);
	CHECK_EQ(c.root_fd, 4);
	CHECK_EQ(c.quota_bytes, 5);
	CHECK(!c.ro);
	fs_conf_done(&c);
	CHECK_EQ(parse(&c, tree), 0);
	CHECK_EQ(c.kind, FS_ROOT_TREE);
	CHECK(c.ro);
	fs_conf_done(&c);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK_EQ(parse(&c, bad[i]), -EINVAL);
		fs_conf_done(&c);
	}
}
