/* SPDX-License-Identifier: MIT */
/*
 * check_policies.c -- the policies under a lock, and hits told in batches (BP-Wrapper).
 *
 * LRU against an independent count by stack distance; the others against what each must do on
 * a loop and a scan; batches against none, to the last victim.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "store.h"

#define N_PAGES  3000
#define N_REFS   30000
#define N_FRAMES 200

static uint64_t refs[N_REFS];

/* refs_make -- a skewed mixture with scans. */
static void
refs_make(void)
{
    uint64_t seed = env_seed(), scan = 0, at = 0;

    for (int i = 0; i < N_REFS; i++) {
        if (scan == 0 && mix(&seed) % 400 == 0) {
            scan = 100;
            at = mix(&seed) % N_PAGES;
        }
        if (scan > 0) {
            scan--;
            refs[i] = at++ % N_PAGES;
        } else {
            uint64_t a = mix(&seed) % N_PAGES, b = mix(&seed) % N_PAGES;

            refs[i] = a * b / N_PAGES;
        }
    }
}

static struct xac_frames_config
config_of(uint32_t policy, uint32_t queue, uint32_t threshold)
{
    return (struct xac_frames_config){.n_pages = N_PAGES,
                                      .n_frames = N_FRAMES,
                                      .n_users = 9,
                                      .policy = policy,
                                      .batch_queue = queue,
                                      .batch_threshold = threshold};
}

/* play -- all references; out a digest of the pages in the pool after each miss. */
static struct xac_frames_stats
play(const struct xac_frames_config *config, uint64_t *digestp)
{
    struct xac_frames_stats stats;
    struct xac_frames_user *user;
    struct xac_frames *pool;
    struct xac_frames_pin pin;
    uint64_t digest = 0;

    must_ok(xac_frames_create(config, NULL, NULL, &pool));
    must_ok(xac_frames_join(pool, &user));
    for (int i = 0; i < N_REFS; i++) {
        must_ok(xac_frames_fix(user, refs[i], 0, &pin));
        digest = digest * 31
                 + pin.ref; /* slots and lives: the same only by the same victims */
        xac_frames_unfix(user, &pin);
    }
    xac_frames_leave(user);
    must_be_whole(pool, 0);
    xac_frames_get_stats(pool, &stats, sizeof stats);
    must_eq(stats.hits + stats.misses, N_REFS);
    xac_frames_close(pool);
    *digestp = digest;
    return stats;
}

/* stack_hits -- hits of LRU: fewer than n_frames other pages since the last reference. */
static uint64_t
stack_hits(void)
{
    static uint64_t stack[N_PAGES];
    uint64_t n = 0, hits = 0;

    for (int i = 0; i < N_REFS; i++) {
        uint64_t depth = 0;

        while (depth < n && stack[depth] != refs[i])
            depth++;
        hits += depth < n && depth < N_FRAMES;
        n += depth == n;
        memmove(stack + 1, stack, depth * sizeof stack[0]);
        stack[0] = refs[i];
    }
    return hits;
}

START_TEST(lru_hits_are_those_of_stack_distances)
{
    struct xac_frames_config c = config_of(XAC_FRAMES_LRU, 0, 0);
    uint64_t digest;

    refs_make();
    must_eq(play(&c, &digest).hits, stack_hits());
}
END_TEST

/* H1: one user, each miss tells its hits first, so that nothing changes. */
START_TEST(batches_change_no_victim)
{
    static const uint32_t sizes[][2] = {
        {1, 1}, {64, 1}, {64, 32}, {64, 64}, {4096, 2048}};

    refs_make();
    for (uint32_t policy = XAC_FRAMES_LRU; policy < XAC_FRAMES_N_POLICIES; policy++) {
        struct xac_frames_config plain = config_of(policy, 0, 0);
        uint64_t digest, want;
        uint64_t hits = play(&plain, &want).hits;

        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            struct xac_frames_config c = config_of(policy, sizes[i][0], sizes[i][1]);
            struct xac_frames_stats s = play(&c, &digest);

            must_eq(s.hits, hits);
            must_eq(digest, want);
            must_eq(s.hits_stale, 0);
        }
        printf("policy %u: %llu hits of %d\n", policy, (unsigned long long)hits, N_REFS);
    }
}
END_TEST

