/* SPDX-License-Identifier: MIT */
/*
 * turn.c -- see turn.h.
 */
#include <config.h>

#include "txn/turn.h"

#include <errno.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/lock.h"
#include "shared/env_state.h"
#include "shared/registry.h"
#include "txn/ctree.h"
#include "txn/slot.h"

/* Longest sleep of a process that waits, and so the time between two looks at the holder; and the
   number of sleeps after which it is late.  So it is late after 4 ms at most. */
#define SLEEP_MS    1
#define SLEEPS_LATE 4

/* Sleeps of a process with one ticket before signals are let through. */
#define SLEEPS_PATIENT 16

/* ---- Words --------------------------------------------------------------------------- */

/* word_of -- `turn` when this slot has it with this ticket. */
static uint64_t
word_of(uint64_t slot, uint64_t ticket)
{
    xac_assert(slot < XAC_TURN_SLOT_MASK);
    xac_assert(ticket != 0);
    return ticket << XAC_TURN_SLOT_BITS | (slot + 1);
}

/* slot_of -- may be one that does not exist, if the region is damaged. */
static uint64_t
slot_of(uint64_t word)
{
    xac_assert(word != 0);
    return (word & XAC_TURN_SLOT_MASK) - 1;
}

/* load_turn -- acquire: pairs with the release of the one that passes the turn, or takes it away. */
static uint64_t
load_turn(const struct xac_env *env)
{
    return atomic_load_explicit(&env->ctl->turn, memory_order_acquire);
}

/* ticket_of -- the ticket with which the holder has the turn; 0: it is void, or no slot. */
static uint64_t
ticket_of(const struct xac_env *env, uint64_t word)
{
    uint64_t slot = slot_of(word), ticket;

    /* Acquire: pairs with the release in xac_txn_claim. */
    if (slot >= atomic_load_explicit(&env->ctl->txns.count, memory_order_acquire))
        return 0;
    /* Acquire: pairs with the release of the owner, which gives up the ticket. */
    ticket = atomic_load_explicit(&xac_txn_at(env, slot)->ticket, memory_order_acquire);
    return ticket != 0 && word_of(slot, ticket) == word ? ticket : 0;
}

bool
xac_turn_is_mine(const struct xac_env *env, uint64_t slot)
{
    /* Relaxed: the owner's own; 0 if the turn has been taken away. */
    uint64_t ticket =
        atomic_load_explicit(&xac_txn_at(env, slot)->ticket, memory_order_relaxed);

    xac_assert(slot < atomic_load_explicit(&env->ctl->txns.count, memory_order_relaxed));
    return ticket != 0 && load_turn(env) == word_of(slot, ticket);
}

bool
xac_turn_is_free(const struct xac_env *env)
{
    return load_turn(env) == 0;
}

uint64_t
xac_turn_word(const struct xac_env *env, uint64_t slot)
{
    uint64_t word = load_turn(env);

    xac_assert(slot < XAC_TURN_SLOT_MASK);
    return xac_turn_is_mine(env, slot) ? word : 0;
}

bool
xac_turn_is(const struct xac_env *env, uint64_t word)
{
    xac_assert(word != 0);
    return load_turn(env) == word;
}

/* ---- Passing it on ------------------------------------------------------------------- */

/* least -- the word of the slot with the smallest ticket, of those that are late or else of those that
   sleep; 0: there is none.  Of sleepers there is none while another one waits awake. */
static uint64_t
least(const struct xac_env *env, bool of_late)
{
    /* Acquire: pairs with the release in xac_txn_claim. */
    uint64_t n = atomic_load_explicit(&env->ctl->txns.count, memory_order_acquire);
    uint64_t least = UINT64_MAX, word = 0;

    for (uint64_t slot = 0; slot < n; slot++) {
        const struct xac_txn *txn = xac_txn_at(env, slot);
        uint64_t ticket = atomic_load_explicit(&txn->ticket, memory_order_relaxed);
        const xac_shared _Atomic uint32_t *is = of_late ? &txn->is_late : &txn->is_asleep;
        bool counts = atomic_load_explicit(is, memory_order_relaxed) != 0;

        if (ticket == 0)
            continue;
        if (!counts && !of_late)
            return 0;
        if (!counts || ticket >= least)
            continue;
        least = ticket;
        word = word_of(slot, ticket);
    }
    xac_assert((word == 0) == (least == UINT64_MAX));
    return word;
}

/* pass_from -- the turn leaves a holder whose ticket counts no more, unless it has left already.
   ret the word of the one that is to be woken; 0: none. */
