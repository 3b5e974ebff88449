/* SPDX-License-Identifier: MIT */
/*
 * alloc_chunk.c -- pages of a chunk, and what they are used for: see alloc.h.
 */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "base/annot.h"
#include "base/err.h"
#include "heap/alloc_heap.h"
#include "view/view.h"

#define ALL_ROOMS (~UINT64_C(0))

static uint64_t
page_of(const struct xac_chunk *c, unsigned p)
{
    xac_assert(p < XAC_CHUNK_PAGES);
    return c->number * XAC_CHUNK_PAGES + p;
}

/* bits_below -- n low bits set, n up to 64. */
static uint64_t
bits_below(unsigned n)
{
    return n >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1;
}

unsigned
xac_chunk_longest(uint64_t used)
{
    unsigned n = 0;

    for (uint64_t free = ~used; free != 0; free &= free << 1)
        n++;
    xac_assert(n <= XAC_CHUNK_PAGES);
    return n;
}

/* find_pages -- first of n free pages in a row; 64 if there are not so many. */
static unsigned
find_pages(uint64_t used, unsigned n)
{
    uint64_t starts = ~used;

    xac_assert(n > 0);
    xac_assert(n <= XAC_CHUNK_PAGES);
    for (unsigned i = 1; i < n && starts != 0; i++)
        starts &= starts >> 1;
    return starts == 0 ? XAC_CHUNK_PAGES : (unsigned)__builtin_ctzll(starts);
}

/* ---- Headers --------------------------------------------------------------------------- */

bool
xac_chunk_is_sound(const struct xac_heap *h, const struct xac_chunk *c, uint64_t number,
                   uint64_t page_no)
{
    return c->magic == XAC_HEAP_CHUNK_MAGIC
           && c->stamp == xac_heap_stamp(h->hints->identity, page_no)
           && c->number == number && c->header == page_no % XAC_CHUNK_PAGES
           && c->present <= XAC_CHUNK_PAGES;
}

/* shown -- pages of a chunk that it has and this mapping shows. */
static unsigned
shown(const struct xac_heap *h, const struct xac_chunk *c)
{
    uint64_t left = h->view_pages - c->number * XAC_CHUNK_PAGES;

    xac_assert(c->number * XAC_CHUNK_PAGES < h->view_pages);
    return left < c->present ? (unsigned)left : c->present;
}

/* first_page -- the first page behind the heap's header and directory, which a damaged chunk may
   show as free, or as slots. */
static unsigned
first_page(const struct xac_heap *h, const struct xac_chunk *c)
{
    uint64_t before = c->number * XAC_CHUNK_PAGES, behind = 1 + h->hints->dir_pages;

    xac_assert(behind > 0);
    if (behind <= before)
        return 0;
    return behind - before < XAC_CHUNK_PAGES ? (unsigned)(behind - before)
                                             : XAC_CHUNK_PAGES;
}

uint64_t
xac_chunk_not_free(const struct xac_heap *h, const struct xac_chunk *c)
{
    return c->used | bits_below(first_page(h, c)) | ~bits_below(shown(h, c))
           | UINT64_C(1) << c->header;
}

struct xac_chunk *
xac_chunk_hinted(struct xac_heap *h, uint64_t number)
{
    struct xac_heap_hints *x = h->hints;
    struct xac_chunk *c;

    if (x->identity == 0 || x->chunk_page == 0 || x->chunk != number
        || x->chunk_page >= h->view_pages || x->chunk_page / XAC_CHUNK_PAGES != number)
        return NULL;
    c = xac_heap_page(h, x->chunk_page);
    if (xac_chunk_is_sound(h, c, number, x->chunk_page))
        return c;
    x->chunk_page = 0;
    return NULL;
}

