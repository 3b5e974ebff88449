/* SPDX-License-Identifier: MIT */
/*
 * check_hit_ratio.c -- what BP-Wrapper's batches and lists change in the hits of a trace: rows H1 to H6, and F20.
 *
 *   XAC_REFS=n  references of each play of the trace (300,000)
 */
#include <config.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim_pool.h"

#define TRACE_PAGES 20000
static uint32_t *refs;
static uint64_t n_refs;

/* refs_make -- skewed as 80/20, of them `scans` percent in runs of 100 neighbours. */
static void
refs_make(unsigned scans)
{
    uint64_t seed = env_seed(), left = 0, at = 0;

    n_refs = env_number("XAC_REFS", 300000);
    refs = realloc(refs, n_refs * sizeof *refs);
    must(refs != NULL);
    for (uint64_t i = 0; i < n_refs; i++) {
        double u = (double)(mix(&seed) >> 11) / (double)(UINT64_C(1) << 53);

        if (left == 0 && mix(&seed) % 10000 < (uint64_t)scans * 100 / (100 - scans)) {
            left = 100;
            at = mix(&seed) % TRACE_PAGES;
        }
        refs[i] = left > 0 ? (uint32_t)(at++ % TRACE_PAGES)
                           : (uint32_t)(TRACE_PAGES * pow(u, 1 / 0.14)) % TRACE_PAGES;
        left -= left > 0;
    }
}

/* play -- by k users in turn; `fail` percent of the hits find the lock taken.  ret hits, percent. */
static double
play(struct xac_frames_config c, uint32_t n_frames, unsigned k, unsigned fail,
     uint64_t *digestp)
{
    struct xac_frames_user *users[16];
    uint64_t seed = env_seed(), digest = 0;
    struct xac_frames_stats s;

    c.n_users = k + 1;
    pool_make(TRACE_PAGES, n_frames, c);
    for (unsigned i = 0; i < k; i++)
        must_ok(xac_frames_join(pool, &users[i]));
    for (uint64_t i = 0; i < n_refs; i++) {
        struct xac_frames_user *who = users[i % k];
        bool taken = fail > 0 && is_mapped(refs[i]) && mix(&seed) % 100 < fail
                     && who->queues[0].n_hits + 1 < c.batch_queue;

        if (taken)
            lock_set(0, SOMEBODY);
        touch_by(who, refs[i]);
        digest = digest * 31 + slot_load(&pool->table[refs[i]]);
        if (taken)
            lock_set(0, 0);
    }
    for (unsigned i = 0; i < k; i++)
        xac_frames_leave(users[i]);
    s = stats();
    must(k > 1 || c.free_lists > 0 || s.hits_stale == 0); /* H1 */
    pool_end();
    if (digestp != NULL)
        *digestp = digest;
    return 100.0 * (double)s.hits / (double)n_refs;
}

static struct xac_frames_config
wrapped(uint32_t policy, uint32_t queue, uint32_t threshold)
{
    return (struct xac_frames_config){.policy = policy,
                                      .batch_queue = queue,
                                      .batch_threshold = threshold};
}

static const uint32_t traced[] = {XAC_FRAMES_LRU, XAC_FRAMES_2Q, XAC_FRAMES_LIRS,
                                  XAC_FRAMES_MQ};

START_TEST(h1_choose_the_same_victims)
{
    static const unsigned fails[] = {0, 50, 90};

    refs_make(20);
    for (int p = 0; p < 4; p++) {
        uint64_t want, digest;
        double plain = play(wrapped(traced[p], 0, 0), 1024, 1, 0, &want);

        for (unsigned i = 0; i < 6; i++) {
            struct xac_frames_config c =
                i % 2 == 0 ? wrapped(traced[p], 64, 32) : wrapped(traced[p], 2048, 1024);

            must(play(c, 1024, 1, fails[i / 2], &digest) == plain);
            must_eq(digest, want);
        }
    }
}
END_TEST

