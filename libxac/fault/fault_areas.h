/* SPDX-License-Identifier: MIT */
/*
 * fault_areas.h -- the dispatcher: which of many ranges of addresses is this one in?
 *
 * WHAT      An ordered set of ranges, each with a handler.  Behind this interface stands either
 *           the dispatcher of libsigsegv (fault_areas_sigsegv.c) or our own (fault_areas.c), for
 *           programs that must not be bound by libsigsegv's licence: `configure
 *           --without-libsigsegv`.  A build has one of them.
 * NOT HERE  The signals, and a change while others search: fault_signal.c keeps two sets, of
 *           which it changes only the one that nobody searches.
 * OWNER     The caller.  What a set has allocated stays until the process ends.
 * THREADS   One at a time; but any number may dispatch at the same time, also in a signal
 *           handler, while nobody changes the set.
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

/* What to call for an address in a range; ret nonzero: the fault has been handled. */
typedef int (*xac_area_fn)(void *addr, void *arg);

/* xac_areas_init -- a set without ranges; zeroed before, or empty. */
void xac_areas_init(struct xac_areas *set);

/* xac_areas_insert -- ret what xac_areas_remove wants; NULL: no memory. */
void *xac_areas_insert(struct xac_areas *set, void *base, size_t length, xac_area_fn fn,
                       void *arg);
void xac_areas_remove(struct xac_areas *set, void *ticket);

/* xac_areas_dispatch -- call the function of the range that the address is in.  ret false: it
   is in none, or the function has returned 0. */
XAC_SIGSAFE bool xac_areas_dispatch(struct xac_areas *set, void *addr);

#endif /* XAC_FAULT_AREAS_H */
