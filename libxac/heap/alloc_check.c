/* SPDX-License-Identifier: MIT */
/*
 * alloc_check.c -- the checker: proves the invariants of alloc.h for a whole heap.
 *
 * Walks the directory chunk by chunk and each paged chunk page by page, and stops at the
 * first violation.
 */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "heap/alloc.h"
#include "heap/alloc_heap.h"
#include "view/view.h"

struct check {
    struct xac_heap h;
    struct xac_heap_totals totals;
    uint64_t more;      /* chunks that the large allocation before still takes          */
    uint32_t tail;      /* pages that it takes of the chunk after those                 */
    uint64_t free_row;  /* complete free chunks just before                             */
    uint64_t best_free; /* pages: largest allocation that fits                          */
};

static int
wrong(const struct check *k, uint64_t number, unsigned p, const char *what)
{
    return xac_heap_damaged(&k->h, number * XAC_CHUNK_PAGES + p, what);
}

static void
offer(struct check *k, uint64_t pages)
{
    if (pages > k->best_free)
        k->best_free = pages;
}

/* ---- Pages of a chunk -------------------------------------------------------------------- */

/* count_slots -- add a page of slots to the totals. */
static void
count_slots(struct check *k, uint32_t class, uint32_t used)
{
    uint64_t size = k->h.classes->size[class];
    uint64_t slots = k->h.classes->slots[class];

    k->totals.allocations += used;
    k->totals.bytes_used += used * size;
    k->totals.bytes_free += (slots - used) * size;
    k->totals.bytes_own += k->h.page_size - slots * size;
}

static int
check_run(struct check *k, const struct xac_chunk *c, unsigned p)
{
    const struct xac_run *run = xac_run_at(&k->h, c->number * XAC_CHUNK_PAGES + p);
    uint32_t class = c->slab[p].class;
    uint32_t slots, used = 0;

    if (run == NULL || run->class != class)
        return wrong(k, c->number, p, "no header of the run that should be here");
    slots = k->h.classes->slots[class];
    for (uint32_t i = 0; i < xac_run_words(k->h.classes, class); i++) {
        uint32_t left = slots - 64 * i;

        if (left < 64 && run->bits[i] >> left != 0)
            return wrong(k, c->number, p, "run: bits behind its last slot");
        used += (uint32_t)__builtin_popcountll(run->bits[i]);
    }
    if (run->is_full > 1 || run->is_full != c->slab[p].bits)
        return wrong(k, c->number, p, "run and chunk header disagree on its being full");
    if (run->is_full && used != slots)
        return wrong(k, c->number, p, "run marked full has free slots");
    if (!run->is_full && (c->rooms >> class & 1) == 0)
        return wrong(k, c->number, p, "run that the chunk's rooms rule out");
    count_slots(k, class, used);
    return 0;
}

static int
check_slots(struct check *k, const struct xac_chunk *c, unsigned p)
{
    uint32_t class = c->slab[p].class;
    uint32_t used = (uint32_t)__builtin_popcount(c->slab[p].bits);

    if (class < k->h.classes->n_runs || class >= k->h.classes->count)
        return wrong(k, c->number, p, "slots of an unknown size class");
    if (c->slab[p].bits >> k->h.classes->slots[class] != 0)
        return wrong(k, c->number, p, "slots: bits behind the last");
    if (used < k->h.classes->slots[class] && (c->rooms >> class & 1) == 0)
        return wrong(k, c->number, p, "free slots that the chunk's rooms rule out");
    count_slots(k, class, used);
    return 0;
}

/* check_pages -- an allocation of pages begins here; *pp moves to its last page. */
static int
check_pages(struct check *k, const struct xac_chunk *c, unsigned *pp)
{
    unsigned p = *pp;
    uint32_t n = c->slab[p].bits;

    if (n == 0 || n > XAC_CHUNK_PAGES - p)
        return wrong(k, c->number, p, "allocation of an impossible number of pages");
    for (unsigned q = p + 1; q < p + n; q++) {
        if (c->slab[q].kind != XAC_SLAB_MORE)
            return wrong(k, c->number, q, "not part of the allocation before it");
    }
    k->totals.allocations++;
    k->totals.bytes_used += n * k->h.page_size;
    *pp = p + n - 1;
    return 0;
}

