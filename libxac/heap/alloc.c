/* SPDX-License-Identifier: MIT */
/*
 * alloc.c -- see alloc.h: slots of runs, sizes, hints.
 */
#include <config.h>

#include "heap/alloc.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/tls.h"
#include "heap/alloc_heap.h"
#include "shared/env_state.h"
#include "view/fault.h"
#include "view/view.h"

#define HEAPS_HINTED 4 /* heaps that a thread remembers */

static struct xac_classes classes;

/* What a thread remembers. */
struct hinted {
    struct xac_heap_hints of[HEAPS_HINTED];
    unsigned next;
};

static XAC_TLS uint32_t thread_no; /* from 1 */

/* ---- Size classes ------------------------------------------------------------------------ */

static void
add_class(uint32_t size, uint32_t slots, uint32_t first)
{
    uint32_t c = classes.count++;

    xac_require(c < XAC_CLASSES_MAX);
    xac_assert(size >= XAC_ALIGNMENT);
    xac_assert(slots >= 2);
    classes.size[c] = size;
    classes.slots[c] = slots;
    classes.first[c] = first;
}

/* add_run_class -- as many slots as fit behind the header and their bits. */
static void
add_run_class(uint32_t page_size, uint32_t size)
{
    uint32_t n = (page_size - (uint32_t)sizeof(struct xac_run)) / size;
    uint32_t first;

    xac_assert(page_size > size);
    for (;; n--) {
        first = (uint32_t)sizeof(struct xac_run) + 8 * ((n + 63) / 64);
        first = (first + XAC_ALIGNMENT - 1) & ~(uint32_t)(XAC_ALIGNMENT - 1);
        if (first + n * size <= page_size)
            break;
    }
    add_class(size, n, first);
    xac_assert(first + n * size <= page_size);
    xac_assert(first % XAC_ALIGNMENT == 0);
}

/* make_classes -- up to 128 by 16 bytes, then four per doubling, then fractions of a page. */
static void
make_classes(void)
{
    uint32_t page_size = (uint32_t)sysconf(_SC_PAGESIZE);
    uint32_t size = XAC_ALIGNMENT;

    xac_assert(page_size != 0);
    while (size < page_size / 8) {
        add_run_class(page_size, size);
        if (size < 128)
            size += XAC_ALIGNMENT;
        else
            size += (1u << (31 - __builtin_clz(size))) / 4;
    }
    classes.n_runs = classes.count;
    for (uint32_t n = 8; n >= 2; n--)
        add_class(page_size / n & ~(uint32_t)(XAC_ALIGNMENT - 1), n, 0);
    xac_assert(classes.count <= XAC_CLASSES_MAX);
    xac_assert(classes.n_runs < classes.count);
}

/* aligned_class -- as class_of, of those whose slots all have an alignment above 16 bytes: such
   slots begin at the start of a page.  Without any, the allocation takes pages. */
static uint32_t
aligned_class(size_t size, size_t alignment)
{
    uint32_t c = classes.n_runs;

    xac_assert(alignment > XAC_ALIGNMENT);
    xac_assert(classes.n_runs < classes.count);
    while (c < classes.count
           && (classes.size[c] < size || classes.size[c] % alignment != 0))
        c++;
    return c;
}

