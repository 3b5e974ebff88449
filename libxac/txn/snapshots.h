/* SPDX-License-Identifier: MIT */
/*
 * snapshots.h -- states that are held for others: a slot without a transaction.
 *
 * WHAT      Takes, names and releases snapshots; lets a query begin at one.  A snapshot is a slot in
 *           the state SNAPSHOT; its parent is the commit number that it holds.  So garbage collection
 *           and checkpoints keep for it what they keep for a query, and the one that reaps
 *           a dead participant frees its snapshots with its other slots.
 * NOT HERE  What a view shows of such a state: that of any query (view.h).
 * OWNER     The participant that took it; nobody (XAC_NOBODY) once it has a name and a time to
 *           live.  Any participant may use, keep and release it, if it knows the id.
 * LOCK      reap, to name or release one.  Beginning a query at one
 *           takes no lock.
 * HANDLER   None of this may be called by the fault handler.
 *
 * INVARIANTS
 *   (1) An id is given out once, also by regions that are made later.
 *   (2) What a query at a snapshot reads is held from before its begin to its end: the query stores its
 *       parent, then looks whether the snapshot is still there; a run of gc stores the mark,
 *       then looks at all slots a second time.  So the query finds that the snapshot has gone,
 *       or the gc finds the query.
 *   (3) A slot of nobody has a name and a time at which it expires.  The name was stored while the
 *       slot had an owner, and stays.
 *   (4) No two snapshots of nobody have the same name, but for those that have expired.
 */
#ifndef XAC_SNAPSHOTS_H
#define XAC_SNAPSHOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/annot.h"
#include "shared/env_state.h"

/*
 * xac_snapshots_take -- hold a state for this participant.
 *
 * in   of    the slot of a query of this thread: the state that it sees; NULL: the present state.
 * out  idp
 * ret  0, or an error with words: no room in the region; XAC_ECUTOFF: the query has been cut off.
 */
int xac_snapshots_take(struct xac_env *env, const struct xac_txn *of, uint64_t *idp);

/* xac_snapshots_take_at -- the same of any state that xbeginQueryAt() takes.  out  commitp  its number.
   ret  XAC_ENOSTATE, too. */
int xac_snapshots_take_at(struct xac_env *env, uint64_t state, uint64_t *idp,
                          uint64_t *commitp);

/* xac_snapshots_release -- ret 0, or XAC_ENOSTATE with words. */
int xac_snapshots_release(struct xac_env *env, uint64_t id);

/*
 * xac_snapshots_keep -- give it a name and a time to live, or one that has this name more time.
 * ret  0; with words XAC_ENOSTATE; EEXIST: it has another name, or another one has the name.
 */
int xac_snapshots_keep(struct xac_env *env, uint64_t id, const char *name, uint64_t ns);

/* xac_snapshots_find -- the id that belongs to a name; ret 0, or XAC_ENOSTATE with words. */
int xac_snapshots_find(struct xac_env *env, const char *name, uint64_t *idp);

/*
 * xac_snapshots_enter -- give a live slot of this thread the state of a snapshot, or one of the past (history.h),
 * as parent and start; in place of xac_chain_enter.  ret 0, or XAC_ENOSTATE with words.
 */
int xac_snapshots_enter(struct xac_env *env, struct xac_txn *txn, uint64_t id);

/* xac_snapshots_any -- is there a snapshot, in any process? */
bool xac_snapshots_any(const struct xac_env *env);

/* xac_snapshots_expire -- free those of nobody that have expired. */
void xac_snapshots_expire(struct xac_env *env) XAC_REQUIRES(reap);

/* xac_snapshots_leave -- this participant leaves: free its snapshots, and those of nobody if it is the
   last one.  Signals blocked. */
void xac_snapshots_leave(struct xac_env *env, bool is_last);

#endif /* XAC_SNAPSHOTS_H */
