/* SPDX-License-Identifier: MIT */
/*
 * check_bpwrapper.c -- BP-Wrapper to the last count: queues, batches, lists of free frames, parts.
 *
 * F1 to F24 and H1 to H6 name the rows of tests/README.md.  One thread plays several users where
 * that is enough, and takes the part of another one by storing into the lock's word.
 *
 *   XAC_REFS=n  references of each play of a trace (300,000)
 *   XAC_FIXES=n of each thread of a spied queue, a quarter of them of a fuzz round (20,000)
 */
#include <config.h>

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>

#include "store.h"

#define SOMEBODY \
 UINT32_C(999) /* a number no user has: the lock's word when others have it */

static struct xac_frames *pool;
static struct xac_frames_user *user;

static void
pool_make(uint64_t n_pages, uint32_t n_frames, struct xac_frames_config more)
{
    more.n_pages = n_pages;
    more.n_frames = n_frames;
    if (more.n_users == 0)
        more.n_users = 4;
    must_ok(xac_frames_create(&more, NULL, NULL, &pool));
    must_ok(xac_frames_join(pool, &user));
}

static void
pool_end(void)
{
    xac_frames_leave(user);
    must_be_whole(pool, 0);
    xac_frames_close(pool);
}

static struct xac_frames_stats
stats(void)
{
    struct xac_frames_stats s;

    xac_frames_get_stats(pool, &s);
    return s;
}

static void
touch_by(struct xac_frames_user *who, uint64_t page)
{
    struct xac_frames_pin pin;

    must_ok(xac_frames_fix(who, page, 0, &pin));
    xac_frames_unfix(who, &pin);
}

static void
touch(uint64_t page)
{
    touch_by(user, page);
}

static void
fill(uint64_t n_pages)
{
    for (uint64_t page = 0; page < n_pages; page++)
        touch(page);
}

static bool
is_mapped(uint64_t page)
{
    return slot_load(&pool->table[page]) != 0;
}

static void
lock_set(uint32_t part, uint32_t word)
{
    atomic_store(&pool->parts[part].lock, word);
}

/* slots_known -- residents of a part. */
static uint32_t
slots_known(uint32_t part)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < pool->policies[part].n; i++)
        n += pool->policies[part].nodes[i].where != 0;
    return n;
}

static uint32_t
slots_free(void)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < pool->n_frames; i++)
        n += atomic_load(&pool->free_links[i]) != 0;
    return n;
}

#define WRAPPED(s, t) .policy = XAC_FRAMES_LRU, .batch_queue = (s), .batch_threshold = (t)

/* ---- F1 to F5: queues ---------------------------------------------------------------- */

START_TEST(f01_commit_every_32nd_hit)
{
    for (uint32_t cold = 0; cold < 2; cold++) {
        struct xac_frames_stats before, after;

        pool_make(100, 100,
                  (struct xac_frames_config){WRAPPED(64, 32), .batch_cold = cold});
        fill(100);
        before = stats();
        for (uint64_t k = 0; k < 1000000; k++)
            touch(k * k % 100);
        after = stats();
        must_eq(after.batches - before.batches, 31250);
        must_eq(after.locks - before.locks, 31250);
        must_eq(after.batched - before.batched, 1000000);
        must_eq(after.lock_waits + after.lock_tries + after.hits_stale, 0);
        must_eq(user->queues[0].n, 0);
        pool_end();
    }
}
END_TEST

START_TEST(f03_go_on_from_the_free_lock)
{
    struct xac_frames_stats before;

    pool_make(10, 10, (struct xac_frames_config){WRAPPED(64, 32)});
    touch(1);
    before = stats();
    lock_set(0, SOMEBODY);
    for (int i = 0; i < 40; i++)
        touch(1);
    must_eq(stats().lock_tries, 40 - 31);
    must_eq(stats().batches, before.batches);
    lock_set(0, 0);
    touch(1);
    must_eq(stats().batched - before.batched, 41);
    for (int i = 0; i < 31; i++)
        touch(1);
    must_eq(stats().locks - before.locks, 1);
    touch(1);
    must_eq(stats().locks - before.locks, 2);
    must_eq(stats().batches_full, 0);
    pool_end();
}
END_TEST

