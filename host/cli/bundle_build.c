#include "bundle_build.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/num.h"
#include "bundle_sbom.h"
#include "core/plan.h"
#include "crypto/crypto.h"
#include "provider/bundle_make.h"
#include "provider/microvm/initramfs.h"
#include "provider/microvm/modules.h"

#define LATEST 253402300799ULL /* the last second of the year 9999 */

int bundle_build_time(time_t *ret, struct sb_err *err)
{
	const char *s = getenv("SOURCE_DATE_EPOCH");
	uint64_t t = 0;

	if (s && sb_num_u64(s, 0, LATEST, &t) < 0)
		return sb_err_set(err, -EINVAL, "SOURCE_DATE_EPOCH=\"%.60s\": must be seconds since "
				  "1970 in decimal", s);
	*ret = (time_t)t;
	return 0;
}

/* The machine that an ELF program is for, as uname -m has it. */
static const char *machine_of(const void *p, size_t len)
{
	Elf64_Ehdr h;

	if (len < sizeof(h))
		return NULL;
	memcpy(&h, p, sizeof(h));
	if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64)
		return NULL;
	return h.e_machine == EM_X86_64 ? "x86_64" : h.e_machine == EM_AARCH64 ? "aarch64" : NULL;
}

static int read_part(int from, const char *name, size_t max, char **ret, size_t *ret_len,
		     struct sb_err *err)
{
	int r = sb_fd_read_file(from, name, max, ret, ret_len);

	return r < 0 ? sb_err_set(err, r, "cannot read the guest part %s: %s", name, strerror(-r))
		     : 0;
}

static void set(struct sb_bundle_make *m, enum sb_bundle_kind k, const void *p, size_t len)
{
	m->parts[k].data = p;
	m->parts[k].len = len;
}

int bundle_build(int from, int out, const struct bundle_build *b, struct sb_err *err)
{
	struct sb_bundle_make m = { .release = b->release,
				    .sequence = b->sequence,
				    .minimum_sequence = b->minimum_sequence,
				    .plan_version = SB_PLAN_VERSION,
				    .mtime = b->created };
	struct bundle_sbom_in in = { .release = b->release };
	autosbom struct bundle_sbom sbom = { 0 };
	sb_autobuf struct sb_buf modules = { 0 };
	sb_autobuf struct sb_buf base = { 0 };
	sb_autofree char *guest = NULL;
	sb_autofree char *components = NULL;
	size_t len;
	char created[32];
	struct tm tm;
	int r = read_part(from, "sendbox-guest", SB_BUNDLE_GUEST_MAX, &guest, &len, err);

	if (r == 0)
		r = read_part(from, BUNDLE_COMPONENTS, BUNDLE_COMPONENTS_MAX, &components,
			      &in.components_len, err);
	if (r < 0)
		return r;
	m.architecture = in.architecture = machine_of(guest, len);
	if (!m.architecture)
		return sb_err_set(err, -ENOEXEC, "sendbox-guest is no program for x86_64 or aarch64");
	set(&m, SB_BUNDLE_GUEST, guest, len);
	sb_buf_init(&modules, SB_MODULES_WANT_TEXT_MAX);
	sb_buf_init(&base, SB_BUNDLE_TEXT_MAX);
	sb_modules_want_write(&modules);
	sb_initramfs_base(&base);
	if (sb_buf_error(&modules) < 0 || sb_buf_error(&base) < 0 ||
	    !gmtime_r(&b->created, &tm) ||
	    strftime(created, sizeof(created), "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		return sb_err_set(err, -ENOMEM, "out of memory");
	in.components = components;
	in.created = created;
	sb_sha256(guest, len, in.guest_sha256);
	r = bundle_sbom_make(&in, &sbom, err);
	if (r < 0)
		return r;
	set(&m, SB_BUNDLE_MODULES, modules.data, modules.len);
	set(&m, SB_BUNDLE_INITRAMFS, base.data, base.len);
	set(&m, SB_BUNDLE_INVENTORY, sbom.inventory, strlen(sbom.inventory));
	set(&m, SB_BUNDLE_SPDX, sbom.spdx, strlen(sbom.spdx));
	set(&m, SB_BUNDLE_CYCLONEDX, sbom.cyclonedx, strlen(sbom.cyclonedx));
	return sb_bundle_make(out, &m, err);
}
