/* SPDX-License-Identifier: MIT */
/*
 * team.c -- see team.h.
 */
#include <config.h>

#include "txn/team.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/futex.h"
#include "base/lock.h"
#include "base/tls.h"
#include "shared/env_state.h"

/*
 * So many traps in a row may find that their pages have the access.  Beside other threads that is not an
 * error: another one has given it between the trap and the handler.  Each time access is given, each thread
 * may trap so once; and each time a descriptor of the engine has to be replaced.  A page that
 * really cannot be accessed, for its file is shorter than the mapping, traps again and again.  So it
 * stops the program once the other threads have all they need.
 */
#define SPURIOUS_MAX 65536

/* Looks at the lock before a thread sleeps; serving a trap takes some microseconds. */
#define LOOKS_MAX 100

/* A sleep ends by itself after so long; there is no other reason to look. */
#define SLEEP_MS 1000

_Atomic uint32_t xac_team_n_joined;

static _Atomic uint64_t next_id = 1; /* relaxed: nothing is published with it */

/* ---- The lock -------------------------------------------------------------------------- */

/* try -- take the lock if it is free. */
XAC_SIGSAFE static bool
try(struct xac_team *team)
{
    uint32_t is_free = 0;

    xac_assert(team != NULL);
    /* Acquire: pairs with the release in give. */
    return atomic_compare_exchange_strong_explicit(&team->lock, &is_free, 1,
                                                   memory_order_acquire,
                                                   memory_order_relaxed);
}

/* is_holder -- has the calling thread the lock? */
XAC_SIGSAFE static bool
is_holder(const struct xac_team *team)
{
    return pthread_equal(atomic_load_explicit(&team->holder, memory_order_relaxed),
                         pthread_self());
}

/* try_often -- ret false: it is taken still. */
XAC_SIGSAFE static bool
try_often(struct xac_team *team)
{
    for (int i = 0; i < LOOKS_MAX; i++) {
        if (try(team))
            return true;
        xac_cpu_pause();
    }
    return false;
}

XAC_SIGSAFE static void
take(struct xac_team *team)
{
    xac_assert(xac_lock_none_held());
    xac_assert(!is_holder(team));
    if (!try_often(team)) {
        /* Acquire: pairs with the release in give. */
        while (atomic_exchange_explicit(&team->lock, 2, memory_order_acquire) != 0)
            xac_futex_wait(&team->lock, 2, SLEEP_MS);
    }
    atomic_store_explicit(&team->holder, pthread_self(), memory_order_relaxed);
}

XAC_SIGSAFE static void
give(struct xac_team *team)
{
    uint32_t was;

    atomic_store_explicit(&team->holder, 0, memory_order_relaxed);
    /* Release: pairs with the acquires above. */
    was = atomic_exchange_explicit(&team->lock, 0, memory_order_release);
    xac_assert(was != 0);
    if (was == 2)
        xac_futex_wake_one(&team->lock);
}

/* id_of -- relaxed: see the field. */
XAC_SIGSAFE static uint64_t
id_of(const struct xac_ctx *ctx)
{
    return atomic_load_explicit(&ctx->team.id, memory_order_relaxed);
}

/* ---- What a thread has joined ---------------------------------------------------------- */

/* known -- NULL: nothing yet. */
XAC_SIGSAFE static struct xac_thread_known *
known(void)
{
    return (struct xac_thread_known *)xac_tls_look(XAC_TLS_THREAD);
}

XAC_SIGSAFE struct xac_joined *
xac_team_mine(void)
{
    const struct xac_thread_known *k = known();

    return k != NULL ? k->joined : NULL;
}

/* has_joined -- the calling thread, that transaction? */
XAC_SIGSAFE static bool
has_joined(uint64_t id)
{
    const struct xac_joined *j = xac_team_mine();

    xac_assert(id != 0);
    while (j != NULL && j->id != id)
        j = j->next;
    return j != NULL;
}

int
xac_team_note(uint64_t id)
{
    struct xac_thread_known *k = known();
    struct xac_joined *j = (struct xac_joined *)malloc(sizeof *j);

    xac_assert(id != 0);
    xac_assert(!has_joined(id));
    if (k == NULL || j == NULL) {
        free(j);
        return ENOMEM;
    }
    *j = (struct xac_joined){.next = k->joined, .id = id};
    k->joined = j;
    xac_assert(xac_team_mine() == j);
    atomic_fetch_add_explicit(&xac_team_n_joined, 1, memory_order_relaxed);
    return 0;
}

void
xac_team_forget(uint64_t id)
{
    struct xac_thread_known *k = known();
    struct xac_joined **link, *j;

    xac_assert(k != NULL);
    xac_assert(has_joined(id));
    for (link = &k->joined; (*link)->id != id; link = &(*link)->next)
        ;
    j = *link;
    *link = j->next;
    free(j);
    xac_assert(!has_joined(id));
    atomic_fetch_sub_explicit(&xac_team_n_joined, 1, memory_order_relaxed);
}