/* A loop longer than the pool: LRU, CLOCK and SWEEP never hit, LIRS keeps nearly all it can. */
START_TEST(loops_tell_policies_apart)
{
    uint64_t hits[XAC_FRAMES_N_POLICIES], digest;
    unsigned n_most = N_REFS / 250 - 1; /* hits per page at most */

    for (int i = 0; i < N_REFS; i++)
        refs[i] = (uint64_t)i % 250;
    for (uint32_t policy = 0; policy < XAC_FRAMES_N_POLICIES; policy++) {
        struct xac_frames_config c = config_of(policy, 0, 0);

        hits[policy] = play(&c, &digest).hits;
        printf("policy %u: %llu\n", policy, (unsigned long long)hits[policy]);
    }
    must_eq(hits[XAC_FRAMES_LRU], 0);
    must_eq(hits[XAC_FRAMES_CLOCK], 0);
    must_eq(hits[XAC_FRAMES_GCLOCK], 0);
    must_eq(hits[XAC_FRAMES_SWEEP], 0);
    must_eq(hits[XAC_FRAMES_NB_GCLOCK], 0);
    must(hits[XAC_FRAMES_LIRS] >= (uint64_t)(N_FRAMES - 2) * n_most * 95 / 100);
    must(hits[XAC_FRAMES_RANDOM] > N_REFS / 5);
    must(hits[XAC_FRAMES_2Q] > 0);
}
END_TEST

/* 200 pages used again and again beside a scan: what 2Q, LIRS, MQ and CAR are made for. */
START_TEST(scans_do_not_flush_what_is_used)
{
    uint64_t digest, lru, seed = env_seed();
    struct xac_frames_config c = config_of(XAC_FRAMES_LRU, 0, 0);
    static const uint32_t strong[] = {XAC_FRAMES_2Q, XAC_FRAMES_LIRS, XAC_FRAMES_MQ,
                                      XAC_FRAMES_CAR};

    for (int i = 0; i < N_REFS; i++)
        refs[i] = i % 2 == 0 ? mix(&seed) % 150 : 150 + (uint64_t)i / 2 % (N_PAGES - 150);
    lru = play(&c, &digest).hits;
    for (int i = 0; i < 4; i++) {
        c = config_of(strong[i], 0, 0);
        must(play(&c, &digest).hits > lru + lru / 10);
    }
}
END_TEST

/* F1, F4: hits only; how often the lock is taken. */
START_TEST(batches_take_the_lock_rarely)
{
    static const uint32_t sizes[][2] = {
        {1, 1}, {64, 32}, {64, 64}, {4096, 4096}, {64, 1}};

    for (int i = 0; i < 5; i++) {
        struct xac_frames_config c = config_of(XAC_FRAMES_LRU, sizes[i][0], sizes[i][1]);
        struct xac_frames_stats before, after;
        struct xac_frames_user *user;
        struct xac_frames *pool;
        struct xac_frames_pin pin;

        must_ok(xac_frames_create(&c, NULL, NULL, &pool));
        must_ok(xac_frames_join(pool, &user));
        for (uint64_t page = 0; page < 100; page++) {
            must_ok(xac_frames_fix(user, page, 0, &pin));
            xac_frames_unfix(user, &pin);
        }
        xac_frames_get_stats(pool, &before, sizeof before);
        for (uint64_t k = 0; k < 40960; k++) {
            must_ok(xac_frames_fix(user, k % 100, 0, &pin));
            xac_frames_unfix(user, &pin);
        }
        xac_frames_get_stats(pool, &after, sizeof after);
        must_eq(after.locks - before.locks, 40960 / sizes[i][1]);
        must_eq(after.lock_waits + after.lock_tries, 0);
        xac_frames_leave(user);
        xac_frames_close(pool);
    }
}
END_TEST

#define WORKERS 15

struct hits {
    struct xac_frames *pool;
    _Atomic uint64_t done;
};

