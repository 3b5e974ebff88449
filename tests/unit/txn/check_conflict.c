/* SPDX-License-Identifier: MIT */
/*
 * check_conflict.c -- access lists of pages and oldest-wins: all combinations of two
 * transactions, lists whole after every step, nobody beside a writer, page locks of the
 * dead.
 */
#include <config.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/common/core_world.h"
#include "tests/common/env.h"
#include "txn/reap.h"
#include "txn/conflict.h"
#include "txn/ctree.h"

#define READ_IT  XAC_SET_READ
#define WRITE_IT (XAC_SET_READ | XAC_SET_WRITE)

#define LINKS_MAX 64u

/* Low bits of a page's access word: offset / 64 of the first entry. */
#define HEAD_OF(word) ((word)&0x3fffffff)

static struct xac_env *env[4];

static void
open_four(void)
{
    for (int i = 0; i < 4; i++)
        env[i] = world_open(XAC_NONDURABLE);
}

/* links_of -- entries linked to a page, first to last; ret how many. */
static unsigned
links_of(struct xac_env *e, uint64_t page_no, struct xac_entry **links)
{
    uint64_t at = HEAD_OF(
        atomic_load_explicit(&world_page(e, page_no)->access, memory_order_acquire));
    unsigned n = 0;

    while (at != 0) {
        must(n < LINKS_MAX); /* no rings */
        links[n] = (struct xac_entry *)xac_shm_at(&e->shm, at * 64);
        must_eq(links[n]->page, xac_shm_offset(&e->shm, world_page(e, page_no)));
        at = atomic_load_explicit(&links[n]->next, memory_order_relaxed);
        n++;
    }
    return n;
}

/* must_be_consistent -- one writer alone, or readers only, among those that may commit. */
static void
must_be_consistent(struct xac_env *e, uint64_t page_no)
{
    struct xac_entry *links[LINKS_MAX];
    unsigned n = links_of(e, page_no, links), live = 0, writers = 0;

    for (unsigned i = 0; i < n; i++) {
        uint64_t word = atomic_load_explicit(&xac_txn_at(e, links[i]->slot)->word,
                                             memory_order_acquire);
        enum xac_txn_state s = xac_txn_state(word);
        uint32_t mode = atomic_load_explicit(&links[i]->mode, memory_order_relaxed);

        must((mode & XAC_SET_LINKED) != 0);
        if (s != XAC_TXN_PENDING && s != XAC_TXN_COMMITTING)
            continue;
        live++;
        writers += (mode & XAC_SET_WRITE) != 0;
    }
    must(writers == 0 || live == 1);
}

static bool
access_page(struct xac_env *e, uint64_t page_no, uint32_t mode)
{
    return mode == READ_IT ? world_read(e, page_no) : world_write(e, page_no);
}

static void
set_state(struct xac_env *e, enum xac_txn_state s)
{
    uint64_t word = atomic_load_explicit(&e->ctx.txn->word, memory_order_relaxed);

    atomic_store_explicit(&e->ctx.txn->word,
                          xac_txn_word(xac_txn_serial(word), e->self, s),
                          memory_order_release);
}

/* ---- two transactions --------------------------------------------------------------------- */

/* decide_pair -- what happens when env[1] wants a page that env[0] has. */
static void
decide_pair(uint32_t theirs, uint32_t mine, bool other_is_older, enum xac_txn_state state)
{
    bool is_conflict = ((theirs | mine) & XAC_SET_WRITE) != 0;
    bool we_lose =
        is_conflict
        && (state == XAC_TXN_COMMITTING || (state == XAC_TXN_PENDING && other_is_older));
    enum xac_txn_state left = is_conflict && state == XAC_TXN_PENDING && !other_is_older
                                  ? XAC_TXN_FAILED
                                  : state;
    static uint64_t page_no;
    struct xac_entry *links[LINKS_MAX];

    page_no++;
    world_begin(env[other_is_older ? 0 : 1]);
    world_begin(env[other_is_older ? 1 : 0]);
    must(access_page(env[0], page_no, theirs));
    set_state(env[0], state);
    must_eq(access_page(env[1], page_no, mine), !we_lose);
    must_eq(world_state(env[0]), left);
    must_eq(world_state(env[1]), we_lose ? XAC_TXN_FAILED : XAC_TXN_PENDING);
    must_be_consistent(env[0], page_no);
    must_eq(links_of(env[0], page_no, links), we_lose ? 1 : 2);
    set_state(env[0], XAC_TXN_FAILED); /* drop wants it decided */
    world_finish(env[0]);
    world_finish(env[1]);
    must_eq(links_of(env[0], page_no, links), 0);
}

