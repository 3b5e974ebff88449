/* SPDX-License-Identifier: MIT */
/*
 * alloc_size.c -- how large an allocation is, and making it larger or smaller: see alloc.h.
 */
#include <config.h>

#include "heap/alloc.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "heap/alloc_heap.h"
#include "view/view.h"

/* no_allocation -- EINVAL in words. */
static int
no_allocation(const struct xac_heap *h, uint64_t offset)
{
    return xac_err(EINVAL, "heap in %s: no allocation begins at page %llu, offset %llu",
                   h->view->name, (unsigned long long)(offset / h->page_size),
                   (unsigned long long)(offset % h->page_size));
}

/* size_in_run -- of a slot of a run; `within` the page. */
static int
size_in_run(const struct xac_heap *h, const struct xac_run *run, uint64_t offset,
            size_t *sizep)
{
    uint32_t within = (uint32_t)(offset % h->page_size);
    uint32_t first = h->classes->first[run->class];
    uint32_t size = h->classes->size[run->class];
    uint32_t slot = (within - first) / size;

    xac_assert(run->class < h->classes->n_runs);
    if (within < first || first + slot * size != within
        || slot >= h->classes->slots[run->class]
        || (run->bits[slot / 64] >> slot % 64 & 1) == 0)
        return no_allocation(h, offset);
    *sizep = size;
    return 0;
}

/* size_in_chunk -- of slots without a run header, or of pages. */
static int
size_in_chunk(const struct xac_heap *h, const struct xac_chunk *c, uint64_t offset,
              size_t *sizep)
{
    unsigned p = (unsigned)(offset / h->page_size % XAC_CHUNK_PAGES);
    uint32_t within = (uint32_t)(offset % h->page_size);
    const struct xac_slab *s = &c->slab[p];
    uint32_t size;

    xac_assert(offset / h->page_size / XAC_CHUNK_PAGES == c->number);
    if (s->kind == XAC_SLAB_PAGES && within == 0 && s->bits != 0
        && s->bits <= XAC_CHUNK_PAGES - p) {
        *sizep = s->bits * h->page_size;
        return 0;
    }
    if (s->kind != XAC_SLAB_SLOTS || s->class < h->classes->n_runs
        || s->class >= h->classes->count)
        return no_allocation(h, offset);
    size = h->classes->size[s->class];
    if (within % size != 0 || within / size >= h->classes->slots[s->class]
        || (s->bits >> within / size & 1) == 0)
        return no_allocation(h, offset);
    *sizep = size;
    return 0;
}

/* size_of_other -- of what the heap's header and the directory must be asked about. */
static int
size_of_other(struct xac_heap *h, uint64_t offset, size_t *sizep)
{
    uint64_t page_no = offset / h->page_size;
    const struct xac_chunk_entry *e;
    const struct xac_run *run;
    struct xac_chunk *c;
    int rc = xac_heap_load(h, false);

    xac_assert(page_no < h->view_pages);
    if (rc != 0 && rc != ENOENT)
        return rc;
    if (rc == ENOENT || page_no >= h->n_pages)
        return no_allocation(h, offset);
    run = offset % h->page_size == 0 ? NULL : xac_run_at(h, page_no);
    if (run != NULL) /* now the identity is known for sure */
        return size_in_run(h, run, offset, sizep);
    e = xac_dir_entry(h, page_no / XAC_CHUNK_PAGES);
    if (e != NULL && e->state == XAC_CHUNK_LARGE
        && offset % (XAC_CHUNK_PAGES * h->page_size) == 0) {
        if (e->rooms < XAC_CHUNK_PAGES || e->rooms > h->n_pages - page_no)
            return xac_heap_damaged(h, page_no, "impossible large allocation");
        *sizep = e->rooms * h->page_size;
        return 0;
    }
    rc = xac_chunk_at(h, page_no / XAC_CHUNK_PAGES, &c);
    return rc != 0 ? rc : size_in_chunk(h, c, offset, sizep);
}

int
xac_alloc_size(struct xac_view *view, const void *address, size_t *sizep)
{
    struct xac_heap h;
    const struct xac_run *run;
    const struct xac_chunk *c;
    uint64_t offset = (uint64_t)((uintptr_t)address - (uintptr_t)view->area.base);
    uint64_t page_no = offset / view->area.page_size;
    size_t size = 0;
    int rc = xac_heap_init(&h, view);

    xac_assert(sizep != NULL);
    if (rc != 0)
        return rc;
    if ((const uint8_t *)address < view->area.base || offset >= view->area.length
        || offset % XAC_ALIGNMENT != 0)
        return xac_err(EINVAL, "%p is no allocation in %s", address, view->name);
    run = offset % h.page_size == 0 || h.hints->identity == 0 ? NULL
                                                              : xac_run_at(&h, page_no);
    if (run != NULL)
        return size_in_run(&h, run, offset, sizep);
    c = xac_chunk_hinted(&h, page_no / XAC_CHUNK_PAGES);
    rc = c != NULL ? size_in_chunk(&h, c, offset, &size)
                   : size_of_other(&h, offset, &size);
    if (rc == 0 && size > view->area.length - offset)
        rc = xac_err(EINVAL, "heap in %s: the allocation at %p ends behind the mapping",
                     view->name, address);
    if (rc == 0)
        *sizep = size;
    return rc;
}

int
xac_alloc_resize(struct xac_view *view, void *address, size_t size, void **addressp)
{
    void *other;
    size_t old;
    int rc = xac_alloc_size(view, address, &old);

    xac_assert(address != NULL);
    xac_assert(addressp != NULL);
    if (rc != 0)
        return rc;
    if (size == 0)
        size = 1;
    if (size <= old && size >= old / 2) {
        *addressp = address;
        return 0;
    }
    rc = xac_alloc_take(view, size, XAC_ALIGNMENT, &other);
    if (rc == ENOMEM && size <= old) {
        *addressp = address;
        return 0;
    }
    if (rc != 0)
        return rc;
    memcpy(other, address, size < old ? size : old);
    rc = xac_alloc_give(view, address);
    if (rc == 0)
        *addressp = other;
    else
        (void)xac_alloc_give(view, other);
    return rc;
}