static uint64_t
pass_from(struct xac_env *env, uint64_t word)
{
    uint64_t next = least(env, true);

    xac_assert(word != 0);
    xac_assert(word != next); /* (3) */
    xac_kill_point("te");
    /* Release: pairs with the acquire in load_turn; what the holder has published is seen. */
    if (!atomic_compare_exchange_strong_explicit(&env->ctl->turn, &word, next,
                                                 memory_order_acq_rel,
                                                 memory_order_relaxed))
        return 0;
    /* Pairs with the fence in sleep_for: either a sleep is seen, or it sees that the turn has
       moved. */
    atomic_thread_fence(memory_order_seq_cst);
    return next != 0 ? next : least(env, false);
}

/* wake -- the one that has been given the turn, or may take it, if it sleeps.  As it counts as awake
   from now on, the next pass wakes nobody else. */
static void
wake(struct xac_env *env, uint64_t word)
{
    struct xac_txn *txn;

    xac_assert(xac_lock_none_held());
    if (word == 0)
        return;
    txn = xac_txn_at(env, slot_of(word));
    if (atomic_load_explicit(&txn->is_asleep, memory_order_relaxed) == 0)
        return;
    atomic_store_explicit(&txn->is_asleep, 0, memory_order_relaxed);
    xac_futex_wake_one(&txn->is_asleep);
}

void
xac_turn_pass(struct xac_env *env, uint64_t slot)
{
    struct xac_txn *txn = xac_txn_at(env, slot);
    /* Relaxed: as in xac_turn_is_mine. */
    uint64_t ticket = atomic_load_explicit(&txn->ticket, memory_order_relaxed);

    xac_assert(xac_lock_none_held());
    if (ticket == 0)
        return;
    /* Release: pairs with the acquire in ticket_of.  From here on we are void. */
    atomic_store_explicit(&txn->ticket, 0, memory_order_release);
    xac_kill_point("td");
    wake(env, pass_from(env, word_of(slot, ticket)));
    xac_assert(!xac_turn_is_mine(env, slot));
}

/* ---- Taking it away ------------------------------------------------------------------ */

/* is_gone -- has the holder given up the turn, or does its process not run? */
static bool
is_gone(struct xac_ctx *ctx, uint64_t word)
{
    uint64_t state;
    enum xac_process_state process;

    xac_assert(slot_of(word) != ctx->slot || ticket_of(ctx->env, word) == 0);
    if (ticket_of(ctx->env, word) == 0)
        return true;
    state = atomic_load_explicit(&xac_txn_at(ctx->env, slot_of(word))->word,
                                 memory_order_relaxed);
    if (xac_txn_state(state) == XAC_TXN_FREE)
        return true;
    process = xac_registry_state(ctx->env, xac_txn_participant(state));
    if (process == XAC_PROCESS_DEAD)
        ctx->saw_dead = true; /* to be cleaned up after when we end */
    return process != XAC_PROCESS_RUNNING;
}

/*
 * take_away -- the turn of a holder that is gone goes to the next one, under publish: (4).  Its
 * transaction is left alone.  If it was publishing, it has published by the time we have the lock;
 * otherwise it finds that it has lost the turn.  Signals are blocked.
 */
static void
take_away(struct xac_env *env, uint64_t word)
{
    uint64_t ticket, next = 0;

    xac_assert(word != 0);
    xac_assert(xac_lock_none_held());
    xac_chain_populate(env);
    if (xac_chain_lock_limited(env) == 0) {
        ticket = ticket_of(env, word);
        if (load_turn(env) == word) {
            if (ticket != 0)
                /* Relaxed: the exchange of the turn behind it is a release. */
                (void)atomic_compare_exchange_strong_explicit(
                    &xac_txn_at(env, slot_of(word))->ticket, &ticket, 0,
                    memory_order_relaxed, memory_order_relaxed);
            xac_kill_point("tf");
            next = pass_from(env, word);
        }
        xac_chain_unlock(env);
    }
    wake(env, next);
}

/* ---- Taking it ----------------------------------------------------------------------- */

/* sleep_for -- until we are woken, or for so many ms, unless the turn has moved already. */
static void
sleep_for(struct xac_env *env, struct xac_txn *txn, uint64_t seen, unsigned ms)
{
    xac_assert(seen != 0);
    xac_assert(ms > 0);
    atomic_store_explicit(&txn->is_asleep, 1, memory_order_relaxed);
    /* Pairs with the fence in pass_from. */
    atomic_thread_fence(memory_order_seq_cst);
    xac_kill_point("ts");
    if (load_turn(env) == seen)
        xac_futex_wait(&txn->is_asleep, 1, ms);
    atomic_store_explicit(&txn->is_asleep, 0, memory_order_relaxed);
}