/* why_not_paged -- EINVAL in words: nothing to free in a chunk of that state. */
static int
why_not_paged(const struct xac_heap *h, uint64_t number, uint8_t state)
{
    static const char *const words[] = {"free", "?", "a large allocation",
                                        "the middle of a large allocation",
                                        "the heap's own"};

    return xac_err(EINVAL, "heap in %s: chunk %llu (pages %llu to %llu) is %s",
                   h->view->name, (unsigned long long)number,
                   (unsigned long long)number * XAC_CHUNK_PAGES,
                   (unsigned long long)number * XAC_CHUNK_PAGES + XAC_CHUNK_PAGES - 1,
                   state <= XAC_CHUNK_META ? words[state] : "damaged");
}

int
xac_chunk_at(struct xac_heap *h, uint64_t number, struct xac_chunk **cp)
{
    const struct xac_chunk_entry *e;
    struct xac_chunk *c;
    uint64_t page_no;
    int rc;

    *cp = xac_chunk_hinted(h, number);
    if (*cp != NULL)
        return 0;
    rc = xac_heap_load(h, false);
    if (rc != 0)
        return rc;
    e = xac_dir_entry(h, number);
    if (e == NULL || number >= xac_heap_chunks(h) || !xac_heap_sees(h, number))
        return xac_err(EINVAL, "heap in %s: chunk %llu is not mapped here", h->view->name,
                       (unsigned long long)number);
    if (e->state != XAC_CHUNK_PAGED)
        return why_not_paged(h, number, e->state);
    page_no = number * XAC_CHUNK_PAGES + e->header % XAC_CHUNK_PAGES;
    c = page_no < h->view_pages ? xac_heap_page(h, page_no) : NULL;
    if (c == NULL || !xac_chunk_is_sound(h, c, number, page_no))
        return xac_heap_damaged(h, page_no, "no chunk header where it should be");
    *cp = c;
    xac_assert(*cp != NULL);
    return 0;
}

int
xac_chunk_make(struct xac_heap *h, uint64_t number, uint32_t taken,
               enum xac_slab_kind kind, struct xac_chunk **cp)
{
    uint64_t page_no = number * XAC_CHUNK_PAGES + taken;
    struct xac_chunk_entry *e = xac_dir_entry(h, number);
    struct xac_chunk *c = xac_heap_page(h, page_no);

    xac_assert(e != NULL && e->state == XAC_CHUNK_FREE);
    xac_assert(taken + 1 <= xac_heap_present(h, number));
    xac_assert(kind == XAC_SLAB_TAIL || kind == XAC_SLAB_META || taken == 0);
    xac_heap_write(h, c);
    memset(c, 0, sizeof *c);
    c->magic = XAC_HEAP_CHUNK_MAGIC;
    c->stamp = xac_heap_stamp(h->hints->identity, page_no);
    c->number = number;
    c->tag = h->tag;
    c->present = (uint8_t)xac_heap_present(h, number);
    c->header = (uint8_t)taken;
    c->used = bits_below(taken + 1) | ~bits_below(c->present);
    c->rooms = ALL_ROOMS;
    c->longest = (uint8_t)xac_chunk_longest(c->used);
    for (uint32_t p = 0; p < taken; p++)
        c->slab[p].kind = (uint8_t)kind;
    c->slab[taken].kind = XAC_SLAB_HEADER;
    xac_heap_write(h, e);
    e->state = XAC_CHUNK_PAGED;
    e->pid = h->pid;
    e->thread = h->thread;
    *cp = c;
    xac_debug(xac_heap_assert(h, c, NULL));
    return xac_dir_update(h, c);
}

void
xac_chunk_adopt(struct xac_heap *h, struct xac_chunk *c, uint16_t tag)
{
    xac_heap_write(h, c);
    c->tag = h->tag;
    for (unsigned p = 0; p < XAC_CHUNK_PAGES; p++) {
        if (c->slab[p].tag == tag)
            c->slab[p].tag = h->tag;
    }
}

/*
 * raise_room -- rooms and longest must not rule out what is going to be free.  Longest is
 * set too high at once, so that a chunk that empties page by page does this seldom.
 */
