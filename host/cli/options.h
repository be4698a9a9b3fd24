#ifndef SB_HOST_CLI_OPTIONS_H
#define SB_HOST_CLI_OPTIONS_H
/*
 * Option tables. One table per command drives the parser, the help text and the check that the
 * man page names every option. Long options take "--name VALUE" or "--name=VALUE"; no
 * abbreviations. Parsing stops at "--" or at the first word that is no option.
 */
#include "base/err.h"

struct cli_option {
	const char *name;     /* long name without the dashes */
	char letter;          /* 0 = none */
	const char *arg;      /* NULL = a switch; "[=X]": X may be left out, and follows "=" */
	const char *help;
	int id;
};

/*
 * cli_options_next - step through argv
 * @at: index, starts at 0; afterwards the index of the first operand
 * @ret_value: the option's argument; borrowed from argv
 *
 * Return: the option's id (> 0); 0 at the end; -EINVAL with the text in @err.
 */
SB_MUST_CHECK int cli_options_next(const struct cli_option *table, size_t n, int argc, char **argv,
				   int *at, const char **ret_value, bool *ret_dashes,
				   struct sb_err *err);
/* Move the options of @argv, with their values, to its front, so that they may stand anywhere; what stands
 * behind "--" stays there. */
void cli_options_first(const struct cli_option *table, size_t n, int argc, char **argv);
void cli_options_help(const struct cli_option *table, size_t n);
/* From now on cli_options_next() parses nothing: it writes its table down and fails, so that the command
 * that called it ends. For completions. */
void cli_options_probe(const struct cli_option **ret, size_t *ret_n);

struct cfg_source;
struct own_mount { /* a folder or file of our own state that a session works on */
	const char *host;
	const char *guest;
};
struct run_options {
	const char *project;
	const char *mounts[64]; /* as given */
	size_t n_mounts;
	const char *env[512];
	size_t n_env;
	const char *runtime; /* microvm, namespace, auto */
	const char *accel;   /* auto, kvm, tcg */
	const char *image;
	const char *kernel;
	uint32_t cpus;         /* 0 = not given */
	uint64_t memory_bytes; /* 0 = not given */
	uint64_t disk_bytes;
	uint64_t quota_bytes; /* what a session may add to each read-write share */
	uint64_t quota_files;
	uint32_t pids;
	uint64_t timeout_ms;
	const char *allow[256]; /* --allow-hosts, as given */
	size_t n_allow;
	const char *deny[256];
	size_t n_deny;
	uint16_t host_ports[64];
	size_t n_host_ports;
	const char *dns_types[16]; /* lists, as given */
	size_t n_dns_types;
	const char *ssh_keys[32]; /* --ssh-agent=KEY */
	size_t n_ssh_keys;
	bool no_network;
	bool no_filter;
	bool proxy_env;
	bool strict_cname;
	bool allow_ech;
	uint32_t net_connections;
	uint64_t net_idle_ms; /* 0 = none */
	uint64_t net_bytes;   /* 0 = none */
	uint64_t net_host_bytes;
	uint32_t dns_queries;
	uint32_t dns_new_names;
	const char *net_option; /* the last network option given besides --no-network, or NULL */
	const char *config;    /* --config FILE */
	const char *profile;   /* strict, default, build */
	bool no_config;
	bool trust_config;
	const char *plan;      /* --plan FILE|SESSION */
	const char *agent;     /* a word that is no program: an agent's name; "" = the configured one */
	const char *name;      /* --name */
	bool rm;
	bool reinstall;
	bool no_agent_mounts;
	bool quiet;
	const struct cfg_source *agent_layer; /* what its definition says; borrowed; not an option */
	size_t n_agent_layer;
	const struct own_mount *own; /* shared read-write; borrowed; not an option */
	size_t n_own;
	uint64_t valid_s;      /* --valid-for; 0 = not given */
	bool detach;
	const char *detach_keys;
	bool interactive;
	bool separate_stderr;
	bool json;
	bool keep;
	bool no_snapshot;
	bool dry_run;
	bool help;
	uint64_t given; /* bit n: the option with id n; see run_options_given */
	char **argv;    /* the command, or what the agent is given; NULL-terminated; borrowed */
};

/* Return: 0; -EINVAL. */
SB_MUST_CHECK int run_options_parse(int argc, char **argv, struct run_options *ret,
				    struct sb_err *err);
void run_options_help(void);
/* Step through the options of @argv without a look at their values. @ret_name: borrowed; @ret_value:
 * borrowed, NULL for a switch. Return: false at the end. */
bool run_options_step(int argc, char **argv, int *at, const char **ret_name,
		      const char **ret_value);
/* Whether the option of that long name was given; defaults are set without it. */
bool run_options_given(const struct run_options *o, const char *name);

#endif
