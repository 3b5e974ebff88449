/* SPDX-License-Identifier: MIT */
/*
 * stress_frames.c -- page frames under threads and processes: no update is lost.
 *
 * Each fix adds one to both ends of the page; at the end the pages hold as many as were added.
 * In debug builds threads are delayed at the steps of the algorithm at random, which loses
 * updates if a page is published before its bytes, used from a private copy, or removed
 * before it is written.
 *
 *   XAC_FIXES=n  of each combination of threads, frames and delays; with delays of p percent
 *                n / (1 + p); misses of all threads on a hand that turns over
 *   XAC_LIVES=n  of one frame (200,000)
 *   XAC_STORMS=n rounds in which all fix the same cold page (300)
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "store.h"

#define THREADS_MAX 16
#define PAGE_BYTES  128
#define WORDS       (PAGE_BYTES / 8)

/* ---- Delays ----------------------------------------------------------------------- */

static unsigned delay_percent;
static _Thread_local uint64_t delay_seed;

#ifdef XAC_DEBUG
static void
delay(const char *name)
{
    uint64_t x;

    (void)name;
    if (delay_seed == 0)
        return;
    x = mix(&delay_seed) % 10000;
    if (x < delay_percent * 100)
        (void)sched_yield();
    if (x < delay_percent)
        proc_sleep_us(50);
}
#endif

static void
delays_set(unsigned percent)
{
    delay_percent = percent;
#ifdef XAC_DEBUG
    xac_kill_hook = percent == 0 ? NULL : delay;
#endif
}

/* ---- A crew of threads ------------------------------------------------------------ */

struct crew {
    struct xac_frames *pool;
    struct store *store;
    uint64_t n_fixes; /* of each thread */
    unsigned n_threads;
    pthread_barrier_t barrier;
    _Atomic bool over;
    _Atomic uint64_t n_failed;
};

struct member {
    struct crew *crew;
    pthread_t thread;
    uint64_t seed;
};

static int
fix(struct xac_frames_user *user, uint64_t page, struct xac_frames_pin *pin)
{
    int rc;

    do
        rc = xac_frames_fix(user, page, 0, pin);
    while (rc == ENOBUFS); /* all were fixed, for a moment */
    return rc;
}

static void *
member_add(void *arg)
{
    struct member *m = arg;
    struct crew *c = m->crew;
    struct xac_frames_user *user;

    must_ok(xac_frames_join(c->pool, &user));
    delay_seed = m->seed;
    for (uint64_t k = 0; k < c->n_fixes; k++) {
        uint64_t page = mix(&m->seed) % c->store->n_pages;
        struct xac_frames_pin pin;
        uint64_t *words;

        must_ok(fix(user, page, &pin));
        words = pin.data;
        latch_take(c->store, page);
        if (words[0] != words[WORDS - 1] || (words[1] != 0 && words[1] != page + 1))
            atomic_fetch_add(&c->n_failed, 1);
        words[0]++;
        words[1] = page + 1;
        words[WORDS - 1]++;
        latch_drop(c->store, page);
        xac_frames_mark_dirty(user, &pin);
        xac_frames_unfix(user, &pin);
    }
    delay_seed = 0;
    xac_frames_leave(user);
    return NULL;
}

static void *
member_flush(void *arg)
{
    struct member *m = arg;
    struct xac_frames_user *user;

    must_ok(xac_frames_join(m->crew->pool, &user));
    delay_seed = m->seed;
    while (!atomic_load(&m->crew->over)) {
        must_ok(xac_frames_flush_all(user));
        must_ok(xac_frames_flush(user, mix(&m->seed) % m->crew->store->n_pages));
        proc_sleep_us(200);
    }
    delay_seed = 0;
    xac_frames_leave(user);
    return NULL;
}

#define FLUSHERS 2

/* crew_run -- everybody adds, and two flush meanwhile. */
static void
crew_run(struct crew *c, uint64_t seed)
{
    struct member members[THREADS_MAX + FLUSHERS];

    atomic_store(&c->over, false);
    for (unsigned i = 0; i < c->n_threads + FLUSHERS; i++) {
        members[i] = (struct member){.crew = c, .seed = seed + 1000 * i + 1};
        must_eq(pthread_create(&members[i].thread, NULL,
                               i < c->n_threads ? member_add : member_flush, &members[i]),
                0);
    }
    for (unsigned i = 0; i < c->n_threads; i++)
        must_eq(pthread_join(members[i].thread, NULL), 0);
    atomic_store(&c->over, true);
    for (unsigned i = 0; i < FLUSHERS; i++)
        must_eq(pthread_join(members[c->n_threads + i].thread, NULL), 0);
}

