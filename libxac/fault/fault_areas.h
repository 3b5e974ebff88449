/* SPDX-License-Identifier: MIT */
/*
 * fault_areas.h -- the dispatcher: finds the range that an address is in.
 *
 * WHAT      An ordered set of ranges, each with a handler.  A build has one of two
 *           implementations: the dispatcher of libsigsegv (fault_areas_sigsegv.c), or our own
 *           (fault_areas.c), for programs that must not be bound by libsigsegv's licence
 *           (`configure --without-libsigsegv`).
 * NOT HERE  The signals.  Changing a set while others search: fault_signal.c has two sets, and
 *           changes only the one that no thread searches.
 * OWNER     The caller.  Memory of a set is kept until the process ends.
 * THREADS   One at a time.  But any number of threads may dispatch at the same time, also in a
 *           signal handler, while the set is not changed.
 *
 * INVARIANTS
 *   (1) The ranges of a set do not overlap, and none is empty.
 */
#ifndef XAC_FAULT_AREAS_H
#define XAC_FAULT_AREAS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/annot.h"

struct xac_areas {
    void *root;  /* libsigsegv: its tree; our own: an array in the order of addresses */
    size_t n;    /* our own: elements in use ...                                      */
    size_t room; /* ... of so many                                                    */
};

/* Called for an address in a range; ret nonzero: the fault has been handled. */
typedef int (*xac_area_fn)(void *addr, void *arg);

/* xac_areas_init -- a set without ranges; zeroed before, or empty. */
void xac_areas_init(struct xac_areas *set);

/* xac_areas_insert -- ret the ticket for xac_areas_remove; NULL: no memory. */
void *xac_areas_insert(struct xac_areas *set, void *base, size_t length, xac_area_fn fn,
                       void *arg);
void xac_areas_remove(struct xac_areas *set, void *ticket);

/* xac_areas_dispatch -- call the function of the range that the address is in.  ret false: it
   is in none, or the function has returned 0. */
XAC_SIGSAFE bool xac_areas_dispatch(struct xac_areas *set, void *addr);

#endif /* XAC_FAULT_AREAS_H */
