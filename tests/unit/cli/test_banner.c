/* The banner at every width, and what it must name. */
#include <stdlib.h>

#include "banner.h"
#include "t.h"

static char word[] = "claude";
static char option[] = "--dangerously-skip-permissions";
static char *argv[] = { word, option, NULL };
static char host1[] = "*.anthropic.com";
static char host2[] = "a.registry.example";
static char host3[] = "b.registry.example";
static char from1[] = "built-in agent claude.json:30";
static char from2[] = "built-in agent claude.json:31: group npm (~/.npmrc)";
static struct sb_net_rule rules[] = {
	{ .host = host1, .port_lo = 443, .port_hi = 443, .from = from1 },
	{ .host = host1, .port_lo = 80, .port_hi = 80, .from = from1 },
	{ .host = host2, .port_lo = 443, .port_hi = 443, .from = from2 },
	{ .host = host3, .port_lo = 443, .port_hi = 443, .from = from2 },
};
static char work[] = "/home/u/a project";
static char data[] = "/data";
static struct sb_plan_mount mounts[] = {
	{ .host = work, .guest = work, .mode = SB_MOUNT_RW },
	{ .host = data, .guest = data, .mode = SB_MOUNT_RO },
};
static char key[] = "ANTHROPIC_API_KEY";
static struct sb_plan_env env[] = { { .name = key } };
static const struct banner_mount copies[] = {
	{ "~/.claude", "/home/user/.claude", "a copy", false, false },
};

static char *write_banner(struct sb_plan *p, unsigned int width, bool colour)
{
	struct agent a = { .name = "claude", .display = { .text = "Claude\033[2J Code" } };
	const struct banner b = { .agent = &a, .instance = "claude-20260101-000000",
				  .environment = "the host's programs", .plan = p,
				  .mounts = copies, .n_mounts = 1, .width = width,
				  .colour = colour };
	struct sb_buf out;
	char *text;

	p->argv = argv;
	p->cwd = work;
	p->net = (struct sb_plan_net){ .mode = SB_NET_FILTER, .rules = rules,
				       .n_rules = SB_ARRAY_LEN(rules) };
	p->mounts = mounts;
	p->n_mounts = SB_ARRAY_LEN(mounts);
	p->env = env;
	p->n_env = 1;
	p->cpus = 4;
	p->memory_bytes = 4ULL << 30;
	sb_buf_init(&out, 1U << 20);
	banner_write(&b, &out);
	sb_buf_add_u8(&out, '\0');
	text = strdup((const char *)out.data);
	sb_buf_done(&out);
	return text;
}

TEST(widths)
{
	struct sb_plan p = { .provider = SB_PROVIDER_NAMESPACE };

	for (unsigned int width = 0; width < 200; width++) {
		char *text = write_banner(&p, width, false);
		size_t most = 0;

		for (char *line = text; *line;) {
			size_t n = strcspn(line, "\n");

			most = SB_MAX(most, n);
			line += n + 1;
		}
		CHECK(most <= SB_MAX(width, 20U));
		CHECK(!strchr(text, 033));
		free(text);
	}
}

TEST(words)
{
	struct sb_plan p = { .provider = SB_PROVIDER_NAMESPACE };
	char *text = write_banner(&p, 400, false);
	static const char *const want[] = {
		"Agent       Claude\\x1b[2J Code (claude)\n",
		"Instance    claude-20260101-000000\n",
		"Workspace   /home/u/a project\n",
		"Resources   4 CPUs, memory 4 GiB\n",
		"Runtime     namespaces: shares the host's kernel, weaker than a virtual machine\n",
		"Network     *.anthropic.com, npm\n",
		"Mounts      /data -> /data (ro)\n",
		"~/.claude -> /home/user/.claude (a copy)\n",
		"Keys        ANTHROPIC_API_KEY: plain variable inside",
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(want); i++) {
		CHECK(strstr(text, want[i]));
		if (!strstr(text, want[i]))
			printf("# %s in:\n# %s\n", want[i], text);
	}
	free(text);
	text = write_banner(&p, 400, true);
	CHECK(strstr(text, "\033[33mAgent"));
	free(text);
}

TEST(networks)
{
	struct sb_plan p = { .provider = SB_PROVIDER_MICROVM, .accel = SB_ACCEL_KVM };
	char *text = write_banner(&p, 100, false);

	CHECK(strstr(text, "Runtime     micro-VM: a kernel of its own\n"));
	free(text);
}
