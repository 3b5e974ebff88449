/* SPDX-License-Identifier: MIT */
/*
 * check_frames.c -- page frames, one thread: the state machine, hits and misses, the clock
 * against a model, errors, write-back.
 *
 *   XAC_REFS=n  fixes compared with the model (400,000)
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include "one_pool.h"

/* ---- Frames (N01, N03) ------------------------------------------------------------ */

/* A descriptor with this word, in life 7. */
static frame_ref
frame_with(struct frame *f, uint32_t word)
{
    memset(f, 0, sizeof *f);
    atomic_store(&f->state, (uint64_t)7 << 32 | word);
    return frame_ref_make(7, 0);
}

/* A step that the program must stop at, from words that do not have it: in a process of its own. */
static void
cancel_child(void *arg)
{
    struct frame f;
    frame_ref ref = frame_with(&f, *(uint32_t *)arg);

    frame_cancel(&f, ref);
    must_eq(frame_word(frame_load(&f)), FRAME_GONE);
}

static void
unpin_child(void *arg)
{
    struct frame f;

    (void)frame_with(&f, *(uint32_t *)arg);
    frame_unpin(&f);
}

#ifdef XAC_DEBUG
# define IS_DEBUG true /* xac_assert() looks */
#else
# define IS_DEBUG false
#endif

static bool
can(void (*step)(void *), uint32_t word)
{
    return proc_wait(proc_spawn(step, &word)) == 0;
}

START_TEST(follow_the_state_machine)
{
    static const uint32_t words[] = {FRAME_GONE,
                                     0,
                                     1,
                                     2,
                                     FRAME_DIRTY,
                                     FRAME_DIRTY | 1,
                                     FRAME_FLUSHING | 1,
                                     FRAME_DIRTY | FRAME_FLUSHING | 1};
    struct frame f;

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        uint32_t w = words[i];
        bool gone = w == FRAME_GONE, dirty = !gone && (w & FRAME_DIRTY),
             flushing = !gone && (w & FRAME_FLUSHING);
        frame_ref ref = frame_with(&f, w);
        frame_ref former = frame_ref_make(6, 0);

        must_eq(frame_try_pin(&f, ref), !gone);
        must_eq(frame_word(frame_load(&f)), gone ? w : w + 1);
        (void)frame_with(&f, w);
        must(!frame_try_pin(&f, former));
        must(!frame_try_retire(&f, former));
        must(!frame_flush_begin(&f, former, false));
        must_eq(frame_word(frame_load(&f)), w);
        must_eq(frame_try_retire(&f, ref), w == 0);
        must_eq(frame_word(frame_load(&f)), w == 0 ? FRAME_GONE : w);
        (void)frame_with(&f, w);
        must_eq(frame_flush_begin(&f, ref, true), dirty && !flushing && w == FRAME_DIRTY);
        (void)frame_with(&f, w);
        must_eq(frame_flush_begin(&f, ref, false), dirty && !flushing);
        if (dirty && !flushing)
            must_eq(frame_word(frame_load(&f)), w - FRAME_DIRTY + FRAME_FLUSHING + 1);
        (void)frame_with(&f, w);
        must_eq(frame_flush_retire(&f, ref), w == (FRAME_FLUSHING | 1));
        (void)frame_with(&f, w);
        if (!gone && (w & FRAME_PINS) != 0) {
            frame_unpin(&f);
            must_eq(frame_word(frame_load(&f)), w - 1);
        }
        must_eq(can(cancel_child, w), w == 1);
    }
    must(!can(unpin_child, FRAME_GONE) || !IS_DEBUG);
    must(!can(unpin_child, 0) || !IS_DEBUG);
    must(can(unpin_child, 1));
    (void)frame_with(&f, FRAME_GONE);
    must_eq(frame_begin(&f, 0, 9), frame_ref_make(8, 0));
    must_eq(frame_word(frame_load(&f)), 1);
    frame_unpin(&f);
    must_eq(frame_word(frame_load(&f)), 0);
    /* Life 0 would make the reference to descriptor 0 look like none in its high half. */
    atomic_store(&f.state, (uint64_t)UINT32_MAX << 32 | FRAME_GONE);
    must_eq(frame_begin(&f, 0, 9), frame_ref_make(1, 0));
}
END_TEST

