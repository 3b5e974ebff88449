/* SPDX-License-Identifier: MIT */
/*
 * check_savepoint.c -- savepoints: xSavepoint(), xRollbackTo(), xRelease(), and xTransact() inside of a
 * transaction.
 *
 * GOAL    What xac.h promises of each, each error, and what a savepoint costs and keeps.  Random transactions
 *         beside a model are in check_savepoint_model.c.
 * METHOD  small transactions; heaps; children; two threads; counters of traps.
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xac_env.h>
#include <xac_touch.h>
#include <xac_translate.h>

#include "env.h"

#define PAGES 64

static uint64_t *x;

static volatile uint64_t *
cell(size_t page)
{
    return env_cell(x, page);
}

static void
attach(void)
{
    x = (uint64_t *)env_attach(NONDURABLE, PAGES);
}

static uint64_t
savepoint(void)
{
    uint64_t mark = xSavepoint();

    if (mark == 0)
        env_fail(__FILE__, __LINE__, "xSavepoint: %s", xLastError());
    return mark;
}

/* ---- what they do --------------------------------------------------------------------------- */

START_TEST(roll_back_restores_what_was_written_before_and_after)
{
    uint64_t mark;

    attach();
    env_put(x, 1);
    must_ok(xbegin());
    *cell(1) = 10; /* written before */
    mark = savepoint();
    *cell(0) = 2; /* only read so far, by other transactions */
    *cell(1) = 11;
    *cell(2) = 12;
    must_ok(xRollbackTo(mark));
    must_eq(*cell(0), 1);
    must_eq(*cell(1), 10);
    must_eq(*cell(2), 0);
    *cell(2) = 13; /* and again: the mark has stayed */
    must_ok(xRollbackTo(mark));
    must_eq(*cell(2), 0);
    *cell(3) = 14;
    must_rc(xend(), COMMITTED);
    must_eq(env_get(x), 1);
    must_eq(env_get(env_cell(x, 1)), 10);
    must_eq(env_get(env_cell(x, 2)), 0);
    must_eq(env_get(env_cell(x, 3)), 14);
    env_detach();
}
END_TEST

START_TEST(what_is_rolled_back_is_not_written)
{
    struct xac_stats before, after;
    uint64_t mark;

    attach();
    before = env_stats();
    must_ok(xbegin());
    mark = savepoint();
    *cell(5) = 1;
    must_ok(xRollbackTo(mark));
    must_rc(xend(), COMMITTED);
    after = env_stats();
    must_eq(after.pages_written, before.pages_written);
    must_eq(after.commits_read_only, before.commits_read_only + 1);
    env_detach();
}
END_TEST

START_TEST(a_release_gives_its_images_to_the_level_below)
{
    uint64_t outer, inner, innermost;

    attach();
    must_ok(xbegin());
    outer = savepoint();
    *cell(0) = 1;
    inner = savepoint();
    *cell(0) = 2;
    *cell(1) = 2;
    innermost = savepoint();
    *cell(1) = 3;
    *cell(2) = 3;
    must_ok(xRelease(inner)); /* both */
    must_rc(xRelease(innermost), EINVAL);
    must_eq(*cell(1), 3);
    must_ok(xRollbackTo(outer));
    for (size_t p = 0; p < 3; p++)
        must_eq(*cell(p), 0);
    *cell(0) = 4;
    must_ok(xRelease(outer));
    *cell(0) = 5;
    must_rc(xend(), COMMITTED);
    must_eq(env_get(x), 5);
    env_detach();
}
END_TEST

START_TEST(a_roll_back_ends_the_marks_above)
{
    uint64_t outer, inner;

    attach();
    must_ok(xbegin());
    outer = savepoint();
    inner = savepoint();
    must(inner != outer);
    must_ok(xRollbackTo(outer));
    must_refuse(xRollbackTo(inner), EINVAL);
    must_refuse(xRelease(inner), EINVAL);
    must_ok(xRelease(outer));
    must_refuse(xRelease(outer), EINVAL);
    must_rc(xend(), COMMITTED);
    env_detach();
}
END_TEST

