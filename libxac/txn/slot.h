/* SPDX-License-Identifier: MIT */
/*
 * slot.h -- transaction slots, and the sets of pages that transactions have touched.
 *
 * WHAT      A transaction slot in shared memory (struct xac_txn, layout.h), which survivors can
 *           finish or take back, and the context of the thread that runs it (struct xac_ctx,
 *           env_state.h), which is private.
 * NOT HERE  Begin and end (txn.h), conflicts between slots (conflict.h), giving back what a
 *           transaction has (drop.h).
 *
 *             begin           commit, step c         publish
 *   IDLE ----------> PENDING ---------------> COMMITTING ----> PUBLISHED ----> IDLE
 *    ^                  | a conflict, xAbort                                     ^
 *    |                  v                                                        |
 *    +--------------- FAILED (end)          IDLE ---> QUERY ---> IDLE -----------+
 *                                                      |          ^
 *                                                      +-> CUT ---+
 *
 *   PENDING -> FAILED and PENDING -> COMMITTING are exchanges on the word: exactly one
 *   wins.  COMMITTING -> PUBLISHED happens under the publish lock, by the owner or by
 *   anybody else.  A transaction that has changed nothing goes from PENDING to PUBLISHED at once, by
 *   such an exchange.  QUERY -> CUT is gc's exchange (reader_limit.h).  One that could not begin goes
 *   from PENDING to IDLE.  All other edges are the owner's, or the reaper's if the owner died, who
 *   leaves the slot FREE.  A slot that holds a snapshot goes from IDLE to SNAPSHOT to FREE
 *   (snapshots.h).  xac_txn_may_become()
 *   has this picture as a table.
 *
 * INVARIANTS
 *   (1) The word names state, participant and a serial that changes with each use of
 *       the slot: an exchange meant for an earlier transaction fails.
 *   (2) parent never decreases while the slot is live; start does not move.
 *   (3) A FAILED transaction's parent does not move any more: it is, or will soon be seen
 *       to be, parent or next.
 *   (4) Every entry of the set that is linked into a page's access list is reachable
 *       from the slot, so that survivors can unlink it.
 */
#ifndef XAC_SLOT_H
#define XAC_SLOT_H

#include "shared/env_state.h"
#include "shared/group.h"

