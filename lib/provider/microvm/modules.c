#include "provider/microvm/modules.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"

/*
 * Nothing else: a module that no device of the VM needs is time at boot and code within reach.
 * The two optional ones go with devices that work without them.
 */
const struct sb_module_want sb_modules_wanted[] = {
	{ "virtio_mmio", true }, { "virtio_console", true },  { "fuse", true },
	{ "overlay", true },     { "virtio_balloon", false },
#if defined(__aarch64__)
	{ "virtio_rng", false }, /* x86 guests have RDRAND */
#endif
	{ NULL, false },
};

/* crc32c_generic is what libcrc32c asks for without naming it as a dependency. */
const struct sb_module_want sb_modules_net[] = {
	{ "crc32c_generic", false }, { "nf_tables", true }, { "nft_tproxy", true },
	{ NULL, false },
};

/* The same: erofs needs libcrc32c, too. */
const struct sb_module_want sb_modules_disk[] = {
	{ "crc32c_generic", false }, { "virtio_blk", true }, { "erofs", true },
	{ NULL, false },
};

/* crc32c_generic is what ext4 asks for by the algorithm's name. */
const struct sb_module_want sb_modules_upper[] = {
	{ "crc32c_generic", false }, { "ext4", true },
	{ NULL, false },
};

#define WANT_HEAD "sendbox-modules 1\n"
static const char *const want_lists[] = { "boot ", "net ", "disk ", "upper " };
static const char *const want_needs[] = { "optional ", "required " };

void sb_modules_want_write(struct sb_buf *out)
{
	const struct sb_module_want *const lists[] = { sb_modules_wanted, sb_modules_net,
						       sb_modules_disk, sb_modules_upper };

	sb_buf_add_str(out, WANT_HEAD);
	for (size_t i = 0; i < SB_ARRAY_LEN(lists); i++)
		for (const struct sb_module_want *w = lists[i]; w->name; w++)
			sb_buf_addf(out, "%s%s%s\n", want_lists[i], want_needs[w->required],
				    w->name);
}

/* If *@p starts with one of the @m words, step over it. Return: which; -1. */
static int either(char **p, const char *const *words, int m)
{
	for (int i = 0; i < m; i++) {
		size_t n = strlen(words[i]);

		if (strncmp(*p, words[i], n) == 0) {
			*p += n;
			return i;
		}
	}
	return -1;
}

int sb_modules_want_parse(char *text, size_t len, struct sb_module_wants *ret)
{
	struct sb_module_wants w = { 0 };
	struct sb_module_want *const to[] = { w.boot, w.net, w.disk, w.upper };
	size_t n[SB_ARRAY_LEN(to)] = { 0 };
	int last = 0;
	char *p = text;

	if (len > SB_MODULES_WANT_TEXT_MAX || strlen(text) != len ||
	    strncmp(text, WANT_HEAD, sizeof(WANT_HEAD) - 1) != 0)
		return -EBADMSG;
	p += sizeof(WANT_HEAD) - 1;
	while (*p) {
		int list = either(&p, want_lists, SB_ARRAY_LEN(want_lists));
		int need = either(&p, want_needs, SB_ARRAY_LEN(want_needs));
		size_t name = strspn(p, "abcdefghijklmnopqrstuvwxyz0123456789_");

		if (list < 0 || need < 0 || name == 0 || name > 55 || p[name] != '\n' ||
		    n[list] == SB_MODULES_WANT_MAX || list < last)
			return -EBADMSG;
		last = list;
		to[list][n[list]++] = (struct sb_module_want){ p, need == 1 };
		p[name] = '\0';
		p += name + 1;
	}
	if (n[0] == 0)
		return -EBADMSG;
	*ret = w;
	return 0;
}

static const char *const suffixes[] = { ".ko", ".ko.gz", ".ko.xz", ".ko.zst" };

/* Length of the module path @p without suffix, or 0 when it has none of the known ones. */
static size_t stem_len(const char *p, size_t len)
{
	for (size_t i = 0; i < SB_ARRAY_LEN(suffixes); i++) {
		size_t n = strlen(suffixes[i]);

		if (len > n && memcmp(p + len - n, suffixes[i], n) == 0)
			return len - n;
	}
	return 0;
}

static bool path_ok(const char *p, size_t len)
{
	if (len == 0 || len > SB_MODULES_PATH_MAX || *p == '/' || stem_len(p, len) == 0)
		return false;
	for (size_t i = 0; i < len; i++) {
		bool start = i == 0 || p[i - 1] == '/';

		if ((unsigned char)p[i] <= ' ' || (unsigned char)p[i] >= 0x7f)
			return false;
		if (start && (p[i] == '.' || p[i] == '/')) /* "..", ".", "//", hidden */
			return false;
	}
	return p[len - 1] != '/';
}