/* A mark for each of so many stores. */
#define DEEP 10000

START_TEST(marks_nest_ten_thousand_deep)
{
    static uint64_t mark[DEEP];

    attach();
    must_ok(xbegin());
    for (uint64_t i = 0; i < DEEP; i++) {
        mark[i] = savepoint();
        must_eq(*cell(i % 3), i < 3 ? 0 : i - 2);
        *cell(i % 3) = i + 1;
    }
    for (uint64_t i = DEEP; i-- > 0;) {
        if (i % 7 == 0)
            must_ok(xRelease(mark[i]));
        else {
            must_ok(xRollbackTo(mark[i]));
            must_eq(*cell(i % 3), i < 3 ? 0 : i - 2);
        }
    }
    must_rc(xend(), COMMITTED);
    env_detach();
}
END_TEST

/* Levels that are released one after the other, as by many calls of xTransact(), do not pile up images. */
START_TEST(released_images_take_no_memory)
{
    struct rusage before, after;
    uint64_t outer;

    attach();
    must_ok(xbegin());
    outer = savepoint();
    must_eq(getrusage(RUSAGE_SELF, &before), 0);
    for (uint64_t i = 0; i < 50000; i++) {
        uint64_t mark = savepoint();

        *cell(0) = i;
        must_ok(xRelease(mark));
    }
    must_eq(getrusage(RUSAGE_SELF, &after), 0);
    must(after.ru_maxrss - before.ru_maxrss < 20000); /* KiB; 50,000 pages are 200,000 */
    must_ok(xRollbackTo(outer));
    must_eq(*cell(0), 0);
    must_rc(xend(), COMMITTED);
    env_detach();
}
END_TEST

START_TEST(nesting_of_begins_does_not_matter)
{
    uint64_t mark;

    attach();
    must_ok(xbegin());
    must_ok(xbegin());
    mark = savepoint();
    must_rc(xend(), PENDING);
    *cell(0) = 1;
    must_ok(xbegin());
    must_ok(xRollbackTo(mark));
    must_eq(*cell(0), 0);
    must_rc(xend(), PENDING);
    must_rc(xend(), COMMITTED);
    env_detach();
}
END_TEST

/* ---- what they cost ---------------------------------------------------------------------- */

START_TEST(a_savepoint_costs_traps_for_what_is_written_after_it)
{
    uint64_t traps, mark;

    attach();
    must_ok(xbegin());
    for (size_t p = 0; p < PAGES; p++)
        *cell(p) = 1;
    traps = env_traps();
    mark = savepoint();
    for (int i = 0; i < 10; i++)
        for (size_t p = 0; p < 4; p++)
            ++*cell(p);
    for (size_t p = 0; p < PAGES; p++)
        must(*cell(p) > 0);
    must_eq(env_traps() - traps, 4);
    must_ok(xRollbackTo(mark));
    must_eq(env_traps() - traps, 4);
    must_rc(xend(), COMMITTED);
    traps = env_traps();
    must_ok(xbegin()); /* as before */
    for (uint64_t i = 0; i < 10; i++)
        for (size_t p = 0; p < 4; p++)
            *cell(p) = i;
    must_rc(xend(), COMMITTED);
    must_eq(env_traps() - traps, 4);
    env_detach();
}
END_TEST

/* Stores that xac_store() has announced are to be announced again, and nothing else notices them. */
START_TEST(what_was_announced_counts_no_more)
{
    uint64_t mark;

    must_ok(xSetOption(XAC_OPT_CHECKING, XAC_CHECKING_TRUSTED));
    env_checking = XAC_CHECKING_TRUSTED;
    attach();
    for (uint64_t i = 1; i < 300; i++) { /* updates in place begin after a while */
        must_ok(xbegin());
        xac_store(x, 8);
        x[0] = i;
        mark = savepoint();
        xac_store(x, 8);
        x[0] = 1000;
        xac_store(x + 1, 8);
        x[1] = 1000;
        must_ok(xRollbackTo(mark));
        must_eq(x[0], i);
        must_eq(x[1], i - 1);
        xac_store(x + 1, 8);
        x[1] = 1001;
        must_ok(xRollbackTo(mark));
        must_eq(x[1], i - 1);
        xac_store(x + 1, 8);
        x[1] = i;
        must_rc(xend(), COMMITTED);
    }
    env_detach();
}
END_TEST

