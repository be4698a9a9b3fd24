/* Parts of a build: what decides its key, the process that pours, what people see. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "cli/plan_net.h"
#include "environment/build.h"
#include "t.h"

/* Of the command line: this machine has npm alone. */
bool plan_net_group_here(const char *word, const char *project)
{
	(void)project;
	return strcmp(word, "npm") == 0;
}

int plan_net_mirror(const char *word, char **ret)
{
	*ret = strcmp(word, "npm") == 0 ? strdup("https://mirror.example/") : NULL;
	return 0;
}

/* ---- the key ---- */

static const char *const one[] = { "a", "b", NULL };
static const char *const other[] = { "a", "c", NULL };
static const char *const joined[] = { "ab", NULL };
static const char *const longer[] = { "a", "b", "", NULL };
static const char *const none[] = { NULL };

static struct image erofs = { .form = IMAGE_FORM_EROFS };

static struct environment_what what(void)
{
	return (struct environment_what){ .agent = "x", .base = &erofs, .commands = one, .health = one,
					  .env = one, .groups = one };
}

TEST(what_is_part_of_the_key)
{
	struct image moved = { .form = IMAGE_FORM_EROFS };
	struct image host = { .form = IMAGE_FORM_HOST };
	const char *const *const lists[] = { other, joined, longer, none, NULL };
	struct environment_what w[24];
	uint8_t keys[24][32];
	size_t n = 0;

	moved.layer.sha256[31] = 1;
	w[n++] = what();
	for (size_t i = 0; i < SB_ARRAY_LEN(lists); i++) {
		w[n] = what();
		w[n++].commands = lists[i] ? lists[i] : other + 1;
		w[n] = what();
		w[n++].health = lists[i] ? lists[i] : other + 1;
		w[n] = what();
		w[n++].env = lists[i] ? lists[i] : other + 1;
		w[n] = what();
		w[n++].groups = lists[i] ? lists[i] : other + 1;
	}
	w[n] = what();
	w[n++].base = &moved;
	w[n] = what();
	w[n++].base = &host;
	for (size_t i = 0; i < n; i++) {
		CHECK_EQ(environment_key(&w[i], keys[i], NULL), 0);
		for (size_t j = 0; j < i; j++)
			if (memcmp(keys[i], keys[j], 32) == 0)
				t_fail(__FILE__, __LINE__, "%zu has the key of %zu", i, j);
	}
}

TEST(what_is_not)
{
	struct environment_what w = what();
	uint8_t a[32];
	uint8_t b[32];

	CHECK_EQ(environment_key(&w, a, NULL), 0);
	w.agent = "y";
	w.runtime = "microvm";
	w.accel = "tcg";
	w.cpus = 4;
	w.memory_bytes = 1ULL << 30;
	w.reinstall = true;
	w.verbose = true;
	CHECK_EQ(environment_key(&w, b, NULL), 0);
	CHECK_MEM(a, b, 32);
}

TEST(bases_that_have_no_key)
{
	struct image no = { 0 };
	char path[] = "/nowhere/at/all";
	struct environment_what w = what();
	struct sb_err err = { 0 };
	uint8_t key[32];

	w.base = &no;
	CHECK_EQ(environment_key(&w, key, &err), -EINVAL);
	no = (struct image){ .form = IMAGE_FORM_DIR, .path = path };
	err = (struct sb_err){ 0 };
	CHECK_EQ(environment_key(&w, key, &err), -ENOENT);
	CHECK(strstr(err.text, path) != NULL);
}

TEST(a_definition_without_end)
{
	static char text[5U << 20];
	const char *const commands[] = { text, NULL };
	struct environment_what w = what();
	struct sb_err err = { 0 };
	uint8_t key[32];

	memset(text, 'x', sizeof(text) - 1);
	w.commands = commands;
	CHECK(environment_key(&w, key, &err) < 0);
	CHECK(strstr(err.text, "too long") != NULL);
}

/* ---- words ---- */

TEST(groups)
{
	static const char *const most[] = { "npm", "*.example.org:443", NULL };
	struct environment_what w = { .groups = most };
	char *text = NULL;

	CHECK_EQ(env_hosts(&w, &text), 0);
	CHECK_STR(text, "npm,*.example.org:443");
	free(text);
	text = NULL;
	w.groups = NULL; /* all that are here */
	CHECK_EQ(env_hosts(&w, &text), 0);
	CHECK_STR(text, "npm");
	free(text);
}

