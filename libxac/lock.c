/* SPDX-License-Identifier: MIT */
/*
 * lock.c -- see lock.h.
 */
#include <config.h>

#include "lock.h"

#include <errno.h>
#include <time.h>

#include "tls.h"

/* Ranks held by this thread, as a stack: acquired in rank order, released in any. */
#define HELD_MAX 8
static XAC_TLS int held[HELD_MAX];
static XAC_TLS int n_held;

/* Looks at the publish lock before its thread sleeps, and pauses of the processor after the
   first of them; each is followed by twice as many, up to so many.  About 3 us in all: some
   times as long as the lock is held, and less than sleeping and being woken cost. */
#define SPIN_LOOKS      16
#define SPIN_PAUSES     4
#define SPIN_PAUSES_MAX 64

/* How long a thread waits for a lock, or for another's sync, between two looks. */
#define GLANCE_NS 50000000

/* The mask outside the section in which this thread has blocked its signals, and how deep it
   is in such sections. */
static XAC_TLS const sigset_t *outside;
static XAC_TLS int n_blocked;

static void
held_push(int rank)
{
    xac_assert(n_held < HELD_MAX);
    held[n_held++] = rank;
}

static void
held_remove(int rank)
{
    int i = n_held - 1;

    while (i >= 0 && held[i] != rank)
        i--;
    xac_assert(i >= 0);
    for (; i < n_held - 1; i++)
        held[i] = held[i + 1];
    n_held--;
}

static bool
rank_allowed(int rank)
{
    for (int i = 0; i < n_held; i++) {
        if (held[i] >= rank)
            return false;
    }
    return true;
}

int
xac_lock_init(struct xac_lock *lk, enum xac_lock_rank rank)
{
    pthread_mutexattr_t attr;
    int rc = pthread_mutexattr_init(&attr);

    if (rc != 0)
        return rc;
    rc = pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    if (rc == 0)
        rc = pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    if (rc == 0)
        rc = pthread_mutex_init(&lk->mutex, &attr);
    lk->rank = (int)rank;
    (void)pthread_mutexattr_destroy(&attr);
    return rc;
}

static enum xac_lock_result
acquired(struct xac_lock *lk, int rc)
{
    if (rc == EBUSY)
        return XAC_LOCK_BUSY;
    xac_require(rc == 0 || rc == EOWNERDEAD);
    held_push(lk->rank);
    return rc == EOWNERDEAD ? XAC_LOCK_OWNER_DIED : XAC_LOCK_OK;
}

/* pause_briefly -- so many times as long as the processor's own pause. */
static void
pause_briefly(unsigned n)
{
    while (n-- > 0) {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#else
        __asm__ volatile(""); /* stay a loop */
#endif
    }
}

/* spin -- try for a moment; ret EBUSY, or what pthread_mutex_lock() might. */
static int
spin(pthread_mutex_t *mutex)
{
    unsigned pauses = SPIN_PAUSES;
    int rc = pthread_mutex_trylock(mutex);

    for (int i = 1; i < SPIN_LOOKS && rc == EBUSY; i++) {
        pause_briefly(pauses);
        pauses = pauses < SPIN_PAUSES_MAX ? pauses * 2 : SPIN_PAUSES_MAX;
        rc = pthread_mutex_trylock(mutex);
    }
    return rc;
}

/* lock_glancing -- wait, with a look at the signals now and then. */
static int
lock_glancing(pthread_mutex_t *mutex)
{
    int rc = pthread_mutex_trylock(mutex);

    while (rc == EBUSY || rc == ETIMEDOUT) {
        struct timespec until;

        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += GLANCE_NS;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        rc = pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &until);
        if (rc == ETIMEDOUT)
            xac_signals_glance();
    }
    return rc;
}

enum xac_lock_result
xac_lock_acquire(struct xac_lock *lk)
{
    int rc = EBUSY;

    xac_assert(rank_allowed(lk->rank));
    if (lk->rank == XAC_RANK_PUBLISH)
        rc = spin(&lk->mutex);
    if (rc == EBUSY)
        rc = n_held == 0 ? lock_glancing(&lk->mutex) : pthread_mutex_lock(&lk->mutex);
    return acquired(lk, rc);
}

enum xac_lock_result
xac_lock_try(struct xac_lock *lk)
{
    /* No rank check: a try that never waits cannot take part in a deadlock. */
    return acquired(lk, pthread_mutex_trylock(&lk->mutex));
}

void
xac_lock_repaired(struct xac_lock *lk)
{
    int rc = pthread_mutex_consistent(&lk->mutex);

    xac_require(rc == 0);
}

void
xac_lock_release(struct xac_lock *lk)
{
    int rc = pthread_mutex_unlock(&lk->mutex);

    xac_require(rc == 0);
    held_remove(lk->rank);
}

bool
xac_lock_none_held(void)
{
    return n_held == 0;
}

void
xac_lock_forget(void)
{
    n_held = 0;
}

void
xac_signals_block(sigset_t *old)
{
    sigset_t all;

    (void)sigfillset(&all);
    (void)sigdelset(&all, SIGSEGV);
    (void)sigdelset(&all, SIGBUS);
    (void)sigdelset(&all, SIGFPE);
    (void)sigdelset(&all, SIGILL);
    (void)sigdelset(&all, SIGABRT);
    (void)sigdelset(&all, SIGTRAP);
    (void)pthread_sigmask(SIG_SETMASK, &all, old);
    if (n_blocked++ == 0)
        outside = old;
}

void
xac_signals_pin(bool is_pinned)
{
    n_blocked += is_pinned ? 1 : -1;
}

void
xac_signals_glance(void)
{
    const sigset_t *were = outside;
    sigset_t inside;

    if (n_blocked != 1)
        return;
    n_blocked = 0; /* a handler may fork, and then has sections of its own */
    (void)pthread_sigmask(SIG_SETMASK, were, &inside);
    (void)pthread_sigmask(SIG_SETMASK, &inside, NULL);
    n_blocked = 1;
    outside = were;
}

void
xac_signals_restore(const sigset_t *old)
{
    n_blocked--;
    (void)pthread_sigmask(SIG_SETMASK, old, NULL);
}