static int
raise_room(struct xac_heap *h, struct xac_chunk *c, uint64_t rooms, unsigned longest)
{
    xac_assert(longest <= XAC_CHUNK_PAGES);
    if ((c->rooms & rooms) == rooms && c->longest >= longest)
        return 0;
    xac_heap_write(h, c);
    c->rooms |= rooms;
    if (c->longest < longest)
        c->longest =
            (uint8_t)(2 * longest > XAC_CHUNK_PAGES ? XAC_CHUNK_PAGES : 2 * longest);
    xac_assert((c->rooms & rooms) == rooms);
    xac_assert(c->longest >= longest);
    return xac_dir_update(h, c);
}

/* ---- Taking ---------------------------------------------------------------------------- */

/* mark_used -- pages first to first + n - 1 are an allocation, a run or slots. */
static void
mark_used(struct xac_heap *h, struct xac_chunk *c, unsigned first, unsigned n,
          struct xac_slab slab)
{
    bool was_sound = false;

    xac_debug(was_sound = xac_heap_wrong(h, c, NULL) == NULL);
    xac_assert(n > 0);
    xac_assert(first + n <= c->present);
    xac_assert((c->used & bits_below(n) << first) == 0);
    xac_assert(slab.kind != XAC_SLAB_FREE);
    xac_heap_write(h, c);
    c->used |= bits_below(n) << first;
    c->slab[first] = slab;
    for (unsigned p = first + 1; p < first + n; p++)
        c->slab[p] = (struct xac_slab){.kind = XAC_SLAB_MORE};
    xac_assert_slow(!was_sound || xac_heap_wrong(h, c, NULL) == NULL);
}

/* slot_of_run -- a slot of the run in page p, or NULL; a full one is marked so. */
static void *
slot_of_run(struct xac_heap *h, struct xac_chunk *c, unsigned p)
{
    struct xac_run *run = xac_heap_page(h, page_of(c, p));
    void *address;

    xac_assert(c->slab[p].kind == XAC_SLAB_RUN);
    xac_heap_write(h, run);
    if (xac_run_at(h, page_of(c, p)) == NULL || run->class != c->slab[p].class)
        return NULL; /* damaged; the checker says so */
    address = xac_run_take(h, run);
    if (address == NULL) {
        xac_heap_write(h, c);
        run->is_full = 1;
        c->slab[p].bits = 1;
    } else {
        run->tag = c->slab[p].tag;
        h->hints->run[run->class] = page_of(c, p);
    }
    return address;
}

/* slot_of_page -- a slot of page p, which has slots without a header, or NULL. */
static void *
slot_of_page(struct xac_heap *h, struct xac_chunk *c, unsigned p)
{
    uint32_t class = c->slab[p].class;
    uint32_t free = ~c->slab[p].bits & (uint32_t)bits_below(h->classes->slots[class]);
    unsigned slot;

    xac_assert(c->slab[p].kind == XAC_SLAB_SLOTS);
    xac_assert(class >= h->classes->n_runs);
    if (free == 0)
        return NULL;
    slot = (unsigned)__builtin_ctz(free);
    xac_assert(slot < h->classes->slots[class]);
    xac_heap_write(h, c);
    c->slab[p].bits |= 1u << slot;
    h->hints->run[class] = page_of(c, p);
    return (uint8_t *)xac_heap_page(h, page_of(c, p))
           + (size_t)slot * h->classes->size[class];
}

/* slot_in_use -- a slot of the pages that serve the class already, ours or others'. */
static void *
slot_in_use(struct xac_heap *h, struct xac_chunk *c, uint32_t class, bool is_ours)
{
    bool is_run = class < h->classes->n_runs;
    void *address = NULL;

    for (unsigned p = first_page(h, c); p < shown(h, c) && address == NULL; p++) {
        const struct xac_slab *s = &c->slab[p];

        if (s->kind != (is_run ? XAC_SLAB_RUN : XAC_SLAB_SLOTS)
            || s->class != class || (s->tag == h->tag) != is_ours
            || (is_run && s->bits != 0))
            continue;
        address = is_run ? slot_of_run(h, c, p) : slot_of_page(h, c, p);
    }
    return address;
}

