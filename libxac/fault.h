/* SPDX-License-Identifier: MIT */
/*
 * fault.h -- from a fault at an address to an access of a page, and the engines that
 * protect pages and catch the faults.
 *
 * WHAT      The front half: is the access allowed, which page is it, what is to be done
 *           (xac_view_access).  An engine is the back half: six functions; the rest of
 *           the library does not know which one runs.
 * SIGNALS   The handler runs with all signals blocked, calls XAC_SIGSAFE functions only,
 *           and holds no lock but a page's.  Faults that are not ours go to the handler
 *           that was there before.
 * PROGRESS  A fault on a page that already has the access it needs stops the program: it
 *           would come again for ever.
 */
#ifndef XAC_FAULT_H
#define XAC_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "annot.h"

struct xac_view;

enum xac_protection {
    XAC_PROT_NONE = 0,
    XAC_PROT_READ = 1,
    XAC_PROT_WRITE = 2
};

struct xac_engine {
    const char *name;
    /* Watch a view's addresses; stop watching.  ret 0 or errno. */
    int (*attach)(struct xac_view *view);
    void (*detach)(struct xac_view *view);
    /* The addresses of a view that is attached have changed. */
    void (*moved)(struct xac_view *view);
    /* Set the protection of n pages; ret 0 or errno.  XAC_SIGSAFE. */
    int (*protect)(struct xac_view *view, uint64_t first, uint64_t n,
                   enum xac_protection prot);
    /* Drop the private copies of n pages, so that they show the file.  XAC_SIGSAFE. */
    int (*discard)(struct xac_view *view, uint64_t first, uint64_t n);
    /* Has the kernel made a private copy of the page?  True if that is not known. */
    bool (*is_private)(const struct xac_view *view, uint64_t page_no);
    /* Install the handler for the process; put the old one back. */
    int (*start)(void);
    void (*stop)(void);
    /* Before a fork, and after it in the parent: nothing is attached or detached. */
    void (*fork)(void);
    void (*fork_done)(void);
    /* In the child, after fork: the other threads, and what they were doing, are gone. */
    void (*forked)(void);
};

extern const struct xac_engine xac_engine_sigsegv;

/*
 * xac_fault_handle -- a fault inside a view.
 *
 * in   is_write  of the access
 * ret  returns if the access can be repeated; stops the program if it must not be.
 */
XAC_SIGSAFE void xac_fault_handle(struct xac_view *view, void *addr, bool is_write);

#endif /* XAC_FAULT_H */
