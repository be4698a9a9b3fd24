#include "groups.h"
#include "t.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* One world a test: a root folder with home, project and system files. */
static char root[64];
static char got[8192];    /* "rule <from>\n" */
static char warned[8192]; /* "text\n" */
static const char *vars[16][2];

static void world(void)
{
	(void)snprintf(root, sizeof(root), "/tmp/sb-groups-XXXXXX");
	if (!mkdtemp(root))
		t_fail(__FILE__, __LINE__, "mkdtemp");
	memset(vars, 0, sizeof(vars));
	vars[0][0] = "PATH";
	vars[0][1] = "/usr/bin:/opt/tool/bin";
	got[0] = warned[0] = '\0';
}

static void end(void)
{
	char cmd[128];

	(void)snprintf(cmd, sizeof(cmd), "rm -rf %s", root);
	CHECK_EQ(system(cmd), 0);
}

static void put(const char *path, const char *text)
{
	char full[512];

	(void)snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *c = full + strlen(root) + 1; *c; c++)
		if (*c == '/') {
			*c = '\0';
			(void)mkdir(full, 0755);
			*c = '/';
		}
	FILE *f = fopen(full, "w");

	if (!f || fputs(text, f) < 0 || fclose(f) != 0)
		t_fail(__FILE__, __LINE__, "cannot write %s", full);
	if (strstr(path, "/bin/"))
		(void)chmod(full, 0755);
}

static const char *var(const char *name)
{
	for (size_t i = 0; i < 16 && vars[i][0]; i++)
		if (strcmp(vars[i][0], name) == 0)
			return vars[i][1];
	return NULL;
}

static void append(char *to, size_t cap, const char *fmt, ...)
	__attribute__((__format__(__printf__, 3, 4)));
static void append(char *to, size_t cap, const char *fmt, ...)
{
	size_t n = strlen(to);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(to + n, cap - n, fmt, ap);
	va_end(ap);
}

static void on_warn(void *arg, const char *text)
{
	(void)arg;
	append(warned, sizeof(warned), "%s\n", text);
}

static int on_rule(void *arg, const char *rule, const char *from, struct sb_err *err)
{
	(void)arg;
	(void)err;
	append(got, sizeof(got), "%s <%s>\n", rule, from);
	return 0;
}

static int resolve(const char *word, bool deny, struct sb_err *err)
{
	static const char *const writable[] = { "/home/u/p", NULL };
	struct groups_env env = { .root = root,
				  .home = "/home/u",
				  .project = "/home/u/p",
				  .writable = writable,
				  .getenv = var,
				  .warn = on_warn };

	got[0] = warned[0] = '\0';
	*err = (struct sb_err){ 0 };
	return groups_resolve(&env, word, strlen(word), deny, on_rule, NULL, err);
}

TEST(words)
{
	CHECK(groups_known("npm", 3));
	CHECK(groups_known("github", 6));
	CHECK(!groups_known("np", 2));
	CHECK(!groups_known("npmx", 4));
	CHECK(!groups_known("", 0));
}

TEST(npm_from_the_users_file)
{
	struct sb_err e;

	world();
	put("/home/u/.npmrc", "# mine\r\nregistry = https://user:secret@npm.corp.test:8443/repo/\r\n"
			      "@team:registry=\"http://[2001:db8::7]:4873\"\n"
			      "//npm.corp.test/:_authToken=x\nother-registry=https://no.test\n");
	CHECK_EQ(resolve("npm", false, &e), 0);
	CHECK_STR(got, "npm.corp.test:8443/https <group npm (~/.npmrc)>\n"
		       "[2001:db8::7]:4873/http <group npm (~/.npmrc)>\n");
	CHECK(strstr(warned, "user name") && !strstr(warned, "secret"));
	CHECK_EQ(resolve("npm", true, &e), 0);
	CHECK_STR(got, "npm.corp.test <group npm (~/.npmrc)>\n"
		       "[2001:db8::7] <group npm (~/.npmrc)>\n");
	end();
}