START_TEST(count_a_hit)
{
    struct xac_frames_pin a, b;
    struct frame *f;

    pool_plain(10, 4);
    a = fix(3);
    f = pool_frame(pool, a.ref);
    must_eq(word_of(a.ref), 1);
    must_eq(atomic_load(&f->weight), 1);
    b = fix(3);
    must(b.ref == a.ref && b.data == a.data);
    must_eq(word_of(a.ref), 2);
    must_eq(atomic_load(&f->weight), 2);
    xac_frames_unfix(user, &a);
    xac_frames_unfix(user, &b);
    for (int i = 0; i < 5; i++)
        touch(3);
    must_eq(atomic_load(&f->weight), 3); /* the cap */
    must_eq(stats().hits, 6);
    must_eq(stats().misses, 1);
    must_eq(atomic_load(&store->n_reads), 1);
    pool_end();
}
END_TEST

/* ---- The clock (N04 to N07, N25) -------------------------------------------------- */

START_TEST(fill_vacant_slots_first)
{
    pool_plain(10, 4);
    for (uint64_t page = 0; page < 4; page++) {
        must_eq(atomic_load(&pool->region->vacant), 4 - page);
        must_eq(hand_get(pool), page);
        touch(page);
        must(slot_load(ring_slot(pool, (uint32_t)page)) != 0);
        must_be_whole(pool, 0);
    }
    must_eq(atomic_load(&pool->region->vacant), 0);
    must_eq(stats().evictions, 0);
    touch(4);
    must_eq(stats().evictions, 1);
    must(!is_mapped(0));
    pool_end();
}
END_TEST

/* What Nb-GCLOCK must do: the slot under the hand first; decrement, then test. */
struct model {
    uint64_t pages[1024];
    unsigned weights[1024];
    int slot_of[8192]; /* -1: not there */
    unsigned n, used, hand, cap;
};

/* model_fix -- the slot the page is in afterwards; out the page that left, or -1. */
static unsigned
model_fix(struct model *m, uint64_t page, int64_t *leftp)
{
    unsigned i;

    *leftp = -1;
    if (m->slot_of[page] >= 0) {
        i = (unsigned)m->slot_of[page];
        if (m->weights[i] < m->cap)
            m->weights[i]++;
        return i;
    }
    if (m->used < m->n) {
        i = m->used++;
    } else {
        for (i = m->hand; --m->weights[i] > 0;)
            i = (i + 1) % m->n;
        *leftp = (int64_t)m->pages[i];
        m->slot_of[m->pages[i]] = -1;
    }
    m->hand = (i + 1) % m->n;
    m->pages[i] = page;
    m->weights[i] = 1;
    m->slot_of[page] = (int)i;
    return i;
}

static void
compare_with_model(unsigned n_frames, unsigned n_pages, uint64_t n_fixes, uint32_t cap,
                   uint32_t cells)
{
    struct model *m = calloc(1, sizeof *m);
    struct xac_frames_user *users[8];
    unsigned n_users =
        cells == 1 ? 8 : 1; /* by several words one alone is told all in turn */
    uint64_t seed = env_seed();

    pool_make(n_pages, n_frames,
              (struct xac_frames_config){.weight_max = cap, .hand_cells = cells});
    users[0] = user;
    for (unsigned i = 1; i < n_users; i++)
        must_ok(xac_frames_join(pool, &users[i]));
    *m = (struct model){.n = n_frames, .cap = cap};
    memset(m->slot_of, 0xff, sizeof m->slot_of);
    for (uint64_t k = 0; k < n_fixes; k++) {
        uint64_t a = mix(&seed) % n_pages, b = mix(&seed) % n_pages, page = a < b ? a : b;
        int64_t left;
        unsigned slot = model_fix(m, page, &left);
        frame_ref ref;

        user = users[k % n_users];
        touch(page);
        ref = slot_load(ring_slot(pool, slot));
        must(ref != 0 && atomic_load(&pool_frame(pool, ref)->page_id) == page);
        must(left < 0 || !is_mapped((uint64_t)left));
    }
    must_eq(hand_get(pool) % n_frames, m->hand);
    must_eq(stats().stale_refs, 0);
    for (uint32_t i = 0; i < cells; i++)
        must(atomic_load(&pool->cells[i].moved) > 2 * HAND_RUN);
    user = users[0];
    for (unsigned i = 1; i < n_users; i++)
        xac_frames_leave(users[i]);
    free(m);
    pool_end();
}

