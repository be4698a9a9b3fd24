#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/near.h"
#include "base/num.h"

static const struct cli_option *find_long(const struct cli_option *table, size_t n,
					  const char *word, size_t len)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(table[i].name) == len && strncmp(table[i].name, word, len) == 0)
			return &table[i];
	return NULL;
}

static const struct cli_option *find_letter(const struct cli_option *table, size_t n, char c)
{
	for (size_t i = 0; i < n; i++)
		if (table[i].letter != 0 && table[i].letter == c)
			return &table[i];
	return NULL;
}

/* How far apart two words are, for "did you mean"; words longer than 31 never match. */
static int unknown(const struct cli_option *table, size_t n, const char *word, struct sb_err *err)
{
	const char *near = NULL;
	unsigned int best = 3;

	for (size_t i = 0; i < n; i++) {
		unsigned int d = strncmp(word, "--", 2) == 0 ? sb_near(word + 2, table[i].name, 2) : 9;

		if (d < best) {
			best = d;
			near = table[i].name;
		}
	}
	if (near)
		return sb_err_set(err, -EINVAL, "unknown option %.100s; did you mean --%s?", word,
				  near);
	return sb_err_set(err, -EINVAL, "unknown option %.100s; --help lists them", word);
}

static const char *group; /* of a word with several letters, -abc: what is still to be taken */
static const char *group_word;
static const struct cli_option **probe_table; /* cli_options_probe(): the next table goes there */
static size_t *probe_n;

void cli_options_probe(const struct cli_option **ret, size_t *ret_n)
{
	probe_table = ret;
	probe_n = ret_n;
}

int cli_options_next(const struct cli_option *table, size_t n, int argc, char **argv, int *at,
		     const char **ret_value, bool *ret_dashes, struct sb_err *err)
{
	const struct cli_option *o;
	const char *value = NULL;
	char *word;

	if (probe_table) {
		*probe_table = table;
		*probe_n = n;
		return sb_err_set(err, -EINVAL, "only asked for the options");
	}
	*ret_dashes = false;
	*ret_value = NULL;
	if (*at >= argc)
		return 0;
	word = argv[*at];
	if (word[0] != '-' || word[1] == '\0')
		return 0;
	if (strcmp(word, "--") == 0) {
		(*at)++;
		*ret_dashes = true;
		return 0;
	}
	if (word[1] == '-') {
		size_t len = strcspn(word + 2, "=");

		o = find_long(table, n, word + 2, len);
		if (word[2 + len] == '=')
			value = word + 3 + len;
	} else {
		const char *letter = group && group_word == word ? group : word + 1;

		group = NULL;
		o = find_letter(table, n, *letter);
		if (!o && letter > word + 1)
			return sb_err_set(err, -EINVAL, "unknown option -%c in %.60s; --help lists them", *letter,
					  word);
		if (o && !o->arg && letter[1] != '\0') { /* -abc: the next one is taken at the next call */
			group = letter + 1;
			group_word = word;
			return o->id;
		}
		if (letter[1] != '\0')
			value = letter + 1;
	}
	if (!o)
		return unknown(table, n, word, err);
	(*at)++;
	if (!o->arg && value)
		return sb_err_set(err, -EINVAL, "option --%s takes no value", o->name);
	if (o->arg && !value && o->arg[0] != '[') {
		if (*at >= argc)
			return sb_err_set(err, -EINVAL, "option --%s needs a value: %s", o->name,
					  o->arg);
		value = argv[(*at)++];
		if (strcmp(value, "--") == 0)
			return sb_err_set(err, -EINVAL, "option --%s needs a value: %s", o->name,
					  o->arg);
	}
	*ret_value = value;
	return o->id;
}

/* Words that @word is together with: the value of an option that has one. */
static int taken(const struct cli_option *table, size_t n, const char *word)
{
	const struct cli_option *o = NULL;
	const char *p = word + 1;

	if (word[1] == '-') {
		o = strchr(word, '=') ? NULL : find_long(table, n, word + 2, strlen(word + 2));
	} else {
		while (*p && (o = find_letter(table, n, *p)) && !o->arg)
			p++;
		if (*p && p[1])
			o = NULL; /* its value follows in the word */
	}
	return o && o->arg && o->arg[0] != '[' ? 2 : 1;
}

