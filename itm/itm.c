/* SPDX-License-Identifier: MIT */
/*
 * itm.c -- begin, end, cancel and restart of language transactions: see itm.h.
 */
#include <config.h>

#include "itm.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <xac.h>
#include <xac_translate.h>

/* Attempts that only give up the processor; then random sleeps of up to 2^k units. */
#define YIELDS      3u
#define UNIT_NS     10000u
#define DOUBLES_MAX 10u

/* So often, and so long each time, a begin waits for a thread that has called xbegin(). */
#define BUSY_TRIES    100000u
#define BUSY_SLEEP_NS 100000

/* Why a transaction is cancelled; the values are those of the ABI. */
#define CANCEL_OUTER 16u

__thread struct xac_itm *xac_itm_now;

/* How blocks of several threads run.  Relaxed: nothing is published with it. */
enum {
    UNDECIDED,
    ONE_BY_ONE,
    SIDE_BY_SIDE
};
static _Atomic int manner = UNDECIDED;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* for the end of a thread */

/* What to call when a transaction can neither commit nor be tried again; NULL: stop. */
static void (*_Atomic on_failure)(int code);

/* The id of the latest transaction of any thread; relaxed: only to be different. */
static _Atomic uint64_t last_id = 1;

void
xac_itm_stop(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)fputs("libxac_itm: ", stderr);
    (void)vfprintf(stderr, format, args);
    (void)fputc('\n', stderr);
    va_end(args);
    abort();
}

void *
xac_itm_grow(void *array, size_t *maxp, size_t needed, size_t element_bytes)
{
    size_t max = *maxp;

    if (needed <= max)
        return array;
    while (max < needed)
        max = max * 2 + 64;
    array = realloc(array, max * element_bytes);
    if (array == NULL)
        xac_itm_stop("no memory for the undo log of a transaction");
    *maxp = max;
    return array;
}

/* ---- threads ---------------------------------------------------------------------------- */

/* choose -- ret  what has been chosen first. */
static int
choose(int how)
{
    int was = UNDECIDED;

    return atomic_compare_exchange_strong_explicit(&manner, &was, how,
                                                   memory_order_relaxed,
                                                   memory_order_relaxed)
               ? how
               : was;
}

XAC_ITM_API int xac_itm_side_by_side(void);
int
xac_itm_side_by_side(void)
{
    return choose(SIDE_BY_SIDE) == SIDE_BY_SIDE ? 0 : EBUSY;
}

bool
xac_itm_is_side_by_side(void)
{
    return atomic_load_explicit(&manner, memory_order_relaxed) == SIDE_BY_SIDE;
}

/* thread_ended -- a transaction that is still open is libxac's to roll back. */
static void
thread_ended(void *arg)
{
    struct xac_itm *t = (struct xac_itm *)arg;

    xac_itm_outside_unlock(t, false);
    xac_itm_now = NULL;
    free(t->marks);
    free(t->undo);
    free(t->actions);
    free(t);
}

/* forked -- in the child: of what the parent's threads have, only this one's is left. */
static void
forked(void)
{
    xac_itm_clones_forked();
    xac_itm_outside_forked(xac_itm_now);
}

static void
prepare(void)
{
    if (pthread_key_create(&key, thread_ended) != 0
        || pthread_atfork(NULL, NULL, forked) != 0)
        xac_itm_stop("no key for the threads' transactions");
}

/* thread_get -- the calling thread's, made if need be. */
static struct xac_itm *
thread_get(void)
{
    struct xac_itm *t = xac_itm_now;

    if (t != NULL)
        return t;
    (void)pthread_once(&once, prepare);
    (void)choose(ONE_BY_ONE);
    t = (struct xac_itm *)calloc(1, sizeof *t);
    if (t == NULL || pthread_setspecific(key, t) != 0)
        xac_itm_stop("no memory for a thread's transactions");
    xac_itm_now = t;
    return t;
}

/* ---- attempts --------------------------------------------------------------------------- */

/* fail -- an error that another attempt does not cure.  The program's function may run blocks: it gets
   a struct xac_itm of its own.  What the transaction has stored is rolled back, or committed. */
