/* SPDX-License-Identifier: MIT */
/*
 * history.h -- states of the past that stay (XAC_OPT_HISTORY).
 *
 * WHAT      A window of commits reaches from the present state back to `past`.  gc keeps all
 *           versions behind `past`, and the newest before; a checkpoint's bound is not behind it.  So each
 *           state of the window can be put together.  A version has the time of its commit, by
 *           which the state of a moment is found.
 * NOT HERE  States that are held by their ids (snapshots.h).
 * LOCK      gc, to move `past`.  Beginning a query takes none.
 *
 * The window is so long on a scale: that of the clock, of commit numbers, or of bytes of versions.  Runs
 * of gc note moments, XAC_MOMENTS / 2 to a window; `past` is the state of the newest moment that lies a
 * window back.
 *
 * INVARIANTS
 *   (1) past <= C, and it only grows.
 *   (2) A query of the past that has begun at n holds n: it stores its parent, then looks whether
 *       `past` has passed it; gc moves `past`, then looks at all slots a second time.
 *   (3) Each commit behind `past` has a version in the store.
 */
#ifndef XAC_HISTORY_H
#define XAC_HISTORY_H

#include <stdint.h>

#include "base/annot.h"
#include "shared/env_state.h"

/* What the number of a state names, in its two highest bits: xac_snapshot.h. */
enum xac_state_kind {
    XAC_STATE_SNAPSHOT = 0,
    XAC_STATE_COMMIT = 1,
    XAC_STATE_TIME = 2
};

#define XAC_STATE_SHIFT 62

static inline unsigned
xac_state_kind(uint64_t state)
{
    return (unsigned)(state >> XAC_STATE_SHIFT);
}

/* xac_history_is_on -- do states stay at all? */
static inline bool
xac_history_is_on(const struct xac_env *env)
{
    return atomic_load_explicit(&env->ctl->history, memory_order_relaxed) != 0;
}

/* xac_history_past -- the oldest state that stays; UINT64_MAX: none does by itself. */
static inline uint64_t
xac_history_past(const struct xac_env *env)
{
    /* Relaxed: see (2). */
    return xac_history_is_on(env)
               ? atomic_load_explicit(&env->ctl->chain.past, memory_order_relaxed)
               : UINT64_MAX;
}

/* xac_history_advance -- let the window end at this moment. */
void xac_history_advance(struct xac_env *env) XAC_REQUIRES(gc);

/* xac_history_end -- the last participant leaves: no state stays. */
void xac_history_end(struct xac_env *env);

/*
 * xac_history_enter -- give a live slot of this thread a state of the window as parent and start; in place
 * of xac_chain_enter.
 *
 * in   state  XAC_AT_COMMIT() or XAC_AT_TIME()
 * ret  0, or XAC_ENOSTATE with words
 */
int xac_history_enter(struct xac_env *env, struct xac_txn *txn, uint64_t state);

#endif /* XAC_HISTORY_H */
