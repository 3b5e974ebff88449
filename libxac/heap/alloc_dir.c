/* SPDX-License-Identifier: MIT */
/*
 * alloc_dir.c -- the directory of chunks; making and growing a heap: see alloc.h.
 */
#include <config.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/annot.h"
#include "base/err.h"
#include "base/sys.h"
#include "heap/alloc_heap.h"
#include "shared/env_state.h"
#include "shared/registry.h"
#include "view/view.h"

static uint64_t
entries_per_page(const struct xac_heap *h)
{
    xac_assert(h->page_size % sizeof(struct xac_chunk_entry) == 0);
    return h->page_size / sizeof(struct xac_chunk_entry);
}

/* first_part -- chunks that the directory's first part covers. */
static uint64_t
first_part(const struct xac_heap *h)
{
    xac_assert(h->dir_pages != 0);
    return h->dir_pages * entries_per_page(h);
}

/* part_pages -- size of the directory's part that begins at chunk s. */
static uint64_t
part_pages(const struct xac_heap *h, uint64_t s)
{
    xac_assert(s % entries_per_page(h) == 0);
    return s / entries_per_page(h);
}

uint32_t
xac_dir_own_pages(const struct xac_heap *h, uint64_t number)
{
    uint64_t s = first_part(h);
    uint64_t pages = 1 + h->dir_pages;
    uint64_t start = 0;
    uint64_t before;

    if (number >= s) {
        while (number >= 2 * s)
            s *= 2;
        start = s;
        pages = part_pages(h, s);
    }
    before = (number - start) * XAC_CHUNK_PAGES;
    if (pages <= before)
        return 0;
    return pages - before < XAC_CHUNK_PAGES ? (uint32_t)(pages - before)
                                            : XAC_CHUNK_PAGES;
}

/* is_free -- as a whole.  A damaged directory may say so of the heap's own pages, too. */
static bool
is_free(const struct xac_heap *h, const struct xac_chunk_entry *e, uint64_t number)
{
    xac_assert(number < xac_heap_chunks(h));
    return e->state == XAC_CHUNK_FREE && xac_dir_own_pages(h, number) == 0;
}

struct xac_chunk_entry *
xac_dir_entry(const struct xac_heap *h, uint64_t number)
{
    uint64_t s = first_part(h);
    uint64_t page_no = 1;
    uint64_t at = number;

    if (number >= xac_heap_chunks(h))
        return NULL;
    if (number >= s) {
        while (number >= 2 * s)
            s *= 2;
        page_no = s * XAC_CHUNK_PAGES;
        at = number - s;
    }
    page_no += at / entries_per_page(h);
    if (page_no >= h->view_pages)
        return NULL;
    xac_assert(page_no != 0);
    return (struct xac_chunk_entry *)xac_heap_page(h, page_no) + at % entries_per_page(h);
}

int
xac_dir_update(struct xac_heap *h, const struct xac_chunk *c)
{
    struct xac_chunk_entry *e;
    int rc = xac_heap_load(h, false);

    xac_assert(c->magic == XAC_HEAP_CHUNK_MAGIC);
    if (rc != 0)
        return rc;
    e = xac_dir_entry(h, c->number);
    if (e == NULL || e->state != XAC_CHUNK_PAGED)
        return xac_heap_damaged(h, c->number * XAC_CHUNK_PAGES + c->header,
                                "a chunk header that the directory does not know");
    xac_heap_write(h, e);
    e->rooms = c->rooms;
    e->longest = c->longest;
    e->header = c->header;
    xac_assert(e->rooms == c->rooms);
    xac_assert(e->header < XAC_CHUNK_PAGES);
    return 0;
}

int
xac_dir_free(struct xac_heap *h, uint64_t number)
{
    struct xac_chunk_entry *e;
    int rc = xac_heap_load(h, false);

    if (rc != 0)
        return rc;
    e = xac_dir_entry(h, number);
    if (e == NULL)
        return xac_heap_damaged(h, number * XAC_CHUNK_PAGES, "no entry of this chunk");
    xac_heap_write(h, e);
    memset(e, 0, sizeof *e);
    xac_assert(e->state == XAC_CHUNK_FREE);
    return 0;
}

/* ---- Making, loading and growing ---------------------------------------------------------- */