void cli_options_first(const struct cli_option *table, size_t n, int argc, char **argv)
{
	int front = 0;

	for (int at = 0; at < argc && strcmp(argv[at], "--") != 0;) {
		int words = argv[at][0] == '-' && argv[at][1] ? taken(table, n, argv[at]) : 0;

		if (words == 0) {
			at++;
			continue;
		}
		for (; words > 0 && at < argc; words--, at++) {
			char *w = argv[at];

			memmove(argv + front + 1, argv + front, (size_t)(at - front) * sizeof(*argv));
			argv[front++] = w;
		}
	}
}

static size_t help_width(void)
{
	struct winsize ws;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) < 0 || ws.ws_col == 0)
		return 80;
	return SB_MAX(SB_MIN(ws.ws_col, 100U), 30U);
}

/* @text from column @at on, broken at blanks; further lines begin at column @indent. */
static void help_text(const char *text, size_t at, size_t indent, size_t width)
{
	while (*text) {
		size_t n = strcspn(text, " ");

		if (at > indent && at + 1 + n > width) {
			printf("\n%*s", (int)indent, "");
			at = indent;
		} else if (at > indent) {
			(void)putchar(' ');
			at++;
		}
		printf("%.*s", (int)n, text);
		at += n;
		text += n;
		text += strspn(text, " ");
	}
	(void)putchar('\n');
}

void cli_options_help(const struct cli_option *table, size_t n)
{
	size_t width = help_width();
	size_t indent = width < 70 ? 8 : 39;

	for (size_t i = 0; i < n; i++) {
		char left[64];

		(void)snprintf(left, sizeof(left), "%c%c%c --%s%s%s", table[i].letter ? '-' : ' ',
			       table[i].letter ? table[i].letter : ' ',
			       table[i].letter ? ',' : ' ', table[i].name,
			       table[i].arg && table[i].arg[0] != '[' ? " " : "",
			       table[i].arg ? table[i].arg : "");
		if (strlen(left) + 3 > indent)
			printf("  %s\n%*s", left, (int)indent, "");
		else
			printf("  %-*s", (int)(indent - 2), left);
		help_text(table[i].help, indent, indent, width);
	}
}

enum {
	O_PROJECT = 1,
	O_MOUNT,
	O_ENV,
	O_RUNTIME,
	O_ACCEL,
	O_IMAGE,
	O_KERNEL,
	O_CPUS,
	O_MEMORY,
	O_DISK,
	O_QUOTA,
	O_QUOTA_FILES,
	O_PIDS,
	O_TIMEOUT,
	O_ALLOW, /* network options: O_ALLOW to O_NET_LAST */
	O_DENY,
	O_HOST_PORT,
	O_NO_FILTER,
	O_PROXY_ENV,
	O_DNS_TYPES,
	O_CONNECTIONS,
	O_IDLE,
	O_BYTES,
	O_HOST_BYTES,
	O_QUERIES,
	O_NEW_NAMES,
	O_STRICT_CNAME,
	O_ECH,
	O_NET_LAST = O_ECH,
	O_NO_NETWORK,
	O_CONFIG,
	O_NO_CONFIG,
	O_TRUST,
	O_PROFILE,
	O_INTERACTIVE,
	O_SEPARATE,
	O_JSON,
	O_KEEP,
	O_DRY,
	O_PLAN,
	O_VALID,
	O_WORKSPACE,
	O_NAME,
	O_RM,
	O_REINSTALL,
	O_SSH_AGENT,
	O_NO_AGENT_MOUNTS,
	O_QUIET,
	O_NO_SNAPSHOT,
	O_DETACH,
	O_DETACH_KEYS,
	O_HELP,
	O_END
};
_Static_assert(O_END <= 64, "run_options.given has a bit for each");

