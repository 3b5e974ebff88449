/* SPDX-License-Identifier: MIT */
/*
 * check_touch.c -- accesses that are announced one by one, as a compiler would (xac_touch.h).
 *
 * GOAL    What xac_store() announces is committed, rolled back, and isolated, under each engine and
 *         policy, beside processes that trap; what it knows costs no call; a forgotten store is
 *         found where that is asked for.
 * METHOD  XAC_CHECKING_TRUSTED, so that a store that a transaction misses stays behind an abort;
 *         counts of announcements and traps; sums.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <xac_touch.h>

#include "env.h"

#define PAGES 64

static const char *const engines[] = {"uffd", "sigsegv"};
#define N_ENGINES 2

/* put -- in a transaction of its own, which is to end so. */
static void
put(uint64_t *where, uint64_t value, int end)
{
    int rc;

    do {
        must_ok(xbegin());
        xac_store(where, sizeof *where);
        *where = value;
        if (end == ABORTED)
            must_ok(xAbort());
        rc = xend();
        must(rc == COMMITTED || rc == ABORTED);
    } while (rc != end);
}

/* attach -- trusted, under an engine. */
static uint64_t *
attach(int engine)
{
    must(setenv("XAC_ENGINE", engines[engine], 1) == 0);
    env_without_frames("they have each page noticed by a trap");
    env_checking = XAC_CHECKING_TRUSTED;
    return env_attach(NONDURABLE, PAGES);
}

/* More transactions than a table has numbers. */
START_TEST(segment_is_told_from_other_memory)
{
    uint64_t *base = attach(0), *end = base + PAGES * env_page() / sizeof *base;

    must(!xac_touch_is_segment(base)); /* no transaction is open */
    for (int is_query = 0; is_query < 2; is_query++) {
        must_ok(is_query ? xbeginQuery() : xbegin());
        must(xac_touch_is_segment(base) && xac_touch_is_segment(end - 1));
        must(!xac_touch_is_segment(base - 1) && !xac_touch_is_segment(end));
        must(!xac_touch_is_segment(&base) && !xac_touch_is_segment(NULL));
        must_ok(is_query ? xendQuery() : xend());
    }
    must(!xac_touch_is_segment(base));
    env_detach();
}
END_TEST

START_TEST(each_transaction_announces_anew)
{
    uint64_t *base = attach(_i);

    for (uint64_t k = 1; k < 10000; k++) {
        uint64_t *where = env_cell(base, k % 3);
        uint64_t was;

        must_ok(xbegin());
        xac_load(where, sizeof *where);
        was = *where;
        must_ok(xend());
        put(where, k, ABORTED);
        must_eq(env_get(where), was);
        put(where, k, COMMITTED);
        must_eq(env_get(where), k);
    }
    env_detach();
}
END_TEST

/* Ranges that end where addresses end, or would end behind that. */
START_TEST(long_ranges_end)
{
    uint64_t *base = attach(_i);

    put(base, 1, COMMITTED);
    must_ok(xbegin());
    xac_load(NULL, SIZE_MAX);
    xac_load(base, SIZE_MAX);
    xac_store((const void *)(UINTPTR_MAX - 4095), SIZE_MAX);
    xac_store((const void *)UINTPTR_MAX, 1);
    xac_store(NULL, SIZE_MAX / 2);
    xac_store(base, SIZE_MAX);
    *base = 2;
    must_eq(xend(), COMMITTED);
    must_eq(env_get(base), 2);
    env_detach();
}
END_TEST

/* is_noted -- does the running transaction know the range, for stores? */
static bool
is_noted(const void *at, size_t n)
{
    return xac_touch_is_noted(xac_touched_now->store, xac_touched_now->store_number, at,
                              n);
}

/* A number is used again: what was noted under it is not known any more. */
START_TEST(numbers_come_again)
{
    uint64_t *base = attach(_i), number;
    bool is_again;

    put(base, 1, COMMITTED);
    must_ok(xbegin());
    xac_store(base, 8);
    must(is_noted(base, 8));
    number = xac_touched_now->store_number;
    must_ok(xend());
    do {
        must_ok(xbegin());
        is_again = xac_touched_now->store_number == number;
        must(!is_noted(base, 8));
        must_ok(xend());
    } while (!is_again);
    env_detach();
}
END_TEST

