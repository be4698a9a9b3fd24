/* Configuration files of package managers: the first byte chooses the reader, the rest is its text.
 * What a reader finds lies inside the text, and each destination is a URL or not. */
#include <string.h>

#include "cli/conf_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct text {
	const char *p;
	size_t len;
};

static int on_found(void *arg, const struct conf_found *f)
{
	const struct text *t = arg;
	struct conf_url u = { .port = 0 };
	int r;

	sb_assert(f->len == 0 || (f->text >= t->p && f->text + f->len <= t->p + t->len));
	sb_assert(f->line > 0 && f->kind != CONF_NONE);
	r = conf_url_parse(f->text, f->len, &u);
	if (r < 0) {
		sb_assert(u.port == 0);
		return 0;
	}
	sb_assert(u.port > 0 && u.host[0] && memchr(u.host, '\0', sizeof(u.host)));
	for (const char *c = u.host; *c; c++)
		sb_assert((unsigned char)*c > 0x20 && *c != 0x7f && !strchr("/?#@\\", *c));
	sb_assert(strcmp(u.scheme, "https") == 0 || strcmp(u.scheme, "http") == 0);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static conf_reader *const readers[] = {
		conf_npmrc,	  conf_npm_source, conf_pip,	      conf_pip_source,
		conf_apt_list,	  conf_apt_sources, conf_apt_proxy,   conf_cargo,
		conf_cargo_index, conf_go_proxy,   conf_go_sumdb,     conf_go_source_proxy,
		conf_go_source_sumdb, conf_git,
	};
	struct text t;
	unsigned int line = 0;
	int r;

	if (len == 0)
		return 0;
	t = (struct text){ (const char *)data + 1, len - 1 };
	r = readers[data[0] % SB_ARRAY_LEN(readers)](t.p, t.len, on_found, &t, &line);
	sb_assert(r == 0 || r == -7 /* E2BIG */ || r == -74 /* EBADMSG */);
	return 0;
}