/* store_sum -- of what was added, after a flush; both halves agree. */
static uint64_t
store_sum(struct xac_frames *pool, struct store *store)
{
    struct xac_frames_user *user;
    uint64_t sum = 0;

    must_ok(xac_frames_join(pool, &user));
    must_ok(xac_frames_flush_all(user));
    xac_frames_leave(user);
    for (uint64_t page = 0; page < store->n_pages; page++) {
        uint64_t words[WORDS];

        memcpy(words, store_page(store, page), sizeof words);
        must_eq(words[0], words[WORDS - 1]);
        sum += words[0];
    }
    return sum;
}

static struct xac_frames_config
config_of(uint64_t n_pages, uint32_t n_frames)
{
    return (struct xac_frames_config){.n_pages = n_pages,
                                      .n_frames = n_frames,
                                      .n_users = THREADS_MAX + 2 * FLUSHERS,
                                      .page_bytes = PAGE_BYTES};
}

/* N18: no write of a page that has left the table; its writer keeps it there. */
static struct xac_frames *written_pool;

static void
must_be_mapped(struct store *store, uint64_t page)
{
    (void)store;
    must(slot_load(&written_pool->table[page]) != 0);
}

/* ---- N15, N16, N17, N18, N20 ----------------------------------------------------------- */

/* What happened that is rare, in all plays. */
struct rare {
    uint64_t fixes, stale, duplicate, rescues;
};

/* play_updates -- one pool, with delays between steps in so many percent. */
static void
play_updates(unsigned n_threads, unsigned n_frames, unsigned n_pages, unsigned delay,
             uint64_t seed, struct rare *rare)
{
    struct xac_frames_config config = config_of(n_pages, n_frames);
    struct crew c = {.store = store_make(n_pages, PAGE_BYTES),
                     .n_threads = n_threads,
                     .n_fixes = env_number("XAC_FIXES", 20000) / (1 + delay) / n_threads};
    struct xac_frames_io io = store_io(c.store);
    struct xac_frames_stats stats;

    config.hand_cells = delay == 0 || delay == 10 ? 1 : 4;
    config.n_users = n_threads + FLUSHERS; /* N17: no descriptor more than needed */
    must_ok(xac_frames_create(&config, NULL, &io, &c.pool));
    written_pool = c.pool;
    c.store->on_write = must_be_mapped;
    delays_set(delay);
    crew_run(&c, seed);
    delays_set(0);
    must_be_whole(c.pool, 0);
    must_eq(atomic_load(&c.n_failed), 0);
    must_eq(store_sum(c.pool, c.store), c.n_fixes * c.n_threads);
    must_eq(atomic_load(&c.store->n_overlaps), 0);
    xac_frames_get_stats(c.pool, &stats, sizeof stats);
    must_eq(stats.hits + stats.misses, c.n_fixes * c.n_threads);
    rare->fixes += stats.hits + stats.misses;
    rare->stale += stats.stale_refs;
    rare->duplicate += stats.reads_duplicate;
    rare->rescues += stats.rescues;
    xac_frames_close(c.pool);
}

/* all_seen -- what has to have happened once, or the test has tested nothing. */
static bool
all_seen(const struct rare *rare)
{
#ifdef XAC_DEBUG
    if (rare->duplicate == 0 || rare->rescues == 0)
        return false;
#endif
    return rare->stale > 0;
}

START_TEST(lose_no_update)
{
    static const unsigned threads[] = {2, 8, 16};
    static const unsigned frames[] = {16, 64, 24};
    static const unsigned pages[] = {40, 256, 100};
    static const unsigned delays[] = {0, 5, 10, 20};
    struct rare rare = {.fixes = 0};

    for (uint64_t again = 0; again < 20 && !all_seen(&rare); again++)
        for (unsigned t = 0; t < 3; t++)
            for (unsigned d = 0; d < 4; d++)
                play_updates(threads[t], frames[t], pages[t], delays[d],
                             env_seed() + 1000 * again + 100 * t + d, &rare);
    printf("%llu fixes, %llu stale references, %llu duplicate reads, %llu rescues\n",
           (unsigned long long)rare.fixes, (unsigned long long)rare.stale,
           (unsigned long long)rare.duplicate, (unsigned long long)rare.rescues);
    must(all_seen(&rare));
}
END_TEST

/* ---- N02 -------------------------------------------------------------------------- */

static struct frame one;
static _Atomic uint64_t one_ref, n_ended, n_pinned;
static uint64_t n_lives;

