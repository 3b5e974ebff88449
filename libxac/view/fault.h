/* SPDX-License-Identifier: MIT */
/*
 * fault.h -- from a fault at an address to an access of a page, and the engines that
 * protect pages and catch the faults.
 *
 * WHAT      The front half: is the access allowed, which page is it, what is to be done
 *           (xac_view_access).  An engine is the back half; the rest of the library knows
 *           of it what struct xac_engine says, and not which one runs.
 * SIGNALS   The handler runs with all signals blocked, calls XAC_SIGSAFE functions only,
 *           and holds no lock but a page's.  Faults that are not ours go to the handler
 *           that was there before.
 * PROGRESS  A fault on a page that already has the access it needs stops the program: it
 *           would come again for ever.
 */
#ifndef XAC_FAULT_H
#define XAC_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/annot.h"

struct xac_ctx;
struct xac_view;

enum xac_protection {
    XAC_PROT_NONE = 0,
    XAC_PROT_READ = 1,
    XAC_PROT_WRITE = 2
};

/* n pages from the first one on. */
struct xac_page_range {
    uint64_t first, n;
};

/* Pages that an engine which does not split has to take back, so many ranges by one call. */
#define XAC_BATCH_MAX 64

/* Zeroed at first; all of one view. */
struct xac_page_batch {
    struct xac_view *view;
    size_t n;
    struct xac_page_range range[XAC_BATCH_MAX];
};

struct xac_engine {
    const char *name; /* in XAC_ENGINE                                                  */
    int kind;         /* enum xac_engine_kind                                           */
    /* Pages are mappings of the file, which changes of protection split, and keep what they
       hold while they have no access.  Otherwise they are memory, lost with the access. */
    bool splits;
    bool
        reads_first; /* a first store is a load and a store                              */
    /* Watch a view's addresses, where its file is mapped without access; stop watching.
       ret 0 or errno. */
    int (*attach)(struct xac_view *view);
    void (*detach)(struct xac_view *view);
    /* NULL if it splits.  Map the file there again, attached, for another engine. */
    int (*leave)(struct xac_view *view);
    /* The addresses of a view that is attached have changed, or its memory (view->memory),
       and all is absent.  ret 0; ENOTSUP: no memory can be shared; errno. */
    int (*moved)(struct xac_view *view);
    /* Set the protection of n pages; ret 0 or errno.  XAC_SIGSAFE. */
    int (*protect)(struct xac_view *view, uint64_t first, uint64_t n,
                   enum xac_protection prot);
    /* Drop the private copies of n pages, so that they show the file, or are without
       access if the engine does not split: in aliases that share the memory, too.
       XAC_SIGSAFE. */
    int (*discard)(struct xac_view *view, uint64_t first, uint64_t n);
    /* Give n pages without access these bytes, and access, or none of them; NULL: let them
       have access and store them.  More than one if it does not split only.  Without bytes:
       the one page that is in the shared memory; EEXIST: it has access.
       ret 0 or errno.  XAC_SIGSAFE. */
    int (*fill)(struct xac_view *view, uint64_t first, uint64_t n, const uint8_t *bytes,
                enum xac_protection prot);
    /* Pages without access; NULL if it splits. */
    int (*take_back)(struct xac_view *view, const struct xac_page_range *range, size_t n);
    /* NULL if stores to pages that have been filled for loads always trap.  Have a view
       scanned, so that they do not, or not; all that is there is protected.  ret 0, or
       errno and nothing is known of the view: it must be attached anew (moved). */
    int (*scan_set)(struct xac_view *view, bool is_on);
    /* Of a scanned view, pages from *fromp on that have been stored to since they were
       protected, and are now again; *fromp becomes where to go on.  ret 0 or errno. */
    int (*scan)(struct xac_view *view, uint64_t *fromp, struct xac_page_range *range,
                size_t room, size_t *np);
    /* Has the kernel made a private copy of the page?  True if that is not known. */
    bool (*is_private)(const struct xac_view *view, uint64_t page_no);
    /* In a child: no access to anything; and when it rejoins, ret 0 or errno. */
    void (*abandon)(struct xac_view *view);
    int (*rejoin)(struct xac_view *view);
    /* Make the process ready for views; ret 0 or errno.  The opposite. */
    int (*start)(void);
    void (*stop)(void);
    /* In the child, after fork: the other threads, and what they were doing, are gone. */
    void (*forked)(void);
};

