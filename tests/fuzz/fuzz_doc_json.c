/* A JSON document: as fuzz_doc_yaml, and what is accepted another reader accepts as well. */
#include <jansson.h>

#include "doc_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	bool good = doc_check(data, len, DOC_JSON);
	json_error_t e;
	json_t *j = json_loadb((const char *)data, len, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &e);

	/* jansson has no room for some numbers; everything else that we take it takes */
	if (good && !j)
		sb_assert(json_error_code(&e) == json_error_numeric_overflow);
	json_decref(j);
	return 0;
}