TEST(npm_default_is_npms_own)
{
	struct sb_err e;

	world();
	put("/opt/tool/lib/npm/bin/npm", "");
	put("/opt/tool/lib/npm/node_modules/@npmcli/config/lib/definitions/definitions.js",
	    "  'replace-registry-host': new Definition('replace-registry-host', {\n"
	    "    default: 'npmjs',\n  }),\n"
	    "  registry: new Definition('registry', {\n    default: 'https://default.test/',\n");
	vars[0][1] = "/usr/bin:/opt/tool/lib/npm/bin";
	CHECK_EQ(resolve("npm", false, &e), 0);
	CHECK(strncmp(got, "default.test:443/https <group npm (/opt/tool/lib/npm/node_modules", 50) ==
	      0);
	vars[1][0] = "npm_config_registry"; /* replaces it */
	vars[1][1] = "http://env.test";
	CHECK_EQ(resolve("npm", false, &e), 0);
	CHECK_STR(got, "env.test:80/http <group npm (npm_config_registry)>\n");
	end();
}

static const char *mirror(const char *word)
{
	static const char *const none[] = { NULL };
	static char last[256];
	const struct groups_env env = { .root = root, .home = "/home/u", .writable = none,
					.getenv = var, .warn = on_warn };
	struct sb_err e = { 0 };
	char *url = NULL;
	int r = groups_mirror(&env, word, &url, &e);

	(void)snprintf(last, sizeof(last), "%d %s", r, url ? url : "-");
	free(url);
	return last;
}

TEST(a_mirror_is_what_is_configured)
{
	world();
	put("/opt/tool/lib/npm/bin/npm", "");
	put("/opt/tool/lib/npm/node_modules/@npmcli/config/lib/definitions/definitions.js",
	    "  registry: new Definition('registry', {\n    default: 'https://default.test/',\n");
	vars[0][1] = "/usr/bin:/opt/tool/lib/npm/bin";
	CHECK_STR(mirror("npm"), "0 -"); /* the tool's own default is inside, too */
	put("/etc/npmrc", "registry=https://system.test/\n");
	CHECK_STR(mirror("npm"), "0 https://system.test/");
	put("/home/u/.npmrc", "@x:registry=https://scope.test\nregistry=http://old.test\n"
			      "registry=https://me:secret@npm.test:8443/a/b?token=t#f\n");
	CHECK_STR(mirror("npm"), "0 https://npm.test:8443/a/b"); /* the last line of the first place */
	put("/home/u/.npmrc", "registry=https://npm.test:443\n");
	CHECK_STR(mirror("npm"), "0 https://npm.test");
	put("/home/u/.npmrc", "registry=http://localhost:4873/\n");
	CHECK_STR(mirror("npm"), "0 -"); /* nobody inside reaches it so, and the other is not meant */
	put("/home/u/.npmrc", "registry=no url\n");
	CHECK_STR(mirror("npm"), "-22 -");
	vars[1][0] = "npm_config_registry";
	vars[1][1] = "http://[2001:db8::1]:80/x";
	put("/home/u/.npmrc", "");
	CHECK_STR(mirror("npm"), "0 http://[2001:db8::1]/x");
	CHECK_STR(mirror("crates-io"), "-22 -");
	end();
}

TEST(a_mirror_of_pip)
{
	world();
	put("/etc/pip.conf", "[global]\nindex-url = https://u@system.test/simple\n");
	CHECK_STR(mirror("pypi"), "0 https://system.test/simple");
	put("/home/u/.config/pip/pip.conf", "[global]\nextra-index-url = https://extra.test/\n");
	CHECK_STR(mirror("pypi"), "0 https://system.test/simple");
	put("/home/u/.config/pip/pip.conf", "[global]\nindex-url = https://own.test/simple/\n");
	CHECK_STR(mirror("pypi"), "0 https://own.test/simple/");
	end();
}

