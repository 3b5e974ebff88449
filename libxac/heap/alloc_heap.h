/* SPDX-License-Identifier: MIT */
/*
 * alloc_heap.h -- shared by the parts of the allocator: see alloc.h.
 *
 * WHAT      A heap as one call sees it, the hints that a thread keeps between calls, size
 *           classes, and the functions of alloc_chunk.c and alloc_dir.c.
 * OWNER     struct xac_heap lives on the stack of one call.  Hints are the thread's own.
 */
#ifndef XAC_ALLOC_HEAP_H
#define XAC_ALLOC_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/annot.h"
#include "heap/alloc_format.h"

struct xac_env;
struct xac_view;

#define XAC_ALIGNMENT   16
#define XAC_CLASSES_MAX 48

/*
 * Size classes of a page size.  Classes below n_runs are slots in runs with a header in the
 * page.  The others divide a page into 8, 7, ... 2 slots, which the chunk header describes.
 * Larger allocations take whole pages.
 */
struct xac_classes {
    uint32_t count;
    uint32_t n_runs;
    uint32_t size[XAC_CLASSES_MAX];  /* bytes of a slot                       */
    uint32_t slots[XAC_CLASSES_MAX]; /* per page                              */
    uint32_t first[XAC_CLASSES_MAX]; /* offset of the first slot in the page  */
};

/* The hints of a thread for a heap; all of them may be out of date. */
struct xac_heap_hints {
    const uint8_t *base; /* of the segment, NULL: unused                                */
    uint32_t pid;        /* participant: a child of fork() starts with none             */
    uint64_t identity;   /* of the heap; 0 unknown                                      */
    uint64_t dir_pages;  /* of its directory, when it was loaded last                   */
    uint64_t chunk;      /* taken from last ...                                         */
    uint64_t chunk_page; /* ... page of its header, 0 none                              */
    uint64_t scan;       /* chunk at which to start looking for another                 */
    uint64_t run[XAC_CLASSES_MAX]; /* page that served a class last, 0 none             */
};

struct xac_heap {
    struct xac_env *env;
    struct xac_view *view;
    uint8_t *base;
    size_t page_size;
    uint64_t view_pages;
    const struct xac_classes *classes;
    struct xac_heap_hints *hints;
    uint32_t pid;
    uint8_t thread;
    uint16_t tag; /* made from both */
    /* From the header, once xac_heap_load() has read it. */
    uint64_t dir_pages; /* 0: not loaded */
    uint64_t n_pages;   /* that the heap has; this view may be shorter */
};

/* The room that is wanted: a slot of a class, or pages. */
struct xac_want {
    uint32_t class;
    uint32_t pages; /* 0: a slot */
};

/* ---- alloc.c: pages and classes -------------------------------------------------------- */

/* xac_heap_init -- a heap as this call sees it; ret 0 or ENOMEM. */
int xac_heap_init(struct xac_heap *h, struct xac_view *view);

/* xac_heap_page -- a page that this mapping shows. */
static inline void *
xac_heap_page(const struct xac_heap *h, uint64_t page_no)
{
    xac_assert(page_no < h->view_pages);
    return h->base + page_no * h->page_size;
}

/* xac_heap_write -- announce a store to a page: saves the trap, or the second trap. */
void xac_heap_write(struct xac_heap *h, const void *address);

/* xac_heap_tag -- mark of a process and thread in page descriptors. */
static inline uint16_t
xac_heap_tag(uint32_t pid, uint8_t thread)
{
    return (uint16_t)(pid ^ pid >> 16 ^ (uint32_t)thread << 8 ^ thread);
}

/* xac_heap_stamp -- of the page with that number. */
uint64_t xac_heap_stamp(uint64_t identity, uint64_t page_no);

/* xac_run_at -- the run header in a page, or NULL if it has none or is not shown. */
struct xac_run *xac_run_at(const struct xac_heap *h, uint64_t page_no);

