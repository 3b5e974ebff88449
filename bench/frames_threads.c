/* SPDX-License-Identifier: MIT */
/*
 * frames_threads.c -- the experiment `frames` with --threads: how often the lock of a policy is
 * taken and waited for, with and without BP-Wrapper.
 *
 * All pages are in frames, so that every fix is a hit.  Pages are skewed: number n * u^(1/0.14)
 * for u uniform, a fifth of the pages have 80 % of the references.  Rounds are interleaved and
 * the medians printed.
 */
#include <config.h>

#include "frames.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "util.h"

#define N_PAGES     32768u
#define N_REFS      65536u /* of each thread, again and again */
#define ROUNDS      3
#define LOOK_EVERY  256 /* fixes between two looks at the stop flag */
#define THREADS_MAX 256
#define SKEW        (1 / 0.14)

struct worker {
    struct xac_frames *pool;
    pthread_t thread;
    uint32_t *refs;
    const _Atomic bool *stop;
    uint64_t n_fixes;
    int rc;
};

static void *
worker_run(void *arg)
{
    struct worker *w = arg;
    struct xac_frames_user *user;
    struct xac_frames_pin pin;

    w->rc = xac_frames_join(w->pool, &user);
    if (w->rc != 0)
        return NULL;
    while (w->rc == 0 && !atomic_load_explicit(w->stop, memory_order_relaxed))
        for (int i = 0; i < LOOK_EVERY && w->rc == 0; i++) {
            w->rc = xac_frames_fix(user, w->refs[w->n_fixes % N_REFS], 0, &pin);
            if (w->rc == 0)
                xac_frames_unfix(user, &pin);
            w->n_fixes++;
        }
    xac_frames_leave(user);
    return NULL;
}

static void
refs_make(uint32_t *refs, uint64_t seed)
{
    for (uint64_t i = 0; i < N_REFS; i++) {
        double u = (double)(bench_key(seed, i) >> 11) / (double)(UINT64_C(1) << 53);

        refs[i] = (uint32_t)(N_PAGES * pow(u, SKEW)) % N_PAGES;
    }
}

/* run -- one round; out fixes, and of the lock per million fixes; ret 0 or errno. */
static int
run(struct xac_frames *pool, unsigned n_threads, uint32_t *refs, double *out)
{
    struct timespec second = {.tv_nsec = 500000000};
    struct worker workers[THREADS_MAX];
    struct xac_frames_stats before, after;
    _Atomic bool stop = false;
    unsigned n_started = 0;
    uint64_t n = 0, begin = bench_now_ns();
    int rc = 0;

    xac_frames_get_stats(pool, &before);
    for (; n_started < n_threads && rc == 0; n_started++) {
        struct worker *w = &workers[n_started];

        *w = (struct worker){.pool = pool,
                             .refs = refs + (size_t)n_started * N_REFS,
                             .stop = &stop};
        rc = pthread_create(&w->thread, NULL, worker_run, w);
        if (rc != 0)
            break;
    }
    (void)nanosleep(&second, NULL);
    atomic_store_explicit(&stop, true, memory_order_relaxed);
    for (unsigned i = 0; i < n_started; i++) {
        (void)pthread_join(workers[i].thread, NULL);
        n += workers[i].n_fixes;
        rc = rc != 0 ? rc : workers[i].rc;
    }
    xac_frames_get_stats(pool, &after);
    out[0] = (double)n * 1000 / (double)(bench_now_ns() - begin);
    out[1] = (double)(after.locks - before.locks) * 1e6 / (double)n;
    out[2] = (double)(after.lock_waits - before.lock_waits) * 1e6 / (double)n;
    return rc;
}

/* pool_make -- with all pages in it. */
static int
pool_make(uint32_t policy, bool batch, unsigned n_threads, struct xac_frames **poolp)
{
    struct xac_frames_config config = {.n_pages = N_PAGES,
                                       .n_frames = N_PAGES,
                                       .n_users = n_threads,
                                       .policy = policy,
                                       .batch_queue = batch ? BENCH_BATCH_QUEUE : 0,
                                       .batch_threshold = batch ? BENCH_BATCH_TRY : 0};
    struct xac_frames_user *user;
    struct xac_frames_pin pin;
    int rc = xac_frames_create(&config, NULL, NULL, poolp);

    if (rc != 0)
        return rc;
    rc = xac_frames_join(*poolp, &user);
    for (uint64_t page = 0; page < N_PAGES && rc == 0; page++) {
        rc = xac_frames_fix(user, page, 0, &pin);
        if (rc == 0)
            xac_frames_unfix(user, &pin);
    }
    if (rc == 0)
        xac_frames_leave(user);
    else
        xac_frames_close(*poolp);
    return rc;
}

/* print_row -- medians of one policy. */
static void
print_row(const char *name, bool batched, unsigned n_threads, double got[3][ROUNDS],
          bool json)
{
    double rate = bench_median(got[0], ROUNDS), locks = bench_median(got[1], ROUNDS);
    double waits = bench_median(got[2], ROUNDS);

    if (json) {
        bench_json_begin(stdout);
        bench_json_str(stdout, "experiment", "frames");
        bench_json_str(stdout, "policy", name);
        bench_json_bool(stdout, "batched", batched);
        bench_json_u64(stdout, "threads", n_threads);
        bench_json_num(stdout, "mega_fixes_per_second", rate);
        bench_json_num(stdout, "locks_per_mega_fixes", locks);
        bench_json_num(stdout, "lock_waits_per_mega_fixes", waits);
        bench_json_end(stdout);
    } else
        printf("%-10s %-8s %7u %10.2f %12.0f %12.1f\n", name,
               batched ? "batched" : "plain", n_threads, rate, locks, waits);
    (void)fflush(stdout);
}

int
bench_frames_threads(uint32_t policy, const char *name, unsigned n_threads, bool json)
{
    double got[2][3][ROUNDS], out[3];
    uint32_t *refs;
    int rc = 0;

    if (n_threads == 0 || n_threads > THREADS_MAX)
        return bench_fail("frames: 1 to %d threads", THREADS_MAX);
    refs = malloc(sizeof *refs * N_REFS * n_threads);
    if (refs == NULL)
        return bench_fail("frames: no memory for references");
    for (unsigned i = 0; i < n_threads; i++)
        refs_make(refs + (size_t)i * N_REFS, i + 1);
    for (int round = 0; round < ROUNDS && rc == 0; round++)
        for (int batch = 0; batch < 2 && rc == 0; batch++) {
            struct xac_frames *pool;

            rc = pool_make(policy, batch != 0, n_threads, &pool);
            if (rc != 0)
                break;
            rc = run(pool, n_threads, refs, out);
            xac_frames_close(pool);
            for (int what = 0; what < 3; what++)
                got[batch][what][round] = out[what];
        }
    free(refs);
    if (rc != 0)
        return bench_fail("frames: %s", strerror(rc));
    for (int batch = 0; batch < 2; batch++)
        print_row(name, batch != 0, n_threads, got[batch], json);
    return 0;
}
