/* SPDX-License-Identifier: MIT */
/*
 * txn.c -- slots, sets, begin, end, abort: see txn.h.  Committing is in txn_commit.c.
 */
#include <config.h>

#include "commit/txn.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "checkpoint/checkpoint.h"
#include "txn/clean.h"
#include "txn/conflict.h"
#include "env/env.h"
#include "base/err.h"
#include "view/fault.h"
#include "txn/optimistic.h"
#include "txn/policy.h"
#include "txn/solo.h"
#include "base/sys.h"
#include "view/view.h"

_Static_assert(sizeof(struct xac_entry) == 64, "entries are named by offset / 64");
_Static_assert(sizeof(struct xac_set_block) == 4096, "a set block is a page");
_Static_assert(sizeof(struct xac_txn) % 64 == 0, "slots do not share cache lines");

/* Races in a row that an optimistic transaction may lose before it takes the turn. */
#define LOST_BEFORE_TURN 4

/* Blocks that a slot keeps for its next transaction. */
#define BLOCKS_KEPT 4

XAC_SIGSAFE struct xac_txn *
xac_txn_at(const struct xac_env *env, uint64_t slot)
{
    return (struct xac_txn *)xac_array_at(&env->shm, &env->ctl->txns, slot);
}

uint64_t
xac_txn_claim(struct xac_env *env, uint32_t participant)
{
    struct xac_array *all = &env->ctl->txns;

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
        /* Release: pairs with the acquire in scans of all slots. */
        while (count <= i
               && !atomic_compare_exchange_weak_explicit(&all->count, &count, i + 1,
                                                         memory_order_acq_rel,
                                                         memory_order_relaxed))
            ;
        return i;
    }
}

int
xac_ctx_open(struct xac_env *env, struct xac_ctx *ctx)
{
    int rc;

    if (ctx->env != env) /* its thread may be looking, while another one rejoins */
        ctx->env = env;
    ctx->slot = xac_txn_claim(env, env->self);
    if (ctx->slot == UINT64_MAX)
        return xac_err(xac_shm_lacks(&env->shm),
                       "control region %s: no room for a transaction", env->region);
    rc = xac_outofcore_open(env, ctx);
    if (rc != 0) {
        xac_txn_drop(env, ctx->slot, XAC_TXN_FREE);
        return rc;
    }
    ctx->txn = xac_txn_at(env, ctx->slot);
    ctx->txn->is_retry = 0;
    ctx->n_blocks = 0;
    ctx->n_entries = 0;
    return 0;
}

void
xac_ctx_close(struct xac_env *env, struct xac_ctx *ctx)
{
    if (ctx->txn != NULL)
        xac_txn_drop(env, ctx->slot, XAC_TXN_FREE);
    ctx->txn = NULL;
    xac_outofcore_close(ctx);
    if (ctx->blocks != NULL)
        (void)xac_sys.munmap(ctx->blocks, ctx->blocks_size * sizeof ctx->blocks[0]);
    memset(ctx, 0, sizeof *ctx);
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

    if (!block_address_room(ctx))
        return false;
    if (*link == 0)
        *link = xac_shm_alloc(&env->shm, sizeof(struct xac_set_block));
    if (*link == 0)
        return false;
    ctx->blocks[ctx->n_blocks++] = (struct xac_set_block *)xac_shm_at(&env->shm, *link);
    return true;
}

XAC_SIGSAFE struct xac_entry *
xac_set_entry(const struct xac_ctx *ctx, uint64_t index)
{
    xac_assert(index < ctx->n_entries);
    return &ctx->blocks[index / XAC_SET_BLOCK_ENTRIES]
                ->entry[index % XAC_SET_BLOCK_ENTRIES];
}

XAC_SIGSAFE struct xac_entry *
xac_set_add(struct xac_env *env, struct xac_ctx *ctx, struct xac_page *page,
            uint32_t mode, uint64_t *indexp)
{
    struct xac_entry *e;

    if (ctx->n_entries == ctx->n_blocks * XAC_SET_BLOCK_ENTRIES && !block_add(env, ctx))
        return NULL;
    *indexp = ctx->n_entries++;
    e = xac_set_entry(ctx, *indexp);
    e->page = xac_shm_offset(&env->shm, page);
    e->slot = ctx->slot;
    e->frame = 0;
    e->first = XAC_FIRST_NOT;
    atomic_store_explicit(&e->next, 0, memory_order_relaxed);
    atomic_store_explicit(&e->mode, mode, memory_order_relaxed);
    xac_kill_point("entry");
    /* Release: pairs with the acquire of a cleaner; before the entry can be linked. */
    atomic_store_explicit(&ctx->txn->n_entries, ctx->n_entries, memory_order_release);
    return e;
}

