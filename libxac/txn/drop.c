/* SPDX-License-Identifier: MIT */
/*
 * drop.c -- see drop.h.
 */
#include <config.h>

#include "txn/drop.h"

#include "base/sys.h"
#include "store/version.h"
#include "txn/conflict.h"
#include "txn/in_place.h"
#include "txn/txn_datafile.h"

/* Blocks that a slot keeps for its next transaction. */
#define BLOCKS_KEPT 4

/* trim -- free the blocks that a large transaction needed. */
static void
trim(struct xac_env *env, struct xac_txn *txn)
{
    uint64_t *link = &txn->first_block;
    uint64_t at;

    xac_assert(atomic_load_explicit(&txn->n_entries, memory_order_relaxed) == 0);
    for (int kept = 0; kept < BLOCKS_KEPT && *link != 0; kept++)
        link = &((struct xac_set_block *)xac_shm_at(&env->shm, *link))->next;
    at = *link;
    *link = 0;
    while (at != 0) {
        uint64_t next = ((struct xac_set_block *)xac_shm_at(&env->shm, at))->next;

        xac_shm_free(&env->shm, at, sizeof(struct xac_set_block));
        at = next;
    }
}

void
xac_txn_drop(struct xac_env *env, uint64_t slot, uint64_t by, enum xac_txn_state leave_as)
{
    struct xac_txn *txn = xac_txn_at(env, slot);
    uint64_t word = atomic_load_explicit(&txn->word, memory_order_relaxed);
    struct xac_set_walk walk = xac_set_walk(txn);
    uint64_t n = walk.left;
    bool was_published = xac_txn_state(word) == XAC_TXN_PUBLISHED;
    struct xac_entry *e;

    xac_assert(xac_txn_state(word) != XAC_TXN_COMMITTING);
    xac_assert(leave_as == XAC_TXN_IDLE || leave_as == XAC_TXN_FREE);
    xac_assert(xac_txn_may_become(xac_txn_state(word), leave_as));
    while ((e = xac_set_next(env, &walk)) != NULL) {
        if ((atomic_load_explicit(&e->mode, memory_order_relaxed) & XAC_SET_LINKED) != 0)
            xac_conflict_leave(env, by, e);
        if (e->vslot != 0 && !was_published)
            xac_version_give_back(env, e->vslot);
        if (e->image != 0)
            xac_in_place_forget(env, e);
        xac_kill_point("i entry");
        e->vslot = 0;
    }
    atomic_store_explicit(&txn->n_entries, 0, memory_order_relaxed);
    if (n > BLOCKS_KEPT * XAC_SET_BLOCK_ENTRIES)
        trim(env, txn);
    if (txn->datafile != 0 && !was_published)
        xac_commit_remove_datafile(env, txn->datafile);
    xac_kill_point("i dropped");
    txn->datafile = 0;
    /* Release: pairs with the acquire in xac_commit_data_serial. */
    atomic_store_explicit(&txn->data_floor, 0, memory_order_release);
    txn->n_written = 0;
    if (leave_as == XAC_TXN_FREE) /* nobody will retry; relaxed: a hint */
        atomic_store_explicit(&txn->age, XAC_AGE_OVER, memory_order_relaxed);
    /* Relaxed: before the word of the slot's next query. */
    atomic_store_explicit(&txn->may_cut, 0, memory_order_relaxed);
    atomic_store_explicit(&txn->reads_unknown, 0, memory_order_relaxed);
    /* The next owner waits for no turn; a turn that we had is void. */
    if (leave_as == XAC_TXN_FREE)
        atomic_store_explicit(&txn->ticket, 0, memory_order_relaxed);
    /* Release: pairs with the acquire of a claim or a scan of the slot. */
    atomic_store_explicit(&txn->word,
                          xac_txn_word(xac_txn_serial(word) + 1,
                                       xac_txn_participant(word), leave_as),
                          memory_order_release);
}