/* Pages that are written again and again, alone, do not trap; behind a savepoint they do. */
START_TEST(warm_pages_are_noticed)
{
    env_checking = XAC_CHECKING_FAST;
    attach();
    for (uint64_t i = 1; i < 40; i++) {
        bool saves = i % 8 > 3;
        uint64_t mark;

        must_ok(xbegin());
        if (i % 2 == 0)
            x[0]++;
        mark = saves ? savepoint() : 0;
        x[0] = 1000;
        if (saves)
            must_ok(xRollbackTo(mark));
        must(!saves || x[0] == i - 1 + (i % 2 == 0));
        x[0] = i;
        must_rc(xend(), COMMITTED);
    }
    env_detach();
}
END_TEST

/* ---- heaps ------------------------------------------------------------------------------- */

START_TEST(heaps_are_restored)
{
    struct xac_heap_totals totals;
    uint64_t before, mark;
    void *kept, *freed;

    if (_i == 1) /* a store that the heap does not announce again stops the program */
        env_announce();
    if (_i == 2) {
        env_checking = XAC_CHECKING_TRUSTED;
        must_ok(xSetOption(XAC_OPT_CHECKING, env_checking));
    }
    attach();
    must_ok(xbegin());
    kept = xMalloc(x, 100);
    freed = xMalloc(x, 5000);
    must(kept != NULL && freed != NULL);
    must_ok(setRangeAccess(freed, 5000, READ_WRITE));
    memset(freed, 7, 5000);
    must_ok(xHeapCheck(x, &totals, sizeof totals));
    before = totals.bytes_used;
    mark = savepoint();
    must_ok(xFree(x, freed));
    for (size_t i = 0; i < 300; i++)
        must(xMalloc(x, 16 + i) != NULL);
    must_ok(xRollbackTo(mark));
    must_ok(xHeapCheck(x, &totals, sizeof totals));
    must_eq(totals.bytes_used, before);
    for (size_t i = 0; i < 5000; i++)
        must_eq(((uint8_t *)freed)[i], 7);
    must(xMalloc(x, 60) != NULL); /* it goes on */
    must_ok(xFree(x, freed));
    must_ok(xHeapCheck(x, &totals, sizeof totals));
    must_rc(xend(), COMMITTED);
    must_ok(xbeginQuery());
    must_ok(xHeapCheck(x, &totals, sizeof totals));
    must_ok(xendQuery());
    env_detach();
}
END_TEST

/* ---- xTransact() ------------------------------------------------------------------------- */

static int
fail_inner(void *arg)
{
    *cell(1) = 99;
    *cell(0) = 99;
    return *(int *)arg;
}

static int
inner_that_nests(void *arg)
{
    int fails = 5;

    *cell(2) = 20;
    must_rc(xTransact(fail_inner, &fails), 5);
    must_eq(*cell(0), 1);
    must_eq(*cell(2), 20);
    return *(int *)arg;
}

static int
outer(void *arg)
{
    int succeeds = 0, fails = 9;

    (void)arg;
    *cell(0) = 1;
    must_ok(xTransact(inner_that_nests, &succeeds));
    must_eq(*cell(2), 20);
    *cell(2) = 21;
    must_rc(xTransact(inner_that_nests, &fails), 9);
    must_eq(*cell(2), 21);
    return 0;
}

START_TEST(inner_functions_that_fail_undo_their_own_stores_only)
{
    attach();
    must_ok(xTransact(outer, NULL));
    must_eq(env_get(x), 1);
    must_eq(env_get(env_cell(x, 1)), 0);
    must_eq(env_get(env_cell(x, 2)), 21);
    env_detach();
}
END_TEST

static int
abort_inner(void *arg)
{
    (void)arg;
    return xAbort();
}

START_TEST(an_inner_function_that_aborts_fails_the_outermost)
{
    attach();
    must_ok(xbegin());
    must_rc(xTransact(abort_inner, NULL), XAC_FAILED);
    must_rc(xend(), ABORTED);
    env_detach();
}
END_TEST

