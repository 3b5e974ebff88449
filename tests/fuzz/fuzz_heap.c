/* SPDX-License-Identifier: MIT */
/*
 * fuzz_heap.c -- target: a damaged heap (alloc.h) is allocated from, released to and checked.
 *
 * The heap lies in plain memory: the pages of the view are dirty already, so that no store
 * announces anything.  There are two heaps, a small one that the view is longer than, and a
 * large one whose directory has a second part.  Memory outside of the segment has no access.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xac.h>

#include "base/err.h"
#include "env/env.h"
#include "heap/alloc.h"
#include "heap/alloc_heap.h"
#include "target.h"
#include "view/view.h"

#define PAGE 4096u
#define PAGES_MAX \
 17500u /* 16384 pages fill the first part of the directory             */
#define GUARD     ((size_t)1 << 30)
#define LIVE_MAX  64u
#define STEPS_MAX 32u
#define HEAPS     2u

/* A heap as it was made, and what was allocated in it. */
struct made {
    int image;
    struct xac_handle handle; /* of it                                              */
    uint64_t n_pages;
    uint64_t live[LIVE_MAX]; /* offsets */
    unsigned n_live;
};

static struct {
    struct xac_env env;
    struct xac_ctx ctx;
    struct xac_txn txn;
    struct xac_view view;
    struct xac_view_page page[PAGES_MAX];
    uint8_t *area; /* with no access around the segment                                */
    struct made made[HEAPS];
    bool is_made;
} w;

/* ---- The world ---------------------------------------------------------------------- */

/* make_env -- enough of an environment: a region with one file in it. */
static void
make_env(void)
{
    int fd = memfd_create("region", MFD_CLOEXEC);

    fuzz_must(fd >= 0);
    fuzz_must(xac_shm_create(&w.env.shm, fd, sizeof(struct xac_control), (size_t)1 << 30)
              == 0);
    w.env.ctl = (struct xac_control *)(void *)w.env.shm.base;
    xac_array_init(&w.env.ctl->files, sizeof(struct xac_file), 64);
    fuzz_must(xac_array_reserve(&w.env.shm, &w.env.ctl->files, 0) == 0);
    w.env.page_size = PAGE;
    w.env.page_shift = 12;
    w.ctx.txn = &w.txn;
    for (unsigned i = 0; i < PAGES_MAX; i++)
        w.page[i].state = XAC_PAGE_DIRTY;
    w.area = (uint8_t *)mmap(NULL, 2 * GUARD, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    fuzz_must(w.area != MAP_FAILED);
}

/* show -- the heap's image, as it was made; hints are forgotten. */
static void
show(const struct made *m, uint64_t n_pages)
{
    uint8_t *base = w.area + GUARD / 2;

    fuzz_must(mmap(w.area, 2 * GUARD, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0)
              == w.area);
    fuzz_must(mmap(base, n_pages * PAGE, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, m->image, 0)
              == base);
    w.env.pid++;
    w.view = (struct xac_view){.ctx = &w.ctx,
                               .env = &w.env,
                               .area.page_size = PAGE,
                               .area.base = base,
                               .area.length = n_pages * PAGE,
                               .area.n_pages = n_pages,
                               .file = 1,
                               .fd = m->image,
                               .handle = m->handle,
                               .name = (char *)(uintptr_t) "heap.db",
                               .path = (char *)(uintptr_t) "heap.db",
                               .pages.at = w.page,
                               .pages.low = 0,
                               .pages.high = n_pages};
}

/* make_heap -- allocations of all kinds; what has been written becomes the image. */
static void
make_heap(struct made *m, uint64_t n_pages, uint64_t view_pages)
{
    static const size_t sizes[] = {16,       16,        100,       200,      500,
                                   1000,     2000,      PAGE,      3 * PAGE, 30 * PAGE,
                                   5 * PAGE, 70 * PAGE, 64 * PAGE, 48,       48};

    m->image = xac_handle_keep(memfd_create("heap", MFD_CLOEXEC), &m->handle);
    fuzz_must(m->image >= 0 && ftruncate(m->image, (off_t)(view_pages * PAGE)) == 0);
    show(m, n_pages);
    fuzz_must(mmap(w.view.area.base, n_pages * PAGE, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_FIXED, m->image, 0)
              == w.view.area.base);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        void *p;

        fuzz_must(xac_alloc_take(&w.view, sizes[i], 16, &p) == 0);
        m->live[m->n_live++] = (uint64_t)((uint8_t *)p - w.view.area.base);
    }
    fuzz_must(xac_alloc_give(&w.view, w.view.area.base + m->live[5]) == 0);
    fuzz_must(xac_alloc_check(&w.view, NULL) == 0);
    m->n_pages = view_pages;
}

static void
make(void)
{
    if (w.is_made)
        return;
    w.is_made = true;
    make_env();
    make_heap(&w.made[0], 450, 500);
    make_heap(&w.made[1], PAGES_MAX, PAGES_MAX);
}

/* ---- Steps -------------------------------------------------------------------------- */

