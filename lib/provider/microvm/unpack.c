/*
 * Compressed kernels. libarchive is loaded when one has to be unpacked, which is once for each
 * kernel: as a linked library it and what it needs (an XML parser, ICU, libstdc++) would cost
 * every start of sendbox and of the monitor several milliseconds.
 */
#include <archive.h>
#include <archive_entry.h>
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "provider/microvm/cache.h"

#define LIBRARY "libarchive.so.13"
#define CALLS(X)                                                                                   \
	X(archive_read_new)                                                                        \
	X(archive_read_free)                                                                       \
	X(archive_read_support_filter_gzip)                                                        \
	X(archive_read_support_filter_xz)                                                          \
	X(archive_read_support_filter_zstd)                                                        \
	X(archive_read_support_filter_lz4)                                                         \
	X(archive_read_support_format_raw)                                                         \
	X(archive_read_open_memory)                                                                \
	X(archive_read_next_header)                                                                \
	X(archive_filter_count)                                                                    \
	X(archive_read_data)

#define MEMBER(name) __typeof__(&name) name;
static struct {
	CALLS(MEMBER)
} lib;

/* Return: 0; -ELIBACC. The library stays for good. */
static int load(void)
{
	static bool loaded;
	void *h;

	if (loaded)
		return 0;
	h = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!h) {
		sb_debug("%s", dlerror());
		return -ELIBACC;
	}
#define RESOLVE(name)                                                                              \
	do {                                                                                       \
		void *sym = dlsym(h, #name);                                                       \
		if (!sym)                                                                          \
			return -ELIBACC;                                                           \
		memcpy(&lib.name, &sym, sizeof(sym));                                              \
	} while (0);
	CALLS(RESOLVE)
	loaded = true;
	return 0;
}

static void reader_free(struct archive **a)
{
	if (*a)
		(void)lib.archive_read_free(*a);
}

static int unpack(struct archive *a, const void *p, size_t len, struct sb_buf *out)
{
	struct archive_entry *e;
	uint8_t chunk[65536];

	if (lib.archive_read_support_filter_gzip(a) != ARCHIVE_OK ||
	    lib.archive_read_support_filter_xz(a) != ARCHIVE_OK ||
	    lib.archive_read_support_filter_zstd(a) != ARCHIVE_OK ||
	    lib.archive_read_support_filter_lz4(a) != ARCHIVE_OK ||
	    lib.archive_read_support_format_raw(a) != ARCHIVE_OK)
		return -ENOMEM;
	if (lib.archive_read_open_memory(a, p, len) != ARCHIVE_OK ||
	    lib.archive_read_next_header(a, &e) != ARCHIVE_OK || lib.archive_filter_count(a) < 2)
		return -EBADMSG;
	for (;;) {
		la_ssize_t n = lib.archive_read_data(a, chunk, sizeof(chunk));

		if (n < 0)
			return -EBADMSG;
		if (n == 0)
			return out->len == 0 ? -EBADMSG : 0;
		sb_buf_add(out, chunk, (size_t)n);
		if (sb_buf_error(out) < 0)
			return sb_buf_error(out);
	}
}

int sb_unpack(const void *p, size_t len, size_t cap, uint8_t **ret, size_t *ret_len)
{
	SB_CLEANUP(reader_free) struct archive *a = NULL;
	sb_autobuf struct sb_buf out = { 0 };
	int e = load();

	if (e < 0)
		return e;
	sb_buf_init(&out, cap);
	a = lib.archive_read_new();
	if (!a)
		return -ENOMEM;
	e = unpack(a, p, len, &out);
	if (e < 0)
		return e;
	*ret = sb_take(&out.data);
	*ret_len = out.len;
	return 0;
}
