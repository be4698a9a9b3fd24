#ifndef SB_PROVIDER_MICROVM_MICROVM_H
#define SB_PROVIDER_MICROVM_MICROVM_H
/* Parts of the provider's table that live in files of their own. */
#include "provider/provider.h"

void sb_microvm_probe(const struct sb_dirs *dirs, enum sb_accel accel, const char *kernel,
		      struct sb_probe *ret);

#endif
