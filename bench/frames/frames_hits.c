/* SPDX-License-Identifier: MIT */
/*
 * frames_hits.c -- rows of Nb-GCLOCK about hit ratios: against a simulation of its workload, between
 * policies, and what the cap of the weights costs and saves.
 */
#include <config.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/frames/frames_table.h"
#include "bench/frames/frames_trace.h"
#include "bench/kit/util.h"

#define UNCAPPED 1000000

/* The policies of a simulation, in the order of its table. */
enum {
    LRU,
    CLOCK,
    GCLOCK,
    NB,
    NB3,
    NB5,
    N_SIMULATED
};

/*
 * Hits as simulated without any pool: 8,000,000 references, the second half counted.  80/20 is
 * exponent 0.14.
 */
static const struct simulated {
    uint64_t n_pages;
    double exponent;
    double scan_percent; /* of references */
    uint32_t n_frames;
    double hits[N_SIMULATED];
} simulated[] = {
    {40000, 0.14, 20, 4096, {.5040, .4963, .5106, .5258, .5200, .5238}},
    {40000, 0.14, 20, 16384, {.7322, .7267, .7398, .7504, .7440, .7481}},
    {40000, 0.14, 20, 1024, {.3768, .3701, .3826, .3965, .3915, .3947}},
    {40000, 0.14, 20, 2048, {.4332, .4260, .4394, .4541, .4487, .4522}},
    {40000, 0.14, 20, 8192, {.5989, .5920, .6064, .6203, .6140, .6182}},
    {40000, 0.5, 20, 1024, {.0507, .0495, .0513, .0547, .0538, .0544}},
    {40000, 0.5, 20, 4096, {.1627, .1588, .1651, .1750, .1718, .1740}},
    {40000, 0.5, 20, 16384, {.5026, .4963, .5112, .5271, .5178, .5237}},
    {50000, 0.14, 33.3, 2500, {.3548, .3486, .3599, .3726, .3680, .3710}},
    {50000, 0.14, 33.3, 20000, {.6610, .6565, .6677, .6779, .6721, .6759}},
    {40000, 0.14, 0, 4096, {.6357, .6269, .6436, .6604, .6537, .6581}},
    {40000, 0.14, 0, 16384, {.8360, .8302, .8436, .8536, .8476, .8515}},
    {80000, 0.14, 20, 8192, {.5044, .4968, .5110, .5260, .5201, .5240}},
    {80000, 0.14, 20, 32768, {.7328, .7276, .7401, .7504, .7442, .7484}},
};

/* trace_make -- references as simulated. */
static int
trace_make(struct table *t, uint64_t n_pages, double exponent, double scan_percent,
           struct trace *trace)
{
    struct load load = {.config = {.n_pages = n_pages},
                        .exponent = exponent,
                        .scan_percent = scan_percent};
    size_t n = t->quick ? 1000000 : 8000000;
    uint32_t *refs = malloc(n * sizeof *refs);

    *trace = (struct trace){.pages = malloc(n * sizeof(uint64_t)),
                            .n = n,
                            .page_max = n_pages - 1};
    if (refs == NULL || trace->pages == NULL) {
        free(refs);
        return bench_fail("frames: no memory for references");
    }
    (void)bench_load_draw(&load, 1, refs, n);
    for (size_t i = 0; i < n; i++)
        trace->pages[i] = refs[i];
    free(refs);
    return 0;
}

/* ratio -- hits of the second half; below 0 after a message. */
static double
ratio(const struct trace *trace, uint32_t policy, uint32_t cap, uint32_t n_frames)
{
    struct xac_frames_config c = {.n_frames = n_frames,
                                  .policy = policy,
                                  .weight_max = cap};
    uint64_t hits;

    if (bench_trace_play(trace, &c, 1, trace->n / 2, &hits) != 0)
        return -1;
    return (double)hits / (double)(trace->n - trace->n / 2);
}

