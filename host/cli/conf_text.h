#ifndef SB_HOST_CLI_CONF_TEXT_H
#define SB_HOST_CLI_CONF_TEXT_H
/*
 * Destinations named by the configuration files of package managers. Pure: bytes in, a call for
 * each destination. Every reader borrows its text, which need not end with NUL.
 */
#include "base/mem.h"

#define CONF_LINE_MAX 4096 /* bytes of a line; longer ones are refused */

struct conf_url {
	char scheme[8]; /* "http" or "https" */
	char host[256]; /* as written, IPv6 with its brackets */
	uint16_t port;  /* the scheme's own when none is written */
	bool userinfo;  /* a user name or password was there and is dropped */
};
/* SCHEME://[USERINFO@]HOST[:PORT][/...]. Return: 0; -EINVAL; -EPROTONOSUPPORT: another scheme. */
SB_MUST_CHECK int conf_url_parse(const char *s, size_t len, struct conf_url *ret);

enum conf_kind {
	CONF_NONE = 0,
	CONF_BASE,    /* stands in place of the tool's built-in default */
	CONF_EXTRA,   /* beside it */
	CONF_REPLACE, /* no URL: the built-in default is replaced by something without one */
	CONF_WORD,    /* a host name alone, https */
	CONF_REMOTE,  /* a git remote, any of git's spellings */
};
struct conf_found {
	enum conf_kind kind;
	const char *text; /* borrowed */
	size_t len;
	unsigned int line;
};
/* Return: 0 to go on; anything else ends the reader with that value. */
typedef int conf_fn(void *arg, const struct conf_found *f);

/*
 * All readers. Return: 0; -EBADMSG for a NUL byte, -E2BIG for a line of more than CONF_LINE_MAX
 * bytes, with its number in @line; what @fn returned.
 */
typedef int conf_reader(const char *s, size_t len, conf_fn *fn, void *arg, unsigned int *line);
conf_reader conf_npmrc;       /* registry=, @scope:registry= */
conf_reader conf_npm_source;  /* the default in npm's own definitions.js */
conf_reader conf_pip;         /* index-url, extra-index-url, find-links of any section */
conf_reader conf_pip_source;  /* the default in pip's own index.py */
conf_reader conf_apt_list;    /* sources.list(5), one-line style */
conf_reader conf_apt_sources; /* sources.list(5), deb822 style */
conf_reader conf_apt_proxy;   /* apt.conf(5): lines that set a proxy */
conf_reader conf_cargo;       /* [source.*] and [registries.*] of cargo's config.toml */
conf_reader conf_cargo_index; /* "dl" of a registry's config.json */
conf_reader conf_go_proxy;    /* GOPROXY=... lines of a go env file */
conf_reader conf_go_sumdb;    /* GOSUMDB=... */
conf_reader conf_go_source_proxy; /* the defaults in cmd/go's own cfg.go */
conf_reader conf_go_source_sumdb;
conf_reader conf_git;         /* url of [remote "..."] */
/* The value of GOPROXY or GOSUMDB alone. */
SB_MUST_CHECK int conf_go_value(const char *s, size_t len, bool sumdb, unsigned int line,
				conf_fn *fn, void *arg);

#endif
