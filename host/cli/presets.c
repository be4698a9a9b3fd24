#include "presets.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char presets_words[] = "default, permissive or strict";

static const char head[] =
	"# What a sandbox for this folder may do.\n"
	"#   sendbox policy test -- git push      would this run?      sendbox policy show\n"
	"#   sendbox config explain KEY           what counts, and which file and line says so\n"
	"#   sendbox config trust                 accept this file again after a change\n"
	"schema_version: 1\n";

static const char commands_default[] =
	"  # Every program that is started is judged, whoever starts it. What is not named may run:\n"
	"  # the sandbox is the wall, this only stops early what cannot work or should not be tried.\n"
	"  commands:\n"
	"    default_action: allow\n"
	"    scope: tree\n"
	"    denylist:\n"
	"      - {run: \"sudo **\", reason: \"nobody is root in a sandbox: change the image instead\"}\n"
	"      - {run: \"su **\", reason: \"nobody is root in a sandbox: change the image instead\"}\n"
	"      - {run: \"doas **\", reason: \"nobody is root in a sandbox: change the image instead\"}\n"
	"      - {run: \"pkexec **\", reason: \"nobody is root in a sandbox: change the image instead\"}\n"
	"      - {run: \"mount **\", reason: \"name the folder under mounts: in this file\"}\n"
	"      - {run: \"umount **\", reason: \"shared folders stay for the whole session\"}\n"
	"      - {run: \"docker **\", reason: \"containers do not run inside a sandbox\"}\n"
	"      - {run: \"podman **\", reason: \"containers do not run inside a sandbox\"}\n"
	"      - {run: \"nerdctl **\", reason: \"containers do not run inside a sandbox\"}\n"
	"      - {run: \"systemctl **\", reason: \"there are no services in a sandbox\"}\n"
	"      - {run: \"shutdown **\", reason: \"end the session instead\"}\n"
	"      - {run: \"reboot **\", reason: \"end the session instead\"}\n";

static const char network_default[] =
	"  # Groups stand for the servers that the tools of this machine are set up to use. Others:\n"
	"  # example.com, *.example.com, example.com:8443, 10.0.0.0/8.\n"
	"  network:\n"
	"    default_action: deny\n"
	"    allowed_domains:\n";

static const char tests_default[] =
	"# Run by: sendbox policy check\n"
	"policy_tests:\n"
	"  - {run: \"git commit -m work\", expect: allow}\n"
	"  - {run: \"npm ci\", expect: allow}\n"
	"  - {run: \"make test\", expect: allow}\n"
	"  - {run: \"sudo make install\", expect: deny}\n"
	"  - {run: \"docker run debian\", expect: deny}\n"
	"  - {connect: \"github.com:443\", expect: allow}\n"
	"  - {connect: \"github.com:22\", expect: deny}\n"
	"  - {connect: \"169.254.169.254:80\", expect: deny}\n";

static const char permissive[] =
	"policy:\n"
	"  # Everything may run and every public server can be reached; this machine, its networks and\n"
	"  # metadata services still cannot.\n"
	"  commands:\n"
	"    default_action: allow\n"
	"    scope: top_level\n"
	"  network:\n"
	"    default_action: allow\n"
	"# Run by: sendbox policy check\n"
	"policy_tests:\n"
	"  - {run: \"git push origin main\", expect: allow}\n"
	"  - {connect: \"example.com:443\", expect: allow}\n"
	"  - {connect: \"169.254.169.254:80\", expect: deny}\n"
	"  - {connect: \"127.0.0.1:22\", expect: deny}\n";

