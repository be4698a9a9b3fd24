/*
 * System calls newer than the libseccomp of Debian 12; the same numbers on all machines. Included
 * by the two build-time programs alone.
 */
static const struct {
	const char *name;
	int nr;
} newer[] = {
	{ "cachestat", 451 },	     { "fchmodat2", 452 },	  { "map_shadow_stack", 453 },
	{ "futex_wake", 454 },	     { "futex_wait", 455 },	  { "futex_requeue", 456 },
	{ "statmount", 457 },	     { "listmount", 458 },	  { "lsm_get_self_attr", 459 },
	{ "lsm_set_self_attr", 460 }, { "lsm_list_modules", 461 }, { "mseal", 462 },
	{ "setxattrat", 463 },	     { "getxattrat", 464 },	  { "listxattrat", 465 },
	{ "removexattrat", 466 },
};