START_TEST(known_units_call_nothing)
{
    uint64_t *base = attach(_i), hints;

    put(base, 1, COMMITTED); /* from here on there is a table */
    must_ok(xbegin());
    must(xac_touched_now->store_number != 0);
    hints = env_stats().hints;
    for (uint64_t k = 0; k < 100; k++) {
        xac_store(&base[k], 8);
        base[k] = k;
    }
    must_eq(env_stats().hints, hints + 1);
    must(is_noted(base, 8));
    must(is_noted(base, XAC_TOUCH_UNIT));
    must(!is_noted(base, XAC_TOUCH_UNIT + 1));
    must_ok(xend());
    must_eq(xac_touched_now->store_number, 0);
    must_eq(xac_touched_now->load_number, 0);
    env_detach();
}
END_TEST

/* No trap, though other pages take the same slots. */
START_TEST(stores_do_not_trap)
{
    uint64_t *base = attach(_i), traps = env_traps();
    unsigned char mine[64] = {0};

    for (int k = 0; k < 20; k++) {
        must_ok(xbegin());
        for (uint64_t p = 0; p < PAGES; p++) {
            unsigned char *end = (unsigned char *)env_cell(base, p);

            xac_store(mine, sizeof mine);
            mine[p]++;
            if (p > 0) { /* over the border of two pages */
                xac_store(end - 4, 8);
                memset(end - 4, k, 8);
            }
        }
        xac_store(base, PAGES * env_page());
        xac_store(base, 0);
        must_ok(k % 2 == 0 ? 0 : xAbort());
        must_eq(xend(), k % 2 == 0 ? COMMITTED : ABORTED);
    }
    must_eq(env_traps(), traps);
    must_ok(xbeginQuery());
    for (uint64_t p = 1; p < PAGES; p++)
        must_eq(((unsigned char *)env_cell(base, p))[-4], 18);
    must_ok(xendQuery());
    env_detach();
}
END_TEST

/* work -- of a thread with a view of its own, which has a table of its own. */
static void *
work(void *arg)
{
    uint64_t *base = (uint64_t *)xView(arg);

    must(base != NULL);
    for (uint64_t k = 0; k < 100; k++) {
        put(base, k + 1, COMMITTED);
        put(base, 0, ABORTED);
        must_eq(env_get(base), k + 1);
    }
    must(xac_touched_now->number != 0);
    return NULL;
}

/* One thread after the other: each frees its table. */
START_TEST(threads_have_tables_of_their_own)
{
    uint64_t *base = attach(_i);

    put(base, 0, COMMITTED);
    for (int k = 0; k < 3; k++) {
        pthread_t thread;

        must(pthread_create(&thread, NULL, work, base) == 0);
        must(pthread_join(thread, NULL) == 0);
        must_eq(env_get(base), 100);
    }
    env_detach();
}
END_TEST

/* child -- begins anew, whatever its parent has announced. */
static void
child(void *arg)
{
    uint64_t *base = (uint64_t *)arg;

    must_eq(xac_touched_now->store_number, 0);
    put(base, 7, COMMITTED);
    put(base, 8, ABORTED);
    must_eq(env_get(base), 7);
}

START_TEST(children_begin_anew)
{
    uint64_t *base;

    env_let_overlap(); /* the child does not wait for its parent */
    base = attach(_i);

    put(base, 1, COMMITTED);
    must_ok(xbegin());
    xac_store(env_cell(base, 1), 8);
    *env_cell(base, 1) = 5;
    proc_run(child, base);
    (void)xend(); /* the child that has come in between may have failed it */
    must_eq(env_get(base), 7);
    env_detach();
}
END_TEST

START_TEST(errno_is_left_alone)
{
    uint64_t *base = attach(_i);

    must_ok(xbegin());
    errno = ENOTTY;
    xac_load(base, 8);
    xac_store(base, 8);
    must_eq(errno, ENOTTY);
    must_ok(xend());
    env_detach();
}
END_TEST

/* ---- What stops the program ------------------------------------------------------------- */

static void
store_in_query(void *arg)
{
    uint64_t *base = attach(*(int *)arg);

    must_ok(xbeginQuery());
    xac_store(base, 8);
}

static void
forget_a_store(void *arg)
{
    uint64_t *base;

    must(setenv("XAC_ENGINE", engines[*(int *)arg], 1) == 0);
    env_checking = XAC_CHECKING_FAST;
    env_announce();
    base = env_attach(NONDURABLE, PAGES);
    put(base, 1, COMMITTED);
    must_ok(xbegin());
    xac_store(base, 8);
    base[0] = 2;
    *env_cell(base, 1) = 3; /* another page */
}