/* The thread that ends a life begins the next, and unpins it for all. */
static void *
pin_and_retire(void *arg)
{
    uint64_t ref;

    (void)arg;
    while ((ref = atomic_load(&one_ref)) != UINT64_MAX) {
        uint64_t state;

        if (!frame_try_pin(&one, ref))
            continue;
        state = frame_load(&one);
        must(frame_is_of(state, ref) && frame_word(state) != FRAME_GONE);
        atomic_fetch_add(&n_pinned, 1);
        frame_unpin(&one);
        if (!frame_try_retire(&one, ref))
            continue;
        must(!frame_try_pin(&one, ref));
        must_eq(atomic_load(&one_ref), ref); /* nobody else has ended it */
        if (atomic_fetch_add(&n_ended, 1) + 1 == n_lives) {
            atomic_store(&one_ref, UINT64_MAX);
        } else {
            atomic_store(&one_ref, frame_begin(&one, 0, 0));
            frame_unpin(&one);
        }
    }
    return NULL;
}

START_TEST(end_each_life_once)
{
    pthread_t threads[8];

    n_lives = env_number("XAC_LIVES", 200000);
    atomic_store(&one_ref, frame_begin(&one, 0, 0));
    frame_unpin(&one);
    for (int i = 0; i < 8; i++)
        must_eq(pthread_create(&threads[i], NULL, pin_and_retire, NULL), 0);
    for (int i = 0; i < 8; i++)
        must_eq(pthread_join(threads[i], NULL), 0);
    must_eq(atomic_load(&n_ended), n_lives);
    must(atomic_load(&n_pinned) >= n_lives);
}
END_TEST

/* ---- N10 -------------------------------------------------------------------------- */

#define STORM_THREADS 8

static uint64_t n_storms;
static frame_ref storm_refs[STORM_THREADS];

struct storm {
    struct crew *crew;
    unsigned number;
};

static void *
storm_run(void *arg)
{
    struct storm *s = arg;
    struct crew *c = s->crew;
    struct xac_frames_user *user;
    struct xac_frames_pin pin;

    must_ok(xac_frames_join(c->pool, &user));
    for (uint64_t round = 0; round < n_storms; round++) {
        delay_seed = round * 16 + s->number + 1;
        pthread_barrier_wait(&c->barrier);
        must_ok(fix(user, round, &pin));
        storm_refs[s->number] = pin.ref;
        pthread_barrier_wait(&c->barrier);
        if (s->number == 0) {
            for (unsigned i = 1; i < STORM_THREADS; i++)
                must_eq(storm_refs[i], pin.ref);
            must_be_whole(c->pool, STORM_THREADS);
        }
        pthread_barrier_wait(&c->barrier);
        xac_frames_unfix(user, &pin);
    }
    delay_seed = 0;
    xac_frames_leave(user);
    return NULL;
}

START_TEST(bring_a_page_in_once)
{
    uint64_t n_rounds = n_storms = env_number("XAC_STORMS", 300);
    struct xac_frames_config config = config_of(n_rounds + 100, 64);
    struct crew c = {.store = store_make(n_rounds + 100, PAGE_BYTES)};
    struct xac_frames_io io = store_io(c.store);
    struct storm storms[STORM_THREADS];
    pthread_t threads[STORM_THREADS];
    struct xac_frames_stats stats;
    struct xac_frames_user *user;
    struct xac_frames_pin pin;
    uint64_t start;

    must_ok(xac_frames_create(&config, NULL, &io, &c.pool));
    pthread_barrier_init(&c.barrier, NULL, STORM_THREADS);
    delays_set(20);
    for (unsigned i = 0; i < STORM_THREADS; i++) {
        storms[i] = (struct storm){.crew = &c, .number = i};
        must_eq(pthread_create(&threads[i], NULL, storm_run, &storms[i]), 0);
    }
    for (unsigned i = 0; i < STORM_THREADS; i++)
        must_eq(pthread_join(threads[i], NULL), 0);
    delays_set(0);
    must_be_whole(c.pool, 0);
    xac_frames_get_stats(c.pool, &stats, sizeof stats);
    must_eq(stats.misses, n_rounds);
    must(stats.lost_races <= (STORM_THREADS - 1) * n_rounds);
    /* One revolution of the hand takes the frames that nobody used. */
    must_ok(xac_frames_join(c.pool, &user));
    start = hand_get(c.pool);
    for (uint64_t page = n_rounds; hand_get(c.pool) - start < 64; page++) {
        must_ok(xac_frames_fix(user, page, 0, &pin));
        xac_frames_unfix(user, &pin);
    }
    for (uint32_t i = 0; i < 64; i++)
        must(frame_word(frame_load(pool_frame(c.pool, slot_load(ring_slot(c.pool, i)))))
             == 0);
    xac_frames_leave(user);
    xac_frames_close(c.pool);
    pthread_barrier_destroy(&c.barrier);
}
END_TEST

