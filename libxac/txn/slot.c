/* SPDX-License-Identifier: MIT */
/*
 * slot.c -- slots and sets: see slot.h.
 */
#include <config.h>

#include "txn/slot.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/probe.h"
#include "base/sys.h"

_Static_assert(sizeof(struct xac_entry) == 64, "entries are named by offset / 64");
_Static_assert(sizeof(struct xac_set_block) == 4096, "a set block is a page");
_Static_assert(sizeof(struct xac_txn) % 64 == 0, "slots do not share cache lines");

/* forget_owner -- what xParticipants() told of the slot's last owner. */
static void
forget_owner(struct xac_txn *t)
{
    xac_assert(xac_txn_state(atomic_load_explicit(&t->word, memory_order_relaxed))
               == XAC_TXN_IDLE);
    atomic_store_explicit(&t->tid, 0, memory_order_relaxed);
    atomic_store_explicit(&t->wait_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&t->last_why, 0, memory_order_relaxed);
    xac_assert(atomic_load_explicit(&t->may_cut, memory_order_relaxed) == 0);
}

uint64_t
xac_txn_claim(struct xac_env *env, uint32_t participant)
{
    struct xac_array *all = &env->ctl->txns;

    xac_assert(participant < (UINT32_C(1) << 24));
    for (uint64_t i = 0;; i++) {
        uint64_t count = atomic_load_explicit(&all->count, memory_order_relaxed);
        struct xac_txn *t;
        uint64_t word;

        if (xac_array_reserve(&env->shm, all, i) != 0)
            return UINT64_MAX;
        t = xac_txn_at(env, i);
        word = atomic_load_explicit(&t->word, memory_order_relaxed);
        if (xac_txn_state(word) != XAC_TXN_FREE
            /* Acquire: pairs with the release that freed the slot. */
            || !atomic_compare_exchange_strong_explicit(
                &t->word, &word,
                xac_txn_word(xac_txn_serial(word) + 1, participant, XAC_TXN_IDLE),
                memory_order_acq_rel, memory_order_relaxed))
            continue;
        xac_assert(t->n_written == 0);
        forget_owner(t);
        /* Release: pairs with the acquire in scans of all slots. */
        while (count <= i
               && !atomic_compare_exchange_weak_explicit(&all->count, &count, i + 1,
                                                         memory_order_acq_rel,
                                                         memory_order_relaxed))
            ;
        xac_assert(i < atomic_load_explicit(&all->count, memory_order_relaxed));
        return i;
    }
}

/* ---- The set ---------------------------------------------------------------------- */

/*
 * block_address_room -- room for the address of one more block; in the fault handler, so
 * mapped, not allocated.
 */
XAC_SIGSAFE static bool
block_address_room(struct xac_ctx *ctx)
{
    size_t want = ctx->blocks_size == 0 ? 4096 : ctx->blocks_size * 2;
    struct xac_set_block **more;
    void *p;

    if (ctx->n_blocks < ctx->blocks_size)
        return true;
    p = xac_sys.mmap(NULL, want * sizeof ctx->blocks[0], PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        xac_shm_refuse(&ctx->env->shm, errno);
        return false;
    }
    xac_assert(want > ctx->n_blocks);
    more = (struct xac_set_block **)p;
    if (ctx->n_blocks > 0) {
        memcpy(more, ctx->blocks, ctx->n_blocks * sizeof more[0]);
        (void)xac_sys.munmap(ctx->blocks, ctx->blocks_size * sizeof ctx->blocks[0]);
    }
    ctx->blocks = more;
    ctx->blocks_size = want;
    return true;
}

/* block_add -- a further block at the end of the set, perhaps one kept from before. */
XAC_SIGSAFE static bool
block_add(struct xac_env *env, struct xac_ctx *ctx)
{
    uint64_t *link = ctx->n_blocks == 0 ? &ctx->txn->first_block
                                        : &ctx->blocks[ctx->n_blocks - 1]->next;

    xac_assert(ctx->txn != NULL);
    if (!block_address_room(ctx))
        return false;
    if (*link == 0)
        *link = xac_shm_alloc(&env->shm, sizeof(struct xac_set_block));
    if (*link == 0)
        return false;
    xac_assert(ctx->n_blocks < ctx->blocks_size);
    xac_assert(*link % sizeof(struct xac_entry) == 0);
    ctx->blocks[ctx->n_blocks++] = (struct xac_set_block *)xac_shm_at(&env->shm, *link);
    return true;
}

XAC_SIGSAFE struct xac_entry *
xac_set_add(struct xac_env *env, struct xac_ctx *ctx, struct xac_page *page,
            uint32_t mode, uint64_t *indexp)
{
    struct xac_entry *e;

    xac_assert((mode & XAC_SET_LINKED) == 0);
    xac_assert(ctx->n_entries <= ctx->n_blocks * XAC_SET_BLOCK_ENTRIES);
    xac_assert_slow(atomic_load_explicit(&ctx->txn->n_entries, memory_order_relaxed)
                    == ctx->n_entries);
    if (ctx->n_entries == ctx->n_blocks * XAC_SET_BLOCK_ENTRIES && !block_add(env, ctx))
        return NULL;
    *indexp = ctx->n_entries++;
    e = xac_set_entry(ctx, *indexp);
    e->page = xac_shm_offset(&env->shm, page);
    e->slot = ctx->slot;
    e->vslot = 0;
    e->same = 0;
    e->in_place = 0;
    e->image = 0;
    e->first = XAC_FIRST_NOT;
    atomic_store_explicit(&e->next, 0, memory_order_relaxed);
    atomic_store_explicit(&e->mode, mode, memory_order_relaxed);
    xac_kill_point("entry");
    /* Release: pairs with the acquire of a reaper; before the entry can be linked. */
    atomic_store_explicit(&ctx->txn->n_entries, ctx->n_entries, memory_order_release);
    xac_assert(e->page != 0);
    return e;
}

/* ---- Life cycle ------------------------------------------------------------------- */

XAC_SIGSAFE bool
xac_txn_fail(struct xac_txn *txn, uint64_t word, int kind, uint32_t pid, uint64_t page)
{
    uint64_t why = (xac_txn_serial(word) & 0xffffff) << 40 | (uint64_t)kind << 32 | pid;

    xac_assert(kind != 0);
    xac_assert(word != 0);
    for (;;) {
        switch (xac_txn_state(word)) {
        case XAC_TXN_COMMITTING:
            return false;
        case XAC_TXN_PENDING:
            break;
        default:
            return true;
        }
        /* Reasons first, so that who sees FAILED sees them.  A reason stored for a
           transaction that has ended carries the wrong serial and is ignored. */
        atomic_store_explicit(&txn->why_page, page, memory_order_relaxed);
        atomic_store_explicit(&txn->why, why, memory_order_relaxed);
        if (atomic_compare_exchange_strong_explicit(
                &txn->word, &word,
                xac_txn_word(xac_txn_serial(word), xac_txn_participant(word),
                             XAC_TXN_FAILED),
                memory_order_acq_rel, /* pairs with the acquire loads of the word */
                memory_order_acquire)) {
            XAC_PROBE3(conflict, kind, pid, page);
            return true;
        }
        if ((xac_txn_serial(word) & 0xffffff) != why >> 40)
            return true; /* another transaction by now */
    }
}