/* xac_run_take -- a free slot of a run; NULL if it is full. */
void *xac_run_take(struct xac_heap *h, struct xac_run *run);

/* xac_run_make, wipe -- turn a page into an empty run; end it. */
void xac_run_make(struct xac_heap *h, uint64_t page_no, uint32_t class);
void xac_run_wipe(struct xac_heap *h, struct xac_run *run);

static inline uint32_t
xac_run_words(const struct xac_classes *classes, uint32_t class)
{
    xac_assert_slow(class < classes->n_runs);
    return (classes->slots[class] + 63) / 64;
}

static inline bool
xac_run_is_empty(const struct xac_heap *h, const struct xac_run *run)
{
    uint64_t all = 0;

    xac_assert_slow(run->class < h->classes->n_runs);
    for (uint32_t i = 0; i < xac_run_words(h->classes, run->class); i++)
        all |= run->bits[i];
    return all == 0;
}

/* xac_heap_damaged -- XAC_EDAMAGED with text. */
int xac_heap_damaged(const struct xac_heap *h, uint64_t page_no, const char *what);

/* ---- alloc_chunk.c: pages of a chunk ---------------------------------------------------- */

/* xac_chunk_longest -- most zero bits in a row. */
unsigned xac_chunk_longest(uint64_t used);

/* xac_chunk_not_free -- a bit for each page that cannot be allocated.  In a sound chunk that is
   `used`; a damaged one must not give away its header, the heap's own pages, or pages that are
   not mapped. */
uint64_t xac_chunk_not_free(const struct xac_heap *h, const struct xac_chunk *c);

/* xac_chunk_is_sound -- is this the header of that chunk, its counts within bounds? */
bool xac_chunk_is_sound(const struct xac_heap *h, const struct xac_chunk *c,
                        uint64_t number, uint64_t page_no);

/*
 * xac_heap_wrong -- what is wrong with a chunk's header, NULL if nothing is: invariants (2) and
 * (4) of alloc.h as far as the header tells; with its directory entry, if that is given, (3).
 * xac_heap_assert -- stop the program if something is.  Only of a chunk that was sound before: a
 * heap is the program's memory, and may have been damaged by it.
 */
const char *xac_heap_wrong(const struct xac_heap *h, const struct xac_chunk *c,
                           const struct xac_chunk_entry *e);
void xac_heap_assert(const struct xac_heap *h, const struct xac_chunk *c,
                     const struct xac_chunk_entry *e);

/* xac_chunk_hinted -- header of that chunk if it is the hinted one, else NULL. */
struct xac_chunk *xac_chunk_hinted(struct xac_heap *h, uint64_t number);

/*
 * xac_chunk_at -- header of a paged chunk, hinted or not.
 *
 * ret  0; EINVAL with text if the chunk is not paged; XAC_EDAMAGED.
 */
int xac_chunk_at(struct xac_heap *h, uint64_t number, struct xac_chunk **cp);

/*
 * xac_chunk_make -- turn a free chunk into a paged one.
 *
 * in   taken  its first pages, used for `kind` (TAIL, META); the header follows
 */
int xac_chunk_make(struct xac_heap *h, uint64_t number, uint32_t taken,
                   enum xac_slab_kind kind, struct xac_chunk **cp);

/* xac_chunk_take -- a slot or pages from a chunk; NULL if it has no room. */
void *xac_chunk_take(struct xac_heap *h, struct xac_chunk *c,
                     const struct xac_want *want);

/* xac_chunk_adopt -- take over a chunk of a process that is gone. */
void xac_chunk_adopt(struct xac_heap *h, struct xac_chunk *c, uint16_t tag);

/* xac_chunk_give -- free pages of a chunk. */
int xac_chunk_give(struct xac_heap *h, struct xac_chunk *c, unsigned first, unsigned n);

/* xac_chunk_give_run -- a slot was freed in a run that was full, or that is empty now. */
int xac_chunk_give_run(struct xac_heap *h, uint64_t page_no, struct xac_run *run);

