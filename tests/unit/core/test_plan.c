#include "core/plan.h"
#include "plan_text.h"
#include "t.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define RULE_1                                                                                     \
	"{\"action\":\"deny\",\"any_order\":false,\"from\":\"/w/.sendbox.yaml:3\","               \
	"\"pattern\":\"git push **\",\"reason\":null,\"scope\":\"tree\"}"
#define TWOS "0202020202020202020202020202020202020202020202020202020202020202"

#define ONES "0101010101010101010101010101010101010101010101010101010101010101"
#define LAYER_1                                                                                    \
	"{\"ctime_ns\":1700000000000000001,\"dev\":5,\"ino\":7,\"path\":\"/c/base.erofs\","        \
	"\"sha256\":\"" ONES "\",\"size\":8192}"
#define LAYER_2                                                                                    \
	"{\"ctime_ns\":1700000000000000001,\"dev\":5,\"ino\":8,\"path\":\"/c/env.erofs\","         \
	"\"sha256\":\"" TWOS "\",\"size\":4096}"
#define SSH_HOST_1 "{\"name\":\"git.example\",\"sha256\":\"" ONES "\"}"
#define SSH_HOST_2 "{\"name\":\"git.example\",\"sha256\":\"" TWOS "\"}"
#define SSH_KEY_1 "{\"comment\":\"work key\",\"sha256\":\"" ONES "\"}"
#define SSH_KEY_2 "{\"comment\":\"\",\"sha256\":\"" TWOS "\"}"
#define SSH                                                                                        \
	"\"ssh\":{\"hosts\":[" SSH_HOST_1 "," SSH_HOST_2 "],\"keys\":[" SSH_KEY_1 "," SSH_KEY_2 "],"   \
	"\"sign_data\":true},"
#define UPPER                                                                                      \
	"\"upper\":{\"dev\":5,\"ino\":9,\"kind\":\"dir\",\"path\":\"/s/instances/1/upper\"},"

/* A plan written by hand in the canonical form: keys sorted, compact. */
static const char literal[] =
	"{\"accel\":\"none\",\"argv\":[\"/bin/echo\",{\"b64\":\"/w==\"}],"
	"\"builder\":false,\"bundle\":{\"key\":\"0101010101010101010101010101010101010101010101010101010101010101\","
	"\"manifest_sha256\":\"" TWOS "\",\"origin\":\"local build\",\"sequence\":7},"
	"\"commands\":{\"default\":\"allow\",\"log_blocked\":true,\"rules\":[" RULE_1 "],"
	"\"scope\":\"tree\"},\"config_sha256\":\"" TWOS "\",\"cpus\":2,"
	"\"cpus_asked\":false,\"created\":1000,\"cwd\":\"/w\","
	"\"deny_syscalls\":[\"keyctl\",\"ptrace\"],\"disk\":67108864,"
	"\"env\":[{\"name\":\"A\",\"sha256\":\"" PLAN_SHA_OF_1 "\"}],\"expires\":2000,"
	"\"features\":[{\"decision\":\"enforced\",\"mechanism\":\"no network card\","
	"\"name\":\"network\"},{\"decision\":\"not_asked\",\"mechanism\":\"\","
	"\"name\":\"quota\"}],\"format\":\"sendbox-plan\",\"gid\":1000,"
	"\"guards\":[{\"mode\":\"hidden\",\"path\":\"/w/.env\"},"
	"{\"mode\":\"readonly\",\"path\":\"/w/.git/hooks\"}],"
	"\"guest_sha256\":\"" PLAN_ZEROS "\","
	"\"home\":\"/home/user\",\"host_version\":\"0.4\",\"hostname\":\"sendbox\","
	"\"image\":\"host\",\"image_dev\":0,\"image_ino\":0,\"image_path\":null,"
	"\"initramfs_sha256\":\"" PLAN_ZEROS "\",\"instance\":\"a-1\",\"kernel_release\":null,"
	"\"kernel_sha256\":\"" PLAN_ZEROS "\",\"layers\":[" LAYER_1 "," LAYER_2 "],\"log_blocked\":true,"
	"\"memory\":0,\"memory_asked\":false,"
	"\"mounts\":[{\"dev\":5,\"file\":false,\"guest\":\"/w\",\"host\":\"/w\","
	"\"ino\":\"18446744073709551615\",\"mode\":\"rw\",\"quota_bytes\":0,\"quota_inodes\":0}],"
	"\"net\":{\"cname_strict\":false,\"dns_new_names\":100,\"dns_queries\":3000,"
	"\"dns_types\":[\"TXT\"],\"ech_outer\":true,\"host_bytes\":0,\"idle_ms\":1800000,"
	"\"max_connections\":512,\"mode\":\"filter\","
	"\"pins\":[{\"addr\":\"192.0.2.7\",\"name\":\"pin.example\"}],\"proxy_env\":true,"
	"\"resolvers\":[\"127.0.0.53:53\",\"[fd00::53]:53\"],"
	"\"rules\":[{\"deny\":false,\"from\":\"--allow-hosts\",\"host\":\"*.example.com\","
	"\"port_hi\":443,\"port_lo\":443,\"proto\":\"https\"},"
	"{\"deny\":true,\"from\":\"\",\"host\":\"10.0.0.0/8\",\"port_hi\":65535,\"port_lo\":1,"
	"\"proto\":\"auto\"}],\"session_bytes\":\"18446744073709551615\"},"
	"\"nofile\":1024,\"owner_gid\":1000,\"owner_uid\":1000,"
	"\"parts\":[{\"path\":\"/w/.sendbox.yaml\",\"role\":\"config:project\","
	"\"sha256\":\"" TWOS "\"},{\"path\":\"/usr/libexec/sendbox/sendbox-monitor\","
	"\"role\":\"executable:monitor\",\"sha256\":\"" TWOS "\"}],"
	"\"pids_asked\":false,\"pids_max\":512,\"profile\":\"strict\","
	"\"provider\":\"namespace\",\"provider_asked\":\"namespace\","
	"\"provider_reason\":\"asked for\",\"rejected\":[\"microvm: no KVM\"],"
	"\"reviewed_sha256\":\"" PLAN_ZEROS "\",\"rlimits\":{"
	"\"as\":1073741824,\"cpu\":60,\"data\":\"18446744073709551615\",\"fsize\":1048576,"
	"\"memlock\":0,\"stack\":8388608},\"secrets\":[],"
	"\"separate_stderr\":false,\"session\":\"000102030405060708090a0b0c0d0e0f\","
	SSH "\"task\":\"command\",\"term\":null,\"test_root\":false,\"timeout_ms\":0,\"tty\":false,"
	"\"uid\":1000," UPPER "\"user\":\"user\",\"version\":3}";

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