static void *
hits_run(void *arg)
{
    struct hits *h = arg;
    struct xac_frames_user *user;
    struct xac_frames_pin pin;

    must_ok(xac_frames_join(h->pool, &user));
    for (int i = 0; i < 64; i++) {
        must_ok(xac_frames_fix(user, 1, 0, &pin));
        xac_frames_unfix(user, &pin);
        atomic_fetch_add(&h->done, 1);
    }
    xac_frames_leave(user);
    return NULL;
}

/* F2: while another holds the lock, 63 hits return; the 64th waits. */
START_TEST(a_full_queue_waits_for_the_lock)
{
    struct xac_frames_config c = config_of(XAC_FRAMES_LRU, 64, 32);
    struct xac_frames_stats stats;
    struct xac_frames_user *user;
    struct xac_frames_pin pin;
    struct hits h = {0};
    pthread_t thread;

    must_ok(xac_frames_create(&c, NULL, NULL, &h.pool));
    must_ok(xac_frames_join(h.pool, &user));
    must_ok(xac_frames_fix(user, 1, 0, &pin));
    atomic_store(&h.pool->locked->parts[0].lock, 1);
    must_eq(pthread_create(&thread, NULL, hits_run, &h), 0);
    proc_await(&h.done, 63, 30);
    proc_sleep_us(100000);
    must_eq(atomic_load(&h.done), 63);
    xac_frames_get_stats(h.pool, &stats, sizeof stats);
    must_eq(stats.lock_tries, 33);
    must_eq(stats.lock_waits, 1);
    atomic_store(&h.pool->locked->parts[0].lock,
                 0); /* the sleeper looks again within a second */
    must_eq(pthread_join(thread, NULL), 0);
    xac_frames_get_stats(h.pool, &stats, sizeof stats);
    must_eq(stats.batches, 1);
    must_eq(stats.batched, 64);
    xac_frames_unfix(user, &pin);
    xac_frames_leave(user);
    must_be_whole(h.pool, 0);
    xac_frames_close(h.pool);
}
END_TEST

/* The paper's preempted holder (B5c): 15 others go on for 63 hits each; without queues for none. */
START_TEST(others_go_on_while_the_holder_is_stopped)
{
    for (uint32_t queue = 1; queue <= 64; queue += 63) {
        struct xac_frames_config c =
            config_of(XAC_FRAMES_LRU, queue, queue == 1 ? 1 : 32);
        struct hits workers[WORKERS] = {{0}};
        pthread_t threads[WORKERS];
        struct xac_frames_user *user;
        struct xac_frames_pin pin;
        struct xac_frames *pool;

        c.n_users = WORKERS + 1;
        must_ok(xac_frames_create(&c, NULL, NULL, &pool));
        must_ok(xac_frames_join(pool, &user));
        must_ok(xac_frames_fix(user, 1, 0, &pin));
        atomic_store(&pool->locked->parts[0].lock, 1);
        for (int i = 0; i < WORKERS; i++) {
            workers[i].pool = pool;
            must_eq(pthread_create(&threads[i], NULL, hits_run, &workers[i]), 0);
        }
        for (int i = 0; i < WORKERS && queue > 1; i++)
            proc_await(&workers[i].done, queue - 1, 30);
        proc_sleep_us(50000);
        for (int i = 0; i < WORKERS; i++)
            must_eq(atomic_load(&workers[i].done), queue - 1);
        atomic_store(&pool->locked->parts[0].lock, 0);
        for (int i = 0; i < WORKERS; i++)
            must_eq(pthread_join(threads[i], NULL), 0);
        xac_frames_unfix(user, &pin);
        xac_frames_leave(user);
        must_be_whole(pool, 0);
        xac_frames_close(pool);
    }
}
END_TEST

/* list_of -- LRU's slots, from the last used one on. */
static void
list_of(struct xac_frames *pool, uint32_t slots[N_FRAMES])
{
    const struct policy *p = &pool->locked->policies[0];
    uint32_t slot = p->state->lists[0].head;

    for (int i = 0; i < N_FRAMES; i++, slot = node_next(p, 0, slot))
        slots[i] = slot;
    must_eq(slot, POLICY_NONE);
}

