/* SPDX-License-Identifier: MIT */
/*
 * ptab.c -- see ptab.h.  Three levels of 1,024 links above leaves of 64 entries.
 */
#include <config.h>

#include "ptab.h"

#include <stdbool.h>

_Static_assert(XAC_PTAB_LEAF_BITS + XAC_PTAB_LEVELS * XAC_PTAB_NODE_BITS
                   == XAC_PAGE_NO_BITS,
               "levels fit");
_Static_assert(sizeof(struct xac_page) == XAC_LINE_BYTES, "entries do not share lines");

/*
 * child -- follow a link, making the node below it if there is none and may_make; ret 0:
 * none, or no room.
 */
XAC_SIGSAFE static uint64_t
child(struct xac_shm *shm, _Atomic uint64_t *link, size_t bytes, bool may_make)
{
    /* Acquire: pairs with the exchange below; a node is zeroed before it is seen. */
    uint64_t at = atomic_load_explicit(link, memory_order_acquire);
    uint64_t made;

    if (xac_likely(at != 0) || !may_make)
        return at;
    made = xac_shm_alloc(shm, bytes);
    if (made == 0)
        return 0;
    /* Release: pairs with the acquire above. */
    if (atomic_compare_exchange_strong_explicit(link, &at, made, memory_order_acq_rel,
                                                memory_order_acquire))
        return made;
    xac_shm_free(shm, made, bytes);
    return at;
}

/* find -- entry of a page as it lies in its leaf; NULL: none, or no room. */
XAC_SIGSAFE static struct xac_page *
find(struct xac_shm *shm, _Atomic uint64_t *rootp, uint64_t page_no, bool may_make)
{
    uint64_t at = child(shm, rootp, XAC_PTAB_NODE_BYTES, may_make);

    xac_assert(page_no <= XAC_PAGE_NO_MAX);
    for (int level = XAC_PTAB_LEVELS; level > 0 && at != 0; level--) {
        _Atomic uint64_t *node = (_Atomic uint64_t *)xac_shm_at(shm, at);

        at = child(shm,
                   &node[page_no >> xac_ptab_shift(level) & (XAC_PTAB_NODE_LINKS - 1)],
                   level > 1 ? XAC_PTAB_NODE_BYTES : XAC_PTAB_LEAF_BYTES, may_make);
    }
    if (at == 0)
        return NULL;
    return (struct xac_page *)xac_shm_at(shm, at) + (page_no & (XAC_PTAB_LEAF_PAGES - 1));
}

XAC_SIGSAFE struct xac_page *
xac_ptab_page(struct xac_shm *shm, _Atomic uint64_t *rootp, uint32_t file,
              uint64_t page_no)
{
    struct xac_page *page = find(shm, rootp, page_no, true);

    /* The same value whoever stores it. */
    if (page != NULL && atomic_load_explicit(&page->id, memory_order_relaxed) == 0)
        atomic_store_explicit(&page->id, xac_page_id(file, page_no),
                              memory_order_relaxed);
    return page;
}

XAC_SIGSAFE struct xac_page *
xac_ptab_find(struct xac_shm *shm, _Atomic uint64_t *rootp, uint64_t page_no)
{
    return find(shm, rootp, page_no, false);
}