static const struct cli_option run_table[] = {
	{ "project", 0, "DIR", "folder to share, read-write (default: the current one)",
	  O_PROJECT },
	{ "workspace", 'w', "DIR", "the same as --project", O_WORKSPACE },
	{ "mount", 'm', "HOST:GUEST[:ro|rw]", "share another folder or file (default ro)", O_MOUNT },
	{ "env", 'e', "NAME[=VALUE]", "set a variable, or pass the caller's on", O_ENV },
	{ "runtime", 0, "NAME", "microvm, namespace (shares the host kernel) or auto", O_RUNTIME },
	{ "accel", 0, "NAME", "auto, kvm or tcg (emulation: slow)", O_ACCEL },
	{ "image", 0, "host|dir:PATH|IMAGE", "root file system (default: host)", O_IMAGE },
	{ "kernel", 'k', "PATH", "guest kernel, bzImage or ELF", O_KERNEL },
	{ "cpus", 0, "N", "CPUs", O_CPUS },
	{ "memory", 0, "SIZE", "memory, as 512m or 4g", O_MEMORY },
	{ "disk", 0, "SIZE", "size of the writable layer", O_DISK },
	{ "quota", 0, "SIZE", "bytes that may be added to each shared folder", O_QUOTA },
	{ "quota-files", 0, "N", "files that may be added to each shared folder", O_QUOTA_FILES },
	{ "pids", 0, "N", "processes and threads at once", O_PIDS },
	{ "timeout", 0, "TIME", "end the command after TIME (90, 1.5h); from its start",
	  O_TIMEOUT },
	{ "allow-hosts", 'a', "LIST", "names, addresses or groups the program may reach, as "
				      "example.com,*.example.org:8443,npm", O_ALLOW },
	{ "deny-hosts", 0, "LIST", "what it may not reach though another rule allows it", O_DENY },
	{ "allow-host-port", 0, "PORT", "this host's own port, as host.sendbox.internal:PORT",
	  O_HOST_PORT },
	{ "no-network", 0, NULL, "no network at all, no names either", O_NO_NETWORK },
	{ "no-network-filter", 0, NULL, "allow every public name and address", O_NO_FILTER },
	{ "proxy-env", 0, NULL, "set the proxy variables for the command", O_PROXY_ENV },
	{ "dns-types", 0, "LIST", "record types beside A and AAAA, as TXT,MX,SRV", O_DNS_TYPES },
	{ "net-connections", 0, "N", "connections at once (default 512)", O_CONNECTIONS },
	{ "net-idle", 0, "TIME", "end a connection idle for TIME (default 30m; 0 = never)", O_IDLE },
	{ "net-bytes", 0, "SIZE", "bytes in and out of the whole session", O_BYTES },
	{ "net-host-bytes", 0, "SIZE", "the same for each name or address", O_HOST_BYTES },
	{ "dns-queries", 0, "N", "questions a minute (default 3000; 0 = any number)", O_QUERIES },
	{ "dns-new-names", 0, "N", "new names beneath wildcards a minute (default 100; 0 = any)",
	  O_NEW_NAMES },
	{ "strict-cname", 0, NULL, "every alias of a name must be allowed itself", O_STRICT_CNAME },
	{ "allow-ech", 0, NULL, "allow TLS with an encrypted hello when the outer name agrees",
	  O_ECH },
	{ "config", 'c', "FILE", "use this configuration file instead of looking for .sendbox.yaml",
	  O_CONFIG },
	{ "no-config", 0, NULL, "read no project file at all", O_NO_CONFIG },
	{ "trust-config", 0, NULL, "use the project file in this run though it was never accepted",
	  O_TRUST },
	{ "profile", 0, "NAME", "confinement: strict, default or build", O_PROFILE },
	{ "ssh-agent", 0, "[=KEY]", "let the program log in with a key of the SSH agent, by fingerprint, "
				    "comment or file", O_SSH_AGENT },
	{ "interactive", 'i', NULL, "use a terminal (default when stdin and stdout are one)",
	  O_INTERACTIVE },
	{ "tty", 't', NULL, "the same as --interactive", O_INTERACTIVE },
	{ "separate-stderr", 0, NULL, "with a terminal: keep stderr apart", O_SEPARATE },
	{ "json", 0, NULL, "print one JSON event a line", O_JSON },
	{ "no-snapshot", 0, NULL, "no snapshots of what is shared: no diff, no undo, no look at guarded paths", O_NO_SNAPSHOT },
	{ "keep", 0, NULL, "keep the session's directory for inspection", O_KEEP },
	{ "dry-run", 0, NULL, "print the signed plan and start nothing", O_DRY },
	{ "valid-for", 0, "TIME", "with --dry-run: how long the plan may be run (default 5m)",
	  O_VALID },
	{ "plan", 0, "FILE|SESSION", "run a plan that was reviewed, as it is", O_PLAN },
	{ "name", 0, "NAME", "make or resume the instance of that name", O_NAME },
	{ "rm", 0, NULL, "remove the instance when its session ends", O_RM },
	{ "reinstall", 0, NULL, "install the agent's environment anew", O_REINSTALL },
	{ "no-agent-mounts", 0, NULL, "without the mounts and settings of the agent's definition",
	  O_NO_AGENT_MOUNTS },
	{ "quiet", 'q', NULL, "no banner", O_QUIET },
	{ "detach", 'd', NULL, "with --name: leave as soon as the command runs", O_DETACH },
	{ "detach-keys", 0, "KEYS", "with --name: keys that leave (default ctrl-p,ctrl-q)",
	  O_DETACH_KEYS },
	{ "help", 'h', NULL, "this text", O_HELP },
};