/* F6, F8: a queued hit of a page that has left counts for nobody, even if it has come back. */
START_TEST(stale_hits_are_dropped)
{
    struct xac_frames_config c = config_of(XAC_FRAMES_LRU, 64, 32);
    struct xac_frames_user *a, *b;
    uint32_t before[N_FRAMES], after[N_FRAMES];
    struct xac_frames_stats stats;
    struct xac_frames_pin pin;
    struct xac_frames *pool;

    must_ok(xac_frames_create(&c, NULL, NULL, &pool));
    must_ok(xac_frames_join(pool, &a));
    must_ok(xac_frames_join(pool, &b));
    for (int i = 0; i < 3; i++) { /* a miss, then two hits in a's queue */
        must_ok(xac_frames_fix(a, 0, 0, &pin));
        xac_frames_unfix(a, &pin);
    }
    for (uint64_t page = 1; page <= N_FRAMES; page++) {
        must_ok(xac_frames_fix(b, page, 0, &pin));
        xac_frames_unfix(b, &pin);
    }
    must_ok(xac_frames_fix(b, 0, 0, &pin)); /* back again */
    xac_frames_unfix(b, &pin);
    xac_frames_locked_tell(b);
    list_of(pool, before);
    xac_frames_leave(a);
    xac_frames_get_stats(pool, &stats, sizeof stats);
    must_eq(stats.hits_stale, 2);
    list_of(pool, after); /* who has those frames now has not moved */
    must(memcmp(before, after, sizeof before) == 0);
    xac_frames_leave(b);
    must_be_whole(pool, 0);
    xac_frames_close(pool);
}
END_TEST

/* ---- Every frame fixed (N09) ------------------------------------------------------- */

/* full_make -- a pool of four frames; out its user, and pins of all four. */
static struct xac_frames *
full_make(struct xac_frames_config c, struct xac_frames_user **userp,
          struct xac_frames_pin *pins)
{
    struct xac_frames *pool;

    c.n_pages = 100;
    c.n_frames = 4;
    c.n_users = 2;
    must_ok(xac_frames_create(&c, NULL, NULL, &pool));
    must_ok(xac_frames_join(pool, userp));
    for (uint64_t page = 0; page < 4; page++)
        must_ok(xac_frames_fix(*userp, page, 0, &pins[page]));
    return pool;
}

static void
full_end(struct xac_frames *pool, struct xac_frames_user *user,
         const struct xac_frames_pin *pins)
{
    for (int i = 0; i < 4; i++)
        xac_frames_unfix(user, &pins[i]);
    xac_frames_leave(user);
    must_be_whole(pool, 0);
    xac_frames_close(pool);
}

struct waiter {
    struct xac_frames *pool;
    _Atomic uint64_t begun;
    int rc;
};

static void *
waiter_run(void *arg)
{
    struct waiter *w = arg;
    struct xac_frames_user *user;
    struct xac_frames_pin pin;

    must_ok(xac_frames_join(w->pool, &user));
    atomic_store(&w->begun, 1);
    w->rc = xac_frames_fix(user, 50, 0, &pin);
    if (w->rc == 0)
        xac_frames_unfix(user, &pin);
    xac_frames_leave(user);
    return NULL;
}

/* The thread that has the frames is off its processor for 200 ms; yields alone last less than one. */
START_TEST(wait_for_a_holder_that_does_not_run)
{
    for (uint32_t policy = 0; policy < XAC_FRAMES_N_POLICIES; policy++) {
        struct xac_frames_config c = {.policy = policy, .full_ms = 60000};
        struct xac_frames_pin pins[4];
        struct xac_frames_user *user;
        struct waiter w = {.pool = full_make(c, &user, pins)};
        pthread_t thread;

        must_eq(pthread_create(&thread, NULL, waiter_run, &w), 0);
        proc_await(&w.begun, 1, 30);
        proc_sleep_us(200000);
        xac_frames_unfix(user, &pins[2]);
        must_eq(pthread_join(thread, NULL), 0);
        must_eq(w.rc, 0);
        must_ok(xac_frames_fix(user, 2, 0, &pins[2]));
        full_end(w.pool, user, pins);
    }
}
END_TEST

