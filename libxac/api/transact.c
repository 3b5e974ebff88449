/* SPDX-License-Identifier: MIT */
/*
 * transact.c -- xTransact(): a function as a transaction, retried with back-off (Thesis
 * 1.2).  A client of the public interface like any other, but for what becomes of a function
 * that does not return (api_left.h).  Built with -fexceptions, for its cleanup.
 */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <xac.h>
#include <xac_env.h>
#include <xac_limits.h>

#include "api/api.h"
#include "api/api_left.h"
#include "api/api_savepoint.h"
#include "base/annot.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/sized.h"
#include "base/sys.h"

/* Attempts that only give up the processor; then sleeps of up to 2^k times the unit. */
#define YIELDS      3
#define UNIT_NS     10000u
#define DOUBLES_MAX 10

#define NO_TAIL_CALL() __asm__ volatile("")

/* random_number -- xorshift of the time and the thread's stack: threads that wait for each other get
   different ones. */
static uint64_t
random_number(void)
{
    struct timespec ts;
    uint64_t x;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    x = ((uint64_t)(uintptr_t)&ts ^ (uint64_t)ts.tv_nsec << 20) | 1;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return x;
}

/* backoff_default -- yield at first, then sleep a random time that may double. */
static void
backoff_default(void *arg, unsigned attempt)
{
    unsigned doubles = attempt > YIELDS ? attempt - YIELDS : 0;

    (void)arg;
    xac_assert(attempt > 0);
    if (doubles == 0) {
        (void)sched_yield();
        return;
    }
    doubles = doubles > DOUBLES_MAX ? DOUBLES_MAX : doubles;
    xac_sleep_ns(random_number() % ((uint64_t)UNIT_NS << doubles));
}

void
xac_backoff_none(void *arg, unsigned attempts)
{
    (void)arg;
    (void)attempts;
}

/*
 * Ways to wait that have been set, for any environment.  Each stays, for another thread may be
 * about to go by it; it is found again when it is set again.
 */
struct xac_way {
    const struct xac_way *older;
    void (*fn)(void *arg, unsigned attempts);
    void *arg;
};
static const struct xac_way way_default = {.fn = backoff_default};
static const struct xac_way *_Atomic ways = &way_default; /* newest first            */
static const struct xac_way
    *_Atomic way; /* of the default environment, open or not; NULL: default */

/* way_of -- how it waits in an environment. */
static const struct xac_way *_Atomic *
way_of(struct xac_env *env)
{
    return env == NULL || env == xac_api_env ? &way : &env->way;
}

/* way_find -- one that has been set before; NULL if there is none. */
static const struct xac_way *
way_find(const struct xac_way *newest, void (*fn)(void *arg, unsigned attempts),
         const void *arg)
{
    while (newest != NULL && (newest->fn != fn || newest->arg != arg))
        newest = newest->older;
    return newest;
}

/* way_set -- how it waits from now on. */
static int
way_set(const struct xac_way *_Atomic *wayp, void (*fn)(void *arg, unsigned attempts),
        void *arg)
{
    /* Acquire: pairs with the release below. */
    const struct xac_way *newest = atomic_load_explicit(&ways, memory_order_acquire);
    const struct xac_way *found = fn == NULL ? &way_default : way_find(newest, fn, arg);

    if (found == NULL) {
        struct xac_way *w = (struct xac_way *)malloc(sizeof *w);

        if (w == NULL)
            return xac_err(ENOMEM, "xac_set_backoff");
        *w = (struct xac_way){.fn = fn, .arg = arg};
        do
            w->older = newest;
        while (!atomic_compare_exchange_weak_explicit(
            &ways, &newest, w, memory_order_acq_rel, /* pairs with the acquire above */
            memory_order_acquire));
        found = w;
    }
    /* Release: pairs with the acquire in wait_a_while. */
    atomic_store_explicit(wayp, found, memory_order_release);
    return 0;
}