START_TEST(choose_the_models_victims)
{
    compare_with_model(512, 4096, env_number("XAC_REFS", 400000), 1000000, 1);
}
END_TEST

START_TEST(choose_the_models_victims_capped)
{
    compare_with_model(512, 4096, env_number("XAC_REFS", 400000) / 2, 3, 1);
    compare_with_model(100, 4096, 100000, 5, 1);
}
END_TEST

START_TEST(choose_the_models_victims_with_a_striped_hand)
{
    compare_with_model(512, 4096, 200000, 3, 64);
}
END_TEST

/*
 * Users that take turns by chance are told each place once.  The user that ends a run of a word goes to the next
 * word, so none can be more runs ahead of another than there are users.
 */
START_TEST(give_each_place_away_once)
{
    enum {
        USERS = 8,
        TAKEN = 1000000
    };
    struct xac_frames_user *users[USERS];

    for (uint32_t cells = 1; cells <= 64; cells *= 2) {
        uint64_t seed = env_seed() + cells, ahead = (USERS + 1) * cells * HAND_RUN;
        unsigned char *told = calloc(TAKEN + ahead, 1);

        pool_make(10, 1, (struct xac_frames_config){.hand_cells = cells});
        users[0] = user;
        for (int i = 1; i < USERS; i++)
            must_ok(xac_frames_join(pool, &users[i]));
        for (uint64_t k = 0; k < TAKEN; k++) {
            uint64_t at = hand_take(users[mix(&seed) % USERS]);

            must(at < k + ahead && told[at] == 0);
            told[at] = 1;
        }
        must_eq(hand_get(pool), TAKEN);
        free(told);
        for (int i = 1; i < USERS; i++)
            xac_frames_leave(users[i]);
        pool_end();
    }
}
END_TEST

START_TEST(spread_the_hand_over_large_pools)
{
    static const uint32_t want[][2] = {{100, 1},     {4095, 1},    {4096, 2},
                                       {8191, 2},    {8192, 4},    {100000, 32},
                                       {131072, 64}, {1 << 20, 64}};

    for (int i = 0; i < 8; i++) {
        struct xac_frames_config c = {.n_pages = 1, .n_frames = want[i][0], .n_users = 1};

        must_ok(xac_frames_create(&c, NULL, NULL, &pool));
        must_eq(pool->region->config.hand_cells, want[i][1]);
        xac_frames_close(pool);
    }
}
END_TEST

START_TEST(turn_the_hand_over)
{
    static const uint32_t sizes[] = {1, 7, 64, 1000};
    static const uint64_t starts[] = {UINT64_C(1) << 63, UINT64_MAX - 5};

    for (int i = 0; i < 4; i++)
        for (int s = 0; s < 2; s++) {
            uint64_t before;

            pool_plain(3000, sizes[i]);
            atomic_store(&pool->cells[0].moved, starts[s]);
            for (uint64_t page = 0; page < sizes[i]; page++)
                touch(page);
            for (uint64_t page = sizes[i]; page < 2500; page++) {
                before = hand_get(pool);
                touch(page);
                must(hand_get(pool) - before >= 1 && hand_get(pool) - before <= sizes[i]);
            }
            pool_end();
        }
}
END_TEST

/* ---- Fixed pages (N08, N09) ------------------------------------------------------- */

