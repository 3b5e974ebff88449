/* SPDX-License-Identifier: MIT */
/*
 * recover_pages.h -- the pages that a recovery holds in memory.
 *
 * WHAT      A bounded set of pages by file and number; memory is taken as they come.
 * NOT HERE  Redoing records in them, and writing them (recover_redo).
 * OWNER     struct xac_redo_pages belongs to the caller.
 *
 * INVARIANTS
 *   (1) A page is in the set at most once; n <= max.
 *   (2) The bytes of a page do not move while it is in the set.
 */
#ifndef XAC_RECOVER_PAGES_H
#define XAC_RECOVER_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/annot.h"

/* A page in memory. */
struct xac_redo_frame {
    uint64_t page;
    uint32_t file;
    uint32_t no; /* of its bytes                                                      */
};

struct xac_redo_pages {
    uint32_t page_size;
    uint32_t max;
    uint32_t n;
    uint32_t slots;               /* a power of two                                   */
    struct xac_redo_frame *frame; /* max                                              */
    uint32_t *slot;               /* hash table of frame number + 1, 0 is free        */
    uint8_t *bytes;               /* max pages of address space                       */
};

/* xac_redo_hash -- of a page of a file. */
static inline uint64_t
xac_redo_hash(uint32_t file, uint64_t page)
{
    uint64_t h = (page + UINT64_C(0x9e3779b97f4a7c15) * ((uint64_t)file + 1))
                 * UINT64_C(0xbf58476d1ce4e5b9);

    return h ^ (h >> 29);
}

/*
 * xac_redo_pages_init -- an empty set of as many pages as fit into bytes_max, at least one;
 * ret 0 or ENOMEM.  Free it in any case.
 */
int xac_redo_pages_init(struct xac_redo_pages *p, uint32_t page_size, uint64_t bytes_max);
void xac_redo_pages_free(struct xac_redo_pages *p);

/* xac_redo_pages_find -- bytes of a page; NULL if it is not in the set. */
uint8_t *xac_redo_pages_find(const struct xac_redo_pages *p, uint32_t file,
                             uint64_t page);

/* xac_redo_pages_add -- bytes, not yet set, of a page that is not in the set; NULL if the
   set is full. */
uint8_t *xac_redo_pages_add(struct xac_redo_pages *p, uint32_t file, uint64_t page);

/*
 * xac_redo_pages_sort -- bring p->frame[0..n) into the order of files and pages.  Nothing
 * but clear, free and xac_redo_pages_at may follow.
 */
void xac_redo_pages_sort(struct xac_redo_pages *p);

/* xac_redo_pages_at -- bytes of frame i. */
static inline uint8_t *
xac_redo_pages_at(const struct xac_redo_pages *p, const struct xac_redo_frame *frame)
{
    xac_assert(frame->no < p->n);
    return p->bytes + (size_t)frame->no * p->page_size;
}

/* xac_redo_pages_clear -- no page is in the set. */
void xac_redo_pages_clear(struct xac_redo_pages *p);

#endif /* XAC_RECOVER_PAGES_H */