START_TEST(decide_every_pair)
{
    static const enum xac_txn_state states[] = {XAC_TXN_PENDING, XAC_TXN_FAILED,
                                                XAC_TXN_COMMITTING, XAC_TXN_PUBLISHED};

    for (int i = 0; i < 32; i++) {
        printf("pair %d\n", i);
        decide_pair(i & 1 ? READ_IT : WRITE_IT, i & 2 ? READ_IT : WRITE_IT, i & 4,
                    states[i / 8]);
    }
}
END_TEST

START_TEST(say_who_and_why)
{
    world_begin(env[0]);
    world_begin(env[1]);
    must(world_write(env[0], 9));
    must(!world_read(env[1], 9));
    must_eq(atomic_load_explicit(&env[1]->ctx.txn->why_page, memory_order_relaxed),
            xac_page_id(1, 9));
    must_eq(atomic_load_explicit(&env[1]->ctx.txn->why, memory_order_relaxed) >> 32
                & 0xff,
            XAC_CONFLICT_READ_WRITE);
    must_eq(atomic_load_explicit(&env[1]->ctx.txn->why, memory_order_relaxed)
                & 0xffffffff,
            getpid());
    must_eq(env[1]->ctx.conflict.found_by_us, 1);
    world_finish(env[0]);
    world_finish(env[1]);
}
END_TEST

START_TEST(upgrade_to_writing)
{
    /* Two readers; the older one writes: the younger fails; and the other way round. */
    for (int writer = 0; writer < 2; writer++) {
        world_begin(env[0]);
        world_begin(env[1]);
        must(world_read(env[0], 1) && world_read(env[1], 1));
        must_eq(world_write(env[writer], 1), writer == 0);
        must_eq(world_state(env[0]), XAC_TXN_PENDING);
        must_eq(world_state(env[1]), XAC_TXN_FAILED);
        must_be_consistent(env[0], 1);
        must(world_committing(env[0]));
        must(!world_committing(env[1]));
        world_publish(env[0]);
        world_finish(env[0]);
        world_finish(env[1]);
    }
}
END_TEST

START_TEST(look_at_all_before_failing_any)
{
    /* env[1] meets a younger reader and an older one: it fails, the younger stays. */
    world_begin(env[0]);
    world_begin(env[1]);
    world_begin(env[2]);
    must(world_read(env[2], 4) && world_read(env[0], 4));
    must(!world_write(env[1], 4));
    must_eq(world_state(env[2]), XAC_TXN_PENDING);
    must_eq(world_state(env[0]), XAC_TXN_PENDING);
    for (int i = 0; i < 3; i++)
        world_finish(env[i]);
}
END_TEST

static void *
publish_later(void *arg)
{
    proc_sleep_us(1000);
    world_publish(arg);
    return NULL;
}

START_TEST(wait_for_a_commit_under_way)
{
    pthread_t t;

    world_begin(env[0]);
    world_begin(env[1]);
    must(world_write(env[0], 4));
    world_store(env[0], 4, 44);
    must(world_committing(env[0]));
    must(pthread_create(&t, NULL, publish_later, env[0]) == 0);
    must(world_read(env[1], 4));
    must_eq(world_state(env[0]), XAC_TXN_PUBLISHED);
    must_eq(world_value(env[1], 4, xac_chain_commit(env[1])), 44);
    must(pthread_join(t, NULL) == 0);
    world_finish(env[0]);
    world_finish(env[1]);
}
END_TEST

/* ---- lists -------------------------------------------------------------------------------- */