static void
fail(struct xac_itm *t, const char *what, int code)
{
    /* Acquire: pairs with the release in xac_itm_on_failure. */
    void (*fn)(int code) = atomic_load_explicit(&on_failure, memory_order_acquire);

    if (fn == NULL)
        xac_itm_stop("a transaction cannot %s: %s (%s)", what, xac_strerror(code),
                     xac_last_error());
    xac_itm_now = NULL;
    fn(code);
    if (xac_itm_now != NULL)
        thread_ended(xac_itm_now);
    xac_itm_now = t;
    (void)pthread_setspecific(key, t);
}

XAC_ITM_API void xac_itm_on_failure(void (*fn)(int code));
void
xac_itm_on_failure(void (*fn)(int code))
{
    /* Release: pairs with the acquire in fail. */
    atomic_store_explicit(&on_failure, fn, memory_order_release);
}

static void
sleep_ns(long ns)
{
    struct timespec ts = {.tv_nsec = ns};

    (void)nanosleep(&ts, NULL);
}

/* wait_a_while -- before another attempt; n that have failed. */
static void
wait_a_while(unsigned n)
{
    struct timespec now;
    uint64_t x;

    if (n <= YIELDS) {
        (void)sched_yield();
        return;
    }
    n = n - YIELDS > DOUBLES_MAX ? DOUBLES_MAX : n - YIELDS;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    x = ((uint64_t)(uintptr_t)&now ^ (uint64_t)now.tv_nsec << 20) | 1;
    x ^= x << 13;
    x ^= x >> 7;
    sleep_ns((long)(x % ((uint64_t)UNIT_NS << n)));
}

/* number_next -- makes all units unknown. */
static void
number_next(struct xac_itm *t)
{
    t->number += XAC_ITM_NUMBER;
    if (t->number == 0) {
        memset(t->units, 0, sizeof t->units);
        t->number = XAC_ITM_NUMBER;
    }
}

/* fast_set -- may stores to units that are known go without a call?  Not if they are logged. */
static void
fast_set(struct xac_itm *t)
{
    t->fast = t->is_part || t->n_marks > 1 ? 0 : t->number | XAC_ITM_STORED;
}

/* begin_plain -- a transaction or query of libxac on the process's mappings. */
static int
begin_plain(struct xac_itm *t)
{
    int rc = t->is_query ? xac_begin_query() : xac_begin();

    if (rc == XAC_EINQUERY) { /* a part of a query that the program began */
        t->is_query = true;
        rc = xac_begin_query();
    }
    return rc;
}

/* leave_query -- a query of ours ends; what it returns concerns durability only. */
static int
leave_query(struct xac_itm *t)
{
    xac_itm_assert(t->has_env && t->is_query);
    return xac_end_query();
}

/* give_up -- end libxac's transaction without a commit. */
static void
give_up(struct xac_itm *t)
{
    int rc = 0;

    if (!t->has_env)
        return;
    if (t->is_query) {
        (void)leave_query(t);
        return;
    }
    rc = t->is_part ? 0 : xac_abort();
    rc = rc == 0 ? xac_end() : rc;
    if (!t->is_part && (rc == 0 || rc == XAC_ENOTXN || rc == XAC_EINQUERY))
        xac_itm_stop("__transaction_cancel: %s", xac_strerror(rc));
}

/* begin_one -- of blocks that run one by one, a part of the program's transaction, or without an
   environment: the lock comes first, for its queue is that of the blocks. */
static int
begin_one(struct xac_itm *t)
{
    if (!t->is_part)
        xac_itm_outside_lock(t, XAC_ITM_EXCLUSIVE);
    return begin_plain(t);
}

/* begin_beside -- side by side with others: the lock comes second, if at all (outside.c), but in a query,
   which waits for nobody.  ret  EAGAIN: to be tried again. */