/* class_of -- smallest class that holds `size` bytes; count if none does. */
static uint32_t
class_of(size_t size, size_t alignment)
{
    uint32_t low = 0;
    uint32_t high = classes.count;

    xac_assert(classes.count != 0);
    if (alignment > XAC_ALIGNMENT)
        return aligned_class(size, alignment);
    if (size <= 128)
        return size == 0 ? 0 : (uint32_t)((size - 1) / XAC_ALIGNMENT);
    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (classes.size[middle] >= size)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* ---- The heap as a call sees it -------------------------------------------------------- */

/* number_thread -- give this thread a number of its own in the process. */
static void
number_thread(void)
{
    static _Atomic uint32_t last;

    /* Relaxed: only the numbers count. */
    if (thread_no == 0)
        thread_no = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    xac_assert(thread_no != 0);
}

/* hints_for -- this thread's hints for a heap; the oldest others are forgotten for it.
   NULL: no memory. */
static struct xac_heap_hints *
hints_for(const uint8_t *base, uint32_t pid)
{
    struct hinted *mine =
        (struct hinted *)xac_tls_part(XAC_TLS_HINTS, sizeof(struct hinted));
    struct xac_heap_hints *x;

    xac_assert(base != NULL);
    if (mine == NULL)
        return NULL;
    for (unsigned i = 0; i < HEAPS_HINTED; i++) {
        if (mine->of[i].base == base && mine->of[i].pid == pid)
            return &mine->of[i];
    }
    x = &mine->of[mine->next++ % HEAPS_HINTED];
    *x = (struct xac_heap_hints){.base = base, .pid = pid};
    return x;
}

int
xac_heap_init(struct xac_heap *h, struct xac_view *view)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct xac_heap_hints *hints = hints_for(view->area.base, view->env->pid);

    if (hints == NULL)
        return xac_err(ENOMEM, "heap of %s", view->name);
    (void)pthread_once(&once, make_classes);
    number_thread();
    *h = (struct xac_heap){
        .env = view->env,
        .view = view,
        .base = view->area.base,
        .page_size = view->area.page_size,
        .view_pages = view->area.n_pages,
        .classes = &classes,
        .hints = hints,
        .pid = view->env->pid,
        .thread = (uint8_t)thread_no,
        .tag = xac_heap_tag(view->env->pid, (uint8_t)thread_no),
    };
    xac_assert(h->view_pages != 0);
    xac_assert(h->hints->base == h->base);
    return 0;
}

void
xac_heap_write(struct xac_heap *h, const void *address)
{
    uint64_t page_no = (uint64_t)((const uint8_t *)address - h->base) / h->page_size;
    int rc;

    xac_assert((const uint8_t *)address >= h->base);
    xac_assert(page_no < h->view_pages);
    if (xac_view_may_store(h->view, page_no))
        return;
    rc = h->view->area.in_place < 0
             ? 0
             : xac_view_in_place_store(h->view->ctx, h->view, page_no);
    if (rc != 0) /* the store would not trap */
        xac_fault_unserved(h->view, address, true, rc);
    /* A failure is left to the store, which traps and says so. */
    (void)xac_view_access(h->env, h->view->ctx, h->view, page_no, true);
}

uint64_t
xac_heap_stamp(uint64_t identity, uint64_t page_no)
{
    uint64_t z = identity + page_no * UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

int
xac_heap_damaged(const struct xac_heap *h, uint64_t page_no, const char *what)
{
    return xac_err(XAC_EDAMAGED, "heap in %s, page %llu: %s", h->view->name,
                   (unsigned long long)page_no, what);
}

/* ---- Runs ---------------------------------------------------------------------------------- */

struct xac_run *
xac_run_at(const struct xac_heap *h, uint64_t page_no)
{
    struct xac_run *run = page_no < h->view_pages ? xac_heap_page(h, page_no) : NULL;

    if (run == NULL || run->magic != XAC_HEAP_RUN_MAGIC
        || run->stamp != xac_heap_stamp(h->hints->identity, page_no)
        || run->class >= h->classes->n_runs)
        return NULL;
    return run;
}

void
xac_run_make(struct xac_heap *h, uint64_t page_no, uint32_t class)
{
    struct xac_run *run = xac_heap_page(h, page_no);

    xac_assert(class < h->classes->n_runs);
    xac_assert(h->hints->identity != 0);
    xac_heap_write(h, run);
    memset(run, 0, h->classes->first[class]);
    run->magic = XAC_HEAP_RUN_MAGIC;
    run->stamp = xac_heap_stamp(h->hints->identity, page_no);
    run->class = (uint8_t) class;
    xac_assert(xac_run_at(h, page_no) == run);
}

void
xac_run_wipe(struct xac_heap *h, struct xac_run *run)
{
    xac_assert(run->magic == XAC_HEAP_RUN_MAGIC);
    xac_assert(xac_run_is_empty(h, run));
    xac_heap_write(h, run);
    run->magic = 0;
    run->stamp = 0;
    xac_assert(run->magic == 0);
}

void *
xac_run_take(struct xac_heap *h, struct xac_run *run)
{
    uint32_t class = run->class;
    uint32_t n = h->classes->slots[class];

    xac_assert(class < h->classes->n_runs);
    for (uint32_t i = 0; i < n; i += 64) {
        uint64_t valid = n - i >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << (n - i)) - 1;
        uint64_t free = ~run->bits[i / 64] & valid;
        uint32_t bit;

        if (free == 0)
            continue;
        bit = (uint32_t)__builtin_ctzll(free);
        xac_assert(i + bit < n);
        xac_heap_write(h, run);
        run->bits[i / 64] |= UINT64_C(1) << bit;
        return (uint8_t *)run + h->classes->first[class]
               + (size_t)(i + bit) * h->classes->size[class];
    }
    return NULL;
}

