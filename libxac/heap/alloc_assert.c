/* SPDX-License-Identifier: MIT */
/*
 * alloc_assert.c -- whether the header of a chunk is sound: see the invariants of alloc.h.
 * alloc_check.c proves a whole heap; here only pages are looked at that the call has touched
 * anyway, for a look at another page would be a read of the running transaction.
 */
#include <config.h>

#include <stddef.h>

#include "base/annot.h"
#include "heap/alloc_heap.h"

/* page_wrong -- one page descriptor. */
static const char *
page_wrong(const struct xac_heap *h, const struct xac_chunk *c, unsigned p)
{
    const struct xac_slab *s = &c->slab[p];
    bool is_free = (c->used >> p & 1) == 0;
    uint32_t bits;

    if (is_free != (p < c->present && s->kind == XAC_SLAB_FREE))
        return "bit and descriptor of a page disagree"; /* (2) */
    switch (s->kind) {
    case XAC_SLAB_HEADER:
        return p == c->header ? NULL : "a second header";
    case XAC_SLAB_RUN:
        if (s->class >= h->classes->n_runs)
            return "a run of no class";
        return s->bits != 0 || (c->rooms >> s->class & 1) != 0
                   ? NULL
                   : "a run with free slots that rooms rules out"; /* (4) */
    case XAC_SLAB_SLOTS:
        if (s->class < h->classes->n_runs || s->class >= h->classes->count)
            return "slots of no class";
        bits = h->classes->slots[s->class];
        return s->bits >> bits == 0 ? NULL : "a slot behind the last";
    case XAC_SLAB_PAGES:
        return s->bits != 0 && s->bits <= XAC_CHUNK_PAGES - p ? NULL : "too many pages";
    default:
        return s->kind <= XAC_SLAB_META ? NULL : "a page of no kind";
    }
}

const char *
xac_heap_wrong(const struct xac_heap *h, const struct xac_chunk *c,
               const struct xac_chunk_entry *e)
{
    const char *wrong = NULL;

    if (c->magic != XAC_HEAP_CHUNK_MAGIC || c->present > XAC_CHUNK_PAGES
        || c->header >= c->present)
        return "no header";
    if (c->slab[c->header].kind != XAC_SLAB_HEADER)
        return "the header's page is used for something else";
    if (xac_chunk_longest(c->used) > c->longest)
        return "more free pages in a row than longest"; /* (4) */
    if (e != NULL
        && (e->state != XAC_CHUNK_PAGED || e->rooms != c->rooms
            || e->longest != c->longest || e->header != c->header))
        return "entry and header disagree"; /* (3) */
    for (unsigned p = 0; p < XAC_CHUNK_PAGES && wrong == NULL; p++)
        wrong = page_wrong(h, c, p);
    return wrong;
}

void
xac_heap_assert(const struct xac_heap *h, const struct xac_chunk *c,
                const struct xac_chunk_entry *e)
{
    xac_require(xac_heap_wrong(h, c, e) == NULL);
}