/* reserve -- the heap's own pages at the start of a chunk, and on from there. */
static int
reserve(struct xac_heap *h, uint64_t number, uint64_t pages)
{
    struct xac_chunk *c;

    xac_assert(pages > 0);
    for (; pages >= XAC_CHUNK_PAGES; pages -= XAC_CHUNK_PAGES) {
        struct xac_chunk_entry *e = xac_dir_entry(h, number++);

        xac_heap_write(h, e);
        e->state = XAC_CHUNK_META;
    }
    return pages == 0 ? 0 : xac_chunk_make(h, number, (uint32_t)pages, XAC_SLAB_META, &c);
}

/* make -- turn a blank segment into a heap. */
static int
make(struct xac_heap *h, struct xac_heap_header *header)
{
    uint64_t chunks = (h->view_pages + XAC_CHUNK_PAGES - 1) / XAC_CHUNK_PAGES;
    uint64_t dir_pages = (chunks + entries_per_page(h) - 1) / entries_per_page(h);
    uint64_t identity = 0;

    xac_assert(h->dir_pages == 0);
    xac_assert(header->magic == 0);
    if (1 + dir_pages + 2 > h->view_pages)
        return xac_err(EINVAL, "heap in %s: %llu pages are too few", h->view->name,
                       (unsigned long long)h->view_pages);
    while (identity == 0) {
        if (getentropy(&identity, sizeof identity) != 0)
            return xac_err(errno, "getentropy");
    }
    xac_heap_write(h, header);
    header->version = XAC_HEAP_VERSION;
    header->page_size = (uint32_t)h->page_size;
    header->identity = identity;
    header->dir_pages = dir_pages;
    header->n_pages = h->view_pages;
    header->magic = XAC_HEAP_MAGIC;
    h->dir_pages = dir_pages;
    h->n_pages = h->view_pages;
    *h->hints = (struct xac_heap_hints){.base = h->hints->base,
                                        .pid = h->hints->pid,
                                        .identity = identity,
                                        .dir_pages = dir_pages};
    xac_assert(h->dir_pages < h->n_pages);
    return reserve(h, 0, 1 + dir_pages);
}

/* is_within_file -- does the file have so many pages from the view's first on?  Who made the
   heap so long had made the file longer before, and no file becomes shorter. */
static bool
is_within_file(const struct xac_heap *h, uint64_t n_pages)
{
    struct stat st;

    if (n_pages <= h->view_pages)
        return true;
    return xac_sys.fstat(h->view->fd, &st) == 0
           && n_pages <= (uint64_t)st.st_size / h->page_size - h->view->area.first;
}

/* check_header -- is it a heap that we understand? */
static int
check_header(const struct xac_heap *h, const struct xac_heap_header *header)
{
    if (header->version != XAC_HEAP_VERSION)
        return xac_err(XAC_EVERSION, "heap in %s: version %u", h->view->name,
                       header->version);
    if (header->page_size != h->page_size)
        return xac_err(XAC_EPAGESIZE, "heap in %s: made with pages of %u bytes",
                       h->view->name, header->page_size);
    if (header->identity == 0 || header->dir_pages == 0
        || header->n_pages < header->dir_pages || !is_within_file(h, header->n_pages))
        return xac_heap_damaged(h, 0, "the heap's header is wrong");
    if (header->dir_pages >= h->view_pages)
        return xac_err(EINVAL, "heap in %s: mapped too short", h->view->name);
    return 0;
}

int
xac_heap_load(struct xac_heap *h, bool may_make)
{
    struct xac_heap_header *header = xac_heap_page(h, 0);
    uint64_t page_no = 0;
    int rc;

    if (h->dir_pages != 0)
        return 0;
    if (header->magic != XAC_HEAP_MAGIC) {
        if (header->magic != 0 || !xac_heap_blank(h, 0, &page_no))
            return xac_err(EINVAL, "%s is no heap, and page %llu of it has other data",
                           h->view->name, (unsigned long long)page_no);
        return may_make ? make(h, header) : ENOENT;
    }
    rc = check_header(h, header);
    if (rc != 0)
        return rc;
    if (h->hints->identity != header->identity)
        *h->hints = (struct xac_heap_hints){.base = h->hints->base,
                                            .pid = h->hints->pid,
                                            .identity = header->identity};
    h->dir_pages = h->hints->dir_pages = header->dir_pages;
    h->n_pages = header->n_pages;
    xac_assert(h->hints->identity != 0);
    return 0;
}

