/* SPDX-License-Identifier: MIT */
/*
 * recover_pages.c -- see recover_pages.h.
 */
#include <config.h>

#include "recovery/recover_pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <xac.h>

#include "base/annot.h"
#include "base/sys.h"

static size_t
bytes_size(const struct xac_redo_pages *p)
{
    xac_assert(p->max > 0);
    return (size_t)p->max * p->page_size;
}

int
xac_redo_pages_init(struct xac_redo_pages *p, uint32_t page_size, uint64_t bytes_max)
{
    uint64_t max = bytes_max / page_size;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *bytes;

    xac_assert(page_size != 0);
    xac_assert((page_size & (page_size - 1)) == 0);
    *p = (struct xac_redo_pages){.page_size = page_size};
    if (max == 0)
        max = 1;
    p->max = max > UINT32_MAX / 4 ? UINT32_MAX / 4 : (uint32_t)max;
    p->slots = 2;
    while (p->slots < 2 * p->max)
        p->slots *= 2;
    /* calloc of that much gives memory that takes no room before it is used. */
    p->frame = (struct xac_redo_frame *)calloc(p->max, sizeof p->frame[0]);
    p->slot = (uint32_t *)calloc(p->slots, sizeof p->slot[0]);
    bytes = xac_sys.mmap(NULL, bytes_size(p), PROT_READ | PROT_WRITE, flags, -1, 0);
    p->bytes = bytes == MAP_FAILED ? NULL : (uint8_t *)bytes;
    xac_assert(p->slots >= 2 * p->max);
    xac_assert((p->slots & (p->slots - 1)) == 0);
    return p->frame != NULL && p->slot != NULL && p->bytes != NULL ? 0 : ENOMEM;
}

void
xac_redo_pages_free(struct xac_redo_pages *p)
{
    xac_assert(p->n <= p->max); /* (1) */
    if (p->bytes != NULL)
        (void)xac_sys.munmap(p->bytes, bytes_size(p));
    free(p->frame);
    free(p->slot);
    *p = (struct xac_redo_pages){.n = 0};
    xac_assert(p->bytes == NULL);
}

/* slot_of -- the table's entry for a page, or the free one for it. */
static uint32_t *
slot_of(const struct xac_redo_pages *p, uint32_t file, uint64_t page)
{
    uint32_t i = (uint32_t)xac_redo_hash(file, page) & (p->slots - 1);

    xac_assert_slow(p->n < p->slots);
    xac_assert_slow(file != 0);
    while (p->slot[i] != 0) {
        const struct xac_redo_frame *frame = &p->frame[p->slot[i] - 1];

        if (frame->file == file && frame->page == page)
            break;
        i = (i + 1) & (p->slots - 1);
    }
    return &p->slot[i];
}

uint8_t *
xac_redo_pages_find(const struct xac_redo_pages *p, uint32_t file, uint64_t page)
{
    uint32_t slot = *slot_of(p, file, page);

    xac_assert(slot <= p->n);
    xac_assert(slot == 0 || p->frame[slot - 1].no == slot - 1); /* (2) */
    return slot == 0 ? NULL : xac_redo_pages_at(p, &p->frame[slot - 1]);
}

uint8_t *
xac_redo_pages_add(struct xac_redo_pages *p, uint32_t file, uint64_t page)
{
    struct xac_redo_frame *frame = &p->frame[p->n];
    uint32_t *slot;

    xac_assert(p->n <= p->max);
    if (p->n == p->max)
        return NULL;
    slot = slot_of(p, file, page);
    xac_assert(*slot == 0); /* (1) */
    *frame = (struct xac_redo_frame){.page = page, .file = file, .no = p->n};
    *slot = ++p->n;
    xac_assert(p->n <= p->max);
    return xac_redo_pages_at(p, frame);
}

static int
by_file_and_page(const void *a, const void *b)
{
    const struct xac_redo_frame *x = (const struct xac_redo_frame *)a;
    const struct xac_redo_frame *y = (const struct xac_redo_frame *)b;

    xac_assert(x->no == y->no || x->file != y->file || x->page != y->page); /* (1) */
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return (x->page > y->page) - (x->page < y->page);
}

void
xac_redo_pages_sort(struct xac_redo_pages *p)
{
    xac_assert(p->frame != NULL);
    xac_assert(p->n <= p->max); /* (1) */
    qsort(p->frame, p->n, sizeof p->frame[0], by_file_and_page);
}

void
xac_redo_pages_clear(struct xac_redo_pages *p)
{
    xac_assert(p->n <= p->max); /* (1) */
    if (p->n == 0)
        return;
    memset(p->slot, 0, p->slots * sizeof p->slot[0]);
    p->n = 0;
    xac_assert(p->n == 0);
}