int
xac_set_backoff_in(struct xac_env *env, void (*fn)(void *arg, unsigned attempts),
                   void *arg)
{
    int rc = xac_api_opened(env, "xac_set_backoff_in");

    return rc == 0 ? way_set(way_of(env), fn, arg) : rc;
}

int
xac_set_backoff(void (*fn)(void *arg, unsigned attempts), void *arg)
{
    return way_set(&way, fn, arg);
}

/* wait_a_while -- before another attempt. */
static void
wait_a_while(struct xac_env *env, unsigned attempts)
{
    /* Acquire: pairs with the release in way_set. */
    const struct xac_way *w = atomic_load_explicit(way_of(env), memory_order_acquire);

    w = w == NULL ? &way_default : w;
    w->fn(w->arg, attempts);
}

/* An attempt, for its cleanup. */
struct attempt {
    struct xac_env *env;
    int depth;
    bool is_open;  /* fn is running                                                    */
    uint64_t mark; /* inside of a transaction: the savepoint before fn; else 0         */
};

/* attempt_left -- the attempt's frame goes; if fn has not returned, then by unwinding. */
static void
attempt_left(const struct attempt *attempt)
{
    if (attempt->is_open)
        xac_left_unwind(attempt->env, attempt->depth, attempt->mark);
}

/* end_nested -- fn has returned, inside of a transaction: what it has stored stays, or is undone.  ret 0 or an
   error of the savepoint. */
static int
end_nested(const struct attempt *attempt, int fn_rc)
{
    int rc = fn_rc == 0 ? 0 : xac_rollback_to_in(attempt->env, attempt->mark);

    xac_assert(attempt->mark != 0);
    if (rc == 0 || rc == XAC_FAILED)
        rc = xac_release_in(attempt->env, attempt->mark);
    return rc;
}

/* How a function is run. */
struct how {
    const void *frame; /* of the entry point, which xac_left_look looks for */
    unsigned attempts; /* at most; 0: no limit                              */
    uint64_t until_ns; /* monotonic; 0: no limit                            */
};

/* is_over -- may there be no further attempt?  Words for a deadline in *rcp. */
static bool
is_over(const struct how *how, unsigned attempts, int *rcp)
{
    if (how->attempts != 0 && attempts >= how->attempts)
        return true;
    if (how->until_ns == 0 || xac_clock_ns() < how->until_ns)
        return false;
    *rcp = xac_err(ETIMEDOUT, "xTransactLimited: aborted %u times, and the time is over",
                   attempts);
    return true;
}

/* transact_once -- one attempt; *fn_rcp what fn returned. */
static int
transact_once(struct xac_env *env, int (*fn)(void *arg), void *arg, const struct how *how,
              int *fn_rcp)
{
    __attribute__((cleanup(attempt_left))) struct attempt attempt = {.env = env};
    int rc = xac_api_begin_by(env, how->until_ns), ended;

    if (rc != 0)
        return rc;
    attempt.depth = xac_left_enter(env, how->frame);
    if (attempt.depth > 0) {
        rc = xac_api_savepoint(env, "xTransact", &attempt.mark);
        if (rc != 0) {
            (void)xac_left_return(env, attempt.depth);
            (void)xac_end_in(env);
            return rc;
        }
    }
    attempt.is_open = true;
    *fn_rcp = fn(arg);
    attempt.is_open = false;
    rc = xac_left_return(env, attempt.depth);
    if (rc != 0)
        return rc;
    if (attempt.mark != 0)
        rc = end_nested(&attempt, *fn_rcp);
    else if (*fn_rcp != 0)
        (void)xac_abort_in(env);
    ended = xac_end_in(env);
    if (ended == EBUSY) /* threads have joined (xac_team.h); nothing stays open */
        xac_left_unwind(env, attempt.depth, 0);
    if (rc != 0)
        *fn_rcp = 0; /* the error counts for more: the transaction will not commit */
    return rc != 0 ? rc : ended;
}