extern const struct xac_engine
    xac_engine_sigsegv;                         /* fault_sigsegv.c                     */
extern const struct xac_engine xac_engine_uffd; /* fault_uffd.c                        */
extern const struct xac_engine
    xac_engine_thesis; /* fault_thesis.c                      */

extern const struct xac_engine xac_engine_scan; /* fault_uffd.c, always scanned       */

/* When views are scanned while alone (view_scan.h). */
enum xac_scanning {
    XAC_SCAN_NEVER,
    XAC_SCAN_IF_CHEAPER,
    XAC_SCAN_ALWAYS
};

/* xac_engine_scanning -- IF_CHEAPER unless XAC_ENGINE says which engine. */
enum xac_scanning xac_engine_scanning(void);

/*
 * xac_engine_start -- choose the process's engine and start it: the one that the environment
 * variable XAC_ENGINE names, else uffd; uffd in the place of scan, or sigsegv, if that cannot
 * be had.
 * ret 0; EINVAL: there is none of that name; ENOTSUP: fault_valgrind.h; errno.
 */
int xac_engine_start(void);
void xac_engine_stop(void);

/* xac_engine_forked -- in a child, before its views are abandoned. */
void xac_engine_forked(void);

/* xac_engine_kind -- of the one chosen; *whyp: errno value for which it is not the one that
   was wanted, or for which a view uses sigsegv instead; 0 none. */
int xac_engine_kind(int *whyp);

/* xac_engine_discard -- what all engines have in the place of discard. */
XAC_SIGSAFE int xac_engine_discard(struct xac_view *view, uint64_t first, uint64_t n);

/* xac_batch_add -- one page more; neighbours that come in order are one range.  What does not fit
   is taken back, as by xac_batch_flush.  ret 0 or errno. */
XAC_SIGSAFE int xac_batch_add(struct xac_page_batch *batch, struct xac_view *view,
                              uint64_t page_no);
XAC_SIGSAFE int xac_batch_flush(struct xac_page_batch *batch);

/* xac_engine_attach -- by the process's engine, or sigsegv if it fails; ret 0 or errno. */
int xac_engine_attach(struct xac_view *view);

/*
 * xac_engine_moved, rejoin -- as the engine's functions; if they fail, sigsegv takes over.
 * xac_engine_fall_back -- let sigsegv take over a view of which nothing is known.
 * ret 0 or errno.
 */
int xac_engine_moved(struct xac_view *view);
int xac_engine_rejoin(struct xac_view *view);
int xac_engine_fall_back(struct xac_view *view);

/*
 * xac_fault_handle -- a fault inside a view.
 *
 * in   is_write  of the access
 * ret  returns if the access can be repeated; stops the program if it must not be.
 */
XAC_SIGSAFE void xac_fault_handle(struct xac_view *view, void *addr, bool is_write);

/* xac_fault_astray -- a fault in no view, where nothing is mapped, or something without access: stop
   the program if the address has missed a mapping (guard.h); else return. */
XAC_SIGSAFE void xac_fault_astray(const void *addr, bool is_unmapped, bool is_write);

/* xac_fault_lacks -- that in words, as the end of "... cannot be served: "; static. */
XAC_SIGSAFE const char *xac_fault_lacks(const struct xac_ctx *ctx);

/* xac_fault_stray -- a page is not as it was: stop the program for the store that nobody
   noticed when it happened, in a query or outside a transaction. */
_Noreturn void xac_fault_stray(const struct xac_view *view, uint64_t page_no,
                               const uint8_t *was, bool in_query);

#endif /* XAC_FAULT_H */
