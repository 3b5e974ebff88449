/* SPDX-License-Identifier: MIT */
/*
 * frames_history.c -- a trace played by several users at once, and what they did by one.
 *
 * What users that overlap hit is not to be compared with the trace played by one: they come to
 * the references in another order, and to pages that others have fixed.  So the order of all fixes and
 * unfixes is noted, and done again by one user.  What differs then is due to searches that overlap.
 *
 * Threads overlap as the machine has processors, and where one loses its processor.  Woven users
 * overlap all the time, as those of a machine with a processor for each: they are one thread that goes from
 * user to user by chance, also in the middle of a search.  A seed makes them do the same again.
 */
#include <config.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "bench/frames/frames_trace.h"
#include "bench/kit/util.h"

#define STACK_BYTES 262144

int
bench_history_init(struct history *h, const struct trace *t)
{
    *h = (struct history){.events = malloc(2 * t->n * sizeof *h->events)};
    return h->events != NULL ? 0 : bench_fail("frames: no memory for a history");
}

/* note -- the page of reference i was fixed, or is about to be unfixed. */
static void
note(struct history *h, size_t i, bool is_fixed)
{
    h->events[atomic_fetch_add_explicit(&h->n, 1, memory_order_relaxed)] =
        2 * i + (is_fixed ? 1 : 0);
}

int
bench_history_replay(const struct trace *t, const struct xac_frames_config *config,
                     struct history *h, uint64_t *hitsp)
{
    size_t n = atomic_load_explicit(&h->n, memory_order_relaxed);
    struct xac_frames_pin *pins = malloc(t->n * sizeof *pins);
    struct xac_frames_stats stats;
    struct xac_frames_user *user;
    struct xac_frames *pool;
    int rc;

    if (pins == NULL)
        return bench_fail("frames: no memory for a history");
    if (bench_trace_pool(t, config, 1, NULL, &pool) != 0) {
        free(pins);
        return 1;
    }
    rc = xac_frames_join(pool, &user);
    for (size_t k = 0; k < n && rc == 0; k++) {
        size_t i = h->events[k] / 2;

        if (h->events[k] % 2 != 0)
            rc = xac_frames_fix(user, t->pages[i], 0, &pins[i]);
        else
            xac_frames_unfix(user, &pins[i]);
    }
    xac_frames_get_stats(pool, &stats, sizeof stats);
    if (rc == 0)
        xac_frames_leave(user);
    xac_frames_close(pool);
    free(pins);
    *hitsp = stats.hits;
    return rc == 0 ? 0 : bench_fail("frames: %s", strerror(rc));
}

/* ---- Threads ------------------------------------------------------------------------- */

struct draw {
    const struct trace *trace;
    struct history *history;
    struct xac_frames *pool;
    _Atomic size_t next;
    _Atomic int rc;
};

static void *
draw_run(void *arg)
{
    struct draw *d = arg;
    struct xac_frames_user *user;
    int rc = xac_frames_join(d->pool, &user);
    size_t i;

    if (rc != 0) {
        atomic_store_explicit(&d->rc, rc, memory_order_relaxed);
        return NULL;
    }
    while ((i = atomic_fetch_add_explicit(&d->next, 1, memory_order_relaxed))
           < d->trace->n) {
        struct xac_frames_pin pin;

        rc = xac_frames_fix(user, d->trace->pages[i], 0, &pin);
        if (rc != 0)
            break;
        note(d->history, i, true);
        note(d->history, i, false);
        xac_frames_unfix(user, &pin);
    }
    if (rc != 0)
        atomic_store_explicit(&d->rc, rc, memory_order_relaxed);
    xac_frames_leave(user);
    return NULL;
}