bool
xac_team_has_joined(const struct xac_ctx *ctx)
{
    return id_of(ctx) != 0 && has_joined(id_of(ctx));
}

/* ---- At work ----------------------------------------------------------------------------- */

XAC_SIGSAFE enum xac_team_part
xac_team_enter_slow(struct xac_ctx *ctx)
{
    struct xac_team *team = &ctx->team;
    bool is_mine = xac_team_is_owner(ctx);

    if (is_holder(team))
        return XAC_TEAM_AGAIN;
    if (id_of(ctx) == 0) /* a member sees it: its thread has learnt of the begin */
        return is_mine ? XAC_TEAM_ALONE : XAC_TEAM_OUT;
    take(team);
    if (id_of(ctx) != 0 && (is_mine || team->is_all || has_joined(id_of(ctx))))
        return XAC_TEAM_IN;
    give(team);
    return XAC_TEAM_OUT;
}

XAC_SIGSAFE void
xac_team_leave_slow(struct xac_ctx *ctx)
{
    xac_assert(id_of(ctx) != 0);
    give(&ctx->team);
}

XAC_SIGSAFE bool
xac_team_is_spurious(struct xac_ctx *ctx)
{
    xac_assert(id_of(ctx) != 0);
    xac_assert(atomic_load_explicit(&ctx->team.lock, memory_order_relaxed) != 0);
    return ctx->team.n_spurious++ < SPURIOUS_MAX;
}

XAC_SIGSAFE void
xac_team_served(struct xac_ctx *ctx)
{
    xac_assert(id_of(ctx) != 0);
    xac_assert(atomic_load_explicit(&ctx->team.lock, memory_order_relaxed) != 0);
    ctx->team.n_spurious = 0;
}

void
xac_team_lock(struct xac_ctx *ctx, sigset_t *signals)
{
    xac_assert(xac_team_is_owner(ctx));
    xac_assert(xac_team_is_on(ctx));
    xac_signals_block(signals);
    take(&ctx->team);
}

void
xac_team_unlock(struct xac_ctx *ctx, const sigset_t *signals)
{
    xac_assert(xac_team_is_owner(ctx));
    xac_assert(xac_signals_are_blocked());
    give(&ctx->team);
    xac_signals_restore(signals);
}

/* ---- Its begin and end --------------------------------------------------------------------- */

uint64_t
xac_team_open(struct xac_ctx *ctx, bool is_all)
{
    struct xac_team *team = &ctx->team;
    uint64_t id = id_of(ctx);

    xac_assert(xac_team_is_owner(ctx));
    xac_assert(ctx->depth > 0);
    if (id != 0)
        return id;
    id = atomic_fetch_add_explicit(&next_id, 1, memory_order_relaxed);
    xac_assert(team->n_joined == 0);
    xac_assert(id != 0);
    team->is_all = is_all;
    team->n_spurious = 0;
    /* Release: pairs with the acquire of a lock that is taken for the first time; what the begin
       has done comes before. */
    atomic_store_explicit(&team->id, id, memory_order_release);
    xac_assert(xac_team_is_on(ctx));
    return id;
}

unsigned
xac_team_close(struct xac_ctx *ctx, bool is_forced)
{
    struct xac_team *team = &ctx->team;
    unsigned n_joined;
    sigset_t signals;

    xac_assert(xac_team_is_owner(ctx));
    xac_signals_block(&signals);
    take(team);
    n_joined = is_forced ? 0 : team->n_joined;
    xac_assert(id_of(ctx) != 0);
    if (n_joined == 0) {
        atomic_store_explicit(&team->id, 0, memory_order_relaxed);
        team->n_joined = 0;
    }
    give(team);
    xac_signals_restore(&signals);
    xac_assert(n_joined != 0 || id_of(ctx) == 0);
    return n_joined;
}

bool
xac_team_lock_if(struct xac_ctx *ctx, uint64_t id)
{
    xac_assert(id != 0);
    xac_assert(xac_signals_are_blocked());
    if (id_of(ctx) != id)
        return false;
    take(&ctx->team);
    if (id_of(ctx) == id)
        return true;
    give(&ctx->team);
    return false;
}

/* ---- fork ------------------------------------------------------------------------------------ */

void
xac_team_fork(struct xac_ctx *ctx)
{
    xac_assert(xac_signals_are_blocked());
    /* A signal handler may fork in the middle of xend(), with locks held.  The child may only call exec() then,
       so that it does not matter who is at work. */
    if (xac_lock_none_held())
        take(&ctx->team);
}

void
xac_team_fork_done(struct xac_ctx *ctx)
{
    if (is_holder(&ctx->team))
        give(&ctx->team);
}

void
xac_team_forked(struct xac_ctx *ctx)
{
    xac_assert(ctx->depth == 0);
    atomic_store_explicit(&ctx->team.lock, 0, memory_order_relaxed);
    atomic_store_explicit(&ctx->team.holder, 0, memory_order_relaxed);
    atomic_store_explicit(&ctx->team.id, 0, memory_order_relaxed);
    ctx->team.n_joined = 0;
}