/* transact -- xTransact(). */
static int
transact(struct xac_env *env, int (*fn)(void *arg), void *arg, const struct how *how)
{
    int fn_rc = 0;
    int rc;

    if (fn == NULL)
        return xac_err(EINVAL, "xTransact: NULL");
    (void)xac_left_look(env, how->frame);
    rc = transact_once(env, fn, arg, how, &fn_rc);
    for (unsigned n = 1; rc == XAC_ABORTED && fn_rc == 0; n++) {
        struct xac_conflict why = {.kind = XAC_CONFLICT_NONE};

        (void)xac_get_conflict(&why,
                               sizeof why); /* no memory: it has not been xAbort() */
        if (why.kind == XAC_CONFLICT_USER)
            return rc; /* fn called xAbort() */
        if (is_over(how, n, &rc))
            return rc;
        wait_a_while(env, n);
        if (is_over(how, n, &rc)) /* attempts: as before */
            return rc;
        rc = transact_once(env, fn, arg, how, &fn_rc);
    }
    if (fn_rc != 0 && rc != XAC_EINTXN)
        return fn_rc;
    return rc == XAC_PENDING ? 0 : rc;
}

/* Not inlined, and no tail call: the frame lasts as long as the transaction. */
__attribute__((noinline)) int
xac_transact_in(struct xac_env *env, int (*fn)(void *arg), void *arg)
{
    struct how how = {.frame = __builtin_frame_address(0)};
    int rc = transact(env, fn, arg, &how);

    NO_TAIL_CALL();
    return rc;
}

__attribute__((noinline)) int
xac_transact(int (*fn)(void *arg), void *arg)
{
    struct how how = {.frame = __builtin_frame_address(0)};
    int rc = transact(xac_api_env, fn, arg, &how);

    NO_TAIL_CALL();
    return rc;
}

/* how_of -- what a program's limits say; ret 0 or EINVAL. */
static int
how_of(const struct xac_limits *limits, const void *frame, struct how *out)
{
    static_assert(XAC_SIZED_IS_DENSE(struct xac_limits, wait_ms), "name the last field");
    struct xac_limits known = {.size = sizeof known};
    size_t size = limits != NULL ? limits->size : 0;

    if (size < offsetof(struct xac_limits, wait_ms))
        return xac_err(EINVAL, limits == NULL
                                   ? "xTransactLimited: NULL"
                                   : "xTransactLimited: size is not that of the "
                                     "structure");
    if (size > sizeof known
        && !xac_bytes_are_zero((const char *)limits + sizeof known, size - sizeof known))
        return xac_err(EINVAL,
                       "xTransactLimited: a limit that this version does not know");
    memcpy(&known, limits, size < sizeof known ? size : sizeof known);
    *out = (struct how){.frame = frame, .attempts = known.attempts};
    if (known.wait_ms != 0)
        out->until_ns = xac_clock_ns() + known.wait_ms * UINT64_C(1000000);
    return 0;
}

__attribute__((noinline)) int
xac_transact_limited_in(struct xac_env *env, int (*fn)(void *arg), void *arg,
                        const struct xac_limits *limits)
{
    struct how how;
    int rc = how_of(limits, __builtin_frame_address(0), &how);

    if (rc == 0)
        rc = transact(env, fn, arg, &how);
    NO_TAIL_CALL();
    return rc;
}

__attribute__((noinline)) int
xac_transact_limited(int (*fn)(void *arg), void *arg, const struct xac_limits *limits)
{
    struct how how;
    int rc = how_of(limits, __builtin_frame_address(0), &how);

    if (rc == 0)
        rc = transact(xac_api_env, fn, arg, &how);
    NO_TAIL_CALL();
    return rc;
}

int xTransact(int (*fn)(void *arg), void *arg) __attribute__((alias("xac_transact")));
int xTransactLimited(int (*fn)(void *arg), void *arg, const struct xac_limits *limits)
    __attribute__((alias("xac_transact_limited")));
