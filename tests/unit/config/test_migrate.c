/* Files of the earlier system become files that load. */
#include <stdlib.h>

#include "cfgt.h"

static const char old[] =
	"# made by the earlier system\n"
	"name: demo\n"
	"project_path: /p\n"
	"runtime:\n"
	"  provider: kata\n"
	"  kata:\n"
	"    executable: nerdctl # the default\n"
	"resources: {cpus: 4, memory_mb: 4096, disk_size_mb: 10240}\n"
	"policy:\n"
	"  commands:\n"
	"    default_action: deny\n"
	"    allowlist:\n"
	"    - git status\n"
	"    denylist: []\n"
	"    log_blocked: true\n"
	"  network:\n"
	"    default_action: deny\n"
	"    allowed_domains:\n"
	"      - example.com\n"
	"    blocked_domains: []\n"
	"    allow_dns: true\n"
	"    allowed_ports:\n"
	"      - protocol: tcp\n"
	"        port: 443\n"
	"      - protocol: udp\n"
	"        port: 53\n"
	"    dns: {max_ttl_secs: 60}\n"
	"secrets:\n"
	"- TOKEN\n"
	"\n"
	"# who may push\n"
	"github:\n"
	"  forward_auth: true\n"
	"  forward_copilot_auth: true\n"
	"  branch_protection:\n"
	"    enabled: true\n";

static const char now[] =
	"# made by the earlier system\n"
	"name: demo\n"
	"project_path: /p\n"
	"runtime:\n"
	"  # not available yet: runtime.provider\n"
	"  # provider: kata\n"
	"  kata:\n"
	"    executable: nerdctl # the default\n"
	"resources: {cpus: 4, memory_mb: 4096, disk_size_mb: 10240}\n"
	"policy:\n"
	"  commands:\n"
	"    default_action: deny\n"
	"    allowlist:\n"
	"    - git status\n"
	"    denylist: []\n"
	"    log_blocked: true\n"
	"  network:\n"
	"    default_action: deny\n"
	"    allowed_domains:\n"
	"      - example.com\n"
	"    blocked_domains: []\n"
	"    allow_dns: true\n"
	"    allowed_ports:\n"
	"      - protocol: tcp\n"
	"        port: 443\n"
	"      # not available yet: policy.network.allowed_ports[1].protocol\n"
	"      # - protocol: udp\n"
	"      #   port: 53\n"
	"    # not available yet: policy.network.dns.max_ttl_secs\n"
	"    # dns: {max_ttl_secs: 60}\n"
	"# not available yet: secrets\n"
	"# secrets:\n"
	"# - TOKEN\n"
	"\n"
	"# who may push\n"
	"# github:\n"
	"#   # not available yet: github.forward_auth\n"
	"#   # forward_auth: true\n"
	"#   # not available yet: github.forward_copilot_auth\n"
	"#   # forward_copilot_auth: true\n"
	"#   branch_protection:\n"
	"    # not available yet: github.branch_protection.enabled\n"
	"    # enabled: true\n";

TEST(what_is_missing_becomes_a_comment)
{
	struct problems p = { 0 };
	char *text = NULL;
	size_t len = 0;
	size_t changes = 0;
	struct cfg *c;

	CHECK_EQ(cfg_migrate(old, strlen(old), "f", &text, &len, &changes, &p), 0);
	CHECK_STR(told(&p), "");
	REQUIRE(text);
	CHECK_EQ(len, strlen(text));
	CHECK_STR(text, now);
	c = one(text, &p);
	REQUIRE(c);
	CHECK_STR(cfg_str(c, "policy.commands.allowlist[0].run", NULL), "git status");
	CHECK(cfg_get(c, "github") == NULL);
	c = cfg_free(c);
	free(text);
}

TEST(other_problems_are_told)
{
	struct problems p = { 0 };
	char *text = NULL;
	size_t len = 0;
	size_t changes = 0;

	CHECK_EQ(cfg_migrate("secrets: [A]\nnmae: x\n", 21, "f", &text, &len, &changes, &p), -EBADMSG);
	CHECK_STR(told(&p), "3:1 unknown_key nmae");
	CHECK(!text);
	problems_done(&p);
}

TEST(a_good_file_stays)
{
	static const char good[] = "name: x # y\r\n\r\npolicy:\r\n  profile: strict\r\n";
	struct problems p = { 0 };
	char *text = NULL;
	size_t len = 0;
	size_t changes = 9;

	CHECK_EQ(cfg_migrate(good, strlen(good), "f", &text, &len, &changes, &p), 0);
	CHECK_STR(text, good);
	CHECK_EQ(changes, 0);
	free(text);
}