/* The error comes, and not before its time; at once if the user itself is all that it waits for. */
START_TEST(give_up_after_a_while)
{
    for (uint32_t policy = 0; policy < XAC_FRAMES_N_POLICIES; policy++) {
        struct xac_frames_config timed = {.policy = policy, .full_ms = 100};
        struct xac_frames_config own = {.policy = policy,
                                        .full_ms = UINT32_MAX,
                                        .pins_max = 8};
        struct xac_frames_pin pins[4], more;
        struct xac_frames_user *user;
        struct xac_frames *pool = full_make(timed, &user, pins);
        double since = env_now();

        must_eq(xac_frames_fix(user, 50, 0, &more), ENOBUFS);
        must(env_now() - since >= 0.1);
        full_end(pool, user, pins);
        pool = full_make(own, &user, pins);
        must_ok(xac_frames_fix(user, 2, 0,
                               &more)); /* one of them twice: five pins, four frames */
        must_eq(xac_frames_fix(user, 50, 0, &more), ENOBUFS);
        xac_frames_unfix(user, &pins[2]);
        full_end(pool, user, pins);
    }
}
END_TEST

/* ---- Threads ---------------------------------------------------------------------- */

struct fuzz {
    struct xac_frames *pool;
    struct store *store;
    uint64_t seed;
};

static void *
fuzz_run(void *arg)
{
    struct fuzz *f = arg;
    struct xac_frames_user *user;
    struct xac_frames_pin pin;

    must_ok(xac_frames_join(f->pool, &user));
    for (int i = 0; i < 3000; i++) {
        uint64_t page = mix(&f->seed) % 100;
        int rc;

        if (mix(&f->seed) % 64 == 0)
            must_ok(xac_frames_flush(user, page));
        do
            rc = xac_frames_fix(user, page, 0, &pin);
        while (rc == ENOBUFS);
        must_ok(rc);
        latch_take(f->store, page);
        ++*(uint64_t *)pin.data;
        latch_drop(f->store, page);
        xac_frames_mark_dirty(user, &pin);
        xac_frames_unfix(user, &pin);
    }
    xac_frames_leave(user);
    return NULL;
}

/* No policy keeps a ghost of a page that was invalidated: nobody asks for it by that number. */
START_TEST(invalidated_pages_leave_no_ghost)
{
    static const uint32_t policies[] = {XAC_FRAMES_2Q, XAC_FRAMES_CAR, XAC_FRAMES_LIRS};
    struct xac_frames_config c = config_of(policies[_i], 0, 0);
    struct xac_frames_user *user;
    struct xac_frames_pin pin;
    struct xac_frames *pool;
    uint64_t seed = env_seed();

    c.parts = 1;
    must_ok(xac_frames_create(&c, NULL, NULL, &pool));
    must_ok(xac_frames_join(pool, &user));
    for (int i = 0; i < 5000; i++) {
        uint64_t page = mix(&seed) % (2 * N_FRAMES);

        must_ok(xac_frames_fix(user, page, 0, &pin));
        xac_frames_unfix(user, &pin);
        if (i % 3 == 0)
            must_ok(xac_frames_invalidate(user, page));
        must_eq(xac_frames_ghost_find(&pool->locked->policies[0], POLICY_NO_PAGE),
                POLICY_NONE);
    }
    xac_frames_leave(user);
    must_be_whole(pool, 0);
    xac_frames_close(pool);
}
END_TEST

/* change -- the page is dirty then. */
static int
change(struct xac_frames_user *user, uint64_t page)
{
    struct xac_frames_pin pin;
    int rc = xac_frames_fix(user, page, 0, &pin);

    if (rc == 0) {
        xac_frames_mark_dirty(user, &pin);
        xac_frames_unfix(user, &pin);
    }
    return rc;
}

/*
 * All pages but the last used are dirty: a miss looks at 16 of them, not at all, and writes one; but if
 * none can be written it finds the clean one.
 */
