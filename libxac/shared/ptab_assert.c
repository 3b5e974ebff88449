/* SPDX-License-Identifier: MIT */
/*
 * ptab_assert.c -- whether a file's page table is sound: see the invariants of ptab.h.  Trees
 * grow while we look; what has been seen once stays where it is.
 */
#include <config.h>

#include "shared/ptab.h"

#define NODES_MAX 64 /* that one call looks at */

/* A walk through a tree. */
struct walk {
    const struct xac_shm *shm;
    uint32_t file;
    unsigned nodes_left;
};

static uint64_t
get(const _Atomic uint64_t *word)
{
    /* Acquire: pairs with the exchanges that put nodes in. */
    return atomic_load_explicit(word, memory_order_acquire);
}

/* leaf_assert -- entries, of pages from `first` on. */
static void
leaf_assert(const struct walk *w, const struct xac_page *leaf, uint64_t first)
{
    for (uint64_t i = 0; i < XAC_PTAB_LEAF_PAGES; i++) {
        uint64_t head = get(&leaf[i].head); /* stored behind the id */
        uint64_t id = get(&leaf[i].id);

        xac_require(id == 0 || id == xac_page_id(w->file, first + i)); /* (2) */
        xac_require(id != 0 || head == 0);                             /* (3) */
    }
}

/* node_assert -- a node with so many levels of links, and what hangs on it. */
static void
node_assert(struct walk *w, uint64_t at, unsigned levels, uint64_t first)
{
    const struct xac_shm_head *head = (const struct xac_shm_head *)(void *)w->shm->base;
    const _Atomic uint64_t *link;

    xac_require(at % XAC_LINE_BYTES == 0); /* (1) */
    /* The node was allocated before the link to it was seen; nodes come while we look. */
    xac_require(at + (levels > 0 ? XAC_PTAB_NODE_BYTES : XAC_PTAB_LEAF_BYTES)
                <= get(&head->brk)); /* (1) */
    if (w->nodes_left == 0)
        return;
    w->nodes_left--;
    if (levels == 0) {
        leaf_assert(w, (const struct xac_page *)xac_shm_at(w->shm, at), first);
        return;
    }
    link = (const _Atomic uint64_t *)xac_shm_at(w->shm, at);
    for (uint64_t i = 0; i < XAC_PTAB_NODE_LINKS && w->nodes_left > 0; i++) {
        uint64_t below = get(&link[i]);

        if (below != 0)
            node_assert(w, below, levels - 1, first + (i << xac_ptab_shift(levels)));
    }
}

void
xac_ptab_assert(const struct xac_shm *shm, const _Atomic uint64_t *rootp, uint32_t file)
{
    uint64_t root = get(rootp);
    unsigned levels = (unsigned)(root & XAC_PTAB_LEVEL_MASK);
    struct walk w = {.shm = shm, .file = file, .nodes_left = NODES_MAX};

    xac_require(levels <= XAC_PTAB_LEVELS); /* (1) */
    if (root != 0)
        node_assert(&w, root & ~XAC_PTAB_LEVEL_MASK, levels, 0);
}
