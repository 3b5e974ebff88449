/* SPDX-License-Identifier: MIT */
/*
 * lock.c -- see lock.h.
 */
#include <config.h>

#include "base/lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <time.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/tls.h"
#include "base/tsan.h"

XAC_TLS uint64_t xac_lock_held;
XAC_TLS struct xac_half_done xac_half_done;
_Static_assert(XAC_RANK_PUBLISH < 64, "a bit for each rank");

/* Looks at the publish lock before its thread sleeps, and pauses of the processor after the
   first of them; each is followed by twice as many, up to so many.  About 3 us in all: some
   times as long as the lock is held, and less than sleeping and being woken cost. */
#define SPIN_LOOKS      16
#define SPIN_PAUSES     4
#define SPIN_PAUSES_MAX 64

/* How long a thread waits for a lock, or for another's sync, between two looks. */
#define GLANCE_MS 50

/* A thread's own, together because dlopen() has little room for such: no gaps.  Without the volatile
   member clang takes the structure apart. */
static XAC_TLS struct {
    const sigset_t *outside; /* the mask outside the section that blocks its signals */
    uint64_t wait_until_ns;  /* monotonic: 0 not waited yet, WAIT_OVER given up      */
    uint32_t wait_ms;        /* how long it may wait in all, 0: no limit             */
    volatile int n_blocked;  /* how deep it is in sections that block its signals    */
} mine;
#define WAIT_OVER UINT64_MAX

static bool
rank_allowed(int rank)
{
    return xac_lock_held >> rank == 0;
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
    atomic_init(&lk->n_taken, 0);
    atomic_init(&lk->late, 0);
    (void)pthread_mutexattr_destroy(&attr);
    return rc;
}