/* place -- something of the heap's own; ret offset in the segment. */
static uint64_t
place(struct fuzz_input *in, const struct made *m)
{
    uint64_t chunks = m->n_pages / XAC_CHUNK_PAGES;

    switch (fuzz_bytes(in, 1) % 8) {
    case 0:
    case 1: /* the header */
        return fuzz_below(in, sizeof(struct xac_heap_header));
    case 2:
    case 3: /* the directory's first entries */
        return PAGE + fuzz_below(in, 8 * sizeof(struct xac_chunk_entry));
    case 4: /* any entry */
        return PAGE + fuzz_below(in, chunks) * sizeof(struct xac_chunk_entry);
    case 5: /* the header of chunk 0, behind header and directory */
        return 2 * PAGE + fuzz_below(in, sizeof(struct xac_chunk));
    case 6: /* the page that has an allocation: a run's header */
        return m->live[fuzz_below(in, m->n_live)] / PAGE * PAGE + fuzz_below(in, 64);
    default:
        return fuzz_below(in, m->n_pages) * PAGE + fuzz_below(in, 64);
    }
}

/* stamp -- a page passes for the header of a run or a chunk. */
static void
stamp(struct fuzz_input *in, const struct made *m)
{
    const struct xac_heap_header *h =
        (const struct xac_heap_header *)(void *)w.view.area.base;
    uint64_t page_no = fuzz_below(in, m->n_pages);
    uint8_t *p = w.view.area.base + page_no * PAGE;
    struct xac_run run = {.magic = XAC_HEAP_RUN_MAGIC,
                          .stamp = xac_heap_stamp(h->identity, page_no),
                          .class = (uint8_t)fuzz_bytes(in, 1),
                          .tag = xac_heap_tag(w.env.pid, 1)};
    struct xac_chunk chunk = {.magic = XAC_HEAP_CHUNK_MAGIC,
                              .stamp = run.stamp,
                              .used = fuzz_number(in, 0),
                              .rooms = fuzz_number(in, 0),
                              .number = fuzz_number(in, page_no / XAC_CHUNK_PAGES),
                              .present = XAC_CHUNK_PAGES,
                              .longest = (uint8_t)fuzz_bytes(in, 1),
                              .header = (uint8_t)(page_no % XAC_CHUNK_PAGES)};

    if (fuzz_bytes(in, 1) % 2 == 0)
        memcpy(p, &run, sizeof run);
    else
        memcpy(p, &chunk, offsetof(struct xac_chunk, slab));
}

static void
take(struct fuzz_input *in, uint64_t *lastp)
{
    static const uint32_t sizes[] = {1,    16,   40,   112,   500,
                                     1300, 2048, 4096, 20000, 200000};
    uint64_t how = fuzz_bytes(in, 1);
    size_t size = how < 240 ? sizes[how % (sizeof sizes / sizeof sizes[0])]
                            : (size_t)fuzz_number(in, 0);
    uint8_t *p = NULL;
    int rc;

    rc = xac_alloc_take(&w.view, size, 16, (void **)(void *)&p);
    fuzz_told("xMalloc", rc);
    if (rc != 0)
        return;
    if (p < w.view.area.base || p >= w.view.area.base + w.view.area.length
        || size > (size_t)(w.view.area.base + w.view.area.length - p)
        || (uintptr_t)p % XAC_ALIGNMENT != 0)
        fuzz_fail("xMalloc: %zu bytes at offset %td of %zu", size, p - w.view.area.base,
                  w.view.area.length);
    *lastp = (uint64_t)(p - w.view.area.base);
}

static void
step(struct fuzz_input *in, const struct made *m, uint64_t *lastp)
{
    void *root;

    switch (fuzz_bytes(in, 1) % 8) {
    case 0:
    case 1:
        fuzz_poke(in, w.view.area.base, w.view.area.length, (size_t)place(in, m));
        break;
    case 2:
        stamp(in, m);
        break;
    case 3:
        take(in, lastp);
        break;
    case 4:
        fuzz_told("xFree",
                  xac_alloc_give(&w.view,
                                 w.view.area.base + m->live[fuzz_below(in, m->n_live)]));
        break;
    case 5:
        fuzz_told("xFree", xac_alloc_give(&w.view, w.view.area.base + *lastp));
        break;
    case 6:
        fuzz_told("xFree", xac_alloc_give(&w.view, w.view.area.base
                                                       + fuzz_below(in, m->n_pages * PAGE)
                                                             / 16 * 16));
        break;
    default:
        fuzz_told("xHeapCheck", xac_alloc_check(&w.view, NULL));
        fuzz_told("xRoot", xac_alloc_root(&w.view, &root));
        break;
    }
}

static void
run_heap(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    const struct made *m;
    uint64_t last = 0;

    make();
    m = &w.made[fuzz_bytes(&in, 1) % 16 == 1];
    show(m, m->n_pages);
    for (unsigned n = 0; n < STEPS_MAX && in.left > 0; n++)
        step(&in, m, &last);
    fuzz_told("xHeapCheck", xac_alloc_check(&w.view, NULL));
}

const struct fuzz_target fuzz_heap_targets[] = {{"heap", run_heap}, {NULL, NULL}};
