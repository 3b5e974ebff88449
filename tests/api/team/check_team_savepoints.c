/* SPDX-License-Identifier: MIT */
/*
 * check_team_savepoints.c -- savepoints of a transaction that several threads work on.
 *
 * GOAL    a roll-back undoes what all threads have stored since the savepoint, and no more; a store that
 *         comes at the same moment is before the savepoint or behind it, and is never lost.
 * METHOD  as in check_team.c.  The owner takes savepoints while helpers count in words of their own.  It
 *         looks at each word before the savepoint and after it: a roll-back must lead to a value between the two.
 */
#include <config.h>

#include "team.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <xac_touch.h>

#define PAGES_MAX 300

/* n_pages -- of a test in that mode: where there is a bound, more than it shows. */
static size_t
n_pages_of(int mode)
{
    return team_modes[mode].frames != 0 ? PAGES_MAX : 24;
}

static uint64_t
load_word(uint64_t *base, size_t page, int i)
{
    return __atomic_load_n(team_word(base, page, i), __ATOMIC_RELAXED);
}

static void
count(uint64_t *base, size_t page, int i)
{
    uint64_t *w = team_word(base, page, i);

    __atomic_store_n(w, load_word(base, page, i) + 1, __ATOMIC_RELAXED);
}

/* ---- one after the other -------------------------------------------------------------------- */

static void
count_all(struct helper *h)
{
    for (size_t k = 0; k < h->n_pages; k++)
        count(h->base, (k * 7 + (size_t)h->i * 5) % h->n_pages, h->i);
}

/* all_are -- each thread's word of each page. */
static void
all_are(uint64_t *base, size_t n_pages, uint64_t value)
{
    for (size_t p = 0; p < n_pages; p++) {
        for (int i = 0; i <= TEAM; i++)
            must_eq(load_word(base, p, i), value);
    }
}

START_TEST(roll_back_undoes_what_helpers_stored)
{
    size_t n = n_pages_of(_i);
    uint64_t *x = team_attach(_i, n), first, second;

    for (uint64_t r = 0; r < 3; r++) {
        must_ok(xbegin());
        team_work(_i, x, n, r, count_all);
        must((first = xSavepoint()) != 0);
        team_work(_i, x, n, r, count_all);
        must((second = xSavepoint()) != 0);
        team_work(_i, x, n, r, count_all);
        all_are(x, n, 2 * r + 3);
        must_ok(xRollbackTo(second));
        all_are(x, n, 2 * r + 2);
        team_work(_i, x, n, r, count_all);
        must_ok(xRollbackTo(first));
        all_are(x, n, 2 * r + 1);
        team_work(_i, x, n, r, count_all);
        must_ok(xRelease(first));
        must_rc(xend(), COMMITTED);
        must_ok(xbeginQuery());
        all_are(x, n, 2 * r + 2);
        must_ok(xendQuery());
    }
    env_detach();
}
END_TEST

/* ---- at the same moment --------------------------------------------------------------------- */

static uint64_t low[PAGES_MAX][TEAM + 1], high[PAGES_MAX][TEAM + 1];
static uint64_t passes[TEAM + 1]; /* that each thread has made over all pages */
static uint64_t mark;
static _Atomic unsigned n_saved, n_passed;
static uint64_t *second;

#define SAVEPOINTS 4

static void
look_at_all(const struct helper *h, uint64_t (*at)[TEAM + 1])
{
    for (size_t p = 0; p < h->n_pages; p++) {
        for (int i = 1; i <= TEAM; i++)
            at[p][i] = load_word(h->base, p, i);
    }
}

/* await_passes -- each helper makes one more, at least. */
static void
await_passes(void)
{
    unsigned n = atomic_load(&n_passed) + 2 * TEAM;

    while (atomic_load(&n_passed) < n)
        proc_sleep_us(100);
}

static void
count_beside_savepoints(struct helper *h)
{
    uint64_t *base = second != NULL && h->i % 2 != 0 ? second : h->base;

    for (unsigned k = 0; h->i == 0 && k < SAVEPOINTS; k++) {
        look_at_all(h, low);
        must((mark = xSavepoint()) != 0);
        look_at_all(h, high);
        await_passes();
        atomic_store(&n_saved, k + 1);
    }
    while (h->i != 0 && atomic_load(&n_saved) < SAVEPOINTS) {
        for (size_t p = 0; p < h->n_pages; p++)
            count(base, (p * 7 + (size_t)h->i * 5) % h->n_pages, h->i);
        passes[h->i]++;
        atomic_fetch_add(&n_passed, 1);
    }
}

/* beside_savepoints -- the test, on pages that hold `was`; ret how many words the roll-back has changed. */
static uint64_t
beside_savepoints(int mode, uint64_t *x, size_t n, uint64_t (*was)[TEAM + 1])
{
    uint64_t n_undone = 0;

    memset(passes, 0, sizeof passes);
    atomic_store(&n_saved, 0);
    must_ok(xbegin());
    team_work(mode, x, n, 0, count_beside_savepoints);
    for (size_t p = 0; p < n; p++) {
        for (int i = 1; i <= TEAM; i++)
            must_eq(load_word(x, p, i), was[p][i] + passes[i]);
    }
    must_ok(xRollbackTo(mark));
    for (size_t p = 0; p < n; p++) {
        for (int i = 1; i <= TEAM; i++) {
            uint64_t w = load_word(x, p, i);

            must(low[p][i] <= w && w <= high[p][i]);
            n_undone += w != was[p][i] + passes[i];
            was[p][i] = w;
        }
    }
    must_rc(xend(), COMMITTED);
    must_ok(xbeginQuery());
    for (size_t p = 0; p < n; p++) {
        for (int i = 1; i <= TEAM; i++)
            must_eq(load_word(x, p, i), was[p][i]);
    }
    must_ok(xendQuery());
    return n_undone;
}