/*
 * growth_limit -- pages that the heap can have: a part of the directory that begins in the
 * new space must fit, with room for a chunk header.
 */
static uint64_t
growth_limit(const struct xac_heap *h)
{
    for (uint64_t s = first_part(h); s * XAC_CHUNK_PAGES < h->view_pages; s *= 2) {
        uint64_t start = s * XAC_CHUNK_PAGES;

        if (start >= h->n_pages && start + part_pages(h, s) + 2 > h->view_pages)
            return start;
    }
    return h->view_pages;
}

/* widen_last -- the last chunk had fewer pages than a chunk has; it has more now. */
static int
widen_last(struct xac_heap *h, uint64_t number)
{
    const struct xac_chunk_entry *e = xac_dir_entry(h, number);
    struct xac_chunk *c;
    uint32_t present;
    int rc;

    if (e->state != XAC_CHUNK_PAGED)
        return 0;
    rc = xac_chunk_at(h, number, &c);
    if (rc != 0)
        return rc;
    present = xac_heap_present(h, number);
    xac_heap_write(h, c);
    for (uint32_t p = c->present; p < present; p++)
        c->used &= ~(UINT64_C(1) << p);
    c->present = (uint8_t)present;
    c->longest = (uint8_t)xac_chunk_longest(c->used);
    return xac_dir_update(h, c);
}

int
xac_heap_grow(struct xac_heap *h, bool *grewp)
{
    struct xac_heap_header *header = xac_heap_page(h, 0);
    uint64_t old = h->n_pages;
    uint64_t limit = growth_limit(h);
    uint64_t page_no;
    int rc = 0;

    xac_assert(h->dir_pages != 0);
    *grewp = limit > old && xac_heap_blank(h, old, &page_no);
    if (!*grewp)
        return 0;
    xac_heap_write(h, header);
    xac_assert(limit > old);
    xac_assert(header->n_pages == old);
    header->n_pages = limit;
    h->n_pages = limit;
    if (old % XAC_CHUNK_PAGES != 0)
        rc = widen_last(h, old / XAC_CHUNK_PAGES);
    for (uint64_t s = first_part(h); s * XAC_CHUNK_PAGES < limit && rc == 0; s *= 2) {
        if (s * XAC_CHUNK_PAGES >= old)
            rc = reserve(h, s, part_pages(h, s));
    }
    return rc;
}

/* ---- Finding a chunk with room --------------------------------------------------------- */

/* has_room -- a paged chunk may have what is wanted. */
static bool
has_room(const struct xac_chunk_entry *e, const struct xac_want *want)
{
    xac_assert(want->pages < XAC_CHUNK_PAGES);
    if (want->pages != 0)
        return e->longest >= want->pages;
    return (e->rooms >> want->class & 1) != 0 || e->longest >= 1;
}

/* is_attached -- does a process with that id take part in the environment? */
static bool
is_attached(const struct xac_env *env, uint32_t pid)
{
    uint64_t n =
        atomic_load_explicit(&env->ctl->participants.count, memory_order_relaxed);

    for (uint32_t i = 0; i < n; i++) {
        const struct xac_participant *p = xac_participant_at(env, i);

        if (p->pid == pid && xac_registry_alive(env, i))
            return true;
    }
    return false;
}

/* How good a chunk is to take from. */
enum merit {
    NO_USE = 0,
    OTHERS = 1, /* a living process has it                                     */
    FRESH = 2,  /* free                                                        */
    ORPHAN = 3, /* its process is gone                                         */
    OURS = 4
};

/* What a search has found, and the process asked about last. */
struct search {
    uint64_t best;
    enum merit merit;
    uint32_t pid;
    bool is_attached;
};

static enum merit
merit_of(const struct xac_heap *h, const struct xac_chunk_entry *e, uint64_t number,
         const struct xac_want *want, struct search *s)
{
    if (e->state == XAC_CHUNK_FREE) {
        uint32_t need = want->pages != 0 ? want->pages : 1;

        return is_free(h, e, number) && xac_heap_present(h, number) > need ? FRESH
                                                                           : NO_USE;
    }
    if (e->state != XAC_CHUNK_PAGED || !has_room(e, want))
        return NO_USE;
    if (e->pid == h->pid)
        return e->thread == h->thread ? OURS : OTHERS;
    if (s->pid != e->pid) {
        s->pid = e->pid;
        s->is_attached = is_attached(h->env, e->pid);
    }
    return s->is_attached ? OTHERS : ORPHAN;
}

