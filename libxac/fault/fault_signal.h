/* SPDX-License-Identifier: MIT */
/*
 * fault_signal.h -- from a signal to the area that the fault is in.
 *
 * WHAT      Shared by the engines: the handlers of SIGSEGV and SIGBUS, which find the area
 *           through a dispatcher (fault_areas.h) and call its owner's function.
 * SIGNALS   The handler runs with all signals blocked, and calls XAC_SIGSAFE functions only.
 *           A fault that is in no area goes to the handler that was there before.  A handler
 *           that came after ours and may call it stays in place.
 * THREADS   any.
 */
#ifndef XAC_FAULT_SIGNAL_H
#define XAC_FAULT_SIGNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/annot.h"

struct xac_area;
struct xac_area_owner;
struct xac_ctx;

/* xac_signal_start, stop -- the process's handlers; ret 0 or errno. */
int xac_signal_start(bool with_sigbus, const struct xac_area_owner *owner);
void xac_signal_stop(void);

/*
 * xac_signal_look -- at the begin of a context's transaction: if the program has replaced our
 * handlers, put them in front again, and say so once.  It checks this for the first begins in
 * each tick of the coarse clock (4 to 10 ms); in a loop of short transactions, for the first one.
 */
void xac_signal_look(struct xac_ctx *ctx, uint64_t now_ns);

/* xac_signal_check_stack -- is the calling thread's signal stack, if it has one, large enough
   for the handlers?  ret 0; ENOMEM, text noted. */
int xac_signal_check_stack(void);

/* xac_signal_code -- in a fault: the thread's instruction that has faulted; NULL if the hardware's
   record of it is not known. */
XAC_SIGSAFE const void *xac_signal_code(void);

/* xac_signal_attach, detach -- watch an area's addresses; ret 0 or errno. */
int xac_signal_attach(struct xac_area *area);
void xac_signal_detach(struct xac_area *area);

/* xac_signal_moved -- the addresses of an area that is attached have changed. */
void xac_signal_moved(struct xac_area *area);

/* xac_signal_fork, fork_done, forked -- before a fork; after it in the parent; in the child. */
void xac_signal_fork(void);
void xac_signal_fork_done(void);
void xac_signal_forked(void);

#endif /* XAC_FAULT_SIGNAL_H */