START_TEST(the_search_for_a_clean_page_ends)
{
    for (uint32_t policy = 0; policy < XAC_FRAMES_N_POLICIES; policy++) {
        struct xac_frames_config c = {.n_pages = 2000,
                                      .n_frames = 1000,
                                      .n_users = 1,
                                      .page_bytes = 64,
                                      .policy = policy};
        struct store *store = store_make(c.n_pages, c.page_bytes);
        struct xac_frames_io io = store_io(store);
        struct xac_frames_stats before, after;
        struct xac_frames_user *user;
        struct xac_frames *pool;

        must_ok(xac_frames_create(&c, NULL, &io, &pool));
        must_ok(xac_frames_join(pool, &user));
        for (uint64_t page = 0; page < 1000; page++)
            must_ok(change(user, page));
        xac_frames_get_stats(pool, &before, sizeof before);
        must_ok(change(user, 1000));
        xac_frames_get_stats(pool, &after, sizeof after);
        must_eq(after.writes_inline - before.writes_inline, 1);
        must(after.offers - before.offers <= 16 + 1);
        must(policy != XAC_FRAMES_NB_GCLOCK
             || after.sweep_steps - before.sweep_steps <= 16 + 1);
        must_ok(xac_frames_flush(user, 1000));
        atomic_store(&store->write_rc, EIO);
        must_ok(change(user, 1001));
        must_eq(change(user, 1002), EIO);
        atomic_store(&store->write_rc, 0);
        must_ok(change(user, 1002));
        xac_frames_leave(user);
        must_be_whole(pool, 0);
        xac_frames_close(pool);
    }
}
END_TEST

START_TEST(every_policy_loses_no_update)
{
    for (uint32_t policy = 0; policy < XAC_FRAMES_N_POLICIES; policy++)
        for (uint32_t batch = 0; batch < 2; batch++) {
            struct xac_frames_config c = config_of(policy, batch * 64, batch * 32);
            struct store *store = store_make(100, 64);
            struct xac_frames_io io = store_io(store);
            struct xac_frames_user *user;
            struct xac_frames *pool;
            struct fuzz fuzz[4];
            pthread_t threads[4];
            uint64_t sum = 0;

            c.n_pages = 100;
            c.n_frames = 16;
            c.page_bytes = 64;
            c.lock = policy % 2;
            must_ok(xac_frames_create(&c, NULL, &io, &pool));
            for (unsigned i = 0; i < 4; i++) {
                fuzz[i] = (struct fuzz){.pool = pool,
                                        .store = store,
                                        .seed = env_seed() + 10 * policy + i};
                must_eq(pthread_create(&threads[i], NULL, fuzz_run, &fuzz[i]), 0);
            }
            for (unsigned i = 0; i < 4; i++)
                must_eq(pthread_join(threads[i], NULL), 0);
            must_be_whole(pool, 0);
            must_ok(xac_frames_join(pool, &user));
            must_ok(xac_frames_flush_all(user));
            for (uint64_t page = 0; page < 100; page++)
                sum += *(uint64_t *)(void *)store_page(store, page);
            must_eq(sum, 4 * 3000);
            must_eq(atomic_load(&store->n_overlaps), 0);
            xac_frames_leave(user);
            xac_frames_close(pool);
        }
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("policies of page frames");
    TCase *t = env_tcase(s, "policies", 120);

    tcase_add_test(t, lru_hits_are_those_of_stack_distances);
    tcase_add_test(t, batches_change_no_victim);
    tcase_add_test(t, loops_tell_policies_apart);
    tcase_add_test(t, scans_do_not_flush_what_is_used);
    tcase_add_test(t, batches_take_the_lock_rarely);
    tcase_add_test(t, a_full_queue_waits_for_the_lock);
    tcase_add_test(t, others_go_on_while_the_holder_is_stopped);
    tcase_add_test(t, stale_hits_are_dropped);
    tcase_add_loop_test(t, invalidated_pages_leave_no_ghost, 0, 3);
    tcase_add_test(t, the_search_for_a_clean_page_ends);
    tcase_add_test(t, wait_for_a_holder_that_does_not_run);
    tcase_add_test(t, give_up_after_a_while);
    tcase_add_test(t, every_policy_loses_no_update);
    return env_main(s);
}
