/* SPDX-License-Identifier: MIT */
/*
 * check_bpwrapper.c -- BP-Wrapper to the last count: queues, batches, lists of free frames, parts.
 *
 * F1 to F24 name the rows of tests/README.md.  One thread plays several users where
 * that is enough, and takes the part of another one by storing into the lock's word.
 *
 *   XAC_FIXES=n of each thread of a spied queue, a quarter of them of a fuzz round (20,000)
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "sim_pool.h"

/* slots_known -- residents of a part. */
static uint32_t
slots_known(uint32_t part)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < pool->locked->policies[part].n; i++)
        n += pool->locked->policies[part].nodes[i].where != 0;
    return n;
}

static uint32_t
slots_free(void)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < pool->n_frames; i++)
        n += atomic_load(&pool->locked->free_links[i]) != 0;
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
    c.batch_all = 2;
    must_eq(xac_frames_create(&c, NULL, NULL, &pool), EINVAL);
    c.batch_all = 0;
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
    xac_frames_locked_tell(user);
    spy.touch = spy_touch;
    pool->locked->ops = pool->locked->policies[0].ops = &spy;
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
    xac_frames_locked_tell(user);
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
    must_eq(pool->locked->policies[0].state->lists[0].n, 40 - 8);
    xac_frames_locked_tell(user); /* a hit like others */
    must_eq(slots_known(0), 40 - 8);
    must_eq(pool->locked->policies[0].state->lists[0].n, 40 - 8);
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
        must_eq((uint32_t)atomic_load(&pool->locked->free[list].head) != 0,
                list == 42 % 4);
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
    xac_frames_locked_tell(user);
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
    xac_frames_locked_tell(user);
    must_eq(stats().hits_stale, 6);
    touch(20);
    xac_frames_leave(other); /* its queue is told */
    xac_frames_locked_tell(user);
    must_eq(stats().free_out, stats().limbo_ends);
    pool_end();
}
END_TEST

/* ---- F21: pages whose hits change nothing, beside others --------------------------------- */

#define STILL 60 /* a page in A1in; MOVED in Am */
#define MOVED 0

/* region_make -- 2Q with both kinds of pages, nothing in the queue, the lock free. */
static void
region_make(struct xac_frames_config more)
{
    more.policy = XAC_FRAMES_2Q;
    pool_make(1000, 100, more);
    fill(120); /* 0 to 19 leave A1in, and are remembered */
    touch(MOVED);
    xac_frames_locked_tell(user);
    must_eq(user->queues[0].n, 0);
    must(is_mapped(MOVED) && is_mapped(STILL));
}

#define IN_BATCHES .batch_queue = 64, .batch_threshold = 32

START_TEST(f21_ask_nobody_for_what_changes_nothing)
{
    struct xac_frames_stats before, after;

    region_make((struct xac_frames_config){IN_BATCHES});
    before = stats();
    lock_set(0, SOMEBODY);
    for (int i = 0; i < 1000; i++)
        touch(STILL);
    lock_set(0, 0);
    after = stats();
    must_eq(after.hits - before.hits, 1000);
    must_eq(after.locks - before.locks, 0);
    must_eq(after.lock_tries - before.lock_tries, 0);
    must_eq(user->queues[0].n, 0);
    pool_end();
    region_make((struct xac_frames_config){IN_BATCHES, .batch_all = 1});
    before = stats();
    for (int i = 0; i < 320; i++)
        touch(STILL);
    must_eq(stats().locks - before.locks, 10);
    pool_end();
    region_make((struct xac_frames_config){0});
    before = stats();
    for (int i = 0; i < 320; i++)
        touch(STILL);
    must_eq(stats().locks - before.locks, 320);
    pool_end();
}
END_TEST