bool run_options_step(int argc, char **argv, int *at, const char **ret_name, const char **ret_value)
{
	struct sb_err err = { 0 };
	bool dashes;
	int id = cli_options_next(run_table, SB_ARRAY_LEN(run_table), argc, argv, at, ret_value,
				  &dashes, &err);

	for (size_t i = 0; id > 0 && i < SB_ARRAY_LEN(run_table); i++)
		if (run_table[i].id == id) {
			*ret_name = run_table[i].name;
			return true;
		}
	return false;
}

void run_options_help(void)
{
	printf("usage: sendbox run [options] -- PROGRAM [ARG...]\n"
	       "       sendbox run [options] [AGENT [ARG...]]\n\n"
	       "Run PROGRAM, or an agent, in a sandbox of its own, the current folder inside.\n"
	       "What follows the agent's name is the agent's.\n\n");
	cli_options_help(run_table, SB_ARRAY_LEN(run_table));
}

bool run_options_given(const struct run_options *o, const char *name)
{
	for (size_t i = 0; i < SB_ARRAY_LEN(run_table); i++)
		if (strcmp(run_table[i].name, name) == 0)
			return (o->given >> run_table[i].id & 1) != 0;
	sb_assert(false);
	return false;
}

static int number(const char *name, const char *text, uint64_t min, uint64_t max, uint64_t *ret,
		  struct sb_err *err)
{
	if (sb_num_u64(text, min, max, ret) < 0)
		return sb_err_set(err, -EINVAL,
				  "--%s \"%.60s\": must be a whole number from %llu to %llu", name,
				  text, (unsigned long long)min, (unsigned long long)max);
	return 0;
}

static int size(const char *name, const char *text, uint64_t *ret, struct sb_err *err)
{
	if (sb_num_size(text, ret) < 0)
		return sb_err_set(err, -EINVAL,
				  "--%s \"%.60s\": must be a size such as 512m, 1.5g (a bare number "
				  "is MiB)",
				  name, text);
	return 0;
}

static int push(const char *name, const char **list, size_t *n, size_t max, const char *v,
		struct sb_err *err)
{
	if (*n == max)
		return sb_err_set(err, -EINVAL, "too many --%s options (at most %zu)", name, max);
	list[(*n)++] = v;
	return 0;
}