/* simulated_row -- out ratios of all simulated policies; ret 0, or 1 after a message. */
static int
simulated_row(struct table *t, const struct simulated *s, double *got)
{
    static const uint32_t policies[N_SIMULATED] = {XAC_FRAMES_LRU, XAC_FRAMES_CLOCK,
                                                   XAC_FRAMES_GCLOCK};
    static const uint32_t caps[N_SIMULATED] = {0, 0, 0, UNCAPPED, 3, 5};
    struct trace trace;
    int rc = trace_make(t, s->n_pages, s->exponent, s->scan_percent, &trace);

    for (int i = 0; i < N_SIMULATED && rc == 0; i++) {
        got[i] = ratio(&trace, policies[i], caps[i], s->n_frames);
        rc = got[i] < 0;
    }
    free(trace.pages);
    return rc;
}

/* threads_off -- how far the hits of threads are from those of one, at most. */
static int
threads_off(struct table *t, double *pointsp)
{
    static const unsigned threads[] = {1, 2, 8, 32, 64};
    struct load l[5];
    struct load_got g[5];

    for (int i = 0; i < 5; i++)
        l[i] = (struct load){.config = {.n_pages = 40000, .n_frames = 4096},
                             .exponent = 0.14,
                             .scan_percent = 20,
                             .n_threads = threads[i],
                             .seconds = t->seconds};
    if (bench_load_run(l, 5, t->rounds, g) != 0)
        return 1;
    *pointsp = 0;
    for (int i = 1; i < 5; i++) {
        double off = fabs(g[i].hit_percent - g[0].hit_percent);

        *pointsp = off > *pointsp ? off : *pointsp;
    }
    return 0;
}

int
bench_row_hits(struct table *t)
{
    size_t n = t->quick ? 2 : sizeof simulated / sizeof simulated[0];
    double off = 0, off_threads, allowed = t->quick ? 0.01 : 0.005;
    bool best = true;

    for (size_t k = 0; k < n; k++) {
        double got[N_SIMULATED];

        if (simulated_row(t, &simulated[k], got) != 0)
            return 1;
        for (int i = 0; i < N_SIMULATED; i++) {
            double by = fabs(got[i] - simulated[k].hits[i]);

            off = by > off ? by : off;
        }
        best = best && got[NB3] >= got[LRU];
    }
    if (threads_off(t, &off_threads) != 0)
        return 1;
    bench_row(
        t, "nb-8",
        "hit ratios: as simulated, six policies on the paper's workload; threads",
        "within 0.005; T2 to T64 within 2 points of T1; capped nb >= lru",
        ROW_IF(off <= allowed && off_threads <= 2 && best),
        "at most %.4f off in %zu settings; threads at most %.2f points; capped nb >= "
        "lru: %s",
        off, n, off_threads, best ? "yes" : "no");
    return 0;
}

int
bench_row_order(struct table *t)
{
    static const uint32_t frames[] = {4096, 8192, 16384};
    double lead[3];
    bool passes = true;
    struct trace trace;
    int rc = trace_make(t, 40000, 0.14, 20, &trace);

    for (int i = 0; i < 3 && rc == 0; i++) {
        double q2 = ratio(&trace, XAC_FRAMES_2Q, 0, frames[i]);
        double nb = ratio(&trace, XAC_FRAMES_NB_GCLOCK, UNCAPPED, frames[i]);
        double lru = ratio(&trace, XAC_FRAMES_LRU, 0, frames[i]);
        double clock = ratio(&trace, XAC_FRAMES_CLOCK, 0, frames[i]);

        rc = q2 < 0 || nb < 0 || lru < 0 || clock < 0;
        lead[i] = q2 - nb;
        passes = passes && clock <= lru && lru <= nb
                 && (i == 2 ? lead[i] <= 0.01 : lead[i] > 0);
    }
    free(trace.pages);
    if (rc == 0)
        bench_row(
            t, "nb-9", "2Q is best in small pools and loses its lead in large ones",
            "lead over nb > 0 at pool/pages 0.1 and 0.2, <= 0.01 at 0.41; clock <= lru "
            "<= nb",
            ROW_IF(passes), "lead %.4f, %.4f, %.4f", lead[0], lead[1], lead[2]);
    return rc;
}

/* ---- bp-6b ------------------------------------------------------------------------------- */

#define QUEUE_USERS 16
#define QUEUE_REFS  2000000u

