#include "core/plan.h"
#include "t.h"

#include <stdlib.h>

/* A plan written by hand in the canonical form: keys sorted, compact. */
static const char literal[] =
	"{\"accel\":\"none\",\"argv\":[\"/bin/echo\",{\"b64\":\"/w==\"}],\"cpus\":2,"
	"\"cpus_asked\":false,\"created\":1000,\"cwd\":\"/w\",\"disk\":67108864,"
	"\"env\":[\"A=1\"],\"expires\":2000,\"format\":\"sendbox-plan\",\"gid\":1000,"
	"\"guest_sha256\":\"0000000000000000000000000000000000000000000000000000000000000000\","
	"\"home\":\"/home/user\",\"hostname\":\"sendbox\",\"image\":\"host\",\"image_dev\":0,"
	"\"image_ino\":0,\"image_path\":null,"
	"\"initramfs_sha256\":\"0000000000000000000000000000000000000000000000000000000000000000\","
	"\"kernel_release\":null,"
	"\"kernel_sha256\":\"0000000000000000000000000000000000000000000000000000000000000000\","
	"\"memory\":0,\"memory_asked\":false,"
	"\"mounts\":[{\"dev\":5,\"file\":false,\"guest\":\"/w\",\"host\":\"/w\","
	"\"ino\":\"18446744073709551615\",\"mode\":\"rw\",\"quota_bytes\":0,\"quota_inodes\":0}],"
	"\"nofile\":1024,\"owner_gid\":1000,\"owner_uid\":1000,\"pids_asked\":false,"
	"\"pids_max\":512,\"provider\":\"namespace\",\"provider_reason\":\"asked for\","
	"\"separate_stderr\":false,\"session\":\"000102030405060708090a0b0c0d0e0f\","
	"\"term\":null,\"test_root\":false,\"timeout_ms\":0,\"tty\":false,\"uid\":1000,"
	"\"user\":\"user\",\"version\":1}";

static struct sb_plan *parsed(void)
{
	struct sb_plan *p = NULL;
	struct sb_err e = { 0 };

	if (sb_plan_parse(literal, sizeof(literal) - 1, &p, &e) < 0)
		t_fail(__FILE__, __LINE__, "literal plan: %s", e.text);
	return p;
}

TEST(parse_literal)
{
	struct sb_plan *p = parsed();

	REQUIRE(p);
	CHECK_EQ(p->provider, SB_PROVIDER_NAMESPACE);
	CHECK_STR(p->argv[0], "/bin/echo");
	CHECK_STR(p->argv[1], "\xff");
	CHECK(!p->argv[2]);
	CHECK_EQ(p->session[15], 15);
	CHECK_EQ(p->n_mounts, 1);
	CHECK(p->mounts[0].ino == UINT64_MAX);
	CHECK_EQ(p->mounts[0].mode, SB_MOUNT_RW);
	CHECK(!p->kernel_release);
	(void)sb_plan_free(p);
}

TEST(write_gives_the_same_bytes)
{
	struct sb_plan *p = parsed();
	char *out = NULL;
	size_t len = 0;

	REQUIRE(p);
	CHECK_EQ(sb_plan_write(p, &out, &len, NULL), 0);
	CHECK_EQ(len, sizeof(literal) - 1);
	CHECK_STR(out, literal);
	free(out);
	(void)sb_plan_free(p);
}

/* Replace the first @from by @to and expect the parser to refuse. */
static void refuse(const char *from, const char *to)
{
	char buf[4096];
	const char *at = strstr(literal, from);
	struct sb_plan *p = NULL;
	int n;

	if (!at) {
		t_fail(__FILE__, __LINE__, "no %s in the literal", from);
		return;
	}
	n = snprintf(buf, sizeof(buf), "%.*s%s%s", (int)(at - literal), literal, to,
		     at + strlen(from));
	if (sb_plan_parse(buf, (size_t)n, &p, NULL) != -EBADMSG)
		t_fail(__FILE__, __LINE__, "accepted %s -> %s", from, to);
	(void)sb_plan_free(p);
}