/* xac_chunk_give_at -- free the allocation at an address of a paged chunk. */
int xac_chunk_give_at(struct xac_heap *h, struct xac_chunk *c, uint64_t offset);

/* xac_chunk_reclaim -- free empty runs that were kept; and the chunk, if it is empty. */
int xac_chunk_reclaim(struct xac_heap *h, struct xac_chunk *c);

/* ---- alloc_dir.c: the directory ----------------------------------------------------------- */

/*
 * xac_heap_load -- read the heap header.
 *
 * in   may_make  whether a blank segment becomes a heap
 * ret  0; ENOENT blank (may_make is false); EINVAL neither heap nor blank; XAC_EDAMAGED,
 *      XAC_EVERSION, XAC_EPAGESIZE.
 */
int xac_heap_load(struct xac_heap *h, bool may_make);

static inline uint64_t
xac_heap_chunks(const struct xac_heap *h)
{
    xac_assert_slow(h->n_pages != 0);
    return (h->n_pages + XAC_CHUNK_PAGES - 1) / XAC_CHUNK_PAGES;
}

/* xac_heap_chunks_seen -- how many chunks begin within this mapping. */
static inline uint64_t
xac_heap_chunks_seen(const struct xac_heap *h)
{
    uint64_t pages = h->n_pages < h->view_pages ? h->n_pages : h->view_pages;

    return (pages + XAC_CHUNK_PAGES - 1) / XAC_CHUNK_PAGES;
}

/* xac_heap_present -- pages of a chunk that the heap has. */
static inline uint32_t
xac_heap_present(const struct xac_heap *h, uint64_t number)
{
    uint64_t left = h->n_pages - number * XAC_CHUNK_PAGES;

    xac_assert(number * XAC_CHUNK_PAGES < h->n_pages);
    return left < XAC_CHUNK_PAGES ? (uint32_t)left : XAC_CHUNK_PAGES;
}

/* xac_heap_sees -- does this process's mapping show all of that chunk? */
static inline bool
xac_heap_sees(const struct xac_heap *h, uint64_t number)
{
    return number * XAC_CHUNK_PAGES + xac_heap_present(h, number) <= h->view_pages;
}

/* xac_dir_entry -- entry of a chunk; NULL if this mapping, or the heap, is too short for it. */
struct xac_chunk_entry *xac_dir_entry(const struct xac_heap *h, uint64_t number);

/* xac_dir_own_pages -- pages at the start of a chunk that are the heap's own. */
uint32_t xac_dir_own_pages(const struct xac_heap *h, uint64_t number);

/* xac_dir_update -- copy rooms, longest and the header's place to the entry. */
int xac_dir_update(struct xac_heap *h, const struct xac_chunk *c);

/* xac_dir_free -- make a chunk free as a whole. */
int xac_dir_free(struct xac_heap *h, uint64_t number);

/* xac_dir_take -- a slot or pages from any chunk except the hinted; ENOMEM if none has room. */
int xac_dir_take(struct xac_heap *h, const struct xac_want *want, void **addressp);

/* xac_dir_take_large, give_large -- allocate and free more pages than a chunk has. */
int xac_dir_take_large(struct xac_heap *h, uint64_t pages, void **addressp);
int xac_dir_give_large(struct xac_heap *h, uint64_t number);

/* xac_dir_reclaim -- give back everything that is kept but empty, in all chunks. */
int xac_dir_reclaim(struct xac_heap *h);

/* xac_heap_grow -- add the pages of this mapping behind the heap; *grewp: were there any? */
int xac_heap_grow(struct xac_heap *h, bool *grewp);

/* ---- alloc_blank.c ------------------------------------------------------------------------- */

/*
 * xac_heap_blank -- are pages first to n_pages - 1 of the view all zero, as this
 * transaction sees them?  Does not touch them.
 *
 * out  pagep  the first that is not
 */
bool xac_heap_blank(const struct xac_heap *h, uint64_t first, uint64_t *pagep);

#endif /* XAC_ALLOC_HEAP_H */
