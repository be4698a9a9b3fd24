/* Signed plans as files, what differs between two, and lists of keys. Literals by hand. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/key_list.h"
#include "core/plan_file.h"
#include "t.h"

#define HEX32(d) d d d d d d d d d d d d d d d d d d d d d d d d d d d d d d d d
#define FILE_TEXT                                                                                  \
	"{\"format\":\"sendbox-signed-plan\",\"key\":\"" HEX32("01") "\",\"plan\":\"{\\\"a\\\":1}\","  \
	"\"signature\":\"" HEX32("02") HEX32("02") "\",\"version\":1}\n"

TEST(file_round_trip)
{
	struct sb_plan_file f = { .plan = NULL };
	char *out = NULL;
	size_t len = 0;

	REQUIRE(sb_plan_file_parse(FILE_TEXT, sizeof(FILE_TEXT) - 1, &f, NULL) == 0);
	CHECK_EQ(f.key[31], 1);
	CHECK_EQ(f.signature[63], 2);
	CHECK_EQ(f.plan_len, 7);
	CHECK_STR(f.plan, "{\"a\":1}");
	CHECK_EQ(sb_plan_file_write(&f, &out, &len), 0);
	CHECK_EQ(len, sizeof(FILE_TEXT) - 1);
	CHECK_STR(out, FILE_TEXT);
	free(out);
	sb_plan_file_done(&f);
}

static void refuse_file(const char *from, const char *to)
{
	static const char text[] = FILE_TEXT;
	struct sb_plan_file f = { .plan = NULL };
	const char *at = strstr(text, from);
	char buf[1024];
	int n;

	REQUIRE(at);
	n = snprintf(buf, sizeof(buf), "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
	if (sb_plan_file_parse(buf, (size_t)n, &f, NULL) != -EBADMSG || f.plan)
		t_fail(__FILE__, __LINE__, "accepted %s -> %s", from, to);
	sb_plan_file_done(&f);
}

TEST(file_is_strict)
{
	struct sb_plan_file f = { .plan = NULL };
	char *out = NULL;
	size_t len;

	refuse_file("}\n", "}");
	refuse_file("}\n", "}\n\n");
	refuse_file("}\n", "}\n{}");
	refuse_file("}\n", "} ");
	refuse_file("\"version\":1", "\"version\":2");
	refuse_file("\"version\":1", "\"version\":1,\"zzz\":1");
	refuse_file("\"version\":1", "\"version\":1,\"version\":1");
	refuse_file("\"format\":\"sendbox-signed-plan\"", "\"format\":\"sendbox-plan\"");
	refuse_file("\"key\":\"01", "\"key\":\"0G");
	refuse_file("\"key\":\"01", "\"key\":\"");
	refuse_file("\"signature\":\"02", "\"signature\":\"0A");
	refuse_file("\"{\\\"a\\\":1}\"", "\"\"");
	refuse_file("\"{\\\"a\\\":1}\"", "{\"a\":1}");
	refuse_file("\"{\\\"a\\\":1}\"", "\"\\u007b\\\"a\\\":1}\"");
	refuse_file("{\"format\"", "{ \"format\"");
	CHECK_EQ(sb_plan_file_parse("", 0, &f, NULL), -EBADMSG);
	CHECK_EQ(sb_plan_file_parse("[]\n", 3, &f, NULL), -EBADMSG);
	CHECK_EQ(sb_plan_file_write(&f, &out, &len), -EINVAL); /* no plan */
	f.plan = strdup("\xff");
	f.plan_len = 1;
	CHECK_EQ(sb_plan_file_write(&f, &out, &len), -EINVAL);
	sb_plan_file_done(&f);
}

static void note(void *arg, const char *path, const char *a, const char *b)
{
	char *out = arg;
	size_t n = strlen(out);

	(void)snprintf(out + n, 1000 - n, "%s %s %s\n", path, a ? a : "-", b ? b : "-");
}

static const char *differences(const char *a, const char *b, const char *const *skip)
{
	static char out[1000];
	int r;

	out[0] = '\0';
	r = sb_plan_diff(a, strlen(a), b, strlen(b), skip, note, out);
	if (r < 0)
		(void)snprintf(out, sizeof(out), "error %d", -r);
	return out;
}

/* The order of layers means something, and which file holds one does not. */
TEST(layers_differ_by_place)
{
	static const char *const skip[] = { "layers.ino", NULL };
	static const char two[] = "{\"layers\":[{\"ino\":1,\"sha256\":\"a\"},{\"ino\":2,\"sha256\":\"b\"}]}";

	CHECK_STR(differences(two, "{\"layers\":[{\"ino\":3,\"sha256\":\"a\"},"
				   "{\"ino\":4,\"sha256\":\"b\"}]}", skip), "");
	CHECK_STR(differences(two, "{\"layers\":[{\"ino\":1,\"sha256\":\"b\"},"
				   "{\"ino\":2,\"sha256\":\"a\"}]}", skip),
		  "layers[0].sha256 \"a\" \"b\"\nlayers[1].sha256 \"b\" \"a\"\n");
	CHECK_STR(differences(two, "{\"layers\":[{\"ino\":1,\"sha256\":\"a\"}]}", skip),
		  "layers[1] {\"ino\":2,\"sha256\":\"b\"} -\n");
}

