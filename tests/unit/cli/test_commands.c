/* What people and programs are told of judged executions. */
#include <stdlib.h>

#include "t.h"

#include "commands.h"

static char lines[64][1600];
static size_t n_lines;

static void keep(void *arg, const char *text)
{
	(void)arg;
	if (n_lines < 64)
		(void)snprintf(lines[n_lines++], sizeof(lines[0]), "%s", text);
}

static struct sb_cmd_rule rules[] = {
	{ .pattern = (char *)(uintptr_t)"git push **", .action = SB_CMD_DENY,
	  .scope = SB_CMD_SCOPE_TREE, .from = (char *)(uintptr_t)"/p/.sandbox:3" },
};

static struct sb_plan plan(void)
{
	struct sb_plan p = { .cwd = (char *)(uintptr_t)"/p" };

	p.commands.scope = SB_CMD_SCOPE_TREE;
	p.commands.rules = rules;
	p.commands.n_rules = 1;
	return p;
}

static struct sb_ipc_exec_event event(const char *word)
{
	struct sb_ipc_exec_event ev = { .count = 1, .rule = 0, .why = "rule", .path = "/usr/bin/git" };
	int n = snprintf(ev.argv, sizeof(ev.argv), "git%cpush%c%s", 0, 0, word);

	ev.argv_len = (uint16_t)(n + 1);
	ev.n_argv = 3;
	return ev;
}

TEST(told_at_once_and_counted)
{
	struct sb_plan p = plan();
	struct sb_ipc_exec_event ev = event("a\033[31m");
	struct commands *c;

	n_lines = 0;
	REQUIRE(commands_new(&p, true, &c) == 0);
	commands_add(c, &ev, keep, NULL);
	CHECK_EQ(n_lines, 1);
	CHECK(strstr(lines[0], "refused to run \"git push"));
	CHECK(strstr(lines[0], "git push **") && strstr(lines[0], "/p/.sandbox:3"));
	CHECK(!strchr(lines[0], '\033'));
	CHECK(strncmp(lines[0], "sendbox:", 8) != 0); /* the caller puts it in front */
	ev.count = 4;
	commands_add(c, &ev, keep, NULL);
	CHECK_EQ(n_lines, 1);
	commands_tell(c, keep, NULL);
	CHECK_EQ(n_lines, 2);
	CHECK_STR(lines[1], "commands: refused again, 4 times; --json shows each");
	CHECK(commands_free(c) == NULL);
}

TEST(the_next_folder_of_path_is_no_further_refusal)
{
	struct sb_plan p = plan();
	struct sb_ipc_exec_event ev = event("a");
	struct commands *c;

	n_lines = 0;
	ev.pid = 5;
	REQUIRE(commands_new(&p, true, &c) == 0);
	commands_add(c, &ev, keep, NULL); /* /usr/bin/git */
	commands_add(c, &ev, keep, NULL); /* /bin/git, which is the same file */
	commands_tell(c, keep, NULL);
	CHECK_EQ(n_lines, 1);
	ev.pid = 6; /* another process */
	commands_add(c, &ev, keep, NULL);
	commands_add(c, &ev, keep, NULL);
	commands_tell(c, keep, NULL);
	CHECK_EQ(n_lines, 2);
	CHECK_STR(lines[1], "commands: refused again, 1 time; --json shows each");
	CHECK(commands_free(c) == NULL);
}

TEST(at_the_end_on_a_terminal_and_never_more_than_twenty)
{
	struct sb_plan p = plan();
	struct sb_ipc_exec_event lost = { .count = 7, .rule = UINT32_MAX, .why = "lost" };
	struct commands *c;

	n_lines = 0;
	REQUIRE(commands_new(&p, false, &c) == 0);
	for (int i = 0; i < 3000; i++) {
		char word[16];
		struct sb_ipc_exec_event ev;

		(void)snprintf(word, sizeof(word), "w%d", i);
		ev = event(word);
		commands_add(c, &ev, keep, NULL);
	}
	commands_add(c, &lost, keep, NULL);
	CHECK_EQ(n_lines, 0);
	commands_tell(c, keep, NULL);
	CHECK_EQ(n_lines, COMMANDS_LINES);
	CHECK_STR(lines[COMMANDS_LINES - 1], "commands: and 2988 more; --json shows all");
	CHECK(commands_free(c) == NULL);
}

TEST(json_and_a_guest_that_lies)
{
	struct sb_plan p = plan();
	struct sb_ipc_exec_event ev = event("\xff");
	json_t *o = commands_json(&p, &ev);

	REQUIRE(o);
	CHECK_STR(json_string_value(json_object_get(o, "event")), "command");
	CHECK_STR(json_string_value(json_object_get(o, "action")), "deny");
	CHECK_STR(json_string_value(json_object_get(o, "rule")), "git push **");
	CHECK_STR(json_string_value(json_object_get(o, "from")), "/p/.sandbox:3");
	CHECK_STR(json_string_value(json_array_get(json_object_get(o, "argv"), 2)), "\\xff");
	json_decref(o);
	ev.rule = 12; /* no such rule, no such reason, no such action */
	ev.action = 99;
	(void)snprintf(ev.why, sizeof(ev.why), "anything");
	o = commands_json(&p, &ev);
	REQUIRE(o);
	CHECK(json_is_null(json_object_get(o, "rule")));
	CHECK_STR(json_string_value(json_object_get(o, "why")), "other");
	CHECK_STR(json_string_value(json_object_get(o, "action")), "deny");
	json_decref(o);
}