START_TEST(stores_beside_a_savepoint_are_before_it_or_behind)
{
    static uint64_t was[PAGES_MAX][TEAM + 1];
    size_t n = n_pages_of(_i);
    uint64_t *x = team_attach(_i, n), n_undone = 0;

    for (uint64_t r = env_number("XAC_ROUNDS", 2); r > 0; r--)
        n_undone += beside_savepoints(_i, x, n, was);
    must(n_undone > 0);
    env_detach();
}
END_TEST

START_TEST(stores_through_two_views_are_before_it_or_behind)
{
    static uint64_t was[PAGES_MAX][TEAM + 1];
    size_t n = n_pages_of(_i);
    uint64_t *x = team_attach(_i, n), n_undone = 0;

    second = env_map_at(0, n);
    for (uint64_t r = env_number("XAC_ROUNDS", 2); r > 0; r--)
        n_undone += beside_savepoints(_i, x, n, was);
    must(n_undone > 0);
    env_detach();
}
END_TEST

/* ---- pages that the kernel takes away ------------------------------------------------------- */

/* reclaim -- as the kernel does with shared memory that is short: the page tables forget it, and nothing is lost. */
static void
reclaim(uint64_t *base, size_t n_pages)
{
    must_eq(madvise(base, n_pages * env_page(), MADV_DONTNEED), 0);
}

/* With frames the memory of pages in two views is shared: the calls themselves trap on it. */
START_TEST(roll_back_copies_pages_that_are_gone)
{
    size_t n = 24;
    uint64_t *x = team_attach(_i, n);

    second = env_map_at(0, n);
    for (uint64_t r = 0; r < 3; r++) {
        must_ok(xbegin());
        team_work(_i, x, n, r, count_all);
        must((mark = xSavepoint()) != 0);
        team_work(_i, x, n, r, count_all);
        reclaim(x, n);
        must_ok(xRollbackTo(mark));
        all_are(x, n, r + 1);
        reclaim(x, n);
        reclaim(second, n);
        all_are(second, n, r + 1);
        must_rc(xend(), COMMITTED);
    }
    env_detach();
}
END_TEST

/* ---- a transaction inside ------------------------------------------------------------------- */

static int mode_now;

static int
count_and_fail(void *arg)
{
    team_work(mode_now, (uint64_t *)arg, 24, 0, count_all);
    return 7;
}

START_TEST(nested_function_undoes_what_helpers_stored)
{
    uint64_t *x = team_attach(_i, 24);

    mode_now = _i;
    must_ok(xbegin());
    team_work(_i, x, 24, 0, count_all);
    must_eq(xTransact(count_and_fail, x), 7);
    all_are(x, 24, 1);
    must_rc(xend(), COMMITTED);
    env_detach();
}
END_TEST

/* ---- announced stores ----------------------------------------------------------------------- */

static uint64_t txn, *announced;
static pthread_barrier_t gate;

static void *
announce_and_stay(void *arg)
{
    uint64_t *w = team_word((uint64_t *)arg, 1, 1);

    must_ok(xJoin(txn));
    xac_store(w, sizeof *w);
    *w += 1;
    (void)pthread_barrier_wait(&gate);
    (void)pthread_barrier_wait(&gate);
    must_ok(xLeave());
    return NULL;
}

static int
never(void *arg)
{
    (void)arg;
    env_fail(__FILE__, __LINE__, "called without a savepoint");
    return 1;
}

/* work_once -- a thread that joins, announces, stores, and leaves; while it has joined savepoints are refused. */
static void
work_once(uint64_t taken)
{
    pthread_t t;

    must_eq(pthread_create(&t, NULL, announce_and_stay, announced), 0);
    (void)pthread_barrier_wait(&gate);
    must_eq(xSavepoint(), 0);
    must_eq(errno, EBUSY);
    if (taken != 0)
        must_refuse(xRollbackTo(taken), EBUSY);
    must_refuse(xTransact(never, NULL), EBUSY);
    (void)pthread_barrier_wait(&gate);
    must_eq(pthread_join(t, NULL), 0);
}

START_TEST(savepoints_wait_for_those_that_announce)
{
    env_checking = XAC_CHECKING_TRUSTED;
    announced = (uint64_t *)env_attach(NONDURABLE, 4);
    must_eq(pthread_barrier_init(&gate, NULL, 2), 0);
    for (uint64_t r = 0; r < 3; r++) {
        must_ok(xbegin());
        must_ok(xTeam(&txn));
        work_once(0);
        must((mark = xSavepoint()) != 0);
        work_once(mark);
        must_eq(load_word(announced, 1, 1), r + 2);
        must_ok(xRollbackTo(mark));
        must_eq(load_word(announced, 1, 1), r + 1);
        must_rc(xend(), COMMITTED);
    }
    env_detach();
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("team_savepoints");
    TCase *tc = env_tcase(s, "savepoints", 120);

    tcase_add_loop_test(tc, roll_back_undoes_what_helpers_stored, 0, team_n_modes);
    tcase_add_loop_test(tc, stores_beside_a_savepoint_are_before_it_or_behind, 0,
                        team_n_modes);
    tcase_add_loop_test(tc, stores_through_two_views_are_before_it_or_behind, 0,
                        team_n_modes);
    tcase_add_loop_test(tc, roll_back_copies_pages_that_are_gone, team_n_modes - 2,
                        team_n_modes);
    tcase_add_loop_test(tc, nested_function_undoes_what_helpers_stored, 0, team_n_modes);
    tcase_add_test(tc, savepoints_wait_for_those_that_announce);
    return env_main(s);
}