/* check_used -- page *pp, which is in use. */
static int
check_used(struct check *k, const struct xac_chunk *c, unsigned *pp, unsigned own)
{
    unsigned p = *pp;

    switch (c->slab[p].kind) {
    case XAC_SLAB_HEADER:
        k->totals.bytes_own += k->h.page_size;
        return p == c->header ? 0 : wrong(k, c->number, p, "a second chunk header");
    case XAC_SLAB_RUN:
        return check_run(k, c, p);
    case XAC_SLAB_SLOTS:
        return check_slots(k, c, p);
    case XAC_SLAB_PAGES:
        return check_pages(k, c, pp);
    case XAC_SLAB_TAIL:
        k->totals.bytes_used += k->h.page_size;
        return p < k->tail ? 0 : wrong(k, c->number, p, "end of no large allocation");
    case XAC_SLAB_META:
        k->totals.bytes_own += k->h.page_size;
        return p < own ? 0 : wrong(k, c->number, p, "counted as the heap's own");
    default:
        return wrong(k, c->number, p, "used for nothing that exists");
    }
}

static int
check_slabs(struct check *k, const struct xac_chunk *c, unsigned own)
{
    int rc = 0;

    for (unsigned p = 0; p < XAC_CHUNK_PAGES && rc == 0; p++) {
        bool is_used = (c->used >> p & 1) != 0;

        if (p >= c->present) {
            if (!is_used || c->slab[p].kind != XAC_SLAB_FREE)
                rc = wrong(k, c->number, p, "in use, but behind the heap's end");
        } else if (is_used != (c->slab[p].kind != XAC_SLAB_FREE)) {
            rc = wrong(k, c->number, p, "bit and descriptor disagree on its being free");
        } else if (p < own && c->slab[p].kind != XAC_SLAB_META) {
            rc = wrong(k, c->number, p, "not counted as the heap's own");
        } else if (p < k->tail && c->slab[p].kind != XAC_SLAB_TAIL) {
            rc = wrong(k, c->number, p, "not the end of the large allocation");
        } else if (!is_used) {
            k->totals.bytes_free += k->h.page_size;
        } else {
            rc = check_used(k, c, &p, own);
        }
    }
    return rc;
}

/* ---- Chunks ------------------------------------------------------------------------------- */

static int
check_paged(struct check *k, const struct xac_chunk_entry *e, uint64_t number)
{
    uint64_t page_no = number * XAC_CHUNK_PAGES + e->header % XAC_CHUNK_PAGES;
    unsigned own = xac_dir_own_pages(&k->h, number);
    const struct xac_chunk *c = NULL;
    unsigned longest;
    int rc;

    if (e->header < xac_heap_present(&k->h, number))
        c = xac_heap_page(&k->h, page_no);
    if (c == NULL || !xac_chunk_is_sound(&k->h, c, number, page_no))
        return wrong(k, number, e->header % XAC_CHUNK_PAGES, "no chunk header here");
    if (c->header != e->header || c->rooms != e->rooms || c->longest != e->longest)
        return wrong(k, number, c->header, "chunk header and directory disagree");
    if (c->present != xac_heap_present(&k->h, number))
        return wrong(k, number, c->header, "wrong number of pages present");
    if ((c->used >> c->header & 1) == 0 || c->header < own || c->header < k->tail)
        return wrong(k, number, c->header, "chunk header in pages that are not its own");
    longest = xac_chunk_longest(c->used);
    if (longest > c->longest)
        return wrong(k, number, c->header, "more free pages in a row than it says");
    rc = check_slabs(k, c, own);
    k->tail = 0;
    offer(k, longest);
    return rc;
}

static int
check_large(struct check *k, const struct xac_chunk_entry *e, uint64_t number)
{
    uint64_t whole = e->rooms / XAC_CHUNK_PAGES;

    if (whole == 0 || whole > xac_heap_chunks(&k->h) - number
        || xac_heap_present(&k->h, number + whole - 1) != XAC_CHUNK_PAGES)
        return wrong(k, number, 0, "impossible large allocation");
    k->more = whole - 1;
    k->tail = (uint32_t)(e->rooms % XAC_CHUNK_PAGES);
    k->totals.allocations++;
    k->totals.bytes_used += XAC_CHUNK_PAGES * k->h.page_size;
    return 0;
}