static const char strict[] =
	"policy:\n"
	"  profile: strict\n"
	"  # Nothing runs but what only reads: every program is judged, whoever starts it.\n"
	"  commands:\n"
	"    default_action: deny\n"
	"    scope: tree\n"
	"    allowlist:\n"
	"      - \"cat **\"\n"
	"      - \"ls **\"\n"
	"      - \"head **\"\n"
	"      - \"tail **\"\n"
	"      - \"wc **\"\n"
	"      - \"sort **\"\n"
	"      - \"uniq **\"\n"
	"      - \"cut **\"\n"
	"      - \"tr **\"\n"
	"      - \"grep **\"\n"
	"      - \"find **\"\n"
	"      - \"file **\"\n"
	"      - \"stat **\"\n"
	"      - \"du **\"\n"
	"      - \"diff **\"\n"
	"      - \"cmp **\"\n"
	"      - \"echo **\"\n"
	"      - \"pwd **\"\n"
	"      - \"basename **\"\n"
	"      - \"dirname **\"\n"
	"      - \"readlink **\"\n"
	"      - \"sha256sum **\"\n"
	"      - \"less **\"\n"
	"      - \"git status **\"\n"
	"      - \"git log **\"\n"
	"      - \"git diff **\"\n"
	"      - \"git show **\"\n"
	"  network:\n"
	"    default_action: deny\n"
	"    allowed_domains:\n"
	"      - github\n"
	"    max_connections: 10\n"
	"# Run by: sendbox policy check\n"
	"policy_tests:\n"
	"  - {run: \"git log --oneline\", expect: allow}\n"
	"  - {run: \"grep -r TODO .\", expect: allow}\n"
	"  - {run: \"git push origin main\", expect: deny}\n"
	"  - {run: \"python3 -c pass\", expect: deny}\n"
	"  - {run: \"sh -c ls\", expect: deny}\n"
	"  - {connect: \"github.com:443\", expect: allow}\n"
	"  - {connect: \"example.com:443\", expect: deny}\n";

bool presets_known(const char *policy)
{
	return strcmp(policy, "default") == 0 || strcmp(policy, "permissive") == 0 ||
	       strcmp(policy, "strict") == 0;
}

/* A double-quoted scalar; what cannot stand in one becomes "?". */
static void put_name(FILE *to, const char *name)
{
	(void)fputc('"', to);
	for (const unsigned char *c = (const unsigned char *)name; *c; c++) {
		if (*c == '"' || *c == '\\')
			(void)fputc('\\', to);
		(void)fputc(*c < 0x20 || *c >= 0x7f ? '?' : *c, to);
	}
	(void)fputc('"', to);
}

static void put_groups(FILE *to, preset_group_fn *here, void *arg)
{
	static const struct {
		const char *word;
		const char *what;
	} groups[] = {
		{ "npm", "npm" },	  { "pypi", "pip" },	  { "crates", "cargo" },
		{ "go", "go" },		  { "debian", "apt" },	  { "github", "git over https, releases" },
	};

	for (size_t i = 0; i < SB_ARRAY_LEN(groups); i++) {
		if (!here || here(arg, groups[i].word))
			(void)fprintf(to, "      - %-8s # %s\n", groups[i].word, groups[i].what);
		else
			(void)fprintf(to, "      # - %-6s # %s: not set up on this machine, so nothing is "
					  "known to allow\n", groups[i].word, groups[i].what);
	}
}

static void put_default(FILE *to, preset_group_fn *here, void *arg)
{
	(void)fputs("# Git hooks, editor and agent settings and the like, that programs outside run by "
		    "themselves:\n# guarded_paths: {readonly: [default]}\n", to);
	(void)fputs("policy:\n", to);
	(void)fputs(commands_default, to);
	(void)fputs(network_default, to);
	put_groups(to, here, arg);
	(void)fputs(tests_default, to);
}

int preset_write(const char *policy, const char *name, const char *provider,
		 preset_group_fn *here, void *arg, char **ret, size_t *ret_len)
{
	char *text = NULL;
	size_t len = 0;
	FILE *to;

	if (!presets_known(policy))
		return -ENOENT;
	to = open_memstream(&text, &len);
	if (!to)
		return -ENOMEM;
	(void)fputs(head, to);
	(void)fputs("name: ", to);
	put_name(to, name);
	(void)fputs("\n", to);
	if (provider && strcmp(provider, "auto") != 0)
		(void)fprintf(to, "runtime:\n  provider: %s\n", provider);
	if (strcmp(policy, "default") == 0)
		put_default(to, here, arg);
	else
		(void)fputs(strcmp(policy, "strict") == 0 ? strict : permissive, to);
	if (fclose(to) != 0 || !text) {
		free(text);
		return -ENOMEM;
	}
	*ret = text;
	*ret_len = len;
	return 0;
}
