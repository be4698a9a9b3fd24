#include "provider/provider.h"

const struct sb_provider sb_provider_microvm = { .name = "microvm" };