TEST(what_differs)
{
	static const char *const skip[] = { "session", "mounts.ino", NULL };

	CHECK_STR(differences("{\"a\":1}", "{\"a\":1}", NULL), "");
	CHECK_STR(differences("{\"b\":1,\"a\":[1]}", "{\"a\":[1,2],\"c\":\"x\"}", NULL),
		  "a - 2\nb 1 -\nc - \"x\"\n");
	CHECK_STR(differences("{\"argv\":[\"a\",\"b\"]}", "{\"argv\":[\"b\",\"a\"]}", NULL),
		  "argv [\"a\",\"b\"] [\"b\",\"a\"]\n");
	CHECK_STR(differences("{\"l\":[1,2]}", "{\"l\":[2,1]}", NULL), "l [1,2] [2,1]\n");
	CHECK_STR(differences("{\"net\":{\"mode\":\"none\",\"rules\":[{\"host\":\"a\"}]}}",
			      "{\"net\":{\"mode\":\"open\",\"rules\":[{\"host\":\"b\"}]}}", NULL),
		  "net.mode \"none\" \"open\"\nnet.rules {\"host\":\"a\"} -\nnet.rules - {\"host\":\"b\"}\n");
	CHECK_STR(differences("{\"mounts\":[{\"guest\":\"/a\",\"ino\":1,\"mode\":\"ro\"},{\"guest\":\"/b\"}]}",
			      "{\"mounts\":[{\"guest\":\"/c\"},{\"guest\":\"/a\",\"ino\":2,\"mode\":\"rw\"}]}",
			      skip),
		  "mounts[/a].mode \"ro\" \"rw\"\nmounts[/b] {\"guest\":\"/b\"} -\n"
		  "mounts[/c] - {\"guest\":\"/c\"}\n");
	CHECK_STR(differences("{\"session\":1}", "{\"session\":2}", skip), "");
	CHECK_STR(differences("{\"session\":1}", "{}", skip), "");
	CHECK_STR(differences("[1]", "{}", NULL), "error 74");
	CHECK_STR(differences("{}", "nonsense", NULL), "error 74");
}

#define KEYS_TEXT                                                                                  \
	"{\"floor\":9,\"format\":\"sendbox-keys\",\"keys\":[{\"from\":100,\"key\":\"" HEX32("0a")      \
	"\",\"name\":\"desk\",\"own\":false,\"revoked\":0,\"until\":200},{\"from\":0,\"key\":\"" HEX32( \
		"0b") "\",\"name\":\"\",\"own\":true,\"revoked\":5,\"until\":0}],\"version\":1}"

TEST(key_list)
{
	struct sb_key_list l = { .n = 0 };
	uint8_t key[32];
	struct sb_key *k;
	char *out = NULL;
	size_t len = 0;

	REQUIRE(sb_key_list_parse(KEYS_TEXT, sizeof(KEYS_TEXT) - 1, &l, NULL) == 0);
	REQUIRE(l.n == 2);
	CHECK_EQ(l.floor, 9);
	CHECK_STR(l.keys[0].name, "desk");
	CHECK(l.keys[1].own);
	CHECK_EQ(sb_key_list_write(&l, &out, &len), 0);
	CHECK_STR(out, KEYS_TEXT);
	free(out);
	memset(key, 0x0a, sizeof(key));
	k = sb_key_list_find(&l, key);
	REQUIRE(k);
	CHECK_EQ(sb_key_check(k, false, 99, NULL), -EKEYREJECTED);
	CHECK_EQ(sb_key_check(k, false, 100, NULL), 0);
	CHECK_EQ(sb_key_check(k, false, 200, NULL), 0);
	CHECK_EQ(sb_key_check(k, false, 201, NULL), -EKEYEXPIRED);
	CHECK_EQ(sb_key_check(k, true, 201, NULL), 0); /* the key of today has no end */
	CHECK_EQ(sb_key_check(&l.keys[1], false, 150, NULL), -EKEYREVOKED);
	CHECK_EQ(sb_key_check(&l.keys[1], true, 150, NULL), -EKEYREVOKED);
	CHECK_EQ(sb_key_check(NULL, false, 150, NULL), -EKEYREJECTED);
	CHECK_EQ(sb_key_check(NULL, true, 150, NULL), 0);
	memset(key, 0x05, sizeof(key));
	CHECK(sb_key_list_add(&l, key) == &l.keys[0]);
	CHECK(sb_key_list_add(&l, key) == &l.keys[0]);
	CHECK_EQ(l.n, 3);
	for (size_t i = l.n; i < SB_KEYS_MAX; i++) {
		key[1] = (uint8_t)i;
		key[2] = (uint8_t)(i >> 8);
		CHECK(sb_key_list_add(&l, key) != NULL);
	}
	key[3] = 1;
	CHECK(!sb_key_list_add(&l, key));
	CHECK_EQ(sb_key_list_write(&l, &out, &len), 0);
	CHECK(len < SB_KEYS_MAX_BYTES);
	free(out);
	sb_key_list_done(&l);
}

static void refuse_keys(const char *from, const char *to)
{
	static const char text[] = KEYS_TEXT;
	struct sb_key_list l = { .n = 0 };
	const char *at = strstr(text, from);
	char buf[1024];
	int n;

	REQUIRE(at);
	n = snprintf(buf, sizeof(buf), "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
	if (sb_key_list_parse(buf, (size_t)n, &l, NULL) != -EBADMSG)
		t_fail(__FILE__, __LINE__, "accepted %s -> %s", from, to);
	sb_key_list_done(&l);
}

TEST(key_list_is_strict)
{
	refuse_keys("\"version\":1", "\"version\":2");
	refuse_keys("\"version\":1}", "\"version\":1}\n");
	refuse_keys("\"floor\":9,", "");
	refuse_keys("\"floor\":9", "\"floor\":-9");
	refuse_keys("\"name\":\"desk\"", "\"name\":\"a\\nb\"");
	refuse_keys("\"own\":false", "\"own\":0");
	refuse_keys("\"key\":\"0a", "\"key\":\"0c"); /* not sorted any more */
	refuse_keys("\"revoked\":0,", "");
}