START_TEST(f04_refuse_sizes_that_cannot_be)
{
    static const uint32_t bad[][2] = {{0, 1}, {1, 0}, {32, 64}, {4097, 32}};
    struct xac_frames_config c = {.n_pages = 9, .n_frames = 9, .n_users = 1};

    for (int i = 0; i < 4; i++) {
        c.batch_queue = bad[i][0];
        c.batch_threshold = bad[i][1];
        must_eq(xac_frames_create(&c, NULL, NULL, &pool), EINVAL);
    }
    c.batch_queue = c.batch_threshold = 0;
    c.parts = 10;
    must_eq(xac_frames_create(&c, NULL, NULL, &pool), EINVAL);
    c.parts = 1;
    c.free_lists = 1025;
    must_eq(xac_frames_create(&c, NULL, NULL, &pool), EINVAL);
    c.free_lists = 4;
    c.free_batch = 65;
    must_eq(xac_frames_create(&c, NULL, NULL, &pool), EINVAL);
}
END_TEST

/* A policy that looks whether each user's hits come in their order, none twice, none lost. */
#define SPIED_PAGES 8 /* of each thread */

static uint64_t spy_seeds[16];
static uint64_t spy_n, spy_wrong;

static void
spy_touch(struct policy *p, uint32_t slot)
{
    uint64_t page = p->nodes[slot].page, who = page / SPIED_PAGES;

    spy_n++;
    spy_wrong += mix(&spy_seeds[who]) % SPIED_PAGES != page % SPIED_PAGES;
}

static void *
spied_run(void *arg)
{
    uint64_t who = (uint64_t)(uintptr_t)arg, seed = who;
    uint64_t n = env_number("XAC_FIXES", 20000);
    struct xac_frames_user *mine;

    must_ok(xac_frames_join(pool, &mine));
    for (uint64_t i = 0; i < n; i++)
        touch_by(mine, who * SPIED_PAGES + mix(&seed) % SPIED_PAGES);
    xac_frames_leave(mine);
    return NULL;
}

START_TEST(f05_keep_each_users_order)
{
    struct policy_ops spy = xac_frames_lru;
    pthread_t threads[16];

    pool_make(16 * SPIED_PAGES, 16 * SPIED_PAGES,
              (struct xac_frames_config){WRAPPED(64, 32), .n_users = 17});
    fill(16 * SPIED_PAGES);
    xac_frames_locked_leave(user);
    spy.touch = spy_touch;
    pool->ops = pool->policies[0].ops = &spy;
    spy_n = spy_wrong = 0;
    for (uint64_t i = 0; i < 16; i++) {
        spy_seeds[i] = i;
        must_eq(pthread_create(&threads[i], NULL, spied_run, (void *)(uintptr_t)i), 0);
    }
    for (uint64_t i = 0; i < 16; i++)
        must_eq(pthread_join(threads[i], NULL), 0);
    must_eq(spy_n, 16 * env_number("XAC_FIXES", 20000));
    must_eq(spy_wrong, 0);
    pool_end();
}
END_TEST

/* ---- F7, F9 to F12: what is stale, lists of free frames ------------------------------- */

START_TEST(f07_drop_hits_of_a_forgotten_page)
{
    struct xac_frames_user *other;

    pool_make(100, 10, (struct xac_frames_config){WRAPPED(64, 32)});
    must_ok(xac_frames_join(pool, &other));
    fill(10);
    touch(3);
    touch(3);
    must_ok(xac_frames_invalidate(other, 3));
    xac_frames_locked_leave(user);
    must_eq(stats().hits_stale, 2);
    must(!is_mapped(3));
    xac_frames_leave(other);
    pool_end();
}
END_TEST

