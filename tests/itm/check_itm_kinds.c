/* SPDX-License-Identifier: MIT */
/*
 * check_itm_kinds.c -- language transactions of one process: queries, irrevocable blocks, parts of other
 * transactions, no environment, threads.
 *
 * GOAL    Each does as doc/language-transactions.md says.
 * METHOD  As in check_itm.c; counters of the library; children that are to be stopped with words.
 */
#include <config.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xac_env.h>
#include <xac_itm.h>

#include "env.h"

#define PAGES 64

/* The first number of a page; as a constant, for a function call is not allowed in a block. */
#define CELL(page) (x + (size_t)512 * (page))

typedef uint64_t transaction_id;
__attribute__((transaction_pure)) void _ITM_addUserCommitAction(void (*fn)(void *),
                                                                transaction_id id,
                                                                void *arg);
__attribute__((transaction_pure)) void _ITM_addUserUndoAction(void (*fn)(void *),
                                                              void *arg);
__attribute__((transaction_pure)) transaction_id _ITM_getTransactionId(void);
__attribute__((transaction_pure)) int _ITM_inTransaction(void);

static uint64_t *x;      /* the segment */
static uint64_t outside; /* of it */
static int attempts;     /* not undone */

static void
attach(void)
{
    x = env_attach(NONDURABLE, PAGES);
    attempts = 0;
}

/* fail_first -- the first n attempts fail. */
__attribute__((transaction_pure, noinline)) static void
fail_first(int n)
{
    if (++attempts <= n)
        must_ok(xAbort());
}

/* ---- queries --------------------------------------------------------------------------------- */

START_TEST(block_that_only_loads_is_a_query)
{
    uint64_t sum = 0, queries;

    attach();
    env_put(x, 4);
    queries = env_stats().queries;
    for (int i = 0; i < 10; i++) {
        __transaction_atomic
        {
            sum += x[0] + *CELL(2);
        }
    }
    must_eq(sum, 40);
    must_eq(env_stats().queries, queries + 10);
    env_detach();
}
END_TEST

typedef void action(uint64_t *cell) __attribute__((transaction_safe));

__attribute__((transaction_safe, noinline)) static void
add_one(uint64_t *cell)
{
    ++*cell;
}

__attribute__((transaction_safe, noinline)) static void
look(uint64_t *cell)
{
    uint64_t *p = cell;

    (void)p;
}

static action *const actions[] = {look, add_one};

/* Functions by pointers, which have transactional versions. */
START_TEST(function_by_pointer_stores)
{
    attach();
    for (int i = 0; i < 10; i++) {
        action *fn = actions[i % 2];

        __transaction_atomic
        {
            fn(x);
        }
    }
    must_eq(env_get(x), 5);
    env_detach();
}
END_TEST

/* The compiler takes it for a block that only loads. */
START_TEST(allocation_alone_is_no_query)
{
    struct xac_heap_totals totals;
    void *p = NULL;
    int runs = 0;

    attach();
    for (int i = 0; i < 3; i++) {
        __transaction_atomic
        {
            fail_first(-1);
            p = xMalloc(x, 100);
        }
        must(p != NULL);
    }
    runs = attempts;
    must_eq(runs, 6);
    __transaction_atomic
    {
        xFree(x, p);
    }
    must_ok(xbeginQuery());
    must_ok(xHeapCheck(x, &totals, sizeof totals));
    must_ok(xendQuery());
    must_eq(totals.allocations, 2);
    env_detach();
}
END_TEST

/* ---- irrevocable -------------------------------------------------------------------------------- */

static int unsafe_calls;

__attribute__((noinline)) static void
unsafe(uint64_t *cell)
{
    unsafe_calls++;
    __asm__ volatile("" ::: "memory");
    *cell += 10;
}