static int take_network(struct run_options *o, int id, const char *v, struct sb_err *err)
{
	uint64_t n = 0;
	int r = 0;

	switch (id) {
	case O_ALLOW:
		return push("allow-hosts", o->allow, &o->n_allow, SB_ARRAY_LEN(o->allow), v, err);
	case O_DENY:
		return push("deny-hosts", o->deny, &o->n_deny, SB_ARRAY_LEN(o->deny), v, err);
	case O_HOST_PORT:
		r = number("allow-host-port", v, 1, 65535, &n, NULL);
		if (r < 0)
			return sb_err_set(err, -EINVAL, "--allow-host-port \"%.60s\": must be the number "
					  "of one port, as 5432; give the option again for another", v);
		if (r == 0 && o->n_host_ports == SB_ARRAY_LEN(o->host_ports))
			return sb_err_set(err, -EINVAL, "too many --allow-host-port options");
		if (r == 0)
			o->host_ports[o->n_host_ports++] = (uint16_t)n;
		return r;
	case O_NO_FILTER:
		o->no_filter = true;
		return 0;
	case O_PROXY_ENV:
		o->proxy_env = true;
		return 0;
	case O_DNS_TYPES:
		return push("dns-types", o->dns_types, &o->n_dns_types,
			    SB_ARRAY_LEN(o->dns_types), v, err);
	case O_CONNECTIONS:
		r = number("net-connections", v, 1, 4096, &n, err);
		o->net_connections = (uint32_t)n;
		return r;
	case O_IDLE:
		o->net_idle_ms = 0;
		if (strcmp(v, "0") != 0 && sb_num_duration_ms(v, &o->net_idle_ms) < 0)
			r = sb_err_set(err, -EINVAL,
				       "--net-idle \"%.60s\": must be a time such as 90s, 30m, or 0",
				       v);
		return r;
	case O_BYTES:
		return size("net-bytes", v, &o->net_bytes, err);
	case O_HOST_BYTES:
		return size("net-host-bytes", v, &o->net_host_bytes, err);
	case O_QUERIES:
		r = number("dns-queries", v, 0, UINT32_MAX, &n, err);
		o->dns_queries = (uint32_t)n;
		return r;
	case O_NEW_NAMES:
		r = number("dns-new-names", v, 0, UINT32_MAX, &n, err);
		o->dns_new_names = (uint32_t)n;
		return r;
	case O_STRICT_CNAME:
		o->strict_cname = true;
		return 0;
	default:
		sb_assert(id == O_ECH);
		o->allow_ech = true;
		return 0;
	}
}

static const char *option_name(int id)
{
	for (size_t i = 0; i < SB_ARRAY_LEN(run_table); i++)
		if (run_table[i].id == id)
			return run_table[i].name;
	return "";
}