/* Lists filled once: 9 frames free. */
static void
pool_with_free(uint32_t n_lists, uint32_t threshold)
{
    pool_make(1000, 40,
              (struct xac_frames_config){WRAPPED(64, threshold), .free_lists = n_lists,
                                         .free_batch = 9});
    fill(40);
    touch(40); /* evicts 1, and 9 more */
    must_eq(stats().refills, 1);
    must_eq(slots_free(), 9);
}

/* The paper's queues: a hit of a page in limbo overtakes the page's arrival. */
START_TEST(f09_let_a_hit_overtake_the_arrival)
{
    struct xac_frames_user *other;
    struct xac_frames_stats before;

    pool_with_free(1, 32);
    must_ok(xac_frames_join(pool, &other));
    touch(50); /* from the list: its arrival is in user's queue */
    must_eq(user->queues[0].n, 1);
    must_eq(slots_known(0), 40 - 9);
    before = stats();
    for (int i = 0; i < 32; i++)
        touch_by(other, 50);
    must_eq(stats().limbo_ends - before.limbo_ends, 1);
    must_eq(slots_known(0), 40 - 8);
    must_eq(pool->policies[0].state->lists[0].n, 40 - 8);
    xac_frames_locked_leave(user); /* a hit like others */
    must_eq(slots_known(0), 40 - 8);
    must_eq(pool->policies[0].state->lists[0].n, 40 - 8);
    must_eq(stats().hits_stale, 0);
    xac_frames_leave(other);
    pool_end();
}
END_TEST

START_TEST(f10_take_a_free_frame_without_the_lock)
{
    struct xac_frames_stats before;
    frame_ref ref;

    pool_with_free(1, 32);
    before = stats();
    lock_set(0, SOMEBODY);
    for (uint64_t page = 100; page < 109; page++) {
        touch(page);
        ref = slot_load(&pool->table[page]);
        must_eq(user->queues[0].hits[page - 100].ref, ref);
        must_eq(atomic_load(&pool_frame(pool, ref)->page_id), page);
    }
    lock_set(0, 0);
    must_eq(stats().locks, before.locks);
    must_eq(stats().free_out - before.free_out, 9);
    must_eq(slots_free(), 0);
    pool_end();
}
END_TEST

START_TEST(f11_fill_a_list_with_one_lock)
{
    struct xac_frames_stats before;

    pool_make(1000, 40,
              (struct xac_frames_config){WRAPPED(64, 32), .free_lists = 4,
                                         .free_batch = 9});
    fill(40);
    touch(0); /* in the queue: told before the victim is chosen, so that 0 stays */
    before = stats();
    touch(42);
    must_eq(stats().locks - before.locks, 1);
    must_eq(stats().batched - before.batched, 1);
    must_eq(stats().evictions - before.evictions, 1 + 9);
    must_eq(stats().free_in - before.free_in, 9);
    must(is_mapped(0) && !is_mapped(1) && !is_mapped(10) && is_mapped(11));
    for (uint32_t list = 0; list < 4; list++)
        must_eq((uint32_t)atomic_load(&pool->free[list].head) != 0, list == 42 % 4);
    pool_end();
}
END_TEST

START_TEST(f12_lock_once_per_batch_of_misses)
{
    static const uint32_t batches[] = {8, 16, 64};

    for (int i = 0; i < 3; i++) {
        uint64_t n = 500 * (batches[i] + 1);
        struct xac_frames_stats before;

        pool_make(n + 4096, 4096,
                  (struct xac_frames_config){WRAPPED(64, 32), .free_lists = 1,
                                             .free_batch = batches[i]});
        fill(4096);
        before = stats();
        for (uint64_t page = 4096; page < 4096 + n; page++)
            touch(page);
        must_eq(stats().misses - before.misses, n);
        must_eq((stats().refills - before.refills) * (batches[i] + 1), n);
        /* Batches of arrivals besides: the bound 1/T + m/(F+1). */
        must(stats().locks - before.locks <= n / 32 + n / (batches[i] + 1));
        pool_end();
    }
}
END_TEST