static int
begin_beside(struct xac_itm *t)
{
    bool is_plain = t->is_plain || t->is_part;
    int rc = XAC_EMAPPED;

    if (!is_plain && t->is_query)
        xac_itm_outside_lock(t, t->wants);
    if (!is_plain)
        rc = xac_begin_translated(t->is_query);
    t->is_translated = rc == 0;
    if (rc
        == XAC_EMAPPED) /* the thread has views by xView(), or the block must be plain */
        rc = begin_plain(t);
    t->has_env = rc == 0;
    if (t->holds == XAC_ITM_NOTHING && (rc == 0 || rc == XAC_ENOINIT))
        xac_itm_outside_lock(t, t->is_translated ? t->wants : XAC_ITM_EXCLUSIVE);
    if (rc != 0 || t->is_part || !xac_itm_outside_is_stale(t))
        return rc;
    give_up(t);
    return EAGAIN;
}

/* enter -- an attempt begins: the lock, and libxac's transaction, if it has an environment. */
static void
enter(struct xac_itm *t)
{
    unsigned n_busy = 0;
    int rc;

    for (;;) {
        t->is_translated = false;
        rc = xac_itm_is_side_by_side() ? begin_beside(t) : begin_one(t);
        t->has_env = rc == 0;
        if (rc == 0 || rc == XAC_ENOINIT)
            break;
        xac_itm_outside_unlock(t, false);
        if (rc == EAGAIN)
            xac_itm_outside_reset();
        else if (rc == EBUSY
                 && n_busy++ < BUSY_TRIES) /* another thread has called xbegin() */
            sleep_ns(BUSY_SLEEP_NS);
        else
            fail(t, "begin", rc);
    }
    number_next(t);
    fast_set(t);
}

/* in_transaction -- has the thread called xbegin() or xbeginQuery()? */
static bool
in_transaction(void)
{
    return xac_touched_now != NULL && xac_touched_now->store_number != 0;
}

/* in_another -- is it one of another environment than that of xInit()?  A block would be a second
   transaction beside it, and libxac would roll back only one of the two. */
static bool
in_another(void)
{
    /* It looks for a transaction before it looks for the segment, and finds none at NULL. */
    return xac_heap_check(NULL, NULL, 0) == XAC_ENOTXN;
}

/* mark -- a place to roll back to. */
static void
mark(struct xac_itm *t, const struct xac_itm_jump *jump)
{
    t->marks = (struct xac_itm_mark *)xac_itm_grow(t->marks, &t->max_marks,
                                                   t->n_marks + 1, sizeof *t->marks);
    t->marks[t->n_marks++] = (struct xac_itm_mark){.jump = *jump,
                                                   .undo_bytes = t->undo_bytes,
                                                   .n_actions = t->n_actions,
                                                   .depth = t->depth,
                                                   .n_catches = t->n_catches,
                                                   .n_uncaught = xac_itm_uncaught()};
}

/* roll_back -- memory, actions and exceptions, as they were at a mark. */
static void
roll_back(struct xac_itm *t, const struct xac_itm_mark *to, bool with_segments)
{
    xac_itm_undo(t, to, with_segments);
    xac_itm_act_back(t, to->n_actions, with_segments);
    xac_itm_unwind_back(t, to);
}

/* again -- libxac's transaction has ended without a commit: begin once more. */
static _Noreturn void
again(struct xac_itm *t)
{
    xac_itm_assert(t->n_marks > 0 && !t->is_part);
    roll_back(t, &t->marks[0], false);
    t->n_marks = 1;
    t->depth = 1;
    xac_itm_outside_unlock(t, false);
    xac_itm_outside_reset();
    if (t->n_attempts > 0)
        wait_a_while(t->n_attempts);
    enter(t);
    xac_itm_jump(&t->marks[0].jump, t->answer | XAC_ITM_RESTORE);
}

void
xac_itm_restart(struct xac_itm *t)
{
    give_up(t);
    again(t);
}

void
xac_itm_restart_as_update(struct xac_itm *t)
{
    (void)leave_query(t);
    t->is_query = false;
    again(t);
}

/* ---- begin ------------------------------------------------------------------------------ */

