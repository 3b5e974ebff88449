/* SPDX-License-Identifier: MIT */
/*
 * txn_assert.c -- whether the chain of commits and a thread's transaction are sound: see the
 * invariants of ctree.h and slot.h.
 */
#include <config.h>

#include "shared/env_state.h"
#include "txn/ctree.h"
#include "txn/policy.h"
#include "txn/slot.h"

#define LOOK_AT 64 /* entries of the ring, or of a set, that one call looks at */

static uint64_t
get(const _Atomic uint64_t *word)
{
    /* Acquire: pairs with the releases of those who publish and begin. */
    return atomic_load_explicit(word, memory_order_acquire);
}

/* ring_assert -- the last entries; others publish meanwhile, so a number may be one further on. */
static void
ring_assert(const struct xac_chain *c, uint64_t commit)
{
    for (uint64_t i = 0; i < LOOK_AT && i < commit; i++) {
        uint64_t place = (commit - i) % XAC_RING_ENTRIES;
        const struct xac_ring_entry *r = &c->ring[place];
        uint64_t number = get(&r->number);
        uint32_t n = atomic_load_explicit(&r->n_pages, memory_order_relaxed);

        xac_require(number == 0 || number % XAC_RING_ENTRIES == place); /* (2) */
        xac_require(number <= get(&c->commit) + 1);                     /* (2) */
        xac_require(n <= XAC_RING_PAGES || n == XAC_RING_ALL);
    }
}

XAC_UNGUARDED void
xac_chain_assert(const struct xac_env *env)
{
    const struct xac_chain *c = &env->ctl->chain;
    /* In this order: C only grows, and the mark follows it. */
    uint64_t mark = get(&c->mark);
    uint64_t commit = get(&c->commit);

    xac_require(mark <= commit); /* (5) */
    if (xac_lock_is_mine(&c->gc)) {
        xac_require(c->gc_done <= commit);
        xac_require(c->settled <= commit);
    }
    if (xac_lock_is_mine(&c->publish)) {
        xac_require(get(&c->publishing) == 0); /* (4): nothing is left to be finished */
        if (xac_env_is_durable(env))
            xac_log_assert(&env->log);
    } else {
        ring_assert(c,
                    commit); /* not under publish (6): it may not be in the page table */
    }
}

/* entry_assert -- of the running transaction's set. */
static void
entry_assert(const struct xac_ctx *ctx, uint64_t i)
{
    const struct xac_entry *e = xac_set_entry(ctx, i);
    uint32_t mode = atomic_load_explicit(&e->mode, memory_order_relaxed);

    xac_require(e->slot == ctx->slot); /* (4) */
    xac_require(e->page != 0);         /* (4) */
    xac_require((mode & XAC_SET_READ) != 0);
    xac_require(e->vslot == 0 || (mode & XAC_SET_WRITE) != 0);
}

/* set_assert -- the list of blocks that survivors follow, and what the thread knows of it. */
static void
set_assert(const struct xac_ctx *ctx)
{
    const struct xac_shm *shm = &ctx->env->shm;
    uint64_t at = ctx->txn->first_block;

    xac_require(get(&ctx->txn->n_entries) == ctx->n_entries); /* (4) */
    xac_require(ctx->n_entries <= ctx->n_blocks * XAC_SET_BLOCK_ENTRIES);
    for (uint64_t i = 0; i < ctx->n_blocks && i < LOOK_AT; i++) {
        xac_require(at != 0);                               /* (4) */
        xac_require(xac_shm_at(shm, at) == ctx->blocks[i]); /* (4) */
        at = ctx->blocks[i]->next;
    }
    for (uint64_t i = 0; i < ctx->n_entries && i < LOOK_AT; i++)
        entry_assert(ctx, i);
    for (uint64_t i = ctx->n_entries; i > LOOK_AT && ctx->n_entries - i < LOOK_AT; i--)
        entry_assert(ctx, i - 1);
}

void
xac_txn_assert(const struct xac_ctx *ctx)
{
    const struct xac_env *env = ctx->env;
    const struct xac_txn *txn = ctx->txn;
    uint64_t word = get(&txn->word);
    uint64_t parent = atomic_load_explicit(&txn->parent, memory_order_relaxed);
    enum xac_txn_state state = xac_txn_state(word);

    xac_require(txn == xac_txn_at(env, ctx->slot));
    xac_require(xac_txn_participant(word) == env->self); /* (1) */
    xac_require(state <= XAC_TXN_CUT);                   /* (1) */
    xac_require(state != XAC_TXN_FREE);                  /* (1) */
    if (!xac_txn_is_live(word)) {
        xac_require(state == XAC_TXN_PUBLISHED || state == XAC_TXN_CUT
                    || get(&txn->n_entries) == 0);
        return;
    }
    xac_require(get(&txn->start) <= parent);      /* (2) */
    xac_require(parent <= get(&txn->next));       /* (2), (3) */
    xac_require(parent <= xac_chain_commit(env)); /* ctree.h (2) */
    xac_require(txn->n_written <= get(&txn->n_entries));
    set_assert(ctx);
}
