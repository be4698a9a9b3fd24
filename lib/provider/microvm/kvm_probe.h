#ifndef SB_PROVIDER_MICROVM_KVM_PROBE_H
#define SB_PROVIDER_MICROVM_KVM_PROBE_H
/* Can /dev/kvm run a stock kernel, and not merely be opened? */
#include "base/mem.h"

struct sb_kvm_result {
	bool usable;
	char text[160];   /* what was found, one line */
	char remedy[200]; /* "" when usable */
};

/*
 * sb_kvm_probe - open, ask, and run 200,000 rounds of a 64-bit loop in a bare virtual CPU
 *
 * Hardware does that in about 0.1 ms; a KVM that emulates needs seconds, and a stock kernel does
 * not come up on it. In a child, so that neither a hang nor a crash of the probe is ours.
 * Blocks: a few ms when good, about 70 ms when bad, 2 s at most. Nothing is remembered.
 */
void sb_kvm_probe(struct sb_kvm_result *ret);

#endif