/*
 * search_chunk -- where to take from.  Goes through the directory from where this thread
 * found something last, and stops at the end of a directory page that offers a chunk
 * which is nobody else's.
 */
static struct search
search_chunk(const struct xac_heap *h, const struct xac_want *want)
{
    struct search s = {.merit = NO_USE};
    uint64_t n = xac_heap_chunks_seen(h);
    uint64_t per_page = entries_per_page(h);
    uint64_t k = h->hints->scan < n ? h->hints->scan / per_page * per_page : 0;

    xac_assert(h->dir_pages != 0);
    for (uint64_t seen = 0; seen < n && s.merit < OURS; seen++) {
        const struct xac_chunk_entry *e = xac_dir_entry(h, k);
        enum merit merit;

        if (e != NULL && xac_heap_sees(h, k)) {
            merit = merit_of(h, e, k, want, &s);
            if (merit > s.merit) {
                s.merit = merit;
                s.best = k;
            }
        }
        k = k + 1 < n ? k + 1 : 0;
        if (k % per_page == 0 && s.merit >= FRESH)
            break;
    }
    return s;
}

/* open_found -- the chunk that a search found, made ours unless a living process has it. */
static int
open_found(struct xac_heap *h, const struct search *s, struct xac_chunk **cp)
{
    struct xac_chunk_entry *e = xac_dir_entry(h, s->best);
    uint32_t pid = e->pid;
    int rc;

    xac_assert(s->merit != NO_USE);
    xac_assert(s->best < xac_heap_chunks(h));
    if (s->merit == FRESH)
        return xac_chunk_make(h, s->best, 0, XAC_SLAB_FREE, cp);
    rc = xac_chunk_at(h, s->best, cp);
    if (rc == 0 && s->merit == ORPHAN) {
        xac_chunk_adopt(h, *cp, xac_heap_tag(pid, e->thread));
        xac_heap_write(h, e);
        e->pid = h->pid;
        e->thread = h->thread;
    }
    return rc;
}

/* lower_room -- the chunk has not what is wanted: rule it out. */
static int
lower_room(struct xac_heap *h, struct xac_chunk *c, const struct xac_want *want)
{
    xac_assert(want->pages < XAC_CHUNK_PAGES);
    xac_heap_write(h, c);
    c->longest = (uint8_t)xac_chunk_longest(xac_chunk_not_free(h, c));
    if (want->pages == 0)
        c->rooms &= ~(UINT64_C(1) << want->class);
    return xac_dir_update(h, c);
}

int
xac_dir_take(struct xac_heap *h, const struct xac_want *want, void **addressp)
{
    uint64_t rounds_max = xac_heap_chunks_seen(h) + 1; /* each rules out a chunk */
    struct xac_chunk *c;
    int rc;

    xac_assert(h->dir_pages != 0);
    for (uint64_t round = 0; round < rounds_max; round++) {
        struct search s = search_chunk(h, want);

        if (s.merit == NO_USE)
            return ENOMEM;
        rc = open_found(h, &s, &c);
        if (rc != 0)
            return rc;
        *addressp = xac_chunk_take(h, c, want);
        if (*addressp != NULL) {
            h->hints->chunk = s.best;
            h->hints->chunk_page = s.best * XAC_CHUNK_PAGES + c->header;
            h->hints->scan = s.best;
            xac_assert(h->hints->chunk_page < h->view_pages);
            return 0;
        }
        rc = lower_room(h, c, want);
        if (rc != 0)
            return rc;
    }
    return xac_heap_damaged(h, 1, "the directory offers chunks that have been ruled out");
}

/* ---- Large allocations ------------------------------------------------------------------- */

/* search_large -- first of `whole` free chunks, with `tail` pages behind; UINT64_MAX: none. */
static uint64_t
search_large(const struct xac_heap *h, uint64_t whole, uint32_t tail)
{
    uint64_t n = xac_heap_chunks_seen(h);
    uint64_t row = 0;

    xac_assert(whole > 0);
    xac_assert(tail < XAC_CHUNK_PAGES);
    for (uint64_t k = 0; k < n; k++) {
        const struct xac_chunk_entry *e = xac_dir_entry(h, k);

        if (e == NULL || !is_free(h, e, k) || !xac_heap_sees(h, k)) {
            row = 0;
            continue;
        }
        if (row == whole)
            return xac_heap_present(h, k) > tail ? k - whole : UINT64_MAX;
        row = xac_heap_present(h, k) == XAC_CHUNK_PAGES ? row + 1 : 0;
        if (row == whole && tail == 0)
            return k + 1 - whole;
    }
    return UINT64_MAX;
}