static int
release_outside(void *arg)
{
    return xRelease(*(uint64_t *)arg);
}

START_TEST(an_inner_function_must_leave_savepoints_outside_alone)
{
    uint64_t mark;

    attach();
    must_ok(xbegin());
    mark = savepoint();
    must_rc(xTransact(release_outside, &mark), EINVAL);
    must_rc(xend(), COMMITTED);
    env_detach();
}
END_TEST

/* ---- misuse --------------------------------------------------------------------------------- */

static void
must_refuse_savepoint(int want)
{
    errno = 0;
    must_eq(xSavepoint(), 0);
    must_eq(errno, want);
}

START_TEST(misuse_is_refused)
{
    uint64_t mark;

    must_refuse_savepoint(EPERM); /* not open */
    must_refuse(xRollbackTo(1), XAC_ENOINIT);
    must_refuse(xRelease(1), XAC_ENOINIT);
    attach();
    must_refuse_savepoint(EPERM);
    must_refuse(xRollbackTo(1), XAC_ENOTXN);
    must_refuse(xRelease(1), XAC_ENOTXN);
    must_ok(xbeginQuery());
    must_refuse_savepoint(EPERM);
    must_refuse(xRollbackTo(1), XAC_EINQUERY);
    must_refuse(xRelease(1), XAC_EINQUERY);
    must_ok(xendQuery());
    must_ok(xbegin());
    must_refuse(xRollbackTo(0), EINVAL);
    must_refuse(xRollbackTo(UINT64_MAX), EINVAL);
    mark = savepoint();
    *cell(0) = 1;
    must_ok(xbeginQuery());
    must_refuse_savepoint(EPERM);
    must_refuse(xRollbackTo(mark), XAC_EINQUERY);
    must_refuse(xRelease(mark), XAC_EINQUERY);
    must_eq(*cell(0), 1);
    must_ok(xendQuery());
    must_rc(xend(), COMMITTED);
    must_ok(xbegin()); /* marks do not outlast their transaction */
    must_refuse(xRollbackTo(mark), EINVAL);
    (void)savepoint();
    must_refuse(xRollbackTo(mark), EINVAL);
    must_rc(xend(), COMMITTED);
    must_eq(env_get(x), 1);
    env_detach();
}
END_TEST

START_TEST(environments_do_not_mix)
{
    struct xac_env *other;
    uint64_t mark, theirs;
    uint64_t *y;

    attach();
    must((other = xac_open("other", NULL)) != NULL);
    y = (uint64_t *)xac_mmap_in(other, "other.db", env_page());
    must(y != MAP_FAILED);
    must_ok(xbegin());
    must_ok(xac_begin_in(other));
    mark = savepoint();
    theirs = xac_savepoint_in(other);
    must(theirs != 0 && theirs != mark);
    *cell(0) = 1;
    *y = 1;
    must_refuse(xac_rollback_to_in(other, mark), EINVAL);
    must_refuse(xRollbackTo(theirs), EINVAL);
    must_refuse(xac_release_in(NULL, mark), XAC_ENOINIT);
    must_ok(xac_rollback_to_in(other, theirs));
    must_eq(*y, 0);
    must_eq(*cell(0), 1);
    must_ok(xac_release_in(other, theirs));
    must_rc(xac_end_in(other), COMMITTED);
    must_rc(xend(), COMMITTED);
    must_ok(xac_close(other));
    env_detach();
}
END_TEST

/* ---- failed transactions --------------------------------------------------------------------- */

START_TEST(failed_transactions_roll_back_all_the_same)
{
    uint64_t mark, later;

    attach();
    must_ok(xbegin());
    *cell(0) = 1;
    mark = savepoint();
    *cell(0) = 2;
    must_ok(xAbort());
    *cell(1) = 2;
    later = savepoint(); /* nobody need know that it has failed */
    *cell(1) = 3;
    must_rc(xRollbackTo(later), XAC_FAILED);
    must_eq(*cell(1), 2);
    must_rc(xRollbackTo(mark), XAC_FAILED);
    must_eq(*cell(0), 1);
    must_eq(*cell(1), 0);
    must_ok(xRelease(mark));
    must_rc(xend(), ABORTED);
    must_eq(env_get(x), 0);
    env_detach();
}
END_TEST

