/* SPDX-License-Identifier: MIT */
/*
 * check_races.c -- page frames: one thread stops at a certain step of a fix, another one goes
 * on (N11 to N14).  Only debug builds have such steps.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "one_pool.h"

#ifdef XAC_DEBUG

/* The helper thread stops once, until `go_on`: at this point, or at its n-th. */
static const char *stop_at;
static uint64_t stop_at_nth;
static _Atomic int stopped, go_on, n_helped;
static _Thread_local bool may_stop;
static _Thread_local uint64_t n_passed;

static void
stop_hook(const char *name)
{
    if (!may_stop)
        return;
    n_passed++;
    if (stop_at != NULL ? strcmp(name, stop_at) != 0 : n_passed != stop_at_nth)
        return;
    may_stop = false;
    atomic_store(&stopped, 1);
    while (atomic_load(&go_on) == 0)
        proc_sleep_us(100);
}

struct helper {
    pthread_t thread;
    uint64_t page;
    struct xac_frames_pin pin;
};

static void *
helper_run(void *arg)
{
    struct helper *h = arg;
    struct xac_frames_user *mine;

    must_ok(xac_frames_join(pool, &mine));
    may_stop = true;
    must_ok(xac_frames_fix(mine, h->page, 0, &h->pin));
    may_stop = false;
    atomic_fetch_add(&n_helped, 1);
    xac_frames_leave(mine);
    return NULL;
}

/* Another thread fixes the page and has stopped at the point. */
static void
helper_start(struct helper *h, uint64_t page, const char *point)
{
    stop_at = point;
    h->page = page;
    atomic_store(&stopped, 0);
    atomic_store(&go_on, 0);
    atomic_store(&n_helped, 0);
    xac_kill_hook = stop_hook;
    must_eq(pthread_create(&h->thread, NULL, helper_run, h), 0);
    while (atomic_load(&stopped) == 0)
        proc_sleep_us(100);
}

static void
helper_end(struct helper *h)
{
    atomic_store(&go_on, 1);
    must_eq(pthread_join(h->thread, NULL), 0);
    xac_kill_hook = NULL;
    xac_frames_unfix(user, &h->pin);
}

START_TEST(rescue_a_page_that_is_leaving)
{
    struct xac_frames_pin pin, before;
    struct helper h;

    pool_plain(100, 4);
    for (uint64_t page = 0; page < 4; page++)
        touch(page);
    change(1, 77);
    must_ok(xac_frames_flush(user, 1));
    before = fix(1);
    xac_frames_unfix(user, &before);
    for (uint64_t page = 0; page < 4; page++) /* heavier than 1, so that 1 goes first */
        atomic_store(&pool_frame(pool, slot_load(&pool->table[page]))->weight,
                     page == 1 ? 1 : 3);
    helper_start(&h, 50, "frames: removed");
    must(is_mapped(1));
    pin = fix(1); /* returns without waiting */
    must(pin.ref != before.ref && pin.data == before.data);
    must_eq(*(uint64_t *)pin.data, 77);
    must_eq(stats().rescues, 1);
    must_eq(atomic_load(&store->n_reads), 4);
    xac_frames_unfix(user, &pin);
    helper_end(&h);
    must_eq(slot_load(&pool->table[1]), pin.ref); /* the evictor has left it there */
    must_eq(stats().reads, 5);
    pool_end();
}
END_TEST

START_TEST(take_the_slot_of_a_slower_sweeper)
{
    struct helper h;

    pool_plain(100, 4);
    for (uint64_t page = 0; page < 4; page++)
        touch(page);
    helper_start(&h, 50, "frames: retired");       /* page 0 is GONE and in the ring */
    for (uint64_t page = 51; page <= 54; page++) { /* the hand comes around */
        must(is_mapped(0) && stats().evictions == page - 51);
        touch(page);
    }
    must(!is_mapped(0));
    must_eq(stats().evictions, 4);
    helper_end(&h); /* takes another slot */
    must(!is_mapped(51));
    must_eq(stats().evictions, 5);
    pool_end();
}
END_TEST

/* While a sweeper stands still, the others go on where it is, and leave nothing out when it goes on. */
START_TEST(share_a_round_among_sweepers)
{
    struct helper h;

    pool_plain(100, 8);
    for (uint64_t page = 0; page < 8; page++)
        touch(page);
    touch(0);
    touch(1);
    touch(2);                               /* weights 2, 2, 2, 1, 1, 1, 1, 1 */
    helper_start(&h, 50, "frames: retire"); /* has looked at 0 to 3 */
    touch(51);
    must(!is_mapped(4) && is_mapped(0) && is_mapped(1) && is_mapped(2) && is_mapped(3));
    helper_end(&h);
    must(!is_mapped(3));
    must_eq(hand_get(pool), 8 + 5);
    must_eq(stats().sweep_steps, 5);
    for (uint64_t page = 5; page < 8; page++) {
        touch(47 + page);
        must(!is_mapped(page));
    }
    pool_end();
}
END_TEST

/* Another sweeper's look, which finds the page between fixed. */
static void
take_the_next_look(const char *name)
{
    if (strcmp(name, "frames: look") == 0)
        (void)hand_take(user);
}

/* Others' looks lie between a sweeper's: one that sees fixed pages only sees the others before it gives up. */
START_TEST(see_every_frame_before_giving_up)
{
    struct xac_frames_pin pins[2];

    pool_make(100, 4, (struct xac_frames_config){.full_tries = 1});
    for (uint64_t page = 0; page < 4; page++)
        touch(page);
    pins[0] = fix(0);
    pins[1] = fix(2);
    xac_kill_hook = take_the_next_look;
    touch(50);
    xac_kill_hook = NULL;
    must_eq(stats().full_yields, 0);
    must(is_mapped(50) && is_mapped(0) && is_mapped(2));
    xac_frames_unfix(user, &pins[0]);
    xac_frames_unfix(user, &pins[1]);
    pool_end();
}
END_TEST

