#include "conf_text.h"
#include "t.h"

static int url(const char *s, struct conf_url *u)
{
	return conf_url_parse(s, strlen(s), u);
}

TEST(urls)
{
	struct conf_url u;

	CHECK_EQ(url("https://a.test", &u), 0);
	CHECK_STR(u.host, "a.test");
	CHECK_STR(u.scheme, "https");
	CHECK_EQ(u.port, 443);
	CHECK(!u.userinfo);
	CHECK_EQ(url("HTTP://A.test:8080/x?y#z", &u), 0);
	CHECK_STR(u.host, "A.test");
	CHECK_STR(u.scheme, "http");
	CHECK_EQ(u.port, 8080);
	CHECK_EQ(url("http://u:p@w@a.test/", &u), 0);
	CHECK_STR(u.host, "a.test");
	CHECK(u.userinfo);
	CHECK_EQ(url("https://good.test?@evil.test/", &u), 0);
	CHECK_STR(u.host, "good.test");
	CHECK_EQ(url("https://[::1]:81", &u), 0);
	CHECK_STR(u.host, "[::1]");
	CHECK_EQ(u.port, 81);
	CHECK_EQ(url("https://a/@b", &u), 0);
	CHECK_STR(u.host, "a");
}

TEST(no_urls)
{
	static const char *const bad[] = {
		"",		 "a.test",	    "https:a.test",	 "https:/a.test",
		"https://",	 "https:///x",	    "https://a:",	 "https://a:0",
		"https://a:65536", "https://a:+1",  "https://a:1x",	 "https://a b",
		"https://a\\b",	 "https://[::1",    "https://[::1]x",	 "https://u@",
		"https://a\tb",	 "https://a:111111", "://a.test",	 "https://:80",
	};
	struct conf_url u = { .port = 7 };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int r = url(bad[i], &u);

		if (r == 0)
			t_fail(__FILE__, __LINE__, "%s: accepted", bad[i]);
		CHECK_EQ(u.port, 7); /* untouched */
	}
	CHECK_EQ(url("ftp://a.test", &u), -EPROTONOSUPPORT);
	CHECK_EQ(url("git+ssh://a.test", &u), -EPROTONOSUPPORT);
	CHECK_EQ(conf_url_parse("https://a\0b", 11, &u), -EINVAL);
}

static int count(void *arg, const struct conf_found *f)
{
	(void)f;
	++*(int *)arg;
	return 0;
}

TEST(lines)
{
	static char text[2 * CONF_LINE_MAX];
	unsigned int line = 0;
	int n = 0;

	memset(text, 'x', sizeof(text));
	text[CONF_LINE_MAX] = '\n';
	CHECK_EQ(conf_npmrc(text, CONF_LINE_MAX + 1, count, &n, &line), 0);
	CHECK_EQ(conf_npmrc(text, CONF_LINE_MAX + 2, count, &n, &line), 0);
	text[CONF_LINE_MAX] = 'x';
	CHECK_EQ(conf_npmrc(text, CONF_LINE_MAX + 1, count, &n, &line), -E2BIG);
	CHECK_EQ(conf_npmrc("a=b\nc\0d\n", 8, count, &n, &line), -EBADMSG);
	CHECK_EQ(line, 2);
	CHECK_EQ(conf_npmrc("registry=https://a.test", 23, count, &n, &line), 0);
	CHECK_EQ(n, 1);
}