static struct {
    _Atomic uint64_t asked, done;
} * board;

/* store_when_asked -- another process: stores 1, 2, ... to the first page. */
static void
store_when_asked(void *arg)
{
    uint64_t *y = (uint64_t *)env_attach(NONDURABLE, PAGES);

    (void)arg;
    for (uint64_t i = 1; i <= 2; i++) {
        proc_await(&board->asked, i, 20);
        env_put(y, i);
        word_store(&board->done, i);
    }
    env_detach();
}

static void
have_stored(uint64_t i)
{
    word_store(&board->asked, i);
    proc_await(&board->done, i, 20);
}

START_TEST(what_was_read_in_a_part_that_is_rolled_back_still_counts)
{
    uint64_t mark;
    pid_t pid;

    board = proc_shared(sizeof *board);
    must_ok(xSetOption(XAC_OPT_POLICY, XAC_POLICY_OPTIMISTIC));
    pid = proc_spawn(store_when_asked, NULL);
    attach();
    have_stored(1);
    must_ok(xbegin());
    mark = savepoint();
    must_eq(*cell(0), 1);
    *cell(3) = 1;
    must_ok(xRollbackTo(mark));
    have_stored(2);
    must_eq(*cell(0), 1);
    *cell(4) = 1;
    must_rc(xend(), ABORTED);
    must_eq(env_get(env_cell(x, 4)), 0);
    proc_join(pid);
    env_detach();
}
END_TEST

START_TEST(a_conflict_fails_the_outermost)
{
    uint64_t mark;
    pid_t pid;

    board = proc_shared(sizeof *board);
    must_ok(xSetOption(XAC_OPT_POLICY, XAC_POLICY_SELFISH)); /* who comes, wins */
    pid = proc_spawn(store_when_asked, NULL);
    attach();
    have_stored(1);
    must_ok(xbegin());
    *cell(3) = 3;
    mark = savepoint();
    *cell(0) = 9;
    *cell(3) = 4;
    have_stored(2);
    must_rc(xValidate(), FAILED);
    must_rc(xRollbackTo(mark), XAC_FAILED);
    must_eq(*cell(0), 1);
    must_eq(*cell(3), 3);
    must_ok(xRelease(mark));
    must_rc(xend(), ABORTED);
    must_eq(env_get(x), 2);
    proc_join(pid);
    env_detach();
}
END_TEST

/* ---- children, threads, translated transactions ------------------------------------------------- */

START_TEST(a_child_has_no_savepoint)
{
    uint64_t mark;
    pid_t pid;

    env_let_overlap();
    attach();
    must_ok(xbegin());
    *cell(0) = 1;
    mark = savepoint();
    *cell(0) = 2;
    pid = fork();
    if (pid == 0) {
        must_refuse(xRollbackTo(mark), XAC_EFORKED);
        must_refuse(xRelease(mark), XAC_EFORKED);
        must_refuse_savepoint(EPERM);
        must_rc(xend(), XAC_EFORKED);
        must_ok(xbegin());
        must_refuse(xRollbackTo(mark), EINVAL);
        *cell(9) = 9;
        must_rc(xend(), COMMITTED);
        must_ok(xShutdown());
        _exit(0);
    }
    proc_join(pid);
    must_ok(xRollbackTo(mark));
    must_eq(*cell(0), 1);
    must_rc(xend(), COMMITTED);
    pid = fork();
    if (pid == 0) { /* transactions of its own have their own ones */
        must_ok(xbegin());
        mark = savepoint();
        *cell(0) = 3;
        must_ok(xRollbackTo(mark));
        must_rc(xend(), COMMITTED);
        must_ok(xShutdown());
        _exit(0);
    }
    proc_join(pid);
    must_eq(env_get(x), 1);
    env_detach();
}
END_TEST

