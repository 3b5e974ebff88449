/* SPDX-License-Identifier: MIT */
/*
 * pagelist.h -- the checksums of the pages of a backup, in xac.pages (manifest_format.h).
 *
 * WHAT      Writes or reads the part of one file, block by block, in order; what is zero becomes
 *           a hole.  Computes the check of the whole part.
 * NOT HERE  Where the parts lie (manifest.h), comparing.
 * OWNER     struct xac_pagelist belongs to the caller.
 *
 * INVARIANTS
 *   (1) A part that was read is right only if the check at its end is that of the manifest: a
 *       block that was lost, or became zeros, changes it.
 */
#ifndef XAC_PAGELIST_H
#define XAC_PAGELIST_H

#include <stddef.h>
#include <stdint.h>

#include "log/manifest_format.h"

/* The part of one file. */
struct xac_pagelist {
    int fd;         /* of xac.pages; not owned; -1: reads zeros                       */
    uint64_t first; /* block at which the part begins                                */
    uint64_t at;    /* next block, in the part                                       */
    uint64_t end;   /* to be read: behind it there are zeros                         */
    uint64_t check; /* of the blocks before                                          */
};

/* xac_pagelist_entry -- the entry of a page with these bytes. */
uint64_t xac_pagelist_entry(const uint8_t *page, size_t page_size);

/* xac_pagelist_of_sum -- the entry of a page of which the XXH3-64 is known, and that of a page of
   zeros. */
uint64_t xac_pagelist_of_sum(uint64_t xxh64, uint64_t of_zeros);

/* xac_pagelist_put -- write the next block; ret 0 or errno. */
int xac_pagelist_put(struct xac_pagelist *l, const uint64_t entry[XAC_PAGELIST_ENTRIES]);

/* xac_pagelist_get -- read the next block; behind the end of the file it is zeros.  ret 0 or
   errno. */
int xac_pagelist_get(struct xac_pagelist *l, uint64_t entry[XAC_PAGELIST_ENTRIES]);

#endif /* XAC_PAGELIST_H */
