/* SPDX-License-Identifier: MIT */
/*
 * fault_engine.h -- the engines, which protect the pages of areas and have faults caught; and
 * which of them a process uses.
 *
 * WHAT      An engine is what struct xac_engine says: the rest of the library does not know
 *           which one runs.
 * SIGNALS   See fault_signal.h.
 * THREADS   xac_engine_start, stop and forked: one at a time.  The others: the one that has the
 *           area.
 */
#ifndef XAC_FAULT_ENGINE_H
#define XAC_FAULT_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/annot.h"
#include "fault/area.h"

/* Pages that an engine that fills has to take back, so many ranges by one call. */
#define XAC_BATCH_MAX 64

/* n is 0 at first; all of one area. */
struct xac_page_batch {
    struct xac_area *area;
    size_t n;
    struct xac_page_range range[XAC_BATCH_MAX];
};

/* An engine with mappings of the file as its pages: changes of protection split them, and they keep
   what they hold while they have no access. */
struct xac_engine_maps {
    bool reads_first; /* a first store is a load and a store                            */
    /* Has the kernel made a private copy of the page?  True if that is not known. */
    bool (*is_private)(const struct xac_area *area, uint64_t page_no);
    /* Map one page and give it access; bytes: its new contents, NULL: those of the file.  NULL
       if pages lie there already, and are to be given access by `protect`.
       ret 0 or errno.  XAC_SIGSAFE. */
    int (*show)(struct xac_area *area, uint64_t page_no, const uint8_t *bytes,
                enum xac_protection prot);
};

/* An engine that fills memory of its own; a page's bytes are lost with the access. */
struct xac_engine_fills {
    /* Map the file there again, attached, for an engine that maps. */
    int (*leave)(struct xac_area *area);
    /* Give n pages without access these bytes, and access, or none of them.  Without bytes: the
       one page that is in the shared memory; EEXIST: it has access.
       ret 0 or errno.  XAC_SIGSAFE. */
    int (*fill)(struct xac_area *area, uint64_t first, uint64_t n, const uint8_t *bytes,
                enum xac_protection prot);
    /* These pages have no access. */
    int (*take_back)(struct xac_area *area, const struct xac_page_range *range, size_t n);
    /* Have an area scanned, so that stores to pages that have been filled for loads do not trap,
       or not; all that is there is protected.  ret 0, or errno and nothing is known of the
       area: it must be attached anew (moved). */
    int (*scan_set)(struct xac_area *area, bool is_on);
    /* Of a scanned area, pages from *fromp on that have been stored to since they were
       protected, and are now again; *fromp becomes where to go on.  ret 0 or errno. */
    int (*scan)(struct xac_area *area, uint64_t *fromp, struct xac_page_range *range,
                size_t room, size_t *np);
};

/* What all engines do.  No function is NULL. */
struct xac_engine {
    const char *name; /* in XAC_ENGINE                                                  */
    int kind;         /* enum xac_engine_kind                                           */
    const struct xac_engine_maps *maps;   /* NULL: it fills ...                         */
    const struct xac_engine_fills *fills; /* ... NULL: it maps                          */
    /* Watch an area's addresses, where its file is mapped without access; stop watching.
       ret 0 or errno. */
    int (*attach)(struct xac_area *area);
    void (*detach)(struct xac_area *area);
    /* The addresses of an area that is attached have changed, or its memory (area->memory),
       and all is absent.  ret 0; ENOTSUP: no memory can be shared; errno. */
    int (*moved)(struct xac_area *area);
    /* Set the protection of n pages; ret 0 or errno.  XAC_SIGSAFE. */
    int (*protect)(struct xac_area *area, uint64_t first, uint64_t n,
                   enum xac_protection prot);
    /* Drop the private copies of n pages, so that they show the file, or are without
       access if the engine fills: in aliases that share the memory, too.  XAC_SIGSAFE. */
    int (*discard)(struct xac_area *area, uint64_t first, uint64_t n);
    /* In a child: no access to anything; and when it rejoins, ret 0 or errno. */
    void (*abandon)(struct xac_area *area);
    int (*rejoin)(struct xac_area *area);
    /* Make the process ready for areas; ret 0 or errno.  The opposite. */
    int (*start)(const struct xac_area_owner *owner);
    void (*stop)(void);
    /* In the child, after fork: the other threads, and what they were doing, are gone. */
    void (*forked)(void);
};

extern const struct xac_engine
    xac_engine_sigsegv;                         /* fault_sigsegv.c                     */
extern const struct xac_engine xac_engine_uffd; /* fault_uffd.c                        */
extern const struct xac_engine xac_engine_scan; /* fault_uffd.c, always scanned       */

/* When areas are scanned (view_scan.h). */
enum xac_scanning {
    XAC_SCAN_NEVER,
    XAC_SCAN_IF_CHEAPER,
    XAC_SCAN_ALWAYS
};

/* xac_engine_scanning -- IF_CHEAPER if the engine is the best one, not a certain one. */
enum xac_scanning xac_engine_scanning(void);

/* xac_engine_plug -- an engine to use in the place of the one that is wanted; NULL: none.  The library
   has none.  A program that links the library's objects may define the function itself, as
   bench/cost/engine_thesis.c does. */
const struct xac_engine *xac_engine_plug(void);

/*
 * xac_engine_start -- choose the process's engine and start it: the one that is wanted; uffd
 * in the place of scan, or sigsegv, if that cannot be had.
 * in   owner  of all areas; static
 * in   kind   enum xac_engine_kind; XAC_ENGINE_BEST: uffd, with scans where they are cheaper
 * ret 0; ENOTSUP: fault_valgrind.h; errno.
 */
int xac_engine_start(const struct xac_area_owner *owner, uint32_t kind);
void xac_engine_stop(void);

/* xac_engine_forked -- in a child, before its areas are abandoned. */
void xac_engine_forked(void);

/* xac_engine_kind -- of the one chosen; *whyp: errno value for which it is not the one that
   was wanted, or for which an area uses sigsegv instead; 0 none. */
int xac_engine_kind(int *whyp);

/* xac_engine_discard -- what all engines have in the place of discard. */
XAC_SIGSAFE int xac_engine_discard(struct xac_area *area, uint64_t first, uint64_t n);

/* xac_batch_add -- one page more; neighbours that come in order are one range.  What does not fit
   is taken back, as by xac_batch_flush.  ret 0 or errno. */
XAC_SIGSAFE int xac_batch_add(struct xac_page_batch *batch, struct xac_area *area,
                              uint64_t page_no);
XAC_SIGSAFE int xac_batch_flush(struct xac_page_batch *batch);

/* xac_engine_attach -- by the process's engine, or sigsegv if it fails; ret 0 or errno. */
int xac_engine_attach(struct xac_area *area);

/*
 * xac_engine_moved, rejoin -- as the engine's functions; if they fail, sigsegv takes over.
 * xac_engine_fall_back -- let sigsegv take over an area of which nothing is known.
 * ret 0 or errno.
 */
int xac_engine_moved(struct xac_area *area);
int xac_engine_rejoin(struct xac_area *area);
int xac_engine_fall_back(struct xac_area *area);

#endif /* XAC_FAULT_ENGINE_H */