static int
check_free(struct check *k, const struct xac_chunk_entry *e, uint64_t number)
{
    static const struct xac_chunk_entry blank;
    uint32_t present = xac_heap_present(&k->h, number);

    if (memcmp(e, &blank, sizeof blank) != 0)
        return wrong(k, number, 0, "entry of a free chunk is not blank");
    if (present == 1)
        k->totals.bytes_own += k->h.page_size; /* no room for more than a header */
    else
        k->totals.bytes_free += present * k->h.page_size;
    offer(k, k->free_row * XAC_CHUNK_PAGES
                 + (present == XAC_CHUNK_PAGES ? present : present - 1));
    k->free_row = present == XAC_CHUNK_PAGES ? k->free_row + 1 : 0;
    return 0;
}

/* check_entry -- one chunk, after those before it. */
static int
check_entry(struct check *k, uint64_t number)
{
    const struct xac_chunk_entry *e = xac_dir_entry(&k->h, number);
    bool is_own = xac_dir_own_pages(&k->h, number) == XAC_CHUNK_PAGES;

    if (e->state != XAC_CHUNK_FREE)
        k->free_row = 0;
    if ((e->state == XAC_CHUNK_MORE) != (k->more > 0))
        return wrong(k, number, 0, "large allocation has too few chunks, or too many");
    if (k->more == 0 && k->tail > 0 && e->state != XAC_CHUNK_PAGED)
        return wrong(k, number, 0, "end of the large allocation is missing");
    if (is_own != (e->state == XAC_CHUNK_META))
        return wrong(k, number, 0, "directory is counted wrongly");
    if (e->state != XAC_CHUNK_PAGED && !is_own && xac_dir_own_pages(&k->h, number) > 0)
        return wrong(k, number, 0, "the heap's own pages are not accounted for");
    switch (e->state) {
    case XAC_CHUNK_FREE:
        return check_free(k, e, number);
    case XAC_CHUNK_PAGED:
        return check_paged(k, e, number);
    case XAC_CHUNK_LARGE:
        return check_large(k, e, number);
    case XAC_CHUNK_MORE:
        k->more--;
        k->totals.bytes_used += XAC_CHUNK_PAGES * k->h.page_size;
        return 0;
    case XAC_CHUNK_META:
        k->totals.bytes_own += XAC_CHUNK_PAGES * k->h.page_size;
        return 0;
    default:
        return wrong(k, number, 0, "chunk in an unknown state");
    }
}

int
xac_alloc_check(struct xac_view *view, struct xac_heap_totals *out)
{
    struct check k = {.more = 0};
    uint64_t sum;
    int rc = xac_heap_init(&k.h, view);

    if (rc != 0)
        return rc;
    rc = xac_heap_load(&k.h, false);
    if (rc == 0 && k.h.n_pages > k.h.view_pages)
        rc = xac_err(EINVAL, "xHeapCheck: the heap in %s has %llu pages, mapped are %llu",
                     view->name, (unsigned long long)k.h.n_pages,
                     (unsigned long long)k.h.view_pages);
    for (uint64_t n = 0; rc == 0 && n < xac_heap_chunks(&k.h); n++)
        rc = check_entry(&k, n);
    if (rc == 0 && (k.more > 0 || k.tail > 0))
        rc = wrong(&k, xac_heap_chunks(&k.h), 0,
                   "large allocation goes on behind the end");
    if (rc != 0 && rc != ENOENT)
        return rc;
    k.totals.bytes = k.h.n_pages * k.h.page_size;
    k.totals.largest_free = k.best_free * k.h.page_size;
    sum = k.totals.bytes_used + k.totals.bytes_free + k.totals.bytes_own;
    if (sum != k.totals.bytes)
        return xac_err(XAC_EDAMAGED, "heap in %s: %llu bytes, accounted for are %llu",
                       view->name, (unsigned long long)k.totals.bytes,
                       (unsigned long long)sum);
    if (out != NULL)
        *out = k.totals;
    return 0;
}