/* trim -- free the blocks that a large transaction needed. */
static void
trim(struct xac_env *env, struct xac_txn *txn)
{
    uint64_t *link = &txn->first_block;
    uint64_t at;

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

/* ---- Life cycle ------------------------------------------------------------------- */

XAC_SIGSAFE bool
xac_txn_fail(struct xac_txn *txn, uint64_t word, int kind, uint32_t pid, uint64_t page)
{
    uint64_t why = (xac_txn_serial(word) & 0xffffff) << 40 | (uint64_t)kind << 32 | pid;

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
                memory_order_acquire))
            return true;
        if ((xac_txn_serial(word) & 0xffffff) != why >> 40)
            return true; /* another transaction by now */
    }
}

void
xac_txn_drop(struct xac_env *env, uint64_t slot, enum xac_txn_state leave_as)
{
    struct xac_txn *txn = xac_txn_at(env, slot);
    uint64_t word = atomic_load_explicit(&txn->word, memory_order_relaxed);
    /* Acquire: pairs with the release in xac_set_add. */
    uint64_t n = atomic_load_explicit(&txn->n_entries, memory_order_acquire);
    bool was_published = xac_txn_state(word) == XAC_TXN_PUBLISHED;
    uint64_t at = txn->first_block;

    xac_assert(xac_txn_state(word) != XAC_TXN_COMMITTING);
    for (uint64_t i = 0; i < n; i++) {
        struct xac_set_block *b = (struct xac_set_block *)xac_shm_at(&env->shm, at);
        struct xac_entry *e = &b->entry[i % XAC_SET_BLOCK_ENTRIES];

        if ((atomic_load_explicit(&e->mode, memory_order_relaxed) & XAC_SET_LINKED) != 0)
            xac_conflict_leave(env, e);
        if (e->frame != 0 && !was_published)
            xac_version_give_back(env, e->frame);
        xac_kill_point("i entry");
        e->frame = 0;
        if (i % XAC_SET_BLOCK_ENTRIES == XAC_SET_BLOCK_ENTRIES - 1)
            at = b->next;
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
    atomic_store_explicit(&txn->reads_unknown, 0, memory_order_relaxed);
    /* Release: pairs with the acquire of who claims the slot or scans it. */
    atomic_store_explicit(&txn->word,
                          xac_txn_word(xac_txn_serial(word) + 1,
                                       xac_txn_participant(word), leave_as),
                          memory_order_release);
}

int
xac_txn_begin(struct xac_env *env, struct xac_ctx *ctx, bool is_query)
{
    struct xac_txn *txn = ctx->txn;
    uint64_t serial;
    int rc;

    xac_assert(ctx->n_entries == 0);
    if (env->policy->is_optimistic && !is_query && ctx->n_lost >= LOST_BEFORE_TURN)
        xac_turn_take(env, ctx);
    if (!is_query && txn->is_retry)
        xac_conflict_wait(env, ctx);
    ctx->is_query = is_query;
    ctx->error = 0;
    ctx->error_page = 0;
    ctx->error_lacking = XAC_LACKS_MEMORY;
    ctx->lacking = XAC_LACKS_MEMORY;
    ctx->conflict.found_by_us = 0;
    ctx->n_blocks = 0;
    if (!is_query && !txn->is_retry)
        atomic_store_explicit(&txn->age,
                              atomic_fetch_add_explicit(&env->ctl->chain.next_age, 1,
                                                        memory_order_relaxed),
                              memory_order_relaxed);
    atomic_store_explicit(&txn->why, 0, memory_order_relaxed);
    ctx->solo_epoch =
        atomic_load_explicit(&env->options.stay_mapped, memory_order_relaxed) != 0
            ? xac_solo_epoch(env)
            : 0;
    atomic_store_explicit(&txn->reads_unknown, ctx->solo_epoch != 0 && !is_query,
                          memory_order_relaxed);
    serial = xac_txn_serial(atomic_load_explicit(&txn->word, memory_order_relaxed));
    /* Release: pairs with the acquire of who scans the slots. */
    atomic_store_explicit(&txn->word,
                          xac_txn_word(serial, env->self,
                                       is_query ? XAC_TXN_QUERY : XAC_TXN_PENDING),
                          memory_order_release);
    xac_kill_point("begin");
    xac_chain_enter(env, txn);
    /* The fence in xac_chain_enter lies between storing reads_unknown and looking
       again; it pairs with the one in xac_solo_revoke. */
    if (ctx->solo_epoch != 0 && xac_solo_epoch(env) != ctx->solo_epoch) {
        ctx->solo_epoch = 0;
        atomic_store_explicit(&txn->reads_unknown, 0, memory_order_relaxed);
    }
    rc = xac_view_begin_all(env, ctx);
    if (rc != 0) {
        xac_txn_drop(env, ctx->slot, XAC_TXN_IDLE);
        xac_turn_give(env, ctx);
    }
    return rc;
}

void
xac_txn_finish(struct xac_env *env, struct xac_ctx *ctx, bool is_committed)
{
    xac_view_end_all(env, ctx, is_committed);
    xac_txn_drop(env, ctx->slot, XAC_TXN_IDLE);
    ctx->n_entries = 0;
    xac_turn_give(env, ctx);
    if (ctx->saw_dead && !xac_wait_is_over()) {
        ctx->saw_dead = false;
        xac_clean_dead(env);
    }
}

void
xac_txn_foresee(struct xac_env *env, struct xac_ctx *ctx)
{
    uint64_t word = atomic_load_explicit(&ctx->txn->word, memory_order_relaxed);
    uint64_t page = 0;

    if (env->policy->is_optimistic && !ctx->is_query
        && !xac_optimistic_validate(env, ctx->txn, &page))
        (void)xac_txn_fail(ctx->txn, word, XAC_CONFLICT_VALIDATION, 0, page);
}

/* note_conflict -- translate the slot's reasons for xConflict(). */
static void
note_conflict(struct xac_ctx *ctx)
{
    struct xac_conflict *c = &ctx->conflict;
    uint64_t why = atomic_load_explicit(&ctx->txn->why, memory_order_relaxed);
    uint64_t page = atomic_load_explicit(&ctx->txn->why_page, memory_order_relaxed);
    int found_by_us = c->found_by_us;

    memset(c, 0, sizeof *c);
    c->found_by_us = found_by_us;
    if (ctx->error != 0) {
        c->kind = XAC_CONFLICT_RESOURCE;
        c->error = ctx->error;
        return;
    }
    c->kind = (int)(why >> 32 & 0xff);
    c->other_pid = (int)(why & 0xffffffff);
    if (c->kind == XAC_CONFLICT_NONE) /* taken back while COMMITTING, see solo.h */
        c->kind = XAC_CONFLICT_REVOKED;
    if (page != 0 && c->kind != XAC_CONFLICT_USER && c->kind != XAC_CONFLICT_REVOKED)
        xac_view_describe(ctx, page, c);
}

/* count_abort -- one of the three counters. */
static void
count_abort(struct xac_counters *n, int kind)
{
    if (kind == XAC_CONFLICT_USER)
        xac_count_own(&n->aborts_user, 1);
    else if (kind == XAC_CONFLICT_RESOURCE || kind == XAC_CONFLICT_REVOKED)
        xac_count_own(&n->aborts_other, 1);
    else
        xac_count_own(&n->aborts_conflict, 1);
}

/*
 * end_query -- a query has nothing to publish, but what it read must be durable.  Signals are
 * blocked only if a lock may have to be taken: to wait for that, or to clean up.
 */
static int
end_query(struct xac_env *env, struct xac_ctx *ctx)
{
    struct xac_txn *txn = ctx->txn;
    uint64_t lsn =
        xac_chain_lsn(env, atomic_load_explicit(&txn->parent, memory_order_relaxed));
    bool must_block =
        ctx->saw_dead
        || (xac_env_is_durable(env)
            /* Relaxed: looked at again by who waits. */
            && (env->options.sync_delay_ms != 0
                || atomic_load_explicit(&env->log.sh->durable, memory_order_relaxed)
                       < lsn));
    sigset_t signals;
    int rc;

    if (must_block)
        xac_signals_block(&signals);
    xac_txn_finish(env, ctx, true);
    xac_count_own(&txn->counters.queries, 1);
    xac_wait_limit(env->options.wait_ms);
    rc = xac_commit_await(env, lsn);
    xac_wait_limit(0);
    if (must_block)
        xac_signals_restore(&signals);
    return rc;
}

void
xac_txn_forgo(struct xac_ctx *ctx)
{
    ctx->txn->is_retry = 0;
    ctx->n_lost = 0;
    ctx->n_cured = 0;
    /* Relaxed: a hint for xac_conflict_wait. */
    atomic_store_explicit(&ctx->txn->age, XAC_AGE_OVER, memory_order_relaxed);
}

/*
 * may_lock -- may the end of a transaction take a lock, so that signals must be blocked?  Not if
 * it has nothing in its set, which is so when it has only read while alone (solo.h).
 */
static bool
may_lock(const struct xac_env *env, const struct xac_ctx *ctx)
{
    return ctx->n_entries > 0 || ctx->has_turn || ctx->saw_dead
           || xac_env_is_durable(env);
}

/* end_aborted -- the transaction has not committed: roll it back; ret as xac_txn_end. */
static int
end_aborted(struct xac_env *env, struct xac_ctx *ctx)
{
    char words[XAC_ERR_BYTES];
    int rc;

    if (ctx->error != 0)
        (void)snprintf(words, sizeof words, "%s", xac_err_text());
    note_conflict(ctx);
    count_abort(&ctx->txn->counters, ctx->conflict.kind);
    xac_txn_finish(env, ctx, false);
    rc = xac_env_poisoned(env);
    if (rc == 0)
        rc = ctx->error != 0 ? xac_error_verdict(env, ctx, words) : XAC_ABORTED;
    /* Who gives up by himself has not lost, and need not grow older. */
    if (rc != XAC_ABORTED || ctx->conflict.kind == XAC_CONFLICT_USER) {
        xac_txn_forgo(ctx);
        return rc;
    }
    ctx->txn->is_retry = 1;
    ctx->n_lost++;
    return rc;
}

/* gather -- the last entries of the set; why it must abort, in words. */
static void
gather(struct xac_env *env, struct xac_ctx *ctx)
{
    if (ctx->error == 0) {
        ctx->error = xac_warm_gather(env, ctx);
        ctx->error_lacking = ctx->lacking;
    }
    if (ctx->error != 0)
        xac_error_explain(ctx);
}

/*
 * may_step -- may a transaction do a step of a checkpoint at its end?  With a limit only if it has
 * just had the lock to publish, for the step takes it without: nobody is stopped with it.
 */
static bool
may_step(const struct xac_ctx *ctx, uint64_t commits)
{
    return !xac_wait_is_over()
           && atomic_load_explicit(&ctx->txn->counters.commits, memory_order_relaxed)
                  != commits;
}

int
xac_txn_end(struct xac_env *env, struct xac_ctx *ctx)
{
    uint64_t commits =
        atomic_load_explicit(&ctx->txn->counters.commits, memory_order_relaxed);
    uint32_t wait_ms = env->options.wait_ms;
    bool is_blocked;
    sigset_t signals;
    int rc;

    if (ctx->is_query)
        return end_query(env, ctx);
    gather(env, ctx);
    is_blocked = may_lock(env, ctx);
    if (is_blocked)
        xac_signals_block(&signals);
    if (xac_unlikely(wait_ms != 0))
        xac_wait_limit(wait_ms);
    rc = xac_commit(env, ctx);
    if (rc == XAC_ABORTED) {
        rc = end_aborted(env, ctx);
    } else {
        memset(&ctx->conflict, 0, sizeof ctx->conflict);
        xac_txn_forgo(ctx);
    }
    if (is_blocked) {
        /* Who has not written leaves it to who has.  Not after an error: its words are to
           stay. */
        if ((rc == XAC_COMMITTED || rc == XAC_ABORTED)
            && (wait_ms == 0 || may_step(ctx, commits)))
            xac_checkpoint_if_due(env);
        xac_signals_restore(&signals);
    }
    if (xac_unlikely(wait_ms != 0))
        xac_wait_limit(0);
    return rc;
}