/* A mirror is told to the builder when its group is in reach. */
TEST(variables)
{
	static const char *const pypi[] = { "pypi", NULL };
	static const char *const given[] = { "A=1", NULL };
	struct environment_what w = { .env = given };
	char **list = NULL;

	CHECK_EQ(env_variables(&w, &list), 0);
	REQUIRE(list && list[0] && list[1]);
	CHECK_STR(list[0], "A=1");
	CHECK_STR(list[1], "NPM_CONFIG_REGISTRY=https://mirror.example/");
	CHECK(!list[2]);
	sb_free_list(&list);
	CHECK(!list);
	w.groups = pypi;
	CHECK_EQ(env_variables(&w, &list), 0);
	REQUIRE(list && list[0]);
	CHECK(!list[1]);
	sb_free_list(&list);
}

TEST(one_line)
{
	char out[12];

	env_one_line("short", out, sizeof(out));
	CHECK_STR(out, "short");
	env_one_line("a\nb\tc\x1b[m\x7f\xc3", out, sizeof(out));
	CHECK_STR(out, "a b c?[m??");
	env_one_line("twelve chars", out, sizeof(out));
	CHECK_STR(out, "twelve c...");
	env_one_line("abc", out, 4);
	CHECK_STR(out, "abc");
	env_one_line("abcd", out, 4);
	CHECK_STR(out, "abc");
	env_one_line("abcd", out, 1);
	CHECK_STR(out, "");
}

/* ---- pouring ---- */

/* @len bytes into a pour of at most @max. Return: bytes in the file; @whole: as env_pour_end says. */
static off_t pour(size_t len, uint64_t max, bool drain, bool *whole)
{
	static const char bytes[200000];
	int to = memfd_create("to", MFD_CLOEXEC);
	struct env_pour p;
	off_t n;

	(void)signal(SIGPIPE, SIG_IGN);
	CHECK_EQ(env_pour_start(&p, to, max, drain, NULL), 0);
	CHECK_EQ(sb_fd_set_nonblock(p.in, false), 0);
	for (size_t at = 0; at < len;) {
		ssize_t k = write(p.in, bytes, SB_MIN(len - at, sizeof(bytes)));

		if (k < 0) {
			CHECK(errno == EPIPE && !drain);
			break;
		}
		at += (size_t)k;
	}
	*whole = env_pour_end(&p);
	CHECK(p.in < 0 && p.pid == 0);
	n = lseek(to, 0, SEEK_END);
	(void)close(to);
	return n;
}

TEST(pours)
{
	bool whole = false;

	CHECK_EQ(pour(0, 100, false, &whole), 0);
	CHECK(whole);
	CHECK_EQ(pour(100, 100, false, &whole), 100);
	CHECK(whole);
	CHECK_EQ(pour(1000000, 1000000, true, &whole), 1000000);
	CHECK(whole);
	/* one byte more: what is in the file stays within the bound, and it is told */
	CHECK(pour(1000001, 1000000, true, &whole) <= 1000000);
	CHECK(!whole);
	CHECK(pour(5000000, 1000000, false, &whole) <= 1000000);
	CHECK(!whole);
}

TEST(pours_where_nothing_can_be_written)
{
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct env_pour p;
	int fds = t_open_fds();

	CHECK_EQ(env_pour_start(&p, full, 1000, true, NULL), 0);
	CHECK_EQ(write(p.in, "x", 1), 1);
	CHECK(!env_pour_end(&p));
	CHECK_EQ(t_open_fds(), fds);
	(void)close(full);
}

/* ---- what people see ---- */

static char shown[8192];

/* Standard error of @fn, in `shown`. */
static void catch(void (*fn)(int log), const char *text)
{
	int err = dup(STDERR_FILENO);
	int to = memfd_create("err", MFD_CLOEXEC);
	int log = memfd_create("log", MFD_CLOEXEC);
	ssize_t n;

	CHECK_EQ(write(log, text, strlen(text)), (ssize_t)strlen(text));
	(void)fflush(stderr);
	CHECK(dup2(to, STDERR_FILENO) == STDERR_FILENO);
	fn(log);
	(void)fflush(stderr);
	CHECK(dup2(err, STDERR_FILENO) == STDERR_FILENO);
	n = pread(to, shown, sizeof(shown) - 1, 0);
	shown[n > 0 ? n : 0] = '\0';
	(void)close(err);
	(void)close(to);
	(void)close(log);
}