void
xac_itm_go_irrevocable(struct xac_itm *t)
{
    if (t->is_irrevocable)
        return;
    t->is_plain = true;
    if (xac_itm_may_restart_as_update(t) && t->has_env)
        xac_itm_restart_as_update(t);
    if (t->is_translated)
        xac_itm_restart(t);
    t->is_irrevocable = true;
}

/* begin_outermost -- ret  enum xac_itm_answer. */
static uint32_t
begin_outermost(struct xac_itm *t, uint32_t properties, const struct xac_itm_jump *jump)
{
    const uint32_t query = XAC_ITM_READ_ONLY | XAC_ITM_NO_IRREVOCABLE;

    t->is_part = in_transaction();
    if (t->is_part && in_another())
        xac_itm_stop(
            "a block begins inside of a transaction of an environment that is not "
            "the one of xInit()");
    t->is_query = (properties & query) == query && !t->is_part;
    t->is_irrevocable = false;
    t->is_plain = (properties & XAC_ITM_IRREVOCABLE) != 0
                  || (properties & XAC_ITM_INSTRUMENTED) == 0;
    t->wants = XAC_ITM_NOTHING;
    t->n_attempts = 0;
    t->n_catches = 0;
    /* Relaxed: see there. */
    t->id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
    xac_itm_assert(t->undo_bytes == 0 && t->n_actions == 0 && t->n_marks == 0);
    mark(t, jump);
    t->depth = 1;
    t->answer = XAC_ITM_RUN_INSTRUMENTED | XAC_ITM_SAVE;
    enter(t);
    return t->answer;
}

uint32_t
xac_itm_begin(uint32_t properties, const struct xac_itm_jump *jump)
{
    struct xac_itm *t = thread_get();
    uint32_t answer = XAC_ITM_RUN_INSTRUMENTED | XAC_ITM_SAVE;

    if (t->depth == 0) {
        answer = begin_outermost(t, properties, jump);
    } else {
        if ((properties & XAC_ITM_NO_CANCEL) == 0)
            mark(t, jump);
        t->depth++;
        fast_set(t);
    }
    if ((properties & XAC_ITM_IRREVOCABLE) != 0
        || (properties & XAC_ITM_INSTRUMENTED) == 0) {
        xac_itm_go_irrevocable(t);
        answer = (properties & XAC_ITM_UNINSTRUMENTED) != 0 ? XAC_ITM_RUN_UNINSTRUMENTED
                                                            : XAC_ITM_RUN_INSTRUMENTED;
    }
    return answer;
}

/* ---- end -------------------------------------------------------------------------------- */

/* finish -- the outermost transaction is over. */
static void
finish(struct xac_itm *t, bool is_committed)
{
    t->depth = 0;
    t->n_marks = 0;
    t->undo_bytes = 0;
    xac_itm_outside_unlock(t, is_committed);
}

/* end_of_libxac -- end its transaction.  ret  0, or why it has not committed, or is not durable. */
static int
end_of_libxac(struct xac_itm *t)
{
    int rc;

    xac_itm_act_before(t); /* also where it cannot work: then it stops the program */
    if (!t->has_env)
        return 0;
    if (t->is_query)
        return leave_query(t);
    rc = xac_end();
    return t->is_part && (rc == XAC_PENDING || rc == XAC_FAILED) ? 0 : rc;
}

/* is_committed -- though the code is not 0: there is nothing to try again. */
static bool
is_committed(const struct xac_itm *t, int rc)
{
    return t->is_query || rc == XAC_ENOTDURABLE || rc == XAC_EUNCERTAIN
           || rc == XAC_EPOISONED;
}