/* must_stop -- with this word. */
static void
must_stop(void (*fn)(void *), int engine, const char *word)
{
    char output[4096];
    int status = proc_capture(fn, &engine, output, sizeof output);

    must(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    must(strstr(output, word) != NULL);
}

START_TEST(stores_in_queries_stop_the_program)
{
    must_stop(store_in_query, _i, "inside a query");
}
END_TEST

START_TEST(forgotten_stores_are_found)
{
    must_stop(forget_a_store, _i, "not announced");
}
END_TEST

/* ---- Beside others ---------------------------------------------------------------------- */

#define TRANSFERS 2000

static const uint64_t policies[] = {XAC_POLICY_OLDEST_WINS, XAC_POLICY_SERIAL,
                                    XAC_POLICY_OPTIMISTIC};
#define N_POLICIES 3

struct party {
    int engine, policy;
    bool announces;
    _Atomic uint64_t *is_open; /* the environment has a participant that stays */
};

/* transfer -- between cells of random pages. */
static void
transfer(void *arg)
{
    const struct party *p = (const struct party *)arg;
    uint64_t seed = env_seed() + p->announces;
    uint64_t *base;

    proc_await(p->is_open, 1, 30);
    must(setenv("XAC_ENGINE", engines[p->engine], 1) == 0);
    env_checking = p->announces ? XAC_CHECKING_TRUSTED : XAC_CHECKING_FAST;
    must_ok(xSetOption(XAC_OPT_POLICY, policies[p->policy]));
    base = env_attach(NONDURABLE, PAGES);
    for (int k = 0; k < TRANSFERS; k++) {
        uint64_t *from, *to;
        int rc;

        seed = seed * 6364136223846793005u + 1442695040888963407u;
        from = env_cell(base, seed >> 33 & 7);
        to = env_cell(base, seed >> 40 & 7);
        do {
            must_ok(xbegin());
            if (p->announces) {
                xac_load(from, 8);
                xac_store(from, 8);
            }
            --*from;
            if (p->announces) {
                xac_load(to, 8);
                xac_store(to, 8);
            }
            ++*to;
            rc = xend();
        } while (rc == ABORTED);
        must_eq(rc, COMMITTED);
    }
    env_detach();
}

/* Both kinds of process keep the sum, in each pair. */
START_TEST(sums_stay_beside_others)
{
    struct party a = {.engine = _i % N_ENGINES,
                      .policy = _i / N_ENGINES,
                      .announces = true,
                      .is_open = (_Atomic uint64_t *)proc_shared(8)};
    struct party b = a;
    uint64_t sum = 0, *base;
    pid_t pid[2];

    b.announces = false;
    pid[0] = proc_spawn(transfer, &a);
    pid[1] = proc_spawn(transfer, &b);
    must_ok(xSetOption(XAC_OPT_POLICY, policies[a.policy]));
    env_checking = XAC_CHECKING_FAST;
    base = env_attach(NONDURABLE, PAGES);
    word_store(a.is_open, 1);
    proc_join(pid[0]);
    proc_join(pid[1]);
    must_ok(xbeginQuery());
    for (uint64_t p = 0; p < PAGES; p++)
        sum += *env_cell(base, p);
    must_ok(xendQuery());
    must_eq(sum, 0);
    env_detach();
}
END_TEST

static Suite *
touch_suite(void)
{
    Suite *s = suite_create("touch");
    TCase *tc = env_tcase(s, "announced", 120);

    tcase_add_test(tc, segment_is_told_from_other_memory);
    tcase_add_loop_test(tc, each_transaction_announces_anew, 0, N_ENGINES);
    tcase_add_loop_test(tc, long_ranges_end, 0, N_ENGINES);
    tcase_add_loop_test(tc, numbers_come_again, 0, N_ENGINES);
    tcase_add_loop_test(tc, known_units_call_nothing, 0, N_ENGINES);
    tcase_add_loop_test(tc, stores_do_not_trap, 0, N_ENGINES);
    tcase_add_loop_test(tc, threads_have_tables_of_their_own, 0, N_ENGINES);
    tcase_add_loop_test(tc, children_begin_anew, 0, N_ENGINES);
    tcase_add_loop_test(tc, errno_is_left_alone, 0, N_ENGINES);
    tcase_add_loop_test(tc, sums_stay_beside_others, 0, N_ENGINES * N_POLICIES);
    tc = env_tcase(s, "forgotten", 60);
    tcase_add_loop_test(tc, stores_in_queries_stop_the_program, 0, N_ENGINES);
    tcase_add_loop_test(tc, forgotten_stores_are_found, 0, N_ENGINES);
    return s;
}

int
main(void)
{
    return env_main(touch_suite());
}