/* ---- F13 to F18: what cannot be lost, and nobody waits for ---------------------------- */

struct fuzz {
    pthread_t thread;
    uint64_t seed, n_pages;
    bool
        dirty; /* some of them; nobody flushes: in large pools the search for clean ones is long */
};

static void *
fuzz_run(void *arg)
{
    struct fuzz *f = arg;
    struct xac_frames_user *mine;
    struct xac_frames_pin pins[3];
    uint64_t n = env_number("XAC_FIXES", 20000) / 4;
    unsigned n_pins = 0;

    must_ok(xac_frames_join(pool, &mine));
    for (uint64_t i = 0; i < n; i++) {
        uint64_t page = mix(&f->seed) % f->n_pages;
        int rc = xac_frames_fix(mine, page, 0, &pins[n_pins]);

        must(rc == 0 || rc == ENOBUFS);
        n_pins += rc == 0;
        if (f->dirty && n_pins > 0 && mix(&f->seed) % 8 == 0)
            xac_frames_mark_dirty(mine, &pins[n_pins - 1]);
        while (n_pins == 3 || (n_pins > 0 && mix(&f->seed) % 2 == 0))
            xac_frames_unfix(mine, &pins[--n_pins]);
        if (mix(&f->seed) % 50 == 0) /* of pages that nobody fixes */
            (void)xac_frames_invalidate(mine, f->n_pages + mix(&f->seed) % f->n_pages);
    }
    while (n_pins > 0)
        xac_frames_unfix(mine, &pins[--n_pins]);
    xac_frames_leave(mine);
    return NULL;
}

/* fuzz_round -- so many threads on one pool, then at rest: nothing is lost. */
static void
fuzz_round(unsigned n_threads, uint64_t n_pages, uint64_t seed)
{
    struct fuzz fuzz[16];
    struct xac_frames_stats s;

    for (unsigned i = 0; i < n_threads; i++) {
        fuzz[i] = (struct fuzz){.seed = seed + i,
                                .n_pages = n_pages,
                                .dirty = pool->n_frames < 1000};
        must_eq(pthread_create(&fuzz[i].thread, NULL, fuzz_run, &fuzz[i]), 0);
    }
    for (unsigned i = 0; i < n_threads; i++)
        must_eq(pthread_join(fuzz[i].thread, NULL), 0);
    xac_frames_locked_leave(user);
    must_be_whole(pool, 0);
    s = stats();
    must_eq(s.free_in - s.free_out, slots_free());
    must_eq(s.free_out, s.limbo_ends); /* nobody is in limbo: all have left */
    must_eq(s.locks >= s.lock_waits && s.lock_waits >= s.batches_full, 1);
}

START_TEST(f13_lose_no_frame)
{
    static const uint32_t policies[] = {XAC_FRAMES_LRU, XAC_FRAMES_2Q, XAC_FRAMES_LIRS,
                                        XAC_FRAMES_CLOCK};

    for (int p = 0; p < 4; p++)
        for (uint32_t parts = 1; parts <= 4; parts += 3) {
            struct xac_frames_config c = {WRAPPED(64, 32),  .n_users = 17,
                                          .free_lists = 4,  .free_batch = 4,
                                          .full_tries = 20, .parts = parts};

            c.policy = policies[p];
            pool_make(1000, 128, c);
            for (uint64_t page = 500; page < 550; page++) /* to be forgotten */
                touch(page);
            for (uint64_t round = 0; round < 2; round++)
                fuzz_round(8, 500, env_seed() + 100 * round + (uint64_t)p);
            pool_end();
        }
}
END_TEST

