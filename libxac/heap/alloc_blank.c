/* SPDX-License-Identifier: MIT */
/*
 * alloc_blank.c -- is a segment blank?  See alloc.h.
 *
 * A segment of 1 TiB must be found blank at once, so its pages are not touched one by one:
 * what this transaction wrote is looked at in place, what others committed in the version
 * store, and the rest in the file, where holes are skipped.  In this order: a version that
 * a checkpoint takes away meanwhile has gone to the file before.
 */
#include <config.h>

#include <errno.h>
#include <unistd.h>

#include "heap/alloc_heap.h"
#include "shared/env_state.h"
#include "shared/registry.h"
#include "store/outofcore.h"
#include "store/version.h"
#include "txn/ctree.h"
#include "view/view.h"

static bool
is_zero(const struct xac_heap *h, const void *page)
{
    const uint64_t *words = page;

    xac_assert(page != NULL);
    for (size_t i = 0; i < h->page_size / sizeof *words; i++) {
        if (words[i] != 0)
            return false;
    }
    return true;
}

static bool
is_dirty(const struct xac_heap *h, uint64_t page_no)
{
    xac_assert(page_no < h->view_pages);
    return xac_view_is_written(&h->view->pages.at[page_no]);
}

/* version_of -- bytes of the version that this transaction sees; NULL: the file's. */
static const uint8_t *
version_of(const struct xac_heap *h, const struct xac_page *page)
{
    uint64_t parent =
        atomic_load_explicit(&h->view->ctx->txn->parent, memory_order_relaxed);
    uint64_t commit;
    uint64_t frame = xac_version_find(h->env, page, parent, &commit);

    return frame == 0 ? NULL : xac_version_bytes(h->env, frame);
}

static bool
own_pages_are_blank(const struct xac_heap *h, uint64_t first, uint64_t *pagep)
{
    uint64_t page_no = h->view->pages.low > first ? h->view->pages.low : first;

    for (; page_no < h->view->pages.high && page_no < h->view_pages; page_no++) {
        if (is_dirty(h, page_no) && !is_zero(h, xac_heap_page(h, page_no))) {
            *pagep = page_no;
            return false;
        }
    }
    return true;
}

static bool
versions_are_blank(const struct xac_heap *h, uint64_t first, uint64_t *pagep)
{
    uint64_t n =
        atomic_load_explicit(&h->env->ctl->versions.slots.count, memory_order_relaxed);

    for (uint64_t f = 1; f <= n; f++) {
        const struct xac_vslot *frame = xac_vslot_at(h->env, f);
        const struct xac_page *page;
        const uint8_t *bytes;
        uint64_t id;

        /* Relaxed: a frame that is published only now is not ours to see. */
        if (xac_vslot_state(atomic_load_explicit(&frame->word, memory_order_relaxed))
            != XAC_VSLOT_VERSION)
            continue;
        page = (const struct xac_page *)xac_shm_at(
            &h->env->shm, atomic_load_explicit(&frame->page, memory_order_relaxed));
        id = atomic_load_explicit(&page->id, memory_order_relaxed);
        if (!xac_view_shows(h->view, id))
            continue;
        *pagep = xac_page_no(id) - h->view->area.first;
        if (*pagep < first || is_dirty(h, *pagep))
            continue;
        bytes = version_of(h, page);
        if (bytes != NULL && !is_zero(h, bytes))
            return false;
    }
    return true;
}

/* next_data -- first page at or behind page_no that is not a hole in the file. */
static uint64_t
next_data(const struct xac_heap *h, uint64_t page_no)
{
    uint64_t from = h->view->area.first;
    off_t at =
        lseek(xac_view_fd(h->view), (off_t)((from + page_no) * h->page_size), SEEK_DATA);

    xac_assert(page_no <= h->view_pages);
    if (at >= 0)
        return (uint64_t)at / h->page_size - from;
    return errno == ENXIO ? h->view_pages : page_no; /* none, or nobody knows */
}

/* next_hole -- first page behind page_no that may be one. */
static uint64_t
next_hole(const struct xac_heap *h, uint64_t page_no)
{
    uint64_t from = h->view->area.first;
    off_t at =
        lseek(xac_view_fd(h->view), (off_t)((from + page_no) * h->page_size), SEEK_HOLE);
    uint64_t hole = at >= 0 ? ((uint64_t)at + h->page_size - 1) / h->page_size - from : 0;

    xac_assert(page_no < h->view_pages);
    return at >= 0 && hole < h->view_pages ? hole : h->view_pages;
}

static bool
file_is_blank(const struct xac_heap *h, uint64_t first, uint64_t *pagep)
{
    struct xac_file *file = xac_file_at(h->env, h->view->file);
    uint64_t page_no = next_data(h, first);

    while (page_no < h->view_pages) {
        uint64_t end = next_hole(h, page_no);

        for (; page_no < end; page_no++) {
            uint64_t id = xac_page_id(h->view->file, h->view->area.first + page_no);
            const struct xac_page *page;
            const uint8_t *bytes;

            if (is_dirty(h, page_no))
                continue;
            bytes = xac_view_file_bytes(h->view->ctx, id, XAC_PLACE_SHOWN);
            if (bytes != NULL && is_zero(h, bytes))
                continue;
            page = xac_ptab_page(&h->env->shm, &file->root, h->view->file,
                                 h->view->area.first + page_no);
            if (page != NULL && version_of(h, page) != NULL)
                continue; /* looked at already */
            *pagep = page_no;
            return false;
        }
        page_no = end < h->view_pages ? next_data(h, end) : end;
    }
    return true;
}

bool
xac_heap_blank(const struct xac_heap *h, uint64_t first, uint64_t *pagep)
{
    xac_assert(first < h->view_pages);
    *pagep = first;
    if (h->view->aliases != NULL && xac_aliases_gather(h->view) != 0)
        return false;
    return own_pages_are_blank(h, first, pagep) && versions_are_blank(h, first, pagep)
           && file_is_blank(h, first, pagep);
}