/*
 * T2: wherever a rescuer stops, a third thread that fixes the page, changes it and unfixes it
 * has used the same bytes.
 */
START_TEST(publish_a_rescued_page_whole)
{
    bool was_stopped = true;

    for (uint64_t k = 1; was_stopped; k++) {
        struct xac_frames_pin pin;
        struct helper evictor, rescuer;

        pool_plain(100, 4);
        for (uint64_t page = 0; page < 4; page++)
            touch(page);
        helper_start(&evictor, 50, "frames: removed"); /* page 0 */
        rescuer = (struct helper){.page = 0};
        stop_at = NULL;
        stop_at_nth = k;
        atomic_store(&stopped, 0);
        must_eq(pthread_create(&rescuer.thread, NULL, helper_run, &rescuer), 0);
        while (atomic_load(&stopped) == 0 && atomic_load(&n_helped) == 0)
            proc_sleep_us(100);
        was_stopped = atomic_load(&stopped) != 0;
        pin = fix(0);
        *(uint64_t *)pin.data = k;
        xac_frames_mark_dirty(user, &pin);
        xac_frames_unfix(user, &pin);
        atomic_store(&go_on, 1);
        must_eq(pthread_join(rescuer.thread, NULL), 0);
        must(rescuer.pin.data == pin.data);
        must_eq(*(uint64_t *)rescuer.pin.data, k);
        xac_frames_unfix(user, &rescuer.pin);
        helper_end(&evictor);
        must_ok(xac_frames_flush_all(user));
        must_eq(stored(0), k);
        pool_end();
        must(k < 100);
    }
}
END_TEST

/* T3: both read, one publishes, both use that one's bytes. */
START_TEST(read_twice_and_use_one)
{
    struct xac_frames_pin pin;
    struct helper h;

    pool_plain(100, 4);
    helper_start(&h, 7, "frames: publish");
    pin = fix(7);
    *(uint64_t *)pin.data = 99;
    helper_end(&h);
    must(h.pin.data == pin.data);
    must_eq(*(uint64_t *)h.pin.data, 99);
    must_eq(stats().reads, 2);
    must_eq(stats().reads_duplicate, 1);
    xac_frames_unfix(user, &pin);
    pool_end();
}
END_TEST

/* A page that a sweeper writes is re-dirtied meanwhile: it stays, and is written again. */
START_TEST(keep_a_page_changed_while_written)
{
    struct helper h;

    pool_plain(100, 1);
    change(3, 1);
    helper_start(&h, 50, "frames: written");
    must_eq(stored(3), 1);
    change(3, 2);
    helper_end(&h);
    must(!is_mapped(3));
    must_eq(stored(3), 2);
    must_eq(stats().writes, 2);
    pool_end();
}
END_TEST

static void
count_pins(const char *name)
{
    n_passed += strcmp(name, "frames: flush") == 0;
    stop_hook(name);
}

/* A frame that is in the ring and not yet in the table is its creator's alone, to cancel. */
START_TEST(flush_no_frame_that_is_private)
{
    struct xac_frames_pin pin;
    struct helper h;

    pool_plain(100, 4);
    for (uint64_t page = 0; page < 4; page++)
        touch(page);
    helper_start(&h, 50, "frames: removed"); /* has put its frame into the ring */
    xac_kill_hook = count_pins;
    n_passed = 0;
    must_ok(xac_frames_flush_all(user));
    must_eq(n_passed, 0);
    pin = fix(50); /* so that the helper has to cancel */
    xac_frames_mark_dirty(user, &pin);
    must_ok(xac_frames_flush_all(user));
    must_eq(n_passed, 1);
    xac_frames_unfix(user, &pin);
    helper_end(&h);
    must_eq(stats().lost_races, 1);
    pool_end();
}
END_TEST

START_TEST(go_on_while_others_stop_anywhere)
{
    static const char *const points[] = {"frames: found",   "frames: reserved",
                                         "frames: slot",    "frames: retire",
                                         "frames: retired", "frames: removed",
                                         "frames: read",    "frames: publish"};

    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        bool filling = strcmp(points[i], "frames: reserved") == 0;
        struct helper h;

        pool_plain(1000, 8);
        for (uint64_t page = 0; page < (filling ? 4 : 8); page++)
            touch(page);
        helper_start(&h, 900, points[i]);
        for (uint64_t page = 0; page < 500; page++)
            touch(page);
        must_eq(stats().full_yields, 0);
        helper_end(&h);
        pool_end();
    }
}
END_TEST

#endif /* XAC_DEBUG */

int
main(void)
{
    Suite *s = suite_create("frame races");
    TCase *t = env_tcase(s, "races", 60);

#ifdef XAC_DEBUG
    tcase_add_test(t, rescue_a_page_that_is_leaving);
    tcase_add_test(t, take_the_slot_of_a_slower_sweeper);
    tcase_add_test(t, share_a_round_among_sweepers);
    tcase_add_test(t, see_every_frame_before_giving_up);
    tcase_add_test(t, publish_a_rescued_page_whole);
    tcase_add_test(t, read_twice_and_use_one);
    tcase_add_test(t, keep_a_page_changed_while_written);
    tcase_add_test(t, flush_no_frame_that_is_private);
    tcase_add_test(t, go_on_while_others_stop_anywhere);
#else
    (void)t;
#endif
    return env_main(s);
}