/* draw -- a ticket, for everybody to see; ret it. */
static uint64_t
draw(struct xac_env *env, struct xac_txn *txn)
{
    uint64_t ticket;

    do /* 0 comes in a damaged region only */
        ticket =
            atomic_fetch_add_explicit(&env->ctl->next_ticket, 1, memory_order_relaxed)
            + 1;
    while (ticket == 0);
    xac_assert(atomic_load_explicit(&txn->ticket, memory_order_relaxed) == 0);
    atomic_store_explicit(&txn->is_late, 0, memory_order_relaxed);
    /* Relaxed: one that passes the turn and misses it does no harm; we look at `turn` behind. */
    atomic_store_explicit(&txn->ticket, ticket, memory_order_relaxed);
    xac_assert(ticket != 0);
    xac_kill_point("ta");
    return ticket;
}

/* may_take -- has the turn been given to us, or is it free?  Then it is ours. */
static bool
may_take(struct xac_env *env, uint64_t seen, uint64_t mine)
{
    xac_assert(mine != 0);
    return seen == mine
           || (seen == 0
               /* Acquire: pairs with the release of the one that left it free. */
               && atomic_compare_exchange_strong_explicit(&env->ctl->turn, &seen, mine,
                                                          memory_order_acq_rel,
                                                          memory_order_relaxed));
}

/* await_turn -- one round of waiting for a holder: it gives up the turn, or loses it if it is gone.
   in  last  the holder after the last round.  ret the holder now. */
static uint64_t
await_turn(struct xac_env *env, struct xac_ctx *ctx, uint64_t seen, uint64_t last,
           unsigned ms)
{
    xac_assert(seen != 0);
    if (seen != last || !is_gone(ctx, seen)) {
        sleep_for(env, ctx->txn, seen, ms);
        return seen;
    }
    take_away(env, seen);
    return load_turn(env);
}

/* try_to_take -- look at the turn for a moment; ret 0: it is ours; else who has it. */
static uint64_t
try_to_take(struct xac_env *env, struct xac_ctx *ctx)
{
    for (;;) {
        uint64_t seen = load_turn(env), ticket, mine;

        /* Relaxed: behind the acquire of a turn that has been taken away from us. */
        ticket = atomic_load_explicit(&ctx->txn->ticket, memory_order_relaxed);
        if (ticket == 0)
            ticket = draw(env, ctx->txn); /* at first; or we were stopped with the turn */
        mine = word_of(ctx->slot, ticket);
        xac_assert(mine != 0);
        if (may_take(env, seen, mine))
            return 0;
        seen = xac_futex_spin(&env->ctl->turn, mine);
        if (seen != 0 && seen != mine)
            return seen;
    }
}

/*
 * await_long -- wait until the turn is ours, with signals blocked; they are let through while we have
 * no ticket, so that nobody passes the turn to a handler that takes long, or leaves us by longjmp.
 *
 * ret  0 or ETIMEDOUT
 */
static int
await_long(struct xac_env *env, struct xac_ctx *ctx)
{
    struct xac_txn *txn = ctx->txn;
    unsigned n_sleeps = 0, patience = SLEEPS_PATIENT;
    uint64_t seen, last = 0, ticket = 0;

    xac_assert(xac_lock_none_held());
    while ((seen = try_to_take(env, ctx)) != 0) {
        unsigned ms = xac_wait_slice(SLEEP_MS);

        if (ms == 0) {
            xac_turn_pass(env, ctx->slot);
            return ETIMEDOUT;
        }
        /* Relaxed: as above; another ticket, and the wait begins anew. */
        if (ticket != atomic_load_explicit(&txn->ticket, memory_order_relaxed)) {
            ticket = atomic_load_explicit(&txn->ticket, memory_order_relaxed);
            n_sleeps = 0;
        }
        if (n_sleeps++ == SLEEPS_LATE) /* relaxed: a pass that misses it does no harm */
            atomic_store_explicit(&txn->is_late, 1, memory_order_relaxed);
        last = await_turn(env, ctx, seen, last, ms);
        if (n_sleeps >= patience && xac_signals_are_pending()) {
            patience *= 2; /* or many signals would leave us at the end of the line */
            xac_turn_pass(env, ctx->slot);
            xac_signals_glance();
        }
    }
    return 0;
}

int
xac_turn_take(struct xac_env *env, struct xac_ctx *ctx)
{
    sigset_t signals;
    int rc = 0;

    xac_assert(xac_lock_none_held());
    xac_assert(!xac_turn_is_mine(env, ctx->slot));
    /* Of a wait that a signal handler has left; others find its turn void. */
    atomic_store_explicit(&ctx->txn->ticket, 0, memory_order_relaxed);
    if (try_to_take(env, ctx) != 0) {
        xac_signals_block(&signals);
        xac_txn_waits(ctx->txn, 0, xac_clock_ns());
        rc = await_long(env, ctx);
        xac_txn_waits_over(ctx->txn);
        xac_signals_restore(&signals);
    }
    if (rc == 0)
        xac_kill_point("tb");
    return rc;
}
