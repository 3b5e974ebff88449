/* SPDX-License-Identifier: MIT */
/*
 * processors_costs.c -- what things cost on this machine, for the simulation of larger ones; see
 * processors.h.
 */
#include <config.h>

#include "bench/simulate/processors.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xac_frames.h>

#include "bench/frames/frames_load.h"
#include "bench/kit/micro.h"
#include "bench/kit/util.h"

#define TURNS    2000u /* of a batch                                                   */
#define BATCHES  200u  /* the fastest one counts: in others something else ran, too     */
#define N_PAGES  32768u
#define EXPONENT 0.14 /* as in the rows of `frames`                                     */
#define SCANS    20
#define ROUNDS   5u

/* ---- A line of memory ------------------------------------------------------------------------- */

/* Two threads that wait for each other. */
static struct {
    _Alignas(128) _Atomic unsigned turn;
    double least_ns; /* of a batch; thread 0                                            */
} pair;

/* take_turns -- thread `number` of two, a batch that begins with a turn. */
static void
take_turns(unsigned number, unsigned first)
{
    for (unsigned i = 0; i < TURNS; i++) {
        /* Acquire: pairs with the release below. */
        while (atomic_load_explicit(&pair.turn, memory_order_acquire)
               != first + 2 * i + number)
            ;
        /* Release: pairs with the acquire above. */
        atomic_store_explicit(&pair.turn, first + 2 * i + number + 1,
                              memory_order_release);
    }
}

/* run_pair -- the thread that arg points to. */
static void *
run_pair(void *arg)
{
    unsigned number = *(const unsigned *)arg;

    bench_pin(number, 2);
    for (unsigned batch = 0; batch < BATCHES; batch++) {
        uint64_t began = bench_now_ns();
        double ns;

        take_turns(number, batch * 2 * TURNS);
        ns = (double)(bench_now_ns() - began);
        if (number == 0 && (batch == 0 || ns < pair.least_ns))
            pair.least_ns = ns;
    }
    return NULL;
}

int
bench_sim_line_ns(double *out)
{
    static unsigned numbers[2] = {0, 1};
    pthread_t threads[2];

    if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
        return bench_fail("processors: this machine has one processor: say --line-ns");
    atomic_store_explicit(&pair.turn, 0, memory_order_relaxed);
    /* None of them is this thread: they keep to their processors. */
    for (unsigned i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, run_pair, &numbers[i]) != 0)
            return bench_fail("processors: no thread");
    for (unsigned i = 0; i < 2; i++)
        (void)pthread_join(threads[i], NULL);
    /* Each turn is a transfer to the reader; the store has the line then. */
    *out = pair.least_ns / (2.0 * TURNS);
    return 0;
}

/* ---- Page frames ---------------------------------------------------------------------------------- */

/* load_of -- all pages in frames, as the rows of `frames` have it. */
static struct load
load_of(enum bench_sim_frames kind, unsigned n_threads, double seconds)
{
    struct load l = {.config = {.n_pages = N_PAGES,
                                .n_frames = N_PAGES,
                                .policy = kind == BENCH_SIM_NB ? XAC_FRAMES_NB_GCLOCK
                                                               : XAC_FRAMES_LRU,
                                .lock = XAC_FRAMES_SPIN},
                     .exponent = EXPONENT,
                     .scan_percent = SCANS,
                     .n_threads = n_threads,
                     .seconds = seconds};

    if (kind == BENCH_SIM_BATCH || kind == BENCH_SIM_BATCH_64) {
        l.config.batch_queue = 64;
        l.config.batch_threshold = 32;
    }
    return l;
}

/* fastest -- fixes a microsecond in the best round: in others something else ran, too. */
static double
fastest(const struct load_got *g)
{
    double most = 0;

    for (unsigned i = 0; i < g->n_rounds; i++)
        most = g->rounds[i].mfix_s > most ? g->rounds[i].mfix_s : most;
    return most;
}

int
bench_sim_frames_costs(struct bench_sim_costs *costs, double seconds,
                       struct bench_sim_measured *two)
{
    static const enum bench_sim_frames kinds[] = {BENCH_SIM_NB, BENCH_SIM_LRU,
                                                  BENCH_SIM_BATCH};
    double *const alone[] = {&costs->nb, &costs->lru, &costs->batch};
    struct load l[6];
    struct load_got g[6];

    for (unsigned i = 0; i < 6; i++)
        l[i] = load_of(kinds[i % 3], i / 3 + 1, seconds);
    if (bench_load_run(l, 6, ROUNDS, g) != 0)
        return 1;
    for (unsigned i = 0; i < 3; i++) {
        if (*alone[i] <= 0)
            *alone[i] = 1e3 / fastest(&g[i]);
        two->per_us[kinds[i]] = fastest(&g[i + 3]);
    }
    /* Noise must not make a lock cost less than nothing. */
    costs->lru = costs->lru > costs->nb ? costs->lru : costs->nb;
    costs->batch = costs->batch > costs->nb ? costs->batch : costs->nb;
    return 0;
}

/* ---- Transactions ----------------------------------------------------------------------------------- */

int
bench_sim_transactions(const struct bench_hot_policy *policy,
                       const struct bench_hot_length *length, unsigned n_procs,
                       uint64_t n_pages, const char *dir, double seconds, double *out)
{
    struct bench_hot_crew crew = {.policy = policy,
                                  .cell = {length, n_procs, n_pages},
                                  .seed = 1};
    struct bench_hot_counts c = {0};
    int rc;

    snprintf(crew.dir, sizeof crew.dir, "%s/crew", dir);
    if (mkdir(crew.dir, 0755) != 0)
        return bench_fail("%s: cannot be made", crew.dir);
    rc = bench_hot_start(&crew);
    if (rc == 0)
        rc = bench_hot_run(&crew, (uint64_t)(seconds * 1e9), &c);
    if (rc == 0)
        rc = bench_hot_close(&crew);
    if (rc == 0)
        rc = bench_hot_check(&crew, c.commits);
    bench_hot_stop(&crew);
    if (bench_remove_tree(crew.dir) != 0 && rc == 0)
        rc = bench_fail("%s: cannot be removed", crew.dir);
    if (rc == 0 && c.commits == 0)
        rc = bench_fail("processors: %s: nothing was committed", policy->name);
    *out = rc == 0 ? (double)c.commits * 1e9 / (double)c.ns : 0;
    return rc;
}
