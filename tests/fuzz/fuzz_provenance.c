/* Signature files: what parses is canonical. Signers files (they begin with a blank here): what parses
 * has no key twice and nobody required who is not there. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/provenance.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void signatures(const char *data, size_t size)
{
	sb_autoprov struct sb_prov_file f = { .n = 0 };
	size_t at = 0;

	if (sb_prov_parse(data, size, &f, NULL) < 0) {
		if (f.sigs)
			abort();
		return;
	}
	for (size_t i = 0; i < f.n; i++) {
		char *line = NULL;
		uint8_t *payload = NULL;
		size_t len = 0;

		if (sb_prov_line(&f.sigs[i], &line, &len) < 0 || len > size - at ||
		    memcmp(line, data + at, len) != 0)
			abort();
		at += len;
		if (sb_prov_payload(&f.sigs[i], &payload, &len) < 0)
			abort();
		free(line);
		free(payload);
	}
	if (at != size || f.n == 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	sb_autosigners struct sb_signers s = { .n = 0 };

	if (size == 0 || data[0] != ' ') {
		signatures((const char *)data, size);
		return 0;
	}
	if (sb_signers_parse((const char *)data, size, &s, NULL) == 0) {
		if (s.threshold > s.n)
			abort();
		for (size_t i = 0; i < s.n; i++)
			for (size_t j = 0; j < i; j++)
				if (memcmp(s.v[i].key, s.v[j].key, 32) == 0)
					abort();
	} else if (s.v) {
		abort();
	}
	return 0;
}