TEST(net_part)
{
	struct sb_plan *p = parsed();
	const struct sb_plan_net *n = p ? &p->net : NULL;

	REQUIRE(n);
	CHECK_EQ(n->mode, SB_NET_FILTER);
	REQUIRE(n->n_rules == 2);
	CHECK(!n->rules[0].deny);
	CHECK_STR(n->rules[0].host, "*.example.com");
	CHECK_EQ(n->rules[0].port_lo, 443);
	CHECK_EQ(n->rules[0].port_hi, 443);
	CHECK_EQ(n->rules[0].proto, SB_PROTO_HTTPS);
	CHECK_STR(n->rules[0].from, "--allow-hosts");
	CHECK(n->rules[1].deny);
	CHECK_STR(n->rules[1].host, "10.0.0.0/8");
	CHECK_EQ(n->rules[1].port_lo, 1);
	CHECK_EQ(n->rules[1].port_hi, 65535);
	CHECK_EQ(n->rules[1].proto, SB_PROTO_AUTO);
	REQUIRE(n->n_pins == 1);
	CHECK_STR(n->pins[0].name, "pin.example");
	CHECK_STR(n->pins[0].addr, "192.0.2.7");
	CHECK_STR(n->resolvers[0], "127.0.0.53:53");
	CHECK_STR(n->resolvers[1], "[fd00::53]:53");
	CHECK(!n->resolvers[2]);
	CHECK_STR(n->dns_types[0], "TXT");
	CHECK(!n->dns_types[1]);
	CHECK_EQ(n->max_connections, 512);
	CHECK_EQ(n->idle_ms, 1800000);
	CHECK(n->session_bytes == UINT64_MAX);
	CHECK_EQ(n->host_bytes, 0);
	CHECK_EQ(n->dns_queries, 3000);
	CHECK_EQ(n->dns_new_names, 100);
	CHECK(n->proxy_env);
	CHECK(!n->cname_strict);
	CHECK(n->ech_outer);
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
	char buf[8192];
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

/* The same, expected to be taken. */
static void accept(const char *from, const char *to)
{
	char buf[8192];
	const char *at = strstr(literal, from);
	struct sb_plan *p = NULL;
	struct sb_err err = { 0 };
	int n;

	if (!at) {
		t_fail(__FILE__, __LINE__, "no %s in the literal", from);
		return;
	}
	n = snprintf(buf, sizeof(buf), "%.*s%s%s", (int)(at - literal), literal, to,
		     at + strlen(from));
	if (sb_plan_parse(buf, (size_t)n, &p, &err) < 0)
		t_fail(__FILE__, __LINE__, "refused %s -> %s: %s", from, to, err.text);
	(void)sb_plan_free(p);
}

TEST(not_canonical_or_malformed)
{
	struct sb_plan *p = NULL;

	refuse("\"cpus\":2", "\"cpus\": 2");
	refuse("\"cpus\":2", "\"cpus\":\"2\"");
	refuse("\"cpus\":2", "\"cpus\":2,\"cpus\":2");
	refuse("\"cpus\":2,", "");
	refuse("\"version\":3}", "\"version\":3,\"zzz\":0}");
	refuse("\"version\":3}", "\"version\":2}");
	refuse("\"version\":3}", "\"version\":3} ");
	refuse("\"version\":3}", "\"version\":3");
	refuse("\"created\":1000", "\"created\":-1");
	refuse("{\"b64\":\"/w==\"}", "{\"b64\":\"QQ==\"}"); /* "A" must be a plain string */
	refuse("{\"b64\":\"/w==\"}", "{\"b64\":\"AP8=\"}"); /* NUL inside */
	refuse("{\"b64\":\"/w==\"}", "\"a\\u0000b\"");
	refuse("\"0001020304", "\"0001020Z04");
	refuse("\"provider\":\"namespace\"", "\"provider\":\"none\"");
	CHECK_EQ(sb_plan_parse("", 0, &p, NULL), -EBADMSG);
	CHECK_EQ(sb_plan_parse("[]", 2, &p, NULL), -EBADMSG);
}

#define ENV_1 "{\"name\":\"A\",\"sha256\":\"" PLAN_SHA_OF_1 "\"}"

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
	refuse("\"name\":\"A\"", "\"name\":\"\"");
	refuse("\"name\":\"A\"", "\"name\":\"A=\"");
	refuse("\"name\":\"A\"", "\"name\":\"A\\n\"");
	refuse("\"name\":\"A\"", "\"name\":\"A\",\"value\":\"1\"");
	refuse("[" ENV_1 "]", "[" ENV_1 "," ENV_1 "]");
	refuse("[" ENV_1 "]", "[\"A=1\"]");
	refuse("[" ENV_1 "]", "[{\"name\":\"B\",\"sha256\":\"" PLAN_SHA_OF_1 "\"}," ENV_1 "]");
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

TEST(net_rules)
{
	refuse("\"mode\":\"filter\"", "\"mode\":\"none\""); /* with rules */
	refuse("\"mode\":\"filter\"", "\"mode\":\"all\"");
	refuse("\"mode\":\"filter\"", "\"mode\":1");
	refuse("\"mode\":\"filter\",", "");
	refuse("\"max_connections\":512", "\"max_connections\":0");
	refuse("\"max_connections\":512", "\"max_connections\":4097");
	refuse("\"proxy_env\":true", "\"proxy_env\":1");
	refuse("\"cname_strict\":false,", "");
	refuse("\"ech_outer\":true", "\"ech_outer\":true,\"extra\":0");
	refuse("\"host\":\"*.example.com\"", "\"host\":\"*.Example.com\"");
	refuse("\"host\":\"*.example.com\"", "\"host\":\"*.example.com.\"");
	refuse("\"host\":\"*.example.com\"", "\"host\":\"\"");
	refuse("\"host\":\"*.example.com\"", "\"host\":\"example.com\\u0000.net\"");
	refuse("\"host\":\"*.example.com\"", "\"host\":{\"b64\":\"/w==\"}");
	refuse("\"host\":\"10.0.0.0/8\"", "\"host\":\"10.0.0.1/8\"");
	refuse("\"host\":\"10.0.0.0/8\"", "\"host\":\"10.0.0.0/08\"");
	refuse("\"host\":\"10.0.0.0/8\"", "\"host\":\"::ffff:10.0.0.0/104\"");
	refuse("\"from\":\"\"", "\"from\":null");
	refuse("\"from\":\"\"", "\"from\":\"a\\nb\"");
	refuse("\"port_hi\":443", "\"port_hi\":442");
	refuse("\"port_hi\":443", "\"port_hi\":65979"); /* 443 + 65536 */
	refuse("\"port_lo\":443", "\"port_lo\":0");
	refuse("\"port_lo\":443", "\"port_lo\":\"443\"");
	refuse("\"proto\":\"https\"", "\"proto\":\"tcp\"");
	refuse("\"proto\":\"auto\"", "\"proto\":\"any\""); /* of a deny rule */
	refuse("\"deny\":false,", "");
	refuse("\"deny\":false", "\"deny\":0");
	refuse("\"rules\":[", "\"rules\":[1,");
	refuse("\"addr\":\"192.0.2.7\"", "\"addr\":\"192.0.2.07\"");
	refuse("\"name\":\"pin.example\"", "\"name\":\"*.example\"");
	refuse("127.0.0.53:53", "127.0.0.53");
	refuse("[fd00::53]:53", "fd00::53:53");
	refuse("[\"TXT\"]", "[\"A\"]");
	refuse("[\"TXT\"]", "null");
}

TEST(parts_of_the_plan)
{
	struct sb_plan *p = parsed();

	REQUIRE(p);
	CHECK_STR(p->bundle.origin, "local build");
	CHECK_EQ(p->bundle.sequence, 7);
	CHECK_EQ(p->bundle.key[31], 1);
	CHECK_EQ(p->bundle.manifest_sha256[31], 2);
	CHECK_EQ(p->config_sha256[0], 2);
	CHECK_EQ(p->reviewed_sha256[0], 0);
	REQUIRE(p->n_parts == 2);
	CHECK_STR(p->parts[1].role, "executable:monitor");
	CHECK_STR(p->parts[1].path, "/usr/libexec/sendbox/sendbox-monitor");
	CHECK_EQ(p->parts[1].sha256[5], 2);
	CHECK(sb_plan_find_part(p, "config:project") == &p->parts[0]);
	CHECK(!sb_plan_find_part(p, "config"));
	CHECK_STR(p->provider_asked, "namespace");
	CHECK_STR(p->rejected[0], "microvm: no KVM");
	CHECK(!p->rejected[1]);
	CHECK_STR(p->host_version, "0.4");
	CHECK(p->secrets && !p->secrets[0]);
	CHECK_EQ(p->commands.scope, SB_CMD_SCOPE_TREE);
	CHECK_EQ(p->commands.fallback, SB_CMD_ALLOW);
	REQUIRE(p->commands.n_rules == 1);
	CHECK_STR(p->commands.rules[0].pattern, "git push **");
	CHECK_STR(p->commands.rules[0].from, "/w/.sendbox.yaml:3");
	CHECK_EQ(p->profile, SB_PROFILE_STRICT);
	CHECK_STR(p->deny_syscalls[1], "ptrace");
	CHECK(p->log_blocked);
	CHECK_EQ(p->rlimits.as, 1 << 30);
	CHECK_EQ(p->rlimits.cpu, 60);
	CHECK(p->rlimits.data == SB_PLAN_NO_LIMIT);
	CHECK_EQ(p->rlimits.fsize, 1 << 20);
	CHECK_EQ(p->rlimits.memlock, 0);
	CHECK_EQ(p->rlimits.stack, 8 << 20);
	REQUIRE(p->n_guards == 2);
	CHECK_STR(p->guards[0].path, "/w/.env");
	CHECK_EQ(p->guards[0].mode, SB_GUARD_HIDDEN);
	CHECK_EQ(p->guards[1].mode, SB_GUARD_READONLY);
	REQUIRE(p->n_features == 2);
	CHECK_EQ(p->features[0].decision, SB_DECISION_ENFORCED);
	CHECK_STR(p->features[0].mechanism, "no network card");
	CHECK_EQ(p->features[1].decision, SB_DECISION_NOT_ASKED);
	(void)sb_plan_free(p);
}

#define PART_1 "{\"path\":\"/w/.sendbox.yaml\",\"role\":\"config:project\",\"sha256\":\"" TWOS "\"}"
#define GUARD_1 "{\"mode\":\"hidden\",\"path\":\"/w/.env\"}"
#define GUARD_2 "{\"mode\":\"readonly\",\"path\":\"/w/.git/hooks\"}"
#define FEATURE_2 "{\"decision\":\"not_asked\",\"mechanism\":\"\",\"name\":\"quota\"}"

TEST(rules_of_the_parts)
{
	refuse("\"role\":\"config:project\"", "\"role\":\"executable:monitor\""); /* twice */
	refuse("\"role\":\"config:project\"", "\"role\":\"zebra\"");              /* order */
	refuse("\"role\":\"config:project\"", "\"role\":\"config project\"");
	refuse("\"role\":\"config:project\"", "\"role\":\"\"");
	refuse("\"path\":\"/w/.sendbox.yaml\"", "\"path\":\".sendbox.yaml\"");
	refuse("\"path\":\"/w/.sendbox.yaml\"", "\"path\":\"/w//.sendbox.yaml\"");
	refuse("\"sha256\":\"" TWOS "\"", "\"sha256\":\"" PLAN_ZEROS "\"");
	refuse("\"sha256\":\"" TWOS "\"", "\"sha256\":\"02\"");
	refuse("\"sha256\":\"" TWOS "\"", "\"sha256\":\"" TWOS "\",\"size\":1");
	refuse("\"sequence\":7", "\"sequence\":0");
	refuse("\"origin\":\"local build\"", "\"origin\":\"\"");
	refuse("\"origin\":\"local build\"", "\"origin\":\"a\\u0007b\"");
	refuse("\"manifest_sha256\":\"" TWOS "\",", "");
	refuse("\"provider_asked\":\"namespace\"", "\"provider_asked\":\"microvm\"");
	refuse("\"provider_asked\":\"namespace\"", "\"provider_asked\":\"auto\"");
	refuse("\"provider_asked\":\"namespace\"", "\"provider_asked\":\"kata\"");
	refuse("\"rejected\":[\"microvm: no KVM\"]", "\"rejected\":[\"\"]");
	refuse("\"rejected\":[\"microvm: no KVM\"]", "\"rejected\":null");
	refuse("\"host_version\":\"0.4\"", "\"host_version\":\"\"");
	refuse("\"secrets\":[]", "\"secrets\":[\"TOKEN\"]");
	refuse("\"commands\":{", "\"commands\":{\"x\":1,");
	refuse("\"default\":\"allow\"", "\"default\":\"ask\"");
	refuse("[" RULE_1 "]", "null");
	refuse("\"scope\":\"tree\"},\"config", "\"scope\":\"none\"},\"config"); /* with rules */
	refuse("\"action\":\"deny\"", "\"action\":\"ask\""); /* of the whole tree */
	refuse("git push **", "** git");
	refuse("\"any_order\":false,", "");
	refuse("\"config_sha256\":\"" TWOS "\",", "");
}

TEST(root_of_the_plan)
{
	struct sb_plan *p = parsed();

	REQUIRE(p);
	CHECK_EQ(p->upper.kind, SB_UPPER_DIR);
	CHECK_STR(p->upper.path, "/s/instances/1/upper");
	CHECK_EQ(p->upper.dev, 5);
	CHECK_EQ(p->upper.ino, 9);
	CHECK_STR(p->instance, "a-1");
	CHECK_EQ(p->task, SB_TASK_COMMAND);
	CHECK(!p->builder);
	REQUIRE(p->n_layers == 2);
	CHECK_STR(p->layers[0].path, "/c/base.erofs");
	CHECK_EQ(p->layers[0].sha256[31], 1);
	CHECK_EQ(p->layers[1].ino, 8);
	CHECK_EQ(p->layers[1].size, 4096);
	CHECK(p->layers[1].ctime_ns == 1700000000000000001);
	(void)sb_plan_free(p);
}

TEST(ssh_part)
{
	struct sb_plan *p = parsed();

	REQUIRE(p);
	REQUIRE(p->ssh.n_keys == 2 && p->ssh.n_hosts == 2);
	CHECK_STR(p->ssh.keys[0].comment, "work key");
	CHECK_EQ(p->ssh.keys[1].sha256[31], 2);
	CHECK_STR(p->ssh.hosts[0].name, "git.example");
	CHECK_EQ(p->ssh.hosts[1].sha256[0], 2);
	CHECK(p->ssh.sign_data);
	(void)sb_plan_free(p);
	accept("\"sign_data\":true", "\"sign_data\":false");
	accept("\"hosts\":[" SSH_HOST_1 "," SSH_HOST_2 "]", "\"hosts\":[]");
	refuse("\"keys\":[" SSH_KEY_1 "," SSH_KEY_2 "]", "\"keys\":[]"); /* hosts without a key */
	refuse(SSH_KEY_1 "," SSH_KEY_2, SSH_KEY_2 "," SSH_KEY_1);
	refuse(SSH_KEY_1 "," SSH_KEY_2, SSH_KEY_1 "," SSH_KEY_1);
	refuse(SSH_HOST_1 "," SSH_HOST_2, SSH_HOST_2 "," SSH_HOST_1);
	refuse(SSH_HOST_1 "," SSH_HOST_2, SSH_HOST_1 "," SSH_HOST_1);
	refuse("\"work key\"", "\"work\\nkey\"");
	refuse("\"git.example\"", "\"Git.example\"");
	refuse("\"git.example\"", "\"-oProxyCommand\"");
	refuse("\"git.example\"", "\"\"");
	refuse("\"sign_data\":true", "\"sign_data\":1");
	refuse(",\"sign_data\":true", "");
}

TEST(rules_of_layers)
{
	refuse("[" LAYER_1 "," LAYER_2 "]", "null");
	refuse("[" LAYER_1 "," LAYER_2 "],", "");
	refuse("[" LAYER_1 "," LAYER_2 "]", "[" LAYER_1 "," LAYER_1 "]");
	refuse("\"sha256\":\"" ONES "\",\"size\"", "\"sha256\":\"" PLAN_ZEROS "\",\"size\"");
	refuse("\"sha256\":\"" ONES "\",\"size\"", "\"size\"");
	refuse("\"size\":8192", "\"size\":8191");
	refuse("\"size\":8192", "\"size\":0");
	refuse("\"size\":8192", "\"size\":2199023255552");
	refuse("\"ino\":7", "\"ino\":0");
	refuse("\"ctime_ns\":1700000000000000001", "\"ctime_ns\":0");
	refuse("/c/base.erofs", "c/base.erofs");
	refuse("/c/base.erofs", "/c/../base.erofs");
	refuse("/c/base.erofs", "/w/base.erofs"); /* where the workload can write */
	refuse("\"image\":\"host\"", "\"image\":\"layer\"");
}

static int check_changed(void (*change)(struct sb_plan *p))
{
	struct sb_plan *p = parsed();
	int r;

	if (!p)
		return -EIO;
	change(p);
	r = sb_plan_check(p, NULL);
	(void)sb_plan_free(p);
	return r;
}

static void no_layers(struct sb_plan *p)
{
	for (size_t i = 0; i < p->n_layers; i++)
		free(p->layers[i].path);
	p->n_layers = 0;
	p->image = SB_IMAGE_LAYERS;
}

TEST(layers_alone)
{
	char many[4096] = "[";
	size_t at = 1;

	accept("\"image\":\"host\"", "\"image\":\"layers\"");
	accept("[" LAYER_1 "," LAYER_2 "]", "[]");
	CHECK_EQ(check_changed(no_layers), -EINVAL);
	for (int i = 0; i < SB_PLAN_MAX_LAYERS + 1; i++)
		at += (size_t)snprintf(many + at, sizeof(many) - at,
				       "%s{\"ctime_ns\":1,\"dev\":5,\"ino\":7,\"path\":\"/c/%d\","
				       "\"sha256\":\"%.62s%02x\",\"size\":4096}",
				       i ? "," : "", i, ONES, 16U + (unsigned int)i);
	(void)snprintf(many + at, sizeof(many) - at, "]");
	refuse("[" LAYER_1 "," LAYER_2 "]", many);
}

TEST(rules_of_the_upper_layer)
{
	accept(UPPER, "\"upper\":{\"dev\":0,\"ino\":0,\"kind\":\"tmpfs\",\"path\":null},");
	refuse(UPPER, "");
	refuse(UPPER, "\"upper\":null,");
	refuse(UPPER, "\"upper\":{\"dev\":0,\"ino\":0,\"kind\":\"tmpfs\",\"path\":\"/x\"},");
	refuse("\"kind\":\"dir\"", "\"kind\":\"disk\""); /* of a namespace */
	refuse("\"kind\":\"dir\"", "\"kind\":\"none\"");
	refuse("\"kind\":\"dir\"", "\"kind\":\"tmpfs\"");
	refuse("\"ino\":9", "\"ino\":0");
	refuse("\"/s/instances/1/upper\"", "null");
	refuse("\"/s/instances/1/upper\"", "\"s/instances\"");
	refuse("\"/s/instances/1/upper\"", "\"/w/upper\"");
	refuse("\"/s/instances/1/upper\"", "\"/\""); /* holds the shared folder */
}

TEST(rules_of_builder_task_and_instance)
{
	refuse("\"builder\":false", "\"builder\":true"); /* not root */
	refuse("\"builder\":false", "\"builder\":1");
	refuse("\"builder\":false,", "");
	refuse("\"task\":\"command\"", "\"task\":\"export\""); /* folders, network */
	refuse("\"task\":\"command\"", "\"task\":\"none\"");
	refuse("\"task\":\"command\",", "");
	accept("\"instance\":\"a-1\"", "\"instance\":null");
	accept("\"instance\":\"a-1\"", "\"instance\":\"0._-Z\"");
	refuse("\"instance\":\"a-1\"", "\"instance\":\"\"");
	refuse("\"instance\":\"a-1\"", "\"instance\":\"-a\"");
	refuse("\"instance\":\"a-1\"", "\"instance\":\".a\"");
	refuse("\"instance\":\"a-1\"", "\"instance\":\"a/b\"");
	refuse("\"instance\":\"a-1\"", "\"instance\":\"" ONES "1\"");
	CHECK(sb_plan_instance_ok(ONES)); /* 64 */
	CHECK(!sb_plan_instance_ok(NULL));
}

static void no_folders(struct sb_plan *p)
{
	for (size_t i = 0; i < p->n_guards; i++)
		free(p->guards[i].path);
	p->n_guards = 0;
	for (size_t i = 0; i < p->n_mounts; i++) {
		free(p->mounts[i].host);
		free(p->mounts[i].guest);
	}
	p->n_mounts = 0;
}

static void no_keys(struct sb_plan *p)
{
	sb_plan_ssh_done(&p->ssh);
	p->ssh = (struct sb_plan_ssh){ 0 };
}

static void builder_with_keys(struct sb_plan *p)
{
	no_folders(p);
	p->builder = true;
	p->uid = p->gid = 0;
}

static void builder(struct sb_plan *p)
{
	no_keys(p);
	no_folders(p);
	p->builder = true;
	p->uid = p->gid = 0;
}

static void builder_of_tests(struct sb_plan *p)
{
	builder(p);
	p->test_root = true;
	p->provider = SB_PROVIDER_MICROVM;
	p->accel = SB_ACCEL_TCG;
}

static void builder_with_a_folder(struct sb_plan *p)
{
	no_keys(p);
	p->builder = true;
	p->uid = p->gid = 0;
}

static void export_with_keys(struct sb_plan *p)
{
	no_folders(p);
	sb_plan_net_done(&p->net);
	p->net = (struct sb_plan_net){ .mode = SB_NET_NONE };
	p->task = SB_TASK_EXPORT;
}

static void export(struct sb_plan *p)
{
	no_keys(p);
	no_folders(p);
	sb_plan_net_done(&p->net);
	p->net = (struct sb_plan_net){ .mode = SB_NET_NONE };
	p->task = SB_TASK_EXPORT;
}

static void export_of_memory(struct sb_plan *p)
{
	export(p);
	free(p->upper.path);
	p->upper = (struct sb_plan_upper){ .kind = SB_UPPER_TMPFS };
}

static void export_with_network(struct sb_plan *p)
{
	no_keys(p);
	no_folders(p);
	p->task = SB_TASK_EXPORT;
}

TEST(builders_and_exports)
{
	CHECK_EQ(check_changed(builder), 0);
	CHECK_EQ(check_changed(builder_of_tests), -EINVAL);
	CHECK_EQ(check_changed(builder_with_keys), -EINVAL);
	CHECK_EQ(check_changed(export_with_keys), -EINVAL);
	CHECK_EQ(check_changed(builder_with_a_folder), -EINVAL);
	CHECK_EQ(check_changed(export), 0);
	CHECK_EQ(check_changed(export_of_memory), -EINVAL);
	CHECK_EQ(check_changed(export_with_network), -EINVAL);
}

TEST(rules_of_features)
{
	refuse("\"decision\":\"enforced\"", "\"decision\":\"perhaps\"");
	refuse("\"mechanism\":\"no network card\"", "\"mechanism\":\"\"");
	refuse("\"mechanism\":\"\"", "\"mechanism\":\"x\"");
	refuse("\"name\":\"network\"", "\"name\":\"quota\"");
	refuse("\"name\":\"network\"", "\"name\":\"zebra\"");
	refuse("\"name\":\"network\"", "\"name\":\"Net\"");
	refuse("," FEATURE_2, "," FEATURE_2 "," FEATURE_2);
}

TEST(rules_of_confinement)
{
	refuse("\"profile\":\"strict\"", "\"profile\":\"none\"");
	refuse("\"profile\":\"strict\"", "\"profile\":null");
	refuse("\"log_blocked\":true", "\"log_blocked\":1");
	refuse("[\"keyctl\",\"ptrace\"]", "[\"ptrace\",\"keyctl\"]");
	refuse("[\"keyctl\",\"ptrace\"]", "[\"ptrace\",\"ptrace\"]");
	refuse("[\"keyctl\",\"ptrace\"]", "[\"key ctl\"]");
	refuse("\"as\":1073741824", "\"as\":1");
	refuse("\"as\":1073741824", "\"as\":\"1073741824\"");
	refuse("\"as\":1073741824", "\"as\":null");
	refuse("\"cpu\":60", "\"cpu\":0");
	refuse("\"fsize\":1048576", "\"fsize\":10");
	refuse("\"stack\":8388608", "\"stack\":1024");
	refuse("\"stack\":8388608", "\"stack\":8388608,\"core\":0");
	refuse("\"memlock\":0,", "");
}

TEST(rules_of_guards)
{
	refuse("\"path\":\"/w/.env\"", "\"path\":\"/w\"");
	refuse("\"path\":\"/w/.env\"", "\"path\":\"/etc/passwd\"");
	refuse("\"path\":\"/w/.env\"", "\"path\":\"w/.env\"");
	refuse("\"path\":\"/w/.env\"", "\"path\":\"/w/../w/.env\"");
	refuse("\"path\":\"/w/.env\"", "\"path\":\"/w/.git\""); /* hidden, holds the next */
	refuse("\"path\":\"/w/.env\"", "\"path\":\"/w/zebra\"");
	refuse(GUARD_1 "," GUARD_2, GUARD_1 "," GUARD_1);
	refuse("\"mode\":\"hidden\"", "\"mode\":\"ro\"");
	refuse("\"mode\":\"rw\"", "\"mode\":\"ro\""); /* nothing to guard */
	refuse("\"file\":false", "\"file\":true");
}

TEST(additions_keep_the_order)
{
	struct sb_plan *p = parsed();
	const uint8_t sha[32] = { 9 };
	char name[16];

	REQUIRE(p);
	CHECK_EQ(sb_plan_add_part(p, "executable:channel", "/x", sha), 0);
	CHECK_EQ(sb_plan_add_part(p, "aaa", "/a", sha), 0);
	CHECK_EQ(sb_plan_add_part(p, "zzz", "/z", sha), 0);
	CHECK_EQ(sb_plan_add_part(p, "aaa", "/b", sha), -EEXIST);
	REQUIRE(p->n_parts == 5);
	CHECK_STR(p->parts[0].role, "aaa");
	CHECK_STR(p->parts[2].role, "executable:channel");
	CHECK_STR(p->parts[4].role, "zzz");
	CHECK_EQ(sb_plan_add_feature(p, "channel", SB_DECISION_ENFORCED, "noise"), 0);
	CHECK_EQ(sb_plan_add_feature(p, "channel", SB_DECISION_NOT_ASKED, ""), -EEXIST);
	CHECK_STR(p->features[0].name, "channel");
	CHECK_EQ(sb_plan_check(p, NULL), 0);
	for (size_t i = p->n_parts; i < SB_PLAN_MAX_PARTS; i++) {
		(void)snprintf(name, sizeof(name), "p%zu", i);
		CHECK_EQ(sb_plan_add_part(p, name, "/p", sha), 0);
	}
	CHECK_EQ(sb_plan_add_part(p, "more", "/p", sha), -E2BIG);
	CHECK_EQ(sb_plan_check(p, NULL), 0);
	(void)sb_plan_free(p);
}

/* A plan from the time before there was a network part is refused, not read as "none". */
TEST(net_part_is_missing)
{
	const char *from = strstr(literal, "\"net\":");
	const char *to = strstr(literal, "\"nofile\"");
	struct sb_plan *p = NULL;
	char buf[8192];
	int n;

	REQUIRE(from && to);
	n = snprintf(buf, sizeof(buf), "%.*s%s", (int)(from - literal), literal, to);
	CHECK_EQ(sb_plan_parse(buf, (size_t)n, &p, NULL), -EBADMSG);
	n = snprintf(buf, sizeof(buf), "%.*s\"net\":null,%s", (int)(from - literal), literal, to);
	CHECK_EQ(sb_plan_parse(buf, (size_t)n, &p, NULL), -EBADMSG);
	n = snprintf(buf, sizeof(buf), "%.*s\"net\":[],%s", (int)(from - literal), literal, to);
	CHECK_EQ(sb_plan_parse(buf, (size_t)n, &p, NULL), -EBADMSG);
}

static double seconds(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Twice the rules take about twice the time; the bound is far from both. */
TEST(as_many_rules_as_there_may_be)
{
	struct sb_plan *p = parsed();
	struct sb_plan *again = NULL;
	double from = seconds();
	struct sb_err e = { 0 };
	char host[64];
	char *out = NULL;
	size_t len = 0;

	REQUIRE(p);
	p->net.rules = realloc(p->net.rules, SB_NET_MAX_RULES * sizeof(*p->net.rules));
	REQUIRE(p->net.rules);
	for (; p->net.n_rules < SB_NET_MAX_RULES; p->net.n_rules++) {
		struct sb_net_rule *r = &p->net.rules[p->net.n_rules];

		(void)snprintf(host, sizeof(host), "package%zu.registry.example", p->net.n_rules);
		*r = (struct sb_net_rule){ false, strdup(host), 443, 443, SB_PROTO_HTTPS,
					   strdup("--allow-hosts") };
	}
	CHECK_EQ(sb_plan_write(p, &out, &len, &e), 0);
	CHECK(len < SB_PLAN_MAX_BYTES);
	CHECK_EQ(out ? sb_plan_parse(out, len, &again, &e) : -1, 0);
	CHECK(again && again->net.n_rules == SB_NET_MAX_RULES);
	CHECK(seconds() - from < 5);
	free(out);
	(void)sb_plan_free(again);
	(void)sb_plan_free(p);
}

TEST(time_of_a_plan)
{
	struct sb_plan *p = parsed(); /* made 1000, good until 2000 */

	REQUIRE(p);
	CHECK_EQ(sb_plan_check_time(p, 1000, NULL), 0);
	CHECK_EQ(sb_plan_check_time(p, 2000, NULL), 0);
	CHECK_EQ(sb_plan_check_time(p, 2001, NULL), -EKEYEXPIRED);
	CHECK_EQ(sb_plan_check_time(p, UINT64_MAX, NULL), -EKEYEXPIRED);
	CHECK_EQ(sb_plan_check_time(p, 700, NULL), 0);
	CHECK_EQ(sb_plan_check_time(p, 699, NULL), -EKEYREJECTED);
	CHECK_EQ(sb_plan_check_time(p, 0, NULL), -EKEYREJECTED);
	(void)sb_plan_free(p);
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