START_TEST(leave_fixed_pages_alone)
{
    struct xac_frames_pin pins[32];

    pool_plain(100000, 64);
    for (uint64_t i = 0; i < 32; i++)
        pins[i] = fix(i);
    for (uint64_t k = 0; k < 1000000; k++)
        touch(32 + k % 99968);
    must_eq(stats().misses, 32 + 1000000);
    for (uint64_t i = 0; i < 32; i++) {
        must_eq(slot_load(&pool->table[i]), pins[i].ref);
        must_eq(word_of(pins[i].ref), 1);
        xac_frames_unfix(user, &pins[i]);
    }
    pool_end();
}
END_TEST

/* fix_cancelled -- wait for a frame; ret what fix() says, not PTHREAD_CANCELED. */
static void *
fix_cancelled(void *arg)
{
    struct xac_frames_user *mine = arg;
    struct xac_frames_pin pin;

    return (void *)(intptr_t)xac_frames_fix(mine, 50, 0, &pin);
}

/* A fix() holds a frame of its own while it waits for another one: it goes on to its end. */
START_TEST(end_a_wait_before_the_thread)
{
    struct xac_frames_pin pins[4];
    struct xac_frames_user *other;
    pthread_t thread;
    void *said;

    /* So long that twenty rounds fit on a busy machine as well. */
    pool_make(100, 4, (struct xac_frames_config){.full_ms = 3000});
    must_ok(xac_frames_join(pool, &other));
    for (uint64_t i = 0; i < 4; i++)
        pins[i] = fix(i);
    must_eq(pthread_create(&thread, NULL, fix_cancelled, other), 0);
    while (stats().full_yields < 20) /* it sleeps between rounds by now */
        (void)sched_yield();
    must_eq(pthread_cancel(thread), 0);
    must_eq(pthread_join(thread, &said), 0);
    must_eq((intptr_t)said, ENOBUFS);
    xac_frames_leave(other);
    for (int i = 0; i < 4; i++)
        xac_frames_unfix(user, &pins[i]);
    for (uint64_t page = 10; page < 40; page++)
        touch(page);
    pool_end();
}
END_TEST

START_TEST(give_up_when_all_are_fixed)
{
    struct xac_frames_pin pins[4], more;

    pool_make(100, 4, (struct xac_frames_config){.full_tries = 5});
    for (uint64_t i = 0; i < 4; i++)
        pins[i] = fix(i);
    must_eq(xac_frames_fix(user, 50, 0, &more), ENOBUFS);
    must_eq(stats().full_yields, 5);
    must(!is_mapped(50));
    must_be_whole(pool, 4);
    xac_frames_unfix(user, &pins[2]);
    more = fix(50);
    must(!is_mapped(2));
    xac_frames_unfix(user, &more);
    for (int i = 0; i < 4; i++)
        if (i != 2)
            xac_frames_unfix(user, &pins[i]);
    pool_end();
}
END_TEST

/* ---- Write-back (N18 to N20), errors (N21) ---------------------------------------- */

START_TEST(write_before_a_page_leaves)
{
    uint64_t seed = env_seed();
    uint64_t *newest = calloc(256, sizeof *newest);

    pool_plain(256, 16);
    store->on_write = must_be_mapped;
    for (uint64_t k = 1; k <= 50000; k++) {
        uint64_t page = mix(&seed) % 256;

        if (mix(&seed) % 3 == 0) {
            newest[page] = k;
            change(page, k);
        } else {
            struct xac_frames_pin pin = fix(page);

            must_eq(*(uint64_t *)pin.data, newest[page]);
            xac_frames_unfix(user, &pin);
        }
        if (k % 100 == 0) /* absent from the table: newest in the file (P7) */
            for (uint64_t i = 0; i < 256; i++)
                must(is_mapped(i) || stored(i) == newest[i]);
    }
    must_eq(atomic_load(&store->n_logged), atomic_load(&store->n_writes));
    must_ok(xac_frames_flush_all(user));
    for (uint64_t i = 0; i < 256; i++)
        must_eq(stored(i), newest[i]);
    free(newest);
    pool_end();
}
END_TEST

