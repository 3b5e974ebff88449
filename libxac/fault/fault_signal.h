/* SPDX-License-Identifier: MIT */
/*
 * fault_signal.h -- from a signal to the view that the fault is in.
 *
 * WHAT      What the engines have in common: the handlers of SIGSEGV and SIGBUS, which find
 *           the view through a dispatcher (fault_areas.h) and call xac_fault_handle().
 * SIGNALS   See fault.h.  A handler that came after ours and may call it stays in place.
 * THREADS   any.
 */
#ifndef XAC_FAULT_SIGNAL_H
#define XAC_FAULT_SIGNAL_H

#include <stdbool.h>
#include <stdint.h>

struct xac_ctx;
struct xac_view;

/* xac_signal_start, stop -- the process's handlers; ret 0 or errno. */
int xac_signal_start(bool with_sigbus);
void xac_signal_stop(void);

/*
 * xac_signal_look -- at the begin of a context's transaction: if the program has replaced our
 * handlers, put them in front again, and say so once.  Looks at the first ones of each tick
 * of the coarse clock, and seldom at the others of a loop that begins many in one tick.
 */
void xac_signal_look(struct xac_ctx *ctx, uint64_t now_ns);

/* xac_signal_check_stack -- is the calling thread's signal stack, if it has one, large enough
   for the handlers?  ret 0; ENOMEM, words noted. */
int xac_signal_check_stack(void);

/* xac_signal_attach, detach -- watch a view's addresses; ret 0 or errno. */
int xac_signal_attach(struct xac_view *view);
void xac_signal_detach(struct xac_view *view);

/* xac_signal_moved -- the addresses of a view that is attached have changed. */
void xac_signal_moved(struct xac_view *view);

/* xac_signal_fork, fork_done, forked -- before a fork; after it in the parent; in the child. */
void xac_signal_fork(void);
void xac_signal_fork_done(void);
void xac_signal_forked(void);

#endif /* XAC_FAULT_SIGNAL_H */