int
bench_queue_hits(const struct load *load, const uint32_t (*sizes)[2], unsigned n,
                 double *offp)
{
    struct trace trace = {.n = QUEUE_REFS, .page_max = load->config.n_pages - 1};
    uint32_t *refs = malloc(QUEUE_REFS * sizeof *refs);
    struct xac_frames_config c = {.policy = load->config.policy,
                                  .n_frames = (uint32_t)(load->config.n_pages / 16)};
    uint64_t plain, hits;
    int rc;

    trace.pages = malloc(QUEUE_REFS * sizeof *trace.pages);
    rc = refs == NULL || trace.pages == NULL
             ? bench_fail("frames: no memory for references")
             : bench_load_draw(load, 1, refs, QUEUE_REFS);
    for (size_t i = 0; i < QUEUE_REFS && rc == 0; i++)
        trace.pages[i] = refs[i];
    free(refs);
    rc = rc == 0 ? bench_trace_play(&trace, &c, QUEUE_USERS, 0, &plain) : rc;
    *offp = 0;
    for (unsigned i = 0; i < n && rc == 0; i++) {
        c.batch_queue = sizes[i][0];
        c.batch_threshold = sizes[i][1];
        rc = bench_trace_play(&trace, &c, QUEUE_USERS, 0, &hits);
        if (rc == 0)
            *offp = fmax(*offp, 100 * fabs((double)hits - (double)plain) / QUEUE_REFS);
    }
    free(trace.pages);
    return rc;
}

/* ---- nb-12 ------------------------------------------------------------------------------- */

/* steps -- of the hand per victim: on average, at most. */
static int
steps(const struct trace *trace, uint32_t cap, uint32_t n_frames, double *meanp,
      uint64_t *mostp)
{
    struct xac_frames_config c = {.n_pages = trace->page_max + 1,
                                  .n_frames = n_frames,
                                  .n_users = 1,
                                  .weight_max = cap};
    struct xac_frames_stats before = {0}, after;
    struct xac_frames_user *user;
    struct xac_frames *pool;
    int rc = xac_frames_create(&c, NULL, NULL, &pool);

    if (rc != 0)
        return bench_fail("frames: no pool: %s", strerror(rc));
    rc = xac_frames_join(pool, &user);
    *mostp = 0;
    for (size_t i = 0; i < 1000000 && i < trace->n && rc == 0; i++) {
        struct xac_frames_pin pin;

        rc = xac_frames_fix(user, trace->pages[i], 0, &pin);
        if (rc != 0)
            break;
        xac_frames_unfix(user, &pin);
        xac_frames_get_stats(pool, &after, sizeof after);
        if (after.sweep_steps - before.sweep_steps > *mostp)
            *mostp = after.sweep_steps - before.sweep_steps;
        before = after;
    }
    *meanp = (double)before.sweep_steps / (double)before.evictions;
    if (rc == 0)
        xac_frames_leave(user);
    xac_frames_close(pool);
    return rc == 0 ? 0 : bench_fail("frames: %s", strerror(rc));
}

int
bench_row_cap(struct table *t)
{
    static const uint32_t caps[] = {UNCAPPED, 3, 5};
    const uint32_t n_frames = 4096;
    double mean[3], hits[3];
    uint64_t most[3];
    struct trace trace;
    int rc = trace_make(t, 40000, 0.14, 20, &trace);

    for (int i = 0; i < 3 && rc == 0; i++) {
        hits[i] = ratio(&trace, XAC_FRAMES_NB_GCLOCK, caps[i], n_frames);
        rc = hits[i] < 0 ? 1 : steps(&trace, caps[i], n_frames, &mean[i], &most[i]);
    }
    free(trace.pages);
    if (rc == 0)
        bench_row(t, "nb-12",
                  "weights without a cap, capped at 3, at 5: steps per victim, hits",
                  "at most (cap + 1) x frames steps; cap 3 costs <= 0.01",
                  ROW_IF(most[1] <= 4 * n_frames && most[2] <= 6 * n_frames
                         && hits[0] - hits[1] <= 0.01),
                  "mean %.1f, %.1f, %.1f; most %llu, %llu, %llu of %u frames; hits %.4f, "
                  "%.4f, %.4f",
                  mean[0], mean[1], mean[2], (unsigned long long)most[0],
                  (unsigned long long)most[1], (unsigned long long)most[2], n_frames,
                  hits[0], hits[1], hits[2]);
    return rc;
}
