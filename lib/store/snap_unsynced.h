#ifndef SB_STORE_SNAP_UNSYNCED_H
#define SB_STORE_SNAP_UNSYNCED_H
/*
 * Packs that nobody waited for: packs/.unsynced has their names. A capture that must outlive a power cut
 * may need objects of any of them, and waits for them then; the usual one finds the list empty.
 */
#include "base/mem.h"

/* Before the pack @name gets its name. Return: 0; -errno. */
SB_MUST_CHECK int sb_snap_unsynced_note(int dir, const char *name);
/* Wait for all of the list, and empty it. @any: there were some. Return: 0; -errno: the list is as it was. */
SB_MUST_CHECK int sb_snap_unsynced_settle(int dir, bool *any);

#endif