/* Whether the module at path @p is called @name. */
static bool is_named(const char *p, size_t len, const char *name)
{
	size_t end = stem_len(p, len);
	size_t start = end;
	size_t n = strlen(name);

	while (start > 0 && p[start - 1] != '/')
		start--;
	if (end - start != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if ((p[start + i] == '-' ? '_' : p[start + i]) != name[i])
			return false;
	return true;
}

static bool builtin_has(const char *text, const char *name)
{
	while (*text) {
		size_t len = strcspn(text, "\n");

		if (is_named(text, len, name))
			return true;
		text += len;
		text += *text == '\n';
	}
	return false;
}

/* The line of modules.dep that starts with the module called @name. */
static const char *dep_line(const char *text, const char *name)
{
	while (*text) {
		size_t len = strcspn(text, "\n");
		size_t path = strcspn(text, ":\n");

		if (path < len && is_named(text, path, name))
			return text;
		text += len;
		text += *text == '\n';
	}
	return NULL;
}

static int add(struct sb_module_list *l, const char *p, size_t len)
{
	if (!path_ok(p, len))
		return -EBADMSG;
	for (size_t i = 0; i < l->n; i++)
		if (strlen(l->path[i]) == len && memcmp(l->path[i], p, len) == 0)
			return 0;
	if (l->n == SB_MODULES_MAX)
		return -EBADMSG;
	memcpy(l->path[l->n], p, len);
	l->path[l->n][len] = '\0';
	l->n++;
	return 0;
}

/* Dependencies from the last to the first, then the module itself. */
static int add_line(struct sb_module_list *l, const char *line)
{
	size_t len = strcspn(line, "\n");
	size_t path = strcspn(line, ":");
	size_t end = len;
	int r;

	while (end > path + 1) {
		size_t start = end;

		while (start > path + 1 && line[start - 1] != ' ')
			start--;
		if (start < end) {
			r = add(l, line + start, end - start);
			if (r < 0)
				return r;
		}
		end = start > path + 1 ? start - 1 : path + 1;
	}
	return add(l, line, path);
}

int sb_modules_pick(const char *dep, const char *builtin, const struct sb_module_want *want,
		    struct sb_module_list *ret, struct sb_err *err)
{
	sb_autofree struct sb_module_list *l = calloc(1, sizeof(*l));
	sb_autobuf struct sb_buf missing = { 0 };

	if (!l)
		return -ENOMEM;
	sb_buf_init(&missing, 300);
	for (; want->name; want++) {
		const char *line = dep_line(dep, want->name);

		if (line) {
			if (add_line(l, line) < 0)
				return sb_err_set(err, -EBADMSG, "modules.dep is malformed at %s",
						  want->name);
		} else if (want->required && !builtin_has(builtin, want->name)) {
			sb_buf_addf(&missing, "%s%s", missing.len > 0 ? ", " : "", want->name);
		}
	}
	if (missing.len > 0)
		return sb_err_set(err, -ENOPKG,
				  "the kernel lacks %.*s (neither a module nor built in)",
				  (int)missing.len, (const char *)missing.data);
	*ret = *l;
	return 0;
}

bool sb_modules_has(const struct sb_module_list *l, const char *path)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->path[i], path) == 0)
			return true;
	return false;
}

void sb_modules_guest_name(const char *path, char *out)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	size_t stem = stem_len(base, strlen(base));

	(void)snprintf(out, 256, "%.*s.ko", (int)SB_MIN(stem, (size_t)250), base);
}

size_t sb_modules_plain_len(const void *p, size_t len)
{
	static const char magic[] = "~Module signature appended~\n";
	const size_t magic_len = sizeof(magic) - 1;
	const size_t info_len = 12; /* 3 unused, signer's and key's length, 3 unused, be32 length */
	const uint8_t *info;
	uint64_t cut;

	if (len < magic_len + info_len ||
	    memcmp((const uint8_t *)p + len - magic_len, magic, magic_len) != 0)
		return len;
	info = (const uint8_t *)p + len - magic_len - info_len;
	cut = magic_len + info_len + info[3] + info[4];
	cut += (uint64_t)info[8] << 24 | (uint64_t)info[9] << 16 | (uint64_t)info[10] << 8 | info[11];
	return cut < len ? len - (size_t)cut : len;
}

bool sb_modules_sig_optional(const char *config)
{
	return strstr(config, "\n# CONFIG_MODULE_SIG_FORCE is not set\n") ||
	       strstr(config, "\n# CONFIG_MODULE_SIG is not set\n");
}