/* give_slot -- free a slot of a run. */
static int
give_slot(struct xac_heap *h, uint64_t page_no, struct xac_run *run, uint32_t offset)
{
    uint32_t first = h->classes->first[run->class];
    uint32_t size = h->classes->size[run->class];
    uint32_t slot = (offset - first) / size;
    uint64_t bit = UINT64_C(1) << slot % 64;
    int rc = 0;

    xac_assert(run->class < h->classes->n_runs);
    xac_assert(page_no < h->view_pages);
    if (offset < first || first + slot * size != offset
        || slot >= h->classes->slots[run->class])
        return xac_err(EINVAL,
                       "xFree: page %llu, offset %u is not the start of an "
                       "allocation (slots of %u bytes from offset %u)",
                       (unsigned long long)page_no, offset, size, first);
    if ((run->bits[slot / 64] & bit) == 0)
        return xac_err(EINVAL, "xFree: page %llu, offset %u (%u bytes) is free already",
                       (unsigned long long)page_no, offset, size);
    xac_heap_write(h, run);
    run->bits[slot / 64] &= ~bit;
    if (run->is_full
        || (xac_run_is_empty(h, run) && h->hints->run[run->class] != page_no))
        rc = xac_chunk_give_run(h, page_no, run);
    if (rc != 0)
        run->bits[slot / 64] |= bit;
    return rc;
}

/* ---- Allocating ------------------------------------------------------------------------------ */

/*
 * from_hints -- a slot from the run that served the class last, or what its chunk has.
 *
 * They must be ours still: if a transaction that took them was undone, somebody else may
 * have taken them since, with whom we would share pages from then on.
 */
static void *
from_hints(struct xac_heap *h, const struct xac_want *want)
{
    struct xac_heap_hints *x = h->hints;
    struct xac_chunk *c;
    uint64_t page_no = x->run[want->class];

    xac_assert(want->class < h->classes->count);
    xac_assert(want->pages < XAC_CHUNK_PAGES);
    if (x->identity == 0)
        return NULL;
    if (want->pages == 0 && want->class < h->classes->n_runs && page_no != 0
        && page_no < h->view_pages) {
        struct xac_run *run;
        void *address;

        xac_heap_write(h, xac_heap_page(h, page_no));
        run = xac_run_at(h, page_no);
        if (run != NULL && run->class == want->class && run->tag == h->tag) {
            address = xac_run_take(h, run);
            if (address != NULL)
                return address;
        } else {
            x->run[want->class] = 0;
        }
    }
    c = xac_chunk_hinted(h, x->chunk);
    return c != NULL && c->tag == h->tag ? xac_chunk_take(h, c, want) : NULL;
}

/* take_anywhere -- from the directory, if need be after growing and reclaiming. */
static int
take_anywhere(struct xac_heap *h, uint64_t pages, const struct xac_want *want,
              void **addressp)
{
    bool is_large = want == NULL;
    bool grew;
    int rc = xac_heap_load(h, true);

    xac_assert(addressp != NULL);
    for (int attempt = 0; rc == 0 && attempt < 3; attempt++) {
        if (attempt == 1) {
            rc = xac_heap_grow(h, &grew);
            if (rc == 0 && !grew)
                continue;
        } else if (attempt == 2) {
            rc = xac_dir_reclaim(h);
        }
        if (rc == 0)
            rc = is_large ? xac_dir_take_large(h, pages, addressp)
                          : xac_dir_take(h, want, addressp);
        if (rc != ENOMEM)
            return rc;
        rc = 0;
    }
    return rc != 0 ? rc : ENOMEM;
}