int
bench_trace_play_threads(const struct trace *t, const struct xac_frames_config *config,
                         unsigned n_threads, struct history *h, uint64_t *hitsp)
{
    struct draw d = {.trace = t, .history = h};
    struct xac_frames_stats stats;
    pthread_t threads[TRACE_USERS_MAX];
    unsigned n = 0;
    int rc;

    atomic_store_explicit(&h->n, 0, memory_order_relaxed);
    rc = bench_trace_pool(t, config, n_threads, NULL, &d.pool);
    if (rc != 0)
        return rc;
    while (n < n_threads && rc == 0) {
        rc = pthread_create(&threads[n], NULL, draw_run, &d);
        n += rc == 0;
    }
    for (unsigned i = 0; i < n; i++)
        (void)pthread_join(threads[i], NULL);
    xac_frames_get_stats(d.pool, &stats, sizeof stats);
    xac_frames_close(d.pool);
    rc = rc != 0 ? rc : atomic_load_explicit(&d.rc, memory_order_relaxed);
    *hitsp = stats.hits;
    return rc == 0 ? 0 : bench_fail("frames: %s", strerror(rc));
}

/* ---- Woven users --------------------------------------------------------------------- */

static struct weave {
    const struct trace *trace;
    struct history *history;
    struct xac_frames_user *users[TRACE_USERS_MAX];
    ucontext_t contexts[TRACE_USERS_MAX], outside;
    bool done[TRACE_USERS_MAX];
    unsigned n_users, n_left, at;
    uint64_t seed;
    size_t next;
    int rc;
} weave;

/* weave_on -- to a user by chance, maybe the same. */
static void
weave_on(void)
{
    unsigned from = weave.at;

    do {
        weave.at = (unsigned)bench_trace_random(&weave.seed) % weave.n_users;
    } while (weave.done[weave.at]);
    if (weave.at != from)
        (void)swapcontext(&weave.contexts[from], &weave.contexts[weave.at]);
}

static void
weave_step(void *arg, enum xac_frames_step step)
{
    (void)arg;
    (void)step;
    weave_on();
}

/* weave_user -- one user's references; does not return. */
static void
weave_user(void)
{
    unsigned self = weave.at;

    while (weave.next < weave.trace->n && weave.rc == 0) {
        size_t i = weave.next++;
        struct xac_frames_pin pin;
        int rc;

        weave_on();
        rc = xac_frames_fix(weave.users[self], weave.trace->pages[i], 0, &pin);
        if (rc != 0) {
            weave.rc = rc;
            break;
        }
        note(weave.history, i, true);
        weave_on();
        note(weave.history, i, false);
        xac_frames_unfix(weave.users[self], &pin);
        weave_on();
    }
    weave.done[self] = true;
    if (--weave.n_left > 0)
        weave_on();
    (void)setcontext(&weave.outside);
}

/* weave_run -- all of them to their end, each on a stack of its own. */
static int
weave_run(struct xac_frames *pool, unsigned n_users)
{
    char *stacks = malloc((size_t)n_users * STACK_BYTES);
    int rc = stacks != NULL ? 0 : bench_fail("frames: no memory for stacks");

    for (unsigned i = 0; i < n_users && rc == 0; i++) {
        rc = xac_frames_join(pool, &weave.users[i]);
        (void)getcontext(&weave.contexts[i]);
        weave.contexts[i].uc_stack.ss_sp = stacks + (size_t)i * STACK_BYTES;
        weave.contexts[i].uc_stack.ss_size = STACK_BYTES;
        makecontext(&weave.contexts[i], weave_user, 0);
    }
    if (rc == 0) {
        (void)swapcontext(&weave.outside, &weave.contexts[0]);
        rc = weave.rc;
    }
    for (unsigned i = 0; i < n_users && weave.users[i] != NULL; i++)
        xac_frames_leave(weave.users[i]);
    free(stacks);
    return rc;
}

int
bench_trace_play_woven(const struct trace *t, const struct xac_frames_config *config,
                       unsigned n_users, uint64_t seed, struct history *h,
                       uint64_t *hitsp)
{
    struct xac_frames_io io = {.probe = weave_step};
    struct xac_frames_stats stats;
    struct xac_frames *pool;
    int rc;

    atomic_store_explicit(&h->n, 0, memory_order_relaxed);
    rc = bench_trace_pool(t, config, n_users, &io, &pool);
    if (rc != 0)
        return rc;
    weave = (struct weave){
        .trace = t, .history = h, .n_users = n_users, .n_left = n_users, .seed = seed};
    rc = weave_run(pool, n_users);
    xac_frames_get_stats(pool, &stats, sizeof stats);
    xac_frames_close(pool);
    *hitsp = stats.hits;
    return rc == 0 ? 0 : bench_fail("frames: %s", strerror(rc));
}