/* One entry is told after 32 hits, itself and the others', and before them all by a miss. */
START_TEST(f21_let_no_entry_wait_for_its_like)
{
    struct xac_frames_stats before;

    region_make((struct xac_frames_config){IN_BATCHES});
    for (int i = 0; i < 3; i++) {
        before = stats();
        touch(MOVED);
        for (int k = 0; k < 30; k++)
            touch(STILL);
        must_eq(stats().batches - before.batches, 0);
        must_eq(user->queues[0].n, 1);
        touch(STILL);
        must_eq(stats().batches - before.batches, 1);
        must_eq(stats().batched - before.batched, 1);
        must_eq(stats().locks - before.locks, 1);
        must_eq(user->queues[0].n, 0);
    }
    touch(MOVED);
    touch(500);
    must_eq(user->queues[0].n, 0);
    for (int k = 0; k < 100; k++)
        touch(STILL); /* the count has begun anew, and nothing waits */
    must_eq(stats().batches - before.batches, 2);
    pool_end();
}
END_TEST

/* A page that came without the lock is an entry like others. */
START_TEST(f21_count_from_an_arrival_on)
{
    struct xac_frames_stats before;

    region_make((struct xac_frames_config){IN_BATCHES, .free_lists = 1, .free_batch = 8});
    touch(500); /* fills the list */
    xac_frames_locked_tell(user);
    before = stats();
    touch(501);
    must_eq(stats().locks - before.locks, 0);
    must_eq(user->queues[0].n, 1);
    for (int k = 0; k < 31; k++)
        touch(STILL);
    must_eq(stats().locks - before.locks, 1);
    must_eq(user->queues[0].n, 0);
    pool_end();
}
END_TEST

struct stuck {
    pthread_t thread;
    unsigned every; /* this many hits, one is to be told */
    _Atomic unsigned n_hits, n_entries_max;
};

static void *
stuck_run(void *arg)
{
    struct stuck *s = arg;

    for (unsigned i = 0; i < 64; i++) {
        touch(i % s->every == 0 ? MOVED : STILL);
        atomic_fetch_add(&s->n_hits, 1);
        if (user->queues[0].n > atomic_load(&s->n_entries_max))
            atomic_store(&s->n_entries_max, user->queues[0].n);
    }
    return NULL;
}

/* While another holds the lock 63 hits return, however many of them are entries; the 64th waits. */
START_TEST(f21_wait_for_a_stuck_lock_before_the_queue_is_full)
{
    static const unsigned every[] = {1, 2, 63, 64};

    for (int i = 0; i < 4; i++) {
        struct stuck s = {.every = every[i]};
        struct xac_frames_stats before;
        unsigned n_entries = (63 + every[i] - 1) / every[i];

        region_make((struct xac_frames_config){IN_BATCHES});
        before = stats();
        lock_set(0, SOMEBODY);
        must_eq(pthread_create(&s.thread, NULL, stuck_run, &s), 0);
        while (stats().lock_waits == before.lock_waits && atomic_load(&s.n_hits) < 64)
            sched_yield();
        must_eq(atomic_load(&s.n_hits), 63);
        must_eq(atomic_load(&s.n_entries_max), n_entries);
        must_eq(stats().lock_tries - before.lock_tries, 63 - 31 + 1);
        xac_frames_unlock(pool, 0);
        must_eq(pthread_join(s.thread, NULL), 0);
        must_eq(stats().batches - before.batches, 1);
        must_eq(stats().batched - before.batched, (64 + every[i] - 1) / every[i]);
        must_eq(user->queues[0].n, 0);
        pool_end();
    }
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
    tcase_add_test(t, f21_ask_nobody_for_what_changes_nothing);
    tcase_add_test(t, f21_let_no_entry_wait_for_its_like);
    tcase_add_test(t, f21_count_from_an_arrival_on);
    tcase_add_test(t, f21_wait_for_a_stuck_lock_before_the_queue_is_full);
    tcase_add_test(t, f22_keep_parts_apart);
    return env_main(s);
}
