/* SPDX-License-Identifier: MIT */
/*
 * pagelist.c -- see pagelist.h.
 */
#include <config.h>

#include "backup/pagelist.h"

#include <stdbool.h>
#include <string.h>

#include "base/annot.h"
#include "base/digest.h"
#include "base/sys.h"

uint64_t
xac_pagelist_entry(const uint8_t *page, size_t page_size)
{
    uint64_t sum;

    if (xac_bytes_are_zero(page, page_size))
        return 0;
    sum = xac_xxh64(page, page_size);
    return sum != 0 ? sum : 1;
}

uint64_t
xac_pagelist_of_sum(uint64_t xxh64, uint64_t of_zeros)
{
    if (xxh64 == of_zeros)
        return 0;
    return xxh64 != 0 ? xxh64 : 1;
}

/* add -- a block to the check. */
static void
add(struct xac_pagelist *l, const uint64_t entry[XAC_PAGELIST_ENTRIES])
{
    uint64_t link[3] = {l->check, l->at, xac_xxh64(entry, XAC_PAGELIST_BLOCK)};

    l->check = xac_xxh64(link, sizeof link);
}

int
xac_pagelist_put(struct xac_pagelist *l, const uint64_t entry[XAC_PAGELIST_ENTRIES])
{
    int rc = 0;

    xac_assert(l->fd >= 0);
    if (!xac_bytes_are_zero(entry, XAC_PAGELIST_BLOCK)) {
        add(l, entry);
        rc = xac_write_full(l->fd, entry, XAC_PAGELIST_BLOCK,
                            (l->first + l->at) * XAC_PAGELIST_BLOCK);
    }
    l->at++;
    return rc;
}

int
xac_pagelist_get(struct xac_pagelist *l, uint64_t entry[XAC_PAGELIST_ENTRIES])
{
    size_t got;
    int rc = 0;

    memset(entry, 0, XAC_PAGELIST_BLOCK);
    if (l->fd >= 0 && l->at < l->end)
        rc = xac_read_full(l->fd, entry, XAC_PAGELIST_BLOCK,
                           (l->first + l->at) * XAC_PAGELIST_BLOCK, &got);
    if (rc == 0 && !xac_bytes_are_zero(entry, XAC_PAGELIST_BLOCK))
        add(l, entry);
    l->at++;
    return rc;
}
