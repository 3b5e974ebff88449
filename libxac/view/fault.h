/* SPDX-License-Identifier: MIT */
/*
 * fault.h -- from a fault at an address to an access of a page.
 *
 * WHAT      The dispatcher (fault_signal.h) has found the view.  Here it is decided whether the
 *           access is allowed; if so, xac_view_access shows the page, else the program is
 *           stopped with words about what it has done.
 * SIGNALS   See fault_signal.h.  The handler holds no lock but a page's.
 * PROGRESS  A fault on a page that already has the access it needs stops the program: it
 *           would come again for ever.
 */
#ifndef XAC_FAULT_H
#define XAC_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/annot.h"
#include "fault/area.h"

struct xac_ctx;
struct xac_view;

/* What the engines and the dispatcher ask of views. */
extern const struct xac_area_owner xac_fault_owner;

/* xac_fault_lacks -- that in words, as the end of "... cannot be served: "; static. */
XAC_SIGSAFE const char *xac_fault_lacks(const struct xac_ctx *ctx);

/* xac_fault_stray -- a page is not as it was: stop the program for the store that nobody
   noticed when it happened, in a query or outside a transaction. */
_Noreturn void xac_fault_stray(const struct xac_view *view, uint64_t page_no,
                               const uint8_t *was, bool in_query);

#endif /* XAC_FAULT_H */