START_TEST(irrevocable_block_runs_once)
{
    int how = 0;

    attach();
    for (int i = 0; i < 5; i++) {
        __transaction_relaxed
        {
            x[0]++;
            if (i % 2 == 0)
                unsafe(x);
            how = _ITM_inTransaction();
        }
        must_eq(how, i % 2 == 0 ? 2 : 1);
    }
    must_eq(unsafe_calls, 3);
    must_eq(env_get(x), 35);
    must_eq(_ITM_inTransaction(), 0);
    env_detach();
}
END_TEST

static void
commit_fails_after_unsafe(void *arg)
{
    (void)arg;
    attach();
    __transaction_relaxed
    {
        unsafe(x);
        fail_first(1);
    }
}

START_TEST(irrevocable_block_that_cannot_commit_stops)
{
    char text[2000];

    must_eq(WTERMSIG(proc_capture(commit_fails_after_unsafe, NULL, text, sizeof text)),
            SIGABRT);
    must(strstr(text, "irrevocable") != NULL);
}
END_TEST

/* ---- the rest --------------------------------------------------------------------------------- */

static int committed,
    undone; /* to be loaded anew: the compiler takes them to be as before a cancel */

static void
note(void *arg)
{
    ++*(int *)arg;
}

START_TEST(actions_of_the_program)
{
    attach();
    __transaction_atomic
    {
        x[0]++;
        _ITM_addUserCommitAction(note, _ITM_getTransactionId(), &committed);
        _ITM_addUserUndoAction(note, &undone);
        fail_first(3);
    }
    must_eq(*(volatile int *)&committed, 1);
    must_eq(*(volatile int *)&undone, 3);
    __transaction_atomic
    {
        x[0]++;
        _ITM_addUserCommitAction(note, _ITM_getTransactionId(), &committed);
        _ITM_addUserUndoAction(note, &undone);
        __transaction_cancel;
    }
    must_eq(*(volatile int *)&committed, 1);
    must_eq(*(volatile int *)&undone, 4);
    must_eq(_ITM_getTransactionId(), 1);
    env_detach();
}
END_TEST

/* Inside of xbegin() a block is a part: it commits with the rest, and can be cancelled alone. */
START_TEST(block_inside_of_xbegin_is_a_part)
{
    attach();
    for (int end = 0; end < 2; end++) {
        outside = 0;
        must_ok(xbegin());
        x[0] = 1;
        __transaction_atomic
        {
            x[1] = 1;
            outside++;
        }
        __transaction_atomic
        {
            x[2] = 1;
            outside = 100;
            __transaction_cancel;
        }
        x[3] = 1;
        if (end == 0)
            must_ok(xAbort());
        must_rc(xend(), end == 0 ? ABORTED : COMMITTED);
        must_eq(outside, 1);
        for (int i = 0; i < 4; i++)
            must_eq(env_get(x + i), end == 1 && i != 2);
    }
    env_detach();
}
END_TEST

/* Savepoints around blocks, which keep the old bytes of their own stores by themselves. */
START_TEST(savepoints_undo_blocks_inside_of_xbegin)
{
    uint64_t mark;

    attach();
    must_ok(xbegin());
    __transaction_atomic
    {
        x[0] = 1;
        x[1] = 1;
    }
    mark = xSavepoint();
    must(mark != 0);
    __transaction_atomic
    {
        x[0] = 2;
        __transaction_atomic
        {
            x[1] = 3;
            __transaction_cancel;
        }
        x[2] = 2;
    }
    must_eq(x[1], 1);
    must_ok(xRollbackTo(mark));
    must_eq(x[0], 1);
    must_eq(x[1], 1);
    must_eq(x[2], 0);
    __transaction_atomic
    {
        x[2] = 5;
    }
    must_rc(xend(), COMMITTED);
    must_eq(env_get(x), 1);
    must_eq(env_get(x + 2), 5);
    env_detach();
}
END_TEST

