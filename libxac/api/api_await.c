/* SPDX-License-Identifier: MIT */
/*
 * api_await.c -- a begin that waits while another thread of the process has a transaction open: see api.h.
 *
 * The thread that gives the turn back wakes one that waits, if it sees any; so a transaction that nobody waits for pays
 * for one load.  It may miss one that begins to wait at this moment.  So nobody sleeps longer than SLEEP_MS.
 * A thread that comes while others wait sleeps once before it looks: else a thread that has one transaction after
 * the other would always be the first.
 *
 * Signals are let through between two sleeps, when the thread is not counted: a handler may leave by longjmp().
 */
#include <config.h>

#include <errno.h>

#include "api/api.h"
#include "base/futex.h"
#include "base/lock.h"
#include "commit/txn.h"

/* The longest sleep; and of one that lets others go first. */
#define SLEEP_MS 5
#define FIRST_MS 1

/* has_waiting -- relaxed: a hint. */
static bool
has_waiting(const struct xac_ctx *ctx)
{
    return atomic_load_explicit(&ctx->n_waiting, memory_order_relaxed) != 0;
}

void
xac_api_wake(struct xac_ctx *ctx)
{
    (void)atomic_fetch_add_explicit(&ctx->woken, 1, memory_order_relaxed);
    xac_futex_wake_one(&ctx->woken);
}

/* sleep_for -- until somebody gives the turn back, or for so long. */
static void
sleep_for(struct xac_ctx *ctx, unsigned ms)
{
    /* Relaxed, all: hints. */
    uint32_t seen = atomic_load_explicit(&ctx->woken, memory_order_relaxed);

    xac_assert(ms > 0);
    (void)atomic_fetch_add_explicit(&ctx->n_waiting, 1, memory_order_relaxed);
    xac_futex_wait(&ctx->woken, seen, ms);
    (void)atomic_fetch_sub_explicit(&ctx->n_waiting, 1, memory_order_relaxed);
}

/* await -- xac_api_start() again and again; ret EBUSY once the limit of the thread is over. */
static int
await(struct xac_env *env, const char *what, struct xac_ctx **ctxp)
{
    struct xac_ctx *ctx = xac_ctx_mine(env);
    unsigned most = has_waiting(ctx) ? FIRST_MS : SLEEP_MS;
    sigset_t signals;
    int rc = EBUSY;

    xac_assert(xac_wait_is_limited());
    xac_signals_block(&signals);
    while (rc == EBUSY) {
        unsigned ms = xac_wait_slice(most);

        if (ms == 0)
            break;
        sleep_for(ctx, ms);
        xac_signals_glance();
        most = SLEEP_MS;
        rc = xac_api_start(env, what, ctxp);
    }
    xac_signals_restore(&signals);
    return rc != EBUSY
               ? rc
               : xac_err(EBUSY,
                         "%s: another thread has a transaction open; waited for it "
                         "for %u ms",
                         what, xac_wait_limit_ms());
}

int
xac_api_start_by(struct xac_env *env, const char *what, uint64_t until_ns,
                 struct xac_ctx **ctxp)
{
    uint32_t ms = xac_txn_limit_ms(env, until_ns);
    int rc = EBUSY;

    if (xac_likely(ms == 0))
        return xac_api_start(env, what, ctxp);
    xac_wait_limit(ms);
    if (!has_waiting(xac_ctx_mine(env)))
        rc = xac_api_start(env, what, ctxp);
    if (rc == EBUSY)
        rc = await(env, what, ctxp);
    if (rc != 0)
        xac_wait_limit(0);
    return rc;
}