START_TEST(unlink_in_every_order)
{
    for (unsigned order = 0; order < 64; order++) {
        unsigned a = order & 3, b = order >> 2 & 3, c = order >> 4;
        unsigned leaving[4] = {a, b, c, 6 - a - b - c};
        struct xac_entry *links[LINKS_MAX];

        if (a == b || a == c || b == c)
            continue;
        for (int i = 0; i < 4; i++) {
            world_begin(env[i]);
            must(world_read(env[i], 2));
        }
        for (unsigned n = 0; n < 4; n++) {
            must_eq(links_of(env[0], 2, links), 4 - n);
            xac_conflict_leave(env[leaving[n]], env[leaving[n]]->ctx.slot,
                               world_entry(env[leaving[n]], 2));
            for (unsigned m = 0; m <= n; m++) { /* none of those who left */
                for (unsigned i = 0, left = links_of(env[0], 2, links); i < left; i++)
                    must(links[i]->slot != env[leaving[m]]->ctx.slot);
            }
            /* Leaving again does nothing. */
            xac_conflict_leave(env[leaving[n]], env[leaving[n]]->ctx.slot,
                               world_entry(env[leaving[n]], 2));
            must_eq(links_of(env[0], 2, links), 3 - n);
        }
        for (int i = 0; i < 4; i++)
            world_finish(env[i]);
    }
}
END_TEST

/* step_at_random -- one of four participants does something. */
static void
step_at_random(struct xac_env *e, uint64_t *seed)
{
    uint64_t page_no = rnd_below(seed, 3);
    enum xac_txn_state s = world_state(e);

    if (s == XAC_TXN_IDLE)
        world_begin(e);
    else if (rnd_below(seed, 5) > 0)
        (void)access_page(e, page_no, rnd_below(seed, 2) ? READ_IT : WRITE_IT);
    else if (rnd_below(seed, 4) == 0 || s == XAC_TXN_FAILED)
        world_finish(e);
    else
        (void)world_commit(e);
}

START_TEST(stay_consistent_at_random)
{
    uint64_t seed = env_seed();
    struct xac_entry *links[LINKS_MAX];

    for (int i = 0; i < 200000; i++) {
        step_at_random(env[rnd_below(&seed, 4)], &seed);
        for (uint64_t p = 0; p < 3; p++)
            must_be_consistent(env[0], p);
    }
    for (int i = 0; i < 4; i++) {
        if (world_state(env[i]) != XAC_TXN_IDLE)
            world_finish(env[i]);
    }
    for (uint64_t p = 0; p < 3; p++)
        must_eq(links_of(env[0], p, links), 0);
}
END_TEST

/* ---- processes ---------------------------------------------------------------------------- */

#define RACE_PAGES 3u

struct race {
    _Atomic uint64_t writer[RACE_PAGES];
    _Atomic uint64_t readers[RACE_PAGES];
    _Atomic uint64_t commits;
};

static struct race *race_board;

/* enter_and_check -- between COMMITTING and publishing nobody else may be in there. */
static void
enter_and_check(uint64_t me, const uint32_t *mode)
{
    for (uint64_t p = 0; p < RACE_PAGES; p++) {
        if (mode[p] == 0)
            continue;
        must_eq(word_load(&race_board->writer[p]), 0);
        if (mode[p] == WRITE_IT) {
            must_eq(word_load(&race_board->readers[p]), 0);
            word_store(&race_board->writer[p], me);
        } else {
            word_add(&race_board->readers[p], 1);
        }
    }
}

static void
leave_after_check(uint64_t me, const uint32_t *mode)
{
    for (uint64_t p = 0; p < RACE_PAGES; p++) {
        if (mode[p] == WRITE_IT) {
            must_eq(word_load(&race_board->writer[p]), me);
            word_store(&race_board->writer[p], 0);
        } else if (mode[p] == READ_IT) {
            must_eq(word_load(&race_board->writer[p]), 0);
            word_add(&race_board->readers[p], UINT64_MAX);
        }
    }
}

static void
race(void *arg)
{
    uint64_t me = *(uint64_t *)arg, seed = env_seed() + me;
    struct xac_env *mine = world_open(XAC_NONDURABLE);

    for (int i = 0; i < 20000; i++) {
        uint32_t mode[RACE_PAGES] = {0};
        bool is_fine = true;

        world_begin(mine);
        for (uint64_t n = 0; n < 3 && is_fine; n++) {
            uint64_t p = rnd_below(&seed, RACE_PAGES);
            uint32_t m = rnd_below(&seed, 2) ? READ_IT : WRITE_IT;

            is_fine = access_page(mine, p, m);
            mode[p] |= m;
        }
        if (is_fine && world_committing(mine)) {
            enter_and_check(me, mode);
            leave_after_check(me, mode);
            world_publish(mine);
            word_add(&race_board->commits, 1);
        }
        mine->ctx.txn->is_retry = world_state(mine) != XAC_TXN_PUBLISHED;
        world_finish(mine);
    }
    must_eq(xac_env_close(mine), 0);
}