int
xac_dir_take_large(struct xac_heap *h, uint64_t pages, void **addressp)
{
    uint64_t whole = pages / XAC_CHUNK_PAGES;
    uint32_t tail = (uint32_t)(pages % XAC_CHUNK_PAGES);
    uint64_t first = search_large(h, whole, tail);
    struct xac_chunk *c;

    xac_assert(pages >= XAC_CHUNK_PAGES);
    if (first == UINT64_MAX)
        return ENOMEM;
    for (uint64_t k = first; k < first + whole; k++) {
        struct xac_chunk_entry *e = xac_dir_entry(h, k);

        xac_heap_write(h, e);
        xac_assert(e->state == XAC_CHUNK_FREE);
        e->state = k == first ? XAC_CHUNK_LARGE : XAC_CHUNK_MORE;
        e->rooms = k == first ? pages : 0;
    }
    *addressp = xac_heap_page(h, first * XAC_CHUNK_PAGES);
    return tail == 0 ? 0 : xac_chunk_make(h, first + whole, tail, XAC_SLAB_TAIL, &c);
}

/* check_large -- do the entries agree with the allocation's head? */
static int
check_large(struct xac_heap *h, uint64_t number, uint64_t pages, struct xac_chunk **tailp)
{
    uint64_t whole = pages / XAC_CHUNK_PAGES;
    uint64_t n = xac_heap_chunks(h);
    int rc;

    xac_assert(number < xac_heap_chunks(h));
    if (whole == 0 || whole > n || number > n - whole)
        return xac_heap_damaged(h, number * XAC_CHUNK_PAGES,
                                "impossible large allocation");
    for (uint64_t k = number + 1; k < number + whole; k++) {
        const struct xac_chunk_entry *e = xac_dir_entry(h, k);

        if (e == NULL || e->state != XAC_CHUNK_MORE)
            return xac_heap_damaged(h, k * XAC_CHUNK_PAGES,
                                    "not part of the large allocation before it");
    }
    *tailp = NULL;
    if (pages % XAC_CHUNK_PAGES == 0)
        return 0;
    rc = xac_chunk_at(h, number + whole, tailp);
    if (rc == 0 && (*tailp)->header < pages % XAC_CHUNK_PAGES)
        rc = xac_heap_damaged(h, (number + whole) * XAC_CHUNK_PAGES,
                              "not the end of the large allocation before it");
    return rc;
}

int
xac_dir_give_large(struct xac_heap *h, uint64_t number)
{
    struct xac_chunk_entry *e = xac_dir_entry(h, number);
    uint64_t pages = e->rooms;
    struct xac_chunk *tail;
    int rc = check_large(h, number, pages, &tail);

    xac_assert(e != NULL);
    xac_assert(e->state == XAC_CHUNK_LARGE);
    for (uint64_t k = number; k < number + pages / XAC_CHUNK_PAGES && rc == 0; k++)
        rc = xac_dir_free(h, k);
    if (rc == 0 && tail != NULL)
        rc = xac_chunk_give(h, tail, 0, (unsigned)(pages % XAC_CHUNK_PAGES));
    return rc;
}

/* ---- The last resort ---------------------------------------------------------------------- */

int
xac_dir_reclaim(struct xac_heap *h)
{
    uint64_t n = xac_heap_chunks_seen(h);
    struct xac_chunk *c;
    int rc = 0;

    xac_assert(h->dir_pages != 0);
    memset(h->hints->run, 0, sizeof h->hints->run);
    h->hints->chunk_page = 0;
    h->hints->scan = 0;
    for (uint64_t k = 0; k < n && rc == 0; k++) {
        const struct xac_chunk_entry *e = xac_dir_entry(h, k);

        if (e == NULL || e->state != XAC_CHUNK_PAGED || !xac_heap_sees(h, k))
            continue;
        rc = xac_chunk_at(h, k, &c);
        if (rc == 0)
            rc = xac_chunk_reclaim(h, c);
    }
    return rc;
}