static void tail(int log)
{
	env_show_tail(log, 4);
}

TEST(last_lines)
{
	char many[400];
	struct sb_text t = { .p = many, .cap = sizeof(many) };

	catch(tail, "old\nfirst\n\x1b[2Jsecond");
	CHECK_STR(shown, "    first\n    ?[2Jsecond\n");
	catch(tail, "old\n");
	CHECK_STR(shown, "");
	sb_text_add(&t, "old\n");
	for (size_t i = 0; i < 30; i++)
		sb_text_add(&t, "%zu\n", i);
	catch(tail, many);
	CHECK(strncmp(shown, "    10\n", 7) == 0 && strstr(shown, "    29\n") != NULL);
}

static void watch_plain(int log)
{
	struct env_watch w;

	env_watch_start(&w, "[1/2] npm\ninstall", log, false, false);
	CHECK(w.pid == 0);
	env_watch_end(&w);
}
static void watch_verbose(int log)
{
	struct env_watch w;

	env_watch_start(&w, "[1/2] go", log, true, false);
	CHECK(w.pid > 0);
	CHECK_EQ(write(log, "new\n", 4), 4);
	env_watch_end(&w);
	CHECK(waitpid(-1, NULL, WNOHANG) < 0);
}
static void watch_quiet(int log)
{
	struct env_watch w;

	env_watch_start(&w, "[1/2] go", log, true, true);
	env_watch_end(&w);
}

TEST(watching)
{
	catch(watch_plain, "before\n");
	CHECK_STR(shown, "[1/2] npm install\n");
	catch(watch_verbose, "before\n"); /* what comes from now on */
	CHECK_STR(shown, "[1/2] go\nnew\n");
	catch(watch_quiet, "before\n");
	CHECK_STR(shown, "");
}

/* ---- each call that can fail ---- */

TEST(faults)
{
	struct image host = { .form = IMAGE_FORM_HOST };
	struct environment_what w = what();
	uint8_t whole[32];

	w.base = &host;
	CHECK_EQ(environment_key(&w, whole, NULL), 0);
	T_EVERY_FAULT(n)
	{
		struct sb_err err = { 0 };
		uint8_t key[32] = { 0 };
		int fds = t_open_fds();
		bool fired;
		int r;

		t_fault_arm(n);
		r = environment_key(&w, key, &err);
		fired = t_fault_fired();
		t_fault_disarm();
		CHECK_EQ(t_open_fds(), fds);
		CHECK(r == 0 ? memcmp(key, whole, 32) == 0 : err.code == r && err.text[0]);
		if (!fired && r == 0)
			break;
	}
	T_EVERY_FAULT(n)
	{
		char **list = NULL;
		bool fired;
		int r;

		t_fault_arm(n);
		r = env_variables(&w, &list);
		fired = t_fault_fired();
		t_fault_disarm();
		CHECK((r == 0) == (list != NULL) && (r == 0 || r == -ENOMEM));
		sb_free_list(&list);
		if (!fired && r == 0)
			break;
	}
}

TEST(faults_of_processes)
{
	int log = memfd_create("log", MFD_CLOEXEC);

	T_EVERY_FAULT(n)
	{
		struct sb_err err = { 0 };
		struct env_watch watch;
		struct env_pour p;
		int fds = t_open_fds();
		bool fired;
		int r;

		t_fault_arm(n);
		r = env_pour_start(&p, log, 100, true, &err);
		env_watch_start(&watch, "a title", log, true, false); /* nothing shown is no failure */
		fired = t_fault_fired();
		t_fault_disarm();
		if (r < 0)
			CHECK(p.in < 0 && p.pid == 0 && err.code == r && err.text[0]);
		env_watch_end(&watch);
		(void)env_pour_end(&p);
		CHECK_EQ(t_open_fds(), fds);
		CHECK(waitpid(-1, NULL, WNOHANG) < 0);
		if (!fired && r == 0)
			break;
	}
	(void)close(log);
}
