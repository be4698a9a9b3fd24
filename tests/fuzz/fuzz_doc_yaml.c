/* A YAML document: bounds hold, every refusal has a place, accepted text is inside of the limits. */
#include "config/doc_i.h"
#include "doc_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	doc_yaml_inside = true;
	doc_check(data, len, DOC_YAML);
	return 0;
}