/* Count an event in a slot of one's own. */
XAC_SIGSAFE static inline void
xac_count_own(_Atomic uint64_t *counter, uint64_t n)
{
    /* Relaxed: nobody else stores it. */
    atomic_store_explicit(counter,
                          atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

/* xac_txn_waits -- note for people that a slot of one's own waits: for the slot `on` - 1, or with 0
   for the turn; over -- that it does no more. */
static inline void
xac_txn_waits(struct xac_txn *txn, uint64_t on, uint64_t now_ns)
{
    xac_assert(now_ns != 0);
    atomic_store_explicit(&txn->wait_for, on, memory_order_relaxed);
    atomic_store_explicit(&txn->wait_ns, now_ns, memory_order_relaxed);
}

static inline void
xac_txn_waits_over(struct xac_txn *txn)
{
    xac_assert(xac_txn_state(atomic_load_explicit(&txn->word, memory_order_relaxed))
               != XAC_TXN_FREE);
    atomic_store_explicit(&txn->wait_ns, 0, memory_order_relaxed);
}

/* xac_txn_may_become -- does the picture above have such an edge? */
XAC_SIGSAFE static inline bool
xac_txn_may_become(enum xac_txn_state from, enum xac_txn_state to)
{
    static const uint16_t edges[] = {
        [XAC_TXN_FREE] = 1u << XAC_TXN_IDLE,
        [XAC_TXN_IDLE] = 1u << XAC_TXN_PENDING | 1u << XAC_TXN_QUERY | 1u << XAC_TXN_FREE
                         | 1u << XAC_TXN_SNAPSHOT,
        [XAC_TXN_PENDING] = 1u << XAC_TXN_FAILED | 1u << XAC_TXN_COMMITTING
                            | 1u << XAC_TXN_PUBLISHED | 1u << XAC_TXN_IDLE
                            | 1u << XAC_TXN_FREE,
        [XAC_TXN_FAILED] = 1u << XAC_TXN_IDLE | 1u << XAC_TXN_FREE,
        [XAC_TXN_COMMITTING] = 1u << XAC_TXN_PUBLISHED | 1u << XAC_TXN_FAILED,
        [XAC_TXN_PUBLISHED] = 1u << XAC_TXN_IDLE | 1u << XAC_TXN_FREE,
        [XAC_TXN_QUERY] = 1u << XAC_TXN_IDLE | 1u << XAC_TXN_FREE | 1u << XAC_TXN_CUT,
        [XAC_TXN_SNAPSHOT] = 1u << XAC_TXN_FREE,
        [XAC_TXN_CUT] = 1u << XAC_TXN_IDLE | 1u << XAC_TXN_FREE,
    };

    return from <= XAC_TXN_CUT && (edges[from] >> to & 1) != 0;
}

/*
 * xac_txn_assert -- stop the program unless (1) to (4) hold for the context's own slot, and what
 * the thread knows of its set agrees with what survivors would find.  By the thread that runs the
 * transaction; others may fail or publish it meanwhile.
 */
void xac_txn_assert(const struct xac_ctx *ctx);

/*
 * xac_txn_claim -- take a free slot for a participant; ret index or UINT64_MAX.
 */
uint64_t xac_txn_claim(struct xac_env *env, uint32_t participant);

/*
 * xac_txn_fail -- fail a transaction: PENDING to FAILED.
 *
 * in   word  the slot's word as it was seen
 * in   kind  enum xac_conflict_kind as the victim will report it
 * in   pid   the other process, 0 if none
 * in   page  id of the page, 0 if none
 * ret  true if it is out of the way (failed now or before, or another transaction);
 *      false if it is COMMITTING.
 */
XAC_SIGSAFE bool xac_txn_fail(struct xac_txn *txn, uint64_t word, int kind, uint32_t pid,
                              uint64_t page);

/*
 * xac_txn_is_deposed -- has the environment been deposed (group.h)?  Then the running transaction, which is no query, is
 * failed, unless it is published already: what it would publish would be uncertain.
 */
XAC_SIGSAFE static inline bool
xac_txn_is_deposed(const struct xac_env *env, const struct xac_ctx *ctx)
{
    if (xac_likely(!xac_group_is_deposed(env)))
        return false;
    xac_assert(!ctx->is_query);
    (void)xac_txn_fail(ctx->txn,
                       atomic_load_explicit(&ctx->txn->word, memory_order_relaxed),
                       XAC_CONFLICT_RESOURCE, 0, 0);
    return true;
}

/*
 * xac_set_add -- a new entry in the set of the running transaction, not linked yet.
 *
 * ret  the entry, or NULL if the region has no room; *indexp its number.
 */
XAC_SIGSAFE struct xac_entry *xac_set_add(struct xac_env *env, struct xac_ctx *ctx,
                                          struct xac_page *page, uint32_t mode,
                                          uint64_t *indexp);

/* xac_set_entry -- entry of the running transaction's set. */
XAC_SIGSAFE static inline struct xac_entry *
xac_set_entry(const struct xac_ctx *ctx, uint64_t index)
{
    xac_assert(index < ctx->n_entries);
    xac_assert_slow(index / XAC_SET_BLOCK_ENTRIES < ctx->n_blocks);
    return &ctx->blocks[index / XAC_SET_BLOCK_ENTRIES]
                ->entry[index % XAC_SET_BLOCK_ENTRIES];
}

/* A walk over the set of any slot, as it lies in shared memory:
   for (w = xac_set_walk(txn); (e = xac_set_next(env, &w)) != NULL;) */
struct xac_set_walk {
    uint64_t block;   /* offset of the block of the next entry                        */
    uint64_t i, left; /* its place in the block; entries left                         */
};

static inline struct xac_set_walk
xac_set_walk(const struct xac_txn *txn)
{
    /* Acquire: pairs with the release in xac_set_add; the blocks are linked. */
    uint64_t n = atomic_load_explicit(&txn->n_entries, memory_order_acquire);

    return (struct xac_set_walk){.block = txn->first_block, .left = n};
}

/* xac_set_next -- the next entry, NULL behind the last one.  The caller may change it. */
static inline struct xac_entry *
xac_set_next(const struct xac_env *env, struct xac_set_walk *w)
{
    struct xac_set_block *block;

    if (w->left == 0)
        return NULL;
    if (w->i == XAC_SET_BLOCK_ENTRIES) {
        block = (struct xac_set_block *)xac_shm_at(&env->shm, w->block);
        w->block = block->next;
        w->i = 0;
    }
    block = (struct xac_set_block *)xac_shm_at(&env->shm, w->block);
    w->left--;
    return &block->entry[w->i++];
}

#endif /* XAC_SLOT_H */