START_TEST(prefer_clean_pages)
{
    pool_plain(100, 8);
    for (uint64_t page = 0; page < 8; page++)
        if (page % 2 == 0)
            change(page, 1);
        else
            touch(page);
    for (uint64_t page = 8; page < 12; page++) {
        struct xac_frames_pin pin = fix(page); /* stays fixed: no clean one besides */

        (void)pin;
        must_eq(stats().writes, 0);
    }
    must(is_mapped(0) && is_mapped(2) && is_mapped(4) && is_mapped(6));
    touch(20);
    must_eq(stats().writes_inline, 1);
    must_be_whole(pool, 4);
}
END_TEST

START_TEST(flush_and_invalidate)
{
    struct xac_frames_pin pin;

    pool_plain(10, 4);
    change(1, 77);
    change(2, 78);
    must_ok(xac_frames_flush(user, 1));
    must_eq(stored(1), 77);
    must_eq(stored(2), 0);
    must_ok(xac_frames_flush(user, 1)); /* clean: nothing to do */
    must_ok(xac_frames_flush(user, 9)); /* not here */
    must_eq(stats().writes, 1);
    pin = fix(2);
    must_eq(xac_frames_invalidate(user, 2), EBUSY);
    must_ok(xac_frames_flush(user, 2)); /* fixed, and flushed all the same */
    must_eq(stored(2), 78);
    xac_frames_unfix(user, &pin);
    change(2, 79);
    must_ok(xac_frames_invalidate(user, 2));
    must(!is_mapped(2));
    must_be_whole(pool, 0);
    must_ok(xac_frames_flush_all(user));
    must_eq(stored(2), 78);
    must_ok(xac_frames_invalidate(user, 2));
    pin = fix(2);
    must_eq(*(uint64_t *)pin.data, 78);
    xac_frames_unfix(user, &pin);
    must_ok(xac_frames_fix(user, 5, XAC_FRAMES_NEW, &pin));
    must_eq(*(uint64_t *)pin.data, 0);
    xac_frames_unfix(user, &pin);
    must_eq(word_of(pin.ref), FRAME_DIRTY);
    pool_end();
}
END_TEST

START_TEST(survive_errors_of_reads_and_writes)
{
    struct xac_frames_pin pin;

    pool_make(100, 4, (struct xac_frames_config){.full_tries = 3});
    atomic_store(&store->read_rc, EIO);
    must_eq(xac_frames_fix(user, 1, 0, &pin), EIO);
    must_be_whole(pool, 0);
    must_eq(xac_frames_fix(user, 1, 0, &pin), EIO);
    atomic_store(&store->read_rc, 0);
    for (uint64_t page = 1; page <= 4; page++)
        change(page, page);
    atomic_store(&store->write_rc, ENOSPC);
    must_eq(xac_frames_fix(user, 50, 0, &pin), ENOSPC);
    must_eq(xac_frames_flush(user, 1), ENOSPC);
    must_eq(xac_frames_flush_all(user), ENOSPC);
    must_be_whole(pool, 0);
    atomic_store(&store->write_rc, 0);
    atomic_store(&store->log_rc, EDQUOT); /* no write before the log */
    must_eq(xac_frames_fix(user, 50, 0, &pin), EDQUOT);
    atomic_store(&store->log_rc, 0);
    for (uint64_t page = 1; page <= 4; page++)
        must_eq(stored(page), 0);
    touch(50);
    must_ok(xac_frames_flush_all(user));
    for (uint64_t page = 1; page <= 4; page++)
        must_eq(stored(page), page);
    pool_end();
}
END_TEST