int
xac_alloc_take(struct xac_view *view, size_t size, size_t alignment, void **addressp)
{
    struct xac_heap h;
    struct xac_want want = {0};
    uint64_t pages;
    int rc = xac_heap_init(&h, view);

    xac_assert(addressp != NULL);
    if (rc != 0)
        return rc;
    if (size > view->area.length)
        return xac_err(ENOMEM, "xMalloc: %zu bytes, but %s is mapped %zu bytes long",
                       size, view->name, view->area.length);
    want.class = class_of(size, alignment);
    pages = size == 0 ? 1 : (size + h.page_size - 1) / h.page_size;
    if (want.class == classes.count) {
        want.class = 0;
        want.pages = pages < XAC_CHUNK_PAGES ? (uint32_t)pages : 0;
    } else {
        pages = 0;
    }
    if (pages >= XAC_CHUNK_PAGES) {
        rc = take_anywhere(&h, pages, NULL, addressp);
    } else {
        void *address = from_hints(&h, &want);

        if (address != NULL) {
            xac_assert(((uintptr_t)address) % alignment == 0);
            xac_assert((uint8_t *)address >= h.base);
            xac_assert((uint8_t *)address + size <= h.base + h.view_pages * h.page_size);
            *addressp = address;
            return 0;
        }
        rc = take_anywhere(&h, pages, &want, addressp);
    }
    return rc == ENOMEM ? xac_err(ENOMEM, "xMalloc: %s has no room for %zu bytes",
                                  view->name, size)
                        : rc;
}

/* ---- Releasing ------------------------------------------------------------------------------- */

/* run_of -- the run that an address belongs to, or NULL. */
static struct xac_run *
run_of(const struct xac_heap *h, uint64_t offset)
{
    /* No slot of a run begins with its page, but other allocations do: theirs is not
       looked at. */
    return offset % h->page_size == 0 ? NULL : xac_run_at(h, offset / h->page_size);
}

/* give_other -- free what the directory must be asked about; offset in the segment. */
static int
give_other(struct xac_heap *h, uint64_t offset)
{
    uint64_t number = offset / h->page_size / XAC_CHUNK_PAGES;
    const struct xac_chunk_entry *e;
    struct xac_run *run;
    struct xac_chunk *c;
    int rc = xac_heap_load(h, false);

    if (rc == ENOENT)
        return xac_err(EINVAL, "xFree: %s is no heap yet", h->view->name);
    if (rc != 0)
        return rc;
    if (offset / h->page_size >= h->n_pages)
        return xac_err(EINVAL, "xFree: page %llu of %s lies behind the heap",
                       (unsigned long long)(offset / h->page_size), h->view->name);
    run = run_of(h, offset); /* now the identity is known for sure */
    if (run != NULL)
        return give_slot(h, offset / h->page_size, run,
                         (uint32_t)(offset % h->page_size));
    e = xac_dir_entry(h, number);
    if (e != NULL && e->state == XAC_CHUNK_LARGE
        && offset % (XAC_CHUNK_PAGES * h->page_size) == 0)
        return xac_dir_give_large(h, number);
    rc = xac_chunk_at(h, number, &c);
    return rc != 0 ? rc : xac_chunk_give_at(h, c, offset);
}

int
xac_alloc_give(struct xac_view *view, void *address)
{
    struct xac_heap h;
    struct xac_run *run;
    struct xac_chunk *c;
    uint64_t offset = (uint64_t)((uint8_t *)address - view->area.base);
    uint64_t page_no = offset / view->area.page_size;
    int rc = xac_heap_init(&h, view);

    if (rc != 0)
        return rc;
    if ((uint8_t *)address < view->area.base || offset >= view->area.length
        || offset % XAC_ALIGNMENT != 0)
        return xac_err(EINVAL, "xFree: %p is no allocation in %s", address, view->name);
    run = run_of(&h, offset);
    if (run != NULL)
        return give_slot(&h, page_no, run, (uint32_t)(offset % view->area.page_size));
    c = xac_chunk_hinted(&h, page_no / XAC_CHUNK_PAGES);
    return c != NULL ? xac_chunk_give_at(&h, c, offset) : give_other(&h, offset);
}

int
xac_alloc_root(struct xac_view *view, void **addressp)
{
    struct xac_heap h;
    bool may_make = view->ctx->query_depth == 0;
    int rc = xac_heap_init(&h, view);

    xac_assert(addressp != NULL);
    if (rc != 0)
        return rc;
    rc = xac_heap_load(&h, may_make);
    if (rc != 0 && (rc != ENOENT || may_make))
        return rc;
    *addressp = view->area.base + offsetof(struct xac_heap_header, root);
    return 0;
}