/* commit -- ret  has it ended?  If not, `again` is to be called. */
static bool
commit(struct xac_itm *t)
{
    int rc;

    xac_itm_assert(t->depth > 0);
    t->depth--;
    if (t->n_marks > 1 && t->marks[t->n_marks - 1].depth == t->depth) {
        t->n_marks--;
        fast_set(t);
    }
    if (t->depth > 0)
        return true;
    rc = end_of_libxac(t);
    if (rc == 0 || is_committed(t, rc)) {
        finish(t, true);
        if (rc != 0)
            fail(t, "be made durable", rc);
        xac_itm_act_after(t);
        return true;
    }
    if (t->is_irrevocable)
        xac_itm_stop(
            "an irrevocable transaction cannot commit, and cannot be run again: %s (%s)",
            xac_strerror(rc), xac_last_error());
    if (rc == XAC_ENOTXN || rc == XAC_EINQUERY || rc == XAC_EFORKED || rc == XAC_PENDING
        || rc == XAC_FAILED)
        xac_itm_stop("the transaction has been ended, or another one begun, inside of "
                     "__transaction_atomic: %s",
                     xac_strerror(rc));
    t->n_attempts++;
    if (rc != XAC_ABORTED) {
        /* Before another thread gets the turn, and could see or change the bytes. */
        roll_back(t, &t->marks[0], false);
        xac_itm_outside_unlock(t, false); /* fail() may call the program */
        fail(t, "commit", rc);
    }
    return false;
}

XAC_ITM_API void _ITM_commitTransaction(void);
void
_ITM_commitTransaction(void)
{
    if (!commit(xac_itm_now))
        again(xac_itm_now);
}

/* _ITM_commitTransactionEH -- the same, when an exception leaves the block.  The exception belongs to
   the transaction until it has committed: see unwind.c. */
XAC_ITM_API void _ITM_commitTransactionEH(void *exception);
void
_ITM_commitTransactionEH(void *exception)
{
    (void)exception;
    _ITM_commitTransaction();
}

/* cancel_outermost -- and go on behind it. */
static _Noreturn void
cancel_outermost(struct xac_itm *t)
{
    struct xac_itm_jump jump = t->marks[0].jump;

    roll_back(t, &t->marks[0], t->is_part);
    give_up(t);
    finish(t, false);
    xac_itm_jump(&jump, XAC_ITM_CANCELLED | XAC_ITM_RESTORE);
}

XAC_ITM_API _Noreturn void _ITM_abortTransaction(uint32_t reason);
void
_ITM_abortTransaction(uint32_t reason)
{
    struct xac_itm *t = xac_itm_now;
    struct xac_itm_mark *inner = &t->marks[t->n_marks - 1];

    xac_itm_assert(t->depth > 0 && t->n_marks > 0);
    if (t->n_marks == 1 || (reason & CANCEL_OUTER) != 0) {
        if (t->is_irrevocable)
            xac_itm_stop("__transaction_cancel of an irrevocable transaction");
        cancel_outermost(t);
    }
    roll_back(t, inner, true);
    t->depth = inner->depth;
    t->n_marks--;
    fast_set(t);
    /* The mark's memory stays until another begin. */
    xac_itm_jump(&inner->jump, XAC_ITM_CANCELLED | XAC_ITM_RESTORE);
}

/* ---- what else the ABI asks ------------------------------------------------------------- */

XAC_ITM_API void _ITM_changeTransactionMode(int mode);
void
_ITM_changeTransactionMode(int mode)
{
    (void)mode; /* there is only one: irrevocable */
    xac_itm_go_irrevocable(xac_itm_now);
}

XAC_ITM_API int _ITM_inTransaction(void);
int
_ITM_inTransaction(void)
{
    const struct xac_itm *t = xac_itm_now;

    if (t == NULL || t->depth == 0)
        return 0;
    return t->is_irrevocable ? 2 : 1;
}

XAC_ITM_API uint64_t _ITM_getTransactionId(void);
uint64_t
_ITM_getTransactionId(void)
{
    const struct xac_itm *t = xac_itm_now;

    return t == NULL || t->depth == 0 ? 1 : t->id;
}

XAC_ITM_API _Noreturn void _ITM_error(const void *where, int code);
void
_ITM_error(const void *where, int code)
{
    (void)where;
    xac_itm_stop("the compiled program reports error %d", code);
}

XAC_ITM_API int _ITM_versionCompatible(int version);
int
_ITM_versionCompatible(int version)
{
    return version == 90;
}

XAC_ITM_API const char *_ITM_libraryVersion(void);
const char *
_ITM_libraryVersion(void)
{
    return "libxac_itm " PACKAGE_VERSION;
}