/* ---- N07, N25: the hand turns over under threads ----------------------------------- */

static void *
turn_run(void *arg)
{
    struct member *m = arg;
    struct crew *c = m->crew;
    struct xac_frames_user *user;

    must_ok(xac_frames_join(c->pool, &user));
    for (uint64_t k = 0; k < c->n_fixes; k++) {
        uint64_t page = mix(&m->seed) % c->pool->region->config.n_pages;
        struct xac_frames_pin pin;

        must_ok(fix(user, page, &pin));
        must_eq(atomic_load(&pool_frame(c->pool, pin.ref)->page_id), page);
        xac_frames_unfix(user, &pin);
    }
    xac_frames_leave(user);
    return NULL;
}

START_TEST(turn_the_hand_over_under_threads)
{
    static const uint32_t sizes[] = {1, 7, 64, 1000};
    uint64_t n_fixes = 4 * env_number("XAC_FIXES", 20000);

    for (int i = 0; i < 4; i++) {
        struct xac_frames_config config = {.n_pages = 100000,
                                           .n_frames = sizes[i],
                                           .n_users = 16,
                                           .hand_cells = i % 2 == 0 ? 1 : 8,
                                           .full_tries = 1};
        struct crew c = {.n_fixes = n_fixes / 16};
        struct member members[16];
        uint64_t start = UINT64_MAX - n_fixes / 4, moved;
        struct xac_frames_stats stats;

        must_ok(xac_frames_create(&config, NULL, NULL, &c.pool));
        atomic_store(&c.pool->cells[0].moved, start);
        for (unsigned t = 0; t < 16; t++) {
            members[t] = (struct member){.crew = &c, .seed = env_seed() + t};
            must_eq(pthread_create(&members[t].thread, NULL, turn_run, &members[t]), 0);
        }
        for (unsigned t = 0; t < 16; t++)
            must_eq(pthread_join(members[t].thread, NULL), 0);
        must_be_whole(c.pool, 0);
        xac_frames_get_stats(c.pool, &stats, sizeof stats);
        moved = hand_get(c.pool) - start;
        /* Each frame taken moved the hand by 1 to n, and no further than it was looked. */
        must(moved >= stats.misses && moved <= stats.sweep_steps + sizes[i]);
        must(moved > n_fixes / 4);
        xac_frames_close(c.pool);
    }
}
END_TEST

#ifndef __SANITIZE_THREAD__

/* ---- N26, in part: two processes, each with the memory at an address of its own ----- */

struct shared {
    void *memory;
    struct store *store;
    uint64_t n_fixes;
};

static void
process_add(void *arg)
{
    struct shared *s = arg;
    struct xac_frames_io io = store_io(s->store);
    struct crew c = {.store = s->store, .n_threads = 2, .n_fixes = s->n_fixes};

    must_ok(xac_frames_attach(s->memory, &io, &c.pool));
    crew_run(&c, env_seed() + (uint64_t)getpid());
    must_eq(atomic_load(&c.n_failed), 0);
    xac_frames_close(c.pool);
}

START_TEST(share_frames_between_processes)
{
    struct xac_frames_config config = config_of(100, 24);
    struct shared s = {.memory = proc_shared(xac_frames_bytes(&config)),
                       .store = store_make(100, PAGE_BYTES),
                       .n_fixes = env_number("XAC_FIXES", 40000) / 4};
    struct xac_frames_io io = store_io(s.store);
    struct xac_frames *pool;
    pid_t pids[2];

    must_ok(xac_frames_create(&config, s.memory, &io, &pool));
    for (int i = 0; i < 2; i++)
        pids[i] = proc_spawn(process_add, &s);
    for (int i = 0; i < 2; i++)
        proc_join(pids[i]);
    must_be_whole(pool, 0);
    must_eq(store_sum(pool, s.store), 4 * s.n_fixes);
    must_eq(atomic_load(&s.store->n_overlaps), 0);
    xac_frames_close(pool);
}
END_TEST

#endif

int
main(void)
{
    Suite *s = suite_create("frames under threads");
    TCase *t = env_tcase(s, "stress", 300);

    tcase_add_test(t, end_each_life_once);
    tcase_add_test(t, bring_a_page_in_once);
    tcase_add_test(t, lose_no_update);
    tcase_add_test(t, turn_the_hand_over_under_threads);
#ifndef __SANITIZE_THREAD__ /* it does not see what the other process does */
    tcase_add_test(t, share_frames_between_processes);
#endif
    return env_main(s);
}