static void *
in_view(void *arg)
{
    volatile uint64_t *y = (uint64_t *)xView(arg);
    uint64_t mark;

    must(y != MAP_FAILED);
    must_ok(xbegin());
    y[1] = 5;
    mark = savepoint();
    y[1] = 6;
    must_ok(xRollbackTo(mark));
    must_eq(y[1], 5);
    (void)savepoint();
    y[1] = 7;
    return NULL; /* its transaction is rolled back */
}

START_TEST(threads_have_savepoints_of_their_own)
{
    pthread_t thread;
    uint64_t mark;

    env_let_overlap();
    attach();
    must_ok(xbegin());
    *env_cell(x, 7) = 1;
    mark = savepoint();
    *env_cell(x, 7) = 2;
    must(pthread_create(&thread, NULL, in_view, x) == 0);
    must(pthread_join(thread, NULL) == 0);
    must_ok(xRollbackTo(mark));
    must_eq(*env_cell(x, 7), 1);
    must_rc(xend(), COMMITTED);
    must_eq(env_get(x + 1), 0);
    env_detach();
}
END_TEST

static volatile uint64_t *
place(uint64_t *at)
{
    void *p = NULL;

    must_ok(xac_translate(at, &p));
    return (volatile uint64_t *)p;
}

static void *
translate(void *arg)
{
    uint64_t mark;

    (void)arg;
    must_ok(xac_begin_translated(0));
    *place(x) = 1;
    mark = savepoint();
    *place(x) = 2;
    *place(env_cell(x, 3)) = 2;
    must_ok(xRollbackTo(mark));
    must_eq(*place(x), 1);
    must_rc(xend(), COMMITTED);
    return NULL;
}

START_TEST(translated_transactions_have_them)
{
    pthread_t thread;

    attach();
    must(pthread_create(&thread, NULL, translate, NULL) == 0);
    must(pthread_join(thread, NULL) == 0);
    must_eq(env_get(x), 1);
    must_eq(env_get(env_cell(x, 3)), 0);
    env_detach();
}
END_TEST

static Suite *
savepoint_suite(void)
{
    Suite *s = suite_create("savepoint");
    TCase *tc = env_tcase(s, "effects", 60);

    tcase_add_test(tc, roll_back_restores_what_was_written_before_and_after);
    tcase_add_test(tc, what_is_rolled_back_is_not_written);
    tcase_add_test(tc, a_release_gives_its_images_to_the_level_below);
    tcase_add_test(tc, a_roll_back_ends_the_marks_above);
    tcase_add_test(tc, marks_nest_ten_thousand_deep);
    tcase_add_test(tc, released_images_take_no_memory);
    tcase_add_test(tc, nesting_of_begins_does_not_matter);
    tcase_add_test(tc, a_savepoint_costs_traps_for_what_is_written_after_it);
    tcase_add_test(tc, what_was_announced_counts_no_more);
    tcase_add_test(tc, warm_pages_are_noticed);
    tcase_add_loop_test(tc, heaps_are_restored, 0, 3);
    tc = env_tcase(s, "transact", 20);
    tcase_add_test(tc, inner_functions_that_fail_undo_their_own_stores_only);
    tcase_add_test(tc, an_inner_function_that_aborts_fails_the_outermost);
    tcase_add_test(tc, an_inner_function_must_leave_savepoints_outside_alone);
    tc = env_tcase(s, "misuse", 20);
    tcase_add_test(tc, misuse_is_refused);
    tcase_add_test(tc, environments_do_not_mix);
    tc = env_tcase(s, "failed", 20);
    tcase_add_test(tc, failed_transactions_roll_back_all_the_same);
    tcase_add_test(tc, a_conflict_fails_the_outermost);
    tcase_add_test(tc, what_was_read_in_a_part_that_is_rolled_back_still_counts);
    tc = env_tcase(s, "contexts", 20);
    tcase_add_test(tc, a_child_has_no_savepoint);
    tcase_add_test(tc, threads_have_savepoints_of_their_own);
    tcase_add_test(tc, translated_transactions_have_them);
    return s;
}

int
main(void)
{
    return env_main(savepoint_suite());
}