START_TEST(block_inside_of_a_query_is_a_part)
{
    uint64_t got = 0;

    attach();
    env_put(x, 3);
    must_ok(xbeginQuery());
    __transaction_atomic
    {
        got = x[0];
        outside = got;
    }
    must_eq(x[0], 3);
    must_ok(xendQuery());
    must_eq(got + outside, 6);
    env_detach();
}
END_TEST

static void
frees_in_a_query(void *arg)
{
    void *p = NULL;

    (void)arg;
    attach();
    __transaction_atomic
    {
        p = xMalloc(x, 100);
    }
    must_ok(xbeginQuery());
    __transaction_atomic
    {
        xFree(x, p);
    }
    must_ok(xendQuery());
}

START_TEST(free_inside_of_a_query_stops)
{
    char text[2000];

    must_eq(WTERMSIG(proc_capture(frees_in_a_query, NULL, text, sizeof text)), SIGABRT);
    must(strstr(text, "libxac_itm: xFree(") != NULL);
}
END_TEST

static void
begins_in_another_environment(void *arg)
{
    struct xac_env *other;

    (void)arg;
    attach();
    other = xac_open("other", NULL);
    must(other != NULL);
    must_ok(xac_begin_in(other));
    __transaction_atomic
    {
        x[0] = 1;
    }
}

START_TEST(block_in_another_environment_stops)
{
    char text[2000];

    must_eq(WTERMSIG(
                proc_capture(begins_in_another_environment, NULL, text, sizeof text)),
            SIGABRT);
    must(strstr(text, "libxac_itm: a block begins inside of a transaction of an")
         != NULL);
}
END_TEST

static void *
count_outside(void *arg)
{
    uint64_t *other = arg;

    for (int i = 0; i < 20000; i++) {
        __transaction_atomic
        {
            outside++;
            *other = outside;
        }
    }
    return NULL;
}

START_TEST(without_environment_memory_is_transactional)
{
    pthread_t threads[4];
    uint64_t *heap = calloc(1000, sizeof *heap);

    must(heap != NULL);
    outside = 0;
    for (int i = 0; i < 10; i++) {
        __transaction_atomic
        {
            outside++;
            heap[i] = outside;
            if (i % 2 == 0)
                __transaction_cancel;
        }
    }
    must_eq(outside, 5);
    must_eq(heap[0], 0);
    must_eq(heap[9], 5);
    for (int i = 0; i < 4; i++)
        must(pthread_create(&threads[i], NULL, count_outside, heap) == 0);
    for (int i = 0; i < 4; i++)
        must(pthread_join(threads[i], NULL) == 0);
    must_eq(outside, 5 + 4 * 20000);
    must_eq(heap[0], outside);
    free(heap);
}
END_TEST

static void
ends_within(void *arg)
{
    (void)arg;
    attach();
    __transaction_relaxed
    {
        x[0] = 1;
        (void)xend();
    }
}

START_TEST(end_inside_of_a_block_stops)
{
    char text[2000];

    must_eq(WTERMSIG(proc_capture(ends_within, NULL, text, sizeof text)), SIGABRT);
    must(strstr(text, "libxac_itm: ") != NULL);
}
END_TEST

/* ---- threads ----------------------------------------------------------------------------------- */

#define THREADS 8
#define ROUNDS  500

static void *
count(void *arg)
{
    uint64_t *mine = arg;

    for (int i = 0; i < ROUNDS; i++) {
        __transaction_atomic
        {
            x[0]++;
            outside++;
            *mine = x[0];
            if (i % 8 == 7 && outside > 10)
                __transaction_cancel;
        }
    }
    return NULL;
}