static int take(struct run_options *o, int id, const char *v, struct sb_err *err)
{
	uint64_t n = 0;
	int r = 0;

	o->given |= 1ULL << id;
	if (id >= O_ALLOW && id <= O_NET_LAST) {
		o->net_option = option_name(id);
		return take_network(o, id, v, err);
	}
	switch (id) {
	case O_NO_NETWORK:
		o->no_network = true;
		break;
	case O_CONFIG:
		o->config = v;
		break;
	case O_NO_CONFIG:
		o->no_config = true;
		break;
	case O_TRUST:
		o->trust_config = true;
		break;
	case O_PROFILE:
		o->profile = v;
		break;
	case O_SSH_AGENT:
		return v ? push("ssh-agent", o->ssh_keys, &o->n_ssh_keys,
				SB_ARRAY_LEN(o->ssh_keys), v, err)
			 : 0;
	case O_PROJECT:
		o->project = v;
		break;
	case O_WORKSPACE: /* one decision under two names */
		o->given |= 1ULL << O_PROJECT;
		o->project = v;
		break;
	case O_NAME:
		o->name = v;
		break;
	case O_RM:
		o->rm = true;
		break;
	case O_REINSTALL:
		o->reinstall = true;
		break;
	case O_NO_AGENT_MOUNTS:
		o->no_agent_mounts = true;
		break;
	case O_QUIET:
		o->quiet = true;
		break;
	case O_DETACH:
		o->detach = true;
		break;
	case O_DETACH_KEYS:
		o->detach_keys = v;
		break;
	case O_MOUNT:
		if (o->n_mounts == SB_ARRAY_LEN(o->mounts))
			return sb_err_set(err, -EINVAL, "too many --mount options (at most 23)");
		o->mounts[o->n_mounts++] = v;
		break;
	case O_ENV:
		if (o->n_env == SB_ARRAY_LEN(o->env))
			return sb_err_set(err, -EINVAL, "too many --env options");
		o->env[o->n_env++] = v;
		break;
	case O_RUNTIME:
		o->runtime = v;
		break;
	case O_ACCEL:
		o->accel = v;
		break;
	case O_IMAGE:
		o->image = v;
		break;
	case O_KERNEL:
		o->kernel = v;
		break;
	case O_CPUS:
		r = number("cpus", v, 1, 256, &n, err);
		o->cpus = (uint32_t)n;
		break;
	case O_MEMORY:
		r = size("memory", v, &o->memory_bytes, err);
		break;
	case O_DISK:
		r = size("disk", v, &o->disk_bytes, err);
		break;
	case O_QUOTA:
		r = size("quota", v, &o->quota_bytes, err);
		break;
	case O_QUOTA_FILES:
		r = number("quota-files", v, 1, 1ULL << 40, &o->quota_files, err);
		break;
	case O_PIDS:
		r = number("pids", v, 4, 4194304, &n, err);
		o->pids = (uint32_t)n;
		break;
	case O_TIMEOUT:
		if (sb_num_duration_ms(v, &o->timeout_ms) < 0)
			r = sb_err_set(err, -EINVAL,
				       "--timeout \"%.60s\": must be a time such as 30, 90s, 1.5h",
				       v);
		break;
	case O_INTERACTIVE:
		o->interactive = true;
		break;
	case O_SEPARATE:
		o->separate_stderr = true;
		break;
	case O_JSON:
		o->json = true;
		break;
	case O_NO_SNAPSHOT:
		o->no_snapshot = true;
		break;
	case O_KEEP:
		o->keep = true;
		break;
	case O_DRY:
		o->dry_run = true;
		break;
	case O_PLAN:
		o->plan = v;
		break;
	case O_VALID:
		if (sb_num_duration_ms(v, &n) < 0 || n < 1000)
			r = sb_err_set(err, -EINVAL,
				       "--valid-for \"%.60s\": must be a time such as 10m, 12h, 30d",
				       v);
		o->valid_s = n / 1000;
		break;
	case O_HELP:
		o->help = true;
		break;
	default:
		sb_assert(false);
	}
	return r;
}

static bool one_of(const char *v, const char *a, const char *b, const char *c)
{
	return strcmp(v, a) == 0 || strcmp(v, b) == 0 || strcmp(v, c) == 0;
}

static int check_words(const struct run_options *o, struct sb_err *err)
{
	static const char *const later[] = { "kata", "apple", "hyperlight", "kubernetes" };

	for (size_t i = 0; o->runtime && i < SB_ARRAY_LEN(later); i++)
		if (strcmp(o->runtime, later[i]) == 0)
			return sb_err_set(err, -EINVAL, "--runtime %s: not available yet",
					  o->runtime);
	if (o->runtime && !one_of(o->runtime, "microvm", "namespace", "auto"))
		return sb_err_set(err, -EINVAL,
				  "--runtime \"%.60s\": must be microvm, namespace or auto",
				  o->runtime);
	if (o->accel && !one_of(o->accel, "auto", "kvm", "tcg"))
		return sb_err_set(err, -EINVAL, "--accel \"%.60s\": must be auto, kvm or tcg",
				  o->accel);
	if (o->runtime && strcmp(o->runtime, "namespace") == 0 && (o->accel || o->kernel))
		return sb_err_set(err, -EINVAL,
				  "--accel and --kernel are for the microvm runtime; the namespace "
				  "runtime uses the host's kernel");
	if (o->runtime && strcmp(o->runtime, "namespace") == 0 && (o->quota_bytes || o->quota_files))
		return sb_err_set(err, -EINVAL,
				  "--quota and --quota-files need the microvm runtime: the namespace "
				  "runtime binds folders and cannot count what is written");
	if (o->profile && !one_of(o->profile, "strict", "default", "build"))
		return sb_err_set(err, -EINVAL,
				  "--profile \"%.60s\": must be strict, default or build", o->profile);
	if (o->config && o->no_config)
		return sb_err_set(err, -EINVAL, "--config and --no-config exclude each other");
	if (o->no_network && o->net_option)
		return sb_err_set(err, -EINVAL, "--no-network and --%s exclude each other",
				  o->net_option);
	if (o->json && o->interactive)
		return sb_err_set(err, -EINVAL, "--json and --interactive exclude each other");
	return 0;
}

