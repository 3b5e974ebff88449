/* SPDX-License-Identifier: MIT */
/*
 * recover_next.h -- finding the next generation of the log behind the end of one.
 *
 * WHAT      Every recovery begins another generation, behind the old one.  The log of a backup
 *           that is rolled forward has several, perhaps with segments of several sizes.
 * NOT HERE  Checking the end of the old one (recover).
 * LOCK      The caller holds the gate.  Nothing here writes.
 */
#ifndef XAC_RECOVER_NEXT_H
#define XAC_RECOVER_NEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "log/recover_scan.h"

/* The first existing block of a later generation. */
struct xac_next {
    uint32_t generation; /* 0: there is none                                          */
    uint32_t newest;     /* the last generation of all                                */
    uint64_t lsn;
    uint64_t segment_bytes;
    bool follows; /* it is at the place where a recovery from this end begins        */
};

/* xac_next_start -- where the next generation begins after one that ends there, if its segments can
   be used: the next multiple of XAC_LSN_GENERATION_ALIGN. */
uint64_t xac_next_start(uint64_t end);

/*
 * xac_next_find -- find the generation behind the one of `scan`, which ends at `end`.
 *
 * A generation that began at another place, because of damage or missing log, does not follow.
 * ret  as xac_scan_block, ENOMEM.
 */
int xac_next_find(struct xac_scan *scan, uint64_t end, struct xac_next *out);

/* xac_next_has_come -- is there a valid block at `end` now, where `scan` found none? */
bool xac_next_has_come(const struct xac_scan *scan, uint64_t end);

#endif /* XAC_RECOVER_NEXT_H */