TEST(what_the_project_says_is_only_told)
{
	struct sb_err e;

	world();
	put("/home/u/.npmrc", "registry=https://good.test\n");
	put("/home/u/p/.npmrc", "registry=https://good.test\n@x:registry=https://evil.test\n");
	CHECK_EQ(resolve("npm", false, &e), 0);
	CHECK_STR(got, "good.test:443/https <group npm (~/.npmrc)>\n");
	CHECK(strstr(warned, "--allow-hosts evil.test:443/https"));
	CHECK(!strstr(warned, "good.test"));
	CHECK_EQ(resolve("npm", true, &e), 0); /* to deny is harmless */
	CHECK(strstr(got, "evil.test <"));
	end();
}

TEST(a_link_into_the_project_is_the_projects)
{
	char from[128];
	struct sb_err e;

	world();
	put("/home/u/p/rc", "registry=https://evil.test\n");
	(void)snprintf(from, sizeof(from), "%s/home/u/.npmrc", root);
	CHECK_EQ(symlink("p/rc", from), 0);
	CHECK_EQ(resolve("npm", false, &e), -ENOENT);
	CHECK_STR(got, "");
	CHECK(strstr(e.text, "~/.npmrc"));
	end();
}

TEST(pypi)
{
	struct sb_err e;

	world();
	put("/usr/lib/python3/dist-packages/pip/_internal/models/index.py",
	    "PyPI = PackageIndex(\"https://default.test/\", file_storage_domain=\"files.test\")\n"
	    "TestPyPI = PackageIndex(\n    \"https://no.test/\", file_storage_domain=\"no2.test\")\n");
	CHECK_EQ(resolve("pypi", false, &e), 0);
	CHECK(strstr(got, "default.test:443/https <"));
	CHECK(strstr(got, "files.test:443/https <"));
	CHECK(!strstr(got, "no"));
	put("/home/u/.config/pip/pip.conf",
	    "[global]\nindex-url = https://pip.test/simple\nextra-index-url =\n"
	    "    https://a.test/x\n    https://b.test:99/y\ntrusted-host = c.test\n"
	    "find-links = /srv/wheels https://d.test\n");
	CHECK_EQ(resolve("pypi", false, &e), 0);
	CHECK_STR(got, "pip.test:443/https <group pypi (~/.config/pip/pip.conf)>\n"
		       "a.test:443/https <group pypi (~/.config/pip/pip.conf)>\n"
		       "b.test:99/https <group pypi (~/.config/pip/pip.conf)>\n"
		       "d.test:443/https <group pypi (~/.config/pip/pip.conf)>\n");
	end();
}

TEST(debian)
{
	struct sb_err e;

	world();
	put("/etc/apt/sources.list", "# deb http://no.test x\ndeb [arch=amd64 trusted=yes] "
				     "http://deb.test/debian stable main\ndeb cdrom:[x]/ s m\n"
				     "deb-src mirror+https://mirror.test/list s m\n");
	put("/etc/apt/sources.list.d/a.sources",
	    "Types: deb\nURIs: https://one.test/x\n  https://two.test\nSuites: s\n\n"
	    "Enabled: no\nURIs: https://off.test\n\n# c\nTypes: deb\nURIs: file:/srv\n");
	put("/etc/apt/apt.conf.d/01proxy", "Acquire::http::Proxy \"http://u:p@proxy.test:1\";\n");
	CHECK_EQ(resolve("debian", false, &e), 0);
	CHECK_STR(got, "deb.test:80/http <group debian (/etc/apt/sources.list)>\n"
		       "mirror.test:443/https <group debian (/etc/apt/sources.list)>\n"
		       "one.test:443/https <group debian (/etc/apt/sources.list.d/a.sources)>\n"
		       "two.test:443/https <group debian (/etc/apt/sources.list.d/a.sources)>\n");
	CHECK(strstr(warned, "01proxy:1") && !strstr(warned, "proxy.test"));
	end();
}

