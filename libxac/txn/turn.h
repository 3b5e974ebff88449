/* SPDX-License-Identifier: MIT */
/*
 * turn.h -- the turn: the right of one transaction to publish, while no other one may.
 *
 * WHAT      Taking the turn, in the order of tickets; passing it on; taking it away from a
 *           process that is dead or stopped.
 * NOT HERE  Who needs it.  Under the serial policy each transaction takes it before it begins
 *           (policy_serial.c); under the optimistic policy one that has lost several races does
 *           (policy_optimistic.c).  Queries never do.
 * WORDS     `turn` in the control region names the holder by its slot and its ticket; 0: nobody
 *           has the turn.  `ticket` in each slot: 0, or the ticket with which the slot waits for the
 *           turn or has it.  A holder is *void* if the ticket of its slot is another one, or if
 *           a damaged region names a slot that does not exist; it is *gone* if it is void, or if its
 *           process is dead or stopped.  A slot that waits is *late* once it has slept several
 *           times (is_late), that is after 4 ms at most.
 * LOCK      None.  The turn is taken away, and looked at before a transaction publishes, under
 *           publish.
 * THREADS   The owner of the slot, outside the fault handler.  It may wait, so it holds no lock.
 *
 * INVARIANTS
 *   (1) A ticket is given out once.  Only the owner of a slot stores a ticket.  The owner stores 0;
 *       so do the reaper of a slot, and under publish the one that takes the turn away.
 *   (2) `turn` changes by an exchange of the exact word: from 0 by the one that takes it; from a
 *       holder by this holder, or by the one that takes it away, to the smallest ticket of the
 *       slots that are late, or to 0 if none is.
 *   (3) So a word that has left `turn` never comes back.  A transaction that finds its own word
 *       there has had the turn all the time since it took it.
 *   (4) It looks so under publish, and the turn is taken away under publish only.  So a holder that
 *       was stopped and goes on cannot publish beside its successor.
 *   (5) If a process dies anywhere, `turn` is right or names a holder that is gone.  Each waiting
 *       process finds that within about a millisecond, and takes the turn away; then the next
 *       one, if that is gone, too.
 *   (6) If the turn is free, and slots wait, then one of them is awake, or has been killed or stopped
 *       since: the one that passes the turn wakes a sleeper unless it sees one awake, and nobody falls
 *       asleep who sees that `turn` has moved.  At worst a sleep ends after a millisecond.
 *
 * FREE      A turn that is passed on is free for anybody as a rule: its last holder may take it for its
 *           next transaction.  If it were given to one that waits, everybody would wait until the
 *           system gives that one a processor, which takes longer than many transactions.
 * FAIR      A process that is late is passed by those only that are late with smaller tickets, and by
 *           those that found the turn free before.  So a wait takes 4 ms, and a transaction of each
 *           other one that waits, and the rest of the one that runs.
 * WAITING   A process looks for a moment whether the turn is free, then sleeps until it is woken, for a
 *           millisecond at most; so again and again.  Nobody is woken while another one waits awake:
 *           two processes on two processors make no system call.  The thread's limit (lock.h) ends the
 *           wait.  txn_begin.c sets one where the wait may be in a circle: for the turn in which the
 *           process was forked, and for a second turn, of another environment.
 * SIGNALS   A process that sleeps has its signals blocked.  It lets them through now and then, and gives
 *           up its ticket before: if the turn came to it while a handler runs, all would wait for
 *           the handler, and for ever if that leaves the wait by longjmp.
 * STOPPED   A process that is stopped with the turn loses it to the first process that waits.  It
 *           finds that out when it ends the transaction, or begins it, and then has a new
 *           ticket.  So each stop costs one attempt at most.  A holder that runs slowly keeps the
 *           turn: with a bound in time a long transaction could lose it again and again.
 */
#ifndef XAC_TURN_H
#define XAC_TURN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/annot.h"
#include "shared/layout.h"

struct xac_ctx;
struct xac_env;

/*
 * xac_turn_take -- wait until the turn is the context's.
 *
 * ret  0; ETIMEDOUT: the thread's limit is over, and the context waits no more
 */
int xac_turn_take(struct xac_env *env, struct xac_ctx *ctx);

/* xac_turn_pass -- pass the turn on; does nothing if the slot does not have it. */
void xac_turn_pass(struct xac_env *env, uint64_t slot);

/* xac_turn_is_wanted -- does the slot, which is ours, wait for the turn or have it? */
static inline bool
xac_turn_is_wanted(const struct xac_txn *txn)
{
    xac_assert(txn != NULL);
    /* Relaxed: the owner's own; 0 if the turn has been taken away. */
    return atomic_load_explicit(&txn->ticket, memory_order_relaxed) != 0;
}

/* xac_turn_is_mine -- has the slot the turn?  Sure only under publish; a no is sure without it. */
bool xac_turn_is_mine(const struct xac_env *env, uint64_t slot);

/* xac_turn_is_free -- has nobody the turn? */
bool xac_turn_is_free(const struct xac_env *env);

/* xac_turn_word -- what `turn` says while the slot has it, and never again: (3); 0: it has it not. */
uint64_t xac_turn_word(const struct xac_env *env, uint64_t slot);

/* xac_turn_is -- does `turn` say this word, which is not 0? */
bool xac_turn_is(const struct xac_env *env, uint64_t word);

#endif /* XAC_TURN_H */