START_TEST(f14_leave_fixed_pages_alone)
{
    struct xac_frames_pin pins[40], more;

    pool_make(1000, 40,
              (struct xac_frames_config){WRAPPED(64, 32), .free_lists = 4,
                                         .free_batch = 4, .full_tries = 5});
    for (uint64_t i = 0; i < 20; i++)
        must_ok(xac_frames_fix(user, i, 0, &pins[i]));
    for (uint64_t page = 20; page < 1000; page++)
        touch(page);
    for (uint64_t i = 0; i < 20; i++)
        must_eq(slot_load(&pool->table[i]), pins[i].ref);
    for (uint64_t i = 20; i < 40; i++) /* takes the free ones of all lists as well */
        must_ok(xac_frames_fix(user, 500 + i, 0, &pins[i]));
    must_eq(xac_frames_fix(user, 100, 0, &more), ENOBUFS);
    must(stats().no_victim >= 5);
    for (uint64_t i = 0; i < 40; i++)
        xac_frames_unfix(user, &pins[i]);
    touch(100);
    pool_end();
}
END_TEST

START_TEST(f15_do_not_hang_in_a_small_pool)
{
    struct xac_frames_config c = {WRAPPED(64, 32), .n_users = 17, .free_lists = 64,
                                  .free_batch = 64};

    pool_make(20000, 1024, c); /* lists would hold 4096: one frame each instead */
    must_eq(pool->region->config.free_batch, 1);
    fuzz_round(16, 10000, env_seed());
    pool_end();
    pool_make(20000, 4096, c); /* lists may hold all there are: as asked for, and slow */
    must_eq(pool->region->config.free_batch, 64);
    fuzz_round(16, 10000, env_seed());
    pool_end();
}
END_TEST

START_TEST(f16_take_from_another_list)
{
    struct xac_frames_pin pins[4];
    unsigned n = 0;

    pool_make(100, 8,
              (struct xac_frames_config){WRAPPED(64, 32), .free_lists = 2,
                                         .free_batch = 4, .full_tries = 1});
    fill(8);
    touch(8); /* list 0 has 4 frames */
    for (uint64_t page = 0; page <= 8; page++)
        if (is_mapped(page))
            must_ok(xac_frames_fix(user, page, 0, &pins[n++]));
    must_eq(n, 4);
    touch(9); /* list 1 is empty, and all that the policy knows is fixed */
    must_eq(slots_free(), 3);
    while (n > 0)
        xac_frames_unfix(user, &pins[--n]);
    pool_end();
}
END_TEST

/* Another user brings the same page in while this one is about to. */
static struct xac_frames_user *rival;

static void
probe_rival(void *arg, enum xac_frames_step step)
{
    struct xac_frames_user *who = rival;

    (void)arg;
    rival = NULL; /* once */
    if (step == XAC_FRAMES_AT_PUT && who != NULL)
        touch_by(who, 60);
    else
        rival = who;
}

START_TEST(f17_give_a_frame_back_after_a_lost_race)
{
    struct xac_frames_stats before;
    struct xac_frames_user *other;

    pool_with_free(1, 32);
    must_ok(xac_frames_join(pool, &other));
    before = stats();
    rival = other;
    pool->io.probe = probe_rival;
    touch(60);
    pool->io.probe = NULL;
    must_eq(stats().lost_races - before.lost_races, 1);
    must_eq(stats().misses - before.misses, 1);
    must_eq(slots_free(), 9 - 1);
    xac_frames_leave(other);
    pool_end();
    /* The same when the frame came with the lock: a ghost, the next to make room in its turn. */
    pool_make(100, 4, (struct xac_frames_config){WRAPPED(1, 1)});
    must_ok(xac_frames_join(pool, &other));
    fill(4);
    rival = other;
    pool->io.probe = probe_rival;
    touch(60);
    pool->io.probe = NULL;
    must_eq(stats().lost_races, 1);
    must_be_whole(pool, 0);
    fill(8);
    xac_frames_leave(other);
    pool_end();
}
END_TEST