TEST(crates)
{
	struct sb_err e;

	world();
	CHECK_EQ(resolve("crates", false, &e), -ENOENT);
	CHECK(strstr(e.text, "replace-with"));
	put("/home/u/.cargo/config.toml",
	    "[source.crates-io]\nreplace-with = \"mirror\"\n[source.mirror]\n"
	    "registry = \"sparse+https://crates.test/index/\"\n"
	    "[registries]\nmine = { index = \"https://git.test/i\", token = \"x\" }\n");
	CHECK_EQ(resolve("crates", false, &e), 0);
	CHECK_STR(got, "crates.test:443/https <group crates (~/.cargo/config.toml)>\n"
		       "git.test:443/https <group crates (~/.cargo/config.toml)>\n");
	put("/home/u/.cargo/config.toml", "");
	put("/home/u/.cargo/registry/index/idx.test-0123456789abcdef/config.json",
	    "{\"dl\": \"https://dl.test/crates\", \"api\": \"https://api.test\"}");
	CHECK_EQ(resolve("crates", false, &e), 0);
	CHECK(strncmp(got, "idx.test:443/https <", 20) == 0);
	CHECK(strstr(got, "\ndl.test:443/https <"));
	end();
}

TEST(go)
{
	struct sb_err e;

	world();
	put("/opt/tool/bin/go", "");
	put("/opt/tool/go.env", "GOPROXY=https://proxy.test,direct\nGOSUMDB=sum.test\n");
	CHECK_EQ(resolve("go", false, &e), 0);
	CHECK_STR(got, "proxy.test:443/https <group go (/opt/tool/go.env)>\n"
		       "sum.test:443/https <group go (/opt/tool/go.env)>\n");
	put("/home/u/.config/go/env", "GOPROXY=http://own.test:8081/x|https://b.test\nGOSUMDB=off\n");
	CHECK_EQ(resolve("go", false, &e), 0);
	CHECK(strstr(got, "own.test:8081/http <group go (~/.config/go/env)>\nb.test:443/https <"));
	vars[1][0] = "GOPROXY";
	vars[1][1] = "direct";
	CHECK_EQ(resolve("go", false, &e), -ENOENT);
	end();
}

TEST(github)
{
	struct sb_err e;

	world();
	put("/home/u/p/.git/config", "[remote \"origin\"]\n\turl = git@git.corp.test:a/b.git\n"
				     "[remote \"x\"]\n\turl = https://gl.test/x\n[branch \"m\"]\n"
				     "\turl = https://no.test\n");
	CHECK_EQ(resolve("github", false, &e), 0);
	CHECK(strncmp(got, "github.com:443/https <group github (built in)>\n", 47) == 0);
	CHECK(!strstr(got, ".test"));
	CHECK(strstr(warned, "--allow-hosts git.corp.test:22/any"));
	CHECK(strstr(warned, "--allow-hosts gl.test:443/https"));
	CHECK(!strstr(warned, "no.test"));
	end();
}

TEST(refused_files)
{
	static char big[(1 << 20) + 2];
	static char line[4200];
	struct sb_err e;

	world();
	put("/home/u/.npmrc", "registry=https://bad host\n");
	CHECK_EQ(resolve("npm", false, &e), -EINVAL);
	CHECK(strstr(e.text, "~/.npmrc:1"));
	memset(line, 'a', sizeof(line) - 1);
	put("/home/u/.npmrc", line);
	CHECK_EQ(resolve("npm", false, &e), -E2BIG);
	memset(big, '\n', sizeof(big) - 1);
	put("/home/u/.npmrc", big);
	CHECK_EQ(resolve("npm", false, &e), -EFBIG);
	put("/home/u/.npmrc", "registry=ftp://x.test\n");
	CHECK_EQ(resolve("npm", false, &e), -ENOENT);
	put("/home/u/.npmrc", "registry=http://localhost:4873\n");
	CHECK_EQ(resolve("npm", false, &e), -ENOENT);
	CHECK(strstr(warned, "--allow-host-port 4873"));
	end();
}

TEST(words_near_a_group)
{
	CHECK_STR(groups_near("NPM", 3), "npm");
	CHECK_STR(groups_near("npmjs,x", 5), "npm");
	CHECK_STR(groups_near("pip", 3), "pypi");
	CHECK(!groups_near("np", 2));
	CHECK(!groups_near("npm.test", 8));
	CHECK(!groups_known("NPM", 3));
}
