/* SPDX-License-Identifier: MIT */
/*
 * ptab.c -- see ptab.h.  Up to three levels of 1,024 links above leaves of 64 entries.  A
 * root word is the offset of the node on top, and in its low bits, which are 0 in an offset,
 * how many levels of links there are.
 */
#include <config.h>

#include "shared/ptab.h"

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
    xac_assert(made % XAC_LINE_BYTES == 0);
    /* Release: pairs with the acquire above. */
    if (atomic_compare_exchange_strong_explicit(link, &at, made, memory_order_acq_rel,
                                                memory_order_acquire))
        return made;
    xac_shm_free(shm, made, bytes);
    return at;
}

/* bytes_of -- of a node with so many levels of links, itself included. */
XAC_SIGSAFE static size_t
bytes_of(unsigned levels)
{
    xac_assert(levels <= XAC_PTAB_LEVELS);
    return levels > 0 ? XAC_PTAB_NODE_BYTES : XAC_PTAB_LEAF_BYTES;
}

/* levels_for -- levels of links that a page number needs. */
XAC_SIGSAFE static unsigned
levels_for(uint64_t page_no)
{
    unsigned levels = 0;

    while (page_no >> (XAC_PTAB_LEAF_BITS + levels * XAC_PTAB_NODE_BITS) != 0)
        levels++;
    xac_assert(levels <= XAC_PTAB_LEVELS);
    return levels;
}

/*
 * top -- the root word of a tree that reaches up to a page, grown if it may be made; 0: it
 * does not reach, or there is no room.  A higher tree has the old one below its first link.
 */
XAC_SIGSAFE static uint64_t
top(struct xac_shm *shm, _Atomic uint64_t *rootp, uint64_t page_no, bool may_make)
{
    unsigned need = levels_for(page_no);
    /* Acquire: pairs with the exchange below; a node is filled before it is seen. */
    uint64_t root = atomic_load_explicit(rootp, memory_order_acquire);

    xac_assert(page_no <= XAC_PAGE_NO_MAX);
    while (root == 0 || (root & XAC_PTAB_LEVEL_MASK) < need) {
        unsigned levels = root == 0 ? need : (unsigned)(root & XAC_PTAB_LEVEL_MASK) + 1;
        uint64_t made = may_make ? xac_shm_alloc(shm, bytes_of(levels)) : 0;

        if (made == 0)
            return 0;
        if (root != 0)
            atomic_store_explicit((_Atomic uint64_t *)xac_shm_at(shm, made),
                                  root & ~XAC_PTAB_LEVEL_MASK, memory_order_relaxed);
        /* Release: pairs with the acquire above and on failure. */
        if (atomic_compare_exchange_strong_explicit(rootp, &root, made | levels,
                                                    memory_order_acq_rel,
                                                    memory_order_acquire))
            root = made | levels;
        else
            xac_shm_free(shm, made, bytes_of(levels));
    }
    xac_assert((root & XAC_PTAB_LEVEL_MASK) >= need);
    xac_require((root & XAC_PTAB_LEVEL_MASK) <= XAC_PTAB_LEVELS);
    return root;
}

/* find -- entry of a page as it lies in its leaf; NULL: none, or no room. */
XAC_SIGSAFE static struct xac_page *
find(struct xac_shm *shm, _Atomic uint64_t *rootp, uint64_t page_no, bool may_make)
{
    uint64_t root = top(shm, rootp, page_no, may_make);
    uint64_t at = root & ~XAC_PTAB_LEVEL_MASK;

    xac_assert(page_no <= XAC_PAGE_NO_MAX);
    for (unsigned levels = (unsigned)(root & XAC_PTAB_LEVEL_MASK); levels > 0 && at != 0;
         levels--) {
        _Atomic uint64_t *node = (_Atomic uint64_t *)xac_shm_at(shm, at);

        at = child(shm,
                   &node[page_no >> xac_ptab_shift(levels) & (XAC_PTAB_NODE_LINKS - 1)],
                   bytes_of(levels - 1), may_make);
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

    xac_assert(file != 0);
    xac_assert(page_no <= XAC_PAGE_NO_MAX);
    /* All store the same value. */
    if (page != NULL && atomic_load_explicit(&page->id, memory_order_relaxed) == 0)
        atomic_store_explicit(&page->id, xac_page_id(file, page_no),
                              memory_order_relaxed);
    xac_assert(page == NULL
               || atomic_load_explicit(&page->id, memory_order_relaxed)
                      == xac_page_id(file, page_no));
    return page;
}

XAC_SIGSAFE struct xac_page *
xac_ptab_find(struct xac_shm *shm, _Atomic uint64_t *rootp, uint64_t page_no)
{
    return find(shm, rootp, page_no, false);
}

/* node_is_clear -- what hangs on a node has no version. */
static bool
node_is_clear(const struct xac_shm *shm, uint64_t at, unsigned levels)
{
    const struct xac_page *leaf = (const struct xac_page *)xac_shm_at(shm, at);
    const _Atomic uint64_t *node = (const _Atomic uint64_t *)xac_shm_at(shm, at);
    uint64_t n = levels > 0 ? XAC_PTAB_NODE_LINKS : XAC_PTAB_LEAF_PAGES;
    bool is_clear = true;

    xac_assert(levels <= XAC_PTAB_LEVELS);
    for (unsigned i = 0; i < n && is_clear; i++) {
        if (levels == 0) {
            is_clear = atomic_load_explicit(&leaf[i].head, memory_order_relaxed) == 0;
        } else {
            /* Acquire: pairs with the exchange in child. */
            uint64_t below = atomic_load_explicit(&node[i], memory_order_acquire);

            is_clear = below == 0 || node_is_clear(shm, below, levels - 1);
        }
    }
    return is_clear;
}

bool
xac_ptab_is_clear(const struct xac_shm *shm, const _Atomic uint64_t *rootp)
{
    /* Acquire: pairs with the exchange in top. */
    uint64_t root = atomic_load_explicit(rootp, memory_order_acquire);

    xac_require((root & XAC_PTAB_LEVEL_MASK) <= XAC_PTAB_LEVELS);
    return root == 0
           || node_is_clear(shm, root & ~XAC_PTAB_LEVEL_MASK,
                            (unsigned)(root & XAC_PTAB_LEVEL_MASK));
}

/* node_free -- a node and what hangs on it. */
static void
node_free(struct xac_shm *shm, uint64_t at, unsigned levels)
{
    const _Atomic uint64_t *node = (const _Atomic uint64_t *)xac_shm_at(shm, at);

    xac_assert(at % XAC_LINE_BYTES == 0);
    xac_assert(levels <= XAC_PTAB_LEVELS);
    for (unsigned i = 0; levels > 0 && i < XAC_PTAB_NODE_LINKS; i++) {
        uint64_t below = atomic_load_explicit(&node[i], memory_order_relaxed);

        if (below != 0)
            node_free(shm, below, levels - 1);
    }
    xac_shm_free(shm, at, bytes_of(levels));
}

void
xac_ptab_free(struct xac_shm *shm, _Atomic uint64_t *rootp)
{
    uint64_t root = atomic_load_explicit(rootp, memory_order_relaxed);

    xac_assert_slow(xac_ptab_is_clear(shm, rootp));
    /* First, so that a death on the way loses memory and nothing else. */
    atomic_store_explicit(rootp, 0, memory_order_relaxed);
    if (root != 0)
        node_free(shm, root & ~XAC_PTAB_LEVEL_MASK,
                  (unsigned)(root & XAC_PTAB_LEVEL_MASK));
}