/* slot_in_new -- a slot of a page that was free. */
static void *
slot_in_new(struct xac_heap *h, struct xac_chunk *c, uint32_t class)
{
    bool is_run = class < h->classes->n_runs;
    struct xac_slab slab = {.kind = is_run ? XAC_SLAB_RUN : XAC_SLAB_SLOTS,
                            .class = (uint8_t) class,
                            .tag = h->tag};
    unsigned p = find_pages(xac_chunk_not_free(h, c), 1);

    xac_assert(class < h->classes->count);
    /* Others must be able to find the slots that are left. */
    if (p == XAC_CHUNK_PAGES || raise_room(h, c, UINT64_C(1) << class, 0) != 0)
        return NULL;
    mark_used(h, c, p, 1, slab);
    if (!is_run)
        return slot_of_page(h, c, p);
    xac_run_make(h, page_of(c, p), class);
    return slot_of_run(h, c, p);
}

void *
xac_chunk_take(struct xac_heap *h, struct xac_chunk *c, const struct xac_want *want)
{
    void *address;
    unsigned p;

    xac_assert(want->class < h->classes->count);
    xac_assert(want->pages < XAC_CHUNK_PAGES);
    if (want->pages == 0) {
        address = slot_in_use(h, c, want->class, true);
        if (address == NULL)
            address = slot_in_new(h, c, want->class);
        if (address == NULL)
            address = slot_in_use(h, c, want->class, false);
        return address;
    }
    p = find_pages(xac_chunk_not_free(h, c), want->pages);
    if (p == XAC_CHUNK_PAGES)
        return NULL;
    mark_used(h, c, p, want->pages,
              (struct xac_slab){.kind = XAC_SLAB_PAGES, .bits = want->pages});
    return xac_heap_page(h, page_of(c, p));
}

/* ---- Giving back --------------------------------------------------------------------- */

/* is_empty -- is the header all that is left? */
static bool
is_empty(const struct xac_chunk *c)
{
    return (c->used & bits_below(c->present)) == UINT64_C(1) << c->header;
}

/* free_chunk -- give back a chunk that is empty. */
static int
free_chunk(struct xac_heap *h, struct xac_chunk *c)
{
    int rc = xac_dir_free(h, c->number);

    xac_assert(is_empty(c));
    if (rc != 0)
        return rc;
    xac_heap_write(h, c);
    c->magic = 0;
    c->stamp = 0;
    xac_assert(c->magic == 0);
    return 0;
}

int
xac_chunk_give(struct xac_heap *h, struct xac_chunk *c, unsigned first, unsigned n)
{
    uint64_t used = c->used & ~(bits_below(n) << first);
    int rc = raise_room(h, c, 0, xac_chunk_longest(used));
    bool was_sound = false;

    xac_debug(was_sound = xac_heap_wrong(h, c, NULL) == NULL);
    xac_assert(n > 0);
    xac_assert(first + n <= XAC_CHUNK_PAGES);
    if (rc != 0)
        return rc;
    xac_heap_write(h, c);
    c->used = used;
    memset(&c->slab[first], 0, n * sizeof c->slab[0]);
    xac_assert_slow(!was_sound || xac_heap_wrong(h, c, NULL) == NULL);
    if (is_empty(c) && (h->hints->chunk != c->number || h->hints->chunk_page == 0))
        return free_chunk(h, c);
    return 0;
}

int
xac_chunk_give_run(struct xac_heap *h, uint64_t page_no, struct xac_run *run)
{
    unsigned p = (unsigned)(page_no % XAC_CHUNK_PAGES);
    uint32_t class = run->class;
    struct xac_chunk *c;
    int rc = xac_chunk_at(h, page_no / XAC_CHUNK_PAGES, &c);

    xac_assert(class < h->classes->n_runs);
    if (rc != 0)
        return rc;
    if (c->slab[p].kind != XAC_SLAB_RUN || c->slab[p].class != class)
        return xac_heap_damaged(h, page_no, "a run that its chunk does not know");
    if (xac_run_is_empty(h, run) && h->hints->run[class] != page_no) {
        rc = xac_chunk_give(h, c, p, 1);
        if (rc == 0)
            xac_run_wipe(h, run);
        return rc;
    }
    rc = raise_room(h, c, UINT64_C(1) << class, 0);
    if (rc != 0)
        return rc;
    xac_heap_write(h, c);
    run->is_full = 0;
    c->slab[p].bits = 0;
    return 0;
}