TEST(not_canonical_or_malformed)
{
	struct sb_plan *p = NULL;

	refuse("\"cpus\":2", "\"cpus\": 2");
	refuse("\"cpus\":2", "\"cpus\":\"2\"");
	refuse("\"cpus\":2", "\"cpus\":2,\"cpus\":2");
	refuse("\"cpus\":2,", "");
	refuse("\"version\":1}", "\"version\":1,\"zzz\":0}");
	refuse("\"version\":1}", "\"version\":2}");
	refuse("\"version\":1}", "\"version\":1} ");
	refuse("\"version\":1}", "\"version\":1");
	refuse("\"created\":1000", "\"created\":-1");
	refuse("{\"b64\":\"/w==\"}", "{\"b64\":\"QQ==\"}"); /* "A" must be a plain string */
	refuse("{\"b64\":\"/w==\"}", "{\"b64\":\"AP8=\"}"); /* NUL inside */
	refuse("{\"b64\":\"/w==\"}", "\"a\\u0000b\"");
	refuse("\"0001020304", "\"0001020Z04");
	refuse("\"provider\":\"namespace\"", "\"provider\":\"none\"");
	CHECK_EQ(sb_plan_parse("", 0, &p, NULL), -EBADMSG);
	CHECK_EQ(sb_plan_parse("[]", 2, &p, NULL), -EBADMSG);
}

TEST(rules)
{
	refuse("\"uid\":1000", "\"uid\":0");
	refuse("\"gid\":1000", "\"gid\":0");
	refuse("\"test_root\":false", "\"test_root\":true");
	refuse("\"expires\":2000", "\"expires\":1000");
	refuse("\"cwd\":\"/w\"", "\"cwd\":\"w\"");
	refuse("\"cwd\":\"/w\"", "\"cwd\":\"/w/../x\"");
	refuse("\"guest\":\"/w\"", "\"guest\":\"/proc/x\"");
	refuse("\"guest\":\"/w\"", "\"guest\":\"/usr\"");
	refuse("\"guest\":\"/w\"", "\"guest\":\"/\"");
	refuse("\"guest\":\"/w\"", "\"guest\":\"/a\\nb\"");
	refuse("\"host\":\"/w\"", "\"host\":\"/w/\"");
	refuse("\"quota_bytes\":0", "\"quota_bytes\":1"); /* namespace cannot count */
	refuse("\"guest\":\"/w\"", "\"guest\":\"/run/host/etc\"");
	refuse("\"mode\":\"rw\"", "\"mode\":\"rx\"");
	refuse("[\"A=1\"]", "[\"A\"]");
	refuse("[\"A=1\"]", "[\"A=1\",\"A=2\"]");
	refuse("[\"A=1\"]", "[\"=1\"]");
	refuse("\"cpus\":2", "\"cpus\":0");
	refuse("\"cpus\":2", "\"cpus\":257");
	refuse("\"disk\":67108864", "\"disk\":1");
	refuse("\"pids_max\":512", "\"pids_max\":1");
	refuse("\"nofile\":1024", "\"nofile\":3");
	refuse("\"hostname\":\"sendbox\"", "\"hostname\":\"a b\"");
	refuse("\"user\":\"user\"", "\"user\":\"a:b\"");
	refuse("\"accel\":\"none\"", "\"accel\":\"tcg\"");
	refuse("\"image_path\":null", "\"image_path\":\"/x\"");
	refuse("\"argv\":[\"/bin/echo\",{\"b64\":\"/w==\"}]", "\"argv\":[]");
	refuse("\"tty\":false", "\"tty\":true");
	refuse("\"memory\":0", "\"memory\":4096");
}

TEST(normalise)
{
	char out[SB_PLAN_MAX_PATH + 1];

	CHECK_EQ(sb_path_normalise("/a//b/./c/", out), 0);
	CHECK_STR(out, "/a/b/c");
	CHECK_EQ(sb_path_normalise("/", out), 0);
	CHECK_STR(out, "/");
	CHECK_EQ(sb_path_normalise("//.//", out), 0);
	CHECK_STR(out, "/");
	CHECK_EQ(sb_path_normalise("/a/../b", out), -EINVAL);
	CHECK_EQ(sb_path_normalise("a", out), -EINVAL);
	CHECK_EQ(sb_path_normalise("", out), -EINVAL);
	CHECK_EQ(sb_path_normalise("/...", out), 0);
	CHECK_STR(out, "/...");
}

TEST(within)
{
	CHECK(sb_path_within("/a/b", "/a"));
	CHECK(sb_path_within("/a", "/a"));
	CHECK(!sb_path_within("/ab", "/a"));
	CHECK(!sb_path_within("/a", "/a/b"));
	CHECK(sb_path_within("/a", "/"));
}
