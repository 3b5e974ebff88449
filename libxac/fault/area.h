/* SPDX-License-Identifier: MIT */
/*
 * area.h -- an area: addresses that show a part of a file, and trap where access is missing.
 *
 * WHAT      Where the area lies, which pages of its file it shows, and which engine
 *           (fault_engine.h) watches it.  Page numbers count from its base.
 * NOT HERE  What a page is to show, and whether an access is allowed: that is the owner's
 *           (view.h), which the engines and the dispatcher reach through struct xac_area_owner.
 * OWNER     The structure that it is a part of.
 * THREADS   As its owner; the dispatcher reads it in the fault handler of any thread.
 *
 * INVARIANTS
 *   (1) While it is attached, base, length, page_size, n_pages and first are fixed, but for
 *       xac_engine_moved.
 *   (2) A fault in it is handled by its owner's function, in the thread that has made it.
 */
#ifndef XAC_AREA_H
#define XAC_AREA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/annot.h"
#include "base/handle.h"

struct xac_area;
struct xac_engine;

enum xac_protection {
    XAC_PROT_NONE = 0,
    XAC_PROT_READ = 1,
    XAC_PROT_WRITE = 2
};

/* What the hardware says the faulting instruction wanted; UNKNOWN: it does not say. */
enum xac_access {
    XAC_ACCESS_READ,
    XAC_ACCESS_WRITE,
    XAC_ACCESS_UNKNOWN
};

/* What engines and the dispatcher ask of the owner of the areas.  All functions are XAC_SIGSAFE. */
struct xac_area_owner {
    /* The descriptor of the file, opened again if the program has closed it; -1 with errno. */
    int (*fd)(struct xac_area *area);
    /* Has the page been given access for loads only, so that a store must trap? */
    bool (*is_read_only)(struct xac_area *area, uint64_t page_no);
    /* A fault in the area.  Returns if the access can be repeated. */
    void (*fault)(struct xac_area *area, void *addr, enum xac_access access);
    /* A fault in no area.  Returns if it has nothing to do with any. */
    void (*astray)(const void *addr, bool is_unmapped, bool is_write);
};

struct xac_area {
    const struct xac_area_owner *owner;
    const struct xac_engine *ops;
    size_t page_size;
    uint8_t *base; /* where it starts                                                   */
    size_t length; /* bytes                                                             */
    uint64_t n_pages;
    uint64_t first;      /* page of the file that lies at base                          */
    bool is_memory_only; /* the page cache must not be shown (XAC_OPT_FRAMES)           */
    int memory; /* memfd of memory shared with other areas: a page where it is in the file;
                    -1: memory of its own                                               */
    int pagemap; /* of this process's page table, -1 if there is none                   */
    struct xac_handle pagemap_handle;
    int in_place; /* file whose page `place` lies at base, mapped shared; -1: none; set as wants_twin */
    uint64_t place;
    bool
        wants_twin; /* set before xac_engine_moved(): the engine is to make a twin, if it can */
    uint8_t *
        twin; /* the engine's: the memory at other addresses, where pages that have access can be
                      stored to without a trap; NULL: none                              */
    size_t twin_bytes;
    /* The engine's. */
    void *ticket;    /* NULL: not attached                                              */
    unsigned watch;  /* which userfaultfd watches it (fault_uffd.c)                     */
    bool is_scanned; /* stores to readable pages do not trap, but are found             */
};

/* n pages from the first one on. */
struct xac_page_range {
    uint64_t first, n;
};

/* xac_area_shares -- is it memory that areas have in common (XAC_OPT_FRAMES)? */
XAC_SIGSAFE static inline bool
xac_area_shares(const struct xac_area *a)
{
    return a->memory >= 0;
}

/* xac_area_is_shared -- is it a shared mapping, and no private one? */
XAC_SIGSAFE static inline bool
xac_area_is_shared(const struct xac_area *a)
{
    return a->memory >= 0 || a->twin != NULL || a->in_place >= 0;
}

/* xac_area_at -- the address of a page. */
XAC_SIGSAFE static inline uint8_t *
xac_area_at(const struct xac_area *a, uint64_t page_no)
{
    return a->base + page_no * a->page_size;
}

/* xac_area_page_no -- of the page that an address of the area lies in. */
XAC_SIGSAFE static inline uint64_t
xac_area_page_no(const struct xac_area *a, const void *addr)
{
    return (uint64_t)((const uint8_t *)addr - a->base) / a->page_size;
}

/* xac_area_map_file -- map n pages of the file privately, without access; ret 0 or errno. */
int xac_area_map_file(struct xac_area *area, uint64_t page_no, uint64_t n);

/* xac_area_open_pagemap -- open that of this process, if it has one.
   xac_area_pagemap -- it, opened again if the program has closed it; -1: there is none. */
void xac_area_open_pagemap(struct xac_area *area);
int xac_area_pagemap(struct xac_area *area);

#endif /* XAC_AREA_H */
