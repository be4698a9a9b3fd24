#ifndef SB_PROVIDER_MICROVM_MODULES_H
#define SB_PROVIDER_MICROVM_MODULES_H
/*
 * Which kernel modules go into the guest, in load order. Pure: the texts of modules.dep and
 * modules.builtin in, a list of paths out.
 *
 * Source: modules.dep(5) of kmod: "path: dependency ...", dependencies in reverse load order.
 */
#include "base/buf.h"
#include "base/err.h"

#define SB_MODULES_MAX 64
#define SB_MODULES_TEXT_MAX (16U << 20) /* of modules.dep and of modules.builtin, bytes */
#define SB_MODULES_PATH_MAX 255

struct sb_module_want {
	const char *name; /* with '_' for '-' */
	bool required;
};

/* What every guest needs, and what one with a network needs on top; a NULL name ends each. */
extern const struct sb_module_want sb_modules_wanted[];
extern const struct sb_module_want sb_modules_net[];
extern const struct sb_module_want sb_modules_disk[]; /* one with layers or a disk */
extern const struct sb_module_want sb_modules_upper[]; /* one with a disk, after those */

/*
 * The same lists as a file of the guest bundle: "sendbox-modules 1", then a line
 * "boot|net|disk|upper required|optional NAME" each, in that order of the lists.
 */
#define SB_MODULES_WANT_MAX 32 /* of each list */
#define SB_MODULES_WANT_TEXT_MAX 8192
struct sb_module_wants {
	struct sb_module_want boot[SB_MODULES_WANT_MAX + 1]; /* names point into the text */
	struct sb_module_want net[SB_MODULES_WANT_MAX + 1];
	struct sb_module_want disk[SB_MODULES_WANT_MAX + 1];
	struct sb_module_want upper[SB_MODULES_WANT_MAX + 1];
};
/* The lists of this program as text. Errors are @out's. */
void sb_modules_want_write(struct sb_buf *out);
/*
 * sb_modules_want_parse - strict inverse; @text is changed, and must live as long as @ret
 * @text: NUL-terminated, @len bytes before that
 * Return: 0; -EBADMSG.
 */
SB_MUST_CHECK int sb_modules_want_parse(char *text, size_t len, struct sb_module_wants *ret);

struct sb_module_list {
	size_t n;
	char path[SB_MODULES_MAX][SB_MODULES_PATH_MAX + 1]; /* beneath the modules directory */
};

/*
 * sb_modules_pick - resolve @want against the two texts
 * @dep, @builtin: NUL-terminated; either may be ""
 * @ret: set on success only; each path is relative, has no ".." and ends in .ko, .ko.gz, .ko.xz
 *       or .ko.zst; a path comes after all it depends on and appears once
 *
 * Return: 0; -ENOPKG: a required one is neither module nor built in (all of them named in @err);
 * -EBADMSG: malformed text or a bound is exceeded.
 */
SB_MUST_CHECK int sb_modules_pick(const char *dep, const char *builtin,
				  const struct sb_module_want *want, struct sb_module_list *ret,
				  struct sb_err *err);

bool sb_modules_has(const struct sb_module_list *l, const char *path);

/* File name within the guest: last component, without a packer's suffix. @out: 256 bytes. */
void sb_modules_guest_name(const char *path, char *out);

/*
 * sb_modules_plain_len - length of a module file without the signature that may be appended
 *
 * The modules are bound by the digest of the initramfs, and checking six signatures takes an emulated
 * guest 20 to 30 ms.
 * Return: at most @len. Source: include/linux/module_signature.h.
 */
size_t sb_modules_plain_len(const void *p, size_t len);

/* Whether the text of a kernel's configuration says that it takes modules without signature. */
bool sb_modules_sig_optional(const char *config);

#endif