START_TEST(f18_do_not_wait_for_an_idle_users_arrivals)
{
    struct xac_frames_pin pins[2]; /* all but those in limbo */
    struct xac_frames_user *other;

    pool_make(100, 8,
              (struct xac_frames_config){WRAPPED(64, 64), .free_lists = 1,
                                         .free_batch = 6, .full_tries = 1});
    must_ok(xac_frames_join(pool, &other));
    fill(8);
    for (uint64_t page = 8; page < 15; page++) /* 6 of these are in limbo */
        touch(page);
    must_eq(user->queues[0].n, 6);
    must_ok(xac_frames_fix(other, 7, 0, &pins[0]));
    must_ok(xac_frames_fix(other, 8, 0, &pins[1]));
    must_eq(slots_known(0), 2);
    for (uint64_t page = 20; page < 60; page++)
        touch_by(other, page);
    xac_frames_unfix(other, &pins[0]);
    xac_frames_unfix(other, &pins[1]);
    must_eq(user->queues[0].n, 6);
    xac_frames_locked_leave(user);
    must_eq(stats().hits_stale, 6);
    touch(20);
    xac_frames_leave(other); /* its queue is told */
    xac_frames_locked_leave(user);
    must_eq(stats().free_out, stats().limbo_ends);
    pool_end();
}
END_TEST

/* ---- F22: parts ------------------------------------------------------------------------ */

START_TEST(f22_keep_parts_apart)
{
    struct xac_frames_stats before;
    uint64_t pages[2] = {0, 0};

    pool_make(100, 100, (struct xac_frames_config){WRAPPED(64, 32), .parts = 2});
    while (part_of(pool, pages[1]) != 1)
        pages[1]++;
    while (part_of(pool, pages[0]) != 0)
        pages[0]++;
    touch(pages[0]);
    touch(pages[1]);
    lock_set(1, SOMEBODY);
    before = stats();
    for (int i = 0; i < 320; i++)
        touch(pages[0]);
    must_eq(stats().batches - before.batches, 10);
    must_eq(user->queues[1].n, 0);
    for (int i = 0; i < 63; i++)
        touch(pages[1]);
    must_eq(user->queues[0].n, 0);
    must_eq(user->queues[1].n, 63);
    lock_set(1, 0);
    pool_end();
}
END_TEST

/* ---- Plays of a trace (H1 to H6, F20) -------------------------------------------------- */

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
                     && who->queues[0].n + 1 < c.batch_queue;

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
    Suite *s = suite_create("BP-Wrapper");
    TCase *t = env_tcase(s, "rows", 300);

    tcase_add_test(t, f01_commit_every_32nd_hit);
    tcase_add_test(t, f03_go_on_from_the_free_lock);
    tcase_add_test(t, f04_refuse_sizes_that_cannot_be);
    tcase_add_test(t, f05_keep_each_users_order);
    tcase_add_test(t, f07_drop_hits_of_a_forgotten_page);
    tcase_add_test(t, f09_let_a_hit_overtake_the_arrival);
    tcase_add_test(t, f10_take_a_free_frame_without_the_lock);
    tcase_add_test(t, f11_fill_a_list_with_one_lock);
    tcase_add_test(t, f12_lock_once_per_batch_of_misses);
    tcase_add_test(t, f13_lose_no_frame);
    tcase_add_test(t, f14_leave_fixed_pages_alone);
    tcase_add_test(t, f15_do_not_hang_in_a_small_pool);
    tcase_add_test(t, f16_take_from_another_list);
    tcase_add_test(t, f17_give_a_frame_back_after_a_lost_race);
    tcase_add_test(t, f18_do_not_wait_for_an_idle_users_arrivals);
    tcase_add_test(t, f20_change_nothing_by_prefetching);
    tcase_add_test(t, f22_keep_parts_apart);
    t = env_tcase(s, "traces", 300);
    tcase_add_test(t, h1_choose_the_same_victims);
    tcase_add_test(t, h2_h3_keep_the_hit_ratio);
    tcase_add_test(t, h5_keep_what_2q_is_better_by);
    tcase_add_test(t, h6_hit_as_often_live);
    return env_main(s);
}