START_TEST(keep_others_away_from_what_is_written)
{
    static uint64_t number[4] = {1, 2, 3, 4};
    pid_t pid[4];

    race_board = proc_shared(sizeof *race_board);
    for (int i = 0; i < 4; i++)
        pid[i] = proc_spawn(race, &number[i]);
    for (int i = 0; i < 4; i++)
        proc_join(pid[i]);
    must(word_load(&race_board->commits) > 1000);
    for (uint64_t p = 0; p < RACE_PAGES; p++) {
        struct xac_entry *links[LINKS_MAX];

        must_eq(links_of(env[0], p, links), 0);
    }
}
END_TEST

/* ---- the dead ----------------------------------------------------------------------------- */

static void
die_in_transaction(void *arg)
{
    struct xac_env *mine = world_open(XAC_NONDURABLE);

    (void)arg;
    world_begin(mine);
    must(world_write(mine, 5) && world_read(mine, 6));
    kill(getpid(), SIGKILL);
}

START_TEST(pass_by_the_dead)
{
    struct xac_entry *links[LINKS_MAX];

    world_begin(env[0]);
    world_begin(env[1]);
    (void)proc_wait(proc_spawn(die_in_transaction, NULL));
    world_finish(env[0]);
    world_begin(env[0]); /* younger than the dead */
    must(world_read(env[0], 5));
    must(world_write(env[0], 6));
    xac_reap_dead(env[1]);
    must_eq(links_of(env[0], 5, links), 1);
    must_eq(links_of(env[0], 6, links), 1);
    world_finish(env[0]);
    world_finish(env[1]);
}
END_TEST

#ifdef XAC_DEBUG

static const char *deadly;

static void
die_there(const char *name)
{
    if (strcmp(name, deadly) == 0)
        kill(getpid(), SIGKILL);
}

struct doomed {
    char point[16];
    uint64_t slot; /* out: its slot */
};

static void
die_at_page(void *arg)
{
    struct doomed *d = arg;
    struct xac_env *mine = world_open(XAC_NONDURABLE);

    d->slot = mine->ctx.slot;
    world_begin(mine);
    deadly = d->point;
    xac_kill_hook = die_there;
    (void)world_read(mine, 5);
    world_finish(mine);
    abort(); /* not reached */
}

/* A page lock whose owner has died, and whose slot another process has by now. */
START_TEST(take_over_page_locks_of_the_dead)
{
    static const char *const points[] = {"page locked",  "page entered",   "page linked",
                                         "page leaving", "page unlinking", "page left"};
    struct doomed *d = proc_shared(sizeof *d);
    struct xac_entry *links[LINKS_MAX];
    struct xac_env *heir;

    snprintf(d->point, sizeof d->point, "%s", points[_i]);
    world_begin(env[2]); /* with it the list is not empty when the dead one leaves */
    must(world_read(env[2], 5));
    (void)proc_wait(proc_spawn(die_at_page, d));
    xac_reap_dead(env[1]);
    world_finish(env[2]);
    heir = world_open(XAC_NONDURABLE);
    must_eq(heir->ctx.slot, d->slot);
    world_begin(heir);
    world_begin(env[0]);
    must(world_read(env[0], 5));
    must(world_read(heir, 5));
    must_eq(links_of(env[0], 5, links), 2);
    world_finish(heir);
    world_finish(env[0]);
    must_eq(xac_env_close(heir), 0);
}
END_TEST

#endif

int
main(void)
{
    Suite *s = suite_create("conflict");
    TCase *tc = env_tcase(s, "conflict", 60);

    tcase_add_checked_fixture(tc, open_four, NULL);
    tcase_add_test(tc, decide_every_pair);
    tcase_add_test(tc, say_who_and_why);
    tcase_add_test(tc, upgrade_to_writing);
    tcase_add_test(tc, look_at_all_before_failing_any);
    tcase_add_test(tc, wait_for_a_commit_under_way);
    tcase_add_test(tc, unlink_in_every_order);
    tcase_add_test(tc, stay_consistent_at_random);
    tcase_add_test(tc, keep_others_away_from_what_is_written);
    tcase_add_test(tc, pass_by_the_dead);
#ifdef XAC_DEBUG
    tcase_set_timeout(tc, 20);
    tcase_add_loop_test(tc, take_over_page_locks_of_the_dead, 0, 6);
#endif
    return env_main(s);
}