/* F20: single user, prefetching or not: the same victims. */
START_TEST(f20_change_nothing_by_prefetching)
{
    uint64_t warm, cold;
    struct xac_frames_config c = wrapped(XAC_FRAMES_2Q, 64, 32);

    refs_make(20);
    c.free_lists = 4;
    (void)play(c, 1024, 1, 0, &warm);
    c.batch_cold = 1;
    (void)play(c, 1024, 1, 0, &cold);
    must_eq(warm, cold);
}
END_TEST

START_TEST(h2_h3_keep_the_hit_ratio)
{
    refs_make(20);
    for (int p = 0; p < 4; p++) {
        double plain = play(wrapped(traced[p], 0, 0), 4096, 1, 0, NULL);
        double many = play(wrapped(traced[p], 64, 32), 4096, 16, 0, NULL);
        struct xac_frames_config c = wrapped(traced[p], 64, 32);

        printf("policy %u: plain %.3f %%, 16 users %.3f %%", traced[p], plain, many);
        must(fabs(many - plain) <= 0.05 + 50.0 / (double)n_refs);
        c.free_lists = 8;
        for (unsigned k = 1; k <= 16; k += 15) {
            double lists = play(c, 4096, k, 0, NULL);
            /* With 8 lists of 8: as many frames fewer as lists and queues may hold. */
            double fewer =
                play(wrapped(traced[p], 0, 0), 4096 - 8 * 8 - k * 64, 1, 0, NULL);

            printf(", lists, %u users %.3f %% (%.3f)", k, lists, fewer);
            (void)fflush(stdout);
            /* LIRS has 1 % of the frames for what came last: fewer than are in lists and queues. */
            must(traced[p] == XAC_FRAMES_LIRS
                 || (lists >= plain - 0.5 && lists >= fewer - 0.1));
        }
        putchar('\n');
    }
}
END_TEST

START_TEST(h5_keep_what_2q_is_better_by)
{
    double clock, plain, batched;

    refs_make(20);
    clock = play(wrapped(XAC_FRAMES_CLOCK, 0, 0), 2048, 1, 0, NULL);
    plain = play(wrapped(XAC_FRAMES_2Q, 0, 0), 2048, 1, 0, NULL);
    batched = play(wrapped(XAC_FRAMES_2Q, 64, 32), 2048, 8, 0, NULL);
    printf("clock %.3f, 2q %.3f, batched %.3f\n", clock, plain, batched);
    must(plain > clock);
    must(batched - clock >= 0.9 * (plain - clock));
}
END_TEST

/* H6: threads draw the next reference from one trace: its order is the log's. */
static _Atomic uint64_t drawn;

static void *
draw_run(void *arg)
{
    struct xac_frames_user *mine;
    uint64_t i;

    (void)arg;
    must_ok(xac_frames_join(pool, &mine));
    while ((i = atomic_fetch_add(&drawn, 1)) < n_refs)
        touch_by(mine, refs[i]);
    xac_frames_leave(mine);
    return NULL;
}

START_TEST(h6_hit_as_often_live)
{
    struct xac_frames_config c = wrapped(XAC_FRAMES_2Q, 64, 32);
    pthread_t threads[8];
    double replayed, live;

    refs_make(20);
    replayed = play(c, 2048, 1, 0, NULL);
    c.n_users = 9;
    pool_make(TRACE_PAGES, 2048, c);
    atomic_store(&drawn, 0);
    for (int i = 0; i < 8; i++)
        must_eq(pthread_create(&threads[i], NULL, draw_run, NULL), 0);
    for (int i = 0; i < 8; i++)
        must_eq(pthread_join(threads[i], NULL), 0);
    live = 100.0 * (double)stats().hits / (double)n_refs;
    pool_end();
    printf("live %.3f, replayed %.3f\n", live, replayed);
    must(fabs(live - replayed) <= 0.2);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("hit ratio");
    TCase *t = env_tcase(s, "traces", 300);

    tcase_add_test(t, f20_change_nothing_by_prefetching);
    tcase_add_test(t, h1_choose_the_same_victims);
    tcase_add_test(t, h2_h3_keep_the_hit_ratio);
    tcase_add_test(t, h5_keep_what_2q_is_better_by);
    tcase_add_test(t, h6_hit_as_often_live);
    return env_main(s);
}