START_TEST(refuse_what_is_out_of_range)
{
    struct xac_frames_config good = {.n_pages = 10,
                                     .n_frames = 4,
                                     .n_users = 2,
                                     .page_bytes = 64};
    struct xac_frames_config bad[9];
    struct xac_frames_user *users[2], *third;
    struct xac_frames_pin pin;
    struct xac_frames_io io;
    void *memory = proc_shared(xac_frames_bytes(&good));

    for (int i = 0; i < 9; i++)
        bad[i] = good;
    bad[0].n_pages = 0;
    bad[1].n_pages = UINT64_C(1) << 48;
    bad[2].n_frames = 0;
    bad[3].n_users = 0;
    bad[4].n_users = 65536;
    bad[5].page_bytes = 100;
    bad[6].policy = 99;
    bad[7].hand_cells = 3;
    bad[8].weight_max = UINT32_MAX;
    store = store_make(10, 64);
    io = store_io(store);
    for (int i = 0; i < 9; i++) {
        must_eq(xac_frames_bytes(&bad[i]), 0);
        must_eq(xac_frames_create(&bad[i], NULL, &io, &pool), EINVAL);
    }
    must_eq(xac_frames_create(&good, NULL, NULL, &pool), EINVAL);
    must_eq(xac_frames_create(&good, (char *)memory + 64, &io, &pool), EINVAL);
    must_eq(xac_frames_attach(memory, &io, &pool), ENOENT);
    must_ok(xac_frames_create(&good, memory, &io, &pool));
    must_ok(xac_frames_join(pool, &users[0]));
    must_ok(xac_frames_join(pool, &users[1]));
    must_eq(xac_frames_join(pool, &third), EAGAIN);
    must_eq(xac_frames_fix(users[0], 10, 0, &pin), EINVAL);
    must_eq(xac_frames_fix(users[0], 1, 2, &pin), EINVAL);
    must_eq(xac_frames_flush(users[0], 10), EINVAL);
    must_eq(xac_frames_invalidate(users[0], 10), EINVAL);
    xac_frames_leave(users[0]);
    must_ok(xac_frames_join(pool, &third));
    must_be_whole(pool, 0);
    xac_frames_leave(users[1]);
    xac_frames_leave(third);
    xac_frames_close(pool);
}
END_TEST

/* N24: the table does not fill up with pages that were here once. */
START_TEST(see_many_pages)
{
    uint64_t steps = 0;

    pool_plain(20000, 8);
    for (int round = 0; round < 3; round++) {
        uint64_t before = stats().sweep_steps;

        for (uint64_t page = 0; page < 20000; page++)
            touch(page);
        must(round < 2 || stats().sweep_steps - before == steps); /* no slower */
        steps = stats().sweep_steps - before;
    }
    must_eq(stats().evictions, 3 * 20000 - 8);
    pool_end();
}
END_TEST

START_TEST(simulate_without_memory)
{
    struct xac_frames_config c = {.n_pages = 1000, .n_frames = 10, .n_users = 1};
    struct xac_frames_pin pin;

    must_ok(xac_frames_create(&c, NULL, NULL, &pool));
    must_ok(xac_frames_join(pool, &user));
    for (uint64_t page = 0; page < 1000; page++) {
        must_ok(xac_frames_fix(user, page, 0, &pin));
        must(pin.data == NULL);
        xac_frames_mark_dirty(user, &pin);
        xac_frames_unfix(user, &pin);
    }
    must_eq(stats().misses, 1000);
    must_eq(stats().reads, 0);
    pool_end();
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("frames");
    TCase *t = env_tcase(s, "frames", 60);

    tcase_add_test(t, follow_the_state_machine);
    tcase_add_test(t, count_a_hit);
    tcase_add_test(t, fill_vacant_slots_first);
    tcase_add_test(t, choose_the_models_victims);
    tcase_add_test(t, choose_the_models_victims_capped);
    tcase_add_test(t, choose_the_models_victims_with_a_striped_hand);
    tcase_add_test(t, give_each_place_away_once);
    tcase_add_test(t, spread_the_hand_over_large_pools);
    tcase_add_test(t, turn_the_hand_over);
    tcase_add_test(t, leave_fixed_pages_alone);
    tcase_add_test(t, give_up_when_all_are_fixed);
    tcase_add_test(t, end_a_wait_before_the_thread);
    tcase_add_test(t, write_before_a_page_leaves);
    tcase_add_test(t, prefer_clean_pages);
    tcase_add_test(t, flush_and_invalidate);
    tcase_add_test(t, survive_errors_of_reads_and_writes);
    tcase_add_test(t, refuse_what_is_out_of_range);
    tcase_add_test(t, see_many_pages);
    tcase_add_test(t, simulate_without_memory);
    return env_main(s);
}
