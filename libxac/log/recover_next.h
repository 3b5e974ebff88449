/* SPDX-License-Identifier: MIT */
/*
 * recover_next.h -- where one generation of the log ends and the next one begins.
 *
 * WHAT      Every recovery begins another generation, behind the old one.  The log of a backup
 *           that is rolled forward holds several, perhaps with segments of several sizes.
 * NOT HERE  Whether the old one ends where it should (recover).
 * LOCK      The caller holds the gate.  Nothing here writes.
 */
#ifndef XAC_RECOVER_NEXT_H
#define XAC_RECOVER_NEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "log/recover_scan.h"

/* The first block of a later generation that there is. */
struct xac_next {
    uint32_t generation; /* 0: there is none                                          */
    uint32_t newest;     /* the last generation of all                                */
    uint64_t lsn;
    uint64_t segment_bytes;
    bool follows; /* it stands where the recovery from this end has begun            */
};

/* xac_next_start -- where a generation begins after one that ends there, if its segments can be
   gone on with: the next multiple of XAC_LSN_GENERATION_ALIGN. */
uint64_t xac_next_start(uint64_t end);

/*
 * xac_next_find -- what comes behind the generation that `scan` is for, which ends at `end`.
 *
 * One that began elsewhere, because of damage or because log is missing, does not follow.
 * ret  as xac_scan_block, ENOMEM.
 */
int xac_next_find(struct xac_scan *scan, uint64_t end, struct xac_next *out);

/* xac_next_has_come -- is there a valid block at `end` now, where `scan` found none? */
bool xac_next_has_come(const struct xac_scan *scan, uint64_t end);

#endif /* XAC_RECOVER_NEXT_H */
