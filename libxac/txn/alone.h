/* SPDX-License-Identifier: MIT */
/*
 * alone.h -- a participant that is alone need not trap and record its reads, if the
 * program has asked for that (XAC_OPT_CHECKING).
 *
 * While `alone` names a participant, its transactions run with reads unknown, and its
 * views stay readable from one transaction to the next.  A newcomer revokes that before
 * its first transaction: it clears `alone`, then looks at every slot; a PENDING
 * transaction with unknown reads is failed (it might have read anything), one that
 * is COMMITTING is published, or taken back if that needs more than a moment.  Both sides
 * store first, then fence, then look: the transaction that its reads are unknown, the
 * newcomer that `alone` is gone.  So at least one of them sees the other.
 *
 * Under the serial policy it does not matter what a transaction has read (policy_serial.c).  So
 * every participant runs as if it was alone all the time, and nothing is revoked.  At its next begin a view
 * finds which pages others have written since (view_begin.c).
 */
#ifndef XAC_ALONE_H
#define XAC_ALONE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/annot.h"
#include "shared/env_state.h"
#include "txn/policy.h"

/* The word `alone`: how often it has changed, and 1 + the number of the participant, or 0. */
#define XAC_ALONE_BITS 32
#define XAC_ALONE_MASK ((UINT64_C(1) << XAC_ALONE_BITS) - 1)

/*
 * xac_alone_epoch -- nonzero if this process is alone; another number each time it has
 * become so, for what it knew before somebody came and went is out of date.
 */
XAC_SIGSAFE static inline uint64_t
xac_alone_epoch(const struct xac_env *env)
{
    /* Relaxed: the fences of xac_chain_enter and xac_alone_revoke order it. */
    uint64_t alone = atomic_load_explicit(&env->ctl->alone, memory_order_relaxed);

    return (alone & XAC_ALONE_MASK) == env->self + 1 ? (alone >> XAC_ALONE_BITS) + 1 : 0;
}

/*
 * xac_alone_tells_lines -- shall a commit tell the others which lines of its pages it has changed?  They
 * refresh pages in place under the serial policy only (view_begin.c), and a newcomer has none.
 */
XAC_SIGSAFE static inline bool
xac_alone_tells_lines(const struct xac_env *env)
{
    return env->policy->is_serial && xac_alone_epoch(env) == 0;
}

/*
 * xac_alone_revoke -- nobody is alone any more.  Gate held, we have joined; a process or
 * thread that comes has no transaction yet, so all live ones are those of others.
 */
void xac_alone_revoke(struct xac_env *env);

/*
 * xac_alone_offer -- if exactly one participant but us is attached, it is alone from now
 * on (we leave); if we are the only one, we are.  Not if it has several contexts
 * (thread.h).  Gate held.
 */
void xac_alone_offer(struct xac_env *env, bool we_leave);

#endif /* XAC_ALONE_H */