/* give_slot -- free a slot of a page without run header; offset within the page. */
static int
give_slot(struct xac_heap *h, struct xac_chunk *c, unsigned p, uint32_t offset)
{
    uint32_t class = c->slab[p].class;
    uint32_t size, slot;
    int rc;

    if (class < h->classes->n_runs || class >= h->classes->count)
        return xac_heap_damaged(h, page_of(c, p), "unknown size class");
    size = h->classes->size[class];
    slot = offset / size;
    if (slot * size != offset || slot >= h->classes->slots[class])
        return xac_err(EINVAL,
                       "xFree: page %llu, offset %u is not the start of an "
                       "allocation (slots of %u bytes)",
                       (unsigned long long)page_of(c, p), offset, size);
    if ((c->slab[p].bits >> slot & 1) == 0)
        return xac_err(EINVAL, "xFree: page %llu, offset %u (%u bytes) is free already",
                       (unsigned long long)page_of(c, p), offset, size);
    if (c->slab[p].bits == 1u << slot && h->hints->run[class] != page_of(c, p))
        return xac_chunk_give(h, c, p, 1);
    rc = raise_room(h, c, UINT64_C(1) << class, 0);
    if (rc != 0)
        return rc;
    xac_heap_write(h, c);
    c->slab[p].bits &= ~(1u << slot);
    return 0;
}

int
xac_chunk_give_at(struct xac_heap *h, struct xac_chunk *c, uint64_t offset)
{
    unsigned p = (unsigned)(offset / h->page_size % XAC_CHUNK_PAGES);
    uint32_t within = (uint32_t)(offset % h->page_size);
    const struct xac_slab *s = &c->slab[p];
    const char *what;

    xac_assert(offset / h->page_size / XAC_CHUNK_PAGES == c->number);
    switch (s->kind) {
    case XAC_SLAB_SLOTS:
        return give_slot(h, c, p, within);
    case XAC_SLAB_PAGES:
        if (within == 0 && s->bits != 0 && s->bits <= XAC_CHUNK_PAGES - p)
            return xac_chunk_give(h, c, p, s->bits);
        what = "inside an allocation";
        break;
    case XAC_SLAB_MORE:
    case XAC_SLAB_TAIL:
        what = "inside an allocation";
        break;
    case XAC_SLAB_FREE:
        what = "in free space";
        break;
    default:
        what = "in the heap's own data";
        break;
    }
    return xac_err(EINVAL, "xFree: page %llu, offset %u is %s",
                   (unsigned long long)page_of(c, p), within, what);
}

int
xac_chunk_reclaim(struct xac_heap *h, struct xac_chunk *c)
{
    int rc = 0;

    xac_assert(c->magic == XAC_HEAP_CHUNK_MAGIC);
    for (unsigned p = 0; p < shown(h, c) && rc == 0; p++) {
        struct xac_run *run = NULL;

        if (c->slab[p].kind == XAC_SLAB_RUN && c->slab[p].bits == 0)
            run = xac_run_at(h, page_of(c, p));
        if (run != NULL ? !xac_run_is_empty(h, run)
                        : c->slab[p].kind != XAC_SLAB_SLOTS || c->slab[p].bits != 0)
            continue;
        rc = xac_chunk_give(h, c, p, 1);
        if (rc == 0 && run != NULL)
            xac_run_wipe(h, run);
        if (c->magic == 0)
            return rc; /* that was the last */
    }
    if (rc == 0 && is_empty(c))
        rc = free_chunk(h, c);
    return rc;
}