static enum xac_lock_result
acquired(struct xac_lock *lk, int rc)
{
    if (rc == EBUSY)
        return XAC_LOCK_BUSY;
    xac_require(rc == 0 || rc == EOWNERDEAD);
    atomic_store_explicit(&lk->n_taken,
                          atomic_load_explicit(&lk->n_taken, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    xac_assert(!xac_lock_is_mine(lk));
    xac_lock_held |= UINT64_C(1) << lk->rank;
    return rc == EOWNERDEAD ? XAC_LOCK_OWNER_DIED : XAC_LOCK_OK;
}

/* pause_briefly -- so many times as long as the processor's own pause. */
static void
pause_briefly(unsigned n)
{
    while (n-- > 0)
        xac_cpu_pause();
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

void
xac_wait_limit(uint32_t ms)
{
    mine.wait_ms = ms;
    mine.wait_until_ns = 0;
}

bool
xac_wait_is_limited(void)
{
    return mine.wait_ms != 0;
}

uint32_t
xac_wait_limit_ms(void)
{
    return mine.wait_ms;
}

unsigned
xac_wait_slice(unsigned ms)
{
    uint64_t now, left_ms;

    if (mine.wait_ms == 0)
        return ms;
    now = xac_clock_ns();
    if (mine.wait_until_ns == 0)
        mine.wait_until_ns = now + mine.wait_ms * UINT64_C(1000000);
    if (now >= mine.wait_until_ns || mine.wait_until_ns == WAIT_OVER) {
        mine.wait_until_ns = WAIT_OVER;
        return 0;
    }
    left_ms = (mine.wait_until_ns - now) / 1000000 + 1;
    return left_ms < ms ? (unsigned)left_ms : ms;
}

bool
xac_wait_is_over(void)
{
    return mine.wait_ms != 0 && mine.wait_until_ns == WAIT_OVER;
}

/* wait_until -- pthread_mutex_lock() until that time of the clock.  The thread sanitizer does not know
   pthread_mutex_clocklock(), and would not know who has the lock; musl has none. */
#if XAC_TSAN_IS_BUILT_IN || !defined(HAVE_PTHREAD_MUTEX_CLOCKLOCK)
# define WAIT_CLOCK               CLOCK_REALTIME
# define wait_until(mutex, until) pthread_mutex_timedlock(mutex, until)
#else
# define WAIT_CLOCK               CLOCK_MONOTONIC
# define wait_until(mutex, until) pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, until)
#endif

/* wait_briefly -- pthread_mutex_lock() for so long; ret as that, or ETIMEDOUT. */
static int
wait_briefly(pthread_mutex_t *mutex, unsigned ms)
{
    struct timespec until;

    (void)clock_gettime(WAIT_CLOCK, &until);
    until.tv_nsec += (long)ms * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    return wait_until(mutex, &until);
}

void
xac_lock_watch(struct xac_lock *lk, struct xac_watch *w)
{
    uint32_t n_taken = atomic_load_explicit(&lk->n_taken, memory_order_relaxed);

    if (w->since_ns == 0 || w->n_taken != n_taken) {
        *w = (struct xac_watch){.n_taken = n_taken, .since_ns = xac_clock_ns()};
        return;
    }
    if (atomic_load_explicit(&lk->late, memory_order_relaxed) == n_taken)
        return;
    atomic_store_explicit(&lk->late_ns, w->since_ns, memory_order_relaxed);
    /* Release: pairs with the acquire in xac_lock_holder. */
    atomic_store_explicit(&lk->late, n_taken, memory_order_release);
}

void
xac_lock_holder(const struct xac_lock *lk, struct xac_holder *out)
{
    /* The C library's word, which the kernel knows, too: see robust futexes. */
#ifdef __GLIBC__
    int word = *(volatile const int *)&lk->mutex.__data.__lock;
#else /* musl: behind the type */
    int word = ((volatile const int *)&lk->mutex)[1];
#endif
    uint64_t now = xac_clock_ns();

    *out = (struct xac_holder){
        .tid = (uint32_t)word & FUTEX_TID_MASK,
        .n_taken = atomic_load_explicit(&lk->n_taken, memory_order_relaxed),
    };
    /* Acquire: pairs with the release in xac_lock_watch. */
    if (atomic_load_explicit(&lk->late, memory_order_acquire) == out->n_taken) {
        uint64_t since = atomic_load_explicit(&lk->late_ns, memory_order_relaxed);

        out->held_ns = now > since ? now - since : 0;
    }
}

/* lock_glancing -- wait, with a look at the signals now and then if no lock is held. */
static int
lock_glancing(struct xac_lock *lk, bool is_limited)
{
    pthread_mutex_t *mutex = &lk->mutex;
    struct xac_watch watch = {.since_ns = 0};
    int rc = pthread_mutex_trylock(mutex);

    while (rc == EBUSY || rc == ETIMEDOUT) {
        unsigned ms = is_limited ? xac_wait_slice(GLANCE_MS) : GLANCE_MS;

        if (ms == 0)
            return ETIMEDOUT;
        xac_lock_watch(lk, &watch);
        rc = wait_briefly(mutex, ms);
        if (rc == ETIMEDOUT && xac_lock_none_held())
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
        rc = xac_lock_none_held() ? lock_glancing(lk, false)
                                  : pthread_mutex_lock(&lk->mutex);
    return acquired(lk, rc);
}

enum xac_lock_result
xac_lock_acquire_limited(struct xac_lock *lk)
{
    int rc = EBUSY;

    xac_assert(rank_allowed(lk->rank));
    if (lk->rank == XAC_RANK_PUBLISH)
        rc = spin(&lk->mutex);
    if (rc == EBUSY)
        rc = lock_glancing(lk, true);
    return rc == ETIMEDOUT ? XAC_LOCK_TIMED_OUT : acquired(lk, rc);
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
    xac_assert(xac_lock_is_mine(lk));
    xac_lock_held &= ~(UINT64_C(1) << lk->rank);
}

void
xac_lock_forget(void)
{
    xac_lock_held = 0;
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
    if (mine.n_blocked++ == 0)
        mine.outside = old;
}

bool
xac_signals_are_blocked(void)
{
    return mine.n_blocked > 0;
}

void
xac_signals_pin(bool is_pinned)
{
    mine.n_blocked += is_pinned ? 1 : -1;
}

void
xac_signals_glance(void)
{
    const sigset_t *were = mine.outside;
    sigset_t inside;

    if (mine.n_blocked != 1)
        return;
    mine.n_blocked = 0; /* a handler may fork, and then has sections of its own */
    (void)pthread_sigmask(SIG_SETMASK, were, &inside);
    (void)pthread_sigmask(SIG_SETMASK, &inside, NULL);
    mine.n_blocked = 1;
    mine.outside = were;
}

bool
xac_signals_are_pending(void)
{
    sigset_t pending;

    if (mine.n_blocked != 1 || sigpending(&pending) != 0)
        return false;
    for (int signo = 1; signo < NSIG; signo++) {
        if (sigismember(&pending, signo) == 1 && sigismember(mine.outside, signo) == 0)
            return true;
    }
    return false;
}

void
xac_signals_restore(const sigset_t *old)
{
    mine.n_blocked--;
    (void)pthread_sigmask(SIG_SETMASK, old, NULL);
}