/* A reviewed plan says everything but what this run looks like from outside. */
static int check_plan(const struct run_options *o, bool command, struct sb_err *err)
{
	const uint64_t may = 1ULL << O_PLAN | 1ULL << O_ENV | 1ULL << O_KERNEL | 1ULL << O_JSON |
			     1ULL << O_KEEP | 1ULL << O_NO_SNAPSHOT | 1ULL << O_HELP;

	if (command)
		return sb_err_set(err, -EINVAL, "--plan runs the plan's own command: give none");
	for (int id = 1; id < O_END; id++)
		if ((o->given & ~may) >> id & 1)
			return sb_err_set(err, -EINVAL,
					  "--plan runs a plan as it is: --%s cannot be given with it",
					  option_name(id));
	return 0;
}

/* A word that is no option, and not after "--": an agent. All that follows is its own. */
static void take_agent(struct run_options *o, int argc, char **argv, int at)
{
	o->agent = at < argc ? argv[at++] : "";
	if (at < argc && strcmp(argv[at], "--") == 0)
		at++;
	o->argv = argv + at;
}

/* What only an agent's session has. */
static int check_agent(const struct run_options *o, struct sb_err *err)
{
	if (!o->agent && (o->reinstall || o->no_agent_mounts))
		return sb_err_set(err, -EINVAL, "--%s goes with an agent; this runs the program \"%.60s\"",
				  o->reinstall ? "reinstall" : "no-agent-mounts", o->argv[0]);
	return 0;
}

int run_options_parse(int argc, char **argv, struct run_options *ret, struct sb_err *err)
{
	struct run_options o = { .net_connections = 512,
				 .net_idle_ms = 1800000,
				 .dns_queries = 3000,
				 .dns_new_names = 100 };
	const char *value;
	bool dashes;
	int at = 0;

	for (;;) {
		int id = cli_options_next(run_table, SB_ARRAY_LEN(run_table), argc, argv, &at,
					  &value, &dashes, err);
		int r;

		if (id < 0)
			return id;
		if (id == 0)
			break;
		r = take(&o, id, value, err);
		if (r < 0)
			return r;
	}
	if (o.help) {
		*ret = o;
		return 0;
	}
	if (o.plan) {
		*ret = o;
		return check_plan(&o, at < argc, err);
	}
	if (o.valid_s && !o.dry_run)
		return sb_err_set(err, -EINVAL, "--valid-for goes with --dry-run: a plan that is run "
						"at once must be up within minutes");
	if ((o.detach || o.detach_keys) && !o.name)
		return sb_err_set(err, -EINVAL, "--detach and --detach-keys go with --name");
	if (dashes && at >= argc)
		return sb_err_set(err, -EINVAL,
				  "no program to run; write: sendbox run [options] -- PROGRAM "
				  "[ARG...]");
	if (!dashes)
		take_agent(&o, argc, argv, at);
	else
		o.argv = argv + at;
	if (!o.agent && o.argv[0][0] == '\0')
		return sb_err_set(err, -EINVAL, "the program's name is empty");
	if (check_agent(&o, err) < 0)
		return -EINVAL;
	if (check_words(&o, err) < 0)
		return -EINVAL;
	*ret = o;
	return 0;
}
