/* SPDX-License-Identifier: MIT */
/*
 * fault.h -- what a program is told about an access that cannot be.
 *
 * WHAT      Each function puts a message together, writes it to standard error, and stops the
 *           program: which process, which file and offset, what is wrong, and a hint.
 * NOT HERE  Whether an access is allowed (view_access.c).
 * SIGNALS   See fault_signal.h: these functions run in the fault handler, without stdio.
 */
#ifndef XAC_FAULT_H
#define XAC_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/annot.h"

struct xac_ctx;
struct xac_view;

/* xac_fault_stop -- an access that is wrong; `what` ends the sentence "store to x ...". */
XAC_SIGSAFE _Noreturn void xac_fault_stop(const struct xac_view *view, const void *addr,
                                          bool is_write, const char *what,
                                          const char *hint);

/* xac_fault_foreign -- an access by a thread without a transaction, or not in a view of its own. */
XAC_SIGSAFE _Noreturn void xac_fault_foreign(const struct xac_view *view,
                                             const void *addr, bool is_write);

/* xac_fault_unserved -- the access is allowed, but errno value rc is in the way. */
XAC_SIGSAFE _Noreturn void xac_fault_unserved(const struct xac_view *view,
                                              const void *addr, bool is_write, int rc);

/* xac_fault_unannounced -- a store on a page that the program has promised to announce; says
   which instruction of which function it is, and the functions that have called it. */
XAC_SIGSAFE _Noreturn void xac_fault_unannounced(const struct xac_view *view,
                                                 const void *addr);

/* xac_fault_prepare -- get ready to name functions, for which memory may be needed once.  Not in
   the fault handler. */
void xac_fault_prepare(void);

/* xac_fault_lacks -- what is in the way, as the end of "... cannot be served: "; static. */
XAC_SIGSAFE const char *xac_fault_lacks(const struct xac_ctx *ctx);

/* xac_fault_astray -- a fault in no view, where nothing is mapped, or something without access:
   stop the program if the address has missed a mapping (guard.h); else return. */
XAC_SIGSAFE void xac_fault_astray(const void *addr, bool is_unmapped, bool is_write);

/* xac_fault_stray -- a page is not as it was: stop the program for the store that nobody
   noticed when it happened, in a query or outside a transaction. */
_Noreturn void xac_fault_stray(const struct xac_view *view, uint64_t page_no,
                               const uint8_t *was, bool in_query);

#endif /* XAC_FAULT_H */