/* Ordinary pointers, in all threads, to the segment and to memory outside. */
START_TEST(threads_share_one_mapping)
{
    pthread_t threads[THREADS];
    uint64_t mine[THREADS] = {0}, largest = 0;

    attach();
    outside = 0;
    for (int i = 0; i < THREADS; i++)
        must(pthread_create(&threads[i], NULL, count, &mine[i]) == 0);
    for (int i = 0; i < THREADS; i++)
        must(pthread_join(threads[i], NULL) == 0);
    must_eq(env_get(x), outside);
    must(outside >= THREADS * ROUNDS * 7 / 8 && outside < THREADS * ROUNDS);
    for (int i = 0; i < THREADS; i++)
        largest = mine[i] > largest ? mine[i] : largest;
    must(largest <= outside);
    env_detach();
}
END_TEST

static _Atomic uint64_t began, may_end;

static void *
plain_transaction(void *arg)
{
    (void)arg;
    must_ok(xbegin());
    x[1]++;
    word_store(&began, 1);
    proc_await(&may_end, 1, 20);
    proc_sleep_us(20000);
    must_rc(xend(), COMMITTED);
    return NULL;
}

/* A block waits for a thread that has called xbegin() on the process's mappings. */
START_TEST(block_waits_for_xbegin_of_another_thread)
{
    pthread_t thread;

    attach();
    must(pthread_create(&thread, NULL, plain_transaction, NULL) == 0);
    proc_await(&began, 1, 20);
    word_store(&may_end, 1);
    __transaction_atomic
    {
        x[1] += 10;
    }
    must(pthread_join(thread, NULL) == 0);
    must_eq(env_get(x + 1), 11);
    env_detach();
}
END_TEST

/* A child of fork() takes part by itself, whatever the threads of the parent are doing. */
START_TEST(child_of_fork_takes_part)
{
    pthread_t threads[2];
    uint64_t mine[2];

    attach();
    outside = 0;
    for (int i = 0; i < 2; i++)
        must(pthread_create(&threads[i], NULL, count, &mine[i]) == 0);
    for (int i = 0; i < 10; i++) {
        pid_t pid = fork();

        must(pid >= 0);
        if (pid == 0) {
            __transaction_atomic
            {
                x[5]++;
            }
            _exit(0);
        }
        proc_join(pid);
    }
    for (int i = 0; i < 2; i++)
        must(pthread_join(threads[i], NULL) == 0);
    must_eq(env_get(x + 5), 10);
    must_eq(env_get(x), outside);
    env_detach();
}
END_TEST

/* Blocks of threads may run side by side: then they work on views, at translated addresses. */
static void
setup_beside(void)
{
    env_setup();
    must_ok(xac_itm_side_by_side());
}

int
main(void)
{
    Suite *s = suite_create("itm_kinds");
    TCase *tcs[2] = {env_tcase(s, "kinds", 60),
                     env_tcase_with(s, "beside", 60, setup_beside)};

    for (int i = 0; i < 2; i++) {
        TCase *tc = tcs[i];

        tcase_add_test(tc, block_that_only_loads_is_a_query);
        tcase_add_test(tc, function_by_pointer_stores);
        tcase_add_test(tc, allocation_alone_is_no_query);
        tcase_add_test(tc, irrevocable_block_runs_once);
        tcase_add_test(tc, irrevocable_block_that_cannot_commit_stops);
        tcase_add_test(tc, actions_of_the_program);
        tcase_add_test(tc, block_inside_of_xbegin_is_a_part);
        tcase_add_test(tc, savepoints_undo_blocks_inside_of_xbegin);
        tcase_add_test(tc, block_inside_of_a_query_is_a_part);
        tcase_add_test(tc, free_inside_of_a_query_stops);
        tcase_add_test(tc, block_in_another_environment_stops);
        tcase_add_test(tc, without_environment_memory_is_transactional);
        tcase_add_test(tc, end_inside_of_a_block_stops);
        tcase_add_test(tc, threads_share_one_mapping);
        tcase_add_test(tc, block_waits_for_xbegin_of_another_thread);
        tcase_add_test(tc, child_of_fork_takes_part);
    }
    return env_main(s);
}
