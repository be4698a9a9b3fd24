/*
 * A manifest: whatever parses is canonical and keeps the rules. Behind a NUL, a list of modules:
 * whatever parses is written back as it was.
 */
#include <string.h>

#include "core/bundle.h"
#include "provider/microvm/modules.h"

static void modules(const char *p, size_t len)
{
	sb_autofree struct sb_module_wants *w = calloc(1, sizeof(*w));
	sb_autofree char *text = calloc(1, len + 1);
	sb_autobuf struct sb_buf again = { 0 };

	if (!w || !text)
		return;
	memcpy(text, p, len);
	if (sb_modules_want_parse(text, len, w) < 0)
		return;
	sb_buf_init(&again, 1U << 20);
	sb_buf_add_str(&again, "sendbox-modules 1\n");
	for (const struct sb_module_want *m = w->boot; m->name; m++)
		sb_buf_addf(&again, "boot %s %s\n", m->required ? "required" : "optional", m->name);
	for (const struct sb_module_want *m = w->net; m->name; m++)
		sb_buf_addf(&again, "net %s %s\n", m->required ? "required" : "optional", m->name);
	sb_assert(again.len == len && memcmp(again.data, p, len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	sb_automanifest struct sb_bundle_manifest m = { 0 };
	const uint8_t *nul = len > 0 ? memchr(p, 0, len) : NULL;
	size_t n = nul ? (size_t)(nul - p) : len;
	sb_autofree char *again = NULL;
	uint8_t key[32];
	uint8_t sig[64];
	size_t again_len;

	if (nul)
		modules((const char *)nul + 1, len - n - 1);
	if (n == SB_BUNDLE_SIGNATURE_LEN && sb_bundle_signature_parse((const char *)p, key, sig) == 0) {
		char text[SB_BUNDLE_SIGNATURE_LEN + 1];

		sb_bundle_signature_write(key, sig, text);
		sb_assert(memcmp(text, p, n) == 0);
	}
	if (sb_bundle_manifest_parse((const char *)p, n, &m, NULL) < 0) {
		sb_assert(!m.artifacts && !m.release);
		return 0;
	}
	sb_assert(m.minimum_sequence >= 1 && m.minimum_sequence <= m.sequence);
	for (unsigned int k = SB_BUNDLE_GUEST; k < SB_BUNDLE_KINDS; k++) {
		const struct sb_bundle_artifact *a = sb_bundle_find(&m, (enum sb_bundle_kind)k);

		/* two dots within a name are a name; none begins with one */
		sb_assert(a && *a->path != '/' && *a->path != '.' && !strstr(a->path, "/.") &&
			  !strstr(a->path, "//") && !strchr(a->path, '\n'));
	}
	sb_assert(sb_bundle_manifest_write(&m, &again, &again_len, NULL) == 0 && again_len == n &&
		  memcmp(again, p, n) == 0);
	return 0;
}
